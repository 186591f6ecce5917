"""ABC in batches: circuits that are right, the same as one at a time, guards, and what is said where it is missing."""

import re
import shutil
import stat
import subprocess

import numpy as np
import pytest

from graphbench.core.errors import ArgumentError, CircuitError, MissingDependency, SolverError
from graphbench.domains.chip_design import SCRIPTS, abc_process, equivalent, optimise, synthesis, synthesise
from graphbench.domains.chip_design.graphs import tables_of_texts
from graphbench.domains.chip_design.shannon import circuits_of_tables
from graphbench.domains.chip_design.truth_tables import to_text


def installed():
    try:
        return bool(synthesis.find_abc())
    except MissingDependency:
        return False


needs_abc = pytest.mark.skipif(not installed(), reason="ABC is not installed")


def tables(count, seed=0, shapes=((6, 1), (5, 2), (4, 3))):
    rng = np.random.default_rng(seed)
    return [rng.random((m, 1 << n)) < 0.5 for n, m in (shapes[i % len(shapes)] for i in range(count))]


def script_of(path, *lines):
    path.write_text("#!/bin/sh\n" + "\n".join(lines) + "\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@needs_abc
@pytest.mark.parametrize("script", SCRIPTS)
def test_circuits_compute_their_tables(script):
    given = tables(6)
    for table, aig in zip(given, synthesise(given, script), strict=True):
        assert equivalent(aig, table)


@needs_abc
def test_circuits_do_not_depend_on_the_batch(monkeypatch):
    given = tables(7)
    together = [aig.to_aiger() for aig in synthesise(given)]
    monkeypatch.setattr(synthesis, "BATCH", 3)
    assert [aig.to_aiger() for aig in synthesise(given[::-1])][::-1] == together
    assert synthesise(given[4:5])[0].to_aiger() == together[4]
    assert synthesise([]) == []


@needs_abc
def test_scripts_do_all_their_commands(tmp_path):
    """ABC ignores what it does not know: what it prints for a script has no complaint, and circuits get smaller."""
    (tmp_path / "t.pla").write_bytes(abc_process.pla_bytes(tables(1)[0]))
    for commands in SCRIPTS.values():
        words = [synthesis.find_abc().executable, "-s", "-c", f"read_pla t.pla; {commands}; print_stats"]
        printed = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        assert not re.search("unknown|error|usage|\\*\\*", printed, re.IGNORECASE) and "and =" in printed
    given = tables(12, shapes=((6, 1),))
    ands = {
        name: np.mean([aig.num_ands for aig in synthesise(given, name)]) for name in ("strash", "resyn", "reference")
    }
    assert ands["strash"] > 1.1 * ands["resyn"] > 1.1 * ands["reference"]


@needs_abc
def test_circuits_to_start_from():
    given = tables(6, shapes=((6, 2), (7, 1)))
    start = [circuits_of_tables(*tables_of_texts([to_text(table)]))[0] for table in given]
    for script in ("strash", "resyn2"):
        found = optimise(start, script)
        assert all(equivalent(aig, table) for aig, table in zip(found, given, strict=True))
        assert all(aig.num_ands <= own.num_ands for aig, own in zip(found, start, strict=True))
    assert [aig.num_ands for aig in optimise(start, "strash")] == [own.num_ands for own in start]
    assert sum(aig.num_ands for aig in found) < sum(own.num_ands for own in start)


@needs_abc
def test_constants_and_literals_need_no_and():
    rows = np.arange(64)
    given = [np.zeros((1, 64)), np.ones((2, 64)), np.stack([rows & 1, 0 * rows, 1 - (rows >> 5 & 1)])]
    assert [aig.num_ands for aig in synthesise(given)] == [0, 0, 0]
    assert all(equivalent(aig, table) for aig, table in zip(synthesise(given), given, strict=True))
    assert equivalent(synthesise([[0, 1, 1, 0]])[0], [0, 1, 1, 0])


@needs_abc
def test_abc_finds_the_circuits_equivalent(tmp_path):
    table = tables(1)[0]
    for name in ("strash", "reference"):
        (tmp_path / f"{name}.aig").write_bytes(synthesise([table], name)[0].to_aiger())
    words = [synthesis.find_abc().executable, "-s", "-c", "cec -n strash.aig reference.aig"]
    printed = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "Networks are equivalent" in printed


@needs_abc
def test_another_executable_is_part_of_the_name(tmp_path, monkeypatch):
    usual = synthesis.find_abc()
    monkeypatch.setenv("GRAPHBENCH_ABC", usual.executable)
    named = synthesis.find_abc()
    assert named.executable == usual.executable and named.tool != usual.tool and len(named.tool.split()[-1]) == 12
    copy = tmp_path / "abc"
    shutil.copy(script_of(tmp_path / "other", f'exec "{usual.executable}" "$@"'), copy)
    monkeypatch.setenv("GRAPHBENCH_ABC", str(copy))
    assert (
        synthesis.find_abc().tool.startswith("abc ") and synthesis.find_abc().tool.split()[1] != named.tool.split()[1]
    )
    given = tables(2)
    assert all(equivalent(aig, table) for aig, table in zip(synthesise(given), given, strict=True))


def test_a_missing_abc_is_said(monkeypatch):
    monkeypatch.setenv("GRAPHBENCH_ABC", "/nowhere/abc")
    with pytest.raises(MissingDependency, match=r"GRAPHBENCH_ABC is '/nowhere/abc'.*pip install"):
        synthesise(tables(1))
    monkeypatch.delenv("GRAPHBENCH_ABC")
    monkeypatch.setattr(synthesis, "_PACKAGE", "no-such-package")
    synthesis._find_abc.cache_clear()
    try:
        with pytest.raises(MissingDependency, match=r"pip install 'graphbench\[chip\]'"):
            synthesise(tables(1))
    finally:
        synthesis._find_abc.cache_clear()


def faulty(tmp_path, monkeypatch, *lines):
    """Use a program in place of ABC that runs lines of shell for every table, with its number as $i."""
    path = script_of(
        tmp_path / "abc",
        "count=$(grep -c read_pla script)",
        "i=0",
        'while [ "$i" -lt "$count" ]; do',
        *lines,
        "i=$((i + 1))",
        "done",
    )
    monkeypatch.setenv("GRAPHBENCH_ABC", str(path))


X0 = "printf 'aag 2 2 0 1 0\\n2\\n4\\n2\\n' > $i.aig"  # a circuit of input 0
GOOD, BAD = np.array([[0, 1, 0, 1]], bool), np.array([[1, 1, 0, 1]], bool)
ONLY_BAD = 'if grep -q "00 1" $i.pla; then {}; fi'  # the table of BAD is 1 where both inputs are 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("kill -SEGV $$", "SIGSEGV"),
        ("echo no memory; exit 3", "exit status 3.*no memory"),
        ("printf 'aag 2 2 0 1 0' > $i.aig; exit 0", "wrote no circuit"),
        ("while :; do :; done", "guard of 0.1 s of processor time"),
    ],
)
def test_a_table_at_which_abc_fails_costs_no_other_its_circuit(tmp_path, monkeypatch, what, reason):
    monkeypatch.setattr(abc_process, "_START_SECONDS", 0.1)
    faulty(tmp_path, monkeypatch, ONLY_BAD.format(what), X0)
    found = synthesis.try_synthesise([GOOD, GOOD, BAD, GOOD, BAD], "strash", seconds=0.1)
    assert [isinstance(circuit, str) for circuit in found] == [False, False, True, False, True]
    assert all(re.search(reason, found[i]) for i in (2, 4))
    with pytest.raises(SolverError, match=f"table 2 of 3: .*{reason}"):
        synthesise([GOOD, GOOD, BAD], "strash", seconds=0.1)


def test_wrong_circuits_are_refused(tmp_path, monkeypatch):
    faulty(tmp_path, monkeypatch, X0)
    found = synthesis.try_synthesise([GOOD, BAD, GOOD], "strash")
    assert [isinstance(circuit, str) for circuit in found] == [False, True, False]
    assert "does not compute" in found[1]


def test_memory_is_guarded(tmp_path, monkeypatch):
    wait = 'for t in $(seq 100); do if [ "$(ulimit -v)" = unlimited ]; then sleep 0.1; fi; done'  # set once it runs
    faulty(tmp_path, monkeypatch, wait, f"ulimit -v > {tmp_path}/kib", X0)
    synthesise([GOOD], "strash", memory_mb=512)
    assert (tmp_path / "kib").read_text().strip() == str(512 << 10)


def test_wrong_arguments():
    with pytest.raises(ArgumentError, match=r"there is no script 'resyn3'.*resyn2"):
        synthesise(tables(1), "resyn3")
    with pytest.raises(ArgumentError, match="seconds is 0"):
        synthesise(tables(1), seconds=0)
    with pytest.raises(CircuitError, match="table 1"):
        synthesise([[0, 1], [0, 1, 1]])


@pytest.mark.parametrize("m", [1, 3])
def test_pla_files(m):
    for table in tables(4, shapes=((4, m),)):
        lines = abc_process.pla_bytes(table).decode().splitlines()
        assert lines[:2] == [".i 4", f".o {m}"] and lines[-1] == ".e" and lines[2] == f".p {len(lines) - 4}"
        again = np.zeros_like(table)
        for line in lines[3:-1]:
            inputs, outputs = line.split(" ")
            again[:, sum(1 << i for i, c in enumerate(inputs) if c == "1")] = [c == "1" for c in outputs]
            assert "1" in outputs
        assert to_text(again) == to_text(table)


def test_the_process_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    faulty(tmp_path, monkeypatch, X0)
    synthesise([GOOD] * 3, "strash")
    assert list((tmp_path / "tmp").iterdir()) == []
