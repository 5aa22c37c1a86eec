"""liblade's reading of RNTuples beside uproot, and beside a bare loop over the codecs' libraries.

    python bench/rntuple/bench_rntuple.py BUILD WORK [--threads 1] [--file F ...] [--codec C ...]
                                          [--rounds 9] [--csv FILE]

One process times all arms in turn: a round runs each arm once, the order turns from round to round,
and what is reported are the medians of the rounds' ratios, of wall time and of processor time.
uproot writes the files (plain encodings, a page for each column and cluster, no checksums), so no
reader has to undo encodings.  All results are compared first.  It needs: pip install uproot numpy

files    large    3 columns (int32, float32, float64), 1 Mi entries, pages of 1 and 2 MiB
         small    1 column of float32, 1,000 pages of 4 kB
         nested   lists of lists of float32, 64 Ki entries in 4 clusters
         strings  64 Ki strings in 4 clusters
         wide     1,491 columns of int32, opened and read one by one (uproot: the first 100)
         fields   opens a file of 5,000 fields (without uproot, whose keys() takes half a minute)
         peak     168 MB in 40 clusters: the peak of memory during a read, less the result, in MiB
codecs   zstd lz4 zlib stored; wide and fields have zstd only
arms     lade     all columns into memory that is used again
         new      all columns into new memory, as uproot does
         uproot   all columns as an Awkward array, no caches; in one thread, as it always is
         unverified  as lade, without checksums; files of uproot have those of LZ4 alone
         bare     pread() and the library, on as many threads; offsets are not added up, and the
                  XXH64 of LZ4 is not verified
         bare_new    the same into new memory: what a reader without any cost of its own takes

--threads 1 binds the process to one processor.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import multiprocessing
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import awkward as ak
import numpy as np
import uproot

CODECS = {"zstd": uproot.ZSTD(5), "lz4": uproot.LZ4(4), "zlib": uproot.ZLIB(1), "stored": None}
FILES = ("large", "small", "nested", "strings", "wide", "fields", "peak")
WIDE, FIELDS, PEER_COLUMNS = 1491, 5000, 100
IGNORE_CHECKSUMS = 1 # LADE_RNTUPLE_IGNORE_CHECKSUMS
RATIOS = (("uproot", "new"), ("uproot", "bare_new"), ("bare", "lade"), ("bare", "unverified"))
Arm = Callable[[], None]


# ---- files ------------------------------------------------------------------------------------


def rounded(values: np.ndarray, bits: int) -> np.ndarray:
    """float32 with that many significant bits, as detectors give them."""
    drop = 24 - bits
    raw = values.astype(np.float32).view(np.uint32)
    return ((raw + (1 << (drop - 1))) >> drop << drop).view(np.float32)


def parts_of(name: str) -> list[dict[str, ak.Array]]:
    """What is written, a dictionary for each cluster."""
    rng = np.random.default_rng(5)
    if name in ("large", "peak"):
        n, clusters = 1 << 18, 4 if name == "large" else 40
        time_ns = np.cumsum(np.round(rng.exponential(25, clusters * n)))
        return [{"count": rng.poisson(20, n).astype(np.int32),
                 "energy": rounded(rng.exponential(40, n), 16),
                 "time": time_ns[i * n:(i + 1) * n]} for i in range(clusters)]
    if name == "small":
        return [{"x": rounded(rng.exponential(40, 1000), 12)} for _ in range(1000)]
    n, parts = 1 << 14, []
    for _ in range(4):
        if name == "nested":
            outer = rng.integers(0, 5, n)
            inner = rng.integers(0, 6, int(outer.sum()))
            values = rounded(rng.exponential(12, int(inner.sum())), 12)
            parts.append({"hits": ak.unflatten(ak.unflatten(values, inner), outer)})
        elif name == "strings":
            words = [f"run{k % 977}/event_{k * 7919}" for k in rng.integers(0, 10**6, n)]
            parts.append({"name": ak.Array(words)})
    if name == "wide":
        parts = [{f"c{i}": rng.integers(0, 100, 2000).astype("i4") for i in range(WIDE)}]
    if name == "fields":
        parts = [{f"c{i}": np.arange(10, dtype="i4") for i in range(FIELDS)}]
    return parts


def write(path: pathlib.Path, name: str, codec: str) -> None:
    with uproot.recreate(path, compression=CODECS[codec]) as f:
        first, *others = parts_of(name)
        out = f.mkrntuple("t", first)
        for part in others:
            out.extend(part)


# ---- arms -------------------------------------------------------------------------------------


class Calls:
    """liblade and the bare loop, for one file."""

    def __init__(self, lib: ctypes.CDLL, path: pathlib.Path, threads: int) -> None:
        self.lib, self.path, self.threads = lib, str(path).encode(), threads
        self.handle = ctypes.c_void_p(lib.calls_open(self.path))
        if not self.handle:
            sys.exit(1)
        self.count = lib.calls_sizes(self.handle, None)
        sizes = (ctypes.c_uint64 * self.count)()
        lib.calls_sizes(self.handle, sizes)
        self.sizes = list(sizes)
        self.arrays = [np.zeros(size, "u1") for size in self.sizes]

    @staticmethod
    def pointers(arrays: list[np.ndarray]) -> ctypes.Array[ctypes.c_void_p]:
        return (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])

    def read(self, first: int, to: ctypes.Array[ctypes.c_void_p], flags: int = 0) -> None:
        if self.lib.calls_read(self.handle, first, len(to), to, self.threads, flags):
            sys.exit(1)

    def read_new(self) -> None:
        arrays = [np.empty(size, "u1") for size in self.sizes]
        self.read(0, self.pointers(arrays))

    def bare(self) -> tuple[Arm, Arm]:
        """Into memory that is used again, and into new memory."""
        self.own = [np.zeros(size, "u1") for size in self.sizes]
        to = self.pointers(self.own)
        table = ctypes.c_void_p(self.lib.calls_bare_new(self.path, self.handle, self.count))

        def run(pointers: ctypes.Array[ctypes.c_void_p]) -> None:
            if self.lib.calls_bare_read(table, pointers, self.threads):
                sys.exit("the bare loop failed")

        def run_new() -> None:
            arrays = [np.empty(size, "u1") for size in self.sizes]
            run(self.pointers(arrays))

        return lambda: run(to), run_new

    def close(self) -> None:
        self.lib.calls_close(self.handle)


def build_calls(root: pathlib.Path, build: pathlib.Path, out: pathlib.Path) -> None:
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", f"-I{root}/include",
                    f"{root}/bench/rntuple/calls.c", "-o", out, f"-L{build}", "-llade",
                    f"-Wl,-rpath,{build}", "-lzstd", "-llz4", "-ldeflate", "-lpthread"],
                   check=True)


def load_calls(build: pathlib.Path, work: pathlib.Path) -> ctypes.CDLL:
    root = pathlib.Path(__file__).resolve().parents[2]
    out = work / "calls.so"
    if not out.exists():
        build_calls(root, build, out)
    lib = ctypes.CDLL(str(out))
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    lib.calls_open.restype = lib.calls_bare_new.restype = pointer
    lib.calls_open.argtypes = [ctypes.c_char_p]
    lib.calls_close.argtypes = [pointer]
    lib.calls_sizes.restype = size
    lib.calls_sizes.argtypes = [pointer, pointer]
    lib.calls_read.argtypes = [pointer, size, size, pointer, ctypes.c_uint, ctypes.c_uint32]
    lib.calls_bare_new.argtypes = [ctypes.c_char_p, pointer, size]
    lib.calls_bare_read.argtypes = [pointer, pointer, ctypes.c_uint]
    return lib


def compare(calls: Calls, name: str, tree: object) -> None:
    """What liblade read against what uproot read."""
    want = tree.arrays(array_cache=None)
    calls.read(0, calls.pointers(calls.arrays))
    got = [a.tobytes() for a in calls.arrays]
    flat: list[np.ndarray] = []
    for field in want.fields:
        layout = want[field].layout
        while hasattr(layout, "offsets") or hasattr(layout, "starts"):
            layout = layout.to_ListOffsetArray64(True)
            flat.append(np.asarray(layout.offsets))
            layout = layout.content
        flat.append(np.asarray(layout.data))
    for mine, theirs in zip(got, flat, strict=True):
        if mine != np.ascontiguousarray(theirs).tobytes():
            sys.exit(f"{name}: liblade and uproot read different elements")


def arms_of(lib: ctypes.CDLL, name: str, path: pathlib.Path, threads: int) -> dict[str, Arm]:
    def open_tree() -> object:
        return uproot.open({str(path): "t"}, array_cache=None, object_cache=None)

    if name == "fields":
        text = str(path).encode()
        return {"lade": lambda: lib.calls_close(lib.calls_open(text))}
    if name == "wide":
        def all_columns() -> None:
            calls = Calls(lib, path, threads)
            for i in range(WIDE):
                calls.read(i, calls.pointers([calls.arrays[i]]))
            calls.close()

        def some_columns() -> None:
            tree = open_tree()
            for i in range(PEER_COLUMNS):
                tree[f"c{i}"].array(library="np", array_cache=None)

        return {"lade": all_columns, "uproot": some_columns}
    calls, tree = Calls(lib, path, threads), open_tree()
    compare(calls, name, tree)
    to = calls.pointers(calls.arrays)
    bare, bare_new = calls.bare()
    return {"lade": lambda: calls.read(0, to), "new": calls.read_new,
            "unverified": lambda: calls.read(0, to, IGNORE_CHECKSUMS), "bare": bare,
            "bare_new": bare_new, "uproot": lambda: tree.arrays(array_cache=None)}


def status_kb(name: str) -> int:
    text = pathlib.Path("/proc/self/status").read_text()
    return int(text.split(name + ":")[1].split()[0])


def peak_mib(build: pathlib.Path, work: pathlib.Path, path: pathlib.Path, threads: int) -> float:
    """The most memory during a read, beyond what was there and the result; for a new process."""
    calls = Calls(load_calls(build, work), path, threads)
    to = calls.pointers(calls.arrays)
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    before = status_kb("VmRSS")
    calls.read(0, to)
    more = status_kb("VmHWM") - before - sum(calls.sizes) / 1024
    calls.close()
    return more / 1024


# ---- rounds -----------------------------------------------------------------------------------


def measure(arms: dict[str, Arm], rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Seconds of wall and of processor time of each arm, in each round."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in arms}
    names = list(arms)
    for name in names:
        arms[name]()
    for r in range(rounds):
        for k in range(len(names)):
            name = names[(k + r) % len(names)]
            wall, cpu = time.perf_counter(), time.process_time()
            arms[name]()
            times[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    return times


def ratio(a: list[tuple[float, float]], b: list[tuple[float, float]], which: int) -> float:
    return statistics.median(x[which] / y[which] for x, y in zip(a, b, strict=True))


def run(args: argparse.Namespace, lib: ctypes.CDLL, rows: list[list[object]]) -> None:
    for name in args.file or FILES:
        for codec in args.codec or CODECS:
            if name in ("wide", "fields") and codec != "zstd":
                continue
            path = args.work / f"{name}_{codec}.root"
            write(path, name, codec)
            if name == "peak":
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    mib = pool.apply(peak_mib, (args.build, args.work, path, args.threads))
                rows.append([name, codec, args.threads, "MiB", "", "", f"{mib:.1f}", ""])
                print(",".join(map(str, rows[-1])), flush=True)
                path.unlink()
                continue
            times = measure(arms_of(lib, name, path, args.threads), args.rounds)
            scale = WIDE / PEER_COLUMNS if name == "wide" else 1.0
            if list(times) == ["lade"]:
                best_ms = min(t[0] for t in times["lade"]) * 1e3
                rows.append([name, codec, args.threads, "lade", "", "", f"{best_ms:.2f}", ""])
                print(",".join(map(str, rows[-1])), flush=True)
            for arm, mine in (("uproot", "lade"),) if name == "wide" else RATIOS:
                if arm not in times:
                    continue
                factor = scale if arm == "uproot" else 1.0
                best = [min(t[0] for t in times[x]) * 1e3 for x in (mine, arm)]
                row = [name, codec, args.threads, f"{arm}/{mine}",
                       f"{factor * ratio(times[arm], times[mine], 0):.2f}",
                       f"{factor * ratio(times[arm], times[mine], 1):.2f}",
                       f"{best[0]:.2f}", f"{best[1] * factor:.2f}"]
                rows.append(row)
                print(",".join(map(str, row)), flush=True)
            path.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--file", action="append", choices=FILES)
    parser.add_argument("--codec", action="append", choices=tuple(CODECS))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--csv")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    if args.threads == 1:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    lib = load_calls(args.build.resolve(), args.work)
    head = "file,codec,threads,ratio,wall,processor,lade_ms,peer_ms".split(",")
    print(f"# uproot {uproot.__version__}, Python {platform.python_version()}, "
          f"{os.cpu_count()} processors\n{','.join(head)}", flush=True)
    rows: list[list[object]] = []
    run(args, lib, rows)
    if args.csv:
        with open(args.csv, "w", newline="") as f:
            csv.writer(f).writerows([head, *rows])


if __name__ == "__main__":
    main()
