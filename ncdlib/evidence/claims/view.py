"""The tables as a claim asks for them: the paper's figures, or ours with one source of the hyperparameters."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd

from ncdlib.evidence.claims.claim import ALL_VIEWS, NotMeasured
from ncdlib.evidence.compare import METRIC_COLUMN, hidden_and_novel_ari, measured_as
from ncdlib.evidence.experiments import TOP_K_AS_FRACTION
from ncdlib.evidence.paper import CORRELATION, DATASETS, PAPER_NAME_OF, TABLES, paper_results, where
from ncdlib.evidence.results import load_results

POINTS = 3.0  # a figure without std agrees within this many points
ROUNDING = 0.15  # the difference of two printed averages is exact within this
STANDARD_ERRORS = 2.0
SMALLEST_DIFFERENCE = 0.5  # of two means, in points; less is even whatever the standard error
MIN_RUNS = 3
MIN_DATASETS = 5
MIN_TRIALS = 12
PAPER_RUNS = 10


class Mean(NamedTuple):
    """A mean and its standard error."""

    value: float
    se: float = 0.0

    def minus(self, other: Mean) -> Mean:
        """Return the difference of two independent means."""
        return Mean(self.value - other.value, float(np.hypot(self.se, other.se)))

    @property
    def sign(self) -> int:
        """1 or -1 where the value is settled, 0 where it is even."""
        even = abs(self.value) <= max(STANDARD_ERRORS * self.se, SMALLEST_DIFFERENCE)
        return 0 if even else int(np.sign(self.value))

    @property
    def short(self) -> str:
        """The value alone, with its sign."""
        return f"{self.value:+.1f}"

    def __str__(self) -> str:
        return f"{self.value:+.1f} ± {self.se:.1f}"


def mean_of(values: Iterable[Mean]) -> Mean:
    """Average independent means."""
    values = list(values)
    se = np.sqrt(np.sum([v.se**2 for v in values])) / len(values)
    return Mean(float(np.mean([v.value for v in values])), float(se))


@dataclass
class View:
    """One way to look at the same tables: the paper's figures, or ours with one source of the hyperparameters.

    It notes every cell that is asked for, so that the ledger can tell what a verdict rests on and what is missing.

    Examples
    --------
    >>> from ncdlib.evidence.claims import paper_view
    >>> view = paper_view()
    >>> lead = view.lead(("ncd", "PBN"), ("ncd", "Baseline"), "pendigits")
    >>> lead.sign  # ahead, beyond the noise
    1
    """

    name: str
    cells: dict[tuple[str, str, str, str], Mean]  # (table, metric, method, dataset)
    datasets: tuple[str, ...] = DATASETS
    folder: str | os.PathLike | None = None
    runs: pd.DataFrame | None = None
    substitutes: dict[str, str] = field(default_factory=dict)
    used: dict[tuple[str, str, str], None] = field(default_factory=dict)  # (table, method, dataset), in order
    missing: dict[tuple[str, str, str], None] = field(default_factory=dict)

    @property
    def tolerance(self) -> float:
        """How far an average may be from the paper's and still agree."""
        return ROUNDING if self.name == "paper" else POINTS

    def method(self, name: str) -> str:
        """Return the method that stands for this one here."""
        return self.substitutes.get(name, name)

    def mean(self, table: str, method: str, dataset: str, metric: str | None = None) -> Mean:
        """Return a cell, by default in the metric of its table; raise `NotMeasured` where there is none."""
        metric, method = metric or TABLES[table].metric, self.method(method)
        self.used[table, method, dataset] = None
        try:
            return self.cells[table, metric, method, dataset]
        except KeyError:
            self.missing[table, method, dataset] = None
            raise NotMeasured(f"{method} on {PAPER_NAME_OF[dataset]} ({where(table)})") from None

    def has(self, *cell: str) -> bool:
        """Tell whether a cell is measured."""
        try:
            return self.mean(*cell) is not None
        except NotMeasured:
            return False

    def measured(self, cells: Iterable[tuple[str, str]], at_least: int = MIN_DATASETS) -> list[str]:
        """Return the data sets on which all of these (table, method) are measured."""
        there = {cell: [d for d in self.datasets if self.has(*cell, d)] for cell in dict.fromkeys(cells)}
        found = [d for d in self.datasets if all(d in names for names in there.values())]
        if len(found) < at_least:
            counts = ", ".join(
                f"{self.method(method)} ({where(table)}) {len(names)}"
                for (table, method), names in there.items()
                if len(names) < len(self.datasets)
            )
            raise NotMeasured(f"data sets measured, of {len(self.datasets)}: {counts}; all on {len(found)}")
        return found

    def average(self, table: str, method: str, datasets: Iterable[str]) -> Mean:
        """Average a cell over data sets."""
        return mean_of(self.mean(table, method, d) for d in datasets)

    def trials(self, method: str, dataset: str) -> pd.DataFrame:
        """Return the hidden and the novel ARI of each trial of a search."""
        name = self.method(method)
        self.used[CORRELATION, name, dataset] = None
        if self.runs is None:
            raise NotMeasured("numbers: the paper shows a figure")
        both = hidden_and_novel_ari(name, dataset, self.folder)
        if len(both) < MIN_TRIALS:
            self.missing[CORRELATION, name, dataset] = None
            raise NotMeasured(
                f"trials of {name} on {PAPER_NAME_OF[dataset]}: {len(both)}, at least {MIN_TRIALS} needed"
            )
        return both

    def lead(self, cell: tuple[str, str], rival: tuple[str, str], dataset: str) -> Mean:
        """Return the difference of two cells on a data set."""
        return self.mean(*cell, dataset).minus(self.mean(*rival, dataset))


def paper_view(datasets: Sequence[str] = DATASETS) -> View:
    """Return the paper's own figures; its standard errors from its standard deviations over ten runs.

    Examples
    --------
    >>> from ncdlib.evidence.claims import paper_view
    >>> round(paper_view().mean("ncd", "PBN", "pendigits").value, 1)
    82.8
    """
    return View("paper", _cells_of_paper(), tuple(datasets))


@lru_cache(maxsize=1)
def _cells_of_paper() -> dict[tuple[str, str, str, str], Mean]:
    cells = {}
    for row in paper_results().itertuples():
        se = 0.0 if pd.isna(row.std) else row.std / np.sqrt(PAPER_RUNS)
        cells[row.table, row.metric, row.method, row.dataset] = Mean(row.value, se)
    return cells


def our_views(folder: str | os.PathLike | None = None) -> dict[str, View]:
    """Return our figures in each way, by name.

    Examples
    --------
    >>> from ncdlib.evidence.claims import our_views
    >>> list(our_views())
    ['published', 'searched', 'mended']
    """
    runs = load_results(folder)
    return {name: _our_view(name, runs, folder) for name in ALL_VIEWS}


def _our_view(name: str, runs: pd.DataFrame, folder: str | os.PathLike | None) -> View:
    """Make the view of our figures, "published", "searched" or "mended"; see the package's text."""
    params_from = "published" if name == "published" else "searched"
    runs_of_figures, runs = runs, runs[(runs["variant"] == "") & runs["params_from"].isin([params_from, "none"])]
    groups = runs.groupby(["table", "method", "dataset"])
    measured: dict[tuple[str, str, str, str], Mean] = {}
    for (table, method, dataset), group in groups:
        for metric, column in {**METRIC_COLUMN, "seconds": "seconds"}.items():
            values = group[column].dropna()
            if metric in ("estimated k", "seconds") and len(values):
                measured[table, metric, method, dataset] = Mean(float(values.median()))
            elif len(values) >= MIN_RUNS:
                se = 100 * values.std(ddof=1) / np.sqrt(len(values))
                measured[table, metric, method, dataset] = Mean(100 * float(values.mean()), float(se))
    cells = dict(measured)
    # Cells of other tables that show the same runs.
    for row in paper_results().itertuples():
        for method in (row.method, TOP_K_AS_FRACTION) if row.method == "TabularNCD" else (row.method,):
            table, name_there = measured_as(row.table, method)
            found = measured.get((table, row.metric, name_there, row.dataset))
            if found is not None:
                cells[row.table, row.metric, method, row.dataset] = found
    substitutes = {"TabularNCD": TOP_K_AS_FRACTION} if name == "mended" else {}
    return View(name, cells, DATASETS, folder, runs_of_figures, substitutes)
