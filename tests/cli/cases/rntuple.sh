# lade rntuple: what it says of ROOT's files, the entries it reads, and the damage it finds.
# SPDX-License-Identifier: Apache-2.0
golden=$here/../golden/rntuple
for name in "$golden"/test_*.root; do
	short=${name##*/test_}
	cp "$name" "${short%_rntuple*}.root"
done
cp "$golden"/rntviewer*.root staff.root

# info, ls, schema
run 0 "$lade" rntuple info extension_columns.root
quiet
prints 'extension_columns.root: RNTuple "ntuple", format 1.0.0.0'
prints '600 in 4 clusters'
prints 'ratio 4.018'
prints 'SplitReal32(32)   zstd 5'
prints 'intvec_field._0'
prints 'columns down, clusters across'
prints '####'
prints 'missing'
COLUMNS=20 run 0 "$lade" rntuple info stl_containers.root
run 0 "$lade" rntuple ls stl_containers.root:ntuple
prints 'std::vector<std::variant<std::int64_t,std::string>>'
run 0 "$lade" rntuple schema stl_containers.root
prints '|   `-- _0: std::variant<std::int64_t,std::string>  Switch(96)'
prints '`-- array_lv: std::array<LV,3> [3]'
for command in info ls schema verify; do
	run 0 "$lade" rntuple $command --json *.root
	quiet
	! needs python3 || python3 -m json.tool "$top/out" >/dev/null && good || bad 'no JSON'
done
run 1 "$lade" rntuple info none.root
says 'none.root'
run 1 "$lade" rntuple info bit.root:other
says 'other'
printf 'root%0100d' 0 >torn.root
run 1 "$lade" rntuple ls torn.root

# dump
run 0 "$lade" rntuple dump stl_containers.root vector_variant_int64_string lorentz_vector.pt \
	--entries=1:3
mv "$top/out" p
run 0 "$lade" rntuple dump stl_containers.root variant_int32_string array_float --entries=1:3
quiet
cat >want <<'END'
{"vector_variant_int64_string":["one",2],"lorentz_vector.pt":2}
{"vector_variant_int64_string":["one",2,3],"lorentz_vector.pt":3}
{"variant_int32_string":"two","array_float":[2,2,2]}
{"variant_int32_string":"three","array_float":[3,3,3]}
END
cat "$top/out" >>p
same want p
run 0 "$lade" rntuple dump --format=text staff.root:Contributors --entries=1:2
printf '"firstName"\t"lastName"\n"Philippe"\t"Canal"\n' >want
same want "$top/out"
run 0 "$lade" rntuple dump extension_columns.root intvec_field -o all -M 1M
[ "$(wc -l <all)" = 600 ] && good || bad 'not 600 entries'
run 0 "$lade" rntuple dump extension_columns.root --entries=350:450
prints '{"int_field":150,"float_field":150.5,"intvec_field":[]}'
run 0 "$lade" rntuple dump stl_containers.root -o f.npy array_lv._0.eta
run 0 "$lade" rntuple dump -f stl_containers.root -o f.npy array_float
run 0 "$lade" rntuple dump --format=npy index_multicluster.root int_vector --entries=90:110
mv "$top/out" offsets.npy
if needs python3 && python3 -c 'import numpy' 2>/dev/null; then
	python3 - <<-'END' && good || bad '.npy files are wrong'
		import numpy
		f, o = numpy.load("f.npy"), numpy.load("offsets.npy")
		assert f.dtype == "f4" and f.tolist() == [[i] * 3 for i in range(1, 6)]
		assert o.tolist() == list(range(0, 42, 2))
	END
fi
run 1 "$lade" rntuple dump bit.root no_field
says 'no_field'
run 1 "$lade" rntuple dump stl_containers.root vector_int32._0
says 'below a collection'
run 1 "$lade" rntuple dump -o two.npy int_float.root
says 'a .npy file has one field, not 2'
gone two.npy
clean
run 2 "$lade" rntuple dump --entries=3:2 bit.root
run 2 "$lade" rntuple dump --format=csv bit.root
run 2 "$lade" rntuple info --entries=1:2 bit.root
run 2 "$lade" rntuple
run 2 "$lade" rntuple mend bit.root
run 2 "$lade" rntuple verify

# verify: a byte of one page is wrong
run 0 "$lade" rntuple verify *[!n].root
prints 'extension_columns.root: ntuple: 15 pages good, 0 bad; 1.75 KiB stored, 7.03 KiB decoded'
if needs python3; then
	run 0 "$lade" rntuple verify --json extension_columns.root
	python3 - <<-'END'
		data = bytearray(open("index_multicluster.root", "rb").read())
		at = data.index(b"RBlob", data.index(b"RBlob") + 1)
		data[at + 40] ^= 1
		open("bad.root", "wb").write(data)
	END
	run 1 "$lade" rntuple verify bad.root
	says 'bad.root: cluster 0, column 0, page 0 at byte '
	says 'its XXH3 does not match'
	prints 'bad.root: ntuple: 7 pages good, 1 bad'
	run 1 "$lade" rntuple verify --json bad.root
	prints '"field": "int_vector"'
	prints '"status": "LADE_E_CHECKSUM"'
	run 1 "$lade" rntuple dump bad.root
	says 'does not match'
	# An anchor that is torn, and mended once.
	python3 - <<-'END'
		data = bytearray(open("staff.root", "rb").read())
		data[data.index(b"\x40\0\0\x42\0\2\0\1") + 45] ^= 1
		open("torn.root", "wb").write(data)
	END
	run 1 "$lade" rntuple verify torn.root
	says 'anchor'
	run 0 "$lade" rntuple verify --repair torn.root staff.root
	prints 'torn.root: Contributors: 4 pages good, 0 bad; 723 B stored, 723 B decoded; its'
	prints 'its anchor was torn and is mended'
	same torn.root staff.root
	run 0 "$lade" rntuple verify --repair --json torn.root
	prints '"mended": false'
	run 2 "$lade" rntuple verify --repair http://127.0.0.1:1/torn.root
	run 2 "$lade" rntuple info --repair torn.root
	# The same from a web server.
	coproc server { exec python3 "$here/../http_server.py" .; }
	read -r port <&"${server[0]}"
	url=http://127.0.0.1:$port/files
	run 0 "$lade" rntuple dump "$url/extension_columns.root:ntuple" intvec_field
	same all "$top/out"
	run 1 "$lade" rntuple verify "$url/bad.root"
	prints 'ntuple: 7 pages good, 1 bad'
	run 1 "$lade" rntuple ls "$url/none.root"
	eval "exec ${server[1]}>&-"
fi
