#!/usr/bin/env bash
# run.sh BUILD: a build finds other versions of the libraries by CMAKE_PREFIX_PATH, those with
# pkg-config files and those without, and what is built and installed uses them: copies of the
# system's libraries in a folder of their own, which say that they are of another version.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(cd "${1:?usage: run.sh BUILD}" && pwd)
work=$build/prefix
# Not below the sources: what is built there is never the place of an installed library.
prefix=$(mktemp -d "${TMPDIR:-/tmp}/lade-prefix-XXXXXX")
trap 'rm -rf "$prefix"' EXIT
rm -rf "$work"
mkdir -p "$work" "$prefix/lib/pkgconfig" "$prefix/include"
export LC_ALL=C

# "1.5.4" becomes "9.5.4", in files as long as they were.
newer() { # version, file...
	sed -i "s/${1//./\\.}/9${1#?}/g" "${@:2}"
}
headers() { # the folder of one, patterns
	local folder
	folder=$(dirname "$(echo "#include <$1>" | cc -xc -M - | grep -o "[^ ]*/$1")")
	for pattern in "${@:2}"; do
		# shellcheck disable=SC2086 # patterns
		cp "$folder"/$pattern "$prefix/include/"
	done
}
library() { # name: with the name that the loader wants
	local file name
	file=$(readlink -f "$(cc -print-file-name="lib$1.so")")
	name=$(objdump -p "$file" | awk '$1 == "SONAME" { print $2 }')
	cp "$file" "$prefix/lib/$name"
	ln -s "$name" "$prefix/lib/lib$1.so"
}
package() { # pkg-config's name, library
	cat >"$prefix/lib/pkgconfig/$1.pc" <<-EOF
		Name: $1
		Description: a copy
		Version: $(pkg-config --modversion "$1" | sed 's/^./9/')
		Libs: -L$prefix/lib -l$2
		Cflags: -I$prefix/include
	EOF
}
for name in lz4 zstd deflate xxhash z snappy blosc; do library "$name"; done
package liblz4 lz4
package libzstd zstd
package libdeflate deflate
package libxxhash xxhash
package zlib z
headers zstd.h 'zstd*.h'
headers lz4.h 'lz4*.h'
headers zlib.h zlib.h
headers zconf.h zconf.h
headers xxhash.h 'xxh*.h'
headers libdeflate.h libdeflate.h
headers blosc.h 'blosc*.h'
headers snappy-c.h 'snappy*.h'
zstd=$(pkg-config --modversion libzstd) deflate=$(pkg-config --modversion libdeflate)
newer "$zstd" "$prefix"/lib/libzstd.so.*
newer "$deflate" "$prefix/include/libdeflate.h"
sed -i 's/\(#define SNAPPY_MAJOR\) .*/\1 9/' "$prefix/include/snappy-stubs-public.h"

generator="Unix Makefiles"
command -v ninja >/dev/null && generator=Ninja
cmake -S . -B "$work/build" -G "$generator" \
	-DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_INSTALL_PREFIX="$work/installed" \
	-DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS=-O0 -DLADE_CUDA=OFF -DLADE_TESTS=OFF \
	-DLADE_BENCH=OFF
cmake --build "$work/build" --parallel --target lade liblade liblade_static
cmake --install "$work/build"

bad=0
fail() {
	echo "$lade: $1"
	bad=1
}

# A folder with one library, named in the environment: the others are the system's.
one=$prefix/one
mkdir -p "$one/lib/pkgconfig" "$one/include"
cp -a "$prefix"/lib/libzstd.* "$one/lib/"
cp "$prefix"/include/zstd*.h "$one/include/"
sed "s|$prefix|$one|g" "$prefix/lib/pkgconfig/libzstd.pc" >"$one/lib/pkgconfig/libzstd.pc"
lade=$work/one
CMAKE_PREFIX_PATH=$one cmake -S . -B "$work/one" -G "$generator" \
	-DLADE_CUDA=OFF -DLADE_TESTS=OFF -DLADE_BENCH=OFF
grep '^pkgcfg_lib_' "$work/one/CMakeCache.txt" | tee "$work/found"
grep -q "=$one/lib/libzstd\.so$" "$work/found" || fail "not the folder's zstd"
[ "$(grep -c "=$prefix/" "$work/found")" = 1 ] || fail "more than zstd is the folder's"
for lade in "$work/build/lade" "$work/installed/bin/lade"; do
	"$lade" -V | tee "$work/versions"
	grep -qx "zstd 9${zstd#?}" "$work/versions" || fail "not the prefix's zstd"
	grep -qx "libdeflate 9${deflate#?} (its headers)" "$work/versions" ||
		fail "not the prefix's libdeflate.h"
	grep -q "^snappy 9" "$work/versions" || fail "not the prefix's headers of Snappy"
	ldd "$lade" | tee "$work/linked"
	for name in lz4 zstd deflate xxhash z snappy blosc; do
		grep -q "lib$name\.so.* => $prefix/lib/" "$work/linked" ||
			fail "lib$name is not the prefix's"
	done
done
exit $bad
