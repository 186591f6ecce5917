"""Domains: one package per field, with generators, labels and their checks."""
