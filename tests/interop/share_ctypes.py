# share_ctypes.py: liblade's share calls through ctypes, for the interop tests.
# SPDX-License-Identifier: Apache-2.0
"""with Broker(folder) as b, b.connect() as s: s.publish("x", [batch]); s.get("x") is a list
of pyarrow objects over the memory that was published."""
import ctypes
import os
import signal
import time

import lade_ctypes as lade
import pyarrow as pa

_size, _pointer, _text = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_char_p
_u64, _u32, _status = ctypes.c_uint64, ctypes.c_uint32, ctypes.c_int
_err = ctypes.POINTER(lade.LadeError)
IF_NEEDED, NEVER, ALWAYS = 0, 1, 2
LAYOUT, FULL = 1, 2


class Options(ctypes.Structure):
    _fields_ = [("struct_size", _size), ("path", _text), ("timeout_ms", _u32)]


class Table(ctypes.Structure):
    _fields_ = [("struct_size", _size), ("schema", _pointer), ("batches", _pointer),
                ("batch_count", _size), ("copy", ctypes.c_int)]


class Published(ctypes.Structure):
    _fields_ = [("struct_size", _size), ("version", _u64), ("shared", _u64), ("copied", _u64),
                ("why", ctypes.c_char * 120)]


class OpenOptions(ctypes.Structure):
    _fields_ = [("struct_size", _size), ("version", _u64), ("check", ctypes.c_int),
                ("writable", ctypes.c_bool)]


class Info(ctypes.Structure):
    _fields_ = [("name", _text), ("version", _u64), ("rows", _u64), ("bytes", _u64),
                ("time", _u64), ("columns", _u32), ("batches", _u32), ("uid", _u32), ("pid", _u32)]


class ServeOptions(ctypes.Structure):
    _fields_ = [("struct_size", _size), ("path", _text), ("group", ctypes.c_bool), ("gid", _u32),
                ("bytes_cap", _u64), ("client_cap", _u32), ("name_cap", _u32), ("stop", _pointer),
                ("ready", _pointer), ("ready_ctx", _pointer)]


class Place(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("device", ctypes.c_int32)]


class Span(ctypes.Structure):
    _fields_ = [("data", _text), ("size", _size), ("place", Place)]


class Source(ctypes.Structure):
    _fields_ = [("ops", _pointer), ("ctx", _pointer)]


_types = {
    "lade_share_serve": (_status, [ctypes.POINTER(ServeOptions), _err]),
    "lade_share_connect": (_status, [ctypes.POINTER(Options), ctypes.POINTER(_pointer), _err]),
    "lade_share_close": (None, [_pointer]),
    "lade_share_publish": (_status, [_pointer, _text, ctypes.POINTER(Table),
                                     ctypes.POINTER(Published), _err]),
    "lade_share_open": (_status, [_pointer, _text, ctypes.POINTER(OpenOptions),
                                  ctypes.POINTER(_pointer), _err]),
    "lade_share_version_info": (ctypes.POINTER(Info), [_pointer]),
    "lade_share_version_schema": (_status, [_pointer, _pointer, _err]),
    "lade_share_version_array": (_status, [_pointer, _size, _pointer, _err]),
    "lade_share_version_unref": (None, [_pointer]),
    "lade_share_publish_ipc": (_status, [_pointer, _text, Source, _u32,
                                         ctypes.POINTER(Published), _err]),
    "lade_source_memory_open": (_status, [Span, ctypes.POINTER(Source), _err]),
    "lade_source_close": (None, [Source]),
}
for _name, (_result, _arguments) in _types.items():
    _function = getattr(lade.lib, _name)
    _function.restype, _function.argtypes = _result, _arguments


def check(status, err):
    if status:
        raise RuntimeError(f"{status}: {err.message.decode()}")


class Memory:
    """Bytes as a source."""

    def __init__(self, data):
        self.data, self.source, err = data, Source(), lade.LadeError()
        check(lade.lib.lade_source_memory_open(Span(data, len(data), Place()),
                                               ctypes.byref(self.source), ctypes.byref(err)), err)

    def __enter__(self):
        return self.source

    def __exit__(self, *_):
        lade.lib.lade_source_close(self.source)


class Broker:
    def __init__(self, folder):
        self.path = os.fspath(folder) + "/share"
        self.pid = os.fork()
        if not self.pid:
            options = ServeOptions(ctypes.sizeof(ServeOptions), self.path.encode())
            lade.lib.lade_share_serve(ctypes.byref(options), None)
            os._exit(1)

    def connect(self):
        for _ in range(500):
            try:
                return Share(self.path)
            except RuntimeError:
                time.sleep(0.01)
        raise RuntimeError("the broker does not answer")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.unlink(self.path + ".keeper")  # then the keeper ends, too


class Share:
    def __init__(self, path):
        self.handle, err = _pointer(), lade.LadeError()
        options = Options(ctypes.sizeof(Options), path.encode(), 0)
        check(lade.lib.lade_share_connect(ctypes.byref(options), ctypes.byref(self.handle),
                                          ctypes.byref(err)), err)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        lade.lib.lade_share_close(self.handle)

    def publish(self, name, arrays, schema=None, copy=IF_NEEDED):
        """Arrays or record batches of one type."""
        first = arrays[0] if arrays else None
        schema = schema or (first.schema if isinstance(first, pa.RecordBatch) else first.type)
        exported = ctypes.create_string_buffer(72)
        schema._export_to_c(ctypes.addressof(exported))
        structs = [ctypes.create_string_buffer(80) for _ in arrays]
        for array, to in zip(arrays, structs):
            array._export_to_c(ctypes.addressof(to))
        pointers = (_pointer * (len(arrays) + 1))(*map(ctypes.addressof, structs))
        table = Table(ctypes.sizeof(Table), ctypes.addressof(exported),
                      ctypes.addressof(pointers), len(arrays), copy)
        out, err = Published(ctypes.sizeof(Published)), lade.LadeError()
        status = lade.lib.lade_share_publish(self.handle, name.encode(), ctypes.byref(table),
                                             ctypes.byref(out), ctypes.byref(err))
        # Imports what was exported, so that it is released.
        kind = pa.RecordBatch if isinstance(first, pa.RecordBatch) else pa.Array
        for to in structs:
            again = ctypes.create_string_buffer(72)
            schema._export_to_c(ctypes.addressof(again))
            kind._import_from_c(ctypes.addressof(to), ctypes.addressof(again))
        type(schema)._import_from_c(ctypes.addressof(exported))
        check(status, err)
        return out

    def publish_ipc(self, name, source):
        err = lade.LadeError()
        check(lade.lib.lade_share_publish_ipc(self.handle, name.encode(), source, 0, None,
                                              ctypes.byref(err)), err)

    def get(self, name, version=0, level=FULL, writable=False, table=False):
        handle, err = _pointer(), lade.LadeError()
        options = OpenOptions(ctypes.sizeof(OpenOptions), version, level, writable)
        check(lade.lib.lade_share_open(self.handle, name.encode(), ctypes.byref(options),
                                       ctypes.byref(handle), ctypes.byref(err)), err)
        out = []
        for i in range(lade.lib.lade_share_version_info(handle).contents.batches):
            schema, array = ctypes.create_string_buffer(72), ctypes.create_string_buffer(80)
            check(lade.lib.lade_share_version_schema(handle, ctypes.addressof(schema),
                                                     ctypes.byref(err)), err)
            check(lade.lib.lade_share_version_array(handle, i, ctypes.addressof(array),
                                                    ctypes.byref(err)), err)
            out.append((pa.RecordBatch if table else pa.Array)._import_from_c(
                ctypes.addressof(array), ctypes.addressof(schema)))
        lade.lib.lade_share_version_unref(handle)
        return out
