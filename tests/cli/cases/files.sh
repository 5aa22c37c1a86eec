# What lies in the way: existing, missing, unreadable, special files; folders that refuse.
# SPDX-License-Identifier: Apache-2.0
text 100000 >a
cp a orig

# An existing output is left alone, unless -f.
run 0 "$lade" a
echo mine >a.lade
run 1 "$lade" a
says "exists already"
echo mine >want
same a.lade want
run 0 "$lade" -f a
run 0 "$lade" -t a.lade
run 1 "$lade" -d a.lade
says "exists already"
run 0 "$lade" -df a.lade
same a orig

# One bad file does not stop the others.
text 10 >b
text 20 >c
run 1 "$lade" b missing c
says "missing: No such file"
there b.lade c.lade
echo junk >j.lade
run 1 "$lade" -df b.lade j.lade c.lade
says "j.lade: "
gone j
run 1 "$lade" -t b.lade j.lade

# Names.
text 30 >nosuffix
run 0 "$lade" -c nosuffix
cp "$top/out" odd.xyz
run 1 "$lade" -d odd.xyz
says "suffix is unknown"
run 0 "$lade" -d odd.xyz -o odd
same odd nosuffix
run 1 "$lade" nosuffix -f -o nosuffix
says "input and the output"
there nosuffix
same odd nosuffix
long=$(printf 'n%.0s' $(seq 250))
text 40 >$long
run 0 "$lade" $long
there $long.lade

# Control characters and bytes that are no UTF-8 are shown, and do nothing to a terminal.
odd=$(printf 'x\n\033[31m\302\233\342\200\256\377\303\251\342\202\254')
shown=$(printf 'x\\n\\033[31m\\302\\233\\342\\200\\256\\377\303\251\342\202\254')
run 1 "$lade" "$odd"
says "error: $shown: No such file"
text 50 >"$odd"
run 0 "$lade" -v "$odd"
says "$shown: 50 B -> "
run 1 "$lade" "$odd"
says "error: $shown.lade: exists already"
run 0 "$lade" -l "$odd.lade"
prints " $shown.lade"
run 0 "$lade" -lv "$odd.lade"
prints "$shown.lade"
run 0 "$lade" inspect "$odd.lade"
prints "$shown.lade: .lade"

# -dcf gives what is no compressed file as it is, also where a text begins as a .zz file does.
echo plain >plain
echo 'x^2 + y^2' >zlike
: >empty
run 0 "$lade" -dcf plain a.lade zlike empty -
cat plain orig zlike >want
same "$top/out" want
"$lade" -df <zlike >p && same p zlike
cat a.lade | "$lade" -dcf >p && same p orig
for args in "-dc plain" "-tf plain" "-df plain -o other"; do
	run 1 "$lade" $args
	says "is in no format that lade knows"
	lacks "at byte"
done
gone other

# Symbolic links are left out, unless -f.
ln -s a link
run 1 "$lade" link
says "symbolic link"
gone link.lade
run 0 "$lade" link b -f
there link.lade
rm link.lade
ln -s nowhere dangling
run 1 "$lade" dangling

# Special files.
run 1 "$lade" /dev/null
says "neither a file nor a pipe"
run 1 "$lade" -c /dev/zero
mkfifo fifo
(cat orig >fifo 2>/dev/null &)
run 0 "$lade" -c fifo
"$lade" -d <"$top/out" >p && same p orig
(cat orig >fifo 2>/dev/null &)
run 1 "$lade" fifo
says "is a pipe"
run 0 "$lade" a -fo /dev/null
run 1 "$lade" a -fo /tmp
says "is a directory"

# Mode and times go along.
chmod 640 a
touch -d '2001-02-03 04:05:06' a
run 0 "$lade" -f a
[ "$(stat -c '%a %Y' a)" = "$(stat -c '%a %Y' a.lade)" ] && good || bad "mode or time was lost"
rm a
run 0 "$lade" -d a.lade
[ "$(stat -c '%a %Y' a)" = "$(stat -c '%a %Y' a.lade)" ] && good || bad "mode or time was lost"
umask 027
cat a | "$lade" -o from-pipe
[ "$(stat -c %a from-pipe)" = 640 ] && good || bad "the umask was not used"
umask 022

# Files and folders that may not be read or written, as a user to whom that applies.
as=
[ "$(id -u)" = 0 ] && as="setpriv --reuid=65534 --regid=65534 --clear-groups"
if [ -n "$as" ] && ! $as true 2>/dev/null; then
	skip "permissions" "this is root, and there is no setpriv"
else
	chmod 755 "$top" .
	text 50 >secret
	chmod 000 secret
	run 1 $as "$lade" secret -c
	says "Permission denied"
	chmod 644 secret
	mkdir closed
	cp orig closed/a
	chmod 555 closed
	run 1 $as "$lade" closed/a
	says "Permission denied"
	gone closed/a.lade
	chmod 755 closed
	run 1 $as "$lade" -r missing-folder
fi
clean
