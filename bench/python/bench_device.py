"""Latencies of calls on device arrays, as rows that compare with those measured of nvCOMP:

    lat,BYTES,ALGORITHM,KIND,comp=,enc_us=,dec_us=,dec_cfg_us=,enc_host_us=,dec_host_us=
    batch,CHUNKS,as_arrays_us=,dec_us=,dec_cfg_us=,host_us=

"lat" is one array from the device to the device, waited for, also large ones as frames where the
device has kernels; "cfg": with a config and out=; "host" ends when the call returns.
"batch" decodes chunks of 4 KiB of easy text that one buffer holds, by
offsets; as_arrays for the sources is timed apart.  The least of many runs counts.

    python bench_device.py [LEAST-SECONDS-A-ROW]

On the emulated driver, or null_driver.c, the rows say nothing of a GPU.

SPDX-License-Identifier: Apache-2.0
"""

import sys
import time

import numpy as np

import liblade
from liblade import Codec, CudaStream, as_array, as_arrays

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 0.2
ALGORITHMS = ["LZ4", "Snappy", "Zstd", "Deflate", "Gzip", "ANS", "Bitcomp", "Cascaded"]


def easy_text(size):
    words = b"the quick brown fox jumps over the lazy dog and runs on "
    return np.frombuffer((words * (size // len(words) + 1))[:size], "u1").copy()


def least(call, stream, wait=True):
    """Microseconds of the quickest run; the stream is empty before each."""
    call()
    stream.synchronize()
    best, end = 1e9, time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        if wait:
            stream.synchronize()
        best = min(best, time.perf_counter() - start)
        stream.synchronize()
    return best * 1e6


def lat(size, algorithm, kind, stream):
    codec = Codec(algorithm=algorithm, bitstream_kind=kind, cuda_stream=stream)
    x = as_array(easy_text(size)).cuda(cuda_stream=stream)
    out = as_array(np.zeros(size, "u1")).cuda(cuda_stream=stream)[:]
    coded = codec.encode(x)
    room = as_array(np.zeros(codec.get_max_comp_buffer_size(size), "u1")).cuda(cuda_stream=stream)
    room = room[:]
    config = codec.compression_config(size)
    back = codec.decompression_config(config)
    if codec.decode(coded).tobytes() != easy_text(size).tobytes():
        raise SystemExit(f"{algorithm}: other bytes came back")

    def encode():
        codec.encode(x, out=room, compression_config=config)

    def decode():
        codec.decode(coded, out=out, decompression_config=back)

    print(f"lat,{size},{algorithm},{kind.name},comp={coded.buffer_size},"
          f"enc_us={least(encode, stream):.1f},"
          f"dec_us={least(lambda: codec.decode(coded), stream):.1f},"
          f"dec_cfg_us={least(decode, stream):.1f},"
          f"enc_host_us={least(encode, stream, False):.1f},"
          f"dec_host_us={least(decode, stream, False):.1f}", flush=True)


def batch(count, stream):
    size = 4096
    codec = Codec(algorithm="LZ4", bitstream_kind=liblade.BitstreamKind.RAW, cuda_stream=stream)
    text = easy_text(size).tobytes()
    coded = Codec(algorithm="LZ4", bitstream_kind=1).encode(text).tobytes()
    buffer = as_array(np.frombuffer(coded * count, "u1").copy()).cuda(cuda_stream=stream)
    offsets, sizes = np.arange(count) * len(coded), np.full(count, len(coded))
    block = as_array(np.zeros(count * size, "u1")).cuda(cuda_stream=stream)
    outs = as_arrays(block, np.arange(count) * size, np.full(count, size))
    chunks = as_arrays(buffer, offsets, sizes)
    config = codec.decompression_config(codec.compression_config([size] * count))
    if codec.decode(chunks, out=outs)[-1].tobytes() != text:
        raise SystemExit("a batch: other bytes came back")

    def decode():
        codec.decode(chunks, out=outs, decompression_config=config)

    made = least(lambda: as_arrays(buffer, offsets, sizes), stream, False)
    print(f"batch,{count},as_arrays_us={made:.0f},"
          f"dec_us={least(lambda: codec.decode(chunks), stream):.0f},"
          f"dec_cfg_us={least(decode, stream):.0f},"
          f"host_us={least(lambda: codec.decode(chunks, out=outs), stream, False):.0f}",
          flush=True)


def main():
    if not liblade._lade._device_count():
        raise SystemExit("there is no device")
    stream = CudaStream.make_new()
    for size in (4096, 65536, 1 << 20):
        for algorithm in ALGORITHMS:
            for kind in (liblade.BitstreamKind.NVCOMP_NATIVE, liblade.BitstreamKind.RAW):
                lat(size, algorithm, kind, stream)
    for size in (16 << 20, 256 << 20):
        for algorithm in ALGORITHMS:
            if algorithm not in ("Zstd", "Deflate", "Gzip"):
                lat(size, algorithm, liblade.BitstreamKind.NVCOMP_NATIVE, stream)
    for count in (100, 1000, 10000):
        batch(count, stream)


if __name__ == "__main__":
    main()
