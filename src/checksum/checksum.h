/*
 * checksum.h: what the files of this folder share, and the checksum of one buffer for the layers
 * above.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CHECKSUM_CHECKSUM_H
#define LADE_CHECKSUM_CHECKSUM_H

#include "base/set.h"

#include <lade/checksum.h>

/* A checksum's stage has this more than its number as its id (docs/format/spec.md). */
#define LADE__CHECKSUM_ID 64

/* Like lade_checksum_of(), with no instruction set above 'cpu' (never AUTO). */
uint64_t lade__checksum(lade_checksum kind, lade_cpu cpu, const void *data, size_t size);

/* One of the twelve CRC presets, with no instruction set above 'cpu'. */
uint32_t lade__crc32(lade_checksum kind, lade_cpu cpu, const void *data, size_t size);

/* Like lade_crc32_any(), with no instruction set above 'cpu'. */
uint32_t lade__crc32_any(const lade_crc32_spec *spec, lade_cpu cpu, const void *data, size_t size);

/* HDF5's Fletcher-32 (fletcher32.c). */
uint32_t lade__fletcher32(lade_cpu cpu, const void *data, size_t size);

/*
 * The CRC register is kept in memory order: the byte that the next input byte is added to is the
 * lowest.  For reflected CRCs that is the usual register; for the others it is the usual one with
 * its bytes reversed.  So one slicing loop serves both.
 */

/*
 * Constants for folding (crc32_fold.c): x^(D+64) and x^D modulo the polynomial for distances D
 * of 2048, 512 and 128 bits, as 64-bit factors of a carry-less product, in the order in which
 * the halves of a 16-byte block meet them.
 */
typedef struct lade__crc32_fold {
	bool reflected;
	uint64_t k2048[2], k512[2], k128[2];
} lade__crc32_fold;

void lade__crc32_fold_init(lade__crc32_fold *fold, uint32_t poly, bool reflected);

/* lade__crc32_fold_run() wants at least this many bytes to be of use. */
#define LADE__CRC32_FOLD_MIN 64

/*
 * Replaces the first bytes of 'data' by 16 that have the same CRC when the register starts at 0:
 * returns how many it took (a multiple of 16, more than size - 16; 0 where 'cpu' cannot fold or
 * size < LADE__CRC32_FOLD_MIN).  'reg' is the register before 'data'.
 */
size_t lade__crc32_fold_run(const lade__crc32_fold *fold, lade_cpu cpu, uint32_t reg,
                            const uint8_t *data, size_t size, uint8_t rest[16]);

/* The CRC32C register after 'size' bytes by the crc32 instruction; from LADE_CPU_SSE42 on. */
uint32_t lade__crc32c_sse42(uint32_t reg, const uint8_t *data, size_t size);

/* XXH3 from LADE_CPU_AVX2 on. */
uint64_t lade__xxh3_avx2(const void *data, size_t size);

/* The polynomial's bits in reverse order. */
static inline uint32_t lade__reverse_bits(uint32_t v)
{
	v = ((v >> 1) & 0x55555555U) | ((v & 0x55555555U) << 1);
	v = ((v >> 2) & 0x33333333U) | ((v & 0x33333333U) << 2);
	v = ((v >> 4) & 0x0F0F0F0FU) | ((v & 0x0F0F0F0FU) << 4);
	return __builtin_bswap32(v);
}

/* The room's own, for the engine. */
extern const lade__set lade__checksums;

#endif
