"""arrays.py: writes arrays.txt: small arrays as zarr-python 3.4.2 and tensorstore 0.1.86 store
them.

Each line: a name, "v2" or "v3", the document, the chunks as key=bytes with spaces between them, and
the elements in C order, little-endian; tabs between.  Bytes are in hexadecimal digits.  Run it with
zarr 3.4.2, tensorstore and cast-value-rs: python3 arrays.py >arrays.txt

SPDX-License-Identifier: Apache-2.0
"""
import json
import pathlib
import sys
import tempfile
import warnings

import numcodecs
import numpy as np
import zarr
import zarr.codecs as codecs
import zarr.codecs.numcodecs as wrapped

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "interop"))
import test_zarr  # noqa: E402

warnings.simplefilter("ignore")
zarr.config.set({"array.rectilinear_chunks": True})
root = pathlib.Path(tempfile.mkdtemp())
numbers = (np.arange(30, dtype="<i4").reshape(5, 6) * 37) % 11


DOCUMENTS = ("zarr.json", ".zarray", ".zattrs", "attributes.json")


def line(name, folder, zarr_format, data):
    document = folder / ("zarr.json" if zarr_format == 3 else ".zarray")
    chunks = [f"{p.relative_to(folder).as_posix()}={p.read_bytes().hex()}"
              for p in sorted(folder.rglob("*"))
              if p.is_file() and p.name not in DOCUMENTS]
    text = json.dumps(json.loads(document.read_text()), separators=(",", ":"))
    little = np.ascontiguousarray(data).astype(data.dtype.newbyteorder("<"))
    print(f"{name}\tv{zarr_format}\t{text}\t{' '.join(chunks)}\t{little.tobytes().hex()}")


def array(name, data=numbers, zarr_format=3, **options):
    folder = root / name.replace(" ", "_")
    options = {"chunks": (3, 4)[: data.ndim], "compressors": None, **options}
    made = zarr.create_array(folder, shape=data.shape, dtype=data.dtype, zarr_format=zarr_format,
                             **options)
    made[...] = data
    line(name, folder, zarr_format, made[...])


array("plain")
array("missing chunks", np.where(np.arange(6) < 4, 5, numbers), fill_value=5)
array("zstd", compressors=[codecs.ZstdCodec(level=3, checksum=True)])
array("gzip crc32c", compressors=[codecs.GzipCodec(level=5), codecs.Crc32cCodec()])
for cname in ("blosclz", "lz4", "zlib", "zstd"):
    array(f"blosc {cname}", np.arange(300, dtype="<u2").reshape(20, 15), chunks=(20, 15),
          compressors=[codecs.BloscCodec(cname=cname, shuffle="bitshuffle")])
array("transposed", np.arange(24, dtype="<i2").reshape(2, 3, 4), chunks=(2, 2, 4),
      filters=[codecs.TransposeCodec(order=(2, 0, 1))])
array("big-endian", serializer=codecs.BytesCodec(endian="big"))
array("shards", chunks=(2, 3), shards=(4, 6), compressors=[codecs.ZstdCodec()])
array("nested shards", chunks=(4, 6), serializer=codecs.ShardingCodec(
    chunk_shape=(2, 3), index_location="start",
    codecs=[codecs.ShardingCodec(chunk_shape=(1, 3))]))
array("rectilinear", chunks=[[1, 2, 2], [2, 4]])
array("no axes", np.array(2.5), chunks=())
array("bool", numbers > 4)
array("complex", (numbers + 1j).astype("<c8"))
array("datetime", (numbers * 10**9).astype("M8[ns]"))
array("struct", np.array([(1, 2.5), (3, np.inf)] * 3, [("a", "<i2"), ("b", "<f8")]), chunks=(4,))
array("utf-32", np.array(["a", "日本", "", "Zürich"] * 2), chunks=(5,))
for name, options in [("BZ2", {}), ("LZMA", {}), ("LZMA", dict(format=2)),
                      ("LZMA", dict(format=3, filters=[{"id": 3, "dist": 4}, {"id": 33}])),
                      ("LZ4", {}), ("Zlib", {}), ("Shuffle", dict(elementsize=4)), ("CRC32", {}),
                      ("Adler32", {}), ("Fletcher32", {}), ("JenkinsLookup3", dict(initval=7))]:
    array(f"numcodecs {name} {options.get('format', '')}".strip(),
          compressors=[getattr(wrapped, name)(**options)])
array("delta", filters=[wrapped.Delta(dtype="<i4", astype="<i2")])
array("fixed scale offset", numbers / 4, filters=[wrapped.FixedScaleOffset(
    offset=1, scale=4, dtype="<f8", astype="|u1")])
array("scale offset", (numbers / 4).astype("<f4"), filters=[codecs.ScaleOffset(offset=1, scale=4)])
array("cast", np.where(numbers == 3, np.nan, numbers / 4), filters=[codecs.CastValue(
    data_type="int8", rounding="nearest-away", out_of_range="clamp",
    scalar_map=dict(encode=[("NaN", -7)], decode=[(-7, "NaN")]))])
array("format 2", zarr_format=2, order="F", compressors=numcodecs.Zstd())
array("format 2 big-endian", numbers.astype(">f4"), zarr_format=2)
array("format 2 struct", np.array([(1, 2.5), (3, np.inf)] * 3, [("a", ">i2"), ("b", "<f8")]),
      zarr_format=2, chunks=(4,))
array("format 2 filters", zarr_format=2, compressors=numcodecs.LZ4(),
      filters=[numcodecs.Delta(dtype="<i4"), numcodecs.Shuffle(4)])
array("format 2 packbits", numbers > 4, zarr_format=2, filters=[numcodecs.PackBits()])
for name, cut in (("raw", True), ("gzip", False)):
    test_zarr.n5_array(root / f"n5{name}", numbers, (3, 4), dict(type=name), cut)
    line(f"N5 {name}", root / f"n5{name}", 3, numbers)
array("shards with a transposed index", chunks=(4, 6), serializer=codecs.ShardingCodec(
    chunk_shape=(2, 3), index_codecs=[codecs.TransposeCodec(order=(2, 1, 0)),
                                      codecs.BytesCodec(endian="big"), codecs.Crc32cCodec()]))
array("filters before a shard", numbers / 4, chunks=(4, 6), filters=[
    codecs.ScaleOffset(offset=1, scale=4), codecs.CastValue(data_type="int16")],
      serializer=codecs.ShardingCodec(chunk_shape=(2, 3), codecs=[
          codecs.BytesCodec(endian="big"), codecs.ZstdCodec()]))
array("format 2 big-endian filters", numbers.astype(">i4"), zarr_format=2, order="F", filters=[
    numcodecs.FixedScaleOffset(0, 10, ">i4", ">i8"), numcodecs.AsType("<i4", ">i8"),
    numcodecs.Delta("<i4", ">i2")])
array("LZ4 behind Zstd", compressors=[codecs.ZstdCodec(), wrapped.LZ4()])
small = np.arange(72, dtype="<i2").reshape(8, 9)
line("N5 in shards", root / "n5shard", 3, test_zarr.n5_shard(root / "n5shard", small, True))
for mask in (1, 6):
    packed = test_zarr.pack_conditional(numbers.tobytes(), mask, 16)
    test_zarr.write_by_hand(root / f"c{mask}", numbers, packed, [
        test_zarr.LITTLE, test_zarr.conditional(header_bits=16)])
    line(f"conditional {mask}", root / f"c{mask}", 3, numbers)
