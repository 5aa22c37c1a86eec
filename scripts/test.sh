#!/usr/bin/env bash
# test.sh BUILD [STEP...]: the suite that CI runs, step by step (all without names).  Each step's
# output goes to BUILD/log/STEP.txt and is shown when it fails.  A step that takes more processor
# time than its budget fails, too; BUDGET=2 doubles the budgets, for a slower machine.
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
counts=$build/log/counts
: >"$counts"

# Seconds of processor time, about 1.6 times what a quiet machine of two cores takes; a new layer's
# part is 90 seconds of those two cores.  What needs more is for 'make test-long'.
declare -A budgets=([gates]=10 [headers]=30 [build]=800 [rooms]=10 [unit]=300 [exports]=5
	[install]=60 [examples]=60 [interop]=200 [cli]=120 [docs]=60 [python]=750 [asan]=1200
	[tsan]=400 [fuzz]=560 [abi]=120 [inside]=120 [prefix]=60 [node]=60
	[unit-all]=300 [asan-all]=1300 [tsan-all]=900)
budget_other=180
# The processor time of this shell's children so far, in hundredths of a second.
spent() {
	local stat
	read -r stat <"/proc/$BASHPID/stat"
	# shellcheck disable=SC2086 # the fields behind the name
	set -- ${stat##*) }
	spent=$((${14} + ${15}))
}

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

# Runs a step and counts: each test of the cmocka and pytest programs, or the step as one.  A line
# of $counts says how many passed, how many failed, and the step's name.
step() { # name, command
	local name=$1 log=$build/log/$1.txt began=$SECONDS rc=0 good bad note= used
	local budget=$((${budgets[$1]:-$budget_other} * ${BUDGET:-1}))
	# No substitution, whose shell would have no children yet.
	spent
	used=$spent
	"${@:2}" >"$log" 2>&1 || rc=$?
	spent
	used=$(((spent - used) / 100))
	if [ $used -gt $budget ]; then
		echo "FAILED: $used s of processor time, the budget of $name is $budget" >>"$log"
		[ $rc != 0 ] || rc=1
	fi
	good=$(numbers "$log" PASSED passed)
	bad=$(numbers "$log" FAILED failed)
	if [ $rc = 0 ] && [ "$bad" = 0 ]; then
		[ "$good" -gt 1 ] && note="$good tests"
		grep -q '^skipped: ' "$log" && note=$(grep '^skipped: ' "$log" | head -1)
		[ "$good" = 0 ] && good=1
		printf 'ok    %-10s %4d s  %4d s of %4d  %s\n' "$name" $((SECONDS - began)) $used \
			$budget "$note"
		echo "$good 0 $name" >>"$counts"
		return
	fi
	[ "$bad" = 0 ] && bad=1
	printf 'FAIL  %-10s %4d s  (all of it: %s)\n' "$name" $((SECONDS - began)) "$log"
	{
		grep -aE 'error:|warning:|ERROR|\*\*\*|SUMMARY|undefined|FAILED' "$log" | head -40
		echo ...
		tail -25 "$log"
	} | sed 's/^/      | /'
	echo "$good $bad $name" >>"$counts"
}

# Builds a folder; a warning is a failure.  (Not with sanitizers: GCC then warns of what is fine.)
compile() { # folder
	cmake --build "$1" --parallel "$jobs" 2>&1 | tee "$1/compile.txt" || return
	! grep -a 'warning:' "$1/compile.txt"
}
build_all() {
	configure "$build" -DLADE_TESTS=ON -DLADE_BENCH=ON && compile "$build"
}
run_ctest() { # folder, names, names that are left out
	$setarch ctest --test-dir "$1" --verbose --no-tests=error --timeout 300 ${2:+-R "$2"} \
		${3:+-E "$3"}
}
sanitized() { # folder, sanitizers, names of tests, names that are left out
	local targets=()
	# Real kernels run on no sanitizer's machine; one shows that they can be loaded.
	configure "$1" -DLADE_SANITIZE="$2" -DLADE_BENCH=OFF -DLADE_CUDA_ONLY=selftest \
		-DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS="-O1 -g1" || return
	# Of some tests only these are built: a test has its program's name.
	[ -z "${3:-}" ] || targets=(--target $(ctest --test-dir "$1" -N -R "$3" |
		sed -n 's/^ *Test *#[0-9]*: //p'))
	cmake --build "$1" --parallel "$jobs" "${targets[@]}" && run_ctest "$1" "${3:-}" "${4:-}"
}
# The thread sanitizer's memory layout is not at home where addresses are randomised far.
setarch=
setarch -R true 2>/dev/null && setarch="setarch -R"

# What the thread sanitizer runs: formats and filters have no threads of their own.
threads='test_(engine|batch|async|frame|foreign|checksums|oom|io|store|cancel)'
# Each test runs once in 'make test', with the address sanitizer where memory is what it is about;
# steps with 'all' in their names, for 'make test-long', run them everywhere.
devices='_emulated$|driver_fails|frame_far|(frame|io|store|zarr|write)_device'
slow='test_kernel_(lz|ans|deflate)' # fuzz targets run these kernels under it
few_threads='test_(engine|batch_damage|frame_[dr]|checksums|oom$|oom_(frame|store)|io|store|cancel)'
few_threads+='|test_batch(_cancel|_fails|_layout)?_emulated'

run_steps() { # name...
	local name
	for name; do
		case $name in
		gates) step gates scripts/gates.sh ;;
		headers) step headers scripts/check_headers.sh ;;
		build) step build build_all ;;
		rooms) step rooms python3 scripts/check_rooms.py "$build" ;;
		unit) step unit run_ctest "$build" "" "$devices" ;;
		unit-all) step unit-all run_ctest "$build" ;;
		exports) step exports scripts/check_exports.sh "$build/liblade.so" ;;
		install) step install scripts/check_install.sh "$build" ;;
		examples) step examples scripts/check_examples.sh "$build" ;;
		asan) step asan sanitized "$build/asan" address,undefined "" "$slow" ;;
		asan-all) step asan-all sanitized "$build/asan" address,undefined ;;
		tsan) step tsan sanitized "$build/tsan" thread "$few_threads" ;;
		tsan-all) step tsan-all sanitized "$build/tsan" thread "$threads" ;;
		# A search with new inputs each time is 'make fuzz'; here the same must always pass.
		fuzz) FUZZ_SEED=1 step fuzz scripts/fuzz.sh "$build" 24 ;;
		*) step "$name" "tests/$name/run.sh" "$build" ;;
		esac
	done
}

if [ $# -gt 0 ]; then
	run_steps "$@"
else
	run_steps gates headers build
	# The steps after it would only say the same again.
	if ! grep -q '^[0-9]* [1-9][0-9]* build$' "$counts"; then
		run_steps rooms unit exports install examples
		# These keep one processor busy, Python's the other one, and then Node's, whose
		# tests use the Python package.  The Python packages that interop gets are at hand
		# for the command's tests then.
		others=(interop)
		for script in tests/*/run.sh; do
			name=$(basename "$(dirname "$script")")
			[[ " interop python node " == *" $name "* ]] ||
				others+=("$name")
		done
		run_steps "${others[@]}" &
		run_steps python node
		wait
		run_steps asan tsan fuzz
	fi
fi

awk -v seconds="$SECONDS" '
	{ passed += $1; failed += $2 }
	$2 { names = names " " $3 }
	END {
		if (failed)
			print "failed:" names
		printf "%d passed, %d failed (%d s)\n", passed, failed, seconds
		exit failed > 0 || passed == 0
	}' "$counts"
