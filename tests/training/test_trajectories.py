"""Training on trajectories: one algorithm, several, stored and endless data, resuming, scoring again."""

import json

import pytest
import torch

import graphbench
from graphbench.errors import ConfigError, TrainingError
from graphbench.evaluation.results import read_record
from graphbench.training.config import load_config
from graphbench.training.evaluate import evaluate_run, load_run
from graphbench.training.trajectory_trainer import train_together

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
    model = load_run(tmp_path / "run")
    for name, value in result.model.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], value)


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


def test_accumulating_parts_gives_the_same_update(root, tmp_path):
    runs = []
    for parts in (1, 2):
        options = {**TINY, "training.accumulate": parts, "training.batch_size": 16, "model.hint_mode": "none"}
        # Without hints the loss of a batch is the mean over its samples, so parts of equal size add up exactly.
        run = train(root, tmp_path / str(parts), dataset="clrs/bfs", overrides=options, steps=6)
        runs.append([loss for _, loss in run.record.curves["train_loss"]])
    assert len(runs[0]) == 3
    assert runs[1] == pytest.approx(runs[0], rel=1e-4)


def test_several_algorithms_share_one_model(root, tmp_path):
    results = train_together(
        ["clrs/bfs", "clrs/minimum"],
        "mpnn_small",
        steps=6,
        limit=16,
        root=root,
        output=tmp_path / "both",
        evaluate="val",
        overrides=TINY,
        progress=False,
        workers=1,
    )
    assert set(results) == {"clrs/bfs", "clrs/minimum"}
    assert {id_: r.record.dataset for id_, r in results.items()} == {id_: id_ for id_ in results}
    assert all("trained on 2 algorithms" in r.record.notes for r in results.values())
    assert sorted(p.name for p in (tmp_path / "both" / "records").iterdir()) == ["clrs-bfs.json", "clrs-minimum.json"]
    one, other = (r.model for r in results.values())
    assert one is other


def test_the_generalist_protocol_is_named_and_streams(root, tmp_path):
    result = train(root, tmp_path / "run", model="mpnn_generalist", evaluate=("val_multi_size", "test"))
    assert result.record.protocol == "multi_size"
    assert "train_multi_size" not in result.record.data_hashes
    assert not list((root / "clrs" / "bfs").rglob("train_multi_size*.h5"))


def test_models_and_data_must_fit(root, tmp_path):
    graphs = tmp_path / "graphs.yaml"
    graphs.write_text("model: {processor: gin}\ntraining: {steps: 5}\n")
    with pytest.raises(ConfigError, match="no model for trajectories, which clrs/bfs has"):
        train(root, tmp_path / "a", model=graphs, overrides=None)
    trajectories = tmp_path / "trajectories.yaml"
    trajectories.write_text("model: {kind: trajectory}\ntraining: {steps: 5}\n")
    with pytest.raises(ConfigError, match="leave kind: trajectory out"):
        train(root, tmp_path / "b", "algoreas/mst_easy", trajectories, overrides=None, limit=20)
    with pytest.raises(ConfigError, match=r"unknown key 'model\.hint_mod'; did you mean 'model\.hint_mode'\?"):
        load_config("clrs/bfs", "mpnn", overrides={"model.hint_mod": "none"})
    with pytest.raises(ConfigError, match="algoreas/mst_easy has no hints"):
        train_together(["algoreas/mst_easy"], progress=False)


def test_every_configuration_is_valid_and_round_trips():
    from graphbench.training.config import list_configs, run_config_from_json

    for name in list_configs("clrs"):
        config = load_config("clrs/bfs", name.split("/")[1])
        text = json.dumps(config.model_dump(mode="json"))
        assert run_config_from_json(text, name) == config


def test_a_loss_that_is_not_finite_stops_the_run(root, tmp_path):
    with pytest.raises(TrainingError, match="training loss is nan"):
        train(root, tmp_path / "run", overrides={**TINY, "training.lr": 1e30, "training.gradient_clip": None}, steps=20)
