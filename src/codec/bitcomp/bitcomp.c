/*
 * bitcomp.c: the codec bitcomp (docs/format/bitcomp.md): options, chunks, ranges; the sub-blocks
 * are in block_encode.h and block_decode.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/bitcomp/bitcomp.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

#include "base/try.h"

#define SIZE_LIMIT ((uint64_t)1 << 34)
#define HEADER LADE_BITCOMP_HEADER
#define PART 16 /* sub-blocks of a thread's part */

#define DTYPE LADE__BITCOMP_DTYPE
#define ALGORITHM LADE__BITCOMP_ALGORITHM
#define MODE LADE__BITCOMP_MODE
#define DELTA LADE__BITCOMP_DELTA

/* Decimals are rounded to nearest, whatever the caller's mode, which rounding_back() restores. */
static int rounding_nearest(void)
{
	int mode = fegetround();
	if (mode != FE_TONEAREST)
		fesetround(FE_TONEAREST);
	return mode;
}

static void rounding_back(int mode)
{
	if (mode != FE_TONEAREST)
		fesetround(mode);
}

static const lade__bitcomp_kernels *kernels_of(lade_cpu cpu)
{
#if defined(__x86_64__)
	if (cpu >= LADE_CPU_AVX512)
		return &lade__bitcomp_avx512;
	if (cpu >= LADE_CPU_AVX2)
		return &lade__bitcomp_avx2;
#endif
	(void)cpu;
	return &lade__bitcomp_plain;
}

lade_bitcomp_how lade__bitcomp_how_of(const lade_stage *stage)
{
	lade_dtype dtype = (lade_dtype)stage->option[DTYPE].i;
	size_t size = lade_dtype_size(dtype);
	lade_bitcomp_how how = {.log = size == 1   ? 0
	                                : size == 2 ? 1
	                                : size == 4 ? 2
	                                            : 3,
	                         .is_signed = lade_dtype_class(dtype) == 'i',
	                         .sparse = stage->option[ALGORITHM].i == 1,
	                         .quant = (unsigned)stage->option[MODE].i};
	how.real = size >= 4 && lade_dtype_class(dtype) == 'f' && !how.quant;
	if (how.quant) {
		/* Of delta, the largest power of two that is not above it. */
		frexp(stage->option[DELTA].f, &how.exponent);
		how.exponent--;
		how.is_signed = how.quant == 1;
	}
	return how;
}

/* The exponents of steps that there are for elements of a size (section 5). */
typedef struct exponents {
	int least, most;
} exponents;

static exponents exponents_of(unsigned log)
{
	int mantissa = log == 1 ? 10 : log == 2 ? 23 : 52;
	int bias = log == 1 ? 15 : log == 2 ? 127 : 1023;
	return (exponents){2 - bias - mantissa, bias};
}

static bool exponent_fits(unsigned log, int exponent)
{
	exponents e = exponents_of(log);
	return exponent >= e.least && exponent <= e.most;
}

static lade_status check(const lade_stage *stage, lade_error *err)
{
	lade_dtype dtype = (lade_dtype)stage->option[DTYPE].i;
	double delta = stage->option[DELTA].f;
	lade_status status = lade__little_check(stage, dtype, err);
	if (status != LADE_OK)
		return status;
	if (!stage->option[MODE].i) {
		if (delta == 0)
			return LADE_OK;
		return lade_fail(err, LADE_E_ARG, LADE_NO_OFFSET,
		                 "bitcomp: delta is %g, want 0 where the mode is lossless", delta);
	}
	if (lade_dtype_class(dtype) != 'f')
		return lade_fail(err, LADE_E_DTYPE, LADE_NO_OFFSET,
		                 "bitcomp: dtype is %s, want <f2, <f4 or <f8 for a lossy mode",
		                 lade_dtype_text(dtype));
	lade_bitcomp_how how = lade__bitcomp_how_of(stage);
	exponents e = exponents_of(how.log);
	if (!(delta > 0) || !exponent_fits(how.log, how.exponent))
		return lade_fail(
			err, LADE_E_ARG, LADE_NO_OFFSET,
			"bitcomp: delta is %g, want at least %.9g and less than %.9g for %s", delta,
			ldexp(1, e.least), ldexp(1, e.most + 1), lade_dtype_text(dtype));
	return LADE_OK;
}

static bool is_lossy(const lade_stage *stage)
{
	return stage->option[MODE].i != 0;
}

static uint64_t blocks_of(uint64_t size)
{
	return size / BLOCK + (size % BLOCK != 0);
}

static uint64_t directory_of(uint64_t size)
{
	return HEADER + lade__bitcomp_up((size_t)(4 * blocks_of(size)));
}

/* A sub-block is never larger than raw, and all but the last are multiples of 16 then. */
static size_t bound(const lade_stage *stage, size_t size)
{
	(void)stage;
	return size > SIZE_LIMIT ? SIZE_MAX : (size_t)directory_of(size) + lade__bitcomp_up(size);
}

/* ---- the header ------------------------------------------------------------------------------ */

typedef struct header {
	unsigned log, quant;
	int exponent;
	bool stored;
	uint64_t size;
} header;

static lade_status header_read(const uint8_t *src, size_t size, header *h, lade_error *err)
{
	if (size < HEADER)
		return lade_fail(err, LADE_E_TRUNCATED, size,
		                 "bitcomp: the header needs %d bytes, have %zu", HEADER, size);
	if (src[0] != LADE_BITCOMP_MAGIC || src[1] != LADE_BITCOMP_VERSION)
		return lade_fail(err, LADE_E_CORRUPT, 0,
		                 "bitcomp: magic and version are %02x %02x, want %02x %02x", src[0],
		                 src[1], LADE_BITCOMP_MAGIC, LADE_BITCOMP_VERSION);
	unsigned kind = src[2];
	h->log = kind & LADE_BITCOMP_SIZE_LOG;
	h->stored = kind & LADE_BITCOMP_STORED;
	h->quant = kind >> LADE_BITCOMP_QUANT & 3;
	h->exponent = (int16_t)lade__le16(src + 4);
	h->size = lade__le64(src + 8);
	bool fits = h->quant == 0 ? h->exponent == 0
	                          : h->quant < 3 && h->log > 0 && !h->stored &&
	                                    exponent_fits(h->log, h->exponent);
	if (kind & ~(unsigned)LADE_BITCOMP_KIND || src[3] || lade__le16(src + 6) || !fits)
		return lade_fail(err, LADE_E_CORRUPT, 2,
		                 "bitcomp: kind %02x with exponent %d is not defined", kind,
		                 h->exponent);
	if (h->size > SIZE_LIMIT)
		return lade_fail(err, LADE_E_CORRUPT, 8,
		                 "bitcomp: the decoded size is %llu, at most %llu is possible",
		                 (unsigned long long)h->size, (unsigned long long)SIZE_LIMIT);
	return LADE_OK;
}

static lade_status decoded_size(const lade_stage *stage, const void *src, size_t size,
                                uint64_t *decoded, lade_error *err)
{
	header h;
	lade_status status;
	(void)stage;
	if (!src && size)
		return lade_fail(err, LADE_E_UNKNOWN_SIZE, LADE_NO_OFFSET,
		                 "bitcomp: the decoded size is in the data, which was not given");
	TRY(header_read(src, size, &h, err));
	*decoded = h.size;
out:
	return status;
}

/* The header, and with it that the source has the length that it says. */
static lade_status chunk_read(lade_cspan span, header *h, lade_error *err)
{
	const uint8_t *src = lade__bytes(span);
	lade_status status;
	TRY(header_read(src, span.size, h, err));
	uint64_t want = HEADER + h->size;
	if (!h->stored && h->size) {
		want = directory_of(h->size);
		if (span.size >= want)
			want = (uint64_t)16 *
			       lade__le32(src + HEADER + 4 * (blocks_of(h->size) - 1));
	}
	if (span.size < want)
		return lade_fail(err, LADE_E_TRUNCATED, span.size,
		                 "bitcomp: the chunk needs %llu bytes, have %zu",
		                 (unsigned long long)want, span.size);
	if (span.size > want)
		return lade_fail(err, LADE_E_CORRUPT, want,
		                 "bitcomp: the chunk ends at %llu, have %zu",
		                 (unsigned long long)want, span.size);
out:
	return status;
}

/* ---- decoding -------------------------------------------------------------------------------- */

typedef uint8_t nibbles __attribute__((vector_size(16)));

/* The widths of the units from their codes, of which there are 'units'; gives their sum. */
static size_t widths_read(lade__bitcomp_parts *p)
{
	uint8_t codes[BLOCK / 32 + 16];
	unsigned bytes = (p->units + 1) / 2;
	/* Behind the last unit stand codes that say 0. */
	memcpy(codes, p->codes, bytes);
	memset(codes + bytes, 0xFF, 16);
	if (p->units & 1)
		codes[bytes - 1] |= 0xF0;
	nibbles width = (nibbles){0} + p->width;
	uint16_t sums[16] = {0};
	for (unsigned i = 0; i < bytes; i += 16) {
		nibbles c, w[2];
		memcpy(&c, codes + i, 16);
		for (unsigned k = 0; k < 2; k++) {
			nibbles code = k ? c >> 4 : c & 15, less = code << p->step;
			w[k] = (width - less) & (nibbles)(less < width) & (nibbles)(code != 15);
		}
		for (unsigned k = 0; k < 16; k++) {
			p->widths[2 * (i + k)] = w[0][k];
			p->widths[2 * (i + k) + 1] = w[1][k];
			sums[k] = (uint16_t)(sums[k] + w[0][k] + w[1][k]);
		}
	}
	size_t sum = 0;
	for (unsigned k = 0; k < 16; k++)
		sum += sums[k];
	return sum;
}

/* How many of the first 'count' bits are set; reads whole words of 8 bytes. */
static size_t bits_set(const uint8_t *mask, size_t count)
{
	size_t set = 0;
	for (size_t i = 0; i < count; i += 64) {
		uint64_t m = lade__le64(mask + i / 8);
		set += (size_t)__builtin_popcountll(count - i < 64 ? m << (64 - (count - i)) : m);
	}
	return set;
}

/* A short mask of 'size' bytes, before which are bits for those that are not 0, to 'present'; gives
 * how many bytes of 'from', which has 'room', it takes, or more than there are. */
static size_t short_read(const uint8_t *from, size_t room, size_t size, uint8_t *present)
{
	uint8_t bits[BLOCK / 64] = {0};
	size_t at = (size + 7) / 8;
	if (room < at)
		return at;
	memcpy(bits, from, at);
	if (room < at + bits_set(bits, size))
		return SIZE_MAX / 2;
	for (size_t i = 0; i < size; i++) {
		bool is = bits[i / 8] >> i % 8 & 1;
		present[i] = is ? from[at] : 0;
		at += is;
	}
	return at;
}

/* The parts behind the header of a sub-block with a mask. */
static bool mask_read(const uint8_t *src, size_t size, unsigned each, lade__bitcomp_parts *p)
{
	size_t at = HEADER, bytes = (p->values + 7) / 8, set;
	if (p->mode & LADE_BITCOMP_FAR) {
		if (size < HEADER + 16)
			return false;
		p->base = lade__le64(src + at);
		at += 16;
	}
	memset(p->present + bytes, 0, 8);
	if (p->mode & LADE_BITCOMP_SHORT) {
		at += lade__bitcomp_up(short_read(src + at, size - at, bytes, p->present));
	} else {
		if (size - at >= bytes)
			memcpy(p->present, src + at, bytes);
		at += lade__bitcomp_up(bytes);
	}
	if (size < at)
		return false;
	if (p->mode & LADE_BITCOMP_REPEAT)
		p->present[0] |= 1;
	set = bits_set(p->present, p->values);
	p->payload = src + at;
	p->units = (unsigned)((set + each - 1) / each);
	return at + lade__bitcomp_up((set * p->width + 7) / 8) == size;
}

/* 'more' of a sub-block without a dictionary. */
static bool more_read(unsigned log, unsigned more, lade__bitcomp_parts *p)
{
	unsigned ten = more >> LADE_BITCOMP_TEN;
	p->lag = (more & LADE_BITCOMP_LAG) + 1;
	p->ten = more & LADE_BITCOMP_DECIMAL ? ten + 1 : 0;
	if (p->lag > 1 && (!(p->mode & LADE_BITCOMP_DELTA) || p->mode & LADE_BITCOMP_MASK))
		return false;
	return p->ten ? log >= 2 && ten <= LADE_BITCOMP_TEN_MOST(log) : ten == 0;
}

/* Checks sub-block 'src' of 'size' bytes, less than raw, that decodes to 'len' (section 4). */
static bool parts_read(unsigned log, const uint8_t *src, size_t size, size_t len,
                       lade__bitcomp_parts *p)
{
	unsigned each = log == 0 ? 16 : 8;
	size_t values = (len + (1u << log) - 1) >> log, at = HEADER, payload = 0;
	if (size < HEADER)
		return false;
	p->mode = src[0];
	p->width = src[1];
	p->words = src[2] + 1u;
	p->step = src[3];
	p->base = log == 3 ? 0 : lade__le32(src + 4);
	p->reference = lade__le64(src + 8);
	p->values = (unsigned)values;
	p->units = (unsigned)((values + each - 1) / each);
	p->whole = len >> log;
	p->lag = 1;
	p->ten = 0;
	if (p->mode & ~LADE_BITCOMP_MODE || (p->mode >> LADE_BITCOMP_FOLD & 3) == 3 ||
	    p->step > 2 || p->width > 8u << log)
		return false;
	if (p->mode & LADE_BITCOMP_DICT && (log || p->mode & 15))
		return false;
	if (!(p->mode & LADE_BITCOMP_DICT) && !more_read(log, src[2], p))
		return false;
	if (p->mode & LADE_BITCOMP_MASK) {
		bool far = p->mode & LADE_BITCOMP_FAR;
		if (p->mode & ~LADE_BITCOMP_MASKED ||
		    (far && (log < 3 || p->mode & LADE_BITCOMP_REPEAT)))
			return false;
		return mask_read(src, size, each, p);
	}
	if (log == 3 && p->mode & LADE_BITCOMP_DELTA) {
		if (size < HEADER + 16)
			return false;
		p->base = lade__le64(src + at);
		at += 16;
	}
	p->dict = src + at;
	if (p->mode & LADE_BITCOMP_DICT)
		at += lade__bitcomp_up(p->words);
	p->codes = src + at;
	if (p->mode & LADE_BITCOMP_WIDTHS) {
		size_t codes = (p->units + 1) / 2;
		at += lade__bitcomp_up(codes);
		if (size < at)
			return false;
		payload = widths_read(p);
	} else {
		payload = (size_t)p->width * p->units;
	}
	p->payload = src + at;
	return at + lade__bitcomp_up(payload * (each / 8)) == size;
}

/* A sub-block of 'size' bytes, less than raw and with SLACK bytes behind it, to 'dst', which has
 * 'len' bytes; false: it is corrupt. */
static bool coded_decode(const lade__bitcomp_kernels *k, unsigned log, const uint8_t *src,
                         size_t size, size_t len, uint8_t *dst)
{
	uint8_t out[BLOCK + SLACK];
	lade__bitcomp_parts parts;
	if (!parts_read(log, src, size, len, &parts))
		return false;
	int mode = parts.ten ? rounding_nearest() : FE_TONEAREST;
	if (len == BLOCK) {
		k->decode[log](&parts, dst);
	} else {
		k->decode[log](&parts, out);
		memcpy(dst, out, len);
	}
	rounding_back(mode);
	return true;
}

bool lade__bitcomp_block_decode(lade_cpu cpu, unsigned log, const uint8_t *src, size_t size,
                                size_t len, uint8_t *dst)
{
	return coded_decode(kernels_of(cpu), log, src, size, len, dst);
}

/* Sub-block i of a chunk that chunk_read() took, to 'dst', which has its decoded bytes. */
static lade_status block_decode(const header *h, const lade__bitcomp_kernels *k, lade_cspan span,
                                uint64_t i, uint8_t *dst, lade_error *err)
{
	const uint8_t *src = lade__bytes(span), *ends = src + HEADER;
	uint64_t begin = i ? (uint64_t)16 * lade__le32(ends + 4 * (i - 1)) : directory_of(h->size);
	uint64_t end = (uint64_t)16 * lade__le32(ends + 4 * i);
	size_t len = h->size - BLOCK * i < BLOCK ? (size_t)(h->size - BLOCK * i) : BLOCK;
	uint8_t in[BLOCK + SLACK];
	if (begin < directory_of(h->size) || begin >= end || end > span.size ||
	    end - begin > lade__bitcomp_up(len))
		return lade_fail(err, LADE_E_CORRUPT, HEADER + 4 * i,
		                 "bitcomp: sub-block %llu is from %llu to %llu, of %zu bytes",
		                 (unsigned long long)i, (unsigned long long)begin,
		                 (unsigned long long)end, span.size);
	size_t size = (size_t)(end - begin);
	if (size == lade__bitcomp_up(len)) {
		memcpy(dst, src + begin, len);
	} else {
		const uint8_t *from = src + begin;
		if (span.size - end < SLACK) {
			memcpy(in, from, size);
			memset(in + size, 0, SLACK);
			from = in;
		}
		if (!coded_decode(k, h->log, from, size, len, dst))
			return lade_fail(
				err, LADE_E_CORRUPT, begin,
				"bitcomp: sub-block %llu of %zu bytes has mode %02x, width "
				"%u, which do not make that",
				(unsigned long long)i, size, src[begin], src[begin + 1]);
	}
	if (h->quant)
		k->restore[h->log](h->quant, h->exponent, dst, len >> h->log);
	return LADE_OK;
}

static lade_status range_decode(const lade_run *run, const header *h, lade_cspan src, uint64_t off,
                                lade_span dst, lade_error *err)
{
	const lade__bitcomp_kernels *k = kernels_of(run->cpu);
	uint8_t *to = dst.data, block[BLOCK];
	size_t left = dst.size;
	while (left) {
		uint64_t i = off / BLOCK, start = off % BLOCK;
		size_t len = h->size - BLOCK * i < BLOCK ? (size_t)(h->size - BLOCK * i) : BLOCK;
		size_t n = len - (size_t)start < left ? len - (size_t)start : left;
		lade_status status = block_decode(h, k, src, i, n == len ? to : block, err);
		if (status != LADE_OK)
			return status;
		if (n != len)
			memcpy(to, block + start, n);
		to += n;
		off += n;
		left -= n;
	}
	return LADE_OK;
}

static lade_status run_range(const lade_run *run, lade_cspan src, uint64_t off, lade_span dst,
                             lade_error *err)
{
	header h;
	lade_status status;
	TRY(chunk_read(src, &h, err));
	if (off > h.size || dst.size > h.size - off)
		return lade_fail(err, LADE_E_RANGE, LADE_NO_OFFSET,
		                 "bitcomp: the range %llu + %zu exceeds the size %llu",
		                 (unsigned long long)off, dst.size, (unsigned long long)h.size);
	if (!h.stored)
		return range_decode(run, &h, src, off, dst, err);
	if (dst.size)
		memcpy(dst.data, lade__bytes(src) + HEADER + off, dst.size);
out:
	return status;
}

static lade_status decode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	header h;
	lade_status status;
	*dst_size = 0;
	TRY(header_read(lade__bytes(src), src.size, &h, err));
	if (h.size > dst.size)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "bitcomp: want %llu bytes, have %zu", (unsigned long long)h.size,
		                 dst.size);
	dst.size = (size_t)h.size;
	TRY(run_range(run, src, 0, dst, err));
	*dst_size = dst.size;
out:
	return status;
}

/* ---- decoding by several threads ------------------------------------------------------------- */

static lade_status parts(const lade_run *run, lade_cspan src, size_t *part_count, size_t *size,
                         lade_error *err)
{
	header h;
	lade_status status;
	(void)run;
	TRY(chunk_read(src, &h, err));
	*size = (size_t)h.size;
	*part_count = h.stored ? 1 : (size_t)((blocks_of(h.size) + PART - 1) / PART);
out:
	return status;
}

static lade_status run_part(const lade_run *run, lade_cspan src, size_t part, lade_span dst,
                            lade_error *err)
{
	header h;
	lade_status status;
	TRY(chunk_read(src, &h, err));
	uint64_t off = (uint64_t)part * PART * BLOCK;
	uint64_t n = h.size - off < PART * BLOCK ? h.size - off : PART * BLOCK;
	return range_decode(run, &h, src, off,
	                    (lade_span){(uint8_t *)dst.data + off, (size_t)n, dst.place}, err);
out:
	return status;
}

/* ---- encoding -------------------------------------------------------------------------------- */

/*
 * What the encoder of a sub-block reads: whole groups of 512 bytes.  'aside' is used where the
 * source is not that, or is quantised.
 */
static const uint8_t *values_of(const lade__bitcomp_kernels *k, const header *h, const uint8_t *src,
                                size_t len, uint8_t *aside)
{
	size_t size = (size_t)1 << h->log, done = 0;
	if (len == BLOCK && !h->quant)
		return src;
	if (h->quant) {
		k->quantise[h->log](h->quant, h->exponent, src, aside, len >> h->log);
		done = len & ~(size - 1);
	}
	memcpy(aside + done, src + done, len - done);
	size_t end = (len + size - 1) & ~(size - 1);
	memset(aside + len, 0, end - len);
	for (; end % LADE_BITCOMP_GROUP; end += size)
		memcpy(aside + end, aside + end - size, size);
	return aside;
}

size_t lade__bitcomp_block_encode(lade_cpu cpu, const lade_bitcomp_how *how, const uint8_t *src,
                                  size_t len, uint8_t *dst)
{
	const lade__bitcomp_kernels *k = kernels_of(cpu);
	const header h = {.log = how->log};
	uint8_t values[BLOCK];
	int mode = how->real ? rounding_nearest() : FE_TONEAREST;
	src = values_of(k, &h, src, len, values);
	size_t size = k->encode[how->log](how, src, len, src, dst);
	rounding_back(mode);
	return size;
}

static lade_status encode(const lade_run *run, lade_cspan span, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	const lade__bitcomp_kernels *k = kernels_of(run->cpu);
	lade_bitcomp_how how = lade__bitcomp_how_of(run->stage);
	header h = {
		.log = how.log, .quant = how.quant, .exponent = how.exponent, .size = span.size};
	const uint8_t *src = lade__bytes(span);
	uint8_t *to = dst.data, values[BLOCK], out[BLOCK + SLACK];
	*dst_size = 0;
	if (span.size > SIZE_LIMIT)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "bitcomp: %zu bytes, a chunk holds at most %llu", span.size,
		                 (unsigned long long)SIZE_LIMIT);
	int mode = how.real ? rounding_nearest() : FE_TONEAREST;
	/* What does not fit is still counted, for the message. */
	size_t at = (size_t)directory_of(span.size), room = dst.size;
	if (at <= room && span.size)
		memset(to + HEADER, 0, at - HEADER);
	for (size_t off = 0, i = 0; off < span.size; off += BLOCK, i++) {
		size_t len = span.size - off < BLOCK ? span.size - off : BLOCK;
		const uint8_t *from = values_of(k, &h, src + off, len, values);
		bool direct = at <= room && room - at >= sizeof out;
		const uint8_t *next = (const uint8_t *)((uintptr_t)src + off + BLOCK);
		size_t size = k->encode[h.log](&how, from, len, next, direct ? to + at : out);
		bool raw = !size;
		if (raw)
			size = lade__bitcomp_up(len);
		if (at <= room && room - at >= size) {
			if (raw) {
				memcpy(to + at, from, len);
				memset(to + at + len, 0, size - len);
			} else if (!direct) {
				memcpy(to + at, out, size);
			}
			lade__le_put(to + HEADER + 4 * i, (at + size) / 16, 4);
		}
		at += size;
	}
	rounding_back(mode);
	if (!h.quant && at >= HEADER + span.size) {
		h.stored = span.size != 0;
		at = HEADER + span.size;
		if (at <= room && span.size)
			memcpy(to + HEADER, src, span.size);
	}
	if (at > room)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "bitcomp: want %zu bytes, have %zu", at, room);
	memset(to, 0, HEADER);
	to[0] = LADE_BITCOMP_MAGIC;
	to[1] = LADE_BITCOMP_VERSION;
	to[2] = (uint8_t)(h.log | (h.stored ? LADE_BITCOMP_STORED : 0) |
	                  h.quant << LADE_BITCOMP_QUANT);
	lade__le_put(to + 4, (uint64_t)(int64_t)h.exponent, 2);
	lade__le_put(to + 8, span.size, 8);
	*dst_size = at;
	return LADE_OK;
}

/* ---- records --------------------------------------------------------------------------------- */

static double encode_cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	return lade__codec_cost(workload, 100,
	                        workload->cpu >= LADE_CPU_AVX512 ? 5.0
	                        : workload->cpu >= LADE_CPU_AVX2 ? 4.5
	                                                         : 1.3);
}

static double decode_cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	return lade__codec_cost(workload, 50, workload->cpu >= LADE_CPU_AVX2 ? 5.0 : 2.0);
}

static const char *const algorithms[] = {"default", "sparse", NULL};
static const char *const modes[] = {"lossless", "lossy_signed", "lossy_unsigned", NULL};

static const lade_option options[] = {
	{.name = "dtype",
         .type = LADE_OPTION_DTYPE,
         .fallback.i = LADE_U1,
         .doc = "the elements' type, of 1, 2, 4 or 8 bytes"},
	{.name = "algorithm",
         .type = LADE_OPTION_ENUM,
         .names = algorithms,
         .doc = "sparse: tries fewer modes, for data near zero"},
	{.name = "mode",
         .type = LADE_OPTION_ENUM,
         .names = modes,
         .doc = "whether floats become multiples of delta"},
	{.name = "delta",
         .type = LADE_OPTION_FLOAT,
         .doc = "of the lossy modes: errors are at most half of it"},
};

static const char *const suggest[] = {"bitcomp", NULL};

const lade_algorithm lade__bitcomp = {
	.struct_size = sizeof(lade_algorithm),
	.name = "bitcomp",
	.id = 12,
	.kind = LADE_STAGE_CODEC,
	.flags = LADE_ALGORITHM_RANGES,
	.options = options,
	.option_count = sizeof options / sizeof *options,
	.doc = "bit-packed elements; docs/format/bitcomp.md",
	.check = check,
	.bound = bound,
	.decoded_size = decoded_size,
	.is_lossy = is_lossy,
	.ratio_max = 2048, /* 4 bytes of the directory give 8 KiB */
	.suggest = suggest,
};

const lade_implementation lade__bitcomp_encode = {
	.struct_size = sizeof(lade_implementation),
	.name = "bitcomp/lade",
	.algorithm = "bitcomp",
	.direction = LADE_ENCODE,
	.priority = LADE_PRIORITY_BUILTIN,
	.cost = encode_cost,
	.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops), .run = encode},
};

const lade_implementation lade__bitcomp_decode = {
	.struct_size = sizeof(lade_implementation),
	.name = "bitcomp/lade",
	.algorithm = "bitcomp",
	.direction = LADE_DECODE,
	.priority = LADE_PRIORITY_BUILTIN,
	.cost = decode_cost,
	.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops),
	                                 .run = decode,
	                                 .run_range = run_range,
	                                 .parts = parts,
	                                 .run_part = run_part},
};
