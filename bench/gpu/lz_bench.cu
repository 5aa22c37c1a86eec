/*
 * lz_bench.cu: times the LZ decoding kernels on device-resident batches, and checks every byte.
 *
 *     lz_bench [-c CHUNK] [-n BATCH,..] [-r REPEATS] [-o SHAPE,..] FILE...
 *
 * Each file is cut into chunks, encoded by liblz4 and libsnappy on the host, and repeated to
 * distinct addresses until the largest batch is full.  Times are events', median of REPEATS, L2
 * flushed before each; GB/s are decoded bytes.  The columns are those of the nvCOMP baseline.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/lz4/kernels/lz4_decode.cu"
#include "codec/snappy/kernels/snappy_decode.cu"

#include <lz4.h>
#include <snappy-c.h>

#include <algorithm>
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
			fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
			exit(2); \
		} \
	} while (0)

typedef void (*kernel)(lade_gpu_batch);

struct variant {
	const char *name;
	bool snappy;
	kernel fn;
	int block, chunks; /* threads a block, chunks a block */
	size_t shared;
};

static const variant variants[] = {
	{"lz4/solo", false, lade_lz4_decode_solo, 128, 4, 0},
	{"lz4/team4", false, lade_lz4_decode_team4, 128, 1, 0},
	{"lz4/team8", false, lade_lz4_decode_team8, 256, 1, 0},
	{"lz4/team16", false, lade_lz4_decode_team16, 512, 1, sizeof(lade_lz_team<lade_lz4, 16>)},
	{"snappy/solo", true, lade_snappy_decode_solo, 128, 4, 0},
	{"snappy/team4", true, lade_snappy_decode_team4, 128, 1, 0},
	{"snappy/team8", true, lade_snappy_decode_team8, 256, 1, 0},
	{"snappy/team16", true, lade_snappy_decode_team16, 512, 1,
         sizeof(lade_lz_team<lade_snappy, 16>)},
};

static void *flush;
static const size_t flush_size = 256u << 20;

static double time_us(int reps, const variant &v, lade_gpu_batch b, int grid)
{
	cudaEvent_t x, y;
	CK(cudaEventCreate(&x));
	CK(cudaEventCreate(&y));
	std::vector<float> t;
	for (int i = 0; i < reps + 2; i++) {
		CK(cudaMemsetAsync(flush, i, flush_size));
		CK(cudaMemsetAsync(b.next, 0, 4));
		CK(cudaEventRecord(x));
		v.fn<<<grid, v.block, v.shared>>>(b);
		CK(cudaEventRecord(y));
		CK(cudaDeviceSynchronize());
		float ms;
		CK(cudaEventElapsedTime(&ms, x, y));
		if (i >= 2)
			t.push_back(ms);
	}
	std::sort(t.begin(), t.end());
	return 1e3 * t[t.size() / 2];
}

/* The chunks of 'host', encoded, 'slot' bytes apart; and their sizes. */
static std::vector<char> encoded(const std::vector<char> &host, size_t chunk, size_t slot,
                                 size_t count, bool snappy, std::vector<uint64_t> &size)
{
	std::vector<char> comp(count * slot);
	std::vector<std::thread> pool;
	for (int t = 0; t < 16; t++)
		pool.emplace_back([&, t] {
			for (size_t i = t; i < count; i += 16) {
				const char *from = &host[i * chunk];
				char *to = &comp[i * slot];
				size_t n = slot;
				if (snappy)
					snappy_compress(from, chunk, to, &n);
				else
					n = LZ4_compress_default(from, to, (int)chunk, (int)slot);
				size[i] = n;
			}
		});
	for (auto &t : pool)
		t.join();
	return comp;
}

/* Whether all chunks were decoded, and the first 'look' of them to what 'host' has. */
static bool right(const char *name, const char *data, const lade_gpu_batch &b, const uint8_t *made,
                  const std::vector<char> &host, size_t chunk, size_t look)
{
	size_t n = b.count, bad = 0, same = 0;
	std::vector<uint32_t> status(n);
	std::vector<uint64_t> size(n);
	std::vector<char> back(look * chunk);
	CK(cudaMemcpy(status.data(), b.status, n * 4, cudaMemcpyDeviceToHost));
	CK(cudaMemcpy(size.data(), b.dst_size, n * 8, cudaMemcpyDeviceToHost));
	CK(cudaMemcpy(back.data(), made, look * chunk, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < n; i++)
		bad += status[i] != 0 || size[i] != chunk;
	while (same < look * chunk && back[same] == host[same])
		same++;
	if (bad == 0 && same == look * chunk)
		return true;
	fprintf(stderr, "%s %s n=%zu: %zu bad, first status %u, differs at %zu\n", name, data, n,
	        bad, status[0], same);
	return false;
}

int main(int argc, char **argv)
{
	size_t chunk = 65536;
	int reps = 9;
	std::vector<size_t> batches = {1, 100, 1000, 10000};
	std::vector<std::string> files;
	std::string only;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-c"))
			chunk = strtoull(argv[++i], 0, 0);
		else if (!strcmp(argv[i], "-r"))
			reps = atoi(argv[++i]);
		else if (!strcmp(argv[i], "-o"))
			only = argv[++i];
		else if (!strcmp(argv[i], "-n")) {
			batches.clear();
			for (char *p = strtok(argv[++i], ","); p; p = strtok(0, ","))
				batches.push_back(strtoull(p, 0, 0));
		} else
			files.push_back(argv[i]);
	}
	CK(cudaMalloc(&flush, flush_size));
	cudaDeviceProp prop;
	CK(cudaGetDeviceProperties(&prop, 0));
	printf("peer,version,codec,data,chunk,batch,ratio,encode_gbps,decode_gbps,encode_us,decode_"
	       "us,ok\n");
	size_t most = *std::max_element(batches.begin(), batches.end());
	uint8_t *d_src, *d_dst;
	size_t slot = (chunk + chunk / 6 + 64 + 255) / 256 * 256;
	CK(cudaMalloc(&d_src, most * slot));
	CK(cudaMalloc(&d_dst, most * chunk));
	uint32_t *next;
	CK(cudaMalloc(&next, 4));
	for (auto &path : files) {
		std::string base = path.substr(path.rfind('/') + 1);
		std::ifstream in(path, std::ios::binary);
		std::vector<char> host((std::istreambuf_iterator<char>(in)), {});
		size_t per = std::min(host.size() / chunk, most);
		for (int snappy = 0; snappy < 2; snappy++) {
			std::vector<uint64_t> size(most);
			std::vector<char> comp =
				encoded(host, chunk, slot, per, snappy != 0, size);
			std::vector<const uint8_t *> src(most);
			std::vector<uint8_t *> dst(most);
			std::vector<uint64_t> cap(most, chunk);
			size_t total = 0;
			for (size_t i = 0; i < most; i++) {
				size[i] = size[i % per];
				if (i < per)
					total += size[i];
				src[i] = d_src + i * slot;
				dst[i] = d_dst + i * chunk;
			}
			for (size_t i = 0; i < most; i += per)
				CK(cudaMemcpy(d_src + i * slot, comp.data(),
				              std::min(per, most - i) * slot,
				              cudaMemcpyHostToDevice));
			lade_gpu_batch b = {};
			CK(cudaMalloc((void **)&b.src, most * 8));
			CK(cudaMemcpy((void *)b.src, src.data(), most * 8, cudaMemcpyHostToDevice));
			CK(cudaMalloc((void **)&b.dst, most * 8));
			CK(cudaMemcpy((void *)b.dst, dst.data(), most * 8, cudaMemcpyHostToDevice));
			CK(cudaMalloc((void **)&b.src_size, most * 8));
			CK(cudaMemcpy((void *)b.src_size, size.data(), most * 8,
			              cudaMemcpyHostToDevice));
			CK(cudaMalloc((void **)&b.dst_cap, most * 8));
			CK(cudaMemcpy((void *)b.dst_cap, cap.data(), most * 8,
			              cudaMemcpyHostToDevice));
			CK(cudaMalloc(&b.dst_size, most * 8));
			CK(cudaMalloc(&b.status, most * 4));
			b.next = next;
			for (auto &v : variants) {
				if (v.snappy != (snappy != 0) ||
				    (!only.empty() &&
				     only.find(strchr(v.name, '/') + 1) == only.npos))
					continue;
				int per_sm = 0;
				CK(cudaFuncSetAttribute(v.fn,
				                        cudaFuncAttributeMaxDynamicSharedMemorySize,
				                        (int)v.shared));
				CK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
					&per_sm, v.fn, v.block, v.shared));
				for (size_t n : batches) {
					b.count = (uint32_t)n;
					int grid =
						std::min<int>(per_sm * prop.multiProcessorCount,
					                      (int)((n + v.chunks - 1) / v.chunks));
					CK(cudaMemset(d_dst, 0xEE, n * chunk));
					CK(cudaMemset(next, 0, 4));
					v.fn<<<grid, v.block, v.shared>>>(b);
					CK(cudaDeviceSynchronize());
					bool ok = right(v.name, base.c_str(), b, d_dst, host, chunk,
					                std::min(n, per));
					double us = time_us(reps, v, b, grid);
					printf("liblade,0.1.0,%s,%s,%zu,%zu,%.3f,,%.2f,,%.1f,%s\n",
					       v.name, base.c_str(), chunk, n,
					       double(per * chunk) / total, n * chunk / us / 1e3,
					       us, ok ? "yes" : "NO");
					fflush(stdout);
				}
			}
			cudaFree((void *)b.src);
			cudaFree((void *)b.dst);
			cudaFree((void *)b.src_size);
			cudaFree((void *)b.dst_cap);
			cudaFree(b.dst_size);
			cudaFree(b.status);
		}
	}
	fprintf(stderr, "%s, %d SMs\n", prop.name, prop.multiProcessorCount);
	return 0;
}
