import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from graphbench.core.errors import StoreError, TuningError
from graphbench.tuning.journal import JOURNAL, open_journal, seconds_of

from .runs import read_journal

_OPEN = "from pathlib import Path\nfrom graphbench.tuning.journal import open_journal\n"


def _write(folder: Path, count: int) -> None:
    with open_journal(folder) as journal:
        for number in range(count):
            journal.append("asked", number=number, text="Ω\n")


def test_events_come_back_in_order(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "run"
    _write(folder, 3)
    with open_journal(folder) as journal:
        assert [event["number"] for event in journal.past] == [0, 1, 2]
        journal.append("finished", number=3)
    assert [(event["event"], event["number"]) for event in read_journal(folder)][2:] == [("asked", 2), ("finished", 3)]
    assert all(event["time"].endswith("+00:00") for event in read_journal(folder))


def test_a_line_torn_at_any_byte_is_cut_off_and_the_next_one_is_whole(tmp_path: Path) -> None:
    _write(tmp_path, 3)
    path = tmp_path / JOURNAL
    content = path.read_bytes()
    start = content[:-1].rfind(b"\n") + 1
    assert len(content) - start > 40
    for length in range(start, len(content) + 1):
        path.write_bytes(content[:length])
        whole = 3 if length == len(content) else 2
        assert len(read_journal(tmp_path)) == whole
        with open_journal(tmp_path) as journal:
            assert [event["number"] for event in journal.past] == list(range(whole))
            journal.append("asked", number=99)
        assert [event["number"] for event in read_journal(tmp_path)] == [*range(whole), 99]


@pytest.mark.parametrize("line", [b"{]\n", b"[]\n", b'"text"\n', b'{"event": "asked"}\n', b"\x00\x00\n", b"\n"])
def test_damage_before_the_end_is_named_with_its_line(tmp_path: Path, line: bytes) -> None:
    _write(tmp_path, 2)
    path = tmp_path / JOURNAL
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + line + second)
    with pytest.raises(TuningError, match=rf"{JOURNAL}:2: .*another output folder"), open_journal(tmp_path):
        pass
    assert path.read_bytes() == first + line + second


def test_a_value_that_json_has_no_word_for_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with open_journal(tmp_path) as journal:
        with pytest.raises(ValueError, match="JSON"):
            journal.append("asked", cost=float("nan"))
        journal.append("asked", cost=1.0)
    assert len(read_journal(tmp_path)) == 1


def test_a_second_process_is_told_that_the_folder_is_in_use(tmp_path: Path) -> None:
    with open_journal(tmp_path):
        with pytest.raises(TuningError, match="another process tunes in"), open_journal(tmp_path):
            pass
        code = f"{_OPEN}with open_journal(Path({str(tmp_path)!r})): pass"
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert "TuningError: another process tunes in" in other.stderr
    with open_journal(tmp_path):
        pass


def test_a_killed_process_holds_no_lock(tmp_path: Path) -> None:
    work = "journal.append('asked', number=7); time.sleep(60)"
    code = f"import time\n{_OPEN}with open_journal(Path({str(tmp_path)!r})) as journal: {work}"
    process = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 30
    while not ((tmp_path / JOURNAL).exists() and (tmp_path / JOURNAL).read_bytes()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    with open_journal(tmp_path) as journal:
        assert [event["number"] for event in journal.past] == [7]


def test_seconds_add_up_over_processes() -> None:
    events = [("opened", 0.0), ("asked", 2.0), ("alive", 5.0), ("opened", 0.5), ("asked", 1.0), ("opened", 0.0)]
    assert seconds_of([{"event": kind, "elapsed": elapsed} for kind, elapsed in events]) == pytest.approx(6.0)
    assert seconds_of([]) == 0.0


def test_the_seconds_of_a_run_go_on_after_a_restart(tmp_path: Path) -> None:
    (tmp_path / JOURNAL).write_text(json.dumps({"event": "opened", "elapsed": 100.0, "time": ""}) + "\n")
    opening = time.monotonic()
    with open_journal(tmp_path) as journal:
        first = journal.seconds
        time.sleep(0.05)
        assert 100.0 <= first < journal.seconds <= 100.0 + time.monotonic() - opening


def test_a_line_that_is_nested_too_deeply_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / JOURNAL).write_text("[" * 100_000 + "]" * 100_000 + "\n")
    words = r"journal.jsonl:1: this line is not valid JSON: it is nested too deeply; restore the file"
    with pytest.raises(TuningError, match=words), open_journal(tmp_path):
        pass


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="another output folder"), open_journal(tmp_path / "file" / "run"):
        pass
