"""Files of predictions, read and scored: arrays, texts, and names of classes."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

from graphbench.catalog.features import Location
from graphbench.catalog.names import card as card_of
from graphbench.core.errors import EvaluationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphbench.catalog.cards import Card
    from graphbench.data.dataset import GraphDataset
    from graphbench.evaluation.evaluator import Score
    from graphbench.loader import Splits

logger = logging.getLogger(__name__)

_OF_WORDS = (".txt", ".jsonl")
_NUMPY_STARTS = (b"\x93NUMPY", b"PK")  # .npy, and .npz, which is a ZIP file


def score_predictions(
    dataset: str, split: str, path: Path, scores: Any, *, limit: int | None, **source: Any
) -> Mapping[str, Mapping[str, float]]:
    """Score a file of predictions for one split of a dataset, in the split's order.

    One row per item, or the name of every graph's class; the outputs of every sample, of algorithms; or one text per
    prompt.

    Args:
        dataset: Id or alias.
        split: Name of the split.
        path: The file.
        scores: What floating-point predictions are.
        limit: Samples of the split.
        source: Where the data are: further arguments of :class:`graphbench.loader.Loader`.
    """
    from graphbench.evaluation.evaluator import Evaluator
    from graphbench.evaluation.texts import asks_for_text
    from graphbench.loader import Loader

    splits = Loader(card_of(dataset).address, limit=limit, **source).load(())
    card = splits.card
    card.split(split)
    if asks_for_text(card):
        return _score_texts(splits, split, path)
    if card.hints:
        from graphbench.evaluation.output_files import score_outputs

        arrays = _read_arrays(path)
        return {split: score_outputs(splits[split], arrays, scores, path)}
    if path.suffix in _OF_WORDS:
        return {split: _score_classes(splits, split, path)}
    loaded = read_predictions(path)
    data = splits[split]
    if card.task.type == "solve":
        return {split: _score_solutions(data, loaded, scores, path)}
    evaluator = Evaluator(card, scores=scores, expected_graphs=len(data))
    first = 0
    output = card.outputs[0]
    for batch in data.batches(4096):
        owner = _owners(batch, output.location.value)
        evaluator.update(batch.y, loaded[first : first + len(batch.y)], owner)
        first += len(batch.y)
    if first != len(loaded):
        raise EvaluationError(
            f"{path} has {len(loaded)} rows, {card.address} {split} has {first} items of its {output.location.value}s"
        )
    return {split: evaluator.compute()}


def _score_solutions(data: GraphDataset, loaded: NDArray[Any], scores: str, path: Path) -> Score:
    """Score solutions of all graphs of a split, or scores that are decoded: one row per node."""
    from graphbench.evaluation.solutions import SolutionEvaluator

    nodes = int(data.flat.node_ptr[-1])
    if len(loaded) != nodes:
        raise EvaluationError(
            f"{path} has {len(loaded):,} rows, the graphs of {data.card.address} {data.split} have {nodes:,} nodes; "
            "write one row per node, graph after graph (--limit N scores the first N graphs)"
        )
    evaluator = SolutionEvaluator(data.card, scores=scores, expected_graphs=len(data))
    first = 0
    for batch in data.batches(4096):
        evaluator.update(batch, loaded[first : first + batch.num_nodes])
        first += batch.num_nodes
    return evaluator.compute()


def _score_classes(splits: Splits, split: str, path: Path) -> Score:
    """Score the classes that the words of a ``.jsonl`` or ``.txt`` file name, one line per graph; others are wrong."""
    import numpy as np

    from graphbench.evaluation.class_names import NO_CLASS, score_answers

    answered, data = read_classes(path, splits.card), splits[split]
    if len(answered) != len(data):
        raise EvaluationError(
            f"{path} has {len(answered):,} answers, {splits.card.address} {split} has {len(data):,} graphs; write one "
            "line per graph, in the order of the split (--limit N scores the first N graphs)"
        )
    truth = np.concatenate([batch.y.numpy() for batch in data.batches(4096)])
    nameless = np.flatnonzero(answered == NO_CLASS)
    if len(nameless):
        first = int(nameless[0]) + 1
        logger.warning(
            "%d of %d answers name no class and count as wrong, the first in line %d of %s: %r",
            *(len(nameless), len(answered), first, path, read_texts(path)[first - 1][:80]),
        )
    return score_answers(splits.card, truth, answered)


def read_classes(path: Path, card: Card) -> NDArray[Any]:
    """Return the classes that the lines of a ``.jsonl`` or ``.txt`` file name; int64 ``[graphs]``, -1 for none.

    Raises:
        EvaluationError: If the file cannot be read, the card's output is no class of a graph or has no names, or no
            line names any.
    """
    from graphbench.evaluation.class_names import NO_CLASS, answered_classes

    output = card.outputs[0]
    if len(card.outputs) > 1 or output.location is not Location.GRAPH or output.name not in card.classes:
        what = f"{card.address} asks for {output.location.value} {output.type_name}, whose values have no names"
        raise EvaluationError(f"{path} holds words, but {what}; write numbers with numpy.save into a .npy file")
    texts = read_texts(path)
    found = answered_classes(card, output.name, texts)
    if (found == NO_CLASS).all():
        names = ", ".join(card.classes[output.name])
        raise EvaluationError(
            f"{path}: no answer names a class of {output.name!r}, such as {texts[0][:80]!r}; it is one of {names}"
        )
    return found


def _score_texts(splits: Splits, split: str, path: Path) -> Mapping[str, Mapping[str, float]]:
    from graphbench.evaluation.texts import TextSamples, text_scores

    outputs, card = read_texts(path), splits.card
    samples = TextSamples.of(splits[split])
    if len(outputs) != len(samples):
        raise EvaluationError(
            f"{path} has {len(outputs):,} answers, {card.address} {split} has {len(samples):,} prompts; write one line "
            "per prompt, in the order of the split (--limit N scores the first N prompts)"
        )
    return text_scores(card, split, samples, outputs)


def read_texts(path: Path) -> list[str]:
    """Return the texts of a ``.jsonl`` file, whose lines are strings or objects, or of a ``.txt`` file.

    The text of an object is its ``output``, or else its ``answer``. In a ``.txt`` file every line is a text as it
    stands.

    Raises:
        EvaluationError: If the file cannot be read, has another ending, or a line is no text.
    """
    if path.suffix not in _OF_WORDS:
        raise EvaluationError(f"{path} has no texts; write one answer per line into a .jsonl or .txt file")
    try:
        lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, ValueError) as error:
        raise EvaluationError(f"cannot read answers from {path}: {error}; write UTF-8, one answer per line") from error
    if lines == [""]:
        raise EvaluationError(f"the answers {path} are an empty file; write one answer per line")
    if path.suffix == ".txt":
        return lines
    return [_output_of(line, f"{path}, line {number}") for number, line in enumerate(lines, 1)]


def _output_of(line: str, where: str) -> str:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise EvaluationError(
            f"{where} is no JSON: {error}; write a string, or an object with 'output' or 'answer'"
        ) from error
    text = found.get("output", found.get("answer")) if isinstance(found, dict) else found
    if not isinstance(text, str):
        raise EvaluationError(
            f"{where} is {line!r:.80}; write a string, or an object whose 'output' or 'answer' is one"
        )
    return text


def read_predictions(path: Path) -> NDArray[Any]:
    """Return the array of a ``.npy`` file, or the array ``y_pred`` of a ``.npz`` file.

    Raises:
        EvaluationError: If the file cannot be read, has no such array, or the array has no rows.
    """
    found = _read_arrays(path)
    if "y_pred" not in found:
        raise EvaluationError(f"{path} holds {', '.join(found) or 'nothing'}; name the array y_pred")
    return found["y_pred"]


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a ``.npz`` file, or that of a ``.npy`` file under the name ``y_pred``."""
    import numpy as np

    _require_numpy_file(path)
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            arrays = {"y_pred": loaded}
        else:
            with loaded:
                arrays = {name: loaded[name] for name in loaded.files}
    except (OSError, ValueError, BadZipFile) as error:
        reason = "it holds Python objects, not numbers" if "pickle" in str(error) else error
        raise EvaluationError(f"cannot read predictions from {path}: {reason}; write them with numpy.save") from error
    single = next((array for array in arrays.values() if array.ndim == 0), None)
    if single is not None:
        raise EvaluationError(f"{path} holds the single value {single}; save one row per item")
    return arrays


def _require_numpy_file(path: Path) -> None:
    try:
        with path.open("rb") as file:
            start = file.read(max(map(len, _NUMPY_STARTS)))
    except OSError as error:
        raise EvaluationError(f"cannot read predictions from {path}: {error}; write them with numpy.save") from error
    if not start:
        raise EvaluationError(f"the predictions {path} are an empty file; write them with numpy.save")
    if not start.startswith(_NUMPY_STARTS):
        raise EvaluationError(
            f"{path} is no array file; write numbers with numpy.save (.npy, .npz), texts and names of classes into a "
            ".txt or .jsonl file, one per line"
        )


def _owners(batch: Any, location: str) -> Any:
    import torch

    if location == "node":
        return batch.batch
    return batch.batch[batch.edge_index[0]] if location == "edge" else torch.arange(batch.num_graphs)
