#!/usr/bin/env bash
# run.sh [FOLDER]: makes the data, builds the GPU benchmarks, runs them all on this machine's first
# device, and writes what they say to FOLDER (default bench/results): lade-<version>-<card>.csv (64
# KiB chunks), -chunks.csv (other sizes), -host.csv (host time of calls), -fed.csv (fed from the
# host) and -summary.md.  About five minutes on one H200 with 16 processors.
#
# Environment:
#   LADE_NVCOMP  nvCOMP's library or its package's folder (pip install nvidia-libnvcomp-cu13); where
#                it is not set Python is asked for the package; without it nvCOMP is left out
#   BUILD        the build folder (default build); LADE_PACK: a folder of scripts/gpu/pack.sh with
#                gpu_bench and fed_bench in it, on machines that cannot build
#   DATA, MIB    where the sets are made (default BUILD/bench-data), and their size (default 64)
#   PARTS        what is run (default "rates chunks fed"); SETS, FORMATS, REPEATS,
#                TOTAL: passed on
#   FED_SETS     the sets of fed_bench (default: four of the twelve)
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
data=${DATA:-$build/bench-data}
out=${1:-bench/results}
parts=${PARTS:-rates chunks fed}
mkdir -p "$out" "$data"

if [ -n "${LADE_PACK:-}" ]; then
	bin=$LADE_PACK/bin
	export LD_LIBRARY_PATH=$LADE_PACK/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
else
	cmake -S . -B "$build" -DLADE_BENCH=ON >/dev/null
	cmake --build "$build" --parallel --target gpu_bench fed_bench >/dev/null
	bin=$build/bench
fi
if [ -z "${LADE_NVCOMP:-}" ]; then
	LADE_NVCOMP=$(python3 -c 'import nvidia.libnvcomp as n; print(n.__path__[0])' 2>/dev/null ||
		true)
fi
if [ -n "$LADE_NVCOMP" ]; then
	export LADE_NVCOMP
else
	unset LADE_NVCOMP
	echo "without nvCOMP: pip install nvidia-libnvcomp-cu13"
fi

sets="tpch_orderkey.i8 tpch_price.i8 tpch_shipdate.i4 tpch_quantity.i8 timestamps.i8 json.u1
	source.u1 float_smooth.f4 float_noisy.f4 bf16_weights.u2 sparse.i4 random.u1"
started=$SECONDS
echo "$sets" | xargs -n 1 |
	xargs -P "$(nproc)" -I{} python3 bench/make_data.py "$data" "${MIB:-64}" {}
echo "the data: $((SECONDS - started)) s"

# Each part writes under a name of its own; the card and the version are known afterwards.
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
some=(${SETS:+--sets="$SETS"})
common=(--data="$data" ${FORMATS:+--formats="$FORMATS"}
	${REPEATS:+--repeats="$REPEATS"} ${TOTAL:+--total="$TOTAL"})
failed=0
part() { # name, command
	local name=$1 began=$SECONDS
	shift
	case " $parts " in *" $name "*) ;; *) return 0 ;; esac
	"$@" || { echo "$name: exit status $?" && failed=1; }
	echo "$name: $((SECONDS - began)) s"
}
part rates "$bin/gpu_bench" "${common[@]}" "${some[@]}" --typed=elem --out="$temporary/rates.csv" \
	--host="$temporary/host.csv" --info="$temporary/rates.txt"
part chunks "$bin/gpu_bench" "${common[@]}" "${some[@]}" --chunks=16384,262144,1048576 \
	--out="$temporary/chunks.csv" --info="$temporary/chunks.txt"
part fed "$bin/fed_bench" "${common[@]}" \
	--sets="${FED_SETS:-${SETS:-json.u1,tpch_shipdate.i4,sparse.i4,random.u1}}" \
	--out="$temporary/fed.csv" --info="$temporary/fed.txt"

infos=()
for kind in rates chunks fed; do
	[ -e "$temporary/$kind.txt" ] && infos+=("$temporary/$kind.txt")
done
[ ${#infos[@]} -gt 0 ] || exit 1
card=$(sed -n 's/^card: \(NVIDIA \)\?\([^,]*\),.*/\2/p' "${infos[0]}" | head -1 |
	tr 'A-Z ' 'a-z-')
version=$(sed -n 's/^liblade: //p' "${infos[0]}" | head -1)
name=$out/lade-$version-$card
csvs=()
for kind in rates chunks host fed; do
	[ -e "$temporary/$kind.csv" ] || continue
	file=$name-$kind.csv
	[ $kind = rates ] && file=$name.csv
	mv "$temporary/$kind.csv" "$file"
	csvs+=("$file")
done
python3 bench/gpu/summary.py "${infos[@]/#/--info=}" "${csvs[@]}" >"$name-summary.md"
cat "$name-summary.md"
exit $failed
