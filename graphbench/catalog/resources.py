"""Where the folders of cards, baselines and search spaces lie.

In a checkout they stand beside the package; in an installed wheel they are ``graphbench/_data``. No other module
knows this.
"""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from graphbench.core.errors import CardError

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


def hpo_dir() -> Path:
    """Return the folder of search spaces."""
    return data_dir("hpo")


class _UniqueKeyLoader(yaml.SafeLoader):
    """A safe YAML loader that refuses a mapping with the same key twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=deep)
            if not isinstance(key, Hashable):
                continue
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} appears twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file.

    Raises:
        CardError: If the text is not YAML or a key appears twice; the message gives file and line.
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeyLoader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise CardError(f"{path}: not valid YAML: {error}") from error
