/*
 * test_lz_strict.c: the library's own decoders of LZ4 and Snappy against a plain one: status, size
 * and bytes, with both buffers at guard pages.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/lz4/lz4.h"
#include "codec/snappy/snappy.h"
#include "codec_test.h"
#include "lz_plain.h"
#include "lz_streams.h"

static const uint64_t seed = 0x57121c7;

/* Large enough for every stream here; cases lie at one end or the other. */
#define ROOM (STREAM_ROOM + 4096)
static guard from[2], to[2];
static uint8_t plain_out[ROOM];

static const lade_implementation *const decoders[2] = {&lade__lz4_strict, &lade__snappy_strict};

static int setup(void **state)
{
	for (int end = 0; end < 2; end++) {
		from[end] = guard_new(ROOM, end);
		to[end] = guard_new(ROOM, end);
	}
	return codec_setup(state);
}

static int teardown(void **state)
{
	for (int end = 0; end < 2; end++) {
		guard_free(&from[end]);
		guard_free(&to[end]);
	}
	return codec_teardown(state);
}

static void dump(bool snappy, const uint8_t *in, size_t size, size_t room)
{
	print_error("%s, %zu bytes, room for %zu:", snappy ? "snappy" : "lz4", size, room);
	for (size_t i = 0; i < size && i < 300; i++)
		print_error(" %02x", in[i]);
	print_error("\n");
}

/* Decodes at the guard pages of 'ends' (bit 0: the source's, bit 1: the destination's). */
static lade_status check_at(bool snappy, const uint8_t *in, size_t size, size_t room, unsigned ends)
{
	const guard *f = &from[ends & 1], *t = &to[ends >> 1];
	uint8_t *src = f->data + (ends & 1 ? ROOM - size : 0);
	uint8_t *dst = t->data + (ends >> 1 ? ROOM - room : 0);
	size_t got = 1, want_size;
	lade_error err = {0};
	lade_run run = {.worker = codec_worker};
	if (size)
		memcpy(src, in, size);
	/* The destination's other side has no page: a mark shows what is written there. */
	uint8_t *mark = ends >> 1 ? dst - 1 : dst + room;
	bool marked = room < ROOM;
	if (marked)
		*mark = 0x5A;
	lade_status want = snappy ? plain_snappy(in, size, plain_out, room, &want_size)
	                          : plain_lz4(in, size, plain_out, room, &want_size);
	lade_status status = decoders[snappy]->codec->run(&run, lade_host_cspan(src, size),
	                                                  lade_host_span(dst, room), &got, &err);
	if (status != want || got != want_size ||
	    (status == LADE_OK && memcmp(dst, plain_out, got)) || (marked && *mark != 0x5A)) {
		dump(snappy, in, size, room);
		fail_msg("%s (%s), %zu bytes; want %s, %zu", lade_status_name(status), err.message,
		         got, lade_status_name(want), want_size);
	}
	if (status != LADE_OK) {
		assert_int_equal(err.status, status);
		assert_true(err.message[0] && (err.offset <= size || err.offset == LADE_NO_OFFSET));
	}
	return status;
}

static lade_status check(bool snappy, const uint8_t *in, size_t size, size_t room)
{
	lade_status status = check_at(snappy, in, size, room, 3);
	assert_int_equal(check_at(snappy, in, size, room, 0), status);
	return status;
}

/* Sizes from 0 on; each size is also another alignment, as the buffers end at pages. */
static void small_sizes(void **state)
{
	(void)state;
	rng r = {seed};
	uint8_t raw[STREAM_RAW];
	stream s;
	for (int snappy = 0; snappy < 2; snappy++)
		for (size_t size = 0; size < 700; size++) {
			stream_data(&r, raw, size);
			stream_encode(&r, snappy, raw, size, &s);
			assert_int_equal(check(snappy, s.bytes, s.size, size), LADE_OK);
			assert_memory_equal(plain_out, raw, size);
			assert_int_equal(check(snappy, s.bytes, s.size, size + 7), LADE_OK);
			if (size)
				assert_int_equal(check(snappy, s.bytes, s.size, size - 1),
				                 LADE_E_NOSPACE);
		}
}

static void every_cut_and_room(void **state)
{
	(void)state;
	rng r = {seed + 1};
	uint8_t raw[STREAM_RAW];
	stream s;
	for (int snappy = 0; snappy < 2; snappy++)
		for (int kind = 0; kind < 12; kind++) {
			size_t size = 1500;
			stream_data(&r, raw, size);
			stream_encode(&r, snappy, raw, size, &s);
			for (size_t cut = 0; cut < s.size; cut++)
				check(snappy, s.bytes, cut, size);
			for (size_t room = 0; room < size; room++)
				assert_int_equal(check(snappy, s.bytes, s.size, room),
				                 LADE_E_NOSPACE);
		}
}

/* Long runs of every offset that is copied in another way, in the middle and at the end. */
static void every_near_offset(void **state)
{
	(void)state;
	uint8_t in[200] = {0};
	for (size_t offset = 1; offset <= 40; offset++)
		for (size_t match = 4; match < 300; match++) {
			size_t n = 0;
			in[n++] = 0xF0 | (match < 19 ? (uint8_t)(match - 4) : 15);
			in[n++] = 40 - 15;
			for (size_t i = 0; i < 40; i++)
				in[n++] = (uint8_t)(i * 7);
			in[n++] = (uint8_t)offset;
			in[n++] = 0;
			if (match >= 19 + 255)
				in[n++] = 255;
			if (match >= 19)
				in[n++] = (uint8_t)((match - 19) % 255);
			size_t last = match & 1 ? 80 : 5;
			in[n++] = (uint8_t)((last < 15 ? last : 15) << 4);
			if (last >= 15)
				in[n++] = (uint8_t)(last - 15);
			for (size_t i = 0; i < last; i++)
				in[n++] = (uint8_t)i;
			assert_int_equal(check(false, in, n, 40 + match + last), LADE_OK);
			assert_int_equal(check(false, in, n, 40 + match + last + 100), LADE_OK);
		}
}

static void damaged_and_made_streams(void **state)
{
	(void)state;
	rng r = {seed + 2};
	size_t count[16] = {0};
	stream s;
	print_message("seed %llx\n", (unsigned long long)seed);
	for (int i = 0; i < 120000; i++) {
		bool snappy = i & 1;
		if (i & 2)
			stream_damaged(&r, snappy, &s);
		else
			stream_made(&r, snappy, &s);
		count[check_at(snappy, s.bytes, s.size, s.room, (unsigned)rng_below(&r, 4))]++;
	}
	assert_true(count[LADE_OK] > 20000 && count[LADE_E_CORRUPT] > 5000);
	assert_true(count[LADE_E_TRUNCATED] > 5000 && count[LADE_E_NOSPACE] > 5000);
}

/* Through the engine: the flag chooses the decoder, ranges and dictionaries work with it. */
static void the_flag(void **state)
{
	(void)state;
	static const uint8_t zero_offset[] = {0x14, 'a', 0, 0, 0x50, 1, 2, 3, 4, 5};
	uint8_t dst[64];
	lade_spec *spec;
	lade_error err = {0};
	assert_status(lade_spec_parse(NULL, "lz4", &spec, &err), LADE_OK, err);
	lade_segment segment = {.data = zero_offset, .size = sizeof zero_offset};
	lade_item item = {.src = &segment, .src_count = 1, .dst = lade_host_span(dst, sizeof dst)};
	lade_batch_options options = {.struct_size = sizeof options};
	lade_result result;
	assert_status(lade_decode_into(codec_engine, spec, &item, 1, &result, &options, &err),
	              LADE_OK, err);
	options.flags = LADE_BATCH_STRICT;
	assert_status(lade_decode_into(codec_engine, spec, &item, 1, &result, &options, &err),
	              LADE_E_CORRUPT, err);
	assert_int_equal(err.offset, 2);
	lade_candidate candidates[8];
	size_t count;
	lade_call call = {.struct_size = sizeof call, .direction = LADE_DECODE, .spec = spec,
	                  .items = &item, .count = 1, .options = &options};
	assert_status(lade_explain(codec_engine, &call, candidates, 8, &count, &err), LADE_OK, err);
	for (size_t i = 0; i < count; i++)
		assert_true(candidates[i].chosen ==
		            !strcmp(candidates[i].implementation, "lz4/strict"));
	/* Bytes [3, 7) of a block whose size nobody tells. */
	static const uint8_t plain_block[] = {0x18, 'a', 1, 0, 0x50, '1', '2', '3', '4', '5'};
	segment = (lade_segment){.data = plain_block, .size = sizeof plain_block};
	item.range_off = 11;
	item.range_size = 4;
	item.dst.size = 4;
	assert_status(lade_decode_into(codec_engine, spec, &item, 1, &result, &options, &err),
	              LADE_OK, err);
	assert_int_equal(result.size, 4);
	assert_memory_equal(dst, "aa12", 4);
	lade_spec_unref(spec);
}

/* A match may begin in the dictionary and go on in the output; no further back. */
static void with_a_dictionary(void **state)
{
	(void)state;
	static const uint8_t across[] = {0x26, 'x', 'y', 6, 0, 0x10, 'z'};
	static const uint8_t too_far[] = {0x26, 'x', 'y', 9, 0, 0x10, 'z'};
	uint8_t dst[64];
	size_t got;
	lade_error err = {0};
	lade_run run = {.worker = codec_worker};
	lade_dict *dict;
	assert_status(lade_dict_new("abcdef", 6, &dict, &err), LADE_OK, err);
	run.dict = dict;
	assert_status(lade__lz4_strict.codec->run(&run, lade_host_cspan(across, sizeof across),
	                                          lade_host_span(dst, 13), &got, &err),
	              LADE_OK, err);
	assert_int_equal(got, 13);
	assert_memory_equal(dst, "xycdefxycdefz", 13);
	assert_status(lade__lz4_strict.codec->run(&run, lade_host_cspan(too_far, sizeof too_far),
	                                          lade_host_span(dst, 13), &got, &err),
	              LADE_E_CORRUPT, err);
	/* What liblz4 makes with one, near and far from the ends. */
	rng r = {seed + 3};
	uint8_t raw[STREAM_RAW], packed[STREAM_CAP], back[STREAM_RAW];
	codec c = codec_open("lz4");
	lade_dict_free(dict);
	stream_data(&r, raw, sizeof raw);
	assert_status(lade_dict_new(raw + 100, 2500, &dict, &err), LADE_OK, err);
	run.dict = c.enc.dict = dict;
	for (size_t size = 1; size < sizeof raw; size += 37) {
		size_t packed_size;
		assert_status(
			codec_encode(&c, raw, size, packed, sizeof packed, &packed_size, &err),
			LADE_OK, err);
		lade_cspan src = lade_host_cspan(packed, packed_size);
		lade_span room = lade_host_span(back, size);
		assert_status(lade__lz4_strict.codec->run(&run, src, room, &got, &err), LADE_OK,
		              err);
		assert_int_equal(got, size);
		assert_memory_equal(back, raw, size);
	}
	codec_close(&c);
	lade_dict_free(dict);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_sizes),       cmocka_unit_test(every_cut_and_room),
		cmocka_unit_test(every_near_offset), cmocka_unit_test(damaged_and_made_streams),
		cmocka_unit_test(the_flag),          cmocka_unit_test(with_a_dictionary),
	};
	return cmocka_run_group_tests_name("lz_strict", tests, setup, teardown);
}
