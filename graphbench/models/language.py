"""A small decoder-only transformer that reads and writes characters.

It is the text baseline: a reference point that trains on one device, not a competitor of large models. Positions are
rotary (Su et al., 2021) or learned, and may be drawn at random from a larger range, as in Ruoss et al. (2023), which
CLRS-Text's paper evaluates with a range of 10,000.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from graphbench.catalog.features import Feature, Kind, Location, Stage, select
from graphbench.core.errors import ConfigError, GraphBenchError
from graphbench.data.arrays.answers import room_for
from graphbench.data.batches.text_batch import NOT_SCORED, TextBatch
from graphbench.models.base import TaskModel
from graphbench.models.language_config import TextModelConfig
from graphbench.models.layers import Dropout

if TYPE_CHECKING:
    from graphbench.data.batches.dataset import GraphDataset

PAD = 0
STOP = "\n\n"  # a reference ends with an empty line
VOCABULARY = 97  # padding, newline, and the printable characters of ASCII
_NEWLINE = 1
_SHIFT = 30  # from the code of a printable character, 32 to 126, to its token
_ROTARY_BASE = 10_000.0
_INITIAL_SCALE = 0.02
_MAX_PROMPTS = 256  # answered at once
_MAX_CACHED_NUMBERS = 2**29  # in the keys and values of a batch
_MAX_TOKEN_PAIRS = 2**26  # pairs of characters of a batch of prompts


class UnreadableText(GraphBenchError, ValueError):
    """A text that is too long for a model, or has a character outside the vocabulary."""


def encode(text: str) -> NDArray[np.uint8]:
    """Return the tokens of a text, one per character.

    Raises:
        UnreadableText: If a character is neither printable ASCII nor a newline.
    """
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    newlines = codes == ord("\n")
    unknown = ~newlines & ((codes < 32) | (codes > 126))
    if unknown.any():
        letter = text[int(unknown.argmax())]
        raise UnreadableText(f"the character {letter!r} is not in the vocabulary; write printable ASCII and newlines")
    return np.where(newlines, _NEWLINE, codes - _SHIFT).astype(np.uint8)


def decode(tokens: NDArray[np.uint8]) -> str:
    """Return the text of tokens, without padding."""
    kept = tokens[tokens != PAD]
    return np.where(kept == _NEWLINE, ord("\n"), kept + _SHIFT).astype(np.uint8).tobytes().decode("ascii")


def draw_positions(count: int, length: int, span: int, generator: torch.Generator | None = None) -> Tensor:
    """Return positions int64 [count, length]: each row a random subset of 0 .. span - 1, in ascending order."""
    subsets = torch.rand(count, span, generator=generator).topk(length).indices
    return subsets.sort().values


class Cache:
    """Keys and values of the tokens a model has read, so that it reads each token once.

    Args:
        model: The model.
        batch: Number of texts.
        room: Most tokens per text.
    """

    def __init__(self, model: TextModel, batch: int, room: int) -> None:
        config, weight = model.config, model.embedding.weight
        shape = (2, config.layers, batch, config.heads, room, config.hidden // config.heads)
        self._kept = weight.new_zeros(shape)
        self.used = 0

    def extended(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Keep the keys and values [B, H, T, d] of new tokens, and return those of all tokens."""
        end = self.used + keys.shape[2]
        for number, new in enumerate((keys, values)):
            self._kept[number, layer, :, :, self.used : end] = new
        return self._kept[0, layer, :, :, :end], self._kept[1, layer, :, :, :end]


class _Layer(nn.Module):
    """``x + Attention(LN(x))``, then ``x + W2 gelu(W1 LN(x))``."""

    def __init__(self, config: TextModelConfig, number: int) -> None:
        super().__init__()
        self.heads, self.number = config.heads, number
        self.attention_norm = nn.LayerNorm(config.hidden)
        self.queries_keys_values = nn.Linear(config.hidden, 3 * config.hidden, bias=False)
        self.output = nn.Linear(config.hidden, config.hidden, bias=False)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(config.hidden),
            nn.Linear(config.hidden, 4 * config.hidden),
            nn.GELU(),
            nn.Linear(4 * config.hidden, config.hidden),
            Dropout(config.dropout),
        )
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, angles: Tensor | None, mask: Tensor | None, cache: Cache | None) -> Tensor:
        texts, length, width = x.shape
        split = self.queries_keys_values(self.attention_norm(x)).view(texts, length, 3, self.heads, -1)
        queries, keys, values = split.permute(2, 0, 3, 1, 4)
        if angles is not None:
            queries, keys = _rotated(queries, angles), _rotated(keys, angles)
        if cache is not None:
            keys, values = cache.extended(self.number, keys, values)
        attended = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, is_causal=mask is None)
        x = x + self.dropout(self.output(attended.transpose(1, 2).reshape(texts, length, width)))
        result: Tensor = x + self.feed_forward(x)
        return result


def _rotated(x: Tensor, angles: Tensor) -> Tensor:
    """Return vectors [B, H, T, d] whose pairs (i, i + d/2) are turned by the angles [B, 1, T, d/2]."""
    first, second = x.chunk(2, dim=-1)
    cosines, sines = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    return torch.cat([first * cosines - second * sines, second * cosines + first * sines], dim=-1)


class TextModel(TaskModel):
    """Predicts the next character of prompts and their references, and completes prompts.

    Args:
        config: The architecture.
    """

    def __init__(self, config: TextModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(VOCABULARY, config.hidden)
        learned = config.positions == "learned"
        self.positions = nn.Embedding(self.span or 1, config.hidden) if learned else None
        self.layers = nn.ModuleList(_Layer(config, number) for number in range(config.layers))
        self.norm = nn.LayerNorm(config.hidden)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=_INITIAL_SCALE)

    @property
    def span(self) -> int | None:
        """Number of positions the model knows, or None if it has no bound (rotary, not drawn at random)."""
        bound = self.config.context if self.config.positions == "learned" else None
        return self.config.randomised_positions or bound

    def text_positions(self, count: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        """Return positions int64 [count, length] for some texts: 0, 1, 2, ..., or drawn at random.

        Raises:
            UnreadableText: If the model does not know that many positions.
        """
        if self.span is not None and length > self.span:
            raise UnreadableText(f"a text of {length} characters is too long for a model with {self.span} positions")
        if self.config.randomised_positions is not None:
            return draw_positions(count, length, self.config.randomised_positions, generator)
        return torch.arange(length).expand(count, length)

    def training_positions(self, count: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        """Return positions int64 [count, length] of whole texts, as generation draws them for their beginnings.

        Where positions are drawn at random, they are the first of a longer text's, of random length up to the context:
        while a text is generated, its length is not known, and positions are drawn for the longest it may become.
        """
        longest = length
        if self.config.randomised_positions is not None and length < self.config.context:
            longest = int(torch.randint(length, self.config.context + 1, (), generator=generator))
        return self.text_positions(count, longest, generator)[:, :length]

    def forward(self, batch: TextBatch, task_id: str | None = None) -> Tensor:
        """Return the logits of the character after each token, float [B, T - 1, VOCABULARY].

        Where the batch has no positions and they are random, they are drawn from torch's global generator.
        """
        assert batch.tokens is not None
        positions = batch.positions
        if positions is None:
            positions = self.training_positions(*batch.tokens.shape).to(batch.tokens.device)
        return self.logits(batch.tokens, positions)

    def prepare(
        self,
        batch: TextBatch,
        task_id: str | None = None,
        generator: torch.Generator | None = None,
        *,
        training: bool = False,
    ) -> TextBatch:
        """Return the batch with tokens and targets, and with positions drawn from ``generator`` where there is one.

        Raises:
            UnreadableText: If a character is not in the vocabulary, or a text with its reference is too long.
        """
        lengths = np.array([len(p) + len(r) for p, r in zip(batch.prompts, batch.references, strict=True)], np.int64)
        places = np.arange(lengths.max())
        inside = places < lengths[:, None]
        tokens = np.full(inside.shape, PAD, np.int64)
        pieces = (text for pair in zip(batch.prompts, batch.references, strict=True) for text in pair)
        tokens[inside] = encode("".join(pieces))
        scored = inside & (places >= np.array([len(prompt) for prompt in batch.prompts])[:, None])
        targets = np.where(scored, tokens, NOT_SCORED)
        count, length = len(lengths), len(places) - 1
        return replace(
            batch,
            tokens=torch.from_numpy(tokens[:, :-1]),
            targets=torch.from_numpy(targets[:, 1:]),
            positions=None if generator is None else self.training_positions(count, length, generator),
        )

    @torch.inference_mode()
    def predict(self, batch: TextBatch, task_id: str | None = None) -> list[str]:
        """Return the model's answer to every prompt, in their order.

        Prompts of similar length are answered together, as many at once as the memory budget allows. A prompt that has
        more characters than the model knows positions, its reference included, is not read: its answer is empty.
        """
        complete, answers = TextGenerator(self), [""] * batch.num_graphs
        was_training = self.training
        try:
            for numbers in self.answered_together(batch):
                room = room_for(max(len(batch.references[i]) for i in numbers))
                found = complete([batch.prompts[i] for i in numbers], room)
                for number, answer in zip(numbers, found, strict=True):
                    answers[number] = answer
        finally:
            self.train(was_training)
        return answers

    def answered_together(self, batch: TextBatch) -> Iterator[list[int]]:
        """Yield numbers of prompts of similar length whose references fit the positions behind the longest one."""
        config, chosen, longest = self.config, list[int](), 0
        unread = set(self.too_long(batch.prompts, batch.references))
        asked = (number for number in range(batch.num_graphs) if number not in unread)
        for number in sorted(asked, key=lambda i: len(batch.prompts[i])):
            length = len(batch.prompts[number])
            longest = max(longest, len(batch.references[number]))
            count, total = len(chosen) + 1, length + room_for(longest)
            full = (
                count * length**2 > _MAX_TOKEN_PAIRS
                or 2 * config.layers * config.hidden * count * total > _MAX_CACHED_NUMBERS
            )
            full |= self.span is not None and length + longest > self.span
            if full and chosen:
                yield chosen
                chosen, longest = [], len(batch.references[number])
            chosen.append(number)
        if chosen:
            yield chosen

    def too_long(self, prompts: Sequence[str], references: Sequence[str]) -> list[int]:
        """Return the numbers of the prompts that have more characters, with their references, than known positions."""
        span = self.span
        if span is None:
            return []
        pairs = zip(prompts, references, strict=True)
        return [number for number, (prompt, reference) in enumerate(pairs) if len(prompt) + len(reference) > span]

    def largest_batch(self, dataset: GraphDataset) -> int:
        """Return how many prompts to pass to ``predict``, which splits them further where they are long."""
        return _MAX_PROMPTS

    def logits(
        self, tokens: Tensor, positions: Tensor, mask: Tensor | None = None, cache: Cache | None = None
    ) -> Tensor:
        """Return the logits of the character after each token.

        Args:
            tokens: int64 [B, T].
            positions: int64 [B, T], from :meth:`text_positions`.
            mask: bool [B, 1, T, tokens read so far + T]: which tokens each token sees; None for all before it.
            cache: What was read before; the new tokens are added to it.
        """
        x, angles = self.embedding(tokens), None
        if self.positions is not None:
            x = x + self.positions(positions)
        else:
            half = self.config.hidden // self.config.heads // 2
            frequencies = _ROTARY_BASE ** (-torch.arange(half, device=x.device) / half)
            angles = (positions[..., None] * frequencies).unsqueeze(1)
        for layer in self.layers:
            x = layer(x, angles, mask, cache)
        if cache is not None:
            cache.used += tokens.shape[1]
        return F.linear(self.norm(x), self.embedding.weight)


def require_texts(task_id: str, features: Sequence[Feature]) -> None:
    """Refuse a task that is not a text of graphs, given a text of graphs.

    Raises:
        ConfigError: If its features hold anything else to predict, or no text to read.
    """
    texts = [f for f in features if f.kind is Kind.TEXT and f.location is Location.GRAPH]
    outputs = select(features, Stage.OUTPUT)
    if len(outputs) != 1 or outputs[0] not in texts or not select(texts, Stage.INPUT):
        raise ConfigError(f"models of kind text answer a text with a text, which {task_id} does not ask for")


class TextGenerator:
    """A :class:`TextModel` that completes texts, one most likely character after the other.

    Args:
        model: The model.
        name: Model and settings in words.
        seed: Seed of positions that are drawn at random.
    """

    def __init__(self, model: TextModel, name: str = "text baseline", seed: int = 0) -> None:
        self.model = model
        self.name = name
        self.seed = seed

    @torch.inference_mode()
    def __call__(self, texts: Sequence[str], characters: int) -> list[str]:
        """Return what follows each text, up to an empty line or ``characters`` characters.

        Raises:
            UnreadableText: If a text is too long for the model, or has a character outside the vocabulary.
        """
        model, device = self.model, self.model.embedding.weight.device
        model.eval()
        tokens, padding = _padded_on_the_left(texts)
        count, length = tokens.shape
        room = characters if model.span is None else max(1, min(characters, model.span - length))
        generator = torch.Generator().manual_seed(self.seed)
        positions = _shifted(model.text_positions(count, length + room, generator), padding).to(device)
        tokens, seen = tokens.to(device), (torch.arange(length + room) >= padding[:, None]).to(device)
        causal = torch.ones(length, length, dtype=torch.bool, device=device).tril()
        itself = torch.eye(length, dtype=torch.bool, device=device)  # padding sees itself: no row is empty
        mask = ((seen[:, None, :length] & causal) | itself)[:, None]
        cache = Cache(model, count, length + room)
        written = torch.full((count, room), PAD, device=device)
        done = torch.zeros(count, dtype=torch.bool, device=device)
        for place in range(room):
            logits = model.logits(tokens, positions[:, cache.used : cache.used + tokens.shape[1]], mask, cache)[:, -1]
            logits[:, PAD] = -torch.inf
            written[:, place] = logits.argmax(-1)
            if place > 0:
                done |= (written[:, place - 1 : place + 1] == _NEWLINE).all(-1)
            if bool(done.all()):
                break
            tokens, mask = written[:, place : place + 1], seen[:, None, None, : cache.used + 1]
        rows = written.cpu().numpy().astype(np.uint8)
        return [decode(row).split(STOP)[0] for row in rows]


def _padded_on_the_left(texts: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Return tokens int64 [B, T], all texts ending at the same place, and the padding before each, int64 [B]."""
    rows = [encode(text) for text in texts]
    length = max(map(len, rows))
    tokens = np.full((len(rows), length), PAD, np.int64)
    for number, row in enumerate(rows):
        tokens[number, length - len(row) :] = row
    return torch.from_numpy(tokens), torch.tensor([length - len(row) for row in rows])


def _shifted(positions: Tensor, padding: Tensor) -> Tensor:
    """Return the positions [B, T] moved to the right by the padding [B], so that each text has its own first ones."""
    places = (torch.arange(positions.shape[1]) - padding[:, None]).clamp(min=0)
    return positions.gather(1, places)
