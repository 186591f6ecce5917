"""Untrusted YAML: a few lines must not stand for billions of values, and every fault has its line.

Aliases repeat a value at no cost to the file, and aliases of aliases multiply. The values that aliases stand for are
counted before anything is built.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from graphbench.core.damage import limited_bytes
from graphbench.core.untrusted import shown

SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # five times as fast where PyYAML comes with libyaml
MOST_YAML_BYTES = 1 << 24
"""Bytes of a YAML file that is read; the largest shipped one has a hundredth of them."""

MOST_LEVELS = 100
"""Lists and mappings of YAML within each other; libyaml overflows the stack far beyond."""

MOST_REPEATED = 100_000
"""Values that all aliases of a file may stand for together; shipped cards repeat some dozens."""

TOO_DEEP = "its lists and mappings are nested too deeply; a few levels are enough"
_LETTERS_PER_VALUE = 64  # a repeated text counts as one value, and one more per so many letters
_BUILDING = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)


class YamlFault(ValueError):
    """Why YAML is refused, in one line.

    Attributes:
        reason: The fault, in words.
        line: Line of the fault, from 1 on; None if the parser gives no line.
    """

    def __init__(self, reason: str, line: int | None = None) -> None:
        self.reason, self.line = reason, line
        super().__init__(reason if line is None else f"line {line}: {reason}")


@dataclass
class _Collection:
    """A list or mapping: how many values it holds, how deep they are nested, and its anchor."""

    anchor: str | None
    values: int = 1
    levels: int = 1


def yaml_text(path: Path) -> str:
    """Return the text of a YAML file, UTF-8.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is larger than :data:`MOST_YAML_BYTES`, or is not UTF-8.
    """
    return limited_bytes(path, MOST_YAML_BYTES).decode("utf-8-sig")


def loaded_yaml(
    text: str, loader: Any = SafeLoader, *, levels: int = MOST_LEVELS, repeated: int = MOST_REPEATED
) -> Any:
    """Return the value of YAML; see :func:`require_plain_structure` for the limits.

    Raises:
        YamlFault: If the text is refused, or is not valid YAML.
    """
    require_plain_structure(text, levels=levels, repeated=repeated)
    try:
        return yaml.load(text, Loader=loader)
    except yaml.YAMLError as error:
        raise fault_of_yaml(error) from error
    except (
        _BUILDING
    ) as error:  # by values with a tag that they do not fit, such as `!!int x`, and dates that no month has
        raise YamlFault(f"not valid YAML: a value does not fit its type: {shown(error, 200)}") from error


def require_plain_structure(text: str, *, levels: int = MOST_LEVELS, repeated: int = MOST_REPEATED) -> None:
    """Refuse text that is no YAML, is nested too deeply, or whose aliases stand for too many values.

    Args:
        text: The text.
        levels: Most lists and mappings within each other, the values of aliases included.
        repeated: Most values that all aliases stand for together; 0 refuses every alias.

    Raises:
        YamlFault: With the line.
    """
    try:
        _check_events(text, levels, repeated)
    except yaml.YAMLError as error:
        raise fault_of_yaml(error) from error


def _check_events(text: str, levels: int, repeated: int) -> None:
    complete: dict[str | None, _Collection] = {}
    inside: list[_Collection] = []
    copied = 0
    for event in yaml.parse(text, Loader=SafeLoader):
        line = None if event.start_mark is None else event.start_mark.line + 1
        ended = None
        if isinstance(event, yaml.CollectionStartEvent):
            inside.append(_Collection(event.anchor))
            complete.pop(event.anchor, None)
        elif isinstance(event, yaml.CollectionEndEvent):
            ended = inside.pop()
        elif isinstance(event, yaml.ScalarEvent):
            ended = _Collection(event.anchor, 1 + len(event.value) // _LETTERS_PER_VALUE, 0)
        elif isinstance(event, yaml.AliasEvent):
            if any(part.anchor == event.anchor for part in inside):
                raise YamlFault(f"the alias *{shown(event.anchor, 60)} stands for a value that holds it", line)
            ended = complete.get(event.anchor)
            copied += 1 if ended is None else ended.values
            if copied > repeated:
                if not repeated:
                    raise YamlFault(f"it has an alias (*{shown(event.anchor, 60)}); write the value itself", line)
                raise YamlFault(f"its aliases stand for more than {repeated:,} values; write fewer of them", line)
        if ended is None:
            deepest = 0
        else:
            if not isinstance(event, yaml.AliasEvent) and ended.anchor is not None:
                complete[ended.anchor] = ended
            deepest = ended.levels
            if inside:
                inside[-1].values += ended.values
                inside[-1].levels = max(inside[-1].levels, 1 + ended.levels)
        if len(inside) + deepest > levels:
            raise YamlFault(TOO_DEEP, line)


def fault_of_yaml(error: yaml.YAMLError) -> YamlFault:
    """Return the message of an error of PyYAML, in one line."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if problem == "exceeded maximum nesting depth":  # by libyaml 0.2.6
        return YamlFault(TOO_DEEP)
    context = getattr(error, "context", None)
    said = (f"{context}: {problem}" if context else problem) or error
    words = shown(" ".join(str(said).split()), 300)
    return YamlFault(f"not valid YAML: {words}", None if mark is None else mark.line + 1)
