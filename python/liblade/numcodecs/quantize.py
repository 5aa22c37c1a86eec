"""Reals of so many decimal digits.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ._buffers import store, typed
from ._filters import Filter


class Quantize(Filter):
    """Rounds reals to a power of two below 10**-digits; lossy.

    dtype: of the decoded elements, a real one.
    astype: of the encoded ones, a real one.

    numpy calculates, in place: faster than the library.
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
        enc = np.asarray(scale * arr)
        if enc.dtype.itemsize < 4 or not 2.0**-100 < scale < 2.0**100:
            return np.asarray(np.around(enc) / scale).astype(self.astype, copy=False)
        np.rint(enc, out=enc)
        # A power of two: the products are the quotients.
        np.multiply(enc, 1 / scale, out=enc)
        return enc.astype(self.astype, copy=False)

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
