"""The registered generators of CLUTRR: puzzles with their stories, and the rows of published files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.seeds import redrawn_seed
from graphbench.data.components.generators import Generator
from graphbench.domains.clutrr.parameters import StoryParameters

if TYPE_CHECKING:
    from graphbench.domains.clutrr.arrays import PuzzlesWithStories
    from graphbench.domains.clutrr.puzzles import Puzzles

_SHARD = 2048


def _drawn(
    parameters: StoryParameters, key: np.uint64, indices: NDArray[np.int64], attempts: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], Puzzles]]:
    """Yield the positions in the batch and the puzzles of every length."""
    from graphbench.domains.clutrr.puzzles import draw_puzzles

    turn = indices % len(parameters.lengths)
    for number, k in enumerate(parameters.lengths):
        rows = np.flatnonzero(turn == number)
        if len(rows):
            yield rows, draw_puzzles(parameters.puzzles(k), int(key), indices[rows], attempts[rows])


def _generate(
    parameters: StoryParameters, key: np.uint64, indices: NDArray[np.int64], attempts: NDArray[np.int64]
) -> Samples:
    from graphbench.domains.clutrr.arrays import chosen_samples, story_seeds

    places, told = [], []
    for rows, puzzles in _drawn(parameters, key, indices, attempts):
        places.append(rows)
        told.append(_with_stories(puzzles, story_seeds(key, indices[rows], attempts[rows]), parameters))
    return chosen_samples(told, np.argsort(np.concatenate(places)))


def _with_stories(puzzles: Puzzles, seeds: NDArray[np.uint64], parameters: StoryParameters) -> PuzzlesWithStories:
    from graphbench.domains.clutrr.arrays import PuzzlesWithStories, marks
    from graphbench.domains.clutrr.stories import write_stories

    nodes, facts = puzzles.num_nodes, (puzzles.relation, puzzles.gender, puzzles.role, puzzles.step)
    wording, wording_seed = parameters.wording, parameters.wording_seed
    stories = write_stories(nodes, puzzles.num_edges, puzzles.edges, *facts, seeds, wording, wording_seed=wording_seed)
    return PuzzlesWithStories(
        nodes,
        puzzles.num_edges,
        puzzles.edges,
        by_node={
            "asker": marks(puzzles.asker, nodes),
            "asked": marks(puzzles.asked, nodes),
            "gender": puzzles.gender,
            "entity": stories.entity,
        },
        by_edge={
            "relation": puzzles.relation,
            "role": puzzles.role,
            "step": puzzles.step,
            "sentence": stories.sentence,
        },
        by_graph={"answer": puzzles.answer},
        names=stories.names,
        texts={"story": stories.text, "tokens": stories.tokens},
    )


def _check(parameters: StoryParameters, samples: Samples) -> list[str]:
    from graphbench.domains.clutrr.checks import check_stories

    return check_stories(parameters, samples)


def _hold_outs(parameters: StoryParameters, samples: Samples) -> Mapping[str, tuple[str, list[str]]]:
    from graphbench.domains.clutrr.hold_outs import check_hold_outs

    return check_hold_outs(parameters, samples)


def _solvers(parameters: StoryParameters, train: Samples, samples: Samples) -> dict[str, dict[str, float]]:
    from graphbench.domains.clutrr.checks import solver_scores

    return solver_scores(train, samples, parameters.rules)


def _statistics(parameters: StoryParameters, samples: Samples) -> dict[str, NDArray[np.float64]]:
    from graphbench.domains.clutrr.relations import WORDS
    from graphbench.domains.clutrr.variety import unseen_shares

    answers = samples.values["answer"]
    shares = {f"answer_{word}": (answers == number).astype(np.float64) for number, word in enumerate(WORDS)}
    texts = samples.values["tokens"].strings()
    words = np.array([text.count(" ") + 1 for text in texts], np.float64)
    return {"words": words, "unseen_words": unseen_shares(texts, parameters.wording_seed), **shares}


def _different(samples: Samples) -> dict[str, int]:
    from graphbench.domains.clutrr.variety import different_ones

    return different_ones(samples)


def _redraw(parameters: StoryParameters, data_seed: int) -> StoryParameters:
    """Return the parameters of another draw: other clauses, pairs of words and templates are held out."""
    seeds = ("held_out_seed", "wording_seed")
    return parameters.model_copy(update={s: redrawn_seed(getattr(parameters, s), data_seed) for s in seeds})


_PUZZLES = Generator(
    name="clutrr.puzzles",
    version=2,
    parameters=StoryParameters,
    generate=_generate,
    check=_check,
    statistics=_statistics,
    shard_size=lambda parameters: _SHARD,
    unique=False,
    solvers=_solvers,
    different=_different,
    hold_outs=_hold_outs,
    redraw=_redraw,
    resample=lambda parameters, data_seed: parameters,  # what is held out makes the dataset
)


GENERATORS: Mapping[str, Generator] = {"puzzles": _PUZZLES}
