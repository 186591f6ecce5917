"""Recorded facts of a run in addition to its scores: memory, curves for TensorBoard, and the commit of the code."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from graphbench.core.afterwards import never_fatal
from graphbench.core.errors import MissingDependency

_LOG_AGAIN = (
    "the run goes on, and its record holds the validations; for all curves, train again into another folder with "
    "tensorboard=True (--output, --tensorboard)"
)


class Board:
    """Where the curves of a run are shown: here nowhere; a TensorBoard writer has the same methods."""

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        """Add one point to a curve."""

    def close(self) -> None:
        """Write the remaining points and stop."""


class _SafeBoard(Board):
    """A TensorBoard writer whose failures end the curves and not the run."""

    def __init__(self, writer: Any, folder: Path) -> None:
        self._writer, self._folder = writer, folder

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        """Add one point to a curve; nothing after a failure."""
        with self._ending():
            if self._writer is not None:
                self._writer.add_scalar(tag, value, step)
                return
        self._writer = None

    def close(self) -> None:
        """Write the remaining points and stop; further calls do nothing."""
        writer, self._writer = self._writer, None
        with self._ending():
            if writer is not None:
                writer.close()

    def _ending(self) -> AbstractContextManager[None]:
        return never_fatal(f"the TensorBoard log in {self._folder}", _LOG_AGAIN)


def open_board(folder: Path, wanted: bool, step: int) -> Board:
    """Return a TensorBoard writer in ``folder``, or a board that shows nothing; the writer's failures are logged.

    Args:
        folder: Where event files go.
        wanted: Whether TensorBoard was asked for.
        step: Finished updates; later points of an interrupted run are hidden.

    Raises:
        MissingDependency: If TensorBoard is asked for and not installed.
    """
    if not wanted:
        return Board()
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingDependency(
            "tensorboard=True needs TensorBoard; install it with: pip install 'graphbench[tensorboard]'"
        ) from error
    with never_fatal(f"the TensorBoard log in {folder}", _LOG_AGAIN):
        return _SafeBoard(SummaryWriter(str(folder), purge_step=step + 1), folder)  # type: ignore[no-untyped-call]
    return Board()
