"""Scores printed in papers, read from ``baselines/published/*.yaml``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationError, model_validator

from graphbench.catalog.cards import Card
from graphbench.catalog.resources import NOT_MODELS, DataFolder, data_files, data_folders, read_yaml
from graphbench.core.errors import ResultError
from graphbench.core.plugins import blaming
from graphbench.core.validation import StrictModel


class _Strict(StrictModel):
    model_config = ConfigDict(allow_inf_nan=False)


class PublishedScore(_Strict):
    """One number of a paper's table.

    Attributes:
        dataset: Dataset id here, e.g. ``algoreas/mst_easy``.
        split: Split it was measured on.
        model: Model name in lower case, e.g. ``gin``.
        metric: Metric name here, e.g. ``f1``.
        value: The number; None if the paper prints a gap (see ``note``).
        std: The number printed after ±, a standard deviation over seeds unless the table's note says otherwise; None if
            nothing is.
        seeds: Number of seeds behind it; None if not stated.
        study: ``main`` for the tables of results, ``ood`` for a table over out-of-distribution splits.
        paper: Title of the paper.
        version: Version of the paper that the number was read in; empty where the file does not say.
        table: Number of the table.
        protocol: Which data was trained on, where a benchmark has several ways, e.g. ``canonical``.
        note: A remark on the number.
        for_all_models: Whether the number is shown with the runs of every model, as scores of people are, and not only
            with the runs of its model.
        not_comparable: Why scores of this package measure something else, e.g. other labels; empty if they do not.
    """

    dataset: str
    split: str
    model: str
    metric: str
    value: float | None
    std: float | None = Field(default=None, ge=0)
    seeds: int | None = Field(default=None, ge=1)
    study: Literal["main", "ood"] = "main"
    paper: str
    version: str = ""
    table: int | None = None
    protocol: str | None = None
    note: str = ""
    for_all_models: bool = False
    not_comparable: str = ""

    @property
    def reference(self) -> str:
        """The paper and table it is printed in."""
        return self.paper.split(":")[0] + (f", Table {self.table}" if self.table is not None else "")


class _Table(_Strict):
    """A table of a file: cells ``[mean, std]`` of one ``split``, or one value for each of several ``splits``.

    ``not_comparable`` gives for datasets, by name or glob, the reason why scores of this package measure something
    else.
    """

    table: int | None = None
    study: Literal["main", "ood"] = "main"
    metric: str
    seeds: int | None = None
    split: str | None = None
    splits: tuple[str, ...] = ()
    protocol: str | None = None
    note: str = ""
    for_all_models: bool = False
    not_comparable: dict[str, str] = Field(default_factory=dict)
    scores: dict[str, dict[str, tuple[float | None, ...]]]

    @model_validator(mode="after")
    def _check(self) -> _Table:
        if (self.split is None) == (not self.splits):
            raise ValueError("give either 'split' (cells [mean, std]) or 'splits' (one value each)")
        width = 2 if self.split is not None else len(self.splits)
        for dataset, models in self.scores.items():
            for model, cells in models.items():
                if len(cells) != width:
                    raise ValueError(f"{dataset}.{model} has {len(cells)} cells, expected {width}")
        unused = [p for p in self.not_comparable if not any(fnmatchcase(name, p) for name in self.scores)]
        if unused:
            raise ValueError(f"not_comparable names {unused[0]!r}, which is none of the datasets of the table")
        return self

    def why_not_comparable(self, dataset: str) -> str:
        """Return why the scores of a dataset are not comparable; empty if they are."""
        return next((why for pattern, why in self.not_comparable.items() if fnmatchcase(dataset, pattern)), "")


class Average(_Strict):
    """An average over a collection that is printed without the scores behind it."""

    model: str
    value: float
    source: str


class Collection(_Strict):
    """Datasets that papers report together.

    Attributes:
        title: Its name for readers.
        kind: ``classes`` for averages over classes of datasets; ``matrix`` for one table per model, training datasets
            by out-of-distribution splits.
        classes: Name of a class -> group of its datasets.
        averages: Averages over the whole collection from other papers.
    """

    title: str
    kind: Literal["classes", "matrix"] = "classes"
    classes: dict[str, str] = Field(default_factory=dict)
    averages: tuple[Average, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Collection:
        if self.kind == "matrix" and (self.classes or self.averages):
            raise ValueError("a matrix has neither 'classes' nor 'averages'; leave them out or write kind: classes")
        return self


class _File(_Strict):
    """A file of published scores; ``version`` says which version of the paper they were read in."""

    paper: str
    version: str = ""
    domain: str
    tables: tuple[_Table, ...]
    collections: dict[str, Collection] = Field(default_factory=dict)


def read_published(path: Path) -> tuple[PublishedScore, ...]:
    """Return the scores of one file.

    Raises:
        ResultError: If the file does not follow the format; the message names file and key.
    """
    return tuple(_file_scores(_read_file(path)))


def _read_file(path: Path) -> _File:
    raw: Any = read_yaml(path)
    try:
        return _File.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "file"
        raise ResultError(f"{path}: {where}: {first['msg']}") from error


def _file_scores(content: _File) -> Iterator[PublishedScore]:
    for table in content.tables:
        yield from _table_scores(content, table)


def _table_scores(content: _File, table: _Table) -> Iterator[PublishedScore]:
    shared = table.model_dump(exclude={"split", "splits", "scores", "not_comparable"})
    for dataset, models in table.scores.items():
        for model, cells in models.items():
            values = {table.split: cells} if table.split is not None else {}
            values |= {split: (cell, None) for split, cell in zip(table.splits, cells, strict=bool(table.splits))}
            for split, (value, std) in values.items():
                fields = {"split": split, "model": model, "value": value, "std": std}
                fields |= {"paper": content.paper, "version": content.version}
                fields |= {"not_comparable": table.why_not_comparable(dataset)}
                yield PublishedScore(dataset=f"{content.domain}/{dataset}", **fields, **shared)


@lru_cache(maxsize=2)
def _contents(
    folders: tuple[DataFolder, ...],
) -> tuple[Mapping[str, list[PublishedScore]], Mapping[str, Collection]]:
    """Return dataset -> scores and group -> collection of all files; the files of a broken plug-in are left out."""
    scores: dict[str, list[PublishedScore]] = {}
    collections: dict[str, Collection] = {}
    for folder in folders:
        with blaming(folder.owner):
            files = [_read_file(path) for path in sorted((folder.path / "published").glob("*.yaml"))]
            for file in files:
                collections |= file.collections
                for score in _file_scores(file):
                    scores.setdefault(score.dataset, []).append(score)
    return scores, collections


def collections() -> Mapping[str, Collection]:
    """Return group (or other selector of datasets) -> collection of all files of published scores."""
    return _contents(data_folders("baselines"))[1]


def published(dataset_id: str) -> list[PublishedScore]:
    """Return all published scores of a dataset, in the order of their tables; empty if there are none.

    Args:
        dataset_id: Full id, e.g. ``algoreas/mst_easy``.
    """
    return list(_contents(data_folders("baselines"))[0].get(dataset_id, ()))


def published_score(
    dataset_id: str,
    split: str,
    model: str,
    metric: str,
    study: Literal["main", "ood"] = "main",
    protocol: str | None = None,
) -> PublishedScore | None:
    """Return the published score of one model on one split under one protocol, or None.

    Args:
        dataset_id: Full id.
        split: Split name.
        model: Model name in lower case.
        metric: Metric name.
        study: Preferred table if several print the same split; the other one is used if this one does not.
        protocol: Protocol of the run to compare with; None for tables without a protocol.
    """
    wanted = (split, model, metric, protocol)
    fitting = [s for s in published(dataset_id) if (s.split, s.model, s.metric, s.protocol) == wanted]
    return next((s for s in fitting if s.study == study), fitting[0] if fitting else None)


def published_budget(card: Card) -> int | None:
    """Return the training samples of the smallest budget behind printed scores of a dataset; None without any."""
    return min(_printed_budgets(card), default=None)


def largest_printed_budget(card: Card) -> int | None:
    """Return the training samples of the largest budget behind printed scores of a dataset; None without any."""
    return max(_printed_budgets(card), default=None)


def _printed_budgets(card: Card) -> tuple[int, ...]:
    """Return steps times samples per step of the configurations of the domain's printed models.

    A dataset without printed scores has none. Some papers print scores of models on some datasets of the domain alone.
    """
    return _budgets(data_folders("baselines"), card.domain, card.family) if published(card.address) else ()


@lru_cache(maxsize=512)
def _budgets(folders: tuple[DataFolder, ...], domain: str, family: str) -> tuple[int, ...]:
    """Return the budgets of printed models, read once as long as the folders of the configurations stay as they are."""
    printed, budgets = printed_models(domain), []
    for name, path in data_files("baselines", domain, NOT_MODELS).items():
        if name.split("/")[1] in printed:
            file = read_yaml(path)
            training = {**file.get("training", {}), **file.get("tasks", {}).get(family, {}).get("training", {})}
            if "steps" in training and "batch_size" in training:
                budgets.append(int(training["steps"]) * int(training["batch_size"]))
    return tuple(budgets)


def printed_models(domain: str) -> frozenset[str]:
    """Return the models with a printed score on any dataset of a domain."""
    scores, _ = _contents(data_folders("baselines"))
    return frozenset(s.model for id_, listed in scores.items() if id_.startswith(f"{domain}/") for s in listed)
