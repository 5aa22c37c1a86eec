"""liblade.zarr against numpy: indexing, types, places, stores, changes.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import pathlib
import pickle
import threading
import zipfile
from typing import Any

import pytest

np = pytest.importorskip("numpy", reason="numpy is not installed")

import liblade
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from hypothesis.extra import numpy as hn
from liblade import zarr as lz


def made(store: Any, x: Any, **how: Any) -> lz.Array:
    array = lz.create(store, shape=x.shape, dtype=x.dtype, **how)
    array[...] = x
    return array


@pytest.fixture
def x() -> Any:
    return np.arange(60 * 95, dtype="<i4").reshape(60, 95)


# ---- indexing ------------

SHAPES = [(7,), (6, 9), (4, 5, 6), (3, 1, 4, 2), ()]
LAYOUTS = [{}, {"order": "F"}, {"zarr_format": 2}, {"shards": True}, {"codecs": ""}]


@st.composite
def cases(draw: Any) -> tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]:
    shape = draw(st.sampled_from(SHAPES))
    chunks = tuple(draw(st.integers(1, n)) for n in shape)
    how = dict(draw(st.sampled_from(LAYOUTS)))
    if how.pop("shards", False) and shape:
        how["shards"] = tuple(c * draw(st.integers(1, 3)) for c in chunks)
    return shape, chunks, how


def new_case(data: Any) -> tuple[Any, lz.Array]:
    shape, chunks, how = data.draw(cases())
    x = np.arange(1, int(np.prod(shape)) + 1, dtype="<i4").reshape(shape)
    return x, made({}, x, chunks=chunks, **how)


def keys(shape: tuple[int, ...]) -> Any:
    """Integers, slices, ellipses, new axes, lists and masks, mixed."""
    one = hn.basic_indices(shape, allow_newaxis=True)
    if not shape:
        return one
    whole = hn.arrays(bool, shape)
    lists = st.tuples(
        *(
            st.one_of(
                st.integers(-n, n - 1),
                st.builds(slice, st.none() | st.integers(-n, n), st.none() | st.integers(-n, n)),
                hn.arrays(
                    np.int64, st.integers(0, 4).map(lambda k: (k,)), elements=st.integers(-n, n - 1)
                ),
            )
            for n in shape
        )
    ).filter(lambda key: len({k.shape for k in key if isinstance(k, np.ndarray)}) < 2)
    return st.one_of(one, whole, lists)


@examples(max_examples=150, deadline=None)
@given(st.data())
def test_indexing_is_numpys(data: Any) -> None:
    x, a = new_case(data)
    key = data.draw(keys(x.shape))
    got = a[key]
    want = x[key]
    assert np.shape(got) == np.shape(want)
    assert np.array_equal(got, want)


@examples(max_examples=100, deadline=None)
@given(st.data())
def test_writing_is_numpys(data: Any) -> None:
    x, a = new_case(data)
    key = data.draw(keys(x.shape).filter(lambda k: k is not None))
    items = key if isinstance(key, tuple) else (key,)
    if any(i is None for i in items):
        return
    want = x.copy()
    shape = np.shape(want[key])
    # Of an element that a list has twice the last value counts, which is not promised here.
    value = (
        -1
        if any(isinstance(i, np.ndarray) for i in items)
        else -np.arange(int(np.prod(shape))).reshape(shape)
    )
    want[key] = value
    a[key] = value
    assert np.array_equal(a[...], want)


@examples(max_examples=60, deadline=None)
@given(st.data())
def test_other_indexing(data: Any) -> None:
    x, a = new_case(data)
    if not x.shape:
        return
    lists = [data.draw(st.lists(st.integers(-n, n - 1), min_size=1, max_size=4)) for n in x.shape]
    assert np.array_equal(a.oindex[tuple(lists)], x[np.ix_(*lists)])
    count = min(map(len, lists))
    points = tuple(one[:count] for one in lists)
    assert np.array_equal(a.vindex[points], x[points])
    mask = data.draw(hn.arrays(bool, x.shape))
    assert np.array_equal(a.vindex[mask], x[mask])
    block = tuple(data.draw(st.integers(0, n - 1)) for n in a.cdata_shape)
    size = a.shards or a.chunks
    where = tuple(slice(b * s, (b + 1) * s) for b, s in zip(block, size, strict=True))
    assert np.array_equal(a.blocks[block], x[where])


def test_wrong_keys(x: Any) -> None:
    a = made({}, x)
    for key in (
        60,
        -61,
        (0, 95),
        (0, 0, 0),
        ([60],),
        (..., ...),
        ([0, 60], [1, 0]),
        (slice(3), [0, 99]),
    ):
        with pytest.raises(IndexError):
            a[key]
    for key in ("x", 1.5, [1.5], object()):
        with pytest.raises((IndexError, KeyError, liblade.Error)):
            a[key]
    with pytest.raises(ValueError, match="step cannot be zero"):
        a[::0]
    with pytest.raises(IndexError):
        a.vindex[[1], slice(2)]
    with pytest.raises(IndexError):
        a.blocks[::2]


# ---- types ------------

DTYPES = "? i1 u1 <i2 <u2 <i4 <u4 <i8 <u8 <f2 <f4 <f8 <c8 <c16 S5 <U3 <M8[ns] <m8[s] V3".split()


@pytest.mark.parametrize("form", [2, 3])
@pytest.mark.parametrize("text", DTYPES)
def test_types(text: str, form: int) -> None:
    dtype = np.dtype(text)
    raw = np.random.default_rng(1).integers(0, 2 if text == "?" else 100, (6, dtype.itemsize), "u1")
    x = (
        np.array(["a", "bc", "", "def", "é", "z"], dtype)
        if dtype.kind == "U"
        else (raw.reshape(-1).view(dtype))
    )
    a = made({}, x, chunks=(4,), zarr_format=form)
    assert a.dtype == dtype
    for got in (a[...], a[1:5], a[[3, 1]]):
        assert got.dtype == dtype
    assert a[2] == x[2] or x[2] != x[2]
    assert a[...].tobytes() == x.tobytes()
    assert a[[3, 1]].tobytes() == x[[3, 1]].tobytes()
    out = np.zeros(6, dtype)
    assert a.read(out=out) is out
    assert out.tobytes() == x.tobytes()


def test_structs() -> None:
    x = np.array([(i, i / 2, b"ab") for i in range(7)], [("x", "<i4"), ("y", "<f8"), ("z", "S2")])
    a = made({}, x, chunks=(3,))
    assert (a[...] == x).all() and (a[2:5] == x[2:5]).all() and a[6] == x[6]
    assert (a["x"] == x["x"]).all() and (a["y", 1:3] == x["y"][1:3]).all()
    assert (a.fields["y"].oindex[[5, 0]] == x["y"][[5, 0]]).all()
    a.fields["x"][2:4] = [70, 80]
    x["x"][2:4] = [70, 80]
    assert (a[...] == x).all()
    assert list(a.fields) == ["x", "y", "z"]
    with pytest.raises(KeyError, match="no field 'q'"):
        a.fields["q"]


@pytest.mark.parametrize("kind", ["string", "bytes"])
def test_elements_of_any_length(kind: str) -> None:
    items = ["", "a", "dé€" * 50, "x\0y", "last"]
    values: list[Any] = items if kind == "string" else [i.encode() for i in items]
    a = lz.create({}, shape=(5,), dtype=kind, chunks=(2,))
    a[...] = values
    assert list(a[...]) == values and a[2] == values[2] and list(a[::-1]) == values[::-1]
    assert list(a[[3, 0, 3]]) == [values[3], values[0], values[3]]
    a[1:3] = values[4]
    assert list(a[:4]) == [values[0], values[4], values[4], values[3]]
    a.resize((6,))
    assert a[5] == ("" if kind == "string" else b"")
    assert a.append(np.array(values, object)) == (11,)
    assert list(a[6:]) == values
    two = lz.create({}, shape=(2, 3), dtype=kind, chunks=(1, 2))
    two[...] = [values[:3], values[2:]]
    assert two[...].tolist() == [values[:3], values[2:]]


def test_fill_values() -> None:
    for dtype, fill in [("<f4", float("nan")), ("<f8", float("-inf")), ("i2", -3), ("?", True),
                        ("<c8", 1 + 2j), ("<M8[s]", np.datetime64("2020-01-01"))]:  # fmt: skip
        a = lz.create({}, shape=(3,), dtype=dtype, fill_value=fill)
        want = np.full(3, fill, dtype)
        assert a[...].tobytes() == want.tobytes(), dtype
        assert np.array_equal(a.fill_value, want[0], equal_nan=want.dtype.kind in "fc")
    assert lz.create({}, shape=(3,), dtype="i4", zarr_format=2)[1] == 0


# ---- where it lands ------------


def test_out(x: Any) -> None:
    a = made({}, x, chunks=(10, 10))
    for out in (np.zeros((95, 60), "<i4").T, np.zeros((60, 190), "<i4")[:, ::2],
                np.zeros((60, 95), "<i4")[::-1], liblade.as_array(np.zeros_like(x))):  # fmt: skip
        assert a.read(out=out) is out
        assert (np.asarray(out) == x).all()
    for bad in (np.zeros((60, 94), "<i4"), np.zeros((60, 95), "<f4"), np.zeros((60, 95), ">i4"),
                np.zeros((60, 95), "i8"), np.broadcast_to(np.int32(0), x.shape), b"x"):  # fmt: skip
        with pytest.raises((ValueError, TypeError)):
            a.read(out=bad)


def test_places(x: Any) -> None:
    a = made({}, x, chunks=(10, 10))
    on_host = a.read(place="host")
    assert isinstance(on_host, liblade.Array) and on_host.shape == x.shape
    assert (np.asarray(on_host) == x).all()
    asked = []

    def place(box: lz.Box) -> Any:
        asked.append(box.key)
        return [None, "host", np.empty(box.shape, "<i4")][box.start[0] // 10 % 3]

    parts = a.read((slice(5, 55), slice(3, 90)), place=place)
    assert len(parts) == len(asked) == 54
    whole = np.zeros((50, 87), "<i4")
    for (i, j), part in parts:
        part = np.asarray(part)
        whole[i : i + part.shape[0], j : j + part.shape[1]] = part
    assert (whole == x[5:55, 3:90]).all()
    with pytest.raises(ZeroDivisionError):
        a.read(place=lambda box: 1 // 0)
    with pytest.raises(ValueError, match="shape"):
        a.read(place=lambda box: np.empty((1, 1), "<i4"))
    got = a.read(allocator=lambda shape, dtype: np.zeros((*shape, 2), dtype)[..., 1])
    assert got.strides[1] == 8 and (got == x).all()
    assert np.array_equal(np.from_dlpack(a), x) and np.array_equal(np.asarray(a), x)


def test_who_says_where(x: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values: dict[str, bytes] = {}
    made(values, x)
    config = tmp_path / "lade.json"
    config.write_text(json.dumps({"place": "host", "threads": 1}))
    monkeypatch.setenv("LADE_ZARR_CONFIG", str(config))
    monkeypatch.setattr("liblade.zarr._settings._file", None)
    a = lz.open(values)
    assert isinstance(a, lz.Array)
    assert f"place=host, said by the file {config}" in a.explain()
    assert isinstance(a[...], liblade.Array)
    try:
        lz.configure(place="numpy")
        assert "place=numpy, said by the process" in a.explain()
        with lz.settings(place="host", threads=2):
            assert "place=host, said by the context manager" in a.explain()
            assert "threads=2, said by the context manager" in a.explain()
            b = lz.open(values, place="numpy")
            assert isinstance(b, lz.Array)
            assert "place=numpy, said by the array" in b.explain()
            assert "place=host, said by the call" in b.explain(place="host")
            assert "in out=, said by the call" in b.explain(out=np.empty_like(x))
            said = b.explain(place=lambda box: None)
            assert "each chunk lands where place= says, said by the chunk's callback" in said
            assert isinstance(b[...], np.ndarray)
        assert isinstance(a[...], np.ndarray)
        assert b"place" not in b"".join(v for k, v in values.items() if k.endswith(".json"))
    finally:
        lz.configure(place=None)
        monkeypatch.delenv("LADE_ZARR_CONFIG")
    for bad in ({"place": "nowhere"}, {"threads": -1}, {"where": "x"}, {"memory": True}):
        with pytest.raises((TypeError, ValueError)):
            lz.configure(**bad)
    with pytest.raises(TypeError, match="there is no setting 'plaice'"):
        a.read(plaice="host")


def test_a_plan_says_and_does(x: Any) -> None:
    values: dict[str, bytes] = {}
    a = made(values, x, chunks=(10, 10))
    plan = a.plan((slice(20), slice(None)))
    assert plan.shape == (20, 95)
    assert (plan.chunk_count, plan.range_count, plan.result_size) == (20, 20, 20 * 95 * 4)
    assert "20 chunks" in str(plan) and "lands in numpy" in str(plan)
    assert (plan.run() == x[:20]).all()
    assert plan.report is not None and plan.report["chunk_count"] == 20
    assert plan.report["copied_size"] == 0 and plan.report["written_size"] == plan.result_size
    a[0, 0] = 5
    assert plan.run()[0, 0] == 5  # it reads again
    with pytest.raises(AttributeError):
        plan.nothing


# ---- stores ------------


@pytest.mark.parametrize("kind", ["directory", "memory", "mapping", "zip", "url"])
def test_stores(x: Any, kind: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.zarr"
    if kind == "directory":
        store: Any = str(path)
    elif kind == "url":
        store = f"file://{path}"
    elif kind == "memory":
        store = lz.Store.memory()
    elif kind == "mapping":
        store = {}
    else:
        store = lz.Store.zip(tmp_path / "a.zip", "w", level=6)
    group = lz.create_group(store, attributes={"a": 1})
    if kind == "directory":
        group = lz.open_group(store, mode="r+")
    child = group.create_array("b/c", shape=x.shape, dtype=x.dtype, chunks=(16, 16))
    child[...] = x
    if kind == "zip":
        store.finish()
        store = tmp_path / "a.zip"
        assert zipfile.ZipFile(store).testzip() is None
    again = lz.open(store)
    assert isinstance(again, lz.Group)
    assert again.attrs["a"] == 1 and list(again) == ["b"]
    found = again["b/c"]
    assert isinstance(found, lz.Array) and (found[...] == x).all() and found.path == "b/c"
    assert "b/c" in again and "b/d" not in again and again.get("q") is None
    assert "└── b\n    └── c (60, 95) int32" in again.tree()
    inside = lz.Store.of(store)
    assert inside.read("b/c/c/0/0") is not None and inside.read("none") is None
    assert "b/c/zarr.json" in inside and inside.list("b/", level=True) == ["b/c/", "b/zarr.json"]
    with pytest.raises(PermissionError):
        found[0] = 1
    with pytest.raises(FileNotFoundError):
        again["b/d"]


def test_opening(x: Any, tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError):
        lz.open(tmp_path / "none")
    path = tmp_path / "a"
    lz.save(path, x)
    assert (lz.load(path) == x).all() and lz.exists(path) and not lz.exists(tmp_path / "none")
    with pytest.raises(FileExistsError, match=f"{path}: an array or group exists already"):
        lz.create(path, shape=(1,), dtype="i4")
    bad: list[tuple[dict[str, Any], str]] = [
        ({"codecs": "nope"}, 'no algorithm is called "nope"'),
        ({"chunks": (4,), "shards": (10,)}, "want chunks that divide a shard of 10, have 4"),
    ]
    for how, text in bad:
        with pytest.raises(liblade.InputError, match=text):
            lz.create({}, shape=(30,), dtype="f4", **how)
    with pytest.raises(lz.NodeNotFoundError):
        lz.open_group(path)
    with pytest.raises(ValueError, match="mode"):
        lz.open(path, mode="w")
    with pytest.raises(TypeError, match="is no store"):
        lz.open(5)
    lz.save(tmp_path / "g", x, y=x * 2)
    got = lz.load(tmp_path / "g")
    assert sorted(got) == ["arr_0", "y"] and (got["y"] == x * 2).all()
    lz.consolidate_metadata(tmp_path / "g")
    group = lz.open_group(tmp_path / "g", mode="r+")
    assert list(group) == ["arr_0", "y"] and isinstance(group["y"], lz.Array)
    del group["y"]
    lz.delete(path)
    assert not lz.exists(path)
    assert lz.open_group(tmp_path / "new", mode="a").attrs.asdict() == {}
    assert lz.open_group(tmp_path / "new", mode="a").path == ""


class Store(dict[str, bytes]):
    """A caller's store that fails when it is told to."""

    broken = False

    def __getitem__(self, key: str) -> bytes:
        if self.broken and "/c/" in f"/{key}":
            raise ConnectionError("the line is dead")
        return super().__getitem__(key)


def test_a_mapping_that_fails(x: Any) -> None:
    values = Store()
    a = made(values, x, chunks=(10, 10))
    values.broken = True
    with pytest.raises(liblade.Error, match="ConnectionError.*the line is dead"):
        a[...]
    values.broken = False
    assert (a[...] == x).all()
    values["c/0/0"] = b"junk"
    with pytest.raises(liblade.CorruptError, match=r"key 'c/0/0', chunk \(0, 0\)"):
        a[...]
    assert (a[10:] == x[10:]).all()


def test_a_mapping_that_gives_nonsense(x: Any) -> None:
    values: dict[str, Any] = {}
    a = made(values, x, chunks=(10, 10))
    for bad, error in (("text", liblade.Error), (5, liblade.Error), (b"", liblade.CorruptError)):
        values["c/3/4"] = bad
        with pytest.raises(error, match=r"c/3/4"):
            a[30:, 40:]
    del values["c/3/4"]
    assert (a[30:40, 40:50] == 0).all() and (a[:30] == x[:30]).all()
    with pytest.raises(liblade.Error, match=r"c/3/4.*chunk \(3, 4\)"):
        a.read(np.s_[30:, 40:], need_chunks=True)

    class Lists(dict[str, Any]):
        def __iter__(self) -> Any:
            return iter([1, 2])

    with pytest.raises(liblade.Error, match="list"):
        lz.Store.of(Lists()).list()


# ---- changes ------------


def test_changes(x: Any) -> None:
    a = made({}, x, chunks=(10, 10), attributes={"u": "K"}, dimension_names=["y", None])
    assert a.dimension_names == ("y", None) and a.metadata["attributes"] == {"u": "K"}
    a.attrs.update(v=1)
    del a.attrs["u"]
    assert a.attrs.asdict() == {"v": 1}
    a.shape = (70, 95)
    assert (a[:60] == x).all() and (a[60:] == 0).all()
    assert a.append(np.ones((60, 95), "<i4")[:, :1].repeat(70, 1).T[:, :5][:70], axis=1) == (
        70,
        100,
    )
    assert (a[:, 95:] == 1).all()
    with pytest.raises(ValueError):
        a.append(np.ones(3))
    assert len(a) == 70 and sum(1 for _ in a) == 70 and a.nbytes_stored() > 0


def test_writes_report(x: Any) -> None:
    a = lz.create({}, shape=x.shape, dtype=x.dtype, chunks=(10, 10))
    report = a.write(x)
    assert report["value_count"] == 60 and report["source_size"] == x.nbytes
    report = a.write(0)
    assert report["delete_count"] == 60 and report["value_count"] == 0
    report = a.write(0, write_empty_chunks=True)
    assert report["value_count"] == 60
    report = a.write(np.arange(5), (0, slice(5)))
    assert report["partial_count"] == 1
    with pytest.raises(ValueError, match="shape"):
        a[:3] = np.ones((2, 95))


def test_chunks_without_a_store(x: Any) -> None:
    for how in ({"chunks": (16, 16)}, {"chunks": (8, 8), "shards": (16, 16)},
                {"chunks": (16, 16), "zarr_format": 2}):  # fmt: skip
        values: dict[str, bytes] = {}
        a = made(values, x, **how)
        data = a.encode_chunk(x[48:, 80:], (3, 5))
        assert data == values[a.chunk_key((3, 5))]
        assert (a.decode_chunk(data, (3, 5)) == x[48:, 80:]).all()
        out = np.empty((12, 15), "<i4")
        assert a.decode_chunk(data, (3, 5), out=out) is out
        with pytest.raises(liblade.Error):
            a.decode_chunk(b"junk", (0, 0))
        assert (a[...] == x).all()


# ---- threads, processes, loops ------------


def test_threads(x: Any, tmp_path: pathlib.Path) -> None:
    a = lz.create(tmp_path / "a", shape=(64, 95), dtype="<i4", chunks=(30, 30), shards=(60, 90))

    def work(i: int) -> None:
        for row in range(i, 60, 4):
            a[row] = x[row]
            assert (a[row] == x[row]).all()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert (a[:60] == x).all()


def child(array: lz.Array, row: int) -> int:
    array[row] = row
    return int(array[row].sum())


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_processes(tmp_path: pathlib.Path, method: str) -> None:
    a = lz.create(tmp_path / "a", shape=(8, 50), dtype="<i4", chunks=(4, 25), threads=2)
    a[...] = 7
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.starmap(child, [(a, i) for i in range(8)]) == [50 * i for i in range(8)]
    assert (a[...] == np.arange(8)[:, None]).all()


def test_pickles(x: Any, tmp_path: pathlib.Path) -> None:
    a = made(tmp_path / "a", x)
    b = pickle.loads(pickle.dumps(a))
    assert b == a and hash(b) == hash(a) and (b[...] == x).all() and not b.read_only
    group = lz.create_group(tmp_path / "g")
    assert pickle.loads(pickle.dumps(group)) == group
    assert (pickle.loads(pickle.dumps(made({}, x)))[...] == x).all()
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(made(lz.Store.memory(), x))


def test_event_loops(x: Any) -> None:
    a = made({}, x, chunks=(10, 10))

    async def work() -> None:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(tick())
        parts = await asyncio.gather(*(a.read_async(slice(i, i + 10)) for i in range(0, 60, 10)))
        assert (np.concatenate(parts) == x).all()
        report = await a.write_async(x * 2)
        assert report["chunk_count"] == 60 and (await a.read_async() == x * 2).all()
        task.cancel()
        assert ticks > 0

    asyncio.run(work())
    asyncio.run(work_again(a, x * 2))


async def work_again(a: lz.Array, x: Any) -> None:
    assert (await a.read_async() == x).all()


def test_no_leaks(x: Any) -> None:
    import gc
    import sys

    values: dict[str, bytes] = {}
    a = made(values, x, chunks=(10, 10))
    out = np.empty_like(x)

    def work() -> None:
        a.read(out=out)
        a[3:5, [1, 2]]
        a.read(place=lambda box: np.empty(box.shape, "<i4"))
        a.read(place="host")
        a.plan().run()
        b = lz.open(values)
        assert isinstance(b, lz.Array)
        b[0]
        with pytest.raises(IndexError):
            a[99]
        a.decode_chunk(values["c/0/0"], (0, 0))

    work()
    gc.collect()
    before = (sys.getrefcount(out), sys.getrefcount(values), liblade._lade._memory_stats()[0])
    for _ in range(20):
        work()
    gc.collect()
    assert (
        sys.getrefcount(out),
        sys.getrefcount(values),
        liblade._lade._memory_stats()[0],
    ) == before


def test_a_lock_is_let_go_of(tmp_path: pathlib.Path) -> None:
    """Another thread runs while a read waits for a caller's store."""
    entered, go = threading.Event(), threading.Event()

    class Slow(dict[str, bytes]):
        def __getitem__(self, key: str) -> bytes:
            if key == "c/0":
                entered.set()
                assert go.wait(20)
            return super().__getitem__(key)

    a = made(Slow(), np.arange(10, dtype="<i4"))
    got: list[Any] = []
    thread = threading.Thread(target=lambda: got.append(a[...]))
    go.set()
    a[...]
    go.clear()
    entered.clear()
    thread.start()
    assert entered.wait(20)
    go.set()
    thread.join()
    assert (got[0] == np.arange(10)).all()


# ---- codecs of Python ------------


class Xor:
    """A codec in Python: straight into the memory that it is given."""

    def __init__(self, key: int = 1) -> None:
        self.key = key

    def decode(self, src: memoryview, out: memoryview) -> int:
        view = np.frombuffer(out, "u1")[: len(src)]
        np.bitwise_xor(np.frombuffer(src, "u1"), self.key, out=view)
        return len(src)

    encode = decode


class Zstd:
    """An implementation of zstd, with bytes as its result."""

    algorithm, place, priority = "gzip", "host", 7
    calls = 0

    def decode(self, src: memoryview, out: memoryview) -> bytes:
        import gzip

        Zstd.calls += 1
        return gzip.decompress(src)


@pytest.fixture
def clean_codecs(monkeypatch: pytest.MonkeyPatch) -> None:
    from liblade.zarr import _codecs

    monkeypatch.setattr(_codecs, "_codecs", {})
    monkeypatch.setattr(_codecs, "_given", [])


LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


def test_a_codec_in_python(x: Any, clean_codecs: None) -> None:
    codecs = [
        LITTLE,
        {"name": "my.xor", "configuration": {"key": 77}},
        {"name": "gzip", "configuration": {"level": 1}},
    ]
    with pytest.raises(NotImplementedError, match=r"my\.xor"):
        lz.create({}, shape=x.shape, dtype=x.dtype, codecs=codecs)
    lz.register_codec("my.xor", Xor)
    for how in ({}, {"shards": (20, 40)}):
        values: dict[str, bytes] = {}
        lz.create_group(values)
        a = lz.create(
            values, "a", shape=x.shape, dtype=x.dtype, chunks=(10, 20), codecs=codecs, **how
        )
        a[...] = x
        b = lz.open_group(values, mode="r+")["a"]
        assert (
            isinstance(b, lz.Array)
            and (b[...] == x).all()
            and (b[5:50:7, -3] == x[5:50:7, -3]).all()
        )
        b.resize((61, 95))
        b.attrs["k"] = 1
        b[60] = 5
        assert (b[:60] == x).all() and (b[60] == 5).all()
        assert (pickle.loads(pickle.dumps(b))[:60] == x).all()
        assert "python" in b.explain()
    lz.register_codec("my.xor", lambda key: Bad())
    c = lz.open_array(values, "a")
    with pytest.raises(liblade.Error, match="ZeroDivisionError"):
        c[...]
    lz.register_codec("my.xor", lambda key: Bad(b"too many bytes" * 10000))
    with pytest.raises(liblade.Error, match="140000 bytes"):
        lz.open_array(values, "a")[...]
    lz.register_codec("my.xor", lambda key: Bad(1 << 40))
    with pytest.raises(liblade.Error, match="outside"):
        lz.open_array(values, "a")[...]


class Bad:
    def __init__(self, result: Any = None) -> None:
        self.result = result

    def decode(self, src: memoryview, out: memoryview) -> Any:
        return 1 // 0 if self.result is None else self.result

    encode = decode


class Keeps:
    """A codec that keeps arrays over the memory it was given."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def decode(self, src: memoryview, out: memoryview) -> int:
        self.kept += [np.frombuffer(src, "u1"), np.frombuffer(out, "u1")]
        self.kept[-1][: len(src)] = self.kept[-2]
        return len(src)

    encode = decode


def test_a_codec_that_keeps_its_memory(x: Any, clean_codecs: None) -> None:
    codec = Keeps()
    lz.register_codec("my.keeps", lambda: codec)
    a = lz.create({}, shape=x.shape, dtype=x.dtype, chunks=(10, 20), codecs=[
        LITTLE, {"name": "my.keeps", "configuration": {}}])  # fmt: skip
    a[...] = x
    codec.kept.clear()
    got = a[...]
    for one in codec.kept[1::2]:  # the codec's, not the result's
        assert not np.shares_memory(one, got)
        one[:] = 255
    assert (got == x).all() and (a[...] == x).all()


def test_an_implementation_in_python(x: Any, clean_codecs: None) -> None:
    values: dict[str, bytes] = {}
    made(
        values, x, chunks=(10, 20), codecs=[LITTLE, {"name": "gzip", "configuration": {"level": 1}}]
    )
    lz.register_implementation(Zstd())
    a = lz.open_array(values)
    Zstd.calls = 0
    assert (a[...] == x).all() and Zstd.calls == 30
    with pytest.raises(ValueError, match="no algorithm"):
        lz.register_implementation(type("I", (Zstd,), {"algorithm": "none"}))
    with pytest.raises(ValueError, match="run on"):
        lz.register_implementation(type("I", (Zstd,), {"place": "device"}))
    with pytest.raises(ValueError, match="is a filter"):
        lz.register_implementation(type("I", (Zstd,), {"algorithm": "shuffle"}))


def test_entry_points(clean_codecs: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from liblade.zarr import _codecs

    class Entry:
        name = "mine"

        def load(self) -> type:
            return Zstd

    asked = []
    monkeypatch.setattr(_codecs, "_found", None)
    monkeypatch.setattr(
        "importlib.metadata.entry_points", lambda group: asked.append(group) or [Entry()]
    )
    assert [i[:2] for i in _codecs._implementations()] == [("gzip", 7)]
    assert asked == ["liblade.implementations"]


def test_chunks_in_another_store(x: Any) -> None:
    documents: dict[str, bytes] = {}
    chunks: dict[str, bytes] = {}
    made(documents, x, chunks=(20, 20))
    for key in [k for k in documents if k.startswith("c/")]:
        chunks[key] = documents.pop(key)
    a = lz.open_array(documents, chunk_store=chunks)
    assert (a[...] == x).all()
    assert (pickle.loads(pickle.dumps(a))[...] == x).all()
    assert (lz.open_array(documents)[...] == 0).all()
