"""What a fitted estimator says of rows: their class, how probable they are, how well it fits."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rejoint.estimators.profiles import profile_frame
from rejoint.estimators.reading import generator, read
from rejoint.estimators.streaming import weights_of
from rejoint.pmf import LowRankPMF
from rejoint.records import Backend, Records
from rejoint.records.sparse import AnyRecords
from rejoint.solver import FitResult

__all__ = ["Judgements"]

Array = NDArray[np.float64]


class Judgements:
    """Methods of an estimator with ``pmf_`` and ``result_``; those of a latent class model.

    Examples
    --------
    >>> import rejoint as rj
    >>> issubclass(rj.JointPMF, Judgements)
    True
    """

    pmf_: LowRankPMF
    rank_: int
    result_: FitResult
    random_state: Any

    def predict(self, X: Any) -> NDArray[np.intp]:
        """The most probable hidden class of each row, 0 being the largest class.

        Examples
        --------
        >>> import rejoint as rj
        >>> X = [["a", "x"], ["b", "y"]] * 50
        >>> model = rj.JointPMF(rank=2, random_state=0).fit(X)
        >>> first, second = model.predict(X[:2])
        >>> bool(first != second)
        True
        """
        return np.asarray(np.argmax(self.predict_proba(X), axis=1))

    def predict_proba(self, X: Any) -> Array:
        """Posterior probability of each hidden class for each row.

        Examples
        --------
        >>> import rejoint as rj
        >>> X = [["a", "x"], ["b", "y"]] * 50
        >>> rj.JointPMF(rank=2, random_state=0).fit(X).predict_proba(X[:2]).sum(axis=1)
        array([1., 1.])
        """
        check_is_fitted(self)
        return self.pmf_.classes(read(self, X, reset=False))

    def score_samples(self, X: Any) -> Array:
        """Log-probability of each row, missing cells summed out.

        Examples
        --------
        >>> import rejoint as rj
        >>> model = rj.JointPMF(rank=1, solver="ml").fit([["a"], ["a"], ["b"], ["b"]])
        >>> model.score_samples([["a"], [None]]).round(2)
        array([-0.69,  0.  ])
        """
        check_is_fitted(self)
        return self._predictive.log_prob(read(self, X, reset=False))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log-probability of the rows.

        Examples
        --------
        >>> import rejoint as rj
        >>> X = [["a"], ["a"], ["b"], ["b"]]
        >>> round(rj.JointPMF(rank=1, solver="ml").fit(X).score(X), 2)
        -0.69
        """
        check_is_fitted(self)
        records = read(self, X, sample_weight, reset=False)
        return mean(self._predictive.log_prob(records), records)

    def aic(self, X: Any, sample_weight: Any = None) -> float:
        """Akaike's criterion of ``pmf_`` on these rows; the lower the better.

        Examples
        --------
        >>> import rejoint as rj
        >>> X = [["a"], ["a"], ["b"], ["b"]]
        >>> round(rj.JointPMF(rank=1, solver="ml").fit(X).aic(X), 2)
        7.55
        """
        return self._penalised(X, sample_weight, lambda mass: 2.0)

    def bic(self, X: Any, sample_weight: Any = None) -> float:
        """Bayesian information criterion of ``pmf_`` on these rows; the lower the better.

        Examples
        --------
        >>> import rejoint as rj
        >>> X = [["a"], ["a"], ["b"], ["b"]]
        >>> round(rj.JointPMF(rank=1, solver="ml").fit(X).bic(X), 2)
        6.93
        """
        return self._penalised(X, sample_weight, np.log)

    def profiles(self, backend: Backend | None = None) -> Any:
        """Probability of each level overall and within each class, as a frame.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            By default the first of them that is installed.

        Examples
        --------
        >>> import rejoint as rj
        >>> model = rj.JointPMF(rank=1, solver="ml").fit({"coin": ["head", "tail", "head", "tail"]})
        >>> model.profiles("pandas")
                        overall  class 0
        variable level
        coin     head       0.5      0.5
                 tail       0.5      0.5
        """
        check_is_fitted(self)
        return profile_frame(self.pmf_, backend)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Records:
        """Draw new records.

        Parameters
        ----------
        n_samples : int
            How many.
        random_state : int, RandomState, Generator or None
            By default that of the estimator.

        Returns
        -------
        Records
            ``to_frame`` makes a frame of them.

        Examples
        --------
        >>> import rejoint as rj
        >>> model = rj.JointPMF(rank=1, random_state=0).fit({"coin": ["head", "tail"] * 20})
        >>> len(model.sample(3))
        3
        """
        check_is_fitted(self)
        source = self.random_state if random_state is None else random_state
        return self._predictive.sample(n_samples, random_state=generator(source))

    @property
    def _predictive(self) -> LowRankPMF:
        """What rows are judged by: the posterior mean where there is one."""
        posterior = self.result_.posterior
        return self.pmf_ if posterior is None else posterior.mean

    def _penalised(self, X: Any, sample_weight: Any, price: Callable[[float], float]) -> float:
        check_is_fitted(self)
        records = read(self, X, sample_weight, reset=False)
        mass = float(weights_of(records).sum())
        free = self.rank_ * (sum(self.pmf_.domain.shape) - len(self.pmf_.domain) + 1) - 1
        fitted = mean(self.pmf_.log_prob(records), records) * mass
        return float(price(mass) * free - 2.0 * fitted)


def mean(values: Array, records: AnyRecords) -> float:
    """Weighted mean over records; those without weight do not count, even at -inf."""
    weight = weights_of(records)
    used = weight > 0
    return float(np.average(values[used], weights=weight[used]))
