#!/usr/bin/env bash
# pack_python.sh BUILD FOLDER: gathers in FOLDER what a machine with a GPU, CPython 3.12 or later,
# numpy and pytest needs to test and time the Python package: its wheel with kernels (build/nvcc's
# or the system's nvcc makes them; LADE_NVCC names another), the tests of devices, the latencies.
# FOLDER/run_python.sh runs them there: into FOLDER/out.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
usage="usage: pack_python.sh BUILD FOLDER"
build=$(cd "${1:?$usage}" && pwd)
mkdir -p "${2:?$usage}"
folder=$(cd "$2" && pwd)
cd "$(dirname "$0")/../.."
LADE_CUDA=ON scripts/python.sh "$build"
scripts/wheel.sh "$build"
rm -rf "$folder/wheel" "$folder/tests" "$folder/bench" "$folder/out" "$folder/site"
mkdir -p "$folder/wheel" "$folder/tests" "$folder/bench"
cp "$build"/python/dist/*.whl "$folder/wheel/"
cp python/tests/device_kit.py python/tests/test_{array,device,stream,gpu,typed}.py "$folder/tests/"
cp bench/python/bench_device.py "$folder/bench/"
cat >"$folder/run_python.sh" <<'END'
#!/usr/bin/env bash
# Tests and times the package that lies here; the exit status is the tests'.
set -uo pipefail
cd "$(dirname "$0")"
python=${PYTHON:-python3}
mkdir -p out
"$python" -m pip install --quiet --no-index --no-deps --no-compile --upgrade --target site \
	wheel/*.whl || exit 1
export PYTHONPATH=$PWD/site PYTHONUNBUFFERED=1
rc=0
timeout 240 "$python" -B -m pytest -q -rs -p no:cacheprovider tests 2>&1 | tee out/tests.txt ||
	rc=$?
timeout 240 "$python" bench/bench_device.py "${SECONDS_A_ROW:-0.2}" 2>&1 | tee out/latency.csv
exit $rc
END
chmod +x "$folder/run_python.sh"
echo "$folder: $(du -sm "$folder" | cut -f1) MiB; there: $folder/run_python.sh"
