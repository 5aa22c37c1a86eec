#!/usr/bin/env bash
# run.sh BUILD [PYTEST ARGUMENT...]: the Python package: a wheel, installed into a virtual
# environment in BUILD/python (scripts/python.sh), its types checked, its tests run, its reference
# built.  Without CPython 3.12 or later the step says so and is skipped.
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
config=$PWD/pyproject.toml allow=$PWD/python/tests/stubtest.txt
if there mypy; then
	(
		cd "$build"
		"$venv/mypy" --config-file="$config" -p liblade
		"$venv/mypy" --config-file="$config" "${config%/*}/python/tests/typed_calls.py"
		"$venv/python" -m mypy.stubtest --mypy-config-file="$config" liblade \
			--allowlist "$allow" --ignore-unused-allowlist
	)
fi
"$venv/python" -B -m pytest -q -p no:cacheprovider -rs python/tests "$@"
if [ $# = 0 ]; then
	scripts/wheel.sh "$base"
	if there sphinx,myst_parser,numcodecs; then scripts/docs.sh "$base"; fi
	# Arrays on a device once more on the emulated one, where the library's tests were built:
	# in a copy of the package whose kernels are that device's.
	emulated=$base/tests/gpu/emulated
	if [ -e "$emulated/libcuda.so.1" ]; then
		rm -rf "$build/emulated" "$build/emulated-wheel"
		"$venv/pip" wheel . --quiet --disable-pip-version-check --no-deps \
			--wheel-dir "$build/emulated-wheel" -C build-dir="$build/objects" \
			-C cmake.define.LADE_CUDA=OFF \
			-C cmake.define.LADE_IMAGE_FILE="${emulated%/*}/images.c" \
			>"$build/wheel.txt" 2>&1 || { cat "$build/wheel.txt"; exit 1; }
		"$venv/pip" install --quiet --disable-pip-version-check --no-deps \
			--target "$build/emulated" "$build"/emulated-wheel/*.whl
		export PYTHONPATH=$build/emulated LD_LIBRARY_PATH=$emulated
		"$venv/python" -B -m pytest -q -p no:cacheprovider python/tests/test_device.py \
			python/tests/test_stream.py python/tests/test_examples.py::test_a_pool
	fi
fi
