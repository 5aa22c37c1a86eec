"""Each program of examples/python runs, and so does the first code of python/README.md.

SPDX-License-Identifier: Apache-2.0
"""

import os
import pathlib
import re
import subprocess
import sys

import pytest

import liblade

ROOT = pathlib.Path(__file__).parents[2]
PROGRAMS = sorted((ROOT / "examples" / "python").glob("*.py"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_example(path, tmp_path):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run([sys.executable, path], cwd=tmp_path, env=env, capture_output=True,
                          text=True, timeout=120)
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0 and done.stdout, done.stderr


@pytest.mark.parametrize("name", ["python/README.md", "docs/python.md", "docs/layouts.md",
                                  "docs/zarr-python.md", "docs/rntuple.md"])
def test_documents(name):
    # A free-threaded interpreter may have no wheels of these.
    needs = {"docs/zarr-python.md": ["numpy", "zarr"], "docs/rntuple.md": ["awkward"]}
    for package in needs.get(name, []):
        pytest.importorskip(package)
    text = (ROOT / name).read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    assert blocks
    scope = {}
    try:
        for block in blocks:
            exec(block, scope)
    finally:
        if "zarr" in scope:
            scope["zarr"].config.reset()


# CuPy's names that examples/python/gpu_pools.py uses, on the driver that is there.
POOL = '''
import contextlib, ctypes, weakref

driver = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
driver.cuInit(0)
driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)


class cuda:
    class MemoryPool:
        def __init__(self):
            self.used = 0

        def malloc(self, size):
            address = ctypes.c_uint64()
            driver.cuCtxPushCurrent_v2(context)
            assert driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)) == 0
            driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
            memory = type("MemoryPointer", (), {"ptr": address.value})()
            self.used += size
            weakref.finalize(memory, self.free, address.value, size)
            return memory

        def free(self, address, size):
            driver.cuCtxPushCurrent_v2(context)
            driver.cuMemFree_v2(ctypes.c_uint64(address))
            driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
            self.used -= size

        def used_bytes(self):
            return self.used

    ExternalStream = contextlib.nullcontext
'''


def test_a_pool(tmp_path):
    """The example of pools where there is a device, emulated too, with a pool in CuPy's stead."""
    if liblade.__cuda_version__ is None:
        pytest.skip("no GPU, or no driver of one")
    (tmp_path / "cupy.py").write_text(POOL)
    (tmp_path / "rmm.py").write_text("raise ImportError('not this one')")
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    done = subprocess.run([sys.executable, ROOT / "examples/python/gpu_pools.py"], text=True,
                          env={**os.environ, "PYTHONPATH": path}, capture_output=True, timeout=120)
    assert done.returncode == 0 and done.stdout.startswith("cupy_pool: "), done.stderr
