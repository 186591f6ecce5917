"""Bootstrap replicates of scores, against evaluators that are given every graph as often as it counts."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.stats
import torch
from torch_geometric.data import Batch, Data

from graphbench.catalog.features import parse_features
from graphbench.data.batches.text_batch import TextBatch
from graphbench.data.components.domain import find
from graphbench.evaluation.evaluator import FeatureEvaluator
from graphbench.evaluation.metrics.bootstrap import LEAST_SAMPLES, REPLICATES, poisson_weights
from graphbench.evaluation.several import OutputsEvaluator
from graphbench.tasks.evaluator import Evaluator
from graphbench.tasks.forecast.evaluator import ForecastEvaluator, ForecastFields
from graphbench.tasks.select.evaluator import SelectionEvaluator
from graphbench.tasks.solve.evaluator import SolutionEvaluator
from graphbench.tasks.text.evaluator import TextEvaluator
from graphbench.tasks.trace.evaluator import TraceEvaluator

SEED, GRAPHS = 2026, 30
SOME = (0, 7, REPLICATES - 1)
RNG = np.random.default_rng(5)


def repeated(weights):
    return np.repeat(np.arange(len(weights)), weights.astype(int))


def rows_of(chosen, graph):
    """Return the rows of the chosen graphs in their order, and the new graph of each row."""
    rows = [np.flatnonzero(graph == i) for i in chosen]
    return np.concatenate(rows), np.repeat(np.arange(len(chosen)), [len(own) for own in rows])


def test_counts_are_those_of_a_poisson_distribution_and_do_not_depend_on_the_blocks():
    weights = poisson_weights(SEED, np.arange(5_000))
    assert weights.shape == (REPLICATES, 5_000)
    expected = scipy.stats.poisson(1).pmf(np.arange(5)) * weights.size
    counted = np.array([np.count_nonzero(weights == count) for count in range(5)])
    assert scipy.stats.chisquare(counted, expected * counted.sum() / expected.sum()).pvalue > 1e-3
    assert abs(np.corrcoef(weights[0], weights[1])[0, 1]) < 0.06
    assert abs(np.corrcoef(weights[0, :-1], weights[0, 1:])[0, 1]) < 0.06
    some = np.array([4_999, 3, 17])
    assert np.array_equal(weights[:, some], poisson_weights(SEED, some))
    assert not np.array_equal(weights, poisson_weights(SEED + 1, np.arange(5_000)))
    assert weights[:2, :12].astype(int).tolist() == FROZEN  # records of different years stay paired


FROZEN = [[1, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 1], [2, 1, 1, 0, 4, 1, 2, 1, 0, 1, 2, 0]]


@pytest.mark.parametrize(
    ("types", "primary"),
    [
        (["output", "edge", "mask"], "f1"),
        (["output", "edge", "mask"], "accuracy"),
        (["output", "edge", "mask"], "f1_per_graph"),
        (["output", "node", "categorical(4)"], "accuracy"),
        (["output", "node", "categorical(4)"], "accuracy_per_graph"),
        (["output", "node", "scalar"], "mae"),
        (["output", "node", "scalar"], "rmse"),
        (["output", "node", "scalar(3)"], "rse"),
        (["output", "node", "scalar"], "r2"),
        (["output", "edge", "mask"], "score"),
        (["output", "node", "pointer"], "score"),
    ],
)
def test_a_replicate_is_the_score_of_graphs_repeated(types, primary):
    (feature,) = parse_features({"target": types})
    graph = np.sort(RNG.integers(0, GRAPHS, 400))
    graph[:GRAPHS] = np.arange(GRAPHS)
    graph.sort()
    if feature.kind.value == "mask":
        truth, predicted = RNG.random(400) < 0.3, RNG.random(400) < 0.4
    elif feature.kind.value == "scalar":
        shape = (400, 3) if "3" in types[2] else (400,)
        truth = 1e3 + RNG.normal(size=shape)
        predicted = truth + RNG.normal(size=shape)
    else:
        truth, predicted = RNG.integers(0, 4, 400), RNG.integers(0, 4, 400)
    evaluator = FeatureEvaluator(feature, primary)
    evaluator.draw_replicates(SEED)
    cut = int(np.searchsorted(graph, 11))  # two updates of whole graphs
    evaluator.update(truth[:cut], predicted[:cut], graph[:cut])
    evaluator.update(truth[cut:], predicted[cut:], graph[cut:] - 11)
    score = evaluator.compute()
    assert len(score.replicates) == REPLICATES
    weights = poisson_weights(SEED, np.arange(GRAPHS))
    for r in SOME:
        rows, own = rows_of(repeated(weights[r]), graph)
        expected = FeatureEvaluator(feature, primary).evaluate(truth[rows], predicted[rows], own)
        assert score.replicates[r] == pytest.approx(expected.primary, rel=1e-6)
    assert np.std(score.replicates) > 0
    assert evaluator.evaluate(truth, predicted, graph).replicates == ()  # of compute() alone


def test_replicates_of_several_outputs_are_weighted_means():
    outputs = parse_features({"first": ["output", "graph", "scalar"], "second": ["output", "graph", "scalar"]})
    truth, predicted = ({f.name: RNG.normal(size=GRAPHS) for f in outputs} for _ in range(2))
    evaluator = OutputsEvaluator(outputs, "mae", weights={"second": 3.0})
    evaluator.draw_replicates(SEED)
    evaluator.update(truth, predicted)
    found = evaluator.compute().replicates
    chosen = repeated(poisson_weights(SEED, np.arange(GRAPHS))[7])
    errors = [np.abs(truth[f.name] - predicted[f.name])[chosen].mean() for f in outputs]
    assert found[7] == pytest.approx((errors[0] + 3 * errors[1]) / 4, rel=1e-7)


def test_replicates_of_traces():
    outputs = parse_features(
        {"pi": ["output", "node", "pointer"], "found": ["output", "node", "mask"], "at": ["output", "node", "mask_one"]}
    )
    make = {"pi": lambda: RNG.integers(0, 6, (GRAPHS, 6)), "found": lambda: RNG.integers(0, 2, (GRAPHS, 6))}
    truth = {**{k: m() for k, m in make.items()}, "at": RNG.integers(0, 6, GRAPHS)}
    predicted = {**{k: m() for k, m in make.items()}, "at": RNG.integers(0, 6, GRAPHS)}
    evaluator = TraceEvaluator(outputs)
    evaluator.draw_replicates(SEED)
    for part in (slice(0, 9), slice(9, GRAPHS)):
        evaluator.update({k: v[part] for k, v in truth.items()}, {k: v[part] for k, v in predicted.items()})
    score = evaluator.compute()
    assert score.primary == pytest.approx(TraceEvaluator(outputs).evaluate(truth, predicted).primary)
    for r in SOME:
        chosen = repeated(poisson_weights(SEED, np.arange(GRAPHS))[r])
        expected = TraceEvaluator(outputs).evaluate(
            {k: v[chosen] for k, v in truth.items()}, {k: v[chosen] for k, v in predicted.items()}
        )
        assert score.replicates[r] == pytest.approx(expected.primary, rel=1e-6)


def test_replicates_of_solutions():
    graphs = [
        Data(edge_index=torch.tensor([[i, (i + 1) % n], [(i + 1) % n, i]]).reshape(2, -1), num_nodes=n)
        for i, n in ((k % 4, 5 + k % 3) for k in range(GRAPHS))
    ]
    chosen_nodes = [torch.zeros(int(g.num_nodes), dtype=torch.long) for g in graphs]
    for k, nodes in enumerate(chosen_nodes):
        nodes[graphs[k].edge_index[0, 0]] = k % 2
    evaluator = SolutionEvaluator("mis")
    evaluator.draw_replicates(SEED)
    evaluator.update(Batch.from_data_list(graphs), torch.cat(chosen_nodes))
    score = evaluator.compute()
    values = np.array([int(nodes.sum()) for nodes in chosen_nodes])
    assert score.primary == pytest.approx(values.mean())
    for r in SOME:
        expected = values[repeated(poisson_weights(SEED, np.arange(GRAPHS))[r])].mean()
        assert score.replicates[r] == pytest.approx(expected, rel=1e-7)


def test_replicates_of_choices():
    names = ("a_cost", "b_cost", "c_cost")
    outputs = parse_features({name: ["output", "graph", "scalar"] for name in names})
    train = {"a_cost": 4.0, "b_cost": 5.0, "c_cost": 6.0}
    costs, choices = RNG.gamma(2.0, 3.0, (GRAPHS, 3)), RNG.integers(0, 3, GRAPHS)
    for primary in ("closed_gap", "par10"):
        evaluator = SelectionEvaluator(outputs, primary, train_costs=train)
        evaluator.draw_replicates(SEED)
        evaluator.update(costs[:12], choices[:12])
        evaluator.update(costs[12:], choices[12:])
        found = evaluator.compute().replicates
        for r in SOME:
            chosen = repeated(poisson_weights(SEED, np.arange(GRAPHS))[r])
            again = SelectionEvaluator(outputs, primary, train_costs=train).evaluate(costs[chosen], choices[chosen])
            assert found[r] == pytest.approx(again.primary, rel=1e-6)


def test_replicates_of_forecasts():
    channels = ("2m_temperature", "temperature_500", "temperature_850")
    latitudes, convention = np.array([-60.0, 0.0, 60.0]), find("convention", "weather.weatherbench")
    fields = ForecastFields(channels, "change", "state", latitudes, convention, lead_hours=12)

    def evaluator():
        return ForecastEvaluator(fields, ("mse",))

    truth, predicted = RNG.normal(size=(2, GRAPHS, 12, 3))
    found = evaluator()
    found.draw_replicates(SEED)
    found.update(truth[:8], predicted[:8])
    found.update(truth[8:], predicted[8:])
    score = found.compute()
    for r in SOME:
        chosen = repeated(poisson_weights(SEED, np.arange(GRAPHS))[r])
        assert score.replicates[r] == pytest.approx(evaluator().evaluate(truth[chosen], predicted[chosen]).primary)


def test_replicates_of_judged_answers_and_of_texts_in_another_order():
    (feature,) = parse_features({"answer": ["output", "graph", "text"]})
    right = RNG.random(GRAPHS) < 0.5
    references = [f"[{i}]\n\n" for i in range(GRAPHS)]
    answers = [ref if ok else "[-1]\n\n" for ref, ok in zip(references, right, strict=True)]
    expected = [right[repeated(w)].mean() for w in poisson_weights(SEED, np.arange(GRAPHS))[list(SOME)]]
    order = RNG.permutation(GRAPHS).tolist()
    for numbers in (list(range(GRAPHS)), order):
        evaluator = TextEvaluator(feature)
        evaluator.draw_replicates(SEED)
        for part in (numbers[:13], numbers[13:]):
            own = [references[i] for i in part]
            evaluator.update(TextBatch(own, own, [4] * len(part), numbers=part), [answers[i] for i in part])
        found = evaluator.compute().replicates
        assert [found[r] for r in SOME] == pytest.approx(expected)


def test_two_models_have_paired_replicates():
    """The spread of the difference is far smaller than either model's own where both err on the same graphs."""
    hard = RNG.random(400) < 0.5
    truth = np.zeros(400)
    first, second = np.where(hard, 2.0, 0.0), np.where(hard, 2.1, 0.0)
    (feature,) = parse_features({"target": ["output", "graph", "scalar"]})
    found = []
    for predicted in (first, second):
        evaluator = FeatureEvaluator(feature, "mae")
        evaluator.draw_replicates(SEED)
        evaluator.update(truth, predicted)
        found.append(np.array(evaluator.compute().replicates))
    assert np.std(found[0]) == pytest.approx(np.std(first) / 20, rel=0.2)  # the standard error of a mean of 400
    assert np.std(found[1] - found[0]) < 0.1 * np.std(found[0])


def test_where_there_are_no_replicates():
    (feature,) = parse_features({"target": ["output", "node", "scalar"]})
    few = FeatureEvaluator(feature, "mae")
    few.draw_replicates(SEED)
    few.update(np.zeros(LEAST_SAMPLES - 1), np.ones(LEAST_SAMPLES - 1), np.arange(LEAST_SAMPLES - 1))
    assert few.compute().replicates == ()
    unknown = FeatureEvaluator(feature, "mae")
    unknown.draw_replicates(SEED)
    unknown.update(np.zeros(100), np.ones(100))
    assert unknown.compute().replicates == ()
    ranks = FeatureEvaluator(feature, "spearman")
    ranks.draw_replicates(SEED)
    ranks.update(np.arange(100.0), np.arange(100.0), np.arange(100))
    assert ranks.compute().replicates == ()


def test_replicates_of_generated_answers():
    evaluator = Evaluator("chip_design/aig")
    assert evaluator.primary_sums(evaluator.start())
    from graphbench.evaluation.metrics.bootstrap import replicates, start_tallies
    from graphbench.tasks.generate.metrics import VerdictSums

    class Judged:
        reasons, texts, groups = np.zeros(GRAPHS, int), ("",), np.array(["a"] * GRAPHS)
        values = {"quality": RNG.random(GRAPHS), "ands": np.where(RNG.random(GRAPHS) < 0.3, np.nan, 5.0)}  # noqa: RUF012

    sums = VerdictSums()
    start_tallies([sums], SEED)
    sums.add(Judged)
    for name in Judged.values:
        found = replicates({"": sums}, lambda parts, name=name: parts[""].mean(name))
        for r in SOME:
            chosen = repeated(poisson_weights(SEED, np.arange(GRAPHS))[r])
            assert found[r] == pytest.approx(np.nanmean(Judged.values[name][chosen]), rel=1e-7)
    assert json.dumps(found)
