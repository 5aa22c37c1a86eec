# Full disks, closed pipes, signals, terminals, files that change, memory.
# SPDX-License-Identifier: Apache-2.0
noise 30000000 >big
text 100000 >small

# A full disk.
if [ -w /dev/full ]; then
	rc=0
	"$lade" -c small >/dev/full 2>"$top/err" || rc=$?
	[ $rc = 1 ] && good || bad "/dev/full: exit code $rc"
	says "small: No space left on device, writing standard output"
	run 0 "$lade" -f small
	rc=0
	"$lade" -dc small.lade >/dev/full 2>"$top/err" || rc=$?
	[ $rc = 1 ] && good || bad "/dev/full: exit code $rc"
	for args in --help --version --algorithms "-l small.lade" devices "devices --help" \
		"inspect small.lade" "inspect --help" "suggest small" "bench --help"; do
		run 1 sh -c "'$lade' $args >/dev/full"
		says "error: No space left on device, writing standard output"
	done
else
	skip "a full disk" "there is no /dev/full"
fi
mkdir disk
if mount -t tmpfs -o size=1m tmpfs disk 2>/dev/null; then
	run 1 "$lade" big -o disk/out
	says "big: No space left on device, writing disk/out"
	[ -z "$(ls -A disk)" ] && good || bad "a partial file is left on the full disk"
	run 0 "$lade" big
	run 1 "$lade" -d big.lade -o disk/out
	[ -z "$(ls -A disk)" ] && good || bad "a partial file is left on the full disk"
	umount disk
	rm big.lade
else
	skip "a full file system" "no tmpfs can be mounted here"
fi
# The largest file that is allowed.
rc=0
(ulimit -f 100 && "$lade" big -o limited 2>"$top/err") || rc=$?
[ $rc = 1 ] && good || bad "file size limit: exit code $rc"
says "big: File too large, writing limited"
gone limited
clean

# A reader that goes away ends the command, quietly.
set +m
"$lade" -c big 2>"$top/err" | head -c 10 >/dev/null
rc=${PIPESTATUS[0]}
[ $rc = 141 ] && good || bad "closed pipe: exit code $rc"
quiet
(trap '' PIPE; "$lade" -c big 2>"$top/err"; echo $? >rc) | head -c 10 >/dev/null
[ "$(cat rc)" = 1 ] && good || bad "closed pipe, SIGPIPE ignored: exit code $(cat rc)"
says "Broken pipe"

# Signals in the middle: the original stays, nothing partial does.
sha=$(cksum <big)
for signal in INT TERM HUP; do
	rc=0
	timeout -s $signal 0.3 "$lade" -19 -T1 big 2>"$top/err" || rc=$?
	[ $rc = 124 ] && good || bad "SIG$signal: timeout's exit code $rc"
	gone big.lade
	clean
done
[ "$sha" = "$(cksum <big)" ] && good || bad "the original has changed"

# SIGKILL leaves a file whose name says what it was to be; a name as long as can be is cut.
for name in big.lade $(printf 'n%.0s' $(seq 255)); do
	(timeout -s KILL 0.3 "$lade" -19 -T1 big -o $name; :) 2>"$top/err"
	gone $name
	there .${name:0:64}.lade-??????
	rm -f .*.lade-*
done

# Files that change while they are read: the command is held up by a pipe meanwhile.
for how in grew shrank; do
	cp big changing
	mkfifo pipe-$how
	"$lade" -c changing >pipe-$how 2>"$top/err" &
	pid=$!
	exec 9<pipe-$how
	head -c 1000 <&9 >/dev/null
	sleep 0.2
	if [ $how = grew ]; then noise 50000000 >>changing; else truncate -s 1000000 changing; fi
	cat <&9 >/dev/null
	exec 9<&-
	rc=0
	wait $pid || rc=$?
	[ $rc = 1 ] && good || bad "a file that $how: exit code $rc"
	says "$how while it was read"
done
# One that vanishes while it is read is read to its end.
cp big vanishing
mkfifo pipe
"$lade" -c vanishing >pipe 2>"$top/err" &
pid=$!
exec 9<pipe
head -c 1000 <&9 >vanished.lade
rm vanishing
cat <&9 >>vanished.lade
exec 9<&-
wait $pid && good || bad "a file that vanished"
run 0 "$lade" -dc vanished.lade
same "$top/out" big

# Terminals.
if command -v script >/dev/null; then
	tty() { script -qec "$1" /dev/null >"$top/err" 2>&1 <<<"${2:-}"; }
	rc=0
	tty "$lade -c $PWD/small" || rc=$?
	[ $rc = 2 ] && good || bad "binary to a terminal: exit code $rc"
	says "not written to a terminal"
	rc=0
	tty "$lade" || rc=$?
	[ $rc = 2 ] && good || bad "no arguments on a terminal: exit code $rc"
	rc=0
	tty "$lade -d" || rc=$?
	[ $rc = 2 ] && good || bad "compressed bytes from a terminal: exit code $rc"
	run 0 "$lade" -f small
	tty "$lade small" n
	[ $? = 1 ] && good || bad "an answer of no"
	says "overwrite it?"
	tty "$lade small" y && good || bad "an answer of yes"
	# The progress line, a colour where there may be one, and none where not.
	tty "(head -c 9000000 big; sleep 0.3; tail -c +9000001 big) | $lade -f -T1 -c >slow.lade" &&
		says "MB/s"
	tty "$lade -f -T1 -q -15 small" && ! grep -q 'MB/s' "$top/err" && good ||
		bad "-q and progress"
	tty "env -u NO_COLOR TERM=xterm $lade missing"
	grep -q $'\033\\[1;31m' "$top/err" && good || bad "no colour on a terminal"
	tty "$lade missing"
	grep -q $'\033\\[1;31m' "$top/err" && bad "colour in spite of NO_COLOR" || good
else
	skip "terminals" "there is no script(1)"
fi

# Peak memory: below 64 MiB and 4 chunks of 1 MiB a thread, for any size of file.
peak() { # command; KiB of the largest process, or "failed"; what it says goes to $top/err
	python3 -c 'import resource, subprocess, sys
r = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(peak if r.returncode == 0 else "failed with %d" % r.returncode)' "$@" 2>"$top/err"
}
below() { # what, KiB as peak() gives them, limit
	case $2 in
	'' | *[!0-9]*) bad "$1: peak gave '$2', limit $3 KiB" ;;
	*) [ "$2" -lt "$3" ] && good || bad "$1: $2 KiB, limit $3" ;;
	esac
}
rm -f big* changing van*
if needs python3; then
	text 200000000 >huge
	threads=$(nproc)
	limit=$(((64 + 4 * threads) * 1024))
	for args in "-f huge" "-df huge.lade" "-t huge.lade" "-f --algorithm=lz4 huge" \
		"-df huge.lade"; do
		below "$args" "$(peak "$lade" $args)" $limit
	done
	below pipes "$(peak sh -c "cat huge | $lade | $lade -d")" $limit
	for format in zst gz lz4; do
		below "--format=$format" "$(peak "$lade" -f --format=$format huge)" $limit
		below "-t $format" "$(peak "$lade" -t huge.$format)" $limit
	done
fi
clean
