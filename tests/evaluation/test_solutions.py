"""Decoding and scoring solutions of PyG batches: values by hand, streaming, bad graphs and bad scores."""

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.utils import to_networkx

from graphbench.core.errors import DecodingError, EvaluationError
from graphbench.data.components.domain import all_components
from graphbench.evaluation.evaluator import FeatureEvaluator
from graphbench.evaluation.metrics import METRICS, metric
from graphbench.tasks.evaluator import Evaluator
from graphbench.tasks.solve.evaluator import FURTHER_METRICS, SolutionEvaluator, decode
from graphbench.tasks.solve.metrics import SolutionSums, SolvedGraphs

PROBLEMS = {problem.short_name: problem for _, problem in all_components("problem")}
TASKS = ("mis", "max_cut", "coloring")
ALL = {task: (about.objective, *FURTHER_METRICS) for task, about in PROBLEMS.items()}


def graph(edges, nodes, **fields):
    both = torch.tensor([*edges, *((v, u) for u, v in edges)], dtype=torch.long).reshape(-1, 2).t()
    return Data(edge_index=both, num_nodes=nodes, **{name: torch.tensor([value]) for name, value in fields.items()})


def pentagon_and_star(**labels):
    """Return a cycle of five nodes and a star of three leaves; best: sets 2 and 3, cuts 4 and 3, colours 3 and 2."""
    cycle = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]
    star = [(0, 1), (0, 2), (0, 3)]
    first, second = ({name: values[i] for name, values in labels.items()} for i in (0, 1))
    return [graph(cycle, 5, **first), graph(star, 4, **second)]


def random_batch(count=6):
    drawn = [nx.gnp_random_graph(12 + seed, 0.3, seed=seed) for seed in range(count)]
    return Batch.from_data_list([graph(list(found.edges), len(found)) for found in drawn])


def scores_for(task, nodes, seed=0):
    return torch.randn(nodes, *((9,) if task == "coloring" else ()), generator=torch.Generator().manual_seed(seed))


def objective(task, data, own):
    """Return what a solution of one graph is worth, by networkx; it must be feasible."""
    found = to_networkx(data, to_undirected=True)
    if task == "coloring":
        assert all(own[u] != own[v] for u, v in found.edges)
        return len(set(own.tolist()))
    chosen = set(np.flatnonzero(own).tolist())
    if task == "mis":
        assert not found.subgraph(chosen).edges
        assert nx.is_dominating_set(found, chosen)
        return len(chosen)
    return nx.cut_size(found, chosen)


@pytest.mark.parametrize("task", TASKS)
def test_decoded_solutions_are_feasible_and_worth_their_values(task):
    batch = random_batch()
    found = decode(task, batch, scores_for(task, batch.num_nodes))
    worth = [objective(task, data, own) for data, own in zip(batch.to_data_list(), found.per_graph(), strict=True)]
    np.testing.assert_array_equal(found.values, worth)
    assert found.nodes.dtype == np.int32
    assert found.seconds > 0


@pytest.mark.parametrize("task", TASKS)
def test_every_form_of_graphs_and_scores_gives_the_same(task):
    batch = random_batch()
    scores = scores_for(task, batch.num_nodes)
    expected = decode(task, batch, scores).nodes
    plain = Batch.from_data_list(batch.to_data_list())
    del plain.ptr
    singles = [decode(task, d, s.numpy()) for d, s in zip(batch.to_data_list(), split(batch, scores), strict=True)]
    forms = [
        decode(task, batch.to_data_list(), split(batch, scores)).nodes,
        decode(task, plain, scores.double().requires_grad_()).nodes,
        np.concatenate([single.nodes for single in singles]),
    ]
    for nodes in forms:
        np.testing.assert_array_equal(nodes, expected)


def split(batch, values):
    return list(torch.split(values, batch.ptr.diff().tolist()))


def test_probabilities_are_read_as_such():
    batch = random_batch()
    for task in TASKS:
        logits = scores_for(task, batch.num_nodes)
        chances = logits.softmax(1) if task == "coloring" else logits.sigmoid()
        for options in ({}, {"restarts": 3}):
            expected = decode(task, batch, logits.double(), **options).nodes
            found = decode(task, batch, chances.double(), scale="probability", **options).nodes
            np.testing.assert_array_equal(found, expected)
        sure = (chances > 0.5).double()
        decode(task, batch, sure, scale="probability", **({"num_colors": 20} if task == "coloring" else {}))
    with pytest.raises(DecodingError, match="a probability lies in"):
        decode("max_cut", batch, logits_of(batch), scale="probability")
    with pytest.raises(DecodingError, match="scale='odds' is unknown"):
        decode("max_cut", batch, logits_of(batch), scale="odds")


def logits_of(batch):
    return 3 * scores_for("mis", batch.num_nodes)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision(dtype):
    batch = random_batch()
    scores = scores_for("mis", batch.num_nodes).to(dtype)
    np.testing.assert_array_equal(decode("mis", batch, scores).nodes, decode("mis", batch, scores.double()).nodes)


def test_scores_by_hand():
    labels = {"mis_value": [2.0, 3.0], "mis_bound": [2.0, 4.0]}
    score = SolutionEvaluator("mis").evaluate(pentagon_and_star(**labels), [[1, 0, 0, 0, 0], [1, 0, 0, 0]], seconds=3.0)
    assert score.primary_name == "set_size"
    assert score.higher_is_better
    expected = {"set_size": 1.0, "ratio": (1 / 2 + 1 / 3) / 2, "gap": (1 / 2 + 2 / 3) / 2, "matched": 0.0}
    assert score.to_dict() == pytest.approx({**expected, "bound_ratio": (1 / 2 + 1 / 4) / 2, "seconds_per_graph": 1.5})
    assert score.graphs == 2

    labels = {"max_cut_value": [4, 2], "max_cut_bound": [4, 3]}
    best = np.array([0, 1, 0, 1, 0, 1, 0, 0, 0])
    score = SolutionEvaluator("max_cut").evaluate(pentagon_and_star(**labels), best)
    expected = {"cut_size": 3.5, "ratio": 1.25, "gap": -0.25, "matched": 1.0, "bound_ratio": 1.0}
    assert score.to_dict() == pytest.approx(expected)
    assert "nothing was timed" in score.undefined["seconds_per_graph"]

    labels = {"coloring_value": [3, 2], "coloring_bound": [3, 2]}
    score = SolutionEvaluator("coloring").evaluate(pentagon_and_star(**labels), np.array([0, 1, 0, 1, 2, 5, 7, 8, 7]))
    expected = {
        "num_colors": 3.0,
        "ratio": (1 + 2 / 3) / 2,
        "gap": 0.25,
        "matched": 0.5,
        "bound_ratio": (1 + 2 / 3) / 2,
    }
    assert score.to_dict() == pytest.approx(expected)
    assert not score.higher_is_better


def test_graphs_without_labels(caplog):
    evaluator = SolutionEvaluator("mis")
    score = evaluator.evaluate(pentagon_and_star(), np.array([1, 0, 0, 0, 0, 1, 0, 0, 0], bool))
    assert score.to_dict() == {"set_size": 1.0}
    with pytest.raises(KeyError, match="no graph has a label"):
        score["ratio"]
    some = pentagon_and_star(mis_value=[-1.0, 3.0], mis_bound=[2.0, -1.0])
    score = evaluator.evaluate(some, np.array([1, 0, 0, 0, 0, 0, 1, 1, 1]))
    assert score.to_dict() == {"set_size": 2.0, "ratio": 1.0, "gap": 0.0, "matched": 1.0, "bound_ratio": 0.5}
    assert "1 of 2 graphs have no mis_value" in caplog.text


@pytest.mark.parametrize("task", TASKS)
def test_streaming_equals_one_call(task):
    batch = random_batch()
    rng = np.random.default_rng(0)
    about = PROBLEMS[task]
    batch[about.value] = torch.from_numpy(rng.integers(2, 9, batch.num_graphs))
    scores = scores_for(task, batch.num_nodes)
    data = batch.to_data_list()
    for one, value in zip(data, batch[about.value], strict=True):
        one[about.value] = value.reshape(1)
    evaluator = SolutionEvaluator(task, expected_graphs=len(data))
    whole = evaluator.evaluate(batch, scores).to_dict()
    parts = split(batch, scores)
    for first, last in ((0, 1), (1, 4), (4, 6)):
        evaluator.update(Batch.from_data_list(data[first:last]), torch.cat(parts[first:last]))
    streamed = evaluator.compute().to_dict()
    assert streamed.pop("seconds_per_graph") > 0
    whole.pop("seconds_per_graph")
    assert streamed == pytest.approx(whole, rel=1e-12)
    evaluator.reset()
    with pytest.raises(EvaluationError, match="before any update"):
        evaluator.compute()
    evaluator.update(data[0], parts[0])
    with pytest.raises(EvaluationError, match=r"1 graphs.*6 are expected: 5 missing"):
        evaluator.compute()


def test_scores_and_solutions_are_told_apart_by_their_type():
    batch = Batch.from_data_list(pentagon_and_star())
    nothing = np.zeros(9)
    assert SolutionEvaluator("max_cut").evaluate(batch, nothing)["cut_size"] == 0
    assert SolutionEvaluator("mis").evaluate(batch, nothing)["set_size"] == 1.5  # decoded: nodes 0 and 2; the centre
    assert SolutionEvaluator("mis").evaluate(batch, nothing.astype(int))["set_size"] == 0
    assert SolutionEvaluator("mis", scores="label").evaluate(batch, nothing)["set_size"] == 0
    with pytest.raises(DecodingError, match="y_pred has fractions"):
        SolutionEvaluator("mis", scores="label").evaluate(batch, nothing + 0.5)


def test_options_reach_the_decoder():
    batch = random_batch()
    scores = scores_for("max_cut", batch.num_nodes)
    plain = SolutionEvaluator("max_cut").evaluate(batch, scores).primary
    searched = SolutionEvaluator("max_cut", local_search=True, restarts=4).evaluate(batch, scores).primary
    assert searched > plain
    assert searched == decode("max_cut", batch, scores, local_search=True, restarts=4).values.mean()


def test_infeasible_solutions_and_false_bounds_have_no_score():
    evaluator = SolutionEvaluator("mis")
    data = pentagon_and_star(mis_value=[2, 3], mis_bound=[2, 2])
    with pytest.raises(DecodingError, match="edge 0-1 of graph 1 joins two members"):
        evaluator.update(data, np.array([0, 0, 0, 0, 0, 1, 1, 0, 0]))
    with pytest.raises(EvaluationError, match="has the value 3, but its bound is 2"):
        evaluator.update(data, np.array([1, 0, 1, 0, 0, 0, 1, 1, 1]))
    with pytest.raises(EvaluationError, match="has the value 1, but its label is 0"):
        evaluator.update(pentagon_and_star(mis_value=[0, 3]), np.array([1, 0, 0, 0, 0, 0, 1, 1, 1]))
    with pytest.raises(EvaluationError, match="before any update"):  # what was refused left nothing behind
        evaluator.compute()


def with_field(name, value):
    batch = Batch.from_data_list(pentagon_and_star())
    batch[name] = value
    return batch


def test_bad_graphs_are_named():
    batch, zeros = Batch.from_data_list(pentagon_and_star()), np.zeros(9)
    arcs = batch.clone()
    arcs.edge_index = arcs.edge_index[:, 1:]
    loops = batch.clone()
    loops.edge_index = torch.cat([loops.edge_index, torch.tensor([[6], [6]])], dim=1)
    mixed = batch.clone()
    del mixed.ptr
    mixed.batch = mixed.batch.flip(0)
    refused = {
        "edge 1-0 of graph 0 lacks its reverse, .* add the reverses": arcs,
        "edge 1-1 of graph 1 is a self-loop": loops,
        "has edge_weight, but .* without weights": with_field("edge_weight", torch.full((16,), 2.0)),
        "has edge_attr, but": with_field("edge_attr", torch.arange(16.0)[:, None]),
        "not in the order of its graphs": mixed,
        "has weight, but": with_field("weight", torch.full((16,), 2.0)),
        "the list of graphs is empty": [],
        "the graphs are given as ndarray; give a PyG Batch": zeros,
        "the graphs are given as Data": Data(x=torch.zeros(9, 1)),
    }
    for message, graphs in refused.items():
        for task in TASKS:
            with pytest.raises(DecodingError, match=message):
                decode(task, graphs, zeros)
            with pytest.raises(DecodingError, match=message):
                SolutionEvaluator(task).evaluate(graphs, zeros.astype(int))
    of_nodes = with_field("weight", torch.arange(9.0))
    np.testing.assert_array_equal(decode("mis", of_nodes, zeros).nodes, decode("mis", batch, zeros).nodes)
    ones = with_field("edge_attr", torch.ones(16, 1))
    np.testing.assert_array_equal(decode("mis", ones, zeros).nodes, decode("mis", batch, zeros).nodes)


def test_bad_scores_and_arguments_are_named():
    batch = Batch.from_data_list(pentagon_and_star())
    with pytest.raises(DecodingError, match=r"shape \[8\]; give \[9\]"):
        decode("mis", batch, torch.zeros(8))
    with pytest.raises(DecodingError, match="node 1 of graph 1 is nan"):
        decode("mis", batch, torch.tensor([0.0] * 6 + [torch.nan] + [0.0] * 2))
    with pytest.raises(DecodingError, match="differ in their columns"):
        decode("coloring", batch, [np.zeros((5, 3)), np.zeros((4, 4))])
    with pytest.raises(DecodingError, match=r"graph 0.*3 colours, 2"):
        decode("coloring", batch, np.zeros((9, 2)))
    with pytest.raises(DecodingError, match=r"option 'local_search'.*restarts"):
        decode("mis", batch, np.zeros(9), local_search=True)
    with pytest.raises(DecodingError, match="mis has no option 'num_colors'"):
        SolutionEvaluator("mis", num_colors=3)
    with pytest.raises(DecodingError, match=r"problem 'domination'.* \(there are co\.mis, co\.max_cut"):
        decode("domination", batch, np.zeros(9))
    with pytest.raises(EvaluationError, match="leave batch out"):
        SolutionEvaluator("mis").evaluate(batch, np.zeros(9), batch.batch)
    with pytest.raises(EvaluationError, match=r"mis_value has shape \[3\] for 2 graphs"):
        SolutionEvaluator("mis").evaluate(with_field("mis_value", torch.ones(3)), np.zeros(9))
    with pytest.raises(EvaluationError, match="scores='odds' is unknown"):
        SolutionEvaluator("mis", scores="odds")


def test_a_list_of_scores_has_the_rows_of_each_graph():
    graphs, evaluator = pentagon_and_star(), SolutionEvaluator("mis")
    for given in ([torch.rand(4), torch.rand(5)], [torch.zeros(4, dtype=torch.long), torch.zeros(5, dtype=torch.long)]):
        with pytest.raises(DecodingError, match=r"\[0\] has 4 rows, graph 0 has 5 nodes.*node"):
            evaluator.evaluate(graphs, given)
    with pytest.raises(DecodingError, match="scores has 1 arrays for 2 graphs"):
        decode("mis", graphs, [torch.rand(9)])


def test_values_of_options_are_refused_at_once():
    refused = {
        "restarts is -1; give a whole number from 1 on": {"restarts": -1},
        "seed is 1.5; give a whole number": {"seed": 1.5},
        "temperature is True; give a number above 0": {"temperature": True},
        "local_search is 'no'; give True or False": {"local_search": "no"},
        "conditional is 1; give True or False": {"conditional": 1},
    }
    for message, options in refused.items():
        with pytest.raises(DecodingError, match=message):
            SolutionEvaluator("max_cut", **options)
        with pytest.raises(DecodingError, match=message):
            decode("max_cut", pentagon_and_star(), torch.zeros(9), **options)
    decode("max_cut", pentagon_and_star(), torch.zeros(9), temperature=np.float32(1.0), restarts=np.int64(2))


def test_numbers_that_are_none_are_named():
    graphs = pentagon_and_star()
    for seconds in (-5, float("nan"), "a", True):
        with pytest.raises(EvaluationError, match=f"seconds is {seconds!r}; give the time spent"):
            SolutionEvaluator("mis").evaluate(graphs, torch.zeros(9), seconds=seconds)
    for label in (float("inf"), 153.5, float("nan")):
        with pytest.raises(EvaluationError, match=f"mis_value holds {label}.*whole"):
            SolutionEvaluator("mis").evaluate(pentagon_and_star(mis_value=(label, 3.0)), torch.zeros(9))
    for entry in (float("inf"), float("nan"), 1e30):
        with pytest.raises(DecodingError, match=r"y_pred holds .* no part of a solution"):
            SolutionEvaluator("mis", scores="label").evaluate(graphs, torch.full((9,), entry))


def test_metrics_of_solutions_score_no_feature():
    for name in {name for names in ALL.values() for name in names}:
        assert METRICS[name].kinds == frozenset()
        assert METRICS[name].accumulator is SolutionSums
    from graphbench.catalog.features import Feature

    with pytest.raises(EvaluationError, match="'set_size' cannot score 'in_tree'"):
        metric("set_size", Feature.parse("in_tree", ["output", "edge", "mask"]))


def test_a_value_of_0_that_is_the_best_counts_as_matched():
    sums = SolutionSums()
    zero = np.zeros(1, np.int64)
    sums.add(SolvedGraphs(zero, maximise=True, labels=zero, bounds=zero))
    values = {name: METRICS[name].value(sums) for name in ("cut_size", "ratio", "gap", "matched", "bound_ratio")}
    assert values == {"cut_size": 0.0, "ratio": 1.0, "gap": 0.0, "matched": 1.0, "bound_ratio": 1.0}


@pytest.mark.parametrize("task", TASKS)
def test_the_evaluator_of_a_card_with_a_problem(task):
    card = f"co/ba_small:{task}"
    evaluator = Evaluator(card, restarts=2)
    assert isinstance(evaluator, SolutionEvaluator)
    assert evaluator.primary_name == PROBLEMS[task].objective
    batch = random_batch()
    scores = scores_for(task, batch.num_nodes)
    assert evaluator.evaluate(batch, scores).primary == decode(task, batch, scores, restarts=2).values.mean()
    with pytest.raises(EvaluationError, match="has no output 'sides'"):
        Evaluator(card, output="sides")


def test_a_task_of_numbers_has_the_usual_evaluator():
    evaluator = Evaluator("co/ba_small:mis_size")
    assert type(evaluator) is FeatureEvaluator
    assert isinstance(evaluator, Evaluator)
    assert evaluator.evaluate([3.0, 4.0], [3.0, 5.0])["mae"] == 0.5
    with pytest.raises(DecodingError, match="mis_size asks for no solution"):
        SolutionEvaluator("co/ba_small:mis_size")
