"""Weights of trained baselines: files in ``baselines/weights/``, the models that they hold, and their checks."""
