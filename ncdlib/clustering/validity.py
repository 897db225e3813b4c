"""How many clusters are there? Validity indices, all from one set of k-means runs (Section 5 of the paper)."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from kneed import KneeLocator
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import calinski_harabasz_score, davies_bouldin_score
from sklearn.utils import check_consistent_length, check_random_state

from ncdlib._io.checks import check_index, check_positive, check_rows, encode_labels
from ncdlib.clustering.kernels import largest_distance, silhouette_scores, spanning_tree
from ncdlib.clustering.many_kmeans import many_k_means
from ncdlib.metrics import clustering_accuracy
from ncdlib.problem import UNLABELED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_ROWS = 10_000
"""Above this number of rows, the number of clusters is estimated on a random sample of this many."""


@dataclass(frozen=True, eq=False)
class KEstimate:
    """The estimated number of clusters, and the scores it comes from.

    Attributes
    ----------
    n_clusters : int
        The estimate of `index`.
    index : str
        The validity index that decided; "votes" where several counts were weighed against each other.
    k_range : array of shape (n_candidates,)
        The numbers of clusters tried.
    scores : dict of str to array of shape (n_candidates,)
        Each index at each candidate, averaged over the k-means runs ("elbow": the inertia). NaN where an
        index is not defined (all but "elbow" and "km_acc" at k = 1).
    estimates : dict of str to int
        The best candidate by each index.
    n_rows : int
        The number of rows the scores were computed on.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from ncdlib import estimate_n_clusters
    >>> X, _ = make_blobs(300, centers=4, cluster_std=0.5, random_state=1)
    >>> estimate = estimate_n_clusters(X, k_range=range(2, 9), random_state=0)
    >>> estimate
    KEstimate(n_clusters=4, index='silhouette', k_range=2..8)
    """

    n_clusters: int
    index: str
    k_range: NDArray[np.int64]
    scores: dict[str, NDArray[np.float64]] = field(repr=False)
    estimates: dict[str, int] = field(repr=False)
    n_rows: int

    def __repr__(self) -> str:
        k = self.k_range
        return f"KEstimate(n_clusters={self.n_clusters}, index={self.index!r}, k_range={k[0]}..{k[-1]})"

    def plot(self, ax: Axes | None = None, index: str | None = None) -> Axes:
        """Draw a score against the number of clusters, the estimate marked.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; axes of a new figure by default.
        index : str, default=None
            The index to draw, among those computed; the one that decided by default.

        Returns
        -------
        matplotlib Axes
        """
        import matplotlib.pyplot as plt

        ax = plt.subplots()[1] if ax is None else ax
        index = self.index if index is None else index
        best = self.estimates[index]
        if index == "votes":
            ax.bar(self.k_range, self.scores[index], color="black")
        else:
            ax.plot(self.k_range, self.scores[index], marker="o", markersize=3, color="black")
        ax.axvline(best, color="grey", linestyle="--", linewidth=1)
        ax.annotate(f"k = {best}", (best, 1), xycoords=("data", "axes fraction"), xytext=(4, -12),
                    textcoords="offset points")  # fmt: skip
        names = {"elbow": "inertia", "votes": "share of the votes"}
        ax.set(xlabel="number of clusters", ylabel=names.get(index, index.replace("_", " ")))
        return ax


def estimate_n_clusters(
    X: ArrayLike,
    index: str | Sequence[str] = "silhouette",
    k_range: Iterable[int] | None = None,
    *,
    n_runs: int = 3,
    n_init: int = 10,
    max_rows: int = MAX_ROWS,
    X_known: ArrayLike | None = None,
    y_known: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> KEstimate:
    """Estimate the number of clusters of `X` with a cluster validity index.

    For each candidate k, k-means runs `n_runs` times (the best of `n_init` initialisations each time); an
    index is averaged over the runs, and the candidate with the best average wins. All indices are computed
    from the same runs and the same distances.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        The rows to count clusters in: for novel class discovery, the unlabelled rows, best in a learned
        space.
    index : str or sequence of str, default="silhouette"
        One of `INDICES`, or several: the first decides, the others are computed along with it.
        "davies_bouldin" is best when low, the others when high; "elbow" takes the bend of the inertia curve
        (kneedle algorithm).
    k_range : iterable of int, default=None
        The candidates; 2 to 30 by default, and 1 to 30 if `index` contains "km_acc". Candidates that the
        rows cannot fill (k above the number of distinct rows, or above n_rows - 1) are left out, with a
        warning if they were asked for.
    n_runs, n_init : int
        k-means runs per candidate, and initialisations per run.
    max_rows : int, default=10,000
        With more rows than this, all is computed on a random sample of `max_rows` rows (drawn with
        `random_state`), which bounds memory and time.
    X_known, y_known : arrays, default=None
        Rows of known classes, and their classes, for "km_acc": k-means on known and unlabelled rows
        together, into C + k clusters where C is the number of known classes, is scored by the clustering
        accuracy on the known rows.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    KEstimate

    Examples
    --------
    >>> from ncdlib import load_dataset, estimate_n_clusters
    >>> problem = load_dataset("digits")
    >>> estimate = estimate_n_clusters(problem.X_novel, ["silhouette", "elbow"], range(2, 12), random_state=0)
    >>> sorted(estimate.scores)
    ['elbow', 'silhouette']
    """
    names = tuple(index) if np.iterable(index) and not isinstance(index, str) else (index,)
    for name in names:
        check_index(name, VALIDITY_INDICES)
    if not names:
        raise ValueError(f"index is empty: choose from {', '.join(INDICES)}")
    check_positive(n_runs=n_runs, n_init=n_init, max_rows=max_rows)
    random = check_random_state(random_state)
    X = check_rows(X, name="X among the rows to cluster")
    if "km_acc" in names:
        if X_known is None or y_known is None:
            raise ValueError('the index "km_acc" needs the known rows: pass X_known and y_known')
        X_known = check_rows(X_known, fitting=False)
        y_known = encode_labels(y_known)[0]
        check_consistent_length(X_known, y_known)
        if np.any(y_known == UNLABELED):
            raise ValueError("y_known has unlabelled rows: pass the rows of known classes only")
        if X_known.shape[1] != X.shape[1]:
            raise ValueError(f"X_known has {X_known.shape[1]} columns, and X has {X.shape[1]}")
    sample = _sample(X, max_rows, random)
    # A constant column says nothing of clusters, and one of 1e20 would hide the others: rounding is relative to it.
    sample = np.where(sample.min(axis=0) == sample.max(axis=0), 0, sample)
    ks = _candidates(k_range, sample, with_one="km_acc" in names)
    sweep = _Sweep(X, sample, ks, n_runs, n_init, max_rows, random, X_known, y_known)
    if set(names) != {"km_acc"}:
        sweep.partition()
    scores = {name: VALIDITY_INDICES[name].scores(sweep) for name in names}
    estimates = {name: VALIDITY_INDICES[name].best(ks, scores[name]) for name in names}
    return KEstimate(
        n_clusters=estimates[names[0]],
        index=names[0],
        k_range=ks,
        scores=scores,
        estimates=estimates,
        n_rows=len(sample),
    )


@dataclass(eq=False)
class _Sweep:
    """What the indices are computed from: partitions of the same rows into k clusters, for each candidate k."""

    X: NDArray[np.float64]
    sample: NDArray[np.float64]
    ks: NDArray[np.int64]
    n_runs: int
    n_init: int
    max_rows: int
    random: np.random.RandomState
    X_known: NDArray[np.float64] | None
    y_known: NDArray[np.int64] | None

    def partition(self) -> None:
        """Run k-means for all candidates at once."""
        # Indices do not depend on the origin or the unit; their arithmetic does.
        self.scaled = self.sample - self.sample.mean(axis=0)
        self.scaled /= self.scaled.std() or 1
        self.labels, self.inertias = many_k_means(self.sample, self.ks, self.n_runs, self.n_init, self.random)


def _sample(X: NDArray, max_rows: int, random: np.random.RandomState) -> NDArray:
    if len(X) <= max_rows:
        return X
    return X[np.sort(random.choice(len(X), max_rows, replace=False))]


def _candidates(k_range: Iterable[int] | None, X: NDArray, with_one: bool) -> NDArray[np.int64]:
    asked = range(1 if with_one else 2, 31) if k_range is None else k_range
    try:
        ks = np.unique(np.array([operator.index(k) for k in asked], dtype=np.int64))
    except (TypeError, OverflowError):  # no integers
        ks = np.array([])
    if len(ks) == 0 or ks[0] < 1:
        raise ValueError(f"k_range must hold positive numbers of clusters, got {k_range!r}")
    if not with_one and ks[-1] < 2:
        raise ValueError("k_range must reach 2: a validity index compares clusters")
    # The first rows settle it in all ordinary cases, and the check stays cheap.
    n_distinct = len(np.unique(X[: 4 * ks[-1]], axis=0))
    if n_distinct < ks[-1]:
        n_distinct = len(np.unique(X, axis=0))
    limit = min(n_distinct, len(X) - 1)
    if limit < max(2, ks[0]):
        raise ValueError(
            f"{len(X)} rows to cluster, {n_distinct} of them distinct: too few to compare numbers of clusters "
            f"from {ks[0]} up"
        )
    if k_range is not None and ks[-1] > limit:
        warnings.warn(
            f"k_range is cut at {limit}: {len(X)} rows, {n_distinct} of them distinct, fill no more clusters",
            stacklevel=3,
        )
    return ks[ks <= limit]


def dunn_scores(X: ArrayLike, labelings: Sequence[ArrayLike]) -> NDArray[np.float64]:
    """Return the Dunn index of each of several partitions of the same rows.

    The index is the smallest distance between rows of different clusters over the largest distance inside a
    cluster. The former lies on an edge of the minimum spanning tree of the rows, which is the same for all
    partitions.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
    labelings : sequence of arrays of shape (n_rows,)
        At least two clusters each.

    Returns
    -------
    array of shape (n_labelings,)
        Infinite where every cluster is a single point.

    Examples
    --------
    >>> from ncdlib.clustering.validity import dunn_scores
    >>> dunn_scores([[0.0], [1.0], [10.0], [12.0]], [[0, 0, 1, 1], [0, 1, 1, 1]]).round(3).tolist()
    [4.5, 0.091]
    """
    X = check_rows(X).astype(np.float64, copy=False)
    X = X - X.mean(axis=0)  # distances by squares lose digits to a large mean
    squares, doubled = np.einsum("ij,ij->i", X, X), 2 * X
    ends, _ = spanning_tree(len(X), lambda row: squares - doubled @ X[row] + squares[row])
    # Exact here: the expanded square above loses the digits of short distances.
    lengths = np.array([np.linalg.norm(X[b] - X[a]) for a, b in ends])
    scores = []
    for labels in map(np.asarray, labelings):
        between = labels[ends[:, 0]] != labels[ends[:, 1]]
        if not between.any():
            raise ValueError("the Dunn index needs at least two clusters")
        diameter = max(largest_distance(X[labels == cluster]) for cluster in np.unique(labels))
        scores.append(lengths[between].min() / diameter if diameter > 0 else np.inf)
    return np.array(scores)


def _calinski_harabasz_scores(X: NDArray, labelings: NDArray) -> NDArray:
    scores = np.array([calinski_harabasz_score(X, labels) for labels in labelings])
    for i in np.flatnonzero(scores == 1):  # also scikit-learn's word for clusters of one point each, the best there are
        labels = labelings[i]
        if all(np.ptp(X[labels == cluster], axis=0).max() == 0 for cluster in np.unique(labels)):
            scores[i] = np.inf
    return scores


def _davies_bouldin_scores(X: NDArray, labelings: NDArray) -> NDArray:
    return np.array([davies_bouldin_score(X, labels) for labels in labelings])


def _means_over_runs(score: Callable[[NDArray, NDArray], NDArray]) -> Callable[[_Sweep], NDArray]:
    """Turn a score of partitions into scores of the candidates, NaN for a single cluster: not defined there."""

    def scores(sweep: _Sweep) -> NDArray:
        per_run = np.full(sweep.inertias.shape, np.nan)
        several = sweep.ks > 1
        labelings = sweep.labels[several].reshape(-1, len(sweep.sample))
        per_run[several] = score(sweep.scaled, labelings).reshape(-1, sweep.n_runs)
        return per_run.mean(axis=1)

    return scores


def _mean_inertia(sweep: _Sweep) -> NDArray:
    return sweep.inertias.mean(axis=1)


def _km_acc(sweep: _Sweep) -> NDArray:
    X, X_known, max_rows, random = sweep.X, sweep.X_known, sweep.max_rows, sweep.random
    X_all, y_all = np.concatenate([X_known, X]), np.concatenate([sweep.y_known, np.full(len(X), UNLABELED)])
    # NOTE[DIFF] The paper does not speak of samples; of its data sets, only Letter is larger than the default.
    if len(X_all) > max_rows:
        rows = random.choice(len(X_all), max_rows, replace=False)
        n_known = min(len(X_known), max_rows // 2)  # at least: they are what is scored
        if np.sum(rows < len(X_known)) < n_known:
            known = random.choice(len(X_known), n_known, replace=False)
            rows = np.append(known, len(X_known) + random.choice(len(X), max_rows - n_known, replace=False))
        rows = np.sort(rows)
        X_all, y_all = X_all[rows], y_all[rows]
    known = y_all >= 0
    n_classes = int(sweep.y_known.max()) + 1
    labels, _ = many_k_means(X_all, n_classes + sweep.ks, sweep.n_runs, sweep.n_init, random)
    return np.array([np.mean([clustering_accuracy(y_all[known], run[known]) for run in runs]) for runs in labels])


def _highest(ks: NDArray, scores: NDArray) -> int:
    return int(ks[np.nanargmax(scores)])


def _lowest(ks: NDArray, scores: NDArray) -> int:
    return int(ks[np.nanargmin(scores)])


def _knee(ks: NDArray, scores: NDArray) -> int:
    bends = len(ks) > 2 and np.ptp(scores) > 0
    knee = KneeLocator(ks, scores, curve="convex", direction="decreasing").knee if bends else None
    if knee is None:
        warnings.warn(f"the inertia curve has no elbow: the smallest candidate, {ks[0]}, is taken", stacklevel=3)
        return int(ks[0])
    return int(knee)


@dataclass(frozen=True)
class ValidityIndex:
    """How an index scores numbers of clusters, and which score is best.

    Attributes
    ----------
    scores : callable
        From the partitions of a sweep to a score for each candidate.
    best : callable
        From the candidates and their scores to the best candidate; the one with the highest score by default.

    Examples
    --------
    >>> import numpy as np
    >>> from ncdlib.clustering.validity import VALIDITY_INDICES
    >>> index = VALIDITY_INDICES["davies_bouldin"]
    >>> int(index.best(np.array([2, 3, 4]), np.array([0.8, 0.3, 0.5])))  # the lowest value is the best
    3
    """

    scores: Callable[[_Sweep], NDArray]
    best: Callable[[NDArray, NDArray], int] = _highest


VALIDITY_INDICES = {
    "silhouette": ValidityIndex(_means_over_runs(silhouette_scores)),
    "calinski_harabasz": ValidityIndex(_means_over_runs(_calinski_harabasz_scores)),
    "davies_bouldin": ValidityIndex(_means_over_runs(_davies_bouldin_scores), _lowest),
    "dunn": ValidityIndex(_means_over_runs(dunn_scores)),
    "elbow": ValidityIndex(_mean_inertia, _knee),
    "km_acc": ValidityIndex(_km_acc),
}
"""The one list of validity indices: whatever offers, checks or measures indices reads it.

:meta hide-value:
"""

INDICES = tuple(VALIDITY_INDICES)
"""Names of the validity indices. "elbow" is a rule on the k-means inertia, "km_acc" needs known classes."""
