"""Blosc containers, version 2 (c-blosc 1.x).

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np

from ._base import Compressor
from ._buffers import flat, pipeline, source

NOSHUFFLE = 0
SHUFFLE = 1
BITSHUFFLE = 2
AUTOSHUFFLE = -1
AUTOBLOCKS = 0
MAX_OVERHEAD = 16
MAX_BUFFERSIZE = 2**31 - 1 - MAX_OVERHEAD
MAX_TYPESIZE = 255
MAX_THREADS = 256

_SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")
_SHUFFLE_NAMES = ("AUTOSHUFFLE", "NOSHUFFLE", "SHUFFLE", "BITSHUFFLE")
_U1 = np.dtype("u1")
_WRITTEN = frozenset(("blosclz", "lz4", "lz4hc", "zlib", "zstd"))
_LIBRARIES = ("BloscLZ", "LZ4", "Snappy", "Zlib", "Zstd")

use_threads: bool | None = None
"""Whether one array is decoded by several threads.  None: where the main thread of the process
that has imported this asks for it, as in numcodecs; elsewhere the caller is taken to have threads
of its own."""

_threads = min(8, os.cpu_count() or 1)
_importer = os.getpid()


def list_compressors() -> list[str]:
    """The compressors that can be written; snappy can be read, too."""
    return ["blosclz", "lz4", "lz4hc", "zlib", "zstd"]


def get_nthreads() -> int:
    """The threads that decode one array, where use_threads allows them."""
    return _threads


def set_nthreads(count: int) -> int:
    """Sets the threads that decode one array; gives what it was."""
    global _threads
    if not 1 <= count <= MAX_THREADS:
        raise ValueError(f"threads: {count}, want 1 to {MAX_THREADS}")
    before, _threads = _threads, count
    return before


def _threads_now() -> int:
    if use_threads is None:
        if threading.current_thread() is not threading.main_thread() or os.getpid() != _importer:
            return 1
        return _threads
    # A fork has none of the library's threads.
    return _threads if use_threads and os.getpid() == _importer else 1


def _header(source: Any) -> bytes:
    data = bytes(memoryview(flat(source, _U1))[:16])
    if len(data) < 16:
        raise ValueError(f"blosc: want a header of 16 bytes, have {len(data)}")
    return data


def _cbuffer_sizes(source: Any) -> tuple[int, int, int]:
    """Decoded bytes, encoded bytes, bytes of a block."""
    data = _header(source)
    nbytes, blocksize, cbytes = (int.from_bytes(data[i : i + 4], "little") for i in (4, 8, 12))
    return nbytes, cbytes, blocksize


def cbuffer_complib(source: Any) -> str:
    """The library of the compressor inside."""
    return _LIBRARIES[_header(source)[2] >> 5]


def _cbuffer_metainfo(source: Any) -> tuple[int, int, int]:
    """Bytes of an element, the shuffle, and not 0 if the bytes are stored."""
    data = _header(source)
    shuffle = SHUFFLE if data[2] & 1 else BITSHUFFLE if data[2] & 4 else NOSHUFFLE
    return data[3], shuffle, data[2] & 2


class Blosc(Compressor):
    """Blosc.

    cname: "blosclz", "lz4", "lz4hc", "zlib" or "zstd".
    clevel: 0 (stored) to 9.
    shuffle: NOSHUFFLE, SHUFFLE, BITSHUFFLE, or AUTOSHUFFLE: BITSHUFFLE for elements of 1 byte, else
        SHUFFLE.
    blocksize: bytes; 0: c-blosc chooses.
    typesize: bytes of an element; None: that of the array's.
    """

    codec_id = "blosc"
    NOSHUFFLE = NOSHUFFLE
    SHUFFLE = SHUFFLE
    BITSHUFFLE = BITSHUFFLE
    AUTOSHUFFLE = AUTOSHUFFLE
    max_buffer_size = 2**31 - 1
    _decoder = ("blosc", 1)

    def __init__(
        self,
        cname: str = "lz4",
        clevel: int = 5,
        shuffle: int = SHUFFLE,
        blocksize: int = AUTOBLOCKS,
        typesize: int | None = None,
    ) -> None:
        if isinstance(typesize, int) and typesize < 1:
            raise ValueError(f"Cannot use typesize {typesize} less than 1.")
        self.cname = cname
        self.clevel = clevel
        self.shuffle = shuffle
        self.blocksize = blocksize
        self._typesize = typesize

    def _pipeline(self, buf: Any) -> tuple[str, int]:
        cname, shuffle, size = self.cname, self.shuffle, self._typesize
        if isinstance(cname, bytes):
            cname = cname.decode("ascii")
        if cname not in _WRITTEN:
            raise ValueError(
                f"bad compressor or compressor not supported: {cname!r}; expected one of "
                f"{list_compressors()}"
            )
        if size is None:
            size = 1 if isinstance(buf, (bytes, bytearray)) else getattr(buf, "itemsize", 1)
        if size < 1:
            raise ValueError(f"Cannot use typesize {size} less than 1.")
        if shuffle == AUTOSHUFFLE:
            shuffle = BITSHUFFLE if size == 1 else SHUFFLE
        elif shuffle not in (NOSHUFFLE, SHUFFLE, BITSHUFFLE):
            raise ValueError(f"shuffle: {shuffle!r}, want -1, 0, 1 or 2")
        # c-blosc writes elements of more bytes as bytes.
        size = size if size <= MAX_TYPESIZE else 1
        return (
            f"blosc({cname},level={self.clevel},shuffle={_SHUFFLES[shuffle]},typesize={size},"
            f"blocksize={self.blocksize})"
        ), 1

    def decode(self, buf: Any, out: Any = None) -> Any:
        codec = pipeline("blosc", 1, _threads_now())
        return self._decode(codec, source(buf, self.max_buffer_size), out)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(cname={self.cname!r}, clevel={self.clevel!r}, "
            f"shuffle={_SHUFFLE_NAMES[self.shuffle + 1]}, blocksize={self.blocksize})"
        )


def compress(
    source: Any,
    cname: str | bytes,
    clevel: int,
    shuffle: int = SHUFFLE,
    blocksize: int = AUTOBLOCKS,
    typesize: int | None = None,
) -> Any:
    """Encodes a buffer, as Blosc(cname, clevel, ...) does."""
    name = cname.decode("ascii") if isinstance(cname, bytes) else cname
    return Blosc(name, clevel, shuffle, blocksize, typesize).encode(source)


def decompress(source: Any, dest: Any = None) -> Any:
    """Decodes a buffer, into 'dest' if there is one."""
    return Blosc().decode(source, dest)
