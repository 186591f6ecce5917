"""Weather: batches, archives, scores, simulation and training steps, beside xarray and PyTorch Geometric."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.common import Row, Sizes, main, ratio_at_least, row_or_failure, scratch_folder
from benchmarks.isolated import in_fresh_process

BATCH = 16  # that of the paper's table 25
SIDES = {
    "lazy": "xarray, lazy, chunks of 100 times",
    "single": "xarray, lazy, chunks of one time",
    "memory": "xarray, all in memory",
    "tensors": "xarray, all in memory, fields without a graph",
}
MODELS = {"gin": "GIN", "gt": "GT", "staged": "interaction network in stages"}
WIDTH, LAYERS, STEP_BATCH = 64, 4, 2
SETTINGS: dict[str, Any] = {
    "time": "CPU seconds of one thread, kernels and programs compiled before",
    "data": "made-up states of 83 channels on 64 x 32 points in a zarr store of WeatherBench 2's layout (chunks of 100 "
    "times), which both sides read",
    "batches": f"{BATCH} samples in random order: a state, its change within 12 hours, the graph of 4,610 nodes and "
    "29,732 edges; ours: GraphDataset.batches on the memory-mapped file; peer: a Dataset of xarray in PyG's "
    "DataLoader, no worker processes; the numbers are compared before",
    "memory": "growth of the process by opening the data and loading the batches; private = not shared",
    "steps": f"forward, loss, backward and AdamW on {STEP_BATCH} samples that are loaded before; width {WIDTH}, "
    f"{LAYERS} layers (staged: and two more, to the mesh and back); peer: benchmarks/weather_peers.py, GINEConv, "
    "GPSConv without a bias of edges, which ours has, and MessagePassing on concatenated inputs",
    "regridding": "float64; peer: the same conservative weights as one sparse matrix of scipy, as xESMF applies them",
    "simulation": "jcm 3.0.0, SPEEDY physics, regridding included, compiling left out",
}


def measure(sizes: Sizes) -> Iterator[Row]:
    """Yield the rows of ``weather.json``."""
    with scratch_folder() as folder:
        root = str(folder)
        built = in_fresh_process("benchmarks.weather_runs:prepare", root=root, times=sizes(400, 24)).value
        if not in_fresh_process("benchmarks.weather_runs:same_batches", root=root).value:
            raise RuntimeError("the two sides load different numbers")
        yield from _batches(root, sizes)
        yield _build(built)
        yield row_or_failure("reading states of a zarr store", "states/s", partial(_reading, root, sizes))
        yield row_or_failure("regridding from 96 x 48 to 64 x 32", "fields/s", partial(_regridding, sizes))
        yield row_or_failure("scoring forecasts", "forecasts/s", partial(_scoring, sizes))
        for processor, name in MODELS.items():
            what = f"training step, {name}"
            yield row_or_failure(what, "steps/s", partial(_steps, what, processor, root, sizes))
    for truncation in (21,) if sizes.quick else (21, 31, 42):
        what = f"simulation, T{truncation}"
        yield row_or_failure(what, "years/CPU hour", partial(_simulation, what, truncation, sizes))


def _batches(root: str, sizes: Sizes) -> Iterator[Row]:
    """Yield rates of batches and growth of memory beside every peer."""

    def load(side: str) -> dict[str, Any]:
        few = side in ("lazy", "single")
        arguments: dict[str, Any] = {"batch": sizes(BATCH, 4), "most": sizes(4 if few else 10_000, 2)}
        found: dict[str, Any] = in_fresh_process(
            "benchmarks.weather_runs:batches", root=root, side=side, seconds=sizes(10, 1), **arguments
        ).value
        return found

    ours, peers = load("ours"), {side: load(side) for side in SIDES}
    for side, name in SIDES.items():
        yield Row(
            f"batches of {BATCH}, peer: {name}",
            "batches/s",
            ours["per_second"],
            peers[side]["per_second"],
            lower_is_better=False,
            target=None if side == "tensors" else ratio_at_least(20),
            n={"ours": ours["batches"], "peer": peers[side]["batches"]},
            note="ours loads the graph as well" if side == "tensors" else "",
            details={"seconds to open": {"ours": ours["open_seconds"], "peer": peers[side]["open_seconds"]}},
        )
    for kind, words in (("rss", "resident"), ("private", "private")):
        own, theirs = (found["memory"][kind] / 1e6 for found in (ours, peers["memory"]))
        yield Row(f"memory of loading, {words}, peer: {SIDES['memory']}", "MB", own, theirs)


def _build(built: dict[str, float]) -> Row:
    return Row(
        "dataset built from a zarr store",
        "states/s",
        built["states"] / built["build"],
        lower_is_better=False,
        n={"states": int(built["states"])},
        note=f"checks and packing included; {built['bytes'] / 1e6:.3g} MB from {built['store'] / 1e6:.3g} MB",
    )


def _reading(root: str, sizes: Sizes) -> Row:
    repeats = sizes(3, 1)
    found = in_fresh_process("benchmarks.weather_runs:reading", root=root, repeats=repeats).value
    return Row(
        "reading states of a zarr store",
        "states/s",
        found["states"] / found["ours"],
        found["states"] / found["peer"],
        lower_is_better=False,
        n={"states": found["states"]},
        note="to float32 [times, points, 83]; checks of values included on our side",
    )


def _regridding(sizes: Sizes) -> Row:
    fields = sizes(8_300, 83)
    found = in_fresh_process("benchmarks.weather_runs:regridding", fields=fields, repeats=sizes(5, 1)).value
    rates = {side: fields / found[side] for side in ("ours", "peer")}
    return Row("regridding from 96 x 48 to 64 x 32", "fields/s", **rates, lower_is_better=False, n={"fields": fields})


def _scoring(sizes: Sizes) -> Row:
    times = sizes(64, 4)
    found = in_fresh_process("benchmarks.weather_runs:scoring", times=times, repeats=sizes(3, 1)).value
    rates = {side: times / found[side] for side in ("ours", "peer")}
    note = "mse, rmse, bias and anomaly correlation of 83 channels; peer: xarray; the scores are compared before"
    return Row("scoring forecasts", "forecasts/s", **rates, lower_is_better=False, n={"forecasts": times}, note=note)


def _steps(what: str, processor: str, root: str, sizes: Sizes) -> Row:
    arguments = {
        "root": root,
        "processor": processor,
        "width": sizes(WIDTH, 8),
        "layers": sizes(LAYERS, 1),
        "batch": sizes(STEP_BATCH, 1),
        "repeats": sizes(5, 1),
    }
    found = {
        side: in_fresh_process("benchmarks.weather_runs:steps", side=side, watch_memory=True, **arguments)
        for side in ("ours", "peer")
    }
    memory = {side: one.peak_rss / 1e6 for side, one in found.items()}
    note = f"{found['ours'].value['weights']:,} weights, peer {found['peer'].value['weights']:,}; largest memory "
    return Row(
        what,
        "steps/s",
        1 / found["ours"].value["seconds"],
        1 / found["peer"].value["seconds"],
        lower_is_better=False,
        n={"steps": arguments["repeats"]},  # type: ignore[dict-item]
        note=f"{note}{memory['ours']:,.0f} MB, peer {memory['peer']:,.0f} MB",
    )


def _simulation(what: str, truncation: int, sizes: Sizes) -> Row:
    try:
        import jcm  # noqa: F401
    except ImportError:
        return Row(what, "years/CPU hour", None, note="not measured: pip install 'graphbench[weather]'")
    days = sizes(20, 5)
    found = in_fresh_process("benchmarks.weather_runs:simulation", truncation=truncation, days=days).value
    return Row(
        what,
        "years/CPU hour",
        3600 / found["per_day"] / 365.25,
        lower_is_better=False,
        n={"days": days},
        note=f"{found['per_day']:.3g} s of CPU time per day; the first run takes {found['first']:.0f} s more",
    )


if __name__ == "__main__":
    main("weather", "Weather", measure, SETTINGS)
