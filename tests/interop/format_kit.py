# format_kit.py: data and chunks for test_formats.py: what encoders get, what no encoder makes, and
# damage.
# SPDX-License-Identifier: Apache-2.0
import struct

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
    layers = rng.choice((0, 1, 2, 3, 6, 7))
    most = max(1, rng.choice((n, min(n, room // size))))
    n1 = rng.randint(1, most) if layers & 1 else n
    n2 = rng.randint(1, min(n1, most)) if layers & 4 else n1
    outer = _counts(rng, n1, n) if layers & 1 else (0, b"")
    inner = _counts(rng, n2, n1) if layers & 4 else (0, b"")
    width = rng.choice((0, 1, 8 * size, rng.randint(0, 8 * size), rng.randint(0, 8 * size)))
    values = Bits()
    values.put(rng.getrandbits(n2 * width) if n2 * width else 0, n2 * width)
    head = struct.pack("<4B2H", layers, width, outer[0], inner[0], n1 if layers & 1 else 0,
                       n2 if layers & 4 else 0)
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
    width, step, words = rng.randint(0, 8 * size), rng.randrange(3), rng.randrange(256)
    out = bytes([mode, width, words, step])
    out += (bytes(4) if size == 8 else rng.randbytes(4)) + rng.randbytes(8)
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


BUILDERS = {"bitcomp": bitcomp, "cascaded": cascaded}
