"""Hyperparameter tuning: search spaces, resumable multi-fidelity search, reports."""
