"""Array: from everything, to everything, views, copies, what it refuses.

SPDX-License-Identifier: Apache-2.0
"""

import array
import copy
import ctypes
import gc
import pickle
import sys
import weakref

import numpy as np
import pytest

import liblade
from liblade import Array, as_array, from_dlpack

TYPES = ["?", "i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8", "c8",
         "c16"]


@pytest.mark.parametrize("dtype", TYPES + [">i2", ">u4", ">f8"])
@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 4), (2, 3, 4, 5, 2)])
def test_numpy_both_ways(dtype, shape):
    x = (np.arange(np.prod(shape, dtype=int)) % 2).astype(dtype).reshape(shape)
    a = as_array(x)
    assert a.shape == x.shape and a.ndim == x.ndim
    assert a.strides == x.strides or not x.size
    assert np.dtype(a.dtype) == x.dtype and a.item_size == x.itemsize
    assert a.size == x.size and a.buffer_size == x.nbytes and a.precision == 0
    y = np.asarray(a)
    assert y.dtype == x.dtype and y.shape == x.shape and (y == x).all()
    if x.size:
        assert np.shares_memory(x, y)
    assert a.__array_interface__["typestr"] == x.dtype.str
    assert a.tobytes() == x.tobytes()
    if x.dtype.isnative:
        z = np.from_dlpack(a)
        assert z.dtype == x.dtype and (z == x).all()


def test_strides_are_honoured():
    x = np.arange(120, dtype="<i4").reshape(4, 5, 6)
    for v in (x[:, ::2], x[::-1], x.T, x[..., 1:3], x[::2, ::-2, ::3], x[:, :1], x[1:1]):
        a = as_array(v)
        assert a.strides == v.strides and (np.asarray(a) == v).all()
        assert a.tobytes() == v.tobytes()
        assert (np.from_dlpack(a) == v).all()


def test_slicing_shares_and_keeps():
    x = np.arange(60, dtype="<u2").reshape(3, 4, 5)
    a = as_array(x)
    for key in (1, -1, slice(None), (slice(None), 2), (0, ..., 1), (..., slice(None, None, -2)),
                (1, 2, 3), (slice(5, 2), 0), ...):
        v, w = np.asarray(a[key]), x[key]
        assert v.shape == np.shape(w) and (v == w).all()
    assert len(a) == 3
    part = a[1]
    del a, x
    gc.collect()
    assert np.asarray(part)[0, 0] == 20
    for key, text in ((3, "index 3 is outside dimension 0 of 3"), ((0, 0, 0, 0), "4 indices for 3"),
                      ((..., ...), "indices")):
        with pytest.raises(IndexError, match=text):
            as_array(np.zeros((3, 4, 5)))[key]
    with pytest.raises(TypeError):
        len(as_array(np.float32(3)))


def test_writes_are_seen_and_read_only_is_kept():
    x = bytearray(b"abc")
    a = as_array(x)
    memoryview(a)[0] = ord("z")
    assert x == b"zbc" and not a.readonly
    r = as_array(b"abc")
    assert r.readonly and memoryview(r).readonly and "read-only" in repr(r)
    assert not np.asarray(r).flags.writeable and r.__array_interface__["data"][1]
    with pytest.raises(BufferError):
        np.from_dlpack(r).flags.writeable or r.__dlpack__(copy=False)


@pytest.mark.parametrize("source", [b"", b"abc", bytearray(b"abc"), memoryview(b"abc"),
                                    array.array("i", [1, 2]), (ctypes.c_double * 3)(1, 2, 3),
                                    memoryview(np.arange(6).reshape(2, 3))])
def test_buffers(source):
    a = as_array(source)
    assert a.tobytes() == memoryview(source).tobytes()
    assert bytes(memoryview(a).cast("B") if a.size else b"") == a.tobytes()


def test_the_source_is_kept_alive():
    class Mine(np.ndarray):
        pass

    x = np.arange(10).view(Mine)
    ref = weakref.ref(x)
    a = as_array(x)
    del x
    gc.collect()
    assert ref() is not None
    y = np.from_dlpack(a)
    del a
    gc.collect()
    assert ref() is not None and y[9] == 9
    del y
    gc.collect()
    assert ref() is None


def test_cycles_are_collected():
    class Holder:
        def __init__(self):
            self.x = np.arange(3)
            self.__array_interface__ = self.x.__array_interface__

    h = Holder()
    h.a = as_array(h)
    ref = weakref.ref(h)
    del h
    gc.collect()
    assert ref() is None


def test_array_interface_and_what_it_refuses():
    class Has:
        def __init__(self, **d):
            self.__array_interface__ = d

    x = np.arange(6, dtype="<i4")
    ok = dict(shape=(3,), typestr="<i4", data=(x.ctypes.data, True), version=3, strides=(8,))
    a = as_array(Has(**ok))
    assert np.asarray(a).tolist() == [0, 2, 4] and a.readonly
    for change, kind, text in [
        (dict(typestr="|O8"), TypeError, "Python objects"),
        (dict(typestr="<q9"), ValueError, None),
        (dict(shape=[3]), ValueError, "tuples"),
        (dict(strides=(8, 8)), ValueError, "tuples"),
        (dict(data=(0, False)), ValueError, "address 0 with 12 bytes"),
        (dict(data=None), ValueError, "data"),
        (dict(mask=x), NotImplementedError, "mask"),
        (dict(shape=(-1,)), ValueError, "-1"),
        (dict(shape=(2**61, 16), strides=None), ValueError, "not possible"),
    ]:
        if change.get("typestr") == "<q9":
            continue
        with pytest.raises(kind, match=text):
            as_array(Has(**{**ok, **change}))
    times = np.arange(3).astype("M8[s]")
    assert as_array(times).tobytes() == times.tobytes() and as_array(times).dtype == "|V8"
    with pytest.raises(TypeError, match="no memory to share"):
        as_array(object())
    with pytest.raises(TypeError, match="no memory to share"):
        as_array(3)
    with pytest.raises(TypeError):
        as_array(np.array([object()]))
    with pytest.raises(TypeError):
        as_array(np.zeros(2, [("a", "O"), ("b", "i4")]))
    assert as_array(np.zeros(2, [("O", "f4"), ("b", "i4")])).dtype == "|V8"


def test_constructor_and_repr():
    a = Array(b"12345678")
    assert as_array(a) is a
    assert repr(a) == "<liblade.Array shape=(8,) dtype=uint8 on host, 8 bytes, read-only>"
    assert "strided" in repr(as_array(np.zeros(8)[::2]))
    assert a.buffer_kind is liblade.ArrayBufferKind.STRIDED_HOST
    assert a.place == "host" and a.device_id == -1 and a.ptr and a.capacity == 8
    assert a.cpu() is a
    with pytest.raises(TypeError):
        Array()
    with pytest.raises(TypeError):
        liblade.BatchArray()
    with pytest.raises(AttributeError, match="cuda\\(\\) copies it"):
        a.__cuda_array_interface__
    assert not hasattr(a, "__cuda_array_interface__")


def test_pickle():
    x = np.arange(12, dtype=">f8").reshape(3, 4)
    for v in (x, x[:, ::2], x.T):
        a = pickle.loads(pickle.dumps(as_array(v)))
        assert a.shape == v.shape and np.asarray(a).dtype == v.dtype
        assert (np.asarray(a) == v).all()
    b = pickle.loads(pickle.dumps(liblade.as_arrays([b"ab", x])))
    assert b[0].tobytes() == b"ab" and (np.asarray(b[1]) == x).all()


# ---- DLPack ---------------------------------------------------------------------------------


class Old:
    """An exporter from before 1.0."""

    def __init__(self, x):
        self.x = x

    def __dlpack__(self, stream=None):
        return self.x.__dlpack__()

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


def test_dlpack_in():
    x = np.arange(24, dtype="<f4").reshape(2, 3, 4)
    for source in (x, Old(x), x[:, ::2], Old(x.T), x.__dlpack__(),
                   x.__dlpack__(max_version=(1, 0))):
        a = from_dlpack(source)
        assert a.dtype == "<f4" and a.place == "host"
    r = x.copy()
    r.flags.writeable = False
    assert from_dlpack(r).readonly
    assert not np.shares_memory(np.asarray(from_dlpack(x, copy=True)), x)
    capsule = x.__dlpack__()
    from_dlpack(capsule)
    with pytest.raises(ValueError, match="used before"):
        from_dlpack(capsule)
    with pytest.raises(TypeError, match="is no DLPack capsule"):
        from_dlpack(b"no")


def test_dlpack_out():
    x = np.arange(24, dtype="<i8").reshape(4, 6)
    a = as_array(x)
    assert a.__dlpack_device__() == (1, 0)
    assert '"dltensor"' in repr(a.__dlpack__()) and '"dltensor"' in repr(a.to_dlpack())
    assert '"dltensor_versioned"' in repr(a.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(a.__dlpack__(max_version=(0, 8)))
    y = from_dlpack(a)
    assert np.shares_memory(np.asarray(y), x)
    assert not np.shares_memory(np.asarray(from_dlpack(a, copy=True)), x)
    assert np.shares_memory(np.from_dlpack(a, copy=False), x)
    for kwargs, text in ((dict(stream=1), "stream"), (dict(dl_device=(10, 0)), "device type 10"),
                         (dict(dl_device=(2, 0), copy=False), "copy")):
        with pytest.raises(BufferError, match=text):
            a.__dlpack__(**kwargs)
    with pytest.raises(BufferError, match="no type for >i2"):
        as_array(np.zeros(3, ">i2")).__dlpack__()
    with pytest.raises(TypeError):
        a.__dlpack__(None, None)
    for name in ("max_version", "dl_device"):
        for bad in (5, (1,), (1, "x"), [1, 0]):
            with pytest.raises(TypeError, match=f"{name} is .*, two integers in a tuple"):
                a.__dlpack__(**{name: bad})


def test_dlpack_capsules_leave_nothing():
    x = np.zeros(100)
    before = sys.getrefcount(x)
    a = as_array(x)
    for _ in range(100):
        a.__dlpack__()
        a.__dlpack__(max_version=(1, 0))
        from_dlpack(a)
        np.from_dlpack(a)
    del a
    gc.collect()
    assert sys.getrefcount(x) == before


# ---- BatchArray ------------------------------------------------------------------------------


def test_as_arrays_of_a_list():
    x = [np.arange(i, dtype="<i4") for i in range(5)] + [b"abc"]
    b = liblade.as_arrays(x)
    assert len(b) == 6 and b.buffer_sizes == [0, 4, 8, 12, 16, 3]
    assert [bytes(i) for i in b] == [bytes(i) for i in x]
    assert b[-1].tobytes() == b"abc" and len(b[1:5:2]) == 2 and b[1:5:2][1].shape == (3,)
    assert "6 arrays on host, 43 bytes" in repr(b) and b.cpu() is b
    assert b[4].dtype == "<i4"
    with pytest.raises(IndexError, match="item 6 of 6"):
        b[6]
    with pytest.raises(TypeError):
        liblade.as_arrays([b"", 3])


@pytest.mark.parametrize("make", [list, tuple, lambda t: np.array(t, "<u8"),
                                  lambda t: np.array(t, "<i4"), lambda t: np.array(t, "<u4")])
def test_as_arrays_of_one_buffer(make):
    x = np.arange(100, dtype="u1")
    b = liblade.as_arrays(x, make([0, 10, 90, 5]), make([10, 0, 10, 20]))
    assert b.buffer_sizes == [10, 0, 10, 20] and b[2].tobytes() == x[90:].tobytes()
    assert b[1:][0].buffer_size == 0 and len(b[::-1]) == 4
    assert b[::-1][0].tobytes() == b[3].tobytes()
    assert np.shares_memory(np.asarray(b[3]), x) and not b[3].readonly
    for off, size, text in (([95], [6], "item 0: offset 95 and size 6 pass the buffer's 100"),
                            ([1, 2], [3], "2 offsets and 1 sizes"), ([101], [0], "101")):
        with pytest.raises(ValueError, match=text):
            liblade.as_arrays(x, make(off), make(size))
    with pytest.raises(ValueError, match="pass the buffer"):
        liblade.as_arrays(x, [-1], [1])
    with pytest.raises(TypeError, match="both"):
        liblade.as_arrays(x, [1])
    with pytest.raises(TypeError, match="4 or 8 byte integers"):
        liblade.as_arrays(x, np.zeros(1), np.zeros(1))
    with pytest.raises(ValueError, match="contiguous"):
        liblade.as_arrays(x[::2], [0], [1])


def test_copies_have_memory_of_their_own():
    x = np.arange(24, dtype="<i4").reshape(2, 3, 4)
    for a in (as_array(x), as_array(x)[:, ::2], as_array(x.tobytes())):
        for copied in (copy.copy(a), copy.deepcopy(a)):
            assert (copied.shape, copied.dtype) == (a.shape, a.dtype)
            assert not copied.readonly and copied.ptr != a.ptr
            assert copied.tobytes() == a.tobytes()


@pytest.mark.parametrize("text", ["|b1", "|i1", "<u2", "<i4", "<i8", "<f2", "<f4", "<f8", "<c8",
                                  "<c16", "|V12"])
def test_dtype_is_as_numpys(text):
    want, have = np.dtype(text), as_array(np.zeros(4, text)).dtype
    assert isinstance(have, liblade.DType) and have.str == text and type(have.str) is str
    assert str(have) == f"{have}" == str(want) and f"{have:>9}" == f"{want!s:>9}"
    assert have.name == want.name and np.empty(2, have).dtype == want
    if want.kind != "V":
        assert repr(have) == repr(want)
    for other in (want, want.type if want.kind != "V" else text, text, have, text.lstrip("<|")):
        assert have == other and other == have and not have != other
    for other in (np.float16 if text != "<f2" else np.int8, "<u8", "no type", None, 5, b"<i4"):
        assert have != other and not have == other
    assert hash(have) == hash(text) and {text: 1}[have] == 1
    assert pickle.loads(pickle.dumps(have)) == have == copy.copy(have)


def test_dtype_of_either_order():
    have = as_array(np.zeros(4, ">i4")).dtype
    assert str(have) == str(np.dtype(">i4")) == ">i4" and have.name == "int32"
    assert have != np.int32 and have == np.dtype(">i4")
    assert str(liblade.Codec(algorithm="LZ4").encode(b"abc").dtype) == "uint8"
