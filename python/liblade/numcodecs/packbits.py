"""Booleans, eight to a byte.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._errors import CorruptError
from ._buffers import flat, store
from ._numcodecs import NumCodec

_U1, _BOOL = np.dtype("u1"), np.dtype(bool)


class PackBits(NumCodec):  # type: ignore[misc, unused-ignore]
    """A byte that says how many bits of the last byte are not used, then the bits.

    The first element is the highest bit of its byte.  numpy does the work: it packs bits faster
    than the library.
    """

    codec_id = "packbits"

    def encode(self, buf: Any) -> Any:
        """The packed bits, as bytes."""
        arr = flat(buf, _BOOL)
        enc = np.empty((arr.size + 7) // 8 + 1, _U1)
        enc[0] = -arr.size % 8
        enc[1:] = np.packbits(arr)
        return enc

    def decode(self, buf: Any, out: Any = None) -> Any:
        """The booleans, in one dimension, or 'out'."""
        enc = flat(buf, _U1)
        if not enc.size:
            raise CorruptError("packbits: want 1 byte or more, have 0", "LADE_E_TRUNCATED", 0)
        unused = int(enc[0])
        if unused > 7 or (unused and enc.size == 1):
            raise CorruptError(
                f"packbits: {unused} unused bits in {enc.size - 1} bytes of bits",
                "LADE_E_CORRUPT",
                0,
            )
        return store(np.unpackbits(enc[1:], count=(enc.size - 1) * 8 - unused).view(_BOOL), out)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
