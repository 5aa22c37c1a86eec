"""What is written: arrays of any library as one kind of tree.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import _lade
from .._errors import InputError

_TYPES = {
    "|b1": "bool", "|i1": "std::int8_t", "|u1": "std::uint8_t", "<i2": "std::int16_t",
    "<u2": "std::uint16_t", "<i4": "std::int32_t", "<u4": "std::uint32_t",
    "<i8": "std::int64_t", "<u8": "std::uint64_t", "<f2": "float", "<f4": "float",
    "<f8": "double",
}  # fmt: skip


class Data:
    """Values of a field.  'kind' is that of Field: value, string, list, option, record, variant
    or array."""

    def __init__(
        self,
        kind: str,
        count: int,
        type: str,
        *,
        values: Any = None,
        dtype: str = "",
        offsets: Any = None,
        tags: Any = None,
        children: list[tuple[str, Data]] | None = None,
        size: int = 0,
    ) -> None:
        self.kind = kind
        self.count = count
        self.type = type
        """In C++; "" where there is no name for it."""
        self.values = values
        """Of numbers, and the bytes of texts."""
        self.dtype = dtype
        self.offsets = offsets
        self.tags = tags
        """Of a variant: from 1 on; 0: none."""
        self.children = children or []
        self.size = size
        """Of an array."""


def _named(text: str, *inner: Data) -> str:
    """The name of a template, unless what is in it has none."""
    names = [data.type for data in inner]
    return text.format(",".join(names)) if all(names) else ""


def numbers(name: str, array: Any) -> Data:
    """An array of numbers in any memory; further dimensions are arrays of fixed sizes."""
    seen = _lade.as_array(array)
    dtype = seen.dtype.str
    if dtype.startswith(">"):
        array = np.asarray(array).astype(np.dtype(dtype).newbyteorder("<"))
        dtype = array.dtype.str
    if dtype not in _TYPES:
        raise InputError(f"{name}: elements of type {dtype} have no type in C++", "LADE_E_DTYPE")
    if not seen.ndim:
        raise InputError(f"{name}: an array without dimensions", "LADE_E_ARG")
    count = seen.shape[0]
    total = count
    for size in seen.shape[1:]:
        total *= size
    data = Data("value", total, _TYPES[dtype], values=array, dtype=dtype)
    for size in reversed(seen.shape[1:]):
        if not size:
            raise InputError(f"{name}: an array of 0 elements an entry", "LADE_E_ARG")
        total //= size
        type_ = _named(f"std::array<{{}},{size}>", data)
        data = Data("array", total, type_, children=[("_0", data)], size=size)
    return data


def _list(offsets: Any, inner: Data, kind: str = "list") -> Data:
    # Readers know an option by its type alone.
    type_ = _named("std::vector<{}>", inner) if kind == "list" else f"std::optional<{inner.type}>"
    return Data(kind, len(offsets) - 1, type_, offsets=offsets, children=[("_0", inner)])


def _record(children: list[tuple[str, Data]], count: int, is_tuple: bool) -> Data:
    inner = [data for _, data in children]
    text = "std::pair<{}>" if len(inner) == 2 else "std::tuple<{}>"
    return Data("record", count, _named(text, *inner) if is_tuple else "", children=children)


def _texts(array: Any) -> Data:
    """numpy's texts."""
    parts = [str(text).encode() for text in array.tolist()]
    offsets = np.zeros(len(parts) + 1, "<i8")
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    values = np.frombuffer(b"".join(parts), "|u1")
    return Data("string", len(parts), "std::string", values=values, dtype="|u1", offsets=offsets)


# ---- Awkward -----------------------------------------------------------------------------------


def _valid(layout: Any) -> tuple[Any, Any]:
    """(which elements are there, those without the others); (None, content): all are."""
    if not layout.is_option:
        return None, layout
    there = np.asarray(layout.mask_as_bool(valid_when=True))[: layout.length]
    return there, layout.project()


class _Awkward:
    def __init__(self, strip: bool) -> None:
        self.strip = strip
        """Options without a missing value are none: Arrow's columns may all be missing."""
        self.ak: Any = importlib.import_module("awkward")

    def data(self, name: str, layout: Any) -> Data:
        ak = self.ak
        if layout.is_indexed and not layout.is_option:
            layout = layout.project()
        if layout.is_option:
            there, content = _valid(layout)
            if self.strip and there.all():
                return self.data(name, content[: len(there)])
            if content.is_union:
                return self._variant(name, content, there)
            offsets = np.zeros(len(there) + 1, "<i8")
            np.cumsum(there, out=offsets[1:])
            return _list(offsets, self.data(name, content), "option")
        if layout.is_numpy:
            return numbers(name, np.asarray(layout.data))
        if layout.is_list:
            return self._list(name, layout)
        if layout.is_record:
            count = layout.length
            names = [f"_{i}" for i in range(len(layout.contents))]
            names = names if layout.is_tuple else layout.fields
            children = [
                (field, self.data(f"{name}.{field}", content[:count]))
                for field, content in zip(names, layout.contents, strict=True)
            ]
            return _record(children, count, layout.is_tuple)
        if layout.is_union:
            return self._variant(name, layout, None)
        raise InputError(f"{name}: {type(layout).__name__}: its type is not known", "LADE_E_DTYPE")

    def _list(self, name: str, layout: Any) -> Data:
        what = layout.parameter("__array__")
        if layout.is_regular and what is None and layout.size:
            inner = self.data(name + "._0", layout.content[: layout.length * layout.size])
            text = _named(f"std::array<{{}},{layout.size}>", inner)
            children = [("_0", inner)]
            return Data("array", layout.length, text, children=children, size=layout.size)
        layout = layout.to_ListOffsetArray64(True)
        offsets = np.asarray(layout.offsets.data)
        content = layout.content[: offsets[-1]]
        if what == "string":
            values = np.asarray(content.data)
            return Data(
                "string", layout.length, "std::string", values=values, dtype="|u1", offsets=offsets
            )
        return _list(offsets, self.data(name + "._0", content))

    def _variant(self, name: str, layout: Any, there: Any) -> Data:
        """Alternatives in the order of the contents; what is missing has number 0."""
        tags = np.asarray(layout.tags.data)[: layout.length]
        numbers_ = np.zeros(layout.length, "|u1")
        children: list[tuple[str, Data]] = []
        for i, content in enumerate(layout.contents):
            inner = content.content if content.is_option else content
            if inner.is_unknown:
                continue
            mine, some = tags == i, layout.project(i)
            keep, some = _valid(some)
            number = np.full(int(mine.sum()), len(children) + 1, "|u1")
            numbers_[mine] = number if keep is None else number * keep
            children.append((f"_{len(children)}", self.data(f"{name}._{i}", some)))
        if there is not None:
            spread = np.zeros(len(there), "|u1")
            spread[there] = numbers_
            numbers_ = spread
        text = _named("std::variant<{}>", *(data for _, data in children))
        return Data("variant", len(numbers_), text, tags=numbers_, children=children)


def from_awkward(name: str, array: Any, strip: bool = False) -> Data:
    ak: Any = importlib.import_module("awkward")
    layout = ak.to_layout(ak.to_packed(ak.to_backend(array, "cpu")))
    return _Awkward(strip).data(name, layout)


# ---- anything ----------------------------------------------------------------------------------


def _is_of(value: Any, module: str) -> bool:
    return type(value).__module__.split(".")[0] == module and module in sys.modules


def _is_arrow(value: Any) -> bool:
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")


def _from_arrow(name: str, value: Any) -> Data:
    """Tables, batches and arrays of Arrow, through Awkward."""
    ak: Any = importlib.import_module("awkward")
    pa: Any = importlib.import_module("pyarrow")
    whole = hasattr(value, "column_names") or not _is_of(value, "pyarrow")
    table = pa.table(value) if whole else pa.table({"_": value})
    # A stream has no slices: Awkward 2.14 takes the bits of nulls of a slice from its array's
    # beginning.
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    array = ak.from_arrow(pa.ipc.open_stream(sink.getvalue()).read_all())
    return from_awkward(name, array if whole else array["_"], strip=True)


def from_any(name: str, value: Any) -> Data:
    """Values of a field, or of all fields of an RNTuple."""
    if isinstance(value, Data):
        return value
    if isinstance(value, Mapping):
        children = [(str(k), from_any(f"{name}.{k}" if name else str(k), v))
                    for k, v in value.items()]  # fmt: skip
        counts = {key: data.count for key, data in children}
        if len(set(counts.values())) > 1:
            text = ", ".join(f"{key} has {count}" for key, count in counts.items())
            name = name or "the fields"
            raise InputError(f"{name}: their lengths differ: {text}", "LADE_E_RANGE")
        return _record(children, next(iter(counts.values()), 0), False)
    if _is_of(value, "awkward"):
        return from_awkward(name, value)
    if not isinstance(value, np.ndarray) and _is_arrow(value):
        return _from_arrow(name, value)
    if isinstance(value, np.ndarray):
        if value.dtype.names:
            fields = {field: value[field] for field in value.dtype.names}
            return from_any(name, fields)
        if value.dtype.kind in "UT":
            return _texts(value)
        if value.dtype.kind != "O":
            return numbers(name, value)
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        ak: Any = importlib.import_module("awkward")
        return from_awkward(name, ak.from_iter(value))
    return numbers(name, value)
