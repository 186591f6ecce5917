"""Install the package in every way that is promised, and print a table: ``make package-check``.

Wheel and source distribution on every Python, with the ten lines of the README; the wheel that is built from the
unpacked source distribution, compared file by file; every extra alone; and graphbench-lib beside it, in both orders.
"""

import argparse
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

from environments import REPOSITORY, CheckFailed, Workshop, build, content, run, ten_lines

CONSTRAINTS = ("--constraint", REPOSITORY / "constraints.txt")
OTHER = "graphbench-lib"
USES = {  # extra -> what only it makes possible
    "chip": "from graphbench.domains.chip_design.synthesis import find_abc; print(find_abc().tool)",
    "circuits": "import graphbench; print(graphbench.card('circuits/converters_5').title)",
    "docs": "import sphinx, myst_nb, pydata_sphinx_theme, sphinx_copybutton; print('sphinx', sphinx.__version__)",
    "hf": "from graphbench.interop import to_hf; import datasets; print('datasets', datasets.__version__)",
    "lightning": "from graphbench.interop import DataModule; print(DataModule.__mro__[1].__module__)",
    "metrics": "from graphbench.interop import EvaluatorMetric; print(EvaluatorMetric('mst_easy', only='f1'))",
    "pandas": "import graphbench; print(graphbench.results().shape)",
    "sat": "from graphbench.domains.sat.solvers import run_solver; from graphbench.domains.sat.cnf import Cnf; "
    "print(*(run_solver(s, Cnf.from_clauses([[1, -2], [2]])).status for s in ('kissat', 'minisat22'))); import gbdc",
    "social": "from graphbench.domains.social.embeddings import minilm; print(minilm()(['a post', 'another']).shape)",
    "solvers": "import highspy; import numpy as np; from graphbench.domains.co import external; "
    "e = np.array([[0, 1], [1, 2]]); print(external.highs_cut(3, e).value, external.scip_cut(3, e).value, "
    "external.gcol_colouring(3, e).value); import chszlablib",
    "tensorboard": "from pathlib import Path; from graphbench.training.recording import open_board; "
    "print(open_board(Path('board'), True, 0))",
    "text": "from graphbench.evaluation import language_models; import transformers; print(transformers.__version__)",
    "weather": "from graphbench.domains.weather.simulation import environment; import jcm, zarr, xarray; "
    "print(sorted(environment()))",
    "xgboost": "from graphbench.models.tabular.estimators import make_estimator; "
    "print(type(make_estimator('xgboost', True, 0, {})).__name__)",
}


def artefacts(folder: Path, shop: Workshop) -> tuple[Path, Path, str]:
    """Return source distribution and wheel, after checking that the first builds the second."""
    python = shop.environment("build", "3.11")
    shop.install(python, "hatchling", "editables")
    sdist, wheel = build(REPOSITORY, folder / "dist", python, "sdist", "wheel")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (source,) = (folder / "unpacked").iterdir()
    (again,) = build(source, folder / "again", python, "wheel")
    ours, theirs = content(wheel), content(again)
    differ = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
    if differ:
        raise CheckFailed(f"the wheel of the source distribution differs in {', '.join(differ[:10])}")
    sizes = f"wheel {wheel.stat().st_size / 1e6:.2f} MB, source {sdist.stat().st_size / 1e6:.2f} MB"
    return sdist, wheel, f"{sizes}; the same {len(ours)} files, byte for byte"


def use(python: Path, folder: Path) -> str:
    """Run the ten lines and the command line in an environment; return facts about it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ten_lines.py").write_text(ten_lines())
    env = {"GRAPHBENCH_ROOT": str(folder / "root"), "PYTHONPATH": "", "OMP_NUM_THREADS": "1"}
    printed = run(python, "ten_lines.py", cwd=folder, env=env)
    if printed.count("Score(f1=") != 2:
        raise CheckFailed(f"the ten lines print {printed}")
    for command in ([python, "-m", "graphbench"], [python.parent / "graphbench"]):
        if "algoreas" not in run(*command, "list", "algoreas/*", cwd=folder, env=env):
            raise CheckFailed(f"{command} lists no datasets")
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        run(python, "-c", "import graphbench", cwd=folder, env=env)
        middle = time.perf_counter()
        run(python, "-c", "pass", cwd=folder, env=env)
        seconds.append(2 * middle - start - time.perf_counter())
    return f"ten lines, list; import {min(seconds):.3f} s"


def beside(shop: Workshop, wheel: Path, first: str) -> str:
    """Install the other package before or after ours, and return what is said then."""
    python = shop.environment(f"beside-{first}", "3.11")
    order = [OTHER, wheel] if first == OTHER else [wheel, OTHER]
    for package in order:
        shop.install(python, *CONSTRAINTS, package)
    # where the other one came last, its __init__.py runs, and only what is ours can tell
    words = [python, "-c", "import graphbench"] if first == OTHER else [python.parent / "graphbench", "list"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=shop.folder)
    if done.returncode == 0 or "are both installed" not in done.stderr:
        raise CheckFailed(f"nothing is said: {done.stdout[-500:]}{done.stderr[-500:]}")
    return done.stderr.strip().splitlines()[-1][:90] + "..."


def main() -> None:
    """Run the checks that are asked for, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    extras = list(tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    parser.add_argument("--pythons", nargs="*", default=["3.11", "3.12", "3.13"])
    parser.add_argument("--extras", nargs="*", default=[extra for extra in extras if extra != "dev"])
    parser.add_argument("--folder", type=Path, help="keep environments and packages there; default a temporary folder")
    parser.add_argument(
        "--only", choices=["pythons", "extras", "beside"], nargs="*", default=["pythons", "extras", "beside"]
    )
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="graphbench-packages-"))
    shop = Workshop(folder)
    shutil.rmtree(folder / "run", ignore_errors=True)
    rows: list[tuple[str, str, float, str]] = []

    def check(what: str, function: Callable[[], str]) -> None:
        start = time.perf_counter()
        try:
            result, found = "ok", function()
        except CheckFailed as error:
            result, found = "FAILED", str(error)
        rows.append((what, result, time.perf_counter() - start, found))
        print(f"{what:34} {result:7} {rows[-1][2]:6.0f} s  {found}", flush=True)

    built: list[Path] = []

    def make() -> str:
        *files, facts = artefacts(folder / "run", shop)
        built.extend(files)  # type: ignore[arg-type]
        return facts

    check("build", make)
    if not built:
        sys.exit(1)
    sdist, wheel = built

    def installed(python: str, package: Path, kind: str) -> str:
        environment = shop.environment(f"{kind}-{python}", python)
        shop.install(environment, *CONSTRAINTS, package)
        return use(environment, folder / "run" / f"{kind}-{python}")

    def extra_alone(extra: str) -> str:
        environment = shop.environment(f"extra-{extra}", "3.11")
        shop.install(environment, *CONSTRAINTS, f"graphbench[{extra}] @ {wheel.as_uri()}")
        place = folder / "run" / f"extra-{extra}"
        place.mkdir(parents=True, exist_ok=True)
        return (
            run(environment, "-W", "ignore", "-c", USES[extra], cwd=place, env={"PYTHONPATH": ""})
            .strip()
            .splitlines()[-1]
        )

    for python in given.pythons if "pythons" in given.only else ():
        for kind, package in (("wheel", wheel), ("sdist", sdist)):
            check(f"Python {python}, {kind}", lambda p=python, k=kind, f=package: installed(p, f, k))  # type: ignore[misc]
    for extra in given.extras if "extras" in given.only else ():
        check(f"extra {extra}", lambda e=extra: extra_alone(e))  # type: ignore[misc]
    for first in (OTHER, "graphbench") if "beside" in given.only else ():
        check(f"{OTHER} too, {first} first", lambda f=first: beside(shop, wheel, f))  # type: ignore[misc]
    if given.folder is None:
        shutil.rmtree(folder)
    sys.exit(any(result != "ok" for _, result, _, _ in rows))


if __name__ == "__main__":
    main()
