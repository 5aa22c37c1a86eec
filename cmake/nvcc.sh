#!/usr/bin/env bash
# nvcc.sh REPORT NVCC ARGUMENT...: compiles, and keeps in REPORT what ptxas tells of the kernels;
#                                  everything else it says is shown.
# nvcc.sh --table FILE REPORT...:  makes one table of the reports.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail

if [ "$1" = --table ]; then
	file=$2
	shift 2
	{
		printf '%-44s %-6s %9s %9s %9s %9s\n' kernel arch registers shared stack spilled
		for report; do
			awk '
			/Compiling entry function/ {
				split($0, part, "\047")
				kernel = part[2]
				arch = part[4]
				stack = spilled = 0
			}
			/bytes stack frame/ {
				stack = $1
				spilled = $5 + $9
			}
			/Used [0-9]+ registers/ {
				shared = 0
				for (i = 1; i < NF; i++) {
					if ($(i + 1) == "registers,")
						registers = $i
					if ($(i + 1) == "bytes" && $(i + 2) ~ /^smem/)
						shared = $i
				}
				printf "%-44s %-6s %9d %9d %9d %9d\n", kernel, arch, registers,
					shared, stack, spilled
			}' "$report"
		done
	} >"$file"
	exit
fi

report=$1
shift
rc=0
"$@" >"$report" 2>&1 || rc=$?
# A warning is worded as the C compilers word theirs, so that it is found by who looks for those.
grep -v '^ptxas info\|^ *[0-9]* bytes stack frame' "$report" |
	sed 's/warning *#/warning: #/; s/^ptxas warning :/ptxas warning:/' || true
exit $rc
