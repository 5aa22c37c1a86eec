#!/usr/bin/env bash
# check_examples.sh BUILD: the C program of README.md and every examples/*.c compile against the
# library as strict C11 and run.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(cd "${1:?usage: check_examples.sh BUILD}" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# The first C block of the README that has a main().
awk '/^```c$/ { on = 1; text = ""; next }
     /^```$/ && on { on = 0; if (text ~ /int main\(/) { printf "%s", text; exit } next }
     on { text = text $0 "\n" }' README.md >"$dir/readme.c"
[ -s "$dir/readme.c" ] || { echo "README.md has no C program"; exit 1; }

for source in "$dir/readme.c" examples/*.c; do
	[ -e "$source" ] || continue
	name=$(basename "$source" .c)
	cc -std=c11 -Wall -Wextra -Werror -Iinclude "$source" -o "$dir/$name.bin" \
		-L"$build" -llade -Wl,-rpath,"$build"
	if ! (cd "$dir" && "./$name.bin") >"$dir/$name.out"; then
		cat "$dir/$name.out"
		echo "$name failed"
		exit 1
	fi
	echo "$name: $(head -1 "$dir/$name.out")"
done
