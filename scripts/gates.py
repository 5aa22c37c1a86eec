#!/usr/bin/env python3
"""The rules of the tree that a machine can check; one line for each breach, exit status 1.

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import re
import sys

COLUMNS = 100
TAB = 8
FILE_LINES = 1000
FUNCTION_LINES = 120
C_SUFFIXES = (".c", ".h", ".cc", ".cu", ".cuh")
SUFFIXES = C_SUFFIXES + (".py", ".sh", ".bash")

# What each folder of src may include from src; everything may include the public headers.
BELOW = {
    "base": {"base"},
    "checksum": {"checksum", "base"},
    "codec": {"codec", "filter", "checksum", "base"},
    "cuda": {"cuda"},
    "filter": {"filter", "base"},
    "batch": {"batch", "codec", "filter", "checksum", "base"},
    "frame": {"frame", "batch", "codec", "filter", "checksum", "base"},
    "cli": {"cli"},
}
# A public header includes public headers of its own layer and below.
HEADER_LAYER = {
    "version": 0, "status": 0, "memory": 1, "dtype": 1, "cpu": 1, "device": 2, "codec": 2,
    "spec": 3, "batch": 4, "checksum": 5, "async": 5, "suggest": 5, "frame": 6,
    "foreign": 7, "lade": 8,
}
breaches = []


def breach(path, line, text):
    breaches.append(f"{path}:{line}: {text}")


def width(line):
    return len(line.expandtabs(TAB))


def check_text(path, lines):
    if len(lines) > FILE_LINES and "generated" not in "".join(lines[:12]).lower():
        breach(path, len(lines), f"{len(lines)} lines, at most {FILE_LINES}")
    if not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:40]):
        breach(path, 1, "no license line in the head comment")
    for i, line in enumerate(lines, 1):
        if width(line) > COLUMNS:
            breach(path, i, f"{width(line)} columns, at most {COLUMNS}")
        if line != line.rstrip():
            breach(path, i, "space at the end of the line")
        if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line) and path.name != "gates.py":
            breach(path, i, "a note to oneself; say what holds now")


def check_functions(path, lines):
    """A function's body is from '{' to '}' in the first column, as the style has it."""
    start = None
    for i, line in enumerate(lines, 1):
        if line == "{":
            start = i
        elif line == "}" and start:
            if i - start > FUNCTION_LINES:
                breach(path, start, f"a function of {i - start} lines, at most {FUNCTION_LINES}")
            start = None


def check_includes(path, lines):
    parts = path.parts
    for i, line in enumerate(lines, 1):
        m = re.match(r'#\s*include\s+([<"])([^>"]+)[>"]', line)
        if not m:
            continue
        quoted, name = m.group(1) == '"', m.group(2)
        target = pathlib.Path(name)
        if parts[0] == "src" and quoted:
            layer = name.split("/")[0] if "/" in name else parts[1]
            # Kernels share a codec's layout, and nothing else of the host's.
            layouts = parts[1] == "cuda" and layer == "codec" and target.name == "layout.h"
            if layer not in BELOW[parts[1]] and not layouts:
                breach(path, i, f"src/{parts[1]} must not include {name}")
        # An example may be a folder with headers of its own.
        if parts[0] in ("examples",) and quoted and not (path.parent / name).exists():
            breach(path, i, "examples use public headers only")
        if parts[0] == "include":
            ours = name.startswith("lade/")
            if quoted or (ours and HEADER_LAYER[target.stem] > HEADER_LAYER[path.stem]):
                breach(path, i, f"{path.name} must not include {name}")


def check_documented(path, lines):
    """An exported function has a comment before it, above its group, or behind it on its line.

    A group is a run of declarations without an empty line.  Functions whose group has no comment
    may follow a section's comment that names them."""
    text = "".join(line + "\n" for line in lines)
    for m in re.finditer(r"^LADE_API [^;]*?\b(lade_\w+)\s*\([^;]*;[^\n]*", text, re.M):
        group = re.split(r"\n[ \t]*\n", text[: m.start()])[-1]
        named = re.search(r"/\*(?:(?!\*/).)*\b%s\b.*?\*/" % m.group(1), text[: m.start()], re.S)
        if "*/" not in group and "/*" not in m.group(0) and not named:
            breach(path, text.count("\n", 0, m.start()) + 1, f"{m.group(1)} has no comment")


def check_kernels(root):
    """src/base/kernels.h lists each kernel of each .cu file, under that file's name."""
    text = (root / "src/base/kernels.h").read_text()
    listed = set(re.findall(r'X\(\w+, (\w+), (lade_\w+), ', text))
    there = set()
    for path in sorted((root / "src/cuda").glob("*.cu")):
        for name in re.findall(r'extern "C" __global__ [^{;]*?\b(lade_\w+)\(', path.read_text()):
            there.add((path.stem, name))
    for image, name in sorted(there - listed):
        breach("src/base/kernels.h", 1, f"{name} of src/cuda/{image}.cu is not listed")
    for image, name in sorted(listed - there):
        breach("src/base/kernels.h", 1, f"there is no {name} in src/cuda/{image}.cu")


def main():
    root = pathlib.Path(".")
    count = 0
    places = ("src", "include", "tests", "bench", "examples", "scripts", "python")
    for place in places:
        for path in sorted((root / place).rglob("*")):
            if not path.is_file() or "__pycache__" in path.parts or path.suffix not in SUFFIXES:
                continue
            lines = path.read_text().split("\n")
            if lines[-1] == "":
                lines.pop()
            else:
                breach(path, len(lines), "no newline at the end of the file")
            check_text(path, lines)
            if path.suffix in C_SUFFIXES:
                check_functions(path, lines)
                check_includes(path, lines)
            if place == "include":
                check_documented(path, lines)
            count += 1
    check_kernels(root)
    print("\n".join(breaches) if breaches else f"{count} files in order")
    return 1 if breaches else 0


sys.exit(main())
