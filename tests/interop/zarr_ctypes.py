# zarr_ctypes.py: liblade's Zarr calls through ctypes, for the interop tests.
# SPDX-License-Identifier: Apache-2.0
"""read(folder, dtype, text=None): the array of a directory, or the selection "[0:3, ::2]" of it, as
a NumPy array of 'dtype'."""
import ctypes

import lade_ctypes as lade
import numpy as np

_size, _pointer, _text = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_char_p
_status, _u64 = ctypes.c_int, ctypes.c_uint64
_err = ctypes.POINTER(lade.LadeError)
DIMS_MAX = 32


class Shape(ctypes.Structure):
    _fields_ = [
        ("struct_size", _size),
        ("ndim", _size),
        ("shape", _u64 * DIMS_MAX),
        ("count", _u64),
        ("elem_size", _size),
        ("size", _u64),
        ("type", ctypes.c_uint64 * 12),
    ]


class Target(ctypes.Structure):
    _fields_ = [
        ("struct_size", _size),
        ("span", lade.Span),
        ("offset", _size),
        ("strides", _pointer),
        ("place", _pointer),
        ("ctx", _pointer),
    ]


class Options(ctypes.Structure):
    _fields_ = [("struct_size", _size), ("engine", _pointer), ("threads", ctypes.c_uint)]


_out = ctypes.POINTER(_pointer)
_declare = lade._declare
_declare("lade_store_directory_open", _status, _text, _pointer, _out, _err)
_declare("lade_store_unref", None, _pointer)
_declare("lade_zarr_open", _status, _pointer, _text, _pointer, _out, _err)
_declare("lade_zarr_unref", None, _pointer)
_declare("lade_zarr_selection_parse", _status, _pointer, _text, _out, _err)
_declare("lade_zarr_selection_free", None, _pointer)
_declare("lade_zarr_selection_shape", _status, _pointer, _pointer, ctypes.POINTER(Shape), _err)
_declare("lade_zarr_read", _status, _pointer, _pointer, ctypes.POINTER(Target),
         ctypes.POINTER(Options), _pointer, _err)


def _call(name, *arguments):
    err = lade.LadeError()
    lade._check(getattr(lade.lib, name)(*arguments, err), err)


def _read(node, dtype, text):
    selection = _pointer()
    if text:
        _call("lade_zarr_selection_parse", node, text.encode(), selection)
    try:
        shape = Shape(struct_size=ctypes.sizeof(Shape))
        _call("lade_zarr_selection_shape", node, selection, shape)
        assert shape.elem_size == dtype.itemsize, (shape.elem_size, dtype)
        out = np.empty(shape.shape[: shape.ndim], dtype)
        target = Target(ctypes.sizeof(Target), lade.Span(out.ctypes.data, out.nbytes))
        _call("lade_zarr_read", node, selection, target, Options(ctypes.sizeof(Options)), None)
        return out
    finally:
        lade.lib.lade_zarr_selection_free(selection)


def read(folder, dtype, text=None):
    store, node = _pointer(), _pointer()
    _call("lade_store_directory_open", str(folder).encode(), None, store)
    try:
        _call("lade_zarr_open", store, b"", None, node)
        return _read(node, np.dtype(dtype).newbyteorder("<"), text)
    finally:
        lade.lib.lade_zarr_unref(node)
        lade.lib.lade_store_unref(store)
