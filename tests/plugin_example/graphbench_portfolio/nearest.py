"""The tabular model ``nearest``: the mean over the graphs most alike, by scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphbench.models.tabular.estimators import register_estimator


def nearest(regression: bool, seed: int, options: Mapping[str, Any]) -> Any:
    """Return k-nearest-neighbours regression or classification on standardised columns."""
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    neighbours = KNeighborsRegressor if regression else KNeighborsClassifier
    return make_pipeline(StandardScaler(), neighbours(**options))


register_estimator("nearest", nearest)
