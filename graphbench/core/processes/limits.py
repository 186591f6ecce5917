"""Limits on the resources of child processes."""

from __future__ import annotations

import resource


def allowed_limits(what: int, soft: int, hard: int) -> tuple[int, int]:
    """Return a soft and a hard limit that a process may set: none may be above the hard limit that it inherited.

    Shells and batch systems set hard limits, which only the administrator can raise.

    Args:
        what: The resource, such as ``resource.RLIMIT_CPU``.
        soft: Wanted soft limit, in the unit of the resource.
        hard: Wanted hard limit.
    """
    inherited = resource.getrlimit(what)[1]
    return (soft, hard) if inherited == resource.RLIM_INFINITY else (min(soft, inherited), min(hard, inherited))
