# parts.sh: to be sourced: the parts of a job that takes longer than one call may.  A part that is
# done is noted in the folder WORK and not run again; a call begins no part for which there is no
# time left, and ends in time.  Call again until parts_end says that all is done.
#   LIMIT  seconds that a call may take (default 570)
#   MOST   seconds that a part may take (default 300)
# SPDX-License-Identifier: Apache-2.0
limit=${LIMIT:-570}
most=${MOST:-300}
mkdir -p "$WORK"
later=()

part() { # name, command: a program and its arguments
	local name=$1 left=$((limit - SECONDS)) began=$SECONDS rc=0
	shift
	[ -e "$WORK/$name.done" ] && return 0
	# With a tenth of its time a part would hardly come to an end.
	if [ "$left" -lt $((most / 10)) ]; then
		later+=("$name")
		return 0
	fi
	[ "$left" -lt "$most" ] || left=$most
	timeout -k 5 "$left" "$@" >"$WORK/$name.log" 2>&1 || rc=$?
	if [ $rc = 124 ] && [ "$left" -lt "$most" ]; then
		later+=("$name")
		return 0
	fi
	echo "$rc" >"$WORK/$name.done"
	echo "== $name: exit status $rc, $((SECONDS - began)) s"
	[ $rc = 0 ] || tail -n 12 "$WORK/$name.log"
}

# Whether a part has been done, and well.
part_done() { # name
	[ "$(cat "$WORK/$1.done" 2>/dev/null)" = 0 ]
}

# The call's end: 0 when all parts went well, 1 when some did not, 75 when there is more to do.
parts_end() {
	local bad
	bad=$(grep -Lx 0 "$WORK"/*.done 2>/dev/null | xargs -r -n 1 basename -s .done | tr '\n' ' ')
	[ -z "$bad" ] || echo "failed: $bad (their output: $WORK)"
	if [ ${#later[@]} -gt 0 ]; then
		echo "to be done yet: ${later[*]}"
		return 75
	fi
	[ -z "$bad" ] || return 1
	echo "all well"
}
