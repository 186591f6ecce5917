"""Pictures and numbers of the page on weather, made from a dataset on this machine.

``python docs/examples/weather_pictures.py ROOT`` reads ``weather/sim_64x32`` below the root, draws the pictures below
``docs/_static/weather``, and writes the numbers of the page to ``numbers.json`` there. ``--predictions FILE`` draws the
forecasts of a model, as ``graphbench evaluate --save-predictions`` writes them, instead of linear regression.
``--sample FILE`` also reads four times of ERA5, the file ``era5-levels-members.nc`` of the sources of cfgrib 0.9.15.1;
without it the numbers of this sample stay as they are.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray

from graphbench.data.arrays.quantisation import unpack
from graphbench.data.batches.series import pairs_of_runs
from graphbench.domains.weather import CHANNELS, grid_latitudes, grid_longitudes, latitude_weights, mesh, regrid
from graphbench.domains.weather.checks import describe_states
from graphbench.domains.weather.times import months
from graphbench.loader import Loader
from graphbench.tasks.forecast.climatology import Climatology, climatology_of
from graphbench.tasks.forecast.linear_baseline import LinearForecast, fit_linear_forecast

FOLDER = Path(__file__).resolve().parents[1] / "_static" / "weather"
DATASET = "weather/sim_64x32"
INK, ACCENT, PALE = "#1f3a5f", "#d1603d", "#b5bcc6"
FRAMES, BYTES = 40, 2_000_000  # ten days, and the most that the animation may take
LEADS = (1, 2, 4, 8, 12, 20, 28, 40)  # steps of six hours
SKILL = ("geopotential_500", "temperature_850")
SHOWN = (
    ("temperature_850", "temperature at 850 hPa (K)"),
    ("geopotential_500", "geopotential at 500 hPa (m$^2$/s$^2$)"),
)

Floats = NDArray[np.floating[Any]]


class States:
    """The stored states of a split, as values.

    Args:
        data: The split.

    Attributes:
        hours: int64 ``[T]``, their times.
        runs: ``[T]``, their runs.
    """

    def __init__(self, data: Any) -> None:
        samples = data.samples
        self.samples, self.card, self.packing = samples, data.card, data.card.packed["state"]
        self.rows = samples.values["state"].reshape(len(samples), -1, len(CHANNELS))
        self.hours = np.asarray(samples.values["time"]).astype(np.int64)
        self.runs = np.asarray(samples.values["run"])

    def at(self, times: Any, channels: list[int] | None = None) -> NDArray[np.float32]:
        """Return the states of some times, ``[times, points, channels]``."""
        values: NDArray[np.float32] = unpack(self.rows[times], self.packing)
        return values if channels is None else values[..., channels]

    def parts(self, channels: list[int] | None = None) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Yield hours and states, some at once."""
        for first in range(0, len(self.rows), 64):
            times = np.arange(first, min(first + 64, len(self.rows)))
            yield self.hours[times], self.at(times, channels)


def main() -> None:
    """Draw the pictures and write the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", type=Path)
    parser.add_argument("--predictions", type=Path)
    parser.add_argument("--sample", type=Path)
    chosen = parser.parse_args()
    matplotlib.rcParams.update({"font.size": 9, "axes.titlesize": 10, "svg.hashsalt": "weather"})
    data = Loader(DATASET, root=chosen.root, progress=False).load()
    train, test = States(data.train), States(data.test)
    FOLDER.mkdir(parents=True, exist_ok=True)
    numbers = {"dataset": DATASET, "climate": climate(train), "skill": skill(train, test)}
    file = FOLDER / "numbers.json"
    if chosen.sample is not None:
        numbers["sample"] = sample_of_era5(chosen.sample)
    elif file.is_file():
        numbers["sample"] = json.loads(file.read_text(encoding="utf-8"))["sample"]
    file.write_text(json.dumps(_rounded(numbers), indent=1) + "\n", encoding="utf-8")
    draw_skill(numbers["skill"])
    draw_globe()
    draw_forecast(train, test, chosen.predictions)
    animate(test)


# ---------------------------------------------------------------------------------------------------------- numbers


def climate(states: States) -> dict[str, Any]:
    """Return means over states of what ``describe_states`` says, and the zonal means of winds and temperatures."""
    found: dict[str, list[Any]] = {}
    columns = [CHANNELS.index(name) for name in ("u_component_of_wind_250", "temperature_850")]
    zonal = np.zeros((2, 32))
    for first in range(0, len(states.rows), 64):
        part = states.samples.part(states.card.stored_schema, first, min(first + 64, len(states.rows)))
        values = states.at(slice(first, first + 64))
        part.values["state"] = values.reshape(-1, len(CHANNELS))
        for name, own in describe_states(part, 32).items():
            found.setdefault(name, []).append(own)
        zonal += values.reshape(len(values), 64, 32, -1)[..., columns].sum(axis=0).mean(axis=0).T
    zonal /= len(states.rows)
    north = grid_latitudes(32) > 0
    means = {name: float(np.concatenate(own).mean()) for name, own in found.items()}
    means |= {"mean_jet_north": zonal[0][north].max(), "mean_jet_south": zonal[0][~north].max()}
    return {"means": means, "states": len(states.rows)}


def skill(train: States, test: States) -> dict[str, Any]:
    """Return the root mean squared errors, weighted by area, of trivial forecasts for one step to ten days."""
    columns = [CHANNELS.index(name) for name in SKILL]
    usual = climatology_of(train.parts(columns), diurnal=False, months=months)
    weights = latitude_weights(grid_latitudes(32), kind="area")
    found: dict[str, Any] = {"hours": [6 * lead for lead in LEADS], "channels": list(SKILL)}
    for lead in LEADS:
        linear = fit_linear_forecast(_anomalies(train, usual, lead, columns), 32)
        starts = pairs_of_runs(test.runs, lead)[::4]
        now, later = test.at(starts, columns), test.at(starts + lead, columns)
        expected = usual.at(test.hours[starts] + 6 * lead)
        forecasts = {
            "persistence": now,
            "climatology": expected,
            "linear regression": expected + linear.later(now - usual.at(test.hours[starts])),
        }
        for name, forecast in forecasts.items():
            squares = ((forecast - later) ** 2).reshape(len(starts), 64, 32, -1).mean(axis=(0, 1))
            errors = np.sqrt((weights[:, None] * squares).mean(axis=0))
            found.setdefault(name, []).append(errors.tolist())
    return found


def _anomalies(
    states: States, usual: Climatology, lead: int, columns: list[int] | None
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    starts = pairs_of_runs(states.runs, lead)
    for first in range(0, len(starts), 64):
        own = starts[first : first + 64]
        yield (
            states.at(own, columns) - usual.at(states.hours[own]),
            states.at(own + lead, columns) - usual.at(states.hours[own] + 6 * lead),
        )


def sample_of_era5(path: Path) -> dict[str, Any]:
    """Return what ten members of ERA5 at four times, 12 hours apart, say about climate and persistence."""
    import xarray

    with xarray.open_dataset(path) as data:
        levels = [float(v) for v in data["isobaricInhPa"].values]
        fields = {
            name: data[name].transpose("number", "time", "isobaricInhPa", "longitude", "latitude")
            for name in ("t", "z")
        }
        source = data["longitude"].values.astype(float), data["latitude"].values.astype(float)
        values = {name: field.values.astype(float) for name, field in fields.items()}
    order = np.argsort(source[1])
    target = grid_longitudes(64), grid_latitudes(32)
    on_grid = {name: regrid(v[..., order], (source[0], source[1][order]), target) for name, v in values.items()}
    t850, z500 = on_grid["t"][:, :, levels.index(850.0)], on_grid["z"][:, :, levels.index(500.0)]
    north, weights = grid_latitudes(32), latitude_weights(grid_latitudes(32), kind="area")
    warmth = t850.mean(axis=(0, 1, 2))
    return {
        "times": [str(t)[:13] for t in _times(path)],
        "members": len(t850),
        "z500": float(z500.mean(axis=(0, 1, 2)) @ weights / len(weights)),
        "t850_contrast": float(warmth[np.abs(north) < 15].mean() - warmth[np.abs(north) > 70].mean()),
        "persistence_12h": {
            "temperature_850": float(((t850[:, 1:] - t850[:, :-1]) ** 2).mean()),
            "geopotential_500": float(((z500[:, 1:] - z500[:, :-1]) ** 2).mean()),
        },
    }


def _times(path: Path) -> Any:
    import xarray

    with xarray.open_dataset(path) as data:
        return data["time"].values


def _rounded(value: Any) -> Any:
    if isinstance(value, float | np.floating):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: _rounded(own) for key, own in value.items()}
    return [_rounded(own) for own in value] if isinstance(value, list) else value


# --------------------------------------------------------------------------------------------------------- pictures


def draw_skill(found: dict[str, Any]) -> None:
    """Draw error against lead time."""
    figure = Figure(figsize=(9, 3.2))
    units = {"geopotential_500": "m$^2$/s$^2$", "temperature_850": "K"}
    colours = {"persistence": INK, "climatology": PALE, "linear regression": ACCENT}
    for c, channel in enumerate(found["channels"]):
        axis = figure.add_subplot(1, 2, c + 1)
        for name, colour in colours.items():
            axis.plot(np.array(found["hours"]) / 24, [e[c] for e in found[name]], "o-", color=colour, label=name, ms=3)
        axis.set_title(f"{channel.replace('_', ' at ')} hPa")
        axis.set_xlabel("lead time (days)")
        axis.set_ylabel(f"RMSE ({units[channel]})")
        axis.set_ylim(bottom=0)
        axis.spines[["top", "right"]].set_visible(False)
    figure.axes[0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(FOLDER / "skill.svg", metadata={"Date": None})


def draw_globe() -> None:
    """Draw the multi-mesh on the globe, and a part of it with the grid and the edges between the two."""
    whole = mesh()
    figure = Figure(figsize=(10, 5.3))
    left, right = figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2)
    _globe(left, whole, (30.0, 10.0))
    _part(right, whole, (30.0, 10.0), 0.33)
    left.set_title("mesh: an icosphere with the edges of its five levels")
    right.set_title("finest level, grid points, and the edges between the two")
    figure.tight_layout()
    _save(figure, "globe.webp")


def _view(points: NDArray[np.float64], centre: tuple[float, float]) -> NDArray[np.float64]:
    """Return points as seen from far above a place: right, up, towards the viewer."""
    latitude, longitude = np.deg2rad(centre)
    towards = np.array([np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)])
    east = np.array([-np.sin(longitude), np.cos(longitude), 0.0])
    return points @ np.stack([east, np.cross(towards, east), towards], axis=1)


def _globe(axis: Axes, whole: Any, centre: tuple[float, float]) -> None:
    seen = _view(whole.nodes, centre)
    edges = whole.mesh_edges[whole.mesh_edges[:, 0] < whole.mesh_edges[:, 1]]
    lengths = np.linalg.norm(whole.nodes[edges[:, 0]] - whole.nodes[edges[:, 1]], axis=1)
    level = np.clip(np.round(np.log2(lengths.max() / lengths)), 0, 4).astype(int)
    shades = colormaps["viridis"](np.linspace(0.0, 0.85, 5))
    axis.add_patch(matplotlib.patches.Circle((0, 0), 1.0, facecolor="#f4f6f9", edgecolor=PALE))
    for number in range(4, -1, -1):
        own = edges[(level == number)]
        own = own[(seen[own] > -0.02)[..., 2].all(axis=1)]
        width = (1.8, 1.3, 0.9, 0.6, 0.35)[number]
        arcs = [_arc(seen[a], seen[b]) for a, b in own]
        axis.add_collection(LineCollection(arcs, colors=[shades[number]], linewidths=width, zorder=6 - number))
    axis.set_xlim(-1.05, 1.05)
    axis.set_ylim(-1.05, 1.05)
    axis.set_aspect("equal")
    axis.set_axis_off()


def _arc(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return points of the great circle between two points."""
    share = np.linspace(0, 1, 12)[:, None]
    between = (1 - share) * first + share * second
    return (between / np.linalg.norm(between, axis=1, keepdims=True))[:, :2]


def _part(axis: Axes, whole: Any, centre: tuple[float, float], radius: float) -> None:
    north, east = np.meshgrid(np.deg2rad(grid_latitudes(32)), np.deg2rad(grid_longitudes(64)))
    points = np.stack([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)], -1).reshape(-1, 3)
    nodes, grid = _view(whole.nodes, centre), _view(points, centre)

    def lines(pairs: Any, a: NDArray[np.float64], b: NDArray[np.float64], **style: Any) -> None:
        near = [(a[i], b[j]) for i, j in pairs if min(a[i, 2], b[j, 2]) > 0.5]
        inside = [(p[:2], q[:2]) for p, q in near if max(np.abs(p[:2]).max(), np.abs(q[:2]).max()) < 1.3 * radius]
        axis.add_collection(LineCollection(inside, **style))

    finest = np.linalg.norm(whole.nodes[whole.mesh_edges[:, 0]] - whole.nodes[whole.mesh_edges[:, 1]], axis=1)
    short = whole.mesh_edges[finest < 1.3 * finest.min()]
    lines(short, nodes, nodes, colors=PALE, linewidths=0.8)
    lines(whole.mesh_to_grid, nodes, grid, colors=ACCENT, linewidths=0.7, alpha=0.6, linestyles=":")
    lines(whole.grid_to_mesh, grid, nodes, colors=INK, linewidths=1.2)
    for places, colour, marker, label in ((nodes, PALE, "o", "mesh node"), (grid, INK, "s", "grid point")):
        front = places[places[:, 2] > 0.5]
        axis.plot(front[:, 0], front[:, 1], marker, color=colour, ms=4, label=label, zorder=5)
    axis.plot([], [], "-", color=INK, label="grid to mesh")
    axis.plot([], [], ":", color=ACCENT, label="mesh to grid")
    axis.set_xlim(-radius, radius)
    axis.set_ylim(-radius, radius)
    axis.set_aspect("equal")
    axis.set_xticks([])
    axis.set_yticks([])
    axis.legend(loc="upper right", fontsize=8, framealpha=0.95)


def draw_forecast(train: States, test: States, predictions: Path | None) -> None:
    """Draw truth, forecast and error of one time."""
    starts = pairs_of_runs(test.runs, 2)
    number = len(starts) // 3
    time = int(starts[number])
    before, truth = test.at([time]), test.at([time + 2])[0]
    if predictions is None:
        usual = climatology_of(train.parts(), diurnal=False, months=months)
        linear: LinearForecast = fit_linear_forecast(_anomalies(train, usual, 2, None), 32)
        later = usual.at(test.hours[[time]] + 12) + linear.later(before - usual.at(test.hours[[time]]))
        forecast, by = later[0], "linear regression"
    else:
        change = np.load(predictions)["y_pred"].reshape(len(starts), -1, len(CHANNELS))[number]
        forecast, by = before[0] + change, "a model"
    figure = Figure(figsize=(11, 4.3))
    for row, (channel, title) in enumerate(SHOWN):
        c = CHANNELS.index(channel)
        fields = truth[:, c], forecast[:, c], forecast[:, c] - truth[:, c]
        low, high = float(fields[0].min()), float(fields[0].max())
        most = float(np.abs(truth[:, c] - before[0, :, c]).max()) / 2
        for column, (field, name) in enumerate(zip(fields, ("truth", f"forecast ({by})", "error"), strict=True)):
            axis = figure.add_subplot(2, 3, 3 * row + column + 1)
            limits = (-most, most) if column == 2 else (low, high)
            image = _map(axis, field, "RdBu_r" if column == 2 else "turbo", limits)
            figure.colorbar(image, ax=axis, shrink=0.75, pad=0.02)
            axis.set_title(f"{name}: {title}" if column == 0 else name, loc="left")
    figure.tight_layout()
    _save(figure, "forecast.webp")


def _map(axis: Axes, field: Floats, colours: str, limits: tuple[float, float]) -> Any:
    """Draw a field ``[points]`` with the outlines of land where they are known."""
    cube = np.roll(np.asarray(field, float).reshape(64, 32), 32, axis=0)
    image = axis.imshow(
        cube.T, origin="lower", extent=(-180, 180, -90, 90), cmap=colours, vmin=limits[0], vmax=limits[1],
        interpolation="bicubic", aspect="auto",
    )  # fmt: skip
    land = _land()
    if land is not None:
        axis.contour(*land, levels=[0.5], colors="black", linewidths=0.5)
    axis.set_xticks([])
    axis.set_yticks([])
    return image


def _land() -> tuple[Floats, Floats, Floats] | None:
    """Return longitudes, latitudes and the share of land, as jcm ships it; None where that is not installed."""
    try:
        from importlib import resources

        import xarray

        path = resources.files("jcm.data.bc.t30.clim") / "terrain.nc"
        with xarray.open_dataset(str(path)) as data:
            share = data["lsm"].transpose("lat", "lon")
            order, east = np.argsort(share["lat"].values), (share["lon"].values + 180) % 360 - 180
            around = np.argsort(east)
            return east[around], share["lat"].values[order], share.values[order][:, around]
    except ImportError:
        return None


def animate(states: States) -> None:
    """Write ten days of humidity and rain as an animated picture."""
    from PIL import Image

    columns = [CHANNELS.index(name) for name in ("specific_humidity_850", "total_precipitation_6hr")]
    values = states.at(np.arange(FRAMES), columns)
    start = np.datetime64("1959-01-01T00") + states.hours[0].astype("timedelta64[h]")
    frames = []
    for t in range(FRAMES):
        figure = Figure(figsize=(7.2, 3.5), dpi=100)
        axis = figure.add_axes((0.01, 0.02, 0.98, 0.9))
        _map(axis, 1000 * values[t, :, 0], "YlGnBu", (0, 16))
        rain = np.roll(1000 * values[t, :, 1].reshape(64, 32), 32, axis=0).T
        east, north = -180 + 360 / 64 * np.arange(64), grid_latitudes(32)
        axis.contourf(east, north, rain, levels=[2, 5, 10, 100], colors=["#f6c1a6", "#e58a5f", "#b8401c"], alpha=0.85)
        axis.set_title(f"{str(start + np.timedelta64(6 * t, 'h')).replace('T', ' ')} UTC (simulated)", loc="left")
        buffer = BytesIO()
        figure.savefig(buffer, format="png")
        frames.append(Image.open(buffer).convert("RGB"))
    path = FOLDER / "ten_days.webp"
    for quality in (70, 50, 30):
        frames[0].save(path, save_all=True, append_images=frames[1:], duration=180, loop=0, quality=quality, method=4)
        if path.stat().st_size < BYTES:
            return
    raise RuntimeError(f"{path} takes {path.stat().st_size:,} bytes, more than {BYTES:,}")


def _save(figure: Figure, name: str) -> None:
    """Save a picture as WebP, which takes a third of the bytes of PNG."""
    from PIL import Image

    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=120)
    Image.open(buffer).convert("RGB").save(FOLDER / name, quality=88, method=6)


if __name__ == "__main__":
    main()
