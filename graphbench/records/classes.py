"""Budget classes: upper limits of training, so that models with like budgets are ranked against each other.

A class holds every model that keeps its limit, so a model of a tighter class stands in the wider ones as well:

- ``minutes``: at most half an hour of one processor core for training, validations included; on a GPU at most as many
  floating-point operations as a core computes in that time.
- ``paper``: at most the budget of the paper's models on the dataset, in training samples (steps times samples per
  step). A dataset without printed scores has no such class.
- ``open``: every model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from graphbench.records.published import largest_printed_budget, printed_models, published

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card
    from graphbench.records.record import RunRecord

BudgetClass = Literal["minutes", "paper", "open"]

BUDGET_CLASSES: dict[BudgetClass, str] = {
    "minutes": "At most 30 minutes on one core",
    "paper": "At most the printed budget",
    "open": "Any budget",
}
"""The classes, the tightest first, with the name of each in headings."""

FINE_TUNED = "fine_tuned"
"""The protocol of runs that start from weights of another run, after that of their data: ``official:fine_tuned``."""

CORE_SECONDS = 1800.0
"""Most processor seconds of training in the class ``minutes``."""

CORE_OPERATIONS = 3.6e13
"""Most floating-point operations of training in the class ``minutes``: of half an hour at 20 GFLOP/s."""


def classes_of(records: Sequence[RunRecord], card: Card) -> tuple[BudgetClass, ...]:
    """Return the classes of the runs of one configuration with one budget, the tightest first.

    The mean over the runs decides, so that no seeds are left out of a class for being slow.

    Args:
        records: The runs, which differ in their seeds alone.
        card: The card of their dataset.
    """
    kept: list[BudgetClass] = []
    if _within_minutes(records):
        kept.append("minutes")
    if _within_printed(records, card):
        kept.append("paper")
    return (*kept, "open")


def core_seconds(record: RunRecord) -> float | None:
    """Return the processor seconds of a training on CPUs; None on a GPU, or where the record does not say.

    They include those of the trainings whose weights the model starts from.

    Older records hold the time on the clock, which is multiplied by the number of threads or processor cores. A time on
    the clock alone, as users may state it, says nothing of the processors.
    """
    if is_on_gpu(record):
        return None
    if record.cpu_seconds is not None or record.wall_seconds is None:
        return _with_start(record.cpu_seconds, record)
    cores = record.threads or record.hardware.get("threads") or record.hardware.get("cores")
    return None if cores is None else _with_start(record.wall_seconds * float(cores), record)


def started_from(record: RunRecord) -> str | None:
    """Return where the weights come from that a model starts from, as the configuration says; None without any."""
    start = _start(record)
    return None if start is None else str(start.get("source"))


def _start(record: RunRecord) -> Mapping[str, Any] | None:
    training = record.config.get("training")
    start = training.get("start") if isinstance(training, Mapping) else None
    return start if isinstance(start, Mapping) else None


def _with_start(seconds: float | None, record: RunRecord) -> float | None:
    """Return processor seconds with those of the weights that a model starts from; None where they are unknown."""
    start = _start(record)
    if start is None or seconds is None:
        return seconds
    before = start.get("core_seconds")
    return None if before is None else seconds + float(before)


def is_on_gpu(record: RunRecord) -> bool:
    """Return whether a model was trained on a GPU."""
    return str(record.hardware.get("device", "cpu")).partition(":")[0] not in ("cpu", "None", "")


def _within_minutes(records: Sequence[RunRecord]) -> bool:
    seconds = [core_seconds(record) for record in records]
    known = [value for value in seconds if value is not None]
    if len(known) == len(seconds):
        return sum(known) / len(known) <= CORE_SECONDS
    operations = [record.operations for record in records]
    counted = [value for value in operations if value is not None]
    return len(counted) == len(operations) and sum(counted) / len(counted) <= CORE_OPERATIONS


def _within_printed(records: Sequence[RunRecord], card: Card) -> bool:
    most = largest_printed_budget(card)
    printed = printed_models(card.domain) if published(card.address) else frozenset()

    def is_within(record: RunRecord) -> bool:
        if record.untrained:
            return most is not None
        if record.steps and record.batch_size:
            return most is not None and record.steps * record.batch_size <= most
        return record.model in printed and record.budget.small is False

    return all(map(is_within, records))
