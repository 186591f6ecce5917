"""Runs on published files are scored on the same files again, finished or not, or not at all."""

import json
import shutil

import pytest

from graphbench import Loader
from graphbench.cli import main
from graphbench.core.errors import CheckpointError, ConfigError
from graphbench.training.evaluate import evaluate_run, load_run, scores_of_run
from graphbench.training.run import train

from .test_official import cells, write

SMALL = {"model.hidden": 8, "model.layers": 1, "training.batch_size": 4}


def published(folder, words=("father", "brother")):
    folder.mkdir(parents=True)
    write(folder, "1.2,1.3_train.csv", *(cells(part="train", number=i) for i in range(10)))
    return write(folder, "1.2_test.csv", *(cells(words=words, number=i) for i in range(4)))


@pytest.fixture
def run(tmp_path):
    data = Loader("clutrr/gen_23", source="official", folder=published(tmp_path / "files"), root=tmp_path).load()
    return train(data=data, model="gat_small", steps=2, overrides=SMALL, output=tmp_path / "run", evaluate="test")


@pytest.mark.parametrize("finished", [True, False])
def test_a_run_is_scored_on_the_files_it_was_trained_on(run, tmp_path, finished):
    facts = json.loads((run.path / "data.json").read_text())
    assert (facts["source"], facts["folder"]) == ("official", str((tmp_path / "files").resolve()))
    assert facts["data_fingerprint"] == run.record.data_fingerprint
    if not finished:
        (run.path / "record.json").unlink()
    found = evaluate_run(run.path, ("test", "k2"), root=tmp_path, device="cpu")
    assert found["test"].graphs == found["k2"].graphs == 4
    assert found.keys() == {"test", "k2"} and found["test"] == run.scores["test"]
    assert scores_of_run(run.path, "test", root=tmp_path, device="cpu")["clutrr/gen_23"]["test"].graphs == 4
    load_run(run.path)
    (run.path / "best.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"best\.safetensors is missing.*put the file back"):
        evaluate_run(run.path, "test", root=tmp_path, device="cpu")


@pytest.mark.parametrize("finished", [True, False])
def test_a_run_is_not_scored_on_files_that_changed_or_are_gone(run, tmp_path, finished):
    if not finished:
        (run.path / "record.json").unlink()
    shutil.rmtree(tmp_path / "files")
    with pytest.raises(ConfigError, match=r"cannot be read.*put them back"):
        evaluate_run(run.path, "test", root=tmp_path)
    published(tmp_path / "files", words=("father", "son"))
    with pytest.raises(ConfigError, match=r"other files.*back there"):
        evaluate_run(run.path, "test", root=tmp_path)
    with pytest.raises(ConfigError, match="put the files"):
        scores_of_run(run.path, "test", root=tmp_path)


def test_generated_data_in_place_of_the_files_are_told(run, tmp_path, caplog):
    (run.path / "record.json").unlink()
    data = Loader("clutrr/gen_23", limit=8, root=tmp_path, workers=1).load(["test"])
    with pytest.raises(
        CheckpointError,
        match=r"source='official'\) of clutrr/gen_23.*generated data",
    ):
        evaluate_run(run.path, "test", data=data)
    folder = published(tmp_path / "elsewhere", words=("father", "son"))
    other = Loader("clutrr/gen_23", source="official", folder=folder, root=tmp_path).load()
    assert evaluate_run(run.path, "test", data=other)["test"].graphs == 4
    assert "was trained on clutrr/gen_23 v1-" in caplog.text and "other files" in caplog.text


def test_files_in_place_of_the_generated_data_are_refused_before_anything_is_scored(tmp_path, capsys):
    options = {"limit": 16, "root": tmp_path, "workers": 1, "device": "cpu", "steps": 2, "evaluate": "none"}
    run = train("clutrr/gen_23", "gat_small", overrides=SMALL, output=tmp_path / "run", **options)
    folder = published(tmp_path / "files")
    data = Loader("clutrr/gen_23", source="official", folder=folder, root=tmp_path).load()
    with pytest.raises(CheckpointError) as caught:
        evaluate_run(run.path, "test", data=data)
    message = str(caught.value)
    assert "on generated data of clutrr/gen_23 and cannot be scored on files (source='official'): relation" in message
    assert "22 classes there and 23 here; train a model on these data (source='official')" in message
    with pytest.raises(SystemExit) as end:
        main(["evaluate", str(run.path), "--source", "official", "--folder", str(folder)])
    message = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert end.value.code == 2
    assert "a run is scored on the data it was trained on; leave --source and --folder out" in message


def test_an_unfinished_run_on_generated_data_is_not_scored_on_another_draw_of_the_parameters(tmp_path):
    options = {"limit": 16, "root": tmp_path, "output": tmp_path / "run", "workers": 1, "device": "cpu"}
    run = train("clutrr/gen_23", "gat_small", steps=2, overrides=SMALL, evaluate="none", **options)
    (run.path / "record.json").unlink()
    assert evaluate_run(run.path, "test", root=tmp_path, limit=8, device="cpu")["test"].graphs == 8
    facts = json.loads((run.path / "data.json").read_text())
    assert (facts["source"], facts["folder"], facts["data_seed"]) == ("generated", None, 0)
    (run.path / "data.json").write_text(json.dumps(facts | {"data_fingerprint": "v1-000000000000"}))
    with pytest.raises(ConfigError, match=r"clutrr/gen_23 v1-0+.*train the model"):
        evaluate_run(run.path, "test", root=tmp_path, limit=8)
    (run.path / "data.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"data\.json cannot be read"):
        evaluate_run(run.path, "test", root=tmp_path, limit=8)
