#!/usr/bin/env bash
# docs.sh BUILD: the pages and the reference of the Python package, BUILD/docs/html, by Sphinx from
# the docstrings of the package that is installed in BUILD/python/venv (scripts/python.sh).  A
# warning is a failure, and so is a public name that the reference has not.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(cd "${1:?usage: docs.sh BUILD}" && pwd)
python=$build/python/venv/bin/python
[ -x "$python" ] || { echo "$python is missing: scripts/python.sh makes it"; exit 1; }
site=$build/docs
rm -rf "$site"
mkdir -p "$site/pages/performance"
cp docs/api/* docs/python.md docs/python-numcodecs.md docs/zarr-python.md "$site/pages"
cp docs/performance/python.md docs/performance/zarr-python.md "$site/pages/performance"
"$python" -B -m sphinx -W --keep-going -q -b html "$site/pages" "$site/html"
cd "$site"
"$python" -B - html/objects.inv <<'END'
import sys
import liblade
import liblade.numcodecs
import liblade.rntuple
import liblade.share
import liblade.zarr
from sphinx.util.inventory import InventoryFile
with open(sys.argv[1], "rb") as f:
    there = {name for kind in InventoryFile.loads(f.read(), uri="").data.values() for name in kind}
want = {f"liblade.{n}" for n in liblade.__all__ if not n.startswith("__")}
want |= {f"liblade.numcodecs.{n}" for n in liblade.numcodecs.__all__}
want |= {f"liblade.rntuple.{n}" for n in liblade.rntuple.__all__}
want |= {f"liblade.share.{n}" for n in liblade.share.__all__}
want |= {f"liblade.zarr.{n}" for n in liblade.zarr.__all__}
missing = sorted(want - there)
if missing:
    sys.exit(f"docs/api has no {', '.join(missing)}")
print(f"{len(want)} names in {len(there)} entries of the reference")
END
echo "$site/html/index.html"
