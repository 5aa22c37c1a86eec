#!/usr/bin/env bash
# deps.sh build|node|test: looks for what is needed, each thing by trying it.  What is missing is
# installed on Debian and its kin as root; elsewhere it is named, with the way to get it.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
stage=${1:?usage: deps.sh build|node|test}
names=() packages=()

missing() { # name, Debian package
	names+=("$1")
	packages+=("$2")
}
tool() { # command, Debian package
	command -v "$1" >/dev/null || missing "the command $1" "$2"
}
module() { # pkg-config module, Debian package
	pkg-config --exists "$1" 2>/dev/null || missing "the library $1" "$2"
}
header() { # header, library, Debian package
	echo "#include <$1>
int main(void) { return 0; }" | cc -xc - -o /dev/null -l"$2" 2>/dev/null ||
		missing "the library $2" "$3"
}
python_module() { # module, Debian package
	python3 -c "import $1" 2>/dev/null || missing "Python's $1" "$2"
}
library() { # what is opened at run time, Debian package
	python3 -c "import ctypes; ctypes.CDLL('$1')" 2>/dev/null || missing "the library $1" "$2"
}
node_headers() {
	local folder
	folder=$(dirname "$(node -p process.execPath 2>/dev/null || true)")/../include/node
	echo "#include <node_api.h>" | cc -xc - -fsyntax-only -I"$folder" -I/usr/include/node \
		2>/dev/null || missing "the headers of Node" libnode-dev
}
fuzzer() {
	local c='#include <stddef.h>
int LLVMFuzzerTestOneInput(const void *p, size_t n) { return p && n ? 0 : 0; }'
	echo "$c" | clang -xc - -fsanitize=fuzzer,address,undefined -o /dev/null 2>/dev/null ||
		missing "clang with libFuzzer" "clang libclang-rt-14-dev"
}

look() {
	names=() packages=()
	tool cc build-essential
	tool c++ build-essential
	tool cmake cmake
	tool ninja ninja-build
	tool pkg-config pkg-config
	module liblz4 liblz4-dev
	module libzstd libzstd-dev
	module libdeflate libdeflate-dev
	module libxxhash libxxhash-dev
	module zlib zlib1g-dev
	header snappy-c.h snappy libsnappy-dev
	header blosc.h blosc libblosc-dev
	module cmocka libcmocka-dev
	python_module ensurepip python3-venv
	[ "$stage" = build ] && return
	tool node nodejs
	tool npm npm
	node_headers
	[ "$stage" = node ] && return
	tool git git
	tool nm binutils
	tool zstd zstd
	tool lz4 lz4
	tool gzip gzip
	tool pigz pigz
	tool python3 python3
	python_module venv python3-venv
	library libcurl.so.4 libcurl4
	python_module ensurepip python3-venv
	fuzzer
}

look
[ ${#names[@]} = 0 ] && exit 0
list=$(printf '%s\n' ${packages[*]} | sort -u | tr '\n' ' ')
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	echo "installing: $list"
	log=$(mktemp)
	export DEBIAN_FRONTEND=noninteractive
	if ! { apt-get update && apt-get install -y --no-install-recommends $list; } \
		>"$log" 2>&1; then
		tail -20 "$log"
		echo "apt-get could not install them"
		exit 1
	fi
	rm -f "$log"
	look
	[ ${#names[@]} = 0 ] && exit 0
fi
echo "These are missing:"
printf '  %s\n' "${names[@]}"
if command -v apt-get >/dev/null; then
	echo "Get them with: sudo apt-get install $list"
elif command -v dnf >/dev/null; then
	echo "Get them with: sudo dnf install gcc gcc-c++ clang compiler-rt cmake ninja-build" \
		"pkgconf lz4-devel libzstd-devel libdeflate-devel xxhash-devel zlib-devel" \
		"snappy-devel blosc-devel libcmocka-devel"
elif command -v brew >/dev/null; then
	echo "Get them with: brew install cmake ninja pkg-config lz4 zstd libdeflate xxhash zlib" \
		"snappy c-blosc cmocka"
else
	echo "Debian's names for them: $list"
fi
exit 1
