"""DLPack's C functions of types (__dlpack_c_exchange_api__): a stand-in that has the published
table, and torch, where it is installed.

SPDX-License-Identifier: Apache-2.0
"""

import ctypes
import gc
import sys

import liblade
import numpy as np
import pytest
from liblade import Codec, as_array, from_dlpack

P = ctypes.c_void_p
FROM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(P))
STREAM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(P))
api = ctypes.pythonapi
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [P, ctypes.c_char_p, P]
api.PyCapsule_GetPointer.restype = P
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
USED = b"used_dltensor_versioned"


class Table(ctypes.Structure):
    """DLPackExchangeAPI of dlpack.h 1.3."""


Table._fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                  ("older", ctypes.POINTER(Table)), ("allocate", P), ("from_object", FROM),
                  ("to_object", P), ("look", P), ("work_stream", STREAM)]


class Tensor:
    """A tensor whose type has the functions; its memory is that of 'array'."""

    asked = 0

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **kwargs):
        type(self).asked += 1
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def give(tensor, out):
    """The array's own tensor, taken out of its capsule."""
    if isinstance(tensor.array, Exception):
        raise tensor.array
    kwargs = {"stream": -1} if getattr(tensor.array, "place", "host") == "device" else {}
    capsule = tensor.array.__dlpack__(max_version=(1, 1), **kwargs)
    out[0] = api.PyCapsule_GetPointer(capsule, b"dltensor_versioned")
    api.PyCapsule_SetName(capsule, USED)
    return 0


def with_table(table, base=Tensor):
    """A type with the table."""
    capsule = api.PyCapsule_New(ctypes.addressof(table), b"dlpack_exchange_api", None)
    return type("Tensor", (base,), {"__dlpack_c_exchange_api__": capsule, "table": table})


@FROM
def from_object(tensor, out):
    return give(tensor, out)


@FROM
def from_object_failing(tensor, out):
    return -1


@STREAM
def work_stream(kind, device, out):
    out[0] = Fast.stream
    return 0


TABLE = Table(1, 3, None, None, from_object, None, None, work_stream)
Fast = with_table(TABLE)
Fast.stream = None


@pytest.mark.parametrize("take", [as_array, from_dlpack])
def test_the_functions_are_used(take):
    x = np.arange(24, dtype="<f4").reshape(2, 3, 4)[:, ::-1]
    before = sys.getrefcount(x)
    a = take(Fast(x))
    assert Fast.asked == 0
    assert a.shape == x.shape and a.strides == x.strides and a.dtype == "<f4"
    assert np.shares_memory(np.asarray(a), x) and (np.asarray(a) == x).all()
    del a
    gc.collect()
    assert sys.getrefcount(x) == before
    codec = Codec(algorithm="LZ4")
    out = np.zeros_like(x)
    codec.decode(codec.encode(Fast(x)), out=Fast(out))
    assert (out == x).all() and Fast.asked == 0


def test_other_versions():
    newer = Table(2, 0, ctypes.pointer(TABLE), None, from_object_failing, None, None, work_stream)
    x = np.arange(5)
    one = with_table(newer)(x)
    assert (np.asarray(as_array(one)) == x).all() and one.asked == 0
    newest = Table(2, 0, None, None, from_object_failing, None, None, work_stream)
    one = with_table(newest)(x)
    assert (np.asarray(as_array(one)) == x).all() and type(one).asked == 1


def test_what_the_functions_do_not_serve():
    # Complex numbers of torch's may have to be conjugated yet, which its function does not see.
    x = np.arange(5, dtype="<c8")

    class Counted(Tensor):
        asked = 0

    kind = with_table(TABLE, Counted)
    assert (np.asarray(as_array(kind(x))) == x).all() and kind.asked == 1
    assert (np.asarray(from_dlpack(kind(x), copy=True)) == x).all() and kind.asked == 2

    class Sub(kind):  # a subclass may mean something else
        asked = 0

    assert (np.asarray(as_array(Sub(np.arange(5)))) == np.arange(5)).all() and Sub.asked == 1


def test_where_they_fail_dlpack_is_asked():
    failing = Table(1, 3, None, None, from_object_failing, None, None, work_stream)
    silent = Table(1, 3, None, None, FROM(lambda tensor, out: 0), None, None, work_stream)
    for kind in (with_table(failing), with_table(silent),
                 type("Tensor", (Tensor,), {"__dlpack_c_exchange_api__": 5})):
        assert (np.asarray(as_array(kind(np.arange(5)))) == np.arange(5)).all()
        assert kind.asked == 1


def test_the_order_of_streams():
    """On a device the array is ready on the stream that the producer works on."""
    if not liblade._lade._device_count():
        pytest.skip("there is no device")
    streams = [liblade.CudaStream.make_new() for _ in range(3)]
    one, two, three = (Codec(algorithm="LZ4", bitstream_kind=1, cuda_stream=s) for s in streams)
    for i in range(20):
        x = np.arange(1000 + i, dtype="<i4")
        config = one.compression_config(x.nbytes)
        encoded = one.encode(as_array(x).cuda(cuda_stream=streams[0]), compression_config=config)
        late = one.decode(encoded, decompression_config=one.decompression_config(config))
        Fast.stream = streams[0].ptr
        a = two.encode(Fast(late))
        b = three.encode(from_dlpack(Fast(late), cuda_stream=streams[1]))
        c = as_array(Fast(late), cuda_stream=streams[2])
        assert two.decode(a).tobytes() == three.decode(b).tobytes() == c.tobytes() == x.tobytes()
    Fast.stream = None
    assert as_array(Fast(as_array(x).cuda())).tobytes() == x.tobytes()
    assert Fast.asked == 0


def test_torch():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    for one in (x, x.T, x[:, ::2], x.to(torch.bfloat16)):
        a = from_dlpack(one)
        assert a.shape == tuple(one.shape) and a.ptr == one.data_ptr()
        assert a.tobytes() == as_array(one.contiguous()).tobytes()
    assert torch.from_dlpack(as_array(x)).data_ptr() == x.data_ptr()
    z = torch.complex(x, x)
    assert as_array(z).ptr == z.data_ptr()
    with pytest.raises(BufferError, match="conjugate"):
        as_array(z.conj())
    codec = Codec(algorithm="Zstd")
    out = torch.zeros(3, 4)
    codec.decode(codec.encode(x), out=out)
    assert torch.equal(out, x)
