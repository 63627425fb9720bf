"""
Recommending movies, and explaining why
=======================================

Ratings of movies, most of them missing: who will like what? The joint of all movies answers for
users of the data and for new ones alike, says which of their ratings speak for an answer, and finds
movies that suit an evening together. Both what people choose to see and how they rate it count.

With MovieLens at hand (a folder named by ``REJOINT_DATA``) its small release of 2018 is used;
without it, ratings that are made up: 600 people, two dozen movies, and three tastes mixed in
everybody.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import rejoint as rj


def made_up():
    """Ratings of people whose tastes for action, romance and animation vary on their own."""
    tastes = {
        "Heat": "a", "Speed": "a", "Die Hard": "a", "Ronin": "a", "The Rock": "a", "Face/Off": "a",
        "Ghost": "r", "Emma": "r", "Pretty Woman": "r", "Notting Hill": "r", "Titanic": "ra",
        "Shrek": "n", "Up": "nr", "Toy Story": "n", "Finding Nemo": "n", "The Incredibles": "na",
        "Aladdin": "nr", "Mulan": "na", "Casablanca": "r", "The Matrix": "a", "WALL-E": "n",
        "True Lies": "a", "Clueless": "r", "Antz": "n",
    }  # fmt: skip
    rng = np.random.default_rng(0)
    people = rng.normal(size=(600, 3))
    loads = np.array([["a" in t, "r" in t, "n" in t] for t in tastes.values()], dtype=float)
    fame = rng.normal(3.6, 0.4, size=len(tastes))
    liking = fame + 0.9 * people @ (loads / loads.sum(axis=1, keepdims=True)).T
    stars = np.clip(np.round(2 * (liking + rng.normal(0, 0.6, liking.shape))) / 2, 0.5, 5)
    person, movie = np.nonzero(rng.random(stars.shape) < 0.4)
    titles = np.array(list(tastes))[movie]
    return pd.DataFrame({"user": person, "item": titles, "rating": stars[person, movie]})


def movielens():
    """Ratings of the 150 most rated movies, by title."""
    ratings = rj.datasets.movielens("small2018_ratings", backend="pandas")
    titles = rj.datasets.movielens("small2018_movies", backend="pandas").set_index("movieId")
    often = ratings["movieId"].value_counts().index[:150]
    ratings = ratings[ratings["movieId"].isin(often)]
    names = ratings["movieId"].map(titles["title"])
    return pd.DataFrame({"user": ratings["userId"], "item": names, "rating": ratings["rating"]})


ratings = movielens() if os.environ.get("REJOINT_DATA") else made_up()
ratings.head()

# %%
# A fifth of the ratings is held out. Half stars are levels of their own; nothing is tuned.
held = np.random.default_rng(1).random(len(ratings)) < 0.2
model = rj.JointRecommender(random_state=0).fit(ratings[~held])
by_movie = ratings[~held].groupby("item")["rating"].mean()
plain = ratings[held]["item"].map(by_movie).fillna(ratings["rating"].mean())
error = np.sqrt(np.mean((plain - ratings[held]["rating"]) ** 2))
print(f"root mean square error {-model.score(ratings[held]):.3f}; of movie averages {error:.3f}")

# %%
# Somebody new, with three ratings: a few milliseconds, no refit. Recommendations are what the
# newcomer will probably choose and like; beside each are the liked movies that speak for it.
newcomer = {"Die Hard": 5.0, "Speed": 4.5, "Pretty Woman": 2.0}
newcomer = {
    title: stars
    for name, stars in newcomer.items()
    for title in model.items_
    if title.partition(" (")[0] == name  # MovieLens has the year behind the title
}
for found in model.recommend(newcomer, k=5):
    because = f", because of {', '.join(found.because)}" if found.because else ""
    print(f"{found.item:<30} {found.expected:.2f} stars, liked with {found.like:.0%}{because}")

# %%
# Why the first one? Each line is how far the expectation would change without that rating.
best = model.recommend(newcomer, k=1)[0].item
print(model.explain(newcomer, best))

# %%
# The whole distribution says more than its mean: a film that divides opinion is not one that
# everybody finds middling. A user's own joint answers any other question.
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for who, given in (("anybody", None), ("the newcomer", newcomer)):
    ax.plot(model.levels_, model.joint(given).marginal(best), "o-", label=who)
ax.set(xlabel="stars", ylabel="probability", title=best)
ax.legend()

# %%
# Three movies for one evening, for somebody who has only said what they do not like: the set that
# is most probably liked *all together* need not be that of the three best ones, which may be for
# different tastes.
picky = {title: stars for title, stars in newcomer.items() if stars < 3}
evening = model.bundle(picky, 3, by="like")
singles = [found.item for found in model.recommend(picky, 3, by="like")]
apart = model.bundle(picky, 3, by="like", among=singles)
print(f"together: {', '.join(evening.items)} ({evening.probability:.0%} to be liked all together)")
print(f"one by one: {', '.join(singles)} ({apart.probability:.0%})")
