"""Loading batches: graphs per second, memory, file size and opening time, ours and PyG's in-memory dataset."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.common import Row, Sizes, main, ours_at_least, ratio_at_least, scratch_folder
from benchmarks.isolated import in_fresh_process, memory_now

DATASET = "algoreas/mst_easy"
BATCH = 256
TARGETS = {"shuffled": 300_000, "sequential": 700_000}
STANDARD = ("edge_index", "edge_attr", "y")
SETTINGS = {
    "data": f"{DATASET}, first graphs of the training split (16 nodes), batches of {BATCH}, one thread",
    "ours": "GraphDataset.batches on the memory-mapped file, its pages in the system's cache",
    "peer": "InMemoryDataset and torch_geometric.loader.DataLoader (no worker processes) on the same graphs and fields",
    "opening": "wall time; libraries are loaded before, on both sides",
    "rate": "graphs per CPU second (user and system) over whole epochs",
    "memory": "growth of the process while opening the data and iterating over one epoch; private = not shared",
}


def measure(sizes: Sizes) -> Iterator[Row]:
    """Yield the rows of ``loading.json``."""
    graphs, whole = sizes(100_000, 4_000), sizes(1_000_000, 8_000)
    seconds = sizes(5, 1)
    with scratch_folder() as root:
        common: dict[str, Any] = {"root": str(root)}
        in_fresh_process("benchmarks.loading:prepare", **common, whole=whole, graphs=graphs)
        ours = in_fresh_process("benchmarks.loading:ours", **common, graphs=graphs, seconds=seconds).value
        all_ours = in_fresh_process("benchmarks.loading:ours", **common, graphs=whole, seconds=seconds).value
        peer: dict[str, Any] = {}
        plain: dict[str, Any] = {}
        for order in ("shuffled", "sequential"):
            peer[order] = _peer(root / "all.pt", order, seconds)
            plain[order] = _peer(root / "plain.pt", order, seconds)
        few_bytes = in_fresh_process("benchmarks.loading:bytes_of_copy", **common, graphs=graphs).value
    for order in ("shuffled", "sequential"):
        yield from _rates(order, ours, all_ours, peer[order], plain[order], {"graphs": graphs}, whole)
    n, shuffled = {"graphs": graphs}, peer["shuffled"]
    yield Row("time to open", "ms", 1e3 * ours["open_seconds"], 1e3 * shuffled["open_seconds"], n=n)
    yield Row("file", "MB", few_bytes / 1e6, shuffled["bytes"] / 1e6, n=n)
    for kind, name in (("rss", "resident"), ("private", "private")):
        growth = {"ours": ours["memory"][kind] / 1e6, "peer": shuffled["memory"][kind] / 1e6}
        yield Row(f"memory after one shuffled epoch, {name}", "MB", **growth, n=n)


def _peer(path: Path, order: str, seconds: float) -> dict[str, Any]:
    answer: dict[str, Any] = in_fresh_process(
        "benchmarks.loading:peer", path=str(path), shuffle=order == "shuffled", seconds=seconds
    ).value
    return answer


def _rates(
    order: str,
    ours: dict[str, Any],
    all_ours: dict[str, Any],
    peer: dict[str, Any],
    plain: dict[str, Any],
    n: dict[str, int],
    whole: int,
) -> Iterator[Row]:
    bound = TARGETS[order]
    shared: dict[str, Any] = {"unit": "graphs/s", "lower_is_better": False, "n": n}
    rate = ours[order]
    yield Row(f"{order} batches", ours=rate, target=ours_at_least(bound), **shared)
    yield Row(
        f"{order} batches, PyG's first epoch",
        ours=rate,
        peer=peer["first"],
        target=ratio_at_least(80),
        note="a first epoch of PyG's dataset takes every graph out of the collated tensors",
        **shared,
    )
    yield Row(
        f"{order} batches, PyG's later epochs",
        ours=rate,
        peer=peer["later"],
        note="PyG's dataset keeps an object per graph after the first epoch: faster, for the memory shown below",
        **shared,
    )
    yield Row(
        f"{order} batches, PyG's first epoch with {', '.join(STANDARD)} only",
        ours=rate,
        peer=plain["first"],
        note="ours carries more fields (every feature under its own name as well)",
        **shared,
    )
    if order == "shuffled":
        yield Row(
            f"{order} batches, whole training split",
            ours=all_ours[order],
            target=ours_at_least(bound),
            **{**shared, "n": {"graphs": whole}},
        )


def prepare(root: str, whole: int, graphs: int) -> None:
    """Build our file, and PyG's two: all fields, and the standard ones only."""
    from torch_geometric.data import Data, InMemoryDataset

    from graphbench import Loader

    Loader(DATASET, root=root, limit=whole, progress=False).load(["train"])
    dataset = Loader(DATASET, root=root, limit=graphs, progress=False).load(["train"]).train
    items = [dataset[i] for i in range(graphs)]
    InMemoryDataset.save(items, str(Path(root) / "all.pt"))
    plain = [Data(num_nodes=item.num_nodes, **{name: item[name] for name in STANDARD}) for item in items]
    InMemoryDataset.save(plain, str(Path(root) / "plain.pt"))


def ours(root: str, graphs: int, seconds: float) -> dict[str, Any]:
    """Return opening time, memory and rates of our dataset."""
    import torch

    from graphbench import Loader

    torch.set_num_threads(1)
    Loader(DATASET, root=root, limit=1, progress=False).load(["train"])  # loads the libraries
    before, started = memory_now(), time.perf_counter()
    data = Loader(DATASET, root=root, limit=graphs, progress=False).load(["train"]).train
    opened = time.perf_counter() - started
    _walk(data.batches(BATCH, shuffle=True))
    grown = _growth(before)
    return {
        "open_seconds": opened,
        "memory": grown,
        "shuffled": _rate(lambda epoch: data.batches(BATCH, shuffle=True, epoch=epoch), seconds),
        "sequential": _rate(lambda _: data.batches(BATCH), seconds),
    }


def peer(path: str, shuffle: bool, seconds: float) -> dict[str, Any]:
    """Return opening time, memory, bytes and rates of PyG's in-memory dataset."""
    import torch
    from torch_geometric.data import InMemoryDataset
    from torch_geometric.loader import DataLoader

    class Collated(InMemoryDataset):
        """A dataset whose collated file is there already."""

        def __init__(self, file: str) -> None:
            super().__init__(None)
            self.load(file)

    torch.set_num_threads(1)
    before, started = memory_now(), time.perf_counter()
    data = Collated(path)
    opened = time.perf_counter() - started
    batches = DataLoader(data, BATCH, shuffle=shuffle)
    first = _rate(lambda _: batches, 0)
    grown = _growth(before)
    later = _rate(lambda _: batches, seconds)
    size = Path(path).stat().st_size
    return {"open_seconds": opened, "memory": grown, "bytes": size, "first": first, "later": later}


def bytes_of_copy(root: str, graphs: int) -> int:
    """Return the size of our file when it holds the first ``graphs`` graphs alone."""
    from graphbench import Loader

    folder = Path(root) / "copy"
    return int(Loader(DATASET, root=folder, limit=graphs, progress=False).load(["train"]).train.path.stat().st_size)


def _walk(batches: Iterable[Any]) -> int:
    return sum(int(batch.num_graphs) for batch in batches)


def _rate(epoch_of: Any, seconds: float) -> float:
    """Return graphs per CPU second over as many whole epochs as ``seconds`` allow, at least one."""
    graphs, epoch, started = 0, 0, time.process_time()
    spent = 0.0
    while not graphs or spent < seconds:
        graphs += _walk(epoch_of(epoch))
        spent = time.process_time() - started
        epoch += 1
    return graphs / spent


def _growth(before: dict[str, int]) -> dict[str, int]:
    return {kind: value - before[kind] for kind, value in memory_now().items()}


if __name__ == "__main__":
    main("loading", "Loading batches", measure, SETTINGS)
