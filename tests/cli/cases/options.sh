# Every option, and every way to get one wrong.
# SPDX-License-Identifier: Apache-2.0
text 400000 >a
text 1000 >small

run 0 "$lade" -h
prints "Usage: lade"
run 0 "$lade" --help
run 0 "$lade" -V
prints "lade 0."
run 0 "$lade" --version
for library in zstd lz4 zlib blosc xxhash; do
	grep -qE "^$library [0-9]+\.[0-9.]+$" "$top/out" && good || bad "no version of $library"
done
for library in libdeflate snappy; do
	grep -qE "^$library [0-9]+\.[0-9.]+ \(its headers\)$" "$top/out" && good ||
		bad "no version of $library"
done
! needs pkg-config || prints "zstd $(pkg-config --modversion libzstd)"

# What the library has; completion asks for it.
run 0 "$lade" --algorithms
prints "zstd                 codec    Zstandard frames; RFC 8878"
prints "bitshuffle           filter "
prints "crc32c               checksum "
complete='complete() { :; }; compopt() { :; }; . "$1"; shift
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _lade; echo "${COMPREPLY[@]}"'
completion=$here/../../src/cli/completion/lade.bash
run 0 bash -c "$complete" - "$completion" "$lade" --algorithm = z
prints "zstd zlib"
run 0 bash -c "$complete" - "$completion" "$lade" --filter = bits
prints "bitshuffle"

# -M limits the chunks of a .lade file, whatever it claims.
run 0 "$lade" -f --chunk-size=256K a
run 1 "$lade" -t -M100K a.lade
says "above the limit"
says "; -M (--memory=SIZE) allows more"
run 0 "$lade" -t -M256K a.lade

# Levels: -1 to -19, others by --level.
for level in 1 9 19; do
	run 0 "$lade" -f -$level a
	run 0 "$lade" -l a.lade
	prints "zstd(level=$level)"
	run 0 "$lade" -dc a.lade
	same "$top/out" a
done
run 0 "$lade" -qf5 a
run 0 "$lade" -l a.lade
prints "zstd(level=5)"
run 0 "$lade" -1 -f -7 a
run 0 "$lade" -l a.lade
prints "zstd(level=7)"
run 0 "$lade" -f --level=-5 a
run 0 "$lade" -l a.lade
prints "zstd(level=-5)"
run 2 "$lade" -20 -f a
says "from -1 to -19"
says "with --ultra to -22"
run 0 "$lade" -20 --ultra -f small
run 0 "$lade" -l small.lade
prints "zstd(level=20)"
run 2 "$lade" --ultra -23 -f a
run 2 "$lade" --ultra --algorithm=lz4 -f a
says "--ultra is for zstd: lz4 has no levels from 20 to 22"
run 2 "$lade" --ultra --format=gz -f a
says "--ultra is for zstd: --format=gz has no levels from 20 to 22"
run 2 "$lade" --ultra --spec=lz4 -f a
says "--spec is the whole pipeline"
run 2 "$lade" --fast --format=gz -f a
says "--format=gz has no level -1 (--fast): want 1 to 12"
run 0 "$lade" --fast -f a
run 0 "$lade" -l a.lade
prints "zstd(level=-1)"
run 0 "$lade" --fast=7 -f a
run 0 "$lade" -l a.lade
prints "zstd(level=-7)"
for wrong in 0 x -1 99999999999 ""; do
	run 2 "$lade" --fast=$wrong -f a
	says "want a whole number from 1 on"
done
run 2 "$lade" --long -f a
says "--long is for --format=zst and for -d"
for wrong in 9 32 x ""; do
	run 2 "$lade" --format=zst --long=$wrong -f a
	says "want 10 to 31"
done
run 2 "$lade" --level=x a
run 2 "$lade" -f --level=99 a
run 2 "$lade" -f -3 --algorithm=snappy a

# Pipelines.
for algorithm in copy lz4 snappy zstd deflate zlib gzip blosc "zstd(level=2)"; do
	run 0 "$lade" -f --algorithm="$algorithm" a
	run 0 "$lade" -dc a.lade
	same "$top/out" a
done
run 0 "$lade" -f -9 --algorithm=gzip a
run 0 "$lade" -l a.lade
prints "gzip(level=9)"
run 0 "$lade" -f --dtype=f4 --filter=shuffle a
run 0 "$lade" -l a.lade
prints "shuffle(4)|zstd(level=3)"
prints "<f4"
run 0 "$lade" -dc a.lade
same "$top/out" a
run 0 "$lade" -f --dtype=uint16 --filter=delta --filter=shuffle --algorithm=lz4 a
run 0 "$lade" -dc a.lade
same "$top/out" a
run 0 "$lade" -f --spec="shuffle(8)|zstd(level=1)|crc32c" a
run 0 "$lade" -l a.lade
prints "shuffle(8)|zstd(level=1)|crc32c"
run 0 "$lade" -dc a.lade
same "$top/out" a
run 2 "$lade" --algorithm=nonesuch a
says nonesuch
run 2 "$lade" --filter=nonesuch a
run 2 "$lade" --spec="zstd(level=3" a
run 2 "$lade" --spec=zstd -3 a
run 2 "$lade" --dtype=f3 a
run 1 "$lade" -f --filter=shuffle a
says "a: "

# Chunks and checksums.
run 0 "$lade" -f --chunk-size=64K a
run 0 "$lade" -lv a.lade
prints "of 65536 bytes"
run 0 "$lade" -f --chunk-size=100KiB a
run 0 "$lade" -lv a.lade
prints "of 102400 bytes"
run 0 "$lade" -dc a.lade
same "$top/out" a
for size in 0 15 2G x 1Q ""; do run 2 "$lade" -f --chunk-size=$size a; done
for sum in xxh64 crc32c none; do
	run 0 "$lade" -f --checksum=$sum a
	run 0 "$lade" -l a.lade
	prints $sum
	run 0 "$lade" -dc a.lade
	same "$top/out" a
done
run 0 "$lade" -f --checksum a
run 0 "$lade" -l a.lade
prints xxh64
run 0 "$lade" -f --no-check a
run 0 "$lade" -l a.lade
prints none
run 2 "$lade" -f --checksum=md5 a

# Formats and threads.
for format in lade zst gz lz4; do
	run 0 "$lade" -f --format=$format a
	there a.$format
	run 0 "$lade" -dc a.$format
	same "$top/out" a
	run 0 "$lade" -l a.$format
done
run 2 "$lade" --format=rar a
run 2 "$lade" --format=gz --filter=shuffle a
for threads in 0 1 2 7; do
	run 0 "$lade" -f -T$threads a
	run 0 "$lade" -dc -T $threads a.lade
	same "$top/out" a
done
run 2 "$lade" -T x a
run 2 "$lade" -T 99999 a

# The last operation counts.
run 0 "$lade" -f a
run 0 "$lade" -d -t a.lade
run 0 "$lade" -t -l a.lade
prints pipeline
run 0 "$lade" -l -d -z -f a
run 0 "$lade" -z -d -c a.lade
same "$top/out" a

# Wrong usage.
run 2 "$lade" --nonesuch a
says nonesuch
run 2 "$lade" -Z a
says "-Z"
run 2 "$lade" -o
says "-o"
run 2 "$lade" -o x a a
run 2 "$lade" -o x -c a
run 2 "$lade" -r -o x a
run 2 "$lade" -r

# What is said.
run 0 "$lade" -f a
quiet
run 0 "$lade" -f -v a
says "a: "
run 1 "$lade" -q missing
says missing
run 1 "$lade" -qq missing
quiet

# A dictionary.
text 5000 >dict
run 0 "$lade" -f -D dict a
run 0 "$lade" -dc -D dict a.lade
same "$top/out" a
run 1 "$lade" -D missing a
run 0 "$lade" -f -D dict --format=zst a
run 0 "$lade" -dc -D dict a.zst
same "$top/out" a
run 2 "$lade" -f -D dict --format=gz a
clean

# A filter that rounds is told of, and its input stays unless -f says otherwise.
text 40000 >reals
run 0 "$lade" --rm --filter='delta(<f4)' reals
says "is lossy"
says "not removed"
there reals
run 0 "$lade" -t reals.lade
run 0 "$lade" -f --rm --filter='delta(<f4)' reals
gone reals
