"""The documentation keeps its word: its code runs, its tables are those of the catalogue, its commands exist."""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
import shlex
import sys
import tomllib
from functools import cache
from pathlib import Path
from pydoc import locate

import pytest
import typer
import yaml
from typer.testing import CliRunner

import graphbench
from graphbench.catalog import names, resources
from graphbench.catalog.cards import Measured
from graphbench.catalog.families import load_family
from graphbench.catalog.resources import baselines_dir
from graphbench.data.components.domain import find
from graphbench.domains.clrs_text import prompts
from graphbench.evaluation.metrics import METRICS
from graphbench.leaderboard.lite import lite_set
from graphbench.records.files import read_record
from graphbench.records.published import published

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
EXAMPLE = DOCS / "examples" / "new_dataset"
PLUGIN = ROOT / "tests" / "plugin_example" / "graphbench_portfolio"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "AGENTS.md",
    *sorted(DOCS.glob("*.md")),
    *sorted(DOCS.glob("*/*.md")),
]

sys.path.insert(0, str(DOCS / "_ext"))
(
    page_text,
    overview_text,
    sample_drawing,
    trajectory_drawing,
    readme_tables,
    speed_text,
    readme_block,
    measurements,
    pictures,
) = (
    importlib.import_module(name)
    for name in (
        "page_text",
        "overview_text",
        "sample_drawing",
        "trajectory_drawing",
        "readme_tables",
        "speed_text",
        "readme_block",
        "measurements",
        "pictures",
    )
)


def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def code_blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


# The README


def test_the_readme_example_runs_with_a_small_limit(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GRAPHBENCH_ROOT", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    (block,) = code_blocks(ROOT / "README.md", "python")
    small, limits = re.subn(r"limit=[\d_]+", "limit=40", block)
    small, budgets = re.subn(r"steps=\d+", "steps=2", small)
    assert (limits, budgets) == (1, 1)
    exec(compile(small, "README.md", "exec"), {})
    data, streamed, trained = capsys.readouterr().out.strip().splitlines()
    assert data.startswith("Data(") and "in_tree=" in data
    assert streamed.startswith("Score(f1=") and "40 graphs" in streamed
    assert trained.startswith("Score(f1=")


def test_the_readme_table_is_the_catalogue():
    table = readme_block.block("datasets", readme())
    assert table == readme_tables.domains_table(), "run `python docs/_ext/readme_tables.py`"
    patterns = re.findall(r"\| (\d+): `([^`]+)` \|", table)
    found = [graphbench.list_datasets(pattern) for _, pattern in patterns]
    assert [len(ids) for ids in found] == [int(count) for count, _ in patterns]
    assert sorted(id_ for ids in found for id_ in ids) == sorted(graphbench.list_datasets())


def test_the_readme_has_the_recorded_scores():
    table = readme_block.block("scores", readme())
    assert table == readme_tables.scores_table(), "run `python docs/_ext/readme_tables.py`"
    shown = {unit.partition(" ")[0] for unit in re.findall(r"^\| `([^`]+)`", table, re.MULTILINE)}
    assert "| `co/rb_small:mis`, 500 of 7,500 samples |" in table
    assert shown == set(lite_set().datasets)


def test_the_readme_is_short():
    """What a newcomer needs, on two screens."""
    assert len(readme().splitlines()) <= 135


def test_a_speed_table_has_one_line_per_benchmark():
    machine = {"cpu": "A CPU", "cores": 2, "python": "3.11.0", "numpy": "2.0"}

    def row(unit, ratio, met=None):
        peer, target = ratio and 4.0 * ratio, None if met is None else {"of": "ratio", "met": met}
        return {"what": f"in {unit}", "unit": unit, "ours": 4.0, "peer": peer, "ratio": ratio, "target": target}

    rows = [
        row("us/graph", 3000.0, True),
        row("graphs/s", 20.0),
        row("ms", 100.0, False),
        row("edges", 7.0, True),  # no speed
        row("s", None, True),  # nothing to compare with
    ]
    result = {"title": "T", "date": "2026-01-01T00:00:00", "machine": machine, "rows": rows}
    table = speed_text.speed_table([result, result | {"title": "Sizes", "rows": [row("MB", 9.0)]}])
    assert "| T | 100x | 20 to 3,000 | 3 of 4 |" in table
    assert "Sizes" not in table and "in MB" in measurements.result_table(result | {"rows": [row("MB", 9.0)]})
    assert "A CPU, 2 cores" in table


def test_quick_measurements_are_left_out(tmp_path):
    for name, quick in (("full", False), ("quick", True)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"name": name, "quick": quick, "rows": []}))
    assert [result["name"] for result in measurements.results(tmp_path)] == ["full"]


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "AGENTS.md"])
def test_links_lead_to_files(name):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / name).read_text(encoding="utf-8"))
    assert links and not [link for link in links if not (ROOT / link).is_file()]


def test_versions_agree():
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"] == graphbench.__version__
    assert f"## {graphbench.__version__}" in (DOCS / "changelog.md").read_text(encoding="utf-8")


# Commands and names in the text


def shown_commands() -> list[tuple[str, str]]:
    found = []
    for path in PAGES:
        for block in code_blocks(path, "console"):
            lines = [line.removeprefix("$ ") for line in block.splitlines()]
            found += [(path.name, line) for line in lines if line.startswith("graphbench ")]
    return found


def test_every_command_shown_exists_with_its_options():
    from graphbench.cli.app import app

    @cache
    def help_of(*names: str) -> tuple[int, str]:
        outcome = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}).invoke(app, [*names, "--help"])
        return outcome.exit_code, outcome.output

    shown = shown_commands()
    assert len(shown) >= 10
    commands = typer.main.get_command(app).commands
    for page, line in shown:
        words = shlex.split(line, comments=True)
        group = commands.get(words[1])
        names = words[1:3] if hasattr(group, "commands") else words[1:2]
        code, text = help_of(*names)
        assert code == 0, f"{page}: there is no command {' '.join(names)!r}"
        for option in (word for word in words[2:] if word.startswith("--")):
            assert option in text, f"{page}: {words[1]} has no option {option}"


def test_every_metric_has_its_formula():
    text = (DOCS / "evaluation.md").read_text(encoding="utf-8").replace("\\_", "_")
    for name in (re.sub(r"hits_at_\d+", "hits_at_k", name) for name in METRICS):
        assert f"\\text{{{name}}}" in text or f"`{name}` is the share" in text or f"`{name}` the share" in text, name


def test_every_object_of_the_reference_exists():
    named = re.compile(r"(?:auto(?:function|class|module)::|\{py:\w+\}`~?)\s*(graphbench[\w.]+)")
    missing = [n for path in PAGES for n in named.findall(path.read_text("utf-8")) if locate(n) is None]
    assert not missing


def test_files_named_in_the_text_exist():
    for path in PAGES:
        named = re.findall(
            r"`((?:docs|graphbench|datasets|baselines|benchmarks)/[\w/]+\.\w+)`", path.read_text("utf-8")
        )
        missing = [n for n in named if not any((folder / n).exists() for folder in (ROOT, EXAMPLE, PLUGIN))]
        made_up = {
            "datasets/algoreas/mst_dense.yaml",
            "datasets/algoreas/measured/mst_dense.json",
            "docs/_build/html/index.html",  # made by `make docs`
        }
        assert not set(missing) - made_up, path.name


# Pages of datasets


@pytest.mark.parametrize("id_", graphbench.list_datasets())
def test_the_page_of_a_dataset_says_what_its_card_says(id_, needs_installed):
    card = graphbench.card(id_)
    with needs_installed():
        text = page_text.page(card)
    for name in (*card.all_splits, *card.aliases, *card.groups, *(f.name for f in card.features)):
        assert f"`{name}`" in text
    for line in (card.summary, card.licence, card.source.paper, *card.source.deviations):
        assert line in text
    for score in published(card.id):
        assert score.reference in text
    assert all(f"{spec.count:,}" in text for spec in card.all_splits.values())


def test_a_page_shows_what_every_feature_means():
    text = page_text.page(graphbench.card("mst_easy"))
    assert f"| `weight` | input | edge | `scalar` | {graphbench.card('mst_easy').features[0].meaning} |" in text
    assert "y is the \\<word\\> of x" in page_text.page(graphbench.card("clutrr/gen_23"))


def test_a_page_shows_the_features_of_graph_representations():
    text = page_text.page(graphbench.card("sat/small"))
    assert "`sat/small:<task>@vg`, variables, joined if a clause holds both:" in text
    assert (
        "| `shared` | edge | `scalar` | log(1 + n) of the clauses that hold both variables; logarithm of a count |"
        in text
    )


def test_a_page_shows_the_value_of_a_parameter_under_the_splits_that_share_it():
    text = page_text.page(graphbench.card("mst_easy"))
    assert "| `models` | train, val, val_large | test, n192, n256, n384, n512 | sparse |" in text
    assert "| `er` | p = 0.19 | p = 0.17 | p = 0.012 |" in text


def test_a_page_shows_measured_numbers_beside_published_ones(monkeypatch):
    measured = Measured(
        version=1,
        statistics={"train": {"nodes": (16.0, 0.0), "edges": (31.25, 7.5), "mean_in_tree": (0.5, 0.125)}},
        floor={"test": {"all_positive": {"f1": 0.338}, "majority": {"f1": 0.0}}},
    )
    record = read_record(ROOT / "tests" / "data" / "records" / "v1.json")
    card = graphbench.card(record.dataset).model_copy(update={"measured": measured})
    monkeypatch.setattr(page_text, "records_of", lambda address: [record])
    text = page_text.page(card)
    assert "| `train` | 16 | 31.25 ± 7.50 | 0.5000 ± 0.1250 |" in text
    assert "| `all_positive` | 0.3380 |" in text and "| `majority` | 0 |" in text
    score = record.scores["test"][card.metrics.primary]
    assert f"| `test` | {record.model} | {card.metrics.primary} | {score:.4f} | 1 | measured" in text
    assert "published (GraphBench, Table" in text
    assert ("(*small*)" in text) == record.budget.small


def test_the_page_of_graphs_with_tasks_shows_every_task_and_label():
    card = next(card for card in names.catalog().cards.values() if any(spec.splits for spec in card.labels.values()))
    text = page_text.page(card)
    for name in card.tasks:
        own = card.with_task(name)
        assert f"| `{own.address}` | {card.tasks[name].summary} | {own.task.type} |" in text
        for score in published(own.address):
            assert f"| `{name}` | `{score.split}` | {score.model} |" in text and score.reference in text
        assert f"`{own.address}`: scores of" in text
    for labeller, spec in card.labels.items():
        assert f"**`{labeller}`**" in text and all(f"| `{f.name}` |" in text for f in spec.features)
        facts = card.measured.labels[labeller]
        assert all(f"| `{split}` | {count} |" in text for split, count in facts.statistics_samples.items())
    spec = next(spec for spec in card.labels.values() if spec.splits)
    split, own = next(iter(spec.splits.items()))
    assert f"| `{split}` | steps = {own['steps']:,}" in text


def test_published_statistics_belong_to_datasets_and_splits():
    rows = page_text.published_statistics()
    assert set(rows) == set(graphbench.list_datasets("algoreas"))
    for id_, (where, row) in rows.items():
        card = graphbench.card(id_)
        splits = {name: values for name, values in row.items() if name != "edge_directions"}
        assert where == "GraphBench, table 2" and set(splits) == {"train", "val", "test"}
        for split, values in splits.items():
            assert values["nodes"] == card.split(split).parameters["nodes"]
            assert values["edges"] > 0.9 * values["nodes"]


def test_statistics_lie_where_readers_of_scores_do_not_look():
    stray = [p.name for p in (baselines_dir() / "published").glob("*.yaml") if "rows" in yaml.safe_load(p.read_text())]
    assert not stray


def distinct_tasks() -> list[str]:
    seen = {}
    for id_ in graphbench.list_datasets():
        card = graphbench.card(id_)
        if not pictures.wants_picture(card):
            continue  # its page shows a sample as it is, or none
        seen.setdefault((card.outputs[0].location, card.outputs[0].kind, card.directed), id_)
    return list(seen.values())


@pytest.mark.slow
@pytest.mark.parametrize("id_", distinct_tasks())
def test_the_picture_of_a_dataset_is_the_same_every_time(id_, tmp_path, needs_installed):
    card = graphbench.card(id_)
    for name in ("a.svg", "b.svg"):
        if card.hints:
            trajectory_drawing.draw_trajectory(card, tmp_path / name)
        else:
            with needs_installed():
                sample_drawing.draw(sample_drawing.pick_sample(card), tmp_path / name)
    drawn = (tmp_path / "a.svg").read_bytes()
    assert drawn == (tmp_path / "b.svg").read_bytes()
    assert any(f.name.encode() in drawn for f in card.hints or card.outputs)


def test_the_page_of_a_text_shows_its_first_sample():
    card = graphbench.card("clrs_text/insertion_sort")
    text = page_text.page(card)
    (sample,) = prompts("insertion_sort", 4, 1, 0)
    assert f"prompt:\n\n{sample.prompt.strip()}\n\nreference:\n\n{sample.reference.strip()}\n```" in text
    assert "no edges" in text and "undirected" not in text
    assert "$ graphbench train clrs_text/insertion_sort --model transformer_small\n" in text


def test_the_picture_shows_the_label(tmp_path):
    card = graphbench.card("mst_easy")
    sample = sample_drawing.pick_sample(card)
    sample_drawing.draw(sample, tmp_path / "tree.svg")
    accents = (tmp_path / "tree.svg").read_text().count(sample_drawing.ACCENT)
    assert sample.values["in_tree"].sum() == sample.nodes - 1 <= accents


def test_the_overview_links_every_dataset_once():
    cards = list(names.catalog().cards.values())
    text = overview_text.overview(cards)
    assert all(text.count(f"(generated/{page_text.page_name(card)}.md)") == 1 for card in cards)
    for domain in {card.domain for card in cards}:
        count = sum(card.domain == domain for card in cards)
        assert re.search(rf"\]\({domain}\.md\)\*\*, `{domain}/\*`: {count} dataset", text)


def test_the_extensions_know_no_domain():
    domains = {card.domain for card in names.catalog().cards.values()}
    for path in sorted((DOCS / "_ext").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert not [d for d in domains if re.search(rf"\b{d}\b", text)], path.name


# The worked examples


def test_the_card_of_the_first_example_is_valid(tmp_path):
    path = tmp_path / "algoreas" / "mst_dense.yaml"
    path.parent.mkdir()
    (example,) = code_blocks(DOCS / "adding_a_dataset.md", "yaml")
    path.write_text(example)
    (card,) = load_family(path)
    assert card.id == "algoreas/mst_dense"
    for split in card.all_splits:
        assert find("generator", card.generator).parse(card, split).nodes in (32, 128)


@pytest.fixture
def toy_domain(monkeypatch):
    """Make the three files of the example part of the package, as they would be after copying them."""
    import graphbench.domains

    monkeypatch.setattr(
        graphbench.domains, "__path__", [*graphbench.domains.__path__, str(EXAMPLE / "graphbench" / "domains")]
    )
    monkeypatch.setattr(resources, "data_dir", lambda name: EXAMPLE / name)
    yield
    monkeypatch.undo()
    for name in [name for name in sys.modules if name.startswith("graphbench.domains.toy")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    "name",
    [
        "test_a_triangle_with_a_tail_has_three_nodes_on_a_triangle",
        "test_every_conformance_check_passes",
        "test_it_loads_like_any_other_dataset",
    ],
)
def test_the_worked_example(name, toy_domain, tmp_path):
    path = EXAMPLE / "tests" / "domains" / "toy" / "test_triangles.py"
    spec = importlib.util.spec_from_file_location("toy_test_triangles", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert {n for n in vars(module) if n.startswith("test_")} >= {name}
    function = getattr(module, name)
    function(**({"tmp_path": tmp_path} if "tmp_path" in function.__code__.co_varnames else {}))


# The pictures


def test_the_picture_of_the_architecture_shows_the_layers_and_rooms_of_the_import_contracts():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = {c["name"]: c for c in project["tool"]["importlinter"]["contracts"]}
    layers = [layer.strip() for row in contracts["Imports go one way"]["layers"] for layer in row.split("|")]
    rooms = [room.strip() for row in contracts["The rooms of data"]["layers"] for room in row.split("|")]
    kinds = [module.rpartition(".")[2] for module in contracts["No kind of task imports another one"]["modules"]]
    picture = (DOCS / "_static" / "architecture.svg").read_text(encoding="utf-8")
    drawn = re.findall(r'font-weight="700" fill="#1f3a5f">(\w+)<', picture)
    assert drawn == [layer for layer in layers if layer != "_version"]
    assert re.findall(r'font-size="12.5" text-anchor="middle" fill="#1f3a5f">(\w+)<', picture) == [*kinds, *rooms]


def test_both_files_of_the_way_of_a_sample_hold_the_same_picture():
    """The page includes the HTML, in which links and search engines find the text; the SVG can be shown anywhere."""
    svg, html = ((DOCS / "_static" / f"sample_life.{end}").read_text(encoding="utf-8") for end in ("svg", "html"))
    assert svg in html
    for folder in re.findall(r'monospace">([\w/, ]+)<', svg):
        assert all((ROOT / "graphbench" / name).is_dir() for name in folder.split(", ")), folder


def test_the_architecture_page_names_every_import_contract():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    names_of_contracts = [contract["name"] for contract in project["tool"]["importlinter"]["contracts"]]
    listed = page.partition("## The import contracts")[2].partition("\n## ")[0]
    assert re.findall(r"^\| ([A-Z][^|]+?) \|", listed, re.MULTILINE) == names_of_contracts
