"""ANS, Bitcomp and Cascaded through nvCOMP's keywords: all types, kinds and modes.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import liblade
from liblade import Codec

ALGORITHMS = ["ANS", "Bitcomp", "Cascaded"]
TYPES = ["|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8"]


def values(dtype):
    rng = np.random.default_rng(5)
    steps = rng.integers(-3, 4, 9000).cumsum() % 90
    return (steps / 8 if "f" in dtype else steps).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("kind", list(liblade.BitstreamKind), ids=lambda k: k.name)
def test_types_and_kinds(algorithm, dtype, kind):
    x = values(dtype)
    codec = Codec(algorithm=algorithm, data_type=dtype, bitstream_kind=kind,
                  uncomp_chunk_size=16384)
    e = codec.encode(x)
    if not (algorithm == "Cascaded" and "f" in dtype):  # which is for integers
        assert e.buffer_size < x.nbytes * 0.9
    assert codec.get_uncomp_buffer_size(e) == x.nbytes
    assert e.buffer_size <= codec.get_max_comp_buffer_size(x)
    got = codec.decode(e, dtype)
    assert got.dtype == dtype and (np.asarray(got) == x).all()
    part = codec.decode(e, dtype, element_range=(1000, 7000))
    assert (np.asarray(part) == x[1000:7000]).all()
    out = np.zeros((100, 95), dtype)
    codec.decode(e, out=out[:, :90])
    assert (out[:, :90].ravel() == x).all() and not out[:, 90:].any()
    batch = codec.encode([x, x[:1], x[:0], x[::7]])
    assert [a.tobytes() for a in codec.decode(batch)] == [
        a.tobytes() for a in (x, x[:1], x[:0], x[::7])]
    # Any decoder reads it, whatever its own type.
    assert Codec(algorithm=algorithm, bitstream_kind=kind).decode(e).tobytes() == x.tobytes()


@pytest.mark.parametrize("dtype, most", [("<f2", 50), ("<f4", 1e5), ("<f8", 1e9)])
@pytest.mark.parametrize("mode", [1, 2])
@pytest.mark.parametrize("delta", [1, 0.01, 0.3])
def test_lossy_bitcomp(mode, dtype, delta, most):
    rng = np.random.default_rng(7)
    x = (rng.random(20000).cumsum() % most).astype(dtype)
    x[5], x[6], x[7] = 0, most, x[3]
    codec = Codec(algorithm="Bitcomp", data_type=dtype, mode=mode, delta=delta, bitstream_kind=1)
    assert codec.lossy
    got = np.asarray(codec.decode(codec.encode(x), dtype))
    # Half of delta, and what the type itself cannot tell of the result.
    slack = np.spacing(np.abs(x)).astype("f8")
    assert (np.abs(got.astype("f8") - x) <= delta / 2 + slack).all()
    special = np.array([np.nan, np.inf, -np.inf, 1, -1] * 40, dtype)
    got = np.asarray(codec.decode(codec.encode(special), dtype))
    finite = np.isfinite(special)
    assert np.array_equal(got[~finite], special[~finite], equal_nan=True)
    assert (np.abs(got[finite] - special[finite]) <= delta / 2).all()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_damage_is_an_error_or_bytes(algorithm):
    x = values("<i4")
    codec = Codec(algorithm=algorithm, data_type="<i4", bitstream_kind=1)
    good = codec.encode(x).tobytes()
    told = 0
    for at in range(0, len(good), max(1, len(good) // 150)):
        bad = bytearray(good)
        bad[at] ^= 1 << at % 8
        try:
            assert codec.decode(bad).buffer_size <= 2 * x.nbytes
        except liblade.CorruptError as e:
            told += 1
            assert f"{algorithm.lower()}: " in str(e)
    for size in (0, 1, 15, len(good) // 2, len(good) - 1):
        with pytest.raises(liblade.CorruptError):
            codec.decode(good[:size])
    assert told


@settings(max_examples=40, deadline=None)
@given(algorithm=st.sampled_from(ALGORITHMS), kind=st.sampled_from([0, 1, 2, 3]),
       x=st.sampled_from(TYPES).flatmap(
           lambda t: hnp.arrays(t, hnp.array_shapes(min_dims=1, max_dims=2, max_side=300))))
def test_any_array(algorithm, kind, x):
    codec = Codec(algorithm=algorithm, data_type=x.dtype, bitstream_kind=kind)
    assert codec.decode(codec.encode(x)).tobytes() == x.tobytes()
