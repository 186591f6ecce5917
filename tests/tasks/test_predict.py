"""Supervised tasks: what models of scalars learn by follows from the primary metric."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Batch, Data

import graphbench
from graphbench.core.errors import ConfigError, EvaluationError
from graphbench.models.base import TaskFeatures
from graphbench.models.registry import build_task_model
from graphbench.tasks.registry import task_of
from graphbench.training.config import load_config


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [
        ("circuits/converters_5:ratio", F.mse_loss),  # scored by RSE
        ("sat/small:kissat", F.mse_loss),  # by RMSE
        ("chip_design/aig:ands", F.l1_loss),  # by MAE
    ],
)
def test_scalars_scored_by_squared_errors_are_learned_by_them(dataset: str, expected: object) -> None:
    task = task_of(graphbench.card(dataset))
    (output,) = (feature.name for feature in task.card.outputs)
    targets = torch.tensor([3.0, -1.0, 0.5, 2.0])
    graphs = [Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2, **{output: target[None]}) for target in targets]
    raw = torch.tensor([2.5, 1.0, 0.0, 2.0])
    found = task.losses({output: raw}, Batch.from_data_list(graphs))
    torch.testing.assert_close(found, {output: expected(raw, targets)})  # type: ignore[operator]


@pytest.mark.parametrize(("errors", "expected"), [("absolute", F.l1_loss), ("squared", F.mse_loss)])
@pytest.mark.parametrize("dataset", ["circuits/converters_5:ratio", "chip_design/aig:ands"])
def test_a_configuration_chooses_the_errors_that_scalars_are_learned_by(
    dataset: str, errors: str, expected: object
) -> None:
    config = load_config(dataset, "gin_small", overrides={"training.task.errors": errors})
    task = task_of(graphbench.card(dataset), config.training.task)
    (output,) = (feature.name for feature in task.card.outputs)
    targets, raw = torch.tensor([3.0, -1.0, 0.5]), torch.tensor([2.5, 1.0, 0.0])
    graphs = [Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2, **{output: target[None]}) for target in targets]
    computed = task.losses({output: raw}, Batch.from_data_list(graphs))
    torch.testing.assert_close(computed, {output: expected(raw, targets)})  # type: ignore[operator]


def test_errors_of_tasks_without_scalars_cannot_be_chosen() -> None:
    with pytest.raises(ConfigError, match="no output of algoreas/bridges_easy is a scalar"):
        task_of(graphbench.card("algoreas/bridges_easy"), {"errors": "squared"})
    with pytest.raises(ConfigError, match=r"errors.*'metric', 'absolute' or 'squared'"):
        task_of(graphbench.card("chip_design/aig:ands"), {"errors": "cubed"})


def test_errors_are_no_setting_of_models_without_steps_and_of_evaluators(tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"gradient_boosting is fitted without steps.*no training\.task\.errors"):
        graphbench.train(
            "social/sim_quotes_small", "gradient_boosting", root=tmp_path, overrides={"training.task.errors": "squared"}
        )
    for dataset in ("social/sim_quotes_small", "algoreas/bridges_easy"):
        with pytest.raises(EvaluationError, match="the scores of predict tasks have no options, got errors"):
            graphbench.Evaluator(dataset, errors="metric")


def test_graphs_without_labels_are_not_scored() -> None:
    evaluator = graphbench.Evaluator("circuits/converters_5")
    arcs, names = torch.tensor([[0, 1], [1, 0]]), ("ratio", "efficiency", "steady_failed")
    graphs = [
        Data(
            edge_index=arcs,
            num_nodes=2,
            **{name: torch.tensor([value]) for name, value in zip(names, own, strict=True)},
        )
        for own in ((0.5, 0.9, 0), (1.5, 0.7, 0), (-1.0, -1.0, 1))
    ]
    rows = {"ratio": torch.tensor([0.4, 1.4, 0.2]), "efficiency": torch.tensor([0.8, 0.7, 0.2])}
    for given in (graphs, Batch.from_data_list(graphs)):
        with pytest.raises(EvaluationError, match=r"1 of the graphs.*steady_failed"):
            evaluator.update(given, rows)
    evaluator.update(graphs[:2], {name: values[:2] for name, values in rows.items()})
    assert evaluator.compute().graphs == 2


def test_builders_refuse_tasks_that_ask_for_no_structures() -> None:
    card = graphbench.card("chip_design/aig:ands")
    for model in ("builder_small", "speller_small"):
        config = load_config(card.address, model)
        with pytest.raises(ConfigError, match="aig:ands asks for reference_ands"):
            build_task_model(config.model, {card.address: TaskFeatures.of(card)})


@pytest.mark.parametrize(
    ("dataset", "endings", "rows"),
    [
        ("mst_easy", ".npz, .npy", "a row per column of edge_index, graph after graph, with a probability or a label"),
        ("topological_sort_easy", ".npz, .npy", "a row per node, graph after graph, with a number"),
        ("clutrr/gen_23", ".npz, .npy, .jsonl, .txt", "a row per graph with a class from 0 to 21, or a score for each"),
        ("circuits/converters_5:both", ".npz, .npy", "an array per output: ratio, a row per graph with a number; eff"),
        ("clrs/bfs", ".npz, .npy", "an array per output (pi), with a value per item, sample after sample"),
        ("clrs_text/bfs", ".txt, .jsonl", "one answer per line"),
        ("co/rb_small:mis", ".npz, .npy", "a row per node, graph after graph, with its part of a solution or with sco"),
    ],
)
def test_files_of_predictions_are_described_as_they_are_read(dataset, endings, rows):
    told = task_of(graphbench.card(dataset)).describe_files("test")
    assert f"(endings: {endings}), and holds {rows}" in told
