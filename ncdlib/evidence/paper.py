"""What the paper reports: the figures of its result tables, and the hyperparameters its authors published."""

from __future__ import annotations

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

PAPER_NUMBER = {
    "kfold_splits": "Table 1",
    "data": "Table 2",
    "clust": "Table 3",
    "ncd": "Table 4",
    "ncd_k_est": "Table 5",
    "final_table_nmi": "Table 6",
    "final_table_ari": "Table 7",
    "hyperparameters": "Table 8",
    "pbn_sc": "Table 9",
    "silhouette_results": "Table 10",
    "clust_results_different_convergence": "Table 11",
    "centroids": "Figure 1",
    "ncd_sc": "Figure 2",
    "projectionmodel": "Figure 3",
    "kfold": "Figure 4",
    "letter_corr": "Figure 5",
    "cd_latent": "Figure 6",
    "perf_wrt_share": "Figure 7",
}
"""Labels of the paper's tables and figures, and their numbers in order of appearance."""

_INTEGERS = {"latent_dim", "k_neighbors", "u", "n_clusters"}


@cache
def _read(name: str) -> pd.DataFrame:
    return pd.read_csv(str(files("ncdlib.evidence").joinpath(name)))


def paper_results() -> pd.DataFrame:
    """All 261 figures of the paper's result tables: table, metric, dataset, method, value, std, bold.

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
    """The hyperparameters that the authors published: method, number_of_classes, dataset, parameter, value.

    Examples
    --------
    >>> from ncdlib.evidence import published_hyperparameters
    >>> list(published_hyperparameters().columns)
    ['method', 'number_of_classes', 'dataset', 'parameter', 'value']
    """
    return _read("published_hyperparameters.csv").copy()


def published_params(method: str, setting: str, dataset: str) -> dict[str, Any]:
    """The published hyperparameters of one cell, as parameters of our estimators.

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
