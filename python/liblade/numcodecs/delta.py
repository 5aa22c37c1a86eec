"""Differences of adjacent elements.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._buffers import flat, store
from ._filters import Filter, decode, encode, little


class Delta(Filter):
    """The first element, then the difference of each one to the one before.

    dtype: of the decoded elements.
    astype: of the encoded ones; must be able to hold them, which is not checked.
    """

    codec_id = "delta"

    def __init__(self, dtype: Any, astype: Any = None) -> None:
        self._set_types(dtype, astype)

    def _ours(self) -> bool:
        return little(self.dtype, "iuf") and little(self.astype, "iuf")

    def encode(self, buf: Any) -> Any:
        """The encoded elements, in one dimension, in the order of the source's memory."""
        arr = flat(buf, self.dtype)
        if self._ours():
            return encode(f"delta({self._types()})", arr, self.astype)
        enc = np.empty(arr.size, self.astype)
        enc[:1] = arr[:1]
        enc[1:] = np.diff(arr)
        return enc

    def decode(self, buf: Any, out: Any = None) -> Any:
        """The decoded elements, in one dimension, or 'out'."""
        if self._ours():
            return decode(f"delta({self._types()})", buf, self.astype, self.dtype, out)
        enc = flat(buf, self.astype)
        dec = np.empty(enc.size, self.dtype)
        if self.dtype.kind == "b":
            np.logical_xor.accumulate(enc != 0, out=dec)  # their difference is "not equal"
        else:
            np.cumsum(enc, out=dec)
        return store(dec, out)

    def get_config(self) -> dict[str, Any]:
        """The configuration, ready for JSON."""
        return self._config()

    def __repr__(self) -> str:
        return self._repr()
