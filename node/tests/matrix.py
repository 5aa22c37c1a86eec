"""matrix.py publish|check SOCKET FOLDER: columns of all Arrow types, for matrix.test.js.

publish: each column as a table "py/NAME", and as an Arrow stream in FOLDER/NAME.arrows, which
apache-arrow reads, too.  check: what JavaScript has published as "js/WAY/NAME" must be equal.

SPDX-License-Identifier: Apache-2.0
"""

import datetime
import decimal
import json
import pathlib
import sys

import pyarrow as pa

import liblade.share

ROWS = 19


def numbers(kind):
    return pa.array([None if i % 4 == 1 else i % 5 for i in range(ROWS)]).cast(kind)


def times(kind):
    width = pa.int32() if kind.bit_width == 32 else pa.int64()
    return pa.array([None if i % 4 == 1 else i * 1001 for i in range(ROWS)], width).cast(kind)


def texts(kind):
    values = [None if i % 4 == 1 else "é" * (i % 7) + f" number {i}" for i in range(ROWS)]
    return pa.array(values, pa.string()).cast(kind)


def of(kind, value):
    return pa.array([None if i % 4 == 1 else value(i) for i in range(ROWS)], kind)


def columns():
    """Name, array: with nulls."""
    for kind in ("int8 uint8 int16 uint16 int32 uint32 int64 uint64 float32 float64 bool_").split():
        yield kind, numbers(getattr(pa, kind)())
    yield "float16", numbers(pa.float32()).cast(pa.float16())
    yield "null", pa.nulls(ROWS)
    for bits, kind in ((32, pa.decimal32), (64, pa.decimal64), (128, pa.decimal128)):
        yield f"decimal{bits}", of(kind(9, 2), lambda i: decimal.Decimal(i * 12345 - 70000) / 100)
    yield "decimal256", of(pa.decimal256(60, 3), lambda i: decimal.Decimal(10**50 + i))
    yield "date32", times(pa.date32())
    yield "date64", of(pa.date64(), lambda i: datetime.date(2024, 1, 1 + i))
    for unit in ("s", "ms", "us", "ns"):
        yield f"time_{unit}", times(pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit))
        yield f"timestamp_{unit}", times(pa.timestamp(unit))
        yield f"duration_{unit}", times(pa.duration(unit))
    yield "timestamp_zone", times(pa.timestamp("us", "+05:30"))
    yield "timestamp_paris", times(pa.timestamp("ms", "Europe/Paris"))
    yield "interval", of(pa.month_day_nano_interval(), lambda i: (i, -i, 10**12 + i))
    for name in ("string", "large_string", "binary", "large_binary"):
        yield name, texts(getattr(pa, name)())
    yield "string_view", texts(pa.string_view())
    yield "binary_view", of(pa.binary_view(), lambda i: b"\xff" * i)
    yield "fixed_binary", of(pa.binary(3), lambda i: bytes([i, 0, 255]))
    lists = lambda i: [None if j == 2 else i * j for j in range(i % 4)]
    yield "list", of(pa.list_(pa.int32()), lists)
    yield "large_list", of(pa.large_list(pa.int64()), lists)
    yield "list_view", of(pa.list_view(pa.int32()), lists)
    yield "fixed_list", of(pa.list_(pa.int16(), 2), lambda i: [i, None])
    yield "list_of_lists", of(pa.list_(pa.list_(pa.string())), lambda i: [["a" * i], None, []])
    pair = pa.struct({"x": pa.int32(), "s": pa.string()})
    yield "struct", of(pair, lambda i: {"x": i, "s": None})
    entries = lambda i: [(f"k{j}", j) for j in range(i % 3)]
    yield "map", of(pa.map_(pa.string(), pa.int32()), entries)
    yield "dictionary", of(pa.string(), lambda i: "abc"[i % 3]).dictionary_encode()
    yield "dictionary_of_int8", pa.DictionaryArray.from_arrays(
        numbers(pa.int8()), pa.array(["v", None, "w", "x", "y"])
    )
    ids = pa.array([i % 2 for i in range(ROWS)], pa.int8())
    parts = [numbers(pa.int32()), texts(pa.string())]
    yield "sparse_union", pa.UnionArray.from_sparse(ids, parts)
    halves = pa.array([i // 2 for i in range(ROWS)], pa.int32())
    yield "dense_union", pa.UnionArray.from_dense(ids, halves, parts)
    yield "run_ends", pa.RunEndEncodedArray.from_arrays(
        pa.array([4, 9, ROWS], pa.int32()), pa.array([1.5, None, 2.5])
    )


def tables():
    """Name, table: each column whole, cut, and in two batches; all of them; none."""
    for name, array in columns():
        field = pa.field(name, array.type, metadata={"unit": "é"})
        schema = pa.schema([field], metadata={"made by": "matrix.py"})
        yield name, pa.Table.from_arrays([array], schema=schema)
        yield f"{name}_cut", pa.Table.from_arrays([array[3:15]], schema=schema)
        parts = [pa.record_batch([part], schema=schema) for part in (array[1:8], array[8:])]
        yield f"{name}_parts", pa.Table.from_batches(parts)
    yield "empty", pa.table({"a": pa.array([], pa.int32()), "s": pa.array([], pa.string())})


def main():
    what, socket, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    share = liblade.share.connect(socket)
    if what == "publish":
        for name, table in tables():
            share.publish(f"py/{name}", table)
            with pa.ipc.new_stream(str(folder / f"{name}.arrows"), table.schema) as out:
                out.write(table)
        return
    want = dict(tables())
    seen = {}
    wrong = []
    for info in share.datasets("js/"):
        way, name = info.name.split("/", 2)[1:]
        seen[way] = seen.get(way, 0) + 1
        got = share.get(info.name).to_pyarrow()
        got.validate(full=True)
        same = got.equals(want[name])
        if name.startswith("dense_union"):
            # pyarrow compares the children, which have values that no row shows.
            same = got.to_pylist() == want[name].to_pylist() and got.schema == want[name].schema
        if way == "raw" and got.schema.metadata != want[name].schema.metadata:
            same = False
        if not same:
            wrong.append(f"{info.name}: {got} instead of {want[name]}")
    print(json.dumps({"seen": seen, "wrong": wrong, "count": len(want)}))


main()
