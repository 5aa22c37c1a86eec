"""Columns as Arrow's C structs.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _lade
from .._errors import InputError
from ._awkward import base_members, option_index
from ._tree import Node

_FORMATS = {
    "|i1": "c", "|u1": "C", "<i2": "s", "<u2": "S", "<i4": "i", "<u4": "I", "<i8": "l",
    "<u8": "L", "<f2": "e", "<f4": "f", "<f8": "g",
}  # fmt: skip
_NULLABLE = 2

_Tree = tuple[str, str, int, int, int, tuple[Any, ...], tuple[Any, ...]]


class _Take:
    """Elements that are spread out below an option: element i has position at[i], unless
    at[i + 1] is the same and it is missing."""

    def __init__(self, at: np.ndarray[Any, Any]) -> None:
        self.at = at
        self.there: np.ndarray[Any, Any] = at[1:] != at[:-1]

    def below(self, offsets: np.ndarray[Any, Any]) -> _Take:
        """The elements below an option."""
        return _Take(offsets[self.at])

    def each(self, size: int) -> _Take:
        """The elements of arrays of a fixed size."""
        steps = np.arange(size) * self.there[:, None]
        return _Take(np.append((self.at[:-1, None] * size + steps).ravel(), self.at[-1:] * size))

    def values(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        out = np.zeros(len(self.at) - 1, array.dtype)
        out[self.there] = array[self.at[:-1][self.there]]
        return out


class _Maker:
    def __init__(
        self, arrays: dict[str, Any], upload: Callable[[np.ndarray[Any, Any]], Any]
    ) -> None:
        self.arrays = arrays
        self.upload = upload

    def put(self, array: Any) -> Any:
        """A buffer: what is on the host goes to where the others are."""
        return self.upload(array) if isinstance(array, np.ndarray) else array

    def made(self, node: Node, count: int, take: _Take | None) -> tuple[Any, ...]:
        """(format, buffers, children, validity and nulls, flags); the last two may be missing."""
        out: tuple[Any, ...] = getattr(self, "_" + node.kind)(node, count, take)
        return out

    def tree(self, node: Node, count: int, take: _Take | None, name: str | None = None) -> _Tree:
        made = self.made(node, count, take)
        head = (node.field.name if name is None else name, made[0], made[4] if made[4:] else 0)
        valid, nulls = made[3] if made[3:] else (None, 0)
        whole = () if made[0] == "n" or made[0].startswith("+u") else (valid,)
        return (*head, count, nulls, (*whole, *map(self.put, made[1])), tuple(made[2]))

    def _numbers(self, array: Any, dtype: str, take: _Take | None) -> tuple[str, tuple[Any, ...]]:
        if take is not None:
            array = take.values(array)
        if dtype == "|b1":
            return "b", (np.packbits(array, bitorder="little"),)
        return _FORMATS[dtype], (array,)

    def _value(self, node: Node, count: int, take: _Take | None) -> tuple[Any, ...]:
        want = node.wants[0]
        return (*self._numbers(self.arrays[want.key], want.dtype, take), ())

    _cardinality = _value

    def _alias(self, node: Node, count: int, take: _Take | None) -> tuple[Any, ...]:
        return self.made(node.children[0], count, take)

    def _array(self, node: Node, count: int, take: _Take | None) -> tuple[Any, ...]:
        below = take.each(node.size) if take else None
        child = self.tree(node.children[0], count * node.size, below)
        return f"+w:{node.size}", (), (child,)

    def _bits(self, node: Node, count: int, take: _Take | None) -> tuple[Any, ...]:
        below = take.each(node.size) if take else None
        array = self.arrays[node.wants[0].key]
        form, buffers = self._numbers(array, node.wants[0].dtype, below)
        child = ("_0", form, 0, count * node.size, 0, (None, *map(self.put, buffers)), ())
        return f"+w:{node.size}", (), (child,)

    def _string(self, node: Node, count: int, take: _Take | None) -> tuple[Any, ...]:
        offsets, data = (self.arrays[want.key] for want in node.wants)
        offsets = offsets[take.at] if take else offsets
        return "U" if node.kind == "string" else "Z", (offsets, data), ()

    _streamer = _string

    def _list(self, node: Node, count: int, take: _Take | None) -> tuple[Any, ...]:
        offsets = self.arrays[node.wants[0].key]
        offsets = offsets[take.at] if take else offsets
        # A device's offsets are not looked at: they begin with 0 and end with all elements.
        total = self.total(node, offsets)
        return "+L", (offsets,), (self.tree(node.children[0], total, None),)

    def total(self, node: Node, offsets: Any) -> int:
        if isinstance(offsets, np.ndarray):
            return int(offsets[-1])
        last = offsets[-1:]
        return int(np.frombuffer(last.tobytes(), "<i8")[0])

    def _option(self, node: Node, count: int, take: _Take | None) -> tuple[Any, ...]:
        offsets = self.arrays[node.wants[0].key]
        option_index(offsets, node.field.path)  # one value is the most
        below = take.below(offsets) if take else _Take(offsets)
        made = self.made(node.children[0], count, below)
        inner = made[3] if made[3:] else None
        there = below.there if inner is None else None
        if there is None:
            # An option of an option: one null is as good as the other.
            return (made[0], made[1], made[2], inner, _NULLABLE)
        valid = self.put(np.packbits(there, bitorder="little"))
        if made[0].startswith("+u"):
            return made
        return (made[0], made[1], made[2], (valid, int(count - there.sum())), _NULLABLE)

    def _record(self, node: Node, count: int, take: _Take | None) -> tuple[Any, ...]:
        members = base_members(node)
        return "+s", (), [self.tree(child, count, take, name) for name, child in members]

    def _variant(self, node: Node, count: int, take: _Take | None) -> tuple[Any, ...]:
        tag, index = (self.arrays[want.key] for want in node.wants)
        if take:
            tag, index = take.values(tag), take.values(index)
        children: list[Any] = [("none", "n", _NULLABLE, 1, 1, (), ())]
        for i, child in enumerate(node.children):
            mine = index[tag == i + 1]
            size = int(mine.max()) + 1 if len(mine) else 0
            children.append(self.tree(child, size, None))
        if len(index) and index.max() > 2**31 - 1:
            raise InputError(
                f"rntuple: {node.field.path}: {index.max()} is beyond Arrow's unions: read fewer "
                "entries",
                "LADE_E_LIMIT",
            )
        kinds = ",".join(map(str, range(len(children))))
        return f"+ud:{kinds}", (tag, index.astype("<i4")), children


def to_arrow(
    nodes: list[Node],
    arrays: dict[str, Any],
    count: int,
    upload: Callable[[np.ndarray[Any, Any]], Any],
    device: int,
) -> _lade.ArrowData:
    """'device' is -1 on the host."""
    maker = _Maker(arrays, upload)
    children = tuple(maker.tree(node, count, None) for node in nodes)
    return _lade.ArrowData(("", "+s", 0, count, 0, (None,), children), device)
