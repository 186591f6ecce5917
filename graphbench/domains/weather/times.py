"""Times of states: hours since the first day of WeatherBench 2, and their encoding as inputs of models."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

EPOCH = np.datetime64("1959-01-01T00", "h")
_YEAR_HOURS = 365.2425 * 24


def hours_since_epoch(times: ArrayLike) -> NDArray[np.int64]:
    """Return the hours from 1959-01-01 00 UTC to times, which are dates of NumPy; int64."""
    return (np.asarray(times, "datetime64[h]") - EPOCH).astype(np.int64)


def dates(hours: ArrayLike) -> NDArray[np.datetime64]:
    """Return the dates of hours since 1959-01-01 00 UTC; datetime64[h]."""
    return EPOCH + np.asarray(hours).astype(np.int64).astype("timedelta64[h]")


def months(hours: ArrayLike) -> NDArray[np.int64]:
    """Return the months of hours since 1959-01-01 00 UTC, 0 for January to 11; int64."""
    return dates(hours).astype("datetime64[M]").astype(np.int64) % 12


def clock(hours: ArrayLike) -> NDArray[np.float32]:
    """Return sine and cosine of the time of the year and of the time of the day (UTC); float32 ``[..., 4]``."""
    when = dates(hours)
    of_year = (when - when.astype("datetime64[Y]")).astype("timedelta64[h]").astype(np.float64) / _YEAR_HOURS
    of_day = np.asarray(hours).astype(np.int64) % 24 / 24
    angles = 2 * np.pi * np.stack([of_year, of_day], axis=-1)
    features = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    return features.reshape(*features.shape[:-2], 4).astype(np.float32)
