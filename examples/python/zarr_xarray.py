"""xarray reads a Zarr store by liblade: one line of configuration, the program stays as it is.

SPDX-License-Identifier: Apache-2.0
"""

import sys
import tempfile

try:
    import xarray
    import zarr
except ImportError as e:
    print(f"skipped: {e.name} is not installed")
    sys.exit(77)

import liblade.zarr
import zarr_climate

zarr.config.set({"codec_pipeline.path": "liblade.zarr.CodecPipeline"})

with tempfile.TemporaryDirectory() as folder:
    path = f"{folder}/climate.zarr"
    zarr_climate.make(path)
    with xarray.open_zarr(path, chunks=None) as data:
        january = data.t2m.sel(time="2026-01", lat=slice(60, 30)).mean(("lat", "lon"))
        print("mean of the days in January, 30 to 60 degrees north:", january.values.round(1)[:5])
        weeks = data.rain.isel(lat=40).resample(time="7D").sum()
        print("rain by week:", weeks.shape)
        weeks.to_dataset(name="weeks").to_zarr(f"{folder}/weeks.zarr", zarr_format=3)
    again = liblade.zarr.open_group(f"{folder}/weeks.zarr")["weeks"]
    assert (again[...] == weeks.values).all()

counts = liblade.zarr.pipeline_counts()
print(counts)
assert counts.native > 0 and counts.stock == 0, liblade.zarr.pipeline_reasons()
