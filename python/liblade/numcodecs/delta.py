"""Differences of adjacent elements.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._buffers import flat, store
from ._filters import Filter, decode, encode


class Delta(Filter):
    """The first element, then the difference of each one to the one before.

    dtype: of the decoded elements.
    astype: of the encoded ones.  encode() raises for an element or a difference that does not fit.
    """

    codec_id = "delta"

    def __init__(self, dtype: Any, astype: Any = None) -> None:
        self._set_types(dtype, astype)

    def _pipeline(self) -> str | None:
        """The library's filters for the types, or None: then numpy does it."""
        if any(t.kind not in "iuf" or t.itemsize > 8 for t in (self.dtype, self.astype)):
            return None
        before = f"byteswap({self.dtype.itemsize})|" if self.dtype.str[0] == ">" else ""
        after = f"|byteswap({self.astype.itemsize})" if self.astype.str[0] == ">" else ""
        return before + f"delta({self._types()})".replace(">", "<") + after

    def encode(self, buf: Any) -> Any:
        """The encoded elements, in one dimension, in the order of the source's memory."""
        arr = flat(buf, self.dtype)
        if arr.size and self.dtype != self.astype:
            np.empty(1, self.astype)[0] = arr[0]  # raises as numcodecs does
        if pipeline := self._pipeline():
            return encode(pipeline, arr, self.astype)
        enc = np.empty(arr.size, self.astype)
        enc[:1] = arr[:1]
        steps = np.diff(arr)
        enc[1:] = steps
        self._check(arr, steps, enc)
        return enc

    def _check(self, arr: Any, steps: Any, enc: Any) -> None:
        """Raises ValueError for what numpy has not stored as it was."""
        if self.dtype.kind in "biumM" and self.astype.kind in "biumM":
            word = f"u{self.dtype.itemsize}"
            bad = self._sum(enc).view(word) != arr.view(word)
        else:
            want = np.concatenate((arr[:1], steps))
            if self.astype.kind in "fc":
                bad = np.isfinite(want) & ~np.isfinite(enc)  # reals may be rounded
            else:
                bad = enc.astype(want.real.dtype) != np.trunc(want.real)
            if self.astype.kind != "c":
                bad |= want.imag != 0
        if bad.any():
            raise ValueError(
                f"delta: element {bad.argmax()} of type {self.dtype.str} does not come back "
                f"from type {self.astype.str}"
            )

    def decode(self, buf: Any, out: Any = None) -> Any:
        """The decoded elements, in one dimension, or 'out'."""
        if pipeline := self._pipeline():
            return decode(pipeline, buf, self.astype, self.dtype, out)
        return store(self._sum(flat(buf, self.astype)), out)

    def _sum(self, enc: Any) -> Any:
        dec = np.zeros(enc.size, self.dtype)  # numpy converts what 'out' holds, and may not like it
        if self.dtype.kind == "b":
            return np.logical_xor.accumulate(enc != 0, out=dec)  # their difference is "not equal"
        # Points in time cannot be added up; the time from 1970 to each can.
        np.cumsum(_spans(enc), out=_spans(dec))
        return dec

    def get_config(self) -> dict[str, Any]:
        """The configuration, ready for JSON."""
        return self._config()

    def __repr__(self) -> str:
        return self._repr()


def _spans(arr: Any) -> Any:
    """Points in time as spans of time, other elements as they are; nothing is copied."""
    return arr.view(arr.dtype.str.replace("M", "m")) if arr.dtype.kind == "M" else arr
