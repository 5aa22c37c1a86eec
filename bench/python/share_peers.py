"""share_peers.py: how long a NumPy array takes from one process to another, four ways.

    share_peers.py [MIB]    (the lade command on the PATH, or LADE_COMMAND; pyarrow)

The parent hands an array over, the child sums its first and last element and answers. The time is
from the hand-over to the answer; p50 and p99 of the rounds, of an array of MIB (64) and of 80
bytes. Publishing includes a copy everywhere; "in place" fills the memory before the clock starts.

SPDX-License-Identifier: Apache-2.0
"""

import multiprocessing as mp
import os
import pickle
import platform
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from multiprocessing import shared_memory

import numpy as np
import pyarrow as pa

import liblade.share


def take(sock, size):
    data = bytearray(size)
    view = memoryview(data)
    while view:
        view = view[sock.recv_into(view) :]
    return data


def look(values):
    return float(values[0]) + float(values[-1])


def child(way, sock, path):
    """Answers each message with the sum."""
    share = liblade.share.connect(path) if way.startswith("liblade") else None
    while size := struct.unpack("<Q", take(sock, 8))[0]:
        if way == "pickle":
            found = look(pickle.loads(take(sock, size)))
        elif way == "pyarrow":
            found = look(pa.ipc.open_stream(take(sock, size)).read_all()[0].to_numpy())
        elif way == "shared_memory":
            name, count = pickle.loads(take(sock, size))
            memory = shared_memory.SharedMemory(name=name)
            values = np.ndarray(count, dtype="f8", buffer=memory.buf)
            found = look(values)
            del values
            memory.close()
        else:
            found = look(np.asarray(share.get(take(sock, size).decode()).numbers()))
        sock.sendall(struct.pack("<d", found))


def hand_over(way, sock, values, share):
    if way == "pickle":
        data = pickle.dumps(values, protocol=5)
    elif way == "pyarrow":
        sink = pa.BufferOutputStream()
        table = pa.table({"v": values})
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        data = sink.getvalue()
    elif way == "shared_memory":
        memory = shared_memory.SharedMemory(create=True, size=values.nbytes)
        np.ndarray(values.shape, dtype="f8", buffer=memory.buf)[:] = values
        data = pickle.dumps((memory.name, len(values)))
    else:
        share.publish("x", values)
        data = b"x"
    sock.sendall(struct.pack("<Q", len(data)))
    sock.sendall(data)
    answer = struct.unpack("<d", take(sock, 8))[0]
    if way == "shared_memory":
        memory.close()
        memory.unlink()
    assert answer == look(values)


def measure(way, size, rounds, path):
    ours, theirs = socket.socketpair()
    process = mp.get_context("spawn").Process(target=child, args=(way, theirs, path))
    process.start()
    theirs.close()
    share = liblade.share.connect(path) if way.startswith("liblade") else None
    values = np.arange(size // 8, dtype="f8")
    times = []
    for _ in range(rounds + 3):
        if way == "liblade, in place":
            memory = np.asarray(share.empty(size)).view("f8")
            memory[:] = values
            values = memory
        begin = time.perf_counter()
        hand_over(way, ours, values, share)
        times.append(time.perf_counter() - begin)
    ours.sendall(struct.pack("<Q", 0))
    process.join()
    times = sorted(times[3:])
    return times[len(times) // 2] * 1e6, times[len(times) * 99 // 100] * 1e6


def main():
    large = int(sys.argv[1] if len(sys.argv) > 1 else 64) << 20
    lade = os.environ.get("LADE_COMMAND") or shutil.which("lade")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "s")
        broker = subprocess.Popen([lade, "share", "serve", "--socket", path])
        while not os.path.exists(path):
            time.sleep(0.01)
        print(f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}")
        print(f"{'way':24} {'80 B p50':>10} {'p99 us':>10} {large >> 20:>7} MiB p50 {'p99 us':>10}")
        ways = ("pickle", "pyarrow", "shared_memory", "liblade", "liblade, in place")
        for way in ways:
            small = measure(way, 80, 1000, path)
            big = measure(way, large, 30, path)
            print(f"{way:24} {small[0]:10.0f} {small[1]:10.0f} {big[0]:15.0f} {big[1]:10.0f}")
        broker.terminate()
        broker.wait()


if __name__ == "__main__":
    main()
