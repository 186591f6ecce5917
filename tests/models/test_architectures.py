"""The registry of architectures, and the bounds on the size of models."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from pydantic import BaseModel, ValidationError

from graphbench import card
from graphbench.catalog.features import Stage
from graphbench.core.errors import ConfigError, UnknownModel
from graphbench.models import registry
from graphbench.models.base import TaskFeatures, TaskModel
from graphbench.models.build import Model
from graphbench.models.config import ModelConfig
from graphbench.models.language import TextModel
from graphbench.models.language_config import TextModelConfig
from graphbench.models.registry import (
    Architecture,
    architecture,
    architecture_of,
    architectures,
    build_task_model,
    register_architecture,
)
from graphbench.models.story.config import StoryModelConfig
from graphbench.models.story.model import StoryModel
from graphbench.models.trajectory.config import TrajectoryModelConfig
from graphbench.models.trajectory.model import TrajectoryModel
from graphbench.training.config import load_config

SMALL = {"hidden": 8}
TASKS = {name: {name: TaskFeatures.of(card(name))} for name in ("algoreas/mst_easy", "clrs/bfs", "clrs_text/bfs")}


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry._ARCHITECTURES, "_entries", dict(registry._ARCHITECTURES._entries))
    yield


def test_the_kinds_of_models_are_found_by_name_and_by_configuration() -> None:
    kinds = ["graph", "trajectory", "story", "epistemic", "text", "tabular", "selector", "search", "stepwise"]
    kinds += ["builder", "speller"]
    assert sorted(known.kind for known in architectures()) == sorted(kinds)
    for known in architectures():
        assert architecture(known.kind) is known
        examples = {"builder": "builder_small", "speller": "speller_small", "search": "annealing"}
        dataset = "co/rb_small" if known.kind == "search" else "chip_design/aig"
        example = examples.get(known.kind)
        config = known.config() if example is None else load_config(dataset, example).model
        assert architecture_of(config) is known
    with pytest.raises(UnknownModel, match=r"model 'trajectories'.*'trajectory'"):
        architecture("trajectories")


@pytest.mark.parametrize(
    ("config", "task", "kind"),
    [
        (ModelConfig(hidden=8, layers=1), "algoreas/mst_easy", Model),
        (TrajectoryModelConfig(hidden=8), "clrs/bfs", TrajectoryModel),
        (TextModelConfig(hidden=8, heads=1, layers=1), "clrs_text/bfs", TextModel),
    ],
)
def test_a_configuration_is_built_for_a_task(config: BaseModel, task: str, kind: type[TaskModel]) -> None:
    assert type(build_task_model(config, TASKS[task])) is kind


def test_a_story_model_takes_words_and_inputs_from_the_data() -> None:
    task = TaskFeatures.of(card("clutrr/gen_23"))
    config = StoryModelConfig(text="tokens", hidden=4, embedding=4, decoder_hidden=4)
    batches = [{"tokens": ["@ent0 likes @ent1 .", "@ent1 is a son"]}]
    own = architecture("story").complete(config, {"a": task}, {"a": batches})
    assert (own.entity, own.vocabulary) == ("entity", (".", "a", "is", "likes", "son"))
    assert isinstance(build_task_model(own, {"a": task}), StoryModel)
    with pytest.raises(ConfigError, match="kind story have one task, not 2"):
        build_task_model(own, {"a": task, "b": task})
    graph = ModelConfig()
    assert architecture("graph").complete(graph, {"a": task}, {"a": batches}) is graph


@pytest.mark.parametrize("name", ["keys", "pop", "type", "training", "forward", "_modules"])
def test_features_and_tasks_may_be_named_like_attributes_of_modules(name: str) -> None:
    def renamed(id_: str, stage: Stage) -> dict[str, TaskFeatures]:
        task = TaskFeatures.of(card(id_))
        chosen = next(f for f in task.features if f.stage is stage)
        features = tuple(replace(f, name=name) if f is chosen else f for f in task.features)
        return {name: replace(task, features=features, options={})}

    story = StoryModelConfig(text="tokens", hidden=4, embedding=4, decoder_hidden=4, vocabulary=("a",))
    trajectory = TrajectoryModelConfig(hidden=8)
    cases = [("algoreas/mst_easy", ModelConfig(hidden=8, layers=1)), ("clutrr/gen_23", story)]
    cases += [("algoreas/mst_easy", trajectory), ("clrs/bfs", trajectory), ("clrs/insertion_sort", trajectory)]
    for id_, config in cases:
        for stage in {f.stage for f in card(id_).features} - {Stage.META}:
            if (config, stage) != (story, Stage.INPUT):  # those the configuration names
                build_task_model(config, renamed(id_, stage)).state_dict()
    joint = ModelConfig(hidden=8, layers=1)
    tasks = {**renamed("algoreas/mst_easy", Stage.OUTPUT), **TASKS["algoreas/mst_easy"]}
    build_task_model(joint, tasks).load_state_dict(build_task_model(joint, tasks).state_dict())


def test_texts_are_answered_with_texts_alone() -> None:
    with pytest.raises(ConfigError, match="algoreas/mst_easy does not ask for"):
        build_task_model(TextModelConfig(hidden=8, heads=1), TASKS["algoreas/mst_easy"])


@pytest.mark.usefixtures("clean")
def test_a_user_can_add_an_architecture() -> None:
    class Constant(TaskModel):
        def __init__(self, config: Any) -> None:
            super().__init__()
            self.value = torch.nn.Parameter(torch.tensor(config.value))

    class ConstantConfig(BaseModel):
        kind: str = "constant"
        value: float = 0.5

    own = Architecture("constant", ConstantConfig, lambda config, tasks: Constant(config))
    register_architecture(own)
    register_architecture(own)  # a plug-in may be loaded twice
    assert architecture("constant") is own and own.serves(ConstantConfig(), card("clrs_text/bfs"))
    assert build_task_model(ConstantConfig(value=2.0), TASKS["algoreas/mst_easy"]).value.item() == 2.0
    with pytest.raises(ValueError, match="'constant' has the configuration ConstantConfig"):
        register_architecture(Architecture("constant_2", ConstantConfig, own.build))

    class Unknown(BaseModel):
        pass

    with pytest.raises(ValueError, match="'graph', which graphbench itself"):
        register_architecture(Architecture("graph", Unknown, own.build))

    with pytest.raises(UnknownModel, match="Unknown is the configuration of no model"):
        build_task_model(Unknown(), TASKS["algoreas/mst_easy"])


@pytest.mark.parametrize(
    ("schema", "settings"),
    [
        (ModelConfig, {"hidden": 10**12}),
        (ModelConfig, {"hidden": 10**400}),
        (ModelConfig, {"layers": 10**9, "hidden": 1}),
        (ModelConfig, {"positional": {"type": "rwse", "k": 10**12}}),
        (ModelConfig, {"heads": 10**12}),
        (TrajectoryModelConfig, {"hidden": 10**12}),
        (TrajectoryModelConfig, {"nb_triplet_features": 10**12}),
        (TrajectoryModelConfig, {"layers": 10**9}),
        (StoryModelConfig, {"hidden": 10**12}),
        (StoryModelConfig, {"embedding": 10**12}),
        (StoryModelConfig, {"decoder_hidden": 10**12}),
        (StoryModelConfig, {"layers": 10**9}),
        (StoryModelConfig, {"relation": {"pair": [10**6, 10**6], "total": [1]}}),
        (StoryModelConfig, {"mac": {"iterations": 10**9}}),
        (TextModelConfig, {"hidden": 2**40}),
        (TextModelConfig, {"layers": 10**9}),
        (TextModelConfig, {"context": 10**12}),
        (TextModelConfig, {"randomised_positions": 10**12}),
    ],
)
def test_models_beyond_all_bounds_are_refused(schema: type[BaseModel], settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=r"10\^\d+ weights, and 10\^10.*lower"):
        schema.model_validate(settings)


def test_models_larger_than_the_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_memory_bytes", lambda: 1e6)
    with pytest.raises(ConfigError, match="this machine has 0 GB of memory; lower"):
        build_task_model(ModelConfig(hidden=2048), TASKS["algoreas/mst_easy"])


def test_settings_that_are_new_are_not_written_while_they_have_their_default() -> None:
    plain = TrajectoryModelConfig(processor="gin")
    assert not TrajectoryModelConfig.added & plain.model_dump().keys()
    changed = TrajectoryModelConfig(processor="gin", layers=3)
    assert changed.model_dump()["layers"] == 3
    for config in (plain, changed):
        assert TrajectoryModelConfig.model_validate_json(config.model_dump_json()) == config


_REGISTRIES = """
import sys, graphbench.models.registry, graphbench.models.processor_registry
from graphbench.tasks.registry import task_class, task_types
kinds = [task_class(name) for name in task_types()]
print(len(kinds) > 5, "torch" in sys.modules)
"""


def test_the_registries_load_no_torch() -> None:
    found = subprocess.run([sys.executable, "-c", _REGISTRIES], capture_output=True, text=True, check=True)
    assert found.stdout == "True False\n"
