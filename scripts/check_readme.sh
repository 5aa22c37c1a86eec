#!/usr/bin/env bash
# check_readme.sh: the C programs that README.md and docs/layouts.md show are those of examples
# (which check_examples.sh compiles and runs).
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
same() { # document program
	local shown
	shown=$(awk '/^```c$/ { on = 1; next } /^```$/ && on { exit } on' "$1")
	diff -u "$2" <(echo "$shown") || {
		echo "$1 shows another program than $2"
		exit 1
	}
	echo "$1 shows $2"
}
same README.md examples/ten_lines.c
same docs/layouts.md examples/transposed.c
