"""The thirty datasets of prompts: cards, generation, checks, scores."""

from dataclasses import replace

import numpy as np
import pytest

import graphbench
from graphbench.catalog.names import catalog, list_datasets
from graphbench.core.errors import CardError
from graphbench.data.arrays.texts import Texts
from graphbench.data.build.generation import draw_samples
from graphbench.data.components.domain import find
from graphbench.domains.clrs.algorithm import find_algorithm
from graphbench.domains.clrs.names import NAMES
from graphbench.domains.clrs_text import prompts
from graphbench.domains.clrs_text.checks import check_prompts, printed_inputs, printed_values
from graphbench.domains.clrs_text.generators import PromptParameters
from graphbench.verification import verify


def drawn(name, count, split="train"):
    return draw_samples(catalog().cards[f"clrs_text/{name}"], split, np.arange(count))


def test_every_algorithm_has_a_card():
    assert sorted(list_datasets("clrs_text/*")) == sorted(f"clrs_text/{name}" for name in NAMES)
    for name in NAMES:
        card = catalog().cards[f"clrs_text/{name}"]
        assert card.generator == card.id.replace("/", ".")
        assert card.title == f"{catalog().cards[f'clrs/{name}'].title} as text"


@pytest.mark.parametrize("name", NAMES)
def test_samples_are_the_prompts_of_their_size_seed_and_draw(name):
    card = catalog().cards[f"clrs_text/{name}"]
    for split in ("train", "val", "test"):
        parameters = PromptParameters.model_validate(card.split(split).parameters)
        size, seed, draw = parameters.draw_of(41)
        (wanted,) = list(prompts(name, size, draw + 1, seed))[draw:]
        samples = draw_samples(card, split, np.array([3, 41]))
        assert samples.values["prompt"].strings()[1] == wanted.prompt
        assert samples.values["reference"].strings()[1] == wanted.reference
        assert samples.num_nodes[1] == size


def test_sizes_and_seeds_come_in_turn():
    parameters = PromptParameters(sizes={"first": 4, "last": 6}, seeds=(3, 14))
    assert [parameters.draw_of(i) for i in range(7)] == [
        (4, 3, 0), (5, 3, 0), (6, 3, 0), (4, 14, 0), (5, 14, 0), (6, 14, 0), (4, 3, 1),
    ]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("use_hints", [True, False])
def test_the_printed_answers_are_right(name, use_hints):
    generator = find("generator", f"clrs_text.{name}")
    parameters = PromptParameters(sizes=(4, 5, 7), seeds=(0, 9), use_hints=use_hints)
    samples = generator.generate(parameters, np.uint64(0), np.arange(24), np.zeros(24, np.int64))
    assert generator.check(parameters, samples) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_answer_is_found(name):
    """Every prompt with the answer of another one: all but those whose answers agree must be found."""
    samples = drawn(name, 30)
    references = samples.values["reference"].strings()
    sizes = samples.num_nodes.tolist()
    following = [next(j % 30 for j in range(i + 1, i + 31) if sizes[j % 30] == sizes[i]) for i in range(30)]
    swapped = [references[j] for j in following]
    broken = replace(samples, values={**samples.values, "reference": Texts.of(swapped)})
    changed = sum(a.rpartition("|")[2] != b.rpartition("|")[2] for a, b in zip(references, swapped, strict=True))
    assert len(check_prompts(name, True, broken)) >= changed // 2 > 0


def test_a_reference_of_another_form_is_found():
    samples = drawn("minimum", 2)
    cut = [text.rstrip() for text in samples.values["reference"].strings()]
    problems = check_prompts("minimum", True, replace(samples, values={**samples.values, "reference": Texts.of(cut)}))
    assert len(problems) == 2
    assert "sample 0: minimum has the reference" in problems[0]


def test_prompts_are_read_back():
    assert [np.asarray(value).tolist() for value in printed_values("[[0 1.5], [-1 2e-05]], (0, 3), 7")] == [
        [[0, 1.5], [-1, 2e-05]], [0, 3], 7,
    ]  # fmt: skip
    prompt = "bfs:\ns: 1, A: [[1 0], [0 1]], initial_trace: [0 1]\ntrace | pi:\n"
    values = printed_inputs(find_algorithm("bfs"), prompt)
    assert values["s"].tolist() == [0, 1]
    assert values["A"].tolist() == values["adj"].tolist() == [[1, 0], [0, 1]]


def test_loading_and_scoring(tmp_path):
    splits = graphbench.Loader("clrs_text_minimum", root=tmp_path, limit=12, workers=1).load()
    sample = splits.train[0]
    assert sample.prompt.startswith("minimum:\nkey: [")
    assert sample.y == sample.reference
    assert sample.num_nodes == 4
    (batch,) = splits.test.batches(12)
    evaluator = graphbench.Evaluator("clrs_text/minimum", expected_graphs=12)
    assert evaluator.evaluate(batch.y, batch.y).primary == 1.0
    answers = ["I do not know", *batch.reference[1:]]
    assert evaluator.evaluate(batch.y, answers)["exact_match"] == pytest.approx(11 / 12)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"sizes": [], "seeds": [0]}, "sizes"),
        ({"sizes": {"first": 4}, "seeds": [0]}, "a range of sizes is"),
        ({"sizes": [4], "seeds": []}, "seeds"),
        ({"sizes": [4], "seeds": [0], "decimal": 3}, "decimal"),
    ],
)
def test_parameters_that_are_refused(parameters, words):
    card = catalog().cards["clrs_text/bfs"]
    spec = card.split("train").model_copy(update={"parameters": parameters})
    broken = card.model_copy(update={"splits": {**card.splits, "train": spec}})
    with pytest.raises(CardError, match=words):
        find("generator", "clrs_text.bfs").parse(broken, "train")


def test_stored_prompts_are_verified(tmp_path):
    graphbench.Loader("clrs_text/minimum", root=tmp_path, limit=40, workers=1).load("val")
    outcome = verify("clrs_text/minimum", root=tmp_path, samples=8, splits=("val",), progress=False)
    assert outcome.passed, outcome.failures
    (stored,) = [row.detail for row in outcome.rows if row.check == "stored file"]
    assert stored.startswith("checksum right")
