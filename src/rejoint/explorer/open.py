"""From a file, a model or data, to the document that the page shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from rejoint import io
from rejoint.datasets.simulate import asia, remove_cells
from rejoint.estimation import estimate
from rejoint.estimation.smoothing import Smooth
from rejoint.explorer.document import document, pair_fit, verdict
from rejoint.explorer.page_tables import (
    bound_bars,
    count_bars,
    list_published,
    read_evidence_pairs,
)
from rejoint.io.atomic import FileVersion
from rejoint.io.fit_notes import FIT_TEXTS, records_behind
from rejoint.io.model_file import SavedEnsemble, SavedEstimator
from rejoint.pmf.pmf import LowRankPMF
from rejoint.records.records import Records


@dataclass(frozen=True)
class Opened:
    """A model and what else is known about it.

    Parameters
    ----------
    pmf : LowRankPMF
        The model.
    path : Path or None
        Its file, where it has one.
    title : str
        What the page is called.
    notes : mapping
        Of the file.
    records : Records or None
        The data that came with it.
    story : str or None
        How it was fitted.
    estimator : SavedEstimator or None
        The imputer or recommender of the file.
    ensemble : SavedEnsemble or None
        The models of a classifier's file, which predict its targets.
    version : FileVersion or None
        What the file held when it was read: names are not saved into another model.

    Examples
    --------
    >>> import rejoint as rj
    >>> Opened(rj.datasets.asia(), title="Asia").document()["title"]
    'Asia'
    """

    pmf: LowRankPMF
    path: Path | None = None
    title: str = "Model"
    notes: Mapping[str, Any] = field(default_factory=dict)
    records: Records | None = None
    story: str | None = None
    ensemble: SavedEnsemble | None = None
    estimator: SavedEstimator | None = None
    version: FileVersion | None = None

    def document(self) -> dict[str, Any]:
        """Return the document of the page, with fit and verdict."""
        return document(
            self.pmf,
            title=self.title,
            source=None if self.path is None else self.path.name,
            records=self.records,
            record_count=records_behind(self.notes),
            class_names=self.notes.get("class_names"),
            fit=self._fit(),
            verdict=verdict(self.pmf),
            note=self.story,
            target=self.notes.get("target"),
            ensemble=self.ensemble,
            estimator=self.estimator,
            table_notes=self.notes.get("tables"),
        )

    def _fit(self) -> dict[str, Any] | None:
        """Tables met worst: of the records at hand, else those that the file lists."""
        if self.records is not None:
            return pair_fit(self.pmf, self.records)
        listed: dict[str, Any] | None = self.notes.get("fit")
        return listed

    def bound_bars(self, plain: Any) -> dict[str, Any] | None:
        """Return ranges of the bars given evidence of the page; None if it is not evidence."""
        given = read_evidence_pairs(plain, self.pmf.domain)
        if given is None:
            return None
        return bound_bars(self.pmf, given, list_published(self.pmf))[0]

    def count(self, plain: Any) -> dict[str, Any] | None:
        """Answer a question of the page, or return its bars given evidence; None for neither."""
        if isinstance(plain, str):
            try:
                return self.pmf.ask(plain).to_json()
            except ValueError:  # which the page has said already
                return None
        given = read_evidence_pairs(plain, self.pmf.domain)
        return None if given is None else count_bars(self.pmf, given)

    def keep_names(self, names: Sequence[str]) -> None:
        """Write the names of the classes into the model's file; all else in it stays."""
        if self.path is None or self.version is None:
            return
        saved = io.read_saved(self.path)
        notes = saved.notes | {"class_names": list(names)}
        self.version.check()
        io.write_model(self.path, saved._replace(notes=notes))
        self.version.renew()


def is_model(path: str | PathLike[str]) -> bool:
    """Say whether a file is a saved model rather than data, by its name.

    Examples
    --------
    >>> is_model("asia.rejoint"), is_model("people.csv.gz")
    (True, False)
    """
    return Path(path).suffix.lower() in (".rejoint", ".json")


def open_model(path: str | PathLike[str]) -> Opened:
    """Read a model and what its file says of it.

    Examples
    --------
    >>> import pathlib, tempfile, rejoint as rj
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "asia.rejoint")
    ...     rj.datasets.asia().save(path, notes={"records": 500})
    ...     open_model(path).document()["record_count"]
    500
    """
    version = FileVersion(path)
    saved = io.read_saved(path)
    pmf = LowRankPMF.of_saved(saved)
    told = [saved.notes.get(name) for name in FIT_TEXTS]
    story = " ".join(str(part) for part in told if part) or None
    return Opened(
        *(pmf, Path(path), Path(path).stem, saved.notes),
        story=story,
        ensemble=saved.ensemble,
        estimator=saved.estimator,
        version=version,
    )


def open_demo(path: str | PathLike[str] | None = None) -> Opened:
    """Fit the Asia network to 2,000 records of it with missing values, to try the page with.

    Examples
    --------
    >>> opened = open_demo()
    >>> opened.title, len(opened.records), len(opened.pmf.draws)
    ('Asia, a demo', 2000, 40)
    """
    records = remove_cells(asia().sample(2_000, random_state=0), 0.1, random_state=0)
    opened = fit_data(records, rank=4, random_state=0, path=path)
    return replace(opened, title="Asia, a demo")


def fit_data(
    data: Any,
    *,
    source: Path | None = None,
    rank: int | Literal["auto"] = "auto",
    random_state: int | None = None,
    smooth: Smooth = "auto",
    agreement: bool = True,
    path: str | PathLike[str] | None = None,
) -> Opened:
    """Estimate a model from records.

    Parameters
    ----------
    data : Records or anything that ``Records.of`` takes
    source : Path, optional
        Their file, which gives the page its title.
    rank, random_state, smooth, agreement
        As :func:`rejoint.estimate` takes them.
    path : path, optional
        Where to save the model.

    Examples
    --------
    >>> import rejoint as rj
    >>> data = rj.datasets.asia().sample(300, random_state=0)
    >>> opened = fit_data(data, rank=2, random_state=0)
    >>> opened.pmf.rank, len(opened.pmf.draws)
    (2, 40)
    """
    records = Records.of(data)
    how: dict[str, Any] = {"smooth": smooth, "agreement": agreement}
    result = estimate(records, rank=rank, random_state=random_state, **how)
    story = " ".join(filter(None, (result.choice, result.stop, result.agreement)))
    title = "Data" if source is None else source.name.split(".")[0]
    fit = pair_fit(result.pmf, records)
    named = None if source is None else source.name
    notes = io.fit_notes(result, records=records, source=named, seed=random_state, fit=fit)
    if path is not None:
        result.save(path, notes=notes)
    place = None if path is None else Path(path)
    version = None if path is None else FileVersion(path)
    pmf = result.pmf.with_counts(result.counts)
    return Opened(pmf, place, title, notes, records, story, version=version)
