"""`Optimizer.for_dataset`: which space, budgets, defaults and folder a search of our own models gets."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import graphbench
from graphbench.core.errors import ConfigError, UnknownDataset, UnknownModel
from graphbench.training import identity
from graphbench.training.evaluate import evaluate_model
from graphbench.training.run import fit
from graphbench.tuning.method import DatasetMethod
from graphbench.tuning.space import to_plain
from graphbench.tuning.space_file import load_tuning_file

from ..warm import run_python

SPACE = {
    "training.lr": {"type": "float", "range": [1e-4, 1e-1], "log": True},
    "model.dropout": {"type": "float", "range": [0.0, 0.5], "default": 0.25},
}


def optimizer(dataset="mst_easy", model="gin_small", **settings):
    return graphbench.Optimizer.for_dataset(dataset, model=model, **settings)


def test_space_budgets_and_trials_are_those_of_the_models_file():
    found, file = optimizer(), load_tuning_file("algoreas/gin_small")
    assert found.args.space_file == "hpo/algoreas/gin_small.yaml"
    assert set(found.args.space) == set(file.space)
    assert (found.args.budgets, found.args.trials, found.args.eta) == (file.budgets, file.trials, file.budget.eta)
    assert found.method == DatasetMethod("algoreas/mst_easy", "gin_small", budgets=file.budgets)


def test_the_models_own_values_are_tried_first():
    default = optimizer("mst_easy", "gin").args.space.get_default_configuration()
    assert default["training.lr"] == pytest.approx(3e-4)  # the file's for mst, not 1e-4, its value for other tasks
    default = optimizer(space=SPACE, min_budget=3, max_budget=9).args.space.get_default_configuration()
    assert default["training.lr"] == pytest.approx(1e-3)
    assert default["model.dropout"] == 0.0
    default = optimizer(
        space={"model.dropout": SPACE["model.dropout"], "training.weight_decay": {"type": "constant", "value": 0.5}},
        min_budget=3,
        max_budget=9,
    ).args.space.get_default_configuration()
    assert default["training.weight_decay"] == 0.5  # the model's 0.1 does not lie in the space


@pytest.mark.parametrize(
    ("given", "budgets"),
    [
        ({"min_budget": 3, "max_budget": 27}, [3, 7, 14, 27]),
        ({"max_budget": 243}, [8, 15, 30, 61, 122, 243]),
        ({"min_budget": 243}, [365, 729]),
        ({"eta": 9}, [81, 729]),
        ({"min_budget": None, "max_budget": None, "eta": None}, [23, 46, 91, 182, 365, 729]),
    ],
)
def test_budgets_that_are_given_come_before_the_files(given, budgets):
    found = optimizer(**given)
    assert found.args.budgets == budgets == list(found.method.budgets)
    warmup = found.args.space["training.warmup"]
    assert warmup.upper < budgets[-1]
    for value in (warmup.lower, warmup.upper):
        assert found.method.run_config({"training.warmup": value}, 0, budgets[0]).training.warmup == value


def test_every_space_of_ours_fits_its_model_at_the_smallest_ladder():
    for name in ("algoreas/gin", "clrs/mpnn", "clrs_text/transformer_small", "clutrr/gat"):
        domain, model = name.split("/")
        dataset = next(id_ for id_ in graphbench.list_datasets() if id_.startswith(f"{domain}/"))
        found = optimizer(dataset, model, min_budget=10, max_budget=90)
        space = found.args.space
        for config in [space.get_default_configuration(), *space.sample_configuration(20)]:
            run = found.method.run_config(to_plain(config), 0, 10)
            assert run.training.warmup < 90 == run.training.schedule_steps


def test_names_of_spaces_are_those_of_the_datasets_domain():
    assert optimizer(space="gin").args.space_file == "hpo/algoreas/gin.yaml"
    assert optimizer(space="algoreas/gin").args.space_file == "hpo/algoreas/gin.yaml"


def test_the_folder_is_named_after_dataset_model_and_seed(tmp_path):
    assert optimizer().args.output == Path("runs/tune/algoreas/mst_easy/gin_small-seed0")
    assert optimizer(seed=7, model=None).args.output == Path("runs/tune/algoreas/mst_easy/gin-seed7")
    assert optimizer(output=tmp_path).args.output == tmp_path


def test_arguments_of_the_method_reach_it(tmp_path):
    found = optimizer(
        overrides=["model.hidden=16"], limit=20, val_limit=10, root=tmp_path, device="cpu", trials=5, workers=2
    )
    assert found.method == DatasetMethod(
        "mst_easy",
        "gin_small",
        budgets=(23, 46, 91, 182, 365, 729),
        overrides={"model.hidden": 16},
        limit=20,
        val_limit=10,
        root=tmp_path,
        device="cpu",
    )
    assert (found.args.trials, found.args.workers) == (5, 2)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"dataset": "mst_esy"}, UnknownDataset, "did you mean"),
        ({"dataset": "algoreas/*"}, ConfigError, "one dataset is tuned at a time"),
        ({"model": "gin_smal"}, UnknownModel, "did you mean 'gin_small'"),
        ({"space": "gimp"}, ConfigError, "unknown search space 'algoreas/gimp'"),
        ({"trails": 5}, ConfigError, "unknown key 'trails'"),
        ({"device": "cuda:99"}, ConfigError, "device 'cuda:99' asks for GPU 99"),
        ({"device": "gpu"}, ConfigError, "device 'gpu' does not exist"),
        ({"trials": 0}, ConfigError, "trials = 0 is refused"),
        ({"min_budget": 900}, ConfigError, "give 1 <= smallest <= largest"),
        ({"max_budget": "many"}, ConfigError, "max_budget = 'many' is refused"),
        ({"space": SPACE}, ConfigError, "the key 'min_budget' is missing"),
        ({"overrides": ["training.lr=0.001"]}, ConfigError, "training.lr is tuned and set to 0.001"),
        ({"overrides": ["training.steps=9"]}, ConfigError, "training.steps cannot be tuned"),
        (
            {"space": {"training.seed": {"type": "int", "range": [0, 9]}}, "min_budget": 3, "max_budget": 9},
            ConfigError,
            "training.seed cannot be tuned",
        ),
    ],
)
def test_mistakes_are_told_before_anything_is_written(settings, error, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=re.escape(words)):
        optimizer(settings.pop("dataset", "mst_easy"), settings.pop("model", "gin_small"), **settings)
    assert not list(tmp_path.iterdir())


def test_a_space_without_the_keys_of_the_model_is_refused_before_a_trial(tmp_path):
    space = {"lr": SPACE["training.lr"]}
    search = optimizer(space=space, min_budget=3, max_budget=9, output=tmp_path / "run", root=tmp_path)
    with pytest.raises(ConfigError, match=r"override 'lr'.*'training.lr'"):
        search.optimize()
    assert not list(tmp_path.rglob("*.h5"))


@pytest.mark.thorough
def test_the_search_ends_with_the_score_and_the_model_of_its_best_configuration(tmp_path):
    small = {"model.hidden": 16, "model.layers": 1, "training.batch_size": 16}
    settings = {"space": SPACE, "min_budget": 4, "max_budget": 12, "method": "hyperband", "trials": 6}
    settings |= {"overrides": small, "limit": 30, "root": tmp_path, "output": tmp_path / "run", "device": "cpu"}
    search = optimizer(**settings)
    best = search.optimize()
    assert best.score == pytest.approx(1 - best.cost) and len(best.trials) == 6
    run = search.method.run_config(best.config, 0)
    val = graphbench.Loader("mst_easy", root=tmp_path, limit=30).load(())
    whole = fit(run, val, tmp_path / "whole", device="cpu")
    assert whole.best()[1] == pytest.approx(evaluate_model(best.model, val.val, device="cpu").primary)
    promoted = [trial for trial in best.trials if trial.continued_from]
    assert promoted and all(trial.steps == trial.budget - trial.continued_from for trial in promoted)
    again = optimizer(**settings, workers=2).optimize()
    assert (again.config, again.score, again.trials) == (best.config, best.score, best.trials)
    with pytest.raises(ConfigError, match=r"what\.limit was 30, is now 20"):
        optimizer(**settings | {"limit": 20}).optimize()


@pytest.mark.slow
def test_trials_are_not_kept_where_their_scores_have_another_meaning(tmp_path, monkeypatch, caplog):
    settings = {"space": SPACE, "min_budget": 2, "max_budget": 2, "method": "random", "trials": 1, "device": "cpu"}
    settings |= {"overrides": {"model.hidden": 16, "model.layers": 1}, "limit": 8, "root": tmp_path}
    settings |= {"output": tmp_path / "run"}
    monkeypatch.setattr(DatasetMethod, "code", {"own/net.py": "1"})
    before = optimizer(**settings).optimize(report=False, refit=False).trials
    journal = tmp_path / "run" / "journal.jsonl"
    content = journal.read_text()
    with monkeypatch.context() as patch:
        found = identity.card_meaning
        patch.setattr(identity, "card_meaning", lambda card: {**found(card), "metrics": {"primary": "accuracy"}})
        with pytest.raises(ConfigError, match=r"what\.card\.metrics\.primary was 'f1', is now 'accuracy'"):
            optimizer(**settings).optimize(report=False, refit=False)
        old = [json.loads(line) for line in content.splitlines()]
        for event in old:
            if event["event"] == "opened":
                del event["settings"]["what"]["card"], event["settings"]["code"]
        (tmp_path / "old").mkdir()
        (tmp_path / "old" / "journal.jsonl").write_text("".join(json.dumps(event) + "\n" for event in old))
        again = optimizer(**settings | {"output": tmp_path / "old"}).optimize(report=False, refit=False)
        assert again.trials == before and caplog.text.count("could not be checked") == 1
    monkeypatch.setattr(DatasetMethod, "code", {"own/net.py": "2"})
    with pytest.raises(ConfigError, match=r"own/net\.py changed.*retry_failed=True"):
        optimizer(**settings).optimize(report=False, refit=False)
    assert journal.read_text() == content
    kept = optimizer(**settings, retry_failed=True).optimize(report=False, refit=False)
    assert kept.trials == before and "module own/net.py changed" in caplog.text


@pytest.mark.thorough
def test_code_may_be_mended_before_a_trial_has_succeeded(tmp_path):
    script = tmp_path / "script.py"
    words = f"""
import graphbench
def train(config, seed, budget):
    RESULT
settings = dict(space={{"x": {{"type": "float", "range": [0.0, 1.0]}}}}, min_budget=1, max_budget=1, trials=2,
                method="random", output={str(tmp_path / "run")!r})
if __name__ == "__main__":
    print(len(graphbench.Optimizer(settings, train).optimize(report=False).trials))
"""
    seen = []
    for result in ("raise ValueError('no')", "return config['x']", "return config['x'] + 0", "return config['x'] + 0"):
        script.write_text(words.replace("RESULT", result))
        done = run_python([script])
        seen.append((done.returncode, "train of the script changed" in done.stderr))
    assert seen == [(1, False), (0, False), (0, True), (0, False)]
