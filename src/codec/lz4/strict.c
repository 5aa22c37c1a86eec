/*
 * strict.c: raw LZ4 blocks (lz4_Block_format.md of the LZ4 sources) by the library's own decoder,
 * which takes and refuses what the kernels do (docs/verdicts.md).
 *
 * A sequence is judged when all of it is read: first what the source lacks (LADE_E_TRUNCATED), then
 * where its match begins (LADE_E_CORRUPT), then whether it fits (LADE_E_NOSPACE).  The first
 * sequence that fails is the one that is reported.  Two functions decode: fast() takes sequences
 * while both ends are far and nothing is wrong, with wide copies; one() takes any sequence, to the
 * byte, and says what is wrong.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/lz/lz.h"
#include "codec/lz4/lz4.h"

typedef struct decoder {
	const uint8_t *src;
	uint8_t *dst;
	size_t size, cap;
	size_t in, out; /* of the next sequence */
	lade_cspan dict;
} decoder;

/*
 * Bytes that fast() wants behind a token and behind the output so far.  A token, 14 literals
 * (copied as 16) and an offset are 17 bytes of the source; 14 literals and a match of 18 bytes
 * written with LADE__LZ_SLACK are 64 bytes of the output.
 */
#define FAR_IN 32
#define FAR_OUT 64

/* Reads the bytes that lengthen a length; false where they reach 'end'. */
static inline bool lengthen(const uint8_t **at, const uint8_t *end, uint64_t *length)
{
	uint8_t byte;
	do {
		if (*at == end)
			return false;
		byte = *(*at)++;
		*length += byte;
	} while (byte == 255);
	return true;
}

/*
 * Decodes sequences until one begins near an end, needs more than is known to be there, or may be
 * bad; leaves 'in' and 'out' where that one begins.
 */
static void fast(decoder *d)
{
	if (d->size - d->in < FAR_IN || d->cap - d->out < FAR_OUT)
		return;
	const uint8_t *end = d->src + d->size, *in_far = end - FAR_IN;
	const uint8_t *in = d->src + d->in;
	uint8_t *out = d->dst + d->out, *out_far = d->dst + (d->cap - FAR_OUT);
	while (in <= in_far && out <= out_far) {
		const uint8_t *ip = in;
		uint8_t *op = out;
		unsigned token = *ip++;
		uint64_t literals = token >> 4, match = token & 15;
		if (literals < 15) {
			lade__lz_copy16(op, ip);
		} else {
			if (!lengthen(&ip, end, &literals) || ip > in_far ||
			    literals > (uint64_t)(in_far - ip) ||
			    literals > (uint64_t)(out_far - op))
				break;
			lade__lz_run(op, ip, (size_t)literals);
		}
		ip += literals;
		op += literals;
		/* Both are less than 16 bytes past their far ends. */
		size_t offset = lade__le16(ip);
		ip += 2;
		if (offset - 1 >= (size_t)(op - d->dst))
			break;
		if (match < 15 && offset >= 8) {
			const uint8_t *from = op - offset;
			lade__lz_copy8(op, from);
			lade__lz_copy8(op + 8, from + 8);
			memcpy(op + 16, from + 16, 2);
		} else if (match < 15) {
			lade__lz_pattern(op, offset, (size_t)match + 4);
		} else {
			if (!lengthen(&ip, end, &match) || op > out_far ||
			    match + 4 > (uint64_t)(out_far - op))
				break;
			lade__lz_match(op, offset, (size_t)match + 4);
		}
		in = ip;
		out = op + match + 4;
	}
	d->in = (size_t)(in - d->src);
	d->out = (size_t)(out - d->dst);
}

/* ---- one sequence, to the byte -------------------------------------------------------------- */

typedef struct sequence {
	uint64_t literals, match; /* bytes; no match: 0 */
	size_t from, next;        /* where the literals and the next sequence begin */
	size_t offset_at, offset;
} sequence;

static lade_status cut(const decoder *d, const char *what, lade_error *err)
{
	return lade_fail(err, LADE_E_TRUNCATED, d->size,
	                 "lz4: the sequence at %zu ends inside its %s: the block has %zu bytes",
	                 d->in, what, d->size);
}

static lade_status read_sequence(const decoder *d, sequence *s, lade_error *err)
{
	const uint8_t *end = d->src + d->size, *at = d->src + d->in;
	if (at == end)
		return lade_fail(err, LADE_E_TRUNCATED, d->size,
		                 d->size ? "lz4: the block's %zu bytes end with a match, want "
		                           "literals behind it"
		                         : "lz4: a block of %zu bytes, want 1",
		                 d->size);
	unsigned token = *at++;
	*s = (sequence){.literals = token >> 4, .match = token & 15};
	if (s->literals == 15 && !lengthen(&at, end, &s->literals))
		return cut(d, "literal length", err);
	if (s->literals > (uint64_t)(end - at))
		return lade_fail(err, LADE_E_TRUNCATED, d->size,
		                 "lz4: the literals at %zu need %llu bytes, %zu are left",
		                 (size_t)(at - d->src), (unsigned long long)s->literals,
		                 (size_t)(end - at));
	s->from = (size_t)(at - d->src);
	at += s->literals;
	s->next = d->size;
	if (at == end) {
		s->match = 0;
		return LADE_OK;
	}
	if (end - at < 2)
		return cut(d, "match offset", err);
	s->offset_at = (size_t)(at - d->src);
	s->offset = lade__le16(at);
	at += 2;
	if (s->match == 15 && !lengthen(&at, end, &s->match))
		return cut(d, "match length", err);
	s->match += 4;
	s->next = (size_t)(at - d->src);
	return LADE_OK;
}

/* Decodes the sequence at 'in'; '*last' says that it ends the block. */
static lade_status one(decoder *d, bool *last, lade_error *err)
{
	sequence s;
	lade_status status = read_sequence(d, &s, err);
	if (status != LADE_OK)
		return status;
	uint64_t here = d->out + s.literals;
	if (s.match && (s.offset == 0 || s.offset > here + d->dict.size))
		return lade_fail(err, LADE_E_CORRUPT, s.offset_at,
		                 "lz4: the match at %zu has offset %zu, the output has %llu",
		                 s.offset_at, s.offset, (unsigned long long)(here + d->dict.size));
	if (s.literals + s.match > d->cap - d->out)
		return lade_fail(err, LADE_E_NOSPACE, d->in,
		                 "lz4: want %llu bytes for the sequence at %zu and all before it, "
		                 "have %zu",
		                 (unsigned long long)(here + s.match), d->in, d->cap);
	memcpy(d->dst + d->out, d->src + s.from, (size_t)s.literals);
	d->out += (size_t)s.literals;
	size_t match = (size_t)s.match;
	if (s.offset > d->out && match) {
		size_t back = s.offset - d->out;
		size_t part = back < match ? back : match;
		const uint8_t *dict_end = (const uint8_t *)d->dict.data + d->dict.size;
		memcpy(d->dst + d->out, dict_end - back, part);
		d->out += part;
		match -= part;
	}
	if (match)
		lade__lz_match_exact(d->dst + d->out, s.offset, match);
	d->out += match;
	d->in = s.next;
	*last = s.match == 0;
	return LADE_OK;
}

static lade_status decode(const lade_run *run, lade_cspan src, lade_span dst, size_t *dst_size,
                          lade_error *err)
{
	uint8_t nothing;
	*dst_size = 0;
	if (src.size > LADE__LZ_CHUNK_MAX)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "lz4: a block of %zu bytes, the largest has %zu", src.size,
		                 LADE__LZ_CHUNK_MAX);
	decoder d = {
		.src = lade__bytes(src),
		.dst = lade__room(dst, &nothing),
		.size = src.size,
		.cap = dst.size < LADE__LZ_CHUNK_MAX ? dst.size : LADE__LZ_CHUNK_MAX,
	};
	if (run->dict)
		d.dict = lade__lz4_tail(lade_dict_data(run->dict));
	/* Every turn takes a sequence at least, which is a byte at least of the source. */
	for (bool last = false; !last;) {
		fast(&d);
		lade_status status = one(&d, &last, err);
		if (status != LADE_OK)
			return status;
	}
	*dst_size = d.out;
	return LADE_OK;
}

static double cost(void *ctx, const lade_workload *workload)
{
	(void)ctx;
	return workload->strict ? lade__codec_cost(workload, 50, 2.5) : -1;
}

const lade_implementation lade__lz4_strict = {
	.struct_size = sizeof(lade_implementation),
	.name = "lz4/strict",
	.algorithm = "lz4",
	.direction = LADE_DECODE,
	.priority = LADE_PRIORITY_BUILTIN,
	.cost = cost,
	.codec = &(const lade_codec_ops){.struct_size = sizeof(lade_codec_ops), .run = decode},
};
