"""The registered generators of CLRS-Text: one per algorithm, each prompt and its reference a sample without edges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from graphbench.core.validation import StrictModel
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.seeds import redrawn_seed
from graphbench.data.arrays.texts import Texts
from graphbench.data.components.generators import Generator
from graphbench.domains.clrs.names import NAMES


class PromptParameters(StrictModel):
    """Which prompts to draw: the sizes in turn, for each of them the seeds in turn.

    Prompt ``i`` has size ``sizes[i % S]`` and seed ``seeds[i // S % K]``; it is draw ``i // (S * K)`` of the reference
    at that size from that seed.

    Attributes:
        sizes: Problem sizes: a list, or ``{first: 4, last: 41}`` for all between.
        seeds: Seeds of NumPy's ``RandomState``, which are the same for all sizes.
        use_hints: Whether references have a trace.
        decimals: Digits after the point to which inputs are cut; None for all.
    """

    sizes: tuple[int, ...] = Field(min_length=1)
    seeds: tuple[int, ...] = Field(min_length=1)
    use_hints: bool = True
    decimals: int | None = Field(default=None, ge=0)

    @field_validator("sizes", mode="before")
    @classmethod
    def _all_between(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            if set(value) != {"first", "last"} or not all(isinstance(v, int) for v in value.values()):
                raise ValueError("a range of sizes is {first: 4, last: 41}")
            return tuple(range(value["first"], value["last"] + 1))
        return value

    def draw_of(self, index: int) -> tuple[int, int, int]:
        """Return size, seed and draw of a prompt."""
        row, column = divmod(index, len(self.sizes))
        draw, seed = divmod(row, len(self.seeds))
        return self.sizes[column], self.seeds[seed], draw


def _drawn(name: str, parameters: PromptParameters, indices: NDArray[np.int64]) -> Iterator[tuple[int, Any]]:
    """Yield size and arguments of every prompt asked for."""
    from graphbench.domains.clrs.samplers import sample

    draws = [parameters.draw_of(i) for i in indices.tolist()]
    needed: dict[tuple[int, int], int] = {}
    for size, seed, draw in draws:
        needed[size, seed] = max(needed.get((size, seed), 0), draw + 1)
    drawn = {key: sample(name, key[0], count, key[1], parameters.decimals) for key, count in needed.items()}
    for size, seed, draw in draws:
        yield size, drawn[size, seed][draw]


def _generate(
    name: str,
    parameters: PromptParameters,
    key: np.uint64,
    indices: NDArray[np.int64],
    attempts: NDArray[np.int64],
) -> Samples:
    from graphbench.domains.clrs_text.rendering import Renderer

    sizes, instances = zip(*_drawn(name, parameters, indices), strict=True)
    prompts, references = zip(*Renderer(name, parameters.use_hints).render_all(instances), strict=True)
    nodes = np.array(sizes, np.int64)
    values = {"prompt": Texts.of(prompts), "reference": Texts.of(references)}
    return Samples(nodes, np.zeros_like(nodes), np.empty((0, 2), np.int32), values)


def _check(name: str, parameters: PromptParameters, samples: Samples) -> list[str]:
    from graphbench.domains.clrs_text.checks import check_prompts

    return check_prompts(name, parameters.use_hints, samples)


def _statistics(parameters: PromptParameters, samples: Samples) -> dict[str, NDArray[np.float64]]:
    lengths = {name: np.diff(texts.ptr).astype(np.float64) for name, texts in samples.values.items()}
    return {f"{name}_characters": values for name, values in lengths.items()}


def _shard_size(parameters: PromptParameters) -> int:
    return 16_384  # a shard also draws all samples before its first one, so few and large shards cost least


def _redraw(parameters: PromptParameters, data_seed: int) -> PromptParameters:
    """Return the parameters of another draw: every seed is replaced by another seed."""
    return parameters.model_copy(update={"seeds": tuple(redrawn_seed(s, data_seed) for s in parameters.seeds)})


def _make(name: str) -> Generator:
    return Generator(
        name=f"clrs_text.{name}",
        version=1,
        parameters=PromptParameters,
        generate=partial(_generate, name),
        check=partial(_check, name),
        statistics=_statistics,
        shard_size=_shard_size,
        unique=False,
        redraw=_redraw,
    )


GENERATORS: Mapping[str, Generator] = {name: _make(name) for name in NAMES}
