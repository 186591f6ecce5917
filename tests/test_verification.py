"""`graphbench verify` passes on sound datasets and notices every kind of damage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import graphbench
from graphbench.catalog.cards import Measured
from graphbench.catalog.names import catalog
from graphbench.core.errors import CardError, GenerationError, VerificationError
from graphbench.data.arrays.hashing import samples_hash
from graphbench.data.arrays.samples import Samples
from graphbench.data.build.generation import draw_samples, ensure_split
from graphbench.data.components.domain import find
from graphbench.data.store.files import map_arrays, write_arrays
from graphbench.data.store.layout import Manifest
from graphbench.domains.algoreas import generators
from graphbench.testing import check_dataset
from graphbench.verification import check_card, verify
from graphbench.verification.measuring import arrays_hash, measure

EASY = [id_ for id_ in graphbench.list_datasets("algoreas/*_easy")]


@pytest.mark.parametrize(
    "dataset", [pytest.param(id_, marks=pytest.mark.slow) if "clique" in id_ else id_ for id_ in EASY]
)
def test_shipped_dataset_passes(dataset, tmp_path):
    splits = ("train", "val", "test")
    outcome = verify(dataset, root=tmp_path, samples=12, splits=splits, progress=False)
    assert outcome.passed, outcome.failures
    assert {row.split for row in outcome.rows} >= set(splits)


DRAWN = [id_ for id_ in graphbench.list_datasets() if find("generator", graphbench.card(id_).generator).drawn]
"""Datasets that are not read from files alone."""

LONG = {
    "weather/sim_64x32",
    "weather/sim_t21",
    "sat/small",
    "sat/medium",
    "sat/large",
    "sat/paper_small",
    "circuits/converters_10",
} | {
    f"social/sim_{form}"
    for kind in ("quotes", "replies", "reposts")
    for form in (kind, f"{kind}_past", f"links_{kind}")
}
"""Datasets whose first samples take more than a quarter of a minute to draw."""


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("dataset", DRAWN)
def test_shipped_dataset_passes_in_full(dataset, tmp_path, needs_installed):
    with needs_installed():
        check_dataset(dataset, root=tmp_path)


@pytest.mark.parametrize(
    "dataset",
    [pytest.param(id_, marks=pytest.mark.slow) if id_ in LONG else id_ for id_ in DRAWN if id_ != "circuits/design_5"]
    + [pytest.param("circuits/design_5", marks=pytest.mark.thorough)],
)
def test_first_samples_are_the_cards(dataset, needs_installed):
    card = graphbench.card(dataset).graphs
    assert card.measured is not None, f"run: graphbench verify {dataset} --update"
    for split in ("train", "val"):
        with needs_installed():
            drawn = draw_samples(card, split, range(min(64, card.split(split).count)))
        assert arrays_hash(drawn) == card.measured.first_samples[split]


def with_generator(monkeypatch, name, generate):
    """Replace a registered generator's function for one test."""
    changed = {**generators.GENERATORS, name: replace(generators.GENERATORS[name], generate=generate)}
    monkeypatch.setattr(generators, "GENERATORS", changed)


def failed_checks(dataset, root, splits=("val",)):
    return {row.check for row in verify(dataset, root=root, samples=10, splits=splits, progress=False).failures}


def test_a_wrong_label_is_found(monkeypatch, tmp_path):
    original = generators.GENERATORS["mst"].generate

    def spoiled(*arguments):
        samples = original(*arguments)
        samples.values["in_tree"][0] ^= 1
        return samples

    with_generator(monkeypatch, "mst", spoiled)
    assert failed_checks("mst_easy", tmp_path) == {"first samples", "structure and labels"}
    with pytest.raises(VerificationError, match="in_tree is wrong"):
        check_dataset("mst_easy", root=tmp_path, samples=5)


@pytest.mark.parametrize("dataset", EASY)
def test_every_label_check_can_fail(dataset):
    """Flip or shift the label of one graph: the check names this graph and no other."""
    card = graphbench.card(dataset)
    generator = generators.GENERATORS[card.generator.split(".")[1]]
    parameters = generator.parse(card, "val")
    samples = draw_samples(card, "val", range(6))
    assert generator.check(parameters, samples) == []
    name = card.outputs[0].name
    label = samples.values[name].copy()
    rows = len(label) // 6 if card.outputs[0].location != "edge" else int(samples.edge_ptr[2])
    at = rows * 2 if card.outputs[0].location != "edge" else rows
    label[at] = label[at] ^ 1 if label.dtype == np.uint8 else label[at] + 0.25
    problems = generator.check(
        parameters, Samples(samples.num_nodes, samples.num_edges, samples.edges, {**samples.values, name: label})
    )
    assert len(problems) == 1
    assert problems[0].startswith("graph 2:")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda edges: edges[::-1], "not sorted"),
        (lambda edges: np.vstack([edges[:-1], edges[-2:-1]]), "not sorted"),
        (lambda edges: edges[:, ::-1], "not sorted|u < v"),
        (lambda edges: np.where(edges == 15, 14, edges), "not sorted|u < v|not connected"),
        (lambda edges: np.where(edges == 15, 16, edges), "out of range"),
    ],
)
def test_broken_structure_is_found(damage, words):
    card = graphbench.card("bridges_easy")
    generator = generators.GENERATORS["bridges"]
    one = draw_samples(card, "val", [0])
    broken = Samples(one.num_nodes, one.num_edges, np.ascontiguousarray(damage(one.edges)), one.values)
    problems = generator.check(generator.parse(card, "val"), broken)
    assert len(problems) == 1
    import re

    assert re.search(words, problems[0])


def test_shifted_statistics_and_bytes_are_found(monkeypatch, tmp_path):
    card = graphbench.card("mst_easy")
    measured = card.measured
    assert isinstance(measured, Measured)
    mean, deviation = measured.statistics["val"]["edges"]
    shifted = {**measured.statistics, "val": {**measured.statistics["val"], "edges": (mean * 1.05, deviation)}}
    changed = card.model_copy(update={"measured": measured.model_copy(update={"statistics": shifted})})
    monkeypatch.setitem(catalog().cards, card.id, changed)
    assert failed_checks("mst_easy", tmp_path) == {"statistics"}


@pytest.mark.parametrize("part", ["check", "statistics", "hold_outs"])
def test_an_error_in_a_function_of_the_domain_is_a_failed_row(part, monkeypatch, tmp_path):
    def fail(*arguments):
        raise IndexError("index 20 is out of bounds")

    changed = {**generators.GENERATORS, "mst": replace(generators.GENERATORS["mst"], **{part: fail})}
    monkeypatch.setattr(generators, "GENERATORS", changed)
    outcome = verify("algoreas/mst_easy", root=tmp_path, samples=4, splits=("val",), progress=False)
    (row,) = outcome.failures
    what = {"statistics": "statistics of algoreas.mst", "check": "check of algoreas.mst"}
    words = what.get(part, "hold-out check of algoreas.mst")
    assert row.detail == f"the {words} raised IndexError: index 20 is out of bounds"


def test_a_generator_of_too_few_graphs_is_named(monkeypatch, tmp_path):
    real = generators.GENERATORS["mst"].generate
    with_generator(monkeypatch, "mst", lambda parameters, key, i, a: real(parameters, key, i[1:], a[1:]))
    with pytest.raises(GenerationError, match=r"algoreas\.mst returned wrong graphs:.*64 graphs"):
        verify("algoreas/mst_easy", root=tmp_path, samples=4, splits=("val",), progress=False)


def test_leakage_between_splits_is_found(monkeypatch, tmp_path):
    original = generators.GENERATORS["bridges"].generate

    def same_for_all_splits(parameters, key, indices, attempts):
        return original(parameters, np.uint64(7), indices, attempts)

    with_generator(monkeypatch, "bridges", same_for_all_splits)
    outcome = verify("bridges_easy", root=tmp_path, samples=4, splits=("train", "val"), progress=False)
    leaks = [row for row in outcome.rows if row.check == "leakage"]
    assert len(leaks) == 1 and not leaks[0].passed and "10000 graphs in common" in leaks[0].detail


def test_a_spoiled_graph_of_a_file_with_a_right_checksum_is_found(tmp_path):
    """As of a build that went on with a damaged shard: graph 50 is wrong, though the manifest agrees with the file."""
    card = graphbench.card("mst_easy")
    path = ensure_split(card, "val", tmp_path, 100, workers=1)
    assert failed_checks("mst_easy", tmp_path) == set()
    arrays = {name: np.array(array) for name, array in map_arrays(path).items()}
    arrays["weight"][arrays["edge_ptr"][50]] += 0.25
    write_arrays(path, arrays)
    manifest = Manifest(path.parent)
    manifest.add_file(path.name, {**manifest.entry(path.name), "content": samples_hash(arrays)}, {})
    (failure,) = verify("mst_easy", root=tmp_path, samples=1, splits=("val",), progress=False).failures
    assert failure.check == "stored file"
    assert failure.detail == f"stored graph 50 is not the card's graph; delete {path} and it will be rebuilt"


def test_redrawn_graphs_among_the_first_are_no_damage(make_card, tmp_path, monkeypatch):
    card = make_card(200, {"nodes": 5, "models": {"er": {"p": 0.5}}})
    monkeypatch.setitem(catalog().cards, card.id, card)
    monkeypatch.setitem(catalog().aliases, "toy", card.id)
    path = ensure_split(card, "train", tmp_path, workers=1)
    redrawn = Manifest(path.parent).entry(path.name)["redrawn"]
    assert redrawn > 10
    rows = verify("toy", root=tmp_path, splits=("train",), samples=5, progress=False).rows
    assert next(row for row in rows if row.check == "stored file").passed


def test_stored_first_graphs_are_compared_with_the_card(monkeypatch, tmp_path):
    card = graphbench.card("mst_easy")
    ensure_split(card, "val", tmp_path, 64, workers=1)
    other = {**card.measured.first_samples, "val": "0" * 64}
    changed = card.model_copy(update={"measured": card.measured.model_copy(update={"first_samples": other})})
    monkeypatch.setitem(catalog().cards, card.id, changed)
    failures = verify("mst_easy", root=tmp_path, samples=1, splits=("val",), progress=False).failures
    assert {failure.check for failure in failures} == {"first samples", "stored file"}
    assert "the first 64 stored graphs differ from the graphs of the card" in failures[1].detail


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"metrics": {"primary": "f11"}}, "metric 'f11'.*'f1'"),
        ({"metrics": {"primary": "f1", "also": ["mae"]}}, "metric 'mae' cannot score 'in_tree'"),
        ({"directed": True}, "directed is true, but algoreas.mst.*false"),
        (
            {"generator": "algoreas.topological_sort", "metrics": {"primary": "f1"}},
            "directed is false, but algoreas.topological_sort.*true",
        ),
        ({"generator": "algoreas.mtsp"}, "generator 'algoreas.mtsp' does not exist"),
        ({"parameters": {"nodes": 8}}, "the key 'models' is missing"),
    ],
)
def test_a_card_that_does_not_fit_its_generator_or_metrics_is_found(make_card, changes, words):
    check_card(make_card())
    parameters = changes.pop("parameters", None)
    card = make_card(**changes)
    if parameters is not None:
        splits = {name: spec.model_copy(update={"parameters": parameters}) for name, spec in card.splits.items()}
        card = card.model_copy(update={"splits": splits})
    with pytest.raises(CardError, match=words):
        check_card(card)


def test_verify_reports_a_card_that_does_not_fit(make_card, monkeypatch, tmp_path):
    card = make_card(directed=True, metrics={"primary": "f1"})
    monkeypatch.setitem(catalog().cards, card.id, card)
    rows = verify(card.id, root=tmp_path, splits=("val",), samples=2, progress=False).rows
    assert [row.check for row in rows if not row.passed] == ["card"]


@pytest.mark.parametrize("dataset", graphbench.list_datasets())
def test_shipped_cards_fit_their_generators_and_metrics(dataset):
    check_card(graphbench.card(dataset))


def test_measuring_gives_what_is_committed():
    """The committed facts come from the code as it is (one small dataset; the rest by `verify`)."""
    card = graphbench.card("flow_hard")
    found = measure(card, progress=False)
    assert found.first_samples == card.measured.first_samples
    for split, values in card.measured.statistics.items():
        for name, (mean, deviation) in values.items():
            assert found.statistics[split][name] == pytest.approx((mean, deviation), rel=1e-5)
    for split, predictors in card.measured.floor.items():
        for predictor, scores in predictors.items():
            assert found.floor[split][predictor] == pytest.approx(scores, rel=1e-5, abs=1e-6)
