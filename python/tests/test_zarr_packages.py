"""Packages that store by zarr-python, unchanged, with liblade.zarr.CodecPipeline.

Each writes and reads as its users do, and no chunk takes zarr-python's own pipeline.  `make
test-long` installs anndata and icechunk.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

np = pytest.importorskip("numpy", reason="numpy is not installed")
zarr = pytest.importorskip("zarr", minversion="3.3", reason="zarr-python 3.3 is not installed")

from liblade import zarr as lz

PACKED = {
    "t": {"dtype": "i2", "scale_factor": 0.01, "add_offset": 280.0, "_FillValue": -32768,
          "chunks": (10, 9, 9)},
    "time": {"units": "hours since 1900-01-01", "dtype": "i4"},
}  # fmt: skip


@pytest.fixture(autouse=True)
def pipeline() -> Iterator[None]:
    lz.pipeline_counts(reset=True)
    with zarr.config.set({"codec_pipeline.path": "liblade.zarr.CodecPipeline"}):
        yield


def all_native() -> None:
    counts = lz.pipeline_counts()
    assert counts.stock == 0 and counts.calls > 0, lz.pipeline_reasons()


def weather(xarray: Any, start: str) -> Any:
    values = np.random.default_rng(1).normal(280, 10, (40, 18, 36)).astype("f4")
    times = np.datetime64(start, "ns") + np.arange(40) * np.timedelta64(1, "D")
    names = np.array([f"row {i}" for i in range(18)])
    return xarray.Dataset(
        {"t": (("time", "lat", "lon"), values), "name": ("lat", names)}, {"time": times}
    )


@pytest.mark.parametrize("form", [2, 3])
def test_xarray_packs_and_appends(form: int, tmp_path: pathlib.Path) -> None:
    xarray = pytest.importorskip("xarray")
    first, second = weather(xarray, "2000-01-01"), weather(xarray, "2000-02-10")
    path = str(tmp_path / "a.zarr")
    first.to_zarr(path, encoding=PACKED, zarr_format=form, consolidated=True)
    second.to_zarr(path, append_dim="time")
    got = xarray.open_zarr(path).load()
    both = xarray.concat([first, second], "time", data_vars="minimal")
    assert (got.time == both.time).all() and (got.name == first.name).all()
    assert float(abs(got.t - both.t).max()) < 0.006
    all_native()


def test_xarray_writes_regions(tmp_path: pathlib.Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("dask")
    data = weather(xarray, "2000-01-01").drop_vars("name")
    path = str(tmp_path / "a.zarr")
    shards = {"t": {"shards": (10, 18, 36), "chunks": (5, 9, 9)}}
    data.chunk(time=10).to_zarr(path, compute=False, zarr_format=3, encoding=shards)
    for at in range(0, 40, 10):
        part = slice(at, at + 10)
        data[["t"]].drop_vars("time").isel(time=part).to_zarr(path, region={"time": part})
    assert xarray.open_zarr(path).load().equals(data)
    all_native()


def test_references_to_another_file(tmp_path: pathlib.Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("fsspec")
    x = np.arange(1, 10001, dtype="<f4").reshape(100, 100)
    raw = tmp_path / "x.bin"
    raw.write_bytes(b"head" + x.tobytes())
    array = {"shape": [100, 100], "chunks": [50, 100], "dtype": "<f4", "compressor": None,
             "filters": None, "fill_value": None, "order": "C", "zarr_format": 2}  # fmt: skip
    refs = {
        ".zgroup": '{"zarr_format": 2}',
        "x/.zarray": json.dumps(array),
        "x/.zattrs": '{"_ARRAY_DIMENSIONS": ["a", "b"]}',
        "x/0.0": [str(raw), 4, 20000],
        "x/1.0": [str(raw), 20004, 20000],
    }
    options = {"fo": {"version": 1, "refs": refs}, "remote_protocol": "file"}
    got = xarray.open_dataset(
        "reference://",
        engine="zarr",
        backend_kwargs={"storage_options": options, "consolidated": False},
    )
    assert (got.x.values == x).all()
    all_native()


@pytest.mark.parametrize("form", [2, 3])
def test_anndata(form: int, tmp_path: pathlib.Path) -> None:
    anndata = pytest.importorskip("anndata")
    import pandas
    from scipy import sparse

    rng = np.random.default_rng(2)
    cells = pandas.DataFrame({"kind": pandas.Categorical(rng.choice(["B", "T"], 500))},
                             index=[f"c{i}" for i in range(500)])  # fmt: skip
    genes = pandas.DataFrame({"name": [f"gène {i}" for i in range(200)]},
                             index=[f"g{i}" for i in range(200)])  # fmt: skip
    counts = sparse.random(500, 200, 0.05, "csr", dtype="f4", random_state=1)
    data = anndata.AnnData(counts, obs=cells, var=genes)
    path = tmp_path / "a.zarr"
    with anndata.settings.override(zarr_write_format=form):
        data.write_zarr(path)
    got = anndata.read_zarr(path)
    assert (got.X != counts).nnz == 0 and (got.obs.kind == cells.kind).all()
    assert list(got.var.name) == list(genes.name)
    lazy = anndata.io.sparse_dataset(zarr.open(path)["X"])
    assert (lazy[10:40] != counts[10:40]).nnz == 0
    all_native()


def test_icechunk(tmp_path: pathlib.Path) -> None:
    icechunk = pytest.importorskip("icechunk")
    xarray = pytest.importorskip("xarray")
    made = icechunk.Repository.create(icechunk.local_filesystem_storage(str(tmp_path / "repo")))
    session = made.writable_session("main")
    data = weather(xarray, "2000-01-01")
    data.to_zarr(session.store, consolidated=False)
    session.commit("first")
    store = made.readonly_session("main").store
    assert xarray.open_zarr(store, consolidated=False).load().equals(data)
    all_native()
