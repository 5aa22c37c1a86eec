"""gzip members (RFC 1952).

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._buffers import flat
from ._deflate import Deflate

_U1 = np.dtype("u1")


class GZip(Deflate):
    """One gzip member, without a name or time; any number of members is decoded.

    level: 0 (stored) to 9; -1 is 6.
    """

    codec_id = "gzip"
    _decoder = ("gzip", 1)

    def _size(self, buf: Any) -> int:
        # The last 4 bytes are the size of the last member: all, if there is but one.
        return int.from_bytes(flat(buf, _U1)[-4:].tobytes(), "little")
