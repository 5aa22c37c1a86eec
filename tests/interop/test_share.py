# test_share.py: columns that are published and opened again, against pyarrow: all types, slices,
# copied and shared.
# SPDX-License-Identifier: Apache-2.0
import datetime
import decimal
import os
import pathlib
import random
import subprocess

import pytest

pa = pytest.importorskip("pyarrow")
import share_ctypes as kit  # noqa: E402

ROWS = 3000  # above 64 KiB with most types: a block, not a message


def numbers(rng, count, nulls):
    return [None if nulls and rng.random() < 0.2 else rng.randrange(0, 100) for _ in range(count)]


def text(rng):
    return "".join(rng.choice("aé漢😀") for _ in range(rng.choice((0, 1, 3, 11, 12, 13, 40))))


FLAT = [pa.null(), pa.bool_(), pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(),
        pa.uint32(), pa.int64(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(),
        pa.decimal128(12, 2), pa.decimal256(50, 4), pa.date32(), pa.date64(), pa.time32("s"),
        pa.time32("ms"), pa.time64("us"), pa.time64("ns"), pa.timestamp("s"),
        pa.timestamp("ms", "UTC"), pa.timestamp("us", "Europe/Berlin"), pa.timestamp("ns"),
        pa.duration("s"), pa.duration("ns"), pa.month_day_nano_interval(),
        pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(),
        pa.binary_view(), pa.binary(5), pa.binary(0)]


def flat(rng, kind, count, nulls):
    def value():
        n = rng.randrange(0, 10**6)
        if pa.types.is_boolean(kind):
            return n % 2 == 0
        if pa.types.is_decimal(kind):
            return decimal.Decimal(n - 500000).scaleb(-2)
        if pa.types.is_date(kind):
            return datetime.date(2000, 1, 1) + datetime.timedelta(n % 5000)
        if pa.types.is_time(kind):
            return datetime.time(n % 24, n % 60, n % 59)
        if pa.types.is_floating(kind):
            return float(n % 1000) / 4
        if pa.types.is_fixed_size_binary(kind):
            return bytes(rng.randrange(256) for _ in range(kind.byte_width))
        if pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view():
            return text(rng)
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or kind == pa.binary_view():
            return text(rng).encode() + b"\xff"
        if kind == pa.month_day_nano_interval():
            return pa.MonthDayNano([n % 12, n % 30, n])
        return n % 100
    if pa.types.is_null(kind):
        return pa.nulls(count)
    return pa.array([None if nulls and rng.random() < 0.2 else value() for _ in range(count)], kind)


def nested(rng, depth, count, nulls):
    """An array of any type, with what is below it."""
    def below(n):
        return nested(rng, depth - 1, n, nulls) if depth > 1 else flat(rng, rng.choice(FLAT), n,
                                                                         nulls)

    def mask(n):
        return pa.array([nulls and rng.random() < 0.2 for _ in range(n)], pa.bool_())
    kind = rng.choice(["list", "large_list", "list_view", "large_list_view", "fixed", "struct",
                       "map", "dictionary", "sparse", "dense", "runs", "flat"])
    sizes = [rng.choice((0, 1, 2, 5)) for _ in range(count)]
    offsets = [sum(sizes[:i]) for i in range(count + 1)] if count < 200 else None
    if offsets is None:
        offsets = [0]
        for size in sizes:
            offsets.append(offsets[-1] + size)
    if kind in ("list", "large_list"):
        cls, index = ((pa.ListArray, pa.int32()) if kind == "list"
                      else (pa.LargeListArray, pa.int64()))
        return cls.from_arrays(pa.array(offsets, index), below(offsets[-1]), mask=mask(count))
    if kind in ("list_view", "large_list_view"):
        cls, index = ((pa.ListViewArray, pa.int32()) if kind == "list_view"
                      else (pa.LargeListViewArray, pa.int64()))
        order = list(range(count))
        rng.shuffle(order)
        return cls.from_arrays(pa.array([offsets[i] for i in order], index),
                               pa.array([sizes[i] for i in order], index), below(offsets[-1]),
                               mask=mask(count))
    if kind == "fixed":
        return pa.FixedSizeListArray.from_arrays(below(3 * count), 3, mask=mask(count))
    if kind == "struct":
        return pa.StructArray.from_arrays([below(count), below(count)], ["x", "y"],
                                          mask=mask(count))
    if kind == "map":
        return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()),
                                       flat(rng, pa.string(), offsets[-1], False),
                                       below(offsets[-1]))
    if kind == "dictionary":
        index = rng.choice((pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.uint32(), pa.int64()))
        return pa.DictionaryArray.from_arrays(pa.array(numbers(rng, count, nulls), index),
                                              flat(rng, pa.string(), 100, False))
    ids = [rng.choice((0, 1)) for _ in range(count)]
    if kind == "sparse":
        return pa.UnionArray.from_sparse(pa.array(ids, pa.int8()), [below(count), below(count)])
    if kind == "dense":
        at, seen = [], [0, 0]
        for i in ids:
            at.append(seen[i])
            seen[i] += 1
        return pa.UnionArray.from_dense(pa.array(ids, pa.int8()), pa.array(at, pa.int32()),
                                        [below(seen[0]), below(seen[1])])
    if kind == "runs":
        ends, total = [], 0
        while total < count:
            total = min(count, total + rng.randrange(1, 9))
            ends.append(total)
        return pa.RunEndEncodedArray.from_arrays(
            pa.array(ends, rng.choice((pa.int32(), pa.int64()))),
            flat(rng, rng.choice(FLAT[1:]), len(ends), nulls))
    return flat(rng, rng.choice(FLAT), count, nulls)


@pytest.fixture(scope="module")
def share(tmp_path_factory):
    with kit.Broker(tmp_path_factory.mktemp("share")) as broker, broker.connect() as one:
        yield broker, one


def same(got, want):
    got.validate(full=True)
    assert got.type == want.type
    assert got.equals(want) or got.to_pylist() == want.to_pylist()


def slices(array):
    count = len(array)
    for off, size in ((0, count), (count // 3 + 1, count // 2), (count - 1, 1), (count, 0)):
        yield array.slice(off, size)


def round_trip(share, array):
    broker, one = share
    for piece in slices(array):
        for copy in (kit.IF_NEEDED, kit.ALWAYS):
            one.publish("x", [piece], copy=copy)
            same(one.get("x")[0], piece)
    # What was opened is shared, and so are slices of it.
    one.publish("x", [array])
    with broker.connect() as other:
        opened = other.get("x")[0]
        for piece in slices(opened):
            out = other.publish("y", [piece])
            same(one.get("y")[0], piece)
            assert out.shared == 0 or out.copied < 64, out.why
            out = other.publish("y", [piece], copy=kit.ALWAYS)
            same(one.get("y")[0], piece)


@pytest.mark.parametrize("kind", FLAT, ids=str)
def test_a_flat_type(share, kind):
    for nulls in (False, True):
        round_trip(share, flat(random.Random(str(kind)), kind, ROWS, nulls))


@pytest.mark.parametrize("seed", range(60))
def test_random_types(share, seed):
    rng = random.Random(seed)
    round_trip(share, nested(rng, rng.choice((1, 2, 3)), rng.choice((7, 300, ROWS)), seed % 3 > 0))


def test_a_table_of_batches(share):
    _, one = share
    rng = random.Random(5)
    batches = [pa.record_batch([flat(rng, pa.int64(), n, True), flat(rng, pa.string(), n, True)],
                               names=["a", "b"]) for n in (4000, 0, 1, 777)]
    schema = batches[0].schema.with_metadata({b"of": b"the table", b"": b"\x00\xff"})
    batches = [b.replace_schema_metadata(schema.metadata) for b in batches]
    one.publish("table", batches)
    got = one.get("table", table=True)
    assert got[0].schema.equals(schema, check_metadata=True)
    assert pa.Table.from_batches(got) == pa.Table.from_batches(batches)
    assert one.publish("none", [], schema).copied == 0
    assert one.get("none", table=True) == []


def test_a_slice_shares_and_a_copy_is_compact(share):
    broker, one = share
    column = pa.array(range(100000), pa.int64())
    assert one.publish("whole", [column]).copied == 800000
    with broker.connect() as other:
        part = other.get("whole")[0].slice(70000, 20000)
        out = other.publish("part", [part], copy=kit.NEVER)
        assert (out.copied, out.why) == (0, b"")
        assert one.get("part")[0].offset == 70000
        out = other.publish("part", [part], copy=kit.ALWAYS)
        assert (out.shared, out.copied) == (0, 160000)
        with pytest.raises(RuntimeError, match="the column: buffer 1 is not in shared memory"):
            other.publish("part", [column], copy=kit.NEVER)


def test_two_openers_see_the_same_memory(share):
    broker, one = share
    one.publish("memory", [pa.array(range(50000), pa.int64())])
    with broker.connect() as other:
        read, written = one.get("memory")[0], other.get("memory", writable=True)[0]
        import ctypes
        address = written.buffers()[1].address
        ctypes.c_int64.from_address(address).value = 99  # a private copy of the page
        assert written[0].as_py() == 99 and read[0].as_py() == 0
        assert one.get("memory")[0].buffers()[1].address == read.buffers()[1].address


# ---- Arrow's files, and nanoarrow ------------------------------------------------------------

PUT_GET = [("arrow", pa.ipc.new_file), ("arrows", pa.ipc.new_stream)]


def command(broker, *arguments):
    lade = os.path.join(os.path.dirname(os.environ["LADE_LIBRARY"]), "lade")
    return subprocess.run([lade, "share", *arguments, f"--socket={broker.path}"],
                          capture_output=True, text=True)


def done(result):
    assert result.returncode == 0, result.stderr


def read_back(path):
    with pa.OSFile(os.fspath(path), "rb") as f:
        reader = pa.ipc.open_stream(f) if path.suffix == ".arrows" else pa.ipc.open_file(f)
        return reader.read_all()


def put_and_get(share, folder, path, want, full=True):
    """A file is published, opened, written as both kinds of file, and read by pyarrow."""
    broker, one = share
    done(command(broker, "put", "file", str(path)))
    got = one.get("file", table=True)
    for batch in got:
        batch.validate(full=full)
    again = pa.Table.from_batches(got, want.schema if not got else None)
    assert again.schema.equals(want.schema, check_metadata=True)
    assert again.equals(want) or again.to_pydict() == want.to_pydict()
    for end, _ in PUT_GET:
        back = folder / f"back.{end}"
        back.unlink(missing_ok=True)
        result = command(broker, "get", "file", str(back))
        if end == "arrow" and "different dictionaries" in result.stderr:
            continue  # which a file cannot have
        done(result)
        table = read_back(back)
        table.validate(full=full)
        assert table.schema.equals(want.schema, check_metadata=True)
        assert table.equals(want) or table.to_pydict() == want.to_pydict()


@pytest.mark.parametrize("seed", range(24))
def test_arrow_files(share, tmp_path, seed):
    rng = random.Random(1000 + seed)
    end, make = PUT_GET[seed % 2]
    kinds = rng.sample(FLAT, 3)
    deep = nested(rng, rng.choice((1, 2, 3)), rng.choice((7, 300)), seed % 3 > 0)
    rows = len(deep)
    columns = [flat(rng, kind, rows, True) for kind in kinds] + [deep]
    whole = pa.record_batch(columns, names=["a", "b", "a", "deep"])
    whole = whole.replace_schema_metadata({"of": "the table", "": "\0\1"})
    batches = [whole, whole.slice(rows // 3, rows // 2), whole.slice(rows, 0)]
    path = tmp_path / f"x.{end}"
    packed = (None, "lz4", "zstd")[seed // 2 % 3]
    with make(path, whole.schema, options=pa.ipc.IpcWriteOptions(compression=packed)) as f:
        for batch in batches:
            f.write_batch(batch)
    put_and_get(share, tmp_path, path, read_back(path))


def test_deltas_and_replaced_dictionaries(share, tmp_path):
    path = tmp_path / "x.arrows"
    words = ["a", None, "ccc", "dd", "é"]
    for values in (pa.array(words), pa.array(words, pa.large_binary()),
                   pa.array([1, 2, None, 4, 5], pa.int16()),
                   pa.array([True, False, None, True, True])):
        parts = [pa.DictionaryArray.from_arrays(pa.array([n - 1, 0, None], pa.int8()),
                                                values.slice(0, n)) for n in (2, 4, 5)]
        parts.append(pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()),
                                                    values.slice(3, 2)))
        batches = [pa.record_batch([part], names=["x"]) for part in parts]
        options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
        with pa.ipc.new_stream(path, batches[0].schema, options=options) as f:
            for batch in batches:
                f.write_batch(batch)
        put_and_get(share, tmp_path, path, pa.Table.from_batches(batches))


def test_arrow_files_that_are_cut(share, tmp_path):
    broker, one = share
    column = pa.array(["a", None, "long enough"] * 3)
    for end, make in PUT_GET:
        for packed in (None, "zstd"):
            path = tmp_path / f"x.{end}"
            options = pa.ipc.IpcWriteOptions(compression=packed)
            batch = pa.record_batch([column, column.dictionary_encode()], names=["s", "d"])
            with make(path, batch.schema, options=options) as f:
                f.write_batch(batch)
            whole = path.read_bytes()
            source = kit.Memory
            for size in range(len(whole)):
                with source(whole[:size]) as cut:
                    try:
                        one.publish_ipc("cut", cut)
                    except RuntimeError as problem:
                        assert str(problem)
                    else:
                        assert end == "arrows"
                        assert len(one.get("cut", table=True)) < 2


def test_arrow_files_with_changed_bytes(share, tmp_path):
    _, one = share
    rng = random.Random(3)
    deep = pa.record_batch([nested(rng, 2, 20, True), flat(rng, pa.string_view(), 20, True)],
                           names=["x", "y"])
    for end, make in PUT_GET:
        path = tmp_path / f"x.{end}"
        with make(path, deep.schema) as f:
            f.write_batch(deep)
        whole = path.read_bytes()
        for _ in range(1500):
            bad = bytearray(whole)
            for _ in range(rng.choice((1, 1, 3))):
                bad[rng.randrange(len(bad))] = rng.choice((0, 1, 127, 128, 255))
            with kit.Memory(bytes(bad)) as source:
                try:
                    one.publish_ipc("bad", source)
                except RuntimeError as problem:
                    assert str(problem)
                else:
                    for batch in one.get("bad", table=True):
                        assert batch.num_rows < 1 << 57


def test_arrow_files_that_are_refused(share, tmp_path):
    broker, _ = share
    path = tmp_path / "x.feather"
    path.write_bytes(b"FEA1" + bytes(40))
    assert "Feather file of version 1" in command(broker, "put", "x", str(path)).stderr
    path.write_bytes(b"")
    assert "no schema" in command(broker, "put", "x", str(path)).stderr


def test_the_integration_files(share, tmp_path):
    """Arrow's own, where LADE_ARROW_TESTING names a checkout of apache/arrow-testing."""
    folder = os.environ.get("LADE_ARROW_TESTING")
    if not folder:
        pytest.skip("LADE_ARROW_TESTING names no folder")
    broker, _ = share
    ran, big = 0, 0
    root = pathlib.Path(folder) / "data/arrow-ipc-stream/integration"
    for path in sorted([*root.rglob("*.arrow_file"), *root.rglob("*.stream")]):
        end = "arrow" if path.suffix == ".arrow_file" else "arrows"
        named = tmp_path / f"x.{end}"
        named.write_bytes(path.read_bytes())
        if "bigendian" in str(path):
            assert "big-endian" in command(broker, "put", "x", str(named)).stderr
            big += 1
            continue
        try:
            want = read_back(named)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
            print(f"pyarrow does not read {path}: {problem}")
            continue
        try:
            put_and_get(share, tmp_path, named, want, full=False)  # dates of odd milliseconds
        except Exception as problem:
            raise AssertionError(str(path)) from problem
        ran += 1
    print(f"{ran} integration files are the same, {big} big-endian ones were refused")
    assert ran


def test_nanoarrow(share):
    """Arrays of nanoarrow go in, and come out to it."""
    na = pytest.importorskip("nanoarrow")
    _, one = share
    for kind in FLAT:
        if kind in (pa.string_view(), pa.binary_view(), pa.float16()):
            continue
        array = flat(random.Random(str(kind)), kind, 200, True).slice(7, 150)
        other = na.c_array(array)
        one.publish("nano", [pa.array(other)])
        got = na.Array(one.get("nano")[0])
        assert na.c_array(got).length == 150
        assert pa.array(got).equals(array), kind
