# zarr_ctypes.py: liblade's Zarr calls through ctypes, for the interop tests.
# SPDX-License-Identifier: Apache-2.0
"""read(folder, dtype, text=None): the array of a directory, or the selection "[0:3, ::2]" of it, as
a NumPy array of 'dtype'; of 'str' and 'bytes', elements of any length, as one of objects."""
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


class Source(ctypes.Structure):
    _fields_ = [
        ("struct_size", _size),
        ("span", lade.Span),
        ("offset", _size),
        ("strides", _pointer),
        ("offsets", _pointer),
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


_declare("lade_zarr_write", _status, _pointer, _pointer, ctypes.POINTER(Source), _pointer, _pointer,
         _err)
_declare("lade_zarr_plan_new", _status, _pointer, _pointer, _pointer, _pointer, _out, _err)
_declare("lade_zarr_plan_run", _status, _pointer, _pointer, _err)
_declare("lade_zarr_plan_texts", _status, _pointer, ctypes.POINTER(_u64), ctypes.POINTER(_u64),
         _err)
_declare("lade_zarr_plan_fill", _status, _pointer, lade.Span, lade.Span, _err)
_declare("lade_zarr_plan_free", None, _pointer)


def _call(name, *arguments):
    err = lade.LadeError()
    lade._check(getattr(lade.lib, name)(*arguments, err), err)


def _texts(node, selection, kind):
    """Elements of any length, as objects."""
    plan, count, size = _pointer(), _u64(), _u64()
    _call("lade_zarr_plan_new", node, selection, None, None, plan)
    try:
        _call("lade_zarr_plan_run", plan, None)
        _call("lade_zarr_plan_texts", plan, count, size)
        offsets, data = np.empty(count.value + 1, "<i8"), np.empty(size.value, "u1")
        _call("lade_zarr_plan_fill", plan, lade.Span(offsets.ctypes.data, offsets.nbytes),
              lade.Span(data.ctypes.data, data.nbytes))
    finally:
        lade.lib.lade_zarr_plan_free(plan)
    all_bytes, out = data.tobytes(), np.empty(count.value, object)
    for i in range(count.value):
        one = all_bytes[offsets[i] : offsets[i + 1]]
        out[i] = one.decode() if kind is str else one
    return out


def _read(node, dtype, text):
    selection = _pointer()
    if text:
        _call("lade_zarr_selection_parse", node, text.encode(), selection)
    try:
        shape = Shape(struct_size=ctypes.sizeof(Shape))
        _call("lade_zarr_selection_shape", node, selection, shape)
        if dtype in (str, bytes):
            return _texts(node, selection, dtype).reshape(shape.shape[: shape.ndim])
        assert shape.elem_size == dtype.itemsize, (shape.elem_size, dtype)
        out = np.empty(shape.shape[: shape.ndim], dtype)
        target = Target(ctypes.sizeof(Target), lade.Span(out.ctypes.data, out.nbytes))
        _call("lade_zarr_read", node, selection, target, Options(ctypes.sizeof(Options)), None)
        return out
    finally:
        lade.lib.lade_zarr_selection_free(selection)


def _with_node(folder, call):
    store, node = _pointer(), _pointer()
    _call("lade_store_directory_open", str(folder).encode(), None, store)
    try:
        _call("lade_zarr_open", store, b"", None, node)
        return call(node)
    finally:
        lade.lib.lade_zarr_unref(node)
        lade.lib.lade_store_unref(store)


def read(folder, dtype, text=None):
    if dtype not in (str, bytes):
        dtype = np.dtype(dtype).newbyteorder("<")
    return _with_node(folder, lambda node: _read(node, dtype, text))


def write(folder, data, text=None):
    """Writes all of an array, or the selection 'text' of it."""
    data = np.ascontiguousarray(data).astype(data.dtype.newbyteorder("<"))
    source = Source(ctypes.sizeof(Source), lade.Span(data.ctypes.data, data.nbytes))
    _with_node(folder, lambda node: _write(node, source, text))


def _write(node, source, text):
    selection = _pointer()
    if text:
        _call("lade_zarr_selection_parse", node, text.encode(), selection)
    try:
        _call("lade_zarr_write", node, selection, source, None, None)
    finally:
        lade.lib.lade_zarr_selection_free(selection)
