import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.domains.clrs import trace
from graphbench.domains.clrs.arguments import ArgumentError
from graphbench.domains.clrs.tracing import run_all

BOTH = ["naive_string_matcher", "kmp_matcher"]
PREFIXES, SCAN = 0, 1
many = settings(max_examples=100, deadline=None)

few_letters = st.integers(0, 1)
letters = st.sampled_from([st.just(1), few_letters, few_letters, st.integers(0, 3)])


@st.composite
def haystacks(draw):
    """A haystack and a needle, often a part of it, and often of one or two letters."""
    of = draw(letters)
    haystack = draw(st.lists(of, min_size=1, max_size=16))
    if draw(st.booleans()):
        first = draw(st.integers(0, len(haystack) - 1))
        needle = haystack[first : draw(st.integers(first + 1, len(haystack)))]
    else:
        needle = draw(st.lists(of, min_size=1, max_size=len(haystack)))
    return haystack, needle


def text(string):
    return "".join("abcd"[letter] for letter in string)


def place_of(haystack, needle):
    """The first place of the needle; the needle's own first node where it is in no place."""
    found = text(haystack).find(text(needle))
    return found if found >= 0 else len(haystack)


def node(one_hot):
    assert one_hot.sum() == 1
    return int(one_hot.argmax())


def nodes(one_hots):
    return [node(one_hot) for one_hot in one_hots]


@pytest.mark.parametrize("algorithm", BOTH)
@many
@given(haystacks())
def test_match_is_the_first(algorithm, pair):
    haystack, needle = pair
    assert node(trace(algorithm, *pair).outputs["match"]) == place_of(haystack, needle)


@pytest.mark.parametrize("algorithm", BOTH)
@many
@given(haystacks())
def test_strings_are_two_lists_of_nodes(algorithm, pair):
    haystack, needle = pair
    n, m = len(haystack), len(needle)
    found = trace(algorithm, *pair)
    assert found.inputs["string"].tolist() == [0] * n + [1] * m
    assert nodes(found.inputs["key"]) == haystack + needle
    assert found.inputs["pos"].tolist() == [place / length for length in (n, m) for place in range(length)]
    order = [0, *range(n - 1), n, *range(n, n + m - 1)]
    assert all(pred.tolist() == order for pred in found.hints["pred_h"])


def agreeing(haystack, needle, place):
    """How many letters agree, from the first, where the needle stands at a place."""
    pairs = zip(haystack[place:], needle, strict=False)
    return next((count for count, (a, b) in enumerate(pairs) if a != b), len(needle))


@many
@given(haystacks())
def test_every_step_of_the_naive_matcher(pair):
    haystack, needle = pair
    n, m = len(haystack), len(needle)
    match = place_of(haystack, needle)
    expected = [
        (place, place + letter, n + letter)
        for place in range(min(match, n - m) + 1)
        for letter in range(min(agreeing(haystack, needle, place) + 1, m))
    ]
    hints = trace("naive_string_matcher", *pair).hints
    assert list(zip(nodes(hints["s"]), nodes(hints["i"]), nodes(hints["j"]), strict=True)) == expected


def borders(string):
    """The lengths of all shorter prefixes that the string ends with, the longest first, to 0."""
    return [length for length in range(len(string) - 1, -1, -1) if string[:length] == string[len(string) - length :]]


def fallen_back(needle, length, letter):
    """The lengths of prefixes that are tried in turn, after ``length`` letters, till one goes on with a letter."""
    tried = [length]
    for shorter in borders(needle[:length]) if length else []:
        if needle[tried[-1]] == letter:
            break
        tried.append(shorter)
    return tried


def state(n, length):
    """A number of letters as a node of the needle, the last of them, and a mask for none."""
    return n + max(length - 1, 0), int(length == 0)


@many
@given(haystacks())
def test_pointers_are_the_longest_borders(pair):
    haystack, needle = pair
    n, m = len(haystack), len(needle)
    hints = trace("kmp_matcher", *pair).hints
    longest = [0] + [borders(needle[: last + 1])[0] for last in range(1, m)]
    for pi, is_reset, phase, q in zip(hints["pi"], hints["is_reset"], hints["phase"], nodes(hints["q"]), strict=True):
        assert pi[:n].tolist() == list(range(n)) and not is_reset[:n].any()
        if phase == SCAN:
            assert list(zip(pi[n:], is_reset[n:], strict=True)) == [state(n, length) for length in longest]
        else:
            assert pi[q + 1 :].tolist() == list(range(q + 1, n + m)) and not is_reset[q + 1 :].any()
            assert list(zip(pi[n:q], is_reset[n:q], strict=True)) == [state(n, b) for b in longest[: q - n]]
    last = np.flatnonzero(hints["phase"] == SCAN)[0] - 1
    np.testing.assert_array_equal(hints["pi"][last], hints["pi"][-1])


@many
@given(haystacks())
def test_every_step_of_the_prefixes(pair):
    haystack, needle = pair
    n, m = len(haystack), len(needle)
    expected = [(n + min(1, m - 1), *state(n, 0))]
    for letter in range(1, m):
        length = borders(needle[:letter])[0]
        steps = [*fallen_back(needle, length, needle[letter])[1:], borders(needle[: letter + 1])[0]]
        expected += [(n + letter, *state(n, length)) for length in steps]
    hints = trace("kmp_matcher", *pair).hints
    phase = hints["phase"]
    assert phase.tolist() == sorted(phase.tolist()) and (phase == PREFIXES).sum() == len(expected)
    shown = zip(nodes(hints["q"]), nodes(hints["k"]), hints["k_reset"].tolist(), strict=True)
    assert list(shown)[: len(expected)] == expected
    assert hints["q_reset"][: len(expected)].all()
    assert nodes(hints["s"])[: len(expected)] == nodes(hints["i"])[: len(expected)] == [0] * len(expected)


@many
@given(haystacks())
def test_every_step_of_the_scan(pair):
    haystack, needle = pair
    n, m = len(haystack), len(needle)
    match = place_of(haystack, needle)
    expected = []
    for place in range(n if match == n else match + m):
        lengths = range(min(place, m - 1), -1, -1)
        longest = next(length for length in lengths if haystack[place - length : place] == needle[:length])
        for length in fallen_back(needle, longest, haystack[place]):
            expected.append((place, max(place - m + 1, 0), *state(n, length)))
    hints = trace("kmp_matcher", *pair).hints
    shown = list(zip(nodes(hints["i"]), nodes(hints["s"]), nodes(hints["q"]), hints["q_reset"].tolist(), strict=True))
    first = int((hints["phase"] == PREFIXES).sum())
    assert shown[first:] == expected
    assert (hints["k"][first:] == hints["k"][first - 1]).all()


@many
@given(haystacks())
def test_kmp_needs_two_steps_per_letter_at_most(pair):
    haystack, needle = pair
    assert len(trace("kmp_matcher", *pair).hints["i"]) <= 2 * (len(haystack) + len(needle))


@pytest.mark.parametrize("algorithm", BOTH)
@pytest.mark.parametrize(
    ("haystack", "needle", "match"),
    [
        ([2], [2], 0),  # one letter each
        ([2], [3], 1),
        ([1, 1, 1, 1], [1, 1], 0),  # of several, the first
        ([0, 1, 2], [0, 1, 2], 0),  # all of it
        ([0, 1, 2], [0, 1, 3], 3),
        ([3, 0, 0, 1], [0, 1], 2),  # at the very end
        ([0, 0, 0, 0, 1], [0, 0, 1], 2),  # falls back
    ],
)
def test_corner_cases(algorithm, haystack, needle, match):
    assert node(trace(algorithm, haystack, needle).outputs["match"]) == match


@pytest.mark.parametrize("algorithm", BOTH)
def test_hundreds_of_letters(algorithm):
    haystack = np.random.default_rng(5).integers(0, 2, 240)
    for size in (1, 3, 12, 16):
        for first in (0, 100, 240 - size):
            needle = haystack[first : first + size]
            assert node(trace(algorithm, haystack, needle).outputs["match"]) == place_of(haystack, needle)
    assert node(trace(algorithm, [0] * 200, [0] * 50 + [1]).outputs["match"]) == 200


@pytest.mark.parametrize("algorithm", BOTH)
@pytest.mark.parametrize(
    ("T", "P", "message"),
    [
        ([], [0], r"T has the shape \(0,\).*1"),
        ([0, 1], [], r"P has the shape \(0,\).*1"),
        ([0, 1], 0, r"P has the shape \(\); give a list"),
        ([[0, 1], [1, 0]], [0], r"T has the shape \(2, 2\); give a list"),
        ([0, 1], [0, 1, 1], "needle P has 3 letters.*haystack T 2"),
        ([0, 1, 4], [0], r"T has values from 0 to 4.*0 to 3"),
        ([0, 1], [-1], r"P has values from -1 to -1.*0 to 3"),
        ([0, 1.5], [0], r"T has values from 0.0 to 1.5.*0 to 3"),
        ([0, 1], [np.nan], r"P\[0\] is nan; give finite numbers"),
        ([0, np.inf], [0], r"T\[1\] is inf; give finite numbers"),
        (["a", "b"], [0], "T is not an array of numbers"),
        ("ab", "a", "T is not an array of numbers"),
    ],
)
def test_what_are_no_haystack_and_needle_is_refused(algorithm, T, P, message):
    with pytest.raises(ArgumentError, match=message):
        trace(algorithm, T, P)


@pytest.mark.parametrize("algorithm", BOTH)
def test_many_pairs_run_as_each_alone(algorithm):
    pairs = [([0, 1, 0, 1, 1], [1, 1]), ([2, 2, 3], [3]), ([1, 1, 1, 1, 1], [0, 1]), ([0, 1, 0], [0])]
    runs, _ = run_all(algorithm, pairs)
    matches = {int(place): int(run.outputs["match"][row, 0]) for run in runs for row, place in enumerate(run.places)}
    assert matches == {number: place_of(*pair) for number, pair in enumerate(pairs)}


@pytest.mark.parametrize("algorithm", BOTH)
def test_strings_are_not_changed(algorithm):
    haystack, needle = np.array([0, 1, 2, 0]), np.array([2, 0])
    trace(algorithm, haystack, needle)
    assert haystack.tolist() == [0, 1, 2, 0] and needle.tolist() == [2, 0]
