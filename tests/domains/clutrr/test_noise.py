from collections import Counter

import numpy as np
import pytest
from scipy import stats

from graphbench.domains.clutrr.families import FamilyParameters
from graphbench.domains.clutrr.noise import DISCONNECTED, IRRELEVANT, PATH, SUPPORTING, most_additions, most_noise
from graphbench.domains.clutrr.puzzle_checks import check_puzzles, story_problems
from graphbench.domains.clutrr.puzzles import Puzzle, PuzzleParameters, draw_puzzles

ROLE = {"supporting": SUPPORTING, "irrelevant": IRRELEVANT, "disconnected": DISCONNECTED}
LARGE = FamilyParameters(4, 3, 4, 1.0)


def drawn(k, noise, count=1000, rules="sound", family=None):
    return draw_puzzles(PuzzleParameters(k, rules, noise, family), 6, np.arange(count))


def people_by_role(puzzle):
    on_path = {person for x, y, _ in puzzle.path for person in (x, y)}
    noise = [(x, y) for (x, y, _), role in zip(puzzle.facts, puzzle.roles, strict=True) if role != "path"]
    return on_path, noise


@pytest.mark.parametrize("rules", ["sound", "paper"])
@pytest.mark.parametrize("k", [2, 5, 10])
def test_supporting_facts_go_past_one_new_person_each(k, rules):
    for puzzle in drawn(k, "supporting", 100, rules):
        on_path, noise = people_by_role(puzzle)
        steps = {(x, y) for x, y, _ in puzzle.path}
        new = set(range(len(puzzle.genders))) - on_path
        assert len(noise) == 2 * len(new) > 0
        for d in new:
            ((a, _),) = [fact for fact in noise if fact[1] == d]
            ((_, b),) = [fact for fact in noise if fact[0] == d]
            assert (a, b) in steps


@pytest.mark.parametrize("rules", ["sound", "paper"])
@pytest.mark.parametrize("k", [2, 5, 10])
def test_irrelevant_facts_touch_the_path_once(k, rules):
    for puzzle in drawn(k, "irrelevant", 100, rules):
        on_path, noise = people_by_role(puzzle)
        assert all(len({*pair} & on_path) == 1 for pair in noise)
        assert len(noise) == len(puzzle.genders) - len(on_path) > 0


@pytest.mark.parametrize("rules", ["sound", "paper"])
@pytest.mark.parametrize("k", [2, 5, 10])
def test_disconnected_facts_do_not_touch_the_path(k, rules):
    for puzzle in drawn(k, "disconnected", 100, rules):
        on_path, noise = people_by_role(puzzle)
        assert noise
        assert not any({*pair} & on_path for pair in noise)
        assert len({frozenset(pair) for pair in noise}) == len(noise)


@pytest.mark.parametrize("noise", ROLE)
@pytest.mark.parametrize("k", [2, 3, 7])
def test_numbers_of_additions(k, noise):
    """Each is as likely for disconnected facts; of the others there are fewer where few facts of the path resolve."""
    puzzles = drawn(k, noise, 1500, family=LARGE)
    assert set(puzzles.role.tolist()) == {PATH, ROLE[noise]}
    per_addition = 2 if noise == "supporting" else 1
    counts = Counter(((puzzles.num_edges - k) // per_addition).tolist())
    most = most_additions(k)
    assert set(counts) == set(range(1, most + 1))
    if noise == "disconnected" and most > 1:
        assert stats.chisquare(list(counts.values())).pvalue > 1e-3
    for n in range(1, most):
        assert sum(counts[i] for i in range(1, n + 1)) >= (n / most - 0.05) * len(puzzles)
        assert counts[n + 1] > 0.1 * len(puzzles)


def test_irrelevant_facts_point_both_ways_and_touch_everybody():
    puzzles = drawn(3, "irrelevant", 2000)
    places, outward = Counter(), 0
    for puzzle in puzzles:
        on_path, ((x, y),) = people_by_role(puzzle)
        outward += x in on_path
        order = [puzzle.query[0], *(b for _, b, _ in puzzle.path)]
        places[order.index(x if x in on_path else y)] += 1
    assert stats.binomtest(outward, len(puzzles), 0.5).pvalue > 1e-3
    assert set(places) == {0, 1, 2, 3}
    assert min(places.values()) > 0.08 * len(puzzles)


def test_stories_have_room_for_all_noise():
    for noise in ROLE:
        facts, people = most_noise(10, noise)
        puzzles = drawn(10, noise, 800, family=LARGE)
        assert puzzles.num_edges.max() == 10 + facts
        assert puzzles.num_nodes.max() <= 11 + people <= 32
    assert most_noise(10, "none") == (0, 0)


def test_small_families_give_what_they_can():
    parameters, indices = PuzzleParameters(6, noise="supporting", family=FamilyParameters(3, 2, 2, 1.0)), np.arange(100)
    puzzles = draw_puzzles(parameters, 1, indices)
    assert check_puzzles(puzzles, parameters, 1, indices) == []


@pytest.mark.parametrize(
    ("noise", "facts", "genders"),
    [
        ("supporting", {(0, 3): "daughter", (3, 1): "mother"}, 4),
        ("irrelevant", {(0, 3): "daughter"}, 4),
        ("irrelevant", {(3, 2): "brother"}, 4),
        ("disconnected", {(3, 4): "sister"}, 5),
    ],
)
def test_checks_tell_the_kinds_apart(noise, facts, genders):
    def problems(kind):
        told = {(0, 1): ("wife", 0, "path"), (1, 2): ("son", 1, "path")}
        told |= {pair: (word, -1, kind) for pair, word in facts.items()}
        rows = [(pair, told[pair]) for pair in sorted(told)]
        puzzle = Puzzle(
            facts=tuple((*pair, word) for pair, (word, _, _) in rows),
            roles=tuple(role for _, (_, _, role) in rows),
            steps=tuple(step for _, (_, step, _) in rows),
            genders=("male", "female", "male", "female", "female")[:genders],
            query=(0, 2),
            answer="son",
            clause=("SO", "child"),
        )
        return story_problems(puzzle, 2, "sound", kind)

    assert problems(noise) == []
    for other in set(ROLE) - {noise}:
        assert len(problems(other)) == 1, other
