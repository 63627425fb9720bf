"""Conclusions on tables counted from records: Figures 7 and 8."""

from collections.abc import Mapping
from itertools import product

from paper import sampled
from paper.printed import RANKS
from paper.verdicts.conclusion import Conclusion, Found, Verdict, decide

#: Errors over the oracle's that count as alike for all ranks.
ALIKE = 1.2
#: A rise that counts as slight: that of .8^3 of the records, which have all cells of a triple.
SLIGHT = 0.8**-1.5


def approaches_oracle(found: Found) -> Verdict:
    """Figure 7: triples and quadruples against the oracle, by rank and number of records."""
    means = sampled.means(found["figure7"])
    over = {
        (name, m): [means[f, m][name] / means[f, m]["oracle"] for f in RANKS]
        for name, m in product(("triples", "quadruples"), (10_000, 1_000_000))
    }
    bound = ", ".join(f"{row['bound'] / row['oracle']:.1f}" for row in last_row(means))
    ratios = [", ".join(f"{x:.1f}" for x in over[k, 1_000_000]) for k in ("triples", "quadruples")]
    nearer = [max(over[k, 1_000_000]) <= max(over[k, 10_000]) for k in ("triples", "quadruples")]
    alike = [max(row) <= ALIKE * min(row) for (_, m), row in over.items() if m == 1_000_000]
    return decide(
        [*nearer, *alike],
        f"Figure 7, 1,000,000 records, F = 5, 10, 15: triples have {ratios[0]}, quadruples "
        f"{ratios[1]} times the oracle's error (alike: within {ALIKE - 1:.0%}). The oracle sees "
        f"the "
        f"hidden variable: no unbiased estimate comes nearer than {bound}, the Cramér-Rao bound",
    )


def last_row(means: sampled.Means) -> list[Mapping[str, float]]:
    """Mean errors with 1,000,000 records, by rank."""
    return [means[f, 1_000_000] for f in RANKS]


def plateau(found: Found) -> Verdict:
    """Figure 7: pairs."""
    means = sampled.means(found["figure7"])
    falls = [sampled.falls(means, "pairs", m) for m in (10_000, 100_000)]
    words = [", ".join(f"{x:.2f}" for x in fall) for fall in falls]
    return decide(
        [fall >= sampled.PLATEAU for fall in falls[1]],
        f"Figure 7: ten times the records multiply the error of pairs by {words[0]} from 10,000 "
        f"on, "
        f"by {words[1]} from 100,000 on (F = 5, 10, 15); {sampled.PLATEAU} and more counts as a "
        "plateau, and 0.32 is what more records can give",
    )


def naive_counting(found: Found) -> Verdict:
    """Empirical MLE."""
    means = sampled.means(found["figure7"])
    row = means[10, 1_000_000]
    return decide(
        [row["empirical"] > 5 * row["triples"]],
        f"Figure 7: F = 10, 1,000,000 records: empirical MLE {row['empirical']:.2f}, triples "
        f"{row['triples']:.3f}, `rj.estimate` {row['default']:.3f}",
    )


def missing_cells(found: Found) -> Verdict:
    """Figure 8 against Figure 7."""
    full, holes = (sampled.means(found[name]) for name in ("figure7", "figure8"))
    both = [(f, m) for f in RANKS for m in sampled.SIZES if {(f, m)} <= full.keys() & holes.keys()]
    ratio = [holes[k]["triples"] / full[k]["triples"] for k in both if "triples" in holes[k]]
    default = [
        holes[k]["default"] / full[k]["default"]
        for k in both
        if "default" in holes[k] and "default" in full[k]
    ]
    return decide(
        [r < SLIGHT for r in ratio],
        f"Figure 8: 20 % of the cells hidden raise the error of triples by {min(ratio) - 1:.0%} to "
        f"{max(ratio) - 1:.0%}, that of `rj.estimate` by {min(default) - 1:.0%} to "
        f"{max(default) - 1:.0%} (slight: less than {SLIGHT - 1:.0%})",
    )


def thin_tables(found: Found) -> Verdict:
    """Triples against quadruples."""
    means = sampled.means(found["figure7"])
    by_size = {
        m: [means[f, m]["quadruples"] / means[f, m]["triples"] for f in RANKS]
        for m in (1_000, 1_000_000)
    }
    words = [", ".join(f"{x:.2f}" for x in ratios) for ratios in by_size.values()]
    return decide(
        [ratio > 1 for ratio in by_size[1_000]],
        f"Figure 7: error of quadruples over that of triples: {words[0]} with 1,000 records, "
        f"{words[1]} with 1,000,000",
    )


def small_tables(found: Found) -> Verdict:
    """Accuracy of tables of each order."""
    done = found["figure8"].where(size=10_000)
    apart = [done.values(f"tables of {name}").mean() for name in ("pairs", "triples", "quadruples")]
    return decide(
        [apart[0] <= apart[1], apart[1] <= apart[2]],
        "Figure 8, 10,000 records: mean total variation of counted pairs, triples, quadruples "
        f"{', '.join(f'{x:.2f}' for x in apart)}",
    )


ON_SAMPLES = (
    Conclusion("Counting whole records is very inaccurate", ("figure7",), naive_counting),
    Conclusion(
        "Triples and quadruples approach the oracle, alike for all ranks",
        ("figure7",),
        approaches_oracle,
    ),
    Conclusion("Pairs reach a plateau at about 100,000 records", ("figure7",), plateau),
    Conclusion(
        "Missing cells (20 %) cost a slight decrease in performance",
        ("figure7", "figure8"),
        missing_cells,
    ),
    Conclusion(
        "With few records triples may give lower errors than quadruples", ("figure7",), thin_tables
    ),
    Conclusion("Tables of fewer variables are counted more accurately", ("figure8",), small_tables),
)
