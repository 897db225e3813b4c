"""How well a partition agrees with the true classes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix


def clustering_accuracy(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Return the share of rows that are right under the best one-to-one matching of clusters to classes.

    The Hungarian algorithm finds the matching. Where there are more clusters than classes, the rows of the
    unmatched clusters count as wrong; where there are fewer, those of the unmatched classes do.

    Parameters
    ----------
    y_true, y_pred : array of shape (n_rows,)
        True classes and predicted clusters: integers or strings, with any values.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from ncdlib import clustering_accuracy
    >>> clustering_accuracy(["a", "a", "b", "b"], [7, 7, 3, 7])
    0.75
    """
    y_true, y_pred = _check_labels(y_true, y_pred)
    counts = contingency_matrix(y_true, y_pred)
    matched = linear_sum_assignment(counts, maximize=True)
    return float(counts[matched].sum() / len(y_true))


# How well clusters agree with classes, 1 at best. What stands here can be asked for by name wherever there is a choice.
SCORES: dict[str, Callable[[NDArray, NDArray], float]] = {
    "acc": clustering_accuracy,
    "nmi": normalized_mutual_info_score,
    "ari": adjusted_rand_score,
}


def evaluate(y_true: ArrayLike, y_pred: ArrayLike) -> dict[str, float]:
    """Return the clustering accuracy, the normalised mutual information and the adjusted Rand index.

    Parameters
    ----------
    y_true, y_pred : array of shape (n_rows,)
        True classes and predicted clusters.

    Returns
    -------
    dict
        The fractions "acc", "nmi" and "ari".

    Examples
    --------
    >>> from ncdlib import evaluate
    >>> evaluate([0, 0, 1, 1], [1, 1, 0, 0])
    {'acc': 1.0, 'nmi': 1.0, 'ari': 1.0}
    """
    y_true, y_pred = _check_labels(y_true, y_pred)
    return {name: float(score(y_true, y_pred)) for name, score in SCORES.items()}


def _check_labels(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[NDArray, NDArray]:
    y_true, y_pred = np.asarray(y_true), np.asarray(y_pred)
    if y_true.ndim != 1 or y_pred.ndim != 1:
        raise ValueError(f"labels must be one-dimensional, got shapes {y_true.shape} and {y_pred.shape}")
    if len(y_true) != len(y_pred) or len(y_true) == 0:
        raise ValueError(
            "y_true and y_pred must have the same length, at least 1: "
            f"y_true has {len(y_true)} labels, y_pred has {len(y_pred)}"
        )
    return y_true, y_pred
