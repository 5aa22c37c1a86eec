"""Checksums, what the library knows, and what suits some data.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from . import _lade
from ._arguments import integer, real, text


class Algorithm(NamedTuple):
    """An algorithm that can stand in a pipeline."""

    name: str
    kind: str
    """'codec', 'filter' or 'checksum'."""
    doc: str
    options: tuple[str, ...]
    """The names of its options."""


def algorithms() -> list[Algorithm]:
    """All algorithms that a pipeline can name, with what each is."""
    return [Algorithm(*row) for row in _lade._algorithms()]


def versions() -> dict[str, str]:
    """The version of liblade and of each library that it uses, "zstd" and others.

    Their verdicts on broken data are liblade's (docs/verdicts.md).  "1.14 (its headers)" is what
    was compiled: that library has no call that says what is linked.
    """
    return {"liblade": _lade.__version__, **_lade._linked()}


def checksums(name: str, sources: Iterable[Any]) -> list[int]:
    """The checksums of many arrays, on several threads: integers of 32 or 64 bits.

    name: "crc32c", "crc32", "adler32", "fletcher32", "xxh64", "xxh3", or a relation of crc32's,
        as "crc32-bzip2".
    sources: arrays of any strides, whose bytes in C order count, on the host or on a device.

    Raises ValueError for another name, TypeError for what has no memory.
    """
    return _lade._checksums(text("name", name), sources)


def checksum(name: str, source: Any) -> int:
    """The checksum of one array, as checksums() has it."""
    return _lade._checksums(text("name", name), (source,))[0]


class Suggestion(NamedTuple):
    """A pipeline that was tried on some data."""

    pipeline: str
    """Its text: algorithm= of a Codec, spec= of open()."""
    ratio: float
    """Decoded bytes over encoded bytes."""
    encode_rate: float
    """Decoded bytes a second."""
    decode_rate: float
    """Decoded bytes a second."""
    best_for: tuple[str, ...]
    """What it is the best one for: "speed", "between", "ratio"."""


_GOALS = ("speed", "between", "ratio")


class Suggestions(list[Suggestion]):
    """Pipelines that were tried, the smallest first; str() and repr() are a table.

    speed: the one with the least time to encode and decode, of those that save a third of what the
        smallest saves.
    between: the one with the least time to encode, store, load and decode.
    ratio: the smallest; of those within half a percent the fastest.
    All three are None when nothing saves 2 % of the bytes: store them as they are ("copy").
    """

    dtype: str | None
    """The type that filters were made for; None: bytes."""
    guessed: bool
    """True if it stands for a size of elements that was found by trying."""
    sample_size: int
    """Bytes that were tried."""

    def _best(self, goal: str) -> Suggestion | None:
        return next((one for one in self if goal in one.best_for), None)

    @property
    def speed(self) -> Suggestion | None:
        """Least time to encode and decode."""
        return self._best("speed")

    @property
    def between(self) -> Suggestion | None:
        """Least time to encode, store, load and decode."""
        return self._best("between")

    @property
    def ratio(self) -> Suggestion | None:
        """The smallest."""
        return self._best("ratio")

    def __repr__(self) -> str:
        width = max((len(one.pipeline) for one in self), default=8)
        rows = [f"{'pipeline':{width}} {'ratio':>8} {'encode MB/s':>12} {'decode MB/s':>12}"]
        for one in self:
            rates = f"{one.encode_rate / 1e6:12.0f} {one.decode_rate / 1e6:12.0f}"
            goals = f"  best for {', '.join(one.best_for)}" if one.best_for else ""
            rows.append(f"{one.pipeline:{width}} {one.ratio:8.3f} {rates}{goals}")
        return "\n".join(rows)


def suggest(
    source: Any,
    dtype: str | None = None,
    *,
    chunk_size: int = 1 << 20,
    sample_size: int = 4 << 20,
    threads: int = 1,
    seconds: float = 0.05,
    bandwidth: float = 500e6,
) -> Suggestions:
    """Tries pipelines on a sample of an array, and says which suit it; takes some seconds.

    source: anything with memory; memory of a device is copied to the host.
    dtype: of the elements; None: the array's, and for bytes the size is found by trying.
    chunk_size: bytes of a chunk.  sample_size: bytes that are tried, from all over the array.
    threads: that encode and decode; 0: all.  seconds: each is timed for so long.
    bandwidth: bytes a second of the disk or network, for "between".

    Raises ValueError for an empty array and for options that cannot be.
    """
    chunk_size = integer("chunk_size", chunk_size)
    sample_size = integer("sample_size", sample_size)
    threads = integer("threads", threads)
    seconds, bandwidth = real("seconds", seconds), real("bandwidth", bandwidth)
    if dtype is not None:
        text("dtype", dtype)
    sizes = all(16 <= n < 1 << 62 for n in (chunk_size, sample_size)) and 0 <= threads < 1 << 31
    if not (sizes and 0 < seconds < math.inf and 0 < bandwidth < math.inf):
        raise ValueError(
            f"chunk_size {chunk_size} and sample_size {sample_size} (16 or more), threads {threads}"
            f" (not negative), seconds {seconds} or bandwidth {bandwidth} (above 0, finite) cannot"
            " be"
        )
    array = _lade.as_array(source)
    if array.place == "device":
        array = array.cpu()
    if dtype is None and array.dtype != "|u1":
        dtype = array.dtype
        if dtype[1] not in "iuf" or array.item_size > 8:
            dtype = next((f"u{n}" for n in (8, 4, 2) if array.item_size % n == 0), "u1")
    sample, found, guessed, rows = _lade._suggest(
        array, dtype, chunk_size, sample_size, threads, seconds, bandwidth
    )
    out = Suggestions(
        Suggestion(*row[:4], tuple(name for i, name in enumerate(_GOALS) if row[4] >> i & 1))
        for row in sorted(rows, key=lambda row: -row[1])
    )
    out.sample_size, out.dtype, out.guessed = sample, found, guessed
    return out
