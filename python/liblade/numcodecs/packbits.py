"""Booleans, eight to a byte.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._buffers import flat, pipeline, target
from ._numcodecs import NumCodec

_U1, _BOOL = np.dtype("u1"), np.dtype(bool)


class PackBits(NumCodec):  # type: ignore[misc, unused-ignore]
    """A byte that tells how many bits of the last byte are not used, then the bits.

    The first element is the highest bit of its byte.
    """

    codec_id = "packbits"

    def encode(self, buf: Any) -> Any:
        """The packed bits, as bytes."""
        arr = flat(buf, _BOOL)
        enc = np.empty((arr.size + 7) // 8 + 1, _U1)
        pipeline("packbits").encode_into(arr, enc)
        return enc

    def decode(self, buf: Any, out: Any = None) -> Any:
        """The booleans, in one dimension, or 'out'."""
        enc = flat(buf, _U1)
        codec = pipeline("packbits")
        if out is not None:
            room = target(out)
            codec.decode_into(enc, room)
            return out
        count = (enc.size - 1) * 8 - int(enc[0]) if enc.size else 0
        dec = np.empty(max(count, 0), _BOOL)
        codec.decode_into(enc, dec)
        return dec

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
