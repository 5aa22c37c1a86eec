"""What the codecs have in common.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from typing import Any, ClassVar

from .._codec import Codec
from .._errors import CorruptError
from ._buffers import Bytes, pipeline, source, target
from ._numcodecs import NumCodec


class Compressor(NumCodec):  # type: ignore[misc, unused-ignore]
    """A codec from bytes to fewer bytes.  Subclasses say which pipelines encode and decode."""

    codec_id: ClassVar[str]
    _decoder: ClassVar[tuple[str, int]]
    """The pipeline that decodes, and its bitstream kind."""
    _corrupt: ClassVar[str] = ""
    """What messages about corrupt data begin with, where the library's do not name the format."""
    max_buffer_size: int | None = None

    def _pipeline(self, buf: Any) -> tuple[str, int]:
        """The pipeline that encodes a source, and its bitstream kind."""
        raise NotImplementedError

    def encode(self, buf: Any) -> Any:
        """Encodes a buffer: any contiguous memory but that of objects.

        Gives the encoded bytes, NDArrayLike and comparable with bytes.
        Raises TypeError for objects, ValueError for strided memory or too many bytes.
        """
        buf = source(buf, self.max_buffer_size)
        return Bytes(pipeline(*self._pipeline(buf)).encode(buf))

    def decode(self, buf: Any, out: Any = None) -> Any:
        """Decodes a buffer, into 'out' if there is one, which is given back.

        out: writable memory of at least the decoded size; strided arrays too.
        Raises liblade.CorruptError (a RuntimeError) for bytes that are not what encode() gives,
        ValueError for too small an 'out'.
        """
        return self._decode(pipeline(*self._decoder), source(buf, self.max_buffer_size), out)

    def _decode(self, codec: Codec, buf: Any, out: Any) -> Any:
        try:
            if out is None:
                return Bytes(codec.decode(buf))
            codec.decode_into(buf, target(out))
            return out
        except CorruptError as e:
            if not self._corrupt:
                raise
            raise type(e)(f"{self._corrupt}: {e}", e.status, e.offset, e.index) from None
