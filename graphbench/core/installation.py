"""Whether this installation is mixed with ``graphbench-lib``, another package that imports as ``graphbench``.

Both put their files into the folder ``graphbench``. pip does not refuse that: the ``__init__.py`` of the package that
was installed last wins, and uninstalling either of them deletes it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from pathlib import Path

from graphbench.core.errors import InstallationError

PACKAGE = Path(__file__).resolve().parent.parent
OTHER = "graphbench-lib"
_OTHER_MODULES = ("_evaluator.py", "_loader")  # of its version 0.2.0
_METADATA = "graphbench_lib-"
_REMEDY = f"uninstall both (pip uninstall graphbench {OTHER}), then install the one that you want"


def check_installation(package: Path = PACKAGE, places: Iterable[str] | None = None) -> None:
    """Refuse an installation whose files are mixed with the other package; warn of one that lies elsewhere.

    Args:
        package: The folder of this package.
        places: Folders from which Python imports; default ``sys.path``.

    Raises:
        InstallationError: If the other package has files in this package's folder.
    """
    beside = package.parent
    if any((package / name).exists() for name in _OTHER_MODULES) or _has_metadata(beside):
        raise InstallationError(
            f"graphbench and {OTHER} are both installed in {beside}: both import as 'graphbench', and their files are "
            f"mixed, so neither can be relied upon; {_REMEDY}; if you want both, use two environments"
        )
    for place in sys.path if places is None else places:
        folder = Path(place)
        if folder.name.endswith("-packages") and folder != beside and _has_metadata(folder):
            warnings.warn(
                f"{OTHER} is installed in {folder} and imports as 'graphbench', too; this is graphbench in {package}, "
                f"and which of them a program gets depends on the order of sys.path; {_REMEDY}",
                stacklevel=2,
            )


def _has_metadata(folder: Path) -> bool:
    try:
        return any(path.name.startswith(_METADATA) for path in folder.iterdir())
    except OSError:  # a folder of sys.path need not exist
        return False
