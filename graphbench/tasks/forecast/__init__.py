"""Forecasts: the change of a state on a grid within some hours."""
