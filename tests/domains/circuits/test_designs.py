"""Designs of converters: goals and proposals as texts, drawn goals, the verifier, searches and tokens."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

import graphbench
from graphbench.catalog.features import parse_features
from graphbench.core.errors import ArgumentError, ConfigError, DecodingError, EvaluationError, GenerationError
from graphbench.data.build.generation import draw_samples
from graphbench.data.components.domain import find
from graphbench.domains.circuits import steady_state
from graphbench.domains.circuits.design_answers import Proposals
from graphbench.domains.circuits.design_generator import DESIGNS, DesignParameters
from graphbench.domains.circuits.design_search import Pool, recalled, reference_scores
from graphbench.domains.circuits.designs import TOLERANCE, Design, Goal, evaluated, miss
from graphbench.domains.circuits.tokenizers import TOKENIZERS
from graphbench.models.base import TaskFeatures
from graphbench.models.builder.config import SpellerModelConfig
from graphbench.models.registry import build_task_model
from graphbench.tasks.registry import task_of

BUCK = "duty 0.35; Sa VIN n1; L n1 VOUT; Sb GND n1"
BOOST = "duty 0.5; L VIN n1; Sa n1 GND; Sb n1 VOUT"
KEY = np.uint64(3)
TOKENS = TOKENIZERS["designs"]


def reached(text: str, load: float = 100.0) -> tuple[float, float]:
    design = Design.read(text)
    state = steady_state(design.devices, duty=design.duty, load=load)
    return state.ratio, state.efficiency


def goal_of(text: str, load: float = 100.0, devices: int = 5) -> Goal:
    """Return the goal that a design just reaches."""
    ratio, efficiency = reached(text, load)
    return Goal(ratio, efficiency, devices, Goal.read(f"ratio=1 efficiency=1 devices=1 load={load}").operation)


def drawn(split: str = "test", count: int = 12):
    return draw_samples(graphbench.card("circuits/design_5"), split, np.arange(count))


def test_texts_of_goals_and_designs_are_read_back():
    goal = goal_of(BUCK, load=20.0)
    assert str(goal).endswith("devices=5 load=20")
    again = Goal.read(str(goal))
    assert (again.devices, again.operation) == (5, goal.operation)
    assert again.ratio == pytest.approx(goal.ratio, abs=5e-5)
    other = Goal(0.5, 0.9, 3, goal.operation.model_copy(update={"frequency": 2e5}))
    assert Goal.read(str(other)) == other
    design = Design.read(BUCK)
    assert Design.read(str(design)) == design
    assert Design.read("Sa VIN n1\nL n1 VOUT\nduty 0.35\n\nSb GND n1\n").checked().devices == design.checked().devices


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ratio=1", "efficiency is missing"),
        ("ratio=a efficiency=1 devices=2", "'ratio=a' is no finite number"),
        ("ratio=nan efficiency=1 devices=2", "'ratio=nan' is no finite number"),
        ("ratio=1 ratio=2 efficiency=1 devices=2", "ratio is there twice"),
        ("ratio=1 efficiency=1 devices=2 lod=3", "lod"),
        (5, "'5' is no finite number with a name"),
        ("ratio=1 efficiency=2 devices=2", "the efficiency is 2, and a share of the power is 0 to 1"),
        ("ratio=1 efficiency=1 devices=2.5", "devices is 2.5, and a circuit has a whole number"),
        ("ratio=1 efficiency=1 devices=0", "devices is 0"),
    ],
)
def test_goals_that_cannot_be_read(text, message):
    with pytest.raises(DecodingError, match=message):
        Goal.read(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Sa VIN n1", "one part such as 'duty 0.35', this one has 0"),
        ("duty 0.1; duty 0.2; Sa VIN n1", "has 2"),
        ("duty a; Sa VIN n1", "the duty cycle is 'a'"),
        ("duty 1.5; Sa VIN n1", "the duty cycle is 1.5"),
        ("duty nan; Sa VIN n1", "the duty cycle is nan"),
        ("duty 0.5; Sx VIN n1", "type 'Sx'"),
        ("duty 0.5; Sa VIN", "give \\(type, net, net\\)"),
        ("duty 0.5", "1 to 64 devices"),
        ("duty 0.5; Sa VIN vin", "did you mean the port 'VIN'"),
        ("duty 0.5;" * 2000, "characters"),
    ],
)
def test_designs_that_cannot_be_read(text, message):
    with pytest.raises(ArgumentError, match=message):
        Design.read(text).checked()


@pytest.mark.thorough
def test_drawn_goals_are_reached_by_their_references():
    samples = drawn()
    card = graphbench.card("circuits/design_5")
    parameters = DESIGNS.parse(card, "test")
    assert DESIGNS.check(parameters, samples) == []
    goals, designs = (samples.values[name].strings() for name in ("goal", "reference"))
    for goal, design, wanted in zip(goals, designs, np.asarray(samples.values["wanted"]), strict=True):
        ratio, efficiency = reached(design)
        assert (ratio, efficiency) == pytest.approx(tuple(wanted[:2]), abs=1e-5)
        read = Goal.read(goal)
        assert (read.ratio, read.efficiency) == pytest.approx(tuple(wanted[:2]), abs=6e-5)
        assert any(low <= ratio < high for low, high in parameters.ratios)
        assert efficiency >= parameters.least_efficiency
    assert graphbench.Evaluator("circuits/design_5").evaluate({"goal": goals}, designs)["met"] == 1.0


@pytest.mark.thorough
def test_a_goal_depends_on_its_index_alone():
    parameters = DESIGNS.parse(graphbench.card("circuits/design_5"), "load")
    whole = DESIGNS.generate(parameters, KEY, np.arange(4), np.zeros(4, np.int64))
    for i in range(4):
        alone = DESIGNS.generate(parameters, KEY, np.array([i]), np.zeros(1, np.int64))
        assert alone.values["goal"].strings()[0] == whole.values["goal"].strings()[i]
        assert alone.values["reference"].strings()[0] == whole.values["reference"].strings()[i]
    assert len({Goal.read(text).operation.load for text in drawn("load", 24).values["goal"].strings()}) > 1


@pytest.mark.thorough
def test_wrong_references_are_found():
    samples = drawn(count=3)
    texts = samples.values["reference"].strings()
    changed = [text.replace("duty 0.", "duty 0.0") for text in texts]
    samples.values["reference"] = type(samples.values["reference"]).of(changed)
    problems = DESIGNS.check(DESIGNS.parse(graphbench.card("circuits/design_5"), "test"), samples)
    assert any("a simulation gives" in problem for problem in problems)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ratios": [[-1, 1]]}, "both signs"),
        ({"ratios": [[1, 0.5]]}, "lower end first"),
        ({"duty": [0.9, 0.1]}, "lower end first"),
        ({"topologies": [0.5, 0.5]}, "lower end first"),
    ],
)
def test_parameters_that_are_refused(change, message):
    given = {"devices": 5, "duty": [0.1, 0.9], "ratios": [[0.3, 0.5]], **change}
    with pytest.raises(ValueError, match=message):
        DesignParameters.model_validate(given)


def graph_of(text: str) -> Data:
    flat = Proposals.of([text]).arrays()
    return Data(
        edge_index=torch.from_numpy(flat["edge_index"]),
        kind=torch.from_numpy(flat["kind"]),
        duty=torch.from_numpy(flat["duty"]),
        num_nodes=int(flat["num_nodes"][0]),
    )


def test_answers_in_all_forms(tmp_path):
    goals = [str(goal_of(text)) for text in (BUCK, BOOST)]
    fields = {"goal": goals}
    evaluator = graphbench.Evaluator("circuits/design_5")
    paths = [tmp_path / f"{i}.net" for i in range(2)]
    for path, text in zip(paths, (BUCK, BOOST), strict=True):
        path.write_text(text.replace("; ", "\n"))
    forms = {
        "texts": [BUCK, BOOST],
        "bytes": [BUCK.encode(), BOOST.encode()],
        "designs": [Design.read(BUCK), Design.read(BOOST)],
        "graphs": [graph_of(BUCK), graph_of(BOOST)],
        "paths": paths,
        "names": [str(path) for path in paths],
        "folder": tmp_path,
        "flat": Proposals.of([BUCK, BOOST]).arrays(),
    }
    for name, answers in forms.items():
        score = evaluator.evaluate(fields, answers)
        assert (score["met"], score["valid"], score["mean_devices"]) == (1.0, 1.0, 3.0), name
        assert score["ratio_error"] < 1e-4, name


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, "there is no design"),
        ("duty 0.5; Sa VIN", "the text or graph cannot be read"),
        (3, "the text or graph cannot be read"),
        ({"edge_index": np.zeros((2, 1))}, "the text or graph cannot be read"),
        (b"\xff", "the text or graph cannot be read"),
        (BOOST, "the ratio or the efficiency is not the wanted one"),
        ("duty 0.5; L VIN n1; Sa n1 GND", "two of the ports are not joined"),
        ("duty 0.5; Sa VIN VOUT; Sa VOUT GND; L VIN x", "a path joins two ports by an inductor or by switches alone"),
        (BUCK + "; C n1 n7", "a device is on no path between two ports"),
        (BUCK + "; C VIN GND" * 3, "the circuit has more devices than allowed"),
    ],
)
def test_why_a_design_scores_nothing(answer, reason):
    score = graphbench.Evaluator("circuits/design_5").evaluate({"goal": [str(goal_of(BUCK))]}, [answer])
    assert score["met"] == 0.0
    assert score.failures == {reason: 1}


def test_files_that_are_no_designs_are_not_read_whole(tmp_path):
    long = tmp_path / "long.net"
    long.write_bytes(b"duty 0.5;" * 1_000_000)
    (tmp_path / "endless.net").symlink_to("/dev/zero")
    answers = [long, tmp_path / "endless.net", tmp_path / "missing.net", tmp_path, b"duty 0.5; Sa VIN \xff"]
    proposals = Proposals.of(answers)
    assert proposals.circuits == [None] * 5
    words = ("at most 10,000", "a pipe, a socket or a device", "No such file", "cannot be read", "beyond ASCII")
    for number, word in enumerate(words):
        assert word in proposals.details[number], proposals.details[number]
    with pytest.raises(EvaluationError, match="give a list with one answer per sample"):
        graphbench.Evaluator("circuits/design_5").evaluate({"goal": [str(goal_of(BUCK))]}, BUCK)


def test_faults_of_graphs_are_named():
    flat = Proposals.of([BUCK]).arrays()
    graph = {"edge_index": flat["edge_index"], "kind": flat["kind"], "duty": flat["duty"], "num_nodes": 4}
    wrong = [
        {**graph, "kind": flat["kind"] + 2},
        {**graph, "num_nodes": 3},
        {**graph, "duty": np.array([0.1, 0.2, 0.3])},
    ]
    details = Proposals.of([graph, *wrong]).details
    assert list(details) == [1, 2, 3]
    assert "kind holds 5; the kinds are 0 to 3 for Sa, Sb, C, L" in details[1]
    assert "edge_index holds 3; the nets are 0 to 2" in details[2]
    assert "give the same duty cycle at every edge" in details[3]


def test_designs_and_samples_must_be_as_many():
    with pytest.raises(EvaluationError, match="2 designs for 1 samples"):
        graphbench.Evaluator("circuits/design_5").evaluate({"goal": [str(goal_of(BUCK))]}, [BUCK, BUCK])


def test_the_tolerance():
    goal = goal_of(BOOST)
    assert abs(goal.ratio) > 1
    for share, expected in ((0.95, True), (1.05, False)):
        shifted = Goal(goal.ratio * (1 + share * TOLERANCE), goal.efficiency, 5, goal.operation)
        outcomes = evaluated([Design.read(BOOST).checked()], [0.5], [shifted])
        assert bool(outcomes.met([shifted])[0]) == expected
        assert bool(miss(outcomes.ratio, outcomes.efficiency, shifted)[0] <= 1) == expected
    better = Goal(goal.ratio, goal.efficiency - 0.3, 5, goal.operation)  # more efficiency than wanted is no fault
    assert evaluated([Design.read(BOOST).checked()], [0.5], [better]).met([better])[0]


def test_searches_find_what_is_known():
    texts = [BUCK, BOOST, "duty 0.5; Sa VIN n1; Sb n1 VOUT; L n1 GND"]
    goals = [goal_of(text) for text in texts]
    designs = [Design.read(text) for text in texts]
    pool = Pool.of(designs)
    assert recalled(goals, designs, goals) == designs
    for goal, design in zip(goals, designs, strict=True):
        assert pool.best(goal).duty == design.duty
        assert pool.misses(goal).min() < 0.1
    between = goal_of(BUCK.replace("0.35", "0.62"))
    assert miss(*_results(pool.best(between), between), between)[0] > 1
    assert miss(*_results(pool.tuned(between), between), between)[0] < 0.1
    few = Goal(goals[0].ratio, goals[0].efficiency, 2, goals[0].operation)
    assert np.isinf(pool.misses(few)).all()
    fresh = Pool.of(designs)  # a goal that allows few devices leaves no mark on a later one of the same conditions
    assert np.isinf(fresh.misses(few)).all()
    assert fresh.misses(goals[0]).min() < 0.1
    known = [str(goal) for goal in goals]
    scores = reference_scores(3, known, texts, [*known, str(between)])
    assert scores["nearest"]["met"] == scores["nearest_simulated"]["met"] == 0.75
    assert scores["nearest_tuned"]["met"] == 1.0
    assert 0 <= scores["random_1000"]["met"] <= 1


def _results(design: Design, goal: Goal) -> tuple[np.ndarray, np.ndarray]:
    outcomes = evaluated([design.checked()], [design.duty], [goal])
    return outcomes.ratio, outcomes.efficiency


def test_tokens_are_read_back():
    for text in (*drawn(count=6).values["reference"].strings(), BUCK, BOOST):
        tokens = TOKENS.tokens(text).tolist()
        assert 0 not in tokens and max(tokens) < TOKENS.vocabulary and len(tokens) <= TOKENS.longest
        assert TOKENS.complete("", tokens) and not TOKENS.complete("", tokens[:-1])
        again = TOKENS.structure("", tokens)
        assert again.duty == pytest.approx(Design.read(text).duty, abs=0.0026)
        first, second = again.checked(), Design.read(text).checked()
        assert first.types.tolist() == second.types.tolist()
        assert first.nets.tolist() == second.nets.tolist()
    good = TOKENS.tokens(BUCK).tolist()
    for wrong in ([], [1], good[:-1], [good[0], 1], [1, *good[1:]], [*good[:2], good[3], good[3], *good[4:]], good[1:]):
        assert TOKENS.structure("", wrong) is None


def test_goals_tell_near_values_apart():
    def rows(ratio: float, efficiency: float, load: float = 100.0, devices: int = 5) -> np.ndarray:
        return TOKENS.goals(f"ratio={ratio} efficiency={efficiency} devices={devices} load={load}")

    base = rows(0.5, 0.9)
    assert base.shape == (6, TOKENS.goal) and set(np.unique(base)) == {-1, 1}
    others = (rows(0.504, 0.9), rows(0.5, 0.901), rows(0.5, 0.9, 200.0), rows(0.5, 0.9, 100.0, 7), rows(-0.5, 0.9))
    assert all((base != other).any() for other in others)


def test_costs_are_misses_of_simulated_designs():
    goal = goal_of(BUCK)
    costs = TOKENS.costs([str(goal)] * 3, [Design.read(BUCK), None, Design.read(BOOST)])
    assert costs[0] < 0.01
    assert costs[1] == math.inf
    assert costs[2] == pytest.approx(miss(*_results(Design.read(BOOST), goal), goal)[0], rel=1e-3)


@pytest.mark.thorough
def test_the_floor_is_a_random_valid_circuit():
    samples = drawn(count=30)
    floor = find("verifier", "circuits.designs").floors(samples)["random"]
    score = graphbench.Evaluator("circuits/design_5").evaluate({"goal": samples.values["goal"].strings()}, floor)
    assert score["valid"] > 0.4
    assert score["met"] < 0.4


@pytest.mark.thorough
def test_goals_that_no_circuit_reaches():
    parameters = DesignParameters.model_validate({"devices": 2, "duty": [0.1, 0.9], "ratios": [[50, 51]]})
    with pytest.raises(GenerationError, match="none with a ratio in one of"):
        DESIGNS.generate(parameters, KEY, np.arange(1), np.zeros(1, np.int64))


def test_a_model_answers_with_the_best_of_its_candidates():
    features = {"goal": ["input", "graph", "text"], "reference": ["output", "graph", "text"]}
    task = {"circuits/design_5": TaskFeatures(parse_features(features))}
    goals = [str(goal_of(text)) for text in (BUCK, BOOST)]
    batch = SimpleNamespace(goal=goals, reference=[BUCK, BOOST])

    def answers(samples: int, temperature: float):
        torch.manual_seed(0)
        settings = {"layers": 1, "hidden": 32, "heads": 2, "samples": samples, "temperature": temperature}
        model = build_task_model(SpellerModelConfig(tokenizer="circuits.designs", **settings), task)
        optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
        for _ in range(60):
            optimizer.zero_grad()
            model(batch)["loss"].mean().backward()
            optimizer.step()
        return model.eval().predict(batch)["answers"]

    one, many = answers(1, 0.0), answers(12, 1.0)
    costs = [TOKENS.costs(goals, found) for found in (one, many)]
    assert (costs[1] <= costs[0]).all()  # the first candidate takes the likeliest tokens
    assert (costs[1] < 1.5).any()
    with pytest.raises(ValueError, match="temperature=0"):
        SpellerModelConfig(tokenizer="circuits.designs", samples=2)
    with pytest.raises(ConfigError, match="cannot say which"):
        config = SpellerModelConfig(tokenizer="chip_design.literals", samples=2, temperature=1.0)
        texts = {"table": ["input", "graph", "text"], "reference": ["output", "graph", "text"]}
        build_task_model(config, {"chip_design/aig": TaskFeatures(parse_features(texts))})


class Split:
    """A split of three goals."""

    card, split = graphbench.card("circuits/design_5"), "test"

    def __len__(self) -> int:
        return 3

    def batches(self, size: int):
        yield Batch.from_data_list([Data(goal=str(goal_of(text)), num_nodes=3) for text in (BUCK, BOOST, BUCK)])


def test_a_line_of_a_file_is_an_answer_and_null_is_none(tmp_path):
    for name, content in (
        ("a.jsonl", f'{{"output": "{BUCK}"}}\nnull\n"{BUCK}"\n'),
        ("b.txt", f"{BUCK}\n\n{BUCK}\n"),
    ):
        (tmp_path / name).write_text(content)
        ((batch, answers),) = task_of(Split.card).read_predictions(tmp_path / name, Split())
        assert answers == [BUCK.encode(), None, BUCK.encode()]
        score = graphbench.Evaluator("circuits/design_5").evaluate(batch, answers)
        assert score["met"] == pytest.approx(2 / 3)
        assert score.failures == {"there is no design": 1}
