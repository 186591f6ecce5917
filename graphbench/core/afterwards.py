"""What is written for people after the work is done: its failures are logged and never cost the result."""

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
        thing: What the block writes or shows, for the message, such as ``the report``.
        remedy: What stands in spite of the failure, and how the thing is made again.
    """
    try:
        yield
    except Exception as error:
        logger.warning("%s failed (%s); %s", thing, " ".join(described(error).split()), remedy)
        logger.debug("the failure of %s:", thing, exc_info=error)
