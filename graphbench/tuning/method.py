"""The models of this package as a training method: it takes a configuration and returns the cost of a validation."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

from graphbench.catalog.cards import Card
from graphbench.catalog.names import catalog
from graphbench.core.errors import CheckpointError, ConfigError
from graphbench.core.files import default_root
from graphbench.core.words import counted
from graphbench.evaluation.metrics.registry import METRICS
from graphbench.tasks.registry import task_of
from graphbench.training.config import RunConfig, load_config, parse_overrides
from graphbench.training.fidelity import SAMPLES, STEPS, Fidelity
from graphbench.training.learners.base import fidelity_of
from graphbench.training.overrides import flat
from graphbench.tuning.settings import OptimizationArgs
from graphbench.tuning.space import defaults_from
from graphbench.tuning.space_file import SET_BY_THE_SEARCH, with_space_file
from graphbench.tuning.trial import cost_of
from graphbench.tuning.trials import TrialResult

if TYPE_CHECKING:
    from graphbench.loader import Splits
    from graphbench.training.run import Fit

logger = logging.getLogger(__name__)

_AT_STEP = re.compile(r"\bat step (\d+)")
_METHOD_ARGUMENTS = {"overrides", "limit", "val_limit", "root", "device"}


@dataclass(frozen=True)
class DatasetMethod:
    """Trains a model of this package on a dataset and returns the cost of its validation; it never opens a test split.

    The model's learner decides the unit of a budget (``fidelity``). If a budget counts steps, a configuration is
    trained along the schedule of the largest budget, also in a trial of a smaller one, and is validated at every budget
    of the ladder in addition to the trainer's regular interval. A promoted configuration therefore continues from its
    checkpoint exactly as if it had been trained to the larger budget at once, bit for bit on a CPU. If a budget counts
    training samples, every trial fits the model from scratch on the first samples of the training split.

    The score of a trial is the best validation score of its run so far; the trainer keeps the weights that reached it.
    The cost is
    ``1 - score`` for metrics between 0 and 1 where higher is better, ``-score`` for other metrics where higher is
    better, and the score itself for errors and losses.

    An instance is small and can be pickled; each process opens the dataset once.

    Args:
        dataset: Id or alias of one dataset.
        model: Name of a configuration in ``baselines/<domain>/``, or the path of a YAML file; None for the domain's
            default.
        budgets: The ladder: rising budgets in training samples or in steps. The schedule ends at the last budget in
            steps.
        overrides: Changes of the configuration in all trials: dotted key -> value, or ``key=value`` strings.
        limit: Train and validate on the first ``limit`` samples of the splits.
        val_limit: Validate on the first ``val_limit`` samples instead.
        root: Folder of the datasets; None for the default root. Workers on other machines must have access to it.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:<number>``.

    Raises:
        UnknownDataset: If no dataset has that name.
        ConfigError: If several datasets are named, the budgets do not rise, or an override sets a key that the search
            sets.
    """

    dataset: str
    model: str | Path | None = None
    budgets: Sequence[int] = field(default=(), kw_only=True)
    overrides: Mapping[str, Any] | Sequence[str] = field(default_factory=dict, kw_only=True)
    limit: int | None = field(default=None, kw_only=True)
    val_limit: int | None = field(default=None, kw_only=True)
    root: str | Path | None = field(default=None, kw_only=True)
    device: str = field(default="auto", kw_only=True)

    def __post_init__(self) -> None:
        card = _single_card(self.dataset)
        if not self.budgets or list(self.budgets) != sorted(set(self.budgets)) or self.budgets[0] < 1:
            raise ConfigError(f"budgets must rise from at least 1, e.g. (100, 300, 900); got {tuple(self.budgets)}")
        root = default_root() if self.root is None else Path(self.root).expanduser()
        model = self.model
        if model is not None and Path(model).suffix in (".yaml", ".yml"):
            model = str(Path(model).expanduser().resolve())
        values = {
            "dataset": card.address,
            "model": None if model is None else str(model),
            "budgets": tuple(self.budgets),
            "overrides": _flat(parse_overrides(self.overrides)),
            "root": str(root.resolve()),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        _refuse_keys_of_the_search(self.overrides)

    def __call__(
        self,
        config: Mapping[str, Any],
        seed: int,
        budget: int,
        checkpoint: Path | None = None,
        folder: Path | None = None,
    ) -> TrialResult:
        """Train a configuration to a budget and return its cost.

        Args:
            config: Dotted key -> value, e.g. ``{"training.lr": 3e-4, "model.hidden": 128}``.
            seed: Seed of weights, data order and dropout.
            budget: Total number of optimizer steps, including the steps before the checkpoint; or training samples.
            checkpoint: The checkpoint that the last smaller budget returned; None if the configuration is new or is not
                continued.
            folder: The configuration's folder. An interrupted run in it is continued. None trains in a temporary
                folder, from which nothing can be continued.

        Raises:
            ConfigError: If the configuration is refused, e.g. a warm-up as long as the largest budget.
            TrainingError: If the loss is not finite (then it is also a ``FloatingPointError``), or the device's memory
                is too small.
        """
        run = self.run_config(config, seed, budget)
        if folder is None:
            with TemporaryDirectory(prefix="graphbench-trial-") as temporary:
                return self._result(self._fit(run, Path(temporary)), budget, None, None)
        home = self._home(folder, seed, budget)
        try:
            return self._result(self._fit(run, home), budget, checkpoint, home)
        except FloatingPointError as error:
            _note_steps(error, 0 if checkpoint is None else self._smaller(budget))
            raise

    @cached_property
    def fidelity(self) -> Fidelity:
        """The unit that the budgets count."""
        return fidelity_of(load_config(self.dataset, self.model, family=self.card.family))

    @property
    def continues(self) -> bool:
        """Whether a configuration that is promoted continues from its checkpoint."""
        return self.fidelity.is_continued

    @property
    def card(self) -> Card:
        """The dataset's card."""
        return catalog().card(self.dataset)

    @property
    def metric(self) -> str:
        """The metric of validation: the card's primary metric; for models that generate text, ``loss``."""
        return task_of(self.card).selection[0]

    @property
    def description(self) -> dict[str, Any]:
        """The identity of a search, in JSON values: data, card, model configuration, overrides, limits."""
        from graphbench.data.store.layout import data_fingerprint
        from graphbench.training.identity import card_meaning

        plain = load_config(self.dataset, self.model, family=self.card.family)
        values = plain.model_dump(mode="json", include={"model", "training"}, exclude_defaults=True)
        return {
            "dataset": self.dataset,
            "data": data_fingerprint(self.card),
            "card": card_meaning(self.card),
            "model": plain.model_name,
            "configuration": _flat(values),
            "overrides": dict(cast(Mapping[str, Any], self.overrides)),
            "metric": self.metric,
            "limit": self.limit,
            "val_limit": self.val_limit,
        }

    @property
    def code(self) -> dict[str, str]:
        """The code of plug-ins and scripts that the trials use, see :func:`graphbench.core.sources.code_of`."""
        from graphbench.training.identity import code_of_run

        changes = cast(Mapping[str, Any], self.overrides)
        config = load_config(self.dataset, self.model, family=self.card.family, overrides=changes)
        return dict(code_of_run(config, [self.card]).hashes)

    @property
    def worst_cost(self) -> float | None:
        """The largest possible cost; None if costs have no bound, like the costs of error metrics."""
        metric = METRICS.get(self.metric)
        if metric is None or not metric.higher_is_better or math.isinf(metric.lowest):
            return None
        return cost_of(metric.lowest, self.metric)

    def score_of(self, cost: float) -> float:
        """Return the score, in its natural direction, of a cost."""
        return cost_of(cost, self.metric)  # each of the three rules is the inverse of itself

    def run_config(self, config: Mapping[str, Any], seed: int = 0, budget: int | None = None) -> RunConfig:
        """Return the configuration of the run that a trial trains.

        Args:
            config: Dotted key -> value.
            seed: Seed of the run.
            budget: The budget; None for the largest one.

        Raises:
            ConfigError: If a key is unknown, a value is refused, or a key is set by the search.
        """
        _refuse_keys_of_the_search(config)
        fixed = cast(Mapping[str, Any], self.overrides)
        _refuse_both(config, fixed)
        changes = {**fixed, **config}
        budget = self.budgets[-1] if budget is None else budget
        steps: int | None = None
        if self.fidelity == STEPS:
            changes |= {"training.schedule_steps": self.budgets[-1], "training.eval_at": list(self.budgets[:-1])}
            steps = budget
        else:
            changes["training.train_limit"] = budget
        return load_config(
            self.dataset,
            self.model,
            family=self.card.family,
            overrides=changes,
            seed=seed,
            limit=self.limit,
            steps=steps,
        )

    def steps_in(self, folder: Path, seed: int) -> int:
        """Return the steps that the last checkpoint in a configuration's folder has; 0 without one."""
        from graphbench.training.checkpoint import load_tensors
        from graphbench.training.loop import CHECKPOINT

        try:
            _, facts = load_tensors(Path(folder) / f"seed{seed}" / CHECKPOINT)
            return int(facts["state"]["step"])
        except (CheckpointError, LookupError, TypeError, ValueError):
            return 0

    def baseline(self, config: Mapping[str, Any], budget: int | None = None) -> dict[str, Any]:
        """Return a configuration file that trains a configuration to a budget as the search did.

        A budget of None is the largest budget.

        ``graphbench train`` with this file, the same seed and the same limit ends with the same weights, unless the
        search selects them on fewer samples (``val_limit``).
        """
        config_of_run = self.run_config(config, budget=budget)
        run = config_of_run.to_dict()
        left_out = {"seed"} if config_of_run.training.steps < self.budgets[-1] else {"seed", "schedule_steps"}
        if self.fidelity != STEPS:  # settings of steps would be read as if they mattered
            left_out |= run["training"].keys() - config_of_run.training.model_dump(exclude_defaults=True).keys()
        training = {key: value for key, value in run["training"].items() if key not in left_out}
        model = {key: value for key, value in run["model"].items() if (key, value) != ("kind", "graph")}
        return {"model": model, "training": training}

    def prepare(self, config: Mapping[str, Any], workers: int | None = None, progress: bool | None = None) -> None:
        """Check a configuration, and generate missing data for training and validation.

        It is called once before the search, so that workers only read.

        Args:
            config: A configuration of the space, e.g. the default one.
            workers: Processes that generate; None for all cores.
            progress: Show progress bars; None for terminals only.

        Raises:
            ConfigError: If the configuration is refused.
        """
        from graphbench.training.run import checked_tasks

        run = self.run_config(config)
        (task,) = checked_tasks(run, {self.dataset: self.card}).values()
        data = _loaded(self.dataset, str(self.root), self._limits(run), task.unlabelled, workers, progress)
        for split in (run.training.train_split, run.training.val_split):
            if task.is_stored(split):
                data[split]

    def _home(self, folder: Path, seed: int, budget: int) -> Path:
        """Return the folder of a run; each run that is not continued has a separate folder."""
        return Path(folder) / (f"seed{seed}" if self.continues else f"seed{seed}-{budget}")

    def _limits(self, run: RunConfig) -> tuple[tuple[str, int], ...]:
        val = self.limit if self.val_limit is None else self.val_limit
        train = self.limit if self.fidelity == STEPS else self.budgets[-1]
        wanted = ((run.training.train_split, train), (run.training.val_split, val))
        return tuple((split, limit) for split, limit in wanted if limit is not None)

    def _fit(self, run: RunConfig, folder: Path) -> Fit:
        """Train, from the folder's checkpoint if it has a usable one."""
        from graphbench.training.run import fit

        unlabelled = task_of(self.card, run.training.task).unlabelled
        data = _opened(self.dataset, str(self.root), self._limits(run), unlabelled)
        try:
            return fit(run, data, folder, device=self.device)
        except CheckpointError as error:
            logger.warning("training starts from the beginning: %s", error)
            return fit(run, data, folder, device=self.device, resume=False)

    def _result(self, fit: Fit, budget: int, checkpoint: Path | None, home: Path | None) -> TrialResult:
        if not fit.summary.curve:
            raise ConfigError(f"the validation split of {self.dataset} is empty; raise val_limit")
        step, score = fit.best(budget)
        metrics: dict[str, float] = {f"val_{fit.summary.metric}": score}
        cost, done = cost_of(score, fit.summary.metric), fit.summary.steps
        if done is None:
            return TrialResult(cost, metrics, fit.model, home, steps=budget)
        continued = 0 if checkpoint is None else min(self._smaller(budget), fit.summary.started_at)
        return TrialResult(
            cost,
            metrics | {"best_step": step},
            model=fit.model if done <= budget else None,
            checkpoint=home,
            steps=0 if fit.summary.started_at > budget else done - continued,
        )

    def _smaller(self, budget: int) -> int:
        """Return the next smaller budget of the ladder; 0 below the smallest."""
        return max((rung for rung in self.budgets if rung < budget), default=0)


def _note_steps(error: FloatingPointError, before: int) -> None:
    """Set the attribute ``steps`` of a trainer's error: the steps that the trial has done, read from the message."""
    if match := _AT_STEP.search(str(error)):
        error.steps = max(0, int(match[1]) - before)  # type: ignore[attr-defined]


def search_of_dataset(
    dataset: str, model: str | Path | None = None, **settings: Any
) -> tuple[OptimizationArgs, DatasetMethod]:
    """Return the settings and the training method of :meth:`graphbench.tuning.optimizer.Optimizer.for_dataset`.

    The default configuration of the search has the values of the model's configuration, as far as they are in the
    space.

    Args:
        dataset: Id or alias of one dataset.
        model: Name of a configuration in ``baselines/<domain>/``, or the path of a YAML file; None for the domain's
            default.
        settings: Settings of the run, and arguments of :class:`DatasetMethod` but the budgets. ``space`` may be a name
            in ``hpo/<domain>/``, and defaults to the model's; ``output`` defaults to
            ``runs/tune/<dataset>/<model>-seed<seed>``.

    Raises:
        ConfigError: If a setting, the space or the model's configuration is refused.
        UnknownDataset: If no dataset has that name.
        UnknownModel: If no model configuration has that name.
    """
    method_arguments = {name: settings.pop(name) for name in _METHOD_ARGUMENTS & settings.keys()}
    card = _single_card(dataset)
    config = load_config(card.address, model, family=card.family, overrides=method_arguments.get("overrides"))
    seed, fidelity, most = settings.get("seed", 0), fidelity_of(config), None
    output = Path("runs", "tune", *card.address.replace(":", "-").split("/"), f"{config.model_name}-seed{seed}")
    if settings.get("space") is None:
        settings["space"] = config.model_name
    if settings.setdefault("fidelity", fidelity.name) != fidelity.name:
        raise ConfigError(f"budgets of {config.model_name} count {fidelity.name}, not {settings['fidelity']}")
    if fidelity == SAMPLES:
        count, limit = card.split(config.training.train_split).count, method_arguments.get("limit")
        most = count if limit is None else min(count, limit)
    settings = with_space_file(settings, card.domain, most)
    if most is not None:
        settings = {"min_budget": most, "max_budget": most, **settings}
    args = OptimizationArgs.of({"output": output, **settings})
    if most is not None and args.max_budget > most:
        raise ConfigError(f"max_budget={args.max_budget} is more than the {counted(most, 'training sample')} there are")
    method = DatasetMethod(card.address, model, budgets=args.budgets, **method_arguments)
    if args.cluster is None:
        _require_device(method.device)
    _refuse_keys_of_the_search(args.space)
    _refuse_both(args.space, cast(Mapping[str, Any], method.overrides))
    return args.model_copy(update={"space": defaults_from(method.run_config({}), args.space)}), method


@lru_cache(maxsize=2)
def _opened(dataset: str, root: str, limits: tuple[tuple[str, int], ...], unlabelled: tuple[str, ...]) -> Splits:
    """Return the dataset, opened once per process."""
    return _loaded(dataset, root, limits, unlabelled, 1, False)


def _loaded(
    dataset: str,
    root: str,
    limits: tuple[tuple[str, int], ...],
    unlabelled: tuple[str, ...],
    workers: int | None,
    progress: bool | None,
) -> Splits:
    from graphbench.loader import Loader

    limit = dict(limits) or None
    options: dict[str, Any] = {"root": root, "limit": limit, "workers": workers, "progress": progress}
    return cast("Splits", Loader(dataset, unlabelled=unlabelled, **options).load(()))


def _single_card(dataset: str) -> Card:
    ids = catalog().resolve(dataset)
    if len(ids) != 1:
        raise ConfigError(f"one dataset is tuned at a time, {dataset!r} stands for {len(ids)}; name one")
    return catalog().card(ids[0])


def _require_device(device: str) -> None:
    """Refuse a device that this machine does not have."""
    if device not in ("auto", "cpu"):  # these always exist, and the check imports torch
        from graphbench.training.distributed import choose_device

        choose_device(device)


def _refuse_keys_of_the_search(keys: Any) -> None:
    for key, why in SET_BY_THE_SEARCH.items():
        if key in keys:
            raise ConfigError(f"{key} cannot be tuned or set here: {why}; leave it out")


def _refuse_both(tuned: Mapping[str, Any], fixed: Mapping[str, Any]) -> None:
    for key in sorted(fixed.keys() & tuned.keys()):
        raise ConfigError(f"{key} is tuned and set to {fixed[key]!r} at once; leave one of the two out")


def _flat(nested: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested mappings as dotted key -> value, without empty ones."""
    return {key: value for key, value in flat(nested).items() if value != {}}
