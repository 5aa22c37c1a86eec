/*
 * job.h: the copies of a plan.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_SHARE_JOB_H
#define LADE_SHARE_JOB_H

#include "share/emit.h"

typedef enum lade__job_kind {
	LADE__JOB_NONE,   /* another job writes it */
	LADE__JOB_BYTES,  /* as they are */
	LADE__JOB_BITS,   /* 'count' bits from bit 'off' on */
	LADE__JOB_REBASE, /* 'count' integers of 'width' bytes, less 'base', at most 'most' */
	LADE__JOB_DENSE,  /* 'count' offsets of 4 bytes, less bases[ids[i]] */
	LADE__JOB_VIEWS,  /* 'count' views, whose long strings GATHER writes */
	LADE__JOB_GATHER, /* the long strings of 'count' views */
} lade__job_kind;

struct lade__job {
	lade__job_kind kind;
	size_t ref;         /* where the buffer's number of block is in plan->arrays */
	uint64_t dst, size; /* in the data; bytes */
	const void *src;
	bool far; /* BYTES: 'src' is on the plan's device */
	uint64_t off, count;
	size_t width;
	int64_t base, most;
	const uint8_t *validity; /* NULL: all are valid; else nulls become 0.  From bit 'bit' on */
	uint64_t bit;
	const int8_t *ids; /* DENSE */
	const int64_t *bases;
	const void *const *data; /* of views: the buffers of their strings */
	const void *sizes;       /* REBASE: elements whose size is 0 become 0 */
};

static inline bool lade__bit(const uint8_t *bits, uint64_t at)
{
	return bits[at / 8] >> at % 8 & 1;
}

/* The zeros among 'count' bits from bit 'off' on. */
uint64_t lade__count_nulls(const uint8_t *bits, uint64_t off, uint64_t count);

/* Element 'at' of integers of 2, 4 or 8 bytes, at any alignment. */
int64_t lade__element(const void *from, size_t width, uint64_t at);

/* Views have | length 4 | prefix 4 | buffer 4 | offset 4 |, or, to 12 bytes, the string itself. */
#define LADE__VIEW_INLINE 12
#define LADE__VIEW_BUFFER_MAX ((uint64_t)1 << 30)
/* The strings of views in the order of GATHER: where the next one is, in buffers of at most
 * LADE__VIEW_BUFFER_MAX bytes (or one string). */
typedef struct lade__packing {
	uint32_t buffer;
	uint64_t in_buffer, total;
} lade__packing;
/* True if 'size' more bytes begin a new buffer. */
bool lade__pack(lade__packing *p, uint64_t size);

#endif
