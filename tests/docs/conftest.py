"""The built documentation: a folder named by GRAPHBENCH_DOCS, else ``docs/_build/html``, built if need be."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = "GRAPHBENCH_DOCS"
EXTRA = ("sphinx", "myst_nb", "pydata_sphinx_theme", "sphinx_copybutton")


@pytest.fixture(scope="session")
def built() -> Path:
    """Return the folder of the built pages; without GRAPHBENCH_DOCS the pages are brought up to date first."""
    named = os.environ.get(FOLDER)
    if named:
        folder = Path(named)
        if not (folder / "index.html").is_file():
            pytest.fail(f"{FOLDER}={named} holds no built pages; run `make docs` or unset it")
        return folder.resolve()
    missing = [name for name in EXTRA if find_spec(name) is None]
    if missing:
        pytest.skip(f"building the pages needs {', '.join(missing)}: run `make docs`, or pip install '.[docs]'")
    folder = ROOT / "docs" / "_build" / "html"
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-j", "2", "-b", "html", "docs", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return folder
