"""liblade.share with columns on a device: a real one, or the emulated one when run.sh finds it.

SPDX-License-Identifier: Apache-2.0
"""

import ctypes
import decimal
import gc
import weakref

import numpy as np
import pytest
from device_kit import COUNT, EMU, NO_DEVICE
from test_share import apart, path  # noqa: F401  (a fixture)

import liblade
import liblade.share

pa = pytest.importorskip("pyarrow", reason="no wheel of pyarrow")
pytestmark = pytest.mark.skipif(COUNT == 0, reason=NO_DEVICE)
N = 3000


# ---- what cudf and others would give -------------------------------------------------------------


class _Array(ctypes.Structure):
    pass


_Array._fields_ = [
    *((name, ctypes.c_int64) for name in (
        "length", "null_count", "offset", "n_buffers", "n_children")),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.POINTER(_Array)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.c_void_p)), ("private", ctypes.c_void_p),
]  # fmt: skip


class _DeviceArray(ctypes.Structure):
    _fields_ = [("array", _Array), ("device_id", ctypes.c_int64),
                ("device_type", ctypes.c_int32), ("sync_event", ctypes.c_void_p),
                ("reserved", ctypes.c_int64 * 3)]  # fmt: skip


_get = ctypes.pythonapi.PyCapsule_GetPointer
_get.restype, _get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_new = ctypes.pythonapi.PyCapsule_New
_new.restype = ctypes.py_object
_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class OnDevice:
    """An array of pyarrow whose buffers are copied to a device, padded to 64 bytes as cudf's."""

    def __init__(self, array):
        self.schema, self.capsule = array.__arrow_c_array__()
        self.kept = []
        self.sizes = {}
        self.measure(array)
        self.struct = _DeviceArray(device_type=2)
        host = _Array.from_address(_get(self.capsule, b"arrow_array"))
        self.move(host)
        ctypes.memmove(ctypes.addressof(self.struct.array), ctypes.addressof(host),
                       ctypes.sizeof(_Array))  # fmt: skip

    def measure(self, array):
        if isinstance(array, pa.RecordBatch):
            for column in array.columns:
                self.measure(column)
            return
        self.sizes |= {b.address: b.size for b in array.buffers() if b}
        if isinstance(array, pa.DictionaryArray):
            self.measure(array.dictionary)
        elif isinstance(array, pa.StructArray):
            for i in range(array.type.num_fields):
                self.measure(array.field(i))
        elif hasattr(array, "values") and isinstance(array.values, pa.Array):
            self.measure(array.values)

    def move(self, array):
        for i in range(array.n_buffers):
            if not array.buffers[i]:
                continue
            size = self.sizes.get(array.buffers[i], 8 * (array.n_buffers - 3))
            data = ctypes.string_at(array.buffers[i], size)
            padded = np.frombuffer(data + b"\xee" * (-len(data) % 64 or 64), "u1")
            self.kept.append(liblade.as_array(padded).cuda())
            array.buffers[i] = self.kept[-1].ptr
        for i in range(array.n_children):
            self.move(array.children[i].contents)
        if array.dictionary:
            self.move(array.dictionary.contents)

    def __arrow_c_device_array__(self, requested_schema=None, **options):
        return self.schema, _new(ctypes.addressof(self.struct), b"arrow_device_array", None)


def some(values, every=3):
    """Each 'every'th is null."""
    return [None if i % every == 1 else v for i, v in enumerate(values)]


STRUCT = pa.struct([("a", pa.int32()), ("b", pa.string())])
COLUMNS = {
    "null": pa.nulls(N),
    "bool": pa.array(some([i % 5 < 2 for i in range(N)])),
    "bool_no_nulls": pa.array([i % 5 < 2 for i in range(N)]),
    "int8": pa.array(some([i % 100 for i in range(N)]), pa.int8()),
    "int64": pa.array(range(N), pa.int64()),
    "half": pa.array(np.arange(N, dtype="f2")),
    "double": pa.array(some([i / 7 for i in range(N)])),
    "decimal": pa.array(some([decimal.Decimal(i) / 8 for i in range(N)]), pa.decimal128(20, 4)),
    "date": pa.array(some(range(N)), pa.date32()),
    "time": pa.array(some(range(N)), pa.time64("us")),
    "timestamp": pa.array(some(range(N)), pa.timestamp("ns", "Europe/Berlin")),
    "duration": pa.array(some(range(N)), pa.duration("ms")),
    "string": pa.array(some([f"é{i}" for i in range(N)])),
    "large_string": pa.array(some([f"é{i}" for i in range(N)]), pa.large_string()),
    "string_view": pa.array(some([f"é{i}" * (i % 7) for i in range(N)]), pa.string_view()),
    "binary": pa.array(some([bytes([i % 256]) * (i % 9) for i in range(N)])),
    "fixed_binary": pa.array(some([bytes([i % 256]) * 5 for i in range(N)]), pa.binary(5)),
    "list": pa.array(some([list(range(i % 6)) for i in range(N)])),
    "list_of_strings": pa.array(some([[f"{j}" for j in range(i % 4)] for i in range(N)])),
    "fixed_list": pa.array(some([[i, None, 3] for i in range(N)]), pa.list_(pa.int16(), 3)),
    "struct": pa.array(some([{"a": i, "b": f"{i}"} for i in range(N)]), STRUCT),
    "map": pa.array(some([[(f"{i}", i)] for i in range(N)]), pa.map_(pa.string(), pa.int32())),
    "dictionary": pa.array(some([f"v{i % 11}" for i in range(N)])).dictionary_encode(),
    "runs": pa.RunEndEncodedArray.from_arrays(
        pa.array(range(10, N + 1, 10), pa.int32()), pa.array(some(range(N // 10)))
    ),
}
CUTS = {"whole": slice(None), "bytes": slice(8, 1608), "bits": slice(5, 1002), "empty": slice(7, 7)}


@pytest.mark.parametrize("copy", ["if_needed", "always"])
@pytest.mark.parametrize("cut", CUTS)
def test_types_go_from_a_device_to_the_host(path, cut, copy):  # noqa: F811
    with liblade.share.connect(path) as share:
        for kind, column in COLUMNS.items():
            want = column[CUTS[cut]]
            done = share.publish("x", OnDevice(want), copy=copy)
            assert done.shared == 0, kind
            # The host sees nothing but what must be rewritten, and bitmaps.
            if "rewritten" not in done.why:
                assert done.staged <= done.copied // 2 + 8, kind
            got = share.get("x", place="host", check="full")
            assert pa.chunked_array(got).to_pylist() == want.to_pylist(), kind
            assert got.info.copied == (done.copied > 0), kind
            assert got.info.rows == len(want), kind


def test_a_table_goes_from_hand_to_hand(path):  # noqa: F811
    names = [k for k in COLUMNS if k != "runs"]
    batch = pa.record_batch([COLUMNS[k] for k in names], names)[3:2500]
    with liblade.share.connect(path) as share:
        done = share.publish("x", OnDevice(batch))
        assert done.copied > 0 and done.staged < done.copied
        x = share.get("x", place="gpu")
        assert (x.info.device, x.info.on_device, x.info.copied) == (0, True, False)
        for refused in (x.to_pyarrow, x.__arrow_c_stream__):
            with pytest.raises(ValueError, match="place='host'"):
                refused()
        again = share.publish("y", x, copy="never")
        assert (again.copied, again.staged) == (0, 0)
        # Another process publishes it once more: the same block.
        apart(path, "share.publish('z', share.get('y', place='gpu'), copy='never')")
        share.remove("x"), share.remove("y")
        x.close()
        z = share.get("z", place="host", check="full")
        assert z.to_pyarrow().to_batches()[0].to_pylist() == batch.to_pylist()
        assert share.datasets()[0].on_device
        with pytest.raises(ValueError, match="is on device 0, and 'gpu:1' was asked for"):
            share.get("z", place="gpu:1")
        with pytest.raises(ValueError, match="place is 'moon'"):
            share.get("z", place="moon")
        share.publish("h", pa.table({"a": [1]}))
        with pytest.raises(ValueError, match="is on the host, and 'gpu' was asked for"):
            share.get("h", place="gpu")


def test_numbers_of_other_libraries(path):  # noqa: F811
    want = np.arange(50000.0)
    with liblade.share.connect(path) as share:
        done = share.publish("x", liblade.as_array(want).cuda())
        assert done.copied == want.nbytes and done.staged == 0
        got = share.get("x", place="gpu").numbers()
        assert got.place == "device" and got.readonly
        gc.collect()
        assert (np.asarray(got.cpu()) == want).all()
        apart(
            path,
            "import numpy as np\n"
            "a = share.get('x').numbers()\n"
            "assert a.place == 'device'\n"
            "assert (np.asarray(a.cpu()) == np.arange(50000.0)).all()",
        )
        # Memory that is published without a copy: again read-only.
        own = share.empty(want.nbytes, place="gpu")
        assert own.place == "device"


@pytest.mark.skipif(EMU is None, reason="the emulated driver gives memory to be lent")
def test_memory_that_is_lent(path):  # noqa: F811
    # As cudaMalloc(): the library's own memory is of a pool.
    want = np.arange(50000)
    driver = ctypes.CDLL("libcuda.so.1")
    at, context = ctypes.c_uint64(), ctypes.c_void_p()
    host = liblade.as_array(want).cuda()
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert driver.cuCtxPushCurrent_v2(context) == 0
    assert driver.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(want.nbytes)) == 0
    source = ctypes.c_uint64(host.ptr)
    assert driver.cuMemcpyAsync(at, source, ctypes.c_size_t(want.nbytes), None) == 0
    assert driver.cuStreamSynchronize(None) == 0

    class Foreign:
        __cuda_array_interface__ = {
            "shape": want.shape,
            "typestr": "<i8",
            "data": (at.value, False),
            "version": 3,
        }

    with liblade.share.connect(path) as other:
        with liblade.share.connect(path) as share:
            assert share.publish("x", Foreign()).leased == 0
            done = share.publish("x", Foreign(), copy="never")
            assert (done.copied, done.leased) == (0, want.nbytes)
            assert share.get("x").info.leased
            apart(
                path,
                "import numpy as np\n"
                "x = share.get('x')\n"
                "assert x.info.leased\n"
                "assert (np.asarray(x.numbers().cpu()) == np.arange(50000)).all()",
            )
            with pytest.raises(liblade.UnsupportedError):
                share.publish("y", host, copy="never")
            # Of older versions, too: somebody may have them open.
            foreign = Foreign()
            kept = weakref.ref(foreign)
            assert share.publish("z", foreign, copy="never").leased
            del foreign
            share.publish("z", want)
            gc.collect()
            assert kept() is not None
        gc.collect()
        assert kept() is None
        with pytest.raises(liblade.InputError, match="there is no 'x'"):
            for _ in range(500):
                other.get("x")
    assert driver.cuMemFree_v2(at) == 0
    assert driver.cuCtxPopCurrent_v2(ctypes.byref(context)) == 0


def test_nothing_is_left(path):  # noqa: F811
    if not EMU:
        pytest.skip("the emulated device counts")
    with liblade.share.connect(path) as share:
        for _ in range(20):
            share.publish("x", liblade.as_array(np.arange(50000.0)).cuda())
            numbers = share.get("x").numbers()
            assert numbers.size == 50000
            del numbers
    gc.collect()
    assert (EMU.maps, EMU.handles, EMU.reserved) == (0, 0, 0)


def test_without_a_device(path):  # noqa: F811
    with liblade.share.connect(path) as share:
        share.publish("x", liblade.as_array(np.arange(50000)).cuda())
        # Where the driver is not found.
        text = apart(
            path,
            "import os, subprocess\n"
            "if 'ld' not in sys.argv:\n"
            "    env = {k: v for k, v in os.environ.items() if k != 'LD_LIBRARY_PATH'}\n"
            "    code = '''\n"
            "import sys, liblade.share\n"
            "share = liblade.share.connect(sys.argv[1])\n"
            "if not liblade._lade._device_count():\n"
            "    try:\n"
            "        share.get('x')\n"
            "    except liblade.DeviceError as e:\n"
            "        assert 'driver' in str(e) or 'device' in str(e), e\n"
            "print(share.get('x', place='host').to_pyarrow()[49999])\n"
            "'''\n"
            "    print(subprocess.check_output([sys.executable, '-c', code, sys.argv[1]],\n"
            "                                  env=env, text=True).strip())",
        )
        assert text == "49999"
