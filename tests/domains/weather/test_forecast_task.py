"""The kind of task ``forecast``: loss, scores, trivial predictors and files, against formulas written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import graphbench
from graphbench.catalog.names import catalog
from graphbench.core.errors import CardError, EvaluationError
from graphbench.domains.weather import ATMOSPHERE, CHANNELS, LEVELS, SURFACE, grid_latitudes
from graphbench.domains.weather.times import months
from graphbench.loader import Loader
from graphbench.models.build import ModelConfig, build_model
from graphbench.models.encoders import ScalarEncoder
from graphbench.records.published import published
from graphbench.tasks.forecast import weather_scores
from graphbench.tasks.forecast.climatology import climatology_of
from graphbench.tasks.forecast.linear_baseline import fit_linear_forecast
from graphbench.tasks.registry import task_of
from graphbench.training.evaluate import evaluate_run
from graphbench.training.run import train

POINTS, NODES = 512, 512 + 162


@pytest.fixture
def data(load):
    return load()


def total_of_variables(errors):
    """Return the sum over five channels at the surface and six groups of 13 levels of their mean squared errors."""
    squares = (errors**2).mean(axis=(0, 1))
    return squares[:5].sum() + squares[5:].reshape(6, 13).mean(axis=1).sum()


def test_samples_have_grid_and_mesh(data):
    graph = data.train[0]
    assert graph.num_nodes == NODES
    assert graph.grid.sum() == POINTS and graph.grid[:POINTS].all()
    assert graph.x.shape == (NODES, 83 + 1 + 3)
    assert graph.y.shape == (NODES, 83)
    senders, receivers = graph.edge_index
    up, down = graph.relation == 1, graph.relation == 2
    assert (senders[up] < POINTS).all() and (receivers[up] >= POINTS).all()
    assert (senders[down] >= POINTS).all() and (receivers[down] < POINTS).all()
    assert (graph.edge_index[:, graph.relation == 0] >= POINTS).all()
    assert torch.bincount(receivers[down], minlength=POINTS)[:POINTS].unique().tolist() == [3]


def test_the_loss_is_that_of_section_3_4(task, data, states):
    batch = next(iter(data.train.batches(3)))
    torch.manual_seed(0)
    predicted = torch.randn(3 * NODES, 83) * 0.1
    value = task.losses({"change": predicted}, batch)["change"].item()
    before, later = states(data.train)[:7], states(data.train)[2:9]
    deviation = (later - before).std(axis=(0, 1))
    cosines = np.cos(np.deg2rad(grid_latitudes(16)))
    total = 0.0
    for d in range(3):
        guess = predicted.reshape(3, NODES, 83)[d, :POINTS].double().numpy()
        for c, channel in enumerate(CHANNELS):
            level = int(channel.rsplit("_", 1)[1]) if c >= 5 else None
            weight = level / np.mean(LEVELS) if level else 1.0 if c == 0 else 0.1
            error = (guess[:, c] - (later - before)[d, :, c]) / deviation[c]
            total += weight * float((np.tile(cosines / cosines.mean(), 32) * error**2).sum())
    assert value == pytest.approx(total / (3 * POINTS * 83), rel=1e-3)


def test_losses_of_parts_add_up(task, data):
    batch = data.train.make_batch(np.arange(5))
    parts = [data.train.make_batch(np.arange(3)), data.train.make_batch(np.arange(3, 5))]
    whole = task.losses({"change": torch.zeros(5 * NODES, 83)}, batch)["change"]
    own = [task.losses({"change": torch.zeros(p.num_nodes, 83)}, p)["change"] for p in parts]
    weights = [task.loss_weights(p)["change"] for p in parts]
    joined = sum(w * v for w, v in zip(weights, own, strict=True)) / sum(weights)
    torch.testing.assert_close(joined, whole)


def test_mesh_nodes_do_not_count(task, data):
    batch = data.train.make_batch(np.arange(2))
    predicted = torch.zeros(2, NODES, 83)
    before = task.losses({"change": predicted.flatten(0, 1)}, batch)["change"]
    predicted[:, POINTS:] = 1e6
    torch.testing.assert_close(task.losses({"change": predicted.flatten(0, 1)}, batch)["change"], before)
    assert task.predictions({"change": predicted.flatten(0, 1)}, batch)["change"].abs().max() == 0


def test_models_standardise_by_the_states_of_grid_points(task, data, states):
    """Statistics of inputs and targets are NumPy's over the stored states of the samples, without the mesh's zeros."""
    batch = task.normalisation_batch(data.train)
    model = build_model(ModelConfig(processor="gin", layers=1, hidden=8), data.card.features, directed=True)
    model.fit_normalisation(batch)
    frames = states(data.train)
    inputs, targets = frames[:7].reshape(-1, 83), (frames[2:9] - frames[:7]).reshape(-1, 83)
    (encoder,) = (e for e in model.encoder.modules() if isinstance(e, ScalarEncoder) and e.feature.name == "state")
    (decoder,) = model.decoders
    for scale, values in ((encoder.scale, inputs), (decoder.scale, targets)):
        np.testing.assert_allclose(scale.mean, values.mean(axis=0), rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(scale.std, values.std(axis=0), rtol=1e-4)
    full = data.train.make_batch(np.arange(7))
    assert batch.state.shape == (7 * POINTS, 83) and full.state.shape == (7 * NODES, 83)
    mesh = encoder.scale.standardise(full.state.reshape(7, NODES, 83)[:, POINTS:])
    assert mesh.abs().max() < 10  # and the constant of mesh nodes is no outlier


def test_scores_are_those_of_weather_scores(task, data, states):
    evaluator = task.evaluator(expected_graphs=2)
    (batch,) = data.test.batches(8)
    guess = torch.from_numpy(np.random.default_rng(0).standard_normal((2, POINTS, 83)).astype(np.float32))
    score = evaluator.evaluate(batch, {"change": guess})
    frames = states(data.test)
    truth, forecast = frames[2:4], frames[:2] + guess.numpy()
    usual = np.broadcast_to(states(data.train).mean(axis=0), truth.shape)  # all training states are of one month
    sums = evaluator.start()
    evaluator.add(sums, batch, guess)
    full = [np.pad(a, ((0, 0), (0, 0), (0, 0))) for a in (truth, forecast, usual)]
    expected = weather_scores(*(_by_variable(a) for a in full))
    assert score.primary_name == "mse"
    assert score["mse"] == pytest.approx(total_of_variables(forecast - truth), rel=1e-4)
    by_variable = weather_scores(truth, forecast, latitudes=grid_latitudes(16))["mse"]
    assert score["mse"] == pytest.approx(sum(np.mean(levels) for levels in by_variable.values()), rel=1e-4)
    assert score["mse"] == pytest.approx(sum(score[f"mse_{variable}"] for variable in by_variable), rel=1e-6)
    for metric in ("mse", "rmse", "bias", "acc"):
        for level in (500, 850):
            found = score[f"{metric}_geopotential_{level}"]
            assert found == pytest.approx(expected[metric]["geopotential"][LEVELS.index(level)], rel=1e-3, abs=1e-4)
        assert score[f"{metric}_2m_temperature"] == pytest.approx(
            expected[metric]["2m_temperature"], rel=1e-3, abs=1e-5
        )
    assert score["mse_temperature"] == pytest.approx(expected["mse"]["temperature"].mean(), rel=1e-4)
    persistence = ((truth - frames[:2]) ** 2).mean(axis=(0, 1))
    assert score["relative_mse"] == pytest.approx(
        (((forecast - truth) ** 2).mean(axis=(0, 1)) / persistence).mean(), rel=1e-3
    )


def test_the_total_of_table_19_is_that_of_its_variables():
    """The paper's rows of GT: its "All variables" is the sum over variables, up to rounding, and no other mean."""
    of_gt = {score.metric: score.value for score in published("weather/era5_64x32") if score.model == "gt"}
    parts = [of_gt[f"mse_{variable}"] for variable in (*SURFACE, *ATMOSPHERE)]
    assert of_gt["mse"] == pytest.approx(sum(parts), abs=5)


def _by_variable(array):
    cube = array.reshape(len(array), 32, 16, 83)
    at = {name: c for c, name in enumerate(CHANNELS)}
    return {
        "2m_temperature": cube[..., 0],
        "temperature": np.stack([cube[..., at[f"temperature_{n}"]] for n in LEVELS], axis=1),
        "geopotential": np.stack([cube[..., at[f"geopotential_{n}"]] for n in LEVELS], axis=1),
    }


def test_the_public_evaluator_finds_the_climatology_of_the_training_split(task, data, tmp_path, monkeypatch):
    """Today it has none, so that acc is silently left out."""
    (batch,) = data.test.batches(16)
    guess = torch.randn(len(data.test), POINTS, 83)
    expected = task.evaluator().evaluate(batch, guess)
    root = tmp_path / "root"
    found = graphbench.Evaluator(data.card.id, root=root).evaluate(batch, guess)
    assert found["acc"] == pytest.approx(expected["acc"], rel=1e-9) and found.to_dict() == expected.to_dict()
    monkeypatch.setenv("GRAPHBENCH_ROOT", str(root))
    assert graphbench.Evaluator(data.card).evaluate(batch, guess)["acc"] == found["acc"]


def test_without_the_training_split_acc_says_what_to_do(data, tmp_path):
    (batch,) = data.test.batches(16)
    guess = torch.randn(len(data.test), POINTS, 83)
    score = graphbench.Evaluator(data.card, root=tmp_path / "elsewhere").evaluate(batch, guess)
    assert score.primary > 0 and not (tmp_path / "elsewhere").exists()
    assert f"graphbench generate {data.card.id} --splits train" in score.undefined["acc"]
    with pytest.raises(KeyError, match="graphbench generate"):
        score["acc"]
    arrays = graphbench.Evaluator(data.card, root=tmp_path / "root").evaluate(
        batch.change.reshape(-1, NODES, 83)[:, :POINTS], guess
    )
    assert "pass samples" in arrays.undefined["acc"]


def test_batches_of_updates_give_the_same_score(task, data):
    whole, parts = task.evaluator(), task.evaluator()
    (batch,) = data.train.batches(16)
    guess = torch.randn(7, POINTS, 83)
    score = whole.evaluate(batch, guess)
    for first in (0, 3, 6):
        own = data.train.make_batch(np.arange(first, min(first + 3, 7)))
        parts.update(own, guess[first : first + 3].flatten(0, 1))
    for name, value in score.items():
        assert parts.compute()[name] == pytest.approx(value, rel=1e-6, abs=1e-9), name


def test_floors_by_hand(task, data, states):
    floors = task.floors(data.train.samples, data.test.samples) | task.solvers(data.test.samples)
    frames, train = states(data.test), states(data.train)
    truth = frames[2:]
    for name, forecast in (
        ("persistence", frames[:-2]),
        ("persistence_6h", frames[1:-1]),
        ("climatology", np.broadcast_to(train.mean(axis=0), truth.shape)),
    ):
        assert floors[name]["mse"] == pytest.approx(total_of_variables(forecast - truth), rel=1e-3)
    assert floors["persistence"]["relative_mse"] == pytest.approx(1, rel=1e-5)
    assert floors["persistence_6h"]["mse"] < floors["persistence"]["mse"]
    assert floors["persistence"]["acc"] > 0.5


def test_linear_regression_is_that_of_numpy():
    """Fitted part by part, the coefficients and forecasts are those of ``numpy.linalg.lstsq`` for every latitude."""
    random = np.random.default_rng(5)
    units = np.array([1.0, 1e4, 1e-6])
    now, later = (random.standard_normal((7, 12 * 5, 3)) * units for _ in range(2))
    later += 0.6 * now
    fitted = fit_linear_forecast([(now[:3], later[:3]), (now[3:], later[3:])], 5)
    cube, target = (a.reshape(7, 12, 5, 3) for a in (now, later))
    found = fitted.later(now).reshape(cube.shape)
    for latitude in range(5):
        for c in range(3):
            rows = [
                [1.0, cube[t, o, latitude, c], cube[t, o - 1, latitude, c], cube[t, (o + 1) % 12, latitude, c]]
                for t in range(7)
                for o in range(12)
            ]
            scale = np.array([1.0, *[units[c]] * 3])
            expected, *_ = np.linalg.lstsq(np.array(rows) / scale, target[:, :, latitude, c].ravel(), rcond=None)
            np.testing.assert_allclose(fitted.coefficients[latitude, c], expected / scale, rtol=1e-8)
            np.testing.assert_allclose(found[:, :, latitude, c].ravel(), np.array(rows) @ (expected / scale))


def test_linear_regression_of_what_never_differs_is_finite():
    now = np.zeros((4, 6, 2))
    now[..., 1] = np.arange(4.0)[:, None]  # one number for a whole circle of latitude: three equal columns
    fitted = fit_linear_forecast([(now, now + 3)], 2)
    np.testing.assert_allclose(fitted.later(now), now + 3, atol=1e-9)


def test_the_floor_of_linear_regression_reads_the_training_split_alone(task, data, states):
    floors = task.floors(data.train.samples, data.test.samples)
    train, test = states(data.train), states(data.test)
    usual = train.mean(axis=0)
    fitted = fit_linear_forecast([(train[:-2] - usual, train[2:] - usual)], 16)
    forecast = usual + fitted.later(test[:-2] - usual)
    assert floors["linear_regression"]["mse"] == pytest.approx(total_of_variables(forecast - test[2:]), rel=1e-2)


def test_predictions_of_files(task, data, tmp_path):
    (batch,) = data.test.batches(4)
    guess = task.predictions({"change": torch.randn(2 * NODES, 83)}, batch)
    path = task.write_predictions(tmp_path / "test", [guess])
    assert task.score_file(path, data.test)["test"]["mse"] == pytest.approx(
        task.evaluator().evaluate(batch, guess)["mse"]
    )
    np.save(tmp_path / "short.npy", np.zeros((1, POINTS, 83)))
    with pytest.raises(EvaluationError, match="give"):
        task.score_file(tmp_path / "short.npy", data.test)
    np.save(tmp_path / "wide.npy", np.zeros((2, POINTS, 82)))
    with pytest.raises(EvaluationError, match=r"write \[times, points, 83\]"):
        task.score_file(tmp_path / "wide.npy", data.test)
    wrong = np.zeros((2, POINTS, 83))
    wrong[1, 7, 3] = np.inf
    np.save(tmp_path / "wrong.npy", wrong)
    with pytest.raises(EvaluationError, match=r"inf at time 1.*point 7, channel mean_sea_level_pressure"):
        task.score_file(tmp_path / "wrong.npy", data.test)


def test_without_training_there_is_no_anomaly_correlation(data):
    evaluator = task_of(data.card).evaluator()
    (batch,) = data.test.batches(4)
    score = evaluator.evaluate(batch, torch.zeros(2, POINTS, 83))
    assert "acc" not in score and "climatology" in score.undefined["acc"]
    arrays = evaluator.evaluate(batch.change.reshape(2, NODES, 83)[:, :POINTS], torch.zeros(2, POINTS, 83))
    assert arrays["mse"] == pytest.approx(score["mse"])


def learned_from(card, root):
    """Return all that is learned from the training split, as arrays, and the splits."""
    data = Loader(card.id, root=root, progress=False, workers=1).load()
    task = task_of(card)
    task.read_training(data)
    batch, train = task.normalisation_batch(data.train), data.train
    linear = fit_linear_forecast(task._anomalies(train.samples, task.climatology), 16)
    model = build_model(ModelConfig(processor="gin", layers=1, hidden=8), card.features, directed=True)
    model.fit_normalisation(batch)
    scales = [buffer for name, buffer in model.named_buffers() if name.endswith((".mean", ".std"))]
    known = [np.array([*task.facts.values()]), task.climatology.means, linear.coefficients, batch.state, batch.change]
    return [np.asarray(array) for array in (*known, *scales)], data


@pytest.mark.parametrize("cut", [3, 5, 8, 9, 11, 14, 16])
def test_nothing_of_validation_or_of_the_future_enters(small, recorded, tmp_path, monkeypatch, cut):
    """Other states from a time on change nothing before: no sample, and nothing learned from earlier states."""
    frames, _ = recorded
    card = small()
    monkeypatch.setitem(catalog().cards, card.id, card)
    scale = np.array(card.packed["state"].scale)
    learned, before = learned_from(card, tmp_path / "a")
    kept = frames.copy()
    try:
        frames[cut:] += np.random.default_rng(cut).standard_normal(frames[cut:].shape) * scale
        again, after = learned_from(card, tmp_path / "b")
    finally:
        frames[...] = kept
    assert all(np.array_equal(old, new) for old, new in zip(learned, again, strict=True)) == (cut >= 9)
    for name, first in (("train", 0), ("val", 9), ("test", 13)):
        for i, (old, new) in enumerate(zip(before[name], after[name], strict=True)):
            assert torch.equal(old.state, new.state) == (first + i < cut)
            assert torch.equal(old.change, new.change) == (first + i + 2 < cut)
            assert torch.equal(old.clock, new.clock)


def test_climatology_by_month_and_time_of_day():
    hours = np.array([0, 6, 24, 31 * 24, 31 * 24 + 6])
    fields = np.arange(5.0)[:, None, None] * np.ones((5, 2, 3))
    plain = climatology_of([(hours[:2], fields[:2]), (hours[2:], fields[2:])], diurnal=False, months=months)
    assert plain.at(np.array([12, 31 * 24, 200 * 24]))[:, 0, 0].tolist() == [1, 3.5, 2]  # July has the mean of all
    fine = climatology_of([(hours, fields)], diurnal=True, months=months)
    assert fine.at(np.array([48, 54, 60, 31 * 24]))[:, 1, 2].tolist() == [1, 1, 2, 3]


def test_cards_that_do_not_fit_are_refused(small):
    for changes, message in (
        ({"task": {"type": "forecast", "options": {"latitude": 16}}}, "did you mean 'latitudes'"),
        ({"task": {"type": "forecast", "options": {"time": "hour"}}}, "names 'hour'"),
    ):
        with pytest.raises(CardError, match=message):
            task_of(small(**changes))
    plain = catalog().cards["circuits/converters_5"].with_task("ratio")
    with pytest.raises(CardError, match="needs series"):
        task_of(plain.model_copy(update={"task": plain.task.model_copy(update={"type": "forecast"})}))


MODEL = """
model: {processor: gin, layers: 1, hidden: 8, dropout: 0.0, activation: relu}
training: {steps: 3, batch_size: 2, lr: 1.0e-3, warmup: 1, eval_every: 3}
"""


def test_a_model_of_the_house_trains_on_it(data, tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(MODEL)
    result = train(data=data, model=path, output=tmp_path / "run", progress=False, evaluate="test")
    score = result.record.scores["test"]
    assert math.isfinite(score["mse"]) and math.isfinite(score["acc"])
    again = evaluate_run(tmp_path / "run", ["test"], data=data, progress=False)["test"]
    assert again["mse"] == pytest.approx(score["mse"])


@pytest.mark.parametrize("model", ["gin_small", "gt_small", "interaction_small", "resnet_small"])
@pytest.mark.thorough
def test_models_train_under_bf16(data, model, tmp_path):
    small = {"model": {"hidden": 16}, "training": {"batch_size": 2, "precision": "bf16"}}
    result = train(
        data=data, model=model, steps=1, output=tmp_path / "run", overrides=small, progress=False, evaluate="test"
    )
    assert math.isfinite(result.record.scores["test"]["mse"])
