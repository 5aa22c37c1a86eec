#!/usr/bin/env bash
# run.sh [NAME...]: runs a build on a machine with a GPU.  It stands in a folder that pack.sh filled
# (by hand: set LADE_PACK to that folder).  Without names all steps are done:
#   devices    lade devices, as text and as JSON, and --check
#   test       test_device: memory of all kinds, streams, kernels, errors, forks; and the tests of
#              batches, test_batch*, test_async*, test_two_devices, test_rntuple_made
#   mutants    a million damaged chunks for each kernel (bench/gpu/hostile.c) and pipeline
#              (hostile_specs.c), MUTANTS of them; fewer that are larger than 16 KiB
#   memcheck   the tests, and 10,240 damaged chunks for each kernel, under compute-sanitizer
#   racecheck  512 damaged chunks for each kernel under synccheck, and under racecheck but for LZ,
#              of which it reports what is meant so (docs/performance/gpu-lz.md, "Safety")
# Other names are programs of bin/.  Steps have parts, which are done once: what is done and what it
# said stands in WORK (default the folder's work/), and a call ends after LIMIT seconds (570).
# Exit status: 0 when all went well, 75 when it is to be called again to go on.
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail
folder=${LADE_PACK:-$(cd "$(dirname "$0")" && pwd)}
here=$(cd "$(dirname "$0")" && pwd)
export LD_LIBRARY_PATH=$folder/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
WORK=${WORK:-$folder/work}
. "$here/parts.sh"
hostile=$folder/bin/hostile
mutants=${MUTANTS:-1000000}
# Chunks of many sub-blocks, with matches from far: 'size count' each.
larger=("65536 $((mutants / 20))" "1048576 $((mutants / 1000))")
# The kernels of a part together take some minutes.
families=(lz4_decode_solo,lz4_decode_team4,lz4_decode_team8,lz4_decode_team16,lz4_size
	snappy_decode_solo,snappy_decode_team4,snappy_decode_team8,snappy_decode_team16,snappy_size
	lz4_encode,lz4_encode_team8,lz4_encode_team16
	snappy_encode,snappy_encode_team8,snappy_encode_team16
	cascaded_decode,cascaded_size,cascaded_encode
	bitshuffle_encode,bitshuffle_decode)
# And pipelines, by the name of their part (bench/gpu/hostile_specs.c).
bits="bitcomp(dtype=<i4);bitcomp(dtype=<i8);bitcomp(dtype=<u2);bitcomp(dtype=u1,algorithm=sparse)"
bits="$bits;bitcomp(dtype=<f4,mode=lossy_signed,delta=0.01)"
bits="$bits;bitcomp(dtype=<f2,mode=lossy_unsigned,delta=0.25)"
bits="$bits;bitcomp(dtype=<f8,mode=lossy_signed,delta=1e-3)"
runs="cascaded(dtype=<i4);cascaded(dtype=<i8,mode=fast);cascaded(dtype=u1);cascaded(dtype=<u2)"
pipelines=("ans=ans;ans(dtype=<f4);ans(dtype=bfloat16);ans(dtype=<i8)"
	"bitcomp=$bits" "cascaded=$runs"
	"filters=shuffle(4);shuffle(5);shuffle(12);split(2);zigzag(<i4);delta(<i8);delta(u1)"
	"bits=packints(|b1)|lz4;packints(<f4,first=13)|lz4;cast(<f8,astype=<f4)"
	"levels=levels(bits=9,min=-1,max=3)|packints(<u4,last=8)"
	"casts=cast(<i8,astype=<u4,range=wrap)|delta(<u4)|split(4)|lz4"
	"sums=crc32c;crc32-bzip2;adler32(start);xxh64;lz4|crc32"
	"fused=shuffle(4)|lz4;shuffle(2)|snappy;split(8)|lz4;delta(<i4)|zigzag(<i4)|shuffle(4)"
	"several=delta(<i4)|bitshuffle(4)|lz4|xxh64(start);shuffle(2)|ans|crc32c;byteswap(8)")

sanitizer() {
	command -v compute-sanitizer >/dev/null && return 0
	echo "skipped: there is no compute-sanitizer"
	return 1
}
# Errors that the tests provoke, and expect, are the driver's and not the kernels'.
sanitized() { # part, tool, command
	local name=$1 tool=$2
	part "$name" compute-sanitizer --tool "$tool" --report-api-errors no --error-exitcode 9 \
		--target-processes application-only "${@:3}"
}

names=("$@")
[ $# = 0 ] && names=(devices test mutants memcheck racecheck)
for name in "${names[@]}"; do
	case $name in
	devices)
		part devices "$folder/bin/lade" devices
		part json "$folder/bin/lade" devices --json
		part check "$folder/bin/lade" devices --check
		;;
	test)
		for program in "$folder"/bin/test_*; do
			part "$(basename "$program")" "$program" --must
		done
		;;
	mutants)
		for family in "${families[@]}"; do
			first=${family%%,*}
			part "mutants-$first" "$hostile" --kernels="$family" --chunks="$mutants" \
				--seconds=$((most - 30)) --out="$WORK/mutants-$first.csv"
			for size in "${larger[@]}"; do
				part "mutants-$first-${size% *}" "$hostile" --kernels="$family" \
					--size="${size% *}" --chunks="${size#* }" \
					--seconds=$((most - 30)) \
					--out="$WORK/large-$first-${size% *}.csv"
			done
		done
		for group in "${pipelines[@]}"; do
			part "pipelines-${group%%=*}" "$hostile"_specs --specs="${group#*=}" \
				--chunks="$mutants" --seconds=$((most - 30)) \
				--out="$WORK/pipelines-${group%%=*}.csv"
			# Few chunks have other kernels: teams, and two warps a sub-block.
			for batch in 100 400 1000; do
				part "pipelines-${group%%=*}-$batch" "$hostile"_specs \
					--specs="${group#*=}" --chunks=$((mutants / 10)) \
					--batch=$batch --seconds=$((most - 30)) \
					--out="$WORK/pipelines-${group%%=*}-$batch.csv"
			done
			for size in "${larger[@]}"; do
				part "pipelines-${group%%=*}-${size% *}" "$hostile"_specs \
					--specs="${group#*=}" --size="${size% *}" \
					--chunks="${size#* }" --seconds=$((most - 30)) \
					--out="$WORK/pipelines-${group%%=*}-${size% *}.csv"
			done
		done
		;;
	memcheck)
		sanitizer || continue
		for family in "${families[@]}"; do
			sanitized "memcheck-${family%%,*}" memcheck "$hostile" --chunks=10240 \
				--batch=1024 --kernels="$family"
		done
		for group in "${pipelines[@]}"; do
			sanitized "memcheck-${group%%=*}" memcheck "$hostile"_specs --chunks=10240 \
				--batch=1024 --specs="${group#*=}"
		done
		for program in "$folder"/bin/test_*; do
			sanitized "memcheck-$(basename "$program")" memcheck "$program" --must
		done
		;;
	racecheck)
		sanitizer || continue
		for tool in racecheck synccheck; do
			for family in "${families[@]}"; do
				case $tool-$family in
				racecheck-lz4* | racecheck-snappy*) continue ;;
				esac
				sanitized "$tool-${family%%,*}" $tool "$hostile" --chunks=512 \
					--batch=256 --kernels="$family"
			done
		done
		;;
	*) part "$name" "$folder/bin/$name" ;;
	esac
done
head -q -n 1 "$WORK"/mutants-*.csv 2>/dev/null | head -n 1 >"$WORK/hostile.csv"
tail -q -n +2 "$WORK"/mutants-*.csv >>"$WORK/hostile.csv" 2>/dev/null
parts_end
