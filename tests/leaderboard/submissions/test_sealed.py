"""Sealed entries: five honest ones are verified, and more than twenty forgeries are not."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import graphbench
from graphbench.core.errors import ResultError
from graphbench.core.processes.isolated import IsolationLimits, isolation_fault, run_isolated
from graphbench.leaderboard import leaderboard_of
from graphbench.leaderboard.submissions import check_submission, rehearse, seal, verify_sealed
from graphbench.leaderboard.submissions.seals import read_seal
from graphbench.records.files import load_records, read_record, save_record
from graphbench.records.record import DIGEST, _digest
from graphbench.training.checkpoint import load_tensors, save_tensors

MST = "algoreas/mst_easy"
BRIDGES = "algoreas/bridges_easy"
WEIGHTS = Path(__file__).parents[3] / "baselines" / "weights"
BEACON = "dice 4 2 6 6 1 3, thrown after the seal"
LIMIT = 24

closed = pytest.mark.skipif(isolation_fault() is not None, reason=f"no closed processes here: {isolation_fault()}")

ALGORITHM = """
import networkx as nx
import torch

def load(weights):
    def trees(batch):
        found = torch.zeros(batch.edge_index.shape[1])
        graph = nx.Graph()
        ends, weight = batch.edge_index.t().tolist(), batch.weight.flatten().tolist()
        for column, ((a, b), cost) in enumerate(zip(ends, weight)):
            if not graph.has_edge(a, b):
                graph.add_edge(a, b, weight=cost, column=column)
        for *_, data in nx.minimum_spanning_edges(graph, data=True):
            found[data["column"]] = found[data["column"] ^ 1] = 1.0
        return found
    return trees
"""

THRESHOLD = """
import torch
from safetensors.torch import load_file

def load(weights):
    tensors = load_file(weights)
    return lambda batch: torch.sigmoid(tensors["scale"][0] * (tensors["scale"][1] - batch.weight.flatten().float()))
"""


@pytest.fixture(autouse=True)
def sealed_on_one_day(monkeypatch):
    """Seal at one moment, so that every run of the tests has the same draws and no outcome depends on chance."""

    class Moment(datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(2026, 1, 1, tzinfo=tz)

    monkeypatch.setattr("graphbench.leaderboard.submissions.seals.datetime", Moment)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


def entry(folder, model="my_model", dataset=MST, code=None, tensors=None, seed=0, **files):
    """Make the folder of an entry; ``tensors`` are its weights, or the file of stored weights."""
    folder.mkdir(parents=True, exist_ok=True)
    named = f"schema: 1\nmodel: {model}\nauthors: [Ada]\nlicence: CC-BY-4.0\ndatasets:\n  {dataset}:\n"
    (folder / "submission.yaml").write_text(named)
    if code is not None:
        (folder / "code").mkdir(exist_ok=True)
        (folder / "code" / "model.py").write_text(code)
    if tensors is not None:
        place = folder / "weights" / dataset / f"seed{seed}.safetensors"
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(tensors, place) if isinstance(tensors, Path) else save_file(tensors, place)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def threshold():
    import torch

    return {"scale": torch.tensor([25.0, 1.0])}


def stored(dataset, model):
    return WEIGHTS / dataset / f"{model}.safetensors"


def verified(folder, root, **options):
    options = {"limit": LIMIT, "root": root, "workers": 1, "progress": False, **options}
    (result,) = verify_sealed(folder, BEACON, **options)
    return result


def refused(folder, root, **options):
    """Return why an entry is not verified."""
    try:
        result = verified(folder, root, **options)
    except ResultError as error:
        return str(error)
    assert result.outcome in ("refused", "impossible") and result.record is None
    return result.reason


# ------------------------------------------------------------------------------------------- honest entries


@pytest.mark.parametrize(
    ("dataset", "model"), [(BRIDGES, "arcs"), ("clutrr/gen_23", "epignn"), ("clrs/bfs", "mpnn_sizes")]
)
def test_weights_of_the_package_are_verified(tmp_path, root, dataset, model):
    folder = entry(tmp_path / "entry", model, dataset, tensors=stored(dataset, model))
    made, _ = seal(folder)
    result = verified(folder, root, records=tmp_path / "records", commitment=made.commitment)
    assert result.outcome == "verified" and not result.reason
    found = result.verification
    assert (found.commitment, found.beacon, found.graphs) == (made.commitment, BEACON, LIMIT)
    metric = graphbench.Loader(dataset, root=root, limit=LIMIT).load(()).card.metrics.primary
    again = graphbench.evaluate_model(
        graphbench.load_model(dataset, stored(dataset, model)),
        graphbench.Loader(dataset, root=root, limit=LIMIT, data_seed=found.data_seed).load(())["test"],
    )
    assert found.score == again[metric] and found.data_hash != result.record.data_hashes["test"]
    (record,) = load_records(records=tmp_path / "records")
    assert record == result.record and record.recomputed_from == "weights"
    (board,) = [b for b in leaderboard_of([record]).boards if b.budget_class == "open"]
    assert board.rows[0].provenance == "verified"
    with pytest.raises(ResultError, match=f"scored on {LIMIT} samples, and a verification on 1 would replace it"):
        verify_sealed(folder, BEACON, root=root, limit=1, records=tmp_path / "records")


@closed
@pytest.mark.slow
def test_own_code_and_weights_are_verified_and_repeated_with_the_same_bits(tmp_path, root):
    folder = entry(tmp_path / "entry", code=THRESHOLD, tensors=threshold())
    seal(folder)
    enough = {"limit": 200, "records": tmp_path / "records"}  # a threshold is little better than none on a few graphs
    first = verified(folder, root, **enough)
    assert first.outcome == "verified" and first.verification.runs == "code"
    assert first.verification.scrambled < first.verification.score - 0.05
    assert first.record.parameters == sum(value.numel() for value in threshold().values())  # counted in the file
    second = verified(folder, root, **enough)
    assert second.verification.score == first.verification.score
    with pytest.raises(ResultError, match="a commitment has one draw"):
        verify_sealed(folder, "another public text", root=root, limit=LIMIT, records=tmp_path / "records")


@closed
@pytest.mark.slow
def test_a_model_that_computes_labels_is_listed_as_an_algorithm(tmp_path, root):
    folder = entry(tmp_path / "entry", code=ALGORITHM)
    seal(folder)
    result = verified(folder, root)
    assert result.outcome == "algorithm" and result.verification.score == 1.0 and result.verification.algorithm


# ------------------------------------------------------------------------------------------- forged folders


def test_predictions_alone_cannot_be_sealed(tmp_path):
    folder = entry(tmp_path / "entry")
    (folder / "predictions" / MST / "seed0").mkdir(parents=True)
    np.save(folder / "predictions" / MST / "seed0" / "test.npy", np.zeros(3))
    with pytest.raises(ResultError, match="predictions cannot be sealed"):
        seal(folder)
    with pytest.raises(ResultError, match="is not sealed"):
        verify_sealed(folder, BEACON)


def changed_weights(folder):
    path = next(folder.rglob("*.safetensors"))
    save_file({name: tensor + 1 for name, tensor in load_file(path).items()}, path)


def changed_code(folder):
    (folder / "code" / "model.py").write_text(ALGORITHM)


def added_code(folder):
    (folder / "code" / "labels.py").write_text("LABELS = [1]")


def renamed_model(folder):
    path = folder / "submission.yaml"
    path.write_text(path.read_text().replace("my_model", "other_model"))


def more_weights(folder):
    path = next(folder.rglob("*.safetensors"))
    shutil.copy(path, path.with_name("seed1.safetensors"))


def changed_seal(folder):
    path = folder / "seal.json"
    path.write_text(path.read_text().replace("my_model", "other_model"))


def linked_weights(folder):
    path = next(folder.rglob("*.safetensors"))
    moved = path.rename(folder.parent / "elsewhere.safetensors")
    path.symlink_to(moved)


def pickled_weights(folder):
    path = next(folder.rglob("*.safetensors"))
    path.rename(path.with_suffix(".pt"))


@pytest.mark.parametrize(
    ("forge", "words"),
    [
        (changed_weights, "seed0.safetensors was changed after the entry was sealed"),
        (changed_code, "code/model.py was changed after"),
        (added_code, "code/labels.py was added after"),
        (renamed_model, "model was changed, submission.yaml was changed after"),
        (more_weights, "seed1.safetensors was added after"),
        (changed_seal, "seal.json was changed after the entry was sealed"),
        (linked_weights, "symbolic link"),
        (pickled_weights, "as safetensors"),
    ],
)
def test_a_folder_that_changed_after_the_seal_is_refused(tmp_path, root, forge, words):
    folder = entry(tmp_path / "entry", code=THRESHOLD, tensors=threshold())
    seal(folder)
    forge(folder)
    assert words in refused(folder, root)


def test_a_second_seal_has_another_commitment_than_the_published_one(tmp_path, root):
    """Sealing 100 times when the text is known, to choose among 100 draws, ends here."""
    folder = entry(tmp_path / "entry", code=THRESHOLD, tensors=threshold())
    published = seal(folder)[0].commitment
    with pytest.raises(ResultError, match=r"is sealed already .* remove seal.json"):
        seal(folder)
    (folder / "seal.json").unlink()
    (folder / "code" / "notes.txt").write_text("1")
    assert seal(folder)[0].commitment != published
    assert "was published: it was sealed anew" in refused(folder, root, commitment=published)


@pytest.mark.parametrize("beacon", ["", "x", "12345", "a\x1bb" * 3, "long " * 200])
def test_a_beacon_is_a_text_of_some_length(tmp_path, beacon):
    folder = entry(tmp_path / "entry", code=THRESHOLD, tensors=threshold())
    seal(folder)
    with pytest.raises(ResultError, match="the beacon"):
        verify_sealed(folder, beacon)


def record_of(folder, root, tmp_path, dataset=BRIDGES, model="arcs", **changes):
    """Write a record of the true score with a new digest after changing it, as a forger would."""
    split = graphbench.Loader(dataset, root=root, limit=LIMIT).load(())["test"]
    score = graphbench.evaluate_model(graphbench.load_model(dataset, stored(dataset, model)), split)
    record = graphbench.RunRecord.from_scores({"test": split}, {"test": score}, model=model)
    path = save_record(record, folder / "records")
    content = json.loads(path.read_text())
    content.update(changes)
    content[DIGEST] = _digest({key: value for key, value in content.items() if key != DIGEST})
    path.write_text(json.dumps(content))
    return read_record(path)


def test_a_record_with_better_scores_than_its_weights_is_refused(tmp_path, root):
    folder = entry(tmp_path / "entry", "arcs", BRIDGES, tensors=stored(BRIDGES, "arcs"))
    tensors, facts = load_tensors(stored(BRIDGES, "arcs"))
    worse = {name: tensor * 0.3 for name, tensor in tensors.items()}
    save_tensors(next(folder.rglob("*.safetensors")), worse, facts)
    record_of(folder, root, tmp_path)
    seal(folder)
    words = refused(folder, root)
    assert "states f1" in words and "its weights score" in words


def test_a_verified_record_has_the_scores_that_were_computed_alone(tmp_path, root):
    """Scores on other splits, replicates and the number of weights could be forged: none of the author's is kept."""
    folder = entry(tmp_path / "entry", "arcs", BRIDGES, tensors=stored(BRIDGES, "arcs"))
    honest = record_of(folder, root, tmp_path)
    forged = {
        "scores": {**honest.scores, "n192": {"f1": 0.999}},
        "graphs_scored": {**honest.graphs_scored, "n192": LIMIT},
        "data_hashes": {**honest.data_hashes, "n192": honest.data_hashes["test"]},
        "replicates": {"test": [honest.scores["test"]["f1"]] * 200},
        "parameters": 7,
        "deterministic": True,
    }
    record_of(folder, root, tmp_path, **forged)
    seal(folder)
    record = verified(folder, root).record
    model = graphbench.load_model(BRIDGES, stored(BRIDGES, "arcs"))
    assert record.scores == honest.scores and record.replicates == honest.replicates
    assert record.graphs_scored == {"test": LIMIT}
    assert record.parameters == sum(p.numel() for p in model.parameters()) and record.deterministic is False


def test_a_limited_verification_does_not_vouch_for_the_score_of_the_whole_split(tmp_path, root):
    folder = entry(tmp_path / "entry", "arcs", BRIDGES, tensors=stored(BRIDGES, "arcs"))
    record_of(folder, root, tmp_path)
    seal(folder)
    result = verified(folder, root, limit=LIMIT // 2)
    split = graphbench.Loader(BRIDGES, root=root, limit=LIMIT // 2).load(())["test"]
    score = graphbench.evaluate_model(graphbench.load_model(BRIDGES, stored(BRIDGES, "arcs")), split)
    assert result.record.scores == {"test": dict(score)} and result.record.graphs_scored == {"test": LIMIT // 2}
    assert result.record.data_hashes["test"] == split.content_hash


def test_weights_of_the_package_under_another_name_are_refused(tmp_path, root):
    folder = entry(tmp_path / "entry", "mine", BRIDGES, tensors=stored(BRIDGES, "arcs"))
    seal(folder)
    assert "the weights are those of arcs, a model of this package" in refused(folder, root)
    tensors, _ = load_tensors(stored(BRIDGES, "arcs"))
    renamed = {f"own.{name}": tensor.float() for name, tensor in tensors.items()}
    other = entry(tmp_path / "other", "mine", BRIDGES, code=THRESHOLD, tensors=renamed)
    seal(other)
    assert "the weights are those of arcs, a model of this package" in refused(other, root)


def test_a_refused_verification_leaves_its_beacon(tmp_path, root):
    folder = entry(tmp_path / "entry", "mine", BRIDGES, tensors=stored(BRIDGES, "arcs"))
    seal(folder)
    records = tmp_path / "records"
    assert "those of arcs" in refused(folder, root, records=records)
    with pytest.raises(ResultError, match=r"with the beacon .* was begun already; a commitment has one draw"):
        verify_sealed(folder, "another public text", root=root, limit=LIMIT, records=records)
    assert len((records / "verifications.jsonl").read_text().splitlines()) == 1
    assert "those of arcs" in refused(folder, root, records=records)
    assert len((records / "verifications.jsonl").read_text().splitlines()) == 1
    (records / "verifications.jsonl").write_text("{")
    with pytest.raises(ResultError, match=r"verifications\.jsonl is damaged"):
        verify_sealed(folder, BEACON, root=root, limit=LIMIT, records=records)


def test_a_record_that_says_it_was_verified_is_refused(tmp_path, root):
    folder = entry(tmp_path / "entry", "arcs", BRIDGES, tensors=stored(BRIDGES, "arcs"))
    seal(folder)
    honest = verified(folder, root).record.model_dump(mode="json")
    other = entry(tmp_path / "forged", "arcs", BRIDGES)
    record_of(other, root, tmp_path, verification=honest["verification"])
    report = check_submission(other, root=root)
    assert not report.accepted and "verified on a sealed draw" in str(report.to_dict())
    shutil.rmtree(other / "records")
    record_of(other, root, tmp_path, recomputed_from="predictions")
    report = check_submission(other, root=root)
    assert not report.accepted and "which are not here" in str(report.to_dict())


def test_an_edited_record_does_not_load(tmp_path, root):
    folder = entry(tmp_path / "entry", "arcs", BRIDGES, tensors=stored(BRIDGES, "arcs"))
    record_of(folder, root, tmp_path)
    path = next((folder / "records").rglob("*.json"))
    path.write_text(path.read_text().replace('"steps": null', '"steps": 5'))
    seal(folder)
    assert "its digest does not fit" in refused(folder, root)


def test_an_earlier_seal_of_the_model_stays_in_the_record(tmp_path, root):
    """The best of many sealed entries is chosen in the open: the record names the draws of all."""
    records = tmp_path / "records"
    commitments = []
    for number in range(3):
        folder = entry(tmp_path / f"entry{number}", "arcs", BRIDGES, tensors=stored(BRIDGES, "arcs"))
        (folder / "submission.yaml").write_text((folder / "submission.yaml").read_text() + f"# try {number}\n")
        commitments.append(seal(folder)[0].commitment)
        result = verified(folder, root, records=records)
    assert [seal.commitment for seal in result.verification.earlier] == commitments[:2]


def test_data_that_nobody_can_draw_again_say_so(tmp_path, root):
    folder = entry(tmp_path / "entry", "arcs", BRIDGES, tensors=stored(BRIDGES, "arcs"))
    seal(folder)
    result = verified(folder, root, patience=0.0)
    assert result.outcome == "impossible" and "takes" in result.reason and "give a limit" in result.reason


# ------------------------------------------------------------------------------------------- forged code

MEMORY = """
import hashlib, json
from pathlib import Path
import torch

KNOWN = json.loads(Path(__file__).with_name("labels.json").read_text())

def load(weights):
    def look_up(batch):
        rows = []
        for first, last in zip(batch.ptr[:-1].tolist(), batch.ptr[1:].tolist()):
            own = (batch.edge_index[0] >= first) & (batch.edge_index[0] < last)
            key = hashlib.sha256(batch.weight[own].float().numpy().tobytes()).hexdigest()
            rows.append(torch.tensor(KNOWN.get(key, [0.0] * int(own.sum()))))
        return torch.cat(rows)
    return look_up
"""


@closed
@pytest.mark.slow
def test_labels_that_were_learned_by_heart_are_refused(tmp_path, root):
    """Also: the answers of a solver, and weights that were trained on the known test draw."""
    split = graphbench.Loader(MST, root=root, limit=LIMIT).load(())["test"]
    labels = {
        hashlib.sha256(data.weight.float().numpy().tobytes()).hexdigest(): data.in_tree.tolist() for data in split
    }
    folder = entry(tmp_path / "entry", code=MEMORY, tensors=threshold())
    (folder / "code" / "labels.json").write_text(json.dumps(labels))
    seal(folder)
    words = refused(folder, root)
    assert "f1 is 0 on the sealed draw and 1 on the canonical draw" in words


NOTHING = "lambda batch: torch.zeros(batch.edge_index.shape[1])"
FORGED = {
    "reads the labels of the draw": (
        "import graphbench, pathlib\n"
        "def load(weights):\n"
        "    places = map(pathlib.Path, ('{root}', '/root', '/home', '/work'))\n"
        "    everything = [path for place in places for path in place.rglob('*.h5')]\n"
        "    found = [path for path in everything if 'site-packages' not in path.parts]  # files of tests of h5py\n"
        "    raise SystemExit(f'{len(found)} files seen')",
        "0 files seen",
    ),
    "loads the dataset": (
        "import graphbench\ndef load(weights):\n    return graphbench.Loader('algoreas/mst_easy', root='{root}', "
        "limit=24).load(())['test'].nothing",
        "the code failed",
    ),
    "asks the network": (
        "import socket\ndef load(weights):\n    socket.create_connection(('1.1.1.1', 80), timeout=5)",
        "unreachable",
    ),
    "writes into its code": (
        "import pathlib\ndef load(weights):\n    pathlib.Path('/code/other.py').write_text('1')",
        "Read-only file system",
    ),
    "starts a process that stays": (
        "import subprocess, time\ndef load(weights):\n    subprocess.Popen(['sleep', '1000'])\n    time.sleep(1000)",
        "did not end within",
    ),
    "takes all memory": (
        "import numpy as np\ndef load(weights):\n    return np.ones((1 << 34,), np.float64)",
        "the code failed",
    ),
    "reads a clock": (
        "import time, torch\ndef load(weights):\n    return lambda batch: "
        "torch.rand(batch.edge_index.shape[1], generator=torch.Generator().manual_seed(time.time_ns() % 2**40))",
        "two runs of the code on the same samples gave different predictions",
    ),
    "draws without a seed": (
        "import numpy as np, torch\ndef load(weights):\n    return lambda batch: "
        "torch.tensor(np.random.default_rng().random(batch.edge_index.shape[1]))",
        "two runs of the code on the same samples gave different predictions",
    ),
    "returns too few predictions": (
        "import torch\ndef load(weights):\n    return lambda batch: torch.zeros(3)",
        "edges",
    ),
    "returns what is no number": (
        "import torch\ndef load(weights):\n"
        "    return lambda batch: torch.full((batch.edge_index.shape[1],), float('nan'))",
        "values are not finite",
    ),
    "links its predictions": (
        "import os, sys, torch\ndef load(weights):\n    os.symlink('/etc/passwd', '/out/known.npz')\n    sys.exit(0)",
        "without predictions",
    ),
    "asks for the labels in the batch": (
        "import torch\ndef load(weights):\n    return lambda batch: batch.in_tree",
        "the code failed",
    ),
    "asks for y": (
        "import torch\ndef load(weights):\n    return lambda batch: batch.y.float()",
        "the code failed",
    ),
    "takes a model of the package": (
        "import graphbench\ndef load(weights):\n    return graphbench.load_model('algoreas/mst_easy', 'pairs')",
        "the code failed",
    ),
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"code": "def load(weights:"}, "code/model.py is no Python"),
        ({"code": "import torch"}, "defines no function load"),
        ({"code": None}, "was not written by `graphbench weights export`"),
        ({"tensors": {"a": torch.tensor([float("nan")])}}, "not finite in 'a'"),
    ],
)
def test_what_cannot_work_is_not_sealed(tmp_path, change, message):
    folder = entry(tmp_path / "entry", **({"code": "def load(weights):\n    ...\n", "tensors": threshold()} | change))
    with pytest.raises(ResultError, match=re.escape(message)):
        seal(folder)
    assert not (folder / "seal.json").exists()


def test_a_rehearsal_scores_the_known_draw_and_names_what_fails(tmp_path, root):
    folder = entry(tmp_path / "entry", "arcs", BRIDGES, tensors=stored(BRIDGES, "arcs"))
    ((dataset, seed, score),) = rehearse(folder, samples=8, root=root, workers=1)
    assert (dataset, seed) == (BRIDGES, 0) and score > 0.9
    assert not (folder / "seal.json").exists()


@closed
@pytest.mark.slow
def test_a_rehearsal_says_where_logits_are_named(tmp_path, root):
    logits = "import torch\ndef load(weights):\n    return lambda batch: torch.full((batch.edge_index.shape[1],), -3.0)"
    folder = entry(tmp_path / "entry", code=logits, tensors=threshold())
    with pytest.raises(ResultError, match=f"write `scores: logit` below {MST} in submission.yaml"):
        rehearse(folder, samples=4, root=root, workers=1)


@closed
@pytest.mark.slow
def test_a_rehearsal_refuses_code_that_answers_twice_in_two_ways(tmp_path, root):
    code = "import torch\ndef load(weights):\n    return lambda batch: torch.rand(batch.edge_index.shape[1])"
    folder = entry(tmp_path / "entry", code=code, tensors=threshold())
    with pytest.raises(ResultError, match="two runs of the code on the same samples gave different predictions"):
        rehearse(folder, samples=4, root=root, workers=1)


def test_copies_of_one_seed_are_not_sealed(tmp_path):
    for seed in (0, 1):
        folder = entry(tmp_path / "entry", code="from torch import load\n", tensors=threshold(), seed=seed)
    with pytest.raises(ResultError, match="is a copy of"):
        seal(folder)


def test_a_sealed_draw_of_puzzles_holds_out_what_the_dataset_holds_out():
    from graphbench.catalog.names import card
    from graphbench.data.components.domain import find

    canonical = card("clutrr/gen_23")
    generator = find("generator", canonical.generator)
    other, further = (canonical.with_data_seed(7, keeps_choices=keeps) for keeps in (False, True))
    assert generator.parse(further, "test") == generator.parse(canonical, "test") != generator.parse(other, "test")
    assert len({generator.fingerprint(c) for c in (canonical, other, further)}) == 3


@closed
@pytest.mark.slow
@pytest.mark.parametrize("name", FORGED)
def test_forged_code_is_refused(tmp_path, root, name):
    code, words = FORGED[name]
    folder = entry(tmp_path / "entry", code=code.replace("{root}", str(root)), tensors=threshold())
    seal(folder)
    limits = IsolationLimits(seconds=60.0, memory_bytes=4 * 2**30)
    assert words in refused(folder, root, limits=limits)


KNOWS_ITS_WEIGHTS = (
    "import hashlib\n"
    + ALGORITHM.replace("def load(weights):", "def compute(weights):")
    + "\ndef load(weights):\n    if hashlib.sha256(weights.read_bytes()).hexdigest() != {digest!r}:\n"
    "        raise ValueError('other weights')\n    return compute(weights)\n"
)


@closed
@pytest.mark.slow
@pytest.mark.parametrize("checks", [False, True])
def test_an_algorithm_with_idle_weights_is_an_algorithm(tmp_path, root, checks):
    folder = entry(tmp_path / "entry", code=ALGORITHM, tensors=threshold())
    if checks:
        digest = hashlib.sha256(next(folder.rglob("*.safetensors")).read_bytes()).hexdigest()
        (folder / "code" / "model.py").write_text(KNOWS_ITS_WEIGHTS.replace("{digest!r}", repr(digest)))
    seal(folder)
    result = verified(folder, root)
    assert result.outcome == "algorithm" and (result.verification.scrambled is None) == checks


@closed
def test_a_closed_child_sees_what_it_is_given_alone(tmp_path):
    secret, given, out = tmp_path / "secret", tmp_path / "given", tmp_path / "out"
    for folder in (secret, given, out):
        folder.mkdir()
    (secret / "labels").write_text("1")
    (given / "probe.py").write_text(
        "import os, pathlib, socket\n"
        f"seen = [pathlib.Path({str(secret)!r}).exists(), pathlib.Path('/given/probe.py').exists(), len(os.environ)]\n"
        "interfaces = [name for _, name in socket.if_nameindex()]\n"
        "pathlib.Path('/out/seen').write_text(repr((seen, interfaces, os.getpid() < 10)))\n"
    )
    run_isolated(
        "timeit",
        ["-n", "1", "-r", "1", "import runpy; runpy.run_path('/given/probe.py')"],
        {"/given": given},
        out,
        limits=IsolationLimits(seconds=60),
    )
    (exists, sees_given, variables), interfaces, first_processes = eval((out / "seen").read_text())
    assert (exists, sees_given, interfaces, first_processes) == (False, True, ["lo"], True) and variables < 15


def test_a_seal_is_read_as_it_was_written(tmp_path):
    folder = entry(tmp_path / "entry", code=THRESHOLD, tensors=threshold())
    made, path = seal(folder)
    assert read_seal(folder) == made and json.loads(path.read_text())["commitment"] == made.commitment
    assert set(made.weights) == {f"weights/{MST}/seed0.safetensors"} and set(made.code) == {"code/model.py"}
