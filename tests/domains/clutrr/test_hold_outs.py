"""What is held out of training: found on drawn puzzles, and missed where it is not held."""

import numpy as np
import pytest

from graphbench.catalog.names import card
from graphbench.data.build.generation import draw_samples
from graphbench.data.components.domain import find
from graphbench.domains.clutrr.hold_outs import check_hold_outs, frames_of, sentence_frames_of
from graphbench.verification import verify


def drawn(split, dataset="clutrr/gen_23", count=60, **changes):
    puzzles = card(dataset)
    parameters = find("generator", puzzles.generator).parse(puzzles, split)
    return parameters.model_copy(update=changes), draw_samples(puzzles, split, np.arange(count))


@pytest.mark.parametrize("dataset", ["clutrr/gen_234", "clutrr/paper_rob_supporting"])
@pytest.mark.parametrize("split", ["train", "test"])
def test_drawn_puzzles_keep_to_what_is_held_out(dataset, split):
    parameters, samples = drawn(split, dataset)
    found = check_hold_outs(parameters, samples)
    claims = {what: claim for what, (claim, _) in found.items()}
    assert list(claims) == ["held-out clauses", "held-out sentences"]
    assert claims["held-out clauses"].startswith("no path" if split == "train" else "every path")
    assert claims["held-out sentences"] == f"every sentence is of a template kept for {split}"
    assert [problems for _, problems in found.values()] == [[], []]


def test_puzzles_of_the_other_part_are_all_found():
    for split, other in (("train", "test"), ("test", "train")):
        parameters, samples = drawn(split)
        swapped = parameters.model_copy(update={"held_out": "only" if split == "train" else "avoid", "wording": other})
        clauses, sentences = (problems for _, problems in check_hold_outs(swapped, samples).values())
        assert len(clauses) == len(samples) and clauses[0].startswith("sample 0: (")
        assert len({line.split(":")[0] for line in sentences}) == len(samples)
        assert f"is no sentence of {other} alone" in sentences[0]


def test_where_no_clause_is_held_out_there_is_no_line_of_it():
    assert list(check_hold_outs(*drawn("k7"))) == ["held-out sentences"]


def test_another_choice_of_templates_is_another_hold_out():
    parameters, samples = drawn("test", wording_seed=7)
    assert check_hold_outs(parameters, samples)["held-out sentences"][1]
    for seed in (0, 7):
        train, test = frames_of("train", seed), frames_of("test", seed)
        assert train and test and not train & test
    assert frames_of("test", 0) != frames_of("test", 7)


def test_frames_leave_out_people_and_words_of_kinship():
    tokens = "@ent3 has a sister . her name is @ent12 ! bye"
    assert list(sentence_frames_of(tokens)) == [
        ("<who>", "has", "a", "<kin>", "."),
        ("her", "name", "is", "<who>", "!"),
        ("bye",),
    ]


def test_verify_has_a_line_for_each(monkeypatch, tmp_path):
    rows = verify("gen_23", root=tmp_path, splits=("train", "k7"), samples=20, progress=False).rows
    lines = {(row.split, row.check): row for row in rows}
    assert lines["train", "held-out clauses"].detail == "no path is of a clause held out of training: 20 graphs"
    assert ("k7", "held-out clauses") not in lines and lines["k7", "held-out sentences"].passed
    claim = "every path is new"
    hold_outs = lambda parameters, samples: {"held-out paths": (claim, ["sample 3: old"])}  # noqa: E731
    monkeypatch.setattr("graphbench.domains.clutrr.hold_outs.check_hold_outs", hold_outs)
    (failure,) = verify("gen_23", root=tmp_path, splits=("k7",), samples=20, progress=False).failures
    assert (failure.split, failure.check) == ("k7", "held-out paths")
    assert failure.detail == "every path is new: 1 of 20 graphs do otherwise, e.g. sample 3: old"
