# Other tools' files are read, and what is written as such is read by them.
# SPDX-License-Identifier: Apache-2.0
{
	text 2500000
	noise 700000
} >a

check() { # file that lade shall decode to a
	run 0 "$lade" -dc "$1"
	same "$top/out" a
	"$lade" -d <"$1" >p && same p a
	run 0 "$lade" -t "$1"
	head -c $(($(stat -c %s "$1") - 3)) "$1" >cut
	run 1 "$lade" -t cut
}

if needs zstd; then
	for options in -1 -19 "-3 --no-check" "-3 --long=24" "-3 -B100K -T2"; do
		zstd -qf $options a
		check a.zst
	done
	cat a | zstd -q >piped.zst
	check piped.zst
	zstd -qf --long=31 -1 a -o wide.zst
	cat a | zstd -q --long=30 >wide.zst
	run 1 "$lade" -t wide.zst
	says "are allowed; -M (--memory=SIZE) allows more"
	run 0 "$lade" -t -M2G wide.zst
	run 1 "$lade" -t --long=29 wide.zst
	run 0 "$lade" -t --long=30 wide.zst
	# Noise that comes again after 9 MiB: found with --long only, and read by zstd.
	noise 9000000 >far
	cat far far >twice
	cat twice | "$lade" --format=zst >short.zst
	cat twice | "$lade" --format=zst --long=24 >long.zst
	[ $(stat -c %s short.zst) -gt 17000000 ] && [ $(stat -c %s long.zst) -lt 9100000 ] &&
		good || bad "--long: $(stat -c %s short.zst long.zst | xargs)"
	zstd -qdc long.zst >p && same p twice
	cat a | "$lade" --format=zst --long=28 >wide.zst
	run 1 "$lade" -t wide.zst
	zstd -qdc --long=28 wide.zst >p && same p a
	rm far twice
	zstd -qf a
	head -c 40000 a >dict
	zstd -qf -D dict a -o with-dict.zst
	run 0 "$lade" -dc -D dict with-dict.zst
	same "$top/out" a
	for options in "" -19 "-1 -T1" -T2 --no-check; do
		run 0 "$lade" -f --format=zst $options a
		zstd -qdc a.zst >p && same p a
		cat a | "$lade" --format=zst $options | zstd -dq >p && same p a
	done
	run 0 "$lade" -f -D dict --format=zst a
	zstd -qdc -D dict a.zst >p && same p a
	# Skippable frames, and frames in a row.
	printf '\120\052\115\030\003\000\000\000abc' >skip
	zstd -qf a
	cat skip a.zst skip a.zst >row
	run 0 "$lade" -dc row
	cat a a >want
	same "$top/out" want
fi

if needs gzip; then
	for options in -1 -6 -9; do
		gzip -kf $options a
		check a.gz
	done
	gzip -c a >one.gz
	cat one.gz one.gz >row.gz
	run 0 "$lade" -dc row.gz
	cat a a >want
	same "$top/out" want
	# Zero bytes at the end are ignored, others are an error.
	cp one.gz zeros.gz
	head -c 1000 /dev/zero >>zeros.gz
	run 0 "$lade" -dc zeros.gz
	same "$top/out" a
	cp one.gz junk.gz
	echo junk >>junk.gz
	run 1 "$lade" -t junk.gz
	says "trailing bytes are not a"
	lacks "(at byte"
	for options in "" -1 -9 -T1; do
		run 0 "$lade" -f --format=gz $options a
		gzip -dc a.gz >p && same p a
		gzip -t a.gz && good || bad "gzip -t"
		run 0 "$lade" -l a.gz
		prints "(.gz, 1 member)"
	done
	: | "$lade" --format=gz | gzip -dc >p && same p /dev/null
fi

# -l counts bytes and frames, also where no header tells them.
listed() { # file, text of its row
	run 0 "$lade" -l "$1"
	tr -s ' ' <"$top/out" | grep -qF -- "$2" && good || bad "does not list '$2'"
}
if needs zstd; then
	head -c 1048576 /dev/zero >mib
	zstd -qc mib >one.zst
	listed one.zst "$(stat -c %s one.zst) B 1.00 MiB "
	listed one.zst " xxh64 (.zst, 1 frame) one.zst"
	# What a header tells is not decoded: damage in a block is for -t to find.
	cp one.zst bad.zst
	printf '\377' | dd of=bad.zst bs=1 seek=$(($(stat -c %s bad.zst) - 1)) conv=notrunc \
		status=none
	run 1 "$lade" -t bad.zst
	listed bad.zst " 1.00 MiB "
	mibs=$(stat -c %s a | awk '{ printf "%.2f", $1 / 1048576 }')
	for options in -3 -19 --fast "--no-check -1"; do
		zstd -qcf $options a >sized.zst
		listed sized.zst " $mibs MiB "
	done
	cat mib | zstd -q --no-check >untold.zst
	cat untold.zst skip one.zst >row.zst
	listed row.zst " 2.00 MiB "
	listed row.zst " none (.zst, 2 frames) row.zst"
	run 0 "$lade" -l one.zst row.zst
	prints "(2 files)"
	prints "3.00 MiB"
	head -c 100 a.zst >cut.zst
	run 1 "$lade" -l one.zst cut.zst
	says "cut.zst: "
	prints one.zst
	run 1 "$lade" -l wide.zst
	says "-M (--memory=SIZE)"
	run 0 "$lade" -l -M256M wide.zst
fi
if needs gzip; then
	gzip -c mib >one.gz
	cat one.gz one.gz one.gz >row.gz
	listed row.gz " 3.00 MiB "
	listed row.gz " crc32 (.gz, 3 members) row.gz"
fi
if needs lz4; then
	lz4 -qc mib >one.lz4
	cat one.lz4 skip one.lz4 >row.lz4
	listed row.lz4 " 2.00 MiB "
	listed row.lz4 " xxh32 (.lz4, 2 frames) row.lz4"
	mibs=$(stat -c %s a | awk '{ printf "%.2f", $1 / 1048576 }')
	for options in -1 "-BD -B4 -BX" --no-frame-crc; do
		lz4 -qcf --content-size $options a >sized.lz4
		listed sized.lz4 " $mibs MiB "
		"$lade" -l sized.lz4 | grep -q "1 frame" && good || bad "not one frame"
	done
	head -c 3000 sized.lz4 >cut.lz4
	run 1 "$lade" -l cut.lz4
	says "cut.lz4: "
	lz4 -qlc mib >old.lz4
	listed old.lz4 "(.lz4, 1 frame)"
fi
listed "$here/golden/text.sz" "crc32c (.sz, 2 streams)"

if needs pigz; then
	pigz -zc mib >mib.zz
	listed mib.zz " adler32 (.zz, 1 stream) mib.zz"
	pigz -zc a >zz
	run 0 "$lade" -dcf zz
	same "$top/out" a
	pigz -kf a
	check a.gz
	pigz -kfz a
	there a.zz
	check a.zz
	pigz -kf -11 small 2>/dev/null
	run 0 "$lade" -f --format=gz a
	pigz -dc a.gz >p && same p a
fi

if needs lz4; then
	for options in -1 -9 "-BD -B4" "-BX --content-size" "--no-frame-crc"; do
		lz4 -qf $options a a.lz4
		check a.lz4
	done
	lz4 -qlf a legacy.lz4
	run 0 "$lade" -dc legacy.lz4
	same "$top/out" a
	for options in "" -1 -9 -T1 --no-check; do
		run 0 "$lade" -f --format=lz4 $options a
		lz4 -qdc a.lz4 >p && same p a
		cat a | "$lade" --format=lz4 $options | lz4 -dq >p && same p a
	done
fi

# .sz files of python-snappy 0.7.3: text_sz, two streams in a row; see golden/README.
run 0 "$lade" -dc "$here/golden/text.sz"
text 200000 >want
same "$top/out" want
"$lade" -d <"$here/golden/text.sz" >p && same p want
if python3 -c 'import snappy' 2>/dev/null; then
	python3 -m snappy -c a a.sz
	check a.sz
else
	skip "live .sz files" "there is no python-snappy"
fi
