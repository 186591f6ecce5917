"""Names of runs in tables and figures; runs that differ in protocol or configuration have different names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graphbench.catalog.names import card
from graphbench.core.errors import UnknownDataset
from graphbench.records.aggregates import Aggregate
from graphbench.records.classes import started_from
from graphbench.records.record import MODEL_NAME


@dataclass(frozen=True, slots=True)
class Named:
    """The facts of some runs that their name may say.

    Attributes:
        dataset: Address of the dataset.
        model: Name of the model.
        protocol: The protocol of the records, if they name one.
        config_hash: Hash of the configuration, in eight hex digits.
        setup_hash: Hash of the configuration without the dataset, in eight hex digits.
        origin: ``<dataset>/<model>`` of the stored weights that the runs start from; None without, and for weights of
            folders.
        data_seeds: The draws of the data.
    """

    dataset: str
    model: str
    protocol: str | None
    config_hash: str
    setup_hash: str
    origin: str | None = None
    data_seeds: tuple[int, ...] = (0,)

    @classmethod
    def of(cls, runs: Aggregate) -> Named:
        """Return the facts of an aggregate; its records have one configuration."""
        first = runs.records[0]
        origin = stored_origin(started_from(first))
        return cls(runs.dataset, runs.model, runs.protocol, runs.config_hash, first.setup_hash, origin, runs.data_seeds)


class Labels:
    """The name of each of some runs: ``mpnn``, ``mpnn (multi_size)``, ``mpnn [a1b2c3d4]``, ``mpnn, data seed 1``.

    The protocol is in parentheses if a record names one. If runs share model and protocol, and start from different
    stored weights, their names say from which: ``mpnn (fine_tuned), from clrs/bfs``, where the weights are those of the
    same model. If they share this too, eight hex digits in brackets distinguish them: ``config_hash`` on one dataset,
    ``setup_hash`` across datasets. Runs that differ only in the draw of the data have its data seed behind the name,
    unless it is 0.
    """

    def __init__(self, results: Sequence[Aggregate | Named], *, across: bool = False) -> None:
        """Name the runs.

        Args:
            results: The runs of a table or figure.
            across: Whether runs that differ only in the dataset get the same name.
        """
        self._across = across
        self._origins: dict[tuple[str, ...], set[str | None]] = {}
        self._hashes: dict[tuple[str, ...], set[str]] = {}
        self._draws: dict[tuple[str, ...], set[tuple[int, ...]]] = {}
        for runs in map(_facts, results):
            self._draws.setdefault(_settings(runs), set()).add(runs.data_seeds)
            self._origins.setdefault(self._model(runs), set()).add(runs.origin)
            self._hashes.setdefault(self._group(runs), set()).add(self._hash(runs))
            self._hashes.setdefault(_setup_group(runs), set()).add(runs.config_hash)

    def __getitem__(self, results: Aggregate | Named) -> str:
        """Return the name of runs that were among ``results``."""
        runs = _facts(results)
        name = self._of_configuration(runs)
        if len(self._draws[_settings(runs)]) == 1 or runs.data_seeds == (0,):
            return name
        return f"{name}, data seed {', '.join(map(str, runs.data_seeds))}"

    def _of_configuration(self, runs: Named) -> str:
        name = named(runs.model, runs.protocol)
        if runs.origin is not None and len(self._origins[self._model(runs)]) > 1:
            name = f"{name}, from {runs.origin.removesuffix(f'/{runs.model}')}"
        if len(self._hashes[_setup_group(runs)]) > 1:
            return f"{name} [{runs.config_hash}]"
        return f"{name} [{self._hash(runs)}]" if len(self._hashes[self._group(runs)]) > 1 else name

    def _model(self, runs: Named) -> tuple[str, ...]:
        return (*(() if self._across else (runs.dataset,)), runs.model, runs.protocol or "")

    def _group(self, runs: Named) -> tuple[str, ...]:
        return (*self._model(runs), runs.origin or "")

    def _hash(self, runs: Named) -> str:
        return runs.setup_hash if self._across else runs.config_hash


def _facts(runs: Aggregate | Named) -> Named:
    return runs if isinstance(runs, Named) else Named.of(runs)


def _setup_group(runs: Named) -> tuple[str, ...]:
    """Return the key of a setup on a dataset; runs with the same key may differ in their data only."""
    return (runs.dataset, runs.model, runs.protocol or "", runs.setup_hash)


def _settings(runs: Named) -> tuple[str, ...]:
    """Return the key of a configuration on a dataset; runs with the same key differ in their draw only."""
    return (runs.dataset, runs.model, runs.protocol or "", runs.config_hash)


def stored_origin(source: str | None) -> str | None:
    """Return the source of weights if it is ``<dataset>/<model>`` with a known dataset; None for folders and files."""
    dataset, _, model = (source or "").rpartition("/")
    if not dataset or not MODEL_NAME.fullmatch(model):
        return None
    try:
        known = card(dataset)
    except UnknownDataset:
        return None
    return source if dataset in (known.id, known.address) else None


def named(model: str, protocol: str | None) -> str:
    """Return a model's name with its protocol, if there is one: ``mpnn (canonical)``."""
    return f"{model} ({protocol})" if protocol else model
