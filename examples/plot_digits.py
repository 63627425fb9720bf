"""
Digits completed from their upper half
======================================

An image is a record: 64 pixels and the digit that it shows are 65 discrete variables. Their joint,
learnt from images, answers questions in any direction: which digit is it, what does the lower half
look like given the upper one, what does a seven look like?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import rejoint as rj

X, y = load_digits(return_X_y=True, as_frame=True)
X_train, y_train, X_test, y_test = X[:1300], y[:1300], X[1300:], y[1300:]

# %%
# Models of all 65 variables. The 17 shades of grey are cut into five. ``pmf_`` is the joint of
# pixels and digit, with 15 hidden classes for each digit, since pixels are asked for, too.
shades = {name: [0, 1, 5, 9, 13, 16] for name in X}
model = rj.JointClassifier(rank=150, bins=shades, random_state=0)
model.fit(X_train, y_train)
print(model.pmf_)

# %%
# Half of the pixels are missing, which a joint leaves out.
upper = [name for name in X if int(name.split("_")[1]) < 4]
half = X_test[upper].reindex(columns=X.columns)
print(f"digit from the whole image: {model.score(X_test, y_test):.1%} right")
print(f"digit from its upper half:  {model.score(half, y_test):.1%} right")

# %%
# The lower half, as it is to be expected given the upper one: the posterior of the hidden classes
# of each image, times what each class expects of each pixel.
records = rj.Records.of(half, domain=model.pmf_.domain.project(list(X.columns)))
pixels = model.pmf_.project(list(X.columns))
classes = pixels.classes(records)
expected = np.column_stack(
    [classes @ (v.numeric @ a) for v, a in zip(pixels.domain, pixels.factors, strict=True)]
)
completed = np.where(half.notna(), X_test, expected)

shown = [int(np.flatnonzero(y_test == digit)[3]) for digit in range(10)]
fig, axes = plt.subplots(3, 10, figsize=(9, 3), layout="constrained")
for column, row in enumerate(shown):
    images = (X_test.iloc[row], half.iloc[row].fillna(0), completed[row])
    for ax, image in zip(axes[:, column], images, strict=True):
        ax.imshow(np.reshape(image, (8, 8)), cmap="gray_r", vmin=0, vmax=16)
        ax.set_xticks([])
        ax.set_yticks([])
for ax, what in zip(axes[:, 0], ("image", "seen", "completed"), strict=True):
    ax.set_ylabel(what)

# %%
# How far off is a pixel of the lower half, and how far if the mean image is taken instead?
lower = [name for name in X if name not in upper]
mean = X_train[lower].mean()
off = (completed[:, len(upper) :] - X_test[lower]) ** 2
print(f"mean image: {np.sqrt(((X_test[lower] - mean) ** 2).mean(axis=None)):.2f} shades of 16")
print(f"completed:  {np.sqrt(off.mean(axis=None)):.2f}")

# %%
# And the other way round: what digits look like, and what is sure to be dark in all of them.
fig, axes = plt.subplots(1, 10, figsize=(9, 1.1), layout="constrained")
for digit, ax in enumerate(axes):
    given = {model.target_names_[0]: digit}
    image = [model.pmf_.expect(name, given=given) for name in X]
    ax.imshow(np.reshape(image, (8, 8)), cmap="gray_r", vmin=0, vmax=16)
    ax.set_axis_off()
