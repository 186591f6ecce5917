"""Tuning: a search for the best configuration of a training method, which can be stopped and continued at any time."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphbench.core.afterwards import never_fatal
from graphbench.core.errors import TuningError
from graphbench.core.files import write_json
from graphbench.core.foreign import described
from graphbench.core.processes.pool import Limits
from graphbench.core.words import counted
from graphbench.tuning.execution import LOGS, make_execution
from graphbench.tuning.history import RESULT, History
from graphbench.tuning.journal import EventKind, Journal, Progress, open_journal, resume
from graphbench.tuning.loop import TRIALS, Continuation, Loop, Stop
from graphbench.tuning.method import search_of_dataset
from graphbench.tuning.records import (
    SETTINGS,
    check_identity,
    result_record,
    settings_record,
)
from graphbench.tuning.report.report import write_report
from graphbench.tuning.report.sentences import warnings_of
from graphbench.tuning.search import make_search
from graphbench.tuning.settings import OptimizationArgs
from graphbench.tuning.space import to_plain
from graphbench.tuning.trial import Trial, incumbent_of
from graphbench.tuning.trials import Observer, TrialResult
from graphbench.tuning.worker import Job, TrainingMethod, call, optional_arguments, require_training_method

if TYPE_CHECKING:
    from graphbench.tuning.search import Search

logger = logging.getLogger(__name__)

REPORT = "report"


@dataclass(frozen=True, repr=False)
class Best:
    """The result of a tuning run.

    Attributes:
        config: The best configuration: hyperparameters by name.
        cost: Its cost at the largest budget that was reached.
        score: The cost as a score in the metric's natural direction, for models of this package; the cost itself for
            other training methods.
        trials: All finished trials, in the order in which they were proposed. Failed ones have no cost.
        model: The configuration's model at ``max_budget`` if the training method returns models; else None.
        path: Folder of the run.
        report: Page of the report; None if it was not asked for or could not be written.
    """

    config: dict[str, Any]
    cost: float
    score: float
    trials: tuple[Trial, ...]
    model: Any
    path: Path
    report: Path | None = None

    def __repr__(self) -> str:
        """Return a short text without the trials."""
        failed = sum(not trial.succeeded for trial in self.trials)
        trials = counted(len(self.trials), "trial") + (f", {failed} failed" if failed else "")
        model = "" if self.model is None else f", model={type(self.model).__name__}"
        return f"Best(score={self.score:.6g}, config={self.config}, trials=<{trials}>{model}, path={str(self.path)!r})"


class Optimizer:
    """Tunes a training method by multi-fidelity search; a run that was interrupted is continued.

    Every trial runs in a separate process. A trial that raises, returns NaN, takes too long, needs too much memory or
    dies is recorded with its reason and does not end the run. A configuration that is promoted to a larger budget gets
    the checkpoint it returned before.

    Args:
        optimization_args: The settings, see :class:`~graphbench.tuning.settings.OptimizationArgs`: a mapping, a
            dataclass, or any object with these attributes.
        training_method: ``training_method(config, seed, budget)`` trains a configuration (a dict) with a budget, e.g. a
            number of optimizer steps. It returns a cost (lower is better), or a mapping or an object with ``cost`` and
            further fields, e.g. :class:`~graphbench.tuning.trials.TrialResult`. If its signature has ``checkpoint``, it
            gets the path that the last smaller budget of the configuration returned, or None. If its signature has
            ``folder``, it gets a folder of this configuration alone, which exists until the configuration can no longer
            be promoted. The method travels to other processes, so it must be possible to pickle it; functions of a
            script or notebook can be pickled.

    Raises:
        ConfigError: If a setting is unknown, missing or refused, or the training method cannot be called this way.

    Source: Lindauer et al., SMAC3, JMLR 23 (2022); Li et al., Hyperband, JMLR 18 (2018).
    """

    def __init__(self, optimization_args: Any, training_method: TrainingMethod) -> None:
        self.args = OptimizationArgs.of(optimization_args)
        require_training_method(training_method)
        self.method = training_method
        self._output = self.args.output.expanduser().absolute()

    @classmethod
    def for_dataset(cls, dataset: str, *, model: str | Path | None = None, **settings: Any) -> Optimizer:
        """Return an optimizer for a model of this package on a dataset; it uses training and validation data only.

        Args:
            dataset: Id or alias of one dataset.
            model: Name of a configuration in ``baselines/<domain>/``, or the path of a YAML file; None for the domain's
                default.
            settings: Settings of the run as in :class:`~graphbench.tuning.settings.OptimizationArgs`, and arguments of
                :class:`~graphbench.tuning.method.DatasetMethod`. The space defaults to the model's in ``hpo/``, with
                its budgets, and the output folder to ``runs/tune/<dataset>/<model>-seed<seed>``.

        Raises:
            ConfigError: If a setting, the space or the model's configuration is refused.
            UnknownDataset: If no dataset has that name.
            UnknownModel: If no model configuration has that name.
        """
        return cls(*search_of_dataset(dataset, model, **settings))

    def optimize(self, observers: Sequence[Observer] = (), *, report: bool = True, refit: bool = True) -> Best:
        """Run the search, or continue it, and return the best configuration.

        With one worker, the same settings and seed give the same trials, also across interruptions. A run in which no
        trial succeeded starts from its first trial. ``result.json`` is written whenever the run stops, also by an error
        or Ctrl-C; the report is written only when the run stops by itself.

        Args:
            observers: They are notified of every trial, e.g. a :class:`~graphbench.tuning.live.LiveDisplay`.
            report: Write the report page, ``<output>/report/report.html``.
            refit: Train the model of the best configuration in this process, if the training method returns models; the
                method may load one that was already trained with the largest budget.

        Raises:
            ConfigError: If the output folder holds another run.
            TuningError: If the folder is in use, the cluster went away, no trial succeeded, the first five failed for
                the same reason, time ran out before one ended, or the best configuration's model could not be made.
            StoreError: If the folder cannot be written.
        """
        with open_journal(self._output) as journal:
            settings = settings_record(self.args, self.method)
            check_identity(journal, settings, self._output, retry_failed=self.args.retry_failed)
            if prepare := getattr(self.method, "prepare", None):
                prepare(self._default())
            journal.append(EventKind.OPENED, settings=settings)
            write_json(self._output / SETTINGS, settings, sort_keys=False, indent=1)
            progress = resume(journal, self._make_search, self._output, retry_failed=self.args.retry_failed)
            try:
                self._run(progress, journal, settings, observers)
            finally:
                journal.append(EventKind.CLOSED)
                result = self._write_result(progress, journal, settings)
        page = self._report(result) if report else None
        best = replace(self._best(progress, refit), report=page)
        with never_fatal("the check of the result for warnings", f"the result is in {self._output / RESULT}"):
            for warning in warnings_of(History(result)):
                logger.warning("%s", warning)
        return best

    def _report(self, result: Mapping[str, Any]) -> Path | None:
        """Write the report and return its page; None if that failed."""
        again = shlex.join(["graphbench", "tune", str(self._output)])
        with never_fatal("the report", f"the result is in {self._output / RESULT}; write the report with: {again}"):
            return write_report(result, self._output / REPORT)
        return None

    def _run(
        self, progress: Progress, journal: Journal, settings: Mapping[str, Any], observers: Sequence[Observer]
    ) -> None:
        args = self.args
        limits = Limits(args.trial_limit, args.memory_limit)
        stop = Stop(args.trials, args.walltime_limit)
        with closing(make_execution(self.method, args.workers, args.cluster, limits, self._output)) as execution:
            try:
                for observer in observers:
                    observer.on_start(settings, tuple(progress.trials))
                continues = "checkpoint" in optional_arguments(self.method)
                continues &= getattr(self.method, "continues", True)
                continuation = Continuation(continues, getattr(self.method, "steps_in", None))
                Loop(progress, execution, journal, stop, self._output, continuation, observers).run()
            finally:
                for observer in observers:
                    observer.on_end()

    def _make_search(self) -> Search:
        args = self.args
        worst = args.worst_cost if args.worst_cost is not None else getattr(self.method, "worst_cost", None)
        return make_search(args.method, args.space, args.budgets, args.eta, args.seed, worst)

    def _default(self) -> dict[str, Any]:
        return to_plain(self.args.space.get_default_configuration())

    def _write_result(self, progress: Progress, journal: Journal, settings: Mapping[str, Any]) -> dict[str, Any]:
        best = incumbent_of(progress.trials)
        baseline = getattr(self.method, "baseline", None)
        file = baseline(best.config, best.budget) if best is not None and baseline is not None else None
        result = result_record(settings, progress.trials, journal, progress.lanes, progress.forgotten, file)
        write_json(self._output / RESULT, result, sort_keys=False, indent=1)
        return result

    def _best(self, progress: Progress, refit: bool) -> Best:
        best = incumbent_of(progress.trials)
        if best is None:
            raise TuningError(self._why_none(progress.trials))
        score_of = getattr(self.method, "score_of", None)
        return Best(
            config=dict(best.config),
            cost=best.measured,
            score=best.measured if score_of is None else score_of(best.measured),
            trials=tuple(sorted(progress.trials, key=lambda trial: trial.number)),
            model=self._model(progress, best) if refit and progress.has_model else None,
            path=self._output,
        )

    def _why_none(self, trials: Sequence[Trial]) -> str:
        """Return why there is no best configuration, and the remedy."""
        again = "start the same search again"
        if not trials:
            return (
                f"the walltime limit of {self.args.walltime_limit or 0:g} s, which includes preparation, ended "
                f"before the first trial ended; raise it and {again}: it continues"
            )
        return (
            f"none of {counted(len(trials), 'trial')} succeeded; the first: {trials[0].reason}. Their output is "
            f"in {self._output / LOGS}. Correct it and {again}: it then starts from its first trial"
        )

    def _model(self, progress: Progress, best: Trial) -> Any:
        """Return the model of a configuration, trained in this process with the largest budget, from its checkpoint."""
        budget = self.args.max_budget
        _, checkpoint = progress.checkpoint_of(best.config_id, budget)
        folder = self._output / TRIALS / str(best.config_id)
        try:
            result = TrialResult.of(
                call(self.method, Job(best.number, best.config, best.seed, budget, checkpoint, folder))
            )
        except Exception as error:
            raise TuningError(
                f"the search is done ({self._output / RESULT}), but the model of its best configuration could not be "
                f"made: {described(error)}"
            ) from error
        return result.model
