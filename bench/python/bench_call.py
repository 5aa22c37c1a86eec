"""What a call from Python costs more than the C call: bench_call.py LIBLADE.SO.

Both run in one process, by turns, and the best of many rounds of each counts; what matters are
the differences and the ratios.  With one thread it is the thread's own time that counts.
Wants the package installed, numpy, numcodecs, and a C compiler.

SPDX-License-Identifier: Apache-2.0
"""

import ctypes
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import numcodecs

import liblade

HERE = pathlib.Path(__file__).parent
RAW = liblade.BitstreamKind.RAW


def c_loops(library):
    library = pathlib.Path(library).resolve()
    out = pathlib.Path(tempfile.mkdtemp()) / "c_loop.so"
    subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-O2", "-shared", "-fPIC",
                    f"-I{HERE}/../../include", str(HERE / "c_loop.c"), "-o", str(out),
                    str(library), f"-Wl,-rpath,{library.parent}"], check=True)
    loops = ctypes.CDLL(str(out))
    loops.loop_one.restype = loops.loop_many.restype = ctypes.c_double
    return loops


def best(functions, rounds=15):
    """The best of many turns of each function; a function gives seconds a call."""
    least = [1e9] * len(functions)
    for _ in range(rounds):
        for i, function in enumerate(functions):
            least[i] = min(least[i], function())
    return least


def repeat(call, count, threads=1):
    clock = time.thread_time if threads == 1 else time.perf_counter

    def run():
        start = clock()
        for _ in range(count):
            call()
        return (clock() - start) / count
    return run


def address(buffer):
    return liblade.as_array(buffer).ptr


def one_chunk(loops, algorithm, theirs):
    rng = np.random.default_rng(1)
    data = np.cumsum(rng.integers(0, 3, 1024), dtype="<i4").tobytes()
    codec = liblade.Codec(algorithm=algorithm, bitstream_kind=RAW)
    encoded = codec.encode(data).tobytes()
    out = np.empty(len(data), "u1")
    own = liblade.as_array(out)
    count = 3000

    def c():
        return loops.loop_one(codec.pipeline.encode(), ctypes.c_void_p(address(encoded)),
                              ctypes.c_size_t(len(encoded)), ctypes.c_void_p(address(out)),
                              ctypes.c_size_t(len(data)), count)

    calls = [c, repeat(lambda: codec.decode_into(encoded, out), count),
             repeat(lambda: codec.decode_into(encoded, own), count),
             repeat(lambda: codec.decode(encoded, out=out), count),
             repeat(lambda: codec.decode(encoded), count), repeat(lambda: None, count)]
    names = ["decode_into(numpy)", "decode_into(Array)", "decode(out=numpy)", "decode()"]
    if theirs:
        their_bytes = theirs.encode(data)
        calls.append(repeat(lambda: theirs.decode(their_bytes, out=out), count))
    least = best(calls)
    nothing = least[5]
    print(f"{algorithm}, one chunk of 4 KiB: the C call {least[0] * 1e6:.2f} us")
    for name, seconds in zip(names, least[1:5]):
        print(f"    {name:20} {(seconds - nothing - least[0]) * 1e6:+6.2f} us")
    if theirs:
        print(f"    numcodecs            {(least[6] - nothing - least[0]) * 1e6:+6.2f} us")


def many_chunks(loops, algorithm, size, threads):
    count = 10000
    rng = np.random.default_rng(2)
    data = np.cumsum(rng.integers(0, 3, size // 4), dtype="<i4")
    chunks = [(data + i).astype("<i4").tobytes() for i in range(count)]
    codec = liblade.Codec(algorithm=algorithm, bitstream_kind=RAW, threads=threads)
    batch = codec.encode(chunks)
    listed = [a.tobytes() for a in batch]
    block = np.empty(count * size, "u1")
    outs = liblade.as_arrays(block, np.arange(count) * size, np.full(count, size))
    out_list = [block[i * size:(i + 1) * size] for i in range(count)]
    src = (ctypes.c_void_p * count)(*[address(e) for e in listed])
    sizes = (ctypes.c_size_t * count)(*[len(e) for e in listed])
    dst = (ctypes.c_void_p * count)(*[block.ctypes.data + i * size for i in range(count)])
    caps = (ctypes.c_size_t * count)(*[size] * count)

    def c():
        return loops.loop_many(codec.pipeline.encode(), src, sizes, dst, caps,
                               ctypes.c_size_t(count), threads, 1)

    calls = [c, repeat(lambda: codec.decode(listed, out=outs), 1, threads),
             repeat(lambda: codec.decode_into(listed, out_list), 1, threads),
             repeat(lambda: codec.decode(batch, out=outs), 1, threads)]
    least = best(calls, 12)
    print(f"{algorithm}, {count} chunks of {size} bytes, {threads} thread(s): "
          f"the C call {least[0] * 1e3:.2f} ms")
    names = ["list, out=BatchArray", "list, list of numpy", "BatchArray, BatchArray"]
    for name, seconds in zip(names, least[1:]):
        print(f"    {name:24} {(seconds / least[0] - 1) * 100:+6.1f} %")


def main():
    loops = c_loops(sys.argv[1])
    one_chunk(loops, "copy", None)
    one_chunk(loops, "LZ4", numcodecs.LZ4())
    one_chunk(loops, "Zstd", numcodecs.Zstd())
    one_chunk(loops, "zlib", numcodecs.Zlib())
    for threads in (1, 2):
        many_chunks(loops, "LZ4", 4096, threads)
    many_chunks(loops, "Zstd", 16384, 1)


if __name__ == "__main__":
    main()
