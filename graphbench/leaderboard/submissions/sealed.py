"""The verification of sealed entries: their weights are scored on a draw of the data that nobody could know before.

Models of this package are rebuilt from the header of their weights, so no foreign code runs. An author's own code runs
in a closed child process, which sees batches without labels; it runs twice, and once more with shuffled weights.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from graphbench._version import __version__
from graphbench.catalog.cards import Card
from graphbench.catalog.costs import seconds_to_draw
from graphbench.catalog.names import card as card_of
from graphbench.core.arguments import checked_path
from graphbench.core.errors import GraphBenchError, ResultError
from graphbench.core.files import default_root
from graphbench.core.processes.isolated import IsolationLimits
from graphbench.core.untrusted import text_fault
from graphbench.core.words import duration
from graphbench.data.components.domain import find
from graphbench.evaluation.inputs import AS_LOGITS
from graphbench.evaluation.score import replicates_of
from graphbench.leaderboard.submissions.comparisons import are_apart, interval, why_apart
from graphbench.leaderboard.submissions.data import CanonicalData
from graphbench.leaderboard.submissions.description import Description, StatedBudget, read_description, statement_of
from graphbench.leaderboard.submissions.findings import Level, SubmittedDataset
from graphbench.leaderboard.submissions.folder import CODE, DESCRIPTION, contents_of
from graphbench.leaderboard.submissions.foreign_code import numbers_in
from graphbench.leaderboard.submissions.package_weights import refuse_package_weights
from graphbench.leaderboard.submissions.records import check_record, read_submitted
from graphbench.leaderboard.submissions.sealed_scores import Answer, Scoring
from graphbench.leaderboard.submissions.seals import Seal, datasets_of, read_seal, require_unchanged, seal_of
from graphbench.records.files import save_record, stored_records
from graphbench.records.machine import hardware
from graphbench.records.provenance import EarlierSeal, Verification, draw_of
from graphbench.records.record import RunRecord
from graphbench.records.verifications import begin_attempt, confirm

if TYPE_CHECKING:
    from graphbench.data.batches.dataset import GraphDataset
    from graphbench.evaluation.score import Score
    from graphbench.loader import Splits

Outcome = Literal["verified", "algorithm", "refused", "impossible"]

SPLIT = "test"
MOST_SECONDS = 3600.0
"""Most processor seconds that a sealed draw is generated for without being asked."""

_SAME = 1e-3  # relative difference between a record and its weights stored with 16 bits
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class SealedResult:
    """The outcome for one seed of an entry on one dataset.

    Attributes:
        dataset: Address of the dataset.
        seed: The seed.
        outcome: ``verified``; ``algorithm``: verified, and the weights of the code make no difference; ``refused``; or
            ``impossible``: the dataset cannot be drawn again.
        reason: Why it is refused or impossible; empty otherwise.
        known: The score on the canonical draw, computed from the weights.
        record: The record with its verification; None where there is none.
        path: Its file; None if none was written.
    """

    dataset: str
    seed: int
    outcome: Outcome
    reason: str = ""
    known: float | None = None
    record: RunRecord | None = None
    path: Path | None = None

    @property
    def verification(self) -> Verification | None:
        """The score on the sealed draw."""
        return None if self.record is None else self.record.verification


def verify_sealed(
    folder: str | os.PathLike[str],
    beacon: str,
    *,
    commitment: str | None = None,
    root: str | os.PathLike[str] | None = None,
    limit: int | None = None,
    workers: int | None = None,
    records: str | os.PathLike[str] | None = None,
    patience: float = MOST_SECONDS,
    limits: IsolationLimits | None = None,
    progress: bool | None = None,
) -> list[SealedResult]:
    """Score the weights of a sealed entry on the draw that follows from its commitment and a public text.

    Anybody who has the folder and the text obtains the same draw, and on a CPU of the same kind the same scores.

    Args:
        folder: The sealed folder.
        beacon: A public text that did not exist when the entry was sealed: the value of a random beacon, the hash of a
            block, thrown dice.
        commitment: The commitment that was published before the text existed; None takes the folder's, which says
            nothing of when the entry was sealed.
        root: Folder of all datasets; the default one when None.
        limit: Most samples of the draw; None for the whole test split.
        workers: Processes that generate data.
        records: Folder of the records that are written; None writes nothing.
        patience: Most processor seconds that the draw of a dataset may cost; a costlier one is not generated.
        limits: Limits of the child process that runs an author's code.
        progress: Show progress bars; None shows them in a terminal.

    Raises:
        ResultError: If the folder is not sealed, was changed since, or was verified with another beacon already; or if
            ``records`` has a record of the same model and seed on more samples than ``limit``, which would be replaced.
    """
    place = checked_path("folder", folder)
    beacon = _checked_beacon(beacon)
    sealed = read_seal(place)
    if commitment is not None and not _HASH.fullmatch(commitment.strip().lower()):
        raise ResultError(
            f"the commitment {commitment!r:.80} is not one: a commitment has 64 hexadecimal digits, which `graphbench "
            "submit seal` prints; give all of them"
        )
    if commitment is not None and commitment.strip().lower() != sealed.commitment:
        raise ResultError(
            f"{place} has the commitment {sealed.commitment}, and {commitment!r:.80} was published: it was sealed "
            "anew, perhaps when the text was known; verify the folder that was published"
        )
    require_unchanged(place, sealed)
    target = None if records is None else checked_path("records", records)
    known = [] if target is None or not target.is_dir() else [record for _, record in stored_records(records=target)]
    _require_one_beacon(sealed, beacon, known)
    where = default_root() if root is None else checked_path("root", root)
    entry = _Entry(place, sealed, beacon, where, limit, workers, patience, limits or IsolationLimits(), progress)
    entry.require_no_larger(known)
    if target is not None:
        begin_attempt(target, sealed.commitment, beacon)
    results = []
    for dataset, seed, weights in entry.runs():
        result = entry.result(dataset, seed, weights, known)
        record = result.record
        if record is not None and target is not None:
            result = replace(result, path=save_record(record, target))
            confirm(target, record.digest)
        results.append(result)
    return results


def rehearse(
    folder: str | os.PathLike[str],
    *,
    samples: int = 16,
    root: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    limits: IsolationLimits | None = None,
) -> list[tuple[str, int, float]]:
    """Score an entry on the first samples of the known draw, sealed or not, as a verification would.

    The code of an author's model is run twice, and must answer both times with the same predictions.

    Args:
        folder: The folder of the entry.
        samples: Number of samples.
        root: Folder of all datasets; the default one when None.
        workers: Processes that generate data.
        limits: Limits of the child process that runs an author's code.

    Returns:
        (dataset, seed, primary score) of everything that a verification scores.

    Raises:
        ResultError: If an answer fails; the message says of which weights, and why.
    """
    place = checked_path("folder", folder)
    made = seal_of(place, datetime.now(UTC))
    where = default_root() if root is None else checked_path("root", root)
    entry = _Entry(place, made, "rehearsal", where, samples, workers, MOST_SECONDS, limits or IsolationLimits(), False)
    run_scores = []
    for dataset, seed, weights in entry.runs():
        card = card_of(dataset)
        if entry.why_impossible(card):
            continue
        try:
            run_scores.append((dataset, seed, entry.known_score(card, weights).primary))
        except GraphBenchError as error:
            words = str(error).replace(AS_LOGITS, f"write `scores: logit` below {dataset} in {DESCRIPTION}")
            raise ResultError(f"seed {seed} of {dataset} does not answer: {words}") from error
    return run_scores


@dataclass(frozen=True)
class _Entry:
    """A sealed folder and the settings of its verification."""

    folder: Path
    sealed: Seal
    beacon: str
    root: Path
    limit: int | None
    workers: int | None
    patience: float
    limits: IsolationLimits
    progress: bool | None

    @property
    def description(self) -> Description:
        return read_description(self.folder / DESCRIPTION)

    @property
    def scoring(self) -> Scoring:
        hidden = (self.root, default_root())
        code = self.folder / CODE if self.sealed.code else None
        return Scoring(code, self.description, hidden, self.limits, self.progress)

    def runs(self) -> list[tuple[str, int, Path | None]]:
        """Return (dataset, seed, file of weights) of everything that is scored."""
        contents = contents_of(self.folder)
        if contents.weights:
            return [(card_of(file.dataset).address, file.seed, file.path) for file in contents.weights]
        return [(address, 0, None) for address in datasets_of(contents, self.description)]

    def require_no_larger(self, known: Sequence[RunRecord]) -> None:
        """Refuse to replace records of more samples than are verified.

        Raises:
            ResultError: With the dataset, the seed and both numbers.
        """
        runs = {(dataset, seed) for dataset, seed, _ in self.runs()}
        for record in known:
            scored = record.graphs_scored.get(SPLIT, 0)
            same = record.model == self.sealed.model and (record.dataset, record.seed) in runs
            if self.limit is not None and same and scored > self.limit:
                raise ResultError(
                    f"the folder of records has {record.model} on {record.dataset}, seed {record.seed}, scored on "
                    f"{scored:,} samples, and a verification on {self.limit:,} would replace it; leave the limit out, "
                    "or choose another folder of records"
                )

    def result(self, dataset: str, seed: int, weights: Path | None, known: Sequence[RunRecord]) -> SealedResult:
        card = card_of(dataset)
        if reason := self.why_impossible(card):
            return SealedResult(dataset, seed, "impossible", reason)
        try:
            if weights is not None:
                refuse_package_weights(card.address, weights, self.sealed.model)
            splits = self._splits(card)
            scores = self.scoring.answer(card.address, weights, *splits)
            if reason := why_apart(scores.known, scores.sealed, "the canonical draw"):
                return SealedResult(dataset, seed, "refused", reason, scores.known.primary)
            record = self._record(card, seed, weights, scores, splits[0])
            verification = self._verification(scores, splits[1], _earlier(dataset, seed, record, self.sealed, known))
        except GraphBenchError as error:
            return SealedResult(dataset, seed, "refused", str(error))
        record = record.model_copy(update={"recomputed_from": "weights", "verification": verification})
        outcome: Outcome = "algorithm" if scores.algorithm else "verified"
        return SealedResult(dataset, seed, outcome, "", scores.known.primary, record)

    # -------------------------------------------------------------------------------------------------- data

    def why_impossible(self, card: Card) -> str:
        if not find("generator", card.generator).drawn:
            return "its samples are read from files and cannot be drawn again; scores on it stay stated or recomputed"
        seconds = seconds_to_draw(card, SPLIT, self.limit)
        if seconds is not None and seconds > self.patience:
            return (
                f"a new draw of its {SPLIT} split takes {duration(seconds)} of processor time, most of it for "
                f"labels; give a limit on the samples, or more patience"
            )
        return ""

    def known_score(self, card: Card, weights: Path | None) -> Score:
        """Return the score on the canonical draw."""
        return self.scoring.score(card.address, weights, self._split(card))

    def _splits(self, card: Card) -> tuple[GraphDataset, GraphDataset]:
        """Return the canonical and the sealed draw of the split."""
        draw = draw_of(self.sealed.commitment, self.beacon)
        return self._split(card), self._split(card, data_seed=draw, keeps_choices=True)

    def _split(self, card: Card, **draw: Any) -> GraphDataset:
        """Return the split of a draw, by default the canonical one."""
        from graphbench.loader import Loader

        options: dict[str, Any] = {"root": self.root, "workers": self.workers, "progress": self.progress}
        splits = cast("Splits", Loader(card.address, limit=self.limit, **draw, **options).load(()))
        return splits.labelled(SPLIT)

    # ----------------------------------------------------------------------------------------------- records

    def _record(self, card: Card, seed: int, weights: Path | None, scores: Answer, split: GraphDataset) -> RunRecord:
        """Return the record of the canonical score: the author's, if it has the weights' score on the test split.

        Of the author's record, only what the weights show is kept of scores: the score on the test split, computed
        here. The costs stay as stated.
        """
        author_record = self._own_record(card, seed)
        if author_record is None:
            return self._record_of_weights(card, seed, weights, scores.known, split)
        stated = author_record.scores.get(SPLIT, {}).get(scores.known.primary_name)
        if stated is None:
            raise ResultError(f"the record of seed {seed} has no {scores.known.primary_name} on {SPLIT}")
        same_samples = author_record.graphs_scored.get(SPLIT) == scores.known.graphs
        agrees = (
            math.isclose(stated, scores.known.primary, rel_tol=_SAME, abs_tol=1e-6)
            if same_samples
            else not are_apart(stated, scores.known, author_record.replicates.get(SPLIT, []))
        )
        if not agrees:
            raise ResultError(
                f"the record of seed {seed} states {scores.known.primary_name} {stated:g} on {SPLIT}, and its weights "
                f"score {scores.known.primary:g}; give the weights of the run that is recorded"
            )
        score = scores.known
        computed: dict[str, Any] = {
            "scores": {SPLIT: dict(score)},
            "graphs_scored": {SPLIT: score.graphs},
            "replicates": replicates_of({SPLIT: score}),
            "scores_stated": (),
            "predictions": {},
            "data_hashes": {**author_record.data_hashes, SPLIT: split.content_hash},
        }
        if weights is not None:
            computed |= {"deterministic": False, "parameters": self._parameters(card, weights)}
        return author_record.model_copy(update=computed)

    def _parameters(self, card: Card, weights: Path) -> int:
        """Return the number of trained numbers: of a model of this package, or of all tensors that code is given."""
        from graphbench.models.build import count_parameters
        from graphbench.training.weights.load import load_model

        return numbers_in(weights) if self.sealed.code else count_parameters(load_model(card.address, weights))

    def _own_record(self, card: Card, seed: int) -> RunRecord | None:
        contents, data = contents_of(self.folder), CanonicalData(self.root, workers=self.workers)
        for path in contents.records:
            record = read_submitted(path).record
            if (record.dataset, record.seed, record.data_seed) != (card.address, seed, 0):
                continue
            if record.model != self.sealed.model:
                raise ResultError(f"{contents.name_of(path)} is of the model {record.model}, not {self.sealed.model}")
            entry = SubmittedDataset(card.address)
            if not check_record(record, contents.name_of(path), entry, data):
                raise ResultError(entry.of_level(Level.REFUSED)[0].line)
            return record
        return None

    def _record_of_weights(
        self, card: Card, seed: int, weights: Path | None, score: Score, split: GraphDataset
    ) -> RunRecord:
        budget = self.description.budget(card.address) or StatedBudget()
        if budget.parameters is None and weights is not None:
            budget = budget.model_copy(update={"parameters": numbers_in(weights)})
        config = {"seal": "code" if self.sealed.code else "package"}
        statement = statement_of(self.description, seed, budget, config)
        return RunRecord.of_statement({SPLIT: split}, {SPLIT: score}, statement)

    def _verification(self, scores: Answer, split: GraphDataset, earlier: tuple[EarlierSeal, ...]) -> Verification:
        score = scores.sealed
        low, high = interval(score)
        return Verification(
            commitment=self.sealed.commitment,
            beacon=self.beacon,
            sealed_at=self.sealed.sealed_at,
            verified_at=datetime.now(UTC).replace(microsecond=0),
            split=SPLIT,
            graphs=len(split),
            metric=score.primary_name,
            score=score.primary,
            low=low,
            high=high,
            data_hash=split.content_hash,
            runs="code" if self.sealed.code else "package",
            scrambled=scores.scrambled,
            algorithm=scores.algorithm,
            earlier=earlier,
            hardware=hardware(),
            graphbench_version=__version__,
        )


def _checked_beacon(beacon: str) -> str:
    fault = text_fault(beacon, 500)
    if fault or len(beacon.strip()) < 6:
        raise ResultError(
            f"the beacon {beacon!r:.80} is {fault or 'too short'}; give a public text of 6 to 500 characters that "
            "nobody could know when the entry was sealed, such as the value of a random beacon or the hash of a block"
        )
    return beacon.strip()


def _require_one_beacon(sealed: Seal, beacon: str, known: Sequence[RunRecord]) -> None:
    """Refuse a second beacon for one commitment: the better of two draws would be chosen."""
    for record in known:
        before = record.verification
        if before is not None and before.commitment == sealed.commitment and before.beacon != beacon:
            raise ResultError(
                f"this entry was verified with the beacon {before.beacon!r:.80} already ({record.dataset}, seed "
                f"{record.seed}); a commitment has one draw: give the same beacon to repeat the verification"
            )


def _earlier(
    dataset: str, seed: int, record: RunRecord, sealed: Seal, known: Sequence[RunRecord]
) -> tuple[EarlierSeal, ...]:
    """Return the sealed draws that earlier entries of the same model were scored on, the oldest first."""
    earlier_seals: list[EarlierSeal] = []
    for other in known:
        before = other.verification
        if before is None or (other.dataset, other.model, other.seed) != (dataset, record.model, seed):
            continue
        earlier_seals += before.earlier
        if before.commitment != sealed.commitment:
            earlier_seals.append(EarlierSeal(commitment=before.commitment, beacon=before.beacon, score=before.score))
    return tuple(dict.fromkeys(earlier_seals))
