"""Find the k items that are most probably liked all together, by branch and bound.

With ``p_f`` the user's classes and ``q_jf`` the probability that item j is liked in class f, a set
S has probability ``sum_f p_f prod_{j in S} q_jf``. A node has chosen some items, with ``U_f`` its
product so far, and has r left to choose. As a product is at most the mean of its r-th powers,

    sum_f U_f prod_{j in S} q_jf <= sum_{j in S} c_j,    c_j = (1 / r) sum_f U_f q_jf^r,

so that the r largest ``c_j`` among the items it may still take bound all sets below the node. The
bound is nearly tight, as the items of a good set have nearly equal probabilities; for the last
item it is exact. Nodes of one depth are bounded by one product of matrices.
"""

from typing import NamedTuple

import numpy as np

from rejoint.arrays import FloatArray, IntArray

#: Relative: sets this near to the best count as equally probable.
TIE = 1e-9

#: Classes that together weigh less than this share of a good set's probability are left out of
#: the search; the bound allows for them.
NEGLIGIBLE = 1e-10

#: Nodes that are bounded at once.
WIDTH = 64


class BestSet(NamedTuple):
    """Items of the best set in order of choice, its probability, and a bound on any set."""

    items: IntArray
    probability: float
    bound: float
    exact: bool


def best_set(classes: FloatArray, likes: FloatArray, size: int, max_nodes: int = 20_000) -> BestSet:
    """Find the most probable set.

    Parameters
    ----------
    classes : (R,)
        Probability of the classes.
    likes : (N, R)
        Probability in each class that an item is liked.
    size : int
        Items of the set, N at most.
    max_nodes : int
        Nodes after which the search ends and says that it is not exact.

    Returns
    -------
    BestSet

    Examples
    --------
    >>> likes = np.array([[0.9, 0.2], [0.2, 0.9], [0.8, 0.1], [0.5, 0.5]])
    >>> found = best_set(np.array([0.6, 0.4]), likes, 2)
    >>> found.items, round(found.probability, 12), found.exact
    (array([0, 2]), 0.44, True)
    """
    items, value = climb(classes, likes, size)
    order = np.argsort(-classes, kind="stable")
    # Weight from each class on: summed from the small end, so that it is exact where it is small.
    rest = np.cumsum(classes[order][::-1])[::-1]
    count = max(int((rest > NEGLIGIBLE * value).sum()), 1)
    kept, lost = order[:count], float(classes[order[count:]].sum())
    search = _Search(classes[kept], likes[:, kept], items, max_nodes)
    bound = search.run() + lost
    value = float(classes @ np.prod(likes[search.best_items], axis=0))
    exact = bound <= value * (1.0 + 2.0 * TIE)
    return BestSet(search.best_items, value, max(value, bound), exact)


class _Search:
    """One search: items by their own probability, the best set so far, nodes still open."""

    def __init__(
        self, classes: FloatArray, likes: FloatArray, items: IntArray, max_nodes: int
    ) -> None:
        self.size, self.max_nodes, self.nodes = len(items), max_nodes, 0
        self.classes, self.likes = classes, likes
        self.best_items = items
        self.best = float(classes @ np.prod(likes[items], axis=0))

    def run(self) -> float:
        """Search; return the largest bound that is left, or the best value if none is."""
        candidates = self.candidates()
        if len(candidates) < self.size:
            return self.best
        self.index, self.q = candidates, self.likes[candidates]
        self.powers = {1: np.ascontiguousarray(self.q.T)}
        for r in range(2, self.size + 1):
            self.powers[r] = self.powers[r - 1] * self.powers[1]
        whole = float(self.classes.sum())
        # A stack of layers: (bounds, products, chosen), all of one depth.
        stack = [(np.array([whole]), self.classes[None], np.zeros((1, 0), dtype=np.intp))]
        while stack and self.nodes < self.max_nodes:
            bounds, parts, chosen = stack.pop()
            good = np.flatnonzero(bounds > self.threshold)
            good = good[np.argsort(-bounds[good], kind="stable")]
            now, then = good[:WIDTH], good[WIDTH:]
            if len(then):
                stack.append((bounds[then], parts[then], chosen[then]))
            if len(now):
                children = self.expand(parts[now], chosen[now])
                if children is not None:
                    stack.append(children)
        left = max((float(bounds.max(initial=0.0)) for bounds, _, _ in stack), default=0.0)
        return max(self.best, left)

    @property
    def threshold(self) -> float:
        return self.best * (1.0 + TIE)

    def candidates(self) -> IntArray:
        """Items that a better set may have, most probable first."""
        scores = (self.likes**self.size) @ self.classes / self.size
        top = np.sort(scores)[::-1]
        others = float(top[: self.size - 1].sum())
        good = np.flatnonzero(scores + others > self.threshold)
        return good[np.argsort(-scores[good], kind="stable")]

    def expand(
        self, parts: FloatArray, chosen: IntArray
    ) -> tuple[FloatArray, FloatArray, IntArray] | None:
        """Children of nodes that the bound leaves; the last choice is offered at once."""
        left = self.size - chosen.shape[1]
        scores = parts @ self.powers[left] / left  # (nodes, items)
        self.nodes += len(parts)
        first = chosen.max(axis=1, initial=-1) + 1
        scores[np.arange(scores.shape[1])[None] < first[:, None]] = -np.inf
        if left == 1:
            self.offer(scores, chosen)
            return None
        bounds = child_bounds(scores, left)
        node, item = np.nonzero(bounds > self.threshold)
        if len(node) == 0:
            return None
        products = parts[node] * self.q[item]
        return bounds[node, item], products, np.column_stack([chosen[node], item])

    def offer(self, scores: FloatArray, chosen: IntArray) -> None:
        """Take the best completion if it beats what is known."""
        node, item = np.unravel_index(int(scores.argmax()), scores.shape)
        if scores[node, item] > self.threshold:
            self.best = float(scores[node, item])
            self.best_items = self.index[np.append(chosen[node], item)]


def child_bounds(scores: FloatArray, left: int) -> FloatArray:
    """Bound of taking each item and, after it, ``left - 1`` of those that come later.

    Sets are built in the order of the items, so that each is met once. From the end to the
    start, the largest ``left - 1`` scores so far are kept for each node.
    """
    bounds = np.full(scores.shape, -np.inf)
    top = np.full((len(scores), left - 1), -np.inf)
    for j in range(scores.shape[1] - 1, -1, -1):
        mine = scores[:, j]
        bounds[:, j] = mine + top.sum(axis=1)
        low = top.argmin(axis=1)
        rows = np.arange(len(scores))
        better = mine > top[rows, low]
        top[rows[better], low[better]] = mine[better]
    return bounds


def climb(classes: FloatArray, likes: FloatArray, size: int) -> tuple[IntArray, float]:
    """A good set: one item after another, then single exchanges while they help."""
    chosen: list[int] = []
    product = classes.copy()
    for _ in range(size):
        values = likes @ product
        values[chosen] = -np.inf
        chosen.append(int(values.argmax()))
        product = product * likes[chosen[-1]]
    best, improved = float(product.sum()), True
    while improved:
        improved = False
        for k in range(size):
            others = chosen[:k] + chosen[k + 1 :]
            values = likes @ (classes * np.prod(likes[others], axis=0))
            values[others] = -np.inf
            item = int(values.argmax())
            if values[item] > best * (1.0 + TIE):
                chosen[k], best, improved = item, float(values[item]), True
    return np.array(chosen, dtype=np.intp), best
