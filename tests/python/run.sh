#!/usr/bin/env bash
# run.sh BUILD [PYTEST ARGUMENT...]: the Python package: a wheel, installed into a virtual
# environment in BUILD/python (scripts/python.sh), its tests run; beside them its types are checked,
# its wheel for other machines and its reference built, and tests of devices run on the emulated
# one.  With arguments the tests alone.  Without CPython 3.12 or later the step says so and is
# skipped.  Then the same tests by a free-threaded interpreter, with a build of its own in
# BUILD/python/free, where there is one: FREE_THREADED names one; else the PATH, pyenv's, uv's, and
# what uv gets are looked at.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/../.."
base=$(cd "${1:?usage: run.sh BUILD [PYTEST ARGUMENT...]}" && pwd)
build=$base/python
shift
rc=0
scripts/python.sh "$base" || rc=$?
[ $rc = 77 ] && exit 0
[ $rc = 0 ] || exit $rc
venv=$build/venv/bin
there() { # module...: no wheels of some for a free-threaded interpreter
	"$venv/python" -c "import $1" 2>/dev/null || { echo "not installed: $1" && false; }
}
# Types, as the installed package gives them.
check_types() {
	local config=$PWD/pyproject.toml allow=$PWD/python/tests/stubtest.txt
	cd "$build"
	"$venv/mypy" --config-file="$config" -p liblade
	"$venv/mypy" --config-file="$config" "${config%/*}/python/tests/typed_calls.py"
	"$venv/python" -m mypy.stubtest --mypy-config-file="$config" liblade \
		--allowlist "$allow" --ignore-unused-allowlist
}
# Arrays on a device once more on the emulated one, where the library's tests were built: in a copy
# of the package whose kernels are that device's.
check_emulated() {
	local emulated=$base/tests/gpu/emulated
	[ -e "$emulated/libcuda.so.1" ] || return 0
	rm -rf "$build/emulated" "$build/emulated-wheel"
	"$venv/pip" wheel . --quiet --disable-pip-version-check --no-deps \
		--wheel-dir "$build/emulated-wheel" -C build-dir="$build/objects" \
		-C cmake.define.LADE_CUDA=OFF \
		-C cmake.define.LADE_IMAGE_FILE="${emulated%/*}/images.c" \
		>"$build/wheel.txt" 2>&1 || { cat "$build/wheel.txt" && exit 1; }
	"$venv/pip" install --quiet --disable-pip-version-check --no-deps \
		--target "$build/emulated" "$build"/emulated-wheel/*.whl
	PYTHONPATH=$build/emulated LD_LIBRARY_PATH=$emulated \
		"$venv/python" -B -m pytest -q -p no:cacheprovider \
		python/tests/test_device.py python/tests/test_stream.py \
		python/tests/test_handles.py python/tests/test_exchange.py \
		python/tests/test_rntuple_device.py python/tests/test_zarr_gpu.py \
		python/tests/test_share_device.py \
		python/tests/test_examples.py::test_a_pool
}
# What does not need the tests' processor.
check_others() {
	set -e
	if there mypy; then (check_types); fi
	scripts/wheel.sh "$base"
	if there sphinx,myst_parser,numcodecs; then scripts/docs.sh "$base"; fi
	check_emulated
}
tests=("$venv/python" -B -m pytest -q -p no:cacheprovider -rs)
if [ $# != 0 ]; then
	"${tests[@]}" python/tests "$@"
else
	# What takes times has the machine for itself.
	"${tests[@]}" python/tests/test_signals.py
	check_others >"$build/others.txt" 2>&1 &
	others=$!
	"${tests[@]}" python/tests --ignore=python/tests/test_signals.py || rc=$?
	wait "$others" || rc=1
	cat "$build/others.txt"
	[ $rc = 0 ] || exit $rc
fi

# A free-threaded interpreter that runs without its lock, with what a virtual environment wants.
is_free() { # interpreter
	"$1" -c 'import sys, sysconfig, venv, ensurepip
sys.exit(not sysconfig.get_config_var("Py_GIL_DISABLED"))' 2>/dev/null
}
find_free() {
	local one
	for one in ${FREE_THREADED:-} python3.14t python3.13t \
		"$HOME"/.pyenv/versions/3.1[3-9]*t/bin/python \
		"$HOME"/.local/share/uv/python/cpython-3.1[3-9]*freethreaded*/bin/python3; do
		is_free "$one" && command -v "$one" && return
	done
	command -v uv >/dev/null && timeout 60 uv python install --quiet 3.13t 2>/dev/null &&
		one=$(uv python find 3.13t 2>/dev/null) && is_free "$one" && echo "$one"
}
if [ $# = 0 ]; then
	if free=$(find_free); then
		mkdir -p "$build/free"
		PYTHON=$free scripts/python.sh "$build/free"
		"$build/free/python/venv/bin/python" -B -m pytest -q -p no:cacheprovider -rs \
			python/tests
	else
		echo "skipped: the free-threaded build: no such CPython is here nor to be had" \
			"(FREE_THREADED=... names one)"
	fi
fi
