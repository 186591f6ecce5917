"""The command line: what it prints, and its exit codes."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import graphbench
from graphbench.cli import main
from graphbench.data.store.files import map_arrays

from ..warm import run_python

LIMIT = "60"
COMMAND = [sys.executable, "-m", "graphbench"]


def run(*arguments, root=None, expect=0):
    command = ["-m", "graphbench", *arguments, *(["--root", str(root)] if root else [])]
    done = run_python(command)
    assert done.returncode == expect, f"{command} -> {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.mark.parametrize(
    "command", ["", "list", "info", "generate", "verify", "train", "evaluate", "report", "results", "leaderboard"]
)
def test_help_needs_no_docs(command):
    text = run(*([command] if command else []), "--help").stdout
    assert "Usage" in text and len(text.splitlines()) > 8


def test_version():
    assert run("--version").stdout.strip() == f"graphbench {graphbench.__version__}"


def test_list_json_names_all_datasets(tmp_path):
    rows = json.loads(run("list", "--json", root=tmp_path).stdout)
    assert [row["id"] for row in rows] == graphbench.list_datasets()
    assert all(row["generated"] == {} for row in rows)


def test_list_takes_globs_and_shows_what_is_generated(tmp_path):
    run("generate", "bridges_easy", "--limit", LIMIT, "--workers", "1", root=tmp_path)
    rows = json.loads(run("list", "algoreas/*_easy", "--json", root=tmp_path).stdout)
    assert [row["id"] for row in rows] == graphbench.list_datasets("algoreas/*_easy") and len(rows) == 8
    generated = {row["id"]: row["generated"] for row in rows}
    assert generated["algoreas/bridges_easy"] == {"train": 60, "val": 60, "test": 60}
    assert generated["algoreas/mst_easy"] == {}


def test_info_shows_card_and_published_numbers(tmp_path):
    text = run("info", "mst_easy", root=tmp_path).stdout
    assert "algoreas/mst_easy" in text and "weight" in text and "0.6906" in text and "deviation" in text
    content = json.loads(run("info", "mst_easy", "--json", root=tmp_path).stdout)
    assert content["splits"]["train"]["count"] == 1_000_000
    (models,) = (line.split(maxsplit=1)[1] for line in text.splitlines() if line.startswith("models "))
    assert models.startswith("gin (default), ")
    assert models.replace(" (default)", "").split(", ") == content["models"]
    assert {"gin", "gt", "random_forest"} < set(content["models"])
    served = {
        dataset: json.loads(run("info", dataset, "--json", root=tmp_path).stdout)["models"]
        for dataset in ("co/rb_small:mis", "co/rb_small:coloring", "co/rb_small:mis_size", "circuits/design_5")
    }
    assert "langevin" in served["co/rb_small:mis"] and "dsatur" not in served["co/rb_small:mis"]
    assert "dsatur" in served["co/rb_small:coloring"] and "langevin" not in served["co/rb_small:coloring"]
    assert not {"greedy_rule", "stepwise"} & set(served["co/rb_small:mis_size"])
    assert served["circuits/design_5"] == ["proposer"]
    labels = [line for line in run("info", "co/rb_small:mis", root=tmp_path).stdout.splitlines() if "in test " in line]
    assert labels and all(re.search(r"\(mean ± deviation of the first \d+\)$", line) for line in labels)


def test_generate_json_reports_files_and_is_repeatable(tmp_path):
    first = json.loads(
        run("generate", "mst_easy", "--limit", LIMIT, "--splits", "val", "--json", root=tmp_path / "a").stdout
    )
    second = json.loads(
        run(
            "generate", "mst_easy", "--limit", LIMIT, "--splits", "val", "--workers", "1", "--json", root=tmp_path / "b"
        ).stdout
    )
    assert [row["split"] for row in first] == ["val"]
    assert first[0]["graphs"] == 60
    assert first[0]["content"] == second[0]["content"]


def test_verify_passes_and_a_tampered_file_fails(tmp_path):
    rows = json.loads(
        run(
            "generate", "bridges_easy", "--limit", LIMIT, "--splits", "val", "--json", "--workers", "1", root=tmp_path
        ).stdout
    )
    arguments = ("verify", "bridges_easy", "--splits", "val", "--samples", "20", "--json")
    assert json.loads(run(*arguments, root=tmp_path).stdout)[0]["passed"]
    with open(rows[0]["file"], "r+b") as stream:  # noqa: PTH123
        stream.seek(rows[0]["bytes"] // 2)
        stream.write(b"\xff" * 2)
    outcome = json.loads(run(*arguments, root=tmp_path, expect=1).stdout)[0]
    failed = [row["check"] for row in outcome["rows"] if not row["passed"]]
    assert failed == ["stored file"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("info", "mst_esy"), "did you mean 'mst_easy'"),
        (("generate", "mst_easy", "--splits", "n999"), "n999"),
        (("generate", "mst_easy", "--limit", "0"), "limit"),
        (("train", "mst_easy", "--model", "ginn"), "ginn"),
        (("train", "mst_easy", "--set", "training.lrr=1"), "lrr"),
        (("evaluate", "no/such/folder"), "no folder of a run"),
        (("report", "--records", "no/such/folder"), "no/such/folder"),
        (("report", "algoreas", "--output", "one.pdf"), "one.pdf"),
        (("report", "algoreas", "--output", "/dev/null/report"), "/dev/null/report"),
        (("list", "zz"), "unknown dataset 'zz'"),
        (("info", "mst"), "stands for 3 datasets"),
        (("frobnicate",), "frobnicate"),
    ],
)
def test_mistakes_exit_with_2_and_a_remedy(arguments, words, capsys):
    with pytest.raises(SystemExit) as end:
        main([*arguments])
    assert end.value.code == 2
    shown = capsys.readouterr()
    assert words in shown.err and shown.out == ""
    assert "Traceback" not in shown.err


def test_verbose_shows_the_traceback_of_a_mistake():
    done = run("--verbose", "list", "zz", expect=2)
    assert "Traceback" in done.stderr
    assert "UnknownDataset: unknown dataset 'zz'" in done.stderr


def test_an_unexpected_error_without_a_users_code_is_a_fault_of_the_package(monkeypatch, capsys):
    monkeypatch.setattr("graphbench.cli.show.datasets", int)  # which does not take three arguments
    with pytest.raises(SystemExit) as end:
        main(["list"])
    told = capsys.readouterr().err
    assert end.value.code == 1 and told.count("\n") == 1 and told.startswith("error: TypeError: int() takes at most 2")
    assert "in list_command; this is a fault of graphbench, please report it; set GRAPHBENCH_TRACEBACK=1" in told


@pytest.mark.slow
def test_an_unreadable_manifest_is_told(tmp_path):
    run("generate", "bridges_easy", "--limit", "4", "--splits", "val", "--workers", "1", root=tmp_path)
    (manifest,) = tmp_path.rglob("manifest.json")
    manifest.write_bytes(b"\xff\xfe\x00")
    run("generate", "mst_easy", "--limit", "4", "--splits", "val", "--workers", "1", root=tmp_path)
    for command, code in ((("list",), 0), (("info", "bridges_easy"), 0), (("generate", "bridges_easy"), 2)):
        done = run(*command, root=tmp_path, expect=code)
        assert "manifest.json is damaged" in " ".join(done.stderr.split())
        assert "Traceback" not in done.stderr
    listed = json.loads(run("list", "--json", root=tmp_path).stdout)
    here = {row["id"]: row["generated"] for row in listed if row["generated"]}
    assert here == {"algoreas/mst_easy": {"val": 4}}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no disk that is always full")
@pytest.mark.parametrize("arguments", [("list",), ("list", "--json"), ("--version",)])
def test_output_that_cannot_be_written(arguments):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=240, check=False
        )
    assert done.returncode == 2
    assert done.stderr == "error: cannot write the output: No space left on device\n"


def test_output_that_nobody_reads(tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*COMMAND, "list", "--json"], stdout=writer, stderr=subprocess.PIPE, text=True, timeout=240, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.thorough
def test_output_in_a_small_alphabet(encoding, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    command = [*COMMAND, "info", "mst_easy", "--root", str(tmp_path)]
    text = subprocess.run(command, capture_output=True, timeout=240, check=True).stdout.decode(encoding)
    assert "0.6906" in text and "0.1655" in text


@pytest.mark.parametrize("workers", [pytest.param("1", marks=pytest.mark.slow), "2"])
@pytest.mark.thorough
def test_an_interrupt_says_how_to_go_on_and_goes_on(workers, tmp_path):
    arguments = [*COMMAND, "generate", "max_clique_medium", "--splits", "test", "--limit", "240", "--workers", workers]
    process = subprocess.Popen(
        [*arguments, "--root", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # a run in the background may ignore it
    )
    deadline = time.monotonic() + 120
    while not list(tmp_path.rglob("0*.h5")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does for Ctrl-C
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert output == ""
    *earlier, last = errors.splitlines()
    assert last == "interrupted; run the same command again to continue"
    assert all("compiling kernels at the first use" in line for line in earlier), errors
    damaged = min(tmp_path.rglob("0*.h5"))
    content = bytearray(damaged.read_bytes())
    content[map_arrays(damaged)["value.in_clique"].offset + 3] ^= 1
    damaged.write_bytes(content)
    (row,) = json.loads(run(*arguments[len(COMMAND) :], "--json", root=tmp_path).stdout)
    (whole,) = json.loads(run(*arguments[len(COMMAND) :], "--json", root=tmp_path / "undisturbed").stdout)
    assert row["content"] == whole["content"]


@pytest.mark.parametrize(("flags", "seeds"), [((), None), (("--seed", "4", "--seed", "4"), [4, 4])])
def test_train_hands_on_the_seeds_asked_for(flags, seeds, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "graphbench.cli.runs.train_seeds", lambda *_, **options: (asked.append(options["seeds"]), [])[1]
    )
    with pytest.raises(SystemExit) as end:
        main(["train", "mst_easy", *flags])
    assert end.value.code == 0
    assert asked == [seeds]


def test_evaluate_scores_a_file_of_predictions(tmp_path):
    splits = graphbench.Loader("mst_easy", root=tmp_path, limit=20, workers=1).load(())
    truth = np.concatenate([splits["val"][i].y.numpy() for i in range(20)])
    np.save(tmp_path / "right.npy", truth)
    np.save(tmp_path / "short.npy", truth[:-3])
    common = ("--limit", "20", "--splits", "val", "--scores", "label", "--json")
    done = run("evaluate", "mst_easy", "--predictions", str(tmp_path / "right.npy"), *common, root=tmp_path)
    assert json.loads(done.stdout)["val"]["f1"] == 1.0
    done = run("evaluate", "mst_easy", "--predictions", str(tmp_path / "short.npy"), *common, root=tmp_path, expect=2)
    assert "rows" in done.stderr


def test_train_evaluate_report_from_end_to_end(tmp_path):
    settings = [
        "model.hidden=16",
        "model.layers=2",
        "training.warmup=1",
        "training.eval_every=5",
        "training.batch_size=16",
    ]
    flags = [word for setting in settings for word in ("--set", setting)]
    run(
        *("train", "mst_easy", "--model", "gin_small", "--steps", "6", "--limit", "64", "--eval-limit", "10"),
        *(
            "--evaluate",
            "test,n192",
            "--seed",
            "0",
            "--seed",
            "1",
            "--output",
            str(tmp_path / "run"),
            "--device",
            "cpu",
        ),
        *("--records", str(tmp_path / "records"), *flags),
        root=tmp_path / "data",
    )
    folder = tmp_path / "run" / "seed1"
    scores = json.loads(run("evaluate", str(folder), "--limit", "10", "--json", root=tmp_path / "data").stdout)
    record = json.loads((folder / "record.json").read_text())
    assert scores["test"]["f1"] == pytest.approx(record["scores"]["test"]["f1"], rel=1e-6)
    run("report", "--records", str(tmp_path / "records"), "--output", str(tmp_path / "report"))
    page = (tmp_path / "report" / "report.html").read_text()
    assert "mst_easy" in page and "0.6906" in page and "http-equiv" not in page


@pytest.mark.slow
def test_a_text_model_from_end_to_end(tmp_path):
    flags = ["--set", "model.hidden=16", "--set", "model.layers=1", "--set", "training.batch_size=4"]
    common = ("train", "clrs_text/minimum", "--model", "transformer_small", "--steps", "2", "--limit", "8", *flags)
    output = ("--output", str(tmp_path / "run"), "--records", str(tmp_path / "records"))
    run(*common, "--eval-limit", "4", "--workers", "1", *output, root=tmp_path)
    again = json.loads(run(*common, "--no-resume", "--evaluate", "test", "--json", *output, root=tmp_path).stdout)
    (record,) = again
    assert record["dataset"] == "clrs_text/minimum" and record["graphs_scored"]["test"] == 8
    assert set(record["scores"]) == {"test", *(f"test_n{size}" for size in range(4, 12))}
    done = run("evaluate", str(tmp_path / "run"), "--limit", "8", "--json", root=tmp_path)
    assert json.loads(done.stdout) == record["scores"]
    run("report", "clrs_text/*", "--records", str(tmp_path / "records"), "--output", str(tmp_path / "report.md"))
    text = (tmp_path / "report.md").read_text()
    assert "clrs_text/minimum" in text and "| test_n11 | 11 |" in text


def test_progress_of_long_work_is_logged_without_an_option(capsys):
    with pytest.raises(SystemExit):
        main(["list", "mst_easy"])
    capsys.readouterr()
    for name in ("graphbench.core.progress", "graphbench.tuning.live"):
        assert logging.getLogger(name).isEnabledFor(logging.INFO)
