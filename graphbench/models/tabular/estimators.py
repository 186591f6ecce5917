"""The estimators of tabular models by name: from scikit-learn, from XGBoost, and from plug-ins.

This module loads no library of estimators; every maker loads the library that it needs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from graphbench.core.errors import ConfigError, GraphBenchError, MissingDependency, UnknownModel
from graphbench.core.foreign import text_of
from graphbench.core.plugins import calling_module
from graphbench.core.registry import Registry

_PLAIN = (bool, int, float, str, type(None))

Maker = Callable[[bool, int, Mapping[str, Any]], Any]
"""Takes (regression, seed, options) and returns a new estimator with ``fit`` and ``predict``; an estimator of classes
also has ``predict_proba`` and ``classes_``, as scikit-learn defines them."""

DrawsNothing = Callable[[Mapping[str, Any]], bool]


@dataclass(frozen=True)
class Estimator:
    """One estimator.

    Attributes:
        make: Returns a new estimator.
        trusted: Types of the estimator that may be read from a run's file, as ``module.Class``. Types of scikit-learn
            and NumPy that hold no code need not be listed.
        draws_nothing: Takes the options and returns whether the estimator draws no random numbers; None if unknown.
    """

    make: Maker
    trusted: tuple[str, ...] = ()
    draws_nothing: DrawsNothing | None = None


_SINGLE_THREADED = ("random_forest", "k_nearest", "xgboost")  # made with n_jobs=1 unless the options say otherwise

_ESTIMATORS: Registry[Estimator] = Registry("estimator", UnknownModel)


def register_estimator(
    name: str, make: Maker, trusted: tuple[str, ...] = (), draws_nothing: DrawsNothing | None = None
) -> None:
    """Make an estimator available to configurations of ``kind: tabular`` as ``processor: <name>``.

    Args:
        name: The name of the estimator.
        make: Returns a new estimator; see :data:`Maker`.
        trusted: Types of the estimator that may be read from a run's file; see :class:`Estimator`.
        draws_nothing: Whether the estimator draws no random numbers; see :class:`Estimator`.

    Raises:
        PluginError: If another module has registered an estimator of the same name.
    """
    _ESTIMATORS.add(name, Estimator(make, trusted, draws_nothing), calling_module())


def draws_nothing(name: str, options: Mapping[str, Any]) -> bool | None:
    """Return whether an estimator draws no random numbers, so that its result does not depend on the seed.

    Args:
        name: The name of the estimator.
        options: Arguments of the estimator.

    Returns:
        None if unknown, for example for an estimator that is not registered.
    """
    estimator = _ESTIMATORS.find(name) if name in _ESTIMATORS else None
    return None if estimator is None or estimator.draws_nothing is None else estimator.draws_nothing(options)


def threads_of(name: str, options: Mapping[str, Any], available: int) -> int:
    """Return the number of threads that an estimator uses.

    Args:
        name: The name of the estimator.
        options: Arguments of the estimator; ``n_jobs`` counts as in scikit-learn, from -1 for all cores downwards.
        available: Number of threads of estimators without ``n_jobs``, which use all available threads.
    """
    jobs = options.get("n_jobs", 1 if name in _SINGLE_THREADED else None)
    if not isinstance(jobs, int) or jobs == 0:
        return available
    return jobs if jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + jobs)


def trusted_types() -> list[str]:
    """Return the types that may be read from the files of runs; see :class:`Estimator`."""
    return sorted({name for estimator in _ESTIMATORS.values() for name in estimator.trusted})


@contextmanager
def fitting(name: str, rows: int) -> Iterator[None]:
    """Convert the ValueError of an estimator that refuses its options or its training rows into a clear error.

    Raises:
        ConfigError: If the block raises a ValueError.
    """
    try:
        yield
    except ValueError as error:
        if isinstance(error, GraphBenchError):
            raise
        raise ConfigError(
            f"the estimator {name} cannot be fitted on {rows:,} training rows with these model.options: "
            f"{text_of(error)}"
        ) from error


def make_estimator(name: str, regression: bool, seed: int, options: Mapping[str, Any]) -> Any:
    """Return a new estimator.

    Args:
        name: The name of the estimator.
        regression: Whether the estimator predicts numbers; otherwise it predicts classes.
        seed: Seed of the estimator's random numbers.
        options: Arguments of the estimator, under the names of its library.

    Raises:
        UnknownModel: If no estimator has the name.
        ConfigError: If the estimator does not have one of the options.
        MissingDependency: If the estimator's library is not installed.
    """
    maker = _ESTIMATORS.find(name).make
    try:
        return maker(regression, seed, options)
    except TypeError as error:
        raise ConfigError(f"model.options of {name}: {error}") from error


def estimator_parameters(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of an estimator for numbers and for classes, including the defaults of its library.

    Args:
        name: The name of the estimator.
        options: Arguments of the estimator.

    Returns:
        ``numbers`` and ``classes`` -> parameter -> value (the name of the type of values that are not plain). A kind of
        output is missing if no estimator of this kind can be made with the options.
    """
    parameters: dict[str, Any] = {}
    for kind, regression in (("numbers", True), ("classes", False)):
        try:
            estimator = make_estimator(name, regression, 0, options)
        except (ConfigError, ValueError):  # options of the other kind; fitting reports the error
            continue
        values = estimator.get_params() if hasattr(estimator, "get_params") else {}
        plain = {key: value if isinstance(value, _PLAIN) else type(value).__name__ for key, value in values.items()}
        parameters[kind] = {key: repr(value) if value != value else value for key, value in plain.items()}
    return parameters


def _random_forest(regression: bool, seed: int, options: Mapping[str, Any]) -> Any:
    from sklearn import ensemble

    forest = ensemble.RandomForestRegressor if regression else ensemble.RandomForestClassifier
    return forest(**{"n_estimators": 100, "min_samples_leaf": 2, "random_state": seed, "n_jobs": 1, **options})


def _gradient_boosting(regression: bool, seed: int, options: Mapping[str, Any]) -> Any:
    from sklearn import ensemble

    boosting = ensemble.HistGradientBoostingRegressor if regression else ensemble.HistGradientBoostingClassifier
    return boosting(**{"random_state": seed, **options})


def _linear(regression: bool, seed: int, options: Mapping[str, Any]) -> Any:
    from sklearn import linear_model
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    linear = linear_model.Ridge if regression else linear_model.LogisticRegression
    defaults = {} if regression else {"max_iter": 1000}
    return make_pipeline(StandardScaler(), linear(**{"random_state": seed, **defaults, **options}))


def _k_nearest(regression: bool, seed: int, options: Mapping[str, Any]) -> Any:
    from sklearn import neighbors
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    nearest = neighbors.KNeighborsRegressor if regression else neighbors.KNeighborsClassifier
    return make_pipeline(StandardScaler(), nearest(**{"n_neighbors": 5, "n_jobs": 1, **options}))


def _xgboost(regression: bool, seed: int, options: Mapping[str, Any]) -> Any:
    try:
        import xgboost
    except ImportError as error:
        raise MissingDependency(
            "the estimator xgboost needs it; install it with: pip install 'graphbench[xgboost]'"
        ) from error
    boosted = xgboost.XGBRegressor if regression else xgboost.XGBClassifier
    return boosted(**{"random_state": seed, "n_jobs": 1, "tree_method": "hist", **options})


_SEARCH_TREES = (
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neighbors._ball_tree.BallTree",
    *(f"sklearn.metrics._dist_metrics.{name}Distance64" for name in ("Euclidean", "Manhattan", "Minkowski")),
)

_RANDOM_SOLVERS = ("sag", "saga", "liblinear")  # they visit the rows or the columns in random order
_SAMPLED = ("subsample", "colsample_bytree", "colsample_bylevel", "colsample_bynode")


def _always_random(options: Mapping[str, Any]) -> bool:
    return False


def _is_closed_form(options: Mapping[str, Any]) -> bool:
    return options.get("solver") not in _RANDOM_SOLVERS


def _is_neighbours(options: Mapping[str, Any]) -> bool:
    return True


def _uses_all_rows_and_columns(options: Mapping[str, Any]) -> bool:
    is_plain = options.get("booster", "gbtree") == "gbtree" and options.get("num_parallel_tree", 1) == 1
    return is_plain and all(options.get(name) in (None, 1) for name in _SAMPLED)


register_estimator("random_forest", _random_forest, ("sklearn.tree._tree.Tree",), _always_random)
register_estimator(
    "gradient_boosting",
    _gradient_boosting,
    ("sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",),
    _always_random,
)
register_estimator("linear", _linear, draws_nothing=_is_closed_form)
register_estimator("k_nearest", _k_nearest, _SEARCH_TREES, _is_neighbours)
register_estimator(
    "xgboost",
    _xgboost,
    ("xgboost.core.Booster", "xgboost.sklearn.XGBClassifier", "xgboost.sklearn.XGBRegressor"),
    _uses_all_rows_and_columns,
)
