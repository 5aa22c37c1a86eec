"""Element types: those of the C side as numpy's.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

# lade_zarr_class
(BOOL, INT, UINT, FLOAT, FLOAT_X, COMPLEX, RAW, CHARS, UTF32, DATETIME, TIMEDELTA, STRUCT, STRING,
 BYTES) = range(1, 15)  # fmt: skip

_LETTERS = {INT: "i", UINT: "u", FLOAT: "f", COMPLEX: "c", RAW: "V", CHARS: "S"}


class Type(NamedTuple):
    """An element type as zarr_node.c describes it."""

    cls: int
    size: int
    name: str
    unit: str | None
    unit_count: int
    fields: tuple[tuple[str, int, tuple[Any, ...]], ...]
    big: bool


def _other_float(name: str, size: int) -> np.dtype[Any]:
    try:
        import ml_dtypes

        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return found
    except (ImportError, AttributeError):
        return np.dtype(f"V{size}")


def numpy_dtype(type_: Type) -> np.dtype[Any]:
    """numpy's type of elements in memory, which are little-endian."""
    cls, size = type_.cls, type_.size
    if cls == BOOL:
        return np.dtype("?")
    if cls in _LETTERS:
        return np.dtype(f"<{_LETTERS[cls]}{size}")
    if cls == FLOAT_X:
        return _other_float(type_.name, size)
    if cls == UTF32:
        return np.dtype(f"<U{size // 4}")
    if cls in (DATETIME, TIMEDELTA):
        letter = "M" if cls == DATETIME else "m"
        unit = "" if type_.unit in (None, "generic") else f"[{type_.unit_count}{type_.unit}]"
        return np.dtype(f"<{letter}8{unit}")
    if cls == STRUCT:
        return np.dtype({
            "names": [name for name, _, _ in type_.fields],
            "formats": [numpy_dtype(Type(*of)) for _, _, of in type_.fields],
            "offsets": [off for _, off, _ in type_.fields],
            "itemsize": size,
        })  # fmt: skip
    if cls == STRING:
        return np.dtypes.StringDType()
    return np.dtype(object)


def zarr_type(dtype: Any) -> str:
    """The text of an element type for a new array: numpy's "<f4", or JSON of a struct's fields."""
    import json

    if isinstance(dtype, str) and dtype in ("string", "bytes", "str"):
        return "string" if dtype == "str" else dtype
    if isinstance(dtype, str) and (dtype.startswith(("[", "{", '"')) or _is_name(dtype)):
        return dtype
    if dtype is str:
        return "string"
    if dtype is bytes:
        return "bytes"
    found = np.dtype(dtype)
    if isinstance(found, np.dtypes.StringDType):
        return "string"
    if found == object:
        raise TypeError('elements of type object: give "string" or "bytes" as dtype')
    if found.names is not None:
        return json.dumps(_fields(found))
    if found.kind == "V" and found.type is not np.void:
        return str(found)  # of ml_dtypes
    return str(found.str)


def _is_name(text: str) -> bool:
    """Whether it is a name that the C side knows and numpy does not, as bfloat16."""
    try:
        np.dtype(text)
    except TypeError:
        return True
    return False


def _fields(dtype: np.dtype[Any]) -> list[list[Any]]:
    out: list[list[Any]] = []
    for name in dtype.names or ():
        of = dtype[name]
        if of.subdtype is not None:
            raise TypeError(f"field {name!r} is an array, which Zarr does not have")
        out.append([name, _fields(of) if of.names is not None else of.str])
    return out
