#!/usr/bin/env python3
"""bench_dask.py [MIB [TIMES]]: reductions of xarray and dask over shards, on the threads of dask.

The same expressions with zarr-python's default pipeline, with liblade's, and with an array of
liblade as the source; the best of TIMES (3), in turns, with processor time.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections.abc import Callable

import dask.array
import numpy as np
import xarray
import zarr

import liblade.zarr as lz

warnings.filterwarnings("ignore")
MIB = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
TIMES = int(sys.argv[2]) if len(sys.argv) > 2 else 3
DEFAULT = "zarr.core.codec_pipeline.BatchedCodecPipeline"
OURS = "liblade.zarr.CodecPipeline"


def main() -> None:
    rng = np.random.default_rng(1)
    days = MIB // 4  # a day has 4 MiB
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/t.zarr"
        group = lz.create_group(path)
        a = group.create_array(
            "t", shape=(days, 1024, 1024), dtype="f4", chunks=(1, 512, 512), shards=(8, 1024, 1024),
            codecs="shuffle(4)|zstd(level=1)", dimension_names=["time", "y", "x"],
        )  # fmt: skip
        part = np.cumsum(rng.integers(-3, 4, (8, 1024, 1024)), axis=2).astype("f4")
        for first in range(0, days, 8):
            a[first : first + 8] = part + first
        group.consolidate()

        def by_dask(pipeline: str) -> float:
            with zarr.config.set({"codec_pipeline.path": pipeline}):
                source = dask.array.from_zarr(path, component="t", chunks=(8, 1024, 1024))
                return float(source.mean().compute(scheduler="threads", num_workers=2))

        def by_xarray(pipeline: str) -> float:
            with zarr.config.set({"codec_pipeline.path": pipeline}):
                with xarray.open_zarr(path, chunks={"time": 8}) as d:
                    found = d.t.max("time").compute(scheduler="threads", num_workers=2)
                    return float(found.sum())

        def by_ours() -> float:
            array = lz.open_array(path, "t", threads=1)
            source = dask.array.from_array(array, chunks=array.shards)
            return float(source.mean().compute(scheduler="threads", num_workers=2))

        rows: dict[str, Callable[[], float]] = {
            "dask mean, zarr-python": lambda: by_dask(DEFAULT),
            "dask mean, zarr-python + liblade": lambda: by_dask(OURS),
            "dask mean, liblade.zarr": by_ours,
            "xarray max, zarr-python": lambda: by_xarray(DEFAULT),
            "xarray max, zarr-python + liblade": lambda: by_xarray(OURS),
        }
        best: dict[str, tuple[float, float]] = {}
        results: dict[str, float] = {}
        for _ in range(TIMES):
            for name, call in rows.items():
                cpu, wall = time.process_time(), time.perf_counter()
                results[name] = call()
                spent = time.perf_counter() - wall, time.process_time() - cpu
                best[name] = min(best.get(name, spent), spent)
        print(f"{MIB} MiB of f4, shards of 32 MiB, chunks of 1 MiB, shuffle and zstd, 2 threads")
        for name, (wall, cpu) in best.items():
            base = best[name.split(",")[0] + ", zarr-python"]
            assert np.isclose(results[name], results[name.split(",")[0] + ", zarr-python"])
            print(
                f"  {name:36} {wall:7.3f} s  cpu {cpu:7.3f} s  {base[0] / wall:5.2f} times "
                f"as fast, cpu {base[1] / cpu:5.2f}"
            )


if __name__ == "__main__":
    main()
