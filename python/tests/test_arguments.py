"""Arguments that cannot be are refused under their names; what may be given in several ways may.

SPDX-License-Identifier: Apache-2.0
"""

import array
import contextlib
import copy
import dataclasses
import gc
import gzip
import io
import pickle
import re
import struct
import weakref
import zlib

import numpy as np
import pytest

import liblade
from liblade import Codec, as_array, as_arrays

class BadLength(list):
    def __len__(self):
        raise RuntimeError("no length")


X = np.arange(1000, dtype="<i4")
LZ4 = Codec(algorithm="LZ4", bitstream_kind=1)


@pytest.mark.parametrize("ptr, error", [
    (-1, ValueError), (2**64, ValueError), (1.5, TypeError), ("x", TypeError), (None, TypeError),
])  # fmt: skip
def test_addresses(ptr, error):
    class Memory:
        def __init__(self, size, stream):
            self.ptr = ptr

    encoded = LZ4.encode(X)
    liblade.set_host_allocator(Memory)
    try:
        with pytest.raises(error, match="the allocator's ptr is"):
            LZ4.decode(encoded)
    finally:
        liblade.set_host_allocator(None)
    for name in ("__array_interface__", "__cuda_array_interface__"):
        bad = type("bad", (), {name: {**X.__array_interface__, "data": (ptr, False)}})()
        with pytest.raises(error, match="array interface: the address is"):
            as_array(bad)
    if not isinstance(ptr, str) and ptr is not None:
        with pytest.raises(error, match="cuda_stream"):
            as_array(X, cuda_stream=type("s", (), {"ptr": ptr})())


@pytest.mark.parametrize("typestr, error, match", [
    ("zz", ValueError, "'zz' is not known"), ("", ValueError, "'' is not known"),
    (None, TypeError, "None is not known"), (5, TypeError, "5 is not known"),
])  # fmt: skip
def test_typestr(typestr, error, match):
    bad = type("bad", (), {"__array_interface__": {**X.__array_interface__, "typestr": typestr}})()
    with pytest.raises(error, match=match):
        as_array(bad)


@pytest.mark.parametrize("where", [None, 5, (1,), (1, "x")])
def test_dlpack_device(where):
    class Bad:
        def __dlpack__(self, **kwargs):
            return X.__dlpack__()

        def __dlpack_device__(self):
            return where

    with pytest.raises(TypeError, match="__dlpack_device__\\(\\) gave"):
        liblade.from_dlpack(Bad())


CLAIMS = [("LZ4", "<I", 2**32 - 1), ("Zstd", "<Q", 2**35), ("Deflate", "<Q", 2**35),
          ("zlib", "<Q", 2**30), ("Gzip", "<Q", 2**62), ("Snappy", "<Q", 2**35),
          ("bitshuffle(4)|lz4|crc32c", "<Q", 2**60), ("delta(<i4)|zstd", "<Q", 2**40)]  # fmt: skip


@pytest.mark.parametrize("algorithm, form, claim", CLAIMS)
@pytest.mark.parametrize("many", [False, True])
def test_claims_are_looked_at_before_memory_is_taken(algorithm, form, claim, many):
    codec = Codec(algorithm=algorithm, bitstream_kind=2)
    good = codec.encode(X).tobytes()
    cut = struct.calcsize(form)
    for bytes_ in (b"\0" * 20, good[cut:]):
        bad = struct.pack(form, claim) + bytes_
        with pytest.raises(liblade.CorruptError, match=f"states {claim} bytes.* [0-9]+") as e:
            codec.decode([good, bad] if many else bad)
        assert e.value.index == (1 if many else None)
    got = codec.decode([good, bad, good], errors="return")
    assert got[0].tobytes() == got[2].tobytes() == X.tobytes()
    assert isinstance(got[1], liblade.CorruptError)


def test_true_claims_are_believed():
    for algorithm in ("LZ4", "Zstd", "Deflate", "zlib", "Gzip", "Snappy", "Cascaded", "ANS"):
        codec = Codec(algorithm=algorithm, bitstream_kind=2)
        data = bytes(8 << 20)
        assert codec.decode(codec.encode(data)).tobytes() == data
    codec = Codec(algorithm="zlib", bitstream_kind=2)
    data = bytes(8 << 20)
    small = struct.pack("<Q", len(data)) + zlib.compress(data, 9)
    assert codec.decode(small).tobytes() == data


def test_keywords_of_nvcomp_6():
    batch = as_arrays(buffer=X, offsets=[0, 8], sizes=[4, 8])
    assert [a.buffer_size for a in batch] == [4, 8]
    for bad in ({}, {"buffer": X}, {"buffer": X, "offsets": [0]}):
        with pytest.raises(TypeError, match="as_arrays"):
            as_arrays(**bad)
    with pytest.raises(TypeError, match="sources or buffer, not both"):
        as_arrays(X, [0], [4], buffer=X)
    assert LZ4.get_max_comp_buffer_size(source=X) == LZ4.get_max_comp_buffer_size(4000)
    assert LZ4.get_uncomp_buffer_size(source=LZ4.encode(X)) == 4000
    assert LZ4.compression_config(np.int64(5)).uncompressed_buffer_size == 5
    assert LZ4.compression_config(np.array([5, 6])).uncompressed_buffer_sizes == (5, 6)
    for bad in ("12", b"12", 5.5, [5.5], ["5"], None):
        with pytest.raises(TypeError):
            LZ4.compression_config(bad)


def test_configs_that_are_no_configs():
    encoded = LZ4.encode(X)
    with pytest.raises(TypeError, match="decompression_config: 5 is no config"):
        LZ4.decode(encoded, decompression_config=5)
    for kind, size in ((0, 3996), (1, 3996), (1, 4004), (1, 100_000), (2, 3996), (2, 4004)):
        codec = Codec(algorithm="LZ4", bitstream_kind=kind)
        encoded = codec.encode(X)
        config = codec.decompression_config(codec.compression_config(size))
        with pytest.raises(liblade.InputError, match=f"config: {size} bytes, and the data has"):
            codec.decode(encoded, decompression_config=config)
        with pytest.raises(liblade.InputError, match=f"{size} bytes, and the data has 4000"):
            codec.decode(encoded, out=bytearray(4000), decompression_config=config)
        config = codec.decompression_config(codec.compression_config([4000, size]))
        with pytest.raises(liblade.InputError, match=f"item 1: .*config: {size}"):
            codec.decode([encoded, encoded], decompression_config=config)
        got = codec.decode([encoded] * 2, decompression_config=config, errors="return")
        assert got[0].tobytes() == X.tobytes() and isinstance(got[1], liblade.InputError)


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_ranges_whose_bytes_pass_64_bits(kind):
    codec = Codec(algorithm="LZ4", bitstream_kind=kind)
    encoded = codec.encode(X)
    for start, stop in ((0, 2**62), (0, 2**62 + 1), (10, 2**62 + 11), (0, 2**63 - 1),
                        (2**61, None)):
        with pytest.raises(ValueError, match=f"element_range: {start} to .* too large"):
            codec.decode(encoded, "<i4", element_range=(start, stop))


@pytest.mark.parametrize("given, error, match", [
    ((-5, 10), ValueError, "byte_range: -5 is below 0"),
    ((0, 2**70), ValueError, f"byte_range: {2**70} is below 0 or too large"),
    ((0.5, 2), TypeError, "byte_range: 0.5 is no integer"),
    ((None, 2), TypeError, "byte_range: None is no integer"),
])  # fmt: skip
def test_ranges(given, error, match):
    encoded = LZ4.encode(X)
    with pytest.raises(error, match=match):
        LZ4.decode(encoded, byte_range=given)
    with pytest.raises(error, match=match):
        LZ4.decode_into(encoded, bytearray(4000), byte_range=given)
    with pytest.raises(ValueError, match="both"):
        LZ4.decode(encoded, byte_range=(0, None), element_range=(0, 1))
    part = LZ4.decode(encoded, byte_range=(np.int64(4), np.uint8(12)))
    assert part.tobytes() == X.tobytes()[4:12]


def test_a_config_is_read_once():
    """Of many sizes the numbers stay with the config, as long as it has these sizes."""
    encoded = [LZ4.encode(X)] * 9
    config = LZ4.decompression_config(LZ4.compression_config([4000] * 9))
    for _ in range(2):
        assert LZ4.decode(encoded, decompression_config=config).buffer_sizes == [4000] * 9
    kept = config._numbers
    assert kept[0] is config.decomp_data_sizes
    numbers = array.array("Q", kept[1])
    assert numbers.tolist() == [4000] * 9
    numbers[3] = 5  # they are what the next call reads
    object.__setattr__(config, "_numbers", (kept[0], numbers.tobytes()))
    with pytest.raises(liblade.InputError, match="item 3: .*config: 5 bytes"):
        LZ4.decode(encoded, decompression_config=config)
    config = dataclasses.replace(config, decomp_data_sizes=(4000,) * 9)
    assert not hasattr(config, "_numbers")
    assert LZ4.decode(encoded, decompression_config=config).buffer_sizes == [4000] * 9
    # What is not of these sizes is not read.
    for wrong in (5, (), (1, 2), (kept[0], b"abc"), (kept[0], None), ((4000,) * 9, kept[1])):
        object.__setattr__(config, "_numbers", wrong)
        assert LZ4.decode(encoded, decompression_config=config).buffer_sizes == [4000] * 9
    for again in (copy.copy(config), copy.deepcopy(config), pickle.loads(pickle.dumps(config))):
        assert again == config
        assert LZ4.decode(encoded, decompression_config=again).buffer_sizes == [4000] * 9
    bad = LZ4.compression_config([4000] * 8 + [3999])
    for _ in range(2):
        with pytest.raises(liblade.InputError, match="item 8: .*config: 3999"):
            LZ4.decode(encoded, decompression_config=LZ4.decompression_config(bad))
        with pytest.raises(ValueError, match="item 8: .*compression_config: 3999 bytes"):
            LZ4.encode([X] * 9, compression_config=bad)


def test_sizes():
    for bad in (-1, 2**64):
        for call in (LZ4.get_max_comp_buffer_size, LZ4.compression_config):
            with pytest.raises(ValueError, match=f"an array cannot have {bad} bytes"):
                call(bad)
    want = LZ4.get_max_comp_buffer_size(4000)
    assert LZ4.get_max_comp_buffer_size(np.int32(4000)) == want
    assert LZ4.get_max_comp_buffer_size(np.array(4000)) == LZ4.get_max_comp_buffer_size(8)
    codec = Codec(algorithm="LZ4")
    with pytest.raises(liblade.CorruptError, match=r"item 1: not a \.lade frame") as e:
        codec.get_uncomp_buffer_size([codec.encode(X), b"no"])
    assert (e.value.index, e.value.status) == (1, "LADE_E_CORRUPT")
    with pytest.raises(TypeError, match="item 1: .*no memory to share"):
        codec.decompression_config([codec.encode(X), 5])


@pytest.mark.parametrize("source, kwargs, match", [
    ([], {}, "source is an empty list"), (-1, {}, "source is -1, it can be from 0"),
    (2**80, {}, f"source is {2**80}"), (9, {"count": 0}, "count is 0, it can be from 1 to"),
    (9, {"count": -1}, "count is -1"), (9, {"device_id": -1}, "device_id is -1"),
    (9, {"device_id": 2**31}, "device_id is 2147483648"), (9, {"direction": "up"}, "is 'up'"),
])  # fmt: skip
def test_explain(source, kwargs, match):
    with pytest.raises(ValueError, match=match):
        LZ4.explain(source, **kwargs)
    assert LZ4.explain(np.int64(2**20)) == LZ4.explain(2**20) != LZ4.explain(8)


@pytest.mark.parametrize("kwargs, error, match", [
    ({"level": 3.5}, TypeError, "level is 3.5, an integer"),
    ({"level": True}, TypeError, "level is True"),
    ({"algorithm": "Cascaded", "num_rles": 1.7}, TypeError, "num_rles is 1.7"),
    ({"uncomp_chunk_size": "65536"}, TypeError, "uncomp_chunk_size is '65536'"),
    ({"uncomp_chunk_size": 2**70}, ValueError, "uncomp_chunk_size is"),
    ({"threads": None}, TypeError, "threads is None"),
    ({"device_id": -5}, ValueError, "device_id is -5"),
    ({"device_id": 1.5}, TypeError, "device_id is 1.5"),
    ({"algorithm": "Bitcomp", "mode": 5}, ValueError, "mode is 5, it can be 0"),
    ({"cuda_stream": "x"}, TypeError, "cuda_stream: 'x'"),
    ({"cuda_stream": -1}, ValueError, "cuda_stream is -1"),
    ({"algorithm": "Zstd", "data_type": "<i4"}, ValueError, "data_type is an option of .*Zstd"),
    ({"algorithm": "", "data_type": "<i4"}, ValueError, "data_type"),
    ({"algorithm": "shuffle(4)|zstd", "data_type": "<i4"}, ValueError, "data_type"),
    ({"algorithm": "ANS", "data_type": object}, TypeError, "data_type"),
])  # fmt: skip
def test_codec(kwargs, error, match):
    with pytest.raises(error, match=match):
        Codec(**{"algorithm": "LZ4", **kwargs})


def test_data_types():
    want = Codec(algorithm="ANS", data_type="<f4").pipeline
    for given in (np.float32, np.dtype("f4"), "<f4"):
        assert Codec(algorithm="ANS", data_type=given).pipeline == want
    for algorithm in ("ANS", "Zstd", "LZ4", ""):
        plain = Codec(algorithm=algorithm).pipeline
        assert Codec(algorithm=algorithm, data_type="").pipeline == plain
    assert "bitshuffle(4" in Codec(algorithm="Zstd", data_type="<i4", bitshuffle_mode=1).pipeline
    assert Codec(algorithm="LZ4", level=np.int64(3)).pipeline == "lz4(level=3)"
    for given, want in ((float, "<f8"), ("float", "<f8"), ("half", "<f2"),
                        ("double", "<f8"), (int, "<i8"), (complex, "<c16"),
                        (bool, "|b1"), (np.complex64, "<c8")):
        assert LZ4.decode(LZ4.encode(np.zeros(4, "<c16")), given).dtype == want
    assert Codec(algorithm="ANS", data_type=float).pipeline == "ans(dtype=<f8)"


def test_iteration():
    a = as_array(X[:6].reshape(2, 3))
    assert [np.asarray(row).tolist() for row in a] == [[0, 1, 2], [3, 4, 5]]
    assert [int(np.asarray(one)) for one in a[1]] == [3, 4, 5]
    with pytest.raises(TypeError, match="without dimensions"):
        iter(a[0, 0])


def test_weak_references_to_batches():
    batch = as_arrays([X, X])
    ref = weakref.ref(batch)
    assert ref() is batch
    del batch
    gc.collect()
    assert ref() is None


@pytest.mark.parametrize("seed", range(4))
def test_destinations_of_a_list_that_overlap_each_other_are_refused(seed):
    """Both are named, in any order and of any sizes, and nothing is written."""
    rng = np.random.default_rng(seed)
    codec = liblade.Codec(algorithm="LZ4", bitstream_kind=1)
    count = (2, 3, 50, 1000)[seed]
    sizes = rng.integers(1, 9 if seed % 2 else 3000, count)
    encoded = [codec.encode(bytes(int(n))).tobytes() for n in sizes]
    gap = (0, 3, 100_000 if seed == 2 else 0, 0)[seed]  # too far apart for a table
    starts = np.concatenate(([0], np.cumsum(sizes + gap)))
    room = np.full(int(starts[-1]) + 1, 7, np.uint8)
    order = rng.permutation(count)
    for places in (range(count), range(count)[::-1], order):
        room[:] = 7
        items = [encoded[p] for p in places]
        outs = [room[starts[p] : starts[p] + sizes[p]] for p in places]
        assert codec.decode_into(items, outs) == [sizes[p] for p in places]
        a, b = sorted(int(x) for x in rng.choice(count, 2, replace=False))
        bad = list(outs)
        at = int(starts[places[a]])
        bad[b] = room[at : at + int(sizes[places[b]])]
        room[:] = 7
        for call in (codec.decode_into, codec.decode):
            with pytest.raises(ValueError, match="out: the destinations of items ") as e:
                call(items, out=bad)
            named = [bad[int(n)] for n in re.findall("[0-9]+", str(e.value))]
            assert len(named) == 2 and np.shares_memory(*named)
        assert (room == 7).all()
    a = bytearray(4000)
    one = codec.encode(X[:1000].tobytes()).tobytes()
    for many in (a, memoryview(a)), (liblade.as_array(a),) * 2:
        with pytest.raises(ValueError, match="destinations of items 0 and 1 overlap"):
            codec.decode([one, one], out=many)
    with pytest.raises(ValueError, match="destinations of items 1 and 2 overlap"):
        LZ4.encode([X, X, X], [bytearray(100_000), a, a])
    table = liblade.as_arrays(a, [0, 2000, 1000], [1000, 1000, 1001])
    with pytest.raises(ValueError, match="destinations of items 1 and 2 overlap"):
        codec.decode([one] * 3, out=table)
    empty, nothing = codec.encode(b"").tobytes(), memoryview(a)[5:5]
    assert codec.decode_into([one, empty, empty], [a, nothing, nothing]) == [4000, 0, 0]


def test_strided_destinations_lie_apart_or_are_refused():
    codec = liblade.Codec(algorithm="LZ4", bitstream_kind=1)
    big = np.zeros((100, 64), "u1")
    part = codec.encode(np.ones((10, 16), "u1")).tobytes()
    tiles = [big[i : i + 10, j : j + 16] for i in range(0, 100, 10) for j in range(0, 64, 16)]
    for outs in (tiles, tiles[::-1], tiles[::2] + tiles[1::2]):
        big[:] = 0
        assert set(codec.decode_into([part] * len(outs), outs)) == {160}
        assert (big == 1).all()
    for bad in (big[0:10, 15:31], big[5:15, 0:16], big[9:19, 40:56], big[0:10, 0:16]):
        with pytest.raises(ValueError, match="destinations of items [0-9]+ and 40 overlap"):
            codec.decode_into([part] * 41, [*tiles, bad])
    # A row between rows, and one on them.
    two, row = big[0:20:2], big[3]
    wide = codec.encode(np.ones((10, 64), "u1")).tobytes()
    line = codec.encode(np.ones(64, "u1")).tobytes()
    assert codec.decode_into([wide, line], [two, row]) == [640, 64]
    with pytest.raises(ValueError, match="items 0 and 1 overlap"):
        codec.decode_into([wide, line], [two, big[2]])


# Functions of one odd argument, and what they say of an object that is nothing.
ODD = (None, 1.5, float("nan"), "a", b"xyz", object(), lambda: 0, {}, slice(1), ...)
HUGE = (10**30, -(10**30), 1 << 63, -1)


def _writer(gives):
    class Odd:
        def write(self, data):
            return gives

    return Odd()


def _written(gives):
    file = liblade.open(_writer(gives), "wb")
    try:
        file.write(bytes(10))
        file.flush()
        file.close()
    finally:
        file.raw.finish = False
        with contextlib.suppress(OSError):
            file.close()


def _sought(to):
    with liblade.open(io.BytesIO(gzip.compress(b""))) as file:
        file.raw.seek(to)


def _lent(gives):
    liblade.set_host_allocator(lambda size, stream: gives)
    try:
        LZ4.encode(X)
    finally:
        liblade.set_host_allocator(None)


@pytest.mark.parametrize("call, text", [
    (liblade.from_dlpack, "^source: .* is no DLPack capsule and has no __dlpack_device__"),
    (lambda o: liblade.suggest(X, seconds=o), "^seconds is .*, a number is wanted"),
    (lambda o: liblade.suggest(X, bandwidth=o), "^bandwidth is .*, a number is wanted"),
    (lambda o: liblade.suggest(X, chunk_size=o), "^chunk_size is .*, an integer is wanted"),
    (lambda o: liblade.suggest(X, threads=o), "^threads is .*, an integer is wanted"),
    (lambda o: liblade.open(io.BytesIO(), threads=o), "^threads is .*, an integer is wanted"),
    (lambda o: liblade.open(io.BytesIO(), max_window=o), "^max_window is .*an integer is wanted"),
    (lambda o: liblade.open(io.BytesIO(), "wb", chunk_size=o), "^chunk_size is .*, an integer"),
    (lambda o: liblade.open(io.BytesIO(), "wb", level=o), "^level is .*, an integer is wanted"),
    (lambda o: liblade.open(io.BytesIO(), "wb", spec=o), "^spec is .*, a text is wanted"),
    (lambda o: liblade.open(io.BytesIO(), "wb", shape=o), "^shape.* is .*(list of|an) integer"),
    (lambda o: liblade.open(io.BytesIO(), o), "^mode is .*, a text is wanted"),
    (_sought, "^offset is .*, an integer is wanted"),
    (lambda o: liblade.checksum(o, b"x"), "^name is .*, a text is wanted"),
    (lambda o: liblade.checksums("crc32", o), "^sources: .* is no list|has no memory"),
    (lambda o: liblade.as_arrays(o), "^sources: .* is no list|has no memory"),
    (lambda o: liblade.as_arrays(b"abc", [o], [1]), "^offsets: .* is no integer"),
    (lambda o: liblade.as_arrays(b"abc", [1], [o]), "^sizes: .* is no integer"),
    (lambda o: LZ4.compression_config(o), "^compression_config: .*is .*(no size|an integer)"),
    (lambda o: LZ4.encode(X, None, liblade.CompressConfig((o,), (1,), 1)),
     "^compression_config: .* is no size in bytes"),
    (lambda o: LZ4.decode(LZ4.encode(b""), "", None, liblade.DecompressConfig((o,), 1)),
     "^decompression_config: .* is no size in bytes"),
    (lambda o: Codec(algorithm="LZ4", filters=o), "^filters"),
    (lambda o: Codec(algorithm="LZ4", where=o), "^where is"),
    (lambda o: Codec(algorithm="Cascaded", terminal_codecs=o or 0.5), "^terminal_codecs is"),
    (lambda o: Codec(algorithm="Bitcomp", data_type="<f4", mode=1, delta=o), "^delta is"),
    (lambda o: as_array(X)[o], "is no integer and no slice"),
    (lambda o: as_arrays([X])[o], "is no integer and no slice"),
    (lambda o: liblade.CudaStream.borrow(0, o), "^device_idx is .*, an integer is wanted"),
    (lambda o: liblade.CudaStream.make_new(o), "^device_idx is .*, an integer is wanted"),
    (lambda o: liblade.ExternalMemory(o).ptr, "^ptr is .*, an integer is wanted"),
    (_lent, "^the allocator gave .*, an object with .ptr is wanted"),
])  # fmt: skip
def test_odd_arguments_are_named(call, text):
    with pytest.raises((TypeError, ValueError), match=text):
        call(object())
    for odd in (*ODD, *HUGE):
        try:
            call(odd)
        except (TypeError, ValueError, IndexError, OverflowError, OSError,
                liblade.DeviceError) as e:  # fmt: skip
            # As interpreters say it, who know no names.
            assert not re.search("C [a-z]|argument [0-9]|not supported between", str(e)), (odd, e)


@pytest.mark.parametrize("gives", (-5, 0, 10**30, -(10**30), 1.5, "a", object(), 65))
def test_what_write_of_a_file_object_says_is_looked_at(gives):
    took = re.escape(str(gives) if isinstance(gives, int) else repr(gives))
    with pytest.raises(OSError, match=f"took {took} of [0-9]+ bytes"):
        _written(gives)


@pytest.mark.parametrize("make", (
    lambda: Codec.__new__(Codec), lambda: liblade._lade.CodecBase.__new__(Codec),
    lambda: liblade.CudaStream.__new__(liblade.CudaStream),
    lambda: liblade.ExternalMemory.__new__(liblade.ExternalMemory),
    lambda: liblade.FileReader.__new__(liblade.FileReader),
    lambda: liblade.FileWriter.__new__(liblade.FileWriter),
))  # fmt: skip
def test_objects_that_were_never_made(make):
    """Whatever is asked of them is answered, or is an error that says what they are."""
    one = make()
    for name in dir(type(one)):
        if name in ("__class__", "__init__", "__init_subclass__", "__new__", "__del__",
                    "__getattr__", "__getattribute__", "__delattr__", "__setattr__"):  # fmt: skip
            continue
        for args in ((), (b"x",), (b"x", b"y"), (0,)):
            with contextlib.suppress(RuntimeError, TypeError, ValueError):
                method = getattr(one, name)
                if callable(method):
                    method(*args)
    if isinstance(one, Codec):
        for use in (repr, lambda c: c.algorithm, lambda c: c.encode(X), pickle.dumps):
            with pytest.raises(RuntimeError, match="Codec.__init__.. was not called"):
                use(one)
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        one.other  # noqa: B018


def test_a_list_whose_length_cannot_be_told():
    encoded = LZ4.encode(X)
    for call in (LZ4.decode, LZ4.decode_into):
        with pytest.raises(RuntimeError, match="no length"):
            call([encoded], out=BadLength())


def test_the_data_type_of_a_strided_destination():
    codec = Codec(algorithm="LZ4", bitstream_kind=1)
    x = np.arange(12, dtype="<i4").reshape(3, 4)
    encoded = codec.encode(x)
    big = np.zeros((3, 8), "<i4")
    for out in (big[:, ::2], liblade.as_array(big)[:, 1:5]):
        got = codec.decode(encoded, out=out)
        assert got.dtype == "<i4" and (np.asarray(got) == x).all()
        got = codec.decode(encoded, "<f4", out=out)
        assert got.dtype == "<f4" and got.shape == (3, 4)
        assert (np.asarray(got) == x.view("<f4")).all()
        got = codec.decode([encoded], "<u4", out=[out])[0]
        assert got.dtype == "<u4" and (np.asarray(got) == x).all()
        with pytest.raises(ValueError, match="data_type: elements of 8 bytes.* out have 4"):
            codec.decode(encoded, "<i8", out=out)


def test_a_strided_destination_given_twice_is_refused_by_all_kinds():
    """Also where a scratch array stands for it: of frames, and of what is no rows."""
    big = np.zeros((40, 64), "u1")
    cube = np.zeros((8, 8, 8), "u1")[::2, ::2, :4]
    for kind in range(4):
        codec = liblade.Codec(algorithm="LZ4", bitstream_kind=kind)
        part = codec.encode(np.ones((10, 16), "u1")).tobytes()
        for one, other in (
            (big[:10, :16], big[:10, :16]),
            (big[:10, :16], big[5:15, 8:24]),
            (big[:10, :16], big[9::-1, :16]),
            (big[9::-1, :16], big[:10, 15::-1]),
            (big[:16, :10].T, big[:10, :16]),
        ):
            with pytest.raises(ValueError, match="destinations of items 1 and 3 overlap"):
                codec.decode_into([part] * 4, [big[20:30, :16], one, big[30:, :16], other])
        line = np.zeros(1000, "u1")
        for one, other in (
            (line[:160][::-1], line[159:319]),
            (line[100:260].reshape(10, 16).T, line[:101][::-1]),
            (line[100:260].reshape(10, 16).T, line[259:419][::-1]),
        ):
            with pytest.raises(ValueError, match="destinations of items 0 and 1 overlap"):
                codec.decode_into([part, part], [one, other])
        ends = [line[:160][::-1], line[160:320], line[320:480].reshape(10, 16).T]
        assert codec.decode_into([part] * 3, ends) == [160] * 3
        assert line.sum() == 480
        sixty = codec.encode(np.ones(64, "u1")).tobytes()
        with pytest.raises(ValueError, match="destinations of items 0 and 1 overlap"):
            codec.decode([sixty, sixty], out=[cube, cube])
        assert not big.any() and not cube.any()
        apart = [big[:10, :16], big[9::-1, 16:32], big[:16, 32:42].T, big[:10, 63:47:-1]]
        assert codec.decode_into([part] * 4, apart) == [160] * 4
        assert big.sum() == 640
        big[:] = 0


@pytest.mark.parametrize("seed", range(3))
def test_a_destination_that_overlaps_another_items_source_is_refused(seed):
    """Both are named, whatever order and kind of list they are in, and nothing is written."""
    rng = np.random.default_rng(seed)
    codec = liblade.Codec(algorithm="LZ4", bitstream_kind=1)
    count = (2, 40, 1000)[seed]
    encoded = [codec.encode(rng.integers(0, 3, 300, "u1")).tobytes() for _ in range(count)]
    # Sources and destinations by turns in one room, in any order.
    slot = 300 + max(map(len, encoded))
    room = np.zeros(slot * count, "u1")
    sources, outs = [], []
    for at, one in zip(rng.permutation(count) * slot, encoded):
        outs.append(room[at : at + 300])
        sources.append(room[at + 300 : at + 300 + len(one)])
        sources[-1][:] = np.frombuffer(one, "u1")
    assert codec.decode_into(sources, outs) == [300] * count
    before = room.copy()
    a, b = (int(n) for n in rng.choice(count, 2, replace=False))
    text = f"out: the destination of item {b} overlaps the source of item {a}$"
    for bad in (sources[a], sources[a][-1:], sources[a][:1]):
        bad_outs = [bad if i == b else out for i, out in enumerate(outs)]
        for kind in (list, tuple, liblade.as_arrays):
            for call in (codec.decode_into, codec.decode):
                with pytest.raises(ValueError, match=text):
                    call(kind(sources), out=kind(bad_outs))
        with pytest.raises(ValueError, match=text):
            codec.encode_into(sources, bad_outs)
        own = [sources[b] if i == b else out for i, out in enumerate(outs)]
        with pytest.raises(ValueError, match=f"destination of item {b} overlaps its source"):
            codec.decode(sources, out=own)
    assert (room == before).all()
    # One source for several items, and bytes, which nobody writes to.
    assert codec.decode_into([sources[0]] * count, outs) == [300] * count
    assert codec.decode_into(encoded, outs) == [300] * count


def test_frames_are_not_decoded_over_each_others_sources():
    frames = liblade.Codec(algorithm="LZ4")
    one = frames.encode(np.ones(100, "u1")).tobytes()
    room = np.zeros((100, 3 * len(one)), "u1")
    for at in (0, len(one)):
        room[at // len(one), : len(one)] = np.frombuffer(one, "u1")
    sources = [room[0, : len(one)], room[1, : len(one)]]
    for out in (room[1:, 0], room[:0:-1, 0][:100]):
        with pytest.raises(ValueError, match="destination of item 0 overlaps the source of item 1"):
            frames.decode(sources, out=[out, bytearray(100)])
    assert frames.decode_into(sources, [room[:, -1], room[:, -2]]) == [100, 100]


@pytest.mark.parametrize("kind", range(4))
def test_elements_that_a_source_repeats_are_encoded(kind):
    """Broadcast arrays have strides of 0."""
    codec = liblade.Codec(algorithm="LZ4", bitstream_kind=kind)
    x = np.arange(6, dtype="<i8")
    for one in (np.broadcast_to(x[:, None], (6, 3)), np.broadcast_to(x[::2, None], (3, 4)),
                np.broadcast_to(x.reshape(6, 1, 1), (6, 3, 1)), np.broadcast_to(x, (4, 6))):
        assert codec.decode(codec.encode(one)).tobytes() == one.tobytes()
        assert codec.decode(codec.encode([x, one]))[1].tobytes() == one.tobytes()


@pytest.mark.parametrize("kind", range(4))
def test_an_empty_list_of_destinations(kind):
    codec = liblade.Codec(algorithm="Zstd", bitstream_kind=kind)
    for data in (b"", b"abc"):
        encoded = codec.encode(data).tobytes()
        for call in (codec.decode, codec.decode_into):
            for out in ([], ()):
                with pytest.raises(ValueError, match="out has 0 arrays, and there are 2"):
                    call([encoded, encoded], out=out)
    with pytest.raises(ValueError, match="out has 0 arrays, and there are 1"):
        codec.encode_into([b"abc"], [])


@pytest.mark.parametrize("kind", range(4))
@pytest.mark.parametrize("empty", [[], (), as_arrays([])], ids=["list", "tuple", "batch"])
def test_an_empty_list_of_sources_gives_an_empty_result(kind, empty):
    codec = Codec(algorithm="LZ4", bitstream_kind=kind)
    for call in (codec.encode, codec.decode):
        for got in (call(empty), call(srcs=empty), call(empty, out=[])):
            assert type(got) is liblade.BatchArray and len(got) == 0
        assert call(empty, errors="return") == []
    assert codec.encode_into(empty, []) == codec.decode_into(empty, []) == []
    for call in (codec.get_max_comp_buffer_size, codec.get_uncomp_buffer_size):
        assert call(empty) == call(srcs=empty) == []
    config = codec.compression_config(uncompressed_sizes=empty)
    assert config == codec.compression_config([]) == codec.compression_config(empty)
    assert config.uncompressed_buffer_sizes == config.max_compressed_buffer_sizes == ()
    back = codec.decompression_config(srcs=empty)
    assert back == codec.decompression_config(compression_config=config)
    assert back.decomp_data_sizes == ()
    assert len(codec.encode(empty, compression_config=config)) == 0
    assert len(codec.decode(empty, decompression_config=back)) == 0
    for ask in ("uncompressed_buffer_size", "max_compressed_buffer_size", "num_chunks"):
        with pytest.raises(ValueError, match="the config is for 0 arrays"):
            getattr(config, ask)
    with pytest.raises(ValueError, match="the config is for 0 arrays"):
        back.decomp_data_size


def test_a_source_in_its_own_backward_destination_and_anothers():
    """The own one is scattered at the end, the other is not."""
    codec = liblade.Codec(algorithm="LZ4", bitstream_kind=1, threads=1)
    x = np.random.default_rng(0).integers(0, 255, 200, "u1")
    far, near = codec.encode(x).tobytes(), codec.encode(np.full(80, 7, "u1")).tobytes()
    room = np.zeros(1000, "u1")
    source = room[100 : 100 + len(far)]
    source[:] = np.frombuffer(far, "u1")
    own = room[99 + len(far) : 299 + len(far)][::-1]
    with pytest.raises(ValueError, match="destination of item 0 overlaps the source of item 1"):
        codec.decode_into([near, source], [room[105:185], own])
    assert codec.decode_into([near, source], [room[:80], own]) == [80, 200] and (own == x).all()
    # Between the rows of its own destination a source lies apart.
    wide = np.zeros((20, 300), "u1")
    wide[3, 50 : 50 + len(far)] = np.frombuffer(far, "u1")
    codec.decode(wide[3, 50 : 50 + len(far)], out=wide[:, :10])
    assert (wide[:, :10].ravel() == x).all()


def test_what_is_asked_on_the_way_may_write_to_the_array():
    """An index, an allocator, an interface's address: the memory stays where it is."""
    codec = liblade.Codec(algorithm="LZ4", bitstream_kind=1)
    large = codec.encode(bytes(1 << 24))
    array = codec.decode(codec.encode(b"A" * 1000))

    class Index:
        def __index__(self):
            with pytest.raises(liblade.InputError, match="want"):
                codec.decode(large, out=array)
            return 1

    assert array[Index() :].buffer_size == 999  # what they hold is not told: the decoder failed
    assert array[Index()].buffer_size == 1 and array.buffer_size == 1000
    asked = []

    def allocate(size, stream):
        memory = np.empty(size, "u1")
        if not asked:
            asked.append(size)
            with pytest.raises(liblade.InputError, match="want"):
                codec.decode(large, out=array)
        return liblade.ExternalMemory(Memory(memory), stream)

    class Memory:
        def __init__(self, memory):
            self.memory, self.ptr = memory, memory.ctypes.data

    liblade.set_host_allocator(allocate)
    try:
        copy = liblade.from_dlpack(array, copy=True)
    finally:
        liblade.set_host_allocator(None)
    assert asked and copy.buffer_size == 1000

    class Address:
        def __index__(self):
            del interface["data"]
            self.others = [(object(), "true") for _ in range(100)]
            return X.ctypes.data

    class Flag:
        def __bool__(self):
            return False

    interface = {"shape": (10,), "typestr": "|u1", "version": 3, "data": (Address(), Flag())}
    holder = type("Holder", (), {"__array_interface__": interface})()
    assert not as_array(holder).readonly


def test_exceptions_that_are_not_made_of_a_text_stay():
    class Text:
        @property
        def __array_interface__(self):
            return b"\xff".decode()

    with pytest.raises(UnicodeDecodeError):
        LZ4.encode([b"x", Text()])


@pytest.mark.parametrize("kind", range(4))
def test_a_compression_config_is_for_arrays_of_its_sizes(kind):
    codec = Codec(algorithm="LZ4", bitstream_kind=kind)
    config = codec.compression_config(X.nbytes)
    assert codec.encode(X, compression_config=config).tobytes() == codec.encode(X).tobytes()
    text = "compression_config: 4000 bytes, and the array has 2000"
    out = bytearray(9000)
    for call in (lambda: codec.encode(X[:500], None, config),
                 lambda: codec.encode(X[::2], out, config)):  # fmt: skip
        with pytest.raises(liblade.InputError, match="^" + text):
            call()
    several = codec.compression_config([4000, 4000, 2000])
    with pytest.raises(liblade.InputError, match="item 1: " + text) as e:
        codec.encode([X, X[:500], X[:500]], compression_config=several)
    assert e.value.index == 1 and isinstance(e.value, ValueError)
    got = codec.encode([X, X[:500], X[:500]], compression_config=several, errors="return")
    assert [isinstance(g, liblade.InputError) for g in got] == [False, True, False]
    assert Codec(algorithm="LZ4", bitstream_kind=kind).decode(got[2]).tobytes() == X[:500].tobytes()
    with pytest.raises(ValueError, match="for 3 arrays, and there are 1"):
        codec.encode(X, compression_config=several)


@pytest.mark.parametrize("places", ["new", "numpy", "own", "table"])
def test_an_item_that_is_no_whole_elements_is_an_item_that_failed(places):
    sources = [LZ4.encode(b"12345678"), LZ4.encode(b"123"), LZ4.encode(b"1234")]

    def outs():
        block = np.zeros((3, 8), "u1")
        table = as_arrays(block, [0, 8, 16], [8] * 3)
        own = [LZ4.decode(LZ4.encode(b"x")) for _ in range(3)]
        return {"new": None, "numpy": list(block), "own": own, "table": table}[places]

    with pytest.raises(ValueError, match="^item 1: 3 bytes are no multiple of the element's 4$"):
        LZ4.decode(sources, "<i4", outs())
    got = LZ4.decode(sources, "<i4", outs(), errors="return")
    assert [type(g) for g in got] == [liblade.Array, liblade.InputError, liblade.Array]
    assert str(got[1]) == "item 1: 3 bytes are no multiple of the element's 4"
    assert [g.shape for g in got[::2]] == [(2,), (1,)] and got[1].index == 1
    out = outs()
    one = LZ4.decode(sources[1], "<i4", out if out is None else out[0], errors="return")
    assert str(one) == "3 bytes are no multiple of the element's 4"


def test_a_destination_that_is_not_filled_keeps_its_type():
    out = np.zeros(1000, "<i4")
    got = LZ4.decode(LZ4.encode(X[:10]), out=out)
    assert (got.dtype, got.shape) == ("<i4", (10,)) and (out[:10] == X[:10]).all()
    assert LZ4.decode(LZ4.encode(b"123"), out=out).dtype == "|u1"
    assert LZ4.decode(LZ4.encode(X[:10]), "<u2", out=out).shape == (20,)
    assert LZ4.encode(X, out=np.zeros(4000, "<i4")).dtype == "|u1"


def test_tables_of_offsets_may_be_any_sequence_of_integers():
    buffer = bytes(range(12))
    for offsets in (range(0, 12, 4), np.array([0, 4, 8], object), (0, np.int8(4), 8)):
        got = as_arrays(buffer, offsets, [4] * 3)
        assert [g.tobytes()[0] for g in got] == [0, 4, 8]
    for wrong in ("abc", {0: 1}, 5, [0, "4", 8], np.array([0, None, 8], object)):
        with pytest.raises(TypeError):
            as_arrays(buffer, wrong, [4] * 3)


@pytest.mark.parametrize("text", ["<M8[ns]", "m8[s]", "S6", "<U2", "V12", "<f16", "c32"])
def test_types_that_are_only_bytes(text):
    x = np.arange(96, dtype="u1").view(text)
    for given in (text, x.dtype):
        got = LZ4.decode(LZ4.encode(x), given)
        assert got.dtype == as_array(x).dtype == f"|V{x.itemsize}" and got.shape == x.shape
        assert np.asarray(got).view(x.dtype).tobytes() == x.tobytes()
    for wrong in ("M8[ns", "M4", "S0", "Sx", "<f3", "U9999999"):
        with pytest.raises(TypeError, match="is not known"):
            LZ4.decode(LZ4.encode(x), wrong)


def test_small_reals_by_all_their_names():
    class Named:  # as ml_dtypes has them
        str, name = "<V2", "bfloat16"

    for given in ("bfloat16", Named()):
        assert LZ4.decode(LZ4.encode(X), given).dtype == "bfloat16"
        codec = Codec(algorithm="ANS", data_type=given)
        assert codec.pipeline == Codec(algorithm="ANS", data_type="bfloat16").pipeline
    assert LZ4.decode(LZ4.encode(X), "|f1").dtype == LZ4.decode(LZ4.encode(X), "float8_e4m3").dtype
    for text in ("<i4", "i4", "=i4", "int32", np.int32, np.dtype("i4")):
        assert LZ4.decode(LZ4.encode(X), text).dtype == "<i4"
        assert Codec(algorithm="Cascaded", data_type=text).pipeline.startswith("cascaded(dtype=<i4")
    with pytest.raises(ValueError, match="V2' is not known"):
        Codec(algorithm="ANS", data_type=np.dtype("V2"))


def test_a_strided_destination_of_a_list_that_is_not_filled_is_that_items_error():
    sources = [LZ4.encode(X[:5]), LZ4.encode(X[:3]), LZ4.encode(X[:5])]
    text = "out: 12 bytes were decoded, and the strided array has 20; decode_into() tells the count"

    def outs():
        return list(np.zeros((3, 5, 2), "<i4")[..., 0])

    with pytest.raises(ValueError, match=f"^item 1: {re.escape(text)}$"):
        LZ4.decode(sources, out=outs())
    room = outs()
    got = LZ4.decode(sources, out=room, errors="return")
    assert [type(g) for g in got] == [liblade.Array, liblade.InputError, liblade.Array]
    assert str(got[1]) == "item 1: " + text and (room[2] == X[:5]).all()
    assert str(LZ4.decode(sources[1], out=outs()[0], errors="return")) == text
    assert LZ4.decode_into(sources, outs()) == [20, 12, 20]
