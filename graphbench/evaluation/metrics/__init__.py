"""Metrics as pairs of an accumulator, which streams, and a value computed from it once at the end."""

from graphbench.evaluation.metrics.registry import (
    METRICS,
    Metric,
    default_metrics,
    metric,
    range_problem,
    register_metric,
)

__all__ = ["METRICS", "Metric", "default_metrics", "metric", "range_problem", "register_metric"]
