# --gpu: decoding with a device, and what happens where there is none.  The emulated device stands
# for one (docs/emulated-warp.md).
# SPDX-License-Identifier: Apache-2.0
text 300000 >a
run 0 "$lade" --algorithm=lz4 --chunk-size=16K a -o lz4.lade
run 0 "$lade" a -o zstd.lade
run 0 "$lade" --algorithm=deflate a -o deflate.lade
run 0 "$lade" --algorithm=gzip a -o gzip.lade
run 0 "$lade" --algorithm=lz4f a -o lz4f.lade

run 2 "$lade" --gpu a
says "with -d or -t"
run 2 "$lade" -l --gpu lz4.lade
for wrong in x "" -1 64 1x; do
	run 2 "$lade" -d "--gpu=$wrong" lz4.lade
	says "want a device's number"
	run 2 "$lade" bench "--gpu=$wrong" a
	says "want a device's number"
done

# No driver: nothing is done, and no file is touched.
mkdir -p broken
echo "no library" >broken/libcuda.so.1
for command in "-d --gpu lz4.lade -o b" "-t --gpu=1 lz4.lade" "-d --gpu zstd.lade -o b" \
	"bench --gpu a"; do
	run 1 env LD_LIBRARY_PATH=broken "$lade" $command
	says "error: --gpu: no driver: "
	gone b
done

# A driver, and no kernels for its second device, which is too old.
fake=$build/tests/gpu/fake_cuda
if [ -e "$fake/libcuda.so.1" ]; then
	run 1 env LD_LIBRARY_PATH="$fake" "$lade" -d --gpu=1 lz4.lade -o b
	says "error: --gpu: "
	says "kernels"
	gone b
fi

if [ -x "$build/tests/gpu/lade" ]; then
	emulated=(env LD_LIBRARY_PATH="$build/tests/gpu/emulated" "$build/tests/gpu/lade")
	run 0 "${emulated[@]}" -d --gpu lz4.lade -o b
	quiet
	same a b
	run 0 "${emulated[@]}" -dc --gpu zstd.lade
	quiet
	same a "$top/out"
	for file in deflate gzip; do
		run 0 "${emulated[@]}" -dc --gpu $file.lade
		quiet
		same a "$top/out"
	done
	run 0 "${emulated[@]}" -t -v --gpu=1 lz4.lade
	says "292.97 KiB, good"
	run 0 "${emulated[@]}" -dc --gpu lz4.lade
	quiet
	same a "$top/out"
	run 1 "${emulated[@]}" -d --gpu=2 lz4.lade -o c
	says "error: --gpu: no device 2: "
	gone c

	# A large file is decoded where its beginning is decoded faster: not by an emulation, which
	# takes some hundred times as long for text (but not for zeros, which fill the file up).
	(text 500000 && head -c 70M /dev/zero) >c
	run 0 "$lade" --algorithm=lz4 --chunk-size=64K c -o large.lade
	run 0 "${emulated[@]}" -d --gpu large.lade -o large
	says "warning: large.lade: decoded on the host, which is faster: its beginning at "
	says " MB/s, by GPU 0 at "
	[ "$(wc -l <"$top/err")" = 1 ] && good || bad "more than one line"
	same c large
	rm c large large.lade

	# What it cannot do is done on the host, and that is said once.
	run 0 "${emulated[@]}" -dc --gpu lz4f.lade
	same a "$top/out"
	says "warning: lz4f.lade: decoded on the host: stage 0 (lz4f)"
	[ "$(wc -l <"$top/err")" = 1 ] && good || bad "more than one line"
	run 0 "${emulated[@]}" -dc --gpu -q lz4f.lade
	quiet
	same a "$top/out"
	run 0 "$lade" --format=gz a
	run 0 "${emulated[@]}" -dc --gpu a.gz
	says "warning: a.gz: decoded on the host: --gpu is for .lade files"
	same a "$top/out"
	"${emulated[@]}" -d --gpu <lz4.lade >"$top/out" 2>"$top/err" && good ||
		bad "a file as input"
	quiet
	same a "$top/out"
	cat lz4.lade | "${emulated[@]}" -d --gpu >"$top/out" 2>"$top/err" && good ||
		bad "a pipe"
	says "standard input: decoded on the host: --gpu is for files, not for pipes"
	same a "$top/out"
	cat lz4.lade lz4.lade >two.lade
	cat a a >aa
	run 0 "${emulated[@]}" -dc --gpu two.lade
	says "two.lade: decoded on the host: --gpu is for files of one whole frame"
	same aa "$top/out"

	# Several files; empty ones; few and many chunks; filters, which the host does.
	: >empty
	run 0 "$lade" --algorithm=snappy empty -o empty.lade
	run 0 "$lade" --algorithm=snappy --chunk-size=256 -o many.lade a
	run 0 "${emulated[@]}" -dc --gpu empty.lade many.lade lz4.lade
	quiet
	same aa "$top/out"

	# Damage is told in the words of the host's strict decoders, and what stands before it is
	# written where that can be seen.
	cp lz4.lade bad.lade
	printf '\377\377\377\377\377\377' | dd of=bad.lade bs=1 seek=40000 conv=notrunc 2>/dev/null
	run 1 "$lade" -dc --strict bad.lade
	cp "$top/out" want.out
	cp "$top/err" want.err
	run 1 "${emulated[@]}" -dc --gpu bad.lade
	same "$top/out" want.out
	same "$top/err" want.err
	run 1 "${emulated[@]}" -t --gpu bad.lade
	same "$top/err" want.err
	run 1 "${emulated[@]}" -d --gpu bad.lade -o c
	same "$top/err" want.err
	gone c
	clean
	head -c 50000 lz4.lade >short.lade
	run 1 "${emulated[@]}" -t --gpu short.lade
	says "error: short.lade: "

	# The benchmark has three rows more of what the device decodes; of what it does not encode
	# (a level that is the host's, zstd), only how it decodes.
	run 0 "${emulated[@]}" bench -t 0 -n 40K -s 16K -l 1,9 -a lz4,snappy,zstd,lz4f --gpu=1 \
		--csv a
	quiet
	for row in 'lz4(level=1)' 'lz4(level=9)' snappy 'zstd(level=1)' 'zstd(level=9)'; do
		for place in device pinned pageable; do
			n=$(grep -F ",$row," "$top/out" | grep -c ",exact,$place\$")
			[ "$n" = 1 ] && good || bad "$n rows of $row, $place"
		done
	done
	[ "$(grep -c 'lz4f' "$top/out")" = 2 ] && good || bad "rows of lz4f on the device"
	grep -qE '^a,none,lz4\(level=9\),16384,0,40960,[0-9]+,[0-9.]+,,[0-9.]+,exact,device$' \
		"$top/out" && good || bad "a level of the host's"
	run 0 "${emulated[@]}" bench -t 0 -n 20K -s 16K -a lz4 --gpu a
	prints "gpu, pinned"
	run 0 "${emulated[@]}" bench -t 0 -n 20K -a lz4f --gpu a
	says "warning: a: no row for GPU 0"
	run 1 "${emulated[@]}" bench -t 0 --gpu=5 a
	says "error: --gpu: no device 5"
	silent
	if needs python3; then
		run 0 "${emulated[@]}" bench -t 0 -n 20K -s 16K -a snappy --gpu --json a
		python3 - "$top/out" <<-'END' && good || bad "the JSON is not as it should be"
			import json, sys
			report = json.load(open(sys.argv[1]))
			assert report["gpu"] == "emulated 0"
			rows = report["files"][0]["rows"]
			assert [r["place"] for r in rows] == \
				["host", "host", "device", "pinned", "pageable"]
			assert all(r["status"] == "LADE_OK" and r["decode_MBs"] > 0 for r in rows)
		END
	fi
else
	skip "a device" "there is no $build/tests/gpu/lade"
fi
