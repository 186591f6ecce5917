"""Networks that solve a combinatorial problem in rounds: every round reads the decisions of the rounds before it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphbench.catalog.features import Feature, Kind, Stage, select
from graphbench.core.errors import ConfigError
from graphbench.data.components.domain import find
from graphbench.models.base import Decoded, TaskFeatures, TaskModel, predicted_features
from graphbench.models.build import Model
from graphbench.models.graphs import Layout
from graphbench.models.noise import GraphNoise
from graphbench.models.stepwise.config import StepwiseModelConfig
from graphbench.models.stepwise.partial import PartialSolutions
from graphbench.models.stepwise.problems import partial_solutions
from graphbench.models.stepwise.residual import Residual, gumbel_numbers, nearest_nodes, uniform_numbers
from graphbench.models.transfer import Part

if TYPE_CHECKING:
    from graphbench.data.batches.dataset import GraphDataset

_SEEDS = "graph_seeds"  # attribute of a prepared batch: int64 [B]
_KEPT_RANGE = 0.2  # width of the interval around `kept` from which every repair draws its share


class StepwiseModel(TaskModel):
    """A model of one combinatorial problem, whose network sees the undecided part of the graph in every round.

    In training, ``model(batch)`` decides in ``unrolled`` rounds, with noise, and returns the scores of every round.
    The scores of decided nodes are fixed, so the loss without targets is the expected objective given the decisions.
    ``model.predict(batch)`` builds a whole solution and returns scores that decode to it: its members, or the nodes of
    side 1, have positive scores.

    Args:
        config: The configuration.
        task: The properties of the task.

    Raises:
        ConfigError: If the task asks for no solution of a problem that can be built in steps.
    """

    def __init__(self, config: StepwiseModelConfig, task: TaskFeatures) -> None:
        super().__init__()
        name = task.options.get("problem")
        if name is None:
            raise ConfigError("models of kind stepwise solve problems, and the task names none; choose another model")
        self.config = config
        self.partial: type[PartialSolutions] = partial_solutions(name, find("problem", name).surrogate)
        (self.output,) = predicted_features(task.features)
        inputs = select(task.features, Stage.INPUT)
        if inputs:
            raise ConfigError(
                f"models of kind stepwise read the graph alone, and the task has the inputs "
                f"{', '.join(f.name for f in inputs)}; choose a model of another kind"
            )
        scored = Feature.parse(self.output.name, ("output", "node", "mask"))
        self.network = Model(config, (*self.partial.features, scored), directed=False)

    def forward(self, batch: Any, task_id: str | None = None) -> Mapping[str, Tensor]:
        """Return the scores of every node, float32 [N]; in training those of all rounds (:class:`Decoded`)."""
        started = self._started(batch)
        if not self.training:
            left = started.undecided()
            return {self.output.name: started.logits(left, self._scores(started, left))}
        if self.config.teacher == "labels":
            self._reveal_labels(started, batch)
        else:
            started.vary()
        rounds: list[Mapping[str, Tensor]] = []
        deciding = self.config.unrolled
        for number in range(deciding + self.config.revised):
            if number >= deciding:
                started.take_back(started.random_nodes())
            left = started.undecided()
            if rounds and not len(left):
                continue
            scores = self._scores(started, left)
            rounds.append({self.output.name: started.logits(left, scores)})
            if self.config.teacher == "labels":
                break
            noise = torch.rand_like(scores).clamp(1e-6, 1 - 1e-6)
            noisy = scores.detach() - self.config.temperature * torch.log(-torch.log(noise))
            started.decide(left, noisy, max(1, deciding - number))
        return Decoded(rounds[-1], rounds[:-1])

    @torch.no_grad()
    def predict(self, batch: Any, task_id: str | None = None) -> Mapping[str, Tensor]:
        """Return scores that decode to the solution that was built, float32 [N]: 1 and -1."""
        layout, copies = Layout.of(batch, directed=False), self.config.copies
        seeds = self._seeds(batch, layout, copies)
        edge_index, graph = _repeated(layout, copies)
        current = self.partial(edge_index, graph, copies * layout.num_graphs, self._classes)
        self._complete(current, seeds, 0, self.config.rounds)
        best, merits = current.copy(), current.merits()
        kept = current.kept if self.config.kept is None else self.config.kept
        for repair in range(1, self.config.repairs + 1):
            current.take_back(self._part_to_repair(current, seeds, kept, repair))
            self._complete(current, seeds, repair, self.config.repair_rounds)
            reached = current.merits()
            better = reached >= merits
            best.take(current, better)
            current.take(best, ~better)
            merits = torch.maximum(merits, reached)
        winner = merits.view(copies, -1).argmax(0)
        states = best.answers().view(copies, -1).gather(0, winner[layout.graph].unsqueeze(0)).squeeze(0)
        return {self.output.name: best.final(states)}

    def prepare(
        self,
        batch: Any,
        task_id: str | None = None,
        generator: torch.Generator | None = None,
        *,
        training: bool = False,
    ) -> Any:
        """Return a batch with one seed per graph, which depends on the graph alone, unless it is one of training."""
        if training or _SEEDS in batch or batch.edge_index.device.type != "cpu":
            return batch
        prepared = copy.copy(batch)
        prepared[_SEEDS] = _seeds_of(Layout.of(batch, directed=False))
        return prepared

    def largest_batch(self, dataset: GraphDataset) -> int:
        """Return the number of graphs of a split that fit the memory budget at once, with all their copies."""
        return max(1, self.network.largest_batch(dataset) // self.config.copies)

    def fit_normalisation(self, batch: Any, task_id: str | None = None) -> None:
        """Standardise what the network reads by random solutions of which a random part is taken back.

        Where the parts leave nothing to decide, all nodes are undecided; where the graphs leave nothing, nothing is
        standardised.
        """
        started = self._started(batch)
        left = started.undecided()
        while len(left):
            started.decide(left, torch.rand(len(left), device=left.nodes.device) - 0.5, 1)
            left = started.undecided()
        started.take_back(started.random_nodes())
        left = started.undecided()
        if not len(left):
            started = self._started(batch)
            left = started.undecided()
        if len(left):
            self.network.fit_normalisation(self._part(left, started.inputs(left)))

    def parts(self) -> list[Part]:
        """Return the parts of the network."""
        return self.network.parts()

    @property
    def _classes(self) -> int:
        return self.output.classes if self.output.kind is Kind.CATEGORICAL else 2

    def _started(self, batch: Any) -> PartialSolutions:
        layout = Layout.of(batch, directed=False)
        return self.partial(layout.edge_index, layout.graph, layout.num_graphs, self._classes)

    def _reveal_labels(self, started: PartialSolutions, batch: Any) -> None:
        """Decide a random part of the nodes of every graph as the solution in the batch does."""
        solution = getattr(batch, self.output.name, None)
        if solution is None:
            raise ConfigError(
                f"model.teacher is 'labels', but the training data have no {self.output.name}; set "
                "training.task.imitation to true"
            )
        started.reveal(solution, started.random_nodes())

    def _part_to_repair(self, current: PartialSolutions, seeds: _Seeds, kept: float, repair: int) -> Tensor:
        """Return the nodes that a repair takes back, bool [N]."""
        wanted = kept + _KEPT_RANGE * (uniform_numbers(seeds.graphs, repair) - 0.5)
        drawn = uniform_numbers(seeds.graphs[current.graph], seeds.numbers, -repair)
        parts = self.config.repair_parts
        if parts == "scattered" or (parts == "alternating" and repair % 2 == 0):
            return drawn > current.shares_kept(wanted)
        lengths = -torch.log(uniform_numbers(seeds.graphs[current.graph], seeds.numbers, -repair, 1))
        first = drawn + (current.state == current.UNDECIDED)
        return nearest_nodes(current.edge_index, current.graph, first, lengths, 1 - wanted)

    def _complete(self, current: PartialSolutions, seeds: _Seeds, attempt: int, rounds: int) -> None:
        """Decide all nodes; the first attempt of the first copy of a graph adds no noise."""
        left, number = current.undecided(), 0
        while len(left):
            scores = self._scores(current, left).float()
            if self.config.temperature and (attempt or self.config.copies > 1):
                ticket = (attempt << 20) + number
                option = () if left.option is None else (left.option,)
                noise = gumbel_numbers(seeds.graphs[left.graph], seeds.numbers[left.nodes], ticket, *option)
                scores = scores + self.config.temperature * noise * (seeds.noisy | (attempt > 0))[left.graph]
            current.decide(left, scores, max(1, rounds - number))
            left, number = current.remaining(left), number + 1

    def _scores(self, current: PartialSolutions, left: Residual) -> Tensor:
        """Return the scores of undecided nodes, float32 [n]; where decisions have a mirror image, they are odd."""
        inputs = current.inputs(left)
        scores = self._read(left, inputs)
        mirrored = current.mirrored(inputs)
        return scores if mirrored is None else (scores - self._read(left, mirrored)) / 2

    def _read(self, left: Residual, inputs: Mapping[str, Tensor]) -> Tensor:
        if not len(left):  # no scores, with a gradient of zeros
            return next(self.network.parameters()).flatten()[:0]
        scores: Tensor = self.network(self._part(left, inputs))[self.output.name]
        return scores

    def _part(self, left: Residual, inputs: Mapping[str, Tensor]) -> Data:
        """Return the undecided nodes as a batch that the network reads."""
        part = Data(edge_index=left.edge_index, batch=left.graph, ptr=left.ptr, num_nodes=len(left))
        for name, values in inputs.items():
            part[name] = values
        return part

    def _seeds(self, batch: Any, layout: Layout, copies: int) -> _Seeds:
        of_graphs = getattr(batch, _SEEDS, None)
        if of_graphs is None:
            of_graphs = _seeds_of(layout)
        number = torch.arange(copies, device=of_graphs.device).repeat_interleave(layout.num_graphs)
        return _Seeds(of_graphs.repeat(copies) + number, number > 0, layout.numbers.repeat(copies))


@dataclass(frozen=True)
class _Seeds:
    """What the random numbers of a prediction depend on.

    Attributes:
        graphs: int64 [K B], a seed for every copy of every graph.
        noisy: bool [K B], whether the scores of its first attempt have noise.
        numbers: int64 [K N], the number of every node within its graph.
    """

    graphs: Tensor
    noisy: Tensor
    numbers: Tensor


def _seeds_of(layout: Layout) -> Tensor:
    drawn = [int(generator.integers(1 << 62)) for generator in GraphNoise(layout).generators()]
    return torch.tensor(drawn, dtype=torch.long)


def _repeated(layout: Layout, copies: int) -> tuple[Tensor, Tensor]:
    """Return the arcs and the graphs of the nodes of copies of a batch, one copy after the other."""
    number = torch.arange(copies, device=layout.graph.device)
    arcs = layout.edge_index.unsqueeze(1) + (number * layout.num_nodes)[:, None]
    graphs = layout.graph + (number * layout.num_graphs)[:, None]
    return arcs.flatten(1), graphs.flatten()
