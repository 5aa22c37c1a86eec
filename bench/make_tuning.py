#!/usr/bin/env python3
"""Make six sets of data that formats may be tuned on: make_tuning.py OUT_DIR [MIB=16] [NAME ...].

They are what make_data.py's twelve lack.  Each file is raw little-endian bytes of MIB mebibytes;
its name ends in the element type.

    sensor.i2    an accelerometer's three axes in turn: vibration, drift, noise of a few bits
    columns.i8   pages of a table's columns, one after the other: keys, codes, dates, cents, gaps
    offsets.i8   where words begin: the words of Python's library, as Arrow's large lists have them
    ticks.f8     one share's trades after the other: prices with two to four decimals, often again
    dna.u1       a FASTA file: bases in lines of 60, with runs of N and repeats in lower case
    features.f4  histograms of gradients (HOG) of photographs from scikit-image, one row a window

    pip install numpy scikit-image

All are seeded; offsets and features depend on the packages.

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import re
import sysconfig

import make_untuned
import numpy as np


def sensor(size, rng):
    n = size // 6
    t = np.arange(n) / 1600.0
    axes = []
    for gain in (900, 400, 2500):
        hum = sum(gain / k * np.sin(2 * np.pi * 24.7 * k * t + rng.random() * 6) for k in (1, 2, 5))
        drift = np.cumsum(rng.normal(size=n)) * 0.8
        burst = (np.sin(2 * np.pi * t / 40) > 0.5) * rng.normal(size=n) * gain / 8
        axes.append(hum + drift % 4000 + burst + rng.normal(size=n) * 6)
    data = np.clip(np.stack(axes, -1), -32768, 32767).ravel()
    return np.resize(np.rint(data), size // 2)


def columns(size, rng):
    page = 1 << 17  # values of a page of a column
    made, key, day = [], 0, 19_000
    while len(made) * page < size // 8:
        step = rng.integers(1, 4, page)
        shop = np.minimum(rng.zipf(1.4, page), 500)
        made += [key + np.cumsum(step), 10_000_000 + 7_919 * shop,
                 day + np.arange(page) // 3000, rng.choice([199, 249, 499, 999, 1999], page) *
                 rng.integers(1, 12, page), np.where(rng.random(page) < 0.97, -1, shop)]
        key, day = int(made[-5][-1]), day + page // 3000
    return np.concatenate(made)[:size // 8]


def offsets(size, rng):
    lengths, have = [], 0
    for path in sorted(pathlib.Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")):
        if have < size // 8:
            lengths += [len(word) for word in re.findall(r"\w+", path.read_text(errors="replace"))]
            have = len(lengths)
    return np.cumsum(np.resize(np.array(lengths, np.int64), size // 8))


def ticks(size, rng):
    made, have = [], 0
    while have < size // 8:
        n, decimals = int(rng.integers(20_000, 60_000)), int(rng.choice([2, 2, 2, 3, 4]))
        moves = rng.choice(np.arange(-4, 5), n, p=[.01, .02, .05, .12, .6, .12, .05, .02, .01])
        price = rng.integers(500, 40_000) * 10 ** (decimals - 2) + np.cumsum(moves)
        made.append(np.abs(price) / 10 ** decimals)
        have += n
    return np.concatenate(made)[:size // 8]


def dna(size, rng):
    bases, n = np.frombuffer(b"ACGT", np.uint8), size
    chain = rng.choice(4, n, p=[.3, .2, .2, .3])
    again = rng.random(n) < 0.15  # as the base before: short runs
    chain[1:] = np.where(again[1:], chain[:-1], chain[1:])
    text = bases[chain]
    for _ in range(n // 40_000):
        at, length = int(rng.integers(0, n)), int(rng.integers(200, 3000))
        text[at:at + length] |= 32
    for _ in range(n // 2_000_000 + 1):
        at, length = int(rng.integers(0, n)), int(rng.integers(500, 50_000))
        text[at:at + length] = ord("N")
    lines = np.resize(text, (n // 60 + 1, 60))
    ends = np.full((len(lines), 1), 10, np.uint8)
    return np.concatenate([lines, ends], 1).ravel()[:size]


def features(size, rng):
    import skimage
    from skimage.feature import hog
    made, have = [], 0
    for name in ("astronaut", "chelsea", "coffee", "camera", "rocket", "coins", "moon", "page"):
        image = getattr(skimage.data, name)()
        rows = hog(image, feature_vector=False, orientations=9, pixels_per_cell=(4, 4),
                   channel_axis=-1 if image.ndim == 3 else None)
        made.append(rows.astype(np.float32).ravel())
        have += made[-1].size
    return np.resize(np.concatenate(made), size // 4)


SETS = {"sensor.i2": sensor, "columns.i8": columns, "offsets.i8": offsets, "ticks.f8": ticks,
        "dna.u1": dna, "features.f4": features}


if __name__ == "__main__":
    make_untuned.main(SETS)
