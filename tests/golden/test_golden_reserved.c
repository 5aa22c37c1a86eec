/*
 * test_golden_reserved.c: what version 1 of ans, bitcomp and cascaded reserves is refused, by the
 * decoders of every instruction set, whole and in part, so that later versions can use it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec_test.h"
#include "reserved_kit.h"

static uint8_t out[RESERVED_CAP];

static void refused(codec *c, const reserved *r, const guard *in)
{
	for (lade_cpu cpu = LADE_CPU_PLAIN; cpu <= lade_cpu_detect(); cpu++) {
		lade_error err = {0};
		size_t got = 1;
		c->dec.cpu = cpu;
		lade_status status =
			codec_decode(c, in->data, in->size, out, sizeof out, &got, &err);
		if (status != LADE_E_CORRUPT || got != 0 || !err.message[0])
			fail_msg("%s, %s: %s, %zu bytes: %s", r->file, r->what,
			         lade_status_name(status), got, err.message);
		/* A range of the first sub-block, which is where all changes are. */
		status = c->decoder->run_range(&c->dec, lade_host_cspan(in->data, in->size), 0,
		                               lade_host_span(out, 1), &err);
		if (status != LADE_E_CORRUPT)
			fail_msg("%s, %s: a range: %s", r->file, r->what, lade_status_name(status));
	}
}

static void what_is_reserved(void **state)
{
	(void)state;
	static const char *const names[] = {"ans", "bitcomp", "cascaded"};
	static reserved r;
	unsigned count[3] = {0};
	FILE *list = reserved_open("reserved.txt");
	while (reserved_next(list, &r)) {
		size_t which = 0;
		while (which < 3 && !reserved_is(&r, names[which]))
			which++;
		assert_true(which < 3);
		codec c = codec_open(names[which]);
		lade_error err = {0};
		size_t got;
		assert_status(codec_decode(&c, r.chunk, r.size, out, sizeof out, &got, &err),
		              LADE_OK, err);
		r.chunk[r.at] ^= (uint8_t)r.bits;
		guard in = guard_copy(r.chunk, r.size, 1);
		c.dec.stage = &c.stage;
		refused(&c, &r, &in);
		guard_free(&in);
		codec_close(&c);
		count[which]++;
	}
	fclose(list);
	assert_true(count[0] >= 30 && count[1] >= 24 && count[2] >= 18);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_reserved)};
	return cmocka_run_group_tests(tests, codec_setup, codec_teardown);
}
