"""Solutions of combinatorial problems: decoded from scores, checked, and scored beside labels and bounds."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Feature
from graphbench.catalog.names import card as find_card
from graphbench.core.errors import CardError, DecodingError, EvaluationError
from graphbench.data.components.domain import find, full_name
from graphbench.data.components.problems import Problem
from graphbench.evaluation.evaluator import BaseEvaluator
from graphbench.evaluation.graphs import is_graphs, one_batch
from graphbench.evaluation.inputs import ScoreScale, as_array
from graphbench.evaluation.metrics import METRICS, metric
from graphbench.evaluation.score import Score
from graphbench.tasks.solve.metrics import SolutionSums, SolvedGraphs

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card

logger = logging.getLogger(__name__)

Array = NDArray[Any]

_TINY = 1e-30  # a probability of 0 counts as this
_LARGEST = 2.0**31  # no solution has larger numbers


FURTHER_METRICS = ("ratio", "gap", "matched", "bound_ratio", "seconds_per_graph")


@dataclass(frozen=True)
class Solutions:
    """Feasible solutions of the graphs of a batch.

    Attributes:
        nodes: int32 ``[N]``: 1 for members of the set, or the side (0, 1), or the colour, numbered from 0.
        values: int64 ``[G]``, the objective of each solution.
        ptr: int64 ``[G + 1]``, first node of each graph.
        seconds: Seconds spent on all graphs, checks included.
    """

    nodes: NDArray[np.int32]
    values: NDArray[np.int64]
    ptr: NDArray[np.int64]
    seconds: float

    def per_graph(self) -> list[NDArray[np.int32]]:
        """Return the solution of each graph, int32 ``[nodes]``."""
        return np.split(self.nodes, self.ptr[1:-1])


def decode(problem: str | Problem, batch: Any, scores: Any, *, scale: str = "logit", **options: Any) -> Solutions:
    """Return feasible solutions made from a model's scores, by the decoder of the problem.

    Args:
        problem: A problem or its name, e.g. ``"mis"`` or ``"co.mis"``.
        batch: A PyG ``Batch`` or ``Data``, or a list of ``Data``: graphs that the problem has.
        scores: Array or tensor on any device, or a list of one per graph: ``[N]``, or ``[N, K]`` where the decoder
            takes them.
        scale: Scale of the scores: ``"logit"`` or ``"probability"``.
        **options: Options of the decoder.

    Raises:
        DecodingError: If the problem does not have such graphs, the scores have the wrong shape or are not finite, an
            option is unknown or not allowed, or no feasible solution can be made; the message says where.
    """
    started = time.perf_counter()
    problem = problem if isinstance(problem, Problem) else _named_problem(problem)
    problem.require_options(options)
    graphs, ptr = _checked_graphs(problem, batch)
    nodes = problem.decode(graphs, _as_logits(_joined(scores, "scores", ptr), scale), **options)
    values = problem.objectives(graphs, nodes)
    return Solutions(nodes, values, ptr, time.perf_counter() - started)


def _checked_graphs(problem: Problem, batch: Any) -> tuple[Any, NDArray[np.int64]]:
    """Return the graphs of a PyG ``Batch`` or ``Data``, or of a list of ``Data``, and the first node of each.

    Raises:
        DecodingError: If it is none of these, or the problem does not have such graphs.
    """
    batch = _one_batch(batch)
    ptr = np.ascontiguousarray(_node_ptr(batch), np.int64)
    attributes = {name: getattr(batch, name, None) for name in problem.fields}
    fields = {name: as_array(values, name) for name, values in attributes.items() if values is not None}
    return problem.checked(ptr, as_array(batch.edge_index, "edge_index"), fields), ptr


class SolutionEvaluator(BaseEvaluator):
    """Scores solutions of a problem; returned by ``Evaluator("co/rb_small:mis")``.

    Instead of targets it takes the graphs, with the fields of the best known value and of the bound (if there is one),
    such as ``mis_value`` and ``mis_bound`` (int or float ``[G]``, -1 where a graph has none); without them the metrics
    beside the objective are undefined.

    Example:
        >>> evaluator = SolutionEvaluator("mis")
        >>> evaluator.evaluate(batch, scores)["set_size"]
        25.4
    """

    default_scores = ScoreScale.LOGIT

    def __init__(
        self,
        dataset: str | Card,
        *,
        scores: str | None = None,
        expected_graphs: int | None = None,
        **options: Any,
    ) -> None:
        """Prepare to score solutions.

        Args:
            dataset: A dataset's address or card, e.g. ``co/rb_small:mis``, or a problem's name, e.g. ``"mis"``.
            scores: Scale of floating-point predictions: ``"logit"``, ``"probability"``, or ``"label"`` for solutions;
                None is ``"logit"``, the default of tasks whose solutions are decoded. Boolean and integer predictions
                are always solutions.
            expected_graphs: If given, :meth:`compute` and :meth:`evaluate` refuse any other number of graphs.
            **options: How scores are decoded, see `decode`.

        Raises:
            UnknownDataset: If no dataset has that name.
            EvaluationError: If the task asks for no solution, a metric does not score it, or an option is not allowed.
        """
        super().__init__(scores, expected_graphs)
        named = _problem_or_none(dataset) if isinstance(dataset, str) else None
        if named is None:
            card = find_card(dataset) if isinstance(dataset, str) else dataset
            self.problem, self.feature = problem_of(card), card.outputs[0]
            names: Sequence[str] = (card.metrics.primary, *card.metrics.also)
        else:
            self.problem, self.feature = named, Feature.parse(named.short_name, named.output)
            names = (named.objective, *FURTHER_METRICS)
        self.problem.require_options(options)
        self.options = options
        self.metrics = tuple(METRICS[name] for name in _checked_names(names, self.problem))
        self.reset()

    def __repr__(self) -> str:
        """Return the problem, the metrics, and the scale of floating-point predictions."""
        names = ", ".join(m.name for m in self.metrics)
        return f"SolutionEvaluator({self.problem.short_name}; {names}; scores={self.scores.value!r})"

    def start(self) -> SolutionSums:
        """Return the sums of no solution."""
        return SolutionSums()

    def add(
        self, sums: SolutionSums, y_true: Any, y_pred: Any, batch: Any = None, seconds: float | None = None
    ) -> None:
        """Add the solutions of some graphs to the sums; where it raises, the sums stay as they were.

        Raises:
            DecodingError: If scores cannot be decoded, or a solution is infeasible: that is never scored.
            EvaluationError: If labels or bounds have the wrong shape or are not whole, a bound is passed, or the
                seconds are negative.
        """
        if batch is not None:
            raise EvaluationError("batch is given, but the graphs say which node belongs to which; leave batch out")
        graphs = _one_batch(y_true)
        values = _joined(y_pred, "y_pred", _node_ptr(graphs))
        seconds = _checked_seconds(seconds)
        if values.dtype.kind == "f" and self.scores is not ScoreScale.LABEL:
            solved = decode(self.problem, graphs, values, scale=self.scores, **self.options)
            objectives, seconds = solved.values, solved.seconds + (seconds or 0.0)
        else:
            objectives = _objectives(self.problem, graphs, values)
        labels, bounds = (
            _reference(graphs, name, len(objectives)) for name in (self.problem.value, self.problem.bound)
        )
        sums.add(SolvedGraphs(objectives, self.problem.maximise, labels, bounds, seconds))

    def primary_sums(self, sums: SolutionSums) -> Mapping[str, Any]:
        """Return the sums behind the primary metric."""
        return {"": sums}

    def finish(self, sums: SolutionSums) -> Score:
        """Return the score of sums to which solutions were added."""
        self.check_graphs(sums.graphs)
        if 0 < sums.labelled < sums.graphs:
            logger.warning(
                "%d of %d graphs have no %s: ratio, gap and matched are means over the others",
                *(sums.graphs - sums.labelled, sums.graphs, self.problem.value),
            )
        values, undefined = self.values(lambda m: m.value(sums))
        return Score(values, self.primary_name, items=sums.graphs, graphs=sums.graphs, undefined=undefined)


def problem_of(card: Card) -> Problem:
    """Return the problem that a card's task names.

    Raises:
        DecodingError: If the task names none, or one that does not exist.
    """
    problem = card.task.options.get("problem")
    if problem is None:
        raise DecodingError(
            f"{card.address} asks for no solution: its task, of the type {card.task.type!r}, names no problem"
        )
    return _named_problem(problem)


def _find_problem(name: str) -> Problem:
    """Return a problem by ``<domain>.<name>``, or by a name that only one domain has."""
    return find("problem", name if "." in name else full_name("problem", name))


def _named_problem(name: str) -> Problem:
    try:
        return _find_problem(name)
    except CardError as error:
        raise DecodingError(str(error)) from error


def _problem_or_none(name: str) -> Problem | None:
    """Return the problem of that name; None where it is the name of something else."""
    try:
        return None if "/" in name else _find_problem(name)
    except CardError:
        return None


def _checked_names(names: Sequence[str], problem: Problem) -> tuple[str, ...]:
    able = (problem.objective, *FURTHER_METRICS)
    for name in names:
        if name not in able:
            verb = "scores predictions, not" if metric(name).kinds else "cannot score"
            raise EvaluationError(
                f"the metric {name!r} {verb} solutions of {problem.short_name}; use some of {', '.join(able)}"
            )
    return tuple(dict.fromkeys(names))


def _objectives(problem: Problem, graphs: Any, values: Array) -> NDArray[np.int64]:
    """Return the objectives of the solutions that a caller gives."""
    if values.dtype.kind == "f":
        wrong = values[~(np.abs(values) <= _LARGEST)]
        if wrong.size:
            raise DecodingError(f"y_pred holds {wrong[0]}, which is no part of a solution; check where it comes from")
        if (values != np.floor(values)).any():
            raise DecodingError('y_pred has fractions, but scores="label" says that it holds solutions; round it')
        values = values.astype(np.int64)
    return problem.objectives(_checked_graphs(problem, graphs)[0], values)


def _reference(graphs: Any, name: str, count: int) -> NDArray[np.int64] | None:
    """Return a field of the graphs as int64 ``[count]``, -1 where unknown; None if the graphs lack it."""
    values = getattr(graphs, name, None)
    if values is None:
        return None
    array = as_array(values, name)
    if array.size != count:
        raise EvaluationError(f"{name} has shape {list(array.shape)} for {count} graphs; give one value per graph")
    wrong = array[(array != np.floor(array)) | np.isinf(array)]
    if wrong.size:
        raise EvaluationError(f"{name} holds {wrong[0]}; give whole numbers, -1 where a graph has none")
    return np.where(array >= 0, array, -1).reshape(-1).round().astype(np.int64)


def _checked_seconds(seconds: float | None) -> float | None:
    if seconds is None:
        return None
    real = isinstance(seconds, (int, float, np.integer, np.floating)) and not isinstance(seconds, bool)
    if not real or not 0 <= seconds < float("inf"):
        raise EvaluationError(f"seconds is {seconds!r}; give the time spent, a number from 0 on")
    return float(seconds)


def _joined(values: Any, name: str, ptr: Array) -> Array:
    """Return an array, tensor or list of one per graph as one array; a list must have as many rows as graphs nodes."""
    if isinstance(values, (list, tuple)) and any(np.ndim(part) for part in values):
        parts = [as_array(part, f"{name}[{i}]") for i, part in enumerate(values)]
        nodes = np.diff(ptr).tolist()
        if len(parts) != len(nodes):
            raise DecodingError(f"{name} has {len(parts)} arrays for {len(nodes)} graphs; give one per graph")
        for i, (part, count) in enumerate(zip(parts, nodes, strict=True)):
            if len(part) != count:
                raise DecodingError(f"{name}[{i}] has {len(part)} rows, graph {i} has {count} nodes; give one per node")
        if len({part.shape[1:] for part in parts}) > 1:
            raise DecodingError(f"the arrays in {name} differ in their columns; give all graphs as many")
        return np.concatenate(parts)
    return as_array(values, name)


def _as_logits(scores: Array, scale: str) -> Array:
    if scale == ScoreScale.LOGIT:
        return scores
    if scale != ScoreScale.PROBABILITY:
        raise DecodingError(f"scale={scale!r} is unknown; use 'logit' or 'probability'")
    if ((scores < 0) | (scores > 1)).any():
        raise DecodingError(
            "a probability lies in [0, 1], the scores do not; if these are logits, say 'logit', not 'probability'"
        )
    p = np.maximum(scores.astype(np.float64), _TINY)
    return np.log(p) if scores.ndim == 2 else np.log(p) - np.log(np.maximum(1.0 - scores, _TINY))


def _one_batch(batch: Any) -> Any:
    """Return a PyG ``Batch`` or ``Data``; a list of ``Data`` becomes a ``Batch``."""
    if isinstance(batch, (list, tuple)) and is_graphs(batch):
        return one_batch(batch)
    if isinstance(batch, (list, tuple)) and not batch:
        raise DecodingError("the list of graphs is empty; give one or more")
    if getattr(batch, "edge_index", None) is None:
        raise DecodingError(
            f"the graphs are given as {type(batch).__name__}; give a PyG Batch or Data with edge_index, "
            "or a list of Data"
        )
    return batch


def _node_ptr(batch: Any) -> Array:
    if getattr(batch, "ptr", None) is not None:
        return as_array(batch.ptr, "ptr")
    if getattr(batch, "batch", None) is None:
        return np.array([0, int(batch.num_nodes or 0)])
    graph = as_array(batch.batch, "batch")
    if (np.diff(graph) < 0).any():
        raise DecodingError("the nodes of the batch are not in the order of its graphs; use Batch.from_data_list")
    return np.concatenate([[0], np.cumsum(np.bincount(graph))])
