"""Our best answer beside its peers and the paper's best method: one table, and statements of our own judged by it.

The statements are ours, not the paper's; they are judged by the rules of the claims (`ncdlib.evidence.claims`): a
difference of two means is settled where it is more than twice its standard error, over the runs, and more than half a
point. Their subject and the points asked for were written down before the figures were there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

import ncdlib
from ncdlib.evidence.claims.claim import FAILS, HOLDS, IN_PART, UNKNOWN, Finding, NotMeasured
from ncdlib.evidence.claims.rules import by_count, by_sign
from ncdlib.evidence.claims.view import MIN_RUNS, PAPER_RUNS, Mean, mean_of
from ncdlib.evidence.experiments import (
    BEYOND,
    K_MEANS,
    METRIC_K_MEANS,
    METRIC_NCD,
    OTHER_TABLES,
    PEERS,
    UMAP_HDBSCAN,
    UMAP_K_MEANS,
)
from ncdlib.evidence.paper import DATASETS, PAPER_NAME_OF, paper_results
from ncdlib.evidence.results import load_results

PBN_PRINTED, PBN_PUBLISHED, PBN_SEARCHED = "PBN, as printed", "PBN, published hyperparameters", "PBN, our search"
METHODS = (METRIC_NCD, METRIC_K_MEANS, *PEERS, PBN_PRINTED, PBN_PUBLISHED, PBN_SEARCHED)
PAPER_TABLE = {"known": "ncd", "estimated": "ncd_k_est"}  # with our own runs of PBN, too
PRINTED_TABLES = {"known": ("ncd",), "estimated": ("ncd_k_est", "final_table_nmi", "final_table_ari")}
VARIANTS = ("human", "census")
ORIGINALS = tuple(d for d in DATASETS if d not in VARIANTS)
AVERAGES = {"average": DATASETS, "average of the originals": ORIGINALS, "average of the other tables": OTHER_TABLES}
"""What is averaged, by the name that stands in the column of the data sets."""

SCORES = ("acc", "nmi", "ari")
COLUMNS = [
    "setting",
    "method",
    "dataset",
    "name",
    "runs",
    *(f"{score}{suffix}" for score in SCORES for suffix in ("", "_std", "_se")),
    "k",
    "true_k",
    "seconds",
    "cell",
]
FAR_BEHIND = 5.0  # points of accuracy


def beyond(folder: str | os.PathLike | None = None) -> pd.DataFrame:
    """Put MetricNCD and the simplest use of its metric beside the peers and PBN, on each data set and on average.

    Returns
    -------
    DataFrame
        setting ("known" or "estimated" number of novel classes); method; dataset, or which average (`AVERAGES`); name
        (as the paper has it, with * for a variant of the data); runs; acc, nmi, ari in percent, each with _std over
        the runs and _se, its standard error, which an average has too; k (median over the runs) and true_k; seconds
        of a run; cell, the (table / method) under which the runs are stored. What is not measured has no row.

    Examples
    --------
    >>> from ncdlib.evidence import beyond
    >>> table = beyond()
    >>> printed = table[(table["method"] == "PBN, as printed") & (table["dataset"] == "average")]
    >>> printed[["setting", "acc"]].round(1).to_numpy().tolist()
    [['known', 77.3], ['estimated', 71.0]]
    """
    runs = load_results(folder)
    runs = runs[runs["variant"] == ""]
    measured = dict(iter(runs.groupby(["table", "method", "params_from", "dataset"])))
    rows = []
    for setting in BEYOND:
        printed = _printed(setting)
        for method in METHODS:
            stored = _stored_as(method, setting)
            cells = {
                d: printed[d] if method == PBN_PRINTED else _of_runs(measured[(*stored, d)])
                for d in (*DATASETS, *OTHER_TABLES)
                if (d in printed if method == PBN_PRINTED else (*stored, d) in measured)
            }
            cells |= {name: _average(cells, of) for name, of in AVERAGES.items() if set(of) <= set(cells)}
            about = {"setting": setting, "method": method, "cell": " / ".join(stored[:2])}
            rows += [about | {"dataset": d, "name": _shown(d)} | cell for d, cell in cells.items()]
    return pd.DataFrame(rows, columns=COLUMNS)


def _stored_as(method: str, setting: str) -> tuple[str, str, str]:
    """Return the table, the method and the source of hyperparameters under which runs are stored."""
    if method in (PBN_PRINTED, PBN_PUBLISHED, PBN_SEARCHED):
        return PAPER_TABLE[setting], "PBN", "searched" if method == PBN_SEARCHED else "published"
    return BEYOND[setting], method, "none"


def _shown(dataset: str) -> str:
    return PAPER_NAME_OF.get(dataset, dataset) + "*" * (dataset in VARIANTS) if dataset not in AVERAGES else dataset


def _of_runs(runs: pd.DataFrame) -> dict:
    """Sum up the runs of one cell."""
    cell: dict = {"runs": len(runs), "k": runs["k"].median(), "seconds": runs["seconds"].mean()}
    cell["true_k"] = len(ncdlib.DATASETS[runs["dataset"].iloc[0]].novel_classes)
    for score in SCORES:
        values = 100 * runs[score].dropna()  # a training that diverged has no score
        cell |= {score: values.mean(), f"{score}_std": values.std(ddof=0), f"{score}_se": values.sem()}
    return cell


def _printed(setting: str) -> dict[str, dict]:
    """Return what the paper prints of PBN, by data set."""
    printed = paper_results().query("method == 'PBN' and table in @PRINTED_TABLES[@setting]")
    cells: dict[str, dict] = {}
    for row in printed[printed["dataset"] != "average"].itertuples():
        cell = cells.setdefault(row.dataset, {"runs": PAPER_RUNS})
        score = row.metric.lower()
        cell |= {score: row.value, f"{score}_std": row.std, f"{score}_se": row.std / np.sqrt(PAPER_RUNS)}
    return cells


def _average(cells: dict[str, dict], datasets: Iterable[str]) -> dict:
    parts = pd.DataFrame([cells[d] for d in datasets])
    out = {"runs": parts["runs"].min()}
    for score in SCORES:
        if score in parts:
            mean = mean_of(Mean(*pair) for pair in parts[[score, f"{score}_se"]].to_numpy())
            out |= {score: mean.value, f"{score}_se": mean.se}
    return out | ({"seconds": parts["seconds"].mean()} if "seconds" in parts else {})


# -- statements of our own --------------------------------------------------------------------------------------------


@dataclass
class Standing:
    """The accuracies of all methods in one setting, over some data sets; it notes what it is asked for."""

    setting: str
    datasets: Sequence[str]
    cells: dict[tuple[str, str], Mean]  # (method, dataset)
    used: dict[str, None] = field(default_factory=dict)  # methods, in order

    def mean(self, method: str, dataset: str) -> Mean:
        """Return a cell; raise `NotMeasured` where there is none."""
        self.used[method] = None
        try:
            return self.cells[method, dataset]
        except KeyError:
            raise NotMeasured(f"{method} on {_shown(dataset)}, k {self.setting}") from None

    def lead(self, method: str, rival: str, dataset: str) -> Mean:
        """Return the difference of two methods on a data set."""
        return self.mean(method, dataset).minus(self.mean(rival, dataset))

    def mean_lead(self, method: str, rival: str) -> Mean:
        """Return their difference averaged over the data sets."""
        return mean_of(self.lead(method, rival, d) for d in self.datasets)

    @property
    def peers(self) -> tuple[str, ...]:
        """The peers that are measured in this setting."""
        return tuple(peer for peer in PEERS if not (peer == UMAP_HDBSCAN and self.setting == "known"))


@dataclass(frozen=True)
class Statement:
    """Something we say of our own methods, and the function that judges it in each setting.

    Examples
    --------
    >>> from ncdlib.evidence.beside_peers import STATEMENTS
    >>> STATEMENTS[0].id
    'ahead-of-pbn-printed'
    """

    id: str
    says: str
    judge: Callable[[Standing], Finding]
    datasets: tuple[str, ...] = DATASETS


def _ahead(method: str, rival: str) -> Callable[[Standing], Finding]:
    """Ask whether one method is ahead of another on average."""

    def judge(standing: Standing) -> Finding:
        lead = standing.mean_lead(method, rival)
        means = [mean_of(standing.mean(m, d) for d in standing.datasets).value for m in (method, rival)]
        text = f"{method} {means[0]:.1f}, {rival} {means[1]:.1f}: {lead} points over {len(standing.datasets)} data sets"
        return Finding(by_sign(lead), text)

    return judge


def _ahead_of_every_peer(standing: Standing) -> Finding:
    """Ask whether MetricNCD is ahead of each peer on average: even with one is in part, behind one is not."""
    leads = {peer: standing.mean_lead(METRIC_NCD, peer) for peer in standing.peers}
    lowest = min(lead.sign for lead in leads.values())
    text = "; ".join(f"{peer} {lead}" for peer, lead in sorted(leads.items(), key=lambda item: item[1].value))
    outcome = (FAILS, IN_PART, HOLDS)[lowest + 1]
    return Finding(outcome, f"lead over {len(standing.datasets)} data sets, smallest first: {text}")


def _nowhere_far_behind(rivals: Callable[[Standing], Sequence[str]]) -> Callable[[Standing], Finding]:
    """Ask whether MetricNCD is behind the best of some rivals by more than `FAR_BEHIND` points on no data set."""

    def judge(standing: Standing) -> Finding:
        best = {
            d: max(rivals(standing), key=lambda rival, d=d: standing.mean(rival, d).value) for d in standing.datasets
        }
        leads = {d: standing.lead(METRIC_NCD, rival, d) for d, rival in best.items()}
        far = [f"{_shown(d)} ({best[d]} {lead})" for d, lead in leads.items() if lead.value < -FAR_BEHIND]
        lowest = min(leads, key=lambda d: leads[d].value)
        return Finding(
            by_count(len(far)),
            f"more than {FAR_BEHIND:g} points behind on: {', '.join(far) or 'none'} of {len(leads)} data sets; "
            f"lowest {leads[lowest]} on {_shown(lowest)}",
        )

    return judge


STATEMENTS = (
    Statement(
        "ahead-of-pbn-printed",
        "MetricNCD is ahead of PBN as its authors tuned and printed it, on average.",
        _ahead(METRIC_NCD, PBN_PRINTED),
    ),
    Statement(
        "ahead-of-pbn-published",
        "MetricNCD is ahead of our runs of PBN with its authors' hyperparameters, on average.",
        _ahead(METRIC_NCD, PBN_PUBLISHED),
    ),
    Statement(
        "ahead-of-pbn-searched",
        "MetricNCD is ahead of PBN tuned by our own search, on average.",
        _ahead(METRIC_NCD, PBN_SEARCHED),
    ),
    Statement(
        "nowhere-far-behind-pbn",
        f"On no data set is MetricNCD more than {FAR_BEHIND:g} points behind PBN as its authors tuned and printed it.",
        _nowhere_far_behind(lambda standing: (PBN_PRINTED,)),
    ),
    Statement("ahead-of-peers", "MetricNCD is ahead of every peer, on average.", _ahead_of_every_peer),
    Statement(
        "nowhere-far-behind-peers",
        f"On no data set is MetricNCD more than {FAR_BEHIND:g} points behind the best peer there.",
        _nowhere_far_behind(lambda standing: standing.peers),
    ),
    Statement(
        "ahead-of-peers-elsewhere",
        "On the other tables on board, too, MetricNCD is ahead of every peer, on average.",
        _ahead_of_every_peer,
        OTHER_TABLES,
    ),
    Statement(
        "metric-with-k-means",
        "k-means in the metric of the known classes is ahead of k-means on the columns, on average.",
        _ahead(METRIC_K_MEANS, K_MEANS),
    ),
    Statement(
        "metric-with-k-means-elsewhere",
        "So it is on the other tables on board.",
        _ahead(METRIC_K_MEANS, K_MEANS),
        OTHER_TABLES,
    ),
    Statement(
        "umap-ahead-of-pbn-printed",
        "UMAP and k-means, which see no label, are ahead of PBN as its authors tuned and printed it, on average.",
        _ahead(UMAP_K_MEANS, PBN_PRINTED),
    ),
)
"""What we say of our own methods: judged by `statements`."""

STATEMENT_COLUMNS = ["id", "statement", "setting", "verdict", "numbers", "without_variants", "missing", "cells"]


def statements(folder: str | os.PathLike | None = None) -> pd.DataFrame:
    """Judge what we say of our own methods, with k known and with k estimated.

    Returns
    -------
    DataFrame
        id, statement, setting, verdict ("holds", "holds in part", "does not hold", "cannot be judged here"), numbers
        (percent of accuracy, differences with their standard error), without_variants (the verdict on the data sets
        that are the originals), missing, cells (the table / method that it rests on).

    Examples
    --------
    >>> from ncdlib.evidence import statements
    >>> judged = statements()
    >>> set(judged["verdict"]) <= {"holds", "holds in part", "does not hold", "cannot be judged here"}
    True
    """
    table = beyond(folder)
    table = table[~table["dataset"].isin(list(AVERAGES)) & (table["runs"] >= MIN_RUNS)]
    stored = {(row.setting, row.method): row.cell for row in table.itertuples()}
    rows = []
    for statement in STATEMENTS:
        for setting in BEYOND:
            of_setting = table[table["setting"] == setting]
            cells = {(row.method, row.dataset): Mean(row.acc, row.acc_se) for row in of_setting.itertuples()}
            standing = Standing(setting, statement.datasets, cells)
            finding, missing = _judged(statement, standing)
            originals = tuple(d for d in statement.datasets if d not in VARIANTS)
            without, _ = _judged(statement, replace(standing, datasets=originals, used={}))
            used = [stored[setting, method] for method in standing.used if (setting, method) in stored]
            rows.append(
                {
                    "id": statement.id,
                    "statement": statement.says,
                    "setting": setting,
                    "verdict": finding.outcome,
                    "numbers": finding.text,
                    "without_variants": without.outcome,
                    "missing": missing,
                    "cells": "; ".join(dict.fromkeys(used)),
                }
            )
    return pd.DataFrame(rows, columns=STATEMENT_COLUMNS)


def _judged(statement: Statement, standing: Standing) -> tuple[Finding, str]:
    try:
        return statement.judge(standing), ""
    except NotMeasured as error:
        return Finding(UNKNOWN, ""), str(error)
