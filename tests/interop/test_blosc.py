# test_blosc.py: Blosc1 containers against numcodecs and python-blosc, both directions.
# SPDX-License-Identifier: Apache-2.0
import itertools
import random

import blosc
import numcodecs
import numpy as np
import pytest
from numcodecs import blosc as numcodecs_blosc

import lade_ctypes as lade

CNAMES = ["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"]
SHUFFLES = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}


def arrays():
    rng = np.random.default_rng(5)
    yield np.cumsum(rng.integers(-8, 9, 40_000)).astype("<i4")
    yield np.sin(np.arange(70_001) / 500).astype("<f8")
    yield (rng.random(9_999) < 0.1).astype("|b1")
    yield rng.integers(0, 2**62, 5_000).astype("<i8")
    yield np.zeros(300_000, "<u2")
    yield np.arange(20, dtype="<i2")


ARRAYS = list(arrays())


@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize("cname", CNAMES)
def test_lade_writes(cname, shuffle):
    for array, level in itertools.product(ARRAYS, (0, 1, 5, 9)):
        raw = array.tobytes()
        spec = f"blosc({cname},level={level},shuffle={shuffle},typesize={array.itemsize})"
        stored = lade.encode(spec, raw)
        assert lade.decode("blosc", stored) == raw
        # The packages are built without snappy; tests/unit asks the system's c-blosc.
        if cname in blosc.cnames:
            assert bytes(blosc.decompress(stored)) == raw
        if cname in numcodecs_blosc.list_compressors():
            assert bytes(numcodecs.Blosc().decode(stored)) == raw


@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize("cname", numcodecs_blosc.list_compressors())
def test_lade_reads_numcodecs(cname, shuffle):
    for array, level, blocksize in itertools.product(ARRAYS, (0, 1, 5, 9), (0, 4096)):
        codec = numcodecs.Blosc(cname, level, SHUFFLES[shuffle], blocksize)
        stored = codec.encode(array)
        assert lade.decoded_size("blosc", stored) == array.nbytes
        assert lade.decode("blosc", stored) == array.tobytes()


@pytest.mark.parametrize("threads", (1, 4))
@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize("cname", blosc.cnames)
def test_lade_reads_python_blosc(cname, shuffle, threads):
    blosc.set_nthreads(threads)
    for array, level in itertools.product(ARRAYS, (0, 1, 5, 9)):
        raw = array.tobytes()
        stored = blosc.compress(raw, array.itemsize, level, SHUFFLES[shuffle], cname)
        assert lade.decode("blosc", stored) == raw
        assert lade.decode("blosc", stored, threads=1) == raw


def test_every_typesize():
    raw = bytes(np.cumsum(np.arange(60_000) % 251).astype("<i4").tobytes())
    for typesize in range(1, 256):
        stored = blosc.compress(raw, typesize, 5, blosc.SHUFFLE, "lz4")
        assert lade.decode("blosc", stored) == raw
        stored = lade.encode(f"blosc(lz4,shuffle=bitshuffle,typesize={typesize})", raw)
        assert bytes(blosc.decompress(stored)) == raw


def test_random_lengths():
    seed = 20260731
    print("seed", seed)
    rng = random.Random(seed)
    for _ in range(300):
        n = rng.choice((0, 1, 127, 128, 129, rng.randrange(5_000), rng.randrange(400_000)))
        raw = bytes(rng.randrange(4) for _ in range(min(n, 999))) * (n // 999 + 1)
        raw = raw[:n]
        typesize, level = rng.choice((1, 2, 4, 8, 16, 40)), rng.randrange(10)
        cname, shuffle = rng.choice(("blosclz", "lz4", "zstd")), rng.randrange(3)
        if n:
            stored = blosc.compress(raw, typesize, level, shuffle, cname)
            assert lade.decode("blosc", stored) == raw
        name = list(SHUFFLES)[shuffle]
        ours = lade.encode(f"blosc({cname},level={level},shuffle={name},typesize={typesize})", raw)
        if n:
            assert bytes(blosc.decompress(ours)) == raw


def test_cut_and_unknown():
    stored = blosc.compress(ARRAYS[0].tobytes(), 4, 5, blosc.SHUFFLE, "zstd")
    for cut in (0, 1, 15, 16, 20, len(stored) - 1):
        with pytest.raises(lade.Error) as caught:
            lade.decode("blosc", stored[:cut], size=ARRAYS[0].nbytes)
        assert caught.value.status == "LADE_E_TRUNCATED"
    with pytest.raises(lade.Error) as caught:
        lade.decode("blosc", b"\5" + stored[1:], size=ARRAYS[0].nbytes)
    assert caught.value.status == "LADE_E_UNSUPPORTED" and "Blosc2" in str(caught.value)
