"""zarr-python's own tests with liblade.zarr.CodecPipeline.

They come from zarr-python's source distribution (package_sdist.py) and run unchanged.  The suite of
pipelines runs here; LADE_ZARR_SUITE=all, which `make test-long` sets, runs all tests, and compares
with the default pipeline: none may fail here that passes there.

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

zarr = pytest.importorskip("zarr", minversion="3.3", reason="zarr-python 3.3 is not installed")
pytest.importorskip("pytest_asyncio", reason="pytest-asyncio is not installed")

import liblade
import package_sdist

PIPELINE = """
from tests.test_codec_pipeline_suite import CodecPipelineTests


class TestLiblade(CodecPipelineTests):
    pipeline_path = "liblade.zarr.CodecPipeline"
"""

# Says at the end how many chunks went which way.
PLUGIN = """
def pytest_terminal_summary(terminalreporter):
    import liblade.zarr

    counts = liblade.zarr.pipeline_counts()
    terminalreporter.write_line(f"native {counts.native} foreign {counts.foreign} "
                                f"stock {counts.stock}")
    for reason, count in sorted(liblade.zarr.pipeline_reasons().items()):
        terminalreporter.write_line(f"stock: {count} {reason}")
"""

# They replace a private function of zarr-python's shards, which the pipeline does not call.
PRIVATE = "test_sharding_partial_shard_read__index_chunk_slice_fails"


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    try:
        found = package_sdist.unpacked("zarr")
    except package_sdist.Unavailable as e:
        pytest.skip(str(e))
    folder = tmp_path_factory.mktemp("suite")
    shutil.copytree(found / "tests", folder / "tests")
    (folder / "tests" / "test_liblade.py").write_text(PIPELINE)
    (folder / "lade_counts.py").write_text(PLUGIN)
    (folder / "pytest.ini").write_text(
        "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"
        "markers =\n  gpu: a GPU\n  s3: S3\n  slow_hypothesis: slow\n"
    )
    return folder


def run(folder: pathlib.Path, *args: str, path: str = "") -> tuple[set[str], str]:
    """The tests that failed, and the output."""
    here = str(pathlib.Path(liblade.__file__).parent.parent)
    paths = [str(folder), here, os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)}
    if path:
        env["ZARR_CODEC_PIPELINE__PATH"] = path
    done = subprocess.run(
        [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "lade_counts",
         "-rfE", "--tb=short", *args],
        cwd=folder, env=env, capture_output=True, text=True, timeout=3000,
    )  # fmt: skip
    failed = set(re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, flags=re.M))
    assert re.search(r"\d+ (passed|failed)", done.stdout), done.stdout[-4000:] + done.stderr[-2000:]
    return failed, done.stdout


def test_the_suite_of_pipelines(suite: pathlib.Path) -> None:
    failed, output = run(suite, "tests/test_liblade.py", "-k", "TestLiblade")
    assert not failed, output[-6000:]
    counts = re.search(r"native (\d+) foreign (\d+) stock (\d+)", output)
    assert counts and int(counts[1]) > 100 and int(counts[2]) > 100, output[-1000:]


# All but what times it, and two that want packages for documents.
ALL = (
    "tests --ignore=tests/benchmarks --ignore=tests/test_examples.py "
    "--ignore=tests/test_api/test_synchronous.py"
).split()


@pytest.mark.skipif(
    os.environ.get("LADE_ZARR_SUITE") != "all", reason="LADE_ZARR_SUITE=all runs it"
)
def test_all_suites(suite: pathlib.Path) -> None:
    args = [*ALL, "-k", f"not {PRIVATE}"]
    ours, output = run(suite, *args, path="liblade.zarr.CodecPipeline")
    print(output[-3000:])
    worse = set()
    if ours:
        # Those that failed once more, by both pipelines: some depend on time.
        again, _ = run(suite, *sorted(ours), path="liblade.zarr.CodecPipeline")
        theirs, _ = run(suite, *sorted(again)) if again else (set(), "")
        worse = again - theirs
    assert not worse, f"{sorted(worse)}\n{output[-6000:]}"
