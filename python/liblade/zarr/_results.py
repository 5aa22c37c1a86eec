"""Memory of large results, which is used again.

The system clears new memory when it is first written, which takes as long as to decode into it.  So
the memory of a result that nobody has any more is kept for the next one; until then the system may
take it away (MADV_FREE).  Memory of smaller arrays malloc() itself uses again.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

LEAST = 16 << 20
# Bytes that are kept in all.
_MOST = 256 << 20
_HUGE_PAGE = 2 << 20

_kept: list[mmap.mmap] = []  # the last one was used last


class _Block:
    """Memory that is kept when the last array over it is gone."""

    __slots__ = ("memory",)

    def __init__(self, memory: mmap.mmap) -> None:
        self.memory = memory

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(self.memory)

    def __del__(self) -> None:
        if len(self.memory) > _MOST:
            return
        try:
            self.memory.madvise(mmap.MADV_FREE)
            _kept.append(self.memory)
            while sum(map(len, _kept)) > _MOST:
                _kept.pop(0)
        except (OSError, IndexError):
            pass  # a system without it; another thread has taken the last one


def _take(size: int) -> mmap.mmap:
    """Memory of at least 'size' bytes, and at most an eighth more than that and a huge page."""
    size = -size // _HUGE_PAGE * -_HUGE_PAGE
    for memory in reversed(_kept):
        if size <= len(memory) <= size + size // 8:
            try:
                _kept.remove(memory)
            except ValueError:
                continue  # another thread has taken it
            return memory
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        memory.madvise(mmap.MADV_HUGEPAGE)
    except OSError:
        pass  # a system without huge pages
    return memory


def empty(shape: tuple[int, ...], dtype: np.dtype[Any], order: Any = "C") -> np.ndarray[Any, Any]:
    """As numpy's; the memory of a large array is kept when nobody has it any more."""
    size = dtype.itemsize
    for n in shape:
        size *= n
    if size < LEAST or dtype.hasobject:
        return np.empty(shape, dtype, order)
    try:
        memory = _take(size)
    except (OSError, OverflowError):
        return np.empty(shape, dtype, order)  # which says that there is none
    return np.ndarray(shape, dtype, _Block(memory), order=order)
