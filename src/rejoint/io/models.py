"""Models written and read: the name says the form on the way out, the bytes on the way in."""

import json
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rejoint.domain import Domain
from rejoint.io.archive import read_archive, write_archive
from rejoint.io.places import whole_file
from rejoint.io.plain import as_plain, read_text, write_text

__all__ = ["SavedModel", "read_model", "read_open", "read_saved", "write_model", "write_open"]

FloatArray = NDArray[np.float64]
Block = NDArray[np.float32]


class SavedModel(NamedTuple):
    """What a file holds: the model's parts, notes about it, and perhaps posterior draws.

    ``notes`` is a plain dict. ``class_names`` in it names the classes; what else there is, is the
    writer's own. ``draws`` is a float32 array of shape (draws, 1 + levels of all variables,
    classes): of each draw the weights, then the factors one below the other.
    """

    weights: FloatArray
    factors: list[FloatArray]
    domain: Domain
    notes: dict[str, Any]
    draws: Block | None = None


def write_model(
    path: str | PathLike[str],
    weights: FloatArray,
    factors: Sequence[FloatArray],
    domain: Domain,
    notes: Mapping[str, Any] | None = None,
    draws: Block | None = None,
) -> None:
    """Write a model beside its place, then move it there: a crash leaves no half file.

    Parameters
    ----------
    path : path
        A name that ends in ``.json`` is written as text, any other as an archive.
    weights, factors, domain
        The model.
    notes : dict, optional
        What else is to be kept, as JSON can hold it; ``class_names``, a name for each class.
    draws : ndarray of float32, optional
        Posterior draws, as :class:`SavedModel` has them.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "coin.rejoint")
    ...     write_model(path, np.ones(1), [np.array([[0.5], [0.5]])], Domain.of_shape([2]))
    ...     sorted(np.load(path).files)
    ['factors', 'meta.json', 'weights']
    """
    plain = str(path).lower().endswith(".json")
    notes = _checked(dict(notes or {}), len(weights))
    with whole_file(path) as file:
        write_open(file, weights, factors, domain, notes, draws, plain=plain)


def write_open(
    file: IO[bytes],
    weights: FloatArray,
    factors: Sequence[FloatArray],
    domain: Domain,
    notes: Mapping[str, Any] | None = None,
    draws: Block | None = None,
    *,
    plain: bool = False,
) -> None:
    """Write a model to a file that is open: as text if ``plain``, else as an archive.

    Examples
    --------
    >>> import io, numpy as np
    >>> file = io.BytesIO()
    >>> write_open(file, np.ones(1), [np.array([[0.5], [0.5]])], Domain.of_shape([2]))
    >>> _ = file.seek(0)
    >>> read_open(file, "memory").weights
    array([1.])
    """
    notes = _checked(dict(notes or {}), len(weights))
    if plain:
        file.write(write_text(as_plain(weights, factors, domain, notes, draws)))
    else:
        write_archive(file, weights, factors, domain, notes, draws)


def _checked(notes: dict[str, Any], rank: int) -> dict[str, Any]:
    names = notes.get("class_names")
    if names is not None:
        notes["class_names"] = names = [str(name) for name in names]
        if len(names) != rank:
            raise ValueError(f"{len(names)} class names for a model of {rank} classes.")
    try:
        json.dumps(notes, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"The notes cannot be written as JSON: {error}.") from error
    return notes


def read_model(path: str | PathLike[str]) -> tuple[FloatArray, list[FloatArray], Domain]:
    """Read weights, factors and domain; a file that is no model, or spoilt, is an error in words.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "notes.txt")
    ...     _ = path.write_text("hello")
    ...     read_model(path)
    Traceback (most recent call last):
    ...
    ValueError: '...notes.txt' is not a rejoint model...
    """
    return read_saved(path)[:3]


def read_saved(path: str | PathLike[str]) -> SavedModel:
    """Read all that a file holds: the model's parts and the notes.

    Examples
    --------
    >>> import rejoint as rj, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "coin.json")
    ...     p = rj.LowRankPMF([1.0], [[[0.5], [0.5]]])
    ...     p.save(path, notes={"class_names": ["fair"]})
    ...     read_saved(path).notes
    {'class_names': ['fair']}
    """
    try:
        file = open(path, "rb")  # noqa: SIM115 (closed by the with below; its errors pass)
    except FileNotFoundError:
        raise FileNotFoundError(f"No model file '{path}': check the name and the folder.") from None
    except IsADirectoryError:
        raise IsADirectoryError(f"'{path}' is a folder, not a model file.") from None
    with file:
        return read_open(file, path)


def read_open(file: IO[bytes], path: str | PathLike[str]) -> SavedModel:
    """Read a model from a file that is open and can seek; ``path`` is what errors call it.

    Examples
    --------
    >>> import io
    >>> read_open(io.BytesIO(b"hello"), "standard input")
    Traceback (most recent call last):
    ...
    ValueError: 'standard input' is not a rejoint model...
    """
    start = file.read(64)
    file.seek(0)
    if start.lstrip().startswith(b"{"):
        return SavedModel(*read_text(file.read(), path))
    return SavedModel(*read_archive(file, path))
