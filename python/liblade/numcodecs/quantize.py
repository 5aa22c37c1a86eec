"""Reals of so many decimal digits.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ._buffers import pipeline, store, typed
from ._filters import Filter, decode, little


class Quantize(Filter):
    """Rounds reals to a power of two below 10**-digits; lossy.

    dtype: of the decoded elements, a real one.
    astype: of the encoded ones, a real one.
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

    def _pipeline(self) -> str | None:
        """None where numpy is to calculate."""
        if not all(little(t, "f") and t.itemsize >= 4 for t in (self.dtype,)):
            return None
        if not little(self.astype, "f") or not isinstance(self.digits, int):
            return None
        if not -30 <= self.digits <= 30:
            return None
        if self._scale() != 2.0 ** math.ceil(math.log2(10.0**self.digits)):
            return None
        return f"quantize({self.dtype.str},digits={self.digits},astype={self.astype.str})"

    def encode(self, buf: Any) -> Any:
        """The encoded elements, in the source's shape and order."""
        arr = typed(buf, self.dtype)
        text = self._pipeline()
        if text is None:
            scale = self._scale()
            return (np.around(scale * arr) / scale).astype(self.astype, copy=False)
        enc = np.empty_like(arr, dtype=self.astype)
        pipeline(text).encode_into(arr.reshape(-1, order="A"), enc.reshape(-1, order="A"))
        return enc

    def decode(self, buf: Any, out: Any = None) -> Any:
        """The elements as 'dtype', or 'out'."""
        text = self._pipeline()
        if out is not None and text is not None:
            return decode(text, buf, self.astype, self.dtype, out)
        dec = typed(buf, self.astype).astype(self.dtype, copy=False)
        return store(dec, out)

    def get_config(self) -> dict[str, Any]:
        """The configuration, ready for JSON."""
        return self._config(digits=self.digits)

    def __repr__(self) -> str:
        return self._repr(f"digits={self.digits}, ")
