"""The probes against plain Python that draws the same random numbers and recounts everything from the formula."""

import itertools
import math
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.core.rng import below, next_u64, seed
from graphbench.domains.sat.cnf import Cnf
from graphbench.domains.sat.feature_groups import features
from graphbench.domains.sat.feature_propagation import dive
from graphbench.domains.sat.feature_search_kernels import COLUMNS, breakout, walksat
from graphbench.domains.sat.feature_tables import Tables

KEY = np.uint64(11)
OPEN, CONFLICT, COMPLETE = 1, 0, 2


@st.composite
def formulas(draw, shortest=0):
    n = draw(st.integers(1, 8))
    literal = st.integers(1, n).flatmap(lambda v: st.sampled_from([v, -v]))
    clause = st.lists(literal, min_size=shortest, max_size=4)
    return Cnf.from_clauses(draw(st.lists(clause, max_size=24)), n)


def random_formula(n, m, number):
    rng = np.random.default_rng(number)
    clauses = [(rng.choice(n, 3, replace=False) + 1) * rng.choice([-1, 1], 3) for _ in range(m)]
    return Cnf.from_clauses([clause.tolist() for clause in clauses], n)


def codes_of(cnf):
    """Return the clauses as sorted lists of distinct codes: twice the variable from 0, plus 1 for a negation."""
    return [sorted({2 * abs(x) - 2 + (x < 0) for x in clause}) for clause in cnf.clauses()]


def random_bit(state):
    return int(next_u64(state)) >> 63


def closure(clauses, true):
    """Return the true literals after unit propagation, or None if a clause is violated."""
    true = set(true)
    while True:
        units = set()
        for clause in clauses:
            if not any(code in true for code in clause):
                rest = [code for code in clause if code ^ 1 not in true]
                if not rest:
                    return None
                units.update(rest[:1] if len(rest) == 1 else [])
        if not units:
            return true
        true |= units
        if any(code ^ 1 in true for code in units):
            return None


def shuffled(order, state):
    """Yield a random literal of each variable in random order; the next dive goes on with the order left behind."""
    for i in range(len(order)):
        at = i + int(below(state, len(order) - i))
        order[i], order[at] = order[at], order[i]
        yield 2 * order[i] + random_bit(state)


def slow_dive(clauses, order, state, root, depths):
    """Return the depth of a dive, its end, and the propagated variables at the depths that it passed."""
    true, depth, counts = set(root), 0, {}
    for code in shuffled(order, state):
        if code in true or code ^ 1 in true:
            continue
        depth += 1
        true = closure(clauses, true | {code})
        if true is None:
            return depth, CONFLICT, counts
        counts[depth] = len(true) - len(root) - depth
        if len(true) == len(order):
            break
    return depth, COMPLETE, {d: counts.get(d, counts[depth]) for d in depths}


def check_dives(cnf, dives):
    tables, depths = Tables.of(cnf), np.array([1, 2, 5])
    status, assigned, propagated, depth, ends, _ = dive(*tables.holders, *tables.members, depths, dives, KEY)
    clauses = codes_of(cnf)
    root = closure(clauses, set())
    if root is None:
        assert status == CONFLICT
        assert len(depth) == 0
        return
    assert assigned == len(root)
    assert status == (COMPLETE if assigned == cnf.num_variables else OPEN)
    order = list(range(cnf.num_variables))
    for number in range(len(depth)):
        steps, end, counts = slow_dive(clauses, order, seed(KEY, number, 0, 0), root, depths.tolist())
        assert (depth[number], ends[number]) == (steps, end)
        for column, d in enumerate(depths.tolist()):
            if d in counts:
                assert propagated[number, column] == counts[d]
            else:  # which literals of a conflict are found is left open
                assert propagated[number, column] >= max(counts.values(), default=0)
    assert len(depth) == (dives if status == OPEN else 0)


@given(formulas())
@settings(max_examples=120, deadline=None)
def test_dives_propagate_what_follows(cnf):
    check_dives(cnf, 6)


def test_dives_of_a_larger_formula():
    check_dives(random_formula(60, 240, 1), 6)


def test_the_size_of_the_tree_is_the_mean_of_the_estimates():
    cnf = random_formula(80, 500, 2)
    tables = Tables.of(cnf)
    depth = dive(*tables.holders, *tables.members, np.array([1, 4, 16, 64]), 32, np.uint64(0x5A7FEA7))[3]
    found = features(cnf, ["propagation"])
    assert found["log2_tree_size"] == pytest.approx(math.log2(np.mean(2.0**depth)))
    assert found["dive_depth_log_mean"] == pytest.approx(math.log10(1 + depth.mean()))
    assert len(set(depth.tolist())) > 1


class SlowState:
    """An assignment whose violated clauses are recounted from the formula."""

    def __init__(self, cnf, stream, run):
        self.clauses, self.n = codes_of(cnf), cnf.num_variables
        self.state = seed(KEY, run, 0, stream)
        self.values = [random_bit(self.state) == 0 for _ in range(self.n)]
        self.holders = [[j for j, clause in enumerate(self.clauses) if c in clause] for c in range(2 * self.n)]
        self.violated = [j for j in range(len(self.clauses)) if self.is_violated(j)]
        self.row = {"initial": len(self.violated), "best": len(self.violated), "best_flip": 0}

    def holds(self, code):
        return self.values[code >> 1] == (code % 2 == 0)

    def is_violated(self, j):
        return not any(map(self.holds, self.clauses[j]))

    def after(self, v):
        """Return the numbers of the violated clauses after a flip of v."""
        self.values[v] = not self.values[v]
        result = {j for j in range(len(self.clauses)) if self.is_violated(j)}
        self.values[v] = not self.values[v]
        return result

    def draw(self, items):
        return items[int(below(self.state, len(items)))]

    def flip(self, v):
        """Flip v, and keep the list of violated clauses as a compiled search does: the last item fills a gap."""
        before, after = set(self.violated), self.after(v)
        false = 2 * v + (not self.values[v])
        self.values[v] = not self.values[v]
        self.violated += [j for j in self.holders[false] if j in after - before]
        for j in self.holders[false ^ 1]:
            if j in before - after:
                remove(self.violated, j)

    def finish(self, flips, minimum):
        self.row |= dict(
            zip(("first_minimum", "first_minimum_flip"), minimum or (len(self.violated), flips), strict=True)
        )
        self.row |= {"final": len(self.violated), "flips": flips}
        return [self.row[name] for name in COLUMNS]

    def record(self, flips):
        if len(self.violated) < self.row["best"]:
            self.row |= {"best": len(self.violated), "best_flip": flips}


def remove(items, item):
    at = items.index(item)
    items[at] = items[-1]
    items.pop()


def slow_walksat(cnf, run, limit):
    search, flips, minimum = SlowState(cnf, 1, run), 0, None
    while flips < limit and search.violated:
        before = len(search.violated)
        clause = search.clauses[search.draw(search.violated)]
        breaks = [len(search.after(code >> 1) - set(search.violated)) for code in clause]
        ties, chosen, least = 0, None, math.inf
        for code, count in zip(clause, breaks, strict=True):
            if count < least:
                ties, chosen, least = 1, code >> 1, count
            elif count == least:
                ties += 1
                chosen = code >> 1 if int(below(search.state, ties)) == 0 else chosen
        if least > 0 and random_bit(search.state) == 0:
            chosen = search.draw(clause) >> 1
        search.flip(chosen)
        flips += 1
        search.record(flips)
        if minimum is None and len(search.violated) >= before:
            minimum = before, flips - 1
    return search.finish(flips, minimum)


def without_tautologies(cnf):
    return Cnf.from_clauses([c for c in cnf.clauses() if not any(-x in c for x in c)], cnf.num_variables)


def run_walksat(cnf, runs, limit):
    tables = Tables.of(cnf)
    return walksat(*tables.holders, *tables.members, runs, limit, KEY)[0].tolist()


@given(formulas(shortest=1))
@settings(max_examples=60, deadline=None)
def test_walksat_flips_as_plain_python_does(cnf):
    cnf = without_tautologies(cnf)
    assert run_walksat(cnf, 2, 40) == [slow_walksat(cnf, run, 40) for run in range(2)]


def test_walksat_on_a_larger_formula():
    cnf = random_formula(50, 220, 3)
    assert run_walksat(cnf, 1, 150) == [slow_walksat(cnf, 0, 150)]


def check_breakout(cnf, limit):
    """Follow the flips of the compiled search, and recount weights and violated clauses from the formula."""
    tables = Tables.of(cnf)
    rows, flipped, _ = breakout(*tables.holders, *tables.members, 2, limit, KEY)
    for run in range(2):
        search, minimum = SlowState(cnf, 2, run), None
        weight = [1] * len(search.clauses)
        flips = int(rows[run, COLUMNS.index("flips")])
        for number, v in enumerate(flipped[run, :flips].tolist(), start=1):
            assert search.violated
            heavy = sum(weight[j] for j in search.violated)
            gains = [heavy - sum(weight[j] for j in search.after(u)) for u in range(search.n)]
            if v < 0:
                assert max(gains) <= 0
                minimum = minimum or (len(search.violated), number - 1)
                for j in search.violated:
                    weight[j] += 1
            else:
                assert gains[v] > 0
                search.flip(v)
                search.record(number)
        assert search.finish(flips, minimum) == rows[run].tolist()
        assert flips == limit or not search.violated


@given(formulas(shortest=1))
@settings(max_examples=60, deadline=None)
def test_breakout_flips_only_what_lowers_the_weight(cnf):
    check_breakout(without_tautologies(cnf), 40)


def test_breakout_on_a_larger_formula():
    check_breakout(random_formula(40, 190, 4), 150)


def test_breakout_prefers_large_gains():
    cnf = Cnf.from_clauses([[v] * 1 for v in range(1, 41) for _ in range(1 + 9 * (v <= 20))], 40)
    tables = Tables.of(cnf)
    _, flipped, _ = breakout(*tables.holders, *tables.members, 20, 40, KEY)
    assert (flipped[:, :3] < 20).all()  # gains of 10 come before gains of 1


@given(formulas(shortest=1))
@settings(max_examples=60, deadline=None)
def test_searches_find_the_optimum_of_small_formulas(cnf):
    n = cnf.num_variables
    models = itertools.product([False, True], repeat=n)
    optimum = min(
        sum(not any(model[abs(x) - 1] == (x > 0) for x in clause) for clause in cnf.clauses()) for model in models
    )
    for search in (walksat, breakout):
        tables = Tables.of(cnf)
        for row in search(*tables.holders, *tables.members, 2, 2000, KEY)[0].tolist():
            found = dict(zip(COLUMNS, row, strict=True))
            assert found["best"] == optimum
            assert found["initial"] >= found["first_minimum"] >= optimum
            assert found["first_minimum_flip"] <= found["flips"]
            assert found["best_flip"] <= found["flips"] <= 2000
            assert (found["final"] == 0) == (optimum == 0)
            assert found["flips"] == 2000 or optimum == 0


@pytest.mark.parametrize(("search", "name", "limit"), [(walksat, "walksat", 10_000), (breakout, "breakout", 5_000)])
@pytest.mark.parametrize("empty", [0, 3])
def test_features_of_searches_are_means_over_runs(search, name, limit, empty):
    cnf = random_formula(90, 420, 5)
    tables = Tables.of(cnf)
    rows = search(*tables.holders, *tables.members, 4, limit, np.uint64(0x5A7FEA7))[0]
    initial, best, best_flip, minimum, minimum_flip, final, flips = rows.T.tolist()
    initial, best, minimum, final = ([x + empty for x in column] for column in (initial, best, minimum, final))
    found = features(Cnf.from_clauses([[]] * empty + list(cnf.clauses()), 90), [name])
    mean = statistics.fmean
    gain = mean(initial) - mean(best)
    assert found == pytest.approx(
        {
            f"{name}_log_best": math.log10(1 + mean(best)),
            f"{name}_best_share": mean(best) / (420 + empty),
            f"{name}_best_cv": statistics.pstdev(best) / mean(best) if any(best) else 0,
            f"{name}_log_best_flip": math.log10(1 + mean(best_flip)),
            f"{name}_best_flip_cv": statistics.pstdev(best_flip) / mean(best_flip),
            f"{name}_gain_per_flip": gain / mean(best_flip),
            f"{name}_log_first_minimum": math.log10(1 + mean(minimum)),
            f"{name}_log_first_minimum_flip": math.log10(1 + mean(minimum_flip)),
            f"{name}_first_minimum_gain_share": (mean(initial) - mean(minimum)) / gain,
            f"{name}_final_cv": statistics.pstdev(final) / mean(final) if any(final) else 0,
            f"{name}_log_flips": math.log10(1 + mean(flips)),
            f"solved_by_probe_{name}": float(0 in final),
        }
    )


def test_features_of_dives_are_means_over_dives():
    cnf = Cnf.from_clauses([[81], *random_formula(80, 500, 2).clauses()], 81)
    tables, depths = Tables.of(cnf), [1, 4, 16, 64]
    _, root, propagated, depth, ends, _ = dive(
        *tables.holders, *tables.members, np.array(depths), 32, np.uint64(0x5A7FEA7)
    )
    found = features(cnf, ["propagation"])
    assert root == 1
    assert found["root_assigned_share"] == pytest.approx(1 / 81)
    for column, d in enumerate(depths):
        values = propagated[:, column].tolist()
        assert found[f"log_propagated_at_depth_{d}"] == pytest.approx(math.log10(1 + statistics.fmean(values)))
        cv = statistics.pstdev(values) / statistics.fmean(values) if any(values) else 0
        assert found[f"propagated_cv_at_depth_{d}"] == pytest.approx(cv)
    assert found["log_propagated_at_depth_16"] > found["log_propagated_at_depth_4"]
    assert found["dive_depth_cv"] == pytest.approx(statistics.pstdev(depth.tolist()) / statistics.fmean(depth.tolist()))
    assert found["dive_depth_log_min"] == pytest.approx(math.log10(1 + depth.min()))
    assert found["dive_depth_log_max"] == pytest.approx(math.log10(1 + depth.max()))
    assert found["solved_by_probe_propagation"] == (ends == COMPLETE).any()
    immediate = features(Cnf.from_clauses([[1, 2], [1, -2], [-1, 2], [-1, -2]]), ["propagation"])
    assert immediate["depth_1_conflict_share"] == 1
    assert immediate["log2_tree_size"] == 1
    assert immediate["solved_by_probe_propagation"] == 0
