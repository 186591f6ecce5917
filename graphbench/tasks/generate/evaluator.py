"""Evaluation of whole structures, which the verifier of a domain reads and scores."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Location
from graphbench.core.errors import CardError, EvaluationError
from graphbench.core.untrusted import shown
from graphbench.data.components.domain import find
from graphbench.data.components.verifiers import EDGE_INDEX, EDGES, NODES, Verifier
from graphbench.evaluation.evaluator import BaseEvaluator
from graphbench.evaluation.inputs import as_array
from graphbench.evaluation.metrics import METRICS, Metric
from graphbench.evaluation.score import Score
from graphbench.tasks.generate.files import numbered_files
from graphbench.tasks.generate.metrics import VerdictSums

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card

logger = logging.getLogger(__name__)

Array = NDArray[Any]

_LONGEST_PATH = 1000  # characters


class GeneratedEvaluator(BaseEvaluator):
    """Scores whole structures; returned by ``Evaluator("chip_design/aig")``.

    Arguments of :meth:`evaluate` and :meth:`update`:

    - ``y_true``: the samples: a PyG ``Batch`` or ``Data``, a list of ``Data``, or a mapping with the fields that the
      verifier reads, one value per sample.
    - ``y_pred``: one answer per sample, in their order: a list of PyG ``Data``, of mappings with the arrays of a graph,
      of contents (bytes) or paths of files, of objects of the domain, or of None where there is no answer; a PyG
      ``Batch``; a mapping with the flat arrays of all graphs (:mod:`~.components.verifiers`); the path of a folder with
      one file per answer, named after the number of its sample from 0 on; or an object of the domain that holds all
      answers.

    A wrong or malformed answer is worth 0 and raises no error; ``Score.failures`` counts them by reason.

    Args:
        card: The card, whose task names a verifier.
        expected_graphs: If given, :meth:`compute` and :meth:`evaluate` refuse any other number of samples.

    Attributes:
        verifier: The verifier.

    Raises:
        EvaluationError: If the task names no verifier, or the verifier does not give a metric of the card.
    """

    def __init__(self, card: Card, *, scores: str | None = None, expected_graphs: int | None = None) -> None:
        super().__init__(scores, expected_graphs)
        self.verifier = verifier_of(card)
        names = dict.fromkeys((card.metrics.primary, *card.metrics.also))
        unregistered = [name for name in names if name in self.verifier.metrics and name not in METRICS]
        if unregistered:
            raise EvaluationError(
                f"the verifier {self.verifier.name} gives the metric {unregistered[0]!r}, which is not registered; "
                "register it with graphbench.register_metric and VerdictSums of graphbench.tasks.generate.metrics"
            )
        unknown = [name for name in names if name not in self.verifier.metrics]
        if unknown:
            raise EvaluationError(
                f"the verifier {self.verifier.name} gives no metric {unknown[0]!r}; use some of "
                f"{', '.join(self.verifier.metrics)}"
            )
        self.metrics = tuple(METRICS[name] for name in names)
        self.reset()

    def __repr__(self) -> str:
        """Return the verifier and the metrics."""
        return f"GeneratedEvaluator({self.verifier.name}; {', '.join(m.name for m in self.metrics)})"

    def start(self) -> VerdictSums:
        """Return the sums of no answer."""
        return VerdictSums()

    def add(self, sums: VerdictSums, y_true: Any, y_pred: Any, batch: Any = None) -> None:
        """Add the answers to some samples to the sums; where it raises, the sums stay as they were."""
        if batch is not None:
            raise EvaluationError("batch is given, but there is one answer per sample; leave batch out")
        fields = self._fields(y_true)
        if isinstance(y_pred, str) and not Path(y_pred[:_LONGEST_PATH]).is_dir():
            raise EvaluationError(
                f"y_pred is the text {shown(y_pred, 60)!r}, which names no folder; give a list with one answer per "
                "sample, or a folder with one file per sample"
            )
        if isinstance(y_pred, (str, Path)):
            y_pred = numbered_files(Path(y_pred), len(next(iter(fields.values()))), self.verifier)
        verdict = self.verifier.verify(fields, answers_of(y_pred, self.verifier))
        for number, text in list(verdict.details.items())[:1]:
            others = f" (and {len(verdict.details) - 1} more of these)" if len(verdict.details) > 1 else ""
            logger.warning("answer %d cannot be read and is worth 0: %s%s", sums.graphs + number, text, others)
        sums.add(verdict)

    def primary_sums(self, sums: VerdictSums) -> Mapping[str, Any]:
        """Return the sums behind the primary metric."""
        return {"": sums}

    def finish(self, sums: VerdictSums) -> Score:
        """Return the score of sums to which answers were added."""
        self.check_graphs(sums.graphs)
        return self._score(sums)

    def groups(self) -> dict[str, Score]:
        """Return the scores of the parts of the samples that the verifier names, such as sizes."""
        return {name: self._score(part) for name, part in sorted(self._sums.parts.items())}

    def _score(self, sums: VerdictSums) -> Score:
        def value(m: Metric) -> float:
            return float(m.value(sums))

        values, undefined = self.values(value)
        failures = dict(sums.failures.most_common())
        counts: dict[str, Any] = {"items": sums.graphs, "graphs": sums.graphs}
        return Score(values, self.primary_name, **counts, undefined=undefined, failures=failures)

    def _fields(self, samples: Any) -> dict[str, Any]:
        """Return the fields that the verifier reads: texts as lists of strings, others as arrays ``[S]``.

        Raises:
            EvaluationError: If a field is missing.
        """
        fields = {}
        for name in self.verifier.fields:
            if isinstance(samples, (list, tuple)):
                parts = [_field(sample, name) for sample in samples]
                texts = all(isinstance(part, str) for part in parts)
                fields[name] = parts if texts else np.concatenate([_rows(part, name) for part in parts])
            else:
                value = _field(samples, name)
                value = [value] if isinstance(value, str) else value
                texts = isinstance(value, Sequence) and all(isinstance(part, str) for part in value)
                fields[name] = list(value) if texts else _rows(value, name)
        return fields


def verifier_of(card: Card) -> Verifier:
    """Return the verifier that a card's task names.

    Raises:
        EvaluationError: If the task names none, or one that does not exist.
    """
    name = card.task.options.get("verifier")
    if name is None:
        raise EvaluationError(f"{card.address}: its task, of the type {card.task.type!r}, names no verifier")
    try:
        return find("verifier", name)
    except CardError as error:
        raise EvaluationError(str(error)) from error


def answers_of(given: Any, verifier: Verifier) -> Any:
    """Return answers with PyG graphs as plain arrays, in the forms of :class:`~.verifiers.Verifier`.

    Raises:
        EvaluationError: If the answers are given in no such form.
    """
    if _is_graph(given):
        return _flat(given, verifier) if getattr(given, "ptr", None) is not None else [_fields_of(given)]
    if given is None or isinstance(given, bytes) or np.isscalar(given):
        raise EvaluationError(
            f"y_pred is {given!r:.60}, which is no list of {verifier.answers}; give one answer per sample: "
            f"{verifier.forms}"
        )
    if isinstance(given, (list, tuple)):
        return [_fields_of(item) if _is_graph(item) else item for item in given]
    return given


def _is_graph(value: Any) -> bool:
    """Return whether a value is a PyG graph; one without ``edge_index`` has it as None."""
    return hasattr(value, EDGE_INDEX) and hasattr(value, "to_dict")


def _fields_of(graph: Any) -> dict[str, Any]:
    """Return the fields of a PyG graph; tensors become arrays where they can, and stay as they are where not."""
    return {name: _plain(value) for name, value in graph.to_dict().items()}


def _plain(value: Any) -> Any:
    if not hasattr(value, "detach"):
        return value
    try:
        return as_array(value, "field")
    except EvaluationError:
        return value


def _flat(batch: Any, verifier: Verifier) -> dict[str, Any]:
    """Return the graphs of a PyG ``Batch`` as flat arrays.

    Raises:
        EvaluationError: If the batch has no edges, or an edge joins two graphs.
    """
    if batch.edge_index is None:
        raise EvaluationError("the batch of answers has no edge_index; give a list of graphs, or one that has edges")
    ptr, edges = as_array(batch.ptr, "ptr").astype(np.int64), as_array(batch.edge_index, EDGE_INDEX)
    nodes, count = np.diff(ptr), len(ptr) - 1
    owner = np.searchsorted(ptr, edges, side="right") - 1
    if (owner[0] != owner[1]).any():
        raise EvaluationError("an edge of the batch of answers joins two graphs; check how the batch was made")
    order = np.argsort(owner[0], kind="stable")
    graph_fields = {name: value for name, value in _fields_of(batch).items() if name in verifier.graph_fields}
    for name, value in graph_fields.items():
        if verifier.graph_fields[name] is Location.EDGE and len(value) == edges.shape[1]:
            graph_fields[name] = value[order]
    return {
        **graph_fields,
        NODES: nodes,
        EDGES: np.bincount(owner[0], minlength=count),
        EDGE_INDEX: (edges - ptr[owner])[:, order],
    }


def _field(samples: Any, name: str) -> Any:
    value = samples.get(name) if isinstance(samples, Mapping) else getattr(samples, name, None)
    if value is None:
        raise EvaluationError(
            f"the samples have no field {name!r}, which the verifier reads; load them with their labels"
        )
    return value


def _rows(value: Any, name: str) -> Array:
    return as_array(value, name).reshape(-1)
