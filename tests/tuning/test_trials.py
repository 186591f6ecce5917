import json
import math
from dataclasses import replace

import pytest

from graphbench.core.errors import TuningError
from graphbench.tuning.trial import Status, Trial, incumbent_of

TRIAL = Trial(
    number=3,
    config_id=2,
    config={"lr": 0.1, "layers": 3, "kind": "a", "flag": True},
    budget=27,
    continued_from=9,
    seed=5,
    status=Status.SUCCESS,
    cost=0.25,
    seconds=1.5,
    steps=18,
    started="2025-01-01T00:00:00+00:00",
    metrics={"f1": 0.75, "odd": math.nan},
    worker="host:1",
    tries=2,
)


def test_a_trial_survives_json_and_only_metrics_may_be_nan() -> None:
    text = json.dumps(TRIAL.to_json(), allow_nan=False)
    again = Trial.from_json(json.loads(text))
    assert math.isnan(again.metrics["odd"])
    assert replace(again, metrics={}) == replace(TRIAL, metrics={})
    assert again.metrics["f1"] == 0.75
    assert type(again.status) is Status


@pytest.mark.parametrize(
    "change",
    [{"status": "great"}, {"unknown": 1}, {"number": ...}, {"metrics": 3}],
    ids=["status", "key", "less", "map"],
)
def test_a_malformed_record_is_refused(change: dict[str, object]) -> None:
    record = {**TRIAL.to_json(), **change}
    with pytest.raises(TuningError, match="not the record of a trial"):
        Trial.from_json({key: value for key, value in record.items() if value is not ...})


def test_older_records_of_failures_lose_their_worst_case_cost_and_need_no_note() -> None:
    record = TRIAL.to_json() | {"status": "timeout", "cost": 0.25}
    del record["note"]
    again = Trial.from_json(record)
    assert (again.cost, again.note, again.to_json()["cost"]) == (None, "", None)


def test_only_a_success_succeeded() -> None:
    assert [status for status in Status if replace(TRIAL, status=status).succeeded] == [Status.SUCCESS]


def _trial(number: int, budget: int, cost: float, status: Status = Status.SUCCESS) -> Trial:
    return replace(TRIAL, number=number, budget=budget, cost=cost, status=status)


def test_the_incumbent_is_the_best_at_the_largest_budget_reached() -> None:
    trials = [_trial(0, 9, 0.1), _trial(1, 27, 0.5), _trial(2, 27, 0.4), _trial(3, 27, 0.4), _trial(4, 9, 0.0)]
    best = incumbent_of(trials)
    assert best is not None and best.number == 2
    assert incumbent_of(trials[::-1]) == best


def test_a_failure_is_no_incumbent_and_reaches_no_budget() -> None:
    best = incumbent_of([_trial(0, 9, 0.1), _trial(1, 27, 0.0, Status.TIMEOUT)])
    assert best is not None and best.number == 0
    assert incumbent_of([_trial(1, 27, 0.0, Status.RAISED)]) is None
    assert incumbent_of([]) is None
