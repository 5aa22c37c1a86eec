"""numcodecs' own tests of the codecs, run against liblade.numcodecs.

They come from numcodecs' source distribution (package_sdist.py); only their imports are changed.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("numpy", reason="numpy is not installed")
pytest.importorskip("numcodecs", reason="numcodecs is not installed")

import liblade
import package_sdist

MODULES = (
    "zlib gzip zstd lz4 blosc shuffle delta checksum32 fletcher32 fixedscaleoffset bitround "
    "packbits quantize"
).split()

CONFTEST = """
import liblade.numcodecs
liblade.numcodecs.register()
"""


def adapted(text: str) -> str:
    """The test with our modules in place of numcodecs', where there is one of the name."""
    names = "|".join(MODULES)
    text = re.sub(rf"\bfrom numcodecs\.({names}) import", r"from liblade.numcodecs.\1 import", text)
    text = re.sub(r"\bfrom numcodecs import (\*|blosc)", r"from liblade.numcodecs import \1", text)
    return text


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """numcodecs' tests, adapted, with the data that they read."""
    try:
        found = package_sdist.unpacked("numcodecs")
    except package_sdist.Unavailable as e:
        pytest.skip(str(e))
    folder = tmp_path_factory.mktemp("suite")
    shutil.copytree(found / "fixture", folder / "fixture")
    (folder / "tests").mkdir()
    for name in ("__init__", "common", "test_jenkins", *(f"test_{m}" for m in MODULES)):
        text = (found / "tests" / f"{name}.py").read_text()
        (folder / "tests" / f"{name}.py").write_text(adapted(text))
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]\n")
    return folder


@pytest.mark.parametrize("module", MODULES)
def test_suite(suite: pathlib.Path, module: str) -> None:
    """One of numcodecs' files of tests passes, and does test ours."""
    path = suite / "tests" / f"test_{module}.py"
    assert f"liblade.numcodecs.{module}" in path.read_text()
    paths = [str(pathlib.Path(liblade.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-rs", str(path)],
        cwd=suite, env=env, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed and int(passed[1]) > 0, done.stdout
