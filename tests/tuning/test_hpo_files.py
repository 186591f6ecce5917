"""The files of search spaces: those that ship are complete and valid, and a mistake is named with its line."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphbench.catalog.cards import Card
from graphbench.catalog.names import catalog, list_datasets
from graphbench.catalog.resources import ANY_DOMAIN, data_dir
from graphbench.core.errors import ConfigError
from graphbench.models.tabular.estimators import make_estimator
from graphbench.training.config import RunConfig, list_configs, load_config
from graphbench.tuning.budgets import trials_until_largest
from graphbench.tuning.method import DatasetMethod
from graphbench.tuning.space import defaults_from, describe, to_plain
from graphbench.tuning.space_file import TuningFile, list_spaces, load_tuning_file

SAMPLES = (4, pytest.param(16, marks=pytest.mark.thorough), pytest.param(50, marks=pytest.mark.slow))


def families(domain: str) -> list[Card]:
    """One dataset of every family of a domain."""
    cards = {card.family: card for card in catalog().cards.values() if card.domain == domain}
    return list(cards.values())


def run_config(file: TuningFile, card: Card, sample: dict[str, Any], budget: int) -> RunConfig:
    return DatasetMethod(card.id, file.model, budgets=file.budgets).run_config(sample, budget=budget)


def require_same_estimator(default: Any, baseline: Any) -> None:
    """Require that a default configuration is the baseline, with what that leaves to scikit-learn in writing."""
    assert default.model_copy(update={"options": baseline.options}) == baseline
    if baseline.processor == "xgboost":
        pytest.importorskip("xgboost")
    made = [make_estimator(model.processor, False, 0, model.options).get_params() for model in (default, baseline)]
    made = [{key: value for key, value in own.items() if not hasattr(value, "fit") and key != "steps"} for own in made]
    assert made[0] | {"max_samples": None} == made[1] | {"max_samples": None}
    assert made[0].get("max_samples") in (None, 1.0)  # two ways to write "all"


def written(file: TuningFile, name: str) -> dict[str, Any]:
    return file.space[name].model_dump(mode="json", exclude_unset=True)


def kind_of(name: str) -> str:
    domain, model = name.split("/")
    return "graph" if domain == ANY_DOMAIN else load_config(list_datasets(domain)[0], model).kind


def test_every_model_has_a_space_and_every_space_a_model() -> None:
    domains = {name.split("/")[0] for name in list_spaces()}
    assert domains >= {"algoreas", "circuits", "clrs", "clrs_text", "clutrr", "co", "sat"}
    for domain in domains:
        learning = [name for name in list_configs(domain) if kind_of(name) != "search"]  # a search learns nothing
        assert list_spaces(domain) == learning
    assert list_spaces("results") == []


@pytest.mark.parametrize("samples", SAMPLES)
@pytest.mark.parametrize("name", [name for name in list_spaces() if not name.startswith(f"{ANY_DOMAIN}/")])
def test_a_shipped_space_gives_valid_runs_and_starts_from_the_baseline(name: str, samples: int) -> None:
    file = load_tuning_file(name)
    cards = families(file.domain)
    assert cards and file.title and file.source and file.trials >= 50
    assert f"{file.domain}/{file.model}" == name
    assert len(file.budgets) in (6, 7), "a ladder of six budgets, or of seven for the range of table 20"
    assert file.budgets[0] <= file.budget.min + 1
    assert file.trials >= trials_until_largest(len(file.budgets), file.budget.eta), "no trial has the largest budget"
    space = file.configuration_space()
    describe(space)
    for card in cards:
        largest = file.budgets[-1]
        steps = {"steps": largest} if file.fidelity == "steps" else {}
        own = {"schedule_steps": largest, "eval_at": file.budgets[:-1]} if steps else {"train_limit": largest}
        baseline = load_config(card.id, file.model, family=card.family, **steps)
        space = defaults_from(baseline, file.configuration_space())
        default = run_config(file, card, to_plain(space.get_default_configuration()), largest)
        assert default.training == baseline.training.model_copy(update=own | {"eval_at": tuple(own.get("eval_at", ()))})
        if steps:
            assert default.model == baseline.model
        else:
            require_same_estimator(default.model, baseline.model)
    space.seed(0)
    for number, configuration in enumerate(space.sample_configuration(samples)):
        sample = to_plain(configuration)
        config = run_config(file, cards[number % len(cards)], sample, file.budgets[number % len(file.budgets)])
        found = config.model_dump(mode="json")
        for key, value in sample.items():
            section, *rest = key.split(".")
            held: Any = found[section]
            for part in rest:
                held = held[part]
            assert held == value, key


def test_small_models_have_small_budgets() -> None:
    for name in list_spaces():
        if name.endswith("_small"):
            assert load_tuning_file(name).budget.max <= 2000


def test_table_20_is_kept() -> None:
    space = load_tuning_file("algoreas/gin").configuration_space()
    ranges = {name: (space[name].lower, space[name].upper) for name in space}
    assert ranges.pop("training.warmup") == (119, 2376)
    assert ranges == {
        "training.lr": (1e-6, 0.1),
        "training.weight_decay": (1e-8, 0.1),
        "model.dropout": (0.0, 0.5),
    }
    assert [name for name in space if getattr(space[name], "log", False)] == ["training.lr", "training.weight_decay"]
    shares = [bound / 11880 for bound in (119, 2376)]
    assert shares == pytest.approx([1000 / 100000, 20000 / 100000], rel=0.01), "as in the paper's runs"


def test_a_positional_encoding_has_a_size_where_there_is_one() -> None:
    space = load_tuning_file("algoreas/gin_small").configuration_space()
    space.seed(1)
    kinds = set()
    for configuration in space.sample_configuration(100):
        sample = to_plain(configuration)
        kinds.add(sample["model.positional.type"])
        assert ("model.positional.k" in sample) == (sample["model.positional.type"] != "none")
    assert kinds == {"rwse", "lpe", "none"}


@pytest.mark.parametrize(
    ("largest", "warmup", "budgets"),
    [
        (100_000, {"range": [119, 2376]}, [3125, 6250, 12500, 25000, 50000, 100000]),
        (11_880, {"range": [119, 2376]}, [371, 743, 1485, 2970, 5940, 11880]),
        (300, {"range": [3, 60]}, [9, 19, 38, 75, 150, 300]),
        (9, {"range": [0, 2]}, [1, 2, 5, 9]),
        (2, {"type": "constant", "value": 0}, [1, 2]),
        (1, {"type": "constant", "value": 0}, [1]),
    ],
)
def test_other_budgets_keep_the_share_of_the_warmup(largest: int, warmup: dict[str, Any], budgets: list[int]) -> None:
    file = load_tuning_file("algoreas/gin").for_budget(largest)
    assert written(file, "training.warmup") == {"type": "int", **warmup}
    assert file.budgets == budgets
    space, card = file.configuration_space(), families("algoreas")[0]
    space.seed(0)
    for configuration in space.sample_configuration(20):
        run_config(file, card, to_plain(configuration), file.budgets[0])


def test_other_budgets_can_be_given_whole() -> None:
    file = load_tuning_file("algoreas/gin")
    assert file.for_budget(900, 100).budgets == [113, 225, 450, 900]
    for largest, smallest in ((0, None), (10, 11), (10, 0)):
        with pytest.raises(ConfigError, match="none; give 1 <= smallest <= largest"):
            file.for_budget(largest, smallest)


def test_a_default_and_a_logarithmic_warmup_scale_too(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    warmup = "{type: int, range: [5, 500], log: true, default: 100}"
    path.write_text(f"title: t\nspace: {{training.warmup: {warmup}, lr: {{type: float, range: [0, 1]}}}}\n" + BUDGET)
    file = load_tuning_file(path).for_budget(90)
    assert written(file, "training.warmup") == {"type": "int", "range": [1, 45], "log": True, "default": 9}
    assert written(file, "lr") == {"type": "float", "range": [0, 1]}


BUDGET = "budget: {min: 9, max: 1000}\n"
FILE = """\
title: A space
source: own
model: gin_small
space:
  training.lr: {type: float, range: [1e-6, 0.1], log: true}
  training.warmup:
    type: int
    range: [7, 146]
  model.dropout: {type: float, range: [0.0, 0.5]}
  model.positional.type: {type: categorical, choices: [rwse, lpe, none]}
  model.positional.k: {type: int, range: [4, 32]}
conditions:
  - child: model.positional.k
    parent: model.positional.type
    values: [rwse, lpe]
forbidden:
  - {model.positional.type: lpe, model.positional.k: 32}
fidelity: steps
budget: {min: 27, max: 729, eta: 3}
trials: 60
"""
Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(text: str) -> Path:
        path = tmp_path / "algoreas" / "mine.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    return written


def test_a_users_file_is_read_like_a_shipped_one(write: Write) -> None:
    path = write(FILE)
    file = load_tuning_file(path)
    assert (file.name, file.domain, file.model) == (str(path), "algoreas", "gin_small")
    space = file.configuration_space()
    assert space["training.lr"].lower == 1e-6, "a number with an exponent and no point is a number"
    assert len(space.conditions) == len(space.forbidden_clauses) == 1


def test_a_shipped_file_is_found_by_name_and_by_path() -> None:
    path = data_dir("hpo") / "algoreas" / "gin.yaml"
    for name, domain in (("algoreas/gin", None), ("gin", "algoreas"), (path, None), (str(path), None)):
        file = load_tuning_file(name, domain)
        assert (file.name, file.domain) == ("hpo/algoreas/gin.yaml", "algoreas")
    assert load_tuning_file(path, "clutrr").domain == "clutrr"


def test_a_file_in_no_domains_folder_names_the_domain_with_the_model(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(FILE)
    with pytest.raises(
        ConfigError, match=r"mine\.yaml:3: model: unknown model 'gin_small' .* or write <domain>/<model>"
    ):
        load_tuning_file(path).configuration_space()
    path.write_text(FILE.replace("model: gin_small", "model: algoreas/gin_small"))
    assert len(load_tuning_file(path).configuration_space()) == 5
    path.write_text(FILE)
    assert len(load_tuning_file(path, "algoreas").configuration_space()) == 5


def test_without_a_model_names_are_free(tmp_path: Path) -> None:
    path = tmp_path / "free.yaml"
    path.write_text("title: t\nspace: {anything: {type: int, range: [1, 2]}}\n" + BUDGET)
    assert list(load_tuning_file(path).configuration_space()) == ["anything"]


@pytest.mark.parametrize(
    ("before", "after", "line", "message"),
    [
        (
            "model.dropout",
            "model.dorpout",
            9,
            r"'model\.dorpout'.*'model\.dropout'",
        ),
        ("training.lr", "lr", 5, r"'lr' is no key.*'training\.lr'"),
        ("model.dropout", "model.embedding", 9, r"'model\.embedding' is no key of gin_small"),
        ("model.dropout", "model.positional", 9, r"'model\.positional' is a section"),
        ("model.dropout", "model.dropout.rate", 9, r"'model\.dropout' holds a value"),
        ("training.lr", "training.steps", 5, "budgets say how long"),
        ("training.lr", "training.val_split", 5, "costs of trials must be comparable"),
        ("[0.0, 0.5]", "[0.0, 1.5]", 9, r"model\.dropout: the value 1\.5.*less than 1"),
        (
            "[rwse, lpe, none]",
            "[rwse, lpe, nil]",
            10,
            r"model\.positional\.type: the value 'nil'.*'rwse'",
        ),
        (
            "type: int\n    range: [7",
            "type: float\n    range: [7",
            6,
            r"training\.warmup: the value.*is refused:.*integer",
        ),
        ("type: int\n", "type: itn\n", 6, r"training\.warmup.*'itn'.*'int'"),
        (
            "[7, 146]",
            "[146, 7]",
            8,
            r"training\.warmup\.range: \[146, 7\].*146 is above.*7",
        ),
        (
            "[1e-6, 0.1]",
            "[0, 0.1]",
            5,
            r"training\.lr\.log: True.*above 0",
        ),
        ("range: [7, 146]", "rnage: [7, 146]", 8, r"training\.warmup\.rnage.*'range'"),
        (
            "    parent: model.pos",
            "    parent: model.pso",
            14,
            r"conditions\[0\]\.parent: 'model\.psoitional\.type'",
        ),
        (
            "values: [rwse",
            "values: [rsew",
            15,
            r"conditions\[0\]\.values: 'rsew'.*model\.positional\.type",
        ),
        (
            "lpe, model.positional.k: 32",
            "lpe, model.positional.k: 33",
            17,
            r"forbidden\[0\]\.model\.positional\.k: 33 is no",
        ),
        ("fidelity: steps", "fidelity: epochs", 18, r"fidelity: 'epochs' is refused"),
        ("eta: 3", "eta: 1", 19, r"budget\.eta: 1.*greater than or equal to 2"),
        ("eta: 3", "etta: 3", 19, r"budget\.etta.*'eta'.*min, max, eta"),
        ("min: 27", "min: 2700", 19, "max 729 is below min 2700"),
        ("trials: 60", "trials: 0", 20, r"trials: 0 is refused"),
        ("trials", "tirals", 20, r"tirals.*'trials'"),
        ("trials: 60", "title: again", 20, "'title' appears twice"),
        ("trials: 60", "trials: [60", 21, r"not valid YAML"),
        ("gin_small", "gin_samll", 3, r"model.*'gin_samll'.*'gin_small'"),
        ("title: A space\n", "", None, r"the key 'title' is missing"),
    ],
)
def test_mistakes_are_named_with_their_line(
    write: Write, before: str, after: str, line: int | None, message: str
) -> None:
    assert before in FILE
    path = write(FILE.replace(before, after, 1))
    place = str(path) if line is None else f"{path}:{line}"
    with pytest.raises(ConfigError, match=f"^{re.escape(place)}: .*{message}"):
        load_tuning_file(path).configuration_space()


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "just text"])
def test_a_file_is_a_mapping(write: Write, text: str) -> None:
    with pytest.raises(ConfigError, match=r"mine\.yaml: expected a mapping.*space, conditions"):
        load_tuning_file(write(text))


def test_files_that_do_not_exist_are_told() -> None:
    with pytest.raises(ConfigError, match=r"'nowhere\.yaml' does not exist"):
        load_tuning_file("nowhere.yaml")
    with pytest.raises(ConfigError, match=r"space 'algoreas/gim'.*'algoreas/gin'"):
        load_tuning_file("gim", "algoreas")
    with pytest.raises(ConfigError, match=r"unknown search space 'nowhere/gin'"):
        load_tuning_file("nowhere/gin")


def test_bytes_that_are_no_text_are_told(tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_bytes(b"title: \xff\xfe")
    with pytest.raises(ConfigError, match=r"broken\.yaml: cannot be read"):
        load_tuning_file(path)


def test_the_example_of_the_readme_is_a_space(write: Write) -> None:
    text = (data_dir("hpo") / "README.md").read_text(encoding="utf-8")
    example = text.partition("```yaml\n")[2].partition("```")[0]
    file = load_tuning_file(write(example))
    assert len(file.configuration_space()) == 4
    assert file.budgets == [23, 46, 91, 182, 365, 729]
