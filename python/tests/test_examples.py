"""Each program of examples/python runs, and so does the first code of python/README.md.

SPDX-License-Identifier: Apache-2.0
"""

import os
import pathlib
import re
import subprocess
import sys

import pytest

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


@pytest.mark.parametrize("name", ["python/README.md", "docs/python.md"])
def test_documents(name):
    text = (ROOT / name).read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    assert blocks
    scope = {}
    for block in blocks:
        exec(block, scope)
