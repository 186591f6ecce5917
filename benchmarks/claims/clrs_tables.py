"""CLRS and CLRS-Text: trajectories, prompts, and outcomes by algorithm."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

import graphbench
from benchmarks.claims.arithmetic import parts_of_table
from benchmarks.claims.model import FOLDER
from benchmarks.claims.registry import Outcome, check
from benchmarks.claims.running import outcome_of
from graphbench.catalog.features import Location, Stage
from graphbench.catalog.names import list_datasets
from graphbench.data.build.generation import draw_samples

Floats = NDArray[np.float64]

_NUMBER = re.compile(r"\d\.\d+")
_HALF = 0.005  # of the last printed digit
_MODELS = ("deepsets", "gat", "memnet", "mpnn", "pgn")


def _printed(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((FOLDER / "printed" / f"{name}.yaml").read_text(encoding="utf-8"))
    return content


@check
def outcomes_by_algorithm() -> Outcome:
    """Every letter of CLRS's table 3 beside the rule of appendix C, applied to table 2."""
    (table,) = parts_of_table("clrs", 2)
    problems = []
    printed = _printed("clrs_outcomes")["outcomes"]
    for algorithm, letters in printed.items():
        row = table["scores"][algorithm]
        for model, letter in zip(_MODELS, letters, strict=True):
            others = [other for other in _MODELS if other != model]
            wins = all(row[model][0] - row[model][1] > row[other][0] for other in others)
            loses = any(row[other][0] - row[other][1] > row[model][0] for other in others)
            if (own := "W" if wins else "L" if loses else "T") != letter:
                problems.append(f"{algorithm}, {model}: {own}, printed {letter}")
    return outcome_of(problems, letters=len(printed) * len(_MODELS), algorithms=len(printed))


def _spread(means: Floats, errors: Floats, factor: float) -> float:
    """Return the population deviation over all runs of a class, over the root of its number of algorithms.

    Args:
        means: Means over seeds, one per algorithm.
        errors: What follows ± beside them.
        factor: The runs of an algorithm have ``factor * errors**2`` as population variance over seeds.
    """
    return math.sqrt((means.var() + factor * (errors**2).mean()) / len(means))


def _agrees(printed: float, means: Floats, errors: Floats, factor: float) -> bool:
    """Return whether a printed deviation follows, if all numbers are rounded to two digits."""
    least = _spread(means, np.maximum(errors - _HALF, 0.0), factor)
    most = _spread(means, errors + _HALF, factor)
    return least - 2 * _HALF <= printed <= most + 2 * _HALF


@check
def deviations_of_classes(seeds: int, without_seeds: str) -> Outcome:
    """What follows ± in CLRS's table 1 beside table 2.

    It holds if every number is that of :func:`_spread` where table 2's are standard errors over seeds, and most are not
    where table 2's are standard deviations.

    Args:
        seeds: Seeds behind a number of table 2.
        without_seeds: The model whose numbers follow from the means alone.
    """
    from graphbench.records.published import collections

    (table,) = parts_of_table("clrs", 2)
    classes, problems, deviations, others, ratios = collections()["clrs30"].classes, [], 0, 0, []
    printed = _printed("clrs_deviations")["deviations"]
    for name, models in printed.items():
        members = [table["scores"][id_.split("/")[1]] for id_ in list_datasets(classes[name])]
        for model, value in models.items():
            means, errors = 100 * np.array([member[model] for member in members]).T
            factor = 0 if model == without_seeds else seeds
            if not _agrees(value, means, errors, factor):
                problems.append(f"{name}, {model}: {_spread(means, errors, factor):.2f}, printed {value}")
            if model != without_seeds:
                others += 1
                deviations += _agrees(value, means, errors, 1)
                ratios += [value / errors[0]] if len(members) == 1 else []
    if 2 * deviations >= others:
        problems.append(f"{deviations} of {others} follow from standard deviations, too")
    counts = {"numbers": sum(map(len, printed.values())), "others": others, "deviations": deviations}
    return outcome_of(problems, **counts, least=min(ratios), most=max(ratios), root=math.sqrt(seeds))


@check
def larger_test_sets(base: int) -> Outcome:
    """Which algorithms have more than 32 test trajectories, and which have an output on the graph stage.

    Args:
        base: Printed number of trajectories of all others.
    """
    larger, on_graph = {}, []
    for card in map(graphbench.card, list_datasets("clrs30")):
        count = card.split("test").count
        if count != base:
            larger[card.id.split("/")[1]] = count // base
        if any(f.stage is Stage.OUTPUT and f.location is Location.GRAPH for f in card.features):
            on_graph.append(card.id.split("/")[1])
    both = sorted(set(larger) & set(on_graph))
    return Outcome(
        set(larger) != set(on_graph) and set(on_graph) <= set(larger),
        {
            "larger": len(larger),
            "on_graph": len(on_graph),
            "both": ", ".join(both).replace("_", " "),
            "factors": " or ".join(f"{factor}" for factor in sorted(set(larger.values()))),
            "names": ", ".join(larger).replace("_", " "),
        },
        f"larger {sorted(larger)}, on the graph {on_graph}",
    )


@check
def canonical_sizes(nodes: Mapping[str, int], train: int) -> Outcome:
    """Trajectories and nodes of the canonical sets.

    Args:
        nodes: Split -> printed number of nodes.
        train: Printed number of training trajectories.
    """
    problems = []
    cards = [graphbench.card(name) for name in list_datasets("clrs30")]
    for card in cards:
        if card.split("train").count != train:
            problems.append(f"{card.id}: {card.split('train').count} training trajectories")
        for split, count in nodes.items():
            if card.split(split).parameters["length"] != count:
                problems.append(f"{card.id}, {split}: length {card.split(split).parameters['length']}")
    return outcome_of(problems, algorithms=len(cards), train=train)


@check
def edge_probability(algorithm: str, p: float, count: int = 200) -> Outcome:
    """Share of joined pairs of nodes in undirected inputs, whose sampler draws an edge twice.

    Args:
        algorithm: The algorithm.
        p: The probability that the sampler is given.
        count: Number of trajectories.
    """
    samples = draw_samples(graphbench.card(f"clrs/{algorithm}"), "train", range(count))
    n = int(samples.num_nodes[0])
    joined = samples.values["adj"].reshape(count, n, n)[:, *np.triu_indices(n, 1)]
    pairs = joined.size
    share = float((joined != 0).mean())
    error = 3 * float(np.sqrt(p * p * (1 - p * p) / pairs))
    return Outcome(
        abs(share - p * p) <= error, {"share": share, "p": p, "square": p * p, "trajectories": count}, f"{share:.4f}"
    )


@check
def averages_of_one_model(low: float, high: float) -> Outcome:
    """Two published averages of one model over the 30 algorithms.

    Args:
        low: The lower one, of the paper that introduced the model.
        high: The higher one, of later reruns.
    """
    from graphbench.records.published import collections

    known = [a for a in collections()["clrs30"].averages if a.model == "triplet_gmpnn"]
    return Outcome(
        high - low > 0.05 and any(abs(a.value - low) < 1e-9 for a in known),
        {"low": 100 * low, "high": 100 * high, "apart": 100 * (high - low)},
        f"{[a.value for a in known]}",
    )


@check
def sizes_of_prompts(prompts: int) -> Outcome:
    """Training sizes of CLRS-Text by algorithm beside table 1, and the number of training prompts.

    Args:
        prompts: Printed prompts of each size.
    """
    problems, sizes = [], 0
    printed: dict[str, Sequence[int]] = _printed("clrs_text_sizes")["sizes"]
    for algorithm, lengths in printed.items():
        spec = graphbench.card(f"clrs_text/{algorithm}").split("train")
        own = list(spec.parameters["sizes"])
        sizes += len(lengths)
        if own != list(lengths):
            problems.append(f"{algorithm}: {own}, printed {lengths}")
        if spec.count != prompts * len(lengths):
            problems.append(f"{algorithm}: {spec.count} prompts")
    return outcome_of(problems, algorithms=len(printed), sizes=sizes, prompts=prompts * sizes)


@check
def segments_ignore_their_size() -> Outcome:
    """Prompts of segments_intersect of all sizes have as many numbers: two coordinates of each of four nodes."""
    card = graphbench.card("clrs_text/segments_intersect")
    count = card.split("test").count
    places = range(0, count, count // 200)
    prompts = draw_samples(card, "test", places).values["prompt"].strings()
    numbers = {len(_NUMBER.findall(prompt)) // 2 for prompt in prompts}
    return Outcome(numbers == {4}, {"nodes": max(numbers), "prompts": len(prompts)}, f"{numbers}")


@check
def evaluation_prompts(prompts: int, seeds: int) -> Outcome:
    """Evaluation prompts of each size and how often they are drawn again.

    Args:
        prompts: Printed prompts of each size.
        seeds: Printed number of resampled sets.
    """
    problems, total = [], 0
    for name in list_datasets("clrs_text/*"):
        spec = graphbench.card(name).split("test")
        sizes = spec.parameters["sizes"]
        count = len(sizes) if isinstance(sizes, list) else sizes["last"] - sizes["first"] + 1
        total += spec.count
        if len(spec.parameters["seeds"]) != seeds or spec.count != prompts * seeds * count:
            problems.append(f"{name}: {spec.count} prompts of {count} sizes and {spec.parameters['seeds']}")
    return outcome_of(problems, prompts=prompts, seeds=seeds, total=total)
