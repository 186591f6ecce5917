"""Searches that learn nothing, as rows beside trained models."""
