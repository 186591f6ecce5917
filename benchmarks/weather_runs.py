"""What the weather benchmark runs in fresh processes; :mod:`benchmarks.weather` makes rows of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

DATASET = "weather/sim_64x32"
POINTS, PATTERNS = 2_048, 24
VARIABLES = 11


def prepare(root: str, times: int) -> dict[str, float]:
    """Write stores of made-up states, in chunks of many times and of one, and build our dataset from them.

    Returns:
        CPU seconds of the build, bytes of our file of training states, and bytes of the store.
    """
    from graphbench import Loader, card
    from graphbench.domains.weather.times import hours_since_epoch
    from graphbench.domains.weather.zarr_files import write_store

    packing = card(DATASET).packed["state"]
    hours = hours_since_epoch(["2001-01-01"])[0] + 6 * np.arange(times)
    folder, single = Path(root) / "stores", Path(root) / "single.zarr"
    folder.mkdir()
    states = made_up_states(times, np.array(packing.offset), np.array(packing.scale))
    for split, count in (("train", times), ("val", 8), ("test", 8)):
        runs = np.zeros(count, np.int64)
        write_store(folder / f"{split}.zarr", lambda a, b: states[a:b], hours[:count], runs, 32)
    _rechunk(folder / "train.zarr", single)
    loader = Loader(DATASET, source="official", folder=folder, root=root, workers=1, progress=False)
    started = time.process_time()
    data = loader.load()
    built = time.process_time() - started
    stored = sum(file.stat().st_size for file in (folder / "train.zarr").rglob("*") if file.is_file())
    return {"build": built, "states": times + 16, "bytes": data.train.path.stat().st_size, "store": stored}


def made_up_states(times: int, offset: NDArray[Any], scale: NDArray[Any]) -> NDArray[np.float32]:
    """Return states of a few smooth patterns that change slowly, and noise; float32 ``[times, 2048, 83]``."""
    random = np.random.default_rng(0)
    angles = np.stack(np.meshgrid(np.arange(64) / 64, np.arange(32) / 32, indexing="ij"), axis=-1).reshape(-1, 2)
    waves = random.integers(1, 9, (PATTERNS, 2)).astype(np.float64)
    patterns = np.sin(2 * np.pi * (angles @ waves.T + random.random(PATTERNS)))
    strength = np.cumsum(random.standard_normal((times, PATTERNS, len(scale))), axis=0) / np.sqrt(times * PATTERNS)
    found = np.empty((times, POINTS, len(scale)), np.float32)
    for t in range(times):
        noise = 0.05 * random.standard_normal((POINTS, len(scale)))
        found[t] = offset + scale * (patterns @ strength[t] + noise)
    return found


def _rechunk(source: Path, target: Path) -> None:
    """Write a store again, with one time per chunk."""
    import xarray

    data = xarray.open_zarr(source, chunks=None).load()
    for name in data.data_vars:
        data[name].encoding = {"chunks": (1, *data[name].shape[1:])} if name != "run" else {}
    data.to_zarr(target, zarr_format=2, consolidated=True)


def reading(root: str, repeats: int) -> dict[str, float]:
    """Return CPU seconds in which all training states are read to ``[times, points, 83]``, by us and by xarray."""
    import xarray

    from graphbench.domains.weather.zarr_files import open_store

    path = Path(root) / "stores" / "train.zarr"
    store = open_store(path)
    times, step = len(store.hours), 100

    def ours() -> None:
        for first in range(0, times, step):
            store.read(first, min(first + step, times))

    def theirs() -> None:
        from benchmarks.weather_peers import state_of

        data = xarray.open_zarr(path, chunks=None)
        for first in range(0, times, step):
            part = data.isel(time=slice(first, first + step)).load()
            np.stack([state_of(part, t) for t in range(part.sizes["time"])])

    return {"ours": _cpu(ours, repeats), "peer": _cpu(theirs, repeats), "states": times}


def batches(root: str, side: str, batch: int, most: int, seconds: float) -> dict[str, Any]:
    """Return batches per CPU second of one side, and the memory that opening the data and loading batches takes.

    Args:
        root: Folder of :func:`prepare`.
        side: ``ours``; ``lazy`` or ``single``, xarray on chunks of many times or of one; ``memory``, xarray with all
            values in memory; or ``tensors``, the same without a graph.
        batch: Samples per batch.
        most: Largest number of batches; loading lazily is slow.
        seconds: Batches are loaded for about as long.
    """
    import torch

    from benchmarks.isolated import memory_now

    torch.set_num_threads(1)
    graph = _example(root)
    _open(root, side, graph, batch)  # loads the libraries
    before = memory_now()
    started = time.perf_counter()
    epoch_of = _open(root, side, graph, batch)
    opened = time.perf_counter() - started
    count, epoch, began = 0, 0, time.process_time()
    while count < most and (not count or time.process_time() - began < seconds):
        for _ in epoch_of(epoch):
            count += 1
            if count == most or time.process_time() - began > seconds:
                break
        epoch += 1
    spent = time.process_time() - began
    grown = {kind: value - before[kind] for kind, value in memory_now().items()}
    return {"per_second": count / spent, "batches": count, "open_seconds": opened, "memory": grown}


def _example(root: str) -> Any:
    from graphbench import Loader

    folder = Path(root) / "stores"
    return Loader(DATASET, source="official", folder=folder, root=root, progress=False).load(["val"]).val[0]


def _open(root: str, side: str, graph: Any, batch: int) -> Callable[[int], Iterable[Any]]:
    """Return a function epoch -> batches."""
    from torch.utils.data import DataLoader as TorchLoader
    from torch_geometric.loader import DataLoader

    from benchmarks.weather_peers import XarrayStates
    from graphbench import Loader

    folder = Path(root) / "stores"
    if side == "ours":
        data = Loader(DATASET, source="official", folder=folder, root=root, progress=False).load(["train"]).train
        return lambda epoch: data.batches(batch, shuffle=True, epoch=epoch)
    path = Path(root) / "single.zarr" if side == "single" else folder / "train.zarr"
    whole, graphs = side in ("memory", "tensors"), side != "tensors"
    states = XarrayStates(path, graph, in_memory=whole, as_graphs=graphs)
    loader: Any = (DataLoader if graphs else TorchLoader)(states, batch, shuffle=True)  # type: ignore[arg-type]
    return lambda _: loader


def same_batches(root: str) -> bool:
    """Return whether both sides load the same numbers: those of the first two samples, up to 16-bit rounding."""
    import torch

    from benchmarks.weather_peers import XarrayStates
    from graphbench import Loader, card

    folder = Path(root) / "stores"
    data = Loader(DATASET, source="official", folder=folder, root=root, progress=False).load(["train"]).train
    ours, scale = data.make_batch(np.arange(2)), torch.tensor(card(DATASET).packed["state"].scale)
    theirs = XarrayStates(folder / "train.zarr", data[0], in_memory=False)
    x, y = (torch.cat([theirs[i][name][:POINTS] for i in range(2)]) for name in ("x", "y"))
    known = ours.grid.bool()
    close = [((a[:, :83] - b[known][:, :83]).abs() / scale).max() < 0.01 for a, b in ((x, ours.x), (y, ours.y))]
    return bool(all(close)) and bool((theirs[0].edge_index == data[0].edge_index).all())


def regridding(fields: int, repeats: int) -> dict[str, float]:
    """Return CPU seconds in which fields are regridded from 96 x 48 to 64 x 32, by us and with a sparse matrix."""
    from scipy.sparse import kron

    from graphbench.core.latitudes import grid_latitudes
    from graphbench.domains.weather.grids import grid_longitudes, latitude_overlap, longitude_overlap, regrid

    source, target = (grid_longitudes(96), grid_latitudes(48)), (grid_longitudes(64), grid_latitudes(32))
    values = np.random.default_rng(0).standard_normal((fields, 96, 48))
    weights = kron(longitude_overlap(source[0], target[0]), latitude_overlap(source[1], target[1])).tocsr()

    def theirs() -> NDArray[Any]:
        found: NDArray[Any] = (weights @ values.reshape(fields, -1).T).T.reshape(fields, 64, 32)
        return found

    assert np.allclose(theirs(), regrid(values, source, target))
    return {"ours": _cpu(lambda: regrid(values, source, target), repeats), "peer": _cpu(theirs, repeats)}


def scoring(times: int, repeats: int) -> dict[str, float]:
    """Return CPU seconds in which we and xarray score forecasts: mse, rmse, bias and anomaly correlation."""
    import xarray

    from graphbench.domains.weather import ATMOSPHERE, LEVELS, SURFACE, grid_latitudes, latitude_weights
    from graphbench.tasks.forecast import weather_scores

    random = np.random.default_rng(0)
    fields = []
    for _ in range(3):
        surface = {name: random.standard_normal((times, 64, 32)).astype(np.float32) for name in SURFACE}
        fields.append(
            surface | {name: random.standard_normal((times, 13, 64, 32)).astype(np.float32) for name in ATMOSPHERE}
        )
    latitudes = grid_latitudes(32)
    weights = xarray.DataArray(latitude_weights(latitudes, kind="area"), dims="latitude")

    def as_dataset(values: dict[str, NDArray[Any]]) -> Any:
        dimensions = {3: ("time", "longitude", "latitude"), 4: ("time", "level", "longitude", "latitude")}
        return xarray.Dataset({n: (dimensions[v.ndim], v) for n, v in values.items()}, {"level": list(LEVELS)})

    truth, forecast, usual = (as_dataset(values) for values in fields)
    space = ["longitude", "latitude"]

    def theirs() -> Any:
        error = forecast - truth
        first, second = forecast - usual, truth - usual
        product = (first * second).weighted(weights).mean(space)
        scale = (first**2).weighted(weights).mean(space) * (second**2).weighted(weights).mean(space)
        return {
            "mse": (error**2).mean(["time", *space]),
            "rmse": (error**2).weighted(weights).mean(space).mean("time") ** 0.5,
            "bias": error.weighted(weights).mean(["time", *space]),
            "acc": (product / scale**0.5).mean("time"),
        }

    found, expected = weather_scores(*fields), theirs()
    for metric, values in expected.items():
        for name in (*SURFACE, *ATMOSPHERE):
            assert np.allclose(found[metric][name], values[name], rtol=1e-3, atol=1e-4), (metric, name)
    return {"ours": _cpu(lambda: weather_scores(*fields), repeats), "peer": _cpu(theirs, repeats)}


def steps(root: str, processor: str, side: str, width: int, layers: int, batch: int, repeats: int) -> dict[str, Any]:
    """Return the CPU seconds of an optimizer step on a batch that is there already, and the number of weights."""
    import torch

    from graphbench import Loader
    from graphbench.tasks.registry import task_of

    torch.set_num_threads(1)
    torch.manual_seed(0)
    folder = Path(root) / "stores"
    data = Loader(DATASET, source="official", folder=folder, root=root, progress=False).load(["train", "val"])
    task = task_of(data.card)
    task.facts = dict.fromkeys((f"deviation_{name}" for name in data.card.channels["change"]), 1.0)
    samples = data.val.make_batch(np.arange(batch))
    model = _model(processor, side, width, layers, data.card)
    if side == "ours":
        model.fit_normalisation(task.normalisation_batch(data.val))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> None:
        optimizer.zero_grad()
        outputs = model(samples)
        outputs = outputs if side == "ours" else {"change": outputs}
        sum(task.losses(outputs, samples).values()).backward()  # type: ignore[union-attr]
        optimizer.step()

    return {"seconds": _cpu(step, repeats), "weights": sum(p.numel() for p in model.parameters())}


def _model(processor: str, side: str, width: int, layers: int, card: Any) -> Any:
    from benchmarks.weather_peers import PlainModel
    from graphbench.models.build import ModelConfig, build_model

    if side == "peer":
        return PlainModel(processor, width, layers)
    options: dict[str, Any] = {}
    if processor == "staged":
        options = {"by": "relation", "classes": 3, "stages": [1, *[0] * layers, 2]}
        layers += 2
    config = ModelConfig(
        processor=processor,
        layers=layers,
        hidden=width,
        heads=4,
        dropout=0.0,
        stochastic_depth=0.0,
        input_network=False,
        options=options,
    )
    return build_model(config, card.features, directed=True)


def simulation(truncation: int, days: int) -> dict[str, float]:
    """Return CPU seconds per simulated day, regridding included and compiling left out, and those of the first run."""
    from graphbench.domains.weather.simulation import CHUNK_DAYS, Run, simulate

    states = 4 * days
    started = time.process_time()
    simulate(Run(truncation, 1, "2001-01-11", CHUNK_DAYS), 4)
    first = time.process_time() - started
    started = time.process_time()
    simulate(Run(truncation, 2, "2001-01-11", CHUNK_DAYS), states)
    spent = time.process_time() - started
    return {"per_day": spent / (days + CHUNK_DAYS), "first": first}


def _cpu(work: Callable[[], Any], repeats: int) -> float:
    """Return the mean CPU seconds of some calls, after one that does not count."""
    work()
    started = time.process_time()
    for _ in range(repeats):
        work()
    return (time.process_time() - started) / repeats
