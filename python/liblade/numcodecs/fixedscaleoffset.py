"""Reals as integers of a fixed scale and offset.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ._buffers import flat, store
from ._filters import Filter, decode, encode, little, number


class FixedScaleOffset(Filter):
    """round((x - offset) * scale) as another type; lossy.

    dtype: of the decoded elements.
    astype: of the encoded ones.  What does not fit there (NaN, too large) raises, where numcodecs
    stores whatever the processor makes of it.
    """

    codec_id = "fixedscaleoffset"

    def __init__(self, offset: float, scale: float, dtype: Any, astype: Any = None) -> None:
        self.offset = offset
        self.scale = scale
        self._set_types(dtype, astype)

    def _pipeline(self, real: np.dtype[Any]) -> str | None:
        """None where numpy is to calculate: with half precision, and with integers all the way."""
        if not little(self.dtype, "iuf") or not little(self.astype, "iuf"):
            return None
        if real.kind == "f" and real.itemsize < 4:
            return None
        try:
            scale, offset = float(self.scale), float(self.offset)
        except (TypeError, ValueError, OverflowError):
            return None
        exact = isinstance(self.scale, float) and isinstance(self.offset, float)
        if real.kind != "f" and not exact:
            return None
        if not math.isfinite(scale) or not math.isfinite(offset) or scale == 0:
            return None
        return f"fixedscaleoffset({self._types()},scale={number(scale)},offset={number(offset)})"

    def encode(self, buf: Any) -> Any:
        """The encoded elements, in one dimension, in the order of the source's memory."""
        arr = flat(buf, self.dtype)
        text = self._pipeline(self.dtype)
        if text:
            return encode(text, arr, self.astype)
        return np.around((arr - self.offset) * self.scale).astype(self.astype, copy=False)

    def decode(self, buf: Any, out: Any = None) -> Any:
        """The decoded elements, in one dimension, or 'out'."""
        text = self._pipeline(self.astype)
        if text:
            return decode(text, buf, self.astype, self.dtype, out)
        enc = flat(buf, self.astype)
        return store(((enc / self.scale) + self.offset).astype(self.dtype, copy=False), out)

    def get_config(self) -> dict[str, Any]:
        """The configuration, ready for JSON."""
        return self._config(scale=self.scale, offset=self.offset)

    def __repr__(self) -> str:
        return self._repr(f"scale={self.scale}, offset={self.offset}, ")
