"""Scores of algorithm selection: penalised average costs, the closed gap, and the evaluator of chosen algorithms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Feature
from graphbench.core.errors import EvaluationError
from graphbench.evaluation.evaluator import BaseEvaluator, targets_of
from graphbench.evaluation.graphs import is_graphs, one_batch
from graphbench.evaluation.inputs import ScoreScale, Table, as_array, check_finite, refuse, refuse_overflow
from graphbench.evaluation.metrics import METRICS, metric
from graphbench.evaluation.metrics.bootstrap import Floats
from graphbench.evaluation.score import Score
from graphbench.models.tabular.presolving import presolved
from graphbench.tasks.select.metrics import SelectedInstances, SelectionSums, mean_closed_gap

_LARGEST = 1e140  # of costs: their sums stay finite


def par(times: Any, cutoff: float, factor: float = 10.0, solved: Any = None) -> float:
    """Return the penalised average time of an algorithm, PAR10 by default (GraphBench, section 3.3.1).

    It is the mean over runs of the time of a solved run and ``factor * cutoff`` for an unsolved one. A run is unsolved
    if its time is ``cutoff`` or more, infinite times included, or if ``solved`` says so; its time is then not read.

    Args:
        times: Times of the runs, in seconds, float or int ``[runs]``, array, tensor or list; from 0 on.
        cutoff: Time at which runs are stopped, in seconds, positive.
        factor: Cost of an unsolved run, in cutoffs, from 1 on.
        solved: bool ``[runs]``, whether each run has solved its instance; None if the times alone tell.

    Raises:
        EvaluationError: If there is no run, a shape is wrong, a time is negative or NaN, or ``cutoff`` or ``factor`` is
            out of its range.

    Example:
        >>> par([1.0, 3.0, 50.0], cutoff=50)
        168.0
    """
    cutoff, factor = _number(cutoff, "cutoff", above=0.0), _number(factor, "factor", least=1.0)
    values = as_array(times, "times")
    if values.ndim != 1 or not len(values):
        raise EvaluationError(
            f"times has shape {list(values.shape)}; give [runs], one time for each of one or more runs"
        )
    values = values.astype(np.float64)
    read = np.ones(len(values), bool)
    if solved is not None:
        read = as_array(solved, "solved")
        if read.dtype.kind != "b" or read.shape != values.shape:
            raise EvaluationError(
                f"solved is {read.dtype} {list(read.shape)}; give bool [{len(values)}], one value for each time"
            )
    refuse(Table("times", values), read & ~(values >= 0), "a time is a number from 0 on; mark failed runs in solved=")
    return float(np.where(read & (values < cutoff), values, factor * cutoff).mean())


def closed_gap(costs: Any, choices: Any, train_costs: Any, overhead: Any = 0.0) -> float:
    """Return the share of the gap between single best and virtual best algorithm that a selector closes.

    ``(SBS - s) / (SBS - VBS)`` of the mean costs (GraphBench, section 3.3.1) of

    - ``SBS``: the single best algorithm, the one with the lowest mean cost on the training split. If the mean costs of
      several are equal (within a relative 1e-9), SBS is the mean of their costs on the instances that are scored,
      so that neither the order of the algorithms nor the scored costs decide the tie.
    - ``VBS``: the virtual best algorithm, the cheapest one of each instance.
    - ``s``: the choices, with the overhead of making them. Overhead is never added to SBS or VBS.

    1 is the virtual best algorithm, 0 the single best one, and worse choices have values below 0, without a limit.
    Where SBS and VBS cost the same on the scored instances (within a relative 1e-12), there is no gap: the value is 0
    if s costs no more, else ``(SBS - s) / SBS``, which is below 0. The value is always finite and at most 1.

    An overhead does not turn a run that ended just before its cutoff into an unsolved one.

    Args:
        costs: Cost of each of K algorithms on each of S instances, positive, with penalties for unsolved runs applied
            (see :func:`par`), such as seconds; float or int ``[S, K]``, array or tensor.
        choices: int ``[S]``, the column of the chosen algorithm.
        train_costs: Mean cost of each algorithm on the training split, ``[K]``, or the costs there, ``[T, K]``.
        overhead: Cost of making the choices (computing features, running the model) in the unit of the costs: a number,
            or one for each instance, ``[S]``; from 0 on.

    Raises:
        EvaluationError: If shapes disagree, nothing is given, a cost is not finite or not positive, a choice is no
            column, or an overhead is negative.

    Example:
        >>> closed_gap([[1.0, 9.0], [8.0, 2.0]], [0, 0], train_costs=[5.0, 4.0])
        0.25
    """
    table = checked_costs(costs, "costs")
    sums = SelectionSums()
    trained = as_array(train_costs, "train_costs")
    trained = checked_costs(trained, "train_costs").mean(axis=0) if trained.ndim == 2 else trained
    sums.train_costs = checked_costs(trained[None] if trained.ndim == 1 else trained, "train_costs", table.shape[1])[0]
    columns = _checked_choices(as_array(choices, "choices"), "choices", *table.shape)
    sums.add(SelectedInstances(table, columns, _checked_overhead(overhead, len(table))))
    return mean_closed_gap(sums)


class SelectionEvaluator(BaseEvaluator):
    """Scores choices of algorithms; returned by ``Evaluator`` for a task of the type ``select``.

    Arguments of :meth:`evaluate` and :meth:`update`, for S instances and K algorithms in the order of the outputs:

    - ``y_true``: the costs, float ``[S, K]``, or a mapping output -> ``[S]``; or the graphs that hold them.
    - ``y_pred``: int ``[S]``, the number of the chosen algorithm; float ``[S, K]``, probabilities or logits (the
      highest is chosen); or a mapping output -> ``[S]``, predicted costs (the lowest is chosen). Of equal
      ones the output that comes first in the alphabet is chosen, wherever its column is.
    - ``overhead``: the cost of making the choices, in the unit of the costs, a number or ``[S]``; None for the
      overhead of the evaluator. It is added to the costs of the choices alone.

    With ``presolving`` above 0, the algorithm ``presolver`` runs for that long first; by default it is the one that is
    best on the training split (of equal ones, the first in the alphabet). An instance that it solves in this time costs
    what the algorithm takes; there is no overhead, as nothing is chosen. For the other instances the presolver is
    suspended, the overhead is paid, and the chosen algorithm runs: the presolver goes on where it stopped, any other
    algorithm costs the time of presolving more. Like an overhead, this time does not turn a run that ended just before
    its cutoff into an unsolved one.

    Attributes:
        train_costs: Output -> mean cost on the training split, which ``closed_gap`` needs; None where it is unknown.
        presolving: How long the presolver runs; 0 for no presolving.
        presolver: Output of the algorithm that runs first; None without presolving.
    """

    default_scores: ClassVar[ScoreScale] = ScoreScale.LOGIT

    def __init__(
        self,
        outputs: Sequence[Feature],
        primary: str = "closed_gap",
        also: Sequence[str] = (),
        *,
        scores: str | None = None,
        expected_graphs: int | None = None,
        train_costs: Mapping[str, float] | None = None,
        overhead: float | str | Sequence[str] = 0.0,
        presolving: float = 0.0,
        presolver: str | None = None,
    ) -> None:
        """Prepare to score choices.

        Args:
            outputs: The costs of the algorithms, scalars of graphs.
            primary: Name of the metric that ranks models.
            also: Further metrics.
            scores: Scale of floating-point predictions: ``"logit"`` (any numbers; the default), ``"probability"`` (in
                [0, 1]), or ``"label"`` for numbers of algorithms.
            expected_graphs: If given, :meth:`compute` and :meth:`evaluate` refuse any other number of instances.
            train_costs: Output -> mean cost on the training split.
            overhead: Cost of making a choice, in the unit of the costs: a number, or the name of the field of the
                graphs that holds one for each, or several names, whose sum it is.
            presolving: How long an algorithm runs before a choice is made, in the unit of the costs.
            presolver: Output of this algorithm; None for the lowest mean cost on the training split, which
                ``train_costs`` must tell.

        Raises:
            EvaluationError: If there are fewer than two outputs, a metric does not score choices, or an argument is not
                allowed.
        """
        super().__init__(scores, expected_graphs)
        self.names = tuple(f.name for f in outputs)
        if len(self.names) < 2:
            raise EvaluationError(f"the outputs are {list(self.names)}; a choice needs at least two algorithms")
        self.outputs = tuple(outputs)
        self.metrics = tuple(_choice_metric(name) for name in dict.fromkeys((primary, *also)))
        self.train_costs = None if train_costs is None else checked_train_costs(train_costs, self.names)
        self.overhead: float | tuple[str, ...]
        if isinstance(overhead, str):
            self.overhead = (overhead,)
        elif isinstance(overhead, Sequence):
            self.overhead = tuple(overhead)
        else:
            self.overhead = float(_checked_overhead(overhead, 1)[0])
        self._by_name = np.argsort(np.array(self.names))
        self.presolving = _number(presolving, "presolving", least=0.0)
        if presolver is not None and presolver not in self.names:
            raise EvaluationError(f"presolver is {presolver!r}; give one of {', '.join(self.names)}")
        if self.presolving and presolver is None and self.train_costs is None:
            raise EvaluationError(
                f"presolving={self.presolving:g} runs the algorithm that is best on the training split, and the mean "
                "costs there are unknown; give train_costs={output: mean cost}, or presolver"
            )
        best = None if self.train_costs is None else single_best(self.train_costs)
        self.presolver = (presolver or best) if self.presolving else None
        self.reset()

    def __repr__(self) -> str:
        """Return the outputs, the metrics, and the scale of floating-point predictions."""
        names = ", ".join(m.name for m in self.metrics)
        return f"SelectionEvaluator({', '.join(self.names)}; {names}; scores={self.scores.value!r})"

    def start(self) -> SelectionSums:
        """Return the sums of no choice."""
        sums = SelectionSums()
        if self.train_costs is not None:
            sums.train_costs = np.array([self.train_costs[name] for name in self.names])
        return sums

    def add(self, sums: SelectionSums, y_true: Any, y_pred: Any, batch: Any = None, overhead: Any = None) -> None:
        """Add the choices for some instances to the sums; where it raises, the sums stay as they were.

        Raises:
            EvaluationError: If shapes disagree, there is no instance, a cost is not finite or not positive, a
                prediction is not finite or no algorithm's number, or an overhead is negative or unknown.
        """
        if batch is not None:
            raise EvaluationError("batch is given, but every row is one instance; leave batch out")
        graphs = one_batch(y_true) if is_graphs(y_true) else None
        targets = y_true if graphs is None else {f.name: targets_of(graphs, f)[0] for f in self.outputs}
        table = self._table(targets, "y_true")
        costs = checked_costs(table, "y_true", len(self.names))
        choices = self._choices(y_pred, len(costs), table.dtype)
        overhead = self._own_overhead(graphs) if overhead is None else overhead
        selected = SelectedInstances(costs, choices, _checked_overhead(overhead, len(costs)))
        sums.add(self._presolved(selected) if self.presolving else selected)

    def _presolved(self, selected: SelectedInstances) -> SelectedInstances:
        """Return the choices and overheads of instances after presolving."""
        assert self.presolver is not None
        costs, presolver = selected.costs, self.names.index(self.presolver)
        return SelectedInstances(
            costs, *presolved(costs, selected.choices, selected.overhead, presolver, self.presolving)
        )

    def primary_sums(self, sums: SelectionSums) -> Mapping[str, Any]:
        """Return the sums behind the primary metric."""
        return {"": sums}

    def finish(self, sums: SelectionSums) -> Score:
        """Return the score of sums to which choices were added."""
        self.check_graphs(sums.graphs)
        values, undefined = self.values(lambda m: m.value(sums))
        return Score(values, self.primary_name, items=sums.graphs, graphs=sums.graphs, undefined=undefined)

    def _table(self, values: Any, name: str) -> NDArray[Any]:
        """Return an array, or the arrays of a mapping as the columns of one."""
        if not isinstance(values, Mapping):
            return as_array(values, name)
        missing = [output for output in self.names if output not in values]
        if missing:
            raise EvaluationError(f"{name} lacks the output {missing[0]!r}; it has {', '.join(map(str, values))}")
        columns = [as_array(values[output], f"{name}[{output!r}]") for output in self.names]
        lengths = {output: column.size for output, column in zip(self.names, columns, strict=True)}
        if len(set(lengths.values())) > 1:
            raise EvaluationError(f"{name} has columns of different lengths: {lengths}; give one value per instance")
        return np.stack([column.reshape(-1) for column in columns], axis=1)

    def _choices(self, y_pred: Any, count: int, dtype: np.dtype[Any]) -> NDArray[np.int64]:
        """Return the column that predictions choose for each instance; ``dtype`` is the dtype of the true costs."""
        values = self._table(y_pred, "y_pred")
        if not isinstance(y_pred, Mapping) and (values.dtype.kind != "f" or self.scores is ScoreScale.LABEL):
            return _checked_choices(values, "y_pred", count, len(self.names))
        if values.shape != (count, len(self.names)):
            raise EvaluationError(
                f"y_pred has shape {list(values.shape)} for {count} instances and {len(self.names)} algorithms; give "
                f"float [{count}, {len(self.names)}], or int [{count}] with the numbers of the chosen algorithms"
            )
        check_finite(Table("y_pred", values), None)
        if isinstance(y_pred, Mapping):
            refuse_overflow(Table("y_pred", values), dtype)
            values = -values.astype(np.float64)
        elif self.scores is ScoreScale.PROBABILITY:
            refuse(Table("y_pred", values), (values < 0) | (values > 1), "probabilities lie in [0, 1]")
        chosen: NDArray[np.int64] = self._by_name[values[:, self._by_name].argmax(axis=1)]
        return chosen

    def _own_overhead(self, graphs: Any) -> Any:
        if isinstance(self.overhead, float):
            return self.overhead
        total: Any = 0.0
        for name in self.overhead:
            if graphs is None or name not in graphs:
                raise EvaluationError(
                    f"the cost of a choice is read from the field {name!r} of the graphs; give the graphs, with "
                    "this field, as y_true, or give overhead="
                )
            total = total + as_array(graphs[name], name).reshape(-1).astype(np.float64)
        return total


def single_best(train_costs: Mapping[str, float]) -> str:
    """Return the output with the lowest mean training cost; of equal ones, the first in the alphabet."""
    return min(train_costs, key=lambda name: (train_costs[name], name))


def checked_costs(costs: Any, name: str, columns: int | None = None) -> Floats:
    """Return costs as float64 ``[S, K]``.

    Args:
        costs: Array or tensor.
        name: Name of the argument in messages.
        columns: The number of algorithms; None if any number is allowed.

    Raises:
        EvaluationError: If it has another shape, there is no instance, or a cost is not finite or not positive.
    """
    table = as_array(costs, name)
    if table.ndim != 2 or not table.size or (columns is not None and table.shape[1] != columns):
        width = "algorithms" if columns is None else columns
        raise EvaluationError(
            f"{name} has shape {list(table.shape)}; give [instances, {width}], the cost of every algorithm on one or "
            "more instances"
        )
    check_finite(Table(name, table), None)
    allowed = f"a cost is a number above 0 and at most {_LARGEST:g}, penalties for unsolved runs included"
    table = table.astype(np.float64)
    refuse(Table(name, table), (table <= 0) | (table > _LARGEST), allowed)
    return table


def checked_train_costs(train_costs: Any, names: Sequence[str]) -> dict[str, float]:
    """Return output -> mean training cost.

    Raises:
        EvaluationError: If it is no mapping of exactly these outputs to positive numbers.
    """
    if not isinstance(train_costs, Mapping) or set(train_costs) != set(names):
        raise EvaluationError(
            f"train_costs is {train_costs!r:.200}; give a mapping with the mean training cost of {', '.join(names)}"
        )
    return {name: _number(train_costs[name], f"train_costs[{name!r}]", above=0.0) for name in names}


def _choice_metric(name: str) -> Any:
    choice_metric = metric(name)
    if choice_metric.accumulator is not SelectionSums:
        able = ", ".join(m.name for m in METRICS.values() if m.accumulator is SelectionSums)
        raise EvaluationError(f"the metric {name!r} cannot score the choice of an algorithm; use some of {able}")
    return choice_metric


def _checked_choices(values: NDArray[Any], name: str, count: int, algorithms: int) -> NDArray[np.int64]:
    if values.shape != (count,) or values.dtype.kind == "b":
        raise EvaluationError(
            f"{name} is {values.dtype} {list(values.shape)}; give int [{count}], the number of the chosen algorithm "
            "for each instance"
        )
    check_finite(Table(name, values), None)
    wrong = (values < 0) | (values >= algorithms) | (values != np.floor(values))
    refuse(Table(name, values), wrong, f"algorithms have the numbers 0 to {algorithms - 1}")
    return values.astype(np.int64)


def _checked_overhead(overhead: Any, count: int) -> Floats:
    values = as_array(overhead, "overhead")
    if values.shape not in ((), (count,)):
        raise EvaluationError(
            f"overhead has shape {list(values.shape)}; give a number, or one for each instance [{count}]"
        )
    values = np.broadcast_to(values.astype(np.float64), (count,))
    check_finite(Table("overhead", values), None)
    refuse(Table("overhead", values), (values < 0) | (values > _LARGEST), "an overhead is a number from 0 on")
    return values


def _number(value: Any, name: str, *, above: float = -math.inf, least: float = -math.inf) -> float:
    real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not real or not math.isfinite(value) or value <= above or value < least:
        bound = f"above {above:g}" if math.isfinite(above) else f"from {least:g} on"
        raise EvaluationError(f"{name} is {value!r}; give a finite number {bound}")
    return float(value)
