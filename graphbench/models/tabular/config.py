"""The configurations of tabular models. This module loads no torch."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from graphbench.core.validation import StrictModel
from graphbench.models.config import ArchitectureConfig


class TabularModelConfig(StrictModel):
    """An estimator on a table with one row per item (node, edge or graph) that is predicted.

    Attributes:
        kind: Always ``tabular``.
        processor: The estimator: ``random_forest``, ``gradient_boosting`` (histograms), ``linear`` (logistic or ridge
            regression on standardised columns), ``k_nearest`` (neighbours on standardised columns), ``xgboost`` (needs
            the package), or a name registered with ``register_estimator``.
        columns: ``all`` for the columns of the items and their graph, ``inputs`` for the graph-level inputs alone.
        ignore: Inputs that the model does not read.
        hops: Number of times that mean and maximum over the neighbours are appended to the columns of a node.
        most_rows: Maximum number of training rows; a random sample of a larger table is used.
        options: Arguments of the estimator, under the names of its library, e.g. ``n_estimators``.
    """

    kind: Literal["tabular"] = "tabular"
    processor: str = "random_forest"
    columns: Literal["all", "inputs"] = "all"
    ignore: tuple[str, ...] = ()
    hops: int = Field(default=2, ge=0, le=8)
    most_rows: int = Field(default=500_000, ge=1)
    options: dict[str, Any] = Field(default_factory=dict)


class SelectorModelConfig(ArchitectureConfig):
    """A selector of algorithms: estimators that predict costs of algorithms from a table of features of graphs.

    Attributes:
        kind: Always ``selector``.
        method: The targets of the estimators, see :mod:`graphbench.models.tabular.selectors`: ``log_costs``, ``costs``,
            ``pairwise_regression``, ``pairwise_classification`` or ``multiclass``.
        processor: The estimator, as in :class:`TabularModelConfig`.
        columns: ``all`` for the columns of nodes, edges and the graph, ``inputs`` for the graph-level inputs alone.
        ignore: Inputs that the model does not read.
        hops: Number of times that mean and maximum over the neighbours are appended to the columns of a node.
        most_rows: Maximum number of training instances; a random sample of a larger table is used.
        presolving: How long the algorithm that is best on the training split runs before the inputs are computed and a
            choice is made, in the unit of the costs; see :class:`graphbench.tasks.select.evaluator.SelectionEvaluator`.
            ``learned``: the algorithm and its time, or no presolving, are the ones that make the choices on the
            training split cheapest (:func:`graphbench.models.tabular.presolving.best_schedule`), where every choice is
            made by estimators that were fitted without its instance.
        options: Arguments of the estimator, under the names of its library, e.g. ``n_estimators``.
    """

    added: ClassVar[frozenset[str]] = frozenset({"presolving"})

    kind: Literal["selector"] = "selector"
    method: Literal["log_costs", "costs", "pairwise_regression", "pairwise_classification", "multiclass"] = (
        "pairwise_regression"
    )
    processor: str = "random_forest"
    columns: Literal["all", "inputs"] = "all"
    ignore: tuple[str, ...] = ()
    hops: int = Field(default=0, ge=0, le=8)
    most_rows: int = Field(default=500_000, ge=1)
    presolving: Annotated[float, Field(ge=0.0)] | Literal["learned"] = 0.0
    options: dict[str, Any] = Field(default_factory=dict)
