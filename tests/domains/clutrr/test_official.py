"""Published files: written here, on people and stories of our own, and read back."""

import csv
import json
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.core.errors import StoreError
from graphbench.domains.clutrr.files.official import read_official
from graphbench.domains.clutrr.files.rows import COLUMNS, parse_row, split_words
from graphbench.domains.clutrr.relations import WORDS

GOLDEN = Path(__file__).resolve().parents[4] / "shared" / "golden" / "clutrr" / "golden_public.jsonl"
PEOPLE = "Ann:female,Cy:male,Bob:male"


def cells(
    words=("father", "brother"),
    target="uncle",
    genders=PEOPLE,
    noise=(),
    kind=1,
    part="test",
    number=0,
    **changes,
):
    """Column -> text of a puzzle about a chain of the first people of ``genders``, with ``changes``."""
    names = [person.split(":")[0] for person in genders.split(",")]
    k = len(words)
    path = [(i, i + 1) for i in range(k)]
    told = [f"[{names[x]}] met {word} [{names[y]}]." for (x, y), word in zip(path, words, strict=True)]
    query = (names[0], names[k])
    row = {
        "": str(number),
        "id": f"{part}-{kind}-{k}-{number}",
        "story": " ".join(reversed(told)),
        "query": repr(query),
        "text_query": "",
        "target": target,
        "text_target": repr([f"[{query[1]}] is the {target} of [{query[0]}]."]),
        "clean_story": " ".join(told),
        "proof_state": repr([{(query[0], target, query[1]): [(query[0], words[0], names[1])]}]),
        "f_comb": "-".join(words),
        "task_name": f"task_{kind}.{k}",
        "story_edges": repr([*path, *noise]),
        "edge_types": repr(list(words)),
        "query_edge": repr((0, k)),
        "genders": genders,
        "syn_story": "",
        "node_mapping": repr({3 * i + 1: i for i in range(len(names))}),
        "task_split": part,
    }
    assert set(changes) <= set(row)
    return row | changes


def write(folder, name, *rows, columns=COLUMNS):
    folder.mkdir(exist_ok=True)
    with (folder / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return folder


def failure(folder):
    with pytest.raises(StoreError) as caught:
        read_official(folder)
    return str(caught.value)


def relations(split):
    """Edge -> word, None where unknown."""
    return {
        tuple(edge): WORDS[number] if number < 22 else None
        for edge, number in zip(split.edges.tolist(), split.by_edge["relation"].tolist(), strict=True)
    }


def test_every_column_of_samples_is_parsed(tmp_path):
    row = read_official(write(tmp_path, "1.2_test.csv", cells()))["k2"].rows[0]
    assert (row.id, row.noise, row.k, row.part, row.place) == ("test-1-2-0", 1, 2, "k2", "1.2_test.csv, row 1")
    assert row.story == "[Cy] met brother [Bob]. [Ann] met father [Cy]."
    assert (row.query, row.query_edge, row.target) == (("Ann", "Bob"), (0, 2), "uncle")
    assert row.f_comb == row.edge_types == ("father", "brother")
    assert row.story_edges == ((0, 1), (1, 2))
    assert list(row.genders.items()) == [("Ann", "female"), ("Cy", "male"), ("Bob", "male")]
    assert (row.task_name, row.task_split) == ("task_1.2", "test")


def test_arrays_are_those_of_our_own_puzzles(tmp_path):
    longer = cells(("son", "sister", "husband"), "son-in-law", "Di:female,Ed:male,Flo:female,Gus:male", number=1)
    folder = write(tmp_path, "1.2,1.3_train.csv", cells(part="train"), longer | {"task_split": "train"})
    split = read_official(folder)["train"]
    assert len(split.rows) == 2
    assert split.num_nodes.tolist() == [3, 4]
    assert split.num_edges.tolist() == [2, 3]
    assert split.edges.tolist() == [[0, 1], [1, 2], [0, 1], [1, 2], [2, 3]]
    assert [WORDS[i] for i in split.by_edge["relation"]] == ["father", "brother", "son", "sister", "husband"]
    assert [WORDS[i] for i in split.by_graph["answer"]] == ["uncle", "son-in-law"]
    assert split.by_node["asker"].tolist() == [1, 0, 0, 1, 0, 0, 0]
    assert split.by_node["asked"].tolist() == [0, 0, 1, 0, 0, 0, 1]
    assert split.by_node["gender"].tolist() == [1, 0, 0, 1, 0, 1, 0]
    assert split.by_edge["role"].tolist() == [0] * 5
    assert split.by_edge["step"].tolist() == [0, 1, 0, 1, 2]
    assert split.by_edge["sentence"].tolist() == [-1] * 5
    assert split.names == ["Ann", "Cy", "Bob", "Di", "Ed", "Flo", "Gus"]
    assert split.texts["story"][0] == "Cy met brother Bob. Ann met father Cy."


def test_tokens_hide_the_people(tmp_path):
    story = "[Ann]'s dad, [Cy], hadn't called his brother-in-law. [Cy] 'son [Bob]"
    split = read_official(write(tmp_path, "1.2_test.csv", cells(story=story)))["k2"]
    ann, cy, bob = split.by_node["entity"].tolist()
    expected = f"@ent{ann} 's dad , @ent{cy} , hadn't called his brother-in-law . @ent{cy} ' son @ent{bob}"
    assert split.texts["tokens"] == [expected]


def test_entities_depend_on_seed_and_puzzle_alone(tmp_path):
    rows = [cells(number=i) for i in range(20)]
    both = [
        read_official(write(tmp_path / name, "1.2_test.csv", *some))["k2"]
        for name, some in (("all", rows), ("last", rows[10:]))
    ]
    assert both[0].by_node["entity"][30:].tolist() == both[1].by_node["entity"].tolist()
    assert both[0].texts["tokens"][10:] == both[1].texts["tokens"]
    entities = both[0].by_node["entity"].reshape(20, 3)
    assert all(len(set(own)) == 3 for own in entities.tolist())
    assert len(set(entities[:, 0].tolist())) > 5
    assert entities.max() < 32
    other = read_official(tmp_path / "all", seed=1)["k2"]
    assert other.by_node["entity"].tolist() != both[0].by_node["entity"].tolist()


def test_splits_are_named_by_task_in_order(tmp_path):
    people = "Ann:female,Cy:male,Bob:male,Di:female,Ed:male"
    long = ",".join(f"P{i}:male" for i in range(11))
    write(tmp_path, "1.2,1.3_train.csv", cells(part="train"))
    write(tmp_path, "1.10_test.csv", cells(("brother",) * 10, "brother", long))
    write(tmp_path, "1.2_test.csv", cells())
    for kind, noise in ((2, [(0, 3), (3, 1)]), (3, [(1, 3)]), (4, [(3, 4)]), (5, [(0, 3), (3, 1)])):
        write(tmp_path, f"{kind}.2_test.csv", cells(genders=people, kind=kind, noise=noise))
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "notes.csv").write_text("mine")
    splits = read_official(tmp_path)
    assert list(splits) == ["train", "k2", "k10", "supporting_k2", "irrelevant_k2", "disconnected_k2", "mixed_k2"]
    roles = {name: splits[name].by_edge["role"].tolist() for name in splits if name.endswith("_k2")}
    assert roles == {
        "supporting_k2": [0, 1, 0, 1],
        "irrelevant_k2": [0, 0, 2],
        "disconnected_k2": [0, 0, 3],
        "mixed_k2": [0, 1, 0, 1],
    }


def test_several_tasks_of_a_test_file_are_several_splits(tmp_path):
    three = cells(("father", "brother", "son"), "brother", PEOPLE + ",Ed:male")
    splits = read_official(write(tmp_path, "1.2,1.3_test.csv", three, cells()))
    assert {name: len(split.rows) for name, split in splits.items()} == {"k3": 1, "k2": 1}


def test_mixed_noise_takes_its_roles_from_the_graph(tmp_path):
    people = ",".join(f"P{i}:male" for i in range(9))
    noise = [(0, 3), (3, 1), (1, 4), (4, 5), (6, 7), (2, 1), (8, 2)]
    split = read_official(write(tmp_path, "5.2_test.csv", cells(genders=people, noise=noise, kind=5)))["mixed_k2"]
    roles = dict(zip(map(tuple, split.edges.tolist()), split.by_edge["role"].tolist(), strict=True))
    assert roles == {
        (0, 1): 0, (1, 2): 0, (0, 3): 1, (3, 1): 1, (2, 1): 1, (1, 4): 2, (4, 5): 2, (8, 2): 2, (6, 7): 3,
    }  # fmt: skip


def test_a_fact_passed_twice_is_one_edge(tmp_path):
    row = cells(
        ("father", "daughter", "father", "brother"),
        genders=PEOPLE + ",Ed:male,Flo:female",
        story_edges="[(0, 1), (1, 0), (0, 1), (1, 2)]",
        query_edge="(0, 2)",
        query="('Ann', 'Bob')",
    )
    split = read_official(write(tmp_path, "1.4_test.csv", row))["k4"]
    assert split.edges.tolist() == [[0, 1], [1, 0], [1, 2]]
    assert split.by_edge["step"].tolist() == [0, 1, 3]
    assert [WORDS[i] for i in split.by_edge["relation"]] == ["father", "daughter", "brother"]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("father-brother", ["father", "brother"]),
        ("son-in-law", ["son-in-law"]),
        ("son-son-in-law-son", ["son", "son-in-law", "son"]),
        ("mother-in-law-mother-sister-in-law", ["mother-in-law", "mother", "sister-in-law"]),
        ("grandson-neice", ["grandson", "niece"]),
    ],
)
def test_paths_are_split_at_words(path, words):
    assert list(split_words(path)) == words


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=10))
def test_splitting_undoes_joining(words):
    assert list(split_words("-".join(words))) == words


@pytest.mark.parametrize("path", ["", "cousin", "father--son", "father-", "son-in", "father-cousin-son", "fatherson"])
def test_other_paths_are_refused(path):
    with pytest.raises(ValueError, match="no relation word"):
        split_words(path)


def test_the_misspelt_niece_is_read(tmp_path):
    row = cells(
        ("brother", "daughter"),
        "neice",
        "Cy:male,Bob:male,Ann:female",
    )
    split = read_official(write(tmp_path, "1.2_test.csv", row))["k2"]
    assert split.rows[0].target == WORDS[split.by_graph["answer"][0]] == "niece"


NAMES = st.text("abcdefgh -'é", min_size=1, max_size=5).filter(lambda name: name.strip() == name)


def word_gender(word):
    return "male" if WORDS.index(word) % 2 == 0 else "female"


@st.composite
def drawn_cells(draw):
    words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6))
    names = draw(st.lists(NAMES, min_size=len(words) + 1, max_size=9, unique=True))
    called = [word_gender(word) for word in words]  # of all but the first, and of who is noise
    sexes = [draw(st.sampled_from(["male", "female"])) for _ in names]
    sexes[1 : len(words) + 1] = called
    genders = ",".join(map(":".join, zip(names, sexes, strict=True)))
    text = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=30)
    kind = draw(st.integers(1, 5))
    others = range(len(words) + 1, len(names) if kind > 1 else 0)
    noise = [(draw(st.integers(0, len(words))), other) for other in others]
    told = {column: draw(text) for column in ("clean_story", "text_query", "syn_story")}
    told["story"] = draw(text) + f"[{draw(st.sampled_from([names[0], names[len(words)]]))}]" + draw(text)
    told["id"] = draw(text.filter(str.strip))
    sentences = repr(draw(st.lists(text, max_size=2)))
    number, target = draw(st.integers(0, 10**6)), draw(st.sampled_from(WORDS))
    return cells(words, target, genders, noise, kind, number=number, text_target=sentences, **told)


def as_cells(row):
    """The columns of a parsed row."""
    return {
        "id": row.id,
        "story": row.story,
        "query": repr(row.query),
        "target": row.target,
        "f_comb": "-".join(row.f_comb),
        "task_name": row.task_name,
        "story_edges": repr(list(row.story_edges)),
        "edge_types": repr(list(row.edge_types)),
        "query_edge": repr(row.query_edge),
        "genders": ",".join(":".join(person) for person in row.genders.items()),
        "task_split": row.task_split,
    }


def read_cells(row):
    """The cells that samples are made of."""
    unread = {"", "text_query", "text_target", "clean_story", "proof_state", "syn_story", "node_mapping"}
    return {column: text for column, text in row.items() if column not in unread}


@given(drawn_cells())
def test_parsing_loses_nothing(row):
    assert as_cells(parse_row(Path("x.csv"), 1, row)) == read_cells(row)


@settings(max_examples=25, deadline=None)
@given(drawn_cells())
def test_files_are_read_as_written(row):
    kind, k = row["task_name"].removeprefix("task_").split(".")
    with tempfile.TemporaryDirectory() as folder:
        splits = read_official(write(Path(folder), f"{kind}.{k}_test.csv", row))
    ((name, split),) = splits.items()
    assert name.endswith(f"k{k}")
    assert as_cells(split.rows[0]) == read_cells(row)
    people, facts = len(split.rows[0].genders), set(split.rows[0].story_edges)
    assert {len(split.names), split.num_nodes[0], *map(len, split.by_node.values())} == {people}
    assert {split.num_edges[0], *map(len, split.by_edge.values())} == {len(facts)}
    assert set(map(tuple, split.edges.tolist())) == facts
    assert (split.by_edge["relation"][split.by_edge["role"] == 0] < 22).all()


# Relations of noise facts.


def read_one(folder, **row):
    ((_, split),) = read_official(write(folder, f"{row['kind']}.{len(row['words'])}_test.csv", cells(**row))).items()
    return split


def test_known_types_of_noise_are_taken_as_they_are(tmp_path):
    split = read_one(
        tmp_path,
        words=("father", "brother"),
        genders=PEOPLE + ",Di:female",
        noise=[(1, 3)],
        kind=3,
        edge_types="['father', 'brother', 'aunt']",
    )
    assert relations(split) == {(0, 1): "father", (1, 2): "brother", (1, 3): "aunt"}


@pytest.mark.parametrize(
    ("words", "genders", "noise", "expected"),
    [
        # An aunt is a parent's sister, whoever the parent.
        (("aunt", "son"), "Ann:female,Bea:female,Cy:male,Di:female", [(0, 3), (3, 1)], ("mother", "sister")),
        # A child by another way: a spouse's, or a child's sibling; of two women, the latter.
        (("son", "son"), "Ann:female,Bob:male,Cy:male,Di:female", [(0, 3), (3, 1)], ("daughter", "brother")),
        # ... and where the wife's husband is another man.
        (("wife", "son"), "Ed:male,Ann:female,Bob:male,Cy:male", [(1, 3), (3, 2)], ("son", "brother")),
        (("son", "son"), "Ann:female,Bob:male,Cy:male,Ed:male", [(0, 3), (3, 1)], (None, None)),
    ],
)
def test_supporting_facts_are_derived_where_only_one_rule_fits(tmp_path, words, genders, noise, expected):
    split = read_one(tmp_path, words=words, target="son", genders=genders, noise=noise, kind=2)
    assert tuple(relations(split)[edge] for edge in noise) == expected


@pytest.mark.parametrize(
    ("words", "genders", "start", "expected"),
    [
        (("uncle", "son"), "Ann:female,Bob:male,Cy:male,Di:female", 0, "mother"),
        (("son", "son"), "Ann:female,Bob:male,Cy:male,Di:female", 0, "daughter"),
        (("son", "son"), "Ann:female,Bob:male,Cy:male,Ed:male", 0, None),
        (("uncle", "son"), "Ann:female,Bob:male,Cy:male,Di:female", 2, None),
    ],
)
def test_irrelevant_facts_are_derived_where_only_one_rule_fits(tmp_path, words, genders, start, expected):
    split = read_one(tmp_path, words=words, target="son", genders=genders, noise=[(start, 3)], kind=3)
    assert relations(split)[start, 3] == expected


def test_noise_between_people_of_the_path_follows_from_it(tmp_path):
    row = {"words": ("father", "father", "brother"), "genders": PEOPLE + ",Ed:male", "target": "uncle"}
    assert relations(read_one(tmp_path, noise=[(0, 2)], kind=2, **row))[0, 2] == "grandfather"


def test_disconnected_facts_stay_unknown(tmp_path):
    people = PEOPLE + ",Di:female,Ed:male"
    split = read_one(tmp_path, words=("father", "brother"), genders=people, noise=[(3, 4)], kind=4)
    assert relations(split)[3, 4] is None
    assert split.by_edge["relation"].tolist()[-1] == 22


def test_noise_of_another_kind_gets_its_role_from_the_graph_and_no_relation(tmp_path):
    people = "Ann:female,Bob:male,Cy:male,Di:female"
    own = {"words": ("uncle", "son"), "target": "son", "genders": people, "noise": [(0, 3)]}
    assert relations(read_one(tmp_path, kind=3, **own))[0, 3] == "mother"
    (tmp_path / "4").mkdir()
    other = read_one(tmp_path / "4", kind=4, **own)
    assert relations(other)[0, 3] is None
    assert other.by_edge["role"].tolist() == [0, 2, 0]


# Errors.


BAD = [
    ("query", "Ann and Bob", "expected ('Ann', 'Bob')"),
    ("query", "('Ann',)", "not a pair of names"),
    ("query", "('Ann', 'Zoe')", "'Zoe' is not among the people"),
    ("query", "__import__('os').getcwd()", "'query': it cannot be read; expected ('Ann', 'Bob') (got"),
    ("query", "('Ann', 'Bob'", "'query': it cannot be read; expected ('Ann', 'Bob') (got"),
    ("story_edges", "(" * 500, "'story_edges': it cannot be read; expected [(0, 1), (1, 2)] (got"),
    ("target", "cousin", "'cousin' is no relation word"),
    ("target", "fathr", "did you mean 'father'"),
    ("f_comb", "father-friend", "'friend' is no relation word"),
    ("f_comb", "father-brother-son", "3 words, but task_1.2 has 2 facts"),
    ("f_comb", "father-son", "not the words of 'f_comb'"),
    ("task_name", "task_6.2", "an unknown task"),
    ("story_edges", "[(0, 1), (1,)]", "not a list of number pairs"),
    ("story_edges", "[(0, 1)]", "1 facts, but task_1.2 has 2"),
    ("story_edges", "[(0, 1), (1, 2), (2, 0)]", "3 facts, but task_1.2 has 2 and no noise"),
    ("id", " ", "it is empty"),
    ("story", "", "it names neither of ('Ann', 'Bob'), the people of the question"),
    ("story", "Ann met Bob, and [Zoe] met [Cy].", "it names neither of ('Ann', 'Bob'), the people of the question"),
    ("genders", "Ann:female,Cy:female,Bob:male", "'father' for 'Cy', who is female in 'genders'"),
    ("genders", "Ann:female,Cy:male,Bob:female", "'brother' for 'Bob', who is female in 'genders'"),
    ("story_edges", "[(0, 1), (1, 3)]", "a person who is none of the 3"),
    ("story_edges", "[(0, 1), (1, 1)]", "a fact about one person"),
    ("story_edges", "[(0, 1), (0, 1)]", "the first 2 facts are no path from 0 to 2"),
    ("story_edges", "[(0, 1), (0, 2)]", "the first 2 facts are no path from 0 to 2"),
    ("story_edges", "[(1, 0), (2, 1)]", "the first 2 facts are no path from 0 to 2"),
    ("edge_types", "['father', 'pal']", "'pal' is no relation word"),
    ("edge_types", "['father', 'brother', 'son', 'son']", "4 words for 2 facts of the path, 2 in all"),
    ("edge_types", "[0, 1]", "not a list of words"),
    ("query_edge", "(0, 3)", "not two of the 3 people"),
    ("query_edge", "(2, 0)", "not the people of 'query'"),
    ("query_edge", "0, 'x'", "not a pair of numbers"),
    ("genders", "Ann:female,Cy,Bob:male", "has the gender 'Cy'"),
    ("genders", "Ann:female,Ann:male,Bob:male", "'Ann' stands twice"),
    ("genders", ",".join([PEOPLE, *(f"P{i}:male" for i in range(30))]), "33 people, at most 32"),
    ("task_split", "dev", "an unknown split"),
]


@pytest.mark.parametrize(("column", "text", "problem"), BAD)
def test_a_bad_cell_is_an_error_that_names_it(tmp_path, column, text, problem):
    message = failure(write(tmp_path, "1.2_test.csv", cells(), cells(number=1) | {column: text}))
    assert problem in message
    assert str(tmp_path / "1.2_test.csv") in message
    assert "row 2, column " in message
    assert "take the file as published" in message


NOISY = PEOPLE + ",Di:female,Ed:male"


@pytest.mark.parametrize("edge", [(0, 2), (2, 0)])
@pytest.mark.parametrize("kind", [2, 3, 4, 5])
def test_noise_that_tells_the_answer_is_refused(tmp_path, kind, edge):
    message = failure(write(tmp_path, f"{kind}.2_test.csv", cells(genders=NOISY, noise=[(0, 3), edge], kind=kind)))
    assert f"column 'story_edges': the fact {edge} relates the two people of the question" in message


def test_a_path_that_tells_the_answer_is_refused(tmp_path):
    path = {"words": ("uncle", "brother", "brother"), "genders": "Ann:female,Bob:male,Cy:male,Ed:male"}
    told = cells(**path, target="uncle", story_edges="[(0, 2), (2, 1), (1, 2)]", query_edge="(0, 2)")
    assert "relates the two people of the question" in failure(
        write(tmp_path, "1.3_test.csv", told | {"query": "('Ann', 'Cy')"})
    )


@pytest.mark.parametrize("column", COLUMNS)
def test_a_missing_column_is_an_error_that_names_it(tmp_path, column):
    kept = [name for name in COLUMNS if name != column]
    message = failure(write(tmp_path, "1.2_test.csv", cells(), columns=kept))
    assert (repr(column) if column else "without a name") in message
    assert "18 columns" in message


def test_a_mirror_is_pointed_out(tmp_path):
    columns = [name for name in COLUMNS if name != "node_mapping"] + ["target_text"]
    assert "take the authors' files" in failure(write(tmp_path, "1.2_test.csv", cells(), columns=columns))


def test_a_folder_without_files(tmp_path):
    assert "has no file named like" in failure(tmp_path)
    assert "is not a folder" in failure(tmp_path / "nowhere")
    write(tmp_path / "data_b", "1.2_test.csv", cells())
    write(tmp_path / "data_a", "1.2,1.3_train.csv", cells(part="train"))
    assert "give one of its folders: data_a, data_b" in failure(tmp_path)


def test_training_and_test_files_mixed_up(tmp_path):
    (tmp_path / "a").mkdir()
    message = failure(write(tmp_path / "a", "1.2_test.csv", cells(part="train")))
    assert "row 1, column 'task_split': " in message and "(got 'train')" in message
    assert "mixed up" in message
    message = failure(write(tmp_path / "b", "1.3_test.csv", cells()))
    assert "row 1, column 'task_name': " in message and "(got 'task_1.2')" in message
    write(tmp_path / "c", "1.2_train.csv", cells(part="train", id="same"))
    message = failure(write(tmp_path / "c", "1.2_test.csv", cells(id="same")))
    assert re.search(r"'same' is in 'train' and in 'k2'; .*mixed up", message)


def test_files_that_are_no_tables(tmp_path):
    (tmp_path / "latin").mkdir()
    text = write(tmp_path, "1.2_test.csv", cells(story="[Ann] aß.")).joinpath("1.2_test.csv").read_text("utf-8")
    (tmp_path / "latin" / "1.2_test.csv").write_bytes(text.encode("latin-1"))
    assert "can't decode byte 0xdf" in failure(tmp_path / "latin")
    header = ",".join(COLUMNS)
    for name, content, problem in (
        ("short", f"{header}\n0,1,2\n", "row 1: 3 cells, 18 columns"),
        ("none", "", "lacks the column"),
        ("empty", f"{header}\n", "has no rows"),
        ("quote", f'{header}\n"a"b\n', "is damaged (Error: ',' expected after"),
        ("semicolons", header.replace(",", ";") + "\n", "has ';' between its cells, a published file ','; save it "),
        ("tabs", header.replace(",", "\t") + "\n", r"has '\t' between its cells, a published file ','"),
        ("twice", f"{header},story\n", "has a column twice"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.2_test.csv").write_text(content)
        assert problem in failure(tmp_path / name)
    (tmp_path / "folder" / "1.2_test.csv").mkdir(parents=True)
    assert "cannot be read" in failure(tmp_path / "folder")


def test_empty_lines_are_no_harm_at_the_end_alone(tmp_path):
    file = write(tmp_path, "1.2_test.csv", cells(), cells(number=1)) / "1.2_test.csv"
    text = file.read_text("utf-8")
    file.write_text(text + "\n\n\n", "utf-8")
    assert len(read_official(tmp_path)["k2"].rows) == 2
    head, first, second = text.splitlines()
    file.write_text("\n".join([head, first, "", "", second]), "utf-8")
    assert "row 2 is an empty line; take the file as published" in failure(tmp_path)


def test_a_byte_order_mark_is_no_harm(tmp_path):
    file = write(tmp_path, "1.2_test.csv", cells()) / "1.2_test.csv"
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert len(read_official(tmp_path)["k2"].rows) == 1


# The published generator.


@pytest.fixture(scope="module")
def golden():
    if not GOLDEN.exists():
        pytest.skip(f"{GOLDEN} is not here")
    puzzles = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
    return [puzzle | {"id": str(number)} for number, puzzle in enumerate(puzzles)]  # the ids there repeat


KINDS = {"none": 1, "supporting": 2, "irrelevant": 3, "disconnected": 4}


def golden_folder(folder, puzzles):
    rows = {}
    for puzzle in puzzles:
        words = [edge[3] for edge in puzzle["path_edges"]]
        kind, k = KINDS[puzzle["noise_type"]], puzzle["k"]
        genders = ",".join(f"P{i}:{puzzle['genders'][str(i)]}" for i in range(puzzle["num_nodes"]))
        edges = [tuple(edge[:2]) for edge in puzzle["path_edges"] + puzzle["noise_edges"]]
        rows.setdefault(f"{kind}.{k}_test.csv", []).append({
            **cells(["son"], "son", "A:male,B:male"),
            "id": puzzle["id"],
            "target": puzzle["target_gendered"],
            "query": repr(tuple(f"P{i}" for i in puzzle["query"])),
            "query_edge": repr(tuple(puzzle["query"])),
            "f_comb": "-".join(words),
            "edge_types": repr(words),
            "story_edges": repr(edges),
            "genders": genders,
            "story": " ".join(f"[P{i}]" for i in range(puzzle["num_nodes"])),
            "proof_state": "[]",
            "node_mapping": repr({i: i for i in range(puzzle["num_nodes"])}),
            "task_name": f"task_{kind}.{k}",
        })  # fmt: skip
    for name, own in rows.items():
        write(folder, name, *own)
    return folder


def test_derived_noise_is_what_the_generator_made(tmp_path, golden):
    truth = {p["id"]: {(x, y): word for x, y, _, word in p["path_edges"] + p["noise_edges"]} for p in golden}
    derived = {2: 0, 3: 0, 4: 0}
    for split in read_official(golden_folder(tmp_path, golden)).values():
        ends = np.cumsum(split.num_edges)[:-1]
        parts = zip(np.split(split.edges, ends), np.split(split.by_edge["relation"], ends), strict=True)
        for row, (edges, found) in zip(split.rows, parts, strict=True):
            for edge, number in zip(map(tuple, edges.tolist()), found.tolist(), strict=True):
                if number < 22:
                    assert WORDS[number] == truth[row.id][edge]
                    if edge in row.story_edges[row.k :]:
                        derived[row.noise] += 1
    assert derived[2] > 20
    assert derived[3] > 5
    assert derived[4] == 0
