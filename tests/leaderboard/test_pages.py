"""Pages: whole, self-contained, escaped, and with the numbers of the records."""

import json
import re
from collections import defaultdict
from statistics import mean

import pytest

from graphbench.core.errors import ResultError
from graphbench.leaderboard import best, build_leaderboard, leaderboard_of, to_json
from graphbench.leaderboard.pictures import scale_of
from graphbench.records.budgets import Budget
from graphbench.records.files import load_records
from graphbench.reports.pages import markdown_safe

from ..reports.parsed_page import ParsedPage
from ..snapshots import require_snapshot
from .conftest import bootstrapped, make_record

ID = "algoreas/mst_medium"
EVIL = '<script>alert("x")</script> | [link](javascript:alert(1)) `code`\n# head <img src=x onerror=1>'


def records():
    full = [bootstrapped(make_record(seed, f1=value)) for seed, value in enumerate((0.73, 0.77, 0.75))]
    other = [bootstrapped(make_record(seed, f1=value, model="gt")) for seed, value in enumerate((0.9, 0.99, 0.95))]
    small = make_record(0, f1=0.45, model="gin_small", budget=Budget(small=True, label="5 steps"))
    draw = make_record(5, f1=0.6, data_seed=5, data_fingerprint="x-draw5", data_hashes={"test": "fedcba9876"})
    return [*full, *other, small, draw]


def hostile():
    return [
        make_record(
            dataset=dataset,
            notes=EVIL,
            hardware={"cpu": EVIL},
            graphbench_version=EVIL,
            budget=Budget(small=False, label=EVIL),
            protocol=EVIL,
            data_hashes={"test": EVIL},
        )
        for dataset in (ID, f"gone/{EVIL}")
    ]


def test_a_folder_has_pages_that_lead_to_each_other_alone(tmp_path, card):
    paths = build_leaderboard(records(), tmp_path / "out", cards={ID: card})
    assert [path.name for path in paths] == ["index.html", "domain-algoreas.html", "leaderboard.md", "leaderboard.json"]
    ids = {path.name: ParsedPage(path.read_text(encoding="utf-8")).ids for path in paths[:2]}
    for path in paths[:2]:
        text = path.read_text(encoding="utf-8")
        checker = ParsedPage(text)
        for address in checker.addresses:
            page, _, place = address.partition("#")
            assert not place or place in ids[page or path.name]
            assert (path.parent / page).exists()
        assert not re.search(r"@import|url\((?!#)|<link|<img|src=", text)
        assert "prefers-color-scheme: dark" in text and text.count("<script>") == 1
        assert len(checker.ids) == len(set(checker.ids))


def test_the_pages_are_those_of_the_snapshots(tmp_path, card):
    (page,) = build_leaderboard(records(), tmp_path / "one.html", cards={ID: card})
    require_snapshot("leaderboard-html.txt", "\n".join([*ParsedPage(page.read_text(encoding="utf-8")).rows, ""]))
    (page,) = build_leaderboard(records(), tmp_path / "out", ["md"], cards={ID: card})
    require_snapshot("leaderboard.md", page.read_text(encoding="utf-8"))


def test_a_small_run_and_another_draw_have_no_rank(tmp_path, card):
    (path,) = build_leaderboard(records(), tmp_path / "one.html", cards={ID: card})
    rows = ParsedPage(path.read_text(encoding="utf-8")).rows
    assert any(row.startswith("–|gin_small|0.4500|") for row in rows)  # noqa: RUF001
    assert any(row.startswith("–|gin|0.6000|") for row in rows)  # the other draw, apart  # noqa: RUF001


def test_markdown_tables_are_well_formed_and_have_the_same_rows(tmp_path, card):
    (path,) = build_leaderboard(records(), tmp_path / "out", ["md"], cards={ID: card})
    text = path.read_text(encoding="utf-8")
    blocks = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert len(blocks) >= 4
    for block in blocks:
        lines = block.replace(r"\|", "").splitlines()
        assert len(lines) > 2 and lines[1].startswith("| ---") and len({line.count("|") for line in lines}) == 1
    assert all((path.parent / name).is_file() for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text))


def test_what_records_say_is_escaped_everywhere(tmp_path, card):
    html, _, md, as_json = build_leaderboard(hostile(), tmp_path, cards={ID: card}, title=EVIL)
    for path in (html, tmp_path / "domain-algoreas.html"):
        text = path.read_text(encoding="utf-8")
        checker = ParsedPage(text)
        assert checker.tags.count("script") == 1 and "img" not in checker.tags and not checker.handlers
        assert not any(address.strip().lower().startswith("javascript") for address in checker.addresses)
        assert "&lt;script&gt;" in text and "alert(&#34;x&#34;)" in text
    text = md.read_text(encoding="utf-8")
    assert "<" not in text and "](javascript" not in text.replace(r"\[link](", "") and "\n# head" not in text
    assert EVIL in json.loads(as_json.read_text(encoding="utf-8"))["unknown"][0]


def test_markdown_texts_are_one_line_without_markup():
    assert markdown_safe("a|b\n<i>[x](y)`\\") == r"a\|b &lt;i&gt;\[x](y)\`\\"


def test_the_json_has_a_schema_and_all_that_pages_show(card):
    found = json.loads(to_json(leaderboard_of(records(), {ID: card})))
    assert found["schema"] == 3 and found["records"] == 8
    board = next(b for b in found["boards"] if (b["split"], b["budget_class"], b["main"]) == ("test", "open", True))
    row = board["rows"][1]
    assert (row["label"], row["values"], row["rank"]) == ("gin", [0.73, 0.77, 0.75], 2)
    assert (
        row["interval"]["method"] == "student"
        and row["against_best"]["seeds"] == 3
        and row["against_best"]["bootstrap"]
    )
    assert row["cost"]["seconds"] == 11.0 and row["budget"] == "" and board["data"]["hash"] == "0123456789abcdef"
    assert {r["kind"] for r in board["references"]} == {"trivial", "published"}
    assert {b["split"] for b in found["boards"]} == {"test", "n192", "n512"}
    assert [(g["name"], g["budget_class"]) for g in found["groups"]] == [
        ("algoreas", name) for name in ("minutes", "paper", "open")
    ]


@pytest.mark.parametrize("name", ["page.html", "page.md", "page.json", "folder"])
def test_no_record_and_one_record_make_pages(tmp_path, card, name):
    for given, words in (([], "no records"), ([make_record()], "gin")):
        paths = build_leaderboard(given, tmp_path / name, cards={ID: card})
        assert paths and all(path.is_file() for path in paths)
        text = paths[0].read_text(encoding="utf-8")
        assert words in text or (paths[0].suffix == ".json" and json.loads(text)["records"] == len(given))


def test_outputs_that_are_no_leaderboard(tmp_path):
    with pytest.raises(ResultError, match=r"ends in \.pdf; a leaderboard is a folder"):
        build_leaderboard([], tmp_path / "one.pdf")
    with pytest.raises(ResultError, match=r"unknown leaderboard format \['pdf'\]"):
        build_leaderboard([], tmp_path, ["pdf"])
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ResultError, match="cannot write the leaderboard"):
        build_leaderboard([], tmp_path / "file" / "deeper")


@pytest.mark.thorough
def test_the_best_score_of_every_committed_dataset():
    found, stored = best(), load_records()
    assert found.keys() == {record.dataset for record in stored}
    for address, scores in found.items():
        for score in scores:
            fitting = [
                record.scores["test"][score.metric]
                for record in stored
                if record.dataset == address
                and record.config_hash == score.row.config_hash
                and not record.data_seed
                and record.seed not in score.row.copies
            ]
            assert score.mean == pytest.approx(sum(fitting) / len(fitting)) and score.shared >= 1
    (leader,) = found["clutrr/gen_23"]
    accuracies = defaultdict(dict)
    for record in stored:
        if record.dataset == "clutrr/gen_23" and not record.data_seed:
            accuracies[record.config_hash][record.seed] = record.scores["test"][leader.metric]
    complete = [mean(by_seed.values()) for by_seed in accuracies.values() if {0, 1, 2} <= by_seed.keys()]
    assert len(complete) >= 3 and leader.mean == pytest.approx(max(complete))
    assert leader.solver.value == 1.0 and leader.trivial.kind == "trivial"
    assert best("clrs/*").keys() == {address for address in found if address.startswith("clrs/")}


def test_a_row_without_a_rank_says_why(tmp_path, card):
    copied = [bootstrapped(make_record(0, f1=0.6, model="gat")).model_copy(update={"seed": seed}) for seed in range(3)]
    single = [bootstrapped(make_record(0, f1=0.5, model="mlp"))]
    without = [make_record(seed, f1=0.4 + 0.01 * seed, model="mpnn") for seed in range(3)]
    solver = [bootstrapped(make_record(0, f1=0.99, model="exact", deterministic=True))]
    (path,) = build_leaderboard(
        [*records(), *copied, *single, *without, *solver], tmp_path / "one.html", cards={ID: card}
    )
    rows = ParsedPage(path.read_text(encoding="utf-8")).rows

    def row_of(model):
        return next(row for row in rows if f"|{model}|" in row and not row.startswith(ID))

    assert row_of("mlp").startswith("–|") and "not ranked: needs runs with the seeds 0, 1 and 2" in row_of("mlp")  # noqa: RUF001
    assert "|1 (0); dropped as copies: 1, 2|stated|not ranked: needs runs with the seeds" in row_of("gat")
    assert "not ranked: its records have no bootstrap replicates" in row_of("mpnn")
    assert "|deterministic|stated|best mean|" in row_of("exact")


def test_references_that_are_not_comparable_are_listed_and_not_drawn(committed_board):
    board = next(b for b in committed_board.boards if not all(r.comparable for r in b.references))
    scale = scale_of(board)
    assert len(scale.marks) == len(board.references)
    assert [mark is None for mark in scale.marks] == [not r.comparable for r in board.references]


@pytest.mark.thorough
def test_the_pages_of_the_committed_records(committed_board, tmp_path):
    stored = load_records()
    paths = build_leaderboard(stored, tmp_path, ("html",))
    pages = {
        path.stem.removeprefix("domain-").replace("-", "_"): ParsedPage(path.read_text(encoding="utf-8"))
        for path in paths
    }
    assert pages.keys() >= {record.dataset.partition("/")[0] for record in stored}
    for board in committed_board.boards:
        if board.split == "test" and board.main and board.budget_class == "open":
            rows = pages[board.domain].rows
            assert all(any(reference.name in row for row in rows) for reference in board.references), board.unit
