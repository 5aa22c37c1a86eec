#!/usr/bin/env bash
# test_long.sh BUILD: all tests under each sanitizer, soak, a million rounds of sharing, a 5 GiB
# frame, a 4 GiB .gz file, a million tiny chunks, chunks of 2 GiB - 1 (7 GiB of memory), damaged
# RNTuples, and long fuzzing (SOAK and FUZZ are seconds, 600 and 1800 unless set; RNTUPLES files, a
# million).  What it prints is kept in tests/long/log, which is committed before a release.
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail
cd "$(dirname "$0")/.."
build=${1:?usage: test_long.sh BUILD}
folder=$(mktemp -d "${TMPDIR:-/tmp}/lade-long-XXXXXX")
trap 'rm -rf "$folder"' EXIT
generator="Unix Makefiles"
command -v ninja >/dev/null && generator=Ninja
{ cmake -S . -B "$build" -G "$generator" -DLADE_TESTS=ON &&
	cmake --build "$build" --parallel --target lade lade_long \
		lade_long_rntuple lade_long_share; } >/dev/null || exit 1

passed=0 failed=0
run() { # what, command
	local began=$SECONDS
	echo "== $1"
	if "${@:2}" 2>&1; then
		passed=$((passed + 1))
		echo "ok, $((SECONDS - began)) s"
	else
		failed=$((failed + 1))
		echo "FAILED, $((SECONDS - began)) s"
	fi
}
packages() {
	"$build/python/venv/bin/pip" install --quiet --disable-pip-version-check anndata icechunk &&
		tests/python/run.sh "$build" -k test_zarr_packages
}
everything() {
	echo "lade $("$build/lade" --version | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -1)," \
		"$(git rev-parse --short HEAD 2>/dev/null), $(nproc) CPUs, $(uname -m)"
	run "all tests, and under each sanitizer" scripts/test.sh "$build" build unit-all asan-all \
		tsan-all
	run "zarr-python's tests" env LADE_ZARR_SUITE=all tests/python/run.sh "$build" \
		-k test_all_suites
	run "packages that store by zarr-python" packages
	run "a million tiny chunks" "$build/tests/lade_long" tiny "$folder"
	run "chunks of the largest size" "$build/tests/lade_long" limit
	run "a frame of 5 GiB" "$build/tests/lade_long" big "$folder" 5
	run "a .gz file of more than 4 GiB" tests/long/gz.sh "$build/lade"
	run "soak" "$build/tests/lade_long" soak "${SOAK:-600}" "$$"
	run "a million rounds of sharing" "$build/tests/lade_long_share"
	run "an RNTuple above 2 GB" "$build/tests/lade_long_rntuple" far "$folder"
	run "damaged RNTuples" "$build/tests/lade_long_rntuple" mutate "$folder" \
		"${RNTUPLES:-1000000}" "$$" tests/golden/rntuple/*.root tests/fuzz/corpus/rntuple/*
	run "fuzzing" scripts/fuzz.sh "$build" "${FUZZ:-1800}"
	echo "$passed passed, $failed failed"
	[ $failed = 0 ]
}
everything | tee tests/long/log
exit "${PIPESTATUS[0]}"
