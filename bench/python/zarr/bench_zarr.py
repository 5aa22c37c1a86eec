#!/usr/bin/env python3
"""bench_zarr.py [MIB [TIMES]]: Zarr in Python, library beside library, in one run.

Reads, writes, slabs and single chunks of the same arrays by: C (a plan of liblade's that is ready
to run), C into new memory, liblade.zarr, zarr-python with liblade's pipeline, with its default
pipeline, with its fused one, with zarrs', and tensorstore, as far as they are installed.  Each row
is the median of TIMES (9), taken in turns, so that other work on the machine meets all alike; "x C"
is the time beside C's.  Processor time is that of the same call.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import zarr

import liblade.zarr as lz

warnings.filterwarnings("ignore")
MIB = int(sys.argv[1]) if len(sys.argv) > 1 else 128
TIMES = int(sys.argv[2]) if len(sys.argv) > 2 else 9
OURS = "liblade.zarr.CodecPipeline"
PIPELINES = {
    "zarr-python + liblade": OURS,
    "zarr-python": "zarr.core.codec_pipeline.BatchedCodecPipeline",
    "zarr-python fused": "zarr.core.codec_pipeline.FusedCodecPipeline",
}
try:
    import zarrs  # noqa: F401

    PIPELINES["zarr-python + zarrs"] = "zarrs.ZarrsCodecPipeline"
except ImportError:
    pass
try:
    import tensorstore
except ImportError:
    tensorstore = None

type Call = Callable[[], Any]


def timed(calls: dict[str, Call], times: int = TIMES) -> dict[str, tuple[float, float]]:
    """The median wall time of each call, and that of its processor time."""
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    for _ in range(times):
        for name, call in calls.items():
            cpu, wall = time.process_time(), time.perf_counter()
            got = call()
            del got  # its memory is given back, too
            spent[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    return {
        name: (statistics.median(w for w, _ in all_), statistics.median(c for _, c in all_))
        for name, all_ in spent.items()
    }


def table(title: str, calls: dict[str, Call], size: int = 0, times: int = TIMES) -> None:
    print(f"\n{title}")
    found = timed(calls, times)
    base = next(iter(found.values()))
    for name, (wall, cpu) in found.items():
        rate = f"{size / wall / 1e9:7.2f} GB/s" if size else " " * 12
        print(
            f"  {name:24} {wall * 1e6:12.1f} us  cpu {cpu * 1e6:12.1f} us  {rate}  "
            f"{wall / base[0]:6.2f} x {next(iter(found))}, cpu {cpu / max(base[1], 1e-9):6.2f}"
        )


def open_by(path: str, pipeline: str) -> Any:
    with zarr.config.set({"codec_pipeline.path": pipeline}):
        return zarr.open_array(path, mode="r+")


def tensor(path: str) -> Any:
    return tensorstore.open(
        {"driver": "zarr3", "kvstore": {"driver": "file", "path": path}}, open=True
    ).result()


def readers(path: str, key: Any, x: Any) -> dict[str, Call]:
    a = lz.open_array(path)
    out = np.empty_like(x[key])
    plan = a.plan(key, out=out)
    selection = a._select("basic", key, None)

    def into_new_memory() -> Any:
        new = np.empty_like(out)
        a._node.read(selection.key, selection.mode, None, new, False, None)
        return new

    calls: dict[str, Call] = {
        "C": plan.run, "C, new memory": into_new_memory, "liblade.zarr": lambda: a[key],
    }  # fmt: skip
    for name, pipeline in PIPELINES.items():
        z = open_by(path, pipeline)
        calls[name] = lambda z=z: z[key]
    if tensorstore is not None:
        t = tensor(path)
        calls["tensorstore"] = lambda: t[key].read().result()
    for name, call in calls.items():
        got = call()
        assert np.array_equal(np.asarray(out if name == "C" else got), x[key]), name
    return calls


def writers(path: str, key: Any, x: Any) -> dict[str, Call]:
    a = lz.open_array(path, mode="r+")
    value = np.ascontiguousarray(x[key])
    node = a._node
    selection = a._select("basic", key, None)
    calls: dict[str, Call] = {
        "C": lambda: node.write(selection.key, selection.mode, None, value, None, None),
        "liblade.zarr": lambda: a.__setitem__(key, value),
    }
    for name, pipeline in PIPELINES.items():
        z = open_by(path, pipeline)
        calls[name] = lambda z=z: z.__setitem__(key, value)
    if tensorstore is not None:
        t = tensor(path)
        calls["tensorstore"] = lambda: t[key].write(value).result()
    return calls


def rename(folder: str) -> None:
    """What a whole write takes at least: a new file that replaces another."""
    file = os.open(f"{folder}/new", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.write(file, b"x" * 19)
    os.close(file)
    os.rename(f"{folder}/new", f"{folder}/old")


def main() -> None:
    rng = np.random.default_rng(1)
    side = 1024
    x = np.cumsum(rng.integers(-3, 4, MIB << 18), dtype="i4").astype("f4").reshape(-1, side, side)
    z = zarr.codecs
    layouts: dict[str, dict[str, Any]] = {
        "no codec": {"compressors": None},
        "zstd": {"compressors": z.ZstdCodec(level=1)},
        "blosc (lz4, shuffle)": {
            "compressors": z.BloscCodec(cname="lz4", clevel=5, shuffle="shuffle", typesize=4)
        },
        "zstd in shards": {"compressors": z.ZstdCodec(level=1), "shards": (4, side, side)},
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, how in layouts.items():
            path = f"{folder}/{name.split(' ')[0]}{'shards' in how}.zarr"
            array = zarr.create_array(
                path, shape=x.shape, dtype=x.dtype, chunks=(1, 512, 512), **how
            )
            array[...] = x
            title = f"{MIB} MiB of f4, chunks of 1 MiB, {name}"
            table(f"{title}: read", readers(path, np.s_[...], x), x.nbytes)
            table(f"{title}: a slab", readers(path, np.s_[:, 100:140, 200:900], x))
            table(f"{title}: write", writers(path, np.s_[...], x), x.nbytes, max(TIMES // 2, 1))
        small = x[0, :256, :256]
        path = f"{folder}/small.zarr"
        array = zarr.create_array(
            path, shape=(2048, 256), dtype="f4", chunks=(64, 256), compressors=z.ZstdCodec(level=1)
        )
        array[...] = np.tile(small, (8, 1))
        whole = np.tile(small, (8, 1))
        times = 20 * TIMES
        table("directory, one chunk of 64 KiB: read", readers(path, np.s_[64:128], whole), 0, times)
        table(
            "directory, one chunk of 64 KiB: write", writers(path, np.s_[64:128], whole), 0, times
        )
        table("directory, open", {
            "liblade.zarr": lambda: lz.open_array(path),
            "zarr-python": lambda: open_by(path, PIPELINES["zarr-python"]),
            **({"tensorstore": lambda: tensor(path)} if tensorstore is not None else {}),
        }, 0, times // 4)  # fmt: skip
        store = lz.Store.memory()
        a = lz.create(store, shape=(2048, 256), dtype="f4", chunks=(64, 256), codecs="")
        a[...] = whole
        out = np.empty((64, 256), "f4")
        plan = a.plan(np.s_[64:128], out=out)
        key, make = np.s_[64:128], a._empty
        table("memory, one chunk of 64 KiB, no codec: read", {
            "C plan": plan._plan.run,
            "C": lambda: a._node.read(key, 0, None, out, False, None),
            "liblade.zarr": lambda: a[key],
            "liblade.zarr, out=": lambda: a.read(key, out=out),
        }, 0, 20 * times)  # fmt: skip
        assert make
        tiny = np.ones(16, "i4")
        for where, target in (("memory", lz.Store.memory()), ("directory", f"{folder}/tiny.zarr")):
            b = lz.create(target, shape=(1600,), dtype="i4", chunks=(16,), codecs="zstd(level=0)")
            calls: dict[str, Call] = {
                "liblade.zarr": lambda b=b: b.__setitem__(slice(160, 176), tiny),
            }
            theirs = zarr.storage.MemoryStore() if where == "memory" else f"{folder}/tiny2.zarr"
            zarr.create_array(theirs, shape=(1600,), dtype="i4", chunks=(16,))
            for name, pipeline in PIPELINES.items():
                if name != "zarr-python + zarrs" or where == "directory":
                    t = open_by(theirs, pipeline)
                    calls[name] = lambda t=t: t.__setitem__(slice(160, 176), tiny)
            if where == "directory":
                calls = {"a file, renamed": lambda: rename(folder), **calls}
            table(f"{where}, one chunk of 64 bytes: write", calls, 0, 4 * times)
    print(f"\n{lz.pipeline_counts()} {lz.pipeline_reasons()}")


if __name__ == "__main__":
    main()
