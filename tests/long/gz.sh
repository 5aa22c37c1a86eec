#!/usr/bin/env bash
# gz.sh LADE: a .gz file of 4,097 MiB, most of them zeros: the size of a member has 32 bits, so that
# a second one begins after 4,095 MiB.  gzip(1) and lade read both.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
lade=${1:?usage: gz.sh LADE}
folder=$(mktemp -d "${TMPDIR:-/tmp}/lade-gz-XXXXXX")
trap 'rm -rf "$folder"' EXIT
cd "$folder"
truncate -s 4097M plain
for at in 0 4094 4095 4096; do
	printf 'here is MiB %d' $at | dd of=plain bs=1M seek=$at conv=notrunc status=none
done
"$lade" --format=gz -1 -c plain >plain.gz
gzip -dc plain.gz | cmp - plain
"$lade" -dc plain.gz | cmp - plain
"$lade" -l plain.gz | tee list
grep -q '2 members' list
# The last member's size, in the last four bytes: 2 MiB.
[ "$(tail -c 4 plain.gz | od -An -tu4 | tr -d ' ')" = $((2 << 20)) ]
