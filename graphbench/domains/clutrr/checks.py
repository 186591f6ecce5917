"""Checks of stored puzzles, sample by sample: facts, answer and noise in plain Python, the story by reading it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphbench.data.arrays.samples import Samples
from graphbench.domains.clutrr.hold_outs import held_out_clauses
from graphbench.domains.clutrr.learned_rules import LearnedRules
from graphbench.domains.clutrr.noise import ROLES
from graphbench.domains.clutrr.puzzle_checks import story_problems
from graphbench.domains.clutrr.puzzles import Puzzle
from graphbench.domains.clutrr.reading import read_story
from graphbench.domains.clutrr.relations import GENDERS, WORDS, relation_of_word
from graphbench.domains.clutrr.solvers import NO_ANSWER, ClauseTable, EndsGuess, exact_answers, left_fold_answers
from graphbench.domains.clutrr.templates import TextError, tokens_of

if TYPE_CHECKING:
    from graphbench.domains.clutrr.parameters import StoryParameters


@dataclass(frozen=True)
class StoredQuestions:
    """Stored puzzles as the reference solvers read them; see ``graphbench.domains.clutrr.puzzles.Puzzles``."""

    num_nodes: NDArray[np.int64]
    num_edges: NDArray[np.int64]
    edges: NDArray[np.int32]
    relation: NDArray[np.int8]
    asker: NDArray[np.int64]
    asked: NDArray[np.int64]
    answer: NDArray[np.int8]

    @classmethod
    def of(cls, samples: Samples) -> StoredQuestions:
        """Return the questions of samples."""
        first = samples.node_ptr[:-1]
        values = {name: np.asarray(samples.values[name]) for name in ("asker", "asked", "relation", "answer")}
        return cls(
            samples.num_nodes,
            samples.num_edges,
            samples.edges.astype(np.int32),
            values["relation"].astype(np.int8),
            np.flatnonzero(values["asker"]) - first,
            np.flatnonzero(values["asked"]) - first,
            values["answer"].astype(np.int8),
        )


def check_stories(parameters: StoryParameters, samples: Samples) -> list[str]:
    """Return the problems of samples, one line per problem.

    The path must be simple and lead to the answer by itself; the answer must be the only one derivable from all facts;
    the noise must be of its kind; the split must allow the clause; and the story, read back, must tell these facts
    only.
    """
    problems = []
    for i, sample in enumerate(_taken_apart(samples)):
        puzzle = _puzzle(sample)
        k = sum(role == "path" for role in puzzle.roles)
        findings = story_problems(puzzle, k, parameters.rules, parameters.noise)
        if k not in parameters.lengths:
            findings.append(f"the path has {k} facts")
        elif parameters.held_out != "any":
            clause = tuple(word for _, _, word in puzzle.path) if k == 2 else puzzle.clause
            if (clause in held_out_clauses(parameters, k)) != (parameters.held_out == "only"):
                findings.append(f"{clause} is drawn though held_out is {parameters.held_out}")
        problems += [f"sample {i}: {problem}" for problem in [*findings, *_text_problems(puzzle, sample)]]
    return problems


def solver_scores(train: Samples, samples: Samples, rules: str) -> dict[str, dict[str, float]]:
    """Return the accuracy of the exact reasoner, of a left fold, and of three solvers fitted to training puzzles.

    The fitted solvers are a table of clauses, a guess from the first and the last fact of the path, and a learner of
    rules, which abstains where nothing follows from its rules: its coverage is the share of puzzles that it answers.
    """
    questions, train_questions = StoredQuestions.of(samples), StoredQuestions.of(train)
    learned = LearnedRules.fit(train_questions)
    answers = {
        "exact_reasoner": exact_answers(questions, rules),
        "left_fold": left_fold_answers(questions, rules),
        "clause_table": ClauseTable.fit(train_questions).predict(questions),
        "first_and_last_fact": EndsGuess.fit(train_questions).predict(questions),
        "learned_rules": learned.predict(questions),
    }
    scores = {name: {"accuracy": float(np.mean(words == questions.answer))} for name, words in answers.items()}
    scores["learned_rules"]["coverage"] = float(np.mean(learned.derived(questions) != NO_ANSWER))
    return scores


def _taken_apart(samples: Samples) -> list[dict[str, Any]]:
    """Return the values of every sample; texts as strings."""
    node, edge = samples.node_ptr.tolist(), samples.edge_ptr.tolist()
    by_node, by_edge = ("asker", "asked", "gender", "entity"), ("relation", "role", "step", "sentence")
    texts = {name: samples.values[name].strings() for name in ("story", "tokens", "name")}
    return [
        {
            **{name: samples.values[name][node[i] : node[i + 1]].tolist() for name in by_node},
            **{name: samples.values[name][edge[i] : edge[i + 1]].tolist() for name in by_edge},
            "edges": samples.edges[edge[i] : edge[i + 1]].tolist(),
            "answer": int(samples.values["answer"][i]),
            "story": texts["story"][i],
            "tokens": texts["tokens"][i],
            "name": texts["name"][node[i] : node[i + 1]],
        }
        for i in range(len(samples))
    ]


def _puzzle(sample: Mapping[str, Any]) -> Puzzle:
    facts = [(x, y, WORDS[word]) for (x, y), word in zip(sample["edges"], sample["relation"], strict=True)]
    steps = [int(step) for step in sample["step"]]
    on_path = sorted((step, word) for step, (_, _, word) in zip(steps, facts, strict=True) if step >= 0)
    return Puzzle(
        facts=tuple(facts),
        roles=tuple(ROLES[role] for role in sample["role"]),
        steps=tuple(steps),
        genders=tuple(GENDERS[gender] for gender in sample["gender"]),
        query=(sample["asker"].index(1), sample["asked"].index(1)),
        answer=WORDS[sample["answer"]],
        clause=tuple(relation_of_word(word) for _, word in on_path),
    )


def _text_problems(puzzle: Puzzle, sample: Mapping[str, Any]) -> list[str]:
    names, entities = sample["name"], sample["entity"]
    if len(set(names)) < len(names) or len(set(entities)) < len(entities):
        return [f"two people share a name or number: {names}, {entities}"]
    told = {(names[x], names[y], word) for x, y, word in puzzle.facts}
    try:
        read = read_story(sample["story"], names)
    except TextError as error:
        return [f"the story {sample['story']!r} cannot be read: {error}"]
    problems = []
    if set(read) != told or len(read) != len(told):
        problems.append(f"the story tells {sorted(read)}, not {sorted(told)}")
    number = {name: f"@ent{entity}" for name, entity in zip(names, entities, strict=True)}
    expected = " ".join(number.get(token, token.lower()) for token in tokens_of(sample["story"]))
    if sample["tokens"] != expected:
        problems.append(f"the tokens {sample['tokens']!r} differ from the tokens of the story {sample['story']!r}")
    return problems
