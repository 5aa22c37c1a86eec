/*
 * lz_hostile.cu: damaged LZ4 and Snappy chunks on a GPU: status, size and bytes against a plain
 * decoder (tests/lz_plain.h), and guard zones around every destination.
 *
 *     lz_hostile [-n CHUNKS=1000000] [-s SEED=1] [-t SECONDS] FILE...
 *
 * Each chunk is cut from a file, encoded, and damaged: bits flipped, bytes replaced, runs of 0x00
 * and 0xFF, cut short, all random, or given too little room.  Sources and destinations have any
 * alignment, and lie close together, so that a byte outside is a neighbour's guard.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/lz4_decode.cu"
#include "cuda/snappy_decode.cu"
#include "lz_plain.h"

#include <lz4.h>
#include <snappy-c.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#define CK(x) \
	do { \
		cudaError_t e_ = (x); \
		if (e_ != cudaSuccess) { \
			printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
			exit(2); \
		} \
	} while (0)

struct generator {
	uint64_t s;
	uint64_t next()
	{
		s ^= s >> 12, s ^= s << 25, s ^= s >> 27;
		return s * 0x2545F4914F6CDD1DULL;
	}
	uint64_t below(uint64_t n)
	{
		return n ? next() % n : 0;
	}
};

typedef std::vector<uint8_t> bytes;

struct verdict {
	uint32_t status;
	bytes out;
};

/* What the plain decoder says, with room for 'cap' bytes. */
static verdict judge(bool snappy, const bytes &in, size_t cap)
{
	static thread_local bytes room;
	if (room.size() <= cap)
		room.resize(cap + 1);
	size_t made;
	lade_status status = snappy ? plain_snappy(in.data(), in.size(), room.data(), cap, &made)
	                            : plain_lz4(in.data(), in.size(), room.data(), cap, &made);
	return verdict{(uint32_t)status, bytes(room.data(), room.data() + made)};
}

typedef void (*kernel)(lade_gpu_batch);
struct variant {
	const char *name;
	bool snappy, only_size;
	kernel fn;
	int block;
	size_t shared;
};
static const variant variants[] = {
	{"lz4/solo", false, false, lade_lz4_decode_solo, 128, 0},
	{"lz4/team4", false, false, lade_lz4_decode_team4, 128, 0},
	{"lz4/team8", false, false, lade_lz4_decode_team8, 256, 0},
	{"lz4/team16", false, false, lade_lz4_decode_team16, 512,
         sizeof(lade_lz_team<lade_lz4, 16>)},
	{"lz4/size", false, true, lade_lz4_size, 128, 0},
	{"snappy/solo", true, false, lade_snappy_decode_solo, 128, 0},
	{"snappy/team4", true, false, lade_snappy_decode_team4, 128, 0},
	{"snappy/team8", true, false, lade_snappy_decode_team8, 256, 0},
	{"snappy/team16", true, false, lade_snappy_decode_team16, 512,
         sizeof(lade_lz_team<lade_snappy, 16>)},
};

static const size_t guard = 64; /* bytes around a destination, at least */
static const int threads = 16;

static bytes damaged(generator &g, bool snappy, const std::vector<char> &data, size_t *raw)
{
	size_t n = 1 + g.below(g.below(4) ? 4096 : 16384), at = g.below(data.size() - n),
	       m = n + n / 6 + 64;
	bytes s(m);
	if (snappy)
		snappy_compress(&data[at], n, (char *)s.data(), &m);
	else
		m = (size_t)LZ4_compress_default(&data[at], (char *)s.data(), (int)n, (int)m);
	s.resize(m);
	*raw = n;
	switch (g.below(8)) {
	case 0:
		s.resize(g.below(m + 1));
		break;
	case 1:
		for (auto &b : s)
			b = (uint8_t)g.next();
		break;
	case 2:
	case 3: {
		uint8_t v = g.below(2) ? 255 : 0;
		for (size_t i = g.below(m), k = g.below(600); k-- && i < m; i++)
			s[i] = v;
		break;
	}
	case 4:
		for (uint64_t k = 1 + g.below(5); k; k--)
			s[g.below(m)] = (uint8_t)g.next();
		break;
	default:
		for (uint64_t k = 1 + g.below(4); k; k--)
			s[g.below(m)] ^= (uint8_t)(1u << g.below(8));
	}
	return s;
}

static void each(size_t n, void (*what)(void *, size_t), void *arg)
{
	std::vector<std::thread> pool;
	for (int t = 0; t < threads; t++)
		pool.emplace_back([=] {
			for (size_t i = t; i < n; i += threads)
				what(arg, i);
		});
	for (auto &t : pool)
		t.join();
}

template <typename F> static void for_each(size_t n, F f)
{
	each(
		n, [](void *arg, size_t i) { (*(F *)arg)(i); }, &f);
}

struct counts {
	size_t chunks, valid, verdicts, wrong, outside;
	float longest;
};

/* A batch of damaged chunks, on the host and on the device. */
struct hostile {
	size_t n;
	std::vector<bytes> in;
	std::vector<verdict> want, whole; /* with the room given; with all that is needed */
	std::vector<uint64_t> size, cap;
	std::vector<size_t> from, at;
	std::vector<uint8_t> back;
	size_t src_all, dst_all;
	lade_gpu_batch b;
	uint8_t *d_src, *d_dst;
};

static void fill(hostile &h, bool snappy, uint64_t seed, const std::vector<char> &data)
{
	for_each(h.n, [&](size_t i) {
		generator g = {(seed + i) * 0x9E3779B97F4A7C15ULL | 1};
		size_t raw;
		h.in[i] = damaged(g, snappy, data, &raw);
		h.size[i] = h.in[i].size();
		h.cap[i] = g.below(8) ? raw + (g.below(4) ? 0 : g.below(600)) : g.below(raw + 1);
		h.from[i] = g.below(16);
		h.at[i] = guard + g.below(16);
		h.want[i] = judge(snappy, h.in[i], h.cap[i]);
		/* A byte of a block gives at most 255. */
		if (!snappy)
			h.whole[i] = h.want[i].status == LADE_GPU_OK
			                     ? h.want[i]
			                     : judge(false, h.in[i], 255 * h.in[i].size());
	});
	size_t src = 0, dst = 0;
	for (size_t i = 0; i < h.n; i++) {
		h.from[i] += src;
		src = h.from[i] + h.size[i];
		h.at[i] += dst;
		dst = h.at[i] + h.cap[i];
	}
	h.src_all = src;
	h.dst_all = dst + guard;
	std::vector<uint8_t> packed(src);
	for_each(h.n, [&](size_t i) { memcpy(&packed[h.from[i]], h.in[i].data(), h.size[i]); });
	std::vector<const uint8_t *> sp(h.n);
	std::vector<uint8_t *> dp(h.n);
	for (size_t i = 0; i < h.n; i++) {
		sp[i] = h.d_src + h.from[i];
		dp[i] = h.d_dst + h.at[i];
	}
	CK(cudaMemcpy(h.d_src, packed.data(), src, cudaMemcpyHostToDevice));
	CK(cudaMemcpy((void *)h.b.src, sp.data(), h.n * 8, cudaMemcpyHostToDevice));
	CK(cudaMemcpy((void *)h.b.dst, dp.data(), h.n * 8, cudaMemcpyHostToDevice));
	CK(cudaMemcpy((void *)h.b.src_size, h.size.data(), h.n * 8, cudaMemcpyHostToDevice));
	CK(cudaMemcpy((void *)h.b.dst_cap, h.cap.data(), h.n * 8, cudaMemcpyHostToDevice));
}

static void check(hostile &h, const variant &v, counts *c)
{
	CK(cudaMemset(h.d_dst, 0xA5, h.dst_all));
	CK(cudaMemset(h.b.next, 0, 4));
	CK(cudaMemset(h.b.status, 0x77, h.n * 4));
	cudaEvent_t x, y;
	CK(cudaEventCreate(&x));
	CK(cudaEventCreate(&y));
	CK(cudaEventRecord(x));
	v.fn<<<528, v.block, v.shared>>>(h.b);
	CK(cudaEventRecord(y));
	CK(cudaDeviceSynchronize());
	float ms;
	CK(cudaEventElapsedTime(&ms, x, y));
	CK(cudaEventDestroy(x));
	CK(cudaEventDestroy(y));
	c->longest = ms > c->longest ? ms : c->longest;
	std::vector<uint64_t> got(h.n);
	std::vector<uint32_t> status(h.n);
	CK(cudaMemcpy(h.back.data(), h.d_dst, h.dst_all, cudaMemcpyDeviceToHost));
	CK(cudaMemcpy(got.data(), h.b.dst_size, h.n * 8, cudaMemcpyDeviceToHost));
	CK(cudaMemcpy(status.data(), h.b.status, h.n * 4, cudaMemcpyDeviceToHost));
	std::atomic<size_t> valid{0}, verdicts{0}, wrong{0}, outside{0};
	for_each(h.n, [&](size_t i) {
		const verdict &want = v.only_size ? h.whole[i] : h.want[i];
		valid += want.status == LADE_GPU_OK;
		if (want.status != status[i])
			verdicts++;
		else if (got[i] != want.out.size() ||
		         (got[i] && !v.only_size &&
		          memcmp(&h.back[h.at[i]], want.out.data(), got[i])))
			wrong++;
		/* What lies between the destinations is as it was. */
		size_t end = h.at[i] + h.cap[i], next = i + 1 < h.n ? h.at[i + 1] : h.dst_all;
		bool touched = false;
		for (size_t k = i ? end : 0; k < (i ? next : h.at[0]); k++)
			touched |= h.back[k] != 0xA5;
		for (size_t k = end; i == 0 && k < next; k++)
			touched |= h.back[k] != 0xA5;
		outside += touched;
	});
	c->chunks += h.n;
	c->valid += valid, c->verdicts += verdicts, c->wrong += wrong, c->outside += outside;
}

int main(int argc, char **argv)
{
	size_t total = 1000000, batch = 16384;
	uint64_t seed = 1, seconds = 1000000;
	std::vector<char> data;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-n"))
			total = strtoull(argv[++i], 0, 0);
		else if (!strcmp(argv[i], "-t"))
			seconds = strtoull(argv[++i], 0, 0);
		else if (!strcmp(argv[i], "-s"))
			seed = strtoull(argv[++i], 0, 0);
		else {
			std::ifstream in(argv[i], std::ios::binary);
			std::vector<char> part(4 << 20);
			in.read(part.data(), (std::streamsize)part.size());
			data.insert(data.end(), part.begin(), part.end());
		}
	}
	if (batch > total)
		batch = total;
	hostile h = {};
	h.n = batch;
	h.in.resize(batch), h.want.resize(batch), h.whole.resize(batch);
	h.size.resize(batch), h.cap.resize(batch), h.from.resize(batch), h.at.resize(batch);
	size_t src_cap = batch * 19300, dst_cap = batch * 17100; /* 16384 bytes at most, encoded */
	h.back.resize(dst_cap);
	CK(cudaMalloc(&h.d_src, src_cap));
	CK(cudaMalloc(&h.d_dst, dst_cap));
	CK(cudaMalloc((void **)&h.b.src, batch * 8));
	CK(cudaMalloc((void **)&h.b.dst, batch * 8));
	CK(cudaMalloc((void **)&h.b.src_size, batch * 8));
	CK(cudaMalloc((void **)&h.b.dst_cap, batch * 8));
	CK(cudaMalloc(&h.b.dst_size, batch * 8));
	CK(cudaMalloc(&h.b.status, batch * 4));
	CK(cudaMalloc(&h.b.next, 4));
	h.b.count = (uint32_t)batch;
	const size_t kernels = sizeof variants / sizeof *variants;
	counts all[kernels] = {};
	for (const variant &v : variants)
		CK(cudaFuncSetAttribute(v.fn, cudaFuncAttributeMaxDynamicSharedMemorySize,
		                        (int)v.shared));
	for (int snappy = 0; snappy < 2; snappy++) {
		auto begin = std::chrono::steady_clock::now();
		for (size_t done = 0; done < total; done += batch) {
			if (std::chrono::steady_clock::now() - begin >
			    std::chrono::seconds(seconds))
				break;
			fill(h, snappy != 0, seed * 1000003 + done, data);
			for (size_t k = 0; k < kernels; k++)
				if (variants[k].snappy == (snappy != 0))
					check(h, variants[k], &all[k]);
		}
	}
	int failures = 0;
	printf("kernel,chunks,valid,wrong_verdict,wrong_bytes,outside,longest_batch_ms\n");
	for (size_t k = 0; k < kernels; k++) {
		const counts &c = all[k];
		printf("%s,%zu,%zu,%zu,%zu,%zu,%.2f\n", variants[k].name, c.chunks, c.valid,
		       c.verdicts, c.wrong, c.outside, c.longest);
		failures += c.verdicts || c.wrong || c.outside;
	}
	return failures ? 1 : 0;
}
