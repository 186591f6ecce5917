"""Satisfiability: formulas, their graphs and features, solvers with deterministic effort, and algorithm selection."""
