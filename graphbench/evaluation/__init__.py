"""Evaluators and metrics of predicted features, bootstrap replicates, and checks of predictions."""
