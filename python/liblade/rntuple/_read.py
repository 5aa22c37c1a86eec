"""Columns of some entries into arrays: one call of the library for all of them.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .. import _lade
from .._codec import Codec
from .._enums import BitstreamKind
from .._errors import CorruptError, InputError
from ._spaces import Space
from ._tree import Field, Level, Node, Plan, Want

IGNORE_CHECKSUMS = 1


class Report(NamedTuple):
    """What a read did, or would do."""

    page_count: int
    distinct_count: int
    """Pages that are decoded; the others have equal places in the file."""
    range_count: int
    stored_size: int
    """Bytes of the file that are read."""
    decoded_size: int
    written_size: int
    """Bytes of the results."""
    host_memory: int
    """Bytes beside the results, at most."""
    device_memory: int
    wave_count: int
    ns: int


class Options(NamedTuple):
    """What all reads take."""

    threads: int = 0
    verify: bool = True
    memory: int = 0


class Cuts:
    """The elements of each level that belong to some entries."""

    def __init__(
        self, handle: _lade.NTuple, clusters: list[tuple[int, int]], entries: range
    ) -> None:
        self.handle = handle
        self.clusters = clusters
        self.entries = entries
        self.first_cluster, self.end_cluster, self.whole = self._whole()
        self.parts: dict[Level, tuple[int, int]] = {}

    def _whole(self) -> tuple[int, int, range]:
        """The clusters of the entries, and the entries of these."""
        starts = [first for first, _ in self.clusters]
        if not self.entries:
            return 0, 0, range(0, 0)
        begin = bisect.bisect_right(starts, self.entries.start) - 1
        end = bisect.bisect_left(starts, self.entries.stop)
        last = self.clusters[end - 1]
        return begin, end, range(starts[begin], last[0] + last[1])

    def part(self, level: Level) -> tuple[int, int]:
        """(first, count) of a level's elements."""
        part = self.parts.get(level)
        if part is None:
            entries = self.whole if level.whole else self.entries
            if level.above is None:
                part = entries.start, len(entries)
            elif level.probe is None:
                part = 0, 0
            else:
                column, factor = level.probe
                first, count = self.handle.elements(column, entries.start, len(entries))
                part = first // factor, count // factor
            self.parts[level] = part
        return part

    def cluster_parts(self, column: int) -> list[tuple[int, int]]:
        """A column's elements in each of the clusters."""
        return self.handle.cluster_elements(column)[self.first_cluster : self.end_cluster]


# ---- one read --------------------------------------------------------------------------------

_mover: Codec | None = None


def _move(source: Any, out: Any) -> None:
    """Copies values between arrays of any place."""
    global _mover
    if _mover is None:
        _mover = Codec(algorithm="copy", bitstream_kind=BitstreamKind.RAW)
    _mover.decode_into(source, out)


def _check_out(want: Want, out: Any, count: int) -> None:
    array = _lade.as_array(out)
    if array.dtype.str != want.dtype or array.size != count:
        raise InputError(
            f"out[{want.key!r}] has {array.size} elements of {array.dtype.str}, {count} of "
            f"{want.dtype} are wanted",
            "LADE_E_ARG",
        )


class _Job:
    """The arrays of a read: those that the library writes, and what is made of them."""

    def __init__(self, cuts: Cuts, space: Space, out: Mapping[str, Any], host_first: bool) -> None:
        self.cuts = cuts
        self.space = space
        self.out = out
        self.host_first = host_first
        self.targets: list[tuple[int, int, int, Any]] = []
        self.results: dict[str, Any] = {}
        self.raw: dict[Want, np.ndarray[Any, Any]] = {}
        """What is read for 'counts', 'tag' and 'index', and not a result itself."""

    def add(self, want: Want) -> None:
        first, count = self.cuts.part(want.level)
        first, count = first * want.factor, count * want.factor
        size = count + (want.mode == "offsets")
        given = self.out.get(want.key)
        if given is not None:
            _check_out(want, given, size)
        if want.mode in ("values", "offsets"):
            on_host = self.host_first and want.on_host
            into = given
            if into is None:
                into = np.empty(size, want.dtype) if on_host else self.space.empty(size, want.dtype)
            self.results[want.key] = into
        elif want.mode == "index" and self.targets and self.targets[-1][0] == want.column:
            # The tags before it are of the same column.
            self.raw[want] = self.targets[-1][3]
            return
        else:
            into = np.empty(count + 1 if want.mode == "counts" else count,
                            "<i8" if want.mode == "counts" else "|V12")  # fmt: skip
            self.raw[want] = into
        self.targets.append((want.column, first, count, into))

    def finish(self, want: Want, made: np.ndarray[Any, Any]) -> None:
        """A result that was made on the host."""
        given = self.out.get(want.key)
        if given is not None:
            _move(made, given)
            self.results[want.key] = given
        else:
            self.results[want.key] = made if self.host_first else self.space.upload(made)


def _first_want(node: Node, level: Level) -> Want | None:
    """A column that has the elements of a level."""
    for want in node.wants:
        if want.level is level:
            return want
    for child in node.children:
        found = _first_want(child, level)
        if found:
            return found
    return None


def rebase(cuts: Cuts, node: Node, want: Want, raw: np.ndarray[Any, Any]) -> Any:
    """Tags and indices of a variant: those in a file count from the start of each cluster."""
    pairs = raw.view([("index", "<i8"), ("tag", "<u4")])
    tags, index = pairs["tag"], pairs["index"].copy()
    if tags.size and tags.max() > len(node.children):
        raise _bad_switch(node.field, f"alternative {tags.max()} of {len(node.children)}")
    counts = []
    for child in node.children:
        one = _first_want(child, child.level)
        parts = cuts.cluster_parts(one.column) if one else []
        counts.append([count // one.factor for _, count in parts] if one else None)
    first = cuts.part(want.level)[0] * want.factor
    base = np.zeros(len(node.children) + 1, "<i8")
    index[tags == 0] = 0
    for k, (start, count) in enumerate(cuts.cluster_parts(want.column)):
        low, high = max(start - first, 0), max(min(start + count - first, len(index)), 0)
        part, its = index[low:high], tags[low:high]
        for i, of in enumerate(counts):
            mine = part[its == i + 1]
            if of is not None and mine.size and not 0 <= mine.min() <= mine.max() < of[k]:
                raise _bad_switch(node.field, f"an index beyond the {of[k]} elements of {i + 1}")
        part += base[its]
        base[1:] += [of[k] if of is not None else 0 for of in counts]
    return tags.astype("|i1"), index


def _bad_switch(field: Field, what: str) -> CorruptError:
    return CorruptError(f"rntuple: {field.path}: {what}", "LADE_E_CORRUPT")


def _make(job: _Job, node: Node) -> None:
    """Results that are made of what was read."""
    wants = [want for want in node.wants if want in job.raw]
    if wants and node.kind == "variant":
        tags, index = rebase(job.cuts, node, wants[0], job.raw[wants[0]])
        for want in wants:
            job.finish(want, tags if want.mode == "tag" else index)
    elif wants:
        job.finish(wants[0], np.diff(job.raw[wants[0]]).astype(wants[0].dtype))
    for child in node.children:
        _make(job, child)


def read(
    handle: _lade.NTuple,
    plan: Plan,
    cuts: Cuts,
    space: Space,
    options: Options,
    out: Mapping[str, Any],
    host_first: bool = False,
) -> dict[str, Any]:
    """Flat arrays by key.  'host_first': Arrow's, which are made of some on the host."""
    job = _Job(cuts, space, out, host_first)
    for want in plan.wants:
        job.add(want)
    flags = 0 if options.verify else IGNORE_CHECKSUMS
    if job.targets:
        handle.read(job.targets, options.threads, flags, space.stream, options.memory, 0, 0, False)
    if job.raw:
        for node in plan.nodes:
            _make(job, node)
    return job.results


def explain(handle: _lade.NTuple, plan: Plan, cuts: Cuts, space: Space) -> Report:
    """What read() would do."""
    rows = []
    for want in plan.wants:
        if want.mode == "index":
            continue
        first, count = (n * want.factor for n in cuts.part(want.level))
        plain = want.mode in ("values", "offsets")
        size = {"counts": 8, "tag": 12}.get(want.mode) or np.dtype(want.dtype).itemsize
        size *= count + (want.mode in ("offsets", "counts"))
        kind = space.kind if plain else 0
        rows.append((want.column, first, count, size, kind, space.device if kind else 0))
    return Report(*handle.read(rows, 0, 0, space.stream, 0, 0, 0, True))


def shaped(plan: Plan, cuts: Cuts, space: Space, arrays: dict[str, Any], out: Any) -> Any:
    """The dict that callers get: arrays of fixed sizes are dimensions."""
    result = {}
    for want in plan.wants:
        array = arrays[want.key]
        if want.key not in out and want.dims and want.mode != "offsets":
            array = space.shaped(array, (cuts.part(want.level)[1], *want.dims))
        result[want.key] = array
    return result
