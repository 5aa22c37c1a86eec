/*
 * test_bitcomp_lossy.c: bitcomp's floats to integers and back, at every instruction set, against
 * docs/format/bitcomp.md value by value (bitcomp_kit.h): all halves with all steps, other floats
 * where something happens, all rounding modes of the caller, ends of buffers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <fenv.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bitcomp_kit.h"
#include "codec/bitcomp/bitcomp.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

static const uint64_t seed = 0x10551;
enum { MOST = 65536 };

static unsigned mantissa(unsigned log)
{
	return log == 1 ? 10 : log == 2 ? 23 : 52;
}

static int bias(unsigned log)
{
	return log == 1 ? 15 : log == 2 ? 127 : 1023;
}

static int least_step(unsigned log)
{
	return 2 - bias(log) - (int)mantissa(log);
}

static const lade__bitcomp_kernels *kernels(unsigned i)
{
	const lade__bitcomp_kernels *all[] = {
		&lade__bitcomp_plain,
#if defined(__x86_64__)
		&lade__bitcomp_avx2,
		&lade__bitcomp_avx512,
#endif
	};
	return i < sizeof all / sizeof *all && all[i]->cpu <= lade_cpu_detect() ? all[i] : NULL;
}

static void same(unsigned log, unsigned quant, int step, const lade__bitcomp_kernels *k,
                 const char *what, const uint8_t *in, const uint8_t *want, const uint8_t *got,
                 size_t count)
{
	size_t size = (size_t)1 << log;
	for (size_t i = 0; memcmp(want, got, count * size) && i < count; i++)
		if (memcmp(want + i * size, got + i * size, size))
			fail_msg("%s, %s, %zu bytes, quantisation %u, step 2^%d: of %llx %llx is "
			         "made, want %llx",
			         lade_cpu_name(k->cpu), what, size, quant, step,
			         (unsigned long long)kit_get(in + i * size, size),
			         (unsigned long long)kit_get(got + i * size, size),
			         (unsigned long long)kit_get(want + i * size, size));
}

/* Both ways of 'count' elements, as floats and as integers, at all levels. */
static void both_ways(unsigned log, unsigned quant, int step, const uint8_t *data, size_t count)
{
	static uint8_t codes[8 * MOST], values[8 * MOST], got[8 * MOST];
	size_t size = (size_t)1 << log;
	for (size_t i = 0; i < count; i++) {
		uint64_t v = kit_get(data + i * size, size);
		kit_put(codes + i * size, kit_code(quant, 8u << log, step, v), size);
		kit_put(values + i * size, kit_float(quant, 8u << log, step, v), size);
	}
	for (unsigned level = 0; kernels(level); level++) {
		const lade__bitcomp_kernels *k = kernels(level);
		k->quantise[log](quant, step, data, got, count);
		same(log, quant, step, k, "quantised", data, codes, got, count);
		memcpy(got, data, count * size);
		k->restore[log](quant, step, got, count);
		same(log, quant, step, k, "restored", data, values, got, count);
	}
}

static void test_all_halves(void **state)
{
	(void)state;
	static uint8_t data[2 * MOST];
	for (size_t i = 0; i < MOST; i++)
		kit_put(data + 2 * i, i, 2);
	for (unsigned quant = 1; quant <= 2; quant++)
		for (int step = least_step(1); step <= bias(1); step++)
			both_ways(1, quant, step, data, MOST);
}

/* A float, or an integer, where something happens: near the step, the limits, the types' ends. */
static uint64_t any_value(unsigned log, int step, rng *r)
{
	unsigned m = mantissa(log);
	int b = bias(log), e = step + b - 3 + (int)rng_below(r, m + 8);
	uint64_t x = rng_next(r), fraction = x >> 11 & kit_low(m), sign = x & 1;
	switch (rng_below(r, 10)) {
	case 0: /* any bits */
		return rng_next(r) & kit_low(8u << log);
	case 1: /* any float */
		e = (int)rng_below(r, (uint64_t)(2 * b + 2));
		break;
	case 2: /* denormals */
		e = 0;
		fraction >>= rng_below(r, m + 1);
		break;
	case 3: /* infinities, NaN, the largest numbers, 0 */
		e = rng_below(r, 3) ? 2 * b + (int)rng_below(r, 2) : 0;
		fraction = rng_below(r, 2) ? 0 : fraction;
		break;
	case 4: /* integers about 2^m, and small ones */
		x = (rng_below(r, 2) ? (uint64_t)1 << m : 0) + rng_below(r, 5) - 2;
		return (sign ? 0 - x : x) & kit_low(8u << log);
	case 5: /* halves of the step, exactly, or almost */
		e = step + b + (int)rng_below(r, m);
		fraction &= ~kit_low(m - (unsigned)(e - step - b)) << 1 | 1;
		fraction |= (uint64_t)1 << (m - 1 - (unsigned)(e - step - b));
		fraction += rng_below(r, 3) - 1;
		fraction &= kit_low(m);
		break;
	case 6: /* powers of two, and what is next to them */
		fraction = rng_below(r, 2) ? 0 : kit_low(m);
		break;
	default:
		break;
	}
	e = e < 0 ? 0 : e > 2 * b + 1 ? 2 * b + 1 : e;
	return fraction | (uint64_t)e << m | sign << ((8u << log) - 1);
}

static void test_floats(void **state)
{
	(void)state;
	enum { COUNT = 3000 };
	static uint8_t data[8 * COUNT];
	rng r = {seed};
	printf("seed %llx\n", (unsigned long long)seed);
	for (unsigned log = 2; log <= 3; log++)
		for (int step = least_step(log); step <= bias(log); step++) {
			size_t size = (size_t)1 << log, count = log == 2 ? COUNT : COUNT / 5;
			for (size_t i = 0; i < count; i++)
				kit_put(data + i * size, any_value(log, step, &r), size);
			both_ways(log, 1 + (unsigned)rng_below(&r, 2), step, data, count);
		}
}

/* Nothing depends on what the caller has set up for floats. */
static void test_any_rounding(void **state)
{
	(void)state;
	enum { COUNT = 2000 };
	static const int modes[] = {
#ifdef FE_UPWARD
		FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO,
#endif
		FE_TONEAREST};
	static uint8_t data[8 * COUNT];
	rng r = {seed + 1};
	for (unsigned i = 0; i < 300; i++) {
		unsigned log = 1 + i % 3;
		int steps = bias(log) - least_step(log) + 1;
		int step = least_step(log) + (int)rng_below(&r, (uint64_t)(i % 2 ? steps : 40));
		for (size_t k = 0; k < COUNT; k++)
			kit_put(data + (k << log), any_value(log, step, &r), (size_t)1 << log);
		fesetround(modes[i / 3 % (sizeof modes / sizeof *modes)]);
#if defined(__x86_64__)
		/* Denormals are read and made as 0. */
		unsigned was = _mm_getcsr();
		_mm_setcsr(i & 1 ? was | 0x8040 : was);
#endif
		both_ways(log, 1 + i / 4 % 2, step, data, COUNT);
#if defined(__x86_64__)
		_mm_setcsr(was);
#endif
		fesetround(FE_TONEAREST);
	}
}

/* Of any number of elements none behind these is read or written. */
static void test_ends(void **state)
{
	(void)state;
	rng r = {seed + 2};
	for (unsigned level = 0; kernels(level); level++)
		for (unsigned log = 1; log <= 3; log++)
			for (size_t count = 0; count < 80; count++) {
				size_t size = (size_t)1 << log;
				guard in = guard_new(count << log, 1);
				guard out = guard_new(count << log, 1);
				for (size_t i = 0; i < count; i++)
					kit_put(in.data + i * size, any_value(log, 0, &r), size);
				kernels(level)->quantise[log](1, 0, in.data, out.data, count);
				for (size_t i = 0; i < count; i++)
					assert_int_equal(
						kit_get(out.data + i * size, size),
						kit_code(1, 8u << log, 0,
				                         kit_get(in.data + i * size, size)));
				memcpy(in.data, out.data, count << log);
				kernels(level)->restore[log](1, 0, out.data, count);
				for (size_t i = 0; i < count; i++)
					assert_int_equal(
						kit_get(out.data + i * size, size),
						kit_float(1, 8u << log, 0,
				                          kit_get(in.data + i * size, size)));
				guard_free(&in);
				guard_free(&out);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_halves),
		cmocka_unit_test(test_floats),
		cmocka_unit_test(test_any_rounding),
		cmocka_unit_test(test_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
