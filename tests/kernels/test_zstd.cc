/*
 * test_zstd.cc: the Zstandard decoding kernel on the emulated warp against libzstd: what it encodes
 * at all levels, frames of many kinds, and damaged ones, every buffer at a guard page.
 *
 *     test_kernel_zstd [ROUNDS]      of 40 damaged frames, 15 without
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernel_test.h"
#include "guard.h"

#include "codec/zstd/kernels/zstd_blocks.cu"
#include "codec/zstd/kernels/zstd_decode.cu"
#include "codec/zstd/kernels/zstd_dict.cu"
#include "codec/zstd/kernels/zstd_execute.cu"

#include <zdict.h>
#include <zstd.h>

#include "guarded_batch.h"

/* What frames are encoded and decoded with; empty: nothing. */
static bytes dictionary;

/* What libzstd says. */
static verdict libzstd(const bytes &in, uint64_t cap)
{
	verdict v = {};
	v.out.resize(cap + 1);
	ZSTD_DCtx *d = ZSTD_createDCtx();
	size_t n = in.empty() ? (size_t)-1
	                      : ZSTD_decompress_usingDict(d, v.out.data(), cap, in.data(),
	                                                  in.size(), dictionary.data(),
	                                                  dictionary.size());
	ZSTD_freeDCtx(d);
	v.ok = !in.empty() && !ZSTD_isError(n);
	v.out.resize(v.ok ? n : 0);
	return v;
}

/* Chunks that libzstd takes and the kernel does not, and the other way. */
struct differences {
	size_t all, taken, stricter, laxer;
};

/* Whether blocks are decoded side by side; chunks that were, and right ones that were left. */
static bool side_by_side;
static size_t sided, kept_back;

template <typename F>
static void launch(const char *name, unsigned grid, unsigned block, uint64_t seed, F body,
                   size_t shared = 0)
{
	emu_config config = {.kernel = name, .grid = grid, .block = block};
	config.shared = shared;
	config.seed = seed;
	emu_result r = emu_launch(config, body);
	if (!r.ok)
		print_error("seed %llu: %s\n", (unsigned long long)seed, r.message);
	assert_true(r.ok);
}

#define UNITS_MORE 30 /* small blocks, too */

/* Decodes a batch by blocks side by side, with memory as gpu.c gives it; then what that leaves, as
 * 'own' says. */
static void decode_side_by_side(guarded_batch *t, const std::vector<uint64_t> &caps,
                                lade_zstd_room own, uint64_t seed)
{
	size_t n = caps.size();
	uint64_t all = 0, largest = 0;
	for (uint64_t cap : caps) {
		all += cap;
		largest = cap > largest ? cap : largest;
	}
	uint32_t units = (uint32_t)(all / LADE_ZSTD_UNIT_BYTES + UNITS_MORE * n);
	uint64_t size = LADE_ZSTD_POOL(all, units) - (all - largest) / 2;
	lade_zstd_counts counts = {};
	guard head = guard_new(n * sizeof(lade_zstd_head), 1), list = guard_new(4 * n, 1);
	guard unit = guard_new(units * sizeof(lade_zstd_unit), 1);
	guard sequences = guard_new(4 * units, 1), literals = guard_new(16 * units, 1);
	guard pool = guard_new(size / 16 * 16, 1);
	lade_zstd_plan plan = {&counts,
	                       (lade_zstd_head *)head.data,
	                       (lade_zstd_unit *)unit.data,
	                       (uint32_t *)list.data,
	                       (uint32_t *)sequences.data,
	                       (uint32_t *)literals.data,
	                       pool.data,
	                       size / 16 * 16,
	                       units,
	                       (uint32_t)largest,
	                       own.few,
	                       UNITS_MORE};
	lade_gpu_batch batch = t->batch;
	launch("find", (unsigned)(n + 3) / 4, 128, seed, [&] { lade_zstd_find(batch, plan); });
	if (own.few) {
		launch("read", 2, 32, seed, [&] { lade_zstd_read_blocks(plan); });
	} else {
		launch("sequences", 2, 32, seed, [&] { lade_zstd_read_block_sequences(plan); });
		launch("literals", 2, 32, seed, [&] { lade_zstd_read_block_literals(plan); });
	}
	if (seed % 4 == 3)
		launch("execute16", (unsigned)n, 512, seed,
		       [&] { lade_zstd_execute16(batch, plan); }, LADE_ZSTD_TEAM16_SHARED);
	else if (seed % 4 == 1)
		launch("execute8", (unsigned)n, 256, seed,
		       [&] { lade_zstd_execute8(batch, plan); });
	else
		launch("execute4", (unsigned)n, 128, seed,
		       [&] { lade_zstd_execute4(batch, plan); });
	sided += n - counts.listed;
	own.list = plan.list;
	own.listed = &counts.listed;
	batch.next = &counts.turn;
	launch("zstd", 1, LADE_ZSTD_THREADS, seed, [&] { lade_zstd_decode(batch, own); });
	for (uint32_t i = 0; i < counts.listed; i++)
		kept_back += t->status[plan.list[i]] == LADE_GPU_OK;
	for (guard *g : {&head, &list, &unit, &sequences, &literals, &pool})
		guard_free(g);
}

/*
 * Decodes the chunks in one launch, with room for 'room' bytes of literals a block; wants libzstd's
 * verdicts, but where 'd' counts those that differ.
 */
static void check_batch(const std::vector<bytes> &in, const std::vector<uint64_t> &caps,
                        uint32_t room, uint64_t seed, differences *d)
{
	size_t n = in.size();
	guarded_batch t(in, caps, seed);
	unsigned grid = n > 4 ? 2 : 1;
	if (seed % 3 == 2 && !side_by_side) { /* no counter: a block for each */
		t.batch.next = nullptr;
		grid = (unsigned)n;
	}
	guard literals = guard_new((size_t)grid * room, 1);
	guard of = guard_copy(dictionary.data(), dictionary.size(), seed & 1);
	guard tables = guard_new(sizeof(lade_zstd_prepared), 1);
	lade_zstd_dict dict = {of.data, (lade_zstd_prepared *)tables.data,
	                       (uint32_t)dictionary.size(), 0};
	lade_zstd_room own = {literals.data, room, (uint32_t)seed & 1, nullptr, nullptr};
	if (!dictionary.empty()) {
		launch("prepare", 1, 32, seed, [&] { lade_zstd_prepare(dict); });
		launch("zstd", grid, LADE_ZSTD_THREADS, seed,
		       [&] { lade_zstd_decode_dict(t.batch, own, dict); });
	} else if (side_by_side) {
		decode_side_by_side(&t, caps, own, seed);
	} else {
		launch("zstd", grid, LADE_ZSTD_THREADS, seed,
		       [&] { lade_zstd_decode(t.batch, own); });
	}
	for (size_t i = 0; i < n; i++) {
		verdict want = libzstd(in[i], caps[i]);
		bool ok = t.status[i] == LADE_GPU_OK;
		bool same =
			want.ok == ok &&
			(!ok ||
		         (t.got[i] == want.out.size() &&
		          (t.got[i] == 0 || memcmp(t.to[i].data, want.out.data(), t.got[i]) == 0)));
		if (d) {
			d->all++;
			d->taken += ok;
			d->stricter += want.ok && !ok;
			d->laxer += ok && !want.ok;
			same |= want.ok != ok;
		}
		if (!same) {
			size_t at = 0;
			while (at < t.got[i] && at < want.out.size() &&
			       t.to[i].data[at] == want.out[at])
				at++;
			print_error("seed %llu, chunk %zu of %zu bytes, room for %llu: status %u, "
			            "%llu bytes, differs at %zu; want %s, %zu\n",
			            (unsigned long long)seed, i, in[i].size(),
			            (unsigned long long)caps[i], t.status[i],
			            (unsigned long long)t.got[i], at, want.ok ? "ok" : "an error",
			            want.out.size());
			for (size_t b = 0; b < in[i].size() && b < 400; b++)
				print_error("%02x", in[i][b]);
			print_error("\n");
		}
		assert_true(same);
		if (!ok)
			assert_int_equal(t.got[i], 0);
	}
	guard_free(&literals);
	guard_free(&tables);
	guard_free(&of);
}

/* A frame of 'raw'; 'how' has options of its header. */
static bytes encode(const bytes &raw, int level, uint64_t how)
{
	bytes out(ZSTD_compressBound(raw.size()));
	ZSTD_CCtx *c = ZSTD_createCCtx();
	ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, level);
	ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, how & 1);
	ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag, !(how & 2));
	if (how & 4)
		ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, 10);
	ZSTD_CCtx_setParameter(c, ZSTD_c_dictIDFlag, !(how & 16));
	ZSTD_CCtx_loadDictionary(c, dictionary.data(), dictionary.size());
	size_t n = 0;
	if (how & 8) { /* blocks here and there */
		ZSTD_inBuffer in = {raw.data(), 0, 0};
		ZSTD_outBuffer o = {out.data(), out.size(), 0};
		for (size_t step = 1; in.size < raw.size(); step += step / 2 + 1) {
			in.size = in.size + step < raw.size() ? in.size + step : raw.size();
			if (o.size - o.pos < 400)
				break;
			assert_false(ZSTD_isError(
				ZSTD_compressStream2(c, &o, &in, ZSTD_e_flush)));
		}
		in.size = raw.size();
		assert_int_equal(ZSTD_compressStream2(c, &o, &in, ZSTD_e_end), 0);
		n = o.pos;
	} else {
		n = ZSTD_compress2(c, out.data(), out.size(), raw.data(), raw.size());
	}
	assert_false(ZSTD_isError(n));
	ZSTD_freeCCtx(c);
	out.resize(n);
	return out;
}

static uint32_t room_of(const std::vector<uint64_t> &caps)
{
	uint64_t most = 256;
	for (uint64_t cap : caps)
		most = cap > most ? cap : most;
	return most > LADE_ZSTD_LITERALS_MAX ? LADE_ZSTD_LITERALS_MAX
	                                     : (uint32_t)((most + 255) / 256 * 256);
}

static void what_libzstd_encodes(void **)
{
	rng r = {0x1234567};
	static const int levels[] = {-5, 1, 2, 3, 5, 7, 9, 12, 15, 17, 19};
	static const size_t sizes[] = {0, 1, 2, 63, 129, 1000, 1025, 4000, 20000};
	uint64_t seed = 0;
	for (int level : levels) {
		std::vector<bytes> in;
		std::vector<uint64_t> caps;
		for (size_t size : sizes) {
			bytes raw = make_data(&r, size);
			in.push_back(encode(raw, level, rng_below(&r, 4)));
			caps.push_back(size + rng_below(&r, 2) * rng_below(&r, 30));
			if (size) { /* and where there is a byte too little */
				in.push_back(in.back());
				caps.push_back(size - 1);
			}
		}
		check_batch(in, caps, room_of(caps), seed++, nullptr);
	}
}

/* Several blocks, unknown sizes, checksums, small windows; frames in a row, skippable ones. */
static void frames_of_many_kinds(void **)
{
	rng r = {0x7654321};
	for (uint64_t seed = 0; seed < 6; seed++) {
		std::vector<bytes> in;
		std::vector<uint64_t> caps;
		for (uint64_t how = 0; how < 16; how++) {
			bytes raw = make_data(&r, 1 + rng_below(&r, 9000));
			in.push_back(encode(raw, 1 + (int)rng_below(&r, 19), how));
			caps.push_back(raw.size());
		}
		bytes all;
		uint64_t sum = 0;
		for (int k = 0; k < 5; k++) {
			static const uint8_t skip[] = {0x53, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 1, 2, 3};
			bytes raw = make_data(&r, rng_below(&r, 3000));
			bytes one = encode(raw, 3, rng_below(&r, 16));
			all.insert(all.end(), one.begin(), one.end());
			if (k & 1)
				all.insert(all.end(), skip, skip + sizeof skip);
			sum += raw.size();
		}
		in.push_back(all);
		caps.push_back(sum);
		check_batch(in, caps, seed & 1 ? room_of(caps) : LADE_ZSTD_LITERALS_MAX, seed,
		            nullptr);
	}
}

/* Codes of lengths: what they begin with, and their extra bits (RFC 8878, 3.1.1.3.2.1.1). */
struct code {
	uint32_t base, bits;
};

static code length_code(bool match, uint32_t c)
{
	static const uint32_t ends[2][2] = {{16, 25}, {32, 43}}; /* of 0 bits, and of the table */
	static const uint8_t bits[] = {1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5};
	uint32_t plain = ends[match][0], base = match ? 3 : 0;
	if (c < plain)
		return code{base + c, 0};
	base += plain;
	for (uint32_t k = plain;; k++) {
		uint32_t own = !match && k == 24 ? 4 : k < ends[match][1] ? bits[k - plain]
		               : match           ? k - 36
		                                 : k - 19;
		if (!match && k == 25)
			base = 64;
		if (k == c)
			return code{base, own};
		base += 1u << own;
	}
}

/* Makes blocks, of which the decoded sizes are known: a generator of ours, which writes what no
 * encoder does. */
struct generator {
	rng *r;
	bytes out;
	uint64_t made;
	uint32_t most; /* bytes of a block */
	uint32_t codes[3];
	bool have; /* codes that may be repeated */
};

static void put(bytes *to, uint64_t v, int size)
{
	for (int k = 0; k < size; k++)
		to->push_back((uint8_t)(v >> (8 * k)));
}

static void put_block(generator *g, uint32_t kind, uint32_t size, bool last, const bytes &content)
{
	put(&g->out, size << 3 | kind << 1 | last, 3);
	g->out.insert(g->out.end(), content.begin(), content.end());
}

/* Literals of 'size' bytes, as they are or one again and again, in any form of header that fits. */
static void put_literals(generator *g, bytes *to, uint32_t size)
{
	uint32_t kind = (uint32_t)rng_below(g->r, 2), least = size < 32 ? 0 : size < 4096 ? 1 : 2;
	uint32_t form = least + (uint32_t)rng_below(g->r, 3 - least);
	if (form == 0)
		put(to, size << 3 | kind, 1);
	else
		put(to, size << 4 | (form == 1 ? 1 : 3) << 2 | kind, form + 1);
	for (uint32_t i = 0; i < (kind ? 1 : size); i++)
		to->push_back((uint8_t)rng_below(g->r, 7));
}

/* A block of sequences that all have the same codes, by tables of one symbol or repeated ones. */
static void put_sequences(generator *g, bool last)
{
	uint32_t n = 1 + (uint32_t)rng_below(g->r, rng_below(g->r, 4) ? 6 : 400), used = 0;
	uint32_t offset_most = 0;
	bool repeat = g->have && rng_below(g->r, 2);
	while ((4u << offset_most) - 4 <= g->made && offset_most < 20)
		offset_most++;
	if (!repeat) {
		g->codes[0] = (uint32_t)rng_below(g->r, rng_below(g->r, 3) ? 20 : 36);
		g->codes[1] = (uint32_t)rng_below(g->r, offset_most + 1);
		g->codes[2] = (uint32_t)rng_below(g->r, rng_below(g->r, 3) ? 40 : 53);
	}
	code l = length_code(false, g->codes[0]), m = length_code(true, g->codes[2]);
	uint32_t each = l.base + (1u << l.bits) + m.base + (1u << m.bits);
	if (each > g->most / 2)
		return put_block(g, 0, 0, last, {});
	n = n < g->most / 2 / each ? n : g->most / 2 / each;
	std::vector<bool> bits; /* read from their end */
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t count[] = {l.bits, m.bits, g->codes[1]};
		for (int k = 0; k < 3; k++) {
			uint32_t v = (uint32_t)rng_below(g->r, 1ull << count[k]);
			for (uint32_t b = 0; b < count[k]; b++)
				bits.push_back(v >> b & 1);
			used += k == 0 ? l.base + v : 0;
			g->made += k == 0 ? l.base + v : k == 1 ? m.base + v : 0;
		}
	}
	uint32_t rest = (uint32_t)rng_below(g->r, g->most / 4 < 2000 ? g->most / 4 : 2000);
	bytes content;
	put_literals(g, &content, used + rest);
	g->made += rest;
	if (n < 128)
		put(&content, n, 1);
	else
		put(&content, ((n >> 8) + 128) | (n & 255) << 8, 2);
	put(&content, repeat ? 0xFC : 0x54, 1);
	for (int k = 0; k < (repeat ? 0 : 3); k++)
		put(&content, g->codes[k], 1);
	bits.push_back(true);
	for (size_t at = 0; at < bits.size(); at++) {
		if (at % 8 == 0)
			content.push_back(0);
		content.back() |= (uint8_t)(bits[at] << (at % 8));
	}
	g->have = true;
	put_block(g, 2, (uint32_t)content.size(), last, content);
}

/* Frames of every window that a header can state, of raw blocks, of one byte again and again, of
 * any size up to a block's most, and of sequences with all codes. */
static void frames_of_every_window(void **)
{
	rng r = {0x3141};
	size_t taken = 0, all = 0;
	for (uint32_t low = 0; low < 8; low++) {
		std::vector<bytes> in;
		std::vector<uint64_t> caps;
		for (uint32_t window = low; window < 176; window += 8) {
			uint64_t size = ((uint64_t)1 << (10 + window / 8)) / 8 * (8 + window % 8);
			generator g = {&r, {}, 0, 0, {}, false};
			g.most = size < LADE_ZSTD_BLOCK_MAX ? (uint32_t)size : LADE_ZSTD_BLOCK_MAX;
			put(&g.out, LADE_ZSTD_MAGIC, 4);
			put(&g.out, window << 8, 2);
			for (uint64_t left = 1 + rng_below(&r, 6); left; left--) {
				uint64_t kind = g.made ? rng_below(&r, 6) : rng_below(&r, 2);
				uint64_t any = rng_below(&r, 12) ? 300 : g.most;
				uint32_t n = 16 + (uint32_t)rng_below(&r, any - 15);
				if (kind > 1) {
					put_sequences(&g, left == 1);
					continue;
				}
				put_block(&g, (uint32_t)kind, n, left == 1,
				          bytes(kind ? 1 : n, (uint8_t)rng_next(&r)));
				g.made += n;
			}
			in.push_back(g.out);
			caps.push_back(g.made);
			verdict v = libzstd(g.out, g.made);
			taken += v.ok && v.out.size() == g.made;
			all++;
		}
		check_batch(in, caps, room_of(caps), low, nullptr);
	}
	print_message("%zu frames, libzstd takes %zu\n", all, taken);
	assert_true(taken > all * 3 / 4);
}

/* More than a block; repeat tables, treeless literals, matches from far. */
static void large_chunks(void **)
{
	rng r = {0x99};
	std::vector<bytes> in;
	std::vector<uint64_t> caps;
	for (uint64_t k = 0; k < 6; k++) {
		bytes raw;
		while (raw.size() < 300000) {
			bytes more = make_data(&r, 1 + rng_below(&r, 40000));
			raw.insert(raw.end(), more.begin(), more.end());
		}
		if (k >= 4) /* few matches: literals whose streams are long */
			for (uint8_t &b : raw)
				b = (uint8_t)(rng_below(&r, 90) + rng_below(&r, 90));
		in.push_back(encode(raw, k < 3 ? 3 : 12, k));
		caps.push_back(raw.size());
	}
	check_batch(in, caps, LADE_ZSTD_LITERALS_MAX, 1, nullptr);
}

static uint64_t rounds = 15;

static void damaged_frames(void **)
{
	rng r = {0xbad5eed};
	differences d = {};
	for (uint64_t round = 0; round < rounds; round++) {
		std::vector<bytes> in;
		std::vector<uint64_t> caps;
		for (int i = 0; i < 40; i++) {
			bytes raw = make_data(&r, 1 + rng_below(&r, 3000));
			bytes s = encode(raw, 1 + (int)rng_below(&r, 19), rng_below(&r, 16));
			uint64_t how = rng_below(&r, 8);
			if (how == 0)
				s.resize(rng_below(&r, s.size() + 1));
			else if (how == 1)
				for (size_t at = 4; at < s.size(); at++)
					s[at] = (uint8_t)rng_next(&r);
			else if (how == 2)
				for (size_t at = rng_below(&r, s.size()), n = rng_below(&r, 40);
				     n-- && at < s.size();)
					s[at++] = 0xFF;
			else
				for (uint64_t n = 1 + rng_below(&r, 3); n; n--)
					s[rng_below(&r,
					            how < 5 && s.size() > 60 ? 60 : s.size())] ^=
						(uint8_t)(1u << rng_below(&r, 8));
			in.push_back(s);
			caps.push_back(raw.size() + (rng_below(&r, 3) ? 0 : rng_below(&r, 3000)));
		}
		check_batch(in, caps, room_of(caps), round, &d);
	}
	print_message("%zu damaged frames, %zu taken; %zu that libzstd takes are refused, %zu the "
	              "other way\n",
	              d.all, d.taken, d.stricter, d.laxer);
	assert_true(d.taken > d.all / 30 && d.taken < d.all);
	assert_true(d.stricter < d.all / 50);
	assert_int_equal(d.laxer, 0);
}

/* The rule of RFC 8878, 3.1.1.5, one sequence after the other. */
static void repeat_one_by_one(uint32_t *rep, const uint32_t *offset, const bool *literals,
                              uint32_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t which = offset[i] > 3 ? 3 : offset[i] - 1 + !literals[i];
		out[i] = offset[i] > 3 ? offset[i] - 3 : which < 3 ? rep[which] : rep[0] - 1;
		if (which >= 2)
			rep[2] = rep[1];
		if (which >= 1)
			rep[1] = rep[0];
		rep[0] = out[i];
	}
}

/* Rounds of 32 sequences and of fewer, with none to 32 new offsets, with and without others that
 * the short way of lade_zstd_offset() does not take. */
static void offsets_that_repeat(void **)
{
	rng r = {0x0ff5e7};
	uint32_t rep[3] = {1000, 400, 8000};
	lade_zstd_map last = {{rep[0], rep[1], rep[2]}};
	for (int round = 0; round < 300; round++) {
		uint32_t n = rng_below(&r, 4) ? 32 : 1 + (uint32_t)rng_below(&r, 32);
		uint32_t offset[32], want[32], got[32];
		bool literals[32];
		uint64_t fresh = 1 + rng_below(&r, 12), other = rng_below(&r, 3) ? 0 : 8;
		for (uint32_t i = 0; i < n; i++) {
			bool any = other && rng_below(&r, other) == 0;
			literals[i] = !any || rng_below(&r, 2);
			offset[i] = any ? 1 + (uint32_t)rng_below(&r, 3) : 1;
			if (rng_below(&r, fresh * 4) == 0)
				offset[i] = 1000 + (uint32_t)rng_below(&r, 100000);
		}
		repeat_one_by_one(rep, offset, literals, want, n);
		lade_zstd_map next;
		emu_result e = emu_launch({.kernel = "offsets", .grid = 1, .block = 32}, [&] {
			uint32_t lane = threadIdx.x, i = lane < n ? lane : 0;
			lade_zstd_map own = last;
			uint32_t at = lade_zstd_offset(&own, lane < n ? offset[i] : 0,
			                               lane < n && literals[i], lane < n, lane);
			if (lane < n)
				got[i] = at;
			if (lane == 0)
				next = own;
		});
		assert_true(e.ok);
		assert_memory_equal(got, want, n * sizeof(*got));
		last = next;
		assert_memory_equal(last.to, rep, sizeof(rep));
	}
}

/* A dictionary of 'size' bytes at most that libzstd trains. */
static bytes trained(rng *r, size_t size)
{
	bytes samples, out(size);
	std::vector<size_t> sizes;
	for (int i = 0; i < 200; i++) {
		bytes one = make_data(r, 400 + rng_below(r, 2000));
		samples.insert(samples.end(), one.begin(), one.end());
		sizes.push_back(one.size());
	}
	size_t n = ZDICT_trainFromBuffer(out.data(), size, samples.data(), sizes.data(),
	                                 (unsigned)sizes.size());
	assert_false(ZDICT_isError(n));
	out.resize(n);
	return out;
}

/* Bytes that are in the dictionary here and there, and at its end. */
static bytes with_dictionary(rng *r, size_t size)
{
	bytes out;
	while (out.size() < size) {
		size_t from = rng_below(r, dictionary.size());
		size_t n = 1 + rng_below(r, 200), left = dictionary.size() - from;
		if (rng_below(r, 4) == 0) { /* over its end */
			uint64_t most = dictionary.size() < 40 ? 1 : 30;
			from = dictionary.size() - 1 - rng_below(r, most);
			out.insert(out.end(), dictionary.begin() + (long)from, dictionary.end());
			out.insert(out.end(), out.begin(),
			           out.begin() + (long)(n < out.size() ? n : out.size()));
			continue;
		}
		n = n < left ? n : left;
		out.insert(out.end(), dictionary.begin() + (long)from,
		           dictionary.begin() + (long)(from + n));
		bytes more = make_data(r, rng_below(r, 30));
		out.insert(out.end(), more.begin(), more.end());
	}
	out.resize(size);
	return out;
}

static void check_dictionary(rng *r, uint64_t seed, differences *d)
{
	std::vector<bytes> in;
	std::vector<uint64_t> caps;
	for (uint64_t how = 0; how < 32; how += 1 + rng_below(r, 4)) {
		bytes raw = with_dictionary(r, 1 + rng_below(r, how == 8 ? 150000 : 6000));
		bytes one = encode(raw, 1 + (int)rng_below(r, 19), how);
		if (how & 1) {
			bytes two = encode(raw, 3, how);
			one.insert(one.end(), two.begin(), two.end());
		}
		for (uint64_t n = d ? 1 + rng_below(r, 3) : 0; n; n--)
			one[rng_below(r, one.size())] ^= (uint8_t)(1u << rng_below(r, 8));
		in.push_back(one);
		caps.push_back(raw.size() * (how & 1 ? 2 : 1));
	}
	check_batch(in, caps, room_of(caps), seed, d);
}

static void dictionaries(void **)
{
	rng r = {0xd1c7};
	differences d = {};
	for (uint64_t seed = 0; seed < 12; seed++) {
		static const size_t sizes[] = {1, 7, 8, 300, 5000, 40000};
		dictionary = seed & 1 ? trained(&r, 2000 + rng_below(&r, 30000))
		                      : make_data(&r, sizes[seed / 2]);
		check_dictionary(&r, seed, nullptr);
		check_dictionary(&r, seed, &d);
	}
	assert_true(d.taken < d.all && d.stricter <= d.all / 30 && d.laxer == 0);
	dictionary.clear();
}

/* Frames that name another dictionary, or that are given none; dictionaries that are damaged. */
static void wrong_dictionaries(void **)
{
	rng r = {0xd1c8};
	bytes good = trained(&r, 6000), other = trained(&r, 6000);
	size_t refused = 0;
	for (uint64_t seed = 0; seed < 40; seed++) {
		dictionary = good;
		std::vector<bytes> in = {encode(with_dictionary(&r, 500), 3, 0),
		                         encode(with_dictionary(&r, 500), 3, 16)};
		std::vector<uint64_t> caps = {500, 500};
		if (seed == 0) {
			dictionary.clear();
		} else if (seed == 1) {
			dictionary = other;
		} else {
			dictionary.resize(seed < 12 ? rng_below(&r, 300) : good.size());
			if (dictionary.size() > 300)
				dictionary[8 + rng_below(&r, 200)] ^=
					(uint8_t)(1u << rng_below(&r, 8));
		}
		differences d = {};
		check_batch(in, caps, 512, seed, &d);
		assert_int_equal(d.laxer, 0);
		refused += d.taken == 0;
	}
	assert_true(refused > 10);
	dictionary.clear();
}

/* The tests so far, by blocks side by side. */
static void side_by_side_as_well(void **)
{
	side_by_side = true;
	what_libzstd_encodes(NULL);
	frames_of_many_kinds(NULL);
	frames_of_every_window(NULL);
	large_chunks(NULL);
	damaged_frames(NULL);
	side_by_side = false;
	print_message("%zu chunks side by side, %zu right ones left\n", sided, kept_back);
	assert_true(kept_back < sided / 10);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		rounds = strtoull(argv[1], NULL, 0);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(offsets_that_repeat),
		cmocka_unit_test(what_libzstd_encodes),
		cmocka_unit_test(frames_of_many_kinds),
		cmocka_unit_test(frames_of_every_window),
		cmocka_unit_test(large_chunks),
		cmocka_unit_test(damaged_frames),
		cmocka_unit_test(dictionaries),
		cmocka_unit_test(wrong_dictionaries),
		cmocka_unit_test(side_by_side_as_well),
	};
	return cmocka_run_group_tests_name("kernel_zstd", tests, NULL, NULL);
}
