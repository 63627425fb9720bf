"""Conclusions on the model, on what tables determine, and on exact tables."""

from typing import Any

import numpy as np

from paper import table4
from paper.framework import Done
from paper.printed import TABLE1, TABLE2, TABLE3
from paper.verdicts.conclusion import Conclusion, Found, Verdict, decide


def one_dimensional(found: Found) -> Verdict:
    """Conclusion on one-dimensional marginals."""
    done = found["section2"]
    exact = max(done.where(case=c).values("error").max() for c in list_of(done, "known to be"))
    off = done.where(case="rank 2, taken as independent").values("error").mean()
    return decide(
        [exact < 1e-12, off > 1e-12],
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
    return decide([worst < 1e-12], f"Section II, last line: largest error {worst:.0e}")


def naive_bayes(found: Found) -> Verdict:
    """Proposition 1."""
    done = found["proposition1"]
    worst = done.values("error").max()
    return decide(
        [worst < 1e-12, bool((done.values("rank") <= done.values("bound")).all())],
        f"Proposition 1: {len(done)} joints, largest error {worst:.0e}, F never above the bound; "
        "below it where there are zeros",
    )


def hidden_states(found: Found) -> Verdict:
    """Conclusion on graphical models with few hidden nodes."""
    verdict, _ = naive_bayes(found)
    return verdict, (
        "follows from Proposition 1: one hidden node holds any joint if its states are not limited"
    )


def low_rank(found: Found) -> Verdict:
    """Table I."""
    done = found["table1"].where(solver="auto")
    errors = {c.settings["set"]: c.values["F = 5"] for c in done}
    shown = ", ".join(f"{s} {e:.3f} (printed {TABLE1[s][5]:.3f})" for s, e in errors.items())
    return decide(
        [error < 0.05 for error in errors.values()],
        f"Table I: what rank 5 leaves of the first three variables: {shown}. Other triples of the "
        "same sets differ by more",
    )


def not_independent(found: Found) -> Verdict:
    """Figure 6."""
    blocks = found["figure6"].where(world="two blocks")[0].values
    return decide(
        [blocks["rank"] == 2, blocks["distance"] > 0.3],
        f"Figure 6: rank 2 with {blocks['bits']:.0f} bit shared, {blocks['distance']:.2f} in total "
        "variation from independence",
    )


def triples_suffice(found: Found) -> Verdict:
    """Theorems 1 and 2: whether the printed ranks are proved by what is known now."""
    held, last = proved_as_printed(found, 0)
    return decide(
        held,
        f"Tables II, III: {sum(held)} of {len(held)} printed ranks are proved, though not as "
        "printed: the proofs count I rows a variable where I - 1 are free. N = 10, I = 3: printed "
        f"7, by the corrected lemmas {max(last['lemmas'])}, best proved {last['proved'][0]}, limit "
        f"{last['counting'][0]}",
    )


def quadruples_further(found: Found) -> Verdict:
    """Theorem 3."""
    cells = [*found["table2"], *found["table3"]]
    further = [cell.values["proved"][1] > cell.values["proved"][0] for cell in cells]
    held, last = proved_as_printed(found, 1)
    return decide(
        [*further, *held],
        f"Tables II, III: more than from triples in {sum(further)} of {len(further)} sizes; "
        f"{sum(held)} of {len(held)} printed ranks are proved. N = 10, I = 3: printed 36, "
        f"corrected "
        f"{last['compound']}, best proved {last['proved'][1]} against {last['proved'][0]} from "
        "triples",
    )


def proved_as_printed(found: Found, place: int) -> tuple[list[bool], dict[str, Any]]:
    """Whether the best proved rank reaches each printed one; the values of N = 10, I = 3."""
    held = []
    for name, printed in (("table2", TABLE2), ("table3", TABLE3)):
        for cell in found[name]:
            size = cell.settings["variables"], cell.settings["levels"]
            held.append(cell.values["proved"][place] >= printed[size][place])
    return held, found["table2"].where(variables=10)[0].values


def not_all_needed(found: Found) -> Verdict:
    """Fewer triples."""
    worst = found["fewer_tables"].where(case="cyclic triples").values("unseen").max()
    words = f"10 of 120 triples give a table of four that was not given with error {worst:.0e}"
    return decide([worst < 1e-8], words)


def even_pairs(found: Found) -> Verdict:
    """Pairs of sparse factors."""
    done = found["fewer_tables"]
    sparse = done.where(case="pairs, sparse factors").values("unseen").max()
    dense = np.median(done.where(case="pairs").values("unseen"))
    return decide(
        [sparse < 1e-8],
        f"pairs recover the joint to {sparse:.0e} where each class has a level of its own in each "
        f"variable, and leave {dense:.2f} (median) where not",
    )


def exact_tables(found: Found) -> Verdict:
    """Table IV."""
    rows = table4.summary(found["table4"])
    ours = max(row["largest"] for (_, order), row in rows.items() if order > 2)
    pairs = [row["admm joint"] for (_, order), row in rows.items() if order == 2]
    high = [row for (_, order), row in rows.items() if order > 2]
    starts = sum(row["reached"] for row in high) / sum(row["starts"] for row in high)
    solved = sum(row["solved"] for row in high) / sum(row["runs"] for row in high)
    return decide(
        [ours < 1e-10, solved == 1, min(pairs) > 0.05],
        f"Table IV: triples and quadruples to {ours:.0e} (printed: 1e-7), solved algebraically; "
        f"the paper's algorithm solves {solved:.0%} of the runs with {table4.STARTS} random "
        f"starts, "
        f"of which {starts:.0%} succeed; pairs stay at {', '.join(f'{x:.2f}' for x in pairs)}",
    )


def blind(found: Found) -> Verdict:
    """The remark on hidden Markov models."""
    done = found["recovery"].where(source="triples")
    errors = [done.where(world=world).values("joint").max() for world in ("hmm", "asia")]
    pairs = found["recovery"].where(source="pairs", world="hmm").values("joint").max()
    return decide(
        [error < 0.01 for error in errors],
        f"blind recovery: joint from triples to {errors[0]:.0e} (two states emit alike) and "
        f"{errors[1]:.0e} (Asia network); from pairs {pairs:.0e}",
    )


def constraints_help(found: Found) -> Verdict:
    """That a best approximation may not exist."""
    edge = found["beyond"].where(topic="best approximation")[0].values
    return decide(
        [edge["free"][-1] < 1e-3 < edge["rank 2"], edge["size"][-1] > 100],
        f"without constraints rank 2 comes as near as {edge['free'][-1]:.0e} while its parts "
        f"grow to "
        f"{edge['size'][-1]:,.0f}; on the simplex, a compact set, the best rank 2 model exists, at "
        f"{edge['rank 2']:.2f}: see the next page",
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
        ("table2", "table3"),
        triples_suffice,
    ),
    Conclusion("Quadruples do so for much higher ranks", ("table2", "table3"), quadruples_further),
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
