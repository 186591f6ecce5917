"""The lite set: what is complete, and Kendall's tau against scipy's."""

from itertools import combinations

import pytest
from scipy.stats import kendalltau
from scipy.stats import t as t_distribution

from graphbench.catalog.names import card
from graphbench.leaderboard import leaderboard_of
from graphbench.leaderboard.lite import (
    LiteSet,
    Order,
    agreement_of,
    agreement_text,
    cells_of,
    cells_text,
    lite_boards,
    lite_set,
    with_papers,
    within_domains,
)
from graphbench.leaderboard.pictures import cost_figure
from graphbench.records.budgets import Budget
from graphbench.training.config import list_configs

from .conftest import bootstrapped, make_record

LITE, OTHER = "algoreas/mst_easy", "algoreas/bridges_easy"
SET = LiteSet(seeds=(0, 1, 2, 3, 4), datasets={LITE: ("gin_small", "gt_small", "none_small")})


def runs(dataset, model, f1, seeds=range(3), **changes):
    facts = {"dataset": dataset, "dataset_version": 1, "model": model, "wall_seconds": 60.0, "cpu_seconds": 60.0}
    facts |= {"budget": Budget(small=True)} | changes
    return [bootstrapped(make_record(seed, f1=f1 + seed / 1000, **facts)) for seed in seeds]


def test_the_set_has_one_dataset_per_domain_and_configurations_that_exist():
    lite, configs = lite_set(), list_configs()
    domains = [card(id_).domain for id_ in lite.datasets]
    assert len(domains) == len(set(domains)) == 10 and lite.seeds == (0, 1, 2, 3, 4)
    assert all(card(id_).address == id_ and not card(id_).supplementary for id_ in lite.datasets)
    for id_, models in lite.datasets.items():
        assert models and all(f"{id_.partition('/')[0]}/{model}" in configs for model in models)


def test_cells_count_the_seeds_of_the_set():
    records = [*runs(LITE, "gin_small", 0.5, range(7)), *runs(LITE, "gt_small", 0.6, (0, 2))]
    cells = cells_of(leaderboard_of(records), SET)
    assert [(cell.model, cell.seeds, cell.of) for cell in cells] == [
        ("gin_small", 5, 5), ("gt_small", 2, 5), ("none_small", 0, 5)
    ]  # fmt: skip
    assert (
        cells_text(cells) == "Of 3 pairs of a dataset and a model, 1 have all their seeds, 1 some of them, and 1 none."
    )


def test_the_table_is_that_of_the_samples_of_most_models_of_the_set():
    part = {"data_hashes": {"test": "1" * 64}, "graphs_scored": {"test": 40}}
    searches = [run for name in ("one", "two", "three") for run in runs(LITE, name, 0.9, range(1))]
    small = [*runs(LITE, "gin_small", 0.5, range(5), **part), *runs(LITE, "gt_small", 0.6, range(5), **part)]
    (board,) = lite_boards(leaderboard_of([*searches, *small]), SET)
    assert {row.model for row in board.rows} == {"gin_small", "gt_small"}
    assert [cell.seeds for cell in cells_of(leaderboard_of([*searches, *small]), SET)] == [5, 5, 0]


def test_tau_is_that_of_scipy():
    """Orders of six models on three other datasets; a model that one of them lacks is left out there."""
    values = {
        LITE: [0.1, 0.5, 0.3, 0.9, 0.7, 0.2],
        OTHER: [0.2, 0.4, 0.35, 0.6, 0.8, 0.1],
        "algoreas/max_clique_easy": [0.9, 0.1, 0.5, 0.2, 0.3],
        "algoreas/max_matching_easy": [0.3, 0.6, 0.4, 0.95],
    }
    records = [
        record
        for dataset, own in values.items()
        for number, value in enumerate(own)
        for record in runs(dataset, f"model{number}_small", value)
    ]
    found = within_domains(leaderboard_of(records), SET)
    taus = {order.other: order.tau for order in found.orders}
    for dataset, own in values.items():
        if dataset != LITE:
            assert taus[dataset] == pytest.approx(kendalltau(values[LITE][: len(own)], own).statistic)
    pairs = [(a, b, own) for d, own in values.items() if d != LITE for a, b in combinations(range(len(own)), 2)]
    agreeing = sum((values[LITE][a] > values[LITE][b]) == (own[a] > own[b]) for a, b, own in pairs)
    assert found.tau == pytest.approx(2 * agreeing / len(pairs) - 1) and found.low is None
    assert f"{found.tau:.2f} (no interval), over" in agreement_text(found, "others")


def test_the_interval_of_tau_is_over_datasets_of_the_set():
    """By the formula of the jackknife's variance; comparisons that repeat those of a dataset make it no narrower."""
    counts = {"a": (21, 21), "b": (6, 9), "c": (4, 9), "d": (8, 12)}
    orders = [Order(name, "other", pairs, agreeing) for name, (agreeing, pairs) in counts.items()]
    found = agreement_of(orders)
    left_out = [
        2 * sum(a for n, (a, _) in counts.items() if n != name) / sum(p for n, (_, p) in counts.items() if n != name)
        - 1
        for name in counts
    ]
    variance = 3 / 4 * sum((value - sum(left_out) / 4) ** 2 for value in left_out)
    half = t_distribution.ppf(0.975, 3) * variance**0.5
    assert found.low == pytest.approx(found.tau - half) and found.high == min(1.0, found.tau + half)
    repeated = agreement_of(orders * 5)
    assert (repeated.low, repeated.high) == pytest.approx((found.low, found.high))
    assert "4 datasets of the set" in agreement_text(found, "others")
    assert agreement_of(orders[:2]).low is None


def test_small_models_are_compared_with_published_and_whole_models():
    small = [*runs(LITE, "gin_small", 0.5), *runs(LITE, "gt_small", 0.7)]
    found = with_papers(leaderboard_of(small), SET)
    assert {order.other: order.tau for order in found.orders} == {f"{LITE}, published": 1.0}  # gt 0.857, gin 0.691
    whole = [
        record
        for model, f1 in (("gin", 0.8), ("gt", 0.75))
        for record in runs(LITE, model, f1, budget=Budget(small=False), steps=11880, batch_size=256, cpu_seconds=9e3)
    ]
    found = with_papers(leaderboard_of([*small, *whole]), SET)
    assert {order.other: order.tau for order in found.orders} == {
        f"{LITE}, published": 1.0,
        f"{LITE}, class paper": -1.0,
    }
    assert found.tau == 0 and found.low is None
    assert within_domains(leaderboard_of(small), SET) is None
    assert agreement_text(None, "others") == "No two models can be compared with others."


def test_the_committed_records_fill_part_of_the_set(committed_board):
    board, lite = committed_board, lite_set()
    assert any(cell.seeds >= cell.of for cell in cells_of(board, lite))
    assert within_domains(board, lite).orders and with_papers(board, lite).orders
    figure = cost_figure(lite_boards(board, lite))
    assert len(figure.axes) >= 5 and all(axes.get_title().partition(" (")[0] in lite.datasets for axes in figure.axes)
