"""Scores, trivial and published reference numbers, run records, and the report that sets them side by side."""
