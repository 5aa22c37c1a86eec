"""Reals of so many decimal digits.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ._buffers import store, typed
from ._filters import Filter

# Elements that pass through all steps while they are in the processor's cache.
_BLOCK = 16384


class Quantize(Filter):
    """Rounds reals to a power of two below 10**-digits; lossy.

    dtype: of the decoded elements, a real one.
    astype: of the encoded ones, a real one.

    numpy calculates, block after block: faster than the library.
    """

    codec_id = "quantize"

    def __init__(self, digits: int, dtype: Any, astype: Any = None) -> None:
        self.digits = digits
        self.dtype = np.dtype(dtype)
        self.astype = self.dtype if astype is None else np.dtype(astype)
        if self.dtype.kind != "f" or self.astype.kind != "f":
            raise ValueError("only floating point data types are supported")

    def _scale(self) -> float:
        # numcodecs' way to it: for some digits another power of two than the shortest way's.
        exponent = math.log10(10.0**-self.digits)
        exponent = math.floor(exponent) if exponent < 0 else math.ceil(exponent)
        return 2.0 ** math.ceil(math.log2(10.0**-exponent))

    def encode(self, buf: Any) -> Any:
        """The encoded elements, in the source's shape and order."""
        arr = typed(buf, self.dtype)
        scale = self._scale()
        if not (arr.flags.forc and self.dtype.isnative and self.dtype.itemsize >= 4):
            return (np.around(scale * arr) / scale).astype(self.astype, copy=False)
        enc = np.empty_like(arr, dtype=self.astype)
        source, target = arr.reshape(-1, order="A"), enc.reshape(-1, order="A")
        room = None if self.astype == self.dtype else np.empty(min(arr.size, _BLOCK), self.dtype)
        for at in range(0, arr.size, _BLOCK):
            part = source[at : at + _BLOCK]
            step = target[at : at + _BLOCK] if room is None else room[: part.size]
            np.multiply(part, scale, out=step)
            np.rint(step, out=step)
            np.divide(step, scale, out=step)
            if room is not None:
                target[at : at + _BLOCK] = step
        return enc

    def decode(self, buf: Any, out: Any = None) -> Any:
        """The elements as 'dtype', or 'out'."""
        dec = typed(buf, self.astype)
        if self.astype != self.dtype:
            dec = dec.astype(self.dtype)
        return dec if out is None else store(dec, out)

    def get_config(self) -> dict[str, Any]:
        """The configuration, ready for JSON."""
        return self._config(digits=self.digits)

    def __repr__(self) -> str:
        return self._repr(f"digits={self.digits}, ")
