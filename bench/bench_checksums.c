/*
 * bench_checksums.c: the rate of each checksum of one buffer, and how long it takes compared with
 * libdeflate's CRC32 of the same bytes.
 *
 *     bench_checksums [--rounds=15]
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "common.h"

#include <libdeflate.h>

typedef struct job {
	lade_checksum kind;
	const void *data;
	size_t size;
	volatile uint64_t sink;
} job;

static void run_lade(void *ctx)
{
	job *j = ctx;
	j->sink = lade_checksum_of(j->kind, j->data, j->size);
}

static void run_reference(void *ctx)
{
	job *j = ctx;
	j->sink = libdeflate_crc32(0, j->data, j->size);
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = {64, 4096, 65536, 16 << 20};
	size_t rounds = 15;
	for (int i = 1; i < argc; i++) {
		const char *v = bench_option("--rounds", argv[i]);
		if (!v)
			bench_die(argv[i], "unknown option");
		rounds = strtoul(v, NULL, 10);
	}
	job j = {.data = bench_alloc(16 << 20)};
	bench_print_machine(stdout);
	printf("# checksum; for each size: MB/s, time over libdeflate_crc32's\n%-14s", "bytes");
	for (size_t s = 0; s < 4; s++)
		printf(" %14zu", sizes[s]);
	printf("\n");
	for (int kind = LADE_CRC32; kind <= LADE_FLETCHER32; kind++) {
		printf("%-14s", lade_checksum_name((lade_checksum)kind));
		for (size_t s = 0; s < 4; s++) {
			static bench_arm lade = {.name = "lade", .run = run_lade};
			static bench_arm reference = {.name = "libdeflate", .run = run_reference};
			bench_arm *arms[] = {&lade, &reference};
			lade.ctx = reference.ctx = &j;
			j.kind = (lade_checksum)kind;
			j.size = sizes[s];
			bench_rounds(arms, 2, (bench_plan){.rounds = rounds, .sample = 0.003});
			printf(" %8.0f %5.2f", bench_mbs(j.size, bench_seconds(&lade).median),
			       bench_ratio(&lade, &reference).median);
		}
		printf("\n");
	}
	return 0;
}
