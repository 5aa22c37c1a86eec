/*
 * lz_scalar.h: LZ4 blocks and raw Snappy decoded one byte after the other, strictly as their
 * formats say: what the kernels' verdicts are compared with.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_TESTS_LZ_SCALAR_H
#define LADE_TESTS_LZ_SCALAR_H

#include <cstddef>
#include <cstdint>
#include <vector>

typedef std::vector<uint8_t> bytes;

/* ---- what the formats say, one byte after the other -------------------------------------------
 */

struct verdict {
	bool ok;
	bytes out;
};

static inline void append(bytes &out, const bytes &in, size_t at, uint64_t length)
{
	for (uint64_t i = 0; i < length; i++)
		out.push_back(in[at + i]);
}

static inline bool copy_match(bytes &out, uint64_t offset, uint64_t length, uint64_t cap)
{
	if (offset == 0 || offset > out.size() || length > cap - out.size())
		return false;
	for (uint64_t i = 0; i < length; i++)
		out.push_back(out[out.size() - offset]);
	return true;
}

static inline bool lz4_length(const bytes &in, size_t &at, uint64_t &length)
{
	uint8_t byte;
	do {
		if (at == in.size())
			return false;
		byte = in[at++];
		length += byte;
	} while (byte == 255);
	return true;
}

static inline verdict lz4_scalar(const bytes &in, uint64_t cap)
{
	verdict v = {false, {}};
	size_t at = 0;
	for (;;) {
		if (at == in.size())
			return v;
		uint8_t token = in[at++];
		uint64_t literals = token >> 4, match = token & 15;
		if (literals == 15 && !lz4_length(in, at, literals))
			return v;
		if (literals > in.size() - at || literals > cap - v.out.size())
			return v;
		append(v.out, in, at, literals);
		at += literals;
		if (at == in.size()) {
			v.ok = true;
			return v;
		}
		if (in.size() - at < 2)
			return v;
		uint32_t offset = in[at] | in[at + 1] << 8;
		at += 2;
		if (match == 15 && !lz4_length(in, at, match))
			return v;
		if (!copy_match(v.out, offset, match + 4, cap))
			return v;
	}
}

static inline verdict snappy_scalar(const bytes &in, uint64_t cap)
{
	verdict v = {false, {}};
	uint64_t size = 0;
	size_t at = 0;
	for (unsigned shift = 0;; shift += 7) {
		if (at == in.size() || shift > 28)
			return v;
		size |= (uint64_t)(in[at] & 127) << shift;
		if (in[at++] < 128)
			break;
	}
	if (size > cap)
		return v;
	while (at < in.size()) {
		uint32_t tag = in[at++], extra = 0, bytes_more = 0;
		if ((tag & 3) == 0)
			bytes_more = (tag >> 2) < 60 ? 0 : (tag >> 2) - 59;
		else
			bytes_more = (tag & 3) == 3 ? 4 : tag & 3;
		if (in.size() - at < bytes_more)
			return v;
		for (uint32_t i = 0; i < bytes_more; i++)
			extra |= (uint32_t)in[at++] << (8 * i);
		if ((tag & 3) == 0) {
			uint64_t literals = (uint64_t)(bytes_more ? extra : tag >> 2) + 1;
			if (literals > in.size() - at || literals > size - v.out.size())
				return v;
			append(v.out, in, at, literals);
			at += literals;
		} else if ((tag & 3) == 1) {
			if (!copy_match(v.out, extra | (tag >> 5) << 8, 4 + (tag >> 2 & 7), size))
				return v;
		} else if (!copy_match(v.out, extra, (tag >> 2) + 1, size)) {
			return v;
		}
	}
	v.ok = v.out.size() == size;
	return v;
}

#endif
