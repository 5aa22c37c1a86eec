"""The bytes of elements, the first of all, then the second of all, and so on.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._buffers import pipeline, size_of, source, target
from ._numcodecs import NumCodec

# The library's limit; numpy transposes larger elements.
_SIZE_MAX = 255


class Shuffle(NumCodec):  # type: ignore[misc, unused-ignore]
    """Shuffles whole elements only.

    elementsize: bytes; 1 and below: the bytes as they are.
    """

    codec_id = "shuffle"

    def __init__(self, elementsize: int = 4) -> None:
        self.elementsize = elementsize

    def _run(self, buf: Any, out: Any, encode: bool) -> Any:
        buf = source(buf)
        size, count = self.elementsize, size_of(buf)
        if size > 1 and count % size:
            raise ValueError(f"shuffle: {count} bytes are no multiple of elementsize, {size}")
        given = out is not None
        room = target(out) if given else np.empty(count, np.uint8)
        if size > _SIZE_MAX:
            shape = (-1, size) if encode else (size, -1)
            moved = np.frombuffer(buf, np.uint8).reshape(shape).T
            buf, size = np.ascontiguousarray(moved), 1
        codec = pipeline(f"shuffle({size})" if size > 1 else "copy")
        if encode:
            codec.encode_into(buf, room)
        else:
            codec.decode_into(buf, room)
        return out if given else room

    def encode(self, buf: Any, out: Any = None) -> Any:
        """The shuffled bytes, or 'out'.  Raises ValueError for a partial element."""
        return self._run(buf, out, True)

    def decode(self, buf: Any, out: Any = None) -> Any:
        """The elements' bytes, or 'out'.  Raises ValueError for a partial element."""
        return self._run(buf, out, False)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(elementsize={self.elementsize})"
