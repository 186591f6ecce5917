"""Training and scoring as the command line asks for them."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

import graphbench
from graphbench.cli.runs import read_predictions, read_texts, score_predictions, train_seeds
from graphbench.errors import EvaluationError
from graphbench.evaluation import results
from graphbench.training import trainer

OPTIONS = {"limit": None, "eval_limit": None, "root": None, "workers": None}


@pytest.fixture
def calls(monkeypatch):
    """What training and saving of records were called with; neither is done."""
    found = SimpleNamespace(trained=[], saved=[])

    def train(dataset, model, *, seed, output, **_):
        found.trained.append((seed, output))
        return SimpleNamespace(record=f"record of seed {seed}")

    monkeypatch.setattr(trainer, "train", train)
    monkeypatch.setattr(results, "save_record", lambda record, folder: found.saved.append((record, folder)))
    return found


@pytest.mark.parametrize("seeds", [None, []])
def test_no_seed_means_the_configurations_own(calls, tmp_path, seeds):
    train_seeds("mst_easy", "gin", seeds=seeds, output=tmp_path, records=None, **OPTIONS)
    assert calls.trained == [(None, tmp_path)]


def test_every_seed_is_trained_once_in_a_folder_of_its_own(calls, tmp_path):
    train_seeds("mst_easy", "gin", seeds=[3, 1, 3], output=tmp_path, records=None, **OPTIONS)
    assert calls.trained == [(3, tmp_path / "seed3"), (1, tmp_path / "seed1")]
    train_seeds("mst_easy", "gin", seeds=[5, 5], output=tmp_path, records=None, **OPTIONS)
    assert calls.trained[-1] == (5, tmp_path)


@pytest.mark.parametrize(("rank", "saves"), [(None, 1), ("0", 1), ("1", 0)])
def test_process_0_alone_saves_records(calls, tmp_path, monkeypatch, rank, saves):
    if rank is None:
        monkeypatch.delenv("RANK", raising=False)
    else:
        monkeypatch.setenv("RANK", rank)
    train_seeds("mst_easy", "gin", seeds=[2], output=None, records=tmp_path, **OPTIONS)
    assert calls.saved == [("record of seed 2", tmp_path)] * saves


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
    messages = {
        "empty.npy": "empty.npy are an empty file; write them with numpy.save",
        "damaged.npz": "cannot read predictions from",
        "unnamed.npz": "holds other; name the array y_pred",
        "single.npy": "holds the single value 3.0; save one row per item",
        "objects.npy": "cannot read predictions from",
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
    found = score_predictions("clrs_text/bfs", "test", path, "probability", root=tmp_path, limit=6)
    assert {name: score["exact_match"] for name, score in found.items()} == {
        "test": pytest.approx(5 / 6), **{f"test_n{size}": float(size < 9) for size in range(4, 10)}
    }  # fmt: skip
    path.write_text("\n".join(rows[:-1]))
    with pytest.raises(EvaluationError, match=r"has 5 answers, clrs_text/bfs test has 6 prompts; .* \(--limit N"):
        score_predictions("clrs_text/bfs", "test", path, "probability", root=tmp_path, limit=6)


def test_answers_are_read_or_refused_with_a_remedy(tmp_path):
    (tmp_path / "plain.txt").write_text('4\n\n"5"\n')
    assert read_texts(tmp_path / "plain.txt") == ["4", "", '"5"']
    (tmp_path / "lines.jsonl").write_text('"a\\nb"\n{"output": ""}')
    assert read_texts(tmp_path / "lines.jsonl") == ["a\nb", ""]
    contents = {
        "empty.jsonl": ("", "empty.jsonl are an empty file; write one answer per line"),
        "number.jsonl": ('"4"\n4\n', "number.jsonl, line 2 is '4'; write a string, or an object whose 'output' is one"),
        "other.jsonl": ('{"answer": "4"}\n', 'line 1 is \'{"answer": "4"}\'; write a string'),
        "plain.jsonl": ("[0 1]\n", "plain.jsonl, line 1 is no JSON"),
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
