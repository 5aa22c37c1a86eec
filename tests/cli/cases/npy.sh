# .npy files come back byte for byte, whatever their header; arrays are seen as such.
# SPDX-License-Identifier: Apache-2.0
npy() { # dict, data bytes: with NumPy's padding to 128 bytes
	printf '\223NUMPY\001\000\166\000%-117s\n' "$1"
	head -c "$2" /dev/zero | tr '\0' 'x'
}
npy "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 40), }" 480 >a.npy
cp a.npy orig.npy
run 0 "$lade" --filter=shuffle a.npy
quiet
run 0 "$lade" -l a.npy.lade
prints "<f4 (3,40)"
prints "shuffle(4)"
rm a.npy
run 0 "$lade" -d a.npy.lade
same a.npy orig.npy
run 0 "$lade" -dc a.npy.lade
same "$top/out" orig.npy
run 0 "$lade" -dc --raw a.npy.lade
tail -c 480 orig.npy >data
same "$top/out" data
run 0 "$lade" -d -o b a.npy.lade
same b orig.npy

# Arrays of other kinds.
i=0
for dict in "{'descr': '>i2', 'fortran_order': True, 'shape': (4, 60), }" \
	"{'descr': '|u1', 'fortran_order': False, 'shape': (480,), }" \
	"{'descr': '<f8', 'fortran_order': False, 'shape': (60, 1, 1, 1), }"; do
	npy "$dict" 480 >k.npy
	run 0 "$lade" -f k.npy
	quiet
	run 0 "$lade" -dc k.npy.lade
	same "$top/out" k.npy
done
npy "{'descr': '<f8', 'fortran_order': False, 'shape': (), }" 8 >k.npy
run 0 "$lade" -f k.npy
run 0 "$lade" -dc k.npy.lade
same "$top/out" k.npy
npy "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 5), }" 0 >k.npy
run 0 "$lade" -f k.npy
run 0 "$lade" -dc k.npy.lade
same "$top/out" k.npy

# Files that are not as NumPy writes them are bytes: they come back all the same.
npy "{'descr':'<f4','fortran_order':False,'shape':(3,40)}" 480 >n1.npy
npy "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 41), }" 480 >n2.npy
npy "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (120,), }" 480 >n3.npy
npy "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }" 480 >n4.npy
printf '\223NUMPY' >n5.npy
printf 'no array at all' >n6.npy
: >n7.npy
npy "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 40" 480 >n8.npy
for i in 1 2 3 4 5 6 8; do
	run 0 "$lade" -f n$i.npy
	says "plain bytes"
	run 0 "$lade" -dc n$i.npy.lade
	same "$top/out" n$i.npy
done
run 0 "$lade" -f n7.npy
run 0 "$lade" -dc n7.npy.lade
same "$top/out" n7.npy

# --raw compresses the bytes; from a pipe they are bytes too.
run 0 "$lade" -f --raw orig.npy
quiet
run 0 "$lade" -dc orig.npy.lade
same "$top/out" orig.npy
"$lade" <orig.npy | "$lade" -d >p && same p orig.npy

# What today's NumPy writes, when it is there.
if python3 -c 'import numpy; assert numpy.__version__ >= "1.24"' 2>/dev/null; then
	python3 -c '
import numpy as np
np.save("p.npy", np.arange(1000, dtype="<f8").reshape(10, 100))
np.save("f.npy", np.asfortranarray(np.arange(24, dtype=">i4").reshape(2, 3, 4)))'
	for f in p f; do
		run 0 "$lade" $f.npy
		quiet
		run 0 "$lade" -dc $f.npy.lade
		same "$top/out" $f.npy
	done
else
	skip "arrays of NumPy's own" "there is no numpy"
fi
