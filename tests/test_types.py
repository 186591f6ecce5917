"""Type information for users: an installed wheel under mypy --strict and pyright."""

import re
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

import pytest

import graphbench

REPOSITORY = Path(graphbench.__file__).resolve().parent.parent
pytestmark = pytest.mark.slow

USER = '''
"""What a user may write."""

from pathlib import Path

import torch

import graphbench
from graphbench import interop
from graphbench.loader import Splits


def main(root: Path) -> None:
    loader = graphbench.Loader("algoreas/mst_easy", root=root, limit={"train": 100})
    splits: Splits = loader.load()
    evaluator = graphbench.Evaluator("algoreas/mst_easy", scores="logit")
    for batch in splits.test.batches(64, shuffle=True, seed=1):
        evaluator.update(batch, torch.zeros(8))
    score: graphbench.Score = evaluator.compute()
    for name, split in splits.ood.items():
        print(name, len(split), split.card.title, split.content_hash)
    print(score.primary + 1.0, score.higher_is_better, dict(score))
    result = graphbench.train("algoreas/mst_easy", "gin_small", steps=3, data=splits, evaluate=["test"])
    names: list[str] = graphbench.list_datasets("algoreas/*")
    print(names, graphbench.card("mst_easy").version + 1, graphbench.__version__, result.scores)
    optimizer = graphbench.Optimizer({"trials": 3}, lambda config, seed, budget: 0.0)
    print(optimizer.optimize().config)
    print(interop.to_arrays(splits.train[0], splits).src.shape)
'''
INCOMPATIBLE = "incompatible|assignable|be assigned|Argument of type"
WRONG = {  # line -> what a checker must say, so that nothing is seen as Any
    "graphbench.Lodaer": r"attribute|Lodaer",
    'graphbench.Loader("mst_easy", limt=3)': "limt",
    "graphbench.list_datasets(3)": INCOMPATIBLE,
    'graphbench.card("mst_easy").versoin': "versoin",
    'graphbench.Loader("mst_easy").load(3)': INCOMPATIBLE,
    'graphbench.train("mst_easy", step=3)': "step",
    "graphbench.Optimizer()": "argument",
    "graphbench.Score(1.0, 'f1')": INCOMPATIBLE,
    "interop.to_arrays(3)": "argument",
    "interop.to_hf(3)": INCOMPATIBLE,
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel in it, and all other packages of this one."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("types")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=REPOSITORY, capture_output=True, check=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "env")], check=True)
    python = folder / "env" / "bin" / "python"
    place = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--no-compile", "--target", place]
    subprocess.run([*pip, *map(str, folder.glob("*.whl"))], capture_output=True, check=True)
    for name in ("purelib", "platlib"):
        (Path(place) / f"{name}.pth").write_text(sysconfig.get_path(name) + "\n")
    return python


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "user.py").write_text(USER)
    ten = re.search(r"```python\n(.*?)```", (REPOSITORY / "README.md").read_text(), re.DOTALL)
    assert ten
    (tmp_path / "ten_lines.py").write_text(ten[1])
    lines = ["import graphbench", "from graphbench import interop", "", *WRONG]
    (tmp_path / "wrong.py").write_text("\n".join(lines) + "\n")
    return tmp_path


def errors_by_line(output: str, pattern: str) -> dict[int, str]:
    found: dict[int, str] = {}
    for line, message in re.findall(pattern, output):
        found[int(line)] = found.get(int(line), "") + message
    return found


def check(output: str, pattern: str) -> None:
    """Check that every wrong line has the error it should have, and nothing else has any."""
    found = errors_by_line(output, pattern)
    for number, (line, expected) in enumerate(WRONG.items(), 4):
        assert re.search(expected, found.get(number, ""), re.IGNORECASE), f"{line}: {found.get(number)}\n{output}"
    assert set(found) == set(range(4, 4 + len(WRONG))), output


def test_mypy_strict_accepts_what_users_write(installed: Path, files: Path) -> None:
    pytest.importorskip("mypy")
    (files / "mypy.ini").write_text(
        "[mypy]\nstrict = True\ndisallow_untyped_decorators = False\n"
        "[mypy-torch_geometric.*,pandas.*,numba.*]\nignore_missing_imports = True\n"
    )
    command = [sys.executable, "-m", "mypy", "--python-executable", str(installed), "--cache-dir", str(files / "cache")]
    right = subprocess.run(
        [*command, "user.py", "ten_lines.py"], cwd=files, capture_output=True, text=True, check=False
    )
    assert right.returncode == 0 and "no issues found in 2 source files" in right.stdout, right.stdout + right.stderr
    wrong = subprocess.run([*command, "wrong.py"], cwd=files, capture_output=True, text=True, check=False)
    check(wrong.stdout, r"wrong\.py:(\d+): error: (.*)")


def test_pyright_accepts_what_users_write(installed: Path, files: Path) -> None:
    if find_spec("pyright") is None:
        pytest.skip("pip install 'pyright[nodejs]'")
    command = [sys.executable, "-m", "pyright", "--pythonpath", str(installed)]
    right = subprocess.run(
        [*command, "user.py", "ten_lines.py"], cwd=files, capture_output=True, text=True, check=False
    )
    assert "0 errors" in right.stdout, right.stdout + right.stderr
    wrong = subprocess.run([*command, "wrong.py"], cwd=files, capture_output=True, text=True, check=False)
    check(wrong.stdout, r"wrong\.py:(\d+):\d+ - error: (.*)")
