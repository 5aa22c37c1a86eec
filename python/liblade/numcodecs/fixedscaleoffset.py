"""Reals as integers of a fixed scale and offset.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._buffers import flat, store
from ._filters import Filter


class FixedScaleOffset(Filter):
    """round((x - offset) * scale) as another type; lossy.

    dtype: of the decoded elements.
    astype: of the encoded ones.  What does not fit there (NaN, too large) becomes what numpy makes
    of it, as with numcodecs; the stage "fixedscaleoffset" of liblade.Codec refuses it.

    numpy calculates, in place: faster than the library, which checks each value.
    """

    codec_id = "fixedscaleoffset"

    def __init__(self, offset: float, scale: float, dtype: Any, astype: Any = None) -> None:
        self.offset = offset
        self.scale = scale
        self._set_types(dtype, astype)

    def encode(self, buf: Any) -> Any:
        """The encoded elements, in one dimension, in the order of the source's memory."""
        arr = flat(buf, self.dtype)
        enc = arr - self.offset
        enc = _step(np.multiply, enc, self.scale)
        enc = np.rint(enc, out=enc) if enc.dtype.kind == "f" else np.around(enc)
        return enc.astype(self.astype, copy=False)

    def decode(self, buf: Any, out: Any = None) -> Any:
        """The decoded elements, in one dimension, or 'out'."""
        dec = _step(np.add, flat(buf, self.astype) / self.scale, self.offset)
        if type(out) is np.ndarray and out.shape == dec.shape and out.dtype == self.dtype:
            np.copyto(out, dec, casting="unsafe")
            return out
        return store(dec.astype(self.dtype, copy=False), out)

    def get_config(self) -> dict[str, Any]:
        """The configuration, ready for JSON."""
        return self._config(scale=self.scale, offset=self.offset)

    def __repr__(self) -> str:
        return self._repr(f"scale={self.scale}, offset={self.offset}, ")


def _step(function: Any, arr: np.ndarray[Any, Any], value: Any) -> np.ndarray[Any, Any]:
    """function(arr, value), in the same memory where that gives the same type."""
    if arr.dtype.kind == "f" and type(value) in (int, float):
        return function(arr, value, out=arr)  # type: ignore[no-any-return]
    return function(arr, value)  # type: ignore[no-any-return]
