"""The fields and columns of an RNTuple, and which of them a read wants.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import dataclasses
import fnmatch
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from .._errors import InputError, UnsupportedError

VALUES, OFFSETS, SWITCH = range(3)
_PLAIN, _COLLECTION, _RECORD, _VARIANT, _STREAMER = range(5)
_TOP = 2**64 - 1


class Column(NamedTuple):
    """A column: the elements of a field, one after the other, over all entries."""

    field: int
    position: int
    """Among the field's columns: a string has offsets (0) and bytes (1)."""
    kind: int
    """0: values, 1: offsets, 2: a variant's switch."""
    dtype: str
    """Of what reading gives."""
    elem_size: int
    stored: str
    """The type in the file, "SplitReal32"."""
    bits: int
    element_count: int
    first_stored: int
    page_count: int
    stored_size: int
    decoded_size: int


class Field:
    """A node of the schema's tree.  'kind' says how its values are stored:

    value, bits (a bitset), string, cardinality; list, option, record, variant; array (of a fixed
    size) and alias (an enum, an atomic), which have one child; streamer (bytes of ROOT's).
    """

    __slots__ = (
        "array_size",
        "children",
        "columns",
        "description",
        "first_column",
        "hidden",
        "index",
        "kind",
        "name",
        "parent",
        "path",
        "projected",
        "role",
        "type",
        "type_alias",
    )

    def __init__(self, index: int, row: tuple[Any, ...], columns: list[Column]) -> None:
        self.index = index
        (
            self.path,
            self.name,
            self.type,
            self.type_alias,
            self.description,
            _,
            self.role,
            self.array_size,
            self.first_column,
            count,
            self.projected,
            self.hidden,
        ) = row
        self.columns = columns[self.first_column : self.first_column + count]
        self.children: list[Field] = []
        self.parent: Field | None = None
        self.kind = ""

    path: str
    """Names from the top on, with '.' between them."""
    name: str
    type: str
    """In C++."""
    type_alias: str
    description: str
    """What the writer says about it."""
    role: int
    array_size: int
    first_column: int
    projected: bool
    """Its columns are those of another field."""
    hidden: str | None
    """Why it cannot be read; None: it can."""

    def __getitem__(self, name: str) -> Field:
        for child in self.children:
            if child.name == name:
                return child
        raise KeyError(f"{self.path} has no field {name!r}")

    def __iter__(self) -> Iterator[Field]:
        return iter(self.children)

    def __repr__(self) -> str:
        return f"<liblade.rntuple.Field {self.path!r}: {self.type or self.kind}>"

    def _lines(self, indent: str) -> Iterator[str]:
        doc = f"  # {self.description}" if self.description else ""
        yield f"{indent}{self.name}: {self.type or self.kind}{doc}"
        for child in self.children:
            yield from child._lines(indent + "  ")

    def __str__(self) -> str:
        return "\n".join(self._lines(""))


def _kind(field: Field) -> str:
    offsets = bool(field.columns) and field.columns[0].kind == OFFSETS
    if field.role == _COLLECTION:
        optional = field.type.startswith(("std::optional<", "std::unique_ptr<"))
        return "option" if optional else "list"
    if field.role != _PLAIN:
        return {_RECORD: "record", _VARIANT: "variant"}.get(field.role, "streamer")
    if field.columns:
        if offsets:
            return "string" if len(field.columns) == 2 else "cardinality"
        return "bits" if field.array_size else "value"
    if len(field.children) != 1:
        return "record"
    return "array" if field.array_size else "alias"


def make_fields(rows: list[Any], column_rows: list[Any]) -> tuple[list[Field], list[Column]]:
    """All fields with their parents and children, and all columns."""
    columns = [Column(*row) for row in column_rows]
    fields = [Field(i, row, columns) for i, row in enumerate(rows)]
    for field, row in zip(fields, rows, strict=True):
        if row[5] != field.index and row[5] != _TOP:
            field.parent = fields[row[5]]
            field.parent.children.append(field)
    for field in fields:
        field.kind = _kind(field)
    return fields, columns


# ---- what is read ----------------------------------------------------------------------------


class Level:
    """Elements that belong together: those of the entries, or below one collection or variant."""

    __slots__ = ("above", "probe", "whole")

    def __init__(self, above: Level | None, whole: bool) -> None:
        self.above = above
        self.whole = whole
        """Below a variant: indices count from the start of a cluster, so all of it is read."""
        self.probe: tuple[int, int] | None = None
        """A column, and how many of its elements each element of the level has."""


@dataclasses.dataclass(slots=True, eq=False)
class Want:
    """A column that is read, and the key of the result."""

    key: str
    column: int
    level: Level
    dims: tuple[int, ...]
    """Sizes of the arrays around it."""
    dtype: str
    mode: str
    """'values'; 'offsets': one more; 'counts': their differences; 'tag', 'index': of a variant."""
    on_host: bool
    """Below an option, or made from what is read: Arrow needs it on the host first."""

    @property
    def factor(self) -> int:
        return math.prod(self.dims)


@dataclasses.dataclass(slots=True, eq=False)
class Node:
    """A field that is read, without those below it that are not."""

    field: Field
    kind: str
    level: Level
    children: list[Node]
    wants: list[Want]
    size: int = 0
    """Of an array."""


@dataclasses.dataclass(slots=True, eq=False)
class Plan:
    nodes: list[Node]
    wants: list[Want]


class _Planner:
    def __init__(self, chosen: set[int]) -> None:
        self.chosen = chosen
        self.above: set[int] = set()
        """Fields that have chosen ones below them."""
        self.wants: list[Want] = []

    def want(
        self,
        key: str,
        field: Field,
        level: Level,
        dims: tuple[int, ...],
        mode: str,
        *,
        position: int = 0,
        dtype: str | None = None,
        on_host: bool = False,
    ) -> Want:
        column = field.columns[position]
        number = field.first_column + position
        out = Want(key, number, level, dims, dtype or column.dtype, mode, on_host)
        if level.probe is None:
            level.probe = number, out.factor
        self.wants.append(out)
        return out

    def build(
        self, field: Field, level: Level, dims: tuple[int, ...], key: str, full: bool, opt: bool
    ) -> Node | None:
        """'key' names the values of arrays and aliases: the outermost of them."""
        full = full or field.index in self.chosen
        if not full and field.index not in self.above:
            return None
        node = Node(field, field.kind, level, [], [])
        key = key or field.path
        if field.kind in ("array", "alias"):
            if field.kind == "array":
                node.size = field.array_size
                dims = (*dims, field.array_size)
            below = [self.build(field.children[0], level, dims, key, full, opt)]
        elif field.kind in ("list", "option"):
            self._offsets(node, field, level, dims, opt)
            under = Level(level, level.whole)
            opt = opt or field.kind == "option"
            below = [self.build(child, under, (), "", full, opt) for child in field.children]
        elif field.kind == "record":
            below = [self.build(c, level, dims, "", full, opt) for c in field.children]
        elif field.kind == "variant":
            self._switch(node, field, level, dims)
            below = [
                self.build(child, Level(level, True), (), "", True, opt)
                for child in field.children
            ]
        else:
            self._leaf(node, field, level, dims, key, opt)
            below = []
        node.children = [child for child in below if child]
        return node

    def _offsets(
        self, node: Node, field: Field, level: Level, dims: tuple[int, ...], opt: bool
    ) -> None:
        host = opt or field.kind == "option"
        want = self.want(field.path + ".offsets", field, level, dims, "offsets", on_host=host)
        node.wants.append(want)

    def _switch(self, node: Node, field: Field, level: Level, dims: tuple[int, ...]) -> None:
        for mode, dtype in (("tag", "|i1"), ("index", "<i8")):
            key = f"{field.path}.{mode}"
            want = self.want(key, field, level, dims, mode, dtype=dtype, on_host=True)
            node.wants.append(want)

    def _leaf(
        self, node: Node, field: Field, level: Level, dims: tuple[int, ...], key: str, opt: bool
    ) -> None:
        if field.kind in ("string", "streamer"):
            self._offsets(node, field, level, dims, opt)
            # The bytes are a level of their own.
            below = Level(level, level.whole)
            key = field.path + ".bytes"
            node.wants.append(self.want(key, field, below, (), "values", position=1))
        elif field.kind == "cardinality":
            dtype = "<u4" if "32" in field.type else "<u8"
            want = self.want(key, field, level, dims, "counts", dtype=dtype, on_host=True)
            node.wants.append(want)
        else:
            if field.kind == "bits":
                node.size = field.array_size
                dims = (*dims, field.array_size)
            host = opt or field.columns[0].dtype == "|b1"
            node.wants.append(self.want(key, field, level, dims, "values", on_host=host))


def make_plan(fields: list[Field], chosen: Iterable[Field]) -> Plan:
    """What is read for some fields, and everything below them."""
    planner = _Planner({field.index for field in chosen})
    for index in planner.chosen:
        at = fields[index].parent
        while at is not None and at.index not in planner.above:
            planner.above.add(at.index)
            at = at.parent
    top = Level(None, False)
    nodes = [
        planner.build(field, top, (), "", False, False)
        for field in fields
        if field.parent is None and (field.index in planner.chosen or field.index in planner.above)
    ]
    return Plan([node for node in nodes if node], planner.wants)


# ---- names -----------------------------------------------------------------------------------


def short_path(field: Field) -> str:
    """The path without the '_0' of collections: "muons.pt" for "muons._0.pt"."""
    names: list[str] = []
    at: Field | None = field
    while at is not None:
        above = at.parent
        if above is None or above.kind not in ("list", "option"):
            names.append(at.name)
        at = above
    return ".".join(reversed(names))


def choose(
    fields: list[Field], by_path: Mapping[str, int], names: Iterable[str] | None
) -> list[Field]:
    """The fields that names and patterns (of fnmatch) mean; None: all at the top."""
    if names is None:
        return [field for field in fields if field.parent is None and not field.hidden]
    found: list[Field] = []
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"fields: {name!r} is no text")
        if name in by_path:
            some = [fields[by_path[name]]]
        else:
            match = fnmatch.fnmatchcase
            some = [f for f in fields if match(f.path, name) or match(short_path(f), name)]
        if not some:
            raise InputError(f"no field is named {name!r}, nor matches it", "LADE_E_NOT_FOUND")
        patterned = len(some) > 1
        for field in some:
            if field.hidden and not patterned:
                raise UnsupportedError(
                    f"field {field.path} cannot be read: {field.hidden}", "LADE_E_UNSUPPORTED"
                )
        found += [field for field in some if not field.hidden]
    return found
