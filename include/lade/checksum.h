/*
 * checksum.h: checksums over batches of buffers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_CHECKSUM_H
#define LADE_CHECKSUM_H

#include <lade/codec.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The checksums: name, number (stored in files), stage name, bytes when stored (little-endian).
 * The CRCs are the presets of the Rocksoft model named alike; Fletcher-32 is HDF5's (16-bit
 * big-endian words).  XXH64 and XXH3 have seed 0.
 */
#define LADE_CHECKSUM_LIST(X)                                   \
	X(LADE_CRC32, 1, "crc32", 4)                            \
	X(LADE_CRC32C, 2, "crc32c", 4)                          \
	X(LADE_CRC32D, 3, "crc32d", 4)                          \
	X(LADE_CRC32Q, 4, "crc32q", 4)                          \
	X(LADE_CRC32_MEF, 5, "crc32-mef", 4)                    \
	X(LADE_CRC32_XFER, 6, "crc32-xfer", 4)                  \
	X(LADE_CRC32_BZIP2, 7, "crc32-bzip2", 4)                \
	X(LADE_CRC32_POSIX, 8, "crc32-posix", 4)                \
	X(LADE_CRC32_JAMCRC, 9, "crc32-jamcrc", 4)              \
	X(LADE_CRC32_MPEG2, 10, "crc32-mpeg2", 4)               \
	X(LADE_CRC32_AUTOSAR, 11, "crc32-autosar", 4)           \
	X(LADE_CRC32_CDROM, 12, "crc32-cdrom", 4)               \
	X(LADE_ADLER32, 13, "adler32", 4)                       \
	X(LADE_XXH64, 14, "xxh64", 8)                           \
	X(LADE_XXH3, 15, "xxh3", 8)                             \
	X(LADE_FLETCHER32, 16, "fletcher32", 4)

typedef enum lade_checksum {
	LADE_CHECKSUM_NONE = 0,
#define LADE_X(name, value, text, size) name = value,
	LADE_CHECKSUM_LIST(LADE_X)
#undef LADE_X
} lade_checksum;

/* "crc32c"; "?" for a number that is none.  And back, in any case; LADE_CHECKSUM_NONE: unknown. */
LADE_API const char *lade_checksum_name(lade_checksum kind);
LADE_API lade_checksum lade_checksum_find(const char *name);

/* Bytes when stored: 4 or 8; 0 for a number that is none. */
LADE_API size_t lade_checksum_size(lade_checksum kind);

/*
 * The checksums of 'count' spans, into 'sums'; a 32-bit one stands in the low half.
 * Those of spans on the host are spread over the engine's threads; those of spans on a device are
 * made there, behind the work of its default stream, and not copied to the host, but for XXH3,
 * Fletcher-32, and spans above 1 GiB, which are.  All spans are checked before any is read.
 * Fails: LADE_E_ARG (unknown kind, NULL data with a size), LADE_E_NO_DEVICE, LADE_E_DEVICE,
 *        LADE_E_NOMEM, LADE_E_UNSUPPORTED (the default stream is being captured)
 */
LADE_API lade_status lade_checksums(lade_engine *engine, lade_checksum kind,
                                    const lade_cspan *spans, size_t count, uint64_t *sums,
                                    lade_error *err);

/* One buffer in host memory; needs no engine.  0 for an unknown kind. */
LADE_API uint64_t lade_checksum_of(lade_checksum kind, const void *data, size_t size);

/* A 32-bit CRC by its parameters (the Rocksoft model; 'poly' in normal bit order). */
typedef struct lade_crc32_spec {
	uint32_t poly, init;
	bool reflect_in, reflect_out;
	uint32_t xor_out;
} lade_crc32_spec;

/* The parameters of one of the twelve presets.  Fails: LADE_E_ARG when 'kind' is no CRC. */
LADE_API lade_status lade_crc32_spec_of(lade_checksum kind, lade_crc32_spec *out,
                                        lade_error *err);

/* Any 32-bit CRC of one buffer in host memory. */
LADE_API uint32_t lade_crc32_any(const lade_crc32_spec *spec, const void *data, size_t size);

#ifdef __cplusplus
}
#endif

#endif
