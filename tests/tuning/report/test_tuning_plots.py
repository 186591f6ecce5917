import io
import math
import re

import pytest
from matplotlib.image import imread

from graphbench.reports.plots import INK, PAPER, RED, inline_svg, png_bytes
from graphbench.tuning.history import History
from graphbench.tuning.report.importance import Effect, Importance
from graphbench.tuning.report.parallel import parallel_figure
from graphbench.tuning.report.plots import best_figure, blend, budget_figure, distinct_texts, importance_figure
from graphbench.tuning.trial import Status, Trial

from .synthetic import make_result, make_trials


@pytest.fixture(scope="module")
def history():
    return History(make_result())


def lines_of(axes, label):
    return [line for line in axes.get_lines() if line.get_label() == label]


def texts_of(figure):
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_best_so_far_shows_every_trial(history):
    steps, seconds = best_figure(history).axes
    for budget in (27, 81, 243, 729):
        (points,) = lines_of(steps, f"{budget} steps")
        own = [trial for trial in history.successes if trial.budget == budget]
        assert sorted(points.get_ydata()) == pytest.approx(sorted(1 - trial.cost for trial in own))
    (failed,) = lines_of(steps, "failed")
    expected = [moment.steps for moment in history.moments if not moment.trial.succeeded]
    assert list(failed.get_xdata()) == expected and set(failed.get_ydata()) == {0.0} and failed.get_color() == RED
    assert steps.get_ylabel() == "validation f1 ↑"
    assert seconds.get_xlabel() == "minutes in which trials ran"


def test_the_best_line_starts_anew_at_each_budget(history):
    steps, _ = best_figure(history).axes
    drawn = [line for line in steps.get_lines() if line.get_drawstyle() == "steps-post"]
    assert len(drawn) == 4
    for line in drawn:
        scores = list(line.get_ydata())
        assert scores == sorted(scores)  # never worse at one budget
    assert drawn[-1].get_ydata()[-1] == pytest.approx(1 - history.incumbent.cost)
    assert drawn[-1].get_xdata()[-1] == sum(trial.steps for trial in history.trials)


def test_failed_trials_stand_at_the_worse_end_of_costs():
    steps, _ = best_figure(History(make_result(ours=False))).axes
    (failed,) = lines_of(steps, "failed")
    assert set(failed.get_ydata()) == {1.0}
    assert steps.get_ylabel() == "cost ↓"


def test_errors_over_magnitudes_stand_on_a_logarithmic_axis():
    def history_of(costs):
        trials = [
            Trial(i, i, {"training.lr": 0.01}, 9, 0, 0, Status.SUCCESS, c, 1.0, 9, "") for i, c in enumerate(costs)
        ]
        return History(make_result(trials, ours=False))

    assert best_figure(history_of([1e-4, 0.1, 3.0])).axes[0].get_yscale() == "log"
    assert best_figure(history_of([0.5, 0.1, 3.0])).axes[0].get_yscale() == "linear"
    assert "0.0001" in texts_of(parallel_figure(history_of([1e-4, 0.1, 3.0])))


def test_use_of_the_budget(history):
    rungs = history.rungs()
    trials, steps = budget_figure(rungs).axes
    widths = [bar.get_width() for bar in trials.patches]
    assert widths[:4] == [rung.trials - rung.failed for rung in rungs] and widths[4:] == [r.failed for r in rungs]
    widths = [bar.get_width() for bar in steps.patches]
    assert widths[:4] == [rung.steps for rung in rungs] and widths[4:] == [rung.saved for rung in rungs]
    assert [label.get_text() for label in trials.get_yticklabels()] == ["27", "81", "243", "729"]
    assert budget_figure([]) is None


def test_parallel_coordinates_keep_scales_and_end_at_the_score(history):
    figure = parallel_figure(history)
    (axes,) = figure.axes
    (best,) = lines_of(axes, f"incumbent, configuration {history.incumbent.config_id}")
    config = history.incumbent.config
    names = [parameter.name for parameter in history.parameters]
    places = dict(zip(names, best.get_ydata(), strict=False))
    assert places["training.lr"] == pytest.approx((math.log10(config["training.lr"]) + 5) / 4)
    assert places["model.hidden"] == pytest.approx(math.log2(config["model.hidden"] / 16) / 5)
    assert places["model.layers"] == pytest.approx((config["model.layers"] - 2) / 4)
    assert places["training.schedule"] == ["constant", "cosine", "linear"].index(config["training.schedule"]) / 2
    assert len(best.get_ydata()) == len(names) + 1 and best.get_ydata()[-1] == 1.0  # higher is better, so on top
    top = max(line.get_zorder() for line in axes.get_lines())
    assert best.get_zorder() == top


def test_parallel_coordinates_hold_one_line_per_configuration(history):
    figure = parallel_figure(history)
    lengths = [len(line.get_xdata()) for line in figure.axes[0].get_lines()]
    at_largest = {trial.config_id for trial in history.successes if trial.budget == 729}
    others = {trial.config_id for trial in history.successes} - at_largest
    parameters = len(history.parameters)
    assert lengths.count(parameters + 1) == len(at_largest) + 1  # and the incumbent on top
    assert lengths.count(parameters) == len(others)
    shown = texts_of(figure)
    assert {"lr", "schedule", "dropout", "inactive", "constant", "cosine", "linear", "0.001"} <= set(shown)
    assert "validation f1 ↑\nat 729 steps" in shown
    for low, high in (("1e-05", "0.1"), ("16", "512"), ("2", "6")):
        assert low in shown and high in shown


def test_far_outliers_stand_at_the_end_of_the_score_axis():
    costs = [0.1, 0.11, 0.12, 0.13, 0.14, 50.0]
    trials = [Trial(i, i, {"training.lr": 0.01}, 9, 0, 0, Status.SUCCESS, c, 1.0, 9, "") for i, c in enumerate(costs)]
    result = make_result(trials, ours=False)
    shown = texts_of(parallel_figure(History(result)))
    assert any(text.startswith("≥ 0.") for text in shown)  # errors over magnitudes have a logarithmic axis, cut as well
    ours = make_result([trial for trial in trials if trial.cost < 1] + [trials[5]])
    assert any(text.startswith("≤") for text in texts_of(parallel_figure(History(ours))))


def test_importance_is_drawn_as_bars():
    effects = (Effect("training.lr", 0.97, 0.98), Effect("model.hidden", 0.01, 0.02))
    (axes,) = importance_figure(Importance(effects=effects)).axes
    assert [bar.get_width() for bar in axes.patches] == [0.97, 0.01, 0.98, 0.02]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["lr", "hidden"]
    assert importance_figure(Importance(refusal="too few trials")) is None


def test_nothing_is_drawn_without_success():
    failed = [Trial(0, 0, {"training.lr": 0.01}, 9, 0, 0, Status.TIMEOUT, 1.0, 1.0, 3, "", "slow")]
    for trials in ([], failed):
        history = History(make_result(trials))
        assert best_figure(history) is None and parallel_figure(history) is None


def test_one_budget_one_trial():
    trials = [Trial(0, 0, {"training.lr": 0.01}, 9, 0, 0, Status.SUCCESS, 0.5, 1.0, 9, "")]
    history = History(make_result(trials))
    for figure in (best_figure(history), parallel_figure(history), budget_figure(history.rungs())):
        assert png_bytes(figure).startswith(b"\x89PNG")


def test_pictures_are_white_and_pages_decide_the_colours(history):
    figure = parallel_figure(history)
    picture = imread(io.BytesIO(png_bytes(figure)))
    assert picture[0, 0].tolist() == [1, 1, 1, 1] and (picture[..., 3] == 1).all()
    svg = inline_svg(figure, "Lines")
    assert INK not in svg and PAPER not in svg
    assert "var(--ground)" in svg and "currentColor" in svg
    assert not re.search(r"fill: #(fff|ffffff|000)\b", svg)


def test_the_same_history_gives_the_same_picture():
    first, second = (inline_svg(best_figure(History(make_result(make_trials(30)))), "Best") for _ in range(2))
    assert first == second


def test_blend():
    assert blend("#000000", "#ffffff", 0.0) == "#000000"
    assert blend("#000000", "#ffffff", 1.0) == "#ffffff"
    assert blend("#ff0000", "#0000ff", 0.5) == "#800080"


def test_many_parameters_are_named_on_two_lines():
    names = [f"group.parameter_{number}" for number in range(12)]
    space = {name: {"type": "float", "range": [0.0, 1.0], "log": False, "default": 0.5} for name in names}
    space["group.listed"] = {"type": "ordinal", "sequence": list(range(100)), "default": 0}
    config = {**dict.fromkeys(names, 0.5), "group.listed": 7}
    trials = [Trial(i, i, config, 9, 0, 0, Status.SUCCESS, 0.1 * i, 1.0, 9, "") for i in range(3)]
    figure = parallel_figure(History(make_result(trials, space=space)))
    shown = texts_of(figure)
    assert "parameter_0" in shown and "parameter_1\n" in shown
    assert 9.6 < figure.get_figwidth() < 15
    assert sum(text.isdigit() and int(text) > 1 for text in shown) <= 8  # marks of the long list


def _shown_ticks(figure, axis):
    figure.canvas.draw()
    low, high = sorted(axis.get_view_interval())
    return [
        label.get_text()
        for label in axis.get_ticklabels()
        if low <= label.get_position()[axis.axis_name == "y"] <= high
    ]


@pytest.mark.parametrize("costs", [(0.98701, 0.98702, 0.98703), (1e5 + 0.5, 1e5 + 0.25, 1e5), (3e-7, 4e-7, 5e-7)])
def test_marks_of_scores_are_told_apart_and_stand_for_themselves(costs):
    trials = [Trial(i, i, {"training.lr": 0.01}, 9, 0, 0, Status.SUCCESS, c, 1.0, 9, "") for i, c in enumerate(costs)]
    history = History(make_result(trials, ours=False))
    figure = best_figure(history)
    axis = figure.axes[0].yaxis
    marks = _shown_ticks(figure, axis)
    assert 2 <= len(marks) <= 8 and len(set(marks)) == len(marks)
    offset = axis.get_offset_text().get_text()
    assert "+" not in offset.replace("e+", "e")  # a factor may stand there, a number to add may not
    ends = [text for text in texts_of(parallel_figure(history)) if re.fullmatch(r"[\d.e+-]+", text)][-5:]
    assert len(set(ends)) == 5


def test_counts_have_few_whole_marks():
    trials = [Trial(i, i, {"training.lr": 0.01}, 1, 0, 0, Status.SUCCESS, 0.1 * i, 1.0, 1, "") for i in range(2)]
    history = History(make_result(trials))
    panels = [(budget_figure(history.rungs()), 0), (budget_figure(history.rungs()), 1), (best_figure(history), 0)]
    for figure, panel in panels:
        marks = _shown_ticks(figure, figure.axes[panel].xaxis)
        assert marks and all(re.fullmatch(r"\d+", mark) for mark in marks) and len(set(marks)) == len(marks) <= 8
    many = [Trial(0, 0, {"training.lr": 0.01}, 10**7, 0, 0, Status.SUCCESS, 0.1, 1.0, 10**7, "")]
    figure = budget_figure(History(make_result(many)).rungs())
    assert "10,000,000" in _shown_ticks(figure, figure.axes[1].xaxis)
    assert lines_of(best_figure(history).axes[0], "1 step")


def test_numbers_are_told_apart():
    assert distinct_texts([0.5, 0.25]) == ["0.5", "0.25"]
    assert distinct_texts([0.98701, 0.98702]) == ["0.98701", "0.98702"]
    assert distinct_texts([1.0, 1.0]) == ["1", "1"]
