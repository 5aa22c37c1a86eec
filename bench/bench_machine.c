/*
 * bench_machine.c: says on what a result was made: processor, system, compiler, and the versions
 * of the libraries that are linked.
 *
 *     bench_machine           "name: value" lines
 *     bench_machine --cpu     the processor's name only, as it can stand in a file name
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "common.h"

#include <blosc.h>
#include <ctype.h>
#include <libdeflate.h>
#include <lz4.h>
#include <sys/utsname.h>
#include <xxhash.h>
#include <zlib.h>
#include <zstd.h>

/* A line of a file such as /proc/meminfo that begins with 'key'; without its key. */
static void print_line(const char *path, const char *key, const char *name)
{
	char line[256];
	FILE *f = fopen(path, "r");

	while (f && fgets(line, sizeof line, f)) {
		char *colon = strchr(line, ':');
		if (strncmp(line, key, strlen(key)) != 0 || !colon)
			continue;
		line[strcspn(line, "\n")] = 0;
		printf("%s: %s\n", name, colon + 1 + strspn(colon + 1, " \t"));
		break;
	}
	if (f)
		fclose(f);
}

int main(int argc, char **argv)
{
	struct utsname system;

	if (argc > 1 && strcmp(argv[1], "--cpu") == 0) {
		for (const char *c = bench_cpu_name(); *c; c++)
			putchar(isalnum((unsigned char)*c) ? tolower((unsigned char)*c) : '-');
		putchar('\n');
		return 0;
	}
	printf("processor: %s\n", bench_cpu_name());
	print_line("/proc/cpuinfo", "cpu family", "family");
	print_line("/proc/cpuinfo", "model\t", "model");
	print_line("/proc/cpuinfo", "cache size", "cache");
	printf("instruction sets: %s\n", lade_cpu_name(lade_cpu_detect()));
	printf("threads: %u\n", lade_cpu_count());
	print_line("/proc/meminfo", "MemTotal", "memory");
	if (uname(&system) == 0)
		printf("system: %s %s %s\n", system.sysname, system.release, system.machine);
	printf("compiler: %s\n", __VERSION__);
	printf("liblade: %s\n", lade_version_text());
	printf("lz4: %s\n", LZ4_versionString());
	printf("zstd: %s\n", ZSTD_versionString());
	printf("libdeflate: %s\n", LIBDEFLATE_VERSION_STRING);
	printf("zlib: %s\n", zlibVersion());
	printf("c-blosc: %s\n", blosc_get_version_string());
	printf("xxhash: %u\n", XXH_versionNumber());
	return 0;
}
