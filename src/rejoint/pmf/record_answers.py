"""Questions about whole records: how probable they are, of which class, and new ones."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoint import queries
from rejoint.domain import remark
from rejoint.kernels import SparseCodes
from rejoint.pmf.evidence import Given, posterior
from rejoint.pmf.mixture import Mixture
from rejoint.queries.sampling import draw_codes
from rejoint.records import Records
from rejoint.records.sparse import read_any

__all__ = ["RecordAnswers"]

FloatArray = NDArray[np.float64]


class RecordAnswers(Mixture):
    """What a model says about records, row by row, and the records it makes up.

    Examples
    --------
    >>> import rejoint as rj
    >>> p = rj.datasets.asia()
    >>> p.log_prob(p.sample(3, random_state=0)).shape
    (3,)
    """

    __slots__ = ()

    def log_prob(self, data: Any) -> FloatArray:
        """Logarithm of the probability of each record; missing cells are summed out.

        Parameters
        ----------
        data : Records, SparseRecords, or anything that ``Records.of`` takes
            Read with the model's domain; variables that it lacks are missing.

        Returns
        -------
        ndarray (M,)
            -inf for records that are impossible under the model.

        Examples
        --------
        >>> import numpy as np, rejoint as rj
        >>> p = rj.datasets.asia()
        >>> np.exp(p.log_prob([{"asia": "yes", "tub": "yes"}, {"asia": None, "tub": "yes"}]))
        array([0.0005, 0.0104])
        """
        return queries.record_log_prob(self.weights, self.factors, self._codes(data))

    def classes(self, data: Any) -> FloatArray:
        """Posterior of the hidden class of each record; missing cells are summed out.

        A record of probability zero (factors may hold zeros) gets the limit of a vanishing
        floor: the classes that contradict it least, with a remark that says how many.

        Parameters
        ----------
        data : Records, SparseRecords, or anything that ``Records.of`` takes
            Read with the model's domain; variables that it lacks are missing.

        Returns
        -------
        ndarray (M, F)
            Rows sum to one.

        Examples
        --------
        >>> import rejoint as rj
        >>> domain = rj.Domain.of({"a": ["x", "y"]})
        >>> p = rj.LowRankPMF([0.5, 0.5], [[[0.9, 0.1], [0.1, 0.9]]], domain)
        >>> p.classes([{"a": "x"}, {"a": None}])
        array([[0.9, 0.1],
               [0.5, 0.5]])
        """
        codes = self._codes(data)
        out = np.empty((len(codes), self.rank))
        impossible: list[int] = []
        for rows, logs, out[rows] in queries.posteriors(self.weights, self.factors, codes):
            impossible += (np.flatnonzero(np.isneginf(logs)) + rows.start).tolist()
        if impossible:
            remark(
                f"{len(impossible):,} of {len(codes):,} records have probability zero under this "
                f"model (first: row {impossible[0]}); they got the classes that contradict them "
                "least."
            )
        return out

    def sample(
        self,
        n: int,
        given: Given = None,
        random_state: int | np.random.Generator | None = None,
    ) -> Records:
        """Draw records, exactly, given evidence.

        Parameters
        ----------
        n : int
            How many.
        given : mapping, optional
            Evidence. Given variables are part of the records: at their level, or at a level
            drawn from the list or from the soft evidence.
        random_state : int, Generator or None
            Seed, or source, of the randomness.

        Returns
        -------
        Records

        Examples
        --------
        >>> import rejoint as rj
        >>> records = rj.datasets.asia().sample(1000, given={"lung": "yes"}, random_state=0)
        >>> len(records), records.marginal(["lung"])
        (1000, array([1., 0.]))
        """
        if n < 0:
            raise ValueError(f"sample: the number of records must not be negative; got {n}.")
        shares, factors = posterior(self, given)
        wide = max(self.domain.shape) > np.iinfo(np.int16).max
        rng = np.random.default_rng(random_state)
        codes = draw_codes(shares, factors, n, rng, np.int32 if wide else np.int16)
        codes.flags.writeable = False  # Records copies what others could still change
        return Records(self.domain, codes)

    def _codes(self, data: Any) -> NDArray[np.signedinteger[Any]] | SparseCodes:
        return read_any(data, domain=self.domain).codes
