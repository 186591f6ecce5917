"""The transfer protocol: what is left out, what both starts share, what is kept, and what cannot be scored."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import networkx as nx
import pytest

import graphbench
from graphbench.cli import main
from graphbench.cli import transfer as cli_transfer
from graphbench.core.errors import CardError, ConfigError
from graphbench.records.files import read_record
from graphbench.reports.transfer import (
    Gain,
    gains,
    half_width,
    separated,
    transfer_figure,
    transfer_matrix,
    transfer_table,
)
from graphbench.training import transfer
from graphbench.training.transfer import Adapted, TransferPlan, identity_of, run_transfer, sources_of

SMALL = {"model.hidden": 8, "model.layers": 1, "training.batch_size": 8}


def _plan(**changes) -> TransferPlan:
    settings = {
        "pretrain": ("bridges_easy", "mst_easy"), "adapt": ("mst_easy",), "model": "gin_small", "shots": (0, 4),
        "seeds": (0,), "pretrain_steps": 3, "steps": 2, "limit": 20, "set": SMALL,
    }  # fmt: skip
    return TransferPlan.model_validate({**settings, **changes})


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("transfer")
    return list(run_transfer(_plan(), folder / "runs", folder / "data")), folder


def test_a_dataset_is_left_out_of_its_own_pretraining():
    assert sources_of(_plan(), "algoreas/mst_easy") == ("algoreas/bridges_easy",)
    assert len(sources_of(_plan(), "algoreas/flow_easy")) == 2
    with pytest.raises(ConfigError, match="nothing is left"):
        sources_of(_plan(pretrain=("mst_easy",)), "algoreas/mst_easy")


def test_both_starts_have_the_same_samples_and_steps(results):
    found, folder = results
    assert [(one.shots, one.start) for one in found] == [(0, "pretrained"), (4, "pretrained"), (4, "scratch")]
    begun, scratch = (read_record(folder / "runs" / one.folder / "record.json") for one in found[1:])
    for record in (begun, scratch):
        assert record.config["training"]["train_limit"] == 4
        assert record.steps == 2
    assert begun.protocol == "fine_tuned"
    assert scratch.protocol is None
    assert begun.data_hashes == scratch.data_hashes
    assert found[1].core_seconds > begun.cpu_seconds  # the pretraining counts


def test_other_outputs_cannot_be_scored_without_adaptation(results):
    found, _ = results
    assert found[0].scores == {}
    assert "no encoders and decoders" in found[0].note


def test_the_same_task_is_scored_without_adaptation(results, caplog):
    _, folder = results
    plan = _plan(pretrain=("bridges_easy",), adapt=("bridges_medium",), shots=(0,))
    (only,) = run_transfer(plan, folder / "other", folder / "data")
    assert 0 <= only.scores["test"] <= 1
    assert not only.note
    assert not caplog.records, "data of another dataset are what the protocol asks for"


def test_finished_runs_are_kept(results, monkeypatch):
    found, folder = results
    seen = []
    original = transfer.train

    def counted(*arguments, **options):
        before = {path: path.stat().st_mtime_ns for path in Path(options["output"]).glob("best.safetensors")}
        result = original(*arguments, **options)
        seen.append(
            before == {path: path.stat().st_mtime_ns for path in Path(options["output"]).glob("best.safetensors")}
        )
        return result

    monkeypatch.setattr(transfer, "train", counted)
    again = list(run_transfer(_plan(), folder / "runs", folder / "data"))
    assert [one.scores for one in again] == [one.scores for one in found]
    assert len(seen) == 3
    assert all(seen)


def test_known_results_need_no_runs(results, tmp_path):
    found, folder = results
    assert list(run_transfer(_plan(), tmp_path / "new", folder / "data", done=found)) == found
    assert not (tmp_path / "new").exists()
    again = list(run_transfer(_plan(), tmp_path / "new", folder / "data", done=found[:-1]))
    assert again[:-1] == found[:-1] and again[-1].scores == found[-1].scores


def test_an_interruption_keeps_known_results(results, tmp_path, monkeypatch):
    found, folder = results
    file = tmp_path / "transfer.json"
    known = [found[0], found[2]]  # the one between them is to be trained again
    facts = {"plan": _plan().model_dump(), "identity": identity_of(_plan())}
    file.write_text(json.dumps({**facts, "results": [one.to_dict() for one in known]}))

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(transfer, "train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cli_transfer._run(_plan(), tmp_path, folder / "data", "cpu", as_json=True)
    assert len(json.loads(file.read_text())["results"]) == 2


@pytest.mark.parametrize(
    "change",
    [{"scores": None}, {"scores": {"test": "high"}}, {"scores": {"test": float("inf")}}, {"metric": "nonsense"},
     {"seed": "first"}],
)  # fmt: skip
def test_damaged_results_are_refused(change, results, tmp_path):
    one = {**results[0][1].to_dict(), **change}
    facts = {"plan": _plan().model_dump(), "identity": identity_of(_plan()), "results": [one]}
    (tmp_path / "transfer.json").write_text(json.dumps(facts))
    with pytest.raises(ConfigError, match=r"damaged|holds"):
        cli_transfer._run(_plan(), tmp_path, tmp_path, "cpu", as_json=True)


def test_results_of_another_configuration_of_the_same_name_are_refused(results, tmp_path):
    found, _ = results
    file = tmp_path / "mine.yaml"
    file.write_text((Path("baselines/algoreas/gin_small.yaml")).read_text())
    plan = _plan(model=str(file))
    facts = {"plan": plan.model_dump(), "identity": identity_of(plan), "results": [one.to_dict() for one in found]}
    (tmp_path / "transfer.json").write_text(json.dumps(facts))
    assert cli_transfer._results_of(plan, identity_of(plan), tmp_path / "transfer.json") == found
    file.write_text(file.read_text().replace("lr: ", "lr: 1"))
    with pytest.raises(ConfigError, match=r"other data or another configuration \(algoreas/mst_easy, adaptation\)"):
        cli_transfer._results_of(plan, identity_of(plan), tmp_path / "transfer.json")


def test_other_data_have_another_identity(monkeypatch):
    before = identity_of(_plan())
    assert before.keys() == {"algoreas/mst_easy, adaptation", "algoreas/bridges_easy, pretraining"}
    monkeypatch.setattr(transfer, "data_fingerprint", lambda card: f"v2 {card.id}")
    assert not before.items() & identity_of(_plan()).items()


def test_folds_of_own_graphs_do_not_pretrain_for_each_other(monkeypatch, tmp_path):
    monkeypatch.setenv("GRAPHBENCH_OWN", str(tmp_path / "own"))
    graphs = []
    for k in range(12):
        graph = nx.path_graph(4 + k)
        graph.graph["y"] = k % 2
        nx.set_node_attributes(graph, {node: node % 3 for node in graph}, "a")
        graphs.append(graph)
    graphbench.from_networkx("mine/ff", graphs, folds=3)
    plan = _plan(pretrain=("mine/ff_fold0", "mine/ff_fold1", "bridges_easy"))
    assert sources_of(plan, "mine/ff_fold2") == ("algoreas/bridges_easy",)
    assert sources_of(plan, "algoreas/mst_easy") == ("mine/ff_fold0", "mine/ff_fold1", "algoreas/bridges_easy")


def test_every_seed_counts_once_and_no_score_says_why(results):
    assert _plan(seeds=(0, 0, 1, 0)).seeds == (0, 1)
    several = transfer._why_no_score("algoreas/mst_easy", ("algoreas/bridges_easy", "algoreas/flow_easy"))
    assert "several datasets" in several
    assert not transfer._why_no_score("algoreas/bridges_medium", ("algoreas/bridges_easy",))


def test_samples_of_a_score_without_adaptation_are_those_of_the_others(results):
    _, folder = results
    plan = _plan(pretrain=("bridges_easy",), adapt=("bridges_medium",), shots=(0,), limit=20, eval_limit=30)
    (small,) = run_transfer(plan, folder / "small", folder / "data")
    (same,) = run_transfer(plan.model_copy(update={"eval_limit": 20}), folder / "small", folder / "data")
    assert small.scores == same.scores


def test_wrong_plans_are_refused_before_training(tmp_path):
    with pytest.raises(ConfigError, match="hidden"):
        list(run_transfer(_plan(set={"model.hidden": -1}), tmp_path, tmp_path))
    with pytest.raises(ValueError, match="0 or more"):
        _plan(shots=(-1,))
    with pytest.raises(ConfigError, match="100 labelled samples of algoreas/mst_easy are asked for, and there are 20"):
        list(run_transfer(_plan(shots=(4, 100)), tmp_path, tmp_path))
    with pytest.raises(ConfigError, match="nothing is left to train"):
        list(run_transfer(_plan(freeze=("processor", "encoders", "decoders")), tmp_path, tmp_path))
    with pytest.raises(ConfigError, match="freeze names 'procesor'"):
        list(run_transfer(_plan(freeze=("procesor",)), tmp_path, tmp_path))
    with pytest.raises(ConfigError, match="evaluate names none"):
        list(run_transfer(_plan(evaluate=("none",)), tmp_path, tmp_path))
    with pytest.raises(CardError, match="nope"):
        list(run_transfer(_plan(evaluate=("nope",)), tmp_path, tmp_path))
    assert not list(tmp_path.iterdir())


def _adapted(start, shots, seed, score) -> Adapted:
    return Adapted("algoreas/mst_easy", shots, seed, start, (), {"test": score}, 1.0)


def test_the_table_has_means_and_intervals():
    scores = (0.5, 0.6, 0.7)
    results = [_adapted("pretrained", 10, seed, score) for seed, score in enumerate(scores)]
    results.append(_adapted("scratch", 10, 0, 0.25))
    assert half_width(scores) == pytest.approx(4.302653 * 0.1 / 3**0.5, rel=1e-5)  # Student's t, 2 degrees of freedom
    table = transfer_table(results, "test")
    assert "| f1 ↑ | pretrained | 0.6 ± 0.25 |" in table
    assert "| from scratch | 0.25 |" in table
    assert separated(results, "test") == (0, 0)
    others = [_adapted("scratch", 10, seed, score) for seed, score in enumerate((0.01, 0.02, 0.03))]
    assert separated([*results[:3], *others], "test") == (1, 1)
    gone = Adapted("mine/gone", 10, 0, "scratch", (), {"test": 1.5}, 1.0, metric="rmse")  # no card is needed
    assert "| mine/gone | rmse ↓ | from scratch | 1.5 |" in transfer_table([gone], "test")
    figure = transfer_figure(results, "test")
    assert figure.axes[0].get_title() == "algoreas/mst_easy"
    assert set(figure.axes[0].get_legend_handles_labels()[1]) == {"pretrained", "from scratch"}


def test_gains_are_shares_of_the_score_from_scratch():
    better = [_adapted("pretrained", 10, seed, score) for seed, score in enumerate((0.59, 0.6, 0.61))]
    scratch = [_adapted("scratch", 10, seed, score) for seed, score in enumerate((0.39, 0.4, 0.41))]
    alone = [_adapted("pretrained", 0, 0, 0.9)]  # there is no model from scratch without samples
    errors = [
        Adapted("mine/gone", 100, 0, start, (), {"test": error}, 1.0, metric="rmse")
        for start, error in (("pretrained", 3.0), ("scratch", 2.0))
    ]
    found = gains([*better, *scratch, *alone, *errors], "test")
    assert found == {
        "algoreas/mst_easy": {10: Gain(pytest.approx(0.5), True)},
        "mine/gone": {100: Gain(pytest.approx(-0.5), False)},  # a higher error is worse, and one seed has no interval
    }
    axes = transfer_matrix([*better, *scratch, *alone, *errors], "test").axes[0]
    assert [text.get_text() for text in axes.texts] == ["+50 %", "\N{MINUS SIGN}50 %"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["n = 10", "n = 100"]
    assert len(axes.patches) == 1  # the frame of the one gain whose intervals do not overlap


@pytest.mark.parametrize("option", ["--pretrain", "--adapt"])
def test_names_with_commas_between_them_are_separate_datasets(option, tmp_path, capsys):
    given = {"--pretrain": "bridges_easy", "--adapt": "mst_easy", "--model": "gin_small", "-o": str(tmp_path)}
    given[option] += ",nowhere"
    with pytest.raises(SystemExit) as end:
        main(["transfer", *(word for pair in given.items() for word in pair)])
    assert end.value.code == 2
    assert "unknown dataset 'nowhere'" in capsys.readouterr().err


@pytest.mark.thorough
def test_the_command_writes_results_table_and_curves(tmp_path, capsys):
    words = [word for key, value in SMALL.items() for word in ("--set", f"{key}={value}")]
    sizes = ["--shots", "4", "--seed", "0", "--pretrain-steps", "2", "--steps", "2", "--limit", "20", *words]
    place = ["--root", str(tmp_path / "data"), "-o", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as end:
        main(["transfer", "--pretrain", "bridges_easy", "--adapt", "mst_easy", "--model", "gin_small", *sizes, *place])
    assert end.value.code == 0
    assert "2 of 2: algoreas/mst_easy, n = 4, seed 0, scratch" in capsys.readouterr().out
    written = json.loads((tmp_path / "out" / "transfer.json").read_text())
    assert len(written["results"]) == 2 and written["machine"]["cores"] and written["graphbench_version"]
    assert "<svg" in (tmp_path / "out" / "transfer.svg").read_text()
    assert "`gin_small` was pretrained on bridges_easy" in (tmp_path / "out" / "transfer.md").read_text()
    shutil.rmtree(tmp_path / "out" / "adapted")
    with pytest.raises(SystemExit) as end:
        main(["transfer", "--pretrain", "bridges_easy", "--adapt", "mst_easy", "--model", "gin_small", *sizes, *place])
    assert end.value.code == 0 and not (tmp_path / "out" / "adapted").exists()
    assert json.loads((tmp_path / "out" / "transfer.json").read_text())["results"] == written["results"]
    others = ["--shots", "5", *sizes[2:], *place]
    with pytest.raises(SystemExit) as end:
        main(["transfer", "--pretrain", "bridges_easy", "--adapt", "mst_easy", "--model", "gin_small", *others])
    assert end.value.code == 2
    assert "results of another plan" in capsys.readouterr().err
    with pytest.raises(SystemExit) as end:
        main(
            ["transfer", "--pretrain", "bridges_easy", "--adapt", "mst_easy", "--model", "gin_small", "--shots", "few"]
        )
    assert end.value.code == 2
