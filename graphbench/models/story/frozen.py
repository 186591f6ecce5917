"""Pretrained encoders of the BERT family with frozen weights (CLUTRR paper, appendix 1.1 and 2.2)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphbench.core.errors import ConfigError, MissingDependency
from graphbench.models.story.base import Setting, StoryEncoder, mentions_of
from graphbench.models.story.config import StoryModelConfig
from graphbench.models.story.embedding import EntityTable
from graphbench.models.story.lstm import Reader, Reading
from graphbench.models.story.vocabulary import check_entity, entity_number

_WORD, _SPECIAL = -1, -2  # for tokens that are no entity


@dataclass(frozen=True, slots=True)
class TokenisedStory:
    """A story as the input of a pretrained encoder.

    Attributes:
        ids: int64 [P], the numbers of the story's tokens, including special tokens.
        entity: int64 [P], the number of each token's entity, -1 for words, -2 for special tokens.
    """

    ids: NDArray[np.int64]
    entity: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class EncodedStory:
    """A story as encoded by a pretrained encoder.

    Attributes:
        states: float32 [L, w], the states of the story's tokens, without special tokens.
        entity: int64 [L], the number of each token's entity, -1 for words.
    """

    states: Tensor
    entity: Tensor

    @property
    def num_bytes(self) -> int:
        """Memory of both tensors in bytes."""
        return self.states.nbytes + self.entity.nbytes


class FrozenEncoder(StoryEncoder):
    """A pretrained encoder, an LSTM on top unless ``layers`` is 0, and the mean or an attention over the states.

    Entities are written as their numbers, as in the paper. With ``frozen.placeholders``, separate vectors of entities
    replace the encoder's states. The pretrained weights are not part of a checkpoint: the checkpoint holds their hash,
    and a model with other pretrained weights rejects the checkpoint.

    The encoder reads every story separately, so that its states do not depend on the batch. The states are cached as
    long as they fit into ``frozen.remember``.
    """

    mark: Tensor

    def __init__(self, config: StoryModelConfig, setting: Setting) -> None:
        """Load the encoder.

        Raises:
            MissingDependency: If ``transformers`` is not installed.
            ConfigError: If the folder holds no encoder with a fast tokenizer.
        """
        super().__init__()
        self.entity_count = setting.vocabulary.entities
        model, self.tokenizer = load_pretrained(config.frozen.path)
        self._outside = (model,)  # in a tuple, so that torch does not register its weights
        width = int(model.config.hidden_size)
        self.limit = _longest_input(model, self.tokenizer)
        self.register_buffer("mark", torch.frombuffer(bytearray(_hash_of(model)), dtype=torch.uint8))
        placeholders = config.frozen.placeholders
        self.placeholders = EntityTable(self.entity_count, width, config.entities) if placeholders else None
        self.reader = Reader(width, config)
        self.reading = Reading(self.reader.width, setting.queried, config.reading)
        self.width = self.reading.width
        self._cache: dict[str, EncodedStory] = {}
        self._cache_bytes_left = int(config.frozen.remember * 2**30)

    def forward(self, stories: Sequence[str], query: Tensor) -> Tensor:
        """Return float32 [B, width]; see :class:`StoryEncoder`.

        Raises:
            ConfigError: If a story exceeds the input length of the pretrained encoder.
        """
        states, entity, lengths = self._padded(stories, query.device)
        if self.placeholders is not None:
            entity_vectors = self.placeholders()[entity.clamp(min=0)]
            states = torch.where((entity >= 0).unsqueeze(2), entity_vectors, states)
        read = self.reader(states, lengths.cpu())
        mask = torch.arange(read.shape[1], device=query.device) < lengths.unsqueeze(1)
        encoded: Tensor = self.reading(read, mask, mentions_of(entity, query))
        return encoded

    def _padded(self, stories: Sequence[str], device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        """Return states [B, L, w] of all but special tokens, entity numbers [B, L] and lengths int64 [B]."""
        encoded = [self._read(story, device) for story in stories]
        lengths = torch.tensor([len(story.states) for story in encoded], device=device)
        pad = torch.nn.utils.rnn.pad_sequence
        states = pad([story.states for story in encoded], batch_first=True).to(device)
        entity = pad([story.entity for story in encoded], batch_first=True, padding_value=_WORD).to(device)
        return states, entity, lengths

    def _read(self, story: str, device: torch.device) -> EncodedStory:
        """Return the pretrained encoder's states of a story, from the cache if possible."""
        encoded = self._cache.get(story)
        if encoded is None:
            tokens = self._tokenised(story)
            words = tokens.entity != _SPECIAL
            states = self._states(tokens, device)[torch.from_numpy(words)]
            encoded = EncodedStory(states, torch.from_numpy(tokens.entity[words]))
            if encoded.num_bytes <= self._cache_bytes_left:
                self._cache_bytes_left -= encoded.num_bytes
                self._cache[story] = encoded
        return encoded

    @torch.no_grad()
    def _states(self, tokens: TokenisedStory, device: torch.device) -> Tensor:
        """Return float32 [P, w]: the states of all tokens of a story, on the CPU."""
        model = self._outside[0].to(device)
        ids = torch.from_numpy(tokens.ids).unsqueeze(0).to(device)
        with torch.autocast(device.type, enabled=False):
            states: Tensor = model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state[0]
        return states.float().cpu()

    def _tokenised(self, story: str) -> TokenisedStory:
        words = story.split()
        for word in words:
            check_entity(word, self.entity_count)
        entities = [entity_number(word) for word in words]
        written = [word if number is None else str(number) for word, number in zip(words, entities, strict=True)]
        encoded = self.tokenizer(written, is_split_into_words=True, truncation=False, verbose=False)
        if len(encoded["input_ids"]) > self.limit:
            raise ConfigError(
                f"a story has {len(encoded['input_ids'])} tokens, the pretrained encoder reads {self.limit}; "
                "choose one that reads more, or leave such stories out"
            )
        numbers = [_WORD if number is None else number for number in entities]
        owners = [_SPECIAL if word is None else numbers[word] for word in encoded.word_ids()]
        if all(owner == _SPECIAL for owner in owners):
            raise ConfigError("a story is empty, so there is nothing to read; leave such samples out")
        return TokenisedStory(np.array(encoded["input_ids"], np.int64), np.array(owners, np.int64))

    def _load_from_state_dict(self, state: Mapping[str, Any], prefix: str, *rest: Any) -> None:
        """Load the trained weights; report an error if they were trained on another pretrained encoder."""
        saved_mark, errors = state.get(f"{prefix}mark"), rest[-1]
        if saved_mark is not None and not torch.equal(saved_mark.cpu(), self.mark.cpu()):
            errors.append("it was trained on another pretrained encoder than the one at model.frozen.path")
        super()._load_from_state_dict(state, prefix, *rest)


def load_pretrained(path: str) -> tuple[Any, Any]:
    """Return a pretrained encoder and its tokenizer from a local folder; nothing is downloaded.

    Raises:
        MissingDependency: If ``transformers`` is not installed.
        ConfigError: If the path is empty, or the folder does not exist or holds no encoder with a fast tokenizer.
    """
    if not path:
        raise ConfigError(
            "model.frozen.path is not set: this model reads through a pretrained encoder, and nothing is downloaded; "
            "install the extra (pip install 'graphbench[text]') and give a local folder that save_pretrained of "
            "transformers wrote: --set model.frozen.path=/path/of/bert-base-uncased"
        )
    try:
        import transformers
    except ImportError as error:
        raise MissingDependency(
            "pretrained encoders need transformers, which is not installed; run: pip install 'graphbench[text]'"
        ) from error
    if not Path(path).is_dir():
        raise ConfigError(
            f"the folder of the pretrained encoder, model.frozen.path = {path!r}, does not exist; "
            "set it to a folder that save_pretrained of transformers wrote, e.g. for bert-base-uncased"
        )
    try:
        model = transformers.AutoModel.from_pretrained(path, local_files_only=True)
        tokenizer = transformers.AutoTokenizer.from_pretrained(path, local_files_only=True)
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot load a pretrained encoder from {path}: {error}") from error
    if not tokenizer.is_fast:
        raise ConfigError(f"the tokenizer in {path} is not a fast one, which is needed to map tokens to words")
    return model.float().eval().requires_grad_(False), tokenizer


def _longest_input(model: Any, tokenizer: Any) -> int:
    positions = int(getattr(model.config, "max_position_embeddings", 0) or 0)
    longest = int(tokenizer.model_max_length)
    return min(longest, positions) if positions else longest


def _hash_of(model: Any) -> bytes:
    """Return the SHA-256 of all weights, sorted by name."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.contiguous().cpu().numpy().tobytes())
    return digest.digest()
