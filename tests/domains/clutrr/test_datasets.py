"""The datasets of CLUTRR: cards, samples, checks, solvers, and published files through the Loader."""

import csv
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import graphbench
from graphbench.catalog.names import catalog, list_datasets
from graphbench.core.errors import CardError, StoreError
from graphbench.data.arrays.seeds import stream_key
from graphbench.data.arrays.texts import Texts
from graphbench.data.build.generation import draw_samples
from graphbench.data.components.domain import find
from graphbench.domains.clutrr.checks import StoredQuestions, check_stories, solver_scores
from graphbench.domains.clutrr.clauses import held_out
from graphbench.domains.clutrr.files.rows import COLUMNS
from graphbench.domains.clutrr.puzzle_checks import check_puzzles
from graphbench.domains.clutrr.puzzles import draw_puzzles
from graphbench.domains.clutrr.relations import WORDS
from graphbench.testing import check_dataset

SOUND = ["clutrr/gen_23", "clutrr/gen_234", *(f"clutrr/rob_{n}" for n in ("clean", "supporting", "irrelevant"))]


def drawn(name, split, count):
    card = catalog().cards[name]
    return find("generator", card.generator).parse(card, split), draw_samples(card, split, np.arange(count))


def walks(samples):
    """Words along the path of every sample."""
    found = []
    for e, f in zip(samples.edge_ptr[:-1], samples.edge_ptr[1:], strict=True):
        step, word = samples.values["step"][e:f], samples.values["relation"][e:f]
        found.append(tuple(WORDS[word[step == i][0]] for i in range(int((step >= 0).sum()))))
    return found


def test_the_datasets_are_those_of_the_paper():
    assert len(list_datasets("clutrr/*")) == 12
    card = graphbench.card("clutrr/gen_234")
    assert (card.split("train").count, list(card.ood)) == (15_000, [f"k{k}" for k in range(2, 11)])
    assert {card.split(f"k{k}").count for k in range(2, 11)} == {1000}
    assert list(graphbench.card("clutrr/rob_clean").ood) == ["clean", "supporting", "irrelevant", "disconnected"]


@pytest.mark.parametrize("name", list_datasets("clutrr/*"))
def test_cards_say_how_they_differ_from_the_paper(name):
    card = catalog().cards[name]
    told = " ".join(card.source.deviations)
    assert ("32 compositions" in told) == ("random families" in told) == ("paper" not in name)
    for deviation in ("22", "18", "our own", "a tenth of the pairs of words", "ten times as many", "nobody twice"):
        assert deviation in told, deviation
    splits = {"test", "k2", "k3"} if "gen" in name else {"test", *card.ood}
    trained = set(walks(drawn(name, "train", 4000)[1]))
    for split in splits:  # as the cards say
        assert not trained & set(walks(drawn(name, split, 400)[1]))
    assert len([w for w in trained if len(w) == 2]) > 50


@pytest.mark.parametrize("name", list_datasets("clutrr/*"))
def test_samples_pass_their_checks(name):
    for split in catalog().cards[name].all_splits:
        parameters, samples = drawn(name, split, 30)
        assert check_stories(parameters, samples) == []


@pytest.mark.parametrize("name", SOUND)
def test_facts_and_answers_are_true_in_the_family(name):
    card = catalog().cards[name]
    for split in ("train", *list(card.ood)[:4]):
        parameters, _ = drawn(name, split, 1)
        key, k = int(stream_key(card.id, card.version, split)), parameters.lengths[-1]
        indices = np.arange(len(parameters.lengths) - 1, 120, len(parameters.lengths))
        puzzles = draw_puzzles(parameters.puzzles(k), key, indices)
        assert check_puzzles(puzzles, parameters.puzzles(k), key, indices) == []


def test_lengths_come_in_turn_and_a_sample_depends_on_its_index_alone():
    card = catalog().cards["clutrr/gen_234"]
    samples = draw_samples(card, "train", np.arange(9))
    assert samples.num_edges.tolist() == [2, 3, 4] * 3
    again = draw_samples(card, "train", np.array([7, 2]))
    stories = samples.values["story"].strings()
    assert again.values["story"].strings() == [stories[7], stories[2]]
    assert again.edges.tolist() == [
        *samples.part(card.stored_schema, 7, 8).edges.tolist(),
        *samples.part(card.stored_schema, 2, 3).edges.tolist(),
    ]
    assert len(set(samples.values["name"].strings())) > 20


def test_no_walk_of_test_is_in_training():
    _, train = drawn("clutrr/gen_23", "train", 10_000)
    _, test = drawn("clutrr/gen_23", "test", 2_000)
    seen = set(walks(train))
    assert not seen & set(walks(test))
    clauses = {clause for clause in held_out("sound", 3)}
    assert len({walk for walk in walks(test) if len(walk) == 3}) >= len(clauses) >= 10


def test_answers_are_balanced_and_position_tells_nothing():
    _, samples = drawn("clutrr/gen_23", "train", 6_000)
    answers = Counter(samples.values["answer"].tolist())
    assert len(answers) == 22
    assert max(answers.values()) < 2 * min(answers.values())  # equal, but for the clauses held out
    questions = StoredQuestions.of(samples)
    first = Counter(questions.asker[samples.num_nodes == 3].tolist())
    assert max(first.values()) < 1.15 * min(first.values())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda v: {**v, "answer": (v["answer"] + 2) % 22}, "are derivable"),
        (lambda v: {**v, "relation": (v["relation"] + 1) % 22}, "wrong gender"),
        (lambda v: {**v, "asker": v["asked"], "asked": v["asker"]}, "question"),
        (lambda v: {**v, "role": v["role"] + 1}, "is not simple"),
        (lambda v: {**v, "entity": v["entity"] * 0}, "share a name or number"),
        (lambda v: {**v, "tokens": v["story"]}, "differ from the tokens of the story"),
        (lambda v: {**v, "story": v["story"][np.roll(np.arange(len(v["story"])), 1)]}, "story"),
        (lambda v: {**v, "story": Texts.of(["Nobody came."] * len(v["story"]))}, "cannot be read"),
    ],
)
def test_damage_is_found(change, words):
    parameters, samples = drawn("clutrr/gen_23", "k3", 12)
    problems = check_stories(parameters, replace(samples, values=change(dict(samples.values))))
    assert any(words in problem for problem in problems), problems
    assert {problem.split(":")[0] for problem in problems} >= {f"sample {i}" for i in range(10)}


def test_a_held_out_clause_in_training_is_found():
    _, test = drawn("clutrr/gen_23", "k3", 5)
    parameters, _ = drawn("clutrr/gen_23", "train", 1)
    assert len([p for p in check_stories(parameters, test) if "is drawn though held_out is avoid" in p]) == 5


@pytest.mark.parametrize("name", ["clutrr/gen_23", "clutrr/rob_supporting"])
def test_reference_solvers(name):
    _, train = drawn(name, "train", 4_000)
    for split in graphbench.card(name).ood:
        scores = solver_scores(train, drawn(name, split, 300)[1], "sound")
        assert scores["exact_reasoner"] == {"accuracy": 1.0}
        assert 0 <= scores["left_fold"]["accuracy"] <= 1
    assert solver_scores(train, train, "sound")["clause_table"] == {"accuracy": 1.0}


def test_loading_and_verifying(tmp_path):
    splits = graphbench.Loader("clutrr/gen_23", root=tmp_path, limit=40, workers=1).load()
    sample = splits.train[1]
    assert sample.num_nodes == 4 and sample.edge_index.shape == (2, 3)
    assert sample.x.shape == (4, 34)
    assert sample.name[int(sample.asker.argmax())] in sample.story
    assert f"@ent{int(sample.entity[0])}" in sample.tokens
    (batch,) = splits.val.batches(40)
    assert graphbench.Evaluator("clutrr/gen_23").evaluate(batch.y, batch.answer).primary == 1.0
    assert check_dataset("clutrr/gen_23", root=tmp_path, samples=20).passed


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"lengths": [11]}, "k is 11.*2 to 10"),
        ({"lengths": []}, "lengths"),
        ({"lengths": [2, 2]}, "stands there twice"),
        ({"lengths": [5], "held_out": "only"}, "clauses are held out of up to 4 facts"),
        ({"rules": "true"}, "rules"),
        ({"noise": "much"}, "noise"),
        (
            {"lengths": [10], "family": {"generations": 2, "min_children": 1, "max_children": 1, "marriage": 0.5}},
            "needs 11 people",
        ),
        ({"familly": {}}, "familly"),
    ],
)
def test_parameters_that_are_refused(change, words):
    card = catalog().cards["clutrr/gen_23"]
    spec = card.split("k4")
    broken = card.model_copy(
        update={"ood": {**card.ood, "k4": spec.model_copy(update={"parameters": {**spec.parameters, **change}})}}
    )
    with pytest.raises(CardError, match=words):
        find("generator", card.generator).parse(broken, "k4")


# --------------------------------------------------------------------------------------------------------------------
# Published files


def row(number, part, words=("father", "brother"), target="uncle", kind=1):
    """A row of a published file about three people; our own words."""
    return {
        "": str(number),
        "id": f"{part}-{kind}-{number}",
        "story": f"[Ann] met {words[0]} [Cy]. [Cy] met {words[1]} [Bob].",
        "query": repr(("Ann", "Bob")),
        "text_query": "",
        "target": target,
        "text_target": repr([f"[Bob] is the {target} of [Ann]."]),
        "clean_story": f"[Ann] met {words[0]} [Cy]. [Cy] met {words[1]} [Bob].",
        "proof_state": repr([{("Ann", target, "Bob"): [("Ann", words[0], "Cy"), ("Cy", words[1], "Bob")]}]),
        "f_comb": "-".join(words),
        "task_name": f"task_{kind}.2",
        "story_edges": repr([(0, 1), (1, 2)]),
        "edge_types": repr(list(words)),
        "query_edge": repr((0, 2)),
        "genders": "Ann:female,Cy:male,Bob:male",
        "syn_story": "",
        "node_mapping": repr({0: 0, 1: 1, 2: 2}),
        "task_split": part,
    }


@pytest.fixture
def published(tmp_path):
    """A folder of ten training and three test puzzles; one label is false."""
    folder = tmp_path / "data_0123"
    folder.mkdir()
    for name, rows in (
        ("1.2,1.3_train.csv", [row(i, "train") for i in range(10)]),
        ("1.2_test.csv", [row(0, "test"), row(1, "test"), row(2, "test", target="grandfather")]),
    ):
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)
    return folder


def test_published_files_load_like_a_dataset(published, tmp_path):
    loader = graphbench.Loader("clutrr/gen_23", root=tmp_path / "root", source="official", folder=published)
    splits = loader.load("all")
    assert {name: len(splits[name]) for name in splits} == {"train": 8, "val": 2, "test": 3, "k2": 3}
    assert splits.card.protocol == "official"
    sample = splits.train[0]
    assert sample.story == "Ann met father Cy. Cy met brother Bob."
    assert sample.name == ["Ann", "Cy", "Bob"]
    assert WORDS[int(sample.answer)] == "uncle"
    assert [WORDS[int(word)] for word in sample.relation] == ["father", "brother"]
    (batch,) = splits.test.batches(3)
    assert graphbench.Evaluator(splits.card).evaluate(batch.y, batch.answer)["accuracy"] == 1.0
    ids = [set(splits[name].story) for name in ("train", "val")]
    assert all(ids)


def written(folder, train, tests, rows=5):
    """A folder of published files of some tasks, named as the authors name them."""
    folder.mkdir()
    files = [(f"{train}_train.csv", "train", rows), *((f"{task}_test.csv", "test", 1) for task in tests)]
    for name, part, count in files:
        kind = int(name[0])
        noise = {1: [], 2: [(0, 3), (3, 1)], 3: [(1, 3)], 4: [(3, 4)]}[kind]
        own = {
            "genders": "Ann:female,Cy:male,Bob:male,Di:female,Ed:male",
            "story_edges": repr([(0, 1), (1, 2), *noise]),
            "node_mapping": repr({i: i for i in range(5)}),
        }
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(row(f"{name} {i}", part, kind=kind) | own | {"": "0"} for i in range(count))
    return folder


@pytest.mark.parametrize(
    ("train", "tests", "name", "right"),
    [
        ("1.2,1.3", ["1.2"], "gen_234", "clutrr/gen_23 or "),
        ("1.2,1.3", ["1.2"], "rob_supporting", " or clutrr/rob_clean"),
        ("1.2,1.3", ["1.2", "3.2"], "gen_23", "stands for clutrr/paper_rob_clean or clutrr/rob_clean: "),
        ("1.2,1.3,1.4", ["1.2"], "gen_23", "stands for clutrr/gen_234 or clutrr/paper_gen_234: load it as that"),
        ("2.2,2.3", ["1.2", "2.2"], "gen_23", "stands for clutrr/paper_rob_supporting or clutrr/rob_supporting: "),
        ("3.2,3.3", ["3.2"], "paper_rob_clean", "or clutrr/rob_irrelevant: load it as that"),
        ("4.2,4.3", ["2.2", "4.2"], "rob_irrelevant", "or clutrr/rob_disconnected: load it as that"),
        ("1.2", ["1.2"], "gen_23", "stands for no dataset of ours"),
        ("1.2,2.2", ["1.2"], "rob_clean", "stands for no dataset of ours"),
    ],
)
def test_published_files_of_another_dataset_are_refused(tmp_path, train, tests, name, right):
    folder = written(tmp_path / "files", train, tests)
    with pytest.raises(StoreError) as caught:
        graphbench.Loader(f"clutrr/{name}", source="official", folder=folder)
    assert f"training puzzles of the tasks {', '.join(train.split(','))} and" in str(caught.value)
    assert f"clutrr/{name} is trained on" in str(caught.value)
    assert right in str(caught.value)


@pytest.mark.parametrize(
    ("train", "tests", "names"),
    [
        ("1.2,1.3", ["1.2"], ["gen_23", "rob_clean", "paper_gen_23", "paper_rob_clean"]),
        ("1.2,1.3", ["1.2", "2.2", "4.2"], ["rob_clean", "paper_rob_clean"]),
        ("1.2,1.3,1.4", ["1.2"], ["gen_234", "paper_gen_234"]),
        ("3.2,3.3", ["3.2", "2.2"], ["rob_irrelevant"]),
    ],
)
def test_published_files_stand_for_the_datasets_of_their_tasks(tmp_path, train, tests, names):
    folder = written(tmp_path / "files", train, tests)
    for name in names:
        card = graphbench.Loader(f"clutrr/{name}", source="official", folder=folder).load(()).card
        assert (card.id, card.protocol, len(card.ood)) == (f"clutrr/{name}", "official", len(tests))


@pytest.mark.parametrize("rows", [1, 4])
def test_too_few_published_training_rows_are_refused(tmp_path, rows):
    folder = written(tmp_path / "files", "1.2,1.3", ["1.2"], rows)
    with pytest.raises(StoreError, match=rf"{rows} training rows.*at least 5"):
        graphbench.Loader("clutrr/gen_23", source="official", folder=folder)


def test_published_files_and_generated_data_lie_apart(published, tmp_path):
    official = graphbench.Loader("clutrr/gen_23", root=tmp_path, source="official", folder=published).load()
    generated = graphbench.Loader("clutrr/gen_23", root=tmp_path, limit=5, workers=1).load()
    assert official.train.path.parent != generated.train.path.parent
    assert generated.train[0].story != official.train[0].story
    again = graphbench.Loader("clutrr/gen_23", root=tmp_path, source="official", folder=published).load()
    assert again.train.path == official.train.path


def test_published_files_are_one_draw(published, tmp_path):
    source = {"root": tmp_path / "root", "source": "official", "folder": published}
    with pytest.raises(CardError, match=r"data_seed=3.*leave data_seed"):
        graphbench.Loader("clutrr/gen_23", data_seed=3, **source)
    other = graphbench.Loader("clutrr/gen_23", **source).load().card.with_data_seed(3)
    with pytest.raises(CardError, match="data_seed=3 is refused"):
        draw_samples(other, "train", np.arange(2))


def test_sources_that_do_not_exist(published, tmp_path):
    with pytest.raises(
        ValueError,
        match=r"'offical'.*clutrr/gen_23.*'official'",
    ):
        graphbench.Loader("clutrr/gen_23", source="offical", folder=published)
    with pytest.raises(ValueError, match="source='official' needs folder="):
        graphbench.Loader("clutrr/gen_23", source="official")
    with pytest.raises(ValueError, match="such as source='official'"):
        graphbench.Loader("clutrr/gen_23", folder=published)
    with pytest.raises(ValueError, match=r"source='official'.*clrs/bfs.*'generated'"):
        graphbench.Loader("clrs/bfs", source="official", folder=published)
    with pytest.raises(StoreError, match="is not a folder"):
        graphbench.Loader("clutrr/gen_23", source="official", folder=tmp_path / "nowhere")
    (published / "1.2_test.csv").unlink()
    with pytest.raises(StoreError, match="has no test file"):
        graphbench.Loader("clutrr/gen_23", source="official", folder=published)
