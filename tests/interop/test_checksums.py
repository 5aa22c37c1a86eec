# test_checksums.py: checksum stages and checksums against numcodecs and Python's own.
# SPDX-License-Identifier: Apache-2.0
import ctypes
import random
import zlib

import numcodecs.checksum32
import numcodecs.fletcher32
import pytest

import lade_ctypes as lade

_of = lade.lib.lade_checksum_of
_of.restype = ctypes.c_uint64
_of.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)
_find = lade.lib.lade_checksum_find
_find.restype = ctypes.c_int
_find.argtypes = (ctypes.c_char_p,)


def checksum(name, data):
    return _of(_find(name.encode()), data, len(data))


def inputs():
    seed = 99
    print("seed", seed)
    rng = random.Random(seed)
    for n in [*range(1, 70), 255, 256, 257, 719, 720, 721, 4095, 65_536, 100_001]:
        yield rng.randbytes(n)
    yield b"\xff" * 70_000
    yield b"\0" * 1_000


DATA = list(inputs())

STAGES = [
    ("crc32(start)", lambda: numcodecs.checksum32.CRC32()),
    ("crc32(end)", lambda: numcodecs.checksum32.CRC32(location="end")),
    ("crc32", lambda: numcodecs.checksum32.CRC32(location="end")),
    ("crc32c(start)", lambda: numcodecs.checksum32.CRC32C(location="start")),
    ("crc32c", lambda: numcodecs.checksum32.CRC32C()),
    ("adler32(start)", lambda: numcodecs.checksum32.Adler32()),
    ("adler32", lambda: numcodecs.checksum32.Adler32(location="end")),
    ("fletcher32", lambda: numcodecs.fletcher32.Fletcher32()),
]


@pytest.mark.parametrize("spec,make", STAGES, ids=[spec for spec, _ in STAGES])
def test_stage(spec, make):
    codec = make()
    for data in DATA:
        theirs = bytes(codec.encode(data))
        assert lade.encode(spec, data) == theirs
        assert lade.decode(spec, theirs) == data
        bad = bytearray(theirs)
        bad[len(bad) // 2] ^= 0x10
        with pytest.raises(lade.Error) as caught:
            lade.decode(spec, bad)
        assert caught.value.status == "LADE_E_CHECKSUM"


def test_too_short():
    for spec, size in (("crc32", 4), ("xxh64", 8), ("fletcher32", 4)):
        for n in range(size):
            with pytest.raises(lade.Error) as caught:
                lade.decode(spec, bytes(n), size=16)
            assert caught.value.status == "LADE_E_TRUNCATED"


def test_of():
    for data in DATA:
        assert checksum("crc32", data) == zlib.crc32(data)
        assert checksum("crc32-jamcrc", data) == zlib.crc32(data) ^ 0xFFFFFFFF
        assert checksum("adler32", data) == zlib.adler32(data)


class Span(ctypes.Structure):
    _fields_ = lade.Span._fields_


def test_batch():
    count = len(DATA)
    buffers = [ctypes.create_string_buffer(data, len(data)) for data in DATA]
    spans = (Span * count)(*[Span(ctypes.addressof(b), len(d)) for b, d in zip(buffers, DATA)])
    sums = (ctypes.c_uint64 * count)()
    call = lade.lib.lade_checksums
    call.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t,
                     ctypes.c_void_p, ctypes.c_void_p)
    for name in ("crc32", "crc32c", "xxh3", "fletcher32", "crc32-bzip2"):
        assert call(lade.engine, _find(name.encode()), spans, count, sums, None) == 0
        assert list(sums) == [checksum(name, data) for data in DATA]
    assert call(lade.engine, 77, spans, count, sums, None) == 1
