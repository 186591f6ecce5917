"""The printed tables of the papers, row by row, each with a check that fails when what is said of it stops being true.

``python -m benchmarks.claims`` runs the checks; ``benchmarks/claims/*.yaml`` hold the rows, one file per paper.
"""
