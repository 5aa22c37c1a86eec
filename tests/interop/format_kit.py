# format_kit.py: data and chunks for test_formats.py: what encoders get, what no encoder makes, and
# damage.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "golden"))

import ans_reader  # noqa: E402

FLOATS = {2: "e", 4: "f", 8: "d"}


def _pack(size, values):
    return b"".join((v % (1 << 8 * size)).to_bytes(size, "little") for v in values)


def _ceil(a, b):
    return -(-a // b)


def make(rng, size, count, kind):
    """'count' elements of 'size' bytes."""
    if kind == "noise":
        return rng.randbytes(size * count)
    if kind == "constant":
        return _pack(size, [rng.randrange(1 << 8 * size)] * count)
    if kind == "line":
        return _pack(size, range(5, 5 + 3 * count, 3))
    if kind in ("runs", "keys"):
        values, key = [], 100
        while len(values) < count:
            key = rng.randrange(1000) if kind == "runs" else key + (1 if rng.random() < 0.9 else 30)
            values += [key] * (rng.randrange(1, 40) if kind == "runs" else rng.choice((1, 4, 4, 7)))
        return _pack(size, values[:count])
    if kind == "sparse":
        largest = 1 << 8 * size
        return _pack(size, [rng.randrange(largest) * (rng.random() < 0.02) for _ in range(count)])
    if kind == "walk":
        values = [0]
        for _ in range(count):
            values.append(values[-1] + rng.randrange(-5, 6))
        return _pack(size, values[1:])
    if kind == "skew":
        return _pack(size, [int(rng.expovariate(0.1)) for _ in range(count)])
    if kind == "text":
        return bytes(rng.choice(b"eeeeettttaaaooiinn shrdlu,.") for _ in range(size * count))
    if kind == "exponents":  # noise below, and skewed bytes on top
        top = [int(rng.expovariate(0.3)) for _ in range(count)]
        return b"".join(rng.randbytes(size - 1) + bytes([t % 256]) for t in top)
    floats = [rng.gauss(0, 1) * 10.0 ** rng.randrange(-2, 3) for _ in range(count)]
    if kind == "edges":  # zeros, infinities, NaN and tiny numbers too
        for i in range(0, count, 7):
            floats[i] = float(rng.choice(("0", "-0", "inf", "-inf", "nan", "1e-7", "-1e-7")))
    return struct.pack(f"<{count}{FLOATS[size]}", *floats)


def damaged(rng, chunk, cut=True):
    """One to three faults, most of them in headers and directories."""
    chunk = bytearray(chunk)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(min(len(chunk), rng.choice((16, 32, 96, len(chunk)))))
        old = chunk[at]
        chunk[at] = rng.choice((old ^ 1 << rng.randrange(8), rng.randrange(256), old + 1 & 255,
                                old - 1 & 255, 0, 255, rng.randrange(16)))
    where = rng.randrange(8)
    if where == 0 and cut:
        return bytes(chunk[:rng.randrange(len(chunk)) + 1])
    if where == 1 and cut:
        return bytes(chunk[:max(len(chunk) - rng.choice((1, 2, 4, 16, 32)), 1)])
    if where == 2 and cut:
        return bytes(chunk) + rng.randbytes(rng.choice((1, 4, 16, 32)))
    return bytes(chunk)


class Bits:
    """Entries of any width, from the lowest bit on."""

    def __init__(self):
        self.value = self.count = 0

    def put(self, entry, width):
        self.value |= entry << self.count
        self.count += width

    def bytes(self, rng, multiple):
        """With bits at random up to a whole number of 'multiple' bits."""
        total = _ceil(self.count, multiple) * multiple
        self.value |= rng.getrandbits(64) % (1 << total - self.count) << self.count
        return self.value.to_bytes(total // 8, "little")


def _padded(rng, data, to=16):
    return data + rng.randbytes(-len(data) % to)


# ---- cascaded: docs/format/cascaded.md ---------------------------------------------------------

def _counts(rng, runs, total):
    """(width, bytes) of the counts of so many runs of 'total' elements."""
    marks = [0, *sorted(rng.sample(range(1, total), runs - 1)), total]
    counts = [b - a - 1 for a, b in zip(marks, marks[1:])]
    width = rng.randint(max(counts).bit_length(), 13)
    bits = Bits()
    for count in counts:
        bits.put(count, width)
    return width, bits.bytes(rng, 32)


def _cascaded_block(rng, size, n, room):
    layers = rng.choice((0, 1, 2, 3, 6, 7, 8, 10)) | rng.choice((0, 0, 16))
    most = max(1, rng.choice((n, min(n, room // size))))
    n1 = rng.randint(1, most) if layers & 1 else n
    n2 = rng.randint(1, min(n1, most)) if layers & 4 else n1
    outer = _counts(rng, n1, n) if layers & 1 else (0, b"")
    inner = _counts(rng, n2, n1) if layers & 4 else (0, b"")
    width = rng.choice((0, 1, 8 * size, rng.randint(0, 8 * size), rng.randint(0, 8 * size)))
    values = Bits()
    less, each = rng.getrandbits(32) & rng.getrandbits(32), 1024 // size if layers & 8 else n2
    for k, at in enumerate(range(0, n2, each)):
        bits = min(each, n2 - at) * max(width - (less >> 4 * k & 15 if layers & 8 else 0), 0)
        values.put(rng.getrandbits(bits) if bits else 0, bits)
    head = struct.pack("<4B2H", layers, width, outer[0], inner[0], n1 if layers & 1 else 0,
                       n2 if layers & 4 else 0)
    if layers & 8:
        head = head[:4] + struct.pack("<I", less)
    head += rng.randbytes(16 if layers & 2 else 8)
    return _padded(rng, head + outer[1] + inner[1] + values.bytes(rng, 32))


def cascaded(rng):
    """(chunk, decoded size)"""
    element, block = rng.randrange(4), rng.choice((12, 13))
    size = rng.choice((rng.randrange(1, 200), rng.randrange(1, 20_000), 3 << block))
    whole = size >> element << element
    ends, blocks = [1 + _ceil(_ceil(whole, 1 << block), 4)], b""
    for at in range(0, whole, 1 << block):
        length = min(1 << block, whole - at)
        part = b"" if rng.random() < 0.1 else \
            _cascaded_block(rng, 1 << element, length >> element, 1 << block - 1)
        if rng.random() < 0.3:
            part = _bitcomp_sub_block(rng, 1 << element, length >> element)
            part = bytes([part[0] | 128]) + part[1:]
        if not 0 < len(part) < _ceil(length, 16) * 16:
            part = _padded(rng, rng.randbytes(length))
        blocks += part
        ends.append(ends[-1] + len(part) // 16)
    head = struct.pack("<4BI", 1, element, block, 0, size) + rng.randbytes(8)
    return head + _padded(rng, struct.pack(f"<{len(ends) - 1}I", *ends[1:])) + blocks, size


# ---- bitcomp: docs/format/bitcomp.md -----------------------------------------------------------

def _bitcomp_sub_block(rng, size, n):
    mode = rng.choice((0, 1)) | rng.choice((0, 2, 4)) | rng.choice((0, 8)) | rng.choice((0, 16))
    if size == 1 and rng.random() < 0.4:
        mode = 32 | rng.choice((0, 16))
    if rng.random() < 0.3:
        mode = 64 | rng.choice((0, 16)) | rng.choice((0, 1, 8 if size == 8 else 0))
    width, step, words = rng.randint(0, 8 * size), rng.randrange(3), rng.randrange(256)
    if not mode & 32:
        words = rng.randrange(4) if mode & 65 == 1 else 0
        if size >= 4 and rng.random() < 0.4:
            words |= 4 | rng.randrange(23 if size == 8 else 11) << 3
    out = bytes([mode, width, words, step])
    out += (bytes(4) if size == 8 else rng.randbytes(4)) + rng.randbytes(8)
    if mode & 64:
        if mode & 8:
            out += rng.randbytes(8) + bytes(8)
        mask = rng.getrandbits(n) & rng.getrandbits(n) & rng.getrandbits(n)
        bits, heads = Bits(), Bits()
        bits.put(mask, n)
        array = bits.bytes(rng, 8)
        if mode & 16:
            # A byte that is there may be 0.
            there = [byte or rng.random() < 0.1 for byte in array]
            for is_there in there:
                heads.put(bool(is_there), 1)
            array = heads.bytes(rng, 8) + bytes(b for b, is_there in zip(array, there) if is_there)
        count = (mask | (mode & 1)).bit_count()
        return out + _padded(rng, array) + _padded(rng, rng.randbytes((count * width + 7) // 8))
    if mode & 1 and size == 8:
        out += rng.randbytes(8) + bytes(8)
    if mode & 32:
        out += _padded(rng, rng.randbytes(words + 1))
    values = 16 if size == 1 else 8
    units = _ceil(n, values)
    widths = [width] * units
    if mode & 16:
        codes = [rng.choice((0, 1, 2, 3, 15, rng.randrange(16))) for _ in range(units)]
        widths = [0 if code == 15 else max(width - (code << step), 0) for code in codes]
        bits = Bits()
        for code in codes:
            bits.put(code, 4)
        out += _padded(rng, bits.bytes(rng, 8))
    return out + _padded(rng, rng.randbytes(sum(widths) * values // 8))


def bitcomp(rng):
    """(chunk, decoded size)"""
    log2, kind, exponent = rng.randrange(4), 0, 0
    if log2 and rng.random() < 0.4:
        m, e = {1: (10, 5), 2: (23, 8), 3: (52, 11)}[log2]
        low, high = 2 - (1 << e - 1) + 1 - m, (1 << e - 1) - 1
        kind = rng.choice((8, 16))
        exponent = rng.choice((low, high, rng.randint(low, high), rng.randint(-m, 0)))
    size = rng.choice((rng.randrange(1, 200), rng.randrange(1, 20_000), 8192))
    ends, parts = [1 + _ceil(_ceil(size, 8192), 4)], b""
    for at in range(0, size, 8192):
        length = min(8192, size - at)
        part = _bitcomp_sub_block(rng, 1 << log2, _ceil(length, 1 << log2))
        if len(part) >= _ceil(length, 16) * 16:
            part = _padded(rng, _raw_bitcomp(rng, length, 1 << log2))
        parts += part
        ends.append(ends[-1] + len(part) // 16)
    head = struct.pack("<4BhHQ", 0xBC, 1, log2 | kind, 0, exponent, 0, size)
    return head + _padded(rng, struct.pack(f"<{len(ends) - 1}I", *ends[1:])) + parts, size


def _raw_bitcomp(rng, length, size):
    """Elements near powers of two, where quantised floats change their kind, too."""
    bits = 8 * size
    out = [(rng.randrange(2) << bits - 1) + (1 << rng.randrange(bits)) + rng.randrange(-2, 3)
           for _ in range(_ceil(length, size))]
    return _pack(size, out)[:length]


# ---- ans: docs/format/ans.md -------------------------------------------------------------------

def _ans_table(rng, n):
    """(description, {(symbol, y): state}, {symbol: frequency}) of a table at random."""
    symbols = sorted(rng.sample(range(256), rng.choice((1, 2, 5, 40, 256))))
    marks = rng.sample(range(1, 1 << n), len(symbols) - 1)
    if rng.random() < 0.3:
        marks = list(range(1, len(symbols)))  # all but the last one are rare
    marks = [0, *sorted(marks), 1 << n]
    present, lengths, mantissas, counts = Bits(), Bits(), Bits(), {}
    present.put(sum(1 << s for s in symbols), 256)
    for symbol, low, high in zip(symbols, marks, marks[1:]):
        counts[symbol] = high - low
        q = (high - low).bit_length() - 1
        lengths.put(q, 4)
        mantissas.put(high - low - (1 << q), q)
    text = present.bytes(rng, 8) + lengths.bytes(rng, 8) + mantissas.bytes(rng, 8)
    text = _padded(rng, text, 4)
    states = {}
    for i, (symbol, _, y) in enumerate(ans_reader.table_of(text, n)):
        states[symbol, y] = (1 << n) + i
    return text, states, counts


def _ans_lane(rng, tables, n, groups):
    """The string of a lane with symbols at random, as bytes."""
    state, value, count = 0, 0, 0
    for _ in range(groups):
        for _, states, counts in reversed(tables):
            for symbol in rng.choices(list(counts), k=4):
                f = counts[symbol]
                if not state:
                    state = states[symbol, rng.randrange(f, 2 * f)]
                    continue
                b = n + 1 - f.bit_length()
                b -= state >> b < f
                value |= (state & (1 << b) - 1) << count
                count += b
                state = states[symbol, state >> b]
    value |= state << count
    return value.to_bytes(_ceil(count + n + 1, 16) * 2, "little")


def _ans_sub_block(rng, w, count, modes, tables, n):
    """(kind, bytes, words of the longest lane)"""
    out = rng.randbytes(count * modes.count(1))
    if rng.random() < 0.1:
        return 2, _padded(rng, rng.randbytes(count * w)), 0
    if not tables:
        return rng.randrange(2), _padded(rng, out), 0
    lanes, units = [], count // 4
    for lane in range(32):
        rows = [g for g in range(_ceil(units, 32)) if 32 * g + (lane + g) % 32 < units]
        lanes.append(_ans_lane(rng, tables, n, len(rows)) if rows else b"")
    halves = [len(lane) // 2 for lane in lanes]
    for kind, width in ((0, 4), (1, 8)):
        least = max(0, _ceil(max(halves) - (1 << width) + 1, 2))
        if least <= min(halves) // 2 and (kind or rng.random() < 0.7):
            break
    else:
        return 2, _padded(rng, rng.randbytes(count * w)), 0
    full = rng.randint(least, min(halves) // 2)
    lengths = Bits()
    for h in halves:
        lengths.put(h - 2 * full, width)
    out += lengths.bytes(rng, 8)
    for row in range(_ceil(max(halves), 2)):
        out += b"".join(lane[4 * row:4 * row + 4] for lane in lanes)
    return kind, _padded(rng, out), _ceil(max(halves), 2)


def ans(rng):
    """(chunk, decoded size)"""
    log2_w, log2_b, n = rng.randrange(4), rng.choice((12, 12, 12, 13, 14)), rng.choice((9, 10, 11))
    w, size = 1 << log2_w, rng.choice((rng.randrange(500), rng.randrange(9000)))
    if size < 4 * w or rng.random() < 0.05:
        return struct.pack("<4BIQ", 1, 0, log2_w, 0, size, 0) + rng.randbytes(size), size
    if rng.random() < 0.05:
        return struct.pack("<4BI", 1, 1, log2_w, 0, size) + rng.randbytes(w) + bytes(8 - w), size
    form = log2_w | (16 if w == 2 and rng.random() < 0.5 else 0)
    modes = [rng.randrange(3) for _ in range(w)]
    while modes.count(2) << n > 4096:
        modes[modes.index(2)] = rng.randrange(2)
    tables = [_ans_table(rng, n) for _ in range(modes.count(2))]
    tail = size % (4 * w)
    parts = [_ans_sub_block(rng, w, min(1 << log2_b, size - tail - at) // w, modes, tables, n)
             for at in range(0, size - tail, 1 << log2_b)]
    most = max(part[2] for part in parts)
    if rng.random() < 0.5:
        most = ((1 << log2_b) // (32 * w) * len(tables) * n + 47) // 32
    sizes = iter([len(text) // 4 for text, _, _ in tables])
    head = struct.pack("<4BI2B", 1, 2, form, log2_b, size, most, n)
    for mode in modes:
        head += bytes([mode, next(sizes) if mode == 2 else 0 if mode else rng.randrange(256)])
    head = _padded(rng, head, 4)
    offset = _ceil(len(head) + 4 * (len(parts) + 1) + sum(len(table[0]) for table in tables), 16)
    for kind, part, _ in parts:
        head += struct.pack("<I", offset | kind << 28)
        offset += len(part) // 16
    head += struct.pack("<I", offset) + b"".join(table[0] for table in tables)
    return _padded(rng, head) + b"".join(part[1] for part in parts) + rng.randbytes(tail), size


BUILDERS = {"ans": ans, "bitcomp": bitcomp, "cascaded": cascaded}
