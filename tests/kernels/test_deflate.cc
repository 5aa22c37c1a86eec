/*
 * test_deflate.cc: the decoding kernels of Deflate, zlib and gzip on the emulated warp, against
 * zlib: what zlib encodes, random streams of all kinds, members, headers, and damaged ones, every
 * buffer at a guard page, in all shapes; and the kernel that finds sizes.
 *
 *     test_kernel_deflate [ROUNDS]      of 40 damaged streams, 12 without
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "kernel_test.h"
#include "guard.h"

#include "codec/deflate/kernels/deflate_decode.cu"

#define ZLIB_CONST
#include <zlib.h>

#include <string>

#include "deflate_streams.h"
#include "guarded_batch.h"

/* ---- what zlib says -------------------------------------------------------------------------- */

static const int window_bits[] = {-15, 15, 31}; /* by format */

static uint32_t status_of(const z_stream &z, int result)
{
	const char *m = z.msg ? z.msg : "";
	if (result == Z_STREAM_END)
		return LADE_OK;
	if (result == Z_NEED_DICT)
		return LADE_E_DICT;
	if (result == Z_BUF_ERROR || result == Z_OK)
		return LADE_E_TRUNCATED;
	if (strstr(m, "data check") || strstr(m, "length check") || strstr(m, "crc mismatch"))
		return LADE_E_CHECKSUM;
	if (strstr(m, "method") || strstr(m, "window size") || strstr(m, "flags"))
		return LADE_E_UNSUPPORTED;
	return LADE_E_CORRUPT;
}

struct zlib_verdict {
	uint32_t status;
	bytes out;
};

/* One member after the other, with zeros behind gzip's last; 'cap' bytes in all. */
static zlib_verdict zlib_says(const bytes &in, uint64_t cap, uint32_t format)
{
	zlib_verdict v = {};
	v.out.resize(cap + 1);
	size_t at = 0, done = 0;
	bool more = true;
	while (more) {
		z_stream z = {};
		assert_int_equal(inflateInit2(&z, window_bits[format]), Z_OK);
		z.next_in = in.data() + at;
		z.avail_in = (uInt)(in.size() - at);
		z.next_out = v.out.data() + done;
		z.avail_out = (uInt)(cap + 1 - done);
		int result = inflate(&z, Z_FINISH);
		at = in.size() - z.avail_in;
		done = cap + 1 - z.avail_out;
		v.status = done > cap ? (uint32_t)LADE_E_NOSPACE : status_of(z, result);
		inflateEnd(&z);
		more = false;
		if (v.status == LADE_OK && at < in.size()) {
			if (format != LADE_DEFLATE_GZIP)
				v.status = LADE_E_CORRUPT;
			else
				for (size_t k = at; k < in.size(); k++)
					more |= in[k] != 0;
		}
	}
	v.out.resize(v.status == LADE_OK ? done : 0);
	return v;
}

/* ---- launches -------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	unsigned warps;
	void (*run)(lade_gpu_batch batch, lade_deflate_room room);
} kernels[] = {
	{"solo", 1, lade_deflate_decode_solo},
	{"team2", 2, lade_deflate_decode_team2},
	{"team4", 4, lade_deflate_decode_team4},
	{"team8", 8, lade_deflate_decode_team8},
};

struct differences {
	size_t all, taken, reasons;
};

static void show(const bytes &in)
{
	for (size_t b = 0; b < in.size() && b < 400; b++)
		print_error("%02x", in[b]);
	print_error("\n");
}

/* Decodes the chunks in one launch of kernel 'k', each lane with room for so many literals and
 * tokens; wants zlib's verdicts.  'd' counts where the reasons differ, NULL: they must not. */
static void check_batch(const std::vector<bytes> &in, const std::vector<uint64_t> &caps,
                        uint32_t format, size_t k, lade_deflate_room room, uint64_t seed,
                        differences *d)
{
	size_t n = in.size();
	guarded_batch t(in, caps, seed);
	emu_config config = {
		.kernel = kernels[k].name, .grid = n > 4 ? 2u : 1u, .block = 32 * kernels[k].warps};
	if (seed % 3 == 2) { /* no counter: a block for each */
		t.batch.next = nullptr;
		config.grid = (unsigned)n;
	}
	size_t lane = room.lane;
	guard memory = guard_new((size_t)config.grid.x * config.block.x * lane, 1);
	room.memory = memory.data;
	room.format = format;
	config.seed = seed;
	emu_result r = emu_launch(config, [&] { kernels[k].run(t.batch, room); });
	if (!r.ok)
		print_error("seed %llu: %s\n", (unsigned long long)seed, r.message);
	assert_true(r.ok);
	for (size_t i = 0; i < n; i++) {
		zlib_verdict want = zlib_says(in[i], caps[i], format);
		bool ok = t.status[i] == LADE_GPU_OK;
		bool same = (want.status == LADE_OK) == ok && t.got[i] == want.out.size() &&
		            (!ok || t.got[i] == 0 ||
		             memcmp(t.to[i].data, want.out.data(), t.got[i]) == 0);
		if (d) {
			d->all++;
			d->taken += ok;
			d->reasons += t.status[i] != want.status;
		}
		if (!same || (!d && t.status[i] != want.status)) {
			size_t at = 0;
			while (at < t.got[i] && at < want.out.size() &&
			       t.to[i].data[at] == want.out[at])
				at++;
			print_error("%s, seed %llu, format %u, chunk %zu of %zu bytes, room for "
			            "%llu: status %u, %llu bytes, differs at %zu; want %u, %zu\n",
			            kernels[k].name, (unsigned long long)seed, format, i,
			            in[i].size(), (unsigned long long)caps[i], t.status[i],
			            (unsigned long long)t.got[i], at, want.status, want.out.size());
			show(in[i]);
			same = false;
		}
		assert_true(same);
	}
	guard_free(&memory);
}

/* The kernel that finds sizes: what zlib says with any room, but for checksums of the output. */
static void check_sizes(const std::vector<bytes> &in, uint32_t format, uint64_t seed)
{
	size_t n = in.size();
	std::vector<uint64_t> caps(n, 0);
	guarded_batch t(in, caps, seed);
	t.batch.next = nullptr;
	t.batch.dst = nullptr;
	t.batch.dst_cap = nullptr;
	emu_config config = {.kernel = "size", .grid = (unsigned)n, .block = 32};
	config.seed = seed;
	lade_deflate_room room = {nullptr, 0, 31, format, 0};
	emu_result r = emu_launch(config, [&] { lade_deflate_size(t.batch, room); });
	if (!r.ok)
		print_error("seed %llu: %s\n", (unsigned long long)seed, r.message);
	assert_true(r.ok);
	for (size_t i = 0; i < n; i++) {
		zlib_verdict want = zlib_says(in[i], 1 << 22, format);
		if (want.status == LADE_E_CHECKSUM)
			continue;
		if (t.status[i] != want.status || t.got[i] != want.out.size()) {
			print_error("size, seed %llu, format %u, chunk %zu: status %u, %llu; want "
			            "%u, %zu\n",
			            (unsigned long long)seed, format, i, t.status[i],
			            (unsigned long long)t.got[i], want.status, want.out.size());
			show(in[i]);
		}
		assert_int_equal(t.status[i], want.status);
		assert_int_equal(t.got[i], want.out.size());
	}
}

static lade_deflate_room room_of(rng *r, size_t kernel)
{
	uint32_t most = LADE_DEFLATE_WORDS(kernels[kernel].warps);
	uint64_t how = rng_below(r, 4);
	if (how == 0) /* lanes that are often full */
		return {nullptr, 16 + 4 * (uint32_t)rng_below(r, 12),
		        4 + (uint32_t)rng_below(r, 12), most, 0};
	if (how == 1)
		return {nullptr, 160, 3, 0, 0};
	return {nullptr, LADE_DEFLATE_LANE_MAX, most, 0, 0};
}

/* ---- tests ----------------------------------------------------------------------------------- */

static bytes encode(const bytes &raw, int level, uint32_t format, int strategy)
{
	z_stream z = {};
	assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, window_bits[format], 8, strategy),
	                 Z_OK);
	bytes out(deflateBound(&z, raw.size()) + 64);
	z.next_in = raw.data();
	z.avail_in = (uInt)raw.size();
	z.next_out = out.data();
	z.avail_out = (uInt)out.size();
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	out.resize(z.total_out);
	deflateEnd(&z);
	return out;
}

static void what_zlib_encodes(void **)
{
	rng r = {0x1234567};
	static const size_t sizes[] = {0, 1, 2, 63, 129, 1000, 1025, 9000};
	uint64_t seed = 0;
	for (int level = 0; level <= 9; level += 3)
		for (uint32_t format = 0; format < 3; format++, seed++) {
			std::vector<bytes> in;
			std::vector<uint64_t> caps;
			for (size_t size : sizes) {
				bytes raw = make_data(&r, size);
				in.push_back(encode(raw, level, format, (int)rng_below(&r, 5)));
				caps.push_back(size + rng_below(&r, 2) * rng_below(&r, 30));
				if (size) { /* and where there is a byte too little */
					in.push_back(in.back());
					caps.push_back(size - 1);
				}
			}
			check_batch(in, caps, format, seed % 4, room_of(&r, seed % 4), seed,
			            nullptr);
			check_sizes(in, format, seed);
		}
}

/* A stream of the format's, with what may stand around it. */
static void put_framed(rng *r, bytes *to, bytes *raw, uint32_t format, size_t most)
{
	bit_writer w;
	size_t begin = raw->size(), from = to->size();
	if (format == LADE_DEFLATE_ZLIB) {
		static const uint8_t heads[][2] = {{0x78, 0x9C}, {0x78, 0x01}, {0x08, 0x1D}};
		const uint8_t *head = heads[rng_below(r, 3)];
		to->insert(to->end(), head, head + 2);
	} else if (format == LADE_DEFLATE_GZIP) {
		uint8_t flags = (uint8_t)rng_below(r, 32);
		const uint8_t head[] = {0x1F, 0x8B, 8, flags, 1, 2, 3, 4, 0, 3};
		to->insert(to->end(), head, head + 10);
		if (flags & 4) {
			size_t n = rng_below(r, 300);
			to->push_back((uint8_t)n);
			to->push_back((uint8_t)(n >> 8));
			to->insert(to->end(), n, 0);
		}
		for (uint8_t text = 8; text <= 16; text *= 2)
			if (flags & text) {
				to->insert(to->end(), rng_below(r, 80), 'n');
				to->push_back(0);
			}
		if (flags & 2) {
			uint32_t sum =
				(uint32_t)crc32(0, to->data() + from, (uInt)(to->size() - from));
			to->push_back((uint8_t)sum);
			to->push_back((uint8_t)(sum >> 8));
		}
	}
	put_stream(r, &w, raw, most, 6);
	to->insert(to->end(), w.out.begin(), w.out.end());
	size_t size = raw->size() - begin;
	static const uint8_t none = 0;
	const uint8_t *p = size ? raw->data() + begin : &none;
	uint32_t adler = (uint32_t)adler32(1, p, (uInt)size),
		 crc = (uint32_t)crc32(0, p, (uInt)size);
	for (int k = 0; k < 4 && format == LADE_DEFLATE_ZLIB; k++)
		to->push_back((uint8_t)(adler >> (24 - 8 * k)));
	for (int k = 0; k < 8 && format == LADE_DEFLATE_GZIP; k++)
		to->push_back((uint8_t)(((uint64_t)size << 32 | crc) >> (8 * k)));
}

static void streams_of_all_kinds(void **)
{
	rng r = {0x7654321};
	for (uint64_t seed = 0; seed < 18; seed++) {
		uint32_t format = (uint32_t)(seed / 3 % 3);
		std::vector<bytes> in;
		std::vector<uint64_t> caps;
		for (int i = 0; i < 8; i++) {
			bytes raw, s;
			size_t members = format == LADE_DEFLATE_GZIP ? 1 + rng_below(&r, 3) : 1;
			for (; members; members--)
				put_framed(&r, &s, &raw, format, 12000);
			if (format == LADE_DEFLATE_GZIP && rng_below(&r, 3) == 0)
				s.insert(s.end(), rng_below(&r, 70), 0);
			zlib_verdict v = zlib_says(s, raw.size(), format);
			assert_int_equal(v.status, LADE_OK);
			assert_true(v.out == raw);
			in.push_back(s);
			caps.push_back(raw.size());
			if (raw.size() && rng_below(&r, 3) == 0) {
				in.push_back(s);
				caps.push_back(rng_below(&r, raw.size()));
			}
		}
		check_batch(in, caps, format, seed % 4, room_of(&r, seed % 4), seed, nullptr);
		check_sizes(in, format, seed);
	}
}

/* Chunks whose checksums are added in parts: output of matches, and 64 KiB of stored blocks. */
static void large_chunks(void **)
{
	rng r = {0x99};
	for (size_t k = 0; k < 4; k++)
		for (uint32_t format = LADE_DEFLATE_ZLIB; format <= LADE_DEFLATE_GZIP; format++) {
			std::vector<bytes> in;
			std::vector<uint64_t> caps;
			bytes raw, random(65536);
			while (raw.size() < 100000) {
				bytes more = make_data(&r, 1 + rng_below(&r, 40000));
				raw.insert(raw.end(), more.begin(), more.end());
			}
			for (uint8_t &byte : random)
				byte = (uint8_t)rng_next(&r);
			in.push_back(encode(raw, format == LADE_DEFLATE_ZLIB ? 1 : 6, format, 0));
			caps.push_back(raw.size());
			in.push_back(encode(random, 0, format, 0));
			caps.push_back(random.size());
			bytes runs; /* matches in a row that are as far as one another */
			while (runs.size() < 30000) {
				bytes one(1 + rng_below(&r, 9), (uint8_t)rng_next(&r));
				for (uint64_t n = rng_below(&r, 900); n; n--)
					runs.insert(runs.end(), one.begin(), one.end());
				if (runs.size() > 999 && rng_below(&r, 2)) {
					bytes row(runs.end() - 999, runs.end());
					runs.insert(runs.end(), row.begin(), row.end());
				}
			}
			in.push_back(encode(runs, 6, format, 0));
			caps.push_back(runs.size());
			uint32_t words = LADE_DEFLATE_WORDS(kernels[k].warps);
			check_batch(in, caps, format, k, {nullptr, 384, words, 0, 0}, k, nullptr);
		}
}

static bytes file_of(const char *name)
{
	std::string path = std::string(LADE_TESTS_DIR "/golden/codec/") + name;
	FILE *f = fopen(path.c_str(), "rb");
	assert_non_null(f);
	bytes all(20000);
	all.resize(fread(all.data(), 1, all.size(), f));
	fclose(f);
	return all;
}

/* What gzip, pigz and Python wrote (tests/golden/codec/ORIGIN.md). */
static void golden_files(void **)
{
	static const struct {
		const char *name;
		uint32_t format, status;
	} files[] = {
		{"raw.deflate", LADE_DEFLATE_RAW, LADE_OK},
		{"pigz.zz", LADE_DEFLATE_ZLIB, LADE_OK},
		{"dict.zz", LADE_DEFLATE_ZLIB, LADE_E_DICT},
		{"plain.gz", LADE_DEFLATE_GZIP, LADE_OK},
		{"named.gz", LADE_DEFLATE_GZIP, LADE_OK},
		{"many.gz", LADE_DEFLATE_GZIP, LADE_OK},
	};
	bytes data = file_of("data");
	for (const auto &file : files) {
		bytes in = file_of(file.name);
		zlib_verdict v = zlib_says(in, data.size(), file.format);
		assert_int_equal(v.status, file.status);
		assert_true(v.status != LADE_OK || v.out == data);
		for (size_t k = 0; k < 4; k++)
			check_batch({in}, {data.size()}, file.format, k,
			            {nullptr, 384, LADE_DEFLATE_WORDS(kernels[k].warps), 0, 0}, k,
			            nullptr);
		check_sizes({in}, file.format, 0);
	}
}

/* Every cut of a stream, and empty chunks. */
static void cut_streams(void **)
{
	rng r = {0xC07};
	for (uint32_t format = 0; format < 3; format++) {
		bytes raw, s;
		while (s.size() < 100) {
			raw.clear();
			s.clear();
			put_framed(&r, &s, &raw, format, 400);
		}
		s.resize(s.size() < 300 ? s.size() : 300);
		std::vector<bytes> in;
		for (size_t n = 0; n < s.size(); n += 1 + n / 60)
			in.push_back(bytes(s.begin(), s.begin() + (ptrdiff_t)n));
		std::vector<uint64_t> caps(in.size(), 500);
		check_batch(in, caps, format, 0, {nullptr, 160, 31, 0, 0}, format, nullptr);
		check_sizes(in, format, format);
	}
}

static uint64_t rounds = 12;

static void damage(rng *r, bytes *s)
{
	uint64_t how = rng_below(r, 8);
	size_t size = s->size();
	if (how == 0)
		s->resize(rng_below(r, size + 1));
	else if (how == 1)
		for (size_t at = rng_below(r, 12); at < size; at++)
			(*s)[at] = (uint8_t)rng_next(r);
	else if (how == 2)
		for (size_t at = rng_below(r, size), n = rng_below(r, 40); n-- && at < size;)
			(*s)[at++] = rng_below(r, 2) ? 0xFF : 0;
	else
		for (uint64_t n = 1 + rng_below(r, 3); n; n--)
			(*s)[rng_below(r, how < 5 && size > 60 ? 60 : size)] ^=
				(uint8_t)(1u << rng_below(r, 8));
}

static void damaged_streams(void **)
{
	rng r = {0xbad5eed};
	differences d = {};
	for (uint64_t round = 0; round < rounds; round++) {
		std::vector<bytes> in;
		std::vector<uint64_t> caps;
		uint32_t format = round % 5 == 4 ? 2 : round % 5 == 3 ? 1 : 0;
		for (int i = 0; i < 40; i++) {
			bytes raw, s;
			if (rng_below(&r, 2)) {
				raw = make_data(&r, 1 + rng_below(&r, 3000));
				s = encode(raw, 1 + (int)rng_below(&r, 9), format,
				           (int)rng_below(&r, 5));
			} else {
				put_framed(&r, &s, &raw, format, 3000);
			}
			damage(&r, &s);
			in.push_back(s);
			caps.push_back(raw.size() + (rng_below(&r, 3) ? 0 : rng_below(&r, 3000)));
		}
		check_batch(in, caps, format, round % 4, room_of(&r, round % 4), round, &d);
		if (round % 4 == 0)
			check_sizes(in, format, round);
	}
	print_message(
		"%zu damaged streams, %zu taken; %zu refused for another reason than zlib's\n",
		d.all, d.taken, d.reasons);
	assert_true(d.taken > d.all / 30 && d.taken < d.all);
	assert_true(d.reasons <= d.all / 20);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		rounds = strtoull(argv[1], NULL, 0);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_files),         cmocka_unit_test(what_zlib_encodes),
		cmocka_unit_test(streams_of_all_kinds), cmocka_unit_test(cut_streams),
		cmocka_unit_test(large_chunks),         cmocka_unit_test(damaged_streams),
	};
	return cmocka_run_group_tests_name("kernel_deflate", tests, NULL, NULL);
}
