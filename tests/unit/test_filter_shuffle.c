/*
 * test_filter_shuffle.c: byte and bit shuffle against a reference written bit by bit, for every
 * element size and CPU level, between guard pages.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "filter/shuffle.h"
#include "guard.h"

typedef void whole_fn(size_t elem, size_t size, const void *src, void *dst, lade_cpu cpu);
typedef void tile_fn(size_t elem, const lade_elements *tile, lade_cpu cpu);

struct pair {
	const char *name;
	void (*reference)(size_t elem, size_t size, const uint8_t *src, uint8_t *dst);
	whole_fn *forth, *back;
	tile_fn *forth_tile, *back_tile;
};

static void reference_bytes(size_t elem, size_t size, const uint8_t *src, uint8_t *dst)
{
	size_t count = size / elem;
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < elem; j++)
			dst[j * count + i] = src[i * elem + j];
	for (size_t i = count * elem; i < size; i++)
		dst[i] = src[i];
}

static void reference_bits(size_t elem, size_t size, const uint8_t *src, uint8_t *dst)
{
	size_t count = size / elem / 8 * 8, row = count / 8;
	for (size_t i = 0; i < size; i++)
		dst[i] = i < count * elem ? 0 : src[i];
	for (size_t i = 0; i < count; i++)
		for (size_t b = 0; b < 8 * elem; b++) {
			int bit = src[i * elem + b / 8] >> (b % 8) & 1;
			dst[b * row + i / 8] = (uint8_t)(dst[b * row + i / 8] | bit << (i % 8));
		}
}

static uint8_t *random_bytes(rng *r, size_t size)
{
	uint8_t *p = malloc(size + 1);
	for (size_t i = 0; i < size; i++)
		p[i] = (uint8_t)(rng_next(r) >> 40);
	return p;
}

static void bit_tile(size_t elem, const lade_elements *tile, lade_cpu cpu)
{
	lade__bit_form form = {.elem = elem};
	lade__bitshuffle_tile(&form, tile, cpu);
}

static void bit_untile(size_t elem, const lade_elements *tile, lade_cpu cpu)
{
	lade__bit_form form = {.elem = elem};
	lade__bitunshuffle_tile(&form, tile, cpu);
}

static const struct pair pairs[2] = {
	{"shuffle", reference_bytes, lade__shuffle, lade__unshuffle, lade__shuffle_tile,
	 lade__unshuffle_tile},
	{"bitshuffle", reference_bits, lade__bitshuffle, lade__bitunshuffle,
	 bit_tile, bit_untile},
};

/* Planes that are each by themselves. */
static void check_join(const guard *planes, guard *dst, size_t elem, size_t size,
                       const uint8_t *plain, int level)
{
	const lade__shuffle_kernels *kernels = lade__shuffle_kernels_of((lade_cpu)level);
	const uint8_t *each[16];
	size_t count = size / elem;
	for (size_t j = 0; j < elem && elem <= 16; j++)
		each[j] = planes->data + j * count;
	for (int past = 0; past < 2 && elem <= 16 && count; past++) {
		memset(dst->data, 0xEE, size);
		kernels->join_planes(each, dst->data, count, elem, past);
		if (memcmp(dst->data, plain, count * elem))
			fail_msg("join_planes(%zu), %zu bytes, level %d", elem, size, level);
	}
}

/* One size, all levels, guard pages behind and before, which also gives odd addresses. */
static void check(const struct pair *pair, size_t elem, size_t size, const uint8_t *plain,
                  const uint8_t *want)
{
	for (int at_end = 0; at_end < 2; at_end++) {
		guard src = guard_copy(plain, size, at_end),
		      shuffled = guard_copy(want, size, at_end);
		guard dst = guard_new(size, at_end);
		for (int level = LADE_CPU_PLAIN; level <= (int)lade_cpu_detect(); level++) {
			pair->forth(elem, size, src.data, dst.data, (lade_cpu)level);
			if (size && memcmp(dst.data, want, size))
				fail_msg("%s(%zu), %zu bytes, level %d", pair->name, elem, size,
				         level);
			if (size)
				memset(dst.data, 0xEE, size);
			pair->back(elem, size, shuffled.data, dst.data, (lade_cpu)level);
			if (size && memcmp(dst.data, plain, size))
				fail_msg("un%s(%zu), %zu bytes, level %d", pair->name, elem, size,
				         level);
			if (pair == &pairs[0])
				check_join(&shuffled, &dst, elem, size, plain, level);
		}
		guard_free(&src);
		guard_free(&shuffled);
		guard_free(&dst);
	}
}

static void check_sizes(size_t elem, const size_t *counts, size_t n, rng *r)
{
	for (size_t k = 0; k < n; k++) {
		size_t size = counts[k] * elem + (elem > 1 ? rng_below(r, elem) : 0);
		uint8_t *plain = random_bytes(r, size), *want = malloc(size + 1);
		for (size_t p = 0; p < 2; p++) {
			pairs[p].reference(elem, size, plain, want);
			check(&pairs[p], elem, size, plain, want);
		}
		free(plain);
		free(want);
	}
}

static void every_element_size(void **state)
{
	(void)state;
	rng r = {20260101};
	static const size_t counts[] = {0, 1, 7, 8, 15, 16, 17, 33, 64, 71, 130, 519};
	for (size_t elem = 1; elem <= 255; elem++)
		check_sizes(elem, counts, sizeof counts / sizeof *counts, &r);
}

static void every_short_length(void **state)
{
	(void)state;
	rng r = {20260102};
	static const size_t elems[] = {1, 2, 3, 4, 6, 8, 12, 16};
	for (size_t e = 0; e < sizeof elems / sizeof *elems; e++)
		for (size_t count = 0; count <= 200; count++)
			check_sizes(elems[e], &count, 1, &r);
}

static void odd_large_lengths(void **state)
{
	(void)state;
	rng r = {20260103};
	static const size_t elems[] = {1, 2, 3, 4, 8, 16, 31, 255};
	static const size_t counts[] = {4095, 8192, 20011, 65536 + 77};
	for (size_t e = 0; e < sizeof elems / sizeof *elems; e++)
		check_sizes(elems[e], counts, elems[e] > 8 ? 2 : 4, &r);
}

/* Above 32 MiB the output is written past the caches. */
static void past_the_caches(void **state)
{
	(void)state;
	rng r = {20260104};
	size_t size = ((size_t)33 << 20) + 8 * 8 + 5;
	uint64_t *plain = malloc(size + 72), *there = malloc(size + 72), *back = malloc(size + 72);
	for (size_t i = 0; i < (size + 72) / 8; i++)
		plain[i] = rng_next(&r);
	static const size_t elems[] = {4, 8, 5};
	for (size_t e = 0; e < 3; e++) {
		for (size_t p = 0; p < 2; p++) {
			uint8_t *to = (uint8_t *)there + 3, *to_back = (uint8_t *)back + 1 + 8 * e;
			memset(there, 0xA5, size + 72);
			memset(back, 0xA5, size + 72);
			pairs[p].forth(elems[e], size, plain, to, lade_cpu_detect());
			pairs[p].back(elems[e], size, to, to_back, LADE_CPU_PLAIN);
			assert_memory_equal(plain, to_back, size);
			assert_int_equal(to_back[size], 0xA5);
			assert_int_equal(to[size], 0xA5);
			assert_int_equal(to_back[-1], 0xA5);
			memset(back, 0xA5, size + 72);
			pairs[p].back(elems[e], size, to, to_back, lade_cpu_detect());
			assert_memory_equal(plain, to_back, size);
			assert_int_equal(to_back[size], 0xA5);
			pairs[p].forth(elems[e], size, plain, back, LADE_CPU_PLAIN);
			assert_memory_equal(back, to, size);
		}
	}
	free(plain);
	free(there);
	free(back);
}

/* Tiles that begin anywhere give what one big tile gives. */
static void tiles_at_random_points(void **state)
{
	(void)state;
	uint64_t seed = (uint64_t)getpid() * 2654435761u + 1;
	printf("seed %llu\n", (unsigned long long)seed);
	rng r = {seed};
	for (unsigned round = 0; round < 400; round++) {
		size_t elem =
			rng_below(&r, 4) ? (size_t)1 << rng_below(&r, 5) : 1 + rng_below(&r, 255);
		size_t size = rng_below(&r, 6000), count = size / elem;
		lade_cpu cpu = (lade_cpu)(1 + rng_below(&r, lade_cpu_detect()));
		uint8_t *plain = random_bytes(&r, size), *want = malloc(size + 1);
		for (size_t p = 0; p < 2; p++) {
			pairs[p].reference(elem, size, plain, want);
			guard forth = guard_new(size, 1), back = guard_new(size, 1);
			for (size_t off = 0, n; off < count || off == 0; off += n) {
				n = off == count ? 0 : 1 + rng_below(&r, count - off);
				lade_elements to = {
					plain + off * elem, forth.data, off, n, size, NULL};
				lade_elements from = {
					want, back.data + off * elem, off, n, size, NULL};
				pairs[p].forth_tile(elem, &to, cpu);
				pairs[p].back_tile(elem, &from, cpu);
				if (!n)
					break;
			}
			if (size && memcmp(forth.data, want, size))
				fail_msg("%s(%zu), %zu bytes, level %d", pairs[p].name, elem, size,
				         cpu);
			if (size && memcmp(back.data, plain, size))
				fail_msg("un%s(%zu), %zu bytes, level %d", pairs[p].name, elem,
				         size, cpu);
			guard_free(&forth);
			guard_free(&back);
		}
		free(plain);
		free(want);
	}
}

/* ---- forms of the bit shuffle --------------------------------------------------------------- */

static void reference_form(const lade__bit_form *form, size_t size, const uint8_t *src,
                           uint8_t *dst)
{
	size_t elem = form->elem, block = form->block ? form->block : size ? size : 1;
	for (size_t at = 0, n; at < size; at += n) {
		n = size - at < block ? size - at : block;
		reference_bits(elem, n, src + at, dst + at);
		size_t row = n / elem / 8;
		if (!form->msb || !row)
			continue;
		for (size_t low = 0, high = 8 * elem - 1; low < high; low++, high--)
			for (size_t i = 0; i < row; i++) {
				uint8_t *a = dst + at + low * row + i;
				uint8_t *b = dst + at + high * row + i, byte = *a;
				*a = *b;
				*b = byte;
			}
	}
}

/* All at once, and in tiles that begin anywhere. */
static void check_form(const lade__bit_form *form, size_t size, lade_cpu cpu, rng *r)
{
	size_t elem = form->elem, count = size / elem;
	uint8_t *plain = random_bytes(r, size), *want = malloc(size + 1);
	reference_form(form, size, plain, want);
	for (int tiled = 0; tiled < 2; tiled++) {
		int at_end = (int)rng_below(r, 2);
		guard src = guard_copy(plain, size, at_end), rows = guard_copy(want, size, at_end);
		guard forth = guard_new(size, at_end), back = guard_new(size, at_end);
		size_t off = 0, n;
		do {
			n = tiled && off < count ? 1 + rng_below(r, count - off) : count - off;
			lade_elements to = {src.data + off * elem, forth.data, off, n, size, NULL};
			lade_elements from = {
				rows.data, back.data + off * elem, off, n, size, NULL};
			lade__bitshuffle_tile(form, &to, cpu);
			lade__bitunshuffle_tile(form, &from, cpu);
			off += n;
		} while (off < count);
		if (size && (memcmp(forth.data, want, size) || memcmp(back.data, plain, size)))
			fail_msg("bitshuffle(%zu, %s, block=%zu), %zu bytes, level %d", elem,
			         form->msb ? "msb" : "lsb", form->block, size, cpu);
		/* A tile of nothing at the end brings the last bytes. */
		if (elem > 1 && size % elem && size < elem * 8) {
			memset(back.data, 0xEE, size);
			lade_elements end = {
				rows.data, back.data + count * elem, count, 0, size, NULL};
			lade__bitunshuffle_tile(form, &end, cpu);
			assert_memory_equal(back.data + count * elem, plain + count * elem,
			                    size % elem);
		}
		guard_free(&src);
		guard_free(&rows);
		guard_free(&forth);
		guard_free(&back);
	}
	free(plain);
	free(want);
}

static void forms(void **state)
{
	(void)state;
	uint64_t seed = (uint64_t)getpid() * 2654435761u + 2;
	printf("seed %llu\n", (unsigned long long)seed);
	rng r = {seed};
	for (unsigned round = 0; round < 1500; round++) {
		size_t elem =
			rng_below(&r, 4) ? (size_t)1 << rng_below(&r, 5) : 1 + rng_below(&r, 255);
		lade__bit_form form = {.elem = elem, .msb = rng_below(&r, 2) != 0};
		static const size_t groups[] = {0, 1, 2, 3, 16, 37, 256};
		form.block = 8 * elem * groups[rng_below(&r, 7)];
		if (form.block && rng_below(&r, 2))
			form.block = (8192 + 8 * elem - 1) / (8 * elem) * (8 * elem);
		size_t size = rng_below(&r, 3) ? rng_below(&r, 30000) : rng_below(&r, 20 * elem);
		if (form.block && !rng_below(&r, 3))
			size = size / form.block * form.block +
			       rng_below(&r, 2) * rng_below(&r, elem);
		check_form(&form, size, (lade_cpu)(1 + rng_below(&r, lade_cpu_detect())), &r);
	}
}

/* Above 32 MiB the output is written past the caches. */
static void highest_first_past_the_caches(void **state)
{
	(void)state;
	size_t size = ((size_t)33 << 20) + 8 * 8 + 5, row = size / 4 / 8;
	rng r = {20260106};
	uint8_t *plain = random_bytes(&r, size), *low = malloc(size), *high = malloc(size);
	lade__bit_form form = {.elem = 4, .msb = true};
	lade__bitshuffle(4, size, plain, low, lade_cpu_detect());
	lade_elements to = {plain, high, 0, size / 4, size, NULL};
	lade_elements from = {high, low, 0, size / 4, size, NULL};
	lade__bitshuffle_tile(&form, &to, lade_cpu_detect());
	for (size_t k = 0; k < 32; k++)
		assert_memory_equal(low + k * row, high + (31 - k) * row, row);
	assert_memory_equal(low + 32 * row, high + 32 * row, size - 32 * row);
	lade__bitunshuffle_tile(&form, &from, lade_cpu_detect());
	assert_memory_equal(low, plain, size);
	free(plain);
	free(low);
	free(high);
}

/* The kernels of AVX-512 without GFNI, which no level reaches on a machine that has it. */
static void avx512_without_gfni(void **state)
{
	(void)state;
#if defined(__x86_64__)
	if (lade_cpu_detect() < LADE_CPU_AVX512)
		skip();
	rng r = {20260105};
	for (size_t count = 0; count < 3000; count += 8 + 8 * rng_below(&r, 20)) {
		uint8_t *plain = random_bytes(&r, count), *want = malloc(count + 1);
		reference_bits(1, count, plain, want);
		guard src = guard_copy(plain, count, 1), rows = guard_copy(want, count, 1);
		guard dst = guard_new(count, 1);
		lade__shuffle_avx512.to_rows(src.data, dst.data, count, count / 8);
		assert_true(!count || !memcmp(dst.data, want, count));
		lade__shuffle_avx512.from_rows(rows.data, dst.data, count,
		                               (ptrdiff_t)(count / 8));
		assert_true(!count || !memcmp(dst.data, plain, count));
		guard_free(&src);
		guard_free(&rows);
		guard_free(&dst);
		free(plain);
		free(want);
	}
#else
	skip();
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_element_size),
		cmocka_unit_test(every_short_length),
		cmocka_unit_test(odd_large_lengths),
		cmocka_unit_test(past_the_caches),
		cmocka_unit_test(tiles_at_random_points),
		cmocka_unit_test(forms),
		cmocka_unit_test(highest_first_past_the_caches),
		cmocka_unit_test(avx512_without_gfni),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
