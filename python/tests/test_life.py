"""References, memory over many calls, threads, pickling, processes, sub-interpreters.

SPDX-License-Identifier: Apache-2.0
"""

import gc
import multiprocessing
import os
import pickle
import resource
import subprocess
import sys
import sysconfig
import textwrap
import threading

import numpy as np
import pytest

import liblade
from liblade import Codec

TEXT = b"round and round it goes " * 170


def blocks():
    gc.collect()
    return liblade._lade._memory_stats()[:2]


def test_references_come_back():
    codec = Codec(algorithm="LZ4", bitstream_kind=1)
    x, out = np.frombuffer(TEXT, "u1").copy(), bytearray(len(TEXT))
    encoded = codec.encode(x)
    batch = [encoded, x, "no"]
    config = codec.compression_config(len(TEXT))
    before = [sys.getrefcount(o) for o in (x, out, encoded, batch, codec, config)]
    start = blocks()
    for i in range(200):
        codec.encode(x)
        codec.decode(encoded, out=out)
        codec.decode(encoded, "|u1", out, codec.decompression_config(config))
        codec.decode_into(encoded, out)
        codec.encode([x, x], out=[bytearray(9000), bytearray(9000)])
        codec.decode([encoded] * 3)[1]
        liblade.as_arrays(x, [0, 1], [2, 3])[0]
        liblade.as_arrays([x, out])
        for bad in (lambda: codec.decode(x), lambda: codec.encode(batch), lambda: codec.decode(3),
                    lambda: codec.decode([encoded, x[:5]]), lambda: codec.encode(x, out=b"abc"),
                    lambda: codec.decode([encoded], out=[bytearray(3)]),
                    lambda: codec.decode(encoded, out=bytearray(3)),
                    lambda: codec.decode(encoded, decompression_config=3),
                    lambda: codec.decode([encoded, x[:9]], errors="return")[9]):
            with pytest.raises((TypeError, liblade.Error, ValueError, AttributeError, IndexError)):
                bad()
    assert [sys.getrefcount(o) for o in (x, out, encoded, batch, codec, config)] == before
    assert blocks() == start


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_many_calls_in_flat_memory(kind):
    # LADE_CALLS=1000000 is the long form.
    calls = int(os.environ.get("LADE_CALLS", "60000")) // (6 if kind == 0 else 1)
    codec = Codec(algorithm="LZ4", bitstream_kind=kind)
    encoded, out = codec.encode(TEXT), bytearray(len(TEXT))

    def some(n):
        for _ in range(n):
            codec.decode(encoded)
            codec.decode(encoded, out=out)
            codec.decode_into(encoded, out)

    some(calls // 10)
    start, high = blocks(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    some(calls // 3)
    assert blocks() == start
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - high < 4096  # KiB


def test_results_outlive_everything():
    batch = Codec(algorithm="Zstd").encode([TEXT] * 5)
    got = Codec().decode(batch)
    one = got[3]
    del batch, got
    gc.collect()
    assert one.tobytes() == TEXT
    view = memoryview(one)
    del one
    gc.collect()
    assert bytes(view) == TEXT


@pytest.mark.parametrize("shared", [True, False])
def test_threads(shared):
    codec = Codec(algorithm="Zstd", bitstream_kind=1)
    failures = []

    def work(seed):
        mine = codec if shared else Codec(algorithm="Zstd", bitstream_kind=1, threads=2)
        data = [bytes([seed]) * (i * 100) + TEXT for i in range(20)]
        out = bytearray(10000)
        for _ in range(30):
            encoded = mine.encode(data)
            if [a.tobytes() for a in mine.decode(encoded)] != data:
                failures.append(seed)
            size = mine.decode_into(encoded[5], out)
            if out[:size] != data[5]:
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_one_array_as_everyones_destination():
    codec = Codec(algorithm="Zstd", bitstream_kind=1)
    data = [os.urandom(1000 * i) + bytes(50000 * i) for i in range(1, 9)]
    encoded = [codec.encode(d) for d in data]
    shared = codec.encode(b"")

    def work(i):
        for _ in range(50):
            try:
                codec.decode(encoded[i], out=shared)  # grows, or finds it in use
                shared.tobytes(), codec.encode(shared), shared[:10]
            except ValueError:
                pass

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert codec.decode(encoded[7], out=shared).tobytes() == data[7]


def test_the_gil_is_released():
    codec = Codec(algorithm="Zstd", level=19, bitstream_kind=1, threads=1)
    data = np.random.default_rng(0).integers(0, 50, 1 << 20, dtype="u1")
    ticks, done = [0], threading.Event()

    def tick():
        while not done.is_set():
            ticks[0] += 1
            done.wait(0.001)

    t = threading.Thread(target=tick)
    t.start()
    start = ticks[0]
    codec.encode(data)
    during = ticks[0] - start
    done.set()
    t.join()
    assert during > 1  # a busy machine gives it few turns; the lock would give it none


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="has the GIL always")
def test_the_gil_stays_off():
    """Importing a module that did not say that it can do without would turn it on."""
    code = "import sys, liblade; print(sys._is_gil_enabled())"
    path = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": path})
    assert done.stdout == "False\n", done.stderr


def test_pickled_codecs():
    for codec in (Codec(algorithm="Zstd", level=7, filters=["shuffle(4)"], bitstream_kind=2,
                        threads=2, checksum_policy=3, uncomp_chunk_size=4096), Codec(),
                  Codec(algorithm="LZ4", data_type="<i4", bitshuffle_mode=1, where="host")):
        twin = pickle.loads(pickle.dumps(codec))
        assert twin.pipeline == codec.pipeline and twin.bitstream_kind is codec.bitstream_kind
        assert twin.algorithm == codec.algorithm and twin.threads == codec.threads
        assert twin.uncomp_chunk_size == codec.uncomp_chunk_size
        assert twin.checksum_policy is codec.checksum_policy
        if codec.pipeline:
            assert twin.decode(codec.encode(TEXT)).tobytes() == TEXT


def work_elsewhere(codec):
    return codec.encode([TEXT] * 50).buffer_sizes, codec.decode(codec.encode(TEXT))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes(method):
    codec = Codec(algorithm="Zstd", bitstream_kind=1, threads=2)
    want = codec.encode([TEXT] * 50).buffer_sizes  # its threads run already
    with multiprocessing.get_context(method).Pool(2) as pool:
        for sizes, back in pool.map(work_elsewhere, [codec] * 4):
            assert sizes == want and back.tobytes() == TEXT


SUB = textwrap.dedent("""
    import sys
    sys.path[:] = {path!r}
    import liblade
    c = liblade.Codec(algorithm="LZ4")
    data = b"from below " * 99
    a = c.decode(c.encode([data] * 20))
    assert a[7].tobytes() == data
    try:
        liblade.Codec().decode(b"no")
    except liblade.CorruptError as e:
        assert e.status.startswith("LADE_E_")
    else:
        raise AssertionError("no error")
    liblade.from_dlpack(liblade.as_array(bytearray(data))).tobytes()
    import io  # an object is read by threads of the library, too
    box = io.BytesIO()
    with liblade.open(box, "wb", chunk_size=4096) as f:
        f.write(data * 300)
    box.seek(0)
    with liblade.open(box, threads=4) as f:
        assert f.read() == data * 300
""")

RUNNER = """
import sys, threading, _xxsubinterpreters as si
import liblade
for isolated in (True, False):
    for _ in range(5):
        i = si.create(isolated=isolated) if sys.version_info >= (3, 12) else si.create()
        si.run_string(i, {code!r})
        si.destroy(i)
def run():
    i = si.create()
    si.run_string(i, {code!r})
    si.destroy(i)
threads = [threading.Thread(target=run) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
assert liblade.Codec(algorithm="LZ4").encode(b"abc").buffer_size
print("fine")
"""

RUNNER_313 = """
import sys, threading, _interpreters as si
import liblade
def run(kind="isolated"):
    i = si.create(kind)
    e = si.exec(i, {code!r})
    assert e is None, e
    si.destroy(i)
for _ in range(5):
    run()
    run("legacy")
threads = [threading.Thread(target=run) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
assert liblade.Codec(algorithm="LZ4").encode(b"abc").buffer_size
print("fine")
"""


def test_sub_interpreters():
    runner = RUNNER_313 if sys.version_info >= (3, 13) else RUNNER
    code = runner.format(code=SUB.format(path=sys.path))
    path = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0 and done.stdout == "fine\n", done.stderr


def test_import_is_light():
    code = "import sys, liblade; print(sorted({'numpy', 'ctypes', 'threading'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True,
                          env={"PYTHONPATH": os.path.dirname(os.path.dirname(liblade.__file__))})
    assert done.stdout == "[]\n", done.stderr
