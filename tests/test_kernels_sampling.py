"""Levels drawn by inversion: compiled and in NumPy, to the last bit."""

import numpy as np
import pytest

from rejoint import kernels
from rejoint.kernels import class_passes as random_draws


def small_tree(rows=8, levels=6, rank=3):
    rng = np.random.default_rng(0)
    tree = np.full((rows, rank), np.inf)
    tree[: levels - 1] = np.cumsum(rng.dirichlet(np.ones(levels), size=rank).T, axis=0)[:-1]
    return tree


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_levels_are_those_below_which_the_number_lies(dtype, monkeypatch):
    rng = np.random.default_rng(1)
    tree, classes, uniform = small_tree(), rng.integers(0, 3, size=500), rng.random(500)
    truth = (uniform[:, None] >= tree.T[classes]).sum(axis=1)
    table = np.full((500, 4), -1, dtype=dtype)
    found = kernels.draw_levels(tree, classes, uniform, table[:, 2])
    np.testing.assert_array_equal(found, truth)
    np.testing.assert_array_equal(table[:, 2], truth)
    assert (table[:, [0, 1, 3]] == -1).all()
    monkeypatch.setattr(random_draws, "compiled", None)
    np.testing.assert_array_equal(kernels.draw_levels(tree, classes, uniform), truth)


def test_levels_that_do_not_fit_the_type_are_refused():
    classes, uniform = np.zeros(1, dtype=np.int64), np.zeros(1)
    out = np.empty(1, dtype=np.int8)
    kernels.draw_levels(np.full((128, 1), np.inf), classes, uniform, out)
    with pytest.raises(ValueError, match="int8 cannot hold levels up to 255"):
        kernels.draw_levels(np.full((256, 1), np.inf), classes, uniform, out)


def test_one_level_is_always_drawn():
    tree = np.full((1, 2), np.inf)
    assert kernels.draw_levels(tree, np.array([0, 1]), np.array([0.0, 0.99])).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("rows", "classes", "words"),
    [(3, [0], "power of two"), (4, [0, 1], "equally long"), (4, [2], "between 0 and 1")],
)
def test_what_is_refused(rows, classes, words):
    with pytest.raises(ValueError, match=words):
        kernels.draw_levels(np.full((rows, 2), np.inf), np.array(classes), np.zeros(1))
