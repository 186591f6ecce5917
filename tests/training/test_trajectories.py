"""Training on trajectories: one algorithm, several, stored and endless data, resuming, scoring again."""

import json

import pytest
import torch

import graphbench
from graphbench.cli import main
from graphbench.cli.runs import train_seeds
from graphbench.core.errors import ConfigError, EvaluationError, TrainingError, UnknownDataset
from graphbench.records.files import read_record, save_record
from graphbench.tasks.registry import task_of
from graphbench.training.config import load_config
from graphbench.training.evaluate import evaluate_model, evaluate_run, load_run, write_run_predictions
from graphbench.training.splits import split_limits

TINY = {"model.hidden": 8, "training.batch_size": 8, "training.eval_every": 4, "training.log_every": 2}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


def train(root, output, dataset="clrs/bfs", model="mpnn_small", **options):
    options = {"steps": 8, "limit": 16, "evaluate": ("val",), "overrides": TINY, **options}
    return graphbench.train(dataset, model, root=root, output=output, progress=False, workers=1, **options)


def weights(folder, file="best"):
    from safetensors.torch import load_file

    return load_file(folder / f"{file}.safetensors")


def test_a_run_leaves_a_record_and_is_scored_again_alike(root, tmp_path):
    result = train(root, tmp_path / "run", evaluate=("val", "test", "n32"))
    record = read_record(tmp_path / "run" / "record.json")
    assert record == result.record
    assert record.protocol == "canonical" and record.budget.small
    assert set(record.scores) == {"val", "test", "n32"} and record.graphs_scored["n32"] == 16
    assert [step for step, _ in record.curves["val_score"]] == [4, 8]
    assert 0 <= record.scores["test"]["score"] <= 1
    again = evaluate_run(tmp_path / "run", ("test", "n32"), root=root, limit=16, progress=False)
    assert {name: score.to_dict() for name, score in again.items()} == {n: record.scores[n] for n in ("test", "n32")}
    (path,) = write_run_predictions(tmp_path / "run", tmp_path / "out", "test", root=root, limit=16, progress=False)
    test = graphbench.Loader("clrs/bfs", root=root, limit=16).load(())["test"]
    assert task_of(test.card).score_file(path, test) == {"test": result.scores["test"]}
    model = load_run(tmp_path / "run")
    for name, value in result.model.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], value)


@pytest.mark.thorough
def test_a_finished_run_keeps_its_scores_until_it_is_trained_anew(root, tmp_path):
    first = train(root, tmp_path, evaluate=("val", "test"))
    again = train(root, tmp_path, evaluate="n32")
    assert list(again.scores) == ["n32"]
    assert {name: again.record.scores[name] for name in ("val", "test")} == first.record.scores
    assert again.record.graphs_scored == {**first.record.graphs_scored, "n32": 16}
    assert first.record.data_hashes.items() < again.record.data_hashes.items()
    assert list(train(root, tmp_path, evaluate="n32", resume=False).record.scores) == ["n32"]


@pytest.mark.thorough
def test_a_stopped_run_goes_on_with_the_same_bits(root, tmp_path):
    for model in ("mpnn_small", "mpnn_generalist"):
        options = {**TINY, "training.schedule_steps": 8, "model.hint_teacher_forcing": 0.5}
        whole, parts = tmp_path / f"{model}-whole", tmp_path / f"{model}-parts"
        train(root, whole, model=model, overrides=options)
        for steps in (3, 8):
            train(root, parts, model=model, steps=steps, overrides=options)
        ends = weights(whole, "checkpoint"), weights(parts, "checkpoint")  # the stop adds a validation, so a best
        for name, value in ends[0].items():
            assert torch.equal(ends[1][name], value), name


@pytest.mark.thorough
def test_accumulating_parts_gives_the_same_update(root, tmp_path):
    runs = []
    for parts in (1, 2):
        options = {**TINY, "training.accumulate": parts, "training.batch_size": 16, "model.hint_mode": "none"}
        # Without hints the loss of a batch is the mean over its samples, so parts of equal size add up exactly.
        run = train(root, tmp_path / str(parts), dataset="clrs/bfs", overrides=options, steps=6)
        runs.append([loss for _, loss in run.record.curves["train_loss"]])
    assert len(runs[0]) == 3
    assert runs[1] == pytest.approx(runs[0], rel=1e-4)


@pytest.fixture(scope="module")
def both(root, tmp_path_factory):
    """The results of a run on two algorithms together."""
    folder = tmp_path_factory.mktemp("both")
    options = {"steps": 6, "limit": 16, "evaluate": "val", "overrides": TINY, "progress": False, "workers": 1}
    return graphbench.train(["clrs/bfs", "clrs/minimum"], "mpnn_small", root=root, output=folder, **options)


def test_several_algorithms_share_one_model(both):
    assert set(both) == {"clrs/bfs", "clrs/minimum"}
    assert {id_: r.record.dataset for id_, r in both.items()} == {id_: id_ for id_ in both}
    assert all("trained on 2 datasets, one update each in turn" in r.record.notes for r in both.values())
    assert all(r.record.budget.label.startswith("6 steps of 8 trajectories over 2 datasets") for r in both.values())
    one, other = both.values()
    assert sorted(p.name for p in (one.path / "records").iterdir()) == ["clrs-bfs.json", "clrs-minimum.json"]
    assert one.model is other.model
    alone = one.record.model_copy(update={"config": {**one.record.config, "datasets": []}})
    assert alone.config_hash != one.record.config_hash


@pytest.mark.thorough
def test_a_run_on_several_algorithms_is_scored_again_alike(both, root):
    folder = both["clrs/bfs"].path
    again = evaluate_run(folder, ("val", "test"), root=root, limit=16, progress=False)
    assert list(again) == ["clrs/bfs", "clrs/minimum"]
    assert {id_: scores["val"] for id_, scores in again.items()} == {i: r.scores["val"] for i, r in both.items()}
    data = graphbench.Loader("clrs/minimum", root=root, limit=16).load(())
    assert evaluate_run(folder, "test", data=data)["test"] == again["clrs/minimum"]["test"]
    with pytest.raises(ConfigError, match="clrs/bfs, clrs/minimum, not on clrs/dijkstra"):
        load_run(folder, graphbench.card("clrs/dijkstra"))
    changed = {"data_fingerprint": "v1-000000000000"}
    save_record(both["clrs/minimum"].record.model_copy(update=changed), path=folder / "records" / "clrs-minimum.json")
    with pytest.raises(ConfigError, match=r"trained on clrs/minimum v1-0+"):
        evaluate_run(folder, "val", root=root, limit=16, progress=False)
    save_record(both["clrs/minimum"].record, path=folder / "records" / "clrs-minimum.json")


def test_the_command_line_scores_a_run_on_several_algorithms(both, root, capsys):
    folder = str(both["clrs/bfs"].path)
    with pytest.raises(SystemExit) as end:
        main(["evaluate", folder, "--splits", "val", "--root", str(root), "--limit", "16", "--json"])
    assert end.value.code == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {id_: {"val": r.scores["val"].to_dict()} for id_, r in both.items()}


@pytest.mark.parametrize("change", ["train_split=test", "train_split=val", "val_split=train", "val_split=n32"])
def test_a_split_for_something_else_is_not_trained_on(root, tmp_path, change):
    for dataset in ("clrs/bfs", ["clrs/bfs", "clrs/minimum"]):
        options = {"overrides": [f"training.{change}"], "root": root, "output": tmp_path / "run"}
        with pytest.raises(ConfigError, match=f"training.{change}.*clrs/bfs has (train|val) and "):
            train(**options, dataset=dataset)
    assert not (tmp_path / "run").exists()


def test_a_limit_of_the_scores_leaves_training_and_validation_whole(root, tmp_path, monkeypatch):
    options = {"steps": 1, "overrides": TINY, "root": root, "workers": 1}
    result = graphbench.train(
        "clrs/bfs", "mpnn_generalist", eval_limit=4, output=tmp_path, evaluate=("val_multi_size", "test"), **options
    )
    assert result.record.graphs_scored == {"val_multi_size": 64, "test": 4}
    task = task_of(graphbench.card("clrs/bfs"))
    found = [split_limits(load_config("clrs/bfs", model), task, None, 4) for model in ("mpnn_generalist", "mpnn")]
    assert found[1]["val_multi_size"] == 4 and "val" not in found[1]
    assert "val_multi_size" not in found[0] and "val" not in found[0]
    given = []
    with monkeypatch.context() as patch:
        patch.setattr("graphbench.training.run.train", lambda *_, **own: given.append(own))
        common = {"seeds": None, "data_seeds": None, "output": tmp_path, "limit": None, "records": None}
        train_seeds("clrs/bfs", "mpnn", **common, eval_limit=4, **options)
    assert given[0]["eval_limit"] == 4
    data = graphbench.Loader("clrs/bfs", root=root, limit=4).load(())
    with pytest.raises(ConfigError, match="eval_limit=4 and data are both given"):
        graphbench.train(data=data, eval_limit=4)


def test_the_generalist_protocol_is_named_and_streams(root, tmp_path, caplog):
    result = train(root, tmp_path / "run", model="mpnn_generalist", evaluate=("val_multi_size", "test"))
    assert "train_multi_size of clrs/bfs is drawn without end: limit=16 holds for the other splits" in caplog.text
    assert result.record.protocol == "multi_size"
    assert "train_multi_size" not in result.record.data_hashes
    assert not list((root / "clrs" / "bfs").rglob("train_multi_size*.h5"))


def test_models_and_data_must_fit(root, tmp_path):
    graphs = tmp_path / "graphs.yaml"
    graphs.write_text("model: {processor: gin}\ntraining: {steps: 5}\n")
    with pytest.raises(ConfigError, match=r"graphs on clrs/bfs.*has hints"):
        train(root, tmp_path / "a", model=graphs, overrides=None)
    texts = tmp_path / "texts.yaml"
    texts.write_text("model: {kind: text}\ntraining: {steps: 5}\n")
    with pytest.raises(ConfigError, match="texts on clrs/bfs"):
        train(root, tmp_path / "b", model=texts, overrides=None)
    with pytest.raises(ConfigError, match=r"unknown key 'model\.hint_mod'.*'model\.hint_mode'"):
        load_config("clrs/bfs", "mpnn", overrides={"model.hint_mod": "none"})


def test_every_configuration_is_valid_and_round_trips():
    from graphbench.training.config import list_configs, run_config_from_json

    for name in list_configs("clrs"):
        config = load_config("clrs/bfs", name.split("/")[1])
        text = json.dumps(config.model_dump(mode="json"))
        assert run_config_from_json(text, name) == config


def test_a_loss_that_is_not_finite_stops_the_run(root, tmp_path):
    with pytest.raises(TrainingError, match="training loss is nan"):
        train(root, tmp_path / "run", overrides={**TINY, "training.lr": 1e30, "training.gradient_clip": None}, steps=20)


def test_a_name_that_is_misspelt_is_told(tmp_path):
    for dataset in ("clrs/bsf", ["clrs/minimum", "clrs/bsf"]):
        with pytest.raises(UnknownDataset, match="did you mean 'clrs/bfs'"):
            graphbench.train(dataset, output=tmp_path)


def test_a_verbose_run_says_what_it_does(root, tmp_path, caplog):
    caplog.set_level("INFO")
    result = train(root, tmp_path / "run")
    start = f"training mpnn_small ({result.record.parameters:,} parameters) on clrs/bfs from step 0 to 8, batches of 8"
    assert start in caplog.text and "on cpu" in caplog.text
    for step, score in result.record.curves["val_score"]:
        assert f"step {step} of 8: val score {score:.4g}" in caplog.text


def test_a_users_own_model_answers_trajectories_and_prompts(root):
    options = {"root": root, "limit": 16, "workers": 1}
    traces = graphbench.Loader("clrs/bfs", **options).load(("val",)).val
    assert evaluate_model(lambda batch: dict(batch.outputs), traces, batch_size=5).primary == 1.0
    texts = graphbench.Loader("clrs_text/bfs", **options).load(("val",)).val
    assert evaluate_model(lambda batch: list(batch.references), texts, batch_size=5).primary == 1.0
    with pytest.raises(EvaluationError, match="y_pred"):
        evaluate_model(lambda batch: None, texts)
