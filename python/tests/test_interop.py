"""liblade.Codec against cramjam, zstandard, lz4, gzip and zlib, live and in both directions.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import gzip
import importlib
import io
import zlib
from collections.abc import Callable
from typing import Any

import liblade
import pytest

hypothesis = pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import given, settings
from hypothesis import strategies as st

RAW = liblade.BitstreamKind.RAW
SIZED = liblade.BitstreamKind.WITH_UNCOMPRESSED_SIZE

Run = Callable[[bytes], Any]


def lz4_frames() -> tuple[Run, Run]:
    frame = importlib.import_module("lz4.frame")
    return frame.compress, frame.decompress


def lz4_linked() -> tuple[Run, Run]:
    frame = importlib.import_module("lz4.frame")
    return (
        lambda data: frame.compress(
            data, block_linked=True, content_checksum=True, block_checksum=True,
            block_size=frame.BLOCKSIZE_MAX64KB, store_size=False,
        ),
        frame.decompress,
    )  # fmt: skip


def lz4_sized() -> tuple[Run, Run]:
    block = importlib.import_module("lz4.block")
    return block.compress, block.decompress


def lz4_high() -> tuple[Run, Run]:
    block = importlib.import_module("lz4.block")
    return (
        lambda data: block.compress(data, mode="high_compression", compression=9),
        block.decompress,
    )


def zstd_sized() -> tuple[Run, Run]:
    module = importlib.import_module("zstandard")
    return (
        module.ZstdCompressor(level=5, write_checksum=True).compress,
        module.ZstdDecompressor().decompress,
    )


def zstd_streamed() -> tuple[Run, Run]:
    module = importlib.import_module("zstandard")

    def compress(data: bytes) -> bytes:
        work = module.ZstdCompressor(level=1).compressobj()
        half = len(data) // 2
        parts = [work.compress(data[:half]), work.flush(module.COMPRESSOBJ_FLUSH_BLOCK)]
        return b"".join(parts) + work.compress(data[half:]) + work.flush()

    return compress, lambda data: module.ZstdDecompressor().decompressobj().decompress(data)


def cramjam_of(path: str) -> Callable[[], tuple[Run, Run]]:
    def make() -> tuple[Run, Run]:
        module = importlib.import_module("cramjam")
        for name in path.split("."):
            module = getattr(module, name)
        return (
            lambda data: bytes(module.compress(data)),
            lambda data: bytes(module.decompress(data)),
        )

    return make


def snappy_raw() -> tuple[Run, Run]:
    snappy = importlib.import_module("cramjam").snappy
    return lambda d: bytes(snappy.compress_raw(d)), lambda d: bytes(snappy.decompress_raw(d))


def raw_deflate() -> tuple[Run, Run]:
    def compress(data: bytes) -> bytes:
        work = zlib.compressobj(6, zlib.DEFLATED, -15)
        return work.compress(data) + work.flush()

    return compress, lambda data: zlib.decompress(data, -15)


def gzip_file() -> tuple[Run, Run]:
    def compress(data: bytes) -> bytes:
        file = io.BytesIO()
        with gzip.GzipFile("a name", "wb", fileobj=file, mtime=12345) as work:
            work.write(data)
        return file.getvalue()

    return compress, gzip.decompress


CASES: list[tuple[str, Any, Any, str, Callable[[], tuple[Run, Run]]]] = [
    ("lz4.frame", "lz4f", RAW, "lz4", lz4_frames),
    ("lz4.frame-linked", "lz4f(checksum=true,linked=true)", RAW, "lz4", lz4_linked),
    ("lz4.block", "LZ4", SIZED, "lz4", lz4_sized),
    ("lz4.block-high", "lz4(level=9)", SIZED, "lz4", lz4_high),
    ("zstandard", "Zstd", RAW, "zstandard", zstd_sized),
    ("zstandard-streamed", "zstd(3,checksum=true)", RAW, "zstandard", zstd_streamed),
    ("zlib", "zlib", RAW, "zlib", lambda: (zlib.compress, zlib.decompress)),
    ("zlib-9", "zlib(9)", RAW, "zlib", lambda: (lambda d: zlib.compress(d, 9), zlib.decompress)),
    ("zlib-raw", "Deflate", RAW, "zlib", raw_deflate),
    ("gzip", "Gzip", RAW, "gzip", lambda: (gzip.compress, gzip.decompress)),
    ("gzip-named", "gzip(9)", RAW, "gzip", gzip_file),
    ("cramjam.snappy", "Snappy", RAW, "cramjam", snappy_raw),
    ("cramjam.zstd", "Zstd", RAW, "cramjam", cramjam_of("zstd")),
    ("cramjam.gzip", "Gzip", RAW, "cramjam", cramjam_of("gzip")),
    ("cramjam.zlib", "zlib", RAW, "cramjam", cramjam_of("zlib")),
    ("cramjam.deflate", "Deflate", RAW, "cramjam", cramjam_of("deflate")),
    ("cramjam.lz4", "lz4f", RAW, "cramjam", cramjam_of("lz4")),
]

bodies = st.one_of(
    st.binary(min_size=1, max_size=2000),
    st.builds(lambda part, n: part * n, st.binary(min_size=1, max_size=40), st.integers(1, 5000)),
)


@pytest.mark.parametrize(("algorithm", "kind", "module", "make"), [c[1:] for c in CASES],
                         ids=[c[0] for c in CASES])  # fmt: skip
def test_both_directions(algorithm: str, kind: Any, module: str, make: Any) -> None:
    """What one library encodes the other decodes, with and without out=."""
    pytest.importorskip(module, reason=f"{module} is not installed")
    compress, decompress = make()
    codec = liblade.Codec(algorithm=algorithm, bitstream_kind=kind)

    @settings(max_examples=50, deadline=None)
    @given(bodies)
    def check(data: bytes) -> None:
        assert decompress(bytes(codec.encode(data))) == data
        enc = bytes(compress(data))
        out = bytearray(len(data))
        assert codec.decode_into(enc, out) == len(data)
        assert out == data
        assert bytes(codec.decode(enc)) == data

    check()


@pytest.mark.parametrize(("algorithm", "kind", "module", "make"), [c[1:] for c in CASES],
                         ids=[c[0] for c in CASES])  # fmt: skip
def test_batches(algorithm: str, kind: Any, module: str, make: Any) -> None:
    """Many chunks of another library in one call, from one buffer by offsets."""
    pytest.importorskip(module, reason=f"{module} is not installed")
    compress, decompress = make()
    codec = liblade.Codec(algorithm=algorithm, bitstream_kind=kind)
    plain = [bytes([i % 251]) * (i * 37 + 1) + b"tail" for i in range(200)]
    chunks = [bytes(compress(p)) for p in plain]
    offsets, at = [], 0
    for c in chunks:
        offsets.append(at)
        at += len(c)
    batch = liblade.as_arrays(b"".join(chunks), offsets, [len(c) for c in chunks])
    outs = [bytearray(len(p)) for p in plain]
    codec.decode(batch, out=outs)
    assert outs == plain
    assert [decompress(bytes(c)) for c in codec.encode(plain)] == plain
