#!/usr/bin/env bash
# run.sh BUILD: a codec is added inside the tree as docs/adding-a-codec.md says: its folder
# (tests/inside/flip) and a line in the list.  The library that comes of it runs it on the host and
# on an emulated device, and the command knows it.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(cd "${1:?usage: run.sh BUILD}" && pwd)/inside
tree=$build/tree
mkdir -p "$tree/tests/gpu"
# Times are kept, so that only what has changed is built again.
rm -rf "$tree/src" "$tree/include" "$tree/cmake" "$tree/testing"
cp -a CMakeLists.txt src include cmake testing "$tree/"
cp -a tests/gpu/emulated.h "$tree/tests/gpu/"
# The folder, and the line.
cp -a tests/inside/flip "$tree/src/codec/"
sed -i "s/^\tX(ans)/\tX(flip) \\\\\n\tX(ans)/" "$tree/src/codec/codecs.h"
touch -r src/codec/codecs.h "$tree/src/codec/codecs.h"
(cd "$tree" && grep -q 'X(flip)' src/codec/codecs.h)

generator="Unix Makefiles"
command -v ninja >/dev/null && generator=Ninja
cmake -S tests/inside -B "$build/make" -G "$generator" -DTREE="$tree" -DCMAKE_BUILD_TYPE=None \
	-DCMAKE_C_FLAGS=-O1 -DCMAKE_CXX_FLAGS=-O1 >"$build/cmake.txt"
cmake --build "$build/make" --target inside --parallel "$(nproc)" >"$build/make.txt" 2>&1 ||
	{ tail -30 "$build/make.txt"; exit 1; }
export LD_LIBRARY_PATH=$build/make/emulated
"$build/make/inside"

# The command: it lists the codec, compresses with it, decompresses on the host and the device, and
# tries it.
lade=$build/make/lade/lade
"$lade" --algorithms | grep '^flip  *codec  *bytes with each bit the other way$' >/dev/null
seq 20000 >"$build/a"
"$lade" -f --algorithm=flip --chunk-size=16K -o "$build/a.lade" "$build/a"
"$lade" -l "$build/a.lade" | grep -w flip >/dev/null
for where in "" --gpu; do
	"$lade" -dc $where "$build/a.lade" | cmp - "$build/a"
done
"$lade" suggest -a "$build/a" | grep -w flip >/dev/null
echo "the command has flip, too"
