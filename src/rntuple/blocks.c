/*
 * blocks.c: compressed payloads, those in several keys, and envelopes.
 *
 *     block     | magic 2 | method 1 | compressed size 3 | decoded size 3 | compressed bytes |
 *     envelope  | type 2, size 6 | payload | XXH3 of all before 8 |
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rntuple/rntuple.h"

#include "base/options.h"
#include "base/try.h"

#include <lade/checksum.h>

#include <inttypes.h>
#include <stdlib.h>

enum { LZ4_SUM = 8 };

const char *const lade__rnt_method_specs[RNT_METHODS] = {
	[RNT_STORED] = "copy", [RNT_ZLIB] = "zlib", [RNT_LZMA] = "lzma",
	[RNT_LZ4] = "lz4",     [RNT_ZSTD] = "zstd", [RNT_DEFLATE] = "deflate",
};

/* ---- blocks -------------------------------------------------------------------------------- */

static bool method_of(const uint8_t *head, rnt_method *method)
{
	static const struct {
		char magic[2];
		uint8_t version;
		rnt_method method;
	} known[] = {
		{{'Z', 'L'}, 8, RNT_ZLIB}, {{'X', 'Z'}, 0, RNT_LZMA},    {{'L', '4'}, 1, RNT_LZ4},
		{{'Z', 'S'}, 1, RNT_ZSTD}, {{'C', 'S'}, 8, RNT_DEFLATE},
	};
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (memcmp(head, known[i].magic, 2) == 0 && head[2] == known[i].version) {
			*method = known[i].method;
			return true;
		}
	return false;
}

static size_t le24(const uint8_t *p)
{
	return p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16;
}

bool lade__rnt_block(const uint8_t head[RNT_BLOCK_HEAD], uint64_t *stored, uint64_t *decoded)
{
	rnt_method method;
	*stored = RNT_BLOCK_HEAD + le24(head + 3);
	*decoded = le24(head + 6);
	return method_of(head, &method);
}

lade_status lade__rnt_lz4_compare(const uint8_t *data, uint64_t have, uint64_t off, lade_error *err)
{
	uint64_t stored = (uint64_t)lade__be32(data - 8) << 32 | lade__be32(data - 4);
	return have == stored ? LADE_OK
	                      : lade_fail(err, LADE_E_CHECKSUM, off,
	                                  "rntuple: an LZ4 block's XXH64 is %016" PRIx64
	                                  ", stored is %016" PRIx64,
	                                  have, stored);
}

/* Takes the checksum off an LZ4 block's front: XXH64, big-endian. */
static lade_status lz4_sum(const uint8_t **data, size_t *size, bool sums, uint64_t off,
                           lade_error *err)
{
	if (*size < LZ4_SUM)
		return lade_fail(err, LADE_E_CORRUPT, off,
		                 "rntuple: an LZ4 block has %zu bytes, its checksum alone %d",
		                 *size, LZ4_SUM);
	*data += LZ4_SUM;
	*size -= LZ4_SUM;
	return sums ? lade__rnt_lz4_compare(*data, lade_checksum_of(LADE_XXH64, *data, *size), off,
	                                    err)
	            : LADE_OK;
}

/* A block at byte 'at' of b->data, 'done' bytes being there: adds it, and moves both on. */
static lade_status take_block(rnt_blocks *b, uint64_t *at, uint64_t *done, lade_error *err)
{
	const uint8_t *head = b->data + *at, *from = head + RNT_BLOCK_HEAD;
	rnt_method method;
	if (b->size - *at < RNT_BLOCK_HEAD)
		return lade_fail(err, LADE_E_CORRUPT, *at,
		                 "rntuple: its blocks give %" PRIu64 " bytes, want %" PRIu64, *done,
		                 b->want);
	if (!method_of(head, &method) || (b->count && method != b->method))
		return lade_fail(err, LADE_E_CORRUPT, *at,
		                 "rntuple: a block begins with %02x %02x %02x, which is no method, "
		                 "or not that of the block before",
		                 head[0], head[1], head[2]);
	size_t packed = le24(head + 3), part = le24(head + 6);
	uint64_t left = b->size - *at - RNT_BLOCK_HEAD;
	if (packed > left || part == 0 || part > b->want - *done)
		return lade_fail(err, LADE_E_CORRUPT, *at,
		                 "rntuple: a block of %zu bytes gives %zu; %" PRIu64 " and %" PRIu64
		                 " are left",
		                 packed, part, left, b->want - *done);
	b->method = method;
	*at += RNT_BLOCK_HEAD + packed;
	*done += part;
	if (b->segments && method == RNT_LZ4) {
		lade_status status = lz4_sum(&from, &packed, b->sums, *at, err);
		if (status != LADE_OK)
			return status;
	}
	if (b->segments)
		b->segments[b->count] =
			(lade_segment){.data = from, .size = packed, .decoded_size = part};
	b->count++;
	return LADE_OK;
}

lade_status lade__rnt_blocks(rnt_blocks *b, lade_error *err)
{
	uint64_t at = 0, done = 0;
	b->count = 0;
	b->method = RNT_STORED;
	if (b->size > b->want)
		return lade_fail(err, LADE_E_CORRUPT, 0,
		                 "rntuple: %" PRIu64 " stored bytes for %" PRIu64, b->size,
		                 b->want);
	if (b->size == b->want) {
		if (b->segments)
			b->segments[0] = (lade_segment){.data = b->data,
			                                .size = (size_t)b->size,
			                                .decoded_size = (size_t)b->size};
		b->count = 1;
		return LADE_OK;
	}
	while (done < b->want) {
		lade_status status = take_block(b, &at, &done, err);
		if (status != LADE_OK)
			return status;
	}
	if (at != b->size)
		return lade_fail(err, LADE_E_CORRUPT, at,
		                 "rntuple: %" PRIu64 " bytes behind the last block", b->size - at);
	return LADE_OK;
}

lade_status lade__rnt_inflate(const rnt_file *file, const uint8_t *data, uint64_t size, uint8_t *to,
                              uint64_t want, lade_error *err)
{
	rnt_blocks b = {.data = data, .size = size, .want = want, .sums = true};
	lade_spec *spec = NULL;
	lade_result result = {.status = LADE_OK};
	lade_batch_options options = {LADE__OUR_SIZES, .cancel = file->cancel};
	lade_status status;
	TRY(lade__rnt_blocks(&b, err));
	b.segments = calloc(b.count, sizeof *b.segments);
	if (!b.segments)
		return lade__rnt_nomem(err);
	TRY(lade__rnt_blocks(&b, err));
	TRY(lade_spec_parse(file->engine, lade__rnt_method_specs[b.method], &spec, err));
	lade_item item = {
		.src = b.segments, .src_count = b.count, .dst = lade_host_span(to, (size_t)want)};
	TRY(lade_decode_into(file->engine, spec, &item, 1, &result, &options, err));
	if (result.size != want)
		status = lade_fail(err, LADE_E_CORRUPT, 0,
		                   "rntuple: blocks gave %zu bytes, want %" PRIu64, result.size,
		                   want);
out:
	free(b.segments);
	lade_spec_unref(spec);
	return status;
}

/* ---- payloads in several keys --------------------------------------------------------------- */

/*
 * n bytes, m in a key at most: the first key has m - 8 * (k - 1) bytes and the offsets of the
 * other k - 1; all but the last of those have m.
 */
lade_status lade__rnt_payload(const rnt_file *file, rnt_locator at, uint8_t *to, lade_error *err)
{
	uint64_t n = at.size, m = file->key_max;
	if (m == 0 || n <= m)
		return lade__rnt_fetch(file, at.off, to, (size_t)n, err);
	uint64_t k = n / m + (n % m != 0), slack = n % m ? m - n % m : 0;
	if (8 * (k - 1) > slack)
		k++;
	uint64_t list = 8 * (k - 1);
	if (list > m || m - list > n || n - (m - list) > (k - 1) * m)
		return lade_fail(err, LADE_E_CORRUPT, at.off,
		                 "rntuple: %" PRIu64 " bytes in keys of at most %" PRIu64
		                 ": the list of keys does not fit",
		                 n, m);
	uint8_t *offs = malloc((size_t)list);
	if (!offs)
		return lade__rnt_nomem(err);
	uint64_t done = m - list;
	lade_status status = lade__rnt_fetch(file, at.off, to, (size_t)done, err);
	if (status == LADE_OK)
		status = lade__rnt_fetch(file, at.off + done, offs, (size_t)list, err);
	for (uint64_t i = 0; i < k - 1 && status == LADE_OK; i++) {
		uint64_t size = n - done < m ? n - done : m;
		status = lade__rnt_fetch(file, lade__le64(offs + 8 * i), to + done, (size_t)size,
		                         err);
		done += size;
	}
	free(offs);
	return status;
}

/* ---- envelopes ------------------------------------------------------------------------------ */

static const char *const names[] = {"", "header", "footer", "page list"};

static lade_status check_envelope(const uint8_t *data, size_t size, rnt_envelope_kind kind,
                                  lade_error *err)
{
	uint64_t head = lade__le64(data), stored = lade__le64(data + size - 8);
	uint64_t have = lade_checksum_of(LADE_XXH3, data, size - 8);
	if ((head & 0xFFFF) != kind || head >> 16 != size)
		return lade_fail(
			err, LADE_E_CORRUPT, 0,
			"rntuple: the %s has type %u and %" PRIu64 " bytes, want type %d and %zu",
			names[kind], (unsigned)(head & 0xFFFF), head >> 16, (int)kind, size);
	if (have != stored)
		return lade_fail(err, LADE_E_CHECKSUM, size - 8,
		                 "rntuple: the checksum of the %s is %016" PRIx64
		                 ", stored is %016" PRIx64,
		                 names[kind], have, stored);
	return LADE_OK;
}

lade_status lade__rnt_envelope(const rnt_file *file, const rnt_link *link, rnt_envelope_kind kind,
                               rnt_in *out, uint64_t *sum, lade_error *err)
{
	uint64_t size = link->at.size, want = link->decoded_size, size_max = file->metadata_max;
	uint8_t *stored = NULL, *data = NULL;
	lade_status status;
	out->data = NULL;
	if (size == 0 || size > want || want < 16 || want > size_max)
		return lade_fail(err, want > size_max ? LADE_E_LIMIT : LADE_E_CORRUPT, link->at.off,
		                 "rntuple: the %s has %" PRIu64 " stored bytes for %" PRIu64
		                 ", the limit is %" PRIu64,
		                 names[kind], size, want, size_max);
	if (file->size != LADE_SIZE_UNKNOWN && size > file->size)
		return lade_fail(err, LADE_E_TRUNCATED, link->at.off,
		                 "rntuple: the %s has %" PRIu64 " bytes, the file %" PRIu64,
		                 names[kind], size, file->size);
	stored = malloc((size_t)size);
	if (!stored)
		return lade__rnt_nomem(err);
	TRY(lade__rnt_payload(file, link->at, stored, err));
	/* What the blocks say is checked before memory for it is taken. */
	rnt_blocks b = {.data = stored, .size = size, .want = want};
	TRY(lade__rnt_blocks(&b, err));
	if (size == want) {
		data = stored;
		stored = NULL;
	} else {
		data = malloc((size_t)want);
		if (!data) {
			status = lade__rnt_nomem(err);
			goto out;
		}
		TRY(lade__rnt_inflate(file, stored, size, data, want, err));
	}
	TRY(check_envelope(data, (size_t)want, kind, err));
	*sum = lade__le64(data + want - 8);
	*out = (rnt_in){.data = data, .at = 8, .end = (size_t)want - 8, .fault = out->fault};
	out->fault->what = names[kind];
	data = NULL;
out:
	free(stored);
	free(data);
	return status;
}

/* | size 4 | off 8 |, or | -(type << 24 | bytes) 4 | size 8 | off 8 | */
rnt_locator lade__rnt_locator(rnt_in *in)
{
	size_t begin = in->at;
	uint32_t head = (uint32_t)lade__rnt_int(in, 4);
	if (head <= INT32_MAX)
		return (rnt_locator){.size = head, .off = lade__rnt_int(in, 8)};
	head = 0 - head;
	uint32_t size = head & 0xFFFF, type = head >> 24;
	if (type != 1 || size < 20) {
		lade__rnt_bad(in, type == 1 ? LADE_E_CORRUPT : LADE_E_UNSUPPORTED,
		              "a locator of type %u and %u bytes", type, size);
		return (rnt_locator){0, 0};
	}
	rnt_locator at = {.size = lade__rnt_int(in, 8)};
	at.off = lade__rnt_int(in, 8);
	while (lade__rnt_ok(in) && in->at < begin + size)
		lade__rnt_int(in, 1);
	return at;
}

rnt_link lade__rnt_link(rnt_in *in)
{
	rnt_link link = {.decoded_size = lade__rnt_int(in, 8)};
	link.at = lade__rnt_locator(in);
	return link;
}

/* No flag is known: a bit means that older readers cannot read the file. */
lade_status lade__rnt_features(rnt_in *in)
{
	for (unsigned word = 0;; word++) {
		uint64_t flags = lade__rnt_int(in, 8);
		uint64_t bits = flags & INT64_MAX;
		if (bits)
			return lade__rnt_bad(in, LADE_E_UNSUPPORTED, "feature flag %d is not known",
			                     (int)(word * 63) + __builtin_ctzll(bits));
		if (!(flags >> 63) || !lade__rnt_ok(in))
			return in->fault->status;
	}
}
