"""The leaderboard: models ranked by run records, with intervals, tests and stated means over datasets.

>>> from graphbench import leaderboard
>>> leaderboard.best("algoreas/*")["algoreas/mst_easy"][0].model
"""

from graphbench.leaderboard.best import BestScore, best
from graphbench.leaderboard.model import Board, Group, Leaderboard, to_json
from graphbench.leaderboard.pages import build_leaderboard, leaderboard_of
from graphbench.leaderboard.rules import RULES

__all__ = [
    "RULES",
    "BestScore",
    "Board",
    "Group",
    "Leaderboard",
    "best",
    "build_leaderboard",
    "leaderboard_of",
    "to_json",
]
