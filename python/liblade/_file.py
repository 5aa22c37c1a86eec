"""Files of several formats as Python's file objects.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, overload

from . import _lade
from ._arguments import integer, text

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

_BUFFER = 128 << 10
"""Bytes of a file object's buffer: shorter reads and writes go through it, longer ones do not."""

_PIECE = 1 << 20
"""What is decoded at once where the end is not known."""

_WRITTEN = ("lade", "zst", "gz", "lz4")
_READ = (*_WRITTEN, "zz", "sz")
_FLAGS = {
    "r": os.O_RDONLY,
    "w": os.O_WRONLY | os.O_CREAT,
    "x": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
    "a": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
}


class FileInfo(NamedTuple):
    """What a file says about itself; what follows 'size' is None where it is not a frame."""

    format: str
    """'lade', 'zst', 'gz', 'zz', 'lz4' or 'sz'."""
    size: int | None
    """Decoded bytes; None while they are not known."""
    pipeline: str | None
    chunk_size: int | None
    """Decoded bytes of a chunk."""
    dtype: str | None
    """Of the elements, if the frame states it."""
    shape: tuple[int, ...] | None
    fortran_order: bool
    checksum: str | None
    """Which one the chunks have."""


class _RawReader(io.RawIOBase):
    """The decoder, without a buffer."""

    mode = "rb"

    def __init__(self, handle: _lade.Reader, name: Any) -> None:
        self._handle = handle
        self._info = FileInfo(*handle.info())
        self.name = name

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        self._check()
        return self._handle.seekable()

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        return self._handle.readinto(buffer)

    def readall(self) -> bytes:
        data = self._handle.readall()
        if data is not None:
            return data
        # The bytes that BytesIO gives are its own: nothing is copied.
        room = io.BytesIO()
        at = 0
        while True:
            room.seek(at + _PIECE - 1)
            room.write(b"\0")
            with room.getbuffer() as view, view[at:] as part:
                got = self._handle.readinto(part)
            at += got
            if not got:
                break
        room.truncate(at)
        return room.getvalue()

    def tell(self) -> int:
        self._check()
        return self._handle.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._check()
        offset = integer("offset", offset)
        if not self._handle.seekable():
            raise io.UnsupportedOperation("the file can only be read in order")
        if whence == io.SEEK_CUR:
            offset += self._handle.tell()
        elif whence == io.SEEK_END:
            offset += self._size()
        elif whence != io.SEEK_SET:
            raise ValueError(f"whence is {whence}, it can be 0, 1 or 2")
        if offset < 0:
            raise ValueError(f"a seek to {offset}, before the beginning")
        if offset >= 1 << 63:
            raise OverflowError(f"a seek to {offset}, no place in a file: they end at 2**63")
        return self._handle.seek(offset)

    def _size(self) -> int:
        size = self._handle.size()
        return self._handle.seek(2**63 - 1) if size is None else size

    def _check(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")

    def close(self) -> None:
        if not self.closed:
            self._handle.close()
            super().close()


class _RawWriter(io.RawIOBase):
    """The encoder, without a buffer."""

    mode = "wb"

    def __init__(self, handle: _lade.Writer, name: Any) -> None:
        self._handle = handle
        self.name = name
        self.finish = True

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        return self._handle.write(data) if self.finish else memoryview(data).nbytes

    def close(self) -> None:
        if not self.closed:
            try:
                self._handle.close(self.finish)
            finally:
                super().close()


class FileReader(io.BufferedReader):
    """A file that is being decoded: all that io.BufferedReader has, and 'info'.

    read(), readinto(), readline() and iteration give decoded bytes; readinto() of 128 KiB and
    more decodes to the caller's memory.  seek() and tell() count decoded bytes: a .lade file
    decodes only the chunks that are read; in other formats a seek decodes what is skipped,
    from the beginning if it goes back, as gzip.open() does.  A pipe is read in order: seek()
    raises io.UnsupportedOperation.  A seek past the end goes to the end.

    Corrupt and truncated data raise CorruptError from the call that comes to them.
    """

    raw: _RawReader

    @property
    def info(self) -> FileInfo:
        """What the file says about itself."""
        if not isinstance(self.raw, _RawReader):
            raise ValueError("a FileReader is made by open()")
        info = self.raw._info
        return info if info.size is not None else info._replace(size=self.raw._handle.size())


class FileWriter(io.BufferedWriter):
    """A file that is being encoded: all that io.BufferedWriter has.

    close() writes the end.  A with block that an exception leaves does not: readers say then that
    the file is truncated, as it is.
    """

    raw: _RawWriter

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.raw.finish = False
        self.close()


def _dims(shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, Iterable):
        raise TypeError(f"shape is {shape!r}, a list of integers is wanted")
    dims = tuple(integer("shape: a dimension", n) for n in shape)
    if any(not 0 <= n < 1 << 63 for n in dims):
        raise ValueError(f"shape is {dims}, a dimension can be from 0 to {(1 << 63) - 1}")
    return dims


def _open_to_write(path: str | bytes, kind: str) -> tuple[int, bool]:
    """A descriptor, and whether the file was made for it."""
    flags = _FLAGS[kind] | os.O_CLOEXEC
    if kind != "x":
        with contextlib.suppress(FileExistsError):
            return os.open(path, flags | os.O_EXCL, 0o666), True
    return os.open(path, flags, 0o666), kind == "x"


@overload
def open(
    file: str | bytes | os.PathLike[Any] | IO[bytes],
    mode: Literal["r", "rb"] = "rb",
    *,
    format: str | None = None,
    threads: int = 0,
    checksum: bool = True,
    strict: bool = False,
    max_window: int = 0,
) -> FileReader: ...
@overload
def open(
    file: str | bytes | os.PathLike[Any] | IO[bytes],
    mode: Literal["w", "wb", "x", "xb", "a", "ab"],
    *,
    format: str | None = None,
    level: int | None = None,
    spec: str | None = None,
    chunk_size: int = 1 << 20,
    dtype: Any = None,
    shape: Sequence[int] | None = None,
    fortran_order: bool = False,
    threads: int = 0,
    checksum: bool = True,
) -> FileWriter: ...
@overload
def open(
    file: str | bytes | os.PathLike[Any] | IO[bytes],
    mode: str = "rb",
    *,
    format: str | None = None,
    level: int | None = None,
    spec: str | None = None,
    chunk_size: int = 1 << 20,
    dtype: Any = None,
    shape: Sequence[int] | None = None,
    fortran_order: bool = False,
    threads: int = 0,
    checksum: bool = True,
    strict: bool = False,
    max_window: int = 0,
) -> FileReader | FileWriter: ...
def open(
    file: str | bytes | os.PathLike[Any] | IO[bytes],
    mode: str = "rb",
    *,
    format: str | None = None,
    level: int | None = None,
    spec: str | None = None,
    chunk_size: int = 1 << 20,
    dtype: Any = None,
    shape: Sequence[int] | None = None,
    fortran_order: bool = False,
    threads: int = 0,
    checksum: bool = True,
    strict: bool = False,
    max_window: int = 0,
) -> FileReader | FileWriter:
    """Opens a .lade, .zst, .gz or .lz4 file (to read: .zz and .sz, too) of decoded bytes.

    file: a path, or an object with read() (for a seek also seekable(), seek() and tell()) or
        write(), which stays open.
    mode: "rb"; "wb"; "xb", which fails if the file exists; "ab", which adds a frame or member to
        any but .lade.
    format: "lade", "zst", "gz", "lz4" ("zz", "sz").  None: found by the
        first bytes when reading, by the name's end when writing (.lade if it says nothing).
    level: the format's own scale.  For .lade it is Zstandard's, where no spec is given.
    spec: the pipeline of a .lade file, "shuffle(4)|zstd(3)"; "zstd" if it is not given.
    chunk_size: decoded bytes of a chunk of .lade, 16 to 2 GiB - 1.
    dtype, shape, fortran_order: noted in .lade: what the bytes are.  A shape fixes their count.
    threads: at most this number; 0: as many as the process may run.
    checksum: written where the format can have one, and verified.
    strict: as Codec's.  max_window: larger windows and chunks are refused; 0: the formats' bounds.

    Raises OSError for the file, ValueError for an option that cannot be, and when reading
    CorruptError for what is no file of the format.  Refused options leave a file as it is, and make
    none; accepted ones empty it at once for "wb".
    """
    kind = text("mode", mode).replace("b", "", 1)
    if kind not in _FLAGS:
        raise ValueError(f"mode is {mode!r}, it can be 'rb', 'wb', 'xb' or 'ab'")
    known = _READ if kind == "r" else _WRITTEN
    if format is not None and format not in known:
        raise ValueError(f"format is {format!r}, it can be {', '.join(map(repr, known))}")
    threads = integer("threads", threads)
    chunk_size = integer("chunk_size", chunk_size)
    max_window = integer("max_window", max_window)
    if not 0 <= threads <= 4096:
        raise ValueError(f"threads is {threads}, it can be from 0 to 4096")
    if not 16 <= chunk_size < 1 << 31:
        raise ValueError(f"chunk_size is {chunk_size}, it can be from 16 to {(1 << 31) - 1}")
    if not 0 <= max_window < 1 << 62:
        raise ValueError(f"max_window is {max_window}, it can be from 0 to 2**62")
    path = None
    if isinstance(file, (str, bytes, os.PathLike)):
        path = os.fspath(file)
    elif not hasattr(file, method := "read" if kind == "r" else "write"):
        raise TypeError(f"file: {file!r} is neither a path nor an object with {method}()")
    name = path if path is not None else getattr(file, "name", None)
    path_text = os.fsdecode(name) if isinstance(name, (str, bytes)) else ""
    # A lone surrogate stands for a byte that is no text.
    shown = path_text.encode("utf-8", "replace").decode()
    if kind == "r":
        if (level, spec, dtype, shape) != (None,) * 4 or fortran_order:
            raise ValueError("level, spec, dtype, shape and fortran_order are for writing")
        fd = -1 if path is None else os.open(path, _FLAGS[kind] | os.O_CLOEXEC)
        handle = _lade.Reader(fd, file, shown, format or "", threads, checksum, strict, max_window)
        return FileReader(_RawReader(handle, name), _BUFFER)
    if strict or max_window:
        raise ValueError("strict and max_window are for reading")
    if format is None:
        end = os.path.splitext(path_text)[1][1:].lower()
        format = end if end in _WRITTEN else "lade"
        if end in _READ and end not in _WRITTEN:
            raise ValueError(f"{path_text}: a .{end} file can be read, not written")
    if format != "lade":
        if (spec, dtype, shape) != (None,) * 3 or fortran_order:
            raise ValueError(f"spec, dtype, shape and fortran_order are of .lade, not of .{format}")
        if level == 0:
            raise ValueError("level is 0; None stands for the format's default")
    elif kind == "a":
        raise ValueError("a .lade file cannot be added to: its index stands at its end")
    elif level is not None and spec is not None:
        raise ValueError("level stands in the spec itself")
    if level is not None and not -(1 << 31) < integer("level", level) < 1 << 31:
        raise ValueError(f"level is {level}")
    if spec is not None:
        text("spec", spec)
    if dtype is not None and not isinstance(dtype, str):
        given, dtype = dtype, getattr(dtype, "str", dtype)
        if not isinstance(dtype, str):
            raise TypeError(f"dtype: {given!r} is neither a dtype nor the name of one")
    dims = None if shape is None else _dims(shape)
    fd, made = (-1, False) if path is None else _open_to_write(path, kind)
    try:
        writer = _lade.Writer(
            fd,
            file,
            shown,
            format,
            threads,
            checksum,
            level or 0,
            spec or ("zstd" if level is None else f"zstd({level})"),
            chunk_size,
            dtype,
            dims,
            fortran_order,
        )
    except BaseException:
        if path is not None and made:
            os.unlink(path)
        raise
    return FileWriter(_RawWriter(writer, name), _BUFFER)
