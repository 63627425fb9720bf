"""Recommenders as contents of files, and back; files may come from strangers."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rejoint.estimators.recommender.ratings import RatingLevels
from rejoint.estimators.recommender.trait_model import (
    ChoiceModel,
    People,
    RatingModel,
    TraitModel,
    no_ratings,
)
from rejoint.estimators.recommender.traits import TraitPolicy, as_cells
from rejoint.io.model_file import SavedEstimator, check_axes
from rejoint.text import cite

KIND = "recommender"

#: The axes of each array: M and K sweeps, N items, U users, d and e numbers, I levels, c cells.
KNOWN_AXES = {"known_indices": "c", "known_data": "c", "known_indptr": "r", "levels": "I"}
CHOICE_AXES = {
    "choice_items": "MNd",
    "choice_precision": "Md",
    "choice_offsets": "M2",
    "user_choices": "MUd",
}
RATING_AXES = {
    "rating_items": "KNe",
    "rating_precision": "Ke",
    "rating_variance": "K2",
    "rating_values": "I",
    "rating_use": "I",
    "user_points": "KUe",
    "user_variance": "1U",
    "user_use": "1UI",
}


def to_saved(
    model: TraitModel, people: People, known: Any, settings: Mapping[str, Any]
) -> SavedEstimator:
    """Return a recommender as contents of a file; ids of users and items are in the settings."""
    for noun in ("users", "items"):
        bad = [i for i in settings[noun] if not isinstance(i, str | int | float)]
        if bad:
            raise ValueError(f"Ids of {noun} in files are text or numbers; got {cite(bad[0])}.")
    parts = {"choice": model.choices, "rating": model.ratings, "user": people}
    arrays: dict[str, NDArray[Any]] = {"levels": model.scale.values}
    for name in CHOICE_AXES if model.ratings is None else CHOICE_AXES | RATING_AXES:
        part, _, field = name.partition("_")
        arrays[name] = np.asarray(getattr(parts[part], field), dtype=np.float32)
    arrays |= {"known_indptr": known.indptr, "known_indices": known.indices}
    arrays |= {"known_data": known.data.astype(np.int32)}
    more = {"policy": asdict(model.policy), "binned": model.scale.binned}
    more |= {name: getattr(model.ratings, name, 1.0) for name in ("center", "spread")}
    return SavedEstimator(KIND, {**settings, **more}, arrays)


def from_saved(
    saved: SavedEstimator | None, name: str
) -> tuple[TraitModel, People, Any, dict[str, Any]]:
    """Return model, users, what they have rated, and settings of a file of this name."""
    if saved is None or saved.kind != KIND:
        raise ValueError(
            f"'{name}' does not contain a recommender: make one with rejoint fit-ratings or "
            "JointRecommender.save."
        )
    try:
        return _from_saved(saved.arrays, saved.settings)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        text = f"'{name}' is truncated or corrupt ({str(error)[:200]}): copy or save it again."
        raise ValueError(text) from error


def _from_saved(
    arrays: Mapping[str, NDArray[Any]], settings: dict[str, Any]
) -> tuple[TraitModel, People, Any, dict[str, Any]]:
    implicit = bool(["explicit", "implicit"].index(settings["feedback"]))
    axes = CHOICE_AXES if implicit else CHOICE_AXES | RATING_AXES
    sizes = {"1": 1, "2": 2, "U": len(settings["users"]), "N": len(settings["items"])}
    check_axes(arrays, KNOWN_AXES | axes, sizes)
    if min(sizes[axis] for axis in "MNUdI") < 1:
        raise ValueError("it has no users, items or samples")
    parts: dict[str, dict[str, Any]] = {"choice": {}, "rating": {}, "user": {}}
    for name in axes:
        part, _, field = name.partition("_")
        parts[part][field] = arrays[name].astype(np.float32)
        if name.endswith(("precision", "use", "user_variance")) and not (arrays[name] > 0.0).all():
            raise ValueError(f"{name} is not positive")
    people, ratings = no_ratings(parts["user"]["choices"]), None
    if not implicit:
        people = People(**parts["user"])
        parts["rating"] |= {name: float(settings[name]) for name in ("center", "spread")}
        ratings = RatingModel(**parts["rating"])
    data, cells = arrays["known_data"], (arrays["known_indices"], arrays["known_indptr"])
    if len(data) and not (data.min() >= 1 and data.max() <= sizes["I"]):
        raise ValueError("a rating is not a level")
    known = sparse.csr_array((data, *cells), shape=(sizes["U"], sizes["N"]))
    known.check_format(full_check=True)
    flags = {name: bool(settings[name]) for name in ("binned", "half_up")}
    scale = RatingLevels(arrays["levels"].astype(np.float64), implicit=implicit, **flags)
    policy = read_policy(settings["policy"])
    return (
        TraitModel(ChoiceModel(**parts["choice"]), ratings, scale, policy),
        people,
        as_cells(known),
        settings,
    )


def read_policy(settings: Mapping[str, Any]) -> TraitPolicy:
    """Return a policy whose numbers are positive, and as many as in the default one."""
    default = asdict(TraitPolicy())
    for name, value in settings.items():
        if np.shape(value) != np.shape(default[name]) or not np.min(value) > 0:
            raise ValueError(f"{name} of its policy is {cite(value)}"[:80])
    numbers: dict[str, Any] = {k: tuple(v) if np.ndim(v) else v for k, v in settings.items()}
    return TraitPolicy(**numbers)
