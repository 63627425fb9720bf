"""Numbers as text: the page writes what Python writes."""

import numpy as np

from rejoint.text import format_interval, format_number


def test_the_page_writes_numbers_as_python_does(node):
    rng = np.random.default_rng(0)
    signs = rng.choice([-1.0, 1.0], 2_000)
    sizes = 10.0 ** rng.uniform(-9, 17, 2_000)
    ties = rng.integers(-4_000, 4_000, 2_000) / 2.0 ** rng.integers(0, 12, 2_000)
    numbers = [*(signs * sizes), *ties, *rng.random(2_000), 0.0, 1.0, 9.9996e-5, 0.99996]
    numbers = [float(x) for x in numbers]
    values = rng.permutation(numbers)
    widths = np.abs(values) * 10.0 ** rng.uniform(-8, 2, len(values))
    shares = rng.random(len(values))
    lows = values - shares * widths
    intervals = np.column_stack([values, lows, lows + widths]).tolist()
    intervals += [[0.0, 0.0, 0.0], [0.0, 0.0, 0.2], [0.9997, 0.95, 0.99999], [1.0, 0.5, 1.0]]
    found, bounds = node("texts", [numbers, intervals])
    assert found == [format_number(x) for x in numbers]
    assert bounds == [list(format_interval(*ends)) for ends in intervals]
