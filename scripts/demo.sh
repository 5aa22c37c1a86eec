#!/usr/bin/env bash
# demo.sh BUILD: makes array files, compresses them with what suits each, looks inside, restores
# them, and compares.  Each command of lade is shown as it would be typed.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(cd "${1:?usage: demo.sh BUILD}" && pwd)
folder=$build/demo
export PATH=$build:$PATH
export LC_ALL=C

rm -rf "$folder"
mkdir -p "$folder/stored" "$folder/restored"
echo "== Arrays, as NumPy saves them"
cc -O2 scripts/demo_arrays.c -o "$build/demo_arrays" -lm
cd "$folder"
"$build/demo_arrays" .
files=(temperature detector times sea_mask)

# The command as one would type it, and what it says.
show() { # command
	echo
	printf '$'
	for word; do
		case $word in
		*[\(\|]*) printf " '%s'" "$word" ;;
		*) printf ' %s' "$word" ;;
		esac
	done
	echo
	"$@"
}
seconds() { date +%s.%N; }

echo
echo "== What would suit the temperatures?"
show lade suggest temperature.npy

echo
echo "== Compressing; the element type comes from the .npy file"
began=$(seconds)
show lade --spec='delta(<u4)|zstd(level=3)' -o stored/temperature.npy.lade temperature.npy
show lade --filter=bitshuffle --algorithm=lz4 -o stored/detector.npy.lade detector.npy
show lade --filter=delta --filter=shuffle -9 -o stored/times.npy.lade times.npy
show lade -o stored/sea_mask.npy.lade sea_mask.npy
compressed=$(seconds)

echo
echo "== What the files hold"
(cd stored && show lade -l temperature.npy.lade detector.npy.lade times.npy.lade sea_mask.npy.lade)
show lade inspect stored/temperature.npy.lade

echo
echo "== Testing and restoring"
show lade -t stored/*.lade
restoring=$(seconds)
for name in "${files[@]}"; do
	show lade -d -o "restored/$name.npy" "stored/$name.npy.lade"
done
restored=$(seconds)
echo
for name in "${files[@]}"; do
	cmp "$name.npy" "restored/$name.npy"
	echo "restored/$name.npy is $name.npy, byte for byte"
done

before=$(cat ./*.npy | wc -c)
after=$(cat stored/*.lade | wc -c)
awk -v sizes="$before $after" -v times="$began $compressed $restoring $restored" 'BEGIN {
	split(sizes, s, " ")
	split(times, t, " ")
	printf "\n%.1f MiB of arrays became %.1f MiB, %.1f times less;",\
		s[1] / 2^20, s[2] / 2^20, s[1] / s[2]
	printf " compressed in %.2f s, restored in %.2f s\n", t[2] - t[1], t[4] - t[3]
}'
echo "The files are in $folder"
