#!/usr/bin/env python3
"""Make six sets of data that nothing was tuned on: make_untuned.py OUT_DIR [MIB=16] [NAME ...].

They are measured, and nothing else: no kernel, table or default is chosen by them.  Each file is
raw little-endian bytes of MIB mebibytes; its name ends in the element type, as make_data.py's do.

    photos.u1       RGB photographs from the packages scikit-image and scikit-learn, decoded
    executables.u1  up to 512 KiB of each program and library of the machine
    terrain.i2      elevation in metres: eroded 1/f^2 relief, the sea is 0
    labels.u4       a segmentation of cells: background 0, each cell its number
    quotes.f8       bid prices with two decimals, 40 shares in turn
    tokens.i4       Python's library and its packages as tokens: words by their rank, else bytes

    pip install numpy scikit-image scikit-learn     # imageio, which decodes, comes with them

Terrain, labels and quotes are seeded.  The others depend on the machine and its packages: to
measure the same bytes elsewhere, take the files along (tar cJf sets.tar.xz OUT_DIR).

SPDX-License-Identifier: Apache-2.0
"""
import collections
import pathlib
import re
import sys
import sysconfig
import zlib

import numpy as np


def filled(parts, size):
    """The parts one behind the other, from the start again until they have 'size' bytes."""
    data = b"".join(parts)
    if not data:
        sys.exit("make_untuned: the machine has no such files")
    return np.frombuffer((data * (size // len(data) + 1))[:size], np.uint8)


def photos(size, rng):
    import imageio.v3
    import skimage
    import sklearn
    folders = [pathlib.Path(skimage.__file__).parent / "data",
               pathlib.Path(sklearn.__file__).parent / "datasets/images"]
    names = ("astronaut.png", "chelsea.png", "coffee.png", "hubble_deep_field.jpg", "ihc.png",
             "motorcycle_left.png", "motorcycle_right.png", "retina.jpg", "rocket.jpg",
             "china.jpg", "flower.jpg")
    found = [folder / name for name in names for folder in folders if (folder / name).exists()]
    return filled([imageio.v3.imread(path)[..., :3].tobytes() for path in found], size)


def executables(size, rng):
    parts = {}
    for folder in ("/usr/bin", "/usr/lib", sysconfig.get_paths()["platlib"]):
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.is_file() and not path.is_symlink():
                with path.open("rb") as f:
                    head = f.read(512 << 10)
                if head.startswith(b"\x7fELF"):
                    parts[path.name] = head
    names = sorted(parts)
    rng.shuffle(names)
    return filled([parts[name] for name in names], size)


def noise(side, power, rng):
    """A square of noise whose amplitudes fall by 'power' with the frequency; deviation 1."""
    k = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side)[None, :])
    k[0, 0] = 1
    field = np.fft.irfft2(np.fft.rfft2(rng.normal(size=(side, side))) / k ** power)
    return (field - field.mean()) / field.std()


def tiles(size, item, tile):
    """As many tiles of 1024 x 1024 elements as 'size' bytes need."""
    return np.concatenate([tile().ravel() for _ in range(-(-size // (item << 20)))])[:size // item]


def terrain(size, rng):
    def tile():
        relief = noise(1024, 2.0, rng)
        ridges = 1 - np.abs(noise(1024, 1.6, rng))  # valleys branch where noise crosses 0
        return np.maximum(0, 700 * relief + 250 * ridges * (relief > 0) + 300)
    return tiles(size, 2, tile)


def labels(size, rng):
    """Cells around points of a jittered grid, with wavy borders, in the foreground of a slide."""
    def tile():
        step, side = 32, 1024
        y, x = np.mgrid[:side, :side] + 6 * np.stack([noise(side, 1.4, rng) for _ in "yx"])
        grid = side // step + 2
        points = rng.random((grid, grid, 2)) * 0.8 + 0.1
        near, label = np.full((side, side), np.inf), np.zeros((side, side), np.int64)
        for dy in (-1, 0, 1):
            for dx in (-1, 0, 1):
                gy = np.clip((y // step + dy).astype(int), -1, grid - 2) + 1
                gx = np.clip((x // step + dx).astype(int), -1, grid - 2) + 1
                at = (np.stack([gy, gx], -1) - 1 + points[gy, gx]) * step
                far = np.hypot(at[..., 0] - y, at[..., 1] - x)
                label = np.where(far < near, gy * grid + gx + 1, label)
                near = np.minimum(far, near)
        return np.where((near < 15) & (noise(side, 2, rng) > -0.5), label, 0)
    return tiles(size, 4, tile)


def quotes(size, rng):
    shares, steps = 40, -(-size // (8 * 40))
    ticks = rng.choice(np.arange(-3, 4), (steps, shares), p=[.01, .04, .15, .6, .15, .04, .01])
    cents = rng.integers(800, 60_000, shares) + np.cumsum(ticks, 0)
    return (np.abs(cents) / 100).ravel()[:size // 8]


def tokens(size, rng):
    words, have = [], 0
    paths = sysconfig.get_paths()
    for folder in (paths["stdlib"], paths["platlib"]):
        for path in sorted(pathlib.Path(folder).rglob("*.py")):
            if have < size // 4 and "test" not in path.parts:
                found = re.findall(r" ?\w+| ?[^\w\s]+|\s+", path.read_text(errors="replace"))
                words += found
                have += len(found)
    common = collections.Counter(words).most_common(50_000)
    ids = {word: 256 + i for i, (word, count) in enumerate(common) if count > 1}
    made = []
    for word in words:
        if word in ids:
            made.append(ids[word])
        else:
            made.extend(word.encode())
    return np.resize(np.array(made, np.int32), size // 4)


SETS = {"photos.u1": photos, "executables.u1": executables, "terrain.i2": terrain,
        "labels.u4": labels, "quotes.f8": quotes, "tokens.i4": tokens}


def main(sets):
    if len(sys.argv) < 2:
        sys.exit(sys.modules["__main__"].__doc__)
    out, size = pathlib.Path(sys.argv[1]), int((sys.argv[2:] or [16])[0]) << 20
    unknown = set(sys.argv[3:]) - set(sets)
    if unknown:
        sys.exit(f"no set is called {', '.join(sorted(unknown))}; there are {', '.join(sets)}")
    out.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[3:] or sets:
        path, dtype = out / name, np.dtype("<" + name.rsplit(".", 1)[1])
        if not path.exists() or path.stat().st_size != size:
            data = sets[name](size, np.random.default_rng(zlib.crc32(name.encode())))
            temporary = path.with_name(name + ".part")
            data.astype(dtype).tofile(temporary)
            temporary.rename(path)


if __name__ == "__main__":
    main(SETS)
