"""How sure: what the agreement of many clusterings was worth where the truth was known.

The better the single pipelines agree with their consensus, on a class and at other resolutions, and the better they
found hidden known classes, the likelier is a class to be right. How likely was measured on the tables of the package,
with many choices of the novel classes: `ncdlib.evidence.confidence` makes the coefficients that are read here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from ncdlib.clustering.consensus import memberships
from ncdlib.problem import UNLABELED

if TYPE_CHECKING:
    from ncdlib.own_data.rows import Rows
    from ncdlib.selection.portfolio import MetricNCD

COEFFICIENTS = Path(__file__).with_name("confidence.csv")
LITTLE = 0.005  # of the votes: no runner-up
SIGNS = ["agreement", "counted_agreement", "hidden"]  # all of them between 0 and 1


def signs_of_classes(model: MetricNCD) -> pd.DataFrame:
    """Return what speaks for each class; NaN where it was not looked at, as the count where the number was given."""
    n_classes = len(model.agreement_)
    counted = model.counted_agreement_ if len(model.counted_agreement_) else np.full(n_classes, np.nan)
    hidden = np.nan
    if model.hidden_scores_:
        names = list(model.hidden_scores_)
        hidden = np.average([model.hidden_scores_[n] for n in names], weights=[model.weights_[n] for n in names])
    return pd.DataFrame({"agreement": model.agreement_, "counted_agreement": counted, "hidden": hidden})


def signs_of_table(model: MetricNCD) -> pd.DataFrame:
    """Return the same for all classes together, each with the weight of its rows."""
    signs = signs_of_classes(model)
    sizes = np.bincount(model.reference_labels_, minlength=len(signs))
    return (signs.mul(sizes, axis=0) / sizes.sum()).sum(skipna=False).to_frame().T


def confidence_of_rows(
    model: BaseEstimator, refits: Sequence[NDArray[np.int64]], rows: Rows, labels: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return how much speaks for the class of each row, and the class for which most of the rest speaks (-1: none).

    What speaks are the weighted pipelines of a model that tells of them, or else the fits with other seeds.
    """
    sure, runner_up = np.full(len(labels), np.nan), np.full(len(labels), UNLABELED)
    if hasattr(model, "vote"):
        judged = np.flatnonzero(labels >= 0)
        votes = model.vote(rows.all_numbers[judged])
    else:
        unlabeled = rows.codes == UNLABELED
        judged, own = rows.learned[unlabeled], model.labels_[unlabeled]
        votes = memberships([own, *refits], np.ones(1 + len(refits)), own)
        judged, votes = judged[labels[judged] >= 0], votes[labels[judged] >= 0]
    lines = np.arange(len(judged))
    sure[judged] = votes[lines, labels[judged]]
    votes[lines, labels[judged]] = 0
    runner_up[judged] = np.where(votes.max(axis=1) >= LITTLE, votes.argmax(axis=1), UNLABELED)
    return sure, runner_up


def confidence_of_classes(model: BaseEstimator) -> tuple[dict[int, float], float]:
    """Return the probability that each class is right, and all of them; none and NaN where a model cannot tell."""
    if not hasattr(model, "agreement_"):
        return {}, np.nan
    of_classes = confidence(signs_of_classes(model), of="class")
    return dict(enumerate(of_classes.tolist())), float(confidence(signs_of_table(model), of="table")[0])


def confidence(signs: pd.DataFrame, of: str) -> NDArray[np.float64]:
    """Return the probability that each class is right (``of="class"``), or the whole partition (``of="table"``).

    A class is right if its F1 score against the true class that it matches best is at least .8; a partition if its
    adjusted Rand index is. A sign that is NaN counts as it was on average where the coefficients were made.

    Examples
    --------
    >>> import pandas as pd
    >>> from ncdlib.own_data.confidence import confidence
    >>> signs = pd.DataFrame({"agreement": [0.3, 0.95], "counted_agreement": [0.3, 0.95], "hidden": [0.2, 0.9]})
    >>> doubtful, sure = confidence(signs, of="class")
    >>> bool(doubtful < 0.5 < sure)
    True
    """
    return apply_map(signs, _coefficients().loc[of])


def apply_map(signs: pd.DataFrame, line: pd.Series) -> NDArray[np.float64]:
    """Return the logistic map of signs, of which `line` holds an intercept, weights and usual values."""
    filled = signs[SIGNS].fillna({sign: line[f"usual_{sign}"] for sign in SIGNS})
    return 1 / (1 + np.exp(-line["intercept"] - filled.to_numpy(dtype=float) @ line[SIGNS].to_numpy(dtype=float)))


@cache
def _coefficients() -> pd.DataFrame:
    return pd.read_csv(COEFFICIENTS, index_col="of")
