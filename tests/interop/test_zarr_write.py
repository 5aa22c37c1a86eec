# test_zarr_write.py: elements that liblade writes, read by zarr-python, tensorstore and zarrs.
# SPDX-License-Identifier: Apache-2.0
"""Each array is made and written by liblade: as a whole, then a part, from transposed and reversed
memory; zarr-python writes another part, and liblade again."""
import ctypes

import pytest

from lade_ctypes import Span, lib
from test_zarr_create import BLOSC, CRC, GZIP, TRANSPOSE, ZSTD, Store, call
from zarr_ctypes import Source

np = pytest.importorskip("numpy")
zarr = pytest.importorskip("zarr", reason="no wheel of zarr for this Python")
pytestmark = pytest.mark.filterwarnings("ignore")
NEW = tuple(int(n) for n in zarr.__version__.split(".")[:2]) >= (3, 4)


def write(node, text, data):
    """Writes a NumPy array, as it is in memory, to a selection."""
    low, high = np.lib.array_utils.byte_bounds(data)
    strides = (ctypes.c_ssize_t * max(data.ndim, 1))(*data.strides)
    source = Source(ctypes.sizeof(Source), Span(low, high - low), data.ctypes.data - low,
                    ctypes.addressof(strides))
    write_source(node, text, source)


def write_strings(node, text, items):
    blob = b"".join(items)
    offsets = (ctypes.c_int64 * (len(items) + 1))()
    for i, item in enumerate(items):
        offsets[i + 1] = offsets[i] + len(item)
    keep = ctypes.create_string_buffer(blob, len(blob) + 1)
    source = Source(ctypes.sizeof(Source), Span(ctypes.addressof(keep), len(blob)))
    source.offsets = ctypes.addressof(offsets)
    write_source(node, text, source)


def write_source(node, text, source):
    selection = ctypes.c_void_p()
    call("lade_zarr_selection_parse", node, text.encode(), ctypes.byref(selection))
    try:
        call("lade_zarr_write", node, selection, ctypes.byref(source), None, None)
    finally:
        lib.lade_zarr_selection_free(selection)


def values(dtype, shape, seed=1):
    random = np.random.default_rng(seed)
    dtype = np.dtype(dtype).newbyteorder("<")
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    if dtype.kind in "US":
        return random.integers(0, 10**6, shape).astype(dtype)
    bits = random.integers(0, 255, (*shape, dtype.itemsize), dtype=np.uint8)
    if dtype.kind in "fc":
        return random.standard_normal(shape).astype(dtype)
    return bits.view(dtype).reshape(shape)


def same(have, want):
    assert have.shape == want.shape
    assert have.astype(want.dtype).tobytes() == want.tobytes()


TYPES = ["bool", "<i1", "<i2", "<i4", "<i8", "<u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8", "<c8",
         "<c16", "|S5", "<U5", "|V5", "<M8[s]", "<m8[ns]"]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("form", [2, 3])
def test_types(tmp_path, dtype, form):
    if form == 3 and not NEW and np.dtype(dtype).kind in "SUVMm":
        pytest.skip("zarr-python before 3.4 has other names")
    node = Store(tmp_path / "d").create("a", shape=[10, 6], chunk_shape=[4, 3], type=dtype,
                                        format=form)
    want = values(dtype, (10, 6))
    write(node, "", want)
    part = values(dtype, (3, 4), 2)
    write(node, "[1:8:3, 1:5]", part)
    want[1:8:3, 1:5] = part
    z = zarr.open_array(str(tmp_path / "d"), path="a")
    same(z[...], want)
    theirs = values(dtype, (2, 6), 3)
    z[5:7] = theirs
    want[5:7] = theirs
    back = values(dtype, (6, 1), 4)
    write(node, "[2:8, 3]", back[:, 0])
    want[2:8, 3:4] = back
    same(zarr.open_array(str(tmp_path / "d"), path="a")[...], want)
    lib.lade_zarr_unref(node)


@pytest.mark.parametrize("dtype", [">i2", ">f4", ">f8", ">c8", ">U3", ">M8[s]"])
@pytest.mark.parametrize("fortran", [False, True])
def test_old_orders(tmp_path, dtype, fortran):
    node = Store(tmp_path / "d").create("a", shape=[10, 6], chunk_shape=[4, 3], type=dtype,
                                        format=2, fortran=fortran)
    want = values(dtype, (10, 6))
    write(node, "", want)
    write(node, "[9, :]", want[0])
    want[9] = want[0]
    have = zarr.open_array(str(tmp_path / "d"), path="a")[...]
    same(have.astype(want.dtype), want)
    lib.lade_zarr_unref(node)


def test_structs(tmp_path):
    dtype = [("a", "<i4"), ("b", ">f8"), ("c", "S3")]
    node = Store(tmp_path / "d").create("a", shape=[7], chunk_shape=[3], format=2,
                                        type=[["a", "<i4"], ["b", ">f8"], ["c", "|S3"]])
    want = np.zeros(7, [("a", "<i4"), ("b", "<f8"), ("c", "S3")])
    want["a"], want["b"], want["c"] = np.arange(7), np.arange(7) / 3, b"xyz"
    write(node, "", want)
    have = zarr.open_array(str(tmp_path / "d"), path="a")[...]
    assert have.dtype == np.dtype(dtype)
    for name in want.dtype.names:
        assert (have[name] == want[name]).all()
    lib.lade_zarr_unref(node)


@pytest.mark.parametrize("codecs", [[], [ZSTD], [BLOSC], [TRANSPOSE, GZIP, CRC], [CRC],
                                    [{"name": "bytes", "configuration": {"endian": "big"}}, ZSTD]])
@pytest.mark.parametrize("shards", [None, "end", "start"])
@pytest.mark.parametrize("reader", ["zarr", "tensorstore", "zarrs"])
def test_chains(tmp_path, codecs, shards, reader):
    d = dict(shape=[21, 13], chunk_shape=[8, 6], type="float32", codecs=codecs, fill=1.5)
    if shards:
        d.update(inner_shape=[4, 3], index_first=shards == "start")
    node = Store(tmp_path / "d").create("a", **d)
    want = np.full((21, 13), 1.5, "f4")
    data = np.arange(13 * 21, dtype="f4").reshape(13, 21).T[::-1]
    write(node, "[3:20, 2:12]", data[3:20, 2:12])
    want[3:20, 2:12] = data[3:20, 2:12]
    write(node, "[[0, 20, 7], ::4]", data[:3, :4])
    want[np.ix_([0, 20, 7], range(0, 13, 4))] = data[:3, :4]
    lib.lade_zarr_unref(node)
    same(read_by(reader, tmp_path / "d" / "a"), want)


def read_by(reader, path):
    if reader == "tensorstore":
        ts = pytest.importorskip("tensorstore", reason="no wheel of tensorstore")
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path)}}
        return ts.open(spec).result().read().result()
    if reader == "zarrs":
        pytest.importorskip("zarrs", reason="no wheel of zarrs")
        with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
            return zarr.open_array(str(path))[...]
    return zarr.open_array(str(path))[...]


@pytest.mark.parametrize("form", [2, 3])
def test_strings(tmp_path, form):
    node = Store(tmp_path / "d").create("a", shape=[3, 3], chunk_shape=[2, 2], type="string",
                                        format=form, fill="?")
    write_strings(node, "[1:, :2]", ["é".encode(), b"", b"abc", "\U0001f600".encode()])
    z = zarr.open_array(str(tmp_path / "d"), path="a")
    assert z[...].tolist() == [["?"] * 3, ["é", "", "?"], ["abc", "\U0001f600", "?"]]
    z[0, 0] = "theirs"
    write_strings(node, "[0, 1]", [b"ours"])
    assert z[0].tolist() == ["theirs", "ours", "?"]
    lib.lade_zarr_unref(node)


def test_scalars_are_repeated(tmp_path):
    node = Store(tmp_path / "d").create("a", shape=[5, 5], chunk_shape=[2, 2], type="int32")
    write(node, "", np.broadcast_to(np.int32(7), (5, 5)))
    assert (zarr.open_array(str(tmp_path / "d"), path="a")[...] == 7).all()
    lib.lade_zarr_unref(node)
