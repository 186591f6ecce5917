"""Records of the scores of users' models, whose budgets are compared with the budgets of published scores."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphbench._version import __version__
from graphbench.catalog.names import card as card_of
from graphbench.core.arguments import whole_number
from graphbench.core.errors import ResultError
from graphbench.core.files import read_json, write_json
from graphbench.data.build.limits import limited_parameter
from graphbench.data.store.layout import data_fingerprint
from graphbench.evaluation.score import Score, replicates_of
from graphbench.records.budgets import BUDGET_NOT_STATED, PARTLY_SCORED, Budget, not_stated
from graphbench.records.published import published_budget
from graphbench.records.score_checks import check_scores, scored_split
from graphbench.tasks.registry import task_of

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card
    from graphbench.data.batches.dataset import GraphDataset


NOTHING_TRAINED = "nothing was trained"
_MOST_CORES = 4096  # of a machine that is not described
_TOLERANCE = 1.05  # of the clocks
OWN_MODEL = "own"  # ``config["kind"]`` of records of scores that were not trained here


@dataclass
class StatedCost:
    """The cost of the training of a model that was not trained by this package.

    Attributes:
        wall_seconds: Time on the clock in seconds; None where not stated.
        cpu_seconds: Processor time of all threads and processes in seconds.
        threads: Threads that computed.
        peak_memory_bytes: Largest memory use of the process, or of the GPU where one was used.
        hardware: The machine, as :func:`graphbench.records.machine.hardware` describes it, with ``device``.
    """

    wall_seconds: float | None = None
    cpu_seconds: float | None = None
    threads: int | None = None
    peak_memory_bytes: int | None = None
    hardware: Mapping[str, str | int | float | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse numbers that no cost can be.

        Raises:
            ResultError: With the value.
        """
        for name in ("wall_seconds", "cpu_seconds", "threads", "peak_memory_bytes"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and 0 <= value < float("inf")):
                raise ResultError(f"{name} is {value!r:.80}; give a number that is not negative")
        self._require_plausible()

    def _require_plausible(self) -> None:
        """Refuse more processor time than the processors of the machine have in the time on the clock.

        Raises:
            ResultError: With both times.
        """
        if not self.wall_seconds or self.cpu_seconds is None:
            return
        cores = self.hardware.get("cores")
        known = isinstance(cores, int) and cores > 0
        most = self.wall_seconds * (cores if known else _MOST_CORES) * _TOLERANCE + 1.0  # type: ignore[operator]
        if self.cpu_seconds > most:
            machine = f"the {cores} cores of the machine" if known else f"{_MOST_CORES:,} cores"
            raise ResultError(
                f"cpu_seconds is {self.cpu_seconds:g}, more than {machine} have in wall_seconds = "
                f"{self.wall_seconds:g}; give the processor time of all cores together, and the time on the clock"
            )

    def save(self, path: str | Path) -> None:
        """Write the cost to a JSON file, which ``graphbench evaluate --cost`` reads.

        Raises:
            ResultError: If there is no time to write, as within the block of :func:`graphbench.measure`.
            StoreError: If the file cannot be written.
        """
        if self.wall_seconds is None and self.cpu_seconds is None:
            raise ResultError("the cost has no time yet; save it after the block `with graphbench.measure() as cost:`")
        write_json(Path(path), asdict(self), sort_keys=False)

    @classmethod
    def load(cls, path: str | Path) -> StatedCost:
        """Return the cost in a file of :meth:`save`.

        Raises:
            ResultError: If the file cannot be read, or a value is refused.
        """
        content = read_json(Path(path), ResultError, "write it with cost.save(path)")
        known = {one.name for one in fields(cls)}
        if not isinstance(content, dict) or not content.keys() <= known:
            raise ResultError(f"{path} holds no cost of a training; write it with cost.save(path)")
        if not isinstance(content.get("hardware", {}), dict):
            raise ResultError(f"{path}: hardware is {content['hardware']!r:.80}, not a mapping; write the file again")
        try:
            cost = cls(**content)
        except ResultError as error:
            raise ResultError(f"{path}: {error}") from error
        if cost.wall_seconds is None and cost.cpu_seconds is None:
            raise ResultError(f"{path} states no time; measure the training with graphbench.measure()")
        return cost


def stated_machine(cpu: str | None, gpu: str | None, gpus: int = 1) -> dict[str, str | int | float | None]:
    """Return the machine that a user states, as records describe it.

    Args:
        cpu: Name of the processor.
        gpu: Name of the GPU; None where none was used.
        gpus: Number of GPUs, if one was used.
    """
    return {"cpu": cpu, "gpu": gpu, "gpus": gpus if gpu else 0, "device": "cuda" if gpu else "cpu"}


@dataclass(frozen=True)
class Stated:
    """A user's statements on a model that was not trained by this package.

    Attributes:
        model: Its name.
        seed: Its seed.
        steps: Optimizer steps; None where not stated.
        batch_size: Samples per step; None where not stated.
        parameters: Trained numbers; None where not stated.
        notes: Facts that a reader must know.
        config: Settings that distinguish configurations of one name.
        protocol: Which data was trained on, where a benchmark has several ways; None for the dataset's split ``train``.
        deterministic: Whether neither seed nor chance has any influence on the scores; None where not stated.
        cost: Time, memory and machine of the training, measured or stated; None where not stated.
        untrained: Whether nothing was trained, as for rules and solvers.
        predictions: Split -> SHA-256 of the file of predictions that was scored.
    """

    model: str
    seed: int = 0
    steps: int | None = None
    batch_size: int | None = None
    parameters: int | None = None
    notes: str = ""
    config: Mapping[str, Any] | None = None
    protocol: str | None = None
    deterministic: bool | None = None
    cost: StatedCost | None = None
    untrained: bool = False
    predictions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse numbers and texts that no record can have.

        Raises:
            ResultError: With the value.
        """
        for name, least in (("seed", 0), ("steps", 1), ("batch_size", 1), ("parameters", 0)):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, whole_number(name, value, least, "", ResultError))
        if self.untrained and (self.steps or self.parameters or self.batch_size):
            raise ResultError(
                "nothing was trained, but optimizer steps, samples per step or trained parameters are stated; leave "
                "them out, or leave untrained out"
            )
        if self.untrained and self.cost is not None and (self.cost.wall_seconds or self.cost.cpu_seconds):
            raise ResultError("nothing was trained, but the time of a training is stated; leave one of the two out")
        if not isinstance(self.notes, str):
            raise ResultError(f"notes is {self.notes!r:.80}; give a text")
        try:
            json.dumps(dict(self.config or {}), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ResultError(f"config cannot be written as JSON: {error}; give numbers, texts and lists") from error


def fields_of_record(
    splits: Mapping[str, GraphDataset],
    scores: Mapping[str, Mapping[str, float]],
    stated: Stated,
    published_samples: int | None = None,
) -> dict[str, Any]:
    """Return the fields of the record of scores that were not measured by a run of this package.

    A split that the scores do not name leaves no trace in the record.

    Args:
        splits: The splits that were scored, by name.
        scores: Split, or part of one -> its score.
        stated: The user's statements on the model.
        published_samples: Training samples of the smallest published budget; None looks them up.

    Raises:
        ResultError: If no split was scored, the scores do not belong to the splits (see
            :func:`~.score_checks.check_scores`), the dataset does not have the protocol, or a value is
            refused.
    """
    if not splits or not scores:
        raise ResultError("no split was scored, so there is no record; score at least one")
    check_scores(splits, scores)
    scored = {name: split for name, split in splits.items() if name in {scored_split(part, splits) for part in scores}}
    first = next(iter(scored.values()))
    card = first.card
    if stated.protocol is not None:
        require_protocol(card, stated.protocol)
    counts = {name: split.stored_graphs for name, split in scored.items() if name in scores}
    counts |= {name: graphs for name, score in scores.items() if name not in scored and (graphs := _graphs(score))}
    if published_samples is None:
        least = published_budget(card)
    else:
        least = whole_number("published_samples", published_samples, 1, "", ResultError)
    partly = any(count < card.split(name).count for name, count in counts.items() if name in scored)
    return dict(
        dataset=card.address,
        dataset_version=card.version,
        data_fingerprint=first.data_fingerprint,
        data_hashes={name: split.content_hash for name, split in scored.items()},
        data_seed=card.data_seed,
        model=stated.model,
        config={"kind": OWN_MODEL, **(stated.config or {})},
        parameters=0 if stated.untrained else stated.parameters,
        seed=stated.seed,
        steps=stated.steps,
        batch_size=stated.batch_size,
        **_cost_fields(stated),
        predictions={name: digest for name, digest in stated.predictions.items() if name in scores},
        budget=_budget(stated, least, _limits_in_words(card, partly)),
        graphbench_version=__version__,
        started=datetime.now(UTC),
        deterministic=stated.deterministic,
        scores={name: dict(score) for name, score in scores.items()},
        graphs_scored=counts,
        scores_stated=tuple(name for name, score in scores.items() if _graphs(score) is None),
        replicates=replicates_of(scores),
        protocol=stated.protocol or card.protocol,
        notes=stated.notes,
    )


def _cost_fields(stated: Stated) -> dict[str, Any]:
    """Return the costs of training as fields of a record; nothing was spent where nothing was trained."""
    cost = stated.cost
    if cost is None:
        return {"wall_seconds": 0.0, "cpu_seconds": 0.0} if stated.untrained else {}
    if not stated.untrained and 0 in (cost.wall_seconds, cost.cpu_seconds):
        raise ResultError(
            "a training of 0 seconds is stated; give its time, or say that nothing was trained (untrained)"
        )
    costs = {
        "hardware": dict(cost.hardware),
        "wall_seconds": cost.wall_seconds,
        "cpu_seconds": cost.cpu_seconds,
        "threads": cost.threads,
        "peak_memory_bytes": cost.peak_memory_bytes,
    }
    return costs | ({"wall_seconds": 0.0, "cpu_seconds": 0.0} if stated.untrained else {})


def _graphs(score: Mapping[str, float]) -> int | None:
    return score.graphs if isinstance(score, Score) else None


def _limits_in_words(card: Card, partly_scored: bool) -> list[str]:
    """Return the reasons why scores cover less than the dataset: fewer samples, or smaller ones."""
    parameter = limited_parameter(card)
    whole = None if parameter is None else card_of(card.address).with_data_seed(card.data_seed)
    smaller = whole is not None and data_fingerprint(card) != data_fingerprint(whole)
    return [f"fewer {parameter} than the dataset has"] * smaller + [PARTLY_SCORED] * partly_scored


def _budget(stated: Stated, published: int | None, limits: Sequence[str]) -> Budget:
    """Return the stated budget, measured against the smallest published one; with limits it is small."""
    steps, batch_size, small = stated.steps, stated.batch_size, None
    label = NOTHING_TRAINED if stated.untrained else BUDGET_NOT_STATED
    if steps is not None and batch_size is not None:
        label = f"{steps} steps of {batch_size} samples, as stated"
        small = None if published is None else steps * batch_size < published
    elif steps is not None:
        label = f"{steps} steps as stated, {not_stated(steps, batch_size)}"
    elif batch_size is not None:
        label = f"{batch_size} samples per step as stated, {not_stated(steps, batch_size)}"
    return Budget(small=True if limits else small, label=", ".join([label, *limits]))


def require_protocol(card: Card, protocol: str | None) -> None:
    """Refuse a protocol that runs on generated data of a dataset cannot have.

    Raises:
        ResultError: With the protocols that they can have.
    """
    protocols = task_of(card).protocols
    if protocol not in protocols:
        stated = "no protocol" if protocol is None else f"the protocol {protocol!r:.60}"
        listed = " or ".join(f"{name}" for name in protocols if name is not None) or "none"
        raise ResultError(f"{stated} is stated; runs on {card.address} have {listed}")
