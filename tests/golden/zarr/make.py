"""make.py: writes verdicts.txt, the verdicts of zarr-python 3.4.2 on metadata documents.

Each line: "v2" or "v3", "good" or "bad", and the document (an array's), tab between them.  It takes
documents of zarr-python's own making, and changes one value at a time.  Run it with zarr 3.4.2:
python3 make.py >verdicts.txt

SPDX-License-Identifier: Apache-2.0
"""
import copy
import json
import warnings

import numpy as np
import zarr
from zarr.core.metadata.v2 import ArrayV2Metadata
from zarr.core.metadata.v3 import ArrayV3Metadata

warnings.simplefilter("ignore")
zarr.config.set({"array.rectilinear_chunks": True})
assert zarr.__version__ == "3.4.2"
lines = set()


def written(zarr_format, **options):
    """The document that zarr-python writes."""
    store = {}
    array = zarr.create_array(zarr.storage.MemoryStore(store), zarr_format=zarr_format, **options)
    return json.loads(store["zarr.json" if zarr_format == 3 else ".zarray"].to_bytes())


def say(zarr_format, document):
    try:
        (ArrayV3Metadata if zarr_format == 3 else ArrayV2Metadata).from_dict(
            copy.deepcopy(document))
        verdict = "good"
    except Exception:
        verdict = "bad"
    lines.add(f"v{zarr_format}\t{verdict}\t{json.dumps(document)}")


def places(value, at=()):
    """The paths of all values in a document."""
    yield at
    for key, child in (value.items() if isinstance(value, dict) else
                       enumerate(value) if isinstance(value, list) else ()):
        yield from places(child, at + (key,))


def changed(document, at, value, drop=False):
    document = copy.deepcopy(document)
    parent = document
    for key in at[:-1]:
        parent = parent[key]
    if drop:
        del parent[at[-1]]
    else:
        parent[at[-1]] = value
    return document


VALUES = [None, True, 0, -1, 1, 4.0, 2.5, "x", "C", [], {}, [1], 2**63, 2**64]
blosc = zarr.codecs.BloscCodec(cname="lz4", shuffle="bitshuffle")
BASES = [
    (3, dict(shape=(10, 6), chunks=(4, 3), dtype="<f4", compressors=[zarr.codecs.ZstdCodec()])),
    (3, dict(shape=(8, 8), chunks=(2, 2), shards=(4, 4), dtype="uint16", compressors=[blosc],
             dimension_names=["y", None])),
    (3, dict(shape=(5,), chunks=(5,), dtype=str)),
    (3, dict(shape=(), chunks=(), dtype="complex64", attributes={"a": 1})),
    (3, dict(shape=(4,), chunks=(2,), dtype="M8[ns]")),
    (3, dict(shape=(3, 4, 5), chunks=(1, 2, 5), dtype=">i8",
             filters=[zarr.codecs.TransposeCodec(order=(2, 0, 1))],
             compressors=[zarr.codecs.GzipCodec(level=1), zarr.codecs.Crc32cCodec()])),
    (3, dict(shape=(4,), chunks=(2,), dtype=np.dtype([("a", "<i2"), ("b", "<f8")]))),
    (3, dict(shape=(10, 10), chunks=[[4, 6], [5, 5]], dtype="bool")),
    (2, dict(shape=(10, 6), chunks=(4, 3), dtype="<f4", order="F")),
    (2, dict(shape=(4,), chunks=(2,), dtype="S3", compressors=None)),
    (2, dict(shape=(4,), chunks=(2,), dtype=np.dtype([("a", ">i2"), ("b", "<f8")]))),
    (2, dict(shape=(4,), chunks=(2,), dtype=str)),
]
for zarr_format, options in BASES:
    document = written(zarr_format, **options)
    say(zarr_format, document)
    for at in places(document):
        if not at:
            continue
        say(zarr_format, changed(document, at, None, drop=True))
        for value in VALUES:
            say(zarr_format, changed(document, at, value))
        if isinstance(at[-1], str):
            say(zarr_format, changed(document, at[:-1] + ("unknown",), 1))
    fills = ["NaN", "Infinity", "-Infinity", "0x7fc00001", "0x01", "YQ==", "!", "NaT", 1e400,
             127, 255, 256, 32768, -32768, [1, 2], ["NaN", 0], "1.5", "7"]
    for fill in fills:
        say(zarr_format, changed(document, ("fill_value",), fill))
v2 = written(2, shape=(4,), chunks=(2,), dtype="<i4")
for codec in [{"id": "zlib", "level": 1}, {"id": "lz4", "acceleration": 1},
              {"id": "bz2", "level": 1},
              {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": -1, "blocksize": 0},
              {"id": "gzip", "level": 9}, {"id": "pickle"}, {"id": "no_such"}, {"id": "crc32"},
              {"id": "zstd", "level": 3, "x": 1}, {"level": 1}, "zlib", 1]:
    say(2, changed(v2, ("compressor",), codec))
    say(2, changed(v2, ("filters",), [codec]))
for filters in [[{"id": "delta", "dtype": "<i4"}], [{"id": "shuffle", "elementsize": 4}],
                [{"id": "fixedscaleoffset", "scale": 10, "offset": 1, "dtype": "<i4",
                  "astype": "u1"}],
                [{"id": "quantize", "digits": 2, "dtype": "<f8"}],
                [{"id": "bitround", "keepbits": 3}], [{"id": "packbits"}],
                [{"id": "astype", "encode_dtype": "<i2", "decode_dtype": "<i4"}],
                [{"id": "delta"}], [{"id": "quantize"}]]:
    say(2, changed(v2, ("filters",), filters))
for dtype in ["|f4", "<u1", ">i1", "<V4", "f4", "|S2", "<S2", "<U3", "|U3", "<M8[ns]", "<M8",
              "<M8[25us]", "<M8[0s]", "|V0", "<c16", "|b1", "<b1", "<f2", "<f16", "|O",
              [["a", "<i4"]], [],
              [["a", "<i4", [2]]], [["a", [["b", "|u1"]]]]]:
    say(2, changed(changed(v2, ("dtype",), dtype), ("fill_value",), None))
print("\n".join(sorted(lines)))
