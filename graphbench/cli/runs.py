"""Training, scoring and reporting, as the command line asks for them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

from graphbench.catalog.names import card as card_of
from graphbench.catalog.names import catalog, list_datasets
from graphbench.errors import ConfigError, EvaluationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphbench.catalog.cards import Card
    from graphbench.training.trainer import RunResult


def train_seeds(
    dataset: str,
    model: str | None,
    *,
    seeds: Sequence[int] | None,
    output: Path | None,
    limit: int | None,
    eval_limit: int | None,
    records: Path | None,
    root: Path | None,
    workers: int | None,
    **options: Any,
) -> list[RunResult]:
    """Train one run per seed on the same data and return the results.

    Args:
        dataset: Id or alias of the dataset; or a group whose datasets are trained together.
        model: Name or path of the configuration; None for the domain's default.
        seeds: Seeds, each trained once; None for the configuration's own.
        output: Folder of the run; with several seeds, of their folders.
        limit: Samples of each split.
        eval_limit: Samples of each split but those trained and validated on.
        records: Folder that keeps the records too; written by process 0 alone under ``torchrun``.
        root: Folder of all datasets.
        workers: Processes that generate.
        options: Further arguments of :func:`graphbench.training.trainer.train`.
    """
    from graphbench.evaluation.results import save_record
    from graphbench.loader import Loader
    from graphbench.training.config import load_config
    from graphbench.training.splits import require_own_splits, split_limits
    from graphbench.training.trainer import train

    if not catalog().is_single(dataset):
        shared = {"output": output, "limit": limit, "records": records, "root": root, "workers": workers}
        return _train_together(dataset, model, seeds, eval_limit, shared, options)
    card = card_of(dataset)
    changes = {name: options[name] for name in ("steps", "overrides") if name in options}
    config = load_config(card.id, model, family=card.family, **changes)
    require_own_splits(config, card)
    data = Loader(card.id, root=root, limit=split_limits(config, card, limit, eval_limit), workers=workers).load(())
    chosen: list[int | None] = list(dict.fromkeys(seeds)) if seeds else [None]
    results = []
    for seed in chosen:
        folder = None if output is None else output if len(chosen) == 1 else output / f"seed{seed}"
        results.append(train(card.id, model, seed=seed, limit=limit, output=folder, data=data, **options))
        if records is not None and int(os.environ.get("RANK", "0")) == 0:
            save_record(results[-1].record, records)
    return results


def _train_together(
    group: str,
    model: str | None,
    seeds: Sequence[int] | None,
    eval_limit: int | None,
    shared: Mapping[str, Any],
    options: Mapping[str, Any],
) -> list[RunResult]:
    """Train one model on all datasets of a group and return one result per dataset."""
    from graphbench.evaluation.results import save_record
    from graphbench.training.trajectory_trainer import train_together

    if seeds and len(seeds) > 1:
        raise ConfigError(f"{len(seeds)} seeds are given for the group {group}; train them one after the other")
    arguments = {name: value for name, value in shared.items() if name != "records"}
    trained = train_together(
        group, model, seed=seeds[0] if seeds else None, eval_limit=eval_limit, **arguments, **options
    )
    if shared["records"] is not None and int(os.environ.get("RANK", "0")) == 0:
        for result in trained.values():
            save_record(result.record, shared["records"])
    return list(trained.values())


def score_run(
    folder: Path, splits: Sequence[str], *, root: Path | None, limit: int | None, device: str
) -> dict[str, Mapping[str, Mapping[str, float]]]:
    """Score the best weights of a run's folder: dataset -> split -> score; several for a run on a group."""
    from graphbench.training.evaluate import evaluate_together

    return dict(evaluate_together(folder, splits, root=root, limit=limit, device=device))


def score_predictions(
    dataset: str, split: str, path: Path, scores: Any, *, root: Path | None, limit: int | None
) -> Mapping[str, Mapping[str, float]]:
    """Score a file of predictions for one split, in the split's order.

    One row per item; the outputs of every sample, of algorithms; or one text per prompt.
    """
    from graphbench.evaluation.evaluator import Evaluator
    from graphbench.evaluation.texts import asks_for_text
    from graphbench.loader import Loader

    card = card_of(dataset)
    card.split(split)
    if asks_for_text(card):
        return _score_texts(card, split, path, root=root, limit=limit)
    if card.hints:
        from graphbench.evaluation.output_files import score_outputs

        arrays = _read_arrays(path)
        return {split: score_outputs(Loader(card.id, root=root, limit=limit).load(())[split], arrays, scores, path)}
    loaded = read_predictions(path)
    data = Loader(card.id, root=root, limit=limit).load(())[split]
    evaluator = Evaluator(card, scores=scores, expected_graphs=len(data))
    first = 0
    output = card.outputs[0]
    for batch in data.batches(4096):
        owner = _owners(batch, output.location.value)
        evaluator.update(batch.y, loaded[first : first + len(batch.y)], owner)
        first += len(batch.y)
    if first != len(loaded):
        raise EvaluationError(
            f"{path} has {len(loaded)} rows, {card.id} {split} has {first} items of its {output.location.value}s"
        )
    return {split: evaluator.compute()}


def _score_texts(
    card: Card, split: str, path: Path, *, root: Path | None, limit: int | None
) -> Mapping[str, Mapping[str, float]]:
    from graphbench.evaluation.texts import TextSamples, text_scores
    from graphbench.loader import Loader

    outputs = read_texts(path)
    samples = TextSamples.of(Loader(card.id, root=root, limit=limit).load(())[split])
    if len(outputs) != len(samples):
        raise EvaluationError(
            f"{path} has {len(outputs):,} answers, {card.id} {split} has {len(samples):,} prompts; write one line per "
            "prompt, in the order of the split (--limit N scores the first N prompts)"
        )
    return text_scores(card, split, samples, outputs)


def read_texts(path: Path) -> list[str]:
    """Return the texts of a ``.jsonl`` file, whose lines are strings or objects with ``output``, or of a ``.txt`` file.

    In a ``.txt`` file every line is a text as it stands.

    Raises:
        EvaluationError: If the file cannot be read, has another ending, or a line is no text.
    """
    if path.suffix not in (".jsonl", ".txt"):
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
        raise EvaluationError(f"{where} is no JSON: {error}; write a string, or an object with 'output'") from error
    text = found.get("output") if isinstance(found, dict) else found
    if not isinstance(text, str):
        raise EvaluationError(f"{where} is {line!r:.80}; write a string, or an object whose 'output' is one")
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

    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            arrays = {"y_pred": loaded}
        else:
            with loaded:
                arrays = {name: loaded[name] for name in loaded.files}
    except EOFError:
        raise EvaluationError(f"the predictions {path} are an empty file; write them with numpy.save") from None
    except (OSError, ValueError, BadZipFile) as error:
        raise EvaluationError(f"cannot read predictions from {path}: {error}; write them with numpy.save") from error
    single = next((array for array in arrays.values() if array.ndim == 0), None)
    if single is not None:
        raise EvaluationError(f"{path} holds the single value {single}; save one row per item")
    return arrays


def _owners(batch: Any, location: str) -> Any:
    import torch

    if location == "node":
        return batch.batch
    return batch.batch[batch.edge_index[0]] if location == "edge" else torch.arange(batch.num_graphs)


def write_report(selector: Sequence[str] | None, records: Path | None, output: Path, title: str) -> list[Path]:
    """Build the report of the records of the chosen datasets."""
    from graphbench.evaluation.report import build_report
    from graphbench.evaluation.results import load_records

    chosen = set(list_datasets(selector or None))
    found = [record for record in load_records("*", records) if record.dataset in chosen]
    return build_report(found, output, title=title)
