#!/usr/bin/env bash
# check_readme.sh: the C program in README.md is examples/ten_lines.c (which check_examples.sh
# compiles and runs).
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
shown=$(awk '/^```c$/ { on = 1; next } /^```$/ && on { exit } on' README.md)
diff -u examples/ten_lines.c <(echo "$shown") || {
	echo "README.md shows another program than examples/ten_lines.c"
	exit 1
}
echo "README.md shows examples/ten_lines.c"
