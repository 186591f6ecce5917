"""Reports and pictures written after the work is done: a failure to write them is logged and never costs the result."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from graphbench.core.foreign import described

logger = logging.getLogger(__name__)


@contextmanager
def never_fatal(thing: str, remedy: str) -> Iterator[None]:
    """Run a block whose errors are logged in one line instead of raised; an interrupt still goes through.

    Args:
        thing: Name of the report or picture that the block writes, for the message, such as ``the report``.
        remedy: End of the message, which names the results that were kept and the way to make the report again.
    """
    try:
        yield
    except Exception as error:
        logger.warning("%s failed (%s); %s", thing, " ".join(described(error).split()), remedy)
        logger.debug("the failure of %s:", thing, exc_info=error)
