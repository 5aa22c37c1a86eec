#!/usr/bin/env bash
# python.sh BUILD: the Python package: a wheel, built and installed into a virtual environment of
# its own, BUILD/python/venv, with what its tests and its documents want.  Exit status 77: there is
# no Python for it.
#
# Wants CPython 3.12 or later: PYTHON names one; else those on the PATH, pyenv's and uv's are looked
# at; else uv is had from PyPI and asked to fetch one.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(cd "${1:?usage: python.sh BUILD}" && pwd)/python
mkdir -p "$build"
# Of these only numpy is wanted by the package: by its numcodecs, rntuple and zarr.  A free-threaded
# interpreter gets those of 'others' that have a wheel for it, and tests say what they miss; types
# and documents are the same for all.
packages=(pytest hypothesis numpy)
others=(numcodecs cramjam zstandard lz4 zarr pytest-asyncio xarray dask distributed awkward uproot
	pyarrow)
common=(mypy sphinx myst-parser)

fits() { # interpreter
	"$1" -c 'import sys, venv, ensurepip
sys.exit(sys.version_info < (3, 12) or sys.implementation.name != "cpython")' 2>/dev/null
}
find_python() {
	local one
	for one in ${PYTHON:-} python3 python3.14 python3.13 python3.12 \
		"$HOME"/.pyenv/versions/3.1[2-9]*/bin/python \
		"$HOME"/.local/share/uv/python/cpython-3.1[2-9]*/bin/python3 \
		"$build"/cpython/*/bin/python3; do
		fits "$one" && command -v "$one" && return
	done
	export UV_PYTHON_INSTALL_DIR=$build/cpython
	python3 -m venv "$build/uv" >&2 || return 1
	"$build/uv/bin/pip" install --quiet --disable-pip-version-check uv >&2 || return 1
	"$build/uv/bin/uv" python install 3.12 >&2 || return 1
	for one in "$build"/cpython/*/bin/python3; do
		fits "$one" && echo "$one" && return
	done
	return 1
}

if ! python=$(find_python); then
	echo "skipped: CPython 3.12 or later is not here nor to be had (PYTHON=... names one)"
	exit 77
fi
want="$python $("$python" --version) ${packages[*]} ${others[*]} ${common[*]}"
if [ "$(cat "$build/packages" 2>/dev/null || true)" != "$want" ]; then
	"$python" -m venv --clear "$build/venv"
	pip=("$build/venv/bin/pip" install --quiet --disable-pip-version-check)
	if "$python" -c 'import sysconfig
raise SystemExit(not sysconfig.get_config_var("Py_GIL_DISABLED"))'; then
		"${pip[@]}" --only-binary :all: "${packages[@]}"
		for one in "${others[@]}"; do
			"${pip[@]}" --only-binary :all: "$one" 2>/dev/null ||
				echo "no wheel of $one"
		done
	else
		"${pip[@]}" "${packages[@]}" "${others[@]}" "${common[@]}"
		# Whose docstrings a test reads.
		"${pip[@]}" --only-binary :all: nvidia-nvcomp-cu13 2>/dev/null ||
			echo "no wheel of nvidia-nvcomp-cu13"
	fi
	echo "$want" >"$build/packages"
fi
venv=$build/venv/bin
rm -rf "$build/wheel"
"$venv/pip" wheel . --quiet --disable-pip-version-check --no-deps --wheel-dir "$build/wheel" \
	-C build-dir="$build/objects" -C cmake.define.LADE_CUDA="${LADE_CUDA:-OFF}" \
	-C cmake.define.LADE_IMAGE_FILE= ${LADE_NVCC:+-C cmake.define.LADE_NVCC="$LADE_NVCC"} \
	>"$build/wheel.txt" 2>&1 || { cat "$build/wheel.txt"; exit 1; }
case $(ls "$build/wheel") in
*-cp312-abi3-*.whl | *-cp31[3-9]t-*.whl) ;;
*)
	echo "the wheel's name is wrong: $(ls "$build/wheel")"
	exit 1
	;;
esac
"$venv/pip" install --quiet --disable-pip-version-check --no-deps --force-reinstall \
	"$build"/wheel/*.whl
