from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphbench.catalog.cards import Card
from graphbench.catalog.families import load_family, measured_path, merge
from graphbench.catalog.features import Kind, Location, Stage
from graphbench.core.errors import CardError
from graphbench.data.components.domain import find

SPLITS = {"train": {"count": 3}, "val": {"count": 2}, "test": {"count": 1}}

WIDE = {"weight": ["input", "edge", "scalar(3)"], "in_tree": ["output", "edge", "mask"]}


def test_card_reads_every_key(write_family: Callable[..., tuple[Card, ...]]) -> None:
    (card,) = write_family()
    assert (card.id, card.domain, card.family, card.variant) == ("algoreas/toy", "algoreas", "toy", None)
    assert {name: spec.count for name, spec in card.all_splits.items()} == {"train": 120, "val": 20, "test": 20}
    assert card.split("test").shift == "larger graphs"
    assert card.split("val").shift is None
    weight, in_tree, model = card.features
    assert (weight.stage, weight.location, weight.kind) == (Stage.INPUT, Location.EDGE, Kind.SCALAR)
    assert (in_tree.stage, in_tree.type_name) == (Stage.OUTPUT, "mask")
    assert (model.stage, model.classes, model.type_name) == (Stage.META, 6, "categorical(6)")
    assert card.inputs == (weight,)
    assert card.outputs == (in_tree,)
    assert card.measured is None
    assert card.floor == {}


def test_names_of_classes_are_kept_and_change_no_bytes(write_family: Callable[..., tuple[Card, ...]]) -> None:
    (plain,), (named,) = write_family(), write_family(classes={"model": list("abcdef")})
    assert (plain.classes, named.classes) == ({}, {"model": tuple("abcdef")})
    assert named.fingerprint(1) == plain.fingerprint(1)


def test_scalars_have_a_width_and_names_of_channels(write_family: Callable[..., tuple[Card, ...]]) -> None:
    (plain,), (named,) = (
        write_family(features=WIDE, channels=channels) for channels in ({}, {"weight": ["u", "v", "w"]})
    )
    weight = named.features[0]
    assert (weight.width, weight.row_shape, weight.type_name) == (3, (3,), "scalar(3)")
    assert named.features[1].row_shape == ()
    assert (plain.channels, named.channels) == ({}, {"weight": ("u", "v", "w")})
    assert named.fingerprint(1) == plain.fingerprint(1) != write_family()[0].fingerprint(1)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"colour": "red"}, ["unknown key 'colour'", "licence", "splits"]),
        (
            {"splits": {**SPLITS, "val": {"count": 2, "cuont": 3}}},
            ["unknown key 'splits.val.cuont'", "did you mean 'count'", "parameters, like"],
        ),
        ({"metrics": {"primary": "f1", "extra": "mae"}}, ["unknown key 'metrics.extra'", "primary, also"]),
        ({"title": None}, ["the key 'title' is missing"]),
        ({"splits": {**SPLITS, "val": {"like": "train"}}}, ["'splits.val.count' is missing"]),
        ({"splits": {"train": {"count": 1}}}, ["val", "test", "missing"]),
        ({"splits": {**SPLITS, "val": {"count": 0}}}, ["splits.val.count = 0 is refused", "greater than 0"]),
        ({"splits": [1, 2]}, ["'splits' must be a mapping", "[1, 2]"]),
        ({"splits": {**SPLITS, "val": 5}}, ["'val' must be a mapping", "5"]),
        ({"ood": "n192"}, ["'ood' must be a mapping", "n192"]),
        ({"parameters": [1]}, ["'parameters' must be a mapping"]),
        ({"splits": {**SPLITS, "val": {"count": 2, "parameters": 7}}}, ["'val.parameters' must be a mapping", "7"]),
        ({"version": 0}, ["version = 0 is refused", "greater than or equal to 1"]),
        ({"ood": {"test": {"count": 1}}}, ["test", "in several of splits, ood and additional"]),
        ({"variants": []}, ["'variants' is a mapping", "[]"]),
        (
            {"features": {"A": ["input", "edge", "scalar"], "h": ["hint", "node", "mask"]}},
            ["A is a feature of edges on a card with hints", "write complete: true and directed: true"],
        ),
        (
            {"features": {"word": ["input", "graph", "text"], "h": ["hint", "node", "scalar(1)"]}},
            ["word is a text on a card with hints"],
        ),
        ({"classes": {"modle": ["a"]}}, ["classes names 'modle'", "categorical features are model"]),
        ({"classes": {"in_tree": ["no", "yes"]}}, ["classes names 'in_tree'", "categorical features are model"]),
        ({"classes": {"model": ["er", "ba"]}}, ["classes.model has 2 different names", "model 6 classes"]),
        ({"classes": {"model": list("abcdee")}}, ["classes.model has 5 different names"]),
        ({"classes": {"model": list("abcdeff")}}, ["classes.model has 6 different names"]),
        ({"channels": {"weight": ["w"]}}, ["channels names 'weight'", "scalar(d) features are none"]),
        ({"features": WIDE, "channels": {"weight": ["u", "v"]}}, ["channels.weight has 2 different names", "3"]),
        ({"features": WIDE, "channels": {"weight": ["u", "v", "v"]}}, ["channels.weight has 2 different names"]),
        ({"features": WIDE, "channels": {"wieght": ["u"]}}, ["channels names 'wieght'", "are weight"]),
        ({"id": "algoreas/other"}, ["'id'", "not for authors"]),
        ({"features": 0}, ["features is a mapping name: [stage, location, type], got 0"]),
        ({"features": [{"name": "a"}]}, ["features is a mapping name: [stage, location, type], got [{"]),
        ({"variants": {"small": 3}}, ["'variants.small' must be a mapping", "3"]),
    ],
)
def test_malformed_cards_say_where(
    write_family: Callable[..., tuple[Card, ...]], changes: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(CardError) as caught:
        write_family(**changes)
    for word in ["toy.yaml", *words]:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["given", "edge", "scalar"], "unknown stage 'given'; use one of input, hint, output, meta"),
        (["input", "egde", "scalar"], "unknown location 'egde'; use one of node, edge, graph"),
        (["input", "edge", "float"], "unknown kind 'float'; use one of scalar, categorical, mask"),
        (["input", "edge", "categorical"], "categorical(3)"),
        (["input", "edge", "categorical(1)"], "at least 2 classes"),
        (["input", "edge"], "needs [stage, location, type]"),
        (["input", "edge", 3], "needs [stage, location, type]"),
        (None, "needs [stage, location, type]"),
        ("input", "needs [stage, location, type]"),
    ],
)
def test_bad_feature_words(write_family: Callable[..., tuple[Card, ...]], words: Any, expected: str) -> None:
    features = {"weight": words, "in_tree": ["output", "edge", "mask"]}
    with pytest.raises(CardError, match="weight") as caught:
        write_family(features=features)
    assert expected in str(caught.value)


@pytest.mark.parametrize("name", ["my weight", "x", "y", "edges", "edge_index", "batch_number", 3, False])
def test_feature_names_that_would_clash_are_refused(
    write_family: Callable[..., tuple[Card, ...]], name: object
) -> None:
    with pytest.raises(CardError, match="feature name") as caught:
        write_family(features={name: ["input", "edge", "scalar"], "in_tree": ["output", "edge", "mask"]})
    assert repr(name) in str(caught.value)


def test_duplicate_yaml_key_is_refused(write_family: Callable[..., tuple[Card, ...]]) -> None:
    with pytest.raises(CardError, match=r"toy\.yaml.*'title' appears twice") as caught:
        write_family(text="version: 1\ntitle: One\ntitle: Two\n")
    assert "line 3" in str(caught.value)


def test_duplicate_nested_yaml_key_is_refused(write_family: Callable[..., tuple[Card, ...]]) -> None:
    with pytest.raises(CardError, match="'nodes' appears twice"):
        write_family(text="version: 1\nparameters:\n  nodes: 3\n  nodes: 4\n")
    with pytest.raises(CardError, match="'nesting depth' appears twice"):
        write_family(text="nesting depth: 3\nnesting depth: 4\n")


@pytest.mark.parametrize("text", ["a: [1", "? [1, 2]\n: 3\n", "- 1\n", "", "just words"])
def test_files_that_are_no_card(write_family: Callable[..., tuple[Card, ...]], text: str) -> None:
    with pytest.raises(CardError, match=r"toy\.yaml"):
        write_family(text=text)


@pytest.mark.parametrize("levels", [900, 50_000])
@pytest.mark.parametrize("key", ["description", "parameters", "variants", "features"])
@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ("{a: ", "}")])
def test_cards_that_are_nested_too_deeply(
    write_family: Callable[..., tuple[Card, ...]], key: str, begin: str, end: str, levels: int
) -> None:
    (card,) = write_family()
    text = card.path.read_text() if key in ("description", "variants") else "version: 1\n"
    with pytest.raises(CardError, match=r"toy\.yaml: .*nested too deeply"):
        write_family(text=f"{text}{key}: {begin * levels}{end * levels}\n")


@pytest.mark.parametrize("letter", ["\\0", "\\uD800", "\\uDFFF"])
@pytest.mark.parametrize("line", ['title: "a{}b"', '"a{}b": 3', 'aliases: ["{}"]'])
def test_text_that_cannot_be_printed_is_refused(
    write_family: Callable[..., tuple[Card, ...]], line: str, letter: str
) -> None:
    with pytest.raises(CardError, match=r"NUL character or half of a surrogate pair|invalid Unicode char") as caught:
        write_family(text=line.format(letter))
    str(caught.value).encode()


def test_measured_facts_that_are_not_text(write_family: Callable[..., tuple[Card, ...]]) -> None:
    (card,) = write_family()
    path = measured_path(card.path, "toy")
    path.parent.mkdir()
    for content in (b"\xff", b"[" * 100_000):
        path.write_bytes(content)
        with pytest.raises(CardError, match=r"toy\.json.*graphbench verify --update"):
            write_family()


def test_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "binary.yaml"
    path.write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(CardError, match=r"binary\.yaml"):
        load_family(path)


def test_like_chain_inherits_parameters_and_shift_but_not_count(
    write_family: Callable[..., tuple[Card, ...]],
) -> None:
    splits = {
        "train": {"count": 1, "parameters": {"connect": 2}},
        "val": {"count": 2, "like": "train"},
        "test": {"count": 3, "like": "val", "shift": "size", "parameters": {"nodes": 30}},
    }
    ood = {"n40": {"count": 4, "like": "test", "parameters": {"nodes": 40, "models": {"er": {"p": 0.1}}}}}
    (card,) = write_family(splits=splits, ood=ood)
    shared = {"models": {"er": {"p": 0.3}}, "mixture": {"er": 1}, "connect": 2}
    assert card.split("train").parameters == {**shared, "nodes": 8}
    assert card.split("val").parameters == {**shared, "nodes": 8}
    assert card.split("test").parameters == {**shared, "nodes": 30}
    assert card.split("n40").parameters == {**shared, "nodes": 40, "models": {"er": {"p": 0.1}}}
    assert [spec.shift for spec in card.all_splits.values()] == [None, None, "size", "size"]
    assert [spec.count for spec in card.all_splits.values()] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "splits",
    [
        {**SPLITS, "train": {"count": 1, "like": "train"}},
        {**SPLITS, "train": {"count": 1, "like": "val"}, "val": {"count": 1, "like": "train"}},
    ],
)
def test_circular_like(write_family: Callable[..., tuple[Card, ...]], splits: dict[str, Any]) -> None:
    with pytest.raises(CardError, match="in a circle"):
        write_family(splits=splits)


def test_a_misspelt_section_is_reported_before_the_splits_that_it_hides(tmp_path: Path) -> None:
    path = tmp_path / "toy.yaml"
    path.write_text("splitz: {train: {count: 3}, test: {count: 1}}\nood: {n40: {count: 2, like: test}}\n")
    with pytest.raises(CardError, match=r"unknown key 'splitz'.*'splits'"):
        load_family(path)


def test_like_of_a_missing_split(write_family: Callable[..., tuple[Card, ...]]) -> None:
    with pytest.raises(CardError, match="split 'val' is like 'trian'"):
        write_family(splits={**SPLITS, "val": {"count": 1, "like": "trian"}})


def test_variants_merge_key_by_key(write_family: Callable[..., tuple[Card, ...]]) -> None:
    changes = {"aliases": ["toy_large"], "splits": {"train": {"parameters": {"nodes": 20}}}}
    small, large = write_family(variants={"small": None, "large": changes})
    assert (small.id, large.id) == ("algoreas/toy_small", "algoreas/toy_large")
    assert (small.variant, large.variant) == ("small", "large")
    assert (small.aliases, large.aliases) == ((), ("toy_large",))
    assert [c.split("train").parameters["nodes"] for c in (small, large)] == [8, 20]
    assert [c.split("val").parameters["nodes"] for c in (small, large)] == [8, 20]  # val is like train
    assert [c.split("test").parameters["nodes"] for c in (small, large)] == [12, 12]
    assert [c.split("train").count for c in (small, large)] == [120, 120]


def test_exclamation_mark_replaces_instead_of_merging() -> None:
    base = {"mixture": {"er": 1, "ba": 1}, "nodes": 3}
    assert merge(base, {"mixture": {"nws": 1}})["mixture"] == {"er": 1, "ba": 1, "nws": 1}
    assert merge(base, {"mixture!": {"nws": 1}}) == {"mixture": {"nws": 1}, "nodes": 3}
    assert merge(base, {"nodes": 4, 7: "number"}) == {**base, "nodes": 4, 7: "number"}
    assert base == {"mixture": {"er": 1, "ba": 1}, "nodes": 3}


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"parameters": {"nodes": 9, "models": {"er": {"p": 0.3}}, "mixture": {"er": 1}}},
        {"parameters": {"nodes": 8, "models": {"er": {"p": 0.31}}, "mixture": {"er": 1}}},
        {"generator": "algoreas.bridges"},
        {"directed": True},
        {"features": {"weight": ["input", "edge", "scalar"], "in_tree": ["output", "edge", "mask_one"]}},
        {"ood": {"n9": {"count": 1, "parameters": {"nodes": 9}}}},
    ],
)
def test_fingerprint_changes_with_what_is_generated(
    write_family: Callable[..., tuple[Card, ...]], change: dict[str, Any]
) -> None:
    (before,), (after,) = write_family(), write_family(**change)
    assert before.fingerprint(1) != after.fingerprint(1)


def test_additional_splits_leave_the_data_as_they_are_and_name_their_files_by_their_parameters(
    write_family: Callable[..., tuple[Card, ...]],
) -> None:
    def with_nodes(nodes: int) -> Card:
        (card,) = write_family(additional={"val_large": {"count": 3, "like": "val", "parameters": {"nodes": nodes}}})
        return card

    (before,), after, other = write_family(), with_nodes(9), with_nodes(10)
    assert before.fingerprint(1) == after.fingerprint(1) == other.fingerprint(1)
    assert list(after.all_splits) == [*before.all_splits, "val_large"]
    assert after.split("val_large").parameters == {**before.split("val").parameters, "nodes": 9}
    assert after.stored_name("val") == "val"
    assert after.stored_name("val_large") != other.stored_name("val_large") != "val_large"
    assert after.select_splits("additional") == ["val_large"]
    assert "val_large" not in after.select_splits("ood") and "val_large" in after.select_splits("all")


def test_fingerprint_ignores_words_and_counts_but_not_the_generator_version(
    write_family: Callable[..., tuple[Card, ...]],
) -> None:
    (before,) = write_family()
    (after,) = write_family(
        title="Other",
        summary="Other",
        licence="MIT",
        aliases=["other"],
        metrics={"primary": "accuracy"},
        source={"paper": "Other", "deviations": ["none"]},
        splits={"train": {"count": 7}, "val": {"count": 7}, "test": {"count": 7, "parameters": {"nodes": 12}}},
    )
    assert before.fingerprint(1) == after.fingerprint(1)
    assert before.fingerprint(1) != before.fingerprint(2)
    assert len(before.fingerprint(1)) == 12


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"nodse": 9}, ["unknown key 'nodse'; did you mean 'nodes'?"]),
        ({"nodes": 1}, ["nodes = 1 is refused"]),
        ({"mixture": {"er": 1, "lattice": 1}}, ["lattice", "er, nws"]),
        ({"mixture": {"ba": 1}}, ["'ba'", "no parameters"]),
        ({"models": {"er": {"q": 0.3}}}, ["'q'", "it takes p"]),
        ({"models": {"er": {"p": 1.5}}}, ["1.5", "from 0 to 1"]),
    ],
)
def test_bad_generator_parameters(make_card: Callable[..., Card], parameters: dict[str, Any], words: list[str]) -> None:
    card = make_card(parameters=parameters)
    with pytest.raises(CardError) as caught:
        find("generator", card.generator).parse(card, "train")
    for word in ["toy.yaml", "split train", *words]:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("algoreas.mts", "does not exist; algoreas has bridges"),
        ("nowhere.mst", "unknown domain 'nowhere'"),
        ("mst", "<domain>.<name>"),
        ("os.path.join", "<domain>.<name>"),
    ],
)
def test_unknown_generator(name: str, expected: str) -> None:
    with pytest.raises(CardError) as caught:
        find("generator", name)
    assert expected in str(caught.value)
    assert repr(name) in str(caught.value)


def test_unknown_split_lists_those_there_are(write_family: Callable[..., tuple[Card, ...]]) -> None:
    with pytest.raises(CardError, match=r"split 'valid'.*train, val, test"):
        write_family()[0].split("valid")


def test_measured_facts_lie_beside_the_card(write_family: Callable[..., tuple[Card, ...]]) -> None:
    (card,) = write_family()
    facts = measured_path(card.path, "toy")
    facts.parent.mkdir()
    facts.write_text('{"version": 1, "floor": {"test": {"majority": {"f1": 0.5}}}}')
    assert load_family(card.path)[0].floor == {"test": {"majority": {"f1": 0.5}}}
    facts.write_text('{"version": 1, "flor": {}}')
    with pytest.raises(CardError, match=r"toy\.json.*flor.*verify --update"):
        load_family(card.path)
