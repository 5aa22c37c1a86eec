# rntuple_ctypes.py: liblade's RNTuple calls through ctypes, for the interop tests.
# SPDX-License-Identifier: Apache-2.0
"""with Tuple(path) as t: t.read("a.b", first, count) is a column as a NumPy array; that of a
collection has its offsets.  t.read(path, ..., position=1) has the bytes of a string."""
import ctypes

import lade_ctypes as lade
import numpy as np

_size, _pointer, _text = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_char_p
_status, _u64, _u32 = ctypes.c_int, ctypes.c_uint64, ctypes.c_uint32
_err = ctypes.POINTER(lade.LadeError)


class Source(ctypes.Structure):
    _fields_ = [("ops", _pointer), ("ctx", _pointer)]


class Info(ctypes.Structure):
    _fields_ = [("name", _text), ("description", _text), ("writer", _text)] + [
        (part, ctypes.c_uint16) for part in ("epoch", "major", "minor", "patch")
    ] + [
        (name, _u64) for name in ("entry_count", "field_count", "column_count", "cluster_count",
                                  "page_count", "stored_size", "decoded_size")
    ]


class Column(ctypes.Structure):
    _fields_ = [
        ("field", _u64),
        ("position", _u32),
        ("kind", ctypes.c_int),
        ("dtype", ctypes.c_uint8),
        ("elem_size", _size),
        ("stored", _text),
        ("bits", _u32),
        ("element_count", _u64),
        ("first_stored", _u64),
        ("page_count", _u64),
        ("stored_size", _u64),
        ("decoded_size", _u64),
    ]


class Part(ctypes.Structure):
    _fields_ = [("first", _u64), ("count", _u64)]


class Target(ctypes.Structure):
    _fields_ = [("column", _u64), ("first", _u64), ("count", _u64), ("span", lade.Span)]


_out = ctypes.POINTER(_pointer)
_declare = lade._declare
_file_open = _declare("lade_source_file_open", _status, _text, _pointer,
                      ctypes.POINTER(Source), _err)
_close = _declare("lade_source_close", None, Source)
_open = _declare("lade_rntuple_open", _status, Source, _pointer, _out, _err)
_unref = _declare("lade_rntuple_unref", None, _pointer)
_about = _declare("lade_rntuple_about", ctypes.POINTER(Info), _pointer)
_column = _declare("lade_rntuple_column_at", ctypes.POINTER(Column), _pointer, _u64)
_find = _declare("lade_rntuple_find", _status, _pointer, _text, ctypes.POINTER(_u64), _err)
_elements = _declare("lade_rntuple_elements", _status, _pointer, _u64, Part, _pointer,
                     ctypes.POINTER(Part), _err)
_read = _declare("lade_rntuple_read", _status, _pointer, ctypes.POINTER(Target), _size, _pointer,
                 _pointer, _err)
_dtype_text = _declare("lade_dtype_text", _text, ctypes.c_uint8)


def _check(status, err):
    if status:
        raise RuntimeError(err.message.decode())


class Tuple:
    def __init__(self, path):
        err, source, out = lade.LadeError(), Source(), ctypes.c_void_p()
        _check(_file_open(str(path).encode(), None, source, err), err)
        status = _open(source, None, out, err)
        if status:
            _close(source)
        _check(status, err)
        self.handle = out
        self.entries = _about(out).contents.entry_count
        self.columns = _about(out).contents.column_count

    def __enter__(self):
        return self

    def __exit__(self, *_):
        _unref(self.handle)

    def column(self, index):
        return _column(self.handle, index).contents

    def find(self, path, position=0):
        err, column = lade.LadeError(), _u64()
        _check(_find(self.handle, path.encode(), column, err), err)
        return column.value + position

    def read(self, path, first=0, count=None, position=0):
        err, part = lade.LadeError(), Part()
        index = self.find(path, position)
        entries = Part(first, self.entries - first if count is None else count)
        _check(_elements(self.handle, index, entries, None, part, err), err)
        about = self.column(index)
        text = _dtype_text(about.dtype).decode()
        out = np.empty(part.count + (about.kind == 1), "V12" if about.kind == 2 else text)
        span = lade.Span(out.ctypes.data, out.nbytes, lade.Place(0, 0))
        target = Target(index, part.first, part.count, span)
        _check(_read(self.handle, target, 1, None, None, err), err)
        return out
