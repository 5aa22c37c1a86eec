# lade bench: rows, verification, formats of the output, wrong arguments.
# SPDX-License-Identifier: Apache-2.0
seq 1 100000 | head -c 200000 >a
run 0 "$lade" bench -t 0 a
quiet
prints "a: 195.31 KiB of bytes"
prints memcpy
# Speed is the libraries', so that their versions stand above it.
sed -n 1p "$top/out" | grep -qE '^liblade [0-9.]+, .*zstd [0-9]+\.[0-9]+\.[0-9]+' && good ||
	bad "no versions: $(sed -n 1p "$top/out")"
for name in "lz4(level=1)" snappy "zstd(level=3)" "deflate(level=6)" "blosc(level=5)"; do
	prints "$name"
done
# The best of each of the three columns is marked.
[ "$(grep -o ' \*' "$top/out" | wc -l)" = 3 ] && good || bad "marks other than three"

run 0 "$lade" bench -t 0 -a 'zstd,shuffle(4)|lz4' -l 1,3-4 -s 16K,64K -T 1,2 --csv a
# Two chunk sizes and two numbers of threads of six pipelines; and memcpy, and the titles.
[ "$(wc -l <"$top/out")" = $((2 * 2 * 6 + 2)) ] && good || bad "$(wc -l <"$top/out") lines"
prints 'a,none,zstd(level=4),16384,2,200000,'
prints 'a,none,shuffle(4)|lz4(level=3),65536,1,200000,'
[ "$(grep -c ',exact,host$' "$top/out")" = 25 ] && good || bad "rows that are not exact"
fields='^([^",]|"[^"]*")*(,([^",]|"[^"]*")*){11}$'
! grep -vE "$fields" "$top/out" && good || bad "other than twelve fields"

if needs python3; then
	run 0 "$lade" bench -t 0 --json -a lz4,zstd a a
	python3 - "$top/out" <<-'END' && good || bad "the JSON is not as it should be"
		import json, sys
		report = json.load(open(sys.argv[1]))
		assert [f["file"] for f in report["files"]] == ["a", "a"]
		assert {"lz4", "zstd", "blosc"} <= set(report["libraries"]), report["libraries"]
		rows = report["files"][0]["rows"]
		assert [r["pipeline"] for r in rows] == ["memcpy", "lz4(level=1)", "zstd(level=3)"]
		assert all(r["status"] == "LADE_OK" and r["decode_MBs"] > 0 for r in rows)
		assert rows[2]["ratio"] == round(200000 / rows[2]["encoded_size"], 4)
	END
	# An array: its header is left out, its type completes the filters.
	python3 - <<-'END'
		import struct
		head = "{'descr': '<i4', 'fortran_order': False, 'shape': (5000,), }"
		head += " " * (117 - len(head)) + "\n"
		with open("n.npy", "wb") as f:
		    f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
		    f.write(struct.pack("<5000i", *range(7, 50007, 10)))
	END
	run 0 "$lade" bench -t 0 -a lz4 -f 'none,shuffle,delta|shuffle' n.npy
	prints "n.npy: 19.53 KiB of <i4"
	prints "shuffle(4)|lz4(level=1)"
	prints "delta(<i4)|shuffle(4)|lz4(level=1)"
	run 0 "$lade" bench -t 0 -a lz4 -f shuffle --dtype=u2 n.npy
	prints "shuffle(2)|lz4(level=1)"
fi

# A part of the file.
run 0 "$lade" bench -t 0 -a lz4 -n 64K a
prints "64.00 KiB of bytes (the file's beginning)"

# What does not work is named; the other rows stand.
run 1 "$lade" bench -t 0 -a 'lz4,nosuch,snappy' a
says 'nosuch: no algorithm is called "nosuch"'
prints snappy
run 1 "$lade" bench -t 0 -a lz4 -f delta a
says "give --dtype"
run 1 "$lade" bench -t 0 nosuch
says "nosuch: No such file"
: >empty
run 1 "$lade" bench -t 0 empty
says "empty: the file is empty"
run 1 "$lade" bench -t 0 .
says "not a regular file"
run 1 sh -c "'$lade' bench -t 0 -a lz4 a >/dev/full"
says "No space left on device, writing standard output"

run 2 "$lade" bench
run 2 "$lade" bench --nosuch a
run 2 "$lade" bench --csv --json a
for wrong in -l=x -l= -s=3 -s=2G -T=x -t=-1 -t=x -n=0 -d=nosuch; do
	run 2 "$lade" bench "${wrong%%=*}" "${wrong#*=}" a
done
run 0 "$lade" bench --help
prints "Usage: lade bench"
