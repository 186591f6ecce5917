"""Scenarios of algorithm selection as samples of the card ``sat/aslib``, drawn or read from files.

An instance is a graph with the inputs ``features`` and ``missing_share``: the variable-clause graph of the instance's
formula if the scenario comes with formulas, else a graph of a single node. The outputs are the costs of the algorithms.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.core.casting import overflow_fault
from graphbench.core.errors import StoreError
from graphbench.core.untrusted import shown
from graphbench.core.validation import StrictModel
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.seeds import sample_generator
from graphbench.data.arrays.texts import Texts
from graphbench.data.components.generators import Generator
from graphbench.domains.sat.cnf import Cnf
from graphbench.domains.sat.formulas import FAMILY, IS_CLAUSE, NEGATED, formulas_as_samples
from graphbench.domains.sat.scenarios import LEAST_SECONDS, PENALTY, Floats, Scenario

FEATURES, MISSING, SECONDS, NAME = "features", "missing_share", "features_seconds", "name"
COST = "_par10"
_MEANINGS = {
    FEATURES: "features of the instance, the median of training where a value is missing; units of the scenario",
    MISSING: "share of the instance's features that were not measured; no unit",
    IS_CLAUSE: "whether the node is a clause (clauses have the largest numbers)",
    NEGATED: "whether the clause holds the negation of the variable",
    SECONDS: "time of measuring the features; seconds",
    NAME: "name of the instance",
}
_NAME_CHARACTERS = 60  # of an algorithm in the meaning of a feature
_RESERVED = ("index", "batch")  # names of features must not contain these words
_LARGEST = float(np.finfo(np.float32).max)


def output_names(algorithms: Sequence[str]) -> tuple[str, ...]:
    """Return the outputs that hold the costs of algorithms: their names as identifiers, followed by ``_par10``."""
    outputs: list[str] = []
    for number, algorithm in enumerate(algorithms):
        word = re.sub(r"[^0-9A-Za-z]+", "_", algorithm).strip("_").lower()
        if not word or not word[0].isalpha() or any(part in word for part in _RESERVED):
            word = f"algorithm_{number}" + (f"_{word}" if word and not any(p in word for p in _RESERVED) else "")
        if word + COST in outputs:
            word = f"{word}_{number}"
        outputs.append(word + COST)
    return tuple(outputs)


def scenario_features(scenario: Scenario, formulas: bool) -> tuple[Feature, ...]:
    """Return the features of a scenario's samples.

    Args:
        scenario: The scenario.
        formulas: Whether the formulas of the instances are available.
    """
    graph, scalar = Location.GRAPH, Kind.SCALAR
    features = [
        Feature(output, Stage.OUTPUT, graph, scalar, meaning=_meaning_of_cost(algorithm))
        for output, algorithm in zip(output_names(scenario.algorithms), scenario.algorithms, strict=True)
    ]
    if scenario.used_features:
        width = len(scenario.used_features)
        features.append(Feature(FEATURES, Stage.INPUT, graph, scalar, width=width, meaning=_MEANINGS[FEATURES]))
        features.append(Feature(MISSING, Stage.INPUT, graph, scalar, meaning=_MEANINGS[MISSING]))
    if formulas:
        features.append(Feature(IS_CLAUSE, Stage.INPUT, Location.NODE, Kind.MASK, meaning=_MEANINGS[IS_CLAUSE]))
        features.append(Feature(NEGATED, Stage.INPUT, Location.EDGE, Kind.MASK, meaning=_MEANINGS[NEGATED]))
    features.append(Feature(SECONDS, Stage.META, graph, scalar, meaning=_MEANINGS[SECONDS]))
    features.append(Feature(NAME, Stage.META, graph, Kind.TEXT, meaning=_MEANINGS[NAME]))
    return tuple(features)


def _meaning_of_cost(algorithm: str) -> str:
    """Return the meaning of an algorithm's output; the name of the algorithm comes from a file of others."""
    return f"mean time of {shown(algorithm, _NAME_CHARACTERS)}, {PENALTY} times the cutoff if unsolved; seconds"


def scenario_samples(
    scenario: Scenario, rows: NDArray[np.int64], train: NDArray[np.int64], formulas: Sequence[Cnf] | None = None
) -> Samples:
    """Return instances of a scenario as samples.

    A missing value of a feature is replaced by the median of the feature's values in the training split (0 if the
    training split has no value), and ``missing_share`` is the share of missing values of an instance.

    Args:
        scenario: The scenario.
        rows: int64 ``[n]``, the instances.
        train: int64, the instances of the training split.
        formulas: The formulas of these instances, in canonical form; None if they are not available.
    """
    seconds = {"costs": scenario.costs()[rows], "times of features": scenario.overheads()[rows]}
    for name, array in seconds.items():
        if (fault := overflow_fault(array, np.float32)) is not None:
            raise StoreError(f"the scenario {scenario.name} {fault} among its {name}; correct its files")
    costs = seconds["costs"].astype(np.float32)
    values: dict[str, object] = dict(zip(output_names(scenario.algorithms), costs.T.copy(), strict=True))
    if scenario.used_features:
        columns = [scenario.feature_names.index(name) for name in scenario.used_features]
        table, missing = _without_gaps(scenario.features[:, columns], train)
        table = np.clip(table[rows], -_LARGEST, _LARGEST).astype(np.float32)
        values[FEATURES] = table[:, 0] if table.shape[1] == 1 else table
        values[MISSING] = missing[rows].astype(np.float32)
    values[SECONDS] = seconds["times of features"].astype(np.float32)
    values[NAME] = Texts.of(scenario.instances[i] for i in rows.tolist())
    if formulas is None:
        return _single_nodes(len(rows), values)
    graphs = formulas_as_samples(formulas, np.zeros(len(formulas), np.int64))
    values |= {name: value for name, value in graphs.values.items() if name != FAMILY}
    return Samples(graphs.num_nodes, graphs.num_edges, graphs.edges, values)


def _single_nodes(count: int, values: Mapping[str, object]) -> Samples:
    return Samples(np.ones(count, np.int64), np.zeros(count, np.int64), np.empty((0, 2), np.int32), values)


def _without_gaps(table: Floats, train: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Replace missing values by the training medians; return the table and the share of missing values per row."""
    missing = np.isnan(table)
    medians = np.zeros(table.shape[1])
    observed = ~missing[train].all(axis=0)
    medians[observed] = np.nanmedian(table[train][:, observed], axis=0)
    return np.where(missing, medians, table), missing.mean(axis=1)


# ---------------------------------------------------------------------------------------------------- drawn scenarios


class SyntheticParameters(StrictModel):
    """Parameters of a synthetic scenario, for trying selectors where the best choice follows from the features.

    Attributes:
        algorithms: Names of the algorithms.
        features: Number F of features, normally distributed.
        structure: Seed of how times depend on features, the same for all splits.
        cutoff: Time at which runs are stopped, in seconds.
        noise: Standard deviation of the logarithm of times to base 10, given the features.
    """

    algorithms: Annotated[tuple[str, ...], Field(min_length=2)]
    features: Annotated[int, Field(ge=2, le=10_000)]
    structure: Annotated[int, Field(ge=0)] = 0
    cutoff: Annotated[float, Field(gt=0, le=1e6)] = 100.0
    noise: Annotated[float, Field(ge=0, le=3)] = 0.1


def _draw(
    parameters: SyntheticParameters, key: np.uint64, indices: NDArray[np.int64], attempts: NDArray[np.int64]
) -> Samples:
    """Draw instances: ``log10 t_k = 1/2 + w_k . x + |v_k . x| + noise`` with random vectors w and v per algorithm."""
    count = len(parameters.algorithms)
    weight_rng = np.random.default_rng(parameters.structure)
    linear, folded = weight_rng.normal(0, 0.9 / np.sqrt(parameters.features), (2, count, parameters.features))
    drawn = [sample_generator(key, i, a) for i, a in zip(indices.tolist(), attempts.tolist(), strict=True)]
    normal = np.array([rng.normal(size=parameters.features + count) for rng in drawn]).reshape(len(drawn), -1)
    x, noise = normal[:, : parameters.features], normal[:, parameters.features :]
    exponent = 0.5 + (x[:, None] * linear).sum(axis=2) + np.abs((x[:, None] * folded).sum(axis=2))
    seconds = np.maximum(10.0 ** (exponent + parameters.noise * noise), LEAST_SECONDS)
    costs = np.where(seconds <= parameters.cutoff, seconds, PENALTY * parameters.cutoff)
    values: dict[str, object] = dict(
        zip(output_names(parameters.algorithms), costs.T.astype(np.float32).copy(), strict=True)
    )
    values[FEATURES] = x.astype(np.float32)
    values[MISSING] = np.zeros(len(x), np.float32)
    values[SECONDS] = np.zeros(len(x), np.float32)
    values[NAME] = Texts.of(f"synthetic_{i}" for i in indices.tolist())
    return _single_nodes(len(x), values)


def _check(parameters: SyntheticParameters, samples: Samples) -> list[str]:
    """Return the problems of drawn instances: impossible costs, and features with the wrong shape or mean."""
    problems = []
    for name in output_names(parameters.algorithms):
        cost = np.asarray(samples.values[name], np.float64)
        solved = (cost >= 0.999 * LEAST_SECONDS) & (cost <= parameters.cutoff * (1 + 1e-6))
        wrong = np.flatnonzero(~solved & ~np.isclose(cost, PENALTY * parameters.cutoff))
        problems += [f"instance {i}: {name} is {cost[i]}" for i in wrong.tolist()]
    table = np.asarray(samples.values[FEATURES], np.float64)
    spread = 6 / np.sqrt(max(table.size, 1))
    if table.shape[1:] != (parameters.features,) or abs(table.mean()) > spread:
        problems.append(f"the features have the shape {table.shape} and the mean {table.mean()}")
    return problems


def _statistics(parameters: SyntheticParameters, samples: Samples) -> dict[str, Floats]:
    costs = np.stack([np.asarray(samples.values[name], np.float64) for name in output_names(parameters.algorithms)])
    return {"solved": (costs.min(axis=0) <= parameters.cutoff).astype(np.float64), "best_seconds": costs.min(axis=0)}


SYNTHETIC = Generator(
    name="sat.synthetic_scenario",
    version=1,
    parameters=SyntheticParameters,
    generate=_draw,
    check=_check,
    statistics=_statistics,
    shard_size=lambda parameters: 10_000,
    unique=False,
)
