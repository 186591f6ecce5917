"""Submissions of results: folders with records or predictions, checked without running anything that they hold."""

from graphbench.leaderboard.submissions.check import check_submission
from graphbench.leaderboard.submissions.findings import Finding, Level, SubmissionReport, SubmittedDataset, Verdict
from graphbench.leaderboard.submissions.skeleton import start_submission

__all__ = [
    "Finding",
    "Level",
    "SubmissionReport",
    "SubmittedDataset",
    "Verdict",
    "check_submission",
    "start_submission",
]
