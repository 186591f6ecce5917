"""Submissions of results: folders with records, predictions or weights.

Checking a folder runs nothing that it holds. Only the verification of a sealed folder runs an author's code, in a
closed process.
"""

from graphbench.leaderboard.submissions.check import check_submission
from graphbench.leaderboard.submissions.findings import Finding, Level, SubmissionReport, SubmittedDataset, Verdict
from graphbench.leaderboard.submissions.sealed import SealedResult, rehearse, verify_sealed
from graphbench.leaderboard.submissions.seals import Seal, seal
from graphbench.leaderboard.submissions.skeleton import start_submission

__all__ = [
    "Finding",
    "Level",
    "Seal",
    "SealedResult",
    "SubmissionReport",
    "SubmittedDataset",
    "Verdict",
    "check_submission",
    "rehearse",
    "seal",
    "start_submission",
    "verify_sealed",
]
