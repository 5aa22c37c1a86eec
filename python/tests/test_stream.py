"""Calls on device arrays enqueue and return; what became of them is told when it is asked for, each
time.  On a real device, or the emulated one, whose order of things a seed decides.

SPDX-License-Identifier: Apache-2.0
"""

import copy
import gc
import pickle
import random
import threading
import weakref

import numpy as np
import pytest
from device_kit import COUNT, EMU, NO_DEVICE

import liblade
from liblade import Codec, as_array, as_arrays

pytestmark = pytest.mark.skipif(not COUNT, reason=NO_DEVICE)
emulated = pytest.mark.skipif(EMU is None, reason="the emulated driver counts what waits")
X = np.tile(np.arange(50, dtype="<i4"), 40)
BAD = b"\xf0" + b"\xff" * 40


@pytest.fixture(params=[0, 7] if EMU else [0], autouse=True)
def seed(request):
    if EMU:
        EMU.seed = request.param
    yield request.param
    if EMU:
        assert EMU.message == b""
        EMU.seed = 0


@pytest.fixture
def stream():
    return liblade.CudaStream.make_new()


def raw(stream, algorithm="LZ4", **more):
    return Codec(algorithm=algorithm, bitstream_kind=1, cuda_stream=stream, **more)


def there(data, stream=0):
    return as_array(data).cuda(cuda_stream=stream)


class Waits:
    """How often the host waited since."""

    def __init__(self):
        self.start = EMU.syncs if EMU else 0

    def __call__(self):
        return EMU.syncs - self.start if EMU else 0


@emulated
@pytest.mark.parametrize("algorithm", ["LZ4", "Snappy", "bitshuffle(4)|lz4", "ans(dtype=<i4)",
                                       "cascaded(dtype=<i4)"])
def test_nothing_waits(stream, algorithm):
    codec = raw(stream, algorithm)
    x, out = there(X, stream), there(np.zeros_like(X), stream)[:]
    outs = as_arrays(there(np.zeros(4 * X.nbytes, "u1"), stream),
                     [i * X.nbytes for i in range(4)], [X.nbytes] * 4)
    config = codec.decompression_config(codec.compression_config(X.nbytes))
    many = codec.decompression_config(codec.compression_config([X.nbytes] * 4))
    for _ in range(2):  # the first turn loads kernels
        waits = Waits()
        one = codec.encode(x)
        codec.decode(one, out=out)
        back = codec.decode(one, "<i4", decompression_config=config)
        again = codec.encode(back)
        batch = codec.encode([x] * 4)
        codec.decode(batch, out=outs)
        all_back = codec.decode(batch, "<i4", decompression_config=many)
        part = codec.decode(batch[1:3], out=outs[1:3])
        assert back.shape == X.shape and back[5:9].shape == (4,) and len(all_back) == 4
        assert "not waited for" in repr(back) + repr(batch) and "at most" in repr(one)
        assert back.__cuda_array_interface__["stream"] == stream.ptr
        liblade.from_dlpack(back, cuda_stream=liblade.CudaStream.make_new())
        assert waits() == 0
    # Encoders of devices may give other bytes each time.
    assert codec.decode(again.cpu()).tobytes() == X.tobytes() and one.buffer_size < X.nbytes
    assert max(batch.buffer_sizes) < X.nbytes
    assert (np.asarray(out.cpu()) == X).all() and (np.asarray(back.cpu()) == X).all()
    assert (np.asarray(all_back[3].cpu()) == X).all() and all_back[3].dtype == "<i4"
    assert part.buffer_sizes == [X.nbytes] * 2
    assert all(a.tobytes() == X.tobytes() for a in outs.cpu())


def readings(result, out=None):
    reads = [lambda: result.buffer_size, result.cpu, result.synchronize, result.tobytes,
             lambda: np.from_dlpack(result, device="cpu"), lambda: pickle.dumps(result)]
    return reads + ([out.cpu, lambda: out.buffer_size] if out is not None else [])


def test_failures_are_told_each_time(stream):
    codec = raw(stream)
    out = there(X, stream)[:]  # a view: its memory is not the view's own, to be made larger
    bad = there(BAD, stream)
    config = codec.decompression_config(codec.compression_config(X.nbytes))
    for result in (codec.decode(bad, out=out), codec.decode(bad, decompression_config=config)):
        for read in readings(result) * 2:
            with pytest.raises(liblade.CorruptError, match="^lz4: .* the device says") as e:
                read()
            for same in (lambda r: r[:5], liblade.as_array, liblade.from_dlpack):
                with pytest.raises(liblade.CorruptError, match="the device says"):
                    same(result).cpu()
            assert e.value.index is None and e.value.status.startswith("LADE_E_")
    with pytest.raises(liblade.CorruptError):
        out.cpu()  # the destination itself tells, too
    with pytest.raises(liblade.CorruptError):
        codec.encode(out)
    # A good result takes the place of the bad one.
    codec.decode(codec.encode(there(X, stream)), out=out)
    assert (np.asarray(out.cpu()) == X).all()
    # At once, with the whole message.
    for kwargs in ({"errors": "raise"}, {}):
        with pytest.raises(liblade.CorruptError, match="lz4: "):
            codec.decode(bad, out=out, **kwargs).buffer_size
    got = codec.decode(bad, out=out, errors="return")
    assert isinstance(got, liblade.CorruptError)
    # Too little room is told as such, too.
    with pytest.raises(liblade.InputError):
        codec.decode(codec.encode(there(X, stream)), out=there(X[:9], stream)[:]).cpu()


def test_failures_name_the_item(stream):
    codec = raw(stream)
    good = codec.encode(X)
    batch = [good.cuda(), there(BAD), good.cuda(), there(BAD)]
    block = there(np.zeros(4 * X.nbytes, "u1"), stream)
    outs = as_arrays(block, [i * X.nbytes for i in range(4)], [X.nbytes] * 4)
    config = codec.decompression_config(codec.compression_config([X.nbytes] * 4))
    arrays = [there(np.zeros_like(X))[:] for _ in range(4)]
    for result in (codec.decode(batch, out=outs), codec.decode(batch, out=arrays),
                   codec.decode(batch, decompression_config=config),
                   codec.decode(batch, out=outs)[::-1][::-1]):
        for read in (lambda r=result: r.buffer_sizes, result.cpu, result.synchronize,
                     lambda r=result: r[1].cpu(), lambda r=result: pickle.dumps(r)) * 2:
            with pytest.raises(liblade.CorruptError, match="^item 1: lz4: ") as e:
                read()
            assert e.value.index == 1
        for i in (0, 2):
            assert (np.asarray(result[i].cpu()).view("<i4") == X).all()
        assert [a.buffer_size for a in (result[0], result[2])] == [X.nbytes] * 2
    with pytest.raises(liblade.CorruptError, match="item 0"):
        codec.decode(batch, out=outs)[::-1].synchronize()
    with pytest.raises(liblade.CorruptError, match="^item 1: "):
        codec.decode(batch, errors="raise")
    got = codec.decode(batch, out=outs, errors="return")
    assert [isinstance(g, liblade.CorruptError) for g in got] == [False, True, False, True]
    # A failure goes on to what is made of it.
    result = codec.encode(codec.decode(batch, decompression_config=config))
    with pytest.raises(liblade.CorruptError, match="item 1"):
        result.buffer_sizes
    assert codec.decode(result[2].cpu()).tobytes() == X.tobytes()


def test_a_long_line_of_results(stream):
    codec = raw(stream)
    data = X[:60]
    config = codec.decompression_config(codec.compression_config(data.nbytes))
    x = there(data, stream)
    bad = codec.decode(there(BAD, stream), decompression_config=config)
    for _ in range(75):
        x = codec.decode(codec.encode(x), "<i4", decompression_config=config)
    assert (np.asarray(x.cpu()) == data).all()
    with pytest.raises(liblade.CorruptError):
        for _ in range(75):
            bad = codec.decode(codec.encode(bad), decompression_config=config)
        bad.synchronize()


@pytest.mark.parametrize("algorithm", ["LZ4", "Snappy", "Zstd"])
def test_sizes_are_read_where_no_config_tells_them(stream, algorithm):
    codec = raw(stream, algorithm)
    sizes = [0, 1, 7, 4096, 20000]
    data = [bytes(range(251)) * (n // 251) + bytes(n % 251) for n in sizes]
    encoded = codec.encode([there(d, stream) for d in data])
    got = codec.decode(encoded)
    assert got.buffer_sizes == sizes and [a.tobytes() for a in got] == data
    assert [codec.decode(e).tobytes() for e in encoded] == data
    assert codec.get_uncomp_buffer_size(encoded) == sizes
    with pytest.raises(liblade.Error, match="item 1"):
        codec.decode([encoded[3], there(BAD, stream)]).synchronize()
    with pytest.raises(ValueError, match="no multiple of the element's 4"):
        codec.decode(encoded[2], "<i4").cpu()
    with pytest.raises(ValueError, match="no multiple of the element's 4"):
        codec.decode(encoded[2], "<i4", out=there(bytes(7), stream)).cpu()
    # A config that is wrong.
    config = codec.decompression_config(codec.compression_config(5000))
    with pytest.raises(liblade.InputError, match="config: 5000 bytes, and the data has 4096"):
        codec.decode(encoded[3], decompression_config=config).cpu()
    config = codec.decompression_config(codec.compression_config(4000))
    with pytest.raises(liblade.Error, match="config: 4000 bytes, and the data has"):
        codec.decode(encoded[3], decompression_config=config).cpu()
    with pytest.raises(ValueError, match="the config is for 1 arrays, and there are 5"):
        codec.decode(encoded, decompression_config=config)


def test_destinations(stream):
    codec = raw(stream)
    e = codec.encode(there(X, stream))
    shaped = there(X.reshape(50, 40) * 0, stream)
    got = codec.decode(e, out=shaped)
    assert got.shape == (50, 40) and got.dtype == "<i4" and got.ptr == shaped.ptr
    assert codec.decode(e, "<u2", out=shaped).shape == (4000,)
    roomy = there(np.zeros(9000, "u1"), stream)
    got = codec.decode(e, out=roomy[:])
    assert got.buffer_size == X.nbytes and got.dtype == "|u1" and roomy.buffer_size == 9000
    # An Array of ours takes the size of what it gets, and grows.
    own = codec.encode(there(X[:3], stream))
    own.synchronize()
    assert codec.encode(there(X, stream), out=own) is own and own.tobytes() == e.tobytes()
    config = codec.decompression_config(codec.compression_config(X.nbytes))
    assert codec.decode(e, out=own, decompression_config=config) is own
    assert own.tobytes() == X.tobytes() and own.capacity >= X.nbytes
    assert codec.decode(e, "<i4", out=own) is own and own.shape == X.shape
    wide = there(np.zeros((50, 80), "<i4"), stream)
    codec.decode(e, out=wide[:, ::-2])
    assert (np.asarray(wide.cpu())[:, ::-2].ravel() == X).all()
    assert not np.asarray(wide.cpu())[:, ::2].any()
    with pytest.raises(ValueError, match="overlaps"):
        codec.decode(shaped, out=shaped)
    block = there(bytes(9000), stream)
    outs = as_arrays(block, [0, 4500], [4500, 4500])
    with pytest.raises(ValueError, match="out has 2 arrays, and there are 3"):
        codec.encode([shaped] * 3, out=outs)
    with pytest.raises(ValueError, match="overlaps"):
        codec.encode([shaped, block[4600:]], out=outs)
    with pytest.raises(TypeError, match="a list or a BatchArray"):
        codec.encode([shaped], out=block)
    rows = there(np.zeros((3, 2000), "<i4"), stream)
    got = codec.decode([e, e, e], out=rows)
    assert (np.asarray(rows.cpu()) == X).all() and got.buffer_sizes == [8000] * 3
    # On the host, and mixed: those calls wait.
    host = np.zeros_like(X)
    codec.decode(e, out=host)
    assert (host == X).all()
    got = codec.decode([e, e.cpu()], out=[host, shaped])
    assert got[0].place == "host" and got[1].place == "device"


def test_copies_stay_where_the_array_is(stream):
    one = raw(stream).encode(there(X, stream))
    for copied in (copy.copy(one), copy.deepcopy(one)):
        assert copied.place == "device" and copied.ptr != one.ptr
        assert copied.tobytes() == one.tobytes()
    typed = copy.deepcopy([there(X.reshape(2, -1), stream)])[0]
    assert typed.place == "device" and typed.shape == (2, X.size // 2) and typed.dtype == "<i4"


def test_a_destination_that_is_not_filled_keeps_its_type(stream):
    codec = raw(stream)
    out = there(np.zeros(100_000, "<i4"), stream)
    for got in (codec.decode(codec.encode(there(X, stream)), out=out[:]),
                codec.decode(codec.encode([there(X, stream)]), out=[out[:]])[0]):  # fmt: skip
        assert got.cpu().dtype == "<i4" and got.shape == X.shape
        assert np.array_equal(np.asarray(got.cpu()), X)
    odd = codec.encode(there(X.view("u1")[:3], stream))
    assert codec.decode(odd, out=out[:]).cpu().dtype == "|u1"


def test_streams_follow_each_other():
    one, two = liblade.CudaStream.make_new(), liblade.CudaStream.make_new()
    config = raw(one).compression_config(X.nbytes)
    config = raw(one).decompression_config(config)
    for _ in range(6):
        a = raw(one).decode(raw(two).encode(there(X, one)), "<i4", decompression_config=config)
        b = raw(two).encode(a)
        c = raw(0).decode(b, "<i4", decompression_config=config)
        d = liblade.from_dlpack(c, cuda_stream=two)
        e = raw(two).encode(d)

        class Other:
            __cuda_array_interface__ = a.__cuda_array_interface__
            keep = a

        waits = Waits()
        f = raw(two).encode(Other())
        g = raw(one).encode(as_array(Other(), cuda_stream=two))
        assert waits() == 0
        del a, c, d
        gc.collect()
        assert b.tobytes() == e.tobytes() == f.tobytes() == g.tobytes()
    for stream in (0, -2):
        with pytest.raises(BufferError, match=f"stream {stream} is not possible"):
            there(X).__dlpack__(stream=stream)
    assert there(X).__dlpack__(stream=-1) and there(X).__dlpack__(stream=two.ptr)


@pytest.mark.parametrize("make", [
    lambda s: there(X, s),
    lambda s: as_array(there(X), cuda_stream=s),
    lambda s: liblade.from_dlpack(there(X), cuda_stream=s, copy=True),
    lambda s: liblade.as_arrays([X, X]).cuda(cuda_stream=s),
    lambda s: liblade.as_arrays([X, X]).cuda(cuda_stream=s)[1],
    lambda s: liblade.as_arrays(X, [0, 64], [64, 64]).cuda(cuda_stream=s)[1],
    lambda s: raw(s).encode(there(X, s)),
    lambda s: Codec(algorithm="LZ4", cuda_stream=s).encode(there(X, s)),
    lambda s: Codec(algorithm="LZ4", cuda_stream=s).decode(Codec(algorithm="LZ4").encode(X).cuda()),
    lambda s: raw(s).encode([there(X, s), X])[0],
])
def test_memory_keeps_its_stream(make):
    """Memory is given back on its stream, which must live as long, whoever else forgets it."""
    stream = liblade.CudaStream.make_new()
    gone = weakref.ref(stream)
    a = make(stream)
    del stream
    gc.collect()
    a.synchronize()
    del a
    gc.collect()
    assert not gone()
    # And where the collector of garbage finds both at once.
    stream = liblade.CudaStream.make_new()
    garbage = [stream, make(stream), stream]
    garbage.append(garbage)
    del stream, garbage
    gc.collect()
    there(X).synchronize()


def test_objects_may_die_at_once():
    rng = random.Random(EMU.seed if EMU else 1)
    streams = [0, liblade.CudaStream.make_new(), liblade.CudaStream.make_new()]
    codecs = [raw(s, a) for s in streams for a in ("LZ4", "Snappy")]
    gc.collect()
    for codec in codecs:
        codec.encode(there(X, codec._stream)).synchronize()
    blocks = EMU.blocks if EMU else 0
    checks = []
    for _ in range(60):
        codec = rng.choice(codecs)
        n = rng.choice([1, 100, 2000])
        data = X[:n] + rng.randrange(100)
        config = codec.decompression_config(codec.compression_config(data.nbytes))
        x = there(data, rng.choice(streams))
        e = codec.encode(x)
        if rng.random() < 0.5:
            del x
        if rng.random() < 0.5:
            out = there(np.zeros_like(data), rng.choice(streams))
            got = codec.decode(e, out=out)
            if rng.random() < 0.5:
                del out
        else:
            got = codec.decode(e, "<i4", decompression_config=config)
        if rng.random() < 0.5:
            del e
        if rng.random() < 0.7:
            checks.append((data, got))
        if rng.random() < 0.1:
            streams[1].synchronize()
        del got
    for data, got in checks:
        assert (np.asarray(got.cpu()).view("<i4") == data).all()
    checks.clear()
    for codec in codecs:
        codec.encode(there(X, codec._stream)).synchronize()
    out = x = e = got = None
    gc.collect()
    raw(0).encode(there(X)).synchronize()
    if EMU:
        assert EMU.blocks <= blocks + 2  # of the library's own


@pytest.mark.parametrize("name", ["encode", "decode", "decode_out", "many", "many_out", "list"])
def test_allocations_fail_in_turn(stream, name):
    testcapi = pytest.importorskip("_testcapi", reason="this interpreter has no _testcapi")
    if EMU and EMU.seed:
        pytest.skip("the order of the device's work does not matter here")
    codec = raw(stream)
    x, out = there(X[:99], stream), there(np.zeros(396, "u1"), stream)[:]
    e = codec.encode(x)
    block = there(np.zeros(800, "u1"), stream)
    outs = as_arrays(block, [0, 400], [400, 400])
    config = codec.decompression_config(codec.compression_config(396))
    calls = {
        "encode": lambda: codec.encode(x),
        "decode": lambda: codec.decode(e, "<i4", decompression_config=config),
        "decode_out": lambda: codec.decode(e, out=out),
        "many": lambda: codec.decode(codec.encode([x, x])),
        "many_out": lambda: codec.decode([e, e], out=outs),
        "list": lambda: codec.decode([e, e], out=[out, block[:400]]),
    }
    call = calls[name]
    call().synchronize()
    failures = 0
    gc.disable()
    try:
        for start in range(200):
            try:
                testcapi.set_nomemory(start, start + 1)
                result = call()
                testcapi.remove_mem_hooks()
                break
            except MemoryError:
                testcapi.remove_mem_hooks()
                failures += 1
        result.synchronize()
    finally:
        testcapi.remove_mem_hooks()
        gc.enable()
    assert 0 < failures < 199
    assert codec.decode(e, out=out).tobytes() == X[:99].tobytes()


@pytest.mark.parametrize("wait", ["stream", "array", "cuda", "cpu"])
def test_nothing_is_held_behind_the_stream(stream, wait):
    codec = raw(stream)
    e, x = codec.encode(X), there(X, stream)
    q, out = there(e, stream), there(np.zeros_like(X), stream)[:]
    got = codec.decode(q, out=out)
    alive = [weakref.ref(o) for o in (q, out)]
    if wait in ("stream", "cuda"):
        del q, out, got
        gc.collect()
    if wait == "stream":
        stream.synchronize()
    elif wait == "array":
        got.synchronize()
    elif wait == "cuda":
        x.cpu()  # waits for the stream
        there(X, stream)
    else:
        assert got.cpu().tobytes() == X.tobytes()
    q = out = got = None
    gc.collect()
    assert [ref() for ref in alive] == [None, None]


@emulated
def test_nothing_is_left(stream):
    codec = raw(stream)
    config = codec.decompression_config(codec.compression_config(80))
    x = there(X[:20], stream)

    def some():
        for _ in range(100):
            codec.decode(codec.encode(x), decompression_config=config)
            codec.encode([x, x])
        codec.encode(x).synchronize()
        gc.collect()
        return EMU.blocks, EMU.events, EMU.streams, liblade._lade._memory_stats()[:2]

    some()
    assert some() == some()


def test_mixed_and_large_batches(stream):
    codec = raw(stream, "Snappy")
    count = 600 if EMU is None or EMU.seed == 0 else 60
    data = np.arange(count * 16, dtype="<u2") // 9
    x = there(data, stream)
    table = as_arrays(x, np.arange(count) * 32, np.full(count, 32))
    encoded = codec.encode(table)
    block = there(np.zeros(count * 32, "u1"), stream)
    outs = as_arrays(block, np.arange(count, dtype="<i4") * 32, np.full(count, 32, "<u4"))
    got = codec.decode(encoded, "<u2", out=outs)
    assert got[3].shape == (16,) and (np.asarray(block.cpu()).view("<u2") == data).all()
    assert len(got.cpu()) == count and got.cpu()[7].tobytes() == data[112:128].tobytes()
    assert encoded.cpu().cuda(cuda_stream=stream)[-1].tobytes() == encoded[-1].tobytes()
    assert codec.decode(encoded[::-3], "<u2")[0].tobytes() == data[-16:].tobytes()
    assert len(pickle.loads(pickle.dumps(encoded[:5]))) == 5
    config = codec.compression_config([32] * count)
    got = codec.decode(encoded, decompression_config=codec.decompression_config(config))
    assert b"".join(a.tobytes() for a in got) == data.tobytes()


def test_threads_share_a_codec_and_a_stream(stream):
    codec = raw(stream)
    config = codec.decompression_config(codec.compression_config(X.nbytes))
    failures = []

    def work(n):
        try:
            for i in range(6):
                data = X + n * 10 + i
                e = codec.encode(there(data, stream))
                got = codec.decode(e, "<i4", decompression_config=config)
                if not (np.asarray(got.cpu()) == data).all():
                    failures.append(n)
        except Exception as e:  # told below
            failures.append(e)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_two_threads_wait_for_one_result(stream):
    codec = raw(stream)
    batch = codec.encode([there(X, stream)] * 3)
    got = []
    threads = [threading.Thread(target=lambda i=i: got.append(batch[i].buffer_size))
               for i in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(set(got)) == 1


def test_allocators_of_results(stream):
    calls, alive = [], []

    class Memory:
        def __init__(self, size, stream):
            self.inner = liblade._lade._empty(size, 3, 0, stream)
            self.ptr = self.inner.ptr
            alive.append(size)

        def __del__(self):
            alive.pop()

    def allocate(nbytes, stream):
        calls.append((nbytes, stream.ptr))
        liblade.set_device_allocator(None)
        try:
            return Memory(nbytes, stream)
        finally:
            liblade.set_device_allocator(allocate)

    codec = raw(stream)
    x = there(X, stream)
    liblade.set_device_allocator(allocate)
    try:
        e = codec.encode(x)
        assert calls == [(codec.get_max_comp_buffer_size(X.nbytes), stream.ptr)] and alive
        del e  # the stream may use it still
        codec.encode(X[:0])

        def fails(nbytes, stream):
            raise KeyError(f"no {nbytes} bytes")

        liblade.set_device_allocator(fails)
        with pytest.raises(KeyError, match="no [0-9]+ bytes"):
            codec.encode(x)
        liblade.set_device_allocator(lambda n, s: object())
        with pytest.raises(TypeError, match="the allocator gave .*, an object with .ptr is wanted"):
            codec.encode(x)
    finally:
        liblade.set_device_allocator(None)
    codec.encode(x).synchronize()
    gc.collect()
    assert not alive


def test_pieces_of_what_is_not_done_yet():
    """as_arrays() of a result, and an array of rows as out=, come behind the work."""
    stream = liblade.CudaStream.make_new()
    codec = Codec(algorithm="LZ4", bitstream_kind=1, cuda_stream=stream)
    there = codec.encode(X).cuda()
    config = codec.decompression_config(codec.compression_config(X.nbytes))
    half = X.nbytes // 2
    parts = as_arrays(codec.decode(there, "", None, config), [0, half], [half, half])
    assert b"".join(p.tobytes() for p in parts.cpu()) == X.tobytes()
    rows = as_array(np.zeros((2, *X.shape), X.dtype)).cuda()
    codec.decode([there, there], out=rows)
    assert rows.tobytes() == X.tobytes() * 2
    bad = as_array(b"\xff" * 8 + there.tobytes()[8:]).cuda()
    parts = as_arrays(codec.decode(bad, "", None, config), [0], [4])
    for _ in range(2):
        with pytest.raises(liblade.Error):
            parts.cpu()
