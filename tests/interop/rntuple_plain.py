# rntuple_plain.py: a reader of RNTuples in plain Python, one element after the other where that is
# how the format says it: what the C decoder is compared with where no other program reads a cell.
# It knows what liblade's writer writes, and payloads in several keys; it trusts its input.
# SPDX-License-Identifier: Apache-2.0
"""columns("t.root") is, for each column of the file, (field's path, type, elements); elements are
NumPy arrays over all clusters, those of offsets counted from their cluster's start."""
import lzma
import struct
import zlib

import lz4.block
import numpy as np
import zstandard

BITS = "Bit"
NAMES = ("Bit Byte Char Int8 UInt8 Int16 UInt16 Int32 UInt32 Int64 UInt64 Real16 Real32 Real64 "
         "Index32 Index64 Switch SplitInt16 SplitUInt16 SplitInt32 SplitUInt32 SplitInt64 "
         "SplitUInt64 SplitReal16 SplitReal32 SplitReal64 SplitIndex32 SplitIndex64 Real32Trunc "
         "Real32Quant").split()
KINDS = {"Int": "i", "UInt": "u", "Real": "f", "Index": "u", "Byte": "u", "Char": "u"}


class In:
    """A cursor over little-endian numbers."""

    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, size):
        self.at += size
        return self.data[self.at - size : self.at]

    def int(self, size, signed=False):
        return int.from_bytes(self.take(size), "little", signed=signed)

    def text(self):
        return self.take(self.int(4)).decode()

    def record(self):
        begin, size = self.at, self.int(8, True)
        inside = In(self.data, self.at)
        self.at = begin + size
        return inside

    def items(self):
        begin, size, count = self.at, -self.int(8, True), self.int(4)
        inside = In(self.data, self.at)
        self.at = begin + size
        return inside, count

    def locator(self):
        head = self.int(4, True)
        if head >= 0:
            return self.int(8), head
        size = self.int(8)
        return self.int(8), size


class File:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        at = self.data.index(b"\x40\0\0\x42\0\2\0\1")
        anchor = struct.unpack(">IH4H3Q3QQQ", self.data[at : at + 78])
        self.header, self.footer, self.key_max = anchor[6:9], anchor[9:12], anchor[12]

    def payload(self, off, size):
        """Of several keys the first has the others' offsets behind its bytes."""
        n, m = size, self.key_max
        if m == 0 or n <= m:
            return self.data[off : off + n]
        k = -(-n // m)
        if 8 * (k - 1) > k * m - n:
            k += 1
        first = self.data[off : off + m]
        parts = [first[: m - 8 * (k - 1)]]
        for at in struct.unpack(f"<{k - 1}Q", first[m - 8 * (k - 1) :]):
            left = n - sum(map(len, parts))
            parts.append(self.data[at : at + min(left, m)])
        return b"".join(parts)

    def envelope(self, off, size, decoded):
        return In(inflate(self.payload(off, size), decoded), 8)


def inflate(data, want):
    out = b""
    if len(data) == want:
        return data
    while len(out) < want:
        packed, part = (int.from_bytes(data[i : i + 3], "little") for i in (3, 6))
        block, magic = data[9 : 9 + packed], data[:2]
        if magic == b"ZL":
            block = zlib.decompress(block)
        elif magic == b"CS":
            block = zlib.decompress(block, -15)
        elif magic == b"XZ":
            block = lzma.decompress(block)
        elif magic == b"L4":
            block = lz4.block.decompress(block[8:], part)
        else:
            assert magic == b"ZS"
            block = zstandard.ZstdDecompressor().decompress(block, part)
        assert len(block) == part
        out += block
        data = data[9 + packed :]
    assert len(out) == want and not data
    return out


def decode(data, name, bits, count, low, high):
    """The elements of a page."""
    if name == "Bit":
        return np.array([data[i >> 3] >> (i & 7) & 1 for i in range(count)], bool)
    if name == "Switch":
        return np.frombuffer(data, "V12")
    if name.startswith("Real32T") or name.startswith("Real32Q"):
        stream = int.from_bytes(data, "little")
        raw = [stream >> (i * bits) & (1 << bits) - 1 for i in range(count)]
        if name == "Real32Trunc":
            return np.array([q << (32 - bits) for q in raw], "u4").view("f4")
        scale = (high - low) / ((1 << bits) - 1)
        return np.array([min(q * scale + low, high) for q in raw], "f4")
    split, kind = name.startswith("Split"), name.removeprefix("Split").rstrip("0123456789")
    width = bits // 8
    if split:
        data = bytes(data[b * count + i] for i in range(count) for b in range(width))
    whole = [int.from_bytes(data[i : i + width], "little") for i in range(0, len(data), width)]
    if split and kind == "Int":
        whole = [x >> 1 ^ -(x & 1) & (1 << bits) - 1 for x in whole]
    if split and kind == "Index":
        for i in range(1, count):
            whole[i] = whole[i] + whole[i - 1] & (1 << bits) - 1
    return np.array(whole, f"u{width}").view(f"{KINDS[kind]}{width}")


def schema(part, fields, columns):
    items, count = part.items()
    for _ in range(count):
        r = items.record()
        r.take(8)
        parent, role, flags = r.int(4), r.int(2), r.int(2)
        name = r.text()
        top = parent == len(fields)
        fields.append(name if top else f"{fields[parent]}.{name}")
    items, count = part.items()
    for _ in range(count):
        r = items.record()
        name = NAMES[r.int(2)]
        bits, field, flags, representation = (r.int(size) for size in (2, 4, 2, 2))
        assert representation == 0
        if flags & 1:
            r.take(8)
        low, high = struct.unpack("<2d", r.take(16)) if flags & 2 else (0, 0)
        columns.append((fields[field], name, bits, low, high))


def columns(path):
    file, fields, table = File(path), [], []
    header = file.envelope(*file.header)
    header.take(8)
    for _ in range(3):
        header.text()
    schema(header, fields, table)
    footer = file.envelope(*file.footer)
    footer.take(16)
    schema(footer.record(), fields, table)
    parts = [[] for _ in table]
    groups, count = footer.items()
    for _ in range(count):
        group = groups.record()
        group.take(20)
        decoded = group.int(8)
        pages = file.envelope(*group.locator(), decoded)
        pages.take(8)
        pages.items()
        clusters, cluster_count = pages.items()
        for _ in range(cluster_count):
            runs, run_count = clusters.items()
            for c in range(run_count):
                run, page_count = runs.items()
                for _ in range(page_count):
                    n = run.int(4, True)
                    off, size = run.locator()
                    _, name, bits, low, high = table[c]
                    whole = file.payload(off, size + 8 * (n < 0))
                    page = inflate(whole[:size], (abs(n) * bits + 7) // 8)
                    parts[c].append(decode(page, name, bits, abs(n), low, high))
    return [(*column[:2], np.concatenate(p) if p else np.empty(0)) for column, p in
            zip(table, parts)]
