"""Empty environments for the checks of the package: made by uv, which is installed on first use into a folder."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


class CheckFailed(Exception):
    """A command of a check failed; the message has the end of its output."""


def run(*words: object, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """Return the output of a command, with its errors.

    Raises:
        CheckFailed: If it ends with an error.
    """
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise CheckFailed(f"{' '.join(map(str, words))}\n{done.stdout[-3000:]}")
    return done.stdout


class Workshop:
    """A folder with uv, in which environments are made.

    Args:
        folder: The folder; it is created, and holds uv's cache of packages, too.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.uv = self.folder / "tools" / "bin" / "uv"
        if not self.uv.exists():
            run(sys.executable, "-m", "venv", self.folder / "tools")
            run(self.folder / "tools" / "bin" / "python", "-m", "pip", "install", "--quiet", "uv")
        self.env = {"UV_CACHE_DIR": str(self.folder / "cache"), "UV_LINK_MODE": "hardlink"}

    def environment(self, name: str, python: str) -> Path:
        """Return the interpreter of a new, empty environment."""
        place = self.folder / "environments" / name
        shutil.rmtree(place, ignore_errors=True)
        run(self.uv, "venv", "--quiet", "--python", find_python(python), place, env=self.env)
        return place / "bin" / "python"

    def install(self, python: Path, *words: object) -> str:
        """Install packages; wheels of ``PIP_FIND_LINKS``, such as the CPU build of torch, are found, too."""
        links = [f"--find-links={place}" for place in os.environ.get("PIP_FIND_LINKS", "").split()]
        return run(self.uv, "pip", "install", "--python", python, *links, *words, env=self.env)

    def listed(self, python: Path) -> dict[str, str]:
        """Return name -> version of the packages of an environment."""
        lines = run(self.uv, "pip", "freeze", "--python", python, env=self.env).splitlines()
        return dict(line.split("==") for line in lines if "==" in line)


def find_python(version: str) -> str:
    """Return an interpreter: of pyenv, else one on the path.

    Raises:
        CheckFailed: If there is none.
    """
    found = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    named = shutil.which(f"python{version}")
    if not found and named is None:
        raise CheckFailed(f"there is no Python {version}; install it, or leave it out with --pythons")
    return str(found[-1]) if found else str(named)


def ten_lines() -> str:
    """Return the first Python program of the README."""
    found = re.search(r"```python\n(.*?)```", (REPOSITORY / "README.md").read_text(), re.DOTALL)
    assert found
    return found[1]


def build(source: Path, target: Path, python: Path, *kinds: str) -> list[Path]:
    """Build packages of a source folder, and return their files in the order of the kinds, ``sdist`` or ``wheel``."""
    run(
        python, "-m", "hatchling", "build", *(word for kind in kinds for word in ("-t", kind)), "-d", target, cwd=source
    )
    endings = {"sdist": "*.tar.gz", "wheel": "*.whl"}
    return [next(target.glob(endings[kind])) for kind in kinds]


def content(wheel: Path) -> dict[str, bytes]:
    """Return the files of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in sorted(archive.namelist())}
