# test_rntuple_write.py: RNTuples that liblade writes are read by liblade, uproot and JSROOT.
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib

import numpy as np
import pytest
import rntuple_ctypes as lade

uproot = pytest.importorskip("uproot", reason="no wheel of uproot")
ak = pytest.importorskip("awkward", reason="no wheel of awkward")

GOLDEN = pathlib.Path(__file__).parents[1] / "golden/rntuple"
CODECS = ["zstd(level=3)", "lz4", "zlib(level=1)", "lzma", "none"]
# What a column is stored as: the field's type in C++, and the elements' type.
PLAIN = {
    "Bit": ("bool", "?"), "Byte": ("std::byte", "u1"), "Char": ("char", "u1"),
    "Int8": ("std::int8_t", "i1"), "UInt8": ("std::uint8_t", "u1"),
    "Int16": ("std::int16_t", "i2"), "UInt16": ("std::uint16_t", "u2"),
    "Int32": ("std::int32_t", "i4"), "UInt32": ("std::uint32_t", "u4"),
    "Int64": ("std::int64_t", "i8"), "UInt64": ("std::uint64_t", "u8"),
    "Real16": ("float", "f2"), "Real32": ("float", "f4"), "Real64": ("double", "f8"),
    "SplitInt16": ("std::int16_t", "i2"), "SplitUInt16": ("std::uint16_t", "u2"),
    "SplitInt32": ("std::int32_t", "i4"), "SplitUInt32": ("std::uint32_t", "u4"),
    "SplitInt64": ("std::int64_t", "i8"), "SplitUInt64": ("std::uint64_t", "u8"),
    "SplitReal16": ("float", "f2"),
    "SplitReal32": ("float", "f4"), "SplitReal64": ("double", "f8"),
    "Real32Trunc(10)": ("float", "f4"), "Real32Trunc(31)": ("float", "f4"),
    "Real32Quant(1,-1,1)": ("float", "f4"), "Real32Quant(20,-8,8)": ("float", "f4"),
    "Real32Quant(32,-8,8)": ("float", "f4"),
}
LISTS = ["Index32", "Index64", "SplitIndex32", "SplitIndex64"]
NOBODY = {"SplitReal16"}  # ROOT has no such column, and uproot does not know it


def elements(stored, dtype, count, rng):
    if dtype == "?":
        return rng.integers(0, 2, count).astype(bool)
    if dtype[0] != "f":
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        values = rng.integers(low, high, count, dtype=dtype, endpoint=True)
        values[:3] = [low, high, 0][:count]
        values[count // 2 :] = np.arange(count - count // 2) % 100 # what shrinks
        return values
    if "Quant(1," in stored:
        return rng.choice(np.array([-1, 1], dtype), count)
    if "Quant" in stored:
        return (rng.integers(-8, 9, count)).astype(dtype)
    if "Trunc" in stored:
        return rng.choice(np.array([-2, -1.5, 0, 0.5, 3], dtype), count)
    return np.round(rng.normal(size=count), 2).astype(dtype)


def every_type(path, codec, page_size, counts, rng, **more):
    """Writes every type of column; returns what is in them."""
    names = [f"f{i}" for i in range(len(PLAIN))]
    data = {name: [] for name in names + LISTS}
    with lade.Writer(path, codec=codec, page_size=page_size, **more) as w:
        w.add(*({"name": name, "type": PLAIN[s][0], "stored": s} for name, s in zip(names, PLAIN)))
        for i, stored in enumerate(LISTS):
            at = len(PLAIN) + 2 * i
            w.add({"name": stored, "type": "std::vector<std::int16_t>", "role": lade.COLLECTION,
                   "stored": stored},
                  {"name": "_0", "type": "std::int16_t", "parent": at})
        for n in counts:
            fill = {}
            for name, stored in zip(names, PLAIN):
                fill[name] = elements(stored, PLAIN[stored][1], n, rng)
                data[name].append(fill[name])
            for stored in LISTS:
                sizes = rng.integers(0, 5, n)
                ends = np.concatenate([[0], np.cumsum(sizes)])
                fill[stored] = ends
                fill[stored + "._0"] = np.arange(ends[-1], dtype="i2")
                data[stored].append(ak.unflatten(fill[stored + "._0"], sizes))
            w.fill(n, fill)
        w.commit()
        report = w.report
    return dict(zip(names, PLAIN)), {k: ak.concatenate(v) for k, v in data.items()}, report


def quantised(stored, values):
    """What the nearest level of a value is: those of the tests are not all levels."""
    if not stored.startswith("Real32Quant"):
        return np.asarray(values)
    bits, low, high = (float(x) for x in stored[12:-1].split(","))
    top = 2.0**bits - 1
    levels = np.floor(0.5 + (np.asarray(values, "f8") - low) * (top / (high - low)))
    return np.minimum(levels * ((high - low) / top) + low, high).astype("f4")


@pytest.mark.parametrize("page_size", [1, 100, 0])
@pytest.mark.parametrize("codec", CODECS)
def test_every_type_codec_and_page_size(tmp_path, codec, page_size):
    """liblade reads all of it; uproot all that it knows.  1 byte: a page for each element."""
    path = tmp_path / "t.root"
    counts = [40, 3] if page_size == 1 else [700, 300]
    names, data, report = every_type(path, codec, page_size, counts, np.random.default_rng(1))
    assert report.cluster_count == 2
    if codec != "none" and page_size == 0:
        assert report.stored_size < 0.9 * report.decoded_size
    with lade.Tuple(path) as t:
        for name, stored in names.items():
            got = t.read(name)
            assert t.column(t.find(name)).stored.decode() == stored.split("(")[0]
            assert got.tobytes() == quantised(stored, data[name]).tobytes(), stored
        for stored in LISTS:
            assert np.array_equal(np.diff(t.read(stored)), ak.num(data[stored])), stored
            assert np.array_equal(t.read(stored + "._0"), ak.flatten(data[stored])), stored
    with uproot.open(path) as f:
        for name, stored in names.items():
            if stored in NOBODY:
                continue
            got = np.asarray(f["t"].arrays([name])[name])
            want = quantised(stored, data[name])
            if "Quant" in stored: # uproot's last place differs
                assert np.allclose(got, want, rtol=1e-6, atol=1e-7), stored
            else:
                assert np.array_equal(got, want), stored
        for stored in LISTS:
            assert ak.array_equal(f["t"].arrays([stored])[stored], data[stored]), stored


def test_append_and_late_fields(tmp_path):
    """Appends to files of liblade and of uproot; fields that come later have zeros before."""
    for who in ("lade", "uproot"):
        path = tmp_path / f"{who}.root"
        x = np.arange(100, dtype="i4")
        if who == "lade":
            with lade.Writer(path, page_size=64) as w:
                w.add(("x", "std::int32_t"))
                w.fill(100, {"x": x})
                w.commit()
        else:
            with uproot.recreate(path) as f:
                f.mkrntuple("t", {"x": x})
        with lade.Writer(path, mode=lade.APPEND, codec="lz4") as w:
            w.fill(100, {"x": x + 100})
            w.add(("late", "float"),
                  {"name": "list", "type": "std::vector<std::int64_t>", "role": lade.COLLECTION},
                  {"name": "_0", "type": "std::int64_t", "parent": 2},
                  {"name": "three", "type": "std::array<std::int8_t,3>", "array_size": 3},
                  {"name": "_0", "type": "std::int8_t", "parent": 4},
                  {"name": "text", "type": "std::string"})
            with pytest.raises(RuntimeError, match="another writer"):
                lade.Writer(path, mode=lade.APPEND)
            for more in (200, 300):
                w.fill(100, {
                        "x": x + more, "late": (x / 2).astype("f4"), "list": np.arange(101),
                        "list._0": x.astype("i8"), "three": (np.arange(300) % 100).astype("i1"),
                        "text": np.arange(101), w.column("text", 1): np.full(100, ord("a"), "u1")})
                with lade.Tuple(path) as t: # as it was at the last commit
                    assert t.entries == (100 if more == 200 else 300)
                w.commit()
        want = {"x": np.arange(400), "late": np.concatenate([np.zeros(200), x / 2, x / 2]),
                "list": ak.Array([[]] * 200 + [[i] for i in range(100)] * 2),
                "three": [[0] * 3] * 200 + (np.arange(300) % 100).reshape(-1, 3).tolist() * 2,
                "text": [""] * 200 + ["a"] * 200}
        with lade.Tuple(path) as t:
            assert t.entries == 400
            assert np.array_equal(t.read("x"), want["x"])
            assert np.array_equal(t.read("late"), want["late"])
            assert np.array_equal(np.diff(t.read("list")), ak.num(want["list"]))
            assert np.array_equal(t.read("three"), np.ravel(want["three"]))
        with uproot.open(path) as f:
            got = f["t"].arrays()
            for name, values in want.items():
                assert ak.to_list(got[name]) == ak.to_list(values), (who, name)


@pytest.mark.parametrize("size", [1_999_990_000, 2_147_483_600, 5_000_000_000])
def test_far_appends(tmp_path, size):
    """Entries behind 2 and 5 GB of a hole, at which seeks and locators of 4 bytes end."""
    path, x = tmp_path / "t.root", np.arange(10_000, dtype="i4")
    fields = (("x", "std::int32_t"), {"name": "v", "type": "std::vector<float>",
                                      "role": lade.COLLECTION}, ("_0", "float", 1))
    fill = {"x": x, "v": np.arange(10_001), "v._0": x.astype("f4")}
    with lade.Writer(path) as w:
        w.add(*fields)
        w.fill(10_000, fill)
        w.commit()
    os.truncate(path, size)
    for _ in range(2):
        with lade.Writer(path, mode=lade.APPEND, codec="lz4") as w:
            w.fill(10_000, fill)
            w.commit()
    assert os.path.getsize(path) > size + 10_000
    with lade.Tuple(path) as t:
        assert np.array_equal(t.read("x"), np.tile(x, 3))
        assert np.array_equal(t.read("v"), np.arange(30_001))
        assert np.array_equal(t.read("v._0", 19_000, 2_000), np.roll(x, -9_000)[:2_000])
    with uproot.open(path) as f:
        got = f["t"].arrays()
        assert np.array_equal(got["x"], np.tile(x, 3))
        assert np.array_equal(ak.to_numpy(ak.flatten(got["v"])), np.tile(x, 3))


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.root")), ids=lambda file: file.name[5:20])
def test_append_to_files_of_root(tmp_path, file):
    """All entries of ROOT's files once more behind them: late columns, two representations, records
    and variants among them."""
    path = tmp_path / "t.root"
    path.write_bytes(file.read_bytes())
    with uproot.open(path) as f:
        name = next(iter(f.keys(cycle=False)))
        before = ak.to_list(f[name].arrays())
    with lade.Tuple(path) as t:
        fills = {i: t.read_column(i) for i in range(t.columns)}
        entries = t.entries
    with lade.Writer(path, name=name, mode=lade.APPEND) as w:
        w.fill(entries, fills)
        w.commit()
    with lade.Tuple(path) as t:
        assert t.entries == 2 * entries
        for i, values in fills.items():
            got = t.read_column(i)
            if t.column(i).kind == 1:
                got, values = np.diff(got), np.diff(values)
            assert got.tobytes() == 2 * values.tobytes(), (file.name, i)
    with uproot.open(path) as f:
        assert ak.to_list(f[name].arrays()) == before + before
