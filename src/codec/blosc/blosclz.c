/*
 * blosclz.c: a decoder of BloscLZ streams (docs/format/blosc.md, "BloscLZ").
 *
 * Copies go in steps of 8, 16 or 32 bytes that may write past their piece, but never past
 * 'dst': what they write too much is overwritten by the pieces that follow, since a stream that
 * does not fill 'dst' is corrupt.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/blosc/blosc.h"

#include <string.h>

/* A match whose last step may run over needs this many bytes of room behind it. */
#define SLACK 16

/* len <= end - op - SLACK, distance >= 16: a step of 16 never reads what it writes. */
static inline void copy_far(uint8_t *op, size_t distance, size_t len)
{
	const uint8_t *stop = op + len;
	do {
		memcpy(op, op - distance, 16);
		op += 16;
	} while (op < stop);
}

/* The same for distance >= 8, by 8. */
static inline void copy_mid(uint8_t *op, size_t distance, size_t len)
{
	const uint8_t *stop = op + len;
	do {
		memcpy(op, op - distance, 8);
		op += 8;
	} while (op < stop);
}

/* Any distance, not a byte too many: the pattern behind 'op' doubles with each step. */
static inline void copy_near(uint8_t *op, size_t distance, size_t len)
{
	const uint8_t *from = op - distance;
	while (len > distance) {
		memcpy(op, from, distance);
		op += distance;
		len -= distance;
		distance *= 2;
	}
	memcpy(op, from, len);
}

bool lade__blosclz_decode(const uint8_t *src, size_t src_size, uint8_t *dst, size_t dst_size,
                          size_t *bad)
{
	const uint8_t *ip = src, *const ip_end = src + src_size;
	uint8_t *op = dst, *const op_end = dst + dst_size;
	if (src_size == 0)
		goto corrupt;
	/* The first instruction is a literal run, whatever its upper bits say. */
	size_t ctrl = *ip++ & 31;
	for (;;) {
		/* Invariant: dst <= op <= op_end, src < ip <= ip_end. */
		if (ctrl < 32) {
			size_t len = ctrl + 1;
			if (len > (size_t)(op_end - op) || len > (size_t)(ip_end - ip))
				goto corrupt;
			if (op_end - op >= 32 && ip_end - ip >= 32)
				memcpy(op, ip, 32);
			else
				memcpy(op, ip, len);
			op += len;
			ip += len;
			if (ip == ip_end)
				break;
			ctrl = *ip++;
			continue;
		}
		size_t len = (ctrl >> 5) + 2;
		size_t high = (ctrl & 31) << 8;
		if (len == 7 + 2) {
			/* At most src_size bytes of at most 255: no overflow. */
			uint8_t more;
			do {
				if (ip == ip_end)
					goto corrupt;
				more = *ip++;
				len += more;
			} while (more == 255);
		}
		if (ip == ip_end)
			goto corrupt;
		size_t distance = high + *ip++ + 1;
		if (distance == 8192) {
			if (ip_end - ip < 2)
				goto corrupt;
			distance += (size_t)ip[0] << 8 | ip[1];
			ip += 2;
		}
		size_t room = (size_t)(op_end - op);
		/* A match is never the last instruction: a literal run is. */
		if (len > room || distance > (size_t)(op - dst) || ip == ip_end)
			goto corrupt;
		ctrl = *ip++;
		if (distance >= 16 && room - len >= SLACK)
			copy_far(op, distance, len);
		else if (distance == 1)
			memset(op, op[-1], len);
		else if (distance >= 8 && room - len >= SLACK)
			copy_mid(op, distance, len);
		else
			copy_near(op, distance, len);
		op += len;
	}
	if (op == op_end)
		return true;
corrupt:
	*bad = (size_t)(ip - src);
	return false;
}
