"""Shared by the tests of a search's report."""

import pytest

from graphbench.tuning.report import report
from graphbench.tuning.report.importance import importance


@pytest.fixture
def without_importance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let reports say that there are too few trials for importance, whose forests take longer than all other parts.

    For tests of other parts of a report; ``test_importance.py`` and ``test_tuning_report.py`` test importance.
    """
    monkeypatch.setattr(
        report, "importance", lambda parameters, trials, **options: importance(parameters, trials[:0], **options)
    )
