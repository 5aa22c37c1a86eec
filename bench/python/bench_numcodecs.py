"""The speed of liblade.numcodecs as a multiple of numcodecs', in one process.

    python bench/python/bench_numcodecs.py [seconds a case] [codec ...]

Each row is a codec and a size of chunk: numcodecs' processor time over ours, of the best of
interleaved runs, for encode(), decode() and decode(out=); above 1 we are faster.  Then the gain of
a second Python thread, each thread with chunks of its own.  Blosc's own threads are off in both.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import liblade.numcodecs as ours
import numcodecs
import numcodecs.blosc
import numcodecs.checksum32
import numcodecs.fletcher32
import numpy as np

SIZES = (4 << 10, 64 << 10, 1 << 20)


def cases() -> list[tuple[str, Any, Any]]:
    """Name, our codec, theirs."""
    n, c = numcodecs, numcodecs.checksum32
    filters = {"dtype": "<f4", "astype": "<i2"}
    return [
        ("zlib(1)", ours.Zlib(1), n.Zlib(1)),
        ("zlib(6)", ours.Zlib(6), n.Zlib(6)),
        ("gzip(1)", ours.GZip(1), n.GZip(1)),
        ("zstd(1)", ours.Zstd(1), n.Zstd(1)),
        ("zstd(3)", ours.Zstd(3), n.Zstd(3)),
        ("lz4", ours.LZ4(), n.LZ4()),
        ("blosc-lz4", ours.Blosc(), n.Blosc()),
        ("blosc-zstd-bit", ours.Blosc("zstd", 3, 2), n.Blosc("zstd", 3, 2)),
        ("shuffle(4)", ours.Shuffle(4), n.Shuffle(4)),
        ("shuffle(8)", ours.Shuffle(8), n.Shuffle(8)),
        ("delta(i4)", ours.Delta("<i4"), n.Delta("<i4")),
        ("crc32", ours.CRC32(), c.CRC32()),
        # numcodecs has it where google-crc32c is installed.
        *([("crc32c", ours.CRC32C(), c.CRC32C())] if hasattr(c, "CRC32C") else []),
        ("adler32", ours.Adler32(), c.Adler32()),
        ("fletcher32", ours.Fletcher32(), n.fletcher32.Fletcher32()),
        ("fixedscaleoffset", ours.FixedScaleOffset(280, 100, **filters),
         n.FixedScaleOffset(280, 100, **filters)),
        ("bitround(9)", ours.BitRound(9), n.BitRound(9)),
        ("packbits", ours.PackBits(), n.PackBits()),
        ("quantize(2)", ours.Quantize(2, "<f4"), n.Quantize(2, "<f4")),
    ]  # fmt: skip


def data(name: str, size: int) -> Any:
    """A smooth field with noise, as climate data have it; booleans for packbits."""
    rng = np.random.default_rng(3)
    field = 280 + rng.normal(0, 0.05, size // 4).cumsum()
    if name == "packbits":
        return rng.integers(0, 2, size).astype(bool)
    return field.round(2).astype("<i4" if name.startswith("delta") else "<f4")


def best(calls: list[Callable[[], Any]], seconds: float) -> list[float]:
    """The best time of each call, in seconds of the processor, run in turns."""
    counts = []
    for call in calls:
        start = time.thread_time()
        call()
        call()
        took = (time.thread_time() - start) / 2
        counts.append(max(1, int(seconds / 12 / max(took, 1e-7))))
    found = [1e9] * len(calls)
    for _ in range(12):
        for i, call in enumerate(calls):
            start = time.thread_time()
            for _ in range(counts[i]):
                call()
            found[i] = min(found[i], (time.thread_time() - start) / counts[i])
    return found


def rate(codec: Any, chunks: list[Any], outs: list[Any], count: int, windows: int) -> float:
    """Chunks a second by so many threads that go on all the time: the best of short windows, as a
    machine that is shared is quiet now and then."""
    done, going = [0] * count, [True]

    def work(thread: int) -> None:
        while going[0]:
            for i in range(thread, len(chunks), count):
                codec.decode(chunks[i], out=outs[i])
                done[thread] += 1

    threads = [threading.Thread(target=work, args=(t,)) for t in range(count)]
    for t in threads:
        t.start()
    found = 0.0
    for _ in range(windows):
        before, start = sum(done), time.perf_counter()
        time.sleep(0.04)
        found = max(found, (sum(done) - before) / (time.perf_counter() - start))
    going[0] = False
    for t in threads:
        t.join()
    return found


def main() -> None:
    """Prints the table."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 0.1
    wanted = sys.argv[2:]
    numcodecs.blosc.use_threads = ours.blosc.use_threads = False
    print(f"{'codec':18} {'bytes':>8} {'encode':>7} {'decode':>7} {'out=':>7}   us: ours, theirs")
    for name, mine, theirs in cases():
        if wanted and name not in wanted:
            continue
        for size in SIZES:
            arr = data(name, size)
            other = memoryview(theirs.encode(arr)).tobytes()
            room = np.empty_like(arr)
            t = best(
                [
                    lambda: mine.encode(arr), lambda: theirs.encode(arr),
                    lambda: mine.decode(other), lambda: theirs.decode(other),
                    lambda: mine.decode(other, out=room), lambda: theirs.decode(other, out=room),
                ],
                seconds,
            )  # fmt: skip
            print(
                f"{name:18} {size:8} {t[1] / t[0]:7.2f} {t[3] / t[2]:7.2f} {t[5] / t[4]:7.2f}   "
                f"{t[0] * 1e6:.1f} {t[1] * 1e6:.1f}, {t[2] * 1e6:.1f} {t[3] * 1e6:.1f}, "
                f"{t[4] * 1e6:.1f} {t[5] * 1e6:.1f}",
                flush=True,
            )
    print(f"\n{'two threads':18} {'bytes':>8}   ours  theirs  (two threads' rate over one's)")
    for name, mine, theirs in cases():
        if wanted and name not in wanted:
            continue
        size = 1 << 18
        arr = data(name, size)
        gains = []
        for codec in (mine, theirs):
            chunks = [bytes(memoryview(codec.encode(arr))) for _ in range(16)]
            outs = [np.empty_like(arr) for _ in chunks]
            one = two = 0.0
            for _ in range(6):
                one = max(one, rate(codec, chunks, outs, 1, int(50 * seconds)))
                two = max(two, rate(codec, chunks, outs, 2, int(50 * seconds)))
            gains.append(two / one)
        print(f"{name:18} {size:8} {gains[0]:6.2f} {gains[1]:7.2f}", flush=True)


if __name__ == "__main__":
    main()
