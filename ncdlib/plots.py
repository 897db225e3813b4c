"""Colours and figures of the book."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import contingency_matrix
from sklearn.metrics.pairwise import euclidean_distances

from ncdlib.problem import NCDProblem

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from IPython.display import HTML

# One colour a method in every figure. Methods that grow out of each other share a hue.
PALETTE = {
    "k-means": "#9aa5b1",
    "NCD k-means": "#4c5c6c",
    "SC": "#8fc1b5",
    "NCD SC": "#1d7a68",
    "Baseline": "#c9a227",
    "TabularNCD": "#7a5195",
    "PBN": "#d1495b",
}

# Known classes: muted blues and greys. Novel classes: warm. Taken in order, and again from the start.
KNOWN_COLORS = ("#3d5a80", "#8d99ae", "#5c7c9c", "#b0bccb", "#6b7a8f", "#98b4d4", "#4a5568", "#cbd5e0")
NOVEL_COLORS = ("#d1495b", "#edae49", "#e76f51", "#9b2226", "#f4a261", "#ca6702", "#bb3e83", "#7f4f24")


def set_style() -> None:
    """Give matplotlib figures the look of the book.

    Examples
    --------
    >>> import matplotlib as mpl
    >>> from ncdlib.plots import set_style
    >>> set_style()
    >>> mpl.rcParams["figure.facecolor"]
    'white'
    """
    mpl.rcParams.update(
        {
            "font.size": 11,
            "figure.dpi": 160,
            "figure.figsize": (8, 4),
            "figure.facecolor": "white",  # opaque: the same figure serves the dark theme
            "figure.constrained_layout.use": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": "medium",
            "axes.titlelocation": "left",
            "axes.grid": False,
            "legend.frameon": False,
        }
    )


def plot_images(
    groups: Mapping[str, NDArray],
    colors: Mapping[str, str] | None = None,
    *,
    n_columns: int = 14,
    outlined: Mapping[str, ArrayLike] | None = None,
) -> Figure:
    """Show groups of small images, each with its name and colour at the left.

    Parameters
    ----------
    groups : dict of str to array of shape (n_images, height, width)
        The images of each group; they run on in further lines where a group has more than `n_columns`.
    colors : dict of str to str, optional
        The colour of each group's bar; by default those of novel classes.
    n_columns : int, default=14
        Images in a line.
    outlined : dict of str to array of bool, optional
        Which images of a group get a frame.

    Examples
    --------
    >>> from ncdlib import load_dataset
    >>> from ncdlib.plots import plot_images
    >>> problem = load_dataset("digits")
    >>> images = problem.images[problem.y_true == 7]
    >>> figure = plot_images({"seven": images[:20]}, n_columns=10)
    """
    height, width = np.add(next(iter(groups.values())).shape[1:], 1)  # one white pixel between images
    n_lines = sum(-(-len(images) // n_columns) for images in groups.values())
    mosaic = np.zeros((n_lines * height, n_columns * width))
    fig, ax = plt.subplots(figsize=(8, 8 * n_lines * height / (n_columns * width)))
    line = 0
    for i, (name, images) in enumerate(groups.items()):
        color = (colors or {}).get(name, NOVEL_COLORS[i % len(NOVEL_COLORS)])
        n_group_lines = -(-len(images) // n_columns)
        ax.text(-1.5, (line + n_group_lines / 2) * height, name, ha="right", va="center")
        ax.add_patch(Rectangle((-1, line * height), 0.6, n_group_lines * height - 1, color=color, clip_on=False))
        frames = (outlined or {}).get(name, np.zeros(len(images), dtype=bool))
        for j, (image, framed) in enumerate(zip(images, frames, strict=True)):
            top, left = (line + j // n_columns) * height, (j % n_columns) * width
            mosaic[top : top + height - 1, left : left + width - 1] = image / image.max()
            if framed:
                ax.add_patch(
                    Rectangle((left - 0.5, top - 0.5), width - 1, height - 1, fill=False, color="black", lw=1.5)
                )
        line += n_group_lines
    ax.imshow(mosaic, cmap="gray_r", extent=(-0.5, mosaic.shape[1] - 0.5, mosaic.shape[0] - 0.5, -0.5))
    ax.set_axis_off()
    return fig


def plot_matching(y_true: ArrayLike, y_pred: ArrayLike, class_names: Mapping[int, str] | None = None) -> Figure:
    """Show how many rows of each class are in each cluster, with the cells of the best matching framed.

    Clusters stand in the order of the classes they are matched to, those without a class last. The framed
    counts, divided by all, are the clustering accuracy.

    Examples
    --------
    >>> from ncdlib.plots import plot_matching
    >>> figure = plot_matching([0, 0, 1, 1], [5, 5, 3, 5], {0: "zero", 1: "one"})
    >>> [label.get_text() for label in figure.axes[0].get_xticklabels()]
    ['5', '3']
    """
    counts = contingency_matrix(y_true, y_pred)
    classes, clusters = np.unique(y_true), np.unique(y_pred)
    rows, columns = linear_sum_assignment(counts, maximize=True)
    order = [*columns, *np.setdiff1d(np.arange(len(clusters)), columns)]
    fig, ax = plt.subplots(figsize=(1.5 + 0.6 * len(clusters), 1 + 0.5 * len(classes)))
    ax.imshow(counts[:, order], cmap="Oranges", aspect="auto", vmax=2 * counts.max())
    for row, column in np.ndindex(counts.shape):
        ax.text(column, row, counts[row, order[column]], ha="center", va="center")
    for position, row in enumerate(rows):
        ax.add_patch(Rectangle((position - 0.47, row - 0.45), 0.94, 0.9, fill=False, color="black", lw=2))
    ax.set_yticks(range(len(classes)), [(class_names or {}).get(c, str(c)) for c in classes])
    ax.set_xticks(range(len(clusters)), [str(clusters[i]) for i in order])
    ax.set(xlabel="cluster", ylabel="true class")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return fig


def show_plotly(fig: go.Figure, alt: str) -> HTML:
    """Show an interactive figure in a chapter without a request to any other host.

    In the built book plotly's script is loaded from the site's own files; in a notebook the output holds it.

    Parameters
    ----------
    fig : plotly.graph_objects.Figure
    alt : str
        What the figure shows, for readers who cannot see it.

    Examples
    --------
    >>> import plotly.graph_objects as go
    >>> from ncdlib.plots import show_plotly
    >>> html = show_plotly(go.Figure(go.Scatter(x=[1, 2], y=[3, 4])), alt="A rising line.")
    >>> 'aria-label="A rising line."' in html.data
    True
    """
    from IPython.display import HTML

    in_book = "NCDLIB_BOOK" in os.environ
    body = fig.to_html(full_html=False, include_plotlyjs=not in_book, config={"displaylogo": False, "responsive": True})
    return HTML(f'<div role="figure" aria-label="{escape(alt)}">{body}</div>')


def plot_rows(points: ArrayLike, y: ArrayLike, problem: NCDProblem, *, ax: Axes | None = None) -> Axes:
    """Draw rows as points of a plane: known classes in blues and greys, novel ones in warm colours, each named.

    A class's name stands where most of its points are, inside its largest group.

    Parameters
    ----------
    points : array of shape (n_rows, 2)
    y : array of shape (n_rows,)
        The true class of each row.
    problem : NCDProblem
        Says which classes are known and what they are called.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Examples
    --------
    >>> from ncdlib import make_ncd_blobs
    >>> from ncdlib.plots import plot_rows
    >>> problem = make_ncd_blobs(n_features=2)
    >>> ax = plot_rows(problem.X, problem.y_true, problem)
    >>> [text.get_text() for text in ax.texts]
    ['0', '1', '2', '3', '4', '5', '6']
    """
    points, y = np.asarray(points), np.asarray(y)
    ax = ax or plt.subplots()[1]
    outline = [patheffects.withStroke(linewidth=3, foreground="white")]
    for classes, colors in ((problem.known_classes, KNOWN_COLORS), (problem.novel_classes, NOVEL_COLORS)):
        for i, c in enumerate(classes):
            mine = points[y == c]
            if len(mine) == 0:
                continue
            ax.scatter(*mine.T, s=8, color=colors[i % len(colors)], alpha=0.7, lw=0)
            # The point with the most neighbours near: a mean may fall between two groups.
            distances = euclidean_distances(mine)
            center = mine[(distances < np.median(distances) / 2).sum(axis=1).argmax()]
            name = ax.text(*center, problem.class_names[c], ha="center", va="center", weight="bold", size="large")
            name.set_path_effects(outline)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return ax


def add_slider(frames: Mapping[str, Sequence[go.Scatter]], layout: Mapping | None = None) -> go.Figure:
    """Make an interactive figure of several pictures that a slider and a play button go through.

    Parameters
    ----------
    frames : dict of str to list of plotly traces
        What the slider says at each position, and what is drawn there: as many traces in every frame.
    layout : dict, optional
        Further properties of the figure, as `plotly.graph_objects.Layout` takes them.

    Examples
    --------
    >>> import plotly.graph_objects as go
    >>> from ncdlib.plots import add_slider
    >>> fig = add_slider({"one": [go.Scatter(x=[1], y=[1])], "two": [go.Scatter(x=[2], y=[2])]})
    >>> [step.label for step in fig.layout.sliders[0].steps]
    ['one', 'two']
    """
    import plotly.graph_objects as go

    at_once = {"mode": "immediate", "frame": {"duration": 0, "redraw": True}, "transition": {"duration": 0}}
    slowly = {"fromcurrent": True, "frame": {"duration": 700, "redraw": True}, "transition": {"duration": 0}}
    steps = [{"label": name, "method": "animate", "args": [[name], at_once]} for name in frames]
    play = [
        {"label": "Play", "method": "animate", "args": [None, slowly]},
        {"label": "Pause", "method": "animate", "args": [[None], at_once]},
    ]
    controls = {"x": 0, "xanchor": "left", "pad": {"t": 10}}
    return go.Figure(
        data=list(next(iter(frames.values()))),
        frames=[go.Frame(name=name, data=list(traces)) for name, traces in frames.items()],
        layout={
            "template": "plotly_white",
            "margin": {"l": 10, "r": 10, "t": 30, "b": 10},
            "sliders": [{"steps": steps, "len": 1, "y": -0.12, **controls, "currentvalue": {"prefix": ""}}],
            "updatemenus": [
                {"type": "buttons", "direction": "left", "buttons": play, "y": -0.02, "yanchor": "top", **controls}
            ],
            **(layout or {}),
        },
    )
