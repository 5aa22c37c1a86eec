"""The type of an array's elements.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from typing import Any

_KINDS = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex", "V": "void"}
_str = str


class DType(_str):
    """An element type: a type string, '<i4', that prints as numpy's types do, int32.

    It is equal to all that names the same type: np.int32, np.dtype("i4"), "<i4", "int32".
    numpy takes it wherever it takes a type.
    """

    __slots__ = ()

    @property
    def str(self) -> _str:
        """The type string, '<i4'; the names of bfloat16 and float8_e4m3, which have none."""
        return _str.__str__(self)

    @property
    def name(self) -> _str:
        """'int32', in either order of bytes."""
        order, kind, size = self.str[0], self.str[1], self.str[2:]
        if order not in "<>|":
            return self.str
        return _KINDS[kind] + (_str(8 * int(size)) if kind != "b" else "")

    def __str__(self) -> _str:
        return self.str if self.str[0] == ">" or self.str[1] == "V" else self.name

    def __repr__(self) -> _str:
        return f"dtype({_str(self)!r})"

    def __format__(self, spec: _str) -> _str:
        return format(_str(self), spec)

    def __eq__(self, other: Any) -> bool:
        if _str.__eq__(self, other) is True:
            return True
        from . import _lade

        try:
            return _lade._dtype_text(other) == self.str
        except TypeError:
            return False

    def __ne__(self, other: Any) -> bool:
        return not self == other

    __hash__ = _str.__hash__
