"""Sets of prompts, the paper's sizes, and the files they are written to."""

import json
from itertools import islice

import pytest

from graphbench.core.errors import GenerationError, StoreError
from graphbench.domains.clrs.algorithm import UnknownAlgorithm
from graphbench.domains.clrs.names import NAMES
from graphbench.domains.clrs_text import Prompt, exact_match, export, paper_prompts, paper_protocol, prompts, render

HULLS = ("graham_scan", "jarvis_march")  # the reference's truncated lines are of points that were not redrawn


def test_the_paper_s_sets_have_the_counts_of_the_paper():
    protocol = paper_protocol()
    assert len(protocol.sizes) == 30
    assert sum(len(sizes.of("train")) for sizes in protocol.sizes.values()) * protocol.train.count == 2_150_000
    per_size = protocol.eval.count * len(protocol.eval.seeds)
    assert sum(len(sizes.of("eval")) for sizes in protocol.sizes.values()) * per_size == 514_375
    assert protocol.train.seeds == (0,) and protocol.eval.seeds == (3, 14, 35, 81, 94)


def test_sizes_are_known_for_every_algorithm():
    assert sorted(paper_protocol().sizes) == sorted(NAMES)
    for sizes in paper_protocol().sizes.values():
        assert list(sizes.train) == sorted(set(sizes.train))
        assert min(sizes.of("eval")) == min(sizes.of("train")) == 4


def test_prompts_are_numbered_and_a_shorter_set_is_the_start_of_a_longer_one():
    long, short = list(prompts("bfs", 5, 7, 3)), list(prompts("bfs", 5, 3, 3))
    assert long[:3] == short
    assert [prompt.index for prompt in long] == list(range(7))
    assert {(prompt.algorithm, prompt.size, prompt.seed, prompt.use_hints) for prompt in long} == {("bfs", 5, 3, True)}
    assert len({prompt.prompt for prompt in long}) > 1
    assert all(exact_match(prompt.reference, prompt.reference) for prompt in long)


@pytest.mark.parametrize("algorithm", NAMES)
def test_prompts_are_those_of_the_reference_s_samplers(golden_lines, algorithm):
    made = {}
    for line in golden_lines[algorithm]:
        if line["has_tie"] or (line["decimals"] is not None and algorithm in HULLS):
            continue
        settings = line["length"], 4, line["seed"], line["use_hints"], line["decimals"]
        if settings not in made:
            made[settings] = list(prompts(algorithm, *settings))
        found = made[settings][line["draw"]]
        assert (found.prompt, found.reference) == (line["prompt"], line["reference"]), line["index"]
    assert len(made) >= 6


def test_decimals_cut_the_inputs_of_prompts():
    (cut,) = prompts("insertion_sort", 4, 1, 0, decimals=3)
    (whole,) = prompts("insertion_sort", 4, 1, 0, use_hints=False)
    keys = [float(word) for word in whole.prompt.split("[")[1].split("]")[0].split()]
    assert (cut.prompt, cut.reference) == render("insertion_sort", [keys], True, 3)
    assert "trace" not in whole.prompt and "trace" in cut.prompt


def test_paper_prompts_run_through_sizes_and_seeds():
    found = list(paper_prompts("eval", ["bfs"], limit=2))
    assert len(found) == 38 * 5 * 2
    assert [prompt.size for prompt in found[:11]] == [4] * 10 + [5]
    assert [prompt.seed for prompt in found[:10:2]] == [3, 14, 35, 81, 94]
    train = list(islice(paper_prompts("train", ["bfs"], use_hints=False, decimals=3), 10_001))
    assert [train[9_999].size, train[10_000].size] == [4, 5]


def test_unknown_algorithms_are_told_before_any_prompt():
    with pytest.raises(UnknownAlgorithm, match="did you mean 'bfs'"):
        next(paper_prompts("train", ["insertion_sort", "bsf"]))
    with pytest.raises(UnknownAlgorithm):
        next(prompts("bsf", 4, 1, 0))


EXAMPLE = Prompt("minimum:\nkey: [2 1]\nmin:\n", "1\n\n", "minimum", 2, 7, 0, False)


def test_export_in_the_reference_s_document(tmp_path):
    path = tmp_path / "minimum.json"
    assert export(path, [EXAMPLE, EXAMPLE], "json") == 2
    example = {
        "prompt": EXAMPLE.prompt,
        "references": ["1\n\n"],
        "auxiliary": {"length": 2, "seed": 7, "use_hints": False},
    }
    assert json.loads(path.read_text()) == {"name": "clrs_text_minimum", "examples": [example, example]}
    assert export(path, [EXAMPLE]) == 1
    assert [json.loads(line) for line in path.read_text().splitlines()] == [{**example, "algo_name": "minimum"}]


def test_export_in_rows_for_hugging_face(tmp_path):
    path = tmp_path / "rows.jsonl"
    made = list(prompts("bfs", 4, 5, 0))
    assert export(path, iter(made), "huggingface") == 5
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["question"] for row in rows] == [prompt.prompt for prompt in made]
    assert all(row["text"] == row["question"] + row["answer"] for row in rows)
    assert rows[0].keys() == {"text", "question", "answer", "algo_name", "length", "use_hints"}
    assert (rows[0]["algo_name"], rows[0]["length"], rows[0]["use_hints"]) == ("bfs", 4, True)


def test_a_failed_export_leaves_what_was_there(tmp_path):
    path = tmp_path / "prompts.jsonl"
    export(path, [EXAMPLE])
    before = path.read_text()

    def broken():
        yield EXAMPLE
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(path, broken())
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]


def test_exports_that_make_no_sense_are_refused(tmp_path):
    with pytest.raises(GenerationError, match="no prompt to write"):
        export(tmp_path / "empty.jsonl", [])
    with pytest.raises(GenerationError, match="holds one algorithm, got minimum and bfs"):
        export(tmp_path / "two.json", [EXAMPLE, next(prompts("bfs", 4, 1, 0))], "json")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="a file lies where a folder should be"):
        export(tmp_path / "file" / "prompts.jsonl", [EXAMPLE])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_sets_and_styles_that_do_not_exist(tmp_path):
    with pytest.raises(GenerationError, match="no set 'trian'; it has train and eval"):
        next(paper_prompts("trian"))
    with pytest.raises(GenerationError, match=r"style 'reference'.*json"):
        export(tmp_path / "prompts", prompts("bfs", 4, 1, 0), "reference")
    assert not list(tmp_path.iterdir())


def test_one_algorithm_may_be_named_alone():
    assert next(paper_prompts("eval", "minimum")) == next(paper_prompts("eval", ["minimum"]))
