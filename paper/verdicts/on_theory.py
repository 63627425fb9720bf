"""Conclusions on the model, on what tables determine, and on exact tables."""

import numpy as np

from paper import table4
from paper.framework import Done
from paper.printed import TABLE1
from paper.verdicts.conclusion import Conclusion, Found, Verdict, confirmed


def one_dimensional(found: Found) -> Verdict:
    """Conclusion on one-dimensional marginals."""
    done = found["section2"]
    exact = max(done.where(case=c).values("error").max() for c in list_of(done, "known to be"))
    off = done.where(case="rank 2, taken as independent").values("error").mean()
    return confirmed(
        exact < 1e-12 < off,
        f"Section II: exact ({exact:.0e}) where it is known that the variables are independent, or "
        f"determine each other and no two probabilities are equal; else {off:.0%} off or refused",
    )


def list_of(done: Done, word: str) -> list[str]:
    """Cases whose name holds the word."""
    return list(dict.fromkeys(c.settings["case"] for c in done if word in c.settings["case"]))


def known_graph(found: Found) -> Verdict:
    """Conclusion on pairs with a known graph."""
    done = found["section2"].where(case="independent given x3, known to be (pairs)")
    worst = done.values("error").max()
    return confirmed(worst < 1e-12, f"Section II, last line: largest error {worst:.0e}")


def naive_bayes(found: Found) -> Verdict:
    """Proposition 1."""
    done = found["proposition1"]
    worst = done.values("error").max()
    return confirmed(
        worst < 1e-12 and bool((done.values("rank") <= done.values("bound")).all()),
        f"Proposition 1: {len(done)} joints, largest error {worst:.0e}, F never above the bound; "
        "below it where there are zeros",
    )


def hidden_states(found: Found) -> Verdict:
    """Conclusion on graphical models with few hidden nodes."""
    return "confirmed", (
        "follows from Proposition 1: one hidden node holds any joint if its states are not limited"
    )


def low_rank(found: Found) -> Verdict:
    """Table I."""
    done = found["table1"].where(solver="auto")
    errors = {c.settings["set"]: c.values["F = 5"] for c in done}
    shown = ", ".join(f"{s} {e:.3f} (printed {TABLE1[s][5]:.3f})" for s, e in errors.items())
    return confirmed(
        max(errors.values()) < 0.05,
        f"Table I: what rank 5 leaves of the first three variables: {shown}. Other triples of the "
        "same sets differ by more",
    )


def not_independent(found: Found) -> Verdict:
    """Figure 6."""
    blocks = found["figure6"].where(world="two blocks")[0].values
    return confirmed(
        blocks["rank"] == 2 and blocks["distance"] > 0.3,
        f"Figure 6: rank 2 with {blocks['bits']:.0f} bit shared, {blocks['distance']:.2f} in total "
        "variation from independence",
    )


def triples_suffice(found: Found) -> Verdict:
    """Theorems 1 and 2."""
    cell = found["table2"].where(variables=10)[0].values
    return "refined", (
        "Tables II, III: all printed ranks come out, but the proofs count I rows a variable where "
        f"I - 1 are free. N = 10, I = 3: printed 7, by the corrected lemmas {max(cell['lemmas'])}, "
        f"best proved {cell['proved'][0]}, limit {cell['counting'][0]}"
    )


def quadruples_further(found: Found) -> Verdict:
    """Theorem 3."""
    cell = found["table2"].where(variables=10)[0].values
    return confirmed(
        cell["proved"][1] > cell["proved"][0],
        f"Tables II, III: N = 10, I = 3: printed 36, corrected {cell['compound']}, best proved "
        f"{cell['proved'][1]} against {cell['proved'][0]} from triples",
    )


def not_all_needed(found: Found) -> Verdict:
    """Fewer triples."""
    worst = found["fewer_tables"].where(case="cyclic triples").values("unseen").max()
    words = f"10 of 120 triples give a table of four that was not given with error {worst:.0e}"
    return confirmed(worst < 1e-8, words)


def even_pairs(found: Found) -> Verdict:
    """Pairs of sparse factors."""
    done = found["fewer_tables"]
    sparse = done.where(case="pairs, sparse factors").values("unseen").max()
    dense = np.median(done.where(case="pairs").values("unseen"))
    return confirmed(
        sparse < 1e-8,
        f"pairs recover the joint to {sparse:.0e} where each class has a level of its own in each "
        f"variable, and leave {dense:.2f} (median) where not",
    )


def exact_tables(found: Found) -> Verdict:
    """Table IV."""
    rows = table4.summary(found["table4"])
    ours = max(row["largest"] for (_, order), row in rows.items() if order > 2)
    pairs = [f"{row['admm joint']:.2f}" for (_, order), row in rows.items() if order == 2]
    high = [row for (_, order), row in rows.items() if order > 2]
    starts = sum(row["reached"] for row in high) / sum(row["starts"] for row in high)
    solved = sum(row["solved"] for row in high) / sum(row["runs"] for row in high)
    return "refined" if ours < 1e-10 else "not confirmed", (
        f"Table IV: triples and quadruples to {ours:.0e} (printed: 1e-7), solved algebraically; "
        f"the paper's algorithm solves {solved:.0%} of the runs, {starts:.0%} of random starts "
        f"succeed; pairs stay at {', '.join(pairs)}"
    )


def blind(found: Found) -> Verdict:
    """The remark on hidden Markov models."""
    done = found["recovery"].where(source="triples")
    errors = [done.where(world=world).values("joint").max() for world in ("hmm", "asia")]
    pairs = found["recovery"].where(source="pairs", world="hmm").values("joint").max()
    return confirmed(
        max(errors) < 0.01,
        f"blind recovery: joint from triples to {errors[0]:.0e} (two states emit alike) and "
        f"{errors[1]:.0e} (Asia network); from pairs {pairs:.0e}",
    )


def constraints_help(found: Found) -> Verdict:
    """That a best approximation may not exist."""
    return "refined", (
        "on the simplex a best approximation always exists (compact set): see the next page"
    )


ON_THEORY = (
    Conclusion(
        "One-dimensional marginals give the joint only under complete independence or dependence",
        ("section2",),
        one_dimensional,
    ),
    Conclusion("Pairs suffice where the graph is known", ("section2",), known_graph),
    Conclusion(
        "Every joint PMF is a naive Bayes model with a bounded number of hidden states",
        ("proposition1",),
        naive_bayes,
    ),
    Conclusion(
        "Graphical models are never identifiable by limiting the number of hidden nodes alone",
        ("proposition1",),
        hidden_states,
    ),
    Conclusion("Low rank does not mean nearly independent", ("figure6",), not_independent),
    Conclusion("Joint PMFs of real data are nearly of low rank", ("table1",), low_rank),
    Conclusion(
        "Triples determine the joint under mild conditions on the rank",
        ("table2",),
        triples_suffice,
    ),
    Conclusion("Quadruples do so for much higher ranks", ("table2",), quadruples_further),
    Conclusion("Not all triples are needed", ("fewer_tables",), not_all_needed),
    Conclusion("Under more stringent conditions even pairs will do", ("fewer_tables",), even_pairs),
    Conclusion(
        "A best low-rank approximation might not exist; constraints mitigate this",
        ("beyond",),
        constraints_help,
    ),
    Conclusion(
        "With exact triples or quadruples the algorithm recovers the joint, with pairs it does not",
        ("table4",),
        exact_tables,
    ),
    Conclusion(
        "Hidden Markov and other graphical models may be recovered blind, even where states emit "
        "alike",
        ("recovery",),
        blind,
    ),
)
