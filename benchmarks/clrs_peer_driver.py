"""Runs inside the environment of dm-clrs: draws trajectories and prompts with its own samplers and times them.

``python clrs_peer_driver.py <operation>`` reads the arguments as JSON from the standard input and writes the answer as
JSON to the standard output. This file imports nothing of the package it stands beside.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"


def sample(algorithms: list[str], length: int, count: int, seed: int) -> dict[str, Any]:
    """Return CPU seconds per trajectory of every algorithm, drawing ``count`` at once, as its data sets are made."""
    import clrs

    seconds, hint_bytes = {}, {}
    for name in algorithms:
        started = time.process_time()
        sampler, _ = clrs.build_sampler(name, num_samples=count, seed=seed, length=length)
        seconds[name] = (time.process_time() - started) / count
        hint_bytes[name] = sum(hint.data.nbytes for hint in sampler.next().features.hints) / count
    return {"seconds": seconds, "hint_bytes": hint_bytes}


def prompts(algorithms: list[str], lengths: list[int], count: int, seed: int) -> dict[str, Any]:
    """Return CPU seconds per prompt of CLRS-Text, with hints, over all algorithms and lengths alike."""
    import itertools

    from absl import flags
    from clrs._src.clrs_text import huggingface_generators

    if not flags.FLAGS.is_parsed():
        flags.FLAGS(["driver"])
    choices = {name: list(lengths) for name in algorithms}
    stream = huggingface_generators.clrs_generator(choices, use_hints=True, seed=seed)
    list(itertools.islice(stream, 30))
    started = time.process_time()
    drawn = list(itertools.islice(stream, count))
    seconds = (time.process_time() - started) / count
    return {"seconds": seconds, "characters": sum(len(item["text"]) for item in drawn) / count}


def versions() -> dict[str, Any]:
    """Return the versions of the libraries that count."""
    from importlib.metadata import version

    return {name: version(name) for name in ("dm-clrs", "numpy", "jax", "tensorflow")}


if __name__ == "__main__":
    real_output, sys.stdout = sys.stdout, sys.stderr
    answer = {"sample": sample, "prompts": prompts, "versions": versions}[sys.argv[1]](**json.load(sys.stdin))
    json.dump(answer, real_output)
