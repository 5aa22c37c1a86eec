#!/usr/bin/env bash
# pack.sh BUILD FOLDER [PROGRAM...]: gathers in FOLDER what another machine, one with a GPU, needs
# to run a build's command, tests and benchmarks: FOLDER/bin, FOLDER/lib with the libraries that
# such a machine may lack, FOLDER/run.sh.  PROGRAMs are further executables of the build, by path.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
usage="usage: pack.sh BUILD FOLDER [PROGRAM...]"
build=$(cd "${1:?$usage}" && pwd)
folder=${2:?$usage}
shift 2
here=$(cd "$(dirname "$0")" && pwd)
for program in "$build/lade" "$build/tests/gpu/test_device" "$@"; do
	[ -e "$program" ] || {
		echo "pack.sh: there is no $program: build all first (cmake -S . -B $build" \
			"-DLADE_TESTS=ON -DLADE_BENCH=ON && cmake --build $build)" >&2
		exit 1
	}
done
mkdir -p "$folder/bin" "$folder/lib"
rm -f "$folder"/bin/* "$folder"/lib/*
programs=("$build/lade" "$build/tests/gpu/test_device" "$@")
# The tests of batches and the benchmarks, as far as they have been built.
for program in "$build"/tests/gpu/test_{batch,async,two,rntuple_made}* \
	"$build"/bench/{hostile,hostile_specs,gpu_bench,fed_bench,zarr_bench,rntuple_bench}; do
	case $program in *_emulated) continue ;; esac
	[ -x "$program" ] && [ -f "$program" ] && programs+=("$program")
done
cp "${programs[@]}" "$folder/bin/"
cp -L "$build"/liblade.so.? "$folder/lib/"
# What the C and C++ compilers bring is on every machine, and often newer there.
for program in "${programs[@]}"; do
	ldd "$program" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }'
done | sort -u | while read -r library; do
	case $(basename "$library") in
	libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | ld-linux* | \
		libgcc_s.so.* | libstdc++.so.* | liblade.so.*) ;;
	*) cp -L "$library" "$folder/lib/" ;;
	esac
done
# Lines of source that profilers show are in the kernels; the host's are not needed.
strip --strip-debug "$folder"/bin/* "$folder"/lib/*.so* 2>/dev/null || true
[ -e "$build/kernels.txt" ] && cp "$build/kernels.txt" "$folder/"
cp "$here/run.sh" "$here/parts.sh" "$folder/"
echo "$folder: $(du -sm "$folder" | cut -f1) MiB; there: $folder/run.sh"
