/*
 * cascaded_host.c: the host's encoder for test_cascaded.cc, which cannot include the library's
 * headers: they and the kernels' have a name in common.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec_test.h"
#include "cascaded_host.h"

size_t cascaded_host_encode(const char *text, const uint8_t *data, size_t size, uint8_t *to,
                            size_t cap)
{
	lade_error err = {0};
	size_t got;
	if (!codec_engine)
		assert_int_equal(codec_setup(NULL), 0);
	codec c = codec_open(text);
	assert_status(codec_encode(&c, data, size, to, cap, &got, &err), LADE_OK, err);
	codec_close(&c);
	return got;
}

int cascaded_host_close(void **state)
{
	return codec_engine ? codec_teardown(state) : 0;
}
