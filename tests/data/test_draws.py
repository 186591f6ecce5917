"""Draws: with another data seed everything random in a dataset is regenerated, and draws never mix."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphbench
from graphbench.catalog.cards import Card
from graphbench.catalog.names import card as shipped
from graphbench.core.errors import CardError
from graphbench.data.arrays.seeds import redrawn_seed, stream_key
from graphbench.data.build.generation import draw_samples, ensure_split
from graphbench.data.components.domain import find
from graphbench.data.store.layout import Manifest, about_graphs, dataset_folder
from graphbench.domains.clrs import sample
from graphbench.tasks.trace.stream import TrajectoryStream
from graphbench.verification import verify
from graphbench.verification.measuring import arrays_hash

Facts = Callable[[Path], dict[str, Any]]
MakeCard = Callable[..., Card]

FOLDERS = {  # of data that people have
    "algoreas/mst_easy": "v1-5552034c68b1",
    "clrs/bfs": "v1-8a2645180af7",
    "clrs_text/bfs": "v1-37fa6d9768f3",
    "clutrr/gen_23": "v1-0b3973ed9be1",
    "clutrr/paper_gen_23": "v1-133fa42ae3fa",
}


def first(card: Card, split: str, count: int = 8) -> str:
    return arrays_hash(draw_samples(card, split, np.arange(count)))


def test_the_key_of_the_canonical_draw_is_what_it_was() -> None:
    assert stream_key("algoreas/mst_easy", 1, "train") == stream_key("algoreas/mst_easy", 1, "train", 0)
    assert int(stream_key("algoreas/mst_easy", 1, "train")) == 0xFCE75399A6A71ADB
    keys = {int(stream_key("algoreas/mst_easy", 1, split, k)) for k in range(50) for split in ("train", "val")}
    assert len(keys) == 100


@pytest.mark.parametrize("name", FOLDERS)
def test_folders_of_canonical_data_are_what_they_were(name: str, tmp_path: Path) -> None:
    card = shipped(name)
    assert dataset_folder(card, tmp_path).name == FOLDERS[name]
    assert dataset_folder(card.with_data_seed(3), tmp_path).name == f"{FOLDERS[name]}-draw3"
    assert "data_seed" not in about_graphs(card.with_data_seed(3))["card"]


def test_a_seed_among_the_parameters_is_replaced_in_other_draws_alone() -> None:
    assert [redrawn_seed(seed, 0) for seed in (0, 1, 3)] == [0, 1, 3]
    found = {redrawn_seed(seed, k) for seed in range(20) for k in range(1, 20)}
    assert len(found) == 380 and min(found) >= 0 and max(found) < 2**32
    assert redrawn_seed(1, 3) == redrawn_seed(1, np.int64(3))  # type: ignore[arg-type]


def test_a_card_of_another_draw(make_card: MakeCard) -> None:
    card = make_card()
    other = card.with_data_seed(np.int64(3))  # type: ignore[arg-type]
    assert (card.data_seed, other.data_seed, type(other.data_seed)) == (0, 3, int)
    assert card.with_data_seed(0) is card and other.with_data_seed(3) is other
    assert pickle.loads(pickle.dumps(other)) == other != card
    assert shipped("clutrr/gen_23").measured is not None
    assert shipped("clutrr/gen_23").with_data_seed(1).measured is None  # measured on the canonical draw
    with pytest.raises(CardError, match="is of data seed 3 already"):
        other.with_data_seed(4)


@pytest.mark.parametrize("bad", [-1, 1.0, "3", True, None])
def test_data_seeds_that_are_refused(make_card: MakeCard, tmp_path: Path, bad: Any) -> None:
    with pytest.raises(CardError, match=rf"data_seed must be .*got {bad!r}"):
        make_card().with_data_seed(bad)
    with pytest.raises(CardError, match="data_seed must be"):
        graphbench.Loader("algoreas/mst_easy", root=tmp_path, data_seed=bad)


def test_cards_are_not_written_for_one_draw(make_card: MakeCard) -> None:
    with pytest.raises(CardError, match="the key 'data_seed' is not for authors"):
        make_card(data_seed=3)


def test_draws_differ_and_are_reproducible_with_any_number_of_workers(
    make_card: MakeCard, tmp_path: Path, facts_of: Facts
) -> None:
    crowded = make_card(200, {"nodes": 5, "models": {"er": {"p": 0.5}}})
    found = {}
    for k in (0, 1, 2):
        card = crowded.with_data_seed(k)
        one, two = (
            facts_of(ensure_split(card, "train", tmp_path / str(workers), workers=workers, shard_size=40))
            for workers in (1, 2)
        )
        assert one == two and one["redrawn"] > 0
        found[k] = one["content"]
    assert len(set(found.values())) == 3
    again = facts_of(ensure_split(make_card(200, crowded.split("train").parameters), "train", tmp_path / "c"))
    assert again["content"] == found[0]


def test_a_sample_depends_on_its_index_and_draw_alone(make_card: MakeCard) -> None:
    card = make_card().with_data_seed(5)
    whole = draw_samples(card, "train", np.arange(20))
    some = draw_samples(card, "train", np.array([17, 4]))
    for place, index in enumerate((17, 4)):
        assert arrays_hash(some.part(card.stored_schema, place, place + 1)) == arrays_hash(
            whole.part(card.stored_schema, index, index + 1)
        )
    assert first(card, "train") != first(card, "val") != first(make_card(), "val")


def test_the_manifest_names_other_draws_alone(make_card: MakeCard, tmp_path: Path) -> None:
    for k in (0, 3):
        card = make_card().with_data_seed(k)
        folder = ensure_split(card, "val", tmp_path, workers=1).parent
        manifest = json.loads(Manifest(folder).path.read_text())
        assert manifest.get("data_seed", "absent") == (3 if k else "absent")
        assert manifest["fingerprint"] == folder.name.removeprefix("v1-")
        assert "data_seed" not in manifest["card"]


def test_draws_lie_side_by_side(tmp_path: Path) -> None:
    canonical, drawn = (
        graphbench.Loader("mst_easy", root=tmp_path, limit=6, workers=1, data_seed=k).load("val") for k in (0, 3)
    )
    assert canonical.val.path.parent.parent == drawn.val.path.parent.parent
    assert canonical.val.content_hash != drawn.val.content_hash
    assert (canonical.card.data_seed, drawn.card.data_seed) == (0, 3)
    assert repr(drawn).startswith("Splits(algoreas/mst_easy-draw3: ")
    assert repr(canonical).startswith("Splits(algoreas/mst_easy: ")


def test_every_domain_can_be_drawn_anew() -> None:
    """Wherever the parameters hold a seed, its generator must replace it; the key alone would change nothing."""
    for name in ("algoreas/flow_easy", "clrs/minimum", "clrs_text/minimum", "clutrr/rob_supporting"):
        for split in ("train", "test"):
            assert len({first(shipped(name).with_data_seed(k), split, 4) for k in (0, 1, 2)}) == 3, (name, split)


def test_algorithms_are_drawn_from_other_random_states() -> None:
    card = shipped("clrs/minimum").with_data_seed(2)
    ((key,),) = sample("minimum", 16, 1, redrawn_seed(1, 2))
    assert draw_samples(card, "train", np.arange(1)).values["key"].tolist() == key.tolist()
    seeds = {
        name: find("generator", card.generator).parse(card, name).seed for name in ("train", "test", "n32", "n128")
    }
    assert seeds == {"train": redrawn_seed(1, 2), **dict.fromkeys(("test", "n32", "n128"), redrawn_seed(3, 2))}


def test_endless_data_are_drawn_anew() -> None:
    batches = [
        TrajectoryStream(shipped("clrs/minimum").with_data_seed(k), "train_multi_size").batch(2, 4).inputs["key"]
        for k in (0, 1, 1)
    ]
    assert not np.array_equal(batches[0], batches[1])
    assert np.array_equal(batches[1], batches[2])


def test_another_draw_is_verified_without_the_facts_of_the_canonical_one(tmp_path: Path) -> None:
    outcome = verify("clutrr/gen_23", root=tmp_path, samples=8, splits=("val",), progress=False, data_seed=2)
    assert outcome.passed, outcome.failures
    details = {row.check: row.detail for row in outcome.rows}
    assert details["first samples"] == "64 graphs, no hash on the card"
