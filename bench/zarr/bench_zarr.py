"""liblade's reading and writing of Zarr arrays beside zarrs, tensorstore and zarr-python.

    python bench/zarr/bench_zarr.py BUILD WORK [--threads 1|2|...] [--layout L ...] [--op O ...]
                                    [--arm A ...] [--rounds 7] [--csv FILE]

One process times all arms in turn: a round runs each arm once, the order turns from round to round,
and what is reported are the medians of the rounds' ratios.  The array is 1024 x 1024 x 64 float32
(268 MB), a smooth field.  All arms read the files that zarr-python wrote; each result is compared
with the array first.  It needs: pip install zarr zarrs tensorstore numcodecs numpy

layouts  v2_blosc    format 2, chunks 64x64x64, Blosc of LZ4 with shuffle
         v2_bit      format 2, the same chunks, Blosc of Zstd with bitshuffle
         v3_zstd     format 3, the same chunks, Zstd level 1
         v3_shard    format 3, shards 256x256x64 of chunks 32x32x32, Zstd level 1
ops      open        opens the array, its documents in the page cache
         read        the whole array, into memory that is touched
         slabs       64 slabs of 16 rows, one call each
         planes      8 planes across all chunks, one call each
         boxes       200 boxes of 40x40x40 at random places, one call each
         flight      the same boxes, all in flight at once (lade: one thread a box; tensorstore)
         many        10,000 such boxes, one call each; without zarr-python; a round is 500 of them
         manyflight  the same boxes, 500 in flight at once
         write       the whole array into a new directory
         cold        read, after the chunks were dropped from the page cache
         coldboxes   boxes, likewise
         peak        memory of a process that reads 2 GiB, beside the result; one round
         device      read, into memory of GPU 0; tensorstore: into pinned memory, then a copy
                     (only if it is named)
arms     lade, zarrs (with zarr-python), tensorstore (no cache, no fsync), zarr (zarr-python), and
         bare: a loop of ZSTD_decompress on as many threads (format 3); of boxes it decodes the
         chunks that each touches, and copies nothing

Reading and writing use the machine's processors, so --threads 1 binds the process to one.
LD_LIBRARY_PATH chooses the Zstandard of lade and bare, to match that of the peers.  At the end,
a table has what is asked of liblade and what was seen.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from arms import (
    CHUNK,
    DEVICE,
    INNER,
    PINNED,
    SHAPE,
    Bare,
    Lade,
    Tensorstore,
    Where,
    ZarrPython,
)

BOX, BOXES, MANY, GROUP = 40, 200, 10_000, 500
LARGE = (8 * SHAPE[0], *SHAPE[1:])  # 2 GiB
MIB = 1 << 20
LAYOUTS = ("v2_blosc", "v2_bit", "v3_zstd", "v3_shard")
OPS = (
    "open read slabs planes boxes flight many manyflight write cold coldboxes peak device".split()
)
ARMS = ("lade", "zarrs", "tensorstore", "zarr", "bare")
BOX_OPS = ("boxes", "flight", "many", "manyflight", "coldboxes")
Arm = Callable[[int], None]  # does a part of an operation


def make_field() -> np.ndarray:
    """A smooth field: random waves whose amplitude falls with f**2.5, in steps of 1/256."""
    rng = np.random.default_rng(7)
    f = [np.fft.fftfreq(SHAPE[0]), np.fft.fftfreq(SHAPE[1]), np.fft.rfftfreq(SHAPE[2])]
    k2 = f[0][:, None, None] ** 2 + f[1][None, :, None] ** 2 + f[2][None, None, :] ** 2
    k2[0, 0, 0] = 1
    spectrum = np.exp(2j * np.pi * rng.random(k2.shape)) * k2**-1.25
    spectrum[0, 0, 0] = 0
    field = np.fft.irfftn(spectrum, s=SHAPE, axes=(0, 1, 2))
    field = 280 + 15 * field / field.std()
    return (np.round(field * 256) / 256).astype(np.float32)


def boxes_of(op: str) -> list[Where]:
    """The selections of an operation."""
    whole = slice(0, SHAPE[1]), slice(0, SHAPE[2])
    if op == "slabs":
        return [(slice(i * 16, i * 16 + 16), *whole) for i in range(SHAPE[0] // 16)]
    if op == "planes":
        return [(slice(0, SHAPE[0]), whole[0], slice(k * 8, k * 8 + 1)) for k in range(8)]
    if op in BOX_OPS:
        rng = np.random.default_rng(11)
        count = MANY if op.startswith("many") else BOXES
        at = [[int(rng.integers(0, n - BOX + 1)) for n in SHAPE] for _ in range(count)]
        return [tuple(slice(o, o + BOX) for o in origin) for origin in at]
    return [(slice(0, SHAPE[0]), *whole)]


def parts_of(op: str) -> list[list[Where]]:
    """The same, in parts that use one destination after each other."""
    boxes = boxes_of(op)
    return [boxes[i : i + GROUP] for i in range(0, len(boxes), GROUP)]


def chunk_files(path: pathlib.Path) -> list[pathlib.Path]:
    names = (p for p in path.rglob("*") if p.is_file())
    return sorted(p for p in names if not p.name.startswith(".z") and p.name != "zarr.json")


# ---- what each arm does -----------------------------------------------------------------------


def read_arm(name: str, tool: Any, op: str, layout: str, path: pathlib.Path, dst: np.ndarray,
             lade: Any) -> Arm | None:
    """Reads the selections of a part into the beginning of 'dst'."""
    parts, flight = parts_of(op), op.endswith("flight")
    if name == "bare":
        if not layout.startswith("v3") or op not in ("read", "cold", *BOX_OPS):
            return None
        loop = Bare(lade, path, layout)
        if op in BOX_OPS:
            groups = [loop.groups(part) for part in parts]
            return lambda k: loop.read(groups[k], None)
        groups = [loop.groups(parts[0])]
        return lambda k: loop.read(groups[k], dst)
    if name.startswith("zar") and (flight or (name == "zarr" and op == "many")):
        return None
    array = tool.open(path)
    if name == "lade":
        tables = [tool.tables(part) for part in parts]
        return lambda k: tool.read(array, tables[k], len(parts[k]), dst, flight)
    if name == "tensorstore":
        return lambda k: tool.read(array, parts[k], dst[: len(parts[k])], flight)

    def read(k: int) -> None:
        tool.use()
        tool.read(array, parts[k], dst[: len(parts[k])])

    return read


def device_arm(name: str, tool: Any, path: pathlib.Path, lade: Any, back: np.ndarray) -> Arm | None:
    """Reads all into memory of the device."""
    size = back.nbytes
    if name not in ("lade", "tensorstore"):
        return None
    array, there = tool.open(path), lade.memory(DEVICE, size)
    if name == "lade":

        def go() -> None:
            tool.read_device(array, there, size)

    else:
        pinned = lade.memory(PINNED, size)
        view = np.frombuffer((ctypes.c_char * size).from_address(pinned.value), "f4")

        def go() -> None:
            tool.read(array, parts_of("read")[0], view.reshape(back.shape), False)
            lade.copy(pinned, PINNED, there, DEVICE, size)

    def arm(k: int) -> None:
        go()
        if k < 0:  # to be checked
            lade.copy(there, DEVICE, ctypes.c_void_p(back.ctypes.data), 0, size)

    return arm


def arms_of(tools: Any, op: str, layout: str, path: pathlib.Path, field: np.ndarray,
            dst: np.ndarray) -> dict[str, Arm]:
    """What each arm does in a round of an operation; 'dst' gets what is read."""
    arms: dict[str, Arm] = {}
    for name, tool in tools.items():
        arm: Arm | None = None
        if op == "write" and name != "bare":
            own = path.with_name(f"own_{name}")
            arm = lambda k, tool=tool, own=own: tool.write(own, layout, field)  # noqa: E731
        elif op == "open" and name == "lade":
            arm = lambda k, tool=tool: tool.close(tool.open(path))  # noqa: E731
        elif op == "open" and name != "bare":
            arm = lambda k, tool=tool: tool.open(path)  # noqa: E731
        elif op == "device":
            arm = device_arm(name, tool, path, tools["lade"], dst)
        elif op not in ("open", "write"):
            arm = read_arm(name, tool, op, layout, path, dst, tools.get("lade"))
        if arm:
            arms[name] = arm
    return arms


def check(name: str, op: str, arm: Arm, path: pathlib.Path, field: np.ndarray, dst: np.ndarray,
          reader: ZarrPython) -> None:
    """Runs an arm once and compares what it read or wrote: of many boxes, the first part."""
    own = path.with_name(f"own_{name}")
    if op == "write":
        shutil.rmtree(own, ignore_errors=True)
    dst[...] = -1
    arm(-1 if op == "device" else 0)
    if op == "write" and not np.array_equal(reader.open(own)[...], field):
        raise SystemExit(f"{name} wrote something else")
    if op in ("open", "write") or (name == "bare" and (op in BOX_OPS or "shard" in path.name)):
        return
    if name == "bare":  # in the order of chunks
        grid = [n // c for n, c in zip(SHAPE, CHUNK, strict=True)]
        got = dst.reshape(*grid, *CHUNK).transpose(0, 3, 1, 4, 2, 5).reshape(SHAPE)
        if not np.array_equal(got, field):
            raise SystemExit("bare read something else")
        return
    for where, got in zip(parts_of(op)[0], dst, strict=True):
        if not np.array_equal(got, field[where]):
            raise SystemExit(f"{name} read something else at {where} ({op}, {path.name})")


# ---- memory -----------------------------------------------------------------------------------


def status_of(name: str) -> int:
    """Bytes, of a line of /proc/self/status."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise SystemExit(f"/proc/self/status has no {name}")


def child(tool: Any, name: str, path: pathlib.Path) -> None:
    """Reads 2 GiB and prints the bytes that the process took beside them."""
    array = tool.open(path)
    dst = np.empty((1, *LARGE), np.float32)
    where = tuple(slice(0, n) for n in LARGE)
    tables = tool.tables([where]) if name == "lade" else None
    before = status_of("VmRSS")
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    if name == "lade":
        tool.read(array, tables, 1, dst, False)
    elif name == "tensorstore":
        tool.read(array, [where], dst, False)
    else:
        tool.read(array, [where], dst)
    print(status_of("VmHWM") - before - dst.nbytes)
    field = np.load(path.with_name("field.npy"), mmap_mode="r")
    for i in range(8):
        if not np.array_equal(dst[0, i * SHAPE[0] : (i + 1) * SHAPE[0]], field):
            raise SystemExit(f"{name} read something else")


def peak(args: argparse.Namespace, tools: Any, layout: str, field: np.ndarray,
         table: list[Any]) -> list[list[Any]]:
    path = pathlib.Path(args.work).resolve() / f"large_{layout}"
    if not path.exists():
        tools["lade"].write(path, layout, np.tile(field, (8, 1, 1)))
    largest = max(f.stat().st_size for f in chunk_files(path))
    decoded = 4 * int(np.prod(CHUNK))
    if layout == "v3_shard":  # inner chunks are what is read
        largest = decoded = 4 * int(np.prod(INNER))
    most = 64 * MIB + args.threads * (largest + decoded)
    rows = []
    for name in tools:
        if name == "bare":
            continue
        command = [sys.executable, __file__, args.build, args.work, "--child", name]
        command += ["--layout", layout, "--threads", str(args.threads)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        seen = int(done.stdout)
        print(f"{layout:9} {'peak':10} {args.threads} threads  {name:12} {seen / MIB:9.1f} MiB",
              flush=True)
        rows.append([layout, "peak", args.threads, name, f"{seen / MIB:.1f}", "", "", ""])
        if name == "lade":
            must(table, f"{layout} peak beside 2 GiB, MiB", most / MIB, seen / MIB, most=True)
    return rows


# ---- what is asked ----------------------------------------------------------------------------


def must(table: list[Any], row: str, asked: float, seen: float, most: bool = False) -> None:
    table.append((row, asked, seen, seen <= asked if most else seen >= asked, most))


def judge(table: list[Any], layout: str, op: str, ratio: dict[str, float], own: float) -> None:
    """'ratio' is each arm's time as a multiple of liblade's, which is 'own' seconds."""
    blosc = layout.startswith("v2")
    peers = {n: r for n, r in ratio.items() if n in ("zarrs", "tensorstore")}
    if op == "read" and peers:
        asked = 1.35 if blosc else 1.1
        must(table, f"{layout} read, times the better peer's rate", asked, min(peers.values()))
    if op == "read" and "bare" in ratio:
        must(table, f"{layout} read, times the bare loop's rate", 0.92, ratio["bare"])
    if op in ("boxes", "many") and "tensorstore" in ratio:
        asked = 0.85 if layout == "v3_zstd" else 0.6
        seen = 1 / ratio["tensorstore"]
        must(table, f"{layout} {op}, tensorstore's time = 1", asked, seen, most=True)
    if op in ("boxes", "many") and "bare" in ratio and layout == "v3_zstd":
        seen = 1 / ratio["bare"]
        must(table, f"{layout} {op}, decoding the touched chunks = 1", 1.1, seen, most=True)
    if op == "write" and peers:
        must(table, f"{layout} write, times the better peer's rate", 1, min(peers.values()))
    if op == "open":
        must(table, f"{layout} open, ms", 0.2, own * 1e3, most=True)


def print_table(table: list[Any]) -> None:
    print(f"\n{'what':52} {'asked':>12} {'seen':>9}")
    for row, asked, seen, good, most in table:
        limit = f"{'at most' if most else 'at least'} {asked:.4g}"
        print(f"{row:52} {limit:>14} {seen:9.3f}  {'ok' if good else 'SHORT'}")


# ---- the run ----------------------------------------------------------------------------------


def tools_of(args: argparse.Namespace, work: pathlib.Path) -> dict[str, Any]:
    build = pathlib.Path(args.build).resolve()
    every: Any = {"lade": lambda: Lade(build, work, args.threads)}
    every |= {n: lambda n=n: ZarrPython(n, args.threads) for n in ("zarrs", "zarr")}
    every |= {"tensorstore": lambda: Tensorstore(args.threads)}
    tools = {name: every[name]() for name in args.arm if name != "bare"}
    if "bare" in args.arm and "lade" in tools:
        tools["bare"] = None
    return tools


def run(args: argparse.Namespace) -> None:
    work = pathlib.Path(args.work).resolve()
    work.mkdir(parents=True, exist_ok=True)
    tools = tools_of(args, work)
    if args.child:
        child(tools[args.child], args.child, work / f"large_{args.layout[0]}")
        return
    if not (work / "field.npy").exists():
        np.save(work / "field.npy", make_field())
    field = np.load(work / "field.npy")
    reader = ZarrPython("zarr", args.threads)
    for name, tool in tools.items():
        if tool:
            print(f"# {name}: {tool.version()}")
    print(f"# {platform.machine()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    rows: list[list[Any]] = []
    table: list[Any] = []
    for layout in args.layout:
        path = work / layout
        if not path.exists():
            reader.write(path, layout, field)
        for op in args.op:
            if op == "peak":
                rows += peak(args, tools, layout, field, table)
            else:
                rows += measure(args, tools, op, layout, path, field, reader, table)
            if args.csv:
                save(args, rows)
    print_table(table)


def measure(args: argparse.Namespace, tools: Any, op: str, layout: str, path: pathlib.Path,
            field: np.ndarray, reader: ZarrPython, table: list[Any]) -> list[list[Any]]:
    parts = parts_of(op)
    dst = np.ones((len(parts[0]), *(s.stop - s.start for s in parts[0][0])), np.float32)
    arms = arms_of(tools, op, layout, path, field, dst)
    for name, arm in arms.items():
        check(name, op, arm, path, field, dst, reader)
    files = chunk_files(path)
    seconds: dict[str, list[float]] = {name: [] for name in arms}
    work: dict[str, list[float]] = {name: [] for name in arms}
    order = list(arms)
    for k in range(len(parts) if len(parts) > 1 else args.rounds * (20 if op == "open" else 1)):
        order = order[1:] + order[:1]
        for name in order:
            if op == "write":
                shutil.rmtree(path.with_name(f"own_{name}"), ignore_errors=True)
            if op.startswith("cold"):
                tools["lade"].drop(files)
            start, worked = time.perf_counter(), time.process_time()
            arms[name](k % len(parts))
            seconds[name].append(time.perf_counter() - start)
            work[name].append(time.process_time() - worked)
    for name in arms if op == "write" else ():
        shutil.rmtree(path.with_name(f"own_{name}"), ignore_errors=True)
    size = 0 if op == "open" else dst.nbytes
    rows, ratios = [], {}
    for name, times in seconds.items():
        ratios[name] = statistics.median(
            t / o for t, o in zip(times, seconds["lade"], strict=True)
        )
        middle, cpu = statistics.median(times), statistics.median(work[name])
        rate = size / middle / 1e9
        print(f"{layout:9} {op:10} {args.threads} threads  {name:12} {middle * 1e3:9.3f} ms"
              f" {rate:7.3f} GB/s {cpu * 1e3:9.3f} ms CPU  {ratios[name]:6.2f} of lade's time",
              flush=True)
        rows.append([layout, op, args.threads, name, f"{middle * 1e3:.4f}", f"{cpu * 1e3:.4f}",
                     f"{rate:.4f}", f"{ratios[name]:.3f}"])
    judge(table, layout, op, ratios, statistics.median(seconds["lade"]))
    return rows


def save(args: argparse.Namespace, rows: list[list[Any]]) -> None:
    with open(args.csv, "w", newline="") as f:
        out = csv.writer(f)
        out.writerow("layout op threads arm median_ms cpu_ms GBps times_lade".split())
        out.writerows(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("build")
    parser.add_argument("work")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--layout", nargs="*", default=LAYOUTS, choices=LAYOUTS)
    parser.add_argument("--op", nargs="*", default=OPS[:-1], choices=OPS)
    parser.add_argument("--arm", nargs="*", default=ARMS, choices=ARMS)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--csv")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        args.arm = [args.child]
    if args.threads == 1:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.environ["RAYON_NUM_THREADS"] = str(args.threads)
    run(args)


if __name__ == "__main__":
    sys.exit(main())
