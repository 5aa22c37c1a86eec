/*
 * lz_hostile.cu: damaged LZ4 and Snappy chunks on a GPU: verdict, size and bytes against a strict
 * scalar decoder, and guard zones around every destination.
 *
 *     lz_hostile [-n CHUNKS=1000000] [-s SEED=1] FILE...
 *
 * Each chunk is cut from a file, encoded, and damaged: bits flipped, bytes replaced, runs of 0x00
 * and 0xFF, cut short, all random, or given too little room.  Sources and destinations have any
 * alignment, and lie close together, so that a byte outside is a neighbour's guard.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cuda/lz4_decode.cu"
#include "cuda/snappy_decode.cu"
#include "kernels/lz_scalar.h"

#include <lz4.h>
#include <snappy-c.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

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

typedef void (*kernel)(lade_gpu_batch);
struct variant {
	const char *name;
	bool snappy;
	kernel fn;
	int block;
};
static const variant variants[] = {
	{"lz4/solo", false, lade_lz4_decode_solo, 128},
	{"lz4/team4", false, lade_lz4_decode_team4, 128},
	{"lz4/team8", false, lade_lz4_decode_team8, 256},
	{"snappy/solo", true, lade_snappy_decode_solo, 128},
	{"snappy/team4", true, lade_snappy_decode_team4, 128},
	{"snappy/team8", true, lade_snappy_decode_team8, 256},
};

static const size_t room = 17000, guard = 64; /* a destination's slot, and its guard at least */
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

int main(int argc, char **argv)
{
	size_t total = 1000000, batch = 16384;
	uint64_t seed = 1;
	std::vector<char> data;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-n"))
			total = strtoull(argv[++i], 0, 0);
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
	size_t src_cap = batch * (room + room / 6 + 80), dst_cap = batch * (room + 2 * guard);
	uint8_t *d_src, *d_dst;
	CK(cudaMalloc(&d_src, src_cap));
	CK(cudaMalloc(&d_dst, dst_cap));
	lade_gpu_batch b = {};
	CK(cudaMalloc((void **)&b.src, batch * 8));
	CK(cudaMalloc((void **)&b.dst, batch * 8));
	CK(cudaMalloc((void **)&b.src_size, batch * 8));
	CK(cudaMalloc((void **)&b.dst_cap, batch * 8));
	CK(cudaMalloc(&b.dst_size, batch * 8));
	CK(cudaMalloc(&b.status, batch * 4));
	CK(cudaMalloc(&b.next, 4));
	int failures = 0;
	printf("kernel,chunks,valid,wrong_verdict,wrong_bytes,outside,longest_batch_ms\n");
	for (const variant &v : variants) {
		size_t valid = 0, verdicts = 0, wrong = 0, outside = 0;
		float longest = 0;
		for (size_t done = 0; done < total; done += batch) {
			std::vector<uint8_t> src(src_cap), dst(dst_cap, 0xA5), back(dst_cap);
			std::vector<bytes> in(batch);
			std::vector<size_t> at(batch), from(batch);
			std::vector<uint64_t> size(batch), cap(batch), got(batch);
			std::vector<const uint8_t *> sp(batch);
			std::vector<uint8_t *> dp(batch);
			std::vector<uint32_t> status(batch);
			std::vector<std::thread> pool;
			for (int t = 0; t < threads; t++)
				pool.emplace_back([&, t] {
					for (size_t i = t; i < batch; i += threads) {
						generator g = {(seed * 1000003 + done + i) *
						                       0x9E3779B97F4A7C15ULL |
						               1};
						size_t raw;
						in[i] = damaged(g, v.snappy, data, &raw);
						cap[i] = g.below(8)
						                 ? raw + (g.below(4) ? 0
						                                     : g.below(600))
						                 : g.below(raw + 1);
						size[i] = in[i].size();
						from[i] = i * (room + room / 6 + 80) + g.below(16);
						at[i] = i * (room + 2 * guard) + guard +
						        g.below(16);
						memcpy(&src[from[i]], in[i].data(), in[i].size());
						sp[i] = d_src + from[i];
						dp[i] = d_dst + at[i];
					}
				});
			for (auto &t : pool)
				t.join();
			CK(cudaMemcpy(d_src, src.data(), src_cap, cudaMemcpyHostToDevice));
			CK(cudaMemcpy(d_dst, dst.data(), dst_cap, cudaMemcpyHostToDevice));
			CK(cudaMemcpy((void *)b.src, sp.data(), batch * 8, cudaMemcpyHostToDevice));
			CK(cudaMemcpy((void *)b.dst, dp.data(), batch * 8, cudaMemcpyHostToDevice));
			CK(cudaMemcpy((void *)b.src_size, size.data(), batch * 8,
			              cudaMemcpyHostToDevice));
			CK(cudaMemcpy((void *)b.dst_cap, cap.data(), batch * 8,
			              cudaMemcpyHostToDevice));
			CK(cudaMemset(b.next, 0, 4));
			b.count = (uint32_t)batch;
			cudaEvent_t x, y;
			CK(cudaEventCreate(&x));
			CK(cudaEventCreate(&y));
			CK(cudaEventRecord(x));
			v.fn<<<528, v.block>>>(b);
			CK(cudaEventRecord(y));
			CK(cudaDeviceSynchronize());
			float ms;
			CK(cudaEventElapsedTime(&ms, x, y));
			longest = ms > longest ? ms : longest;
			CK(cudaMemcpy(back.data(), d_dst, dst_cap, cudaMemcpyDeviceToHost));
			CK(cudaMemcpy(got.data(), b.dst_size, batch * 8, cudaMemcpyDeviceToHost));
			CK(cudaMemcpy(status.data(), b.status, batch * 4, cudaMemcpyDeviceToHost));
			std::atomic<size_t> a_valid{0}, a_verdicts{0}, a_wrong{0}, a_outside{0};
			pool.clear();
			for (int t = 0; t < threads; t++)
				pool.emplace_back([&, t] {
					for (size_t i = t; i < batch; i += threads) {
						verdict want =
							v.snappy ? snappy_scalar(in[i], cap[i])
								 : lz4_scalar(in[i], cap[i]);
						a_valid += want.ok;
						if (want.ok != (status[i] == 0))
							a_verdicts++;
						else if (want.ok &&
						         (got[i] != want.out.size() ||
						          memcmp(&back[at[i]], want.out.data(),
						                 got[i])))
							a_wrong++;
						/* Everything of the slot but the destination is as
						 * it was. */
						size_t lo = i * (room + 2 * guard),
						       hi = lo + room + 2 * guard;
						bool touched = false;
						for (size_t k = lo; k < at[i]; k++)
							touched |= back[k] != 0xA5;
						for (size_t k = at[i] + cap[i]; k < hi; k++)
							touched |= back[k] != 0xA5;
						a_outside += touched;
					}
				});
			for (auto &t : pool)
				t.join();
			valid += a_valid, verdicts += a_verdicts, wrong += a_wrong,
				outside += a_outside;
		}
		printf("%s,%zu,%zu,%zu,%zu,%zu,%.2f\n", v.name, (total + batch - 1) / batch * batch,
		       valid, verdicts, wrong, outside, longest);
		fflush(stdout);
		failures += verdicts || wrong || outside;
	}
	return failures ? 1 : 0;
}
