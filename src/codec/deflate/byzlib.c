/*
 * byzlib.c: Deflate streams by zlib: those with a dictionary, all with LADE_BATCH_STRICT, and those
 * that libdeflate refused, to say why.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/deflate/deflate.h"

/* The bytes of a dictionary that a 32 KiB window can reach. */
#define WINDOW ((size_t)32 * 1024)

/* zlib counts in unsigned int: a long buffer is given in pieces of at most this. */
#define PIECE ((size_t)1 << 30)

static uInt piece(size_t size)
{
	return (uInt)(size < PIECE ? size : PIECE);
}

static voidpf z_alloc(voidpf opaque, uInt items, uInt size)
{
	/* Of 32 bits each, so that the product fits in 64. */
	return lade__sized_alloc((const lade_allocator *)opaque, (size_t)items * size);
}

static void z_free(voidpf opaque, voidpf ptr)
{
	lade__sized_free((const lade_allocator *)opaque, ptr);
}

static z_stream z_fresh(const lade_allocator *host)
{
	/* zlib only hands the pointer back to the two functions. */
	return (z_stream){.zalloc = z_alloc, .zfree = z_free, .opaque = (voidpf)(uintptr_t)host};
}

/* ---- encoding --------------------------------------------------------------------------- */

/* Makes the stream ready for a level and a container. */
static bool deflater_set(lade__deflater *state, int level, int bits)
{
	if (state->z_ready && state->z_level == level && state->z_bits == bits)
		return deflateReset(&state->z) == Z_OK;
	if (state->z_ready)
		deflateEnd(&state->z);
	state->z = z_fresh(state->host);
	state->z_ready =
		deflateInit2(&state->z, level, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY) == Z_OK;
	state->z_level = level;
	state->z_bits = bits;
	return state->z_ready;
}

lade_status lade__deflate_with_dict(const lade_run *run, int bits, lade_cspan src, lade_span dst,
                                    size_t *dst_size, lade_error *err)
{
	lade__deflater *state = run->state;
	z_stream *z = &state->z;
	int level = lade__deflate_level(run->stage);
	lade_cspan dict = lade_dict_data(run->dict);
	const uint8_t *in = lade__bytes(src);
	uint8_t nothing;
	uint8_t *out = lade__room(dst, &nothing);
	size_t in_left = src.size, out_left = dst.size;
	if (dict.size > PIECE)
		return lade_fail(err, LADE_E_LIMIT, LADE_NO_OFFSET,
		                 "%s: a dictionary of %zu bytes, at most %zu are taken",
		                 run->stage->algorithm->name, dict.size, PIECE);
	/* zlib's scale ends at 9. */
	if (!deflater_set(state, level > 9 ? 9 : level, bits) ||
	    deflateSetDictionary(z, dict.data, (uInt)dict.size) != Z_OK)
		return lade__deflate_nomem(run, err);
	z->next_in = in;
	z->next_out = out;
	int result = Z_OK;
	while (result == Z_OK) {
		z->avail_in = piece(in_left);
		z->avail_out = piece(out_left);
		uInt in_had = z->avail_in, out_had = z->avail_out;
		result = deflate(z, in_left > in_had ? Z_NO_FLUSH : Z_FINISH);
		in_left -= in_had - z->avail_in;
		out_left -= out_had - z->avail_out;
		if (out_left == 0 && result == Z_OK)
			result = Z_BUF_ERROR;
	}
	if (result != Z_STREAM_END)
		return lade__deflate_nospace(
			run, run->stage->algorithm->bound(run->stage, src.size), dst.size, err);
	*dst_size = dst.size - out_left;
	return LADE_OK;
}

/* ---- decoding --------------------------------------------------------------------------- */

static bool inflater_set(lade__inflater *state)
{
	if (state->z_ready)
		return inflateReset2(&state->z, -15) == Z_OK;
	state->z = z_fresh(state->host);
	state->z_ready = inflateInit2(&state->z, -15) == Z_OK;
	return state->z_ready;
}

static lade_status no_memory(const char *name, lade_error *err)
{
	return lade_fail(err, LADE_E_NOMEM, LADE_NO_OFFSET, "%s: no memory to decode", name);
}

static lade_status bad_stream(const z_stream *z, const char *name, uint64_t end, lade_error *err)
{
	return lade_fail(err, LADE_E_CORRUPT, end, "%s: the stream is bad before %llu: %s", name,
	                 (unsigned long long)end, z->msg ? z->msg : "zlib gives no reason");
}

static lade_status cut_stream(const char *name, const lade__deflated *s, lade_error *err)
{
	return lade_fail(err, LADE_E_TRUNCATED, s->off + s->size,
	                 "%s: the stream at %llu does not end in the %zu bytes left", name,
	                 (unsigned long long)s->off, s->size);
}

lade_status lade__inflate_by_zlib(lade__inflater *state, const char *name, lade__deflated *s,
                                  lade_error *err)
{
	z_stream *z = &state->z;
	size_t in_left = s->size, out_left = s->cap;
	/* When the destination is full, one byte more says whether the stream has ended there. */
	uint8_t probe;
	if (!inflater_set(state))
		return no_memory(name, err);
	lade_cspan data = s->dict ? lade_dict_data(s->dict) : (lade_cspan){0};
	size_t skip = data.size > WINDOW ? data.size - WINDOW : 0;
	if (s->dict && inflateSetDictionary(z, (const uint8_t *)data.data + skip,
	                                 (uInt)(data.size - skip)) != Z_OK)
		return no_memory(name, err);
	z->next_in = s->src;
	int result = Z_OK;
	while (result == Z_OK) {
		bool full = out_left == 0;
		z->next_out = full ? &probe : s->dst + (s->cap - out_left);
		z->avail_in = piece(in_left);
		z->avail_out = full ? 1 : piece(out_left);
		uInt in_had = z->avail_in, out_had = z->avail_out;
		result = inflate(z, Z_NO_FLUSH);
		in_left -= in_had - z->avail_in;
		if (full && z->avail_out == 0)
			return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
			                 "%s: want more than %zu bytes, have %zu", name,
			                 s->done + s->cap, s->done + s->cap);
		if (!full)
			out_left -= out_had - z->avail_out;
	}
	if (result == Z_BUF_ERROR)
		return cut_stream(name, s, err);
	if (result == Z_MEM_ERROR)
		return no_memory(name, err);
	s->used = s->size - in_left;
	s->written = s->cap - out_left;
	return result == Z_STREAM_END ? LADE_OK : bad_stream(z, name, s->off + s->used, err);
}

lade_status lade__inflate_diagnose(lade__inflater *state, const char *name, const lade__deflated *s,
                                   bool full, lade_error *err)
{
	uint8_t out[8 * 1024];
	z_stream *z = &state->z;
	size_t in_left = s->size;
	uint64_t total = 0;
	/* A small stream can decode to a thousand times its size: the count stops here. */
	uint64_t enough = (uint64_t)s->cap + s->cap / 2 + 1024 * 1024;
	if (!inflater_set(state))
		return no_memory(name, err);
	z->next_in = s->src;
	int result = Z_OK;
	while (result == Z_OK && total <= enough) {
		z->next_out = out;
		z->avail_out = sizeof out;
		z->avail_in = piece(in_left);
		uInt in_had = z->avail_in;
		result = inflate(z, Z_NO_FLUSH);
		in_left -= in_had - z->avail_in;
		total += sizeof out - z->avail_out;
	}
	if (result == Z_BUF_ERROR)
		return cut_stream(name, s, err);
	if (result == Z_MEM_ERROR)
		return no_memory(name, err);
	if (result != Z_STREAM_END && result != Z_OK && !full)
		return bad_stream(z, name, s->off + s->size - in_left, err);
	if (full && total < s->cap)
		total = s->cap;
	if (full || total > s->cap)
		return lade_fail(err, LADE_E_NOSPACE, LADE_NO_OFFSET,
		                 "%s: want %s%llu bytes, have %zu", name,
		                 result == Z_STREAM_END ? "" : "more than ",
		                 (unsigned long long)(s->done + total), s->done + s->cap);
	return lade_fail(err, LADE_E_CORRUPT, s->off,
	                 "%s: the stream at %llu has a code that libdeflate refuses", name,
	                 (unsigned long long)s->off);
}
