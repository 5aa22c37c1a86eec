#!/usr/bin/env python3
"""A second decoder of ANS chunks, written from docs/format/ans.md alone.

usage: ans_reader.py CHUNK              writes the decoded bytes to stdout

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import struct
import sys

RAW, CONSTANT, CODED = 0, 1, 2               # kinds of chunks
PLANE_CONSTANT, PLANE_RAW, PLANE_CODED = 0, 1, 2
LENGTHS_4, LENGTHS_8, STORED = 0, 1, 2       # kinds of sub-blocks


class Bad(Exception):
    def __init__(self, status, what):
        super().__init__(f"{status}: {what}")
        self.status = status


def want(condition, what, status="LADE_E_CORRUPT"):
    if not condition:
        raise Bad(status, what)


def pad(n, to):
    return -(-n // to) * to


def frequencies(text, n):
    """{symbol: frequency} of a table's description, which is all of 'text'."""
    present = int.from_bytes(text[:32], "little")
    symbols = [s for s in range(256) if present >> s & 1]
    at = 32 + (len(symbols) + 1) // 2
    want(at <= len(text), "a table's lengths")
    lengths = [text[32 + i // 2] >> 4 * (i % 2) & 15 for i in range(len(symbols))]
    want(all(q <= n for q in lengths), "a frequency's length")
    want(pad(at + (sum(lengths) + 7) // 8, 4) == len(text), "a table's size")
    mantissas, out = int.from_bytes(text[at:], "little"), {}
    for s, q in zip(symbols, lengths):
        out[s] = 1 << q | mantissas & (1 << q) - 1
        mantissas >>= q
    want(sum(out.values()) == 1 << n, "the frequencies' sum")
    return out


def table_of(text, n):
    """The table of a description: for state X, entry X - L is (symbol, b, y)."""
    return [(symbol, n + 1 - y.bit_length(), y)
            for symbol, f in frequencies(text, n).items() for y in range(f, 2 * f)]


def decode_lane(bits, size, tables, n, groups):
    """The symbols of a lane, whose string is the lowest 'size' bits of 'bits': 4 for each of
    'groups' and each table."""
    left, out = bits.bit_length() - (n + 1), []
    want(size - bits.bit_length() <= 15, "a 1 among the first 16 bits")
    want(left >= 0, "a lane's state")
    state = bits >> left
    last = 4 * len(tables) * groups
    for _ in range(groups):
        for table in tables:
            for _ in range(4):
                symbol, b, y = table[state - (1 << n)]
                out.append(symbol)
                if len(out) < last:
                    left -= b
                    want(left >= 0, "a lane's bits")
                    state = y << b | bits >> left & (1 << b) - 1
    want(left == 0, "a lane's string that is used up")
    return out


def lanes_of(data, kind, most):
    """The 32 strings, as (bits, number of bits), of what follows the raw planes of a sub-block."""
    want(len(data) >= (32 if kind == LENGTHS_8 else 16), "lengths")
    if kind == LENGTHS_8:
        lengths, data = list(data[:32]), data[32:]
    else:
        lengths, data = [data[i // 2] >> 4 * (i % 2) & 15 for i in range(32)], data[16:]
    rest = len(data) // 2 - sum(lengths)
    full, padding = divmod(rest, 64)
    want(rest >= 0 and padding <= 7, "the halves of all lanes")
    halves = [d + 2 * full for d in lengths]
    want(max(halves) <= 2 * most, "words of a lane")
    strings, at = [b""] * 32, 0
    for row in range(most):
        for lane in range(32):
            length = min(max(2 * halves[lane] - 4 * row, 0), 4)
            strings[lane] += data[at:at + length]
            at += length
    return [(int.from_bytes(s, "little"), 8 * len(s)) for s in strings]


def decode_sub_block(data, kind, w, count, planes, tables, n, most):
    """count elements of w bytes; planes are (mode, byte)."""
    want(kind <= STORED, "a sub-block's kind")
    if kind == STORED:
        want(len(data) == pad(count * w, 16), "a stored sub-block's size")
        return data[:count * w]
    out, at, coded = bytearray(count * w), 0, []
    for position, (mode, byte) in enumerate(planes):
        if mode == PLANE_CONSTANT:
            out[position::w] = bytes([byte]) * count
        elif mode == PLANE_RAW:
            want(at + count <= len(data), "raw planes")
            out[position::w] = data[at:at + count]
            at += count
        else:
            coded.append(position)
    if not coded:
        want(len(data) - at <= 15, "bytes behind the raw planes")
        return bytes(out)
    units = count // 4
    for lane, (bits, size) in enumerate(lanes_of(data[at:], kind, most)):
        mine = [32 * g + (lane + g) % 32 for g in range(-(-units // 32))]
        mine = [unit for unit in mine if unit < units]
        want(bool(mine) == bool(size), "a lane with bits and without symbols, or without and with")
        if not mine:
            continue
        symbols = iter(decode_lane(bits, size, tables, n, len(mine)))
        for unit in mine:
            for position in coded:
                for element in range(4 * unit, 4 * unit + 4):
                    out[element * w + position] = next(symbols)
    return bytes(out)


def uncrossed(data):
    """Elements of 2 bytes, whose bits 7 and 15 had changed places."""
    out = bytearray()
    for (v,) in struct.iter_unpack("<H", data):
        out += struct.pack("<H", v & 0x7F7F | v >> 8 & 0x80 | v << 8 & 0x8000)
    return bytes(out)


def decode_coded(data, w, crossed, log2_b, size, cap, first, past):
    tail = size % (4 * w)
    whole = size - tail
    blocks = -(-whole >> log2_b)
    most, n = data[8:10]
    want(size >= 4 * w and 9 <= n <= 11, "the header's fields")
    at = pad(10 + 2 * w, 4)
    want(len(data) >= at + 4 * (blocks + 1), "the directory", "LADE_E_TRUNCATED")
    planes = [tuple(data[10 + 2 * i:12 + 2 * i]) for i in range(w)]
    words = []
    for mode, byte in planes:
        want(mode <= PLANE_CODED and not (mode == PLANE_RAW and byte), "a plane's mode")
        if mode == PLANE_CODED:
            want(byte <= 64, "words of a table")
            words.append(byte)
    want(len(words) << n <= 4096, "states of all tables")
    want(most <= ((1 << log2_b) // (32 * w) * len(words) * n + 47) // 32, "words of a lane")
    entries = struct.unpack_from(f"<{blocks + 1}I", data, at)
    offsets = [16 * (e & (1 << 28) - 1) for e in entries]
    at += 4 * (blocks + 1)
    want(len(data) >= pad(at + 4 * sum(words), 16), "the tables", "LADE_E_TRUNCATED")
    want(offsets[0] == pad(at + 4 * sum(words), 16), "the directory's first entry")
    want(entries[-1] >> 28 == 0, "the directory's last entry")
    want(len(data) >= offsets[-1] + tail, "the sub-blocks", "LADE_E_TRUNCATED")
    want(len(data) == offsets[-1] + tail, "bytes behind the tail")
    want(past - first <= cap, "the destination", "LADE_E_NOSPACE")
    tables = []
    for count in words:
        tables.append(table_of(data[at:at + 4 * count], n))
        at += 4 * count

    out = bytearray()
    for i in range(blocks):
        at = i << log2_b
        length = min(1 << log2_b, whole - at)
        if at >= past or at + length <= first:
            continue
        want(offsets[0] <= offsets[i] <= offsets[i + 1] <= offsets[-1], "offsets that fall")
        part = data[offsets[i]:offsets[i + 1]]
        kind = entries[i] >> 28
        part = decode_sub_block(part, kind, w, length // w, planes, tables, n, most)
        if crossed and kind != STORED:
            part = uncrossed(part)
        out += part[max(first - at, 0):min(past - at, length)]
    rest = len(data) - tail
    return bytes(out + data[rest + max(first - whole, 0):rest + max(past - whole, 0)])


def decode(data, cap=1 << 64, first=0, past=1 << 64):
    """The bytes first to past - 1 of a chunk, for a destination of 'cap' bytes; raises Bad."""
    want(len(data) >= 16, "the header", "LADE_E_TRUNCATED")
    version, kind, form, log2_b, size = struct.unpack_from("<4BI", data)
    crossed = kind == CODED and form == 16 | 1
    log2_w = form - 16 * crossed
    want(version == 1 and kind <= CODED and log2_w <= 3 and size < 1 << 31, "the header's fields")
    past = min(past, size)
    w = 1 << log2_w
    if kind == CODED:
        want(12 <= log2_b <= 14, "the size of sub-blocks")
        return decode_coded(data, w, crossed, log2_b, size, cap, first, past)
    want(log2_b == 0, "the size of sub-blocks in a chunk that has none")
    want(not any(data[8 + (w if kind == CONSTANT else 0):16]), "the header's zeros")
    end = 16 + (size if kind == RAW else 0)
    want(len(data) >= end, "the bytes", "LADE_E_TRUNCATED")
    want(len(data) == end, "bytes behind the chunk")
    want(past - first <= cap, "the destination", "LADE_E_NOSPACE")
    if kind == RAW:
        return data[16 + first:16 + past]
    return (data[8:8 + w] * -(-past // w))[first:past]


if __name__ == "__main__":
    sys.stdout.buffer.write(decode(pathlib.Path(sys.argv[1]).read_bytes()))
