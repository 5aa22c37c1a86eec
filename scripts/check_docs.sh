#!/usr/bin/env bash
# check_docs.sh BUILD: what the documents say against what is there.  Links and paths lead
# somewhere; docs/errors.md has every status; the tables of algorithms in README.md and docs/format
# (spec.md, filters.md, checksums.md) name what the library in BUILD knows, no more and no less.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(cd "${1:?usage: check_docs.sh BUILD}" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cat >"$dir/list.c" <<'END'
#include <lade/lade.h>
#include <stdio.h>
int main(void)
{
	static const char *const kinds[] = {"codec", "filter", "checksum"};
	const lade_algorithm *a;
	for (size_t i = 0; (a = lade_engine_algorithm(NULL, i)); i++)
		printf("%s %s %d %d\n", kinds[a->kind], a->name, a->id,
		       (a->flags & LADE_ALGORITHM_LOSSY) != 0);
#define LADE_X(name, value, text) printf("status %s %d %s\n", #name, value, text);
	LADE_STATUS_LIST(LADE_X)
	return 0;
}
END
cc -std=c11 -Iinclude "$dir/list.c" -o "$dir/list" -L"$build" -llade -Wl,-rpath,"$build"
"$dir/list" >"$dir/list.txt"
exec python3 scripts/check_docs.py "$dir/list.txt"
