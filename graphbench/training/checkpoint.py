"""Checkpoints: tensors and facts in one safetensors file, written whole or not at all.

Nothing is unpickled. The facts (step, curves, times) are stored in the file's metadata, so tensors and facts can never
come from two different moments. Random numbers need no storing: the numbers of an update are a function of
(seed, step, device number), see :meth:`graphbench.training.distributed.World.seed_step`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from graphbench.core.damage import fault_of
from graphbench.core.errors import CheckpointError, StoreError
from graphbench.core.files import atomic_path, default_mode
from graphbench.core.untrusted import require_regular
from graphbench.core.words import first_of
from graphbench.training.config import RunConfig
from graphbench.training.folders import RESTART, differing_settings, differing_weights

_FORMAT = 1
_KEY = "graphbench"
RUN = "run"  # fact: the settings of the run that stored the weights, for messages
_NAMED_SETTINGS = 6
_HASH = "sha256"


@dataclass
class TrainingState:
    """Progress of a run; together with weights and optimizer state it is all that a resumed run needs.

    Attributes:
        step: Finished updates. The data order is a function of it.
        train_loss: Points (step, mean loss since the point before).
        val_curve: Points (step, value of the selection metric on the validation split).
        unlogged: Losses of the updates after the last point of ``train_loss``.
        started: Start of the run, ISO 8601, UTC.
        wall_seconds: Time in the loop so far, validation and checkpoints included.
        cpu_seconds: Processor time of all processes in that time; None for a run that an older version began.
        threads: Threads of a process at the last update; None where an older version took it.
        operations: Floating-point operations of all updates, counted after the last one; None where they were not.
        timed_seconds: Time of updates alone, without the first update of each process.
        timed_graphs: Samples trained on in that time.
        peak_memory_bytes: Largest memory use seen.
        first_errors: Dataset -> its error at the first validation, where one model is selected on several datasets.
        shared_device: Whether another run of graphbench was seen on the same GPU.
    """

    step: int = 0
    train_loss: list[tuple[int, float]] = field(default_factory=list)
    val_curve: list[tuple[int, float]] = field(default_factory=list)
    unlogged: list[float] = field(default_factory=list)
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    wall_seconds: float = 0.0
    cpu_seconds: float | None = 0.0
    threads: int | None = None
    operations: float | None = None
    timed_seconds: float = 0.0
    timed_graphs: int = 0
    peak_memory_bytes: int = 0
    first_errors: dict[str, float] = field(default_factory=dict)
    shared_device: bool = False

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> TrainingState:
        """Return the state a checkpoint holds."""
        state = cls(**{"cpu_seconds": None, **facts})
        state.train_loss = [(int(step), float(value)) for step, value in state.train_loss]
        state.val_curve = [(int(step), float(value)) for step, value in state.val_curve]
        return state


@dataclass(frozen=True)
class BestValidation:
    """The validation that the run's best weights come from."""

    step: int
    score: float


def save_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Write tensors and facts to ``path``; the file appears whole or not at all.

    Args:
        path: The safetensors file. One that exists is replaced.
        tensors: Named tensors, on any device.
        facts: Anything JSON can hold.

    Raises:
        StoreError: If the file cannot be written.
    """
    copies = {
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()
    }
    words = json.dumps({"format": _FORMAT, **facts})
    whole = json.dumps({"format": _FORMAT, **facts, _HASH: _content_hash(copies, words)})
    with atomic_path(path) as aside:
        try:
            save_file(copies, aside, {_KEY: whole})  # one key: the library writes several in random order
            aside.chmod(default_mode())
        except SafetensorError as error:
            raise StoreError(f"cannot write {path}: {error}; free some space or choose another output") from error


def load_tensors(
    path: Path, remedy: str = f"delete it or train with {RESTART}"
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors (on the CPU) and the facts of a file that :func:`save_tensors` wrote.

    Args:
        path: The safetensors file.
        remedy: The advice at the end of the message on a damaged file.

    Raises:
        CheckpointError: If the file is absent, damaged or of another format. A file of an older version has no hash
            of its content, which is then not checked.
    """
    try:
        require_regular(path)
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            facts = dict(json.loads(metadata[_KEY]))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise CheckpointError(f"there is no checkpoint {path}; train the model first") from None
    except Exception as error:  # safetensors and torch raise errors of many kinds on damaged files
        raise CheckpointError(f"the checkpoint {path} {fault_of(error)}; {remedy}") from error
    words = metadata[_KEY]
    if _HASH in facts:
        metadata = {_HASH: facts.pop(_HASH)}
        words = json.dumps(facts)
    if metadata.get(_HASH, content_hash := _content_hash(tensors, words)) != content_hash:
        raise CheckpointError(f"the checkpoint {path} is damaged (its content lacks the stored hash); {remedy}")
    file_format = facts.pop("format", None)
    if file_format != _FORMAT:
        raise CheckpointError(
            f"the checkpoint {path} has format {file_format}, this version reads {_FORMAT}; train again"
        )
    return tensors, facts


def _content_hash(tensors: Mapping[str, Tensor], facts: str) -> str:
    """Return the SHA-256 of the facts and of every tensor's name, type, shape and bytes."""
    content = hashlib.sha256(facts.encode())
    for name, tensor in sorted(tensors.items()):
        content.update(f"\0{name} {tensor.dtype} {tuple(tensor.shape)}\0".encode())
        content.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return content.hexdigest()


def weights_hash(model: Any) -> str | None:
    """Return the SHA-256 of the parameters and buffers of a torch model; None for a model without any."""
    tensors = model.state_dict() if isinstance(model, nn.Module) else {}
    if not tensors:
        return None
    return _content_hash({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, "")


def training_tensors(model: nn.Module, optimizer: Optimizer) -> dict[str, Tensor]:
    """Return the tensors that training continues from: ``model.<name>`` and ``optimizer.<parameter number>.<name>``."""
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    for number, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{name}": torch.as_tensor(value) for name, value in state.items()}
    return tensors


def restore_training(model: nn.Module, optimizer: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Put the tensors of :func:`training_tensors` back.

    Raises:
        CheckpointError: If names or shapes do not fit the model.
    """
    load_model(model, tensors)
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        if key.startswith("optimizer."):
            _, number, name = key.split(".", 2)
            state.setdefault(int(number), {})[name] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def load_model(
    model: nn.Module,
    tensors: Mapping[str, Tensor],
    source: str = "the checkpoint",
    remedy: str = "build the model from the config.json of the run",
) -> None:
    """Load the ``model.<name>`` tensors into a model, all of them and no other.

    Args:
        model: The model; its parameters keep their type.
        tensors: The tensors, of any floating-point type.
        source: The file of the tensors, as the message names it.
        remedy: The advice at the end of the message on tensors that do not fit.

    Raises:
        CheckpointError: If names or shapes do not fit the model.
    """
    state = {name.removeprefix("model."): value for name, value in tensors.items() if name.startswith("model.")}
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        raise CheckpointError(
            f"{source} does not fit the model: {_differences(model.state_dict(), state) or error}; {remedy}"
        ) from error


def _differences(wanted: Mapping[str, Tensor], stored: Mapping[str, Tensor]) -> str:
    """Return in a line how tensors differ from the tensors of a model; each kind of difference with one example."""
    shapes = {
        f"{name} {tuple(stored[name].shape)}, not {tuple(tensor.shape)}": None
        for name, tensor in wanted.items()
        if name in stored and stored[name].shape != tensor.shape
    }
    kinds = {
        "missing": wanted.keys() - stored.keys(),
        "unknown to the model": stored.keys() - wanted.keys(),
        "of another shape": shapes.keys(),
    }
    words = [f"{len(names)} tensors are {kind} (such as {min(names)})" for kind, names in kinds.items() if names]
    return ", ".join(words)


def require_fingerprint(facts: Mapping[str, Any], expected: str, path: Path, config: RunConfig) -> None:
    """Refuse a checkpoint of another configuration, dataset or seed.

    Args:
        facts: The facts of the file.
        expected: Fingerprint of this run.
        path: The file.
        config: The configuration of this run.

    Raises:
        CheckpointError: If the fingerprints differ; the message names the settings that do, such as the seed.
    """
    fingerprint = facts.get("fingerprint")
    if fingerprint == expected:
        return
    differing = differing_settings(path.parent, config) or differing_weights(facts.get(RUN), config)
    changed = first_of(differing, _NAMED_SETTINGS)
    raise CheckpointError(
        f"{path} belongs to another run (fingerprint {fingerprint}, this run has {expected}): "
        f"{changed or 'its data are others, by content, parameters or draw'}; "
        f"choose another output folder, or pass {RESTART} to start again and overwrite it"
    )
