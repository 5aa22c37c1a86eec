#!/usr/bin/env python3
"""A second reader of .lade frames, written from docs/format/frame.md and spec.md alone.

usage: frame_reader.py FRAME            writes the decoded bytes to stdout
       frame_reader.py --check DIR      every DIR/*.lade gives the DIR/*.bin beside it

It reads from the front like a pipe's reader and again by the index, and wants both to agree.
It knows the stages copy, lz4, zlib, deflate, gzip, shuffle and the CRC stages at the end.

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import struct
import sys
import zlib

MASK = (1 << 64) - 1
UNKNOWN = MASK


class Bad(Exception):
    pass


def want(condition, what):
    if not condition:
        raise Bad(what)


# ---- hashes --------------------------------------------------------------------------------

P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def rotl(x, r):
    return (x << r | x >> (64 - r)) & MASK


def round64(acc, lane):
    return rotl((acc + lane * P2) & MASK, 31) * P1 & MASK


def xxh64(data, seed=0):
    n, i = len(data), 0
    if n >= 32:
        acc = [(seed + P1 + P2) & MASK, (seed + P2) & MASK, seed, (seed - P1) & MASK]
        while n - i >= 32:
            lanes = struct.unpack_from("<4Q", data, i)
            acc = [round64(a, lane) for a, lane in zip(acc, lanes)]
            i += 32
        h = sum(rotl(a, r) for a, r in zip(acc, (1, 7, 12, 18))) & MASK
        for a in acc:
            h = ((h ^ round64(0, a)) * P1 + P4) & MASK
    else:
        h = (seed + P5) & MASK
    h = (h + n) & MASK
    while n - i >= 8:
        h = (rotl(h ^ round64(0, struct.unpack_from("<Q", data, i)[0]), 27) * P1 + P4) & MASK
        i += 8
    if n - i >= 4:
        h = (rotl(h ^ struct.unpack_from("<I", data, i)[0] * P1 & MASK, 23) * P2 + P3) & MASK
        i += 4
    for byte in data[i:]:
        h = rotl(h ^ byte * P5 & MASK, 11) * P1 & MASK
    h = (h ^ h >> 33) * P2 & MASK
    h = (h ^ h >> 29) * P3 & MASK
    return h ^ h >> 32


def check(first, rest, seed):
    """The check of two pieces: the first one's hash is the second one's seed."""
    return xxh64(rest, xxh64(first, seed))


CRC32C = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    CRC32C.append(byte)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC32C[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


# ---- specs ---------------------------------------------------------------------------------

def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 128:
            return value, at


def parse_spec(data):
    """[(id, {option: raw number})]; all options of the stages known here are varints."""
    want(data[0] == 1 and 1 <= data[1] <= 16, "spec version and stages")
    stages, at = [], 2
    for _ in range(data[1]):
        number, count = struct.unpack_from("<HB", data, at)
        options, at = {}, at + 3
        for _ in range(count):
            index = data[at]
            options[index], at = varint(data, at + 1)
        stages.append((number, options))
    want(at == len(data), "bytes behind the spec")
    return stages


def unlz4(src):
    out, i = bytearray(), 0
    while i < len(src):
        token = src[i]
        i += 1
        lengths = []
        for length in (token >> 4, token & 15):
            if lengths:  # literals and offset stand before the match's length
                out += src[i:i + lengths[0]]
                i += lengths[0]
                if i >= len(src):
                    return bytes(out)
                offset = src[i] | src[i + 1] << 8
                i += 2
            if length == 15:
                while True:
                    length += src[i]
                    i += 1
                    if src[i - 1] != 255:
                        break
            lengths.append(length)
        for _ in range(lengths[1] + 4):
            out.append(out[-offset])
    return bytes(out)


def unshuffle(src, size):
    count = len(src) // size
    out = bytearray(src)
    for j in range(size):
        out[j:count * size:size] = src[j * count:(j + 1) * count]
    return bytes(out)


def decode(stages, data):
    for number, options in reversed(stages):
        if number == 1:
            pass
        elif number == 2:
            data = unlz4(data)
        elif number in (5, 6, 7):
            data = zlib.decompress(data, {5: -15, 6: 15, 7: 31}[number])
        elif number == 32:
            size = options[0] >> 1  # zigzag of a positive number
            data = unshuffle(data, size)
        elif number in (64 + 1, 64 + 2):
            data, stored = data[:-4], struct.unpack("<I", data[-4:])[0]
            want(stored == (zlib.crc32(data) if number == 65 else crc32c(data)), "CRC stage")
        else:
            raise Bad(f"stage {number} is not known here")
    return data


# ---- the frame -----------------------------------------------------------------------------

def pad(n):
    return (n + 15) // 16 * 16


class Frame:
    def __init__(self, data):
        self.data = data
        want(data[:8] == b"\x89LADE\r\n\x1a", "magic")
        (version, flags, self.header, self.total, self.chunk_size, spec_size, self.checksum,
         self.dtype, self.ndim) = struct.unpack_from("<HHIQIHBBB", data, 8)
        want(version == 1 and flags < 4, "version and flags")
        want(self.header == pad(40 + 8 * self.ndim + spec_size + 8), "header size")
        self.check = struct.unpack_from("<Q", data, self.header - 8)[0]
        want(xxh64(data[:self.header - 8]) == self.check, "header's XXH64")
        self.shape = struct.unpack_from(f"<{self.ndim}Q", data, 40) if flags & 1 else None
        at = 40 + 8 * self.ndim
        self.spec = parse_spec(data[at:at + spec_size])
        want(not any(data[33:40]), "zeros of the header")
        want(not any(data[at + spec_size:self.header - 8]), "zeros behind the spec")

    def chunk(self, off, index):
        """(decoded bytes, offset of what follows, entry)"""
        fields = struct.unpack_from("<4sIIHHQQ", self.data, off)
        mark, size, decoded, flags, spec_size, stored, own = fields
        want(mark == b"CHNK", f"mark of chunk {index}")
        spec = self.data[off + 32:off + 32 + spec_size]
        want(check(self.data[off:off + 24], spec, index) == own, f"check of chunk {index}")
        at = off + 32 + pad(spec_size)
        payload = self.data[at:at + size]
        end = at + pad(size)
        want(not any(self.data[at + size:end]), "zeros behind the payload")
        if flags == 1:
            out = payload
        elif flags == 2:
            out = payload * (decoded // size)
        else:
            want(flags in (0, 4) and size < decoded, "flags")
            out = decode(parse_spec(spec) if flags == 4 else self.spec, payload)
        want(len(out) == decoded and 0 < decoded <= self.chunk_size, "decoded size")
        if self.checksum:
            made = {2: crc32c, 14: xxh64}[self.checksum](out)
            want(made == stored, f"checksum of chunk {index}")
        else:
            want(stored == 0, "a checksum in a frame without")
        return out, end, self.data[off + 4:off + 8] + self.data[off + 12:off + 16]

    def forward(self):
        off, index, out, pages, entries, first_off = self.header, 0, [], [], [], self.header
        while True:
            mark = self.data[off:off + 4]
            if mark == b"CHNK" and len(entries) < 4096:
                piece, off, entry = self.chunk(off, index)
                out.append(piece)
                entries.append(entry)
                index += 1
            elif mark == b"PAGE":
                body = b"".join(entries)
                head = struct.pack("<4sIQQ", b"PAGE", len(entries), index - len(entries), first_off)
                page = head + struct.pack("<Q", check(head, body, 0)) + body
                page += bytes(pad(len(page)) - len(page))
                want(self.data[off:off + len(page)] == page, "index page")
                pages.append(off)
                off += len(page)
                first_off, entries = off, []
            else:
                break
        want(not entries, "a page behind the last chunk")
        body = struct.pack(f"<{len(pages)}Q", *pages)
        head = struct.pack("<4sIQQ", b"LIST", 0, len(pages), index)
        end = head + struct.pack("<Q", check(head, body, 0)) + body
        end += bytes(pad(len(end)) - len(end))
        out = b"".join(out)
        size = off + len(end) + 64
        foot = struct.pack("<4sIQQQQQ", b"FOOT", 0, len(out), index, size, self.check, 0)
        end += foot + struct.pack("<Q", xxh64(foot)) + b"\x1a\n\rEDAL\x89"
        want(self.data[off:] == end, "list and footer")
        want(self.total in (len(out), UNKNOWN), "total size")
        return out

    def by_index(self):
        total, chunks, size = struct.unpack_from("<QQQ", self.data, len(self.data) - 56)
        want(size == len(self.data) and chunks == -(-total // self.chunk_size), "footer")
        pages = -(-chunks // 4096)
        at = len(self.data) - 64 - pad(32 + 8 * pages) + 32
        out = [None] * chunks
        for page in reversed(struct.unpack_from(f"<{pages}Q", self.data, at)):
            count, first, off = struct.unpack_from("<IQQ", self.data, page + 4)
            for i in range(count):
                out[first + i], off, _ = self.chunk(off, first + i)
            want(off == page, "the chunks end where their page begins")
        return b"".join(out)


def read(data):
    frame = Frame(data)
    out = frame.forward()
    want(frame.by_index() == out, "both ways agree")
    return out


def main(args):
    if len(args) == 1:
        sys.stdout.buffer.write(read(pathlib.Path(args[0]).read_bytes()))
        return 0
    if len(args) != 2 or args[0] != "--check":
        print(__doc__, file=sys.stderr)
        return 2
    failed = count = 0
    for path in sorted(pathlib.Path(args[1]).glob("*.lade")):
        count += 1
        try:
            want(read(path.read_bytes()) == path.with_suffix(".bin").read_bytes(), "other bytes")
        except (Bad, struct.error, zlib.error, IndexError, KeyError) as error:
            print(f"{path.name}: {type(error).__name__}: {error}")
            failed += 1
    print(f"{count} frames, {failed} wrong")
    return failed != 0 or count == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
