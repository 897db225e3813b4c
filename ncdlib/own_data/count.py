"""How many classes: by the method's own count, by a validity index, or as asked for; and what is to be said of it."""

from __future__ import annotations

import warnings
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from ncdlib.clustering.validity import KEstimate, estimate_n_clusters
from ncdlib.own_data.rows import Rows
from ncdlib.problem import UNLABELED

K_MAX = 30
ROWS_OF_A_NEW_CLASS = 5  # on average, at least, unless more classes are asked for
NEAR_TIE = 0.01  # of two silhouettes
NEAR_TIE_OF_VOTES = 0.5  # times the votes of the number that was chosen


def own_n_clusters(estimator: BaseEstimator) -> int | str:
    """Return what an estimator was told, where that is not what its class says of itself."""
    if _counts_itself(estimator):
        return estimator.n_clusters
    parameter = signature(type(estimator)).parameters.get("n_clusters")
    untold = parameter is None or estimator.n_clusters == parameter.default
    return "silhouette" if untold else estimator.n_clusters


def _counts_itself(estimator: BaseEstimator) -> bool:
    """Tell whether an estimator can count the classes, and tell of the votes."""
    return hasattr(type(estimator), "votes_")


def prepare_count(
    estimator: BaseEstimator, rows: Rows, n_clusters: int | str, k_max: int | None, seed: int
) -> KEstimate | None:
    """Set the number of classes, or let the estimator count; return the estimate of a validity index, if made."""
    if n_clusters == "auto":
        most = max(2, int(np.sum(rows.codes == UNLABELED)) // ROWS_OF_A_NEW_CLASS)
        estimator.set_params(n_clusters="auto", k_max=most if k_max is None else k_max)
        return None
    if isinstance(n_clusters, int) and _counts_itself(estimator):
        estimator.set_params(n_clusters=n_clusters)
        return None
    estimate = _count(estimator, rows, n_clusters, k_max, seed)
    estimator.set_params(n_clusters=estimate.n_clusters if isinstance(n_clusters, str) else n_clusters)
    return estimate


def _count(estimator: BaseEstimator, rows: Rows, n_clusters: int | str, k_max: int | None, seed: int) -> KEstimate:
    """Estimate the number of classes, in the space the method learns if it does so without that number (Section 5)."""
    from ncdlib.methods.spectral import NCDSpectralClustering

    X, codes = rows.numbers, rows.codes
    novel = codes == UNLABELED
    index = n_clusters if isinstance(n_clusters, str) else "silhouette"
    if k_max is None:
        k_max = max(2, min(K_MAX, novel.sum() // ROWS_OF_A_NEW_CLASS))
    ks = range(1 if index == "km_acc" else 2, min(k_max, novel.sum() - 1) + 1)
    options: dict[str, Any] = {"index": index, "k_range": ks, "random_state": seed}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "k_range is cut")  # where rows are equal, nobody asked for as many
        if hasattr(estimator, "estimate_n_clusters"):
            trained = clone(estimator).set_params(n_clusters=2).fit(X, codes)  # any number: it does not matter here
            known = {"X_known": X[~novel], "y_known": codes[~novel]} if index == "km_acc" else {}
            return trained.estimate_n_clusters(X[novel], **options, **known)
        if isinstance(estimator, NCDSpectralClustering):
            X = clone(estimator).set_params(n_clusters=n_clusters).fit(X, codes).embedding_
        return estimate_n_clusters(X[novel], **options, X_known=X[~novel], y_known=codes[~novel])


def notes_on_the_number(estimate: KEstimate, n_rows: int) -> list[str]:
    """Say where the number of classes could as well be another one."""
    k, scores = estimate.n_clusters, estimate.scores[estimate.index]
    notes = []
    if estimate.index == "votes":
        share = dict(zip(estimate.k_range.tolist(), scores.tolist(), strict=True))
        if ties := [other for other in share if other != k and share[other] >= NEAR_TIE_OF_VOTES * share.get(k, 0)]:
            others = ", ".join(
                f"{other} ({share[other]:.0%})" for other in sorted(ties, key=share.get, reverse=True)[:5]
            )
            notes.append(f"{k} classes have {share.get(k, 0):.0%} of the votes on their number; near to it: {others}.")
        return notes
    if k == estimate.k_range[-1] < n_rows - 1:
        notes.append(f"The estimate, {k} classes, is the largest number that was tried: there may be more.")
    if estimate.index == "silhouette":
        best = scores[estimate.k_range == k][0]
        ties = [int(other) for other in estimate.k_range[scores >= best - NEAR_TIE] if other != k]
        if ties:
            others = ", ".join(map(str, ties[:5])) + (", ..." if len(ties) > 5 else "")
            notes.append(f"The silhouette of {k} classes ({best:.2f}) is hardly better than that of {others}.")
    return notes


def notes_on_other_counts(k: int, refits: list[NDArray[np.int64]]) -> list[str]:
    """Say where fits with other seeds count other numbers of classes."""
    counts = sorted(len(np.unique(refit)) for refit in refits)
    if all(count == k for count in counts):
        return []
    return [f"Fits with other seeds count {', '.join(map(str, counts))} classes instead of {k}."]
