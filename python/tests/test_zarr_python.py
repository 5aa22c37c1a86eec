"""liblade.zarr beside zarr-python: arrays of each in stores of the other.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import functools
import http.server
import pathlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest

np = pytest.importorskip("numpy", reason="numpy is not installed")
zarr = pytest.importorskip("zarr", minversion="3.3", reason="zarr-python 3.3 is not installed")

from liblade import zarr as lz
from zarr.storage import LocalStore, MemoryStore, WrapperStore, ZipStore


@pytest.fixture
def x() -> Any:
    return np.arange(60 * 100, dtype="<i4").reshape(60, 100)


class Other(WrapperStore[Any]):
    """A store whose kind nobody knows."""


def stores(tmp_path: pathlib.Path) -> Iterator[tuple[Any, bool]]:
    yield MemoryStore(), True
    yield LocalStore(tmp_path / "local"), True
    yield Other(MemoryStore()), False
    yield Other(LocalStore(tmp_path / "other")), False


LAYOUTS: list[dict[str, Any]] = [
    {},
    {"shards": (20, 40)},
    {"zarr_format": 2},
    {"order": "F", "zarr_format": 2},
    {"compressors": zarr.codecs.BloscCodec(cname="zstd", shuffle="bitshuffle")},
    {"compressors": zarr.codecs.GzipCodec()},
    {"compressors": None},
    {"filters": [zarr.codecs.TransposeCodec(order=(1, 0))]},
]


@pytest.mark.parametrize("how", LAYOUTS)
def test_arrays_of_zarr_python(x: Any, how: dict[str, Any], tmp_path: pathlib.Path) -> None:
    for store, native in stores(tmp_path):
        theirs = zarr.create_array(
            store, name="a", shape=x.shape, dtype=x.dtype, chunks=(10, 20), fill_value=7, **how
        )
        theirs[:50] = x[:50]
        ours = lz.open_array(store, "a", mode="r+")
        assert ours.store.native is native
        want = np.concatenate([x[:50], np.full((10, 100), 7)])
        assert (ours[...] == want).all()
        assert (ours[3:17, ::7] == want[3:17, ::7]).all()
        ours[5:33, 7:9] = 3
        ours.resize((61, 100))
        want[5:33, 7:9] = 3
        again = zarr.open_array(store, path="a")
        assert again.shape == (61, 100) and (again[:60] == want).all() and (again[60] == 7).all()
        assert ours.metadata == __import__("json").loads(lz.Store.of(store).read(
            "a/zarr.json" if ours.zarr_format == 3 else "a/.zarray"))  # fmt: skip


def test_groups_of_zarr_python(x: Any, tmp_path: pathlib.Path) -> None:
    for store, _ in stores(tmp_path):
        theirs = zarr.create_group(store, attributes={"k": [1]})
        theirs.create_group("b").create_array("c", data=x, chunks=(10, 20))
        ours = lz.open_group(store, mode="r+")
        assert ours.attrs["k"] == [1] and list(ours) == ["b"]
        ours.create_array("d", shape=(5,), dtype="string", chunks=(2,))[:] = list("abcde")
        assert list(zarr.open_group(store)["d"][:]) == list("abcde")
        del ours["b"]
        assert list(zarr.open_group(store)) == ["d"]


def test_a_zip_file_of_zarr_python(x: Any, tmp_path: pathlib.Path) -> None:
    with ZipStore(tmp_path / "a.zip", mode="w") as store:
        zarr.create_array(store, data=x, chunks=(10, 20))
    with ZipStore(tmp_path / "a.zip", mode="r") as store:
        a = lz.open_array(store)
        assert a.store.native and (a[...] == x).all()


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[str]:
    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            pass

    handler = functools.partial(Handler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()
        thread.join()


def test_a_web_server(x: Any, server: str, tmp_path: pathlib.Path) -> None:
    zarr.create_array(tmp_path / "a.zarr", data=x, chunks=(10, 20), shards=(20, 40))
    try:
        a = lz.open_array(f"{server}/a.zarr")
    except NotImplementedError as e:
        pytest.skip(str(e))
    assert a.store.native and (a[...] == x).all() and (a[::9, 5] == x[::9, 5]).all()
    with pytest.raises(FileNotFoundError):
        lz.open(f"{server}/none.zarr")
    fsspec = pytest.importorskip("fsspec")
    pytest.importorskip("aiohttp")
    assert fsspec
    store = zarr.storage.FsspecStore.from_url(f"{server}/a.zarr", read_only=True)
    b = lz.open_array(store)
    assert b.store.native and (b[...] == x).all()


@pytest.mark.parametrize("name", ["obstore", "icechunk", "fsspec"])
def test_stores_of_others(name: str, x: Any, tmp_path: pathlib.Path) -> None:
    module = pytest.importorskip(name)
    if name == "obstore":
        store: Any = zarr.storage.ObjectStore(module.store.LocalStore(str(tmp_path)))
    elif name == "icechunk":
        repo = module.Repository.create(module.in_memory_storage())
        store = repo.writable_session("main").store
    else:
        store = zarr.storage.FsspecStore.from_url("memory://liblade-test")
    a = lz.create(store, "p", shape=x.shape, dtype=x.dtype, chunks=(10, 20), shards=(20, 40))
    a[...] = x
    assert not a.store.native
    assert (zarr.open_array(store, path="p")[...] == x).all()
    assert (lz.open_array(store, "p")[3:44, ::9] == x[3:44, ::9]).all()
