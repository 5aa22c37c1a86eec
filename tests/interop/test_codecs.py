# test_codecs.py: liblade's codecs against the reference tools and other libraries, both directions.
# SPDX-License-Identifier: Apache-2.0
import gzip
import random
import subprocess
import zlib

import numpy
import pytest

import lade_ctypes as lade

SEED = 20240607


def _samples():
    rng = numpy.random.default_rng(SEED)
    walk = numpy.cumsum(rng.integers(-50, 50, 60000)).astype("<i4").tobytes()
    words = b" ".join(random.Random(SEED).choices([b"lade", b"cargo", b"of", b"arrays"], k=30000))
    return {
        "empty": b"",
        "one": b"x",
        "walk": walk,
        "words": words,
        "zeros": bytes(300001),
        "noise": rng.bytes(70001),
    }


SAMPLES = _samples()
sample = pytest.mark.parametrize("data", SAMPLES.values(), ids=SAMPLES.keys())


def tool(*command, data):
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


# ---- the command line tools ----------------------------------------------------------------


@sample
@pytest.mark.parametrize("options", [[], ["-1"], ["-19"], ["--fast=5"], ["--no-check"],
                                     ["--long=27"]], ids=str)
def test_zstd_tool_writes(data, options):
    packed = tool("zstd", "-q", "-c", *options, data=data)
    # From a pipe: the content size is not in the frame.
    assert lade.decode("zstd", packed, len(data)) == data


@sample
@pytest.mark.parametrize("spec", ["zstd(-5)", "zstd(1)", "zstd(3,checksum=true)", "zstd(19)",
                                  "zstd(3,window_log=20,long=true)"])
def test_zstd_tool_reads(data, spec):
    packed = lade.encode(spec, data)
    assert tool("zstd", "-q", "-d", "-c", data=packed) == data


@sample
def test_zstd_tool_lists_the_size(data, tmp_path):
    path = tmp_path / "data"
    path.write_bytes(data)
    packed = subprocess.run(["zstd", "-q", "-c", path], capture_output=True, check=True).stdout
    assert lade.decoded_size("zstd", packed) == len(data)
    assert lade.decode("zstd", packed) == data


def test_zstd_tool_dictionary(tmp_path):
    rng = random.Random(SEED)
    records = []
    for _ in range(3000):
        cargo = rng.choice([b"a", b"bb", b"ccc"]) * 3
        records.append(b"{'id': %d, 'cargo': '%s'}" % (rng.randrange(10**6), cargo))
    paths = []
    for i, record in enumerate(records):
        paths.append(tmp_path / f"record{i}")
        paths[-1].write_bytes(record)
    trained = tmp_path / "trained"
    subprocess.run(["zstd", "-q", "--train", *paths, "--maxdict=4096", "-o", trained], check=True,
                   capture_output=True)
    known = trained.read_bytes()
    packed = lade.encode("zstd(3)", records[0], dict=known)
    assert len(packed) < len(lade.encode("zstd(3)", records[0]))
    assert tool("zstd", "-q", "-d", "-c", "-D", str(trained), data=packed) == records[0]
    packed = tool("zstd", "-q", "-c", "-D", str(trained), data=records[1])
    assert lade.decode("zstd", packed, 1000, dict=known) == records[1]
    with pytest.raises(lade.Error) as failure:
        lade.decode("zstd", packed, 1000)
    assert failure.value.status == "LADE_E_DICT"
    with pytest.raises(lade.Error) as failure:
        lade.decode("zstd", packed, 1000, dict=b"another dictionary")
    assert failure.value.status == "LADE_E_DICT"


@sample
@pytest.mark.parametrize("options", [[], ["-9"], ["--fast=3"], ["-B4", "-BD"], ["-B5", "-BX"],
                                     ["--no-frame-crc"], ["-l"]], ids=str)
def test_lz4_tool_writes(data, options):
    packed = tool("lz4", "-q", "-c", *options, data=data)
    assert lade.decode("lz4f", packed, len(data)) == data


@sample
@pytest.mark.parametrize("spec", ["lz4f", "lz4f(9,checksum=true)", "lz4f(-3,content_size=false)",
                                  "lz4f(1,block_size=64k,linked=true,block_checksum=true)"])
def test_lz4_tool_reads(data, spec):
    packed = lade.encode(spec, data)
    assert tool("lz4", "-q", "-d", "-c", data=packed) == data


def test_lz4_tool_dictionary(tmp_path):
    known = random.Random(SEED).randbytes(90000)
    path = tmp_path / "dict"
    path.write_bytes(known)
    data = known[40000:60000] + known[85000:] * 30
    for options in ["-B4", "-BD"], ["-B4", "-BI"]:
        packed = tool("lz4", "-q", "-c", "-9", *options, "-D", str(path), data=data)
        assert lade.decode("lz4f", packed, len(data), dict=known) == data
    for spec in "lz4f(1,block_size=64k)", "lz4f(9,block_size=64k,linked=true)":
        packed = lade.encode(spec, data, dict=known)
        assert tool("lz4", "-q", "-d", "-c", "-D", str(path), data=packed) == data


@sample
@pytest.mark.parametrize("command", [["gzip", "-1"], ["gzip", "-9"], ["pigz", "-p", "2"],
                                     ["pigz", "-11", "-I", "1"]], ids=str)
def test_gzip_tools_write(data, command):
    packed = tool(*command, "-c", data=data)
    assert lade.decode("gzip", packed, len(data)) == data


@sample
@pytest.mark.parametrize("level", [0, 1, 6, 9, 12])
def test_gzip_tools_read(data, level):
    packed = lade.encode(f"gzip({level})", data)
    assert tool("gzip", "-d", "-c", data=packed) == data
    assert tool("pigz", "-d", "-c", data=packed) == data


@sample
def test_pigz_zlib(data):
    assert lade.decode("zlib", tool("pigz", "-z", "-c", data=data), len(data)) == data
    assert tool("pigz", "-d", "-c", data=lade.encode("zlib(6)", data)) == data


def test_concatenation():
    parts = [SAMPLES["walk"], b"", SAMPLES["words"], b"y"]
    whole = b"".join(parts)
    packed = b"".join(tool("gzip", "-c", data=p) for p in parts)
    assert lade.decode("gzip", packed + bytes(1000), len(whole)) == whole
    packed = b"".join(tool("zstd", "-q", "-c", data=p) for p in parts)
    assert lade.decode("zstd", packed, len(whole)) == whole
    packed = b"".join(tool("lz4", "-q", "-c", data=p) for p in parts)
    assert lade.decode("lz4f", packed, len(whole)) == whole
    assert tool("gzip", "-d", "-c", data=b"".join(lade.encode("gzip", p) for p in parts)) == whole
    assert tool("zstd", "-q", "-d", "-c",
                data=b"".join(lade.encode("zstd", p) for p in parts)) == whole


# ---- Python's own --------------------------------------------------------------------------


@sample
@pytest.mark.parametrize("level", [0, 1, 6, 9])
def test_python_zlib(data, level):
    assert lade.decode("zlib", zlib.compress(data, level), len(data)) == data
    assert zlib.decompress(lade.encode(f"zlib({level})", data)) == data
    raw = zlib.compressobj(level, zlib.DEFLATED, -15)
    assert lade.decode("deflate", raw.compress(data) + raw.flush(), len(data)) == data
    assert zlib.decompress(lade.encode(f"deflate({level})", data), -15) == data
    assert lade.decode("gzip", gzip.compress(data, level), len(data)) == data
    assert gzip.decompress(lade.encode(f"gzip({level})", data)) == data


@pytest.mark.parametrize("spec,bits", [("zlib", 15), ("deflate", -15)])
def test_python_zlib_dictionary(spec, bits):
    data, known = SAMPLES["words"], b"cargo of arrays lade " * 30
    with_dict = zlib.compressobj(6, zlib.DEFLATED, bits, zdict=known)
    packed = with_dict.compress(data) + with_dict.flush()
    assert lade.decode(spec, packed, len(data), dict=known) == data
    packed = lade.encode(spec, data, dict=known)
    assert zlib.decompressobj(bits, zdict=known).decompress(packed) == data


def test_python_zlib_small_window():
    data = SAMPLES["words"]
    for bits in 9, 12:
        small = zlib.compressobj(6, zlib.DEFLATED, bits)
        assert lade.decode("zlib", small.compress(data) + small.flush(), len(data)) == data


# ---- other packages ------------------------------------------------------------------------


@sample
def test_numcodecs(data):
    numcodecs = pytest.importorskip("numcodecs")
    # numcodecs refuses to take nothing, or gives None back for it.
    if not data:
        pytest.skip("empty")
    pairs = [
        (numcodecs.Zstd(level=5), "zstd(5)", 0),
        (numcodecs.Zstd(level=1, checksum=True), "zstd(1,checksum=true)", 0),
        (numcodecs.LZ4(), "lz4(1)", 4),
        (numcodecs.Zlib(level=4), "zlib(4)", 0),
        (numcodecs.GZip(level=4), "gzip(4)", 0),
    ]
    for theirs, spec, prefix in pairs:
        # Before an LZ4 block, numcodecs puts the size in 4 bytes.
        packed = bytes(theirs.encode(data))
        assert lade.decode(spec, packed[prefix:], len(data)) == data
        ours = len(data).to_bytes(4, "little")[:prefix] + lade.encode(spec, data)
        assert bytes(theirs.decode(ours)) == data


@sample
def test_cramjam(data):
    cramjam = pytest.importorskip("cramjam")
    pairs = [
        (cramjam.snappy.compress_raw, cramjam.snappy.decompress_raw, "snappy"),
        (cramjam.zstd.compress, cramjam.zstd.decompress, "zstd"),
        (cramjam.gzip.compress, cramjam.gzip.decompress, "gzip"),
        (cramjam.zlib.compress, cramjam.zlib.decompress, "zlib"),
        (cramjam.deflate.compress, cramjam.deflate.decompress, "deflate"),
        (cramjam.lz4.compress, cramjam.lz4.decompress, "lz4f"),
    ]
    for compress, decompress, spec in pairs:
        assert lade.decode(spec, bytes(compress(data)), len(data)) == data, spec
        assert bytes(decompress(lade.encode(spec, data))) == data, spec


@sample
def test_snappy_package(data):
    snappy = pytest.importorskip("snappy")
    assert lade.decode("snappy", snappy.compress(data)) == data
    assert snappy.uncompress(lade.encode("snappy", data)) == data


@sample
def test_lz4_package(data):
    block = pytest.importorskip("lz4.block")
    frame = pytest.importorskip("lz4.frame")
    for level in -4, 1, 3, 9, 12:
        packed = lade.encode(f"lz4({level})", data)
        assert block.decompress(packed, uncompressed_size=max(len(data), 1)) == data
        packed = lade.encode(f"lz4f({level},checksum=true)", data)
        assert frame.decompress(packed) == data
    packed = block.compress(data, mode="high_compression", compression=9, store_size=False)
    assert lade.decode("lz4", packed, len(data)) == data
    for linked in False, True:
        packed = frame.compress(data, block_linked=linked, block_checksum=True,
                                content_checksum=True, store_size=False,
                                block_size=frame.BLOCKSIZE_MAX64KB)
        assert lade.decode("lz4f", packed, len(data)) == data


@sample
def test_zstandard_package(data):
    zstandard = pytest.importorskip("zstandard")
    for kwargs in {}, {"write_content_size": False}, {"write_checksum": True}:
        packed = zstandard.ZstdCompressor(level=7, **kwargs).compress(data)
        assert lade.decode("zstd", packed, len(data)) == data
    assert zstandard.ZstdDecompressor().decompress(lade.encode("zstd(7)", data)) == data
    known = zstandard.ZstdCompressionDict(b"lade cargo of arrays" * 20,
                                          dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    packed = zstandard.ZstdCompressor(dict_data=known).compress(data)
    assert lade.decode("zstd", packed, len(data), dict=known.as_bytes()) == data
    packed = lade.encode("zstd(3)", data, dict=known.as_bytes())
    assert zstandard.ZstdDecompressor(dict_data=known).decompress(packed) == data
