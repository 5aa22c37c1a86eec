#!/usr/bin/env bash
# abi.sh: makes the public headers of today those that the released version's callers are compiled
# with (tests/abi/include).  To be run on purpose, before a version is released; never for one that
# is: its headers stay as they were.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
rm -rf tests/abi/include
mkdir -p tests/abi/include
cp -r include/lade tests/abi/include/
echo "tests/abi/include: $(ls tests/abi/include/lade | wc -l) headers"
