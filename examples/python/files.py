"""Finds a pipeline for an array, writes the array to a file, and reads parts of the file back.

SPDX-License-Identifier: Apache-2.0
"""

import gzip
import os
import tempfile

import numpy as np

import liblade

x = np.cumsum(np.random.default_rng(0).integers(0, 9, 2_000_000), dtype="<i8").reshape(2000, 1000)
found = liblade.suggest(x, sample_size=1 << 20, seconds=0.005)
print(f"{len(found)} pipelines were tried; the smallest are\n{liblade.Suggestions(found[:3])}")
pipeline = found.between.pipeline if found.between else "copy"

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "x.lade")
    with liblade.open(path, "wb", spec=pipeline, dtype=x.dtype, shape=x.shape) as f:
        for row in x:
            f.write(row)
    print(f"{x.nbytes} bytes became {os.path.getsize(path)} by {pipeline}")

    with liblade.open(path) as f:
        print(f.info)
        rows = np.empty((10, 1000), f.info.dtype)
        f.seek(500 * rows[0].nbytes)  # only the chunks with these rows are decoded
        f.readinto(rows)
        assert (rows == x[500:510]).all()

    # Files of other tools: open() recognises them by their first bytes.
    path = os.path.join(folder, "lines.txt.gz")
    with gzip.open(path, "wb") as f:
        f.writelines(b"line %d\n" % i for i in range(1000))
    with liblade.open(path) as f:
        assert sum(1 for line in f if line.endswith(b"9\n")) == 100
