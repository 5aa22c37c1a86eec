"""Reals with fewer bits of mantissa.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._buffers import array, pipeline, store
from ._numcodecs import NumCodec

max_bits = {"float16": 10, "float32": 23, "float64": 52}
"""Bits of the mantissa by type."""


class BitRound(NumCodec):  # type: ignore[misc, unused-ignore]
    """Rounds the lowest bits of the mantissa off; lossy.

    keepbits: bits of the mantissa that stay; all of them: nothing changes.
    """

    codec_id = "bitround"

    def __init__(self, keepbits: int) -> None:
        if keepbits < 0:
            raise ValueError("keepbits must be zero or positive")
        self.keepbits = keepbits

    def encode(self, buf: Any) -> Any:
        """The rounded elements in the source's shape and order, as integers of the same size."""
        arr = array(buf)
        if arr.flags.f_contiguous and not arr.flags.c_contiguous:
            return self.encode(arr.T).T
        if arr.dtype.kind != "f" or arr.dtype.itemsize > 8:
            raise TypeError("Only float arrays (16-64bit) can be bit-rounded")
        bits = max_bits[arr.dtype.name]
        if self.keepbits == bits:
            return arr
        if self.keepbits > bits:
            raise ValueError(f"keepbits is {self.keepbits}, {arr.dtype.name} has {bits}")
        native = np.ascontiguousarray(arr, arr.dtype.newbyteorder("<"))
        enc = np.empty(arr.shape, f"<i{arr.dtype.itemsize}")
        text = f"bitround({native.dtype.str},keepbits={self.keepbits})"
        pipeline(text).encode_into(native, enc)
        return enc.astype(arr.dtype.str.replace("f", "i"), copy=False)

    def decode(self, buf: Any, out: Any = None) -> Any:
        """The elements as reals again, a view; or 'out'."""
        arr = array(buf)
        return store(arr.view(arr.dtype.str.replace("i", "f")), out)
