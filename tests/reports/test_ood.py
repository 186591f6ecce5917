import pytest
from matplotlib.container import BarContainer

from graphbench.catalog.names import card as card_of
from graphbench.catalog.names import list_datasets
from graphbench.core.errors import ResultError
from graphbench.records.aggregates import aggregate
from graphbench.records.budgets import Budget
from graphbench.records.published import published
from graphbench.reports.comparison import architecture
from graphbench.reports.ood import dataset_card, ood_splits, ood_table, plot_ood, plotted_splits, size_axis
from graphbench.reports.ood_plots import OODRow
from graphbench.reports.plots import inline_svg, png_bytes
from graphbench.reports.tables import ood_grid

from .conftest import make_record


def small_record(seed=0, **changes):
    config = {"model": {"processor": "gin"}, "training": {"steps": 5}}
    return make_record(seed, model="gin_small", config=config, budget=Budget(small=True), **changes)


def test_rows_of_one_run(card):
    rows = ood_table(make_record(), card)
    assert rows[0] == OODRow("test", 128.0, 0.8, None, 0.6103, 0.4)  # Table 18, not Table 16's 0.7288
    assert rows[1] == OODRow("n192", 192.0, pytest.approx(0.7), None, 0.8132, 0.4)
    assert rows[2] == OODRow("n512", 512.0, pytest.approx(0.6), None, 0.8823, None)
    assert [row.split for row in rows] == ["test", "n192", "n512"]


def test_rows_of_several_seeds_and_another_metric(card):
    (runs,) = aggregate([make_record(0, f1=0.7), make_record(1, f1=0.9)])
    assert ood_table(runs, card)[0].std == pytest.approx(0.1414, abs=1e-4)
    accuracy = ood_table(runs, card, "accuracy")
    assert (accuracy[0].mean, accuracy[0].published, accuracy[0].floor) == (0.9, None, 0.2)
    assert accuracy[1].mean is None


def test_small_models_stand_beside_their_architecture(card):
    (runs,) = aggregate([small_record()])
    assert architecture(runs) == "gin"
    assert ood_table(runs, card)[1].published == 0.8132


def test_the_plot_shows_ours_published_and_floor(card):
    results = aggregate([make_record(0, f1=0.7), make_record(1, f1=0.8), small_record()])
    figure = plot_ood(results, card)
    (axes,) = figure.axes
    handles, labels = axes.get_legend_handles_labels()
    assert set(labels) == {"gin", "gin_small (small run)", "gin, published", "best trivial"}
    lines = dict(zip(labels, handles, strict=True))
    assert lines["gin, published"].get_linestyle() == "--"
    assert list(lines["gin, published"].get_xdata()) == [128, 192, 512]
    assert list(lines["gin, published"].get_ydata()) == [0.6103, 0.8132, 0.8823]
    assert lines["best trivial"].get_linestyle() == ":"
    assert list(lines["gin"].lines[0].get_ydata()) == pytest.approx([0.75, 0.65, 0.55])
    assert lines["gin"].has_yerr and not lines["gin_small (small run)"].has_yerr
    assert axes.get_xscale() == "log"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["128", "192", "512"]
    assert png_bytes(figure).startswith(b"\x89PNG")


def test_svg_takes_the_pages_colour_and_repeats_exactly(card):
    results = aggregate([make_record()])
    first, second = (inline_svg(plot_ood(results, card), "f1 & <size>") for _ in range(2))
    assert first == second
    assert first.startswith("<svg") and 'role="img"' in first
    assert "<title>f1 &amp; &lt;size&gt;</title>" in first
    assert "currentColor" in first and "#4d4d4e" not in first
    assert "<text" in first  # text stays text


def test_plot_errors(card):
    other = make_record(dataset="algoreas/mst_easy")
    with pytest.raises(ResultError, match="one dataset, got"):
        plot_ood(aggregate([make_record(), other]), card)
    with pytest.raises(ResultError, match="got none"):
        plot_ood([], card)
    splits = {name: spec.model_copy(update={"parameters": {}}) for name, spec in card.splits.items()}
    unsized = card.model_copy(update={"splits": splits, "ood": {}, "measured": None})
    with pytest.raises(ResultError, match="names no ``nodes``"):
        plot_ood(aggregate([make_record()]), unsized)


@pytest.mark.parametrize(
    ("dataset", "label", "sizes"),
    [
        ("algoreas/mst_easy", "nodes per graph", {"test": 128, "n192": 192, "n256": 256, "n384": 384, "n512": 512}),
        ("clrs/optimal_bst", "nodes per graph", {"test": 65, "n32": 33, "n128": 129, "n256": 257}),
        ("clrs/segments_intersect", "nodes per graph", {"test": 4}),
        ("clutrr/gen_234", "facts (k)", {f"k{k}": k for k in range(2, 11)}),
    ],
)
def test_the_axis_is_what_grows_between_the_splits(dataset, label, sizes):
    card = card_of(dataset)
    axis = size_axis(card, ood_splits(card))
    assert (axis.label, axis.sizes) == (label, sizes)
    assert axis.logarithmic == (label == "nodes per graph")


def test_splits_without_a_common_number_are_kinds(card):
    assert size_axis(card_of("clutrr/rob_clean"), ["test", "clean"]) is None
    for names in (("n16", "k7"), ("n16", "larger"), ("16", "32"), ("dense", "sparse")):
        ood = dict(zip(names, card.ood.values(), strict=True))
        assert size_axis(card.model_copy(update={"ood": ood}), ["test", *names]) is None


def test_a_number_that_no_parameter_holds_has_no_sizes_trained_on(card):
    ood = dict(zip(("depth3", "depth_9"), card.ood.values(), strict=True))
    axis = size_axis(card.model_copy(update={"ood": ood}), ["test", *ood])
    assert (axis.label, axis.sizes, axis.trained) == ("depth", {"depth3": 3.0, "depth_9": 9.0}, ())


def test_a_test_of_several_sizes_has_no_place_among_nodes(card):
    splits = {**card.splits, "test": card.splits["test"].model_copy(update={"parameters": {}})}
    mixed = card.model_copy(update={"splits": splits})
    assert size_axis(mixed, ood_splits(mixed)).sizes == {"test": 128, "n192": 192, "n512": 512}  # measured: all alike
    statistics = {"test": {"nodes": (128.0, 3.0)}}
    mixed = mixed.model_copy(update={"measured": card.measured.model_copy(update={"statistics": statistics})})
    assert size_axis(mixed, ood_splits(mixed)).sizes == {"n192": 192, "n512": 512}


def kinds_records():
    scores = {"test": {"accuracy": 0.9}, "clean": {"accuracy": 0.5}, "supporting": {"accuracy": 0.75}}
    config = {"model": {"processor": "gat"}}
    common = {"dataset": "clutrr/rob_supporting", "dataset_version": 1, "curves": {}}
    first = make_record(scores=scores, model="gat", config=config, **common)
    again = make_record(1, scores=scores | {"clean": {"accuracy": 0.7}}, model="gat", config=config, **common)
    other = make_record(scores=scores, model="gin", **common)
    return aggregate([first, again, other])


def test_kinds_are_groups_of_bars():
    figure = plot_ood(kinds_records())
    (axes,) = figure.axes
    names = [text.get_text() for text in axes.get_xticklabels()]
    assert names == ["clean", "supporting", "irrelevant", "disconnected"]  # the test is drawn as supporting is
    bars = {group.get_label(): list(group) for group in axes.containers if isinstance(group, BarContainer)}
    assert [bar.get_height() for bar in bars["gat"]] == pytest.approx([0.6, 0.75])
    assert [bar.get_height() for bar in bars["gin"]] == pytest.approx([0.5, 0.75])
    for number in range(2):
        left, right = bars["gat"][number], bars["gin"][number]
        assert number - 0.5 < left.get_x() < left.get_x() + left.get_width() <= right.get_x() < number + 0.5
    handles, labels = axes.get_legend_handles_labels()
    squares = dict(zip(labels, handles, strict=True))["gat, published"]
    assert list(squares.get_ydata()) == [0.92, 0.98, 0.5, 0.92] and squares.get_linestyle() == "None"
    solver = dict(zip(labels, handles, strict=True))["exact reasoner (solver)"]
    assert len(solver.get_segments()) == 4
    assert not [line for line in axes.lines if len(line.get_xdata()) > 1 and line.get_linestyle() != "None"]
    assert set(labels) >= {"gat", "gin", "gat, published", "best trivial", "left fold (solver)"}
    assert inline_svg(figure, "kinds").startswith("<svg")


def test_ten_models_have_ten_colours_and_no_two_entries_look_alike():
    scores = {f"k{k}": {"accuracy": 1 - k / 20} for k in range(2, 11)}
    common = {"dataset": "clutrr/gen_23", "dataset_version": 1, "scores": scores, "curves": {}}
    results = aggregate([make_record(model=f"model{i}", config={}, **common) for i in range(10)])
    figure = plot_ood(results)
    (axes,) = figure.axes
    handles, labels = axes.get_legend_handles_labels()
    entries = dict(zip(labels, handles, strict=True))
    assert len({entries[f"model{i}"].lines[0].get_color() for i in range(10)}) == 10
    (legend,) = figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert len(texts) == len(set(texts)) == len(labels)
    lines = [handle for handle in handles if hasattr(handle, "get_linestyle")]
    looks = {(line.get_color(), line._unscaled_dash_pattern, line.get_marker()) for line in lines}
    assert len(lines) > 5 and len(looks) == len(lines)


def test_unknown_dataset_of_a_record():
    with pytest.raises(ResultError, match="'algoreas/gone', which has no card"):
        dataset_card("algoreas/gone")


def test_published_datasets_and_splits_exist():
    """Every published number belongs to a dataset and a split of the catalogue."""
    for dataset in list_datasets("algoreas"):
        card = dataset_card(dataset)
        for score in published(dataset):
            assert score.split in card.all_splits
            assert score.metric == card.metrics.primary


def test_additional_splits_that_select_no_model_have_rows_and_no_place_on_the_axis_of_sizes():
    card = card_of("algoreas/mst_easy")
    scored = {name: {"f1": 0.8} for name in ("val_large", "test", "n256", "sparse")}
    runs = aggregate([make_record(0, dataset="algoreas/mst_easy", scores=scored)])
    assert ood_splits(card) == ["test", *card.ood]
    assert ood_splits(card, runs) == ["test", *card.ood, "sparse"]
    assert plotted_splits(card, runs) == ["test", *card.ood]
    assert [row.mean for row in ood_table(runs[0], card) if row.split == "sparse"] == [0.8]
    assert "sparse" not in size_axis(card, plotted_splits(card, runs)).sizes
    grid = ood_grid(card, runs)
    assert [cells[0] for cells in grid.rows if "0.8000" in cells[2]] == ["test", "n256", "sparse"]
