"""One hash of everything beside a page's own text that its content depends on."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ("graphbench", "datasets", "baselines", "hpo", "benchmarks", "docs/examples")
EXTENSIONS = ("docs/_ext", "docs/datasets/domains.yaml")
IGNORED = {"__pycache__", ".ipynb_checkpoints"}


@cache
def package_key() -> str:
    """Return a hash of the package, its data files, and the names and versions of all installed libraries.

    What an executed page shows is a function of this and of the page's code.
    """
    names = sorted(f"{found.name}=={found.version}" for found in distributions())
    return _hash([platform.python_version(), *names, tree_hash(ROOT, PACKAGE)])


@cache
def project_key() -> str:
    """Return a hash of all that :func:`package_key` covers, and of the programs that write pages."""
    return _hash([package_key(), tree_hash(ROOT, EXTENSIONS)])


@cache
def static_key() -> str:
    """Return a hash of style sheets and pictures."""
    return tree_hash(ROOT, ["docs/_static"])


def tree_hash(root: Path, names: Iterable[str]) -> str:
    """Return a hash of the paths and bytes of all files below some folders (or of single files) of ``root``."""
    found = hashlib.sha256()
    for path in sorted(path for name in names for path in _files(root / name)):
        found.update(f"{path.relative_to(root).as_posix()}\0".encode())
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    for inner in path.iterdir() if path.is_dir() else ():
        if inner.name not in IGNORED:
            yield from _files(inner)


def _hash(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]
