"""Files of weights: where they are looked for, and which are refused; all start from one that the package ships."""

from __future__ import annotations

import importlib
import json
import logging
import shutil
import struct
import sys
from types import SimpleNamespace

import pytest
import torch

import graphbench
from graphbench.catalog import resources
from graphbench.catalog.names import card
from graphbench.core.errors import CheckpointError, ConfigError, UnknownDataset, UnknownModel
from graphbench.training import checkpoint
from graphbench.training.config import load_config
from graphbench.training.trained import Trained, task_for
from graphbench.training.weights.files import (
    find_weights,
    read_weights,
    rows,
    weights_dir,
    weights_files,
    weights_path,
)
from graphbench.training.weights.load import load_model

DATASET, MODEL = "clutrr/gen_23", "gat_small"
SHIPPED = weights_dir() / weights_path([DATASET], MODEL)


@pytest.fixture
def shelf(tmp_path):
    """A second folder of weights, registered as a plug-in registers it."""
    folder = tmp_path / "plugin" / "baselines" / "weights"
    folder.mkdir(parents=True)
    resources.register_data(tmp_path / "plugin")
    yield folder
    resources._FOLDERS.remove(str(tmp_path / "plugin"))


def written(path, change=lambda facts: None, tensors=None):
    """Write the shipped file to another place, with other facts or tensors and a correct hash, and return the place."""
    stored, facts = checkpoint.load_tensors(SHIPPED)
    change(facts["weights"])
    checkpoint.save_tensors(path, stored if tensors is None else tensors(stored), facts)
    return path


def under_name(facts, name, dataset=DATASET):
    """Change the model and the dataset that facts are of."""
    facts["identity"]["config"] |= {"model_name": name, "dataset": dataset}
    facts["datasets"] = {dataset: facts["datasets"].pop(DATASET)}


def on_several(facts, *others):
    facts["identity"]["config"]["datasets"] = [DATASET, *others]
    facts["datasets"] |= dict.fromkeys(others, facts["datasets"][DATASET])


# ---------------------------------------------------------------------------------------------------- looking up


def test_the_package_and_plugins_have_weights(shelf):
    written(shelf / "clutrr" / "gen_23" / "mine.safetensors", lambda facts: under_name(facts, "mine"))
    assert find_weights(DATASET, MODEL).path == SHIPPED
    assert find_weights(DATASET, "mine").path.is_relative_to(shelf)
    assert {(id_, file.facts.model) for id_, file in rows(DATASET)} >= {(DATASET, MODEL), (DATASET, "mine")}
    assert load_model("gen_23", "mine", seed=0).trained.path.is_relative_to(shelf)  # an alias


def test_a_file_of_several_datasets_serves_each(shelf):
    others = ("clutrr/gen_234", "clutrr/rob_clean")
    place = weights_path([DATASET, *others], "shared")

    def change(facts):
        under_name(facts, "shared")
        on_several(facts, *others)

    written(shelf / place, change)
    for dataset in (DATASET, *others):
        assert find_weights(dataset, "shared").path == shelf / place
    assert weights_path([*reversed(others), DATASET], "shared") == place != weights_path(others, "shared")
    assert [id_ for id_, file in rows() if file.facts.model == "shared"] == sorted([DATASET, *others])
    with pytest.raises(UnknownModel, match="datasets with weights of shared: clutrr/gen_23, clutrr/gen_234"):
        find_weights("clutrr/rob_supporting", "shared")


@pytest.mark.parametrize(
    ("dataset", "model", "words"),
    [
        (DATASET, "gat_smal", r"did you mean 'gat_small'\? \(models with weights on clutrr/gen_23: .*gat_small"),
        (DATASET, "gat", r"none|graphbench\.train\('clutrr/gen_23', 'gat'\)"),
        ("sat/threesat", MODEL, "models with weights on sat/.*: none; datasets with weights of gat_small: .*gen_23"),
        ("sat/threesat", "nothing", "datasets with weights: .*clutrr/gen_23"),
        (DATASET, "../gen_23/gat_small", "there are no weights of"),
        (DATASET, "*", "there are no weights of"),
    ],
)
def test_a_row_without_weights_names_the_rows_that_have_some(dataset, model, words):
    dataset = dataset if dataset == DATASET else graphbench.list_datasets("sat")[0]
    with pytest.raises(UnknownModel, match=words):
        load_model(dataset, model)


def test_unknown_datasets_and_other_seeds_are_refused(tmp_path):
    with pytest.raises(UnknownDataset, match="clutrr/gen_22"):
        load_model("clutrr/gen_22", MODEL)
    with pytest.raises(UnknownModel, match=r"of seed 0, and there are none of seed 7.*seed=7"):
        load_model(DATASET, MODEL, seed=7)
    with pytest.raises(ConfigError, match="seed 0, not 7"):
        load_model(DATASET, SHIPPED, seed=7)
    with pytest.raises(ConfigError, match=r"on clutrr/gen_23, not on clutrr/gen_234"):
        load_model("clutrr/gen_234", SHIPPED)
    with pytest.raises(CheckpointError, match=r"there are no weights .*gone\.safetensors"):
        load_model(DATASET, tmp_path / "gone.safetensors")


def test_two_files_of_a_row_and_a_file_at_another_place_are_refused(shelf):
    place = written(shelf / weights_path([DATASET], MODEL))
    with pytest.raises(CheckpointError, match=f"{SHIPPED} and {place} hold weights"):
        load_model(DATASET, MODEL)
    moved = place.rename(place.with_name("other.safetensors"))
    with pytest.raises(CheckpointError, match=f"{moved} holds weights of gat_small.*{place}; move it there"):
        load_model(DATASET, "other")
    with pytest.raises(CheckpointError, match="move it there"):
        weights_files(shelf)


# ---------------------------------------------------------------------------------------------------- refused files


def test_a_file_anywhere_is_enough(tmp_path, monkeypatch):
    path = tmp_path / "anywhere.safetensors"
    shutil.copy(SHIPPED, path)
    expected = load_model(DATASET, MODEL).state_dict()
    model = load_model(DATASET, str(path))
    assert all(torch.equal(tensor, expected[name]) for name, tensor in model.state_dict().items())
    written(path, lambda facts: under_name(facts, "mine", "nowhere/else"))  # a dataset that nobody registers
    model = load_model("nowhere/else", path)
    assert all(torch.equal(tensor, expected[name]) for name, tensor in model.state_dict().items())


def flipped(path):
    content = bytearray(SHIPPED.read_bytes())
    content[-5] ^= 64
    path.write_bytes(content)


def of_types(path):
    header = json.dumps({"__metadata__": {"graphbench": json.dumps({"weights": {"schema": 1, "dtype": "int4"}})}})
    path.write_bytes(struct.pack("<Q", len(header)) + header.encode())


def a_checkpoint(path):
    checkpoint.save_tensors(path, {"model.w": torch.ones(2)}, {"fingerprint": "0", "best": {"step": 1, "score": 1.0}})


BROKEN = {
    "damaged tensors": (flipped, "damaged"),
    "cut off": (lambda path: path.write_bytes(SHIPPED.read_bytes()[:-9]), "restore the file"),
    "no safetensors": (lambda path: path.write_text("weights"), "restore the file"),
    "a checkpoint": (a_checkpoint, r"holds no weights with their configuration.*load_run"),
    "other types": (of_types, r"int4.*'float32' or 'float16'"),
    "a newer format": (lambda path: written(path, lambda facts: facts.update(schema=2)), "format of weights 2.*update"),
    "an unknown key": (lambda path: written(path, lambda facts: facts.update(extra=1)), "unknown key 'extra'"),
    "no seed": (
        lambda path: written(path, lambda facts: facts["identity"]["config"]["training"].pop("seed")),
        "has no seed",
    ),
    "other datasets": (
        lambda path: written(path, lambda facts: facts["identity"]["config"].update(dataset="clutrr/gen_234")),
        r"describes clutrr/gen_23, and its configuration clutrr/gen_234",
    ),
    "other widths": (
        lambda path: written(path, lambda facts: facts["identity"]["config"]["model"].update(hidden=8)),
        r"does not fit the model.*of another shape.*code of the model differs",
    ),
    "a tensor less": (
        lambda path: written(path, tensors=lambda stored: dict(list(stored.items())[1:])),
        r"does not fit the model: 1 tensors are missing",
    ),
    "an unknown feature": (
        lambda path: written(path, lambda facts: facts["datasets"][DATASET]["features"][0].__setitem__(3, "colour")),
        r"cannot be built: .*'colour'",
    ),
    "an unknown processor": (
        lambda path: written(path, lambda facts: facts["identity"]["config"]["model"].update(processor="gatt")),
        r"cannot be built: .*'gatt'.*GRAPHBENCH_PLUGINS",
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_file_is_an_error_that_names_it(tmp_path, fault):
    path, (make, words) = tmp_path / "broken.safetensors", BROKEN[fault]
    make(path)
    with pytest.raises(CheckpointError, match=f"broken.safetensors.*{words}|{words}"):
        load_model(DATASET, path)


# ---------------------------------------------------------------------------------------------------- other data, code


CHANGES = {
    "data": (lambda facts: facts["identity"]["data"][DATASET].update(fingerprint="v1-0"), "data of .* v1-0 -> v1-"),
    "card": (lambda facts: facts["identity"]["cards"][DATASET].update(complete=True), "card complete True -> False"),
    "option": (
        lambda facts: facts["identity"]["options"].setdefault("processor", {}).update(slope=3),
        r"option processor\.slope 3 -> nothing",
    ),
    "code": (lambda facts: facts["identity"]["code"].update({"gone_away/net.py": "0"}), r"gone_away/net\.py is gone"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_weights_of_other_data_or_code_are_refused_unless_asked_for(tmp_path, caplog, change):
    edit, words = CHANGES[change]
    path = written(tmp_path / "other.safetensors", edit)
    with pytest.raises(ConfigError, match=f"other data or code.*{words}.*strict=False"):
        load_model(DATASET, path)
    with caplog.at_level(logging.WARNING):
        assert isinstance(load_model(DATASET, path, strict=False), torch.nn.Module)
    assert "other data or code" in caplog.text


def test_metrics_and_texts_of_a_card_do_not_count(tmp_path, caplog):
    def change(facts):
        facts["identity"]["cards"][DATASET] |= {"metrics": {"primary": "macro_f1", "also": []}, "protocol": "other"}
        facts["graphbench_version"] = "0.0.1"

    assert load_model(DATASET, written(tmp_path / "same.safetensors", change)).trained.config.data_seed == 0
    assert not caplog.records


NET = """
import torch
from graphbench.models.processor_registry import register_processor
from graphbench.models.processors import Processed, Processor


@register_processor("weights_test_own")
class Own(Processor):
    def __init__(self, config, context):
        super().__init__(config, context)
        self.scale = torch.nn.Parameter(torch.ones(1))

    def forward(self, state):
        return Processed(state.nodes * self.scale * FACTOR)
"""


def test_the_model_of_a_plugin_needs_its_code(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    source = tmp_path / "weights_test_net.py"

    def load(factor):
        source.write_text(NET.replace("FACTOR", str(factor)))
        sys.modules.pop("weights_test_net", None)
        importlib.invalidate_caches()
        importlib.import_module("weights_test_net")

    load(1)
    config = tmp_path / "own.yaml"
    config.write_text("model: {processor: weights_test_own, hidden: 8}\ntraining: {batch_size: 4, steps: 2}\n")
    options = {"limit": 8, "root": tmp_path / "data", "workers": 1, "device": "cpu", "progress": False}
    result = graphbench.train("bridges_easy", config, evaluate="val", output=tmp_path / "run", **options)
    from graphbench.records.files import save_record
    from graphbench.training.weights.export import export_weights

    save_record(result.record, tmp_path / "results")
    places = {"results": tmp_path / "results", "output": tmp_path / "weights", "root": tmp_path / "data"}
    file = export_weights(tmp_path / "run", **places)
    assert list(file.facts.identity.code) == ["weights_test_net.py"]
    assert torch.equal(
        load_model("bridges_easy", file.path).processor.scale, result.model.processor.scale.half().float()
    )
    load(2)
    with pytest.raises(ConfigError, match=r"weights_test_net\.py changed"):
        load_model("bridges_easy", file.path)
    sys.modules.pop("weights_test_net", None)


# ---------------------------------------------------------------------------------------------------- scoring


def test_a_model_is_scored_with_the_options_of_its_training():
    maximum = card("co/rb_small:mis")
    config = load_config("co/rb_small:mis", "gin_small", overrides={"training.task.decoding.restarts": 3})
    trained = Trained(SHIPPED, config, {"co/rb_small:mis": "r.json"}, {}, {"co/rb_small:mis": {"cost": 2.0}})
    model = SimpleNamespace(trained=trained)
    task = task_for(model, maximum)
    assert task.train_options.decoding["restarts"] == 3 and task.facts == {"cost": 2.0}
    assert task_for(model, maximum, {"decoding": {"restarts": 5}}).train_options.decoding["restarts"] == 5
    assert "restarts" not in task_for(SimpleNamespace(), maximum).train_options.decoding
    assert not task_for(model, card(DATASET)).facts  # another dataset than the model was trained on


def test_headers_are_read_without_torch(run_script, output_of):
    script = (
        "import sys; from graphbench.training.weights.files import rows; "
        "print(len(rows()), *(name for name in ('torch', 'numba', 'h5py') if name in sys.modules))"
    )
    assert output_of(run_script(script)).split() == [str(len(rows()))]
    assert read_weights(SHIPPED).facts.model == MODEL
