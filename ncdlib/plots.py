"""Colours and figures of the book."""

from __future__ import annotations

import os
from html import escape
from typing import TYPE_CHECKING

import matplotlib as mpl

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


def show_plotly(fig: go.Figure, alt: str) -> HTML:
    """Show an interactive figure in a chapter without a request to any other host.

    In the built book plotly's script is loaded from the site's own files; in a notebook it is part of the output.

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
