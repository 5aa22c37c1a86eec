#!/usr/bin/env bash
# run.sh BUILD [CASE...]: tests of the command BUILD/lade; all files of cases/, or those named.
# SPDX-License-Identifier: Apache-2.0
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:?usage: run.sh BUILD [CASE...]}" && pwd)
shift
lade=$build/lade
# NumPy and python-snappy, where tests/interop/run.sh has installed them.
[ -x "$build/venv/bin/python3" ] && PATH=$build/venv/bin:$PATH
export LC_ALL=C NO_COLOR=1
unset LADE_THREADS
top=$(mktemp -d "${TMPDIR:-/tmp}/lade-cli-XXXXXX")
trap 'rm -rf "$top"' EXIT
passed=0 failed=0 skipped=0

good() { passed=$((passed + 1)); }
bad() { # what
	failed=$((failed + 1))
	echo "FAILED $case: $1"
	[ -s "$top/err" ] && sed 's/^/    /' "$top/err" | head -5
	return 0
}
skip() { # what, why
	skipped=$((skipped + 1))
	echo "skipped $case: $1: $2"
}
# Runs a command; its exit code must be the one given.  What it says goes to $top/out and err.
run() { # code, command
	local want=$1 rc=0
	shift
	timeout 120 "$@" >"$top/out" 2>"$top/err" </dev/null || rc=$?
	if [ $rc = "$want" ]; then good; else bad "exit code $rc, want $want: ${*/#$build\//}"; fi
}
says() { # text in what the last command wrote to standard error
	if grep -qF -- "$1" "$top/err"; then good; else bad "does not say '$1'"; fi
}
lacks() { # text
	if grep -qF -- "$1" "$top/err"; then bad "says '$1'"; else good; fi
}
prints() { # text in what it wrote to standard output
	if grep -qaF -- "$1" "$top/out"; then good; else bad "does not print '$1'"; fi
}
silent() {
	if [ -s "$top/out" ]; then bad "prints something"; else good; fi
}
quiet() {
	if [ -s "$top/err" ]; then bad "says something"; else good; fi
}
same() { # file, file
	if cmp -s "$1" "$2"; then good; else bad "$1 and $2 differ"; fi
}
there() { for f; do if [ -e "$f" ]; then good; else bad "$f is missing"; fi; done; }
gone() { for f; do if [ -e "$f" ]; then bad "$f is there"; else good; fi; done; }
# No temporary file is left in the folder.
clean() { gone .*.lade-*; }
# Bytes with some structure: a text of numbers.
text() { # bytes
	seq 1 $(($1 / 5 + 5000)) | head -c "$1"
}
noise() { # bytes
	head -c "$1" /dev/urandom
}
needs() { # program
	command -v "$1" >/dev/null && return
	skip "all that needs $1" "there is no $1"
	return 1
}

[ $# -gt 0 ] || set -- $(cd "$here/cases" && ls)
for case; do
	case=${case%.sh}
	mkdir "$top/$case"
	cd "$top/$case" || exit 1
	: >"$top/err"
	. "$here/cases/$case.sh"
	cd /
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] && [ $passed -gt 0 ]
