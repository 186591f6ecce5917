"""Language models that answer prompts: answers kept in a file, exact match, accuracy by problem size.

A model is a :class:`Completer`. :class:`graphbench.tasks.text.completers.CausalModel` wraps any causal model of
``transformers``, :class:`graphbench.models.language.TextGenerator` completes texts with the small transformer of this
package, and a function that calls a service takes ten lines.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, BinaryIO, Protocol

from graphbench.core.damage import limited_lines
from graphbench.core.errors import EvaluationError
from graphbench.core.files import clear_errors, file_lock, open_no_link
from graphbench.core.progress import progress_bar
from graphbench.core.untrusted import open_regular
from graphbench.data.arrays.answers import exact_match, room_for
from graphbench.data.batches.dataset import GraphDataset
from graphbench.data.components.domain import find
from graphbench.data.components.prompts import Prompt, PromptGrid
from graphbench.tasks.text.prompts import Prompts

_FORMAT = 1
_MAX_LINE = 1 << 24  # bytes of an answer, with its prompt's key

_Key = tuple[str, int, int, int, bool]
Examples = Callable[[Prompt], Sequence[Prompt]]


class Completer(Protocol):
    """A language model.

    Attributes:
        name: Model and settings in words; answers of models with different names never mix.
    """

    name: str

    def __call__(self, texts: Sequence[str], characters: int) -> list[str]:
        """Return the greedy completion of each text, up to an empty line or at least ``characters`` characters."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer to one prompt.

    Attributes:
        algorithm: Name of the algorithm.
        size: Problem size.
        seed: Seed of the prompt's set.
        index: Number of the prompt in its set.
        use_hints: Whether a trace was asked for.
        question: First 16 digits of the SHA-256 of the whole text that the model read.
        output: The text that the model wrote.
        correct: Whether the last array-like object of the output is the reference's answer.
    """

    algorithm: str
    size: int
    seed: int
    index: int
    use_hints: bool
    question: str
    output: str
    correct: bool

    @property
    def key(self) -> _Key:
        """The identity of the prompt among all prompts."""
        return self.algorithm, self.size, self.seed, self.index, self.use_hints


@dataclass(frozen=True, slots=True)
class SizeScore:
    """Accuracy at one problem size.

    Attributes:
        algorithm: Name of the algorithm.
        size: Problem size.
        mean: Accuracy, averaged over the seeds.
        std: Standard deviation of the accuracy over the seeds; None for one seed.
        count: Number of prompts that were answered.
    """

    algorithm: str
    size: int
    mean: float
    std: float | None
    count: int


# ------------------------------------------------------------------------------------------------ questions


def dataset_prompts(split: GraphDataset) -> list[Prompt]:
    """Return the samples of a split of ``clrs_text`` as prompts, in the order of the split.

    Raises:
        EvaluationError: If the split is of another domain, or was changed by ``pre_transform``.
    """
    card = split.card
    parameters = find("generator", card.generator).parse(card, split.split)
    if not isinstance(parameters, PromptGrid):
        raise EvaluationError(f"{card.address} has no prompts of algorithms; choose a split of clrs_text")
    if split._kept is not None:
        raise EvaluationError(f"pre_transform changed the samples of {card.address}; load the split without it")
    algorithm = card.generator.partition(".")[2]
    texts = Prompts.of(split, card.inputs[0].name, card.outputs[0].name)
    prompts = []
    for prompt, reference, index in zip(texts.prompts, texts.references, split.indices(), strict=True):
        size, seed, draw = parameters.draw_of(int(index))
        prompts.append(Prompt(prompt, reference, algorithm, size, seed, draw, parameters.use_hints))
    return prompts


def question_text(prompt: Prompt, examples: Sequence[Prompt] = ()) -> str:
    """Return the text that the model reads: the examples with their references, then the prompt."""
    return "".join(example.prompt + example.reference for example in examples) + prompt.prompt


# ------------------------------------------------------------------------------------------------ answers


def evaluate_language_model(
    complete: Completer,
    questions: Iterable[Prompt] | GraphDataset,
    path: str | Path,
    *,
    examples: Examples | None = None,
    batch_size: int = 8,
    max_characters: int | None = None,
    progress: bool | None = None,
) -> list[Answer]:
    """Let a model answer prompts, and return the answers.

    Answers are appended to a file batch by batch. The model is not asked again where the file has an answer already, so
    a second call continues an evaluation that was stopped.

    Args:
        complete: The model.
        questions: The prompts, or a split of ``clrs_text``; prompts of similar length are best next to each other.
        path: The file of answers (JSON lines).
        examples: Returns the examples to put before a prompt; None for zero-shot.
        batch_size: Prompts per call of the model.
        max_characters: Longest output; None for twice the longest reference of the batch and 64 characters.
        progress: Whether to show a progress bar; None shows it in a terminal.

    Returns:
        One answer per prompt, in the order of the prompts.

    Raises:
        EvaluationError: If there is no prompt, the file belongs to another model or to prompts with other texts, is
            damaged or in use by another process, or the model does not return one text per prompt.
        StoreError: If the file cannot be written.
    """
    prompts = dataset_prompts(questions) if isinstance(questions, GraphDataset) else list(questions)
    if not prompts:
        raise EvaluationError("there is no prompt to answer; ask for at least one")
    target = Path(path)
    with _answers_file(target, complete.name) as (answers, file):
        texts = [question_text(prompt, examples(prompt) if examples is not None else ()) for prompt in prompts]
        waiting = [i for i, prompt in enumerate(prompts) if not _is_answered(prompt, texts[i], answers, target)]
        with progress_bar(len(prompts), complete.name, "prompts", progress) as bar:
            bar.update(len(prompts) - len(waiting))
            for start in range(0, len(waiting), batch_size):
                batch = waiting[start : start + batch_size]
                new = _ask(complete, [prompts[i] for i in batch], [texts[i] for i in batch], max_characters)
                _append(file, [asdict(answer) for answer in new], target)
                answers |= {answer.key: answer for answer in new}
                bar.update(len(batch))
    return [answers[_key(prompt)] for prompt in prompts]


def _key(prompt: Prompt) -> _Key:
    return prompt.algorithm, prompt.size, prompt.seed, prompt.index, prompt.use_hints


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _is_answered(prompt: Prompt, text: str, answers: Mapping[_Key, Answer], path: Path) -> bool:
    answer = answers.get(_key(prompt))
    if answer is not None and answer.question != _digest(text):
        raise EvaluationError(
            f"{path} has an answer to prompt {prompt.index} of {prompt.algorithm} at size {prompt.size}, seed "
            f"{prompt.seed}, but to another text (other decimals or examples?); choose another file"
        )
    return answer is not None


def _ask(
    complete: Completer, batch: Sequence[Prompt], texts: Sequence[str], max_characters: int | None
) -> list[Answer]:
    room = room_for(max(len(prompt.reference) for prompt in batch))
    outputs = complete(texts, max_characters if max_characters is not None else room)
    if len(outputs) != len(batch):
        raise EvaluationError(
            f"{complete.name} returned {len(outputs)} texts for {len(batch)} prompts; it needs one each"
        )
    return [
        Answer(*_key(prompt), _digest(text), output, exact_match(output, prompt.reference))
        for prompt, text, output in zip(batch, texts, outputs, strict=True)
    ]


def size_scores(answers: Iterable[Answer]) -> list[SizeScore]:
    """Return the accuracy of every algorithm at every size: per seed, then averaged over the seeds.

    Raises:
        EvaluationError: If answers with and without a trace are mixed; their accuracies differ in meaning.
    """
    sets: dict[tuple[str, int], dict[int, list[bool]]] = {}
    traces = set()
    for answer in answers:
        traces.add(answer.use_hints)
        sets.setdefault((answer.algorithm, answer.size), {}).setdefault(answer.seed, []).append(answer.correct)
    if len(traces) > 1:
        raise EvaluationError("answers with and without a trace are scored apart; select by use_hints")
    scores = []
    for (algorithm, size), seeds in sorted(sets.items()):
        means = [fmean(correct) for correct in seeds.values()]
        spread = stdev(means) if len(means) > 1 else None
        scores.append(SizeScore(algorithm, size, fmean(means), spread, sum(map(len, seeds.values()))))
    return scores


# ------------------------------------------------------------------------------------------------ files of answers


def read_answers(path: str | Path) -> tuple[str, list[Answer]]:
    """Return the model's name and the answers of a file; a last line that was cut off is left out.

    Raises:
        EvaluationError: If the file is absent, or damaged elsewhere than at its end.
    """
    model, answers, _ = _read(Path(path))
    return model, answers


def _read(path: Path) -> tuple[str, list[Answer], int]:
    """Return the model's name, the answers, and the number of bytes of all whole lines."""
    if not path.is_file():
        raise EvaluationError(f"there is no file of answers {path}; evaluate a model first")
    with clear_errors(path, "read"):
        file = open_regular(path)
    answers = []
    try:
        with file:
            whole_lines = (line for line in limited_lines(file, _MAX_LINE) if line.endswith(b"\n"))
            first = next(whole_lines, b"")
            head, size = json.loads(first), len(first)
            model, version = str(head["model"]), head["format"]
            for line in whole_lines if version == _FORMAT else ():
                answers.append(Answer(**json.loads(line)))
                size += len(line)
    except (IndexError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise EvaluationError(f"{path} is no file of answers ({error}); choose another file") from error
    if version != _FORMAT:
        raise EvaluationError(f"{path} has format {version}, this version reads {_FORMAT}; choose another file")
    return model, answers, size


@contextmanager
def _answers_file(path: Path, model: str) -> Iterator[tuple[dict[_Key, Answer], BinaryIO]]:
    """Open a file of answers for appending, by this process alone; yield its answers and the open file.

    A process that was killed may have left half a line at the end, even of the first line; it is cut off.
    """
    head = {"format": _FORMAT, "model": model}
    with _locked(path):
        with clear_errors(path, "write"):
            file = open_no_link(path, "ab")
        with file:
            name, answers, size = (model, [], 0) if _is_begun(path, _line(head)) else _read(path)
            if name != model:
                raise EvaluationError(f"{path} has answers of {name!r}, not of {model!r}; choose another file")
            file.truncate(size)
            if size == 0:
                _append(file, [head], path)
            yield {answer.key: answer for answer in answers}, file


def _is_begun(path: Path, first_line: bytes) -> bool:
    """Return whether a file is empty, or holds the begin of its first line alone."""
    with open_regular(path) as file:
        content = file.read(len(first_line))
    return len(content) < len(first_line) and first_line.startswith(content)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    from filelock import Timeout

    with clear_errors(path, "write"):
        lock = file_lock(path.with_name(f".{path.name}.lock"), timeout=0)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire()
        except Timeout as error:
            raise EvaluationError(f"{path} is in use by another process; wait for it or choose another file") from error
    try:
        yield
    finally:
        lock.release()


def _line(row: Mapping[str, Any]) -> bytes:
    return (json.dumps(row) + "\n").encode()


def _append(file: BinaryIO, rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Append JSON lines in one write, and flush them to the disk."""
    with clear_errors(path, "write"):
        file.write(b"".join(map(_line, rows)))
        file.flush()
        os.fsync(file.fileno())
