#!/usr/bin/env python3
"""A second decoder of cascaded chunks, written from docs/format/cascaded.md alone.

usage: cascaded_reader.py CHUNK         writes the decoded bytes to stdout

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import struct
import sys

import bitcomp_reader

OUTER, DIFFERENCES, INNER, PARTS, ROTATED = 1, 2, 4, 8, 16


class Bad(Exception):
    def __init__(self, status, what):
        super().__init__(f"{status}: {what}")
        self.status = status


def want(condition, what, status="LADE_E_CORRUPT"):
    if not condition:
        raise Bad(status, what)


def ceil(a, b):
    return -(-a // b)


def unpack(data, at, entries, width):
    """Entries of 'width' bits, from data[at]'s lowest bit on: 32 of them are 4 * width bytes."""
    out = []
    for first in range(0, entries, 32):
        bits = int.from_bytes(data[at + first // 8 * width:at + (first // 8 + 4) * width], "little")
        for i in range(min(32, entries - first)):
            out.append(bits >> i * width & (1 << width) - 1)
    return out


def repeat(values, counts, total, what):
    want(sum(counts) + len(counts) == total, f"{what} sum up to {total}")
    return [v for v, count in zip(values, counts) for _ in range(count + 1)]


def decode_block(block, size_e, n, room):
    """The n elements of a coded block; 'block' is its units, 'room' is half of a block's bytes."""
    want(len(block) >= 16, "a block's header")
    layers, width, outer_width, inner_width, outer, inner = struct.unpack_from("<4B2H", block)
    want(layers < 32 and (layers & DIFFERENCES or not layers & INNER), "layers")
    parts = []  # entries and width of each
    if layers & PARTS:
        want(not layers & (OUTER | INNER), "parts beside runs")
        each, less = 1024 // size_e, outer | inner << 16
        parts = [(min(each, n - at), max(width - (less >> 4 * (at // each) & 15), 0))
                 for at in range(0, n, each)]
        outer = inner = 0
    want(width <= 8 * size_e, "width")
    for bit, bits, runs in ((OUTER, outer_width, outer), (INNER, inner_width, inner)):
        want(bits <= 13 if layers & bit else bits == runs == 0, "a layer's width and runs")
    n1 = outer if layers & OUTER else n
    n2 = inner if layers & INNER else n1
    want(1 <= n2 <= n1 <= n, "numbers of elements")
    if layers & (OUTER | INNER):
        need = len(block) + 16 * ceil(n2 * size_e, 16)
        if layers & OUTER and layers & INNER:
            need += 16 * ceil(n1 * size_e, 16)
        want(need <= room, "room")

    at_outer = 24 if layers & DIFFERENCES else 16
    at_inner = at_outer + 4 * ceil(outer * outer_width, 32)
    at_values = at_inner + 4 * ceil(inner * inner_width, 32)
    if not layers & PARTS:
        parts = [(n2, width)]
    end = at_values + sum(4 * ceil(entries * bits, 32) for entries, bits in parts)
    want(16 * ceil(end, 16) == len(block), "a block's units")

    mask = (1 << 8 * size_e) - 1
    base = int.from_bytes(block[8:16], "little")
    values = []
    for entries, bits in parts:
        values += [base + v & mask for v in unpack(block, at_values, entries, bits)]
        at_values += 4 * ceil(entries * bits, 32)
    if layers & ROTATED:
        values = [v >> 1 | (v & 1) << 8 * size_e - 1 for v in values]
    if layers & INNER:
        values = repeat(values, unpack(block, at_inner, inner, inner_width), n1, "inner counts")
    if layers & DIFFERENCES:
        total = int.from_bytes(block[16:24], "little")
        for i, v in enumerate(values):
            total = total + v & mask
            values[i] = total
    if layers & OUTER:
        values = repeat(values, unpack(block, at_outer, outer, outer_width), n, "outer counts")
    return values


def bitcomp_block(block, size_e, n):
    """The n elements of a block that is a sub-block of bitcomp."""
    try:
        block = bytes([block[0] & 127]) + block[1:]
        values, ten = bitcomp_reader.decode_sub_block(block, size_e, n)
    except bitcomp_reader.Bad as bad:
        raise Bad(bad.status, "a sub-block of bitcomp") from bad
    return values if ten is None else [bitcomp_reader.from_integer(c, size_e, ten) for c in values]


def decode(data, cap=1 << 64, first=0, past=1 << 64):
    """The bytes first to past - 1 of a chunk, for a destination of 'cap' bytes; raises Bad."""
    want(len(data) >= 16, "the header", "LADE_E_TRUNCATED")
    version, element, block, zero, size = struct.unpack_from("<4BI", data)
    want(version == 1 and element <= 3 and block in (12, 13) and zero == 0, "the header's fields")
    want(size < 1 << 31, "size")
    past = min(past, size)
    want(past - first <= cap, "the destination", "LADE_E_NOSPACE")
    size_e, whole = 1 << element, size >> element << element
    blocks = ceil(whole, 1 << block)
    directory = 1 + ceil(blocks, 4)
    want(len(data) >= 16 * directory, "the directory", "LADE_E_TRUNCATED")
    ends = struct.unpack_from(f"<{blocks}I", data, 16)
    last = ends[-1] if blocks else 1
    want(len(data) >= 16 * last, "the blocks", "LADE_E_TRUNCATED")
    want(len(data) == 16 * last, "bytes behind the last block")

    out = bytearray()
    for i in range(blocks):
        at = i << block
        length = min(1 << block, whole - at)
        if at >= past or at + length <= first:
            continue
        begin, end = ends[i - 1] if i else directory, ends[i]
        raw = ceil(length, 16)
        want(directory <= begin and 1 <= end - begin <= raw and end <= last, "a block's place")
        part = data[16 * begin:16 * end]
        if end - begin < raw:
            if part[0] & 128:
                values = bitcomp_block(part, size_e, length // size_e)
            else:
                values = decode_block(part, size_e, length // size_e, 1 << block - 1)
            part = struct.pack(f"<{len(values)}{'BHIQ'[element]}", *values)
        out += part[max(first - at, 0):min(past - at, length)]
    out += data[8 + max(first - whole, 0):8 + max(past - whole, 0)]
    return bytes(out)


if __name__ == "__main__":
    sys.stdout.buffer.write(decode(pathlib.Path(sys.argv[1]).read_bytes()))
