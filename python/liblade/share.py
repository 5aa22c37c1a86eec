"""Columns and tables that processes publish once and open by name, in the same memory.

    import liblade.share

    with liblade.share.connect() as share:              # the broker: lade share serve
        share.publish("trips", table)                   # pyarrow, pandas, polars, numpy, ...
        trips = share.get("trips")                      # in any process
        trips.to_pyarrow(), trips.to_pandas(), trips["fare"]

Objects come in by Arrow's capsules, or as arrays of numbers; what comes out is in the publisher's
memory, on the host or on a device. docs/share.md has the rules.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any, NamedTuple, Self

from . import _lade
from ._arguments import integer, text
from ._lade import Array, as_array

__all__ = ["Connection", "Dataset", "Info", "Published", "connect", "open_ticket"]

_COPY = {"if_needed": 0, "never": 1, "always": 2}
_CHECK = {None: 0, "layout": 1, "full": 2}
_FORMATS = {
    "int8": "c", "uint8": "C", "int16": "s", "uint16": "S", "int32": "i", "uint32": "I",
    "int64": "l", "uint64": "L", "float16": "e", "float32": "f", "float64": "g",
}  # fmt: skip
_STEP_MS = 200  # waits look for signals that often
_TICKET = "lade-share:"


class Published(NamedTuple):
    """What was published: the version, bytes that were shared and copied, and why some were.

    staged are bytes of a device's columns that went through the host; leased are shared bytes of
    memory that was lent.
    """

    version: int
    shared: int
    copied: int
    why: str
    staged: int
    leased: int


class Info(NamedTuple):
    """What the broker knows of a version; time is in nanoseconds since 1970.

    place, in a listing, is where it is: "memory", "compressed" or "disk".
    """

    name: str
    version: int
    rows: int
    bytes: int
    time: int
    columns: int
    batches: int
    uid: int
    pid: int
    on_device: bool
    copied: bool  # an opened version of a device, copied to the host
    device: int  # an opened version: the device's number here; -1: the host
    leased: bool  # it is its publisher's memory, and ends with the connection
    place: str


_PLACES = ("memory", "compressed", "disk")


def _info(row: tuple[Any, ...]) -> Info:
    return Info(*(*row[:-1], _PLACES[row[-1]]))


def _one_of(name: str, table: dict[Any, int], value: Any) -> int:
    if value not in table:
        raise ValueError(f"{name} is {value!r}, it can be {', '.join(map(repr, table))}")
    return table[value]


def _capsules(source: Any) -> tuple[Any, tuple[Any, ...]] | Array:
    """A schema, and arrays of it: of the host, or of a device; or an array with a shape."""
    if isinstance(source, Dataset):
        return source.__arrow_c_schema__(), source._batches()
    if hasattr(source, "__arrow_c_device_array__"):
        schema, array = source.__arrow_c_device_array__()
        return schema, (array,)
    if hasattr(source, "__arrow_c_stream__"):
        return _lade.ShareConnection.read_stream(source.__arrow_c_stream__())
    if hasattr(source, "__arrow_c_array__"):
        schema, array = source.__arrow_c_array__()
        return schema, (array,)
    array = as_array(source)
    if str(array.dtype) not in _FORMATS or (array.ndim != 1 and array.place == "device"):
        raise TypeError(
            f"{type(source).__name__} has no Arrow capsules, and is no array of numbers, on a "
            f"device with one dimension: {array.ndim} dimensions of {array.dtype}"
        )
    if array.ndim != 1:
        array.synchronize()
        return array
    if array.strides[0] != array.item_size:
        raise ValueError(f"its elements are {array.strides[0]} bytes apart, want {array.item_size}")
    tree = ("", _FORMATS[str(array.dtype)], 0, array.shape[0], 0, (None, array), ())
    array.synchronize()
    on_device = array.place == "device"
    data = _lade.ArrowData(tree, array.device_id if on_device else -1)
    if on_device:
        schema, capsule = data.__arrow_c_device_array__()
    else:
        schema, capsule = data.__arrow_c_array__()
    return schema, (capsule,)


def _device_of(place: str) -> int:
    """The number of a device; -1: the host."""
    kind, _, number = text("place", place).partition(":")
    if kind == "host" and not number:
        return -1
    if kind in ("gpu", "cuda", "device") and (not number or number.isdigit()):
        return int(number or 0)
    raise ValueError(f"place is {place!r}, it can be 'host', 'gpu' or 'gpu:1'")


class _Closing:
    """Closed at the end of a with statement."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class Connection(_Closing):
    """A connection to a broker; any number of threads may use it."""

    def __init__(self, path: str | os.PathLike[str] | None = None, *, timeout: float = 10.0):
        self._path = None if path is None else os.fspath(path)
        self._own: _lade.ShareConnection | None = _lade.ShareConnection(
            self._path, max(1, math.ceil(timeout * 1000))
        )
        self._lent: list[Any] = []  # what must stay as it is: of old versions, too

    @property
    def _connection(self) -> _lade.ShareConnection:
        if self._own is None:
            raise ValueError("the connection is closed")
        return self._own

    def close(self) -> None:
        """End the connection; data sets stay valid, and what was lent ends."""
        self._own = None
        self._lent.clear()

    def publish(
        self,
        name: str,
        source: Any,
        *,
        copy: str = "if_needed",
        compact: bool = False,
        wait: float = 0.0,
    ) -> Published:
        """Publish a new version of a name.

        source is anything with Arrow's capsules (pyarrow, pandas, polars, cudf's columns, a
        Dataset), or an array of numbers (NumPy, CuPy, torch); on a device with one dimension. What
        is on a device stays there. copy is "if_needed", "never" or "always"; compact=True is
        "always": only the rows of a slice become readable. With "never" memory of others on a
        device is lent: the version ends with this connection, which keeps the source until then,
        also of older versions, and nobody must write to it. wait is how many seconds to wait for
        room, where all that is published is in use. The result says what was copied, and why.
        """
        mode = _one_of("copy", _COPY, copy)
        if not wait >= 0:
            raise ValueError(f"wait is {wait!r}, want seconds from 0 on")
        data = _capsules(source)
        how = (2 if compact else mode, math.ceil(min(wait * 1000, (1 << 32) - 1)))
        if isinstance(data, Array):
            row = self._connection.publish_tensor(text("name", name), data, *how)
        else:
            row = self._connection.publish(text("name", name), *data, *how)
        done = Published(*row)
        if done.leased:
            self._lent.append((source, data))
        return done

    def get(
        self,
        name: str,
        version: int = 0,
        *,
        check: str | None = None,
        writable: bool = False,
        place: str | None = None,
    ) -> Dataset:
        """Open the latest version of a name, or that version.

        place "gpu" or "gpu:1" wants columns that are on that device; "host" wants them on the
        host: those of a device are copied there, and info.copied says so. None takes both.

        check is "layout" or "full" (None: full for versions of other users). With writable=True
        pages may be written and are then the caller's own.
        """
        number = integer("version", version)
        level = _one_of("check", _CHECK, check)
        device = None if place is None else _device_of(place)
        opened = Dataset(
            _lade.ShareVersion(
                self._connection, text("name", name), number, level, writable, device == -1
            ),
            self._path,
        )
        if device is not None and opened.info.device != device:
            where = "the host" if opened.info.device < 0 else f"device {opened.info.device}"
            raise ValueError(f"{name!r} is on {where}, and {place!r} was asked for")
        return opened

    def empty(self, size: int, place: str = "host") -> Array:
        """Zeros, as an Array of bytes, that are published without a copy.

        place "gpu" or "gpu:1" is a device's memory. They become read-only when they are published:
        writing to them then ends the process.
        """
        return self._connection.alloc(integer("size", size), _device_of(place))

    def datasets(self, prefix: str | None = None) -> list[Info]:
        """The latest version of each name that begins with prefix, in order."""
        return [_info(row) for row in self._connection.list(prefix)]

    def __iter__(self) -> Iterator[str]:
        return iter([one.name for one in self.datasets()])

    def remove(self, name: str, version: int = 0) -> None:
        """Remove a name, or one version; those who have it open keep it."""
        self._connection.remove(text("name", name), integer("version", version))

    def wait(self, name: str, *, after: int = 0, timeout: float | None = None) -> int:
        """Wait until a name has a version above after; returns it, or raises TimeoutError."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _STEP_MS
            if end is not None:
                left = max(0, min(left, math.ceil((end - time.monotonic()) * 1000)))
            version = self._connection.wait(text("name", name), integer("after", after), left)
            if version is not None:
                return version
            if end is not None and time.monotonic() >= end:
                raise TimeoutError(f"{name!r} has no version above {after} after {timeout} s")

    def statistics(self) -> dict[str, int]:
        """What the broker holds and has done."""
        return self._connection.statistics()


class Dataset(_Closing):
    """An opened version: a table, or a column. Its memory stays mapped while anything uses it."""

    def __init__(self, version: _lade.ShareVersion, path: str | None):
        self._own: _lade.ShareVersion | None = version
        self._path = path
        self.info = _info(version.info())

    @property
    def _version(self) -> _lade.ShareVersion:
        if self._own is None:
            raise ValueError(f"{self.info.name!r} is closed")
        return self._own

    def close(self) -> None:
        """Release the version; arrays that were made of it stay valid."""
        self._own = None

    def __len__(self) -> int:
        return self.info.rows

    def __repr__(self) -> str:
        i = self.info
        return f"<liblade.share.Dataset {i.name}@{i.version}, {i.rows} rows, {i.columns} columns>"

    @property
    def ticket(self) -> str:
        """A text that open_ticket() opens in another process of this machine."""
        return f"{_TICKET}{self._path or ''}#{self.info.name}@{self.info.version}"

    def __arrow_c_schema__(self) -> Any:
        return self._version.schema()

    def _on_host(self) -> _lade.ShareVersion:
        if self.info.device >= 0:
            raise ValueError(
                f"{self.info.name!r} is on device {self.info.device}: take numbers() or "
                "__arrow_c_device_array__(), or get(..., place='host') for a copy"
            )
        return self._version

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._on_host().stream()

    def __arrow_c_device_array__(
        self, requested_schema: Any = None, **options: Any
    ) -> tuple[Any, Any]:
        if self.info.batches != 1:
            raise ValueError(f"{self.info.name!r} has {self.info.batches} batches, want one")
        return self._version.schema(), self._version.device_array(0)

    def _batches(self) -> tuple[Any, ...]:
        return tuple(self._version.device_array(i) for i in range(self.info.batches))

    def to_pyarrow(self) -> Any:
        """A pyarrow.Table, or a pyarrow.ChunkedArray of a column, also of structs with nulls."""
        import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

        self._on_host()
        field = pa.field(self)
        nulls = field.nullable and pa.chunked_array(self).null_count
        if pa.types.is_struct(field.type) and not nulls:
            return pa.RecordBatchReader.from_stream(self).read_all()
        return pa.chunked_array(self)

    def to_pandas(self, **options: Any) -> Any:
        """A pandas.DataFrame or Series; the options are those of pyarrow's to_pandas()."""
        return self.to_pyarrow().to_pandas(**options)

    def to_polars(self) -> Any:
        """A polars.DataFrame or Series."""
        import polars as pl  # type: ignore[import-not-found,unused-ignore]

        return pl.from_arrow(self.to_pyarrow())

    def numbers(self, column: int | None = None, batch: int = 0) -> Array:
        """Numbers without nulls, of one batch, as an Array in place: for NumPy, CuPy or torch.

        column is that of a table; without it the data set is a column, of numbers or, on the host,
        of fixed-size lists of them, which are an Array with a shape.
        """
        child = -1 if column is None else integer("column", column)
        return self._version.numbers(integer("batch", batch), child)

    def __getitem__(self, name: str) -> Any:
        """A column of a table, as a pyarrow.ChunkedArray."""
        return self.to_pyarrow()[text("name", name)]


def connect(path: str | os.PathLike[str] | None = None, *, timeout: float = 10.0) -> Connection:
    """Connect to the user's broker, or to that of a socket; calls wait for timeout seconds."""
    return Connection(path, timeout=timeout)


def open_ticket(ticket: str, *, path: str | os.PathLike[str] | None = None) -> Dataset:
    """Open what a Dataset's ticket names, through its broker or that of path."""
    head, _, name = text("ticket", ticket).partition("#")
    name, _, version = name.rpartition("@")
    if not head.startswith(_TICKET) or not name or not version.isdigit():
        raise ValueError(f"{ticket!r} is no ticket: want {_TICKET}PATH#NAME@VERSION")
    with connect(path or head[len(_TICKET) :] or None) as connection:
        return connection.get(name, int(version))
