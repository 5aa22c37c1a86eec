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
	says "follow the last one"
	for options in "" -1 -9 -T1; do
		run 0 "$lade" -f --format=gz $options a
		gzip -dc a.gz >p && same p a
		gzip -t a.gz && good || bad "gzip -t"
	done
	: | "$lade" --format=gz | gzip -dc >p && same p /dev/null
fi

if needs pigz; then
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
