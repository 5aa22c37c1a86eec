# Files there and back, by name, by pipe, one and many.
# SPDX-License-Identifier: Apache-2.0
text 3000000 >a
cp a orig
run 0 "$lade" a
there a a.lade
same a orig
rm a
run 0 "$lade" -d a.lade
same a orig
there a.lade
run 0 "$lade" -t a.lade
gone a.out
run 0 "$lade" -l a.lade
prints "zstd(level=3)"
prints xxh64
run 0 "$lade" -l -v a.lade
prints 3000000

# Sizes from nothing to some chunks.
for n in 0 1 15 16 17 1048575 1048576 1048577 5000000; do
	text $n >s
	run 0 "$lade" -f s
	run 0 "$lade" -df s.lade -o s.back
	same s s.back
done

# --rm and -k; the last one counts.
cp orig r
run 0 "$lade" --rm r
gone r
run 0 "$lade" -d --rm r.lade
gone r.lade
same r orig
run 0 "$lade" --rm -k r
there r r.lade
rm r.lade

# Standard output and -o.
run 0 "$lade" -c a
cp "$top/out" c.lade
run 0 "$lade" -dc c.lade
same "$top/out" orig
run 0 "$lade" a -o named
run 0 "$lade" -d named -o back
same back orig
run 0 "$lade" -d named -o -
same "$top/out" orig

# Pipes, known and unknown sizes; "-" and nothing.
"$lade" <orig >p.lade && "$lade" -d <p.lade >p && same p orig
cat orig | "$lade" | cat | "$lade" -d | cat >p && same p orig
cat orig | "$lade" - -c | "$lade" -dc - >p && same p orig
"$lade" -T1 <orig | "$lade" -T1 -d >p && same p orig
"$lade" -t <p.lade && good || bad "-t of standard input"
: | "$lade" | "$lade" -d >p && same p /dev/null

# Frames in a row.
cat a.lade a.lade p.lade >row.lade
cat orig orig orig >row.want
run 0 "$lade" -dc row.lade
same "$top/out" row.want
cat row.lade | "$lade" -d >row && same row row.want
run 0 "$lade" -t row.lade

# Many files, a name that begins with -, a space in a name.
for i in 1 2 3; do text $((i * 1000)) >"m $i"; done
text 500 >-x
run 0 "$lade" "m 1" "m 2" "m 3"
there "m 1.lade" "m 2.lade" "m 3.lade"
run 0 "$lade" -- -x
there ./-x.lade
run 0 "$lade" -dc "m 1.lade" "m 2.lade" "m 3.lade"
cat "m 1" "m 2" "m 3" >want
same "$top/out" want
run 0 "$lade" -l "m 1.lade" "m 2.lade" "m 3.lade"
prints "(3 files)"
run 0 "$lade" -c "m 1" "m 2"
"$lade" -d <"$top/out" >row
cat "m 1" "m 2" >want
same row want

# Folders.
mkdir -p t/u/v
text 100 >t/1
text 200 >t/u/2
text 300 >t/u/v/3
ln -s ../1 t/u/link
run 0 "$lade" -r t
there t/1.lade t/u/2.lade t/u/v/3.lade
gone t/u/link.lade
rm t/1 t/u/2 t/u/v/3
run 0 "$lade" -dr --rm t
there t/1 t/u/2 t/u/v/3
gone t/1.lade t/u/2.lade t/u/v/3.lade
run 1 "$lade" t
says "is a directory"
clean
