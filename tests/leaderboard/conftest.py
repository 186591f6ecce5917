"""The toy card and the record makers of the tests of the leaderboard."""

from zlib import crc32

import numpy as np

from ..evaluation.conftest import card, make_record, verified

__all__ = ["bootstrapped", "card", "make_record", "replicates_around", "verified"]

REPLICATES = 200


def replicates_around(value, name, spread=1e-4):
    """Return replicates of a score: what all models share, and as much again of a model of this name alone."""
    shared = np.random.default_rng(7).normal(0, 0.02, REPLICATES)
    own = np.random.default_rng(crc32(name.encode())).normal(0, spread, REPLICATES)
    return [float(x) for x in value + shared + own - np.mean(shared + own)]


def bootstrapped(record, spread=1e-4):
    """Return a record with paired bootstrap replicates of its first metric on every split."""
    name = f"{record.model} {record.seed}"
    replicates = {
        split: replicates_around(next(iter(scores.values())), name, spread) for split, scores in record.scores.items()
    }
    return record.model_copy(update={"replicates": replicates})
