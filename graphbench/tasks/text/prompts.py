"""The prompts of a split as strings, and the order in which they are trained on."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import ConfigError
from graphbench.data.arrays.answers import STOP, final_answer
from graphbench.data.batches.sample_ids import SampleIds, ids_of, joined

if TYPE_CHECKING:
    from graphbench.data.batches.dataset import GraphDataset
    from graphbench.data.batches.text_batch import TextBatch

logger = logging.getLogger(__name__)

_READING_BATCH = 4096
_WINDOW = 64  # batches among which texts are sorted by length


@dataclass(frozen=True)
class Prompts:
    """The samples of a split as strings, in its order.

    Attributes:
        prompts: The texts that a model reads.
        references: The right answers.
        sizes: Problem sizes, the number of nodes.
        sample_ids: Split and numbers of the samples; None where the batches do not state them.
    """

    prompts: list[str]
    references: list[str]
    sizes: list[int]
    sample_ids: SampleIds | None = None

    @classmethod
    def of(cls, split: GraphDataset, prompt: str, reference: str) -> Prompts:
        """Return the samples of a split.

        Args:
            split: The split.
            prompt: Name of the input text.
            reference: Name of the output text.
        """
        prompts, references, sizes, ids = [], [], [], []
        for batch in split.batches(_READING_BATCH) if len(split) else ():
            prompts.extend(batch[prompt])
            references.extend(batch[reference])
            sizes.extend(np.diff(batch.ptr.numpy()).tolist())
            ids.append(ids_of(batch))
        return cls(prompts, references, sizes, next(iter(joined(ids)), None))

    def without_traces(self) -> Prompts:
        """Return the same prompts with the final answers alone as references."""
        return replace(self, references=[final_answer(reference) + STOP for reference in self.references])

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.prompts)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """int64 ``[S]``: characters of every prompt and its reference together."""
        pairs = zip(self.prompts, self.references, strict=True)
        return np.fromiter((len(p) + len(r) for p, r in pairs), np.int64, len(self))

    def longer_than(self, most: int) -> list[int]:
        """Return the numbers of the samples with more characters, references included."""
        return np.flatnonzero(self.lengths > most).tolist()

    def take(self, chosen: Iterable[int] | NDArray[np.int64]) -> TextBatch:
        """Return some of the samples as a batch."""
        from graphbench.data.batches.text_batch import TextBatch

        numbers = [int(i) for i in chosen]
        prompts, references = ([column[i] for i in numbers] for column in (self.prompts, self.references))
        ids = self.sample_ids
        ids = None if ids is None else SampleIds(ids.split, ids.numbers[numbers])
        return TextBatch(prompts, references, [self.sizes[i] for i in numbers], numbers=numbers, sample_ids=ids)


@dataclass(frozen=True)
class Corpus:
    """The prompts that fit a model's context, and the order in which they are trained on.

    Attributes:
        prompts: The prompts.
        chosen: int64 ``[S]``, the numbers of the prompts that fit.
        lengths: int64 ``[S]``, their characters, references included.
        left_out: Number of prompts that do not fit.
    """

    prompts: Prompts
    chosen: NDArray[np.int64]
    lengths: NDArray[np.int64]
    left_out: int

    @classmethod
    def of(cls, prompts: Prompts, context: int | None) -> Corpus:
        """Return the prompts that fit into a context with their references.

        Raises:
            ConfigError: If none fits.
        """
        lengths = prompts.lengths
        fitting = np.flatnonzero(lengths <= (lengths.max(initial=0) if context is None else context))
        left_out = len(prompts) - len(fitting)
        if not len(fitting):
            raise ConfigError(f"no prompt of {left_out} fits into context={context}; raise it or use smaller sizes")
        if left_out:
            logger.warning("%d of %d prompts are longer than context=%d and left out", left_out, len(prompts), context)
        return cls(prompts, fitting, lengths[fitting], left_out)

    def __len__(self) -> int:
        """Return the number of prompts that fit."""
        return len(self.chosen)

    def batches(self, size: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
        """Return the batches of one epoch, which are a function of (seed, epoch): texts of similar length together.

        All batches have the same size; the texts that are left over differ from epoch to epoch.
        """
        random = np.random.default_rng([seed, epoch])
        size = min(size, len(self))
        order = random.permutation(len(self))[: len(self) // size * size]
        windows = [order[start : start + _WINDOW * size] for start in range(0, len(order), _WINDOW * size)]
        by_length = [window[np.argsort(self.lengths[window], kind="stable")] for window in windows]
        batches = np.concatenate(by_length).reshape(-1, size)
        return [self.chosen[batches[i]] for i in random.permutation(len(batches))]

    def by_length(self, size: int) -> list[NDArray[np.int64]]:
        """Return batches of all prompts, the shortest first."""
        order = self.chosen[np.argsort(self.lengths, kind="stable")]
        return [order[start : start + size] for start in range(0, len(order), size)]
