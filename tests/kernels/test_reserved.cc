/*
 * test_reserved.cc: the decoding kernels of ANS, bitcomp and cascaded, in all shapes, refuse what
 * version 1 of these formats reserves (tests/golden/reserved.txt), and take the stored chunks that
 * the list changes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernel_test.h"
#include "reserved_kit.h"

#include "codec/ans/kernels/ans_decode.cu"
#include "codec/bitcomp/kernels/bitcomp_decode.cu"
#include "codec/cascaded/kernels/cascaded_decode.cu"

static uint8_t room[RESERVED_CAP];

/* The kernel's status of a chunk, decoded by itself. */
template <class F> static uint32_t verdict(const reserved &r, emu_config config, F kernel)
{
	const uint8_t *src = r.chunk;
	uint8_t *dst = room;
	uint64_t size = r.size, cap = sizeof room, got = 77;
	uint32_t status = 77;
	lade_gpu_batch batch = {&src, &size, &dst, &cap, &got, &status, nullptr, nullptr, 1};
	emu_result ran = emu_launch(config, [&] { kernel(batch); });
	if (!ran.ok)
		print_error("%s: %s\n", r.file, ran.message);
	assert_true(ran.ok);
	assert_int_equal(got == 0, status != LADE_GPU_OK);
	return status;
}

enum { SHAPES = 5 };

static uint32_t ans(const reserved &r, unsigned shape)
{
	bool wide = shape > 2;
	uint32_t parts = 1 + shape % 3;
	uint32_t shared = wide ? LADE_ANS_DECODE_WIDE : LADE_ANS_DECODE_SHARED;
	lade_ans_parts done = {};
	emu_config config = {.kernel = "ans", .grid = parts, .block = wide ? 512u : 256u,
	                     .shared = shared, .seed = shape, .resident = 2};
	return verdict(r, config, [&](lade_gpu_batch batch) {
		if (wide)
			lade_ans_decode_wide(batch, &done, parts, shared);
		else
			lade_ans_decode(batch, &done, parts, shared);
	});
}

static uint32_t bitcomp(const reserved &r, unsigned shape)
{
	uint32_t state = 0;
	emu_config config = {.kernel = "bitcomp", .grid = 1, .block = 32 * LADE_BITCOMP_WARPS,
	                     .shared = LADE_BITCOMP_DECODE_SHARED, .seed = shape, .resident = 2};
	if (shape == 4) {
		config.block = 2 * 32 * LADE_BITCOMP_WARPS;
		config.shared = LADE_BITCOMP_FEW_SHARED;
		return verdict(r, config, lade_bitcomp_decode_few);
	}
	return verdict(r, config, [&](lade_gpu_batch batch) {
		lade_bitcomp_decode(batch, shape, 1, shape == 3, &state);
	});
}

static uint32_t cascaded(const reserved &r, unsigned shape)
{
	uint32_t parts = 1 + shape % 3, joined = 0;
	emu_config config = {.kernel = "cascaded", .grid = parts, .block = 32 * LADE_CAS_WARPS,
	                     .shared = LADE_CAS_WARPS * LADE_CAS_DECODE_SHARED, .seed = shape,
	                     .resident = 2};
	return verdict(r, config, [&](lade_gpu_batch batch) {
		lade_cascaded_decode(batch, parts, &joined, 3);
	});
}

static void what_is_reserved(void **)
{
	static const struct {
		const char *name;
		uint32_t (*decode)(const reserved &r, unsigned shape);
	} codecs[] = {{"ans", ans}, {"bitcomp", bitcomp}, {"cascaded", cascaded}};
	static reserved r;
	unsigned lines = 0;
	FILE *list = reserved_open("reserved.txt");
	while (reserved_next(list, &r)) {
		for (const auto &c : codecs) {
			if (!reserved_is(&r, c.name))
				continue;
			for (unsigned shape = 0; shape < SHAPES; shape++)
				assert_int_equal(c.decode(r, shape), LADE_GPU_OK);
			r.chunk[r.at] ^= (uint8_t)r.bits;
			for (unsigned shape = 0; shape < SHAPES; shape++) {
				uint32_t status = c.decode(r, shape);
				if (status != LADE_GPU_CORRUPT)
					fail_msg("%s, %s, shape %u: status %u", r.file, r.what,
					         shape, status);
			}
			lines++;
		}
	}
	fclose(list);
	assert_true(lines >= 72);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_reserved)};
	return cmocka_run_group_tests_name("kernel_reserved", tests, nullptr, nullptr);
}
