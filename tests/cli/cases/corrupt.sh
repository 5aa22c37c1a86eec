# Spoiled files are refused, with the name and the reason; nothing partial is left.
# SPDX-License-Identifier: Apache-2.0
text 300000 >a
run 0 "$lade" --chunk-size=64K a
cp a.lade good.lade
size=$(stat -c %s a.lade)
flip() { # byte
	cp good.lade a.lade
	printf '%b' "\\x$(printf %02x $((0x$(xxd -s "$1" -l 1 -p good.lade) ^ 0x10)))" |
		dd of=a.lade bs=1 seek="$1" conv=notrunc status=none
}
command -v xxd >/dev/null || xxd() { od -An -tx1 -j "$2" -N 1 "$6" | tr -d ' \n'; }

rm a
for at in 0 8 20 30 41 110 $((size / 2)) $((size - 200)) $((size - 64)) $((size - 1)); do
	flip $at
	run 1 "$lade" -t a.lade
	says "a.lade: "
	run 1 "$lade" -d a.lade
	gone a
	clean
done
for cut in 0 1 7 8 40 100 $((size / 2)) $((size - 65)) $((size - 1)); do
	head -c $cut good.lade >a.lade
	run 1 "$lade" -t a.lade
	run 1 "$lade" -d a.lade
	gone a
	cat a.lade | "$lade" -t 2>/dev/null && bad "cut at $cut, from a pipe" || good
done
cat good.lade >a.lade
echo x >>a.lade
run 1 "$lade" -t a.lade
run 1 "$lade" -l a.lade
echo "plain text" >t.lade
run 1 "$lade" -t t.lade
says "no format"
run 1 "$lade" -l t.lade
: >empty.lade
run 1 "$lade" -t empty.lade
says empty

# --no-check passes over a checksum that is wrong, and over nothing else.
run 0 "$lade" -f --algorithm=copy --chunk-size=64K good.lade -o copy.lade
run 0 "$lade" -t --no-check copy.lade

# A match of offset 0: liblz4 takes it, --strict does not.
{ printf 'a%.0s' {1..90} && printf 0123456789; } >match
run 0 "$lade" -f --algorithm=lz4 --no-check match
at=$(grep -obUaP '\x1fa\x01\x00' match.lade | head -1 | cut -d: -f1)
printf '\0' | dd of=match.lade bs=1 seek=$((at + 2)) conv=notrunc status=none
run 0 "$lade" -t match.lade
run 1 "$lade" -t --strict match.lade
says "has offset 0"
run 0 "$lade" -t --strict good.lade

# --rm keeps what could not be done.
cp good.lade keep.lade
head -c 1000 good.lade >keep.lade
run 1 "$lade" -d --rm keep.lade
there keep.lade

# An invalid Deflate stream that some libraries take: .gz and .zz get one verdict, and --strict
# refuses both (docs/verdicts.md).
bytes() { printf "$(printf %s "$1" | sed 's/../\\x&/g')"; }
for stream in 05c081000000000090f574d603 0300; do
	bytes 1f8b08000000000000ff${stream}0000000000000000 >i.gz
	bytes 789c${stream}00000001 >i.zz
	gz=0 zz=0
	"$lade" -t i.gz 2>/dev/null || gz=$?
	"$lade" -t i.zz 2>/dev/null || zz=$?
	[ $gz = $zz ] && good || bad "$stream: .gz says $gz, .zz $zz"
	for file in i.gz i.zz; do
		if [ $stream = 0300 ]; then
			run 0 "$lade" -t --strict $file
		else
			run 1 "$lade" -t --strict $file
		fi
	done
done
# Symbol 286, with the checksums of what libdeflate makes of it.
as=$(printf 'a%.0s' $(seq 259))
{
	bytes 1f8b08000000000000ff4b1c0300
	printf %s "$as" | gzip -c | tail -c 8
} >r.gz
run 0 "$lade" -dc r.gz
[ "$(cat "$top/out")" = "$as" ] && good || bad "symbol 286: other bytes"
run 1 "$lade" -t --strict r.gz
says "invalid literal/length code"
rm -f i.gz i.zz r.gz
