import builtins

import numpy as np
import pytest
from matplotlib import pyplot

import rejoint as rj

QUERIES = [
    ({"lung": "yes"}, {"smoke": "yes"}),
    ({"bronc": "yes"}, {"dysp": "yes", "xray": np.array([0.8, 0.2])}),
]


@pytest.fixture(autouse=True)
def _close():
    yield
    pyplot.close("all")


@pytest.fixture
def ax():
    return pyplot.subplots()[1]


def test_posteriors_draws_the_answers(ax):
    p = rj.datasets.asia()
    assert rj.plots.posteriors({"one": p, "two": p}, QUERIES, ax=ax) is ax
    lengths = [bar.get_width() for bar in ax.patches]
    answers = [p.prob(event, given=given) for event, given in QUERIES]
    assert lengths == answers * 2
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one", "two"]
    assert ax.get_yticklabels()[0].get_text() == "P(lung = yes | smoke = yes)"


def test_factors_puts_the_largest_class_first(ax):
    p = rj.datasets.asia()
    assert rj.plots.factors(p, ax=ax) is ax
    image = ax.images[0].get_array()
    assert image.shape == (16, 8)
    order = np.argsort(-p.weights, kind="stable")
    assert (image[6:8] == p.factors[3][:, order]).all()
    numbers, weights = zip(*(x.get_text().split("\n") for x in ax.get_xticklabels()), strict=True)
    assert numbers == tuple(str(f + 1) for f in order)
    assert weights == ("0.52", "0.41", "0.03", "0.02", "0.01", "<.01", "<.01", "<.01")


def test_factors_of_some_variables_in_the_order_asked(ax):
    rj.plots.factors(rj.datasets.asia(), ["xray", "asia"], ax=ax)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["xray = yes", "xray = no", "asia = yes", "asia = no"]


def test_history_has_a_line_for_each_start_and_the_best_on_top(ax):
    tables = rj.Marginals.from_pmf(rj.datasets.asia(), order=3)
    result = rj.factorize(tables, rank=2, solver="admm", n_init=2, random_state=0)
    assert rj.plots.history(result, ax=ax) is ax
    assert len(ax.lines) == len(result.starts)
    best = ax.lines[-1].get_ydata()
    assert best[-1] == min(line.get_ydata()[-1] for line in ax.lines)
    assert sum(len(line.get_ydata()) for line in ax.lines) == len(result.history)


@pytest.mark.parametrize(
    ("event", "given", "words"),
    [
        ({"a": 1}, None, "P(a = 1)"),
        ({"a": 1, "b": "x"}, {}, "P(a = 1, b = x)"),
        ({"a": 1}, {"b": ["x", "y"]}, "P(a = 1 | b in x, y)"),
        ({"a": 1}, {"b": np.ones(2)}, "P(a = 1 | b ~ soft)"),
    ],
)
def test_describe(event, given, words):
    assert rj.plots.describe(event, given) == words


def test_without_matplotlib_the_error_says_how_to_get_it(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"matplotlib, which is not installed: pip install"):
        rj.plots.factors(rj.datasets.asia())
