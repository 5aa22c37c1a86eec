"""Arrays of CuPy, torch and numba on a real GPU: in and out, with their streams.

Elsewhere the tests say why they are skipped.  scripts/gpu/pack_python.sh takes them to a GPU.

SPDX-License-Identifier: Apache-2.0
"""

import gc

import numpy as np
import pytest
from device_kit import COUNT, EMU, NO_DEVICE

import liblade
from liblade import Codec, as_array, as_arrays

pytestmark = [
    pytest.mark.skipif(not COUNT, reason=NO_DEVICE),
    pytest.mark.skipif(EMU is not None, reason="other packages cannot use the emulated device"),
]
RAW = liblade.BitstreamKind.RAW
X = (np.arange(1 << 20, dtype="<i4") // 7) % 1000
ALGORITHMS = ["LZ4", "Snappy", "bitshuffle(4)|lz4", "ANS", "Bitcomp", "Cascaded"]


class Cupy:
    def __init__(self):
        self.cp = pytest.importorskip("cupy", reason="CuPy is not there")
        self.stream = self.cp.cuda.Stream(non_blocking=True)
        self.handle = self.stream.ptr

    def put(self, x):
        with self.stream:
            # Work before it, so that it is late.
            late = self.cp.asarray(np.zeros(1 << 22, "<f4"))
            for _ in range(40):
                late = late * 2
            return self.cp.asarray(x) + (late[: x.size] * 0).astype(x.dtype).reshape(x.shape)

    def empty(self, shape, dtype):
        with self.stream:
            return self.cp.zeros(shape, dtype)

    def get(self, a):
        with self.stream:
            return self.cp.asarray(a).get(stream=self.stream)

    def from_dlpack(self, a):
        with self.stream:
            return self.cp.from_dlpack(a)

    def address(self, a):
        return a.data.ptr


class Torch:
    def __init__(self):
        self.torch = pytest.importorskip("torch", reason="torch is not there")
        if not self.torch.cuda.is_available():
            pytest.skip("torch has no GPU")
        self.stream = self.torch.cuda.Stream()
        self.handle = self.stream.cuda_stream

    def put(self, x):
        with self.torch.cuda.stream(self.stream):
            late = self.torch.zeros(1 << 22, device="cuda")
            for _ in range(40):
                late = late * 2
            at = self.torch.from_numpy(x).to("cuda", non_blocking=True)
            return at + (late[: x.size] * 0).to(at.dtype).reshape(x.shape)

    def empty(self, shape, dtype):
        with self.torch.cuda.stream(self.stream):
            return self.torch.zeros(shape, device="cuda",
                                    dtype=getattr(self.torch, np.dtype(dtype).name))

    def get(self, a):
        with self.torch.cuda.stream(self.stream):
            if not isinstance(a, self.torch.Tensor):
                a = self.torch.from_dlpack(a)
            return a.cpu().numpy()

    def from_dlpack(self, a):
        with self.torch.cuda.stream(self.stream):
            return self.torch.from_dlpack(a)

    def address(self, a):
        return a.data_ptr()


class Numba:
    def __init__(self):
        self.cuda = pytest.importorskip("numba.cuda", reason="numba is not there")
        if not self.cuda.is_available():
            pytest.skip("numba has no GPU")
        self.stream = self.cuda.stream()
        handle = self.stream.handle
        self.handle = int(getattr(handle, "value", handle) or 0)

    def put(self, x):
        return self.cuda.to_device(x, stream=self.stream)

    def empty(self, shape, dtype):
        return self.cuda.to_device(np.zeros(shape, dtype), stream=self.stream)

    def get(self, a):
        return self.cuda.as_cuda_array(a).copy_to_host(stream=self.stream)

    def from_dlpack(self, a):
        return self.cuda.as_cuda_array(a)

    def address(self, a):
        return a.__cuda_array_interface__["data"][0]


# Streams that are given by their handles live on: liblade gives memory back on them later.
LIBS = []


@pytest.fixture(params=[Cupy, Torch, Numba], ids=lambda c: c.__name__)
def lib(request):
    LIBS.append(request.param())
    return LIBS[-1]


def test_no_copies(lib):
    x = lib.put(X.reshape(1024, 1024))
    a = as_array(x, cuda_stream=lib.handle)
    assert a.ptr == lib.address(x) and a.shape == (1024, 1024) and a.place == "device"
    assert a.dtype == "<i4" and a.device_id == 0
    back = lib.from_dlpack(a)
    assert lib.address(back) == a.ptr and (lib.get(back) == lib.get(x)).all()
    assert a[5, 7:9].cpu().tobytes() == X.reshape(1024, 1024)[5, 7:9].tobytes()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_there_and_back_on_its_stream(lib, algorithm):
    codec = Codec(algorithm=algorithm, bitstream_kind=RAW, cuda_stream=lib.handle,
                  data_type="<i4" if algorithm[0] in "ABC" else None)
    x, out = lib.put(X[:60000]), lib.empty(60000, "<i4")
    coded = codec.encode(x)
    result = codec.decode(coded, out=out)
    # Their own work on the stream comes behind it.
    assert (lib.get(out) == X[:60000]).all()
    assert result.shape == (60000,) and coded.buffer_size < X[:60000].nbytes * 1.1
    assert (np.asarray(Codec(algorithm=algorithm, bitstream_kind=RAW).decode(coded.cpu(), "<i4"))
            == X[:60000]).all()
    config = codec.decompression_config(codec.compression_config(240000))
    assert (lib.get(codec.decode(coded, "<i4", decompression_config=config)) == X[:60000]).all()


def test_many_chunks(lib):
    codec = Codec(algorithm="LZ4", bitstream_kind=RAW, cuda_stream=lib.handle)
    count, size = 4000, 1024
    x = lib.put(X[: count * size // 4])
    offsets, sizes = np.arange(count) * size, np.full(count, size)
    coded = codec.encode(as_arrays(x, offsets, sizes))
    out = lib.empty(count * size // 4, "<i4")
    result = codec.decode(coded, out=as_arrays(out, offsets, sizes))
    assert (lib.get(out) == X[: count * size // 4]).all()
    assert result.buffer_sizes == [size] * count
    rows = lib.empty((100, size // 4), "<i4")
    codec.decode(coded[:100], out=rows).synchronize()
    assert (lib.get(rows).ravel() == X[: 100 * size // 4]).all()
    arrays = [lib.empty(size // 4, "<i4") for _ in range(20)]
    codec.decode(coded[7:27], out=arrays).synchronize()
    assert all((lib.get(a) == X[i * 256 : (i + 1) * 256]).all() for i, a in enumerate(arrays, 7))
    # A damaged chunk fails alone, and the context lives on.
    bad = coded.cpu()[3].tobytes()[:-9]
    batch = [coded[2], as_array(bad).cuda(), coded[4]]
    result = codec.decode(batch, out=arrays[:3])
    for _ in range(2):
        with pytest.raises(liblade.CorruptError, match="^item 1: lz4: "):
            result.buffer_sizes
    assert (lib.get(arrays[2]) == X[1024:1280]).all()


def test_memory_that_dies_early(lib):
    codec = Codec(algorithm="LZ4", bitstream_kind=RAW, cuda_stream=lib.handle)
    results = []
    for i in range(30):
        data = X + i
        coded = codec.encode(lib.put(data))  # the source dies at once
        gc.collect()
        lib.put(np.full_like(X, -1))  # and its memory is wanted by others
        results.append((data, codec.decode(coded, out=lib.empty(X.size, "<i4"))))
        del coded
    for data, result in results:
        assert (np.asarray(result.cpu()).view("<i4") == data).all()


def test_other_streams_follow(lib):
    other = liblade.CudaStream.make_new()
    codec = Codec(algorithm="Snappy", bitstream_kind=RAW, cuda_stream=other)
    config = codec.decompression_config(codec.compression_config(X.nbytes))
    for _ in range(10):
        source = as_array(lib.put(X), cuda_stream=lib.handle)
        got = codec.decode(codec.encode(source), "<i4", decompression_config=config)
        assert (lib.get(lib.from_dlpack(got)) == X).all()


@pytest.mark.parametrize("algorithm", ["LZ4", "ANS", "Bitcomp", "Cascaded"])
def test_damaged_frames(algorithm):
    seed = int(np.random.default_rng().integers(1 << 32))
    rng = np.random.default_rng(seed)
    data = X[: 40000 + int(rng.integers(1000))]
    codec = Codec(algorithm=algorithm, data_type="<i4", uncomp_chunk_size=8192, checksum_policy=3)
    frame = codec.encode(as_array(data).cuda()).tobytes()
    guarded = as_array(np.full(data.size + 64, 0x5A5A5A5A, "<i4")).cuda()
    refused = 0
    for _ in range(400):
        bad = np.frombuffer(frame, "u1").copy()
        for at in rng.integers(bad.size, size=int(rng.integers(1, 4))):
            bad[at] = rng.integers(256)
        bad = bad[: bad.size - int(rng.integers(40)) * int(rng.integers(2))]
        try:
            out = codec.decode(as_array(bad).cuda(), out=guarded[: data.size])
            assert out.tobytes() == data.tobytes(), f"seed {seed}: other bytes, and no error"
        except liblade.Error:
            refused += 1
        beyond = np.asarray(guarded[data.size :].cpu()).view("<i4")
        assert (beyond == 0x5A5A5A5A).all(), f"seed {seed}: written behind the destination"
    assert refused > 300, f"seed {seed}: {refused} of 400 refused"
    got = codec.decode(as_array(np.frombuffer(frame, "u1")).cuda())
    assert got.tobytes() == data.tobytes(), f"seed {seed}: a good frame after the bad ones"


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "int8", "int64"])
def test_types_of_torch(name):
    t = Torch()
    dtype = getattr(t.torch, name, None)
    if dtype is None:
        pytest.skip(f"torch has no {name}")
    x = (t.torch.arange(50000, device="cuda") % 50).to(dtype)
    try:
        a = liblade.from_dlpack(x)
    except (BufferError, RuntimeError) as e:
        pytest.skip(f"torch does not export {name}: {e}")
    assert a.ptr == x.data_ptr() and a.item_size == x.element_size()
    codec = Codec(algorithm="ANS", data_type="bfloat16" if a.item_size == 2 else "|u1")
    got = codec.decode(codec.encode(a))
    assert got.tobytes() == bytes(x.view(t.torch.uint8).cpu().numpy())


def test_numbers_of_the_device():
    assert liblade.__cuda_version__ >= 12000
    told = Codec(algorithm="LZ4").explain(65536, 100, source_place="device",
                                           destination_place="device")
    assert any(c.chosen and c.place == "device" for c in told)
