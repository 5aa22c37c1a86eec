#!/usr/bin/env bash
# test.sh BUILD [STEP...]: the suite that CI runs, step by step (all without names).  Each step's
# output goes to BUILD/log/STEP.txt and is shown when it fails.
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail
cd "$(dirname "$0")/.."
build=${1:?usage: test.sh BUILD [STEP...]}
shift
mkdir -p "$build/log"
jobs=$(nproc)
export CTEST_PARALLEL_LEVEL=$jobs
# A size that hostile input claims may be refused by the allocator: that is not an error of ours.
export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=allocator_may_return_null=1:halt_on_error=1
passed=0 failed=0 failures=()

configure() { # folder, options of cmake
	local generator="Unix Makefiles"
	command -v ninja >/dev/null && generator=Ninja
	cmake -S . -B "$1" -G "$generator" "${@:2}"
}

# The sum of the numbers before or after a word in a log: cmocka's and pytest's counts.
numbers() { # log, cmocka's word, pytest's word
	grep -aoE "\[  $2  \] [0-9]+ test|(^|[ ,])[0-9]+ $3( |,|\$)" "$1" | grep -oE '[0-9]+' |
		awk '{ n += $1 } END { print n + 0 }'
}

# Runs a step and counts: each test of the cmocka and pytest programs, or the step as one.
step() { # name, command
	local name=$1 log=$build/log/$1.txt began=$SECONDS rc=0 good bad note=
	"${@:2}" >"$log" 2>&1 || rc=$?
	good=$(numbers "$log" PASSED passed)
	bad=$(numbers "$log" FAILED failed)
	if [ $rc = 0 ] && [ "$bad" = 0 ]; then
		[ "$good" -gt 1 ] && note="$good tests"
		grep -q '^skipped: ' "$log" && note=$(grep '^skipped: ' "$log" | head -1)
		[ "$good" = 0 ] && good=1
		printf 'ok    %-10s %4d s  %s\n' "$name" $((SECONDS - began)) "$note"
		passed=$((passed + good))
		return
	fi
	[ "$bad" = 0 ] && bad=1
	printf 'FAIL  %-10s %4d s  (all of it: %s)\n' "$name" $((SECONDS - began)) "$log"
	{
		grep -aE 'error:|warning:|ERROR|\*\*\*|SUMMARY|undefined|FAILED' "$log" | head -40
		echo ...
		tail -25 "$log"
	} | sed 's/^/      | /'
	passed=$((passed + good)) failed=$((failed + bad)) failures+=("$name")
}

# Builds a folder; a warning is a failure.  (Not with sanitizers: GCC then warns of what is fine.)
compile() { # folder
	cmake --build "$1" --parallel "$jobs" 2>&1 | tee "$1/compile.txt" || return
	! grep -a 'warning:' "$1/compile.txt"
}
build_all() {
	configure "$build" -DLADE_TESTS=ON -DLADE_BENCH=ON && compile "$build"
}
run_ctest() { # folder, names
	$setarch ctest --test-dir "$1" --verbose --no-tests=error --timeout 300 ${2:+-R "$2"}
}
sanitized() { # folder, sanitizers, names of tests
	# Real kernels run on no sanitizer's machine; one shows that they can be loaded.
	configure "$1" -DLADE_SANITIZE="$2" -DLADE_BENCH=OFF -DLADE_CUDA_ONLY=selftest \
		-DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS="-O1 -g1" &&
		cmake --build "$1" --parallel "$jobs" && run_ctest "$1" "${3:-}"
}
# The thread sanitizer's memory layout is not at home where addresses are randomised far.
setarch=
setarch -R true 2>/dev/null && setarch="setarch -R"

# What the thread sanitizer runs; formats and filters have no threads of their own.
threaded='test_(engine|batch|frame|foreign|checksums|oom)'

steps=(gates headers build unit exports install examples)
# The Python packages that interop gets are at hand for the command's tests then.
steps+=(interop)
for script in tests/*/run.sh; do
	name=$(basename "$(dirname "$script")")
	[ "$name" = interop ] || steps+=("$name")
done
steps+=(asan tsan fuzz)
[ $# -gt 0 ] && steps=("$@")

for name in "${steps[@]}"; do
	case $name in
	gates) step gates scripts/gates.sh ;;
	headers) step headers scripts/check_headers.sh ;;
	build)
		step build build_all
		# The steps after it would only say the same again.
		[[ " ${failures[*]-} " == *" build "* ]] && break
		;;
	unit) step unit run_ctest "$build" ;;
	exports) step exports scripts/check_exports.sh "$build/liblade.so" ;;
	install) step install scripts/check_install.sh "$build" ;;
	examples) step examples scripts/check_examples.sh "$build" ;;
	asan) step asan sanitized "$build/asan" address,undefined ;;
	tsan) step tsan sanitized "$build/tsan" thread "$threaded" ;;
	# A search with new inputs each time is 'make fuzz'; here the same must pass every time.
	fuzz) FUZZ_SEED=1 step fuzz scripts/fuzz.sh "$build" 24 ;;
	*) step "$name" "tests/$name/run.sh" "$build" ;;
	esac
done

[ ${#failures[@]} = 0 ] || echo "failed: ${failures[*]}"
echo "$passed passed, $failed failed ($SECONDS s)"
[ $failed = 0 ]
