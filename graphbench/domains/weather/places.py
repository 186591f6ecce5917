"""Locations of stores: folders of this machine, and addresses of object stores, for example ``gs://bucket/store.zarr``.

Addresses are read through fsspec, which comes with ``graphbench[weather]``; each kind of object store needs another
package, for example gcsfs or s3fs.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from graphbench.core.errors import MissingDependency, StoreError
from graphbench.core.untrusted import open_regular

Place = Path | str
"""A folder, or an address."""

_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/{1,3}(.+)")


def place_of(folder: Path | str) -> Place:
    """Return a folder as an absolute path, and an address as a text with the slash of ``://`` that a path loses."""
    match = _ADDRESS.fullmatch(str(folder))
    if match is None:
        return Path(folder).expanduser().resolve()
    protocol, rest = match.groups()
    return f"{protocol}://{'/' if protocol == 'file' else ''}{rest.rstrip('/')}"


def below(parent: Place, name: str) -> Place:
    """Return the location of a file or folder within a folder or address."""
    return parent / name if isinstance(parent, Path) else f"{parent}/{name}"


def has_file(store: Place, name: str) -> bool:
    """Return whether a file lies directly in a folder or at an address."""
    if isinstance(store, Path):
        return (store / name).is_file()
    system, root = _system(store)
    return bool(_read_remote(store, system.isfile, f"{root}/{name}"))


def files_of(store: Place) -> dict[str, int]:
    """Return the relative names of all files in a folder or at an address, sorted, with their sizes in bytes."""
    if isinstance(store, Path):
        paths = {path.relative_to(store).as_posix(): path for path in sorted(store.rglob("*"))}
        return {name: path.stat().st_size for name, path in paths.items() if path.is_file()}
    system, root = _system(store)
    listed = _read_remote(store, system.find, root, detail=True)
    names = {name.removeprefix(root).lstrip("/"): facts for name, facts in listed.items()}
    return {name: int(names[name].get("size") or 0) for name in sorted(names)}


def content(store: Place, name: str) -> bytes:
    """Return the content of a file in a folder or at an address."""
    if isinstance(store, Path):
        return (store / name).read_bytes()
    system, root = _system(store)
    return bytes(_read_remote(store, system.cat_file, f"{root}/{name}"))


def head_of(store: Place, name: str, count: int) -> tuple[bytes, int] | None:
    """Return the first bytes of a file in a folder or at an address, and the file's size; None if it does not exist."""
    if isinstance(store, Path):
        path = store / name
        if not path.is_file():
            return None
        with open_regular(path) as file:
            return file.read(count), path.stat().st_size
    system, root = _system(store)
    if not _read_remote(store, system.isfile, f"{root}/{name}"):
        return None
    size = int(_read_remote(store, system.size, f"{root}/{name}"))
    return bytes(_read_remote(store, system.cat_file, f"{root}/{name}", start=0, end=min(count, size))), size


def _system(address: str) -> tuple[Any, str]:
    """Return the file system of an address, and the path there.

    Raises:
        MissingDependency: If fsspec, or the package of the file system, is not installed.
        StoreError: If the protocol is unknown.
    """
    try:
        import fsspec
    except ImportError as error:
        raise MissingDependency(
            f"the address {address} needs fsspec ({error}); pip install 'graphbench[weather]', or give a folder"
        ) from error
    try:
        system, root = fsspec.core.url_to_fs(address)
    except ImportError as error:
        raise MissingDependency(f"the address {address} cannot be read: {_line(error)}") from error
    except ValueError as error:
        raise StoreError(f"{address} is no folder, and no address either: {_line(error)}") from error
    return system, str(root).rstrip("/")


def _read_remote(address: str, function: Any, *arguments: Any, **options: Any) -> Any:
    try:
        return function(*arguments, **options)
    except Exception as error:  # object stores raise errors of many kinds
        raise StoreError(f"cannot read {address} ({type(error).__name__}: {_line(error)})") from error


def _line(error: Exception) -> str:
    return f"{' '.join(str(error).split()):.160}"
