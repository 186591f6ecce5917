"""Social networks through time: snapshots of interactions, a simulated network, and the archive of Bluesky.

The names below load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphbench.core.lazy import lazy_exports

if TYPE_CHECKING:
    from graphbench.domains.social.snapshots import Snapshot, snapshot
    from graphbench.domains.social.tables import Contents, Interactions, Posts, end_of_day

_LAZY = {
    "Contents": "graphbench.domains.social.tables",
    "Interactions": "graphbench.domains.social.tables",
    "Posts": "graphbench.domains.social.tables",
    "Snapshot": "graphbench.domains.social.snapshots",
    "end_of_day": "graphbench.domains.social.tables",
    "snapshot": "graphbench.domains.social.snapshots",
}

__all__ = ["Contents", "Interactions", "Posts", "Snapshot", "end_of_day", "snapshot"]

__getattr__, __dir__ = lazy_exports(globals(), _LAZY)
