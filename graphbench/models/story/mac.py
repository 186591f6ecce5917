"""MAC networks (Hudson and Manning, 2018) over the states of an LSTM, with the queried entities as the question."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from graphbench.models.layers import Dropout
from graphbench.models.story.base import Setting, StoryEncoder, masked_softmax, query_states
from graphbench.models.story.config import MACConfig, StoryModelConfig
from graphbench.models.story.lstm import WordReader


class MACCell(nn.Module):
    """One iteration: a control attends to the question, a read unit to the story, and the memory is rewritten.

    The cell follows sections 3.2.1 to 3.2.3 of the paper, without the write unit's optional self-attention and gate.
    """

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.intent = nn.Linear(2 * width, width)
        self.attend_question = nn.Linear(width, 1, bias=False)  # a softmax follows
        self.from_memory = nn.Linear(width, width)
        self.from_story = nn.Linear(width, width)
        self.interaction = nn.Linear(2 * width, width)
        self.attend_story = nn.Linear(width, 1, bias=False)
        self.write = nn.Linear(2 * width, width)
        self.memory_dropout, self.read_dropout, self.write_dropout = (
            Dropout(dropout),
            Dropout(dropout),
            Dropout(dropout),
        )

    def control(self, before: Tensor, question: Tensor, words: Tensor) -> Tensor:
        """Return the next control [B, w], from the last control, the question [B, w] and its words [B, Q, w]."""
        intent = self.intent(torch.cat([before, question], dim=1))
        weights = torch.softmax(self.attend_question(intent.unsqueeze(1) * words).float(), dim=1)
        return (weights * words).sum(1)

    def read(self, memory: Tensor, control: Tensor, states: Tensor, mask: Tensor) -> Tensor:
        """Return the vector [B, w] that is retrieved from the states [B, L, w] of a story."""
        request = self.from_memory(self.memory_dropout(memory)).unsqueeze(1)
        joined = self.interaction(torch.cat([request * self.from_story(states), states], dim=2))
        scores = self.attend_story(self.read_dropout(control.unsqueeze(1) * joined)).squeeze(2)
        weights = masked_softmax(scores, mask)
        return (weights.unsqueeze(1) @ states).squeeze(1)

    def memory(self, before: Tensor, retrieved: Tensor) -> Tensor:
        """Return the next memory [B, w], from the last memory and the retrieved vector."""
        written: Tensor = self.write(torch.cat([self.write_dropout(retrieved), before], dim=1))
        return written


class MACEncoder(StoryEncoder):
    """A MAC network; the decoder reads the last memory and the query.

    The first control and memory are learned, as in the MAC paper.
    """

    def __init__(self, config: StoryModelConfig, setting: Setting) -> None:
        super().__init__()
        settings: MACConfig = config.mac
        self.words = WordReader(config, setting)
        width = self.words.width
        questions = 1 if settings.share_question else settings.iterations
        self.questions = nn.ModuleList(nn.Linear(setting.queried * width, width) for _ in range(questions))
        self.iterations = settings.iterations
        self.cell = MACCell(width, settings.dropout)
        self.first_control = nn.Parameter(torch.randn(width))
        self.first_memory = nn.Parameter(torch.randn(width))
        self.width = (1 + setting.queried) * width

    def forward(self, stories: Sequence[str], query: Tensor) -> Tensor:
        """Return float32 [B, width]; see :class:`StoryEncoder`."""
        states, mask, mentions = self.words(stories, query)
        queried = query_states(states, mentions)
        control = self.first_control.expand(len(stories), -1)
        memory = self.first_memory.expand(len(stories), -1)
        for iteration in range(self.iterations):
            question = self.questions[iteration % len(self.questions)](queried.flatten(1))
            control = self.cell.control(control, question, queried)
            memory = self.cell.memory(memory, self.cell.read(memory, control, states, mask))
        return torch.cat([memory, queried.flatten(1)], dim=1)
