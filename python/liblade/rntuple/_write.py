"""Writing RNTuples: the fields follow from the data.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np

from .. import _lade
from .._arguments import integer, text
from .._errors import InputError
from ._data import Data, from_any
from ._tree import Column, Field, make_fields

_NEW, _REPLACE, _APPEND = range(3)
_NO_CHECKSUMS, _SYNC, _NO_SPLIT = 1, 2, 4
_ROLES = {"list": 1, "option": 1, "record": 2, "variant": 3}
_TOP = 2**64 - 1


class WriteReport(NamedTuple):
    """What fills and commits did since the writer was opened."""

    entry_count: int
    cluster_count: int
    page_count: int
    raw_count: int
    """Pages that are stored, since they did not shrink."""
    source_size: int
    """Bytes of elements."""
    decoded_size: int
    """The same in their stored types."""
    stored_size: int
    """Bytes of pages in the file."""
    file_size: int
    ns: int


def _rows(
    data: Data,
    name: str,
    path: str,
    parent: int,
    writer: Writer,
    rows: list[Any],
    codec: str | None = None,
) -> None:
    """A field and those below it, as NTupleWriter.add() takes them; 'codec' is that of fields
    above."""
    stored, type_ = writer._of(writer._stored, path), data.type
    if data.dtype == "<f2" and stored is None:
        stored = "Real16"
    named = writer._of(writer._types, path)
    bits = named is not None and named.replace(" ", "").startswith("std::bitset<")
    if bits and (data.kind != "array" or data.children[0][1].dtype != "|b1"):
        raise InputError(f"{path}: a bitset wants an array of booleans", "LADE_E_DTYPE")
    number = writer._count + len(rows)
    doc = writer._of(writer._descriptions, path) or ""
    codec = writer._codecs.get(path, codec)
    its = writer._of(writer._codecs, path) if codec is None else codec
    role = _ROLES.get(data.kind, 0)
    rows.append((name, named or type_, "", doc, parent, data.size, stored, its, role))
    for child, inner in () if bits else data.children:
        _rows(inner, child, f"{path}.{child}", number, writer, rows, codec)


def _misfit(field: Field, data: Data) -> InputError:
    return InputError(
        f"{field.path} is {field.type or field.kind}; it was given {data.type or data.kind}",
        "LADE_E_DTYPE",
    )


def _fill(field: Field, data: Data, fills: list[Any]) -> None:
    """The columns of a field, from data that has its shape."""
    if field.kind == "alias":
        _fill(field.children[0], data, fills)
        return
    if field.kind == "option" and data.kind != "option":
        data = Data("option", data.count, "", offsets=np.arange(data.count + 1, dtype="<i8"),
                    children=[("_0", data)])  # fmt: skip
    if field.kind == "bits" and data.kind == "array" and data.size == field.array_size:
        data = data.children[0][1]
    kind = "value" if field.kind == "bits" else field.kind
    given = dict(data.children)
    names = [] if field.kind == "bits" else [child.name for child in field.children]
    if data.kind != kind or data.size != (field.array_size if kind == "array" else 0):
        raise _misfit(field, data)
    if set(given) != set(names):
        raise _misfit(field, data)
    column = field.first_column
    if kind in ("list", "option", "string"):
        fills.append((column, data.offsets, "<i8"))
    if kind in ("value", "string"):
        fills.append((column + (kind == "string"), data.values, data.dtype))
    if kind == "variant":
        fills.append((column, data.tags, "|u1"))
    for child in field.children:
        _fill(child, given[child.name], fills)


class WriteOptions(TypedDict, total=False):
    """Options of create() and append(), which may all be left out."""

    codec: str | None
    """"zstd(level=5)" by default; "lz4", "zlib(level=1)", "lzma", "none"."""
    codecs: Mapping[str, str]
    """By the path of a field, or a pattern of fnmatch, as the next three: its codec, and that of
    the fields below it."""
    types: Mapping[str, str]
    """Its type in C++ ("std::bitset<12>", "std::byte")."""
    stored: Mapping[str, str]
    """The types of its columns in the file ("Real32Trunc(16)", "Real32Quant(8,-2,3)",
    "Index32")."""
    descriptions: Mapping[str, str]
    """A document."""
    page_size: int
    """Bytes of elements, at most, as the next one; 0: 1 MiB."""
    cluster_size: int
    """0: 128 MiB."""
    checksums: bool
    """Of pages; True by default."""
    split: bool
    """Encodings that split, where the codec is not "none"; True by default."""
    sync: bool
    """A commit returns when the bytes are on the disk."""
    memory: int
    """Bytes of encoded pages at once, but for one page; 0: 64 MiB."""
    threads: int
    """0: all cores."""


class Writer:
    """Writes an RNTuple.  As a context manager it commits, unless an exception leaves the block."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        name: str | None,
        mode: int,
        description: str,
        *,
        codec: str | None = None,
        codecs: Mapping[str, str] = {},
        types: Mapping[str, str] = {},
        stored: Mapping[str, str] = {},
        descriptions: Mapping[str, str] = {},
        page_size: int = 0,
        cluster_size: int = 0,
        checksums: bool = True,
        split: bool = True,
        sync: bool = False,
        memory: int = 0,
        threads: int = 0,
    ) -> None:
        """create() and append() make it."""
        flags = 0 if checksums else _NO_CHECKSUMS
        flags |= (_SYNC if sync else 0) | (0 if split else _NO_SPLIT)
        sizes = {"page_size": page_size, "cluster_size": cluster_size, "memory": memory}
        for key, value in sizes.items():
            if not 0 <= integer(key, value) < 1 << 62:
                raise InputError(f"{key} is {value}", "LADE_E_ARG")
        if not 0 <= integer("threads", threads) <= 4096:
            raise InputError(f"threads is {threads}, it can be from 0 to 4096", "LADE_E_ARG")
        self._codecs, self._types = dict(codecs), dict(types)
        self._stored, self._descriptions = dict(stored), dict(descriptions)
        self._handle = _lade.NTupleWriter(
            os.fsencode(path),
            None if name is None else text("name", name),
            text("description", description),
            mode,
            flags,
            codec,
            page_size,
            cluster_size,
            memory,
            threads,
        )
        self._fields: list[Field] = []
        self._columns: list[Column] = []
        self._look()

    def _look(self) -> None:
        self._fields, self._columns = make_fields(*self._handle.schema())

    @property
    def _count(self) -> int:
        return len(self._fields)

    @staticmethod
    def _of(table: Mapping[str, str], path: str) -> str | None:
        """What a table says about a path: by itself, or by the first pattern."""
        if path in table:
            return table[path]
        return next((v for k, v in table.items() if fnmatch.fnmatchcase(path, k)), None)

    @property
    def fields(self) -> list[Field]:
        """The fields so far."""
        return list(self._fields)

    def fill(self, data: Any) -> WriteReport:
        """Writes entries: a dict of arrays, an Awkward Array of records, or a table of Arrow's.

        Fields that are not there yet are added; entries before have zeros and empty collections
        in them.  Give many entries at once: a call makes at least one cluster.
        """
        whole = from_any("", data)
        if whole.kind != "record":
            raise InputError(f"fields with names are wanted, not {whole.kind}", "LADE_E_ARG")
        tops = {field.name: field for field in self._fields if field.parent is None}
        rows: list[Any] = []
        for name, one in whole.children:
            if name not in tops:
                _rows(one, name, name, _TOP, self, rows)
        if rows:
            self._handle.add(rows)
            self._look()
            tops = {field.name: field for field in self._fields if field.parent is None}
        fills: list[Any] = []
        for name, one in whole.children:
            _fill(tops[name], one, fills)
        return WriteReport(*self._handle.fill(whole.count, fills))

    def commit(self) -> None:
        """Makes all entries so far part of the file; more may follow."""
        self._handle.commit()

    def close(self) -> None:
        """Ends the writing; what was not committed is lost."""
        self._handle.close()

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self.commit()
        finally:
            self.close()


def create(
    path: str | os.PathLike[str],
    name: str,
    *,
    replace: bool = False,
    description: str = "",
    **options: Unpack[WriteOptions],
) -> Writer:
    """Begins a new file with one RNTuple; it gets its name at the first commit.

    replace: a file that is there is replaced then; else it is a FileError.
    options: WriteOptions has them.
    """
    return Writer(path, name, _REPLACE if replace else _NEW, description, **options)


def append(
    path: str | os.PathLike[str], name: str | None = None, **options: Unpack[WriteOptions]
) -> Writer:
    """Goes on with an RNTuple of liblade, ROOT or uproot; WriteOptions has the options.  The file
    stays as it is until a commit; nobody else may write to it meanwhile."""
    return Writer(path, name, _APPEND, "", **options)


def repair(path: str | os.PathLike[str], name: str | None = None, *, dry: bool = False) -> bool:
    """Mends an anchor that was torn during an append, and says whether it needed it; dry: looks
    only.  Nobody else may use the file meanwhile."""
    return _lade.NTupleWriter.repair(os.fsencode(path), name, dry)
