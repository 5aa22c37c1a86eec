"""Ten thousand chunks in one call, from one buffer into another; a bad chunk affects no other.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

import liblade

COUNT, SIZE = 10_000, 4096
rng = np.random.default_rng(0)
data = np.cumsum(rng.integers(0, 3, COUNT * SIZE // 4), dtype="<i4").view("u1")
codec = liblade.Codec(algorithm="LZ4", bitstream_kind=liblade.BitstreamKind.RAW)

offsets = np.arange(COUNT) * SIZE
chunks = liblade.as_arrays(data, offsets, np.full(COUNT, SIZE))  # no Python object for each chunk
encoded = codec.encode(chunks)
print(f"{chunks} become {encoded}")

back = np.empty_like(data)
codec.decode(encoded, out=liblade.as_arrays(back, offsets, np.full(COUNT, SIZE)))
assert (back == data).all()

broken = [a.tobytes() for a in encoded[:5]]
broken[3] = b"\xff" * 20
for i, result in enumerate(codec.decode(broken, errors="return")):
    print(i, result if isinstance(result, liblade.Error) else f"{result.buffer_size} bytes")
try:
    codec.decode(broken)
except liblade.CorruptError as e:
    print(f"raised: {e} ({e.status}, byte {e.offset})")
