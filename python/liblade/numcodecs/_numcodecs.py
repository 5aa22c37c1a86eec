"""What is taken from numcodecs, which has no types.

SPDX-License-Identifier: Apache-2.0
"""

# mypy: disable-error-code="import-untyped, import-not-found, unused-ignore"

from numcodecs.abc import Codec as NumCodec
from numcodecs.compat import ensure_contiguous_ndarray_like, ensure_ndarray_like
from numcodecs.registry import codec_registry, register_codec

__all__ = [
    "NumCodec",
    "codec_registry",
    "ensure_contiguous_ndarray_like",
    "ensure_ndarray_like",
    "register_codec",
]
