"""A codec pipeline for zarr-python, which reads and writes whole selections by the library.

zarr-python gives a pipeline the chunks of a selection, each with its part of the result.  From
these the selection is put together again, and the library reads it in one call, shards too, into
the memory of the buffer that zarr-python has made: numpy's, CuPy's or another's.

What the library cannot do goes zarr-python's own way, and is counted.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, cast

import numpy as np
from zarr.abc.codec import CodecPipeline as BaseCodecPipeline
from zarr.abc.codec import GetResult
from zarr.abc.store import Store as ZarrPythonStore
from zarr.codecs import ShardingCodec
from zarr.codecs._v2 import V2Codec
from zarr.core.array_spec import ArrayConfig, ArraySpec
from zarr.core.buffer import NDBuffer, cpu, default_buffer_prototype, gpu
from zarr.core.codec_pipeline import BatchedCodecPipeline
from zarr.core.metadata import ArrayV2Metadata, ArrayV3Metadata
from zarr.core.metadata.v3 import RegularChunkGridMetadata
from zarr.storage import StorePath

from .._errors import CorruptError, Error
from . import _index, _results, _settings
from ._array import Array
from ._codecs import open_node
from ._foreign import store_of
from ._store import Store

type _Item = tuple[Any, ArraySpec, Any, Any, bool]

# Reads and writes of local stores that are smaller than this are done on the event loop's thread:
# to hand them to another one would take longer.
_SMALL = 256 << 10


class CorruptChunkError(CorruptError, ValueError):
    """A chunk is corrupt; a ValueError too, as some of zarr-python's own codecs raise."""


# ---- counts ------------


class PipelineCounts(NamedTuple):
    """What went which way in this process: chunks, or shards, of reads and writes."""

    native: int
    """Read and written by the library, from stores that it reads itself."""
    foreign: int
    """Decoded and encoded by the library, through the get_ranges() and set() of other stores."""
    stock: int
    """Done by zarr-python's own pipeline."""
    calls: int
    """Reads and writes of the library: one for each selection."""


_counts = [0, 0, 0, 0]
_reasons: dict[str, int] = {}
_lock = threading.Lock()


def _count(which: int, chunks: int, reason: str = "") -> None:
    with _lock:
        _counts[which] += chunks
        if which < 2:
            _counts[3] += 1
        if reason:
            _reasons[reason] = _reasons.get(reason, 0) + chunks


def pipeline_counts(*, reset: bool = False) -> PipelineCounts:
    """How many chunks the library has read and written for zarr-python, and how many it has not."""
    with _lock:
        found = PipelineCounts(*_counts)
        if reset:
            _counts[:] = [0, 0, 0, 0]
            _reasons.clear()
    return found


def pipeline_reasons() -> dict[str, int]:
    """Why chunks went zarr-python's own way, and how many for each reason."""
    with _lock:
        return dict(_reasons)


# ---- threads ------------

_executor: ThreadPoolExecutor | None = None


def _threads() -> ThreadPoolExecutor:
    """Threads that wait for the library; zarr-python's own may be needed by the store meanwhile."""
    global _executor
    with _lock:
        if _executor is None:
            _executor = ThreadPoolExecutor(
                min(32, 4 + (os.cpu_count() or 1)), thread_name_prefix="liblade_zarr"
            )
        return _executor


def _after_fork() -> None:
    global _executor, _lock
    _executor = None
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


# ---- the selection of a batch ------------


class _Refused(Exception):
    """Why the library does not do it."""


class _Rebuilt(NamedTuple):
    key: tuple[Any, ...]
    mode: int
    shape: tuple[int, ...]  # of the part of the result
    part: tuple[slice, ...] | None  # which part of the result; None: all of it
    ends: tuple[int, ...]  # along each axis of the array, behind the last element


def _is_int(value: Any) -> bool:
    return isinstance(value, (int, np.integer))


def _flat(selector: Any, size: int) -> np.ndarray[Any, Any]:
    """The indices of a list, a mask, an integer or a slice, in one row."""
    if isinstance(selector, slice):
        return np.arange(*selector.indices(size))
    found = np.asarray(selector)
    if found.dtype == bool:
        return np.flatnonzero(found)
    return found.reshape(-1)


class _Axis:
    """The pieces of one axis: what is selected in each chunk, and where it goes."""

    def __init__(self, dropped: bool) -> None:
        self.dropped = dropped
        self.pieces: dict[int, tuple[Any, Any, int]] = {}  # by chunk: selector, out, size

    def build(self, starts: Callable[[int], int]) -> tuple[Any, int, int, int]:
        """(the index, the first place in the result, the number of elements, the end)"""
        if self.dropped:
            if len(self.pieces) != 1:
                raise _Refused("an index that selects several chunks")
            ((chunk, (selector, _, size)),) = self.pieces.items()
            at = starts(chunk) + int(_flat(selector, size)[0])
            return at, 0, 0, at + 1
        if all(isinstance(s, slice) and isinstance(o, slice) for s, o, _ in self.pieces.values()):
            found = self._slices(starts)
            if found is not None:
                return found
        return self._list(starts)

    def _slices(self, starts: Callable[[int], int]) -> tuple[Any, int, int, int] | None:
        """Pieces that are one slice of the array."""
        rows = []
        for chunk, (selector, out, size) in self.pieces.items():
            first, stop, step = selector.indices(size)
            count = len(range(first, stop, step))
            if step < 1 or (out.step or 1) != 1 or (out.stop - out.start) != count:
                return None
            if count:
                rows.append((out.start, starts(chunk) + first, step, count))
        rows.sort()
        if not rows:
            return slice(0, 0), 0, 0, 0
        at, first, step, total = rows[0]
        steps = {s for _, _, s, n in rows if n > 1}
        if len(steps) > 1:
            return None
        if steps:
            step = steps.pop()
        elif len(rows) > 1:
            step = (rows[1][1] - first) // max(rows[1][0] - at, 1)
        if step < 1:
            return None
        total = 0
        for out, begin, _, count in rows:
            if out != at + total or begin != first + step * total:
                return None
            total += count
        end = first + step * (total - 1) + 1
        return slice(first, end, step), at, total, end

    def _list(self, starts: Callable[[int], int]) -> tuple[Any, int, int, int]:
        places, values = [], []
        for chunk, (selector, out, size) in self.pieces.items():
            row = _flat(selector, size)
            row = np.where(row < 0, row + size, row) + starts(chunk)
            to = np.arange(out.start, out.stop) if isinstance(out, slice) else _flat(out, 0)
            if len(to) != len(row):
                raise _Refused("a list with more places than indices")
            places.append(to)
            values.append(row)
        place, value = np.concatenate(places), np.concatenate(values)
        low = int(place.min()) if len(place) else 0
        total = int(place.max()) + 1 - low if len(place) else 0
        if total != len(place):
            raise _Refused("a list with gaps")
        index = np.full(total, -1, np.int64)
        index[place - low] = value
        if total and int(index.min()) < 0:
            raise _Refused("a list with gaps")
        return index, low, total, int(index.max()) + 1 if total else 0


def _rebuild(
    items: list[_Item],
    coords: list[tuple[int, ...]],
    starts: list[Callable[[int], int]],
    drop_axes: tuple[int, ...],
) -> _Rebuilt:
    """The selection whose chunks these are."""
    ndim = len(starts)
    selection, out = items[0][2], items[0][3]
    if not isinstance(selection, tuple):
        selection = (selection,)
    if len(selection) != ndim:
        raise _Refused("a selection of other axes")
    if ndim and not isinstance(out, tuple):
        return _rebuild_points(items, coords, starts)
    axes = [_Axis(d in drop_axes or _is_int(selection[d])) for d in range(ndim)]
    kept = 0
    outs = []
    for axis in axes:
        outs.append(kept)
        kept += not axis.dropped
    if len(out) != kept:
        raise _Refused("a selection of other axes")
    for (_, spec, chosen, out, _), where in zip(items, coords, strict=True):
        for d, axis in enumerate(axes):
            if where[d] not in axis.pieces:
                to = None if axis.dropped else out[outs[d]]
                axis.pieces[where[d]] = chosen[d], to, spec.shape[d]
    count = 1
    for axis in axes:
        count *= len(axis.pieces)
    if count != len(items):
        raise _Refused("chunks that are no box")
    key, shape, part, ends = [], [], [], []
    for axis, start in zip(axes, starts, strict=True):
        index, low, total, end = axis.build(start)
        key.append(index)
        ends.append(end)
        if not axis.dropped:
            shape.append(total)
            part.append(slice(low, low + total))
    whole = all(p.start == 0 for p in part)
    return _Rebuilt(
        tuple(key), _index.ORTHOGONAL, tuple(shape), None if whole else tuple(part), tuple(ends)
    )


def _rebuild_points(
    items: list[_Item], coords: list[tuple[int, ...]], starts: list[Callable[[int], int]]
) -> _Rebuilt:
    """Points: lists for all axes, and where each of them goes."""
    ndim = len(starts)
    places, values = [], []
    for (_, spec, chosen, out, _), where in zip(items, coords, strict=True):
        rows = [
            _flat(s, n) + start(c)
            for s, n, start, c in zip(chosen, spec.shape, starts, where, strict=True)
        ]
        to = np.arange(out.start, out.stop) if isinstance(out, slice) else _flat(out, 0)
        if any(len(row) != len(to) for row in rows):
            raise _Refused("points with more places than indices")
        places.append(to)
        values.append(np.stack(rows))
    place, value = np.concatenate(places), np.concatenate(values, axis=1)
    if len(place) == 0 or int(place.min()) != 0 or int(place.max()) + 1 != len(place):
        raise _Refused("points with gaps")
    index = np.full((ndim, len(place)), -1, np.int64)
    index[:, place] = value
    if int(index.min()) < 0:
        raise _Refused("points with gaps")
    ends = tuple(int(n) + 1 for n in index.max(axis=1))
    return _Rebuilt(tuple(index), _index.POINTS, (len(place),), None, ends)


# ---- one array of zarr-python ------------


def _known(codecs: Iterable[Any]) -> bool:
    """Whether codecs are zarr-python's and numcodecs' own: others may do what they like."""
    for codec in codecs:
        if codec is None:
            continue
        home = type(codec).__module__
        if not home.startswith(("zarr.codecs", "numcodecs.", "liblade.")):
            return False
        if isinstance(codec, V2Codec) and not _known((*(codec.filters or ()), codec.compressor)):
            return False
        if isinstance(codec, ShardingCodec) and not _known((*codec.codecs, *codec.index_codecs)):
            return False
    return True


class _Native:
    """An array of zarr-python as one of the library's: its document, and the store of its chunks.

    The document is in a store of its own, with a shape that may grow: a pipeline lives on when its
    array is resized.
    """

    def __init__(
        self,
        metadata: Any,
        store: ZarrPythonStore,
        codecs: Iterable[Any],
        config: ArrayConfig,
    ) -> None:
        if not _known(codecs):
            raise _Refused("a codec of others")
        codecs = tuple(codecs)
        self.morton, index_first = True, False
        for codec in codecs:
            if isinstance(codec, ShardingCodec):
                order = codec.subchunk_write_order
                if order == "colexicographic":
                    raise _Refused("shards in colexicographic order")
                self.morton = order == "morton"
                index_first = str(codec.index_location) == "start"
        self.store = store_of(
            store,
            index_first,
            max_gap_bytes=config.sharding_coalesce_max_gap_bytes,
            max_coalesced_bytes=config.sharding_coalesce_max_bytes,
        )
        self.theirs = store
        self.documents: dict[str, dict[str, Any]] = {}
        for name, buffer in metadata.to_buffer_dict(cpu.buffer_prototype).items():
            if name != ".zattrs":
                self.documents[name] = json.loads(buffer.to_bytes())
                self.documents[name].pop("attributes", None)
        self.format = int(metadata.zarr_format)
        self.ndim = len(metadata.shape)
        if self.format == 2:
            self.separator, self.prefixed = str(metadata.dimension_separator), False
        else:
            encoding = metadata.chunk_key_encoding
            if encoding.name not in ("default", "v2"):
                raise _Refused(f"keys as {encoding.name}")
            self.separator = str(encoding.separator)
            self.prefixed = encoding.name == "default"
        self.regular = self.format == 2 or isinstance(metadata.chunk_grid, RegularChunkGridMetadata)
        self.arrays: dict[str, Array] = {}

    def path_and_coords(self, key: str) -> tuple[str, tuple[int, ...]]:
        """The array's path and the chunk's place in the grid."""
        parts = key.split(self.separator) if self.separator == "." else key.split("/")
        if self.separator == ".":
            path, _, last = key.rpartition("/")
            parts = last.split(".")
            if self.prefixed:
                parts = parts[1:]
        else:
            count = self.ndim + self.prefixed if self.prefixed else max(self.ndim, 1)
            path = "/".join(parts[: len(parts) - count])
            parts = parts[len(parts) - count + self.prefixed :]
        if not self.ndim:
            return path, ()
        return path, tuple(map(int, parts))

    def array(self, path: str, shape: tuple[int, ...] | None = None) -> Array:
        found = self.arrays.get(path)
        if found is not None and shape is None:
            return found
        documents = Store.memory()
        prefix = path + "/" if path else ""
        for name, document in self.documents.items():
            if shape is not None:
                document = {**document, "shape": shape}
            documents.write(prefix + name, json.dumps(document).encode())
        node = open_node(documents._handle, path, 1, self.format, self.store._handle, False)
        array = Array(node, self.store, False, {})
        chain = array._description["chain"]
        while chain is not None:
            if not all(isinstance(step, str) for step in chain["steps"]):
                raise _Refused("a codec that the library does not have")
            chain = chain["shard"] and chain["shard"]["chunks"]
        self.arrays[path] = array
        return array

    def starts(self, array: Array) -> list[Callable[[int], int]]:
        """For each axis, where a chunk begins."""
        out: list[Callable[[int], int]] = []
        for _, _, size, _, runs in array._description["axes"]:
            if size:
                out.append(size.__mul__)
            else:
                edges = [0]
                for length, count in runs:
                    last = edges[-1]
                    edges.extend(last + length * i for i in range(1, count + 1))
                out.append(edges.__getitem__)
        return out

    def prepare(self, items: list[_Item], drop_axes: tuple[int, ...]) -> tuple[Array, _Rebuilt]:
        """The array and the selection of a batch."""
        coords = []
        path = None
        for getter, *_ in items:
            if type(getter) is not StorePath or getter.store is not self.theirs:
                raise _Refused("bytes that come from no store")
            at, where = self.path_and_coords(getter.path)
            if path is not None and at != path:
                raise _Refused("chunks of several arrays")
            path = at
            coords.append(where)
        array = self.array(cast("str", path))
        rebuilt = _rebuild(items, coords, self.starts(array), drop_axes)
        if any(end > size for end, size in zip(rebuilt.ends, array.shape, strict=True)):
            if not self.regular:
                raise _Refused("a grid that has grown")
            grown = tuple(map(max, rebuilt.ends, array.shape))
            array = self.array(cast("str", path), grown)
        return array, rebuilt


# ---- the pipeline ------------


def _renew(out: NDBuffer) -> None:
    """Exchanges the new memory of a large result for memory that is used again (_results.py).

    Only where nobody can tell: the buffer is zarr-python's own, and it alone refers to the array,
    which is numpy's own memory.  So an array that the caller has given by out= is never exchanged.
    """
    alone = sys.getrefcount(out._data) == 2  # the buffer's, and that of this call
    data: Any = out._data
    if (
        alone
        and type(out) is cpu.NDBuffer
        and type(data) is np.ndarray
        and data.flags.owndata
        and data.nbytes >= _results.LEAST
    ):
        order = "C" if data.flags.c_contiguous else "F"
        out._data = _results.empty(data.shape, data.dtype, order)


def _ordered(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The elements in the other byte order."""
    if dtype.kind in "mM":  # numpy's astype() keeps the bytes of times without a unit
        return array.byteswap().view(dtype)
    return array.astype(dtype)


def _little(array: Any) -> Any:
    """An array of numpy with little-endian elements; others as they are."""
    if isinstance(array, np.ndarray) and not array.dtype.isnative:
        return _ordered(array, array.dtype.newbyteorder("="))
    return array


class CodecPipeline(BatchedCodecPipeline):
    """zarr-python's reads and writes by the library: one call for each selection.

        zarr.config.set({"codec_pipeline.path": "liblade.zarr.CodecPipeline"})

    Also by the environment: ZARR_CODEC_PIPELINE__PATH=liblade.zarr.CodecPipeline.
    """

    @classmethod
    def from_array_metadata_and_store(
        cls, array_metadata: Any, store: ZarrPythonStore
    ) -> CodecPipeline:
        """The pipeline of one array."""
        if isinstance(array_metadata, ArrayV3Metadata):
            codecs: Iterable[Any] = array_metadata.codecs
            regular = isinstance(array_metadata.chunk_grid, RegularChunkGridMetadata)
            shape = (
                cast("RegularChunkGridMetadata", array_metadata.chunk_grid).chunk_shape
                if regular
                else (1,) * len(array_metadata.shape)
            )
            config = ArrayConfig.from_dict({})
        elif isinstance(array_metadata, ArrayV2Metadata):
            codecs = [V2Codec(filters=array_metadata.filters, compressor=array_metadata.compressor)]
            shape = array_metadata.chunks
            config = ArrayConfig.from_dict({"order": array_metadata.order})
        else:
            raise NotImplementedError
        spec = ArraySpec(
            shape=shape,
            dtype=array_metadata.dtype,
            fill_value=array_metadata.fill_value,
            config=config,
            prototype=default_buffer_prototype(),
        )
        self = cls.from_codecs(codecs).evolve_from_array_spec(spec)
        object.__setattr__(self, "_of", (array_metadata, store))
        return self

    def __reduce__(self) -> Any:
        of = getattr(self, "_of", None)
        if of is not None:
            return type(self).from_array_metadata_and_store, of
        return type(self).from_codecs, (tuple(self),)

    def _native(self, config: ArrayConfig) -> _Native:
        found = self.__dict__.get("_found")
        if found is None:
            of = getattr(self, "_of", None)
            if of is None:
                found = _Refused("a pipeline without an array")
            else:
                try:
                    found = _Native(of[0], of[1], self, config)
                except _Refused as e:
                    found = e
                except (Error, NotImplementedError, ValueError, TypeError, OSError) as e:
                    found = _Refused(f"{type(e).__name__}: {e}")
            object.__setattr__(self, "_found", found)
        if isinstance(found, _Refused):
            raise found.with_traceback(None)
        return cast("_Native", found)

    def _prepare(
        self, items: list[_Item], drop_axes: tuple[int, ...]
    ) -> tuple[_Native, Array, _Rebuilt]:
        native = self._native(items[0][1].config)
        buffer = items[0][1].prototype.buffer
        if not native.store.native and buffer not in (cpu.Buffer, gpu.Buffer):
            raise _Refused("bytes in a buffer class of others")
        try:
            return native, *native.prepare(items, drop_axes)
        except Error as e:
            raise _Refused(f"{type(e).__name__}: {e}") from None
        except IndexError:
            raise _Refused("a grid that has grown") from None

    async def read(
        self, batch_info: Iterable[_Item], out: NDBuffer, drop_axes: tuple[int, ...] = ()
    ) -> tuple[GetResult, ...]:
        """Reads chunks of a selection into 'out'."""
        items = list(batch_info)
        if not items:
            return ()
        try:
            native, array, rebuilt = self._prepare(items, drop_axes)
            target = self._target(array, rebuilt, out)
        except _Refused as e:
            _count(2, len(items), str(e))
            return await super().read(items, out, drop_axes)

        def work() -> int:
            return _read(array, rebuilt, target)

        try:
            missing = await self._run(native, work, out.dtype.itemsize * math.prod(rebuilt.shape))
        except _Refused as e:
            _count(2, len(items), str(e))
            return await super().read(items, out, drop_axes)
        _count(0 if native.store.native else 1, len(items))
        return await self._results(native, items, missing)

    def _target(self, array: Array, rebuilt: _Rebuilt, out: NDBuffer) -> Any:
        """The memory that is read into."""
        if rebuilt.part is None and not array._texts:
            _renew(out)
        target: Any = out.as_ndarray_like()
        dtype = out.dtype
        if rebuilt.part is not None:
            target = target[rebuilt.part]
        if tuple(target.shape) != rebuilt.shape:
            raise _Refused("a result of another shape")
        if array._texts:
            if not isinstance(target, np.ndarray) or dtype.kind not in "OT":
                raise _Refused(f"strings as {dtype}")
        elif dtype.newbyteorder("<") != array.dtype.newbyteorder("<"):
            raise _Refused(f"elements of {array.dtype} as {dtype}")
        return target

    async def _run[T](self, native: _Native, work: Callable[[], T], size: int) -> T:
        try:
            if native.store.local and size <= _SMALL:
                return work()
            return await asyncio.get_running_loop().run_in_executor(_threads(), work)
        except CorruptError as e:
            raise CorruptChunkError(e.message, e.status, e.offset, e.index) from None
        except Error as e:
            # zarr-python says in its own words which value does not fit, and what it makes of a
            # shard that somebody deletes meanwhile.
            if e.status in ("LADE_E_VALUE", "LADE_E_CHANGED"):
                raise _Refused(f"{type(e).__name__}: {e}") from None
            if native.store.raised:
                first = native.store.raised[0]
                native.store.raised.clear()
                raise first from e  # the store's own exception
            raise

    async def _results(
        self, native: _Native, items: list[_Item], missing: int
    ) -> tuple[GetResult, ...]:
        if not missing:
            return (GetResult(status="present"),) * len(items)
        asked = any(spec.config.read_missing_chunks is False for _, spec, *_ in items)
        if native.store.native or asked:

            def look() -> tuple[GetResult, ...]:
                there = [native.store.size(getter.path) is not None for getter, *_ in items]
                return tuple(GetResult(status="present" if found else "missing") for found in there)

            return await self._run(native, look, 0)
        # Nobody asks, and each answer would cost a request.
        return (GetResult(status="present"),) * len(items)

    async def write(
        self, batch_info: Iterable[_Item], value: NDBuffer, drop_axes: tuple[int, ...] = ()
    ) -> None:
        """Writes chunks of a selection."""
        items = list(batch_info)
        if not items:
            return
        try:
            native, array, rebuilt = self._prepare(items, drop_axes)
            if native.theirs.read_only:
                raise _Refused("a store that is only read")
            source = self._source(array, rebuilt, value)
        except _Refused as e:
            _count(2, len(items), str(e))
            await super().write(items, value, drop_axes)
            return
        found = dict(_settings.resolve({}, {}))
        found["write_empty_chunks"] = items[0][1].config.write_empty_chunks
        found["morton"] = native.morton

        def work() -> None:
            options = _settings.write_options(found)
            array._node.write(rebuilt.key, rebuilt.mode, None, source, None, options)

        try:
            await self._run(native, work, getattr(source, "nbytes", _SMALL))
        except _Refused as e:
            _count(2, len(items), str(e))
            await super().write(items, value, drop_axes)
            return
        _count(0 if native.store.native else 1, len(items))

    def _source(self, array: Array, rebuilt: _Rebuilt, value: NDBuffer) -> Any:
        """The elements that are written."""
        source: Any = value.as_ndarray_like()
        if source.shape and rebuilt.part is not None:
            source = source[rebuilt.part]
        if source.shape and tuple(source.shape) != rebuilt.shape:
            raise _Refused("a value of another shape")
        if array._texts:
            items = np.asarray(source, object)
            return array._text_source(np.broadcast_to(items, rebuilt.shape))
        if value.dtype.newbyteorder("<") != array.dtype.newbyteorder("<"):
            raise _Refused(f"elements of {array.dtype} from {value.dtype}")
        return _little(source)


def _read(array: Array, rebuilt: _Rebuilt, target: Any) -> int:
    """Reads, and gives the number of chunks that were missing."""
    found = _settings.resolve({}, {})
    options = _settings.read_options({k: v for k, v in found.items() if k != "place"})
    key, mode, _, _, _ = rebuilt
    if array._texts:
        plan = array._node.plan(key, mode, None, None, False, options)
        texts, report = plan.run()
        target[...] = array._texts_of(texts, plan.shape)
    elif isinstance(target, np.ndarray) and not target.dtype.isnative:
        scratch = np.empty(target.shape, target.dtype.newbyteorder("="))
        _, report = array._node.plan(key, mode, None, scratch, False, options).run()
        target[...] = _ordered(scratch, target.dtype)
    else:
        _, report = array._node.plan(key, mode, None, target, False, options).run()
    return report["missing_count"]


CodecPipeline.__module__ = "liblade.zarr"
assert issubclass(CodecPipeline, BaseCodecPipeline)
