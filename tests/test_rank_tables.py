"""The rank chosen from tables alone, and joints that predict tables that were not given."""

import numpy as np
import pytest

import rejoint as rj
from rejoint.estimation import Bayes, Em
from rejoint.factorization import Smooth
from rejoint.factorization.fit_tables import Auto
from rejoint.factorization.kl import Kl
from rejoint.rank import Selection
from rejoint.rank.from_tables import TableBic
from rejoint.solver import FitInterrupted


def random_truth(rank, shape, seed=0):
    rng = np.random.default_rng(seed)
    factors = [rng.dirichlet(np.ones(levels), rank).T for levels in shape]
    return rj.LowRankPMF(rng.dirichlet(np.full(rank, 5.0)), factors)


@pytest.fixture(scope="module")
def triples():
    truth = random_truth(3, [4] * 6, seed=9)
    return rj.Marginals.count(truth.sample(5_000, random_state=1), order=3)


def test_the_true_rank_is_found_and_explained(triples):
    result = rj.factorize(triples, solver=Auto(), random_state=0)
    assert result.pmf.rank == result.selection.rank == 3
    assert result.choice.startswith("Rank 3 of ")
    assert "BIC of the tables (each pair of variables counted once)" in result.choice
    assert rj.io.fit_notes(result)["rank_curve"]["rank"] == 3


def test_rank_is_capped_by_what_the_cells_allow():
    pairs = rj.Marginals.count(rj.datasets.asia().sample(20_000, random_state=0), order=2)
    selection = rj.rank.select_tables(pairs, random_state=0)
    most = rj.identifiability.report(pairs).counting
    assert selection.rank <= max(selection.ranks) <= most


def test_shares_without_a_number_of_records(triples):
    shares = {names: triples[names] / triples.total(*names) for names in triples.subsets[:8]}
    tables = rj.Marginals.from_tables(shares, kind="shares")
    words = rj.rank.select_tables(tables, n_init=1, random_state=0).words
    assert "No table gives its number of records: 10,000 were assumed." in words


def test_suppressed_cells_are_filled_during_the_search(triples):
    held = {names: np.where(triples[names] < 8, np.nan, triples[names]) for names in triples}
    tables = rj.Marginals.from_tables(held, suppressed=(0, 7))
    assert rj.rank.select_tables(tables, n_init=1, random_state=0).rank == 3


def test_a_search_by_likelihood_refuses_negative_cells():
    table = np.array([[5.0, -1.0], [3.0, 4.0]])
    noisy = rj.Marginals.from_tables({("a", "b"): table}, noisy=True)
    with pytest.raises(ValueError, match="some cells are negative"):
        rj.factorize(noisy, solver=Auto())
    pmf = rj.factorize(noisy).pmf
    assert pmf.marginal(["a", "b"]).argmin() == 1


def test_smooth_predicts_tables_better_than_a_rank_that_the_tables_determine():
    """The truth has more classes than so few records determine."""
    truth = random_truth(30, [4] * 6, seed=2)
    tables = rj.Marginals.count(truth.sample(2_000, random_state=0), order=[2, 3])
    smooth = rj.factorize(tables, solver="smooth", random_state=0)
    assert smooth.pmf.rank == 3 * 320
    few = rj.factorize(tables, rank=3, n_init=3, random_state=0).pmf
    fours = [truth.domain.names[k : k + 4] for k in range(3)]

    def error(pmf):
        return np.mean([np.abs(pmf.marginal(f) - truth.marginal(f)).sum() / 2 for f in fours])

    assert error(smooth.pmf) < 0.9 * error(few)  # 0.75 of it with this seed
    assert "the mean of 3 models of 320 classes" in smooth.stop
    assert "classes have no meaning" in smooth.stop


def test_smooth_stops_sooner_where_there_are_fewer_records():
    truth = random_truth(5, [3] * 5)

    def steps(records):
        tables = rj.Marginals.count(truth.sample(records, random_state=0), order=3)
        result = rj.factorize(tables, solver=Smooth(members=1), random_state=0)
        return sum(record.step > 0 for record in result.history)

    assert steps(200) < steps(20_000)


def test_smooth_of_shares_and_of_suppressed_cells(triples):
    share = triples.subsets[:4]
    held = {names: np.where(triples[names] < 8, np.nan, triples[names]) for names in share}
    tables = rj.Marginals.from_tables(held, suppressed=(0, 7))
    pmf = rj.factorize(tables, 40, Smooth(members=1), random_state=0).pmf
    assert pmf.rank == 40
    assert tables.compare(pmf)[0].distance < 0.1
    shares = {names: triples[names] / triples.total(*names) for names in share}
    untold = rj.Marginals.from_tables(shares, kind="shares")
    result = rj.factorize(untold, 40, Smooth(members=1), random_state=0)
    assert sum(record.step > 0 for record in result.history) == 60
    with pytest.raises(ValueError, match="starts at random: leave out start"):
        rj.factorize(untold, 40, "smooth", start=result.pmf)


@pytest.mark.parametrize("on_interrupt", ["raise", "return"])
def test_interrupted(triples, monkeypatch, on_interrupt):
    """Ctrl-C keeps the ranks that were scored."""
    score = TableBic.fit

    def until_three(self, rank):
        if rank == 3:
            raise KeyboardInterrupt
        return score(self, rank)

    monkeypatch.setattr(TableBic, "fit", until_three)
    if on_interrupt == "return":
        found = rj.rank.select_tables(triples, random_state=0, on_interrupt="return")
    else:
        with pytest.raises(FitInterrupted) as caught:
            rj.rank.select_tables(triples, random_state=0)
        found = caught.value.result
    assert found.interrupted
    assert found.ranks == (1, 2)
    assert found.rank == found.pmf.rank == 2
    assert "The search was interrupted: other ranks may be better." in found.words


def interrupt_at_rank(monkeypatch, interrupted_rank):
    """Press Ctrl-C within the fit of a rank."""
    step = Kl.step

    def press(self, problem, state):
        if state.model.rank == interrupted_rank:
            raise KeyboardInterrupt
        return step(self, problem, state)

    monkeypatch.setattr(Kl, "step", press)


def test_interrupted_within_the_fit_of_a_rank(triples, monkeypatch):
    interrupt_at_rank(monkeypatch, 3)
    with pytest.raises(FitInterrupted) as caught:
        rj.rank.select_tables(triples, random_state=0)
    assert isinstance(caught.value.result, Selection)
    assert caught.value.result.ranks == (1, 2)


def test_factorize_interrupted_while_the_rank_is_chosen(triples, monkeypatch):
    interrupt_at_rank(monkeypatch, 3)
    result = rj.factorize(triples, solver=Auto(), random_state=0, on_interrupt="return")
    assert isinstance(result, rj.FitResult)
    assert result.interrupted
    assert result.pmf.rank == result.selection.rank == 2
    assert result.choice == result.selection.words
    assert 0 < result.error < 0.5


def test_what_is_not_possible_is_refused_before_the_rank_is_chosen(triples, monkeypatch):
    monkeypatch.setattr(TableBic, "fit", None)
    with pytest.raises(ValueError, match="n_init must be a whole number of at least 1"):
        rj.factorize(triples, n_init=0)
    with pytest.raises(ValueError, match="solver='none' is not supported"):
        rj.factorize(triples, solver="none")
    with pytest.raises(ValueError, match="weighting='even' is not supported"):
        rj.factorize(triples, weighting="even")
    with pytest.raises(ValueError, match="start has rank 3, but rank='auto' was requested: give"):
        rj.factorize(triples, start=random_truth(3, [4] * 6))
    with pytest.raises(ValueError, match="loss='none' is not supported"):
        rj.factorize(triples, loss="none")


@pytest.mark.parametrize(
    ("name", "ask"),
    [
        ("n_init", lambda tables: rj.rank.select_tables(tables, n_init=0)),
        ("members", lambda tables: Smooth(members=0)),
        ("chains", lambda tables: Bayes(chains=0)),
        ("draws", lambda tables: Bayes(draws=0)),
        ("thin", lambda tables: Bayes(thin=0)),
    ],
)
def test_numbers_that_must_be_positive(triples, name, ask):
    with pytest.raises(ValueError, match=f"{name} must be a whole number of at least 1, got 0"):
        ask(triples)


def test_a_solver_for_records_is_refused_by_name(triples):
    with pytest.raises(ValueError, match="solver='em' needs expect, which TableProblem"):
        rj.factorize(triples, 2, Em())
