"""Buffers for zarr-python, where liblade's settings say.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Self, cast

import numpy as np
import numpy.typing as npt
import zarr
from zarr.core.buffer import core, cpu
from zarr.core.buffer.core import BufferPrototype
from zarr.registry import register_ndbuffer

from .._lade import as_array
from . import _settings


class NDBuffer(core.NDBuffer):
    """Elements in an Array of liblade, on a device or in pinned memory; or in what was given.

    zarr-python makes results by empty(), in the place that the settings of liblade.zarr say
    ("device" without one).  Arrays that are written stay where they are.
    """

    _data: Any

    def __init__(self, array: Any, dtype: npt.DTypeLike | None = None) -> None:
        self._data = array
        if dtype is None:
            dtype = array.dtype
            if not isinstance(dtype, np.dtype):
                dtype = as_array(array).dtype.str
        self._dtype = np.dtype(dtype)

    @classmethod
    def create(
        cls,
        *,
        shape: Iterable[int],
        dtype: npt.DTypeLike,
        order: Literal["C", "F"] = "C",
        fill_value: Any | None = None,
    ) -> Self:
        """An array of one value."""
        if fill_value is None:
            return cls.empty(shape=tuple(shape), dtype=dtype, order=order)
        return cls.from_numpy_array(np.full(tuple(shape), fill_value, np.dtype(dtype)))

    @classmethod
    def empty(
        cls, shape: tuple[int, ...], dtype: npt.DTypeLike, order: Literal["C", "F"] = "C"
    ) -> Self:
        """An array whose elements have no values yet."""
        of = np.dtype(dtype)
        if of.kind in "OT":
            return cls(np.empty(shape, of), of)
        found = _settings.resolve({}, {})
        make = _settings.maker(found.get("place", "device"), found.get("device_budget", 0))
        return cls(make(tuple(shape), of), of)

    @classmethod
    def from_numpy_array(cls, array_like: npt.ArrayLike) -> Self:
        """Elements of numpy, copied to where results land."""
        array = np.ascontiguousarray(array_like)
        made = cls.empty(array.shape, array.dtype)
        made._put(array)
        return made

    @classmethod
    def from_ndarray_like(cls, ndarray_like: Any) -> Self:
        """An array of any library, which stays where it is."""
        return cls(ndarray_like)

    def _put(self, array: npt.NDArray[Any]) -> None:
        """All elements anew, from the host."""
        from .._codec import Codec

        if isinstance(self._data, np.ndarray):
            self._data[...] = array
        elif array.size:
            raw = np.ascontiguousarray(array).reshape(-1).view("u1")
            Codec(algorithm="copy", bitstream_kind=1).decode_into(raw, as_array(self._data))

    @property
    def dtype(self) -> np.dtype[Any]:
        """numpy's type of the elements."""
        return self._dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements of each axis."""
        return tuple(self._data.shape)

    @property
    def byteorder(self) -> Any:
        """As of zarr-python's buffers."""
        from zarr.codecs.bytes import Endian

        return Endian.big if self._dtype.byteorder == ">" else Endian.little

    def as_numpy_array(self) -> npt.NDArray[Any]:
        """The elements on the host."""
        if isinstance(self._data, np.ndarray):
            return self._data
        host = np.asarray(as_array(self._data).cpu())
        return host.view(self._dtype).reshape(self.shape)

    def as_scalar(self) -> Any:
        """The element of an array of one."""
        return self.as_numpy_array()[()]

    def reshape(self, newshape: tuple[int, ...] | Literal[-1]) -> Self:
        """The elements in another shape, copied."""
        return type(self).from_numpy_array(self.as_numpy_array().reshape(newshape))

    def squeeze(self, axis: tuple[int, ...]) -> Self:
        """Without axes of one element."""
        return type(self).from_numpy_array(np.squeeze(self.as_numpy_array(), axis))

    def astype(self, dtype: npt.DTypeLike, order: Literal["K", "A", "C", "F"] = "K") -> Self:
        """The elements as another type."""
        return type(self).from_numpy_array(self.as_numpy_array().astype(dtype, order=order))

    def __getitem__(self, key: Any) -> Self:
        return type(self).from_numpy_array(np.asanyarray(self.as_numpy_array()[key]))

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, core.NDBuffer):
            value = value.as_numpy_array()
        whole = np.array(self.as_numpy_array())
        whole[key] = value
        self._put(whole)

    def all_equal(self, other: Any, equal_nan: bool = True) -> bool:
        """Whether all elements have one value, as zarr-python compares them."""
        return bool(cpu.NDBuffer(self.as_numpy_array()).all_equal(other, equal_nan))

    def fill(self, value: Any) -> None:
        """Sets all elements."""
        self._put(np.full(self.shape, value, self._dtype))

    def copy(self) -> Self:
        """The elements in new memory."""
        return type(self).from_numpy_array(np.array(self.as_numpy_array()))

    def transpose(self, axes: Any) -> Self:
        """The axes in another order, copied."""
        return type(self).from_numpy_array(self.as_numpy_array().transpose(axes))


NDBuffer.__module__ = "liblade.zarr"
NDBuffer.__qualname__ = NDBuffer.__name__ = "NDBuffer"
register_ndbuffer(NDBuffer)

# Encoded bytes and documents stay on the host: the library brings what a device decodes there.
buffer_prototype = BufferPrototype(buffer=cpu.Buffer, nd_buffer=cast("Any", NDBuffer))


def enable_gpu(place: str | None = None) -> Any:
    """Makes zarr-python's results land on a GPU, as liblade.Array, without CuPy.

    Sets the configuration's pipeline and buffers, and gives what zarr.config.set() does, so that
    'with' takes it back.  place: as configure()'s; None: what the settings say, or "device".
    With CuPy, zarr.config.enable_gpu() and the pipeline give arrays of CuPy.
    """
    if place is not None:
        _settings.configure(place=place)
    return zarr.config.set(
        {
            "codec_pipeline.path": "liblade.zarr.CodecPipeline",
            "buffer": "zarr.buffer.cpu.Buffer",
            "ndbuffer": "liblade.zarr.NDBuffer",
        }
    )
