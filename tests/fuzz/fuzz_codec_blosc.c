/*
 * fuzz_codec_blosc.c: the Blosc1 decoder.  All ways of decoding agree; what is taken, c-blosc takes
 * too and gives the same bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "batch/host/item.h"
#include "codec/blosc/blosc.h"

#include <blosc.h>
#include <stdlib.h>
#include <string.h>

/* Larger claims than this are refused by the room that is given. */
#define ROOM_MAX ((size_t)1 << 20)

static void expect(bool ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static lade_engine *engine;
	static lade_worker *worker;
	static void *state;
	const lade_codec_ops *d = lade__blosc_decode.codec;
	if (!engine) {
		expect(lade_engine_new(NULL, &engine, NULL) == LADE_OK);
		worker = lade__worker_take(engine);
		state = lade__blosc_decode.state_new(NULL, lade_allocator_default(LADE_HOST));
		expect(worker && state);
	}
	lade_stage stage = {.algorithm = &lade__blosc};
	lade_run run = {
		.stage = &stage, .state = state, .worker = worker, .cpu = lade_cpu_detect()};
	lade_cspan src = lade_host_cspan(data, size);
	lade_error err = {0};
	uint64_t claimed = 0;
	lade_status sized = lade__blosc.decoded_size(&stage, data, size, &claimed, &err);
	size_t room = sized == LADE_OK && claimed < ROOM_MAX ? (size_t)claimed : 100;
	uint8_t *whole = malloc(room + 1), *other = malloc(room + 1);
	expect(whole && other);
	/* Not all of what a refused source leaves behind is written. */
	memset(whole, 0, room + 1);
	memset(other, 0, room + 1);

	size_t n = 1;
	lade_status status = d->run(&run, src, lade_host_span(whole, room), &n, &err);
	expect(status == LADE_OK || (n == 0 && err.status == status && err.message[0]));
	expect(status == LADE_OK || err.offset <= size || err.offset == LADE_NO_OFFSET);
	expect(status != LADE_OK || (sized == LADE_OK && n == claimed));

	size_t parts = 0, parts_size = 0;
	if (d->parts(&run, src, &parts, &parts_size, &err) == LADE_OK && parts_size <= room) {
		lade_status part = LADE_OK;
		for (size_t p = 0; p < parts && part == LADE_OK; p++)
			part = d->run_part(&run, src, p, lade_host_span(other, room), &err);
		expect(part == status);
		expect(status != LADE_OK || memcmp(whole, other, n) == 0);
	}
	if (status == LADE_OK) {
		size_t off = n / 3, len = n / 2 - off;
		expect(d->run_range(&run, src, off, lade_host_span(other, len), &err) == LADE_OK);
		expect(memcmp(other, whole + off, len) == 0);
		if (n > 0) {
			expect(blosc_decompress_ctx(data, other, n, 1) == (int)n);
			expect(memcmp(other, whole, n) == 0);
		}
	}
	free(whole);
	free(other);
	return 0;
}
