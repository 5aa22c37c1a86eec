"""Zarr arrays, of format 2 and 3, written and read through liblade.numcodecs and numcodecs.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import json
import pathlib
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

np = pytest.importorskip("numpy", reason="numpy is not installed")
pytest.importorskip("numcodecs", reason="numcodecs is not installed")
zarr = pytest.importorskip("zarr", minversion="3", reason="zarr 3 is not installed")

import liblade.numcodecs as ours
from numcodecs.registry import get_codec

TEMPERATURES = (
    np.random.default_rng(7).normal(280, 10, (120, 90)).round(2).cumsum(axis=1).astype("f4")
)


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Each test begins and ends with numcodecs' own codecs."""
    ours.unregister()
    yield
    ours.unregister()


class Count:
    """How many calls reach our codecs."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.encoded = self.decoded = 0
        for cls in ours.CODECS.values():
            for name in ("encode", "decode"):
                if name in vars(cls):
                    patch.setattr(cls, name, self.counting(vars(cls)[name], name))
        from liblade.numcodecs._base import Compressor
        from liblade.numcodecs._deflate import Deflate
        from liblade.numcodecs.checksum32 import _Checksum

        for cls in (Compressor, Deflate, _Checksum):
            for name in {"encode", "decode"} & set(vars(cls)):
                patch.setattr(cls, name, self.counting(vars(cls)[name], name))

    def counting(self, method: Any, name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            setattr(self, f"{name}d", getattr(self, f"{name}d") + 1)
            return method(*args, **kwargs)

        return call


V2: list[tuple[str, Any, list[dict[str, Any]]]] = [
    ("f4", {"id": "zlib", "level": 4}, []),
    ("f4", {"id": "gzip", "level": 1}, [{"id": "shuffle", "elementsize": 4}]),
    ("f4", {"id": "zstd", "level": 3, "checksum": True}, [{"id": "bitround", "keepbits": 10}]),
    ("f8", {"id": "lz4", "acceleration": 1},
     [{"id": "fixedscaleoffset", "scale": 100, "offset": 0, "dtype": "<f8", "astype": "<i4"},
      {"id": "delta", "dtype": "<i4"}]),
    ("f8", {"id": "blosc", "cname": "zstd", "clevel": 5, "shuffle": 2, "blocksize": 0},
     [{"id": "quantize", "digits": 2, "dtype": "<f8", "astype": "<f4"}]),
    ("i4", {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
     [{"id": "delta", "dtype": "<i4"}, {"id": "crc32"}]),
    ("u2", {"id": "zstd", "level": 1}, [{"id": "adler32"}, {"id": "crc32c", "location": "end"}]),
    ("i8", None, [{"id": "fletcher32"}]),
    ("?", {"id": "zlib", "level": 1}, [{"id": "packbits"}]),
    ("M8[s]", {"id": "zstd", "level": 0}, []),
]  # fmt: skip


def make_v2(path: pathlib.Path, data: Any, compressor: Any, filters: Any, order: str) -> None:
    array = zarr.create_array(
        store=str(path), shape=data.shape, chunks=(50, 40), dtype=data.dtype, zarr_format=2,
        order=order, filters=[get_codec(f) for f in filters] or None,
        compressors=get_codec(compressor) if compressor else None,
    )  # fmt: skip
    array[:] = data
    array[3:70, 5:45] = data[3:70, 5:45]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("dtype", "compressor", "filters"), V2)
def test_v2(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, dtype: str, compressor: Any,
    filters: list[dict[str, Any]], order: str,
) -> None:  # fmt: skip
    """What one library writes the other reads, the same values and the same metadata."""
    data = TEMPERATURES.astype("i8").astype(dtype) if dtype != "f4" else TEMPERATURES
    if dtype == "?":
        data = TEMPERATURES.astype("i8") % 3 == 0
    if compressor is None and order == "F":
        pytest.skip("the same as in C's order")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make_v2(tmp_path / "theirs", data, compressor, filters, order)
        want = dict.fromkeys(
            ("ours", "theirs"), zarr.open_array(str(tmp_path / "theirs"), mode="r")[:]
        )
        if order == "F" and any(f["id"] == "bitround" for f in filters):
            # numcodecs stores the chunks transposed.
            want["ours"] = ours.BitRound(10).decode(ours.BitRound(10).encode(data))
            assert not np.array_equal(want["ours"], want["theirs"])
        count = Count(monkeypatch)
        ours.register()
        make_v2(tmp_path / "ours", data, compressor, filters, order)
        assert count.encoded >= 9
        for one in ("ours", "theirs"):
            got = zarr.open_array(str(tmp_path / one), mode="r")
            np.testing.assert_array_equal(got[:], want[one])
            np.testing.assert_array_equal(got[7:33:2, 11:77:5], want[one][7:33:2, 11:77:5])
        assert count.decoded >= 18
        ours.unregister()
        got = zarr.open_array(str(tmp_path / "ours"), mode="r")
        np.testing.assert_array_equal(got[:], want["ours"])
    meta = [json.loads((tmp_path / one / ".zarray").read_text()) for one in ("ours", "theirs")]
    assert meta[0] == meta[1]


def test_v2s_default_compressor(tmp_path: pathlib.Path) -> None:
    """Named, it is ours, and what is stored is what Zarr's own default stores."""
    for name, given in (("default", {}), ("ours", {"compressors": ours.Zstd(level=0)})):
        array = zarr.create_array(
            store=str(tmp_path / name), shape=(100,), chunks=(50,), dtype="i4", zarr_format=2,
            **given,
        )  # fmt: skip
        array[:] = np.arange(100)
        np.testing.assert_array_equal(array[:], np.arange(100))
        assert isinstance(array.metadata.compressor, ours.Zstd) == (name == "ours")
    for file in (".zarray", "0", "1"):
        assert (tmp_path / "ours" / file).read_bytes() == (tmp_path / "default" / file).read_bytes()


V3: list[tuple[str, list[str]]] = [
    ("f4", ["BitRound", "LZ4"]),
    ("i4", ["Delta", "Zlib"]),
    ("i4", ["Shuffle", "Zstd"]),
    ("u2", ["GZip", "CRC32"]),
    ("f8", ["Blosc", "Fletcher32"]),
    ("f8", ["FixedScaleOffset", "Zstd", "Adler32"]),
    ("f8", ["Quantize", "LZ4", "CRC32C"]),
    ("?", ["PackBits", "Zlib"]),
]
ARRAY_TO_ARRAY = {"BitRound", "Delta", "FixedScaleOffset", "Quantize", "PackBits"}


def v3_codec(name: str, dtype: str) -> Any:
    import zarr.codecs.numcodecs as wrappers

    options: dict[str, dict[str, Any]] = {
        "BitRound": {"keepbits": 9},
        "Delta": {"dtype": f"<{dtype}"},
        "Shuffle": {"elementsize": 4},
        "FixedScaleOffset": {"scale": 10, "offset": 5, "dtype": "<f8", "astype": "<i4"},
        "Quantize": {"digits": 1, "dtype": "<f8"},
    }
    return getattr(wrappers, name)(**options.get(name, {}))


def make_v3(path: pathlib.Path, data: Any, names: list[str], dtype: str) -> None:
    codecs = [v3_codec(n, dtype) for n in names]
    array = zarr.create_array(
        store=str(path), shape=data.shape, chunks=(50, 40), dtype=data.dtype, zarr_format=3,
        filters=[c for c, n in zip(codecs, names, strict=True) if n in ARRAY_TO_ARRAY],
        compressors=[c for c, n in zip(codecs, names, strict=True) if n not in ARRAY_TO_ARRAY],
    )  # fmt: skip
    array[:] = data


@pytest.mark.parametrize(("dtype", "names"), V3)
def test_v3(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, dtype: str, names: list[str]
) -> None:
    """The same for Zarr 3's codecs named numcodecs.*, which are looked up in the registry."""
    pytest.importorskip("zarr.codecs.numcodecs", reason="this zarr has no zarr.codecs.numcodecs")
    data = TEMPERATURES.astype("i8").astype(dtype) if dtype != "?" else TEMPERATURES > 9000
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make_v3(tmp_path / "theirs", data, names, dtype)
        want = zarr.open_array(str(tmp_path / "theirs"), mode="r")[:]
        count = Count(monkeypatch)
        ours.register()
        make_v3(tmp_path / "ours", data, names, dtype)
        assert count.encoded >= 9
        for one in ("ours", "theirs"):
            got = zarr.open_array(str(tmp_path / one), mode="r")[:]
            np.testing.assert_array_equal(got, want)
        assert count.decoded >= 18
        ours.unregister()
        np.testing.assert_array_equal(zarr.open_array(str(tmp_path / "ours"), mode="r")[:], want)
    meta = [json.loads((tmp_path / one / "zarr.json").read_text()) for one in ("ours", "theirs")]
    assert meta[0] == meta[1]


def test_corrupt_chunk(tmp_path: pathlib.Path) -> None:
    """A chunk that is broken on disk raises when it is read, and only then."""
    ours.register()
    make_v2(tmp_path / "a", TEMPERATURES, {"id": "zstd", "level": 1, "checksum": True}, [], "C")
    chunk = tmp_path / "a" / "1.1"
    data = bytearray(chunk.read_bytes())
    data[len(data) // 2] ^= 0xFF
    chunk.write_bytes(data)
    array = zarr.open_array(str(tmp_path / "a"), mode="r")
    np.testing.assert_array_equal(array[:50, :40], TEMPERATURES[:50, :40])
    with pytest.raises(RuntimeError, match="Zstd decompression error"):
        array[60:70, 50:60]


def test_page() -> None:
    """The program of docs/python-numcodecs.md runs."""
    page = pathlib.Path(__file__).parents[2] / "docs" / "python-numcodecs.md"
    if not page.exists():
        pytest.skip("the documents are not here")
    exec(page.read_text().split("```python\n")[1].split("```")[0], {})
