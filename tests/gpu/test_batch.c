/*
 * test_batch.c: lade_decode_into() and lade_encode_into() with sources and destinations of every
 * kind of memory, mixed in one call, against what the host alone makes of the same items.  On the
 * emulated device in every run; on a real one with "--must" it fails where there is none.
 * "--seed N" repeats one round.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/batch_kit.h"

static lade_engine *engine;
static uint64_t seed;

/* The first KERNEL_SPECS are decoded by kernels too, the first ZSTD also encoded. */
static const char *const texts[] = {
	"lz4",
	"snappy",
	"zstd(level=1)",
	"blosc(cname=snappy,typesize=4)",
	"deflate(level=1)",
	"gzip(level=1)",
	"blosc(cname=blosclz,typesize=4)",
	"shuffle(4)|lz4|crc32c",
	"delta(<i4)|zstd(level=1)|xxh64",
	"crc32c|snappy",
	"lz4|crc32c",
};
#define SPECS (sizeof texts / sizeof *texts)
#define KERNEL_SPECS 4
#define ZSTD 2 /* where in 'texts' it is */
static lade_spec *specs[SPECS];

static int begin(void **state)
{
	(void)state;
	lade_engine_options o = {.struct_size = sizeof o, .threads = 3};
	OK(lade_engine_new(&o, &engine, err));
	for (size_t i = 0; i < SPECS; i++)
		specs[i] = spec_of(engine, texts[i]);
	return 0;
}

static int end(void **state)
{
	(void)state;
	for (size_t i = 0; i < SPECS; i++)
		lade_spec_unref(specs[i]);
	lade_engine_free(engine);
	kit_clean();
	return 0;
}

static rng round_begin(uint64_t number)
{
	rng r = {.s = (seed ? seed : 0x9E3779B97F4A7C15u * (number + 1)) | 1};
	print_message("round %d: --seed %llu\n", (int)number, (unsigned long long)r.s);
	kit_round(number, r.s);
	for (int i = 0; i < 8; i++)
		rng_next(&r);
	return r;
}

static int rounds(int emulated, int real)
{
	return seed ? 1 : emu ? emulated : real;
}

/* ---- decoding ------------------------------------------ */

#define SEGMENTS 3

/* One item, on the host (twice: plain and strict) and where it is tested. */
typedef struct one {
	size_t spec;
	chunk chunk[SEGMENTS];
	buffer src[SEGMENTS], dst, host_dst[2];
	lade_segment segment[SEGMENTS], host_segment[SEGMENTS];
	bool windowed, tells, damaged;
} one;

static void damage(rng *r, chunk *c)
{
	if (c->encoded_size == 0)
		return;
	if (rng_below(r, 2))
		c->encoded_size -= 1 + rng_below(r, c->encoded_size);
	for (size_t n = rng_below(r, 3); n > 0 && c->encoded_size; n--)
		c->encoded[rng_below(r, c->encoded_size)] ^= (uint8_t)(1u << rng_below(r, 8));
}

static lade_item make_one(rng *r, one *o, size_t spec, const lade_dict *dict, bool damaged)
{
	size_t count = rng_below(r, 3) ? 1 : 1 + rng_below(r, SEGMENTS), total = 0;
	lade_place place = any_place(r);
	*o = (one){.spec = spec, .tells = rng_below(r, 2), .damaged = damaged};
	for (size_t i = 0; i < count; i++) {
		o->chunk[i] = chunk_of(engine, specs[spec], dict, r, any_size(r));
		if (damaged && i == 0)
			damage(r, &o->chunk[i]);
		const chunk *c = &o->chunk[i];
		o->src[i] = buffer_new(rng_below(r, 8) ? place : any_place(r), c->encoded_size,
		                       rng_below(r, 20));
		buffer_put(&o->src[i], c->encoded, c->encoded_size);
		size_t says = o->tells ? c->plain_size : 0;
		if (damaged && o->tells && rng_below(r, 8) == 0)
			says += rng_below(r, 2) ? 1 : 8 * rng_below(r, 100);
		o->segment[i] =
			(lade_segment){o->src[i].data, c->encoded_size, o->src[i].place, says};
		o->host_segment[i] =
			(lade_segment){c->encoded, c->encoded_size, LADE_PLACE_HOST, says};
		total += c->plain_size;
	}
	lade_item item = {.spec = specs[spec], .src = o->segment, .src_count = count};
	size_t room = total;
	if (rng_below(r, 5) == 0) {
		o->windowed = true;
		item.range_off = rng_below(r, total + 1);
		item.range_size = rng_below(r, total - item.range_off + 1);
		if (damaged && rng_below(r, 4) == 0)
			item.range_size += rng_below(r, 100);
		room = item.range_size ? item.range_size : total - item.range_off;
	}
	if (rng_below(r, 3) == 0)
		room += rng_below(r, 500);
	if (damaged && room && rng_below(r, 3) == 0)
		room -= 1 + rng_below(r, room);
	size_t misalign = rng_below(r, 40);
	o->dst = buffer_new(any_place(r), room, misalign);
	for (int k = 0; k < 2; k++)
		o->host_dst[k] = buffer_new(LADE_PLACE_HOST, room, misalign);
	item.dst = buffer_span(&o->dst);
	return item;
}

static void free_one(one *o)
{
	for (int i = 0; i < SEGMENTS; i++) {
		chunk_free(&o->chunk[i]);
		buffer_free(&o->src[i]);
	}
	buffer_free(&o->dst);
	buffer_free(&o->host_dst[0]);
	buffer_free(&o->host_dst[1]);
}

static lade_item hosts(const one *o, const lade_item *item, int which)
{
	lade_item host = *item;
	host.src = o->host_segment;
	host.dst = buffer_span(&o->host_dst[which]);
	return host;
}

static const char *describe(const one *o, const lade_item *item)
{
	static char text[300];
	snprintf(text, sizeof text,
	         "%s, %zu segments, %s %d %zu bytes (plain %zu, says %zu) -> %s %d %zu bytes, "
	         "range %llu+%llu",
	         texts[o->spec], item->src_count, lade_kind_name(o->src[0].place.kind),
	         (int)o->src[0].place.device, o->segment[0].size, o->chunk[0].plain_size,
	         o->segment[0].decoded_size, lade_kind_name(o->dst.place.kind),
	         (int)o->dst.place.device, o->dst.size,
	         (unsigned long long)item->range_off, (unsigned long long)item->range_size);
	return text;
}

/* The result's bytes are the host's. */
static void same_bytes(const one *o, const lade_item *item, size_t size, int which)
{
	uint8_t *image = buffer_image(&o->dst), *host = buffer_image(&o->host_dst[which]);
	size_t lead = (size_t)(o->dst.data - o->dst.block);
	for (size_t i = 0; i < size; i++)
		if (image[lead + i] != host[lead + i]) {
			print_error("byte %zu of %zu is %02x, the host's %02x: %s\n", i, size,
			            image[lead + i], host[lead + i], describe(o, item));
			fail();
		}
	free(image);
	free(host);
}

static void untouched(const buffer *b)
{
	free(buffer_image(b));
}

/* A decoded size of 0 says that it is not known. */
static bool empty_segment(const lade_item *item)
{
	for (size_t i = 0; i < item->src_count; i++)
		if (item->src[i].decoded_size == 0)
			return true;
	return false;
}

/* What devices do not take, if only they are asked. */
static bool devices_refuse(const one *o, const lade_item *item, bool dict)
{
	bool several = item->src_count > 1 || item->range_off || item->range_size;
	return (dict && o->spec != ZSTD) || o->spec >= KERNEL_SPECS ||
	       (several && empty_segment(item));
}

static bool bad_data(lade_status status)
{
	return status == LADE_E_CORRUPT || status == LADE_E_TRUNCATED || status == LADE_E_NOSPACE ||
	       status == LADE_E_RANGE;
}

/* What a damaged Zstd frame may be said to be: its header may be damaged, too. */
static bool bad_frame(lade_status status)
{
	return bad_data(status) || status == LADE_E_DICT || status == LADE_E_CHECKSUM ||
	       status == LADE_E_UNSUPPORTED || status == LADE_E_LIMIT;
}

/* Of a damaged Zstd frame the kernel may tell another fault than libzstd, and may refuse what
 * libzstd takes; never the other way (docs/verdicts.md). */
static bool zstd_differs(const one *o, const lade_result *got, const lade_result *host)
{
	if (o->spec != ZSTD || !o->damaged)
		return false;
	return host->status == LADE_OK
	               ? bad_data(got->status)
	               : bad_frame(host->status) && bad_frame(got->status) &&
	                         got->status != LADE_E_UNSUPPORTED;
}

/* One segment that is decoded as it lies there has one verdict.  Of several, of a range,
 * and where a wrong size is told, any of several faults may be the one; and what lies behind a
 * range need not be looked at. */
static bool same_verdict(const one *o, const lade_item *item, const lade_result *got,
                         const lade_result *host)
{
	size_t told = o->segment[0].decoded_size;
	bool range = item->range_off || item->range_size;
	bool any = item->src_count > 1 || o->windowed || (told && told != o->chunk[0].plain_size);
	if (any && bad_data(host->status) && (bad_data(got->status) || (range && !got->status)))
		return true;
	return (got->status == host->status && got->size == host->size) ||
	       zstd_differs(o, got, host);
}

static void check_ones(const one *ones, const lade_item *items, size_t count,
                       const lade_batch_options *options, const lade_result *got,
                       const lade_error *errors, lade_status status, const lade_error *err)
{
	size_t bad = SIZE_MAX;
	for (size_t i = 0; i < count; i++) {
		lade_result host[2];
		lade_error host_error[2];
		const one *o = &ones[i];
		for (int k = 0; k < 2; k++) {
			lade_item item = hosts(o, &items[i], k);
			lade_batch_options h = *options;
			h.where = LADE_WHERE_HOST;
			h.flags |= k ? LADE_BATCH_STRICT : 0;
			h.item_errors = &host_error[k];
			lade_decode_into(engine, NULL, &item, 1, &host[k], &h, NULL);
		}
		untouched(&o->dst);
		for (size_t k = 0; k < items[i].src_count; k++)
			untouched(&o->src[k]);
		if (got[i].status != LADE_OK) {
			bad = bad == SIZE_MAX ? i : bad;
			assert_int_equal(got[i].size, 0);
			if (errors) {
				assert_int_equal(errors[i].status, got[i].status);
				assert_true(strlen(errors[i].message) > 8);
			}
		} else if (errors) {
			assert_int_equal(errors[i].status, (lade_status)-1);
		}
		if (got[i].status == LADE_E_UNSUPPORTED && options->where == LADE_WHERE_DEVICE &&
		    devices_refuse(o, &items[i], options->dict != NULL))
			continue;
		/* Kernels judge as the strict decoders do; elsewhere a library may have decoded. */
		bool library = host[0].status == got[i].status && host[0].size == got[i].size;
		int like = options->where != LADE_WHERE_DEVICE && library ? 0 : 1;
		if (!same_verdict(o, &items[i], &got[i], &host[like])) {
			print_error("item %zu: %s, %zu bytes; the host %s, %zu bytes (%s); strict "
			            "%s, %zu (%s)\n%s\n%s\n",
			            i, lade_status_name(got[i].status), got[i].size,
			            lade_status_name(host[0].status), host[0].size,
			            host[0].status ? host_error[0].message : "",
			            lade_status_name(host[1].status), host[1].size,
			            host[1].status ? host_error[1].message : "",
			            describe(o, &items[i]), errors ? errors[i].message : "");
			fail();
		}
		if (got[i].status == LADE_OK && host[like].status == LADE_OK)
			same_bytes(o, &items[i], got[i].size, like);
	}
	assert_int_equal(status, bad == SIZE_MAX ? LADE_OK : got[bad].status);
	if (bad < SIZE_MAX) {
		char begins[32];
		snprintf(begins, sizeof begins, "item %zu: ", bad);
		assert_ptr_equal(strstr(err->message, begins), err->message);
		if (errors)
			assert_string_equal(err->message + strlen(begins), errors[bad].message);
	}
}

static void decode_round(rng *r, size_t count, bool damaged)
{
	one *ones = calloc(count, sizeof *ones);
	lade_item *items = calloc(count, sizeof *items);
	lade_result *results = malloc(count * sizeof *results);
	lade_error *errors = malloc(count * sizeof *errors), why = {.message = ""};
	bool with_errors = rng_below(r, 3) != 0;
	/* Half of the rounds are of one spec, given by the call. */
	size_t same = rng_below(r, 2) ? rng_below(r, KERNEL_SPECS) : SIZE_MAX;
	lade_batch_options options = {.struct_size = sizeof options,
	                              .where = (lade_where)(2 - rng_below(r, 5) / 2),
	                              .flags = rng_below(r, 4) ? 0 : LADE_BATCH_STRICT,
	                              .threads = (unsigned)rng_below(r, 4),
	                              .device = (int32_t)rng_below(r, (uint64_t)device_count),
	                              .item_errors = with_errors ? errors : NULL};
	if (rng_below(r, 6) == 0)
		options.flags |= LADE_BATCH_IGNORE_CHECKSUMS;
	for (size_t i = 0; i < count; i++) {
		size_t spec = same < SIZE_MAX   ? same
		              : rng_below(r, 2) ? rng_below(r, KERNEL_SPECS)
		                                : rng_below(r, SPECS);
		items[i] = make_one(r, &ones[i], spec, NULL, damaged && rng_below(r, 3) == 0);
		/* What is not told is seen. */
		results[i] = (lade_result){(lade_status)-1, 12345};
		errors[i] = (lade_error){.status = (lade_status)-1};
	}
	lade_item *given = malloc(count * sizeof *given);
	for (size_t i = 0; i < count; i++) {
		given[i] = items[i];
		if (same < SIZE_MAX && rng_below(r, 2))
			given[i].spec = NULL;
	}
	lade_status status = lade_decode_into(engine, same < SIZE_MAX ? specs[same] : NULL, given,
	                                      count, results, &options, &why);
	check_ones(ones, items, count, &options, results, with_errors ? errors : NULL, status,
	           &why);
	for (size_t i = 0; i < count; i++)
		free_one(&ones[i]);
	free(ones);
	free(items);
	free(given);
	free(results);
	free(errors);
}

static void decode_mixed(void **state)
{
	(void)state;
	for (int i = 0; i < rounds(24, 60); i++) {
		rng r = round_begin((uint64_t)i);
		decode_round(&r, 1 + rng_below(&r, 40), false);
	}
}

static void decode_mixed_and_damaged(void **state)
{
	(void)state;
	for (int i = 0; i < rounds(48, 120); i++) {
		rng r = round_begin(1000 + (uint64_t)i);
		decode_round(&r, 1 + rng_below(&r, 40), true);
	}
}

/* ---- encoding ------------------------------------------ */

static void encode_round(rng *r, size_t count)
{
	one *ones = calloc(count, sizeof *ones);
	lade_item *items = calloc(count, sizeof *items);
	lade_result *results = malloc(count * sizeof *results);
	lade_error why = {.message = ""};
	lade_batch_options options = {.struct_size = sizeof options,
	                              .where = (lade_where)(2 - rng_below(r, 5) / 2),
	                              .device = (int32_t)rng_below(r, (uint64_t)device_count)};
	for (size_t i = 0; i < count; i++) {
		one *o = &ones[i];
		o->spec = rng_below(r, 2) ? rng_below(r, KERNEL_SPECS) : rng_below(r, SPECS);
		size_t n = rng_below(r, 3) ? 1 : rng_below(r, SEGMENTS + 1), total = 0;
		lade_item *item = &items[i];
		*item = (lade_item){.spec = specs[o->spec], .src = o->segment, .src_count = n};
		for (size_t k = 0; k < n; k++) {
			size_t size = any_size(r);
			uint8_t *bytes = malloc(size + 1);
			fill(r, bytes, size);
			o->src[k] = buffer_new(any_place(r), size, rng_below(r, 20));
			buffer_put(&o->src[k], bytes, size);
			o->segment[k] = (lade_segment){
				.data = o->src[k].data, .size = size, .place = o->src[k].place};
			o->chunk[k] = (chunk){.plain = bytes, .plain_size = size};
			total += size;
		}
		size_t bound = lade_spec_bound(specs[o->spec], total);
		/* 'tells': there is room enough. */
		o->tells = rng_below(r, 5) != 0;
		o->dst = buffer_new(any_place(r),
		                    o->tells ? bound + rng_below(r, 2) * 100 : rng_below(r, bound),
		                    rng_below(r, 40));
		item->dst = buffer_span(&o->dst);
		results[i] = (lade_result){(lade_status)-1, 12345};
	}
	lade_status status = lade_encode_into(engine, NULL, items, count, results, &options, &why);
	size_t bad = SIZE_MAX;
	for (size_t i = 0; i < count; i++) {
		const one *o = &ones[i];
		untouched(&o->dst);
		if (results[i].status != LADE_OK && bad == SIZE_MAX)
			bad = i;
		if (results[i].status == LADE_E_UNSUPPORTED && options.where == LADE_WHERE_DEVICE &&
		    (o->spec >= ZSTD || items[i].src_count > 1))
			continue;
		if (results[i].status == LADE_E_NOSPACE && !o->tells) {
			assert_int_equal(results[i].size, 0);
			continue;
		}
		if (results[i].status != LADE_OK)
			print_error("item %zu: %s: %s\n", i, describe(o, &items[i]), why.message);
		assert_int_equal(results[i].status, LADE_OK);
		assert_true(results[i].size <= o->dst.size);
		uint8_t *encoded = malloc(results[i].size + 1), *plain = malloc(4 << 20);
		buffer_get(&o->dst, encoded, results[i].size);
		size_t size = 0, at = 0;
		OK(lade_decode(engine, specs[o->spec], lade_host_cspan(encoded, results[i].size),
		               lade_host_span(plain, 4 << 20), &size, err));
		for (size_t k = 0; k < items[i].src_count; k++) {
			const chunk *c = &o->chunk[k];
			assert_true(at + c->plain_size <= size);
			if (memcmp(plain + at, c->plain, c->plain_size))
				print_error("item %zu: %s\n", i, describe(o, &items[i]));
			assert_memory_equal(plain + at, c->plain, c->plain_size);
			at += c->plain_size;
		}
		assert_int_equal(at, size);
		free(encoded);
		free(plain);
	}
	assert_int_equal(status, bad == SIZE_MAX ? LADE_OK : results[bad].status);
	for (size_t i = 0; i < count; i++)
		free_one(&ones[i]);
	free(ones);
	free(items);
	free(results);
}

static void encode_mixed(void **state)
{
	(void)state;
	for (int i = 0; i < rounds(24, 60); i++) {
		rng r = round_begin(2000 + (uint64_t)i);
		encode_round(&r, 1 + rng_below(&r, 30));
	}
}

/* Both refuse a frame that names a dictionary and is cut short; each tells the fault that it finds
 * first (docs/verdicts.md).  A whole frame gets one verdict. */
static void a_dictionary_of_a_frame_cut_short(void **state)
{
	(void)state;
	lade_spec *zstd = spec_of(engine, "zstd");
	lade_place near = {LADE_DEVICE, 0};
	/* | magic 4 | single segment, id of a byte | 7 | 3 bytes | last raw block of 3 bytes | */
	static const uint8_t frame[] = {0x28, 0xB5, 0x2F, 0xFD, 0x21, 7, 3, 0x19, 0, 0, 1, 2, 3};
	buffer src = buffer_new(near, sizeof frame, 0), dst = buffer_new(near, 3, 0);
	buffer_put(&src, frame, sizeof frame);
	for (size_t size = 7; size <= sizeof frame; size++) {
		bool whole = size == sizeof frame;
		lade_segment s = {.data = src.data, .size = size, .place = near};
		lade_item item = {.src = &s, .src_count = 1, .dst = buffer_span(&dst)};
		lade_batch_options o = {.struct_size = sizeof o, .where = LADE_WHERE_DEVICE};
		lade_result result;
		lade_decode_into(engine, zstd, &item, 1, &result, &o, NULL);
		assert_int_equal(result.status, LADE_E_DICT);
		o.where = LADE_WHERE_HOST;
		lade_decode_into(engine, zstd, &item, 1, &result, &o, NULL);
		assert_int_equal(result.status, whole ? LADE_E_DICT : LADE_E_TRUNCATED);
	}
	buffer_free(&src);
	buffer_free(&dst);
	lade_spec_unref(zstd);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(decode_mixed, begin, end),
		cmocka_unit_test_setup_teardown(decode_mixed_and_damaged, begin, end),
		cmocka_unit_test_setup_teardown(encode_mixed, begin, end),
		cmocka_unit_test_setup_teardown(a_dictionary_of_a_frame_cut_short, begin, end),
	};
	int rc;
	seed = seed_of(argc, argv);
	if (!kit_begin(argc, argv, &rc))
		return rc;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
