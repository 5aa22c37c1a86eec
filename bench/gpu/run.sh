#!/usr/bin/env bash
# run.sh [FOLDER]: makes the data, builds the GPU benchmarks, runs them all on this machine's first
# device, and writes what they say to FOLDER (default bench/results): lade-<version>-<card>.csv (64
# KiB chunks), -chunks.csv (other sizes), -host.csv (host time of calls), -fed.csv (fed from the
# host) and -summary.md.  On one H200 with 16 processors FORMATS=lz4,snappy takes about ten minutes;
# all takes longer, and has not been timed.  In parts of a set each:
# what is done stands in WORK and is not done again, and a call ends in time, with status 75 when it
# is to be called again.  The files are written by each call from what there is.
#
# Environment:
#   LADE_NVCOMP  nvCOMP's library or its package's folder (pip install nvidia-libnvcomp-cu13); where
#                it is not set Python is asked for the package; without it nvCOMP is left out
#   BUILD        the build folder (default build); LADE_PACK: a folder of scripts/gpu/pack.sh with
#                gpu_bench and fed_bench in it, on machines that cannot build
#   WORK         where parts are noted and their rows kept (default BUILD/bench-work)
#   LIMIT, MOST  seconds of a call and of a part (default 570 and 300)
#   DATA, MIB    where the sets are made (default BUILD/bench-data), and their size (default 64)
#   PARTS        what is run (default "rates chunks fed"); SETS, with commas; FORMATS, REPEATS,
#                TOTAL: passed on
#   FED_SETS     the sets of fed_bench (default: four of the twelve)
#   TAG          put into the files' names: lade-<version>-<card>-TAG.csv and so on
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
data=${DATA:-$build/bench-data}
out=${1:-bench/results}
WORK=${WORK:-$build/bench-work}
parts=${PARTS:-rates chunks fed}
mkdir -p "$out" "$data"
. scripts/gpu/parts.sh

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

sets=tpch_orderkey.i8,tpch_price.i8,tpch_shipdate.i4,tpch_quantity.i8,timestamps.i8,json.u1
sets=$sets,source.u1,float_smooth.f4,float_noisy.f4,bf16_weights.u2,sparse.i4,random.u1
sets=${SETS:-$sets}
fed_sets=${FED_SETS:-${SETS:-json.u1,tpch_shipdate.i4,sparse.i4,random.u1}}
started=$SECONDS
tr ',' '\n' <<<"$sets,$fed_sets" | sort -u | while read -r set; do
	[ -e "$data/$set" ] || echo "$set"
done | xargs -r -P "$(nproc)" -I{} python3 bench/make_data.py "$data" "${MIB:-64}" {}
echo "the data: $((SECONDS - started)) s"

common=(--data="$data" ${FORMATS:+--formats="$FORMATS"}
	${REPEATS:+--repeats="$REPEATS"} ${TOTAL:+--total="$TOTAL"})
wanted() { # kind
	case " $parts " in *" $1 "*) return 0 ;; esac
	return 1
}
measure() { # kind, set, program, options
	local kind=$1 set=$2 program=$3
	shift 3
	! wanted "$kind" || part "$kind-$set" "$bin/$program" "${common[@]}" --sets="$set" "$@" \
		--out="$WORK/$kind-$set.csv" --info="$WORK/$kind-$set.txt"
}
host=(--host="$WORK/host-${sets%%,*}.csv") # of one set: calls do not look at the data
for set in ${sets//,/ }; do
	measure rates "$set" gpu_bench --typed=elem "${host[@]}"
	host=()
done
for set in ${fed_sets//,/ }; do
	measure fed "$set" fed_bench
done
for set in ${sets//,/ }; do
	measure chunks "$set" gpu_bench --chunks=16384,262144,1048576
done

# The rows of all sets that are done, in the sets' order.
infos=()
csvs=()
for kind in rates chunks host fed; do
	rm -f "$WORK/$kind.csv"
	for set in ${sets//,/ } ${fed_sets//,/ }; do
		of=$kind
		[ $kind = host ] && of=rates
		file=$WORK/$kind-$set.csv
		[ -e "$file" ] && part_done "$of-$set" || continue
		grep -qsF "$set" <<<"${seen:-}" && continue
		[ -e "$WORK/$kind.csv" ] || head -n 1 "$file" >"$WORK/$kind.csv"
		tail -n +2 "$file" >>"$WORK/$kind.csv"
		seen="${seen:-} $set"
		# One note a kind is enough: they differ in the command's set.
		[ $kind = host ] || [ -n "${info:-}" ] || info=$WORK/$kind-$set.txt
	done
	[ -z "${info:-}" ] || infos+=("$info")
	[ ! -e "$WORK/$kind.csv" ] || csvs+=("$kind")
	unset seen info
done
if [ ${#csvs[@]} -gt 0 ]; then
	card=$(sed -n 's/^card: \(NVIDIA \)\?\([^,]*\),.*/\2/p' "${infos[0]}" | head -n 1 |
		tr 'A-Z ' 'a-z-')
	version=$(sed -n 's/^liblade: //p' "${infos[0]}" | head -n 1)
	name=$out/lade-$version-$card${TAG:+-$TAG}
	files=()
	for kind in "${csvs[@]}"; do
		file=$name-$kind.csv
		[ "$kind" = rates ] && file=$name.csv
		cp "$WORK/$kind.csv" "$file"
		files+=("$file")
	done
	python3 bench/gpu/summary.py "${infos[@]/#/--info=}" "${files[@]}" >"$name-summary.md"
	cat "$name-summary.md"
fi
parts_end
