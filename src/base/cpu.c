/*
 * cpu.c: the instruction sets of this machine, and how many CPUs the process may use.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "base/cpu.h"

#include <lade/cpu.h>

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

lade_cpu lade_cpu_detect(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
	/* The compiler's own detection also asks XGETBV which registers the system saves, so that
	 * "avx2" is false under a system that would lose the upper halves. */
	__builtin_cpu_init();
	if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("pclmul"))
		return LADE_CPU_PLAIN;
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi") ||
	    !__builtin_cpu_supports("bmi2"))
		return LADE_CPU_SSE42;
	if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
	    !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl") ||
	    !__builtin_cpu_supports("avx512cd") || !__builtin_cpu_supports("avx512vbmi") ||
	    !__builtin_cpu_supports("avx512vbmi2") || !__builtin_cpu_supports("avx512vpopcntdq"))
		return LADE_CPU_AVX2;
	return LADE_CPU_AVX512;
#else
	return LADE_CPU_PLAIN;
#endif
}

const char *lade_cpu_name(lade_cpu level)
{
	switch (level) {
	case LADE_CPU_AUTO:
		return "auto";
	case LADE_CPU_PLAIN:
		return "plain";
	case LADE_CPU_SSE42:
		return "sse4.2";
	case LADE_CPU_AVX2:
		return "avx2";
	case LADE_CPU_AVX512:
		return "avx512";
	}
	return "?";
}

/* ---- the control group's quota ---------------------------------------------------------- */

/* The first line of 'dir'/'name' without its newline; false when it cannot be read. */
static bool read_line(const char *dir, const char *name, char *line, int cap)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof path, "%s/%s", dir, name);
	if (n < 0 || (size_t)n >= sizeof path)
		return false;
	FILE *file = fopen(path, "re");
	if (!file)
		return false;
	bool ok = fgets(line, cap, file) != NULL;
	fclose(file);
	return ok;
}

/* CPUs for 'quota' microseconds in each 'period', rounded up; 0 when that is no limit. */
static unsigned cpus(long long quota, long long period)
{
	if (quota <= 0 || period <= 0)
		return 0;
	long long n = quota / period + (quota % period != 0);
	return n > INT_MAX ? 0 : (unsigned)n;
}

/* The limit that one group sets itself.  Version 2: cpu.max is "max 100000" or "50000 100000";
 * version 1 has two files, and a quota of -1 for none. */
static unsigned group_quota(const char *dir, bool v2)
{
	char line[64];
	long long quota = 0, period = 0;
	if (v2) {
		if (!read_line(dir, "cpu.max", line, sizeof line) ||
		    sscanf(line, "%lld %lld", &quota, &period) != 2)
			return 0;
		return cpus(quota, period);
	}
	if (!read_line(dir, "cpu.cfs_quota_us", line, sizeof line) ||
	    sscanf(line, "%lld", &quota) != 1)
		return 0;
	if (!read_line(dir, "cpu.cfs_period_us", line, sizeof line) ||
	    sscanf(line, "%lld", &period) != 1)
		return 0;
	return cpus(quota, period);
}

/* The lowest limit from the group 'path' up to the mount.  Inside a container the path may name
 * groups that are not to be seen there; those have no files, and the root, which is the
 * container's own group, is reached all the same. */
static unsigned path_quota(const char *mount, const char *path, bool v2)
{
	char dir[PATH_MAX];
	int n = snprintf(dir, sizeof dir, "%s%s", mount, path);
	if (n < 0 || (size_t)n >= sizeof dir)
		return 0;
	size_t root = strlen(mount);
	unsigned lowest = 0;
	for (;;) {
		unsigned limit = group_quota(dir, v2);
		if (limit && (!lowest || limit < lowest))
			lowest = limit;
		char *slash = strrchr(dir + root, '/');
		if (!slash)
			return lowest;
		*slash = 0;
	}
}

/* True when the comma-separated 'list' has the controller "cpu". */
static bool has_cpu(const char *list)
{
	for (;;) {
		size_t n = strcspn(list, ",");
		if (n == 3 && memcmp(list, "cpu", 3) == 0)
			return true;
		if (!list[n])
			return false;
		list += n + 1;
	}
}

unsigned lade__cpu_quota(const char *groups, const char *mount)
{
	FILE *file = fopen(groups, "re");
	if (!file)
		return 0;
	unsigned lowest = 0;
	char line[PATH_MAX];
	/* Each line is "number:controllers:path"; version 2 has "0::path". */
	while (fgets(line, sizeof line, file)) {
		line[strcspn(line, "\n")] = 0;
		char *list = strchr(line, ':');
		char *path = list ? strchr(list + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = 0;
		list++;
		unsigned limit = 0;
		if (!*list) {
			limit = path_quota(mount, path, true);
		} else if (has_cpu(list)) {
			char hierarchy[PATH_MAX];
			int n = snprintf(hierarchy, sizeof hierarchy, "%s/%s", mount, list);
			if (n > 0 && (size_t)n < sizeof hierarchy)
				limit = path_quota(hierarchy, path, false);
		}
		if (limit && (!lowest || limit < lowest))
			lowest = limit;
	}
	fclose(file);
	return lowest;
}

/* The CPUs of the affinity mask; at least 1. */
static unsigned affinity_count(void)
{
#ifdef __linux__
	cpu_set_t sets[16]; /* 16,384 CPUs */
	if (sched_getaffinity(0, sizeof sets, sets) == 0) {
		int n = CPU_COUNT_S(sizeof sets, sets);
		if (n > 0)
			return (unsigned)n;
	}
#endif
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	return n > 0 ? (unsigned)n : 1;
}

unsigned lade_cpu_count(void)
{
	unsigned count = affinity_count();
	unsigned quota = lade__cpu_quota("/proc/self/cgroup", "/sys/fs/cgroup");
	return quota && quota < count ? quota : count;
}
