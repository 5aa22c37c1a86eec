#!/usr/bin/env bash
# run.sh BUILD: a caller compiled with the headers of 0.2.0 (tests/abi/include) runs with a library
# whose structs have all grown at their ends, as a later version's may.  While 0.2.0 is not released
# these headers must be today's: scripts/abi.sh makes them so, on purpose.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(cd "${1:?usage: run.sh BUILD}" && pwd)/abi
tree=$build/tree
if grep -q '^## 0.2.0, not yet released' CHANGELOG.md &&
	! diff -r include/lade tests/abi/include/lade >"$build.diff"; then
	cat "$build.diff"
	echo "include/lade has changed, and tests/abi/include has not: run scripts/abi.sh"
	exit 1
fi
mkdir -p "$tree"
python3 tests/abi/grow.py include/lade "$tree/include/lade"
# Times are kept, so that only what has changed is built again.
rm -rf "$tree/src" "$tree/cmake"
cp -a CMakeLists.txt src cmake "$tree/"
generator="Unix Makefiles"
command -v ninja >/dev/null && generator=Ninja
flags="-O1 -DLADE_TEST_GROWN -Wno-missing-field-initializers"
cmake -S "$tree" -B "$build/grown" -G "$generator" -DLADE_CUDA=OFF -DLADE_TESTS=OFF \
	-DLADE_BENCH=OFF -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS="$flags" >"$build/cmake.txt"
cmake --build "$build/grown" --target liblade --parallel "$(nproc)" >"$build/make.txt" 2>&1 ||
	{ tail -30 "$build/make.txt"; exit 1; }
${CC:-cc} -std=gnu11 -g -Wall -Wextra -Werror -Itests/abi/include tests/abi/caller.c \
	-o "$build/caller" -L"$build/grown" -llade -Wl,-rpath,"$build/grown"
"$build/caller"
