"""Streams given by their handles, as CuPy's users write them: their owner may end them as soon as a
call is over, whatever work is left on them and whatever lives that the call made.

SPDX-License-Identifier: Apache-2.0
"""

import contextlib
import ctypes
import gc

import numpy as np
import pytest
from device_kit import COUNT, EMU, NO_DEVICE

import liblade
from liblade import Codec, as_array, as_arrays

pytestmark = pytest.mark.skipif(not COUNT, reason=NO_DEVICE)
X = np.tile(np.arange(50, dtype="<i4"), 8)
BAD = b"\xf0" + b"\xff" * 40


@pytest.fixture(params=[0, 7] if EMU else [0], autouse=True)
def seed(request):
    if EMU:
        EMU.seed = request.param
    yield request.param
    gc.collect()
    if EMU:
        # The emulated driver tells of each use of a stream that has ended; a real one crashes.
        assert EMU.message == b""
        EMU.seed = 0


@contextlib.contextmanager
def context():
    """The device's primary context, where CuPy makes its streams."""
    cuda, primary = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(primary), 0) == 0
    assert cuda.cuCtxPushCurrent_v2(primary) == 0
    yield cuda
    assert cuda.cuCtxPopCurrent_v2(ctypes.byref(primary)) == 0


class Stream:
    """As cupy.cuda.Stream: ptr is the handle, which ends with the object."""

    def __init__(self, non_blocking=False):
        handle = ctypes.c_void_p()
        with context() as cuda:
            assert cuda.cuStreamCreate(ctypes.byref(handle), int(non_blocking)) == 0
        self.ptr = handle.value

    def end(self):
        if self.ptr:
            with context() as cuda:
                assert cuda.cuStreamDestroy_v2(ctypes.c_void_p(self.ptr)) == 0
        self.ptr = 0

    __del__ = end


class Interface:
    """Somebody's array that is ready on a stream of theirs."""

    def __init__(self, array, stream):
        self.array = array
        self.__cuda_array_interface__ = dict(array.__cuda_array_interface__, stream=stream.ptr)


def raw(stream, algorithm="LZ4"):
    return Codec(algorithm=algorithm, bitstream_kind=1, cuda_stream=stream)


def check(made, data=X):
    """Everything that can be done with what a call gave, whose stream has ended."""
    alive = liblade.CudaStream.make_new()
    codec = raw(alive)
    many = isinstance(made, liblade.BatchArray)
    for one in made if many else [made]:
        assert one.__cuda_array_interface__["stream"] != 0
        assert one.shape and one.buffer_size == data.nbytes
        one.__dlpack__(stream=alive.ptr)
        assert codec.decode(codec.encode(one)).tobytes() == data.tobytes()
        assert one.tobytes() == one.cpu().tobytes() == data.tobytes()
        assert liblade.from_dlpack(one, copy=True).tobytes() == data.tobytes()
        one.synchronize()
    if many:
        made.synchronize()
        assert [one.tobytes() for one in made.cpu()] == [data.tobytes()] * len(made)
        assert codec.decode(codec.encode(made))[-1].tobytes() == data.tobytes()
        assert codec.encode(made[-1:])[0].buffer_size < data.nbytes


def given(stream, how):
    return stream.ptr if how == "handle" else stream


@pytest.mark.parametrize("how", ["handle", "object"])
@pytest.mark.parametrize("make", [
    lambda s, c, e, x: c.decode(e),
    lambda s, c, e, x: c.decode(c.encode(x)),
    lambda s, c, e, x: c.decode([e, e]),
    lambda s, c, e, x: c.decode([e, e], out=[x[:], as_array(X).cuda(cuda_stream=s)]),
    lambda s, c, e, x: c.decode(c.encode([x, x, x])),
    lambda s, c, e, x: c.decode(c.encode(x), out=c.encode(x)),
    lambda s, c, e, x: c.decode(e, out=as_array(np.zeros_like(X)).cuda(cuda_stream=s)[:]),
    lambda s, c, e, x: c.decode(as_arrays(e, [0, 0], [e.buffer_size] * 2), out=as_arrays(
        as_array(np.zeros(2 * X.nbytes, "u1")).cuda(cuda_stream=s), [0, X.nbytes], [X.nbytes] * 2)),
    lambda s, c, e, x: Codec(algorithm="Zstd", cuda_stream=s).decode(
        Codec(algorithm="Zstd", cuda_stream=s).encode(x)),
    lambda s, c, e, x: Codec(algorithm="LZ4", cuda_stream=s).decode(
        Codec(algorithm="LZ4", cuda_stream=s).encode([x, x])),
    lambda s, c, e, x: c.decode([e, e], errors="return")[1],
    lambda s, c, e, x: as_array(X).cuda(cuda_stream=s),
    lambda s, c, e, x: as_arrays([X, X]).cuda(cuda_stream=s),
    lambda s, c, e, x: as_arrays(bytes(X) * 2, [0, X.nbytes], [X.nbytes] * 2).cuda(cuda_stream=s),
    lambda s, c, e, x: liblade.from_dlpack(x, cuda_stream=s, copy=True),
])  # fmt: skip
def test_what_a_call_makes_outlives_its_stream(make, how):
    stream = Stream()
    s = given(stream, how)
    codec = raw(s)
    x = as_array(X).cuda(cuda_stream=s)
    made = make(s, codec, codec.encode(x), x)
    stream.end()  # with work left on it
    del x
    check(made)
    del made, codec, stream, s
    gc.collect()


@pytest.mark.parametrize("take", [
    lambda i, s: as_array(i),
    lambda i, s: as_array(i, cuda_stream=s),
    lambda i, s: as_arrays([i, i]),
    lambda i, s: as_arrays([i, i], cuda_stream=s),
    lambda i, s: as_arrays(i, [0], [X.nbytes]),
    lambda i, s: raw(s).decode(raw(s).encode(i)),
    lambda i, s: raw(s).decode(raw(s).encode(X).cuda(cuda_stream=s), out=i),
])
def test_arrays_of_others_outlive_their_streams(take):
    """Their memory is theirs to keep, and theirs is the stream, too."""
    theirs, ours = Stream(), Stream()
    x = as_array(X).cuda()
    made = take(Interface(x, theirs), ours.ptr)
    theirs.end()
    ours.end()
    check(made)


def test_failures_are_told_when_the_stream_has_ended():
    stream = Stream()
    codec = raw(stream.ptr)
    config = codec.decompression_config(codec.compression_config([X.nbytes] * 2))
    bad = as_array(BAD).cuda(cuda_stream=stream.ptr)
    good = codec.encode(as_array(X).cuda(cuda_stream=stream.ptr))
    result = codec.decode([good, bad], decompression_config=config)
    stream.end()
    for _ in range(2):
        with pytest.raises(liblade.CorruptError, match="item 1"):
            result.synchronize()


def test_results_may_go_before_and_after_their_stream():
    rng = np.random.default_rng(EMU.seed if EMU else 1)
    data = X.tobytes()
    for _ in range(5 if EMU else 200):
        streams = [Stream(bool(rng.integers(2))) for _ in range(3)]
        held = []
        for _ in range(12):
            stream = streams[rng.integers(3)]
            if not stream.ptr:
                continue
            codec = raw(stream.ptr, ["LZ4", "Snappy"][rng.integers(2)])
            x = as_array(X).cuda(cuda_stream=stream.ptr)
            coded = codec.encode([x] * 3)
            held.append((codec.decode(coded), coded))
            if held and rng.integers(2):
                held.pop(rng.integers(len(held)))
            if rng.integers(4) == 0:
                stream.end()
        for stream in streams:
            stream.end()
        for decoded, coded in held:
            if rng.integers(2):
                assert decoded[2].tobytes() == data and coded[0].buffer_size < len(data)


def test_memory_goes_back_behind_whoever_reads_it():
    """A kernel of somebody else's on a stream of theirs, which the library does not know."""
    if EMU is None or EMU.seed:
        pytest.skip("what runs when is the emulated driver's to say")
    stream, other = Stream(), Stream(non_blocking=True)
    codec = raw(stream.ptr)
    a = codec.decode(codec.encode(as_array(X).cuda(cuda_stream=stream.ptr)))
    a.synchronize()
    address = a.__cuda_array_interface__["data"][0]
    buffer = liblade.as_array(bytes(X.nbytes)).cuda()
    with context() as cuda:
        assert cuda.cuMemcpyAsync(ctypes.c_uint64(buffer.__cuda_array_interface__["data"][0]),
                                  ctypes.c_uint64(address), ctypes.c_size_t(X.nbytes),
                                  ctypes.c_void_p(other.ptr)) == 0  # fmt: skip
    blocks = EMU.blocks
    del a, codec
    gc.collect()
    stream.end()
    for _ in range(3):
        as_array(X).cuda()
    assert buffer.tobytes() != X.tobytes()  # it has not run: the default stream waits for none
    with context() as cuda:
        assert cuda.cuStreamSynchronize(ctypes.c_void_p(other.ptr)) == 0
    assert buffer.tobytes() == X.tobytes()
    with context() as cuda:
        assert cuda.cuCtxSynchronize() == 0
    assert EMU.blocks < blocks


def test_a_chain_by_handle_does_not_wait():
    stream = Stream()
    codec = raw(stream.ptr)
    config = codec.decompression_config(codec.compression_config(X.nbytes))
    x = as_array(X).cuda(cuda_stream=stream.ptr)
    codec.decode(codec.encode(x), decompression_config=config).synchronize()
    syncs = EMU.syncs if EMU else 0
    made = codec.decode(codec.encode(x), decompression_config=config)
    assert EMU is None or EMU.syncs == syncs
    assert made.tobytes() == X.tobytes()


def test_many_streams_share_homes():
    streams = [Stream() for _ in range(70)]
    x = as_array(X).cuda()
    made = [raw(s.ptr).decode(raw(s.ptr).encode(x)) for s in streams]
    for stream in streams:
        stream.end()
    assert all(m.tobytes() == X.tobytes() for m in made[::9])


def test_a_dead_handle_is_an_error_where_the_driver_tells():
    if EMU is None:
        pytest.skip("a real driver need not tell")
    stream = Stream()
    codec, dead = raw(stream.ptr), stream.ptr
    x = as_array(X).cuda()
    stream.end()
    for call in (lambda: codec.encode(x), lambda: codec.encode([x, x]), lambda: codec.decode(x),
                 lambda: as_array(X).cuda(cuda_stream=dead)):  # fmt: skip
        with pytest.raises(liblade.DeviceError, match="CUDA_ERROR_INVALID_HANDLE"):
            call()
    assert b"used after it was destroyed" in EMU.message
    EMU.message = b""
