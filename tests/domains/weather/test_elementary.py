"""Functions whose bits do not depend on the processor."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from graphbench.domains.weather import grid_latitudes, grid_longitudes, regrid, simulation
from graphbench.domains.weather.elementary import exp, inverse, log, portable_algebra, power, sine_of_degrees, solve
from graphbench.domains.weather.grids import latitude_overlap, longitude_overlap
from graphbench.domains.weather.vertical import geopotential_to_levels, sea_level_pressure, temperature_to_levels


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(0)


def test_functions_agree_with_numpy(random):
    values = random.uniform(0.1, 20, (3, 50))
    np.testing.assert_allclose(log(values), np.log(values), rtol=1e-14)
    np.testing.assert_allclose(exp(values), np.exp(values), rtol=1e-14)
    np.testing.assert_allclose(power(values, 0.19), values**0.19, rtol=1e-14)
    np.testing.assert_allclose(sine_of_degrees(90 * values), np.sin(np.deg2rad(90 * values)), atol=1e-12)


def test_equations_are_solved_as_numpy_does(random):
    matrices, vector, several = random.normal(size=(6, 17, 17)), random.normal(size=17), random.normal(size=(17, 3))
    np.testing.assert_allclose(inverse(matrices), np.linalg.inv(matrices), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(solve(matrices[0], vector), np.linalg.solve(matrices[0], vector), rtol=1e-9)
    np.testing.assert_allclose(solve(matrices[0], several), np.linalg.solve(matrices[0], several), rtol=1e-9)
    first_is_zero = np.array([[0.0, 2.0], [3.0, 1.0]])
    np.testing.assert_allclose(inverse(first_is_zero) @ first_is_zero, np.eye(2), atol=1e-15)
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        solve(np.ones((2, 2)), np.ones(2))


def test_numpy_has_its_own_functions_again():
    before = np.linalg.solve, np.linalg.inv
    with pytest.raises(KeyError), portable_algebra():
        assert (np.linalg.solve, np.linalg.inv) == (solve, inverse)
        raise KeyError
    assert (np.linalg.solve, np.linalg.inv) == before


def test_regridding_is_the_product_with_the_overlaps(random):
    source = grid_longitudes(20), grid_latitudes(11)
    target = grid_longitudes(16), grid_latitudes(8)
    fields = random.normal(size=(2, 3, 20, 11))
    expected = longitude_overlap(source[0], target[0]) @ fields @ latitude_overlap(source[1], target[1]).T
    np.testing.assert_allclose(regrid(fields, source, target), expected, rtol=1e-12, atol=1e-13)


def digest() -> str:
    """Return a hash of results on random numbers."""
    random = np.random.default_rng(1)
    pressure = np.sort(random.uniform(5e3, 1e5, (2, 8, 300)), axis=1)
    warm = random.uniform(200, 310, (2, 8, 300))
    levels = 100.0 * np.array([50, 100, 200, 300, 500, 700, 850, 1000])
    source, target = ((grid_longitudes(x), grid_latitudes(y)) for x, y in ((20, 15), (64, 32)))
    results = [
        temperature_to_levels(warm, pressure, levels),
        geopotential_to_levels(100 * warm, warm, pressure, levels),
        sea_level_pressure(pressure[:, -1], 10 * warm[:, 0], warm[:, -1], 0.95),
        regrid(warm.reshape(16, 20, 15), source, target),
        inverse(random.normal(size=(22, 17, 17))),
    ]
    return hashlib.sha256(b"".join(np.ascontiguousarray(one).tobytes() for one in results)).hexdigest()


def test_bits_do_not_depend_on_the_code_that_numpy_chooses():
    """Numpy without its code for AVX2, and BLAS with its code for an old processor."""
    old = {"NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3", "OPENBLAS_CORETYPE": "Nehalem"}
    program = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import test_elementary as t; "
    command = [sys.executable, "-W", "ignore", "-c", program + "print(t.digest())"]
    found = subprocess.run(command, env={**os.environ, **old}, capture_output=True, text=True, check=True).stdout
    assert found.split()[-1] == digest()


@pytest.fixture
def modules(monkeypatch):
    """Loaded modules without jax."""
    loaded = {name: module for name, module in sys.modules.items() if name != "jax"}
    monkeypatch.setattr(simulation, "sys", SimpleNamespace(modules=loaded))
    monkeypatch.setattr(simulation, "processor_fact", {"flags": "avx2 fma", "model name": "Old"}.get)
    simulation._make_portable.cache_clear()
    yield loaded
    simulation._make_portable.cache_clear()


def test_flags_of_a_user_are_kept_where_bits_do_not_depend_on_them(modules, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=here --xla_cpu_max_isa=AVX512")
    assert simulation.environment()["machine"] == "x86-64 with AVX2"
    assert os.environ["XLA_FLAGS"].split() == ["--xla_dump_to=here", *simulation._XLA_FLAGS]


def test_a_program_that_used_jax_before_depends_on_the_processor(modules, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=here")
    modules["jax"] = SimpleNamespace()
    assert simulation.environment()["machine"].endswith(" Old")
    assert os.environ["XLA_FLAGS"] == "--xla_dump_to=here"


@pytest.mark.parametrize("limit", [None, "AVX2"])
def test_a_program_that_used_jax_before_may_have_set_the_limits_itself(modules, monkeypatch, limit):
    monkeypatch.setenv("XLA_FLAGS", " ".join(simulation._XLA_FLAGS))
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    if limit:
        monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", limit)
    modules["jax"] = SimpleNamespace()
    assert (simulation.environment()["machine"] == "x86-64 with AVX2") == (limit is not None)


@pytest.mark.parametrize("before", [None, "AVX512_CORE"])
def test_products_in_xla_are_limited_and_the_variable_is_as_before(monkeypatch, before):
    seen = []

    def matmul(left, right):
        seen.append(os.environ["ONEDNN_MAX_CPU_ISA"])
        return SimpleNamespace(block_until_ready=lambda: None)

    numpy = SimpleNamespace(matmul=matmul)
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(jit=lambda function: function, numpy=numpy))
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    if before:
        monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", before)
    simulation._limit_products.__wrapped__()
    assert seen == ["AVX2"] and os.environ.get("ONEDNN_MAX_CPU_ISA") == before


def test_a_processor_without_avx2_is_named(modules, monkeypatch):
    monkeypatch.setattr(simulation, "processor_fact", {"flags": "avx", "model name": "Old"}.get)
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    assert simulation.environment()["machine"].endswith(" Old") and "XLA_FLAGS" not in os.environ
