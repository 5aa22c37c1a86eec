#!/usr/bin/env bash
# variants.sh NVCC FOLDER: builds bench/gpu/lz_bench.cu once for each variant of the decoding
# kernels that waits to be compared (src/cuda/lz_exec.cuh), as FOLDER/bin/lz_bench_NAME: in a folder
# of pack.sh's, 'run.sh variants' then runs them all on the sets in DATA.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
usage="usage: variants.sh NVCC FOLDER"
nvcc=${1:?$usage}
folder=${2:?$usage}
cd "$(dirname "$0")/../.."
mkdir -p "$folder/bin"
libraries=$(cd "$(dirname "$nvcc")/../lib" && pwd)
build() { # name, definitions
	local name=$1
	shift
	"$nvcc" -std=c++17 -O3 -arch=sm_90 "${@/#/-D}" -Isrc -Iinclude bench/gpu/lz_bench.cu \
		-o "$folder/bin/lz_bench_$name" -L"$libraries" -llz4 -lsnappy -lpthread
	echo "$name: $*"
}
build inline LADE_LZ_SOLO_CALLS=0 LADE_LZ_TEAM_CALLS=0
build default
build called LADE_LZ_SOLO_CALLS=2 LADE_LZ_TEAM_CALLS=2
build redirect4 LADE_LZ_REDIRECT=4
build redirect8 LADE_LZ_REDIRECT=8
build redirect4_called LADE_LZ_REDIRECT=4 LADE_LZ_SOLO_CALLS=2 LADE_LZ_TEAM_CALLS=2
