"""liblade.rntuple writes: what numpy, Awkward and Arrow have is read back, and by uproot.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import pytest

import liblade
import liblade.rntuple

ak = pytest.importorskip("awkward", reason="no wheel of awkward")
uproot = pytest.importorskip("uproot", reason="no wheel of uproot")
pa = pytest.importorskip("pyarrow", reason="no wheel of pyarrow")

ENTRIES = [
    {"l": [1, 2, 3], "s": "one", "r": {"x": 1.5, "y": [[1], [2, 3]]}, "o": None, "t": (1, "a"),
     "u": 1, "ol": [1, 2], "or": {"a": 1, "b": [1]}, "oo": [["x", None], None], "ou": [1, "z"]},
    {"l": [], "s": "", "r": {"x": 2.5, "y": []}, "o": 3, "t": (2, "bb"), "u": "x", "ol": None,
     "or": None, "oo": None, "ou": []},
    {"l": [4], "s": "dreiß", "r": {"x": 3.5, "y": [[]]}, "o": 5, "t": (3, ""), "u": None,
     "ol": [], "or": {"a": 2, "b": []}, "oo": [[]], "ou": ["y", None, 7]},
]  # fmt: skip


def some(count, seed=0):
    """Entries of all kinds, in any order."""
    rng = np.random.default_rng(seed)
    array = ak.Array(ENTRIES)[[0, 1, 2, *rng.integers(0, 3, count - 3)]]
    array["n"] = rng.normal(size=count).astype("f4")
    array["m"] = rng.integers(0, 9, (count, 2, 3)).astype("i2")
    return array


def write(path, data, *more, **options):
    with liblade.rntuple.create(path, "t", replace=True, **options) as w:
        report = w.fill(data)
        for one in more:
            report = w.fill(one)
    return report


def read(path, **how):
    return liblade.rntuple.open(path)["t"].arrays(library="ak", **how)


@pytest.mark.parametrize("codec", ["zstd(level=1)", "lz4", "zlib(level=1)", "lzma", "none"])
def test_awkward_there_and_back(tmp_path, codec):
    """In several clusters and small pages; uproot reads the same."""
    path, parts = tmp_path / "t.root", [some(20), some(3), some(50, 2)]
    report = write(path, *parts, codec=codec, page_size=64)
    assert report.entry_count == 73 and report.cluster_count == 3
    want = ak.concatenate(parts)
    got = read(path)
    assert ak.to_list(got) == ak.to_list(want)
    with uproot.open(path) as f:
        assert str(f["t"].arrays().type) == str(got.type)
        # uproot's variants of several clusters count from the start of each.
        names = [name for name in want.fields if name not in ("u", "ou")]
        assert ak.to_list(f["t"].arrays(names)[names]) == ak.to_list(want[names])
        one = f["t"].arrays(entry_start=23)
        assert ak.to_list(one) == ak.to_list(want[23:])
    for first, stop in [(0, 0), (5, 22), (19, 24), (72, 73), (30, 60)]:
        assert ak.to_list(read(path, entries=(first, stop))) == ak.to_list(want[first:stop])
        data = liblade.rntuple.open(path)["t"].arrays(entries=(first, stop), library="arrow")
        batch = pa.record_batch(data)
        batch.validate(full=True)
        lists = ak.to_list(ak.from_arrow(batch))
        names = [name for name in want.fields if name not in ("u", "ou", "t")]
        for name in names:
            assert [e[name] for e in lists] == ak.to_list(want[first:stop][name]), name
        values = [batch.column("u").to_pylist(), batch.column("ou").to_pylist()]
        assert values == [ak.to_list(want[first:stop][name]) for name in ("u", "ou")]


def test_slices_and_views_of_awkward(tmp_path):
    whole = some(40)
    for part in (whole[7:30], whole[::-1], whole[[3, 3, 9]], whole[:0]):
        write(tmp_path / "t.root", part)
        assert ak.to_list(read(tmp_path / "t.root")) == ak.to_list(part)


def test_arrow_there_and_back(tmp_path):
    path = tmp_path / "t.root"
    table = pa.table({
        "i": pa.array([1, 2, 3, 4], pa.int16()),
        "f": pa.array([1, None, 3, 4], pa.float32()),
        "s": pa.array(["a", "bc", "", "déf"]),
        "l": pa.array([[1.0], [], None, [2.0, 3.0]], pa.list_(pa.float64())),
        "d": pa.array(["x", "y", "x", "x"]).dictionary_encode(),
        "b": pa.array([True, False, True, True]),
        "st": pa.array([{"a": 1}, {"a": 2}, {"a": 3}, {"a": 4}]),
        "fl": pa.array([[1, 2], [3, 4], [5, 6], [7, 8]], pa.list_(pa.uint8(), 2)),
    })  # fmt: skip
    for part in (table, table.slice(1, 2), pa.concat_tables([table, table.slice(2)])):
        write(path, part)
        batch = pa.record_batch(liblade.rntuple.open(path)["t"].arrays(library="arrow"))
        batch.validate(full=True)
        assert batch.to_pylist() == part.to_pylist()
        with uproot.open(path) as f:
            assert ak.to_list(f["t"].arrays()) == part.to_pylist()
    # What liblade gives is a source, too.
    again = tmp_path / "again.root"
    write(again, liblade.rntuple.open(path)["t"].arrays(library="arrow"))
    assert ak.to_list(read(again)) == ak.to_list(read(path))


def test_numpy_types_and_options_by_column(tmp_path):
    path, rng = tmp_path / "t.root", np.random.default_rng(1)
    data = {
        "x": np.arange(1000, dtype="f4"),
        "bits": rng.integers(0, 2, (1000, 12)).astype(bool),
        "m": np.arange(6000, dtype="i2").reshape(1000, 2, 3),
        "half": np.arange(1000, dtype="f2"),
        "text": np.array(["a", "bc"] * 500),
        "rec": np.zeros(1000, [("a", "i4"), ("b", ">f8")]),
        "q": np.linspace(-2, 3, 1000).astype("f4"),
        "every": np.arange(2000, dtype="u8")[::2],
        "list": ak.unflatten(np.arange(3000), np.full(1000, 3)),
        **{t: rng.integers(0, 100, 1000).astype(t) for t in ("i1", "u1", "u2", "i4", "u4", "i8")},
    }
    write(
        path,
        data,
        types={"bits": "std::bitset<12>", "u1": "std::byte"},
        stored={"x": "Real32Trunc(20)", "q": "Real32Quant(12,-2,3)", "list": "SplitIndex32"},
        codecs={"m": "lz4", "i*": "none", "*": "zlib(level=1)"},
        descriptions={"x": "the x of it"},
        page_size=512,
        cluster_size=20_000,
        checksums=False,
    )
    t = liblade.rntuple.open(path)["t"]
    assert len(t.clusters) > 2 and t["x"].description == "the x of it"
    assert t["u1"].type == "std::byte" and t["bits"].kind == "bits"
    assert t["x"].columns[0].stored == "Real32Trunc" and t["list"].columns[0].bits == 32
    settings = {t.pages(t[f].first_column, 0)[0].setting // 100 for f in ("m._0._0", "i4", "x")}
    assert settings == {4, 0, 1}
    assert not t.pages(0, 0)[0].checksum and t.pages(0, 0)[0].decoded_size <= 512
    got = t.arrays()
    for name in ("x", "bits", "m", "half", "every", "i1", "u1", "u2", "i4", "u4", "i8"):
        assert got[name].dtype == data[name].dtype and np.array_equal(got[name], data[name]), name
    assert np.abs(got["q"] - data["q"]).max() <= 5 / 4095 / 2 * 1.01
    assert np.array_equal(got["rec.b"], np.zeros(1000)) and got["rec.b"].dtype == "<f8"
    with uproot.open(path) as f:
        theirs = f["t"].arrays()
        for name in ("x", "bits", "m", "half", "every", "i1", "u1", "u2", "i4", "u4", "i8"):
            assert np.array_equal(np.asarray(theirs[name]), data[name]), name
        assert ak.to_list(theirs["text"]) == data["text"].tolist()
        assert ak.to_list(theirs["list"]) == ak.to_list(data["list"])


@pytest.mark.parametrize("who", ["lade", "uproot"])
def test_append_and_fields_that_come_later(tmp_path, who):
    path, x = tmp_path / "t.root", np.arange(100, dtype="i4")
    if who == "lade":
        write(path, {"x": x, "v": ak.Array([[1]] * 100)})
    else:
        with uproot.recreate(path) as f:
            f.mkrntuple("t", {"x": x, "v": ak.Array([[1]] * 100)})
    with liblade.rntuple.append(path) as w:
        w.fill({"x": x + 100, "v": ak.Array([[2, 3]] * 100)})
        with pytest.raises(liblade.InputError, match="another"):
            liblade.rntuple.append(path)
        more = {"x": x, "v": ak.Array([[4]] * 100)}
        w.fill({**more, "late": x / 2, "o": ak.Array([None, 1] * 50)})
    got = read(path)
    assert np.asarray(got.x).tolist() == [*x, *(x + 100), *x]
    assert np.asarray(got.late).tolist() == [0] * 200 + (x / 2).tolist()
    assert ak.to_list(got.o) == [None] * 200 + [None, 1] * 50
    with uproot.open(path) as f:
        assert ak.to_list(f["t"].arrays()) == ak.to_list(got)


def test_a_torn_anchor_is_mended(tmp_path):
    path = tmp_path / "t.root"
    write(path, {"x": np.arange(10)})
    old = path.read_bytes()
    with liblade.rntuple.append(path) as w:
        w.fill({"x": np.arange(5)})
    new = bytearray(path.read_bytes())
    changed = [i for i in range(len(old)) if old[i] != new[i]]
    new[changed[-1]] ^= 0xFF
    path.write_bytes(new)
    with pytest.raises(liblade.ChecksumError):
        read(path)
    assert liblade.rntuple.repair(path, dry=True)
    assert liblade.rntuple.repair(path) and not liblade.rntuple.repair(path)
    assert len(read(path)) == 15


def test_what_does_not_fit_is_refused(tmp_path):
    path = tmp_path / "t.root"
    with pytest.raises(liblade.InputError, match="x has 3, y has 4"):
        write(path, {"x": np.zeros(3), "y": np.zeros(4)})
    with pytest.raises(liblade.InputError, match="z: elements of type <c8"):
        write(path, {"z": np.zeros(3, "c8")})
    with pytest.raises(liblade.InputError, match="fields with names"):
        write(path, np.zeros(3))
    with pytest.raises(liblade.InputError, match="bitset wants"):
        write(path, {"x": np.zeros(3)}, types={"x": "std::bitset<3>"})
    with pytest.raises(liblade.InputError, match="Nothing"):
        write(path, {"x": np.zeros(3)}, stored={"x": "Nothing"})
    with pytest.raises(liblade.InputError, match="its type is not known"):
        write(path, {"x": ak.Array([[], []])})
    with pytest.raises(liblade.InputError, match="x is std::vector.*was given double"):
        write(path, {"x": ak.Array([[1.0]])}, {"x": np.zeros(3)})
    with pytest.raises(liblade.InputError, match="x is std::array.*,3>; it was given std::array"):
        write(path, {"x": np.zeros((2, 3))}, {"x": np.zeros((2, 4))})
    with pytest.raises(liblade.Error, match="column|y"):
        write(path, {"x": np.zeros(3), "y": np.zeros(3)}, {"x": np.zeros(3)})
    with pytest.raises(liblade.InputError, match="x: .*element 0 is 9, want -2 to 3"):
        write(path, {"x": np.full(3, 9, "f4")}, stored={"x": "Real32Quant(8,-2,3)"})
    assert not path.exists() and not list(tmp_path.iterdir())
    write(path, {"x": np.arange(3)})
    with pytest.raises(liblade.FileError):
        liblade.rntuple.create(path, "t")
    with pytest.raises(ZeroDivisionError), liblade.rntuple.create(path, "t", replace=True) as w:
        w.fill({"x": np.arange(4)})
        1 / 0  # noqa: B018
    assert len(read(path)) == 3 and len(list(tmp_path.iterdir())) == 1
    with pytest.raises(ValueError, match="closed"):
        w.fill({"x": np.arange(4)})
