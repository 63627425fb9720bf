"""How conclusions are judged, on made-up results."""

import pytest
from paper import conclusions
from paper.framework import Cell, Done
from paper.verdicts.conclusion import Conclusion, decide
from paper.verdicts.on_data import order_helps, order_helps_ratings
from paper.verdicts.on_samples import plateau


def table5(errors):
    """Cells of Table V: errors of pairs, triples, quadruples by set."""
    methods = ("CP (Pairs)", "CP (Triples)", "CP (Quadruples)")
    return Done(
        [
            Cell({"dataset": name, "method": m, "split": 0}, {"error": e}, 0.0, {})
            for name, row in errors.items()
            for m, e in zip(methods, row, strict=True)
        ],
        99,
    )


def test_a_claim_on_all_sets():
    good, bad = (0.3, 0.2, 0.1), (0.1, 0.2, 0.3)
    judge = {"CAR": good, "NURSERY": good, "VOTES": good}
    assert order_helps({"table5": table5(judge)})[0] == "confirmed"
    verdict, why = order_helps({"table5": table5(judge | {"VOTES": bad})})
    assert verdict == "in part"
    assert "2 of 3 sets; not on VOTES (0.100, 0.200, 0.300)" in why
    judge = {"CAR": bad, "NURSERY": bad, "VOTES": bad}
    assert order_helps({"table5": table5(judge)})[0] == "not confirmed"


def test_ratings_are_judged_by_root_mean_square():
    errors = {"CP (Pairs)": 0.9, "CP (Triples)": 0.8, "CP (Quadruples)": 0.85}
    cells = [
        Cell({"dataset": "action", "method": m}, {"rmse": e}, 0.0, {}) for m, e in errors.items()
    ]
    assert order_helps_ratings({"table7": Done(cells, 3)})[0] == "confirmed"


def figure7(pairs):
    """Cells of Figure 7 whose pairs have these errors, whatever the rank."""
    return Done(
        [
            Cell({"rank": rank, "size": size}, {"pairs": error}, 0.0, {})
            for rank in (5, 10, 15)
            for size, error in pairs.items()
        ],
        9,
    )


def test_a_plateau_is_one():
    level = {10_000: 0.4, 100_000: 0.2, 1_000_000: 0.18}
    assert plateau({"figure7": figure7(level)})[0] == "confirmed"
    assert "0.90, 0.90, 0.90 from 100,000" in plateau({"figure7": figure7(level)})[1]
    falling = {10_000: 0.4, 100_000: 0.13, 1_000_000: 0.04}
    assert plateau({"figure7": figure7(falling)})[0] == "not confirmed"


def test_open_as_long_as_cells_lack_and_loud_when_not():
    claim = Conclusion("Pairs level off", ("figure7",), plateau)
    cells = figure7({10_000: 0.4}).cells
    assert conclusions.judged(claim, {"figure7": Done(cells, 9)})[0] == "open"
    assert conclusions.judged(claim, {})[0] == "open"
    with pytest.raises(ValueError, match="no parts"):
        conclusions.judged(claim, {"figure7": Done(cells, len(cells))})


def test_a_verdict_follows_from_the_parts_of_a_claim():
    assert decide([True, True], "why") == ("confirmed", "why")
    assert decide([True, False], "why") == ("in part", "why")
    assert decide([False], "why") == ("not confirmed", "why")


def test_a_plateau_at_some_ranks_is_one_in_part():
    cells = figure7({10_000: 0.4, 100_000: 0.2, 1_000_000: 0.18}).cells
    cells[-1] = Cell({"rank": 15, "size": 1_000_000}, {"pairs": 0.13}, 0.0, {})
    assert plateau({"figure7": Done(cells, 9)})[0] == "in part"
