# test_filters.py: the filters against numcodecs, both directions, byte by byte.
# SPDX-License-Identifier: Apache-2.0
import itertools

import numcodecs
import numpy as np
import pytest

import lade_ctypes as lade

INTEGERS = ["|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8"]
REALS = ["<f2", "<f4", "<f8"]
TYPES = INTEGERS + REALS
PAIRS = list(itertools.product(TYPES, TYPES))


def is_real(dtype):
    return np.dtype(dtype).kind == "f"


def random_bits(dtype, count, seed=1):
    """Elements of any bits; reals are finite."""
    rng = np.random.default_rng(seed)
    array = rng.integers(0, 256, np.dtype(dtype).itemsize * count, dtype="u1").view(dtype)
    return array[np.isfinite(array)] if is_real(dtype) else array


def small(dtype, count=3001, seed=2):
    """Whole numbers from 0 to 100, in increasing order, so that differences fit all types."""
    rng = np.random.default_rng(seed)
    return np.sort(rng.integers(0, 101, count)).astype(dtype)


def check(spec, codec, array):
    """The same encoded bytes; and each decodes them to the same bytes."""
    theirs = np.asarray(codec.encode(array)).tobytes()
    assert lade.encode(spec, array.tobytes()) == theirs
    decoded = np.asarray(codec.decode(codec.encode(array))).tobytes()
    assert lade.decode(spec, theirs) == decoded


@pytest.mark.parametrize("dtype,astype", PAIRS)
def test_delta(dtype, astype):
    check(f"delta({dtype},astype={astype})", numcodecs.Delta(dtype, astype), small(dtype))


@pytest.mark.parametrize("dtype", TYPES)
def test_delta_of_random_bits(dtype):
    for count in (1, 2, 7, 8, 63, 64, 65, 1000, 40_000):
        array = random_bits(dtype, count)
        if is_real(dtype):
            array /= 2  # a difference that becomes infinite is refused here
        with np.errstate(all="ignore"):
            check(f"delta({dtype})", numcodecs.Delta(dtype), array if array.size else small(dtype))


@pytest.mark.parametrize("dtype,astype", PAIRS)
def test_astype(dtype, astype):
    codec = numcodecs.AsType(astype, dtype)
    check(f"astype({dtype},astype={astype})", codec, small(dtype))
    if is_real(astype) or not is_real(dtype):
        array = random_bits(dtype, 20_000)
        if is_real(dtype):  # so that the stored reals have values in the type again
            with np.errstate(all="ignore"):
                array = array[np.isfinite(array.astype(astype))]
        with np.errstate(all="ignore"):
            encoded = array.astype(astype)
        spec = f"astype({dtype},astype={astype})"
        assert lade.encode(spec, array.tobytes()) == encoded.tobytes()


@pytest.mark.parametrize("dtype,astype", PAIRS)
@pytest.mark.parametrize("scale,offset", [(1.0, 0.0), (2.0, -3.0), (0.3, -7.25), (1.1, 5.5)])
def test_fixedscaleoffset(dtype, astype, scale, offset):
    array = small(dtype) // np.dtype(dtype).type(3) + np.dtype(dtype).type(8)
    spec = f"fixedscaleoffset({dtype},astype={astype},scale={scale},offset={offset})"
    check(spec, numcodecs.FixedScaleOffset(offset, scale, dtype, astype), array.astype(dtype))


@pytest.mark.parametrize("dtype", REALS)
def test_bitround(dtype):
    array = random_bits(dtype, 5_000)
    mantissa = {2: 10, 4: 23, 8: 52}[array.itemsize]
    for keepbits in range(1, mantissa + 1):
        spec = f"bitround({dtype},keepbits={keepbits})"
        check(spec, numcodecs.BitRound(keepbits), array)
    with pytest.raises(lade.Error, match="LADE_E_SPEC"):
        lade.encode(f"bitround({dtype},keepbits={mantissa + 1})", array.tobytes())


@pytest.mark.parametrize("dtype,astype", list(itertools.product(REALS, REALS)))
def test_quantize(dtype, astype):
    array = (np.random.default_rng(3).standard_normal(5_000) * 10).astype(dtype)
    for digits in (0, 1, 2, 3, 4):
        spec = f"quantize({dtype},digits={digits},astype={astype})"
        check(spec, numcodecs.Quantize(digits, dtype, astype), array)


def test_packbits():
    for count in itertools.chain(range(1, 200), (4096, 100_003)):
        check("packbits", numcodecs.PackBits(), np.random.default_rng(count).random(count) < 0.3)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 12, 16])
def test_shuffle(size):
    for count in (1, 15, 16, 64, 1000, 30_001):
        array = np.random.default_rng(count).integers(0, 256, size * count, dtype="u1")
        codec = numcodecs.Shuffle(size)
        encoded = bytes(codec.encode(array.tobytes()))
        assert lade.encode(f"shuffle({size})", array.tobytes()) == encoded
        assert lade.decode(f"shuffle({size})", encoded) == array.tobytes()


@pytest.mark.parametrize("dtype", INTEGERS[::2])
def test_zigzag_and_bitshuffle_by_numpy(dtype):
    array = random_bits(dtype, 4096)
    bits = array.itemsize * 8
    folded = ((array << 1) ^ (array >> (bits - 1))).tobytes()
    assert lade.encode(f"zigzag({dtype})", array.tobytes()) == folded
    assert lade.decode(f"zigzag({dtype})", folded) == array.tobytes()
    by_bit = np.unpackbits(array.view("u1").reshape(-1, array.itemsize), axis=1, bitorder="little")
    rows = np.packbits(by_bit.T, axis=1, bitorder="little").tobytes()
    assert lade.encode(f"bitshuffle({array.itemsize})", array.tobytes()) == rows
    assert lade.decode(f"bitshuffle({array.itemsize})", rows) == array.tobytes()


def test_what_has_no_value_is_refused():
    for spec, array in (
        ("astype(<f8,astype=|u1)", np.array([0, 255, 256], "<f8")),
        ("astype(<f8,astype=<i4)", np.array([0, 1, np.nan], "<f8")),
        ("fixedscaleoffset(<f4,astype=|i1,scale=10)", np.array([0, 12, 13], "<f4")),
        ("scaleoffset(|u1,offset=5)", np.array([5, 6, 4], "|u1")),
    ):
        with pytest.raises(lade.Error, match="LADE_E_VALUE") as failure:
            lade.encode(spec, array.tobytes())
        assert "element 2" in str(failure.value)
