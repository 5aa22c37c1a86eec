#!/usr/bin/env bash
# Formats the C lines that differ from the last commit.  Whole files are not reformatted: tables and
# drawings in comments are set by hand.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
tool=$(command -v clang-format || true)
[ -n "$tool" ] || { echo "clang-format is missing: apt-get install clang-format"; exit 1; }
git diff -U0 HEAD -- '*.c' '*.h' |
	awk '/^\+\+\+ b\// { file = substr($2, 3) }
	     /^@@/ { split($3, a, /[+,]/); n = a[3] == "" ? 1 : a[3]; if (n) print file, a[2], a[2] + n - 1 }' |
	while read -r file first last; do
		"$tool" -i --lines="$first:$last" "$file"
	done
