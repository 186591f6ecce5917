"""The wordings: what the files hold, what is refused, language, and that each is read back as its facts."""

import copy
import itertools
import re

import numpy as np
import pytest

from graphbench.catalog.resources import datasets_dir, read_yaml
from graphbench.domains.clutrr.reading import path_and_facts, read_story
from graphbench.domains.clutrr.relations import NEUTRAL, WORDS
from graphbench.domains.clutrr.templates import (
    PARTS,
    NameFile,
    Template,
    TemplateError,
    TemplateFile,
    TextError,
    name_file,
    sentence_frames,
    template_file,
    templates_of,
    tokens_of,
    validated,
    wording_fault,
)

PROTOCOL = datasets_dir() / "clutrr" / "protocol"
NAMES = (("Adam", "Boris", "Conrad", "Dennis"), ("Alice", "Beth", "Clara", "Donna"))
ALL = [template for part in PARTS for template in templates_of(part)]


def rendered(template, genders, words):
    """A wording filled in from its text alone, by the notation that the file explains."""
    named = []

    def fill(match):
        kind, _, who = match[1].rpartition(":")
        person = "xyzw".index(who)
        name = NAMES[genders[person]][person]
        if not kind:
            named.append(person)
            return name
        if kind == "kin":
            return words[person - 1]
        if any(other != person and genders[other] == genders[person] for other in named):
            return name + ("'s" if kind.lower() == "his" else "")
        pronoun = {"he": ["he", "she"], "him": ["him", "her"], "his": ["his", "her"]}[kind.lower()][genders[person]]
        return pronoun if kind.islower() else pronoun.title()

    return re.sub(r"\{([^}]*)\}", fill, template.text)


def examples(seed, samples=6):
    """Every wording with every choice of genders, with words drawn for chains."""
    rng = np.random.default_rng(seed)
    for template in ALL:
        for genders in itertools.product((0, 1), repeat=template.facts + 1):
            for _ in range(1 if template.facts == 1 else samples):
                numbers = rng.integers(0, 11, template.facts) if template.relation is None else [template.relation]
                words = [WORDS[2 * number + gender] for number, gender in zip(numbers, genders[1:], strict=True)]
                names = [NAMES[gender][person] for person, gender in enumerate(genders)]
                yield rendered(template, genders, words), names, words


def test_every_word_has_many_wordings():
    for number in range(len(NEUTRAL)):
        assert sum(template.relation == number for template in ALL) >= 12
    assert sum(template.facts == 2 for template in ALL) >= 40
    assert sum(template.facts == 3 for template in ALL) >= 20
    assert len({(template.text, template.relation) for template in ALL}) == len(ALL)


def test_a_fifth_of_every_kind_is_for_test_alone():
    train, test = templates_of("train"), templates_of("test")
    kinds = sorted({(t.facts, t.relation or 0) for t in ALL})
    for kind in kinds:
        counts = [sum((t.facts, t.relation or 0) == kind for t in templates) for templates in (train, test)]
        assert counts[1] / sum(counts) == pytest.approx(0.2)
    assert not {t.text for t in train} & {t.text for t in test}
    with pytest.raises(TextError, match="unknown part 'val'"):
        templates_of("val")


def test_every_wording_with_all_genders_is_read_back_as_its_facts():
    count = 0
    for text, names, words in examples(seed=1):
        facts = [(x, y, word) for (x, y), word in zip(itertools.pairwise(names), words, strict=True)]
        assert read_story(text, names) == facts, text
        assert read_story(text, {*names, "Zoe"}) == facts
        count += 1
    assert count == 165 * 4 + 60 * 8 * 6 + 30 * 16 * 6


def test_no_wording_begins_another():
    paths = {}
    for template in ALL:
        for genders, form in template.forms():
            keys, pattern = path_and_facts(template, genders, form)
            any_kin = tuple(f"<{WORDS.index(key) % 2}>" if key in WORDS else key for key in keys)
            any_kin = tuple({"<male>": "<0>", "<female>": "<1>"}.get(key, key) for key in any_kin)
            assert paths.setdefault(any_kin, pattern) == pattern, template.text
    for path in paths:
        assert not any(path[:end] in paths for end in range(1, len(path))), path


def test_language_of_every_wording():
    for text, _, words in examples(seed=2, samples=3):
        for sentence in re.split(r"(?<=[.!?]) ", text):
            assert re.match(r"[A-Z]", sentence), text
            assert re.search(r"[\w][.!?]$", sentence), text
        assert not re.search(r"  |[{}:]\w|\s[.,;:!?]|\.\.", text), text
        for article, word in re.findall(r"\b([Aa]n?) (\w)", text):
            assert (article.lower() == "an") == (word in "aeiou"), text
        assert [token for token in tokens_of(text) if token in WORDS] and set(words) <= set(tokens_of(text))
        assert not re.search(r"\b(\w+) \1\b", text), text  # no word twice in a row


def test_nobody_is_told_of_before_being_introduced_by_an_ambiguous_pronoun():
    man, woman = 0, 1
    template = Template("{x} saw {his:x} {kin:y} {y}, and {he:x} waved. {His:y} dog barked at {him:x}.", 9, 1)
    assert rendered(template, (man, woman), ["aunt"]) == (
        "Adam saw his aunt Beth, and he waved. Her dog barked at him."
    )
    assert rendered(template, (woman, woman), ["aunt"]) == (
        "Alice saw her aunt Beth, and Alice waved. Beth's dog barked at Alice."
    )
    pieces = template.form((woman, woman))
    assert "".join(p.text or {"name": "AB"[p.person], "kin": "aunt"}[p.kind] for p in pieces) == (
        "A saw her aunt B, and A waved. B's dog barked at A."
    )
    pieces = template.form((man, woman))
    assert "".join(p.text or {"name": "AB"[p.person], "kin": "aunt"}[p.kind] for p in pieces) == (
        "A saw his aunt B, and he waved. Her dog barked at him."
    )


@pytest.mark.parametrize(
    ("text", "facts", "fault"),
    [
        ("{x} likes {his:x} {kin:y} {y}.", 1, None),
        ("{x} likes {his:x} {kin:y}.", 1, r"needs each of \{x\}, \{y\}"),
        ("{x} likes {y}.", 1, r"needs each of \{kin:y\} once"),
        ("{x} likes {his:x} {kin:y}, the {kin:y} {y}.", 1, r"needs each of \{kin:y\} once"),
        ("{x} likes {his:x} {kin:z} {z}.", 1, r"unknown placeholder \{kin:z\}"),
        ("{x} likes {its:x} {kin:y} {y}.", 1, r"unknown placeholder \{its:x\}"),
        ("{y} has {kin:x} {x}.", 1, r"unknown placeholder \{kin:x\}"),
        ("In {his:x} house {x} saw {y}, a {kin:y}.", 1, r"\{his:x\} comes before the name \{x\}"),
        ("{x} likes {his:x} {kin:y} {y", 1, "beside placeholders"),
        ("{x} isn't like {his:x} {kin:y} {y}.", 1, "beside placeholders"),
        ("{x} likes 7 of {his:x} {kin:y} {y}.", 1, "beside placeholders"),
        ("{x} told mum of {his:x} {kin:y} {y}.", 1, "'mum' tells of kinship"),
        ("{x} met both aunts and {his:x} {kin:y} {y}.", 1, "'aunts' tells of kinship"),
        ("{x} is a {kin:y} of {y}, a {kin:z} of {z}.", 2, "article"),
        ("{x} likes  {his:x} {kin:y} {y}.", 1, "single spaces"),
        ("{x} likes {his:x} {kin:y} {y} .", 1, "single spaces"),
        ("{x} likes {his:x} {kin:y},{y}.", 1, "single spaces"),
        ("{x} likes {his:x} {kin:y} {y}", 1, "at its end"),
        ("{x} likes {his:x} {kin:y} {y}. it rained.", 1, "begin with a capital"),
        ("{x} likes {his:x} {kin:y} {y}. {he:y} waved.", 1, "begin with a capital"),
    ],
)
def test_faulty_wordings_are_refused(text, facts, fault):
    found = wording_fault(text, facts)
    assert found is None if fault is None else re.search(fault, found)


def altered(change):
    content = copy.deepcopy(read_yaml(PROTOCOL / "templates.yaml"))
    change(content)
    return content


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(quadruple={}), "quadruple: Extra inputs"),
        (lambda c: c["double"].update(val=["x"]), "double.val: Extra inputs"),
        (lambda c: c["single"].pop("un"), r"missing \['un'\], unknown \[\]"),
        (lambda c: c["single"].update(cousin=c["single"]["un"]), r"missing \[\], unknown \['cousin'\]"),
        (lambda c: c["triple"].update(test=[]), "triple.test.*at least 1"),
        (lambda c: c["triple"].update(test=c["triple"]["test"][:1]), "1 of 25 wordings"),
        (
            lambda c: c["single"].update(un={p: c["single"]["un"][p][:n] for p, n in (("train", 4), ("test", 1))}),
            "un has 5 wordings; write at least 6",
        ),
        (lambda c: c["double"]["test"].append(c["double"]["train"][3]), "it stands twice"),
        (lambda c: c["single"]["un"]["test"].append("{x} is {y}."), r"wording '\{x\} is \{y\}.'"),
    ],
)
def test_malformed_files_of_templates_are_refused(change, message):
    with pytest.raises(TemplateError, match=message):
        validated(TemplateFile, altered(change), "templates.yaml")
    assert validated(TemplateFile, altered(lambda c: None), "templates.yaml") == template_file()


def test_frames_of_sentences_forget_people_and_kinship_alone():
    told = "It rained. {x} met {his:x} {kin:y} {y}, and {he:x} saw {him:x}! {His:y} {kin:z} is {z}?"
    assert sentence_frames(told) == (
        "it rained.",
        "<who> met <who>'s <kin> <who>, and <who> saw <who>!",
        "<who>'s <kin> is <who>?",
    )
    assert sentence_frames("{x}'s {kin:y} is {y}.") == sentence_frames("{z}'s {kin:y} is {x}.")
    assert sentence_frames("{x}'s {kin:y} is {y}.") != sentence_frames("{x}'s {kin:y} was {y}.")


@pytest.mark.parametrize(
    ("kind", "part", "text"),
    [
        ("double", "test", "It rained. {y} is {x}'s {kin:y}, and {z} is {y}'s {kin:z}."),
        ("double", "test", "It rained. {z} is {y}'s {kin:z}, and {y} is {x}'s {kin:y}."),  # another order of people
        ("double", "test", "{z} came. {x} bought a scarf for {x}'s {kin:y}, {y}. There was {y}'s {kin:z}."),
        ("triple", "test", "{w} slept. {y} was told by {x}'s {kin:y}. {z} is {y}'s {kin:z}. {w} is {z}'s {kin:w}."),
        ("double", "train", "What a day! {y} is dear to {x}, a true {kin:y}, and {z} is not, as {y}'s own {kin:z}."),
        (
            "triple",
            "train",
            "{z} is the {kin:z} of {y}, who in turn is the {kin:y} of {x}. {w} is {z}'s own {kin:w}.",
        ),
    ],
)
def test_no_sentence_stands_in_two_wordings(kind, part, text):
    with pytest.raises(TemplateError, match=r"hold-out.*write another"):
        validated(TemplateFile, altered(lambda c: c[kind][part].append(text)), "templates.yaml")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"male": ["Adam"], "female": ["Adam"]}, "the name 'Adam' stands twice"),
        ({"male": ["Adam", "Adam"], "female": ["Eva"]}, "the name 'Adam' stands twice"),
        ({"male": ["Jean Luc"], "female": ["Eva"]}, "not 'Jean Luc'"),
        ({"male": ["adam"], "female": ["Eva"]}, "not 'adam'"),
        ({"male": [], "female": ["Eva"]}, "male"),
        ({"male": ["Adam"], "female": ["Eva"], "any": ["Sam"]}, "any: Extra inputs"),
    ],
)
def test_malformed_files_of_names_are_refused(content, message):
    with pytest.raises(TemplateError, match=message):
        validated(NameFile, content, "names.yaml")


def test_names_are_many_and_no_words_of_templates():
    names = name_file()
    assert len(names.male) >= 150 and len(names.female) >= 150
    assert not set(names.male) & set(names.female)
    words = {word.lower() for t in ALL for word in re.findall(r"[A-Za-z-]+", re.sub(r"\{[^}]*\}", " ", t.text))}
    assert {"kites", "who", "lisbon"} <= words
    assert not words & {name.lower() for name in (*names.male, *names.female)}


def test_tokens_of_a_text():
    assert tokens_of("Anna's mother-in-law, Beth, left.") == [
        "Anna",
        "'s",
        "mother-in-law",
        ",",
        "Beth",
        ",",
        "left",
        ".",
    ]
    assert tokens_of("@ent7 's aunt is @ent31 !") == ["@ent7", "'s", "aunt", "is", "@ent31", "!"]
