"""Codecs in Python, and implementations of others for the library's algorithms.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import importlib.metadata
import json
import threading
from collections.abc import Callable
from typing import Any, Literal, Protocol

from .._lade import ZarrNode, ZarrStore
from .._tools import algorithms

# The entry-point group of implementations.
GROUP = "liblade.implementations"


class Codec(Protocol):
    """What register_codec() takes: bytes in, bytes out, straight into the caller's memory."""

    def decode(self, src: memoryview, out: memoryview) -> Any:
        """Decodes 'src' into 'out'; gives the number of bytes, None for all of 'out', or bytes."""

    def encode(self, src: memoryview, out: memoryview) -> Any:
        """The other way; 'out' has room for twice the bytes and 64 KiB more."""


class Implementation(Protocol):
    """What register_implementation() takes, and what an entry point loads.

    Also decode(src, out), encode(src, out), or both, as a Codec's.
    """

    algorithm: str
    """The algorithm's name: "zstd", "gzip"; liblade.algorithms() lists them."""
    place: str
    """Where it runs: "host"."""
    priority: int
    """The highest that is there runs; the library's own have 0."""


class _Named:
    """A codec and what it is, for the C side."""

    def __init__(self, codec: Any, kind: str) -> None:
        self.decode = codec.decode
        self.encode = codec.encode
        self.kind = kind


_codecs: dict[str, tuple[Callable[..., Any], str]] = {}
_given: list[Any] = []
_found: list[Any] | None = None
_lock = threading.Lock()


def register_codec(
    name: str,
    make: Callable[..., Any],
    *,
    kind: Literal["bytes_bytes", "array_bytes"] = "bytes_bytes",
) -> None:
    """Arrays whose documents name a codec that the library does not have use this one.

    make: called with the codec's configuration as keywords; gives a Codec.
    kind: "array_bytes": it gets the elements of a chunk in C order, little-endian.

    It runs on the host, from several threads.  Arrays that are open do not change.
    """
    if kind not in ("bytes_bytes", "array_bytes"):
        raise ValueError(f'kind is {kind!r}, want "bytes_bytes" or "array_bytes"')
    with _lock:
        _codecs[name] = (make, kind)


def register_implementation(implementation: Any) -> None:
    """Uses an Implementation in arrays that are opened from now on, as an entry point's.

    Packages give theirs as an entry point of the group "liblade.implementations".
    """
    checked = _check(implementation, "register_implementation()")
    with _lock:
        _given.append(checked)


def _check(one: Any, by: str) -> Any:
    names = {a.name: a.kind for a in algorithms()}
    if one.algorithm not in names:
        raise ValueError(f"{by}: there is no algorithm {one.algorithm!r}")
    if names[one.algorithm] != "codec":
        raise ValueError(f"{by}: {one.algorithm} is a {names[one.algorithm]}, want a codec")
    if one.place != "host":
        raise ValueError(f'{by}: place is {one.place!r}; implementations in Python run on "host"')
    if not (hasattr(one, "decode") or hasattr(one, "encode")):
        raise TypeError(f"{by}: {one!r} has neither decode() nor encode()")
    int(one.priority)
    return one


def _implementations() -> tuple[tuple[str, int, Any], ...]:
    global _found
    if _found is None:
        found = []
        for entry in importlib.metadata.entry_points(group=GROUP):
            one = entry.load()
            found.append(_check(one() if isinstance(one, type) else one, entry.name))
        with _lock:
            _found = found
    return tuple((o.algorithm, int(o.priority), o) for o in (*_found, *_given))


def _find(name: str, configuration: str, dtype: str, ndim: int) -> Any:
    known = _codecs.get(name)
    if known is None:
        return None
    given = json.loads(configuration) if configuration else {}
    given.pop("id", None)  # format 2 has the name there
    return _Named(known[0](**given), known[1])


def extensions() -> tuple[Any, ...]:
    """The last arguments of ZarrNode.open() and .create(); without codecs and implementations of
    others there are none."""
    implementations = _implementations()
    return (_find, implementations) if _codecs or implementations else ()


def open_node(
    store: ZarrStore,
    path: str,
    kind: int = 0,
    format: int = 0,
    chunk_store: ZarrStore | None = None,
    consolidated: bool = True,
) -> ZarrNode:
    """As ZarrNode.open(), with the codecs and implementations that are registered."""
    return ZarrNode.open(store, path, kind, format, chunk_store, consolidated, *extensions())
