"""Fetches the source distributions of packages whose own tests are run with the library.

pip finds and downloads it, with the configuration of whoever runs the tests; it is not built.
The archive is kept in a folder of the user's, and its hash is compared with the index's.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.resources
import os
import pathlib
import sys
import tarfile
import tempfile


class Unavailable(Exception):
    """The source distribution cannot be had; the text says why."""


def _pip() -> None:
    """Makes pip importable: the environment's, or the one that comes with the interpreter."""
    try:
        import pip  # noqa: F401
    except ImportError:
        import ensurepip

        for wheel in importlib.resources.files(ensurepip).joinpath("_bundled").iterdir():
            if wheel.name.startswith("pip-"):
                sys.path.append(str(wheel))
                return
        raise Unavailable("this interpreter has no pip") from None


def _download(name: str, version: str, folder: pathlib.Path) -> pathlib.Path:
    _pip()
    from pip._internal.commands import create_command

    command = create_command("download")
    options, _ = command.parse_args(
        ["--quiet", "--disable-pip-version-check", "--no-deps", f"--no-binary={name}",
         "--retries=1", name]
    )  # fmt: skip
    with command.main_context():
        session = command.get_default_session(options)
        finder = command._build_package_finder(options, session)
        found = finder.find_all_candidates(name)
        links = [c.link for c in found if str(c.version) == version]
        links = [link for link in links if link.filename.endswith(".tar.gz")]
        if not links:
            raise Unavailable(f"the index has no source distribution of {name} {version}")
        reply = session.get(links[0].url_without_fragment)
        reply.raise_for_status()
        data = reply.content
    want, have = links[0].hash, hashlib.new(links[0].hash_name or "sha256", data).hexdigest()
    if want and want != have:
        raise Unavailable(f"{links[0].filename}: the index says hash {want}, the file has {have}")
    path = folder / links[0].filename
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as part:
        part.write(data)
    os.replace(part.name, path)
    return path


def unpacked(name: str) -> pathlib.Path:
    """The folder of the unpacked distribution of a package in the version that is installed."""
    version = importlib.metadata.version(name)
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser()
    cache /= "liblade-tests"
    folder = cache / f"{name}-{version}"
    if (folder / "pyproject.toml").exists():
        return folder
    try:
        cache.mkdir(parents=True, exist_ok=True)
        archive = _download(name, version, cache)
    except Unavailable:
        raise
    except Exception as e:
        raise Unavailable(f"{name} {version} cannot be fetched: {type(e).__name__}: {e}") from e
    with tempfile.TemporaryDirectory(dir=cache) as part, tarfile.open(archive) as tar:
        tar.extractall(part, filter="data")
        try:
            os.replace(pathlib.Path(part) / f"{name}-{version}", folder)
        except OSError:
            if not folder.exists():
                raise
    return folder


if __name__ == "__main__":
    print(unpacked(sys.argv[1]))
