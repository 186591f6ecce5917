"""Claims about published tables: every table is there, every row has a check, and the quick checks hold."""

from __future__ import annotations

import importlib
import json
import random
import sys
from copy import deepcopy
from fnmatch import fnmatch
from itertools import combinations
from pathlib import Path
from string import Formatter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score

import graphbench
from graphbench.catalog.resources import baselines_dir, read_yaml
from graphbench.domains.algoreas.checks import Graph

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs" / "_ext")]
model, registry, running, recipe, records, cuts, kinship, clrs_tables, synthesis, arithmetic, structure, cliques = (
    importlib.import_module(f"benchmarks.claims.{name}")
    for name in (
        *("model", "registry", "running", "recipe", "records", "cuts", "kinship", "clrs_tables"),
        *("synthesis", "arithmetic", "structure", "cliques"),
    )
)
claims_text = importlib.import_module("claims_text")

ROWS = model.all_rows()
TABLES = {"graphbench": 27, "clrs": 4, "clrs_text": 1, "clutrr": 11}  # counted in the papers' texts
ENTRIES = running.read_results()
QUICK = sorted(name for name, row in ROWS.items() if not row.slow)
PRESENT = [paper.key for paper in model.papers()]


def test_every_table_of_every_paper_has_rows():
    for paper in model.papers():
        numbers = [table.number for table in paper.tables if table.number > 0]
        assert numbers == list(range(1, TABLES[paper.key] + 1)), paper.key
    assert list(TABLES) == PRESENT


def test_every_check_is_used_and_every_row_has_one():
    checks = registry.checks()
    assert {row.check for row in ROWS.values()} == set(checks)


def test_the_committed_results_are_of_all_rows_and_hold():
    assert set(ENTRIES) == set(ROWS)
    assert not running.failed(ENTRIES)
    assert [name for name, entry in ENTRIES.items() if entry["status"] == "skipped"] == []


@pytest.mark.parametrize("name", sorted(ROWS))
def test_texts_are_filled_in_from_results(name):
    row, values = ROWS[name], ENTRIES[name]["values"]
    for text in (row.printed, row.ours, row.because, row.cost):
        shown = text.format_map(values)
        assert "nan" not in shown.split() and "{" not in shown
    assert row.ours == "" or any(key for _, key, _, _ in Formatter().parse(row.ours)) or row.verdict != "reproduced"


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.thorough
def test_quick_checks_hold_and_find_what_is_committed(name):
    found = running.run_row(ROWS[name])
    if found["status"] == "skipped":
        pytest.skip(found["note"])
    assert found["status"] == "holds", found
    assert_alike(found["values"], ENTRIES[name]["values"])


def assert_alike(found, committed):
    """Values are what is committed, which texts show: numbers to six digits, everything else exactly."""
    assert found.keys() == committed.keys()
    for key, value in committed.items():
        if isinstance(value, dict):
            assert_alike(found[key], value)
        elif isinstance(value, str | bool):
            assert found[key] == value, key
        else:
            assert found[key] == pytest.approx(value, rel=1e-5, abs=1e-6), key


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(ROWS) - set(QUICK)))
def test_slow_checks_hold(name):
    found = running.run_row(ROWS[name])
    if found["status"] == "skipped":
        pytest.skip(found["note"])
    assert found["status"] == "holds", found


# Rows and files


def row_with(**changes):
    return {
        "id": "a",
        "about": "x",
        "verdict": "refuted",
        "printed": "1",
        "ours": "2",
        "because": "y",
        "check": "totals",
    } | changes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"verdict": "wrong"}, "verdict"),
        ({"because": ""}, "says why"),
        ({"ours": ""}, "says what was found"),
        ({"verdict": "open"}, "what an answer would cost"),
        ({"cost": "an hour"}, "what an answer would cost"),
        ({"verdict": "finding"}, "names the datasets"),
        ({"verdict": "finding", "datasets": ["a/*"], "because": ""}, "says why"),
        ({"verdit": "open"}, "verdit"),
        ({"id": "a b"}, "id"),
    ],
)
def test_malformed_rows_are_refused(tmp_path, changes, message):
    content = {
        "title": "T",
        "short": "T",
        "citation": "C",
        "version": "v1",
        "tables": [{"number": 1, "title": "t", "states": "s", "rows": [row_with(**changes)]}],
    }
    path = tmp_path / "paper.yaml"
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        model.read_paper(path)


def test_a_paper_says_which_version_was_read(tmp_path):
    table = {"number": 1, "title": "t", "states": "s", "rows": [row_with()]}
    for version in ({}, {"version": ""}):
        path = tmp_path / "paper.yaml"
        content = {"title": "T", "short": "T", "citation": "C", "tables": [table], **version}
        path.write_text(json.dumps(content), encoding="utf-8")
        with pytest.raises(ValueError, match="version"):
            model.read_paper(path)


def test_versions_of_the_tables_are_those_of_the_published_scores():
    read = {paper.title: paper.version for paper in model.papers()}
    files = sorted((baselines_dir() / "published").rglob("*.yaml"))
    assert files
    for path in files:
        content = read_yaml(path)
        assert content["version"] and read[content["paper"]].startswith(content["version"]), path


def test_a_table_stands_once_and_in_order(tmp_path):
    table = {"number": 2, "title": "t", "states": "s", "rows": [row_with()]}
    for tables in ([table, table], [table, {**table, "number": 1}]):
        path = tmp_path / "paper.yaml"
        heads = {"title": "T", "short": "T", "citation": "C", "version": "v1"}
        path.write_text(json.dumps({**heads, "tables": tables}), encoding="utf-8")
        with pytest.raises(ValueError, match="order of their numbers"):
            model.read_paper(path)


def test_a_check_that_raises_or_lacks_a_value_fails(monkeypatch):
    row = model.Row.model_validate(
        row_with(check="totals", arguments={"parts": {"a": 1}, "printed": 1}, ours="{nothing}")
    )
    assert running.run_row(row)["status"] == "fails"
    assert "nothing" in running.run_row(row)["note"]
    broken = model.Row.model_validate(row_with(check="totals", arguments={"unknown": 1}))
    assert running.run_row(broken)["status"] == "fails"
    absent = model.Row.model_validate(row_with(check="totals", needs=["no_such_package_at_all"]))
    assert running.run_row(absent)["status"] == "skipped"


def test_results_of_other_rows_are_kept_and_old_rows_dropped(tmp_path):
    path = tmp_path / "claims.json"
    held = {"status": "holds", "values": {"x": 1}, "seconds": 0.1, "date": "2026-01-01"}
    running.write_results({"a/1/x": held, "a/1/old": held}, ["a/1/x", "a/1/old"], path)
    running.write_results(
        {"a/1/y": held, "a/1/x": {"status": "skipped", "values": {}, "note": "n"}}, ["a/1/x", "a/1/y"], path
    )
    assert running.read_results(path) == {"a/1/x": held, "a/1/y": held}


def full_records(seeds):
    (small, *_) = [r for r in records._all_records() if (r.dataset, r.model) == ("algoreas/mst_easy", "gin_small")]
    budget = small.budget.model_copy(update={"small": False, "label": "11880 steps of 256 graphs"})
    return [small.model_copy(update={"model": "gin", "seed": seed, "budget": budget}) for seed in seeds]


@pytest.mark.parametrize(("seeds", "open_still"), [((), True), ((0, 1), True), ((0, 0, 0), True), ((0, 1, 2), False)])
def test_a_row_is_open_until_as_many_full_runs_are_recorded_as_the_paper_has(monkeypatch, seeds, open_still):
    found = full_records(seeds)
    monkeypatch.setattr(records, "_all_records", lambda: found)
    row = ROWS["graphbench/16/mst"]
    outcome = registry.checks()[row.check](**row.arguments)
    assert outcome.holds is open_still
    assert ("gin" in outcome.values["full"]) == bool(seeds)


FALSE = [
    ("totals", {"parts": {"a": 1, "b": 2}, "printed": 4}),
    ("overall_averages", {"table": 2, "printed": {"mpnn": 51.06}}),
    (
        "wins_ties_losses",
        {"printed": {"deepsets": "0/3/27", "gat": "1/5/24", "memnet": "4/2/24", "mpnn": "9/2/19", "pgn": "8/6/16"}},
    ),
    ("averages_of_robustness", {"table": 2, "printed": {"bert_mlp": 0.3}, "differing": []}),
    ("order_of_models", {"better": "mlp", "worse": "deepsets", "everywhere": True}),
    ("reduction", {"before": [1.36, 0.05], "after": [1.26, 0.03], "printed_percent": 7.3}),
    ("states_of_years", {"first": "1959-01-01", "last": "2022-12-31", "printed": 93544}),
    ("nodes_of_grid_and_mesh", {"printed": 4611}),
    ("edges_of_grid_and_mesh", {"printed": 29732}),
    ("solver_rows", {"datasets": ["co/ba_small:max_cut"], "agree": True}),
    ("solver_rows", {"datasets": ["co/ba_small:mis"], "agree": False}),
    ("split_shares", {"printed": {"co/rb_small": [80, 10, 10]}}),
    ("counts_on_cards", {"printed": {"co/rb_small": 50001}}),
    ("parameters_on_cards", {"printed": {"co/er_small": {"p": 0.16}}}),
    ("sizes_on_cards", {"printed": {"co/rb_small": [241.0, 9016.1]}, "directions": 1, "graphs": 50000}),
    ("arcs_by_devices", {"printed": {5: 30.0, 7: 38.0, 10: 50.0}}),
    ("degrees_of_one_definition", {"rows": {"a": [10, 30, 3.0], "b": [10, 50, 5.0]}}),
    ("numbers_of_weights", {"printed": [{"dataset": "algoreas/mst_easy", "model": "gin", "million": 2.75}]}),
    (
        "search_space",
        {"space": "sat/gin", "printed": {"training.lr": [1e-5, 0.1]}, "trials": 150, "budgets": [1000, 100000]},
    ),
    ("snapshots_follow", {"table": 7, "unsound": [], "wrong": []}),
    ("larger_test_sets", {"base": 2048}),
    ("deviations_of_classes", {"seeds": 4, "without_seeds": "memnet"}),
    ("settings_of_configurations", {"table": "23, others"}),
    ("canonical_sizes", {"nodes": {"test": 65}, "train": 1000}),
    ("sizes_of_prompts", {"prompts": 9999}),
    ("evaluation_prompts", {"prompts": 125, "seeds": 4}),
    ("recorded_models_beat_printed", {"models": {"algoreas/mst_easy": "gin_small"}, "worse": ["gt"]}),
    ("recorded_models_beat_printed", {"models": {"algoreas/mst_easy": "unknown"}, "worse": ["gt"]}),
    ("recorded_models_beat_printed", {"models": {"algoreas/mst_easy": "pairs"}, "worse": ["unknown"]}),
    ("no_record_of_files", {"datasets": ["co/*"], "cells": 1}),
    ("cycles_of_edges", {"graphs_read": 20, "longest": 4, "share": 0.999, "triangles": 0.9}),
    ("cycles_of_edges", {"graphs_read": 20, "longest": 7, "share": 0.9, "triangles": 0.99}),
    ("cycles_of_edges", {"graphs_read": 20, "longest": 40, "share": 0.9, "triangles": 0.9}),
    ("several_maximum_cliques", {"graphs_read": 300, "stated": {"easy": 70, "medium": 91, "hard": 92}}),
    ("ids_of_cliques", {"graphs_read": 60, "apart": 0.5}),
    (
        "ceiling_without_ids",
        {
            "graphs_read": 5,
            "numberings": {"val": 2, "n64": 1, "test": 1},
            "stated": dict.fromkeys(("val", "n64", "test"), dict.fromkeys(recipe.DIFFICULTIES, 0.5)),
        },
    ),
    ("labels_differ_from_printed", {"solvers": ["kissat", "ergo"], "printed_formulas": 69596, "printed_cutoff": 5000}),
]


@pytest.mark.parametrize(("name", "arguments"), FALSE, ids=[name for name, _ in FALSE])
def test_checks_fail_where_what_is_said_is_false(name, arguments):
    outcome = registry.checks()[name](**arguments)
    assert not outcome.holds and outcome.problem


RULE_ROWS = [name for name, row in ROWS.items() if row.check == "structural_rule"]


@pytest.mark.parametrize("name", RULE_ROWS)
@pytest.mark.thorough
def test_scores_of_rules_and_what_they_beat_are_refused_where_altered(name):
    arguments = ROWS[name].arguments
    stated, beats = arguments["stated"], arguments["beats"]
    other = [] if beats["hard"] else ["gin"]
    for changes in (
        {"stated": {**stated, "medium": stated["medium"] + 0.002}},
        {"beats": {**beats, "hard": other}},
    ):
        outcome = registry.checks()["structural_rule"](**{**arguments, **changes})
        assert not outcome.holds and outcome.problem


def test_a_rule_that_predicts_something_else_than_the_package_is_noticed(monkeypatch):
    row = ROWS["graphbench/17/flow_rule"]
    monkeypatch.setitem(structure.RULES, "flow", ("value", lambda graph: structure.smaller_capacity(graph) * 1.01))
    outcome = registry.checks()["structural_rule"](**row.arguments)
    assert not outcome.holds and "something else" in outcome.problem


def test_labels_that_are_not_the_first_maximum_clique_are_noticed(monkeypatch):
    monkeypatch.setattr(structure, "maximum_cliques", lambda graph: [[0, 1], [0, 2]])
    outcome = registry.checks()["several_maximum_cliques"](
        graphs_read=5, stated=dict.fromkeys(recipe.DIFFICULTIES, 100)
    )
    assert not outcome.holds and "lexicographically" in outcome.problem


def test_the_best_threshold_is_the_best_of_all():
    rng = np.random.default_rng(3)
    probability, target = rng.integers(0, 6, 200) / 5, rng.random(200) < 0.3
    every = {t: f1_score(target, probability >= t) for t in np.unique(probability)}
    best, threshold = cliques.best_f1(probability, target)
    assert best == pytest.approx(max(every.values())) and every[threshold] == pytest.approx(best)


def test_shares_of_numberings_are_shares_of_the_only_maximum_clique():
    edges = np.array([(0, 1), (0, 2), (1, 2), (2, 3)])
    graph = Graph(4, edges, {"in_clique": np.array([1, 1, 1, 0])})
    assert cliques.shares_of_cliques(graph).tolist() == [1, 1, 1, 0]
    assert cliques.shares_of_numberings(graph, 5, np.random.default_rng(0)).tolist() == [1, 1, 1, 0]
    path = Graph(3, np.array([(0, 1), (1, 2)]), {"in_clique": np.array([1, 1, 0])})
    assert cliques.shares_of_cliques(path).tolist() == [0.5, 1, 0.5]
    ends = cliques.shares_of_numberings(path, 400, np.random.default_rng(0))
    assert ends[1] == 1 and ends[0] + ends[2] == pytest.approx(1) and abs(ends[0] - 0.5) < 0.1


def test_a_mean_of_other_columns_is_not_the_last_one(monkeypatch):
    printed = synthesis.published("chip_design/aig:generate")
    changed = [s if s.split != "test_n7m2" else s.model_copy(update={"value": s.value - 1.0}) for s in printed]
    assert changed != printed and registry.checks()["overall_of_scripts"]().holds
    monkeypatch.setattr(synthesis, "published", lambda _: changed)
    outcome = registry.checks()["overall_of_scripts"]()
    assert not outcome.holds and "printed" in outcome.problem


@pytest.mark.parametrize(
    ("variable", "model", "factor"),
    [("vertical_velocity", "gt", 100), ("specific_humidity", "gt", 1e-6), ("geopotential", "graphcast", 100)],
)
def test_units_that_agree_with_those_beside_them_are_not_refuted(monkeypatch, variable, model, factor):
    parts = deepcopy(list(arithmetic.parts_of_table("weather", 19)))
    (part,) = (part for part in parts if part["metric"] == f"mse_{variable}_500")
    part["scores"]["era5_64x32"][model][0] *= factor
    assert registry.checks()["units_within_table_19"]().holds
    monkeypatch.setattr(arithmetic, "parts_of_table", lambda *_: parts)
    assert not registry.checks()["units_within_table_19"]().holds


# What checks compute, beside other ways to compute it


@given(st.integers(0, 10**6), st.floats(0.05, 0.6))
@settings(max_examples=25, deadline=None)
def test_odd_cycles_bound_every_cut(seed, p):
    graph = nx.gnp_random_graph(9, p, seed=seed)
    largest = max(
        sum((u in side) != (v in side) for u, v in graph.edges)
        for size in range(5)
        for side in map(set, combinations(range(9), size))
    )
    packed = cuts.disjoint_odd_cycles(graph)
    assert largest <= graph.number_of_edges() - packed
    assert (packed == 0) == nx.is_bipartite(graph)


def test_linking_gives_each_component_an_edge_or_connects_all():
    source = random.Random(1)
    for _ in range(50):
        graph = nx.gnp_random_graph(16, 0.08, seed=source.randrange(10**6))
        parts = nx.number_connected_components(graph)
        linked = recipe.link_all(graph.copy(), source)
        assert nx.is_connected(linked)
        assert linked.number_of_edges() == graph.number_of_edges() + parts - 1
        each = recipe.link_each(graph.copy(), source)
        assert graph.number_of_edges() <= each.number_of_edges() <= graph.number_of_edges() + parts
        assert parts == 1 or all(
            set(part) != set(own) for part in nx.connected_components(graph) for own in nx.connected_components(each)
        )


def test_drawn_graphs_have_the_expected_numbers_of_edges():
    source = random.Random(3)
    expected = {
        "er": 0.19 * 120,
        "nws": 16 * 2 * 1.2,  # k / 2 edges a node, and with probability p another
        "ba": 3 * 13,
        "pc": 15,
        "sbm": 0.4 * 120,
    }
    for name, value in expected.items():
        drawn = [
            recipe.draw(name, recipe.models_of("mst", "train")[name], 16, source).number_of_edges() for _ in range(400)
        ]
        assert np.mean(drawn) == pytest.approx(value, abs=4 * np.std(drawn) / 20 + 0.8), name


def test_the_largest_standard_error_is_reached_by_zeros_and_ones():
    for ones in range(1, 10):
        values = np.array([1.0] * ones + [0.0] * (10 - ones))
        error = values.std(ddof=1) / np.sqrt(10)
        assert error == pytest.approx(np.sqrt(values.mean() * (1 - values.mean()) / 9))


def test_the_spread_of_a_class_is_that_of_all_its_runs():
    runs = np.random.default_rng(3).normal(50, 20, (7, 3))  # algorithms, seeds
    errors = runs.std(axis=1) / np.sqrt(3)
    expected = runs.std() / np.sqrt(7)
    assert clrs_tables._spread(runs.mean(axis=1), errors, 3) == pytest.approx(expected)
    assert clrs_tables._agrees(round(expected, 2), runs.mean(axis=1).round(2), errors.round(2), 3)
    assert not clrs_tables._agrees(round(expected, 2) + 0.05, runs.mean(axis=1).round(2), errors.round(2), 3)


def test_a_story_is_found_in_the_family_it_is_of():
    family = kinship.draw_family(kinship.PAPER_FAMILY, 5).relations
    child, sibling = kinship.relation_number("child"), kinship.relation_number("sibling")
    found = list(kinship._embeddings([("x", "y", "child"), ("y", "z", "sibling")], family))
    expected = {
        (x, y, z)
        for x, y in np.argwhere(family == child).tolist()
        for z in np.flatnonzero(family[y] == sibling).tolist()
        if z != x
    }
    assert {(people["x"], people["y"], people["z"]) for people in found} == expected


# The page


def test_the_page_has_an_anchor_for_every_table_and_no_open_brace():
    text = claims_text.page()
    for paper in model.papers():
        assert f"(published-{paper.key})=" in text
        for table in paper.tables:
            assert f"({paper.key.replace('_', '-')}-table-{table.number})=" in text
        assert claims_text.plain(paper.version) in text
    for name in ROWS:
        assert f"`python -m benchmarks.claims {name}`" in text
    assert "was not run" not in text and "No longer true" not in text


def test_the_summary_counts_every_row_once():
    papers = model.papers()
    lines = claims_text.summary(papers, model.VERDICTS, model.BASES).splitlines()
    name, *cells = lines[-1].strip("|").split("|")
    assert name.strip() == f"all, {sum(TABLES.values())} tables"
    reproduced, *total = map(int, cells)
    bases, others = total[: len(model.BASES)], total[len(model.BASES) :]
    assert reproduced == sum(bases) and reproduced + sum(others) == len(ROWS)


def test_texts_are_escaped_except_in_code():
    assert claims_text.plain("paper_* and `a_b` <x>") == "paper\\_\\* and `a_b` \\<x\\>"


# The pages of datasets


def test_findings_stand_on_the_pages_of_their_datasets():
    found = [(name, row) for name, row in ROWS.items() if row.verdict == "finding"]
    assert found
    for name, row in found:
        shown = [card for card in graphbench.list_datasets() if any(fnmatch(card, glob) for glob in row.datasets)]
        assert shown, name
        for card in shown:
            text = claims_text.findings(card)
            assert f"`python -m benchmarks.claims {name}`" in text and "{" not in text
    assert claims_text.findings("co/rb_small") == ""


def test_findings_whose_check_does_not_hold_are_not_stated(monkeypatch, tmp_path):
    content = {"results": {"graphbench/17/flow_rule": {"status": "fails", "values": {}, "note": "n"}}}
    path = tmp_path / "claims.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    monkeypatch.setattr(claims_text, "RESULTS", path)
    assert "to be checked" in claims_text.findings("algoreas/flow_easy")
    assert "MAE of" not in claims_text.findings("algoreas/flow_easy")


def test_the_cards_of_cliques_state_the_measured_shares():
    found = ENTRIES["graphbench/16/clique_several"]["values"]
    for difficulty, share in found["several"].items():
        card = graphbench.card(f"algoreas/max_clique_{difficulty}")
        assert f"{100 * share:.0f} % ({difficulty})" in card.description
        assert f"first {found['graphs']:,} training graphs" in card.description
        assert not any(line.endswith("so that they tell nothing.") for line in card.source.deviations)
