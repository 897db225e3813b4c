"""Values and words for the text of a chapter."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd

from ncdlib.evidence.paper import DATASETS, PAPER_NAME_OF
from ncdlib.evidence.results import load_results, results_folder


def glue_all(**values: object) -> None:
    """Hand values to the text of a chapter, each under its name, with NumPy's scalars as plain numbers.

    The text shows a value with ``{glue:text}`name:.1f` ``. A NumPy scalar could not be formatted there.

    Examples
    --------
    >>> import numpy as np
    >>> from ncdlib.evidence.show import glue_all
    >>> glue_all(accuracy=np.float64(76.5), best="PBN")
    """
    from myst_nb import glue

    for name, value in values.items():
        glue(name, value.item() if isinstance(value, np.generic) else value, display=False)


def starred_names(folder: str | os.PathLike | None = None) -> dict[str, str]:
    """Name the data sets as the paper does, with a star where our runs are on a variant of the original.

    Examples
    --------
    >>> from ncdlib.evidence.show import starred_names
    >>> names = starred_names()
    >>> names["letter"], names["census"]
    ('Letter', 'Census*')
    """
    source = load_results(folder).groupby("dataset")["source"].first()
    return {name: PAPER_NAME_OF[name] + "*" * (source.get(name, "original") != "original") for name in DATASETS}


def variant_sources(folder: str | os.PathLike | None = None) -> dict[str, str]:
    """Say of each data set with a star what its data are, under ``source_`` and its name.

    Examples
    --------
    >>> from ncdlib.evidence.show import variant_sources
    >>> sorted(variant_sources())
    ['source_census', 'source_human']
    """
    datasets = pd.read_csv((results_folder() if folder is None else folder) / "datasets.csv", index_col="name")
    variants = [name for name, printed in starred_names(folder).items() if printed.endswith("*")]
    return {f"source_{name}": datasets.loc[name, "source"] for name in variants}


def lower_by(cells: pd.DataFrame, points: float = 3.0) -> str:
    """Name the cells where our own search ends lower than the published values by more than so many points.

    Parameters
    ----------
    cells : DataFrame
        Rows of `compare_with_paper`.
    points : float
        A smaller loss is not named.

    Examples
    --------
    >>> import pandas as pd
    >>> from ncdlib.evidence.show import lower_by
    >>> cell = {"dataset": "letter", "method": "PBN", "published": 62.0, "searched": 57.5}
    >>> lower_by(pd.DataFrame([cell, cell | {"dataset": "census"}, cell | {"searched": 61.0}]))
    'PBN on Letter (-4.5), Census* (-4.5)'
    """
    names = starred_names()
    cells = cells[cells["dataset"] != "average"]
    cells = cells.assign(loss=cells["searched"] - cells["published"])
    cells = cells[cells["loss"] < -points]
    parts = []
    for method, lower in cells.groupby("method", sort=False):
        places = [
            f"{names[dataset]} ({loss:+.1f})" for dataset, loss in zip(lower["dataset"], lower["loss"], strict=True)
        ]
        parts.append(f"{method} on {', '.join(places)}")
    return "; ".join(parts) or "none"


def range_in_words(values: pd.Series) -> str:
    """Say how far changes go: their mean, and the smallest and the largest with their names.

    Examples
    --------
    >>> import pandas as pd
    >>> from ncdlib.evidence.show import range_in_words
    >>> range_in_words(pd.Series({"Letter": 2.0, "Human*": -1.0}))
    '+0.5 points on average, and upwards on 1 of 2 data sets (from -1.0 on Human* to +2.0 on Letter)'
    """
    return (
        f"{values.mean():+.1f} points on average, and upwards on {(values > 0).sum()} of {len(values)} data sets "
        f"(from {values.min():+.1f} on {values.idxmin()} to {values.max():+.1f} on {values.idxmax()})"
    )
