"""numcodecs' codecs, done by liblade: the same names, options and bytes.

Importing this changes nothing; register() puts the codecs into numcodecs' registry, where Zarr
and others find them.  Needs numpy and numcodecs.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import blosc
from .bitround import BitRound
from .blosc import Blosc
from .checksum32 import CRC32, CRC32C, Adler32, JenkinsLookup3
from .delta import Delta
from .fixedscaleoffset import FixedScaleOffset
from .fletcher32 import Fletcher32
from .gzip import GZip
from .lz4 import LZ4
from .packbits import PackBits
from .quantize import Quantize
from .shuffle import Shuffle
from .zlib import Zlib
from .zstd import Zstd

CODECS: dict[str, Any] = {
    cls.codec_id: cls
    for cls in (Zlib, GZip, Zstd, LZ4, Blosc, Shuffle, Delta, CRC32, CRC32C, Adler32, Fletcher32)
    + (FixedScaleOffset, BitRound, PackBits, Quantize, JenkinsLookup3)
}
"""The classes by numcodecs' ids."""

_before: dict[str, Any] = {}


def _chosen(ids: Iterable[str] | None) -> list[str]:
    if isinstance(ids, str):
        raise TypeError(f"ids: a list is wanted, this is the text {ids!r}")
    chosen = list(CODECS if ids is None else ids)
    for one in chosen:
        if one not in CODECS:
            raise ValueError(f"ids: there is no {one!r}; it can be {', '.join(CODECS)}")
    return chosen


def register(ids: Iterable[str] | None = None) -> None:
    """Puts codecs into numcodecs' registry, in place of those of the same ids.

    ids: which ones; None: all.
    Codecs that have been made already stay what they are.
    """
    from ._numcodecs import codec_registry, register_codec

    for one in _chosen(ids):
        if codec_registry.get(one) is not CODECS[one]:
            _before[one] = codec_registry.get(one)
            register_codec(CODECS[one], one)


def unregister(ids: Iterable[str] | None = None) -> None:
    """Puts what register() has replaced back."""
    from ._numcodecs import codec_registry

    for one in _chosen(ids):
        if codec_registry.get(one) is CODECS[one]:
            before = _before.pop(one, None)
            if before is None:
                del codec_registry[one]
            else:
                codec_registry[one] = before


__all__ = [
    "CODECS",
    "CRC32",
    "CRC32C",
    "LZ4",
    "Adler32",
    "BitRound",
    "Blosc",
    "Delta",
    "FixedScaleOffset",
    "Fletcher32",
    "GZip",
    "JenkinsLookup3",
    "PackBits",
    "Quantize",
    "Shuffle",
    "Zlib",
    "Zstd",
    "blosc",
    "register",
    "unregister",
]
