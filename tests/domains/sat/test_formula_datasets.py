"""Datasets of formulas: what the generator draws, preprocessing, labels of solvers, features and representations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphbench
from graphbench.catalog.names import catalog
from graphbench.core.errors import CardError, GenerationError, SolverError
from graphbench.data.arrays.samples import Samples
from graphbench.data.build.generation import draw_samples
from graphbench.data.components.domain import find
from graphbench.data.store.shards import stored_samples
from graphbench.domains.sat import Cnf, graph
from graphbench.domains.sat.feature_groups import FEATURE_GROUPS, SOLVED, features
from graphbench.domains.sat.feature_labellers import columns_of
from graphbench.domains.sat.formulas import formula_of, formulas_as_samples
from graphbench.domains.sat.generators import FAMILIES, GENERATORS, SatParameters, draw_sample
from graphbench.domains.sat.labellers import LABELLERS, SolverEffort
from graphbench.domains.sat.preprocessing import is_decided, preprocess
from graphbench.domains.sat.representations import REPRESENTATIONS
from graphbench.domains.sat.solvers import SOLVERS

pytest.importorskip("pysat")
GENERATOR = GENERATORS["formulas"]
KEY = np.uint64(5)
FAMILY_PARAMETERS = {
    "uniform": {"share": 3, "variables": [20, 40], "ratio": [3.0, 4.5]},
    "coloring": {"share": 1, "nodes": [8, 12], "ratio": [1.8, 2.4], "colors": 3},
}


def parameters(**changes) -> SatParameters:
    return SatParameters.model_validate({"families": FAMILY_PARAMETERS, **changes})


def drawn(some: SatParameters, indices) -> Samples:
    chosen = np.asarray(indices)
    return GENERATOR.generate(some, KEY, chosen, np.zeros_like(chosen))


def is_satisfiable(cnf: Cnf) -> bool:
    models = itertools.product([False, True], repeat=cnf.num_variables)
    return any(cnf.is_satisfied_by(np.array(model)) for model in models)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.lists(st.integers(1, 8).flatmap(lambda v: st.sampled_from([v, -v])), min_size=1, max_size=4), max_size=30
    )
)
def test_preprocessing_keeps_satisfiability(clauses):
    cnf = Cnf.from_clauses(clauses, 8)
    simpler = preprocess(cnf)
    assert is_satisfiable(simpler) == is_satisfiable(cnf)
    assert list(simpler.canonical().without_unused_variables().clauses()) == list(simpler.clauses())
    if is_decided(simpler):
        assert simpler.num_clauses == (0 if is_satisfiable(cnf) else 1)


def test_preprocessing_of_an_empty_clause():
    assert is_decided(preprocess(Cnf.from_clauses([[1, 2], []])))


def test_a_sample_depends_on_its_index_alone():
    some = parameters()
    whole, backwards = drawn(some, range(8)), drawn(some, range(7, -1, -1))
    for i in range(8):
        one, other = formula_of(whole, i), formula_of(backwards, 7 - i)
        assert one.gbdhash == other.gbdhash == formula_of(drawn(some, [i])).gbdhash
    assert len({formula_of(whole, i).gbdhash for i in range(8)}) == 8
    assert GENERATOR.check(some, whole) == []


def test_families_have_their_shares_and_limits_hold():
    some = parameters(variables=[20, 34], clauses=[60, 150])
    samples = drawn(some, range(80))
    families = [FAMILIES[number] for number in samples.values["family"].tolist()]
    assert set(families) == {"uniform", "coloring"} and 45 <= families.count("uniform") <= 72
    sizes = [formula_of(samples, i) for i in range(80)]
    assert all(20 <= cnf.num_variables <= 34 and 60 <= cnf.num_clauses <= 150 for cnf in sizes)
    assert GENERATOR.check(some, samples) == []
    assert GENERATOR.check(parameters(variables=[20, 24]), samples) != []
    statistics = GENERATOR.statistics(some, samples)
    assert statistics["ratio"].tolist() == [cnf.num_clauses / cnf.num_variables for cnf in sizes]


def test_formulas_without_preprocessing_are_those_of_the_family():
    family, cnf = draw_sample(parameters(preprocess=False), KEY, 3, 0)
    assert (family == "uniform") == bool((cnf.lengths == 3).all())
    assert not is_decided(cnf)


def test_limits_that_no_formula_meets_are_an_error(monkeypatch):
    from graphbench.domains.sat import generators

    monkeypatch.setattr(generators, "_MAX_TRIES", 8)
    with pytest.raises(GenerationError, match=r"8 formulas.*variables \[1000, 2000\]"):
        draw_sample(
            SatParameters(families={"uniform": FAMILY_PARAMETERS["uniform"]}, variables=[1000, 2000]), KEY, 0, 0
        )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"families": {"unifrom": {"share": 1}}}, "unifrom"),
        ({"families": {"uniform": {"variables": [1, 2]}}}, "give its share and its parameters"),
        ({"families": {"uniform": {"share": 0, "variables": [9, 9], "ratio": [1, 2]}}}, "share"),
        ({"families": {}}, "families"),
        ({"variables": [9, 3]}, r"variables \[9, 3\] is empty"),
        ({"clauses": [9, 3]}, r"clauses \[9, 3\] is empty"),
        ({"colour": 1}, "colour"),
    ],
)
def test_wrong_parameters_are_refused(changes, message):
    card = catalog().card("sat/small").model_copy(deep=True)
    spec = card.splits["train"].parameters
    spec.clear()
    spec.update({"families": FAMILY_PARAMETERS, **changes})
    with pytest.raises(CardError, match=message):
        GENERATOR.parse(card, "train")


def test_the_views_are_the_graphs_of_the_formulas():
    samples = drawn(parameters(), range(5))
    for kind, representation in REPRESENTATIONS.items():
        found = representation.derive(samples)
        for i in range(5):
            expected = graph(formula_of(samples, i), kind, **({"link_literals": True} if kind == "lcg" else {}))
            rows = slice(int(found.edge_ptr[i]), int(found.edge_ptr[i + 1]))
            assert found.num_nodes[i] == expected.num_nodes
            assert np.array_equal(found.edges[rows], expected.edges)
            nodes = slice(int(found.node_ptr[i]), int(found.node_ptr[i + 1]))
            counts = np.expm1(found.values["occurrences"][nodes])
            assert counts == pytest.approx(expected.node_arrays["occurrences"], abs=1e-4)
            if kind == "vcg":
                assert np.array_equal(found.values["negated"][rows], expected.edge_arrays["polarity"] < 0)
            elif kind == "lcg":
                assert np.array_equal(found.values["link"][rows], expected.edge_arrays["link"])
            else:
                assert np.expm1(found.values["shared"][rows]) == pytest.approx(expected.edge_arrays["count"], abs=1e-4)


@pytest.mark.parametrize("name", ["structure", "probes"])
def test_labels_of_features_are_the_features(name):
    samples = drawn(parameters(), range(3))
    labeller = find("labeller", f"sat.{name}")
    groups = [group for group in FEATURE_GROUPS if set(FEATURE_GROUPS[group]) <= set(labelled_columns(name))]
    for i in range(3):
        one = formulas_as_samples([formula_of(samples, i)], np.zeros(1))
        values = labeller.label(labeller.effort(), 0, one)
        expected = features(formula_of(samples, i), groups)
        assert values[name].tolist() == pytest.approx([expected[column] for column in labelled_columns(name)], rel=1e-6)
        assert labeller.check(one, values) == []
        damaged = {**values, name: values[name] + 1}
        assert labeller.check(one, damaged) != []
    with pytest.raises(SolverError, match=r"measured by solvers of python-sat 0\.0"):
        labeller.label(labeller.effort(solver_version="0.0"), 0, one)


def labelled_columns(name):
    groups = find("labeller", f"sat.{name}").label.args[1]
    return columns_of(groups)


def test_features_of_both_labellers_are_all_features():
    columns = labelled_columns("structure") + labelled_columns("probes")
    assert sorted(columns) == sorted(name for names in FEATURE_GROUPS.values() for name in names)
    assert not any(name.startswith(SOLVED) for name in labelled_columns("structure"))
    card = catalog().card("sat/small")
    widths = {f.name: f.width for spec in card.labels.values() for f in spec.features}
    assert (widths["structure"], widths["probes"]) == tuple(len(labelled_columns(n)) for n in ("structure", "probes"))


# ---------------------------------------------------------------------------------------------- labels of solvers


def outcome(solver, status, seconds, cutoff=2.0):
    effort = SolverEffort(cutoff=cutoff, solver_version="1")
    return LABELLERS[solver].recorded.label(
        effort, {"status": status, "nanoseconds": round(seconds * 1e9), "cpu_microseconds": 0}
    )


def test_labels_of_a_solver_follow_from_its_run():
    solved, unsolved = outcome("kissat", 1, 0.25), outcome("kissat", 2, 2.0)
    assert solved == {
        "kissat_status": 1,
        "kissat_seconds": pytest.approx(0.25),
        "kissat_par10": pytest.approx(0.25),
        "kissat_log_par10": pytest.approx(math.log10(0.25)),
    }
    assert (unsolved["kissat_seconds"], unsolved["kissat_par10"]) == (2.0, 20.0)
    assert unsolved["kissat_log_par10"] == pytest.approx(math.log10(20))
    check = LABELLERS["kissat"].check
    assert check(None, solved) == check(None, unsolved) == []
    for wrong in ({"kissat_status": 3}, {"kissat_seconds": 0.0}, {"kissat_par10": 1.0}, {"kissat_log_par10": 0.0}):
        assert check(None, {**solved, **wrong}) != []


def test_contradicting_solvers_are_found():
    agreement = LABELLERS["kissat"].agreement
    values = {f"{name}_status": np.array([0, 1, 2]) for name in SOLVERS}
    assert agreement(values) == []
    values["ergo_status"] = np.array([0, 0, 1])
    (problem,) = agreement(values)
    assert problem.startswith("formula 1: kissat says unsat") and "ergo says sat" in problem


def test_another_version_of_a_solver_is_refused():
    samples = formulas_as_samples([Cnf.from_clauses([[1]])], np.zeros(1))
    effort = SolverEffort(cutoff=1.0, solver_version="0.9")
    with pytest.raises(SolverError, match=r"minisat22 0\.9.*installed"):
        LABELLERS["minisat22"].recorded.measure(effort, 0, samples)


def test_the_seconds_of_an_unsolved_run_are_the_cutoff():
    hard = draw_sample(
        SatParameters(families={"pigeonhole": {"share": 1, "holes": [9, 9]}}, preprocess=False), KEY, 0, 0
    )[1]
    effort = SolverEffort(cutoff=0.02, solver_version=SOLVERS["minisat22"].version)
    found = LABELLERS["minisat22"].recorded.measure(effort, 0, formulas_as_samples([hard], np.zeros(1)))
    assert (found["status"], found["nanoseconds"]) == (2, 20_000_000) and found["cpu_microseconds"] > 0


def test_the_card_draws_and_labels(tmp_path):
    card = catalog().card("sat/small:select")
    assert (
        find("generator", card.generator).check(
            find("generator", card.generator).parse(card, "val"), draw_samples(card.graphs, "val", range(2))
        )
        == []
    )
    splits = graphbench.Loader("sat/small:minisat22@vg", root=tmp_path, limit=2, workers=1, progress=False).load("val")
    data = splits.val[0]
    assert data.y.item() == pytest.approx(math.log10(data.minisat22_par10.item()), abs=1e-4)
    assert data.structure.shape == (1, 77) and data.probes.shape == (1, 61) and data.occurrences.shape[1] == 2


def test_a_view_without_labels(tmp_path):
    options = {"root": tmp_path, "limit": 2, "workers": 1, "progress": False, "unlabelled": "val"}
    stored = graphbench.Loader("sat/small:kissat", **options).load("val").val
    (batch,) = graphbench.Loader("sat/small:kissat@vg", **options).load("val").val.batches(2)
    found = [graph(formula_of(stored_samples(stored.card.graph_schema, stored.path), i), "vg") for i in range(2)]
    assert batch.edge_index.shape[1] == 2 * sum(len(own.edges) for own in found)
    assert "shared" in batch and "kissat_status" not in batch
