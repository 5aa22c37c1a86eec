/*
 * test_batch_damage.c: damaged chunks of codecs that decode in parts and ranges: several threads
 * tell of each what one thread does, at another CPU level, and give the same bytes; ranges and
 * bytes of what is taken that a layout spreads are those of the whole, and gaps stay as they are.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "guard.h"

#include <lade/lade.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

/* Parts have 256 KiB: some chunks have three, some one, some are small. */
#define SIZE_MOST ((size_t)800000)
#ifdef __SANITIZE_THREAD__
#define CHUNKS 4
#else
#define CHUNKS 24
#endif
#define DAMAGES 5

static const char *const specs[] = {
	"ans", "ans(<f4)", "ans(bfloat16,block=8192)", "ans(<i8,block=16384)|crc32c",
	"bitcomp", "bitcomp(<f4)", "bitcomp(<i8)", "bitcomp(<f4,mode=lossy_signed,delta=0.001)",
	"bitcomp(<u2,algorithm=sparse)", "cascaded", "cascaded(<i4)", "cascaded(<u8,block=4096)",
	"blosc(cname=lz4,typesize=4)"};
#define SPECS (sizeof specs / sizeof *specs)

static uint64_t seed;

static lade_engine *engine_of(unsigned threads, lade_cpu cpu)
{
	lade_engine_options options = {
		.struct_size = sizeof options, .threads = threads, .cpu = cpu};
	lade_engine *engine = NULL;
	assert_int_equal(lade_engine_new(&options, &engine, NULL), LADE_OK);
	return engine;
}

/* Noise, runs with some noise, sums of small numbers, or places of each. */
static void fill(uint8_t *raw, size_t size, rng *r)
{
	unsigned kind = (unsigned)rng_below(r, 4);
	uint32_t sum = (uint32_t)rng_next(r);
	for (size_t i = 0; i < size; i++) {
		unsigned noise = (unsigned)rng_next(r);
		sum += i % 4 ? 0 : noise % 9;
		const unsigned values[] = {noise, (unsigned)(i / 64 % 7) + (i % 4 ? 0 : noise % 3),
		                           sum >> 8 * (i % 4), i / 5000 % 3 ? 0 : noise % 30};
		raw[i] = (uint8_t)values[kind];
	}
}

/* Gives the size, which may be less. */
static size_t damage(uint8_t *bytes, size_t size, rng *r)
{
	for (uint64_t n = 1 + rng_below(r, 4); n && size > 64; n--) {
		size_t at = rng_below(r, rng_below(r, 2) ? size : 200 < size ? 200 : size);
		uint32_t word = (uint32_t)rng_below(r, rng_below(r, 3) ? 300 : UINT32_MAX);
		switch (rng_below(r, 5)) {
		case 0:
			bytes[at] = (uint8_t)rng_next(r);
			break;
		case 1:
			memcpy(bytes + (at & ~(size_t)3) % (size - 4), &word, 4);
			break;
		case 2:
			memmove(bytes + at % (size - 32), bytes + rng_below(r, size - 32), 32);
			break;
		case 3:
			size = rng_below(r, 4) ? size : rng_below(r, size);
			break;
		default:
			bytes[at] ^= (uint8_t)(1u << rng_below(r, 8));
			break;
		}
	}
	return size;
}

/* A range of, and a layout for, what decodes to 'want'. */
static void check_windows(lade_engine *engine, const lade_spec *spec, const guard *src,
                          const guard *want, rng *r)
{
	size_t size = want->size, off = rng_below(r, size), part = 1 + rng_below(r, size - off);
	size_t pitch = 1 + rng_below(r, 5), extent = (size - 1) * pitch + 1;
	ptrdiff_t stride = (ptrdiff_t)pitch;
	lade_layout layout = {.struct_size = sizeof layout, .elem_size = 1, .ndim = 1,
	                      .shape = &size, .strides = &stride};
	guard range = guard_new(part, 1), grid = guard_new(extent, 1);
	lade_segment segment = {.data = src->data, .size = src->size,
	                        .decoded_size = rng_below(r, 2) ? size : 0};
	lade_item items[2] = {{.src = &segment,
	                       .src_count = 1,
	                       .dst = lade_host_span(range.data, part),
	                       .range_off = off,
	                       .range_size = part},
	                      {.src = &segment,
	                       .src_count = 1,
	                       .dst = lade_host_span(grid.data, extent),
	                       .layout = &layout}};
	memset(grid.data, 0xEE, extent);
	assert_int_equal(lade_decode_into(engine, spec, items, 2, NULL, NULL, NULL), LADE_OK);
	assert_memory_equal(range.data, want->data + off, part);
	for (size_t i = 0; i < extent; i++) {
		uint8_t right = i % pitch ? 0xEE : want->data[i / pitch];
		if (grid.data[i] != right)
			fail_msg("stride %zu, byte %zu: %02x, want %02x", pitch, i, grid.data[i],
			         right);
	}
	guard_free(&range);
	guard_free(&grid);
}

static void check_damaged(lade_engine *one, lade_engine *several, const lade_spec *spec,
                          const guard *src, size_t size, rng *r)
{
	guard a = guard_new(size, 1), b = guard_new(size, 1);
	lade_error why_a = {0}, why_b = {0};
	size_t got_a, got_b;
	lade_status of_a =
		lade_decode(one, spec, lade_host_cspan(src->data, src->size),
		            lade_host_span(a.data, size), &got_a, &why_a);
	lade_status of_b =
		lade_decode(several, spec, lade_host_cspan(src->data, src->size),
		            lade_host_span(b.data, size), &got_b, &why_b);
	if (of_a != of_b || got_a != got_b || why_a.offset != why_b.offset ||
	    strcmp(why_a.message, why_b.message) != 0)
		fail_msg("%s: %s \"%s\", several threads: %s \"%s\"", lade_spec_text(spec),
		         lade_status_name(of_a), why_a.message, lade_status_name(of_b),
		         why_b.message);
	if (of_a == LADE_OK)
		assert_memory_equal(a.data, b.data, got_a);
	if (of_a == LADE_OK && got_a == size)
		check_windows(several, spec, src, &a, r);
	guard_free(&a);
	guard_free(&b);
}

static void threads_tell_the_same(void **state)
{
	(void)state;
	rng r = {seed};
	lade_engine *one = engine_of(1, LADE_CPU_PLAIN);
	uint8_t *raw = malloc(SIZE_MOST);
	for (size_t i = 0; i < SPECS * CHUNKS; i++) {
		/* Every level that is there, in turn. */
		lade_cpu most = lade_cpu_detect(), cpu = (lade_cpu)(1 + i / SPECS % 4);
		lade_engine *several = engine_of(3, cpu < most ? cpu : most);
		lade_spec *spec = NULL;
		assert_int_equal(lade_spec_parse(NULL, specs[i % SPECS], &spec, NULL), LADE_OK);
		size_t size = 1 + rng_below(&r, rng_below(&r, 4) ? SIZE_MOST : 40000), got;
		fill(raw, size, &r);
		size_t cap = lade_spec_bound(spec, size);
		uint8_t *encoded = malloc(cap), *bad = malloc(cap);
		assert_int_equal(lade_encode(several, spec, lade_host_cspan(raw, size),
		                             lade_host_span(encoded, cap), &got, NULL),
		                 LADE_OK);
		for (int k = 0; k <= DAMAGES; k++) {
			memcpy(bad, encoded, got);
			size_t left = k ? damage(bad, got, &r) : got;
			guard src = guard_copy(bad, left, 1);
			check_damaged(one, several, spec, &src, size, &r);
			guard_free(&src);
		}
		free(encoded);
		free(bad);
		lade_spec_unref(spec);
		lade_engine_free(several);
	}
	free(raw);
	lade_engine_free(one);
}

int main(void)
{
	const char *given = getenv("LADE_SEED");
	seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
	printf("seed %llu (LADE_SEED repeats it)\n", (unsigned long long)seed);
	seed = seed * 0x9E3779B97F4A7C15u | 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_tell_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
