"""The types of calls that documents show: mypy reads this (tests/python/run.sh), nobody runs it.

SPDX-License-Identifier: Apache-2.0
"""

import io
from typing import assert_type

import liblade
import liblade.zarr
from liblade import Array, BatchArray, Codec, Error

class Tensor:
    """As torch's and CuPy's types have it."""

    def __dlpack__(self, *, stream: int | None = None) -> object:
        return None

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


codec = Codec(algorithm="LZ4", bitstream_kind=liblade.BitstreamKind.RAW)
x = bytearray(4000)
rows = memoryview(x).cast("B", (4, 1000))

one = codec.encode(x)
many = codec.encode([x, x])
assert_type(one, Array)
assert_type(many, BatchArray)
assert_type(codec.encode(x, errors="return"), Array | Error)
assert_type(codec.encode([x], errors="return"), list[Array | Error])
assert_type(codec.decode(one, "<i4", x), Array)
assert_type(codec.decode(many, "<i4", [x, x]), BatchArray)
assert_type(codec.decode(many, "<i4", many), BatchArray)
assert_type(codec.decode((x, x), out=rows), BatchArray)
assert_type(codec.decode(many, out=rows, errors="return"), list[Array | Error])
assert_type(codec.decode(one, "<i4", element_range=(3, None)), Array)
assert_type(codec.decode_into(one, x), int)
assert_type(codec.decode_into(many, rows), list[int])
assert_type(codec.encode_into(many, rows), list[int])
assert_type(codec.encode(srcs=many, out=rows), BatchArray)
assert_type(codec.decode(srcs=[one], errors="return"), list[Array | Error])
assert_type(codec.decode(one, out=one), Array)
assert_type(codec.decode(one, "<f4", Tensor()), Array)
codec.encode(5)  # type: ignore[call-overload]
codec.encode(x, out=5)  # type: ignore[call-overload]
codec.decode(one, out=5)  # type: ignore[call-overload]
codec.decode(one, out="text")  # type: ignore[call-overload]
codec.decode(one, out=[x])  # type: ignore[call-overload]
codec.decode(one, decompression_config=5)  # type: ignore[call-overload]
codec.decode(many, out=5)  # type: ignore[call-overload]
codec.decode_into(one, 5)  # type: ignore[call-overload]
codec.decode_into(many, out=5)  # type: ignore[call-overload]
liblade.as_array(5)  # type: ignore[arg-type]
codec.level = 19  # type: ignore[attr-defined]
assert_type(one.dtype.str, str)
assert_type(many[0], Array)
assert_type(many[1:], BatchArray)
assert_type(codec.get_max_comp_buffer_size(4000), int)
assert_type(codec.get_max_comp_buffer_size([4000]), list[int])
assert_type(codec.get_uncomp_buffer_size(one), int)
with liblade.open(io.BytesIO(), "wb", format="gz") as writer:
    assert_type(writer.write(x), int)
with liblade.open(io.BytesIO()) as reader:
    assert_type(reader.read(), bytes)
    assert_type(reader.info.shape, tuple[int, ...] | None)
array = liblade.zarr.create({}, shape=(4,), dtype="f4")
assert_type(array, liblade.zarr.Array)
assert_type(array.shape, tuple[int, ...])
assert_type(array.plan(...), liblade.zarr.Plan)
assert_type(liblade.zarr.open({}), liblade.zarr.Array | liblade.zarr.Group)
assert_type(liblade.zarr.Store.memory().read("key"), bytes | None)
array.write(x, index="all")  # type: ignore[arg-type]
liblade.zarr.open({}, mode="x")  # type: ignore[arg-type]
found = liblade.suggest(x).between
if found:
    assert_type(found.pipeline, str)
