"""Wordings of kinship facts, and the names of the people told of: written for this project.

A template tells a chain of one to three facts; ``datasets/clutrr/protocol/templates.yaml`` explains its notation. Once
the genders of its people are given every pronoun is settled, and a *form* is left: literal text, names, and words of
kinship. The writer prints forms and the reader matches them.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from graphbench.catalog.resources import datasets_dir, read_yaml
from graphbench.core.errors import GraphBenchError
from graphbench.core.validation import StrictModel
from graphbench.domains.clutrr.relations import GENDERS, NEUTRAL, WORDS

Part = Literal["train", "test"]
PARTS: tuple[Part, ...] = ("train", "test")
MOST_FACTS = 3
"""Facts that one template tells at most."""

_PEOPLE = "xyzw"
_PRONOUNS = {"he": ("he", "she"), "him": ("him", "her"), "his": ("his", "her")}
_FEWEST_WORDINGS = 6
_TEST_SHARE = (0.15, 0.25)
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_SLOT = re.compile(r"(?P<name>[xyzw])|(?P<kind>kin|[Hh]e|[Hh]im|[Hh]is):(?P<person>[xyzw])")
_PLAIN = re.compile(r"(?:[A-Za-z]+(?:-[A-Za-z]+)*|'s(?![a-z])|[ ,.;:!?])*")
_SENTENCE_END = re.compile(r"(?<=[.!?]) ")
_TOKEN = re.compile(r"@ent\d+|'s(?!\w)|[^\W_]+(?:-[^\W_]+)*|\S")
_LEAK = re.compile(
    r"\b(?:dad|mum|mom|parent|child|children|kid|baby|boy|girl|sibling|cousin|twin|family|relative|relation|spouse|"
    r"marry|married|marriage|wedding|bride|groom|grand\w+|in-law|" + "|".join(WORDS) + r")s?\b",
    re.IGNORECASE,
)
_Model = TypeVar("_Model", bound=BaseModel)


class TemplateError(GraphBenchError, ValueError):
    """The file of templates or of names is malformed; the message names the wording and the fault."""


class TextError(GraphBenchError, ValueError):
    """A puzzle cannot be told as a story, or a text cannot be read as one."""


class Piece(NamedTuple):
    """A part of a template or form.

    Attributes:
        kind: ``text``, ``name``, ``kin``, or in a template that is not yet a form a pronoun: ``he``, ``Him``, ...
        text: The literal text; empty for other kinds.
        person: Number of the person, 0 for x; -1 for literal text.
    """

    kind: str
    text: str = ""
    person: int = -1


@dataclass(frozen=True)
class Template:
    """One wording.

    Attributes:
        text: As in the file.
        relation: Position in ``NEUTRAL`` of the told relation; None if it tells any relation, by two or three facts.
        facts: How many facts it tells: 1, 2 or 3. It names one person more.
    """

    text: str
    relation: int | None
    facts: int

    def form(self, genders: Sequence[int]) -> tuple[Piece, ...]:
        """Return texts, names and words of kinship, with every pronoun settled.

        A pronoun becomes the name where it could be another's: where somebody of the same gender was named before.

        Args:
            genders: 0 male or 1 female of x, y, ...: one more than there are facts.
        """
        settled: list[Piece] = []
        for piece in _pieces(self.text):
            pronouns = _PRONOUNS.get(piece.kind.lower())
            if pronouns is None:
                settled.append(piece)
                continue
            gender = genders[piece.person]
            named = {earlier.person for earlier in settled if earlier.kind == "name"} - {piece.person}
            if all(genders[other] != gender for other in named):
                pronoun = pronouns[gender]
                settled.append(Piece("text", pronoun.capitalize() if piece.kind[0].isupper() else pronoun))
            else:
                settled.append(Piece("name", person=piece.person))
                settled.extend([Piece("text", "'s")] if piece.kind.lower() == "his" else [])
        return tuple(settled)

    def forms(self) -> Iterator[tuple[tuple[int, ...], tuple[Piece, ...]]]:
        """Yield genders and form for every choice of genders; the gender of x changes fastest."""
        for bits in range(2 ** (self.facts + 1)):
            genders = tuple(bits >> person & 1 for person in range(self.facts + 1))
            yield genders, self.form(genders)


class _Wordings(StrictModel):
    """Wordings of one kind, by split part."""

    train: tuple[str, ...] = Field(min_length=1)
    test: tuple[str, ...] = Field(min_length=1)

    def of(self, part: Part) -> tuple[str, ...]:
        return self.train if part == "train" else self.test

    @model_validator(mode="after")
    def _a_fifth_is_held_out(self) -> _Wordings:
        share = len(self.test) / (len(self.train) + len(self.test))
        if not _TEST_SHARE[0] <= share <= _TEST_SHARE[1]:
            raise ValueError(
                f"{len(self.test)} of {len(self.train) + len(self.test)} wordings are held out; make it a fifth"
            )
        return self


class TemplateFile(StrictModel):
    """The content of ``templates.yaml``.

    Attributes:
        single: Relation without gender -> wordings of a single fact.
        double: Wordings of a chain of two facts.
        triple: Wordings of a chain of three.
    """

    single: dict[str, _Wordings]
    double: _Wordings
    triple: _Wordings

    @field_validator("single")
    @classmethod
    def _all_relations(cls, value: dict[str, _Wordings]) -> dict[str, _Wordings]:
        if set(value) != set(NEUTRAL):
            missing, unknown = sorted(set(NEUTRAL) - set(value)), sorted(set(value) - set(NEUTRAL))
            raise ValueError(f"the relations must equal the benchmark's; missing {missing}, unknown {unknown}")
        for relation, wordings in value.items():
            number = len(wordings.train) + len(wordings.test)
            if number < _FEWEST_WORDINGS:
                raise ValueError(f"{relation} has {number} wordings; write at least {_FEWEST_WORDINGS}")
        return value

    @model_validator(mode="after")
    def _good_wordings(self) -> TemplateFile:
        seen: set[tuple[str, int | None]] = set()
        wording_of: dict[str, tuple[str, Part]] = {}
        for part in PARTS:
            for template in self.templates(part):
                fault = wording_fault(template.text, template.facts)
                if fault is None and (template.text, template.relation) in seen:
                    fault = "it stands twice"
                if fault is not None:
                    raise ValueError(f"the wording {template.text!r}: {fault}")
                seen.add((template.text, template.relation))
                for sentence in sentence_frames(template.text):
                    other = wording_of.setdefault(sentence, (template.text, part))
                    if other != (template.text, part):
                        raise ValueError(
                            f"the wording {template.text!r} ({part}): its sentence {sentence!r} is also one of "
                            f"{other[0]!r} ({other[1]}); hold-out needs every sentence in one wording: write another"
                        )
        return self

    def templates(self, part: Part) -> tuple[Template, ...]:
        """Return the templates of a part: of single facts in the order of ``NEUTRAL``, of two facts, of three."""
        singles = [
            Template(text, number, 1) for number, name in enumerate(NEUTRAL) for text in self.single[name].of(part)
        ]
        chains = [Template(text, None, 2) for text in self.double.of(part)]
        return (*singles, *chains, *(Template(text, None, 3) for text in self.triple.of(part)))

    def every_template(self) -> tuple[Template, ...]:
        """Return the templates of both parts, in the same order."""
        both = [template for part in PARTS for template in self.templates(part)]
        return tuple(sorted(both, key=_kind_of))


class NameFile(StrictModel):
    """The content of ``names.yaml``: given names by gender, single words, none in both lists."""

    male: tuple[str, ...] = Field(min_length=1)
    female: tuple[str, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _good_names(self) -> NameFile:
        names = (*self.male, *self.female)
        odd = [name for name in names if not re.fullmatch(r"[A-Z][a-z]+", name)]
        if odd:
            raise ValueError(f"a name is one capitalised word of plain letters, not {odd[0]!r}")
        for before, name in pairwise(sorted(names)):
            if before == name:
                raise ValueError(f"the name {name!r} stands twice")
        return self


def _kind_of(template: Template) -> tuple[int, int]:
    return template.facts, template.relation or 0


def sentence_frames(text: str) -> tuple[str, ...]:
    """Return the sentences of a wording without their people and words of kinship.

    Stories may hold a sentence of two wordings word for word only if its frame is the same in both. Pronouns stand as
    names do, since a form may settle them so.

    Args:
        text: The wording, in the notation of ``templates.yaml``.

    Returns:
        Per sentence its text in small letters: ``<who>`` for a person, ``<kin>`` for a word of kinship.
    """
    frame = _PLACEHOLDER.sub(_frame_of_slot, text).lower()
    return tuple(_SENTENCE_END.split(frame))


def _frame_of_slot(match: re.Match[str]) -> str:
    kind = match[1].rpartition(":")[0].lower()
    return "<kin>" if kind == "kin" else "<who>'s" if kind == "his" else "<who>"


def wording_fault(text: str, facts: int) -> str | None:
    """Return the fault of a wording, or None if the wording is valid.

    Args:
        text: The wording, in the notation of ``templates.yaml``.
        facts: How many facts it is to tell: 1, 2 or 3.
    """
    for content in _PLACEHOLDER.findall(text):
        match = _SLOT.fullmatch(content)
        person = match and (match["name"] or match["person"])
        if not person or _PEOPLE.index(person) > facts or content == "kin:x":
            return f"it has the unknown placeholder {{{content}}}"
    plain = "".join(_PLACEHOLDER.split(text)[::2])
    if not _PLAIN.fullmatch(plain):
        return "beside placeholders it may hold letters, spaces, hyphens within words, 's and ,.;:!?"
    pieces = _pieces(text)
    kins = sorted(piece.person for piece in pieces if piece.kind == "kin")
    if kins != list(range(1, facts + 1)):
        return f"it needs each of {', '.join(f'{{kin:{p}}}' for p in _PEOPLE[1 : facts + 1])} once"
    named: set[int] = set()
    for piece in pieces:
        if piece.kind == "name":
            named.add(piece.person)
        elif piece.kind.lower() in _PRONOUNS and piece.person not in named:
            return f"{{{piece.kind}:{_PEOPLE[piece.person]}}} comes before the name {{{_PEOPLE[piece.person]}}}"
    if len(named) != facts + 1:
        return f"it needs each of {', '.join(f'{{{p}}}' for p in _PEOPLE[: facts + 1])}"
    return _language_fault(text, plain, facts)


def _language_fault(text: str, plain: str, facts: int) -> str | None:
    leak = _LEAK.search(plain)
    if leak:
        return f"the word {leak[0]!r} tells of kinship; only {{kin:...}} may"
    if facts > 1 and re.search(r"\ban? \{kin:", text, re.IGNORECASE):
        return "an article before {kin:...} fits some words only"
    shape = _PLACEHOLDER.sub("{}", text)
    if re.search(r"\s\s|^\s|\s$|\s[,.;:!?]|[,.;:!?](?=[A-Za-z{])", shape) or not re.search(r"[.!?]$", shape):
        return "it needs single spaces between words, and . ! or ? at its end"
    for sentence in _SENTENCE_END.split(text):
        if not re.match(r"[A-Z]|\{[xyzw]\}|\{H", sentence):
            return "its sentences must begin with a capital or a name"
    return None


@lru_cache(maxsize=512)
def _pieces(text: str) -> tuple[Piece, ...]:
    """Return the pieces of a wording with valid placeholders."""
    pieces = []
    for number, content in enumerate(_PLACEHOLDER.split(text)):
        if number % 2 == 0:
            pieces.extend([Piece("text", content)] if content else [])
        else:
            kind, _, person = content.rpartition(":")
            pieces.append(Piece(kind or "name", person=_PEOPLE.index(person)))
    return tuple(pieces)


def tokens_of(text: str) -> list[str]:
    """Return words, punctuation marks and people (``@ent7``) of a text; ``Anna's`` is two, ``son-in-law`` is one."""
    return _TOKEN.findall(text)


def validated(model: type[_Model], content: Any, file_name: str) -> _Model:
    """Return a file's content as a model.

    Raises:
        TemplateError: If it is malformed.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        message = str(first["msg"]).removeprefix("Value error, ")
        raise TemplateError(f"{file_name}: {where + ': ' if where else ''}{message}") from None


@lru_cache(maxsize=1)
def template_file() -> TemplateFile:
    """Return the project's templates.

    Raises:
        TemplateError: If the file is malformed.
    """
    path = datasets_dir() / "clutrr" / "protocol" / "templates.yaml"
    return validated(TemplateFile, read_yaml(path), str(path))


@lru_cache(maxsize=1)
def name_file() -> NameFile:
    """Return the project's names; none is a word of a template.

    Raises:
        TemplateError: If the file is malformed.
    """
    path = datasets_dir() / "clutrr" / "protocol" / "names.yaml"
    names = validated(NameFile, read_yaml(path), str(path))
    texts = [template.text for part in PARTS for template in template_file().templates(part)]
    words = {word.lower() for text in texts for word in tokens_of("".join(_PLACEHOLDER.split(text)[::2]))}
    clashes = [name for gender in GENDERS for name in getattr(names, gender) if name.lower() in words]
    if clashes:
        raise TemplateError(f"{path}: the name {clashes[0]!r} is also a word of a template; take another")
    return names


def templates_of(part: str, seed: int = 0) -> tuple[Template, ...]:
    """Return the templates that the stories of a part may use; no sentence of a template serves both.

    Args:
        part: ``train`` or ``test``.
        seed: 0 for the parts of the file; another seed draws the templates of test anew, with the same number of every
            kind.

    Returns:
        Templates of single facts in the order of ``NEUTRAL``, then of two facts, then of three.

    Raises:
        TextError: If the part is unknown.
    """
    for name in PARTS:
        if part == name and not seed:
            return template_file().templates(name)
        if part == name:
            of_test = _texts_of_test(seed)
            return tuple(t for t in template_file().every_template() if (t.text in of_test) == (part == "test"))
    raise TextError(f"unknown part {part!r} of the templates; give 'train' or 'test'")


@lru_cache(maxsize=32)
def _texts_of_test(seed: int) -> frozenset[str]:
    """Return the wordings of test that a seed draws: in the order of their hashes, until every kind has its number.

    A wording that stands with several relations serves test with all or with none of them; ``TemplateFile`` ensures
    that no other wording shares a sentence with it.
    """
    room = Counter(map(_kind_of, template_file().templates("test")))
    kinds: dict[str, list[tuple[int, int]]] = {}
    for template in template_file().every_template():
        kinds.setdefault(template.text, []).append(_kind_of(template))
    chosen = set()
    for text in sorted(kinds, key=lambda text: hashlib.sha256(f"{seed} {text}".encode()).digest()):
        if all(room[kind] for kind in kinds[text]):
            chosen.add(text)
            room.subtract(kinds[text])
    return frozenset(chosen)
