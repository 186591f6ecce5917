"""The periodic steady state of a converter, by matrix exponentials: no time steps, no transient.

Over a phase of length t the states, extended by the constant 1, change by ``exp(A t)``. Means follow from integrals of
exponentials, which double along with them (Van Loan, 1978)::

    F(t) = exp(A t) - 1              F(2t) = 2 F + F F
    j(t) = int c exp(A s) ds         j(2t) = 2 j + j F
    W(t) = int exp(A s)^T Q exp(A s) ds    W(2t) = 2 W + W F + F^T W + F^T W F

from Taylor series over a short time. The identity is left out of F, so that slow modes keep their relative precision.
"""

from __future__ import annotations

import numpy as np

from graphbench.core.kernels import inner, kernel
from graphbench.domains.circuits.devices import VIN, VOUT
from graphbench.domains.circuits.equations import FLOATING, FREQUENCY, INPUT_RESISTANCE, LOAD, circuit_equations
from graphbench.domains.circuits.matrices import Floats, norm, product, solve, transposed
from graphbench.domains.circuits.topology import Ints

REGULAR, NO_POWER, UNDAMPED, UNSTABLE, ILL_CONDITIONED, UNDEFINED = range(6)
STATUSES = ("regular", "no_power", "undamped", "unstable", "ill_conditioned", "floating")

RATIO, EFFICIENCY, SETTLING, STATUS, FAULTS, INPUT_POWER = range(6)
NUM_RESULTS = 6

_TERMS = 12
_STEP = 0.25  # norm of the exponent below which the Taylor series has full precision
_SQUARINGS = 46
_SETTLED = float(np.log(100.0))
_UNDAMPED = 1e-11  # decay per period, as a logarithm, below which a mode does not decay
_WORST_INVERSE = 4e9  # times the precision of float64: the largest relative error of the state, 1e-6
_NO_POWER = 1e-9  # share of the power of a load at the source's voltage


@kernel
def steady_states(
    types: Ints, nets: Ints, num_nets: Ints, ptr: Ints, duty: Floats, parameters: Floats
) -> Floats:
    """Return the steady states of many circuits.

    Args:
        types: int64 ``[D]``, types of the devices of all circuits, one circuit after the other.
        nets: int64 ``[D, 2]``, their nets, numbered within each circuit.
        num_nets: int64 ``[S]``, number of nets per circuit.
        ptr: int64 ``[S + 1]``: devices ``ptr[i]`` to ``ptr[i + 1] - 1`` belong to circuit i.
        duty: float64 ``[S]``.
        parameters: float64 ``[S, 8]``, see :func:`~.equations.circuit_equations`.

    Returns:
        float64 ``[S, 6]``, see :func:`converter_state`.
    """
    found = np.empty((num_nets.shape[0], NUM_RESULTS))
    for i in range(num_nets.shape[0]):
        devices = slice(ptr[i], ptr[i + 1])
        found[i] = converter_state(types[devices], nets[devices], num_nets[i], duty[i], parameters[i])
    return found


@kernel
def converter_state(types: Ints, nets: Ints, num_nets: int, duty: float, parameters: Floats) -> Floats:
    """Return the steady state of one circuit with a source of 1 V.

    Returns:
        float64 ``[6]``: ratio, efficiency, settling in seconds, status (a position in :data:`STATUSES`), what is
        singular (see :mod:`~.equations`), and the mean power of the source in W. Numbers that the status leaves
        undefined are nan.
    """
    found = np.full(NUM_RESULTS, np.nan)
    faults, matrix, driven, out, offset, _ = circuit_equations(types, nets, num_nets, parameters)
    found[FAULTS] = faults
    if faults & FLOATING:
        found[STATUS] = UNDEFINED
        return found
    n, period = matrix.shape[1], 1.0 / parameters[FREQUENCY]
    first = _phase(matrix[0], driven[0], out[0], offset[0], duty * period)
    second = _phase(matrix[1], driven[1], out[1], offset[1], (1.0 - duty) * period)
    change = first[0] + second[0] + product(second[0], first[0])  # of the states over a period
    state, worst = _fixed_point(change)
    if not worst < _WORST_INVERSE:
        found[STATUS] = ILL_CONDITIONED
        return found
    middle = state + product(first[0], state)
    mean_out, mean_in, mean_square = 0.0, 0.0, 0.0
    for i in range(n + 1):
        mean_out += (first[1][i, 0] * state[i, 0] + second[1][i, 0] * middle[i, 0]) / period
        mean_in += (first[1][i, 1] * state[i, 0] + second[1][i, 1] * middle[i, 0]) / period
        for j in range(n + 1):
            mean_square += first[2][i, j] * state[i, 0] * state[j, 0] / period
            mean_square += second[2][i, j] * middle[i, 0] * middle[j, 0] / period
    decay = _decay(change[:n, :n].copy())
    power = (1.0 - mean_in) / parameters[INPUT_RESISTANCE]
    found[RATIO], found[INPUT_POWER] = mean_out, power
    found[EFFICIENCY] = mean_square / parameters[LOAD] / power
    found[SETTLING] = period * _SETTLED / decay if decay > 0.0 else np.inf
    found[STATUS] = REGULAR
    if power < _NO_POWER / parameters[LOAD]:
        found[STATUS], found[EFFICIENCY] = NO_POWER, 0.0
    if decay < _UNDAMPED:
        found[STATUS], found[SETTLING] = UNDAMPED, np.inf
    if decay < -_UNDAMPED:
        found[STATUS], found[RATIO], found[EFFICIENCY] = UNSTABLE, np.nan, np.nan
    return found


@kernel
def propagator(matrix: Floats, driven: Floats, time: float) -> Floats:
    """Return ``exp(A t) - 1`` of states extended by the constant 1, float64 ``[n + 1, n + 1]``."""
    exponent, doublings = _short(matrix, driven, time)
    change = _series(exponent)
    for _ in range(doublings):
        change = 2.0 * change + product(change, change)
    return change


@inner
def _phase(matrix: Floats, driven: Floats, out: Floats, offset: Floats, time: float) -> tuple[Floats, Floats, Floats]:
    """Return the change of the extended states over a phase, and integrals of output and input voltage.

    Returns:
        F float64 ``[n + 1, n + 1]``; ``[n + 1, 2]``, the integrals of the voltages of VOUT and VIN in Vs by initial
        state; and W ``[n + 1, n + 1]``, the quadratic form that is the integral of the squared voltage of VOUT.
    """
    n = matrix.shape[0]
    exponent, doublings = _short(matrix, driven, time)
    step = time / 2.0**doublings
    rows = np.zeros((n + 1, 2))
    rows[:n, 0], rows[n, 0] = out[VOUT - 1], offset[VOUT - 1]
    rows[:n, 1], rows[n, 1] = out[VIN - 1], offset[VIN - 1]
    change, backward = _series(exponent), transposed(exponent)
    term, integral = rows * step, rows * step
    form = np.empty((n + 1, n + 1))
    for i in range(n + 1):
        for j in range(n + 1):
            form[i, j] = rows[i, 0] * rows[j, 0] * step
    square = form.copy()
    for k in range(2, 2 * _TERMS):
        term = product(backward, term) / k
        integral += term
        half = product(backward, form)
        form = (half + transposed(half)) / k
        square += form
    for _ in range(doublings):
        flipped = transposed(change)
        integral = 2.0 * integral + product(flipped, integral)
        half = square + product(square, change)
        square = square + half + product(flipped, half)
        change = 2.0 * change + product(change, change)
    return change, integral, square


@inner
def _short(matrix: Floats, driven: Floats, time: float) -> tuple[Floats, int]:
    """Return the exponent of a step short enough for the Taylor series, and how often the step must be doubled."""
    n = matrix.shape[0]
    exponent = np.zeros((n + 1, n + 1))
    exponent[:n, :n] = matrix * time
    exponent[:n, n] = driven * time
    size, doublings = norm(exponent), 0
    while size > _STEP:
        size, doublings = size / 2.0, doublings + 1
    return exponent / 2.0**doublings, doublings


@inner
def _series(exponent: Floats) -> Floats:
    found, term = exponent.copy(), exponent.copy()
    for k in range(2, _TERMS + 1):
        term = product(term, exponent) / k
        found += term
    return found


@inner
def _fixed_point(change: Floats) -> tuple[Floats, float]:
    """Return the extended state ``[n + 1, 1]`` that a period does not change, and the norm of the inverse behind it."""
    n = change.shape[0] - 1
    right = np.zeros((n, n + 1))
    for i in range(n):
        right[i, i], right[i, n] = 1.0, -change[i, n]
    solved = solve(change[:n, :n].copy(), right)
    state = np.ones((n + 1, 1))
    state[:n, 0] = solved[:, n]
    return state, norm(solved[:, :n].copy())


@inner
def _decay(change: Floats) -> float:
    """Return the decay of the slowest mode per period: minus the logarithm of the spectral radius of ``1 + change``.

    The logarithm of the norm of a matrix's power 2**k, divided by 2**k, tends to that of the spectral radius; with k =
    46 the difference is below the rounding errors.
    """
    n = change.shape[0]
    if n == 0:
        return np.inf
    power, total = change + np.eye(n), 0.0
    for k in range(_SQUARINGS):
        size = norm(power)
        if size == 0.0:
            return np.inf
        total += np.log(size) / 2.0**k
        power = power / size
        power = product(power, power)
    size = norm(power)
    return -(total + np.log(size) / 2.0**_SQUARINGS) if size > 0.0 else np.inf
