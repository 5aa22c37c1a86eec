"""liblade.zarr to and from a GPU: our arrays, CuPy, torch, and zarr-python with and without CuPy.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

np = pytest.importorskip("numpy", reason="numpy is not installed")

import liblade
from liblade import zarr as lz

if not liblade._lade._device_count():
    pytest.skip("there is no GPU", allow_module_level=True)

SHAPE = (200, 300)
LAYOUTS: dict[str, dict[str, Any]] = {
    "zstd": {"codecs": "zstd(level=3)"},
    "shuffled": {"codecs": "shuffle(4)|zstd(level=1)"},
    "blosc": {"codecs": [
        {"name": "bytes", "configuration": {"endian": "little"}},
        {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle",
                                            "typesize": 4, "blocksize": 0}}]},
    "lz4": {"codecs": [{"name": "bytes", "configuration": {"endian": "little"}},
                       {"name": "numcodecs.lz4", "configuration": {"acceleration": 1}}]},
    "none": {"codecs": ""},
    "gzip": {"codecs": "gzip(level=1)"},
    "v2": {"zarr_format": 2},
    "shards": {"codecs": "zstd(level=3)", "shards": (100, 120)},
    "shards-crc": {"shards": (100, 120), "codecs": [
        {"name": "bytes", "configuration": {"endian": "little"}},
        {"name": "zstd", "configuration": {"level": 1, "checksum": False}}, {"name": "crc32c"}]},
}  # fmt: skip


@pytest.fixture
def x() -> Any:
    return (np.arange(SHAPE[0] * SHAPE[1], dtype="<i4") // 3).reshape(SHAPE)


def made(x: Any, how: dict[str, Any], store: Any = None) -> lz.Array:
    store = lz.Store.memory() if store is None else store
    a = lz.create(store, shape=x.shape, dtype=x.dtype, chunks=(50, 40), **how)
    a[...] = x
    return a


@pytest.mark.parametrize("name", LAYOUTS)
def test_our_arrays(name: str, x: Any) -> None:
    a = made(x, LAYOUTS[name])
    got = a.read(place="device")
    assert got.place == "device" and got.shape == SHAPE
    assert (np.asarray(got.cpu()) == x).all()
    for key in (np.s_[13:160:3, 7], np.s_[::-1, 5:290], np.s_[[3, 199, 3], 1:], np.s_[5:6, 2:3]):
        assert (np.asarray(a.read(key, place="device").cpu()) == x[key]).all()
    a.write(got[20:150, 30:300], np.s_[0:130, 0:270])
    want = x.copy()
    want[0:130, 0:270] = x[20:150, 30:300]
    assert (a[...] == want).all()
    a.write(got)
    assert (a[...] == x).all()


@pytest.mark.parametrize("name", ["zstd", "shards", "blosc", "none"])
def test_out_and_places(name: str, x: Any) -> None:
    a = made(x, LAYOUTS[name])
    assert a.read(place="pinned").place == "pinned"
    assert a.read(place="device", device_budget=1000).place == "pinned"
    asked = []

    def place(box: lz.Box) -> str:
        asked.append(box.key)
        return "device" if box.start[0] % 100 else "host"

    whole = np.zeros(SHAPE, "<i4")
    places = set()
    for (i, j), part in a.read(place=place):
        places.add(part.place)
        part = np.asarray(part.cpu())
        whole[i : i + part.shape[0], j : j + part.shape[1]] = part
    assert (whole == x).all() and places == {"device", "host"}
    with lz.settings(place="device"):
        assert a[...].place == "device" and "the context manager" in a.explain()


@pytest.mark.parametrize("name", ["zstd", "shards", "lz4"])
def test_cupy(name: str, x: Any) -> None:
    cupy = pytest.importorskip("cupy")
    a = made(x, LAYOUTS[name])
    out = cupy.zeros(SHAPE, "i4")
    assert a.read(out=out) is out and (cupy.asnumpy(out) == x).all()
    wide = cupy.zeros((SHAPE[0], 2 * SHAPE[1]), "i4")
    a.read(out=wide[:, ::2])
    assert (cupy.asnumpy(wide[:, ::2]) == x).all() and not wide[:, 1::2].any()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        later = cupy.ones(SHAPE, "i4") * 5
        a.read(out=later, stream=stream.ptr)
        assert (cupy.asnumpy(later) == x).all()
    assert isinstance(a.read(np.s_[3:9], place="cupy"), cupy.ndarray)
    assert isinstance(a.read(allocator=cupy.empty), cupy.ndarray)
    a[...] = out * 2
    assert (a[...] == x * 2).all()
    a[::2, 5] = out[::2, 5]
    assert (a[::2, 5] == x[::2, 5]).all()


@pytest.mark.parametrize("name", ["zstd", "shards"])
def test_torch(name: str, x: Any) -> None:
    torch = pytest.importorskip("torch")
    a = made(x, LAYOUTS[name])
    out = torch.zeros(SHAPE, dtype=torch.int32, device="cuda")
    a.read(out=out)
    assert (out.cpu().numpy() == x).all()
    got = a.read(np.s_[10:90], place="torch:cuda:0")
    assert got.is_cuda and (got.cpu().numpy() == x[10:90]).all()
    same = torch.from_dlpack(a.read(place="device"))
    assert same.is_cuda and (same.cpu().numpy() == x).all()
    a[...] = out + 1
    assert (a[...] == x + 1).all()


# ---- zarr-python ------------


@pytest.fixture
def zarr() -> Any:
    module = pytest.importorskip("zarr", minversion="3.3")
    with module.config.set({"codec_pipeline.path": "liblade.zarr.CodecPipeline"}):
        lz.pipeline_counts(reset=True)
        yield module
    assert lz.pipeline_counts().stock == 0, lz.pipeline_reasons()


HOWS: list[dict[str, Any]] = [{}, {"shards": (100, 120)}, {"zarr_format": 2}]


def test_enable_gpu_of_zarr_python(zarr: Any, x: Any, tmp_path: pathlib.Path) -> None:
    cupy = pytest.importorskip("cupy")
    for i, how in enumerate(HOWS):
        for store in (zarr.storage.MemoryStore(), zarr.storage.LocalStore(tmp_path / f"a{i}")):
            zarr.create_array(store, name="a", data=x, chunks=(50, 40), **how)
            with zarr.config.enable_gpu():
                z = zarr.open_array(store, path="a")
                got = z[...]
                assert isinstance(got, cupy.ndarray) and (cupy.asnumpy(got) == x).all()
                assert (cupy.asnumpy(z[5:160:3, 7]) == x[5:160:3, 7]).all()
                z[10:90] = got[20:100]
                z[3] = 9
            want = x.copy()
            want[10:90] = x[20:100]
            want[3] = 9
            assert (zarr.open_array(store, path="a")[...] == want).all()


def test_a_prototype_for_one_call(zarr: Any, x: Any) -> None:
    cupy = pytest.importorskip("cupy")
    from zarr.core.buffer import gpu

    z = zarr.create_array(zarr.storage.MemoryStore(), data=x, chunks=(50, 40), shards=(100, 120))
    got = z.get_basic_selection(slice(3, 150), prototype=gpu.buffer_prototype)
    assert isinstance(got, cupy.ndarray) and (cupy.asnumpy(got) == x[3:150]).all()
    assert isinstance(z[...], np.ndarray)


def test_enable_gpu_of_ours(zarr: Any, x: Any) -> None:
    for how in HOWS:
        store = zarr.storage.MemoryStore()
        zarr.create_array(store, data=x, chunks=(50, 40), **how)
        with lz.enable_gpu():
            z = zarr.open_array(store)
            got = z[...]
            assert isinstance(got, liblade.Array) and got.place == "device"
            assert (np.asarray(got.cpu()) == x).all()
            z[10:90] = got[20:100]
            z[3] = 9
            assert (np.asarray(z[3].cpu()) == 9).all()


def test_xarray(zarr: Any, tmp_path: pathlib.Path) -> None:
    """Data to the device, coordinates to the host, in one call."""
    cupy = pytest.importorskip("cupy")
    xarray = pytest.importorskip("xarray")
    data = xarray.Dataset(
        {"t": (("y", "x"), np.arange(600, dtype="f4").reshape(20, 30))},
        coords={"y": np.arange(20), "x": np.arange(30)},
    )
    data.to_zarr(tmp_path / "a.zarr", zarr_format=3, consolidated=False)
    with (
        zarr.config.enable_gpu(),
        xarray.open_zarr(tmp_path / "a.zarr", chunks=None, consolidated=False) as d,
    ):
        assert isinstance(d.y.values, np.ndarray)
        assert isinstance(d.t[3:9].data, cupy.ndarray)
