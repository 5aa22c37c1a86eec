#!/usr/bin/env python3
"""A second decoder of bitcomp chunks, written from docs/format/bitcomp.md alone.

usage: bitcomp_reader.py CHUNK          writes the decoded bytes to stdout

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import struct
import sys

DELTA, FROM_ABOVE, UNIT_WIDTHS, DICTIONARY, MASK = 1, 8, 16, 32, 64
REPEAT, FAR, SHORT = 1, 8, 16  # beside a mask
PLAIN, ZIGZAG, ROTATION = 0, 1, 2  # folds
SIGNED, UNSIGNED = 1, 2            # quantisations
FLOATS = {2: (10, 5), 4: (23, 8), 8: (52, 11)}  # bits of mantissa and of exponent


class Bad(Exception):
    def __init__(self, status, what):
        super().__init__(f"{status}: {what}")
        self.status = status


def want(condition, what, status="LADE_E_CORRUPT"):
    if not condition:
        raise Bad(status, what)


def pad(n):
    return (n + 15) // 16 * 16


def unit_widths(width, step, codes, units):
    for u in range(units):
        code = codes[u // 2] >> 4 * (u % 2) & 15
        yield 0 if code == 15 else max(width - (code << step), 0)


def read_more(mode, more, size):
    """The lag, and the power of ten or None."""
    lag, ten = (more & 3) + 1, more >> 3
    want(lag == 1 or mode & DELTA and not mode & MASK, "a lag without differences")
    if not more & 4:
        want(ten == 0, "a power of ten without decimals")
        return lag, None
    want(size >= 4 and ten <= (22 if size == 8 else 10), "decimals")
    return lag, ten


def from_integer(c, size, ten):
    """The bits of the decimal that an integer stands for, or these bits."""
    bits = 8 * size
    signed = c - (1 << bits) if c >> bits - 1 else c
    if abs(signed) >= 1 << (51 if size == 8 else 22):
        return c
    if size == 8:
        return struct.unpack("<Q", struct.pack("<d", signed / 10 ** ten))[0]
    # The quotient of two floats of 32 bits, in 64 bits and then in 32: rounded once, as 53 bits
    # are more than twice 24 and 2.
    return struct.unpack("<I", struct.pack("<f", signed / 10.0 ** ten))[0]


def masked_elements(data, n, width, size):
    mode, at, largest = data[0], 16, (1 << 8 * size) - 1
    value = int.from_bytes(data[4:4 + min(size, 4)], "little") if size < 8 else 0
    if mode & FAR:
        want(len(data) >= 32, "a value of 8 bytes")
        value, at = int.from_bytes(data[16:24], "little"), 32
    count = (n + 7) // 8
    if mode & SHORT:
        first = int.from_bytes(data[at:at + (count + 7) // 8], "little")
        here = at + (count + 7) // 8
        mask = bytearray(count)
        for i in range(count):
            if first >> i & 1:
                want(here < len(data), "a short mask")
                mask[i] = data[here]
                here += 1
        at += pad(here - at)
    else:
        mask, at = data[at:at + count], at + pad(count)
    want(at <= len(data), "a mask")
    bits = int.from_bytes(mask, "little") & (1 << n) - 1 | (mode & REPEAT)
    want(at + pad((bits.bit_count() * width + 7) // 8) == len(data), "a sub-block's size")
    reference = int.from_bytes(data[8:16], "little")
    payload, out = int.from_bytes(data[at:], "little"), []
    for i in range(n):
        x = value
        if bits >> i & 1:
            x = reference + (payload & (1 << width) - 1) & largest
            payload >>= width
        if mode & REPEAT:
            value = x
        out.append(x)
    return out


def decode_sub_block(data, size, n):
    """The n elements of 'size' bytes of a sub-block that is not raw, and their power of ten."""
    want(len(data) >= 16, "a sub-block's header")
    mode, width, words, step = data[:4]
    fold, bits, mask = mode >> 1 & 3, 8 * size, (1 << 8 * size) - 1
    want(mode < 128 and fold <= ROTATION and step <= 2 and width <= bits, "mode, width and step")
    want(not mode & DICTIONARY or size == 1 and not mode & 15, "a dictionary's mode")
    lag, ten = (1, None) if mode & DICTIONARY else read_more(mode, words, size)
    if mode & MASK:
        want(not mode & ~(MASK | REPEAT | FAR | SHORT), "a mask's mode")
        want(not mode & FAR or size == 8 and not mode & REPEAT, "a mask's value")
        return masked_elements(data, n, width, size), ten
    base = int.from_bytes(data[4:8], "little")
    reference = int.from_bytes(data[8:16], "little")
    at, dictionary = 16, b""
    if mode & DELTA and size == 8:
        base = int.from_bytes(data[16:24], "little")
        at += 16
    if mode & DICTIONARY:
        dictionary = data[at:at + words + 1].ljust(256, b"\0")
        at += pad(words + 1)
    per_unit = 16 if size == 1 else 8
    units = -(-n // per_unit)
    widths = [width] * units
    if mode & UNIT_WIDTHS:
        codes = data[at:at + (units + 1) // 2]
        at += pad((units + 1) // 2)
        want(at <= len(data), "a sub-block's codes")
        widths = list(unit_widths(width, step, codes, units))
    want(at + pad(sum(widths) * per_unit // 8) == len(data), "a sub-block's size")

    out, totals = [], [base] * lag
    for w in widths:
        length = w * per_unit // 8
        word = int.from_bytes(data[at:at + length], "little")
        at += length
        for i in range(per_unit):
            x = word >> i * w & (1 << w) - 1
            if mode & DICTIONARY:
                out.append(dictionary[x])
                continue
            u = (reference - x if mode & FROM_ABOVE else reference + x) & mask
            t = u
            if fold == ZIGZAG:
                t = u >> 1 ^ -(u & 1) & mask
            elif fold == ROTATION:
                t = u >> 1 | (u & 1) << bits - 1
            if mode & DELTA:
                t = totals[len(out) % lag] = totals[len(out) % lag] + t & mask
            out.append(t)
    return out[:n], ten


def dequantise(c, size, quantisation, exponent):
    """The bits of the float that the integer c stands for."""
    mantissa, bits = FLOATS[size][0], 8 * size
    bias = (1 << FLOATS[size][1] - 1) - 1
    sign, q = c >> bits - 1, c & (1 << bits - 1) - 1
    if quantisation == SIGNED and sign:
        q = (1 << bits) - c
    if q > 1 << mantissa:
        limit = min(exponent + mantissa, bias)
        magnitude = q - (1 << mantissa) - 1 + (limit + bias << mantissa)
    else:
        # The float q * 2^exponent: its exponent field, or that of subnormal numbers.
        field = max(q.bit_length() - 1 + exponent + bias, 0) if q else 0
        if field == 0:
            magnitude = q << exponent - (1 - bias - mantissa)
        else:
            top = q.bit_length() - 1
            magnitude = (field << mantissa) + (q << mantissa - top) - (1 << mantissa)
    return sign << bits - 1 | magnitude & (1 << bits - 1) - 1


def decode(data, cap=1 << 64, first=0, past=1 << 64):
    """The bytes first to past - 1 of a chunk, for a destination of 'cap' bytes; raises Bad."""
    want(len(data) >= 16, "the header", "LADE_E_TRUNCATED")
    magic, version, kind, zero, exponent, zeros, total = struct.unpack_from("<4BhHQ", data)
    want(magic == 0xBC and version == 1 and kind < 32 and zero == zeros == 0, "the header's fields")
    size, stored, quantisation = 1 << (kind & 3), kind & 4, kind >> 3
    if quantisation:
        want(quantisation <= UNSIGNED and size in FLOATS and not stored, "the quantisation")
        mantissa, bias = FLOATS[size][0], (1 << FLOATS[size][1] - 1) - 1
        want(2 - bias - mantissa <= exponent <= bias, "the exponent")
    else:
        want(exponent == 0, "an exponent without a quantisation")
    want(total <= 1 << 34, "decoded size")
    past = min(past, total)
    want(past - first <= cap, "the destination", "LADE_E_NOSPACE")
    if stored or total == 0:
        want(len(data) >= 16 + total, "the stored bytes", "LADE_E_TRUNCATED")
        want(len(data) == 16 + total, "bytes behind the stored ones")
        return data[16 + first:16 + past]
    count = -(-total // 8192)
    directory = 1 + pad(4 * count) // 16
    want(len(data) >= 16 * directory, "the directory", "LADE_E_TRUNCATED")
    ends = struct.unpack_from(f"<{count}I", data, 16)
    want(len(data) >= 16 * ends[-1], "the sub-blocks", "LADE_E_TRUNCATED")
    want(len(data) == 16 * ends[-1], "bytes behind the last sub-block")

    out = bytearray()
    for i in range(count):
        at = 8192 * i
        length = min(8192, total - at)
        if at >= past or at + length <= first:
            continue
        begin, end = ends[i - 1] if i else directory, ends[i]
        raw = pad(length) // 16
        want(directory <= begin and 1 <= end - begin <= raw and end <= ends[-1], "a place")
        part = data[16 * begin:16 * end]
        layout = f"<{-(-length // size)}{'BHIQ'[kind & 3]}"
        n = struct.calcsize(layout) // size
        if end - begin == raw:
            elements = list(struct.unpack(layout, part[:length].ljust(n * size, b"\0")))
        else:
            elements, ten = decode_sub_block(part, size, n)
            for k in range(length // size if ten is not None else 0):
                elements[k] = from_integer(elements[k], size, ten)
        if quantisation:
            for k in range(length // size):
                elements[k] = dequantise(elements[k], size, quantisation, exponent)
        out += struct.pack(layout, *elements)[max(first - at, 0):min(past - at, length)]
    return bytes(out)


if __name__ == "__main__":
    sys.stdout.buffer.write(decode(pathlib.Path(sys.argv[1]).read_bytes()))
