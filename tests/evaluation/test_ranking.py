"""Ranking metrics against scikit-learn and OGB: in one call and streamed, with ties, columns and missing targets."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score

from graphbench.catalog.features import Feature
from graphbench.core.errors import EvaluationError
from graphbench.evaluation.evaluator import FeatureEvaluator
from graphbench.evaluation.several import OutputsEvaluator

MASK = Feature.parse("active", ["output", "graph", "mask"])
METRICS = ("roc_auc", "average_precision")


def case(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random targets and scores, a third of the cases with many ties."""
    rng = np.random.default_rng(number)
    truth = rng.random(int(rng.integers(5, 400))) < rng.uniform(0.05, 0.95)
    truth[:2] = (True, False)
    scores = np.clip(rng.normal(truth * rng.uniform(0, 2), 1) / 8 + 0.5, 0, 1)
    return truth, np.round(scores, 1) if number % 3 == 0 else scores


@pytest.mark.parametrize("number", range(200))
def test_both_are_those_of_scikit_learn_in_one_call_and_streamed(number):
    truth, scores = case(number)
    evaluator = FeatureEvaluator(MASK, *METRICS[:1], METRICS[1:])
    expected = {"roc_auc": roc_auc_score(truth, scores), "average_precision": average_precision_score(truth, scores)}
    assert evaluator.evaluate(truth, scores).to_dict() == pytest.approx(expected, abs=1e-12)
    for part in np.array_split(np.arange(len(truth)), 3):
        if part.size:
            evaluator.update(truth[part], scores[part])
    assert evaluator.compute().to_dict() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("number", range(20))
def test_columns_with_missing_labels_are_averaged_as_ogb_does(number):
    graphproppred = pytest.importorskip("ogb.graphproppred")
    rng = np.random.default_rng(number)
    truth = (rng.random((60, 5)) < 0.3).astype(float)
    truth[rng.random(truth.shape) < 0.2] = np.nan
    truth[:, 4] = np.where(np.isnan(truth[:, 4]), np.nan, 0.0)  # a column of one kind is left out of the mean
    scores = rng.random(truth.shape)
    features = [Feature.parse(f"y_{j}", ["output", "graph", "mask"]) for j in range(5)]
    for name, dataset in (("roc_auc", "ogbg-moltox21"), ("average_precision", "ogbg-molpcba")):
        ogb = graphproppred.Evaluator(dataset)
        ogb.num_tasks = truth.shape[1]
        (expected,) = ogb.eval({"y_true": truth, "y_pred": scores}).values()
        ours = OutputsEvaluator(features, name, incomplete=True)
        columns = [{f.name: table[:, j] for j, f in enumerate(features)} for table in (truth, scores)]
        assert ours.evaluate(*columns)[name] == pytest.approx(expected, abs=1e-12)


def test_several_columns_of_one_output_are_averaged():
    rng = np.random.default_rng(0)
    truth, scores = rng.random((50, 3)) < 0.4, rng.random((50, 3))
    assert FeatureEvaluator(MASK, "roc_auc").evaluate(truth, scores)["roc_auc"] == pytest.approx(
        roc_auc_score(truth, scores), abs=1e-12
    )


def test_logits_and_probabilities_rank_alike():
    truth, scores = case(1)
    logits = np.log(scores.clip(1e-9, 1 - 1e-9)) - np.log1p(-scores.clip(1e-9, 1 - 1e-9))
    of_logits = FeatureEvaluator(MASK, "roc_auc", scores="logit").evaluate(truth, logits)
    assert of_logits == FeatureEvaluator(MASK, "roc_auc").evaluate(truth, scores)


@pytest.mark.parametrize("labels", [np.array([True, False, True]), np.array([1, 0, 1])])
def test_labels_are_refused(labels):
    with pytest.raises(EvaluationError, match="give probabilities"):
        FeatureEvaluator(MASK, "roc_auc").evaluate(np.array([1, 0, 1]), labels)
    score = FeatureEvaluator(MASK, "accuracy", ["roc_auc"]).evaluate(np.array([1, 0, 1]), labels)
    assert score.to_dict() == {"accuracy": 1.0}


def test_targets_of_one_kind_are_undefined():
    with pytest.raises(EvaluationError, match="roc_auc is undefined"):
        FeatureEvaluator(MASK, "roc_auc").evaluate(np.ones(4, int), np.linspace(0, 1, 4))
    score = FeatureEvaluator(MASK, "accuracy", ["roc_auc"]).evaluate(np.ones(4, int), np.linspace(0, 1, 4))
    assert "roc_auc" not in score and "roc_auc" in score.undefined


def test_replicates_are_the_values_of_resampled_graphs():
    """With 0, 1, 2, ... copies of every graph, as the weights say, scikit-learn gives the replicates."""
    from graphbench.evaluation.metrics.bootstrap import poisson_weights

    truth, scores = case(7)
    evaluator = FeatureEvaluator(MASK, "roc_auc")
    evaluator.draw_replicates(seed=3)
    half = len(truth) // 2
    evaluator.update(truth[:half], scores[:half])
    evaluator.update(truth[half:], scores[half:])
    found = evaluator.compute().replicates
    weights = poisson_weights(3, np.arange(len(truth)))
    assert len(found) == len(weights)
    for value, copies in list(zip(found, weights, strict=True))[:25]:
        rows = np.repeat(np.arange(len(truth)), copies.astype(int))
        assert value == pytest.approx(roc_auc_score(truth[rows], scores[rows]), abs=1e-7)


def test_missing_targets_count_in_no_metric():
    rng = np.random.default_rng(1)
    nodes = Feature.parse("label", ["output", "node", "categorical(3)"])
    truth, predicted, graph = rng.integers(-1, 3, 90), rng.integers(0, 3, 90), np.repeat(np.arange(9), 10)
    truth[10:20] = -1  # a graph without any known target
    names = ("accuracy", ["accuracy_per_graph", "macro_f1"])
    ours = FeatureEvaluator(nodes, *names, incomplete=True, expected_graphs=9)
    known = truth >= 0
    expected = FeatureEvaluator(nodes, *names).evaluate(truth[known], predicted[known], graph[known])
    assert ours.evaluate(truth, predicted, graph).to_dict() == expected.to_dict()
    for first in range(0, 90, 30):  # the second update begins with graph 3
        part = slice(first, first + 30)
        ours.update(torch.from_numpy(truth[part]), torch.from_numpy(predicted[part]), graph[part])
    assert ours.compute().to_dict() == expected.to_dict()
    with pytest.raises(EvaluationError, match="-1"):
        FeatureEvaluator(nodes, "accuracy").evaluate(truth, predicted)


def test_replicates_with_missing_targets_are_those_of_the_known_graphs():
    rng = np.random.default_rng(2)
    truth, predicted = rng.integers(-1, 2, 200), rng.random(200)
    ours = FeatureEvaluator(MASK, "f1", incomplete=True)
    ours.draw_replicates(seed=5)
    for part in (slice(0, 80), slice(80, 200)):
        ours.update(truth[part], predicted[part])
    found = np.array(ours.compute().replicates)
    from graphbench.evaluation.metrics.bootstrap import poisson_weights

    weights = poisson_weights(5, np.arange(200))
    known = truth >= 0
    for value, weight in list(zip(found, weights, strict=True))[:25]:
        w, t, p = weight[known], truth[known] == 1, predicted[known] >= 0.5
        assert value == pytest.approx(2 * (w * t * p).sum() / ((w * t).sum() + (w * p).sum()), abs=1e-7)


def test_nothing_known_is_an_error():
    with pytest.raises(EvaluationError, match="no target of 'active' is known"):
        FeatureEvaluator(MASK, "f1", incomplete=True).evaluate(np.full(3, -1), np.zeros(3))


OUTPUTS = [Feature.parse("a", ["output", "graph", "scalar"]), Feature.parse("b", ["output", "graph", "scalar(2)"])]


def test_several_outputs_are_one_array_or_a_mapping():
    rng = np.random.default_rng(0)
    truth, predicted = rng.random((2, 30, 3))
    evaluator = OutputsEvaluator(OUTPUTS, "mae", ["r2"])
    split = [{"a": table[:, 0], "b": table[:, 1:]} for table in (truth, predicted)]
    expected = evaluator.evaluate(*split).to_dict()
    assert evaluator.evaluate(truth, predicted).to_dict() == expected
    assert evaluator.evaluate(split[0], torch.from_numpy(predicted)).to_dict() == expected
    for part in (slice(0, 10), slice(10, 30)):
        evaluator.update(truth[part], predicted[part])
    assert evaluator.compute().to_dict() == pytest.approx(expected)
    with pytest.raises(EvaluationError, match=r"\[items, 3\] with the columns a, b \(2\); got the shape \[30, 2\]"):
        evaluator.evaluate(truth, predicted[:, :2])
    elsewhere = [OUTPUTS[0], Feature.parse("b", ["output", "node", "scalar(2)"])]
    with pytest.raises(EvaluationError, match="mapping name -> array: a, b"):
        OutputsEvaluator(elsewhere, "mae").evaluate(truth, predicted)


EDGES = Feature.parse("link", ["output", "edge", "mask"])
HITS = (1, 3, 10, 20, 50, 100)


def queries(number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return scores of positives [Q] and negatives [Q, n], and both as items with their graphs."""
    rng = np.random.default_rng(number)
    positive, negative = rng.random(int(rng.integers(1, 60))), rng.random((1, int(rng.integers(1, 120))))
    negative = rng.random((len(positive), negative.shape[1]))
    if number % 3 == 0:
        positive, negative = np.round(positive, 1), np.round(negative, 1)
    return positive, negative, np.repeat(np.arange(len(positive)), negative.shape[1] + 1), rng


@pytest.mark.parametrize("number", range(200))
def test_ranks_among_candidates_are_those_of_ogb(number):
    linkproppred = pytest.importorskip("ogb.linkproppred")
    positive, negative, graph, rng = queries(number)
    ogb = linkproppred.Evaluator("ogbl-citation2").eval(
        {"y_pred_pos": torch.as_tensor(positive), "y_pred_neg": torch.as_tensor(negative)}
    )
    expected = {"mrr": float(ogb["mrr_list"].mean())}
    expected |= {f"hits_at_{k}": float(ogb[f"hits@{k}_list"].mean()) for k in (1, 3, 10)}
    scores = np.concatenate([positive[:, None], negative], axis=1)
    truth = np.zeros(scores.shape, bool)
    truth[:, 0] = True
    order = np.argsort(rng.random(scores.shape), axis=1)  # the positive stands anywhere
    scores, truth = (np.take_along_axis(table, order, axis=1).ravel() for table in (scores, truth))
    evaluator = FeatureEvaluator(EDGES, "mrr", [f"hits_at_{k}" for k in (1, 3, 10)])
    assert evaluator.evaluate(truth, scores, graph).to_dict() == pytest.approx(expected, abs=1e-6)  # OGB: float32
    for part in np.array_split(np.arange(len(positive)), 2):
        rows = np.isin(graph, part)
        if rows.any():
            evaluator.update(truth[rows], scores[rows], graph[rows] - part[0])
    assert evaluator.compute().to_dict() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("number", [n for n in range(40) if n % 3])
def test_hits_in_one_graph_are_those_of_ogb_without_ties(number):
    linkproppred = pytest.importorskip("ogb.linkproppred")
    rng = np.random.default_rng(number)
    positive, negative = rng.random(40), rng.random(200)
    scores, truth = np.concatenate([positive, negative]), np.repeat([True, False], [40, 200])
    found = FeatureEvaluator(EDGES, "mrr", [f"hits_at_{k}" for k in HITS]).evaluate(truth, scores, np.zeros(240, int))
    for dataset, k in (("ogbl-ddi", 20), ("ogbl-collab", 50), ("ogbl-ppa", 100)):
        ogb = linkproppred.Evaluator(dataset).eval(
            {"y_pred_pos": torch.as_tensor(positive), "y_pred_neg": torch.as_tensor(negative)}
        )
        assert found[f"hits_at_{k}"] == pytest.approx(ogb[f"hits@{k}"])


def test_ranks_by_brute_force_with_columns_and_replicates():
    rng = np.random.default_rng(0)
    truth, scores = rng.random((90, 2)) < 0.2, np.round(rng.random((90, 2)), 1)
    graph = np.repeat(np.arange(30), 3)
    ranks = []
    for column in range(2):
        for i in np.flatnonzero(truth[:, column]):
            others = scores[(graph == graph[i]) & ~truth[:, column], column]
            ranks.append(1 + (others > scores[i, column]).sum() + (others == scores[i, column]).sum() / 2)
    evaluator = FeatureEvaluator(EDGES, "mrr", ["hits_at_3"])
    evaluator.draw_replicates(seed=1)
    evaluator.update(truth, scores, graph)
    score = evaluator.compute()
    assert score["mrr"] == pytest.approx(np.mean(1 / np.array(ranks)))
    assert score["hits_at_3"] == pytest.approx(np.mean(np.array(ranks) <= 3))
    assert min(score.replicates) < score["mrr"] < max(score.replicates)


def test_no_positive_is_undefined():
    with pytest.raises(EvaluationError, match="mrr is undefined: no target is 1"):
        FeatureEvaluator(EDGES, "mrr").evaluate(np.zeros(4, int), np.linspace(0, 1, 4), np.zeros(4, int))


@pytest.mark.parametrize("number", range(12))
def test_a_row_per_direction_changes_no_rank(number):
    positive, negative, graph, _ = queries(number)
    scores = np.concatenate([positive[:, None], negative], axis=1).ravel()
    truth = np.zeros((len(positive), negative.shape[1] + 1), bool)
    truth[:, 0] = True
    names = ("mrr", [f"hits_at_{k}" for k in HITS])
    once = FeatureEvaluator(EDGES, *names).evaluate(truth.ravel(), scores, graph)
    both = FeatureEvaluator(EDGES, *names, both_directions=True)
    assert (
        both.evaluate(*(np.repeat(values, 2) for values in (truth.ravel(), scores, graph))).to_dict() == once.to_dict()
    )


def test_undirected_edges_are_ranked_once(tmp_path):
    """Through a card of undirected graphs, as a user's batches have them."""
    import graphbench

    splits = graphbench.Loader("algoreas/mst_easy", limit=12, root=tmp_path, workers=1).load()
    card = splits.card.model_copy(update={"metrics": splits.card.metrics.model_copy(update={"primary": "mrr"})})
    evaluator, rng, expected = graphbench.Evaluator(card), np.random.default_rng(0), []
    for batch in splits.test.batches(5):
        scores = rng.random(batch.edge_index.shape[1] // 2)
        evaluator.update(batch, torch.as_tensor(np.repeat(scores, 2)))
        owner = batch.batch[batch.edge_index[0, ::2]].numpy()
        truth = batch.in_tree[::2].numpy().astype(bool)
        for i in np.flatnonzero(truth):
            expected.append(1 / (1 + (scores[(owner == owner[i]) & ~truth] > scores[i]).sum()))
    assert evaluator.compute().primary == pytest.approx(np.mean(expected))


def test_one_item_per_graph_cannot_be_ranked():
    with pytest.raises(EvaluationError, match="'active' has one item per graph"):
        FeatureEvaluator(MASK, "mrr")
