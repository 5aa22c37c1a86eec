#!/usr/bin/env bash
# check_examples.sh BUILD: every examples/*.c and the example at the head of each public header
# compile against the library as strict C11 and run; every examples/*.sh runs, with the command of
# BUILD and the array files of "make demo".
# (README.md shows some of them; check_readme.sh compares.)
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(cd "${1:?usage: check_examples.sh BUILD}" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

for source in examples/*.c; do
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

# A header's example is what its first comment indents by a tab.  That of frame.h makes the file
# that others read; that of rntuple.h reads a file of ROOT's; that of async.h needs a device with
# kernels, and that of share.h a broker: these are compiled only.
cp tests/golden/rntuple/test_int_float_rntuple_v1-0-0-0.root "$dir/data.root"
for header in include/lade/frame.h include/lade/*.h; do
	name=$(basename "$header" .h)
	mkdir -p "$dir/$name"
	awk '/\*\// { exit } sub(/^ \*\t/, "")' "$header" >"$dir/$name/example.inc"
	if ! grep -q '[a-z]' "$dir/$name/example.inc"; then
		echo "$header has no example"
		exit 1
	fi
	cc -std=c11 -Wall -Wextra -Werror -Wno-unused -Wno-unused-parameter -Iinclude \
		-I"$dir/$name" scripts/header_example.c -o "$dir/$name.bin" \
		-L"$build" -llade -Wl,-rpath,"$build"
	file=
	case $name in
		frame) file=x.lade ;;
		foreign) file=x.gz ;;
	esac
	[[ $name == @(async|share) ]] && continue
	if ! (cd "$dir" && "./$name.bin" $file) >"$dir/$name.out" 2>&1; then
		cat "$dir/$name.out"
		echo "the example of $header failed"
		exit 1
	fi
done
echo "the examples of $(ls include/lade/*.h | wc -l) headers compile and run"

cc -O2 scripts/demo_arrays.c -o "$dir/demo_arrays" -lm
for source in examples/*.sh; do
	name=$(basename "$source" .sh)
	mkdir "$dir/$name"
	"$dir/demo_arrays" "$dir/$name" >"$dir/$name.out"
	if ! (cd "$dir/$name" && PATH=$build:$PATH && bash "$OLDPWD/$source") \
		>"$dir/$name.out" 2>&1; then
		cat "$dir/$name.out"
		echo "$name failed"
		exit 1
	fi
	[ "$name" != ten_lines ] ||
		(cd "$dir/$name" && cmp temperature.npy back.npy && cmp times.npy same.npy)
	echo "$name.sh: $(tail -1 "$dir/$name.out")"
done
