"""Datasets of the user's own graphs: their samples are read from files beside their cards."""
