"""Generation as a kind of task: a toy verifier of cycles, its forms of answers, files and errors."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import torch
import yaml
from pydantic import BaseModel
from torch_geometric.data import Batch, Data

import graphbench
from graphbench.catalog.families import load_family
from graphbench.catalog.features import Location
from graphbench.catalog.names import catalog
from graphbench.cli.predictions import score_predictions
from graphbench.core.errors import CardError, EvaluationError, ResultError
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.domain import unregister
from graphbench.data.components.generators import Generator
from graphbench.data.components.verifiers import EDGE_INDEX, EDGES, NODES, Verdict, Verifier
from graphbench.evaluation.metrics import METRICS
from graphbench.records.record import RunRecord
from graphbench.tasks.base import named_scores
from graphbench.tasks.generate.files import numbered_files
from graphbench.tasks.registry import task_of
from graphbench.verification import check_card

CARD = {
    "version": 1,
    "title": "Toy cycles",
    "summary": "A cycle of a given length.",
    "generator": "cycles.lengths",
    "features": {"length": ["output", "graph", "scalar"]},
    "task": {"type": "generate", "options": {"verifier": "cycles.verifier"}},
    "splits": {name: {"count": 9} for name in ("train", "val", "test")},
    "metrics": {"primary": "quality", "also": ["valid", "correct"]},
    "licence": "CC0",
    "source": {"paper": "none"},
}
TEXTS = ("", "no cycle", "another length", "unreadable", "missing")


class Nothing(BaseModel):
    pass


def generate(parameters, key, indices, attempts):
    lengths = 3 + indices
    paths = [np.stack([np.arange(length - 1), np.arange(1, length)], axis=1) for length in lengths]
    return Samples(lengths, lengths - 1, np.concatenate(paths), {"length": lengths.astype(np.float32)})


def graphs_of(answers):
    """Yield each answer as a list of edges, or a number of :data:`TEXTS`."""
    if isinstance(answers, dict):
        ends = np.cumsum(answers[EDGES])
        for i, end in enumerate(ends):
            rows = slice(end - answers[EDGES][i], end)
            edges = answers[EDGE_INDEX][:, rows][:, np.argsort(answers["place"][rows])]
            yield edges.T.tolist() if answers[NODES][i] else 4
        return
    for item in answers:
        if item is None:
            yield 4
        elif isinstance(item, dict):
            yield np.asarray(item[EDGE_INDEX]).T.tolist() if item.get(EDGE_INDEX) is not None else 3
        else:
            text = item.decode() if isinstance(item, bytes) else item.read_text()
            yield yaml.safe_load(text) if text else 3


def verifier(fields, answers):
    reasons = []
    for length, edges in zip(fields["length"], graphs_of(answers), strict=True):
        if isinstance(edges, int):
            reasons.append(edges)
            continue
        g = nx.Graph(edges)
        ring = g.number_of_nodes() == g.number_of_edges() and nx.is_connected(g) and {d for _, d in g.degree} == {2}
        reasons.append(1 if not ring else 0 if len(g) == length else 2)
    reasons = np.array(reasons)
    correct, valid = (reasons == 0).astype(float), np.isin(reasons, (0, 2)).astype(float)
    values = {"quality": 100 * correct, "valid": valid, "correct": correct}
    parts = ["even" if length % 2 == 0 else "odd" for length in fields["length"]]
    return Verdict(values, reasons, TEXTS, parts, {i: "empty" for i, r in enumerate(reasons) if r == 3})


def flat(answers):
    edges = [np.array(own).T if not isinstance(own, int) else np.empty((2, 0), int) for own in graphs_of(answers)]
    return {
        NODES: np.array([int(own.max(initial=-1)) + 1 for own in edges]),
        EDGES: np.array([own.shape[1] for own in edges]),
        EDGE_INDEX: np.concatenate(edges, axis=1),
        "place": np.concatenate([np.arange(own.shape[1]) for own in edges]),
    }


def ring(length):
    edges = torch.tensor([[i, (i + 1) % length] for i in range(length)]).T
    return Data(edge_index=edges, num_nodes=length, place=torch.arange(length))


@pytest.fixture(scope="module", autouse=True)
def domain():
    lengths = Generator(
        name="cycles.lengths",
        version=1,
        parameters=Nothing,
        generate=generate,
        check=lambda parameters, samples: [],
        statistics=lambda parameters, samples: {},
        shard_size=lambda parameters: 100,
    )
    own = Verifier(
        name="cycles.verifier",
        answers="cycles",
        forms="a graph or a file of edges",
        graph_fields={"place": Location.EDGE},
        fields=("length",),
        metrics=("quality", "valid", "correct"),
        endings=(".edges",),
        verify=verifier,
        arrays=flat,
        floors=lambda samples: {"triangle": [{EDGE_INDEX: ring(3).edge_index}] * len(samples)},
        solvers=lambda samples: {
            "ring": [{EDGE_INDEX: ring(int(length)).edge_index} for length in samples.values["length"]]
        },
    )
    yield graphbench.register_domain(
        graphbench.Domain("cycles", generators={"lengths": lengths}, verifiers={"verifier": own})
    )
    unregister("cycles")


@pytest.fixture
def card_of(tmp_path):
    def load(**changes):
        path = tmp_path / "datasets" / "cycles" / "toy.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump({**CARD, **changes}, sort_keys=False))
        return load_family(path)[0]

    return load


@pytest.fixture
def data(card_of, tmp_path, monkeypatch):
    card = card_of()
    monkeypatch.setitem(catalog().cards, card.id, card)
    return graphbench.Loader(card.id, root=tmp_path, workers=1, progress=False).load()


def test_answers_of_every_form_score_the_same(card_of, data, caplog):
    card, graphs = card_of(), list(data.test)
    evaluator = graphbench.Evaluator(card, expected_graphs=9)
    lengths = [3, 4, 6, 6, 7, 8, 9, 10, 11]  # the third should be 5
    answers = [ring(length) for length in lengths]
    broken = [*answers[:6], Data(place=torch.arange(3)), None, Data(edge_index=torch.tensor([[0, 1], [1, 2]]))]
    score = evaluator.evaluate(graphs, broken)
    assert score.to_dict() == pytest.approx({"quality": 500 / 9, "valid": 6 / 9, "correct": 5 / 9})
    assert score.failures == {"no cycle": 1, "another length": 1, "unreadable": 1, "missing": 1}
    assert score.to_json_dict()["failures"] == score.failures and score.graphs == 9
    assert "answer 6 cannot be read and is worth 0: empty" in caplog.text
    shuffled = Batch.from_data_list(answers)
    order = torch.randperm(shuffled.num_edges, generator=torch.Generator().manual_seed(1))
    shuffled.edge_index, shuffled.place = shuffled.edge_index[:, order], shuffled.place[order]
    forms = [
        answers,
        Batch.from_data_list(answers),
        shuffled,
        [{EDGE_INDEX: answer.edge_index.numpy()} for answer in answers],
        [yaml.safe_dump(answer.edge_index.T.tolist()).encode() for answer in answers],
        flat([{EDGE_INDEX: answer.edge_index} for answer in answers]),
    ]
    for samples in (graphs, Batch.from_data_list(graphs), {"length": np.arange(3, 12)}):
        for own in forms:
            assert evaluator.evaluate(samples, own)["quality"] == pytest.approx(800 / 9)
    one = evaluator.__class__(card).evaluate(graphs[0], ring(3))
    assert one.primary == 100 and one.graphs == 1


def test_updates_add_up_and_have_parts(card_of, data):
    evaluator = graphbench.Evaluator(card_of())
    graphs = list(data.test)
    for first in (0, 4):
        part = graphs[first : first + 4]
        evaluator.update(part, [ring(int(g.length)) if i % 2 else None for i, g in enumerate(part)])
    assert evaluator.compute().primary == 50 and evaluator.compute().failures == {"missing": 4}
    groups = evaluator.groups()
    assert list(groups) == ["even", "odd"] and groups["even"].primary == 100 and groups["odd"].primary == 0
    assert groups["odd"].failures == {"missing": 4} and groups["odd"].graphs == 4
    evaluator.reset()
    assert evaluator.evaluate(graphs, [None] * 9).to_dict() == {"quality": 0, "valid": 0, "correct": 0}


def test_wrong_arguments_are_refused(card_of, data):
    graphs = list(data.test)
    evaluator = graphbench.Evaluator(card_of(), expected_graphs=9)
    joined = Batch.from_data_list([ring(3), ring(4)])
    joined.edge_index = torch.tensor([[0], [4]])
    for samples, answers, words in (
        (graphs, b"folder", "no list of cycles; give one answer per sample: a graph or a file"),
        (graphs, "nowhere", "the text 'nowhere', which names no folder"),
        (graphs, None, "no list of cycles"),
        ([Data(x=torch.ones(1, 1))], [None], "no field 'length'"),
        ({}, [None], "no field 'length'"),
        (graphs, joined, "joins two graphs"),
        (graphs[:3], [None] * 3, "6 missing"),
    ):
        with pytest.raises(EvaluationError, match=words):
            evaluator.evaluate(samples, answers)
    with pytest.raises(EvaluationError, match="leave batch out"):
        evaluator.evaluate(graphs, [None] * 9, np.zeros(9))


def test_cards_that_do_not_fit(card_of):
    check_card(card_of())
    for changes, words in (
        ({"task": {"type": "generate"}}, r"task\.options.*verifier"),
        (
            {"task": {"type": "generate", "options": {"verifier": "cycles.verifer"}}},
            "did you mean 'verifier'|cycles has verifier",
        ),
        ({"metrics": {"primary": "f1"}}, "gives no metric 'f1'; use some of quality, valid, correct"),
        ({"metrics": {"primary": "quality", "also": ["mean_ands"]}}, "gives no metric 'mean_ands'"),
    ):
        with pytest.raises((CardError, EvaluationError), match=words):
            check_card(card_of(**changes))


def test_floors_and_solvers(card_of, data):
    card = card_of()
    task = task_of(card)
    samples = generate(None, None, np.arange(9), None)
    assert task.floors(samples, samples)["triangle"]["quality"] == pytest.approx(100 / 9)
    assert task.solvers(samples) == {"ring": {"quality": 100, "valid": 1, "correct": 1}}


def scored(path, root, splits=None, limit=None):
    found, _ = score_predictions("cycles/toy", splits, path, root=root, limit=limit)
    return {name: score.primary for name, score in found.items()}


def test_files_of_answers(tmp_path, data):
    folder = tmp_path / "answers"
    folder.mkdir()
    texts = [yaml.safe_dump(ring(3 + i).edge_index.T.tolist(), default_flow_style=True) for i in range(9)]
    for i in (0, 1, 2, 4):
        (folder / f"{i}.edges").write_text(texts[i] if i != 2 else "")
    direct = graphbench.Evaluator(data.card).evaluate(list(data.test), folder)
    assert direct.primary == pytest.approx(300 / 9) and direct.failures == {"missing": 5, "unreadable": 1}
    expected = {"test": pytest.approx(300 / 9), "test_even": 25, "test_odd": pytest.approx(40)}
    assert scored(folder, tmp_path) == expected
    deep = tmp_path / "several"
    deep.mkdir()
    folder.rename(deep / "test")
    assert scored(deep, tmp_path) == expected
    assert scored(deep / "test", tmp_path, limit=5)["test"] == 60
    lines = tmp_path / "val.txt"
    lines.write_text("".join(text.replace("\n", " ").strip() + "\n" for text in texts))
    assert scored(lines, tmp_path, splits="val")["val"] == 100
    task = task_of(data.card)
    whole = [ring(3 + i) if i != 4 else ring(9) for i in range(9)]
    path = task.write_predictions(
        tmp_path / "written", [[{EDGE_INDEX: g.edge_index.numpy()} for g in part] for part in (whole[:5], whole[5:])]
    )
    assert path.name == "written.npz" and scored(path, tmp_path)["test"] == pytest.approx(800 / 9)
    arrays = dict(np.load(path))
    of_graphs = dict(np.load(task.write_predictions(tmp_path / "graphs", [whole[:5], whole[5:]])))
    assert all(np.array_equal(array, arrays[name]) for name, array in of_graphs.items())
    for changes, words in (
        ({NODES: None}, "no array 'num_nodes'"),
        ({NODES: arrays[NODES][:4]}, "4 answers, the split has 9"),
        ({EDGES: arrays[EDGES] * 1.0}, "whole numbers"),
        ({"place": arrays["place"][:-1]}, "one row per edge"),
        ({EDGE_INDEX: arrays[EDGE_INDEX].T}, "edge_index has the shape"),
    ):
        own = {name: array for name, array in {**arrays, **changes}.items() if array is not None}
        np.savez(tmp_path / "bad.npz", **own)
        with pytest.raises(EvaluationError, match=words):
            scored(tmp_path / "bad.npz", tmp_path)
    for name, words in (("9.edges", "not expected"), ("x.edges", "not expected"), ("1.txt", "not expected")):
        (deep / "test" / name).write_text("")
        with pytest.raises(EvaluationError, match=words):
            scored(deep / "test", tmp_path)
        (deep / "test" / name).unlink()
    with pytest.raises(EvaluationError, match="has no predictions of any split"):
        scored(tmp_path / "datasets", tmp_path)


def test_models_bring_their_own_loss_and_answers(card_of):
    task = task_of(card_of())
    batch = Batch.from_data_list([ring(3), ring(4)])
    outputs = {"loss": torch.tensor([1.0, 3.0]), "answers": [None, None]}
    assert task.losses(outputs, batch)["loss"] == 2 and task.loss_weights(batch) == {"loss": 2}
    assert task.predictions(outputs, batch) == [None, None] and task.selection == ("loss", False)


def test_records_are_of_the_samples_that_were_judged(data):
    evaluator = graphbench.Evaluator(data.card.id)
    for batch in data.test.batches(4):
        evaluator.update(batch, [None] * batch.num_graphs)
    scores = named_scores("test", evaluator)
    assert scores["test"].samples[0].split == data.test.split_id
    record = RunRecord.from_scores({"test": data.test}, scores, model="nothing")
    assert record.graphs_scored["test"] == 9 and record.scores.keys() == scores.keys()
    for batch in data.val.batches(9):
        evaluator.update(batch, [None] * batch.num_graphs)
    with pytest.raises(ResultError, match="was measured on val"):
        RunRecord.from_scores({"test": data.test}, {"test": evaluator.compute()}, model="nothing")


@pytest.fixture
def example():
    """Run the example of the page on extensions, which registers a verifier and its metric."""
    page = Path(__file__).parents[2] / "docs" / "extending.md"
    section = page.read_text(encoding="utf-8").partition("\n## Verifiers\n")[2].partition("\n## ")[0]
    (code,) = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    (lines,) = re.findall(r"^```yaml\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    exec(compile(code, "extending.md", "exec"), {"__name__": "networks"})
    yield yaml.safe_load(lines)
    unregister("networks")
    METRICS.remove("mean_edges")


def test_the_documented_verifier_scores_its_metric(example, card_of):
    evaluator = graphbench.Evaluator(card_of(**example))
    towns = {"towns": np.array([3, 4, 4, 4, 3])}
    apart = {EDGE_INDEX: [[0, 2], [1, 3]]}
    answers = [ring(3), ring(4), ring(3), apart, None]
    score = evaluator.evaluate(towns, answers)
    assert score.to_dict() == pytest.approx({"correct": 2 / 5, "mean_edges": 7 / 2})
    assert score.failures == {"wrong towns": 1, "not connected": 1, "no graph": 1}
    arrays = evaluator.verifier.arrays([{EDGE_INDEX: answer.edge_index.numpy()} for answer in answers[:2]])
    assert arrays[NODES].tolist() == [3, 4] and arrays[EDGES].tolist() == [3, 4]
    assert evaluator.evaluate({"towns": np.array([3, 4])}, arrays)["correct"] == 1
    with pytest.raises(EvaluationError, match="5 samples"):
        evaluator.evaluate(towns, answers[:2])


def test_answers_may_have_the_names_of_the_files_of_their_samples(tmp_path):
    verifier = SimpleNamespace(endings=(".aig",), answers="circuits")
    names = ["ex03.truth", "ex1.b.truth.gz", "ex1.c.truth", "7.truth"]

    def found(*files: str, names=names):
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        for name in files:
            (folder / name).touch()
        return [None if path is None else path.name for path in numbered_files(folder, 4, verifier, names)]

    assert found("ex03.aig", "ex1.b.aig", "002.aig") == ["ex03.aig", "ex1.b.aig", "002.aig", None]
    with pytest.raises(EvaluationError, match="two answers to sample 0"):
        found("0.aig", "ex03.aig")
    for name in ("ex1.aig", "7.aig", "4.aig"):  # of two samples, a number first of all, and beyond the last
        with pytest.raises(EvaluationError, match=r"not expected.*or named like the files of the samples"):
            found(name)
    with pytest.raises(EvaluationError, match=r"scores the first N\)$"):
        found("ex03.aig", names=())
