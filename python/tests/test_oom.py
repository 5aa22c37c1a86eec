"""Every allocation of the interpreter that a call makes fails in turn: an exception, no crash, and
the next call works.

SPDX-License-Identifier: Apache-2.0
"""

import gc
import sysconfig

import pytest

import liblade
from liblade import Codec

if sysconfig.get_config_var("Py_GIL_DISABLED"):
    pytest.skip("lists of a free-threaded CPython 3.13 do not survive it (PyList_New())",
                allow_module_level=True)
testcapi = pytest.importorskip("_testcapi", reason="this interpreter has no _testcapi")

TEXT = b"no room, no room! " * 300
OUT = bytearray(len(TEXT))
OUTS = [bytearray(len(TEXT)) for _ in range(3)]
CODECS = {kind: Codec(algorithm="LZ4", bitstream_kind=kind) for kind in liblade.BitstreamKind}
ENCODED = {kind: codec.encode(TEXT) for kind, codec in CODECS.items()}
STRIDED = memoryview(bytearray(len(TEXT) * 2))[::2]
BAD = b"\xff" * 30

CALLS = {
    "as_array": lambda c, e: liblade.as_array(OUT),
    "as_array_strided": lambda c, e: liblade.as_array(STRIDED)[1:3],
    "as_arrays": lambda c, e: liblade.as_arrays([OUT, TEXT, STRIDED])[1:],
    "table": lambda c, e: liblade.as_arrays(TEXT, [0, 5], [5, 9])[1],
    "dlpack": lambda c, e: liblade.from_dlpack(liblade.as_array(OUT)),
    "capsule": lambda c, e: liblade.as_array(TEXT).__dlpack__(max_version=(1, 0)),
    "interface": lambda c, e: liblade.as_array(TEXT).__array_interface__,
    "encode": lambda c, e: c.encode(TEXT),
    "encode_strided": lambda c, e: c.encode(STRIDED),
    "encode_list": lambda c, e: c.encode([TEXT, OUT, STRIDED]),
    "decode": lambda c, e: c.decode(e),
    "decode_out": lambda c, e: c.decode(e, out=OUT),
    "decode_strided": lambda c, e: c.decode(e, out=STRIDED),
    "decode_into": lambda c, e: c.decode_into(e, OUT),
    "decode_list": lambda c, e: c.decode([e, e, e])[2],
    "decode_outs": lambda c, e: c.decode([e, e, e], out=OUTS),
    "decode_errors": lambda c, e: c.decode([e, BAD, e], errors="return"),
    "decode_bad": lambda c, e: c.decode(BAD),
    "size": lambda c, e: c.get_uncomp_buffer_size([e, e]),
    "checksums": lambda c, e: liblade.checksums("crc32c", [TEXT, STRIDED]),
}


@pytest.mark.parametrize("kind", list(liblade.BitstreamKind), ids=lambda k: k.name)
@pytest.mark.parametrize("name", CALLS)
def test_allocations_fail_in_turn(name, kind):
    codec, encoded, call = CODECS[kind], ENCODED[kind], CALLS[name]
    gc.collect()
    gc.disable()
    blocks = liblade._lade._memory_stats()[0]
    failures = 0  # how many allocations the call makes
    try:
        for start in range(200):
            result = None
            try:
                testcapi.set_nomemory(start, start + 1)
                result = call(codec, encoded)
                testcapi.remove_mem_hooks()
                break
            except MemoryError:
                testcapi.remove_mem_hooks()
                failures += 1
            except liblade.CorruptError:
                testcapi.remove_mem_hooks()
                assert name == "decode_bad"
                break
        result = None
    finally:
        testcapi.remove_mem_hooks()
        gc.enable()
    assert 0 < failures < 199
    assert liblade._lade._memory_stats()[0] == blocks
    assert codec.decode(encoded).tobytes() == TEXT
