"""Generation: the answer to a sample is a whole new structure, which the verifier of a domain reads and scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphbench.core.validation import StrictModel
from graphbench.data.arrays.texts import Texts
from graphbench.data.components.domain import find
from graphbench.data.components.folder_splits import NAME
from graphbench.data.components.verifiers import Verifier
from graphbench.evaluation.array_files import LEAST_ARRAY_BYTES, most_unpacked, read_arrays
from graphbench.evaluation.evaluator import BaseEvaluator
from graphbench.tasks.base import OptionsType, Task
from graphbench.tasks.files import are_words, read_texts, require_lines, write_arrays
from graphbench.tasks.generate.evaluator import GeneratedEvaluator, answers_of
from graphbench.tasks.generate.files import FlatAnswers, numbered_files

if TYPE_CHECKING:
    from torch import Tensor

    from graphbench.data.arrays.samples import Samples
    from graphbench.data.batches.dataset import GraphDataset

_READING_BATCH = 4096
_MEAN_ANSWER_BYTES = 1 << 22  # bytes of the arrays of an answer, on average over the samples: some ten thousand nodes


class GenerateOptions(StrictModel):
    """The options of a ``generate`` task on a card.

    Attributes:
        verifier: The domain's verifier of structures, as ``<domain>.<name>``.
    """

    verifier: str


class GenerateTask(Task):
    """Generate a structure for every sample: ``task: {type: generate, options: {verifier: chip_design.circuits}}``.

    The outputs of the card are training targets for models, such as reference structures; scores come from the verifier
    alone. Structures differ too much for the task to know a loss: a model returns a mapping for a batch, with
    its loss as ``loss`` (a scalar, or one value per sample) while it is trained, and its answers as ``answers``
    (in any form that the verifier takes) when it is scored.
    """

    type: ClassVar[str] = "generate"
    options_type: ClassVar[OptionsType] = GenerateOptions
    options: GenerateOptions
    samples: ClassVar[str] = "samples"
    floor_predictors: ClassVar[str] = "simple constructions"

    def check_card(self) -> None:
        """Refuse a card whose verifier does not exist."""
        super().check_card()
        find("verifier", self.options.verifier)

    @property
    def verifier(self) -> Verifier:
        """The verifier that the card names."""
        return find("verifier", self.options.verifier)

    @property
    def metric_beside_time(self) -> str | None:
        """The primary metric: a model that tries more candidates finds better ones."""
        return self.card.metrics.primary

    # ------------------------------------------------------------------------------------------------ training

    @property
    def selection(self) -> tuple[str, bool]:
        """Models are selected by their loss: answers take a model many steps each."""
        return "loss", False

    def losses(self, outputs: Mapping[str, Any], batch: Any) -> dict[str, Tensor]:
        """Return the loss that the model gives, averaged over the samples of the batch."""
        return {"loss": outputs["loss"].mean()}

    def loss_weights(self, batch: Any) -> dict[str, Any]:
        """Return the number of samples."""
        return {"loss": int(batch.num_graphs)}

    # ------------------------------------------------------------------------------------------------ scores

    def predictions(self, outputs: Mapping[str, Any], batch: Any) -> Any:
        """Return the answers of a model."""
        return outputs["answers"]

    def evaluator(self, *, scores: str | None = None, expected_graphs: int | None = None) -> BaseEvaluator:
        """Return an evaluator that lets the verifier score answers."""
        return GeneratedEvaluator(self.card, scores=scores, expected_graphs=expected_graphs)

    def floors(self, train: Samples, samples: Samples) -> dict[str, dict[str, float]]:
        """Return the scores of simple constructions that need no training."""
        labelled = self._labelled(samples)
        return self._scores_of(labelled, self.verifier.floors(labelled))

    def solvers(self, samples: Samples) -> dict[str, dict[str, float]]:
        """Return the scores of reference programs."""
        labelled = self._labelled(samples)
        return self._scores_of(labelled, self.verifier.solvers(labelled))

    def parts(self, samples: Samples) -> dict[str, NDArray[np.int64]]:
        """Return the parts that the verifier names, such as sizes -> the numbers of their samples."""
        named = np.array(self.verifier.verify(self._fields_of(samples), [None] * len(samples)).groups)
        return {str(name): np.flatnonzero(named == name) for name in np.unique(named)}

    def _labelled(self, samples: Samples) -> Samples:
        from graphbench.data.store.labels import is_unlabelled

        if not self.card.labellers:
            return samples
        return samples.take(self.card.stored_schema, np.flatnonzero(~is_unlabelled(self.card, samples.values)))

    def _scores_of(self, samples: Samples, answers: Mapping[str, Any]) -> dict[str, dict[str, float]]:
        fields = self._fields_of(samples)
        return {name: self.evaluator().evaluate(fields, predicted).to_dict() for name, predicted in answers.items()}

    def _fields_of(self, samples: Samples) -> dict[str, Any]:
        values = {name: samples.values[name] for name in self.verifier.fields}
        return {name: column.strings() if hasattr(column, "strings") else column for name, column in values.items()}

    # ------------------------------------------------------------------------------------------------ files

    def find_predictions(self, folder: Path, split: str) -> Path | None:
        """Return the folder of a split's answers, one file each, or the file of all of them."""
        subfolder = folder / split
        return subfolder if subfolder.is_dir() else super().find_predictions(folder, split)

    def describe_files(self, split: str) -> str:
        """Return how the files of a split's answers are named, for messages."""
        ending = self.verifier.endings[0]
        return (
            f"a folder of {self.verifier.answers} has one file per sample, 0{ending}, 1{ending}, ... (endings: "
            f"{', '.join(self.verifier.endings)}); several splits have one such folder each, or a file of all "
            f"{self.verifier.answers}, e.g. {split}.npz"
        )

    def is_one_split(self, path: Path) -> bool:
        """Return whether a path is a file, or a folder with one file per answer."""
        return super().is_one_split(path) or any(file.suffix in self.verifier.endings for file in path.iterdir())

    def read_predictions(self, path: Path, split: GraphDataset, scores: str | None = None) -> Iterator[tuple[Any, Any]]:
        """Yield (batch, answers) from a folder, a file of arrays or a file of texts.

        - A folder has one file per sample, named after its number in the split from 0 on; a sample without a file has
          no answer.
        - A ``.npz`` file has the flat arrays of all graphs (``graphbench.data.components.verifiers``).
        - A line of a ``.jsonl`` or ``.txt`` file is the content of the file of an answer; ``null`` or an empty line is
          no answer.
        """
        answers: Any
        if path.is_dir():
            names = split.flat.values.get(NAME.name)
            answers = numbered_files(
                path, len(split), self.verifier, names.strings() if isinstance(names, Texts) else ()
            )
        elif are_words(path):
            lines = read_texts(path, null="")
            require_lines(path, len(lines), len(split), f"{self.card.address} {split.split}", "sample")
            answers = [line.encode() or None for line in lines]
        else:
            answers = FlatAnswers(read_arrays(path, _most_bytes(path, len(split))), path, len(split), self.verifier)
        first = 0
        for batch in split.batches(_READING_BATCH):
            yield batch, answers[first : first + batch.num_graphs]
            first += batch.num_graphs

    def write_predictions(self, path: Path, predictions: Iterable[Any]) -> Path:
        """Write the answers to all samples to a ``.npz`` file, as flat arrays; wrong answers have no node.

        Answers are given in the same forms as to the evaluator.
        """
        parts = [self.verifier.arrays(answers_of(answers, self.verifier)) for answers in predictions]
        joined = {name: np.concatenate([np.asarray(part[name]) for part in parts], axis=-1) for name in parts[0]}
        return write_arrays(path, joined)


def _most_bytes(path: Path, samples: int) -> int:
    """Return the most bytes that the flat arrays of answers in a file can plausibly have."""
    return min(LEAST_ARRAY_BYTES + samples * _MEAN_ANSWER_BYTES, most_unpacked(path))
