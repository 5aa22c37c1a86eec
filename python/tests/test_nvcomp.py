"""nvCOMP's Python surface beside ours, name by name.

nvcomp_surface.txt has what the docstrings of nvCOMP's package say: one line for each function with
its parameters, attribute, member of an enum, keyword of Codec.  Where the package is installed, the
lines are compared with it; nvCOMP's licence allows no more than to read what it documents.
'test_nvcomp.py > nvcomp_surface.txt' writes the lines anew.

SPDX-License-Identifier: Apache-2.0
"""

import inspect
import re
import types
from pathlib import Path

import liblade
import pytest
from liblade import Codec

LINES = (Path(__file__).parent / "nvcomp_surface.txt").read_text().splitlines()
DUNDERS = {"__array_interface__", "__cuda_array_interface__", "__dlpack__", "__dlpack_device__",
           "__enter__", "__exit__", "__getitem__", "__len__", "__version__", "__cuda_version__"}


def calls(name, doc):
    """'name(parameter, parameter=default)' for each signature in a docstring."""
    found = re.findall(rf"^(?:\d+\. )?{name}\((.*)\) -> ", doc or "", re.M)
    for parameters in found:
        each = re.findall(r"(\w+): ([^,=]+?)(?: = ([^,]+))?(?:, |$)", parameters)
        yield [f"{n}={d}" if d else n for n, _, d in each if n != "self"]


def lines_of(module):
    """What the docstrings of nvCOMP's package say."""
    for name in sorted(dir(module)):
        value = getattr(module, name)
        if isinstance(value, types.ModuleType) or (name.startswith("_") and name not in DUNDERS):
            continue
        if hasattr(value, "__members__") and not isinstance(value, type):
            yield f"{name} = {value}"
        elif not isinstance(value, type):
            for one in calls(name, value.__doc__) if callable(value) else [None]:
                yield name if one is None else f"{name}({', '.join(one)})"
        elif hasattr(value, "__members__"):
            yield from (f"{m} = {int(m)}" for m in value.__members__.values())
        else:
            yield name
            for one in calls("__init__", value.__init__.__doc__):
                yield f"{name}({', '.join(one)})" if name != "Codec" else name + "(**)"
            for keyword in re.findall(r"^ +(\w+): ", value.__init__.__doc__ or "", re.M):
                if name == "Codec":
                    yield f"Codec({keyword}=)"
            yield from lines_of_class(name, value)


def lines_of_class(of, value):
    for name in sorted(vars(value)):
        if name.startswith("_") and name not in DUNDERS:
            continue
        member = getattr(value, name)
        if callable(member):
            yield from (f"{of}.{name}({', '.join(c)})" for c in calls(name, member.__doc__))
        else:
            yield f"{of}.{name}"


def surface_of(module):
    return list(dict.fromkeys(lines_of(module)))


def test_the_lines_are_those_of_the_package():
    nvcomp = pytest.importorskip("nvidia.nvcomp", reason="nvCOMP's package is not installed",
                                 exc_type=ImportError)
    if not nvcomp.__version__.startswith("6.0."):
        pytest.skip(f"nvCOMP {nvcomp.__version__}; the lines are of 6.0")
    assert surface_of(nvcomp) == LINES


@pytest.mark.parametrize("line", LINES)
def test_ours(line):
    path, _, rest = re.match(r"([\w.]+)((\(| = )?.*)", line).groups()
    ours = liblade
    for name in path.split("."):
        ours = getattr(ours, name)
    if " = " in line and "(" not in line:
        value = line.split(" = ")[1]
        assert str(ours) == f"{ours}" == (value if "." in value else path)
        assert value == (str(ours) if "." in value else str(int(ours)))
    elif line.endswith("=)"):
        assert inspect.signature(ours).parameters[line[6:-2]].kind is inspect.Parameter.KEYWORD_ONLY
    elif "(" in line and not re.search(r"\*\*|__getitem__", line):
        check_call(ours, re.findall(r"(\w+)(?:=([^,)]+))?[,)]", line))


def check_call(ours, want):
    """Parameters of the same names and order, with the same defaults."""
    have = inspect.signature(ours).parameters
    order = [name for name in have if name != "self"]
    at = -1
    for name, default in want:
        assert order.index(name) > at or name in ("srcs", "buffer", "uncompressed_sizes")
        if have[name].kind is not inspect.Parameter.KEYWORD_ONLY:
            at = order.index(name)
        if default:
            assert str(have[name].default) == default.strip("'")


def test_several_may_be_named_so():
    codec = Codec(algorithm="LZ4")
    x = [b"abc" * 500, b"", b"x" * 70]
    y = codec.encode(srcs=x, compression_config=codec.compression_config(
        uncompressed_sizes=[1500, 0, 70]))
    known = codec.decompression_config(srcs=y)
    assert known == codec.decompression_config(
        compression_config=codec.compression_config([1500, 0, 70]))
    z = codec.decode(srcs=y, decompression_config=known)
    assert [a.tobytes() for a in z] == x
    one = codec.encode(array=x[0],
                       compression_config=codec.compression_config(uncompressed_size=1500))
    assert codec.decode(src=one, decompression_config=codec.decompression_config(
        src=one)).tobytes() == x[0]
    for wrong in (dict(), dict(uncompressed_size=1, uncompressed_sizes=[1])):
        with pytest.raises(TypeError, match="one of uncompressed_size, uncompressed_sizes"):
            codec.compression_config(**wrong)
    with pytest.raises(TypeError, match="one of src, srcs, compression_config; 2 were given"):
        codec.decompression_config(one, srcs=y)
    with pytest.raises(TypeError, match="takes .array. or .srcs., not both"):
        codec.encode(x, srcs=x)
    assert codec.encode(x[0], srcs=None).tobytes() == one.tobytes()
    for call in (codec.encode, codec.decode, codec.decompression_config):
        with pytest.raises(TypeError, match="srcs is a list of arrays or a BatchArray; one array"):
            call(srcs=x[0])
    with pytest.raises(TypeError, match="uncompressed_sizes is 5, not a list of sizes"):
        codec.compression_config(uncompressed_sizes=5)
    with pytest.raises(TypeError, match="assigned one at a time, not by a slice"):
        y[0:1] = [one]
    liblade.Array(src_object=b"abc", cuda_stream=0)
    with codec as same:
        assert same is codec
    codec.__exit__()


def test_enums_print_their_names():
    assert f"{liblade.BitstreamKind.RAW}" == "BitstreamKind.RAW"
    assert "%s %d" % (liblade.DELTA, liblade.DELTA) == "CascadedFineGrainedEncoding.DELTA 1"
    assert liblade.DELTA | liblade.RLE == 3


@pytest.mark.parametrize("given", [
    dict(algorithm="Bitcomp", delta=0.0), dict(algorithm="Bitcomp", delta=0.3, mode=0),
    dict(algorithm="Cascaded", compression_level=20),
    dict(algorithm="Cascaded", terminal_codecs=liblade.CASCADED_BITPACK,
         coarse_grained_encodings=liblade.NONE, fine_grained_encodings=liblade.DELTA | liblade.FOR),
])
def test_what_nvcomp_allows(given):
    codec = Codec(**given)
    assert codec.decode(codec.encode(b"abcd" * 50)).tobytes() == b"abcd" * 50


def test_items_of_a_result_can_be_replaced():
    codec = Codec(algorithm="Zstd", bitstream_kind=1)
    x = [b"a" * 1000, b"b" * 2000, b"c" * 10]
    y = codec.encode(x)
    first = y[0]
    y[0], y[-1] = y[1], codec.encode(b"d" * 7).tobytes()
    assert [a.tobytes() for a in codec.decode(y)] == [x[1], x[1], b"d" * 7]
    assert codec.decode(first).tobytes() == x[0]
    assert y.buffer_sizes == [a.buffer_size for a in y] and len(y) == 3
    y[1:][0] = b"others"  # a slice is a batch of its own
    assert codec.decode(y[1]).tobytes() == x[1]
    given = liblade.as_arrays(x)
    given[1] = b"new"
    assert given[1].tobytes() == b"new" and "3 arrays on host, 1013 bytes" in repr(given)
    for at in (3, -4, 1 << 80):
        with pytest.raises(IndexError):
            y[at] = b""
    with pytest.raises(TypeError, match="no memory to share"):
        y[0] = 5
    with pytest.raises(TypeError, match="cannot be deleted"):
        del y[0]
    with pytest.raises(TypeError):
        y[0:2] = x


if __name__ == "__main__":
    from nvidia import nvcomp

    print("\n".join(surface_of(nvcomp)))
