"""Where results are: arrays of numpy, CuPy, torch or liblade.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np

from .. import _lade
from .._errors import InputError

_HOST, _DEVICE = 0, 3


def parse_place(place: Any) -> tuple[int, int]:
    """A kind of memory and a device: None, "host" and "cpu"; "cuda", "device" and "cuda:1"."""
    text = str("host" if place is None else place)
    if text in ("host", "cpu"):
        return _HOST, 0
    name, _, number = text.partition(":")
    if name in ("cuda", "device") and (not number or number.isdecimal()):
        return _DEVICE, int(number or 0)
    raise InputError(f"place is {place!r}, it can be 'host', 'cuda' or 'cuda:1'", "LADE_E_ARG")


class _View:
    """Memory that another object has, as an array of some type and shape."""

    def __init__(self, owner: _lade.Array, dtype: str, shape: tuple[int, ...]) -> None:
        self.owner = owner
        host = owner.place != "device"
        kind = "__array_interface__" if host else "__cuda_array_interface__"
        table = {"shape": shape, "typestr": dtype, "version": 3}
        table["data"] = (owner.ptr, owner.readonly)
        setattr(self, kind, table)
        self.device = owner.device_id


class Space:
    """Arrays of liblade's own; numpy's, CuPy's and torch's derive from it."""

    def __init__(self, place: tuple[int, int], stream: Any) -> None:
        self.kind, self.device = place
        self.stream = stream

    def empty(self, count: int, dtype: str) -> Any:
        size = count * np.dtype(dtype).itemsize
        memory = _lade._empty(size, self.kind, self.device, self.stream)
        return self._shaped(memory, dtype, (count,))

    def upload(self, array: np.ndarray[Any, Any]) -> Any:
        """The same values in this place."""
        memory = _lade.as_array(np.ascontiguousarray(array))
        if self.kind == _DEVICE:
            memory = memory.cuda(True, self.stream, self.device)
        return self._shaped(memory, array.dtype.str, array.shape)

    def _shaped(self, memory: _lade.Array, dtype: str, shape: tuple[int, ...]) -> Any:
        if not math.prod(shape) and self.kind == _DEVICE:
            # An interface of a device's has no address without bytes.
            return memory
        return _lade.as_array(_View(memory, dtype, shape))  # type: ignore[arg-type]

    def shaped(self, array: Any, shape: tuple[int, ...]) -> Any:
        """A view of that shape."""
        return self._shaped(array, array.dtype.str, shape)


class NumpySpace(Space):
    def empty(self, count: int, dtype: str) -> Any:
        return np.empty(count, dtype)

    def upload(self, array: np.ndarray[Any, Any]) -> Any:
        return array

    def shaped(self, array: Any, shape: tuple[int, ...]) -> Any:
        return array.reshape(shape)


class CupySpace(Space):
    def __init__(self, place: tuple[int, int], stream: Any) -> None:
        self.cupy: Any = importlib.import_module("cupy")
        # The pool gives memory in the order of the current stream.
        super().__init__(place, self.cupy.cuda.get_current_stream() if stream is None else stream)

    def empty(self, count: int, dtype: str) -> Any:
        with self.cupy.cuda.Device(self.device):
            return self.cupy.empty(count, dtype)

    def upload(self, array: np.ndarray[Any, Any]) -> Any:
        with self.cupy.cuda.Device(self.device):
            return self.cupy.asarray(array)

    def shaped(self, array: Any, shape: tuple[int, ...]) -> Any:
        return array.reshape(shape)


class TorchSpace(Space):
    def __init__(self, place: tuple[int, int], stream: Any) -> None:
        self.torch: Any = importlib.import_module("torch")
        self.where = f"cuda:{place[1]}" if place[0] == _DEVICE else "cpu"
        if stream is None and place[0] == _DEVICE:
            stream = self.torch.cuda.current_stream(place[1])
        super().__init__(place, stream)

    def empty(self, count: int, dtype: str) -> Any:
        return self.torch.empty(
            count, dtype=getattr(self.torch, np.dtype(dtype).name), device=self.where
        )

    def upload(self, array: np.ndarray[Any, Any]) -> Any:
        return self.torch.from_numpy(np.ascontiguousarray(array)).to(self.where)

    def shaped(self, array: Any, shape: tuple[int, ...]) -> Any:
        return array.reshape(shape)


_LIBRARIES = ("np", "ak", "arrow", "cupy", "torch", "lade")


def make_space(library: str, place: Any, stream: Any) -> Space:
    """What results of a library are made of."""
    if library not in _LIBRARIES:
        raise InputError(
            f"library is {library!r}, it can be {', '.join(map(repr, _LIBRARIES))}", "LADE_E_ARG"
        )
    where = parse_place("cuda" if place is None and library == "cupy" else place)
    on_device = where[0] == _DEVICE
    if library == "np" and on_device:
        raise InputError(
            "arrays of numpy are on the host; library='cupy', 'torch', 'ak', 'arrow' and 'lade' "
            "can be on a device",
            "LADE_E_ARG",
        )
    if library == "cupy" and not on_device:
        raise InputError("arrays of CuPy are on a device, place is 'host'", "LADE_E_ARG")
    if library == "torch":
        return TorchSpace(where, stream)
    if library == "cupy" or (library == "ak" and on_device):
        return CupySpace(where, stream)
    if library == "lade" or on_device:
        return Space(where, stream)
    return NumpySpace(where, stream)
