"""Sphinx extension: the code of executed pages runs once, several pages at a time, and again only after a change.

A page is run again when its code, the package, its data files or an installed library has changed. Pages run in forks
of this process (:mod:`forked`), share one folder of data, and leave their outputs where MyST-NB looks for them: in a
cache of jupyter-cache, which knows nothing of the package and is therefore filled anew for every state of it. Where
forking is not possible, MyST-NB runs the pages itself.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
from forked import CAN_FORK, Job, run_jobs
from project_state import package_key, project_key, static_key, tree_hash
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.util import logging
from sphinx.util.matching import get_matching_files

HEAVY = (  # what most pages import; imported once, before the first fork
    "graphbench.tuning",
    "graphbench.training.run",
    "matplotlib.pyplot",
    "networkx",
    "page_shell",
    "sklearn.ensemble",
    "torch_geometric.loader",
)
STATE = "project-state"  # the entry of a page's metadata that says which state of the project its content is of
STATIC = "static-state"  # the same of the first page and the style sheets
_LOG = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("builder-inited", prepare)
    app.connect("doctree-read", _note_states)
    app.connect("env-get-outdated", outdated)
    return {"version": "1", "parallel_read_safe": True}


# --------------------------------------------------------------------------------------------------------------------
# Which pages Sphinx has to read again


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


# --------------------------------------------------------------------------------------------------------------------
# Running


def prepare(app: Sphinx) -> None:
    """Run the pages that have not been run in this state of the project, and hand all outputs to MyST-NB.

    Raises:
        ExtensionError: If a page fails, with its name, the cell and the traceback.
    """
    config = app.env.mystnb_config  # type: ignore[attr-defined]
    if config.execution_mode != "cache":
        return
    build = Path(app.srcdir) / "_build"
    folder, cache = build / "executed", Path(config.execution_cache_path)
    os.environ["GRAPHBENCH_ROOT"] = str(build / "data")
    wanted = {folder / f"{_key(app, page)}.ipynb": page for page in _pages(app)}
    missing = {stored: page for stored, page in wanted.items() if not stored.is_file()}
    filled = cache / "filled.txt"
    state = "\n".join(f"{path.name} {hashlib.sha256(page.read_bytes()).hexdigest()}" for path, page in wanted.items())
    if not missing and filled.is_file() and filled.read_text(encoding="utf-8") == state:
        return
    shutil.rmtree(cache, ignore_errors=True)
    if not CAN_FORK:
        return
    folder.mkdir(parents=True, exist_ok=True)
    _run(app, missing)
    _fill(app, cache, wanted)
    filled.write_text(state, encoding="utf-8")
    for stale in set(folder.glob("*.ipynb")) - set(wanted):
        stale.unlink()


def _pages(app: Sphinx) -> list[Path]:
    """Return the pages that hold code to run."""
    found = []
    for name in get_matching_files(app.srcdir, app.config.include_patterns, app.config.exclude_patterns):
        path = Path(app.srcdir, name)
        if path.suffix == ".md" and "file_format: mystnb" in path.read_text(encoding="utf-8").partition("\n\n")[0]:
            found.append(path)
    return found


def _key(app: Sphinx, page: Path) -> str:
    """Return a hash of the code of a page, of the program that runs it, and of the package."""
    cells = "\0".join(cell.source for cell in _code(_read(app, page)))
    runner = tree_hash(Path(__file__).parent, ["page_shell.py"])
    name = page.relative_to(app.srcdir).as_posix()
    return hashlib.sha256("\0".join([name, cells, runner, package_key()]).encode()).hexdigest()[:24]


def _read(app: Sphinx, page: Path) -> nbformat.NotebookNode:
    from myst_nb.core.read import create_nb_reader

    env: Any = app.env
    text = page.read_text(encoding="utf-8")
    reader = create_nb_reader(str(page), env.myst_config, env.mystnb_config, text)
    assert reader is not None, page
    return reader.read(text)


def _run(app: Sphinx, pages: dict[Path, Path]) -> None:
    for name in HEAVY if pages else ():
        importlib.import_module(name)
    longest_first = sorted(pages.items(), key=lambda item: -len(item[1].read_bytes()))
    jobs = [_job(app, page, stored) for stored, page in longest_first]
    run_jobs(jobs)
    for job in jobs:
        if not job.error:
            _LOG.info("ran %s in %.1f CPU seconds", job.name, job.cpu)
    failed = [f"{job.name}:\n{job.error}" for job in jobs if job.error]
    if failed:
        raise ExtensionError("these pages cannot be run:\n\n" + "\n\n".join(failed))


def _job(app: Sphinx, page: Path, stored: Path) -> Job:
    notebook = _read(app, page)
    own = notebook.metadata.get("mystnb", {})

    def run() -> None:
        from page_shell import run_notebook

        os.chdir(page.parent)
        run_notebook(notebook)
        aside = stored.with_suffix(".part")
        nbformat.write(notebook, aside, version=4)
        aside.replace(stored)

    seconds = own.get("execution_timeout", app.config.nb_execution_timeout)
    return Job(page.relative_to(app.srcdir).as_posix(), run, seconds=4.0 * seconds)


def _fill(app: Sphinx, cache: Path, pages: dict[Path, Path]) -> None:
    """Put the outputs of all pages into the cache that MyST-NB reads, with the tags that the cells have now."""
    from jupyter_cache import get_cache
    from jupyter_cache.base import CacheBundleIn

    records = get_cache(cache)
    for stored, page in pages.items():
        notebook, run = _read(app, page), nbformat.read(stored, as_version=4)
        notebook.metadata["language_info"] = run.metadata["language_info"]
        if len(_code(notebook)) != len(_code(run)):
            raise ExtensionError(f"{page} was edited while the pages were built; build again")
        for cell, done in zip(_code(notebook), _code(run), strict=True):
            cell.outputs, cell.execution_count = done.outputs, done.execution_count
        bundle = CacheBundleIn(notebook, str(page))
        records.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)


def _code(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]
