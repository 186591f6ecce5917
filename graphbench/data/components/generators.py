"""Generators and labellers: the functions that make samples, and costly labels of them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from graphbench.catalog.cards import Card
from graphbench.core.errors import CardError
from graphbench.core.kernels import is_cached
from graphbench.core.validation import explain
from graphbench.data.arrays.samples import Array, Samples
from graphbench.data.arrays.seeds import stream_key

GenerateFunction = Callable[[Any, np.uint64, NDArray[np.int64], NDArray[np.int64]], Samples]


CheckFunction = Callable[[Any, Samples], list[str]]


HoldOutFunction = Callable[[Any, Samples], Mapping[str, tuple[str, list[str]]]]


SolverFunction = Callable[[Any, Samples, Samples], Mapping[str, Mapping[str, float]]]


RedrawFunction = Callable[[Any, int], Any]


CountFunction = Callable[[Samples], Mapping[str, int]]


StatisticsFunction = Callable[[Any, Samples], dict[str, NDArray[np.float64]]]


def _unchanged(parameters: Any, data_seed: int) -> Any:
    return parameters


@dataclass(frozen=True)
class CompileJob:
    """Kernels of a generator that can be compiled independently of the others.

    Attributes:
        kernel: ``<module>:<function>`` of the kernel that is compiled last.
        run: ``parameters -> None``, importable by name: compiles it to the disk cache by calling it on a small input.
    """

    kernel: str
    run: Callable[[Any], None]

    def is_done(self) -> bool:
        """Return whether the disk cache holds the compiled kernel."""
        module, _, name = self.kernel.partition(":")
        return is_cached(getattr(importlib.import_module(module), name))


@dataclass(frozen=True)
class Generator:
    """A registered generator: the only code of a dataset.

    Attributes:
        name: ``<domain>.<name>``, as cards write it.
        version: Raised whenever the same parameters would give other bytes.
        parameters: Pydantic model (unknown keys forbidden) that validates a split's parameters.
        generate: ``(parameters, key, indices, attempts) -> Samples``: a pure function; sample ``i`` of the result
            depends on ``(parameters, key, indices[i], attempts[i])`` alone.
        check: ``(parameters, samples) -> problems``: checks structure and labels against an independent implementation;
            the list is empty without errors. None if published labels are used unchecked.
        hold_outs: ``(parameters, samples) -> {name: (claim, problems)}``: by name of a held-out property, a text that
            says how the split is held out of training, and the samples that violate the claim. ``graphbench verify``
            has a row for each.
        statistics: ``(parameters, samples) -> {name: one float64 per graph}``: statistics on the card in addition to
            node and edge counts; nan for graphs without a value.
        shard_size: parameters -> graphs per unit of work (speed only; the bytes do not depend on it).
        stored_bytes: parameters -> bytes of a stored graph, for generators so slow that none is drawn to estimate it.
        unique: Whether every graph of a split must differ from all others.
        unique_inputs: Whether graphs of the same nodes and edges differ if an input does.
        scalars: Storage type of scalar inputs and outputs; float64 if labels depend on the last bit of inputs.
        masks_cells: Whether masks and classes may hold -1; cells with -1 are excluded from losses and scores.
        solvers: ``(parameters, training samples, samples) -> {solver: {metric: score}}``: reference solvers, e.g. an
            exact solver or a lookup table of the training data; their scores are reported with the models' scores.
        different: ``samples -> {name: number}``: number of distinct parts (e.g. paths) that make up the samples.
        redraw: ``(parameters, data seed) -> parameters`` of another draw than the canonical one; replaces seeds among
            the parameters (``graphbench.data.arrays.seeds.redrawn_seed``). The key of a split differs in any case.
        resample: The same for further samples of the canonical dataset: seeds of random choices that make the dataset,
            such as the facts held out of training, stay. None for generators without such choices: ``redraw``.
        compile_jobs: Independent parts of its kernels; a first use compiles them in parallel on the workers.
        limited: Name of the parameter that a limit replaces by itself where it is smaller, for datasets of one large
            graph per split: the parameter is the size of the graph. None if a limit is a number of samples.
        variants_divide: Whether the variants of a dataset are divisions of the same graphs, such as folds.
        drawn: Whether samples can be drawn; False for datasets that are read from files alone.
        environment: Further facts that the bits of samples depend on, e.g. the machine and versions of a simulator;
            None if the bits are the same everywhere. Samples have it among their facts as ``environment``, so that
            ``graphbench verify`` asks for equal bits only where the environment is the same.
    """

    name: str
    version: int
    parameters: type[BaseModel]
    generate: GenerateFunction
    check: CheckFunction | None
    statistics: StatisticsFunction
    shard_size: Callable[[Any], int]
    stored_bytes: Callable[[Any], int] | None = None
    unique: bool = True
    unique_inputs: bool = False
    scalars: type[np.floating[Any]] = np.float32
    masks_cells: bool = False
    solvers: SolverFunction | None = None
    different: CountFunction | None = None
    hold_outs: HoldOutFunction | None = None
    redraw: RedrawFunction = _unchanged
    resample: RedrawFunction | None = None
    compile_jobs: tuple[CompileJob, ...] = ()
    limited: str | None = None
    variants_divide: bool = False
    drawn: bool = True
    environment: Callable[[], Mapping[str, str]] | None = None

    def parse(self, card: Card, split: str) -> Any:
        """Return the validated parameters of one split, in the card's draw.

        Raises:
            CardError: If a parameter is unknown, missing or out of range (the message names it), or only the canonical
                draw exists.
        """
        try:
            parameters = self.parameters.model_validate(card.split(split).parameters)
        except ValidationError as error:
            raise CardError(f"{card.path} ({card.id}, split {split}): {explain(error, self.parameters)}") from error
        if not card.data_seed:
            return parameters
        redraw = self.resample if card.keeps_choices and self.resample is not None else self.redraw
        return redraw(parameters, card.data_seed)

    def fingerprint(self, card: Card) -> str:
        """Return digits that change whenever the samples of a card may change."""
        return card.fingerprint(self.version)

    def draw(self, card: Card, split: str, indices: NDArray[np.int64], attempts: NDArray[np.int64]) -> Samples:
        """Return samples of a split as :attr:`generate` gives them."""
        key = stream_key(card.id, card.version, split, card.data_seed)
        return self.generate(self.parse(card, split), key, indices, attempts)


LabelFunction = Callable[[Any, int, Samples], Mapping[str, Any]]


LabelManyFunction = Callable[[Any, Sequence[int], Samples], Sequence[Mapping[str, Any] | Exception]]


LabelCheck = Callable[[Samples, Mapping[str, Any]], list[str]]


Outcome = Mapping[str, int]


@dataclass(frozen=True)
class Recorded:
    """How a labeller splits its work: a costly outcome, which tables can hold, and the label that follows from it.

    Attributes:
        columns: Names of the numbers of an outcome.
        key: ``graph -> key``: identifies the content of a graph, for ``Samples`` of one graph.
        measure: ``(effort, number, graph) -> outcome``: the costly work. Numbers on which no label depends, e.g.
            processor time, may differ between runs.
        label: ``(effort, outcome) -> feature -> value``: a pure function.
        cpu_seconds: ``outcome -> CPU seconds`` that measuring it took; None if outcomes do not record it.
        problem: ``(effort, key, outcome) -> problem`` of a row of a table, as text; None if the outcome is possible.
    """

    columns: tuple[str, ...]
    key: Callable[[Samples], str]
    measure: Callable[[Any, int, Samples], Outcome]
    label: Callable[[Any, Outcome], Mapping[str, Any]]
    cpu_seconds: Callable[[Outcome], float] | None = None
    problem: Callable[[Any, str, Outcome], str | None] = lambda effort, key, outcome: None


@dataclass(frozen=True)
class Labeller:
    """A registered labeller, which computes costly labels that several tasks may share.

    Attributes:
        name: ``<domain>.<name>``, as cards write it.
        version: Raised whenever the same graph and effort would give another label.
        effort: Pydantic model (unknown keys forbidden) that validates the computational effort per graph.
        label: ``(effort, number, graph) -> feature -> value`` for ``Samples`` of one graph: a pure function; the number
            seeds its random numbers. At nodes and edges a value is an array with one row per node or stored edge, of
            ``scalar(d)`` with d columns; it is the same for both directions of an edge. A text is a string.
        check: ``(graph, values) -> problems``: checks the label against an independent implementation.
        failed: Feature, a mask of graphs, that marks graphs without a label: the labeller failed, or the label did not
            pass the check. All other values of a marked graph are -1, and texts are empty.
        statistics: ``labelled samples -> {name: one float64 per graph}``, nan for graphs without a label.
        baselines: ``graphs -> {predictor: objective value per graph, float64}`` of heuristics that need no training.
        shard_size: effort -> graphs per unit of work (speed only).
        compile_jobs: Independent parts of its kernels.
        recorded: How outcomes are recorded, for labels so costly that they are published; ``label`` is then not called.
        label_many: ``(effort, numbers, graphs) -> one label or exception per graph``, for solvers that take less time
            for many graphs together; every label or exception is the same that ``label`` gives or raises.
            If ``label_many`` raises an error that is not of this package, ``label`` is called for each graph.
        agreement: ``feature -> labels of graphs by all labellers of a task -> problems``: labels that contradict each
            other, e.g. answers of two solvers; checked when the labels of a task have been made.
    """

    name: str
    version: int
    effort: type[BaseModel]
    label: LabelFunction
    check: LabelCheck
    failed: str
    statistics: Callable[[Samples], Mapping[str, NDArray[np.float64]]]
    baselines: Callable[[Samples], Mapping[str, NDArray[np.float64]]]
    shard_size: Callable[[Any], int]
    compile_jobs: tuple[CompileJob, ...] = ()
    recorded: Recorded | None = None
    agreement: Callable[[Mapping[str, Array]], list[str]] | None = None
    label_many: LabelManyFunction | None = None
    stored_bytes: ClassVar[None] = None
    unique: ClassVar[bool] = False
    unique_inputs: ClassVar[bool] = False
    scalars: ClassVar[type[np.floating[Any]]] = np.float32
    masks_cells: ClassVar[bool] = True

    def parse(self, card: Card, split: str) -> Any:
        """Return the validated effort of a card in one split.

        Raises:
            CardError: If a key is unknown or out of range (the message names it).
        """
        try:
            spec = card.labels[self.name]
            return self.effort.model_validate({**spec.effort, **spec.splits.get(split, {})})
        except ValidationError as error:
            raise CardError(f"{card.path} ({card.id}, labels {self.name}): {explain(error, self.effort)}") from error
