"""The speed of liblade.numcodecs as a multiple of numcodecs', in one process.

    python bench/python/bench_numcodecs.py [seconds a case] [codec ...]

Each row is a codec and a size of chunk: numcodecs' processor time over ours, of the best of
interleaved runs, for encode(), decode() and decode(out=); above 1 we are faster.  Then the gain of
a second Python thread, each thread with chunks of its own, and of two processes beside it, for
decode(out=) and for encode(), and what a chunk costs two threads in processor time as a multiple
of one thread's.  While others use the processors, nothing of that is measured: a second that others
had a tenth of is measured again, up to a minute.  Blosc's own threads are off in both.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import mmap
import multiprocessing
import os
import pathlib
import resource
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import liblade
import liblade.numcodecs as ours
import numcodecs
import numcodecs.blosc
import numcodecs.checksum32
import numcodecs.fletcher32
import numcodecs.lz4
import numcodecs.zstd
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


def work(codec: Any, chunks: list[Any], outs: list[Any], first: int, on: Any, mine: list[int],
         done: Any) -> None:  # fmt: skip
    """Decodes (encodes, without 'outs') every other chunk as long as on[0] is one of 'mine'; 0 is
    the end."""
    count, i = 0, first
    while mode := int(on[0]):
        if mode not in mine:
            time.sleep(0.004)
            continue
        if outs:
            codec.decode(chunks[i], out=outs[i])
        else:
            codec.encode(chunks[i])
        i = (i + 2) % len(chunks)
        count += 1
        done[0] = count


def busy() -> float:
    """Seconds that others have had of all processors."""
    ticks = [int(t) for t in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:8]]
    own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    used = (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
    return used - sum(u.ru_utime + u.ru_stime for u in own)


def gains_alone(codec: Any, arr: Any, turns: int, encode: bool) -> tuple[float, float, float]:
    """gains() of a time that others leave alone, or of the quietest of a minute."""
    least, found = 1e9, (0.0, 0.0, 0.0)
    end = time.monotonic() + 60
    while least > 0.1 and time.monotonic() < end:
        start, before = time.monotonic(), busy()
        now = gains(codec, arr, turns, encode)
        others = (busy() - before) / (time.monotonic() - start)
        if others < least:
            least, found = others, now
        if others > 0.1:
            time.sleep(1)
    return found


def gains(codec: Any, arr: Any, turns: int, encode: bool) -> tuple[float, float, float]:
    """What a second thread makes of one thread's rate, and what two processes make of it, which is
    as much as the machine has; and of what a chunk costs it: windows in turns, and the median of
    what follow one another, as on a machine that is shared one thread is faster now and then."""
    chunks = [arr.copy() if encode else bytes(memoryview(codec.encode(arr))) for _ in range(8)]
    outs = [] if encode else [np.empty_like(arr) for _ in chunks]
    for chunk, out in zip(chunks, outs):
        codec.decode(chunk, out=out)
    shared = np.frombuffer(mmap.mmap(-1, 4096), np.int64)  # a cache line for each
    on, done = shared[:1], [shared[8 * k : 8 * k + 1] for k in range(1, 5)]
    on[0] = -1
    process, thread = multiprocessing.get_context("fork").Process, threading.Thread
    kinds: list[tuple[Any, list[int]]] = [
        (process, [3]), (process, [3]), (thread, [1, 2]), (thread, [2]),
    ]  # fmt: skip
    workers = [
        make(target=work, args=(codec, chunks, outs, k % 2, on, modes, done[k]))
        for k, (make, modes) in enumerate(kinds)
    ]
    for w in workers:
        w.start()
    clocks = [time.pthread_getcpuclockid(w.ident) for w in workers[2:]]

    def sums() -> Any:
        return np.array([sum(int(d[0]) for d in done), sum(map(time.clock_gettime, clocks))])

    found: list[list[tuple[float, float]]] = []
    for _ in range(turns):
        found.append([])
        for mode in (1, 2, 3):
            on[0] = mode
            time.sleep(0.01)
            before, start = sums(), time.perf_counter()
            time.sleep(0.03)
            count, cost = sums() - before
            found[-1].append((count / (time.perf_counter() - start), cost / max(count, 1)))
    on[0] = 0
    for w in workers:
        w.join()
    over_one = np.array(found)[:, 1:] / np.array(found)[:, :1]
    (threads, cost), (processes, _) = np.median(over_one, 0)
    return float(threads), float(processes), float(cost)


def main() -> None:
    """Prints the table."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 0.1
    wanted = sys.argv[2:]
    numcodecs.blosc.use_threads = ours.blosc.use_threads = False
    z, made = numcodecs.zstd, liblade.versions()
    print(
        f"numcodecs {numcodecs.__version__}: zstd {z.MAJOR_VERSION_NUMBER}."
        f"{z.MINOR_VERSION_NUMBER}.{z.MICRO_VERSION_NUMBER}, lz4 {numcodecs.lz4.VERSION_STRING}, "
        f"c-blosc {numcodecs.blosc.VERSION_STRING}\n"
        + ", ".join(f"{name} {version}" for name, version in made.items())
    )
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
    for encode in (False, True):
        print(
            f"\n{'encode' if encode else 'decode'}, {SIZES[-1]} bytes, over one thread: "
            "two threads: ours, theirs   two processes: ours, theirs   cost: ours, theirs"
        )
        for name, mine, theirs in cases():
            if wanted and name not in wanted:
                continue
            arr = data(name, SIZES[-1])
            turns = int(100 * seconds)
            got = [gains_alone(codec, arr, turns, encode) for codec in (mine, theirs)]
            (a, c, e), (b, d, f) = got
            print(
                f"{name:38} {a:12.2f} {b:7.2f}   {c:19.2f} {d:7.2f}   {e:10.2f} {f:7.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
