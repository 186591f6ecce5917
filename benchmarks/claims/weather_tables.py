"""Weather: states, splits, the edges of grid and mesh, and the row of persistence (tables 1, 2 and 19)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import numpy as np
from numpy.typing import NDArray

import graphbench
from benchmarks.claims.registry import Outcome, check
from graphbench.domains.weather.multimesh import mesh
from graphbench.records.published import published

_PER_DAY = 4


def _states(first: str, last: str) -> int:
    """Return the number of six-hourly states from a day to another, both included."""
    return _PER_DAY * ((date.fromisoformat(last) - date.fromisoformat(first)).days + 1)


@check
def states_of_years(first: str, last: str, printed: int) -> Outcome:
    """Number of six-hourly states of a range of days beside a printed one.

    Args:
        first: First day.
        last: Last day.
        printed: The printed number.
    """
    own = _states(first, last)
    return Outcome(own == printed, {"states": own, "printed": printed}, f"{own}, printed {printed}")


@check
def shares_of_years(ranges: dict[str, Sequence[str]], printed: Sequence[float]) -> Outcome:
    """Shares of training, validation and test states beside printed percentages, within their last digit.

    Args:
        ranges: Split -> first and last day.
        printed: Printed percentages.
    """
    counts = [_states(*ranges[split]) for split in ("train", "val", "test")]
    own = [100 * count / sum(counts) for count in counts]
    on_card = [graphbench.card("weather/era5_64x32").split(split).count for split in ("train", "val", "test")]
    # the last state of a split has none 12 hours later
    near = all(0 <= a - b <= 4 for a, b in zip(counts, on_card, strict=True))
    agree = all(abs(a - b) <= 0.5 for a, b in zip(own, printed, strict=True))
    return Outcome(agree and near, {"shares": own, "states": sum(counts)}, f"{own}, {counts}, {on_card}")


def _is_its_own_mirror_image(points: NDArray[np.float64]) -> bool:
    """Return whether a set of points on the sphere is symmetric under reflection through the centre."""
    from scipy.spatial import cKDTree

    distance, _ = cKDTree(points).query(-points)
    return bool(np.max(distance) < 1e-9)


@check
def edges_of_grid_and_mesh(printed: int) -> Outcome:
    """Edges that the text of section 3.4.1 leaves for the mesh, and those of GraphCast's recipe.

    An icosphere that is refined k times has 30 * 4**k edges, so any union of refinements, in one direction or in both,
    has a multiple of 30. By the text every grid point has one edge to the mesh; back may lead as many.

    Grid and icosphere are symmetric under reflection through the centre, which maps no edge to itself; so a recipe that
    depends on distances alone gives an even number, and the printed number is odd.

    Args:
        printed: The printed number of edges.
    """
    found = mesh()
    parts = [len(found.mesh_edges), len(found.grid_to_mesh), len(found.mesh_to_grid)]
    total = sum(parts)
    symmetric = _is_its_own_mirror_image(found.grid) and _is_its_own_mirror_image(found.nodes)
    nodes = len(found.grid) + len(found.nodes)
    rest = [printed - edges * len(found.grid) for edges in (1, 2)]
    return Outcome(
        printed not in (total, 2 * total)
        and all(edges % 30 for edges in rest)
        and parts[0] % 30 == 0
        and printed % 2 == 1
        and total % 2 == 0
        and symmetric,
        {"edges": total, "parts": parts, "rest": rest, "printed": printed, "nodes": nodes},
        f"{total} edges, {parts}",
    )


@check
def nodes_of_grid_and_mesh(printed: int) -> Outcome:
    """Grid points and mesh nodes.

    Args:
        printed: The printed number.
    """
    found = mesh()
    total = len(found.grid) + len(found.nodes)
    return Outcome(
        total == printed,
        {"grid": len(found.grid), "mesh": len(found.nodes), "nodes": total},
        f"{total}, printed {printed}",
    )


@check
def persistence_by_lag() -> Outcome:
    """Errors of persistence over 12 hours beside those over 6, on our simulated atmosphere, and what table 19 prints.

    The test stops being true when a record on ERA5 exists, which settles it.
    """
    from graphbench.records.files import load_records

    card = graphbench.card("weather/sim_64x32")
    floor = card.floor["test"]
    ratios = {}
    earlier = card.solvers["test"]["persistence_6h"]
    for name in ("temperature_850", "geopotential_500"):
        ratios[name] = floor["persistence"][f"mse_{name}"] / earlier[f"mse_{name}"]
    printed = [s.value for s in published("weather/era5_64x32") if s.model == "persistence"]
    records = load_records("weather/era5_64x32")
    return Outcome(
        not records and min(ratios.values()) > 1.5,
        {**ratios, "printed": len(printed)},
        "a record on ERA5 exists: compare both lags with table 19",
    )
