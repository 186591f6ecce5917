"""Installations beside graphbench-lib, the public package that imports as ``graphbench``, too."""

import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import graphbench
from graphbench.core.errors import InstallationError
from graphbench.core.installation import check_installation

PACKAGE = Path(graphbench.__file__).resolve().parent
REMEDY = r"uninstall both \(pip uninstall graphbench graphbench-lib\), then install the one that you want"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder ``site-packages`` with our package in it, as pip lays it out."""
    place = tmp_path / "site-packages"
    shutil.copytree(PACKAGE, place / "graphbench", ignore=shutil.ignore_patterns("__pycache__", "domains", "models"))
    (place / "graphbench-0.1.0.dist-info").mkdir()
    return place


def add_other(site: Path, *, last: bool) -> None:
    """Put files of the other package into the folder, before ours (which keeps our ``__init__.py``) or after."""
    (site / "graphbench_lib-0.2.0.dist-info").mkdir()
    for name in ("_evaluator.py", "_loader/__init__.py", "datasets/__init__.py"):
        path = site / "graphbench" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    if last:
        (site / "graphbench" / "__init__.py").write_text("from . import _evaluator\n")


def run(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *words]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=site, env={"PYTHONPATH": str(site), "PATH": ""}
    )


def test_alone_there_is_nothing_to_say(site: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_installation(site / "graphbench", [str(site), str(site / "absent")])
    assert run(site, "-c", "import graphbench; print(graphbench.__version__)").stdout.strip() == graphbench.__version__


@pytest.mark.parametrize("last", [False, True])
def test_mixed_files_are_refused_whichever_came_last(site: Path, last: bool) -> None:
    add_other(site, last=last)
    with pytest.raises(InstallationError, match=f"graphbench and graphbench-lib.*{REMEDY}"):
        check_installation(site / "graphbench", [])
    of_ours = "graphbench.catalog.names" if last else "graphbench"
    found = run(site, "-c", f"import {of_ours}")
    assert "InstallationError: graphbench and graphbench-lib are both installed" in found.stderr
    found = run(site, "-m", "graphbench", "list")
    assert found.returncode and "graphbench and graphbench-lib are both installed" in found.stderr
    command = run(site, "-c", "import sys; sys.argv[1:] = ['list']; from graphbench.cli import main; main()")
    assert command.returncode and "are both installed" in command.stderr
    assert ("Traceback" in command.stderr) != last  # ours is refused at once; else the command says one line


def test_files_left_without_metadata_are_refused(site: Path) -> None:
    add_other(site, last=False)
    shutil.rmtree(site / "graphbench_lib-0.2.0.dist-info")
    with pytest.raises(InstallationError, match=REMEDY):
        check_installation(site / "graphbench", [])


def test_one_elsewhere_on_the_path_is_warned_of(site: Path, tmp_path: Path) -> None:
    other = tmp_path / "lib" / "dist-packages"
    (other / "graphbench_lib-0.2.0.dist-info").mkdir(parents=True)
    with pytest.warns(UserWarning, match=f"graphbench-lib is installed in {other}.*{REMEDY}"):
        check_installation(site / "graphbench", [str(site), str(other)])
    code = f"import sys; sys.path.append({str(other)!r}); import graphbench; print(graphbench.__version__)"
    found = run(site, "-c", code)
    assert found.stdout.strip() == graphbench.__version__ and "graphbench-lib is installed in" in found.stderr
