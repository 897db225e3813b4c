"""Draw a discovery: the score of each number of classes, a map of the rows, and what sets each class apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.decomposition import PCA

from ncdlib._io.checks import shorten
from ncdlib.own_data.rows import OUTLIER
from ncdlib.problem import UNLABELED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ncdlib.own_data.result import Discovery

MAX_ROWS_DRAWN = 3_000


def draw(found: Discovery) -> Figure:
    """Draw the score of each number of classes, a map of the rows, and what sets each class apart."""
    import matplotlib.pyplot as plt

    n_panels = 2 if found.estimate is None else 3
    figure, axes = plt.subplots(1, n_panels, figsize=(5 * n_panels, 4.5), layout="constrained")
    if found.estimate is not None:
        found.estimate.plot(axes[0])
        axes[0].set_title("How many classes?")
    _draw_map(found, axes[-2])
    _draw_differences(found, axes[-1])
    return figure


def _draw_map(found: Discovery, ax: Axes) -> None:
    from ncdlib.plots import KNOWN_COLORS, NOVEL_COLORS

    rows = np.flatnonzero(found.labels != OUTLIER)  # which would leave the others a point
    if len(rows) > MAX_ROWS_DRAWN:
        rows = np.random.default_rng(0).choice(rows, MAX_ROWS_DRAWN, replace=False)
    learned = hasattr(found.model, "transform")
    space = found.model.transform(found.numbers[rows]) if learned else found.numbers[rows]
    flat = np.zeros((len(rows), 2))
    n_components = min(2, *space.shape)
    flat[:, :n_components] = PCA(n_components, random_state=0).fit_transform(space)
    labels = found.labels[rows]
    known = labels == UNLABELED
    ax.scatter(*flat[known].T, s=4, color=KNOWN_COLORS[1], alpha=0.5, label="known classes")
    for profile in found.profiles:
        points = flat[labels == profile.cluster]
        color = NOVEL_COLORS[profile.cluster % len(NOVEL_COLORS)]
        ax.scatter(*points.T, s=6, color=color, alpha=0.7)
        if len(points):
            ax.annotate(profile.name, np.median(points, axis=0), weight="bold", ha="center")
    where = "in the learned space" if learned else "in the features"
    ax.set(title=f"Rows {where}", xlabel="two principal components", xticks=[], yticks=[])
    ax.legend(loc="best", markerscale=3, frameon=False)


def _draw_differences(found: Discovery, ax: Axes) -> None:
    strongest = list(dict.fromkeys(d.feature for p in found.profiles for d in p.differences[:3]))[:15]
    by_class = [{d.feature: d.standardized for d in p.differences} for p in found.profiles]
    values = np.array([[line.get(name, 0.0) for line in by_class] for name in strongest])
    limit = max(1.0, float(np.abs(values).max()))
    image = ax.imshow(values, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto")
    ax.set_xticks(range(len(found.profiles)), [p.name for p in found.profiles], rotation=45, ha="right")
    ax.set_yticks(range(len(strongest)), [_no_math(shorten(name)) for name in strongest])
    ax.set_title("What sets each class apart")
    ax.figure.colorbar(image, ax=ax, label="standard deviations from all other rows")


def _no_math(text: str) -> str:
    """Return a name as matplotlib should show it: a dollar sign is a dollar sign."""
    return text.replace("$", r"\$")
