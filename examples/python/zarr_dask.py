"""dask reads and writes by liblade: an array as a source and as a sink, in several processes.

Each worker writes whole shards, and parts of one shard lose nothing either: liblade writes a shard
anew only if nobody has changed it meanwhile.

SPDX-License-Identifier: Apache-2.0
"""

import sys
import tempfile

try:
    import dask.array
    import numpy as np
    import zarr
    from dask.distributed import Client, LocalCluster
except ImportError as e:
    print(f"skipped: {e.name} is not installed")
    sys.exit(77)

import liblade.zarr
import zarr_climate


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        path = f"{folder}/climate.zarr"
        zarr_climate.make(path)
        # A source: a dask chunk is a shard.  threads=1, as the workers share the cores.
        t2m = liblade.zarr.open_array(path, "t2m", threads=1)
        lazy = dask.array.from_array(t2m, chunks=t2m.shards, name=None)
        print("mean:", float(lazy.mean().compute()))

        # A sink: whole shards, one a task, without locks.
        celsius = liblade.zarr.create(
            f"{folder}/celsius.zarr", shape=t2m.shape, dtype="f4", chunks=t2m.chunks,
            shards=t2m.shards, threads=1,
        )  # fmt: skip
        dask.array.store(lazy - 273.15, celsius, lock=False)
        want = np.float32(t2m[...] - np.float32(273.15))
        assert np.allclose(celsius[...], want, atol=1e-4)

        # Parts of shards at the same time lose nothing either.
        parts = liblade.zarr.create(f"{folder}/parts.zarr", shape=t2m.shape, dtype="f4",
                                    chunks=t2m.chunks, shards=t2m.shards, threads=1)  # fmt: skip
        dask.array.store(lazy.rechunk((7, 91, 60)), parts, lock=False)
        assert (parts[...] == t2m[...]).all()

        # So does an array of zarr-python that was opened with liblade's pipeline.
        with zarr.config.set({"codec_pipeline.path": "liblade.zarr.CodecPipeline"}):
            theirs = zarr.create_array(f"{folder}/theirs.zarr", shape=t2m.shape, dtype="f4",
                                       chunks=t2m.chunks, shards=t2m.shards)  # fmt: skip
        dask.array.store(lazy, theirs, lock=False)
        assert (theirs[...] == t2m[...]).all()
        for worker, counts in client.run(liblade.zarr.pipeline_counts).items():
            assert counts.stock == 0, f"{worker}: {counts}"
        print("written:", celsius, parts, theirs)


if __name__ == "__main__":
    main()
