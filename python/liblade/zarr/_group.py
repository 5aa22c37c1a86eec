"""Groups, and the functions that open, make, save and load.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import builtins
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from .._errors import Error
from .._lade import ZarrNode
from . import _dtype, _settings
from ._array import Array, Node
from ._codecs import extensions, open_node
from ._store import Store

type StoreLike = Any
type Mode = Literal["r", "r+", "a", "w", "w-"]

_ANY, _ARRAY, _GROUP = range(3)


def _join(*parts: str) -> str:
    return "/".join(p.strip("/") for p in parts if p.strip("/"))


class NodeNotFoundError(Error, FileNotFoundError, KeyError):
    """There is no array or group at a path, or one of the other kind."""

    __str__ = Error.__str__


class NodeExistsError(Error, FileExistsError):
    """An array or group is there already, or values that would become its chunks."""


def _node_error(error: Error) -> Error:
    cls = {"LADE_E_NOT_FOUND": NodeNotFoundError, "LADE_E_CHANGED": NodeExistsError}.get(
        error.status
    )
    return error if cls is None else cls(error.message, error.status, error.offset, error.index)


class Group(Node):
    """A group: a mapping from paths to arrays and groups.  open_group() gives it."""

    def _open(self, node: ZarrNode) -> Array | Group:
        is_array = node.describe()["kind"] == "array"
        cls = Array if is_array else Group
        return cls(node, self._store, self._read_only, self._settings, self._chunks)

    def __getitem__(self, path: str) -> Array | Group:
        try:
            return self._open(self._member(path.strip("/")))
        except Error as e:
            if e.status == "LADE_E_NOT_FOUND":
                raise NodeNotFoundError(e.message, e.status) from None
            raise

    def _member(self, path: str) -> ZarrNode:
        if not extensions():
            return self._node.member(path)
        # Each array has an engine of its own then.
        chunks = self._chunks._handle if self._chunks else None
        where = _join(self.path, path)
        return open_node(self._store._handle, where, 0, self.zarr_format, chunks)

    def get(self, path: str, default: Any = None) -> Any:
        """The node at a path, or 'default'."""
        try:
            return self[path]
        except NodeNotFoundError:
            return default

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self.get(path) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def _names(self) -> builtins.list[str]:
        """The names of the group's own members."""
        listed = self._node.members()
        if listed is not None:
            return [name for name in listed if "/" not in name]
        prefix = self.path + "/" if self.path else ""
        names = [key[len(prefix) : -1] for key in self._store.list(prefix, level=True)
                 if key.endswith("/")]  # fmt: skip
        return [name for name in names if name in self]

    def keys(self) -> Iterator[str]:
        """The names of its members."""
        return iter(self)

    def members(self) -> Iterator[tuple[str, Array | Group]]:
        """Names and nodes of its members."""
        for name in self._names():
            yield name, self[name]

    def items(self) -> Iterator[tuple[str, Array | Group]]:
        """As members()."""
        return self.members()

    def arrays(self) -> Iterator[tuple[str, Array]]:
        """Names and arrays."""
        return ((n, m) for n, m in self.members() if isinstance(m, Array))

    def groups(self) -> Iterator[tuple[str, Group]]:
        """Names and groups."""
        return ((n, m) for n, m in self.members() if isinstance(m, Group))

    def tree(self, level: int | None = None) -> str:
        """All below it, as a drawing."""
        lines = [self.name if self.path else "/"]

        def draw(group: Group, indent: str, depth: int) -> None:
            found = list(group.members())
            for i, (name, node) in enumerate(found):
                last = i == len(found) - 1
                what = f" {node.shape} {node._type.name}" if isinstance(node, Array) else ""
                lines.append(f"{indent}{'└' if last else '├'}── {name}{what}")
                if isinstance(node, Group) and (level is None or depth < level):
                    draw(node, indent + ("    " if last else "│   "), depth + 1)

        draw(self, "", 1)
        return "\n".join(lines)

    def create_array(self, name: str, **how: Any) -> Array:
        """Makes an array in the group; 'how' is create()'s."""
        self._writable()
        how.setdefault("zarr_format", self.zarr_format)
        return create(self._store, _join(self.path, name), **how)

    def create_group(
        self, name: str, *, attributes: Mapping[str, Any] | None = None, overwrite: bool = False
    ) -> Group:
        """Makes a group in the group."""
        self._writable()
        return create_group(self._store, _join(self.path, name), attributes=attributes,
                            overwrite=overwrite, zarr_format=self.zarr_format)  # fmt: skip

    def require_group(self, name: str) -> Group:
        """The group of a name, made if it is not there."""
        found = self.get(name)
        if found is None:
            return self.create_group(name)
        if not isinstance(found, Group):
            raise NodeExistsError(f"{name!r} is an array", "LADE_E_CHANGED")
        return found

    def __setitem__(self, name: str, value: Any) -> None:
        """Makes an array with the elements of 'value', and replaces what is there."""
        array = np.asarray(value)
        made = self.create_array(name, shape=array.shape, dtype=array.dtype, overwrite=True)
        made[...] = array

    def __delitem__(self, name: str) -> None:
        self._writable()
        try:
            ZarrNode.delete(self._store._handle, _join(self.path, name))
        except Error as e:
            raise _node_error(e) from None

    def consolidate(self) -> Group:
        """Collects the metadata of all members in the group's document."""
        self._writable()
        self._take(self._node.consolidate())
        return self

    def __repr__(self) -> str:
        return f"<liblade.zarr.Group {self._where()}>"


def _open_node(
    store: StoreLike,
    path: str,
    mode: str,
    kind: int,
    zarr_format: int,
    chunk_store: StoreLike,
    consolidated: bool,
    settings: dict[str, Any],
) -> Array | Group:
    if mode not in ("r", "r+"):
        raise ValueError(f'mode is {mode!r}, want "r" or "r+"; create() makes arrays')
    of = _settings.check(settings, "open()")
    where = _store(store, mode == "r")
    chunks = None if chunk_store is None else Store.of(chunk_store, read_only=mode == "r")
    try:
        node = open_node(
            where._handle,
            path.strip("/"),
            kind,
            zarr_format,
            chunks._handle if chunks else None,
            consolidated,
        )
    except Error as e:
        if e.status == "LADE_E_NOT_FOUND":
            raise NodeNotFoundError(f"{where.name}: {e.message}", e.status) from None
        raise
    cls = Array if node.describe()["kind"] == "array" else Group
    return cls(node, where, mode == "r", of, chunks)


def _store(store: StoreLike, read_only: bool) -> Store:
    try:
        return Store.of(store, read_only=read_only)
    except Error as e:
        if e.status == "LADE_E_NOT_FOUND":
            raise NodeNotFoundError(e.message, e.status) from None
        raise


def open(
    store: StoreLike,
    path: str = "",
    *,
    mode: Mode = "r",
    zarr_format: int = 0,
    chunk_store: StoreLike = None,
    consolidated: bool = True,
    **settings: Any,
) -> Array | Group:
    """Opens what is at 'path' of a store: an array or a group.

    store: a path, a URL, a mapping from keys to bytes, a Store, or a store of zarr-python.
    mode: "r", or "r+" to change it.  zarr_format: 2 or 3; 0: 3 if both are there.
    chunk_store: where the chunks are, if not with the metadata.
    consolidated: False: reads each member's own document.
    settings: where results land, as configure()'s, for this node and members opened by it.

    Raises NodeNotFoundError (also a FileNotFoundError and a KeyError).
    """
    return _open_node(store, path, mode, _ANY, zarr_format, chunk_store, consolidated, settings)


def open_array(store: StoreLike, path: str = "", *, mode: Mode = "r", zarr_format: int = 0,
               chunk_store: StoreLike = None, **settings: Any) -> Array:  # fmt: skip
    """As open(), an array."""
    return cast("Array", _open_node(store, path, mode, _ARRAY, zarr_format, chunk_store, True,
                                    settings))  # fmt: skip


def open_group(store: StoreLike, path: str = "", *, mode: Mode = "r", zarr_format: int = 0,
               chunk_store: StoreLike = None, consolidated: bool = True,
               **settings: Any) -> Group:  # fmt: skip
    """As open(), a group.  mode="a" makes it if it is not there, "w" anew, "w-" only anew."""
    if mode in ("a", "w", "w-"):
        if mode == "a":
            try:
                return open_group(store, path, mode="r+", zarr_format=zarr_format, **settings)
            except NodeNotFoundError:
                pass
        return create_group(store, path, overwrite=mode == "w", zarr_format=zarr_format or 3,
                            **settings)  # fmt: skip
    return cast("Group", _open_node(store, path, mode, _GROUP, zarr_format, chunk_store,
                                    consolidated, settings))  # fmt: skip


# ---- making ------------


def _auto_chunks(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Chunks of at most 1 MiB, whose longest axes are halved first."""
    chunks = [max(int(n), 1) for n in shape]
    limit = max((1 << 20) // max(itemsize, 1), 1)
    while np.prod(chunks, dtype=float) > limit:
        longest = chunks.index(max(chunks))
        chunks[longest] = (chunks[longest] + 1) // 2
    return tuple(chunks)


def _sizes(what: str, given: Any, ndim: int) -> tuple[tuple[int, ...], tuple[Any, ...] | None]:
    """Chunks: (the shape, the sizes along axes that have several)."""
    items = (given,) * ndim if isinstance(given, int) else tuple(given)
    if len(items) != ndim:
        raise ValueError(f"{what} has {len(items)} sizes, the shape {ndim}")
    if all(isinstance(n, (int, np.integer)) for n in items):
        return tuple(int(n) for n in items), None
    edges = tuple(None if isinstance(n, (int, np.integer)) else tuple(map(int, n)) for n in items)
    return tuple(int(n) if e is None else max(e) for n, e in zip(items, edges, strict=True)), edges


def _fill_text(fill: Any, dtype: str) -> str | None:
    """The JSON of a fill value."""
    if fill is None:
        return None
    if isinstance(fill, (str, int, float, bool)) and not isinstance(fill, np.generic):
        if isinstance(fill, float) and fill != fill:
            return '"NaN"'
        if fill in (float("inf"), float("-inf")):
            return '"Infinity"' if fill > 0 else '"-Infinity"'
        return json.dumps(fill)
    if isinstance(fill, np.datetime64 | np.timedelta64):
        return json.dumps(int(np.asarray(fill, dtype).astype("<i8")))
    if isinstance(fill, complex | np.complexfloating):
        return f"[{_fill_text(float(fill.real), dtype)}, {_fill_text(float(fill.imag), dtype)}]"
    if isinstance(fill, np.generic) and fill.dtype.names is None and fill.dtype.kind in "biuf":
        return _fill_text(fill.item(), dtype)
    if isinstance(fill, bytes):
        import base64

        return json.dumps(base64.b64encode(fill).decode())
    return json.dumps(fill)


def create(
    store: StoreLike,
    path: str = "",
    *,
    shape: Sequence[int] | int,
    dtype: npt.DTypeLike | str = "float64",
    chunks: Any = "auto",
    shards: Sequence[int] | int | None = None,
    codecs: str | Sequence[Mapping[str, Any]] | None = None,
    fill_value: Any = None,
    attributes: Mapping[str, Any] | None = None,
    dimension_names: Sequence[str | None] | None = None,
    zarr_format: int = 3,
    order: Literal["C", "F"] = "C",
    separator: Literal["/", "."] | None = None,
    index_first: bool = False,
    index_codecs: Sequence[Mapping[str, Any]] | None = None,
    overwrite: bool = False,
    **settings: Any,
) -> Array:
    """Makes an array, and opens it to read and write.

    store, path: as open()'s; a directory is made.
    dtype: numpy's, or a name of Zarr's: "bfloat16", "string", "bytes".
    chunks: their shape; "auto": at most 1 MiB; an axis may have a list of sizes.
    shards: the shape of shards, which hold the chunks.
    codecs: a pipeline, "shuffle(4)|zstd(level=3)", or the list of codecs as Zarr's documents have
        it; None: zstd; "": none.
    fill_value: what missing chunks have; None: zeros.
    order: "F": the first axis of a chunk is contiguous.
    overwrite: deletes first what is there.

    Raises NodeExistsError (also a FileExistsError).
    """
    of = _settings.check(settings, "create()")
    sizes = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
    type_ = _dtype.zarr_type(dtype)
    if isinstance(chunks, str):
        if chunks != "auto":
            raise ValueError(f'chunks is {chunks!r}, want a shape or "auto"')
        try:
            itemsize = np.dtype(cast("Any", dtype)).itemsize
        except TypeError:
            itemsize = 16
        chunks = _auto_chunks(sizes, itemsize)
        if shards is not None:
            limits, _ = _sizes("shards", shards, len(sizes))
            chunks = tuple(_divisor(limit, n) for limit, n in zip(limits, chunks, strict=True))
    inner, edges = None, None
    outer, edges = _sizes("chunks", chunks, len(sizes))
    if shards is not None:
        if edges is not None:
            raise ValueError("chunks in shards all have one shape")
        inner = outer
        outer, edges = _sizes("shards", shards, len(sizes))
    if isinstance(codecs, str) and codecs == "":
        codecs = []
    spec = codecs if isinstance(codecs, str) else None
    text = None if codecs is None or spec is not None else json.dumps(list(codecs))
    where = Store.of(store, create=True)
    return cast("Array", _make(
        where, path, _ARRAY, zarr_format, attributes, sizes, outer, edges, type_,
        _fill_text(fill_value, type_), text, spec, inner, index_first,
        None if index_codecs is None else json.dumps(list(index_codecs)),
        None if dimension_names is None else tuple(dimension_names), order == "F",
        ord(separator) if separator else 0, overwrite, of,
    ))  # fmt: skip


def _divisor(size: int, at_most: int) -> int:
    """The largest divisor of 'size' that is not larger than 'at_most'."""
    return next(n for n in range(min(size, at_most), 0, -1) if size % n == 0)


def create_group(
    store: StoreLike,
    path: str = "",
    *,
    attributes: Mapping[str, Any] | None = None,
    zarr_format: int = 3,
    overwrite: bool = False,
    **settings: Any,
) -> Group:
    """Makes a group, and opens it to read and write; the rest as create()."""
    of = _settings.check(settings, "create_group()")
    where = Store.of(store, create=True)
    return cast("Group", _make(where, path, _GROUP, zarr_format, attributes, None, None, None, None,
                               None, None, None, None, False, None, None, False, 0, overwrite,
                               of))  # fmt: skip


def _make(
    store: Store, path: str, kind: int, zarr_format: int, attributes: Mapping[str, Any] | None,
    shape: Any, chunks: Any, edges: Any, type_: str | None, fill: str | None, codecs: str | None,
    spec: str | None, inner: Any, index_first: bool, index_codecs: str | None, names: Any,
    fortran: bool, separator: int, overwrite: bool, settings: dict[str, Any],
) -> Array | Group:  # fmt: skip
    text = None if attributes is None else json.dumps(dict(attributes))
    try:
        node = ZarrNode.create(
            store._handle, path.strip("/"), kind, zarr_format, text, shape, chunks, edges, type_,
            fill, codecs, spec, inner, index_first, index_codecs, names, fortran, False,
            separator, overwrite, *extensions(),
        )  # fmt: skip
    except Error as e:
        if e.status == "LADE_E_CHANGED":
            e.message = f"{store._name}: {e.message}"
        raise _node_error(e) from None
    cls = Array if kind == _ARRAY else Group
    return cls(node, store, False, settings)


# ---- saving and loading ------------


def save(store: StoreLike, *args: Any, path: str = "", **arrays: Any) -> None:
    """Saves one array, or several as members of a group: save(store, a), save(store, x=a, y=b)."""
    if args and (arrays or len(args) > 1):
        arrays = {**{f"arr_{i}": a for i, a in enumerate(args)}, **arrays}
        args = ()
    where = Store.of(store, create=True)
    if args:
        value = np.asarray(args[0])
        create(where, path, shape=value.shape, dtype=value.dtype, overwrite=True)[...] = value
        return
    if not arrays:
        raise ValueError("there is no array to save")
    group = create_group(where, path, overwrite=True)
    for name, one in arrays.items():
        group[name] = one


def load(store: StoreLike, path: str = "", **how: Any) -> Any:
    """Reads an array, or the arrays of a group as a dictionary; 'how' is Array.read()'s."""
    node = open(store, path)
    if isinstance(node, Array):
        return node.read(**how)
    return {name: array.read(**how) for name, array in node.arrays()}


def consolidate_metadata(store: StoreLike, path: str = "") -> Group:
    """Collects the metadata of a group's members in its document."""
    return open_group(store, path, mode="r+").consolidate()


def delete(store: StoreLike, path: str = "") -> None:
    """Deletes an array or a group with all that is below it."""
    try:
        ZarrNode.delete(Store.of(store)._handle, path.strip("/"))
    except Error as e:
        raise _node_error(e) from None


def exists(store: StoreLike, path: str = "") -> bool:
    """Whether an array or a group is there."""
    try:
        if isinstance(store, (str, os.PathLike)) and "://" not in os.fspath(store):
            if not os.path.exists(store):
                return False
        open(store, path)
    except NodeNotFoundError:
        return False
    return True
