"""The best partition that the known classes can buy: a portfolio of clusterings, weighed where the answer is known."""

from __future__ import annotations

from math import comb
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from ncdlib._io.checks import check_n_clusters, check_positive
from ncdlib.clustering.consensus import best_overlaps, consensus, memberships, weighted_median
from ncdlib.clustering.graphs import Communities, fuzzy_neighbor_graph, graph_coordinates, shared_neighbor_graph
from ncdlib.clustering.validity import KEstimate, estimate_n_clusters
from ncdlib.methods.base import NCDEstimator
from ncdlib.methods.metric import column_scale, whitening_matrix, within_class_residuals
from ncdlib.problem import UNLABELED
from ncdlib.selection.hidden_classes import MIN_HIDDEN, MIN_VISIBLE, HiddenClassKFold

# All that follows was fixed on class splits other than the paper's and on tables other than its seven.
SHRINKAGES = {"raw": 1.0, "shrunk": 0.1, "metric": "ledoit_wolf"}  # "cosine" is "metric", with rows of length 1
SPACES = (*SHRINKAGES, "cosine")
CLUSTERERS = ("k-means", "communities", "spectral", "wide spectral")
PIPELINES = tuple((space, clusterer) for space in SPACES for clusterer in CLUSTERERS)
RESOLUTIONS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
COUNTERS = tuple((space, resolution) for space in SPACES[1:] for resolution in RESOLUTIONS)
USUAL_RESOLUTION, UNUSUAL = 0.2, 0.05  # each doubling or halving away from it costs this much hidden ARI, squared
POWER = 2  # of the hidden ARI in a pipeline's weight
SHARPNESS = 0.05  # of hidden ARI: a counter worse by this much has 1/e of the weight
N_FOLDS = 4
MAX_HIDDEN, MAX_HIDDEN_PER_CLASS = 1_000, 200  # rows of a fold
CHUNK = 50_000  # rows assigned at a time
N_VOTES = 10  # nearest rows that tell the class of a new one


class MetricNCD(ClassNamePrefixFeaturesOutMixin, TransformerMixin, NCDEstimator):
    """A consensus of clusterings in the metric of the known classes, weighed on hidden known classes.

    1. The unlabelled rows are seen in four spaces: standardised columns, the metric of the known classes
       (:class:`KnownClassMetric`) with little shrinkage and with Ledoit and Wolf's, and the angles in the latter.
    2. In each, four clusterers part them: k-means, communities of the neighbour graph merged to as many as asked
       for, and k-means on as many, and on twice as many, of the graph's leading coordinates.
    3. Up to four times some known classes are hidden, the metric is learned from the others, and the same
       sixteen pipelines cluster the hidden rows. The adjusted Rand index there, squared, is a pipeline's weight.
    4. The partition that agrees best with the weighted sixteen is the answer.

    The number of novel classes is counted likewise: communities at seven resolutions in three spaces, weighed by how
    well they bring out the hidden classes; the weighted median of their numbers. No novel label is used.
    With two known classes none can be hidden: all pipelines weigh alike then, and `explanation_` says so.

    Parameters
    ----------
    n_clusters : int or "auto", default="auto"
        Number of novel classes; "auto" estimates it.
    n_neighbors : int, default=15
        Neighbours of a row in the graphs.
    max_rows : int, default=1000
        The most unlabelled rows that are clustered: a random sample of a larger table. The others go where their
        nearest rows of the sample are.
    k_max : int or None, default=None
        The largest number of classes that can be counted.
    random_state : int, RandomState or None
        Seed of samples, folds and starts.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Cluster of each unlabelled row, -1 for labelled rows.
    n_clusters_ : int
    explanation_ : str
        What was chosen, and why, in a line.
    choice_ : str
        The pipeline of the largest weight.
    hidden_scores_ : dict of str to float
        Mean adjusted Rand index of each pipeline on hidden known classes; empty where none could be hidden.
    weights_ : dict of str to float
        Weight of each pipeline in the consensus.
    counts_ : dict of str to float
        Weight of each number of classes that was counted; empty where `n_clusters` was given.
    sample_ : array of int
        The unlabelled rows that were clustered: their positions in X.
    partitions_ : dict of str to array
        What each pipeline made of these rows.
    agreement_ : array of shape (n_clusters_,)
        How well each class is found by the single pipelines: weighted mean overlap (intersection over union) with the
        cluster that matches it best.
    counted_agreement_ : array of shape (n_clusters_,)
        The same for the communities that were counted, finer and coarser ones; empty where `n_clusters` was given.
    classes_ : array
        The known classes.

    Examples
    --------
    >>> from ncdlib import MetricNCD, make_ncd_blobs
    >>> problem = make_ncd_blobs(random_state=0)
    >>> model = MetricNCD(random_state=0).fit(problem.X, problem.y)
    >>> model.n_clusters_ == len(set(problem.y_novel))
    True
    """

    def __init__(
        self,
        n_clusters: int | str = "auto",
        *,
        n_neighbors: int = 15,
        max_rows: int = 1000,
        k_max: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.max_rows = max_rows
        self.k_max = k_max
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Find the novel classes among the rows whose ``y`` is -1."""
        X, codes = self._check_fit(X, y)
        check_positive(n_neighbors=self.n_neighbors, max_rows=self.max_rows)
        if self.k_max is not None:
            check_positive(k_max=self.k_max)
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(2**31))
        self._n_features_out = X.shape[1]
        self.mean_, self.scale_ = column_scale(X)
        X = (X - self.mean_) / self.scale_
        unlabeled = np.flatnonzero(codes == UNLABELED)
        size = min(len(unlabeled), self.max_rows)
        if not isinstance(self.n_clusters, str):
            size = min(len(unlabeled), max(size, self.n_clusters))
        sample = np.sort(rng.choice(unlabeled, size, replace=False))
        with threadpool_limits(1):  # with so few rows, threads wait for each other more than they work
            self._cluster_sample(X, codes, sample, rng, seed)
        self.labels_ = np.full(len(codes), UNLABELED)
        self.labels_[unlabeled] = self._vote(X[unlabeled])[0]
        self.labels_[sample] = self.reference_labels_
        return self

    def _cluster_sample(
        self, X: NDArray, codes: NDArray, sample: NDArray, rng: np.random.RandomState, seed: int
    ) -> None:
        """Weigh the pipelines on hidden classes, count, and part the rows of the sample."""
        labeled, unlabeled = codes != UNLABELED, codes == UNLABELED
        self.matrices_ = _metrics(X[labeled], codes[labeled])
        self.reference_ = X[sample]
        spaces = _spaces(self.reference_, self.matrices_)
        self.center_ = spaces["metric"].mean(axis=0)
        clusterers = {space: _Clusterer(space, Z, self.n_neighbors, seed) for space, Z in spaces.items()}

        pipeline_scores, counter_scores = self._hidden_scores(X, codes, rng, seed)
        counter_weights = self._count(X[unlabeled], clusterers, counter_scores, rng)
        weights = np.ones(len(PIPELINES))
        if len(pipeline_scores):
            weights = np.maximum(pipeline_scores.mean(axis=0), 1e-3) ** POWER
        weights /= weights.sum()
        parts = [clusterers[space].partition(clusterer, self.n_clusters_) for space, clusterer in PIPELINES]
        self.partitions_ = {_name(*pipeline): part for pipeline, part in zip(PIPELINES, parts, strict=True)}
        self.sample_ = sample
        self.reference_labels_ = consensus(parts, weights, self.n_clusters_)
        self.reference_votes_ = memberships(parts, weights, self.reference_labels_)
        self.agreement_ = _agreement(self.reference_labels_, parts, weights)
        found = [clusterers[space].communities(resolution) for space, resolution in COUNTERS] if self.counts_ else []
        self.counted_agreement_ = _agreement(self.reference_labels_, found, counter_weights)
        self.space_weights_ = weights.reshape(len(SPACES), -1).sum(axis=1)
        self._explain(weights, pipeline_scores)

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return the novel class that the nearest clustered rows are in, by weighted vote over the spaces."""
        return self._vote((self._check_new(X) - self.mean_) / self.scale_)[0]

    def vote(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the share of the weighted pipelines that speaks for each row in each class; lines add up to 1."""
        return self._vote((self._check_new(X) - self.mean_) / self.scale_)[1]

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the rows in the metric of the known classes."""
        return (self._check_new(X) - self.mean_) / self.scale_ @ self.matrices_["metric"]

    def estimate_n_clusters(self, X: ArrayLike, X_known: ArrayLike | None = None, **options: Any) -> KEstimate:
        """Estimate how many classes these rows hold with a validity index in the metric: see `estimate_n_clusters`."""
        known = {} if X_known is None else {"X_known": self.transform(X_known)}
        return estimate_n_clusters(self.transform(X), **options, **known)

    @property
    def votes_(self) -> KEstimate | None:
        """The votes on the number of classes, as an estimate that can be drawn; None where the number was given."""
        if not self.counts_:
            return None
        ks = np.arange(min(map(int, self.counts_)), max(map(int, self.counts_)) + 1)
        shares = np.array([self.counts_.get(str(k), 0.0) for k in ks])
        k = self.n_clusters_
        return KEstimate(k, "votes", ks, {"votes": shares}, {"votes": k}, len(self.reference_))

    def _check_n_clusters(self, n_rows: int) -> None:
        if not (isinstance(self.n_clusters, str) and self.n_clusters == "auto"):
            allowed = "a positive integer or 'auto'"
            check_n_clusters(self.n_clusters, n_rows, rows="unlabelled rows", allowed=allowed)

    def _hidden_scores(self, X: NDArray, codes: NDArray, rng: np.random.RandomState, seed: int) -> tuple:
        """Hidden ARI of each pipeline and of each counter, one row a fold; hidden rows are clustered alone."""
        n_known = len(self.classes_)
        n_hidden = max(MIN_HIDDEN, n_known // 2)
        pipeline_scores, counter_scores, rows_per_class = [], [], []
        n_folds = min(N_FOLDS, comb(n_known, n_hidden)) if n_known >= n_hidden + MIN_VISIBLE else 0
        folds = HiddenClassKFold(n_folds, random_state=seed).split(y=codes) if n_folds else ()
        for fold in folds:
            per_class = min(MAX_HIDDEN_PER_CLASS, MAX_HIDDEN // n_hidden)
            hidden = np.concatenate([_some(fold.hidden[codes[fold.hidden] == c], per_class, rng) for c in fold.classes])
            if len(hidden) <= n_hidden:
                continue
            truth = codes[hidden]
            rows_per_class.append(len(hidden) / n_hidden)
            matrices = _metrics(X[fold.visible], codes[fold.visible])
            spaces = _spaces(X[hidden], matrices)
            clusterers = {space: _Clusterer(space, Z, self.n_neighbors, seed) for space, Z in spaces.items()}
            parts = [clusterers[space].partition(clusterer, n_hidden) for space, clusterer in PIPELINES]
            pipeline_scores.append([adjusted_rand_score(truth, part) for part in parts])
            if self.n_clusters == "auto":
                found = [clusterers[space].communities(resolution) for space, resolution in COUNTERS]
                counter_scores.append([adjusted_rand_score(truth, part) for part in found])
        self.rows_per_hidden_class_ = float(np.mean(rows_per_class)) if rows_per_class else 0.0
        return np.array(pipeline_scores), np.array(counter_scores)

    def _count(self, X: NDArray, clusterers: dict, scores: NDArray, rng: np.random.RandomState) -> NDArray:
        """Set `n_clusters_` and `counts_`; return the counters' weights.

        The fewer rows a class has in the graph, the fewer communities are seen. So where the first count leaves a
        novel class fewer rows than a hidden class had, more are drawn, as far as there are, for a second count.
        """
        self.counts_: dict[str, float] = {}
        if self.n_clusters != "auto":
            self.n_clusters_ = int(self.n_clusters)
            return np.array([])
        unusual = np.log2([resolution / USUAL_RESOLUTION for _, resolution in COUNTERS]) ** 2
        merit = -UNUSUAL * unusual + (scores.mean(axis=0) if len(scores) else 0)
        weights = np.exp((merit - merit.max()) / SHARPNESS)
        counted = _counts(clusterers)
        alike = min(len(X), int(self.rows_per_hidden_class_ * weighted_median(counted, weights)), 3 * self.max_rows)
        if alike > len(self.reference_):
            spaces = _spaces(X[np.sort(rng.choice(len(X), alike, replace=False))], self.matrices_)
            seed = clusterers["raw"].seed
            counted = _counts({space: _Clusterer(space, Z, self.n_neighbors, seed) for space, Z in spaces.items()})
        counted = counted if self.k_max is None else np.minimum(counted, self.k_max)
        self.n_clusters_ = weighted_median(counted, weights)
        self.counts_ = {str(k): float(weights[counted == k].sum() / weights.sum()) for k in np.unique(counted)}
        return weights

    def _explain(self, weights: NDArray, scores: NDArray) -> None:
        names = [_name(*pipeline) for pipeline in PIPELINES]
        self.weights_ = dict(zip(names, weights.tolist(), strict=True))
        self.hidden_scores_ = dict(zip(names, scores.mean(axis=0).tolist(), strict=True)) if len(scores) else {}
        self.choice_ = max(self.weights_, key=self.weights_.__getitem__)
        counted = "as asked for"
        if self.counts_:
            likely = sorted(self.counts_, key=self.counts_.__getitem__, reverse=True)[:3]
            counted = (
                "counted; " + ", ".join(f"{k} has {100 * self.counts_[k]:.0f} %" for k in likely) + " of the votes"
            )
        why = "equal weights: no known class could be hidden to weigh them"
        if self.hidden_scores_:
            best = self.hidden_scores_[self.choice_]
            why = f"weighed on {len(scores)} sets of hidden known classes, best there {self.choice_} (ARI {best:.2f})"
        self.explanation_ = f"{self.n_clusters_} novel classes ({counted}); consensus of {len(names)} pipelines, {why}"

    def _vote(self, X: NDArray) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Class of standardised rows, and the pipelines' votes, some at a time: four copies of a table are too many."""
        reference = _spaces(self.reference_, self.matrices_, self.center_)
        n_neighbors = min(N_VOTES, len(self.reference_))
        searches = [NearestNeighbors(n_neighbors=n_neighbors, algorithm="brute").fit(Z) for Z in reference.values()]
        n_classes = self.reference_votes_.shape[1]
        values = np.hstack([np.eye(n_classes)[self.reference_labels_], self.reference_votes_])
        labels, votes = np.empty(len(X), dtype=np.int64), np.empty((len(X), n_classes))
        for start in range(0, len(X), CHUNK):
            rows = X[start : start + CHUNK]
            chosen = np.zeros((len(rows), 2 * n_classes))
            spaces = _spaces(rows, self.matrices_, self.center_).values()
            for weight, search, Z in zip(self.space_weights_, searches, spaces, strict=True):
                distances, neighbors = search.kneighbors(Z)
                nearness = 1 / (distances + 1e-9)  # a row of the sample goes where it is
                nearness *= weight / nearness.sum(axis=1, keepdims=True)
                bounds = np.arange(0, nearness.size + 1, n_neighbors)
                chosen += (
                    sparse.csr_array((nearness.ravel(), neighbors.ravel(), bounds), (len(rows), len(values))) @ values
                )
            labels[start : start + CHUNK] = chosen[:, :n_classes].argmax(axis=1)
            votes[start : start + CHUNK] = chosen[:, n_classes:]
        return labels, votes


def _agreement(labels: NDArray, partitions: list[NDArray], weights: NDArray) -> NDArray[np.float64]:
    if not partitions:
        return np.array([])
    return np.average([best_overlaps(labels, partition) for partition in partitions], axis=0, weights=weights)


def _name(space: str, clusterer: str) -> str:
    return f"{clusterer} in {space}"


def _counts(clusterers: dict[str, _Clusterer]) -> NDArray[np.int64]:
    return np.array([clusterers[space].communities(resolution).max() + 1 for space, resolution in COUNTERS])


class _Clusterer:
    """Partitions of rows in one space; the graph and what is made of it serve all of them."""

    def __init__(self, space: str, Z: NDArray, n_neighbors: int, seed: int) -> None:
        self.Z, self.seed = Z, seed
        self.graph = None
        if len(Z) > 1:
            make_graph = fuzzy_neighbor_graph if space == "cosine" else shared_neighbor_graph
            self.graph = make_graph(Z, n_neighbors)
            self.communities = Communities(self.graph, seed)
        else:
            self.communities = lambda resolution: np.zeros(len(Z), dtype=np.int64)

    def partition(self, clusterer: str, k: int) -> NDArray[np.int64]:
        if k == 1 or self.graph is None:
            return np.zeros(len(self.Z), dtype=np.int64)
        if clusterer == "communities":
            return self.communities.merged_to(k)
        if clusterer == "k-means":
            return self._k_means(self.Z, k)
        n_coordinates = k if clusterer == "spectral" else 2 * k
        return self._k_means(normalize(graph_coordinates(self.graph, n_coordinates)), k)

    def _k_means(self, Z: NDArray, k: int) -> NDArray[np.int64]:
        k = min(k, len(np.unique(Z, axis=0)))
        return KMeans(k, n_init=3, random_state=self.seed).fit_predict(Z).astype(np.int64)


def _metrics(X: NDArray, codes: NDArray) -> dict[str, NDArray]:
    """Matrices that take standardised rows into the spaces, learned from labelled rows."""
    residuals, n_free = within_class_residuals(X, codes)
    return {
        space: whitening_matrix(residuals, n_free, shrinkage)[0]
        for space, shrinkage in SHRINKAGES.items()
        if space != "raw"
    }


def _spaces(X: NDArray, matrices: dict[str, NDArray], center: NDArray | None = None) -> dict[str, NDArray]:
    """Standardised rows in each of `SPACES`; angles are seen from `center`, or from the mean of the rows."""
    spaces = {"raw": X} | {space: X @ matrix for space, matrix in matrices.items()}
    center = spaces["metric"].mean(axis=0) if center is None else center
    return spaces | {"cosine": normalize(spaces["metric"] - center)}


def _some(rows: NDArray, n: int, rng: np.random.RandomState) -> NDArray:
    return rows if len(rows) <= n else np.sort(rng.choice(rows, n, replace=False))
