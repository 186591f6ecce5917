"""Every reader of files from outside: hostile and damaged ones end in one error that names the file, in little memory.

The module is also the program that reads the files: each case runs in a process of its own, which is forked from one
that has imported the readers, and has a limit of memory above what it has and a limit of time.
"""

from __future__ import annotations

import bz2
import gzip
import io
import itertools
import json
import lzma
import os
import random
import resource
import signal
import sqlite3
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

MEMORY = 400 << 20  # bytes that a reader may take beyond those of the process that has imported it
REPOSITORY = Path(__file__).resolve().parents[1]
SECONDS = 20  # of the processor
SPARSE = 5 << 30  # bytes of files that take no room on the disk
KEY, DIGEST = "a" * 64, "0123456789abcdef" * 2
Build = Callable[[Path], Path]
Read = Callable[[Path], object]


# ---------------------------------------------------------------------------------------------------- the readers


def _torch(path: Path) -> object:
    from graphbench.data.sources.torch_files import read_torch_file

    return read_torch_file(path)


def _mapped(path: Path) -> object:
    from graphbench.data.sources.torch_files import read_torch_file

    return read_torch_file(path, mapped=True)


def _arrays(path: Path) -> object:
    from graphbench.evaluation.array_files import read_arrays

    return read_arrays(path, 1 << 26)


def _texts(path: Path) -> object:
    from graphbench.tasks.files import read_texts

    return read_texts(path)


def _labels(path: Path) -> object:
    from graphbench.data.build.label_tables import read_tables

    return read_tables(path)


def _gbd(path: Path) -> object:
    from graphbench.domains.sat.gbd import read_gbd

    return read_gbd(path)


def _formula(path: Path) -> object:
    from graphbench.domains.sat.formula_files import read_formula

    return read_formula(path)


def _arff(path: Path) -> object:
    from graphbench.domains.sat.arff import read_arff

    return read_arff(path)


def _aslib(path: Path) -> object:
    from graphbench.domains.sat.aslib_files import read_scenario

    return read_scenario(path.parent)


def _space(path: Path) -> object:
    from graphbench.tuning.space_file import load_tuning_file

    return load_tuning_file(path).configuration_space()


def _space_content(path: Path) -> object:
    from graphbench.tuning.space_file import load_tuning_file

    return load_tuning_file(path, "algoreas")


def _card(path: Path) -> object:
    from graphbench.catalog.families import load_family

    return load_family(path)


def _published(path: Path) -> object:
    from graphbench.records.published import read_published

    return read_published(path)


def _description(path: Path) -> object:
    from graphbench.core.errors import ResultError
    from graphbench.leaderboard.submissions.description import read_description

    try:
        return read_description(path)
    except ResultError as error:  # whoever checks a submission writes the file's name before it
        raise ResultError(f"{path}: {error}") from error


def _record(path: Path) -> object:
    from graphbench.records.files import read_record

    return read_record(path)


def _manifest(path: Path) -> object:
    from graphbench.data.store.layout import Manifest

    return Manifest(path.parent).read()


def _store(path: Path) -> object:
    from graphbench.data.store.files import map_arrays

    return {name: array.sum() for name, array in map_arrays(path).items()}


def _checkpoint(path: Path) -> object:
    from graphbench.training.checkpoint import load_tensors

    return load_tensors(path)


def _weights(path: Path) -> object:
    from graphbench.training.weights.files import read_weights

    return read_weights(path)


def _run_config(path: Path) -> object:
    from graphbench.training.folders import load_config_of_run

    return load_config_of_run(path.parent)


def _circuit(path: Path) -> object:
    from graphbench.domains.chip_design.aiger import read_parts

    return read_parts(path)


def _converters(path: Path) -> object:
    from graphbench.domains.circuits.reference_files import read_simulated_circuits

    return read_simulated_circuits(path)


def _answers(path: Path) -> object:
    from graphbench.tasks.text.language import read_answers

    return read_answers(path)


def _kinship(path: Path) -> object:
    from graphbench.domains.clutrr.files.official import read_official

    return read_official(path.parent)


def _tarball(path: Path) -> object:
    from graphbench.domains.social.archive_files import read_blocks

    return [block.content for block in read_blocks(path, (".json",))]


def _download(path: Path) -> object:
    from graphbench.data.sources.downloads import Download, _unpack

    target = Path(tempfile.mkdtemp(dir=path.parent))
    _unpack(Download(f"https://example.org/{path.name}", path.stat().st_size, "0" * 64), path, target)
    return target


def _journal(path: Path) -> object:
    from graphbench.tuning.journal import parse_events

    return parse_events(path.read_bytes(), path)


def _weather(path: Path) -> object:
    from graphbench.domains.weather.zarr_files import open_store

    store = open_store(path)
    return store.read(0, 2)


def _loaded_reader(read: Read) -> None:
    """Import what a reader needs, so that children need not."""
    with suppress(Exception):  # what is raised is no matter here
        read(Path("/nonexistent/folder/file.npz"))


# ---------------------------------------------------------------------------------------------------- good files


def _zip(path: Path, packed: int = zipfile.ZIP_STORED, **entries: bytes) -> Path:
    with zipfile.ZipFile(path, "w", packed) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return path


def _torch_zip(path: Path, instructions: bytes, packed: int = zipfile.ZIP_STORED, **storages: bytes) -> Path:
    entries = {"a/data.pkl": instructions, **{f"a/data/{key}": content for key, content in storages.items()}}
    return _zip(path, packed, **entries)


def _tensor_pickle(count: int = 6) -> bytes:
    """Return the instructions for a tensor of the storage 0, as torch.save writes them."""
    reference = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuJ"
    reference += struct.pack("<i", count) + b"tQ"
    return b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + reference + b"K\x00K\x06\x85K\x01\x85\x89}tR."


def good_torch(folder: Path) -> Path:
    return _torch_zip(folder / "x.pt", _tensor_pickle(), **{"0": np.arange(6, dtype="<f4").tobytes()})


def good_npz(folder: Path) -> Path:
    np.savez_compressed(folder / "p.npz", y_pred=np.arange(40.0).reshape(20, 2))
    return folder / "p.npz"


def good_npy(folder: Path) -> Path:
    np.save(folder / "p.npy", np.arange(40.0).reshape(20, 2))
    return folder / "p.npy"


def _written(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def good_texts(folder: Path) -> Path:
    return _written(folder / "p.jsonl", '"one"\n{"output": "two"}\n')


HEAD = {"labeller": "sat.kissat", "version": 1, "effort": {"conflicts": 10}, "columns": ["steps", "solved"]}


def good_labels(folder: Path) -> Path:
    rows = f"# {json.dumps(HEAD)}\nkey,steps,solved\n" + "".join(f"{i:064x},{i},1\n" for i in range(50))
    return _written(folder / "t.csv.xz", lzma.compress(rows.encode()))


def good_database(folder: Path) -> Path:
    with sqlite3.connect(folder / "g.db") as database:
        database.execute("CREATE TABLE features (hash TEXT UNIQUE NOT NULL, kissat TEXT DEFAULT 'empty')")
        database.executemany("INSERT INTO features VALUES (?, ?)", [(f"{i:032x}", str(i)) for i in range(50)])
    database.close()
    return folder / "g.db"


def good_gbd_csv(folder: Path) -> Path:
    return _written(folder / "g.csv", "hash,kissat\n" + "".join(f"{i:032x},{i}\n" for i in range(20)))


CNF = b"c a formula\np cnf 3 2\n1 -2 0\n2 3 0\n"


def good_formula(folder: Path, ending: str = ".cnf", pack: Callable[[bytes], bytes] = bytes) -> Path:
    return _written(folder / f"f{ending}", pack(CNF))


ARFF = "@RELATION r\n@ATTRIBUTE instance_id STRING\n@ATTRIBUTE x NUMERIC\n@ATTRIBUTE s {ok, 'not ok'}\n@DATA\n"


def good_arff(folder: Path) -> Path:
    return _written(folder / "t.arff", ARFF + "'a b',1,ok\nb,?,'not ok'\n")


def good_aslib(folder: Path) -> Path:
    runs = "@RELATION r\n@ATTRIBUTE instance_id STRING\n@ATTRIBUTE repetition NUMERIC\n@ATTRIBUTE algorithm STRING\n"
    runs += "@ATTRIBUTE runtime NUMERIC\n@ATTRIBUTE runstatus {ok,timeout}\n@DATA\na,1,x,1,ok\nb,1,x,2,ok\n"
    _written(folder / "algorithm_runs.arff", runs)
    values = "@RELATION r\n@ATTRIBUTE instance_id STRING\n@ATTRIBUTE repetition NUMERIC\n@ATTRIBUTE f NUMERIC\n@DATA\n"
    _written(folder / "feature_values.arff", values + "a,1,1\nb,1,2\n")
    text = "scenario_id: T\nperformance_measures: runtime\nperformance_type: runtime\nalgorithm_cutoff_time: 10\n"
    return _written(folder / "description.txt", text)


def good_space(folder: Path) -> Path:
    text = "title: t\nspace:\n  x: {type: float, range: [0.1, 1]}\nbudget: {min: 1, max: 9}\n"
    return _written(folder / "s.yaml", text)


def good_store(folder: Path) -> Path:
    from graphbench.data.store.files import write_arrays

    write_arrays(folder / "s.h5", {"x": np.arange(60, dtype=np.float32).reshape(20, 3), "y": np.arange(7)})
    return folder / "s.h5"


def good_manifest(folder: Path) -> Path:
    return _written(folder / "manifest.json", json.dumps({"format": 1, "files": {}}))


def good_checkpoint(folder: Path) -> Path:
    import torch

    from graphbench.training.checkpoint import save_tensors

    save_tensors(folder / "c.safetensors", {"model.w": torch.arange(6.0)}, {"step": 1})
    return folder / "c.safetensors"


def good_weights(folder: Path) -> Path:
    from graphbench.training.weights.files import weights_dir

    content = (weights_dir() / "clutrr" / "gen_23" / "gat_small.safetensors").read_bytes()
    (folder / "w.safetensors").write_bytes(content)
    return folder / "w.safetensors"


def good_circuit(folder: Path, name: str = "c.aag") -> Path:
    if name == "c.aig":
        return _written(folder / name, b"aig 3 2 0 1 1\n6\n\x02\x02")
    return _written(folder / name, b"aag 3 2 0 1 1\n2\n4\n6\n6 4 2\n")


def good_converters(folder: Path) -> Path:
    one = {"netlist": [["Sa0", "IN", "OUT"]], "duty_cycle": 0.1, "rout": 1, "cout": 1, "freq": 1, "vout": 1, "eff": 1}
    return _written(folder / "d.json", json.dumps({"a": one}))


def good_answers(folder: Path) -> Path:
    return _written(folder / "a.jsonl", json.dumps({"format": 1, "model": "m"}) + "\n")


def good_journal(folder: Path) -> Path:
    return _written(folder / "journal.jsonl", '{"event": "opened", "elapsed": 1.0}\n')


def _tar(path: Path, mode: str, **entries: bytes) -> Path:
    with tarfile.open(path, mode) as archive:
        for name, content in entries.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def good_tarball(folder: Path) -> Path:
    return _tar(folder / "user_posts.tar.gz", "w:gz", **{"a.json": b'{"x": 1}\n' * 500})


def good_zip(folder: Path) -> Path:
    return _zip(folder / "d.zip", zipfile.ZIP_DEFLATED, **{"a.txt": bytes(range(256)) * 20})


def good_tar(folder: Path, ending: str = "tar.gz") -> Path:
    mode = {"tar": "w", "tar.gz": "w:gz", "tar.bz2": "w:bz2", "tar.xz": "w:xz"}[ending]
    return _tar(folder / f"d.{ending}", mode, **{"a.txt": bytes(range(256)) * 20})


def good_weather(folder: Path, codec: object = "auto", **shapes: int) -> Path:
    """Write a store of WeatherBench's layout with 3 times; ``shapes`` are lengths that coordinates declare instead."""
    import zarr

    from graphbench.domains.weather.channels import ATMOSPHERE, LEVELS, SURFACE, is_surface

    path = folder / "w.zarr"
    group = zarr.open_group(str(path), mode="w", zarr_format=2)
    options = {} if codec == "auto" else {"compressors": codec}
    lengths = {"time": 3, "level": 13, "longitude": 8, "latitude": 4}
    values = {
        "time": np.arange(3) * 6,
        "level": np.array(LEVELS),
        "longitude": np.arange(8) * 45.0,
        "latitude": -90 + 45 * (np.arange(4) + 0.5),
    }
    for name, content in values.items():
        shape = (shapes.get(name, len(content)),)
        array = group.create_array(name, shape=shape, dtype=content.dtype, chunks=(min(shape[0], 10**6),), **options)
        array[: len(content)] = content
        array.attrs.update({"_ARRAY_DIMENSIONS": [name]})
        if name == "time":
            array.attrs.update({"units": "hours since 1959-01-01", "calendar": "standard"})
    rng = np.random.default_rng(0)
    for name, units in {**SURFACE, **ATMOSPHERE}.items():
        dimensions = [d for d in lengths if d != "level" or not is_surface(name)]
        shape = tuple(shapes.get(d, lengths[d]) for d in dimensions)
        array = group.create_array(name, shape=shape, dtype=np.float32, chunks=(1, *shape[1:]), **options)
        if not shapes:
            array[...] = rng.normal(size=shape).astype(np.float32)
        array.attrs.update({"_ARRAY_DIMENSIONS": dimensions, "units": units})
    return path


def _shipped(place: str, name: str | None = None) -> Build:
    """Return what copies a file of the repository."""

    def made(folder: Path) -> Path:
        file = sorted(REPOSITORY.glob(place))[0]
        return _written(folder / (name or file.name), file.read_bytes())

    return made


GOOD: dict[str, tuple[Build, Read]] = {
    "card": (_shipped("datasets/co/er.yaml"), _card),
    "published": (_shipped("baselines/published/clutrr.yaml"), _published),
    "record": (_shipped("baselines/results/**/*.json"), _record),
    "space-shipped": (_shipped("hpo/algoreas/gin.yaml"), _space_content),
    "torch": (good_torch, _torch),
    "torch-mapped": (good_torch, _mapped),
    "npz": (good_npz, _arrays),
    "npy": (good_npy, _arrays),
    "texts": (good_texts, _texts),
    "labels": (good_labels, _labels),
    "database": (good_database, _gbd),
    "gbd-csv": (good_gbd_csv, _gbd),
    "formula": (good_formula, _formula),
    "formula-gz": (lambda folder: good_formula(folder, ".cnf.gz", gzip.compress), _formula),
    "formula-bz2": (lambda folder: good_formula(folder, ".cnf.bz2", bz2.compress), _formula),
    "formula-xz": (lambda folder: good_formula(folder, ".cnf.xz", lzma.compress), _formula),
    "arff": (good_arff, _arff),
    "aslib": (good_aslib, _aslib),
    "space": (good_space, _space),
    "store": (good_store, _store),
    "manifest": (good_manifest, _manifest),
    "checkpoint": (good_checkpoint, _checkpoint),
    "weights": (good_weights, _weights),
    "circuit": (good_circuit, _circuit),
    "circuit-binary": (lambda folder: good_circuit(folder, "c.aig"), _circuit),
    "converters": (good_converters, _converters),
    "answers": (good_answers, _answers),
    "journal": (good_journal, _journal),
    "tarball": (good_tarball, _tarball),
    "download-zip": (good_zip, _download),
    "download-tar": (lambda folder: good_tar(folder, "tar"), _download),
    "download-tgz": (good_tar, _download),
    "download-bz2": (lambda folder: good_tar(folder, "tar.bz2"), _download),
    "download-xz": (lambda folder: good_tar(folder, "tar.xz"), _download),
}
OTHERS: dict[str, tuple[str, Read]] = {  # readers of text, whose good files other tests have
    "card": ("c.yaml", _card),
    "published": ("p.yaml", _published),
    "description": ("submission.yaml", _description),
    "record": ("r.json", _record),
    "run-config": ("config.json", _run_config),
    "kinship": ("1.2_train.csv", _kinship),
}


# ---------------------------------------------------------------------------------------------------- damage to any


def _damaged(build: Build, change: Callable[[bytes], bytes]) -> Build:
    def made(folder: Path) -> Path:
        path = build(folder)
        path.write_bytes(change(path.read_bytes()))
        return path

    return made


def _sparse(name: str) -> Build:
    """Return what makes a file of 5 GB of zeros, which is one line for readers of text."""

    def made(folder: Path) -> Path:
        path = _written(folder / name, b"")
        os.truncate(path, SPARSE)
        return path

    return made


def _pipe(build: Build) -> Build:
    """Return what makes a named pipe in the place of a file; nobody writes to it, so that reading it never ends."""

    def made(folder: Path) -> Path:
        path = build(folder)
        path.unlink()
        os.mkfifo(path)
        return path

    return made


def _refused_by_all() -> Iterator[tuple[str, Build, Read]]:
    for name, (build, read) in GOOD.items():
        yield f"{name}: no magic", _damaged(build, lambda content: b"\xfe\xffnothing\0\0" + content[11:]), read
        if name != "journal":  # which is empty before the first event
            yield f"{name}: empty", _damaged(build, lambda _: b""), read
        if name not in ("aslib", "manifest", "journal"):  # a folder, and what is written again or opened by others
            yield f"{name}: a pipe", _pipe(build), read
    for name, (file, read) in OTHERS.items():
        yield f"{name}: no magic", lambda folder, file=file: _written(folder / file, b"\xfe\xffnothing\0\0"), read
        yield f"{name}: deep", lambda folder, file=file: _written(folder / file, "[" * 200_000), read
        yield f"{name}: 5 GB", _sparse(file), read
        yield f"{name}: pipe", _pipe(lambda folder, file=file: _written(folder / file, b"")), read
    for name in ("npy", "texts", "gbd-csv", "formula", "arff", "space", "manifest", "converters", "answers", "circuit"):
        build, read = GOOD[name]
        yield f"{name}: 5 GB", lambda folder, build=build: _sparse(build(folder).name)(folder), read
    for name in ("torch", "npz", "checkpoint", "weights", "store", "formula-gz", "formula-bz2", "formula-xz", "labels"):
        build, read = GOOD[name]
        yield f"{name}: cut in half", _damaged(build, lambda content: content[: len(content) // 2]), read
    for name in ("formula-gz", "formula-xz", "labels", "tarball"):
        build, read = GOOD[name]
        yield f"{name}: cut at its end", _damaged(build, lambda content: content[:-9]), read
    for name in ("formula-gz", "formula-xz", "labels"):
        build, read = GOOD[name]
        yield f"{name}: garbage behind it", _damaged(build, lambda content: content + b"garbage!"), read
    yield "formula-gz: wrong sum", _damaged(GOOD["formula-gz"][0], _flipped(-8)), _formula


def _flipped(place: int) -> Callable[[bytes], bytes]:
    def change(content: bytes) -> bytes:
        changed = bytearray(content)
        changed[place] ^= 0x55
        return bytes(changed)

    return change


# ---------------------------------------------------------------------------------------------------- hostile files

LAUGHS = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10)
)


def _doubled(depth: int = 60) -> bytes:
    """Return instructions that leave a tuple on the stack that holds one tuple twice, and so on; each is remembered."""
    return b")q\x00" + b"".join(b"h%ch%c\x86q%c" % (i, i, i + 1) for i in range(depth))


def _npz_of_zeros(folder: Path, size: int = 4 << 30) -> Path:
    """Write zeros that unpack to 4 GB, from pieces that are packed once."""
    path = folder / "p.npz"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("y_pred.npy", "w", force_zip64=True) as file,
    ):
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (size // 4,)})
        for _ in range(size >> 24):
            file.write(bytes(1 << 24))
    return path


def _npy_header(folder: Path, header: str) -> Path:
    raw = header.encode() + b"\n"
    return _written(folder / "p.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(raw)) + raw + bytes(64))


def _encrypted(path: Path) -> Path:
    """Mark the entries of a ZIP archive as encrypted."""
    content = bytearray(path.read_bytes())
    for start, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = content.find(start)
        while place >= 0:
            content[place + flags] |= 1
            place = content.find(start, place + 4)
    return _written(path, bytes(content))


def _twice(path: Path, name: str) -> Path:
    import warnings

    with warnings.catch_warnings(), zipfile.ZipFile(path, "a") as archive:
        warnings.simplefilter("ignore")
        archive.writestr(name, b"again")
    return path


def _database(folder: Path, *statements: str) -> Path:
    path = good_database(folder)
    with sqlite3.connect(path) as database:
        for statement in statements:
            database.execute(statement)
    database.close()
    return path


def _long_line_of_labels(folder: Path) -> Path:
    """Write a table with a line of 4 GB: one packed stream, many times."""
    head = lzma.compress(f"# {json.dumps(HEAD)}\nkey,steps,solved\n".encode())
    return _written(folder / "t.csv.xz", head + lzma.compress(b"1" * (1 << 25), preset=0) * 128)


def _blanks(path: Path, pack: Callable[[bytes], bytes]) -> Path:
    """Write a formula of 5 GB of blanks in 40 compressed streams."""
    return _written(path, pack(b"p cnf 1 1\n1 0\n" + b" " * (1 << 27)) * 40)


def _wide_xz(folder: Path) -> Path:
    """Write a formula whose decoder needs a dictionary of 1.5 GB."""
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 20}]
    content = bytearray(lzma.compress(CNF, filters=filters))
    content[12 + 4] = 37 if content[12 + 2] == lzma.FILTER_LZMA2 else content[12 + 4]
    import zlib

    content[12 + 8 : 12 + 12] = struct.pack("<I", zlib.crc32(bytes(content[12 : 12 + 8])))
    return _written(folder / "f.cnf.xz", bytes(content))


def _long_pax(folder: Path) -> Path:
    """Write a tarball whose first entry describes the next one in 2 GB."""
    info = tarfile.TarInfo("pax")
    info.type, info.size = tarfile.XHDTYPE, 2 << 30
    path = folder / "user_posts.tar.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(info.tobuf(tarfile.USTAR_FORMAT))
        for _ in range(info.size >> 24):
            file.write(bytes(1 << 24))
    return path


def _sparse_runs(folder: Path) -> Path:
    path = good_aslib(folder).with_name("algorithm_runs.arff")
    runs = (folder / "algorithm_runs.arff").read_text().split("@DATA")[0] + "@DATA\n"
    values = (folder / "feature_values.arff").read_text().split("@DATA")[0] + "@DATA\n"
    _written(folder / "algorithm_runs.arff", runs + "".join(f"i{i},{i + 1},x{i},1,ok\n" for i in range(1000)))
    _written(folder / "feature_values.arff", values + "".join(f"i{i},1,1\n" for i in range(1000)))
    return path


def _with_entry(folder: Path, size: int) -> Path:
    """Write a download whose one file unpacks far beyond what an archive of its size may hold."""
    return _zip(folder / "d.zip", zipfile.ZIP_DEFLATED, **{"zeros": bytes(size)})


def _blosc_of(folder: Path, size: int) -> Path:
    path = good_weather(folder, _v2_codec("Blosc"))
    for chunk in (path / "temperature").glob("[0-9]*"):
        content = bytearray(chunk.read_bytes())
        content[4:8] = struct.pack("<I", size)
        chunk.write_bytes(bytes(content))
    return path


def _v2_codec(name: str) -> object:
    import numcodecs

    return getattr(numcodecs, name)()


def _weather_bomb(folder: Path, codec: str, content: bytes) -> Path:
    path = good_weather(folder, _v2_codec(codec))
    for chunk in (path / "temperature").glob("[0-9]*"):
        chunk.write_bytes(content)
    return path


def _packed_zeros(pack: Callable[[bytes], bytes]) -> bytes:
    """Return streams, one after the other, that unpack to 1 GB."""
    return pack(bytes(1 << 26)) * 16


def _json_of_lists(folder: Path, name: str) -> Path:
    return _written(folder / name, "[" + "[]," * (30 << 20) + "[]]")


def _hostile() -> Iterator[tuple[str, Build, Read]]:
    one = {"0": np.arange(6, dtype="<f4").tobytes()}
    keys = b"\x80\x02}" + _doubled() + b"K\x01s."
    yield "torch: nested tuples as keys", lambda f: _torch_zip(f / "x.pt", keys), _torch
    members = b"\x80\x04\x8f(" + _doubled() + b"\x90."
    yield "torch: nested tuples in a set", lambda f: _torch_zip(f / "x.pt", members), _torch
    frozen = b"\x80\x04(" + _doubled() + b"\x91."
    yield "torch: nested tuples in a frozen set", lambda f: _torch_zip(f / "x.pt", frozen), _torch
    reduced = b"\x80\x02cbuiltins\nset\n](" + _doubled() + b"e\x85R."
    yield "torch: nested tuples in a set of a list", lambda f: _torch_zip(f / "x.pt", reduced), _torch
    persistent = b"\x80\x02" + _doubled() + b"Q."
    yield "torch: a nested persistent id", lambda f: _torch_zip(f / "x.pt", persistent), _torch
    named = b"\x80\x02(X\x07\x00\x00\x00storagectorch\nFloatStorage\n" + _doubled() + b"X\x03\x00\x00\x00cpuK\x06tQ."
    yield "torch: a storage of a nested name", lambda f: _torch_zip(f / "x.pt", named), _torch
    called = b"\x80\x04" + _doubled() + _doubled(9) + b"\x93."
    yield "torch: a function of a nested name", lambda f: _torch_zip(f / "x.pt", called), _torch
    wide = b"\x80\x02}" + b"\x8b" + struct.pack("<i", 4000) + b"\x01" * 4000 + b"K\x01s."
    yield "torch: a number of 4,000 bytes as a key", lambda f: _torch_zip(f / "x.pt", wide), _torch
    colliding = b"".join(b"\x8a\x10" + (i * (2**61 - 1)).to_bytes(16, "little") + b"K\x01" for i in range(1, 60_000))
    yield "torch: keys of one hash", lambda f: _torch_zip(f / "x.pt", b"\x80\x02}(" + colliding + b"u."), _torch
    huge = b"\x80\x02c__builtin__\nbytearray\n\x8a\x05" + (1 << 33).to_bytes(5, "little") + b"\x85R."
    yield "torch: an array of 8 GB of bytes", lambda f: _torch_zip(f / "x.pt", huge), _torch
    yield "torch: a storage longer than its entry", lambda f: _torch_zip(f / "x.pt", _tensor_pickle(9), **one), _mapped
    yield (
        "torch: a compressed storage",
        lambda f: _torch_zip(f / "x.pt", _tensor_pickle(), zipfile.ZIP_DEFLATED, **{"0": bytes(1 << 28)}),
        _torch,
    )
    yield (
        "torch: a compressed storage, mapped",
        lambda f: _torch_zip(f / "x.pt", _tensor_pickle(), zipfile.ZIP_DEFLATED, **{"0": bytes(1 << 20)}),
        _mapped,
    )
    repeated = b"\x80\x02](" + (
        _tensor_pickle()[2:-1].replace(b"K\x06\x85K\x01\x85", b"J\x00\x00\x00\x01\x85K\x00\x85") * 99
    )
    yield "torch: tensors that repeat a number", lambda f: _torch_zip(f / "x.pt", repeated + b"e.", **one), _torch
    yield "torch: 40 million lists", lambda f: _torch_zip(f / "x.pt", b"\x80\x02" + b"]" * (40 << 20) + b"."), _torch
    yield "torch: encrypted", lambda f: _encrypted(good_torch(f)), _torch
    yield "torch: an entry twice", lambda f: _twice(good_torch(f), "a/data/0"), _torch

    yield "npz: 4 GB of zeros", _npz_of_zeros, _arrays
    yield "npz: encrypted", lambda f: _encrypted(good_npz(f)), _arrays
    yield "npz: an entry twice", lambda f: _twice(good_npz(f), "y_pred.npy"), _arrays
    yield "npz: damaged values", lambda f: _damaged(good_npz, _flipped(60))(f), _arrays
    for what, header in {
        "a huge shape": "{'descr': '<f4', 'fortran_order': False, 'shape': (10000000000000,)}",
        "a huge shape in Fortran's order": "{'descr': '<f4', 'fortran_order': True, 'shape': (4000000, 4000000)}",
        "objects": "{'descr': '|O', 'fortran_order': False, 'shape': (2,)}",
        "records": "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (16,)}",
        "a shape below zero": "{'descr': '<f4', 'fortran_order': False, 'shape': (-4, -4)}",
        "deep brackets": "(" * 9000,
        "a long header": "{'descr': '<f4', 'fortran_order': False, 'shape': (16,)}" + " " * 60_000,
        "an expression": "{'descr': '<f4', 'fortran_order': False, 'shape': (2**64,)}",
    }.items():
        yield f"npy: {what}", lambda f, header=header: _npy_header(f, header), _arrays

    yield "texts: deep JSON", lambda f: _written(f / "p.jsonl", "[" * 200_000), _texts
    yield "labels: a line of 4 GB", _long_line_of_labels, _labels
    yield (
        "labels: a head of deep JSON",
        lambda f: _written(f / "t.csv.xz", lzma.compress(b"# " + b"[" * 60_000)),
        _labels,
    )

    generated = "ALTER TABLE features ADD COLUMN x GENERATED ALWAYS AS (zeroblob(900000000))"
    yield "database: generated columns", lambda f: _database(f, generated), _gbd
    indirect = "CREATE TABLE x (hash TEXT, value TEXT AS (hex(zeroblob(400000000))) STORED)"
    yield "database: generated columns that are stored", lambda f: _database(f, indirect), _gbd
    default = f"ALTER TABLE features ADD COLUMN x TEXT DEFAULT '{'x' * 900_000}'"
    yield "database: a long default", lambda f: _database(f, default), _gbd
    virtual = "CREATE VIRTUAL TABLE v USING fts5(hash, value)"
    yield "database: virtual tables", lambda f: _database(f, virtual), _gbd
    yield "database: cut", _damaged(good_database, lambda content: content[:-4096]), _gbd
    yield "database: damaged pages", _damaged(good_database, lambda c: c[:4096] + bytes(100) + c[4196:]), _gbd
    yield "gbd-csv: an open quote", lambda f: _written(f / "g.csv", 'hash,x\n"' + "a,\n" * (1 << 20)), _gbd

    for ending, pack in ((".bz2", bz2.compress), (".xz", lzma.compress), (".gz", gzip.compress)):
        yield f"formula: blanks in {ending}", lambda f, e=ending, p=pack: _blanks(f / f"f.cnf{e}", p), _formula
    yield "formula: a dictionary of 1.5 GB", _wide_xz, _formula
    yield (
        "formula: variables that no clause has",
        lambda f: _written(f / "f.cnf", "p cnf 2147483647 1\n1 0\n"),
        _formula,
    )

    nominal = "@RELATION r\n@ATTRIBUTE a {" + ",".join(map(str, range(100_000))) + "}\n@DATA\n" + "99999\n" * 50_000
    yield "arff: many values, the last of which is none", lambda f: _written(f / "t.arff", nominal + "x\n"), _arff
    quotes = "@RELATION r\n@ATTRIBUTE a STRING\n@DATA\n" + "''," * 1_000_000 + "\n"
    yield "arff: a million quotes", lambda f: _written(f / "t.arff", quotes), _arff
    yield "aslib: a thousand million runs", _sparse_runs, _aslib
    blank_lines = lambda f: _written(good_aslib(f), "a: b\n" + "\n" * 900_000 + "x")  # noqa: E731
    yield "aslib: blank lines", blank_lines, _aslib

    for name, (file, read) in {"space": ("s.yaml", _space), "aslib": ("description.txt", _aslib), **OTHERS}.items():
        if file.endswith((".yaml", ".txt")):
            yield f"{name}: aliases", lambda f, file=file: _written(f / file, LAUGHS), read
            yield f"{name}: an alias of itself", lambda f, file=file: _written(f / file, "a: &a [*a]\n"), read
            merged = "a0: &a {x: 1}\n" + "b: {<<: [" + "*a," * 200_000 + "*a]}\n"
            yield f"{name}: merged aliases", lambda f, file=file, text=merged: _written(f / file, text), read
            yield f"{name}: a bad date", lambda f, file=file: _written(f / file, "a: 2001-99-99\n"), read
            yield f"{name}: bad tags", lambda f, file=file: _written(f / file, "a: !!int ''\nb: !!timestamp x\n"), read
            yield f"{name}: a long number", lambda f, file=file: _written(f / file, f"a: {'9' * 5000}\n"), read
    for name in ("record", "run-config"):
        file, read = OTHERS[name]
        yield f"{name}: lists", lambda f, file=file: _json_of_lists(f, file), read

    yield (
        "store: a header of zeros",
        _damaged(good_store, lambda content: content[:8] + bytes(len(content) - 8)),
        _store,
    )
    yield (
        "checkpoint: a long header",
        lambda f: _written(f / "c.safetensors", struct.pack("<Q", 1 << 40) + b"{}"),
        _checkpoint,
    )
    deep = json.dumps({"__metadata__": {"graphbench": "[" * 100_000}}).encode()
    yield (
        "checkpoint: deep facts",
        lambda f: _written(f / "c.safetensors", struct.pack("<Q", len(deep)) + deep),
        _checkpoint,
    )
    yield (
        "weights: deep facts",
        lambda f: _written(f / "w.safetensors", struct.pack("<Q", len(deep)) + deep),
        _weights,
    )
    yield (
        "circuit: ANDs that are not there",
        lambda f: _written(f / "c.aig", b"aig 99999999 1 0 1 99999998\n2\n"),
        _circuit,
    )
    yield "circuit: too many inputs", lambda f: _written(f / "c.aig", b"aig 999999999 999999999 0 0 0\n"), _circuit

    yield "tarball: a description of 2 GB", _long_pax, _tarball
    yield "tarball: a file larger than it says", lambda f: _tar_of_zeros(f, 1 << 29), _tarball
    yield "download: zeros", lambda f: _with_entry(f, 1 << 28), _download
    yield "download: encrypted", lambda f: _encrypted(good_zip(f)), _download
    yield "download: an entry twice", lambda f: _twice(good_zip(f), "a.txt"), _download
    yield "download: damaged values", _damaged(good_zip, _flipped(60)), _download

    yield "weather: 800 million longitudes", lambda f: good_weather(f, longitude=800_000_000), _weather
    yield "weather: 800 million times", lambda f: good_weather(f, time=800_000_000), _weather
    yield "weather: damaged chunks", lambda f: _weather_bomb(f, "Zstd", b"no frame"), _weather
    yield "weather: chunks of Blosc of 2 GB", lambda f: _blosc_of(f, 2**31 - 1), _weather
    yield "weather: chunks of Blosc that are none", lambda f: _weather_bomb(f, "Blosc", b"\xff" * 64), _weather
    yield (
        "weather: chunks of gzip of 1 GB",
        lambda f: _weather_bomb(f, "GZip", _packed_zeros(gzip.compress)),
        _weather,
    )
    yield (
        "weather: chunks of bz2 of 1 GB",
        lambda f: _weather_bomb(f, "BZ2", _packed_zeros(bz2.compress)),
        _weather,
    )


def _tar_of_zeros(folder: Path, size: int) -> Path:
    info = tarfile.TarInfo("a.json")
    info.size = size
    path = folder / "user_posts.tar.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(info.tobuf())
        for _ in range(size >> 24):
            file.write(bytes(1 << 24))
    return path


# ---------------------------------------------------------------------------------------------------- real files


def _larger_formula(folder: Path) -> Path:
    clauses = "".join(f"{i} -{i + 1} {i + 2} 0\n" for i in range(1, 300_000))
    return _written(folder / "f.cnf.xz", lzma.compress(f"p cnf 300001 299999\n{clauses}".encode(), preset=0))


def _larger_arrays(folder: Path) -> Path:
    np.savez_compressed(folder / "p.npz", y_pred=np.zeros((1 << 22, 3), np.float32))
    return folder / "p.npz"


def _larger_torch(folder: Path) -> Path:
    import torch

    torch.save([torch.zeros(1 << 22).reshape(2048, -1).t(), [f"user {i}" for i in range(50_000)]], folder / "x.pt")
    return folder / "x.pt"


def _larger_labels(folder: Path) -> Path:
    rows = "".join(f"{random.Random(i).getrandbits(256):064x},{i},1\n" for i in range(30_000))
    return _written(
        folder / "t.csv.xz", lzma.compress(f"# {json.dumps(HEAD)}\nkey,steps,solved\n{rows}".encode(), preset=0)
    )


def _useful_database(folder: Path) -> Path:
    """Write what databases of GBD have beside tables: views, triggers, indexes and checks."""
    return _database(
        folder,
        "CREATE VIEW v AS SELECT hash FROM features",
        "CREATE TRIGGER t AFTER INSERT ON features BEGIN DELETE FROM features; END",
        "CREATE INDEX i ON features (kissat)",
        "CREATE TABLE family (hash TEXT, value TEXT CHECK (value <> ''))",
    )


def _read_without_fault() -> Iterator[tuple[str, Build, Read]]:
    for name, (build, read) in GOOD.items():
        yield f"{name}: as it is", build, read
    yield "weather: as it is", good_weather, _weather
    for codec in ("Blosc", "GZip", "BZ2", "Zstd", "LZ4", "LZMA"):
        yield f"weather: {codec}", lambda f, codec=codec: good_weather(f, _v2_codec(codec)), _weather
    yield "formula: 300,000 clauses", _larger_formula, _formula
    yield (
        "formula: streams and padding",
        lambda f: _written(f / "f.cnf.xz", lzma.compress(CNF[:20]) + bytes(8) + lzma.compress(CNF[20:])),
        _formula,
    )
    yield "npz: 48 MB of zeros", _larger_arrays, _arrays
    yield "torch: 16 MB and texts", _larger_torch, _torch
    yield "labels: 30,000 rows", _larger_labels, _labels
    yield "database: views and triggers", _useful_database, _gbd
    merged = "title: t\nspace:\n  x: &x {type: float, range: [0.1, 1]}\n  y: *x\nbudget: {min: 1, max: 9}\n"
    yield "space: an alias", lambda f: _written(f / "s.yaml", merged), _space


REFUSED = {name: (build, read) for name, build, read in itertools.chain(_refused_by_all(), _hostile())}
READ = {name: (build, read) for name, build, read in _read_without_fault()}


# ---------------------------------------------------------------------------------------------------- running them


def _limit_memory() -> None:
    taken = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, taken + MEMORY))


def _outcome_of(read: Read, path: Path) -> dict[str, object]:
    """Return how a reader ends: ``read``, ``refused`` or ``foreign``, with class and message."""
    from graphbench.core.errors import GraphBenchError

    try:
        read(path)
    except GraphBenchError as error:
        return {"ended": "refused", "class": type(error).__name__, "words": str(error)[:2000]}
    except BaseException as error:
        return {"ended": "foreign", "class": type(error).__name__, "words": str(error)[:2000]}
    return {"ended": "read", "class": "", "words": ""}


def _in_child(work: Callable[[], object]) -> dict[str, object]:
    """Return what work gives in a child with limits, or the signal that ended the child."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        signal.alarm(4 * SECONDS)
        _limit_memory()
        with os.fdopen(writing, "w") as out:
            json.dump(work(), out)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as content:
        text = content.read()
    _, status = os.waitpid(child, 0)
    return json.loads(text) if text else {"ended": "killed", "class": f"status {status}", "words": ""}


def _run(names: list[str], folder: Path, mutations: int) -> dict[str, object]:
    cases = {**REFUSED, **READ}
    for name, (_, read) in cases.items():
        if name in names:
            _loaded_reader(read)
    found: dict[str, object] = {}
    for number, name in enumerate(names):
        place = folder / str(number)
        place.mkdir()
        build, read = cases[name]
        path = build(place)
        _keep_warm(name, read, path)
        found[name] = {**_in_child(lambda read=read, path=path: _outcome_of(read, path)), "file": path.name}
    for name, (build, read) in GOOD.items() if mutations else ():
        place = folder / f"mutated-{name}"
        (place / "good").mkdir(parents=True)
        _keep_warm(f"{name}: as it is", read, build(place / "good"))
        found[f"mutated: {name}"] = _in_child(lambda name=name, place=place: _mutated(name, place, mutations))
    return found


_WARM: set[Read] = set()


def _keep_warm(name: str, read: Read, path: Path) -> None:
    """Compile what a reader of a good file compiles, once, where no limit is set."""
    if name in READ and read not in _WARM:
        _WARM.add(read)
        with suppress(Exception):  # which the case itself reports
            read(path)


def _mutated(name: str, folder: Path, count: int, seed: int = 0) -> dict[str, object]:
    """Return the first of some changes of a good file that raises a foreign error, if there is one."""
    build, read = GOOD[name]
    path = build(folder)
    good, rng = path.read_bytes(), random.Random(f"{name} {seed}")
    for number in range(count):
        changed = _changed(good, rng)
        path.write_bytes(changed)
        outcome = _outcome_of(read, path)
        if outcome["ended"] == "foreign" or (outcome["ended"] == "refused" and not _names(outcome, path)):
            return {**outcome, "ended": "foreign", "number": number, "content": changed.hex()[:4000]}
    return {"ended": "read", "class": "", "words": ""}


def _names(outcome: dict[str, object], path: Path) -> bool:
    """Return whether a message names the file, or another one beside it, as those of a scenario are."""
    return path.name in str(outcome["words"]) or f"{path.parent}/" in str(outcome["words"])


def _changed(content: bytes, rng: random.Random) -> bytes:
    """Return content with one to four changes: bytes set, cut out, repeated or inserted."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(changed) + 1) if rng.random() < 0.5 else rng.randrange(min(len(changed), 200) + 1)
        long = rng.choice((1, 1, 2, 4, 8, 64))
        kind = rng.randrange(5)
        if kind == 0 and at < len(changed):
            changed[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif kind == 1 and at < len(changed):
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del changed[at : at + long]
        elif kind == 3:
            changed[at:at] = changed[at : at + long]
        else:
            changed[at : at + long] = rng.randbytes(long)
    return bytes(changed)


# ---------------------------------------------------------------------------------------------------- the tests

PACKAGES = {"weather": "zarr"}
SLOW = (
    "torch: 40 million lists",
    "npz: 4 GB of zeros",
    "tarball: a description of 2 GB",
    "tarball: a file larger than it says",
    "formula: blanks in .xz",
    "formula: blanks in .bz2",
    "torch: a compressed storage",
    "download: zeros",
    "weather: chunks of bz2 of 1 GB",
)


def _outcomes(names: list[str], folder: Path, mutations: int = 0) -> dict[str, dict[str, object]]:
    (folder / "names.json").write_text(json.dumps(names), encoding="utf-8")
    words = [sys.executable, __file__, str(folder), str(mutations)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, dict[str, object]] = json.loads((folder / "found.json").read_text(encoding="utf-8"))
    return found


def _installed(name: str) -> bool:
    from importlib.util import find_spec

    package = PACKAGES.get(name.partition(":")[0])
    return package is None or find_spec(package) is not None


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    """Return how every reader ends on every file, and on changed good files."""
    names = [name for name in (*READ, *REFUSED) if _installed(name) and name not in SLOW]
    return _outcomes(names, tmp_path_factory.mktemp("hostile"), mutations=4)


def _require_refused(found: dict[str, object]) -> None:
    assert found["ended"] == "refused", found
    assert str(found["file"]) in str(found["words"])
    assert "\n" not in str(found["words"])


@pytest.mark.parametrize("name", sorted({*REFUSED} - {*SLOW}))
def test_hostile_and_damaged_files_are_refused_by_name(name: str, outcomes: dict[str, dict[str, object]]) -> None:
    if name not in outcomes:
        pytest.skip("the package that reads the file is not installed")
    _require_refused(outcomes[name])


@pytest.mark.slow
def test_files_that_take_long_to_make_are_refused_too(tmp_path: Path) -> None:
    for found in _outcomes(list(SLOW), tmp_path, mutations=0).values():
        _require_refused(found)


@pytest.mark.slow
def test_many_changed_files_end_in_values_or_in_one_error(tmp_path: Path) -> None:
    found = _outcomes([], tmp_path, mutations=400)
    assert found.keys() == {f"mutated: {name}" for name in GOOD}
    assert {name: outcome for name, outcome in found.items() if outcome["ended"] != "read"} == {}


@pytest.mark.parametrize("name", sorted(READ))
def test_good_files_of_real_sizes_are_read(name: str, outcomes: dict[str, dict[str, object]]) -> None:
    if name not in outcomes:
        pytest.skip("the package that reads the file is not installed")
    assert outcomes[name]["ended"] == "read", outcomes[name]


@pytest.mark.parametrize("name", sorted(GOOD))
def test_changed_files_end_in_values_or_in_one_error(name: str, outcomes: dict[str, dict[str, object]]) -> None:
    assert outcomes[f"mutated: {name}"]["ended"] == "read", outcomes[f"mutated: {name}"]


if __name__ == "__main__":
    place = Path(sys.argv[1])
    chosen = json.loads((place / "names.json").read_text(encoding="utf-8"))
    results = _run(chosen, place, int(sys.argv[2]))
    (place / "found.json").write_text(json.dumps(results), encoding="utf-8")
