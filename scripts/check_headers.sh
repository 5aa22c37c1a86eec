#!/usr/bin/env bash
# Each public header compiles alone, as C11 and as C++17, without a warning; and so do two of them,
# in either order.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
warn="-Wall -Wextra -Wconversion -Wshadow -Wpedantic -Werror -fsyntax-only -Iinclude"
count=0
for header in include/lade/*.h; do
	name=lade/$(basename "$header")
	for text in "#include <$name>" "#include <$name>
#include <lade/lade.h>" "#include <lade/lade.h>
#include <$name>"; do
		printf "%s\nint one;\n" "$text" | cc -std=c11 -Wstrict-prototypes $warn -xc -
		printf "%s\nint one;\n" "$text" | c++ -std=c++17 $warn -xc++ -
		count=$((count + 2))
	done
done
echo "$count compilations"
