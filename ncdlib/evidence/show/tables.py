"""Tables and figures of the evidence on a page: ours beside the paper's, and a cell measured again."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ncdlib.datasets import DATASETS, is_here
from ncdlib.evidence.compare import PARAMS_FROM, compare_with_paper, show_table, within_tolerance
from ncdlib.evidence.paper import PAPER_NAME_OF
from ncdlib.plots import PALETTE

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

COLORS = PALETTE | {"KM PBN": PALETTE["PBN"]}


def render_table(
    table: str, metric: str = "ACC", methods: Iterable[str] | None = None, folder: str | os.PathLike | None = None
) -> Styler:
    """Show one table of the paper on a page: ours under each figure of the paper, with either set of hyperparameters.

    A figure further from the paper's than max(2 paper std, 3 points) is marked with "≠"; the best of a row is bold; a
    data set of which we have a variant only is marked with "*".

    Examples
    --------
    >>> from ncdlib.evidence.show import render_table
    >>> list(render_table("clust").columns)
    ['k-means', 'NCD k-means', 'SC', 'NCD SC']
    """
    cells = compare_with_paper(folder)
    cells = cells[(cells["table"] == table) & (cells["metric"] == metric)]
    shown = show_table(table, metric, methods, cells=cells)
    for params_from in PARAMS_FROM:
        within = within_tolerance(cells, params_from)
        for cell in cells.loc[within.index[~within]].itertuples():
            row = [label for label in shown.index if label.removesuffix("*") == PAPER_NAME_OF[cell.dataset]]
            column = (cell.method, params_from)
            if column in shown.columns:
                shown.loc[row, column] = "≠ " + shown.loc[row, column]
    shown = shown.stack(level=1, future_stack=True)  # noqa: PD013 (keeps the order)
    return narrow(shown.style.apply(_bold_best, axis=1))


def narrow(table: Styler) -> Styler:
    """Make a table small enough for a page: five columns of a mean and its spread beside each other.

    Examples
    --------
    >>> import pandas as pd
    >>> from ncdlib.evidence.show import narrow
    >>> "font-size" in narrow(pd.DataFrame({"ACC": ["81.7 ± 0.1"]}).style).to_html()
    True
    """
    return table.set_table_attributes('class="dataframe"').set_table_styles(
        [
            {"selector": "td, th", "props": "padding: 0.2rem 0.35rem; text-align: right; font-size: 0.8rem"},
            {"selector": "td", "props": "white-space: nowrap"},
        ]
    )


def _bold_best(row: pd.Series) -> list[str]:
    values = pd.to_numeric(row.str.removeprefix("≠ ").str.split(" ").str[0], errors="coerce")
    compared = values.notna().sum() > 1  # the only one is not the best of anything
    return ["font-weight: 700" if compared and v == values.max() else "" for v in values]


def plot_against_paper(cells: pd.DataFrame) -> Figure:
    """Plot our figures over the paper's, one dot per cell, with the spread of the runs on both sides.

    Parameters
    ----------
    cells : DataFrame
        Rows of `compare_with_paper`.

    Examples
    --------
    >>> from ncdlib.evidence import compare_with_paper
    >>> from ncdlib.evidence.show import plot_against_paper
    >>> cells = compare_with_paper()
    >>> figure = plot_against_paper(cells[cells["table"] == "clust"])
    >>> len(figure.axes)
    2
    """
    cells = cells[(cells["dataset"] != "average") & cells["paper"].notna()]
    fig, axes = plt.subplots(1, 2, figsize=(8, 4.3), sharex=True, sharey=True)
    low, high = cells["paper"].min() - 6, min(cells["paper"].max() + 6, 102)
    line = np.array([low, high])
    for ax, params_from in zip(axes, PARAMS_FROM, strict=True):
        ax.fill_between(line, line - 3, line + 3, color="#e5e7eb", lw=0)
        ax.plot(line, line, color="#9ca3af", lw=1)
        measured = cells[cells[params_from].notna()]
        for method, group in measured.groupby("method", sort=False):
            color = COLORS.get(method, "#4b5563")
            ax.errorbar(
                group["paper"],
                group[params_from],
                xerr=group["paper_std"],
                yerr=group[f"{params_from}_std"].fillna(0),  # a single run has no spread
                fmt="none",
                ecolor=color,
                elinewidth=0.8,
                alpha=0.5,
            )
            original = (group["source"] == "original").to_numpy()
            ax.scatter(
                group["paper"][original], group[params_from][original], color=color, s=26, label=method, zorder=3
            )
            ax.scatter(group["paper"][~original], group[params_from][~original], ec=color, fc="white", s=26, zorder=3)
        _name_the_farthest(ax, measured, params_from)
        title = "published hyperparameters" if params_from == "published" else "our own search"
        ax.set(title=f"{title}: {len(measured)} of {len(cells)} cells", xlabel="the paper")
        ax.set_aspect("equal")
    axes[0].set(ylabel="ours", xlim=(low, high))
    handles = {label: h for ax in axes for h, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    if handles:
        fig.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=5)
    return fig


def _name_the_farthest(ax: plt.Axes, measured: pd.DataFrame, params_from: str, n: int = 4) -> None:
    off = (measured[params_from] - measured["paper"]).abs().sort_values(ascending=False)
    for index in off.index[:n]:
        row = measured.loc[index]
        if off[index] > max(2 * np.nan_to_num(row["paper_std"]), 3):
            ax.annotate(
                PAPER_NAME_OF[row["dataset"]],
                (row["paper"], row[params_from]),
                xytext=(5, 4),
                textcoords="offset points",
                fontsize=8,
            )


def share_within(cells: pd.DataFrame, params_from: str) -> str:
    """Say how many measured cells agree with the paper.

    Examples
    --------
    >>> import pandas as pd
    >>> from ncdlib.evidence.show import share_within
    >>> cell = {"dataset": "letter", "metric": "ACC", "method": "PBN", "paper": 62.4, "paper_std": 2.0}
    >>> share_within(pd.DataFrame([cell | {"published": 60.0}]), "published")
    '1 of 1 measured (100 %)'
    """
    within = within_tolerance(cells, params_from)
    if within.empty:
        return "none measured"
    return f"{within.sum()} of {len(within)} measured ({within.mean():.0%})".replace("%", " %")


def runs_in_words(runs: pd.Series) -> str:
    """Say how many runs the measured cells have, for a caption.

    Examples
    --------
    >>> import pandas as pd
    >>> from ncdlib.evidence.show import runs_in_words
    >>> runs_in_words(pd.Series([10, 10, 3, 0]))
    '10 runs each, fewer in 1 of 3 measured'
    """
    runs = runs[runs > 0]
    if runs.empty:
        return "not measured"
    most, fewer = int(runs.max()), int((runs < runs.max()).sum())
    text = f"{most} run{'s' if most > 1 else ''} each"
    return text + (f", fewer in {fewer} of {len(runs)} measured" if fewer else "")


def rerun(
    table: str, dataset: str, method: str, *, runs: int = 1, variant: str = "", folder: str | os.PathLike | None = None
) -> pd.DataFrame:
    """Measure a cell again where its data are on board or on this computer; otherwise say what is needed.

    Examples
    --------
    >>> from ncdlib.evidence.show import rerun
    >>> print("columns:"); list(rerun("clust", "pendigits", "k-means").columns)  # doctest: +ELLIPSIS
    columns:
    ...['params_from', 'metric', 'runs', 'paper', 'stored', 'now', 'same']
    """
    if not is_here(DATASETS[dataset]):
        print(f"The files of {dataset} are not on this computer. To get them: ncd data {dataset} --download")
        return pd.DataFrame(columns=["params_from", "metric", "runs", "paper", "stored", "now", "same"])
    from ncdlib.evidence.verify import verify  # slow to import, and needed here only

    cell = verify(table, dataset, method, runs=runs, variant=variant, folder=folder).round(1)
    same = cell["same"].map({True: "yes", False: "no"}).fillna("nothing stored")
    return cell.assign(same=same).astype(object).fillna("–")  # the paper has no NMI and ARI with k known
