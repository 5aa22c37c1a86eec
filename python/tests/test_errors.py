"""What failures look like: classes, texts, which item.

SPDX-License-Identifier: Apache-2.0
"""

import copy
import io
import os
import pickle
import weakref

import pytest

import liblade
import liblade.rntuple
from liblade import Codec

TEXT = b"corrupt me, if you can; " * 200
RAW = liblade.BitstreamKind.RAW


def broken(data):
    data = bytearray(data)
    data[len(data) // 3:] = b"\xff" * 7
    return bytes(data)


@pytest.mark.parametrize("algorithm", ["LZ4", "Snappy", "Deflate", "Gzip", "Zstd", "zlib", "Blosc"])
@pytest.mark.parametrize("kind", list(liblade.BitstreamKind), ids=lambda k: k.name)
def test_a_bad_item_is_named_and_spoils_no_other(algorithm, kind):
    codec = Codec(algorithm=algorithm, bitstream_kind=kind)
    good = codec.encode(TEXT)
    batch = [good, good, broken(good), good, b""]
    for _ in range(2):  # each time
        with pytest.raises(liblade.CorruptError) as e:
            codec.decode(batch)
        assert e.value.index == 2 and str(e.value).startswith("item 2: ")
        assert "item" not in str(e.value)[8:]
        with pytest.raises(RuntimeError):
            codec.decode(batch[2])
    got = codec.decode(batch, errors="return")
    assert [isinstance(g, liblade.Error) for g in got] == [False, False, True, False, True]
    assert got[0].tobytes() == got[3].tobytes() == TEXT
    assert got[2].index == 2 and got[4].index == 4 and str(got[4]).startswith("item 4: ")
    outs = [bytearray(len(TEXT)) for _ in batch]
    got = codec.decode(batch, out=outs, errors="return")
    assert isinstance(got[2], liblade.Error) and bytes(outs[3]) == TEXT == got[1].tobytes()
    one = codec.decode(batch[2], errors="return")
    assert isinstance(one, liblade.CorruptError) and one.index is None
    assert not str(one).startswith("item")
    assert codec.decode(good, errors="return").tobytes() == TEXT
    assert isinstance(codec.decode(batch[2], out=outs[0], errors="return"), liblade.CorruptError)
    with pytest.raises(liblade.CorruptError):
        codec.decode_into(batch, outs)


def test_classes():
    for name, bases in {
        "InputError": (ValueError,), "CorruptError": (RuntimeError,),
        "ChecksumError": (liblade.CorruptError,), "UnsupportedError": (NotImplementedError,),
        "OutOfMemoryError": (MemoryError,), "DeviceError": (RuntimeError,), "FileError": (OSError,),
    }.items():
        assert issubclass(getattr(liblade, name), (liblade.Error, *bases))
    e = liblade.CorruptError("text", "LADE_E_CORRUPT", 7, 3)
    f = pickle.loads(pickle.dumps(e))
    assert type(f) is type(e) and (f.status, f.offset, f.index, str(f)) == (
        "LADE_E_CORRUPT", 7, 3, "text")


def test_offsets_and_numbers():
    lz4 = Codec(algorithm="LZ4", bitstream_kind=RAW)
    with pytest.raises(liblade.CorruptError) as e:
        lz4.decode(bytes([0xF0, 255, 255, 0]), out=bytearray(9999))
    assert e.value.status == "LADE_E_TRUNCATED" and e.value.offset is not None
    with pytest.raises(liblade.InputError, match=f"{len(TEXT)}.*have 10") as e:
        lz4.decode(lz4.encode(TEXT), out=bytearray(10))
    assert e.value.status == "LADE_E_NOSPACE" and isinstance(e.value, ValueError)
    sized = Codec(algorithm="LZ4", bitstream_kind=2)
    data = bytearray(sized.encode(TEXT).tobytes())
    data[0] += 1
    with pytest.raises(liblade.CorruptError, match=f"states {len(TEXT) + 1} bytes and decodes to"):
        sized.decode(data)
    data[0] -= 2
    text = f"states {len(TEXT) - 1} bytes and decodes to more"
    with pytest.raises(liblade.CorruptError, match=text):
        sized.decode(data)
    with pytest.raises(liblade.CorruptError, match="3 bytes, and the size before the data takes 4"):
        sized.decode(b"abc")
    with pytest.raises(liblade.CorruptError, match="byte 5 before the data is 1, want 0"):
        Codec(algorithm="LZ4", bitstream_kind=3).decode(bytes(5) + b"\1" + bytes(10))


def test_wrong_sizes_are_corrupt_in_a_list_too():
    codec = Codec(algorithm="lz4f", bitstream_kind=1)
    good = codec.encode(bytes(range(200)) * 2).tobytes()
    told = 0
    for at in range(15 * 8, len(good) * 8):  # behind the header, which has a checksum
        bad = bytearray(good)
        bad[at // 8] ^= 1 << at % 8
        try:
            codec.decode(bad)
        except liblade.Error as e:
            told += 1
            (same,) = codec.decode([bad], errors="return")
            assert type(same) is type(e) and str(same) == f"item 0: {e}"
            with pytest.raises(type(e), match="item 1: ") as many:
                codec.decode([good, bad])
            assert many.value.index == 1
    assert told > 40
    # A size of nothing before something.
    codec = Codec(algorithm="Zstd", bitstream_kind=2)
    bad = bytes(8) + codec.encode(bytes(99999)).tobytes()[8:]
    for call in (lambda: codec.decode(bad), lambda: codec.decode([bad])):
        with pytest.raises(liblade.Error):
            call()


# Bytes of each format that claim far more than they can give.
IMPOSSIBLE = {
    # A frame of one segment with 8 bytes of size, 2**50; an empty block is all of it.
    "Zstd": b"\x28\xb5\x2f\xfd\xe0" + (1 << 50).to_bytes(8, "little") + b"\1\0\0",
    "Snappy": bytes.fromhex("ffffffff0f 0000"),
    "Bitcomp": bytes.fromhex("bc01000000000000") + (1 << 34).to_bytes(8, "little") + bytes(32),
    "Cascaded": bytes.fromhex("01000d00 00000040") + bytes(32),
}


@pytest.mark.parametrize("algorithm", IMPOSSIBLE)
def test_sizes_that_cannot_be_are_that_items_error(algorithm):
    codec = Codec(algorithm=algorithm, bitstream_kind=RAW)
    good = codec.encode(b"good" * 9).tobytes()
    bad = IMPOSSIBLE[algorithm]
    claims = f"the data states [0-9]+ bytes, and {len(bad)} bytes of {algorithm.lower()} decode to "
    for items in ([good, bad, good, bad], [good, bad, good, b""]):
        outs = [bytearray(36) for _ in items]
        for out in (None, outs, [liblade.as_array(o) for o in outs]):
            got = codec.decode(items, out=out, errors="return")
            assert got[0].tobytes() == got[2].tobytes() == b"good" * 9
            assert type(got[1]) is liblade.CorruptError and got[1].index == 1
            assert isinstance(got[3], liblade.Error) and got[3].index == 3
            for i in range(2):
                with pytest.raises(liblade.CorruptError, match="item 1: " + claims) as e:
                    codec.decode(items, out=out)
                assert e.value.index == 1
    for call in (codec.decode, codec.get_uncomp_buffer_size, codec.decompression_config,
                 lambda b: codec.decode(b, out=bytearray(36)),
                 lambda b: codec.decode_into(b, bytearray(36))):
        with pytest.raises(liblade.CorruptError, match=claims):
            call(bad)
    with pytest.raises(liblade.CorruptError, match="item 1: " + claims):
        codec.get_uncomp_buffer_size([good, bad])
    assert type(codec.decode(bad, errors="return")) is liblade.CorruptError
    # An item before it that fails for another reason is named first.
    with pytest.raises(liblade.Error, match="item 0: "):
        codec.decode([b"", bad])
    # A config that cannot be is the config's fault.
    size = 1 << (50 if algorithm == "Zstd" else 29)
    config = codec.decompression_config(codec.compression_config(size))
    with pytest.raises(liblade.InputError, match=f"config: {size} bytes, and the data has 36"):
        codec.decode(good, decompression_config=config)


@pytest.mark.parametrize("kind", [1, 2])
def test_items_without_memory_spoil_no_others(kind):
    codec = Codec(algorithm="Zstd", bitstream_kind=kind)
    data = [bytes(99_999), b"good" * 9, bytes(1_000_000), b"more" * 9]
    encoded = [codec.encode(d).tobytes() for d in data]

    class Memory:
        def __init__(self, size):
            if size > 100_100:
                raise MemoryError("no more")
            self.block = bytearray(size)
            self.ptr = liblade.as_array(self.block).ptr

    liblade.set_host_allocator(lambda n, stream: Memory(n))
    try:
        got = codec.decode(encoded, errors="return")
        one = codec.decode(encoded[2], errors="return")
        with pytest.raises(MemoryError, match="no more"):
            codec.decode(encoded)
    finally:
        liblade.set_host_allocator(None)
    assert [g.tobytes() == d for g, d in zip(got[:2] + got[3:], data[:2] + data[3:])] == [True] * 3
    assert type(got[2]) is type(one) is liblade.OutOfMemoryError
    assert got[2].index == 2 and str(got[2]) == "item 2: 1000000 bytes could not be allocated"
    assert one.index is None and str(one) == "1000000 bytes could not be allocated"


@pytest.mark.parametrize("kind", [1, 2, 3])
@pytest.mark.parametrize("algorithm", ["LZ4", "Zstd", "Gzip", "Blosc"])
def test_frames_for_codecs_of_another_kind_are_told_as_such(algorithm, kind):
    frame = Codec(algorithm=algorithm).encode(TEXT)
    codec = Codec(algorithm=algorithm, bitstream_kind=kind)
    text = "the data is a .lade frame, which bitstream_kind NVCOMP_NATIVE decodes"
    with pytest.raises(liblade.CorruptError, match="^" + text):
        codec.decode(frame)
    with pytest.raises(liblade.CorruptError, match="item 1: " + text):
        codec.decode([codec.encode(TEXT), frame])
    assert str(codec.decode([frame, b""], errors="return")[0]) == "item 0: " + text


def test_hostile_sizes():
    zstd = Codec(algorithm="Zstd", bitstream_kind=2)
    with pytest.raises((MemoryError, liblade.Error)):
        zstd.decode(b"\xff" * 7 + b"\x3f" + b"x" * 20)
    with pytest.raises(liblade.CorruptError, match="states"):
        zstd.decode(b"\xff" * 8 + b"x" * 20)
    with pytest.raises((MemoryError, liblade.Error)):
        zstd.decode([zstd.encode(b"a"), b"\xff" * 6 + b"\0\0" + b"x" * 20])


def test_bad_destinations():
    codec = Codec(algorithm="Zstd", bitstream_kind=RAW)
    out = bytearray(len(TEXT))
    encoded = codec.encode(TEXT).tobytes()
    for bad in (5, "text", [], (1, 2), object()):
        for call in (codec.decode, codec.encode, codec.decode_into, codec.encode_into):
            with pytest.raises(TypeError, match="^out: .*'> has no memory to share"):
                call(encoded, out=bad)
            with pytest.raises((TypeError, ValueError), match="^out(:| has| 0:) (?!out)"):
                call([encoded], out=bad)
            with pytest.raises(TypeError, match="^out 1: .*has no memory to share"):
                call([encoded] * 2, out=[bytearray(9999), bad])
    for bad in (5, "text", object()):
        with pytest.raises(TypeError, match="^out: a list or a BatchArray is wanted .* is none"):
            codec.decode([encoded], out=bad)
    for call in (codec.decode, codec.encode_into):
        with pytest.raises(ValueError, match="^out: the memory is read-only"):
            call(encoded, out=b"bytes")
        with pytest.raises(ValueError, match="^out 0: the memory is read-only"):
            call([encoded], out=[b"bytes"])
    with pytest.raises(ValueError, match="^out: encoded bytes want contiguous memory"):
        codec.encode(TEXT, out=memoryview(bytearray(9999))[::2])
    with pytest.raises(ValueError, match="read-only"):
        codec.decode_into(codec.encode(TEXT), memoryview(out).toreadonly())
    assert out == bytearray(len(TEXT))


def test_allocators():
    calls = []

    class Memory:
        def __init__(self, size):
            self.block = bytearray(size)
            self.ptr = liblade.as_array(self.block).ptr
            calls.append(size)

        def __del__(self):
            calls.append(-len(self.block))

    codec = Codec(algorithm="Zstd", bitstream_kind=RAW)
    encoded = codec.encode(TEXT)
    liblade.set_host_allocator(lambda n, stream: Memory(n))
    try:
        got = codec.decode(encoded)
        assert got.tobytes() == TEXT and calls == [len(TEXT)]
        del got
        assert calls == [len(TEXT), -len(TEXT)]

        def fails(n, stream):
            raise KeyError("no more")

        liblade.set_host_allocator(fails)
        with pytest.raises(KeyError, match="no more"):
            codec.decode(encoded)
        liblade.set_host_allocator(lambda n, stream: object())
        with pytest.raises(TypeError, match="the allocator gave .*, an object with .ptr is wanted"):
            codec.decode([encoded])

        class Nothing:
            ptr = 0

        liblade.set_host_allocator(lambda n, stream: Nothing())
        with pytest.raises(MemoryError, match="ptr 0"):
            codec.decode(encoded)
    finally:
        liblade.set_host_allocator(None)
    with pytest.raises(TypeError, match="cannot be called"):
        liblade.set_host_allocator(3)
    assert codec.decode(encoded).tobytes() == TEXT


def test_results_of_unknown_size_grow_in_an_allocators_memory():
    import ctypes

    class Memory:
        def __init__(self, size):
            self.bytes = (ctypes.c_char * size)()
            self.ptr = ctypes.addressof(self.bytes)

    text = b"so many bytes come of so few; " * 100_000
    codec = Codec(algorithm="LZ4", bitstream_kind=RAW)
    encoded = codec.encode(text).tobytes()
    sizes = []
    liblade.set_host_allocator(lambda n, stream: sizes.append(n) or Memory(n))
    try:
        one = codec.decode(encoded)
        many = codec.decode([encoded, encoded])
        assert one.tobytes() == many[0].tobytes() == many[1].tobytes() == text
    finally:
        liblade.set_host_allocator(None)
    assert sizes == [len(text)] * 3  # nothing that is given back


def test_what_other_formats_bytes_are_is_said():
    text = b"some text " * 50
    for name, ending in (("gzip", "gz"), ("zstd", "zst"), ("zlib", "zz")):
        raw = liblade.Codec(algorithm=name, bitstream_kind=liblade.BitstreamKind.RAW)
        data = raw.encode(text).tobytes()
        match = f'not a .lade frame.*looks like .{ending}: a Codec.algorithm="{name}", .*RAW.*open'
        for codec in (liblade.Codec(), liblade.Codec(algorithm="LZ4")):
            with pytest.raises(liblade.CorruptError, match=match):
                codec.decode(data)
            with pytest.raises(liblade.CorruptError, match="item 1: " + match):
                codec.decode([codec.encode(text) if codec.pipeline else frame(text), data, data])
        failed = liblade.Codec().decode([data, frame(text), b"plain"], errors="return")
        assert ending in str(failed[0]) and "looks" not in str(failed[2])
        assert failed[1].tobytes() == text
    for ending in ("lz4",):
        file = io.BytesIO()
        with liblade.open(file, "wb", format=ending) as f:
            f.write(text)
        with pytest.raises(liblade.CorruptError, match=rf"looks like .{ending}: liblade.open\(\)"):
            liblade.Codec().decode(file.getvalue())


@pytest.mark.parametrize("kind", range(4))
def test_what_another_codecs_bytes_are_is_said(kind):
    made = {name: Codec(algorithm=name, bitstream_kind=RAW).encode(TEXT).tobytes()
            for name in ("gzip", "zstd", "Blosc")}
    looks = {"gzip": r"\.gz", "zstd": r"\.zst", "Blosc": "a Blosc chunk"}
    for name, data in made.items():
        match = f'; it looks like {looks[name]}: a Codec.algorithm="{name}", bitstream_kind=.*RAW'
        for other in ("LZ4", "Snappy", "Deflate", "gzip", "zstd", "zlib", "Blosc",
                      "shuffle(2)|lz4"):
            codec = Codec(algorithm=other, bitstream_kind=kind)
            if other == name and kind:
                bad = data[:len(data) // 2] + b"\xff" * (len(data) - len(data) // 2)
                with pytest.raises(liblade.CorruptError) as e:
                    codec.decode(bad)
                assert "looks like" not in str(e.value)
                continue
            with pytest.raises(liblade.CorruptError, match=match):
                codec.decode(data)
            with pytest.raises(liblade.CorruptError, match="^item 1: .*" + match):
                codec.decode([codec.encode(TEXT), data])
            failed = codec.decode([data, codec.encode(TEXT), b"\xff\xff"], errors="return")
            assert "looks like" in str(failed[0]) and failed[1].tobytes() == TEXT
            assert "looks like" not in str(failed[2])
            with pytest.raises((liblade.CorruptError, liblade.InputError), match=match):
                codec.decode_into(data, bytearray(len(TEXT)))
    chunk = made["Blosc"]
    for no_chunk in (chunk + b"x", chunk[:15], b"\3" + chunk[1:]):
        with pytest.raises(liblade.CorruptError) as e:
            Codec().decode(no_chunk)
        assert "looks like" not in str(e.value)


def test_a_text_with_bytes_that_are_no_utf8():
    with pytest.raises(liblade.Error) as e:
        liblade.rntuple.open(os.fsdecode(b"/tmp/no-\xff\xfe-file"))
    assert "no-\\xff\\xfe-file" in str(e.value)


def frame(data):
    return liblade.Codec(algorithm="Zstd").encode(data)


def test_a_codec_takes_no_new_attributes():
    codec = liblade.Codec(algorithm="zstd", level=3)
    for name in ("level", "algorithm", "threads", "pipeline", "anything", "encode"):
        with pytest.raises(AttributeError, match=f"{name}: a Codec does not change"):
            setattr(codec, name, 19)
    assert codec.pipeline == "zstd(level=3)"
    with pytest.raises(AttributeError, match="no attribute '__dict__'"):
        codec.__dict__["level"] = 19
    with pytest.raises(AttributeError, match="_level"):
        codec._level = 19
    with pytest.raises(AttributeError, match="threads: a Codec does not change"):
        del codec.threads
    assert weakref.ref(codec)() is codec and copy.copy(codec).pipeline == codec.pipeline

    class Own(liblade.Codec):
        pass

    own = Own(algorithm="zstd")
    own.extra = 5
    assert own.extra == 5 and own.__dict__ == {"extra": 5}
    del own.extra
    assert not own.__dict__
