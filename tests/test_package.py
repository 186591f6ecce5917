"""The package as a whole: light to import, data-only folders, a wheel that works."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import graphbench
from graphbench.catalog import resources
from graphbench.core import errors

REPOSITORY = Path(graphbench.__file__).resolve().parent.parent
DATA_FOLDERS = ("datasets", "baselines", "hpo")
Start = Callable[..., subprocess.Popen[str]]
Output = Callable[[subprocess.Popen[str]], str]


def test_a_test_worker_has_one_thread() -> None:
    assert (torch.get_num_threads(), os.environ["OMP_NUM_THREADS"]) == (1, "1")


def test_data_folders_hold_no_python() -> None:
    found = [path for name in DATA_FOLDERS for path in (REPOSITORY / name).rglob("*.py*")]
    assert found == []
    assert list((REPOSITORY / "datasets").rglob("*.yaml"))


def test_import_is_light(run_script: Start, output_of: Output) -> None:
    script = "import sys, graphbench; graphbench.__version__; print(*sorted(m.split('.')[0] for m in sys.modules))"
    loaded = set(output_of(run_script(script)).split())
    assert "graphbench" in loaded
    assert not loaded & {"torch", "torch_geometric", "numba", "h5py", "pydantic", "numpy", "scipy", "networkx", "yaml"}


def test_listing_datasets_needs_neither_torch_nor_numba(run_script: Start, output_of: Output) -> None:
    script = "import sys, graphbench; graphbench.list_datasets(); graphbench.card('mst_easy'); print(*sys.modules)"
    loaded = {name.split(".")[0] for name in output_of(run_script(script)).split()}
    assert "pydantic" in loaded
    assert not loaded & {"torch", "torch_geometric", "numba", "h5py"}


def test_the_table_of_datasets_imports_no_generator(run_script: Start, output_of: Output, tmp_path: Path) -> None:
    script = (
        "import atexit, contextlib, io, sys; from graphbench.cli import main; printed = sys.stdout; "
        "atexit.register(lambda: print(*sys.modules, file=printed)); sys.stdout = io.StringIO(); "
        f"sys.argv[1:] = ['list', '--root', {str(tmp_path)!r}]; main()"
    )
    loaded = {name.split(".")[0] for name in output_of(run_script(script)).split()}
    assert {"graphbench", "rich", "yaml"} <= loaded
    assert not loaded & {"torch", "torch_geometric", "numba", "h5py", "scipy", "networkx"}


def test_star_import_gives_the_exported_names() -> None:
    names: dict[str, object] = {}
    exec("from graphbench import *", names)
    exported = set(graphbench.__all__)
    assert exported <= set(names)
    assert {"Loader", "Evaluator", "train", "list_datasets", "card", "__version__"} <= exported
    assert set(names) - exported == {"__builtins__"}
    assert exported <= set(dir(graphbench))


def test_unknown_attribute_lists_the_exported_names() -> None:
    with pytest.raises(AttributeError, match=r"attribute 'Lodaer'.*Loader"):
        graphbench.Lodaer  # noqa: B018


def test_error_classes_share_a_base_and_keep_their_messages() -> None:
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    assert len(classes) > 10
    for kind in classes:
        assert issubclass(kind, errors.GraphBenchError)
        assert str(kind("what is wrong; what to do")) == "what is wrong; what to do"
    assert issubclass(errors.UnknownDataset, KeyError)
    assert issubclass(errors.StoreError, OSError)
    assert issubclass(errors.MissingDependency, ImportError)


def test_missing_data_folder_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "_PACKAGE", tmp_path / "graphbench")
    with pytest.raises(FileNotFoundError, match=r"'datasets'.*reinstall"):
        resources.datasets_dir()


def test_versions_agree() -> None:
    text = (REPOSITORY / "pyproject.toml").read_text()
    assert f'version = "{graphbench.__version__}"' in text


def build(source: Path, kind: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    built = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob({"wheel": "graphbench-*.whl", "sdist": "graphbench-*.tar.gz"}[kind])
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling")
    return build(REPOSITORY, "wheel", tmp_path_factory.mktemp("wheel"))


def test_wheel_holds_code_and_data_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "graphbench/py.typed" in names
    assert "graphbench/_data/datasets/algoreas/mst.yaml" in names
    assert "graphbench/_data/baselines/published/graphbench.yaml" in names
    assert "graphbench/_data/baselines/weights/clutrr/gen_23/gat_small.safetensors" in names
    tops = {name.split("/")[0] for name in names}
    assert tops == {"graphbench", f"graphbench-{graphbench.__version__}.dist-info"}
    assert not [name for name in names if "__pycache__" in name]
    assert not [name for name in names if name.startswith("graphbench/_data/") and name.endswith(".py")]
    shipped = {name for name in names if name.endswith(".py")}
    assert shipped == {str(path.relative_to(REPOSITORY)) for path in (REPOSITORY / "graphbench").rglob("*.py")}


@pytest.mark.slow
def test_the_source_distribution_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(build(REPOSITORY, "sdist", tmp_path / "dist")) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (source,) = (tmp_path / "unpacked").iterdir()
    assert not (source / ".git").exists()
    again = build(source, "wheel", tmp_path / "again")
    ours, theirs = (
        {name: archive.read(name) for name in archive.namelist()} for archive in map(zipfile.ZipFile, (wheel, again))
    )
    assert sorted(ours) == sorted(theirs)
    assert [name for name in ours if ours[name] != theirs[name]] == []


def test_the_licence_of_every_dependency_is_listed() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    extras = {
        name: lines
        for name, lines in project["optional-dependencies"].items()
        if name not in ("dev", "docs", "browser")
    }
    lines = [*project["dependencies"], *(line for own in extras.values() for line in own)]
    needed = {re.split(r"[<>=!;\[ ]", line, maxsplit=1)[0].lower() for line in lines}
    rows = re.findall(
        r"^\| (\S+) \| (\S+) \| (.+) \| .+ \|$", (REPOSITORY / "THIRD_PARTY.md").read_text(), re.MULTILINE
    )
    listed = {name.lower().replace("_", "-") for name, _, licence in rows if licence}
    assert len(needed) > 30 and needed - listed == set(), "run `make licences`"


INSTALLED = """
import json, sys
import graphbench
from graphbench.catalog.resources import baselines_dir, datasets_dir
print(json.dumps({
    "file": graphbench.__file__,
    "ids": graphbench.list_datasets(),
    "datasets": str(datasets_dir()),
    "baselines": str(baselines_dir()),
    "card": str(graphbench.card("mst_easy").path),
}))
"""


@pytest.mark.thorough
def test_installed_wheel_lists_all_datasets(wheel: Path, tmp_path: Path, output_of: Output, run_script: Start) -> None:
    home = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--no-compile", "--target", str(home)]
    installed = subprocess.run([*pip, str(wheel)], capture_output=True, text=True, check=False)
    assert installed.returncode == 0, installed.stderr
    found = json.loads(output_of(run_script(INSTALLED, path=home)))
    assert Path(found["file"]).is_relative_to(home)
    assert found["ids"] == graphbench.list_datasets()
    assert len(found["ids"]) >= 21
    for name in ("datasets", "baselines"):
        assert Path(found[name]) == home / "graphbench" / "_data" / name
    assert Path(found["card"]).is_relative_to(home)
    metadata = next(iter(importlib.metadata.distributions(path=[str(home)])))
    assert metadata.version == graphbench.__version__
    assert [entry.value for entry in metadata.entry_points if entry.name == "graphbench"] == ["graphbench.cli:main"]
