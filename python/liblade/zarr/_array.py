"""Arrays: what is read and written by numpy's indexing.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from .._codec import Codec
from .._lade import ZarrNode, ZarrPlan
from . import _dtype, _index, _results, _settings
from ._codecs import open_node
from ._dtype import BYTES, STRING, Type
from ._index import Kind, Selection
from ._store import Store

type Key = Any
type Report = dict[str, int]


class Attributes(MutableMapping[str, Any]):
    """The attributes of a node; a change is written at once."""

    def __init__(self, node: Node) -> None:
        self._owner = node

    def _read(self) -> dict[str, Any]:
        found = json.loads(self._owner._description["attributes"])
        assert isinstance(found, dict)
        return found

    def __getitem__(self, key: str) -> Any:
        return self._read()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def __setitem__(self, key: str, value: Any) -> None:
        self._write({**self._read(), key: value})

    def __delitem__(self, key: str) -> None:
        rest = self._read()
        del rest[key]
        self._write(rest)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """As dict.update(), in one write."""
        self._write({**self._read(), **dict(*args, **kwargs)})

    def put(self, attributes: dict[str, Any]) -> None:
        """Replaces all of them."""
        self._write(dict(attributes))

    def asdict(self) -> dict[str, Any]:
        """A copy."""
        return self._read()

    def _write(self, attributes: dict[str, Any]) -> None:
        self._owner._writable()
        self._owner._take(self._owner._node.set_attributes(json.dumps(attributes)))

    def __repr__(self) -> str:
        return repr(self._read())


class Node:
    """What arrays and groups share."""

    def __init__(
        self,
        node: ZarrNode,
        store: Store,
        read_only: bool,
        settings: dict[str, Any],
        chunks: Store | None = None,
    ) -> None:
        self._store = store
        self._chunks = chunks  # where the chunks are; None: in 'store'
        self._read_only = read_only
        self._settings = settings
        self._take(node)

    def _take(self, node: ZarrNode) -> None:
        self._node = node
        self._description = node.describe()

    def _writable(self) -> None:
        if self._read_only:
            raise PermissionError(
                f'{self._where()} was opened for reading: open it with mode="r+" to change it'
            )

    def _where(self) -> str:
        return f"{self._store.name}/{self.path}".rstrip("/")

    @property
    def store(self) -> Store:
        """Where the bytes are."""
        return self._store

    @property
    def path(self) -> str:
        """The path in the store, "" for its root."""
        path = self._description["path"]
        assert isinstance(path, str)
        return path

    @property
    def name(self) -> str:
        """The path with "/" in front."""
        return "/" + self.path

    @property
    def basename(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def zarr_format(self) -> int:
        """2 or 3."""
        return int(self._description["format"])

    @property
    def read_only(self) -> bool:
        """Whether it was opened for reading."""
        return self._read_only

    @property
    def attrs(self) -> Attributes:
        """The attributes, as a mapping."""
        return Attributes(self)

    @property
    def metadata(self) -> dict[str, Any]:
        """The node's document, as it is stored now."""
        prefix = self.path + "/" if self.path else ""
        names = ("zarr.json",) if self.zarr_format == 3 else (".zarray", ".zgroup")
        for name in names:
            found = self._store.read(prefix + name)
            if found is not None:
                document = json.loads(found)
                assert isinstance(document, dict)
                return document
        raise KeyError(f"{self._where()} has no document any more")

    def __reduce__(self) -> Any:
        of = (self._store, self.path, self._read_only, self._settings, self._chunks)
        return _reopen, (type(self), self.zarr_format, *of)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self) or not isinstance(other, Node):
            return False
        mine, theirs = self._store, other._store
        same = mine is theirs or (mine._recipe is not None and mine._recipe == theirs._recipe)
        return same and self.path == other.path

    def __hash__(self) -> int:
        return hash((type(self), self.path))


def _reopen(
    cls: type[Node],
    form: int,
    store: Store,
    path: str,
    read_only: bool,
    settings: dict[str, Any],
    chunks: Store | None,
) -> Node:
    node = open_node(store._handle, path, 0, form, chunks._handle if chunks else None)
    return cls(node, store, read_only, settings, chunks)


class Placed(NamedTuple):
    """A chunk's part of a result that place= has put somewhere."""

    start: tuple[int, ...]
    array: Any


class Box(NamedTuple):
    """What place= is asked about: the elements of a result that come from one chunk."""

    start: tuple[int, ...]
    shape: tuple[int, ...]
    key: str


class Plan:
    """A read that is ready to run: what it will request, copy and decode, before anything runs.

    Its numbers are attributes: chunk_count, shard_count, range_count, direct_count, result_size,
    decoded_size, device_size, host_memory, pinned_memory, local, in_parts (lade_zarr_plan_info in
    C).  str() has them in words.
    """

    def __init__(self, plan: ZarrPlan, finish: Callable[[Any], Any], decisions: str) -> None:
        self._plan = plan
        self._finish = finish
        self._info = plan.info()
        self._decisions = decisions
        self.report: Report | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._info:
            raise AttributeError(f"'Plan' object has no attribute {name!r}")
        return self._info[name]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return self._plan.shape

    def run(self) -> Any:
        """Reads, and gives the result; 'report' then has what was done.  Each run reads again."""
        found, self.report = self._plan.run()
        return self._finish(found)

    def __str__(self) -> str:
        return f"{self._info['text']}\n{self._decisions}"

    def __repr__(self) -> str:
        return f"<liblade.zarr.Plan: {self._info['text']}>"


class _Indexer:
    """array.oindex, .vindex and .blocks."""

    __slots__ = ("_array", "_field", "_kind")

    def __init__(self, array: Array, kind: Kind, field: str | None) -> None:
        self._array = array
        self._kind = kind
        self._field = field

    def __getitem__(self, key: Key) -> Any:
        return self._array._get(self._array._select(self._kind, key, self._field), {})

    def __setitem__(self, key: Key, value: Any) -> None:
        self._array._set(self._array._select(self._kind, key, self._field), value, {})


class _Field:
    """One field of an array of structs: array.fields["x"][0:10]."""

    def __init__(self, array: Array, name: str) -> None:
        self._array = array
        self._name = name
        self.dtype = _field_dtype(array.dtype, name)

    def __getitem__(self, key: Key) -> Any:
        return self._array._get(self._array._select("basic", key, self._name), {})

    def __setitem__(self, key: Key, value: Any) -> None:
        self._array._set(self._array._select("basic", key, self._name), value, {})

    @property
    def oindex(self) -> _Indexer:
        """As the array's."""
        return _Indexer(self._array, "orthogonal", self._name)

    @property
    def vindex(self) -> _Indexer:
        """As the array's."""
        return _Indexer(self._array, "points", self._name)


class _Fields:
    def __init__(self, array: Array) -> None:
        self._array = array

    def __getitem__(self, name: str) -> _Field:
        return _Field(self._array, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._array.dtype.names or ())


def _field_dtype(dtype: np.dtype[Any], field: str) -> np.dtype[Any]:
    for part in field.split("."):
        if dtype.names is None or part not in dtype.names:
            raise KeyError(f"there is no field {field!r}: the elements are {dtype}")
        dtype = dtype[part]
    return dtype


def _is_device(value: Any) -> bool:
    return hasattr(type(value), "__cuda_array_interface__") or (
        hasattr(value, "__dlpack_device__") and value.__dlpack_device__()[0] not in (1, 3)
    )


class Array(Node):
    """An array of a store.  open(), create() and groups give it.

    Indexing is numpy's, also with lists and masks: array[10:20, ..., [1, 5]].  Any number of
    threads may use one; work is done without the interpreter's lock.
    """

    def _take(self, node: ZarrNode) -> None:
        super()._take(node)
        axes = self._description["axes"]
        self._type = Type(*self._description["type"])
        self._dtype = _dtype.numpy_dtype(self._type)
        self._texts = self._type.cls in (STRING, BYTES)
        self._shape = tuple(axis[1] for axis in axes)
        dtype = self._dtype

        def empty(shape: tuple[int, ...]) -> npt.NDArray[Any]:
            return _results.empty(shape, dtype)

        self._empty = empty

    # ---- what it is ----

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements of each axis; a new shape resizes the array."""
        return self._shape

    @shape.setter
    def shape(self, shape: Sequence[int]) -> None:
        self.resize(shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """numpy's type of the elements."""
        return self._dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        size = 1
        for n in self._shape:
            size *= n
        return size

    @property
    def itemsize(self) -> int:
        """Bytes of an element; 0: of any length."""
        return self._type.size

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, decoded."""
        return self.size * self._type.size

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """The shape of chunks, in shards of the inner ones; None: they have several."""
        shard = self._description["chain"]["shard"]
        if shard is not None:
            return tuple(shard["chunk_shape"])
        return self._grid()

    @property
    def shards(self) -> tuple[int, ...] | None:
        """The shape of shards; None: there are none."""
        return self._grid() if self._description["chain"]["shard"] is not None else None

    def _grid(self) -> tuple[int, ...] | None:
        sizes = tuple(axis[2] for axis in self._description["axes"])
        return None if 0 in sizes else sizes

    @property
    def cdata_shape(self) -> tuple[int, ...]:
        """Chunks of the grid along each axis; of shards these."""
        return tuple(axis[3] for axis in self._description["axes"])

    @property
    def nchunks(self) -> int:
        """Chunks of the grid; of shards these."""
        out = 1
        for n in self.cdata_shape:
            out *= n
        return out

    @property
    def dimension_names(self) -> tuple[str | None, ...]:
        """The names of the axes."""
        return tuple(axis[0] for axis in self._description["axes"])

    @property
    def fill_value(self) -> Any:
        """What elements of missing chunks are; None: format 2 has null."""
        fill = self._description["fill"]
        if not self._description["fill_given"]:
            return None
        if self._type.cls == STRING:
            return fill.decode()
        if self._type.cls == BYTES:
            return fill
        return np.frombuffer(fill, self._dtype)[0] if fill else None

    @property
    def codecs(self) -> tuple[str, ...]:
        """The pipelines that chunks pass when they are encoded, as text."""
        chain = self._description["chain"]
        while chain["shard"] is not None:
            chain = chain["shard"]["chunks"]
        return tuple(s if isinstance(s, str) else f"{s[0]} (cannot run: {s[1]})"
                     for s in chain["steps"])  # fmt: skip

    def chunk_key(self, coords: Sequence[int]) -> str:
        """The key of a chunk of the grid, or of a shard, in the store."""
        return self._node.key(tuple(coords))

    @property
    def info(self) -> str:
        """What it is, in a few lines."""
        rows = {
            "path": self._where(),
            "format": self.zarr_format,
            "shape": self.shape,
            "dtype": self._type.name,
            "chunks": self.chunks,
            "shards": self.shards,
            "codecs": ", ".join(self.codecs),
            "fill": self.fill_value,
            "bytes": self.nbytes,
        }
        return "\n".join(f"{name:8} {value}" for name, value in rows.items() if value is not None)

    def nbytes_stored(self) -> int:
        """Bytes that its values take in the store; the store must be able to list."""
        prefix = self.path + "/" if self.path else ""
        store = self._store
        pairs = store._handle.list(prefix, False, True)
        return sum((store.size(key) if size is None else size) or 0 for key, size in pairs)

    # ---- reading ----

    def __getitem__(self, key: Key) -> Any:
        return self._get(_index.basic(key, self._shape), {})

    @property
    def oindex(self) -> _Indexer:
        """Orthogonal indexing: each axis by itself."""
        return _Indexer(self, "orthogonal", None)

    @property
    def vindex(self) -> _Indexer:
        """Points: lists of coordinates that are broadcast together, or a mask."""
        return _Indexer(self, "points", None)

    @property
    def blocks(self) -> _Indexer:
        """Chunks of the grid by their numbers."""
        return _Indexer(self, "blocks", None)

    @property
    def fields(self) -> _Fields:
        """Fields of an array of structs."""
        return _Fields(self)

    def _select(self, kind: Kind, key: Key, field: str | None) -> Selection:
        selection = _index.select(kind, key, self._shape)
        return selection if field is None else selection._replace(field=field)

    def _get(self, selection: Selection, call: dict[str, Any]) -> Any:
        """The common read: no place, nothing to look up."""
        found = _settings.resolve(self._settings, call)
        if not found and not self._texts and selection.field is None:
            out = self._node.read(selection.key, selection.mode, None, self._empty, True, None)
            return _finish(out, selection)
        return self._plan(selection, call, {}).run()

    def read(
        self,
        selection: Key = ...,
        *,
        index: Kind = "basic",
        out: Any = None,
        place: str | Callable[[Box], Any] | None = None,
        allocator: Callable[[tuple[int, ...], np.dtype[Any]], Any] | None = None,
        prototype: Any = None,
        stream: Any = None,
        **settings: Any,
    ) -> Any:
        """Reads a selection, and says where it lands.

        index: how 'selection' is meant, as by array[...], .oindex, .vindex or .blocks.
        out: an array of the selection's shape and type that gets it: of numpy, liblade, CuPy,
            torch or anybody with the buffer protocol, an array interface or DLPack; with any
            strides, on any device.
        place: "numpy", "host", "pinned", "managed", "device:0", "cupy", "torch:cuda:0"; or a
            function that gets each chunk's Box and gives an array of its shape, a place's name,
            or None.  Then the result is a list of Placed.
        allocator: a function of shape and dtype that makes the array.
        prototype: a BufferPrototype of zarr-python, whose nd_buffer makes the array.
        stream: of a device: the read begins after the work on it.
        settings: those of configure().

        IndexError for an index outside; a liblade.Error names the key and the chunk.
        """
        plan = self._plan(
            _index.select(index, selection, self._shape),
            settings,
            {"out": out, "place": place, "allocator": allocator, "prototype": prototype,
             "stream": stream},
        )  # fmt: skip
        return plan.run()

    def plan(self, selection: Key = ..., *, index: Kind = "basic", **how: Any) -> Plan:
        """As read(), which the plan's run() then does; shows before what will be done."""
        names = ("out", "place", "allocator", "prototype", "stream")
        given = {name: how.pop(name) for name in names if name in how}
        return self._plan(_index.select(index, selection, self._shape), how, given)

    async def read_async(self, selection: Key = ..., **how: Any) -> Any:
        """As read(), on a thread of its own; the event loop goes on."""
        plan = self.plan(selection, **how)
        return await asyncio.to_thread(plan.run)

    def _plan(self, selection: Selection, settings: dict[str, Any], given: dict[str, Any]) -> Plan:
        place = given.get("place")
        if isinstance(place, str):
            settings = {"place": place, **settings}
        elif place is not None and not callable(place):
            raise TypeError(f"place is {place!r}, no name of a place and no function")
        call = _settings.check(settings, "the call")
        found = _settings.resolve(self._settings, call)
        stream = given.get("stream")
        options = _settings.read_options(found, stream)
        dtype = self._dtype
        if selection.field is not None:
            dtype = _field_dtype(dtype, selection.field)
        said = self._said(call, given)
        args = (selection.key, selection.mode, selection.field)
        if self._texts:
            plan = self._node.plan(*args, None, False, options)
            return Plan(plan, self._text_finish(plan, selection, given.get("out")), said)
        if callable(place):
            if selection.then is not None:
                raise ValueError("place= takes no lists beside slices, nor new axes")
            plan = self._node.plan(*args, self._placer(place, found, dtype, stream), None, options)
            return Plan(plan, lambda pairs: [Placed(*p) for p in pairs], said)
        out = given.get("out")
        if out is not None and selection.then is not None:
            raise ValueError("out= takes no lists beside slices, nor new axes")
        make = self._maker(found, given, dtype, stream)
        if out is None:
            plan = self._node.plan(*args, make, True, options)
        else:
            plan = self._node.plan(*args, out, False, options)
        return Plan(plan, lambda got: out if out is not None else _finish(got, selection), said)

    def _maker(
        self, found: Any, given: dict[str, Any], dtype: np.dtype[Any], stream: Any
    ) -> Callable[[tuple[int, ...]], Any]:
        allocator, prototype = given.get("allocator"), given.get("prototype")
        if allocator is not None:
            return lambda shape: allocator(shape, dtype)
        if prototype is not None:
            make = prototype.nd_buffer.empty
            return lambda shape: make(shape=shape, dtype=dtype).as_ndarray_like()
        make = _settings.maker(found.get("place", "numpy"), found.get("device_budget", 0), stream)
        return lambda shape: make(shape, dtype)

    def _placer(
        self, place: Callable[[Box], Any], found: Any, dtype: np.dtype[Any], stream: Any
    ) -> Callable[[tuple[int, ...], tuple[int, ...], str], Any]:
        budget = found.get("device_budget", 0)

        def placer(start: tuple[int, ...], shape: tuple[int, ...], key: str) -> Any:
            got = place(Box(start, shape, key))
            if got is None or isinstance(got, str):
                where = found.get("place", "numpy") if got is None else got
                return _settings.maker(where, budget, stream)(shape, dtype)
            return got

        return placer

    def _said(self, call: dict[str, Any], given: dict[str, Any]) -> str:
        if given.get("out") is not None:
            first = ["lands in out=, said by the call"]
        elif callable(given.get("place")):
            first = ["each chunk lands where place= says, said by the chunk's callback"]
        elif given.get("allocator") is not None or given.get("prototype") is not None:
            which = "allocator" if given.get("allocator") is not None else "prototype"
            first = [f"lands in memory of {which}=, said by the call"]
        else:
            first = []
        decided = _settings.decide(self._settings, call)
        if not first and "place" not in decided:
            first = ["lands in numpy, the default"]
        rows = [f"{n}={d.value}, said by {d.by}" for n, d in decided.items()
                if n != "place" or not first]  # fmt: skip
        return "\n".join(first + rows)

    def _texts_of(self, found: tuple[bytes, bytes], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Elements of any length from their offsets and bytes."""
        offsets = np.frombuffer(found[0], np.int64).tolist()
        data = found[1]
        items: list[Any] = [data[a:b] for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
        if self._type.cls == STRING:
            items = [item.decode() for item in items]
        result = np.empty(len(items), self._dtype)
        result[:] = items
        return result.reshape(shape)

    def _text_finish(self, plan: ZarrPlan, selection: Selection, out: Any) -> Callable[[Any], Any]:
        def finish(found: tuple[bytes, bytes]) -> Any:
            result = self._texts_of(found, plan.shape)
            if out is not None:
                out[...] = result
                return out
            return _finish(result, selection)

        return finish

    def explain(self, selection: Key = ..., *, index: Kind = "basic", **how: Any) -> str:
        """What read() of the same arguments would do, what decodes, and who says where it lands."""
        plan = self.plan(selection, index=index, **how)
        out = how.get("out")
        place = how.get("place")
        found = _settings.resolve(self._settings, {})
        if out is not None:
            place = "device" if _is_device(out) else "host"
        elif not isinstance(place, str):
            place = found.get("place", "numpy")
        name, number = _settings.parse_place(place)
        name = {"numpy": "host", "cupy": "device"}.get(name, name)
        if name == "torch":
            name = "device" if (number or "").startswith("cuda") else "host"
        chunk = plan.decoded_size // max(plan.chunk_count, 1)
        lines = [str(plan)]
        for text in self.codecs:
            if "(cannot run" in text or text.startswith("python") or "|python" in text:
                lines.append(f"codec {text}: on the host")
                continue
            codec = Codec(algorithm=text, bitstream_kind=1)
            said = codec.explain(chunk, max(plan.chunk_count, 1), source_place="host",
                                 destination_place=name)  # fmt: skip
            lines.append(f"codec {text}: {said}")
        return "\n".join(lines)

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("an array of a store cannot be one of numpy without a copy")
        found = np.asarray(self.read(..., place="numpy"))
        return found if dtype is None else found.astype(dtype, copy=False)

    def __dlpack__(self, **kwargs: Any) -> Any:
        """All elements, where the settings say that they land."""
        return self.read().__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        place = _settings.resolve(self._settings, {}).get("place", "numpy")
        name, number = _settings.parse_place(place)
        codes = {"pinned": 3, "managed": 13, "device": 2, "cupy": 2}
        if name == "torch" and number and number.startswith("cuda"):
            return 2, int(number.partition(":")[2] or 0)
        return codes.get(name, 1), int(number) if number and number.isdecimal() else 0

    def __dask_tokenize__(self) -> Any:
        """The same for handles of one array, until its document changes."""
        from dask.tokenize import normalize_token

        return normalize_token((type(self).__name__, self._store._recipe or id(self._store),
                                self.path, self.metadata))  # fmt: skip

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of an array without axes")
        return int(self._shape[0])

    def __iter__(self) -> Iterator[Any]:
        """Along the first axis; each chunk is decoded once."""
        step = (self._grid() or self._shape)[0] if self._shape else 0
        for start in range(0, len(self), max(step, 1)):
            yield from self[start : start + step]

    # ---- writing ----

    def __setitem__(self, key: Key, value: Any) -> None:
        self._set(_index.basic(key, self._shape), value, {})

    def _set(
        self, selection: Selection, value: Any, call: dict[str, Any], stream: Any = None,
        report: bool = False,
    ) -> Report | None:  # fmt: skip
        self._writable()
        if selection.then is not None:
            selection = self._as_points(selection)
        options = _settings.write_options(_settings.resolve(self._settings, call), stream)
        args = (selection.key, selection.mode, selection.field)
        source = self._source(value, selection)
        if report:
            return self._node.write(*args, source, None, options, True)
        self._node.write(*args, source, None, options)
        return None

    def _as_points(self, selection: Selection) -> Selection:
        """Lists beside slices: the coordinates of all elements."""
        lists = []
        for axis, rows in enumerate(selection.key):
            size = self._shape[axis]
            flat = np.arange(*rows.indices(size)) if isinstance(rows, slice) else np.asarray(rows)
            flat = np.where(flat < 0, flat + size, flat)
            if flat.ndim == 0:
                lists.append(flat)
                continue
            lists.append(flat)
        kept = [n for n in lists if n.ndim]
        shape = tuple(len(n) for n in kept)
        out, at = [], 0
        for one in lists:
            if one.ndim:
                where = [1] * len(shape)
                where[at] = len(one)
                one = np.broadcast_to(one.reshape(where), shape)
                at += 1
            else:
                one = np.broadcast_to(one, shape)
            out.append(np.ascontiguousarray(one[selection.then], dtype=np.int64))
        if not out[0].ndim:
            return Selection(tuple(int(n) for n in out), _index.ORTHOGONAL, selection.field)
        return Selection(tuple(out), _index.POINTS, selection.field)

    def _source(self, value: Any, selection: Selection) -> Any:
        if self._texts:
            shape = self._node.result(selection.key, selection.mode, selection.field)
            return self._text_source(np.broadcast_to(np.asarray(value, object), shape))
        if _is_device(value):
            return value
        dtype = self._dtype
        if selection.field is not None:
            dtype = _field_dtype(dtype, selection.field)
        array = np.asarray(value, dtype)
        while array.ndim and array.shape[0] == 1 and array.ndim > self.ndim:
            array = array[0]
        return array

    def _text_source(self, array: npt.NDArray[Any]) -> tuple[Any, bytes]:
        fill = self.fill_value
        parts: list[bytes] = []
        for item in array.ravel().tolist():
            one = fill if item is None else item
            if self._type.cls == STRING:
                parts.append(str(one).encode())
            else:
                parts.append(bytes(one))
        offsets = np.zeros(len(parts) + 1, np.int64)
        np.cumsum([len(p) for p in parts], out=offsets[1:])
        return offsets, b"".join(parts)

    def write(
        self,
        value: Any,
        selection: Key = ...,
        *,
        index: Kind = "basic",
        stream: Any = None,
        **settings: Any,
    ) -> Report:
        """Writes elements from memory of any kind, and says what was done.

        value: anything that out= of read() may be, or what numpy makes an array of; it is
            broadcast.  stream: of a device: its work is waited for.  Threads and processes may
            write parts of one chunk or shard at the same time.
        """
        call = _settings.check(settings, "the call")
        selected = _index.select(index, selection, self._shape)
        report = self._set(selected, value, call, stream, True)
        assert report is not None
        return report

    async def write_async(self, value: Any, selection: Key = ..., **how: Any) -> Report:
        """As write(), on a thread of its own; the event loop goes on."""
        return await asyncio.to_thread(lambda: self.write(value, selection, **how))

    def resize(self, shape: Sequence[int] | int) -> None:
        """Changes the shape; chunks that are outside then are deleted."""
        self._writable()
        sizes = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
        self._take(self._node.resize(sizes))

    def append(self, value: Any, axis: int = 0, **settings: Any) -> tuple[int, ...]:
        """Makes the array longer along an axis, and writes 'value' there; gives the new shape.

        Threads and processes may append at the same time.
        """
        self._writable()
        if not -self.ndim <= axis < self.ndim:
            raise ValueError(f"axis is {axis}, the array has {self.ndim} axes")
        call = _settings.check(settings, "the call")
        options = _settings.write_options(_settings.resolve(self._settings, call))
        if self._texts:
            array = np.asarray(value, object)
            shape = array.shape
            source: Any = self._text_source(array)
        else:
            source = value if _is_device(value) else np.asarray(value, self._dtype)
            shape = tuple(value.shape) if _is_device(value) else np.shape(value)
        if len(shape) != self.ndim:
            raise ValueError(f"the value has {len(shape)} axes, the array {self.ndim}")
        node, _ = self._node.append(axis % self.ndim, source, shape, options)
        self._take(node)
        return self._shape

    # ---- chunks ----

    def _lone(self) -> tuple[Store, Array]:
        """An array with the same document in a store of this thread, for single chunks."""
        local = self.__dict__.setdefault("_local", threading.local())
        if getattr(local, "node", None) is not self._node:
            store = Store.memory()
            prefix = self.path + "/" if self.path else ""
            for name in ("zarr.json", ".zarray"):
                text = self._store.read(prefix + name)
                if text is not None:
                    store.write(prefix + name, text)
            node = open_node(store._handle, self.path, 1, self.zarr_format)
            local.lone = store, Array(node, store, False, {"write_empty_chunks": True})
            local.node = self._node
        return cast("tuple[Store, Array]", local.lone)

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("use pickle, which opens the array again")

    def decode_chunk(self, data: Any, coords: Sequence[int], out: Any = None, **how: Any) -> Any:
        """Decodes the bytes of a chunk, or of a shard, without the store.

        coords: its place in the grid.  The result has the chunk's elements that are in the array.
        out, how: as read()'s.
        """
        store, lone = self._lone()
        key = lone.chunk_key(coords)
        store.write(key, data)
        try:
            return lone.read(tuple(int(n) for n in coords), index="blocks", out=out,
                             **{**self._settings, **how})  # fmt: skip
        finally:
            store.delete(key)

    def encode_chunk(self, value: Any, coords: Sequence[int]) -> bytes:
        """The bytes of a chunk, or of a shard, with these elements; nothing is stored."""
        store, lone = self._lone()
        key = lone.chunk_key(coords)
        lone.write(value, tuple(int(n) for n in coords), index="blocks")
        data = store.read(key)
        store.delete(key)
        if data is None:
            raise RuntimeError(f"chunk {tuple(coords)} has no bytes")
        return data

    def __repr__(self) -> str:
        return f"<liblade.zarr.Array {self._where()} {self.shape} {self._type.name}>"


def _finish(out: Any, selection: Selection) -> Any:
    if selection.then is not None:
        return out[selection.then]
    if type(out) is np.ndarray and out.ndim == 0:
        return out[()]
    return out
