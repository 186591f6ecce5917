"""A small decoder-only transformer that reads and writes characters.

It is the text baseline: a reference that trains on one device, not a competitor of large models. Positions are
rotary (Su et al., 2021) or learned, and may be drawn at random from a larger range (Ruoss et al., 2023). The paper of
CLRS-Text evaluates random positions with a range of 10,000.
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

from graphbench.core.errors import GraphBenchError
from graphbench.data.arrays.answers import STOP, room_for
from graphbench.data.batches.text_batch import NOT_SCORED, TextBatch
from graphbench.models.base import TaskModel
from graphbench.models.keys_values import Cache
from graphbench.models.language_config import TextModelConfig
from graphbench.models.layers import Dropout, full_precision

if TYPE_CHECKING:
    from graphbench.data.batches.dataset import GraphDataset

PAD = 0
VOCABULARY = 97  # padding, newline, and the printable characters of ASCII
_NEWLINE = 1
_SHIFT = 30  # from the code of a printable character, 32 to 126, to its token
_ROTARY_BASE = 10_000.0
_INITIAL_SCALE = 0.02
_MAX_PROMPTS = 256  # of a batch that is answered at once
_MAX_CACHED_NUMBERS = 2**29  # in the keys and values of a batch
_MAX_TOKEN_PAIRS = 2**26  # pairs of characters of a batch of prompts


class UnreadableText(GraphBenchError, ValueError):
    """Raised for a text that is too long for a model or has a character outside the vocabulary."""


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
    """Return the text that the tokens encode, without padding."""
    kept = tokens[tokens != PAD]
    return np.where(kept == _NEWLINE, ord("\n"), kept + _SHIFT).astype(np.uint8).tobytes().decode("ascii")


def draw_positions(count: int, length: int, span: int, generator: torch.Generator | None = None) -> Tensor:
    """Return positions int64 [count, length]: each row a random subset of 0 .. span - 1, in ascending order."""
    subsets = torch.rand(count, span, generator=generator).topk(length).indices
    return subsets.sort().values


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
    """Return vectors [B, H, T, d] with the pairs (i, i + d/2) rotated by the angles [B, 1, T, d/2]."""
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
        """Number of positions of the model, or None if it has no bound (rotary, not drawn at random)."""
        bound = self.config.context if self.config.positions == "learned" else None
        return self.config.randomised_positions or bound

    def text_positions(self, count: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        """Return positions int64 [count, length] of ``count`` texts: 0, 1, 2, ..., or drawn at random.

        Raises:
            UnreadableText: If the model has fewer than ``length`` positions.
        """
        if self.span is not None and length > self.span:
            raise UnreadableText(f"a text of {length} characters is too long for a model with {self.span} positions")
        if self.config.randomised_positions is not None:
            return draw_positions(count, length, self.config.randomised_positions, generator)
        return torch.arange(length).expand(count, length)

    def training_positions(self, count: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        """Return positions int64 [count, length] of whole texts, drawn as generation draws them.

        Random positions are the first ``length`` positions of a longer text, with a random length up to the context.
        The reason: generation does not know the final length of a text, and draws positions for the longest possible
        text.
        """
        longest = length
        if self.config.randomised_positions is not None and length < self.config.context:
            longest = int(torch.randint(length, self.config.context + 1, (), generator=generator))
        return self.text_positions(count, longest, generator)[:, :length]

    def forward(self, batch: TextBatch, task_id: str | None = None) -> Tensor:
        """Return the logits of the character after each token, float [B, T - 1, VOCABULARY].

        If positions are random and the batch has none, they are drawn from torch's global generator.
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
        """Return the batch with tokens and targets, and with positions drawn from ``generator`` unless it is None.

        Raises:
            UnreadableText: If a character is not in the vocabulary, or a text with its reference is too long.
        """
        lengths = np.array([len(p) + len(r) for p, r in zip(batch.prompts, batch.references, strict=True)], np.int64)
        columns = np.arange(lengths.max())
        inside = columns < lengths[:, None]
        tokens = np.full(inside.shape, PAD, np.int64)
        pieces = (text for pair in zip(batch.prompts, batch.references, strict=True) for text in pair)
        tokens[inside] = encode("".join(pieces))
        scored = inside & (columns >= np.array([len(prompt) for prompt in batch.prompts])[:, None])
        targets = np.where(scored, tokens, NOT_SCORED)
        count, length = len(lengths), len(columns) - 1
        return replace(
            batch,
            tokens=torch.from_numpy(tokens[:, :-1]),
            targets=torch.from_numpy(targets[:, 1:]),
            positions=None if generator is None else self.training_positions(count, length, generator),
        )

    @torch.inference_mode()
    def predict(self, batch: TextBatch, task_id: str | None = None) -> list[str]:
        """Return the model's answer to every prompt, in the order of the prompts.

        Prompts of similar length are answered together, as many at once as the memory budget allows. A prompt is not
        read, and its answer is empty, if the prompt and its reference have more characters than the model has
        positions.
        """
        complete, answers = TextGenerator(self), [""] * batch.num_graphs
        was_training = self.training
        try:
            for numbers in self.answered_together(batch):
                room = room_for(max(len(batch.references[i]) for i in numbers))
                completions = complete([batch.prompts[i] for i in numbers], room)
                for number, answer in zip(numbers, completions, strict=True):
                    answers[number] = answer
        finally:
            self.train(was_training)
        return answers

    def answered_together(self, batch: TextBatch) -> Iterator[list[int]]:
        """Yield numbers of prompts of similar length; the references fit the positions behind the longest prompt."""
        config, group, longest = self.config, list[int](), 0
        unread = set(self.too_long(batch.prompts, batch.references))
        readable = (number for number in range(batch.num_graphs) if number not in unread)
        for number in sorted(readable, key=lambda i: len(batch.prompts[i])):
            length = len(batch.prompts[number])
            longest = max(longest, len(batch.references[number]))
            count, total = len(group) + 1, length + room_for(longest)
            full = (
                count * length**2 > _MAX_TOKEN_PAIRS
                or 2 * config.layers * config.hidden * count * total > _MAX_CACHED_NUMBERS
            )
            full |= self.span is not None and length + longest > self.span
            if full and group:
                yield group
                group, longest = [], len(batch.references[number])
            group.append(number)
        if group:
            yield group

    def too_long(self, prompts: Sequence[str], references: Sequence[str]) -> list[int]:
        """Return the numbers of the prompts that are longer, with their references, than the model's positions."""
        span = self.span
        if span is None:
            return []
        pairs = zip(prompts, references, strict=True)
        return [number for number, (prompt, reference) in enumerate(pairs) if len(prompt) + len(reference) > span]

    def largest_batch(self, dataset: GraphDataset) -> int:
        """Return the number of prompts to pass to ``predict``, which splits batches of long prompts further."""
        return _MAX_PROMPTS

    def logits(
        self, tokens: Tensor, positions: Tensor, mask: Tensor | None = None, cache: Cache | None = None
    ) -> Tensor:
        """Return the logits of the character after each token.

        Args:
            tokens: int64 [B, T].
            positions: int64 [B, T], from :meth:`text_positions`.
            mask: bool [B, 1, T, tokens read so far + T]: the tokens that each token sees; None for all preceding ones.
            cache: Keys and values of the tokens read so far; the new tokens are added to it.
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
        with full_precision(x.device):
            return F.linear(self.norm(x).float(), self.embedding.weight)


class TextGenerator:
    """A :class:`TextModel` that completes texts greedily, character by character.

    Args:
        model: The model.
        name: Description of the model and its settings.
        seed: Seed of positions that are drawn at random.
    """

    def __init__(self, model: TextModel, name: str = "text baseline", seed: int = 0) -> None:
        self.model = model
        self.name = name
        self.seed = seed

    @torch.inference_mode()
    def __call__(self, texts: Sequence[str], characters: int) -> list[str]:
        """Return the completion of each text, up to an empty line or ``characters`` characters.

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
        cache = Cache(model.config.layers, length + room)
        written = torch.full((count, room), PAD, device=device)
        done = torch.zeros(count, dtype=torch.bool, device=device)
        for step in range(room):
            logits = model.logits(tokens, positions[:, cache.used : cache.used + tokens.shape[1]], mask, cache)[:, -1]
            logits[:, PAD] = -torch.inf
            written[:, step] = logits.argmax(-1)
            if step > 0:
                done |= (written[:, step - 1 : step + 1] == _NEWLINE).all(-1)
            if bool(done.all()):
                break
            tokens, mask = written[:, step : step + 1], seen[:, None, None, : cache.used + 1]
        rows = written.cpu().numpy().astype(np.uint8)
        return [decode(row).split(STOP)[0] for row in rows]


def _padded_on_the_left(texts: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Return tokens int64 [B, T], all texts ending at the last column, and the padding before each, int64 [B]."""
    rows = [encode(text) for text in texts]
    length = max(map(len, rows))
    tokens = np.full((len(rows), length), PAD, np.int64)
    for number, row in enumerate(rows):
        tokens[number, length - len(row) :] = row
    return torch.from_numpy(tokens), torch.tensor([length - len(row) for row in rows])


def _shifted(positions: Tensor, padding: Tensor) -> Tensor:
    """Return the positions [B, T] moved right by the padding [B], so that each text starts at its first position."""
    columns = (torch.arange(positions.shape[1]) - padding[:, None]).clamp(min=0)
    return positions.gather(1, columns)
