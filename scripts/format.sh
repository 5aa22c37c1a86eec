#!/usr/bin/env bash
# format.sh [FILE...]: formats C lines with clang-format: those that differ from the last commit,
# or, of the files named, those of more than 100 columns.  Whole files are not reformatted: tables
# and drawings in comments are set by hand.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
tool=$(command -v clang-format || true)
[ -n "$tool" ] || { echo "clang-format is missing: apt-get install clang-format"; exit 1; }

# Each line of the input is "FILE FIRST LAST"; ranges move when lines are formatted above them, so
# that one call of the tool gets all those of a file.
format() {
	sort -k1,1 -k2,2n | awk '
		$1 != file { if (file) print args, file; file = $1; args = "" }
		{ args = args " --lines=" $2 ":" $3 }
		END { if (file) print args, file }' | while read -r args; do
		"$tool" -i $args
	done
}
long_lines() { # file
	expand -t8 "$1" | awk -v f="$1" 'length($0) > 100 { print f, NR, NR }'
}

if [ $# -gt 0 ]; then
	for file in "$@"; do long_lines "$file"; done | format
else
	git diff -U0 HEAD -- '*.c' '*.h' '*.cc' '*.cu' '*.cuh' | awk '
		/^\+\+\+ b\// { file = substr($2, 3) }
		/^@@/ {
			split($3, a, /[+,]/)
			n = a[3] == "" ? 1 : a[3]
			if (n) print file, a[2], a[2] + n - 1
		}
	' | format
fi
