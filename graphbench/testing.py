"""Public conformance checks, for the tests of this package and for anyone who adds a dataset or a model."""

from __future__ import annotations

from pathlib import Path

from graphbench.core.errors import VerificationError
from graphbench.verification import Verification, verify


def check_dataset(name: str, *, samples: int | None = None, root: str | Path | None = None) -> Verification:
    """Run every check of ``graphbench verify`` on a dataset and raise if one fails.

    Args:
        name: Id or alias.
        samples: Graphs per split whose labels are recomputed independently; None chooses by size.
        root: Folder of all datasets.

    Raises:
        VerificationError: Listing the failed checks.
    """
    outcome = verify(name, root=root, samples=samples, progress=False)
    if not outcome.passed:
        lines = "\n".join(f"  {row.split}: {row.check}: {row.detail}" for row in outcome.failures)
        raise VerificationError(f"{outcome.id} failed {len(outcome.failures)} checks:\n{lines}")
    return outcome
