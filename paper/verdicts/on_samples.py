"""Conclusions on tables counted from records: Figures 7 and 8."""

from paper import sampled
from paper.printed import RANKS
from paper.verdicts.conclusion import Conclusion, Found, Verdict, confirmed


def approaches_oracle(found: Found) -> Verdict:
    """Figures 7 and 8: triples against the oracle."""
    means = sampled.means(found["figure7"])
    last = [means[f, 1_000_000] for f in RANKS]
    ratios = ", ".join(f"{row['triples'] / row['oracle']:.1f}" for row in last)
    bound = ", ".join(f"{row['bound'] / row['oracle']:.1f}" for row in last)
    return "refined", (
        f"Figure 7, 1,000,000 records: triples have {ratios} times the oracle's error for F = 5, "
        f"10, 15. They fall with it, but no unbiased estimate comes nearer than {bound}, the "
        "Cramér-Rao bound, since the oracle sees the hidden variable; and the distance grows with F"
    )


def plateau(found: Found) -> Verdict:
    """Figures 7 and 8: pairs."""
    means = sampled.means(found["figure7"])
    falls = [
        [means[f, 10 * m]["pairs"] / means[f, m]["pairs"] for f in RANKS] for m in (10_000, 100_000)
    ]
    words = [", ".join(f"{x:.2f}" for x in fall) for fall in falls]
    return confirmed(
        min(falls[1]) > 0.6,
        f"Figure 7: ten times the records lower the error of pairs by {words[0]} from 10,000 on, "
        f"by {words[1]} from 100,000 on (F = 5, 10, 15); what more records can give is 0.32",
    )


def naive_counting(found: Found) -> Verdict:
    """Empirical MLE."""
    means = sampled.means(found["figure7"])
    row = means[10, 1_000_000]
    return confirmed(
        row["empirical"] > 5 * row["triples"],
        f"Figure 7: F = 10, 1,000,000 records: empirical MLE {row['empirical']:.2f}, triples "
        f"{row['triples']:.3f}, our default {row['default']:.3f}",
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
    return confirmed(
        max(ratio) < 2,
        f"Figure 8: 20 % of the cells hidden raise the error of triples by {min(ratio) - 1:.0%} to "
        f"{max(ratio) - 1:.0%}, that of our default by {min(default) - 1:.0%} to "
        f"{max(default) - 1:.0%}",
    )


def thin_tables(found: Found) -> Verdict:
    """Triples against quadruples."""
    means = sampled.means(found["figure7"])
    by_size = {
        m: [means[f, m]["quadruples"] / means[f, m]["triples"] for f in RANKS]
        for m in (1_000, 1_000_000)
    }
    words = [", ".join(f"{x:.2f}" for x in ratios) for ratios in by_size.values()]
    return confirmed(
        max(by_size[1_000]) > 1,
        f"Figure 7: error of quadruples over that of triples: {words[0]} with 1,000 records, "
        f"{words[1]} with 1,000,000",
    )


def small_tables(found: Found) -> Verdict:
    """Accuracy of tables of each order."""
    done = found["figure8"].where(size=10_000)
    apart = [done.values(f"tables of {name}").mean() for name in ("pairs", "triples", "quadruples")]
    return confirmed(
        apart == sorted(apart),
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
