"""Keys of numpy as selections of the C side.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from types import EllipsisType
from typing import Any, Literal, NamedTuple

import numpy as np

# lade_zarr_mode
ORTHOGONAL, POINTS, BLOCKS, WHERE = range(4)

_SIMPLE = (int, slice, EllipsisType)

Kind = Literal["basic", "orthogonal", "points", "blocks"]


class Selection(NamedTuple):
    """A selection of the C side, and what numpy does with its result."""

    key: Any
    mode: int
    field: str | None = None
    then: Any = None  # a key for the result; None: it is the result


def is_simple(key: Any) -> bool:
    """Whether a key has integers, slices and an ellipsis only."""
    if type(key) is tuple:
        return all(type(k) in _SIMPLE for k in key)
    return type(key) in _SIMPLE


def _is_field(key: Any) -> bool:
    return isinstance(key, str)


def split_field(key: Any) -> tuple[Any, str | None]:
    """A name in a key, as zarr-python has it, is a field."""
    if isinstance(key, str):
        return (), key
    if type(key) is tuple and any(map(_is_field, key)):
        names = [k for k in key if _is_field(k)]
        if len(names) > 1:
            raise IndexError(f"a key has one field at most, this one {names!r}")
        return tuple(k for k in key if not _is_field(k)), names[0]
    return key, None


def _listed(item: Any) -> Any:
    """A list or array of integers or bools as a contiguous one of int64 or bool."""
    if isinstance(item, (slice, EllipsisType)) or item is None:
        return item
    if isinstance(item, (int, np.integer)) and not isinstance(item, (bool, np.bool_)):
        return int(item)
    array = np.asarray(item)
    if array.size == 0 and array.dtype.kind == "f" and not isinstance(item, np.ndarray):
        array = array.astype(np.int64)  # an empty list
    if array.dtype.kind == "b":
        return np.ascontiguousarray(array) if array.ndim else array
    if array.dtype.kind not in "iu":
        raise IndexError(f"an index is an array of {array.dtype}, not of integers or bools")
    if array.ndim == 0:
        return int(array)
    if array.dtype.kind == "u" and array.size and int(array.max()) >= 1 << 63:
        raise IndexError(f"index {int(array.max())} is too large")
    return np.ascontiguousarray(array, dtype=np.int64)


def _expand(items: list[Any], ndim: int) -> list[Any]:
    """Items for all axes: an ellipsis becomes slices; newaxis is not counted."""
    used = sum(_axes_of(i) for i in items if i is not Ellipsis and i is not None)
    if used > ndim:
        raise IndexError(f"{used} indices for an array of {ndim} axes")
    out: list[Any] = []
    seen = False
    for item in items:
        if item is Ellipsis:
            if seen:
                raise IndexError("a key can have one ellipsis ('...')")
            seen = True
            out += [slice(None)] * (ndim - used)
        else:
            out.append(item)
    if not seen:
        out += [slice(None)] * (ndim - used)
    return out


def _axes_of(item: Any) -> int:
    return item.ndim if isinstance(item, np.ndarray) and item.dtype.kind == "b" else 1


def _check_mask(mask: np.ndarray[Any, Any], shape: tuple[int, ...]) -> None:
    if mask.shape != shape:
        raise IndexError(f"a mask has shape {mask.shape}, the axes that it selects have {shape}")


def orthogonal(key: Any, shape: tuple[int, ...]) -> Selection:
    """Each axis by itself, as .oindex has it."""
    key, field = split_field(key)
    given = [_listed(k) for k in (key if type(key) is tuple else (key,))]
    items = _expand(given, len(shape))
    for axis, item in enumerate(items):
        if isinstance(item, np.ndarray):
            if item.ndim != 1:
                raise IndexError(
                    f"axis {axis}: a list of indices has {item.ndim} dimensions, want 1"
                )
            if item.dtype.kind == "b":
                _check_mask(item, shape[axis : axis + 1])
    return Selection(tuple(items), ORTHOGONAL, field)


def points(key: Any, shape: tuple[int, ...]) -> Selection:
    """Points, as .vindex has it: lists for all axes, broadcast together; or a mask of the array."""
    key, field = split_field(key)
    items = [_listed(k) for k in (key if type(key) is tuple else (key,))]
    if len(items) == 1 and isinstance(items[0], np.ndarray) and items[0].dtype.kind == "b":
        _check_mask(items[0], shape)
        return Selection(items[0], WHERE, field)
    if len(items) != len(shape) or any(
        not isinstance(i, int) and (not isinstance(i, np.ndarray) or i.dtype.kind == "b")
        for i in items
    ):
        raise IndexError(
            f"vindex takes {len(shape)} lists of integers, or a mask of the array's shape"
        )
    if all(isinstance(i, int) for i in items):
        return Selection(tuple(items), ORTHOGONAL, field)
    return Selection(tuple(items), POINTS, field)


def blocks(key: Any, shape: tuple[int, ...]) -> Selection:
    """Chunks of the grid, as .blocks has it."""
    items = _expand([_listed(k) for k in (key if type(key) is tuple else (key,))], len(shape))
    for item in items:
        if isinstance(item, np.ndarray) or (isinstance(item, slice) and item.step not in (None, 1)):
            raise IndexError("blocks are selected by integers and slices of step 1")
    return Selection(tuple(items), BLOCKS)


def basic(key: Any, shape: tuple[int, ...]) -> Selection:
    """What numpy does with a key."""
    if is_simple(key):
        return Selection(key, ORTHOGONAL)
    key, field = split_field(key)
    if is_simple(key):
        return Selection(key, ORTHOGONAL, field)
    given = [_listed(k) for k in (key if type(key) is tuple else (key,))]
    items = _expand(given, len(shape))
    if len(items) == 1 and isinstance(items[0], np.ndarray) and items[0].dtype.kind == "b":
        if items[0].ndim == len(shape) and items[0].ndim != 1:
            _check_mask(items[0], shape)
            return Selection(items[0], WHERE, field)
    axes = [i for i in items if i is not None]
    axes = _unmask(axes, shape)
    arrays = [i for i in axes if isinstance(i, np.ndarray)]
    if not arrays:
        # Integers and slices with new axes: those come last.
        then = tuple(None if i is None else slice(None) for i in items if not isinstance(i, int))
        return Selection(tuple(axes), ORTHOGONAL, field, then)
    no_new = len(axes) == len(items) or not any(i is None for i in items)
    if no_new and len(arrays) == len(axes):
        return Selection(tuple(axes), POINTS, field)
    ints = any(isinstance(i, int) for i in axes)
    if no_new and len(arrays) == 1 and arrays[0].ndim == 1 and not ints:
        return Selection(tuple(axes), ORTHOGONAL, field)
    return _mixed(items, axes, shape, field)


def _unmask(axes: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """A mask of several axes is as many lists of indices."""
    out: list[Any] = []
    for item in axes:
        if isinstance(item, np.ndarray) and item.dtype.kind == "b":
            _check_mask(item, shape[len(out) : len(out) + item.ndim])
            out += [np.ascontiguousarray(n, dtype=np.int64) for n in np.nonzero(item)]
        else:
            out.append(item)
    return out


def _mixed(
    items: list[Any], axes: list[Any], shape: tuple[int, ...], field: str | None
) -> Selection:
    """Lists beside slices and integers: the rows that are needed, which numpy then indexes."""
    reads: list[Any] = []
    thens: list[Any] = []
    at = iter(range(len(axes)))
    masked = list(axes)
    for item in items:
        if item is None:
            thens.append(None)
            continue
        for _ in range(_axes_of(item)):
            axis = next(at)
            one = masked[axis]
            if isinstance(one, slice):
                reads.append(one)
                thens.append(slice(None))
                continue
            wanted = np.asarray(one, dtype=np.int64)
            size = shape[axis]
            if wanted.size and (int(wanted.min()) < -size or int(wanted.max()) >= size):
                bad = int(wanted.max()) if int(wanted.max()) >= size else int(wanted.min())
                raise IndexError(f"index {bad} is out of bounds for axis {axis} with size {size}")
            rows, inverse = np.unique(
                np.where(wanted < 0, wanted + size, wanted), return_inverse=True
            )
            reads.append(np.ascontiguousarray(rows))
            thens.append(
                int(inverse.ravel()[0]) if isinstance(one, int) else inverse.reshape(wanted.shape)
            )
    return Selection(tuple(reads), ORTHOGONAL, field, tuple(thens))


def select(kind: Kind, key: Any, shape: tuple[int, ...]) -> Selection:
    """A selection of one of the kinds."""
    if kind == "basic":
        return basic(key, shape)
    if kind == "orthogonal":
        return orthogonal(key, shape)
    if kind == "points":
        return points(key, shape)
    if kind == "blocks":
        return blocks(key, shape)
    raise ValueError(f'index is {kind!r}, not "basic", "orthogonal", "points" or "blocks"')
