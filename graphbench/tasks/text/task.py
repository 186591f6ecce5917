"""Prompts and answers: a model reads a text and writes one (CLRS-Text)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from graphbench.catalog.features import Feature, Kind, Location
from graphbench.core.errors import CardError, EvaluationError
from graphbench.core.validation import StrictModel
from graphbench.evaluation.evaluator import BaseEvaluator
from graphbench.tasks.base import OptionsType, Task
from graphbench.tasks.files import OF_WORDS, are_words, read_texts, require_lines, write_texts
from graphbench.tasks.text.evaluator import TextEvaluator
from graphbench.tasks.text.prompts import Corpus, Prompts

if TYPE_CHECKING:
    from torch import Tensor

    from graphbench.catalog.cards import Card
    from graphbench.data.arrays.samples import Samples
    from graphbench.data.batches.dataset import GraphDataset
    from graphbench.loader import Splits

logger = logging.getLogger(__name__)


class TextTrainOptions(StrictModel):
    """The options of training on texts, ``training.task`` of a configuration.

    Attributes:
        answers: What a model learns to write: ``whole`` references, which have a trace of the algorithm before the
            final answer, or the ``final`` answers alone. The score depends on the final answer in both cases.
    """

    answers: Literal["whole", "final"] = "whole"


class TextTask(Task):
    """Write the answer to a prompt.

    Models are selected by the loss on the validation split: the share of right answers would cost thousands of steps
    of generation at every validation.
    """

    type: ClassVar[str] = "text"
    train_options_type: ClassVar[OptionsType] = TextTrainOptions
    train_options: TextTrainOptions
    endings: ClassVar[tuple[str, ...]] = OF_WORDS
    samples: ClassVar[str] = "prompts"
    several_processes: ClassVar[bool] = False
    validation_seed: ClassVar[int] = 20_240_606
    timing: ClassVar[tuple[int, int, int]] = (5, 16, 1)

    def __init__(self, card: Card, train_options: Mapping[str, Any] | None = None) -> None:
        super().__init__(card, train_options)
        self.prompt, self.reference = self._text(card.inputs), self._text(card.outputs)
        self.context: int | None = None
        self._corpora: dict[str, Corpus] = {}

    def check_card(self) -> None:
        """Refuse a card that has not a text in and a text out."""
        super().check_card()
        for features in (self.card.inputs, self.card.outputs):
            self._text(features)

    def _text(self, features: Iterable[Feature]) -> str:
        """Return the name of the first text among features of graphs."""
        for feature in features:
            if feature.kind is Kind.TEXT and feature.location is Location.GRAPH:
                return feature.name
        raise CardError(
            f"{self.card.path} ({self.card.address}): a text task needs a text of the graph as input and as output"
        )

    def configure(self, model: Any) -> None:
        """Take the length of texts from the configuration of the model that is going to be trained."""
        self.context = getattr(model, "context", None)

    @property
    def size_name(self) -> str:
        """The noun for the size of a sample."""
        return "size"

    @property
    def size_axis(self) -> tuple[str, Any] | None:
        """The problem size, and the sizes that training has."""
        return "problem size", self.card.split("train").parameters.get("sizes")

    def sample_size(self, split: str) -> float | None:
        """Return None: the prompts of a split have several sizes."""
        return None

    # ------------------------------------------------------------------------------------------------ batches

    def _corpus(self, split: GraphDataset) -> Corpus:
        if split.split not in self._corpora:
            prompts = Prompts.of(split, self.prompt, self.reference)
            learned = prompts.without_traces() if self.train_options.answers == "final" else prompts
            self._corpora[split.split] = Corpus.of(learned, self.context)
        return self._corpora[split.split]

    def per_update(self, train: GraphDataset, size: int) -> int:
        """Return how many prompts one update trains on."""
        return min(size, len(self._corpus(train)))

    def batches(
        self, train: GraphDataset, size: int, *, seed: int, start: int = 0, share: tuple[int, int] = (0, 1)
    ) -> Iterator[Any]:
        """Yield training batches without end: texts of similar length together."""
        corpus, (rank, parts) = self._corpus(train), share
        epoch, first = divmod(start, len(corpus) // min(size, len(corpus)))
        while True:
            for chosen in corpus.batches(size, seed, epoch)[first:]:
                numbers = chosen[rank::parts]
                yield corpus.prompts.take(numbers) if len(numbers) else None
            epoch, first = epoch + 1, 0

    def validation_batches(self, split: GraphDataset, size: int) -> Iterable[Any]:
        """Yield all prompts that fit the model's context, the shortest first."""
        corpus = self._corpus(split)
        for chosen in corpus.by_length(size):
            yield corpus.prompts.take(chosen)

    def scoring_batches(self, split: GraphDataset, size: int, model: Any = None) -> Iterable[Any]:
        """Yield all prompts, grouped by similar length, and warn of prompts that the model cannot read."""
        prompts = Prompts.of(split, self.prompt, self.reference)
        unread = 0 if model is None else len(self._unread(prompts, model))
        if unread:
            logger.warning(
                "%d of %d prompts of %s have more characters than the model has positions (%d), and count as wrong",
                unread, len(prompts), split.split, model.span,
            )  # fmt: skip
        order = sorted(range(len(prompts)), key=lambda i: len(prompts.prompts[i]))
        for start in range(0, len(order), size):
            yield prompts.take(order[start : start + size])

    def timed(self, split: GraphDataset, model: Any) -> GraphDataset:
        """Return the prompts of a split that the model can read."""
        unread = set(self._unread(Prompts.of(split, self.prompt, self.reference), model))
        return split[[i for i in range(len(split)) if i not in unread]] if unread else split

    def _unread(self, prompts: Prompts, model: Any) -> list[int]:
        """Return the numbers of the prompts that have more characters than the model has positions."""
        span = getattr(model, "span", None)
        return [] if span is None else prompts.longer_than(span)

    def normalisation_batches(self, train: Any) -> Iterable[Any]:
        """Return nothing: these models take no statistics from training data."""
        return ()

    def normalisation_batch(self, train: Any) -> Any:
        """Return nothing: these models take no statistics from training data."""
        return None

    def file_batches(self, split: GraphDataset, size: int) -> Iterable[Any]:
        """Yield all prompts in the order of the split."""
        prompts = Prompts.of(split, self.prompt, self.reference)
        for start in range(0, len(prompts), size):
            yield prompts.take(range(start, min(start + size, len(prompts))))

    # ------------------------------------------------------------------------------------------------ training

    @property
    def selection(self) -> tuple[str, bool]:
        """The loss on the validation split."""
        return "loss", False

    def losses(self, outputs: Any, batch: Any) -> dict[str, Tensor]:
        """Return the mean cross-entropy of the references' characters, in nats."""
        from graphbench.models.losses import text_losses

        return text_losses(outputs, batch, self.card.features)

    def loss_weights(self, batch: Any) -> dict[str, Any]:
        """Return the number of characters that are scored."""
        from graphbench.models.losses import text_loss_weights

        return text_loss_weights(batch, self.card.features)

    # ------------------------------------------------------------------------------------------------ scores

    def predictions(self, outputs: list[str], batch: Any) -> list[str]:
        """Return the answers as the model wrote them."""
        return outputs

    def evaluator(self, *, scores: str | None = None, expected_graphs: int | None = None) -> BaseEvaluator:
        """Return an evaluator of answers, which scores every problem size besides."""
        metrics = self.card.metrics
        options: dict[str, Any] = {"scores": scores, "expected_graphs": expected_graphs}
        return TextEvaluator(self.card.outputs[0], metrics.primary, metrics.also, **options)

    def floors(self, train: Samples, samples: Samples) -> dict[str, dict[str, float]]:
        """Return the score of the most frequent answer of the training references."""
        from graphbench.evaluation.trivial import trivial_scores

        output = self.card.outputs[0]
        train_truth, truth = (part.values[output.name].strings() for part in (train, samples))
        return trivial_scores(output, train_truth, truth, None, (self.card.metrics.primary, *self.card.metrics.also))

    def notes(self, model: Any, data: Splits, settings: Any, scored: Sequence[str]) -> list[str]:
        """Return which prompts were too long for the model."""
        notes = []
        left_out = self._corpus(data[settings.train_split]).left_out
        if left_out:
            notes.append(f"{left_out:,} training prompts are longer than the context, and left out")
        if getattr(model, "span", None) is not None:
            unread = {
                name: len(self._unread(Prompts.of(data[name], self.prompt, self.reference), model)) for name in scored
            }
            words = [f"{count:,} of {name}" for name, count in unread.items() if count]
            notes += [f"prompts longer than the model's positions, counted as wrong: {', '.join(words)}"] * bool(words)
        return notes

    # ------------------------------------------------------------------------------------------------ files

    def describe_rows(self) -> str:
        """Return a description of a line."""
        return "one answer per line"

    def read_predictions(self, path: Path, split: GraphDataset, scores: str | None = None) -> Iterator[tuple[Any, Any]]:
        """Yield (prompts, answers) from a file with one answer per line."""
        if not are_words(path):
            raise EvaluationError(f"{path} has no texts; write one answer per line into a .jsonl or .txt file")
        texts, prompts = read_texts(path), Prompts.of(split, self.prompt, self.reference)
        require_lines(path, len(texts), len(prompts), f"{self.card.address} {split.split}", "prompt")
        yield prompts.take(range(len(prompts))), texts

    def write_predictions(self, path: Path, predictions: Iterable[list[str]]) -> Path:
        """Write one answer per line to a ``.jsonl`` file."""
        return write_texts(path, [text for batch in predictions for text in batch])
