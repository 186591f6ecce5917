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
from graphbench.core.errors import DecodingError, EvaluationError
from graphbench.evaluation.evaluator import Evaluator, Score, card_of, output_of
from graphbench.evaluation.inputs import ScoreScale, as_array
from graphbench.evaluation.metrics import METRICS
from graphbench.evaluation.metrics.solutions import SolutionSums, SolvedGraphs

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card
    from graphbench.domains.co.decoding_graphs import UndirectedGraphs

logger = logging.getLogger(__name__)

Array = NDArray[Any]

_TINY = 1e-30  # a probability of 0 counts as this
_LARGEST = 2.0**31  # no solution has larger numbers


@dataclass(frozen=True)
class Problem:
    """What the scores of a problem's solutions are called.

    Attributes:
        name: The task's name.
        objective: The metric of the objective.
        output: The type of a solution, as a card writes it.
    """

    name: str
    objective: str
    output: tuple[str, str, str] = ("output", "node", "mask")

    @property
    def label(self) -> str:
        """The batch's field of the best known objective."""
        return f"{self.name}_value"

    @property
    def bound(self) -> str:
        """The batch's field of the proved bound."""
        return f"{self.name}_bound"

    @property
    def maximise(self) -> bool:
        """Whether larger objectives are better."""
        return METRICS[self.objective].higher_is_better


PROBLEMS = {
    problem.name: problem
    for problem in (
        Problem("mis", "set_size"),
        Problem("max_cut", "cut_size"),
        Problem("coloring", "num_colors", output=("output", "node", "scalar")),
    )
}
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


def decode(task: str, batch: Any, scores: Any, *, scale: str = "logit", **options: Any) -> Solutions:
    """Return feasible solutions made from a model's scores; see `graphbench.domains.co.decoding` for the decoders.

    Args:
        task: ``"mis"``, ``"max_cut"`` or ``"coloring"``.
        batch: A PyG ``Batch`` or ``Data``, or a list of ``Data``: undirected graphs without weights.
        scores: Array or tensor on any device, or a list of one per graph: ``[N]``; of colourings also ``[N, K]``.
        scale: What the scores are: ``"logit"`` or ``"probability"``. Cuts: side 1 above 0, or above 0.5.
        **options: ``restarts``, ``seed``, ``temperature``; cuts and colourings ``local_search``; colourings
            ``num_colors``; cuts ``conditional``: see the decoder.

    Raises:
        DecodingError: If the graphs are directed, weighted or have loops, the scores have the wrong shape or are not
            finite, an option is unknown or not allowed, or a graph needs more colours than allowed; the message says
            where.
    """
    from graphbench.domains.co.decoding import DECODERS
    from graphbench.domains.co.decoding_checks import solution_values

    started = time.perf_counter()
    _check_options(_known_task(task), options)
    graphs = graphs_of(batch)
    nodes = DECODERS[task](graphs, _as_logits(_joined(scores, "scores", graphs.ptr), scale), **options)
    values = solution_values(task, graphs, nodes)
    return Solutions(nodes, values, graphs.ptr, time.perf_counter() - started)


def graphs_of(batch: Any) -> UndirectedGraphs:
    """Return the checked graphs of a PyG ``Batch`` or ``Data``, or of a list of ``Data``.

    Raises:
        DecodingError: If it is none of these, or the graphs are directed, weighted or have loops.
    """
    from graphbench.domains.co.decoding_graphs import UndirectedGraphs

    batch = _one_batch(batch)
    arcs = int(batch.edge_index.shape[-1])
    for name in ("edge_weight", "edge_attr", "weight"):
        weights = getattr(batch, name, None)
        if weights is None or (name == "weight" and len(weights) != arcs):  # of nodes, or of graphs
            continue
        if (as_array(weights, name) != 1).any():
            raise DecodingError(
                f"the batch has {name}, but the problem is one of graphs without weights; "
                f"drop them with `del batch.{name}` if they mean nothing here"
            )
    return UndirectedGraphs.checked(_node_ptr(batch), as_array(batch.edge_index, "edge_index"))


class SolutionEvaluator(Evaluator):
    """Scores solutions of a problem: what ``Evaluator("co/rb_small:mis")`` returns.

    In place of targets it takes the graphs, with the fields ``<task>_value`` and ``<task>_bound`` where known (int or
    float ``[G]``, -1 where a graph has none); without them the metrics beside the objective are undefined.

    Example:
        >>> evaluator = SolutionEvaluator("mis")
        >>> evaluator.evaluate(batch, scores)["set_size"]
        25.4
    """

    def __init__(
        self,
        dataset: str | Card,
        *,
        output: str | None = None,
        scores: str = "logit",
        expected_graphs: int | None = None,
        **options: Any,
    ) -> None:
        """Prepare to score solutions.

        Args:
            dataset: ``"mis"``, ``"max_cut"``, ``"coloring"``, or a dataset's address or card, e.g. ``co/rb_small:mis``.
            output: Name of the card's output, where it has several.
            scores: What floating-point predictions are: ``"logit"``, ``"probability"``, or ``"label"`` for solutions.
                Boolean and integer predictions are always solutions.
            expected_graphs: If given, :meth:`compute` and :meth:`evaluate` refuse any other number of graphs.
            **options: How scores are decoded, see `decode`.

        Raises:
            UnknownDataset: If no dataset has that name.
            EvaluationError: If the task asks for no solution, a metric does not score it, or an option is not allowed.
        """
        self._set_options(scores, expected_graphs)
        if isinstance(dataset, str) and dataset in PROBLEMS:
            self.task, self.feature = dataset, Feature.parse(dataset, PROBLEMS[dataset].output)
            names: Sequence[str] = (PROBLEMS[dataset].objective, *FURTHER_METRICS)
        else:
            card = card_of(dataset)
            self.task, self.feature = _known_task(card.task_name), output_of(card, output)
            names = (card.metrics.primary, *card.metrics.also)
        _check_options(self.task, options)
        self.problem, self.options = PROBLEMS[self.task], options
        self.metrics = tuple(METRICS[name] for name in _checked_names(names, self.task))
        self._sums = SolutionSums()

    def __repr__(self) -> str:
        """Return the task and the metrics."""
        return f"SolutionEvaluator({self.task}; {', '.join(m.name for m in self.metrics)})"

    def evaluate(self, y_true: Any, y_pred: Any, batch: Any = None, *, seconds: float | None = None) -> Score:
        """Return the score of all solutions at once; running updates stay untouched.

        Args:
            y_true: The graphs, with labels: a PyG ``Batch`` or ``Data``, or a list of ``Data``.
            y_pred: Solutions, integers or booleans ``[N]``, or scores to decode, floats: arrays, tensors, or a list of
                one per graph.
            batch: Nothing: the graphs say which node belongs to which.
            seconds: Seconds that a model or solver spent on these graphs; decoding is added to it.

        Raises:
            DecodingError: If scores cannot be decoded, or a solution is infeasible: that is never scored.
            EvaluationError: If labels or bounds have the wrong shape or are not whole, a bound is passed, the seconds
                are negative, or graphs are missing.
        """
        sums = SolutionSums()
        self._take(sums, y_true, y_pred, batch, seconds)
        return self._scored(sums)

    def update(self, y_true: Any, y_pred: Any, batch: Any = None, *, seconds: float | None = None) -> None:
        """Take solutions of some graphs; arguments and errors as for :meth:`evaluate`.

        An update that raises changes nothing.
        """
        self._take(self._sums, y_true, y_pred, batch, seconds)

    def compute(self) -> Score:
        """Return the score of everything since the last ``reset``.

        Raises:
            EvaluationError: Before any update, or if graphs are missing.
        """
        return self._scored(self._sums)

    def reset(self) -> None:
        """Forget all updates."""
        self._sums = SolutionSums()

    def _take(self, sums: SolutionSums, graphs: Any, predicted: Any, batch: Any, seconds: float | None) -> None:
        if batch is not None:
            raise EvaluationError("batch is given, but the graphs say which node belongs to which; leave batch out")
        graphs = _one_batch(graphs)
        values = _joined(predicted, "y_pred", _node_ptr(graphs))
        seconds = _checked_seconds(seconds)
        if values.dtype.kind == "f" and self.scores is not ScoreScale.LABEL:
            solved = decode(self.task, graphs, values, scale=self.scores, **self.options)
            objectives, seconds = solved.values, solved.seconds + (seconds or 0.0)
        else:
            objectives = _objectives(self.task, graphs, values)
        labels, bounds = (
            _reference(graphs, name, len(objectives)) for name in (self.problem.label, self.problem.bound)
        )
        sums.add(SolvedGraphs(objectives, self.problem.maximise, labels, bounds, seconds))

    def _scored(self, sums: SolutionSums) -> Score:
        if not sums.graphs:
            raise EvaluationError("compute() was called before any update(); there is nothing to score yet")
        self._check_graphs(sums.graphs)
        if 0 < sums.labelled < sums.graphs:
            logger.warning(
                "%d of %d graphs have no %s: ratio, gap and matched are means over the others",
                *(sums.graphs - sums.labelled, sums.graphs, self.problem.label),
            )
        values: dict[str, float] = {}
        undefined: dict[str, str] = {}
        for m in self.metrics:
            try:
                values[m.name] = m.value(sums)
            except EvaluationError as error:
                if m is self.metrics[0]:
                    raise
                undefined[m.name] = str(error)
        return Score(values, self.primary_name, items=sums.graphs, graphs=sums.graphs, undefined=undefined)


def _known_task(task: str | None) -> str:
    if task not in PROBLEMS:
        raise DecodingError(f"the task {task!r} asks for no solution; decoders exist for {', '.join(PROBLEMS)}")
    return task


def _check_options(task: str, options: Mapping[str, Any]) -> None:
    from graphbench.domains.co.decoding import DECODERS, check_options

    known: Mapping[str, Any] = DECODERS[task].__kwdefaults__ or {}
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise DecodingError(f"the decoder of {task} has no option {unknown[0]!r}; it has {', '.join(known)}")
    check_options(**options)


def _checked_names(names: Sequence[str], task: str) -> tuple[str, ...]:
    able = (PROBLEMS[task].objective, *FURTHER_METRICS)
    for name in names:
        if name not in able:
            raise EvaluationError(
                f"the metric {name!r} cannot score solutions of {task}; use some of {', '.join(able)}"
            )
    return tuple(dict.fromkeys(names))


def _objectives(task: str, graphs: Any, values: Array) -> NDArray[np.int64]:
    """Return the objectives of solutions handed in."""
    from graphbench.domains.co.decoding_checks import solution_values

    if values.dtype.kind == "f":
        wrong = values[~(np.abs(values) <= _LARGEST)]
        if wrong.size:
            raise DecodingError(f"y_pred holds {wrong[0]}, which is no part of a solution; check where it comes from")
        if (values != np.floor(values)).any():
            raise DecodingError('y_pred has fractions, but scores="label" says that it holds solutions; round it')
        values = values.astype(np.int64)
    return solution_values(task, graphs_of(graphs), values)


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
        raise DecodingError("a probability lies in [0, 1], the scores do not; if these are logits, say scale='logit'")
    p = np.maximum(scores.astype(np.float64), _TINY)
    return np.log(p) if scores.ndim == 2 else np.log(p) - np.log(np.maximum(1.0 - scores, _TINY))


def _one_batch(batch: Any) -> Any:
    """Return a PyG ``Batch`` or ``Data``; a list of ``Data`` becomes a ``Batch``."""
    if isinstance(batch, (list, tuple)) and batch and all(hasattr(data, "edge_index") for data in batch):
        from torch_geometric.data import Batch

        return Batch.from_data_list(list(batch))
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
