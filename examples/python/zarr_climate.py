"""Makes a set like those of climate models: temperature and rain by day, latitude and longitude.

    python zarr_climate.py [FOLDER [DAYS]]

SPDX-License-Identifier: Apache-2.0
"""

import sys

try:
    import numpy as np
except ImportError:
    print("skipped: numpy is not installed")
    sys.exit(77)

import liblade.zarr


def make(path: str, days: int = 60) -> None:
    """A group with the arrays t2m and rain in shards, and coordinates, as xarray reads it."""
    rng = np.random.default_rng(5)
    lat = np.linspace(90, -90, 91, dtype="f4")
    lon = np.arange(0, 360, 2, dtype="f4")
    group = liblade.zarr.create_group(
        path, attributes={"title": "a made-up climate"}, overwrite=True
    )
    axes = {
        "time": (np.arange(days, dtype="i8"), {"units": "days since 2026-01-01"}),
        "lat": (lat, {"units": "degrees_north"}),
        "lon": (lon, {"units": "degrees_east"}),
    }
    for name, (values, attributes) in axes.items():
        axis = group.create_array(
            name, shape=values.shape, dtype=values.dtype, chunks=values.shape,
            dimension_names=[name], attributes=attributes,
        )  # fmt: skip
        axis[...] = values
    for name, units in (("t2m", "K"), ("rain", "mm")):
        array = group.create_array(
            name, shape=(days, 91, 180), dtype="f4", chunks=(5, 91, 90), shards=(30, 91, 180),
            codecs="shuffle(4)|zstd(level=1)", dimension_names=["time", "lat", "lon"],
            attributes={"units": units}, fill_value=float("nan"),
        )  # fmt: skip
        for first in range(0, days, 30):  # a shard at a time
            count = min(30, days - first)
            day = np.arange(first, first + count)[:, None, None]
            season = np.sin(day / 365 * 2 * np.pi) * np.sin(np.deg2rad(lat))[:, None]
            noise = rng.normal(size=(count, 91, 180))
            if name == "t2m":
                field = 300 - 60 * np.abs(lat[:, None]) / 90 + 10 * season + noise
            else:
                field = np.maximum(noise * 4 - 2, 0)
            array[first : first + count] = np.round(field, 2)
    group.consolidate()


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "climate.zarr"
    make(path, int(sys.argv[2]) if len(sys.argv) > 2 else 60)
    print(liblade.zarr.open_group(path).tree())
