"""The interface of the Open Graph Benchmark over graphbench's datasets, so that a script needs one changed import.

``from ogb.graphproppred import PygGraphPropPredDataset, Evaluator`` becomes ``from graphbench.interop.ogb import ...``,
and the name of the dataset is one of ours. The package ``ogb`` is not needed. If a dataset predicts values of graphs,
``y`` is exactly as in ogb; if it predicts values of nodes or edges, ``y`` has one row per node or edge.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data, Dataset

from graphbench.catalog.cards import CORE_SPLITS, Card
from graphbench.catalog.features import Kind
from graphbench.core.errors import ArgumentError, EvaluationError
from graphbench.core.ragged import offsets
from graphbench.evaluation.metrics import metric
from graphbench.evaluation.score import Score
from graphbench.interop.cards import card_of
from graphbench.loader import Loader, Splits

_TASK_TYPES = {
    Kind.SCALAR: "regression",
    Kind.CATEGORICAL: "multiclass classification",
    Kind.MASK: "binary classification",
}
_NAMES = {"val": "valid"}  # of splits, where ogb calls them otherwise


class _Facts:
    """The facts that ogb states of a dataset, taken from its card.

    Attributes:
        name: Address of the dataset.
        num_tasks: Columns of ``y``.
        task_type: ``regression``, ``binary classification`` or ``multiclass classification``.
        eval_metric: Name of the metric that ranks models.
        num_classes: Classes of the target; 2 for masks; -1 for regression, as in ogb.
        level: ``graph``, ``node`` or ``edge``: the kind of item that a row of ``y`` describes.
    """

    def __init__(self, of: Any) -> None:
        card = card_of(of)
        kinds, locations = {f.kind for f in card.outputs}, {f.location for f in card.outputs}
        if (
            card.task.type != "predict"
            or card.hints
            or len(kinds) != 1
            or len(locations) != 1
            or not kinds <= set(_TASK_TYPES)
        ):
            raise ArgumentError(
                f"{card.address} (task {card.task.type}) has no counterpart in ogb, whose datasets have targets of one "
                "type at one kind of item; use graphbench.Loader and graphbench.Evaluator, or name another of its tasks"
            )
        (kind,), (location,) = kinds, locations
        self.card: Card = card
        self.name = card.address
        self.num_tasks = sum(f.width for f in card.outputs)
        self.task_type = _TASK_TYPES[kind]
        self.eval_metric = card.metrics.primary
        self.num_classes = {Kind.SCALAR: -1, Kind.MASK: 2}.get(kind, card.outputs[0].classes)
        self.level = str(location)


class PygGraphPropPredDataset(Dataset):  # type: ignore[misc]
    """All splits of a dataset as one PyG dataset, with the interface of the class of that name in ogb.

    ``dataset[i]`` is a ``Data`` whose ``y`` is ``[1, num_tasks]`` (``[items, num_tasks]`` at nodes and edges): float32
    for regression, int64 for classes. ``dataset[split_idx["train"]]`` is the training split.

    Args:
        name: Id or alias of a dataset whose task is to predict values, its task where it has several.
        root: Folder of all datasets; default ``$GRAPHBENCH_ROOT``, else the user's cache folder.
        transform: ``Data -> Data``; applied at every access.
        pre_transform: ``Data -> Data``; applied once at loading.
        **options: Further arguments of ``Loader``, such as ``limit``.

    Attributes:
        num_tasks: Columns of ``y``.
        task_type: ``regression``, ``binary classification`` or ``multiclass classification``.
        eval_metric: Name of the metric that ranks models.
        level: ``graph``, ``node`` or ``edge``: the kind of item that a row of ``y`` describes.
        splits: The ``Splits`` behind it.

    Raises:
        ArgumentError: If the dataset has no such targets.
    """

    def __init__(
        self,
        name: str,
        root: str | Path | None = None,
        transform: Callable[[Data], Data] | None = None,
        pre_transform: Callable[[Data], Data] | None = None,
        **options: Any,
    ) -> None:
        self.facts = _Facts(name)
        self.splits: Splits = Loader(name, pre_transform=pre_transform, root=root, **options).load("all")
        self.meta_info = vars(self.facts)
        self.name, self.num_tasks, self.level = self.facts.name, self.facts.num_tasks, self.facts.level
        self.task_type, self.eval_metric = self.facts.task_type, self.facts.eval_metric
        others = [split for split in self.splits if split not in CORE_SPLITS]
        self._names = [*CORE_SPLITS, *others]
        self._first = offsets(np.array([len(self.splits[split]) for split in self._names]))
        super().__init__(None, transform)

    def get_idx_split(self, split_type: str | None = None) -> dict[str, torch.Tensor]:
        """Return the numbers of the graphs of every split, int64: ``train``, ``valid``, ``test``, and larger ones.

        Args:
            split_type: Ignored, as a dataset has one split; ogb's scripts may give it.
        """
        return {
            _NAMES.get(name, name): torch.arange(int(first), int(last))
            for name, first, last in zip(self._names, self._first[:-1], self._first[1:], strict=True)
        }

    @property
    def num_classes(self) -> int:
        """Classes of the target; 2 for masks; -1 for regression."""
        return self.facts.num_classes

    def len(self) -> int:
        """Return the number of graphs of all splits."""
        return int(self._first[-1])

    def get(self, idx: int) -> Data:
        """Return one graph."""
        place = bisect_right(self._first, idx) - 1
        data = self.splits[self._names[place]][int(idx - self._first[place])]
        kind = torch.float32 if self.facts.task_type == "regression" else torch.long
        data.y = data.y.to(kind).reshape(-1, self.num_tasks)
        return data


class Evaluator:
    """The evaluator of a dataset with the interface of ogb's: ``eval({"y_true": ..., "y_pred": ...})``.

    Args:
        name: Id or alias of the dataset.
        scores: Kind of floating-point predictions of masks; ``logit`` by default, as ogb's models return logits.

    Attributes:
        name: Address of the dataset.
        num_tasks: Columns of ``y_true`` and ``y_pred``.
        eval_metric: Name of the metric that ranks models, a key of the dictionary from :meth:`eval`.

    Raises:
        ArgumentError: If the dataset has no counterpart in ogb.
    """

    def __init__(self, name: str, *, scores: str = "logit") -> None:
        from graphbench.tasks.evaluator import Evaluator as TaskEvaluator

        self._facts = _Facts(name)
        self.name, self.num_tasks, self.eval_metric = self._facts.name, self._facts.num_tasks, self._facts.eval_metric
        self._evaluator = TaskEvaluator(self._facts.card, scores=scores)

    def eval(self, input_dict: Mapping[str, Any]) -> dict[str, float]:
        """Return metric -> score, the one of ``eval_metric`` first.

        Args:
            input_dict: ``y_true`` and ``y_pred``, see :attr:`expected_input_format`; ``batch``, the graph of every row,
                where rows are nodes or edges and metrics per graph are wanted.

        Raises:
            EvaluationError: If a key is missing, or shapes or values are wrong.
        """
        for key in ("y_true", "y_pred"):
            if key not in input_dict:
                raise EvaluationError(f"{key!r} is missing; {self.expected_input_format}")
        true, predicted = (self._outputs(key, input_dict[key]) for key in ("y_true", "y_pred"))
        score: Score = self._evaluator.evaluate(true, predicted, input_dict.get("batch"))
        return score.to_dict()

    def _outputs(self, key: str, values: Any) -> Any:
        """Return values as the evaluator takes them: output -> values, or the values of the only output."""
        array = values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else values
        if not isinstance(array, np.ndarray) or array.ndim != 2:
            what = f"shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
            raise EvaluationError(f"{key} has {what}; {self.expected_input_format}")
        outputs = self._facts.card.outputs
        classes = self._facts.task_type == "multiclass classification"
        columns = {self.num_tasks, self._facts.num_classes} if classes and key == "y_pred" else {self.num_tasks}
        if array.shape[1] not in columns:
            raise EvaluationError(f"{key} has {array.shape[1]} columns; {self.expected_input_format}")
        if len(outputs) == 1:
            return _column(array)
        ends = offsets(np.array([f.width for f in outputs]))
        return {f.name: _column(array[:, a:b]) for f, a, b in zip(outputs, ends[:-1], ends[1:], strict=True)}

    @property
    def expected_input_format(self) -> str:
        """The input that :meth:`eval` takes."""
        what = {"regression": "values", "binary classification": "logits, or labels as integers"}.get(
            self._facts.task_type, "class numbers, or scores of shape (items, num_classes)"
        )
        return (
            f"==== Expected input format of Evaluator for {self.name}\n"
            "{'y_true': y_true, 'y_pred': y_pred}\n"
            f"- y_true: numpy ndarray or torch tensor of shape (num_{self._facts.level}s, num_tasks)\n"
            f"- y_pred: numpy ndarray or torch tensor of shape (num_{self._facts.level}s, num_tasks)\n"
            f"where y_pred stores {what},\n"
            f"num_tasks is {self.num_tasks}, and each row corresponds to one {self._facts.level}.\n"
        )

    @property
    def expected_output_format(self) -> str:
        """The value that :meth:`eval` returns."""
        about = metric(self.eval_metric)
        direction = "higher" if about.higher_is_better else "lower"
        return (
            f"==== Expected output format of Evaluator for {self.name}\n"
            f"{{'{self.eval_metric}': {self.eval_metric}, ...}}\n"
            f"- {self.eval_metric} (float): the metric that ranks models; {direction} is better\n"
            f"- ... further metrics of the card: {', '.join(m for m in self._facts.card.metrics.also) or 'none'}\n"
        )


def _column(array: NDArray[Any]) -> NDArray[Any]:
    return array[:, 0] if array.shape[1] == 1 else array
