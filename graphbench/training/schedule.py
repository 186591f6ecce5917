"""Learning-rate schedules: pure functions of the step, so a resumed run needs no scheduler state."""

from __future__ import annotations

import math
from typing import Literal

Schedule = Literal["cosine", "linear", "constant"]


def learning_rate_factor(step: int, horizon: int, warmup: int = 0, schedule: Schedule = "cosine") -> float:
    """Return the factor on the peak learning rate for the update that follows ``step`` finished updates.

    The factor rises linearly from ``1 / warmup`` to 1 during the first ``warmup`` updates. It then falls to 0 at
    ``horizon``: along half a cosine (``cosine``, Loshchilov and Hutter, 2017, equation 5 without restarts), on a line
    (``linear``), or not at all (``constant``). After the horizon it keeps its last value.

    Args:
        step: Finished optimizer updates, from 0.
        horizon: Updates after which a falling schedule reaches 0.
        warmup: Updates of linear warm-up; 0 for none.
        schedule: Shape of the fall.
    """
    if step < warmup:
        return (step + 1) / warmup
    if schedule == "constant":
        return 1.0
    progress = min((step - warmup) / max(horizon - warmup, 1), 1.0)
    if schedule == "linear":
        return 1.0 - progress
    return 0.5 * (1.0 + math.cos(math.pi * progress))
