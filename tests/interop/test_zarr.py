# test_zarr.py: arrays that zarr-python and tensorstore wrote, read by liblade: every type, codec
# and kind of grid that both have.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import shutil
import subprocess

import numpy as np
import pytest

import zarr_ctypes as ours

zarr = pytest.importorskip("zarr", reason="no wheel of zarr for this Python")
codecs = zarr.codecs
pytestmark = pytest.mark.filterwarnings("ignore")
zarr.config.set({"array.rectilinear_chunks": True})
rng = np.random.default_rng(16)
LITTLE = dict(name="bytes", configuration=dict(endian="little"))


def make(shape, dtype, missing=True):
    """Values of all kinds, with some runs; of floats also NaN and infinities."""
    dtype = np.dtype(dtype)
    if dtype.names:
        out = np.zeros(shape, dtype)
        for name in dtype.names:
            out[name] = make(shape, dtype[name].base if dtype[name].shape == () else dtype[name])
        return out
    count = int(np.prod(shape))
    if dtype.kind == "U":
        words = np.array(["", "a", "lade", "Zürich", "日本"])
        return words[rng.integers(0, 5, count)].astype(dtype).reshape(shape)
    raw = rng.integers(0, 256, count * dtype.itemsize, dtype=np.uint8)
    if dtype.kind == "b":
        return (raw & 1).astype(bool).reshape(shape)
    if dtype.kind == "S":
        return np.frombuffer((raw % 26 + 97).tobytes(), dtype).reshape(shape)
    if dtype.kind in "fc":
        out = np.cumsum(rng.normal(size=count)).astype(dtype.newbyteorder("="))
        if dtype.kind == "c":
            out = out + 1j * out[::-1]
        out[:: max(count // 7, 1)] = np.nan
        out[1 :: max(count // 5, 2)] = -np.inf
        return out.astype(dtype).reshape(shape)
    out = np.frombuffer(raw.tobytes(), dtype).copy().reshape(-1)
    if dtype.kind in "iu":
        out[count // 2 :] = 7
    return out.reshape(shape)


def same(got, want):
    """Equal, bit by bit but for the byte order."""
    want = np.asarray(want)
    little = want.astype(want.dtype.newbyteorder("<"))
    assert got.shape == want.shape
    if want.dtype.names is None and want.dtype.kind in "fc":
        np.testing.assert_array_equal(got, little)
        return
    assert got.tobytes() == np.ascontiguousarray(little).tobytes()


def write_by_hand(folder, data, packed, chain, **more):
    """An array of one chunk, 'packed', as its document says."""
    folder.mkdir()
    document = dict(zarr_format=3, node_type="array", shape=data.shape, data_type=data.dtype.name,
                    chunk_grid=dict(name="regular", configuration=dict(chunk_shape=data.shape)),
                    chunk_key_encoding=dict(name="default"), fill_value=0, codecs=chain, **more)
    (folder / "zarr.json").write_text(json.dumps(document))
    key = folder / "c" / "/".join("0" * data.ndim)
    key.parent.mkdir(parents=True)
    key.write_bytes(packed)


@pytest.mark.parametrize("padding", ["none", "first_byte", "last_byte"])
@pytest.mark.parametrize("dtype,first,last", [("bool", None, None), ("uint8", 0, 2),
                                              ("int16", 3, 11), ("uint32", None, 16),
                                              ("float32", 8, None), ("int64", None, None)])
def test_packbits(tmp_path, dtype, first, last, padding):
    # zarr-python and tensorstore have no packbits of format 3: NumPy's bits are the reference.
    data = make((7, 5), dtype) if dtype != "float32" else rng.normal(size=(7, 5)).astype(dtype)
    width = 1 if dtype == "bool" else 8 * data.itemsize
    bits = np.unpackbits(data.view(np.uint8).reshape(-1, data.itemsize), axis=1, bitorder="little")
    low, high = first or 0, width - 1 if last is None else last
    packed = np.packbits(bits[:, low : high + 1].reshape(-1), bitorder="little").tobytes()
    unused = bytes([-(data.size * (high + 1 - low)) % 8])
    packed = {"none": packed, "first_byte": unused + packed, "last_byte": packed + unused}[padding]
    chain = [dict(name="packbits", configuration=dict(padding_encoding=padding, first_bit=first,
                                                      last_bit=last)), "crc32c"]
    import google_crc32c
    write_by_hand(tmp_path / "a", data, packed + google_crc32c.value(packed).to_bytes(4, "little"),
                  chain)
    sign = data.dtype.kind == "i"
    bits[:, :low] = 0
    bits[:, high + 1 :] = bits[:, high : high + 1] if sign else 0
    want = np.packbits(bits, axis=1, bitorder="little").view(data.dtype).reshape(data.shape)
    got = ours.read(tmp_path / "a", dtype)
    assert got.tobytes() == want.tobytes()


def test_reshape(tmp_path):
    data = make((6, 4, 5), "int16")
    chain = [dict(name="transpose", configuration=dict(order=[2, 0, 1])),
             dict(name="reshape", configuration=dict(shape=[5, [1, 2]])),
             dict(name="bytes", configuration=dict(endian="big"))]
    write_by_hand(tmp_path / "a", data, data.transpose(2, 0, 1).astype(">i2").tobytes(), chain)
    same(ours.read(tmp_path / "a", "int16"), data)


def compare(folder, array, selections=("[1:-1, ::2]", "[2, :]", "[::-1, 5:1:-1]")):
    """What we read is what zarr-python reads; and what we write is for it what it writes itself."""
    compare_reads(folder, array, selections)
    other = np.ascontiguousarray(array[...][::-1] if array.ndim else array[...])
    ours.write(folder, other)
    got = array[...]
    array[...] = other
    same(np.asarray(got).astype(array.dtype.newbyteorder("<")), array[...])


def compare_reads(folder, array, selections):
    whole = array[...]
    same(ours.read(folder, array.dtype), whole)
    for text in selections if array.ndim == 2 else ():
        same(ours.read(folder, array.dtype, text), eval(f"whole{text}"))


TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
         "float16", "float32", "float64", "complex64", "complex128", "M8[ns]", "m8[10us]",
         "S5", "U3", "V6"]


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("dtype", TYPES)
def test_types(tmp_path, dtype, zarr_format):
    data = make((11, 13), dtype)
    array = zarr.create_array(tmp_path / "a", shape=data.shape, chunks=(4, 5), dtype=data.dtype,
                              zarr_format=zarr_format)
    array[...] = data
    compare(tmp_path / "a", array)


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", [">i2", ">u4", ">f8", ">c8", ">M8[s]", ">U3"])
def test_big_endian_format_2(tmp_path, dtype, order):
    data = make((11, 13), dtype)
    array = zarr.create_array(tmp_path / "a", shape=data.shape, chunks=(4, 5), dtype=dtype,
                              zarr_format=2, order=order)
    array[...] = data
    compare(tmp_path / "a", array)


@pytest.mark.parametrize("dtype", ["int16", "float64", "complex64", "M8[D]"])
def test_big_endian_format_3(tmp_path, dtype):
    data = make((11, 13), dtype)
    array = zarr.create_array(tmp_path / "a", shape=data.shape, chunks=(4, 5), dtype=dtype,
                              serializer=codecs.BytesCodec(endian="big"))
    array[...] = data
    compare(tmp_path / "a", array)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("fields", [
    [("a", "<i2"), ("b", "<f8")], [("a", ">i4"), ("b", "S3"), ("c", "<u1")],
    [("t", "<M8[ns]"), ("in", [("x", "<f4"), ("y", ">f4")])]])
def test_structs(tmp_path, fields, zarr_format):
    if zarr_format == 3:
        fields = json.loads(json.dumps(fields).replace(">", "<"))
        fields = [(n, [tuple(f) for f in t] if isinstance(t, list) else t) for n, t in fields]
    data = np.zeros((11, 13), np.dtype(fields))
    data[fields[0][0]] = make((11, 13), data.dtype[0])
    array = zarr.create_array(tmp_path / "a", shape=data.shape, chunks=(4, 5), dtype=data.dtype,
                              zarr_format=zarr_format, compressors=None)
    array[...] = data
    compare(tmp_path / "a", array)


CHAINS = {
    "default": {},
    "none": dict(compressors=None),
    "zstd": dict(compressors=[codecs.ZstdCodec(level=3, checksum=True)]),
    "gzip": dict(compressors=[codecs.GzipCodec(level=5)]),
    "crc": dict(compressors=[codecs.ZstdCodec(), codecs.Crc32cCodec()]),
    "transpose": dict(filters=[codecs.TransposeCodec(order=(1, 0))]),
    "transposed zstd crc": dict(filters=[codecs.TransposeCodec(order=(1, 0))],
                                compressors=[codecs.ZstdCodec(), codecs.Crc32cCodec()]),
}
for cname in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
    for shuffle in ("noshuffle", "shuffle", "bitshuffle"):
        CHAINS[f"blosc {cname} {shuffle}"] = dict(
            compressors=[codecs.BloscCodec(cname=cname, shuffle=shuffle)])


@pytest.mark.parametrize("chain", CHAINS)
def test_chains(tmp_path, chain):
    data = make((50, 61), "float32")
    array = zarr.create_array(tmp_path / "a", shape=data.shape, chunks=(24, 30), dtype="float32",
                              **CHAINS[chain])
    array[...] = data
    compare(tmp_path / "a", array)


NUMCODECS = [
    ("BZ2", dict(level=3)), ("LZMA", {}), ("LZMA", dict(format=2, preset=1)),
    ("LZMA", dict(format=3, filters=[{"id": 3, "dist": 4}, {"id": 33, "preset": 1}])),
    ("LZ4", {}), ("Zlib", {}), ("GZip", {}), ("Zstd", {}), ("Blosc", {}),
    ("Shuffle", dict(elementsize=4)), ("JenkinsLookup3", dict(initval=5)), ("CRC32", {}),
    ("Adler32", {}), ("Fletcher32", {}), ("CRC32C", {}),
]


@pytest.mark.parametrize("name,options", NUMCODECS)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_numcodecs(tmp_path, name, options, zarr_format):
    import numcodecs
    import zarr.codecs.numcodecs as wrapped
    data = make((50, 61), "int32")
    # zarr-python has no checksums of its own in format 2 but as filters and compressors alike.
    one = getattr(numcodecs, name, None) or getattr(numcodecs.checksum32, name)
    chain = (dict(compressors=one(**options)) if zarr_format == 2 else
             dict(compressors=[getattr(wrapped, name)(**options)]))
    array = zarr.create_array(tmp_path / "a", shape=data.shape, chunks=(24, 30), dtype="int32",
                              zarr_format=zarr_format, **chain)
    array[...] = data
    compare(tmp_path / "a", array)


FILTERS = [
    ("Delta", "int32", dict(dtype="<i4")), ("Delta", "float64", dict(dtype="<f8")),
    ("FixedScaleOffset", "float64", dict(offset=3, scale=10, dtype="<f8", astype="<i4")),
    ("Quantize", "float32", dict(digits=2, dtype="<f4")), ("BitRound", "float32", dict(keepbits=9)),
    ("AsType", "int32", dict(encode_dtype="<i8", decode_dtype="<i4")), ("PackBits", "bool", {}),
]


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("name,dtype,options", [
    ("Delta", ">i4", dict(dtype=">i4")), ("Delta", ">u2", dict(dtype=">u2", astype="<i4")),
    ("Delta", "<i8", dict(dtype="<i8", astype=">i8")), ("Delta", "<i2", dict(dtype=">i2")),
    ("Delta", ">f8", dict(dtype=">f8")), ("Delta", ">i8", dict(dtype=">i8", astype="|i1")),
    ("FixedScaleOffset", ">f8", dict(offset=3, scale=10, dtype=">f8", astype=">i4")),
    ("FixedScaleOffset", ">f4", dict(offset=-3, scale=2, dtype=">f4", astype="|i1")),
    ("FixedScaleOffset", "<i4", dict(offset=1, scale=1, dtype="<i4", astype=">i8")),
    ("Quantize", ">f4", dict(digits=2, dtype=">f4")),
    ("Quantize", ">f8", dict(digits=1, dtype=">f8", astype="<f4")),
    ("AsType", ">i4", dict(encode_dtype=">i8", decode_dtype=">i4")),
    ("AsType", ">f8", dict(encode_dtype="<f4", decode_dtype=">f8"))])
def test_big_endian_filters(tmp_path, name, dtype, options, order):
    import numcodecs
    data = (rng.integers(0, 100, (48, 60)) / 4).astype(dtype)
    array = zarr.create_array(
        tmp_path / "a", shape=data.shape, chunks=(24, 30), dtype=dtype, zarr_format=2, order=order,
        filters=[getattr(numcodecs, name)(**options), numcodecs.Shuffle(2)],
        compressors=numcodecs.LZ4())
    array[...] = data
    compare(tmp_path / "a", array)


def test_filters_of_both_byte_orders(tmp_path):
    import numcodecs
    data = rng.integers(0, 100, (48, 60)).astype(">i4")
    array = zarr.create_array(
        tmp_path / "a", shape=data.shape, chunks=(24, 30), dtype=">i4", zarr_format=2, filters=[
            numcodecs.FixedScaleOffset(0, 10, ">i4", ">i8"), numcodecs.AsType("<i4", ">i8"),
            numcodecs.Delta("<i4", ">i2"), numcodecs.CRC32(), numcodecs.LZ4()])
    array[...] = data
    compare(tmp_path / "a", array)


@pytest.mark.parametrize("first", ["ZstdCodec", "Crc32cCodec", "BloscCodec"])
def test_lz4_behind_others(tmp_path, first):
    # The header of numcodecs' LZ4 has the size that the codec before it made.
    import zarr.codecs.numcodecs as wrapped
    data = make((50, 61), "int32")
    array = zarr.create_array(tmp_path / "a", shape=data.shape, chunks=(24, 30), dtype="int32",
                              compressors=[getattr(codecs, first)(), wrapped.LZ4()])
    array[...] = data
    compare(tmp_path / "a", array)


def test_cast_value_behind_filters(tmp_path):
    pytest.importorskip("cast_value_rs", reason="no wheel of cast-value-rs for this Python")
    import zarr.codecs.numcodecs as wrapped
    data = rng.integers(0, 100, (48, 60)).astype("float64")
    array = zarr.create_array(
        tmp_path / "a", shape=data.shape, chunks=(24, 30), dtype="float64", filters=[
            wrapped.AsType(encode_dtype="<f4", decode_dtype="<f8"),
            codecs.CastValue(data_type="int16")])
    array[...] = data
    compare(tmp_path / "a", array)


@pytest.mark.parametrize("name,dtype,options", FILTERS)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_filters(tmp_path, name, dtype, options, zarr_format):
    import numcodecs
    import zarr.codecs.numcodecs as wrapped
    data = make((50, 61), dtype)
    if data.dtype.kind == "f":
        data = np.cumsum(rng.normal(size=data.shape), axis=1).astype(dtype)
    one = getattr(numcodecs if zarr_format == 2 else wrapped, name)(**options)
    array = zarr.create_array(tmp_path / "a", shape=data.shape, chunks=(24, 30), dtype=dtype,
                              zarr_format=zarr_format, filters=[one])
    array[...] = data
    compare(tmp_path / "a", array)


@pytest.mark.parametrize("rounding", ["nearest-even", "towards-zero", "towards-positive",
                                      "towards-negative", "nearest-away"])
@pytest.mark.parametrize("types", ["float64 float32", "float64 float16", "float64 int16",
                                   "float32 uint8", "int64 float32", "int64 float64",
                                   "int16 uint8", "uint64 int8"])
def test_cast_value(tmp_path, types, rounding):
    pytest.importorskip("cast_value_rs", reason="no wheel of cast-value-rs for this Python")
    dtype, to = types.split()
    real = np.dtype(dtype).kind == "f"
    data = rng.normal(size=(40, 50)) * 10.0 ** rng.integers(-9, 9, (40, 50)) if real else \
        (rng.integers(0 if dtype[0] == "u" else -2**62, 2**62, (40, 50)) >>
         rng.integers(0, 62, (40, 50)))
    data = data.astype(dtype)
    if real and np.dtype(to).kind != "f":
        data[:20] = np.round(data[:20] % 50) + 0.5
    options = dict(data_type=to, rounding=rounding, out_of_range="clamp")
    if real and np.dtype(to).kind != "f":
        data[0, :3] = np.nan, np.inf, -np.inf
        options["scalar_map"] = dict(encode=[("NaN", 9), ("+Infinity", 8), ("-Infinity", 7)],
                                     decode=[(9, "NaN"), (8, "Infinity")])
    if not real and np.dtype(to).kind != "f":
        options["out_of_range"] = "wrap"
    array = zarr.create_array(tmp_path / "a", shape=data.shape, chunks=(24, 30), dtype=dtype,
                              filters=[codecs.CastValue(**options)], compressors=None)
    array[...] = data
    # The same bytes by our encoder.
    import lade_ctypes as lade
    spec = (f"cast({np.dtype(dtype).str},astype={np.dtype(to).str},rounding={rounding},"
            f"range={options['out_of_range']}")
    spec += ",map=31,nan=9,inf=8,ninf=7)" if "scalar_map" in options else ")"
    chunk = np.ascontiguousarray(data[:24, :30])
    assert lade.encode(spec, chunk.tobytes()) == (tmp_path / "a/c/0/0").read_bytes()
    compare(tmp_path / "a", array)


def test_scale_offset(tmp_path):
    data = (rng.integers(0, 100, (50, 61)) / 4).astype("float32")
    array = zarr.create_array(tmp_path / "a", shape=data.shape, chunks=(24, 30), dtype="float32",
                              filters=[codecs.ScaleOffset(offset=5, scale=4)])
    array[...] = data
    compare(tmp_path / "a", array)


SHARDS = {
    "end": {}, "start": dict(index_location="start"),
    "index without checksum": dict(index_codecs=[codecs.BytesCodec()]),
    "blosc": dict(codecs=[codecs.BytesCodec(), codecs.BloscCodec(typesize=4)]),
    "transposed": dict(codecs=[codecs.TransposeCodec(order=(1, 0)), codecs.BytesCodec()]),
    "nested": dict(codecs=[codecs.ShardingCodec(chunk_shape=(3, 5), index_location="start")]),
    "big": dict(codecs=[codecs.BytesCodec(endian="big"), codecs.ZstdCodec()]),
    "index transposed": dict(index_codecs=[codecs.TransposeCodec(order=(2, 1, 0)),
                                           codecs.BytesCodec(), codecs.Crc32cCodec()]),
    "index transposed twice": dict(index_location="start", index_codecs=[
        codecs.TransposeCodec(order=(1, 2, 0)), codecs.TransposeCodec(order=(0, 2, 1)),
        codecs.BytesCodec(endian="big")]),
    "index scaled": dict(index_codecs=[codecs.ScaleOffset(offset=0), codecs.BytesCodec()]),
}


@pytest.mark.parametrize("kind", SHARDS)
def test_shards(tmp_path, kind):
    data = make((50, 61), "int32")
    data[12:36, 10:40] = 0  # chunks that are left out
    array = zarr.create_array(
        tmp_path / "a", shape=data.shape, chunks=(24, 40), dtype="int32", compressors=None,
        serializer=codecs.ShardingCodec(chunk_shape=(6, 10), **SHARDS[kind]))
    array[...] = data
    compare(tmp_path / "a", array)


def test_compressed_shards(tmp_path):
    data = make((50, 61), "int32")
    array = zarr.create_array(
        tmp_path / "a", shape=data.shape, chunks=(24, 24), dtype="int32",
        filters=[codecs.TransposeCodec(order=(1, 0))], compressors=[codecs.GzipCodec()],
        serializer=codecs.ShardingCodec(chunk_shape=(6, 12)))
    array[...] = data
    compare(tmp_path / "a", array)


def filters_of_elements():
    import zarr.codecs.numcodecs as wrapped
    return {"cast": ("float64", codecs.CastValue(data_type="float32")),
            "narrower": ("int64", codecs.CastValue(data_type="uint8")),
            "scale_offset": ("float32", codecs.ScaleOffset(offset=5, scale=4)),
            "astype": ("float64", wrapped.AsType(encode_dtype="<f4", decode_dtype="<f8")),
            "quantize": ("float32", wrapped.Quantize(digits=2)),
            "bitround": ("float32", wrapped.BitRound(keepbits=9))}


@pytest.mark.parametrize("compressors", [None, [codecs.ZstdCodec()]])
@pytest.mark.parametrize("kind", ["cast", "narrower", "scale_offset", "astype", "quantize",
                                  "bitround"])
def test_filters_before_shards(tmp_path, kind, compressors):
    pytest.importorskip("cast_value_rs", reason="no wheel of cast-value-rs for this Python")
    dtype, one = filters_of_elements()[kind]
    data = (rng.integers(0, 100, (50, 61)) / 4).astype(dtype)
    data[12:36, 10:40] = 0  # chunks that are left out
    array = zarr.create_array(
        tmp_path / "a", shape=data.shape, chunks=(24, 40), dtype=dtype, compressors=compressors,
        filters=[codecs.TransposeCodec(order=(1, 0)), one], serializer=codecs.ShardingCodec(
            chunk_shape=(4, 8), codecs=[codecs.BytesCodec(endian="big"), codecs.ZstdCodec()]))
    array[...] = data
    compare(tmp_path / "a", array)


def test_filters_before_shards_that_change_the_fill_value(tmp_path):
    # zarr-python fills missing chunks of such a shard with NaN, but missing shards with 0.
    pytest.importorskip("cast_value_rs", reason="no wheel of cast-value-rs for this Python")
    one = codecs.CastValue(data_type="int16", scalar_map=dict(encode=[("NaN", 0)],
                                                              decode=[(0, "NaN")]))
    array = zarr.create_array(
        tmp_path / "a", shape=(48, 80), chunks=(24, 40), dtype="float32", compressors=None,
        filters=[one], serializer=codecs.ShardingCodec(chunk_shape=(6, 10)))
    array[:4, :4] = 1
    assert np.isnan(array[20, 20]) and array[40, 60] == 0
    with pytest.raises(ours.lade.Error, match="change the fill value"):
        ours.read(tmp_path / "a", "float32")


SELECTIONS = ["[::-3, [0, 60, 3, 3]]", "[[7, 7, 49], 10:50:7]", "[..., 12]", "[5:5, :]", "[-1, -1]",
              "[23:25, 39:41]", "[:, :]", "[49:0:-1, ::60]"]


@pytest.mark.parametrize("text", SELECTIONS)
@pytest.mark.parametrize("kind", ["plain", "shards", "F"])
def test_selections(tmp_path, text, kind):
    data = make((50, 61), "int32")
    options = {"plain": {}, "shards": dict(chunks=(6, 10), shards=(24, 40)),
               "F": dict(zarr_format=2, order="F")}[kind]
    array = zarr.create_array(tmp_path / "a", shape=data.shape, dtype="int32",
                              **{"chunks": (24, 40), **options})
    array[...] = data
    same(ours.read(tmp_path / "a", "int32", text), eval(f"data{text}"))


def test_no_axes_and_none_missing(tmp_path):
    array = zarr.create_array(tmp_path / "a", shape=(), dtype="float64", fill_value=2.5)
    same(ours.read(tmp_path / "a", "float64"), np.float64(2.5))
    array[...] = 7
    same(ours.read(tmp_path / "a", "float64"), np.float64(7))
    array = zarr.create_array(tmp_path / "b", shape=(9, 9), chunks=(2, 2), dtype="uint16",
                              fill_value=513)
    array[3:5, 2:6] = make((2, 4), "uint16")
    compare(tmp_path / "b", array)


def test_rectilinear(tmp_path):
    data = make((50, 61), "uint16")
    array = zarr.create_array(tmp_path / "a", shape=data.shape,
                              chunks=[[10, 15, 25], [20, 20, 21]], dtype="uint16")
    array[...] = data
    compare(tmp_path / "a", array)


@pytest.mark.parametrize("kind", ["v3", "v3 bytes", "v2", "v2 bytes", "v3 shards", "v2 zstd F"])
def test_any_length(tmp_path, kind):
    words = ["", "a", "lade", "Zürich", "日本", "x" * 300]
    data = np.array([words[i] for i in rng.integers(0, 6, 11 * 13)], object).reshape(11, 13)
    of_bytes = "bytes" in kind
    if of_bytes:
        data = np.frompyfunc(str.encode, 1, 1)(data)
    options = dict(zarr_format=int(kind[1]), fill_value=b"" if of_bytes else "none")
    if kind == "v2 zstd F":
        options.update(order="F")
    if kind == "v3 shards":
        options.update(shards=(8, 15))
    array = zarr.create_array(tmp_path / "a", shape=data.shape, chunks=(4, 5),
                              dtype=zarr.dtype.VariableLengthBytes() if of_bytes else str,
                              **options)
    array[:8, :10] = data[:8, :10]
    want = array[...]
    for text in ("[:, :]", "[::-2, 3]", "[7:, ::4]"):
        got = ours.read(tmp_path / "a", bytes if of_bytes else str, text)
        assert got.tolist() == eval(f"want{text}").tolist()


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_strings_are_utf8(tmp_path, zarr_format):
    # What zarr-python refuses is refused, and nothing else; bytes may be anything.
    words = [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"12345678\xe2\x82",
             b"\xc3", b"\x80", b"\xe0\x9f\xbf", b"\xf0\x8f\xbf\xbf", b"\xf5\x80\x80\x80",
             b"\xed\x9f\xbf",
             "\U0010ffff\uffff\ue000\x00z".encode(), b"\xc2\x80\xdf\xbf", b"a" * 40, b""]
    for kind, dtype in (("str", str), ("bytes", zarr.dtype.VariableLengthBytes())):
        array = zarr.create_array(tmp_path / kind, shape=(2,), chunks=(2,), dtype=dtype,
                                  zarr_format=zarr_format, compressors=None)
        array[...] = np.array(["a", "b"] if kind == "str" else [b"a", b"b"], object)
        chunk = tmp_path / kind / ("0" if zarr_format == 2 else "c/0")
        for word in words:
            chunk.write_bytes(b"\2\0\0\0\1\0\0\0a" + len(word).to_bytes(4, "little") + word)
            try:
                want = array[...].tolist()
            except UnicodeDecodeError:
                assert kind == "str"
                with pytest.raises(ours.lade.Error, match=r"chunk \(0\): element 1 is not UTF-8"):
                    ours.read(tmp_path / kind, str, "[:1]")
                continue
            assert ours.read(tmp_path / kind, dict(str=str, bytes=bytes)[kind]).tolist() == want


# ---- tensorstore ---------------------------------------------------------------------------------

def n5_array(folder, data, blocks, compression, cut):
    """N5 by tensorstore, with a zarr.json beside it; 'cut': without what is beyond the edges, as
    Java's writers leave it out."""
    ts = pytest.importorskip("tensorstore", reason="no wheel of tensorstore for this Python")
    store = ts.open(dict(driver="n5", kvstore=dict(driver="file", path=str(folder)),
                         metadata=dict(dimensions=data.shape, blockSize=blocks,
                                       dataType=data.dtype.name, compression=compression)),
                    create=True).result()
    store[...] = data
    name = compression["type"]
    packer = {"raw": [], "gzip": [dict(name="gzip", configuration=dict(level=5))],
              "zstd": [dict(name="zstd", configuration=dict(level=0, checksum=False))],
              "bzip2": [dict(name="numcodecs.bz2", configuration=dict(level=9))],
              "xz": [dict(name="numcodecs.lzma", configuration=dict(preset=1))],
              "blosc": [dict(name="blosc", configuration=dict(
                  cname="lz4", clevel=5, shuffle="shuffle", typesize=data.itemsize,
                  blocksize=0))]}[name]
    inner = [dict(name="transpose", configuration=dict(order=list(range(data.ndim))[::-1])),
             dict(name="bytes", configuration=dict(endian="big")), *packer]
    (folder / "zarr.json").write_text(json.dumps(dict(
        zarr_format=3, node_type="array", shape=data.shape, data_type=data.dtype.name,
        chunk_grid=dict(name="regular", configuration=dict(chunk_shape=blocks)),
        chunk_key_encoding=dict(name="v2", configuration=dict(separator="/")), fill_value=7,
        codecs=[dict(name="n5_default", configuration=dict(codecs=inner))])))
    if not cut:
        return
    for chunk in np.ndindex(*(-(-n // b) for n, b in zip(data.shape, blocks))):
        box = data[tuple(slice(i * b, (i + 1) * b) for i, b in zip(chunk, blocks))]
        head = b"".join(n.to_bytes(4, "big") for n in box.shape)
        body = box.T.astype(box.dtype.newbyteorder(">")).tobytes()
        body = {"raw": lambda x: x, "gzip": __import__("gzip").compress}[name](body)
        path = folder.joinpath(*map(str, chunk))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\0\0" + len(box.shape).to_bytes(2, "big") + head + body)


@pytest.mark.parametrize("name,cut", [("raw", False), ("gzip", False), ("zstd", False),
                                      ("bzip2", False), ("xz", False), ("blosc", False),
                                      ("raw", True), ("gzip", True)])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float64"])
def test_n5(tmp_path, dtype, name, cut):
    data = make((23, 17), dtype)
    options = dict(cname="lz4", clevel=5, shuffle=1) if name == "blosc" else {}
    n5_array(tmp_path / "a", data, (10, 6), dict(type=name, **options), cut)
    (tmp_path / "a" / "0" / "1").unlink(missing_ok=True)
    data[:10, 6:12] = 7
    same(ours.read(tmp_path / "a", dtype), data)
    for text in ("[1:-1, ::2]", "[2, :]", "[::-1, 5:1:-1]", "[22, 16]", "[[20, 3, 22], 12:]"):
        same(ours.read(tmp_path / "a", dtype, text), eval(f"data{text}"))


@pytest.mark.parametrize("name,cut", [("raw", True), ("zstd", False)])
def test_n5_three_axes(tmp_path, name, cut):
    data = make((7, 11, 5), "uint32")
    n5_array(tmp_path / "a", data, (4, 3, 4), dict(type=name), cut)
    same(ours.read(tmp_path / "a", "uint32"), data)
    same(ours.read(tmp_path / "a", "uint32", "[::2, 9:, ::-1]"), data[::2, 9:, ::-1])


def test_n5_smaller_and_larger_blocks(tmp_path):
    data = np.arange(20, dtype="int16").reshape(4, 5)
    n5_array(tmp_path / "a", data, (4, 5), dict(type="raw"), True)
    block = tmp_path / "a" / "0" / "0"
    whole = block.read_bytes()
    # A block of 2 x 5 in a chunk of 4 x 5: the rest is the fill value.
    part = data[:2].T.astype(">i2").tobytes()
    block.write_bytes(whole[:4] + (2).to_bytes(4, "big") + (5).to_bytes(4, "big") + part)
    want = data.copy()
    want[2:] = 7
    for text in ("[:, :]", "[1:3, ::-1]", "[[3, 0], :]", "[3, 1:]", "[2:, :]"):
        same(ours.read(tmp_path / "a", "int16", text), eval(f"want{text}"))
    for bad, message in ((b"\0\1" + whole[2:], "mode 1"),
                         (whole[:2] + b"\0\3" + whole[4:], "3 axes"),
                         (whole[:11], "want 12 bytes"), (whole[:-1], "39 bytes"),
                         (whole[:4] + b"\xff" * 8 + whole[12:], "N5 block of")):
        block.write_bytes(bad)
        with pytest.raises(ours.lade.Error, match=message):
            ours.read(tmp_path / "a", "int16")


@pytest.mark.parametrize("name", ["raw", "gzip", "zstd", "blosc"])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float64"])
def test_n5_written(tmp_path, dtype, name):
    # The first blocks are N5's, cut at the edges or whole; tensorstore reads what became of them.
    ts = pytest.importorskip("tensorstore", reason="no wheel of tensorstore for this Python")
    data = make((23, 17), dtype)
    options = dict(cname="lz4", clevel=5, shuffle=1) if name == "blosc" else {}
    n5_array(tmp_path / "a", data, (10, 6), dict(type=name, **options), name in ("raw", "gzip"))
    (tmp_path / "a" / "0" / "1").unlink(missing_ok=True)
    data[:10, 6:12] = 7
    spec = dict(driver="n5", kvstore=dict(driver="file", path=str(tmp_path / "a")))
    for text in ("[3:12, 5:]", "[20:, ::2]", "[:, 1:17]", "[:, :]"):
        part = make(eval(f"data{text}").shape, dtype)
        exec(f"data{text} = part")
        ours.write(tmp_path / "a", part, text)
        same(ours.read(tmp_path / "a", dtype), data)
    same(np.asarray(ts.open(spec).result().read().result()), data)


def n5_shard(folder, data, transposed):
    """A shard of blocks of N5, of which those of the first row are too small.  Returns what it
    holds.  Nobody else writes such shards."""
    shape = [3, 4] if transposed else [4, 3]
    chain = [dict(name="sharding_indexed", configuration=dict(
        chunk_shape=shape, index_codecs=[LITTLE], codecs=[
            dict(name="n5_default", configuration=dict(codecs=[
                dict(name="transpose", configuration=dict(order=[1, 0])),
                dict(name="bytes", configuration=dict(endian="big"))]))]))]
    stored, packed, index = data.T if transposed else data, b"", []
    if transposed:
        chain.insert(0, dict(name="transpose", configuration=dict(order=[1, 0])))
    for i, j in np.ndindex(*(n // c for n, c in zip(stored.shape, shape))):
        block = stored[i * shape[0] :, j * shape[1] :][: shape[0], : shape[1] - (i == 0)]
        block_bytes = b"\0\0\0\2" + b"".join(n.to_bytes(4, "big") for n in block.shape)
        block_bytes += block.T.astype(">i2").tobytes()
        index += [len(packed), len(block_bytes)]
        packed += block_bytes
    write_by_hand(folder, data, packed + np.array(index, "<u8").tobytes(), chain)
    want = stored.copy()
    want[: shape[0], shape[1] - 1 :: shape[1]] = 0
    return want.T.copy() if transposed else want


@pytest.mark.parametrize("transposed", [False, True])
def test_n5_in_shards(tmp_path, transposed):
    data = make((8, 9), "int16")
    want = n5_shard(tmp_path / "a", data, transposed)
    same(ours.read(tmp_path / "a", "int16"), want)
    same(ours.read(tmp_path / "a", "int16", "[::-3, [8, 2]]"), want[::-3, [8, 2]])
    want[1:7, 2:8] = 5
    ours.write(tmp_path / "a", np.full((6, 6), 5, "int16"), "[1:7, 2:8]")
    same(ours.read(tmp_path / "a", "int16"), want)
    ours.write(tmp_path / "a", data)
    same(ours.read(tmp_path / "a", "int16"), data)


def pack_conditional(data, mask, header_bits):
    """Shuffle and Zstd, where bits 0 and 1 of the mask say so; LZ4 for bit 2."""
    import numcodecs
    for i, codec in enumerate((numcodecs.Shuffle(4), numcodecs.Zstd(), numcodecs.LZ4())):
        data = bytes(codec.encode(data)) if mask >> i & 1 else data
    return mask.to_bytes(header_bits // 8, "little") + data


def conditional(**more):
    return dict(name="conditional", configuration=dict(codecs=[
        dict(name="numcodecs.shuffle", configuration=dict(elementsize=4)),
        dict(name="zstd", configuration=dict(level=3, checksum=False)),
        dict(name="numcodecs.lz4", configuration={})], **more))


@pytest.mark.parametrize("header_bits", [None, 8, 24, 128])
@pytest.mark.parametrize("mask", range(8))
def test_conditional(tmp_path, mask, header_bits):
    # No implementation has it: chunks are made here, as the draft of the codec says.
    import google_crc32c
    data = np.arange(30, dtype="int32").reshape(5, 6)
    more = dict(header_bits=header_bits) if header_bits else {}
    packed = pack_conditional(data.T.tobytes(), mask, header_bits or 8)
    packed += google_crc32c.value(packed).to_bytes(4, "little")
    transpose = dict(name="transpose", configuration=dict(order=[1, 0]))
    write_by_hand(tmp_path / "a", data, packed, [transpose, LITTLE, conditional(**more), "crc32c"])
    for text in ("[:, :]", "[::-2, 3]", "[[4, 0], 1:]"):
        same(ours.read(tmp_path / "a", "int32", text), eval(f"data{text}"))
    for part in (rng.integers(-2**31, 2**31, (3, 4), "int32"), np.full((3, 4), 7, "int32")):
        data[1:4, 2:] = part
        ours.write(tmp_path / "a", part, "[1:4, 2:]")
        same(ours.read(tmp_path / "a", "int32"), data)


def test_conditional_keeps_what_is_smaller(tmp_path):
    for data, mask in ((np.zeros((64, 64), "int32"), 0b11),
                       (rng.integers(-2**31, 2**31, (64, 64), "int32"), 0b01)):
        folder = tmp_path / str(mask)
        write_by_hand(folder, data, b"", [LITTLE, conditional()])
        ours.write(folder, data)
        assert (folder / "c/0/0").read_bytes()[0] & 3 == mask
        assert (folder / "c/0/0").stat().st_size <= data.nbytes + 1
        same(ours.read(folder, "int32"), data)


def test_conditional_and_shards(tmp_path):
    data = np.arange(48, dtype="int32").reshape(6, 8)
    packed, index = b"", []
    for n, (i, j) in enumerate(np.ndindex(2, 2)):
        block = pack_conditional(data[i * 3 : i * 3 + 3, j * 4 : j * 4 + 4].tobytes(), 2 * n + 1, 8)
        index += [len(packed), len(block)]
        packed += block
    packed = pack_conditional(packed + np.array(index, "<u8").tobytes(), 2, 16)
    shard = dict(name="sharding_indexed", configuration=dict(
        chunk_shape=[3, 4], index_codecs=[LITTLE], codecs=[LITTLE, conditional()]))
    write_by_hand(tmp_path / "a", data, packed, [shard, conditional(header_bits=16)])
    same(ours.read(tmp_path / "a", "int32"), data)
    ours.write(tmp_path / "a", data[2:5, 2:5] * 9, "[2:5, 2:5]")
    data[2:5, 2:5] *= 9
    same(ours.read(tmp_path / "a", "int32"), data)


def test_conditional_strings(tmp_path):
    raw = b"\2\0\0\0\1\0\0\0a\3\0\0\0\xe2\x82\xac"
    chain = ["vlen-utf8", dict(name="conditional", configuration=dict(codecs=["crc32c", dict(
        name="zstd", configuration=dict(level=1, checksum=False))]))]
    import numcodecs
    for mask in (0, 2):
        write_by_hand(tmp_path / str(mask), np.zeros(2, "int8"), bytes([mask]) + bytes(
            numcodecs.Zstd().encode(raw) if mask else raw), chain)
        document = tmp_path / str(mask) / "zarr.json"
        text = document.read_text().replace('"int8"', '"string"')
        document.write_text(text.replace('"fill_value": 0', '"fill_value": ""'))
        assert ours.read(tmp_path / str(mask), str).tolist() == ["a", "€"]


@pytest.mark.parametrize("packed,message", [
    (b"", "want 1 bytes, have 0"), (b"\x08" + bytes(8), "0x08, it has 3 codecs"),
    (b"\2" + bytes(8), "zstd"), (b"\0" + bytes(7), "decodes to 7 bytes, want 8"),
    (b"\4\xff\xff\xff\xff" + bytes(8), "header says")])
def test_conditional_damaged(tmp_path, packed, message):
    write_by_hand(tmp_path / "a", np.zeros(2, "int32"), packed, [LITTLE, conditional()])
    with pytest.raises(ours.lade.Error, match=message):
        ours.read(tmp_path / "a", "int32")


@pytest.mark.parametrize("configuration,message", [
    (dict(codecs=[]), "want 1 to"), (dict(codecs=["crc32c"], header_bits=12), "multiple of 8"),
    (dict(codecs=["crc32c"] * 9, header_bits=8), "multiple of 8 from 9"),
    (dict(codecs=[LITTLE]), "want one codec from arrays to bytes"),
    (dict(codecs=[dict(name="transpose", configuration=dict(order=[0]))]), "codec of arrays"),
    (dict(codecs=[conditional()]), "a codec of several steps"), (dict(codec=[]), "codec")])
def test_conditional_documents(tmp_path, configuration, message):
    write_by_hand(tmp_path / "a", np.zeros(2, "int32"), b"",
                  [LITTLE, dict(name="conditional", configuration=configuration)])
    with pytest.raises(ours.lade.Error, match=message):
        ours.read(tmp_path / "a", "int32")


def ts_array(folder, driver, metadata, data):
    ts = pytest.importorskip("tensorstore", reason="no wheel of tensorstore for this Python")
    store = ts.open(dict(driver=driver, kvstore=dict(driver="file", path=str(folder)),
                         metadata=metadata), create=True).result()
    store[...] = data
    return np.asarray(store.read().result())


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", ["|b1", "<i2", ">i4", "<f8", ">c8"])
@pytest.mark.parametrize("compressor", [
    None, dict(id="zlib", level=6), dict(id="blosc", cname="zstd", clevel=3, shuffle=2),
    dict(id="zstd", level=3), dict(id="bz2", level=1)])
def test_tensorstore_format_2(tmp_path, dtype, compressor, order):
    data = make((23, 17), dtype)
    ts_array(tmp_path / "a", "zarr", dict(shape=[23, 17], chunks=[10, 6], dtype=dtype, order=order,
                                          compressor=compressor), data)
    same(ours.read(tmp_path / "a", dtype), data)


TENSORSTORE_CHAINS = {
    "shards": [dict(name="sharding_indexed", configuration=dict(
        chunk_shape=[5, 3], codecs=["bytes", dict(name="zstd", configuration=dict(level=2))],
        index_codecs=["bytes", "crc32c"], index_location="start"))],
    "transposed shards": [
        dict(name="transpose", configuration=dict(order=[1, 0])),
        dict(name="sharding_indexed", configuration=dict(
            chunk_shape=[3, 5], codecs=[dict(name="transpose", configuration=dict(order=[1, 0])),
                                        dict(name="bytes", configuration=dict(endian="big"))],
            index_codecs=["bytes", "crc32c"]))],
    "blosc": ["bytes", dict(name="blosc", configuration=dict(cname="lz4", clevel=5,
                                                             shuffle="shuffle"))],
    "crc32c twice": ["bytes", "crc32c", "crc32c"],
}


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "bfloat16"])
@pytest.mark.parametrize("chain", TENSORSTORE_CHAINS)
def test_tensorstore_format_3(tmp_path, dtype, chain):
    codecs_of = json.loads(json.dumps(TENSORSTORE_CHAINS[chain]).replace(
        '"bytes"', '{"name": "bytes", "configuration": {"endian": "little"}}').replace(
        '{"name": {"name": "bytes", "configuration": {"endian": "little"}}', '{"name": "bytes"'))
    data = rng.integers(0, 100, (23, 17))
    if dtype == "bfloat16":
        ml_dtypes = pytest.importorskip("ml_dtypes")
        data = data.astype(ml_dtypes.bfloat16)
    else:
        data = data.astype(dtype)
    ts_array(tmp_path / "a", "zarr3", dict(
        shape=[23, 17], data_type=dtype, codecs=codecs_of, fill_value=0,
        chunk_grid=dict(name="regular", configuration=dict(chunk_shape=[10, 6]))), data)
    got = ours.read(tmp_path / "a", "uint16" if dtype == "bfloat16" else dtype)
    assert got.tobytes() == data.tobytes()


# ---- zarrs ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", ["zstd", "blosc", "gzip", "shards", "nested", "crc32c", "big"])
def test_zarrs(tmp_path, kind):
    pytest.importorskip("zarrs", reason="no wheel of zarrs for this Python")
    options = {
        "zstd": dict(compressors=[codecs.ZstdCodec(level=5, checksum=True)]),
        "blosc": dict(compressors=[codecs.BloscCodec(cname="zstd", shuffle="bitshuffle")]),
        "gzip": dict(compressors=[codecs.GzipCodec()]),
        "crc32c": dict(compressors=[codecs.ZstdCodec(), codecs.Crc32cCodec()]),
        "shards": dict(shards=(12, 20)), "big": dict(serializer=codecs.BytesCodec(endian="big")),
        "nested": dict(chunks=(12, 20), compressors=None, serializer=codecs.ShardingCodec(
            chunk_shape=(6, 10), codecs=[codecs.ShardingCodec(chunk_shape=(3, 5))])),
    }[kind]
    data = make((50, 61), "float32")
    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline",
                          "codec_pipeline.strict": True}):
        array = zarr.create_array(tmp_path / "a", shape=data.shape, dtype="float32",
                                  **{"chunks": (6, 10), **options})
        array[...] = data
    compare(tmp_path / "a", array)


# ---- zarrita -------------------------------------------------------------------------------------

def test_zarrita(tmp_path):
    node = pathlib.Path(os.environ.get("LADE_ZARRITA", ""))
    if not (node / "node_modules/zarrita").exists():
        pytest.skip("no zarrita: npm or the network is missing")
    shutil.copy(pathlib.Path(__file__).with_name("zarrita.mjs"), node)
    subprocess.run(["node", str(node / "zarrita.mjs"), str(tmp_path)], check=True)
    for name, dtype in [("int16", "int16"), ("float64", "float64"), ("zstd", "int32"),
                        ("lz4", "int32"), ("blosc", "float32"), ("transpose", "int32"),
                        ("big", "int32")]:
        want = (np.arange(23 * 17) * 37 % 200 - 100).astype(dtype).reshape(23, 17)
        same(ours.read(tmp_path / name, dtype), want)
        same(ours.read(tmp_path / name, dtype, "[::-4, 3:]"), want[::-4, 3:])
