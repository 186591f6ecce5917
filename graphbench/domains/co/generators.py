"""The generators of combinatorial optimisation: graphs without any feature. Labels are the labellers' work."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from graphbench.data.arrays.samples import Samples
from graphbench.data.components.generators import Generator
from graphbench.domains.co.graph_checks import check_graphs
from graphbench.domains.co.graphs import BAParameters, ERParameters, GraphParameters, RBParameters, draw_graphs

_SHARD_NODES = 100_000


def _generate(
    parameters: GraphParameters, key: np.uint64, indices: NDArray[np.int64], attempts: NDArray[np.int64]
) -> Samples:
    return Samples(*draw_graphs(parameters, key, indices, attempts))


def _statistics(parameters: GraphParameters, samples: Samples) -> dict[str, NDArray[np.float64]]:
    return {"mean_degree": 2 * samples.num_edges / samples.num_nodes}


def _shard_size(parameters: GraphParameters) -> int:
    return max(1, _SHARD_NODES // parameters.nodes[1])


def _make(name: str, parameters: type[BaseModel]) -> Generator:
    return Generator(
        name=f"co.{name}",
        version=1,
        parameters=parameters,
        generate=_generate,
        check=check_graphs,
        statistics=_statistics,
        shard_size=_shard_size,
    )


GENERATORS: Mapping[str, Generator] = {
    "rb": _make("rb", RBParameters),
    "er": _make("er", ERParameters),
    "ba": _make("ba", BAParameters),
}
