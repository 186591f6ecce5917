"""How pages are made: code runs again after a change of the package and not before, and pictures likewise."""

import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import graphbench
from graphbench.catalog import names
from graphbench.evaluation.metrics import METRICS
from graphbench.records.files import read_record

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "_ext"))
project_state, pictures, records, domain_pages, page_text = map(
    importlib.import_module, ("project_state", "pictures", "records", "domain_pages", "page_text")
)


# The state of the project


def test_the_hash_of_a_tree_sees_names_and_bytes_alone(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.py").write_text("1")
    first = project_state.tree_hash(tmp_path, ["a"])
    (tmp_path / "a" / "__pycache__").mkdir()
    (tmp_path / "a" / "__pycache__" / "x.pyc").write_text("2")
    os.utime(tmp_path / "a" / "x.py", (0, 0))
    assert project_state.tree_hash(tmp_path, ["a", "absent"]) == first
    (tmp_path / "a" / "x.py").write_text("2")
    second = project_state.tree_hash(tmp_path, ["a"])
    (tmp_path / "a" / "x.py").rename(tmp_path / "a" / "y.py")
    assert len({first, second, project_state.tree_hash(tmp_path, ["a"])}) == 3


def test_the_state_covers_what_pages_show():
    covered = {*project_state.PACKAGE, *project_state.EXTENSIONS}
    assert {"graphbench", "datasets", "baselines", "hpo", "benchmarks", "docs/_ext"} <= covered
    assert all((ROOT / name).exists() for name in covered)


# Pages that show the project


def test_outputs_are_kept_for_one_state_of_the_package(tmp_path, monkeypatch):
    pytest.importorskip("sphinx")
    executed_pages = importlib.import_module("executed_pages")
    first = executed_pages.cache_folder(tmp_path)
    monkeypatch.setattr(executed_pages, "package_key", lambda: "of now")
    second = executed_pages.cache_folder(tmp_path)
    for folder in (first, second):
        folder.mkdir(parents=True)
    app = SimpleNamespace(config=SimpleNamespace(nb_execution_cache_path=str(second)))
    executed_pages._remove_stale_outputs(app)
    assert first != second and list(second.parent.iterdir()) == [second]


def test_pages_of_another_state_are_read_again(monkeypatch):
    pytest.importorskip("sphinx")
    executed_pages = importlib.import_module("executed_pages")
    style = {executed_pages.STATIC: project_state.static_key()}
    env = SimpleNamespace(docname="a", metadata={"a": {}, "b": style, "c": {executed_pages.STATE: "of another time"}})
    executed_pages.shows_project(env)
    assert executed_pages.outdated(None, env, set(), set(), set()) == ["c"]
    monkeypatch.setattr(executed_pages, "project_key", lambda: "of now")
    assert executed_pages.outdated(None, env, set(), set(), set()) == ["a", "c"]
    monkeypatch.setattr(executed_pages, "static_key", lambda: "of now")
    assert executed_pages.outdated(None, env, set(), set(), set()) == ["a", "b", "c"]


def test_a_mark_is_filled_and_its_page_depends_on_the_project():
    pytest.importorskip("sphinx")
    executed_pages = importlib.import_module("executed_pages")
    handlers: dict[str, object] = {}
    env = SimpleNamespace(docname="a", metadata={"a": {}})
    app = SimpleNamespace(env=env, connect=handlers.__setitem__)
    executed_pages.fill_mark(app, "<!-- here -->", lambda: "a table")
    source = ["before <!-- other -->"]
    handlers["source-read"](app, "a", source)
    assert source == ["before <!-- other -->"] and not env.metadata["a"]
    source = ["before <!-- here --> after"]
    handlers["source-read"](app, "a", source)
    assert source == ["before a table after"]
    assert env.metadata["a"] == {executed_pages.STATE: project_state.project_key()}


# Pictures


def test_pictures_are_drawn_again_only_when_what_they_show_changes(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(pictures, "CAN_FORK", False)
    monkeypatch.setattr(
        pictures, "draw", lambda sample, path: (drawn.append(sample.card.id), path.write_text("<svg/>"))
    )
    card = graphbench.card("mst_easy")
    first = pictures.draw_pictures([card], tmp_path, tmp_path / "notes")
    again = pictures.draw_pictures([card], tmp_path, tmp_path / "notes")
    assert first == again and drawn == [card.id] and first[card.id]["error"] == ""
    splits = {
        **card.splits,
        "train": card.split("train").model_copy(update={"parameters": {**card.split("train").parameters, "nodes": 17}}),
    }
    changed = card.model_copy(update={"splits": splits})
    assert pictures.picture_key(changed) != pictures.picture_key(card)
    pictures.draw_pictures([changed], tmp_path, tmp_path / "notes")
    (tmp_path / f"{page_text.page_name(card)}.svg").unlink()
    pictures.draw_pictures([changed], tmp_path, tmp_path / "notes")
    assert drawn == [card.id] * 3


def test_graphs_that_cannot_be_read_are_not_drawn():
    assert pictures.wants_picture(graphbench.card("mst_easy")) and pictures.wants_picture(graphbench.card("clrs/bfs"))
    for name in ("co/rb_large", "sat/small", "weather/sim_t21", "clrs_text/bfs"):
        assert not pictures.wants_picture(graphbench.card(name))


# Pages of domains


def test_the_best_score_is_of_all_models_and_names_the_budget_class(monkeypatch):
    record = read_record(ROOT / "tests" / "data" / "records" / "v1.json")
    card = graphbench.card(record.dataset)
    metric = card.metrics.primary
    assert METRICS[metric].higher_is_better

    def run(model, score, seconds):
        scores = {"test": {metric: score}}
        changes = {"cpu_seconds": seconds, "steps": 10**9, "batch_size": 8}
        return record.model_copy(update={"model": model, "config_hash": model, "scores": scores, **changes})

    def best_of(*stored):
        monkeypatch.setattr(records, "_all_records", lambda: {card.address: list(stored)})
        records._best_scores.cache_clear()
        return records.best_score(card)

    quick, long = run("a", 0.9, 60.0), [run("b", 0.5, 9000.0), run("c", 0.95, 9000.0)]
    try:
        assert (best_of(quick, *long).model, best_of(quick, *long).budget_class) == ("c", "open")
        assert (best_of(quick).model, best_of(quick).budget_class) == ("a", "minutes")
        assert best_of() is None
    finally:
        records._best_scores.cache_clear()


def families_of(domain):
    families = {}
    for card in names.catalog().cards.values():
        if card.domain == domain:
            families.setdefault(card.family, []).append(card)
    return families


@pytest.mark.parametrize("domain", sorted({card.domain for card in names.catalog().cards.values()}))
@pytest.mark.thorough
def test_the_page_of_a_domain_holds_its_datasets_once_in_tree_and_tables(domain):
    families = families_of(domain)
    text = domain_pages.domain_page(domain, families)
    for card in (card for members in families.values() for card in members):
        link = f"(generated/{page_text.page_name(card)}.md)"
        assert text.count(link) == max(1, len(card.tasks))
        assert text.count(f" <generated/{page_text.page_name(card)}>\n") == 1
    assert domain in domain_pages.domain_texts()
    for guide in domain_pages.domain_texts()[domain]["guides"]:
        assert (ROOT / "docs" / f"{guide}.md").is_file() and f"<../{guide}>" in text


@pytest.mark.thorough
def test_a_line_of_scores_holds_the_best_of_every_kind():
    card = graphbench.card("clutrr/gen_23")
    floor, solvers = card.floor["test"], card.solvers["test"]
    (line,) = domain_pages.score_table([card]).splitlines()[2:]
    metric = card.metrics.primary
    assert METRICS[metric].higher_is_better and f"| `{metric}` ↑ |" in line
    for found in (floor, solvers):
        name = max(found, key=lambda name: found[name][metric])
        assert f"{found[name][metric]:.4g}"[:4] in line and f"`{name}`" in line
        assert not any(f"`{other}`" in line for other in found if other != name)


def test_domains_of_the_texts_exist():
    assert set(domain_pages.domain_texts()) == {card.domain for card in names.catalog().cards.values()}


# The search


def test_the_search_keeps_the_entries_of_pages_that_are_not_written_again(tmp_path):
    pytest.importorskip("sphinx")
    (tmp_path / "conf.py").write_text(f"import sys\nsys.path.insert(0, {str(ROOT / 'docs' / '_ext')!r})\n")
    with (tmp_path / "conf.py").open("a") as file:
        file.write("extensions = ['search_entries']\n")
    (tmp_path / "index.rst").write_text("Title\n=====\n\n.. index:: first\n\n.. toctree::\n\n   other\n")
    for text in ("Other\n=====\n\n.. index:: ! second\n", "Other\n=====\n\nNew text.\n\n.. index:: ! third\n"):
        (tmp_path / "other.rst").write_text(text)
        later = time.time() + len(text)  # Sphinx reads what has changed since it read it
        os.utime(tmp_path / "other.rst", (later, later))
        argv = [sys.executable, "-m", "sphinx", "-q", "-b", "html", str(tmp_path), str(tmp_path / "html")]
        subprocess.run(argv, check=True, capture_output=True)
    script = (tmp_path / "html" / "searchindex.js").read_text()
    entries = json.loads(script.removeprefix("Search.setIndex(").removesuffix(")"))["indexentries"]
    assert set(entries) == {"first", "third"}
