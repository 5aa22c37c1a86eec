"""Streams, memory of others, and allocators.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._arguments import integer


def _device(given: Any) -> int:
    number = integer("device_idx", given)
    if not -1 <= number < 1 << 31:
        raise ValueError(f"device_idx is {number}, it can be from -1 to {(1 << 31) - 1}")
    return number


class CudaStream:
    """A stream of a device: borrowed from somebody, or made here and freed with the object."""

    __slots__ = ("__weakref__", "_device", "_owner", "_ptr")
    _device: int
    _owner: object  # a capsule, which frees the stream when the last has gone that holds it
    _ptr: int

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError("use CudaStream.borrow() or CudaStream.make_new()")

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in self.__slots__:
                raise RuntimeError("use CudaStream.borrow() or CudaStream.make_new()")
            raise AttributeError(f"'CudaStream' object has no attribute {name!r}")

    @classmethod
    def borrow(cls, cuda_stream: int | Any, device_idx: int = -1) -> CudaStream:
        """A stream that is somebody else's: its handle, or CuPy's, torch's or numba's object."""
        from . import _lade

        self = cls.__new__(cls)
        self._ptr = _lade._stream_handle(cuda_stream)
        self._device = _device(device_idx)
        self._owner = None
        return self

    @classmethod
    def make_new(cls, device_idx: int = -1) -> CudaStream:
        """A new stream; DeviceError without a GPU."""
        from . import _lade

        self = cls.__new__(cls)
        self._device = max(_device(device_idx), 0)
        self._ptr, self._owner = _lade._stream_new(self._device)
        return self

    def synchronize(self) -> None:
        """Waits for all work that was enqueued before."""
        from . import _lade

        _lade._stream_wait(max(self._device, 0), self._ptr)

    @property
    def ptr(self) -> int:
        """The handle: a CUstream, or cudaStream_t."""
        return self._ptr

    @property
    def device(self) -> int:
        """The number of its device; -1: the current one."""
        return self._device

    @property
    def is_special(self) -> bool:
        """True for the default streams, whose handles are 0, 1 and 2."""
        return self._ptr <= 2

    def __int__(self) -> int:
        return self._ptr

    def __repr__(self) -> str:
        return f"<liblade.CudaStream {self._ptr:#x} on device {self._device}>"


class ExternalMemory:
    """Memory of another allocator with its stream, which is kept alive as long.

    'memory' has the address as .ptr (CuPy's MemoryPointer, RMM's DeviceBuffer), or is the address.
    """

    __slots__ = ("_memory", "_stream")

    def __init__(self, memory: Any, stream: CudaStream | Any = None) -> None:
        self._memory = memory
        self._stream = stream

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in self.__slots__:
                raise RuntimeError("ExternalMemory.__init__() was not called")
            raise AttributeError(f"'ExternalMemory' object has no attribute {name!r}")

    @property
    def ptr(self) -> int:
        """The address."""
        return integer("ptr", getattr(self._memory, "ptr", self._memory))

    @property
    def memory(self) -> Any:
        """What was wrapped."""
        return self._memory

    @property
    def stream(self) -> Any:
        """The stream that orders its use."""
        return self._stream

    def __repr__(self) -> str:
        return f"<liblade.ExternalMemory {self._memory!r}>"


Allocator = Callable[[int, CudaStream], Any]


def set_device_allocator(allocator: Allocator | None = None) -> None:
    """Results on devices come from allocator(nbytes, stream), an object with .ptr, from now on.

    The memory is given back when the object dies.  None: liblade's own pool again.
    """
    from . import _lade

    _lade._set_allocator(0, allocator)


def set_pinned_allocator(allocator: Allocator | None = None) -> None:
    """The same for pinned memory."""
    from . import _lade

    _lade._set_allocator(1, allocator)


def set_host_allocator(allocator: Allocator | None = None) -> None:
    """The same for results on the host."""
    from . import _lade

    _lade._set_allocator(2, allocator)
