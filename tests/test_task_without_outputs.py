"""A kind of task whose card has no outputs, such as one that generates graphs: every command asks the task alone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from .warm import run_python

REPOSITORY = Path(__file__).resolve().parents[1]
COMMANDS = """
import json, sys
from graphbench.cli.app import main

for words in json.loads(sys.argv[1]):
    try:
        main(words)
    except SystemExit as end:
        if end.code:
            raise
"""
PLUGIN = '''
"""Random graphs; a model learns their density, and what it generates is scored by the difference in density."""

from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict

import graphbench
from graphbench.core.errors import EvaluationError
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.generators import Generator
from graphbench.data.arrays.seeds import sample_generator
from graphbench.evaluation.evaluator import BaseEvaluator
from graphbench.evaluation.metrics.registry import Metric, metric
from graphbench.evaluation.score import Score
from graphbench.models.base import TaskModel
from graphbench.models.config import ArchitectureConfig
from graphbench.models.registry import Architecture, register_architecture
from graphbench.tasks.base import Task
from graphbench.tasks.files import write_arrays


class Parameters(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    nodes: int = 6


def generate(parameters, key, indices, attempts):
    parts = []
    pairs = np.stack(np.triu_indices(parameters.nodes, 1), axis=1)
    for index, attempt in zip(indices, attempts):
        rng = sample_generator(key, int(index), int(attempt))
        parts.append(pairs[rng.random(len(pairs)) < 0.5])
    count = len(indices)
    edges = np.array([len(part) for part in parts], np.int64)
    return Samples(np.full(count, parameters.nodes, np.int64), edges, np.concatenate(parts).astype(np.int64), {})


GENERATOR = Generator(
    name="drawn.random",
    version=1,
    parameters=Parameters,
    generate=generate,
    check=lambda parameters, samples: [],
    statistics=lambda parameters, samples: {"edges": float(samples.num_edges.mean())},
    shard_size=lambda parameters: 10,
    unique=False,
)
graphbench.register_domain(graphbench.Domain("drawn", generators={"random": GENERATOR}))
graphbench.register_data("drawn_graphs")


class Densities:
    """Edges and pairs of nodes, of the data and of what a model generated."""

    def __init__(self):
        self.graphs, self.sums = 0, np.zeros(2)

    def update(self, true, generated):
        self.graphs += len(true)
        self.sums += [true.sum(), generated.sum()]


graphbench.register_metric(
    Metric(
        name="density_gap",
        higher_is_better=False,
        lowest=0.0,
        highest=1.0,
        description="Difference between the mean density of the data and that of the generated graphs.",
        kinds=frozenset(),
        accumulator=Densities,
        value=lambda sums: abs(float(sums.sums[0] - sums.sums[1])) / sums.graphs,
    )
)


def densities(batch):
    pairs = batch.ptr.diff() * (batch.ptr.diff() - 1)
    return torch.bincount(batch.batch[batch.edge_index[0]], minlength=batch.num_graphs) / pairs


class GenerationEvaluator(BaseEvaluator):
    def __init__(self, card, scores=None, expected_graphs=None):
        super().__init__(scores, expected_graphs)
        self.metrics = (metric(card.metrics.primary),)
        self.reset()

    def start(self):
        return Densities()

    def add(self, sums, y_true, y_pred, batch=None):
        sums.update(densities(y_true).numpy(), np.asarray(y_pred))

    def finish(self, sums):
        self.check_graphs(sums.graphs)
        values = {m.name: m.value(sums) for m in self.metrics}
        return Score(values, self.primary_name, items=sums.graphs, graphs=sums.graphs)


@graphbench.register_task
class GenerateTask(Task):
    """Generate graphs like those of the data."""

    type: ClassVar[str] = "generate_graphs"

    def check_card(self):
        if self.card.outputs:
            raise ValueError("graphs are generated; there is nothing else to predict")

    def losses(self, outputs, batch):
        return {"edges": torch.nn.functional.binary_cross_entropy(outputs, densities(batch))}

    def loss_weights(self, batch):
        return {"edges": batch.num_graphs}

    def predictions(self, outputs, batch):
        return outputs.cpu()

    def evaluator(self, *, scores=None, expected_graphs=None):
        return GenerationEvaluator(self.card, scores, expected_graphs)

    def read_predictions(self, path, split, scores=None):
        generated, first = np.load(path)["y_pred"], 0
        if len(generated) != len(split):
            raise EvaluationError(f"{path} has {len(generated)} graphs, not {len(split)}")
        for batch in split.batches(64):
            yield batch, generated[first : first + batch.num_graphs]
            first += batch.num_graphs

    def write_predictions(self, path, predictions):
        return write_arrays(path, {"y_pred": np.concatenate([part.numpy() for part in predictions])})


class SketchConfig(ArchitectureConfig):
    kind: Literal["sketch"] = "sketch"
    hidden: int = 4


class Sketch(TaskModel):
    def __init__(self, config):
        super().__init__()
        self.logit = torch.nn.Parameter(torch.zeros(()))

    def forward(self, batch, task_id=None):
        return self.logit.sigmoid().expand(batch.num_graphs)


register_architecture(Architecture("sketch", SketchConfig, lambda config, tasks: Sketch(config)))
'''
CARD = """
version: 1
title: Random graphs
summary: Graphs to be imitated.
generator: drawn.random
task: {type: generate_graphs}
features: {}
parameters: {nodes: 6}
splits: {train: {count: 40}, val: {count: 10}, test: {count: 10}}
metrics: {primary: density_gap}
licence: CC0
source: {paper: none}
"""
MODEL = "model: {kind: sketch}\ntraining: {steps: 3, batch_size: 8, lr: 0.1}\n"
SPACE = """
title: Learning rate of sketch
model: sketch
space:
  training.lr: {type: float, range: [1.0e-3, 1.0e-1], log: true}
fidelity: steps
budget: {min: 1, max: 2, eta: 2}
trials: 2
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A folder on the import path with the package ``drawn_graphs``: a domain, a task, an architecture and a card."""
    folder = tmp_path_factory.mktemp("site")
    files = {
        "__init__.py": PLUGIN,
        "datasets/drawn/random.yaml": CARD,
        "baselines/drawn/sketch.yaml": MODEL,
        "hpo/drawn/sketch.yaml": SPACE,
    }
    for name, text in files.items():
        path = folder / "drawn_graphs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def run(home: Path, *commands: list[str]) -> str:
    """Return what commands print, all in one process that loads the plug-in."""
    return run_code(home, COMMANDS, json.dumps(commands))


def run_code(home: Path, code: str, *arguments: str) -> str:
    """Return what a script prints that loads the plug-in."""
    folders = os.pathsep.join([str(home), str(REPOSITORY)])
    environment = {**os.environ, "PYTHONPATH": folders, "GRAPHBENCH_PLUGINS": "drawn_graphs"}
    done = run_python(["-c", code, *arguments], environment, home)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.mark.slow
def test_every_command_works_on_a_task_without_outputs(home):
    root = ["--root", str(home / "data")]
    run(
        home,
        ["list", "drawn"],
        ["info", "drawn/random"],
        ["generate", "drawn/random", *root],
        ["verify", "drawn/random", "--update"],
        ["verify", "drawn/random", "--samples", "5", *root],
        ["train", "drawn/random", "--output", "run", "--records", "records", *root],
        ["evaluate", "run", "--splits", "val,test", *root],
        ["predict", "run", "--splits", "test", *root],
        [
            "evaluate",
            "drawn/random",
            "--predictions",
            "run/predictions",
            "--model-name",
            "m",
            "--records",
            "own",
            *root,
        ],
        ["report", "drawn", "--records", "records", "--output", "report"],
        ["tune", "drawn/random", "--model", "sketch", "--trials", "2", "--output", "tuned", *root],
    )
    record = json.loads((home / "run" / "record.json").read_text())
    assert set(record["scores"]) == {"val", "test"} and record["scores"]["test"].keys() == {"density_gap"}
    (own,) = (home / "own").rglob("*.json")
    scored = json.loads(own.read_text())["scores"]["test"]
    assert scored["density_gap"] == pytest.approx(record["scores"]["test"]["density_gap"], abs=1e-6)
    assert "density_gap" in (home / "report" / "report.md").read_text()


@pytest.mark.slow
def test_an_output_that_is_not_there_is_refused(home):
    code = """
import graphbench

splits = graphbench.Loader("drawn/random", root="data").load()
assert "y" not in splits.train[0]
for attempt in (
    lambda: graphbench.Evaluator("drawn/random", output="label"),
    lambda: graphbench.train(data=splits, model="graph.yaml", output="refused"),
    lambda: graphbench.train(data=splits, model="table.yaml", output="refused"),
):
    try:
        attempt()
    except graphbench.core.errors.GraphBenchError as error:
        print(error)
"""
    (home / "graph.yaml").write_text("model: {processor: gin, hidden: 8}\n")
    (home / "table.yaml").write_text("model: {kind: tabular, processor: linear}\n")
    told = run_code(home, "import graphbench.core.errors\n" + code).splitlines()
    assert told[0] == "drawn/random has no output 'label'; it has none"
    assert [line.endswith("the features hold no output, so there is nothing to predict") for line in told[1:]] == [
        True,
        True,
    ]
