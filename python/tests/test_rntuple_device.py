"""liblade.rntuple to and from memory of devices: liblade's own arrays on any device, the emulated
one too; CuPy's, torch's and Awkward's on a real GPU.

SPDX-License-Identifier: Apache-2.0
"""

import ctypes
import pathlib

import numpy as np
import pytest
from device_kit import COUNT, EMU, NO_DEVICE

import liblade
import liblade.rntuple

pytestmark = pytest.mark.skipif(not COUNT, reason=NO_DEVICE)
real = pytest.mark.skipif(EMU is not None, reason="others cannot use the emulated device")

GOLDEN = pathlib.Path(__file__).parents[2] / "tests/golden/rntuple"
FILES = sorted(GOLDEN.glob("*.root"))
STL = GOLDEN / "test_stl_containers_rntuple_v1-0-0-0.root"


def only(path):
    file = liblade.rntuple.open(path)
    (name,) = file
    return file[name]


def host(array):
    """The values of liblade's, CuPy's and torch's arrays."""
    if hasattr(array, "get"):
        return array.get()
    return np.asarray(array.cpu())


def blocks():
    return liblade._lade._memory_stats()[2]


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    """Columns of many pages in two clusters, of all codecs that have kernels and some that have
    none."""
    rng, n = np.random.default_rng(1), 30_000
    data = {
        "i": np.arange(n) // 7,
        "f": rng.normal(size=n).round(1).astype("f4"),
        "raw": rng.integers(0, 2**60, n),
        "small": (np.arange(n) % 100).astype("i2"),
        "bit": rng.integers(0, 2, n).astype(bool),
        "trunc": (np.arange(n) // 4).astype("f4"),
        "m": np.arange(n * 3, dtype="u4").reshape(n, 3),
        "z": np.arange(n, dtype="u8") // 100,
    }
    path = tmp_path_factory.mktemp("big") / "t.root"
    with liblade.rntuple.create(
        path, "t", codecs={"i": "lz4", "z": "zlib(level=1)", "*": "zstd(level=1)"},
        stored={"trunc": "Real32Trunc(24)"}, page_size=40_000,
    ) as w:  # fmt: skip
        w.fill(data)
        w.fill(data)
    return path, {key: np.concatenate([array, array]) for key, array in data.items()}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem[:24])
def test_files_of_root(path):
    t = only(path)
    for entries in (None, (1, t.num_entries), (0, 0)):
        want = t.arrays(entries=entries)
        got = t.arrays(entries=entries, library="lade", place="cuda")
        assert list(got) == list(want)
        for key, array in want.items():
            assert got[key].place == "device" or not array.size
            assert np.array_equal(host(got[key]).reshape(array.shape), array), key


def test_one_allocation_a_column_and_none_with_out(big):
    path, want = big
    t = only(path)
    before = blocks()
    got = t.arrays(library="lade", place="cuda")
    assert blocks() - before == len(want)
    for key, array in want.items():
        assert got[key].shape == array.shape and np.array_equal(host(got[key]), array), key
    before = blocks()
    again = t.arrays(["i", "m"], (100, 200), out={k: got[k][100:200] for k in ("i", "m")})
    assert blocks() == before
    assert again["m"].shape == (100, 3)
    assert np.array_equal(host(again["i"]), want["i"][100:200])
    assert np.array_equal(host(got["m"]), want["m"])


def test_what_is_made_on_the_host(big):
    """Tags and indices of variants go to memory of the caller's."""
    t = only(STL)
    want = t.arrays(["variant_int32_string"])
    out = {k: liblade.as_array(v).cuda() for k, v in want.items()}
    copy = liblade.Codec(algorithm="copy", bitstream_kind=1)
    for array in out.values():
        copy.decode_into(bytes(array.buffer_size), array)
    got = t.arrays(out=out)
    for key, array in want.items():
        assert got[key] is out[key] and np.array_equal(host(got[key]), array), key


def test_steps_and_explain(big):
    path, want = big
    t = only(path)
    parts = list(t.iterate(["i", "bit"], 7000, library="lade", place="cuda", prefetch=2))
    for key in ("i", "bit"):
        assert np.array_equal(np.concatenate([host(p[key]) for p in parts]), want[key])
    report = t.explain(place="cuda")
    assert report.written_size == sum(a.nbytes for a in want.values())
    assert report.device_memory > 0 and report.page_count == t.info.page_count


def test_a_bad_page_on_a_device(big, tmp_path):
    path, _ = big
    data = bytearray(path.read_bytes())
    page = only(path).pages(1, 0)[2]
    data[page.off + 30] ^= 1
    with pytest.raises(liblade.ChecksumError, match=f"f, .* at byte {page.off}"):
        only(bytes(data)).arrays(library="lade", place="cuda")


class _ArrowArray(ctypes.Structure):
    pass


_ArrowArray._fields_ = [
    *((name, ctypes.c_int64) for name in (
        "length", "null_count", "offset", "n_buffers", "n_children")),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_ArrowArray))),
    ("dictionary", ctypes.c_void_p), ("release", ctypes.c_void_p), ("private", ctypes.c_void_p),
]  # fmt: skip


class _DeviceArray(ctypes.Structure):
    _fields_ = [("array", _ArrowArray), ("device_id", ctypes.c_int64),
                ("device_type", ctypes.c_int32), ("sync_event", ctypes.c_void_p),
                ("reserved", ctypes.c_int64 * 3)]  # fmt: skip


class _Memory:
    def __init__(self, address, size):
        self.__cuda_array_interface__ = {
            "shape": (size,), "typestr": "|u1", "data": (address, True), "version": 3}  # fmt: skip


def test_arrows_struct_of_a_device():
    """Each buffer has the bytes of the host's array, and is on the device."""
    t = only(STL)
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]

    def buffers(array, sizes):
        """All buffers that are there, in order."""
        for i in range(array.n_buffers):
            if array.buffers[i] and (size := sizes.pop(0)):
                yield bytes(host(liblade.as_array(_Memory(array.buffers[i], size))).tobytes())
        for i in range(array.n_children):
            yield from buffers(array.children[i].contents, sizes)

    names = ["string", "array_float", "vector_vector_int32", "vector_string"]
    want = t.arrays(names)
    data = t.arrays(names, library="arrow", place="cuda")
    with pytest.raises(ValueError, match="__arrow_c_device_array__"):
        data.__arrow_c_array__()
    _, capsule = data.__arrow_c_device_array__()
    struct = _DeviceArray.from_address(get(capsule, b"arrow_device_array"))
    assert (struct.device_type, struct.device_id, struct.array.length) == (2, 0, 5)
    got = list(buffers(struct.array, [array.nbytes for array in want.values()]))
    assert got == [array.tobytes() for array in want.values()]
    # Tags, indices and bits are made on the host and go there.
    assert len(t.arrays(library="arrow", place="cuda")) == 5


# ---- others ------------------------------------------------------------------------------------


@real
def test_cupy(big):
    cp = pytest.importorskip("cupy")
    path, want = big
    t = only(path)
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        got = t.arrays(library="cupy")
        for key, array in want.items():
            assert type(got[key]) is cp.ndarray and got[key].shape == array.shape
            assert np.array_equal(got[key].get(), array), key
        # Work that is enqueued before is not overtaken.
        out = {k: cp.zeros(a.shape, a.dtype) for k, a in want.items()}
        late = cp.ones(1 << 24, "f4")
        for _ in range(50):
            late = late * 1.5
        for array in out.values():
            array += (late[0] * 0).astype(array.dtype) if array.dtype != bool else False
        before = blocks()
        again = t.arrays(out=out)
        assert blocks() == before and all(again[k] is out[k] for k in out)
        for key, array in want.items():
            assert np.array_equal(out[key].get(), array), key
    stl = only(STL)
    host_, device = stl.arrays(), stl.arrays(library="cupy")
    assert all(np.array_equal(device[k].get(), a) for k, a in host_.items())


@real
def test_torch(big):
    torch = pytest.importorskip("torch")
    path, want = big
    t = only(path)
    got = t.arrays(library="torch", place="cuda")
    for key, array in want.items():
        assert isinstance(got[key], torch.Tensor) and got[key].is_cuda
        assert np.array_equal(got[key].cpu().numpy(), array), key
    out = {"f": torch.zeros(60_000, device="cuda"), "i": torch.zeros(60_000, dtype=torch.int64)}
    again = t.arrays(out=out)
    assert again["f"] is out["f"] and np.array_equal(out["f"].cpu().numpy(), want["f"])
    assert np.array_equal(out["i"].numpy(), want["i"])
    assert np.array_equal(t.arrays(["f"], library="torch")["f"].numpy(), want["f"])
    ours = t.arrays(["i"], library="lade", place="cuda")["i"]
    assert np.array_equal(torch.from_dlpack(ours).cpu().numpy(), want["i"])


@real
def test_awkward():
    pytest.importorskip("cupy")
    ak = pytest.importorskip("awkward")
    for path in FILES:
        t = only(path)
        for entries in (None, (1, t.num_entries)):
            want = t.arrays(entries=entries, library="ak")
            got = t.arrays(entries=entries, library="ak", place="cuda")
            assert ak.backend(got) == "cuda"
            assert ak.to_list(ak.to_backend(got, "cpu")) == ak.to_list(want)


@real
def test_written_from_a_device(tmp_path):
    cp = pytest.importorskip("cupy")
    x = cp.arange(100_000, dtype="f4")
    with liblade.rntuple.create(tmp_path / "t.root", "t") as w:
        w.fill({"x": x, "m": cp.arange(200_000).reshape(-1, 2)})
    got = only(tmp_path / "t.root").arrays()
    assert np.array_equal(got["x"], x.get()) and got["m"][-1].tolist() == [199_998, 199_999]
