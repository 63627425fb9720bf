"""The conclusions of the paper's text, one by one, each with the number that decides it."""

from paper.framework import Section, Table, Text
from paper.verdicts.conclusion import Conclusion, Found, Verdict
from paper.verdicts.on_data import ON_DATA
from paper.verdicts.on_samples import ON_SAMPLES
from paper.verdicts.on_theory import ON_THEORY

CONCLUSIONS = (*ON_THEORY, *ON_SAMPLES, *ON_DATA)


def section(found: Found) -> Section:
    """All conclusions whose results are there."""
    rows = []
    for place, conclusion in enumerate(CONCLUSIONS, start=1):
        verdict, why = judged(conclusion, found)
        rows.append([str(place), conclusion.says, verdict, why])
    words = (
        "What the paper's text concludes, in its order, and what came out here. Each verdict "
        "follows "
        "from the numbers beside it: confirmed where all parts of the claim hold (all sets, all "
        "ranks), in part where some do, not confirmed where none does."
    )
    parts = [Text(words), Table(["", "the paper says", "verdict", "what shows it"], rows)]
    return Section("The paper's conclusions, one by one", parts)


def judged(conclusion: Conclusion, found: Found) -> Verdict:
    """The verdict, or that there is none as long as cells are lacking."""
    rests_on = [found[name] for name in conclusion.rests_on if name in found]
    complete = len(rests_on) == len(conclusion.rests_on)
    complete = complete and all(len(done) == done.wanted for done in rests_on)
    try:
        return conclusion.judge(found)
    except (KeyError, IndexError, ValueError):
        if complete:
            raise
        return "open", "its cells are not done yet"


def tally(found: Found) -> dict[str, list[str]]:
    """Numbers of the conclusions by verdict."""
    numbers: dict[str, list[str]] = {}
    for place, conclusion in enumerate(CONCLUSIONS, start=1):
        numbers.setdefault(judged(conclusion, found)[0], []).append(str(place))
    return numbers
