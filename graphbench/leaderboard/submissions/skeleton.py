"""The beginning of a submission: a folder with a ``submission.yaml`` to fill in."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from graphbench.catalog.cards import Card
from graphbench.catalog.names import card as card_of
from graphbench.core.arguments import checked_path
from graphbench.core.errors import ResultError
from graphbench.core.files import write_text
from graphbench.leaderboard.submissions.folder import DESCRIPTION, PREDICTIONS
from graphbench.leaderboard.submissions.groups import RANKED
from graphbench.records.record import MODEL_NAME, MODEL_NAME_RULE

_HEAD = """\
# The description of this submission. `graphbench submit check` reads it, and lists missing entries.
schema: 1
model: {model}  # letters, digits, dots, dashes and underscores
authors: {authors}  # required: one name or more
licence: {licence}  # of the records and predictions
description: {description}  # of the model, in a sentence or two
# code: https://...   # optional
# paper: https://...  # optional

# The budget of each dataset. All keys are optional; keys that are left out are listed as not stated.
datasets:
"""
_DATASET = """\
  {dataset}:
    # steps: 10000            # optimizer steps
    # batch_size: 256         # samples per step
    # parameters: 100000      # trained numbers
    # training_seconds: 3600  # of one run
    # cpu_seconds: 3500       # of one run, of all cores together; the budget class minutes needs it
    # gpu: NVIDIA A100        # or cpu: ...; gpus: 2 for several
    # limit: 1000             # only if the predictions are of the first samples of each split alone
    # deterministic: true     # only if neither seed nor chance has any influence on the scores
    # scores: logit           # only if floating-point predictions are not of the kind that {kind} tasks expect
"""


def start_submission(
    folder: str | os.PathLike[str],
    model: str,
    datasets: Sequence[str] = (),
    *,
    authors: Sequence[str] = (),
    licence: str = "CC-BY-4.0",
    description: str = "",
) -> tuple[Path, list[str]]:
    """Write the description of a submission, and return its file and where the predictions of each dataset go.

    Args:
        folder: The folder, which is made if it is not there.
        model: Name of the model: letters, digits, dots, dashes and underscores.
        datasets: Ids or aliases of the datasets, with their tasks.
        authors: Names of the authors.
        licence: Licence of the records and predictions.
        description: Description of the model.

    Raises:
        ResultError: If the folder has a description already or cannot be written to, or the name of the model is
            refused.
        UnknownDataset: If there is no such dataset.
    """
    place = checked_path("folder", folder)
    target = place / DESCRIPTION
    if not MODEL_NAME.fullmatch(model):
        raise ResultError(f"the model name {model!r} is refused; use {MODEL_NAME_RULE}")
    if target.exists():
        raise ResultError(f"{target} exists already; edit it, or name another folder")
    cards = {card.address: card for card in map(card_of, datasets)}
    text = _HEAD.format(
        model=json.dumps(model),
        authors=json.dumps(list(authors), ensure_ascii=False),
        licence=json.dumps(licence, ensure_ascii=False),
        description=json.dumps(description, ensure_ascii=False),
    )
    text += "".join(_about(card) for card in cards.values()) or "  {}\n"
    try:
        write_text(target, text)
    except OSError as error:
        raise ResultError(
            f"{target} cannot be written: {error.strerror}; name a folder that you may write to"
        ) from error
    return target, [_place_of(card) for card in cards.values()]


def _about(card: Card) -> str:
    """Return the optional keys on the training on a dataset, as comments of YAML."""
    from graphbench.tasks.registry import task_of

    main, *others = task_of(card).protocols
    text = _DATASET.format(dataset=card.address, kind=card.task.type)
    return text + "".join(
        f"    # protocol: {name}    # only if the model was not trained by {main}\n" for name in others
    )


def _place_of(card: Card) -> str:
    """Return the path and the format of the predictions of a dataset, in a sentence."""
    from graphbench.tasks.registry import task_of

    task = task_of(card)
    path = f"{PREDICTIONS}/{card.address.replace(':', '-')}/seed0/"
    return (
        f"{path}: {task.describe_files(RANKED)}; {card.split(RANKED).count:,} {task.samples} in the order of the split"
    )
