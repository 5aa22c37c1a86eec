# lade inspect: what it tells of .lade files and of others.
# SPDX-License-Identifier: Apache-2.0
seq 1 100000 | head -c 300000 >a
head -c 131072 /dev/zero >>a
noise 100000 >>a
run 0 "$lade" --chunk-size=64K --spec='shuffle(4)|zstd(level=5)' a
run 0 "$lade" inspect a.lade
quiet
prints "a.lade: .lade, version 1"
prints "shuffle(4)|zstd(level=5)"
prints "(531072 bytes)"
prints "9 of 64.00 KiB"
prints stored
prints constant
prints xxh64
prints "and more"
prints "####"

# Standard input, from a pipe and from a file.
sed 's/^a.lade:/standard input:/' "$top/out" >want
cat a.lade | "$lade" inspect - >p && same p want
"$lade" inspect - <a.lade >p && same p want
cat a | "$lade" inspect - 2>"$top/err" && bad "what is no file of ours" || good
says "standard input: not a format"

run 0 "$lade" inspect --chunks a.lade
[ "$(grep -cE '^ +[0-8]  ' "$top/out")" = 9 ] && good || bad "other than nine chunks"
if needs python3; then
	run 0 "$lade" inspect --json --chunks a.lade a.lade
	python3 - "$top/out" a.lade <<-'END' && good || bad "the JSON is not as it should be"
		import json, os, sys
		one, two = json.load(open(sys.argv[1]))
		assert one == two
		assert one["format"] == "lade" and one["version"] == 1 and not one["lossy"]
		assert one["pipeline"] == "shuffle(4)|zstd(level=5)"
		assert one["size"] == 531072 and one["encoded_size"] == os.path.getsize(sys.argv[2])
		assert one["chunk_count"] == len(one["chunks"]) == 9
		assert sum(c["size"] for c in one["chunks"]) == one["payload_size"]
		assert sum(c["decoded_size"] for c in one["chunks"]) == one["size"]
		assert sum(c["stored"] for c in one["chunks"]) == one["stored"] > 0
		assert sum(c["constant"] for c in one["chunks"]) == one["constant"] > 0
		assert sum(r["chunks"] for r in one["ratios"]) == 9
		assert all(len(c["checksum"]) == 16 for c in one["chunks"])
	END
	# A shape; a name that is no UTF-8 and has a quote in it.
	odd=$(printf 'o"\377.lade')
	python3 - <<-'END'
		import struct
		head = "{'descr': '<f8', 'fortran_order': True, 'shape': (20, 30), }"
		head += " " * (117 - len(head)) + "\n"
		with open("n.npy", "wb") as f:
		    f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
		    f.write(struct.pack("<600d", *range(600)))
	END
	run 0 "$lade" --checksum=crc32c -o "$odd" n.npy
	run 0 "$lade" inspect "$odd"
	prints "<f8 (20, 30), Fortran order"
	prints crc32c
	run 0 "$lade" inspect --json "$odd"
	python3 - "$top/out" <<-'END' && good || bad "the JSON is not as it should be"
		import json, sys
		(one,) = json.load(open(sys.argv[1], encoding="utf-8"))
		assert one["file"] == 'o"\ufffd.lade' and one["dtype"] == "<f8"
		assert one["shape"] == [20, 30] and one["fortran_order"]
		assert one["checksum"] == "crc32c"
	END
fi

# An empty frame, one without checksums.
: >e
run 0 "$lade" --no-check e
run 0 "$lade" inspect --chunks e.lade
prints "0 of 1.00 MiB"
prints none

# Other formats.
if needs zstd; then
	zstd -q a -o a.zst
	run 0 "$lade" inspect a.zst
	prints "Zstandard"
	prints "518.62 KiB"
	prints xxh64
fi
# Names that would drive a terminal: delete, a control of two bytes, right-to-left text.
odd=$(printf 'x\177\302\233\342\200\256')
cp a.lade "$odd"
run 0 "$lade" inspect --json "$odd"
prints 'x\u007f\u009b\u202e'
rm "$odd"

if needs gzip; then
	cp a named
	gzip named
	run 0 "$lade" inspect named.gz
	prints "531072 bytes in the last member"
	prints named
	# Nothing in a file drives the terminal.
	printf '\037\213\010\010\0\0\0\0\0\003\033[31mred\0\003\0\0\0\0\0\0\0\0\0' >t.gz
	run 0 "$lade" inspect t.gz
	prints "?[31mred"
	if grep -q "$(printf '\033')" "$top/out"; then bad "prints an escape"; else good; fi
fi
if needs lz4; then
	lz4 -q a a.lz4
	run 0 "$lade" inspect a.lz4
	prints "LZ4 frame"
	prints "xxh32 of the content"
	if needs python3; then
		run 0 "$lade" inspect --json a.lz4 a.lade
		python3 -m json.tool "$top/out" >/dev/null && good || bad "no JSON"
	fi
fi

# Cut off and spoiled heads are no crash.
for n in 1 4 5 7 11 17; do
	for f in a.zst named.gz a.lz4 a.lade; do
		[ -e $f ] || continue
		head -c $n $f >cut
		"$lade" inspect cut >"$top/out" 2>"$top/err"
		[ $? -le 1 ] && good || bad "$f cut at $n"
	done
done
head -c 1000 a.lade >cut.lade
run 1 "$lade" inspect cut.lade
says "cut.lade: "
run 1 "$lade" inspect a
says "not a format that lade knows"
run 1 "$lade" inspect e
says "the file is empty"
run 1 "$lade" inspect nosuch a.lade
says "nosuch: No such file"
prints "a.lade: .lade"
run 2 "$lade" inspect
run 2 "$lade" inspect --nosuch a.lade
run 0 "$lade" inspect -h
prints "Usage: lade inspect"
