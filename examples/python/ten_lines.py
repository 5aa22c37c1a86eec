"""Compresses an array, prints the sizes, and decodes it into part of a larger array.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

import liblade

x = np.cumsum(np.random.default_rng(0).integers(0, 9, 1_000_000), dtype="<i4").reshape(1000, 1000)
codec = liblade.Codec(algorithm="Zstd", filters=["delta(<i4)", "shuffle(4)"])
frame = codec.encode(x)
print(f"{x.nbytes} bytes become {frame.buffer_size} by {codec.pipeline}")

canvas = np.zeros((1000, 3000), "<i4")  # decode into its middle third
liblade.Codec().decode(frame, out=canvas[:, 1000:2000])
assert (canvas[:, 1000:2000] == x).all() and not canvas[:, :1000].any()
