"""The critical-difference diagram: its width, its bars, and when it is drawn."""

import pytest

from graphbench.leaderboard.model import Group, GroupRow
from graphbench.leaderboard.pictures import critical_difference, not_separated, rank_figure


def group(ranks, datasets=20):
    rows = tuple(GroupRow(f"m{i}", (), (), None, None, rank, i + 1) for i, rank in enumerate(ranks))
    return Group("suite", None, "open", tuple(map(str, range(datasets))), (), rows, ())


@pytest.mark.parametrize(
    ("models", "quantile"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (6, 2.850), (10, 3.164)]
)
def test_the_critical_difference_is_that_of_demsar(models, quantile):
    """The quantiles are those of table 5a of Demsar (2006) at 5 %."""
    for datasets in (5, 14, 30):
        expected = quantile * (models * (models + 1) / (6 * datasets)) ** 0.5
        assert critical_difference(models, datasets) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("ranks", "bars"),
    [
        ([1, 2, 3], [(0, 1), (1, 2)]),
        ([1, 1.1, 1.2], [(0, 2)]),
        ([1, 3, 5], []),
        ([1, 2, 2.4, 5, 6], [(0, 2), (3, 4)]),
    ],
)
def test_bars_connect_the_largest_groups(ranks, bars):
    assert not_separated(ranks, 1.5) == bars


def test_a_diagram_needs_three_ranked_models():
    assert rank_figure(group([1.0, 2.0])) is None and rank_figure(group([1.2, None, None, 2.0])) is None
    texts = [text.get_text().strip() for text in rank_figure(group([1.4, 2.0, 2.6, None])).axes[0].texts]
    assert "m0  1.40" in texts and "m2  2.60" in texts and not any(text.startswith("m3") for text in texts)
    assert f"critical difference {critical_difference(3, 20):.2f}" in texts
