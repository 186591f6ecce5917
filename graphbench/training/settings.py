"""The section ``training`` of a configuration: how a model is trained, with which schedule and mixture of datasets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from graphbench.core.errors import ConfigError
from graphbench.core.validation import StrictModel

Mixture = Literal["turns", "proportional"] | dict[str, Annotated[float, Field(allow_inf_nan=True)]]


class MixtureSchedule:
    """A fixed order of datasets: update ``t`` is on the one that is furthest behind its share; ties go in order.

    With equal weights that is one after the other, in turn.

    Args:
        weights: Dataset -> weight, above 0, in the order of ties.
        start: Number of the first update.
    """

    def __init__(self, weights: Mapping[str, float], start: int = 0) -> None:
        total = sum(weights.values())
        self.shares = {name: weight / total for name, weight in weights.items()}
        self.counts = dict.fromkeys(weights, 0)
        self.step = 0
        self._equal = len(set(weights.values())) == 1
        if self._equal:  # the counts of any update follow from its number
            names = list(weights)
            self.step = start
            self.counts = {name: (start - i + len(names) - 1) // len(names) for i, name in enumerate(names)}
        else:
            for _ in range(start):
                self.take()

    def take(self) -> str:
        """Return the dataset of the next update."""
        self.step += 1
        names = list(self.shares)
        if self._equal:
            chosen = names[(self.step - 1) % len(names)]
        else:
            behind = {name: share * self.step - self.counts[name] for name, share in self.shares.items()}
            chosen = max(names, key=lambda name: round(behind[name], 9))
        self.counts[chosen] += 1
        return chosen


def mixture_weights(mixture: Mixture, sizes: Mapping[str, int]) -> dict[str, float]:
    """Return dataset -> weight of its updates.

    Args:
        mixture: ``turns`` (all alike), ``proportional`` (to the number of training samples), or dataset -> weight.
        sizes: Dataset -> training samples, in the order of the run.

    Raises:
        ConfigError: If a mapping lacks a dataset, names one that is not trained on, or has a weight that is no positive
            number.
    """
    if mixture == "turns":
        return dict.fromkeys(sizes, 1.0)
    if mixture == "proportional":
        return {name: float(size) for name, size in sizes.items()}
    differing: Sequence[str] = sorted(set(mixture) ^ set(sizes))
    if differing:
        raise ConfigError(f"training.mixture names {', '.join(mixture)}, the run trains on {', '.join(sizes)}")
    for name, weight in mixture.items():
        if not 0 < weight < math.inf:
            raise ConfigError(f"training.mixture: the weight of {name} is {weight:g}; give a finite number above 0")
    return {name: float(mixture[name]) for name in sizes}


Schedule = Literal["cosine", "linear", "constant"]


def learning_rate_factor(step: int, horizon: int, warmup: int = 0, schedule: Schedule = "cosine") -> float:
    """Return the factor on the peak learning rate for the update that follows ``step`` finished updates.

    The factor rises linearly from ``1 / warmup`` to 1 during the first ``warmup`` updates. It then falls to 0 at
    ``horizon``: along half a cosine (``cosine``, Loshchilov and Hutter, 2017, equation 5 without restarts), on a line
    (``linear``), or not at all (``constant``). After the horizon it keeps its last value.

    Args:
        step: Finished optimizer updates, from 0.
        horizon: Updates after which a falling schedule reaches 0.
        warmup: Updates of linear warm-up; 0 for none.
        schedule: Shape of the fall.
    """
    if step < warmup:
        return (step + 1) / warmup
    if schedule == "constant":
        return 1.0
    progress = min((step - warmup) / max(horizon - warmup, 1), 1.0)
    if schedule == "linear":
        return 1.0 - progress
    return 0.5 * (1.0 + math.cos(math.pi * progress))


_EVALUATIONS_PER_RUN = 20
_LOSSES_PER_RUN = 200


class NeighbourSettings(StrictModel):
    """How a large graph is trained on in parts.

    Attributes:
        nodes: Nodes per update whose outputs are learned.
        per_hop: Most incoming arcs that are drawn of every node, hop by hop; as many numbers as the model has layers
            of message passing.
    """

    nodes: int = Field(1024, ge=1)
    per_hop: tuple[Annotated[int, Field(ge=1)], ...] = Field(min_length=1, max_length=32)


class StartSettings(StrictModel):
    """The weights of another model that a model starts from.

    Attributes:
        source: The folder of the run, ``<dataset>/<model>`` of stored weights, or the path of their file.
        weights: SHA-256 of the other model's weights.
        core_seconds: Processor seconds of its training, with those of the models that it started from; None where they
            are unknown.
        freeze: Kinds of parts that are not trained: ``processor``, ``encoders``, ``decoders``.
    """

    source: str
    weights: str = Field(pattern=r"^[0-9a-f]{64}$")
    core_seconds: float | None = Field(None, ge=0)
    freeze: tuple[Literal["processor", "encoders", "decoders"], ...] = ()


class TrainingConfig(StrictModel):
    """How a model is trained.

    Attributes:
        steps: Budget in optimizer updates.
        batch_size: Graphs, or prompts, per update, over all devices and micro-batches together.
        lr: Peak learning rate of AdamW.
        weight_decay: Decoupled weight decay; applies to tensors of two or more dimensions only.
        betas: AdamW's two moment decay rates.
        warmup: Updates of linear warm-up.
        schedule: Shape of the learning rate after the warm-up: cosine, linear (both to 0) or constant.
        schedule_steps: Updates after which the schedule reaches 0; None means ``steps``. When set, ``steps`` only says
            where to stop, so a run can be continued to a larger budget.
        gradient_clip: Largest allowed norm of the whole gradient; None for no clipping.
        accumulate: Micro-batches one batch is cut into; saves memory and leaves the update the same.
        eval_every: Updates between two validations; None for a twentieth of the schedule, or more where the validation
            split is large: at least as many graphs are trained on as are validated on.
        eval_at: Further updates after which the model is validated. A run that stops at one of them and is continued
            is validated where an uninterrupted one is.
        patience: Validations without improvement before the run stops early; None to never stop early.
        eval_batch_size: Graphs per batch in validation and tests; ``auto`` fits it to the graphs' sizes. Prompts: most
            per batch; long ones are fewer.
        precision: ``fp32``, ``bf16`` (autocast), ``tf32`` (float32, whose matrix products have factors of 11
            significant bits; CUDA devices only), or ``auto``: bf16 on CUDA devices that support it, else fp32.
        compile: True compiles the whole model with ``torch.compile``; ``auto`` and False compile nothing but the
            attention of ``model.attention: flex``.
        seed: Seed of weights, data order and dropout.
        log_every: Updates averaged into one point of the loss curve; None for a two-hundredth of the schedule.
        checkpoint_every: Updates between two checkpoints; None for one at every validation.
        train_split: Split that is trained on. Trajectories: ``train_multi_size`` for endless data of several sizes.
        train_limit: Most samples of the training split that are trained on, the first ones; None for all.
        val_split: Split on which the weights are chosen that are scored in the end.
        neighbours: One large graph per split: train on some of its nodes at a time, with samples of their
            neighbourhoods (``NeighbourSettings``), ``{nodes: 1024, per_hop: [10, 10]}``; None for the whole graph.
        mixture: Several datasets: which one an update is on: ``turns`` (one after the other), ``proportional`` to the
            number of training samples, or a mapping dataset -> weight.
        augment: Random changes of the training graphs that keep their labels, ``<domain>.<name>``, one after the other
            (``graphbench.data.components.augmentations``).
        prefer_later: Of validations with equal scores take the weights of the last one, not the first: where validation
            is soon perfect, more training still helps on harder data.
        start: The weights that the model starts from; None for random ones.
        task: Options of the kind of task, such as the options of the loss and of the decoder for problems that are
            solved (``graphbench.tasks.solve.task.SolveTrainOptions``) or the errors by which numbers are learned
            (``graphbench.tasks.predict.task.PredictTrainOptions``); see ``train_options_type`` of its class.
    """

    steps: int = Field(1000, gt=0)
    batch_size: int = Field(256, gt=0)
    lr: float = Field(1e-4, gt=0)
    weight_decay: float = Field(0.1, ge=0)
    betas: tuple[float, float] = (0.9, 0.999)
    warmup: int = Field(0, ge=0)
    schedule: Schedule = "cosine"
    schedule_steps: int | None = Field(None, gt=0)
    gradient_clip: float | None = Field(None, gt=0)
    accumulate: int = Field(1, gt=0)
    eval_every: int | None = Field(None, gt=0)
    eval_at: tuple[int, ...] = ()
    patience: int | None = Field(None, gt=0)
    eval_batch_size: int | Literal["auto"] = "auto"
    precision: Literal["auto", "fp32", "tf32", "bf16"] = "auto"
    compile: bool | Literal["auto"] = "auto"
    seed: int = Field(0, ge=0, lt=2**32)
    log_every: int | None = Field(None, gt=0)
    checkpoint_every: int | None = Field(None, gt=0)
    train_split: str = "train"
    train_limit: int | None = Field(None, gt=0)
    val_split: str = "val"
    neighbours: NeighbourSettings | None = None
    mixture: Mixture = "turns"
    augment: tuple[str, ...] = ()
    prefer_later: bool = False
    start: StartSettings | None = None
    task: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _consistent(self) -> TrainingConfig:
        if self.horizon < self.steps:
            raise ValueError(f"schedule_steps {self.horizon} is below steps {self.steps}; raise it or leave it out")
        if self.warmup >= self.horizon:
            raise ValueError(f"warmup {self.warmup} leaves nothing of the schedule's {self.horizon} steps; lower it")
        if isinstance(self.eval_batch_size, int) and self.eval_batch_size < 1:
            raise ValueError(f"eval_batch_size {self.eval_batch_size} must be positive or 'auto'")
        return self

    @property
    def horizon(self) -> int:
        """Updates after which the schedule ends."""
        return self.schedule_steps or self.steps

    def validation_interval(self, val_graphs: int) -> int:
        """Return the updates between two validations on a split of ``val_graphs`` graphs."""
        return self.eval_every or max(1, self.horizon // _EVALUATIONS_PER_RUN, -(-val_graphs // self.batch_size))

    @property
    def log_interval(self) -> int:
        """Updates averaged into one point of the loss curve."""
        return self.log_every or max(1, self.horizon // _LOSSES_PER_RUN)
