"""Parts of the solvers that can be compiled side by side: each runs its kernels on one small graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.neighbours import Neighbours, neighbour_lists
from graphbench.data.components.generators import CompileJob
from graphbench.domains.algoreas.bits import adjacency_rows
from graphbench.domains.algoreas.clique_local_search import improve_clique, stranger_rows
from graphbench.domains.co.colouring_search import dsatur, smallest_last, use_fewer_colours
from graphbench.domains.co.cover_search import search_independent_set
from graphbench.domains.co.cut_elimination import heaviest_cut
from graphbench.domains.co.cut_reductions import expand_cut, reduce_cut
from graphbench.domains.co.cut_search import search_cut
from graphbench.domains.co.elimination_plan import plan_elimination
from graphbench.domains.co.set_bounds import Complement
from graphbench.domains.co.set_reductions import reduce_set
from graphbench.domains.co.solvers import random_state

_NODES = 8


def compile_set_search(effort: Any) -> None:
    """Compile reductions and local search for independent sets."""
    reduce_set(_NODES, _edges())
    search_independent_set(_edges(), _lists(), np.zeros(_NODES, np.bool_), 1, random_state(0, 0))


def compile_set_bounds(effort: Any) -> None:
    """Compile the search for cliques of the complement."""
    complement = Complement(_NODES, _edges())
    complement.find(3, 1)
    complement.is_hopeless(3, 1, random_state(0, 0))


def compile_cut_search(effort: Any) -> None:
    """Compile reductions and local search for cuts."""
    reduced = reduce_cut(_NODES, _edges())
    search_cut(*_weighted_lists(), 1, random_state(0, 0))
    expand_cut(_NODES, reduced, np.zeros(len(reduced.nodes), np.bool_))


def compile_cut_elimination(effort: Any) -> None:
    """Compile the proof of sparse cuts."""
    _, plan = plan_elimination(*_weighted_lists(), 4, _NODES)
    heaviest_cut(plan, 0, 2, 1)


def compile_colouring_search(effort: Any) -> None:
    """Compile the tabu searches for colourings."""
    use_fewer_colours(_lists(), np.arange(_NODES, dtype=np.int32), _NODES, 2, 1, True, random_state(0, 0))


def compile_first_colourings(effort: Any) -> None:
    """Compile the first colourings and the search for a clique."""
    lists = _lists()
    dsatur(lists)
    smallest_last(lists)
    rows = adjacency_rows(_NODES, _edges())
    improve_clique(rows, stranger_rows(rows), 1, random_state(0, 0), np.zeros(rows.shape[1], np.uint64))


def _edges() -> NDArray[np.int32]:
    """Return a cycle and the chords between opposite nodes."""
    ids = np.arange(_NODES, dtype=np.int32)
    ends = np.concatenate([np.stack([ids, (ids + 1) % _NODES], axis=1), np.stack([ids[:4], ids[4:]], axis=1)])
    return np.unique(np.sort(ends, axis=1), axis=0).astype(np.int32)


def _lists() -> Neighbours:
    return neighbour_lists(_NODES, _edges())


def _weighted_lists() -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """Return neighbour lists with doubled weights, as reduced cuts have them."""
    lists = _lists()
    return lists.first, lists.node.astype(np.int32), np.full(len(lists.node), 2, np.int32)


def _job(module: str, kernel: str, run: Any) -> CompileJob:
    return CompileJob(f"{__package__}.{module}:{kernel}", run)


SET_JOBS = (
    CompileJob("graphbench.domains.algoreas.clique_search:estimate_nodes", compile_set_bounds),
    _job("cover_search", "search_independent_set", compile_set_search),
)
CUT_JOBS = (
    _job("cut_elimination", "heaviest_cut", compile_cut_elimination),
    _job("cut_search", "search_cut", compile_cut_search),
)
COLOURING_JOBS = (
    _job("colouring_search", "use_fewer_colours", compile_colouring_search),
    CompileJob("graphbench.domains.algoreas.clique_local_search:improve_clique", compile_first_colourings),
)
CLIQUE_JOBS = (SET_JOBS[0], COLOURING_JOBS[1])
