/*
 * frame_reseal.h: makes the checks of a .lade frame right, so that a fuzzer gets behind them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_FUZZ_FRAME_RESEAL_H
#define LADE_FUZZ_FRAME_RESEAL_H

#include "frame/layout.h"

#include <xxhash.h>

static inline void seal(uint8_t *part, size_t body, uint64_t seed)
{
	lade__le_put(part + 24, XXH64(part + LADE__PART_HEADER, body, XXH64(part, 24, seed)), 8);
}

/* Sets the checks of all parts that are found by walking over them. */
static inline void reseal(uint8_t *data, size_t size)
{
	if (size < LADE__HEADER_MIN)
		return;
	size_t at = lade__le32(data + 12), chunks = 0;
	if (at < LADE__HEADER_MIN || at > size || at % 16)
		return;
	uint64_t header = XXH64(data, at - 8, 0);
	lade__le_put(data + at - 8, header, 8);
	while (size - at >= LADE__PART_HEADER) {
		uint8_t *part = data + at;
		size_t left = size - at - LADE__PART_HEADER, body;
		if (lade__le32(part) == LADE_FRAME_CHUNK_MARK) {
			size_t spec = lade__le16(part + 14);
			body = (size_t)lade__pad(spec) + (size_t)lade__pad(lade__le32(part + 4));
			if (body > left)
				return;
			seal(part, spec, chunks++);
		} else if (lade__le32(part) == LADE_FRAME_PAGE_MARK) {
			body = lade__le32(part + 4) * (size_t)LADE__ENTRY_SIZE;
			if (body > left)
				return;
			seal(part, body, 0);
		} else if (lade__le32(part) == LADE_FRAME_LIST_MARK) {
			uint64_t pages = lade__le64(part + 8);
			if (pages > left / 8)
				return;
			body = (size_t)pages * 8;
			seal(part, body, 0);
		} else if (lade__le32(part) == LADE_FRAME_FOOT_MARK && left >= 32) {
			lade__le_put(part + 32, header, 8);
			lade__le_put(part + 48, XXH64(part, 48, 0), 8);
			return;
		} else {
			return;
		}
		body = (size_t)lade__pad(body);
		if (body > left)
			return;
		at += LADE__PART_HEADER + body;
	}
}

#endif
