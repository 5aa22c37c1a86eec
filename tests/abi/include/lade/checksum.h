/*
 * checksum.h: checksums of many buffers at once.
 *
 *	lade_cspan halves[2] = {lade_host_cspan(field, sizeof field / 2),
 *	                        lade_host_cspan(field + 8192, sizeof field / 2)};
 *	uint64_t sums[2];
 *	if (lade_checksums(engine, LADE_CRC32C, halves, 2, sums, &err))
 *		return fprintf(stderr, "%s\n", err.message);
 *	printf("%08x %08x\n", (unsigned)sums[0], (unsigned)sums[1]);
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
 * The checksums: number (stored in files), stage name, and bytes when stored, little-endian.  The
 * CRCs are presets of the Rocksoft model.  Fletcher-32 is HDF5's, over 16-bit big-endian words.
 * XXH64 and XXH3 use seed 0.  docs/format/checksums.md has the parameters.
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

/* The name, such as "crc32c"; "?" for an unknown number. */
LADE_API const char *lade_checksum_name(lade_checksum kind);
/* The checksum of that name, in any case; LADE_CHECKSUM_NONE if there is none. */
LADE_API lade_checksum lade_checksum_find(const char *name);

/* Bytes when stored: 4 or 8; 0 for an unknown number. */
LADE_API size_t lade_checksum_size(lade_checksum kind);

/*
 * Computes the checksums of 'count' spans and stores them in 'sums'.  A 32-bit checksum is in the
 * low half.  The call checks all spans before it reads any.
 *
 * The engine's threads share spans on the host.  For spans on a device, kernels run after the work
 * of its default stream, and nothing is copied to the host.  XXH3, Fletcher-32 and spans of 2 GiB
 * and more are the exceptions: the call copies such spans to the host.
 *
 * Fails:   LADE_E_ARG (unknown kind, NULL data with a size), LADE_E_NO_DEVICE, LADE_E_DEVICE,
 *          LADE_E_NOMEM, LADE_E_UNSUPPORTED (the default stream is being captured)
 * Threads: any number of callers per engine
 * Owns:    nothing; all spans stay the caller's
 */
LADE_API lade_status lade_checksums(lade_engine *engine, lade_checksum kind,
                                    const lade_cspan *spans, size_t count, uint64_t *sums,
                                    lade_error *err);

/* The checksum of one buffer in host memory, without an engine.  0 for an unknown kind. */
LADE_API uint64_t lade_checksum_of(lade_checksum kind, const void *data, size_t size);

/* The parameters of a 32-bit CRC (Rocksoft model; 'poly' in normal bit order). */
typedef struct lade_crc32_spec {
	uint32_t poly, init;
	bool reflect_in, reflect_out;
	uint32_t xor_out;
} lade_crc32_spec;

/* Stores the parameters of one of the twelve CRCs above.  Fails: LADE_E_ARG if 'kind' is no CRC. */
LADE_API lade_status lade_crc32_spec_of(lade_checksum kind, lade_crc32_spec *out,
                                        lade_error *err);

/* Any 32-bit CRC of one buffer in host memory.  Nothing can fail. */
LADE_API uint32_t lade_crc32_any(const lade_crc32_spec *spec, const void *data, size_t size);

/* Bob Jenkins' lookup3 of one buffer in host memory: HDF5's, with 'init' 0, and numcodecs'. */
LADE_API uint32_t lade_lookup3(const void *data, size_t size, uint32_t init);

#ifdef __cplusplus
}
#endif

#endif
