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

Arrays = Mapping[str, NDArray[Any]]

CHOICE_AXES = {
    "choice_items": "MNd",
    "choice_item_draws": "MNd",
    "choice_precision": "Md",
    "choice_offsets": "M2",
    "user_choices": "MUd",
}
#: The axes of each array: M and K sweeps, N items, U users, d and e numbers, I levels.
RATING_AXES = {
    "rating_items": "KNe",
    "rating_item_draws": "KNe",
    "rating_precision": "Ke",
    "rating_variance": "K2",
    "rating_values": "I",
    "rating_use": "I",
    "user_points": "KUe",
    "user_variance": "1U",
    "user_use": "1UI",
}

SETTINGS: dict[str, Any] = {
    "half_up": bool, "users": list, "items": list, "policy": dict, "fitted": int, "center": float,
    "spread": float,
}  # fmt: skip


def to_saved(
    model: TraitModel, people: People, known: Any, settings: Mapping[str, Any]
) -> SavedEstimator:
    """Return a recommender as contents of a file; ids of users and items are in the settings."""
    for noun in ("users", "items"):
        bad = [i for i in settings[noun] if not isinstance(i, str | int | float)]
        if bad:
            raise ValueError(f"Ids of {noun} in files are text or numbers; got {cite(bad[0])}.")
    parts = {"choice": model.choices, "rating": model.ratings, "user": people}
    arrays: dict[str, NDArray[Any]] = {}
    for name in CHOICE_AXES if model.ratings is None else CHOICE_AXES | RATING_AXES:
        part, _, field = name.partition("_")
        arrays[name] = np.asarray(getattr(parts[part], field), dtype=np.float32)
    arrays |= {"known_indptr": known.indptr, "known_indices": known.indices}
    arrays |= {"levels": model.scale.values, "known_data": known.data.astype(np.int32)}
    if model.scale.edges is not None:
        arrays["edges"] = model.scale.edges
    more = {name: getattr(model.ratings, name, 1.0) for name in ("center", "spread")}
    return SavedEstimator(KIND, {**settings, **more, "policy": asdict(model.policy)}, arrays)


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
    arrays: Arrays, settings: dict[str, Any]
) -> tuple[TraitModel, People, Any, dict[str, Any]]:
    check_settings(settings)
    implicit = settings["feedback"] == "implicit"
    axes = CHOICE_AXES if implicit else CHOICE_AXES | RATING_AXES
    sizes = check_arrays(arrays, settings, axes)
    levels = arrays["levels"].astype(np.float64)
    scale = RatingLevels(levels, arrays.get("edges"), settings["half_up"], implicit)
    policy: dict[str, Any] = settings["policy"]
    policy = {k: tuple(v) if isinstance(v, list) else v for k, v in policy.items()}
    parts: dict[str, dict[str, Any]] = {"choice": {}, "rating": {}, "user": {}}
    for name in axes:
        part, _, field = name.partition("_")
        parts[part][field] = arrays[name]
    people, ratings = no_ratings(arrays["user_choices"]), None
    if not implicit:
        people = People(**parts["user"])
        ratings = RatingModel(
            center=settings["center"], spread=settings["spread"], **parts["rating"]
        )
    data, indices, starts = (arrays[f"known_{part}"] for part in ("data", "indices", "indptr"))
    if len(data) and not (data.min() >= 1 and data.max() <= len(levels)):
        raise ValueError("a rating is not a level")
    known = sparse.csr_array((data, indices, starts), shape=(sizes["U"], sizes["N"]))
    known.check_format(full_check=True)
    model = TraitModel(ChoiceModel(**parts["choice"]), ratings, scale, TraitPolicy(**policy))
    return model, people, as_cells(known), settings


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings of other types; what is missing is a KeyError."""
    bad = [name for name, kind in SETTINGS.items() if not isinstance(settings[name], kind)]
    if settings["feedback"] not in ("explicit", "implicit"):
        bad.append("feedback")
    if bad:
        raise TypeError(f"{bad[0]} is {cite(settings[bad[0]])}"[:80])
    default = asdict(TraitPolicy())
    for key, value in settings["policy"].items():
        if np.shape(value) != np.shape(default[key]) or not np.min(value) > 0:
            raise ValueError(f"{key} of its policy is {cite(value)}"[:80])


def check_arrays(
    arrays: Arrays, settings: Mapping[str, Any], axes: Mapping[str, str]
) -> dict[str, int]:
    """Check that arrays fit together; return the length of each axis."""
    sizes = {"1": 1, "2": 2, "U": len(settings["users"]), "N": len(settings["items"])}
    check_axes(arrays, axes, sizes)
    for name in axes:
        if arrays[name].dtype != np.float32:
            raise ValueError(f"{name} is not of single precision")
        if name.endswith(("precision", "use", "user_variance")) and not (arrays[name] > 0.0).all():
            raise ValueError(f"{name} is not positive")
    if min(sizes[axis] for axis in "MNUd") < 1 or len(arrays["levels"]) != sizes.get("I", 2):
        raise ValueError("it has no users, items or samples")
    return sizes
