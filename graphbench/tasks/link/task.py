"""Links: every hidden edge of a graph is ranked among negatives that share its source."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from graphbench.catalog.links import PAIRS, QUERIES
from graphbench.core.errors import CardError, EvaluationError
from graphbench.core.validation import StrictModel
from graphbench.data.arrays.link_heuristics import Heuristics
from graphbench.data.batches.sample_ids import ids_of
from graphbench.evaluation.array_files import read_arrays
from graphbench.evaluation.evaluator import BaseEvaluator
from graphbench.evaluation.metrics import metric
from graphbench.tasks.base import OptionsType, Task
from graphbench.tasks.files import SAME_LIMIT, SINGLE, most_array_bytes, rows_of_batches, rows_of_output, write_arrays
from graphbench.tasks.link.evaluator import LinkEvaluator

if TYPE_CHECKING:
    from torch import Tensor

    from graphbench.data.arrays.samples import Samples
    from graphbench.data.batches.dataset import GraphDataset

_READING_BATCH = 1


class LinkTrainOptions(StrictModel):
    """The options of training on links, ``training.task`` of a configuration.

    Attributes:
        queries: Most links of a graph that a step asks for, chosen at random with new negatives in every step.
    """

    queries: int = Field(default=1024, ge=1)


class LinkTask(Task):
    """Rank the hidden edges of graphs among candidate pairs.

    A model learns by the cross-entropy of choosing the link among the candidates of its query.
    """

    type: ClassVar[str] = "link"
    train_options_type: ClassVar[OptionsType] = LinkTrainOptions
    train_options: LinkTrainOptions
    floor_predictors: ClassVar[str] = "scores of pairs that follow from the edges alone, and random scores"

    def check_card(self) -> None:
        """Refuse a card without links."""
        super().check_card()
        if self.card.links is None:
            raise CardError(
                f"{self.card.path} ({self.card.address}): a link task needs the section links, which says how "
                "candidate pairs are drawn, and one output, a mask at pairs"
            )
        for name in (self.card.metrics.primary, *self.card.metrics.also):
            if not metric(name).needs_scores:
                raise CardError(
                    f"{self.card.path} ({self.card.address}): the metric {name!r} needs a threshold, and scores of "
                    "links have none; use mrr, hits_at_10 and the like, roc_auc or average_precision"
                )

    @property
    def output(self) -> str:
        """Name of the output: the mask of links among the candidate pairs."""
        return self.card.outputs[0].name

    def batches(
        self, train: Any, size: int, *, seed: int, start: int = 0, share: tuple[int, int] = (0, 1)
    ) -> Iterator[Any]:
        """Yield training batches without end; every step asks for other links, with new negatives."""
        for step, batch in enumerate(super().batches(train, size, seed=seed, start=start, share=share), start):
            if batch is None:
                yield batch
                continue
            ids = ids_of(batch)
            numbers = range(batch.num_graphs) if ids is None else ids.numbers.tolist()
            rng = np.random.Generator(np.random.Philox(key=seed, counter=(step << 128) | (share[0] << 64)))
            yield train.flat.redrawn(batch, numbers, self.train_options.queries, rng)

    def losses(self, outputs: Mapping[str, Tensor], batch: Any) -> dict[str, Tensor]:
        """Return the mean over queries of the cross-entropy of choosing the link."""
        from graphbench.models.graphs import segment_log_softmax

        queries = self._queries(batch)
        chosen = segment_log_softmax(outputs[self.output].float(), batch[QUERIES], queries)[batch[self.output] == 1]
        return {self.output: -chosen.sum() / max(queries, 1)}

    def loss_weights(self, batch: Any) -> dict[str, Any]:
        """Return the number of queries."""
        return {self.output: float(self._queries(batch))}

    @staticmethod
    def _queries(batch: Any) -> int:
        queries = batch[QUERIES]
        return int(queries[-1]) + 1 if queries.numel() else 0

    def predictions(self, outputs: Mapping[str, Tensor], batch: Any) -> dict[str, Tensor]:
        """Return the logits of the candidate pairs, which rank them."""
        return {self.output: outputs[self.output].detach().float()}

    def evaluator(self, *, scores: str | None = None, expected_graphs: int | None = None) -> BaseEvaluator:
        """Return an evaluator of the ranks of links."""
        metrics, output = self.card.metrics, self.card.outputs[0]
        return LinkEvaluator(output, metrics.primary, metrics.also, scores=scores, expected_graphs=expected_graphs)

    def floors(self, train: Samples, samples: Samples) -> dict[str, dict[str, float]]:
        """Return the scores of the heuristics, and of random scores, on the candidate pairs of every graph."""
        from graphbench.data.batches.links import candidates_of, hidden_links

        assert self.card.links is not None
        evaluators: defaultdict[str, BaseEvaluator] = defaultdict(self.evaluator)
        for graph in range(len(samples)):
            links = hidden_links(samples, graph, self.output, directed=self.card.directed)
            drawn = candidates_of(links, self.card.links)
            if not len(drawn.query):
                continue
            scores = {"random": np.random.Generator(np.random.Philox(graph)).random(len(drawn.query))}
            scores |= Heuristics(links.read, links.nodes, directed=self.card.directed).scores(drawn.pairs)
            for name, of_pairs in scores.items():
                evaluators[name].update(drawn.is_link, of_pairs, drawn.query)
        return {name: evaluator.compute().to_dict() for name, evaluator in evaluators.items()}

    def read_predictions(self, path: Path, split: GraphDataset, scores: str | None = None) -> Iterator[tuple[Any, Any]]:
        """Yield (batch, predictions), with one row per candidate pair."""
        batches = list(split.batches(_READING_BATCH))
        rows = sum(batch[PAIRS].shape[1] for batch in batches)
        arrays = rows_of_output(read_arrays(path, most_array_bytes(split, items=rows)), [self.output], path)
        wrong = EvaluationError(
            f"{path} has {len(arrays[self.output]):,} rows, {self.card.address} {split.split} has {rows:,} candidate "
            f"pairs here; write one score per column of pair_index, graph after graph, and {SAME_LIMIT}"
        )
        yield from rows_of_batches(arrays, batches, lambda: wrong)

    def describe_rows(self) -> str:
        """Return the meaning of a row of the array."""
        return "a score per column of pair_index, graph after graph, higher for pairs that are more likely to be a link"

    def write_predictions(self, path: Path, predictions: Iterable[Any]) -> Path:
        """Write the scores of the candidate pairs to a ``.npz`` file."""
        parts: list[NDArray[Any]] = [
            np.asarray(batch[self.output] if isinstance(batch, Mapping) else batch) for batch in predictions
        ]
        return write_arrays(path, {SINGLE: np.concatenate(parts)})
