#!/usr/bin/env bash
# run.sh BUILD [PYTEST ARGUMENT...]: the interop tests, against the reference implementations.
# Makes a virtual environment in BUILD/venv once.  Wants python3 with venv, and the lz4, zstd, gzip
# and pigz tools.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:?usage: run.sh BUILD [PYTEST ARGUMENT...]}" && pwd)
shift
packages=(numpy numcodecs google-crc32c zstandard lz4 python-snappy cramjam blosc pytest)
for tool in python3 lz4 zstd gzip pigz; do
	command -v "$tool" >/dev/null && continue
	echo "interop: $tool is missing (apt-get install lz4 zstd gzip pigz python3-venv)" >&2
	exit 1
done
if [ ! -e "$build/liblade.so" ]; then
	echo "interop: $build/liblade.so is missing; build first" >&2
	exit 1
fi
if [ "$(cat "$build/venv/packages" 2>/dev/null || true)" != "${packages[*]}" ]; then
	python3 -m venv --clear "$build/venv"
	"$build/venv/bin/pip" install --quiet --disable-pip-version-check "${packages[@]}"
	echo "${packages[*]}" >"$build/venv/packages"
fi
export LADE_LIBRARY="$build/liblade.so"
exec "$build/venv/bin/python" -B -m pytest -q -p no:cacheprovider "$here" "$@"
