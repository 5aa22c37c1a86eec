#!/usr/bin/env bash
# fuzz.sh BUILD SECONDS [keep]: replays the corpus of every fuzz target, then fuzzes for SECONDS in
# all, as many targets at a time as there are CPUs; kernels on the emulated warp are among them.
# 'keep' merges what widens the coverage into tests/fuzz/corpus.  Without clang only the corpus is
# replayed, by a program that gcc builds.
# FUZZ_SEED, where set, is libFuzzer's seed: the same walk each time, for a gate.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:?usage: fuzz.sh BUILD SECONDS [keep]}/fuzz
seconds=${2:?usage: fuzz.sh BUILD SECONDS [keep]}
keep=${3:-}
jobs=$(nproc)
mkdir -p "$build"
generator="Unix Makefiles"
command -v ninja >/dev/null && generator=Ninja
clang=yes
command -v clang >/dev/null || clang=
export ASAN_OPTIONS=${ASAN_OPTIONS:-allocator_may_return_null=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}

CC=cc CXX=c++
[ -z "$clang" ] || CC=clang CXX=clang++
cmake -S . -B "$build" -G "$generator" -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" \
	-DLADE_FUZZ=ON -DLADE_TESTS=OFF -DLADE_BENCH=OFF -DLADE_CUDA=OFF \
	-DLADE_SANITIZE=address,undefined \
	-DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS="-O1 -g1" -DCMAKE_CXX_FLAGS="-O1 -g1" \
	>"$build/configure.txt" || { cat "$build/configure.txt"; exit 1; }
targets=()
for source in tests/fuzz/fuzz_*.c{,c}; do
	name=$(basename "$source")
	targets+=("${name%.*}")
done
cmake --build "$build" --parallel "$jobs" --target "${targets[@]}" 2>&1 |
	tee "$build/compile.txt" | tail -3
if grep -a 'warning:' "$build/compile.txt"; then exit 1; fi

# At least a second each; where the corpus takes longer it is replayed, and no more.
each=$((seconds * jobs / ${#targets[@]}))
[ $each -ge 1 ] || each=1

run_target() { # target
	local name=$1 corpus=tests/fuzz/corpus/${1#fuzz_} work=$build/corpus/${1#fuzz_}
	local log=$build/$name.txt dict=() longest=65536
	mkdir -p "$corpus" "$work" "$build/crashes"
	if [ -z "$clang" ]; then
		if ! "$build/tests/fuzz/$name" "$corpus" >"$log" 2>&1; then
			tail -40 "$log"
			echo "FAILED: $name"
			return 1
		fi
		echo "$name: $(tail -1 "$log")"
		return
	fi
	# The emulated warp is slow: its targets take no more (fuzz_kernel.h).
	[[ $name != fuzz_kernel_* ]] || longest=4102
	[ -e "tests/fuzz/$name.dict" ] && dict=(-dict="tests/fuzz/$name.dict")
	if ! "$build/tests/fuzz/$name" -max_total_time="$each" -timeout=20 -rss_limit_mb=3000 \
		-max_len="$longest" -len_control=50 -seed="${FUZZ_SEED:-0}" \
		-artifact_prefix="$build/crashes/$name-" \
		-print_final_stats=1 "${dict[@]}" "$work" "$corpus" >"$log" 2>&1; then
		tail -40 "$log"
		echo "FAILED: $name; the input is in $build/crashes"
		return 1
	fi
	echo "$name: $(sed -n 's/stat::number_of_executed_units: *//p' "$log") runs," \
		"$(grep -aoE 'cov: [0-9]+' "$log" | tail -1)," \
		"$(ls "$corpus" | wc -l) files in the corpus"
	if [ -n "$keep" ]; then
		"$build/tests/fuzz/$name" -merge=1 -max_len=16384 "$corpus" "$work" >>"$log" 2>&1
	fi
}

pids=() rc=0
for name in "${targets[@]}"; do
	while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do sleep 0.2; done
	run_target "$name" &
	pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid" || rc=1; done
exit $rc
