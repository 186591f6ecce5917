"""What is used of SMAC and not public still exists there; nothing else of it is used anywhere."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pytest
from smac.acquisition.maximizer.local_and_random_search import LocalAndSortedRandomSearch
from smac.acquisition.maximizer.local_search import LocalSearch
from smac.initial_design import AbstractInitialDesign
from smac.intensifier.hyperband import Hyperband
from smac.main.config_selector import ConfigSelector

from graphbench.tuning import smac_internals

VERSION = "2.4"
"""The versions of SMAC for which the file was written; ``pyproject.toml`` allows no other."""


@dataclass(frozen=True, slots=True)
class Internal:
    """A member of a class of SMAC that is not public.

    Attributes:
        owner: The class.
        name: The member.
        parameters: Names of its parameters after ``self``, where it is overridden; None for one that is only used.
    """

    owner: type
    name: str
    parameters: tuple[str, ...] | None = None


_START_POINTS = "_get_init_points_from_previous_configs"
INTERNALS = (
    Internal(AbstractInitialDesign, "_configspace"),
    Internal(AbstractInitialDesign, "_seed"),
    Internal(AbstractInitialDesign, "_n_configs"),
    Internal(AbstractInitialDesign, "_select_configurations", ()),
    Internal(Hyperband, "_seed"),
    Internal(Hyperband, "_tf_seeds"),
    Internal(Hyperband, "_s_max"),
    Internal(Hyperband, "_get_next_bracket"),
    Internal(ConfigSelector, "_collect_data", ()),
    Internal(ConfigSelector, "_considered_budgets"),
    Internal(ConfigSelector, "_previous_entries"),
    Internal(LocalSearch, _START_POINTS, ("previous_configs", "n_points", "additional_start_points")),
    Internal(LocalAndSortedRandomSearch, "_local_search"),
)
PACKAGE = Path(inspect.getfile(smac_internals)).parent.parent


def sources_of(owner: type) -> str:
    """Return the sources of a class of SMAC and of those it inherits from."""
    return "".join(inspect.getsource(kind) for kind in owner.__mro__ if kind.__module__.startswith("smac."))


def private_names(path: Path) -> set[str]:
    """Return the names with one leading underscore that a file reads, writes or defines on objects."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for kind in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        used |= {node.name for node in kind.body if isinstance(node, ast.FunctionDef)}
    return {name for name in used if name.startswith("_") and not name.startswith("__")}


def test_the_installed_version_is_the_one_it_was_written_for() -> None:
    assert version("smac").startswith(f"{VERSION}."), "read INTERNALS against the new version of SMAC"


@pytest.mark.parametrize("internal", INTERNALS, ids=lambda item: f"{item.owner.__name__}.{item.name}")
def test_a_private_member_still_exists_in_smac(internal: Internal) -> None:
    where = f"{internal.owner.__module__}.{internal.owner.__name__}.{internal.name}"
    found = re.search(rf"(self\.|def ){internal.name}\b", sources_of(internal.owner))
    assert found, f"SMAC {version('smac')} has no {where} any more; see graphbench/tuning/smac_internals.py"
    if internal.parameters is not None:
        parameters = tuple(inspect.signature(getattr(internal.owner, internal.name)).parameters)[1:]
        assert parameters == internal.parameters, f"{where} takes {parameters} in SMAC {version('smac')}"


def test_every_private_member_in_use_is_listed() -> None:
    known = {internal.name for internal in INTERNALS}
    text = "".join(sources_of(owner) for owner in {internal.owner for internal in INTERNALS})
    used = {name for name in private_names(PACKAGE / "tuning" / "smac_internals.py") if re.search(rf"\b{name}\b", text)}
    assert used == known


def test_no_other_file_uses_a_private_member_or_overrides_one_by_chance() -> None:
    text = "".join(sources_of(owner) for owner in {internal.owner for internal in INTERNALS})
    halves = private_names(PACKAGE / "tuning" / "halving.py")
    assert {name for name in halves if re.search(rf"\b{name}\b", text)} == set()


def test_classes_of_smac_are_imported_in_two_files_alone() -> None:
    importing = re.compile(r"^\s*(from smac(\.(?!runhistory)[\w.]+)? import|import smac)", re.MULTILINE)
    files = [path for path in PACKAGE.rglob("*.py") if importing.search(path.read_text(encoding="utf-8"))]
    assert {path.relative_to(PACKAGE).as_posix() for path in files} == {"tuning/halving.py", "tuning/smac_internals.py"}
