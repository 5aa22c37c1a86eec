# lade share: serve, ls, rm, top; what it says when nobody serves.
# SPDX-License-Identifier: Apache-2.0
socket=$PWD/socket
run 1 "$lade" share ls --socket="$socket"
says 'no broker answers'
run 2 "$lade" share
run 2 "$lade" share mend
run 2 "$lade" share ls --group=x
run 2 "$lade" share ls a b
run 2 "$lade" share rm
run 2 "$lade" share serve x
run 2 "$lade" share serve --group=no-such-group
run 2 "$lade" share serve -M 0
run 0 "$lade" share --help
prints 'serve the names of this user'

run 2 "$lade" share serve --disk=1G
says '--disk wants --spill'
run 2 "$lade" share ls --spill=x

"$lade" share serve --socket="$socket" -M 16M --spill="$PWD/files" --disk=1M 2>serve.err &
broker=$!
for _ in $(seq 200); do
	"$lade" share ls --socket="$socket" >/dev/null 2>&1 && break
	sleep 0.05
done
run 0 "$lade" share ls --socket="$socket"
silent
quiet
run 0 "$lade" share ls --json --socket="$socket" prefix
prints '[]'
run 0 "$lade" share top --socket="$socket"
prints '0, versions 0, held by clients 0'
prints 'of 16.00 MiB'
run 0 "$lade" share top --json --socket="$socket"
prints '"bytes_cap": 16777216'
prints '"disk_cap": 1048576'
run 1 "$lade" share rm --socket="$socket" none none@4
says "there is no 'none'"
run 2 "$lade" share rm --socket="$socket" none@x
run 1 "$lade" share serve --socket="$socket"
says 'it serves already'
kill $broker
wait $broker && good || bad "the broker's exit code is $?"
gone "$socket" "$socket.keeper"
run 1 "$lade" share serve --socket="$(printf '%0200d' 0)"
says 'a socket'"'"'s path of 200 bytes: at most 107'

# put and get: arrays as files, with their shapes.
"$lade" share serve --socket="$socket" 2>serve.err &
broker=$!
for _ in $(seq 200); do
	"$lade" share ls --socket="$socket" >/dev/null 2>&1 && break
	sleep 0.05
done
python3 - <<'P'
import struct
def npy(name, descr, shape, data, order="False"):
    head = "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }" % (descr, order, shape)
    head += " " * (-(len(head) + 11) % 64) + "\n"
    head = struct.pack("<H", len(head)) + head.encode()
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + head + data)
values = b"".join(struct.pack("<i", i) for i in range(24000))
npy("cube.npy", "<i4", "(1000, 4, 6)", values)
npy("row.npy", "<f8", "(12000,)", values)
npy("scalar.npy", "<i4", "()", values[:4])
npy("empty.npy", "<i4", "(0, 3)", b"")
npy("short.npy", "<i4", "(1000, 4, 7)", values)
npy("fortran.npy", "<i4", "(1000, 24)", values, "True")
npy("bools.npy", "|b1", "(24000,)", values[:24000])
P
for one in cube row empty; do
	run 0 "$lade" share put --socket="$socket" $one $one.npy
	run 0 "$lade" share get --socket="$socket" $one out-$one.npy
	cmp -s $one.npy out-$one.npy && good || bad "$one.npy comes back as another"
	run 0 "$lade" share get --socket="$socket" $one out-$one.lade
	run 0 "$lade" share put --socket="$socket" again out-$one.lade
	run 0 "$lade" share get --socket="$socket" again again-$one.npy
	cmp -s $one.npy again-$one.npy && good || bad "$one.lade comes back as another"
done
run 0 "$lade" share put --socket="$socket" scalar scalar.npy
run 0 "$lade" share get --socket="$socket" scalar out-scalar.npy
run 1 "$lade" share get --socket="$socket" scalar out-scalar.npy
says 'File exists'
run 1 "$lade" share get --socket="$socket" cube@999999 x.npy
says 'there is no version 999999'
run 1 "$lade" share get --socket="$socket" nope x.npy
says "nope: there is no 'nope'"
run 1 "$lade" share put --socket="$socket" x short.npy
says 'it has 96000 bytes of data, want 112000'
run 1 "$lade" share put --socket="$socket" x fortran.npy
says "Fortran's order"
run 1 "$lade" share put --socket="$socket" x bools.npy
says 'cannot be a column'
run 1 "$lade" share put --socket="$socket" x none.npy
says 'No such file'
run 1 "$lade" share put --socket="$socket" x x.arrow
says 'No such file'
run 0 "$lade" share get --socket="$socket" cube cube.arrow
run 0 "$lade" share put --socket="$socket" table cube.arrow
run 0 "$lade" share get --socket="$socket" table table.arrows
run 1 "$lade" share get --socket="$socket" table table.npy
run 1 "$lade" share get --socket="$socket" cube x.txt
says 'want a name that ends in'
run 2 "$lade" share put --socket="$socket" x
run 2 "$lade" share put --socket="$socket" x@1 cube.npy
kill $broker
wait $broker && good || bad "the broker's exit code is $?"
