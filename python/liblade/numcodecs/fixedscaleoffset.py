"""Reals as integers of a fixed scale and offset.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._errors import InputError
from ._buffers import flat, store
from ._filters import Filter

# Elements that pass through all steps while they are in the processor's cache.
_BLOCK = 16384


class FixedScaleOffset(Filter):
    """round((x - offset) * scale) as another type; lossy.

    dtype: of the decoded elements.
    astype: of the encoded ones.  What does not fit there (NaN, too large) raises, where numcodecs
    stores whatever the processor makes of it.

    numpy calculates, block after block: faster than the library, and with numpy's types in between.
    """

    codec_id = "fixedscaleoffset"

    def __init__(self, offset: float, scale: float, dtype: Any, astype: Any = None) -> None:
        self.offset = offset
        self.scale = scale
        self._set_types(dtype, astype)

    def _between(self, dtype: np.dtype[Any], divide: bool) -> np.dtype[Any] | None:
        """The type of all steps; None where they have not one and the same real type."""
        one = np.zeros(1, dtype)
        with np.errstate(all="ignore"):
            steps = (one / self.scale, one / self.scale + self.offset)
            if not divide:
                steps = (one - self.offset, (one - self.offset) * self.scale)
        first, last = steps[0].dtype, steps[1].dtype
        return first if first == last and first.kind == "f" and first.isnative else None

    def encode(self, buf: Any) -> Any:
        """The encoded elements, in one dimension, in the order of the source's memory.

        Raises ValueError for what 'astype' cannot hold.
        """
        arr = flat(buf, self.dtype)
        between = self._between(self.dtype, False)
        if between is None:
            return np.around((arr - self.offset) * self.scale).astype(self.astype, copy=False)
        enc = np.empty(arr.size, self.astype)
        room = np.empty(min(arr.size, _BLOCK), between)
        limits = _limits(self.astype, between) if self.astype.kind in "iu" else None
        for at in range(0, arr.size, _BLOCK):
            part = arr[at : at + _BLOCK]
            step = room[: part.size]
            np.subtract(part, self.offset, out=step)
            np.multiply(step, self.scale, out=step)
            np.rint(step, out=step)
            if limits is not None and not (step.min() >= limits[0] and step.max() <= limits[1]):
                self._refuse(step, at, limits)
            enc[at : at + _BLOCK] = step
        return enc

    def _refuse(self, step: Any, at: int, limits: tuple[Any, Any]) -> None:
        place = int(np.argmin((step >= limits[0]) & (step <= limits[1])))
        raise InputError(
            f"fixedscaleoffset: element {at + place} becomes {step[place]:g}, "
            f"{self.astype.name} holds {limits[0]:g} to {limits[1]:g}",
            "LADE_E_VALUE",
            (at + place) * self.dtype.itemsize,
        )

    def decode(self, buf: Any, out: Any = None) -> Any:
        """The decoded elements, in one dimension, or 'out'."""
        enc = flat(buf, self.astype)
        between = self._between(self.astype, True)
        if between is None:
            return store(((enc / self.scale) + self.offset).astype(self.dtype, copy=False), out)
        whole = type(out) is np.ndarray and out.dtype == self.dtype and out.size == enc.size
        whole = whole and out.flags.c_contiguous and out.flags.writeable
        dec = out.reshape(-1) if whole else np.empty(enc.size, self.dtype)
        room = None if self.dtype == between else np.empty(min(enc.size, _BLOCK), between)
        for at in range(0, enc.size, _BLOCK):
            part = enc[at : at + _BLOCK]
            step = dec[at : at + _BLOCK] if room is None else room[: part.size]
            np.divide(part, self.scale, out=step)
            np.add(step, self.offset, out=step)
            if room is not None:
                dec[at : at + _BLOCK] = step
        return out if whole else store(dec, out)

    def get_config(self) -> dict[str, Any]:
        """The configuration, ready for JSON."""
        return self._config(scale=self.scale, offset=self.offset)

    def __repr__(self) -> str:
        return self._repr(f"scale={self.scale}, offset={self.offset}, ")


def _limits(dtype: np.dtype[Any], between: np.dtype[Any]) -> tuple[Any, Any]:
    """The least and the largest of the reals that an integer type holds."""
    info = np.iinfo(dtype)
    least, largest = between.type(info.min), between.type(info.max)
    if int(largest) > info.max:
        largest = np.nextafter(largest, between.type(0))
    return least, largest
