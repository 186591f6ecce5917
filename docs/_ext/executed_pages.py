"""Sphinx extension: pages that show the project are read again after it has changed.

MyST-NB runs the code of pages and keeps the outputs in a cache of jupyter-cache, which compares the code of a page
alone. The cache therefore lies in a folder that is named by the state of the package (:func:`cache_folder`): when the
package, its data files or an installed library has changed, the pages run again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from project_state import package_key, project_key, static_key
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

STATE = "project-state"  # the entry of a page's metadata that names the state of the project that the page shows
STATIC = "static-state"  # the same for the first page and the style sheets


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("builder-inited", _remove_stale_outputs)
    app.connect("doctree-read", _note_states)
    app.connect("env-get-outdated", outdated)
    return {"version": "1", "parallel_read_safe": True}


def cache_folder(build: Path) -> Path:
    """Return the folder of the outputs of pages that ran in the present state of the package."""
    return build / "executed" / package_key()


def _remove_stale_outputs(app: Sphinx) -> None:
    """Remove the outputs of other states of the package."""
    folder = Path(app.config.nb_execution_cache_path)
    for other in folder.parent.glob("*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)


def shows_project(env: BuildEnvironment) -> None:
    """Note that the page being read shows more than its own text, so that it is read again when the project changes."""
    env.metadata[env.docname][STATE] = project_key()


def fill_mark(app: Sphinx, mark: str, text: Callable[[], str]) -> None:
    """Have a mark in the source of a page replaced by text that is made from the project, whenever that changes."""

    def fill(app: Sphinx, name: str, source: list[str]) -> None:
        if mark in source[0]:
            source[0] = source[0].replace(mark, text())
            shows_project(app.env)

    app.connect("source-read", fill)


def _note_states(app: Sphinx, doctree: Any) -> None:
    metadata = app.env.metadata[app.env.docname]
    if "kernelspec" in metadata:
        metadata[STATE] = project_key()
    if app.env.docname == app.config.root_doc:
        metadata[STATIC] = static_key()


def outdated(app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """Return the pages whose content is of another state of the project.

    Sphinx copies changed style sheets and pictures only when it writes a page; the first page stands for them.
    """
    states = {STATE: project_key(), STATIC: static_key()}
    return [
        name
        for name, metadata in env.metadata.items()
        if any(metadata.get(entry, state) != state for entry, state in states.items())
    ]
