"""uproot reads RNTuples through liblade: all columns of a call in one batch, on the host or a GPU.

    import liblade.uproot

    liblade.uproot.enable()
    tuple.arrays(...)                                      # Awkward and numpy, as before
    tuple.arrays(..., backend="cuda", interpreter="gpu")   # CuPy; without kvikio and nvCOMP

What liblade refuses stays uproot's, and reasons() says why.  Needs uproot 5.7 or later.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import importlib
import os
import queue
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from . import rntuple
from ._errors import CorruptError, UnsupportedError
from .rntuple._awkward import option_index
from .rntuple._read import Cuts, rebase
from .rntuple._tree import OFFSETS, SWITCH, Column, Field, Node

_PAIR = np.dtype([("index", "<i8"), ("tag", "<i4")])

_lock = threading.Lock()
_saved: list[tuple[Any, str, Any]] = []
"""What uproot had: (owner, name, value)."""
_local = threading.local()
_counts = [0, 0]
"""Columns that liblade read, and that uproot did."""
_reasons: dict[str, int] = {}
"""Why uproot read columns, and how many for each reason."""


def _count(ours: int, theirs: int = 0, reason: str = "") -> None:
    with _lock:
        _counts[0] += ours
        _counts[1] += theirs
        if theirs:
            _reasons[reason] = _reasons.get(reason, 0) + theirs


# ---- uproot's columns and ours -----------------------------------------------------------------


def _fetcher(source: Any) -> Any:
    """Ranges through a source of uproot's, in one request if it can."""

    def fetch(ranges: list[tuple[int, int]]) -> list[Any]:
        # Sources may answer equal ranges once.
        wanted = sorted({(off, off + size) for off, size in ranges})
        chunks = dict(zip(wanted, source.chunks(wanted, queue.Queue()), strict=True))
        return [np.asarray(chunks[off, off + size].raw_data) for off, size in ranges]

    return fetch


class _Bound:
    """An RNTuple of uproot's, opened by liblade."""

    def __init__(self, model: Any) -> None:
        source = model.file.source
        path = source.file_path
        local = isinstance(path, str) and os.path.isfile(path)
        # Objects do not know their size; what a file has ends at fEND.
        size = source.num_bytes or model.file.fEND
        place = path if local else (_fetcher(source), int(size))
        self.tuple = rntuple.open(place)[model.object_path.split(";")[0].strip("/")]
        info = self.tuple.info
        theirs = len(model.field_records), len(model.cluster_summaries), int(model.num_entries)
        if theirs != (info.field_count, info.cluster_count, info.entry_count):
            raise LookupError("another cycle of the RNTuple")
        self.parts: dict[int, list[tuple[int, int]]] = {}
        self.nodes: dict[int, Node] = {}

    def column(self, model: Any, number: int) -> int | None:
        """Our number of a column of uproot's; None: we have none."""
        record = model.column_records[number]
        peers = [r for r in model._column_records_dict[record.field_id] if r.repr_idx == 0]
        field: Field = self.tuple._fields[record.field_id]
        if record.repr_idx != 0 or len(peers) != len(field.columns) or field.hidden:
            return None
        position: int = [r.idx for r in peers].index(number)
        return field.first_column + position

    def range(self, column: int, start: int, stop: int) -> tuple[int, int]:
        """(first, count) of a column's elements in some clusters."""
        parts = self.parts.get(column)
        if parts is None:
            parts = self.parts[column] = self.tuple._handle.cluster_elements(column)
        some = parts[max(start, 0) : max(stop, 0)]
        return (some[0][0], some[-1][0] + some[-1][1] - some[0][0]) if some else (0, 0)

    def node(self, column: Column) -> Node:
        """The node of a variant."""
        if column.field not in self.nodes:
            plan = self.tuple._plan((self.tuple._fields[column.field].path,), None)
            todo = list(plan.nodes)
            while todo:
                node = todo.pop()
                self.nodes[node.field.index] = node
                todo += node.children
        return self.nodes[column.field]

    def rebased(self, number: int, raw: np.ndarray[Any, Any], start: int, stop: int) -> Any:
        """Tags, and indices that count over all clusters."""
        node = self.node(self.tuple._columns[number])
        clusters = self.tuple.clusters[max(start, 0) : max(stop, 0)]
        entries = range(clusters[0].start, clusters[-1].stop) if clusters else range(0)
        cuts = Cuts(self.tuple._handle, self.tuple._clusters, entries)
        return rebase(cuts, node, node.wants[0], raw)


_bound: dict[int, _Bound | str] = {}
"""By id() of uproot's model; a text says why an RNTuple stays uproot's."""


def _forget(key: int) -> None:
    _bound.pop(key, None)


def _bind(model: Any) -> _Bound | str:
    if model.file.source.closed:
        return "a file that is closed"
    key = id(model)
    if key not in _bound:
        try:
            _bound[key] = _Bound(model)
        except (CorruptError, UnsupportedError, LookupError) as e:
            # uproot does not check all that liblade checks.
            _bound[key] = f"{type(e).__name__}: {e}"
        weakref.finalize(model, _forget, key)
    return _bound[key]


# ---- the host ----------------------------------------------------------------------------------


class _Batch:
    """The columns of one call of arrays(), which the first of its reads reads together."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.asked: tuple[int, int, int] | None = None
        self.arrays: dict[int, tuple[Any, Any]] = {}


def _read_host(
    bound: _Bound, columns: list[int], start: int, stop: int
) -> list[tuple[Any, Any]]:
    """Arrays of our columns, where offsets begin with 0; and what a switch is in the file."""
    targets, arrays = [], []
    for number in columns:
        column = bound.tuple._columns[number]
        first, count = bound.range(number, start, stop)
        dtype = _PAIR if column.kind == SWITCH else column.dtype
        array = np.empty(count + (column.kind == OFFSETS), dtype)
        targets.append((number, first, count, array.view("|V12") if dtype is _PAIR else array))
        arrays.append(array)
    bound.tuple._handle.read(targets, 0, 0, None, 0, 0, 0, False)
    results = []
    for number, array in zip(columns, arrays, strict=True):
        made = array
        if array.dtype == _PAIR:
            made = array.copy()
            _, made["index"] = bound.rebased(number, array.view("|V12"), start, stop)
        results.append((made, array))
    return results


def _batched(model: Any, bound: _Bound, ours: int, start: int, stop: int) -> tuple[Any, Any]:
    """A column's array, of the batch if there is one; as _read_host() gives it."""
    batch: _Batch | None = getattr(_local, "batch", None)
    if batch is None:
        return _read_host(bound, [ours], start, stop)[0]
    asked = id(model), start, stop
    if batch.asked != asked:
        mapped = {n: bound.column(model, n) for n in _numbers(batch.keys)}
        some = sorted({n for n in mapped.values() if n is not None} | {ours})
        batch.arrays = dict(zip(some, _read_host(bound, some, start, stop), strict=True))
        batch.asked = asked
    if ours in batch.arrays:
        return batch.arrays[ours]
    return _read_host(bound, [ours], start, stop)[0]


def _numbers(keys: list[str]) -> list[int]:
    """The columns that keys of a form name."""
    return sorted({int(key.split("-")[1]) for key in keys if "column" in key})


def _store(model: Any, bound: _Bound, cache: Any, col: int, clusters: range, array: Any) -> None:
    """Puts what each cluster stores into uproot's cache, as uproot has it there."""
    ours = bound.column(model, col)
    assert ours is not None
    column = bound.tuple._columns[ours]
    begin = bound.range(ours, clusters.start, clusters.stop)[0]
    for key, cluster in zip(_keys(model, col, clusters), clusters, strict=True):
        first, count = bound.range(ours, cluster, cluster + 1)
        skip = min(max(column.first_stored - first, 0), count)
        low, high = first - begin + skip, first - begin + count
        if column.kind == OFFSETS:
            cache[key] = array[low + 1 : high + 1] - array[low - skip]
        else:
            cache[key] = array[low:high].copy()


def _keys(model: Any, col: int, clusters: range) -> list[str]:
    """Those of uproot's cache."""
    return [f"{model.cache_key}:{cluster}:{col}" for cluster in clusters]


def _make_read_cluster_range(original: Any, accessed: Any) -> Any:
    def read_cluster_range(
        self: Any,
        col_idx: int,
        cluster_start: int,
        cluster_stop: int,
        missing_element_padding: int = 0,
        array_cache: Any = None,
        access_log: Any = None,
    ) -> Any:
        start, stop = int(cluster_start), int(cluster_stop)
        clusters = range(max(start, 0), max(stop, 0))
        bound, ours, why = _bind(self), None, "a column that liblade does not have"
        if isinstance(bound, str):
            why = bound
        else:
            ours = bound.column(self, col_idx)
        if array_cache is not None and not isinstance(bound, str) and ours is not None:
            # uproot has the indices of a variant's clusters, and does not add them up.
            switch = bound.tuple._columns[ours].kind == SWITCH
            keys = _keys(self, col_idx, clusters)
            if not switch and all(array_cache.get(key) is not None for key in keys):
                ours, why = None, "what is in uproot's cache"
        _count(int(ours is not None), int(ours is None), why)
        if isinstance(bound, str) or ours is None:
            rest = col_idx, cluster_start, cluster_stop, missing_element_padding, array_cache
            return original(self, *rest, access_log)
        if access_log is not None:
            if not hasattr(access_log, "__iadd__"):
                raise ValueError(f"{access_log=} needs to implement '__iadd__'.")
            field = self.column_records[col_idx].field_id
            name = self.field_records[field].field_name
            access_log += [accessed(col_idx, start, stop, field, name)]
        dtype = self.get_field_metadata(col_idx).dtype_result
        array, stored = _batched(self, bound, ours, start, stop)
        if array_cache is not None:
            stored = stored.astype(dtype, copy=False)
            _store(self, bound, array_cache, col_idx, clusters, stored)
        array = array.astype(dtype, copy=False)
        return _padded(bound, ours, clusters, array, missing_element_padding)

    return read_cluster_range


def _padded(bound: _Bound, ours: int, clusters: range, array: Any, padding: int) -> Any:
    """The array with as many zeros for elements that are not stored as the caller wants."""
    column = bound.tuple._columns[ours]
    first, count = bound.range(ours, clusters.start, clusters.stop)
    have = min(max(column.first_stored - first, 0), count)
    if padding >= have:
        return array
    return np.delete(array, slice(0, have - padding))


# ---- a GPU -------------------------------------------------------------------------------------


class _Refs:
    """What uproot's ClusterRefs is: columns of clusters, which are not read yet."""

    def __init__(self, columns: dict[int, int]) -> None:
        self.mapped = columns
        self.columns = list(columns)

    def _decompress(self) -> None:
        """The read does it."""


class _Pairs:
    """Tags and indices of a variant, since CuPy has no arrays of records."""

    def __init__(self, tags: Any, index: Any) -> None:
        self.tags = tags
        self.index = index

    def __len__(self) -> int:
        return len(self.index)


def _make_gpu_read(original: Any) -> Any:
    def gpu_read_cluster_range(
        self: Any, fields: list[str], start_cluster_idx: int, stop_cluster_idx: int
    ) -> Any:
        bound, numbers = _bind(self), _numbers(fields)
        why = bound if isinstance(bound, str) else "a column that liblade does not have"
        mapped = {} if isinstance(bound, str) else {n: bound.column(self, n) for n in numbers}
        ours = {n: column for n, column in mapped.items() if column is not None}
        if len(ours) != len(numbers):
            _count(0, len(numbers), why)
            return original(self, fields, start_cluster_idx, stop_cluster_idx)
        _count(len(ours))
        return _Refs(ours)

    return gpu_read_cluster_range


def _read_gpu(bound: _Bound, model: Any, refs: _Refs, start: int, stop: int) -> dict[int, Any]:
    cupy: Any = importlib.import_module("cupy")
    targets: list[Any] = []
    arrays: dict[int, Any] = {}
    for number, ours in refs.mapped.items():
        column = bound.tuple._columns[ours]
        first, count = bound.range(ours, start, stop)
        if column.kind == SWITCH:
            arrays[number] = np.empty(count, "|V12")
        else:
            arrays[number] = cupy.empty(count + (column.kind == OFFSETS), column.dtype)
        targets.append((ours, first, count, arrays[number]))
    stream = cupy.cuda.get_current_stream()
    bound.tuple._handle.read(targets, 0, 0, stream, 0, 0, 0, False)
    for number, ours in refs.mapped.items():
        if bound.tuple._columns[ours].kind == SWITCH:
            tags, index = bound.rebased(ours, arrays[number], start, stop)
            arrays[number] = _Pairs(cupy.asarray(tags), cupy.asarray(index))
        else:
            dtype = model.get_field_metadata(number).dtype_result
            arrays[number] = arrays[number].astype(dtype, copy=False)
    return arrays


def _make_gpu_deserialize(original: Any) -> Any:
    def gpu_deserialize_decompressed_content(
        self: Any, clusters_datas: Any, start_cluster_idx: int, stop_cluster_idx: int
    ) -> Any:
        bound = _bind(self)
        if isinstance(bound, str) or not isinstance(clusters_datas, _Refs):
            return original(self, clusters_datas, start_cluster_idx, stop_cluster_idx)
        return _read_gpu(
            bound, self, clusters_datas, int(start_cluster_idx), int(stop_cluster_idx)
        )

    return gpu_deserialize_decompressed_content


def _make_fill(original: Any) -> Any:
    def _fill_container_dict(
        container_dict: Any, content: Any, key: str, dtype_byte: int, dtype: Any
    ) -> None:
        if isinstance(content, _Pairs):
            container_dict[f"{key}-tags"] = content.tags
            container_dict[f"{key}-index"] = content.index
            cupy: Any = importlib.import_module("cupy")
            container_dict["nones-index"] = cupy.full(1, -1, "i8")
        elif "optional" in key and type(content).__module__.startswith("cupy"):
            # uproot's own is a loop over what is missing.
            container_dict[f"{key}-index"] = option_index(content, key)
        else:
            original(container_dict, content, key, dtype_byte, dtype)

    return _fill_container_dict


# ---- on and off --------------------------------------------------------------------------------


def _make_arrays(original: Any) -> Any:
    def arrays(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = getattr(_local, "batch", None)
        _local.batch = _Batch()
        try:
            return original(self, *args, **kwargs)
        finally:
            _local.batch = before

    arrays.__doc__ = original.__doc__
    return arrays


def _make_find(original: Any) -> Any:
    def _recursive_find(form: Any, res: list[str]) -> None:
        batch: _Batch | None = getattr(_local, "batch", None)
        if batch is not None and not batch.keys:
            batch.keys = res
        original(form, res)

    return _recursive_find


def _make_fields(original: Any) -> Any:
    """The fields directly under a field, of all fields at once: uproot looks through all fields for
    each, which takes seconds where there are thousands."""

    def fields(self: Any) -> Any:
        model = self.ntuple
        if self._fields is not None or self is model:
            return original.fget(self)
        below: dict[int, list[int]] | None = vars(model).get("_lade_below")
        if below is None:
            below = model._lade_below = {}
            for number, record in enumerate(model.field_records):
                if record.parent_field_id != number:
                    below.setdefault(record.parent_field_id, []).append(number)
        self._fields = []
        for number in below.get(self.field_id, ()):
            field = model.all_fields[number]
            self._fields += field.fields if field.is_anonymous else [field]
        return self._fields

    return property(fields, doc=original.__doc__)


def enable() -> None:
    """From now on uproot reads RNTuples through liblade, in all threads.  Any number of times."""
    models: Any = importlib.import_module("uproot.models.RNTuple")
    behaviors: Any = importlib.import_module("uproot.behaviors.RNTuple")
    model, fields = models.Model_ROOT_3a3a_RNTuple, behaviors.HasFields
    with _lock:
        if _saved:
            return
        changes: list[tuple[Any, str, Callable[[Any], Any]]] = [
            (model, "read_cluster_range", lambda f: _make_read_cluster_range(f, models.Accessed)),
            (model, "gpu_read_cluster_range", _make_gpu_read),
            (model, "gpu_deserialize_decompressed_content", _make_gpu_deserialize),
            (fields, "arrays", _make_arrays),
            (fields, "fields", _make_fields),
            (behaviors, "_recursive_find", _make_find),
            (behaviors, "_fill_container_dict", _make_fill),
        ]
        for owner, name, make in changes:
            value = vars(owner)[name]
            _saved.append((owner, name, value))
            setattr(owner, name, make(value))


def disable() -> None:
    """uproot is as it was before enable()."""
    with _lock:
        while _saved:
            owner, name, value = _saved.pop()
            setattr(owner, name, value)
        _bound.clear()


def statistics() -> tuple[int, int]:
    """How many columns liblade has read for uproot, and how many uproot itself."""
    return _counts[0], _counts[1]


def reasons() -> dict[str, int]:
    """Why uproot has read columns itself, and how many for each reason."""
    with _lock:
        return dict(_reasons)


def enabled() -> bool:
    """True between enable() and disable()."""
    return bool(_saved)
