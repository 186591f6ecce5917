"""The periodic steady state of a converter, by matrix exponentials: no time steps, no transient.

Over a phase of length t the states, extended by the constant 1, change by ``exp(A t)``. Means follow from integrals of
exponentials, which double along with them (Van Loan, 1978)::

    F(t) = exp(A t) - 1                   F(2t) = 2 F + F F
    j(t) = int c exp(A s) ds              j(2t) = 2 j + j F
    W(t) = int exp(A s)^T Q exp(A s) ds   W(2t) = 2 W + W F + F^T W + F^T W F

from Taylor series over a short time. The identity is left out of F, so that slow modes keep their relative precision.
"""

from __future__ import annotations

import numpy as np

from graphbench.core.kernels import inner, kernel
from graphbench.domains.circuits.devices import CAPACITOR, GND, SA, VIN, VOUT
from graphbench.domains.circuits.equations import (
    FLOATING,
    FREQUENCY,
    INPUT_RESISTANCE,
    LOAD,
    OFF_RESISTANCE,
    ON_RESISTANCE,
    circuit_equations,
)
from graphbench.domains.circuits.matrices import (
    Floats,
    add,
    block,
    congruent,
    identity,
    norm,
    product,
    put,
    solve,
    transposed,
)
from graphbench.domains.circuits.topology import Ints

REGULAR, NO_POWER, UNDAMPED, UNSTABLE, ILL_CONDITIONED, UNDEFINED = range(6)
STATUSES = ("regular", "no_power", "undamped", "unstable", "ill_conditioned", "floating")

RATIO, EFFICIENCY, SETTLING, STATUS, FAULTS, INPUT_POWER = range(6)
NUM_RESULTS = 6

_TERMS = 12
_STEP = 0.25  # norm of the exponent below which the Taylor series has full precision
_MAX_DOUBLINGS = 400
_SQUARINGS = 46
_SMALL_RESISTANCE = 1e-4  # ohm
_SETTLED = float(np.log(100.0))
_UNDAMPED = 1e-11  # decay per period, as a logarithm, below which a mode does not decay
_WORST_INVERSE = 4e9  # times the precision of float64: the largest relative error of the state, 1e-6
_ZERO = 1e-10  # ratios and efficiencies below it are rounding errors
_NO_POWER = 1e-9  # share of the power of a load at the source's voltage


@kernel
def steady_states(types: Ints, nets: Ints, num_nets: Ints, ptr: Ints, duty: Floats, parameters: Floats) -> Floats:
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
    results = np.empty((num_nets.shape[0], NUM_RESULTS))
    for i in range(num_nets.shape[0]):
        devices = slice(ptr[i], ptr[i + 1])
        results[i] = converter_state(types[devices], nets[devices], num_nets[i], duty[i], parameters[i])
    return results


@kernel
def converter_state(types: Ints, nets: Ints, num_nets: int, duty: float, parameters: Floats) -> Floats:
    """Return the steady state of one circuit with a source of 1 V.

    Returns:
        float64 ``[6]``: ratio, efficiency, settling in seconds, status (a position in :data:`STATUSES`), the
        singularities (see :mod:`~.equations`), and the mean power of the source in W. Numbers that the status leaves
        undefined are nan.
    """
    result = np.full(NUM_RESULTS, np.nan)
    faults, rates_a, rates_b, nodes_a, nodes_b, _ = circuit_equations(types, nets, num_nets, parameters)
    result[FAULTS] = faults
    if faults & FLOATING:
        result[STATUS] = UNDEFINED
        return result
    n, period = rates_a.shape[0] - 1, 1.0 / parameters[FREQUENCY]
    first, means_a, squares_a = _phase(rates_a, nodes_a, _output_form(nodes_a), duty * period)
    second, means_b, squares_b = _phase(rates_b, nodes_b, _output_form(nodes_b), (1.0 - duty) * period)
    change = product(second, first)  # of the states over a period
    add(change, 1.0, first)
    add(change, 1.0, second)
    state, worst = _fixed_point(change)
    if not worst < _WORST_INVERSE:
        result[STATUS] = ILL_CONDITIONED
        return result
    middle = product(first, state)
    add(middle, 1.0, state)
    means = product(means_a, state)
    add(means, 1.0, product(means_b, middle))
    mean_out, mean_in = means[0, 0] / period, means[1, 0] / period
    mean_square = (congruent(squares_a, state)[0, 0] + congruent(squares_b, middle)[0, 0]) / period
    decay = _decay(block(change, 0, n, 0, n))
    power = (1.0 - mean_in) / parameters[INPUT_RESISTANCE]
    if (
        min(parameters[INPUT_RESISTANCE], parameters[ON_RESISTANCE]) < _SMALL_RESISTANCE
    ):  # the difference has few digits
        form_a = _loss_form(types, nets, nodes_a, parameters, True)
        form_b = _loss_form(types, nets, nodes_b, parameters, False)
        lost_a = _phase(rates_a, nodes_a, form_a, duty * period)[2]
        lost_b = _phase(rates_b, nodes_b, form_b, (1.0 - duty) * period)[2]
        power = (congruent(lost_a, state)[0, 0] + congruent(lost_b, middle)[0, 0]) / period
    efficiency = mean_square / parameters[LOAD] / power if power != 0.0 else 0.0
    result[RATIO] = mean_out if abs(mean_out) > _ZERO else 0.0
    result[EFFICIENCY] = efficiency if abs(efficiency) > _ZERO else 0.0
    result[INPUT_POWER] = power
    result[SETTLING] = period * _SETTLED / decay if decay > 0.0 else np.inf
    result[STATUS] = REGULAR
    if power < _NO_POWER / parameters[LOAD]:
        result[STATUS], result[EFFICIENCY] = NO_POWER, 0.0
    if decay < _UNDAMPED:
        result[STATUS], result[SETTLING] = UNDAMPED, np.inf
    if decay < -_UNDAMPED:
        result[STATUS], result[RATIO], result[EFFICIENCY] = UNSTABLE, np.nan, np.nan
    return result


@kernel
def propagator(rates: Floats, time: float) -> Floats:
    """Return ``exp(rates * time) - 1``."""
    exponent, doublings = _short(rates, time)
    change = _series(exponent)
    for _ in range(doublings):
        change = _doubled(change, change)
    return change


@inner
def _output_form(nodes: Floats) -> Floats:
    """Return the squared voltage of VOUT as a quadratic form of the extended state, float64 ``[n + 1, n + 1]``."""
    output = block(nodes, VOUT - 1, VOUT, 0, nodes.shape[1])
    return product(transposed(output), output)


@inner
def _loss_form(types: Ints, nets: Ints, nodes: Floats, parameters: Floats, first: bool) -> Floats:
    """Return the power that all resistors take in a phase, as a quadratic form; in a period it is the source's."""
    size = nodes.shape[1]
    across, form = np.zeros((1, size)), np.zeros((size, size))
    for d in range(-2, types.shape[0]):
        across[0, :] = 0.0
        if d == -2:
            resistance = parameters[INPUT_RESISTANCE]
            across[0, size - 1] = 1.0
            add(across, -1.0, block(nodes, VIN - 1, VIN, 0, size))
        elif d == -1:
            resistance = parameters[LOAD]
            add(across, 1.0, block(nodes, VOUT - 1, VOUT, 0, size))
        elif types[d] < CAPACITOR:
            resistance = parameters[ON_RESISTANCE if (types[d] == SA) == first else OFF_RESISTANCE]
            for sign, net in ((1.0, nets[d, 0]), (-1.0, nets[d, 1])):
                if net != GND:
                    add(across, sign, block(nodes, net - 1, net, 0, size))
        else:
            continue
        add(form, 1.0 / resistance, product(transposed(across), across))
    return form


@inner
def _phase(rates: Floats, nodes: Floats, instantaneous: Floats, time: float) -> tuple[Floats, Floats, Floats]:
    """Return the change of the extended states over a phase, and integrals of output and input voltage.

    Args:
        rates: float64 ``[n + 1, n + 1]``.
        nodes: float64 ``[M - 1, n + 1]``, voltages of nets by extended state.
        instantaneous: float64 ``[n + 1, n + 1]``, a quadratic form of the extended state.
        time: Seconds.

    Returns:
        F float64 ``[n + 1, n + 1]``; j ``[2, n + 1]``, the integrals of the voltages of VOUT and VIN in Vs by the
        initial state; and W ``[n + 1, n + 1]``, the integral of the quadratic form by the initial state.
    """
    size = rates.shape[0]
    exponent, doublings = _short(rates, time)
    step = time / 2.0**doublings
    term = np.empty((2, size))
    put(term, 0, 0, step, block(nodes, VOUT - 1, VOUT, 0, size))
    put(term, 1, 0, step, block(nodes, VIN - 1, VIN, 0, size))
    change, means = _series(exponent), term.copy()
    form = np.empty((size, size))
    put(form, 0, 0, step, instantaneous)
    squares = form.copy()
    for k in range(2, 2 * _TERMS):
        term = product(term, exponent)
        put(term, 0, 0, 1.0 / k, term)
        add(means, 1.0, term)
        half = product(form, exponent)
        put(form, 0, 0, 1.0 / k, half)
        add(form, 1.0 / k, transposed(half))
        add(squares, 1.0, form)
    for _ in range(doublings):
        means = _doubled(means, change)
        half = product(squares, change)
        add(half, 1.0, squares)  # W + W F
        add(squares, 1.0, half)
        add(squares, 1.0, product(transposed(change), half))
        change = _doubled(change, change)
    return change, means, squares


@inner
def _doubled(matrix: Floats, change: Floats) -> Floats:
    doubled = product(matrix, change)
    add(doubled, 2.0, matrix)
    return doubled


@inner
def _short(rates: Floats, time: float) -> tuple[Floats, int]:
    """Return the exponent of a step short enough for the Taylor series, and the number of doublings of the step."""
    size, doublings = norm(rates) * time, 0
    while size > _STEP and doublings < _MAX_DOUBLINGS:  # the limit ends infinite rates, which are ill-conditioned
        size, doublings = size / 2.0, doublings + 1
    exponent = np.empty(rates.shape)
    put(exponent, 0, 0, time / 2.0**doublings, rates)
    return exponent, doublings


@inner
def _series(exponent: Floats) -> Floats:
    total, term = exponent.copy(), exponent.copy()
    for k in range(2, _TERMS + 1):
        term = product(term, exponent)
        put(term, 0, 0, 1.0 / k, term)
        add(total, 1.0, term)
    return total


@inner
def _fixed_point(change: Floats) -> tuple[Floats, float]:
    """Return the extended state ``[n + 1, 1]`` that a period does not change, and the norm of the inverse behind it."""
    n = change.shape[0] - 1
    right = np.empty((n, n + 1))
    put(right, 0, 0, 1.0, identity(n))
    put(right, 0, n, -1.0, block(change, 0, n, n, n + 1))
    solved = solve(block(change, 0, n, 0, n), right)
    state = np.ones((n + 1, 1))
    put(state, 0, 0, 1.0, block(solved, 0, n, n, n + 1))
    return state, norm(block(solved, 0, n, 0, n))


@inner
def _decay(change: Floats) -> float:
    """Return the decay of the slowest mode per period: minus the logarithm of the spectral radius of ``1 + change``.

    The logarithm of the norm of a matrix's power 2**k, divided by 2**k, tends to the logarithm of the spectral radius;
    with k = 46 the difference is below the rounding errors.
    """
    n = change.shape[0]
    if n == 0:
        return np.inf
    power, total = identity(n), 0.0
    add(power, 1.0, change)
    for k in range(_SQUARINGS):
        size = norm(power)
        if size == 0.0:
            return np.inf
        total += np.log(size) / 2.0**k
        put(power, 0, 0, 1.0 / size, power)
        power = product(power, power)
    size = norm(power)
    return -(total + np.log(size) / 2.0**_SQUARINGS) if size > 0.0 else np.inf
