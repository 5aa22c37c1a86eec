"""What the filters have in common: pipelines of the library for the types that it has, numpy
with the same arithmetic for the others.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._buffers import flat, pipeline, target
from ._numcodecs import NumCodec


class Filter(NumCodec):  # type: ignore[misc, unused-ignore]
    """A codec between elements of 'dtype' and of 'astype'."""

    dtype: np.dtype[Any]
    astype: np.dtype[Any]

    def _set_types(self, dtype: Any, astype: Any) -> None:
        self.dtype = np.dtype(dtype)
        self.astype = self.dtype if astype is None else np.dtype(astype)
        if self.dtype.hasobject or self.astype.hasobject:
            raise ValueError("object arrays are not supported")

    def _types(self) -> str:
        """Both types, as options of a pipeline."""
        return f"{self.dtype.str},astype={self.astype.str}"

    def _config(self, **more: Any) -> dict[str, Any]:
        return {"id": self.codec_id, **more, "dtype": self.dtype.str, "astype": self.astype.str}

    def _repr(self, text: str = "") -> str:
        if self.astype != self.dtype:
            return (
                f"{type(self).__name__}({text}dtype={self.dtype.str!r}, astype={self.astype.str!r})"
            )
        return f"{type(self).__name__}({text}dtype={self.dtype.str!r})"


def encode(text: str, arr: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A flat array through a pipeline that keeps the count of elements."""
    enc = np.empty(arr.size, dtype)
    pipeline(text).encode_into(arr, enc)
    return enc


def decode(text: str, buf: Any, source: np.dtype[Any], dtype: np.dtype[Any], out: Any) -> Any:
    """The other direction, into 'out' if there is one."""
    enc = flat(buf, source)
    if out is None:
        dec = np.empty(enc.size, dtype)
        pipeline(text).decode_into(enc, dec)
        return dec
    room = target(out)
    size = enc.size * dtype.itemsize
    have = memoryview(room).nbytes if not isinstance(room, np.ndarray) else room.nbytes
    if have != size:
        raise ValueError(f"out: want {size} bytes, have {have}")
    pipeline(text).decode_into(enc, room)
    return out
