"""Where stores lie: folders of this machine, and addresses of object stores such as ``gs://bucket/store.zarr``.

Addresses are read through fsspec, which comes with ``graphbench[weather]``; each kind of object store needs a package
of its own, such as gcsfs or s3fs.
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
    """Return a folder as an absolute path, and an address as a text; paths have lost one slash of an address."""
    found = _ADDRESS.fullmatch(str(folder))
    if found is None:
        return Path(folder).expanduser().resolve()
    protocol, rest = found.groups()
    return f"{protocol}://{'/' if protocol == 'file' else ''}{rest.rstrip('/')}"


def below(place: Place, name: str) -> Place:
    """Return a place within another one."""
    return place / name if isinstance(place, Path) else f"{place}/{name}"


def has_file(place: Place, name: str) -> bool:
    """Return whether a file lies directly in a place."""
    if isinstance(place, Path):
        return (place / name).is_file()
    system, root = _system(place)
    return bool(_asked(place, system.isfile, f"{root}/{name}"))


def files_of(place: Place) -> dict[str, int]:
    """Return the names of all files in a place, relative to it and sorted, with their sizes in bytes."""
    if isinstance(place, Path):
        found = {path.relative_to(place).as_posix(): path for path in sorted(place.rglob("*"))}
        return {name: path.stat().st_size for name, path in found.items() if path.is_file()}
    system, root = _system(place)
    listed = _asked(place, system.find, root, detail=True)
    names = {name.removeprefix(root).lstrip("/"): facts for name, facts in listed.items()}
    return {name: int(names[name].get("size") or 0) for name in sorted(names)}


def content(place: Place, name: str) -> bytes:
    """Return what a file of a place holds."""
    if isinstance(place, Path):
        return (place / name).read_bytes()
    system, root = _system(place)
    return bytes(_asked(place, system.cat_file, f"{root}/{name}"))


def head_of(place: Place, name: str, count: int) -> tuple[bytes, int] | None:
    """Return the first bytes of a file of a place, and its size; None if there is no such file."""
    if isinstance(place, Path):
        path = place / name
        if not path.is_file():
            return None
        with open_regular(path) as file:
            return file.read(count), path.stat().st_size
    system, root = _system(place)
    if not _asked(place, system.isfile, f"{root}/{name}"):
        return None
    size = int(_asked(place, system.size, f"{root}/{name}"))
    return bytes(_asked(place, system.cat_file, f"{root}/{name}", start=0, end=min(count, size))), size


def _system(address: str) -> tuple[Any, str]:
    """Return the file system of an address, and the path there.

    Raises:
        MissingDependency: If fsspec, or the package of the file system, is not installed.
        StoreError: If there is no such protocol.
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


def _asked(address: str, function: Any, *arguments: Any, **options: Any) -> Any:
    try:
        return function(*arguments, **options)
    except Exception as error:  # object stores raise errors of many kinds
        raise StoreError(f"cannot read {address} ({type(error).__name__}: {_line(error)})") from error


def _line(error: Exception) -> str:
    return f"{' '.join(str(error).split()):.160}"
