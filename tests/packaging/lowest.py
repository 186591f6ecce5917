"""Test the lowest versions that pyproject.toml allows: ``make lowest``.

Installs the lowest version of every dependency on Python 3.11, and runs the ten lines of the README, the command line
and some of the tests. The source is copied, so that compiled kernels of other versions are not found.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from environments import REPOSITORY, Workshop, run, ten_lines

TESTS = ("tests/test_package.py", "tests/catalog", "tests/data", "tests/evaluation", "tests/models/test_models.py")
TRAINING = ("tests/training/test_trainer.py", "tests/training/test_losses.py")
LEFT_OUT = ("tests/data/test_cluster_losses.py",)  # minutes of waiting for lost workers
NOT_COPIED = shutil.ignore_patterns(".git", ".venv", "__pycache__", "_build", "runs", "dist", ".mypy_cache")


def main() -> None:
    """Run the checks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="keep the environment there; default a temporary folder")
    parser.add_argument("--extras", nargs="*", default=[], help="extras whose lowest versions are installed, too")
    parser.add_argument("--no-tests", action="store_true", help="the ten lines and the command line alone")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="graphbench-lowest-"))
    shop = Workshop(folder)
    python = shop.environment("lowest", "3.11")
    extras = [word for extra in given.extras for word in ("--extra", extra)]
    shop.install(python, "--resolution", "lowest-direct", "-r", REPOSITORY / "pyproject.toml", *extras)
    lowest = shop.listed(python)
    print(" ".join(f"{name}=={version}" for name, version in lowest.items()), flush=True)
    pinned = [f"{name}=={version}" for name, version in lowest.items()]
    shop.install(python, "hatchling", "hypothesis", "pip", "pytest", "pytest-timeout", *pinned)
    source = folder / "source"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(REPOSITORY, source, ignore=NOT_COPIED)
    env = {"PYTHONPATH": str(source), "GRAPHBENCH_ROOT": str(folder / "root"), "OMP_NUM_THREADS": "1"}
    (folder / "ten_lines.py").write_text(ten_lines())
    print(run(python, "ten_lines.py", cwd=folder, env=env))
    print(run(python, "-m", "graphbench", "list", "algoreas/*", cwd=folder, env=env))
    for command in ("list", "generate", "train", "evaluate", "tune", "report", "export"):
        run(python, "-m", "graphbench", command, "--help", cwd=folder, env=env)
    code = 0
    if not given.no_tests:
        chosen = [name for name in (*TESTS, *TRAINING) if (source / name).exists()]
        words = [python, "-m", "pytest", "-q", "-m", "not slow", *chosen, *(f"--ignore={name}" for name in LEFT_OUT)]
        code = subprocess.run(words, cwd=source, env={"PATH": "/usr/bin:/bin", **env}, check=False).returncode
    if given.folder is None:
        shutil.rmtree(folder)
    sys.exit(code)


if __name__ == "__main__":
    main()
