"""Python, the command line, the report and a reloaded file give the same answers."""

import json

import numpy as np
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rejoint as rj
from rejoint.cli import main
from rejoint.estimation import Bayes

AMOUNT = rj.Variable(
    "m", (rj.Bin(0, 10), rj.Bin(10, 40)), contents=[[(2, 3), (5, 1)], [(12, 1), (20, 2), (33.5, 1)]]
)
DOMAIN = rj.Domain(
    (
        *rj.Domain.of({"a": ["no", "yes"], "b": ["x", "y", "z"], "c": [1, 2, 3], "d": ["u", "v"]}),
        AMOUNT,
    )
)
SHORT = Bayes(chains=2, burn_in=3, draws=8, thin=1)


def fitted(seed):
    """A fit by Bayes to records with empty cells."""
    rng = np.random.default_rng(seed)
    factors = [rng.dirichlet(np.ones(size), 2).T for size in DOMAIN.shape]
    truth = rj.LowRankPMF(rng.dirichlet(np.ones(2)), factors, DOMAIN)
    data = rj.datasets.remove_cells(truth.sample(60, random_state=seed), 0.2, random_state=seed)
    return rj.estimate(data, 2, SHORT, random_state=seed, n_init=2).pmf, data


@st.composite
def question(draw):
    """A question with events, tables by variables and evidence of several kinds."""
    names = draw(st.permutations(DOMAIN.names))
    asked, by, *given_names = names
    items = [by] if draw(st.booleans()) else []
    for name in given_names[: draw(st.integers(0, 3))]:
        if name == "m":
            items.append(f"m {draw(st.sampled_from(['<', '>=']))} {draw(st.integers(4, 30))}")
            continue
        levels = draw(st.lists(st.sampled_from(DOMAIN[name].levels), min_size=1, unique=True))
        one = f"{name} = {levels[0]}"
        items.append(one if len(levels) == 1 else f"{name} in {{{', '.join(map(str, levels))}}}")
    first = 3 if asked == "m" else DOMAIN[asked].levels[0]
    event = f"{asked} = {first}" if draw(st.booleans()) else asked
    if asked == "m" and draw(st.booleans()):
        event = f"m > {draw(st.integers(4, 30))}"
    verb = "E" if asked in ("c", "m") and event == asked and draw(st.booleans()) else "P"
    return f"{verb}({event}{' | ' + ', '.join(items) if items else ''})"


def run(*words):
    done = CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 40), st.lists(question(), min_size=1, max_size=3))
def test_ask_and_predict(tmp_path, seed, questions):
    pmf, data = fitted(seed)
    path = tmp_path / "model.rejoint"
    pmf.save(path)
    again = rj.load(path)
    for text in questions:
        here = pmf.ask(text).to_json()
        for there in (again.ask(text).to_json(), json.loads(run("ask", path, text, "--json"))):
            for mine, other in [
                (here["value"], there["value"]),
                (here["interval"]["low"], there["interval"]["low"]),
                (here["interval"]["high"], there["interval"]["high"]),
                (here["evidence"], there["evidence"]),
            ]:
                pair = (np.array(x, dtype=np.float64) for x in (mine, other))
                np.testing.assert_allclose(*pair, rtol=1e-9, atol=1e-12)
    rows = tmp_path / "rows.csv"
    data.to_frame("pandas").head(8).to_csv(rows, index=False)
    lines = run("predict", path, rows, "--target", "b", "--all", "--json").splitlines()
    for line, row in zip(map(json.loads, lines), data.rows(), strict=False):
        known = {name: x for name, x in row.items() if name != "b" and x is not None}
        shares = [line[f"b={level}"] for level in DOMAIN["b"].levels]
        np.testing.assert_allclose(shares, pmf.marginal("b", known), rtol=1e-9, atol=1e-12)
