"""Training of text models: batches of prompts with their references, and the loop over them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from graphbench.core.errors import ConfigError
from graphbench.evaluation.texts import TextSamples
from graphbench.loader import Splits
from graphbench.models.language import PAD, TextModel, encode
from graphbench.models.language_config import TextModelConfig
from graphbench.training.config import RunConfig, fingerprint
from graphbench.training.distributed import World
from graphbench.training.language_scores import too_long
from graphbench.training.loop import TrainingLoop
from graphbench.training.scoring import autocast

logger = logging.getLogger(__name__)

_WINDOW = 64  # batches among which texts are sorted by length
_NOT_SCORED = -100
_VALIDATION_SEED = 20_240_606  # random positions are the same at every validation


@dataclass(frozen=True)
class Corpus:
    """Prompts with their references, as tokens.

    Attributes:
        tokens: uint8 [characters]: all texts, one after the other.
        ptr: int64 [S + 1]: text i is ``tokens[ptr[i]:ptr[i + 1]]``.
        prompts: int64 [S]: length of each text's prompt.
        left_out: Number of texts that are not held, being longer than the context.
    """

    tokens: NDArray[np.uint8]
    ptr: NDArray[np.int64]
    prompts: NDArray[np.int64]
    left_out: int = 0

    @classmethod
    def of(cls, samples: TextSamples, context: int) -> Corpus:
        """Return the corpus of all prompts that fit into a context with their references.

        Raises:
            ConfigError: If none fits.
            UnreadableText: If a text has a character that is no token.
        """
        pairs = list(zip(samples.prompts, samples.references, strict=True))
        fitting = [(prompt, reference) for prompt, reference in pairs if len(prompt) + len(reference) <= context]
        left_out = len(pairs) - len(fitting)
        if not fitting:
            raise ConfigError(f"no prompt of {left_out} fits into context={context}; raise it or use smaller sizes")
        if left_out:
            logger.warning("%d of %d prompts are longer than context=%d and left out", left_out, len(pairs), context)
        texts = [encode(prompt + reference) for prompt, reference in fitting]
        ptr = np.array([0, *accumulate(map(len, texts))])
        return cls(np.concatenate(texts), ptr, np.array([len(prompt) for prompt, _ in fitting]), left_out)

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.prompts)

    def batches(self, size: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
        """Return the batches of one epoch, which are a function of (seed, epoch): texts of similar length together.

        All batches have the same size; the texts that are left over are other ones in every epoch.
        """
        random = np.random.default_rng([seed, epoch])
        size = min(size, len(self))
        order, lengths = random.permutation(len(self))[: len(self) // size * size], np.diff(self.ptr)
        windows = [order[start : start + _WINDOW * size] for start in range(0, len(order), _WINDOW * size)]
        by_length = np.concatenate([window[np.argsort(lengths[window], kind="stable")] for window in windows])
        batches = by_length.reshape(-1, size)
        return [batches[i] for i in random.permutation(len(batches))]

    def by_length(self, size: int) -> list[NDArray[np.int64]]:
        """Return batches of all texts, the shortest first."""
        order = np.argsort(np.diff(self.ptr), kind="stable")
        return [order[start : start + size] for start in range(0, len(order), size)]

    def batch(self, chosen: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Return tokens and targets int64 [B, T]: each token's next one, or -100 where it is not of a reference."""
        starts, lengths = self.ptr[chosen], self.ptr[chosen + 1] - self.ptr[chosen]
        places = np.arange(lengths.max())
        inside = places < lengths[:, None]
        tokens = np.full(inside.shape, PAD, np.int64)
        tokens[inside] = self.tokens[(starts[:, None] + places)[inside]]
        scored = inside & (places >= self.prompts[chosen, None])
        targets = np.where(scored, tokens, _NOT_SCORED)
        return torch.from_numpy(tokens[:, :-1]), torch.from_numpy(targets[:, 1:])


class TextLoop(TrainingLoop):
    """Trains a model to continue prompts with their references; the loss is on the references' characters alone.

    Models are selected by the same loss on the validation split: the share of right answers would cost thousands of
    steps of generation at every validation.

    Args:
        corpus: What is trained on; held in memory, one byte per character.
        val_corpus: What models are selected on.
        Others: As for ``TrainingLoop``.
    """

    model: TextModel

    def __init__(
        self,
        config: RunConfig,
        data: Splits,
        corpus: Corpus,
        val_corpus: Corpus,
        model: TextModel,
        world: World,
        folder: Path,
        fingerprint: str,
    ) -> None:
        super().__init__(config, data.card, data.train, data.val, model, world, folder, fingerprint, False)
        self.corpus, self.val_corpus = corpus, val_corpus
        self.val_metric = "loss"

    def notes(self, data: Splits, scored: Sequence[str]) -> list[str]:
        """Return which prompts were too long for the model."""
        notes = []
        if self.corpus.left_out:
            notes.append(f"{self.corpus.left_out:,} training prompts are longer than the context, and left out")
        if self.model.span is not None:
            unread = {name: len(too_long(self.model, TextSamples.of(data[name]))) for name in scored}
            words = [f"{count:,} of {name}" for name, count in unread.items() if count]
            notes += [f"prompts longer than the model's positions, counted as wrong: {', '.join(words)}"] * bool(words)
        return notes

    def _batches(self) -> Iterator[tuple[Any, ...]]:
        """Yield the micro-batches of every batch from the current step on, for ever."""
        settings, parts = self.settings, self.settings.accumulate
        epoch, start = divmod(self.state.step, len(self.corpus) // self._graphs_per_update())
        while True:
            for chosen in self.corpus.batches(settings.batch_size, settings.seed, epoch)[start:]:
                yield tuple(self.corpus.batch(chosen[part::parts]) for part in range(min(parts, len(chosen))))
            epoch, start = epoch + 1, 0

    def _backward(self, parts: Sequence[Any]) -> Tensor:
        """Add the gradients of the parts of a batch, weighted by their share of its characters."""
        device = self.world.device
        counts = [int((targets != _NOT_SCORED).sum()) for _, targets in parts]
        total = torch.zeros((), device=device)
        for (tokens, targets), count in zip(parts, counts, strict=True):
            share = self._loss(tokens.to(device), targets.to(device)) * (count / sum(counts))
            share.backward()  # type: ignore[no-untyped-call]
            total += share.detach()
        return total

    def _loss(self, tokens: Tensor, targets: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return the mean cross-entropy of the characters that are scored, in nats."""
        forward: Any = self._forward
        count, length = tokens.shape
        positions = self.model.training_positions(count, length, generator).to(tokens.device)
        with autocast(tokens.device, self.precision):
            logits = forward(tokens, positions)
        return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten(), ignore_index=_NOT_SCORED)

    @torch.no_grad()
    def _validation_score(self) -> float:
        """Return the mean cross-entropy of the characters of all validation references."""
        generator = torch.Generator().manual_seed(_VALIDATION_SEED)
        self.model.eval()
        total, characters = 0.0, 0
        for chosen in self.val_corpus.by_length(max(1, self.settings.batch_size // self.settings.accumulate)):
            tokens, targets = self.val_corpus.batch(chosen)
            count = int((targets != _NOT_SCORED).sum())
            loss = self._loss(tokens.to(self.world.device), targets.to(self.world.device), generator)
            total += float(loss) * count
            characters += count
        self.model.train()
        return total / characters

    def _graphs_per_update(self) -> int:
        return min(self.settings.batch_size, len(self.corpus))


def text_loop(config: RunConfig, data: Splits, world: World, folder: Path) -> TextLoop:
    """Return the loop of a run on texts, at its start.

    Raises:
        ConfigError: If the configuration is none for texts, or no prompt fits into the model's context.
        UnreadableText: If a text has a character that is no token.
    """
    about = text_model_config(config)
    corpus, val_corpus = (Corpus.of(TextSamples.of(split), about.context) for split in (data.train, data.val))
    model = TextModel(about).to(world.device)
    mark = fingerprint(config, f"{data.train.content_hash} {data.val.content_hash}")
    return TextLoop(config, data, corpus, val_corpus, model, world, folder, mark)


def text_model_config(config: RunConfig) -> TextModelConfig:
    """Return the model's configuration of a run on texts.

    Raises:
        ConfigError: If it is one for graphs.
    """
    if not isinstance(config.model, TextModelConfig):
        raise ConfigError(
            f"{config.model_name} is no model that writes texts, which {config.dataset} asks for; "
            "choose one of baselines/clrs_text, or write kind: text in the model section"
        )
    return config.model
