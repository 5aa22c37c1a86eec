/*
 * args.h: how the host gives arguments to kernels, and what it gives to all batched ones.  This
 * header and the other rooms' args.h are C11 and CUDA C++ at once: gpu.c and the .cu files include
 * the same structs and numbers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_GPU_ARGS_H
#define LADE_GPU_ARGS_H

#include "base/limits.h"

#include <lade/status.h>

/*
 * A member of a struct of arguments that is the address of device memory: a number for the host,
 * which cannot use it as a pointer, and 'type', a pointer, for the kernel.
 *
 * LADE_ARGS(struct, size) behind such a struct makes sure that both see the same 'size' bytes.
 */
#ifdef __cplusplus
#define LADE_ADDRESS(type) type
#define LADE_ARGS(name, size) \
	static_assert(sizeof(name) == (size) && sizeof(void *) == 8, "the host has " #size " bytes")
#else
#define LADE_ADDRESS(type) uint64_t
#define LADE_ARGS(name, size) \
	_Static_assert(sizeof(name) == (size), "kernels have " #size " bytes")
#endif

/* Statuses as kernels give and take them. */
#define LADE_GPU_OK ((uint32_t)LADE_OK)
#define LADE_GPU_ARG ((uint32_t)LADE_E_ARG)
#define LADE_GPU_NOSPACE ((uint32_t)LADE_E_NOSPACE)
#define LADE_GPU_CORRUPT ((uint32_t)LADE_E_CORRUPT)
#define LADE_GPU_TRUNCATED ((uint32_t)LADE_E_TRUNCATED)
#define LADE_GPU_CHECKSUM ((uint32_t)LADE_E_CHECKSUM)
#define LADE_GPU_LIMIT ((uint32_t)LADE_E_LIMIT)
#define LADE_GPU_RANGE ((uint32_t)LADE_E_RANGE)
#define LADE_GPU_DTYPE ((uint32_t)LADE_E_DTYPE)

/*
 * A batch in device memory: pointers and sizes of 'count' chunks.  'dst_size' and 'status' may be
 * NULL.  'before', if not NULL, has statuses: a chunk whose status there is not 0 is not touched
 * and gets it ('before' may be 'status').  'next' is a counter that is 0 when the kernel starts:
 * warps (or blocks) take chunks from it, so that skewed sizes do not leave some idle; NULL: the
 * grid has a warp (or block) for each chunk, and the i-th takes the i-th.
 */
typedef struct lade_gpu_batch {
	LADE_ADDRESS(const uint8_t *const *) src;
	LADE_ADDRESS(const uint64_t *) src_size;
	LADE_ADDRESS(uint8_t *const *) dst;
	LADE_ADDRESS(const uint64_t *) dst_cap;
	LADE_ADDRESS(uint64_t *) dst_size;
	LADE_ADDRESS(uint32_t *) status;
	LADE_ADDRESS(const uint32_t *) before;
	LADE_ADDRESS(uint32_t *) next;
	uint32_t count;
} lade_gpu_batch;
LADE_ARGS(lade_gpu_batch, 72);

#endif
