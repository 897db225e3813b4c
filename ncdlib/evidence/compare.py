"""Our measurements beside the paper's figures, cell by cell."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

import ncdlib
from ncdlib._io.files import file_state
from ncdlib.evidence.experiments import TOP_K_AS_FRACTION, Search
from ncdlib.evidence.paper import CORRELATION, DATASETS, PAPER_NAME_OF, paper_results, table_label
from ncdlib.evidence.results import load_results, load_trials, results_folder, run_store, search_path

COLUMNS = [
    "table",
    "metric",
    "dataset",
    "method",
    "paper",
    "paper_std",
    "published",
    "published_std",
    "searched",
    "searched_std",
    "runs",
    "source",
]
PARAMS_FROM = ("published", "searched")
METRIC_COLUMN = {"ACC": "acc", "NMI": "nmi", "ARI": "ari", "estimated k": "k"}

# Tables of the paper that show runs measured for another table: (table, method) -> (table, method)
_SAME_RUNS = {
    ("ncd", "NCD SC"): ("clust", "NCD SC"),
    ("pbn_sc", "KM PBN"): ("ncd", "PBN"),
    ("clust_results_different_convergence", "update novel only centroids on unlabeled data"): ("clust", "NCD k-means"),
}
_SAME_TABLE = {"final_table_nmi": "ncd_k_est", "final_table_ari": "ncd_k_est", "cd_latent": "silhouette_results"}


def measured_as(table: str, method: str) -> tuple[str, str]:
    """Return the table and method under which the runs of a cell are stored.

    Examples
    --------
    >>> from ncdlib.evidence.compare import measured_as
    >>> measured_as("final_table_nmi", "PBN"), measured_as("pbn_sc", "KM PBN")
    (('ncd_k_est', 'PBN'), ('ncd', 'PBN'))
    """
    return _SAME_RUNS.get((table, method), (_SAME_TABLE.get(table, table), method))


def stored_table(name: str) -> str:
    """Return the label under which the runs of a table are stored, from its number or its label in the paper.

    Examples
    --------
    >>> from ncdlib.evidence.compare import stored_table
    >>> stored_table("Table 4"), stored_table("Table 6"), stored_table("search")
    ('ncd', 'ncd_k_est', 'search')
    """
    label = table_label(name)
    return _SAME_TABLE.get(label, label)


def compare_with_paper(folder: str | os.PathLike | None = None) -> pd.DataFrame:
    """Put our figure beside every cell of the paper's result tables: percent, or the estimated number of classes.

    "published" is measured with the authors' published hyperparameters, "searched" with those of our own hidden-class
    search (NCD SC: on the known classes); a method with nothing to tune has the same figure in both. A method that the
    paper does not have ("TabularNCD, mended") has no figure of the paper. Cells not measured yet are NaN.

    Returns
    -------
    DataFrame
        table, metric, dataset, method, paper, paper_std, published, published_std, searched, searched_std, runs,
        source ("original", or how the data differ from the original).

    Examples
    --------
    >>> from ncdlib.evidence import compare_with_paper
    >>> cells = compare_with_paper()
    >>> int(cells["paper"].notna().sum())
    261
    """
    runs = load_results(folder)
    runs = dict(iter(runs[runs["variant"] == ""].groupby(["table", "dataset", "method"])))
    cells = []
    paper = paper_results()
    for cell in pd.concat([paper, _cells_of_our_own(paper)]).itertuples():
        row = {"table": cell.table, "metric": cell.metric, "dataset": cell.dataset, "method": cell.method}
        cells.append(row | {"paper": cell.value, "paper_std": cell.std} | _ours(runs, **row))
    table = pd.DataFrame(cells, columns=COLUMNS)
    _fill_averages(table)
    return table


def _cells_of_our_own(paper: pd.DataFrame) -> pd.DataFrame:
    """Make rows for TabularNCD with top_k as a fraction in every table that has TabularNCD."""
    own = paper[paper["method"] == "TabularNCD"].copy()
    return own.assign(method=TOP_K_AS_FRACTION, value=np.nan, std=np.nan)


def _ours(runs: dict[tuple[str, str, str], pd.DataFrame], table: str, metric: str, dataset: str, method: str) -> dict:
    if method == "Ground-truth":
        k = len(ncdlib.DATASETS[dataset].novel_classes)
        return {"published": k, "searched": k, "runs": 0, "source": "original"}
    table, method = measured_as(table, method)
    mine = runs.get((table, dataset, method))
    if mine is None:
        return {"runs": 0, "source": None}
    column = METRIC_COLUMN[metric]
    out: dict = {"runs": 0, "source": mine["source"].iloc[0]}
    for params_from in PARAMS_FROM:
        values = mine.loc[mine["params_from"].isin([params_from, "none"]), column].dropna()
        if len(values):
            # A number of classes is a vote, not a mean.
            centre = values.median() if column == "k" else 100 * values.mean()
            spread = np.nan if column == "k" or len(values) < 2 else 100 * values.std(ddof=0)
            out |= {params_from: centre, f"{params_from}_std": spread}
            out["runs"] = max(out["runs"], len(values))
    return out


def _fill_averages(table: pd.DataFrame) -> None:
    """Average over the data sets, where all of them are measured."""
    for index, row in table[table["dataset"] == "average"].iterrows():
        parts = table[
            (table["table"] == row["table"])
            & (table["metric"] == row["metric"])
            & (table["method"] == row["method"])
            & (table["dataset"] != "average")
        ]
        for params_from in PARAMS_FROM:
            if len(parts) == len(DATASETS) and parts[params_from].notna().all():
                table.loc[index, params_from] = parts[params_from].mean()
        table.loc[index, "source"] = "includes the variants of human and census"


def show_table(
    table: str,
    metric: str = "ACC",
    methods: Iterable[str] | None = None,
    folder: str | os.PathLike | None = None,
    cells: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Show one table of the paper for reading: data sets down, methods across, each as paper / published / searched.

    `cells` is the comparison with the paper, if it is there already.

    Examples
    --------
    >>> from ncdlib.evidence import show_table
    >>> show_table("ncd", methods=["PBN"]).loc["Pendigits", ("PBN", "paper")]
    '82.8 ± 0.6'
    """
    cells = compare_with_paper(folder) if cells is None else cells
    cells = cells[(cells["table"] == table) & (cells["metric"] == metric)]
    methods = list(methods or cells["method"].unique())
    names = [name for name in (*DATASETS, "average") if name in set(cells["dataset"])]
    columns = pd.MultiIndex.from_product([methods, ["paper", *PARAMS_FROM]])
    shown = pd.DataFrame("", index=[_label(cells, n) for n in names], columns=columns)
    for row in cells[cells["method"].isin(methods)].itertuples():
        for column in ("paper", *PARAMS_FROM):
            value, std = getattr(row, column), getattr(row, f"{column}_std")
            text = "–" if pd.isna(value) else f"{value:.0f}" if metric == "estimated k" else f"{value:.1f}"
            shown.loc[_label(cells, row.dataset), (row.method, column)] = text + (
                "" if pd.isna(std) else f" ± {std:.1f}"
            )
    return shown


def within_tolerance(cells: pd.DataFrame, params_from: str) -> pd.Series:
    """Tell whether our figure is within max(2 paper std, 3 points) of the paper's, for the cells where both exist.

    Averages are left out: they repeat their parts.

    Examples
    --------
    >>> from ncdlib.evidence import compare_with_paper, within_tolerance
    >>> within = within_tolerance(compare_with_paper(), "published")
    >>> within.dtype
    dtype('bool')
    """
    measured = cells[cells[params_from].notna() & cells["paper"].notna() & (cells["dataset"] != "average")]
    measured = measured[measured["method"] != "Ground-truth"]
    counts = measured["metric"] == "estimated k"  # a number of classes agrees if it is the same
    tolerance = np.maximum(2 * measured["paper_std"].fillna(0), 3.0).mask(counts, 0.0)
    return (measured[params_from] - measured["paper"]).abs() <= tolerance


def hidden_and_novel_ari(method: str, dataset: str, folder: str | os.PathLike | None = None) -> pd.DataFrame:
    """Return, for every trial of a search, the mean ARI on hidden classes, which ranks it, and that on the novel ones.

    The second is measured for the paper's Figure 5 only, and enters no choice.

    Returns
    -------
    DataFrame
        trial, hidden, novel, params; without the trials whose training failed.

    Examples
    --------
    >>> from ncdlib.evidence import hidden_and_novel_ari
    >>> list(hidden_and_novel_ari("PBN", "letter").columns)
    ['trial', 'hidden', 'novel', 'params']
    """
    search, folder = Search(method, dataset, "known"), results_folder(folder)
    states = file_state(run_store(folder).path), file_state(search_path(search, folder))
    return _hidden_and_novel_ari(search, folder, states).copy()


@lru_cache(maxsize=256)
def _hidden_and_novel_ari(search: Search, folder: Path, states: tuple) -> pd.DataFrame:
    """Join the trials and their runs, once in each state of the two files."""
    trials = load_trials(search, folder)[["trial", "score_known", "params"]].astype({"trial": int})
    runs = load_results(folder)
    runs = runs[
        (runs["table"] == CORRELATION) & (runs["dataset"] == search.dataset) & (runs["method"] == search.method)
    ]
    both = trials.merge(runs[["seed", "ari"]].astype({"seed": int}), left_on="trial", right_on="seed")
    both = both.rename(columns={"score_known": "hidden", "ari": "novel"})[["trial", "hidden", "novel", "params"]]
    return both.dropna(subset=["hidden", "novel"]).reset_index(drop=True)


def effect_of_choices(folder: str | os.PathLike | None = None) -> pd.DataFrame:
    """Measure what each choice that the paper leaves open does to the accuracy, changed alone.

    Returns
    -------
    DataFrame
        choice, method, dataset, usual, changed (mean ACC in percent), difference, and se, its standard error.

    Examples
    --------
    >>> from ncdlib.evidence import effect_of_choices
    >>> list(effect_of_choices().columns)
    ['choice', 'method', 'dataset', 'usual', 'changed', 'difference', 'se']
    """
    runs = load_results(folder)
    runs = runs[runs["variant"] == ""].dropna(subset=["acc"])
    cell = ["method", "setting", "params_from", "dataset"]
    usual_table = runs["table"].isin(["clust", "ncd", "ncd_k_est", "pbn_sc"])
    usual = {key: 100 * acc for key, acc in runs[usual_table].groupby(cell)["acc"]}
    out = []
    for (name, *rest, dataset), acc in runs[runs["table"] == "choices"].groupby(cell, sort=False)["acc"]:
        method, _, choice = name.partition(": ")
        if (method, *rest, dataset) in usual:
            before, after = usual[method, *rest, dataset], 100 * acc
            row = {"choice": choice, "method": method, "dataset": dataset}
            row |= {"usual": before.mean(), "changed": after.mean(), "difference": after.mean() - before.mean()}
            out.append(row | {"se": np.hypot(before.sem(), after.sem())})
    return pd.DataFrame(out, columns=["choice", "method", "dataset", "usual", "changed", "difference", "se"])


def _label(cells: pd.DataFrame, dataset: str) -> str:
    """Return the paper's name of a data set, marked where ours is a variant."""
    sources = cells.loc[cells["dataset"] == dataset, "source"].dropna()
    variant = len(sources) > 0 and sources.iloc[0] != "original"
    return PAPER_NAME_OF[dataset] + ("*" if variant else "")
