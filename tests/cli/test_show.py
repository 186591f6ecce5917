"""What commands print for people: nothing cut, nothing empty, nothing twice."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from graphbench.catalog.names import catalog
from graphbench.cli import generated, show, show_scores
from graphbench.core.errors import CardError
from graphbench.loader import Loader


@pytest.fixture
def toy(make_card, monkeypatch):
    """Return a function that puts the toy card, with changes, into the catalogue."""

    def put(**changes):
        card = make_card(**changes)
        monkeypatch.setitem(catalog().cards, card.id, card)
        return card

    return put


@pytest.mark.parametrize("columns", [1, 20, 30, 80, 200])
def test_numbers_and_names_are_whole_on_any_terminal(columns, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("COLUMNS", str(columns))
    show.card("algoreas/topological_sort_medium", tmp_path, as_json=False)
    words = capsys.readouterr().out.split()
    card = catalog().cards["algoreas/topological_sort_medium"]
    for whole in (card.id, "1,000,000", "10,000", f"{card.measured.statistics['n512']['edges'][0]:.1f}"):
        assert whole in words
    show.datasets(["clrs", "mst"], tmp_path, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    words = " ".join(lines).split()
    for whole in ("clrs/strongly_connected_components", "16-512", "1k/2k/2k", "1M/10k/10k", "permutation"):
        assert whole in words
    assert max(map(len, lines[: lines.index("")])) <= max(columns, 80)
    found = {"test": {"f1": 0.123456, "accuracy": 0.9}, "n192": {"f1": 1.0}}
    show_scores.scores("algoreas/mst_easy, a_model_with_a_long_name, seed 0", found, as_json=False)
    text = capsys.readouterr().out
    assert "algoreas/mst_easy, a_model_with_a_long_name, seed 0\n" in text
    assert {"0.1235", "0.9000", "1.0000", "accuracy", "n192", "-"} <= set(text.split())


def test_words_in_brackets_are_printed_as_they_are(toy, capsys, tmp_path):
    card = toy(summary="The edge [u, v] :smile: of [bold]every[/bold] graph.")
    show.card(card.id, tmp_path, as_json=False)
    assert "The edge [u, v] :smile: of [bold]every[/bold] graph." in capsys.readouterr().out


def test_a_minimal_card_shows_no_empty_parts(toy, capsys, tmp_path):
    card = toy(source={"paper": "My paper"})
    show.card(card.id, tmp_path, as_json=False)
    text = capsys.readouterr().out
    assert "source     My paper\n" in text
    assert "None" not in text
    assert "predictor" not in text
    assert text.rstrip("\n").splitlines()[-1].startswith("source")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"metrics": {"primary": "f11"}}, "unknown metric 'f11'; did you mean 'f1'"),
        ({"directed": True}, "directed is true, but algoreas.mst"),
    ],
)
def test_info_refuses_a_card_that_does_not_fit(toy, tmp_path, changes, words):
    card = toy(**changes)
    with pytest.raises(CardError, match=words):
        show.card(card.id, tmp_path, as_json=False)


def test_generation_refuses_an_unknown_metric_or_kind_of_task_before_any_work(toy, tmp_path):
    card = toy(metrics={"primary": "f11"})
    with pytest.raises(CardError, match=r"metric 'f11'.*'f1'"):
        generated.generate_one(card, ["train"], tmp_path / "data", None, 1)
    card = toy(task={"type": "predikt"})
    with pytest.raises(CardError, match=r"task 'predikt'.*'predict'"):
        generated.generate_one(card, ["train"], tmp_path / "data", None, 1)
    assert not (tmp_path / "data").exists()


def test_generator_task_and_parameters_are_shown(capsys, tmp_path):
    show.card("clrs/bfs", tmp_path, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    for line in (
        "generator  clrs.bfs",
        "task type  trace",
        "parameters train: length 16, seed 1",
        "parameters val: like train, with seed 2",
        "parameters n128: like test, with length 128",
    ):
        assert line in lines
    show.card("clrs/bfs", tmp_path, as_json=True)
    content = json.loads(capsys.readouterr().out)
    assert (content["generator"], content["task"]["type"]) == ("clrs.bfs", "trace")
    assert content["splits"]["val"]["parameters"] == {"length": 16, "seed": 2}


def test_types_are_whole_in_a_terminal_of_80_columns(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    show.datasets(["clutrr"], tmp_path, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    table = lines[: lines.index("")]
    assert sum("categorical(22)" in line for line in table) == 12 and max(map(len, table)) <= 80


@pytest.mark.parametrize("columns", [80, 160])
@pytest.mark.parametrize("id_", ["algoreas/mst_easy", "clrs/dijkstra", "weather/sim_t21"])
def test_every_feature_is_shown_with_its_meaning(columns, id_, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("COLUMNS", str(columns))
    show.card(id_, tmp_path, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("feature"))
    table = lines[first : lines.index("", first)]
    begin = table[0].index("meaning")
    assert max(len(line.rstrip()) for line in table) <= columns
    assert " ".join(line[begin:].strip() for line in table[1:]) == " ".join(
        feature.meaning for feature in catalog().cards[id_].features
    )
    show.card(id_, tmp_path, as_json=True)
    shown = json.loads(capsys.readouterr().out)["features"]
    assert [f["meaning"] for f in shown] == [f.meaning for f in catalog().cards[id_].features]


def test_a_card_without_meanings_has_no_column_for_them(toy, capsys, tmp_path):
    show.card(toy().id, tmp_path, as_json=False)
    assert "meaning" not in capsys.readouterr().out


def test_names_of_classes_are_listed_with_their_numbers(toy, capsys, tmp_path):
    card = toy(classes={"model": ["er", "ba", "nws", "dba", "pc", "sbm"]})
    show.card(card.id, tmp_path, as_json=False)
    assert "classes    model: 0 er, 1 ba, 2 nws, 3 dba, 4 pc, 5 sbm\n" in capsys.readouterr().out
    show.card(card.id, tmp_path, as_json=True)
    assert json.loads(capsys.readouterr().out)["classes"] == {"model": ["er", "ba", "nws", "dba", "pc", "sbm"]}


def test_measured_scores_stand_in_the_order_of_the_splits(capsys, tmp_path):
    show.card("clutrr/gen_23", tmp_path, as_json=False)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    splits = [words[0] for words in lines if "exact_reasoner" in words]
    assert splits == ["val", "test", *(f"k{k}" for k in range(2, 11))]


def test_the_number_of_datasets(capsys, tmp_path):
    show.datasets(["mst_easy"], tmp_path, as_json=False)
    assert "\n1 dataset; graphs" in capsys.readouterr().out
    show.datasets(["mst"], tmp_path, as_json=False)
    assert "\n3 datasets; graphs" in capsys.readouterr().out


def test_the_first_graphs_of_a_longer_file_are_told_as_such(capsys, tmp_path):
    card = catalog().cards["algoreas/mst_easy"]
    (long,) = generated.generate_one(card, ["val"], tmp_path / "a", 20, 1)
    (part,) = generated.generate_one(card, ["val"], tmp_path / "a", 5, 1)
    (short,) = generated.generate_one(card, ["val"], tmp_path / "b", 5, 1)
    assert (long["graphs"], part["graphs"], short["graphs"]) == (20, 5, 5)
    assert (long["file_graphs"], part["file_graphs"], short["file_graphs"]) == (20, 20, 5)
    assert part["content"] == short["content"] != long["content"]
    assert part["content"] == Loader("mst_easy", root=tmp_path / "b", limit=5, workers=1).load("val").val.content_hash
    assert part["bytes"] == long["bytes"] == Path(part["file"]).stat().st_size
    generated.generated([part], as_json=False)
    assert f"algoreas/mst_easy val: the first 5 of 20 graphs of {part['file']}\n" in capsys.readouterr().out
    generated.generated([long, short], as_json=False)
    assert "the first" not in capsys.readouterr().out


def result(scores):
    record = SimpleNamespace(
        dataset="algoreas/mst_easy",
        model="gin",
        seed=3,
        data_seed=0,
        relative_path=Path("algoreas/mst_easy/gin-3.json"),
        to_json=lambda: json.dumps({"seed": 3}),
    )
    return SimpleNamespace(record=record, scores=scores, path=Path("runs/record.json"))


def test_scores_by_problem_size_stand_in_a_table_of_their_own(capsys):
    found = {
        "val": {"exact_match": 0.5},
        "val_n4": {"exact_match": 0.25},
        "test": {"exact_match": 0.75},
        "test_n16": {"exact_match": 1.0},
        "test_n4": {"exact_match": 0.0},
    }
    show_scores.scores("clrs_text/bfs", found, as_json=False)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows == [
        ["clrs_text/bfs"],
        ["split", "exact_match"],
        ["val", "0.5000"],
        ["test", "0.7500"],
        [],
        ["exact_match", "by", "problem", "size"],
        ["problem", "size", "val", "test"],
        ["4", "0.2500", "0.0000"],
        ["16", "-", "1.0000"],
    ]


def test_a_run_that_was_not_scored(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    show_scores.runs([result({})], as_json=False)
    assert capsys.readouterr().out == "algoreas/mst_easy, gin, seed 3: not scored\nrecord runs/record.json\n\n"


def test_records_are_named_where_they_are_kept(capsys):
    show_scores.runs([result({"test": {"f1": 0.5}})], as_json=False, records=Path("kept"))
    assert "record runs/record.json\nand    kept/algoreas/mst_easy/gin-3.json\n" in capsys.readouterr().out


@pytest.mark.parametrize("as_json", [False, True])
def test_one_process_of_several_prints(capsys, monkeypatch, as_json):
    monkeypatch.setenv("RANK", "1")
    show_scores.runs([result({"test": {"f1": 0.5}})], as_json)
    assert capsys.readouterr().out == ""
    monkeypatch.setenv("RANK", "0")
    show_scores.runs([result({"test": {"f1": 0.5}})], as_json)
    assert capsys.readouterr().out.count("3") >= 1


def test_what_splits_to_test_on_are_made_of_is_counted(capsys, tmp_path):
    show.card("clutrr/gen_23", tmp_path, as_json=False)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("different")]
    counts = catalog().card("clutrr/gen_23").measured.different["k2"]
    assert f"k2: {', '.join(f'{count} {what}' for what, count in counts.items())}; k3: " in line
    assert "train:" not in line and {"walks", "clauses", "answers"} == set(counts)


def test_scores_of_many_metrics_are_listed_one_per_line(capsys):
    show_scores.scores(
        "weather", {split: {f"m{i}": (i + 1) * 2.5e-7 for i in range(20)} for split in ("val", "test")}, False
    )
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1] == ["metric", "val", "test"]
    assert lines[2] == ["m0", "2.5e-07", "2.5e-07"]
    assert len(lines) == 22
