"""numcodecs' codecs by liblade: the same ids, options and bytes.

SPDX-License-Identifier: Apache-2.0
"""

import sys

import numpy as np

try:
    import numcodecs
except ImportError:
    print("skipped: numcodecs is not installed")
    sys.exit(77)
import liblade.numcodecs

x = np.linspace(280, 290, 100_000, dtype="<f4").reshape(100, 1000)
theirs = numcodecs.get_codec({"id": "blosc", "cname": "zstd", "clevel": 3, "shuffle": 1})
liblade.numcodecs.register(["blosc"])  # numcodecs' registry now returns ours
ours = numcodecs.get_codec(theirs.get_config())
assert type(ours) is liblade.numcodecs.Blosc and ours.get_config() == theirs.get_config()

encoded = theirs.encode(x)
room = np.zeros((100, 3000), "<f4")
ours.decode(encoded, out=room[:, 1000:2000])  # rows of a larger array, without a copy
assert (room[:, 1000:2000] == x).all()
assert (np.frombuffer(theirs.decode(bytes(ours.encode(x))), "<f4").reshape(x.shape) == x).all()
print(f"{x.nbytes} bytes, {len(encoded)} by {theirs}, {len(ours.encode(x))} by {ours}")
liblade.numcodecs.unregister()
