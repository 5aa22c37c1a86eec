#!/usr/bin/env python3
"""bench_gpu.py: reads of 256 MiB to a GPU, the best of 7, in one run: a plan of liblade that is
ready to run, Array.read(), and zarr-python to CuPy with liblade's pipeline and with its own.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from typing import Any

import cupy
import numpy as np
import zarr

import liblade.zarr as lz

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
LZ4 = {"name": "numcodecs.lz4", "configuration": {"acceleration": 1}}
LAYOUTS: dict[str, dict[str, Any]] = {
    "shuffle, zstd": {"codecs": "shuffle(4)|zstd(level=1)"},
    "shuffle, zstd, shards of 64 MiB": {
        "codecs": "shuffle(4)|zstd(level=1)",
        "shards": (16, 1024, 1024),
    },
    "lz4": {"codecs": [LITTLE, LZ4]},
    "no codec": {"codecs": ""},
}


def best(call: Callable[[], Any], times: int = 7) -> float:
    spent = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        cupy.cuda.runtime.deviceSynchronize()
        spent.append(time.perf_counter() - began)
    return min(spent)


def by_zarr(path: str, pipeline: str, x: Any, times: int = 7) -> float:
    with zarr.config.set({"codec_pipeline.path": pipeline}), zarr.config.enable_gpu():
        z = zarr.open_array(path, mode="r")
        assert (cupy.asnumpy(z[...]) == x).all()
        return best(lambda: z[...], times)


def main() -> None:
    rng = np.random.default_rng(1)
    x = np.cumsum(rng.integers(-3, 4, 64 << 20), dtype="i4").astype("f4").reshape(64, 1024, 1024)
    for name, how in LAYOUTS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/a.zarr"
            a = lz.create(path, shape=x.shape, dtype=x.dtype, chunks=(1, 512, 512), **how)
            a[...] = x
            out = cupy.empty(x.shape, x.dtype)
            rows = {
                "plan": best(a.plan(out=out).run),
                "Array.read": best(lambda a=a, out=out: a.read(out=out)),
                "zarr-python + liblade": by_zarr(path, "liblade.zarr.CodecPipeline", x),
            }
            assert (cupy.asnumpy(out) == x).all()
            if "shards" not in how:
                stock = "zarr.core.codec_pipeline.BatchedCodecPipeline"
                rows["zarr-python"] = by_zarr(path, stock, x, 1)
        print(name, *(f"{n} {x.nbytes / t / 1e9:.2f} GB/s" for n, t in rows.items()), sep="; ")


if __name__ == "__main__":
    main()
