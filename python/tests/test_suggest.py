"""liblade.suggest().

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import pytest

import liblade

QUICK = {"seconds": 0.001, "sample_size": 1 << 16}
RAMP = (np.arange(60_000) * 1000 + np.random.default_rng(2).integers(0, 9, 60_000)).astype("<i4")


def test_what_it_finds_works():
    found = liblade.suggest(RAMP, **QUICK)
    assert found.dtype == "<i4" and not found.guessed and found.sample_size == 1 << 16
    assert [one.ratio for one in found] == sorted((one.ratio for one in found), reverse=True)
    for one in (found.speed, found.between, found.ratio):
        assert one in found and one.encode_rate > 0 and one.decode_rate > 0
        codec = liblade.Codec(algorithm=one.pipeline)
        frame = codec.encode(RAMP)
        assert (np.asarray(liblade.Codec().decode(frame, "<i4")) == RAMP).all()
        assert frame.buffer_size < 1.3 * RAMP.nbytes / one.ratio
    assert found.ratio.ratio >= found[0].ratio / 1.005 > 2
    table = repr(found).splitlines()
    assert len(table) == len(found) + 1 and table[0].split()[:2] == ["pipeline", "ratio"]
    assert str(found) == repr(found) and "best for" in repr(found)


def test_sources():
    found = liblade.suggest(RAMP.tobytes(), **QUICK)
    assert found.guessed and found.dtype == "<u4"
    assert not liblade.suggest(RAMP.tobytes(), "f8", **QUICK).guessed
    assert liblade.suggest(RAMP.reshape(200, 300)[:, 10:250], **QUICK).ratio.ratio > 2
    for dtype in ("<c8", "M8[s]", "V3", ">i2", "?", "<f2"):
        found = liblade.suggest(np.zeros(5000, dtype), **QUICK)
        assert found.ratio.ratio > 10, dtype
    noise = np.random.default_rng(1).bytes(1 << 16)
    found = liblade.suggest(noise, **QUICK)
    assert len(found) and found.speed is found.between is found.ratio is None


def test_refused():
    with pytest.raises(ValueError, match="no bytes to measure"):
        liblade.suggest(b"")
    with pytest.raises(ValueError, match="q9"):
        liblade.suggest(b"abc", "q9")
    with pytest.raises(TypeError, match="no memory to share"):
        liblade.suggest(3)
    for bad in ({"seconds": 0}, {"chunk_size": 3}, {"bandwidth": -1}, {"threads": -1},
                {"seconds": float("nan")}, {"seconds": float("inf")}, {"bandwidth": float("nan")}):
        with pytest.raises(ValueError, match="cannot be"):
            liblade.suggest(b"abc", **bad)
