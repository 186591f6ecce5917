"""Social networks through time: snapshots of interactions, a simulated network, and the archive of Bluesky.

The names below load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphbench.core.lazy import lazy_exports

if TYPE_CHECKING:
    from graphbench.domains.social.archive_source import read_snapshot
    from graphbench.domains.social.embeddings import embed_archive, minilm
    from graphbench.domains.social.exporters import write_archive
    from graphbench.domains.social.simulator import Network, simulate
    from graphbench.domains.social.snapshots import Snapshot, snapshot
    from graphbench.domains.social.tables import Contents, Interactions, Posts, end_of_day

_LAZY = {
    "Contents": "graphbench.domains.social.tables",
    "Interactions": "graphbench.domains.social.tables",
    "Network": "graphbench.domains.social.simulator",
    "Posts": "graphbench.domains.social.tables",
    "Snapshot": "graphbench.domains.social.snapshots",
    "embed_archive": "graphbench.domains.social.embeddings",
    "end_of_day": "graphbench.domains.social.tables",
    "minilm": "graphbench.domains.social.embeddings",
    "read_snapshot": "graphbench.domains.social.archive_source",
    "simulate": "graphbench.domains.social.simulator",
    "snapshot": "graphbench.domains.social.snapshots",
    "write_archive": "graphbench.domains.social.exporters",
}

__all__ = [
    "Contents",
    "Interactions",
    "Network",
    "Posts",
    "Snapshot",
    "embed_archive",
    "end_of_day",
    "minilm",
    "read_snapshot",
    "simulate",
    "snapshot",
    "write_archive",
]

if not TYPE_CHECKING:  # else type checkers would accept every name
    __getattr__, __dir__ = lazy_exports(globals(), _LAZY)
