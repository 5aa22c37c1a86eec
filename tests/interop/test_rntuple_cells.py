# test_rntuple_cells.py: every type of column x codec x page size that liblade writes, read by
# JSROOT and by plain Python (uproot: test_rntuple_write.py); random schemas in both directions.
# docs/rntuple.md has a table of who reads what.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import subprocess

import numpy as np
import pytest
import rntuple_ctypes as lade
import rntuple_plain as plain
from test_rntuple_write import CODECS, LISTS, NOBODY, PLAIN, every_type, quantised

uproot = pytest.importorskip("uproot", reason="no wheel of uproot")
ak = pytest.importorskip("awkward", reason="no wheel of awkward")

HERE = pathlib.Path(__file__).parent
JSROOT = os.environ.get("LADE_JSROOT", "")
HAVE_JSROOT = (pathlib.Path(JSROOT) / "node_modules/jsroot").exists()
needs_jsroot = pytest.mark.skipif(not HAVE_JSROOT, reason="npm has no jsroot")
PAGES = [1, 100, 0]


def jsroot(jobs):
    """[(path, [field, ...]), ...]: for each file {field: values, or {"error": text}}."""
    return json.loads(subprocess.run(
        ["node", HERE / "rntuple.mjs"], check=True, capture_output=True,
        input=json.dumps([[str(path), list(fields)] for path, fields in jobs]).encode()).stdout)


def jsroot_misreads(stored, page_size):
    """What JSROOT 7.11 does not read, of any writer.  It goes on with the bits of a page's last
    byte in the next page; and 2^32 - 1 levels are 0 to it."""
    bits = stored == "Bit" or "Trunc" in stored or "Quant" in stored
    return stored in NOBODY or "Quant(32" in stored or bits and page_size in (1, 100)


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    folder, made = tmp_path_factory.mktemp("cells"), []
    for codec in CODECS:
        for page_size in PAGES:
            path = folder / f"{codec.split('(')[0]}-{page_size}.root"
            counts = [40, 3] if page_size == 1 else [704, 301]
            names, data, _ = every_type(path, codec, page_size, counts, np.random.default_rng(1))
            made.append((path, page_size, names, data))
    return made


def test_plain_python(cells):
    """All cells, those that nobody else reads among them."""
    seen = set()
    for path, _, _, _ in cells:
        with lade.Tuple(path) as t:
            for i, (field, stored, elements) in enumerate(plain.columns(path)):
                seen.add(stored)
                assert t.column(i).stored.decode() == stored
                if "Index" in stored: # the plain reader's begin again in each cluster
                    ends = np.diff(elements.astype("i8"), prepend=0)
                    ends[ends < 0] = elements[ends < 0]
                    assert np.array_equal(np.diff(t.read(field)), ends), (path.name, stored)
                else:
                    assert t.read(field).tobytes() == elements.tobytes(), (path.name, stored)
    assert len(seen) == len(plain.NAMES) - 1 # Switch: test_variants_and_bitsets


@needs_jsroot
def test_jsroot(cells):
    read = 0
    for (path, page_size, names, data), got in zip(
            cells, jsroot((path, [*names, *LISTS]) for path, _, names, _ in cells)):
        for name, stored in names.items():
            if jsroot_misreads(stored, page_size):
                continue
            values = got[name]
            assert isinstance(values, list), (path.name, stored, values)
            if stored == "Char":
                values = [ord(x) & 255 for x in values]
            want = quantised(stored, data[name]).astype("f8")
            same = np.allclose if "Quant" in stored else np.array_equal
            assert same(np.array(values, "f8"), want), (path.name, stored)
            read += 1
        for stored in LISTS:
            assert got[stored] == ak.to_list(data[stored]), (path.name, stored)
            read += 1
    assert read > 350


@pytest.mark.parametrize("codec, size", [("zstd(level=1)", 8_400_000), ("lz4", 4_200_000),
                                         ("zlib(level=1)", 4_200_000)])
def test_pages_of_several_blocks(tmp_path, codec, size):
    """A page of 34 MB is three blocks, one of 16.8 MB two."""
    path, x = tmp_path / "t.root", (np.arange(size) // 9 % 1000).astype("i4")
    with lade.Writer(path, codec=codec, page_size=1 << 30) as w:
        w.add({"name": "x", "type": f"std::array<std::int32_t,{size}>", "array_size": size},
              {"name": "_0", "type": "std::int32_t", "parent": 0, "stored": "Int32"})
        w.fill(1, {"x": x})
        w.commit()
        assert w.report.page_count == 1
    with lade.Tuple(path) as t:
        assert np.array_equal(t.read("x"), x)
    with uproot.open(path) as f:
        assert np.array_equal(np.asarray(f["t"].arrays()["x"][0]), x)


def test_variants_and_bitsets(tmp_path):
    """Switch, and bits that are packed over pages; JSROOT and uproot read both."""
    for codec in CODECS:
        path = tmp_path / f"{codec.split('(')[0]}.root"
        tags = np.array([1, 2, 0, 2, 1] * 9, "u1")
        x, y = np.arange((tags == 1).sum(), dtype="f4"), np.arange((tags == 2).sum(), dtype="i8")
        bits = np.arange(45 * 11) % 3 == 0
        with lade.Writer(path, codec=codec, page_size=66) as w:
            w.add({"name": "v", "type": "std::variant<float,std::int64_t>", "role": 3},
                  ("_0", "float", 0), ("_1", "std::int64_t", 0),
                  {"name": "bits", "type": "std::bitset<11>", "array_size": 11},
                  ("text", "std::string"))
            switch = np.zeros(45, "V12")
            index = np.where(tags == 1, np.cumsum(tags == 1) - 1, np.cumsum(tags == 2) - 1)
            for i in range(45):
                at = int(index[i]).to_bytes(8, "little") if tags[i] else bytes(8)
                switch[i] = np.frombuffer(at + bytes([tags[i], 0, 0, 0]), "V12")[0]
            w.fill(45, {"v": switch, "v._0": x, "v._1": y, "bits": bits,
                        "text": np.arange(46) // 2, w.column("text", 1): np.full(22, 65, "u1")})
            w.commit()
        want = [None if t == 0 else int(i) for t, i in zip(tags, index)]
        wide = [sum(1 << k for k in range(11) if bits[11 * i + k]) for i in range(45)]
        with lade.Tuple(path) as t:
            for field, stored, elements in plain.columns(path):
                if stored != "Char" and "Index" not in stored:
                    assert t.read(field).tobytes() == elements.tobytes(), stored
        with uproot.open(path) as f:
            got = f["t"].arrays()
            assert ak.to_list(got["v"]) == want
            assert np.array_equal(np.ravel(ak.to_numpy(got["bits"])), bits)
        if HAVE_JSROOT:
            got = jsroot([(path, ["v", "bits", "text"])])[0]
            assert got["v"] == want
            assert got["bits"] == wide
            assert got["text"] == ["A" * (i % 2) for i in range(45)]


# ---- random schemas ---------------------------------------------------------------------------

NUMBERS = {"i1": "std::int8_t", "u2": "std::uint16_t", "i4": "std::int32_t", "u4": "std::uint32_t",
           "i8": "std::int64_t", "f4": "float", "f8": "double", "?": "bool"}


def some_type(rng, depth=0):
    """A tree: ("num", dtype), ("text",), ("list", type), ("array", n, type), ("record", {...})."""
    kind = rng.choice(["num", "text", "list", "array", "record"],
                      p=[0.5, 0.1, 0.2, 0.1, 0.1] if depth < 4 else [0.8, 0.2, 0, 0, 0])
    if kind == "num":
        return kind, str(rng.choice(list(NUMBERS)))
    if kind == "text":
        return (kind,)
    if kind == "list":
        return kind, some_type(rng, depth + 1)
    if kind == "array":
        return kind, int(rng.integers(1, 4)), some_type(rng, depth + 1)
    return kind, {f"m{i}": some_type(rng, depth + 1) for i in range(rng.integers(1, 4))}


def some_elements(node, n, rng):
    """An Awkward layout of n elements."""
    if node[0] == "num":
        return ak.contents.NumpyArray(rng.integers(0, 100, n).astype(node[1]))
    if node[0] in ("text", "list"):
        sizes = rng.integers(0, 4, n) * rng.integers(0, 2, n)
        offsets = ak.index.Index64(np.concatenate([[0], np.cumsum(sizes)]))
        if node[0] == "list":
            items = some_elements(node[1], int(sizes.sum()), rng)
            return ak.contents.ListOffsetArray(offsets, items)
        chars = ak.contents.NumpyArray(rng.integers(65, 90, sizes.sum()).astype("u1"),
                                       parameters={"__array__": "char"})
        return ak.contents.ListOffsetArray(offsets, chars, parameters={"__array__": "string"})
    if node[0] == "array":
        return ak.contents.RegularArray(some_elements(node[2], node[1] * n, rng), node[1], n)
    return ak.contents.RecordArray([some_elements(part, n, rng) for part in node[1].values()],
                                   list(node[1]), n)


def type_name(node):
    if node[0] == "num":
        return NUMBERS[node[1]]
    if node[0] == "text":
        return "std::string"
    if node[0] == "list":
        return f"std::vector<{type_name(node[1])}>"
    return f"std::array<{type_name(node[2])},{node[1]}>" if node[0] == "array" else ""


def add_fields(table, name, node, parent=lade.TOP):
    at = len(table)
    table.append({"name": name, "type": type_name(node), "parent": parent})
    if node[0] == "list":
        table[at]["role"] = lade.COLLECTION
        add_fields(table, "_0", node[1], at)
    if node[0] == "array":
        table[at]["array_size"] = node[1]
        add_fields(table, "_0", node[2], at)
    if node[0] == "record":
        table[at]["role"] = 2
        for part, below in node[1].items():
            add_fields(table, part, below, at)


def add_fills(fills, w, path, layout):
    if layout.is_record:
        for name in layout.fields:
            add_fills(fills, w, f"{path}.{name}", layout.content(name))
    elif layout.is_regular:
        add_fills(fills, w, path + "._0", layout.content)
    elif layout.is_list:
        fills[w.column(path)] = np.asarray(layout.offsets)
        if layout.parameter("__array__") == "string":
            fills[w.column(path, 1)] = np.asarray(layout.content.data)
        else:
            add_fills(fills, w, path + "._0", layout.content)
    else:
        fills[w.column(path)] = np.asarray(layout.data)


def read_back(t, path, node):
    if node[0] == "num":
        return ak.contents.NumpyArray(t.read(path))
    if node[0] == "array":
        return ak.contents.RegularArray(read_back(t, path + "._0", node[2]), node[1], t.entries)
    if node[0] == "record":
        return ak.contents.RecordArray([read_back(t, f"{path}.{name}", part)
                                        for name, part in node[1].items()], list(node[1]))
    offsets = ak.index.Index64(t.read(path))
    if node[0] == "list":
        return ak.contents.ListOffsetArray(offsets, read_back(t, path + "._0", node[1]))
    chars = ak.contents.NumpyArray(t.read(path, position=1), parameters={"__array__": "char"})
    return ak.contents.ListOffsetArray(offsets, chars, parameters={"__array__": "string"})


def jsroot_reads(node, clusters, top=True):
    """JSROOT wants the checksum of a record's class, and bits that fill their pages; and offsets
    below other fields go on from the cluster before."""
    if node[0] == "record" or node == ("num", "?"):
        return False
    if node[0] in ("list", "text") and not top and clusters > 1:
        return False
    return all(jsroot_reads(part, clusters, False) for part in node[1:] if isinstance(part, tuple))


def write_random(path, nodes, parts, rng, **options):
    table = []
    for name, node in nodes.items():
        add_fields(table, name, node)
    with lade.Writer(path, page_size=int(rng.integers(1, 400)), **options) as w:
        w.add(*table)
        for part in parts:
            fills = {}
            for name, layout in part.items():
                add_fills(fills, w, name, layout)
            w.fill(len(next(iter(part.values()))), fills)
        w.commit()
        return w.report.cluster_count


def test_random_schemas(tmp_path):
    """liblade writes, and liblade, uproot and JSROOT read; uproot writes, and liblade reads."""
    jobs, wanted = [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        nodes = {f"f{i}": some_type(rng) for i in range(rng.integers(1, 6))}
        parts = [{name: some_elements(node, n, rng) for name, node in nodes.items()}
                 for n in rng.integers(1, 60, 2).tolist()]
        ours, theirs = tmp_path / f"{seed}.root", tmp_path / f"u{seed}.root"
        mine, size = (parts[:1], 0) if seed % 2 else (parts, int(rng.integers(100, 5000)))
        clusters = write_random(ours, nodes, mine, rng, codec=CODECS[seed % 5], cluster_size=size)
        with uproot.recreate(theirs) as f:
            out = f.mkrntuple("t", {name: ak.Array(part) for name, part in parts[0].items()})
            out.extend({name: ak.Array(part) for name, part in parts[1].items()})
        for path, own in (ours, mine), (theirs, parts):
            want = {name: sum((ak.to_list(part[name]) for part in own), []) for name in nodes}
            with lade.Tuple(path) as t:
                for name, node in nodes.items():
                    got = ak.to_list(read_back(t, name, node))
                    assert got == want[name], (path.name, node)
            with uproot.open(path) as f:
                got = f["t"].arrays()
                for name, node in nodes.items():
                    assert ak.to_list(got[name]) == want[name], (path.name, node)
            if path == ours:
                jobs.append((path, [n for n in nodes if jsroot_reads(nodes[n], clusters)]))
                wanted.append(want)
    read = 0
    for (path, names), got, want in zip(jobs, jsroot(jobs) if HAVE_JSROOT else [], wanted):
        for name in names:
            assert got[name] == want[name], (path.name, name)
            read += 1
    assert read > 30 or not HAVE_JSROOT
