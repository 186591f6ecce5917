"""Records of finished runs: the model, the data, the budget and the scores.

A record is one JSON file under ``baselines/results/<domain>/<dataset>/``. The format only ever grows: a file written by
an older version must still load.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ConfigDict, Field, ValidationError, field_validator

from graphbench.catalog.cards import draw_suffix
from graphbench.catalog.names import card
from graphbench.core.errors import ResultError, UnknownDataset
from graphbench.core.validation import StrictModel, explain
from graphbench.data.components.domain import find
from graphbench.evaluation.metrics import range_problem
from graphbench.models.tabular.estimators import draws_nothing
from graphbench.records.budgets import Budget
from graphbench.records.earlier_names import config_for_digests
from graphbench.records.provenance import Source, Verification

if TYPE_CHECKING:
    from graphbench.data.batches.dataset import GraphDataset
    from graphbench.records.stated import Stated, StatedCost

SCHEMA = 2
_FIRST_WITH_DIGESTS = 2  # every record of this format has one; some of the first format have
DIGEST = "digest"  # key of the file, which is no part of the record
_LEFT_OUT = (
    "operations", "predictions", "recomputed_from", "replicates", "scores_stated", "verification", "weights_hash",
)  # fmt: skip
"""Keys that only some records have."""

_NUMBERS = re.compile(r"\[\n\s*([\d.eE+-]+(?:,\n\s*[\d.eE+-]+)*)\n\s*\]")  # a list of numbers, one in a line
MODEL_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*")
MODEL_NAME_RULE = "letters (A-Z, a-z), digits, dots, dashes and underscores alone, and no dot or dash first"
_FITTED_ROWS = re.compile(r"fitted on ([\d,]{1,20}) rows")  # in the notes of tabular models


class RunRecord(StrictModel):
    """One training run and its scores.

    Attributes:
        schema_version: Version of this format (key ``schema`` in the file).
        dataset: Dataset id, e.g. ``algoreas/mst_easy``.
        dataset_version: Version of the dataset card; scores of different versions never mix.
        data_fingerprint: Fingerprint of parameters, generator and transforms that names the data folder.
        data_hashes: Content hash of each split used.
        data_seed: Which draw of the dataset; 0 is the canonical one, also in older records.
        model: Name of the model configuration, e.g. ``gin``.
        config: The full configuration of the run, overrides applied.
        parameters: Number of trainable parameters; None where the model has none, or it is not stated.
        seed: Seed of initialisation and data order.
        steps: Optimizer steps taken; None for a learner without steps, or where it is not stated.
        batch_size: Samples per optimizer step; None as for steps.
        budget: How much training this was.
        hardware: The return value of :func:`graphbench.records.machine.hardware`.
        graphbench_version: Version of the package.
        git_version: Commit of the checkout, if there is one.
        started: Start of training (UTC).
        wall_seconds: Training time without data generation, in seconds.
        cpu_seconds: Processor time of training in seconds, of all threads and all processes; None where not measured.
        operations: Floating-point operations of training, counted on one batch, times the number of steps; None where
            they were not counted.
        threads: Threads of each process that computed while training; None if they were not recorded.
        deterministic: Whether neither seed nor chance has any influence on the scores; None if it was not recorded, see
            :func:`is_deterministic`.
        peak_memory_bytes: Peak memory of the process (CPU) or of the device (GPU) during the training.
        throughput_graphs_per_s: Training graphs per second.
        latency_ms: Median milliseconds to predict one graph alone, decoding included, until the answer is in memory.
        latency_ms_batched: Median milliseconds per graph within a batch.
        curves: Name -> list of ``(step, value)``, e.g. ``train_loss``, ``val_f1``.
        scores: Split -> metric -> value, within the metric's range where it is registered. Out-of-distribution splits
            stand under the names of the splits (``n256``).
        graphs_scored: Split -> graphs behind its scores; splits of older records are not in it.
        graphs_loaded: Split -> graphs that were loaded for training and validation; empty in older records.
        scores_stated: Splits whose scores were stated as numbers: nothing says which graphs are behind them.
        replicates: Split -> values of the primary metric under bootstrap weights of its samples, paired between records
            of the same data; see :mod:`graphbench.evaluation.metrics.bootstrap`. Older records have none.
        protocol: Which data was trained on, where a benchmark has several ways (``canonical``, ``multi_size``).
        best_step: Step of the checkpoint that was scored; None when it is the last one.
        weights_hash: SHA-256 of the weights that were scored, of all datasets that were trained together; None for
            models without tensors and in older records.
        published_reference: Where the number to compare with is printed, e.g. ``"GraphBench, Table 16"``.
        notes: Anything a reader must know.
        recomputed_from: What the check of a submission computed the scores from; None for scores of a run, or stated
            ones.
        predictions: Split -> SHA-256 of the file of predictions that was scored; a small file is kept beside the
            record, see :mod:`graphbench.records.kept`.
        verification: The score of the sealed weights on a sealed draw; None where there is none.
    """

    model_config = ConfigDict(allow_inf_nan=False, populate_by_name=True)

    schema_version: Literal[1, 2] = Field(default=2, alias="schema")
    dataset: str
    dataset_version: int = Field(ge=1)
    data_fingerprint: str = ""
    data_hashes: dict[str, str] = Field(default_factory=dict)
    data_seed: int = Field(default=0, ge=0)
    model: str
    config: dict[str, Any]
    parameters: int | None = Field(default=None, ge=0)
    seed: int
    steps: int | None = Field(default=None, ge=0)
    batch_size: int | None = Field(default=None, ge=1)
    budget: Budget
    hardware: dict[str, str | int | float | None] = Field(default_factory=dict)
    graphbench_version: str = ""
    git_version: str | None = None
    started: datetime
    wall_seconds: float | None = Field(default=None, ge=0)
    cpu_seconds: float | None = Field(default=None, ge=0)
    operations: float | None = Field(default=None, ge=0)
    threads: int | None = Field(default=None, ge=1)
    deterministic: bool | None = None
    peak_memory_bytes: int | None = None
    throughput_graphs_per_s: float | None = None
    latency_ms: float | None = None
    latency_ms_batched: float | None = None
    curves: dict[str, list[tuple[int, float]]] = Field(default_factory=dict)
    scores: dict[str, dict[str, float]]
    graphs_scored: dict[str, int] = Field(default_factory=dict)
    graphs_loaded: dict[str, int] = Field(default_factory=dict)
    scores_stated: tuple[str, ...] = ()
    replicates: dict[str, list[float]] = Field(default_factory=dict)
    protocol: str | None = None
    best_step: int | None = None
    weights_hash: str | None = None
    published_reference: str | None = None
    notes: str = ""
    recomputed_from: Source | None = None
    predictions: dict[str, str] = Field(default_factory=dict)
    verification: Verification | None = None

    @field_validator("model")
    @classmethod
    def _check_model(cls, model: str) -> str:
        if not MODEL_NAME.fullmatch(model):
            raise ValueError(f"the name of a model has {MODEL_NAME_RULE}")
        return model

    @field_validator("notes", "model", "git_version", "published_reference", "hardware", "budget")
    @classmethod
    def _check_texts(cls, value: Any) -> Any:
        texts = value.values() if isinstance(value, Mapping) else [getattr(value, "label", value)]
        for text in texts:
            if isinstance(text, str) and not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
                raise ValueError(f"the text {text!r:.80} has half a character (a surrogate), which no file can hold")
        return value

    @field_validator("scores")
    @classmethod
    def _check_scores(cls, scores: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
        for split, values in scores.items():
            for name, value in values.items():
                if problem := range_problem(name, value):
                    raise ValueError(f"{split}: {problem}")
        return scores

    @classmethod
    def from_scores(
        cls,
        splits: Mapping[str, GraphDataset],
        scores: Mapping[str, Mapping[str, float]],
        *,
        model: str,
        seed: int = 0,
        steps: int | None = None,
        batch_size: int | None = None,
        parameters: int | None = None,
        published_samples: int | None = None,
        config: Mapping[str, Any] | None = None,
        notes: str = "",
        protocol: str | None = None,
        deterministic: bool | None = None,
        cost: StatedCost | None = None,
        untrained: bool = False,
    ) -> RunRecord:
        """Return a record of the scores of a user's model on one dataset, which reports show beside other records.

        ``graphbench evaluate --predictions`` makes its records by the same function. Scores that evaluators return say
        which samples they are of, and are refused where these are not the samples of the splits, each once. Numbers in
        a plain mapping are taken as stated, and ``scores_stated`` names their splits.

        Args:
            splits: The splits that were scored, by name, as they were loaded: their hashes enter the record. Of a split
                that was scored in part, the part: ``splits.test[:100]``.
            scores: Split, or part of one (``test_n16``) -> metric -> value, such as evaluators return.
            model: Name of the model: letters, digits, dots, dashes and underscores.
            seed: Its seed.
            steps: Optimizer steps it was trained with; None where not stated.
            batch_size: Samples per step; None where not stated.
            parameters: Trained numbers; None where not stated.
            published_samples: Training samples (steps times batch size) of the smallest published budget to compare
                with; None looks it up.
            config: Settings that distinguish configurations of one name.
            notes: Facts that a reader must know.
            protocol: Which data was trained on, where a benchmark has several ways; the card's where it is None.
            deterministic: Whether neither seed nor chance has any influence on the scores, as of solvers, rules and
                closed-form fits; None where not stated.
            cost: Time, memory and machine of the training: of ``with graphbench.measure() as cost:``, or a
                :class:`~graphbench.records.stated.StatedCost`; the budget class ``minutes`` needs it.
            untrained: Whether nothing was trained, as for rules and solvers; they are in the class ``minutes``.

        Raises:
            ResultError: If nothing was scored, a score belongs to another split than stated or to no given split, a
                metric is none of the card's, a score is not finite or outside its metric's range, or a value is
                refused.
        """
        from graphbench.records.stated import Stated

        stated = Stated(
            model, seed, steps, batch_size, parameters, notes, config, protocol, deterministic, cost, untrained
        )
        return cls.of_statement(splits, scores, stated, published_samples)

    @classmethod
    def of_statement(
        cls,
        splits: Mapping[str, GraphDataset],
        scores: Mapping[str, Mapping[str, float]],
        stated: Stated,
        published_samples: int | None = None,
    ) -> RunRecord:
        """Return the record of scores and of a user's statements on the model; see :meth:`from_scores`."""
        from graphbench.records.stated import fields_of_record

        try:
            return cls(**fields_of_record(splits, scores, stated, published_samples))
        except ValidationError as error:
            raise ResultError(f"the record of {stated.model!r} is refused: {explain(error, cls)}") from error

    @property
    def untrained(self) -> bool:
        """Whether nothing was trained, as for rules and solvers."""
        return self.parameters == 0 and self.wall_seconds == 0

    @property
    def remarks(self) -> str:
        """The notes, and which scores were stated as numbers."""
        stated = f"scores of {', '.join(self.scores_stated)} as stated" if self.scores_stated else ""
        return "; ".join(part for part in (self.notes, stated) if part)

    @cached_property
    def config_hash(self) -> str:
        """Eight hex digits of a hash of the data, model, configuration and budget.

        Seeds, draws and the time of a pretraining are left out.
        """
        data = self.data_fingerprint.removesuffix(draw_suffix(self.data_seed))
        return _hash({"dataset": [self.dataset, self.dataset_version, data], **self._setup})

    @cached_property
    def setup_hash(self) -> str:
        """Eight hex digits naming model, configuration and budget, the same on all datasets."""
        model, config = self._setup["model"]
        return _hash(self._setup | {"model": [model, {k: v for k, v in config.items() if k != "dataset"}]})

    @property
    def _setup(self) -> dict[str, Any]:
        return {
            "model": [self.model, _common_to_repetitions(config_for_digests(self.config))],
            "budget": [self.steps_asked, self.batch_size, self.budget.small],
        }

    def model_copy(self, **how: Any) -> RunRecord:
        """Return a copy as Pydantic does, without the hashes of this record."""
        copied = super().model_copy(**how)
        for name in ("config_hash", "setup_hash"):
            copied.__dict__.pop(name, None)
        return copied

    @property
    def steps_asked(self) -> int | None:
        """The budget in steps: ``config["training"]["steps"]`` where given (early stopping may take fewer)."""
        training = self.config.get("training")
        steps = training.get("steps") if isinstance(training, Mapping) else None
        return steps if isinstance(steps, int) else self.steps

    @property
    def relative_path(self) -> Path:
        """Where the record lies below the results folder."""
        folder = Path(*self.dataset.replace(":", "-").split("/"))
        return folder / f"{self.model}-{self.config_hash}-seed{self.seed}{draw_suffix(self.data_seed)}.json"

    def to_json(self) -> str:
        """Return the record as indented JSON, a list of numbers per line, with a digest of its content."""
        content = self._content()
        text = json.dumps({**content, DIGEST: _digest(content)}, indent=1, allow_nan=False)
        return _NUMBERS.sub(lambda match: f"[{' '.join(match[1].split())}]", text) + "\n"

    @property
    def digest(self) -> str:
        """The digest of the record's content that :meth:`to_json` writes, 64 hex digits."""
        return _digest(self._content())

    def _content(self) -> dict[str, Any]:
        unused = {name for name in _LEFT_OUT if not getattr(self, name)}
        return self.model_dump(mode="json", by_alias=True, exclude=unused) | {"schema": SCHEMA}


def is_deterministic(record: RunRecord) -> bool:
    """Return whether neither seed nor chance has any influence on a record's scores.

    A model that was trained in steps is never deterministic, even if the record says so: its weights and the order of
    its samples are drawn. An older record says nothing; then the configuration decides: estimators that draw no random
    numbers, such as k nearest neighbours, are deterministic if they are fitted on all training rows, and searches if
    they are rules of the problem. In all other cases the function returns False, as chance may have had an influence.
    """
    if record.steps:
        return False
    if record.deterministic is not None:
        return record.deterministic
    model = record.config.get("model")
    if not isinstance(model, Mapping):
        return False
    if model.get("kind") == "search":
        return _is_rule(record.dataset, model.get("method"))
    if model.get("kind") not in ("tabular", "selector"):
        return False
    rows, most = _FITTED_ROWS.search(record.notes), model.get("most_rows")
    if rows is None or not isinstance(most, int) or int(rows[1].replace(",", "")) >= most:
        return False  # a random sample of the rows
    options = model.get("options")
    return bool(draws_nothing(str(model.get("processor")), options if isinstance(options, Mapping) else {}))


def _is_rule(dataset: str, method: object) -> bool:
    """Return whether a search of a dataset's problem draws no random number; False for an unknown dataset."""
    try:
        problem = card(dataset).task.options.get("problem")
    except UnknownDataset:
        return False
    return problem is not None and isinstance(method, str) and method in find("problem", problem).rules


def _digest(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 hash of a record's content, which tells whether it is as the run wrote it."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, allow_nan=False).encode()).hexdigest()


def _fits(content: Mapping[str, Any], digest: Any) -> bool:
    """Return whether a digest belongs to a record's content; never of content with NaN, which no record has."""
    try:
        return bool(digest == _digest(content))
    except ValueError:
        return False


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:8]


def _common_to_repetitions(value: Any) -> Any:
    """Return a configuration without seeds, the number of the draw and the seconds of a pretraining."""
    if isinstance(value, Mapping):
        left_out = ("seed", "data_seed", "core_seconds")
        return {key: _common_to_repetitions(item) for key, item in value.items() if key not in left_out}
    return value
