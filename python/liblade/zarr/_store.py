"""Stores: what is behind a path, a URL, a mapping, or a store of zarr-python.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, MutableMapping
from typing import Any

from .._lade import ZarrStore

_PLACES = {"host": 0, "pinned": 1, "managed": 2, "device": 3}


class Store:
    """Keys and their values.  Store.directory(), .memory(), .zip(), .http() and .of() make one."""

    __slots__ = ("__weakref__", "_handle", "_name", "_recipe", "local", "native", "raised")
    _handle: ZarrStore
    _name: str
    _recipe: tuple[Any, ...] | None
    native: bool  # the library reads it itself
    local: bool  # small reads are cheap
    raised: list[BaseException]  # what the methods of a store of zarr-python raised

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError("use Store.directory(), .memory(), .zip(), .http() or .of()")

    @classmethod
    def _make(
        cls, handle: ZarrStore, name: str, recipe: tuple[Any, ...] | None, native: bool = True
    ) -> Store:
        self = cls.__new__(cls)
        self._handle = handle
        self._name = name
        self._recipe = recipe
        self.native = native
        self.raised = []
        self.local = native and not name.startswith(("http://", "https://"))
        return self

    @classmethod
    def directory(
        cls,
        path: str | os.PathLike[str],
        *,
        create: bool = False,
        read_only: bool = False,
        sync: bool = False,
        direct: bool = False,
        cufile: bool = False,
    ) -> Store:
        """The files below a directory; the options are the flags LADE_DIRECTORY_... in C."""
        flags = (sync and 1) | (create and 2) | (read_only and 4) | (direct and 8) | (cufile and 16)
        text = os.fspath(path)
        handle = ZarrStore.directory(text, flags)
        # Opened again, the directory is there.
        options = {"read_only": read_only, "sync": sync, "direct": direct, "cufile": cufile}
        return cls._make(handle, text, ("directory", (os.path.abspath(text),), options))

    @classmethod
    def memory(cls, place: str = "host") -> Store:
        """An empty store in memory: "host", "pinned", "managed" or "device", "device:1"."""
        name, _, number = place.partition(":")
        if name not in _PLACES:
            raise ValueError(f"place is {place!r}, want one of {', '.join(_PLACES)}")
        return cls._make(ZarrStore.memory(_PLACES[name], int(number or 0)), "memory", None)

    @classmethod
    def zip(cls, path: str | os.PathLike[str], mode: str = "r", *, level: int = 0) -> Store:
        """A zip file: "r" reads it, "w" makes a new one, which finish() completes."""
        text = os.fspath(path)
        if mode == "r":
            return cls._make(ZarrStore.zip(text), text, ("zip", (os.path.abspath(text),), {}))
        if mode != "w":
            raise ValueError(f'mode is {mode!r}, want "r" or "w"')
        return cls._make(ZarrStore.zip(text, level), text, None)

    @classmethod
    def http(
        cls,
        url: str,
        *,
        headers: Iterable[tuple[str, str]] | dict[str, str] = (),
        parallel: int = 0,
        ca_file: str | None = None,
    ) -> Store:
        """What a web server has below a URL, for reading."""
        pairs = tuple(headers.items() if isinstance(headers, dict) else headers)
        lines = tuple(f"{name}: {value}" for name, value in pairs)
        options = {"headers": pairs, "parallel": parallel, "ca_file": ca_file}
        handle = ZarrStore.http(url, lines, parallel, ca_file)
        return cls._make(handle, url, ("http", (url,), options))

    @classmethod
    def of(cls, source: Any, *, create: bool = False, read_only: bool = False) -> Store:
        """The store behind a path, a URL, a mapping from keys to bytes, or zarr-python's stores.

        A path that ends with .zip is a zip file, which is only read; every other path is a
        directory.  URLs of http and https are read by the library; s3:// and others through
        zarr-python and fsspec.
        """
        if isinstance(source, Store):
            return source
        if isinstance(source, (str, os.PathLike)):
            return cls._of_path(os.fspath(source), create, read_only)
        if isinstance(source, MutableMapping) or (
            hasattr(source, "__getitem__") and hasattr(source, "keys")
        ):
            return cls._of_mapping(source)
        if "zarr" in sys.modules:
            from zarr.abc.store import Store as ZarrPythonStore

            if isinstance(source, ZarrPythonStore):
                from ._foreign import store_of

                return store_of(source)
        raise TypeError(
            f"{source!r} is no store: want a path, a URL, a mapping from keys to bytes, a "
            "liblade.zarr.Store or a store of zarr-python"
        )

    @classmethod
    def _of_path(cls, text: str, create: bool, read_only: bool) -> Store:
        scheme, _, rest = text.partition("://")
        if not rest:
            if text.endswith(".zip"):
                return cls.zip(text)
            return cls.directory(text, create=create, read_only=read_only)
        if scheme in ("http", "https"):
            return cls.http(text)
        if scheme == "file":
            return cls.directory(rest, create=create, read_only=read_only)
        if scheme == "memory":
            return cls.memory()
        from zarr.storage import FsspecStore

        return cls.of(FsspecStore.from_url(text, read_only=read_only))

    @classmethod
    def _of_mapping(cls, values: Any) -> Store:
        def put(key: str, data: bytes | None, absent: bool) -> bool:
            if data is None:
                try:
                    del values[key]
                except KeyError:
                    return False
                return True
            if absent and key in values:
                return False
            values[key] = data
            return True

        def get(key: str) -> Any:
            try:
                return values[key]
            except KeyError:
                return None

        writes = put if hasattr(values, "__setitem__") else None
        listed = lister(lambda prefix: [k for k in list(values) if k.startswith(prefix)])
        handle = ZarrStore.own(get, None, writes, listed, 2, 1, "mapping")
        return cls._make(handle, "mapping", ("of", (values,), {}))

    @property
    def name(self) -> str:
        """What messages call it."""
        return self._name

    def read(self, key: str) -> bytes | None:
        """The bytes of a value; None: there is none."""
        return self._handle.read(key)

    def size(self, key: str) -> int | None:
        """The bytes that a value has; None: there is none."""
        return self._handle.size(key)

    def write(self, key: str, data: Any, *, if_absent: bool = False) -> bool:
        """Writes a value whole; False: if_absent was given, and it exists."""
        return self._handle.write(key, data, if_absent)

    def delete(self, key: str) -> bool:
        """Deletes a value; False: there was none."""
        return self._handle.write(key, None)

    def list(self, prefix: str = "", *, level: bool = False) -> list[str]:
        """Keys that begin with 'prefix', in order; level: of one level, "a/" for those below."""
        return self._handle.list(prefix, level)

    def finish(self) -> None:
        """Completes a zip file that is being written."""
        self._handle.finish()

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.size(key) is not None

    def __reduce__(self) -> Any:
        if self._recipe is None:
            raise TypeError(f"the store {self._name!r} cannot be pickled: it is this process's")
        return _rebuild, self._recipe

    def __repr__(self) -> str:
        return f"<liblade.zarr.Store {self._name}>"


def _rebuild(how: str, args: tuple[Any, ...], options: dict[str, Any]) -> Store:
    made = getattr(Store, how)(*args, **options)
    assert isinstance(made, Store)
    return made


def lister(keys: Any) -> Any:
    """A function list(prefix, level) of one that gives the keys with a prefix."""

    def listed(prefix: str, level: bool) -> list[str]:
        found = sorted(keys(prefix), key=str.encode)
        if not level:
            return found
        out: dict[str, None] = {}
        for key in found:
            name, slash, _ = key[len(prefix) :].partition("/")
            out[prefix + name + slash] = None
        return list(out)

    return listed
