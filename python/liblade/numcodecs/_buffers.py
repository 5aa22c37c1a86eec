"""What every codec here does with buffers: sources, destinations, results.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from .. import _lade
from .._codec import Codec
from ._numcodecs import ensure_contiguous_ndarray_like, ensure_ndarray_like

_U1 = np.dtype("u1")
# Type characters whose arrays are buffers as they are: no objects, records, times.
_PLAIN = frozenset("?bBhHiIlLqQefdgFDGSU")


@lru_cache(maxsize=512)
def pipeline(text: str, kind: int = 1, threads: int = 1) -> Codec:
    """The codec of a pipeline, without a container of ours around it.

    One thread for an array, unless set otherwise: who calls these codecs (Zarr, Dask) has
    threads of their own, one for each chunk.
    """
    return Codec(algorithm=text, bitstream_kind=kind, threads=threads)


class Bytes:
    """Encoded or decoded bytes: the buffer protocol, numcodecs' NDArrayLike, and what is wanted
    of bytes: comparing, joining, slicing.

    It is the memory that the library has written, not a copy.  Views of it (view(), reshape(),
    numpy.asarray()) are plain numpy arrays.
    """

    __slots__ = ("_buffer",)
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    dtype = _U1
    ndim = 1
    itemsize = 1
    strides = (1,)

    def __init__(self, buffer: Any) -> None:
        self._buffer = buffer

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(self._buffer)

    def _array(self) -> np.ndarray[Any, Any]:
        return np.frombuffer(self._buffer, _U1) if len(self) else np.empty(0, _U1)

    def __len__(self) -> int:
        return memoryview(self._buffer).nbytes

    size = nbytes = property(__len__)

    @property
    def shape(self) -> tuple[int]:
        """Their count, as a tuple."""
        return (len(self),)

    @property
    def flags(self) -> Any:
        """numpy's flags."""
        return self._array().flags

    def view(self, dtype: Any = _U1) -> np.ndarray[Any, Any]:
        """The bytes as an array of another type; nothing is copied."""
        return self._array().view(dtype)

    def reshape(self, *shape: Any, order: Any = "C") -> np.ndarray[Any, Any]:
        """The bytes as an array of another shape; nothing is copied."""
        return self._array().reshape(*shape, order=order)

    def tobytes(self, order: Any = None) -> bytes:
        """A copy, as bytes."""
        return bytes(memoryview(self._buffer))

    __bytes__ = tobytes

    def __getitem__(self, key: Any) -> Any:
        got = memoryview(self._buffer)[key]
        return got if isinstance(got, int) else Bytes(got)

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, slice):
            value = memoryview(np.asarray(value, _U1))
        memoryview(self._buffer)[key] = value

    def __iter__(self) -> Iterator[int]:
        return iter(memoryview(self._buffer))

    def __contains__(self, item: Any) -> bool:
        return item in self.tobytes()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (bytes, bytearray)):
            return self.tobytes() == other
        if isinstance(other, (Bytes, memoryview)):
            return self.tobytes() == bytes(other)
        return NotImplemented

    def __add__(self, other: Any) -> bytes:
        return self.tobytes() + other if isinstance(other, bytes) else self.tobytes() + bytes(other)

    def __radd__(self, other: Any) -> Any:
        return other + self.tobytes()

    def __mul__(self, count: int) -> bytes:
        return self.tobytes() * count

    __rmul__ = __mul__

    def __repr__(self) -> str:
        text = repr(self[:32].tobytes()) if len(self) > 32 else repr(self.tobytes())
        return f"<Bytes {text}{'...' if len(self) > 32 else ''}, {len(self)} bytes>"

    def __reduce__(self) -> tuple[type[Bytes], tuple[bytes]]:
        return Bytes, (self.tobytes(),)


def source(buf: Any, limit: int | None = None) -> Any:
    """A source as the library takes it: contiguous, in the order of its memory, and no objects.

    Raises TypeError for what has no memory to share and for arrays of objects, ValueError for
    memory that is not contiguous and for more than 'limit' bytes.  Nothing is copied.
    """
    kind = type(buf)
    if kind is bytes or kind is bytearray:
        size = len(buf)
    elif kind is np.ndarray and buf.dtype.char in _PLAIN and buf.flags.c_contiguous:
        size = buf.nbytes
    else:
        if kind is Bytes:
            buf = buf._buffer
        if type(buf) is _lade.Array:
            size = buf.buffer_size
        else:
            buf = ensure_contiguous_ndarray_like(buf)
            if getattr(buf.dtype, "hasobject", False):
                raise TypeError("object arrays are not supported")
            size = buf.nbytes
    if limit is not None and size > limit:
        raise ValueError(f"this codec takes buffers of at most {limit} bytes, this one has {size}")
    return buf


def target(out: Any) -> Any:
    """A destination as the library takes it; strided arrays are written row by row."""
    if type(out) is bytearray or type(out) is memoryview or type(out) is _lade.Array:
        return out
    if type(out) is Bytes:
        return out._buffer
    out = ensure_ndarray_like(out)
    if getattr(out.dtype, "hasobject", False):
        raise TypeError("out: object arrays are not supported")
    flags = out.flags
    if flags.f_contiguous and not flags.c_contiguous:
        # In the order of its memory, as Zarr stores such arrays.
        return out.reshape(-1, order="A")
    if not flags.c_contiguous and out.dtype.kind in "Mm":
        return out.view("i8")
    return out


def size_of(buf: Any) -> int:
    """The bytes of what source() gave."""
    if type(buf) is bytes or type(buf) is bytearray:
        return len(buf)
    return buf.buffer_size if type(buf) is _lade.Array else buf.nbytes


def flat(buf: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A source as a flat array of a type, in the order of its memory.

    Arrays that are not contiguous are copied.
    """
    if type(buf) is np.ndarray and buf.dtype is dtype and buf.ndim == 1 and buf.flags.c_contiguous:
        return buf
    if type(buf) is bytes and buf:
        return np.frombuffer(buf, dtype)
    arr = array(buf)
    return (arr if arr.ndim == 1 else arr.reshape(-1, order="A")).view(dtype)


def store(dec: np.ndarray[Any, Any], out: Any) -> Any:
    """What numpy has decoded, into 'out' if there is one."""
    if out is None:
        return dec
    room = target(out)
    if not isinstance(room, np.ndarray):
        room = np.frombuffer(room, _U1)
    if room.nbytes != dec.nbytes:
        raise ValueError(f"out: want {dec.nbytes} bytes, have {room.nbytes}")
    # In the order of both memories, as target() has that of 'out'.
    dec = dec.reshape(-1, order="A")
    if room.flags.c_contiguous and dec.dtype == room.dtype:
        room = room.reshape(-1)
    else:
        dec = dec.view(room.dtype).reshape(room.shape)
    np.copyto(room, dec)
    return out


def array(buf: Any) -> np.ndarray[Any, Any]:
    """A source as an array of its own type and shape."""
    if type(buf) is bytes:
        return np.frombuffer(buf, _U1) if buf else np.empty(0, _U1)
    if type(buf) is np.ndarray:
        arr = buf
    elif type(buf) is Bytes or type(buf) is _lade.Array:
        arr = np.asarray(buf)
    else:
        arr = np.asarray(ensure_ndarray_like(buf))
    if arr.dtype.hasobject:
        raise TypeError("object arrays are not supported")
    return arr


def typed(buf: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A source as an array of a type, in its own shape where the sizes of elements agree."""
    return array(buf).view(dtype)
