"""Which hyperparameters the cost depends on: a variance decomposition of a random forest fitted to the trials.

After Hutter, Hoos and Leyton-Brown, "An Efficient Approach for Assessing Hyperparameter Importance" (ICML 2014), who
decompose the variance of a forest's predictions over the whole space; here with the Sobol indices of SciPy. No package
for it fits: fanova must be compiled and takes neither conditions nor budgets, deepcave needs Python below 3.11.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from graphbench.tuning.parameters import active_codes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphbench.tuning.parameters import Parameter
    from graphbench.tuning.trial import Trial

    Floats = NDArray[np.float64]

FEWEST_TRIALS = 20
FEWEST_CONFIGURATIONS = 10
TRUSTED_R2 = 0.3
_TREES = 128
_FOLDS = 8  # of configurations, for R2
_POINTS = 1024  # of the space, per estimate; a power of two, as Sobol sequences need
_ROUNDING = 1e-12  # of costs, relative
_FENCE = 3.0  # interquartile ranges above the upper quartile beyond which a cost is an outlier (Tukey)


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of one parameter on the cost: shares of the variance over the space, in [0, 1].

    Attributes:
        name: The parameter.
        alone: Share explained by the parameter alone (first-order Sobol index).
        total: Share explained by the parameter together with all its interactions (total Sobol index).
    """

    name: str
    alone: float
    total: float


@dataclass(frozen=True, slots=True)
class Importance:
    """The importance of all parameters at the largest budget, or why there is none.

    Attributes:
        effects: One per parameter that can vary, the largest total effect first; empty if refused.
        refusal: Why nothing was computed; empty otherwise.
        trials: Successful trials the forest was fitted to.
        configurations: Different configurations among the trials.
        budget: The budget at which the effects were computed.
        at_budget: Trials at that budget; from the other trials the forest learns how the cost depends on the budget.
        r2: Cross-validated R2 of predictions by forests that have not seen the trial's configuration, against
            predicting the mean cost of its budget. 1 is perfect, 0 is no better than the mean; None if undefined.
        capped: Trials with an outlier as cost, which was lowered to the limit.
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
        """Whether forests predict unseen configurations well enough for the order to mean much."""
        return self.r2 is not None and self.r2 >= TRUSTED_R2


def importance(parameters: Sequence[Parameter], trials: Sequence[Trial], seed: int = 0) -> Importance:
    """Return how much of the cost's variance over the space each parameter explains, at the largest budget.

    A random forest learns (configuration, budget) -> cost from the successful trials. An inactive parameter has its
    default, a parameter on a logarithmic scale enters as its logarithm, and a category as its index in the list of
    choices. The predictions of the forest at the largest budget are decomposed. The shares describe the forest over the
    whole space, not only near the incumbent; they do not describe failures.

    Args:
        parameters: The space; parameters with a single value are left out.
        trials: The history; failed trials are not used.
        seed: Seed of samples and forests: the same history gives the same numbers.

    Returns:
        The effects, or a refusal where there are fewer than 20 successful trials or 10 different configurations, or
        costs do not differ among the trials of any budget.
    """
    varying = [parameter for parameter in parameters if parameter.varies]
    successes = [trial for trial in trials if trial.succeeded]
    ids = np.array([trial.config_id for trial in successes])
    budgets = np.array([trial.budget for trial in successes])
    largest, configurations = int(budgets.max(initial=0)), len(np.unique(ids))
    facts: dict[str, Any] = {
        "trials": len(successes),
        "configurations": configurations,
        "budget": largest,
        "at_budget": int((budgets == largest).sum()),
    }
    raw = np.array([trial.measured for trial in successes])
    refusal = _refusal(configurations, varying, budgets, raw)
    if refusal:
        return Importance(refusal=refusal, **facts)
    low, high = np.quantile(raw, (0.25, 0.75))
    limit = high + _FENCE * (high - low) if high > low else raw.max()
    cost = np.minimum(raw, limit)
    codes = [[p.code(t.config.get(p.name, p.default)) for p in varying] for t in successes]
    features = np.column_stack([np.array(codes), np.log(budgets)])
    effects = _effects(varying, _forest(seed).fit(features, cost), largest, seed)
    return Importance(effects, r2=_r2(features, cost, budgets, ids, seed), capped=int((raw > limit).sum()), **facts)


def _refusal(configurations: int, varying: Sequence[Parameter], budgets: NDArray[np.int_], cost: Floats) -> str:
    if not varying:
        return "no parameter of the space can vary"
    if len(cost) < FEWEST_TRIALS or configurations < FEWEST_CONFIGURATIONS:
        return (
            f"too few trials: {len(cost)} successful of {configurations} configurations; importance needs "
            f"{FEWEST_TRIALS} of {FEWEST_CONFIGURATIONS}"
        )
    groups = [cost[budgets == budget] for budget in np.unique(budgets)]
    if all(np.ptp(costs) <= _ROUNDING * np.abs(costs).max() for costs in groups):
        return "costs do not differ"
    return ""


def _forest(seed: int) -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(_TREES, max_features=0.8, random_state=seed, n_jobs=1)


@dataclass(frozen=True, slots=True)
class _Codes:
    """The distribution of a parameter's codes over the space, as SciPy takes it."""

    parameter: Parameter

    def ppf(self, shares: Floats) -> Floats:
        return self.parameter.codes_at(shares)


def _effects(varying: Sequence[Parameter], forest: Any, budget: int, seed: int) -> tuple[Effect, ...]:
    """Return the Sobol indices of a forest's predictions at a budget, the largest total effect first.

    SciPy does not compute the indices of a single parameter; a single parameter explains all variance.
    """
    from scipy.stats import sobol_indices

    def predictions(points: Floats) -> Floats:
        codes = active_codes(varying, points.T)
        values: Floats = forest.predict(np.column_stack([codes, np.full(len(codes), np.log(budget))]))
        return values

    if len(varying) == 1:
        shares = (np.arange(_POINTS) + 0.5) / _POINTS
        share = float(np.ptp(predictions(varying[0].codes_at(shares)[None])) > 0)
        return (Effect(varying[0].name, share, share),)
    dists: Any = [_Codes(parameter) for parameter in varying]
    with np.errstate(invalid="ignore"):  # 0 / 0 where the forest is constant
        indices = sobol_indices(func=predictions, n=_POINTS, dists=dists, rng=np.random.default_rng(seed))
    alone, total = np.clip(np.nan_to_num([indices.first_order, indices.total_order]), 0.0, 1.0).reshape(2, -1)
    effects = [Effect(p.name, float(alone[i]), float(total[i])) for i, p in enumerate(varying)]
    return tuple(sorted(effects, key=lambda effect: -effect.total))


def _r2(features: Floats, cost: Floats, budgets: NDArray[np.int_], ids: NDArray[np.int_], seed: int) -> float | None:
    """Return R2 over folds of configurations; None where costs of one budget do not differ."""
    from sklearn.model_selection import GroupKFold, cross_val_predict

    means = np.array([cost[budgets == budget].mean() for budget in budgets])
    spread = float(((cost - means) ** 2).sum())
    if spread <= 0:
        return None
    predicted = cross_val_predict(_forest(seed), features, cost, groups=ids, cv=GroupKFold(_FOLDS))
    return 1 - float(((cost - predicted) ** 2).sum()) / spread
