"""liblade.uproot: uproot's reads in one batch, on the host and, where CuPy is, on a GPU; what
uproot's path for GPUs cannot read.

SPDX-License-Identifier: Apache-2.0
"""

import contextlib
import importlib.util
import io
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import liblade
import liblade.rntuple
import liblade.uproot as plug

ak = pytest.importorskip("awkward", reason="no wheel of awkward")
uproot = pytest.importorskip("uproot", reason="no wheel of uproot")

GOLDEN = pathlib.Path(__file__).parents[2] / "tests/golden/rntuple"
FILES = sorted(GOLDEN.glob("*.root"))
ON_GPU = {"backend": "cuda", "interpreter": "gpu"}


def no_gpu():
    if not importlib.util.find_spec("cupy"):
        return "no CuPy"
    return "" if liblade._lade._device_count() else "no GPU"


@pytest.fixture(params=["host", "gpu"])
def read(request):
    """Reads all or some fields of an RNTuple through liblade, and nothing by uproot itself."""
    if request.param == "gpu" and no_gpu():
        pytest.skip(no_gpu())
    how = ON_GPU if request.param == "gpu" else {}

    def arrays(path, names=None, **more):
        before = plug.statistics()
        with uproot.open(path) as file:
            (name,) = {key.split(";")[0] for key in file.keys()}
            got = file[name].arrays(names, **how, **more)
            assert ak.backend(got) == ("cuda" if how else "cpu")
            got = ak.to_backend(got, "cpu")
        after = plug.statistics()
        assert after[0] > before[0] and after[1] == before[1]
        return got

    arrays.how = how
    plug.enable()
    yield arrays
    plug.disable()


@contextlib.contextmanager
def enabled():
    plug.enable()
    try:
        yield
    finally:
        plug.disable()


def write(path, *parts, **options):
    with liblade.rntuple.create(path, "t", replace=True, **options) as w:
        for part in parts:
            w.fill(part)
    return path


def test_reads_load_neither_kvikio_nor_nvcomp():
    """In a process of its own, since other tests load nvCOMP as a peer."""
    code = """if True:
        import sys, uproot, liblade.uproot
        liblade.uproot.enable()
        with uproot.open(sys.argv[1]) as file:
            (name,) = {key.split(";")[0] for key in file.keys()}
            file[name].arrays()
        assert liblade.uproot.statistics()[0]
        print(sorted({"kvikio", "nvidia.nvcomp"} & set(sys.modules)))"""
    done = subprocess.run([sys.executable, "-c", code, str(FILES[0])], capture_output=True,
                          text=True, timeout=120)
    assert done.stdout == "[]\n", done.stderr


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem[:24])
def test_files_of_root(read, path):
    with uproot.open(path) as file:
        (name,) = {key.split(";")[0] for key in file.keys()}
        plug.disable()
        want = file[name].arrays()
    plug.enable()
    got = read(path)
    assert str(got.type) == str(want.type) and ak.to_list(got) == ak.to_list(want)
    n = len(want)
    for first, stop in [(1, n), (n // 2, n - 1), (n - 1, n)]:
        got = read(path, entry_start=first, entry_stop=stop)
        assert ak.to_list(got) == ak.to_list(want[first:stop])


def test_enable_and_disable_restore_exactly():
    models = sys.modules["uproot.models.RNTuple"]
    behaviors = sys.modules["uproot.behaviors.RNTuple"]
    owners = (models.Model_ROOT_3a3a_RNTuple, behaviors.HasFields, behaviors, models)
    before = [dict(vars(owner)) for owner in owners]
    for _ in range(2):
        plug.enable()
        plug.enable()
        assert plug.enabled()
        changed = [k for o, b in zip(owners, before, strict=True)
                   for k, v in vars(o).items() if b.get(k) is not v]  # fmt: skip
        assert len(changed) == 7
        plug.disable()
        plug.disable()
        assert not plug.enabled()
        assert [dict(vars(owner)) for owner in owners] == before


def test_a_call_is_one_read(tmp_path, monkeypatch):
    path = write(tmp_path / "t.root", {f"x{i}": np.arange(10) + i for i in range(20)})
    calls = []
    real = plug._read_host
    spy = lambda bound, columns, *rest: (calls.append(len(columns)), real(bound, columns, *rest))[1]
    monkeypatch.setattr(plug, "_read_host", spy)
    with enabled(), uproot.open(path) as file:
        t = file["t"]
        assert len(t.arrays().fields) == 20 and calls == [20]
        t.arrays(array_cache=None, filter_name="x1*")
        assert calls == [20, 11]
        t.arrays()  # uproot's cache has all of it
        assert calls == [20, 11]
        lazy = t.arrays(virtual=True, array_cache=None)
        assert calls == [20, 11] and ak.to_list(lazy["x3"]) == list(range(3, 13))
        assert calls == [20, 11, 1]
    with pytest.raises(OSError, match="closed"), enabled():
        t.arrays(array_cache=None)


def test_other_sources_of_uproot(tmp_path):
    """Objects and fsspec's file systems are read through uproot's source."""
    data = {"x": np.arange(1000), "l": ak.Array([[1, 2], []] * 500)}
    path = write(tmp_path / "t.root", data)
    want = ak.to_list(ak.Array(data))
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://t.root", "wb") as f:
        f.write(path.read_bytes())
    with enabled():
        for source in (io.BytesIO(path.read_bytes()), "memory://t.root"):
            before = plug.statistics()
            with uproot.open(source) as file:
                assert ak.to_list(file["t"].arrays()) == want
            after = plug.statistics()
            assert after == (before[0] + 3, before[1])


def test_what_liblade_does_not_open_stays_uproots(tmp_path):
    """uproot's add_fields() writes offsets of elements that do not add up."""
    path = tmp_path / "t.root"
    with uproot.recreate(path) as file:
        file.mkrntuple("t", {"x": np.arange(3)})
    with uproot.update(path) as file:
        file["t"].add_fields({"y": np.int32})
        file["t"].extend({"x": np.arange(3), "y": np.arange(3, dtype="i4")})
    with pytest.raises(liblade.CorruptError, match="elements 0 to 3 in cluster 1, want 3 to 6"):
        liblade.rntuple.open(path)["t"]
    with enabled(), uproot.open(path) as file:
        before = sum(plug.reasons().values())
        assert file["t"].arrays().y.tolist() == [0, 0, 0, 0, 1, 2]
        told = plug.reasons()
        assert sum(told.values()) == before + 2 and any("0 to 3 in cluster 1" in r for r in told)


def test_errors_that_uproot_would_not_have_are_not_hidden(tmp_path, monkeypatch):
    path = write(tmp_path / "t.root", {"x": np.arange(3)})

    def broken(place):
        raise TypeError("a fault of ours")

    monkeypatch.setattr(plug.rntuple, "open", broken)
    with enabled(), uproot.open(path) as file, pytest.raises(TypeError, match="a fault of ours"):
        file["t"].arrays()


def test_columns_of_wide_schemas_one_by_one(tmp_path, monkeypatch):
    """uproot looks for the fields under each field in all fields."""
    point = ak.Array([{"a": 1, "b": [2.5, 3.5]}, {"a": 2, "b": []}])
    data = {f"f{i}": np.arange(2) + i for i in range(700)}
    path = write(tmp_path / "t.root", {**data, "p": point})

    def look(t):
        return t.keys(), [[x.path for x in f.fields] for f in t.all_fields[-4:]]

    with uproot.open(path) as file:
        want = look(file["t"])
    record = uproot.models.RNTuple.MetaData
    real, looked = record.__getattr__, []
    monkeypatch.setattr(record, "__getattr__", lambda self, x: (looked.append(x), real(self, x))[1])
    with enabled(), uproot.open(path) as file:
        t = file["t"]
        assert look(t) == want
        for i in range(0, 700, 200):
            assert t.arrays([f"f{i}"])[f"f{i}"].tolist() == [i, i + 1]
    assert len(looked) < 100 * 700


# ---- what breaks uproot's own path for GPUs ----------------------------------------------------


def test_pages_that_are_stored_beside_compressed_ones(read, tmp_path):
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.integers(0, 256, 4096), np.zeros(4096)]).astype("u1")
    path = write(tmp_path / "t.root", {"x": x}, page_size=1024)
    t = liblade.rntuple.open(path)["t"]
    assert len({p.stored_size == p.decoded_size for p in t.pages(0, 0)}) == 2
    assert np.array_equal(read(path).x, x)


@pytest.mark.parametrize("codec", ["ZSTD", "LZ4", "ZLIB"])
def test_pages_of_several_blocks(read, tmp_path, codec):
    x = (np.arange(17_000_000) // 70_000).astype("u1")
    with uproot.recreate(tmp_path / "t.root", compression=getattr(uproot, codec)(1)) as file:
        file.mkrntuple("t", {"x": x})
    assert np.array_equal(read(tmp_path / "t.root").x, x)


@pytest.mark.parametrize("codec", ["none", "zlib(level=1)", "lzma", "lz4", "zstd(level=1)"])
def test_every_codec(read, tmp_path, codec):
    """Setting 0, and zlib, which is uproot's default, among them."""
    data = {"x": np.arange(5000) // 3, "f": np.arange(5000, dtype="f4"),
            "l": ak.Array([[1, 2], [], [3]] * 1000 + [[]] * 2000)}  # fmt: skip
    got = read(write(tmp_path / "t.root", data, codec=codec, page_size=4096))
    assert ak.to_list(got) == ak.to_list(ak.Array(data))
    if codec == "zlib(level=1)":
        with uproot.recreate(tmp_path / "u.root") as file:
            file.mkrntuple("t", data)
        assert ak.to_list(read(tmp_path / "u.root")) == ak.to_list(ak.Array(data))


def test_bits_in_pages_that_end_inside_bytes(read, tmp_path):
    b = np.random.default_rng(1).integers(0, 2, 1000).astype(bool)
    bits = np.random.default_rng(2).integers(0, 2, (1000, 11)).astype(bool)
    data = {"b": b, "z": np.zeros(1000, bool), "bits": bits}
    types = {"bits": "std::bitset<11>"}
    path = write(tmp_path / "t.root", data, data, page_size=13, types=types)
    got = read(path)
    for name, values in data.items():
        assert np.array_equal(np.asarray(got[name]), np.concatenate([values, values])), name


def test_compressed_pages_of_shortened_floats(read, tmp_path):
    x = (np.arange(20_000) // 1000 / 4).astype("f4")
    stored = {"trunc": "Real32Trunc(20)", "quant": "Real32Quant(12,0,5)"}
    path = write(tmp_path / "t.root", {"trunc": x, "quant": x}, stored=stored, page_size=5000)
    t = liblade.rntuple.open(path)["t"]
    assert all(p.stored_size < p.decoded_size for i in range(2) for p in t.pages(i, 0)[:-1])
    got = read(path)
    assert np.array_equal(got.trunc, x) and np.abs(np.asarray(got.quant) - x).max() < 1e-3


def test_entries_from_later_clusters(read, tmp_path):
    parts = [ak.Array([{"x": i, "l": [i] * (i % 3), "s": "a" * (i % 4)} for i in range(k, k + 50)])
             for k in range(0, 200, 50)]  # fmt: skip
    path = write(tmp_path / "t.root", *parts)
    want = ak.to_list(ak.concatenate(parts))
    # From the second cluster on, at the bounds of clusters, across them, and nothing.
    for first, stop in [(60, 200), (50, 100), (0, 50), (100, 150), (99, 101), (199, 200)]:
        got = read(path, entry_start=first, entry_stop=stop)
        assert ak.to_list(got) == want[first:stop], (first, stop)


def test_checksums_of_pages_and_blocks(read, tmp_path):
    x = np.arange(10_000) // 7
    for codec, checksums in [("none", True), ("zstd(level=1)", True), ("lz4", False)]:
        path = write(tmp_path / "t.root", {"x": x}, codec=codec, checksums=checksums)
        page = liblade.rntuple.open(path)["t"].pages(0, 0)[0]
        data = bytearray(path.read_bytes())
        data[page.off + page.stored_size - 20] ^= 4
        path.write_bytes(data)
        with pytest.raises(liblade.ChecksumError, match="XXH"):
            read(path)


def test_variants_texts_and_options(read, tmp_path):
    """In several clusters: uproot's own indices count from the start of each."""
    rows = [{"u": 1, "s": "one", "o": None}, {"u": "x", "s": "", "o": 2.5},
            {"u": None, "s": "three", "o": 3.5}, {"u": 4, "s": "é", "o": None}]  # fmt: skip
    parts = [ak.Array(rows), ak.Array(rows[::-1] * 3), ak.Array(rows)]
    path = write(tmp_path / "t.root", *parts)
    want = ak.to_list(ak.concatenate(parts))
    assert ak.to_list(read(path)) == want
    assert ak.to_list(read(path, entry_start=5, entry_stop=18)) == want[5:18]


def test_memory_of_a_gpu(read, tmp_path):
    """One allocation a column."""
    if not read.how:
        pytest.skip("of the host")
    import cupy

    path = write(tmp_path / "t.root", {f"x{i}": np.arange(100_000) for i in range(5)})
    taken = []
    pool = cupy.get_default_memory_pool()

    def malloc(size):
        taken.append(size)
        return pool.malloc(size)

    with uproot.open(path) as file:
        t = file["t"]
        refs = t.gpu_read_cluster_range([f"column-{i}" for i in range(5)], 0, 1)
        with cupy.cuda.using_allocator(malloc):
            refs._decompress()
            got = t.gpu_deserialize_decompressed_content(refs, 0, 1)
    assert len(taken) == 5 and [int(a[-1]) for a in got.values()] == [99_999] * 5
