#!/usr/bin/env bash
# check_readme.sh: README.md is short, and shows programs that run: its C and its shell are
# examples/ten_lines.c and .sh (check_examples.sh runs them), its Python is
# examples/python/ten_lines.py (python/tests/test_examples.py runs it).  Its charts show the
# results that are there.  docs/layouts.md shows examples/transposed.c,
# docs/zarr.md examples/zarr_lines.c and .sh.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
limit=900

# The first block of a language; the program's lines, or those behind the pattern's last match.
shows() { # document, language, program, pattern
	local from=1
	[ -z "${4:-}" ] || from=$(awk -v last="$4" '$0 ~ last { n = NR } END { print n + 1 }' "$3")
	diff -u <(tail -n "+$from" "$3" | sed '/./,$!d') \
		<(awk -v first="\`\`\`$2" \
			'on && /^```$/ { exit } on; $0 == first { on = 1 }' "$1") || {
		echo "$1 shows another program than $3"
		exit 1
	}
	echo "$1 shows $3"
}
shows README.md c examples/ten_lines.c 'SPDX-License'
shows README.md python examples/python/ten_lines.py '^"""$'
shows README.md sh examples/ten_lines.sh '^set -euo'
shows docs/layouts.md c examples/transposed.c
shows docs/zarr.md c examples/zarr_lines.c 'SPDX-License'
shows docs/zarr.md sh examples/zarr_lines.sh '^set -euo'
words=$(wc -w <README.md)
echo "README.md has $words words, at most $limit"
[ "$words" -le $limit ]
python3 bench/charts.py --check
