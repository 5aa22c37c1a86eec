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
        return self.read_column(self.find(path, position), first, count)

    def read_column(self, index, first=0, count=None):
        err, part = lade.LadeError(), Part()
        entries = Part(first, self.entries - first if count is None else count)
        _check(_elements(self.handle, index, entries, None, part, err), err)
        about = self.column(index)
        text = _dtype_text(about.dtype).decode()
        out = np.empty(part.count + (about.kind == 1), "V12" if about.kind == 2 else text)
        span = lade.Span(out.ctypes.data, out.nbytes, lade.Place(0, 0))
        target = Target(index, part.first, part.count, span)
        _check(_read(self.handle, target, 1, None, None, err), err)
        return out


# ---- writing ------------------------------------------------------------------------------------


class WriterOptions(ctypes.Structure):
    _fields_ = [("struct_size", _size), ("name", _text), ("description", _text),
                ("mode", ctypes.c_int), ("flags", _u32), ("codec", _text), ("page_size", _u64),
                ("cluster_size", _u64), ("memory", _u64), ("field_size", _size),
                ("fill_size", _size), ("engine", _pointer), ("cancel", _pointer),
                ("stream", _pointer), ("threads", ctypes.c_uint), ("where", ctypes.c_int),
                ("device", ctypes.c_int32), ("group_size", _u32)]


class NewField(ctypes.Structure):
    _fields_ = [("name", _text), ("type", _text), ("type_alias", _text), ("description", _text),
                ("parent", _u64), ("array_size", _u64), ("stored", _text), ("codec", _text),
                ("role", _u32), ("type_version", _u32)]


class Fill(ctypes.Structure):
    _fields_ = [("column", _u64), ("span", lade.Span), ("dtype", ctypes.c_uint8),
                ("reserved", ctypes.c_uint8 * 7)]


class Report(ctypes.Structure):
    _fields_ = [("struct_size", _size)] + [
        (name, _u64) for name in ("entry_count", "cluster_count", "page_count", "raw_count",
                                  "source_size", "decoded_size", "stored_size", "file_size", "ns")
    ]


_w_open = _declare("lade_rntuple_writer_open", _status, _text, ctypes.POINTER(WriterOptions), _out,
                   _err)
_w_add = _declare("lade_rntuple_writer_add", _status, _pointer, ctypes.POINTER(NewField), _size,
                  _err)
_w_schema = _declare("lade_rntuple_writer_schema", _pointer, _pointer)
_w_fill = _declare("lade_rntuple_writer_fill", _status, _pointer, _u64, ctypes.POINTER(Fill),
                   _size, ctypes.POINTER(Report), _err)
_w_commit = _declare("lade_rntuple_writer_commit", _status, _pointer, _err)
_w_close = _declare("lade_rntuple_writer_close", None, _pointer)
_repair = _declare("lade_rntuple_repair", _status, _text, _pointer, ctypes.POINTER(ctypes.c_bool),
                   _err)
_dtype_parse = _declare("lade_dtype_parse", _status, _text, ctypes.POINTER(ctypes.c_uint8), _err)

NEW, REPLACE, APPEND = range(3)
PLAIN, COLLECTION, RECORD, VARIANT, STREAMER = range(5)
TOP = 2**64 - 1


def _bytes(text):
    return None if text is None else text.encode()


def repair(path):
    err, mended = lade.LadeError(), ctypes.c_bool()
    _check(_repair(str(path).encode(), None, mended, err), err)
    return mended.value


class Writer:
    """with Writer(path) as w: w.add(("x", "float", TOP)); w.fill(n, {0: array}); w.commit()"""

    def __init__(self, path, name="t", mode=NEW, codec=None, **more):
        err, out = lade.LadeError(), ctypes.c_void_p()
        options = WriterOptions(ctypes.sizeof(WriterOptions), _bytes(name), None, mode,
                                codec=_bytes(codec), field_size=ctypes.sizeof(NewField),
                                fill_size=ctypes.sizeof(Fill), **more)
        _check(_w_open(str(path).encode(), options, out, err), err)
        self.handle = out
        self.report = Report(ctypes.sizeof(Report))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        _w_close(self.handle)

    def add(self, *fields):
        """Each is a dict of NewField's members, or (name, type, parent[, role[, stored]])."""
        names = ("name", "type", "parent", "role", "stored")
        table = (NewField * len(fields))()
        for at, field in zip(table, fields):
            at.parent = TOP
            items = field if isinstance(field, dict) else dict(zip(names, field))
            for key, value in items.items():
                setattr(at, key, value.encode() if isinstance(value, str) else value)
        err = lade.LadeError()
        _check(_w_add(self.handle, table, len(fields), err), err)

    def column(self, path, position=0):
        err, column = lade.LadeError(), _u64()
        _check(_find(_w_schema(self.handle), path.encode(), column, err), err)
        return column.value + position

    def about(self, column):
        return _column(_w_schema(self.handle), column).contents

    def fill(self, count, columns, typed=False):
        """Arrays by column number, or by path; typed: of another type than the column."""
        table, kept, err = (Fill * len(columns))(), [], lade.LadeError()
        for at, (key, array) in zip(table, columns.items()):
            array = np.ascontiguousarray(array)
            kept.append(array)
            at.column = self.column(key) if isinstance(key, str) else key
            at.span = lade.Span(array.ctypes.data, array.nbytes, lade.Place(0, 0))
            if typed and array.dtype.kind != "V":
                dtype = ctypes.c_uint8()
                _dtype_parse(array.dtype.str.encode(), dtype, None)
                at.dtype = dtype.value
        _check(_w_fill(self.handle, count, table, len(columns), self.report, err), err)

    def commit(self):
        err = lade.LadeError()
        _check(_w_commit(self.handle, err), err)
