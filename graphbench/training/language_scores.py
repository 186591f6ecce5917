"""Answers of a text model to the prompts of a split, and their scores."""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import torch

from graphbench.core.progress import Progress, progress_bar
from graphbench.evaluation.language import room_for
from graphbench.evaluation.texts import TextSamples, text_scores
from graphbench.models.language import TextGenerator, TextModel
from graphbench.training.scoring import autocast

if TYPE_CHECKING:
    from graphbench.data.dataset import GraphDataset
    from graphbench.evaluation.evaluator import Score

logger = logging.getLogger(__name__)

MOST_PROMPTS = 256  # answered at once
_KEPT_NUMBERS = 2**29  # in the keys and values of a batch
_PAIRS = 2**26  # pairs of characters of a batch of prompts
_TIMED_ALONE = 5
_TIMED_TOGETHER = 16


def score_texts(
    name: str,
    model: TextModel,
    dataset: GraphDataset,
    most: int,
    device: torch.device,
    precision: Literal["fp32", "bf16"] = "fp32",
    progress: bool | None = False,
) -> dict[str, Score]:
    """Return the score of a model's answers to a split, and of every problem size in it.

    A prompt that has more characters than the model knows positions, its reference included, is not asked: its answer
    counts as wrong.

    Args:
        name: Name of the split.
        model: The model, on ``device``; it is put back into the mode (training or evaluation) it was in.
        dataset: The split.
        most: Most prompts answered at once; long ones are fewer.
        device: Where to compute.
        precision: ``bf16`` runs the model under autocast.
        progress: Show a progress bar; None for terminals only.

    Returns:
        The split's name, and ``<name>_n<size>`` -> score.
    """
    samples = TextSamples.of(dataset)
    unread = set(too_long(model, samples))
    if unread:
        logger.warning(
            "%d of %d prompts of %s have more characters than the model has positions (%d), and count as wrong",
            len(unread), len(samples), name, model.span,
        )  # fmt: skip
    asked = [number for number in range(len(samples)) if number not in unread]
    was_training = model.training
    try:
        with progress_bar(len(asked), f"scoring {name}", "prompt", progress) as bar:
            found = _answers(model, samples.take(asked), most, device, precision, bar)
    finally:
        model.train(was_training)
    answers = dict(zip(asked, found, strict=True))
    return text_scores(dataset.card, name, samples, [answers.get(number, "") for number in range(len(samples))])


def too_long(model: TextModel, samples: TextSamples) -> list[int]:
    """Return the numbers of the samples that have more characters than the model knows positions."""
    if model.span is None:
        return []
    return [number for number, length in enumerate(_lengths(samples)) if length > model.span]


def text_latencies_ms(
    model: TextModel, dataset: GraphDataset, device: torch.device, precision: Literal["fp32", "bf16"]
) -> tuple[float, float]:
    """Return median milliseconds to answer one prompt alone, and milliseconds per prompt of up to 16 together.

    The prompts are the first ones of the split that are not too long for the model; there must be one.
    """
    samples = TextSamples.of(dataset)
    unread = set(too_long(model, samples))
    few = samples.take([number for number in range(len(samples)) if number not in unread][:_TIMED_TOGETHER])

    def seconds(numbers: range) -> float:
        started = time.perf_counter()
        _answers(model, few.take(numbers), _TIMED_TOGETHER, device, precision)
        return time.perf_counter() - started

    alone = [seconds(range(number, number + 1)) for number in range(min(_TIMED_ALONE, len(few)))]
    return 1e3 * statistics.median(alone), 1e3 * seconds(range(len(few))) / len(few)


def _answers(
    model: TextModel,
    samples: TextSamples,
    most: int,
    device: torch.device,
    precision: Literal["fp32", "bf16"],
    bar: Progress | None = None,
) -> list[str]:
    """Return the model's answer to every prompt, in the order of the samples."""
    complete, outputs = TextGenerator(model), [""] * len(samples)
    for batch in _batches(model, samples, most):
        room = room_for(max(len(samples.references[i]) for i in batch))
        with autocast(device, precision):
            found = complete([samples.prompts[i] for i in batch], room)
        for number, output in zip(batch, found, strict=True):
            outputs[number] = output
        if bar is not None:
            bar.update(len(batch))
    return outputs


def _batches(model: TextModel, samples: TextSamples, most: int) -> Iterator[list[int]]:
    """Yield batches of prompts of similar length whose references fit the model's positions behind the longest one."""
    config, batch, longest = model.config, list[int](), 0
    for number in sorted(range(len(samples)), key=lambda i: len(samples.prompts[i])):
        length = len(samples.prompts[number])
        longest = max(longest, len(samples.references[number]))
        count, total = len(batch) + 1, length + room_for(longest)
        full = count > most or count * length**2 > _PAIRS
        full |= 2 * config.layers * config.hidden * count * total > _KEPT_NUMBERS
        full |= model.span is not None and length + longest > model.span
        if full and batch:
            yield batch
            batch, longest = [], len(samples.references[number])
        batch.append(number)
    if batch:
        yield batch


def _lengths(samples: TextSamples) -> list[int]:
    return [len(p) + len(r) for p, r in zip(samples.prompts, samples.references, strict=True)]
