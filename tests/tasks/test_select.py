"""Algorithm selection as a kind of task: cards, losses, files, and whole runs of forests and graph networks."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

pytest.importorskip("sklearn")
pytest.importorskip("skops")

import graphbench
from graphbench.catalog.names import catalog
from graphbench.catalog.sections import Measured
from graphbench.cli.predictions import score_predictions
from graphbench.core.errors import CardError, ConfigError, EvaluationError, ResultError
from graphbench.domains.co import labellers
from graphbench.models.tabular.presolving import best_schedule, held_out_choices
from graphbench.records.files import read_record
from graphbench.records.record import RunRecord
from graphbench.reports.report import build_report
from graphbench.tasks.evaluator import Evaluator
from graphbench.tasks.registry import task_of
from graphbench.tasks.select import closed_gap
from graphbench.tasks.select.evaluator import SelectionEvaluator
from graphbench.training.evaluate import evaluate_model, evaluate_run, write_run_predictions
from graphbench.training.run import train
from graphbench.verification import check_card
from graphbench.verification.measuring import measure, update_measured

NAMES = ("sparse_cost", "dense_cost", "any_cost")
FOREST = "model: {{kind: selector, method: {method}, processor: random_forest, options: {{n_estimators: 20}}}}\n"
GIN = """
model: {processor: gin, layers: 2, hidden: 16, dropout: 0.0, degrees: true, pooling: mean, ignore: [density]}
training: {steps: 120, batch_size: 32, lr: 1.0e-2, warmup: 5, weight_decay: 0.0, eval_every: 40}
"""
SELECT_FEATURES = {
    **{name: ["output", "graph", "scalar"] for name in NAMES},
    "density": ["input", "graph", "scalar"],
    "feature_seconds": ["meta", "graph", "scalar"],
}
METHODS = ("log_costs", "costs", "pairwise_regression", "pairwise_classification", "multiclass")


def costs_of(split):
    return np.stack([split.flat.values[name][: len(split)] for name in NAMES], axis=1).astype(np.float64)


def training_costs(data):
    return dict(zip(NAMES, costs_of(data.train).mean(axis=0).tolist(), strict=True))


def run(data, text, folder, **changes):
    folder.mkdir(parents=True, exist_ok=True)
    model = folder / f"{folder.name}.yaml"
    model.write_text(text)
    return train(data=data, model=model, output=folder / "run", device="cpu", progress=False, **changes)


# ------------------------------------------------------------------------------------------------ cards


def test_algorithms_have_the_names_of_the_outputs_without_their_common_ending(select_card):
    assert task_of(select_card()).algorithms == ("sparse", "dense", "any")
    outputs = {name: ["output", "graph", "scalar"] for name in ("kissat_4", "cadical")}
    assert task_of(select_card(features=outputs)).algorithms == ("kissat_4", "cadical")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": {"a": ["output", "graph", "scalar"]}}, "two or more outputs"),
        (
            {"features": {"a": ["output", "graph", "scalar"], "b": ["output", "node", "scalar"]}},
            r"'b' is \[node, scalar\]",
        ),
        ({"features": {"a": ["output", "graph", "scalar(2)"], "b": ["output", "graph", "scalar"]}}, r"'a' is \[graph,"),
        ({"task": {"type": "select", "weights": {"any_cost": 2.0}}}, "leave task.weights out"),
        ({"task": {"type": "select", "options": {"cutoff": 5}}}, r"task\.options.*'cutoff'"),
        ({"task": {"type": "select", "options": {"overhead": "seconds"}}}, r"'seconds'.*dens"),
        ({"task": {"type": "select", "options": {"overhead": -1}}}, "overhead is -1; give a number from 0 on"),
        ({"task": {"type": "select", "options": {"overhead": [1]}}}, r"overhead is \[1\]"),
    ],
)
def test_cards_that_do_not_fit_are_refused(select_card, changes, message):
    with pytest.raises(CardError, match=message):
        task_of(select_card(**changes))


def test_metrics_that_score_no_choices_are_refused(select_card):
    card = select_card(metrics={"primary": "f1"})
    with pytest.raises(EvaluationError, match="'f1' cannot score the choice"):
        Evaluator(card)
    with pytest.raises(CardError, match="metrics: the metric 'f1' cannot score"):
        check_card(card)
    check_card(select_card())


def test_settings_that_do_not_fit_are_refused(select_card):
    for settings, message in (
        ({"cutoff": 1}, "cutoff"),
        ({"overhead": -1}, "overhead holds -1"),
        ({"train_costs": {"any_cost": 1.0}}, "give a mapping with the mean training cost of sparse_cost"),
    ):
        with pytest.raises(ConfigError, match=message):
            Evaluator(select_card(), **settings)
    with pytest.raises(ConfigError, match="surrogate"):
        task_of(select_card(), {"surrogate": {"beta": 1.0}})


# ------------------------------------------------------------------------------------------------ training split


def test_the_training_costs_are_those_given_else_of_the_card_else_of_the_data(select_card, select_data):
    data = select_data()
    expected = training_costs(data)
    task = task_of(data.card)
    assert task.facts == {}
    with pytest.raises(EvaluationError, match="training costs of portfolios/toy"):
        task.losses({}, None)
    task.read_training(data)
    assert task.facts == pytest.approx(expected)
    measured = Measured(version=1, training={name: k + 1.0 for k, name in enumerate(NAMES)})
    task = task_of(data.card.model_copy(update={"measured": measured}))
    task.read_training(data)
    assert task.facts == measured.training
    given = dict.fromkeys(NAMES, 2.0)
    assert task_of(task.card, {"train_costs": given}).facts == given
    root = data.train.path.parents[3]
    halved = {"pre_filter": lambda graph: graph.num_edges > 30, "root": root, "workers": 1, "progress": False}
    for change in ({}, {"pre_transform": lambda graph: graph}, {"transform": lambda graph: graph}):
        few = graphbench.Loader(data.card.id, **halved, **change).load()
        chosen = [i for i in range(160) if data.train[i].num_edges > 30]
        expected = costs_of(data.train)[chosen].mean(axis=0).tolist()
        assert 0 < len(chosen) < 160
        assert task.training_facts(few.train) == pytest.approx(dict(zip(NAMES, expected, strict=True)))
    others = Measured(version=1, training={"other_cost": 1.0})
    assert task_of(data.card.model_copy(update={"measured": others})).facts == {}


def test_the_public_evaluator_takes_them_from_the_measurements(select_data, select_root):
    data = select_data()
    path = update_measured(data.card, progress=False, root=select_root)
    stored = json.loads(path.read_text())
    assert stored["training"] == pytest.approx(training_costs(data), rel=1e-5)
    card = data.card.model_copy(update={"measured": Measured(**stored)})
    costs, choices = costs_of(data.test), np.arange(len(data.test)) % 3
    expected = closed_gap(costs, choices, costs_of(data.train))
    assert Evaluator(card).evaluate(costs, choices)["closed_gap"] == pytest.approx(expected, rel=1e-6)
    with pytest.raises(EvaluationError, match="closed_gap needs the mean"):
        Evaluator(data.card, root=select_root / "elsewhere").evaluate(costs, choices)
    assert Evaluator(data.card, root=select_root).evaluate(costs, choices)["closed_gap"] == pytest.approx(expected)


def test_trivial_selectors_and_the_virtual_best_are_measured(select_data, select_root):
    data = select_data()
    found = measure(data.card, progress=False, root=select_root)
    costs, known = costs_of(data.test), costs_of(data.train)
    single = int(known.mean(axis=0).argmin())
    floor, best = found.floor["test"], found.solvers["test"]["virtual_best"]
    assert set(floor) == {"single_best", "random"} and set(found.solvers["test"]) == {"virtual_best"}
    assert floor["single_best"]["par10"] == pytest.approx(costs[:, single].mean())
    assert floor["single_best"]["closed_gap"] == pytest.approx(0.0, abs=1e-9) and floor["random"]["closed_gap"] < 0
    assert best["closed_gap"] == pytest.approx(1.0) and best["regret"] == 0 and best["best_share"] == 1
    assert best["par10"] == pytest.approx(costs.min(axis=1).mean())


# ------------------------------------------------------------------------------------------------ loss


def test_the_loss_is_that_of_the_paper_in_units_of_the_mean_training_cost(select_data):
    data = select_data()
    task = task_of(data.card)
    task.read_training(data)
    batch = next(iter(data.test.batches(16)))
    outputs = {name: torch.randn(16, dtype=torch.float32) * 20 for name in NAMES}
    loss = task.losses(outputs, batch)["choice"]
    unit = np.mean(list(training_costs(data).values()))
    logits = -np.stack([outputs[name].numpy() for name in NAMES], axis=1) / unit
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    times = costs_of(data.test)[:16]
    expected = np.mean([(sum(chances[i] * times[i]) - min(times[i])) ** 2 for i in range(16)]) / unit**2
    assert float(loss) == pytest.approx(expected, rel=1e-5)
    assert task.loss_weights(batch) == {"choice": 16}
    np.testing.assert_allclose(task.predictions(outputs, batch).numpy(), logits, rtol=1e-6)
    certain = {name: torch.tensor(costs_of(data.test)[:16, k] * 1e3) for k, name in enumerate(NAMES)}
    assert float(task.losses(certain, batch)["choice"]) == pytest.approx(0.0, abs=1e-6)


# ------------------------------------------------------------------------------------------------ runs


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.thorough
def test_a_forest_is_trained_recorded_scored_again_and_reported(select_data, tmp_path, method):
    data = select_data()
    result = run(data, FOREST.format(method=method), tmp_path / method)
    score = result.scores["test"]
    assert score.primary_name == "closed_gap" and score["closed_gap"] > 0.8
    record = read_record(result.path / "record.json")
    assert "single best algorithm on the training split: any" in record.notes
    assert record == result.record and record.scores["test"] == pytest.approx(dict(score))
    assert evaluate_run(result.path, ("val", "test"), data=data, device="cpu") == result.scores
    logits = result.model(next(iter(data.test.batches(60))))
    choices = np.stack([logits[name].numpy() for name in NAMES], axis=1).argmin(axis=1)
    expected = closed_gap(costs_of(data.test), choices, costs_of(data.train))
    assert score["closed_gap"] == pytest.approx(expected)
    pages = build_report([record], tmp_path / "report")
    text = "".join(path.read_text() for path in pages if path.suffix == ".md")
    assert "closed_gap" in text and f"{score['closed_gap']:.4f}" in text


@pytest.mark.thorough
def test_a_graph_network_learns_to_choose(select_data, tmp_path):
    data = select_data()
    result = run(data, GIN, tmp_path / "gin", evaluate=("val", "test"))
    assert result.scores["test"]["closed_gap"] > 0.6
    losses = [value for _, value in result.record.curves["train_loss"]]
    assert losses[-1] < losses[0]
    assert evaluate_run(result.path, "test", data=data, device="cpu")["test"] == result.scores["test"]
    with pytest.raises(EvaluationError, match="unknown"):
        evaluate_model(result.model, data.test, device="cpu")
    known = {"train_costs": training_costs(data)}
    assert dict(evaluate_model(result.model, data.test, device="cpu", task_options=known)) == dict(
        result.scores["test"]
    )


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_outputs_on_the_card_does_not_matter(select_data, tmp_path, method):
    moved = dict(sorted(SELECT_FEATURES.items(), key=lambda item: item[0][::-1]))
    assert list(moved)[:3] != list(NAMES)
    text = FOREST.format(method=method)
    first = run(select_data(), text, tmp_path / "first", evaluate="test").scores["test"]
    again = run(select_data(features=moved), text, tmp_path / "again", evaluate="test").scores["test"]
    assert dict(again) == pytest.approx(dict(first), rel=1e-9)


@pytest.mark.parametrize("options", [{}, {"p": 1, "algorithm": "ball_tree"}, {"p": 3, "algorithm": "kd_tree"}])
def test_nearest_neighbours_are_read_again_from_the_folder(select_data, tmp_path, options):
    data = select_data()
    text = "model: {kind: selector, method: costs, processor: k_nearest}\n"
    result = run(data, text, tmp_path / "near", overrides={"model": {"options": options}}, evaluate="test")
    assert result.scores["test"]["closed_gap"] > 0.8
    assert evaluate_run(result.path, "test", data=data, device="cpu") == result.scores


def test_plain_tabular_models_predict_costs_of_which_the_lowest_is_chosen(select_data, tmp_path):
    text = "model: {kind: tabular, processor: random_forest, hops: 0, options: {n_estimators: 20}}\n"
    assert run(select_data(), text, tmp_path / "plain").scores["test"]["closed_gap"] > 0.8


def test_the_inputs_of_graphs_alone_can_be_read(select_data, tmp_path):
    text = FOREST.format(method="log_costs").replace("kind: selector", "kind: selector, columns: inputs")
    result = run(select_data(), text, tmp_path / "inputs")
    assert result.scores["test"]["closed_gap"] > 0.8
    assert {e[0].n_features_in_ for e in result.model.estimators.values()} == {1}
    features = {name: spec for name, spec in SELECT_FEATURES.items() if name != "density"}
    bare = select_data(features={**features, "density": ["meta", "graph", "scalar"]}, version=2)
    with pytest.raises(ConfigError, match="no input is located at graphs"):
        run(bare, text, tmp_path / "bare")


def test_overhead_counts_for_the_choices_of_every_model(select_data, tmp_path):
    text = FOREST.format(method="costs")
    free = run(select_data(), text, tmp_path / "free").scores["test"]
    named = select_data(task={"type": "select", "options": {"overhead": "feature_seconds"}})
    paid = run(named, text, tmp_path / "paid").scores["test"]
    assert paid["par10"] == pytest.approx(free["par10"] + 0.5) and paid["best_share"] == free["best_share"]
    costs = costs_of(named.test)
    single = costs[:, costs_of(named.train).mean(axis=0).argmin()].mean()
    assert paid["closed_gap"] == pytest.approx((single - paid["par10"]) / (single - costs.min(axis=1).mean()))
    assert paid["closed_gap"] < free["closed_gap"]
    own = run(select_data(), text, tmp_path / "own", overrides=["training.decoding.overhead=0.25"]).scores["test"]
    assert own["par10"] == pytest.approx(free["par10"] + 0.25)


def test_presolving_spares_the_overhead_and_costs_its_time_elsewhere(select_card):
    card = select_card()
    costs = np.array([[0.03, 9.0, 9.0], [5.0, 2.0, 9.0], [4.0, 8.0, 9.0], [0.05, 0.01, 9.0]])
    chosen = np.array([1, 1, 0, 1])  # after presolving, choices count for the second and the third instance alone
    options = {"train_costs": {"sparse_cost": 1.0, "dense_cost": 2.0, "any_cost": 3.0}, "overhead": 0.5}
    scored = SelectionEvaluator(card.outputs, also=("par10", "best_share"), presolving=0.05, **options)
    score = scored.evaluate(costs, chosen)
    assert score["par10"] == pytest.approx((0.03 + (2.0 + 0.5 + 0.05) + (4.0 + 0.5) + 0.05) / 4)
    assert score["best_share"] == 0.75
    with pytest.raises(EvaluationError, match=r"presolving=0\.05 runs the algorithm that is best on"):
        SelectionEvaluator(card.outputs, presolving=0.05)
    with pytest.raises(EvaluationError, match="presolving is -1; give a finite number from 0 on"):
        SelectionEvaluator(card.outputs, presolving=-1, **options)


def test_a_selector_is_scored_after_presolving_and_so_are_its_files(select_data, select_root, tmp_path):
    text = FOREST.format(method="costs")
    data = select_data(task={"type": "select", "options": {"overhead": "feature_seconds"}}, version=3)
    costs, best = costs_of(data.test), costs_of(data.train).mean(axis=0).argmin()
    limit = float(np.median(costs[:, best]))
    plain = run(data, text, tmp_path / "plain")
    result = run(data, text.replace("kind: selector", f"kind: selector, presolving: {limit}"), tmp_path / "presolved")
    options = {"root": select_root, "progress": False, "device": "cpu"}
    (path,) = write_run_predictions(result.path, tmp_path / "files", "test", **options)
    with np.load(path) as arrays:
        chosen = arrays["y_pred"].argmax(axis=1)
        assert arrays["presolving"].tolist() == [limit]
        np.savez(tmp_path / "one.npz", **{**dict(arrays), "presolving": limit})
    solved = costs[:, best] <= limit
    elsewhere = costs[np.arange(60), chosen] + 0.5 + np.where(chosen == best, 0.0, limit)
    expected = np.where(solved, costs[:, best], elsewhere).mean()
    assert result.scores["test"]["par10"] == pytest.approx(expected) != plain.scores["test"]["par10"]
    whole = {"limit": None, "root": select_root, "progress": False}
    found, _ = score_predictions("portfolios/toy", "test", path, **whole)
    assert dict(found["test"]) == dict(result.scores["test"])
    found, _ = score_predictions("portfolios/toy", "test", tmp_path / "one.npz", **whole)
    assert dict(found["test"]) == dict(result.scores["test"])
    np.savez(tmp_path / "two.npz", y_pred=chosen, presolving=np.array([1.0, 2.0]))
    with pytest.raises(EvaluationError, match=r"presolving is float64 \[2\]; give one number"):
        score_predictions("portfolios/toy", "test", tmp_path / "two.npz", **whole)


def test_the_best_schedule_is_no_dearer_than_any_other():
    random = np.random.default_rng(0)
    learned = 0
    for _ in range(40):
        costs = random.exponential(size=(30, 3)) * random.choice([0.1, 1.0, 10.0], (30, 3))
        costs[random.random((30, 3)) < 0.2] = 100.0  # failed
        choices, overhead = random.integers(0, 3, 30), random.exponential(size=30) * random.choice([0.0, 1.0])

        def mean(schedule, costs=costs, choices=choices, overhead=overhead):
            total = 0.0
            for cost, choice, paid in zip(costs, choices, overhead, strict=True):
                if schedule is not None and cost[schedule[0]] <= schedule[1]:
                    total += cost[schedule[0]]
                else:
                    total += paid + cost[choice] + (0.0 if schedule is None or choice == schedule[0] else schedule[1])
            return total / len(costs)

        best = best_schedule(costs, choices, overhead)
        learned += best is not None
        others = [None, *((k, t) for k in range(3) for t in costs[:, k] if t < 100.0)]
        assert mean(best) == pytest.approx(min(mean(other) for other in others))
    assert learned > 10


def test_held_out_choices_are_made_without_the_instance():
    def choose(fitted, chosen):
        assert not set(fitted) & set(chosen) and len(fitted) + len(chosen) == 23
        return chosen * 2

    assert held_out_choices(23, choose, 0).tolist() == [2 * row for row in range(23)]


def test_a_schedule_is_learned_on_the_training_split_and_scored(select_data, select_root, tmp_path):
    text = FOREST.format(method="costs").replace("kind: selector", "kind: selector, presolving: learned")
    data = select_data(task={"type": "select", "options": {"overhead": 5.0}}, version=4)
    result = run(data, text, tmp_path / "learned")
    name, seconds = result.model.schedule  # five seconds for a choice make a run before it worth its time
    assert f"learned presolving: {name.removesuffix('_cost')} for {seconds:.4g}" in result.record.notes
    options = {"root": select_root, "progress": False, "device": "cpu"}
    (path,) = write_run_predictions(result.path, tmp_path / "files", "test", **options)
    with np.load(path) as arrays:
        stored = dict(arrays)
    assert stored["presolving"].tolist() == [seconds] and stored["presolver"].tolist() == [name.removesuffix("_cost")]
    names = [f.name for f in data.card.outputs]
    costs, presolver = costs_of(data.test), names.index(name)
    choices = stored["y_pred"].argmax(axis=1)
    elsewhere = costs[np.arange(len(costs)), choices] + 5.0 + np.where(choices == presolver, 0.0, seconds)
    expected = np.where(costs[:, presolver] <= seconds, costs[:, presolver], elsewhere).mean()
    assert result.scores["test"]["par10"] == pytest.approx(expected)
    whole = {"limit": None, "root": select_root, "progress": False}
    assert dict(score_predictions("portfolios/toy", "test", path, **whole)[0]["test"]) == dict(result.scores["test"])
    again = evaluate_run(result.path, "test", **options)
    assert again["test"]["par10"] == result.scores["test"]["par10"]
    np.savez(tmp_path / "other.npz", **{**stored, "presolver": np.array(["nobody"])})
    with pytest.raises(EvaluationError, match="presolver is 'nobody'; give one of"):
        score_predictions("portfolios/toy", "test", tmp_path / "other.npz", **whole)
    with pytest.raises(ConfigError, match=r"'learned' on 8 training instances, which takes 10; give the"):
        run(data, text.replace("kind: selector", "kind: selector, most_rows: 8"), tmp_path / "few")


@pytest.mark.parametrize("options", [{}, {"overhead": 0.0}])
def test_a_learned_schedule_counts_the_overhead_of_the_run(select_data, tmp_path, options):
    text = FOREST.format(method="costs").replace("kind: selector", "kind: selector, presolving: learned")
    data = select_data(task={"type": "select", "options": options}, version=4)
    dear = run(data, text + "training: {task: {overhead: 5.0}}\n", tmp_path / "dear").model.schedule
    on_card = select_data(task={"type": "select", "options": {"overhead": 5.0}}, version=4)
    assert dear == run(on_card, text, tmp_path / "card").model.schedule
    assert dear != run(data, text, tmp_path / "free").model.schedule


# ------------------------------------------------------------------------------------------------ files


def test_predictions_are_written_and_read_again(select_data, select_root, tmp_path):
    data = select_data()
    result = run(data, FOREST.format(method="multiclass"), tmp_path / "forest")
    options = {"root": select_root, "progress": False, "device": "cpu"}
    (path,) = write_run_predictions(result.path, tmp_path / "files", "test", **options)
    written = np.load(path)["y_pred"]
    assert written.shape == (60, 3) and written.dtype == np.float32
    whole = {"limit": None, "root": select_root, "progress": False}
    found, _ = score_predictions("portfolios/toy", "test", path, **whole)
    assert dict(found["test"]) == dict(result.scores["test"])
    choices = {"choices.npy": written.argmax(axis=1)}
    costs = {"costs.npz": {name: -written[:, k] for k, name in enumerate(NAMES)}}
    for name, arrays in {**choices, **costs}.items():
        (np.savez if name.endswith("z") else np.save)(
            tmp_path / name, **(arrays if isinstance(arrays, dict) else {"arr": arrays})
        )
        found, _ = score_predictions("portfolios/toy", "test", tmp_path / name, **whole)
        assert dict(found["test"]) == dict(result.scores["test"]), name
    np.save(tmp_path / "short.npy", written[:-1])
    with pytest.raises(EvaluationError, match=r"59 rows of y_pred.*60 instances"):
        score_predictions("portfolios/toy", "test", tmp_path / "short.npy", **whole)
    np.savez(tmp_path / "part.npz", any_cost=written[:, 0])
    with pytest.raises(EvaluationError, match="array 'sparse_cost', 'dense_cost'"):
        score_predictions("portfolios/toy", "test", tmp_path / "part.npz", **whole)
    np.save(tmp_path / "nan.npy", np.full((60, 3), np.nan))
    with pytest.raises(EvaluationError, match="y_pred holds nan at row 0, column 0"):
        score_predictions("portfolios/toy", "test", tmp_path / "nan.npy", **whole)


def test_files_say_which_inputs_a_selector_pays_for(select_data, select_root, tmp_path, caplog):
    data = select_data(task={"type": "select", "options": {"overhead": {"density": "feature_seconds"}}}, version=3)
    options = {"root": select_root, "progress": False, "device": "cpu"}
    whole = {"limit": None, "root": select_root, "progress": False}
    scores = {}
    for name, text in (
        ("reads", FOREST.format(method="multiclass")),
        ("ignores", GIN.replace("steps: 120", "steps: 10")),
    ):
        result = run(data, text, tmp_path / name)
        (path,) = write_run_predictions(result.path, tmp_path / "files" / name, "test", **options)
        assert np.load(path)["reads"].tolist() == (["density"] if name == "reads" else [])
        found, _ = score_predictions("portfolios/toy", "test", path, **whole)
        scores[name] = dict(found["test"])
        assert scores[name] == pytest.approx(dict(result.scores["test"]))
    assert not caplog.records or all("names no reads" not in record.message for record in caplog.records)
    logits = np.load(path)["y_pred"]
    np.save(tmp_path / "silent.npy", logits)
    found, _ = score_predictions("portfolios/toy", "test", tmp_path / "silent.npy", **whole)
    assert "names no reads of arrays, so each choice pays for density" in caplog.text
    assert dict(found["test"])["par10"] == pytest.approx(scores["ignores"]["par10"] + 0.5)
    np.savez(tmp_path / "wrong.npz", y_pred=logits, reads=np.array(["dnsity"]))
    with pytest.raises(EvaluationError, match=r"'dnsity'.*density"):
        score_predictions("portfolios/toy", "test", tmp_path / "wrong.npz", **whole)


def test_choices_may_be_names_and_costs_taken_for_scores_are_noted(select_data, select_root, tmp_path, caplog):
    data = select_data()
    costs = costs_of(data.test)
    whole = {"limit": None, "root": select_root, "progress": False}
    names = task_of(data.card).algorithms
    (tmp_path / "test.txt").write_text("".join(f"{names[k]}\n" for k in costs.argmin(axis=1)))
    found, _ = score_predictions("portfolios/toy", "test", tmp_path / "test.txt", **whole)
    assert found["test"]["closed_gap"] == pytest.approx(1.0)
    (tmp_path / "bad.txt").write_text("sparse\nspars\n" * 30)
    with pytest.raises(EvaluationError, match=r"bad\.txt, line 2: 'spars'.*sparse"):
        score_predictions("portfolios/toy", "test", tmp_path / "bad.txt", **whole)
    np.save(tmp_path / "costs.npy", costs + 1)
    score_predictions("portfolios/toy", "test", tmp_path / "costs.npy", **whole)
    assert "they are read as scores, of which the highest is chosen" in caplog.text


def test_evaluators_take_graphs_and_stream(select_data):
    data = select_data()
    evaluator = Evaluator(data.card, train_costs=training_costs(data), expected_graphs=60)
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(60, 3))
    first = 0
    for batch in data.test.batches(7):
        evaluator.update(batch, scores[first : first + batch.num_graphs])
        first += batch.num_graphs
    whole = evaluator.evaluate(list(data.test), scores)
    assert dict(evaluator.compute()) == pytest.approx(dict(whole))
    assert dict(evaluator.evaluate(costs_of(data.test), scores)) == pytest.approx(dict(whole))
    with pytest.raises(EvaluationError, match=r"7 graphs.*60 are expected: 53 missing"):
        evaluator.evaluate(next(iter(data.test.batches(7))), scores[:7])
    assert catalog().card("portfolios/toy") == data.card


# ------------------------------------------------------------------------------------------------ labels


def test_costs_may_be_labels_and_graphs_without_one_do_not_count(make_labelled, tmp_path, monkeypatch):
    """Costs that a labeller computes, which fails on some graphs: facts, trivial scores and runs leave these out."""
    real = labellers.LABELLERS["mis"]

    def label(effort, number, graph):
        if graph.num_nodes[0] == 9:
            raise TimeoutError
        return real.label(effort, number, graph)

    monkeypatch.setattr(labellers, "LABELLERS", {**labellers.LABELLERS, "mis": replace(real, label=label)})
    pick = {
        **{"title": "Pick", "summary": "Which.", "type": "select", "labels": "co.mis"},
        **{"outputs": ["mis_value", "mis_bound"], "metrics": {"primary": "par10", "also": ["closed_gap"]}},
    }
    card = make_labelled(tasks={"pick": pick})
    monkeypatch.setitem(catalog().cards, card.id, card)
    data = graphbench.Loader("co/toy:pick", root=tmp_path, workers=1).load()
    measured = measure(card, progress=False, root=tmp_path).tasks["pick"]
    rows = np.stack([data.train.flat.values[name][:40] for name in pick["outputs"]], axis=1).astype(float)
    known = data.train.flat.values["mis_failed"][:40] == 0
    assert 0 < known.sum() < 40
    assert measured.training == pytest.approx(dict(zip(pick["outputs"], rows[known].mean(axis=0), strict=True)))
    assert measured.floor["test"]["single_best"]["closed_gap"] == 0
    filtered = {"pre_filter": lambda graph: graph.mis_failed.item() == 0}
    data = graphbench.Loader("co/toy:pick", root=tmp_path, workers=1, **filtered).load()
    text = FOREST.format(method="log_costs")
    result = run(data, text, tmp_path / "forest")
    assert result.scores["test"]["par10"] == pytest.approx(measured.floor["test"]["single_best"]["par10"])


def test_records_are_of_the_instances_that_were_chosen_for(select_data):
    data = select_data()
    evaluator = Evaluator(data.card.id, train_costs=training_costs(data))
    for batch in [*data.test.batches(30, shuffle=True)][:1] * 2:
        evaluator.update(batch, np.zeros(batch.num_graphs, int))
    score = evaluator.compute()
    assert score.graphs == len(data.test)
    with pytest.raises(ResultError, match="2 times"):
        RunRecord.from_scores({"test": data.test}, {"test": score}, model="first")
    choices = np.zeros(len(data.test), int)
    score = evaluator.evaluate(next(iter(data.test.batches(len(choices)))), choices)
    assert RunRecord.from_scores({"test": data.test}, {"test": score}, model="first").graphs_scored == {"test": 60}
