"""Weights of finished runs: they are written once, come back as they were, and are refused where they would mislead."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

import graphbench
from graphbench.catalog import resources
from graphbench.core.errors import ArgumentError, CheckpointError, ConfigError, ResultError
from graphbench.records.files import read_record, save_record
from graphbench.training import checkpoint
from graphbench.training.config import load_config
from graphbench.training.evaluate import load_run
from graphbench.training.weights import export
from graphbench.training.weights.check import FEW, agree, check_weights
from graphbench.training.weights.export import export_weights
from graphbench.training.weights.files import read_weights, rows, weights_files, weights_path
from graphbench.training.weights.source import require_tensors

TINY = {"model.hidden": 8, "training.batch_size": 4, "training.eval_every": 4, "training.lr": 1e-2}
RUNS = {
    "graph": ("algoreas/bridges_easy", "gin_small"),
    "several": (["clrs/bfs", "clrs/minimum"], "mpnn_small"),
    "story": ("clutrr/gen_23", "bilstm_small"),  # its configuration is completed by a vocabulary
}


@dataclass(frozen=True)
class Run:
    """A finished run whose records are kept."""

    folder: Path
    results: Path
    root: Path
    datasets: tuple[str, ...]
    model: str

    def export(self, output, **options):
        return export_weights(self.folder, results=self.results, output=output, root=self.root, **options)

    def record(self, dataset=None):
        name = "record.json" if len(self.datasets) == 1 else f"records/{(dataset or self.datasets[0])!s}.json"
        return read_record(self.folder / name.replace("clrs/", "clrs-"))


@pytest.fixture(autouse=True)
def fewer_samples(monkeypatch):
    """Files state scores of the first 4 and 8 samples, to save time."""
    monkeypatch.setattr(export, "MANY", 8)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


def trained(root, home, kind, **changes):
    datasets, model = RUNS[kind]
    options = {
        "steps": 40 if kind == "graph" else 8,
        "limit": 12,
        "evaluate": ("val", "test"),
        "workers": 1,
        "device": "cpu",
        "progress": False,
    }
    result = graphbench.train(datasets, model, root=root, output=home / "run", overrides=TINY, **{**options, **changes})
    for one in result.values() if isinstance(result, dict) else [result]:
        save_record(one.record, home / "results")
    names = (datasets,) if isinstance(datasets, str) else tuple(datasets)
    return Run(home / "run", home / "results", root, names, model)


@pytest.fixture(scope="module")
def finished(root, tmp_path_factory):
    """Return a finished run of a kind; each is trained once."""
    runs = {}

    def of(kind):
        if kind not in runs:
            runs[kind] = trained(root, tmp_path_factory.mktemp(kind), kind)
        return runs[kind]

    return of


@pytest.fixture
def copied(finished, tmp_path):
    """A copy of the run on graphs, whose files and records a test may change."""
    run = finished("graph")
    shutil.copytree(run.folder, tmp_path / "run")
    shutil.copytree(run.results, tmp_path / "results")
    return Run(tmp_path / "run", tmp_path / "results", run.root, run.datasets, run.model)


@pytest.fixture
def shelf(tmp_path):
    """A folder of weights that is registered as a plug-in registers it."""
    folder = tmp_path / "plugin" / "baselines" / "weights"
    folder.mkdir(parents=True)
    resources.register_data(tmp_path / "plugin")
    yield folder
    resources._FOLDERS.remove(str(tmp_path / "plugin"))


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.slow if kind == "several" else ()) for kind in RUNS]
)
@pytest.mark.thorough
def test_a_model_comes_back_with_its_weights_and_its_scores(finished, shelf, kind):
    run = finished(kind)
    file = run.export(shelf, dtype="float32")
    before, state = load_run(run.folder), torch.random.get_rng_state()
    for dataset in run.datasets:
        model = graphbench.load_model(dataset, run.model)
        assert not model.training and type(model) is type(before)
        for name, tensor in before.state_dict().items():
            assert torch.equal(model.state_dict()[name], tensor)
        assert model.trained.datasets == run.datasets and model.trained.path == file.path
        splits = graphbench.Loader(dataset, root=run.root, limit=12).load(())
        expected = run.record(dataset).scores["test"]
        assert graphbench.evaluate_model(model, splits.test, device="cpu").to_dict() == pytest.approx(expected)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert check_weights(file, run.results, root=run.root) == []
    assert check_weights(file, run.results, root=run.root, whole=True) == []
    assert [row for row in rows(run.datasets) if row[1].path == file.path] == [
        (dataset, file) for dataset in sorted(run.datasets)
    ]


@pytest.mark.parametrize("kind", ["graph", "story"])
def test_half_precision_rounds_the_parameters_and_keeps_the_scores(finished, shelf, kind):
    run = finished(kind)
    whole = run.export(shelf, dtype="float32")
    size = whole.size
    file = run.export(shelf)
    assert file.facts.dtype == "float16" and file.path == whole.path and file.size < size
    before, after = load_run(run.folder), graphbench.load_model(run.datasets[0], file.path)
    parameters = dict(before.named_parameters())
    for name, tensor in before.state_dict().items():
        expected = tensor.half().float() if name in parameters else tensor
        assert torch.equal(after.state_dict()[name], expected) and after.state_dict()[name].dtype == tensor.dtype
    for dataset, facts in file.facts.datasets.items():
        validation = facts.validation
        assert validation.record == run.record(dataset).scores[validation.split][validation.metric]
        assert agree(validation.stored, validation.record)
    assert check_weights(file, run.results, root=run.root) == []


def test_half_precision_that_changes_a_score_is_not_taken(finished, tmp_path, monkeypatch):
    run, measured = finished("graph"), export.primary_score

    def worse_when_rounded(model, *args, **options):
        rounded = all(torch.equal(p, p.half().float()) for p in model.parameters())
        return measured(model, *args, **options) - 0.01 * rounded

    monkeypatch.setattr(export, "primary_score", worse_when_rounded)
    assert run.export(tmp_path).facts.dtype == "float32"
    with pytest.raises(ConfigError, match=r"f1 on val of algoreas/bridges_easy would change.*choose float32"):
        run.export(tmp_path, dtype="float16")
    with pytest.raises(ArgumentError, match="int8"):
        run.export(tmp_path, dtype="int8")


def test_weights_too_large_for_half_precision_are_stored_in_single(finished, tmp_path, monkeypatch):
    run, halved = finished("graph"), export._in_half

    def with_a_large_one(model, tensors):
        half = halved(model, tensors)
        name = next(name for name, tensor in half.items() if tensor.dtype == torch.float16)
        return {**half, name: half[name] + torch.inf}

    monkeypatch.setattr(export, "_in_half", with_a_large_one)
    assert run.export(tmp_path).facts.dtype == "float32"
    with pytest.raises(ConfigError, match="largest number of float16"):
        run.export(tmp_path, dtype="float16")


def test_predictions_are_what_the_evaluator_takes(finished, shelf):
    for kind in ("graph", "story"):
        run = finished(kind)
        run.export(shelf, dtype="float32")
        model = graphbench.load_model(run.datasets[0], run.model)
        splits = graphbench.Loader(run.datasets[0], root=run.root, limit=12).load(())
        evaluator = graphbench.Evaluator(run.datasets[0])
        predictions = list(graphbench.predict_model(model, splits.test, device="cpu"))
        for batch, predicted in zip(splits.test.batches(12), predictions, strict=True):
            evaluator.update(batch, predicted)
        assert evaluator.compute().to_dict() == pytest.approx(run.record().scores["test"])
    with pytest.raises(ValueError, match="returns predictions itself"):
        graphbench.predict_model(torch.nn.Linear(1, 1), splits.test)


def test_the_header_agrees_with_the_record(finished, tmp_path):
    run = finished("graph")
    facts, record = run.export(tmp_path).facts, run.record()
    assert (facts.seed, facts.best_step, facts.parameters) == (record.seed, record.best_step, record.parameters)
    assert facts.identity.config == record.config and facts.dtype in ("float16", "float32")
    (of,) = facts.datasets.values()
    assert run.results / of.record == run.results / record.relative_path
    limits = [(sample.split, sample.limit) for sample in of.samples]
    assert limits == [("val", 4), ("val", 8), ("test", 4), ("test", 8)]
    splits = graphbench.Loader("bridges_easy", root=run.root, limit=4).load(())
    model = graphbench.load_model("bridges_easy", run.export(tmp_path).path)
    (few,) = (sample for sample in of.samples if (sample.split, sample.limit) == ("test", 4))
    assert few.content_hash == splits.test.content_hash
    assert few.stored == pytest.approx(graphbench.evaluate_model(model, splits.test, device="cpu").primary)


def test_a_row_has_one_file(finished, root, tmp_path):
    first = finished("graph").export(tmp_path / "weights")
    assert first.facts.seed == 0
    other = trained(root, tmp_path / "other", "graph", seed=1).export(tmp_path / "weights")
    assert other.path == first.path and other.facts.seed == 1
    assert len(weights_files(tmp_path / "weights")) == 1


@pytest.mark.thorough
def test_a_model_of_one_dataset_and_one_of_several_share_no_row(finished, tmp_path):
    for kind, datasets in (("several", ("clrs/bfs",)), ("graph", ("algoreas/bridges_easy", "algoreas/mst_easy"))):
        run = finished(kind)
        file = run.export(tmp_path)
        path = tmp_path / weights_path(datasets, run.model)
        with pytest.raises(CheckpointError, match=f"{file.path}.* on {datasets[0]} already, and a row has one file"):
            export._require_single(path, tmp_path, datasets, run.model)
        export._require_single(file.path, tmp_path, run.datasets, run.model)
        export._require_single(path, tmp_path, datasets, "another")


# ---------------------------------------------------------------------------------------------------- refused runs


def test_an_unfinished_run_is_refused(copied, tmp_path):
    config = json.loads((copied.folder / "config.json").read_text())
    config["training"]["steps"] = 48
    (copied.folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match=r"not finished.*training\.steps 40 -> 48"):
        copied.export(tmp_path / "weights")
    (copied.folder / "record.json").unlink()
    with pytest.raises(CheckpointError, match=r"not finished: it has no record\.json"):
        copied.export(tmp_path / "weights")
    with pytest.raises(CheckpointError, match="no run folder"):
        export_weights(tmp_path / "nowhere")
    assert not (tmp_path / "weights").exists()


def test_a_run_whose_record_is_not_kept_is_refused(copied, tmp_path):
    shutil.rmtree(copied.results)
    with pytest.raises(ResultError, match=r"is not kept.*--records"):
        copied.export(tmp_path / "weights")


def test_a_run_with_another_score_than_its_record_is_refused(copied, tmp_path):
    record = copied.record()
    scores = {**record.scores, "test": {**record.scores["test"], "f1": record.scores["test"]["f1"] - 0.002}}
    save_record(record.model_copy(update={"scores": scores}), copied.results)
    with pytest.raises(ResultError, match=r"f1 .* on test of algoreas/bridges_easy.*of another run"):
        copied.export(tmp_path / "weights")


def test_weights_with_another_score_than_the_record_are_refused(copied, tmp_path):
    path = copied.folder / "best.safetensors"
    tensors, facts = checkpoint.load_tensors(path)
    checkpoint.save_tensors(path, {name: -tensor for name, tensor in tensors.items()}, facts)
    with pytest.raises(ResultError, match=r"the weights have f1 .* on val"):
        copied.export(tmp_path / "weights")


def test_a_run_without_a_score_on_validation_is_refused(root, tmp_path):
    run = trained(root, tmp_path, "graph", evaluate="test")
    with pytest.raises(ResultError, match=r"no score of val.*--evaluate"):
        run.export(tmp_path / "weights")


def test_a_run_on_files_is_refused(copied, tmp_path):
    data = json.loads((copied.folder / "data.json").read_text())
    (copied.folder / "data.json").write_text(json.dumps({**data, "source": "official"}))
    with pytest.raises(CheckpointError, match=r"trained on files of algoreas/bridges_easy.*official"):
        copied.export(tmp_path / "weights")


def test_a_model_without_tensors_is_refused():
    with pytest.raises(ConfigError, match=r"random_forest is of kind tabular.*no set of tensors"):
        require_tensors(load_config("algoreas/bridges_easy", "random_forest"))
    require_tensors(load_config("algoreas/bridges_easy", "gin_small"))


@pytest.mark.parametrize(("limit", "words"), [("MOST_FILE_BYTES", "a file may have"), ("MOST_BYTES", "more exceed")])
def test_files_and_the_folder_have_a_bound(finished, tmp_path, monkeypatch, limit, words):
    run = finished("graph")
    written = run.export(tmp_path)
    size = sum(p.numel() * 2 for p in load_run(run.folder).parameters())
    monkeypatch.setattr(export, limit, size - 1)
    with pytest.raises(ConfigError, match=words):
        run.export(tmp_path)
    monkeypatch.setattr(export, limit, written.size)
    assert run.export(tmp_path).path == written.path


# ---------------------------------------------------------------------------------------------------- checks


def changed(file, change):
    """Write a file of weights again with other facts, its content hash correct."""
    tensors, facts = checkpoint.load_tensors(file.path)
    change(facts["weights"])
    checkpoint.save_tensors(file.path, tensors, facts)
    return read_weights(file.path)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("best_step", 3, ", and 3 in the record"),
        ("seed", 5, "seed is 0, and 5 in the record"),
        ("parameters", 7, "and 7 in the record"),
        ("data_fingerprint", "v9-0", "and v9-0 in the record"),
    ],
)
def test_a_check_finds_a_record_of_another_run(copied, tmp_path, key, value, words):
    file = copied.export(tmp_path / "weights", dtype="float32")
    record = copied.record()
    path = copied.results / record.relative_path
    save_record(record.model_copy(update={key: value}), path=path)
    assert any(words in problem for problem in check_weights(file, copied.results, root=copied.root, most=FEW))
    path.unlink()
    (problem,) = check_weights(file, copied.results, root=copied.root, most=FEW)
    assert "there is no record" in problem


def test_a_check_finds_other_scores_and_other_samples(finished, tmp_path):
    run = finished("graph")
    file = run.export(tmp_path, dtype="float32")

    def other_score(facts):
        facts["datasets"]["algoreas/bridges_easy"]["samples"][0]["stored"] -= 0.05

    (problem,) = check_weights(changed(file, other_score), run.results, root=run.root, most=FEW)
    assert "f1 of the first 4 samples of val is" in problem

    def other_samples(facts):
        facts["datasets"]["algoreas/bridges_easy"]["samples"][2]["content_hash"] = "0" * 64

    file = run.export(tmp_path, dtype="float32")
    (problem,) = check_weights(changed(file, other_samples), run.results, root=run.root, most=FEW)
    assert "the first 4 samples of test have the hash" in problem


def test_a_check_of_whole_splits_finds_other_weights(finished, tmp_path):
    run = finished("graph")
    file = run.export(tmp_path, dtype="float32")
    tensors, facts = checkpoint.load_tensors(file.path)
    checkpoint.save_tensors(file.path, {name: -tensor for name, tensor in tensors.items()}, facts)
    problems = check_weights(file, run.results, root=run.root, whole=True)
    assert any("f1 of test is" in problem for problem in problems)


def test_a_check_finds_another_configuration(copied, tmp_path):
    file = copied.export(tmp_path / "weights")
    record = copied.record()
    config = {**record.config, "training": {**record.config["training"], "lr": 0.5}}
    save_record(record.model_copy(update={"config": config}), path=copied.results / record.relative_path)
    problems = check_weights(file, copied.results, root=copied.root, most=FEW)
    assert any("training.lr" in problem and "0.5" in problem for problem in problems)
