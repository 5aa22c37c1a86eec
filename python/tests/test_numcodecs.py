"""liblade.numcodecs against numcodecs: bytes in both directions, buffers of all kinds, errors.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import array
import contextlib
import io
import json
import multiprocessing
import pickle
import subprocess
import sys
import threading
import warnings
import zlib
from functools import partial
from typing import Any

import pytest

np = pytest.importorskip("numpy", reason="numpy is not installed")
numcodecs = pytest.importorskip("numcodecs", reason="numcodecs is not installed")
hypothesis = pytest.importorskip("hypothesis", reason="hypothesis is not installed")

import liblade
import liblade.numcodecs as ours
import numcodecs.checksum32
import numcodecs.fletcher32
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numcodecs.ndarray_like import is_ndarray_like

relaxed = settings(max_examples=60, deadline=None)

THEIRS = {
    "zlib": numcodecs.Zlib,
    "gzip": numcodecs.GZip,
    "zstd": numcodecs.Zstd,
    "lz4": numcodecs.LZ4,
    "blosc": numcodecs.Blosc,
    "shuffle": numcodecs.Shuffle,
    "delta": numcodecs.Delta,
    "crc32": numcodecs.checksum32.CRC32,
    "crc32c": getattr(numcodecs.checksum32, "CRC32C", None),
    "adler32": numcodecs.checksum32.Adler32,
    "fletcher32": numcodecs.fletcher32.Fletcher32,
    "jenkins_lookup3": getattr(numcodecs.checksum32, "JenkinsLookup3", None),
    "fixedscaleoffset": numcodecs.FixedScaleOffset,
    "bitround": numcodecs.BitRound,
    "packbits": numcodecs.PackBits,
    "quantize": numcodecs.Quantize,
}

BYTES: list[dict[str, Any]] = [
    {"id": "zlib", "level": 1},
    {"id": "zlib", "level": 9},
    {"id": "zlib", "level": -1},
    {"id": "zlib", "level": 0},
    {"id": "gzip", "level": 1},
    {"id": "gzip", "level": 9},
    {"id": "zstd", "level": 0},
    {"id": "zstd", "level": -5, "checksum": True},
    {"id": "zstd", "level": 19, "checksum": False},
    {"id": "lz4", "acceleration": 1},
    {"id": "lz4", "acceleration": 17},
    {"id": "lz4", "acceleration": 1 << 20},
    {"id": "blosc"},
    {"id": "blosc", "cname": "zstd", "clevel": 9, "shuffle": 2},
    {"id": "blosc", "cname": "blosclz", "clevel": 1, "shuffle": 0, "blocksize": 1024},
    {"id": "blosc", "cname": "zlib", "clevel": 5, "shuffle": -1},
    {"id": "blosc", "cname": "lz4hc", "clevel": 3, "shuffle": 1},
    {"id": "blosc", "cname": "lz4", "clevel": 0},
    {"id": "shuffle", "elementsize": 8},
    {"id": "shuffle", "elementsize": 1},
    {"id": "crc32"},
    {"id": "crc32", "location": "end"},
    {"id": "crc32c"},
    {"id": "crc32c", "location": "start"},
    {"id": "adler32"},
    {"id": "adler32", "location": "end"},
    {"id": "fletcher32"},
    {"id": "jenkins_lookup3"},
    {"id": "jenkins_lookup3", "initval": 4294967295},
]
FIXED = {"shuffle", "crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3"}


def pair(config: dict[str, Any]) -> tuple[Any, Any]:
    """Our codec and numcodecs' of one configuration."""
    rest = {k: v for k, v in config.items() if k != "id"}
    theirs = THEIRS[config["id"]]
    if theirs is None:
        pytest.skip(f"this numcodecs has no {config['id']}: it wants google-crc32c")
    return ours.CODECS[config["id"]].from_config(rest), theirs.from_config(rest)


def raw(buf: Any) -> bytes:
    arr = buf if isinstance(buf, np.ndarray) else np.asarray(memoryview(buf))
    return arr.tobytes(order="A")


def name(config: dict[str, Any]) -> str:
    return "-".join(str(v) for v in config.values())


samples = st.one_of(
    st.binary(min_size=8, max_size=4096).map(lambda b: np.frombuffer(b[: len(b) // 8 * 8], "u1")),
    st.builds(
        lambda n, step, dtype: (np.arange(n) * step).astype(dtype),
        st.integers(1, 300).map(lambda n: n * 8),
        st.integers(0, 5000),
        st.sampled_from(["i2", "u4", "i8", "f4", "f8", ">i4", "M8[ns]", "S3", "c16", "?"]),
    ),
)


@pytest.mark.parametrize("config", BYTES, ids=name)
def test_both_directions(config: dict[str, Any]) -> None:
    """What one encodes the other decodes; formats with one spelling have the same bytes."""
    mine, theirs = pair(config)

    @relaxed
    @given(samples)
    def check(arr: Any) -> None:
        want = arr.tobytes()
        enc, other = mine.encode(arr), theirs.encode(arr)
        assert is_ndarray_like(enc)
        if config["id"] in FIXED:
            assert raw(enc) == raw(other)
        assert raw(theirs.decode(enc)) == want
        dec = mine.decode(other)
        assert is_ndarray_like(dec)
        assert raw(dec) == want
        out = np.empty_like(arr)
        assert mine.decode(other, out=out) is out
        assert out.tobytes() == want

    check()


INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
# numpy adds 8-byte integers of unlike signs up as reals, and loses digits; ours does not.
UNLIKE = ({"i8", "u8"}, {"i1", "u8"}, {"i2", "u8"}, {"i4", "u8"})


@pytest.mark.parametrize("dtype", [*INTEGERS, "f4", "f8", "?", ">i4", ">f8", "f2", "c8"])
@pytest.mark.parametrize("astype", [None, "i2", "i8", "f4", "f8", ">i2"])
def test_delta(dtype: str, astype: str | None) -> None:
    """The same elements, or the same bytes, for every pair of types; booleans, which numcodecs
    adds up, are what they were."""
    if dtype in ("c8",) and astype is not None:
        pytest.skip("complex numbers as reals lose a part")
    rest = {"dtype": dtype, "astype": astype}
    mine, theirs = ours.Delta(**rest), numcodecs.Delta(**rest)
    whole = np.dtype(astype or dtype).kind in "iu" and np.dtype(dtype).kind in "iu"

    @relaxed
    @given(st.lists(st.integers(-100, 100), min_size=1, max_size=200))
    def check(values: list[int]) -> None:
        arr = np.array(values)
        if np.dtype(dtype).kind == "u" or np.dtype(astype or dtype).kind == "u":
            # Differences that wrap become reals that fit nowhere.
            arr = np.sort(abs(arr)) if not whole else abs(arr)
        arr = arr.astype(dtype)
        with np.errstate(all="ignore"):
            enc, other = mine.encode(arr), theirs.encode(arr)
            assert enc.dtype == other.dtype and raw(enc) == raw(other)
            dec = mine.decode(other)
            if {dtype, astype} in UNLIKE:
                return
            want = theirs.decode(other) if dtype != "?" else arr
        assert dec.dtype == want.dtype and raw(dec) == raw(want)

    check()


KINDS = ["i2", "u2", "i8", "u8", "f2", "f4", "f8", "M8[s]", "m8[s]", "m8[ms]", "M8[ns]"]
DELTA = [order + kind for kind in KINDS for order in "<>"] + ["i1", "u1", "?", "c8"]


def outcome(call: Any, *rest: Any) -> Any:
    """What a call gives, or the kind of the exception."""
    try:
        return call(*rest)
    except Exception as why:
        return next(t for t in (OverflowError, ValueError, TypeError) if isinstance(why, t))


@pytest.mark.parametrize("dtype", DELTA)
def test_delta_loses_nothing_in_silence(dtype: str) -> None:
    """Elements of all bits: what numcodecs refuses is refused alike; what it takes gives the same
    bytes, and comes back, or is refused: then numcodecs loses it."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        assert sum(no_silent_loss(dtype, astype) for astype in (None, *DELTA)) > 200


def no_silent_loss(dtype: str, astype: str | None) -> int:
    """For one pair of types; how many arrays were taken."""
    mine, theirs = ours.Delta(dtype, astype), numcodecs.Delta(dtype, astype)
    was, kinds = np.dtype(dtype), {np.dtype(dtype).kind, mine.astype.kind}
    exact, unlike = not kinds & {"f", "c"}, {was.str[1:], mine.astype.str[1:]}
    rng = np.random.default_rng([*dtype.encode(), *(astype or "").encode()])
    taken = 0
    for bits in 2 * [*range(65)]:
        # Numbers of so many bits; from 16 on many are too large for others.
        high = min(2**bits, 2**63 - 1)
        low = -high if was.kind not in "ub" and rng.random() < 0.5 else 0
        whole = rng.integers(low, high, 3)
        if rng.random() < 0.5:
            whole.sort()
        arr = whole.astype(was)
        enc, other = outcome(mine.encode, arr), outcome(theirs.encode, arr)
        if isinstance(other, type):
            assert enc is other, (arr, astype)
            continue
        back = outcome(theirs.decode, other)
        if isinstance(enc, type):
            lost = isinstance(back, type) or back.tobytes() != arr.tobytes()
            # Integers of infinities are undefined, and may be the right ones.
            real = [a for a in (arr, other) if a.dtype.kind == "f"]
            assert lost or any(np.isinf(a).any() for a in real), (arr, astype)
            continue
        taken += 1
        assert enc.dtype == other.dtype and raw(enc) == raw(other), (arr, astype)
        dec = outcome(mine.decode, enc)
        if exact:
            assert not isinstance(dec, type), (arr, astype)
            assert dec.tobytes() == arr.tobytes(), (arr, astype)
        elif dec is ValueError:
            # Sums that are rounded may leave the range of the integers.
            assert kinds & {"i", "u"} and other.dtype.kind in "fiu", (arr, astype)
        elif was.kind != "b" and not isinstance(back, type) and unlike not in UNLIKE:
            assert not isinstance(dec, type), (arr, astype)
            assert raw(dec) == raw(back), (arr, astype)
    return taken


@pytest.mark.parametrize("dtype, astype, values, element", [
    ("<i8", "<i2", [70000, 70001], None),
    ("<i8", "<i2", [1, 70001], 1),
    (">i8", ">i2", [1, 2, 70001], 2),
    ("<i8", "<u2", [5, 4], 1),
    ("i1", "?", [1, 3], 1),
    ("<f8", "<f4", [1, 1e300], 1),
    ("<f8", "<i2", [1, 40000], 1),
    ("c8", "f4", [1, 1j], 1),
    ("M8[s]", None, [1, "NaT", 2], 2),
])  # fmt: skip
def test_delta_says_what_does_not_fit(
    dtype: str, astype: str | None, values: list[Any], element: int | None
) -> None:
    """The first element as numcodecs does; a difference with its element."""
    arr = np.array(values) if "8[" not in dtype else np.array(values, "O")
    arr = arr.astype(dtype)
    if element is None and astype:
        with pytest.raises(OverflowError):
            ours.Delta(dtype, astype).encode(arr)
    elif element is not None:
        refused = pytest.raises(ValueError, match=f"element {element}\\b")
        with np.errstate(all="ignore"), refused:
            ours.Delta(dtype, astype).encode(arr)
    else:
        assert (ours.Delta(dtype).decode(ours.Delta(dtype).encode(arr)) == arr).all()


def test_delta_of_times() -> None:
    """numcodecs encodes points in time and cannot decode them."""
    arr = np.array(["2026-11-23T07:00", "1969-01-01T00:00", "2026-11-23"], "M8[s]")
    for dtype in ("<M8[s]", ">M8[s]"):
        for astype in (None, "<m8[s]", ">m8[s]"):
            mine, theirs = ours.Delta(dtype, astype), numcodecs.Delta(dtype, astype)
            enc = mine.encode(arr.astype(dtype))
            assert raw(enc) == raw(theirs.encode(arr.astype(dtype)))
            with pytest.raises(TypeError):
                theirs.decode(enc)
            assert mine.decode(enc).tobytes() == arr.astype(dtype).tobytes()
            out = np.empty(3, dtype)
            assert mine.decode(enc, out=out) is out and (out == arr).all()


@relaxed
@given(
    hnp.arrays("f4", st.integers(1, 300), elements=st.floats(-1e4, 1e4, width=32)),
    st.sampled_from([0.5, 1, 10, 10.0, 1000, 0.001]),
    st.sampled_from([0, 100, -3.25, 1e3]),
    st.sampled_from([None, "i4", "i8", "f8", "f4"]),
    st.sampled_from(["<f4", "<f8", ">f4"]),
)
def test_fixedscaleoffset(arr: Any, scale: Any, offset: Any, astype: Any, dtype: str) -> None:
    arr = arr.astype(dtype)
    rest = {"scale": scale, "offset": offset, "dtype": dtype, "astype": astype}
    mine, theirs = ours.FixedScaleOffset(**rest), numcodecs.FixedScaleOffset(**rest)
    enc, other = mine.encode(arr), theirs.encode(arr)
    assert enc.dtype == other.dtype and raw(enc) == raw(other)
    dec, want = mine.decode(enc), theirs.decode(other)
    assert dec.dtype == want.dtype and raw(dec) == raw(want)


@relaxed
@given(
    hnp.arrays("i4", st.integers(1, 100), elements=st.integers(-1000, 1000)),
    st.sampled_from([2, 0.5, 10.0]),
    st.sampled_from([0, 100, -3.5]),
    st.sampled_from(["i2", "i4", "u1"]),
)
def test_fixedscaleoffset_integers(arr: Any, scale: Any, offset: Any, dtype: str) -> None:
    """Integers wrap as numpy's do when scale and offset are integers."""
    arr = np.abs(arr // 10).astype(dtype) if dtype == "u1" else arr.astype(dtype)
    rest = {"scale": scale, "offset": offset, "dtype": dtype, "astype": "f8"}
    if dtype == "u1" and offset == -3.5:
        offset = 3.5
    mine, theirs = ours.FixedScaleOffset(**rest), numcodecs.FixedScaleOffset(**rest)
    assert raw(mine.encode(arr)) == raw(theirs.encode(arr))
    enc = theirs.encode(arr)
    with np.errstate(all="ignore"):
        want = theirs.decode(enc)
    if scale >= 1 and dtype != "u1":
        assert raw(mine.decode(enc)) == raw(want)


def test_fixedscaleoffset_misfits() -> None:
    """What does not fit is stored as numcodecs does; the library's own stage refuses it."""
    arr = np.array([1.0, 2.0, np.nan, 1e9, -np.inf])
    rest = {"offset": 0, "scale": 1, "dtype": "<f8", "astype": "<i2"}
    with np.errstate(all="ignore"):
        enc = ours.FixedScaleOffset(**rest).encode(arr)
        assert raw(enc) == raw(numcodecs.FixedScaleOffset(**rest).encode(arr))
    with pytest.raises(ValueError, match="2"):
        liblade.Codec(algorithm="fixedscaleoffset(f8,astype=i2)", bitstream_kind=1).encode(arr)


@relaxed
@given(
    hnp.arrays("f8", hnp.array_shapes(max_dims=3, max_side=12), elements=st.floats(-1e5, 1e5)),
    st.integers(-4, 14),
    st.sampled_from(["<f2", "<f4", "<f8", ">f8"]),
    st.sampled_from([None, "<f2", "<f4", "<f8"]),
    st.booleans(),
)
def test_quantize(arr: Any, digits: int, dtype: str, astype: Any, fortran: bool) -> None:
    with np.errstate(all="ignore"):
        arr = np.asarray(arr.astype(dtype), order="F" if fortran else "C")
        rest = {"digits": digits, "dtype": dtype, "astype": astype}
        mine, theirs = ours.Quantize(**rest), numcodecs.Quantize(**rest)
        enc, other = mine.encode(arr), theirs.encode(arr)
        assert enc.dtype == other.dtype and enc.shape == other.shape
        np.testing.assert_array_equal(enc, other)
        assert raw(enc) == raw(other)
        dec, want = mine.decode(other), theirs.decode(other)
        assert dec.dtype == want.dtype and raw(dec) == raw(want)
        out = np.empty(arr.shape, dtype)
        assert mine.decode(other, out) is out


@relaxed
@given(
    st.sampled_from(["f2", "f4", "f8"]).flatmap(
        lambda t: hnp.arrays(t, hnp.array_shapes(max_dims=2, max_side=30))
    ),
    st.integers(0, 10),
    st.booleans(),
)
def test_bitround(arr: Any, keepbits: int, fortran: bool) -> None:
    """Also infinities and NaN; shape and order of the memory stay, which Zarr counts on."""
    arr = np.asarray(arr, order="F" if fortran else "C")
    mine, theirs = ours.BitRound(keepbits), numcodecs.BitRound(keepbits)
    enc, other = mine.encode(arr), theirs.encode(arr)
    assert enc.dtype == other.dtype and enc.shape == other.shape
    assert enc.tobytes() == other.tobytes() and enc.flags.f_contiguous == arr.flags.f_contiguous
    dec, want = mine.decode(enc), theirs.decode(other)
    assert dec.dtype == want.dtype and dec.shape == want.shape and dec.tobytes() == want.tobytes()


@relaxed
@given(hnp.arrays("?", st.integers(0, 200)))
def test_packbits(arr: Any) -> None:
    mine, theirs = ours.PackBits(), numcodecs.PackBits()
    enc = mine.encode(arr)
    assert raw(enc) == raw(theirs.encode(arr))
    dec = mine.decode(theirs.encode(arr))
    assert dec.dtype == bool and raw(dec) == arr.tobytes()
    assert raw(mine.decode(enc, out=bytearray(arr.size))) == arr.tobytes()


def test_unused_bits_of_packbits() -> None:
    """More than a byte has, or than there are, is damage; numcodecs takes them off."""
    mine, theirs = ours.PackBits(), numcodecs.PackBits()
    for bad in (b"\x08\xff\xff", b"\xff\xff\xff", b"\x01"):
        assert theirs.decode(bad).size == max(0, 8 * (len(bad) - 1) - bad[0])
        with pytest.raises(liblade.CorruptError, match=f"{bad[0]} unused bits in {len(bad) - 1}"):
            mine.decode(bad)
    for fine in (b"\x03\xff", b"\x00", b"\x07\x80"):  # unused bits that are set count for nothing
        assert raw(mine.decode(fine)) == raw(theirs.decode(fine))


# ---- configurations ----

CONFIGS = [
    *BYTES,
    {"id": "delta", "dtype": "<i4", "astype": "<i2"},
    {"id": "fixedscaleoffset", "scale": 10, "offset": 1.5, "dtype": "<f8", "astype": "<i4"},
    {"id": "bitround", "keepbits": 7},
    {"id": "packbits"},
    {"id": "quantize", "digits": 3, "dtype": "<f8", "astype": "<f4"},
]


@pytest.mark.parametrize("config", CONFIGS, ids=name)
def test_config(config: dict[str, Any]) -> None:
    """Configuration, repr and equality are numcodecs'; a pickle gives the same codec."""
    mine, theirs = pair(config)
    assert mine.get_config() == theirs.get_config()
    assert list(mine.get_config()) == list(theirs.get_config())
    assert json.loads(json.dumps(mine.get_config())) == mine.get_config()
    assert repr(mine) == repr(theirs)
    assert mine == theirs and mine == type(mine).from_config(
        {k: v for k, v in mine.get_config().items() if k != "id"}
    )
    assert isinstance(mine, numcodecs.abc.Codec)
    data = np.zeros(64, bool if config["id"] == "packbits" else config.get("dtype", "f8"))
    again = pickle.loads(pickle.dumps(mine))
    assert again == mine and raw(again.encode(data)) == raw(mine.encode(data))
    mine.decode(mine.encode(data))
    assert mine.get_config() == theirs.get_config()


def test_attributes_count() -> None:
    """An option that is changed later is used from then on, as in numcodecs."""
    codec = ours.Zstd(level=1)
    data = np.arange(100_000, dtype="i4") // 3
    small = len(codec.encode(data))
    codec.level = 19
    assert len(codec.encode(data)) != small
    assert codec.get_config()["level"] == 19


def test_register() -> None:
    """Nothing is registered by importing; register() and unregister() undo each other."""
    code = (
        "import liblade.numcodecs as ours, numcodecs\n"
        "from numcodecs.registry import get_codec, codec_registry\n"
        "before = dict(codec_registry)\n"
        "assert not any(c.__module__.startswith('liblade') for c in before.values())\n"
        "ours.register(['zstd'])\n"
        "assert type(get_codec({'id': 'zstd', 'level': 3})) is ours.Zstd\n"
        "assert type(get_codec({'id': 'lz4'})) is numcodecs.LZ4\n"
        "ours.register(); ours.register()\n"
        "assert all(codec_registry[i] is c for i, c in ours.CODECS.items())\n"
        "ours.unregister()\n"
        "assert {k: v for k, v in codec_registry.items() if k in before} == before\n"
        "for bad in ('zstd', ['nothing']):\n"
        "    try: ours.register(bad)\n"
        "    except (TypeError, ValueError) as e: print(e)\n"
        "    else: raise SystemExit('no error')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment()
    )
    assert done.returncode == 0, done.stderr
    assert "'nothing'" in done.stdout


def environment() -> dict[str, str]:
    import os
    import pathlib

    folder = str(pathlib.Path(liblade.__file__).parent.parent)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])}


# ---- buffers ----

COMPRESSORS = [ours.Zlib(), ours.GZip(), ours.Zstd(), ours.LZ4(), ours.Blosc()]
ALL = [*COMPRESSORS, ours.Shuffle(4), ours.CRC32(), ours.CRC32C(), ours.Fletcher32(),
       ours.JenkinsLookup3()]


def codec_name(codec: Any) -> str:
    return str(codec.codec_id)


@pytest.mark.parametrize("codec", ALL, ids=codec_name)
def test_sources(codec: Any) -> None:
    """Every kind of buffer gives the same decoded bytes."""
    arr = np.arange(600, dtype="<i4").reshape(20, 30)
    data = arr.tobytes()
    kinds: list[Any] = [
        arr, data, bytearray(data), memoryview(data), array.array("i", data),
        np.frombuffer(data, "M8[ns]"), np.frombuffer(data, "m8[s]"),
        np.frombuffer(data, [("a", "<i4"), ("b", "<f8")]), np.frombuffer(data, "S12"),
        liblade.as_array(data), ours.Zstd().decode(ours.Zstd().encode(data)),
        np.frombuffer(data, "V6"), np.frombuffer(data, ">f8"),
    ]  # fmt: skip
    for kind in kinds:
        enc = codec.encode(kind)
        assert raw(codec.decode(enc)) == data, type(kind)
        for again in (raw(enc), bytearray(raw(enc)), memoryview(raw(enc)), np.asarray(enc)):
            assert raw(codec.decode(again)) == data
    fortran = np.asfortranarray(arr)
    assert raw(codec.decode(codec.encode(fortran))) == fortran.tobytes(order="A")


@pytest.mark.parametrize("codec", ALL, ids=codec_name)
def test_out(codec: Any) -> None:
    """Every kind of destination is written, given back, and not replaced."""
    arr = np.arange(600, dtype="<i4").reshape(20, 30)
    enc = codec.encode(arr)
    for out in (
        bytearray(arr.nbytes), memoryview(bytearray(arr.nbytes)), np.empty_like(arr),
        np.empty(arr.nbytes, "u1"), np.empty(300, "M8[ns]"), array.array("i", [0] * 600),
        liblade.as_array(bytearray(arr.nbytes)), np.empty((10, 60), ">f4"),
    ):  # fmt: skip
        assert codec.decode(enc, out=out) is out
        assert raw(out) == arr.tobytes(), type(out)
    fortran = np.empty((30, 20), "<i4", order="F")
    codec.decode(enc, out=fortran)
    assert fortran.tobytes(order="A") == arr.tobytes()
    # Rows of a larger array; columns of one; both untouched elsewhere.
    for part in (np.s_[3:23, 5:35], np.s_[3:43:2, 5:65:2]):
        large = np.full((50, 70), -1, "<i4")
        assert codec.decode(enc, out=large[part]).base is large
        np.testing.assert_array_equal(large[part], arr)
        large[part] = -1
        assert (large == -1).all()
    times = np.full((50, 70), 7, "m8[s]")
    codec.decode(enc, out=times[:20, :15])
    assert times[:20, :15].tobytes() == arr.tobytes()


@pytest.mark.parametrize("codec", [
    ours.Quantize(3, "f8"), ours.BitRound(52), ours.BitRound(20), ours.PackBits(),
    ours.FixedScaleOffset(0, 1, "f8", "i4"), ours.Delta("f8"),
], ids=codec_name)  # fmt: skip
def test_out_has_the_order_of_both_memories(codec: Any) -> None:
    theirs = THEIRS[codec.codec_id].from_config(
        {k: v for k, v in codec.get_config().items() if k != "id"}
    )
    source = np.arange(24.0).reshape(2, 3, 4)
    for arr in (source, np.asfortranarray(source), source.ravel()):
        if codec.codec_id == "packbits":
            arr = arr % 3 == 0
        enc = codec.encode(arr)
        for shape, order in ((arr.shape, "F"), (arr.shape, "C"), (24, "C"), ((4, 6), "F")):
            out, want = (np.zeros(shape, arr.dtype, order) for _ in range(2))  # type: ignore
            codec.decode(enc, out=out)
            theirs.decode(np.asarray(enc).copy("K"), out=want)
            np.testing.assert_array_equal(out, want)


def test_jenkins_lookup3() -> None:
    text = b"Four score and seven years ago"
    assert ours.JenkinsLookup3.checksum(text) == 0x17770551
    assert ours.JenkinsLookup3.checksum(text, 1) == 0xCD628161
    for bad in (-1, 1 << 32):
        with pytest.raises(ValueError, match=f"initval is {bad}, it can be from 0 to"):
            ours.JenkinsLookup3(bad).encode(text)
    for size in range(40):
        data = bytes(range(size))
        want = numcodecs.checksum32.JenkinsLookup3(7, b"ahead").encode(data)
        assert ours.JenkinsLookup3(7, b"ahead").encode(data) == want
        assert ours.JenkinsLookup3(7, b"ahead").decode(want) == data


def test_fletcher32_gives_bytes() -> None:
    enc = ours.Fletcher32().encode(b"abcdef")
    assert enc == numcodecs.fletcher32.Fletcher32().encode(b"abcdef")
    assert ours.Fletcher32().decode(enc) == b"abcdef"


@pytest.mark.parametrize("codec", ALL, ids=codec_name)
def test_bad_buffers(codec: Any) -> None:
    """Objects, lists and strided sources are refused; so are destinations that do not do."""
    arr = np.arange(600, dtype="<i4")
    enc = codec.encode(arr)
    for bad in (np.array(["a", "b"], object), ["a"], "text", 7, array.array("u", "abc")):
        with pytest.raises(TypeError):
            codec.encode(bad)
        with pytest.raises(TypeError):
            codec.decode(bad)
    with pytest.raises(TypeError):
        codec.encode(np.zeros(4, [("a", object)]))
    with pytest.raises(ValueError):
        codec.encode(arr[::2])
    for small in (bytearray(2399), np.empty(599, "i4"), np.empty((40, 40), "i4")[:20, :29]):
        with pytest.raises(ValueError, match="23|2400"):
            codec.decode(enc, out=small)
    for bad in (np.empty(600, object), 5, "text"):
        with pytest.raises(TypeError):
            codec.decode(enc, out=bad)
    fixed = np.empty(600, "i4")
    fixed.flags.writeable = False
    for readonly in (bytes(2400), fixed):
        with pytest.raises((TypeError, ValueError)):
            codec.decode(enc, out=readonly)


def test_out_is_not_copied() -> None:
    """Decoding into out= takes no memory of the library's; the result of decode() is its own."""
    arr = np.arange(100_000, dtype="f8")
    for codec in COMPRESSORS:
        enc = codec.encode(arr)
        out = np.empty_like(arr)
        codec.decode(enc, out=out)
        before = liblade._lade._memory_stats()[2]
        for _ in range(5):
            codec.decode(enc, out=out)
        assert liblade._lade._memory_stats()[2] == before, codec
        np.testing.assert_array_equal(out, arr)


def test_bytes_like() -> None:
    """What compressors give is used as bytes are, and as arrays are."""
    enc = ours.LZ4().encode(b"abc" * 10)
    text = bytes(enc)
    assert enc == text and text == enc and enc != b"" and not enc == 5
    assert len(enc) == enc.nbytes == enc.size == len(text) and enc.shape == (len(text),)
    assert enc[0] == text[0] and enc[1:4] == text[1:4] and list(enc) == list(text)
    assert enc + b"x" == text + b"x" and b"x" + enc == b"x" + text and enc * 2 == text * 2
    assert b"".join([enc, enc]) == text * 2 and b"abc" in enc
    assert enc.view("u1").tobytes() == text and enc.reshape(-1, 1).shape == (len(text), 1)
    assert type(enc.view("u1")) is np.ndarray and np.asarray(enc).base is not None
    assert pickle.loads(pickle.dumps(enc)) == text
    assert "bytes" in repr(enc)
    dec = ours.LZ4().decode(enc)
    dec[0] = 0x7A
    dec[1:3] = [0x79, 0x78]
    assert dec[:4] == b"zyxa"
    with pytest.raises(TypeError):
        hash(enc)


@pytest.mark.parametrize("codec", ALL, ids=codec_name)
def test_empty(codec: Any) -> None:
    """Nothing at all comes back as nothing at all."""
    enc = codec.encode(b"")
    assert raw(codec.decode(raw(enc))) == b""
    codec.decode(enc, out=bytearray(0))
    assert raw(codec.decode(codec.encode(np.empty((0, 4), "f8")))) == b""


# ---- sizes that are not known ----


@pytest.mark.parametrize("codec", [ours.Zlib(), ours.GZip()], ids=codec_name)
def test_changing_sizes(codec: Any) -> None:
    """A guess of the decoded size that is wrong costs time, not the result."""
    rng = np.random.default_rng(1)
    for count in (10, 100_000, 5, 1 << 20, 1 << 20, 0, 3, 70_000, 1, 90_000, 2, 80_000, 4, 77):
        for data in (bytes(count), rng.bytes(count)):
            assert raw(codec.decode(codec.encode(data))) == data


def test_gzip_members() -> None:
    """Several members; the size behind the last one is not all."""
    a, b = b"first " * 1000, b"second"
    codec = ours.GZip()
    both = bytes(codec.encode(a)) + bytes(codec.encode(b))
    assert codec.decode(both) == a + b
    assert numcodecs.GZip().decode(both) == a + b
    out = bytearray(len(a + b))
    codec.decode(both, out)
    assert out == a + b


def test_zstd_without_sizes() -> None:
    """Frames that do not tell their size, much smaller than it, alone and among others."""
    zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")
    data = b"0123456789abcdef" * 500_000
    make = zstandard.ZstdCompressor(write_content_size=False)
    frame, other = make.compress(data), zstandard.compress(b"tail")
    codec = ours.Zstd()
    assert codec.decode(frame) == data
    assert codec.decode(frame + other) == data + b"tail"
    out = bytearray(len(data))
    codec.decode(frame, out)
    assert out == data


# ---- corrupt input ----

CHECKED = [
    ours.Zlib(), ours.GZip(), ours.Zstd(checksum=True), ours.CRC32(), ours.CRC32C("start"),
    ours.Adler32(), ours.Fletcher32(), ours.JenkinsLookup3(1, b"abc"),
]  # fmt: skip


@pytest.mark.parametrize("codec", CHECKED, ids=codec_name)
def test_corrupt_is_seen(codec: Any) -> None:
    """A byte that differs anywhere, or a missing end, raises in formats with a checksum."""
    data = np.arange(2000, dtype="<u2").tobytes()
    good = raw(codec.encode(data))
    step = max(len(good) // 200, 1)
    for i in range(0, len(good), step):
        bad = bytearray(good)
        bad[i] ^= 0x41
        try:
            dec = raw(codec.decode(bad))
        except (RuntimeError, ValueError) as e:
            assert str(e)
        else:
            # gzip's time, system and flags of the header are not covered by its checksum.
            assert dec == data and codec.codec_id in ("gzip", "zlib", "zstd") and i < 18
        out = bytearray(len(data))
        try:
            codec.decode(bad, out=out)
        except (RuntimeError, ValueError):
            pass
        else:
            assert out == data
    for cut in (0, 1, 3, len(good) // 2, len(good) - 1):
        with pytest.raises((RuntimeError, ValueError)):
            codec.decode(good[:cut])


@pytest.mark.parametrize("codec", COMPRESSORS, ids=codec_name)
def test_garbage(codec: Any) -> None:
    """Any bytes give a result or an error of ours that says something, and nothing else."""

    @relaxed
    @given(st.binary(max_size=300))
    def check(data: bytes) -> None:
        try:
            codec.decode(data)
        except liblade.Error as e:
            assert codec.codec_id in str(e).lower() and isinstance(e, (RuntimeError, ValueError))
        try:
            codec.decode(data, out=bytearray(100))
        except liblade.Error as e:
            assert str(e)

    check()
    with pytest.raises(RuntimeError):
        codec.decode(b"")


def test_hostile_sizes() -> None:
    """A frame that claims more than its bytes can give is corrupt; no memory is taken for it."""
    claim = b"\x28\xb5\x2f\xfd\xe0" + (1 << 61).to_bytes(8, "little") + b"\x01\x00\x00"
    text = "invalid input data: the data states 2305843009213693952 bytes, and 16 bytes of zstd"
    with pytest.raises(liblade.CorruptError, match=text):
        ours.Zstd().decode(claim)
    with pytest.raises(liblade.CorruptError, match=text):
        ours.Zstd().decode(claim, out=bytearray(10))
    with pytest.raises(liblade.CorruptError, match="states 4294967295 bytes, and 1 bytes of lz4"):
        ours.LZ4().decode(b"\xff\xff\xff\xff\x00")
    header = bytearray(raw(ours.Blosc().encode(bytes(1000))))
    header[4:8] = (2**31 - 17).to_bytes(4, "little")
    with pytest.raises(RuntimeError):
        ours.Blosc().decode(header)


def test_error_texts() -> None:
    """Errors name the thing and both numbers."""
    enc = bytearray(raw(ours.CRC32C().encode(b"123456789")))
    enc[-1] ^= 1
    with pytest.raises(liblade.ChecksumError, match="crc32c checksum do not match. Stored: .*Comp"):
        ours.CRC32C().decode(enc)
    with pytest.raises(ValueError, match="10 bytes are no multiple of elementsize, 4"):
        ours.Shuffle(4).encode(bytes(10))
    with pytest.raises(ValueError, match="level is 10, want -1 to 9"):
        ours.Zlib(10).encode(b"")
    with pytest.raises(ValueError, match="keepbits is 11, float16 has 10"):
        ours.BitRound(11).encode(np.zeros(1, "f2"))
    with pytest.raises(ValueError, match="want 80 bytes, have 79"):
        ours.Delta("f8").decode(ours.Delta("f8").encode(np.zeros(10)), out=bytearray(79))
    with pytest.raises(ValueError, match="bad compressor.*'lzma'.*blosclz"):
        ours.Blosc("lzma").encode(b"")
    with pytest.raises(ValueError, match="shuffle: 3, want -1, 0, 1 or 2"):
        ours.Blosc(shuffle=3).encode(b"")
    with pytest.raises(ValueError, match="at most 2113929216 bytes"):
        ours.LZ4().encode(np.zeros(3 << 30, "u1"))  # never touched, so never there


def test_crc32c_in_pieces() -> None:
    """The checksum of pieces is that of the whole."""
    data = np.random.default_rng(2).bytes(10_000)
    for checksum in (ours.CRC32C.checksum, ours.CRC32.checksum, ours.Adler32.checksum):
        whole = checksum(data)
        for cut in (0, 1, 7, 4096, 9999, 10_000):
            assert checksum(data[cut:], checksum(data[:cut])) == whole


# ---- threads and processes ----


def test_deflate_verdicts() -> None:
    """One verdict on an invalid Deflate stream, whoever reads it, and zlib's if asked for."""
    # Its symbol 286 is one that zlib refuses, and libdeflate takes for 258 bytes.
    stream, decoded = bytes.fromhex("4b1c0300"), b"a" * 259
    tails = {
        "deflate": (b"", b""),
        "zlib": (b"\x78\x9c", zlib.adler32(decoded).to_bytes(4, "big")),
        "gzip": (
            bytes.fromhex("1f8b0800000000000003"),
            zlib.crc32(decoded).to_bytes(4, "little") + (259).to_bytes(4, "little"),
        ),
    }
    for name, (head, tail) in tails.items():
        data = head + stream + tail
        for strict in (False, True):
            corrupt = partial(pytest.raises, liblade.CorruptError)
            refused: Any = corrupt if strict else contextlib.nullcontext
            codec = liblade.Codec(algorithm=name, bitstream_kind=1, strict=strict)
            with refused():
                assert bytes(codec.decode(data)) == decoded
                assert [bytes(d) for d in codec.decode([data] * 3)] == [decoded] * 3
            if name != "deflate":
                with refused(), liblade.open(io.BytesIO(data), strict=strict) as file:
                    assert file.read() == decoded
        if name != "deflate":
            codec = {"zlib": ours.Zlib, "gzip": ours.GZip}[name]()
            assert raw(codec.decode(data)) == decoded


def test_threads() -> None:
    """One codec used by 8 threads at once."""
    arrays = [np.arange(20_000, dtype="i4") * i for i in range(1, 9)]
    for codec in [*ALL, ours.Delta("i4"), ours.BitRound(3)]:
        failures: list[Any] = []

        def work(arr: Any, codec: Any = codec, failures: list[Any] = failures) -> None:
            if codec.codec_id == "bitround":
                arr = arr.astype("f4")
            for _ in range(10):
                enc = codec.encode(arr)
                got = raw(codec.decode(enc))
                want = arr.tobytes() if codec.codec_id != "bitround" else raw(enc)
                if got != want:
                    failures.append(codec)

        threads = [threading.Thread(target=work, args=(a,)) for a in arrays]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not failures


def _there_and_back(data: bytes) -> list[bytes]:
    return [bytes(c.decode(c.encode(data))) for c in ALL]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes(method: str) -> None:
    """Codecs work in children, also those that were forked after they had been used."""
    data = bytes(range(256)) * 1000
    _there_and_back(data)
    with multiprocessing.get_context(method).Pool(2) as pool:
        for result in pool.map(_there_and_back, [data] * 4):
            assert all(one == data for one in result)
