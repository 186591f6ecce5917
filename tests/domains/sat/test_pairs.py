"""Pairs of formulas: how they are drawn, their labels with proofs, and assignments as solutions."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

import graphbench
from graphbench.core.errors import ConfigError, DecodingError, SolverError
from graphbench.data.build.generation import draw_samples
from graphbench.domains.sat import Cnf
from graphbench.domains.sat.assignments import PROBLEMS, satisfied_clauses
from graphbench.domains.sat.formulas import formula_of
from graphbench.domains.sat.generators import GENERATORS
from graphbench.domains.sat.incremental import clauses_until_unsatisfiable, first_best_assignment, is_satisfiable
from graphbench.domains.sat.labellers import LABELLERS
from graphbench.domains.sat.pair_labellers import NoEffort
from graphbench.domains.sat.pairs import PairParameters, draw_member, draw_pair
from graphbench.domains.sat.proofs import check_proof, contradiction, decide
from graphbench.domains.sat.random_clauses import draw_community, draw_mixed, draw_uniform
from graphbench.models.surrogates import clauses_loss
from graphbench.tasks.solve.evaluator import SolutionEvaluator, decode

pytest.importorskip("pysat")
KEY = np.uint64(11)
FAMILIES = {
    "sr": {"variables": [3, 9]},
    "uniform": {"variables": [4, 9]},
    "community": {"variables": [9, 10], "communities": [3, 3], "modularity": [0.3, 0.9]},
}
FORMULAS = st.lists(
    st.lists(st.integers(1, 5).flatmap(lambda v: st.sampled_from([v, -v])), min_size=1, max_size=3, unique_by=abs),
    min_size=1,
    max_size=24,
)


def parameters(**families) -> PairParameters:
    return PairParameters.model_validate({"families": {name: {"share": 1, **FAMILIES[name]} for name in families}})


def violated(clauses, values) -> int:
    return sum(not any(values[abs(literal) - 1] == (literal > 0) for literal in clause) for clause in clauses)


def assignments(n: int):
    return itertools.product([False, True], repeat=n)


def satisfiable(clauses, n: int) -> bool:
    return any(violated(clauses, values) == 0 for values in assignments(n))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_formulas_of_a_pair_differ_in_one_sign_that_decides(family):
    some = parameters(**{family: True})
    for number in range(25):
        pair = draw_pair(some, KEY, number, 0)
        n, clauses = pair.unsatisfiable.num_variables, list(pair.unsatisfiable.clauses())
        assert pair.family == family
        assert not satisfiable(clauses, n)
        assert satisfiable(clauses[:-1], n)
        other = list(pair.satisfiable.clauses())
        assert satisfiable(other, n)
        assert other[:-1] == clauses[:-1]
        assert sorted(map(abs, other[-1])) == sorted(map(abs, clauses[-1]))
        assert sum(a != b for a, b in zip(other[-1], clauses[-1], strict=True)) == 1


def test_samples_are_the_formulas_of_pairs_under_other_names():
    some = parameters(sr=True, uniform=True, community=True)
    for number in range(30):
        pair = draw_pair(some, KEY, number, 0)
        members = [draw_member(some, KEY, 2 * number + i, 0) for i in range(2)]
        assert [claim for _, _, claim in members] in ([True, False], [False, True])
        for name, formula, claim in members:
            assert name == pair.family
            clauses = list(formula.clauses())
            assert satisfiable(clauses, formula.num_variables) == claim
            assert len(clauses) == pair.unsatisfiable.num_clauses
            assert sorted(map(len, clauses)) == sorted(map(len, pair.unsatisfiable.clauses()))
    firsts = [draw_pair(some, KEY, number, 0).satisfiable_first for number in range(200)]
    assert 60 < sum(firsts) < 140


def test_a_sample_depends_on_its_index_alone():
    some, generator = parameters(sr=True, uniform=True), GENERATORS["pairs"]
    whole = generator.generate(some, KEY, np.arange(8), np.zeros(8, np.int64))
    backwards = generator.generate(some, KEY, np.arange(7, -1, -1), np.zeros(8, np.int64))
    hashes = [formula_of(whole, i).gbdhash for i in range(8)]
    assert hashes == [formula_of(backwards, 7 - i).gbdhash for i in range(8)]
    assert len(set(hashes)) == 8
    assert generator.check(some, whole) == []
    assert all(generator.statistics(some, whole)["clauses"] >= 1)


def test_a_longer_sequence_begins_with_the_shorter_one():
    draws = (
        lambda ratio: draw_mixed(KEY, 3, 1, (5, 12), (ratio, ratio)),
        lambda ratio: draw_uniform(KEY, 3, 1, (5, 12), (ratio, ratio), 3),
        lambda ratio: draw_community(KEY, 3, 1, (12, 20), (3, 4), (ratio, ratio), (0.2, 0.8), 3),
    )
    for draw in draws:
        (n, literals, ptr), (again, more, further) = draw(3.0), draw(6.0)
        assert n == again
        assert further[: len(ptr)].tolist() == ptr.tolist()
        assert more[: len(literals)].tolist() == literals.tolist()


def test_lengths_of_mixed_clauses():
    _, literals, ptr = draw_mixed(KEY, 0, 0, (60, 60), (300.0, 300.0))
    lengths = np.diff(ptr)
    assert lengths.min() == 2
    assert lengths.mean() == pytest.approx(1 + 0.7 + 1 / 0.4, abs=0.06)
    assert (lengths == 2).mean() == pytest.approx(0.3 * 0.4, abs=0.01)
    assert (lengths == 3).mean() == pytest.approx(0.7 * 0.4 + 0.3 * 0.6 * 0.4, abs=0.015)
    assert (literals > 0).mean() == pytest.approx(0.5, abs=0.01)
    for clause in itertools.islice(Cnf(60, literals, ptr).clauses(), 200):
        assert len(set(map(abs, clause))) == len(clause)
    assert np.diff(draw_mixed(KEY, 0, 0, (3, 3), (50.0, 50.0))[2]).max() == 3


@settings(deadline=None, max_examples=150)
@given(FORMULAS)
def test_answers_agree_with_enumeration(clauses):
    cnf = Cnf.from_clauses(clauses, 5)
    fewest = min(violated(clauses, values) for values in assignments(5))
    assert is_satisfiable(cnf) == (fewest == 0)
    last = clauses_until_unsatisfiable(cnf)
    if fewest == 0:
        assert last is None
    else:
        assert not satisfiable(clauses[:last], 5)
        assert satisfiable(clauses[: last - 1], 5)
    if fewest > 1:
        with pytest.raises(SolverError, match="two clauses or more"):
            first_best_assignment(cnf)
        return
    model, count = first_best_assignment(cnf)
    assert count == fewest
    assert tuple(model.tolist()) == next(values for values in assignments(5) if violated(clauses, values) == fewest)


@settings(deadline=None, max_examples=150)
@given(FORMULAS)
def test_another_solver_gives_models_and_proofs_that_hold(clauses):
    cnf = Cnf.from_clauses(clauses, 5)
    model, proof = decide(cnf)
    claim = satisfiable(clauses, 5)
    assert (model is not None) == claim
    assert cnf.is_satisfied_by(model) if claim else check_proof(cnf, proof) is None
    assert contradiction(cnf, claim) is None
    assert "another solver finds it" in contradiction(cnf, not claim)


@settings(deadline=None, max_examples=300)
@given(FORMULAS, st.lists(st.lists(st.integers(-5, 5).filter(bool), max_size=3), max_size=8))
@pytest.mark.thorough
def test_no_steps_prove_that_a_satisfiable_formula_is_not(clauses, steps):
    fault = check_proof(Cnf.from_clauses(clauses, 5), steps)
    if fault is None:
        assert not satisfiable(clauses, 5)


def test_faults_of_proofs_are_named():
    square = [[1, 2], [-1, 2], [1, -2], [-1, -2]]
    cnf = Cnf.from_clauses(square)
    assert check_proof(cnf, [[2], []]) is None
    assert check_proof(cnf, [[2]]) is None
    assert check_proof(cnf, []) == "the 0 steps of the proof hold, but do not lead to a contradiction"
    assert check_proof(cnf, [[]]) == "step 0 of the proof, [], does not follow"
    assert check_proof(Cnf.from_clauses(square[:3]), [[2], [1], []]) == "step 2 of the proof, [], does not follow"
    assert check_proof(cnf, [[3]]) == "the proof has the variable 3, but the formula has 2"
    assert check_proof(Cnf.from_clauses([[1], [-1]]), []) is None
    assert check_proof(Cnf.from_clauses([[]]), []) is None


def drawn(split: str = "val", count: int = 12, task: str = "assignment"):
    card = graphbench.card(f"sat/pairs_sr:{task}")
    return draw_samples(card.graphs, split, np.arange(count))


@pytest.mark.thorough
def test_labels_say_which_formulas_are_satisfiable_and_what_is_best():
    samples = drawn()
    status, best = LABELLERS["status"], LABELLERS["assignment"]
    effort = NoEffort()
    claims = []
    for i in range(len(samples)):
        graph = draw_samples(graphbench.card("sat/pairs_sr:status").graphs, "val", np.array([i]))
        cnf = formula_of(graph)
        label = status.label(effort, i, graph)
        assert status.check(graph, label) == []
        assert "another solver" in status.check(graph, {"satisfiable": 1 - label["satisfiable"]})[0]
        claims.append(label["satisfiable"])
        solution = best.label(effort, i, graph)
        assert best.check(graph, solution) == []
        assert solution["assignment_value"] == cnf.num_clauses - 1 + label["satisfiable"]
        for change in (-1, 1):
            wrong = {**solution, "assignment_value": solution["assignment_value"] + change}
            assert best.check(graph, wrong)
        none = {**solution, "assignment": np.zeros_like(solution["assignment"])}
        assert "but the assignment satisfies" in best.check(graph, none)[0] or not solution["assignment"].any()
    assert claims[::2] != claims[1::2]
    assert [a + b for a, b in zip(claims[::2], claims[1::2], strict=True)] == [1] * 6
    floors = best.baselines(samples)
    assert (floors["greedy"] >= floors["random"]).mean() > 0.9


def graph_of(clauses, n: int) -> Data:
    """Return the variable-clause graph of clauses with its edges in random order."""
    rows = [(abs(literal) - 1, n + j, literal < 0) for j, clause in enumerate(clauses) for literal in clause]
    order = np.random.default_rng(len(rows)).permutation(2 * len(rows))
    arcs = np.array([arc for v, c, _ in rows for arc in ((v, c), (c, v))])[order]
    negated = np.repeat([sign for _, _, sign in rows], 2)[order]
    return Data(
        edge_index=torch.from_numpy(arcs.T.copy()),
        negated=torch.from_numpy(negated.astype(np.float32)),
        is_clause=torch.from_numpy((np.arange(n + len(clauses)) >= n).astype(np.float32)),
        num_nodes=n + len(clauses),
    )


@settings(deadline=None, max_examples=60)
@given(st.lists(FORMULAS, min_size=1, max_size=4), st.integers(0, 1000))
def test_solutions_of_a_batch(formulas, number):
    graphs = [graph_of(clauses, 5) for clauses in formulas]
    rng = np.random.default_rng(number)
    scores = [rng.normal(size=graph.num_nodes) for graph in graphs]
    batch = Batch.from_data_list(graphs)
    plain = decode("sat.assignment", batch, scores)
    expected = [
        len(clauses) - violated(clauses, (row[:5] > 0).tolist()) for clauses, row in zip(formulas, scores, strict=True)
    ]
    assert plain.values.tolist() == expected
    walked = decode("sat.assignment", batch, scores, flips=30)
    assert (walked.values >= plain.values).all()
    for i, graph in enumerate(graphs):  # alone as in a batch
        alone = decode("sat.assignment", graph, scores[i], flips=30)
        assert alone.nodes.tolist() == walked.per_graph()[i].tolist()
    problem = PROBLEMS["assignment"]
    checked = problem.checked(
        batch.ptr.numpy(), batch.edge_index.numpy(), {n: batch[n].numpy() for n in ("is_clause", "negated")}
    )
    greedy = satisfied_clauses(checked, problem.search("greedy", {})(checked, 0))
    for clauses, value in zip(formulas, greedy.tolist(), strict=True):
        assert value >= np.mean([len(clauses) - violated(clauses, values) for values in assignments(5)]) - 1e-9
    if all(min(violated(c, values) for values in assignments(5)) <= 1 for c in formulas):
        solved = satisfied_clauses(checked, problem.search("solver", {})(checked, 0))
        walks = satisfied_clauses(checked, problem.search("walksat", {"flips": 2000})(checked, 0))
        assert solved.tolist() == walks.tolist()
        assert solved.tolist() == [len(c) - min(violated(c, v) for v in assignments(5)) for c in formulas]


def test_faults_of_graphs_and_solutions_are_named():
    good = graph_of([[1, -2], [2, 3]], 3)
    evaluator = SolutionEvaluator("sat.assignment")
    assert evaluator.evaluate(good, np.array([1, 1, 0, 0, 0]))["satisfied_clauses"] == 2
    with pytest.raises(DecodingError, match="node 3 of graph 0 has the value 1, but it is a clause, which has 0"):
        evaluator.evaluate(good, np.array([1, 1, 0, 1, 0]))
    with pytest.raises(DecodingError, match="node 0 of graph 0 has the value 2, but it is a variable"):
        evaluator.evaluate(good, np.array([2, 1, 0, 0, 0]))
    with pytest.raises(DecodingError, match=r"the solution is int64 \[3\]"):
        evaluator.evaluate(good, np.array([1, 1, 0]))
    with pytest.raises(DecodingError, match=r"give \[5\], one row per node"):
        decode("sat.assignment", good, np.zeros((5, 2)))
    with pytest.raises(DecodingError, match="score of node 1 of graph 0 is nan"):
        decode("sat.assignment", good, np.array([0, np.nan, 0, 0, 0]))
    for options, wanted in (
        ({"flips": -1}, "whole number"),
        ({"flips": 10**11}, "to 100,000,000"),
        ({"noise": 2}, "from 0 to 1"),
        ({"flips": True}, "whole"),
    ):
        with pytest.raises(DecodingError, match=wanted):
            decode("sat.assignment", good, np.zeros(5), **options)
    lacking = good.clone()
    del lacking.negated
    with pytest.raises(DecodingError, match="no negated"):
        decode("sat.assignment", lacking, np.zeros(5))
    joined = good.clone()
    joined.is_clause = torch.zeros(5)
    with pytest.raises(DecodingError, match="joins two variables"):
        decode("sat.assignment", joined, np.zeros(5))
    one_way = good.clone()
    keep = good.is_clause[good.edge_index[1]] > 0
    one_way.edge_index, one_way.negated = good.edge_index[:, keep], good.negated[keep]
    with pytest.raises(DecodingError, match="no reverse"):
        decode("sat.assignment", one_way, np.zeros(5))
    outside = good.clone()
    outside.edge_index = good.edge_index + 3
    with pytest.raises(DecodingError, match="beyond the 5"):
        decode("sat.assignment", outside, np.zeros(5))


def test_the_loss_without_targets_is_minus_the_expected_number_of_clauses():
    formulas = [[[1, -2, 3], [2, -3], [-1], [1, 2]], [[1, 2], [-1, -2]]]
    batch = Batch.from_data_list([graph_of(clauses, 3) for clauses in formulas])
    scores = torch.randn(batch.num_nodes, generator=torch.Generator().manual_seed(0), requires_grad=True)
    loss = clauses_loss(scores, batch)
    expected = 0.0
    for g, clauses in enumerate(formulas):
        p = torch.sigmoid(scores[batch.ptr[g] : batch.ptr[g] + 3]).tolist()
        for values in assignments(3):
            chance = np.prod([p[i] if value else 1 - p[i] for i, value in enumerate(values)])
            expected += chance * (len(clauses) - violated(clauses, values))
    assert float(loss.detach()) == pytest.approx(-expected / 2, rel=1e-5)
    loss.backward()
    assert torch.isfinite(scores.grad).all()
    assert (scores.grad[batch.is_clause > 0] == 0).all()
    extreme = clauses_loss(torch.full((batch.num_nodes,), 200.0), batch)
    assert float(extreme) == pytest.approx(-(3 + 1) / 2)
    plain = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
    with pytest.raises(ConfigError, match="is_clause"):
        clauses_loss(torch.zeros(2), plain)


def test_the_share_of_formulas_solved_has_replicates():
    graphs = [graph_of([[1, -2], [2], [-1, 2]], 2) for _ in range(40)]
    for graph in graphs:
        graph.assignment_value = torch.tensor([3.0])
    evaluator = graphbench.Evaluator("sat/pairs_sr:assignment")
    solutions = [np.array([i % 4 > 0, i % 4 > 0, 0, 0, 0]) for i in range(40)]
    evaluator.draw_replicates(0)
    evaluator.update(Batch.from_data_list(graphs), solutions)
    score = evaluator.compute()
    assert score["matched"] == 0.75
    replicates = np.array(score.replicates)
    assert replicates.mean() == pytest.approx(0.75, abs=0.03)
    assert replicates.std() == pytest.approx(np.sqrt(0.75 * 0.25 / 40), rel=0.3)


def test_rules_are_searches_that_do_not_depend_on_the_seed():
    rng = np.random.default_rng(0)
    signs = rng.choice([-1, 1], size=(3, 100, 3))
    drawn = [[(rng.permutation(30)[:3] + 1).tolist() for _ in range(100)] for _ in range(3)]
    formulas = [(np.array(clauses) * sign).tolist() for clauses, sign in zip(drawn, signs, strict=True)]
    batch = Batch.from_data_list([graph_of(clauses, 30) for clauses in formulas])
    problem = PROBLEMS["assignment"]
    checked = problem.checked(
        batch.ptr.numpy(), batch.edge_index.numpy(), {n: batch[n].numpy() for n in ("is_clause", "negated")}
    )
    searches = {name: problem.search(name, {}) for name in problem.searches}
    same = {name for name, search in searches.items() if np.array_equal(*(search(checked, seed) for seed in (0, 1)))}
    assert same == problem.rules == {"greedy", "solver"}
    with pytest.raises(ConfigError, match=r"the problem sat\.assignment has no search 'gredy', which its rules name"):
        replace(problem, rules=frozenset({"gredy"}))


@pytest.mark.parametrize("method", ["greedy", "walksat", "solver"])
def test_searches_are_configurations(method, tmp_path):
    path = tmp_path / "search.yaml"
    path.write_text(f"model: {{kind: search, method: {method}}}\n")
    result = graphbench.train(
        "sat/pairs_sr:assignment",
        model=path,
        output=tmp_path / "run",
        root=tmp_path / "data",
        limit=40,
        evaluate="test",
        progress=False,
    )
    scores = result.record.scores["test"]
    assert scores["matched"] == 1.0 if method != "greedy" else scores["matched"] < 0.5
    assert 0.9 < scores["ratio"] <= 1.0
    assert len(result.record.replicates["test"]) > 0
