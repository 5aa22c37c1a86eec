#!/usr/bin/env bash
# run_all.sh [BUILD] [MIB]: makes the data, runs every benchmark, and stores what they print, with
# the machine and the versions, in bench/results/<processor>-<date>/.  About half an hour with 64
# MiB, the default; fewer MiB are for trying it out.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
mib=${2:-64}
data=$build/bench-data

cmake -S . -B "$build" -DLADE_BENCH=ON >/dev/null
cmake --build "$build" --parallel >/dev/null
build=$(cd "$build" && pwd)
python=python3
if ! $python -c 'import numpy' 2>/dev/null; then
	# Not the system's business: NumPy goes into a folder of the build.
	[ -x "$build/python/bin/python" ] || python3 -m venv "$build/python"
	"$build/python/bin/pip" install -q numpy
	python=$build/python/bin/python
fi
$python bench/make_data.py "$data" "$mib"

out=bench/results/$("$build/bench/bench_machine" --cpu)-$(date +%Y-%m-%d)
mkdir -p "$out"
{
	"$build/bench/bench_machine"
	echo "commit: $(git rev-parse HEAD 2>/dev/null || echo unknown)$(
		git diff --quiet HEAD -- src include 2>/dev/null || echo ', changed')"
	echo "load: $(cut -d' ' -f1-3 /proc/loadavg) at the start"
	for tool in zstd lz4 pigz; do
		command -v $tool >/dev/null && echo "$tool: $($tool --version 2>&1 | head -1)"
	done
} >"$out/machine.txt"
cat "$out/machine.txt"

run() { # file, program, arguments
	echo "== $2 ${*:3}"
	"$build/bench/$2" "${@:3}" | tee "$out/$1"
}
for set in json.u1 tpch_orderkey.i8; do
	run "codecs-$set.csv" bench_codecs --data="$data" --set=$set --csv
done
for chunk in 16384 262144 1048576; do
	run "codecs-json.u1-$chunk.csv" bench_codecs --data="$data" --part=loop --chunk=$chunk --csv
done
for batch in 1 100; do
	run "codecs-json.u1-batch$batch.csv" bench_codecs --data="$data" --part=loop \
		--batch=$batch --csv
done
# The programs of the other layers, each with what it takes without being asked.
for program in "$build"/bench/bench_*; do
	name=$(basename "$program")
	case $name in
	bench_codecs | bench_machine | *.*) continue ;;
	bench_own)
		run own.csv "$name" --data="$data" --csv
		continue
		;;
	bench_shares)
		run shares.txt "$name" --data="$data"
		continue
		;;
	esac
	run "${name#bench_}.txt" "$name"
done
echo "== cli_bench.py"
python3 bench/cli_bench.py --lade="$build/lade" --file="$data/json.u1" --csv="$out/cli.csv"
echo "load: $(cut -d' ' -f1-3 /proc/loadavg) at the end" >>"$out/machine.txt"
echo "The results are in $out; bench/cpu_tables.py --write $out puts them into"
echo "docs/performance/cpu.md, and bench/charts.py draws the charts of README.md."
