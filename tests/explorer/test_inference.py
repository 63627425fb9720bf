"""The browser's answers against Python's, on models and evidence drawn at random."""

import numpy as np
import pytest
from page_models import pieces, random_evidence, random_model, visit

from rejoint.explorer import document

# Both sides sum the same float64 numbers, in another order: a few units in the last place.
SAME = 1e-9

ANSWERS = """async (cases) => {
  const { readModel } = await import("./static/model.js");
  const { infer, marginal } = await import("./static/inference.js");
  const { likelihoods } = await import("./static/evidence.js");
  return cases.map(([doc, pieces]) => {
    const model = readModel(doc).mixture;
    const state = infer(model, likelihoods(model, new Map(pieces)));
    const bars = model.variables.map((_, n) => [...marginal(model, state, n)]);
    return { classes: [...state.classes], bars, logProb: state.logProb, possible: state.possible };
  });
}"""


@pytest.fixture
def ask(tab, served, asia):
    visit(tab, served(document(asia)))

    def answers(cases):
        return tab.evaluate(ANSWERS, [[document(pmf), pieces(pmf, given)] for pmf, given in cases])

    return answers


def expected(pmf, given):
    """Class posterior and log probability by NumPy, in the log domain, written out anew."""
    with np.errstate(divide="ignore"):
        logs = np.log(pmf.weights)
        for name, value in given.items():
            n = pmf.domain.index(name)
            likelihood = pmf.domain[n].likelihood(value)
            logs = logs + np.log(likelihood.max())
            logs = logs + np.log((likelihood / likelihood.max()) @ pmf.factors[n])
    shares = np.exp(logs - logs.max())
    return shares / shares.sum(), logs.max() + np.log(shares.sum())


def test_posteriors_equal_those_of_python_on_100_models(ask):
    rng = np.random.default_rng(0)
    cases = []
    for k in range(100):
        # Every tenth has so many pieces of evidence that their plain product underflows.
        many = k % 10 == 0
        pmf = random_model(
            rng,
            200 if many else int(rng.integers(1, 12)),
            int(rng.integers(1, 9)),
            zeros=k % 3 == 0,
        )
        cases.append((pmf, random_evidence(rng, pmf, 0.97 if many else 0.5)))
    least = 0.0
    for (pmf, given), answer in zip(cases, ask(cases), strict=True):
        classes, log_prob = expected(pmf, given)
        least = min(least, log_prob)
        np.testing.assert_allclose(answer["classes"], classes, rtol=0, atol=SAME)
        assert answer["logProb"] == pytest.approx(log_prob, rel=SAME, abs=SAME)
        names = list(pmf.domain.names)
        for name in [*names[:5], *names[-5:]]:
            bars = answer["bars"][pmf.domain.index(name)]
            np.testing.assert_allclose(bars, pmf.marginal(name, given=given), rtol=0, atol=SAME)
    assert least < -1000  # exp of it is zero: underflow was among the cases


def test_impossible_evidence_is_known_as_such(ask, asia):
    possible, impossible = ask([(asia, {"tub": 0}), (asia, {"tub": 0, "either": 1})])  # codes
    assert possible["possible"]
    assert not impossible["possible"]
    assert impossible["logProb"] == -np.inf
