from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import graphbench
from graphbench.catalog import resources
from graphbench.core.errors import ConfigError, UnknownModel
from graphbench.training.config import fingerprint, list_configs, load_config, models_for, parse_overrides
from graphbench.training.settings import TrainingConfig

CARD = graphbench.card("algoreas/mst_easy")
FILE = {
    "model": {"processor": "gin", "layers": 6, "hidden": 32, "positional": {"type": "rwse", "k": 16, "hidden": 64}},
    "training": {"steps": 11880, "batch_size": 256, "lr": 1e-4, "warmup": 1000},
    "tasks": {"mst": {"model": {"positional": {"type": "lpe", "k": 32}}, "training": {"lr": 3e-4}}},
    "parameters": {"mst": 2.68e6},
}


@pytest.fixture
def baselines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("algoreas/gin", "algoreas/gt", "published/graphbench", "results/old"):
        path = tmp_path / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(yaml.safe_dump(FILE))
    monkeypatch.setattr(resources, "data_dir", lambda name: tmp_path)
    return tmp_path


def test_only_model_configurations_are_listed(baselines):
    assert list_configs() == ["algoreas/gin", "algoreas/gt"]
    assert list_configs("clrs") == []


def test_family_overrides_file_and_user_overrides_family(baselines):
    plain = load_config("algoreas/bridges_easy", "gin", family="bridges")
    assert (plain.training.lr, plain.model.positional.type, plain.model.positional.k) == (1e-4, "rwse", 16)
    tuned = load_config("algoreas/mst_easy", "gin", family="mst")
    assert (tuned.training.lr, tuned.model.positional.type, tuned.model.positional.k) == (3e-4, "lpe", 32)
    assert tuned.model.positional.hidden == 64
    own = load_config("algoreas/mst_easy", "gin", family="mst", overrides=["training.lr=5e-4", "model.positional.k=8"])
    assert (own.training.lr, own.model.positional.k, own.model.positional.type) == (5e-4, 8, "lpe")


def test_overrides_are_the_same_in_every_form():
    nested = {"training": {"lr": 0.1, "betas": [0.8, 0.9]}, "model": {"positional": {"k": 3}}}
    assert parse_overrides(["training.lr=0.1", "training.betas=[0.8, 0.9]", "model.positional.k=3"]) == nested
    assert parse_overrides({"training.lr": 0.1, "training": {"betas": [0.8, 0.9]}, "model.positional.k": 3}) == nested
    assert parse_overrides(nested) == nested
    assert parse_overrides(None) == {}


def test_small_budget_keeps_the_share_of_the_warmup(baselines):
    assert load_config("algoreas/mst_easy", "gin").training.warmup == 1000
    assert load_config("algoreas/mst_easy", "gin", steps=1188).training.warmup == 100
    assert load_config("algoreas/mst_easy", "gin", steps=20).training.warmup == 1
    chosen = load_config("algoreas/mst_easy", "gin", steps=1188, overrides=["training.warmup=7"])
    assert chosen.training.warmup == 7
    continued = load_config("algoreas/mst_easy", "gin", steps=100, overrides=["training.schedule_steps=1188"])
    assert continued.training.warmup == 100


def test_small_runs_know_that_they_are_small(baselines):
    assert not load_config("algoreas/mst_easy", "gin").is_small
    assert load_config("algoreas/mst_easy", "gin", steps=11879).is_small
    assert load_config("algoreas/mst_easy", "gin", limit=100).is_small


def test_datasets_trained_together_need_the_files_budget_each(baselines):
    def together(steps):
        return load_config("algoreas/mst_easy", "gin", steps=steps).model_copy(update={"datasets": ("a/b", "a/c")})

    assert together(11880).is_small and together(2 * 11880 - 1).is_small
    assert not together(2 * 11880).is_small


@pytest.mark.parametrize(
    ("overrides", "keys"),
    [
        (["model.hidden=4"], ("model.hidden",)),
        (["training.lr=1e-9", "training.batch_size=1"], ("training.batch_size", "training.lr")),
        (["training.warmup=7"], ("training.warmup",)),
        (["training.schedule_steps=20000"], ("training.schedule_steps",)),
        ({"model": {"positional": {"type": "lpe", "k": 16}}}, ("model.positional.type",)),
        (["training.decoding.conditional=true"], ("training.task.decoding.conditional",)),
    ],
)
def test_overrides_make_a_configuration_of_ones_own(baselines, overrides, keys):
    config = load_config("algoreas/mst_easy", "gin", overrides=overrides)
    assert config.overridden == keys
    assert config.is_small
    assert config.to_dict()["overridden"] == list(config.overridden)


@pytest.mark.parametrize(
    "overrides",
    [
        None,
        ["training.seed=3", "training.steps=20000", "training.precision=fp32", "training.compile=true"],
        ["training.eval_every=9", "training.log_every=9", "training.checkpoint_every=9", "training.eval_batch_size=9"],
        ["model.hidden=32", "training.lr=1e-4", "training.betas=[0.9, 0.999]", "training.schedule_steps=11880"],
    ],
)
def test_overrides_without_influence_leave_the_files_configuration(baselines, overrides):
    config = load_config("algoreas/mst_easy", "gin", overrides=overrides)
    assert config.overridden == () and not config.is_small
    assert config.to_dict().keys().isdisjoint({"overridden", "datasets"})


def test_a_smaller_budget_is_no_override(baselines):
    assert load_config("algoreas/mst_easy", "gin", steps=100).overridden == ()


@pytest.mark.parametrize(
    ("domain", "model"),
    [("algoreas", "gin"), ("clrs", "mpnn"), ("clrs_text", "transformer_small"), ("clutrr", "gat")],
)
def test_every_domain_has_a_default_model(domain, model):
    assert load_config(f"{domain}/any").model_name == model


def test_a_default_that_cannot_serve_a_dataset_gives_way_and_one_with_an_error_does_not(baselines, monkeypatch):
    card = CARD
    monkeypatch.setattr("graphbench.training.config.card_of", lambda dataset: card)
    assert models_for(card) == ["gin", "gt"] and load_config(card.address).model_name == "gin"
    gin = baselines / "algoreas" / "gin.yaml"
    text = gin.read_text()
    gin.write_text(text + "\ndefault: true\n")
    gt = baselines / "algoreas" / "gt.yaml"
    gt.write_text("model: {kind: search, method: greedy}\n")
    assert models_for(card) == ["gin"]
    gin.write_text("default: true\nmodel: {kind: search, method: greedy}\n")
    gt.write_text("model: {processor: gt}\ntraining: {steps: 3}\n")
    assert models_for(card) == ["gt"] and load_config(card.address).model_name == "gt"
    gin.write_text("default: true\nmodel: {processor: gin, widht: 3}\n")
    assert models_for(card) == ["gt"]
    with pytest.raises(ConfigError, match="widht"):
        load_config(card.address)
    gin.write_text("[")
    assert models_for(card) == ["gt"]


def test_an_override_cannot_change_the_kind_of_a_model(tmp_path):
    with pytest.raises(ConfigError, match=r"^model\.kind=graph.*mpnn.*trajectory"):
        load_config("clrs/bfs", "mpnn", overrides=["model.kind=graph"])
    assert load_config("clrs/bfs", "mpnn", overrides=["model.kind=trajectory"]).overridden == ()
    asked = {"model": {"kind": "graph"}}
    assert load_config("algoreas/mst_easy", "gin", overrides=asked) == load_config("algoreas/mst_easy", "gin")
    assert asked == {"model": {"kind": "graph"}}
    own = tmp_path / "own.yaml"
    own.write_text("model: {kind: text, processor: gin}\ntraining: {steps: 3}\n")
    with pytest.raises(ConfigError) as refused:
        load_config("clrs_text/bfs", own)
    assert "unknown key 'model.processor'" in str(refused.value)
    assert "did you mean 'model.processor'" not in str(refused.value)
    with pytest.raises(ConfigError, match=r"'model\.repair_parts'; it is a key of models of kind stepwise"):
        load_config("co/ba_small:mis", "gin_small", overrides=["model.repair_parts=regions"])


def test_a_file_of_ones_own_has_no_published_budget(baselines, tmp_path_factory):
    assert not load_config("algoreas/mst_easy", baselines / "algoreas" / "gin.yaml").is_small
    own = tmp_path_factory.mktemp("own") / "gin.yaml"
    own.write_text(yaml.safe_dump({**FILE, "training": {"steps": 3}}))
    config = load_config("algoreas/bridges_easy", own)
    assert (config.training.steps, config.reference_steps) == (3, None)
    assert config.is_small
    continued = load_config("algoreas/bridges_easy", own, steps=30000)
    assert continued.is_small


@pytest.mark.parametrize("key", ["steps", "seed"])
def test_an_argument_and_an_override_must_not_contradict_each_other(baselines, key):
    with pytest.raises(ConfigError, match=f"{key}=3.*training.{key}=10"):
        load_config("algoreas/mst_easy", "gin", overrides=[f"training.{key}=10", "training.warmup=1"], **{key: 3})
    same = load_config("algoreas/mst_easy", "gin", overrides=[f"training.{key}=3", "training.warmup=1"], **{key: 3})
    assert getattr(same.training, key) == 3


def test_unknown_model_is_an_error_with_a_suggestion(baselines):
    with pytest.raises(UnknownModel, match=r"'gim'.*'algoreas'.*'gin'.*gin, gt"):
        load_config("algoreas/mst_easy", "gim")
    with pytest.raises(UnknownModel) as unknown:
        load_config("algoreas/mst_easy", "zzzzz")
    assert str(unknown.value) == (
        "unknown model 'zzzzz' for domain 'algoreas' (configurations there: gin, gt; or give the path of a .yaml file)"
    )
    with pytest.raises(UnknownModel, match=r"nowhere\.yaml' does not exist"):
        load_config("algoreas/mst_easy", "nowhere.yaml")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["training.lrr=1"], r"unknown key 'training.lrr'.*'training.lr'"),
        (["training.layers=1"], r"unknown key 'training.layers'.*'model.layers'"),
        (["lr=1"], r"override 'lr'.*'training.lr'"),
        (["trainin.lr=3"], r"'trainin.lr'.*'training.lr'"),
        (["modl.positional.k=3"], r"did you mean 'model.positional.k'\?"),
        (["foo.lr=3"], r"did you mean 'training.lr'\?"),
        (["training.lr"], "must have the form key=value"),
        (["training=3"], "must start with"),
        ("training.lr=1", "must be a mapping or a list"),
        (["training.lr=[1"], "not valid YAML"),
        (["training.lr=-1"], r"training.lr = -1 is refused: .*greater than 0"),
        (["training.steps=0"], r"training.steps = 0 is refused"),
        (["training.precision=fp8"], "training.precision = 'fp8' is refused"),
        (["training.warmup=11880"], "warmup 11880 leaves nothing"),
        (["training.schedule_steps=5"], "schedule_steps 5 is below steps 11880"),
        (["training.eval_batch_size=0"], "eval_batch_size 0 must be positive"),
    ],
)
def test_refused_overrides_name_the_key(baselines, overrides, message):
    with pytest.raises(ConfigError, match=message):
        load_config("algoreas/mst_easy", "gin", overrides=overrides)


@pytest.mark.parametrize("steps", [0, -3])
def test_a_budget_without_steps_is_refused(baselines, steps):
    with pytest.raises(ConfigError, match=f"training.steps = {steps}"):
        load_config("algoreas/mst_easy", "gin", steps=steps)


@pytest.mark.parametrize(
    ("text", "message"),
    [("- 1", "expected a mapping"), ("modl: {}", "unknown key 'modl'"), ("model: {a: 1, a: 2}", "appears twice")],
)
def test_malformed_files_are_refused(tmp_path, text, message):
    path = tmp_path / "own.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_config("algoreas/mst_easy", path)


def test_short_runs_validate_less_often_than_they_train():
    assert TrainingConfig(steps=11880).validation_interval(10_000) == 594
    assert TrainingConfig(steps=300, batch_size=128).validation_interval(10_000) == 79
    assert TrainingConfig(steps=300, eval_every=7).validation_interval(10_000) == 7
    assert TrainingConfig(steps=3).validation_interval(1) == 1


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"kind": "text", "positions": "alibi"}, r"model\.positions = 'alibi' is refused"),
        ({"kind": "text", "contxt": 5}, r"unknown key 'model\.contxt'.*'model\.context'"),
        ({"kind": "text", "context": 64, "randomised_positions": 32}, "randomised_positions=32 is below context=64"),
        ({"kind": "story", "text": 3}, r"model\.text = 3 is refused"),
        ({"kind": "tree"}, "tree"),
    ],
)
def test_every_kind_of_model_names_its_keys(tmp_path, section, message):
    path = tmp_path / "own.yaml"
    path.write_text(yaml.safe_dump({"model": section, "training": {"steps": 3}}))
    with pytest.raises(ConfigError, match=message):
        load_config("clrs_text/bfs", path)


def test_numbers_written_like_3e_4_are_numbers():
    assert TrainingConfig.model_validate({"lr": "3e-4"}).lr == 3e-4


def test_fingerprint_follows_what_decides_the_weights(baselines):
    def of(*overrides, data="d", **kwargs):
        return fingerprint(load_config("algoreas/mst_easy", "gin", overrides=list(overrides), **kwargs), data)

    base = of()
    assert base == of("training.log_every=3") == of("training.checkpoint_every=9", "training.eval_batch_size=4")
    different = [
        of("training.lr=1"),
        of("model.layers=3"),
        of("training.eval_every=2"),
        of(seed=1),
        of(steps=100),
        of(limit=5),
        of(data="e"),
    ]
    assert len({base, *different}) == len(different) + 1


def test_runs_with_a_fixed_schedule_share_a_fingerprint_over_budgets(baselines):
    marks = {
        fingerprint(load_config("a/b", baselines / "algoreas/gin.yaml", steps=s, overrides=o), "d")
        for s in (100, 200)
        for o in [["training.schedule_steps=400"]]
    }
    assert len(marks) == 1


@pytest.mark.parametrize("override", ["training.lr=.inf", "training.clip=.nan", "model.dropout=.inf"])
def test_infinity_and_nan_are_no_settings(override):
    with pytest.raises(ConfigError, match=override.partition("=")[0]):
        load_config("algoreas/mst_easy", "gin", overrides=[override])
