"""What the paper reports: its tables, their figures, and the hyperparameters its authors published."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import pandas as pd

DATASET_OF = {
    "Human": "human",
    "Letter": "letter",
    "Pendigits": "pendigits",
    "Census": "census",
    "m feat": "mfeat",
    "Optdigits": "optdigits",
    "CNAE-9": "cnae9",
    "Average": "average",
}
"""The paper's names of the data sets, and ours."""

PAPER_NAME_OF = {ours: theirs for theirs, ours in DATASET_OF.items()}
DATASETS = tuple(DATASET_OF.values())[:-1]

PAPER_DATA = pd.DataFrame(
    {
        "features": [562, 16, 16, 67, 515, 62, 856],
        "known": [3733, 10229, 3777, 12000, 802, 1918, 377],
        "novel": [3619, 3770, 3717, 6000, 798, 1905, 487],
        "test": [1453, 1704, 1734, 6000, 202, 905, 113],
    },
    index=list(DATASETS),
)
"""Table 2 of the paper: columns, known rows, novel rows, novel rows for testing."""


@dataclass(frozen=True)
class Table:
    """A table or figure of the paper, or one of our own, and where the book shows what we measured for it.

    Attributes
    ----------
    number : str
        Its number in the paper; empty for our own.
    chapter : str
        The chapter of the book, by topic: the name of its file.
    anchor : str
        The place in that chapter; empty for the chapter as a whole.
    metric : str
        What its cells are, where nothing else is asked for.

    Examples
    --------
    >>> from ncdlib.evidence import TABLES
    >>> TABLES["ncd"].number, TABLES["ncd"].page
    ('Table 4', 'known_k.html#tab-known-k-ncd')
    """

    number: str
    chapter: str
    anchor: str = ""
    metric: str = "ACC"

    @property
    def page(self) -> str:
        """The place in the built book."""
        return f"{self.chapter}.html" + (f"#{self.anchor}" if self.anchor else "")


TABLES = {
    "kfold_splits": Table("Table 1", "hidden_classes", "tab-hidden-classes-splits"),
    "data": Table("Table 2", "unreported"),
    "clust": Table("Table 3", "known_k", "tab-known-k-clust"),
    "ncd": Table("Table 4", "known_k", "tab-known-k-ncd"),
    "ncd_k_est": Table("Table 5", "estimated_k", "tab-estimated-k-acc"),
    "final_table_nmi": Table("Table 6", "estimated_k", "tab-estimated-k-nmi", "NMI"),
    "final_table_ari": Table("Table 7", "estimated_k", "tab-estimated-k-ari", "ARI"),
    "hyperparameters": Table("Table 8", "hyperparameters", "tab-hyperparameters-found"),
    "pbn_sc": Table("Table 9", "pbn_spectral", "tab-pbn-spectral-acc"),
    "silhouette_results": Table("Table 10", "how_many", "tab-how-many-stored", "estimated k"),
    "clust_results_different_convergence": Table("Table 11", "kmeans", "tab-kmeans-convergence"),
    "centroids": Table("Figure 1", "kmeans", "fig-kmeans-pendigits"),
    "ncd_sc": Table("Figure 2", "spectral", "fig-spectral-diagram"),
    "projectionmodel": Table("Figure 3", "pbn", "fig-pbn-architecture"),
    "kfold": Table("Figure 4", "hidden_classes", "fig-hidden-classes-folds"),
    "letter_corr": Table("Figure 5", "hidden_classes", "tab-hidden-classes-corr"),
    "cd_latent": Table("Figure 6", "how_many", "fig-how-many-cd-paper"),
    "perf_wrt_share": Table("Figure 7", "more_novel_classes", "fig-more-novel-classes-letter"),
    # Not in the paper: questions that it leaves open.
    "hidden_score": Table("", "hyperparameters", "tab-hyperparameters-luck"),
    "choices": Table("", "unreported", "tab-unreported-effects"),
    "letter_splits": Table("", "unreported", "tab-unreported-splits"),
    "census_splits": Table("", "known_k"),
    # Not in the paper: methods that it left out, and ours.
    "beyond": Table("", "first_tries", "tab-first-tries-averages"),
    "beyond_k_est": Table("", "first_tries", "tab-first-tries-averages"),
}
"""The tables and figures, by the labels of the paper's source, in order of appearance; ours last."""

CORRELATION = "letter_corr"  # hidden against novel ARI, of every trial of a search

INDEX_NAMES = {
    "silhouette": "Silhouette (PBN latent space)",
    "calinski_harabasz": "CH (PBN latent space)",
    "dunn": "Dunn (PBN latent space)",
    "km_acc": "KM ACC (PBN latent space)",
    "davies_bouldin": "Davies-B. (PBN latent space)",
    "elbow": "Elbow (PBN latent space)",
}
"""Our names of the six indices of Table 10, and the paper's."""
FEATURES_METHOD = "Silhouette (original feature space)"

_INTEGERS = {"latent_dim", "k_neighbors", "u", "n_clusters"}


@cache
def _read(name: str) -> pd.DataFrame:
    return pd.read_csv(str(files("ncdlib.evidence").joinpath(name)))


def paper_results() -> pd.DataFrame:
    """Return all 261 figures of the paper's result tables: table, metric, dataset, method, value, std, bold.

    Examples
    --------
    >>> from ncdlib.evidence import paper_results
    >>> len(paper_results())
    261
    """
    return _paper_results().copy()


@cache
def _paper_results() -> pd.DataFrame:
    results = _read("paper_results.csv").copy()
    results["table"] = results["table"].str.removeprefix("table:")
    results["dataset"] = results["dataset"].map(DATASET_OF)
    return results


def published_hyperparameters() -> pd.DataFrame:
    """Return the hyperparameters that the authors published: method, number_of_classes, dataset, parameter, value.

    Examples
    --------
    >>> from ncdlib.evidence import published_hyperparameters
    >>> list(published_hyperparameters().columns)
    ['method', 'number_of_classes', 'dataset', 'parameter', 'value']
    """
    return _read("published_hyperparameters.csv").copy()


def published_params(method: str, setting: str, dataset: str) -> dict[str, Any]:
    """Return the published hyperparameters of one cell, as parameters of our estimators.

    ``top_k`` is divided by 100, as the authors' code does; ``u`` becomes ``n_components``.

    Examples
    --------
    >>> from ncdlib.evidence import published_params
    >>> published_params("NCD SC", "known", "pendigits")
    {'s_min': 0.3784, 'n_components': 15}
    """
    table = published_hyperparameters()
    rows = table[(table["method"] == method) & (table["number_of_classes"] == setting) & (table["dataset"] == dataset)]
    params = {
        row.parameter: int(row.value) if row.parameter in _INTEGERS else float(row.value) for row in rows.itertuples()
    }
    if "u" in params:
        params["n_components"] = params.pop("u")
    if "top_k" in params:
        params["top_k"] /= 100
    return params


def table_label(name: str) -> str:
    """Return the label of a table or figure that is named by its number in the paper; any other name as it is.

    Examples
    --------
    >>> from ncdlib.evidence.paper import table_label
    >>> table_label("Table 4"), table_label("figure 7"), table_label("clust")
    ('ncd', 'perf_wrt_share', 'clust')
    """
    by_number = {table.number.lower(): label for label, table in TABLES.items() if table.number}
    return by_number.get(" ".join(name.lower().split()), name)


def where(table: str) -> str:
    """Say in words where the paper has a table.

    Examples
    --------
    >>> from ncdlib.evidence.paper import where
    >>> where("ncd"), where("choices")
    ('Table 4', 'not in the paper')
    """
    return TABLES[table].number or "not in the paper"
