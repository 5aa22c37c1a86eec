"""Columns as an Awkward Array, on the host or on a device.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import importlib
import re
from typing import Any

import numpy as np

from .._errors import CorruptError
from ._tree import Node


def base_members(node: Node) -> list[tuple[str, Node]]:
    """The members of a record, with those of its base classes, unless names are equal."""
    flat: list[tuple[str, Node]] = []
    for child in node.children:
        if child.field.name.startswith(":_") and child.kind == "record":
            flat += base_members(child)
        else:
            flat.append((child.field.name, child))
    names = [name for name, _ in flat]
    if len(set(names)) == len(names):
        return flat
    return [(child.field.name, child) for child in node.children]


class _Maker:
    """The form of the nodes, and the buffers that it names."""

    def __init__(self, arrays: dict[str, Any]) -> None:
        self.arrays = arrays
        self.buffers: dict[str, Any] = {}

    def form(self, node: Node) -> dict[str, Any]:
        key = f"f{node.field.index}"
        make = getattr(self, "_" + node.kind)
        form: dict[str, Any] = {"form_key": key, **make(node, key)}
        if node.field.description:
            form.setdefault("parameters", {})["__doc__"] = node.field.description
        return form

    def _numbers(self, node: Node, key: str) -> dict[str, Any]:
        data = self.arrays[node.wants[-1].key]
        self.buffers[key + "-data"] = data
        return {"class": "NumpyArray", "primitive": np.dtype(node.wants[-1].dtype).name}

    _value = _cardinality = _numbers

    def _alias(self, node: Node, key: str) -> dict[str, Any]:
        return self.form(node.children[0])

    def _array(self, node: Node, key: str) -> dict[str, Any]:
        return {"class": "RegularArray", "size": node.size, "content": self.form(node.children[0])}

    def _bits(self, node: Node, key: str) -> dict[str, Any]:
        inner = {"form_key": key + "i", **self._numbers(node, key + "i")}
        return {"class": "RegularArray", "size": node.size, "content": inner}

    def _string(self, node: Node, key: str) -> dict[str, Any]:
        what = ("string", "char") if node.kind == "string" else ("bytestring", "byte")
        self.buffers[key + "-offsets"] = self.arrays[node.wants[0].key]
        inner = {"form_key": key + "i", **self._numbers(node, key + "i")}
        inner["parameters"] = {"__array__": what[1]}
        return {
            "class": "ListOffsetArray",
            "offsets": "i64",
            "content": inner,
            "parameters": {"__array__": what[0]},
        }

    _streamer = _string

    def _list(self, node: Node, key: str) -> dict[str, Any]:
        self.buffers[key + "-offsets"] = self.arrays[node.wants[0].key]
        content = self.form(node.children[0]) if node.children else {"class": "EmptyArray"}
        return {"class": "ListOffsetArray", "offsets": "i64", "content": content}

    def _option(self, node: Node, key: str) -> dict[str, Any]:
        offsets = self.arrays[node.wants[0].key]
        self.buffers[key + "-index"] = option_index(offsets, node.field.path)
        content = self.form(node.children[0]) if node.children else {"class": "EmptyArray"}
        return {"class": "IndexedOptionArray", "index": "i64", "content": content}

    def _record(self, node: Node, key: str) -> dict[str, Any]:
        members = base_members(node)
        names: list[str] | None = [name for name, _ in members]
        if all(re.fullmatch(r"_[0-9]+", name) for name, _ in members):
            names = None
        contents = [self.form(child) for _, child in members]
        return {"class": "RecordArray", "fields": names, "contents": contents}

    def _variant(self, node: Node, key: str) -> dict[str, Any]:
        tag, index = (self.arrays[want.key] for want in node.wants)
        self.buffers[key + "-tags"], self.buffers[key + "-index"] = tag, index
        # Number 0 is what has no value.  All contents of a union are options, or none is.
        self.buffers[key + "n-index"] = tag[:0].astype("i8") - 1
        if len(tag):
            self.buffers[key + "n-index"] = index[:1] * 0 - 1
        none = {
            "class": "IndexedOptionArray",
            "index": "i64",
            "form_key": key + "n",
            "content": {"class": "EmptyArray", "form_key": key + "e"},
        }
        contents = [none]
        for child in node.children:
            form = self.form(child)
            if form["class"] not in ("IndexedOptionArray", "UnionArray"):
                form = {"class": "UnmaskedArray", "form_key": key + "u", "content": form}
            contents.append(form)
        return {"class": "UnionArray", "tags": "i8", "index": "i64", "contents": contents}


def option_index(offsets: Any, path: str) -> Any:
    """Positions of the values, and -1 where there is none, in the offsets' library."""
    there = offsets[1:] - offsets[:-1]
    if len(there) and int(there.max()) > 1:
        raise CorruptError(
            f"rntuple: {path}: {int(there.max())} values, one is the most",
            "LADE_E_CORRUPT",
        )
    return offsets[:-1] * there - (1 - there)


def to_awkward(nodes: list[Node], arrays: dict[str, Any], count: int, on_device: bool) -> Any:
    ak: Any = importlib.import_module("awkward")
    maker = _Maker(arrays)
    form = {
        "class": "RecordArray",
        "fields": [node.field.name for node in nodes],
        "contents": [maker.form(node) for node in nodes],
        "form_key": "top",
    }
    if on_device:
        cupy: Any = importlib.import_module("cupy")
        maker.buffers = {key: cupy.asarray(value) for key, value in maker.buffers.items()}
    return ak.from_buffers(
        ak.forms.from_dict(form), count, maker.buffers, backend="cuda" if on_device else "cpu"
    )
