"""The command line names a damaged, encrypted or hostile file in one line: no fault of the package is spoken of."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest

from ..warm import run_python


def _damaged(path):
    np.savez(path, y_pred=np.zeros(3))
    path.write_bytes(path.read_bytes()[:-30])


def _encrypted(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("y_pred.npy", b"x" * 100)
    content = bytearray(path.read_bytes())
    content[6] |= 1
    content[content.find(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)


def _huge(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("y_pred.npy", "w") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (1 << 26,)})
        for _ in range(16):
            file.write(bytes(1 << 24))


@pytest.mark.parametrize(("make", "word"), [(_damaged, "damaged"), (_encrypted, "encrypted"), (_huge, "268,435,")])
def test_predictions(tmp_path, make, word):
    make(tmp_path / "bad.npz")
    command = ["evaluate", "algoreas/mst_easy", "--predictions", str(tmp_path / "bad.npz"), "--limit", "4"]
    done = run_python(["-m", "graphbench", *command, "--root", str(tmp_path)])
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert "bad.npz" in line and word in line and "fault of graphbench" not in done.stderr


def test_search_spaces(tmp_path):
    lists = ["a0: &a0 [x,x,x,x,x,x,x,x,x]", *(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 10))]
    (tmp_path / "space.yaml").write_text("\n".join(lists))
    command = ["tune", "algoreas/mst_easy", "--space", str(tmp_path / "space.yaml"), "--output", str(tmp_path / "out")]
    done = run_python(["-m", "graphbench", *command])
    assert done.returncode == 2
    assert "space.yaml:" in done.stderr and "fault of graphbench" not in done.stderr


def test_too_little_memory_is_no_fault_of_the_package(monkeypatch, capsys):
    from graphbench.cli import app

    def fail(*_, **__):
        raise MemoryError("Unable to allocate 8 PiB")

    monkeypatch.setattr(app, "app", fail)
    monkeypatch.delenv(app.TRACEBACK, raising=False)
    with pytest.raises(SystemExit) as caught:
        app.main(["list"])
    assert caught.value.code == 1
    words = capsys.readouterr().err
    assert "not enough memory" in words and "fault of graphbench" not in words
