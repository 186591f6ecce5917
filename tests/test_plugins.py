"""Plug-ins: found by entry points and in the environment, loaded once; broken ones and clashes are named."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from .warm import run_python

REPOSITORY = Path(__file__).resolve().parents[1]

DOMAIN = """
import numpy as np
from pydantic import BaseModel, ConfigDict

import graphbench
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.generators import Generator


class Parameters(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    nodes: int = 5


def generate(parameters, key, indices, attempts):
    count = len(indices)
    ends = np.arange(parameters.nodes - 1)
    path = np.stack([ends, ends + 1], axis=1)
    marks = np.zeros((count, parameters.nodes), np.uint8)
    marks[np.arange(count), indices % parameters.nodes] = 1
    return Samples(
        np.full(count, parameters.nodes, np.int64),
        np.full(count, parameters.nodes - 1, np.int64),
        np.tile(path, (count, 1)),
        {"marked": marks.reshape(-1)},
    )


GENERATORS = {
    "paths": Generator(
        name="toys.paths",
        version=1,
        parameters=Parameters,
        generate=generate,
        check=lambda parameters, samples: [],
        statistics=lambda parameters, samples: {},
        shard_size=lambda parameters: 10,
        unique=False,
    )
}
DOMAIN = graphbench.register_domain(graphbench.Domain("toys", generators=GENERATORS))
"""
CARD = """
version: 1
title: Paths
summary: Which node of a path is marked.
generator: toys.paths
features: {marked: [output, node, mask]}
parameters: {nodes: 5}
splits: {train: {count: 40}, val: {count: 10}, test: {count: 10}}
metrics: {primary: f1}
licence: CC0
source: {paper: none}
"""
MODEL = "model: {processor: gin, hidden: 8}\ntraining: {steps: 3}\n"
LISTING = "import graphbench; print('toys/paths' in graphbench.list_datasets(), len(graphbench.list_datasets()))"


@pytest.fixture
def package(tmp_path):
    """A folder on the import path with the package ``toys_benchmark``: a domain, a card and a model configuration."""
    home = tmp_path / "site" / "toys_benchmark"
    (home / "datasets" / "toys").mkdir(parents=True)
    (home / "baselines" / "toys").mkdir(parents=True)
    (home / "__init__.py").write_text(
        "import graphbench\nimport toys_benchmark.domain\ngraphbench.register_data('toys_benchmark')\n"
    )
    (home / "domain.py").write_text(DOMAIN)
    (home / "datasets" / "toys" / "paths.yaml").write_text(CARD)
    (home / "baselines" / "toys" / "gin_toy.yaml").write_text(MODEL)
    return home


def environment(package, *plugins, **others):
    import os

    path = os.pathsep.join([str(package.parent), str(REPOSITORY)])
    return {**os.environ, "PYTHONPATH": path, "GRAPHBENCH_PLUGINS": ",".join(plugins), **others}


def run(package, code, *plugins, expect=0, **others):
    """Return what a script prints and what it logs."""
    words = ["-c", code] if isinstance(code, str) else [str(word) for word in code]
    done = run_python(words, environment(package, *plugins, **others))
    assert done.returncode == expect, done.stderr
    return done.stdout, done.stderr


def command(package, *words, plugins=("toys_benchmark",), expect=0):
    return run(package, ["-m", "graphbench", *words], *plugins, expect=expect)


def install(package, name, value):
    """Write the metadata of an installed package with one entry point."""
    folder = package.parent / f"{name}-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(f"[graphbench.plugins]\n{name} = {value}\n")


def test_a_module_named_in_the_environment_brings_datasets_and_models(package):
    out, log = run(package, f"{LISTING}; from graphbench.training.config import list_configs; print(list_configs('toys'))", "toys_benchmark")  # fmt: skip  # noqa: E501
    assert out.startswith("True") and "['toys/gin_toy']" in out and not log
    assert run(package, LISTING)[0].startswith("False")


def test_the_cards_of_a_plugin_count_among_the_versions_that_workers_must_have(package):
    code = (
        "import json; from graphbench.data.build.workers import SAMPLES, version_measure; "
        "print(json.dumps(dict(version_measure(SAMPLES)())))"
    )
    here = json.loads(run(package, code, "toys_benchmark")[0])
    without = json.loads(run(package, code)[0])
    assert here.items() - without.items() == {("plug-in toys_benchmark", here["plug-in toys_benchmark"])}
    (package / "datasets" / "toys" / "paths.yaml").write_text(CARD.replace("nodes: 5", "nodes: 6"))
    changed = json.loads(run(package, code, "toys_benchmark")[0])
    assert dict(here.items() ^ changed.items()).keys() == {"plug-in toys_benchmark"}
    worker = code.replace("version_measure(SAMPLES)()", "versions_here(SAMPLES, ('toys_benchmark',))")
    assert json.loads(run(package, worker.replace("version_measure", "versions_here"))[0]) == changed


@pytest.mark.parametrize("value", ["toys_benchmark", "toys_hooks:start"])
def test_entry_points_name_modules_and_functions(package, value):
    (package.parent / "toys_hooks.py").write_text("def start():\n    import toys_benchmark\n")
    install(package, "toys", value)
    assert run(package, LISTING)[0].startswith("True")
    assert run(package, LISTING, "toys_benchmark")[0].startswith("True")  # named twice, loaded once


PROCESSOR = """
import torch
from graphbench.models.processors import Processed, Processor, register_processor

from .scale import FACTOR


@register_processor("toy_net")
class ToyNet(Processor):
    def __init__(self, config, context):
        super().__init__(config, context)
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, state):
        return Processed(state.nodes * self.weight * FACTOR)
"""


@pytest.mark.slow
def test_a_run_is_used_again_only_with_the_code_of_its_plugin(package, tmp_path):
    (package / "net.py").write_text(PROCESSOR)
    (package / "scale.py").write_text("FACTOR = 1.0\n")
    (package / "baselines" / "toys" / "net.yaml").write_text(MODEL.replace("gin", "toy_net"))
    with (package / "__init__.py").open("a") as file:
        file.write("import toys_benchmark.net\n")
    run_folder, root = str(tmp_path / "run"), ("--root", str(tmp_path / "data"))
    words = ("train", "toys/paths", "--model", "net", "--output", run_folder, *root)
    command(package, *words)
    command(package, *words)
    command(package, "evaluate", run_folder, *root)
    (package / "scale.py").write_text("FACTOR = -1.0\n")
    said = r"plug-in toys_benchmark: module toys_benchmark/scale\.py changed"
    for again in (words, ("evaluate", run_folder, *root), ("predict", run_folder, *root)):
        assert re.search(said, " ".join(command(package, *again, expect=2)[1].split()))
    command(package, *words, "--no-resume")
    command(package, "evaluate", run_folder, *root)


@pytest.mark.slow
def test_a_run_is_used_again_only_with_the_classes_of_its_script(package, tmp_path):
    script = tmp_path / "script.py"
    net = PROCESSOR.replace("from .scale import FACTOR", "").replace("* FACTOR", "")
    words = f"""
import graphbench
FACTOR = 1.0
def scaled(values):
    return values * FACTOR
{net.replace("state.nodes *", "scaled(state.nodes) *")}
print("unrelated")
graphbench.train("toys/paths", {str(tmp_path / "net.yaml")!r}, output={str(tmp_path / "run")!r},
                 root={str(tmp_path / "data")!r}, progress=False, device="cpu", evaluate="val")
"""
    (tmp_path / "net.yaml").write_text(MODEL.replace("gin", "toy_net"))
    script.write_text(words)
    run(package, [script], "toys_benchmark")
    script.write_text(words.replace('"unrelated"', '"something else"'))
    run(package, [script], "toys_benchmark")
    for old, new in (("FACTOR = 1.0", "FACTOR = 2.0"), ("values *", "-values *")):
        script.write_text(words.replace(old, new))
        assert "scaled of the script changed" in run(package, [script], "toys_benchmark", expect=1)[1]


def test_importing_the_package_loads_no_plugin(package):
    code = "import sys, graphbench; print('toys_benchmark' in sys.modules); graphbench.list_datasets(); print('toys_benchmark' in sys.modules)"  # noqa: E501
    assert run(package, code, "toys_benchmark")[0].split() == ["False", "True"]


@pytest.mark.thorough
def test_the_command_line_generates_with_worker_processes(package, tmp_path):
    words = ("generate", "toys/paths", "--root", str(tmp_path), "--json", "--splits", "train")
    found = [json.loads(command(package, *words, "--workers", number)[0]) for number in ("2", "1")]
    assert found[0][0]["graphs"] == 40
    again = json.loads(command(package, *words[:3], str(tmp_path / "other"), *words[4:], "--workers", "1")[0])
    assert found[0][0]["content"] == again[0]["content"]
    assert "toys/paths" in command(package, "list", "toys")[0]


def test_workers_load_a_module_that_a_script_imports(package, tmp_path):
    code = f"""
import graphbench, toys_benchmark
splits = graphbench.Loader("toys/paths", root={str(tmp_path)!r}, workers=2).load("train")
print(len(splits.train))
"""
    out, log = run(package, code)
    assert out.split() == ["40"] and not log


def test_a_domain_of_the_main_module_is_generated_in_its_process(package, tmp_path):
    code = f"""
import os
{DOMAIN}
graphbench.register_data({str(package)!r})
splits = graphbench.Loader("toys/paths", root={str(tmp_path)!r}, workers=2).load("train")
print(len(splits.train))
"""
    out, log = run(package, code)
    assert out.split() == ["40"]
    assert "toys/paths is generated in this process alone, as the script's main module registers its domain" in log


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ("raise RuntimeError('no licence file')", "RuntimeError: no licence file"),
        ("import a_package_that_is_not_there", "ModuleNotFoundError: No module named 'a_package_that_is_not_there'"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("import graphbench; graphbench.register_data('/nowhere/toys')", "/nowhere/toys, which does not exist"),
        ("import graphbench; graphbench.register_domain(graphbench.Domain('co'))", "registers the domain 'co', which "),
        ("import graphbench; graphbench.register_domain(graphbench.Domain('no name'))", "'no name' is no identifier"),
    ],
)  # fmt: skip
def test_a_broken_plugin_is_named_and_stops_nothing(package, broken, reason):
    with (package / "__init__.py").open("a") as file:
        file.write(f"{broken}\n")
    code = """
import graphbench
from graphbench.core.errors import UnknownDataset

print(*graphbench.list_datasets())
try:
    graphbench.card("toys/paths")
except UnknownDataset as error:
    print(error)
"""
    out, log = run(package, code, "toys_benchmark")
    listed, error = out.splitlines()
    assert "algoreas/mst_easy" in listed and "toys/paths" not in listed
    assert "the plug-in 'toys_benchmark' (named by $GRAPHBENCH_PLUGINS) is broken" in log and reason in log
    assert error.startswith("unknown dataset 'toys/paths'") and reason in error


def test_a_plugin_that_is_not_there(package):
    _, log = command(package, "list", plugins=("toys_benchmrak",))
    assert "the plug-in 'toys_benchmrak' (named by $GRAPHBENCH_PLUGINS) is broken: ModuleNotFoundError" in log


def other_plugin(package, name, content):
    home = package.parent / name
    home.mkdir()
    (home / "__init__.py").write_text(content)
    return home


def test_two_plugins_with_one_domain(package):
    other_plugin(package, "toys_two", DOMAIN)
    out, log = run(package, LISTING, "toys_benchmark", "toys_two")
    assert out.startswith("True")
    assert "'toys_two' registers the domain 'toys', which the plug-in 'toys_benchmark' has registered" in log


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("datasets/toys/paths.yaml", CARD, "two cards carry the name 'toys/paths'"),
        ("datasets/algoreas/mst_easy.yaml", CARD, "two cards carry the name 'algoreas/mst_easy'"),
        ("datasets/other/tree.yaml", CARD + "aliases: [mst_easy]\n", "the alias 'mst_easy' is taken by"),
        ("datasets/other/tree.yaml", CARD.replace("title", "tilte"), "unknown key 'tilte'"),
    ],
)
def test_cards_with_names_that_are_taken_and_malformed_ones(package, file, content, words):
    other = other_plugin(package, "toys_two", "import graphbench; graphbench.register_data(__name__)")
    (other / file).parent.mkdir(parents=True)
    (other / file).write_text(content)
    out, log = command(package, "list", plugins=("toys_benchmark", "toys_two"))
    assert "toys/paths" in out and "algoreas/mst_easy" in out
    assert "the plug-in 'toys_two'" in log and words in log and "'toys_benchmark'" not in log


def test_model_configurations_with_a_name_that_is_taken(package):
    (package / "baselines" / "algoreas").mkdir()
    (package / "baselines" / "algoreas" / "gin.yaml").write_text(MODEL)
    code = "from graphbench.training.config import list_configs; print(*list_configs())"
    out, log = run(package, code, "toys_benchmark")
    assert "algoreas/gin" in out.split() and "toys/gin_toy" not in out
    assert "'toys_benchmark'" in log and "has the same name as" in log


def test_metrics_processors_and_surrogates_of_plugins(package):
    code = """
import math
import graphbench
from graphbench.evaluation.metrics import METRICS, metric
from dataclasses import replace

graphbench.register_metric(replace(METRICS["f1"], name="f1_again"))
graphbench.register_metric(replace(METRICS["f1"], name="recall"))
"""
    other_plugin(package, "toys_metrics", code)
    words = "from graphbench.evaluation.metrics import metric; print(metric('f1').name); metric('f1_again')"
    _, log = run(package, words, "toys_metrics", expect=1)
    assert "the plug-in 'toys_metrics' registers the metric 'recall', which graphbench itself has registered" in log
    assert "unknown metric 'f1_again'" in log
    (package.parent / "toys_metrics" / "__init__.py").write_text(code.replace('name="recall"', 'name="f1_too"'))
    assert run(package, words, "toys_metrics")[0].split() == ["f1"]


OWN_MODEL = """
import torch
import graphbench
from graphbench.models.processors import Processed, Processor


@graphbench.register_processor("doubling")
class Doubling(Processor):
    def __init__(self, config, context):
        super().__init__(config, context)
        self.factor = torch.nn.Parameter(torch.full((), float(config.options["factor"])))

    def forward(self, state):
        return Processed(self.factor * state.nodes)
"""


@pytest.mark.slow
def test_the_command_line_trains_a_baseline_with_a_processor_of_a_module(package, tmp_path):
    other_plugin(package, "my_models", OWN_MODEL)
    config, run_folder = tmp_path / "my_gnn.yaml", tmp_path / "run"
    config.write_text("model: {processor: doubling, hidden: 8, options: {factor: 2}}\ntraining: {steps: 3}\n")
    words = ["--root", str(tmp_path), "--json"]
    train = ("train", "toys/paths", "--model", str(config), "--output", str(run_folder), *words)
    command(package, *train, plugins=("toys_benchmark", "my_models"))
    record = json.loads((run_folder / "record.json").read_text())
    assert record["model"] == "my_gnn" and record["config"]["model"]["processor"] == "doubling"
    again = ("evaluate", str(run_folder), "--splits", "test", *words)
    found, _ = command(package, *again, plugins=("my_models", "toys_benchmark"))
    assert json.loads(found)["test"]["f1"] == pytest.approx(record["scores"]["test"]["f1"])
    _, log = command(package, *again, plugins=("toys_benchmark",), expect=2)
    assert "unknown processor 'doubling'" in log
    _, log = command(package, *again, plugins=("my_models",), expect=2)
    assert "which this process does not know" in log and "GRAPHBENCH_PLUGINS" in log and "data=" in log


READER = """
from graphbench.data.components.file_sources import file_source
from toys_benchmark.domain import Parameters, generate
import graphbench
import numpy as np


def read(folder):
    return {name: generate(Parameters(), None, np.arange(5), None) for name in ("train", "val", "test")}


graphbench.register_domain(graphbench.Domain("my_files", sources={"paths": file_source("my_files.paths", read)}))
"""


@pytest.mark.slow
def test_a_run_on_files_whose_reader_is_not_registered_says_what_to_do(package, tmp_path):
    other_plugin(package, "my_files", READER)
    (package / "baselines" / "toys" / "gin_toy.yaml").write_text("model: {hidden: 8}\ntraining: {steps: 1}\n")
    (tmp_path / "files").mkdir()
    run_folder, both = tmp_path / "run", ("toys_benchmark", "my_files")
    code = f"""
import graphbench
options = {{"source": "my_files.paths", "folder": {str(tmp_path / "files")!r}, "root": {str(tmp_path)!r}}}
data = graphbench.Loader("toys/paths", **options).load()
graphbench.train(data=data, model="gin_toy", output={str(run_folder)!r}, progress=False)
"""
    run(package, code, *both)
    words = ("evaluate", str(run_folder), "--splits", "test", "--root", str(tmp_path), "--json")
    assert "test" in json.loads(command(package, *words, plugins=both)[0])
    _, log = command(package, *words, expect=2)
    told = " ".join(log.replace("│", " ").split())
    assert "source='my_files.paths'), which this process does not know" in told
    assert "GRAPHBENCH_PLUGINS" in told and "pass data=" in told


def test_a_failure_of_a_plug_ins_generator_names_the_plug_in_and_the_line(package, tmp_path):
    broken = DOMAIN.replace("    count = len(indices)\n", "    count = len(indices) // 0\n")
    (package / "domain.py").write_text(broken)
    line = broken.splitlines().index("    count = len(indices) // 0") + 1
    words = ["generate", "toys/paths", "--splits", "val", "--workers", "1", "--root", tmp_path / "data"]
    _, logged = command(package, *words, expect=2)
    logged = " ".join(logged.split())
    assert f"this is a fault of the plug-in 'toys_benchmark' ({package / 'domain.py'}:{line} in " in logged
    assert "ZeroDivisionError" in logged and "please report it" not in logged


def test_too_few_rows_of_a_plug_ins_generator_are_reported_with_the_remedy(package, tmp_path):
    (package / "domain.py").write_text(DOMAIN.replace("marks.reshape(-1)", "marks.reshape(-1)[1:]"))
    words = ["generate", "toys/paths", "--splits", "val", "--workers", "1", "--root", tmp_path / "data"]
    _, logged = command(package, *words, expect=2)
    end = "return one row per node; this is a fault of the plug-in 'toys_benchmark'"
    assert end in " ".join(logged.split())


@pytest.mark.slow
def test_own_predictions_on_a_dataset_for_which_nothing_is_published(package, tmp_path):
    model = package / "baselines" / "toys" / "gin_toy.yaml"
    model.write_text("model: {hidden: 8}\ntraining: {steps: 300, batch_size: 1000}\n")
    common = ("evaluate", "toys/paths", "--root", str(tmp_path), "--predictions")
    values = np.zeros(50)
    np.save(tmp_path / "right.npy", values)
    stated = ("--model-name", "mine", "--records", str(tmp_path / "records"), "--steps", "3", "--batch-size", "2")
    command(package, *common, str(tmp_path / "right.npy"), *stated)
    (path,) = (tmp_path / "records").rglob("*.json")
    budget = json.loads(path.read_text())["budget"]
    assert budget == {"small": None, "label": "3 steps of 2 samples, as stated"}
    for wrong, words in ((-3.0, "add --scores logit"), (np.nan, "nan")):
        values[7] = wrong
        np.save(tmp_path / "wrong.npy", values)
        _, log = command(package, *common, str(tmp_path / "wrong.npy"), expect=2)
        assert "wrong.npy (test): y_pred holds" in log and words in log.lower() and "Evaluator(" not in log


@pytest.mark.slow
def test_errors_of_a_users_code_are_one_line_that_says_where(package, tmp_path):
    raising = OWN_MODEL.replace("return Processed(", "return torch.ones(2, 3) @ torch.ones(2, 3), (")
    home = other_plugin(package, "my_models", raising)
    config = tmp_path / "my_gnn.yaml"
    config.write_text("model: {processor: doubling, hidden: 8, options: {factor: 2}}\ntraining: {steps: 3}\n")
    words = ("train", "toys/paths", "--model", str(config), "--root", str(tmp_path), "--output", str(tmp_path / "run"))
    plugins = ("toys_benchmark", "my_models")
    _, log = command(package, *words, plugins=plugins, expect=1)
    line = 1 + raising.splitlines().index(
        "        return torch.ones(2, 3) @ torch.ones(2, 3), (self.factor * state.nodes)"
    )
    assert "Traceback" not in log
    assert re.search(
        rf"^error: RuntimeError: mat1 and mat2 .*; raised in {re.escape(str(home))}.*\.py:{line} in forward; set "
        r"GRAPHBENCH_TRACEBACK=1 for the full traceback$",
        log,
        re.MULTILINE,
    )
    _, log = run(package, ["-m", "graphbench", *words], *plugins, expect=1, GRAPHBENCH_TRACEBACK="1")
    assert "Traceback" in log and "error: " not in log
    config.write_text("model: {processor: doubling, hidden: 8}\ntraining: {steps: 3}\n")
    _, log = command(package, *words, plugins=plugins, expect=1)
    assert "error: KeyError: 'factor'; raised in " in log and " in __init__; set" in log and "Traceback" not in log


@pytest.mark.thorough
def test_a_value_outside_the_range_of_a_metric_is_refused_when_it_is_scored(package, tmp_path):
    other_plugin(
        package,
        "my_metrics",
        """
import dataclasses
import graphbench
from graphbench.evaluation.metrics import METRICS

graphbench.register_metric(
    dataclasses.replace(METRICS["accuracy"], name="doubtful", highest=1.0, value=lambda sums: 2.5)
)
""",
    )
    (package / "datasets" / "toys" / "paths.yaml").write_text(CARD.replace("primary: f1", "primary: doubtful"))
    words = ("train", "toys/paths", "--model", "gin_toy", "--root", str(tmp_path), "--output", str(tmp_path / "run"))
    _, log = command(package, *words, plugins=("my_metrics", "toys_benchmark"), expect=2)
    assert "doubtful is 2.5, outside its range from 0 to 1; the metric is registered by the plug-in 'my_metrics'" in log
    assert "Traceback" not in log


def test_a_plugin_that_raises_is_named_with_file_and_line(package):
    parts = other_plugin(package, "my_tools", "import my_tools.parts\n") / "parts.py"
    parts.write_text("import json\n\n\ndef start():\n    json.loads('{')\n\n\nstart()\n")
    _, log = run(package, LISTING, "my_tools")
    assert "is broken: JSONDecodeError: Expecting property name" in log
    assert f"({parts}:5 in start); it is left out" in log


WEIRD = """
class Weird(BaseException):
    def __str__(self):
        raise GeneratorExit
"""


@pytest.mark.parametrize(
    ("raised", "named"),
    [
        ("Weird()", "Weird: (no text: __str__ raised GeneratorExit)"),
        ("GeneratorExit('closed')", "GeneratorExit: closed"),
        ("KeyboardInterrupt('by itself')", "KeyboardInterrupt: by itself"),
        ("__import__('asyncio').CancelledError('late')", "CancelledError: late"),
        ("BaseExceptionGroup('several', [Weird()])", "BaseExceptionGroup: several (1 sub-exception)"),
        ("type('Named\\x1b[31m', (Exception,), {})('red \\x1b[31m')", r"Named\x1b[31m: red \x1b[31m"),
    ],
)
def test_whatever_a_plugin_raises_or_prints_the_command_line_answers(package, raised, named):
    (package / "__init__.py").write_text(f"{WEIRD}\nprint('hello')\nraise {raised}\n")
    out, log = command(package, "list", "algoreas/mst_easy", "--json")
    assert [row["id"] for row in json.loads(out)] == ["algoreas/mst_easy"]
    assert f"is broken: {named}" in log and "hello" in log and log.count("is broken") == 1
    assert "\x1b" not in log


def test_what_an_import_changes_for_everyone_is_restored(package, tmp_path):
    (package / "domain.py").write_text(
        f"{DOMAIN}\nimport os, signal, sys, torch\nsys.stdout = sys.stderr = open(os.devnull, 'w')\n"
        "os.chdir('/')\ntorch.set_default_dtype(torch.float64)\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    )
    code = """
import os, signal, sys
import graphbench
before = os.getcwd(), sys.stdout, sys.stderr, signal.getsignal(signal.SIGINT)
assert "toys/paths" in graphbench.list_datasets()
import torch
print((os.getcwd(), sys.stdout, sys.stderr, signal.getsignal(signal.SIGINT)) == before, torch.get_default_dtype())
"""
    out, log = run(package, code, "toys_benchmark")
    assert out.split() == ["True", "torch.float32"]
    assert "changed the working folder" in log and "torch.float64" in log


@pytest.mark.parametrize("swallows", [False, True])
def test_ctrl_c_while_a_plugin_loads_interrupts_the_command(package, swallows):
    answer = "pass" if swallows else "raise RuntimeError('stopped') from None"
    (package / "__init__.py").write_text(
        f"import signal\ntry:\n    signal.raise_signal(signal.SIGINT)\nexcept KeyboardInterrupt:\n    {answer}\n"
    )
    out, log = command(package, "list", "--json", expect=130)
    assert out == "" and "is broken" not in log and "interrupted" in log


def test_a_plugin_that_an_interrupt_stopped_is_loaded_at_the_next_call(package):
    (package / "__init__.py").write_text(
        "import signal, sys\n"
        "if not hasattr(sys, 'tried'):\n    sys.tried = True\n    signal.raise_signal(signal.SIGINT)\n"
        "import graphbench\nimport toys_benchmark.domain\ngraphbench.register_data('toys_benchmark')\n"
    )
    code = f"""
import graphbench
try:
    graphbench.list_datasets()
except KeyboardInterrupt:
    print("interrupted")
{LISTING}
"""
    assert run(package, code, "toys_benchmark")[0].split()[:2] == ["interrupted", "True"]


def test_names_that_a_terminal_would_obey_are_refused(package):
    (package / "__init__.py").write_text(
        "import graphbench\nfrom graphbench.models.surrogates import register_surrogate\n"
        "register_surrogate('red\\x1b[31m', print)\n"
    )
    out, log = command(package, "list", "algoreas/mst_easy")
    assert "algoreas/mst_easy" in out
    assert r"under the name 'red\x1b[31m'" in log and "\x1b" not in out + log


def test_a_card_that_cannot_be_read_breaks_its_plugin_alone(package):
    card = package / "datasets" / "toys" / "paths.yaml"
    card.unlink()
    card.mkdir()
    out, log = command(package, "list", "--json")
    assert "algoreas/mst_easy" in [row["id"] for row in json.loads(out)]
    assert "toys/paths" not in out and "is broken: IsADirectoryError" in log


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.thorough
def test_prints_of_a_generator_do_not_reach_the_answer(package, tmp_path, workers):
    source = (package / "domain.py").read_text()
    loud = source.replace("    count = len(indices)\n", "    print('drawing')\n    count = len(indices)\n", 1)
    (package / "domain.py").write_text(loud)
    words = ("generate", "toys/paths", "--root", str(tmp_path), "--json", "--workers", workers)
    out, log = command(package, *words)
    assert sum(row["graphs"] for row in json.loads(out)) == 60 and "drawing" in log


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("raised", ["SystemExit(0)", "Weird()"])
def test_a_generator_that_raises_no_exception_is_an_error_of_the_command(package, tmp_path, workers, raised):
    source = (package / "domain.py").read_text()
    (package / "domain.py").write_text(
        WEIRD + source.replace("    count = len(indices)\n", f"    raise {raised}\n    count = len(indices)\n", 1)
    )
    words = ["-m", "graphbench", "generate", "toys/paths", "--root", str(tmp_path), "--workers", workers]
    done = run_python(words, environment(package, "toys_benchmark"))
    assert done.returncode in (1, 2) and done.stdout == ""
    assert f"{raised.partition('(')[0]}: " in done.stderr and "Traceback" not in done.stderr
