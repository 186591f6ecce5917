"""Sets of prompts: any size and seed, and the sets of the paper (Markeeva et al., 2024, section 4 and appendix B)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from graphbench.catalog.names import catalog
from graphbench.core.errors import GenerationError
from graphbench.core.suggestions import closest
from graphbench.data.components.prompts import Prompt
from graphbench.domains.clrs.algorithm import UnknownAlgorithm
from graphbench.domains.clrs.names import NAMES
from graphbench.domains.clrs.samplers import sample
from graphbench.domains.clrs_text.generators import PromptParameters
from graphbench.domains.clrs_text.rendering import Renderer

PaperSet = Literal["train", "eval"]


@dataclass(frozen=True, slots=True)
class SetSpec:
    """The number of prompts per algorithm, size and seed in one of the paper's sets."""

    count: int
    seeds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Problem sizes of one algorithm.

    Attributes:
        train: Sizes trained on.
        eval: Sizes evaluated.
    """

    train: tuple[int, ...]
    eval: tuple[int, ...]

    def of(self, paper_set: PaperSet) -> tuple[int, ...]:
        """Return the sizes of one of the paper's sets."""
        return self.train if paper_set == "train" else self.eval


@dataclass(frozen=True, slots=True)
class Protocol:
    """The paper's sets: prompts per size and seeds, and the sizes of every algorithm."""

    train: SetSpec
    eval: SetSpec
    sizes: dict[str, Sizes]

    def of(self, paper_set: PaperSet) -> SetSpec:
        """Return how one of the sets is drawn."""
        return self.train if paper_set == "train" else self.eval

    def sizes_of(self, algorithm: str) -> Sizes:
        """Return the sizes of an algorithm.

        Raises:
            UnknownAlgorithm: If the paper has no such algorithm.
        """
        if algorithm not in self.sizes:
            raise UnknownAlgorithm(f"CLRS-Text has no algorithm {algorithm!r}{closest(algorithm, self.sizes)}")
        return self.sizes[algorithm]


@lru_cache(maxsize=1)
def paper_protocol() -> Protocol:
    """Return the paper's sets and sizes, for the cards' splits ``train`` and ``test``."""
    specs, sizes = {}, {}
    for name in NAMES:
        card = catalog().cards[f"clrs_text/{name}"]
        train, test = (PromptParameters.model_validate(card.split(split).parameters) for split in ("train", "test"))
        sizes[name] = Sizes(train.sizes, test.sizes)
        for split, drawn in (("train", train), ("test", test)):
            specs[split] = SetSpec(card.split(split).count // (len(drawn.sizes) * len(drawn.seeds)), drawn.seeds)
    return Protocol(specs["train"], specs["test"], sizes)


def prompts(
    algorithm: str, size: int, count: int, seed: int, use_hints: bool = True, decimals: int | None = None
) -> Iterator[Prompt]:
    """Yield prompts of one algorithm and size, drawn as the reference draws them.

    Args:
        algorithm: Name of the algorithm.
        size: Problem size. Of ``segments_intersect`` all prompts have two segments.
        count: Number of prompts.
        seed: Seed of NumPy's ``RandomState``; a longer set begins with the prompts of a shorter one.
        use_hints: Whether the reference has a trace.
        decimals: Digits after the point to which inputs are cut before the algorithm runs; None for all. Points whose
            hull is asked for are redrawn until no three of them, once cut, lie on a line.

    Raises:
        UnknownAlgorithm: If there is no algorithm of that name.
        ArgumentError: If the algorithm cannot be drawn at that size, or a number is out of range.
    """
    renderer = Renderer(algorithm, use_hints)
    texts = renderer.render_all(sample(algorithm, size, count, seed, decimals))
    for index, (prompt, reference) in enumerate(texts):
        yield Prompt(prompt, reference, algorithm, size, seed, index, use_hints)


def paper_prompts(
    paper_set: PaperSet,
    algorithms: str | Sequence[str] | None = None,
    use_hints: bool = True,
    decimals: int | None = None,
    limit: int | None = None,
) -> Iterator[Prompt]:
    """Yield the prompts of one of the paper's sets: algorithm by algorithm, size by size, seed by seed.

    Args:
        paper_set: ``train`` (2,150,000 prompts) or ``eval`` (514,375).
        algorithms: Which algorithm or algorithms; all thirty if None.
        use_hints: Whether references have a trace, as the paper's do.
        decimals: Digits after the point to which inputs are cut; None for all.
        limit: Prompts per algorithm, size and seed if fewer than the paper's are wanted.

    Raises:
        UnknownAlgorithm: If the paper has no such algorithm.
        GenerationError: If the paper has no such set.
    """
    if paper_set not in get_args(PaperSet):
        raise GenerationError(f"the paper has no set {paper_set!r}; it has {' and '.join(get_args(PaperSet))}")
    chosen = (algorithms,) if isinstance(algorithms, str) else algorithms
    protocol = paper_protocol()
    spec = protocol.of(paper_set)
    count = spec.count if limit is None else min(limit, spec.count)
    sizes = {name: protocol.sizes_of(name).of(paper_set) for name in chosen or protocol.sizes}
    for name, algorithm_sizes in sizes.items():
        for size in algorithm_sizes:
            for seed in spec.seeds:
                yield from prompts(name, size, count, seed, use_hints, decimals)


def few_shot_examples(shots: int, decimals: int | None = None, seed: int = 0) -> Callable[[Prompt], tuple[Prompt, ...]]:
    """Return a function from a prompt to examples of the same algorithm and size, always the same examples.

    Args:
        shots: Examples per prompt; the paper's two-shot evaluation has 2.
        decimals: Digits of the examples' inputs, as in the prompts.
        seed: Seed of the examples; not one of the evaluation's seeds. The default is the seed of the training set.
    """

    @lru_cache
    def draw(algorithm: str, size: int, use_hints: bool) -> tuple[Prompt, ...]:
        return tuple(prompts(algorithm, size, shots, seed, use_hints, decimals))

    return lambda prompt: draw(prompt.algorithm, prompt.size, prompt.use_hints)
