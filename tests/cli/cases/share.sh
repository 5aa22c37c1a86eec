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
