/*
 * bits_bench.cu: times the bit shuffle's kernels on device-resident batches, and checks every byte.
 *
 *     bits_bench [check | CHUNK...]
 *
 * First 300 chunks of random sizes and alignments for each size, order and some blocks, against a
 * plain shuffle on the host, both ways ('check' stops there).  Then batches of chunks of CHUNK
 * bytes (65536), on multiples of 64 KiB and on odd addresses.  Times are events', median of 9, L2
 * flushed before each; TB/s count what is read and what is written, as the copy's do.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "filter/kernels/bitshuffle.cu"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CK(x)                                                                                      \
	do {                                                                                       \
		cudaError_t e_ = (x);                                                              \
		if (e_ != cudaSuccess) {                                                           \
			fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
			exit(2);                                                                   \
		}                                                                                  \
	} while (0)

typedef std::vector<uint8_t> bytes;

static uint64_t state = 777;

static uint32_t random_word()
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33);
}

/* ---- a batch ------------------------------------------------------------------------------ */

template <class T> static T *upload(const std::vector<T> &v)
{
	T *d;
	CK(cudaMalloc(&d, v.size() * sizeof(T) + 8));
	CK(cudaMemcpy(d, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
	return d;
}

struct tables {
	lade_gpu_batch batch;

	tables(const std::vector<const uint8_t *> &src, const std::vector<uint8_t *> &dst,
	       const std::vector<uint64_t> &size)
	{
		std::vector<uint32_t> status(src.size(), 77);
		batch = {upload(src), upload(size), upload(dst), upload(size),
		         nullptr, upload(status), nullptr, nullptr, (uint32_t)src.size()};
	}

	~tables()
	{
		cudaFree((void *)batch.src);
		cudaFree((void *)batch.src_size);
		cudaFree((void *)batch.dst);
		cudaFree((void *)batch.dst_cap);
		cudaFree(batch.status);
	}
};

static void launch(bool encode, const lade_gpu_batch &b, uint32_t size, uint32_t msb,
                   uint32_t block, size_t parts)
{
	unsigned grid = (unsigned)((b.count * parts + 3) / 4);
	lade_filters f = {0, size, LADE_ROWS_BITS, msb, block, LADE_GPU_OK, 0};
	if (encode)
		lade_bitshuffle_encode<<<grid, 128>>>(b, f);
	else
		lade_bitshuffle_decode<<<grid, 128>>>(b, f);
	CK(cudaGetLastError());
}

/* ---- checks ------------------------------------------------------------------------------- */

static void reference(uint32_t size, bool msb, size_t block, size_t n, const uint8_t *from,
                      uint8_t *to)
{
	size_t bits = 8 * size, each = block && block < n ? block : n;
	for (size_t at = 0, m; at < n; at += m, from += m, to += m) {
		m = n - at < each ? n - at : each;
		size_t pitch = m / bits;
		memcpy(to, from, m);
		memset(to, 0, pitch * bits);
		for (size_t e = 0; e < 8 * pitch; e++)
			for (size_t b = 0; b < bits; b++) {
				size_t row = msb ? bits - 1 - b : b;
				unsigned bit = from[e * size + b / 8] >> (b % 8) & 1;
				to[row * pitch + e / 8] |= (uint8_t)(bit << (e % 8));
			}
	}
}

/* Chunks with gaps between, which must stay; true when all is right. */
static bool check(uint32_t size, bool msb, uint32_t block, size_t parts)
{
	size_t n = 300, all = 64;
	std::vector<size_t> off(n), skew(n);
	std::vector<uint64_t> length(n);
	for (size_t i = 0; i < n; i++) {
		off[i] = all + random_word() % 32;
		length[i] = i % 3 == 0 ? 65536 : random_word() % (i % 3 == 1 ? 70000 : 600);
		skew[i] = parts % 2 ? random_word() % 16 : 0;
		all = off[i] + length[i] + 64;
	}
	bytes plain(all), rows(all, 0xC3), back(all, 0xC3), got(all);
	for (auto &b : plain)
		b = (uint8_t)(random_word() >> 8);
	uint8_t *d_plain = upload(plain), *d_rows = upload(rows), *d_back = upload(back);
	std::vector<const uint8_t *> src(n), stored(n);
	std::vector<uint8_t *> dst(n), again(n);
	for (size_t i = 0; i < n; i++) {
		src[i] = d_plain + off[i];
		stored[i] = dst[i] = d_rows + off[i] - skew[i];
		again[i] = d_back + off[i];
		reference(size, msb, block, length[i], &plain[off[i]], &rows[off[i] - skew[i]]);
		memcpy(&back[off[i]], &plain[off[i]], length[i]);
	}
	tables forth(src, dst, length), home(stored, again, length);
	std::vector<uint32_t> status(n);
	launch(true, forth.batch, size, msb, block, parts);
	launch(false, home.batch, size, msb, block, parts);
	CK(cudaMemcpy(got.data(), d_rows, all, cudaMemcpyDeviceToHost));
	bool good = got == rows;
	CK(cudaMemcpy(got.data(), d_back, all, cudaMemcpyDeviceToHost));
	good = good && got == back;
	CK(cudaMemcpy(status.data(), home.batch.status, 4 * n, cudaMemcpyDeviceToHost));
	for (auto s : status)
		good = good && s == LADE_GPU_OK;
	cudaFree(d_plain);
	cudaFree(d_rows);
	cudaFree(d_back);
	if (!good)
		fprintf(stderr, "WRONG: size %u, msb %d, block %u\n", size, msb, block);
	return good;
}

static bool check_all()
{
	bool good = true;
	for (uint32_t size = 1; size <= 8; size *= 2)
		for (int msb = 0; msb < 2; msb++)
			for (uint32_t block : {0u, 8192u, 8 * size, 320 * size, 4096u, 65536u,
			                       12288u + 8 * size})
				for (size_t parts : {3, 16})
					good = check(size, msb, block, parts) && good;
	return good;
}

/* ---- times -------------------------------------------------------------------------------- */

static void *flush;
static const size_t flush_size = 256u << 20;

template <class F> static double time_us(F work)
{
	cudaEvent_t from, to;
	std::vector<float> times;
	CK(cudaEventCreate(&from));
	CK(cudaEventCreate(&to));
	for (int i = 0; i < 11; i++) {
		float ms;
		CK(cudaMemsetAsync(flush, i, flush_size));
		CK(cudaEventRecord(from));
		work();
		CK(cudaEventRecord(to));
		CK(cudaEventSynchronize(to));
		CK(cudaEventElapsedTime(&ms, from, to));
		if (i >= 2)
			times.push_back(ms);
	}
	std::sort(times.begin(), times.end());
	CK(cudaEventDestroy(from));
	CK(cudaEventDestroy(to));
	return 1e3 * times[times.size() / 2];
}

static void time_chunks(uint8_t *s, uint8_t *d, size_t chunk, size_t skew, size_t n, uint32_t size,
                        uint32_t block)
{
	size_t stride = (chunk + 65535) / 65536 * 65536;
	std::vector<const uint8_t *> src(n);
	std::vector<uint8_t *> dst(n);
	for (size_t i = 0; i < n; i++) {
		src[i] = s + i * stride + skew;
		dst[i] = d + i * stride + skew;
	}
	tables t(src, dst, std::vector<uint64_t>(n, chunk));
	size_t parts = (chunk + LADE_TILE_BYTES - 1) / LADE_BITS_TILE;
	double us[2];
	for (int encode = 0; encode < 2; encode++)
		us[encode] = time_us([&] { launch(encode, t.batch, size, 1, block, parts); });
	double moved = 2e-6 * (double)(n * chunk);
	printf("%u,%u,%zu,%zu,%zu,%.1f,%.2f,%.1f,%.2f\n", size, block, skew, chunk, n, us[1],
	       moved / us[1], us[0], moved / us[0]);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	std::vector<size_t> chunks;
	for (int i = 1; i < argc; i++)
		chunks.push_back(strtoull(argv[i], nullptr, 0));
	if (chunks.empty())
		chunks.push_back(65536);
	if (!check_all())
		return 1;
	if (argc > 1 && !strcmp(argv[1], "check"))
		return 0;
	const size_t total = 10000u << 16;
	uint8_t *s, *d;
	CK(cudaMalloc(&flush, flush_size));
	CK(cudaMalloc(&s, total + 4096));
	CK(cudaMalloc(&d, total + 4096));
	CK(cudaMemset(s, 0x5A, total + 4096));
	double copy = time_us([&] { CK(cudaMemcpyAsync(d, s, total, cudaMemcpyDeviceToDevice)); });
	fprintf(stderr, "copy: %.2f TB/s\n", 2e-6 * (double)total / copy);
	printf("size,block,skew,chunk,chunks,encode_us,encode_tbps,decode_us,decode_tbps\n");
	for (size_t chunk : chunks)
		for (size_t skew : {0, 3})
			for (uint32_t size = 1; size <= 8; size *= 2)
				for (uint32_t block : {8192u, 0u})
					for (size_t n : {10000, 1000, 100, 1})
						if (n * ((chunk + 65535) / 65536) <= 10000)
							time_chunks(s, d, chunk, skew, n, size,
							            block);
	return 0;
}
