# test_zarr_create.py: documents that liblade makes, beside those of zarr-python.
# SPDX-License-Identifier: Apache-2.0
"""The same arguments give the same bytes; zarr-python opens what liblade resized, gave attributes
and consolidated."""
import ctypes
import json

import pytest

from lade_ctypes import LadeError, lib

np = pytest.importorskip("numpy")
zarr = pytest.importorskip("zarr")
pytestmark = pytest.mark.filterwarnings("ignore")
NEW = tuple(int(n) for n in zarr.__version__.split(".")[:2]) >= (3, 4)

_text, _sizes = ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint64)


class Edges(ctypes.Structure):
    _fields_ = [("sizes", _sizes), ("count", ctypes.c_size_t)]


class Description(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t), ("kind", ctypes.c_int), ("format", ctypes.c_uint32),
        ("attributes", _text), ("ndim", ctypes.c_size_t), ("shape", _sizes),
        ("chunk_shape", _sizes), ("edges", ctypes.POINTER(Edges)), ("type", _text),
        ("fill", _text), ("codecs", _text), ("spec", ctypes.c_void_p), ("inner_shape", _sizes),
        ("index_first", ctypes.c_bool), ("index_codecs", _text),
        ("dimension_names", ctypes.POINTER(_text)), ("fortran", ctypes.c_bool),
        ("v2_keys", ctypes.c_bool), ("separator", ctypes.c_char),
    ]


class CreateOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("exists", ctypes.c_int),
                ("no_parents", ctypes.c_bool), ("open", ctypes.c_void_p)]


class DirectoryOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("flags", ctypes.c_uint64)]


def call(name, *arguments):
    err = LadeError()
    status = getattr(lib, name)(*arguments, ctypes.byref(err))
    if status:
        raise OSError(err.message.decode())


def sizes(numbers):
    return (ctypes.c_uint64 * max(len(numbers), 1))(*numbers) if numbers is not None else None


class Store:
    def __init__(self, path):
        self.pointer = ctypes.c_void_p()
        options = DirectoryOptions(ctypes.sizeof(DirectoryOptions), 2)
        call("lade_store_directory_open", str(path).encode(), ctypes.byref(options),
             ctypes.byref(self.pointer))

    def __del__(self):
        lib.lade_store_unref(self.pointer)

    def create(self, path, exists=0, **d):
        kind = 1 if "shape" in d else 2
        description = Description(struct_size=ctypes.sizeof(Description), kind=kind)
        for key, value in d.items():
            if key in ("shape", "chunk_shape", "inner_shape"):
                value = sizes(value)
            elif key in ("attributes", "fill", "codecs", "index_codecs"):
                value = json.dumps(value).encode()
            elif key == "type":
                value = (value if isinstance(value, str) else json.dumps(value)).encode()
            elif key == "dimension_names":
                value = (_text * len(value))(*[n and n.encode() for n in value])
            elif key == "edges":
                value = (Edges * len(value))(*[Edges(sizes(e), len(e)) for e in value])
            setattr(description, key, value)
        description.ndim = len(d.get("shape", ()))
        options = CreateOptions(struct_size=ctypes.sizeof(CreateOptions), exists=exists)
        node = ctypes.c_void_p()
        call("lade_zarr_create", self.pointer, path.encode(), ctypes.byref(description),
             ctypes.byref(options), ctypes.byref(node))
        return node


def documents(path):
    return {str(p.relative_to(path)): p.read_text() for p in sorted(path.rglob("*"))
            if p.is_file()}


def compare(tmp_path, ours, theirs, path="a/b"):
    store = Store(tmp_path / "ours")
    lib.lade_zarr_unref(store.create(path, **ours))
    zarr.create_array(str(tmp_path / "theirs"), name=path, **theirs)
    have, want = documents(tmp_path / "ours"), documents(tmp_path / "theirs")
    assert have.keys() == want.keys()
    for name in have:
        assert have[name] == want[name], name


ZSTD = {"name": "zstd", "configuration": {"level": 3, "checksum": True}}
BLOSC = {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle",
                                            "typesize": 4, "blocksize": 0}}
GZIP = {"name": "gzip", "configuration": {"level": 5}}
CRC = {"name": "crc32c"}
TRANSPOSE = {"name": "transpose", "configuration": {"order": [1, 0]}}
GRID = dict(shape=[10, 6], chunk_shape=[4, 3])
GRID_PY = dict(shape=(10, 6), chunks=(4, 3))

ALL_TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
             "float16", "float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", ALL_TYPES)
@pytest.mark.parametrize("form", [2, 3])
def test_types(tmp_path, dtype, form):
    compare(tmp_path, dict(GRID, type=dtype, format=form),
            dict(GRID_PY, dtype=dtype, zarr_format=form))


@pytest.mark.parametrize("ours,dtype", [
    ("string", str), ("bytes", "variable_length_bytes"), ("|S5", "S5"), ("<U5", "<U5"),
    ("|V5", "V5"), ("<M8[10us]", "M8[10us]"), ("<m8[s]", "m8[s]"), ("<M8[D]", "M8[D]"),
    ([["a", "<i4"], ["b", "<f8"], ["c", "|S3"]], [("a", "<i4"), ("b", "<f8"), ("c", "S3")]),
])
@pytest.mark.parametrize("form", [2, 3])
def test_other_types(tmp_path, ours, dtype, form):
    if not NEW and form == 3:
        pytest.skip("zarr-python before 3.4 has other names")
    if dtype == "variable_length_bytes":
        from zarr.dtype import VariableLengthBytes
        dtype = VariableLengthBytes()
    compare(tmp_path, dict(GRID, type=ours, format=form),
            dict(GRID_PY, dtype=dtype, zarr_format=form))


@pytest.mark.parametrize("dtype,fill", [
    ("float32", 0.1), ("float64", 1e22), ("float64", 1e16), ("float64", 123456.789),
    ("float64", 1e-5), ("float64", 0.0001), ("float64", -0.0), ("float64", 5e-324),
    ("float16", 65504), ("float32", "NaN"), ("float64", "-Infinity"), ("int64", -(2**63)),
    ("uint64", 2**64 - 1), ("int8", -128), ("bool", True), ("complex64", [1.5, "NaN"]),
    ("float64", 9007199254740993.0), ("float32", 16777216.0), ("float64", 1.7976931348623157e308),
])
@pytest.mark.parametrize("form", [2, 3])
def test_fills(tmp_path, dtype, fill, form):
    value = fill
    if isinstance(fill, str):
        value = float(fill.replace("Infinity", "inf"))
    elif isinstance(fill, list):
        value = complex(fill[0], float("nan"))
    compare(tmp_path, dict(GRID, type=dtype, format=form, fill=fill),
            dict(GRID_PY, dtype=dtype, zarr_format=form, fill_value=value))


@pytest.mark.parametrize("codecs,filters,compressors", [
    ([], None, None), ([ZSTD], None, [ZSTD]), ([BLOSC], None, [BLOSC]),
    ([TRANSPOSE, GZIP, CRC], [TRANSPOSE], [GZIP, CRC]), (["crc32c"], None, [CRC]),
])
@pytest.mark.parametrize("shards", [None, "end", "start"])
def test_chains(tmp_path, codecs, filters, compressors, shards):
    from zarr.registry import get_codec_class
    make = lambda c: get_codec_class(c["name"]).from_dict(c)
    theirs = dict(GRID_PY, dtype="float32", filters=filters and [make(c) for c in filters],
                  compressors=compressors and [make(c) for c in compressors])
    ours = dict(GRID, type="float32", codecs=codecs)
    if shards:
        theirs["shards"] = {"shape": (8, 6), "index_location": shards}
        ours.update(chunk_shape=[8, 6], inner_shape=[4, 3], index_first=shards == "start")
    compare(tmp_path, ours, theirs)


def test_members(tmp_path):
    attributes = {"a": [1, 2, {"é": 1.5, "\U0001f600": "q\"\\\n\x7f/"}], "n": float("nan"),
                  "e": [], "o": {}}
    compare(tmp_path, dict(GRID, type="int16", dimension_names=["y", None], separator=b".",
                           attributes=attributes, fill=5),
            dict(GRID_PY, dtype="int16", dimension_names=["y", None], attributes=attributes,
                 fill_value=5, chunk_key_encoding={"name": "default", "separator": "."}))


def test_keys(tmp_path):
    compare(tmp_path, dict(GRID, type="int16", v2_keys=True),
            dict(GRID_PY, dtype="int16", chunk_key_encoding={"name": "v2", "separator": "."}))


def test_old_order(tmp_path):
    compare(tmp_path, dict(GRID, type=[["a", "<i4"], ["b", ">f8"]], format=2, fortran=True,
                           separator=b"/", codecs=[], attributes={"x": 1}),
            dict(GRID_PY, dtype=[("a", "<i4"), ("b", ">f8")], zarr_format=2, order="F",
                 compressors=None, attributes={"x": 1},
                 chunk_key_encoding={"name": "v2", "separator": "/"}))


def test_zero_axes(tmp_path):
    compare(tmp_path, dict(shape=[], chunk_shape=[], type="complex64", fill=[1, 2]),
            dict(shape=(), dtype="complex64", fill_value=1 + 2j))


@pytest.mark.skipif(not NEW, reason="zarr-python before 3.4 has no such grid")
def test_edges(tmp_path):
    with zarr.config.set({"array.rectilinear_chunks": True}):
        compare(tmp_path, dict(shape=[30, 10], type="int32",
                               edges=[[10, 15, 5], [5, 5]]),
                dict(shape=(30, 10), chunks=[[10, 15, 5], [5, 5]], dtype="int32"))


@pytest.mark.parametrize("form", [2, 3])
def test_changes(tmp_path, form):
    """Groups, attributes, shapes and consolidated metadata, as zarr-python sees them."""
    path = tmp_path / "d.zarr"
    store = Store(path)
    group = store.create("", format=form, attributes={"z": 1})
    array = store.create("g/a", shape=[10, 6], chunk_shape=[4, 3], type="<f4", format=form)
    lib.lade_zarr_unref(store.create("g/h", format=form))
    z = zarr.open_array(str(path), path="g/a")
    z[...] = np.arange(60).reshape(10, 6)
    assert len([p for p in documents_of(path / "g/a") if "0" in p]) > 0
    call("lade_zarr_set_attributes", array, b'{"new": {"x": [1.50]}}', None)
    call("lade_zarr_resize", array, sizes([5, 3]), None)
    z = zarr.open_array(str(path), path="g/a")
    assert z.shape == (5, 3) and dict(z.attrs) == {"new": {"x": [1.5]}}
    assert (z[...] == np.arange(60).reshape(10, 6)[:5, :3]).all()
    assert z.nchunks_initialized == 2
    call("lade_zarr_set_attributes", group, b'{"w": 2}', None)
    call("lade_zarr_consolidate", group, None)
    ours = zarr.open_consolidated(str(path))
    assert dict(ours.attrs) == {"w": 2}
    assert sorted(k for k, _ in ours.members(max_depth=None)) == ["g", "g/a", "g/h"]
    assert (ours["g/a"][...] == z[...]).all()
    have = json.loads((path / (".zmetadata" if form == 2 else "zarr.json")).read_text())
    zarr.consolidate_metadata(str(path))
    want = json.loads((path / (".zmetadata" if form == 2 else "zarr.json")).read_text())
    if form == 2:
        for key, value in want["metadata"].items():
            if key.endswith(".zgroup"):
                value.pop("consolidated_metadata", None)
    assert have == want
    call("lade_zarr_delete", store.pointer, b"g")
    assert not (path / "g").exists()
    with pytest.raises(OSError, match="exists already"):
        store.create("", format=form)
    lib.lade_zarr_unref(store.create("", exists=1, format=form))
    for node in (group, array):
        lib.lade_zarr_unref(node)


def documents_of(path):
    return [str(p.relative_to(path)) for p in path.rglob("*") if p.is_file()]
