"""zlib streams (RFC 1950).

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from typing import Any

from ._deflate import Deflate


class Zlib(Deflate):
    """A zlib stream.

    level: 0 (stored) to 9; -1 is 6.
    """

    codec_id = "zlib"
    _decoder = ("zlib", 1)

    def _size(self, buf: Any) -> int:
        # The format does not state it: chunks of one array have one size.
        return self._last
