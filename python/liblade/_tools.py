"""Checksums, and what the library knows.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from . import _lade


class Algorithm(NamedTuple):
    """An algorithm that can stand in a pipeline."""

    name: str
    kind: str
    """'codec', 'filter' or 'checksum'."""
    doc: str


def algorithms() -> list[Algorithm]:
    """All algorithms."""
    return [Algorithm(*row) for row in _lade._algorithms()]


def checksums(name: str, sources: Iterable[Any]) -> list[int]:
    """The checksums ("crc32c", "xxh64", ...) of many arrays, on several threads."""
    return _lade._checksums(name, sources)


def checksum(name: str, source: Any) -> int:
    """The checksum of one array."""
    return _lade._checksums(name, (source,))[0]
