"""The keywords of Codec become the text of a pipeline.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

from . import _lade
from ._arguments import integer, member, real
from ._enums import (
    BitcompMode,
    BitshuffleMode,
    CascadedCoarseGrainedEncoding,
    CascadedFineGrainedEncoding,
    CascadedMode,
    CascadedTerminalCodec,
)

# The library's codecs, which have nvCOMP's names for those that nvCOMP has, and their options.
_CODECS = {name: options for name, kind, _, options in _lade._algorithms() if kind == "codec"}
_NOT_YET = {"gdeflate": "GDeflate"}

# nvCOMP's algorithm_type of the Deflate family to libdeflate's levels: entropy coding alone has no
# level of its own; 2 beats zlib's level 1, 4 its 6, and 5 is the smallest.
_TYPE_LEVELS = {0: 1, 1: 1, 2: 3, 3: 5, 4: 8, 5: 12}

# Type strings to the bytes of an element.
_ELEMENTS = {
    "|b1": 1, "|i1": 1, "|u1": 1, "<i2": 2, "<u2": 2, "<i4": 4, "<u4": 4, "<i8": 8, "<u8": 8,
    "|f1": 1, "<f2": 2, "<f4": 4, "<f8": 8, "bfloat16": 2,
}  # fmt: skip
_REALS = ("<f2", "<f4", "<f8")
# Whose elements have a type; of the others only bitshuffle_mode looks at it.
_TYPED = sorted(name for name, options in _CODECS.items() if {"dtype", "elem"} & {*options})

# Whose keywords they are; those of no other algorithm may be given.
_OWNERS = {
    "algorithm_type": ("deflate", "gzip", "bitcomp"),
    "num_rles": ("cascaded",),
    "num_deltas": ("cascaded",),
    "use_bitpack": ("cascaded",),
    "mode": ("bitcomp", "cascaded"),
    "delta": ("bitcomp",),
    "states_per_lane": ("ans",),
    "histogram_reduction_log2": ("ans",),
    "max_sub_chunk_count": ("ans",),
    "skip_validate": ("ans",),
    "compression_level": ("cascaded",),
    "terminal_codecs": ("cascaded",),
    "fine_grained_encodings": ("cascaded",),
    "coarse_grained_encodings": ("cascaded",),
}
_TITLES = {"ans": "ANS", "lz4": "LZ4"}


def _title(name: str) -> str:
    return _TITLES.get(name, name.capitalize())


def _type_text(data_type: Any) -> str:
    """A type string of a type string, a type's name, a numpy dtype, or a type."""
    try:
        text = _lade._dtype_text(data_type).replace("float8_e4m3", "|f1")
    except TypeError:
        if not isinstance(data_type, str):
            raise TypeError(f"data_type: {data_type!r} is no data type") from None
        text = ""
    if text not in _ELEMENTS:
        raise ValueError(
            f"data_type: {(text or data_type)!r} is not known; it can be {', '.join(_ELEMENTS)}"
        )
    return text


def _dtype(data_type: str) -> str:
    """The option of the library's own formats."""
    return "dtype=float8_e4m3fn" if data_type == "|f1" else f"dtype={data_type}"


def _bitshuffle(mode: BitshuffleMode, size: int) -> list[str]:
    if mode == BitshuffleMode.NVCOMP_BITSHUFFLE_NONE:
        return []
    order = "msb" if mode == BitshuffleMode.NVCOMP_BITSHUFFLE_MSB_FIRST else "lsb"
    # nvCOMP shuffles sub-chunks of 8 KiB on their own.
    return [f"bitshuffle({size},order={order},block=8192)"]


def _within(name: str, value: Any, allowed: Sequence[int]) -> int:
    number = integer(name, value)
    if number not in allowed:
        raise ValueError(f"{name} is {value!r}, it can be {', '.join(map(str, allowed))}")
    return number


def _flags(name: str, value: Any) -> int:
    """One number of an enum's member, a number, or several of them."""
    if isinstance(value, int):
        return int(value)
    try:
        joined = 0
        for one in value:
            joined |= operator.index(one)
    except TypeError:
        raise TypeError(f"{name} is {value!r}, a member, or a list of some, is wanted") from None
    return joined


def _ans(given: Mapping[str, Any]) -> list[str]:
    # The kernels have one state a lane, count all bytes, and cut chunks by bytes.
    _within("states_per_lane", given.get("states_per_lane", 0), (0, 1, 2))
    _within("histogram_reduction_log2", given.get("histogram_reduction_log2", 0), range(9))
    _within("max_sub_chunk_count", given.get("max_sub_chunk_count", 0), (0, 4, 8, 16, 32, 64))
    return []


def _bitcomp(given: Mapping[str, Any], data_type: str | None) -> list[str]:
    options = []
    if _within("algorithm_type", given.get("algorithm_type", 0), (0, 1)):
        options.append("algorithm=sparse")
    mode = member("mode", BitcompMode, given.get("mode", 0))
    delta = given.get("delta")
    if mode == BitcompMode.BITCOMP_LOSSLESS:
        # nvCOMP looks at delta only where it is lossy; without a mode it is a mistake.
        if delta and "mode" not in given:
            raise ValueError(f"delta is {delta}, and mode is BITCOMP_LOSSLESS")
        return options
    if data_type not in _REALS:
        raise ValueError(f"mode {mode.name} wants a data_type of {', '.join(_REALS)}")
    if delta is None or not real("delta", delta) > 0:
        raise ValueError(f"delta is {delta}, mode {mode.name} wants one above 0")
    signed = mode == BitcompMode.BITCOMP_LOSSY_FP_TO_SIGNED
    options.append(f"mode={'lossy_signed' if signed else 'lossy_unsigned'}")
    options.append(f"delta={float(delta)!r}")
    return options


def _cascaded(given: Mapping[str, Any]) -> list[str]:
    old = [k for k in ("num_rles", "num_deltas", "use_bitpack") if k in given]
    new = [k for k in ("mode", "compression_level", "terminal_codecs", "fine_grained_encodings",
                       "coarse_grained_encodings") if k in given]  # fmt: skip
    if old and new:
        raise ValueError(f"{old[0]} is of nvCOMP 5, {new[0]} of 6: they cannot both be given")
    if old:
        rles = _within("num_rles", given.get("num_rles", 2), range(8))
        deltas = _within("num_deltas", given.get("num_deltas", 1), range(8))
        pack = "true" if given.get("use_bitpack", True) else "false"
        return [f"rles={rles}", f"deltas={deltas}", f"bitpack={pack}"]
    options = []
    if member("mode", CascadedMode, given.get("mode", 1)) == CascadedMode.SYMMETRIC:
        options.append("mode=fast")
    if "compression_level" in given:
        at = integer("compression_level", given["compression_level"])
        if at < 0:
            raise ValueError(f"compression_level is {at}, it can be 0 or more")
        options.append(f"level={min(at, 7)}")  # as nvCOMP: more is the highest
    if "terminal_codecs" in given:
        bitpack = CascadedTerminalCodec.CASCADED_BITPACK
        at = _flags("terminal_codecs", given["terminal_codecs"])
        _within("terminal_codecs", at, (int(bitpack),))
    if "coarse_grained_encodings" in given:
        none = CascadedCoarseGrainedEncoding.NONE
        at = _flags("coarse_grained_encodings", given["coarse_grained_encodings"])
        _within("coarse_grained_encodings", at, (int(none),))
    if "fine_grained_encodings" in given:
        all_of_them = sum(int(e) for e in CascadedFineGrainedEncoding)
        at = _flags("fine_grained_encodings", given["fine_grained_encodings"])
        fine = _within("fine_grained_encodings", at, range(all_of_them + 1))
        options.append(f"encodings={fine}")
    return options


def _options(known: str, level: int | None, given: Mapping[str, Any], data_type: str | None) -> str:
    """A stage with its options."""
    options = []
    if known == "ans":
        options += _ans(given)
    elif known == "bitcomp":
        options += _bitcomp(given, data_type)
    elif known == "cascaded":
        options += _cascaded(given)
    elif "algorithm_type" in given:
        if level is not None:
            raise ValueError("algorithm_type and level cannot both be given")
        level = _TYPE_LEVELS[_within("algorithm_type", given["algorithm_type"], range(6))]
    if level is not None:
        if "level" not in _CODECS[known]:
            raise ValueError(f"level: {known} has none")
        if any(option.startswith("level=") for option in options):
            raise ValueError("compression_level and level cannot both be given")
        options.append(f"level={integer('level', level)}")
    if data_type and "dtype" in _CODECS[known]:
        options.append(_dtype(data_type))
    if data_type and "elem" in _CODECS[known] and _ELEMENTS[data_type] > 1:
        options.append(f"elem={_ELEMENTS[data_type]}")
    return f"{known}({','.join(options)})" if options else known


def pipeline_text(
    algorithm: str,
    level: int | None,
    data_type: Any,
    bitshuffle_mode: BitshuffleMode | int,
    filters: Sequence[str] | None,
    keywords: Mapping[str, Any],
) -> str | None:
    """The pipeline: filters, the bit shuffle, the codec; None without an algorithm.

    'keywords' are the options of single algorithms; None is one that was not given.
    """
    if not isinstance(algorithm, str):
        raise TypeError(f"algorithm: {algorithm!r} is no str")
    name = algorithm.strip()
    known = name.lower() if name.lower() in _CODECS else None
    if name.lower() in _NOT_YET:
        raise NotImplementedError(
            f"liblade {_lade.__version__} has no {_NOT_YET[name.lower()]} yet"
        )
    given = {keyword: value for keyword, value in keywords.items() if value is not None}
    for keyword in given:
        if known not in _OWNERS[keyword]:
            owners = " and ".join(_title(o) for o in _OWNERS[keyword])
            raise ValueError(f"{keyword} is an option of {owners}, not of {name or 'this'}")
    if isinstance(filters, str):
        raise TypeError("filters: a list of texts is wanted, this is one text")
    try:
        filters = list(() if filters is None else filters)
    except TypeError:
        raise TypeError(f"filters is {filters!r}, a list of texts is wanted") from None
    for one in filters:
        if not isinstance(one, str):
            raise TypeError(f"filters: {one!r} is no text")
    typed = data_type is not None and not (isinstance(data_type, str) and not data_type)
    element = _type_text(data_type) if typed else None
    order = member("bitshuffle_mode", BitshuffleMode, bitshuffle_mode)
    if element and known not in _TYPED and order == BitshuffleMode.NVCOMP_BITSHUFFLE_NONE:
        owners = ", ".join(_title(o) for o in _TYPED[:-1])
        raise ValueError(
            f"data_type is an option of {owners} and {_title(_TYPED[-1])}, and of "
            f"bitshuffle_mode, not of {name or 'this'}"
        )
    stages = filters
    stages += _bitshuffle(order, _ELEMENTS[element] if element else 1)
    if not name:
        if stages or level is not None:
            raise ValueError("filters, bitshuffle_mode and level want an algorithm")
        return None
    if known is not None:
        return "|".join([*stages, _options(known, level, given, element)])
    # A whole pipeline as text, or a stage of the library, which says so if there is none.
    if level is not None:
        if "|" in name or "(" in name:
            raise ValueError(f"level stands in the pipeline {name!r} itself")
        raise ValueError(f"level: {name!r} has none")
    return "|".join([*stages, name])
