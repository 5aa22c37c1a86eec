"""What tests of devices share: whether there is one, and what the emulated one tells.

SPDX-License-Identifier: Apache-2.0
"""

import ctypes

import liblade

COUNT = liblade._lade._device_count()
NO_DEVICE = "no GPU, and no emulated driver was named"


class State(ctypes.Structure):
    """emulated_state of tests/gpu/emulated.h."""

    _fields_ = [
        ("seed", ctypes.c_uint64), ("protect", ctypes.c_int), ("fail_at", ctypes.c_int),
        ("fail_code", ctypes.c_int), ("calls", ctypes.c_int), ("failed", ctypes.c_char_p),
        ("devices", ctypes.c_int), ("device", ctypes.c_int * 8),
        *((name, ctypes.c_int) for name in (
            "streams", "events", "blocks", "pools", "modules", "pushed", "graphs", "handles",
            "reserved", "maps", "retained",
            "syncs", "launches", "copies", "pending", "checked")),
        ("message", ctypes.c_char * 512),
    ]  # fmt: skip


def _emulated():
    try:
        return State.in_dll(ctypes.CDLL("libcuda.so.1"), "emulated") if COUNT else None
    except (OSError, ValueError):
        return None


EMU = _emulated()
