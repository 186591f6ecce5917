"""``--source official --folder``: every command speaks of the published files as the loader does."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from graphbench.cli import main
from graphbench.loader import Loader

SMALL = ("--set", "model.hidden=8", "--set", "model.layers=1", "--set", "training.batch_size=4")


def puzzle(part, number):
    """Column -> text of one puzzle about three people of our own."""
    son = number % 2
    words, target = (("brother", "son"), "nephew") if son else (("father", "brother"), "uncle")
    told = f"[Ann] met {words[0]} [Cy]. [Cy] met {words[1]} [Bob]."
    return {
        "": str(number), "id": f"{part}-{number}", "story": told, "query": "('Ann', 'Bob')", "text_query": "",
        "target": target, "text_target": f"['[Bob] is the {target} of [Ann].']", "clean_story": told,
        "proof_state": repr([{("Ann", target, "Bob"): [("Ann", words[0], "Cy"), ("Cy", words[1], "Bob")]}]),
        "f_comb": "-".join(words), "task_name": "task_1.2", "story_edges": "[(0, 1), (1, 2)]",
        "edge_types": repr(list(words)), "query_edge": "(0, 2)", "genders": "Ann:female,Cy:male,Bob:male",
        "syn_story": "", "node_mapping": "{1: 0, 4: 1, 7: 2}", "task_split": part,
    }  # fmt: skip


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "data_published"
    folder.mkdir()
    for name, part, count in (("1.2,1.3_train.csv", "train", 20), ("1.2_test.csv", "test", 6)):
        rows = [puzzle(part, number) for number in range(count)]
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return folder


def run(capsys, *arguments, expect=0):
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    assert end.value.code == expect, printed
    return printed


def test_info_and_verify_are_of_the_files(files, tmp_path, capsys):
    common = ("--source", "official", "--folder", files, "--root", tmp_path)
    card = json.loads(run(capsys, "info", "clutrr/gen_23", "--json", *common).out)
    assert (card["protocol"], card["measured"], list(card["ood"])) == ("official", None, ["k2"])
    assert {name: spec["count"] for name, spec in card["splits"].items()} == {"train": 16, "val": 4, "test": 6}
    assert card["licence"].startswith("CC BY-NC 4.0")
    limited = ("--splits", "test,k2", "--limit", "3", "--json")
    (outcome,) = json.loads(run(capsys, "verify", "gen_23", *limited, *common).out)
    marks = {(row["split"], row["check"]): row["mark"] for row in outcome["rows"]}
    assert marks["k2", "structure and labels"] == marks["test", "stored file"] == "skipped"
    assert marks["all", "card"] == ""
    rows = {(row["split"], row["check"]): row["detail"] for row in outcome["rows"]}
    assert outcome["passed"] and rows["k2", "structure and labels"] == "taken from the files, not checked"
    assert ("k2", "held-out clauses") not in rows and rows["test", "first samples"].startswith("6 graphs")
    refusal = run(capsys, "verify", "gen_23", "--update", *common, expect=2).err
    assert "on generated data; leave --source or --update out" in " ".join(refusal.replace("│", " ").split())


def test_a_run_on_the_files_is_trained_and_scored_on_them(files, tmp_path, capsys):
    common = ("--source", "official", "--folder", files, "--root", tmp_path)
    output = ("--output", tmp_path / "run", "--records", tmp_path / "records", "--device", "cpu")
    (record,) = json.loads(
        run(capsys, "train", "gen_23", "--model", "gat_small", "--steps", 2, *SMALL, *output, "--json", *common).out
    )
    assert record["protocol"] == "official" and set(record["scores"]) == {"val", "test", "k2"}
    assert list((tmp_path / "records").rglob("*.json"))
    again = json.loads(run(capsys, "evaluate", tmp_path / "run", "--splits", "k2", "--json", "--root", tmp_path).out)
    assert again["k2"] == record["scores"]["k2"]
    words = run(capsys, "evaluate", tmp_path / "run", "--splits", "k2", *common, expect=2).err
    assert "leave --source and --folder out" in " ".join(words.replace("│", " ").split())


def test_predictions_are_for_the_files(files, tmp_path, capsys):
    splits = Loader("clutrr/gen_23", source="official", folder=files, root=tmp_path).load(["test"])
    answers = [splits.card.classes["answer"][int(splits.test[i].answer)] for i in range(6)]
    assert set(answers) == {"nephew", "uncle"}
    (tmp_path / "words.txt").write_text("\n".join(answers))
    np.save(tmp_path / "numbers.npy", np.array([int(splits.test[i].answer) for i in range(6)]))
    common = ("--source", "official", "--folder", files, "--root", tmp_path, "--json")
    for name in ("words.txt", "numbers.npy"):
        found = json.loads(run(capsys, "evaluate", "gen_23", "--predictions", tmp_path / name, *common).out)
        assert found["test"]["accuracy"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("info", "gen_23", "--source", "official"),
            "source='official' needs folder= (--folder), the folder of its files",
        ),
        (
            ("train", "gen_23", "--folder", "x"),
            "folder='x' is for files that are not generated; name their source, such as source='official' ",
        ),
        (
            ("verify", "gen_23", "--source", "foo"),
            "source='foo' is unknown for clutrr/gen_23 (there are 'generated', 'official';",
        ),
        (
            ("info", "mst_easy", "--source", "official", "--folder", "x"),
            "source='official' is unknown for algoreas/mst_easy (there are 'generated';",
        ),
        (("info", "gen_23", "--source", "official", "--folder", "absent"), "absent is not a folder; give the one"),
        (
            ("info", "gen_23", "--data-seed", "3", "--source", "official", "--folder", "x"),
            "the samples of files cannot be regenerated",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(capsys, tmp_path, arguments, words):
    error = run(capsys, *arguments, *(() if arguments[0] == "train" else ("--root", tmp_path)), expect=2).err
    assert words in " ".join(error.replace("│", " ").split())
