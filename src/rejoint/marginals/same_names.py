"""One name for one thing: variables and levels that several tables write differently.

Case, blanks and accents are merged, and that is said. What only looks alike (Men and Male, 15-24 and
15 to 24) is an error that prints the option to add.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rejoint.marginals.totals import plain_text

if TYPE_CHECKING:
    from rejoint.marginals.publication import Draft


def use_one_name(
    drafts: "Sequence[Draft]", same: Mapping[str, str], known: Sequence[str] = ()
) -> None:
    """Write variables and levels in one way in all tables, in place."""
    told = {plain_text(key): value for key, value in same.items()}
    for draft in drafts:
        facet = draft.facet
        for k, labels in enumerate(facet.labels):
            if not facet.names[k]:
                facet.names[k] = told.get(plain_text("/".join(labels[:2])), "")
            facet.names[k] = told.get(plain_text(facet.names[k]), facet.names[k])
            facet.labels[k] = [told.get(plain_text(label), label) for label in labels]
