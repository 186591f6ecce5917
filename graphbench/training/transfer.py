"""The transfer protocol: train a model on some datasets, then adapt it to another one with few labelled samples.

For every dataset of the plan, every number of samples ("shots") and every seed two models are trained with the same
configuration, steps and samples: one starts from the pretrained weights, the other one, the specialist, from scratch.
A dataset that is adapted to is left out of its own pretraining. With 0 shots the pretrained model is scored as it is,
which needs a pretrained dataset with the same inputs and outputs.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, TypeAdapter, ValidationError, field_validator

from graphbench.catalog.names import card as find_card
from graphbench.catalog.names import catalog
from graphbench.core.errors import CheckpointError, ConfigError
from graphbench.core.files import read_json
from graphbench.core.validation import StrictModel, explain
from graphbench.data.components.domain import find
from graphbench.data.store.layout import data_fingerprint
from graphbench.evaluation.metrics import METRICS
from graphbench.loader import Loader
from graphbench.models.transfer import require_part_kinds
from graphbench.records.classes import core_seconds
from graphbench.records.record import RunRecord
from graphbench.training.config import RunConfig, load_config
from graphbench.training.evaluate import scores_of_run
from graphbench.training.folders import run_name
from graphbench.training.run import train

logger = logging.getLogger(__name__)

Start = Literal["pretrained", "scratch"]
STARTS: tuple[Start, ...] = ("pretrained", "scratch")
_DIGITS = 8


class TransferPlan(StrictModel):
    """What is pretrained on what, and adapted to what.

    Attributes:
        pretrain: Ids, aliases, groups or globs of the datasets of the pretraining.
        adapt: Those of the datasets that the model is adapted to, one after the other.
        model: Name of a configuration in ``baselines/<domain>/``, or the path of a YAML file.
        adapt_model: The configuration of the adaptation, whose processor has the same shape; None for ``model``.
        shots: Numbers of labelled samples; 0 scores the pretrained model as it is.
        seeds: Seeds of pretraining and adaptation.
        pretrain_steps: Optimizer updates of the pretraining; None for the configuration's.
        steps: Optimizer updates of an adaptation; None for the configuration's.
        freeze: Kinds of parts that the adaptation does not train.
        limit: First samples of every split that are used; None for all.
        val_limit: Most samples that models are validated on; None for all.
        eval_limit: Most samples of every scored split; None for all.
        evaluate: Splits that are scored.
        set: Changes of both configurations.
        adapt_set: Further changes of the configuration of the adaptation, of both starts.
    """

    pretrain: tuple[str, ...] = Field(min_length=1)
    adapt: tuple[str, ...] = Field(min_length=1)
    model: str
    adapt_model: str | None = None
    shots: tuple[int, ...] = (0, 10, 100, 1000)
    seeds: tuple[int, ...] = (0, 1, 2)
    pretrain_steps: int | None = Field(None, gt=0)
    steps: int | None = Field(None, gt=0)
    freeze: tuple[str, ...] = ()
    limit: int | None = Field(None, gt=0)
    val_limit: int | None = Field(None, gt=0)
    eval_limit: int | None = Field(None, gt=0)
    evaluate: tuple[str, ...] = ("test",)
    set: dict[str, Any] = Field(default_factory=dict)
    adapt_set: dict[str, Any] = Field(default_factory=dict)

    @field_validator("shots")
    @classmethod
    def _counts(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if not value or min(value) < 0:
            raise ValueError("numbers of samples are 0 or more")
        return tuple(sorted(set(value)))

    @field_validator("seeds")
    @classmethod
    def _distinct(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(value))

    def words(self) -> str:
        """Return the plan in two sentences."""
        steps = "the configuration's steps" if self.pretrain_steps is None else f"{self.pretrain_steps:,} steps"
        adapted = "the configuration's steps" if self.steps is None else f"{self.steps:,} steps"
        limits = {"limit": self.limit, "eval_limit": self.eval_limit, "val_limit": self.val_limit}
        small = ", ".join(f"{name} {value:,}" for name, value in limits.items() if value is not None)
        seeds = ", ".join(map(str, self.seeds))
        sources = ", ".join(self.pretrain)
        return (
            f"`{self.model}` was pretrained on {sources} (without the dataset that it is adapted to) for {steps}. "
            f"`{self.adapt_model or self.model}` was adapted, and trained from scratch, for {adapted} on n labelled "
            f"samples; seeds {seeds}{'; ' + small if small else ''}."
        )

    def digits(self, names: Sequence[str], seed: int) -> str:
        """Return digits that change with every setting of the pretraining on some datasets."""
        facts = [list(names), self.model, self.pretrain_steps, self.limit, self.val_limit, self.set, seed]
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:_DIGITS]


@dataclass(frozen=True)
class Adapted:
    """One model after its adaptation.

    Attributes:
        dataset: Address of the dataset that it was adapted to.
        shots: Labelled samples that it was adapted with.
        seed: Seed of pretraining and adaptation.
        start: Whether it started from the pretrained weights or from scratch.
        pretrained_on: Addresses of the datasets of the pretraining; none for scratch.
        scores: Split -> score by the metric that ranks models; empty where nothing could be scored.
        core_seconds: Processor seconds of its training, the pretraining's included; None where they are unknown.
        folder: Folder of the run within the output folder; empty for 0 shots.
        note: Why there is no score, or nothing.
        metric: Name of the metric of the scores; empty in results of older versions.
    """

    dataset: str
    shots: int
    seed: int
    start: Start
    pretrained_on: tuple[str, ...]
    scores: dict[str, float]
    core_seconds: float | None
    folder: str = ""
    note: str = ""
    metric: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as JSON values."""
        return asdict(self)


def sources_of(plan: TransferPlan, dataset: str) -> tuple[str, ...]:
    """Return the addresses of the datasets that a model for a dataset is pretrained on: all but this one.

    Of graphs that were divided into folds all folds are left out, because every fold has all graphs.

    Raises:
        UnknownDataset: If a dataset is not registered.
        ConfigError: If nothing is left.
    """
    target = find_card(dataset)
    same_graphs = find("generator", target.generator).variants_divide
    names = tuple(
        name
        for name in _addresses(plan.pretrain)
        if name != dataset and not (same_graphs and find_card(name).path == target.path)
    )
    if not names:
        raise ConfigError(f"nothing is left to pretrain on for {dataset}; name another dataset with --pretrain")
    return names


def targets_of(plan: TransferPlan) -> tuple[str, ...]:
    """Return the addresses of the datasets that models are adapted to, after a check of all configurations.

    Raises:
        UnknownDataset: If a dataset is not registered.
        UnknownModel: If a domain has no configuration of a name.
        CardError: If a dataset has no split that is to be scored.
        ConfigError: If a setting is refused, a dataset has too few samples, or nothing is left to pretrain on.
    """
    targets = _addresses(plan.adapt)
    require_part_kinds(plan.freeze)
    for name in targets:
        if not find_card(name).select_splits(plan.evaluate):
            names = ", ".join(plan.evaluate)
            raise ConfigError(f"evaluate names {names}, and {name} has no such split; name a test split")
        for source in sources_of(plan, name):
            _pretrain_config(plan, source)
        _require_samples(plan, name, adapt_config(plan, name, 0, 0))
    return targets


def identity_of(plan: TransferPlan) -> dict[str, str]:
    """Return what the results of a plan depend on: dataset and use -> digest of its data and of the configuration.

    Args:
        plan: The plan; the files that it names may have changed since results were obtained.
    """
    facts: dict[str, str] = {}
    for name in targets_of(plan):
        facts[f"{name}, adaptation"] = _digest(name, adapt_config(plan, name, 0, 0))
        for source in sources_of(plan, name):
            facts[f"{source}, pretraining"] = _digest(source, _pretrain_config(plan, source))
    return facts


def _pretrain_config(plan: TransferPlan, source: str) -> RunConfig:
    return load_config(source, plan.model, family=find_card(source).family, overrides=plan.set)


def _digest(name: str, config: RunConfig) -> str:
    settings = config.model_dump(mode="json", include={"model", "training"})
    text = json.dumps([data_fingerprint(find_card(name)), settings], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[: 2 * _DIGITS]


def run_transfer(
    plan: TransferPlan,
    output: Path,
    root: Path | None = None,
    device: str = "auto",
    done: Iterable[Adapted] = (),
    progress: bool | None = False,
) -> Iterator[Adapted]:
    """Yield the adapted models of a plan, as they are trained; finished runs of the same folder are kept.

    Args:
        plan: The plan.
        output: Folder of the runs.
        root: Folder of the datasets; None for the default root.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:<number>``.
        done: Results of the same plan, which are yielded as they are: their runs need not exist any more.
        progress: Whether the pretraining shows its progress, as for :func:`graphbench.train`; adaptations are short
            and show none.

    Raises:
        GraphBenchError: As :func:`graphbench.train` raises.
    """
    runs = _Runs(plan, output, root, device, progress)
    known = {(one.dataset, one.seed, one.shots, one.start): one for one in done}
    for name in targets_of(plan):
        for seed in plan.seeds:
            wanted = [(shots, start) for shots in plan.shots for start in (STARTS if shots else STARTS[:1])]
            if all((name, seed, *one) in known for one in wanted):
                yield from (known[name, seed, *one] for one in wanted)
                continue
            names, folder = runs.pretrained(name, seed)
            for shots, start in wanted:
                if (name, seed, shots, start) in known:
                    yield known[name, seed, shots, start]
                elif shots:
                    yield runs.adapted(name, names, seed, shots, start, folder)
                else:
                    yield runs.unadapted(name, names, seed, folder)


@dataclass(frozen=True)
class _Runs:
    """The runs of a plan in their folder."""

    plan: TransferPlan
    output: Path
    root: Path | None
    device: str
    progress: bool | None

    def pretrained(self, name: str, seed: int) -> tuple[tuple[str, ...], Path]:
        """Train on all datasets but one, and return their addresses and the folder of the run."""
        plan, names = self.plan, sources_of(self.plan, name)
        folder = self.output / "pretrained" / f"{plan.digits(names, seed)}-seed{seed}"
        chosen: Any = names[0] if len(names) == 1 else list(names)
        how: dict[str, Any] = {"steps": plan.pretrain_steps, "seed": seed, "overrides": plan.set, **self._common()}
        train(chosen, plan.model, output=folder, evaluate="val", progress=self.progress, **how)
        return names, folder

    def adapted(
        self, name: str, names: tuple[str, ...], seed: int, shots: int, start: Start, pretrained: Path
    ) -> Adapted:
        """Train on some samples of a dataset, from the pretrained weights or from scratch, and score the model."""
        plan, begun = self.plan, start == "pretrained"
        place = self.output / "adapted" / Path(*name.replace(":", "-").split("/"))
        config = adapt_config(plan, name, shots, seed)
        words = (pretrained.name, *plan.freeze) if begun else ()
        folder = place / "-".join([start, *words, f"n{shots}", run_name(config)])
        how: dict[str, Any] = {"steps": plan.steps, "seed": seed, "overrides": _changes(plan, shots), **self._common()}
        if begun:
            how |= {"init_from": pretrained, "freeze": plan.freeze}
        model = plan.adapt_model or plan.model
        record: RunRecord = train(
            name, model, output=folder, evaluate=list(plan.evaluate), progress=False, **how
        ).record
        metric = find_card(name).metrics.primary
        scores = {split: float(values[metric]) for split, values in record.scores.items() if metric in values}
        sources, where = names if begun else (), folder.relative_to(self.output).as_posix()
        return Adapted(name, shots, seed, start, sources, scores, core_seconds(record), where, metric=metric)

    def unadapted(self, name: str, names: tuple[str, ...], seed: int, folder: Path) -> Adapted:
        """Return the scores of a pretrained model on a dataset that it was not adapted to."""
        limits = [limit for limit in (self.plan.eval_limit, self.plan.limit) if limit is not None]
        most = min(limits, default=None)
        data = Loader(name, limit=most, root=self.root, progress=False).load(())
        scores: dict[str, float] = {}
        note = _why_no_score(name, names)
        metric = data.card.metrics.primary
        if note:
            return Adapted(name, 0, seed, "pretrained", names, scores, None, note=note, metric=metric)
        try:
            how: dict[str, Any] = {"data": data, "device": self.device, "progress": False, "other_data": True}
            (split_scores,) = scores_of_run(folder, list(self.plan.evaluate), **how).values()
            scores = {split: float(score.primary) for split, score in split_scores.items()}
        except (CheckpointError, ConfigError) as error:
            logger.info("%s", error)
            note = "no score without adaptation, as the pretrained model has no encoders and decoders of this dataset"
        return Adapted(name, 0, seed, "pretrained", names, scores, None, note=note, metric=metric)

    def _common(self) -> dict[str, Any]:
        plan = self.plan
        limits = {"limit": plan.limit, "val_limit": plan.val_limit, "eval_limit": plan.eval_limit}
        return {**limits, "root": self.root, "device": self.device}


def _why_no_score(name: str, sources: Sequence[str]) -> str:
    """Return why a pretrained model cannot be scored as it is, where its datasets tell; nothing if it may be."""
    if len(sources) > 1:
        return "no score without adaptation, as a model of several datasets has decoders for these alone"
    source, target = find_card(sources[0]), find_card(name)
    other = [f.name for f in target.features if source.classes.get(f.name) != target.classes.get(f.name)]
    return f"no score without adaptation, as the classes of {other[0]} are others" if other else ""


@dataclass(frozen=True)
class StoredResults:
    """The content of a file ``transfer.json``.

    Attributes:
        plan: The plan as JSON values.
        results: The adapted models.
        identity: What the results depended on, as :func:`identity_of` returns it; empty in files of older versions.
    """

    plan: dict[str, Any]
    results: tuple[Adapted, ...]
    identity: dict[str, str] = field(default_factory=dict)


def read_results(path: Path) -> StoredResults:
    """Return the content of a file ``transfer.json``.

    Raises:
        ConfigError: If the file cannot be read, has another form, a score that is not finite or an unknown metric.
    """
    content = read_json(path, ConfigError, "delete the file, or choose another folder")
    try:
        stored = TypeAdapter(StoredResults).validate_python(content)
    except ValidationError as error:
        raise ConfigError(f"{path} is damaged ({explain(error)}); delete the file") from error
    for one in stored.results:
        if not all(map(isfinite, one.scores.values())) or (one.metric and one.metric not in METRICS):
            raise ConfigError(f"the results in {path} are damaged ({one.metric} {one.scores}); delete the file")
    return stored


def _addresses(words: Sequence[str]) -> tuple[str, ...]:
    known = catalog()
    return tuple(dict.fromkeys(known.card(id_).address for id_ in known.resolve(list(words))))


def _require_samples(plan: TransferPlan, name: str, config: RunConfig) -> None:
    """Refuse more labelled samples than the training split has.

    Raises:
        ConfigError: With both numbers.
    """
    count = find_card(name).split(config.training.train_split).count
    most = min(count, plan.limit or count)
    if plan.shots[-1] > most:
        raise ConfigError(
            f"{plan.shots[-1]:,} labelled samples of {name} are asked for, and there are {most:,}"
            f"{' with the limit' if most < count else ''}; ask for fewer"
        )


def adapt_config(plan: TransferPlan, name: str, shots: int, seed: int) -> RunConfig:
    """Return the configuration of an adaptation from scratch.

    Raises:
        UnknownModel: If the dataset's domain has no configuration of the name.
        ConfigError: If a setting is refused.
    """
    how: dict[str, Any] = {"steps": plan.steps, "seed": seed, "limit": plan.limit, "overrides": _changes(plan, shots)}
    return load_config(name, plan.adapt_model or plan.model, family=find_card(name).family, **how)


def _changes(plan: TransferPlan, shots: int) -> dict[str, Any]:
    limit = {"training.train_limit": shots} if shots else {}
    return {**plan.set, **plan.adapt_set, **limit}
