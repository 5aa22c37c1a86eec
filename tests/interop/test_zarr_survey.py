# test_zarr_survey.py: one small array of each kind that zarr-python makes and that has no test in
# test_zarr.py: units of times, fill values, pairs of codecs, filters in format 2.
# SPDX-License-Identifier: Apache-2.0
"""Each array is made and read by zarr-python, then read by liblade; all that differ are listed."""
import itertools

import numcodecs
import pytest

import zarr_ctypes as ours

np = pytest.importorskip("numpy")
zarr = pytest.importorskip("zarr", reason="no wheel of zarr for this Python")
import zarr.codecs.numcodecs as wrapped  # noqa: E402

from test_zarr import codecs, make  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def differences(tmp_path, arrays):
    """'arrays' has names, data to be written or None, and what create_array() takes."""
    bad, count = [], 0
    for number, (name, data, options) in enumerate(arrays):
        folder = tmp_path / str(number)
        try:
            array = zarr.create_array(folder, **options)
            if data is not None:
                array[...] = data
            want = zarr.open_array(folder)[...]
        except (ValueError, TypeError, OverflowError):
            continue  # zarr-python has no such array
        count += 1
        try:
            little = want
            if want.dtype.kind in "iufcU":
                little = want.astype(want.dtype.newbyteorder("<"))
            if ours.read(folder, want.dtype).tobytes() != little.tobytes():
                bad.append(f"{name}: other elements")
        except ours.lade.Error as error:
            bad.append(f"{name}: {error}")
    assert bad == []
    return count


def of(data, chunks=(5, 4), **options):
    return data, dict(shape=data.shape, dtype=data.dtype, chunks=chunks, **options)


def test_units_of_times(tmp_path):
    units = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "μs", "ns", "ps", "fs", "as", "10ns"]
    arrays = [(f"{kind}8[{unit}] {form}", *of(make((7, 6), f"{kind}8[{unit}]"), zarr_format=form))
              for kind in "Mm" for unit in units for form in (2, 3)]
    assert differences(tmp_path, arrays) == 60


FILLS = {
    "float16": [np.nan, 65504.0, 6e-8], "float32": [np.nan, np.inf, -0.0, 1e-45, 3.4e38, 0.1],
    "float64": [np.nan, -np.inf, 5e-324, 1.7976931348623157e308, -0.0, 0.1],
    "complex64": [complex(np.nan, 1), complex(-0.0, np.inf), 1 + 2j], "bool": [True],
    "complex128": [complex(np.nan, -np.inf)], "int64": [-2**63, 2**63 - 1], "uint64": [2**64 - 1],
    "S5": [b"ab\xff\0c"], "U3": ["日a"], "V6": [np.void(b"123456")],
    "M8[ns]": [np.datetime64("NaT", "ns"), np.datetime64("2020-01-01")],
    "m8[s]": [np.timedelta64("NaT", "s"), np.timedelta64(-5, "s")],
}
FIELDS = [([("a", "<i4"), ("b", "<f8")], (3, np.nan)), ([("a", "S3"), ("b", "<U2")], (b"x", "é")),
          ([("t", "<M8[s]"), ("n", [("v", "V2")])], (np.datetime64("NaT", "s"), (b"ab",)))]


def test_fill_values(tmp_path):
    kinds = [(dtype, value) for dtype, values in FILLS.items() for value in values]
    kinds += [(np.dtype(fields), np.array(value, fields)[()]) for fields, value in FIELDS]
    arrays = [(f"{dtype} {value} {form}", None, dict(
        shape=(3,), chunks=(2,), dtype=dtype, fill_value=value, zarr_format=form))
        for dtype, value in kinds for form in (2, 3)]
    assert differences(tmp_path, arrays) >= 2 * sum(map(len, FILLS.values()))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_fill_values_of_bits(tmp_path, dtype):
    # zarr-python takes the number of digits for the type; others than the array's are refused.
    for digits in ("7e01", "7fc00001", "7ff8000000000001", "0", "7fc0000", "8000", "80000000"):
        folder = tmp_path / digits
        zarr.create_array(folder, shape=(3,), chunks=(2,), dtype=dtype, fill_value=np.nan)
        document = folder / "zarr.json"
        document.write_text(document.read_text().replace('"NaN"', f'"0x{digits}"'))
        if len(digits) == 2 * np.dtype(dtype).itemsize:
            bits = bytes.fromhex(digits)[::-1]
            assert ours.read(folder, dtype).tobytes() == bits * 3
            want = np.frombuffer(bits * 3, dtype)
            np.testing.assert_array_equal(zarr.open_array(folder)[...], want)
        else:
            with pytest.raises(ours.lade.Error, match='"0x..." of'):
                ours.read(folder, dtype)


def test_pairs_of_codecs(tmp_path):
    each = [codecs.ZstdCodec(), codecs.GzipCodec(), codecs.BloscCodec(), codecs.Crc32cCodec(),
            wrapped.BZ2(level=1), wrapped.LZ4(), wrapped.LZMA(), wrapped.Adler32(),
            wrapped.Fletcher32(), wrapped.JenkinsLookup3(initval=9), wrapped.Zlib(),
            wrapped.Shuffle(elementsize=4), wrapped.Blosc(shuffle=0, cname="zstd")]
    data = make((8, 8), "int32")
    arrays = [(f"{a} {b}", *of(data, compressors=[a, b])) for a, b in itertools.product(each, each)]
    assert differences(tmp_path, arrays) > 150


def test_filters_of_format_2(tmp_path):
    each = []
    for a, b in itertools.product("<>", "<>"):
        each += [
            (f"{a}i4", numcodecs.Delta(f"{a}i4", f"{b}i8")), (f"{a}i2", numcodecs.Delta(f"{b}i2")),
            (f"{a}i4", numcodecs.Delta(f"{a}i4", f"{b}i2")),
            (f"{a}f4", numcodecs.FixedScaleOffset(-3.5, 0.1, f"{a}f4", f"{b}i2")),
            (f"{a}i4", numcodecs.FixedScaleOffset(1, 1, f"{a}i4", f"{b}i8")),
            (f"{a}f8", numcodecs.Quantize(2, f"{a}f8", f"{b}f4")),
            (f"{a}f8", numcodecs.Quantize(1, f"{a}f8", f"{b}f2")),
            (f"{a}i4", numcodecs.AsType(f"{b}f4", f"{a}i4")),
            (f"{a}f4", numcodecs.AsType("|i1", f"{a}f4"))]
    arrays = []
    for (dtype, one), order, last in itertools.product(each, "CF", [None, numcodecs.LZ4()]):
        data = np.random.default_rng(7).integers(0, 100, (12, 11)).astype(dtype)
        arrays.append((f"{one} {order} {last}", *of(data, zarr_format=2, order=order, filters=[one],
                                                    compressors=last)))
    assert differences(tmp_path, arrays) == 144
