"""Codec on the host: round trips over algorithms, kinds, types, sizes, destinations.

SPDX-License-Identifier: Apache-2.0
"""

import gzip
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import liblade
from liblade import BitstreamKind, Codec

ALGORITHMS = ["LZ4", "Snappy", "Deflate", "Gzip", "Zstd", "zlib", "Blosc", "lz4f", "copy"]
KINDS = list(BitstreamKind)
TEXT = b"to put a load on board, to take a load off. " * 300


@pytest.fixture(params=ALGORITHMS)
def algorithm(request):
    return request.param


@pytest.fixture(params=KINDS, ids=lambda k: k.name)
def kind(request):
    return request.param


@pytest.mark.parametrize("size", [0, 1, 3, 4095, 4096, 65535, 65536, 65537, 300000])
def test_sizes(algorithm, kind, size):
    codec = Codec(algorithm=algorithm, bitstream_kind=kind)
    data = np.random.default_rng(size).integers(0, 5, size, dtype="u1").tobytes()
    encoded = codec.encode(data)
    assert encoded.dtype == "|u1" and encoded.buffer_size <= codec.get_max_comp_buffer_size(data)
    assert codec.get_uncomp_buffer_size(encoded) == size
    decoded = codec.decode(encoded)
    assert decoded.tobytes() == data and decoded.shape == (size,) and decoded.dtype == "|u1"
    if kind == BitstreamKind.NVCOMP_NATIVE:
        assert Codec().decode(encoded).tobytes() == data


@pytest.mark.parametrize("dtype", ["|i1", "<u2", "<i4", "<f4", "<i8", "<f8", np.dtype("<f2"),
                                   np.float32, np.uint8, "<c8"])
def test_types(dtype, kind):
    codec = Codec(algorithm="Zstd", bitstream_kind=kind)
    x = np.arange(1000).astype(dtype)
    y = codec.decode(codec.encode(x), dtype)
    assert np.asarray(y).dtype == x.dtype and (np.asarray(y) == x).all()
    assert codec.decode(codec.encode(x), data_type=dtype).dtype == x.dtype.str
    with pytest.raises(ValueError, match="3 bytes are no multiple of the element's 4"):
        codec.decode(codec.encode(b"abc"), "<i4")
    for bad in ("<i3", "integer", 5, object):
        with pytest.raises(TypeError):
            codec.decode(codec.encode(x), bad)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_bytes_round_trip(data):
    algorithm = data.draw(st.sampled_from(ALGORITHMS))
    kind = data.draw(st.sampled_from(KINDS))
    items = data.draw(st.lists(st.binary(max_size=3000), max_size=6))
    codec = Codec(algorithm=algorithm, bitstream_kind=kind, uncomp_chunk_size=1024)
    assert [a.tobytes() for a in codec.decode(codec.encode(items))] == items


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400), st.sampled_from(ALGORITHMS), st.sampled_from(KINDS))
def test_any_bytes_decode_or_raise(data, algorithm, kind):
    codec = Codec(algorithm=algorithm, bitstream_kind=kind)
    try:
        codec.decode(data)
    except (liblade.Error, MemoryError):
        pass


def test_lists_and_batches(algorithm, kind):
    codec = Codec(algorithm=algorithm, bitstream_kind=kind)
    items = [TEXT[: i * 37] for i in range(60)] + [bytes(100000)]
    encoded = codec.encode(items)
    assert isinstance(encoded, liblade.BatchArray) and len(encoded) == 61
    for source in (encoded, list(encoded), tuple(a.tobytes() for a in encoded),
                   [np.asarray(a) for a in encoded], liblade.as_arrays(list(encoded))):
        decoded = codec.decode(source)
        assert [a.tobytes() for a in decoded] == items
    assert codec.get_uncomp_buffer_size(encoded) == [len(i) for i in items]
    blob = b"".join(a.tobytes() for a in encoded)
    sizes = np.array(encoded.buffer_sizes, "<u8")
    carved = liblade.as_arrays(blob, np.cumsum(sizes) - sizes, sizes)
    assert [a.tobytes() for a in codec.decode(carved)] == items
    assert len(codec.encode([])) == 0 and len(codec.decode([])) == 0
    again = codec.encode(liblade.as_arrays(items))
    assert again.buffer_sizes == encoded.buffer_sizes
    typed = codec.decode(codec.encode([np.arange(9, dtype="<i4")] * 3), "<i4")
    assert [np.asarray(a).tolist() for a in typed] == [list(range(9))] * 3


def test_out_of_one(algorithm, kind):
    codec = Codec(algorithm=algorithm, bitstream_kind=kind)
    encoded = codec.encode(TEXT)
    for make in (bytearray, lambda n: np.zeros(n, "u1"), lambda n: memoryview(bytearray(n)),
                 lambda n: liblade.as_array(bytearray(n))):
        out = make(len(TEXT))
        got = codec.decode(encoded, out=out)
        assert bytes(out) == TEXT and got.tobytes() == TEXT
        out = make(len(TEXT) + 9)
        got = codec.decode(encoded, out=out)
        assert got.buffer_size == len(TEXT) and bytes(out)[: len(TEXT)] == TEXT
        assert bytes(out)[len(TEXT):] == bytes(9)
        assert codec.decode_into(encoded, make(len(TEXT))) == len(TEXT)
        with pytest.raises(ValueError):
            codec.decode(encoded, out=make(len(TEXT) - 1))
        out = make(codec.get_max_comp_buffer_size(TEXT))
        got = codec.encode(TEXT, out=out)
        assert got.tobytes() == encoded.tobytes()
        assert bytes(out)[: got.buffer_size] == encoded.tobytes()
        assert codec.encode_into(TEXT, out) == encoded.buffer_size
    with pytest.raises(ValueError, match="read-only"):
        codec.decode(encoded, out=bytes(len(TEXT)))
    with pytest.raises(ValueError):
        codec.encode(TEXT, out=bytearray(3))
    with pytest.raises(TypeError):
        codec.decode_into(encoded, None)


def test_out_keeps_type_and_shape(kind):
    codec = Codec(algorithm="LZ4", bitstream_kind=kind)
    x = np.arange(600, dtype="<f4").reshape(20, 30)
    out = np.empty_like(x)
    got = codec.decode(codec.encode(x), out=out)
    assert (out == x).all() and got.shape == x.shape and got.dtype == "<f4"
    assert got.__array_interface__["data"][0] == out.ctypes.data
    assert codec.decode(codec.encode(x), "<i4", out).dtype == "<i4"


def test_our_own_array_grows(algorithm, kind):
    codec = Codec(algorithm=algorithm, bitstream_kind=kind)
    out = codec.encode(b"x")
    assert codec.encode(TEXT, out=out) is out
    assert codec.decode(out).tobytes() == TEXT
    into = codec.decode(codec.encode(b"y"))
    big = bytes(200000)
    assert codec.decode(codec.encode(big), out=into) is into and into.tobytes() == big
    part = into[10:20]
    with pytest.raises(ValueError):
        codec.decode(codec.encode(bytes(300000)), out=into)
    part.tobytes()  # still memory of the array, whatever stands there after the failure
    del part
    view = memoryview(into)
    with pytest.raises(ValueError):
        codec.decode(codec.encode(bytes(300000)), out=into)
    view.release()


def test_source_and_destination_must_be_apart(algorithm, kind):
    codec = Codec(algorithm=algorithm, bitstream_kind=kind)
    a = codec.encode(TEXT)
    before = a.tobytes()
    for call in (lambda: codec.decode(a, out=a), lambda: codec.encode(a, out=a),
                 lambda: codec.decode([a], out=[a]), lambda: codec.decode_into(a, a)):
        with pytest.raises(ValueError, match="overlaps the source"):
            call()
    assert a.tobytes() == before
    room = np.zeros(200000, "u1")
    room[:a.buffer_size] = np.asarray(a)
    sources = liblade.as_arrays(room, [0, 0], [a.buffer_size] * 2)
    for places in ([a.buffer_size // 2, 100000], [150000, a.buffer_size - 1]):
        outs = liblade.as_arrays(room, places, [len(TEXT)] * 2)
        for call in (lambda: codec.decode(sources, out=outs),
                     lambda: codec.decode_into(sources, outs)):
            with pytest.raises(ValueError, match=f"item {places[0] > 1e5:d} overlaps its source"):
                call()
    room = np.zeros(100000, "u1")
    size = codec.encode_into(TEXT, room)
    assert codec.decode_into(room[:size], room[size:]) == len(TEXT)


def test_strided_destinations(algorithm, kind):
    codec = Codec(algorithm=algorithm, bitstream_kind=kind)
    x = np.arange(24 * 10, dtype="<i4").reshape(4, 6, 10)
    encoded = codec.encode(x)
    big = np.full((4, 8, 20), -1, "<i4")
    for view in (big[:, :6, :10], big[:, :6, ::2], big[::-1, 1:7, 5:15], big[:, 1:7, 3:13]):
        big[...] = -1
        mask = np.ones_like(big, bool)
        got = codec.decode(encoded, out=view)
        assert (view == x).all() and np.asarray(got).tolist() == x.tolist()
        view[...] = -1
        assert (big == -1).all() and mask.all()
        assert codec.decode_into(encoded, view) == x.nbytes and (view == x).all()
    many = np.zeros((3, 240, 2), "<i4")
    outs = [many[i, :, 0] for i in range(3)]
    codec.decode([encoded] * 3, out=outs)
    assert all((o == x.ravel()).all() for o in outs) and not many[:, :, 1].any()
    with pytest.raises(ValueError, match="contiguous memory"):
        codec.encode(x, out=np.zeros(10000, "u1")[::2])


def test_strided_sources(algorithm, kind):
    codec = Codec(algorithm=algorithm, bitstream_kind=kind)
    x = np.arange(240, dtype="<i2").reshape(4, 6, 10)
    views = [x[:, ::2], x[:, :, ::3], x.T, x[::-1], x[:, 1:3, 2:9], x[:, :0], x[1:2, :, :5]]
    for v in views:
        assert codec.decode(codec.encode(v)).tobytes() == v.tobytes()
    assert [a.tobytes() for a in codec.decode(codec.encode(views))] == [v.tobytes() for v in views]
    encoded = codec.encode(x).tobytes()
    spread = np.zeros(2 * len(encoded), "u1")
    spread[::2] = np.frombuffer(encoded, "u1")
    assert codec.decode(spread[::2]).tobytes() == x.tobytes()


def test_out_of_lists(algorithm, kind):
    codec = Codec(algorithm=algorithm, bitstream_kind=kind)
    items = [TEXT[: i * 50] for i in range(1, 20)]
    encoded = codec.encode(items)
    outs = [bytearray(len(i) + 5) for i in items]
    got = codec.decode(encoded, out=outs)
    assert [a.tobytes() for a in got] == items
    assert [bytes(o[:-5]) for o in outs] == items
    with pytest.raises(BufferError):
        outs[0].append(1)  # the result looks at it
    del got
    outs[0].append(1)
    assert codec.decode_into(encoded, outs) == [len(i) for i in items]
    block = np.zeros(100000, "u1")
    off = np.arange(19) * 5000
    table = liblade.as_arrays(block, off, np.full(19, 5000))
    got = codec.decode(encoded, out=table)
    assert [a.tobytes() for a in got] == items and got.buffer_sizes == [len(i) for i in items]
    assert block[5000:5100].tobytes() == items[1]
    own = [codec.encode(b"") for _ in items]
    assert [a.tobytes() for a in codec.decode(encoded, out=own)] == items
    own = [codec.encode(b"") for _ in range(3)]
    large = [bytes(300000), b"x", bytes(200000)]
    assert [a.tobytes() for a in codec.decode(codec.encode(large), out=own)] == large
    assert own[2].buffer_size == 200000
    if kind == BitstreamKind.RAW:
        with pytest.raises(ValueError, match="item 1: ") as e:
            codec.decode(codec.encode(large), out=[codec.encode(b""), bytearray(0), bytearray(9)])
        assert e.value.index == 1
    bounds = [codec.get_max_comp_buffer_size(i) for i in items]
    assert bounds == codec.get_max_comp_buffer_size(items)
    again = codec.encode(items, out=[bytearray(b) for b in bounds])
    assert [a.tobytes() for a in again] == [a.tobytes() for a in encoded]
    with pytest.raises(ValueError, match="out has 3 arrays, and there are 19"):
        codec.decode(encoded, out=outs[:3])
    with pytest.raises(TypeError, match="list or a BatchArray"):
        codec.decode(encoded, out=bytearray(9))
    with pytest.raises(ValueError, match="out 1: "):
        codec.decode(encoded, out=[outs[0], b""] + outs[2:])
    with pytest.raises(TypeError, match="item 2: "):
        codec.encode([b"", b"", 3])
    with pytest.raises(ValueError, match="read-only"):
        codec.decode(encoded[:1], out=liblade.as_arrays(bytes(9), [0], [9]))


def test_out_allocates_nothing(kind):
    codec = Codec(algorithm="LZ4", bitstream_kind=kind)
    encoded = codec.encode([TEXT] * 10)
    one, out, outs = encoded[0], bytearray(len(TEXT)), [bytearray(len(TEXT)) for _ in range(10)]
    room = bytearray(codec.get_max_comp_buffer_size(TEXT))
    before = liblade._lade._memory_stats()[2]
    codec.decode(one, out=out)
    codec.decode_into(one, out)
    codec.decode(encoded, out=outs)
    codec.encode(TEXT, out=room)
    assert liblade._lade._memory_stats()[2] == before
    codec.decode(one)
    assert liblade._lade._memory_stats()[2] > before


def test_ranges(algorithm, kind):
    codec = Codec(algorithm=algorithm, bitstream_kind=kind, uncomp_chunk_size=4096)
    x = np.arange(5000, dtype="<i4")
    encoded = codec.encode(x)
    for start, stop in ((0, 1), (0, 20000), (4095, 4097), (12345, 19999), (19999, 20000)):
        want = x.tobytes()[start:stop]
        assert codec.decode(encoded, byte_range=(start, stop)).tobytes() == want
        out = bytearray(stop - start)
        assert codec.decode_into(encoded, out, byte_range=(start, stop)) == stop - start
        assert out == want
    got = codec.decode(encoded, "<i4", element_range=(1000, 1010))
    assert np.asarray(got).tolist() == list(range(1000, 1010))
    assert codec.decode(encoded, byte_range=(100, None)).tobytes() == x.tobytes()[100:]
    got = codec.decode([encoded, encoded], byte_range=(8, 16))
    assert [a.tobytes() for a in got] == [x.tobytes()[8:16]] * 2
    with pytest.raises(ValueError):
        codec.decode(encoded, byte_range=(19999, 20001))
    with pytest.raises(ValueError, match="empty"):
        codec.decode(encoded, byte_range=(5, 5))
    with pytest.raises(TypeError):
        codec.decode(encoded, byte_range=5)
    with pytest.raises(ValueError, match="both"):
        codec.decode(encoded, byte_range=(0, 4), element_range=(1, 2))


def test_configs(algorithm, kind):
    codec = Codec(algorithm=algorithm, bitstream_kind=kind)
    config = codec.compression_config(len(TEXT))
    assert config.uncompressed_buffer_size == len(TEXT)
    assert config.max_compressed_buffer_size == codec.get_max_comp_buffer_size(len(TEXT))
    encoded = codec.encode(TEXT, compression_config=config)
    for back in (codec.decompression_config(config), codec.decompression_config(encoded)):
        assert back.decomp_data_size == len(TEXT) and back.num_chunks == 1
        assert codec.decode(encoded, decompression_config=back).tobytes() == TEXT
    many = codec.compression_config([10, 20])
    batch = codec.encode([TEXT[:10], TEXT[:20]], compression_config=many)
    back = codec.decompression_config(batch)
    assert back.decomp_data_sizes == (10, 20)
    assert codec.decode(batch, decompression_config=back)[1].tobytes() == TEXT[:20]
    with pytest.raises(ValueError, match="the config is for 2 arrays, and there are 1"):
        codec.decode(encoded, decompression_config=back)


def test_a_decompression_config_counts_the_chunks_of_the_frame():
    """They are of the encoder's size, whatever the decoder's is."""
    fine = Codec(algorithm="LZ4", uncomp_chunk_size=1000)
    frame = fine.encode(bytes(65537))
    for codec in (Codec(), Codec(algorithm="LZ4"), Codec(uncomp_chunk_size=1 << 20)):
        for config in (
            codec.decompression_config(frame),
            codec.decompression_config([frame, Codec(algorithm="LZ4").encode(b"1")]),
            codec.decompression_config(fine.compression_config(65537)),
        ):
            assert (config.num_chunks, config.uncomp_chunk_size) == (66, 1000)
            assert config.decomp_data_size == 65537
    assert Codec().decompression_config(fine.encode(b"")).num_chunks == 0
    assert Codec().decompression_config([]).decomp_data_sizes == ()
    with pytest.raises(liblade.CorruptError, match="item 1: ") as e:
        Codec().decompression_config([frame, b"no frame"])
    assert e.value.index == 1
    raw = Codec(algorithm="LZ4", bitstream_kind=2, uncomp_chunk_size=1000)
    assert raw.decompression_config(raw.encode(bytes(2001))).num_chunks == 3


@pytest.mark.parametrize("kind", (2, 3))
def test_a_size_before_the_data_that_nothing_has_is_corrupt(kind):
    codec = Codec(algorithm="Zstd", bitstream_kind=kind)
    good = codec.encode(TEXT)
    for size in (1 << 63, (1 << 64) - 1, (1 << 63) - 1):
        bad = size.to_bytes(8, "little") + good.tobytes()[8:]
        for call in (codec.decode, codec.get_uncomp_buffer_size, codec.decompression_config,
                     lambda b: codec.decode_into(b, bytearray(9)),
                     lambda b: codec.decode([good, b])):  # fmt: skip
            with pytest.raises(liblade.CorruptError, match=f"the data states {size} bytes"):
                call(bad)


def test_foreign_bytes():
    raw = BitstreamKind.RAW
    assert zlib.decompress(Codec(algorithm="zlib", bitstream_kind=raw).encode(TEXT)) == TEXT
    assert gzip.decompress(Codec(algorithm="Gzip", bitstream_kind=raw).encode(TEXT)) == TEXT
    deflated = Codec(algorithm="Deflate", bitstream_kind=raw).encode(TEXT)
    assert zlib.decompress(deflated, -15) == TEXT
    assert Codec(algorithm="gzip", bitstream_kind=raw).decode(gzip.compress(TEXT)).tobytes() == TEXT
    for name, field in (("LZ4", "<I"), ("Zstd", "<Q")):
        for form, at in ((BitstreamKind.WITH_UNCOMPRESSED_SIZE, struct.calcsize(field)),
                         (BitstreamKind.WITH_UNCOMPRESSED_SIZE_16, 16)):
            encoded = Codec(algorithm=name, bitstream_kind=form).encode(TEXT).tobytes()
            assert struct.unpack_from(field, encoded)[0] == len(TEXT)
            bare = Codec(algorithm=name, bitstream_kind=raw).encode(TEXT).tobytes()
            assert encoded[at:] == bare


def test_pipelines():
    x = np.cumsum(np.arange(4000) % 7).astype("<i4")
    plain = Codec(algorithm="Zstd", bitstream_kind=1).encode(x).buffer_size
    codec = Codec(algorithm="Zstd", level=9, filters=["delta(<i4)", "shuffle(4)"], bitstream_kind=1)
    assert codec.pipeline == "delta(<i4)|shuffle(4)|zstd(level=9)"
    assert codec.encode(x).buffer_size < plain
    assert (np.asarray(codec.decode(codec.encode(x), "<i4")) == x).all()
    whole = Codec(algorithm="delta(<i4) | shuffle(4) | zstd(9)")
    assert whole.pipeline == codec.pipeline and not whole.lossy
    assert Codec().decode(whole.encode(x)).tobytes() == x.tobytes()
    for mode, order in ((1, "msb"), (2, "lsb")):
        shuffled = Codec(algorithm="LZ4", data_type="<i4", bitshuffle_mode=mode)
        assert "bitshuffle(4" in shuffled.pipeline
        assert shuffled.decode(shuffled.encode(x)).tobytes() == x.tobytes()
    lossy = Codec(algorithm="LZ4", filters=["bitround(<f4,keepbits=7)"])
    assert lossy.lossy
    assert Codec(algorithm="LZ4", data_type="<u4").pipeline.endswith("elem=4)")


def test_levels_and_types():
    for name in ("LZ4", "Zstd", "Deflate", "gzip", "zlib", "Blosc", "lz4f"):
        assert "9" in Codec(algorithm=name, level=9).pipeline
    sizes = [Codec(algorithm="Deflate", bitstream_kind=1, algorithm_type=t).encode(TEXT * 3)
             .buffer_size for t in range(6)]
    assert sizes == sorted(sizes, reverse=True)


def test_checksums_of_frames():
    data = np.arange(100000, dtype="<i4").tobytes()
    plain = Codec(algorithm="copy").encode(data)
    summed = Codec(algorithm="copy", checksum_policy=liblade.COMPUTE_AND_NO_VERIFY).encode(data)
    bad = bytearray(summed.tobytes())
    bad[1000] ^= 1
    assert Codec().decode(bad).tobytes() != data  # nobody asked
    for policy in (liblade.NO_COMPUTE_AND_VERIFY_IF_PRESENT, liblade.COMPUTE_AND_VERIFY_IF_PRESENT,
                   liblade.COMPUTE_AND_VERIFY):
        codec = Codec(checksum_policy=policy)
        assert codec.decode(summed).tobytes() == data
        for _ in range(2):
            with pytest.raises(liblade.ChecksumError, match="chunk 0"):
                codec.decode(bad)
        if policy != liblade.COMPUTE_AND_VERIFY:
            assert codec.decode(plain).tobytes() == data
    with pytest.raises(liblade.ChecksumError):
        Codec(checksum_policy=liblade.COMPUTE_AND_VERIFY).decode(plain)


def test_checksum_functions():
    assert liblade.checksum("crc32", b"123456789") == 0xCBF43926 == zlib.crc32(b"123456789")
    assert liblade.checksum("CRC32C", b"123456789") == 0xE3069283
    x = np.arange(100)
    assert liblade.checksums("adler32", [x, x[::2], b""]) == [
        zlib.adler32(x), zlib.adler32(x[::2].copy()), 1]
    with pytest.raises(ValueError, match='no checksum "md5"'):
        liblade.checksum("md5", b"")
    names = {a.name for a in liblade.algorithms()}
    assert {"lz4", "zstd", "shuffle", "crc32c", "blosc"} <= names


def test_explain():
    codec = Codec(algorithm="LZ4", filters=["shuffle(4)"], bitstream_kind=1)
    for direction in ("encode", "decode"):
        told = codec.explain(4096, 100, direction=direction)
        assert {c.stage for c in told if c.chosen} == {0, 1}
        assert "lz4/liblz4" in str(told) and "*" in str(told)
    assert codec.explain(codec.encode([TEXT] * 3))[0].place == "host"
    with pytest.raises(ValueError, match="direction"):
        codec.explain(1, direction="up")


def test_threads():
    codec = Codec(algorithm="Zstd", bitstream_kind=1, threads=1)
    assert codec.threads == 1 and Codec(algorithm="LZ4", threads=16).threads == 16
    items = [TEXT] * 50
    wide = Codec(algorithm="Zstd", bitstream_kind=1, threads=16)
    assert [a.tobytes() for a in wide.decode(codec.encode(items))] == items


def test_decode_into_never_resizes(kind):
    codec = Codec(algorithm="LZ4", bitstream_kind=kind)
    out = codec.decode(codec.encode(bytes(5000)))
    address, shape = out.ptr, out.shape
    out = codec.decode(codec.encode(bytes(5000)))
    assert codec.decode_into(codec.encode(TEXT[:4000]), out) == 4000
    assert out.shape == shape and out.tobytes()[:4000] == TEXT[:4000] and address
    with pytest.raises(ValueError):
        codec.decode_into(codec.encode(TEXT), out)
    assert out.shape == shape


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_any_strides_round_trip(data):
    ndim = data.draw(st.integers(1, 4))
    base = np.arange(6**ndim, dtype=data.draw(st.sampled_from(["u1", "<i2", "<f8"])))
    base = base.reshape((6,) * ndim).transpose(data.draw(st.permutations(range(ndim))))
    key = tuple(slice(data.draw(st.none() | st.integers(-7, 7)),
                      data.draw(st.none() | st.integers(-7, 7)),
                      data.draw(st.sampled_from([None, 1, 2, 3, -1, -2]))) for _ in range(ndim))
    view = base[key]
    codec = Codec(algorithm="LZ4", bitstream_kind=data.draw(st.sampled_from(KINDS)))
    encoded = codec.encode(view)
    assert codec.decode(encoded).tobytes() == view.tobytes()
    canvas = np.zeros_like(base)
    mask = np.zeros(base.shape, bool)
    mask[key] = True
    codec.decode(encoded, out=canvas[key])
    assert (canvas[key] == view).all() and not canvas[~mask].any()
    assert (np.asarray(liblade.as_array(base)[key]) == view).all()


def test_zstd_of_long_runs_that_does_not_tell_its_size():
    blocks = 20  # of 128 KiB, four bytes each
    frame = b"\x28\xb5\x2f\xfd\x00\x38"
    for i in range(blocks):
        frame += struct.pack("<I", 131072 << 3 | 1 << 1 | (i == blocks - 1))[:3] + b"x"
    codec = Codec(algorithm="Zstd", bitstream_kind=BitstreamKind.RAW)
    assert bytes(codec.decode(frame)) == b"x" * (blocks << 17)
    assert [bytes(a) for a in codec.decode([frame, frame])] == [b"x" * (blocks << 17)] * 2


@pytest.mark.parametrize("kind", list(liblade.BitstreamKind), ids=lambda k: k.name)
def test_rows_of_an_array_as_destinations(kind):
    codec = Codec(algorithm="LZ4", bitstream_kind=kind)
    x = np.arange(600, dtype="<i2").reshape(6, 10, 10)
    coded = codec.encode(list(x))
    out = np.zeros((6, 10, 10), "<i2")
    assert codec.decode(coded, out=out)[3].buffer_size == 200 and (out == x).all()
    out = np.zeros((12, 10, 10), "<i2")
    assert codec.decode_into(coded, out[::2]) == [200] * 6
    assert (out[::2] == x).all() and not out[1::2].any()
    out = np.zeros((6, 10, 10), "<i2")
    assert codec.decode(coded, out=out.transpose(0, 2, 1))[5].shape == (10, 10)
    assert (out.transpose(0, 2, 1) == x).all()
    for bad, error, text in (
        (out[:5], ValueError, "out has 5 arrays, and there are 6"),
        (out[:6, :5], liblade.InputError, "item 0: "),
        (out[:6, ::2], liblade.InputError, "item 0: "),
        (out[0, 0], TypeError, "a list or a BatchArray is wanted for many arrays, or an array"),
        (bytes(50), TypeError, "a list or a BatchArray"),
        (7, TypeError, "^out: a list or a BatchArray is wanted .* is none"),
    ):
        with pytest.raises(error, match=text):
            codec.decode(coded, out=bad)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        codec.decode(coded, out=x)


@pytest.mark.parametrize("kind", [1, 2, 3])
@pytest.mark.parametrize("algorithm", ["LZ4", "Zstd", "copy"])
def test_too_small_is_told_as_such(kind, algorithm):
    codec = Codec(algorithm=algorithm, bitstream_kind=kind)
    coded = codec.encode(np.arange(1000, dtype="<i4"))
    room = np.zeros((40, 100), "<i4")
    for out in (room[:20, :20], room[::2, :10], room.ravel()[:999], room[:3, :40:2],
                bytearray(3999), room.T[:40, :20]):
        with pytest.raises(liblade.InputError) as e:
            codec.decode(coded, out=out)
        assert e.value.status == "LADE_E_NOSPACE"


def test_python_objects_are_no_bytes():
    codec = Codec(algorithm="LZ4")
    objects = np.array([{}, [], "x"] * 9, dtype=object)
    record = np.zeros(5, dtype=[("a", "<i4"), ("b", object)])
    for bad in (objects, objects[::2], objects.reshape(3, 9), record, record[::2]):
        for call in (lambda x: codec.encode(x), lambda x: codec.encode([b"", x]),
                     lambda x: codec.decode(codec.encode(b"abc" * 300), out=x),
                     lambda x: codec.decode_into([codec.encode(b"abc")], [x]),
                     liblade.as_array, lambda x: liblade.checksum("crc32c", x)):
            with pytest.raises(TypeError, match="Python objects"):
                call(bad)
    assert codec.decode(codec.encode(np.zeros(5, "V4,<i4"))).buffer_size
    # A field may have any name.
    assert codec.encode(np.zeros(5, dtype=[("O", "<i4"), ("O:O", "<i2")]))


def test_numpy_arrays_of_all_shapes():
    codec = Codec(algorithm="copy", bitstream_kind=1)
    for shape in ((), (1,), (0,), (1, 1), (3, 0, 2), (1, 5), (5, 1), (2, 3, 4)):
        for dtype in ("<i4", ">f8", "|b1", "<c16", "M8[s]", "V3", "S5", "<U2", "<f2"):
            x = np.zeros(shape, dtype)
            assert codec.encode(x).buffer_size == x.nbytes
            y = np.asfortranarray(np.ones(shape, dtype))
            assert codec.encode(y).tobytes() == y.tobytes()
            if x.nbytes and not dtype.startswith("M"):
                assert codec.decode_into((bytes(range(256)) * 4)[1 : x.nbytes + 1], x) == x.nbytes
                assert x.tobytes() == (bytes(range(256)) * 4)[1 : x.nbytes + 1]

    class Sub(np.ndarray):
        pass

    assert codec.encode(np.arange(5).view(Sub)).buffer_size == 40


@pytest.mark.parametrize("threads", [0, 1, 7])
def test_many_frames_of_one_call_are_shared_out(threads):
    codec = Codec(algorithm="LZ4", threads=threads, uncomp_chunk_size=20_000)
    rng = np.random.default_rng(threads)
    sizes = [*rng.integers(0, 100_000, 60), 0, 900_000, 1]
    data = [rng.integers(0, 9, n, dtype="u1") for n in sizes]
    batch = codec.encode(data)
    alone = [codec.encode(d).tobytes() for d in data]
    assert [b.tobytes() for b in batch] == alone
    assert all(g.tobytes() == d.tobytes() for g, d in zip(codec.decode(batch), data))
    outs = [np.zeros(n, "u1") for n in sizes]
    assert codec.decode_into(alone, outs) == list(sizes)
    assert all((o == d).all() for o, d in zip(outs, data))
    bad = {int(i) for i in rng.choice(60, 9, replace=False)}
    items = [a[:-3] if i in bad else a for i, a in enumerate(alone)]
    for out in (None, outs):
        with pytest.raises(liblade.CorruptError, match=f"^item {min(bad)}: ") as e:
            codec.decode(items, out=out)
        assert e.value.index == min(bad)
        got = codec.decode(items, out=out, errors="return")
        assert {i for i, g in enumerate(got) if isinstance(g, liblade.Error)} == bad
        assert {g.index for g in got if isinstance(g, liblade.Error)} == bad
        assert all(g.tobytes() == d.tobytes() for i, (g, d) in enumerate(zip(got, data))
                   if i not in bad)  # fmt: skip
    # What is wrong comes out only when chunks are decoded.
    items = [a[:90] + b"\xff" * 9 + a[99:] if i in bad and len(a) > 300 else a
             for i, a in enumerate(alone)]  # fmt: skip
    wrong = [i for i, (a, b) in enumerate(zip(items, alone)) if a != b]
    with pytest.raises(liblade.CorruptError, match=f"^item {wrong[0]}: "):
        codec.decode_into(items, outs)
    with pytest.raises(liblade.InputError, match="^item 3: "):
        codec.encode_into(data, [bytearray(5 if i in (3, 50) else 2_000_000) for i in range(63)])
