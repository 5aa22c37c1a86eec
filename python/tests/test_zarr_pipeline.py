"""liblade.zarr.CodecPipeline beside zarr-python's default pipeline, and what goes which way.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import asyncio
import os
import pathlib
import pickle
import subprocess
import sys
from typing import Any

import pytest

np = pytest.importorskip("numpy", reason="numpy is not installed")
zarr = pytest.importorskip("zarr", minversion="3.3", reason="zarr-python 3.3 is not installed")

import liblade
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from hypothesis.extra import numpy as hn
from liblade import zarr as lz
from zarr.codecs import BloscCodec, BytesCodec, GzipCodec, TransposeCodec, ZstdCodec
from zarr.core.buffer import cpu
from zarr.storage import LocalStore, ManagedMemoryStore, MemoryStore, WrapperStore

OURS = "liblade.zarr.CodecPipeline"
THEIRS = "zarr.core.codec_pipeline.BatchedCodecPipeline"


@pytest.fixture(autouse=True)
def counted() -> Any:
    lz.pipeline_counts(reset=True)
    with zarr.config.set({"codec_pipeline.path": OURS}):
        yield


def all_native() -> None:
    counts = lz.pipeline_counts()
    assert counts.stock == 0 and counts.native + counts.foreign > 0, lz.pipeline_reasons()


def values(store: MemoryStore) -> dict[str, bytes]:
    return {k: v.to_bytes() for k, v in store._store_dict.items()}


LAYOUTS: list[dict[str, Any]] = [
    {"compressors": None},
    {"compressors": ZstdCodec(level=1), "shards": True},
    {"compressors": [GzipCodec(), zarr.codecs.Crc32cCodec()]},
    {"compressors": BloscCodec(cname="lz4", shuffle="shuffle", typesize=4)},
    {"serializer": BytesCodec(endian="big"), "compressors": None, "shards": True},
    {"filters": "transpose"},
    {"zarr_format": 2, "order": "F"},
    {"zarr_format": 2, "chunk_key_encoding": {"name": "v2", "separator": "/"}},
    {"chunk_key_encoding": {"name": "v2", "separator": "."}},
    {"chunk_key_encoding": {"name": "default", "separator": "."}},
]


@st.composite
def cases(draw: Any) -> tuple[tuple[int, ...], dict[str, Any]]:
    shape = draw(hn.array_shapes(min_dims=0, max_dims=3, max_side=9))
    how = dict(draw(st.sampled_from(LAYOUTS)))
    how["chunks"] = tuple(draw(st.integers(1, n)) for n in shape)
    if how.pop("shards", False) and shape:
        how["shards"] = tuple(c * draw(st.integers(1, 3)) for c in how["chunks"])
    if how.pop("filters", None):
        how["filters"] = [TransposeCodec(order=tuple(range(len(shape)))[::-1])] if shape else None
    how["config"] = {
        "write_empty_chunks": draw(st.booleans()),
        "order": draw(st.sampled_from("CF")),
    }
    return shape, how


@examples(max_examples=120, deadline=None)
@given(st.data())
def test_as_the_default_pipeline(data: Any) -> None:
    """Both pipelines, the same calls: the same results, and the same values in the stores."""
    shape, how = data.draw(cases())
    with_path = [zarr.config.set({"codec_pipeline.path": path}) for path in (OURS, THEIRS)]
    stores, arrays = [MemoryStore(), MemoryStore()], []
    for store, path in zip(stores, with_path, strict=True):
        with path:
            arrays.append(
                zarr.create_array(store, name="a/b", shape=shape, dtype="<i4", fill_value=3, **how)
            )
    for _ in range(3):
        kind = data.draw(st.sampled_from(["basic", "orthogonal", "coordinate", "mask"]))
        if kind == "basic" or not shape:
            key: Any = data.draw(
                hn.basic_indices(shape, allow_newaxis=False).filter(
                    lambda k: all(
                        not isinstance(s, slice) or s.step is None or s.step > 0
                        for s in (k if isinstance(k, tuple) else (k,))
                    )
                )
            )
            kind = "basic"
        elif kind == "mask":
            key = data.draw(hn.arrays(bool, shape))
        elif kind == "orthogonal":
            key = tuple(
                data.draw(
                    st.one_of(
                        st.integers(0, n - 1),
                        st.lists(st.integers(0, n - 1), min_size=1, max_size=4).map(np.array),
                        hn.arrays(bool, n).filter(lambda m: m.any()),
                        st.builds(slice, st.integers(0, n - 1), st.just(n)),
                    )
                )
                for n in shape
            )
        else:
            count = data.draw(st.integers(1, 5))
            key = tuple(
                data.draw(hn.arrays(np.intp, count, elements=st.integers(0, n - 1))) for n in shape
            )
        got = [getattr(a, f"get_{kind}_selection")(key) for a in arrays]
        assert np.array_equal(got[0], got[1]) and np.shape(got[0]) == np.shape(got[1])
        # An element that a list has twice gets one of the values.
        value: Any = np.arange(np.size(got[0]), dtype="<i4").reshape(np.shape(got[0]))
        if kind in ("orthogonal", "coordinate") or data.draw(st.booleans()):
            value = data.draw(st.sampled_from([3, 5]))
        for a in arrays:
            getattr(a, f"set_{kind}_selection")(key, value)
        assert np.array_equal(arrays[0][...], arrays[1][...])
    ours, theirs = map(values, stores)
    assert ours.keys() == theirs.keys()
    if how.get("compressors", 1) is None:
        assert ours == theirs  # bytes for bytes, also the order in shards


def test_nothing_goes_the_stock_way(tmp_path: pathlib.Path) -> None:
    x = np.arange(60 * 100, dtype="<i4").reshape(60, 100)
    for store in (MemoryStore(), LocalStore(tmp_path / "a")):
        for i, how in enumerate(({}, {"shards": (20, 40)}, {"zarr_format": 2})):
            a = zarr.create_array(
                store, name=f"n{i}", shape=x.shape, dtype=x.dtype, chunks=(10, 20), **how
            )
            a[...] = x
            assert (a[...] == x).all() and (a[3:55:3, -5] == x[3:55:3, -5]).all()
            assert (a.oindex[[44, 3, 3], 5:9] == x[[44, 3, 3], 5:9]).all()
            assert (a.vindex[[44, 3], [5, 9]] == x[[44, 3], [5, 9]]).all()
            assert (a.blocks[1, 2:4] == (x[20:40, 80:] if i == 1 else x[10:20, 40:80])).all()
            a[5:33, 7] = 0
    counts = lz.pipeline_counts()
    assert counts.stock == 0 and counts.foreign == 0, lz.pipeline_reasons()
    assert counts.native > 200 and counts.calls == 2 * 3 * 7


TYPES = "? i1 <u2 >i4 <f4 >f8 <c8 S4 <U3 <M8[us] <m8[s]".split()


@pytest.mark.parametrize("form", [2, 3])
@pytest.mark.parametrize("text", TYPES)
def test_types(text: str, form: int) -> None:
    dtype = np.dtype(text)
    raw = np.random.default_rng(1).integers(0, 2 if text == "?" else 90, 7 * dtype.itemsize, "u1")
    x = np.array("a bc def  é z xyz".split(" "), dtype) if dtype.kind == "U" else raw.view(dtype)
    a = zarr.create_array(
        MemoryStore(), shape=x.shape, dtype=x.dtype, chunks=(3,), zarr_format=form
    )
    a[...] = x
    got = a[...]
    assert got.dtype == a.dtype and (got == x).all()
    a[2:5] = x[3:6]
    assert (a[2:5] == x[3:6]).all() and (a.oindex[[6, 0]] == x[[6, 0]]).all()
    all_native()


@pytest.mark.parametrize("kind", ["M8", "m8"])
@pytest.mark.filterwarnings("ignore:The 'generic' unit")
def test_times_without_a_unit(kind: str) -> None:
    """numpy's astype() leaves their bytes as they are."""
    x = np.array([0, 1, -2, 100], ">i8").view(f">{kind}")
    a = zarr.create_array(MemoryStore(), data=x, chunks=2, zarr_format=2, compressors=None)
    assert (a[...].view(a.dtype.byteorder + "i8") == [0, 1, -2, 100]).all()
    assert a.store._store_dict["0"].to_bytes() == x[:2].tobytes()
    all_native()


@pytest.mark.parametrize("form", [2, 3])
def test_strings(form: int) -> None:
    a = zarr.create_array(MemoryStore(), shape=(7,), dtype="string", chunks=(3,), zarr_format=form)
    words = np.array(["", "a", "dé€" * 9, "x", "yy", "z", "last"], dtype=a.dtype)
    a[...] = words
    assert list(a[...]) == list(words) and a[...].dtype == a.dtype
    a[1:5] = "w"
    assert list(a[::2]) == ["", "w", "w", "last"]
    all_native()


def test_structs() -> None:
    dtype = np.dtype([("x", "<i4"), ("y", "<f8")])
    a = zarr.create_array(MemoryStore(), shape=(7,), dtype=dtype, chunks=(3,), zarr_format=2)
    x = np.array([(i, i / 2) for i in range(7)], dtype)
    a[...] = x
    assert (a[...] == x).all() and (a[2:4] == x[2:4]).all()
    all_native()


def test_missing_chunks() -> None:
    store = MemoryStore()
    a = zarr.create_array(store, shape=(9,), dtype="i4", chunks=(3,), fill_value=8,
                          config={"read_missing_chunks": False})  # fmt: skip
    a[3:6] = 1
    assert (a[3:6] == 1).all()
    with pytest.raises(zarr.errors.ChunkNotFoundError, match="2 chunk.*not found"):
        a[...]
    assert (zarr.open_array(store)[...] == [8, 8, 8, 1, 1, 1, 8, 8, 8]).all()
    all_native()


def test_an_array_that_grows_and_shrinks() -> None:
    a = zarr.create_array(MemoryStore(), shape=(5, 5), dtype="i4", chunks=(3, 3))
    a[...] = 1
    a.resize((20, 7))
    a[10:, 5:] = 2
    want = np.zeros((20, 7), int)
    want[:5, :5] = 1
    want[10:, 5:] = 2
    assert (a[...] == want).all()
    a.append(np.full((2, 7), 3))
    assert (a[-2:] == 3).all()
    a.resize((4, 4))
    assert (a[...] == 1).all()
    all_native()


def test_corrupt_chunks() -> None:
    store = MemoryStore()
    a = zarr.create_array(store, shape=(9,), dtype="i4", chunks=(3,))
    a[...] = 1
    store._store_dict["c/1"] = zarr.core.buffer.cpu.Buffer.from_bytes(b"junk")
    with pytest.raises(liblade.CorruptError, match=r"key 'c/1', chunk \(1\)"):
        a[...]
    with pytest.raises(ValueError, match=r"key 'c/1', chunk \(1\)"):
        a[...]
    assert (a[6:] == 1).all()


def test_stores_of_others_are_counted_apart() -> None:
    class Other(WrapperStore[Any]):
        pass

    a = zarr.create_array(Other(MemoryStore()), shape=(40,), dtype="i4", chunks=(3,), shards=(9,))
    a[...] = np.arange(40)
    assert (a[::7] == np.arange(40)[::7]).all()
    counts = lz.pipeline_counts()
    assert counts.native == 0 and counts.stock == 0 and counts.foreign == 9


def test_a_store_of_a_path() -> None:
    """A ManagedMemoryStore's keys have its path before them."""
    store = ManagedMemoryStore(name="lade-test", path="some/where")
    a = zarr.create_array(store, shape=(7,), chunks=(3,), dtype="u1")
    a[:] = np.arange(7)
    assert all(key.startswith("some/where/") for key in store._store_dict)
    assert len(store._store_dict) == 4 and (a[:] == np.arange(7)).all()
    assert lz.Store.of(store).list() == ["c/0", "c/1", "c/2", "zarr.json"]
    all_native()


def test_a_store_that_raises() -> None:
    """The store's own exception comes out."""

    class Broken(WrapperStore[Any]):
        broken = False

        async def get(self, key: str, *args: Any, **kwargs: Any) -> Any:
            if self.broken and key.startswith("c/"):
                raise PermissionError("not for you")
            return await super().get(key, *args, **kwargs)

        async def set(self, key: str, value: Any) -> None:
            if self.broken:
                raise PermissionError("not for you")
            await super().set(key, value)

    store = Broken(MemoryStore())
    a = zarr.create_array(store, shape=(40,), dtype="i4", chunks=(8,))
    a[...] = 1
    store.broken = True
    for _ in range(2):
        with pytest.raises(PermissionError, match="not for you"):
            a[...]
        with pytest.raises(PermissionError, match="not for you"):
            a[...] = 2
    store.broken = False
    assert (a[...] == 1).all()


def test_what_the_library_cannot_do() -> None:
    """A codec of others and Python objects: zarr-python's own way, with a reason."""

    class Mine(GzipCodec):
        pass

    Mine.__module__ = "mine"
    a = zarr.create_array(MemoryStore(), shape=(9,), dtype="i4", chunks=(3,), compressors=Mine())
    a[...] = 4
    assert (a[...] == 4).all()
    assert lz.pipeline_counts().stock == 6
    assert lz.pipeline_reasons() == {"a codec of others": 6}


def test_pickles() -> None:
    a = zarr.create_array(MemoryStore(), shape=(9,), dtype="i4", chunks=(3,))
    a[...] = 4
    b = pickle.loads(pickle.dumps(a))
    assert type(b._async_array.codec_pipeline).__name__ == "CodecPipeline"
    assert (b[...] == 4).all()
    inner = type(b._async_array.codec_pipeline).from_codecs([BytesCodec()])
    assert tuple(pickle.loads(pickle.dumps(inner))) == tuple(inner)
    all_native()


def test_an_event_loop_of_the_callers() -> None:
    async def work() -> None:
        a = await zarr.api.asynchronous.create_array(
            MemoryStore(), shape=(1 << 20,), dtype="i4", chunks=(1 << 16,)
        )
        await a.setitem(slice(None), np.arange(1 << 20))
        parts = await asyncio.gather(*(a.getitem(slice(i, i + 100)) for i in range(0, 5000, 100)))
        assert (np.concatenate(parts) == np.arange(5000)).all()
        whole = await a.getitem(slice(None))
        assert (whole == np.arange(1 << 20)).all()

    asyncio.run(work())
    all_native()


def test_fork(tmp_path: pathlib.Path) -> None:
    """A child goes on with an array that its parent has read."""
    a = zarr.create_array(
        LocalStore(tmp_path / "a"), shape=(1 << 20,), dtype="i4", chunks=(1 << 16,)
    )
    a[...] = 7
    assert a[...].sum() == 7 << 20
    code = (
        "import os, sys, zarr, liblade.zarr\n"
        f"a = zarr.open_array({str(tmp_path / 'a')!r})\n"
        "assert a[...].sum() == 7 << 20\n"
        "if os.fork() == 0:\n"
        "    b = zarr.open_array(a.store_path, mode='r+')\n"
        "    b[:100000] = 8\n"
        "    os._exit(0 if b[...].sum() == (7 << 20) + 100000 else 1)\n"
        "assert os.wait()[1] == 0\n"
        "counts = liblade.zarr.pipeline_counts()\n"
        "assert counts.stock == 0 and counts.native, counts\n"
    )
    paths = os.pathsep.join(p for p in sys.path if p)
    env = {**os.environ, "PYTHONPATH": paths, "ZARR_CODEC_PIPELINE__PATH": OURS}
    subprocess.run([sys.executable, "-c", code], env=env, check=True, timeout=120)


def test_buffers_of_ours() -> None:
    """enable_gpu() with a place on the host: the same classes, without a device."""
    x = np.arange(60 * 100, dtype="<i4").reshape(60, 100)
    store = MemoryStore()
    for i, how in enumerate(({}, {"shards": (20, 40)}, {"zarr_format": 2})):
        zarr.create_array(store, name=f"a{i}", data=x, chunks=(10, 20), **how)
    lz.pipeline_counts(reset=True)
    try:
        with lz.enable_gpu("host"):
            for i in range(3):
                a = zarr.open_array(store, path=f"a{i}")
                got = a[...]
                assert isinstance(got, liblade.Array) and (np.asarray(got) == x).all()
                assert (np.asarray(a[5:9, ::3]) == x[5:9, ::3]).all()
                assert int(np.asarray(a[3, 4])) == x[3, 4]
                a[20:40] = got[20:40]
                a[:3] = 7
                a[5] = x[6]
                assert (np.asarray(a[:3]) == 7).all() and (np.asarray(a[5]) == x[6]).all()
            all_native()
            texts = zarr.create_array(MemoryStore(), shape=(3,), dtype="string")
            texts[:] = np.array(["a", "b", "c"], dtype=texts.dtype)
            assert list(texts[:]) == ["a", "b", "c"]
            whole = lz.buffer_prototype.nd_buffer.create(shape=(2, 3), dtype="<f4", fill_value=1.5)
            assert whole.all_equal(1.5) and whole.shape == (2, 3) and whole.dtype == "<f4"
            whole[0, 1] = 2
            assert whole.as_numpy_array().sum() == 9.5 and whole[0].shape == (3,)
            assert (whole.transpose((1, 0)).reshape(-1).as_numpy_array()[:2] == [1.5, 1.5]).all()
    finally:
        lz.configure(place=None)
    assert isinstance(zarr.open_array(store, path="a0")[...], np.ndarray)


def test_memory_of_results_is_used_again() -> None:
    x = np.arange(5 << 20, dtype="<i4").reshape(5, 1024, 1024)  # 20 MiB
    a = zarr.create_array(MemoryStore(), data=x, chunks=(1, 1024, 1024), compressors=None)
    b = lz.open_array(a.store)

    for read in (lambda: a[...], lambda: b[...], lambda: b.read(place="numpy")):
        first = read()
        at, part = first.ctypes.data, first[2]
        del first
        second = read()
        assert second.ctypes.data != at, "memory that somebody has is used again"
        second[...] = 0
        assert (part == x[2]).all()
        del part
        third = read()
        assert third.ctypes.data == at and (third == x).all() and (second == 0).all()
    assert isinstance(a[...], np.ndarray) and (a[1, :9] == x[1, :9]).all()
    small = zarr.create_array(MemoryStore(), data=x[0, 0], chunks=(100,))
    assert small[...].flags.owndata
    all_native()


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_that_the_caller_has_is_read_into(order: Any) -> None:
    x = np.arange(5 << 20, dtype="<i4").reshape(5, 1024, 1024)  # 20 MiB
    a = zarr.create_array(MemoryStore(), data=x, chunks=(1, 1024, 1024), compressors=None)
    mine = np.zeros(x.shape, x.dtype, order)
    got = a.get_basic_selection(out=cpu.NDBuffer(mine))
    assert got is mine and (mine == x).all()
    whole = np.zeros((6, *x.shape[1:]), x.dtype, order)
    a.get_basic_selection(out=cpu.NDBuffer(whole[1:]))
    assert (whole[1:] == x).all() and not whole[0].any()
    buffer = cpu.NDBuffer(np.zeros(x.shape, x.dtype, order))  # the buffer alone has its array
    got = a.get_basic_selection(out=buffer)
    assert (got == x).all() and buffer.as_ndarray_like() is got
    assert got.flags.f_contiguous == (order == "F")
    all_native()


def test_large_results_whose_chunks_are_missing() -> None:
    a = zarr.create_array(MemoryStore(), shape=(5, 1024, 1024), dtype="i4", chunks=(1, 1024, 1024),
                          fill_value=7)  # fmt: skip
    a[2] = 3
    for _ in range(2):  # the second result has the memory of the first
        got = a[...]
        assert (got[2] == 3).all() and (got[[0, 1, 3, 4]] == 7).all()
        got[...] = 1
        del got
    all_native()


def test_a_prototype_for_a_call() -> None:
    x = np.arange(60 * 100, dtype="<i4").reshape(60, 100)
    a = zarr.create_array(MemoryStore(), data=x, chunks=(10, 20), shards=(20, 40))
    with lz.settings(place="host"):
        got = a.get_basic_selection(slice(3, 9), prototype=lz.buffer_prototype)
        assert isinstance(got, liblade.Array) and (np.asarray(got) == x[3:9]).all()
        b = lz.open_array(a.store)
        assert isinstance(b.read(prototype=lz.buffer_prototype), liblade.Array)
    all_native()
