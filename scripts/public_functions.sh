#!/usr/bin/env bash
# Prints the functions that the public headers declare with LADE_API, sorted.  src/exports.txt is
# this list; scripts/check_exports.sh compares it with what the library gives out.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
cat include/lade/*.h | tr '\n' ' ' | grep -oE 'LADE_API [^;(]*\(' |
	grep -oE 'lade_[a-z0-9_]+ *\($' | tr -d ' (' | LC_ALL=C sort -u
