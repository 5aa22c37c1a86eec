#!/usr/bin/env python3
"""check_rooms.py BUILD: no two rooms of src need each other to link.

A room is a folder of src, and each folder of codec and batch is one of its own.  'nm' says which
functions an object defines and which it calls; the calls between rooms must have no cycle.

SPDX-License-Identifier: Apache-2.0
"""
import collections
import pathlib
import subprocess
import sys

# Their folders are rooms of their own, and what lies beside these is one more.
DIVIDED = ("batch", "codec")


def room_of(path):
    parts = path.parts
    return "/".join(parts[:2]) if parts[0] in DIVIDED and len(parts) > 2 else parts[0]


def symbols(root):
    """What each object defines, and what it wants: {symbol: object}, {object: symbols}."""
    defined, wanted = {}, collections.defaultdict(set)
    for path in sorted(root.rglob("*.o")):
        name = path.relative_to(root)
        if not (pathlib.Path("src") / name.with_suffix("")).exists():
            continue  # left in the build folder by a file that has moved
        text = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
        for line in text.splitlines():
            *_, kind, symbol = line.split()
            if kind == "U":
                wanted[name].add(symbol)
            elif kind in "TDBRVW":
                defined[symbol] = name
    return defined, wanted


def find_cycle(edges):
    """The rooms of one cycle, the first of them again at the end; None without."""
    done, path = set(), []

    def visit(room):
        if room in path:
            return path[path.index(room):] + [room]
        if room in done:
            return None
        path.append(room)
        for below in sorted(edges.get(room, ())):
            cycle = visit(below)
            if cycle:
                return cycle
        path.pop()
        done.add(room)
        return None

    for room in sorted(edges):
        cycle = visit(room)
        if cycle:
            return cycle
    return None


def main():
    root = pathlib.Path(sys.argv[1]) / "CMakeFiles/lade_objects.dir/src"
    defined, wanted = symbols(root)
    if not defined:
        sys.exit(f"{root}: no objects; build first")
    edges = collections.defaultdict(dict)
    for name, names in wanted.items():
        for symbol in sorted(names):
            there = defined.get(symbol)
            if there and room_of(there) != room_of(name):
                edges[room_of(name)].setdefault(room_of(there), (name, symbol, there))
    cycle = find_cycle(edges)
    if not cycle:
        print(f"{len(edges)} rooms, {sum(map(len, edges.values()))} ways between them, no cycle")
        return 0
    print("these rooms need each other: " + " -> ".join(cycle))
    for above, below in zip(cycle, cycle[1:]):
        name, symbol, there = edges[above][below]
        print(f"  src/{str(name)[:-2]} calls {symbol} of src/{str(there)[:-2]}")
    return 1


sys.exit(main())
