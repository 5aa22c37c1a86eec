"""Where results land, and who says so.

The first of these that says a setting decides: the chunk's callback, the call, the array, the
context manager, the process, the file that LADE_ZARR_CONFIG names.  Nothing of it is stored.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import contextlib
import contextvars
import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from .._lade import ZarrNode
from . import _results

Maker = Callable[[tuple[int, ...], "np.dtype[Any]"], Any]

# Names of settings, and their types.
NAMES: dict[str, tuple[type, ...]] = {
    "place": (str,),
    "threads": (int,),
    "memory": (int,),
    "device_budget": (int,),
    "where": (str,),
    "ignore_checksums": (bool,),
    "need_chunks": (bool,),
    "write_empty_chunks": (bool,),
    "sync": (bool,),
    "morton": (bool,),
    "text_max": (int,),
}

_WHERE = {"auto": 0, "host": 1, "device": 2}
_KINDS = {"host": 0, "pinned": 1, "managed": 2, "device": 3}
_PLACE = re.compile(r"(numpy|host|pinned|managed|device|cupy|torch)(?::(.+))?")


class Decision(NamedTuple):
    """A setting and who said it."""

    value: Any
    by: str


def check(settings: Mapping[str, Any], by: str) -> dict[str, Any]:
    """The settings that are given, None left out; TypeError and ValueError name what is wrong."""
    out = {}
    for name, value in settings.items():
        if value is None:
            continue
        if name not in NAMES:
            raise TypeError(f"{by}: there is no setting {name!r}, there are {', '.join(NAMES)}")
        wrong_bool = isinstance(value, bool) and bool not in NAMES[name]
        if not isinstance(value, NAMES[name]) or wrong_bool:
            raise TypeError(f"{by}: {name} is {value!r}, want {NAMES[name][0].__name__}")
        if name == "place":
            parse_place(str(value))
        elif name == "where" and value not in _WHERE:
            raise ValueError(f"{by}: where is {value!r}, not one of {', '.join(_WHERE)}")
        elif isinstance(value, int) and value < 0:
            raise ValueError(f"{by}: {name} is {value}, below 0")
        out[name] = value
    return out


def parse_place(text: str) -> tuple[str, str | None]:
    """A place's name and what is behind the colon: "device:1"."""
    found = _PLACE.fullmatch(text)
    name, number = (found[1], found[2]) if found else ("", None)
    counted = name in ("managed", "device", "cupy")
    if not found or (number and name != "torch" and not (counted and number.isdecimal())):
        raise ValueError(
            f'place is {text!r}, want "numpy", "host", "pinned", "managed", "device", "cupy" or '
            '"torch"; the last four may have a device: "device:1", "torch:cuda:0"'
        )
    return name, number


# ---- the levels ------------

_context: contextvars.ContextVar[dict[str, Any]] = contextvars.ContextVar("lade_zarr", default={})
_process: dict[str, Any] = {}
_file: dict[str, Any] | None = None
_lock = threading.Lock()


def _from_file() -> dict[str, Any]:
    global _file
    if _file is None:
        path = os.environ.get("LADE_ZARR_CONFIG")
        found: dict[str, Any] = {}
        if path:
            with open(path, encoding="utf-8") as f:
                given = json.load(f)
            if not isinstance(given, dict):
                raise TypeError(f"{path}: not a JSON object")
            found = check(given, path)
        with _lock:
            _file = found
    return _file


def configure(**settings: Any) -> None:
    """Sets settings of the process; None takes one back.

    place: "numpy", "host", "pinned", "managed", "device", "cupy", "torch", with a device where
        there are several: "device:1", "torch:cuda:0".  threads: of a call; 0: all.  memory: bytes
        of encoded chunks on their way.  device_budget: results above it land in pinned memory.
    where: "auto", "host" or "device" decodes.  ignore_checksums, need_chunks, write_empty_chunks,
        sync, morton: as in C.  text_max: bytes of a chunk of strings.
    """
    global _process
    checked = check(settings, "configure()")
    with _lock:
        merged = {**_process, **checked}
        for name, value in settings.items():
            if value is None:
                merged.pop(name, None)
        _process = merged


@contextlib.contextmanager
def settings(**given: Any) -> Iterator[None]:
    """Settings, as configure()'s, within a 'with' block of this thread or task."""
    token = _context.set({**_context.get(), **check(given, "settings()")})
    try:
        yield
    finally:
        _context.reset(token)


def levels(
    array: Mapping[str, Any], call: Mapping[str, Any]
) -> list[tuple[str, Mapping[str, Any]]]:
    """The levels below the chunk's callback, the first that decides first."""
    return [
        ("the call", call),
        ("the array", array),
        ("the context manager", _context.get()),
        ("the process", _process),
        ("the file " + os.environ.get("LADE_ZARR_CONFIG", ""), _from_file()),
    ]


def decide(array: Mapping[str, Any], call: Mapping[str, Any]) -> dict[str, Decision]:
    """Each setting that somebody says, and who."""
    out: dict[str, Decision] = {}
    for by, level in levels(array, call):
        for name, value in level.items():
            out.setdefault(name, Decision(value, by))
    return out


def resolve(array: Mapping[str, Any], call: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings of a call."""
    file = _file if _file is not None else _from_file()
    context = _context.get()
    if not (call or array or context or _process or file):
        return file
    return {**file, **_process, **context, **array, **call}


# ---- what the C side gets ------------


def _device(found: Mapping[str, Any]) -> int:
    name, number = parse_place(found.get("place", "numpy"))
    return int(number) if number and number.isdecimal() and name != "torch" else 0


def read_options(found: Mapping[str, Any], stream: Any = None) -> dict[str, Any] | None:
    """Options of a read."""
    if not found and stream is None:
        return None
    flags = (1 if found.get("ignore_checksums") else 0) | (2 if found.get("need_chunks") else 0)
    out: dict[str, Any] = {"flags": flags, "where": _WHERE[found.get("where", "auto")]}
    for name in ("threads", "memory", "device_budget", "text_max"):
        if name in found:
            out[name] = found[name]
    out["device"] = _device(found)
    if stream is not None:
        out["stream"] = stream
    return out


def write_options(found: Mapping[str, Any], stream: Any = None) -> dict[str, Any]:
    """Options of a write."""
    flags = 0 if found.get("write_empty_chunks") else 1
    flags |= (2 if found.get("sync") else 0) | (4 if found.get("morton") else 0)
    out: dict[str, Any] = {"flags": flags, "where": _WHERE[found.get("where", "auto")]}
    if "threads" in found:
        out["threads"] = found["threads"]
    if stream is not None:
        out["stream"] = stream
    return out


# ---- memory ------------


def _typestr(dtype: np.dtype[Any]) -> str:
    return dtype.str if dtype.kind in "biufc" else f"|V{dtype.itemsize}"


def _empty(
    shape: tuple[int, ...], dtype: np.dtype[Any], kind: str, device: int, stream: Any
) -> Any:
    return ZarrNode.empty(shape, _typestr(dtype), _KINDS[kind], device, stream)


def maker(place: str, budget: int = 0, stream: Any = None) -> Maker:
    """A function that makes arrays in a place."""
    name, number = parse_place(place)
    if name == "numpy":
        return _results.empty
    if name == "cupy":
        import cupy

        def in_cupy(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
            with cupy.cuda.Device(int(number or 0)):
                return cupy.empty(shape, dtype)

        return in_cupy
    if name == "torch":
        import torch

        def in_torch(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
            of = getattr(torch, dtype.name.replace("bool_", "bool"))
            return torch.empty(shape, dtype=of, device=number)

        return in_torch

    def in_ours(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        size = dtype.itemsize
        for n in shape:
            size *= n
        device = int(number or 0)
        if name == "device" and budget and size > budget:
            return _empty(shape, dtype, "pinned", device, stream)
        return _empty(shape, dtype, name, device, stream)

    return in_ours
