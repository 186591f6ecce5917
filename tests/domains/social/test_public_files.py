"""The public package's tensors, reposts of others that count as posts, and unpacked interactions."""

from __future__ import annotations

import json
import tarfile
from datetime import date
from io import BytesIO
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import torch

import graphbench
from graphbench.core.errors import CardError, StoreError
from graphbench.domains.social import embed_archive, end_of_day, read_snapshot
from graphbench.domains.social.archive_tables import prepare_interactions, prepare_posts
from graphbench.domains.social.exporters import stamps_of_minutes
from graphbench.domains.social.public_tensors import first_pairs, read_tensors
from graphbench.domains.social.simulator_tables import DATES

SPLITS = dict(zip(("train", "val", "test"), DATES[:-1], strict=True))
DAYS = [20230301, 20231211, 20231212, 20240101, 20240122, 20240215, 20240220, 20240301]


def expected_graph(table, users, day):
    """Edges as the public package chooses them: the first row of a pair, if it is early enough."""
    first = table.drop_duplicates(subset=["source", "target"])
    first = first[first.date <= int(day.strftime("%Y%m%d"))]
    first = first[first.source.isin(users) & first.target.isin(users)]
    return sorted(zip(first.source.tolist(), first.target.tolist(), strict=True))


@pytest.fixture
def folder(tmp_path):
    """The layout in which the public package unpacks its files, with rows that are not sorted by time."""
    rng = np.random.default_rng(4)
    (tmp_path / "graphs").mkdir()
    table = pd.DataFrame(
        {"source": rng.integers(0, 90, 900), "target": rng.integers(0, 90, 900), "date": rng.choice(DAYS, 900)}
    )
    table.to_csv(tmp_path / "graphs" / "quotes.csv", index=False)
    raw = tmp_path / "bluesky_quotes" / "raw"
    raw.mkdir(parents=True)
    for split, day in SPLITS.items():
        users = set(rng.choice(90, 60, replace=False).tolist())
        pairs = expected_graph(table, users, day)
        nodes = sorted({user for pair in pairs for user in pair})
        save = {
            "keep_uids": {str(user) for user in users},
            "x": torch.arange(len(nodes))[:, None] * torch.ones(384),
            "y": torch.rand(len(nodes), 3),
        }
        for name, value in save.items():
            torch.save(value, raw / f"{name}_quotes_{split}.pt")
        np.save(tmp_path / f"{split}_pairs.npy", [[nodes.index(u), nodes.index(v)] for u, v in pairs])
    return tmp_path


def test_tensors_are_read_with_the_edges_that_they_belong_to(folder):
    splits = graphbench.Loader("social/quotes", root=folder / "root", source="tensors", folder=folder).load()
    for split in SPLITS:
        data = splits[split][0]
        assert np.array_equal(data.edge_index.numpy().T, np.load(folder / f"{split}_pairs.npy")), split
        y = torch.load(folder / "bluesky_quotes" / "raw" / f"y_quotes_{split}.pt", weights_only=True)
        assert torch.equal(torch.stack([data.likes, data.replies, data.reposts], 1), y)
        assert data.content[:, 7].tolist() == list(range(len(y)))
    assert splits.card.protocol == "tensors"
    assert not {"past", "activity"} & {feature.name for feature in splits.card.features}


def test_the_first_row_of_a_pair_decides(tmp_path):
    (tmp_path / "replies.csv").write_text("source,target,date\n1,2,20240101\n1,2,20230301\n2,1,20230301\n")
    prepare_interactions(tmp_path, "replies")
    assert first_pairs(tmp_path, "replies", np.array([1, 2]), date(2023, 12, 11)).tolist() == [[2, 1]]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("x", torch.ones(5, 384), r"contents \[5, 384\]"),
        ("y", torch.ones(3), r"holds float32 \[3\]"),
        ("y", [1, 2], "holds list, not a matrix"),
        ("x", torch.full((4, 384), float("nan")), "not finite in row 0"),
        ("keep_uids", {"a"}, "is no list of users"),
        ("keep_uids", {-4}, "the user -4"),
        ("keep_uids", {str(10**12)}, "it has the user 1000000000000"),
        ("keep_uids", torch.nn.Linear(1, 1), "it holds an object of"),
    ],
)
def test_other_tensors_are_refused(folder, name, value, words):
    torch.save(value, folder / "bluesky_quotes" / "raw" / f"{name}_quotes_train.pt")
    with pytest.raises(StoreError, match=words) as error:
        read_tensors(folder, "quotes")
    assert "\n" not in str(error.value)


def test_missing_and_doubled_tensors_are_named(folder):
    raw = folder / "bluesky_quotes" / "raw"
    (folder / "x_quotes_test.pt").write_bytes((raw / "x_quotes_test.pt").read_bytes())
    with pytest.raises(StoreError, match=r"has 2 files x_quotes_test\.pt"):
        read_tensors(folder, "quotes")
    for path in folder.rglob("x_quotes_test.pt"):
        path.unlink()
    with pytest.raises(StoreError, match=r"has no x_quotes_test\.pt"):
        read_tensors(folder, "quotes")
    with pytest.raises(StoreError, match=r"graphs\.tar\.gz or graphs/replies\.csv"):
        read_tensors(folder, "replies")
    with pytest.raises(CardError, match="source='tensors' has social/quotes"):
        graphbench.Loader("social/sim_quotes", root=folder / "root", source="tensors", folder=folder).load(())


def archive_with_shares(folder):
    """Users 1 to 6 post once before and once after each date, and repost a post of user 9 with 50 likes twice."""
    lines = []
    for user in range(1, 7):
        for first, last in pairwise((date(2023, 3, 1), *DATES)):
            for shared in (None, 9, 9):
                minute = (end_of_day(first) + end_of_day(last)) // 2
                lines.append(
                    {
                        **{"user_id": user, "date": int(stamps_of_minutes(np.array([minute]))[0])},
                        **{"like_count": 50 if shared else user, "reply_count": 0, "repost_count": 1},
                        **{"reposted_author": shared, "text": "shared" if shared else "own"},
                    }
                )
    lines.append({**lines[1], "user_id": 8, "date": 202303010000})
    lines.append({**lines[1], "user_id": 8, "date": 202401010000})
    content = "\n".join(json.dumps(line) for line in lines).encode()
    with tarfile.open(folder / "user_posts.tar.gz", "w:gz") as archive:
        info = tarfile.TarInfo("posts.jsonl")
        info.size = len(content)
        archive.addfile(info, BytesIO(content))
    rows = "".join(f"{u},{u % 6 + 1},20230301\n" for u in range(1, 7)) + "8,1,20230301\n"
    (folder / "replies.csv").write_text("source,target,date\n" + rows)


def test_reposts_of_others_count_where_that_is_asked_for(tmp_path):
    archive_with_shares(tmp_path)
    seen = DATES[0], DATES[1]
    own, shared = (
        read_snapshot(tmp_path, "replies", *seen, embedded=False, shared=flag, progress=False) for flag in (False, True)
    )
    assert own.users.tolist() == [1, 2, 3, 4, 5, 6] and shared.users.tolist() == [1, 2, 3, 4, 5, 6, 8]
    np.testing.assert_allclose(np.expm1(own.targets[:, 0]), range(1, 7), rtol=1e-5)
    np.testing.assert_allclose(np.expm1(shared.targets[:, 0]), 50, rtol=1e-5)
    posts = prepare_posts(tmp_path), prepare_posts(tmp_path, shared=True)
    assert [own.rows for own in posts] == [24, 74] and [own.shared for own in posts] == [50, 50]


def test_texts_are_embedded_for_the_users_of_the_source(tmp_path):
    archive_with_shares(tmp_path)
    texts = []

    def embedder(batch):
        texts.extend(batch)
        return np.ones((len(batch), 384), np.float32)

    load = {"root": tmp_path / "root", "folder": tmp_path}
    embed_archive(tmp_path, embedder, progress=False)
    assert set(texts) == {"own"}
    with pytest.raises(StoreError, match=r"embed_archive\(folder, shared=True\)"):
        graphbench.Loader("social/replies", source="official_shared", **load).load()
    embed_archive(tmp_path, embedder, shared=True, progress=False)
    assert set(texts) == {"own"}  # never what others wrote
    splits = graphbench.Loader("social/replies", source="official_shared", **load).load()
    assert splits.card.protocol == "official_shared" and splits.train[0].num_nodes == 7
    content = splits.train[0].content.numpy()
    assert (content[:6] == 1).all() and (content[6] == 0).all()
    assert graphbench.Loader("social/replies", source="official", **load).load().train[0].num_nodes == 6
