"""What Zlib and GZip share: a decoded size that has to be guessed.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _lade
from .._errors import InputError
from ._base import Compressor
from ._buffers import Bytes, pipeline, size_of, source

# A byte of Deflate gives at most 1032.
_RATIO_MAX = 1032
# Guesses that were too small or far too large, until no more are made.
_MISSES_MAX = 4


class Deflate(Compressor):
    """A codec whose decoded size is not known before decoding."""

    # Of the last buffer that was decoded, and how often that was no help with the next.
    _last = 0
    _misses = 0

    def __init__(self, level: int = 1) -> None:
        self.level = level

    def _pipeline(self, buf: Any) -> tuple[str, int]:
        level = self.level
        if not -1 <= level <= 9:
            raise ValueError(f"{self.codec_id}: level is {level}, want -1 to 9")
        return f"{self.codec_id}({6 if level < 0 else level})", 1

    def _size(self, buf: Any) -> int:
        """A guess of the decoded size; 0: none."""
        raise NotImplementedError

    def decode(self, buf: Any, out: Any = None) -> Any:
        if out is not None or self._misses >= _MISSES_MAX:
            return super().decode(buf, out)
        buf = source(buf)
        if type(buf) is _lade.Array:
            return super().decode(buf)
        codec = pipeline(*self._decoder)
        size = self._size(buf)
        if 0 < size <= _RATIO_MAX * size_of(buf):
            room = np.empty(size, np.uint8)
            try:
                have = codec.decode_into(buf, room)
            except InputError:
                self._misses += 1
            else:
                if have == size:
                    return Bytes(room)
                self._misses += 1
                return Bytes(room[:have].copy())
        dec = codec.decode(buf)
        self._last = dec.buffer_size
        return Bytes(dec)
