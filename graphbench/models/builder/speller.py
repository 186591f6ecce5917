"""Models that write structures token by token, without any guarantee that the structures are correct.

A decoder-only transformer reads the goal and continues with the tokens of a structure. It is the reference for
:mod:`graphbench.models.builder.model`: its share of correct answers shows the value of an environment's guarantee.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphbench.catalog.features import Kind, Location, Stage, select
from graphbench.core.errors import ConfigError
from graphbench.data.components.domain import find
from graphbench.models.base import TaskFeatures, TaskModel
from graphbench.models.builder.config import SpellerModelConfig
from graphbench.models.builder.network import INITIAL_SCALE, Layer
from graphbench.models.keys_values import Cache
from graphbench.models.layers import FullPrecisionLinear

if TYPE_CHECKING:
    from graphbench.data.batches.dataset import GraphDataset

_START_OR_PADDING = 0  # a token that no sequence contains
_MAX_GOALS = 1024
_SAMPLES_PER_BATCH = 128


class SpellerModel(TaskModel):
    """A model of one dataset: ``model(batch)`` returns ``loss``, per sample; ``predict`` returns ``answers``.

    Args:
        config: The configuration.
        task: The properties of the task.

    Raises:
        CardError: If no tokenizer has the configured name.
        ConfigError: If the task lacks the text that states the goal, or the reference structures.
    """

    def __init__(self, config: SpellerModelConfig, task: TaskFeatures) -> None:
        super().__init__()
        self.config, self.tokenizer = config, find("tokenizer", config.tokenizer)
        if config.samples > 1 and self.tokenizer.costs is None:
            raise ConfigError(
                f"model.samples is {config.samples}, but {config.tokenizer} cannot say which of several structures is "
                "the best; set model.samples=1"
            )
        for stage, name in ((Stage.INPUT, self.tokenizer.field), (Stage.OUTPUT, self.tokenizer.reference)):
            texts = [f.name for f in select(task.features, stage, Location.GRAPH) if f.kind is Kind.TEXT]
            if name not in texts:
                raise ConfigError(
                    f"{config.tokenizer} needs a text {name!r} of graphs as {stage.value}, which the task does not "
                    f"have (there: {', '.join(texts) or 'none'}); choose another dataset"
                )
        width = config.hidden
        self.goals = nn.Linear(self.tokenizer.goal, width)
        self.tokens = nn.Embedding(self.tokenizer.vocabulary, width)
        self.goal_places = nn.Embedding(_MAX_GOALS, width)
        self.places = nn.Embedding(self.tokenizer.longest + 1, width)
        for embedding in (self.tokens, self.goal_places, self.places):
            nn.init.normal_(embedding.weight, std=INITIAL_SCALE)
        self.layers = nn.ModuleList(Layer(width, config.heads, number) for number in range(config.layers))
        self.norm, self.head = nn.LayerNorm(width), FullPrecisionLinear(width, self.tokenizer.vocabulary)

    def forward(self, batch: Any, task_id: str | None = None) -> dict[str, Tensor]:
        """Return ``loss``: the mean cross-entropy of the tokens of every sample's structure, float32 [B]."""
        written = [
            torch.from_numpy(self.tokenizer.tokens(reference))
            for reference in _strings(batch, self.tokenizer.reference)
        ]
        targets = nn.utils.rnn.pad_sequence(written, batch_first=True).to(self.head.weight.device)
        logits, _ = self._read(_strings(batch, self.tokenizer.field), F.pad(targets[:, :-1], (1, 0)))
        losses = F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=_START_OR_PADDING, reduction="none")
        return {"loss": losses.sum(1) / (targets != _START_OR_PADDING).sum(1)}

    @torch.inference_mode()
    def predict(self, batch: Any, task_id: str | None = None) -> dict[str, Any]:
        """Return ``answers``, one structure per sample; None where the tokens are not a structure."""
        texts = _strings(batch, self.tokenizer.field)
        best = self._structures(texts, 0)
        if self.tokenizer.costs is not None and self.config.samples > 1:
            costs = self.tokenizer.costs(texts, best)
            for number in range(1, self.config.samples):
                further = self._structures(texts, number)
                further_costs = self.tokenizer.costs(texts, further)
                best = [
                    new if cost < least else old
                    for new, old, cost, least in zip(further, best, further_costs, costs, strict=True)
                ]
                costs = np.minimum(costs, further_costs)
        return {"answers": best}

    def _structures(self, texts: Sequence[str], number: int) -> list[Any]:
        """Return the structures of one sequence per text."""
        pairs = zip(texts, self.write(texts, number), strict=True)
        return [self.tokenizer.structure(text, tokens) for text, tokens in pairs]

    def largest_batch(self, dataset: GraphDataset) -> int:
        """Return the number of samples for which structures are written at once."""
        return _SAMPLES_PER_BATCH

    @torch.inference_mode()
    def write(self, texts: Sequence[str], number: int = 0) -> list[list[int]]:
        """Return the tokens that the model writes for every text; writing ends at a complete or a too long sequence.

        Args:
            texts: The goals.
            number: Number of the sequence, of several per text; it seeds the random numbers.
        """
        generators = [_generator(text if not number else f"{number} {text}") for text in texts]
        temperature = self.config.temperature if number or self.config.samples == 1 else 0.0
        sequences: list[list[int]] = [[] for _ in texts]
        waiting = list(range(len(texts)))
        start = torch.zeros(len(texts), 1, dtype=torch.int64, device=self.head.weight.device)
        cache = Cache(len(self.layers))
        logits, visible = self._read(texts, start, cache)
        while True:
            values = logits[:, -1].cpu().numpy().astype(np.float64)
            values[:, _START_OR_PADDING] = -np.inf
            for row, b in enumerate(waiting):
                if temperature:  # Gumbel noise: the argmax is a sample of the softmax
                    values[row] += temperature * generators[b].gumbel(size=values.shape[1])
                sequences[b].append(int(values[row].argmax()))
            rows = [row for row, b in enumerate(waiting) if not self._is_done(texts[b], sequences[b])]
            if not rows:
                return sequences
            if len(rows) < len(waiting):
                kept = torch.tensor(rows, device=start.device)
                waiting, visible = [waiting[row] for row in rows], visible[kept]
                cache.keep(kept)
            visible = F.pad(visible, (0, 1), value=True)
            last = torch.tensor([[sequences[b][-1]] for b in waiting], device=start.device)
            x = self.tokens(last) + self.places.weight[len(sequences[waiting[0]])]
            logits = self._through(x, visible[:, None, None], cache)

    def _is_done(self, text: str, tokens: list[int]) -> bool:
        return len(tokens) >= self.tokenizer.longest or self.tokenizer.complete(text, tokens)

    def _read(self, texts: Sequence[str], tokens: Tensor, cache: Cache | None = None) -> tuple[Tensor, Tensor]:
        """Return the logits [B, T, V] after each of the tokens [B, T], and the mask of visible positions [B, P + T]."""
        device = tokens.device
        goals = [torch.from_numpy(self.tokenizer.goals(text)).float() for text in texts]
        if max(map(len, goals)) > _MAX_GOALS:
            raise ConfigError(
                f"a sample has {max(map(len, goals)):,} vectors of goals; at most {_MAX_GOALS:,} are read"
            )
        counts = torch.tensor([len(goal) for goal in goals], device=device)
        padded = nn.utils.rnn.pad_sequence(goals, batch_first=True).to(device)
        prefix, length = padded.shape[1], tokens.shape[1]
        x = torch.cat(
            [
                self.goals(padded) + self.goal_places.weight[:prefix],
                self.tokens(tokens) + self.places.weight[:length],
            ],
            dim=1,
        )
        visible = F.pad(torch.arange(prefix, device=device) < counts[:, None], (0, length), value=True)
        causal = torch.ones(prefix + length, prefix + length, dtype=torch.bool, device=device).tril()
        causal[:prefix, :prefix] = True
        return self._through(x, (visible[:, None] & causal)[:, None], cache, prefix), visible

    def _through(self, x: Tensor, mask: Tensor, cache: Cache | None, skipped: int = 0) -> Tensor:
        for layer in self.layers:
            x = layer(x, mask, cache)
        if cache is not None:
            cache.used = mask.shape[-1]
        logits: Tensor = self.head(self.norm(x[:, skipped:]))
        return logits


def _strings(batch: Any, name: str) -> list[str]:
    texts = getattr(batch, name, None)
    if texts is None:
        raise ConfigError(f"the batch has no {name!r}; build the model with the features of the data")
    return [texts] if isinstance(texts, str) else list(texts)


def _generator(text: str) -> np.random.Generator:
    """Return the random generator of one sequence."""
    digest = hashlib.blake2b(f"tokens {text}".encode(), digest_size=8).digest()
    return np.random.default_rng(int.from_bytes(digest, "little"))
