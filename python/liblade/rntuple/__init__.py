"""ROOT's RNTuples: columns of files and URLs into arrays of any library, on the host or a device.

    import liblade.rntuple

    with liblade.rntuple.open("data.root") as file:
        events = file["Events"]
        x = events.arrays(["x"])["x"]                     # numpy
        muons = events.arrays(["muons.*"], library="ak")  # an Awkward Array

Importing this needs numpy; the libraries of results are imported when they are asked for.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from .. import _lade
from .._arguments import integer, text
from .._errors import InputError
from ._arrow import to_arrow
from ._awkward import to_awkward
from ._read import Cuts, Options, Report, explain, read, shaped
from ._spaces import Space, make_space
from ._tree import Column, Field, Plan, choose, make_fields, make_plan
from ._write import WriteOptions, Writer, WriteReport, append, create, repair

__all__ = [
    "Column",
    "Field",
    "File",
    "Info",
    "Page",
    "RNTuple",
    "Report",
    "WriteOptions",
    "WriteReport",
    "Writer",
    "append",
    "create",
    "open",
    "repair",
]


class Info(NamedTuple):
    """What an RNTuple says about itself."""

    name: str
    description: str
    writer: str
    version: tuple[int, int, int, int]
    """Of the format."""
    entry_count: int
    field_count: int
    column_count: int
    cluster_count: int
    page_count: int
    stored_size: int
    """Bytes of all pages in the file."""
    decoded_size: int
    """Bytes of all pages when decompressed."""


class Page(NamedTuple):
    """A page: elements of a column."""

    first: int
    """Its first element."""
    element_count: int
    off: int
    """In the file."""
    stored_size: int
    decoded_size: int
    stored: str
    """The type in this cluster."""
    checksum: bool
    bits: int
    setting: int
    """100 * algorithm + level: 1 zlib, 2 lzma, 4 lz4, 5 zstd; 0: none."""


class RNTuple(Mapping[str, Field]):
    """An open RNTuple: a mapping of the names of its top fields to them.

    It never changes; any number of threads may use it.
    """

    def __init__(self, handle: _lade.NTuple) -> None:
        """File[name] makes it."""
        self._handle = handle
        self.info = Info(*handle.about())
        self._clusters = handle.clusters()
        self._plans: dict[tuple[str, ...] | None, Plan] = {}

    # Schemas may have thousands of fields: nobody waits for those that are not looked at.
    @functools.cached_property
    def _tables(self) -> tuple[list[Field], list[Column]]:
        return make_fields(self._handle.fields(), self._handle.columns())

    @property
    def _fields(self) -> list[Field]:
        return self._tables[0]

    @property
    def _columns(self) -> list[Column]:
        return self._tables[1]

    @functools.cached_property
    def _by_path(self) -> dict[str, int]:
        return {field.path: field.index for field in self._fields}

    @functools.cached_property
    def _tops(self) -> dict[str, Field]:
        return {field.name: field for field in self._fields if field.parent is None}

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def num_entries(self) -> int:
        return self.info.entry_count

    @property
    def fields(self) -> list[Field]:
        """All fields; children come after their parent."""
        return list(self._fields)

    @property
    def columns(self) -> list[Column]:
        """All columns, in the order of fields."""
        return list(self._columns)

    @property
    def clusters(self) -> list[range]:
        """The entries of each cluster."""
        return [range(first, first + count) for first, count in self._clusters]

    def pages(self, column: int, cluster: int) -> list[Page]:
        """The pages of a column in a cluster, by their numbers."""
        return [Page(*row) for row in self._handle.pages(column, cluster)]

    def __getitem__(self, path: str) -> Field:
        if path in self._by_path:
            return self._fields[self._by_path[path]]
        try:
            return choose(self._fields, self._by_path, [path])[0]
        except InputError:
            raise KeyError(f"{self.name} has no field {path!r}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._tops)

    def __len__(self) -> int:
        return len(self._tops)

    def __repr__(self) -> str:
        counts = f"{self.num_entries} entries, {len(self)} fields"
        return f"<liblade.rntuple.RNTuple {self.name!r}: {counts}>"

    def __str__(self) -> str:
        """The tree of fields, with types and documents."""
        return "\n".join(map(str, self._tops.values()))

    # ---- reading -------------------------------------------------------------------------

    def _plan(self, fields: str | Iterable[str] | None, out: Mapping[str, Any] | None) -> Plan:
        if fields is None and out is not None:
            return self._plan_of_keys(out)
        names = None if fields is None else (fields,) if isinstance(fields, str) else tuple(fields)
        plan = self._plans.get(names)
        if plan is None:
            plan = make_plan(self._fields, choose(self._fields, self._by_path, names))
            if len(self._plans) > 10_000:
                self._plans.clear()
            self._plans[names] = plan
        return plan

    def _plan_of_keys(self, keys: Iterable[str]) -> Plan:
        """What is read for keys of results."""
        names = []
        for key in keys:
            text("out: a key", key)
            path, _, last = key.rpartition(".")
            plain = key in self._by_path or last not in ("offsets", "bytes", "tag", "index")
            names.append(key if plain else path)
        whole = self._plan(names, None)
        wanted = set(keys)
        missing = wanted - {want.key for want in whole.wants}
        if missing:
            raise InputError(f"out: no column has the key {min(missing)!r}", "LADE_E_NOT_FOUND")
        return Plan(whole.nodes, [want for want in whole.wants if want.key in wanted])

    def _entries(self, entries: Any) -> range:
        """A slice, a range, (first, stop) or None as a range."""
        if entries is None:
            return range(self.num_entries)
        if isinstance(entries, tuple) and len(entries) == 2:
            entries = range(integer("entries", entries[0]), integer("entries", entries[1]))
        if isinstance(entries, slice):
            entries = range(self.num_entries)[entries]
        if not isinstance(entries, range) or (entries.step != 1 and len(entries) > 1):
            raise TypeError(f"entries is {entries!r}, a slice or range of step 1 is wanted")
        first, stop = entries.start, entries.start + len(entries)
        if not 0 <= first <= stop <= self.num_entries:
            raise InputError(
                f"rntuple: entries {first} to {stop}, there are {self.num_entries}", "LADE_E_RANGE"
            )
        return range(first, stop)

    def arrays(
        self,
        fields: str | Iterable[str] | None = None,
        entries: slice | range | tuple[int, int] | None = None,
        *,
        out: Mapping[str, Any] | None = None,
        library: str = "np",
        place: str | None = None,
        stream: Any = None,
        threads: int = 0,
        verify: bool = True,
        memory: int = 0,
    ) -> Any:
        """Reads columns of some entries, all pages in one batch, and waits.

        fields: names, paths and patterns of fnmatch ("muons.p?"); None: all that can be read.  A
            field is read with all below it.
        entries: a slice, a range or (first, stop); None: all.
        out: arrays by the keys of the result, of any library and place, which are written and
            given back.  Without fields exactly these columns are read.
        library: "np", "cupy", "torch", "lade": a dict of arrays.  Keys are paths: "x"; of
            collections "v.offsets" and "v._0"; of texts "s.offsets" and "s.bytes"; of variants
            "w.tag" (0: none), "w.index", and "w._0", "w._1".  "ak": an Awkward Array.  "arrow": an
            object that pyarrow.record_batch() and other users of Arrow's C interfaces take.
        place: "host", "cuda" or "cuda:1"; CuPy's is "cuda" by itself.
        stream: device memory is written after its work; None: the library's current one.
        threads: at most this number; 0: as many as the process may run.
        verify: checksums of pages.
        memory: bytes of stored pages in memory at once; 0: 64 MiB.

        Raises InputError, CorruptError, ChecksumError, UnsupportedError, FileError, DeviceError.
        """
        space = make_space(library, place, stream)
        plan = self._plan(fields, out)
        options = Options(integer("threads", threads), bool(verify), integer("memory", memory))
        if not 0 <= options.threads <= 4096 or not 0 <= options.memory < 1 << 62:
            raise ValueError(f"threads is {threads}, memory is {memory}")
        return self._read(plan, self._entries(entries), space, library, options, out or {})

    def _read(
        self,
        plan: Plan,
        entries: range,
        space: Space,
        library: str,
        options: Options,
        out: Mapping[str, Any],
    ) -> Any:
        cuts = Cuts(self._handle, self._clusters, entries)
        if library not in ("ak", "arrow"):
            arrays = read(self._handle, plan, cuts, space, options, out)
            return shaped(plan, cuts, space, arrays, out)
        on_device = space.kind != 0
        host_first = library == "arrow" and on_device
        arrays = read(self._handle, plan, cuts, space, options, out, host_first)
        if library == "ak":
            return to_awkward(plan.nodes, arrays, len(entries), on_device)
        device = space.device if on_device else -1
        return to_arrow(plan.nodes, arrays, len(entries), space.upload, device)

    def explain(
        self,
        fields: str | Iterable[str] | None = None,
        entries: slice | range | tuple[int, int] | None = None,
        *,
        place: str | None = None,
    ) -> Report:
        """Says what arrays() would read, decode and need; no page is read, but for offsets at the
        ends of entries inside clusters."""
        space = make_space("lade", place, None)
        cuts = Cuts(self._handle, self._clusters, self._entries(entries))
        return explain(self._handle, self._plan(fields, None), cuts, space)

    def steps(
        self,
        step: int | None = None,
        entries: slice | range | tuple[int, int] | None = None,
    ) -> list[range]:
        """The entries of each step of iterate()."""
        some = self._entries(entries)
        if step is None:
            both = [(max(c.start, some.start), min(c.stop, some.stop)) for c in self.clusters]
            return [range(first, stop) for first, stop in both if first < stop]
        step = integer("step", step)
        if step < 1:
            raise InputError(f"step is {step}, it can be 1 or more", "LADE_E_ARG")
        return [some[i : i + step] for i in range(0, len(some), step)]

    def iterate(
        self,
        fields: str | Iterable[str] | None = None,
        step: int | None = None,
        *,
        entries: slice | range | tuple[int, int] | None = None,
        prefetch: int = 1,
        library: str = "np",
        place: str | None = None,
        stream: Any = None,
        threads: int = 0,
        verify: bool = True,
        memory: int = 0,
    ) -> Iterator[Any]:
        """Gives what arrays() gives, step by step; steps() has the entries of each.

        step: entries; None: those of a cluster, which decodes no page twice.
        prefetch: steps that a thread reads while the caller works; 0: none.  Memory is that of
            prefetch + 1 steps, and of what the caller keeps.
        """
        prefetch = integer("prefetch", prefetch)
        if not 0 <= prefetch <= 64:
            raise InputError(f"prefetch is {prefetch}, it can be from 0 to 64", "LADE_E_ARG")
        space = make_space(library, place, stream)
        plan = self._plan(fields, None)
        options = Options(integer("threads", threads), bool(verify), integer("memory", memory))
        ranges = self.steps(step, entries)
        return self._iterate(plan, ranges, space, library, options, prefetch)

    def _iterate(
        self,
        plan: Plan,
        ranges: list[range],
        space: Space,
        library: str,
        options: Options,
        prefetch: int,
    ) -> Iterator[Any]:
        if not prefetch:
            for entries in ranges:
                yield self._read(plan, entries, space, library, options, {})
            return
        ahead: list[Future[Any]] = []
        pool = ThreadPoolExecutor(1, "liblade.rntuple")
        try:
            todo = iter(ranges)
            for _ in ranges:
                for entries in todo:
                    ahead.append(
                        pool.submit(self._read, plan, entries, space, library, options, {})
                    )
                    if len(ahead) > prefetch:
                        break
                yield ahead.pop(0).result()
        finally:
            pool.shutdown(cancel_futures=True)


class File(Mapping[str, RNTuple]):
    """A ROOT file: a mapping of the names of its RNTuples, "events" or "folder/events"."""

    def __init__(self, source: tuple[int, Any, tuple[str, ...]], metadata_max: int) -> None:
        """open() makes it."""
        self._source: tuple[int, Any, tuple[str, ...]] | None = source
        self._metadata_max = metadata_max
        self._names: list[str] = _lade.NTuple.names(*source)
        self._open: dict[str, RNTuple] = {}

    def __getitem__(self, name: str) -> RNTuple:
        if name not in self._open:
            if self._source is None:
                raise ValueError("the file is closed")
            if name not in self._names:
                have = ", ".join(self._names) or "none"
                raise KeyError(f"the file has no RNTuple {name!r}; it has {have}")
            handle = _lade.NTuple(*self._source, name, self._metadata_max)
            self._open[name] = RNTuple(handle)
        return self._open[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def close(self) -> None:
        """Lets go of the file; RNTuples that somebody has stay open."""
        self._source = None
        self._open.clear()

    def __enter__(self) -> File:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<liblade.rntuple.File: {', '.join(self._names)}>"


def open(
    file: Any,
    *,
    headers: Iterable[str] = (),
    metadata_max: int = 0,
) -> File:
    """Opens a ROOT file.

    file: a path; a URL of http or https; the bytes of a file in any memory; or (function, size) of
        a file elsewhere: function([(offset, size), ...]) gives a buffer for each.
    headers: of each request to a server, "Authorization: Bearer ...".
    metadata_max: the most decoded bytes of an envelope; 0: 1 GiB.

    Raises FileError, CorruptError, ChecksumError, UnsupportedError.
    """
    texts = tuple(text("headers: a header", header) for header in headers)
    most = integer("metadata_max", metadata_max)
    source: tuple[int, Any, tuple[str, ...]]
    if isinstance(file, str) and file.startswith(("http://", "https://")):
        source = 1, file, texts
    elif isinstance(file, (str, os.PathLike)):
        source = 0, os.fsencode(file), ()
    elif isinstance(file, tuple) and len(file) == 2 and callable(file[0]):
        source = 3, (file[0], integer("size", file[1])), ()
    else:
        source = 2, file, ()
    if texts and source[0] != 1:
        raise InputError("headers are for URLs", "LADE_E_ARG")
    return File(source, most)
