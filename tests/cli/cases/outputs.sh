# What an output's name leads to: links, devices, pipes, open files; and when --rm removes.
# SPDX-License-Identifier: Apache-2.0
text 200000 >a
text 3000 >small
cp a orig
run 0 "$lade" -c a
cp "$top/out" a.packed

# A link to a regular file stays; the file that it names is replaced, mode and times as always.
echo old >target
ln -s target link
ln -s "$PWD/link" far
run 1 "$lade" a -o link
says "exists already"
run 0 "$lade" -f a -o far
[ -L far ] && [ -L link ] && good || bad "a link was replaced"
same target a.packed
mkdir there
ln -s ../target there/link
run 0 "$lade" -f small -o there/link
[ -L there/link ] && good || bad "a link was replaced"
run 0 "$lade" -dc target
same "$top/out" small
ln -s target a.lade
run 0 "$lade" -f a
[ -L a.lade ] && good || bad "a link was replaced"
same target a.packed
# One that names nothing makes what it names.
ln -s nothing dangling
run 0 "$lade" a -o dangling
[ -L dangling ] && good || bad "a link was replaced"
same nothing a.packed
ln -s round round
run 1 "$lade" -f a -o round
says "symbolic links"
ln -s missing/there nowhere
run 1 "$lade" -f a -o nowhere
says "No such file"
ln -s a input
run 1 "$lade" -f a -o input
says "input and the output"
clean
rm -f a.lade

# What is no regular file is written to, and is there afterwards.
ln -s /dev/null null
run 0 "$lade" -f a -o null
[ -L null ] && good || bad "a link to a device was replaced"
run 0 "$lade" -f a -o /dev/null
[ -c /dev/null ] && good || bad "/dev/null was replaced"
mkfifo pipe
ln -s pipe to-pipe
(timeout 20 cat pipe >got) &
run 0 "$lade" a -o to-pipe
wait $!
same got a.packed
[ -p pipe ] && [ -L to-pipe ] && good || bad "a pipe was replaced"

# Open files: links to them lead to the file that is open, whatever it is; here it is a regular one.
# The name in /dev comes last, and only where nothing has gone wrong so far.
ln -s /dev/stdout stdout
for name in stdout /proc/self/fd/1 /dev/fd/1 /dev/stdout; do
	[ $failed = 0 ] || continue
	for force in "" -f; do
		(
			echo before
			"$lade" $force a -o $name
			echo after
		) >out 2>"$top/err"
		quiet
		{ echo before; cat a.packed; echo after; } >want
		same out want
	done
	[ -L stdout ] && [ -L /dev/stdout ] && good || bad "$name was replaced"
	(
		echo before
		"$lade" -d a.packed -o $name
	) >>out
	{ cat want; echo before; cat a; } >want2
	same out want2
done
"$lade" a -o stdout 2>"$top/err" | cat >got
same got a.packed
"$lade" -f a -o /proc/self/fd/5 5>out 2>"$top/err"
same out a.packed
quiet
rc=0
"$lade" -f a -o stdout >&- 2>"$top/err" || rc=$?
[ $rc = 1 ] && good || bad "a closed descriptor: exit code $rc"
# Of another process: a file that is there, and as long as it was.
text 500000 >held
sleep 60 7>>held &
pid=$!
run 1 "$lade" a -o /proc/$pid/fd/7
says "exists already"
before=$(stat -c %i held)
run 0 "$lade" -f a -o /proc/$pid/fd/7
kill $pid
same held a.packed
[ "$before" = "$(stat -c %i held)" ] && good || bad "an open file was replaced"
if needs python3; then
	# A socket cannot be opened, and is there already.
	python3 - "$lade" >got 2>"$top/err" <<'EOF'
import socket, subprocess, sys, threading
ours, theirs = socket.socketpair()
got = []
def read():
    while data := ours.recv(1 << 16):
        sys.stdout.buffer.write(data)
t = threading.Thread(target=read)
t.start()
rc = subprocess.run([sys.argv[1], "-f", "a", "-o", "stdout"], stdout=theirs).returncode
theirs.close()
t.join()
sys.exit(rc)
EOF
	[ $? = 0 ] && good || bad "a socket: exit code"
	same got a.packed
fi
clean

# --rm wants a regular file of its own, complete and on the disk.
for name in /dev/null null stdout; do
	cp orig a
	run 0 "$lade" --rm -f a -o $name
	says "a: not removed, since"
	there a
done
(timeout 20 cat pipe >/dev/null) &
run 0 "$lade" --rm -f a -o to-pipe
wait $!
says "not removed"
there a
run 0 "$lade" --rm -c a
quiet
there a
run 0 "$lade" --rm -f a -o link
quiet
gone a
same target a.packed
run 0 "$lade" --rm -df target -o a
same a orig
gone target
[ -w /dev/full ] && {
	run 1 "$lade" --rm -f a -o /dev/full
	says "No space left"
	there a
}

# Each fsync() that fails keeps the source: that of the file, and that of its folder.
if needs cc; then
	cat >shim.c <<'EOF'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
/* FAIL: "file" or "folder": their fsync() fails.  Each call is told to descriptor 9. */
int fsync(int fd)
{
	struct stat st;
	fstat(fd, &st);
	const char *what = S_ISDIR(st.st_mode) ? "folder" : "file", *fail = getenv("FAIL");
	if (write(9, what, 2) != 2)
		abort();
	if (fail && fail[1] == what[1]) {
		errno = EIO;
		return -1;
	}
	return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}
int unlink(const char *path)
{
	if (write(9, "un", 2) != 2)
		abort();
	return ((int (*)(const char *))dlsym(RTLD_NEXT, "unlink"))(path);
}
EOF
	cc -shared -fPIC -o shim.so shim.c -ldl || bad "the shim was not built"
	for fail in file folder; do
		FAIL=$fail LD_PRELOAD=$PWD/shim.so run 1 "$lade" --rm -f a 9>calls
		says "Input/output error"
		there a
		clean
	done
	LD_PRELOAD=$PWD/shim.so run 0 "$lade" --rm -f a 9>calls
	[ "$(cat calls)" = fifoun ] && good || bad "the order is $(cat calls)"
	gone a
	LD_PRELOAD=$PWD/shim.so run 0 "$lade" -d -f a.lade 9>calls
	[ ! -s calls ] && good || bad "without --rm something was synced: $(cat calls)"
fi

# Blocks of zeros become holes: at the start, in the middle and at the end, and of odd sizes.
blocks() { stat -c %b "$1"; } # of 512 bytes
truncate -s 8M zeros
{ head -c 3000001 zeros; text 50000; head -c 3000000 zeros; text 50; head -c 2000003 zeros; } >holes
cp --sparse=always holes sample
if [ "$(blocks sample)" -lt 1000 ]; then
	printf x >full
	for format in lade zst gz lz4; do
		for n in holes zeros full; do
			"$lade" --format=$format <$n >$n.$format
		done
		for option in "" --sparse "-T1" "-T1 --sparse"; do
			run 0 "$lade" -df $option holes.$format -o made
			same made holes
			[ "$(blocks made)" -lt 400 ] && good || bad "$format $option: no holes"
		done
		run 0 "$lade" -df zeros.$format -o made
		same made zeros
		[ "$(blocks made)" -lt 100 ] && good || bad "$format: zeros are no hole"
		run 0 "$lade" -df --no-sparse holes.$format -o made
		same made holes
		[ "$(blocks made)" -gt 15000 ] && good || bad "$format --no-sparse: holes"
		"$lade" -dc holes.$format >made
		same made holes
		[ "$(blocks made)" -gt 15000 ] && good || bad "$format -c: holes"
		"$lade" -dc --sparse holes.$format zeros.$format full.$format zeros.$format >made
		cat holes zeros full zeros >want
		same made want
		[ "$(blocks made)" -lt 800 ] && good || bad "$format -c --sparse: no holes"
	done
	# What is there already stays or is written over, as without holes.
	text 9000000 >want
	cp want made
	"$lade" -dc --sparse zeros.lade 1<>made
	{ cat zeros; tail -c +8388609 want; } >want2
	same made want2
	cp want made
	"$lade" -dc --sparse zeros.lade >>made
	cat want zeros >want2
	same made want2
	"$lade" -dc --sparse holes.lade | cat >made
	same made holes
	rm -f made want want2
else
	skip "holes" "this file system has none"
fi
clean
