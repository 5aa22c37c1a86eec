"""Results on a GPU come from RMM's or CuPy's memory pool and return to it.

Exits with status 77 and the reason if there is no GPU, or neither RMM nor CuPy.

SPDX-License-Identifier: Apache-2.0
"""

import sys

import liblade


def rmm_pool():
    """RMM's pool: an allocator, and a function that returns the bytes in use."""
    import rmm

    pool = rmm.mr.StatisticsResourceAdaptor(
        rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), initial_pool_size=1 << 28)
    )

    def allocate(nbytes, stream):
        # A DeviceBuffer frees its memory on the stream that it was made with.
        buffer = rmm.DeviceBuffer(size=nbytes, stream=rmm.pylibrmm.stream.Stream(stream.ptr),
                                  mr=pool)
        return liblade.ExternalMemory(buffer, stream)

    return allocate, lambda: pool.allocation_counts.current_bytes


def cupy_pool():
    """CuPy's pool: an allocator, and a function that returns the bytes in use."""
    import cupy

    pool = cupy.cuda.MemoryPool()

    def allocate(nbytes, stream):
        # The pool has an arena for each stream.
        with cupy.cuda.ExternalStream(stream.ptr):
            return liblade.ExternalMemory(pool.malloc(nbytes), stream)

    return allocate, pool.used_bytes


def find_pool():
    """The first of the two that is installed."""
    for pool in (rmm_pool, cupy_pool):
        try:
            return pool.__name__, *pool()
        except ImportError:
            continue
    print("skipped: neither RMM nor CuPy is installed")
    sys.exit(77)


if liblade.__cuda_version__ is None:
    print("skipped: no GPU or no driver")
    sys.exit(77)
name, allocator, used = find_pool()
liblade.set_device_allocator(allocator)

text = liblade.as_array(b"out of a pool, into a pool; " * 100_000).cuda()
held = used()
assert held >= text.buffer_size
codec = liblade.Codec(algorithm="LZ4", bitstream_kind=liblade.BitstreamKind.RAW)
encoded = codec.encode(text)
decoded = codec.decode(encoded)
assert decoded.cpu().tobytes() == text.cpu().tobytes()
print(f"{name}: {used()} bytes in use: {text}, {encoded}, {decoded}")

del decoded, encoded
assert used() <= held, (used(), held)
del text
assert used() < held
liblade.set_device_allocator(None)
