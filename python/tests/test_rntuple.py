"""liblade.rntuple: ROOT's own files beside what uproot reads; entries, names, places, errors.

SPDX-License-Identifier: Apache-2.0
"""

import http.server
import pathlib
import threading

import numpy as np
import pytest

import liblade
import liblade.rntuple

ak = pytest.importorskip("awkward", reason="no wheel of awkward")
uproot = pytest.importorskip("uproot", reason="no wheel of uproot")
pa = pytest.importorskip("pyarrow", reason="no wheel of pyarrow")

GOLDEN = pathlib.Path(__file__).parents[2] / "tests/golden/rntuple"
FILES = sorted(GOLDEN.glob("*.root"))
STL = GOLDEN / "test_stl_containers_rntuple_v1-0-0-0.root"
INTS = GOLDEN / "test_index_multicluster_rntuple_v1-0-0-0.root"
LATE = GOLDEN / "test_extension_columns_rntuple_v1-0-0-0.root"


def only(path):
    file = liblade.rntuple.open(path)
    (name,) = file
    return file[name]


def plain(value):
    """Tuples and records of '_0', '_1' alike, as Arrow has no tuples."""
    if isinstance(value, tuple):
        return {f"_{i}": plain(v) for i, v in enumerate(value)}
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list) else value


def test_there_are_files():
    assert len(FILES) == 8


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem[:24])
def test_files_of_root_read_as_uproot_reads_them(path):
    """Values and types of Awkward Arrays; Arrow has the same values."""
    with uproot.open(path) as f:
        t = only(path)
        want = f[t.name].arrays()
        got = t.arrays(library="ak")
        assert str(got.type) == str(want.type)
        assert ak.to_list(got) == ak.to_list(want)
        batch = pa.record_batch(t.arrays(library="arrow"))
        batch.validate(full=True)
        assert batch.to_pylist() == plain(ak.to_list(want))
        n = t.num_entries
        for first, stop in [(0, 0), (n, n), (1, n), (n // 3, n // 2), (n - 1, n)]:
            got = t.arrays(entries=(first, stop), library="ak")
            assert ak.to_list(got) == ak.to_list(want[first:stop])
            got = pa.record_batch(t.arrays(entries=(first, stop), library="arrow"))
            got.validate(full=True)
            assert got.to_pylist() == plain(ak.to_list(want[first:stop]))


def test_keys_shapes_and_types_of_numpy():
    t = only(STL)
    d = t.arrays(["array_lv", "array_float", "string", "vector_vector_int32", "variant*"])
    shapes = {key: (array.dtype.str, array.shape) for key, array in d.items()}
    assert shapes == {
        "string.offsets": ("<i8", (6,)),
        "string.bytes": ("|u1", (19,)),
        "array_float": ("<f4", (5, 3)),
        "vector_vector_int32.offsets": ("<i8", (6,)),
        "vector_vector_int32._0.offsets": ("<i8", (16,)),
        "vector_vector_int32._0._0": ("<i4", (15,)),
        "variant_int32_string.tag": ("|i1", (5,)),
        "variant_int32_string.index": ("<i8", (5,)),
        "variant_int32_string._0": ("<i4", (3,)),
        "variant_int32_string._1.offsets": ("<i8", (3,)),
        "variant_int32_string._1.bytes": ("|u1", (8,)),
        **{f"array_lv._0.{x}": ("<f4", (5, 3)) for x in ("pt", "eta", "phi", "mass")},
    }
    assert d["string.bytes"].tobytes() == b"onetwothreefourfive"
    assert d["array_lv._0.pt"].tolist() == [[i] * 3 for i in range(1, 6)]
    assert d["variant_int32_string.tag"].tolist() == [1, 2, 2, 1, 1]
    assert d["variant_int32_string.index"].tolist() == [0, 0, 1, 1, 2]


def test_the_tree_of_fields():
    t = only(STL)
    assert len(t) == 13 and t.num_entries == 5 and "lorentz_vector" in t
    assert list(t)[:2] == ["string", "vector_int32"]
    assert [child.name for child in t["lorentz_vector"]] == ["pt", "eta", "phi", "mass"]
    field = t["vector_tuple_int32_string"]
    assert field.type == "std::vector<std::tuple<std::int32_t,std::string>>"
    assert field.kind == "list" and field["_0"].kind == "record"
    assert field["_0"]["_1"].path == "vector_tuple_int32_string._0._1"
    assert field["_0"]["_1"].columns[1].dtype == "|u1"
    assert "  _0: std::int32_t" in str(t) and "5 entries" in repr(t)
    assert t.clusters == [range(5)] and t.info.writer.startswith("ROOT v6")
    assert sum(p.element_count for p in t.pages(0, 0)) == 5
    with pytest.raises(KeyError, match="no field 'x'"):
        t["x"]


def test_names_and_patterns():
    t = only(STL)
    keys = lambda *names: list(t.arrays(list(names)))
    assert keys("lorentz_vector.p*") == ["lorentz_vector.pt", "lorentz_vector.phi"]
    # Collections are above what is read; their '_0' need not be written.
    assert keys("vector_tuple_int32_string._0") == keys("vector_tuple_int32_string")
    assert list(t.arrays("array_lv.*.pt")) == ["array_lv._0.pt"]
    got = t.arrays(["lorentz_vector.pt", "string"], library="ak")
    assert got.fields == ["string", "lorentz_vector"] and got.lorentz_vector.fields == ["pt"]
    with pytest.raises(liblade.InputError, match="no field is named 'nothing'"):
        t.arrays(["nothing"])


def test_out_is_written_and_given_back():
    t = only(STL)
    want = t.arrays()
    out = {key: np.empty_like(array) for key, array in want.items()}
    blocks = liblade._lade._memory_stats()[2]
    got = t.arrays(out=out)
    assert all(got[key] is out[key] for key in out) and len(got) == len(want)
    assert all(np.array_equal(got[key], want[key]) for key in want)
    one = np.empty((5, 3), "f4")
    assert t.arrays(out={"array_float": one})["array_float"] is one and one[4, 2] == 5
    some = t.arrays(["array_float", "string"], out={"array_float": one})
    assert some["array_float"] is one and len(some) == 3
    index = np.empty(5, "i8")
    t.arrays(out={"variant_int32_string.index": index})
    assert index.tolist() == [0, 0, 1, 1, 2]
    assert liblade._lade._memory_stats()[2] == blocks
    for bad, why in [
        (np.empty((5, 3), "f8"), "15 elements of <f8, 15 of <f4"),
        (np.empty(14, "f4"), "14 elements of <f4, 15 of <f4"),
        (np.empty((5, 6), "f4")[:, ::2], "gaps"),
        (np.broadcast_to(np.float32(0), (5, 3)), "read-only|gaps"),
    ]:
        with pytest.raises(ValueError, match=why):
            t.arrays(out={"array_float": bad})
    with pytest.raises(liblade.InputError, match="no column has the key 'string'"):
        t.arrays(out={"string": one, "string.bytes": one})


@pytest.mark.parametrize("prefetch", [0, 1, 3])
def test_steps(prefetch):
    t = only(INTS)
    want = t.arrays(library="ak")
    assert [(c.start, c.stop) for c in t.clusters] == [(0, 86), (86, 172), (172, 200)]
    for step, count in [(None, 3), (7, 29), (1000, 1)]:
        parts = list(t.iterate(step=step, prefetch=prefetch, library="ak"))
        assert len(parts) == count == len(t.steps(step))
        assert ak.array_equal(ak.concatenate(parts), want)
    some = list(t.iterate(entries=slice(50, 150), prefetch=prefetch))
    assert [len(d["int_vector.offsets"]) for d in some] == [37, 65]
    early = t.iterate(step=1, prefetch=prefetch)
    assert next(early)["int_vector._0"].tolist() == [0, 0]
    early.close()
    with pytest.raises(liblade.InputError, match="step is 0"):
        t.steps(0)


def test_explain_reads_nothing():
    t = only(LATE)
    report = t.explain()
    want = t.arrays()
    assert report.written_size == sum(a.nbytes for a in want.values())
    assert report.page_count == t.info.page_count and report.device_memory == 0
    assert t.explain(["int_field"], (0, 10)).written_size == 40


def test_bytes_functions_and_files():
    data = STL.read_bytes()
    want = only(STL).arrays(["string"])
    calls = []

    def give(ranges):
        calls.append(ranges)
        return [data[off : off + size] for off, size in ranges]

    for source in (data, np.frombuffer(data, "u1"), memoryview(data), (give, len(data)), str(STL)):
        got = only(source).arrays(["string"])
        assert all(np.array_equal(got[key], want[key]) for key in want)
    assert calls and all(off + size <= len(data) for call in calls for off, size in call)

    def fail(ranges):
        raise LookupError("the tape is gone")

    with pytest.raises(LookupError, match="the tape is gone"):
        liblade.rntuple.open((fail, len(data)))
    with pytest.raises(liblade.FileError, match="gave 3 bytes of"):
        liblade.rntuple.open((lambda ranges: [b"abc" for _ in ranges], len(data)))
    with pytest.raises(ValueError, match="0 buffers for"):
        liblade.rntuple.open((lambda ranges: [], len(data)))
    with pytest.raises(liblade.InputError, match="headers are for URLs"):
        liblade.rntuple.open(data, headers=["A: b"])


class _Ranges(http.server.SimpleHTTPRequestHandler):
    """One file, with ranges; asks for a header."""

    def do_GET(self):
        data = STL.read_bytes()
        if self.headers.get("Key") != "secret":
            self.send_error(403)
            return
        span = self.headers.get("Range")
        first, last = (span.removeprefix("bytes=") if span else f"0-{len(data)}").split("-")
        first = int(first) if first else max(len(data) - int(last), 0)
        part = data[first : int(last) + 1 if span and not span.startswith("bytes=-") else None]
        self.send_response(206 if span else 200)
        self.send_header("Content-Length", str(len(part)))
        if span:
            self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(data)}")
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, *_):
        pass


def test_a_url_and_its_headers():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Ranges)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/x/data.root"
    try:
        file = liblade.rntuple.open(url, headers=["Key: secret"])
        got = next(iter(file.values())).arrays(["string"])
        assert got["string.bytes"].tobytes() == b"onetwothreefourfive"
        with pytest.raises(liblade.FileError, match="403"):
            liblade.rntuple.open(url)
    except liblade.UnsupportedError as e:
        pytest.skip(str(e))
    finally:
        server.shutdown()
        server.server_close()


def test_errors_have_the_messages_of_the_library(tmp_path):
    with pytest.raises(liblade.Error, match="absent.root"):
        liblade.rntuple.open(tmp_path / "absent.root")
    with pytest.raises(liblade.CorruptError):
        liblade.rntuple.open(b"Root" + bytes(500))
    data = bytearray((GOLDEN / "test_bit_rntuple_v1-0-0-0.root").read_bytes())
    file = liblade.rntuple.open(bytes(data))
    with pytest.raises(KeyError, match="no RNTuple 'x'; it has ntuple"):
        file["x"]
    t = file["ntuple"]
    page = t.pages(0, 0)[0]
    data[page.off] ^= 1
    bad = only(bytes(data))
    with pytest.raises(liblade.ChecksumError, match=f"one_bit.* at byte {page.off}.*XXH3"):
        bad.arrays()
    assert bad.arrays(verify=False)["one_bit"][0] != t.arrays()["one_bit"][0]
    with pytest.raises(liblade.InputError, match="entries 5 to 11, there are 10"):
        t.arrays(entries=(5, 11))
    with pytest.raises(TypeError, match="entries"):
        t.arrays(entries=slice(0, 10, 2))
    with pytest.raises(liblade.InputError, match="library is 'x'"):
        t.arrays(library="x")
    with pytest.raises(liblade.InputError, match="numpy are on the host"):
        t.arrays(place="cuda")
    with pytest.raises(liblade.InputError, match="place is 'moon'"):
        t.arrays(place="moon")
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file["ntuple"]
    assert t.arrays()["one_bit"].tolist() == [1, 0, 0, 1, 0, 0, 1, 0, 0, 1]


def test_threads_share_an_rntuple():
    t = only(STL)
    want = ak.to_list(t.arrays(library="ak"))
    bad = []

    def work():
        for _ in range(10):
            if ak.to_list(t.arrays(library="ak")) != want:
                bad.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not bad


def test_the_columns_outlive_the_file_and_arrows_structs():
    t = only(STL)
    data = t.arrays(library="arrow")
    capsules = data.__arrow_c_array__()
    del capsules, t
    batch = pa.record_batch(data)
    column = batch.column("vector_string")
    del data, batch
    assert column.to_pylist()[:2] == [["one"], ["one", "two"]]
    assert pa.record_batch(only(INTS).arrays(library="arrow")).num_rows == 200
