"""Verifiers: functions of a domain that read whole structures, given as answers to samples, and score each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Location

if TYPE_CHECKING:
    from graphbench.data.arrays.samples import Samples

Array = NDArray[Any]

NODES, EDGES, EDGE_INDEX = "num_nodes", "num_edges", "edge_index"
"""The fields of graphs given as flat arrays, in addition to the domain's fields: int64 ``[S]``, int64 ``[S]`` and
integers ``[2, E]``. Node ids count from 0 in each graph. A missing graph has no node."""
MOST_PER_GRAPH = 2**31 - 1
"""Most nodes, and most edges, of one graph that is given as flat arrays: sums over graphs then fit into int64."""


@dataclass(frozen=True, eq=False)
class Verdict:
    """The verdict of a verifier on the answers to some samples.

    Attributes:
        values: Metric -> value of every answer, float64 ``[S]``; the metric is their mean. nan where an answer does not
            count, e.g. the size of a wrong answer.
        reasons: integers ``[S]``, why an answer is wrong, as an index into :attr:`texts`; 0 for a correct answer.
        texts: The reasons in words; the first text belongs to correct answers and is empty.
        groups: The part of the samples to which each sample belongs, ``[S]``; every part has scores in addition to the
            scores of the whole. Empty where there are no parts.
        details: Number of an answer -> its fault in words, for answers that cannot be read.
    """

    values: Mapping[str, NDArray[np.float64]]
    reasons: NDArray[Any]
    texts: Sequence[str]
    groups: Sequence[str] = ()
    details: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Verifier:
    """A verifier of answers.

    Answers come in any of these forms: a sequence with one item per sample, each a mapping with the arrays of one graph
    (:data:`EDGE_INDEX` and fields of the domain), the content of a file (bytes), a path, an object of the domain, or
    None where there is no answer; a mapping with the flat arrays of all graphs (:data:`NODES`, :data:`EDGES`,
    :data:`EDGE_INDEX` and fields of the domain); or an object of the domain that holds all answers.

    Attributes:
        name: ``<domain>.<name>``, as cards write it.
        answers: The noun for answers, in the plural.
        forms: The forms that an answer may have, in words.
        graph_fields: Field of the graph of an answer -> whether it belongs to nodes or edges.
        fields: The features of samples that it reads: texts as sequences of strings, others as arrays ``[S]``.
        metrics: The metrics for which it gives values.
        endings: Endings of the names of files that hold one answer.
        verify: ``(fields, answers) -> verdict``. A wrong or malformed answer is counted; it raises no error. Raises a
            ``GraphBenchError`` if there are not as many answers as samples, or a sample cannot be verified.
        arrays: ``answers -> flat arrays`` of all graphs, which :attr:`verify` takes.
        floors: ``samples -> {name: answers}``, the answers of trivial baselines.
        solvers: ``samples -> {name: answers}``, the answers of reference programs.
    """

    name: str
    answers: str
    forms: str
    graph_fields: Mapping[str, Location]
    fields: tuple[str, ...]
    metrics: tuple[str, ...]
    endings: tuple[str, ...]
    verify: Callable[[Mapping[str, Any], Any], Verdict]
    arrays: Callable[[Any], Mapping[str, Array]]
    floors: Callable[[Samples], Mapping[str, Any]] = field(default=lambda samples: {})
    solvers: Callable[[Samples], Mapping[str, Any]] = field(default=lambda samples: {})
