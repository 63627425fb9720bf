"""L-BFGS directions against matrices."""

import numpy as np

from rejoint.solver.acceleration import direction, remember


def bfgs_inverse(inverse, memory):
    """The dense update of an inverse by each pair in turn."""
    size = len(inverse)
    dense = np.diag(inverse)
    for move, change in memory:
        rho = 1.0 / (change @ move)
        left = np.eye(size) - rho * np.outer(move, change)
        dense = left @ dense @ left.T + rho * np.outer(move, move)
    return dense


def random_memory(rng, number, size=5):
    root = rng.standard_normal((size, size))
    bend = root @ root.T + np.eye(size)
    moves = rng.standard_normal((number, size))
    return tuple((move, bend @ move) for move in moves), bend


def test_direction_is_the_dense_update_times_the_slope():
    rng = np.random.default_rng(0)
    for number in (0, 1, 3, 8):
        memory, _ = random_memory(rng, number)
        slope, inverse = rng.standard_normal(5), rng.uniform(0.5, 2.0, 5)
        exact = -bfgs_inverse(inverse, memory) @ slope
        np.testing.assert_allclose(direction(slope, inverse, memory), exact, rtol=1e-8, atol=1e-10)


def test_direction_goes_down():
    rng = np.random.default_rng(1)
    for _ in range(20):
        memory, _ = random_memory(rng, 4)
        slope = rng.standard_normal(5)
        assert slope @ direction(slope, np.ones(5), memory) < 0


def test_the_last_pair_is_fulfilled():
    rng = np.random.default_rng(2)
    memory, _ = random_memory(rng, 3)
    move, change = memory[-1]
    np.testing.assert_allclose(direction(change, np.ones(5), memory), -move, atol=1e-10)


def test_slope_and_memory_are_not_changed():
    memory, _ = random_memory(np.random.default_rng(3), 3)
    slope = np.ones(5)
    direction(slope, np.ones(5), memory)
    assert slope.tolist() == [1.0] * 5


def test_memory_is_bounded_and_takes_positive_curvature_only():
    memory = ()
    for k in range(6):
        memory = remember(memory, np.array([1.0, k]), np.array([1.0, k]), 4)
    assert len(memory) == 4
    assert memory[0][0].tolist() == [1.0, 2.0]  # the oldest go first
    assert remember(memory, np.array([1.0, 0.0]), np.array([-1.0, 0.0]), 4) == memory
    assert remember(memory, np.array([1.0, 0.0]), np.array([0.0, 1.0]), 4) == memory
