"""A program for nvCOMP, unchanged but for its import; without a GPU it runs on the host.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

import liblade as nvcomp

data = np.frombuffer(b"Call me Ishmael. Some years ago, never mind how long. " * 999, "u1")
array = nvcomp.as_array(data)
if nvcomp.__cuda_version__ is not None:
    array = array.cuda()

for algorithm in ("LZ4", "Snappy", "Deflate", "Gzip", "Zstd"):
    codec = nvcomp.Codec(algorithm=algorithm, uncomp_chunk_size=65536)
    encoded = codec.encode(array)
    # A native buffer says how it was made.
    decoded = nvcomp.Codec().decode(encoded, data_type="|u1")
    assert bytes(decoded.cpu()) == data.tobytes()
    place = encoded.buffer_kind.name
    print(f"{algorithm:8} {array.buffer_size} -> {encoded.buffer_size} on {place}")

with nvcomp.Codec(algorithm="Zstd", checksum_policy=nvcomp.COMPUTE_AND_VERIFY) as codec:
    batch = codec.encode([data[:1000], data[1000:]])
    config = codec.decompression_config(batch)
    print(batch, config.decomp_data_sizes)
    assert [a.buffer_size for a in codec.decode(batch, decompression_config=config)] == [
        1000, data.size - 1000]
