"""uproot's own tests of RNTuples, run under liblade.uproot.enable().

They come from uproot's source distribution (package_sdist.py) and are not changed.  Tests whose
files are in tests/golden/rntuple, or that write their own, run; the others if LADE_SKHEP_DATA
names a folder that has them.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("uproot", reason="no wheel of uproot")
pytest.importorskip("awkward", reason="no wheel of awkward")

import liblade
import package_sdist

GOLDEN = pathlib.Path(__file__).parents[2] / "tests/golden/rntuple"

# What uproot's tests import; what they ask for and is not there is skipped.
DATA = """
import os
import pytest

known_files = ()

def data_path(name, *_, **__):
    for folder in (r"@GOLDEN@", os.environ.get("LADE_SKHEP_DATA")):
        path = folder and os.path.join(folder, name)
        if path and os.path.exists(path):
            return path
    pytest.skip(f"LADE_SKHEP_DATA has no {name}")
"""

CONFTEST = """
import liblade.uproot

liblade.uproot.enable()

def pytest_terminal_summary(terminalreporter):
    ours, theirs = liblade.uproot.statistics()
    terminalreporter.write_line(f"columns read by liblade: {ours}, by uproot: {theirs}")
"""


def test_suite(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        found = package_sdist.unpacked("uproot")
    except package_sdist.Unavailable as e:
        pytest.skip(str(e))
    folder = tmp_path / "tests"
    folder.mkdir()
    for path in (found / "tests").glob("test_*.py"):
        text = path.read_text()
        # Graphs want a package of their own, and so does Dask.
        wants = "dask_awkward" if "dask" in path.name else "graphed" if "graphed" in text else "os"
        if ("RNTuple" in text or "rntuple" in text) and importlib.util.find_spec(wants):
            shutil.copy(path, folder)
    (tmp_path / "skhep_testdata.py").write_text(DATA.replace("@GOLDEN@", str(GOLDEN)))
    (folder / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    paths = [str(tmp_path), str(pathlib.Path(liblade.__file__).parent.parent)]
    paths.append(os.environ.get("PYTHONPATH", ""))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs", str(folder)],
        cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    skipped = re.search(r"(\d+) skipped", done.stdout)
    ours = re.search(r"columns read by liblade: (\d+), by uproot: (\d+)", done.stdout)
    assert passed and ours, done.stdout
    with capsys.disabled():
        print(f"\nuproot's tests of RNTuples: {passed[1]} passed, "
              f"{skipped[1] if skipped else 0} skipped; {ours[0]}")  # fmt: skip
    assert int(passed[1]) >= 80 and int(ours[1]) > 300
