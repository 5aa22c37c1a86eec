#!/usr/bin/env bash
# run.sh [NAME...]: runs a build on a machine with a GPU.  It stands in a folder that pack.sh filled
# (by hand: set LADE_PACK to that folder).  Without names all steps are done:
#   devices  lade devices, as text and as JSON
#   check    lade devices --check
#   test     test_device: memory of all kinds, streams, kernels, errors, forks; and the tests of
#            batches, test_batch*, test_async*
#   memcheck the same under compute-sanitizer, where that is there
# Other names are programs of bin/.  Exit status: 0 when all went well.
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail
folder=${LADE_PACK:-$(cd "$(dirname "$0")" && pwd)}
export LD_LIBRARY_PATH=$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
failures=()

step() { # name, command
	local name=$1 rc=0
	echo "== $name"
	"${@:2}" || rc=$?
	[ $rc = 0 ] || failures+=("$name ($rc)")
}
memcheck() {
	command -v compute-sanitizer >/dev/null || {
		echo "skipped: there is no compute-sanitizer"
		return 0
	}
	# Errors that the test provokes, and expects, are the driver's and not the kernels'.
	for program in "$folder"/bin/test_*; do
		step "$(basename "$program") with memcheck" \
			compute-sanitizer --tool memcheck --report-api-errors no \
			--error-exitcode 9 --target-processes application-only "$program" --must
	done
}

names=("$@")
[ $# = 0 ] && names=(devices check test memcheck)
for name in "${names[@]}"; do
	case $name in
	devices)
		step devices "$folder/bin/lade" devices
		step json "$folder/bin/lade" devices --json
		;;
	check) step check "$folder/bin/lade" devices --check ;;
	test)
		for program in "$folder"/bin/test_*; do
			step "$(basename "$program")" "$program" --must
		done
		;;
	memcheck) memcheck ;;
	*) step "$name" "$folder/bin/$name" ;;
	esac
done
[ ${#failures[@]} = 0 ] && echo "all well" && exit 0
echo "failed: ${failures[*]}"
exit 1
