/*
 * cpu.h: the part of CPU detection that tests feed with files of their own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LADE_BASE_CPU_H
#define LADE_BASE_CPU_H

/*
 * The CPU quota of this process's control groups in whole CPUs, rounded up; 0 when there is
 * none.  'groups' is /proc/self/cgroup, 'mount' is /sys/fs/cgroup.
 */
unsigned lade__cpu_quota(const char *groups, const char *mount);

#endif
