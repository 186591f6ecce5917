from __future__ import annotations

import errno

import pytest
import torch
from torch import nn

from graphbench.core.errors import CheckpointError, StoreError
from graphbench.core.files import write_json
from graphbench.training import checkpoint
from graphbench.training.config import load_config
from graphbench.training.folders import stated_settings


def small_model(width=4):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, width), nn.Linear(width, 1))


def step(model, optimizer):
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def test_tensors_and_facts_come_back(tmp_path):
    tensors = {"a": torch.arange(6.0).reshape(2, 3).t(), "b": torch.tensor(3)}
    checkpoint.save_tensors(tmp_path / "sub" / "c.safetensors", tensors, {"step": 7, "score": 0.1})
    found, facts = checkpoint.load_tensors(tmp_path / "sub" / "c.safetensors")
    assert facts == {"step": 7, "score": 0.1}
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[k], tensors[k]) for k in tensors)


def test_tied_weights_can_be_saved(tmp_path):
    shared = torch.ones(3)
    checkpoint.save_tensors(tmp_path / "c", {"a": shared, "b": shared}, {})
    assert torch.equal(checkpoint.load_tensors(tmp_path / "c")[0]["b"], shared)


def test_optimizer_continues_as_if_nothing_happened(tmp_path):
    model = small_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    for _ in range(3):
        step(model, optimizer)
    checkpoint.save_tensors(tmp_path / "c", checkpoint.training_tensors(model, optimizer), {})
    other = small_model()
    other_optimizer = torch.optim.AdamW(other.parameters(), lr=0.1)
    checkpoint.restore_training(other, other_optimizer, checkpoint.load_tensors(tmp_path / "c")[0])
    step(model, optimizer)
    step(other, other_optimizer)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "c.safetensors"
    checkpoint.save_tensors(path, {"a": torch.ones(2)}, {"step": 1})

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoint, "save_file", full)
    with pytest.raises(StoreError, match="disk is full"):
        checkpoint.save_tensors(path, {"a": torch.zeros(2)}, {"step": 2})
    assert checkpoint.load_tensors(path)[1] == {"step": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["c.safetensors"]


@pytest.mark.parametrize("damage", ["truncated", "garbage", "foreign"])
def test_damaged_files_are_refused(tmp_path, damage):
    path = tmp_path / "c.safetensors"
    checkpoint.save_tensors(path, {"a": torch.ones(200)}, {"step": 1})
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:-50])
    elif damage == "garbage":
        path.write_bytes(b"not a checkpoint at all")
    else:
        from safetensors.torch import save_file

        save_file({"a": torch.ones(1)}, path)
    with pytest.raises(CheckpointError, match=r"is damaged.*resume=False.*--no-resume"):
        checkpoint.load_tensors(path)


@pytest.mark.parametrize("place", ["tensors", "facts"])
def test_a_flipped_bit_is_noticed(tmp_path, place):
    path = tmp_path / "c.safetensors"
    tensors = {"a": torch.ones(200), "b": torch.zeros(2, 3, dtype=torch.bfloat16), "c": torch.tensor(True)}
    checkpoint.save_tensors(path, tensors, {"step": 1234})
    assert checkpoint.load_tensors(path)[1] == {"step": 1234}
    content = bytearray(path.read_bytes())
    content[-100 if place == "tensors" else content.index(b"1234") + 3] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"damaged \(its content.*resume=False"):
        checkpoint.load_tensors(path)


def test_a_file_without_a_hash_is_read_as_it_is(tmp_path):
    from safetensors.torch import save_file

    save_file({"a": torch.ones(2)}, tmp_path / "old", {"graphbench": '{"format": 1, "step": 3}'})
    assert checkpoint.load_tensors(tmp_path / "old")[1] == {"step": 3}


def test_missing_and_newer_files_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        checkpoint.load_tensors(tmp_path / "none")
    checkpoint.save_tensors(tmp_path / "c", {"a": torch.ones(1)}, {"format": 9})
    with pytest.raises(CheckpointError, match="has format 9"):
        checkpoint.load_tensors(tmp_path / "c")


def test_weights_of_another_model_are_refused_in_one_line(tmp_path):
    tensors = {f"model.{k}": v for k, v in small_model(5).state_dict().items()}
    with pytest.raises(CheckpointError, match="3 tensors are of another shape") as refused:
        checkpoint.load_model(small_model(4), tensors)
    assert "0.bias (5,), not (4,)" in str(refused.value)
    other = {f"model.{number}.weight": torch.ones(1) for number in range(9, 999)}
    with pytest.raises(CheckpointError) as refused:
        checkpoint.load_model(small_model(4), other)
    assert "4 tensors are missing (such as 0.bias), 990 tensors are unknown to the model" in str(refused.value)
    assert len(str(refused.value)) < 250 and "\n" not in str(refused.value)


def test_weights_say_which_run_stored_them(tmp_path):
    path, ours = tmp_path / "best.safetensors", load_config("algoreas/mst_easy", "gin_small", steps=8)
    write_json(tmp_path / "config.json", ours.to_dict())
    others = {
        "the dataset algoreas/bridges_easy": load_config("algoreas/bridges_easy", "gin_small", steps=8),
        "the model gin": ours.model_copy(update={"model_name": "gin"}),
        "draw 2": ours.model_copy(update={"data_seed": 2}),
        "seed 3": load_config("algoreas/mst_easy", "gin_small", steps=8, seed=3),
        "training.steps 9": load_config("algoreas/mst_easy", "gin_small", steps=9),
        "limit 5": ours.model_copy(update={"limit": 5}),
    }
    for told, other in others.items():
        facts = {"fingerprint": "a", checkpoint.RUN: stated_settings(other)}
        with pytest.raises(CheckpointError, match=f"{told}, the run is of"):
            checkpoint.require_fingerprint(facts, "b", path, ours)
    for stated in (stated_settings(ours), None, "x", {}):
        with pytest.raises(CheckpointError, match="its data are others"):
            checkpoint.require_fingerprint({"fingerprint": "a", checkpoint.RUN: stated}, "b", path, ours)


def test_another_fingerprint_is_refused_with_the_settings_that_differ(tmp_path):
    path, config = tmp_path / "c.safetensors", load_config("algoreas/mst_easy", "gin_small", steps=8)
    checkpoint.require_fingerprint({"fingerprint": "a"}, "a", path, config)
    with pytest.raises(
        CheckpointError,
        match=r"another run.*data are others.*--no-resume",
    ):
        checkpoint.require_fingerprint({"fingerprint": "a"}, "b", path, config)
    changes = {"training.log_every": 3, "training.eval_batch_size": 5, "model.hidden": 8}
    before = load_config("algoreas/mst_easy", "gin_small", steps=6, data_seed=3, overrides=changes)
    write_json(tmp_path / "config.json", before.to_dict())
    with pytest.raises(CheckpointError) as refused:
        checkpoint.require_fingerprint({"fingerprint": "a"}, "b", path, config)
    hidden = config.model.hidden
    told = f"data_seed 3 -> 0, model.hidden 8 -> {hidden}, training.steps 6 -> 8; choose another output folder"
    assert told in str(refused.value)
