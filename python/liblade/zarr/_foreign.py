"""Stores of zarr-python: those that the library can read itself, and the others by their methods.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

from zarr.abc.store import (
    ByteRequest,
    OffsetByteRequest,
    RangeByteRequest,
    Store,
    SuffixByteRequest,
)
from zarr.core.buffer import Buffer, cpu
from zarr.core.sync import sync
from zarr.storage import (
    FsspecStore,
    GpuMemoryStore,
    LocalStore,
    ManagedMemoryStore,
    MemoryStore,
    ObjectStore,
    ZipStore,
)

from .._lade import ZarrStore
from ._store import Store as OurStore
from ._store import lister

_AT, _REST, _LAST = range(3)
_UNKNOWN = (1 << 64) - 1
# Values that a store reads at once, and how many requests still make it faster.
_AT_ONCE = 32
_PROTOTYPE = cpu.buffer_prototype

type _Request = tuple[str, int, int, int]
type _Answer = tuple[Any, int] | BaseException | None


def store_of(store: Store, index_first: bool = False, **merging: int) -> OurStore:
    """Our store of what a store of zarr-python has.

    index_first: shards begin with their index, which is then read by get(), as at the end.
    merging: what get_ranges() of others is told: max_gap_bytes, max_coalesced_bytes.
    """
    made = _native(store)
    return made if made is not None else _by_methods(store, index_first, merging)


def _native(store: Store) -> OurStore | None:
    """A store that the library reads itself; None: its credentials, or what it is, are unknown."""
    kind = type(store)
    if kind is LocalStore:
        return OurStore.directory(
            cast("LocalStore", store).root, create=not store.read_only, read_only=store.read_only
        )
    if kind is ZipStore and store.read_only:
        return OurStore.zip(str(cast("ZipStore", store).path))
    if kind in (MemoryStore, GpuMemoryStore, ManagedMemoryStore):
        return _memory(cast("MemoryStore", store))
    url = _url(store)
    return OurStore.http(url) if url else None


def _url(store: Store) -> str | None:
    """The URL of a web server that is asked without credentials."""
    if type(store) is FsspecStore:
        fs = store.fs
        plain = type(fs).__name__ == "HTTPFileSystem" and not (
            getattr(fs, "client_kwargs", None) or getattr(fs, "kwargs", None)
        )
        return str(store.path) if plain else None
    if type(store) is ObjectStore:
        inner: Any = store.store
        if type(inner).__name__ == "HTTPStore" and not getattr(inner, "client_options", None):
            return str(inner.url)
    return None


def _memory(store: MemoryStore) -> OurStore:
    values: Any = store._store_dict
    path = getattr(store, "path", "")  # of a ManagedMemoryStore
    base = path + "/" if path else ""

    def get(key: str) -> Any:
        found = values.get(base + key)
        return None if found is None else found.as_numpy_array()

    def put(key: str, data: bytes | None, absent: bool) -> bool:
        if data is None:
            return values.pop(base + key, None) is not None
        if absent and base + key in values:
            return False
        values[base + key] = cpu.Buffer.from_bytes(data)
        return True

    def keys(prefix: str) -> list[str]:
        return [k[len(base) :] for k in list(values) if k.startswith(base + prefix)]

    write = None if store.read_only else put
    handle = ZarrStore.own(get, None, write, lister(keys), 2, 1, str(store))
    return OurStore._make(handle, str(store), ("of", (store,), {}))


# ---- others ------------


def _bytes(found: Buffer) -> Any:
    return memoryview(found.as_numpy_array())


async def _one(store: Store, request: _Request) -> _Answer:
    """A range that is no part of a batch."""
    key, kind, off, size = request
    try:
        if not size:
            whole = await store.getsize(key)
            # Some stores give 0 for a key that is not there.
            return (b"", whole) if whole or await store.exists(key) else None
        wanted: ByteRequest | None = None
        if kind == _LAST:
            wanted = SuffixByteRequest(size)
        elif kind == _AT:
            wanted = RangeByteRequest(off, off + size)
        elif off:
            wanted = OffsetByteRequest(off)
        found = await store.get(key, _PROTOTYPE, wanted)
    except (FileNotFoundError, KeyError):
        return None
    except Exception as e:
        return e
    if found is None:
        return None
    data = _bytes(found)
    if kind == _REST:
        return data, off + len(data)
    # Fewer bytes than were asked for are all.
    return data, len(data) if kind == _LAST and len(data) < size else _UNKNOWN


async def _ranges(
    store: Store, key: str, ranges: list[tuple[int, int]], merging: dict[str, int]
) -> list[_Answer]:
    """Ranges of one value."""
    answers: list[_Answer] = [None] * len(ranges)
    wanted = [RangeByteRequest(off, off + size) for off, size in ranges]
    try:
        batches = cast(
            "AsyncIterator[Any]", store.get_ranges(key, wanted, prototype=_PROTOTYPE, **merging)
        )
        async for batch in batches:
            for index, found in batch:
                answers[index] = None if found is None else (_bytes(found), _UNKNOWN)
    except Exception as e:
        first: BaseException = e
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        missing = isinstance(first, (FileNotFoundError, KeyError))
        return [None if missing else first] * len(ranges)
    return answers


async def _many(
    store: Store, requests: list[_Request], index_first: bool, merging: dict[str, int]
) -> list[_Answer]:
    answers: list[_Answer] = [None] * len(requests)
    by_key: dict[str, list[int]] = {}
    alone = []
    for i, (key, kind, _, size) in enumerate(requests):
        if kind == _AT and size:
            by_key.setdefault(key, []).append(i)
        else:
            alone.append(i)
    if index_first:
        for key in [k for k, i in by_key.items() if len(i) == 1 and not requests[i[0]][2]]:
            alone += by_key.pop(key)
    gate = asyncio.Semaphore(_AT_ONCE)

    async def run_one(i: int) -> None:
        async with gate:
            answers[i] = await _one(store, requests[i])

    async def run_key(key: str, which: list[int]) -> None:
        async with gate:
            found = await _ranges(store, key, [requests[i][2:] for i in which], merging)
        for i, answer in zip(which, found, strict=True):
            answers[i] = answer

    await asyncio.gather(
        *(run_one(i) for i in alone), *(run_key(k, which) for k, which in by_key.items())
    )
    return answers


def _by_methods(store: Store, index_first: bool, merging: dict[str, int]) -> OurStore:
    """A store that is read by its get() and get_ranges(), on zarr-python's event loop."""

    raised: list[BaseException] = []

    def fetch(requests: list[_Request]) -> list[Any]:
        answers = sync(_many(store, requests, index_first, merging))
        raised.extend(a for a in answers if isinstance(a, BaseException))
        return answers

    async def write(key: str, data: bytes | None, absent: bool) -> bool:
        if data is None:
            there = await store.exists(key)
            if there:
                await store.delete(key)
            return there
        if absent and await store.exists(key):
            return False
        await store.set(key, cpu.Buffer.from_bytes(data))
        return True

    def put(key: str, data: bytes | None, absent: bool) -> bool:
        try:
            return sync(write(key, data, absent))
        except Exception as e:
            raised.append(e)
            raise

    async def names(prefix: str, level: bool) -> list[str]:
        if not level:
            return [key async for key in store.list_prefix(prefix)]
        # A directory's names do not say which are keys; a node's documents are.
        return [
            prefix + name + ("" if name == "zarr.json" or name.startswith(".z") else "/")
            async for name in store.list_dir(prefix)
        ]

    def listed(prefix: str, level: bool) -> list[str]:
        return sorted(set(sync(names(prefix, level))), key=str.encode)

    handle = ZarrStore.own(
        None,
        fetch,
        put if store.supports_writes and not store.read_only else None,
        listed if store.supports_listing else None,
        0,
        64,
        str(store),
    )
    made = OurStore._make(handle, str(store), ("of", (store,), {}), native=False)
    made.raised = raised
    return made
