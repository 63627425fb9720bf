"""TargetModel: a joint model, and an ensemble that predicts some of its variables."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, prod
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rejoint.arrays import Codes, FloatArray, IntArray
from rejoint.domain.domain import Domain
from rejoint.io.model_file import SavedModel, read_saved, write_model
from rejoint.language.bind import BoundQuery, bind
from rejoint.language.query import Query
from rejoint.pmf.answer import Answer
from rejoint.pmf.ask import (
    RandomState,
    answer_of_table,
    ask,
    check_numeric,
    divide_columns,
    note_unlikely,
)
from rejoint.pmf.label_ensemble import LabelEnsemble
from rejoint.pmf.label_explanation import LabelExplanation, explain_row
from rejoint.pmf.pmf import LowRankPMF
from rejoint.pmf.to_frame import Mode
from rejoint.queries import tables
from rejoint.queries.evidence import ZeroEvidenceError
from rejoint.queries.modes import Found
from rejoint.records.records import Records, drop_columns
from rejoint.text import cite, format_count, nearest, plural, show

if TYPE_CHECKING:
    from rejoint.estimators.imputer.joint_imputer import JointImputer
    from rejoint.estimators.recommender.joint_recommender import JointRecommender

#: Combinations of labels up to which all are compared.
MOST_COMBINATIONS = 4096


class TargetModel:
    """A joint model of features and targets, and an ensemble that predicts the targets.

    The probability of targets given levels of features is the average of several models that were
    trained to predict them. The joint model answers all other questions.

    Parameters
    ----------
    pmf : LowRankPMF
        The joint of the features, then the targets.
    ensemble : LabelEnsemble
        The models that are averaged.
    targets : sequence of str
        Names of the targets: the last variables of ``pmf``.

    Attributes
    ----------
    pmf : LowRankPMF
        A plain joint model. Its own ``P(target | ...)`` is the joint's and not the ensemble's.
    ensemble : LabelEnsemble
    targets : tuple of str

    Examples
    --------
    >>> import rejoint as rj
    >>> patients = rj.datasets.asia().sample(500, random_state=0)
    >>> model = rj.JointClassifier(rank=2, random_state=0).fit(patients, "bronc").model_
    >>> model
    TargetModel(predicts bronc from 7 variables, by 7 models; its pmf, a joint of rank 2, has a
        P(bronc | ...) of its own)
    >>> model.predict([{"smoke": "yes", "dysp": "yes"}, {"smoke": "no"}])
    array(['yes', 'no'], dtype='<U3')
    """

    def __init__(self, pmf: LowRankPMF, ensemble: LabelEnsemble, targets: Sequence[str]) -> None:
        names = tuple(targets)
        if not 0 < len(names) < len(pmf.domain) or pmf.domain.names[-len(names) :] != names:
            raise ValueError(
                f"targets must be the last variables of the joint model, got {show(names)}: its "
                f"variables are {show(pmf.domain.names)}."
            )
        self.pmf = pmf
        self.ensemble = ensemble
        self.targets = names

    @property
    def features(self) -> Domain:
        """The variables that the targets are predicted from.

        Examples
        --------
        >>> import rejoint as rj
        >>> table = {"a": ["x", "y"] * 20, "b": ["u", "v"] * 20}
        >>> rj.JointClassifier(rank=2, random_state=0).fit(table, "b").model_.features.names
        ('a',)
        """
        return Domain(self.pmf.domain.variables[: -len(self.targets)])

    def predict_proba(self, data: Any) -> Any:
        """Return the probability of each label for each row; a list of arrays for several targets.

        Parameters
        ----------
        data : Records or anything that ``Records.of`` takes
            Rows; columns of the targets are ignored, and cells may be missing.

        Returns
        -------
        array of shape (rows, labels), or a list of them
            Labels as in ``pmf.domain``.

        Examples
        --------
        >>> import rejoint as rj
        >>> table = {"a": ["x", "y"] * 20, "b": ["u", "v"] * 20}
        >>> model = rj.JointClassifier(rank=2, random_state=0).fit(table, "b").model_
        >>> model.predict_proba([{"a": "x"}]).round(1)
        array([[1., 0.]])
        """
        shares = self.shares(self.read(data))
        return shares[0] if len(shares) == 1 else shares

    def predict(self, data: Any) -> NDArray[Any]:
        """Return the most probable label of each row; with several targets, a column for each.

        Examples
        --------
        >>> import rejoint as rj
        >>> table = {"a": ["x", "x", "y"] * 20, "b": ["u", "u", "v"] * 20}
        >>> model = rj.JointClassifier(rank=2, random_state=0).fit(table, "b").model_
        >>> model.predict({"a": ["y", None]})
        array(['v', 'u'], dtype='<U1')
        """
        variables = self.pmf.domain.variables[-len(self.targets) :]
        places = self.places(self.read(data))
        labels = [np.array(v.levels)[k] for v, k in zip(variables, places, strict=True)]
        return labels[0] if len(labels) == 1 else side_by_side(labels)

    def read(self, data: Any) -> Codes:
        """Return the codes of the features in rows of any form, (rows, features).

        Examples
        --------
        >>> import rejoint as rj
        >>> table = {"a": ["x", "y"] * 20, "b": ["u", "v"] * 20}
        >>> model = rj.JointClassifier(rank=2, random_state=0).fit(table, "b").model_
        >>> model.read([{"a": "y", "b": "u"}, {"a": None}]).tolist()
        [[1], [-1]]
        """
        return Records.of(drop_columns(data, self.targets), domain=self.features).codes

    def shares(self, codes: Codes) -> list[FloatArray]:
        """Return the probability of each label, (rows, labels) for each target.

        Parameters
        ----------
        codes : array (rows, features)
            What :meth:`read` returns.

        Examples
        --------
        >>> import rejoint as rj
        >>> table = {"a": ["x", "y"] * 20, "b": ["u", "v"] * 20}
        >>> model = rj.JointClassifier(rank=2, random_state=0).fit(table, "b").model_
        >>> [shares] = model.shares(model.read(table))
        >>> shares.shape
        (40, 2)
        """
        return self.ensemble.shares(codes, self._each)

    def places(self, codes: Codes) -> list[IntArray]:
        """Return the place of the most probable label of each target, (rows,) for each.

        Examples
        --------
        >>> import rejoint as rj
        >>> table = {"a": ["x", "y"] * 20, "b": ["u", "v"] * 20}
        >>> model = rj.JointClassifier(rank=2, random_state=0).fit(table, "b").model_
        >>> model.places(model.read([{"a": "y"}]))
        [array([1])]
        """
        blocks = self.ensemble.map_blocks(
            codes, self._each, lambda found: list(map(largest, found))
        )
        return [np.concatenate(target) for target in zip(*blocks, strict=True)]

    def joint_places(self, codes: Codes) -> list[IntArray]:
        """Return the places of the labels of the most probable combination, (rows,) for each.

        Examples
        --------
        >>> import rejoint as rj
        >>> table = {"a": ["x", "y"] * 20, "b": ["u", "v"] * 20}
        >>> model = rj.JointClassifier(rank=2, random_state=0).fit(table, "b").model_
        >>> model.joint_places(model.read([{"a": "y"}]))
        [array([1])]
        """
        sizes = self.pmf.domain.shape[-len(self.targets) :]
        if prod(sizes) > MOST_COMBINATIONS:
            raise ValueError(
                f"{prod(sizes):,} combinations of labels are too many to be compared for each row: "
                "ask the joint model, pmf.mode(targets, given=...), row by row."
            )
        every = tuple(range(len(self.targets)))
        blocks = self.ensemble.map_blocks(codes, [every], lambda found: largest(found[0]))
        return list(np.unravel_index(np.concatenate(blocks), sizes))

    def explain(
        self, data: Any, label: Any = None, *, target: str | None = None
    ) -> list[LabelExplanation]:
        """Explain what each feature contributes to a prediction, row by row.

        Contributions are in log-odds, averaged over orders in which the features become known
        (see :mod:`rejoint.pmf.label_explanation`). They sum to the log-odds of the prediction less
        those with all features missing, which are those of the shares of the labels.

        Parameters
        ----------
        data : Records or anything that ``Records.of`` takes
            Rows; columns of the targets are ignored, and cells may be missing.
        label : label, optional
            The label that is explained; by default the most probable one of each row.
        target : str, optional
            The target, where there are several; the first one by default.

        Returns
        -------
        list of LabelExplanation
            One for each row. Printed, it reads as text.

        Examples
        --------
        >>> import rejoint as rj
        >>> patients = rj.datasets.asia().sample(500, random_state=0)
        >>> model = rj.JointClassifier(rank=2, random_state=0).fit(patients, "bronc").model_
        >>> [why] = model.explain([{"smoke": "yes", "dysp": "yes"}], "yes")
        >>> [part.feature for part in why.contributions]
        ['dysp', 'smoke']
        >>> parts = sum(part.log_odds for part in why.contributions)
        >>> bool(abs(why.baseline + parts - why.log_odds) < 1e-9)
        True
        """
        return self.explain_codes(self.read(data), label, target=target)

    def explain_codes(
        self, codes: Codes, label: Any = None, *, target: str | None = None
    ) -> list[LabelExplanation]:
        """Explain rows of codes, which :meth:`read` returns; see :meth:`explain`.

        Examples
        --------
        >>> import rejoint as rj
        >>> table = {"a": ["x", "y"] * 20, "b": ["u", "v"] * 20}
        >>> model = rj.JointClassifier(rank=2, random_state=0).fit(table, "b").model_
        >>> model.explain_codes(model.read([{"a": "y"}]))[0].label
        'v'
        """
        name = self.targets[0] if target is None else target
        if name not in self.targets:
            raise ValueError(
                f"target must be one of {show(self.targets)}, got {cite(name)}."
                f"{nearest(name, self.targets)}"
            )
        t, variable = self.targets.index(name), self.pmf.domain[name]
        if label is None:
            places = self.places(codes)[t]
        else:
            places = np.full(len(codes), variable.code(label))
        features = self.features.variables

        def shares(rows: Codes) -> FloatArray:
            return self.ensemble.shares(rows, [(t,)])[0]

        return [
            explain_row(row, int(place), shares, features, variable)
            for row, place in zip(codes, places, strict=True)
        ]

    @property
    def _each(self) -> list[tuple[int, ...]]:
        return [(t,) for t in range(len(self.targets))]

    # Questions

    def ask(
        self,
        text: str | Query,
        *,
        bits: bool = False,
        level: float | None = 0.9,
        random_state: RandomState = None,
    ) -> Answer:
        """Answer a question in the query language.

        The ensemble answers ``P``, ``E`` and ``argmax`` of targets, where single levels of other
        variables are given, or variables without a value, which are tabulated by:
        ``P(bronc | smoke = yes, dysp)``. Such answers equal :meth:`predict_proba`, and have no
        credible interval. The joint model answers all other questions, as ``pmf.ask`` does, and a
        note says so. The probability of the evidence is always the joint's.

        Parameters
        ----------
        text, bits, level, random_state
            As for :meth:`LowRankPMF.ask`.

        Returns
        -------
        Answer

        Examples
        --------
        >>> import rejoint as rj
        >>> patients = rj.datasets.asia().sample(500, random_state=0)
        >>> model = rj.JointClassifier(rank=2, random_state=0).fit(patients, "bronc")
        >>> answer = model.model_.ask("P(bronc = yes | smoke = yes)")
        >>> bool(abs(float(answer) - model.predict_proba([{"smoke": "yes"}])[0, 1]) < 1e-12)
        True
        >>> print(*model.model_.ask("P(smoke | bronc = yes)").notes)
        The joint model answers, because the question is about smoke; ...
        """
        bound = bind(text, self.pmf.domain)
        reason = self._reason_for_joint(bound)
        if reason is None:
            return self._ask_ensemble(bound)
        answer = ask(self.pmf, text, bits, level, random_state)
        names = ", ".join(self.targets)
        note = (
            f"The joint model answers, because {reason}; the models that predict {names} answer "
            f"P, E and argmax of {names} given single levels."
        )
        return replace(answer, notes=(*answer.notes, note))

    def _reason_for_joint(self, bound: BoundQuery) -> str | None:
        """Return why the joint model answers a question; None if the ensemble does."""
        names, first = self.pmf.domain.names, len(self.pmf.domain) - len(self.targets)
        if bound.query.verb not in ("P", "E", "argmax"):
            return f"{bound.query.verb} is a question about the joint"
        asked = (*bound.asked, *bound.events)
        if not asked:
            return "the question is about all variables"
        for n in asked:
            if n < first:
                return f"the question is about {names[n]}"
        for n, likelihood in bound.evidence.items():
            if n in bound.by or not is_level_or_nothing(likelihood):
                return f"{bound.evidence_text[n]} is not a single level"
        if bound.query.verb == "argmax" and bound.by:
            return "argmax is not tabulated"  # which the joint model refuses at its place
        return None

    def _ask_ensemble(self, bound: BoundQuery) -> Answer:
        domain, verb = self.pmf.domain, bound.query.verb
        if verb == "E":
            check_numeric(domain, bound)
        row = np.full((1, len(domain)), -1, dtype=np.int32)
        for n, likelihood in bound.evidence.items():
            row[0, n] = likelihood.argmax() if is_level(likelihood) else -1
        log_prob = float(self.pmf.log_prob(Records(domain, row))[0]) if bound.evidence else 0.0
        notes = bound.notes + note_unlikely(bound, log_prob)
        table, more = self._table(bound, row[0])
        evidence, notes = min(exp(log_prob), 1.0), notes + more
        if verb != "argmax":
            return answer_of_table(domain, bound, table, evidence, notes)
        best = np.unravel_index(int(table.argmax()), table.shape)
        share = float(np.log(table[best]))
        found = Found(np.array(best), share, share, exact=True, nodes=0)
        mode = Mode.of([domain[n] for n in bound.asked], found)
        return Answer(bound.query, "mode", mode, evidence=evidence, notes=notes)

    def _table(self, bound: BoundQuery, row: Codes) -> tuple[FloatArray, tuple[str, ...]]:
        """Return P(asked, events | row, by), axes as asked and then by, and notes on it."""
        domain, first = self.pmf.domain, len(self.pmf.domain) - len(self.targets)
        labels = [
            n
            for n in range(first, len(domain))
            if n in (*bound.asked, *bound.events, *bound.by) or row[n] >= 0
        ]
        by = [n for n in bound.by if n < first]
        codes = self._combinations(bound, row[:first], by, prod(domain.shape[n] for n in labels))
        [shares] = self.ensemble.shares(codes, [tuple(n - first for n in labels)])
        axes = [*labels, *by]
        table = shares.T.reshape([domain.shape[n] for n in axes])
        for n in labels:
            if row[n] >= 0:
                table = table * _along(np.arange(domain.shape[n]) == row[n], axes.index(n), table)
        total = _sum_to(table, axes, bound.by)
        for n, meets in bound.events.items():
            table = table * _along(meets, axes.index(n), table)
        table = _sum_to(table, axes, bound.asked + bound.by)
        table = np.asarray(np.minimum(table, 1.0))  # not above one by rounding
        if not (row[first:] >= 0).any() and len(by) == len(bound.by):
            return table, ()  # shares sum to one as they are
        if not total.any():
            texts = (text for n, text in bound.evidence_text.items() if n >= first)
            raise ZeroEvidenceError(
                f"{', '.join(texts)} has probability zero given the rest: leave it out."
            )
        return divide_columns(table, total, [domain[n] for n in bound.by])

    def _combinations(self, bound: BoundQuery, row: Codes, by: list[int], labels: int) -> Codes:
        """Return the row with all combinations of levels of some features, (cells, features)."""
        sizes = [self.pmf.domain.shape[n] for n in by]
        cells = prod(sizes) * max(len(row), labels)
        if cells > tables.MAX_CELLS:
            raise bound.error(
                f"The table takes {format_count(cells)} numbers, more than the limit of "
                f"{tables.MAX_CELLS:,}: ask for fewer variables."
            )
        codes = np.tile(row, (prod(sizes), 1))
        codes[:, by] = np.indices(sizes).reshape(len(by), len(codes)).T
        return codes

    # Files

    def save(self, path: str | PathLike[str], *, notes: Mapping[str, Any] | None = None) -> None:
        """Write joint and ensemble to a file, as :meth:`LowRankPMF.save` writes a joint.

        :func:`rejoint.load` reads it back.

        Parameters
        ----------
        path : str or path
            An existing model is replaced, but no other file. A name ending in ``.json`` gives text.
        notes : dict, optional
            Further contents of the file, which JSON must be able to hold.

        Examples
        --------
        >>> import pathlib, rejoint as rj, tempfile
        >>> table = {"a": ["x", "y"] * 20, "b": ["u", "v"] * 20}
        >>> model = rj.JointClassifier(rank=2, random_state=0).fit(table, "b").model_
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(pathlib.Path(folder, "b.rejoint"))
        ...     again = rj.load(pathlib.Path(folder, "b.rejoint"))
        >>> again.predict_proba(table).tolist() == model.predict_proba(table).tolist()
        True
        """
        write_model(path, self.to_saved(notes))

    def to_saved(self, notes: Mapping[str, Any] | None = None, *, draws: bool = True) -> SavedModel:
        """Return what :meth:`save` writes to a file.

        Examples
        --------
        >>> import rejoint as rj
        >>> table = {"a": ["x", "y"] * 20, "b": ["u", "v"] * 20}
        >>> model = rj.JointClassifier(rank=2, random_state=0).fit(table, "b").model_
        >>> model.to_saved().ensemble.targets
        ('b',)
        """
        saved = self.pmf.to_saved(notes, draws=draws)
        return saved._replace(ensemble=self.ensemble.to_saved(self.targets))

    def __repr__(self) -> str:
        names, members = ", ".join(self.targets), len(self.ensemble.members)
        features = plural(len(self.pmf.domain) - len(self.targets), "variable")
        return (
            f"TargetModel(predicts {names} from {features}, by {plural(members, 'model')}; its "
            f"pmf, a joint of rank {self.pmf.rank}, has a P({names} | ...) of its own)"
        )


def of_saved(saved: SavedModel) -> LowRankPMF | TargetModel:
    """Make a model of the contents of a file: a TargetModel where it has an ensemble.

    Examples
    --------
    >>> import rejoint as rj
    >>> type(of_saved(rj.datasets.asia().to_saved())).__name__
    'LowRankPMF'
    """
    pmf = LowRankPMF.of_saved(saved)
    if saved.ensemble is None:
        return pmf
    ensemble = LabelEnsemble.of_saved(saved.ensemble, saved.domain)
    return TargetModel(pmf, ensemble, saved.ensemble.targets)


def joint_of(model: LowRankPMF | TargetModel) -> LowRankPMF:
    """Return the joint model: the model itself, or the one beside an ensemble.

    Examples
    --------
    >>> import rejoint as rj
    >>> joint_of(rj.datasets.asia()).rank
    8
    """
    return model.pmf if isinstance(model, TargetModel) else model


def load(
    path: str | PathLike[str],
) -> "LowRankPMF | TargetModel | JointImputer | JointRecommender":
    """Read what ``save`` wrote; no code in the file is executed.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    LowRankPMF, TargetModel, JointImputer or JointRecommender
        Equal to the saved one bit by bit, with the posterior draws in the file. That of a fit
        (:meth:`FitResult.save`, ``rejoint fit``) has counts of records, so that its ``ask`` answers
        as that of the result: ``with_counts(None)`` is the joint alone. The file of a
        classifier (:meth:`JointClassifier.save`, ``rejoint fit-target``) is a TargetModel, whose
        ``pmf`` is the joint; those of an imputer (:meth:`JointImputer.save`, ``rejoint impute
        --save``) and of a recommender (:meth:`JointRecommender.save`, ``rejoint fit-ratings``) are
        fitted ones, whose ``pmf_`` is the joint.

    Examples
    --------
    >>> import rejoint as rj
    >>> rj.load("no-such-file.rejoint")
    Traceback (most recent call last):
    ...
    FileNotFoundError: No model file 'no-such-file.rejoint'...
    """
    saved = read_saved(path)
    kind = None if saved.estimator is None else saved.estimator.kind
    # Estimators are a later layer, and scikit-learn takes a second to import.
    if kind == "imputer":
        from rejoint.estimators.imputer.joint_imputer import JointImputer

        return JointImputer.of_saved(saved)
    if kind == "recommender":
        from rejoint.estimators.recommender.joint_recommender import JointRecommender

        return JointRecommender.of_saved(saved, str(path))
    return of_saved(saved)


def is_level(likelihood: FloatArray) -> bool:
    """Whether evidence leaves one level.

    Examples
    --------
    >>> is_level(np.array([0.0, 0.3])), is_level(np.array([1.0, 1.0]))
    (True, False)
    """
    return int(np.count_nonzero(likelihood)) == 1


def is_level_or_nothing(likelihood: FloatArray) -> bool:
    """Whether evidence leaves one level, or is empty because all levels are equally likely.

    Examples
    --------
    >>> is_level_or_nothing(np.array([1.0, 1.0])), is_level_or_nothing(np.array([1.0, 0.5]))
    (True, False)
    """
    return is_level(likelihood) or bool(likelihood[0] > 0.0 and np.ptp(likelihood) == 0.0)


def _along(values: NDArray[Any], axis: int, table: FloatArray) -> NDArray[Any]:
    """Return a row of numbers in a shape that multiplies along an axis of a table."""
    return values.reshape([-1 if k == axis else 1 for k in range(table.ndim)])


def _sum_to(table: FloatArray, axes: Sequence[int], kept: Sequence[int]) -> FloatArray:
    """Sum over the axes of a table that are not kept; bring the others into the order asked."""
    gone = tuple(k for k, n in enumerate(axes) if n not in kept)
    rest = [n for n in axes if n in kept]
    return np.asarray(table.sum(axis=gone).transpose([rest.index(n) for n in kept]))


def largest(shares: FloatArray) -> IntArray:
    """Return the column of the largest share in each row; for two columns faster than argmax.

    Examples
    --------
    >>> largest(np.array([[0.4, 0.6], [0.5, 0.5]]))
    array([1, 0])
    """
    two = shares.shape[1] == 2
    places = shares[:, 1] > shares[:, 0] if two else np.argmax(shares, axis=1)
    return np.asarray(places, dtype=np.intp)


def side_by_side(labels: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Stack columns of labels into one array, of objects if their kinds differ.

    Examples
    --------
    >>> side_by_side([np.array(["a"]), np.array([1])])
    array([['a', 1]], dtype=object)
    """
    if len({column.dtype.kind for column in labels}) == 1:
        return np.stack(labels, axis=1)
    return np.stack([column.astype(object) for column in labels], axis=1)
