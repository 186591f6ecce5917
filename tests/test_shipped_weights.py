"""The weights in ``baselines/weights``: every file is a model that has the score of its record."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphbench.records.files import results_dir
from graphbench.training.weights.check import FEW, check_weights
from graphbench.training.weights.files import MOST_BYTES, MOST_FILE_BYTES, WeightsFile, rows, weights_dir, weights_files

FILES = {file.path.relative_to(weights_dir()).as_posix(): file for file in weights_files(weights_dir())}
_HEADER_BYTES = 100_000
_LONG = ("bubble_sort", "heapsort", "jarvis_march", "quicksort")  # traces of hundreds of steps: 47 of 95 s of all files


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


def _quick(path: str) -> bool:
    """Say whether ``make test`` scores a file: the first one of every domain."""
    return path == min(other for other in FILES if other.split("/")[0] == path.split("/")[0])


@pytest.fixture(params=[name if _quick(name) else pytest.param(name, marks=pytest.mark.thorough) for name in FILES])
def file(request: pytest.FixtureRequest) -> WeightsFile:
    return FILES[request.param]


def test_the_files_are_small_and_a_row_has_one(tmp_path: Path) -> None:
    assert FILES
    sizes = {name: file.size for name, file in FILES.items()}
    assert sum(sizes.values()) <= MOST_BYTES
    assert max(sizes.values()) <= MOST_FILE_BYTES + _HEADER_BYTES
    stored = [(dataset, file.facts.model) for dataset, file in rows()]
    assert len(stored) == len(set(stored))
    others = [
        path for path in weights_dir().rglob("*") if path.is_file() and path not in {f.path for f in FILES.values()}
    ]
    assert others == []


def test_a_model_agrees_with_its_record_and_repeats_its_scores(file: WeightsFile, root: Path, needs_installed) -> None:
    most = 0 if any(name in file.path.parts for name in _LONG) else FEW  # the long checks score all files
    with needs_installed():
        assert check_weights(file, results_dir(), most=most, root=root) == []


@pytest.mark.slow
def test_a_model_has_the_scores_of_its_record_on_whole_splits(file: WeightsFile, root: Path, needs_installed) -> None:
    with needs_installed():
        assert check_weights(file, results_dir(), whole=True, root=root) == []
