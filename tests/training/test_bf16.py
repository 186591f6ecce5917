"""Every model that learns by gradients trains and is scored under bf16 autocast, on every kind of task."""

from __future__ import annotations

import math

import pytest

import graphbench
from graphbench.core.errors import MissingDependency
from graphbench.models.registry import architecture
from graphbench.training.config import list_configs, load_config

DATASETS = {
    "algoreas": "algoreas/mst_easy",
    "algoreas/pairs_shared": "algoreas/flow_easy",
    "chip_design": "chip_design/aig",
    "chip_design/gin_small": "chip_design/aig:ands",
    "chip_design/deepsets_small": "chip_design/aig:ands",
    "circuits": "circuits/converters_5",
    "clrs": "clrs/bfs",
    "clrs_text": "clrs_text/bfs",
    "clutrr": "clutrr/gen_23",
    "co": "co/er_small:mis",
    "sat": "sat/small",
    "social": "social/sim_quotes",
}
PRETRAINED = ("clutrr/bert_lstm", "clutrr/bert_mlp")  # they need files that are not part of the package
QUICK = {
    "algoreas/gin_small",
    "algoreas/gt_small",
    "circuits/gat_small",
    "circuits/gcn_small",
    "circuits/typed_small",
    "clrs/mpnn_small",
    "clutrr/bilstm_small",
    "clutrr/gat_small",
    "co/gin_small",
}
SMALL = {"batch_size": 4, "precision": "bf16"}


def trained_configs():
    """Return the configurations that learn by gradients on the datasets above; those that take long are marked."""
    for name in list_configs():
        domain, model = name.split("/")
        dataset = DATASETS.get(name, DATASETS.get(domain))
        if dataset is None or name in PRETRAINED:
            continue
        if architecture(load_config(dataset, model).kind).has_steps:
            yield pytest.param(name, dataset, marks=() if name in QUICK else pytest.mark.slow)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.mark.parametrize(("name", "dataset"), [*trained_configs()])
@pytest.mark.thorough
def test_a_configuration_trains_under_bf16(name, dataset, root, tmp_path):
    limits = {"limit": 500} if dataset.startswith("social") else {"limit": 4, "val_limit": 4}
    options = {"steps": 2, "root": root, "output": tmp_path, "overrides": {"training": SMALL}, "device": "cpu"}
    try:
        result = graphbench.train(dataset, name.split("/")[1], evaluate="val", progress=False, **options, **limits)
    except MissingDependency as error:
        pytest.skip(str(error))
    assert result.record.steps == 2
    assert "val" in result.scores
    assert all(math.isfinite(value) for curve in result.record.curves.values() for _, value in curve)
