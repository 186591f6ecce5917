"""Files of predictions, read, refused or scored."""

from __future__ import annotations

import json

import numpy as np
import pytest

import graphbench
from graphbench.cli.predictions import score_predictions
from graphbench.core.errors import DecodingError, EvaluationError
from graphbench.evaluation.array_files import read_arrays
from graphbench.tasks.files import read_texts, rows_of_output


def read_predictions(path):
    """Return the array of a task with a single output."""
    return rows_of_output(read_arrays(path), ["in_tree"], path)["in_tree"]


def scored(dataset, split, path, scores, **options):
    """Return the scores of one file."""
    found, record = score_predictions(dataset, [split], path, scores, **options)
    assert record is None
    return found


def test_predictions_are_read_or_refused_with_a_remedy(tmp_path):
    np.save(tmp_path / "good.npy", np.arange(3))
    np.savez(tmp_path / "good.npz", y_pred=np.arange(3), other=np.ones(1))
    for name in ("good.npy", "good.npz"):
        assert read_predictions(tmp_path / name).tolist() == [0, 1, 2]
    (tmp_path / "empty.npy").write_bytes(b"")
    (tmp_path / "damaged.npz").write_bytes((tmp_path / "good.npz").read_bytes()[:-30])
    np.savez(tmp_path / "unnamed.npz", other=np.ones(1))
    np.save(tmp_path / "single.npy", np.array(3.0))
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object))
    (tmp_path / "words.csv").write_text("aunt\nuncle\n")
    messages = {
        "empty.npy": "empty.npy are an empty file; write them with numpy.save",
        "damaged.npz": "damaged.npz is damaged",
        "unnamed.npz": "holds other; name the array y_pred",
        "single.npy": "holds the single value 3.0; save one row per item",
        "objects.npy": "objects.npy holds Python objects, which are never unpickled; write numbers with numpy.save",
        "words.csv": r"words.csv is no array file; write numbers with numpy.save .*into a .txt or .jsonl file",
        "absent.npy": "cannot read predictions from",
    }
    for name, message in messages.items():
        with pytest.raises(EvaluationError, match=message):
            read_predictions(tmp_path / name)


@pytest.mark.parametrize("ending", ["strings.jsonl", "objects.jsonl", "lines.txt"])
def test_answers_are_scored_by_split_and_size(ending, tmp_path):
    splits = graphbench.Loader("clrs_text/bfs", root=tmp_path, limit=6, workers=1).load(())
    answers = [splits["test"][i].reference.strip() for i in range(5)] + ["I do not know"]
    rows = {
        "strings.jsonl": [json.dumps(f"My answer:\n{answer}\n") for answer in answers],
        "objects.jsonl": [json.dumps({"prompt": 1, "output": answer}) for answer in answers],
        "lines.txt": answers,
    }[ending]
    path = tmp_path / ending
    path.write_text("\n".join(rows) + "\n")
    found = scored("clrs_text/bfs", "test", path, "probability", root=tmp_path, limit=6)
    assert {name: score["exact_match"] for name, score in found.items()} == {
        "test": pytest.approx(5 / 6), **{f"test_n{size}": float(size < 9) for size in range(4, 10)}
    }  # fmt: skip
    path.write_text("\n".join(rows[:-1]))
    with pytest.raises(EvaluationError, match=r"5 answers.*6 prompts.*--limit"):
        scored("clrs_text/bfs", "test", path, "probability", root=tmp_path, limit=6)


def test_answers_are_read_or_refused_with_a_remedy(tmp_path):
    (tmp_path / "plain.txt").write_text('4\n\n"5"\n')
    assert read_texts(tmp_path / "plain.txt") == ["4", "", '"5"']
    (tmp_path / "lines.jsonl").write_text('"a\\nb"\n{"output": ""}\n{"answer": "5"}')
    assert read_texts(tmp_path / "lines.jsonl") == ["a\nb", "", "5"]
    contents = {
        "empty.jsonl": ("", "empty.jsonl are an empty file; write one answer per line"),
        "number.jsonl": (
            '"4"\n4\n',
            "number.jsonl, line 2 is '4'; write a string, or an object whose 'output' or 'answer' ",
        ),
        "other.jsonl": ('{"reply": "4"}\n', 'line 1 is \'{"reply": "4"}\'; write a string'),
        "plain.jsonl": ("[0 1]\n", "plain.jsonl, line 1 is no JSON"),
        "deep.jsonl": ("[" * 100_000 + "]" * 100_000 + "\n", "deep.jsonl, line 1 is no JSON"),
        "answers.npy": ("", "answers.npy has no texts; write one answer per line into a .jsonl or .txt file"),
    }
    for name, (content, message) in contents.items():
        (tmp_path / name).write_text(content)
        with pytest.raises(EvaluationError, match=message):
            read_texts(tmp_path / name)
    (tmp_path / "latin.txt").write_bytes(b"\xe9\n")
    for name in ("latin.txt", "absent.txt"):
        with pytest.raises(EvaluationError, match="cannot read answers from"):
            read_texts(tmp_path / name)


@pytest.fixture
def words(tmp_path):
    """The right answers to the first ten test puzzles of clutrr/gen_23, as words."""
    splits = graphbench.Loader("clutrr/gen_23", root=tmp_path, limit=10, workers=1).load(["test"])
    names = splits.card.classes["answer"]
    return [names[int(splits.test[i].answer)] for i in range(10)]


@pytest.mark.parametrize("ending", ["lines.txt", "strings.jsonl", "objects.jsonl", "answers.jsonl"])
def test_classes_are_scored_by_their_names(ending, words, tmp_path):
    wrong = "father" if words[9] != "father" else "mother"
    given = [words[0].upper(), f" {words[1]}", *words[2:9], wrong]
    lines = {
        "lines.txt": given,
        "strings.jsonl": [json.dumps(word) for word in given],
        "objects.jsonl": [json.dumps({"output": word, "id": 1}) for word in given],
        "answers.jsonl": [json.dumps({"answer": f"**{word.replace('-', ' ')}**."}) for word in given],
    }[ending]
    path = tmp_path / ending
    path.write_text("\n".join(lines) + "\n")
    options = {"root": tmp_path, "limit": 10}
    score = scored("gen_23", "test", path, "probability", **options)["test"]
    assert score["accuracy"] == pytest.approx(0.9) and score.graphs == 10
    path.write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(EvaluationError, match="9"):
        scored("gen_23", "test", path, "probability", **options)


def test_answers_that_name_no_class_are_wrong_and_counted(words, tmp_path, caplog):
    path = tmp_path / "words.txt"
    options = {"root": tmp_path, "limit": 10}
    path.write_text("\n".join([*words[:3], "cousin", "", *words[5:]]))
    score = scored("clutrr/gen_23", "test", path, "probability", **options)["test"]
    assert score["accuracy"] == pytest.approx(0.8) and score.graphs == 10
    assert f"2 of 10 answers name no class and count as wrong, the first in line 4 of {path}: 'cousin'" in caplog.text
    path.write_text("\n".join(["6"] * 10))
    with pytest.raises(EvaluationError, match=r"'answer', such as '6'.*father"):
        scored("clutrr/gen_23", "test", path, "probability", **options)


def test_words_are_for_classes_that_have_names(words, tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("\n".join(words))
    message = r"words\.txt holds words, but algoreas/mst_easy asks for edge mask, whose values have no names"
    with pytest.raises(EvaluationError, match=message):
        scored("mst_easy", "test", path, "probability", root=tmp_path, limit=3)


@pytest.mark.parametrize("task", ["mis", "coloring"])
@pytest.mark.thorough
def test_solutions_and_scores_of_graphs_are_scored(task, tmp_path):
    address, options = f"co/ba_small:{task}", {"root": tmp_path, "limit": 3}
    test = graphbench.Loader(address, workers=1, **options).load(())["test"]
    batch = next(iter(test.batches(3)))
    labels, path = batch[task].numpy(), tmp_path / "own.npy"
    np.save(path, labels)
    found = scored(address, "test", path, "logit", **options)["test"]
    assert found["ratio"] == found["matched"] == 1.0
    scores = np.random.default_rng(0).normal(size=(len(labels), *((9,) if task == "coloring" else ())))
    np.save(path, scores)
    found = scored(address, "test", path, "logit", **options)["test"]
    assert found == graphbench.Evaluator(address).evaluate(batch, scores)
    np.save(path, scores[:-1])
    with pytest.raises(EvaluationError, match=r"own.npy has 847 rows.*co/ba_small"):
        scored(address, "test", path, "logit", **options)
    np.save(path, np.full_like(scores, np.nan))
    with pytest.raises(DecodingError, match=r"node 0 of graph 0 is \[?nan"):
        scored(address, "test", path, "logit", **options)
    np.save(path, np.ones_like(labels))
    with pytest.raises(DecodingError, match="graph 0"):
        scored(address, "test", path, "logit", **options)
