"""Every evaluator takes the graphs themselves as targets, and then says the same as with arrays."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

import graphbench
from graphbench.catalog.features import Feature
from graphbench.core.errors import EvaluationError
from graphbench.evaluation.several import OutputsEvaluator

LIMIT = 6


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


def split_of(dataset, root):
    return graphbench.Loader(dataset, root=root, limit=LIMIT, workers=1).load(["val"]).val


def streamed(evaluator, *updates):
    for update in updates:
        evaluator.update(*update)
    return evaluator.compute()


def owners(batch, location):
    if location == "node":
        return batch.batch
    return batch.batch[batch.edge_index[0]] if location == "edge" else None


@pytest.mark.parametrize(
    ("dataset", "location", "draw"),
    [
        ("algoreas/bridges_easy", "edge", lambda batch, rng: rng.random(batch.num_edges)),
        ("algoreas/max_clique_easy", "node", lambda batch, rng: rng.random(batch.num_nodes)),
        ("algoreas/flow_easy", "graph", lambda batch, rng: rng.random(batch.num_graphs)),
        ("clutrr/gen_23", "graph", lambda batch, rng: rng.random((batch.num_graphs, 22))),
    ],
)
def test_graphs_stand_for_targets_and_the_rows_graphs(dataset, location, draw, root):
    split, rng = split_of(dataset, root), np.random.default_rng(0)
    evaluator = graphbench.Evaluator(dataset, expected_graphs=LIMIT)
    batches = list(split.batches(4))
    assert [batch.num_graphs for batch in batches] == [4, 2]
    predictions = [draw(batch, rng) for batch in batches]
    (name,) = [f.name for f in split.card.outputs]
    by_hand = [(batch[name], own, owners(batch, location)) for batch, own in zip(batches, predictions, strict=True)]
    expected = streamed(evaluator, *by_hand)
    assert expected.graphs == LIMIT and set(expected) == {m.name for m in evaluator.metrics}
    evaluator.reset()
    found = streamed(evaluator, *zip(batches, predictions, strict=True))
    assert found == expected and found.graphs == LIMIT
    whole = next(iter(split.batches(LIMIT)))
    rows = np.concatenate(predictions)
    for graphs in (whole, [split[i] for i in range(LIMIT)]):
        assert evaluator.evaluate(graphs, rows).to_dict() == pytest.approx(expected.to_dict())
        assert evaluator(graphs, rows) == evaluator.evaluate(graphs, rows)
    assert evaluator.evaluate(whole, {name: torch.as_tensor(rows)}) == evaluator.evaluate(whole, rows)
    single = graphbench.Evaluator(dataset).evaluate(split[0], rows[: len(split[0][name])])
    assert single.graphs == 1


def test_calling_an_evaluator_is_evaluating():
    truth, predicted, batch = np.array([1, 0, 1, 0]), np.array([1, 0, 0, 0]), np.array([0, 0, 1, 1])
    evaluator = graphbench.Evaluator("mst_easy")
    evaluator.update(truth, truth, batch)
    score = evaluator(truth, predicted, batch)
    assert score == evaluator.evaluate(truth, predicted, batch) and score.primary == pytest.approx(2 / 3)
    assert evaluator.compute().primary == 1  # the running updates are left alone


def test_what_graphs_cannot_say_is_refused(root):
    split = split_of("algoreas/bridges_easy", root)
    (batch,) = split.batches(LIMIT)
    evaluator, rows = graphbench.Evaluator("bridges_easy"), np.zeros(batch.num_edges)
    with pytest.raises(EvaluationError, match="leave batch out"):
        evaluator.update(batch, rows, batch.batch[batch.edge_index[0]])
    with pytest.raises(EvaluationError, match=f"y_pred has {len(rows) - 1} rows and y_true {len(rows)}"):
        evaluator.update(batch, rows[:-1])
    with pytest.raises(EvaluationError, match="y_pred lacks the output 'is_bridge'"):
        evaluator.update(batch, {"other": rows})
    with pytest.raises(EvaluationError, match=r"field 'is_bridge'.*load"):
        evaluator.update(Data(edge_index=batch.edge_index, num_nodes=batch.num_nodes), rows)
    joined = batch.clone()
    joined.edge_index[0, 0] = batch.num_nodes - 1
    with pytest.raises(EvaluationError, match="joins nodes of two graphs"):
        evaluator.update(joined, rows)
    with pytest.raises(EvaluationError, match="before any update"):
        evaluator.compute()


@pytest.mark.parametrize("dataset", ["clrs/bfs", "clrs/topological_sort", "clrs/minimum", "clrs/floyd_warshall"])
def test_traces_take_trajectories_graphs_or_arrays(dataset, root):
    split, rng = split_of(dataset, root), np.random.default_rng(1)
    (batch,) = split.batches(LIMIT)
    predicted = {
        name: torch.where(torch.as_tensor(rng.random(values.shape)) < 0.5, values, values.flip(0))
        for name, values in batch.outputs.items()
    }
    evaluator = graphbench.Evaluator(dataset, expected_graphs=LIMIT)
    expected = evaluator.evaluate(batch.outputs, predicted)
    assert 0 < expected.primary < 1
    assert evaluator(batch, predicted) == expected
    assert streamed(evaluator, (batch, predicted)) == expected
    if len(predicted) == 1:
        (values,) = predicted.values()
        assert evaluator.evaluate(batch, values) == expected
    graphs = [split[i] for i in range(LIMIT)]
    if "edge" not in {f.location for f in split.card.outputs}:
        assert evaluator.evaluate(Batch.from_data_list(graphs), predicted) == expected
        assert evaluator.evaluate(graphs, predicted) == expected
        with pytest.raises(EvaluationError, match=r"has shape \(6,.*but .* has \(5,"):
            evaluator.evaluate(graphs[1:], predicted)


def test_graphs_of_several_sizes_are_no_trace():
    graphs = [
        Data(edge_index=torch.zeros((2, 0), dtype=torch.long), num_nodes=n, pi=torch.arange(n)) for n in (2, 4)
    ]  # fmt: skip
    with pytest.raises(EvaluationError, match="2 to 4 nodes"):
        graphbench.Evaluator("clrs/bfs").evaluate(graphs, np.zeros((2, 3)))
    with pytest.raises(EvaluationError, match=r"output 'pi'.*load"):
        bare = Data(edge_index=graphs[0].edge_index, num_nodes=2)
        graphbench.Evaluator("clrs/bfs").evaluate(bare, np.zeros((1, 2)))


def test_solutions_are_scored_on_their_graphs(root):
    address = "co/ba_small:mis"
    split, rng = split_of(address, root), np.random.default_rng(2)
    whole, parts = next(iter(split.batches(LIMIT))), list(split.batches(4))
    logits = rng.normal(size=whole.num_nodes)
    evaluator = graphbench.Evaluator(address, expected_graphs=LIMIT)
    expected = dict(evaluator.evaluate(whole, logits))
    assert expected.pop("seconds_per_graph", 0) >= 0
    cut = parts[0].num_nodes
    for updates in (
        [(whole, logits)],
        [(parts[0], logits[:cut]), (parts[1], torch.as_tensor(logits[cut:]))],
        [([split[i] for i in range(LIMIT)], logits)],
    ):
        evaluator.reset()
        found = dict(streamed(evaluator, *updates))
        found.pop("seconds_per_graph", None)
        assert found == pytest.approx(expected)
    found = dict(evaluator(whole, logits))
    found.pop("seconds_per_graph", None)
    assert found == expected


def test_texts_take_batches_of_prompts_graphs_or_references(root):
    split = split_of("clrs_text/bfs", root)
    (batch,) = split.batches(LIMIT)
    answers = [*batch["reference"][:4], "no idea", ""]
    evaluator = graphbench.Evaluator("clrs_text/bfs", expected_graphs=LIMIT)
    expected = evaluator.evaluate(batch["reference"], answers)
    assert expected.primary == pytest.approx(4 / 6) and expected.graphs == LIMIT
    assert evaluator(batch, answers) == evaluator([split[i] for i in range(LIMIT)], answers) == expected
    assert streamed(evaluator, (batch, answers)) == expected
    sizes = np.diff(batch.ptr.numpy())
    assert list(evaluator.groups()) == [f"n{size}" for size in np.unique(sizes)]
    right = {f"n{size}": np.mean([i < 4 for i in np.flatnonzero(sizes == size)]) for size in np.unique(sizes)}
    assert {name: score.primary for name, score in evaluator.groups().items()} == pytest.approx(right)
    assert graphbench.Evaluator("clrs_text/bfs").evaluate(split[0], split[0].reference).primary == 1


MASKS = tuple(Feature.parse(name, ["output", "node", "mask"]) for name in ("early", "late"))
VALUE = Feature.parse("value", ["output", "graph", "scalar"])
TRUTH = {"early": np.array([1, 0, 1, 1]), "late": np.array([0, 1, 0, 0]), "value": np.array([2.0, 2.0])}
PREDICTED = {"early": np.array([1, 0, 1, 0]), "late": np.array([1, 1, 0, 0]), "value": np.array([1.0, 2.5])}
OWNER = np.array([0, 0, 1, 1])
BATCHES = {"early": OWNER, "late": OWNER}


def both(weights=None, **options):
    return OutputsEvaluator(MASKS, "f1", ("accuracy", "f1_per_graph"), weights=weights, **options)


def test_several_outputs_are_scored_one_by_one_and_together():
    score = both().evaluate(TRUTH, PREDICTED, OWNER)
    assert list(score)[:3] == ["f1", "accuracy", "f1_per_graph"] and score.primary_name == "f1"
    parts = {
        f.name: graphbench.Evaluator.from_features(f).evaluate(TRUTH[f.name], PREDICTED[f.name], OWNER) for f in MASKS
    }
    for name in ("f1", "accuracy", "f1_per_graph"):
        values = [parts[f.name][name] for f in MASKS]
        assert [score[f"{name}_{f.name}"] for f in MASKS] == values
        assert score[name] == pytest.approx(np.mean(values))
    assert (score.graphs, score.items_scored) == (2, 8)


def test_weights_of_outputs_enter_the_mean():
    score = both({"early": 3.0}).evaluate(TRUTH, PREDICTED, OWNER)
    assert score["accuracy_early"] == score["accuracy_late"] == 0.75
    assert score["f1_early"] == pytest.approx(0.8) and score["f1_late"] == pytest.approx(2 / 3)
    assert score.primary == pytest.approx((3 * 0.8 + 2 / 3) / 4)


def test_several_outputs_in_graphs_and_in_updates():
    edges = torch.zeros((2, 0), dtype=torch.long)
    graphs = [
        Data(edge_index=edges, num_nodes=2, **{f.name: torch.as_tensor(TRUTH[f.name][rows]) for f in MASKS})
        for rows in (slice(0, 2), slice(2, 4))
    ]
    expected = both().evaluate(TRUTH, PREDICTED, BATCHES)
    evaluator = both(expected_graphs=2)
    assert evaluator(Batch.from_data_list(graphs), PREDICTED) == evaluator(graphs, PREDICTED) == expected
    for i, graph in enumerate(graphs):
        evaluator.update(graph, {name: rows[2 * i : 2 * i + 2] for name, rows in PREDICTED.items()})
    assert evaluator.compute().to_dict() == pytest.approx(expected.to_dict())
    bad = PREDICTED | {"late": np.array([0, 0, 0, 7])}
    for wrong, message in (
        (bad, "holds 7 at row 3"),
        ({"early": OWNER}, "y_pred lacks the output 'late'"),
        (np.zeros(4), "several outputs; give y_pred as a mapping name -> array: early, late"),
    ):
        with pytest.raises(EvaluationError, match=message):
            evaluator.update(graphs, wrong)
    assert evaluator.compute().to_dict() == pytest.approx(expected.to_dict())  # a refused update changes nothing
    with pytest.raises(EvaluationError, match="give y_true as a mapping name -> array: early, late"):
        evaluator.evaluate(np.zeros(4), PREDICTED)
    evaluator.reset()
    with pytest.raises(EvaluationError, match="before any update"):
        evaluator.compute()


def test_outputs_of_several_types_are_scored_by_the_metrics_that_fit():
    evaluator = OutputsEvaluator((*MASKS, VALUE), "f1", ("mae", "r2"))
    score = evaluator.evaluate(TRUTH | {"value": np.array([1.0, 3.0])}, PREDICTED, BATCHES)
    assert set(score) == {"f1", "f1_early", "f1_late", "mae", "mae_value", "r2", "r2_value"}
    assert score["mae"] == score["mae_value"] == 0.25
    with pytest.raises(EvaluationError, match="'exact_match' cannot score 'early'"):
        OutputsEvaluator(MASKS, "f1", ("exact_match",))


def test_a_metric_that_one_output_lacks_is_left_out_with_the_reason():
    values = (VALUE, Feature.parse("other", ["output", "graph", "scalar"]))
    truth = {"value": np.array([2.0, 2.0]), "other": np.array([1.0, 3.0])}
    predicted = {"value": np.array([1.0, 2.0]), "other": np.array([1.0, 2.0])}
    score = OutputsEvaluator(values, "mae", ("r2",)).evaluate(truth, predicted)
    assert set(score) == {"mae", "mae_value", "mae_other", "r2_other"}  # no mean over some of the outputs
    assert set(score.undefined) == {"r2", "r2_value"}
    with pytest.raises(KeyError, match=r"'r2' was left out.*column 0 equal 2"):
        score["r2"]
    with pytest.raises(EvaluationError, match="r2 is undefined"):
        OutputsEvaluator(values, "r2").evaluate(truth, predicted)
