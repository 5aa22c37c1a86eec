# lade zarr: what it says of arrays and groups in directories, zip files and on a web server.
# SPDX-License-Identifier: Apache-2.0
needs python3 || return 0
python3 - <<-'END'
	import json, os, random, struct, zipfile, zlib

	random.seed(1)

	def put(path, data):
	    os.makedirs(os.path.dirname(path), exist_ok=True)
	    with open(path, "wb") as f:
	        f.write(data if isinstance(data, bytes) else json.dumps(data).encode())

	def group(**more):
	    return {"zarr_format": 3, "node_type": "group", "attributes": {}, **more}

	def array(shape, chunk, dtype="int32", fill=7, codecs=None, **more):
	    grid = {"name": "regular", "configuration": {"chunk_shape": chunk}}
	    keys = {"name": "default", "configuration": {"separator": "/"}}
	    little = {"name": "bytes", "configuration": {"endian": "little"}}
	    gzip = {"name": "gzip", "configuration": {"level": 5}}
	    return {"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": dtype,
	            "chunk_grid": grid, "chunk_key_encoding": keys, "fill_value": fill,
	            "codecs": codecs or [little, gzip], **more}

	def gz(data):
	    c = zlib.compressobj(5, zlib.DEFLATED, 31)
	    return c.compress(data) + c.flush()

	put("g/zarr.json", group(attributes={"title": "t", "none": float("nan"), "q": '"\\\x7f'}))
	put("g/temp/zarr.json", array([2, 100, 95], [1, 10, 10], dimension_names=["t", "y", None]))
	for t in range(2):
	    for y in range(10):
	        for x in range(y + 1):  # the wider the numbers, the less is saved
	            values = [random.randrange(1 << (x * 2 + 1)) for _ in range(100)]
	            put(f"g/temp/c/{t}/{y}/{x}", gz(struct.pack("<100i", *values)))
	put("g/temp/c/9/9/9", b"xx")
	put("g/temp/c/01/9/9", b"xx")
	# Element i of "count" is i.
	shape, chunk = (3, 400, 700), (2, 100, 200)
	put("count/zarr.json", array(shape, chunk, "uint32"))
	for t in range(0, 3, 2):
	    for y in range(0, 400, 100):
	        for x in range(0, 700, 200):
	            starts = [(i * 400 + j) * 700 + x
	                      for i in (t, t + 1) for j in range(y, y + 100)]
	            rows = [struct.pack("<200I", *range(at, at + 200)) for at in starts]
	            put(f"count/c/{t // 2}/{y // 100}/{x // 200}", gz(b"".join(rows)))
	put("g/sub/zarr.json", group())
	put("g/sub/line/zarr.json", array([10**6], [10], "float64", "NaN"))
	put("g/sub/line/c/99999", gz(bytes(80)))
	put("g/plain/file", b"")
	put("g/huge/zarr.json", array([2**62, 2**62], [1, 1], "uint8", 3))
	little = {"name": "bytes", "configuration": {"endian": "little"}}
	put("g/shard/zarr.json", array([8, 12], [4, 4], "uint16", 0, [{
	    "name": "sharding_indexed", "configuration": {
	        "chunk_shape": [2, 4], "index_location": "start",
	        "codecs": [{"name": "transpose", "configuration": {"order": [1, 0]}}, little],
	        "index_codecs": [little, {"name": "crc32c"}]}}]))
	# Shards of four chunks each: one with a bad inner chunk, one without an index.
	put("shards/zarr.json", array([8, 8], [4, 4], "uint8", 0, [{
	    "name": "sharding_indexed", "configuration": {
	        "chunk_shape": [2, 2], "index_location": "end", "index_codecs": [little],
	        "codecs": [little, {"name": "gzip", "configuration": {"level": 5}}]}}]))
	for s in range(4):
	    chunks = [gz(bytes([s * 16 + i] * 4)) for i in range(4)]
	    starts = [sum(map(len, chunks[:i])) for i in range(4)]
	    index = [struct.pack("<QQ", at, len(c)) for at, c in zip(starts, chunks)]
	    if s == 1:
	        chunks[2] = b"x" * len(chunks[2])
	    put(f"shards/c/{s // 2}/{s % 2}", b"" if s == 3 else b"".join(chunks + index))
	put("g/words/zarr.json", array([4], [2], "string", "a\x1b[31m\u202e", [
	    {"name": "vlen-utf8"}, {"name": "gzip", "configuration": {"level": 1}}]))
	put("g/words/c/0", b"1234")
	put("g/words/c/1", b"1")
	put("text/zarr.json", array([5], [2], "string", "", [{"name": "vlen-utf8"}]))
	put("latin/zarr.json", array([5], [2], "string", "", [{"name": "vlen-utf8"}]))
	for i, words in enumerate(([b"a\xc3\xa4", b""], [b"\xf0\x9f\x98\x80bcd\xc3\xbf", b"x"])):
	    data = struct.pack("<I", 2) + b"".join(struct.pack("<I", len(w)) + w for w in words)
	    put(f"text/c/{i}", data)
	    put(f"latin/c/{i}", data.replace(b"\xc3\xbf", b"x\xff"))
	put("g/pair/zarr.json", array([3], [2], {"name": "struct", "configuration": {
	    "fields": [["a", "int32"], ["b\x9b", "float32"]]}}, {"a": -1, "b\x9b": 0.1}))
	put("old/.zarray", {"zarr_format": 2, "shape": [4, 6], "chunks": [2, 3], "dtype": ">i2",
	                    "compressor": {"id": "zlib", "level": 1}, "fill_value": None,
	                    "order": "F", "filters": None})
	put("old/0.0", zlib.compress(bytes(12)))

	# The same with consolidated metadata, and in a zip file.
	members = {}
	for d, _, names in os.walk("g"):
	    if "zarr.json" in names and d != "g":
	        members[os.path.relpath(d, "g")] = json.load(open(d + "/zarr.json"))
	os.system("cp -r g c")
	put("c/zarr.json", group(consolidated_metadata={
	    "kind": "inline", "must_understand": False, "metadata": members}))
	with zipfile.ZipFile("g.zip", "w") as z:
	    for d, _, names in os.walk("g"):
	        for name in names:
	            z.write(f"{d}/{name}", os.path.relpath(f"{d}/{name}", "g"))

	# Members whose names would drive a terminal.
	put("odd/zarr.json", group())
	put("odd/n\u202e/zarr.json", array([5], [5]))
	put("bad/zarr.json", group())
	put("bad/a/zarr.json", b"{")
	put("bad/b/zarr.json", array([5], [5]))
END

# ---- info: a directory, a zip file, a node in a zip file.
run 0 "$lade" zarr info g/temp
quiet
prints "g/temp: array, Zarr format 3"
prints "shape       (2, 100, 95), axes t, y, ?"
prints "type        int32"
prints "chunks      (1, 10, 10), a grid of 2 x 10 x 10"
prints "fill        7"
prints "codecs      gzip(level=5)"
prints "decoded     74.22 KiB (76000 bytes)"
prints "in 110 chunks, ratio "
prints "missing     90 of 200 chunks"
prints "other keys  2, 4 bytes"
prints "map         of the chunks: y down, axis 2 across"
prints "of all chunks along the other axes"
grep -qx '    --\.\.\.\.\.\.\.\.\.\.\.\.\.\.\.\.\.\.' "$top/out" && good || bad "the first row"
grep -q '^    --.*####*$' "$top/out" && good || bad "the last row"
sed '1d' "$top/out" >want
for f in g.zip/temp g/temp/ g.zip//temp c/temp; do
	run 0 "$lade" zarr info $f
	sed '1d' "$top/out" | cmp -s - want && good || bad "$f is another array"
done
COLUMNS=24 "$lade" zarr info g/sub/line >"$top/out"
prints "a sign is 5000 chunks"
grep -qxE '    \.{19}#' "$top/out" &&
	good || bad "the map in a narrow terminal"
run 0 "$lade" zarr info g/shard old g/huge g/words g/pair g
prints "chunks      (2, 4) in shards"
prints "shards      (4, 4), a grid of 2 x 3"
prints "shard of chunks (2, 4): [transpose(1, 0)], index at the start: [crc32c]"
prints "old: array, Zarr format 2"
prints "int16, big-endian"
prints "transpose(1, 0) | big-endian | zlib(level=1)"
prints "fill        0 (the document has null)"
prints "missing     3 of 4 chunks"
prints "decoded     more than 16 EiB"
prints "all others of more than 2^64 chunks"
prints "elements of any length"
prints 'fill        "a\033[31m'
prints "5 bytes in 2 chunks"
prints "struct {a: int32, b\\302\\233: float32}"
prints "{a: -1, b\\302\\233: 0.1}"
prints "g: group, Zarr format 3"
prints 'attributes  {"title": "t", "none": NaN'
grep -qP '[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae' "$top/out" &&
	bad "prints control characters" || good

# Shading where the terminal has blocks.
LC_ALL=C.UTF-8 "$lade" zarr info g/temp >"$top/out"
prints "░░······"
prints "██"

# ---- --json of everything.
run 0 "$lade" zarr info --json g/temp g.zip/shard g/pair old g g/words g/huge
python3 - "$top/out" <<-'END' && good || bad "the JSON is not as it should be"
	import json, sys
	temp, shard, pair, old, g, words, huge = json.loads(
	    open(sys.argv[1]).read(), parse_constant=lambda x: 1 / 0)
	assert temp["name"] == "g/temp" and temp["kind"] == "array" and temp["format"] == 3
	assert temp["shape"] == [2, 100, 95] and temp["type"]["name"] == "int32"
	assert [a.get("name") for a in temp["axes"]] == ["t", "y", None]
	assert [a["chunk_size"] for a in temp["axes"]] == [1, 10, 10]
	assert temp["fill_value"] == "7" and temp["fill_bytes"] == "07000000"
	assert temp["codecs"]["steps"] == [{"spec": "gzip(level=5)"}]
	assert (temp["chunk_count"], temp["present"], temp["missing"]) == (200, 110, 90)
	assert (temp["decoded_size"], temp["present_decoded_size"]) == (76000, 44000)
	assert (temp["other_keys"], temp["other_size"]) == (2, 4)
	rows = temp["map"]["rows"]
	assert [[s["present"] for s in r] for r in rows] == [
	    [2 if x <= y else 0 for x in range(10)] for y in range(10)]
	assert sum(s["stored_size"] for r in rows for s in r) == temp["stored_size"]
	assert shard["inner_chunks"] == [2, 4] and shard["path"] == "shard"
	assert shard["codecs"]["shard"]["chunk_shape"] == [2, 4]
	assert shard["codecs"]["shard"]["index_location"] == "start"
	assert shard["codecs"]["shard"]["chunks"]["order"] == [1, 0]
	assert [f["offset"] for f in pair["type"]["fields"]] == [0, 4]
	assert pair["type"]["fields"][1]["name"] == "b\x9b"
	assert old["type"]["big_endian"] and not old["fill_given"]
	assert g["kind"] == "group" and g["attributes"]["none"] is None
	assert g["attributes"]["q"] == '"\\\x7f'
	assert words["fill_bytes"] == "a\x1b[31m\u202e".encode().hex()
	assert "chunk_count" not in huge and huge["shape"] == [2**62, 2**62]
END

# ---- ls and tree.
run 0 "$lade" zarr ls g
quiet
grep -qE '^temp +array +\(2, 100, 95\) +\(1, 10, 10\) +int32 +74.22 KiB$' "$top/out" && good ||
	bad "no row of temp"
grep -qE '^sub +group ' "$top/out" && good || bad "no row of sub"
grep -qE 'line|plain' "$top/out" && bad "prints what is no member" || good
run 0 "$lade" zarr ls --depth=2 --stored g.zip
grep -qE '^sub/line +array .*7\.63 MiB +[0-9]+ B$' "$top/out" && good || bad "no row of sub/line"
run 0 "$lade" zarr tree g
prints '`-- words (4,) string'
prints '|   `-- line (1000000,) float64, 7.63 MiB'
prints '|-- huge (4611686018427387904, 4611686018427387904) uint8, > 16 EiB'
sed '1d' "$top/out" >want
for f in c g.zip; do
	run 0 "$lade" zarr tree $f
	sed '1d' "$top/out" | cmp -s - want && good || bad "$f has another tree"
done
LC_ALL=C.UTF-8 "$lade" zarr tree g >"$top/out"
prints "│   └── line"
run 0 "$lade" zarr tree --depth=1 g
grep -q line "$top/out" && bad "goes too deep" || good
run 0 "$lade" zarr tree --json g
python3 - "$top/out" <<-'END' && good || bad "the JSON is not as it should be"
	import json, sys
	paths = {m["path"]: m for m in json.load(open(sys.argv[1]))}
	assert list(paths) == ["huge", "pair", "shard", "sub", "sub/line", "temp", "words"]
	assert paths["temp"]["decoded_size"] == 76000 and paths["sub"]["kind"] == "group"
END
run 0 "$lade" zarr ls odd
prints 'n\342\200\256'
run 0 "$lade" zarr ls g/temp
prints "g/temp  array"
# A member that cannot be opened is named; the others are there.
run 1 "$lade" zarr ls bad
says "bad/a: "
prints "b     array"
mkdir loop
cp g/zarr.json loop/
ln -s . loop/again
"$lade" zarr tree loop >"$top/out" 2>"$top/err"
[ $? -le 1 ] && [ "$(wc -l <"$top/out")" -le 65 ] && good || bad "follows a circle for ever"

# ---- cat: a selection is a .npy file.
cat >npy.py <<-'END'
	"""npy.py FILE DESCR SHAPE [SELECTION]: the type, shape, and elements of 'count'."""
	import array, ast, sys

	data = open(sys.argv[1], "rb").read()
	assert data[:6] == b"\x93NUMPY" and data[6] in (1, 3) and data[7] == 0
	start = 10 if data[6] == 1 else 12
	end = start + int.from_bytes(data[8:start], "little")
	text = data[start:end].decode()
	assert end % 64 == 0 and text.isascii() == (data[6] == 1)
	head = ast.literal_eval(text)
	shape = ast.literal_eval(sys.argv[3])
	want = {"descr": ast.literal_eval(sys.argv[2]), "fortran_order": False, "shape": shape}
	assert head == want, head
	if len(sys.argv) > 4:
	    class Take:  # the indices of an axis for each part of a selection
	        def __getitem__(self, parts):
	            return [i if isinstance(i, list) else [range(n)[i]] if isinstance(i, int) else
	                    list(range(n)[i]) for i, n in zip(parts, (3, 400, 700))]
	    t, y, x = eval("Take()" + sys.argv[4])
	    have = array.array("I", data[end:])
	    assert list(have) == [(i * 400 + j) * 700 + k for i in t for j in y for k in x]
END
cat_gives() { # node, selection, descr, shape, options...
	run 0 "$lade" zarr cat "$1" "$2" "${@:5}"
	quiet
	python3 npy.py "$top/out" "$3" "$4" "$2" && good || bad "cat $1 $2 is wrong"
}
for memory in 1M 3M 64M; do
	cat_gives count "[:,:,:]" "'<u4'" "(3, 400, 700)" -M $memory
	cat_gives count "[::-1, 250:3:-1, 5:690]" "'<u4'" "(3, 247, 685)" -M $memory
	cat_gives count "[[2, 0, 0], 399, ::-3]" "'<u4'" "(3, 234)" -T1 --memory=$memory
	cat_gives count "[-1, 350:, [699, 0, 5]]" "'<u4'" "(50, 3)" --memory $memory
done
cat_gives count "[5:2, :, :]" "'<u4'" "(0, 400, 700)"
cat_gives count "[0, 0, 0]" "'<u4'" "()"
run 0 "$lade" zarr cat g/pair
python3 npy.py "$top/out" "[('a', '<i4'), ('b\\x9b', '<f4')]" "(3,)" && good ||
	bad "the type of a struct"
run 0 "$lade" zarr cat g/pair --field=a "[1:]"
python3 npy.py "$top/out" "'<i4'" "(2,)" && good || bad "a field is not as it should be"
# Strings get the length of the longest; they must be UTF-8.
run 1 "$lade" zarr cat latin
says "not UTF-8"
for memory in 1M 64M; do
	run 0 "$lade" zarr cat text -M$memory
	python3 npy.py "$top/out" "'<U5'" "(5,)" && good || bad "the type of strings"
	[ "$(tail -c 100 "$top/out" | od -An -tx4 -v | tr -s ' \n' ' ')" = " 00000061 000000e4 \
00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 0001f600 00000062 \
00000063 00000064 000000ff 00000078 00000000 00000000 00000000 00000000 00000000 00000000 \
00000000 00000000 00000000 " ] && good || bad "other strings"
done
run 0 "$lade" zarr cat text "[3]"
python3 npy.py "$top/out" "'<U1'" "()" && good || bad "the type of a string"
run 0 "$lade" zarr cat -o c.npy count
[ "$(stat -c %s c.npy)" = 3360128 ] && good || bad "c.npy has another size"
run 1 "$lade" zarr cat -o c.npy count
says "c.npy"
run 0 "$lade" zarr cat -f -o c.npy count "[0]"
[ "$(stat -c %s c.npy)" = 1120128 ] && good || bad "c.npy was not replaced"
clean
run 1 "$lade" zarr cat count "[0, 400]"
says "400"
run 1 "$lade" zarr cat count "[0, x]"
run 1 "$lade" zarr cat g
says "is a group"
run 2 "$lade" zarr cat count 1 2
run 2 "$lade" zarr cat --memory=1 count
run 2 "$lade" zarr cat --json count
if needs script; then
	script -qec "$lade zarr cat count" /dev/null >"$top/out" </dev/null
	prints "not written to a terminal"
fi

# ---- verify: bad chunks are named.
run 0 "$lade" zarr verify count g/temp
quiet
prints "count: 32 chunks good, 0 bad, 0 missing"
prints "g/temp: 110 chunks good, 0 bad, 90 missing; 20.59 KiB stored, 42.97 KiB decoded"
cp -r g spoiled
printf X | dd of=spoiled/temp/c/1/5/3 bs=1 seek=40 conv=notrunc status=none
truncate -s 30 spoiled/temp/c/0/9/9
: >spoiled/temp/c/0/0/0
run 1 "$lade" zarr verify spoiled/temp
prints "spoiled/temp: 107 chunks good, 3 bad, 90 missing"
for key in 1/5/3 0/9/9 0/0/0; do
	says "key 'c/$key', chunk (${key//\//, }): "
done
run 1 "$lade" zarr verify --json spoiled/temp
python3 - "$top/out" <<-'END' && good || bad "the JSON is not as it should be"
	import json, sys
	(one,) = json.load(open(sys.argv[1]))
	assert (one["good"], one["bad"], one["missing"]) == (107, 3, 90)
	assert [f["key"] for f in one["failures"]] == ["c/0/0/0", "c/0/9/9", "c/1/5/3"]
	assert [f["chunk"] for f in one["failures"]] == [[0, 0, 0], [0, 9, 9], [1, 5, 3]]
	assert [f["start"] for f in one["failures"]] == [[0, 0, 0], [0, 90, 90], [1, 50, 30]]
	assert all(f["reason"] and f["status"] for f in one["failures"])
END
run 1 "$lade" zarr verify shards
prints "shards: 2 shards good, 2 bad, 0 missing"
prints ", 11 inner chunks"
says "shards: key 'c/0/1', chunk (0, 1), inner chunk (1, 0): "
says "shards: key 'c/1/1', chunk (1, 1): "
[ "$(wc -l <"$top/err")" = 2 ] && good || bad "says something else"
cp -r g/words texts
run 1 "$lade" zarr verify texts
prints "texts: 0 chunks good, 2 bad, 0 missing; 5 B stored"
cp -r count nothing
find nothing/c -type f -exec truncate -s 0 {} +
run 1 "$lade" zarr verify nothing
prints "nothing: 0 chunks good, 32 bad, 0 missing; 0 B stored, 0 B decoded"
run 1 "$lade" zarr verify --complete count old
prints "count: 32 chunks good, 0 bad, 0 missing"
prints "old: 1 chunk good, 0 bad, 3 missing"
says "key '1.0': there is no such chunk"

# ---- a web server.
coproc server { exec python3 "$here/../http_server.py" .; }
read -r port <&"${server[0]}"
url=http://127.0.0.1:$port/files
run 0 "$lade" zarr info g/temp
sed '1d; /other keys/d' "$top/out" >want_info
run 0 "$lade" zarr info "$url/g/temp"
prints "shape       (2, 100, 95)"
sed 1d "$top/out" | cmp -s - want_info && good || bad "the URL's chunks are others"
"$lade" zarr create --shape=2000 --chunks=1 --dtype=int8 many
run 0 "$lade" zarr info "$url/many"
prints "not known: the store cannot list its keys"
prints "--stored asks for each of 2000 chunks"
run 0 "$lade" zarr info --json --stored "$url/many"
prints '"missing": 2000'
run 0 "$lade" zarr ls --stored "$url/c"
prints "stored"
run 0 "$lade" zarr tree "$url/c"
sed '1d' "$top/out" | cmp -s - want && good || bad "the URL has another tree"
run 1 "$lade" zarr ls "$url/g"
says "no consolidated metadata"
says "name a member ($url/g/NAME)"
run 0 "$lade" zarr tree "$url/g.zip"
sed '1d' "$top/out" | cmp -s - want && good || bad "the zip file at a URL has another tree"
run 0 "$lade" zarr cat "$url/count" "[2, 3:5, ::-1]"
python3 npy.py "$top/out" "'<u4'" "(2, 700)" "[2, 3:5, ::-1]" && good || bad "cat of a URL"
run 1 "$lade" zarr verify "$url/spoiled/temp"
prints "spoiled/temp: 107 chunks good, 3 bad, 90 missing"
run 1 "$lade" zarr info "$url/nosuch"
says "nosuch: "
eval "exec ${server[1]}>&-"

# ---- mistakes.
run 2 "$lade" zarr
run 2 "$lade" zarr paint g
says "there is no command paint"
run 2 "$lade" zarr info
run 2 "$lade" zarr info --depth=2 g
says "zarr info has no option --depth"
run 2 "$lade" zarr ls --depth=0 g
run 2 "$lade" zarr ls --nosuch g
run 1 "$lade" zarr info nosuch g/plain old/0.0 old
says "nosuch: No such file"
says "g/plain: "
says "old/0.0: zip"
prints "old: array"
run 1 "$lade" zarr info g.zip/nosuch
run 0 "$lade" zarr --help
prints "Usage: lade zarr"
complete='complete() { :; }; compopt() { :; }; . "$1"; shift
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _lade; echo "${COMPREPLY[@]}"'
completion=$here/../../src/cli/completion/lade.bash
run 0 bash -c "$complete" - "$completion" "$lade" zarr t
prints tree
run 0 bash -c "$complete" - "$completion" "$lade" zarr ls --st
prints "--stored"

# ---- create.
run 0 "$lade" zarr create --shape=1000,2000 --dtype=float32 --fill=1.5 --names=y, \
	--attributes='{"units":"K"}' made
quiet
run 0 "$lade" zarr info made
prints "shape       (1000, 2000), axes y, ?"
prints "chunks      (500, 500), a grid of 2 x 4"
prints "fill        1.5"
prints '{ "units": "K" }'
run 0 "$lade" zarr cat made "[0, ::1000]"
tail -c 8 "$top/out" | od -An -tf4 | grep -qE '^ +1\.5 +1\.5$' && good || bad "is not filled"
run 1 "$lade" zarr create --group made
says "(-f replaces it)"
run 0 "$lade" zarr create -f --shape '(64, 64)' --chunks 8,8 --shards=32,32 --dtype '<i2' \
	--codec 'shuffle(2)|zstd(level=5)' made
run 0 "$lade" zarr info made
prints "chunks      (8, 8) in shards"
prints "[shuffle(2)|zstd(level=5)], index at the end: [crc32c]"
run 0 "$lade" zarr create --format=2 --shape=5 --dtype=bool --fortran \
	--codec '[{"id":"zlib","level":2}]' made/two
run 0 "$lade" zarr info made/two
prints "made/two: array, Zarr format 2"
prints "zlib(level=2)"
run 0 "$lade" zarr create --group made/group made/other
run 0 "$lade" zarr ls made/group
# What fails leaves nothing.
run 1 "$lade" zarr create --shape=5 --dtype=nosuch gone
says "nosuch"
run 1 "$lade" zarr create --shape=5 --dtype=nosuch gone.zip
run 1 "$lade" zarr create --group http://localhost/gone
run 2 "$lade" zarr create --shape=5,5 --chunks=2 --dtype=int8 gone
says "--chunks has 1 numbers, the shape has 2"
run 2 "$lade" zarr create --shape=5 --names=a,b --dtype=int8 gone
run 2 "$lade" zarr create --shape=5x --dtype=int8 gone
run 2 "$lade" zarr create --shape=5 --dtype=int8 --codec=nosuch gone
run 2 "$lade" zarr create --shape=5 gone
run 2 "$lade" zarr create --group --shape=5 gone
run 2 "$lade" zarr info --shape=5 made
gone gone gone.zip

# ---- create from a .npy file: its elements come back.
"$lade" zarr cat count >count.npy
"$lade" zarr cat g/pair --field=a >a.npy
for f in count a; do
	for option in --fortran -M1M --format=2 --codec=zstd; do
		run 0 "$lade" zarr create -f --from=$f.npy $option copy
		quiet
		run 0 "$lade" zarr cat copy
		same "$top/out" $f.npy
	done
done
run 0 "$lade" zarr create -f --from=count.npy --chunks=2,64,64 --shards=2,128,128 copy
run 0 "$lade" zarr cat copy
same "$top/out" count.npy
run 0 "$lade" zarr verify copy
prints "copy: 48 shards good, 0 bad, 0 missing"
run 0 "$lade" zarr create --from=count.npy --chunks=2,64,64 copy.zip
run 0 "$lade" zarr cat copy.zip
same "$top/out" count.npy
run 1 "$lade" zarr create --group copy.zip
says "(-f replaces it)"
run 0 "$lade" zarr create -f --group copy.zip
run 0 "$lade" zarr info copy.zip
prints "copy.zip: group"
clean
# Chunks of the fill value are not stored.
run 0 "$lade" zarr create --from=a.npy --fill=-1 --chunks=2 filled
run 0 "$lade" zarr info filled
prints "missing     2 of 2 chunks"
python3 - <<-'END'
	import struct

	def npy(name, descr, fortran, shape, data):
	    head = f"{{'descr': {descr!r}, 'fortran_order': {fortran}, 'shape': {shape}}}"
	    head = struct.pack("<H", len(head) + 1) + head.encode() + b"\n"
	    with open(name, "wb") as f:
	        f.write(b"\x93NUMPY\1\0" + head + data)

	npy("columns.npy", "<u2", True, (3, 2), struct.pack("<6H", *range(6)))
	npy("words.npy", "<U2", False, (2,), "ab\u00e4".encode("utf-32-le") + bytes(4))
	npy("big.npy", ">u2", False, (2,), bytes(4))
	npy("short.npy", "<u2", False, (3,), bytes(5))
	npy("pairs.npy", [("a", "<u2")], False, (3,), bytes(6))
END
run 0 "$lade" zarr create --from=columns.npy columns
run 0 "$lade" zarr cat columns
tail -c 12 "$top/out" | od -An -tu2 | grep -qE '^ +0 +3 +1 +4 +2 +5$' && good || bad "wrong order"
run 0 "$lade" zarr create --from=words.npy words
run 0 "$lade" zarr cat words
tail -c 16 "$top/out" | cmp -s - <(tail -c 16 words.npy) && good || bad "wrong words"
run 1 "$lade" zarr create --from=big.npy gone
says "big.npy: its elements are big-endian"
run 1 "$lade" zarr create --from=short.npy gone
says "want 6 bytes of elements, have 5"
run 1 "$lade" zarr create --from=pairs.npy gone
run 1 "$lade" zarr create --from=nosuch.npy gone
run 1 "$lade" zarr create --from="$lade" gone
run 2 "$lade" zarr create --from=big.npy --shape=2 gone
run 2 "$lade" zarr create --from=big.npy --group gone
gone gone
