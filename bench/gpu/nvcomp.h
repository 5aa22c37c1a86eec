/*
 * nvcomp.h: nvCOMP's batched calls, of a library that is opened at run time if it is there.
 *
 * It is the library of the PyPI package nvidia-libnvcomp-cu13, version 6: `pip install
 * nvidia-libnvcomp-cu13`.  Names, arguments and their order are those of the headers in that
 * package; none of it is needed to build.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BENCH_NVCOMP_H
#define LADE_BENCH_NVCOMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Options of a codec: in version 6 each codec's are a struct of 64 bytes that is passed by value,
 * which the calling conventions of x86-64 and AArch64 pass as memory, whatever its fields are.
 * All 0 is the default of LZ4 and Snappy.
 */
typedef struct nvcomp_options {
	int32_t word[16];
} nvcomp_options;

typedef struct nvcomp_codec {
	int (*compress_temp)(size_t count, size_t largest, nvcomp_options options,
	                     size_t *temp_size, size_t total, void *stream);
	int (*compress_bound)(size_t largest, nvcomp_options options, size_t *bound);
	int (*compress)(const void *const *src, const size_t *src_size, size_t largest,
	                size_t count, void *temp, size_t temp_size, void *const *dst,
	                size_t *dst_size, nvcomp_options options, int *statuses, void *stream);
	int (*decompress_temp)(size_t count, size_t largest, nvcomp_options options,
	                       size_t *temp_size, size_t total, void *stream);
	int (*decompress)(const void *const *src, const size_t *src_size, const size_t *dst_cap,
	                  size_t *dst_size, size_t count, void *temp, size_t temp_size,
	                  void *const *dst, nvcomp_options options, int *statuses, void *stream);
} nvcomp_codec;

typedef struct nvcomp_library {
	void *handle;     /* NULL: there is none, and 'why' says why */
	uint32_t version; /* 6000 is 6.0.0 */
	char why[256];
} nvcomp_library;

/*
 * Opens the library: 'path' is its file or the package's folder; NULL: what the environment's
 * LADE_NVCOMP names, else what lies beside this program, else what the system's loader finds.
 */
nvcomp_library nvcomp_open(const char *path);

/* The calls of a codec by nvCOMP's name of it, "LZ4"; false when one of them is not there. */
bool nvcomp_find(const nvcomp_library *library, const char *name, nvcomp_codec *codec);

#endif
