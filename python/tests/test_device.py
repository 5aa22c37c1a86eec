"""Arrays on a device: a real one, or the emulated one (docs/emulated-warp.md) when run.sh finds it.

SPDX-License-Identifier: Apache-2.0
"""

import gc

import numpy as np
import pytest
from device_kit import EMU

import liblade
from liblade import Codec, as_array

pytestmark = pytest.mark.skipif(
    liblade._lade._device_count() == 0, reason="no GPU, and no emulated driver was named"
)
X = np.cumsum(np.arange(10000) % 5).astype("<i4")


def test_array_there_and_back():
    a = as_array(X).cuda()
    assert a.place == "device" and a.device_id == 0 and a.dtype == "<i4" and a.shape == X.shape
    assert a.buffer_kind is liblade.STRIDED_DEVICE and a.cuda() is a
    assert a.__dlpack_device__() == (2, 0) and "on device 0" in repr(a)
    cai = a.__cuda_array_interface__
    assert cai["version"] == 3 and cai["data"] == (a.ptr, False) and cai["stream"] is None
    assert (np.asarray(a.cpu()) == X).all()
    assert (np.asarray(a[5:25:1].cpu()) == X[5:25]).all()
    for offer in (lambda: memoryview(a), lambda: np.from_dlpack(a, copy=False)):
        with pytest.raises((BufferError, RuntimeError)):
            offer()
    with pytest.raises(AttributeError, match="cpu\\(\\) copies it"):
        a.__array_interface__
    b = liblade.from_dlpack(a)
    assert b.ptr == a.ptr and b.place == "device"
    assert (np.from_dlpack(a, device="cpu") == X).all()
    assert (np.asarray(a[::2].cpu()) == X[::2]).all()
    assert a[::-3].tobytes() == X[::-3].tobytes()
    assert liblade.__cuda_version__ >= 12000


def test_cuda_array_interface_in():
    a = as_array(X).cuda()

    class Other:
        __cuda_array_interface__ = a.__cuda_array_interface__

    b = as_array(Other())
    assert b.place == "device" and (np.asarray(b.cpu()) == X).all()
    Other.__cuda_array_interface__ = {**a.__cuda_array_interface__, "stream": 1}
    assert as_array(Other()).ptr == a.ptr
    Other.__cuda_array_interface__ = {**a.__cuda_array_interface__, "stream": 0}
    with pytest.raises(ValueError, match="stream 0"):
        as_array(Other())


def test_buffers_of_device_arrays_are_not_asked_for():
    # As CuPy's since version 14, and where memory is managed.
    a, out = as_array(X).cuda(), as_array(np.zeros_like(X)).cuda()
    asked = []

    class Refuses:
        def __init__(self, array):
            self.__class__ = type("Own", (Refuses,), {
                "__cuda_array_interface__": array.__cuda_array_interface__})

        def __buffer__(self, flags):
            asked.append(flags)
            raise TypeError("not on the CPU")

    assert as_array(Refuses(a)).ptr == a.ptr
    codec = Codec(algorithm="LZ4", bitstream_kind=liblade.BitstreamKind.RAW)
    encoded = codec.encode(Refuses(a))
    assert encoded.place == "device"
    codec.decode(encoded, out=Refuses(out)).synchronize()
    assert (np.asarray(out.cpu()) == X).all() and not asked

    class OnTheHost:
        @property
        def __cuda_array_interface__(self):
            raise AttributeError("it is on the host")

        def __buffer__(self, flags):
            return memoryview(X)

    b = as_array(OnTheHost())
    assert b.place == "host" and b.tobytes() == X.tobytes()
    assert codec.decode(codec.encode(OnTheHost()), "<i4").tobytes() == X.tobytes()


@pytest.mark.parametrize("algorithm", ["LZ4", "Snappy", "Zstd", "Deflate", "Gzip", "Blosc", "ANS",
                                       "Bitcomp", "Cascaded"])
@pytest.mark.parametrize("kind", list(liblade.BitstreamKind), ids=lambda k: k.name)
def test_codecs(algorithm, kind):
    codec = Codec(algorithm=algorithm, bitstream_kind=kind)
    a = as_array(X).cuda()
    encoded = codec.encode(a)
    assert encoded.place == "device" and codec.get_uncomp_buffer_size(encoded) == X.nbytes
    got = codec.decode(encoded, "<i4")
    assert got.place == "device" and (np.asarray(got.cpu()) == X).all()
    assert (np.asarray(codec.decode(encoded.cpu(), "<i4")) == X).all()
    out = np.zeros_like(X)
    codec.decode(encoded, out=out)
    assert (out == X).all()
    there = as_array(np.zeros_like(X)).cuda()
    assert codec.decode_into(codec.encode(X), there) == X.nbytes
    assert (np.asarray(there.cpu()) == X).all()
    # Mixed places in one call.
    encoded = codec.encode([a, X, a[:100], b""])
    assert [i.buffer_size for i in codec.decode(encoded)] == [40000, 40000, 400, 0]
    assert codec.decode(encoded)[2].cpu().tobytes() == X[:100].tobytes()
    encoded = codec.encode([a, a[:100]])
    assert encoded[0].place == "device" and encoded.cpu()[0].place == "host"
    decoded = codec.decode(encoded.cpu().cuda(), out=[there, bytearray(500)])
    assert decoded[0].place == "device" and decoded[1].tobytes() == X[:100].tobytes()
    got = codec.decode(codec.encode(a), byte_range=(400, 800))
    assert got.cpu().tobytes() == X[100:200].tobytes()


class Strided:
    """Another library's array on a device: an Array's memory by other strides."""

    def __init__(self, array, shape, strides, offset=0):
        cai = array.__cuda_array_interface__
        self.array = array
        self.__cuda_array_interface__ = {
            **cai, "shape": shape, "strides": strides, "data": (array.ptr + offset, False),
        }  # fmt: skip


@pytest.mark.parametrize("algorithm", ["LZ4", "Snappy", "Zstd", "shuffle(4)|lz4"])
@pytest.mark.parametrize("kind", list(liblade.BitstreamKind), ids=lambda k: k.name)
def test_strided_destinations(algorithm, kind):
    codec = Codec(algorithm=algorithm, bitstream_kind=kind)
    x = np.arange(240, dtype="<i4").reshape(4, 6, 10)
    encoded = codec.encode(as_array(x).cuda())
    big = np.full((4, 8, 20), -1, "<i4")
    for index in np.s_[:, :6, :10], np.s_[:, :6, ::2], np.s_[::-1, 1:7, 5:15]:
        out, want = as_array(big).cuda(), big.copy()
        want[index] = x
        for source in encoded, encoded.cpu():
            got = codec.decode(source, out=out[index])
            assert got.tobytes() == x.tobytes() and (np.asarray(out.cpu()) == want).all()
        assert codec.decode_into(encoded, out[index]) == x.nbytes
    # A transpose, and some of a list.
    turned = [as_array(np.zeros((10, 6, 4), "<i4")).cuda() for _ in range(3)]
    views = [Strided(t, (4, 6, 10), (4, 16, 96)) for t in turned]
    codec.decode([encoded, encoded.cpu(), encoded], out=views)
    assert all((np.asarray(t.cpu()) == x.T).all() for t in turned)
    # What the data does not fill stays.
    out = as_array(np.arange(500, dtype="<i4")).cuda()
    short = codec.encode(as_array(x[:1]).cuda())
    assert codec.decode_into(short, out[:480:2]) == 240
    want = np.arange(500, dtype="<i4")
    want[:120:2] = x[0].ravel()
    assert (np.asarray(out.cpu()) == want).all()
    with pytest.raises(ValueError, match="240 bytes were decoded, and the strided array has 960"):
        codec.decode(short, out=out[:480:2])
    with pytest.raises(ValueError, match="encoded bytes want contiguous memory"):
        codec.encode(out, out=out[::2])


@pytest.mark.parametrize("kind", [0, 1, 2])
@pytest.mark.parametrize("where", ["auto", "host", "device"])
@pytest.mark.parametrize("algorithm", ["LZ4", "Zstd", "Cascaded"])
def test_transposed_arrays(algorithm, where, kind):
    if algorithm == "Zstd" and where == "device" and kind:
        pytest.skip("no device encodes Zstd")
    codec = Codec(algorithm=algorithm, bitstream_kind=kind, where=where)
    x = np.arange(2400, dtype="<i4").reshape(60, 40)
    there = as_array(x).cuda()
    turned = Strided(there, (40, 60), (4, 160))
    upside_down = Strided(there, (60, 40), (-160, 4), 59 * 160)
    repeated = Strided(there, (60, 40), (0, 4), 160)
    encoded = codec.encode([turned, upside_down, repeated])
    assert [e.place for e in encoded] == ["device"] * 3
    want = [x.T.tobytes(), x[::-1].tobytes(), np.tile(x[1], 60).tobytes()]
    assert [a.tobytes() for a in codec.decode(encoded)] == want
    assert codec.decode(codec.encode(turned)).tobytes() == want[0]
    # An array of rows, each of them turned.
    out = as_array(np.zeros((2, 60, 40), "<i4")).cuda()
    codec.decode([encoded[0], encoded[0]], out=Strided(out, (2, 40, 60), (9600, 4, 160)))
    assert (np.asarray(out.cpu()) == x).all()
    assert liblade.checksum("crc32c", turned) == liblade.checksum("crc32c", x.T)


@pytest.mark.parametrize("where", ["auto", "host", "device"])
@pytest.mark.parametrize("policy", [0, 3, 4])
@pytest.mark.parametrize("algorithm", ["LZ4", "bitshuffle(4)|lz4", "Zstd"])
def test_frames_there(algorithm, policy, where):
    stream = liblade.CudaStream.make_new()
    # Chunks of both kinds, coded and stored.
    noise = np.random.default_rng(1).integers(0, 1 << 31, 1024, dtype="<i4")
    data = np.concatenate([np.arange(5000, dtype="<i4") // 9, noise, noise // (1 << 24)])
    codec = Codec(algorithm=algorithm, uncomp_chunk_size=4096, checksum_policy=policy,
                  cuda_stream=stream)
    frame = codec.encode(as_array(data).cuda(cuda_stream=stream))
    reader = Codec(checksum_policy=policy, cuda_stream=stream,
                   where="auto" if algorithm == "Zstd" else where)
    got = reader.decode(frame, "<i4")
    assert got.place == "device" and (np.asarray(got.cpu()) == data).all()
    got = reader.decode([frame, frame.cpu(), frame], out=[as_array(data * 0).cuda(), data * 0,
                                                          as_array(data * 0).cuda()])
    assert all(a.tobytes() == data.tobytes() for a in got)
    assert reader.decode(frame, byte_range=(4000, 9000)).tobytes() == data.tobytes()[4000:9000]
    out = as_array(np.zeros_like(data)).cuda()[:]
    assert reader.decode(frame.cpu(), out=out).tobytes() == data.tobytes()
    with pytest.raises(ValueError, match="the destination 40$"):
        reader.decode(frame, out=out[:10])
    # Damage is told as the host tells it.
    for at in (9, 500, frame.buffer_size // 2, frame.buffer_size - 20):
        bad = bytearray(frame.tobytes())
        bad[at] ^= 64
        texts = []
        for source in (bad, as_array(bad).cuda()):
            try:
                texts.append(reader.decode(source, errors="raise").tobytes())
            except liblade.Error as e:
                texts.append(str(e))
        # Without checksums damage may give bytes, which the kernels' rules may refuse.
        assert texts[0] == texts[1] or (policy == 0 and bytes in map(type, texts))
    assert reader.decode(codec.encode(as_array(data[:0]).cuda())).buffer_size == 0


@pytest.mark.skipif(EMU is None, reason="waits are counted by the emulated driver")
@pytest.mark.parametrize("policy", [0, 3])
def test_frames_wait_little(policy):
    stream = liblade.CudaStream.make_new()
    codec = Codec(algorithm="ANS", uncomp_chunk_size=4096, checksum_policy=policy,
                  cuda_stream=stream)
    there = as_array(X).cuda(cuda_stream=stream)
    room = as_array(np.zeros(codec.get_max_comp_buffer_size(X.nbytes), "u1")).cuda()[:]
    out = as_array(np.zeros_like(X)).cuda()[:]
    for _ in range(2):  # the first call finds its kernels
        stream.synchronize()
        before = EMU.syncs
        frame = codec.encode(there, out=room)
        made = EMU.syncs
        codec.decode(frame, out=out)
        assert (made - before, EMU.syncs - made) == (1, 2)
    assert (np.asarray(out.cpu()).view(X.dtype) == X).all()
    # Chunks stand where the host's writer puts them, and everybody reads them.
    assert Codec(checksum_policy=policy).decode(frame.tobytes()).tobytes() == X.tobytes()


def test_checksums_there():
    data = [X.tobytes()[:n] for n in (0, 1, 5000, 40000)]
    there = [as_array(d).cuda() for d in data]
    for name in ("crc32c", "crc32", "adler32", "xxh64", "fletcher32", "xxh3"):
        assert liblade.checksums(name, there) == liblade.checksums(name, data)
    codec = Codec(algorithm="LZ4", bitstream_kind=1)
    coded = codec.encode(as_array(X).cuda())  # nobody has waited for it
    assert liblade.checksum("crc32c", coded) == liblade.checksum("crc32c", coded.tobytes())


def test_corrupt_items_on_a_device():
    codec = Codec(algorithm="Zstd", bitstream_kind=1)
    good = codec.encode(X)
    bad = bytearray(good.tobytes())
    bad[8:] = bytes(len(bad) - 8)
    batch = [good.cuda(), as_array(bad).cuda(), good.cuda()]
    for _ in range(2):
        with pytest.raises(liblade.CorruptError, match="item 1: zstd") as e:
            codec.decode(batch)
        assert e.value.index == 1
    got = codec.decode(batch, errors="return")
    assert isinstance(got[1], liblade.CorruptError)
    assert (np.asarray(got[2].cpu()).view("<i4") == X).all()


def test_allocators_and_streams():
    calls = []

    class Memory:
        def __init__(self, size):
            self.inner = liblade._lade._empty(size, 3, 0)
            self.ptr = self.inner.ptr

    def allocate(nbytes, stream):
        assert isinstance(stream, liblade.CudaStream)
        calls.append(nbytes)
        liblade.set_device_allocator(None)
        try:
            return Memory(nbytes)
        finally:
            liblade.set_device_allocator(allocate)

    liblade.set_device_allocator(allocate)
    try:
        a = as_array(X).cuda()
    finally:
        liblade.set_device_allocator(None)
    assert calls == [40000] and (np.asarray(a.cpu()) == X).all()
    stream = liblade.CudaStream.make_new()
    assert stream.ptr > 2 and not stream.is_special and stream.device == 0
    codec = Codec(algorithm="LZ4", cuda_stream=stream.ptr, bitstream_kind=1)
    assert codec.decode(codec.encode(as_array(X).cuda(cuda_stream=stream.ptr))).buffer_size == 40000
    stream.synchronize()
    before = liblade._lade._memory_stats()[0]
    del a
    gc.collect()
    assert liblade._lade._memory_stats()[0] < before


def test_explain_tells_the_route():
    for name, place in (("Zstd", "device"), ("Deflate", "device"), ("lz4f", "host")):
        told = Codec(algorithm=name).explain(65536, 1000, source_place="device",
                                             destination_place="device")
        assert any(c.chosen and c.place == place for c in told)


def test_the_device_that_is_asked_for():
    count = liblade._lade._device_count()
    a = as_array(X).cuda(device_id=0)
    assert a.cuda() is a and a.cuda(device_id=0) is a
    b = liblade.as_arrays(a, [0, 400], [400, 800])
    c = liblade.as_arrays([a, a[:10]])
    for one in (as_array(X), a, liblade.as_arrays([X, X]), b, c):
        with pytest.raises(liblade.DeviceError, match=f"no device 9: there are {count}"):
            one.cuda(device_id=9)
        for bad in (-1, 2**31, 2**70):
            with pytest.raises(ValueError, match="device_id is"):
                one.cuda(device_id=bad)
        with pytest.raises(TypeError, match="device_id is"):
            one.cuda(device_id="x")
    if count < 2:
        pytest.skip("there is one device")
    moved = a.cuda(device_id=1)
    assert moved.device_id == 1 and moved.tobytes() == X.tobytes() and moved.dtype == "<i4"
    assert moved.cuda() is moved and moved.cuda(device_id=0).device_id == 0
    assert as_array(X).cuda(device_id=1).device_id == 1
    for batch in (b, c):
        other = batch.cuda(device_id=1)
        assert [o.device_id for o in other] == [1, 1] and other.cuda(device_id=1) is other
        assert [o.tobytes() for o in other] == [o.tobytes() for o in batch]


def test_the_device_that_was_named_does_the_work_or_is_missed():
    for kind in range(4):
        for number in range(liblade._lade._device_count()):
            codec = Codec(algorithm="LZ4", bitstream_kind=kind, where="device", device_id=number)
            frame = codec.encode(X)
            assert frame.place == "host" and frame.buffer_size < X.nbytes
            assert (np.asarray(codec.decode(frame, "<i4")) == X).all()
            host = Codec(algorithm="LZ4", bitstream_kind=kind)
            assert codec.encode(b"").buffer_size == host.encode(b"").buffer_size
            there = codec.decode(codec.encode(as_array(X).cuda()), "<i4")
            assert there.place == "device" and (np.asarray(there.cpu()) == X).all()
            with pytest.raises(liblade.InputError):
                codec.encode(X, bytearray(10))
        missing = Codec(algorithm="LZ4", bitstream_kind=kind, where="device", device_id=99)
        for call, what in ((missing.encode, X), (missing.decode, frame),
                           (missing.encode, [X, X]), (missing.decode, [frame, frame])):  # fmt: skip
            with pytest.raises(liblade.DeviceError, match="no device 99"):
                call(what)
    if EMU:
        codec = Codec(algorithm="LZ4", where="device")
        before = EMU.launches
        codec.encode(X)
        assert EMU.launches > before
    for algorithm in ("deflate", "gzip"):  # encoding has no kernels, and is the host's work
        codec = Codec(algorithm=algorithm, where="device")
        frame = codec.encode(X)
        before = EMU.launches if EMU else 0
        assert (np.asarray(codec.decode(frame, "<i4")) == X).all()
        assert not EMU or EMU.launches > before


def test_configs_and_destinations_on_a_device_are_looked_at():
    codec = Codec(algorithm="LZ4", bitstream_kind=1)
    a = as_array(X).cuda()
    config = codec.compression_config([X.nbytes, 4])
    text = "compression_config: 4 bytes, and the array has 40000"
    with pytest.raises(liblade.InputError, match="item 1: " + text):
        codec.encode([a, a], compression_config=config)
    config = codec.compression_config(X.nbytes)
    once = codec.encode(a, compression_config=config)
    with pytest.raises(liblade.InputError, match="config: 40000 bytes, and the array has 100"):
        codec.encode(once[:100], compression_config=config)
    room = as_array(np.zeros(100_000, "u1")).cuda()
    table = liblade.as_arrays(room, [0, 39999], [40000, 40000])
    for outs in ([room[:40000], room[39999:79999]], table):
        with pytest.raises(ValueError, match="the destinations of items 0 and 1 overlap"):
            codec.decode([once, once], out=outs)
    codec.decode([once, once], out=[room[40000:80000], room[:40000]]).synchronize()
    assert room[:80000].tobytes() == X.tobytes() * 2
    size = once.buffer_size
    table = liblade.as_arrays(once, [0, 0], [size, size])
    for sources in ([once, once], table):
        with pytest.raises(ValueError, match="out: the destination of item 0 overlaps its source"):
            codec.decode(sources, out=[once[5:], room])
    for outs in ([room, once[5:]], [room[:40000], once[:1]]):
        with pytest.raises(ValueError, match="of item 1 overlaps the source of item 0"):
            codec.decode([once, a], out=outs)
    snappy = Codec(algorithm="Snappy", bitstream_kind=1)
    bad = as_array(bytes.fromhex("ffffffff0f 0000")).cuda()
    good = snappy.encode(a)
    with pytest.raises(liblade.CorruptError, match="item 1: the data states 4294967295 bytes"):
        snappy.decode([good, bad])
    got = snappy.decode([good, bad], errors="return")
    assert got[0].tobytes() == X.tobytes() and got[1].index == 1
