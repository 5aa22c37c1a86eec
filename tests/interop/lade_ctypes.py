# lade_ctypes.py: liblade through ctypes, for the interop tests.
# SPDX-License-Identifier: Apache-2.0
"""The library is $LADE_LIBRARY, or build/liblade.so of this tree.

    encode("zstd(level=3)", data) -> bytes
    decode("zstd", data, size=None, dict=None, off=None) -> bytes

Failures raise Error with .status (the name, "LADE_E_CORRUPT"), .offset and the message.
"""
import ctypes
import os
import pathlib

_ROOT = pathlib.Path(__file__).resolve().parents[2]
lib = ctypes.CDLL(os.environ.get("LADE_LIBRARY", str(_ROOT / "build" / "liblade.so")))

_size = ctypes.c_size_t
_pointer = ctypes.c_void_p
_text = ctypes.c_char_p
_status = ctypes.c_int

NO_OFFSET = 2**64 - 1


class LadeError(ctypes.Structure):
    _fields_ = [("status", _status), ("offset", ctypes.c_uint64), ("message", ctypes.c_char * 240)]


class Place(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("device", ctypes.c_int32)]


class Span(ctypes.Structure):
    _fields_ = [("data", _pointer), ("size", _size), ("place", Place)]


class Segment(ctypes.Structure):
    _fields_ = [("data", _pointer), ("size", _size), ("place", Place), ("decoded_size", _size)]


class Item(ctypes.Structure):
    _fields_ = [
        ("spec", _pointer),
        ("src", ctypes.POINTER(Segment)),
        ("src_count", _size),
        ("dst", Span),
        ("range_off", ctypes.c_uint64),
        ("range_size", ctypes.c_uint64),
        ("layout", _pointer),
        ("outputs", _pointer),
        ("output_count", _size),
        ("tail", _pointer),
    ]


class Result(ctypes.Structure):
    _fields_ = [("status", _status), ("size", _size)]


class BatchOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", _size),
        ("threads", ctypes.c_uint),
        ("flags", ctypes.c_uint32),
        ("dict", _pointer),
        ("item_errors", ctypes.POINTER(LadeError)),
        ("stream", _pointer),
        ("where", ctypes.c_int),
        ("device", ctypes.c_int32),
    ]


_err = ctypes.POINTER(LadeError)


def _declare(name, result, *arguments):
    function = getattr(lib, name)
    function.restype = result
    function.argtypes = arguments
    return function


_declare("lade_engine_default", _pointer)
_declare("lade_status_name", _text, _status)
_declare("lade_spec_parse", _status, _pointer, _text, ctypes.POINTER(_pointer), _err)
_declare("lade_spec_unref", None, _pointer)
_declare("lade_spec_text", _text, _pointer)
_declare("lade_spec_bound", _size, _pointer, _size)
_declare("lade_dict_new", _status, _pointer, _size, ctypes.POINTER(_pointer), _err)
_declare("lade_dict_free", None, _pointer)
for _name in ("lade_decode_into", "lade_encode_into", "lade_decoded_sizes"):
    _declare(_name, _status, _pointer, _pointer, ctypes.POINTER(Item), _size,
             ctypes.POINTER(Result), ctypes.POINTER(BatchOptions), _err)

engine = lib.lade_engine_default()


class Error(Exception):
    def __init__(self, status, offset, message):
        super().__init__(f"{status}: {message}")
        self.status = status
        self.offset = None if offset == NO_OFFSET else offset


def _check(status, err):
    if status:
        raise Error(lib.lade_status_name(status).decode(), err.offset,
                    err.message.decode(errors="replace"))


class Spec:
    """A parsed spec; str() gives its canonical text."""

    def __init__(self, text):
        self.handle = _pointer()
        err = LadeError()
        _check(lib.lade_spec_parse(None, text.encode(), self.handle, err), err)

    def __del__(self):
        lib.lade_spec_unref(self.handle)

    def __str__(self):
        return lib.lade_spec_text(self.handle).decode()

    def bound(self, size):
        return lib.lade_spec_bound(self.handle, size)


class _Dict:
    def __init__(self, data):
        self.handle = _pointer()
        err = LadeError()
        _check(lib.lade_dict_new(data, len(data), self.handle, err), err)

    def __del__(self):
        lib.lade_dict_free(self.handle)


def _run(function, spec, data, cap, dict=None, threads=0, off=0, count=0):
    spec = spec if isinstance(spec, Spec) else Spec(spec)
    data = bytes(data)
    source = ctypes.create_string_buffer(data, max(len(data), 1))
    target = ctypes.create_string_buffer(max(cap, 1))
    segment = Segment(ctypes.addressof(source), len(data))
    item = Item(src=ctypes.pointer(segment), src_count=1,
                dst=Span(ctypes.addressof(target), cap), range_off=off, range_size=count)
    options = BatchOptions(struct_size=ctypes.sizeof(BatchOptions), threads=threads)
    holder = _Dict(dict) if dict else None
    if holder:
        options.dict = holder.handle
    result, err = Result(), LadeError()
    _check(function(engine, spec.handle, item, 1, result, options, err), err)
    return target.raw[: result.size]


def encode(spec, data, dict=None, cap=None, threads=0):
    """Encodes bytes (or anything bytes() takes) with a spec's text or Spec."""
    spec = spec if isinstance(spec, Spec) else Spec(spec)
    data = bytes(data)
    if cap is None:
        cap = spec.bound(len(data))
    return _run(lib.lade_encode_into, spec, data, cap, dict, threads)


def decoded_size(spec, data):
    """The decoded size as the format tells it; raises LADE_E_UNKNOWN_SIZE where it does not."""
    spec = spec if isinstance(spec, Spec) else Spec(spec)
    data = bytes(data)
    source = ctypes.create_string_buffer(data, max(len(data), 1))
    segment = Segment(ctypes.addressof(source), len(data))
    item = Item(src=ctypes.pointer(segment), src_count=1)
    result, err = Result(), LadeError()
    _check(lib.lade_decoded_sizes(engine, spec.handle, item, 1, result, None, err), err)
    return result.size


def decode(spec, data, size=None, dict=None, threads=0, off=None):
    """Decodes; 'size' is the destination's size, needed where the format does not tell; with
    'off', the range of 'size' bytes from there on."""
    spec = spec if isinstance(spec, Spec) else Spec(spec)
    if off is not None:
        return _run(lib.lade_decode_into, spec, data, size, dict, threads, off, size)
    if size is None:
        try:
            size = decoded_size(spec, data)
        except Error as error:
            if error.status != "LADE_E_UNKNOWN_SIZE":
                raise
            size = 1 << 16
            while True:
                try:
                    return _run(lib.lade_decode_into, spec, data, size, dict, threads)
                except Error as again:
                    if again.status != "LADE_E_NOSPACE" or size > 1 << 30:
                        raise
                    size *= 4
    return _run(lib.lade_decode_into, spec, data, size, dict, threads)
