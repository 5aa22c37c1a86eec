#!/usr/bin/env bash
# run.sh BUILD [TEST FILE...]: the npm package (scripts/node.sh), its tests, which are in
# node/tests, and its types.  Tests of other languages want the Python package in BUILD/python;
# without it they say so and are skipped.  Without Node the step is skipped.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(cd "${1:?usage: run.sh BUILD [TEST FILE...]}" && pwd)
shift
if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
	echo "skipped: there is no Node, or no npm"
	exit 0
fi
scripts/node.sh "$build"
try=$build/node/try
rm -rf "$try/tests" "$try/examples"
cp -r node/tests "$try/tests"
cp -r examples/node "$try/examples"
cd "$try"
node_modules/.bin/tsc -p tests
files=("$@")
[ $# != 0 ] || files=(tests/*.test.*js)
LADE_BUILD=$build node --expose-gc --test --test-reporter=spec "${files[@]/#node\//}" |
	sed -E 's/^ℹ (pass|fail|skipped) ([0-9]+)$/\2 \1ed/; /^ℹ/d; s/peded$/ped/; s/sed$/sed/'
