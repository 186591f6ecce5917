"""Build hook: carry the data-only folders into the wheel as ``graphbench/_data``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

DATA_FOLDERS = ("datasets", "baselines", "hpo")


class DataFolders(BuildHookInterface[Any]):
    """Adds ``datasets/``, ``baselines/`` and ``hpo/`` to a wheel; an editable install reads them in place."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Register the folders of data for a standard wheel."""
        if version == "editable":
            return
        for name in DATA_FOLDERS:
            folder = Path(self.root) / name
            if not folder.is_dir():
                raise FileNotFoundError(
                    f"{folder} is missing: a wheel without it would have no {name}; build from a whole checkout"
                )
            build_data["force_include"][str(folder)] = f"graphbench/_data/{name}"
