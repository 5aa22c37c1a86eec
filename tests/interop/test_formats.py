# test_formats.py: the pages of the library's own codecs say enough: decoders that were written
# from them alone (tests/golden/*_reader.py) agree with the library on every chunk.
# SPDX-License-Identifier: Apache-2.0
import collections
import pathlib
import random
import re
import struct
import sys

import pytest

import lade_ctypes as lade
from format_kit import BUILDERS, FLOATS, damaged, make

_ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = _ROOT / "tests" / "golden"
sys.path.insert(0, str(GOLDEN))

import ans_reader  # noqa: E402
import bitcomp_reader  # noqa: E402
import cascaded_reader  # noqa: E402

READERS = {"ans": ans_reader, "bitcomp": bitcomp_reader, "cascaded": cascaded_reader}
CODECS = sorted(READERS)

OPTIONS = {
    "ans": ["", "bits=9", "bits=11,block=16384", "block=8192"],
    "bitcomp": ["", "algorithm=sparse"],
    "cascaded": ["", "mode=fast", "block=4096", "rles=2,deltas=1", "rles=1,deltas=1,block=4096",
                 "rles=2,deltas=1,bitpack=false", "rles=0,deltas=1", "level=0", "level=1"],
}
KINDS = ("noise", "constant", "line", "runs", "keys", "sparse", "walk", "skew", "text", "exponents")


def spec_of(codec, size, options="", letter="u"):
    dtype = "|u1" if size == 1 else f"<{letter}{size}"
    return f"{codec}({','.join(filter(None, (dtype, options)))})"


def page_says(codec, chunk, cap, part):
    try:
        return "LADE_OK", READERS[codec].decode(chunk, cap, *part)
    except READERS[codec].Bad as bad:
        return bad.status, str(bad)


def library_says(codec, chunk, cap, part):
    try:
        return "LADE_OK", lade.decode(codec, chunk, size=cap, off=part[0] if part else None)
    except lade.Error as error:
        return error.status, str(error)


def agree(codec, chunk, cap, part=()):
    """Page and library say the same of a chunk for a destination of 'cap' bytes, or of its bytes
    first to past - 1, where 'part' is (first, past); the status."""
    chunk = bytes(chunk)
    theirs, got = library_says(codec, chunk, cap, part)
    if theirs == "LADE_E_RANGE":  # not the codec's to say: damage made the chunk's size smaller
        return theirs
    mine, want = page_says(codec, chunk, cap, part)
    if mine != theirs or mine == "LADE_OK" and want != got:
        what = f"{codec}: by the page {mine}, by the library {theirs}"
        if mine == theirs:
            at = [a == b for a, b in zip(want, got)] + [False]
            what += f", {len(want)} and {len(got)} bytes, alike up to {at.index(False)}"
        else:
            what += f" ({got if mine == 'LADE_OK' else want})"
        if len(chunk) <= 512:
            what += f": {chunk.hex()}"
        pytest.fail(f"{what}; {cap} bytes of room, part {part}, a chunk of {len(chunk)} bytes")
    return mine


def encoded(codec, sizes, rng):
    """(encoded, data) of many types, options, sizes and kinds of data."""
    for size in (1, 2, 4, 8):
        for i, kind in enumerate(KINDS):
            for k, count in enumerate(sizes):
                options = OPTIONS[codec][(i + k) % len(OPTIONS[codec])]
                data = make(rng, size, count // size, kind) + rng.randbytes(count % size)
                spec = spec_of(codec, size, options)
                if codec == "ans" and i % 2:
                    spec = spec.replace("<u2", "bfloat16")
                yield lade.encode(spec, data), data


def quantised(rng):
    """(encoded, data, largest error) of bitcomp with losses."""
    for size in (2, 4, 8):
        for i, mode in enumerate(("lossy_signed", "lossy_unsigned")):
            for delta in (0.004, 0.25, 6):
                data = make(rng, size, 1500, ("floats", "edges")[i]) + rng.randbytes(size - 1)
                spec = spec_of("bitcomp", size, f"mode={mode},delta={delta}", "f")
                yield lade.encode(spec, data), data, delta / 2


def golden(codec):
    """(path, chunk, what it decodes to, or None where it is bad)"""
    if codec == "ans":
        for path in sorted((GOLDEN / "codec").glob("*.ans")):
            yield path, path.read_bytes(), path.with_name("data").read_bytes()
    for path in sorted((GOLDEN / codec).iterdir()):
        if path.suffix == ".chunk":
            yield path, path.read_bytes(), path.with_suffix(".data").read_bytes()
        elif codec == "cascaded" and path.suffix == "" and path.name.startswith("bad-"):
            yield path, path.read_bytes(), None
        elif codec == "cascaded" and path.suffix == "":
            yield path, path.read_bytes(), path.with_suffix(".raw").read_bytes()


@pytest.mark.parametrize("codec", CODECS)
def test_golden(codec):
    files = list(golden(codec))
    assert len(files) >= 4
    for path, chunk, data in files:
        if data is None:
            assert agree(codec, chunk, 20_000) not in ("LADE_OK", "LADE_E_NOSPACE"), path
        else:
            assert READERS[codec].decode(chunk) == data, path


def test_reserved():
    """What version 1 reserves is refused."""
    count = collections.Counter()
    for line in (GOLDEN / "reserved.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        name, at, bits, what = line.split(" ", 3)
        codec, chunk = name.split("/")[0], bytearray((GOLDEN / name).read_bytes())
        assert agree(codec, chunk, 1 << 16) == "LADE_OK", name
        chunk[int(at)] ^= int(bits)
        assert agree(codec, chunk, 1 << 16) == "LADE_E_CORRUPT", f"{name}: {what}"
        count[codec] += 1
    assert sorted(count) == CODECS and min(count.values()) >= 18


@pytest.mark.parametrize("codec", CODECS)
def test_what_the_encoder_makes(codec):
    seed = 41
    print("seed", seed)
    rng = random.Random(seed)
    for chunk, data in encoded(codec, (0, 1, 7, 100, 4096, 20_005), rng):
        assert READERS[codec].decode(chunk, len(data)) == data


def test_bitcomp_with_losses():
    seed = 42
    print("seed", seed)
    for chunk, data, error in quantised(random.Random(seed)):
        assert agree("bitcomp", chunk, len(data)) == "LADE_OK"
        size = 1 << (chunk[2] & 3)
        layout = f"<{len(data) // size}{FLOATS[size]}{len(data) % size}s"
        out = lade.decode("bitcomp", chunk)
        for want, got in zip(struct.unpack(layout, data), struct.unpack(layout, out)):
            assert got == want or got != got and want != want or abs(got - want) <= error


@pytest.mark.parametrize("codec", CODECS)
def test_damage(codec):
    seed = 43
    print("seed", seed)
    rng = random.Random(seed)
    chunks = [(chunk, len(data)) for chunk, data in encoded(codec, (9, 700, 9003), rng)]
    if codec == "bitcomp":
        chunks += [(chunk, len(data)) for chunk, data, _ in quantised(rng)]
    small = [pair for pair in chunks if len(pair[0]) < 1000]
    count = collections.Counter()
    for i in range(700):
        chunk, size = rng.choice(chunks if i % 4 == 0 else small)
        cap = max(rng.choice((size, size, size, 10_000, size - 1)), 0)
        count[agree(codec, damaged(rng, chunk), cap)] += 1
    print(count)
    assert min(count[status] for status in ("LADE_OK", "LADE_E_CORRUPT", "LADE_E_TRUNCATED")) > 50


@pytest.mark.parametrize("codec", CODECS)
def test_ranges(codec):
    seed = 44
    print("seed", seed)
    rng = random.Random(seed)
    chunks = list(encoded(codec, (700, 20_005), rng))
    for i in range(200):
        chunk, data = rng.choice(chunks)
        first = rng.choice((0, rng.randrange(len(data)), 8192, len(data) - rng.randrange(1, 9)))
        first = min(first, len(data) - 1)
        past = rng.choice((first + 1, rng.randrange(first, len(data)) + 1, len(data)))
        if i % 2:
            agree(codec, damaged(rng, chunk, cut=False), past - first, (first, past))
        else:
            assert agree(codec, chunk, past - first, (first, past)) == "LADE_OK"
            assert READERS[codec].decode(chunk, past - first, first, past) == data[first:past]


@pytest.mark.parametrize("codec", CODECS)
def test_what_no_encoder_makes(codec):
    """Chunks with everything at random that the page allows."""
    seed = 45
    print("seed", seed)
    rng = random.Random(seed)
    count = collections.Counter()
    for _ in range(120):
        chunk, size = BUILDERS[codec](rng)
        count[agree(codec, chunk, size)] += 1
        agree(codec, damaged(rng, chunk), size)
    print(count)
    assert count["LADE_OK"] > 60


def page_bytes(page, first, offsets=False):
    """The bytes of the example whose first line begins with 'first': hexadecimal pairs up to
    the first word that is none, "00 x 12" for many; with 'offsets', lines begin with theirs."""
    lines = (_ROOT / "docs" / "format" / page).read_text().split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith(f"    {first}"))
    out = bytearray()
    for line in lines[at:]:
        if not line.startswith("    "):
            return bytes(out)
        words = line.replace(",", "").split()
        if offsets and line[4] != " ":
            assert int(words.pop(0), 16) == len(out), line
        while words and re.fullmatch("[0-9a-f]{2}", words[0]):
            byte, times = int(words.pop(0), 16), 1
            if words[:1] == ["x"]:
                times = int(words[1])
                del words[:2]
            out += bytes([byte]) * times


def test_example_of_cascaded():
    chunk = page_bytes("cascaded.md", "01 01 0d 00")
    keys = [100 + 32 * (k // 8) + k % 8 for k in range(64)]
    data = struct.pack("<256H", *(key for key in keys for _ in range(4))) + b"\xab"
    assert (len(chunk), len(data)) == (96, 513)
    assert agree("cascaded", chunk, len(data)) == "LADE_OK"
    assert lade.decode("cascaded", chunk) == data


def test_examples_of_parts_of_cascaded():
    signs = page_bytes("cascaded.md", "01 02 0d 00")
    data = struct.pack("<32f", *(-1 if i in (1, 2, 4, 7, 11, 16, 22, 29) else 1 for i in range(32)))
    assert agree("cascaded", signs, len(data)) == "LADE_OK"
    assert lade.decode("cascaded", signs) == data
    assert lade.encode("cascaded(<f4)", data) == signs
    parts = page_bytes("cascaded.md", "01 03 0d 00")
    data = struct.pack("<256q", *(3 * i + max(i - 126, 0) // 2 for i in range(256)))
    assert agree("cascaded", parts, len(data)) == "LADE_OK"
    assert lade.decode("cascaded", parts) == data
    assert lade.encode("cascaded(<i8)", data) == parts


def test_example_of_bitcomp():
    chunk = page_bytes("bitcomp.md", "bc 01 01 00")
    data = struct.pack("<40H", *(1000 + -i % 4 for i in range(40)))
    assert data[:12] == struct.pack("<6H", 1000, 1003, 1002, 1001, 1000, 1003)
    chunk_of_mask = page_bytes("bitcomp.md", "bc 01 02 00")
    sparse = struct.pack("<512i", *(0 if i % 16 else (1 << 20) + 4 if i else 5 for i in range(512)))
    assert agree("bitcomp", chunk_of_mask, len(sparse)) == "LADE_OK"
    assert lade.decode("bitcomp", chunk_of_mask) == sparse
    assert lade.encode("bitcomp(<i4)", sparse) == chunk_of_mask
    chunk_of_decimals = page_bytes("bitcomp.md", "bc 01 03 00")
    prices = struct.pack("<40d", *((1000 + -i % 4) / 100 for i in range(40)))
    assert agree("bitcomp", chunk_of_decimals, len(prices)) == "LADE_OK"
    assert lade.decode("bitcomp", chunk_of_decimals) == prices
    assert lade.encode("bitcomp(<f8)", prices) == chunk_of_decimals
    assert (len(chunk), len(data)) == (64, 80)
    assert agree("bitcomp", chunk, len(data)) == "LADE_OK"
    assert lade.decode("bitcomp", chunk) == data


def test_example_of_ans():
    chunk = page_bytes("ans.md", "00  01 02", offsets=True)
    data = bytes(ord("a" if i % 5 else "b") if i % 7 else ord("c") for i in range(258))
    assert (len(chunk), len(data)) == (210, 258)
    assert agree("ans", chunk, len(data)) == "LADE_OK"
    assert lade.decode("ans", chunk) == data
