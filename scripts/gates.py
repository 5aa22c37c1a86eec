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
# Functions with so many parameters or more are counted: what travels together should be one record.
# Where fewer are left, the limits below go down with them.
PARAMETERS = 7
PARAMETERS_ALL = 50
PARAMETERS_PUBLIC = 3
NO_FUNCTIONS = {"if", "for", "while", "switch", "return", "sizeof", "__attribute__"}
C_SUFFIXES = (".c", ".h", ".cc", ".cu", ".cuh")
SUFFIXES = C_SUFFIXES + (".py", ".sh", ".bash", ".js", ".mjs", ".ts")

# What each folder of src may include from src; everything may include the public headers.
BELOW = {
    "base": set(),
    "gpu": {"base"},
    "io": {"gpu", "base"},
    "store": {"io", "gpu", "base"},
    "zarr": {"store", "io", "batch", "array", "engine", "worker", "gpu", "base"},
    "worker": {"base"},
    "checksum": {"worker", "gpu", "base"},
    "filter": {"worker", "gpu", "base"},
    "codec": {"filter", "checksum", "worker", "gpu", "base"},
    "engine": {"codec", "filter", "checksum", "worker", "base"},
    "array": {"gpu", "base"},
    "batch": {"engine", "array", "checksum", "worker", "gpu", "base"},
    "advise": {"batch", "engine", "base"},
    "frame": {"io", "array", "batch", "engine", "checksum", "worker", "gpu", "base"},
    "bare": {"batch", "array", "engine", "base"},
    "foreign": {"frame", "engine", "codec", "checksum", "base"},
    "rntuple": {"io", "batch", "gpu", "base"},
    "share": {"array", "gpu", "base"},
    "cli": set(),
}
# A public header includes public headers of lower layers.
HEADER_LAYER = {
    "version": 0, "status": 0, "memory": 1, "cancel": 1, "dtype": 1, "cpu": 1,
    "device": 2, "codec": 2, "io": 2, "store": 3, "layout": 3, "spec": 3, "checksum": 3, "batch": 4,
    "bare": 5,
    "async": 5, "suggest": 5,
    "zarr": 5, "zarr_read": 6, "zarr_write": 7, "rntuple": 5, "rntuple_write": 6,
    "array": 6, "frame": 6, "frames": 7, "dlpack": 7, "foreign": 7, "share": 7,
    "lade": 8,
}
# The highest layer of the public headers that a room may include.
ROOM_LAYER = {
    "base": 2, "gpu": 2, "io": 2, "store": 3, "zarr": 7, "rntuple": 6, "share": 7, "worker": 2,
    "filter": 2, "codec": 2, "checksum": 3,
    "engine": 4, "array": 7, "batch": 6, "advise": 5, "bare": 6, "frame": 7, "foreign": 7,
    "cli": 8,
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
            if layer not in BELOW[parts[1]] | {parts[1]}:
                breach(path, i, f"src/{parts[1]} must not include {name}")
        if parts[0] == "src" and name.startswith("lade/"):
            if HEADER_LAYER[target.stem] > ROOM_LAYER[parts[1]]:
                breach(path, i, f"src/{parts[1]} must not include <{name}>")
        # An example may be a folder with headers of its own.
        if parts[0] in ("examples",) and quoted and not (path.parent / name).exists():
            breach(path, i, "examples use public headers only")
        if parts[0] == "include":
            ours = name.startswith("lade/")
            if quoted or (ours and HEADER_LAYER[target.stem] >= HEADER_LAYER[path.stem]):
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
    """Each kernel of a .cu file has a record in the host's code, {"image", "function", bytes} in
    one place, and each record names a kernel."""
    there, named = {}, {}
    for path in sorted((root / "src").rglob("*.cu")):
        for m in re.finditer(r'extern "C" __global__ [^{;]*?\b(lade_\w+)\(', path.read_text()):
            there[path.stem, m.group(1)] = path
    for path in sorted((root / "src").rglob("*.c")):
        text = path.read_text()
        for m in re.finditer(r'\{"(\w+)",\s+"(lade_\w+)",', text):
            line = text.count("\n", 0, m.start()) + 1
            if m.groups() in named:
                breach(path, line, f"{m.group(2)} has a record in {named[m.groups()]}, too")
            if m.groups() not in there:
                breach(path, line, f"there is no {m.group(2)} in {m.group(1)}.cu")
            named[m.groups()] = path
    for image, name in sorted(set(there) - set(named)):
        breach(there[image, name], 1, f"no record names {name}: nothing launches it")


def without_comments(text):
    """The text with blanks for comments, strings and the ends of macros' lines."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    text = re.sub(r"/\*.*?\*/|//[^\n]*", blank, text, flags=re.S)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"', blank, text)
    return re.sub(r"'(?:\\.|[^'\\\n])'", blank, text).replace("\\\n", " \n")


def opening(text, close):
    """Where the parenthesis that ends at 'close' begins."""
    depth = 0
    for i in range(close, -1, -1):
        depth += (text[i] == ")") - (text[i] == "(")
        if depth == 0:
            return i
    return 0


def parameters(inside):
    depth, count = 0, 1
    for c in inside:
        depth += (c in "([{") - (c in ")]}")
        count += c == "," and depth == 0
    return 0 if inside.strip() in ("", "void") else count


def functions(text):
    """Line, name and number of parameters of each function that is defined, in macros too."""
    text = without_comments(text)
    for m in re.finditer(r"\)\s*\{", text):
        at = opening(text, m.start())
        head = text[:at].rstrip()
        if head.endswith(")"):  # NAME(x)(...)
            head = text[: opening(text, len(head) - 1)].rstrip()
        name = re.search(r"[\w#]+$", head)
        if name and name.group(0) not in NO_FUNCTIONS:
            line = text.count("\n", 0, at) + 1
            yield line, name.group(0), parameters(text[at + 1 : m.start()])


def check_parameters(root):
    """No more functions with many parameters than the limits say."""
    exported = set((root / "src/exports.txt").read_text().split())
    found = []
    for place in ("src", "python/src", "node/src"):
        for path in sorted((root / place).rglob("*")):
            if path.suffix in C_SUFFIXES:
                found += [(path, *f) for f in functions(path.read_text()) if f[2] >= PARAMETERS]
    public = [f for f in found if f[2] in exported]
    for these, limit, what in ((found, PARAMETERS_ALL, ""), (public, PARAMETERS_PUBLIC, "public ")):
        for path, line, name, count in these if len(these) > limit else []:
            breach(path, line, f"{name} has {count} parameters: one of {len(these)} {what}"
                               f"functions with {PARAMETERS} or more, at most {limit}")


def main():
    root = pathlib.Path(".")
    count = 0
    places = ("src", "include", "tests", "testing", "bench", "examples", "scripts", "python",
              "node")
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
    check_parameters(root)
    print("\n".join(breaches) if breaches else f"{count} files in order")
    return 1 if breaches else 0


sys.exit(main())
