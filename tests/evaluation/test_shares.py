from graphbench.catalog.features import parse_features
from graphbench.catalog.names import card
from graphbench.evaluation.shares import class_shares, means_text, share_names
from graphbench.reports.tables import split_rows

FEATURES = parse_features(
    {
        "colour": ["output", "node", "categorical(3)"],
        "kind": ["meta", "graph", "categorical(2)"],
        "weight": ["input", "edge", "scalar"],
    }
)
MEANS = {
    "nodes": 7.0,
    "colour_red": 0.25,
    "colour_dark-blue": 0.75,
    "colour_green": 0.0,
    "kind_a": 1.0,
    "weight_x": 0.5,
}


def test_shares_are_known_by_the_classes_of_a_feature():
    found = share_names(FEATURES, list(MEANS))
    assert found == {"colour": ["colour_red", "colour_dark-blue", "colour_green"]}  # of kind, one class is missing
    assert share_names(FEATURES, ["nodes"]) == {}


def test_the_largest_class_stands_for_all():
    shares = class_shares("colour", {name: MEANS[name] for name in share_names(FEATURES, list(MEANS))["colour"]})
    assert (shares.largest, shares.share, shares.occurring, shares.classes) == ("dark-blue", 0.75, 2, 3)
    assert means_text(FEATURES, MEANS) == (
        "nodes 7, kind_a 1, weight_x 0.5, largest colour dark-blue 75.0% (2 of 3 classes)"
    )


def test_the_table_of_splits_has_one_column_for_all_classes():
    puzzles = card("clutrr/gen_23")
    grid = split_rows(puzzles)
    assert [head for head in grid.heads if "answer" in head] == ["different answers", "largest class of answer"]
    assert grid.heads[:4] == ("split", "graphs", "nodes", "edges") and grid.heads[-1] == "shift from training"
    means = {name: mean for name, (mean, _) in puzzles.measured.statistics["k2"].items() if name.startswith("answer_")}
    largest = max(means, key=means.get)
    cells = dict(zip(grid.heads, next(row for row in grid.rows if row[0] == "k2"), strict=True))
    occurring = sum(share > 0 for share in means.values())
    assert cells["largest class of answer"] == (
        f"{largest.removeprefix('answer_')} {means[largest]:.1%} ({occurring} of 22 classes)"
    )
    assert "largest" not in " ".join(split_rows(card("algoreas/mst_easy")).heads)


def test_splits_that_were_not_measured_have_a_gap():
    puzzles = card("clutrr/gen_23")
    known = {name: values for name, values in puzzles.measured.statistics.items() if name != "k9"}
    partly = puzzles.model_copy(update={"measured": puzzles.measured.model_copy(update={"statistics": known})})
    assert next(row for row in split_rows(partly).rows if row[0] == "k9")[3:6] == ("–", "–", "–")  # noqa: RUF001
    bare = split_rows(puzzles.model_copy(update={"measured": None}))
    assert bare.heads == ("split", "graphs", "nodes", "shift from training")
