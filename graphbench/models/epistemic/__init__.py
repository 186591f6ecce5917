"""Models that reason about the relation of two marked nodes in states of belief about relations."""
