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
         boxes       boxes of 40x40x40 at random places, one call each
         flight      the same boxes, all in flight at once (lade: one thread a box; tensorstore)
         write       the whole array into a new directory
         cold        read, after the chunks were dropped from the page cache
arms     lade, zarrs (with zarr-python), tensorstore (no cache, no fsync), zarr (zarr-python), and
         bare: a loop of ZSTD_decompress on as many threads (read, cold; format 3)

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import os
import pathlib
import shutil
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

SHAPE, CHUNK = (1024, 1024, 64), (64, 64, 64)
SHARD, INNER = (256, 256, 64), (32, 32, 32)
BOX, BOXES = 40, 200
SIZE = 4 * SHAPE[0] * SHAPE[1] * SHAPE[2]
LAYOUTS = ("v2_blosc", "v2_bit", "v3_zstd", "v3_shard")
OPS = ("open", "read", "slabs", "planes", "boxes", "flight", "write", "cold")
ARMS = ("lade", "zarrs", "tensorstore", "zarr", "bare")
PIPELINES = {
    "zarr": "zarr.core.codec_pipeline.BatchedCodecPipeline",
    "zarrs": "zarrs.ZarrsCodecPipeline",
}
# What is asked: the peers' time as a multiple of ours.
MUST = {
    ("v2_blosc", "read"): 1.35,
    ("v2_bit", "read"): 1.35,
    ("v3_zstd", "read"): 1.1,
    ("v3_shard", "read"): 1.1,
    ("v2_blosc", "boxes"): 1 / 0.6,
    ("v2_bit", "boxes"): 1 / 0.6,
    ("v3_zstd", "boxes"): 1 / 0.85,
    ("v3_shard", "boxes"): 1 / 0.6,
}


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


def boxes_of(op: str) -> list[tuple[slice, ...]]:
    """The selections of an operation."""
    whole = slice(0, SHAPE[1]), slice(0, SHAPE[2])
    if op == "slabs":
        return [(slice(i * 16, i * 16 + 16), *whole) for i in range(SHAPE[0] // 16)]
    if op == "planes":
        return [(slice(0, SHAPE[0]), whole[0], slice(k * 8, k * 8 + 1)) for k in range(8)]
    if op in ("boxes", "flight"):
        rng = np.random.default_rng(11)
        at = [[int(rng.integers(0, n - BOX + 1)) for n in SHAPE] for _ in range(BOXES)]
        return [tuple(slice(o, o + BOX) for o in origin) for origin in at]
    return [(slice(0, SHAPE[0]), *whole)]


def chunk_files(path: pathlib.Path) -> list[bytes]:
    names = (p for p in path.rglob("*") if p.is_file())
    return sorted(
        os.fsencode(p) for p in names if not p.name.startswith(".z") and p.name != "zarr.json"
    )


class Lade:
    """calls.c, compiled against the library of a build."""

    def __init__(self, build: pathlib.Path, work: pathlib.Path, threads: int):
        root = pathlib.Path(__file__).resolve().parents[2]
        library = work / "calls.so"
        command = ["cc", "-O2", "-std=c11", "-shared", "-fPIC", f"-I{root}/include"]
        command += [str(pathlib.Path(__file__).with_name("calls.c")), "-o", str(library)]
        command += [f"-L{build}", "-llade", "-lzstd", "-lpthread", f"-Wl,-rpath,{build}"]
        subprocess.run(command, check=True)
        self.lib = ctypes.CDLL(str(library))
        self.lib.calls_open.restype = ctypes.c_void_p
        self.threads = threads

    def open(self, path: pathlib.Path) -> Any:
        array = self.lib.calls_open(os.fsencode(path))
        if not array:
            raise SystemExit(f"lade cannot open {path}")
        return ctypes.c_void_p(array)

    def close(self, array: Any) -> None:
        self.lib.calls_close(array)

    def read(self, array: Any, tables: Any, count: int, dst: np.ndarray, flight: bool) -> None:
        call = self.lib.calls_read_all if flight else self.lib.calls_read
        size = ctypes.c_size_t(dst.nbytes // count)
        where = ctypes.c_void_p(dst.ctypes.data)
        args = array, tables[0], tables[1], ctypes.c_size_t(3), ctypes.c_size_t(count), where
        if call(*args, size, ctypes.c_uint(self.threads)):
            raise SystemExit("lade cannot read")

    def write(self, path: pathlib.Path, layout: str, src: np.ndarray) -> None:
        codecs, inner = {
            "v2_blosc": (
                b'[{"id":"blosc","cname":"lz4","clevel":5,"shuffle":1,"blocksize":0}]', None),
            "v2_bit": (
                b'[{"id":"blosc","cname":"zstd","clevel":3,"shuffle":2,"blocksize":0}]', None),
            "v3_zstd": (b'[{"name":"zstd","configuration":{"level":1,"checksum":false}}]', None),
            "v3_shard": (
                b'[{"name":"zstd","configuration":{"level":1,"checksum":false}}]', INNER),
        }[layout]
        shape = (ctypes.c_uint64 * 3)(*SHAPE)
        chunk = (ctypes.c_uint64 * 3)(*(SHARD if inner else CHUNK))
        part = (ctypes.c_uint64 * 3)(*inner) if inner else None
        where = ctypes.c_void_p(src.ctypes.data)
        args = os.fsencode(path), ctypes.c_uint32(int(layout[1])), shape, chunk, part, codecs, where
        if self.lib.calls_write(*args, ctypes.c_size_t(src.nbytes), ctypes.c_uint(self.threads)):
            raise SystemExit("lade cannot write")

    def tables(self, wheres: list[tuple[slice, ...]]) -> Any:
        table = ctypes.c_int64 * (3 * len(wheres))
        return (
            table(*(s.start for w in wheres for s in w)),
            table(*(s.stop for w in wheres for s in w)),
        )


class Bare:
    """The chunks of Zstd files in any order, without anything of Zarr."""

    def __init__(self, lade: Lade, path: pathlib.Path, layout: str):
        self.lib, self.threads = lade.lib, lade.threads
        self.files = chunk_files(path)
        self.paths = (ctypes.c_char_p * len(self.files))(*self.files)
        self.parts, self.off, self.size = 1, None, None
        self.chunk = 4 * int(np.prod(INNER if layout == "v3_shard" else CHUNK))
        if layout == "v3_shard":
            self.parts = int(np.prod(SHARD)) // int(np.prod(INNER))
            tail = 16 * self.parts + 4
            pairs = []
            for name in self.files:
                with open(name, "rb") as f:
                    f.seek(-tail, os.SEEK_END)
                    pairs += struct.iter_unpack("<QQ", f.read(tail - 4))
            table = ctypes.c_uint64 * len(pairs)
            self.off = table(*(p[0] for p in pairs))
            self.size = table(*(p[1] for p in pairs))

    def read(self, dst: np.ndarray) -> None:
        args = self.paths, ctypes.c_size_t(len(self.files)), ctypes.c_size_t(self.parts)
        where = ctypes.c_void_p(dst.ctypes.data)
        more = ctypes.c_size_t(self.chunk), where, ctypes.c_uint(self.threads)
        if self.lib.calls_bare_zstd(*args, self.off, self.size, *more):
            raise SystemExit("the bare loop cannot read")


class ZarrPython:
    """zarr-python with one of its pipelines."""

    def __init__(self, name: str, threads: int):
        import zarr

        self.zarr, self.name = zarr, name
        self.settings = {"codec_pipeline.path": PIPELINES[name]}
        if name == "zarrs":
            self.settings["codec_pipeline.strict"] = True  # an error, not another pipeline
        self.settings["codec_pipeline.max_workers"] = threads
        self.settings["threading.max_workers"] = threads

    def use(self) -> None:
        self.zarr.config.set(self.settings)

    def open(self, path: pathlib.Path) -> Any:
        self.use()
        return self.zarr.open_array(str(path), mode="r")

    def create(self, path: pathlib.Path, layout: str) -> Any:
        import numcodecs

        self.use()
        zstd = self.zarr.codecs.ZstdCodec(level=1)
        how: Any = {
            "v2_blosc": dict(zarr_format=2, chunks=CHUNK, compressors=numcodecs.Blosc("lz4", 5, 1)),
            "v2_bit": dict(zarr_format=2, chunks=CHUNK, compressors=numcodecs.Blosc("zstd", 3, 2)),
            "v3_zstd": dict(chunks=CHUNK, compressors=zstd),
            "v3_shard": dict(chunks=INNER, shards=SHARD, compressors=zstd),
        }[layout]
        return self.zarr.create_array(
            str(path), shape=SHAPE, dtype="float32", fill_value=0.0, **how
        )

    def write(self, path: pathlib.Path, layout: str, src: np.ndarray) -> None:
        self.create(path, layout)[...] = src

    def read(self, array: Any, wheres: list[tuple[slice, ...]], dst: np.ndarray) -> None:
        for where, out in zip(wheres, dst, strict=True):
            prototype = self.zarr.core.buffer.default_buffer_prototype()
            array.get_basic_selection(where, out=prototype.nd_buffer.from_numpy_array(out))


class Tensorstore:
    def __init__(self, threads: int):
        import tensorstore

        self.ts = tensorstore
        limits = {"limit": threads}
        self.context: Any = {"file_io_sync": False}
        if threads == 1:
            self.context |= {"data_copy_concurrency": limits, "file_io_concurrency": limits}

    def open(self, path: pathlib.Path, **more: Any) -> Any:
        driver = "zarr" if (path / ".zarray").exists() or more.get("v2") else "zarr3"
        more.pop("v2", None)
        spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{path}/"}}
        context = self.ts.Context(self.context)
        if not more:
            more = {"open": True, "read": True}
        elif "metadata" in more:
            spec["metadata"] = more.pop("metadata")
        return self.ts.open(spec, context=context, **more).result()

    def write(self, path: pathlib.Path, layout: str, src: np.ndarray) -> None:
        blosc = {"cname": "lz4", "clevel": 5, "blocksize": 0, "shuffle": 1}
        if layout == "v2_bit":
            blosc = {"cname": "zstd", "clevel": 3, "blocksize": 0, "shuffle": 2}
        metadata: Any = {"shape": SHAPE, "fill_value": 0.0}
        little = {"name": "bytes", "configuration": {"endian": "little"}}
        zstd = {"name": "zstd", "configuration": {"level": 1, "checksum": False}}
        inner = {"chunk_shape": INNER, "codecs": [little, zstd]}
        shard = {"name": "sharding_indexed", "configuration": inner}
        if layout.startswith("v2"):
            metadata |= {"chunks": CHUNK, "dtype": "<f4", "compressor": {"id": "blosc"} | blosc}
        else:
            sharded = layout == "v3_shard"
            grid = {"chunk_shape": SHARD if sharded else CHUNK}
            metadata |= {
                "data_type": "float32",
                "codecs": [shard] if sharded else [little, zstd],
                "chunk_grid": {"name": "regular", "configuration": grid},
            }
        v2 = layout.startswith("v2")
        self.open(path, metadata=metadata, create=True, v2=v2).write(src).result()

    def read(self, array: Any, wheres: Any, dst: np.ndarray, flight: bool) -> None:
        if flight:
            pairs = zip(wheres, dst, strict=True)
            for f in [self.ts.array(out).write(array[where]) for where, out in pairs]:
                f.result()
            return
        for where, out in zip(wheres, dst, strict=True):
            self.ts.array(out).write(array[where]).result()


def arms_of(tools: Any, op: str, layout: str, path: pathlib.Path, field: np.ndarray,
            dst: np.ndarray) -> dict[str, Callable[[], None]]:
    """What each arm does in a round of an operation; 'dst' gets what is read."""
    wheres = boxes_of(op)
    flight = op == "flight"
    arms: dict[str, Callable[[], None]] = {}
    for name, tool in tools.items():
        if op == "write":
            own = path.with_name(f"own_{name}")
            if name == "bare":
                continue

            def write(tool: Any = tool, own: pathlib.Path = own) -> None:
                tool.write(own, layout, field)

            arms[name] = write
        elif op == "open":
            if name == "lade":
                arms[name] = lambda tool=tool: tool.close(tool.open(path))
            elif name != "bare":
                arms[name] = lambda tool=tool: tool.open(path)
        elif name == "lade":
            array, tables = tool.open(path), tool.tables(wheres)
            arms[name] = lambda tool=tool, array=array, tables=tables: tool.read(
                array, tables, len(wheres), dst, flight
            )
        elif name == "tensorstore":
            array = tool.open(path)
            arms[name] = lambda tool=tool, array=array: tool.read(array, wheres, dst, flight)
        elif name == "bare":
            if op in ("read", "cold") and layout.startswith("v3"):
                loop = Bare(tools["lade"], path, layout)
                arms[name] = lambda loop=loop: loop.read(dst)
        elif not flight:
            array = tool.open(path)

            def read(tool: Any = tool, array: Any = array) -> None:
                tool.use()
                tool.read(array, wheres, dst)

            arms[name] = read
    return arms


def check(name: str, op: str, arm: Callable[[], None], path: pathlib.Path, field: np.ndarray,
          dst: np.ndarray, reader: ZarrPython) -> None:
    """Runs an arm once and compares what it read or wrote."""
    own = path.with_name(f"own_{name}")
    shutil.rmtree(own, ignore_errors=True)
    dst[...] = -1
    arm()
    if op == "write":
        if not np.array_equal(reader.open(own)[...], field):
            raise SystemExit(f"{name} wrote something else")
    elif op != "open" and name != "bare":
        for where, got in zip(boxes_of(op), dst, strict=True):
            if not np.array_equal(got, field[where]):
                raise SystemExit(f"{name} read something else at {where} ({op}, {path.name})")


def run(args: argparse.Namespace) -> None:
    work = pathlib.Path(args.work).resolve()
    work.mkdir(parents=True, exist_ok=True)
    if not (work / "field.npy").exists():
        np.save(work / "field.npy", make_field())
    field = np.load(work / "field.npy")
    reader = ZarrPython("zarr", args.threads)
    every: Any = {"lade": lambda: Lade(pathlib.Path(args.build).resolve(), work, args.threads)}
    every |= {"zarrs": lambda: ZarrPython("zarrs", args.threads)}
    every |= {"tensorstore": lambda: Tensorstore(args.threads), "zarr": lambda: reader}
    tools = {name: every[name]() for name in args.arm if name != "bare"}
    if "bare" in args.arm and "lade" in tools:
        tools["bare"] = None
    rows = []
    for layout in args.layout:
        path = work / layout
        if not path.exists():
            reader.write(path, layout, field)
        for op in args.op:
            rows += measure(args, tools, op, layout, path, field, reader)
            if args.csv:
                save(args, rows)


def measure(args: argparse.Namespace, tools: Any, op: str, layout: str, path: pathlib.Path,
            field: np.ndarray, reader: ZarrPython) -> list[list[Any]]:
    wheres = boxes_of(op)
    dst = np.ones((len(wheres), *(s.stop - s.start for s in wheres[0])), np.float32)
    arms = arms_of(tools, op, layout, path, field, dst)
    for name, arm in arms.items():
        check(name, op, arm, path, field, dst, reader)
    files = chunk_files(path)
    table = (ctypes.c_char_p * len(files))(*files)
    seconds: dict[str, list[float]] = {name: [] for name in arms}
    order = list(arms)
    for _ in range(args.rounds * (20 if op == "open" else 1)):
        order = order[1:] + order[:1]
        for name in order:
            if op == "write":
                shutil.rmtree(path.with_name(f"own_{name}"), ignore_errors=True)
            if op == "cold":
                tools["lade"].lib.calls_cold(table, ctypes.c_size_t(len(files)))
            start = time.perf_counter()
            arms[name]()
            seconds[name].append(time.perf_counter() - start)
    for name in arms:
        shutil.rmtree(path.with_name(f"own_{name}"), ignore_errors=True)
    size = 0 if op == "open" else dst.nbytes
    rows = []
    for name, times in seconds.items():
        ratio = statistics.median(t / o for t, o in zip(times, seconds["lade"], strict=True))
        middle = statistics.median(times)
        rate = size / middle / 1e9
        must = f"must {MUST[layout, op]:.2f}" if (layout, op) in MUST else ""
        must = must if name in ("zarrs", "tensorstore") else ""
        print(f"{layout:9} {op:7} {args.threads} threads  {name:12} {middle * 1e3:9.3f} ms"
              f" {rate:7.3f} GB/s  {ratio:6.2f} of lade's time  {must}", flush=True)
        rows.append([layout, op, args.threads, name, f"{middle * 1e3:.4f}", f"{rate:.4f}",
                     f"{ratio:.3f}"])
    return rows


def save(args: argparse.Namespace, rows: list[list[Any]]) -> None:
    with open(args.csv, "w", newline="") as f:
        out = csv.writer(f)
        out.writerow("layout op threads arm median_ms GBps times_lade".split())
        out.writerows(rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("build")
    parser.add_argument("work")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--layout", nargs="*", default=LAYOUTS, choices=LAYOUTS)
    parser.add_argument("--op", nargs="*", default=OPS, choices=OPS)
    parser.add_argument("--arm", nargs="*", default=ARMS, choices=ARMS)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--csv")
    args = parser.parse_args()
    if args.threads == 1:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.environ["RAYON_NUM_THREADS"] = str(args.threads)
    run(args)


if __name__ == "__main__":
    sys.exit(main())
