"""Values and words for the text of a chapter."""

from __future__ import annotations

import os

import numpy as np

from ncdlib.evidence.paper import DATASETS, PAPER_NAME_OF
from ncdlib.evidence.results import load_results


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
