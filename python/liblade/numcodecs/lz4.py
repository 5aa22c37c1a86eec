"""LZ4 with numcodecs' four bytes of size in front.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._codec import Codec
from .._errors import InputError
from ._base import Compressor
from ._buffers import flat

DEFAULT_ACCELERATION = 1
_U1 = np.dtype("u1")
_WITH_SIZE = 2
_ACCELERATION_MAX = 65536


class LZ4(Compressor):
    """LZ4, each buffer one block behind its decoded size (4 bytes, little-endian).

    acceleration: the larger, the faster and the less compressed; 1 and below are the default.
    """

    codec_id = "lz4"
    max_buffer_size = 0x7E000000
    _decoder = ("lz4", _WITH_SIZE)
    _corrupt = "LZ4 decompression error"

    def __init__(self, acceleration: int = DEFAULT_ACCELERATION) -> None:
        self.acceleration = acceleration

    def _pipeline(self, buf: Any) -> tuple[str, int]:
        # liblz4 takes what is above its limit as the limit.
        level = 1 - min(max(self.acceleration, 1), _ACCELERATION_MAX)
        return ("lz4" if level == 0 else f"lz4({level})"), _WITH_SIZE

    def _decode(self, codec: Codec, buf: Any, out: Any) -> Any:
        if isinstance(out, np.ndarray) and not out.flags.forc:
            # Rows that are too few look to the library like bytes that are too many.
            want = int.from_bytes(flat(buf, _U1)[:4].tobytes(), "little")
            if out.nbytes < want:
                raise InputError(f"lz4: want {want} bytes, have {out.nbytes}", "LADE_E_NOSPACE")
        return super()._decode(codec, buf, out)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(acceleration={self.acceleration!r})"


def compress(source: Any, acceleration: int = DEFAULT_ACCELERATION) -> Any:
    """Encodes a buffer, as LZ4(acceleration) does."""
    return LZ4(acceleration).encode(source)


def decompress(source: Any, dest: Any = None) -> Any:
    """Decodes a buffer, into 'dest' if there is one."""
    return LZ4().decode(source, dest)
