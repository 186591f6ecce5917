"""What the benchmark of social networks runs, in fresh processes; :mod:`benchmarks.social` makes rows of it."""

from __future__ import annotations

import io
import tarfile
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.common import median_seconds

SEED = 7
KIND = "replies"


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return CPU seconds of all threads, and the result."""
    started = time.process_time()
    found = work()
    return time.process_time() - started, found


def _times() -> tuple[int, int, int]:
    from graphbench.domains.social.simulator_tables import DATES, START
    from graphbench.domains.social.tables import end_of_day

    return end_of_day(START) - 1440, end_of_day(DATES[0]), end_of_day(DATES[1])


def simulation(users: int) -> dict[str, float]:
    """Return CPU seconds and numbers of posts and interactions of a simulated network."""
    from graphbench.domains.social import simulate

    simulate(500)
    seconds, own = _timed(lambda: simulate(users, SEED))
    return {
        "seconds": seconds,
        "posts": len(own.posts),
        "interactions": sum(len(rows) for rows in own.interactions.values()),
    }


def tables(users: int) -> dict[str, float]:
    """Return CPU seconds from tables in memory to a snapshot, ours and by pandas; the same snapshot."""
    from graphbench.domains.social import simulate, snapshot

    def ours(own: Any) -> Any:
        return snapshot(replace(own.posts, contents=None), own.interactions, *_times(), KIND, median="lower")

    ours(simulate(500))
    own = simulate(users, SEED)
    seconds, found = _timed(lambda: ours(own))
    frames = _frames(own)
    theirs, expected = _timed(lambda: pandas_snapshot(*frames, *_times()))
    _require_same(found, expected)
    return {"ours": seconds, "peer": theirs, "rows": len(own.posts) + len(own.interactions[KIND])}


def archive(users: int) -> dict[str, float]:
    """Return CPU seconds from the files of the archive to a snapshot without contents, ours and by pandas."""
    from graphbench.domains.social import read_snapshot, simulate, write_archive
    from graphbench.domains.social.simulator_tables import DATES

    def ours(folder: Path) -> Any:
        return read_snapshot(folder, KIND, DATES[0], DATES[1], embedded=False, progress=False)

    with tempfile.TemporaryDirectory() as name:
        small, whole = Path(name, "small"), Path(name, "whole")
        write_archive(simulate(500), small)
        ours(small)
        own = simulate(users, SEED)
        write_archive(own, whole)
        seconds, found = _timed(lambda: ours(whole))
        theirs, expected = _timed(lambda: pandas_snapshot(*pandas_archive(whole), *_times()))
        _require_same(found, expected)
        size = sum(path.stat().st_size for path in whole.glob("*.tar.gz"))
    return {"ours": seconds, "peer": theirs, "rows": len(own.posts) + len(own.interactions[KIND]), "bytes": size}


def _frames(own: Any) -> tuple[Any, Any]:
    import pandas as pd

    columns = ("user", "time", "likes", "replies", "reposts")
    posts = pd.DataFrame({name: getattr(own.posts, name) for name in columns})
    rows = own.interactions[KIND]
    return posts, pd.DataFrame({"source": rows.source, "target": rows.target, "time": rows.time})


def pandas_archive(folder: Path) -> tuple[Any, Any]:
    """Return posts and interactions of an archive as frames, as one would read them with pandas."""
    import pandas as pd

    names = {"user_id": "user", "date": "time", "like_count": "likes", "reply_count": "replies"}
    names["repost_count"] = "reposts"

    def minutes(column: Any) -> Any:
        found = pd.to_datetime(column.astype(str), format="%Y%m%d%H%M")
        return found.to_numpy().astype("datetime64[m]").astype("int64")

    parts = []
    with tarfile.open(folder / "user_posts.tar.gz") as archive_:
        for member in archive_:
            stream = archive_.extractfile(member)
            assert stream is not None
            frame = pd.read_json(io.BytesIO(stream.read()), lines=True, convert_dates=False)
            parts.append(frame.loc[frame.reposted_author.isna(), list(names)].rename(columns=names))
    posts = pd.concat(parts)
    with tarfile.open(folder / "graphs.tar.gz") as archive_:
        stream = archive_.extractfile(f"graphs/{KIND}.csv")
        assert stream is not None
        rows = pd.read_csv(stream)
    rows = rows.assign(time=minutes(rows.date))
    return posts.assign(time=minutes(posts.time)), rows


def pandas_snapshot(posts: Any, rows: Any, t0: int, t1: int, t2: int) -> dict[str, Any]:
    """Return nodes, edges and medians of a snapshot by pandas' own functions for whole tables."""
    import numpy as np
    import pandas as pd

    counts = ["likes", "replies", "reposts"]
    earlier, later = posts[(posts.time > t0) & (posts.time <= t1)], posts[(posts.time > t1) & (posts.time <= t2)]
    kept = np.intersect1d(earlier.user.unique(), later.user.unique())
    rows = rows[(rows.time > t0) & (rows.time <= t1) & rows.source.isin(kept) & rows.target.isin(kept)]
    pairs = rows[["source", "target"]].drop_duplicates().sort_values(["source", "target"])
    users = np.unique(pairs.to_numpy())
    number = pd.Series(np.arange(len(users)), users)
    edges = np.stack([number.loc[pairs.source].to_numpy(), number.loc[pairs.target].to_numpy()], axis=1)

    def medians(part: Any) -> Any:
        grouped = part[part.user.isin(users)].groupby("user")[counts]
        return np.log1p(grouped.quantile(0.5, interpolation="lower").to_numpy())

    return {"users": users, "edges": edges, "past": medians(earlier), "targets": medians(later)}


def _require_same(found: Any, expected: dict[str, Any]) -> None:
    import numpy as np

    for name, value in expected.items():
        if not np.allclose(getattr(found, name), value, rtol=1e-6):
            raise RuntimeError(f"the two snapshots differ in {name}")


def build(users: int, root: str) -> dict[str, float]:
    """Build the three splits of a simulated network of some users; return their sizes and the CPU seconds."""
    import graphbench

    def load() -> Any:
        return graphbench.Loader(f"social/sim_{KIND}", root=root, limit=users, workers=1).load()

    seconds, splits = _timed(load)
    return {"seconds": seconds, "edges": sum(int(own[0].num_edges) for own in (splits.train, splits.val, splits.test))}


def batches(users: int, root: str, repeats: int) -> dict[str, float]:
    """Return wall seconds to open a stored snapshot and for a batch of it, ours and by PyG's habits."""
    import torch
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader

    import graphbench

    def load() -> Any:
        return graphbench.Loader(f"social/sim_{KIND}", root=root, limit=users, workers=1).load()

    split = load().train
    own = split[0]
    data = Data(
        x=torch.as_tensor(own.content, dtype=torch.float32),
        edge_index=own.edge_index.clone(),
        y=torch.stack([own.likes, own.replies, own.reposts], dim=1),
    )
    path = Path(root) / "snapshot.pt"
    torch.save(data, path)

    def opened() -> None:
        sum(1 for _ in load().train.batches(1))

    def opened_by_pyg() -> None:
        sum(1 for _ in DataLoader([torch.load(path, weights_only=False)], batch_size=1))

    held = [data]
    return {
        "open": median_seconds(opened, repeats),
        "peer_open": median_seconds(opened_by_pyg, repeats),
        "batch": median_seconds(lambda: sum(1 for _ in split.batches(1)), repeats),
        "peer_batch": median_seconds(lambda: sum(1 for _ in DataLoader(held, batch_size=1)), repeats),
        "edges": float(own.num_edges),
    }
