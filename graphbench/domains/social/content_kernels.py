"""The stand-in for embeddings of text: a fixed random projection of topics and style, plus noise.

It is not a language model: a row is the mean of the vectors of the topics of a user's posts in a period, plus a part
that shows the user's style, plus noise of the user, which is the same in all periods, plus noise of the period.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.core.rng import next_u64, seed
from graphbench.domains.social.simulator_tables import normal_quantiles

_PROJECTION = 0x50C1A1  # seed of the projection, which is the same in all networks
_ROW_BATCH = 1 << 16
_USER_NOISE, _PERIOD_NOISE = 4, 5  # streams
_BYTE, _SHIFT = np.uint64(0xFF), np.uint64(8)
_UNIT = np.float32(2 * 3**0.5 / 255)  # uniform bytes have then the deviation 1


def projection(rows: int, width: int) -> NDArray[np.float32]:
    """Return vectors of about length 1, float32 ``[rows, width]``; they do not depend on the number of rows."""
    rng = np.random.Generator(np.random.Philox(_PROJECTION))
    drawn = rng.integers(0, len(normal_quantiles()), (rows, width))
    return np.asarray(normal_quantiles()[drawn] / np.sqrt(width), np.float32)


def content_rows(
    key: np.uint64,
    user: NDArray[Any],
    time: NDArray[Any],
    topic: NDArray[np.uint8],
    ends: NDArray[np.int64],
    style: NDArray[np.float32],
    topics: int,
    width: int,
    noise: tuple[float, float],
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float16]]:
    """Return user, time and vector of the contents of every user and period with posts.

    Args:
        key: Key of the network.
        user: Of the posts, rising.
        time: Of the posts.
        topic: Of the posts.
        ends: Last minutes of the periods; a row has the time of its period.
        style: float32 ``[users, styles]``, the weight of each style; topics have the weight 1.
        topics: Number of topics.
        width: Columns.
        noise: Deviation of the noise of users and of periods, as the length of a row.
    """
    styles = style.shape[1]
    vectors = projection(styles + topics, width)
    deviations = np.array(noise, np.float32) / np.float32(np.sqrt(width))
    period = np.searchsorted(ends, time).astype(np.uint8)
    slots = np.unique(user.astype(np.int64) * len(ends) + period)
    parts = np.empty((len(slots), width), np.float16)
    first = np.searchsorted(user, slots[::_ROW_BATCH] // len(ends))
    for number, begin in enumerate(range(0, len(slots), _ROW_BATCH)):
        rows = np.zeros((min(_ROW_BATCH, len(slots) - begin), width), np.float32)
        batch = slots[begin : begin + len(rows)]
        _fill(key, user, period, topic, int(first[number]), batch, len(ends), vectors, style, deviations, rows)
        parts[begin : begin + len(rows)] = rows
    owner, at = np.divmod(slots, len(ends))
    return owner.astype(np.int32), ends[at].astype(np.int32), parts


@inner
def _add_noise(
    key: np.uint64, index: int, attempt: int, stream: int, scale: np.float32, row: NDArray[np.float32]
) -> None:
    """Add independent uniform noise to a row; ``scale`` is its deviation."""
    state = seed(key, index, attempt, stream)
    bits = np.uint64(0)
    for j in range(row.shape[0]):
        if j % 8 == 0:
            bits = next_u64(state)
        row[j] += (np.float32(bits & _BYTE) - np.float32(127.5)) * _UNIT * scale
        bits >>= _SHIFT


@kernel
def _fill(
    key: np.uint64,
    user: NDArray[Any],
    period: NDArray[np.uint8],
    topic: NDArray[np.uint8],
    post: int,
    slots: NDArray[np.int64],
    periods: int,
    vectors: NDArray[np.float32],
    style: NDArray[np.float32],
    noise: NDArray[np.float32],
    rows: NDArray[Any],
) -> None:
    """Fill rows with the contents of slots: ``user * periods + period``, rising.

    ``post`` is a post of the first user or of an earlier user; ``vectors`` holds the vectors of styles, then of topics.
    """
    width, styles = rows.shape[1], style.shape[1]
    counts = np.zeros((periods, vectors.shape[0] - styles), np.int64)
    current = np.int64(-1)
    posts = user.shape[0]
    for r in range(slots.shape[0]):
        owner, at = slots[r] // periods, slots[r] % periods
        if owner != current:
            current = owner
            counts[:] = 0
            while post < posts and user[post] < owner:
                post += 1
            while post < posts and user[post] == owner:
                counts[period[post], topic[post]] += 1
                post += 1
        total = np.float32(counts[at].sum())
        for k in range(vectors.shape[0]):
            share = style[owner, k] if k < styles else np.float32(counts[at, k - styles]) / total
            if share != 0:
                for j in range(width):
                    rows[r, j] += share * vectors[k, j]
        _add_noise(key, owner, 0, _USER_NOISE, noise[0], rows[r])
        _add_noise(key, owner, at, _PERIOD_NOISE, noise[1], rows[r])
