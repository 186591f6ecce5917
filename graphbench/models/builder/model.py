"""Policies that generate structures choice by choice.

An environment of the domain (:mod:`~.components.environments`) proposes options and guarantees that every structure is
correct. A transformer chooses among the options, one choice after the other; each choice is conditioned on everything
built so far. The transformer is trained by imitation: a teacher builds structures of the training split and tries
every option in rollouts, and the model learns which options turned out cheap (rollout policies: Bertsekas, Tsitsiklis
and Wu, 1997). Generation builds several structures per sample and answers with the cheapest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphbench.catalog.features import Kind, Location, Stage, select
from graphbench.core.errors import ConfigError
from graphbench.data.components.domain import find
from graphbench.data.components.environments import Building, Choices
from graphbench.models.base import TaskFeatures, TaskModel
from graphbench.models.builder.config import BuilderModelConfig
from graphbench.models.builder.network import Chooser

if TYPE_CHECKING:
    from graphbench.data.batches.dataset import GraphDataset

_STRUCTURES_PER_BATCH = 256  # structures that are built at once
_SAMPLES_PER_BATCH = 64


@dataclass(frozen=True, eq=False)
class Lessons:
    """The choices of one structure, and the costs of the options.

    Attributes:
        goal: int8 ``[L, G]``.
        bits: int8 ``[L, C, G]``.
        numbers: float32 ``[L, C, N]``.
        costs: float32 ``[L, C]``, inf where there is no option.
    """

    goal: NDArray[np.int8]
    bits: NDArray[np.int8]
    numbers: NDArray[np.float32]
    costs: NDArray[np.float32]


class BuilderModel(TaskModel):
    """A model of one dataset, each of whose samples has a text that the environment reads.

    ``model(batch)`` returns ``loss``, the mean loss of the lessons of every sample, float32 [B];
    ``model.predict(batch)`` returns ``answers``.

    Args:
        config: The configuration.
        task: The properties of the task.

    Raises:
        CardError: If no environment has the configured name.
        ConfigError: If the task has no text that the environment reads.
    """

    def __init__(self, config: BuilderModelConfig, task: TaskFeatures) -> None:
        super().__init__()
        self.config, self.environment = config, find("environment", config.environment)
        texts = [f.name for f in select(task.features, Stage.INPUT, Location.GRAPH) if f.kind is Kind.TEXT]
        if self.environment.field not in texts:
            raise ConfigError(
                f"{config.environment} builds structures from a text {self.environment.field!r} of graphs, which the "
                f"task does not have (there: {', '.join(texts) or 'none'}); choose another dataset"
            )
        self.chooser = Chooser(
            self.environment.goal, self.environment.numbers, config.hidden, config.heads, config.layers
        )
        self._lessons: dict[str, Lessons] = {}

    def forward(self, batch: Any, task_id: str | None = None) -> dict[str, Tensor]:
        """Return ``loss``: the cross-entropy of the model against the teacher's choices, per sample, float32 [B]."""
        lessons = self.lessons(self._texts(batch))
        device = self.chooser.score.weight.device
        costs = torch.from_numpy(np.concatenate([lesson.costs for lesson in lessons])).to(device)
        goal, bits, numbers = (np.concatenate([getattr(lesson, name) for lesson in lessons]) for name in _READ)
        logits = self._logits(goal, bits, numbers, costs < torch.inf)
        wanted = torch.softmax(-self.config.sharpness * costs, dim=1)
        losses = -(wanted * torch.log_softmax(logits, dim=1).masked_fill(wanted == 0, 0.0)).sum(1)
        counts = torch.tensor([len(lesson.costs) for lesson in lessons], device=device)
        sample = torch.repeat_interleave(torch.arange(len(lessons), device=device), counts)
        total = torch.zeros(len(lessons), device=device).index_add(0, sample, losses)
        return {"loss": total / counts.clamp(min=1)}

    @torch.inference_mode()
    def predict(self, batch: Any, task_id: str | None = None) -> dict[str, Any]:
        """Return ``answers``: the cheapest of k structures for every sample."""
        return {"answers": self.generate(self._texts(batch))}

    def largest_batch(self, dataset: GraphDataset) -> int:
        """Return the number of samples for which structures are built at once."""
        return _SAMPLES_PER_BATCH

    # ------------------------------------------------------------------------------------------------ generation

    @torch.inference_mode()
    def generate(self, texts: Sequence[str], *, samples: int | None = None) -> list[Any]:
        """Return the cheapest of several structures for every text; answers do not depend on the other texts.

        Args:
            texts: The texts that the environment reads.
            samples: Number of structures per text; None for the number in the configuration.
        """
        number = samples or self.config.samples
        pairs = [(text, variant) for text in texts for variant in range(number)]
        built: list[Any] = []
        costs: list[NDArray[np.float64]] = []
        for first in range(0, len(pairs), _STRUCTURES_PER_BATCH):
            structures, structure_costs = self._build(pairs[first : first + _STRUCTURES_PER_BATCH])
            built += structures
            costs.append(structure_costs)
        best = np.concatenate([np.empty(0), *costs]).reshape(len(texts), number).argmin(1)
        return [built[i * number + j] for i, j in enumerate(best.tolist())]

    def _build(self, pairs: Sequence[tuple[str, int]]) -> tuple[Sequence[Any], NDArray[np.float64]]:
        building = self.environment.start(*map(list, zip(*pairs, strict=True)))
        generators = [_generator(text, variant) for text, variant in pairs]
        while building.advance():
            choices = building.choices()
            logits = self._logits(choices.goal, choices.bits, choices.numbers, choices.options >= 0).cpu().numpy()
            variants = [pairs[b][1] for b in choices.which.tolist()]
            building.choose(choices, self._chosen(building, choices, logits, variants, generators))
        return building.structures()

    def _chosen(
        self,
        building: Building,
        choices: Choices,
        logits: NDArray[np.float32],
        variants: Sequence[int],
        generators: Sequence[np.random.Generator],
    ) -> NDArray[np.int64]:
        """Return the chosen columns: the likeliest options after noise, or the cheapest of the likeliest options."""
        values = logits.astype(np.float64)
        if self.config.temperature:
            for row, (b, variant) in enumerate(zip(choices.which.tolist(), variants, strict=True)):
                if variant:  # Gumbel noise: the argmax is a sample of the softmax
                    values[row] += self.config.temperature * generators[b].gumbel(size=values.shape[1])
        if not self.config.considered:
            return np.asarray(values.argmax(1))
        order = np.argsort(-values, axis=1, kind="stable")
        considered = np.zeros(values.shape, np.bool_)
        np.put_along_axis(considered, order[:, : self.config.considered], True, axis=1)
        costs = building.play_outs(choices, considered, self.config.rounds)
        cheapest = costs == costs.min(1, keepdims=True)
        return np.asarray(np.where(cheapest, values, -np.inf).argmax(1))

    # ------------------------------------------------------------------------------------------------ lessons

    def lessons(self, texts: Sequence[str]) -> list[Lessons]:
        """Return the lessons of texts; lessons are remembered up to the configured number of samples."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._lessons]
        made = dict(zip(missing, self._teach(missing), strict=True)) if missing else {}
        lessons = [made.get(text) or self._lessons[text] for text in texts]
        for text in missing[: max(0, self.config.remembered - len(self._lessons))]:
            self._lessons[text] = made[text]
        return lessons

    def _teach(self, texts: Sequence[str]) -> Iterator[Lessons]:
        """Build one structure per text, mostly with the cheapest options, and yield its choices."""
        building = self.environment.start(texts, [1] * len(texts))
        generators = [_generator(text, -1) for text in texts]
        rows: list[list[tuple[NDArray[Any], ...]]] = [[] for _ in texts]
        while building.advance():
            choices = building.choices()
            available = choices.options >= 0
            costs = building.play_outs(choices, available, self.config.teacher_rounds)
            columns = costs.argmin(1)
            for row, b in enumerate(choices.which.tolist()):
                rows[b].append((choices.goal[row], choices.bits[row], choices.numbers[row], costs[row]))
                if generators[b].random() < self.config.wandering:
                    columns[row] = generators[b].choice(np.flatnonzero(available[row]))
            building.choose(choices, columns)
        for steps in rows:
            yield (Lessons(*(np.stack(part) for part in zip(*steps, strict=True))) if steps else self._no_lessons)

    @property
    def _no_lessons(self) -> Lessons:
        """The lessons of a structure that needs no choice."""
        goal, options = self.environment.goal, self.environment.options
        return Lessons(
            np.empty((0, goal), np.int8),
            np.empty((0, options, goal), np.int8),
            np.empty((0, options, self.environment.numbers), np.float32),
            np.empty((0, options), np.float32),
        )

    def _logits(self, goal: Any, bits: Any, numbers: Any, there: Any) -> Tensor:
        device = self.chooser.score.weight.device
        read = (torch.as_tensor(part, device=device) for part in (goal, bits, numbers, there))
        logits: Tensor = self.chooser(*read)
        return logits

    def _texts(self, batch: Any) -> list[str]:
        texts = getattr(batch, self.environment.field, None)
        if texts is None:
            raise ConfigError(
                f"the batch has no {self.environment.field!r}; build the model with the features of the data"
            )
        return [texts] if isinstance(texts, str) else list(texts)


_READ = ("goal", "bits", "numbers")


def _generator(text: str, variant: int) -> np.random.Generator:
    """Return the random generator of one structure."""
    digest = hashlib.blake2b(f"choices {variant} {text}".encode(), digest_size=8).digest()
    return np.random.default_rng(int.from_bytes(digest, "little"))
