#!/usr/bin/env bash
# node.sh BUILD: the npm package: the add-on, built, and packed with its JavaScript into
# BUILD/node/dist; installed into BUILD/node/try with what its tests want.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(cd "${1:?usage: node.sh BUILD}" && pwd)
out=$build/node
[ -f "$build/CMakeCache.txt" ] || { echo "$build is not configured: make node" && exit 1; }
cmake -S . -B "$build" -DLADE_NODE=ON >"$build/node.txt" 2>&1 &&
	cmake --build "$build" --parallel --target lade lade_node c_side >>"$build/node.txt" 2>&1 ||
	{ tail -30 "$build/node.txt" && exit 1; }

number() { awk -v name="LADE_VERSION_$1" '$2 == name { print $3; exit }' include/lade/version.h; }
version=$(number MAJOR).$(number MINOR).$(number PATCH)
rm -rf "$out/package" "$out/dist"
mkdir -p "$out/package/prebuilds/linux-x64" "$out/dist" "$out/try"
cp -r node/lib node/*.d.ts LICENSE "$out/package"
cp docs/node.md "$out/package/README.md"
sed "s/\"0.0.0\"/\"$version\"/" node/package.json >"$out/package/package.json"
# node-gyp-build takes it for all versions of Node with Node-API, on machines with glibc.
strip -o "$out/package/prebuilds/linux-x64/liblade.napi.glibc.node" "$out/liblade.node"
cd "$out/try"
npm pack --silent --pack-destination "$out/dist" "$out/package" >/dev/null
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund --prefer-offline --no-package-lock \
	"$out"/dist/*.tgz apache-arrow typescript @types/node
