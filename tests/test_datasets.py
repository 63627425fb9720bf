import itertools

import numpy as np
import pytest

import rejoint as rj

# The published tables once more, written as a reader of the paper would: probability of "yes".
TUB = {"yes": 0.05, "no": 0.01}
LUNG = {"yes": 0.1, "no": 0.01}
BRONC = {"yes": 0.6, "no": 0.3}
XRAY = {"yes": 0.98, "no": 0.05}
DYSP = {("yes", "yes"): 0.9, ("yes", "no"): 0.7, ("no", "yes"): 0.8, ("no", "no"): 0.1}


def of(level, yes):
    return yes if level == "yes" else 1 - yes


def by_hand(asia, smoke, tub, lung, bronc, either, xray, dysp):
    certain = "yes" if "yes" in (tub, lung) else "no"
    return (
        of(asia, 0.01)
        * 0.5
        * of(tub, TUB[asia])
        * of(lung, LUNG[smoke])
        * of(bronc, BRONC[smoke])
        * (either == certain)
        * of(xray, XRAY[either])
        * of(dysp, DYSP[either, bronc])
    )


def test_asia_is_the_product_of_the_published_tables():
    pmf = rj.datasets.asia()
    cells = [by_hand(*state) for state in itertools.product(["yes", "no"], repeat=8)]
    # Sums and quotients of a few hundred numbers below one: rounding only.
    np.testing.assert_allclose(pmf.to_dense().ravel(), cells, atol=1e-15)
    assert pmf.rank == 8
    assert pmf.domain.names[0] == "asia"
    assert pmf.domain["dysp"].levels == ("yes", "no")


@pytest.mark.parametrize(
    ("event", "printed"),
    # Single-node marginals of the network as published (two to four digits).
    [("tub", 0.0104), ("lung", 0.055), ("bronc", 0.45), ("either", 0.0648), ("xray", 0.1103)],
)
def test_asia_has_the_known_marginals(event, printed):
    # Half a unit of the last printed digit.
    assert rj.datasets.asia().prob({event: "yes"}) == pytest.approx(printed, abs=5e-5)


def test_remove_cells_leaves_the_rest_alone():
    records = rj.datasets.asia().sample(400, random_state=1)
    before = records.codes.copy()
    holes = rj.datasets.remove_cells(records, 0.25, random_state=2)
    gone = holes.codes < 0
    assert (holes.codes[~gone] == records.codes[~gone]).all()
    assert (records.codes == before).all()
    assert holes.codes.dtype == records.codes.dtype
    # 3,200 cells: the share is within four standard deviations, 4 * sqrt(.25 * .75 / 3200).
    assert gone.mean() == pytest.approx(0.25, abs=0.031)
    again = rj.datasets.remove_cells(records, 0.25, random_state=2)
    assert (again.codes == holes.codes).all()


@pytest.mark.parametrize(("share", "gone"), [(0, 0.0), (1, 1.0)])
def test_remove_none_or_all(share, gone):
    records = rj.datasets.asia().sample(10, random_state=1)
    assert (rj.datasets.remove_cells(records, share).codes < 0).mean() == gone


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan")])
def test_remove_cells_says_what_share_is(share):
    with pytest.raises(ValueError, match="probability that a cell is removed, 0 to 1; got"):
        rj.datasets.remove_cells({"a": ["x"]}, share)


def test_a_joint_has_the_tables_of_the_town():
    folder = rj.datasets.town_tables()
    assert len(list(folder.glob("*.csv"))) == 6
    tables = rj.Marginals.read(folder)
    assert max(each.distance for each in tables.disagreements()) < 1e-12
    assert tables.compare(rj.factorize(tables).pmf)[0].distance < 1e-6
    assert not (tables["Pass", "Travel"] % 5).any()
    assert (tables["Age", "Work"] % 5).any()
