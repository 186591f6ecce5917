"""The commands that train and check configurations on a GPU choose the runs that were asked for."""

from __future__ import annotations

import pytest

from benchmarks import gpu, gpu_paths
from benchmarks.gpu import Run
from graphbench.core.errors import GraphBenchError


def _chosen(*arguments: str) -> list[Run]:
    return gpu.chosen_runs(gpu._parser().parse_args(arguments))


def test_a_plan_keeps_its_order() -> None:
    runs = _chosen("--plan", "mst_easy,gt,2", "bridges_easy,gin")
    assert runs == [Run("algoreas/mst_easy", "gt", 2), Run("algoreas/bridges_easy", "gin", 0)]


@pytest.mark.parametrize("text", ["mst_easy", "mst_easy,gt,first", "mst_easy,gt,0,1"])
def test_a_wrong_plan_is_named(text: str) -> None:
    with pytest.raises(GraphBenchError, match=f"not '{text}'"):
        _chosen("--plan", text)


def test_without_a_plan_the_shorter_runs_come_first() -> None:
    models = [run.model for run in _chosen("--seeds", "0") if run.dataset.startswith("algoreas/")]
    assert models == sorted(models)  # gin, then gt


def test_splits_that_a_dataset_lacks_are_left_out() -> None:
    assert gpu.scored_splits("algoreas/mst_easy", ["val", "n192", "sparse", "ood"]) == ["val", "n192", "sparse", "ood"]
    assert gpu.scored_splits("algoreas/flow_easy", ["val", "n192", "ood"]) == ["val", "ood"]


def test_every_domain_with_models_is_checked_on_a_gpu() -> None:
    domains = {name.split("/")[0] for name, _ in gpu_paths.cases([], first=True)}
    assert domains == set(gpu_paths.DATASETS)
