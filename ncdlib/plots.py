"""Colours and figures of the book."""

from __future__ import annotations

import base64
import io
import json
import os
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
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
from scipy.stats import studentized_range
from sklearn.metrics.cluster import contingency_matrix
from sklearn.metrics.pairwise import euclidean_distances

from ncdlib.methods.registry import METHODS
from ncdlib.problem import NCDProblem

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go
    from IPython.display import HTML

# One colour, one meaning. Methods have greens and purples; those that grow out of each other share a hue.
PALETTE = {method.label: method.color for method in METHODS.values()} | {
    "TabularNCD, mended": "#4a1844",
    "SC PBN default": "#d56ea9",
    "SC PBN full opt": "#cc337c",
}

# Known classes: muted blues and greys. Novel classes: warm. Taken in order, and again from the start.
KNOWN_COLORS = ("#3d5a80", "#8d99ae", "#5c7c9c", "#b0bccb", "#6b7a8f", "#98b4d4", "#4a5568", "#cbd5e0")
NOVEL_COLORS = ("#d1495b", "#edae49", "#e76f51", "#9b2226", "#f4a261", "#ca6702", "#e8998d", "#7f4f24")
# Known classes that play novel ones for a while.
HIDDEN_COLOR = "#0fa3b1"


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
            "figure.facecolor": "white",  # the book's dark theme turns lightness round and keeps hues: see book.css
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


def plot_discovered(images: NDArray, clusters: ArrayLike, classes: ArrayLike, *, n_shown: int = 28) -> Figure:
    """Show the first images of each cluster, with a frame around those not of the class that most of it has.

    Parameters
    ----------
    images : array of shape (n_rows, height, width)
    clusters, classes : array of shape (n_rows,)
        The cluster of each row, and its true class, which is for the frames only.
    n_shown : int, default=28
        Images of each cluster.

    Examples
    --------
    >>> from ncdlib import load_dataset
    >>> from ncdlib.plots import plot_discovered
    >>> problem = load_dataset("digits")
    >>> figure = plot_discovered(problem.images, problem.y_true % 3, problem.y_true)
    """
    clusters, classes = np.asarray(clusters), np.asarray(classes)
    groups, strangers = {}, {}
    for cluster in np.unique(clusters):
        members = np.flatnonzero(clusters == cluster)
        names, counts = np.unique(classes[members], return_counts=True)
        groups[f"cluster {cluster}"] = images[members[:n_shown]]
        strangers[f"cluster {cluster}"] = classes[members[:n_shown]] != names[counts.argmax()]
    return plot_images(groups, outlined=strangers)


def plot_matching(y_true: ArrayLike, y_pred: ArrayLike, class_names: Mapping[int, str] | None = None) -> Figure:
    """Show how many rows of each class are in each cluster, with the cells of the best matching framed.

    Clusters stand in the order of the classes they are matched to, unmatched clusters last. The framed
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


def show_plotly(fig: go.Figure, alt: str, hover_images: NDArray | None = None) -> HTML:
    """Show an interactive figure in a chapter without a request to any other host.

    In the built book the site's own script draws it when a reader comes near; in a notebook the output holds plotly's.

    Parameters
    ----------
    fig : plotly.graph_objects.Figure
    alt : str
        What the figure shows, for readers who cannot see it.
    hover_images : array of shape (n_images, height, width), optional
        Pictures to show beside the pointer: that of a point is the one whose number is the point's ``customdata``.

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
    body = fig.to_html(
        full_html=False,
        auto_play=False,
        include_plotlyjs=not in_book,
        config={"displayModeBar": False, "responsive": True},  # the bar would cover legends
        post_script=None if hover_images is None else _hover_script(hover_images),
    )
    return HTML(f'<div role="figure" aria-label="{escape(alt)}" style="position: relative">{body}</div>')


def _hover_script(images: NDArray, zoom: int = 6) -> str:
    """Return JavaScript that shows a point's picture: a small window on one PNG with all pictures."""
    n_images, height, width = images.shape
    columns = int(np.ceil(np.sqrt(n_images)))
    rows = -(-n_images // columns)
    tiles = np.zeros((rows * columns, height, width))
    tiles[:n_images] = images / images.max()
    sheet = tiles.reshape(rows, columns, height, width).swapaxes(1, 2).reshape(rows * height, columns * width)
    png = io.BytesIO()
    plt.imsave(png, sheet, cmap="gray_r", format="png", vmin=0, vmax=1)
    address = "data:image/png;base64," + base64.b64encode(png.getvalue()).decode()
    shown = {"address": address, "columns": columns, "rows": rows, "width": zoom * width, "height": zoom * height}
    script = files("ncdlib").joinpath("hover_picture.js").read_text(encoding="utf-8")
    return script.replace("SHEET", json.dumps(shown))


def plot_rows(
    points: ArrayLike, y: ArrayLike, problem: NCDProblem, *, ax: Axes | None = None, avoid: ArrayLike | None = None
) -> Axes:
    """Draw rows as points of a plane: known classes in blues and greys, novel ones in warm colours, each named.

    A class's name stands beside the thickest of its points, above them where there is room.

    Parameters
    ----------
    points : array of shape (n_rows, 2)
    y : array of shape (n_rows,)
        The true class of each row.
    problem : NCDProblem
        Says which classes are known and what they are called.
    ax : matplotlib Axes, optional
        By default those of a new figure.
    avoid : array of shape (n_places, 2), optional
        Where no name should stand, because something else will be drawn there.

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
    room = np.ptp(points, axis=0) * 0.08
    taken = [] if avoid is None else list(np.asarray(avoid))
    for classes, colors in ((problem.known_classes, KNOWN_COLORS), (problem.novel_classes, NOVEL_COLORS)):
        for i, c in enumerate(classes):
            mine = points[y == c]
            if len(mine) == 0:
                continue
            ax.scatter(*mine.T, s=8, color=colors[i % len(colors)], alpha=0.7, lw=0)
            place = _free_place(mine, np.array(taken).reshape(-1, 2), room)
            taken.append(place)
            name = ax.text(*place, problem.class_names[c], ha="center", va="center", weight="bold", size="large")
            name.set_path_effects(outline)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return ax


def _free_place(points: NDArray, taken: NDArray, room: NDArray) -> NDArray:
    """Choose a place for a name beside the point with the most neighbours (a mean may fall between two groups)."""
    distances = euclidean_distances(points)
    near = distances <= np.median(distances) / 2
    group = points[near[near.sum(axis=1).argmax()]]
    middle, half = np.median(group, axis=0), np.ptp(group, axis=0) / 2
    directions = np.array([[0, 1], [0, -1], [1, 0], [-1, 0], [1, 1], [-1, 1], [1, -1], [-1, -1]])
    candidates = middle + directions * half
    if len(taken) == 0:
        return candidates[0]
    nearest = euclidean_distances(candidates / room, taken / room).min(axis=1)
    return candidates[(nearest >= 1).argmax() if (nearest >= 1).any() else nearest.argmax()]


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
            "sliders": [{"steps": steps, "len": 0.95, "y": -0.12, **controls, "currentvalue": {"prefix": ""}}],
            "updatemenus": [
                {"type": "buttons", "direction": "left", "buttons": play, "y": -0.02, "yanchor": "top", **controls}
            ],
            **(layout or {}),
        },
    )


def plot_critical_difference(errors: pd.DataFrame, *, alpha: float = 0.05) -> Figure:
    """Draw the mean ranks of several competitors on several problems, with the Nemenyi test (Demsar, 2006).

    Competitors that the test does not tell apart at the level `alpha` are joined by a bar. The critical difference, the
    distance of mean ranks from which on it does, is drawn above the axis.

    Parameters
    ----------
    errors : DataFrame
        Problems down, competitors across; low is good. Ties share their ranks.
    alpha : float, default=0.05
        Level of the test.

    Examples
    --------
    >>> import pandas as pd
    >>> from ncdlib.plots import plot_critical_difference
    >>> errors = pd.DataFrame({"a": [0, 1, 0, 2], "b": [1, 2, 1, 3], "c": [5, 4, 6, 9]})
    >>> figure = plot_critical_difference(errors)
    >>> sorted(text.get_text() for text in figure.axes[0].texts)[-1]
    'critical difference 1.66'
    """
    import scikit_posthocs as posthocs

    n_problems, n_competitors = errors.shape
    ranks = errors.rank(axis=1).mean()
    p_values = posthocs.posthoc_nemenyi_friedman(errors)
    # a studentised range with infinitely many degrees of freedom
    quantile = studentized_range.ppf(1 - alpha, n_competitors, np.inf) / np.sqrt(2)
    difference = quantile * np.sqrt(n_competitors * (n_competitors + 1) / (6 * n_problems))
    fig, ax = plt.subplots(figsize=(8, 1.3 + 0.25 * n_competitors))
    posthocs.critical_difference_diagram(
        ranks,
        p_values,
        ax=ax,
        alpha=alpha,
        label_fmt_left="{label} ({rank:.1f}) ",
        label_fmt_right=" ({rank:.1f}) {label}",
        color_palette=dict.fromkeys(errors, "black"),
        crossbar_props={"color": "grey", "marker": None, "linewidth": 3},
    )
    top = ax.get_ylim()[1] + 0.6
    ax.plot([1, 1 + difference], [top, top], color="black", lw=1.5, marker="|", clip_on=False)
    ax.text(1 + difference + 0.1, top, f"critical difference {difference:.2f}", va="center")
    ax.set(xlim=(1, max(n_competitors, 1 + difference)))
    return fig


def plot_hidden_against_novel(
    hidden: ArrayLike, novel: ArrayLike, *, ax: Axes | None = None, color: str | None = None, title: str = ""
) -> Axes:
    """Scatter the score of hyperparameter sets on hidden classes against that on novel ones, with their correlation.

    Parameters
    ----------
    hidden, novel : array of shape (n_trials,)
        Scores of the same hyperparameter sets; a set with a NaN is left out.
    ax : matplotlib Axes, optional
        Where to draw; the current axes by default.
    color : str, optional
        Colour of the points; PBN's by default.
    title : str
        Text before the correlation.

    Examples
    --------
    >>> from ncdlib.plots import plot_hidden_against_novel
    >>> ax = plot_hidden_against_novel([0.1, 0.5, 0.9], [0.2, 0.4, 0.6], title="PBN")
    >>> ax.get_title(loc="left")
    'PBN: r = 1.00 (3 trials)'
    """
    ax = plt.gca() if ax is None else ax
    hidden, novel = np.asarray(hidden, dtype=float), np.asarray(novel, dtype=float)
    there = np.isfinite(hidden) & np.isfinite(novel)
    correlation = np.corrcoef(hidden[there], novel[there])[0, 1]
    best = np.flatnonzero(there)[hidden[there].argmax()]
    ax.plot([0, 1], [0, 1], color="grey", lw=1, ls=":")
    ax.plot(hidden, novel, "o", color=color or PALETTE["PBN"], alpha=0.7)
    ax.plot(hidden[best], novel[best], "o", mfc="none", mec="black", ms=12)
    ax.annotate("chosen", (hidden[best], novel[best]), xytext=(0, 9), textcoords="offset points", ha="center")
    ax.set(xlabel="ARI on hidden classes", ylabel="ARI on novel classes", aspect="equal")
    ax.set(xlim=(-0.05, 1.05), ylim=(-0.05, 1.05))
    ax.set_title(f"{title}{': ' if title else ''}r = {correlation:.2f} ({there.sum()} trials)", loc="left")
    return ax
