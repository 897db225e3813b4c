"""Measure a cell of the paper again, and put it beside the paper's figure and what is stored."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from typing import Any

import pandas as pd

from ncdlib._io.processes import one_thread
from ncdlib.evidence import experiments, results
from ncdlib.evidence.compare import METRIC_COLUMN, measured_as
from ncdlib.evidence.experiments import Experiment
from ncdlib.evidence.measure import measure, rounded
from ncdlib.evidence.paper import paper_results, table_label


def verify(
    table: str,
    dataset: str,
    method: str,
    *,
    runs: int | None = None,
    variant: str = "",
    folder: str | os.PathLike | None = None,
) -> pd.DataFrame:
    """Measure one cell of a table again, and put it beside the paper's figure and the stored runs of the same seeds.

    Parameters
    ----------
    table : str
        The table or figure, by its number or by the paper's label: "Table 4" or "ncd".
    dataset, method : str
        The cell, as in `compare_with_paper`.
    runs : int, optional
        How many runs, the first seeds first; by default as many as the table has.
    variant : str
        Which problem, where a table has several on one data set.

    Returns
    -------
    DataFrame
        params_from, metric, runs, paper, stored, now (percent, or a number of classes), same: whether every run gave
        what is stored, to the digits stored; None where not all of them are stored. ``attrs["source"]`` says which data
        it was.

    Examples
    --------
    >>> from ncdlib.evidence.verify import verify
    >>> cell = verify("Table 3", "pendigits", "k-means", runs=1)
    >>> cell.columns.tolist()
    ['params_from', 'metric', 'runs', 'paper', 'stored', 'now', 'same']
    """
    table = table_label(table)
    cells = _cells(table, dataset, method, variant)
    figures = _figures_of_paper(*measured_as(table, method), dataset)
    rows: list[dict[str, Any]] = []
    for experiment in cells:
        if experiments.params_of(experiment, dataset, partial(results.best_params, folder=folder)) is None:
            continue  # its search is not finished
        seeds = range(min(experiment.runs, runs or experiment.runs))
        with one_thread():  # as the stored runs were measured
            now = [rounded(row) for row in measure(experiment, dataset, seeds, folder)]
        now = [row for row in now if row["method"] == measured_as(table, method)[1]]
        source = now[0]["source"]
        rows += _beside_stored(experiment, pd.DataFrame(now).set_index("seed"), figures, folder)
    if not rows:
        raise ValueError(f"the search behind {table} / {method} on {dataset} is not finished: ncd reproduce search")
    found = pd.DataFrame(rows)
    found.attrs["source"] = source
    return found


def _cells(table: str, dataset: str, method: str, variant: str) -> list[Experiment]:
    """Find the experiments behind a cell; say what there is where there are none."""
    stored_table, stored_method = measured_as(table, method)
    here = [e for e in experiments.experiment_list() if e.table == stored_table]
    of_method = [e for e in here if stored_method in e.row_methods]
    cells = [e for e in of_method if e.variant == variant]
    if of_method and not cells:
        need = f"has no variant {variant!r}" if variant else "needs a variant"
        raise ValueError(f"{table} / {method} {need}{_such_as(e.variant for e in of_method)}")
    if not cells:
        there = dict.fromkeys(name for e in here for name in e.row_methods)
        there = there or dict.fromkeys(e.table for e in experiments.experiment_list())
        raise ValueError(f"there is no cell {table} / {method}; choose from {', '.join(map(repr, there))}")
    if dataset not in cells[0].datasets:
        raise ValueError(f"{table} / {method} is not measured on {dataset!r}, but on {', '.join(cells[0].datasets)}")
    return cells


def _such_as(variants: Iterable[str]) -> str:
    first = next(filter(None, variants), None)
    return "" if first is None else f", such as {first!r}"


def _figures_of_paper(stored_table: str, stored_method: str, dataset: str) -> dict[str, float]:
    """Return what all tables of the paper print of the same runs, by metric: NMI and ARI have tables of their own."""
    paper = paper_results()
    same_runs = [measured_as(*cell) == (stored_table, stored_method) for cell in paper[["table", "method"]].to_numpy()]
    paper = paper[same_runs].query("dataset == @dataset").drop_duplicates("metric")
    return dict(zip(paper["metric"], paper["value"], strict=True))


def _beside_stored(
    experiment: Experiment, now: pd.DataFrame, figures: dict[str, float], folder: str | os.PathLike | None
) -> list[dict[str, Any]]:
    done = results.load_results(folder)
    for column in ("table", "dataset", "method", "setting", "params_from", "variant"):
        done = done[done[column] == now[column].iloc[0]]
    done = done.set_index("seed").reindex(now.index)
    rows = []
    for metric, column in METRIC_COLUMN.items():
        values, stored = now[column].astype(float), done[column]
        given = column == "k" and experiment.setting == "known" and now["acc"].notna().any()
        if given or values.isna().all():
            continue
        centre = (lambda v: v.median()) if column == "k" else (lambda v: 100 * v.mean())
        some_missing = stored.isna().any()  # what is stored would be of other runs
        rows.append(
            {
                "params_from": experiment.params_from,
                "metric": metric,
                "runs": len(values),
                "paper": figures.get(metric, float("nan")),
                "stored": float("nan") if some_missing else centre(stored),
                "now": centre(values),
                "same": None if some_missing else bool((values - stored).abs().max() < 1e-4),
            }
        )
    return rows
