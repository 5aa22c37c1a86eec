#!/usr/bin/env bash
# check_exports.sh LIBRARY: the shared library gives out the functions of src/exports.txt and no
# others, and the public headers declare just these.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
library=${1:?usage: check_exports.sh LIBRARY}
cd "$(dirname "$0")/.."
list=$(LC_ALL=C sort src/exports.txt)
given=$(nm -D --defined-only "$library" |
	awk '$2 ~ /^[A-Z]$/ && $2 != "A" { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort -u)
declared=$(scripts/public_functions.sh)
rc=0
compare() { # what the second list is, second list
	diff <(echo "$list") <(echo "$2") >/dev/null && return 0
	diff <(echo "$list") <(echo "$2") |
		sed -n "s/^< /in src\/exports.txt, not $1: /p; s/^> /$1, not in the list: /p"
	rc=1
}
compare "in the headers" "$declared"
compare "in the library" "$given"
[ $rc = 0 ] && echo "$(wc -l <src/exports.txt) functions, as listed"
exit $rc
