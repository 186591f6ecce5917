"""Find the folders of cards, baselines and search spaces, and read YAML files.

The folders of the package are next to it in a checkout, and in ``graphbench/_data`` of an installed wheel. Plug-ins and
scripts add folders with :func:`register_data`; datasets of the user's own graphs lie in :func:`own_folder`. No other
module knows these paths.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Hashable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from graphbench.core.damage import FileFault
from graphbench.core.errors import CardError, PluginError
from graphbench.core.files import default_root
from graphbench.core.plugins import BUILT_IN, blaming, calling_module, owner_in_words, owner_of
from graphbench.core.registry import Registry
from graphbench.core.untrusted import NoRegularFile
from graphbench.core.yaml_text import SafeLoader, YamlFault, loaded_yaml, yaml_text

_PACKAGE = Path(__file__).resolve().parent.parent


def data_dir(name: str) -> Path:
    """Return the folder ``name`` (``datasets``, ``baselines`` or ``hpo``).

    Raises:
        FileNotFoundError: If neither the wheel's copy nor the checkout's folder exists.
    """
    for base in (_PACKAGE / "_data", _PACKAGE.parent):
        if (base / name).is_dir():
            return base / name
    raise FileNotFoundError(f"the folder {name!r} is missing from this installation; reinstall graphbench")


def datasets_dir() -> Path:
    """Return the folder of dataset cards."""
    return data_dir("datasets")


def baselines_dir() -> Path:
    """Return the folder of model configurations, published numbers and results."""
    return data_dir("baselines")


DATA_FOLDERS = ("datasets", "baselines", "hpo")
ANY_DOMAIN = "default"
"""Folder of configurations and search spaces for the datasets of domains that the package does not know."""

OWN = "your own data"
"""The owner of :func:`own_folder`."""

_FOLDERS: Registry[Path] = Registry("folder of data", PluginError, typed=False)


@dataclass(frozen=True)
class DataFolder:
    """One folder of cards, baselines or search spaces.

    Attributes:
        owner: ``graphbench`` itself, the plug-in or the module that registered it, or :data:`OWN`.
        path: The folder.
        state: Times of change of a folder whose files come and go while a process runs.
    """

    owner: str
    path: Path
    state: tuple[int, ...] = ()


def register_data(place: str | Path | ModuleType) -> Path:
    """Register a folder that holds folders ``datasets``, ``baselines`` or ``hpo``, laid out as in the package.

    Args:
        place: The folder, or a package (or its name), for the folder of its code.

    Returns:
        The folder.

    Raises:
        PluginError: If it does not exist, or contains none of these.
    """
    module = calling_module()
    folder = _folder_of(place).expanduser().absolute()
    who = owner_in_words(owner_of(module))
    if not folder.is_dir():
        raise PluginError(f"{who} registers the folder {folder}, which does not exist; give a folder or a package")
    if not any((folder / name).is_dir() for name in DATA_FOLDERS):
        raise PluginError(f"{who} registers the folder {folder}, which holds none of {', '.join(DATA_FOLDERS)}")
    _FOLDERS.add(str(folder), folder, module)
    return folder


def _folder_of(target: str | Path | ModuleType) -> Path:
    if isinstance(target, ModuleType):
        return Path(str(target.__file__)).parent
    if isinstance(target, str) and all(part.isidentifier() for part in target.split(".")):
        spec = find_spec(target)
        if spec is not None and spec.origin is not None:
            return Path(spec.origin).parent
    return Path(target)


def own_folder() -> Path:
    """Return the folder of the user's own datasets: ``$GRAPHBENCH_OWN``, or else ``own`` in the folder of datasets.

    It is laid out as the package: cards lie in ``datasets``, and configurations of models may lie in ``baselines``.
    """
    configured = os.environ.get("GRAPHBENCH_OWN")
    return Path(configured).expanduser().absolute() if configured else default_root().absolute() / "own"


def data_folders(name: str) -> tuple[DataFolder, ...]:
    """Return the folders ``name`` (``datasets``, ``baselines`` or ``hpo``): of the package, registered ones, the own.

    Raises:
        FileNotFoundError: If the package's folder is missing from the installation.
    """
    others = [DataFolder(owner, path / name) for _, path, owner in _FOLDERS.owned() if (path / name).is_dir()]
    user_folder = own_folder() / name
    if user_folder.is_dir() and all(folder.path != user_folder for folder in others):
        paths = sorted((user_folder, *user_folder.glob("*/"), *user_folder.glob("*/*/")))
        others.append(DataFolder(OWN, user_folder, tuple(path.stat().st_mtime_ns for path in paths)))
    return (DataFolder(BUILT_IN, data_dir(name)), *others)


NOT_MODELS = ("published", "reproductions", "results", "weights")
"""Folders in ``baselines/`` that hold no configurations of models."""


def data_files(name: str, domain: str | None = None, without: Collection[str] = ()) -> dict[str, Path]:
    """Return ``<domain>/<file>`` -> path of the YAML files of one or all domains in all folders ``name``, sorted.

    Raises:
        PluginError: If a script's folder has a file of a name that is taken. A plug-in is then broken and left out.
    """
    paths: dict[str, Path] = {}
    for folder in data_folders(name):
        files = [file for file in folder.path.glob(f"{domain or '*'}/*.yaml") if file.parent.name not in without]
        added = {f"{file.parent.name}/{file.stem}": file for file in files}
        with blaming(folder.owner):
            for taken in sorted(added.keys() & paths.keys()):
                raise PluginError(f"{added[taken]} has the same name as {paths[taken]}; rename it")
            paths |= added
    return dict(sorted(paths.items()))


def data_files_for(name: str, domain: str, without: Collection[str] = ()) -> dict[str, Path]:
    """Return file -> path of the YAML files that fit the datasets of a domain; none for an empty name.

    A domain that the package does not know has the files of :data:`ANY_DOMAIN` beside its own.

    Raises:
        PluginError: As :func:`data_files`.
    """
    if not domain:
        return {}
    files = data_files(name, domain, without)
    if not (data_dir(name) / domain).is_dir():
        files = data_files(name, ANY_DOMAIN, without) | files
    return {path.partition("/")[2]: file for path, file in files.items()}


def folder_with(name: str, path: Path) -> Path | None:
    """Return the folder ``name`` that contains a file, of the package or registered; None for files elsewhere."""
    folders = (folder.path.resolve() for folder in data_folders(name))
    return next((parent for parent in folders if path.resolve().is_relative_to(parent)), None)


class StrictLoader(SafeLoader):  # type: ignore[misc]
    """A safe YAML loader that refuses a mapping with the same key twice, and text that cannot be printed."""

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        """Return the value of a scalar; text that cannot be printed is refused."""
        value = super().construct_scalar(node)
        if isinstance(value, str) and ("\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value)):
            raise yaml.constructor.ConstructorError(
                None, None, f"{value!r} has a NUL character or half of a surrogate pair", node.start_mark
            )
        return value

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping; a key that appears twice is refused."""
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=deep)
            if not isinstance(key, Hashable):
                continue
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} appears twice; remove one", key_node.start_mark
                )
            seen.add(key)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file.

    Raises:
        OSError: If the file cannot be read.
        CardError: If the text is too large or not YAML, a key appears twice, or it is nested too deeply or repeats too
            many values by aliases; the message gives the file.
    """
    try:
        return loaded_yaml(yaml_text(path), StrictLoader)
    except UnicodeDecodeError as error:
        raise CardError(f"{path}: not valid YAML: {error}") from error
    except FileFault as error:
        raise CardError(f"{path} {error}; is it a card?") from error
    except NoRegularFile as error:
        raise CardError(f"{path}: {error.strerror}") from error
    except YamlFault as error:
        raise CardError(f"{path}: {error}") from error
