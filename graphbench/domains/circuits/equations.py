"""Circuit equations of a converter as linear differential equations, exact and without parasitic elements.

Modified nodal analysis with node fluxes ``phi`` (integrals of node voltages ``v``) reads, per switch phase::

    C phi'' + G phi' + K phi = i        (i: the current of the source, in its Norton form)

where C, G and K are the Laplacians of the capacitors, of switches, source and load resistance, and of the inductors
(with weights 1/L). All are symmetric and positive semidefinite. Indicators of connected components span their null
spaces, so singularities are detected by counting components, not by rounding:

- nets that no device joins to GND: their potential is undefined (``FLOATING``);
- islands joined to the rest by inductors alone (cut sets of inductors, index 2): their fluxes are eliminated exactly;
- islands joined to the rest by capacitors alone: their charge is conserved, 0 as the circuit starts from rest;
- loops of capacitors or of inductors: their nets or currents are not independent; node fluxes count each once.

The rest is ``x' = A x + b`` with states scaled such that ``|x|^2 / 2`` is the stored energy, for a source of 1 V.
Hence ``A + A^T`` is negative semidefinite, no mode grows, and matrix exponentials are well conditioned.
"""

from __future__ import annotations

import numpy as np

from graphbench.core.kernels import inner, kernel
from graphbench.domains.circuits.devices import CAPACITOR, GND, INDUCTOR, SA, VIN, VOUT
from graphbench.domains.circuits.matrices import (
    Floats,
    add,
    block,
    cholesky,
    congruent,
    identity,
    product,
    put,
    semidefinite_factor,
    solve,
    transposed,
)
from graphbench.domains.circuits.topology import Ints

LOAD, INDUCTANCE, CAPACITANCE, FREQUENCY, INPUT_RESISTANCE, ON_RESISTANCE, OFF_RESISTANCE, OUTPUT_CAPACITANCE = range(8)
NUM_PARAMETERS = 8

CAPACITOR_LOOP, INDUCTOR_LOOP, CAPACITOR_CUT, INDUCTOR_CUT, FLOATING = 1, 2, 4, 8, 16
_SMALL = 1e-9  # below it a remainder of indicator vectors, whose entries are 0 and 1, is zero


@kernel
def circuit_equations(
    types: Ints, nets: Ints, num_nets: int, parameters: Floats
) -> tuple[int, Floats, Floats, Floats, Floats, Floats]:
    """Return the equations of both switch phases.

    Args:
        types: int64 ``[K]``, types of devices.
        nets: int64 ``[K, 2]``, their nets; GND, VIN and VOUT are 0, 1 and 2.
        num_nets: Number of nets M.
        parameters: float64 ``[8]``: load, inductance, capacitance, frequency, input, on and off resistance, and output
            capacitance, in SI units.

    Returns:
        The singularities, a sum of ``CAPACITOR_LOOP`` etc.; then, for the n states extended by the constant 1:
        the rates of change in the first and in the second phase, float64 ``[n + 1, n + 1]`` in 1/s; the voltages of the
        nets other than GND in these phases, ``[M - 1, n + 1]``; and their fluxes ``[M - 1, n + 1]`` in Vs, up to a part
        that drives no inductor. With ``FLOATING`` all are empty.
    """
    count = num_nets - 1
    faults, basis, nu, nw, ng = _states(types, nets, num_nets, parameters[OUTPUT_CAPACITANCE])
    if faults & FLOATING:
        none = np.empty((0, 0))
        return faults, none, none, none, none, none
    stiffness = _laplacian(types, nets, num_nets, parameters, INDUCTOR)
    mass = _laplacian(types, nets, num_nets, parameters, CAPACITOR)
    columns = _independent(mass, stiffness, basis, nu, nw, ng)
    factor = semidefinite_factor(congruent(stiffness, columns))
    scale = identity(nu + ng)
    if nu:
        mass_factor = cholesky(congruent(mass, block(columns, 0, count, 0, nu)))
        put(scale, 0, 0, 1.0, solve(transposed(mass_factor), identity(nu)))
    columns, factor = product(columns, scale), product(transposed(scale), factor)
    source = block(columns, VIN - 1, VIN, 0, nu + ng)
    first = congruent(_conductances(types, nets, num_nets, parameters, True), columns)
    second = congruent(_conductances(types, nets, num_nets, parameters, False), columns)
    change_a, voltage_a = _phase_equations(first, factor, source, 1.0 / parameters[INPUT_RESISTANCE], nu)
    change_b, voltage_b = _phase_equations(second, factor, source, 1.0 / parameters[INPUT_RESISTANCE], nu)
    rank = factor.shape[1]
    fluxes = np.zeros((count, nu + rank + 1))
    if rank:
        inverse = solve(product(transposed(factor), factor), identity(rank))
        put(fluxes, 0, nu, 1.0, product(columns, product(factor, inverse)))
    return faults, change_a, change_b, product(columns, voltage_a), product(columns, voltage_b), fluxes


@inner
def _phase_equations(
    conductance: Floats, factor: Floats, source: Floats, weight: float, nu: int
) -> tuple[Floats, Floats]:
    """Return the equations of one phase, in the coordinates of the columns.

    Args:
        conductance: float64 ``[c, c]``, G; the first ``nu`` columns have capacitors of 1 F, the others none.
        factor: float64 ``[c, r]``, K is ``factor @ factor.T``.
        source: float64 ``[1, c]``, the voltage of VIN by columns.
        weight: Conductance of the source.
        nu: Number of columns with capacitors.

    Returns:
        ``change`` float64 ``[n + 1, n + 1]`` and ``voltage`` ``[c, n + 1]``, of n = nu + r states and the constant 1:
        the rates of change, and the voltages of the columns.
    """
    count, rank = factor.shape
    n = nu + rank
    drain = np.zeros((count, n + 1))  # currents out of the columns, except through columns without capacitors
    put(drain, 0, 0, 1.0, block(conductance, 0, count, 0, nu))
    put(drain, 0, nu, 1.0, factor)
    put(drain, 0, n, -weight, transposed(source))
    voltage, change = np.zeros((count, n + 1)), np.zeros((n + 1, n + 1))
    put(voltage, 0, 0, 1.0, identity(nu))
    put(change, 0, 0, -1.0, block(drain, 0, nu, 0, n + 1))
    if nu < count:
        rest = solve(block(conductance, nu, count, nu, count), block(drain, nu, count, 0, n + 1))
        put(voltage, nu, 0, -1.0, rest)
        add(change, 1.0, product(block(conductance, 0, nu, nu, count), rest))
    put(change, nu, 0, 1.0, product(transposed(factor), voltage))
    return change, voltage


@inner
def _independent(mass: Floats, stiffness: Floats, basis: Floats, nu: int, nw: int, ng: int) -> Floats:
    """Return the columns with and without capacitors, independent of both kinds of islands; islands are left out.

    Columns with capacitors become orthogonal, with respect to C, to islands of conserved charge; then all columns, with
    respect to K, to islands that inductors alone join to the rest.
    """
    count = basis.shape[0]
    with_capacitors = block(basis, 0, count, 0, nu)
    if nw:
        add(with_capacitors, -1.0, _projection(mass, block(basis, 0, count, nu, nu + nw), with_capacitors))
    columns = np.empty((count, nu + ng))
    put(columns, 0, 0, 1.0, with_capacitors)
    put(columns, 0, nu, 1.0, block(basis, 0, count, nu + nw, nu + nw + ng))
    if nu + nw + ng < count:
        add(columns, -1.0, _projection(stiffness, block(basis, 0, count, nu + nw + ng, count), columns))
    return columns


@inner
def _projection(form: Floats, onto: Floats, columns: Floats) -> Floats:
    """Return the projection of columns onto the span of others, orthogonal with respect to a symmetric form."""
    weights = solve(congruent(form, onto), product(transposed(onto), product(form, columns)))
    return product(onto, weights)


@inner
def _states(types: Ints, nets: Ints, num_nets: int, output_capacitance: float) -> tuple[int, Floats, int, int, int]:
    """Return the singularities, and a basis of the node fluxes, float64 ``[M - 1, M - 1]``.

    The columns of the basis are, in order: with capacitors, islands of conserved charge, without capacitors
    (the numbers of these three are returned), and islands that inductors alone join to the rest.
    """
    count = num_nets - 1
    by_c, loops_c = _components(types, nets, num_nets, True, False, False, output_capacitance > 0)
    _, loops_l = _components(types, nets, num_nets, False, True, False, False)
    by_cg, _ = _components(types, nets, num_nets, True, False, True, output_capacitance > 0)
    by_gl, _ = _components(types, nets, num_nets, False, True, True, False)
    by_all, _ = _components(types, nets, num_nets, True, True, True, output_capacitance > 0)
    faults = (CAPACITOR_LOOP if loops_c else 0) | (INDUCTOR_LOOP if loops_l else 0)
    basis, reduced = np.zeros((count, count)), np.zeros((count, count))
    if by_all.max() > 0:
        return faults | FLOATING, basis, 0, 0, 0
    nl = _add_islands(basis, reduced, faults * 0, by_cg)
    after_g = _add_islands(basis, reduced, nl, by_c)
    after_w = _add_islands(basis, reduced, after_g, by_gl)
    if nl:
        faults |= INDUCTOR_CUT
    if after_w > after_g:
        faults |= CAPACITOR_CUT
    _add_islands(basis, reduced, after_w, np.arange(num_nets))
    nu, nw, ng = count - after_w, after_w - after_g, after_g - nl
    ordered = np.empty((count, count))
    put(ordered, 0, 0, 1.0, block(basis, 0, count, after_w, count))
    put(ordered, 0, nu, 1.0, block(basis, 0, count, after_g, after_w))
    put(ordered, 0, nu + nw, 1.0, block(basis, 0, count, nl, after_g))
    put(ordered, 0, nu + nw + ng, 1.0, block(basis, 0, count, 0, nl))
    return faults, ordered, nu, nw, ng


@inner
def _components(
    types: Ints, nets: Ints, num_nets: int, capacitors: bool, inductors: bool, resistors: bool, output: bool
) -> tuple[Ints, int]:
    """Return the component of every net (0 for GND) in the graph of some devices, and the number of its loops."""
    parent = np.arange(num_nets)
    loops = 0
    for d in range(-2, types.shape[0]):
        if d == -2:
            a, b, included = GND, VIN, resistors  # the source and its resistance
        elif d == -1:
            a, b, included = GND, VOUT, resistors or output  # the load and the output capacitor
        else:
            a, b = nets[d, 0], nets[d, 1]
            kind = types[d]
            included = capacitors if kind == CAPACITOR else (inductors if kind == INDUCTOR else resistors)
        if not included:
            continue
        while parent[a] != a:
            a = parent[a]
        while parent[b] != b:
            b = parent[b]
        if a == b:
            loops += 1
        else:
            parent[max(a, b)] = min(a, b)
    component, fresh = np.full(num_nets, -1, np.int64), 0
    for net in range(num_nets):  # roots are the smallest nets of their components, so GND comes first
        root = net
        while parent[root] != root:
            root = parent[root]
        if root == net:
            component[net] = fresh
            fresh += 1
        component[net] = component[root]
    return component, loops


@inner
def _add_islands(basis: Floats, reduced: Floats, filled: int, component: Ints) -> int:
    """Add the indicators of the components without GND that are independent of the columns so far.

    Args:
        basis: float64 ``[M - 1, M - 1]``, the columns so far, to which others are added.
        reduced: The same columns after elimination.
        filled: Number of the columns.
        component: int64 ``[M]``, the component of every net, 0 of GND.

    Returns:
        The new number of columns.
    """
    count = basis.shape[0]
    for island in range(1, component.max() + 1):
        if filled == count:
            break
        for net in range(count):
            basis[net, filled] = 1.0 if component[net + 1] == island else 0.0
            reduced[net, filled] = basis[net, filled]
        for j in range(filled):
            pivot = _largest(reduced, j)
            ratio = reduced[pivot, filled] / reduced[pivot, j]
            for net in range(count):
                reduced[net, filled] -= ratio * reduced[net, j]
        largest = _largest(reduced, filled)
        if abs(reduced[largest, filled]) > _SMALL:
            filled += 1
    return filled


@inner
def _largest(matrix: Floats, column: int) -> int:
    """Return the row of the entry of a column that is largest in magnitude."""
    row = 0
    for i in range(matrix.shape[0]):
        if abs(matrix[i, column]) > abs(matrix[row, column]):
            row = i
    return row


@inner
def _laplacian(types: Ints, nets: Ints, num_nets: int, parameters: Floats, kind: int) -> Floats:
    """Return the Laplacian of the capacitors or inductors on the nets other than GND, in F or 1/H."""
    laplacian = np.zeros((num_nets, num_nets))
    weight = parameters[CAPACITANCE] if kind == CAPACITOR else 1.0 / parameters[INDUCTANCE]
    for d in range(types.shape[0]):
        if types[d] == kind:
            _add(laplacian, nets[d, 0], nets[d, 1], weight)
    if kind == CAPACITOR:
        _add(laplacian, VOUT, GND, parameters[OUTPUT_CAPACITANCE])
    return block(laplacian, 1, num_nets, 1, num_nets)


@inner
def _conductances(types: Ints, nets: Ints, num_nets: int, parameters: Floats, first: bool) -> Floats:
    """Return the Laplacian of source, load and switches in one phase, in S; Sa conducts in the first."""
    laplacian = np.zeros((num_nets, num_nets))
    _add(laplacian, VIN, GND, 1.0 / parameters[INPUT_RESISTANCE])
    _add(laplacian, VOUT, GND, 1.0 / parameters[LOAD])
    for d in range(types.shape[0]):
        if types[d] < CAPACITOR:
            conducts = (types[d] == SA) == first
            _add(laplacian, nets[d, 0], nets[d, 1], 1.0 / parameters[ON_RESISTANCE if conducts else OFF_RESISTANCE])
    return block(laplacian, 1, num_nets, 1, num_nets)


@inner
def _add(laplacian: Floats, a: int, b: int, weight: float) -> None:
    laplacian[a, a] += weight
    laplacian[b, b] += weight
    laplacian[a, b] -= weight
    laplacian[b, a] -= weight
