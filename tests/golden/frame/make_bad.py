#!/usr/bin/env python3
"""Makes the bad frames from good ones: each has one fault behind checks that are right again.

usage: make_bad.py        (in tests/golden/frame; writes bad/*.lade)

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from frame_reader import check, pad, xxh64  # noqa: E402


def load(name):
    return bytearray((HERE / "good" / f"{name}.lade").read_bytes())


def put(frame, off, fmt, value):
    struct.pack_into(fmt, frame, off, value)


def reseal(frame):
    """Sets the checks of the header, the chunks, a single page, the list and the footer."""
    header = struct.unpack_from("<I", frame, 12)[0]
    foot = len(frame) - 64
    put(frame, header - 8, "<Q", xxh64(bytes(frame[:header - 8])))
    frame[foot + 32:foot + 40] = frame[header - 8:header]
    off, index = header, 0
    while frame[off:off + 4] == b"CHNK":
        size = struct.unpack_from("<I", frame, off + 4)[0]
        spec = struct.unpack_from("<H", frame, off + 14)[0]
        head, own = bytes(frame[off:off + 24]), bytes(frame[off + 32:off + 32 + spec])
        put(frame, off + 24, "<Q", check(head, own, index))
        off, index = off + 32 + pad(spec) + pad(size), index + 1
    if frame[off:off + 4] == b"PAGE":
        body = bytes(frame[off + 32:off + 32 + 8 * index])
        put(frame, off + 24, "<Q", check(bytes(frame[off:off + 24]), body, 0))
    at = foot - 48
    put(frame, at + 24, "<Q", check(bytes(frame[at:at + 24]), bytes(frame[at + 32:at + 40]), 0))
    put(frame, foot + 48, "<Q", xxh64(bytes(frame[foot:foot + 48])))


def save(name, frame, sealed=True):
    if sealed:
        reseal(frame)
    (HERE / "bad" / f"{name}.lade").write_bytes(frame)


def main():
    good = load("stored")  # 5 chunks: 0x40, 0xa0, ...; page, list 48, footer 64
    foot = len(good) - 64

    frame = load("stored")
    save("LADE_E_TRUNCATED.no-footer", frame[:foot], False)
    save("LADE_E_TRUNCATED.one-byte-short", frame[:-1], False)
    frame = load("stored")
    put(frame, 8, "<H", 2)
    save("LADE_E_VERSION.version-2", frame)
    frame = load("stored")
    frame[5] = 0x0A
    save("LADE_E_CORRUPT.line-ends-translated", frame)
    frame = load("stored")
    frame[0x41 + 32] ^= 1
    save("LADE_E_CHECKSUM.payload", frame, False)
    frame = load("stored")
    frame[20] ^= 1
    save("LADE_E_CHECKSUM.header", frame, False)
    frame = load("stored")
    put(frame, 0x40 + 12, "<H", 16)
    save("LADE_E_UNSUPPORTED.chunk-flag", frame)
    frame = load("stored")
    put(frame, foot - 48 + 32, "<Q", 0x40)
    save("LADE_E_CORRUPT.page-among-the-chunks", frame)
    frame = load("stored")
    put(frame, foot - 48 + 32, "<Q", foot - 48)
    save("LADE_E_CORRUPT.page-is-the-list", frame)
    frame = load("stored")
    put(frame, foot + 24, "<Q", 1 << 60)
    save("LADE_E_CORRUPT.frame-size", frame)
    frame = load("stored")
    put(frame, foot + 8, "<Q", (1 << 64) - 2)
    put(frame, 16, "<Q", (1 << 64) - 2)
    put(frame, foot + 16, "<Q", ((1 << 64) - 2) // 64 + 1)
    save("LADE_E_CORRUPT.more-chunks-than-bytes", frame)
    frame = load("constant")
    frame[struct.unpack_from("<I", frame, 12)[0] + 32 + 4] = 7
    save("LADE_E_CORRUPT.padding", frame, False)
    frame = load("deflate-no-sums")
    save("LADE_E_NO_CHECKSUM.none-stored", frame)
    frame = load("own-spec")
    at = bytes(frame).index(b"CHNK", 0x80)
    put(frame, at + 14, "<H", 2049)
    save("LADE_E_CORRUPT.spec-too-long", frame, False)


if __name__ == "__main__":
    main()
