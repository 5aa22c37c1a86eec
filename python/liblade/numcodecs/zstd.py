"""Zstandard frames.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from typing import Any

from ._base import Compressor

DEFAULT_CLEVEL = 0
MAX_CLEVEL = 22
_MIN_CLEVEL = -131072


class Zstd(Compressor):
    """Zstandard; any number of frames is decoded, with or without their sizes.

    level: -131072 to 22; 0 is libzstd's default, 3.
    checksum: adds 4 bytes of a checksum, which decoding verifies.
    """

    codec_id = "zstd"
    _decoder = ("zstd", 1)
    _corrupt = "Zstd decompression error: invalid input data"

    def __init__(self, level: int = DEFAULT_CLEVEL, checksum: bool = False) -> None:
        self.level = level
        self.checksum = checksum

    def _pipeline(self, buf: Any) -> tuple[str, int]:
        level = min(max(self.level, _MIN_CLEVEL), MAX_CLEVEL)
        return f"zstd({level},checksum={'true' if self.checksum else 'false'})", 1

    def __repr__(self) -> str:
        return f"{type(self).__name__}(level={self.level!r})"

    @classmethod
    def default_level(cls) -> int:
        """What level 0 stands for."""
        return 3

    @classmethod
    def min_level(cls) -> int:
        """The fastest level."""
        return _MIN_CLEVEL

    @classmethod
    def max_level(cls) -> int:
        """The level that compresses most."""
        return MAX_CLEVEL


def compress(buf: Any, level: int = DEFAULT_CLEVEL, checksum: bool = False) -> Any:
    """Encodes a buffer, as Zstd(level, checksum) does."""
    return Zstd(level, checksum).encode(buf)


def decompress(buf: Any, dest: Any = None) -> Any:
    """Decodes a buffer, into 'dest' if there is one."""
    return Zstd().decode(buf, dest)
