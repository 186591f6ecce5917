import json
import re
from dataclasses import replace

import pytest
import yaml

from graphbench.core.errors import TuningError
from graphbench.training.config import load_config
from graphbench.tuning.history import History
from graphbench.tuning.method import DatasetMethod
from graphbench.tuning.records import largest_budget
from graphbench.tuning.report.importance import Importance
from graphbench.tuning.report.report import incumbent_text, train_command, write_report
from graphbench.tuning.report.sentences import comparison_text, importance_notes, search_text, unreached_text
from graphbench.tuning.report.tables import best_grid, incumbent_grid, provenance_grid
from graphbench.tuning.trial import Status, Trial

from ...reports.parsed_page import ParsedPage
from ...snapshots import require_snapshot
from .synthetic import BUDGETS, DEFAULT, make_result, make_trials

HEADINGS = [
    "Incumbent",
    "Expected scores",
    "Best so far",
    "Use of the budget",
    "Parallel coordinates",
    "Importance of the hyperparameters",
    "Ten best configurations",
    "Failed trials",
    "Provenance",
]


def parsed(path):
    return ParsedPage(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "report"
    result = json.loads(json.dumps(make_result()))
    assert write_report(result, folder) == folder / "report.html"
    return folder


@pytest.fixture(scope="module")
def page(report):
    return parsed(report / "report.html")


@pytest.fixture(scope="module")
def markdown(report):
    return (report / "report.md").read_text(encoding="utf-8")


def test_the_page_is_self_contained(page):
    assert page.addresses and all(address.startswith("#") for address in page.addresses)
    assert {address[1:] for address in page.addresses} <= set(page.ids)
    assert not re.search(r"@import|url\((?!#)|<script|<link|<img", page.text)
    assert page.text.count("<svg") == 4
    assert "prefers-color-scheme: dark" in page.text


def test_both_pages_have_all_sections(page, markdown, report):
    assert page.headings == HEADINGS
    assert re.findall("^## (.*)$", markdown, re.MULTILINE) == HEADINGS
    figures = re.findall(r"!\[[^\]]+\]\((figures/[^)]+)\)", markdown)
    assert figures == [f"figures/{name}.png" for name in ("best", "budget", "parallel", "importance")]
    assert all((report / name).read_bytes().startswith(b"\x89PNG") for name in figures)


def test_every_markdown_table_is_well_formed(markdown):
    blocks = re.findall(r"(?:^\|.*\n)+", markdown, re.MULTILINE)
    assert len(blocks) == 7
    for block in blocks:
        lines = block.replace(r"\|", "").splitlines()
        assert len(lines) > 2 and lines[1].startswith("| ---")
        assert len({line.count("|") for line in lines}) == 1


@pytest.mark.usefixtures("without_importance")
def test_the_pages_are_those_of_the_snapshots(tmp_path):
    write_report(make_result(), tmp_path)
    require_snapshot("tuning-report.md", (tmp_path / "report.md").read_text(encoding="utf-8"))
    rows = ["|".join(row) for row in parsed(tmp_path / "report.html").cells]
    require_snapshot("tuning-report-html.txt", "\n".join([*rows, ""]))


def test_the_summary_says_how_the_result_was_obtained(page, markdown):
    best = History(make_result()).incumbent
    steps = sum(trial.steps for trial in make_trials())
    sentences = markdown.split("\n\n")[1]
    for words in (f"{1 - best.cost:.4f} at 729 optimizer steps (trial {best.number})", f"{steps:,} optimizer steps"):
        assert words in sentences
    assert len(sentences) > 200 and all(sentence in page.text for sentence in sentences.split(". "))


def test_the_incumbent_stands_beside_the_default(page, markdown):
    history = History(make_result())
    best = history.incumbent
    assert ["training.lr", "1e-05 to 0.1, logarithmic", "0.001", f"{best.config['training.lr']:.4g}"] in page.cells
    assert ["model.layers", "2 to 6", "4", str(best.config["model.layers"])] in page.cells
    default = history.default_trials[-1]
    own = next(t for t in history.trials if t.config_id == best.config_id and t.budget == default.budget)
    scores = f"{1 - own.cost:.4f}, the default {1 - default.cost:.4f} (+{default.cost - own.cost:.4f})."
    assert f"The default configuration was stopped at {default.budget} steps;" in markdown
    assert f"there the incumbent had reached validation f1 {scores}" in markdown


def test_inactive_values_and_defaults_of_null():
    space = {
        "clip": {"type": "categorical", "choices": [None, 1.0], "default": None},
        "width": {"type": "int", "range": [1, 9], "log": False},
        "rate": {"type": "float", "range": [0.0, 1.0], "log": False, "default": 0.5},
    }
    trial = Trial(0, 0, {"clip": None, "width": 3}, 27, 0, 0, Status.SUCCESS, 0.25, 5.0, 27, "")
    history = History(make_result([trial], space=space))
    assert incumbent_grid(history, trial).rows == (
        ("clip", "null, 1", "null", "null"),
        ("width", "1 to 9", "3", "3"),
        ("rate", "0 to 1", "0.5", "inactive"),
    )
    assert best_grid(history).rows == (("1", "0.7500", "27", "0", "null", "3", "inactive", "5 s"),)


def test_rungs_and_savings(page):
    rungs = History(make_result()).rungs()
    steps = make_result()["steps"]
    for rung in rungs:
        assert [f"{rung.budget}", f"{rung.trials}"] in [row[:2] for row in page.cells]
    assert ["all", "80", "6 (8%)", f"{steps['done']:,}"] in [row[:4] for row in page.cells]
    assert f"{steps['done']:,} optimizer steps instead of {steps['without_continuing']:,}, 27% saved." in page.text


def test_ten_best_and_all_failures(page, markdown):
    history = History(make_result())
    ranked = [row for row in page.cells if row and row[0].isdigit() and len(row) == 11]
    assert len(ranked) == 10
    assert [row[0] for row in ranked][:3] == ["1", "2", "3"] and ranked[0][3] == str(history.incumbent.config_id)
    assert len({row[3] for row in ranked}) == len(ranked)
    assert "6 of 80 trials failed: 4 not finite, 2 out of memory." in markdown
    reasons = [row[4] for row in page.cells if len(row) == 7 and row[3] in ("not finite", "out of memory")]
    assert sorted(reasons) == sorted(trial.reason for trial in history.failures)
    assert "&lt;device&gt; is full" in page.text and "<device>" not in page.text
    assert r"step 13 \| lower training.lr" in markdown


def test_importance_is_told_with_its_quality(page, markdown):
    assert ["parameter", "alone", "with all interactions"] in page.cells
    assert re.search(r"Cross-validated R2 of the forest: 0\.\d\d", markdown)
    assert "a random forest that is fitted to 74 successful trials of 44 configurations" in markdown
    first = next(line for line in markdown.splitlines() if re.match(r"\| \S+ \| \d\.\d{3} \| \d\.\d{3} \|", line))
    assert first.startswith("| training.lr |")


def test_too_few_trials_are_said_to_be_too_few(tmp_path):
    write_report(make_result(make_trials(12)), tmp_path)
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert re.search(r"Not computed: too few trials: \d+ successful of \d+ configurations", text)
    assert "figures/importance.png" not in text and not (tmp_path / "figures" / "importance.png").exists()


def test_a_run_without_success_has_a_report(tmp_path):
    failed = [Trial(0, 0, DEFAULT, 27, 0, 0, Status.TIMEOUT, 1.0, 5.0, 3, "2025-05-01T12:00:00+00:00", "slow")]
    for name, trials in (("none", []), ("failed", failed)):
        write_report(make_result(trials), tmp_path / name)
        text = (tmp_path / name / "report.md").read_text(encoding="utf-8")
        assert f"No trial succeeded in {len(trials)} trial" in text
        assert "## Incumbent" not in text and not (tmp_path / name / "incumbent.yaml").exists()
        assert ("slow" in text) == bool(trials)
        parsed(tmp_path / name / "report.html")


@pytest.mark.slow
def test_the_default_may_be_the_incumbent_or_unknown(tmp_path):
    start = "2025-05-01T12:00:00+00:00"
    default = Trial(0, 0, DEFAULT, 27, 0, 0, Status.SUCCESS, 0.25, 5.0, 27, start)
    other = Trial(1, 1, DEFAULT | {"training.lr": 0.01}, 27, 0, 0, Status.SUCCESS, 0.5, 5.0, 27, start)
    better = Trial(2, 2, DEFAULT | {"training.lr": 0.01}, 27, 0, 0, Status.SUCCESS, 0.125, 5.0, 27, start)
    texts = []
    for name, trials in (("same", [default, other]), ("unknown", [other]), ("beaten", [default, better])):
        result = make_result(trials) | {"default": None}
        write_report(result, tmp_path / name)
        texts.append((tmp_path / name / "report.md").read_text(encoding="utf-8"))
    assert "The default configuration is the incumbent: validation f1 0.7500 at 27 steps." in texts[0]
    assert "The default configuration was not measured at a budget of the incumbent." in texts[1]
    assert "At 27 steps the incumbent reaches validation f1 0.8750, the default 0.7500 (+0.1250)." in texts[2]


def test_a_default_that_failed_is_said_to_have_failed(tmp_path):
    start = "2025-05-01T12:00:00+00:00"
    small = Trial(0, 0, DEFAULT, 27, 0, 0, Status.SUCCESS, 0.5, 5.0, 27, start)
    lost = [
        Trial(n, 0, DEFAULT, budget, 0, 0, Status.RAISED, None, 5.0, 0, start, "ValueError: bad")
        for n, budget in ((0, 27), (3, 81))
    ]
    best = Trial(2, 2, DEFAULT | {"training.lr": 0.01}, 27, 0, 0, Status.SUCCESS, 0.25, 5.0, 27, start)
    for name, trials, text in (
        ("all", [lost[0], best], "The default configuration failed at 27 steps: ValueError: bad"),
        (
            "later",
            [small, best, lost[1]],
            "The default configuration failed at 81 steps: ValueError: bad. At 27 steps the incumbent had reached "
            "validation f1 0.7500, the default 0.5000 (+0.2500).",
        ),
    ):
        history = History(make_result(trials) | {"default": None})
        if name == "later":
            history = History({**history.result, "trials": [*history.result["trials"], _larger(best).to_json()]})
        assert text in comparison_text(history, history.incumbent)


def _larger(trial):
    return replace(trial, number=9, budget=81, continued_from=27, steps=54)


@pytest.mark.thorough
def test_a_largest_budget_that_was_not_reached_is_warned_of_everywhere(tmp_path):
    result = make_result(make_trials(12))
    best = History(result).incumbent
    assert best.budget < 729
    result |= {"largest_budget": largest_budget(result["what"], best)}
    write_report(result, tmp_path)
    words = f"argest budget reached: {best.budget} of 729 steps, after 12 trials; about 40 trials are needed."
    assert f"Warning: l{words}" in (tmp_path / "report.md").read_text()
    assert f"Warning: l{words}" in (tmp_path / "report.html").read_text()
    comment = (tmp_path / "incumbent.yaml").read_text()
    assert f"# L{words}\n# It is trained to the budget that was reached." in comment
    full = make_result()
    assert unreached_text(full | {"largest_budget": largest_budget(full["what"], History(full).incumbent)}) == ""
    assert largest_budget(full["what"] | {"method": "random"}, None)["trials_needed"] == 1


def test_budgets_are_those_of_the_ladder_and_one_is_one():
    what = {"method": "smac", "min_budget": 1, "max_budget": 12, "eta": 2}
    assert search_text(what) == "SMAC with Hyperband, budgets 2 to 12, eta 2"
    assert search_text(what | {"max_budget": 1}) == "SMAC with Hyperband, 1 step each"
    assert search_text(what | {"method": "random"}) == "random search, 12 steps each"
    trial = Trial(0, 0, DEFAULT, 1, 0, 0, Status.SUCCESS, 0.25, 5.0, 1, "2025-05-01T12:00:00+00:00")
    result = make_result([trial])
    history = History(result | {"what": result["what"] | {"min_budget": 1, "max_budget": 1}})
    text = incumbent_text(history, trial)
    assert "at 1 step, the best of 1 trial\n" in text and "Hyperband, 1 step each, seed 0" in text


@pytest.mark.thorough
def test_importance_of_equal_costs_is_not_computed_and_an_undefined_r2_is_said_to_be(tmp_path):
    equal = [replace(trial, cost=1 / trial.budget) for trial in make_trials(failing=False)]
    write_report(make_result(equal), tmp_path)
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "- Not computed: costs do not differ." in text and "R2" not in text
    assert not (tmp_path / "figures" / "importance.png").exists()
    notes = " ".join(importance_notes(Importance(trials=30, configurations=20, budget=1, at_budget=1)))
    assert "R2 is undefined" in notes and "below" not in notes and "1 of the trials are at 1 step" in notes


def test_notes_of_trials_stand_in_the_provenance():
    trials = [replace(trial, note="the checkpoint x does not exist") for trial in make_trials(3)]
    rows = dict(provenance_grid(History(make_result(trials))).rows)
    assert rows["notes"] == "trial 0: the checkpoint x does not exist (and 2 others)"


@pytest.mark.usefixtures("without_importance")
@pytest.mark.thorough
def test_incumbent_file_of_a_model_of_ours_trains(tmp_path):
    best = History(make_result()).incumbent
    method = DatasetMethod("mst_easy", "gin_small", budgets=BUDGETS, overrides={"training.batch_size": 64}, limit=1000)
    write_report(make_result() | {"baseline": method.baseline(best.config)}, tmp_path)
    path = tmp_path / "incumbent.yaml"
    run, base = (load_config("algoreas/mst_easy", model, family="mst") for model in (path, "gin_small"))
    assert run.training.steps == 729 and run.training.batch_size == 64
    assert run.training.lr == best.config["training.lr"] and run.training.warmup == best.config["training.warmup"]
    assert run.model.hidden == best.config["model.hidden"] and run.model.layers == best.config["model.layers"]
    assert run.model.processor == base.model.processor and run.model.positional == base.model.positional
    assert run.training.betas == base.training.betas
    text = path.read_text()
    assert text.startswith(f"# gin_small tuned on algoreas/mst_easy: validation f1 {1 - best.cost:.4f} at 729 steps")
    assert "# Data: v1-0a1b2c3d." in text and "betas: [0.9, 0.999]" in text


def test_the_command_that_trains_the_incumbent(markdown):
    command = "graphbench train algoreas/mst_easy --model incumbent.yaml --seed 0 --limit 1000"
    assert train_command(History(make_result())) == command
    assert f"`{command}`" in markdown
    assert train_command(History({**make_result(), "what": make_result()["what"] | {"limit": None}})) == command[:-13]


def test_incumbent_file_of_other_methods_is_the_configuration():
    history = History(make_result(ours=False))
    text = incumbent_text(history, history.incumbent)
    assert yaml.safe_load(text) == dict(history.incumbent.config)
    assert text.startswith("# The incumbent: cost 0.")
    assert train_command(history) is None


@pytest.mark.slow
@pytest.mark.usefixtures("without_importance")
def test_a_report_is_redrawn_in_place(tmp_path):
    few = make_result(make_trials(12))
    write_report(few, tmp_path)
    first = (tmp_path / "report.html").read_bytes()
    write_report(make_result(make_trials(15)), tmp_path)
    assert (tmp_path / "report.html").read_bytes() != first
    write_report(few, tmp_path)
    assert (tmp_path / "report.html").read_bytes() == first


def test_folders_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(TuningError, match=r"report to .*file.*another folder"):
        write_report(make_result(make_trials(5)), tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_malformed_results_are_refused_before_anything_is_written(tmp_path):
    with pytest.raises(TuningError, match="schema None"):
        write_report({}, tmp_path / "report")
    assert not (tmp_path / "report").exists()
