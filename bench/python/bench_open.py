"""The speed of liblade.open() as a multiple of gzip's, zstandard's and lz4.frame's, in one process.

    python bench/python/bench_open.py FILE [rounds]

The file's bytes (32 MiB of them at most) are written and read with each, by turns; the figures are
their best time over ours: above 1 we are faster.  Each row's file was written by the tool that it
is compared with, so that both read the same bytes.  One thread each, and then ours with all.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import liblade
import lz4.frame
import zstandard

_BLOCK = 1 << 20


# With checksums, as ours and as the tools of the command line have them.
def _gzip(path: str, mode: str) -> Any:
    return gzip.open(path, mode, compresslevel=6)


def _zstd(path: str, mode: str) -> Any:
    if mode == "rb":
        return zstandard.open(path, mode)
    return zstandard.open(path, mode, cctx=zstandard.ZstdCompressor(3, write_checksum=True))


def _lz4(path: str, mode: str) -> Any:
    if mode == "rb":
        return lz4.frame.open(path, mode)
    return lz4.frame.open(path, mode, content_checksum=True)


def best(calls: list[Callable[[], Any]], rounds: int) -> list[float]:
    """The best time of each call, run in turns."""
    found = [1e9] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            start = time.perf_counter()
            call()
            found[i] = min(found[i], time.perf_counter() - start)
    return found


def read(opened: Any) -> None:
    """All at once."""
    with opened as f:
        f.read()


def read_into(opened: Any, room: memoryview) -> None:
    """Into memory that is there."""
    with opened as f:
        at = 0
        while n := f.readinto(room[at : at + _BLOCK]):
            at += n


def read_small(opened: Any) -> None:
    """By pieces of 4 KiB."""
    with opened as f:
        while f.read(4096):
            pass


def write(opened: Any, data: memoryview) -> None:
    """By pieces of 1 MiB."""
    with opened as f:
        for at in range(0, len(data), _BLOCK):
            f.write(data[at : at + _BLOCK])


def main() -> None:
    """Prints the table."""
    with open(sys.argv[1], "rb") as f:
        data = memoryview(f.read(32 << 20))
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    room = memoryview(bytearray(len(data)))
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'':8} {'write':>12} {'read()':>12} {'readinto()':>12} {'read(4096)':>12}"
              "   (one thread, all threads)")
        for name, theirs in (("gz", _gzip), ("zst", _zstd), ("lz4", _lz4)):
            path, other = (os.path.join(folder, f"{who}.{name}") for who in ("ours", "theirs"))
            write(theirs(other, "wb"), data)
            row = []
            for call in (
                lambda o, p: write(o(p, "wb"), data),
                lambda o, p: read(o(other, "rb")),
                lambda o, p: read_into(o(other, "rb"), room),
                lambda o, p: read_small(o(other, "rb")),
            ):
                one, all_, their = best(
                    [
                        lambda: call(lambda p, m: liblade.open(p, m, threads=1), path),
                        lambda: call(liblade.open, path),
                        lambda: call(theirs, path + "2"),
                    ],
                    rounds,
                )  # fmt: skip
                row.append(f"{their / one:5.2f} {their / all_:5.2f}")
            print(f"{name:8} " + " ".join(f"{r:>12}" for r in row), flush=True)


if __name__ == "__main__":
    main()
