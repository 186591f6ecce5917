"""Which hyperparameters the cost depends on: a variance decomposition of random forests fitted to the trials.

After Hutter, Hoos and Leyton-Brown, "An Efficient Approach for Assessing Hyperparameter Importance" (ICML 2014), which
decomposes the variance of a forest's predictions over the whole space; here by sampling, with the estimators of Jansen
(1999) for the effect of a parameter alone and for its total effect, interactions included. The packages for it do not
fit here: fanova must be compiled and takes neither conditions nor budgets, deepcave needs Python below 3.11.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from graphbench.reports.tuning.parameters import active_codes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphbench.reports.tuning.parameters import Parameter
    from graphbench.reports.tuning.trials import Trial

    Floats = NDArray[np.float64]

FEWEST_TRIALS = 20
FEWEST_CONFIGURATIONS = 10
TRUSTED_R2 = 0.3
_TREES = 128
_REPEATS = 16  # smaller forests, each fitted to another bootstrap sample of the configurations, for errors and R2
_TREES_OF_REPEATS = 32
_POINTS = 1024  # of the space, per estimate; a power of two, as Sobol sequences need
_ROUNDING = 1e-12  # of costs, relative
_FENCE = 3.0  # costs above the upper quartile by more than so many interquartile ranges are outliers (Tukey)


@dataclass(frozen=True, slots=True)
class Effect:
    """What one parameter does to the cost: shares of the variance over the space, in [0, 1].

    Attributes:
        name: The parameter.
        alone: Share explained by the parameter alone.
        alone_error: Its standard error, by bootstrap over configurations.
        total: Share explained by the parameter together with all its interactions.
        total_error: Its standard error.
    """

    name: str
    alone: float
    alone_error: float
    total: float
    total_error: float


@dataclass(frozen=True, slots=True)
class Importance:
    """The importance of all parameters at the largest budget, or why there is none.

    Attributes:
        effects: One per parameter that can vary, the largest total effect first; empty if refused.
        refusal: Why nothing was computed; empty otherwise.
        trials: Successful trials the forests were fitted to.
        configurations: Different configurations among them.
        budget: The budget the effects are about.
        at_budget: Trials at that budget; of the others the forests learn what smaller budgets tell.
        r2: Out-of-bag R2: of predictions by forests that have not seen the trial's configuration, against predicting
            the mean cost of its budget. 1 is perfect, 0 no better than that mean; None where it is not known.
        capped: Trials whose cost was an outlier and was lowered to the limit.
    """

    effects: tuple[Effect, ...] = ()
    refusal: str = ""
    trials: int = 0
    configurations: int = 0
    budget: int = 0
    at_budget: int = 0
    r2: float | None = None
    capped: int = 0

    @property
    def trusted(self) -> bool:
        """Whether the forests are known to predict unseen configurations well enough for the order to mean much."""
        return self.r2 is not None and self.r2 >= TRUSTED_R2


@dataclass(slots=True)
class _Data:
    """Successful trials as arrays; ``rows[i]`` are the places of the trials of configuration ``i``."""

    features: Floats
    cost: Floats
    budget: Floats
    rows: list[NDArray[np.intp]]
    seen: Floats = field(init=False)
    predicted: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.seen = np.zeros(len(self.cost))
        self.predicted = np.zeros(len(self.cost))


def importance(parameters: Sequence[Parameter], trials: Sequence[Trial], seed: int = 0) -> Importance:
    """Return how much of the cost's variance over the space each parameter explains, at the largest budget.

    Random forests learn (configuration, budget) -> cost from the successful trials; an inactive parameter has its
    default, one on a logarithmic scale enters as its logarithm, a category as its place in the list of choices. Their
    predictions at the largest budget are decomposed. Values describe the forests, over the whole space and not only
    near the incumbent; they say nothing on failures.

    Args:
        parameters: The space; parameters of one value alone are left out.
        trials: The history; failed trials are not used.
        seed: Seed of samples and forests: the same history gives the same numbers.

    Returns:
        The effects, or a refusal where there are fewer than 20 successful trials or 10 different configurations, or
        costs do not differ among the trials of any budget.
    """
    varying = [parameter for parameter in parameters if parameter.varies]
    successes = [trial for trial in trials if trial.succeeded]
    configurations = len({trial.config_id for trial in successes})
    largest = max((trial.budget for trial in successes), default=0)
    facts: dict[str, Any] = {
        "trials": len(successes),
        "configurations": configurations,
        "budget": largest,
        "at_budget": sum(trial.budget == largest for trial in successes),
    }
    refusal = _refusal(len(successes), configurations, varying, successes)
    if refusal:
        return Importance(refusal=refusal, **facts)
    data, capped = _data(varying, successes)
    effects, r2 = _effects(varying, data, seed)
    return Importance(effects=effects, r2=r2, capped=capped, **facts)


def _refusal(trials: int, configurations: int, varying: Sequence[Parameter], successes: Sequence[Trial]) -> str:
    if not varying:
        return "no parameter of the space can vary"
    if trials < FEWEST_TRIALS or configurations < FEWEST_CONFIGURATIONS:
        return (
            f"too few trials: {trials} successful of {configurations} configurations; importance needs "
            f"{FEWEST_TRIALS} of {FEWEST_CONFIGURATIONS}"
        )
    if not _differ(successes):
        return "costs do not differ"
    return ""


def _differ(successes: Sequence[Trial]) -> bool:
    """Return whether at some budget costs differ by more than rounding errors."""
    costs: dict[int, list[float]] = {}
    for trial in successes:
        costs.setdefault(trial.budget, []).append(trial.measured)
    return any(max(own) - min(own) > _ROUNDING * max(map(abs, own)) for own in costs.values())


def _data(varying: Sequence[Parameter], successes: Sequence[Trial]) -> tuple[_Data, int]:
    codes = [[p.code(t.config.get(p.name, p.default)) for p in varying] for t in successes]
    budget = np.log([float(trial.budget) for trial in successes])
    raw = np.array([trial.measured for trial in successes])
    low, high = np.quantile(raw, (0.25, 0.75))
    limit = high + _FENCE * (high - low) if high > low else raw.max()
    ids = np.array([trial.config_id for trial in successes])
    rows = [np.flatnonzero(ids == i) for i in np.unique(ids)]
    data = _Data(np.column_stack([np.array(codes), budget]), np.minimum(raw, limit), budget, rows)
    return data, int((raw > limit).sum())


def _effects(varying: Sequence[Parameter], data: _Data, seed: int) -> tuple[tuple[Effect, ...], float | None]:
    rng = np.random.default_rng(seed)
    points = _sample_points(varying, float(data.budget.max()), rng)
    alone, total = _shares(_forest(data, np.arange(len(data.cost)), _TREES, rng), points)
    errors = np.array([_repeat(data, points, rng) for _ in range(_REPEATS)]).std(axis=0, ddof=1)
    effects = [
        Effect(p.name, float(alone[i]), float(errors[0, i]), float(total[i]), float(errors[1, i]))
        for i, p in enumerate(varying)
    ]
    return tuple(sorted(effects, key=lambda effect: -effect.total)), _r2(data)


def _sample_points(varying: Sequence[Parameter], budget: float, rng: np.random.Generator) -> Floats:
    """Return points of the space for Jansen's estimators: float64 ``[2 + parameters, points, codes]``.

    All are at one budget. The first two blocks are independent samples A and B, the others A with one column of B each.
    """
    from scipy.stats import qmc

    count = len(varying)
    unit = qmc.Sobol(2 * count, rng=rng).random(_POINTS)
    blocks = np.empty((2 + count, _POINTS, count + 1))
    blocks[:, :, count] = budget
    for i, parameter in enumerate(varying):
        blocks[:, :, i] = parameter.codes_at(unit[:, i])
        blocks[(1, 2 + i), :, i] = parameter.codes_at(unit[:, count + i])
    blocks[:, :, :count] = active_codes(varying, blocks[:, :, :count])
    return blocks


def _forest(data: _Data, rows: NDArray[np.intp], trees: int, rng: np.random.Generator) -> Any:
    from sklearn.ensemble import RandomForestRegressor

    forest = RandomForestRegressor(trees, max_features=0.8, random_state=int(rng.integers(2**31)), n_jobs=1)
    return forest.fit(data.features[rows], data.cost[rows])


def _repeat(data: _Data, points: Floats, rng: np.random.Generator) -> Floats:
    """Return the effects by a forest on a bootstrap sample of configurations; it predicts those it has not seen."""
    drawn = rng.integers(len(data.rows), size=len(data.rows))
    forest = _forest(data, np.concatenate([data.rows[i] for i in drawn]), _TREES_OF_REPEATS, rng)
    left_out = np.setdiff1d(np.arange(len(data.rows)), drawn)
    if len(left_out):
        unseen = np.concatenate([data.rows[i] for i in left_out])
        data.predicted[unseen] += forest.predict(data.features[unseen])
        data.seen[unseen] += 1
    return _shares(forest, points)


def _shares(forest: Any, points: Floats) -> Floats:
    """Return the shares of variance alone and in total, float64 ``[2, parameters]``."""
    return _jansen(forest.predict(points.reshape(-1, points.shape[2])).reshape(points.shape[:2]))


def _jansen(values: Floats) -> Floats:
    """Return first-order and total sensitivity indices of ``values[blocks, points]``, float64 ``[2, parameters]``."""
    variance = float(values[:2].var())
    if variance <= 0:
        return np.zeros((2, len(values) - 2))
    from_b = ((values[1] - values[2:]) ** 2).mean(axis=1) / (2 * variance)
    from_a = ((values[0] - values[2:]) ** 2).mean(axis=1) / (2 * variance)
    shares: Floats = np.clip([1 - from_b, from_a], 0.0, 1.0)
    return shares


def _r2(data: _Data) -> float | None:
    known = data.seen > 0
    cost, budget = data.cost[known], data.budget[known]
    means = np.array([cost[budget == value].mean() for value in budget])
    spread = float(((cost - means) ** 2).sum())
    if spread <= 0:
        return None
    return 1 - float(((cost - data.predicted[known] / data.seen[known]) ** 2).sum()) / spread
