"""Names of runs in tables and figures; runs that differ in protocol or configuration have different names."""

from __future__ import annotations

from collections.abc import Sequence

from graphbench.records.aggregates import Aggregate
from graphbench.records.classes import started_from


class Labels:
    """The name of each of some runs: ``mpnn``, ``mpnn (multi_size)``, ``mpnn [a1b2c3d4]``, ``mpnn, data seed 1``.

    The protocol is in parentheses if a record names one. If runs share model and protocol, and start from different
    weights, their names say from which: ``mpnn (fine_tuned), from clrs/bfs``, where the weights are those of the same
    model. If they share this too, eight hex digits in brackets distinguish them: ``config_hash`` on one dataset,
    ``setup_hash`` across datasets. Runs that differ only in the draw of the data have its data seed behind the name,
    unless it is 0.
    """

    def __init__(self, results: Sequence[Aggregate], *, across: bool = False) -> None:
        """Name the runs.

        Args:
            results: The runs of a table or figure.
            across: Whether runs that differ only in the dataset get the same name.
        """
        self._across = across
        self._origins: dict[tuple[str, ...], set[str | None]] = {}
        self._hashes: dict[tuple[str, ...], set[str]] = {}
        self._draws: dict[tuple[str, ...], set[tuple[int, ...]]] = {}
        for runs in results:
            self._draws.setdefault(_settings(runs), set()).add(runs.data_seeds)
            self._origins.setdefault(self._model(runs), set()).add(_origin(runs))
            self._hashes.setdefault(self._group(runs), set()).add(self._hash(runs))
            self._hashes.setdefault(_setup_group(runs), set()).add(runs.config_hash)

    def __getitem__(self, runs: Aggregate) -> str:
        """Return the name of runs that were among ``results``."""
        name = self._of_configuration(runs)
        if len(self._draws[_settings(runs)]) == 1 or runs.data_seeds == (0,):
            return name
        return f"{name}, data seed {', '.join(map(str, runs.data_seeds))}"

    def _of_configuration(self, runs: Aggregate) -> str:
        name = named(runs.model, runs.protocol)
        if (origin := _origin(runs)) is not None and len(self._origins[self._model(runs)]) > 1:
            name = f"{name}, from {origin.removesuffix(f'/{runs.model}')}"
        if len(self._hashes[_setup_group(runs)]) > 1:
            return f"{name} [{runs.config_hash}]"
        return f"{name} [{self._hash(runs)}]" if len(self._hashes[self._group(runs)]) > 1 else name

    def _model(self, runs: Aggregate) -> tuple[str, ...]:
        return (*(() if self._across else (runs.dataset,)), runs.model, runs.protocol or "")

    def _group(self, runs: Aggregate) -> tuple[str, ...]:
        return (*self._model(runs), _origin(runs) or "")

    def _hash(self, runs: Aggregate) -> str:
        return runs.records[0].setup_hash if self._across else runs.config_hash


def _origin(runs: Aggregate) -> str | None:
    """Return the weights that runs start from; runs of one configuration start from the same."""
    return started_from(runs.records[0])


def _setup_group(runs: Aggregate) -> tuple[str, ...]:
    """Return the key of a setup on a dataset; runs with the same key may differ in their data only."""
    return (runs.dataset, runs.model, runs.protocol or "", runs.records[0].setup_hash)


def _settings(runs: Aggregate) -> tuple[str, ...]:
    """Return the key of a configuration on a dataset; runs with the same key differ in their draw only."""
    return (runs.dataset, runs.model, runs.protocol or "", runs.config_hash)


def named(model: str, protocol: str | None) -> str:
    """Return a model's name with its protocol, if there is one: ``mpnn (canonical)``."""
    return f"{model} ({protocol})" if protocol else model
