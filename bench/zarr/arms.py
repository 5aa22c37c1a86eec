"""What bench_zarr.py compares: liblade, zarr-python with two pipelines, tensorstore, bare loops.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import re
import struct
import subprocess
from typing import Any

import numpy as np

SHAPE, CHUNK = (1024, 1024, 64), (64, 64, 64)
SHARD, INNER = (256, 256, 64), (32, 32, 32)
PIPELINES = {
    "zarr": "zarr.core.codec_pipeline.BatchedCodecPipeline",
    "zarrs": "zarrs.ZarrsCodecPipeline",
}
ZSTD = b'[{"name":"zstd","configuration":{"level":1,"checksum":false}}]'
CODECS = {
    "v2_blosc": b'[{"id":"blosc","cname":"lz4","clevel":5,"shuffle":1,"blocksize":0}]',
    "v2_bit": b'[{"id":"blosc","cname":"zstd","clevel":3,"shuffle":2,"blocksize":0}]',
    "v3_zstd": ZSTD,
    "v3_shard": ZSTD,
}
PINNED, DEVICE = 1, 3  # lade_kind
Where = tuple[slice, ...]


def zstd_in(folder: str) -> str:
    """The version of Zstandard that a package's libraries name; "?" where they name none."""
    for path in pathlib.Path(folder).rglob("*.so"):
        found = re.search(rb"\0(1\.[45]\.\d{1,2})\0", path.read_bytes())
        if found and b"ZSTD" in path.read_bytes():
            return found[1].decode()
    return "?"


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
        self.lib.calls_alloc.restype = ctypes.c_void_p
        self.lib.calls_zstd_version.restype = ctypes.c_char_p
        self.threads = threads

    def version(self) -> str:
        return f"this build, zstd {self.lib.calls_zstd_version().decode()}"

    def open(self, path: pathlib.Path) -> Any:
        array = self.lib.calls_open(os.fsencode(path))
        if not array:
            raise SystemExit(f"lade cannot open {path}")
        return ctypes.c_void_p(array)

    def close(self, array: Any) -> None:
        self.lib.calls_close(array)

    def read(self, array: Any, tables: Any, count: int, dst: np.ndarray, flight: bool) -> None:
        call = self.lib.calls_read_all if flight else self.lib.calls_read
        size = ctypes.c_size_t(dst[0].nbytes)
        where = ctypes.c_void_p(dst.ctypes.data)
        args = array, tables[0], tables[1], ctypes.c_size_t(3), ctypes.c_size_t(count), where
        if call(*args, size, ctypes.c_uint(self.threads)):
            raise SystemExit("lade cannot read")

    def write(self, path: pathlib.Path, layout: str, src: np.ndarray) -> None:
        inner = INNER if layout == "v3_shard" else None
        shape = (ctypes.c_uint64 * 3)(*src.shape)
        chunk = (ctypes.c_uint64 * 3)(*(SHARD if inner else CHUNK))
        part = (ctypes.c_uint64 * 3)(*inner) if inner else None
        where = ctypes.c_void_p(src.ctypes.data)
        form = ctypes.c_uint32(int(layout[1]))
        args = os.fsencode(path), form, shape, chunk, part, CODECS[layout], where
        if self.lib.calls_write(*args, ctypes.c_size_t(src.nbytes), ctypes.c_uint(self.threads)):
            raise SystemExit("lade cannot write")

    def tables(self, wheres: list[Where]) -> Any:
        table = ctypes.c_int64 * (3 * len(wheres))
        return (
            table(*(s.start for w in wheres for s in w)),
            table(*(s.stop for w in wheres for s in w)),
        )

    def memory(self, kind: int, size: int) -> Any:
        where = self.lib.calls_alloc(kind, ctypes.c_size_t(size))
        if not where:
            raise SystemExit("there is no device, or it lacks memory")
        return ctypes.c_void_p(where)

    def read_device(self, array: Any, dst: Any, size: int) -> None:
        if self.lib.calls_read_device(array, dst, ctypes.c_size_t(size), self.threads):
            raise SystemExit("lade cannot read to the device")

    def copy(self, src: Any, kind: int, dst: Any, to: int, size: int) -> None:
        if self.lib.calls_copy(src, kind, dst, to, ctypes.c_size_t(size)):
            raise SystemExit("lade cannot copy")

    def drop(self, files: list[pathlib.Path]) -> None:
        """Drops files from the page cache."""
        table = (ctypes.c_char_p * len(files))(*(os.fsencode(f) for f in files))
        self.lib.calls_cold(table, ctypes.c_size_t(len(files)))


class Bare:
    """The chunks of Zstd files that boxes touch, without anything of Zarr."""

    def __init__(self, lade: Lade, path: pathlib.Path, layout: str):
        self.lib, self.threads = lade.lib, lade.threads
        self.shape = INNER if layout == "v3_shard" else CHUNK
        self.grid = tuple(n // c for n, c in zip(SHAPE, self.shape, strict=True))
        parts = [s // c for s, c in zip(SHARD, self.shape, strict=True)]
        names, places = [], []
        index: dict[str, list[tuple[int, int]]] = {}
        for at in np.ndindex(self.grid):
            if layout == "v3_shard":
                shard = [i // n for i, n in zip(at, parts, strict=True)]
                name = str(path / "c" / "/".join(map(str, shard)))
                if name not in index:
                    tail = pathlib.Path(name).read_bytes()[-16 * int(np.prod(parts)) - 4 : -4]
                    index[name] = list(struct.iter_unpack("<QQ", tail))
                inner = [i % n for i, n in zip(at, parts, strict=True)]
                places.append(index[name][int(np.ravel_multi_index(inner, parts))])
            else:
                name = str(path / "c" / "/".join(map(str, at)))
                places.append((0, os.stat(name).st_size))
            names.append(os.fsencode(name))
        self.paths = (ctypes.c_char_p * len(names))(*names)
        table = ctypes.c_uint64 * len(places)
        self.off = table(*(p[0] for p in places))
        self.size = table(*(p[1] for p in places))

    def groups(self, wheres: list[Where]) -> Any:
        """For each box the chunks that it touches."""
        chunks: list[int] = []
        first = [0]
        for where in wheres:
            spans = [
                range(s.start // c, (s.stop - 1) // c + 1)
                for s, c in zip(where, self.shape, strict=True)
            ]
            for i in spans[0]:
                for j in spans[1]:
                    chunks += [(i * self.grid[1] + j) * self.grid[2] + k for k in spans[2]]
            first.append(len(chunks))
        return (ctypes.c_size_t * len(chunks))(*chunks), (ctypes.c_size_t * len(first))(*first)

    def read(self, groups: Any, dst: np.ndarray | None) -> None:
        """'dst' None: the decoded chunks are thrown away."""
        count = ctypes.c_size_t(4 * int(np.prod(self.shape)))
        where = ctypes.c_void_p(dst.ctypes.data if dst is not None else None)
        more = *groups, ctypes.c_size_t(len(groups[1]) - 1), where, ctypes.c_uint(self.threads)
        if self.lib.calls_bare_zstd(self.paths, self.off, self.size, count, *more):
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

    def version(self) -> str:
        import numcodecs

        if self.name == "zarrs":
            import importlib.metadata

            return f"{importlib.metadata.version('zarrs')}, zstd ?"
        return f"{self.zarr.__version__}, zstd {zstd_in(numcodecs.__path__[0])}"

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

    def read(self, array: Any, wheres: list[Where], dst: np.ndarray) -> None:
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

    def version(self) -> str:
        import importlib.metadata

        return f"{importlib.metadata.version('tensorstore')}, zstd {zstd_in(self.ts.__path__[0])}"

    def open(self, path: pathlib.Path, **more: Any) -> Any:
        driver = "zarr" if (path / ".zarray").exists() or more.get("v2") else "zarr3"
        more.pop("v2", None)
        spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{path}/"}}
        context = self.ts.Context(self.context)
        if not more:
            more = {"open": True, "read": True}
            # A box does not look at the metadata again.
            spec |= {"recheck_cached_metadata": "open", "recheck_cached_data": "open"}
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
