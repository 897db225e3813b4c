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
    results = _read("paper_results.csv").copy()
    results["table"] = results["table"].str.removeprefix("table:")
    results["dataset"] = results["dataset"].map(DATASET_OF)
    return results


def published_hyperparameters() -> pd.DataFrame:
    """The hyperparameters that the authors published: method, number_of_classes, dataset, parameter, value."""
    return _read("published_hyperparameters.csv").copy()


def published_params(method: str, setting: str, dataset: str) -> dict[str, Any]:
    """The published hyperparameters of one cell, as parameters of our estimators.

    ``top_k`` is divided by 100, as the authors' code does; ``u`` becomes ``n_components``.

    Examples
    --------
    >>> from ncdlib.evidence.paper import published_params
    >>> published_params("NCD SC", "known", "pendigits")
    {'s_min': 0.3784, 'n_components': 15}
    """
    table = published_hyperparameters()
    rows = table[
        (table["method"] == method) & (table["number_of_classes"] == setting) & (table["dataset"] == dataset)
    ]
    params = {
        row.parameter: int(row.value) if row.parameter in _INTEGERS else float(row.value)
        for row in rows.itertuples()
    }
    if "u" in params:
        params["n_components"] = params.pop("u")
    if "top_k" in params:
        params["top_k"] /= 100
    return params
