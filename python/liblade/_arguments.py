"""What an argument has to be: errors name it.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import enum
import operator
from typing import Any


def integer(name: str, value: Any) -> int:
    """An integer of any type; floats, texts and bools are none."""
    if not isinstance(value, bool):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise TypeError(f"{name} is {value!r}, an integer is wanted")


def real(name: str, value: Any) -> float:
    """A number of any type; texts and bools are none."""
    if not isinstance(value, (bool, str, bytes, bytearray)):
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            pass
    raise TypeError(f"{name} is {value!r}, a number is wanted")


def text(name: str, value: Any) -> str:
    """A text."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r}, a text is wanted")
    return value


def only(function: str, **given: Any) -> Any:
    """The one argument of several that was given."""
    found = [value for value in given.values() if value is not None]
    if len(found) != 1:
        raise TypeError(f"{function}() wants one of {', '.join(given)}; {len(found)} were given")
    return found[0]


def member[E: enum.Enum](name: str, kind: type[E], value: Any) -> E:
    """A member of an enum, or its value."""
    try:
        return kind(value)
    except ValueError:
        members = ", ".join(f"{m.value} ({m.name})" for m in kind)
        raise ValueError(f"{name} is {value!r}, it can be {members}") from None
