"""Codec's names, keywords and defaults, one by one; nvCOMP's are in test_nvcomp.py.

SPDX-License-Identifier: Apache-2.0
"""

import ctypes
import inspect
import re

import pytest

import liblade
from liblade import Codec

KEYWORDS = {
    "algorithm": "", "device_id": None, "cuda_stream": None, "uncomp_chunk_size": 65536,
    "bitstream_kind": 0, "checksum_policy": 0, "decompress_backend": 0, "use_de_sort": None,
    "data_type": None, "bitshuffle_mode": 0, "algorithm_type": None, "execution_policy": 0,
    "num_rles": None, "num_deltas": None, "use_bitpack": None, "mode": None, "delta": None,
    "states_per_lane": None, "histogram_reduction_log2": None, "max_sub_chunk_count": None,
    "skip_validate": None, "compression_level": None, "terminal_codecs": None,
    "fine_grained_encodings": None, "coarse_grained_encodings": None,
    # Ours.
    "level": None, "filters": None, "threads": 0, "strict": False, "where": "auto",
}  # fmt: skip

METHODS = {
    "encode": ["array", "out", "compression_config", "errors", "srcs"],
    "decode": ["src", "data_type", "out", "decompression_config", "errors", "byte_range",
               "element_range", "srcs"],
    "encode_into": ["src", "out"],
    "decode_into": ["src", "out", "byte_range"],
    "compression_config": ["uncompressed_size", "uncompressed_sizes"],
    "decompression_config": ["src", "srcs", "compression_config"],
    "get_max_comp_buffer_size": ["source"],
    "get_uncomp_buffer_size": ["source"],
    "get_required_compression_alignment": [],
    "get_required_decompression_alignment": [],
    "__enter__": [],
}


def test_keywords_and_defaults():
    given = inspect.signature(Codec).parameters
    assert {k: p.default for k, p in given.items()} == KEYWORDS
    assert all(p.kind is p.KEYWORD_ONLY for p in given.values())
    for unknown in ("chunk_size", "uncompressed_chunk_size", "algorithm_name", "type"):
        with pytest.raises(TypeError, match=unknown):
            Codec(algorithm="LZ4", **{unknown: 20})
    with pytest.raises(TypeError):
        Codec("LZ4")


@pytest.mark.parametrize("name", METHODS)
def test_methods(name):
    parameters = list(inspect.signature(getattr(Codec, name)).parameters)
    assert parameters == ["self", *METHODS[name]]


def test_versions():
    """Of the libraries that are linked, as the command lists them."""
    versions = liblade.versions()
    assert versions["liblade"] == liblade.__version__
    assert {*versions} >= {"zstd", "lz4", "libdeflate", "zlib", "snappy", "blosc", "xxhash"}
    for name, version in versions.items():
        compiled = name in ("libdeflate", "snappy")
        assert re.fullmatch(r"[0-9]+(\.[0-9]+)+" + compiled * r" \(its headers\)", version), name


def test_module():
    assert set(liblade.__all__) <= set(dir(liblade)) | {"__cuda_version__"}
    assert liblade.__version__.count(".") == 2
    assert liblade.__cuda_version__ is None or isinstance(liblade.__cuda_version__, int)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        liblade.nothing


@pytest.mark.parametrize("name", ["LZ4", "lz4", "Lz4", "SNAPPY", "snappy", "Zstd", "ZSTD", "zlib",
                                  "deflate", "Gzip", "GZIP", "blosc", "ANS", "ans", "Bitcomp",
                                  "BITCOMP", "Cascaded", "cascaded"])
def test_names_in_any_case(name):
    codec = Codec(algorithm=name)
    assert codec.algorithm == name
    assert liblade.Codec().decode(codec.encode(b"abc" * 99)).tobytes() == b"abc" * 99


@pytest.mark.parametrize("name", ["GDeflate", "Gdeflate", "gdeflate", "GDEFLATE"])
def test_what_the_library_lacks(name):
    with pytest.raises(NotImplementedError, match=r"liblade \d+\.\d+\.\d+ has no \w+ yet"):
        Codec(algorithm=name)


@pytest.mark.parametrize("kwargs, kind, text", [
    (dict(algorithm="lz5"), ValueError, "lz5"),
    (dict(algorithm="zstd(level=99)"), ValueError, "level"),
    (dict(algorithm=5), TypeError, "algorithm: 5 is no str"),
    (dict(algorithm="LZ4", num_rles=2), ValueError, "num_rles is an option of Cascaded"),
    (dict(algorithm="LZ4", delta=0.1), ValueError, "delta is an option of Bitcomp"),
    (dict(algorithm="LZ4", states_per_lane=1), ValueError, "option of ANS"),
    (dict(algorithm="Bitcomp", num_deltas=2), ValueError, "option of Cascaded, not of Bitcomp"),
    (dict(algorithm="ANS", mode=1), ValueError, "mode is an option of Bitcomp and Cascaded"),
    (dict(compression_level=1), ValueError, "option of Cascaded, not of this"),
    (dict(algorithm="bitcomp|copy", delta=1), ValueError, "option of Bitcomp, not of bitcomp"),
    (dict(algorithm="LZ4", algorithm_type=1), ValueError, "of Deflate and Gzip and Bitcomp"),
    (dict(algorithm="Gzip", algorithm_type=6), ValueError,
     "algorithm_type is 6, it can be 0, 1, 2, 3, 4, 5"),
    (dict(algorithm="Bitcomp", algorithm_type=2), ValueError, "is 2, it can be 0, 1$"),
    (dict(algorithm="Bitcomp", mode=3), ValueError, "mode is 3, it can be 0"),
    (dict(algorithm="Bitcomp", mode=1, delta=1), ValueError, "wants a data_type of <f2, <f4, <f8"),
    (dict(algorithm="Bitcomp", mode=1, data_type="<f4"), ValueError, "wants one above 0"),
    (dict(algorithm="Bitcomp", mode=2, data_type="<f4", delta=-1.0), ValueError, "delta is -1.0"),
    (dict(algorithm="Bitcomp", delta=0.5), ValueError, "mode is BITCOMP_LOSSLESS"),
    (dict(algorithm="Bitcomp", level=3), ValueError, "bitcomp has none"),
    (dict(algorithm="ANS", states_per_lane=3), ValueError, "states_per_lane is 3"),
    (dict(algorithm="ANS", histogram_reduction_log2=9), ValueError, "reduction_log2 is 9"),
    (dict(algorithm="ANS", max_sub_chunk_count=2), ValueError, "max_sub_chunk_count is 2"),
    (dict(algorithm="Cascaded", mode=0), ValueError, "mode is 0, it can be"),
    (dict(algorithm="Cascaded", compression_level=-1), ValueError, "compression_level is -1"),
    (dict(algorithm="Cascaded", compression_level=1, level=1), ValueError, "cannot both"),
    (dict(algorithm="Cascaded", fine_grained_encodings=8), ValueError, "encodings is 8"),
    (dict(algorithm="Cascaded", coarse_grained_encodings=1), ValueError, "encodings is 1"),
    (dict(algorithm="Cascaded", terminal_codecs=[]), ValueError, "terminal_codecs is 0"),
    (dict(algorithm="Cascaded", num_rles=9), ValueError, "num_rles is 9"),
    (dict(algorithm="Cascaded", num_rles=1, mode=1), ValueError, "num_rles is of nvCOMP 5"),
    (dict(algorithm="Gzip", algorithm_type=1, level=3), ValueError, "cannot both"),
    (dict(algorithm="Snappy", level=3), ValueError, "snappy has none"),
    (dict(level=3), ValueError, "want an algorithm"),
    (dict(filters=["shuffle(4)"]), ValueError, "want an algorithm"),
    (dict(algorithm="LZ4", filters="shuffle(4)"), TypeError, "a list of texts"),
    (dict(algorithm="LZ4", filters=["shufle(4)"]), ValueError, "shufle"),
    (dict(algorithm="LZ4", filters=[4]), TypeError, "filters: 4 is no text"),
    (dict(algorithm="LZ4", data_type="<i3"), ValueError, "'<i3' is not known"),
    (dict(algorithm="LZ4", data_type=7), TypeError, "no data type"),
    (dict(algorithm="LZ4", bitstream_kind=4), ValueError, "bitstream_kind is 4"),
    (dict(algorithm="LZ4", checksum_policy=-1), ValueError, "checksum_policy is -1"),
    (dict(algorithm="LZ4", bitshuffle_mode=3), ValueError, "bitshuffle_mode is 3"),
    (dict(algorithm="LZ4", uncomp_chunk_size=15), ValueError, "chunk_size is 15, it can be"),
    (dict(algorithm="LZ4", uncomp_chunk_size=2**31), ValueError, "from 16 to"),
    (dict(algorithm="LZ4", threads=-1), ValueError, "threads is -1"),
    (dict(algorithm="LZ4", threads=5000), ValueError, "threads is 5000"),
    (dict(algorithm="LZ4", where="moon"), ValueError, "where is 'moon'"),
    (dict(algorithm="LZ4", decompress_backend=1), NotImplementedError, "no hardware backend"),
    (dict(algorithm="LZ4", use_de_sort=True), NotImplementedError, "no hardware backend"),
    (dict(algorithm="LZ4", cuda_stream="x"), TypeError, "cuda_stream"),
])
def test_refused_keywords(kwargs, kind, text):
    with pytest.raises(kind, match=text):
        Codec(**kwargs)


@pytest.mark.parametrize("kwargs, pipeline", [
    (dict(algorithm="ANS", states_per_lane=2, histogram_reduction_log2=8, max_sub_chunk_count=64,
          skip_validate=True), "ans"),
    (dict(algorithm="ANS", data_type="<f2"), "ans(dtype=<f2)"),
    (dict(algorithm="ANS", data_type="|f1"), "ans(dtype=float8_e4m3)"),
    (dict(algorithm="Bitcomp", algorithm_type=1, data_type="<u8", mode=0),
     "bitcomp(dtype=<u8,algorithm=sparse)"),
    (dict(algorithm="Bitcomp", data_type="<f8", delta=0.5,
          mode=liblade.BitcompMode.BITCOMP_LOSSY_FP_TO_UNSIGNED),
     "bitcomp(dtype=<f8,mode=lossy_unsigned,delta=0.5)"),
    (dict(algorithm="Cascaded", num_rles=0), "cascaded(level=3,rles=0,deltas=1)"),
    (dict(algorithm="Cascaded", num_deltas=0, use_bitpack=False),
     "cascaded(level=3,rles=2,deltas=0,bitpack=false)"),
    (dict(algorithm="Cascaded", level=7, mode=liblade.CascadedMode.ASYMMETRIC,
          terminal_codecs=liblade.CascadedTerminalCodec.CASCADED_BITPACK,
          coarse_grained_encodings=[liblade.CascadedCoarseGrainedEncoding.NONE]),
     "cascaded(level=7)"),
    (dict(algorithm="Cascaded", mode=liblade.CascadedMode.SYMMETRIC, data_type="<i4",
          fine_grained_encodings=liblade.CascadedFineGrainedEncoding.DELTA
          | liblade.CascadedFineGrainedEncoding.FOR, compression_level=1),
     "cascaded(dtype=<i4,mode=fast,level=1,encodings=5)"),
    (dict(algorithm="Cascaded", fine_grained_encodings=liblade.CascadedFineGrainedEncoding.NONE),
     "cascaded(level=3,encodings=0)"),
])
def test_options_of_typed_codecs(kwargs, pipeline):
    codec = Codec(**kwargs)
    assert codec.pipeline == pipeline and codec.lossy == ("lossy" in pipeline)
    data = bytes(range(250)) * 8
    if not codec.lossy:
        assert codec.decode(codec.encode(data)).tobytes() == data


def test_accepted_keywords():
    Codec(algorithm="LZ4", device_id=0, cuda_stream=0, uncomp_chunk_size=16, use_de_sort=False,
          decompress_backend=liblade.DecompressBackend.NVCOMP_DECOMPRESS_BACKEND_CUDA,
          execution_policy=liblade.ExecutionPolicy.LATENCY, data_type="|u1", strict=True)
    codec = Codec(algorithm="LZ4")
    assert codec.bitstream_kind is liblade.BitstreamKind.NVCOMP_NATIVE
    assert codec.checksum_policy is liblade.NO_COMPUTE_NO_VERIFY
    assert codec.uncomp_chunk_size == 65536
    assert codec.get_required_compression_alignment() == 1
    assert codec.get_required_decompression_alignment() == 1
    with codec as same:
        assert same is codec
    assert repr(codec) == "<liblade.Codec lz4(level=1), NVCOMP_NATIVE>"
    assert repr(Codec()) == "<liblade.Codec of any frame, NVCOMP_NATIVE>"


@pytest.mark.parametrize("call, text", [
    (lambda c: c.encode(), "encode\\(\\) wants the argument 'array'"),
    (lambda c: c.encode(b"", None, None, None), "at most 3 positional arguments, 4 were given"),
    (lambda c: c.decode(b"", dst=1), "unexpected keyword argument 'dst'"),
    (lambda c: c.decode(b"", src=b""), "multiple values for argument 'src'"),
    (lambda c: c.decode_into(b"", bytearray(3), errors="raise"), "unexpected keyword"),
    (lambda c: c.encode_into(b""), "wants the argument 'out'"),
    (lambda c: c.encode(3), "no memory to share"),
    (lambda c: c.get_max_comp_buffer_size("x"), "no memory to share"),
    (lambda c: c.decode(b"", byte_range=[1, 2]), "tuple"),
])
def test_refused_arguments(call, text):
    with pytest.raises(TypeError, match=text):
        call(Codec(algorithm="LZ4"))


def test_without_algorithm():
    with pytest.raises(ValueError, match="can only decode"):
        Codec().encode(b"")
    with pytest.raises(ValueError, match="only NVCOMP_NATIVE"):
        Codec(bitstream_kind=1).decode(b"")
    with pytest.raises(ValueError, match="errors is 'ignore'"):
        Codec().decode(b"", errors="ignore")


@pytest.mark.parametrize("name, value", [
    ("ptr", 77), ("cuda_stream", 77), ("handle", 77), ("handle", ctypes.c_void_p(77)),
    ("__cuda_stream__", (0, 77)), ("__cuda_stream__", lambda self: (0, 77)),
])  # fmt: skip
def test_streams_of_other_packages(name, value):
    theirs = type("Stream", (), {name: value})()  # CuPy's, torch's, numba's, CUDA's own protocol
    assert liblade.CudaStream.borrow(theirs).ptr == 77
    Codec(algorithm="LZ4", cuda_stream=theirs)
    assert liblade.as_array(b"abc", cuda_stream=theirs).tobytes() == b"abc"


def test_streams_and_external_memory():
    default = type("Stream", (), {"handle": ctypes.c_void_p(0)})()
    assert liblade.CudaStream.borrow(default).is_special
    for bad, error in ((-1, ValueError), (2**64, ValueError), (1.5, TypeError), ("x", TypeError),
                       (type("s", (), {"ptr": 1.5})(), TypeError),
                       (type("s", (), {"__cuda_stream__": (0,)})(), IndexError)):
        with pytest.raises(error):
            liblade.CudaStream.borrow(bad)
    s = liblade.CudaStream.borrow(0)
    assert s.ptr == 0 and s.is_special and s.device == -1
    assert liblade.CudaStream.borrow(s, 3).device == 3 and int(liblade.CudaStream.borrow(77)) == 77
    with pytest.raises(TypeError, match="borrow"):
        liblade.CudaStream()
    m = liblade.ExternalMemory(4096, s)
    assert m.ptr == 4096 and m.stream is s and m.memory == 4096
    if liblade.__cuda_version__ is None:
        with pytest.raises(liblade.DeviceError):
            liblade.CudaStream.make_new()
        with pytest.raises(liblade.DeviceError):
            liblade.as_array(b"abc").cuda()
        with pytest.raises(liblade.DeviceError):
            liblade.as_arrays([b"abc"]).cuda()
