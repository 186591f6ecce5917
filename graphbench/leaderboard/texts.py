"""Tables and means as rows of text, the same for HTML, Markdown and the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from graphbench.core.words import counted, duration, first_of
from graphbench.leaderboard.model import TEST, Board, Cost, Group, GroupRow, Leaderboard, Reference, Row
from graphbench.leaderboard.statistics import STUDENT, Comparison
from graphbench.reports.pages import ABSENT, Grid
from graphbench.reports.tables import bytes_text, metric_head, number, parameters_text, score_text

_DIGITS = 8  # of hashes
_LEAST_P = 0.001
_MOST_SEEDS = 5
_UNTESTED = "untested"
_UNRANKED = {
    "seeds": "needs runs with the seeds 0, 1 and 2",
    "bootstrap": "its records have no bootstrap replicates",
    "alone": "no other model can be compared with it",
}
HEADS = (
    "rank", "model", "score", "95 % interval", "class", "rank in class", "seeds", "source", "against the best mean",
    "parameters", "training time", "peak memory", "graphs/s", "device", "budget", "graphbench",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Section:
    """The tables of one dataset and protocol.

    Attributes:
        unit: Address and protocol.
        anchor: Its anchor in a page.
        title: Title of the dataset.
        head: The metric with its direction.
        tables: The tables of all models on the test split that count in means.
        others: The tables of all models on the test split, on other samples.
        away: The scores of all models on all splits; None for a dataset with test scores alone.
        boards: The tables of all models on all splits that count in means.
        commands: Commands that obtain the first table again, each with what it does.
    """

    unit: str
    anchor: str
    title: str
    head: str
    tables: tuple[Board, ...]
    others: tuple[Board, ...]
    away: Grid | None
    boards: tuple[Board, ...]
    commands: tuple[tuple[str, str], ...]


def sections(leaderboard: Leaderboard, domain: str) -> list[Section]:
    """Return the tables of a domain by dataset and protocol."""
    units: dict[str, list[Board]] = {}
    for board in leaderboard.boards:
        if board.domain == domain:
            units.setdefault(board.unit, []).append(board)
    return [_section(unit, boards) for unit, boards in units.items()]


def _section(unit: str, boards: Sequence[Board]) -> Section:
    shown = [board for board in boards if board.budget_class == "open"]
    return Section(
        unit=unit,
        anchor=anchor(unit),
        title=boards[0].title,
        head=metric_head(boards[0].metric),
        tables=tuple(board for board in shown if board.counts),
        others=tuple(board for board in shown if board.split == TEST and not board.main),
        away=away_grid([board for board in shown if board.main]),
        boards=tuple(board for board in shown if board.main),
        commands=_commands(boards[0]),
    )


def _commands(board: Board) -> tuple[tuple[str, str], ...]:
    """Return commands on a dataset and its best model, each with what it does."""
    best = next(row for row in board.rows if row.label == board.best)
    named = f"{board.dataset} --model {best.model}"
    commands = [(f"graphbench info {board.dataset}", "the card: features, splits, licence, and the paper to cite")]
    if not best.own_model:
        commands += [
            (f"graphbench reproduce {named}", "trains the best model again and compares the scores"),
            (f"graphbench train {named} --seed {len(best.seeds)} --records records", "another seed of the best model"),
        ]
    commands.append(
        (f"graphbench leaderboard {board.dataset} --records records --baselines", "this board, with your records")
    )
    return tuple(commands)


def figure_title(group: Group) -> str:
    """Return the title of the picture of a group."""
    return f"Normalised scores of models, {group.name}, {group.title.lower()}"


def anchor(text: str) -> str:
    """Return a text with a dash for everything but letters and digits."""
    return "-".join("".join(c if c.isalnum() and c.isascii() else " " for c in text).split())


def row_cells(row: Row, board: Board) -> tuple[str, ...]:
    """Return the cells of a model's row, in the order of ``HEADS``."""
    return (
        rank_text(row),
        row.label,
        number(row.mean),
        interval_text(row),
        row.budget_class,
        ranks_text(row.class_rank, row.class_worst_rank),
        seeds_text(row),
        source_text(row),
        against_text(row, board),
        *cost_cells(row),
        "; ".join(row.cost.devices) or ABSENT,
        row.budget,
        ", ".join(row.versions) or ABSENT,
    )


def why_not_ranked(row: Row, *, whole: bool = False) -> str:
    """Return in a few words, or in whole ones, why a model has no rank."""
    if whole:
        return f"not ranked: {_UNRANKED.get(row.unranked or '', '')}"
    seeds = "1 seed" if len(row.seeds) == 1 else f"{len(row.seeds)} seeds"
    words = {"seeds": seeds, "bootstrap": "no bootstrap", "alone": "no other model"}
    return words.get(row.unranked or "", "")


def reference_cells(reference: Reference) -> tuple[str, str, str, str]:
    """Return name, kind, score and origin of a reference."""
    return reference.name, reference.kind, score_text(reference.value, reference.std), reference.basis


def rank_text(row: Row) -> str:
    """Return a range of ranks: ``2``, or ``1-3`` with a dash between; a dash alone for a model without a rank."""
    return ranks_text(row.rank, row.worst_rank)


def ranks_text(best: int | None, worst: int | None) -> str:
    """Return a range of ranks as text, see :func:`rank_text`."""
    if best is None:
        return ABSENT
    return str(best) if best == worst else f"{best}{ABSENT}{worst}"


def interval_text(row: Row) -> str:
    """Return an interval, and the quantity that it covers: seeds or test samples."""
    if row.interval is None:
        return ABSENT
    over = "seeds" if row.interval.method == STUDENT else "test samples"
    return f"{number(row.interval.low)} to {number(row.interval.high)} ({over})"


def seeds_text(row: Row) -> str:
    """Return how many seeds, and which, such as ``3 (0, 1, 2)``, with the seeds of copied runs that were dropped."""
    if row.deterministic:
        return "deterministic"
    dropped = f"; dropped as copies: {first_of(row.copies, _MOST_SEEDS)}" if row.copies else ""
    return f"{len(row.seeds)} ({first_of(row.seeds, _MOST_SEEDS)}){dropped}"


def source_text(row: Row) -> str:
    """Return where the scores of a row are from, such as ``stated; 1 of 3 recomputed``, and whether they are blind."""
    better = [source for source in row.sources if source != row.provenance]
    some = [f"{better.count(source)} of {len(row.sources)} {source}" for source in dict.fromkeys(better)]
    sealed = ", ".join(map(number, row.sealed[:_MOST_SEEDS]))
    draws = [f"{sealed} on {'a sealed draw' if len(row.sealed) == 1 else 'sealed draws'}"] if row.sealed else []
    named = f"{row.provenance}, an algorithm" if row.algorithm else row.provenance
    seen = [] if row.blind else ["settings chosen by this split"]
    return "; ".join([named, *some, *draws, *seen])


def against_text(row: Row, board: Board) -> str:
    """Return the result of the test of a model against the best ranked model, or why the model has no rank."""
    comparison = row.against_best
    if row.unranked is not None:
        best = "best mean, " if row.label == board.best and len(board.rows) > 1 else ""
        return best + why_not_ranked(row, whole=True)
    if comparison is None:
        return "best mean" if row.label == board.rows[0].label else "best mean of the ranked"
    if comparison.p is None:
        return "not separable: the difference has no spread"
    ahead = (comparison.difference or 0.0) > 0
    said = ("better" if ahead == board.higher_is_better else "worse") if comparison.differs else "not separable"
    return f"{said}, p {_p_text(comparison.p)} ({test_text(comparison)})"


def test_text(comparison: Comparison) -> str:
    """Return the sources of a comparison: ``3 seeds and bootstrap``, ``5 seeds``, or ``bootstrap``."""
    seeds = f"{comparison.seeds} seeds" if comparison.seeds > 1 else ""
    return " and ".join(part for part in (seeds, "bootstrap" if comparison.bootstrap else "") if part)


def _p_text(p: float) -> str:
    return f"< {_LEAST_P:g}" if p < _LEAST_P else f"= {p:.2g}"


def cost_cells(row: Row) -> tuple[str, str, str, str]:
    """Return parameters, training time, peak memory and graphs per second."""
    cost = row.cost
    return (
        ABSENT if cost.parameters is None else parameters_text(cost.parameters),
        _training_time(cost),
        ABSENT if cost.memory_bytes is None else bytes_text(cost.memory_bytes),
        ABSENT if cost.graphs_per_second is None else f"{cost.graphs_per_second:,.0f}",
    )


def _training_time(cost: Cost) -> str:
    """Return the time of training, with the processor time and threads if they were recorded."""
    threads = "" if cost.threads is None else f", {counted(round(cost.threads), 'thread')}"
    processor = "" if cost.cpu_seconds is None else f"CPU {duration(cost.cpu_seconds)}{threads}"
    if cost.seconds is None:
        return processor or ABSENT
    return f"{duration(cost.seconds)} ({processor})" if processor else duration(cost.seconds)


def data_text(board: Board) -> str:
    """Return the samples of a table in words."""
    data = board.data
    parts = [f"version {data.version}", f"draw {data.draw}" if data.draw else ""]
    if data.graphs is not None:
        parts.append("1 sample" if data.graphs == 1 else f"{data.graphs:,} {board.samples}")
    limit = "" if data.graphs is None else f" (other models stand here when scored with --limit {data.graphs})"
    parts.append("" if data.whole else f"a part of the split{limit}")
    parts.append(f"content {data.hash[:_DIGITS]}" if data.hash else "")
    return ", ".join(part for part in parts if part)


def away_grid(boards: Sequence[Board]) -> Grid | None:
    """Return the scores on all splits of one dataset, models and references as rows; None for test alone.

    A rank stands in brackets behind a score where a test separates any two models of the split. Behind the score of a
    reference that was measured on other samples stands the number of these.
    """
    splits = [board.split for board in boards]
    if not any(split != TEST for split in splits):
        return None
    names: dict[str, str] = {}
    for board in boards:
        for row in board.rows:
            names.setdefault(row.config_hash, row.label)
    rows = []
    for config, label in names.items():
        rows.append((label, *(_score_cell(board, config) for board in boards)))
    references = {(r.kind, r.name): None for board in boards for r in board.references}
    for kind, name in references:
        board_references = [next((r for r in b.references if (r.kind, r.name) == (kind, name)), None) for b in boards]
        rows.append(
            (f"{name} ({kind})", *(_reference_cell(r, b) for r, b in zip(board_references, boards, strict=True)))
        )
    return Grid((f"model ({metric_head(boards[0].metric)})", *splits), tuple(rows))


def _reference_cell(reference: Reference | None, board: Board) -> str:
    if reference is None:
        return ABSENT
    count = "an unknown number of" if reference.samples is None else f"{reference.samples:,}"
    return number(reference.value) + (f" [on {count} {board.samples}]" if reference.apart else "")


def _score_cell(board: Board, config: str) -> str:
    row = next((row for row in board.rows if row.config_hash == config), None)
    if row is None:
        return ABSENT
    separated = any(other.rank is not None and other.rank > 1 for other in board.rows)
    return number(row.mean) + (f" [{rank_text(row)}]" if separated else "")


def merged_groups(groups: Iterable[Group]) -> list[tuple[str, Group]]:
    """Return (title, group) of some groups; classes of one protocol that show the same models are one.

    The title names all of its classes, and the widest one stands for them.
    """
    merged: dict[tuple[str, str | None, tuple[str, ...], tuple[GroupRow, ...]], list[Group]] = {}
    for group in groups:
        merged.setdefault((group.name, group.protocol, group.units, group.shown), []).append(group)
    return [("; ".join([same[0].title, *(g.title.lower() for g in same[1:])]), same[-1]) for same in merged.values()]


def group_grid(group: Group) -> Grid:
    """Return the models of a group with at least half of its datasets, with their ranks where any is ranked."""
    count, ranked = len(group.units), any(row.rank is not None for row in group.rows)
    heads = ("model", "datasets", "normalised score, missing as 0", "on its own datasets")
    rows = []
    for row in group.shown:
        rank = ABSENT if row.rank is None else str(row.rank)
        mean_rank = ABSENT if row.mean_rank is None else f"{row.mean_rank:.2f}"
        datasets = f"{len(row.scores)} of {count}"
        means = _three_digits(row.mean_normalised), _three_digits(row.mean_normalised_own)
        cells = (row.model, datasets, *means)
        rows.append((row.model, rank, mean_rank, *cells[1:]) if ranked else cells)
    return Grid((heads[0], "rank", "mean rank", *heads[1:]) if ranked else heads, tuple(rows))


def _three_digits(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.3f}"


def group_notes(group: Group) -> list[str]:
    """Return the notes below a group: which models are ranked, and which datasets are missing."""
    complete = sum(row.rank is not None for row in group.rows)
    datasets = counted(len(group.units), "dataset")
    notes = []
    if not complete:
        notes.append(f"No two models have a rank on all of the {datasets}, so there are no mean ranks.")
    elif complete < len(group.rows):
        notes.append(f"{complete} models have a rank on all of the {datasets} and are ranked among each other.")
    if hidden := len(group.rows) - len(group.shown):
        notes.append(f"{counted(hidden, 'model')} with a score on fewer than half of them: not shown here.")
    if group.without_anchors:
        notes.append(f"Without normalised scores: {', '.join(group.without_anchors)}.")
    return notes


def missing_text(row: GroupRow) -> str:
    """Return a line on the datasets where a model has no score; if most are missing, it lists the others instead."""
    if not row.missing:
        return ""
    if len(row.missing) > len(row.scores):
        return f"{row.model}: scores on {', '.join(score.unit for score in row.scores)} alone"
    return f"{row.model}: no score on {', '.join(row.missing)}"


def pair_grid(group: Group) -> Grid | None:
    """Return the models of a group against each other; None where no two share a dataset.

    A cell reads ``better/tied/worse``, of the row's model on the datasets of both on which a test compares them, and
    ``untested`` where there are none.
    """
    cells: dict[tuple[str, str], str] = {}
    for pair in group.pairs:
        for one, other, better, worse in (
            (pair.first, pair.second, pair.better, pair.worse),
            (pair.second, pair.first, pair.worse, pair.better),
        ):
            cells[one, other] = _UNTESTED if pair.untested == pair.shared else f"{better}/{pair.tied}/{worse}"
    names = [row.model for row in group.rows if any(row.model in pair for pair in cells)]
    if not names:
        return None
    rows = tuple((model, *(cells.get((model, other), ABSENT) for other in names)) for model in names)
    return Grid(("better/tied/worse than", *names), rows)
