"""Killed builds resume, dead workers are replaced, builds at once end with one good copy."""

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from graphbench import card as load_card
from graphbench.catalog.cards import Card
from graphbench.core import files
from graphbench.core.errors import GenerationError
from graphbench.data.build import generation
from graphbench.data.build.generation import ensure_split
from graphbench.data.store.files import map_arrays, write_arrays
from graphbench.data.store.layout import Manifest, work_folder
from graphbench.data.store.shards import SplitTask, build_shard, is_whole

Facts = Callable[[Path], dict[str, Any]]
Start = Callable[..., subprocess.Popen[str]]

BUILD = """
import json, logging, os, sys, time
from pathlib import Path
from graphbench.catalog.families import load_family
from graphbench.data.build import generation

logging.basicConfig(level="WARNING")
card, root, workers, shard_size = load_family(Path(sys.argv[1]))[0], Path(sys.argv[2]), *map(int, sys.argv[3:5])
built = []
build = generation.SplitBuilder.build
generation.SplitBuilder.build = lambda *a: (built.append(1), build(*a))[1]
if len(sys.argv) > 5:  # meet the others before starting
    here = Path(sys.argv[5])
    (here / str(os.getpid())).touch()
    while len(list(here.iterdir())) < 2:
        time.sleep(0.01)
path = generation.ensure_split(card, "train", root, workers=workers, shard_size=shard_size)
print(json.dumps({"path": str(path), "built": len(built)}))
"""


@pytest.fixture
def card(make_card: Callable[..., Card]) -> Card:
    """200 graphs, some of them redrawn."""
    return make_card(200, {"nodes": 5, "models": {"er": {"p": 0.5}}})


@pytest.fixture
def clean(card: Card, tmp_path: Path, facts_of: Facts) -> dict[str, Any]:
    """What an undisturbed build of the card gives."""
    return facts_of(ensure_split(card, "train", tmp_path / "clean", workers=1))


def kill_at_flush(number: int) -> None:
    """Let this process kill itself with SIGKILL the ``number``-th time it flushes a file or folder to disk."""
    flush, left = files._flush, iter(range(number))

    def flush_or_die(path: Path) -> None:
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        flush(path)

    files._flush = flush_or_die


@pytest.mark.slow
def test_killed_at_every_moment_a_build_resumes(
    card: Card,
    clean: dict[str, Any],
    tmp_path: Path,
    facts_of: Facts,
    leftovers: Callable[[Path], list[str]],
    in_a_fork: Callable[[Callable[[], object]], int],
) -> None:
    root, kills = tmp_path / "resumed", 0
    for moment in range(100):

        def build(moment: int = moment) -> None:
            kill_at_flush(moment % 3)  # before a rename, after one, and during the next file
            ensure_split(card, "train", root, workers=1, shard_size=70)

        status = in_a_fork(build)
        for path in root.rglob("train*.h5"):
            assert path.stat().st_size == clean["bytes"], "a half-written file is visible"
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            break
        assert os.WTERMSIG(status) == signal.SIGKILL
        kills += 1
    assert kills >= 6
    path = ensure_split(card, "train", root, workers=1)
    assert facts_of(path) == clean
    assert leftovers(root) == []


def test_a_split_written_without_shards_is_whole_or_not_there(
    tmp_path: Path,
    facts_of: Facts,
    leftovers: Callable[[Path], list[str]],
    in_a_fork: Callable[[Callable[[], object]], int],
) -> None:
    one_shard = load_card("clrs/insertion_sort")
    clean = facts_of(ensure_split(one_shard, "val", tmp_path / "clean", workers=1))
    root = tmp_path / "resumed"
    for moment in range(5):  # before and after the file is renamed, then the manifest, then never

        def build(moment: int = moment) -> None:
            kill_at_flush(moment)
            ensure_split(one_shard, "val", root, workers=1)

        status = in_a_fork(build)
        assert os.WIFSIGNALED(status) == (moment < 4)
        assert len(list(root.rglob("val.h5"))) == (moment > 0)
        for path in root.rglob("val.h5"):
            assert path.stat().st_size == clean["bytes"], "a half-written file is visible"
    assert facts_of(ensure_split(one_shard, "val", root, workers=1)) == clean
    assert leftovers(root) == []


@pytest.mark.thorough
def test_killed_at_random_times_a_build_resumes(
    card: Card, clean: dict[str, Any], tmp_path: Path, facts_of: Facts, leftovers: Callable[[Path], list[str]]
) -> None:
    root, clock = tmp_path / "resumed", random.Random(5)
    for _ in range(8):
        child = os.fork()
        if child == 0:
            ensure_split(card, "train", root, workers=1, shard_size=4)
            os._exit(0)
        time.sleep(clock.uniform(0.0, 0.25))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert facts_of(ensure_split(card, "train", root, workers=1, shard_size=4)) == clean
    assert leftovers(root) == []


def test_finished_shards_are_not_drawn_again(
    card: Card, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_a_fork: Callable[[Callable[[], object]], int]
) -> None:
    def build() -> None:
        kill_at_flush(10)  # two for every finished file
        ensure_split(card, "train", tmp_path, workers=1, shard_size=20)

    assert os.WTERMSIG(in_a_fork(build)) == signal.SIGKILL
    drawn = []
    real = generation.build_shard
    monkeypatch.setattr(generation, "build_shard", lambda *a: (drawn.append(a[1:4]), real(*a))[1])
    ensure_split(card, "train", tmp_path, workers=1, shard_size=20)
    first_draws = [(first, last) for first, last, redraws in drawn if not redraws]
    assert first_draws == [(i, i + 20) for i in range(100, 200, 20)]


def test_damaged_shards_are_drawn_again(
    card: Card, clean: dict[str, Any], tmp_path: Path, facts_of: Facts, in_a_fork: Callable[[Callable[[], object]], int]
) -> None:
    root = tmp_path / "resumed"

    def build() -> None:
        kill_at_flush(10)
        ensure_split(card, "train", root, workers=1, shard_size=20)

    in_a_fork(build)
    shards = sorted(root.rglob("*.h5"))
    shards[0].write_bytes(b"")
    shards[1].write_bytes(shards[1].read_bytes()[:-100])
    flip_bit(shards[2], map_arrays(shards[2])["value.weight"].offset + 20)
    flip_bit(shards[3], map_arrays(shards[3])["edges"].offset)
    zero_second_half(shards[4])
    assert facts_of(ensure_split(card, "train", root, workers=1, shard_size=20)) == clean


def flip_bit(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def zero_second_half(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2] + bytes(len(content) - len(content) // 2))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: flip_bit(path, map_arrays(path)["value.in_tree"].offset),
        zero_second_half,
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b""),
        lambda path: write_arrays(path, map_arrays(path)),  # as earlier versions wrote shards, without a hash
    ],
)
def test_only_a_shard_as_written_is_whole(card: Card, tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    path = tmp_path / "shard.h5"
    build_shard(SplitTask(card, "train"), 0, 20, {}, path)
    assert is_whole(path)
    spoil(path)
    assert not is_whole(path)


def test_a_small_build_keeps_the_shards_of_an_interrupted_large_one(
    card: Card, tmp_path: Path, leftovers: Callable[[Path], list[str]], in_a_fork: Callable[[Callable[[], object]], int]
) -> None:
    def build() -> None:
        kill_at_flush(10)
        ensure_split(card, "train", tmp_path / "root", workers=1, shard_size=20)

    in_a_fork(build)
    folder = ensure_split(card, "train", tmp_path / "root", 30, workers=1).parent
    kept = {path.name[:19] for path in work_folder(folder, "train").glob("*.h5")}
    assert kept == {"000000020-000000040", "000000040-000000060", "000000060-000000080", "000000080-000000100"}
    ensure_split(card, "train", tmp_path / "root", workers=1, shard_size=20)
    assert leftovers(tmp_path / "root") == []


def test_leftovers_of_a_build_killed_at_its_end_go_at_the_next_load(
    card: Card, tmp_path: Path, leftovers: Callable[[Path], list[str]]
) -> None:
    folder = ensure_split(card, "train", tmp_path, workers=1).parent
    work_folder(folder, "train").mkdir()
    (work_folder(folder, "train") / "000000000-000000200.h5").touch()
    (work_folder(folder, "train") / ".000000000-000000200.h5.1-ab.tmp").touch()
    (folder / ".train.h5.1-ab.tmp").touch()
    assert len(leftovers(tmp_path)) == 3
    ensure_split(card, "train", tmp_path, workers=1)
    assert leftovers(tmp_path) == []


@pytest.mark.slow
def test_a_killed_parent_takes_its_workers_along_and_the_build_resumes(
    make_card: Callable[..., Card],
    tmp_path: Path,
    facts_of: Facts,
    leftovers: Callable[[Path], list[str]],
    run_script: Start,
) -> None:
    card, root = make_card(3000), tmp_path / "resumed"
    process = run_script(BUILD, card.path, root, 2, 10)
    deadline = time.monotonic() + 100
    while len(list(root.rglob("0*.h5"))) < 5 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    workers = children_of(process.pid)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert workers
    assert 5 <= len(list(root.rglob("0*.h5"))) < 300
    deadline = time.monotonic() + 120  # they look five times a second
    while any(map(is_running, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, workers))
    resumed = ensure_split(card, "train", root, workers=1, shard_size=10)
    assert facts_of(resumed) == facts_of(ensure_split(card, "train", tmp_path / "clean", workers=1))
    assert leftovers(root) == []


def children_of(parent: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True, check=False)
    return [int(word) for word in found.stdout.split()]


def is_running(process: int) -> bool:
    state = Path(f"/proc/{process}/stat")
    try:
        return state.read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.thorough
def test_two_processes_at_once_end_with_one_good_copy(
    card: Card,
    clean: dict[str, Any],
    tmp_path: Path,
    facts_of: Facts,
    leftovers: Callable[[Path], list[str]],
    run_script: Start,
    output_of: Callable[[subprocess.Popen[str]], str],
) -> None:
    root, meeting = tmp_path / "shared", tmp_path / "meeting"
    meeting.mkdir()
    processes = [run_script(BUILD, card.path, root, 1, 2, meeting) for _ in range(2)]
    answers = [json.loads(output_of(process)) for process in processes]
    assert answers[0]["path"] == answers[1]["path"]
    assert sum(answer["built"] for answer in answers) == 1
    assert facts_of(Path(answers[0]["path"])) == clean
    assert leftovers(root) == []


def test_waiting_for_another_build_is_reported(card: Card, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from filelock import FileLock

    folder = generation.dataset_folder(card, tmp_path)
    folder.mkdir(parents=True)
    with ThreadPoolExecutor(1) as pool:
        with FileLock(folder / ".train.lock"):
            waiting = pool.submit(ensure_split, card, "train", tmp_path, workers=1)
            while not caplog.records and not waiting.done():
                time.sleep(0.01)
            assert not waiting.done()
        assert waiting.result().is_file()
    assert "another process builds train" in caplog.text


CRASHING = """
import os, signal
from dataclasses import replace
from pathlib import Path
from graphbench.domains.algoreas.generators import GENERATORS as REAL

def generate(*arguments):
    marker = Path(os.environ["CRASH_MARKER"])
    if os.getpid() != int(os.environ["MAIN_PROCESS"]) and (not marker.exists() or "always" in marker.name):
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return REAL["mst"].generate(*arguments)

GENERATORS = {"mst": replace(REAL["mst"], generate=generate)}
"""

DOMAIN = """
from graphbench.data.components.domain import Domain

DOMAIN = Domain("crash", generators="graphbench.domains.crash.generators:GENERATORS")
"""
EXTEND = """
from pathlib import Path
import graphbench.domains
graphbench.domains.__path__.append(str(Path(__file__).parent / "domains"))
"""

BUILD_CRASHING = "import os\nos.environ['MAIN_PROCESS'] = str(os.getpid())\n" + BUILD


@pytest.fixture
def crashing_domain(tmp_path: Path) -> Path:
    """A folder for the import path that adds a domain whose generator kills worker processes."""
    domain = tmp_path / "plugins" / "domains" / "crash"
    domain.mkdir(parents=True)
    (domain / "__init__.py").touch()
    (domain / "generators.py").write_text(CRASHING)
    (domain / "domain.py").write_text(DOMAIN)
    (tmp_path / "plugins" / "sitecustomize.py").write_text(EXTEND)
    return tmp_path / "plugins"


def test_a_worker_that_dies_is_replaced(
    make_card: Callable[..., Card],
    crashing_domain: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run_script: Start,
    output_of: Callable[[subprocess.Popen[str]], str],
    facts_of: Facts,
) -> None:
    marker = tmp_path / "once"
    monkeypatch.setenv("CRASH_MARKER", str(marker))
    card = make_card(60, generator="crash.mst")
    process = run_script(BUILD_CRASHING, card.path, tmp_path / "crashed", 2, 10, path=crashing_domain)
    answer = json.loads(output_of(process))
    assert marker.exists()
    found = facts_of(Path(answer["path"]))
    expected = facts_of(ensure_split(make_card(60), "train", tmp_path / "clean", workers=1))
    assert found["content"] == expected["content"]


@pytest.mark.slow
def test_workers_that_keep_dying_are_reported_and_finished_shards_kept(
    make_card: Callable[..., Card],
    crashing_domain: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run_script: Start,
) -> None:
    monkeypatch.setenv("CRASH_MARKER", str(tmp_path / "always"))
    card = make_card(60, generator="crash.mst")
    process = run_script(BUILD_CRASHING, card.path, tmp_path / "crashed", 2, 10, path=crashing_domain)
    _, errors = process.communicate(timeout=200)
    assert process.returncode == 1
    last = errors.strip().splitlines()[-1]
    assert "GenerationError: algoreas/toy train: samples" in last
    assert "failed 3 times (the worker was ended by SIGKILL, perhaps by the system for lack of memory)" in last
    assert "use fewer workers. Finished shards are kept, run the same command again" in last
    assert not list((tmp_path / "crashed").rglob("train*.h5"))


def test_a_broken_executor_of_the_user_is_reported(card: Card, tmp_path: Path) -> None:
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with pytest.raises(GenerationError, match=r"samples 0 to 19 failed 3 times \(RuntimeError"):
        ensure_split(card, "train", tmp_path, executor=executor, shard_size=20)


def test_manifest_lists_only_finished_files(
    card: Card, tmp_path: Path, in_a_fork: Callable[[Callable[[], object]], int]
) -> None:
    def build() -> None:
        kill_at_flush(3)
        ensure_split(card, "train", tmp_path, workers=1, shard_size=20)

    in_a_fork(build)
    folder = generation.dataset_folder(card, tmp_path)
    assert Manifest(folder).read()["files"] == {}
    assert generation.find_file("train", 1, folder) is None
