"""Stories: read back exactly, a function of puzzle and seed alone, people and sentences as the arrays say, errors."""

import re
import time
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.domains.clutrr.puzzles import PuzzleParameters, draw_puzzles
from graphbench.domains.clutrr.reading import describe, read_story
from graphbench.domains.clutrr.relations import WORDS, UnknownRelation
from graphbench.domains.clutrr.stories import NUM_ENTITIES, write_stories
from graphbench.domains.clutrr.templates import TextError, name_file, templates_of

SO = 2


def puzzle(rng, k, noise):
    """A chain of k facts and some facts of noise, as the seven arrays of one puzzle."""
    people = k + 1 + noise
    number, gender = rng.permutation(people), rng.integers(0, 2, people)
    facts = [(number[i], number[i + 1], 0, i) for i in range(k)]
    for extra in range(noise):
        ends = rng.permutation([number[rng.integers(0, k + 1)], number[k + 1 + extra]])
        facts.append((*ends, int(rng.integers(1, 4)), -1))
    facts = [facts[i] for i in rng.permutation(len(facts))]
    relations = [rng.choice([r for r in range(11) if r != SO or gender[x] != gender[y]]) for x, y, _, _ in facts]
    word = [2 * relation + gender[y] for relation, (_, y, _, _) in zip(relations, facts, strict=True)]
    role, step = [fact[2] for fact in facts], [fact[3] for fact in facts]
    return [[people], [len(facts)], [fact[:2] for fact in facts], word, gender, role, step]


def joined(puzzles):
    return [np.concatenate([np.asarray(p[column]) for p in puzzles]) for column in range(7)]


def batch(seed, ks, noise=0):
    rng = np.random.default_rng(seed)
    puzzles = [puzzle(rng, k, int(rng.integers(0, noise + 1))) for k in ks]
    return joined(puzzles), rng.integers(0, 2**64, len(ks), np.uint64)


def parts_of(arrays, stories):
    """Per puzzle: text, tokens, names, numbers, and facts (x, y, word, sentence, step) by numbers of people."""
    num_nodes, num_edges, edges, word, _, role, step = arrays
    nodes, facts = np.cumsum([0, *num_nodes]), np.cumsum([0, *num_edges])
    for i in range(len(num_nodes)):
        of_people, of_facts = slice(*nodes[i : i + 2]), slice(*facts[i : i + 2])
        columns = (word, stories.sentence, role, step)
        rows = zip(edges[of_facts].tolist(), *(column[of_facts].tolist() for column in columns), strict=True)
        told = [(x, y, WORDS[w], sentence, r, s) for (x, y), w, sentence, r, s in rows]
        yield stories.text[i], stories.tokens[i], stories.names[of_people], stories.entity[of_people].tolist(), told


@pytest.mark.parametrize("part", ["train", "test"])
@pytest.mark.parametrize("max_facts", [1, 2, 3])
def test_random_stories_are_read_back_in_the_order_of_their_sentences(part, max_facts):
    arrays, seeds = batch(max_facts, [*range(1, 11)] * 40, noise=6)
    stories = write_stories(*arrays, seeds, part, max_facts)
    for text, tokens, names, numbers, told in parts_of(arrays, stories):
        in_order = sorted(told, key=lambda fact: (fact[3], fact[5]))
        assert read_story(text, names) == [(names[x], names[y], word) for x, y, word, *_ in in_order]
        tags = [f"@ent{number}" for number in numbers]
        assert read_story(tokens, tags) == [(tags[x], tags[y], word) for x, y, word, *_ in in_order]


def test_drawn_puzzles_are_read_back():
    for k, noise in ((2, "none"), (4, "none"), (10, "none"), (3, "supporting"), (5, "irrelevant"), (6, "disconnected")):
        drawn = draw_puzzles(PuzzleParameters(k=k, noise=noise), 7, np.arange(40))
        arrays = (drawn.num_nodes, drawn.num_edges, drawn.edges, drawn.relation, drawn.gender, drawn.role, drawn.step)
        stories = write_stories(*arrays, np.arange(40, dtype=np.uint64), "test")
        for (text, _, names, _, told), one in zip(parts_of(arrays, stories), drawn, strict=True):
            assert {(names[x], names[y], word) for x, y, word in one.facts} == set(read_story(text, names))
            assert len(told) == len(one.facts)


def test_sentences_hold_runs_of_the_path_and_noise_alone():
    arrays, seeds = batch(3, [5, 7, 9] * 60, noise=4)
    lengths = Counter()
    for _, _, _, _, told in parts_of(arrays, write_stories(*arrays, seeds, "train")):
        sentences = {}
        for _, _, _, sentence, role, step in told:
            sentences.setdefault(sentence, []).append((role, step))
        assert sorted(sentences) == list(range(len(sentences)))
        for facts in sentences.values():
            steps = sorted(step for _, step in facts)
            assert facts[0][0] == 0 or len(facts) == 1
            assert steps == list(range(steps[0], steps[0] + len(steps)))
            lengths[len(facts)] += 1
    assert set(lengths) == {1, 2, 3}


def test_every_way_to_cut_the_path_is_as_likely():
    arrays, seeds = batch(4, [4] * 7000)
    cuts = Counter()
    for _, _, _, _, told in parts_of(arrays, write_stories(*arrays, seeds, "train")):
        by_step = [fact[3] for fact in sorted(told, key=lambda fact: fact[5])]
        cuts["".join("-" if a == b else "|" for a, b in pairwise(by_step))] += 1
    assert len(cuts) == 7 and "---" not in cuts  # 4 facts in runs of up to 3: 8 compositions but one
    assert max(abs(count - 1000) for count in cuts.values()) < 150


def test_sentences_are_shuffled():
    arrays, seeds = batch(5, [3] * 3000)
    stories = write_stories(*arrays, seeds, "train", 1)
    orders = Counter()
    for _, _, _, _, told in parts_of(arrays, stories):
        orders[tuple(fact[3] for fact in sorted(told, key=lambda fact: fact[5]))] += 1
    assert len(orders) == 6 and max(abs(count - 500) for count in orders.values()) < 110


def test_people_have_names_of_their_gender_and_numbers_of_their_own():
    arrays, seeds = batch(6, [2, 6, 10] * 300, noise=5)
    stories = write_stories(*arrays, seeds, "train")
    male, female = name_file().male, name_file().female
    for name, gender in zip(stories.names, arrays[4], strict=True):
        assert name in (female if gender else male)
    for text, tokens, names, numbers, _ in parts_of(arrays, stories):
        assert len(set(names)) == len(names) and len(set(numbers)) == len(numbers)
        assert min(numbers) >= 0 and max(numbers) < NUM_ENTITIES
        assert set(re.findall(r"@ent(\d+)", tokens)) == {str(number) for number in numbers}
        assert all(re.search(rf"\b{name}\b", text) for name in names)
    assert set(stories.names) == {*male, *female}
    assert np.bincount(stories.entity, minlength=32).min() > 0.8 * len(stories.entity) / 32


def test_tokens_are_the_text_in_lower_case_with_numbered_people():
    arrays, seeds = batch(7, [2, 3, 8] * 100, noise=3)
    stories = write_stories(*arrays, seeds, "test")
    for text, tokens, names, numbers, _ in parts_of(arrays, stories):
        for name, number in zip(names, numbers, strict=True):
            text = re.sub(rf"\b{name}\b", f"@ent{number}", text)
        spaced = re.sub(r"('s\b|[,.;:!?])", r" \1", text).lower()
        assert tokens == spaced
        assert not re.search(r"  |[A-Z]|[{}]", tokens)


def test_language_of_stories():
    arrays, seeds = batch(8, [*range(2, 11)] * 30, noise=3)
    for part in ("train", "test"):
        for text in write_stories(*arrays, seeds, part).text:
            for sentence in re.split(r"(?<=[.!?]) ", text):
                assert re.fullmatch(r"[A-Z].*\w[.!?]", sentence), sentence
            assert not re.search(r"  |[{}]|\s[,.;:!?]", text)


def test_a_story_uses_no_template_twice_while_there_are_others():
    rng = np.random.default_rng(9)
    for _ in range(50):
        one = puzzle(rng, 5, 0)
        one[3] = [6 + int(one[4][y]) for _, y in one[2]]  # five siblings
        text = write_stories(*joined([one]), rng.integers(0, 2**64, 1, np.uint64), "train", 1).text[0]
        shapes = [re.sub(r"\b([A-Z][a-z]+|his|her|brother|sister)\b", "_", s) for s in re.split(r"(?<=[.!?]) ", text)]
        assert len(set(shapes)) == 5


def test_parts_share_no_wording():
    arrays, seeds = batch(10, [1] * 3000)
    shapes = {}
    for part in ("train", "test"):
        stories = write_stories(*arrays, seeds, part)
        shapes[part] = {re.sub(r"@ent\d+", "@", re.sub(r"\b(his|her)\b", "_", tokens)) for tokens in stories.tokens}
        assert len(shapes[part]) >= 2 * sum(template.facts == 1 for template in templates_of(part))
    assert not shapes["train"] & shapes["test"]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.lists(st.integers(1, 10), min_size=2, max_size=6), st.data())
def test_a_story_depends_on_its_puzzle_and_seed_alone(seed, ks, data):
    rng = np.random.default_rng(seed)
    puzzles = [puzzle(rng, k, 2) for k in ks]
    seeds = rng.integers(0, 2**64, len(ks), np.uint64)
    whole = write_stories(*joined(puzzles), seeds, "train")
    chosen = data.draw(st.permutations(range(len(ks))))[: data.draw(st.integers(1, len(ks)))]
    some = write_stories(*joined([puzzles[i] for i in chosen]), seeds[chosen], "train")
    assert some.text == [whole.text[i] for i in chosen] and some.tokens == [whole.tokens[i] for i in chosen]
    nodes, facts = np.cumsum([0, *joined(puzzles)[0]]), np.cumsum([0, *joined(puzzles)[1]])
    people = np.concatenate([np.arange(*nodes[i : i + 2]) for i in chosen])
    told = np.concatenate([np.arange(*facts[i : i + 2]) for i in chosen])
    assert some.names == [whole.names[i] for i in people]
    assert np.array_equal(some.entity, whole.entity[people]) and np.array_equal(some.sentence, whole.sentence[told])


def test_seeds_make_different_stories_of_one_puzzle():
    one = puzzle(np.random.default_rng(11), 4, 1)
    stories = write_stories(*joined([one] * 200), np.arange(200, dtype=np.uint64), "train")
    assert len(set(stories.text)) == 200
    assert write_stories(*joined([one] * 200), np.arange(200, dtype=np.uint64), "train").text == stories.text


def test_order_of_the_facts_as_given_does_not_change_a_story_without_noise():
    rng = np.random.default_rng(12)
    one = puzzle(rng, 6, 0)
    order = rng.permutation(6)
    other = [one[0], one[1], *([column[i] for i in order] for column in one[2:4]), one[4]]
    other += [[column[i] for i in order] for column in one[5:]]
    seeds = np.array([5], np.uint64)
    first, second = (write_stories(*joined([p]), seeds, "train") for p in (one, other))
    assert first.text == second.text and np.array_equal(first.sentence[order], second.sentence)


def test_no_puzzles_make_no_stories():
    empty = np.empty(0, np.int64)
    arguments = (empty, empty, np.empty((0, 2), np.int64), *[empty] * 4)
    stories = write_stories(*arguments, np.empty(0, np.uint64), "train")
    assert stories.text == [] and stories.names == [] and stories.sentence.shape == (0,)


def write(arrays, part="train", max_facts=3):
    return write_stories(*arrays, np.zeros(len(arrays[0]), np.uint64), part, max_facts)


def changed(column, change, k=3, noise=0, seed=13):
    arrays, _ = batch(seed, [2, k], noise)
    arrays[column] = change(arrays[column].copy())
    return arrays


def put(place, value):
    def change(column):
        column[place] = value
        return column

    return change


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (changed(3, put(2, 22)), "unknown word 22"),
        (changed(3, put(2, -1)), "unknown word -1"),
        (changed(3, lambda c: c ^ 1), r"puzzle 0 calls a (fe)?male person"),
        (changed(4, put(0, 2)), "a gender is 2"),
        (changed(6, put(0, 5)), "puzzle 0 make no path"),
        (changed(6, lambda c: c + 1), "make no path"),
        (changed(2, put((0, 0), 7)), "puzzle 0 has 3 people.*person 7"),
        (changed(2, put((0, 1), -1)), "names person -1"),
        (changed(3, lambda c: c[:-1]), "have shapes"),
        (changed(1, put(1, 0)), "have shapes"),
        (changed(6, lambda c: c[::-1].copy(), k=5), "make no path"),
    ],
)
def test_arrays_that_make_no_puzzle_are_refused(arrays, message):
    with pytest.raises(TextError, match=message):
        write(arrays)


def chain(people, gender=0, relation=3):
    """A path through many brothers or sisters."""
    edges = np.array([(i, i + 1) for i in range(people - 1)])
    facts = np.zeros(people - 1, np.int64)
    word = facts + 2 * relation + gender
    return [
        np.array([people]),
        np.array([people - 1]),
        edges,
        word,
        np.full(people, gender),
        facts,
        np.arange(people - 1),
    ]


def test_puzzles_too_large_or_without_facts_or_going_in_circles_are_refused():
    assert len(read_story(write(chain(32)).text[0], write(chain(32)).names)) == 31
    with pytest.raises(TextError, match=r"33 people.*32"):
        write(chain(33))
    none = np.empty(0, np.int64)
    with pytest.raises(TextError, match="puzzle 0 has no facts"):
        write([np.array([2]), np.array([0]), np.empty((0, 2), np.int64), none, np.zeros(2, np.int64), none, none])
    circle = chain(4)
    circle[2][2] = (2, 0)
    with pytest.raises(TextError, match="puzzle 0 visits a person twice"):
        write(circle)
    himself = chain(3)
    himself[2][1] = (1, 1)
    with pytest.raises(TextError, match="make no path"):
        write(himself)
    with pytest.raises(TextError, match="max_facts is 4; give 1, 2 or 3"):
        write(chain(3), max_facts=4)
    with pytest.raises(TextError, match="unknown part 'dev'"):
        write(chain(3), part="dev")


def test_more_people_than_names_are_refused(monkeypatch):
    few = name_file().model_copy(update={"female": ("Eva", "Ida")})
    monkeypatch.setattr("graphbench.domains.clutrr.stories.name_file", lambda: few)
    assert set(write(chain(2, gender=1)).names) == {"Eva", "Ida"}
    with pytest.raises(TextError, match=r"3 female people.*2 female names"):
        write(chain(3, gender=1))


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("Beth is Adam's aunt.", [("Adam", "Beth", "aunt")]),
        ("Adam spent the summer on a boat with his aunt, Beth.", [("Adam", "Beth", "aunt")]),
        ("Adam hopes that his niece Beth will join the choir.", [("Adam", "Beth", "niece")]),
        ("Adam could not have asked for a kinder mother-in-law than Beth.", [("Adam", "Beth", "mother-in-law")]),
        (
            "Beth, Carl's sister, won first prize, and Carl, Adam's uncle, came second.",
            [("Adam", "Carl", "uncle"), ("Carl", "Beth", "sister")],
        ),
        (
            "The letter was signed by Carl, who is Beth's son, by Beth, who is Adam's wife, "
            "and by Adam, who is Dora's father.",
            [("Dora", "Adam", "father"), ("Adam", "Beth", "wife"), ("Beth", "Carl", "son")],
        ),
        (
            "Adam has a son called Carl. Dora phoned her father, Adam, but it was Adam's wife Beth who answered.",
            [("Adam", "Carl", "son"), ("Dora", "Adam", "father"), ("Adam", "Beth", "wife")],
        ),
        ("@ent3 is @ent11 's aunt .", [("@ent11", "@ent3", "aunt")]),
    ],
)
def test_directions_as_a_person_reads_them(text, facts):
    assert read_story(text, ["Adam", "Beth", "Carl", "Dora", "@ent3", "@ent11"]) == facts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("It rained all day.", "names none of its people"),
        ("", "names none of its people"),
        ("Beth is Adam's aunt. Beth loves Adam.", "cannot read 'Beth loves Adam.'"),
        ("Beth is Adam's aunt. Beth", "cannot read 'Beth'"),
        ("Beth is Adam's cousin.", 'cannot read "Beth is Adam\'s cousin."'),
        ("Beth is Eva's aunt.", 'cannot read "Beth is Eva\'s aunt."'),
        ("Beth is Beth's aunt.", "cannot read"),
        ("Adam plays the drums in a band, and her sister Beth sings", "cannot read"),
        ("Adam had tea with his aunt Beth and with Carl, who is Beth's son. It rained.", "cannot read 'It rained.'"),
        ("Beth is Adam's aunt. Beth is Carl's uncle.", "calls Beth both 'aunt' and 'uncle'"),
    ],
)
def test_texts_that_cannot_be_read_are_refused(text, message):
    with pytest.raises(TextError, match=re.escape(message)):
        read_story(text, ["Adam", "Beth", "Carl"])
    with pytest.raises(TextError, match=r"none of its people \(nobody\)"):
        read_story("Beth is Adam's aunt.", [])


@pytest.mark.parametrize(
    ("story", "people", "message"),
    [
        (None, ["Beth"], "the story is None; give a text"),
        (["Beth is Adam's aunt."], ["Beth"], "the story is"),
        ("Beth is Adam's aunt.", "Adam", "people is 'Adam'.*list"),
        ("Beth is Adam's aunt.", None, "people is None"),
        ("Beth is Adam's aunt.", 2, "people is 2"),
        ("Beth is Adam's aunt.", ["Adam", 2], "people holds 2; give names"),
        ("Beth is Adam's aunt.", [["Adam"]], r"people holds \['Adam'\]"),
    ],
)
def test_what_is_no_story_or_no_names_is_refused(story, people, message):
    with pytest.raises(TextError, match=message):
        read_story(story, people)


def test_a_changed_word_is_noticed():
    arrays, seeds = batch(14, [6] * 60)
    rng = np.random.default_rng(15)
    stories = write_stories(*arrays, seeds, "train")
    for text, _, names, _, _ in parts_of(arrays, stories):
        words = text.split(" ")
        dropped = int(rng.integers(len(words)))
        with pytest.raises(TextError):
            read_story(" ".join(words[:dropped] + words[dropped + 1 :]), names)


def test_question_and_answer_in_words():
    assert describe("aunt", "Bob", "Anna") == ("What is Anna to Bob?", "Anna is Bob's aunt.")
    assert read_story(describe("aunt", "Bob", "Anna").answer, ["Anna", "Bob"]) == [("Bob", "Anna", "aunt")]
    with pytest.raises(UnknownRelation, match="unknown word 'ant'; did you mean 'aunt'"):
        describe("ant", "Bob", "Anna")


def test_writing_and_reading_are_fast():
    arrays, seeds = batch(16, [2, 3, 4] * 1000)
    write_stories(*arrays, seeds, "train")
    begin = time.process_time()
    stories = write_stories(*arrays, seeds, "train")
    written = time.process_time()
    for text, _, names, _, _ in parts_of(arrays, stories):
        read_story(text, names)
    read = time.process_time()
    assert written - begin < 0.5  # 24,000 stories in 4 seconds
    assert read - written < 2
