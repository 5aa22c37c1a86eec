#!/usr/bin/env bash
# run_untuned.sh BIN DATA OUT: each codec on the CPU on the six sets that nothing was tuned on
# (bench/make_untuned.py made DATA), against its library in the same process; BIN has bench_codecs
# and bench_machine.  Writes OUT/machine.txt and OUT/codecs-SET.csv.  A set takes about a minute; a
# quarter as many sets as there are processors run at a time, so that two threads have them.
# PARTS=loop leaves the threads out: processor time can be compared on a busy machine, too.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
usage="usage: run_untuned.sh BIN DATA OUT"
bin=${1:?$usage} data=${2:?$usage} out=${3:?$usage}
mkdir -p "$out"
at_once=$(($(nproc) / 4))
{
	"$bin/bench_machine"
	echo "load: $(cut -d' ' -f1-3 /proc/loadavg) at the start"
	echo "sets: $((at_once > 0 ? at_once : 1)) at a time"
} >"$out/machine.txt"
measure() { # set, part
	"$bin/bench_codecs" --data="$data" --set="$1" --mib=16 --rounds="${ROUNDS:-7}" --part="$2" \
		--csv >"$out/codecs-$1-$2.part"
}
export -f measure
export bin data out
for part in ${PARTS:-loop threads}; do
	printf '%s\n' photos.u1 executables.u1 terrain.i2 labels.u4 quotes.f8 tokens.i4 |
		xargs -P "$((at_once > 0 ? at_once : 1))" -I{} bash -c "measure {} $part"
done
for set in photos.u1 executables.u1 terrain.i2 labels.u4 quotes.f8 tokens.i4; do
	cat "$out/codecs-$set-loop.part" >"$out/codecs-$set.csv"
	grep -hs '^threads' "$out/codecs-$set-threads.part" >>"$out/codecs-$set.csv" || true
	rm "$out/codecs-$set"-*.part
done
echo "load: $(cut -d' ' -f1-3 /proc/loadavg) at the end" >>"$out/machine.txt"
