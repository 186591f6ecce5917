"""Sources of a dataset's samples: its generator, published files, or a reader that the user provides.

``source="generated"`` uses the generator on the card. Any other source reads the files of a folder: a domain registers
readers under names (``official`` for the files that the authors of a benchmark published), and a function
``folder -> {split: Samples}`` is a reader, too. A source of files derives a card for the files. The card's
``generator`` is the source's, so that the store, the models and the evaluation treat the card like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import CORE_SPLITS, Card, SplitSpec
from graphbench.catalog.features import Feature, Stage
from graphbench.core.errors import CardError, GraphBenchError, StoreError
from graphbench.core.foreign import described
from graphbench.core.validation import StrictModel
from graphbench.data.arrays.graph_checks import graph_problem
from graphbench.data.arrays.hashing import samples_hash
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.checks import Row
from graphbench.data.components.generators import Generator
from graphbench.data.sources.downloads import Download
from graphbench.data.sources.zenodo import ZenodoFiles

Reader = Callable[[Path], Mapping[str, Samples]]
"""``folder -> {split: samples}``, with ``train``, ``val`` and ``test``; other splits are out-of-distribution splits."""


@dataclass(frozen=True)
class FileSource:
    """A kind of files with samples of a domain's datasets, and their reader.

    Attributes:
        name: ``<domain>.<name>``.
        card: ``(card, folder) -> card``: derives the card of the files from the card of the dataset. Its ``generator``
            is ``name``; the splits' parameters have ``folder``.
        generator: Returns the content of the files as samples; it has the same name.
        describe: ``card -> card``: sets the facts that hold for all files of the source, e.g. licence and protocol.
        report: ``(card, splits) -> rows`` of findings in the files; None if they are not checked.
        downloads: The registered downloads of the files, if there are any.
        part_of: Name, without the domain, of the source that users select, if that source chooses this source by card;
            empty for a source that users select.
    """

    name: str
    card: Callable[[Card, Path], Card]
    generator: Generator
    describe: Callable[[Card], Card]
    report: Callable[[Card, Sequence[str]], Iterator[Row]] | None = None
    downloads: tuple[Download, ...] | ZenodoFiles = ()
    part_of: str = ""


class FileParameters(StrictModel):
    """Parameters of a split of files.

    Attributes:
        folder: The folder of the files.
        content: SHA-256 of the samples, so that different files give different fingerprints.
    """

    folder: str
    content: str


def _no_samples(folder: Path) -> Mapping[str, Samples]:
    return {}


@dataclass(frozen=True)
class _FileGenerator(Generator):
    """Returns the samples of a reader."""

    read: Reader = _no_samples
    samples_of_hash: dict[str, Samples] = field(default_factory=dict)  # hash -> samples, of the files read last

    def draw(self, card: Card, split: str, indices: NDArray[np.int64], attempts: NDArray[np.int64]) -> Samples:
        """Return the chosen samples of a split.

        Raises:
            StoreError: If the files have changed since the card was derived.
        """
        parameters = self.parse(card, split)
        if parameters.content not in self.samples_of_hash:
            self.remember(read_files(self.name, self.read, Path(parameters.folder)))
        if parameters.content not in self.samples_of_hash:
            raise StoreError(f"the files in {parameters.folder} changed since they were read; load them again")
        return self.samples_of_hash[parameters.content].take(card.graph_schema, indices)

    def remember(self, splits: Mapping[str, Samples]) -> dict[str, str]:
        """Keep samples in memory, which replace all samples kept before; return split -> hash."""
        hashes = {split: samples_hash(samples.arrays()) for split, samples in splits.items()}
        self.samples_of_hash.clear()
        self.samples_of_hash.update({hashes[split]: samples for split, samples in splits.items()})
        return hashes


def file_source(
    name: str,
    read: Reader,
    *,
    also: tuple[Feature, ...] = (),
    downloads: tuple[Download, ...] = (),
    version: int = 1,
    masks_cells: bool = False,
) -> FileSource:
    """Return a source of files for a reader that returns all splits as samples.

    The samples must have the features of the dataset's generator, hints included. Features of the stage ``meta``,
    which no model reads, may be missing from all splits. Runs on the files have the name of the source without its
    domain as protocol, so scores on the files are kept apart from scores on generated data.

    Args:
        name: ``<domain>.<name>``.
        read: The reader.
        also: Further features of the stage ``meta`` that the reader returns, e.g. the names of files.
        downloads: The registered downloads of the files.
        version: Must be raised whenever the reader returns other samples for the same files.
        masks_cells: Whether masks and classes may hold -1, as those of the dataset's generator may.
    """
    protocol = name.partition(".")[2]

    def describe(card: Card) -> Card:
        return card.model_copy(update={"protocol": protocol, "measured": None, "overlapping": True})

    generator = _FileGenerator(
        name=name,
        version=version,
        parameters=FileParameters,
        read=read,
        masks_cells=masks_cells,
        **READ_FROM_FILES,
    )

    def card_of_files(card: Card, folder: Path) -> Card:
        path = folder.expanduser().resolve()
        splits = read_files(name, read, path)
        files_card = card.with_features((*_given_features(card, splits["train"]), *also))
        drawn = files_card.graph_features
        for split, samples in splits.items():
            problem = _wrong_values(drawn, samples) or graph_problem(card.graph_schema, samples)
            if problem:
                raise StoreError(f"the reader {name} gives wrong samples for {split} of {path}: {problem}")
        hashes = generator.remember(splits)
        specs = {
            split: SplitSpec(
                count=len(samples),
                shift=card.all_splits[split].shift if split in card.all_splits else None,
                parameters={"folder": str(path), "content": hashes[split]},
            )
            for split, samples in splits.items()
        }
        splits_of_files = {split: specs[split] for split in CORE_SPLITS}
        ood = {split: spec for split, spec in specs.items() if split not in splits_of_files}
        return describe(files_card).with_splits(splits_of_files, ood).model_copy(update={"generator": name})

    return FileSource(name, card_of_files, generator, describe, downloads=downloads)


def read_files(name: str, read: Reader, folder: Path) -> Mapping[str, Samples]:
    """Return the splits that a reader returns for a folder.

    Raises:
        StoreError: If the folder does not exist, the reader fails, or a split is missing or empty.
    """
    if not folder.is_dir():
        raise StoreError(f"{folder} is not a folder; give the one that holds the files of {name}")
    try:
        splits = dict(read(folder))
    except GraphBenchError:
        raise
    except Exception as error:
        raise StoreError(f"the reader {name} failed on {folder} ({described(error)})") from error
    wrong = [split for split, samples in splits.items() if not isinstance(samples, Samples) or not len(samples)]
    missing = [split for split in CORE_SPLITS if split not in splits]
    if wrong or missing:
        fault = f"no {missing[0]!r} split" if missing else f"no samples for the split {wrong[0]!r}"
        raise StoreError(
            f"the reader {name} gives {fault} for {folder}; it must return split -> Samples, at least one per split, "
            f"with {', '.join(CORE_SPLITS)}"
        )
    return splits


def _given_features(card: Card, samples: Samples) -> tuple[Feature, ...]:
    """Return the card's features without the features of the stage ``meta`` that the reader does not return."""
    labels = {f.name for f in card.label_features}
    return tuple(f for f in card.features if f.stage is not Stage.META or f.name in samples.values or f.name in labels)


def _wrong_values(features: Sequence[Feature], samples: Samples) -> str:
    """Return how the values of a reader differ from the features; an empty string if they agree."""
    expected, names = {f.name for f in features if f.stage is not Stage.HINT}, set(samples.values)
    if names == expected:
        return ""
    return (
        f"it has the values {', '.join(sorted(names)) or 'none'}; expected are {', '.join(sorted(expected)) or 'none'}"
    )


def _refuse_generation(parameters: Any, key: Any, indices: Any, attempts: Any) -> Samples:
    raise StoreError("samples of files are read, not generated")


def refuse_other_draws(parameters: Any, data_seed: int) -> NoReturn:
    """Refuse another draw than the canonical one, as files contain a single draw.

    Raises:
        CardError: Always.
    """
    raise CardError(
        f"data_seed={data_seed} is refused: the samples of files cannot be regenerated; leave data_seed out, or take "
        "generated data (leave source and folder out)"
    )


def has_one_draw(generator: Generator) -> bool:
    """Return whether the samples of a generator are read from files, so that nobody can draw them again."""
    return not generator.drawn or generator.redraw is refuse_other_draws


READ_FROM_FILES: dict[str, Any] = {
    "generate": _refuse_generation,
    "check": None,
    "statistics": lambda parameters, samples: {},
    "shard_size": lambda parameters: 1 << 62,  # one shard, read in this process
    "unique": False,
    "redraw": refuse_other_draws,
}
"""The settings of generators whose samples are read from files: nothing is drawn, and there is one draw."""
