#!/usr/bin/env bash
# check_install.sh BUILD: installs into an empty folder, moves the folder, and consumes it there
# through pkg-config (shared and static) and through the CMake package (both), in C and C++.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(cd "${1:?usage: check_install.sh BUILD}" && pwd)
source=$PWD/tests/consumer
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cmake --install "$build" --prefix "$dir/first" >"$dir/log"
mv "$dir/first" "$dir/prefix"
prefix=$dir/prefix
libdir=$(dirname "$(find "$prefix" -name liblade.a)")
number='s/#define LADE_VERSION_\(MAJOR\|MINOR\|PATCH\) //p'
version=$(sed -n "$number" include/lade/version.h | paste -sd.)
export PKG_CONFIG_PATH=$libdir/pkgconfig

if [ "$(pkg-config --modversion liblade)" != "$version" ]; then
	echo "liblade.pc has another version than version.h, $version"
	exit 1
fi
for file in bin/lade share/man/man1/lade.1 share/man/man1/lade-zarr.1 \
	share/man/man1/lade-rntuple.1 \
	share/man/man1/lade-share.1 \
	share/bash-completion/completions/lade; do
	[ -e "$prefix/$file" ] || { echo "not installed: $file"; exit 1; }
done
for header in include/lade/*.h; do
	[ -e "$prefix/$header" ] || { echo "not installed: $header"; exit 1; }
done
"$prefix/bin/lade" --version >/dev/null

run() { # what, command
	"${@:2}" >"$dir/out" 2>&1 || { cat "$dir/out"; echo "$1 failed"; exit 1; }
	echo "$1: done"
}
run "pkg-config, shared" cc -std=c11 "$source/consumer.c" -o "$dir/shared" \
	$(pkg-config --cflags --libs liblade)
run "  runs" env LD_LIBRARY_PATH="$libdir" "$dir/shared"
run "  -Wl,-rpath" cc -std=c11 "$source/consumer.c" -o "$dir/rpath" \
	$(pkg-config --cflags --libs liblade) -Wl,-rpath,"$libdir"
run "  runs" "$dir/rpath"
run "pkg-config, static" cc -std=c11 -static "$source/consumer.c" -o "$dir/static" \
	$(pkg-config --static --cflags --libs liblade)
run "  runs" "$dir/static"
run "CMake package" cmake -S "$source" -B "$dir/cmake" -DCMAKE_PREFIX_PATH="$prefix"
run "  builds" cmake --build "$dir/cmake"
for program in consumer_shared consumer_static consumer_cxx; do
	run "  $program" "$dir/cmake/$program"
done
run "examples/add_codec" cmake -S examples/add_codec -B "$dir/add_codec" \
	-DCMAKE_PREFIX_PATH="$prefix"
run "  builds" cmake --build "$dir/add_codec"
run "  runs" "$dir/add_codec/add_codec"
