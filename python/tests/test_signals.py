"""Ctrl-C reaches calls that take long: at most 100 ms and one chunk's time later.

SPDX-License-Identifier: Apache-2.0
"""
import io
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import liblade

LATEST = 1.0  # seconds from the signal to the exception; a busy machine's, and chunks take 50 ms


def hard(size):
    """Bytes that the slowest level works on for long: about a second for two MiB."""
    return bytes((i * i >> 7) * (i % 31) & 255 for i in range(1 << 16)) * (size >> 16)


@pytest.fixture
def interrupted():
    """interrupted(call): runs it, with a SIGINT after a while, and tells how long it went on."""

    def run(call, after=0.15):
        sent = []
        begun = threading.Event()

        def send():
            begun.wait()
            time.sleep(after)
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=send)
        thread.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                begun.set()
                call()
            ended = time.monotonic()
        finally:
            thread.join()
        return ended - sent[0]

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield run
    signal.signal(signal.SIGINT, before)


DATA = hard(24 << 20)
SLOW = "zstd(level=19)"


def test_encode_a_frame(interrupted):
    codec = liblade.Codec(algorithm=SLOW, threads=1)
    assert interrupted(lambda: codec.encode(DATA)) < LATEST
    # The codec works as before.
    assert bytes(codec.decode(codec.encode(DATA[:100000]))) == DATA[:100000]


@pytest.mark.parametrize("kind", ["NVCOMP_NATIVE", "RAW"])
def test_encode_a_list(interrupted, kind):
    pieces = [DATA[i : i + 65536] for i in range(0, len(DATA), 65536)]
    codec = liblade.Codec(algorithm=SLOW, bitstream_kind=getattr(liblade.BitstreamKind, kind))
    assert interrupted(lambda: codec.encode(pieces)) < LATEST
    assert interrupted(lambda: codec.encode(pieces, errors="return")) < LATEST


def test_decode_a_list(interrupted):
    codec = liblade.Codec(algorithm="deflate", bitstream_kind=liblade.BitstreamKind.RAW, threads=1)
    encoded = bytes(codec.encode(DATA[:65536]))
    many = [encoded] * 30000
    out = bytearray(65536)
    assert len(codec.decode(many[:3])) == 3
    assert interrupted(lambda: codec.decode(many)) < LATEST
    assert interrupted(lambda: [codec.decode_into(encoded, out) for _ in range(10**6)]) < LATEST


def test_decode_a_frame(interrupted):
    codec = liblade.Codec(algorithm="deflate", threads=1, uncomp_chunk_size=65536)
    encoded = bytes(codec.encode(DATA * 30))
    # Of a call that has begun: no code of the interpreter's runs in between.
    assert interrupted(lambda: codec.decode(encoded)) < LATEST


@pytest.mark.parametrize("name", ["x.lade", "x.zst", "x.gz", "x.lz4"])
def test_write_a_file(interrupted, tmp_path, name):
    options = {
        "x.lade": {"spec": SLOW, "chunk_size": 65536},
        "x.zst": {"level": 19},
        "x.gz": {"level": 12},
        "x.lz4": {"level": 12},
    }[name]

    def write():
        with liblade.open(tmp_path / name, "wb", **options) as file:
            while True:
                file.write(DATA)

    assert interrupted(write) < LATEST


@pytest.mark.parametrize(
    "name, pipe", [("x.lade", True), ("x.lade", False), ("x.zst", False), ("x.gz", True)]
)
def test_read_a_file(interrupted, tmp_path, name, pipe):
    with liblade.open(tmp_path / name, "wb", level=None if name == "x.lade" else 1) as file:
        for _ in range(8):
            file.write(DATA)
    stored = (tmp_path / name).read_bytes()

    class Pipe(io.RawIOBase):
        """Cannot be read anywhere."""

        def __init__(self):
            self.inner = io.BytesIO(stored)

        def readable(self):
            return True

        def readinto(self, buffer):
            return self.inner.readinto(buffer)

    def read():
        while True:
            with liblade.open(Pipe() if pipe else tmp_path / name, "rb") as file:
                file.read()

    assert interrupted(read) < LATEST


def test_suggest(interrupted):
    assert interrupted(lambda: liblade.suggest(DATA, dtype="<i4", seconds=0.5)) < LATEST


def test_a_handler_that_returns():
    """Handlers run while a call works, and need not end it."""
    came = []
    before = signal.signal(signal.SIGALRM, lambda *_: came.append(time.monotonic()))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
        codec = liblade.Codec(algorithm=SLOW, threads=1)
        start = time.monotonic()
        encoded = codec.encode(DATA[: 4 << 20])
        took = time.monotonic() - start
        signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert bytes(codec.decode(encoded)) == DATA[: 4 << 20]
    assert len(came) >= int(took / 0.1 / 3)


def test_in_another_thread(interrupted):
    """A call of another thread goes on; the main thread gets the exception."""
    codec = liblade.Codec(algorithm=SLOW, threads=1)
    got = []
    thread = threading.Thread(target=lambda: got.append(codec.encode(DATA[: 4 << 20])))
    thread.start()
    assert interrupted(lambda: [time.sleep(0.01) for _ in range(3000)]) < LATEST
    thread.join()
    assert bytes(codec.decode(got[0])) == DATA[: 4 << 20]


def test_a_program():
    """As a user does it: Ctrl-C on a program that encodes."""
    code = """
        import liblade, signal
        # A shell's background jobs ignore it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        data = bytes((i * i >> 7) * (i % 31) & 255 for i in range(1 << 16)) * 1600
        print("ready", flush=True)
        liblade.Codec(algorithm="zstd(level=19)", threads=1).encode(data)
    """
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    sent = time.monotonic()
    _, error = child.communicate(timeout=60)
    # With the interpreter's end, on a busy machine; the call alone would take a minute.
    assert time.monotonic() - sent < 15
    assert b"KeyboardInterrupt" in error
    assert child.returncode in (-signal.SIGINT, 1, 130)
