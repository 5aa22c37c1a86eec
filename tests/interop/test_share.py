# test_share.py: columns that are published and opened again, against pyarrow: all types, slices,
# copied and shared.
# SPDX-License-Identifier: Apache-2.0
import datetime
import decimal
import random

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
