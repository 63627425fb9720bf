"""Recommenders as contents of files, and back; files may come from strangers."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, get_type_hints

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rejoint.arrays import Single
from rejoint.estimators.recommender.ratings import RatingLevels
from rejoint.estimators.recommender.trait_model import (
    ChoiceModel,
    People,
    RatingModel,
    Tastes,
    TraitModel,
)
from rejoint.estimators.recommender.traits import TraitPolicy, as_cells
from rejoint.io.model_file import SavedEstimator, check_axes
from rejoint.text import cite

KIND = "recommender"

Arrays = Mapping[str, NDArray[Any]]

#: The axes of each array: M and K sweeps, N items, U users, d and e numbers, F features, I levels.
AXES = {
    "choice_items": "MNd",
    "choice_item_draws": "MNd",
    "choice_precision": "Md",
    "choice_offsets": "M2",
    "choice_user_weights": "MFd",
    "choice_users": "MUd",
    "user_features": "UF",
    "rating_values": "I",
    "rating_items": "KNe",
    "rating_item_draws": "KNe",
    "rating_precision": "Ke",
    "rating_variance": "K2",
    "rating_item_factors": "KN",
    "rating_use": "I",
    "rating_user_weights": "KFe",
    "taste_points": "KUe",
    "taste_variance": "U",
    "taste_use": "UI",
}


def to_saved(
    model: TraitModel, people: People, known: Any, features: Single, settings: Mapping[str, Any]
) -> SavedEstimator:
    """Return a recommender as contents of a file; ids of users and items are in the settings."""
    for noun in ("users", "items"):
        bad = [i for i in settings[noun] if not isinstance(i, str | int | float)]
        if bad:
            raise ValueError(f"Ids of {noun} in files are text or numbers; got {cite(bad[0])}.")
    arrays = {f"choice_{f.name}": getattr(model.choices, f.name) for f in fields(ChoiceModel)}
    arrays |= {"choice_users": people.choices, "user_features": features}
    policy = {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(model.policy).items()}
    more: dict[str, Any] = {"policy": policy, "rated": model.ratings is not None}
    if model.ratings is not None and people.tastes is not None:
        for name in (f.name for f in fields(RatingModel)):
            value = getattr(model.ratings, name)
            if name in ("center", "spread"):
                more[name] = value
            else:
                arrays[f"rating_{name}"] = value
        arrays |= {f"taste_{name}": part for name, part in people.tastes._asdict().items()}
    scale = model.scale
    arrays |= {"levels": scale.values, "known_indptr": known.indptr}
    arrays |= {"known_indices": known.indices, "known_data": known.data.astype(np.int32)}
    if scale.edges is not None:
        arrays["edges"] = scale.edges
    return SavedEstimator(KIND, {**settings, **more}, arrays)


def from_saved(
    saved: SavedEstimator | None, name: str
) -> tuple[TraitModel, People, Any, Single, dict[str, Any]]:
    """Return model, users, what they have rated, their features and settings of a file."""
    if saved is None or saved.kind != KIND:
        raise ValueError(
            f"'{name}' does not contain a recommender: make one with rejoint fit-ratings or "
            "JointRecommender.save."
        )
    try:
        return _from_saved(saved)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        text = f"'{name}' is truncated or corrupt ({str(error)[:200]}): copy or save it again."
        raise ValueError(text) from error


def _from_saved(saved: SavedEstimator) -> tuple[TraitModel, People, Any, Single, dict[str, Any]]:
    arrays, settings = saved.arrays, saved.settings
    check_settings(settings)
    sizes = check_arrays(arrays, settings)
    implicit = settings["feedback"] == "implicit"
    levels = arrays["levels"].astype(np.float64)
    scale = RatingLevels(levels, arrays.get("edges"), settings["half_up"], implicit)
    plain: dict[str, Any] = settings["policy"]
    chosen: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in plain.items()}
    policy = TraitPolicy(**chosen)
    choices = ChoiceModel(*(arrays[f"choice_{f.name}"] for f in fields(ChoiceModel)))
    ratings, tastes = None, None
    if settings["rated"]:
        parts: dict[str, Any] = {
            f.name: float(settings[f.name])
            if f.name in ("center", "spread")
            else arrays[f"rating_{f.name}"]
            for f in fields(RatingModel)
        }
        ratings = RatingModel(**parts)
        tastes = Tastes(*(arrays[f"taste_{part}"] for part in Tastes._fields))
    shape = (sizes["U"], sizes["N"])
    known = _read_known(arrays, shape, len(levels))
    people = People(arrays["choice_users"], tastes)
    model = TraitModel(choices, ratings, scale, policy)
    return model, people, known, arrays["user_features"], settings


def _read_known(arrays: Arrays, shape: tuple[int, int], levels: int) -> Any:
    data, indices, starts = (arrays[f"known_{part}"] for part in ("data", "indices", "indptr"))
    if len(data) and not (data.min() >= 1 and data.max() <= levels):
        raise ValueError("a rating is not a level")
    known = sparse.csr_array((data, indices, starts), shape=shape)
    known.check_format(full_check=True)
    return as_cells(known)


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings of other types; what is missing is a KeyError."""
    kinds: dict[str, Any] = {"half_up": bool, "rated": bool, "users": list, "items": list}
    for key, kind in {**kinds, "policy": dict, "fitted": int}.items():
        if not isinstance(settings[key], kind):
            raise TypeError(f"{key} is {cite(settings[key])}"[:80])
    if settings["feedback"] not in ("explicit", "implicit"):
        raise ValueError(f"feedback is {cite(settings['feedback'])}"[:80])
    if settings["rated"] != (settings["feedback"] == "explicit"):
        raise ValueError("it has ratings, or no ratings, against its feedback")
    hints = get_type_hints(TraitPolicy)
    for key, value in settings["policy"].items():
        pair = isinstance(value, list) and all(type(x) is int and x > 0 for x in value)
        number = type(value) in (int, float) and value > 0
        if key not in hints or not (pair if "tuple" in str(hints[key]) else number):
            raise ValueError(f"{key} of its policy is {cite(value)}"[:80])


def check_arrays(arrays: Arrays, settings: Mapping[str, Any]) -> dict[str, int]:
    """Check that arrays fit together; return the length of each axis."""
    sizes = {"2": 2, "U": len(settings["users"]), "N": len(settings["items"])}
    rated = ("rating", "taste")
    axes = {k: v for k, v in AXES.items() if settings["rated"] or not k.startswith(rated)}
    check_axes(arrays, axes, sizes)
    for name in axes:
        if arrays[name].dtype != np.float32:
            raise ValueError(f"{name} is not of single precision")
    least = {axis: sizes[axis] for axis in "MNUd" if sizes[axis] < 1}
    if least or len(arrays["levels"]) != sizes.get("I", 2):
        raise ValueError("it has no users, items or samples")
    for name in ("choice_precision", "rating_precision", "rating_item_factors", "taste_variance"):
        if name in arrays and not (arrays[name] > 0.0).all():
            raise ValueError(f"{name} is not positive")
    return sizes
