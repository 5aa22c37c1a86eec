"""liblade.open(): formats, ways to read and write, places, failures.

SPDX-License-Identifier: Apache-2.0
"""

import gc
import gzip
import io
import os
import pathlib
import random
import sys
import threading
import zlib

import numpy as np
import pytest

import liblade

FORMATS = ["lade", "zst", "gz", "lz4"]
rng = np.random.default_rng(5)
TEXT = b"".join(b"line %d of %d\n" % (i, i * i) for i in range(90_000))
NOISE = rng.integers(0, 7, 700_001, dtype="u1").tobytes()


def encoded(data, format, **options):
    box = io.BytesIO()
    with liblade.open(box, "wb", format=format, **options) as f:
        f.write(data)
    return box.getvalue()


class Pipe:
    """An object that can only be read in order, in pieces of odd sizes."""

    def __init__(self, data):
        self.box = io.BytesIO(data)

    def read(self, size):
        return self.box.read(min(size, 4999))


def opened(way, data, tmp_path):
    if way == "path":
        path = tmp_path / "data"
        path.write_bytes(data)
        return liblade.open(path)
    return liblade.open({"memory": io.BytesIO, "pipe": Pipe}[way](data))


@pytest.mark.parametrize("way", ["path", "memory", "pipe"])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("data", [b"", b"x", NOISE, TEXT], ids=["none", "one", "noise", "text"])
def test_round_trip(format, way, data, tmp_path):
    options = {"chunk_size": 100_000} if format == "lade" else {}
    stored = encoded(data, format, **options)
    for read in (
        lambda f: f.read(),
        lambda f: b"".join(iter(lambda: f.read(3333), b"")),
        lambda f: b"".join(iter(lambda: f.read1(), b"")),
        lambda f: b"".join(f),
        lambda f: f.readline() + f.peek()[:0] + b"".join(f.readlines()),
    ):
        with opened(way, stored, tmp_path) as f:
            assert f.readable() and not f.writable() and not f.closed
            assert f.info.format == format
            assert read(f) == data and f.tell() == len(data)
            assert f.read() == f.read(5) == b"" and f.info.size == len(data)
        assert f.closed
    with opened(way, stored, tmp_path) as f:
        room = bytearray(len(data) + 5)
        assert f.readinto(room) == len(data) and room == data + bytes(5)
        assert f.readinto(room) == 0
    with opened(way, stored, tmp_path) as f:
        assert f.readlines() == data.splitlines(keepends=True)
    if data:
        array = np.zeros((len(data), 1), "u1")
        with opened(way, stored, tmp_path) as f:
            assert f.readinto(array) == len(data) and array.tobytes() == data


@pytest.mark.parametrize("way", ["path", "memory"])
@pytest.mark.parametrize("format", FORMATS)
def test_seek(format, way, tmp_path):
    options = {"chunk_size": 65536} if format == "lade" else {}
    with opened(way, encoded(TEXT, format, **options), tmp_path) as f:
        assert f.seekable()
        pick = random.Random(8)
        for _ in range(60):
            at, size = pick.randrange(len(TEXT)), pick.choice([1, 100, 70_000, 400_000])
            whence = pick.randrange(3)
            off = at - (0, f.tell(), len(TEXT))[whence]
            assert f.seek(off, whence) == f.tell() == at
            room = bytearray(size)
            n = f.readinto(room)
            assert n == min(size, len(TEXT) - at) and room[:n] == TEXT[at : at + n], at
        assert f.seek(len(TEXT) + 99) == len(TEXT) and f.read(1) == b""
        assert f.seek(0) == 0 and f.read(4) == b"line"
        with pytest.raises(ValueError):
            f.seek(-1)
        with pytest.raises(ValueError):
            f.seek(0, 7)


def test_a_pipe_is_read_in_order():
    for format in FORMATS:
        f = liblade.open(Pipe(encoded(TEXT, format)))
        assert not f.seekable() and f.read(10) == TEXT[:10]
        with pytest.raises(io.UnsupportedOperation):
            f.seek(0)
        assert f.read() == TEXT[10:]
    r, w = os.pipe()
    stored = encoded(TEXT, "lade", chunk_size=4096)
    writer = threading.Thread(target=lambda: (os.write(w, stored[:9]), os.write(w, stored[9:]),
                                              os.close(w)))
    writer.start()
    with os.fdopen(r, "rb") as pipe, liblade.open(pipe) as f:
        assert f.read() == TEXT and not f.seekable()
    writer.join()


def test_what_is_joined_is_read_as_one():
    for format in FORMATS:
        both = encoded(NOISE, format) + encoded(TEXT, format)
        assert liblade.open(Pipe(both)).read() == NOISE + TEXT
        if format != "lade":
            assert liblade.open(io.BytesIO(both)).read() == NOISE + TEXT


def test_other_tools(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    frame = pytest.importorskip("lz4.frame")
    for end, tool in {"gz": gzip.open, "zst": zstandard.open, "lz4": frame.open}.items():
        path = tmp_path / f"x.{end}"
        with liblade.open(path, "wb") as f:
            assert f.write(TEXT) == len(TEXT)
        with tool(path, "rb") as f:
            assert f.read() == TEXT
        with tool(path, "wb") as f:
            f.write(NOISE)
        with liblade.open(path) as f:
            assert f.read() == NOISE and f.info.format == end
        with liblade.open(path, "ab") as f:
            f.write(TEXT)
        assert liblade.open(path).read() == NOISE + TEXT
    with gzip.open(tmp_path / "x.gz") as f:
        assert f.read() == NOISE + TEXT


def test_formats_that_are_only_read():
    box = io.BytesIO(zlib.compress(TEXT))
    with liblade.open(box) as f:
        assert f.info.format == "zz" and f.read() == TEXT
        assert f.seek(5) == 5 and f.read(3) == TEXT[5:8]
    # Framed Snappy: the identifier, and an uncompressed chunk with its masked CRC-32C.
    crc = liblade.checksum("crc32c", b"snap")
    crc = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    chunk = b"\x01\x08\0\0" + crc.to_bytes(4, "little") + b"snap"
    with liblade.open(io.BytesIO(b"\xff\x06\0\0sNaPpY" + chunk * 3)) as f:
        assert f.info.format == "sz" and f.read() == b"snap" * 3


def test_writing(tmp_path):
    path = tmp_path / "x.lade"
    array = np.arange(60_000, dtype="<i4").reshape(200, 300)
    with liblade.open(os.fsencode(path), "xb", spec="delta(<i4)|shuffle(4)|zstd(1)",
                      chunk_size=8192, dtype=array.dtype, shape=array.shape, threads=2) as f:
        assert f.writable() and not f.readable() and not f.seekable()
        for row in array:
            assert f.write(row) == row.nbytes
    with liblade.open(str(path), threads=16) as f:
        info = f.info
        assert info.dtype == "<i4" and info.shape == (200, 300) and info.chunk_size == 8192
        assert info.pipeline.startswith("delta(") and info.checksum == "xxh64"
        assert info.size == array.nbytes and not info.fortran_order
        back = np.empty_like(array)
        assert f.readinto(back) == array.nbytes and (back == array).all()
        assert f.name == str(path) and f.mode == "rb" and str(path) in repr(f)
    with pytest.raises(FileExistsError):
        liblade.open(path, "xb")
    assert liblade.open(path).read() == array.tobytes()
    for format in FORMATS:
        assert encoded(NOISE, format, level=1) != encoded(NOISE, format, level=9)
    assert liblade.open(io.BytesIO(encoded(b"abc", "lade", checksum=False))).info.checksum is None
    lines = [b"a\n", b"b\n"]
    with liblade.open(tmp_path / "l.gz", "wb") as f:
        f.writelines(lines)
    with liblade.open(tmp_path / "l.gz") as f:
        assert list(f) == lines
    with io.TextIOWrapper(liblade.open(tmp_path / "l.gz"), "ascii") as f:
        assert f.read() == "a\nb\n"


def test_refused(tmp_path):
    path = tmp_path / "x.gz"
    path.write_bytes(b"what is there")
    for kwargs, kind, text in [
        (dict(mode="r+b"), ValueError, "mode is 'r\\+b'"),
        (dict(mode="wt"), ValueError, "mode"),
        (dict(mode="wb", format="sz"), ValueError, "'sz'.*'lz4'"),
        (dict(mode="wb", level=99), ValueError, "99"),
        (dict(mode="wb", level=0), ValueError, "level is 0"),
        (dict(mode="wb", spec="zstd"), ValueError, "of .lade, not of .gz"),
        (dict(mode="wb", format="lade", spec="lz5"), ValueError, "lz5"),
        (dict(mode="wb", format="lade", spec="lz4", level=3), ValueError, "stands in the spec"),
        (dict(mode="wb", format="lade", dtype="q"), ValueError, "q"),
        (dict(mode="wb", format="lade", shape=(-1,)), ValueError, "dimension can be from 0"),
        (dict(mode="wb", format="lade", chunk_size=8), ValueError, "chunk_size is 8"),
        (dict(mode="ab", format="lade"), ValueError, "added to"),
        (dict(mode="wb", strict=True), ValueError, "for reading"),
        (dict(mode="rb", level=3), ValueError, "for writing"),
        (dict(mode="rb", threads=-1), ValueError, "threads is -1"),
        (dict(mode="rb", format="tar"), ValueError, "'tar'"),
    ]:
        with pytest.raises(kind, match=text):
            liblade.open(path, **kwargs)
    assert path.read_bytes() == b"what is there"
    with pytest.raises(FileNotFoundError):
        liblade.open(tmp_path / "nothing.gz")
    with pytest.raises(IsADirectoryError):
        liblade.open(tmp_path, "wb")
    with pytest.raises(liblade.FileError, match="Is a directory"):
        liblade.open(tmp_path)
    with pytest.raises(TypeError, match="neither a path nor"):
        liblade.open(7)
    with pytest.raises(TypeError, match="neither a path nor"):
        liblade.open(Pipe(b""), "wb")
    with pytest.raises(ValueError, match="can be read, not written"):
        liblade.open(tmp_path / "x.sz", "wb")
    assert not (tmp_path / "x.sz").exists()


@pytest.mark.parametrize("format", FORMATS)
def test_broken_files(format, tmp_path):
    options = {"chunk_size": 65536} if format == "lade" else {}
    stored = encoded(NOISE, format, **options)
    path = tmp_path / "broken.bin"
    for size in (1, 3, 17, len(stored) // 2, len(stored) - 1):
        path.write_bytes(stored[:size])
        for make in (lambda: liblade.open(path, format=format), lambda: liblade.open(
                Pipe(stored[:size]), format=format)):
            with pytest.raises(liblade.CorruptError) as e:
                with make() as f:
                    f.read()
        with pytest.raises(liblade.CorruptError, match="broken.bin: "):
            liblade.open(path).read()
    bad = bytearray(stored)
    bad[len(bad) // 2] ^= 0x55
    path.write_bytes(bad)
    f = liblade.open(path)
    for _ in range(2):  # each time
        with pytest.raises(liblade.CorruptError) as e:
            f.read()
        assert e.value.offset is None or 0 <= e.value.offset < len(stored)
    if format == "lade":  # one bad chunk spoils no other
        f.seek(0)
        assert f.read(1000) == NOISE[:1000]
    path.write_bytes(b"")
    with pytest.raises(liblade.CorruptError, match="the file is empty"):
        liblade.open(path)
    path.write_bytes(b"plain text")
    with pytest.raises(liblade.CorruptError, match="70 6c 61 69"):
        liblade.open(path)


@pytest.mark.parametrize("format", FORMATS)
def test_an_exception_leaves_a_file_without_its_end(format, tmp_path):
    path = tmp_path / f"x.{format}"
    noise = rng.bytes(65536)
    for count in (0, 1, 48):  # none, in the buffer still, two MiB and more written
        for where in (path, Odd()):
            path.write_bytes(encoded(b"what was there", format))
            with pytest.raises(KeyError):
                with liblade.open(where, "wb", format=format, threads=2) as f:
                    for _ in range(count):
                        f.write(noise)
                    raise KeyError("in between")
            assert f.closed
            stored = path.read_bytes() if where is path else where.getvalue()
            for make in (io.BytesIO, Pipe):
                with pytest.raises(liblade.CorruptError) as e:
                    liblade.open(make(stored)).read()
                assert e.value.status == "LADE_E_TRUNCATED", e.value
            if format == "gz":
                with pytest.raises(EOFError):
                    gzip.decompress(stored)
    if format != "lade":
        path.write_bytes(encoded(TEXT, format))
        with pytest.raises(KeyError):
            with liblade.open(path, "ab"):
                raise KeyError("before the first byte")
        with pytest.raises(liblade.CorruptError):
            liblade.open(path).read()


def test_a_failed_end_is_no_end():
    """The write of the member's end fails, then there is room again."""

    class Short(io.BytesIO):
        left = 2  # the header, and a MiB

        def write(self, data):
            self.left -= 1
            if self.left == -1:
                raise OSError("full")
            return super().write(data)

    box = Short()
    f = liblade.open(box, "wb", format="gz", threads=1)
    f.write(bytes(1 << 20))
    f.write(b"the rest")
    with pytest.raises(OSError, match="full"):
        f.close()
    with pytest.raises(EOFError):
        gzip.decompress(box.getvalue())


def test_when_a_file_is_emptied(tmp_path):
    for format in FORMATS:
        path = tmp_path / f"x.{format}"
        path.write_bytes(encoded(TEXT, format))
        old = path.read_bytes()
        with pytest.raises(ValueError):
            liblade.open(path, "wb", level=1000)
        assert path.read_bytes() == old
        f = liblade.open(path, "wb")
        assert path.stat().st_size < 100
        f.close()
        assert liblade.open(path).read() == b""


BAD = [
    ("wb", dict(dtype=np.float32)), ("wb", dict(spec=5)), ("wb", dict(shape=5)),
    ("xb", dict(shape=(-1,))), ("xb", dict(threads=1.5)), ("rb", dict(max_window=1.5)),
    ("rb", dict(threads=1.5)), ("rb", dict(strict=np.zeros(2))), ("xb", dict(checksum=np.zeros(2))),
    ("wb", dict(level=1000)), ("xb", dict(level=1000)), ("ab", dict(level=1000, format="gz")),
]


@pytest.mark.parametrize("mode, options", BAD, ids=str)
def test_refused_options_leave_nothing(mode, options, tmp_path):
    path = tmp_path / "x.lade"
    for there in (True, False):
        if there:
            path.write_bytes(encoded(TEXT, "lade"))
        gc.collect()
        before = len(os.listdir("/proc/self/fd"))
        with pytest.raises((TypeError, OverflowError, ValueError, OSError)) as e:
            liblade.open(path, mode, **options)
        del e
        gc.collect()
        assert len(os.listdir("/proc/self/fd")) == before and path.exists() == there
        if there:
            assert liblade.open(path).read() == TEXT
            path.unlink()
    if mode == "xb":
        liblade.open(path, "xb", level=3).close()


def test_closed(tmp_path):
    path = tmp_path / "x.zst"
    f = liblade.open(path, "wb")
    f.write(b"abc")
    raw = f.raw
    f.close()
    f.close()
    g = liblade.open(path)
    g.close()
    g.close()
    for call in (lambda: f.write(b"x"), lambda: g.read(), lambda: g.read(1), lambda: g.seek(0),
                 lambda: g.tell(), lambda: next(g), lambda: g.readinto(bytearray(1)),
                 lambda: g.seekable(), lambda: raw.write(b"x"),
                 lambda: g.raw.readinto(bytearray(1)), lambda: g.raw.readall(), lambda: f.flush()):
        with pytest.raises(ValueError, match="closed"):
            call()
    for make in (lambda: liblade.open(path), lambda: liblade.open(path, "wb")):
        make()  # dropped: its descriptor is closed
    assert not [fd for fd in os.listdir("/proc/self/fd") if os.path.realpath(
        f"/proc/self/fd/{fd}") == str(path)]
    with pytest.raises(io.UnsupportedOperation):
        liblade.open(io.BytesIO(encoded(b"x", "gz"))).fileno()


class Odd(io.BytesIO):
    """Does as it is told."""

    does = None

    def read(self, size=-1):
        if self.does == "raise":
            raise LookupError("no such read")
        if self.does == "none":
            return None
        if self.does == "more":
            return b"x" * (size + 1)
        return super().read(size)

    def write(self, data):
        if self.does == "raise":
            raise LookupError("no such write")
        if self.does == "silent":
            super().write(data)
            return None
        return super().write(data[: 7 if self.does == "short" else len(data)])


class Full(io.RawIOBase):
    """Would block."""

    def writable(self):
        return True

    def write(self, data):
        return None


def test_places():
    with liblade.open(io.BytesIO(encoded(NOISE, "lade"))) as f:
        for at in (2**63, 2**64, 2**70):
            with pytest.raises(OverflowError, match=str(at)):
                f.raw.seek(at)
        assert f.raw.seek(2**63 - 1) == len(NOISE)

    class Lost(io.BytesIO):
        place = -5

        def tell(self):
            return self.place

        def seek(self, *where):
            return 0

    for place in (-5, 2**64, 2**70, None, "7"):
        box = Lost(encoded(NOISE, "gz"))
        box.place = place
        with pytest.raises(OSError, match=f"tell\\(\\) of the file object gave {place!r}"):
            liblade.open(box)


def test_what_an_object_does():
    for format in FORMATS:
        for does, kind in {"raise": LookupError, "none": BlockingIOError, "more": OSError}.items():
            box = Odd(encoded(NOISE, format))
            f = liblade.open(box)
            box.does = does
            with pytest.raises(kind):
                f.read()
            with pytest.raises(kind):
                liblade.open(box)
        box = Odd()
        with liblade.open(box, "wb", format=format) as f:
            box.does = "short"
            f.write(NOISE[:5000])
        box.does = None
        box.seek(0)
        assert liblade.open(box).read() == NOISE[:5000]
        box = Odd()
        box.does = "silent"
        with liblade.open(box, "wb", format=format) as f:
            f.write(NOISE)
        assert liblade.open(io.BytesIO(box.getvalue())).read() == NOISE
        with pytest.raises(BlockingIOError):
            with liblade.open(Full(), "wb", format=format) as f:
                f.write(NOISE)
        box.does = "raise"
        with pytest.raises(LookupError):
            with liblade.open(box, "wb", format=format) as f:
                f.write(NOISE)
        assert not box.closed


def test_only_what_is_wanted_is_read():
    class Counting(io.BytesIO):
        count = 0

        def read(self, size=-1):
            data = super().read(size)
            self.count += len(data)
            return data

    box = Counting(b"before" + encoded(NOISE, "lade", chunk_size=16384))
    box.seek(6)
    with liblade.open(box) as f:
        box.count = 0
        f.seek(500_000)
        assert f.read(10) == NOISE[500_000:500_010] and box.count < 40_000
        f.seek(0)
        assert f.read() == NOISE


def test_threads_share_a_reader():
    f = liblade.open(io.BytesIO(encoded(TEXT, "lade", chunk_size=4096)), threads=4)
    got = []

    def work():
        while piece := f.read(1000):
            got.append(piece)

    workers = [threading.Thread(target=work) for _ in range(8)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert sum(map(len, got)) == len(TEXT)
    assert sorted(got) == sorted(TEXT[i : i + 1000] for i in range(0, len(TEXT), 1000))


def test_a_call_within_a_call():
    class Nested(io.BytesIO):
        reader = None

        def read(self, size=-1):
            if self.reader:
                self.reader.raw.readinto(bytearray(1))
            return super().read(size)

    box = Nested(encoded(NOISE, "gz"))
    box.reader = liblade.open(box)
    box.reader.raw._handle.tell()
    with pytest.raises(RuntimeError, match="in use"):
        box.reader.seek(0)
        box.reader.read()


def test_huge(tmp_path):
    path = tmp_path / "huge.lade"
    piece = bytes(32 << 20)
    with liblade.open(path, "wb", chunk_size=16 << 20, checksum=False) as f:
        for _ in range(160):
            f.write(piece)
        f.write(b"end")
    assert path.stat().st_size < 1 << 20
    with liblade.open(path) as f:
        assert f.info.size == (5 << 30) + 3
        assert f.seek(-5, io.SEEK_END) == (5 << 30) - 2 and f.read() == b"\0\0end"
        f.seek(4 << 30)
        assert f.read(5) == bytes(5)
    with pytest.raises(ValueError, match="limit|allowed|at most|16777216"):
        liblade.open(path, max_window=1 << 20).read(1)


def test_names(tmp_path):
    name = pathlib.Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff" + b"n" * 150 + b".gz"))
    name.write_bytes(b"\x1f\x8b\x08nonsense")
    with pytest.raises(liblade.CorruptError, match="n.gz: ") as e:
        liblade.open(name).read()
    assert len(str(e.value)) < 240


def test_a_file_object_that_holds_its_reader():
    unraisable = []
    hook, sys.unraisablehook = sys.unraisablehook, unraisable.append
    try:
        for close in (False, True):
            box = Odd(encoded(NOISE, "zst"))
            box.reader = liblade.open(box)
            if close:
                box.reader.close()
            box = Odd()
            box.writer = liblade.open(box, "wb")
            if close:
                box.writer.close()
            del box
            gc.collect()
    finally:
        sys.unraisablehook = hook
    assert not unraisable


def test_damage_is_found_unasked(tmp_path):
    """Any byte of a frame is another: what comes back is right or an error."""
    data = bytes(range(200)) * 3
    frame = bytearray(encoded(data, "lade", chunk_size=256, spec="lz4"))
    path = tmp_path / "f.lade"
    for at in range(len(frame)):
        frame[at] ^= 0x08
        path.write_bytes(frame)
        for source in (path, Pipe(bytes(frame)), io.BytesIO(frame)):
            try:
                with liblade.open(source) as f:
                    assert f.read() == data, at
            except (liblade.Error, EOFError, OSError):
                pass
        frame[at] ^= 0x08
