#!/usr/bin/env bash
# run.sh BUILD [PYTEST ARGUMENT...]: the interop tests, against the reference implementations.
# Makes a virtual environment in BUILD/venv once.  Wants python3 with venv, and the lz4, zstd, gzip
# and pigz tools.  Zarr's implementations want Python 3.12: one is looked for, or PYTHON names it;
# and npm, for zarrita and JSROOT.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:?usage: run.sh BUILD [PYTEST ARGUMENT...]}" && pwd)
shift
packages=(numpy numcodecs google-crc32c zstandard lz4 python-snappy cramjam blosc pytest)
# Tests say which of these are missing.
others=(pyarrow nanoarrow zarr tensorstore zarrs cast-value-rs uproot)
for tool in python3 lz4 zstd gzip pigz; do
	command -v "$tool" >/dev/null && continue
	echo "interop: $tool is missing (apt-get install lz4 zstd gzip pigz python3-venv)" >&2
	exit 1
done
if [ ! -e "$build/liblade.so" ]; then
	echo "interop: $build/liblade.so is missing; build first" >&2
	exit 1
fi
for python in ${PYTHON:-} "$HOME"/.pyenv/versions/3.1[2-9]*/bin/python python3.12 python3.13 \
	python3.14 python3; do
	"$python" -c 'import sys, venv, ensurepip' 2>/dev/null && break
done
want="$("$python" --version) ${packages[*]} ${others[*]}"
if [ "$(cat "$build/venv/packages" 2>/dev/null || true)" != "$want" ]; then
	"$python" -m venv --clear "$build/venv"
	pip=("$build/venv/bin/pip" install --quiet --disable-pip-version-check)
	"${pip[@]}" "${packages[@]}"
	for one in "${others[@]}"; do
		"${pip[@]}" --only-binary :all: "$one" 2>/dev/null ||
			echo "interop: no wheel of $one"
	done
	echo "$want" >"$build/venv/packages"
fi
export LADE_ZARRITA=$build/zarrita
if [ ! -e "$LADE_ZARRITA/node_modules/zarrita" ] && command -v npm >/dev/null; then
	npm install --prefix "$LADE_ZARRITA" --silent --no-audit --no-fund zarrita \
		@zarrita/storage >/dev/null 2>&1 || echo "interop: npm has no zarrita"
fi
export LADE_JSROOT=$build/jsroot
if [ ! -e "$LADE_JSROOT/node_modules/jsroot" ] && command -v npm >/dev/null; then
	npm install --prefix "$LADE_JSROOT" --silent --no-audit --no-fund --ignore-scripts \
		--omit=optional jsroot >/dev/null 2>&1 || echo "interop: npm has no jsroot"
fi
export LADE_LIBRARY="$build/liblade.so"
exec "$build/venv/bin/python" -B -m pytest -q -p no:cacheprovider "$here" "$@"
