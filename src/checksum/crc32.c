/*
 * crc32.c: 32-bit CRCs of the Rocksoft model: the twelve presets, and any other.
 *
 * Long inputs are folded (crc32_fold.c); the rest, and machines that cannot fold, use tables
 * that take 16 bytes a step ("slicing").  The presets' tables are made once, at their first use.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/support.h"
#include "checksum/checksum.h"

#include <pthread.h>
#include <string.h>

#define SLICES 16

/* Tables follow one another: t[k * 256 + b] is what byte b adds when k more bytes follow it. */
#define SLICE 256

static const lade_crc32_spec presets[] = {
	[LADE_CRC32] = {0x04C11DB7, 0xFFFFFFFF, true, true, 0xFFFFFFFF},
	[LADE_CRC32C] = {0x1EDC6F41, 0xFFFFFFFF, true, true, 0xFFFFFFFF},
	[LADE_CRC32D] = {0xA833982B, 0xFFFFFFFF, true, true, 0xFFFFFFFF},
	[LADE_CRC32Q] = {0x814141AB, 0, false, false, 0},
	[LADE_CRC32_MEF] = {0x741B8CD7, 0xFFFFFFFF, true, true, 0},
	[LADE_CRC32_XFER] = {0x000000AF, 0, false, false, 0},
	[LADE_CRC32_BZIP2] = {0x04C11DB7, 0xFFFFFFFF, false, false, 0xFFFFFFFF},
	[LADE_CRC32_POSIX] = {0x04C11DB7, 0, false, false, 0xFFFFFFFF},
	[LADE_CRC32_JAMCRC] = {0x04C11DB7, 0xFFFFFFFF, true, true, 0},
	[LADE_CRC32_MPEG2] = {0x04C11DB7, 0xFFFFFFFF, false, false, 0},
	[LADE_CRC32_AUTOSAR] = {0xF4ACFB13, 0xFFFFFFFF, true, true, 0xFFFFFFFF},
	[LADE_CRC32_CDROM] = {0x8001801B, 0, true, true, 0},
};
#define PRESET_COUNT (sizeof presets / sizeof presets[0])

/* The different pairs (polynomial, reflected) among the presets. */
#define ENGINE_COUNT 9

typedef struct crc_engine {
	uint32_t poly;
	bool reflected;
	lade__crc32_fold fold;
	uint32_t tables[SLICES * SLICE];
} crc_engine;

static crc_engine engines[ENGINE_COUNT];
static uint8_t engine_of[PRESET_COUNT];
static pthread_once_t engines_once = PTHREAD_ONCE_INIT;

static void slices_init(uint32_t *t, uint32_t poly, bool reflected, size_t count)
{
	uint32_t mirrored = lade__reverse_bits(poly);
	for (uint32_t b = 0; b < 256; b++) {
		uint32_t r = reflected ? b : b << 24;
		for (int i = 0; i < 8; i++) {
			if (reflected)
				r = (r >> 1) ^ (r & 1 ? mirrored : 0);
			else
				r = (r << 1) ^ (r >> 31 ? poly : 0);
		}
		t[b] = reflected ? r : __builtin_bswap32(r);
	}
	for (size_t k = 1; k < count; k++) {
		for (size_t b = 0; b < 256; b++) {
			uint32_t r = t[(k - 1) * SLICE + b];
			t[k * SLICE + b] = (r >> 8) ^ t[r & 0xFF];
		}
	}
}

static void engines_init(void)
{
	size_t count = 0;
	for (size_t p = 1; p < PRESET_COUNT; p++) {
		size_t e = 0;
		while (e < count && !(engines[e].poly == presets[p].poly &&
		                      engines[e].reflected == presets[p].reflect_in))
			e++;
		engine_of[p] = (uint8_t)e;
		if (e < count)
			continue;
		engines[e].poly = presets[p].poly;
		engines[e].reflected = presets[p].reflect_in;
		lade__crc32_fold_init(&engines[e].fold, presets[p].poly, presets[p].reflect_in);
		slices_init(engines[e].tables, presets[p].poly, presets[p].reflect_in, SLICES);
		count++;
	}
}

/* The register after four bytes 'x' (the register already added) with 'after' more to come. */
static inline uint32_t step4(const uint32_t *t, uint32_t x, size_t after)
{
	return t[(after + 3) * SLICE + (x & 0xFF)] ^ t[(after + 2) * SLICE + ((x >> 8) & 0xFF)] ^
	       t[(after + 1) * SLICE + ((x >> 16) & 0xFF)] ^ t[after * SLICE + (x >> 24)];
}

static uint32_t update_sliced(const uint32_t *t, uint32_t reg, const uint8_t *p, size_t size)
{
	for (; size >= 16; p += 16, size -= 16)
		reg = step4(t, lade__le32(p) ^ reg, 12) ^ step4(t, lade__le32(p + 4), 8) ^
		      step4(t, lade__le32(p + 8), 4) ^ step4(t, lade__le32(p + 12), 0);
	for (; size >= 4; p += 4, size -= 4)
		reg = step4(t, lade__le32(p) ^ reg, 0);
	for (; size > 0; p++, size--)
		reg = (reg >> 8) ^ t[(reg ^ *p) & 0xFF];
	return reg;
}

/* The same by one table. */
static uint32_t update_bytewise(const uint32_t *t, uint32_t reg, const uint8_t *p, size_t size)
{
	for (; size > 0; p++, size--)
		reg = (reg >> 8) ^ t[(reg ^ *p) & 0xFF];
	return reg;
}

/* The register in memory order before the first byte, and the CRC from the last one. */
static uint32_t reg_first(const lade_crc32_spec *s)
{
	return s->reflect_in ? lade__reverse_bits(s->init) : __builtin_bswap32(s->init);
}

static uint32_t reg_last(const lade_crc32_spec *s, uint32_t reg)
{
	uint32_t crc = s->reflect_in ? reg : __builtin_bswap32(reg);
	if (s->reflect_in != s->reflect_out)
		crc = lade__reverse_bits(crc);
	return crc ^ s->xor_out;
}

static uint32_t run_engine(const crc_engine *e, const lade_crc32_spec *spec, lade_cpu cpu,
                           const uint8_t *p, size_t size)
{
	uint32_t reg = reg_first(spec);
	uint8_t rest[16];
	size_t done = lade__crc32_fold_run(&e->fold, cpu, reg, p, size, rest);
	if (done)
		reg = update_sliced(e->tables, 0, rest, sizeof rest);
	reg = update_sliced(e->tables, reg, p + done, size - done);
	return reg_last(spec, reg);
}

/* Below this many bytes the crc32 instruction alone is faster than folding (measured on Zen 4). */
#define CRC32C_FOLD_MIN 256

static uint32_t run_crc32c(const crc_engine *e, lade_cpu cpu, const uint8_t *p, size_t size)
{
	uint32_t reg = 0xFFFFFFFF;
	uint8_t rest[16];
	size_t done = 0;
	if (size >= CRC32C_FOLD_MIN)
		done = lade__crc32_fold_run(&e->fold, cpu, reg, p, size, rest);
	if (done)
		reg = lade__crc32c_sse42(0, rest, sizeof rest);
	return ~lade__crc32c_sse42(reg, p + done, size - done);
}

uint32_t lade__crc32(lade_checksum kind, lade_cpu cpu, const void *data, size_t size)
{
	pthread_once(&engines_once, engines_init);
	const crc_engine *e = &engines[engine_of[kind]];
	if (size == 0)
		return reg_last(&presets[kind], reg_first(&presets[kind]));
	if (kind == LADE_CRC32C && cpu >= LADE_CPU_SSE42)
		return run_crc32c(e, cpu, data, size);
	return run_engine(e, &presets[kind], cpu, data, size);
}

lade_status lade_crc32_spec_of(lade_checksum kind, lade_crc32_spec *out, lade_error *err)
{
	if (!out)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "out is NULL");
	if ((unsigned)kind < LADE_CRC32 || (unsigned)kind >= PRESET_COUNT)
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET, "checksum %d is not a 32-bit CRC",
		                 (int)kind);
	*out = presets[kind];
	return LADE_OK;
}

uint32_t lade__crc32_any(const lade_crc32_spec *spec, lade_cpu cpu, const void *data, size_t size)
{
	if (size == 0)
		return reg_last(spec, reg_first(spec));
	pthread_once(&engines_once, engines_init);
	for (size_t i = 0; i < ENGINE_COUNT; i++)
		if (engines[i].poly == spec->poly && engines[i].reflected == spec->reflect_in)
			return run_engine(&engines[i], spec, cpu, data, size);

	/*
	 * Tables of a foreign polynomial live on the stack: one slice (1 KiB) where folding takes
	 * the bulk, all sixteen (16 KiB) where it cannot and the input is long enough to pay.
	 */
	const uint8_t *p = data;
	uint32_t reg = reg_first(spec);
	if (cpu < LADE_CPU_SSE42 && size >= 8192) {
		uint32_t tables[SLICES * SLICE];
		slices_init(tables, spec->poly, spec->reflect_in, SLICES);
		return reg_last(spec, update_sliced(tables, reg, p, size));
	}
	uint32_t table[SLICE];
	slices_init(table, spec->poly, spec->reflect_in, 1);
	uint8_t rest[16];
	size_t done = 0;
	if (cpu >= LADE_CPU_SSE42 && size >= LADE__CRC32_FOLD_MIN) {
		lade__crc32_fold fold;
		lade__crc32_fold_init(&fold, spec->poly, spec->reflect_in);
		done = lade__crc32_fold_run(&fold, cpu, reg, p, size, rest);
	}
	if (done)
		reg = update_bytewise(table, 0, rest, sizeof rest);
	return reg_last(spec, update_bytewise(table, reg, p + done, size - done));
}

uint32_t lade_crc32_any(const lade_crc32_spec *spec, const void *data, size_t size)
{
	return lade__crc32_any(spec, lade_cpu_detect(), data, size);
}
