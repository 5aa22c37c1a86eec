# test_rntuple.py: RNTuples that uproot writes, of every codec that it has, are read.
# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
import rntuple_ctypes as lade

uproot = pytest.importorskip("uproot", reason="no wheel of uproot")
ak = pytest.importorskip("awkward", reason="no wheel of awkward")

CODECS = {
    "zlib": uproot.ZLIB(1),
    "lz4": uproot.LZ4(4),
    "lzma": uproot.LZMA(1),
    "zstd": uproot.ZSTD(3),
    "stored": None,
}


def some(count, seed):
    """Entries of all kinds that uproot writes."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 5, count)
    sizes[0] = 3
    flat = np.round(rng.normal(size=sizes.sum()), 1).astype("f4")
    inner = rng.integers(0, 3, sizes.sum())
    inner[0] = 2
    values = rng.integers(-99, 99, inner.sum())
    fields = {t: rng.integers(0, 100, count).astype(t) for t in "i1 u1 i2 u2 i4 u4 i8 u8".split()}
    return fields | {
        "f4": np.arange(count, dtype="f4") // 7,
        "f8": np.round(rng.normal(size=count), 1),
        "bit": rng.integers(0, 2, count).astype(bool),
        "list": ak.unflatten(flat, sizes),
        "lists": ak.unflatten(ak.unflatten(values, inner), sizes),
        "text": ak.Array(["x" * int(n) + str(n) for n in sizes]),
        "record": ak.zip({"x": rng.normal(size=count), "y": rng.integers(0, 9, count)}),
    }


def compare(t, data, first, count):
    """Entries of all columns, beside what was written."""
    want = {name: values[first : first + count] for name, values in data.items()}
    for name, values in want.items():
        if name not in ("list", "lists", "text", "record"):
            got = t.read(name, first, count)
            assert got.dtype == np.asarray(values).dtype
            assert np.array_equal(got, np.asarray(values)), name
    ends = lambda sizes: np.concatenate([[0], np.cumsum(ak.to_numpy(sizes))])
    assert np.array_equal(t.read("list", first, count), ends(ak.num(want["list"])))
    assert np.array_equal(t.read("list._0", first, count), ak.flatten(want["list"]))
    assert np.array_equal(t.read("lists._0", first, count),
                          ends(ak.num(ak.flatten(want["lists"]))))
    assert np.array_equal(t.read("lists._0._0", first, count),
                          ak.flatten(want["lists"], axis=None))
    texts = ak.to_list(want["text"])
    assert np.array_equal(t.read("text", first, count), ends(ak.Array([len(s) for s in texts])
                                                             if texts else ak.Array([])))
    assert t.read("text", first, count, 1).tobytes() == "".join(texts).encode()
    assert np.array_equal(t.read("record.x", first, count), want["record"]["x"])


@pytest.mark.parametrize("codec", CODECS)
def test_columns_of_uproot(tmp_path, codec):
    """Three groups of clusters; entries from any first to any last one."""
    parts = [some(count, seed) for seed, count in enumerate([2000, 1, 300])]
    path = tmp_path / "t.root"
    with uproot.recreate(path, compression=CODECS[codec]) as file:
        writer = file.mkrntuple("t", parts[0])
        for part in parts[1:]:
            writer.extend(part)
    data = {name: ak.concatenate([part[name] for part in parts]) for name in parts[0]}
    with lade.Tuple(path) as t:
        assert t.entries == 2301
        for first, count in [(0, 2301), (0, 0), (2301, 0), (1999, 3), (7, 1), (100, 2150)]:
            compare(t, data, first, count)


@pytest.mark.parametrize("codec", ["zlib", "lz4", "zstd"])
def test_pages_of_several_blocks(tmp_path, codec):
    """A page of 24 MB is two blocks: 16,777,215 bytes are in the first."""
    x = np.arange(3_000_000) // 7 % 1000
    path = tmp_path / "t.root"
    with uproot.recreate(path, compression=CODECS[codec]) as file:
        file.mkrntuple("t", {"x": x})
    with lade.Tuple(path) as t:
        assert np.array_equal(t.read("x"), x)
        assert np.array_equal(t.read("x", 2_097_150, 9), x[2_097_150:2_097_159])
