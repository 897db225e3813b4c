"""Spectral clustering, and its NCD version that tunes itself on the known classes (Section 3.3 of the paper)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, pairwise_distances_argmin
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.validation import check_consistent_length
from tqdm.auto import tqdm

from ncdlib._io.checks import check_positive, check_rows, encode_labels
from ncdlib.clustering.embedding import (
    BLOCK_ROWS,
    S_MIN,
    SMALLEST_S_MIN,
    SigmaRule,
    check_embedding_options,
    cluster_embedding,
    embed,
    kernel_gamma,
    longest_tree_edge,
    squared_distances,
)
from ncdlib.clustering.kernels import Selection, check_k_means_options
from ncdlib.clustering.validity import estimate_n_clusters
from ncdlib.methods.base import NCDEstimator
from ncdlib.problem import UNLABELED

MAX_SEARCHED_COMPONENTS = 200
"""The paper searches the number of components up to here."""


class _SpectralBase(ClassNamePrefixFeaturesOutMixin, TransformerMixin, NCDEstimator):
    """What both estimators share: the graph's fitted state, and placing new rows in it."""

    def _check_options(self) -> None:
        check_embedding_options(self.n_components, self.s_min, self.sigma_rule)
        check_k_means_options(self.selection, self.draw_power, self.n_init)

    def _set_embedding(
        self,
        X: NDArray,
        scale: float,
        squared_edge: float,
        gamma: float,
        embedded: tuple[NDArray, NDArray, NDArray],
    ) -> None:
        self.embedding_, self.eigenvalues_, self.degrees_ = embedded
        self.X_fit_ = X
        self.longest_edge_ = float(np.sqrt(squared_edge)) * scale
        self.sigma_ = scale / float(np.sqrt(2 * gamma)) if gamma > 0 else np.inf
        self.n_components_ = self._n_features_out = self.embedding_.shape[1]

    def _cluster(self, rows: NDArray, k: int, rng: np.random.RandomState) -> KMeans:
        return cluster_embedding(
            rows, k, n_init=self.n_init, selection=self.selection, draw_power=self.draw_power, random_state=rng
        )

    def _set_clusters(self, unlabeled: NDArray[np.bool_], rows: NDArray, k: int, rng: np.random.RandomState) -> None:
        run = self._cluster(rows, k, rng)
        self.n_clusters_ = int(k)
        self.cluster_centers_ = run.cluster_centers_
        self.labels_ = np.full(len(unlabeled), UNLABELED)
        self.labels_[unlabeled] = run.labels_

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Place rows in the embedding of the training rows (Nystroem extension).

        A training row is given back at its place. A row farther from all training rows than the longest edge of
        their minimum spanning tree is first moved towards the nearest one until it is that near.
        """
        X = self._check_new(X)
        mean = self.X_fit_.mean(axis=0)
        trained = (self.X_fit_ - mean) / self.sigma_
        edge = self.longest_edge_ / self.sigma_
        weights = self.embedding_ / np.sqrt(self.degrees_)[:, None]
        embedding = np.empty((len(X), self.n_components_))
        farthest = np.finfo(trained.dtype).max ** 0.4  # in units of sigma: what can be squared
        for block in gen_batches(len(X), BLOCK_ROWS):
            rows = (X[block] - mean) / self.sigma_
            np.clip(rows, -farthest, farthest, out=rows)
            squared = euclidean_distances(rows, trained, squared=True)
            nearest = squared.argmin(axis=1)
            is_trained = (rows == trained[nearest]).all(axis=1)
            distance = np.sqrt(squared.min(axis=1))
            far = distance > edge
            if far.any():
                target = trained[nearest[far]]
                rows = target + (rows[far] - target) * (edge / distance[far])[:, None]
                squared[far] = euclidean_distances(rows, trained, squared=True)
            affinities = np.exp(-squared / 2)
            # An eigenvector v satisfies v_i = sum_j A_ij v_j / sqrt(d_i d_j) / lambda, with A_ii = 0. For a new row,
            # the nearest training row stands for the row itself: it is in the sum, and taken out again through
            # the degree and the denominator. Next to a training row this changes nothing. Elsewhere, denominators stay
            # away from 0 for eigenvalues around 0; where they do not, the component is noise, and left at 0.
            itself = affinities.max(axis=1, keepdims=True)
            degree = affinities.sum(axis=1, keepdims=True) - itself
            numerator = (affinities @ weights) * np.sqrt(degree)
            denominator = self.eigenvalues_ * degree + itself
            usable = np.abs(denominator) > 1e-3 * itself
            placed = np.divide(numerator, denominator, out=np.zeros_like(numerator), where=usable)
            placed[is_trained] = self.embedding_[nearest[is_trained]]
            embedding[block] = placed
        return embedding

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Assign rows to the discovered clusters, by their place in the embedding of the training rows."""
        return pairwise_distances_argmin(self.transform(X), self.cluster_centers_)


class SpectralClustering(_SpectralBase):
    """Spectral clustering of the unlabelled rows. Known classes play no part in it.

    Parameters
    ----------
    n_clusters : int or str, default=8
        Number of clusters, or the name of the validity index that estimates it (such as "silhouette") in the
        embedding, or among the rows as they are if `n_components` is None.
    s_min : float in [1e-6, 1[, default=0.6
        Similarity of two rows that are as far apart as the longest edge of the minimum spanning tree is long.
    n_components : int, default=None
        Dimension of the embedding; the number of clusters by default. What is a good `s_min` or `n_components` depends
        on the number of rows: place new rows with `predict` rather than clustering them alone.
    sigma_rule : {"paper", "authors"}, default="paper"
        How `s_min` gives the kernel's width, see :func:`spectral_embedding`.
    n_init : int, default=10
        Number of initialisations of k-means in the embedding.
    selection : {"distance", "inertia"}, default="distance"
        Which k-means run is best: the one with the smallest sum of distances, or of squared distances (inertia) as
        usual. A few outlying rows dominate the squares, since the rows of the embedding are not normalised.
    draw_power : float, default=1
        A row is drawn as initial centroid with probability proportional to its distance to the nearest one so far
        to this power.
    random_state : int, RandomState or None
        Seed of k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Cluster of each unlabelled row, -1 for labelled rows.
    embedding_ : array of shape (n_unlabeled, n_components)
        The unlabelled rows in the embedding.
    cluster_centers_ : array of shape (n_clusters, n_components)
        Centroids in the embedding.
    n_clusters_, n_components_ : int
    longest_edge_, sigma_ : float
        The minimum spanning tree's longest edge, and the kernel's width.
    eigenvalues_ : array of shape (n_components,)
        Eigenvalues of the normalised affinity matrix, descending: 1 minus those of the Laplacian.
    X_fit_, degrees_ : arrays
        The embedded rows and their degrees in the graph.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_circles
    >>> from ncdlib import SpectralClustering
    >>> X, ring = make_circles(200, factor=0.3, noise=0.03, random_state=0)
    >>> model = SpectralClustering(n_clusters=2, s_min=0.05, random_state=0).fit(X)
    >>> [len(np.unique(model.labels_[ring == r])) for r in (0, 1)]
    [1, 1]
    """

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        s_min: float = S_MIN,
        n_components: int | None = None,
        sigma_rule: SigmaRule = "paper",
        n_init: int = 10,
        selection: Selection = "distance",
        draw_power: float = 1,
        random_state: Any = None,
    ):
        self.n_clusters = n_clusters
        self.s_min = s_min
        self.n_components = n_components
        self.sigma_rule = sigma_rule
        self.n_init = n_init
        self.selection = selection
        self.draw_power = draw_power
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Cluster the rows whose ``y`` is -1, or all rows if ``y`` is None."""
        X = check_rows(X, self, min_rows=2)
        unlabeled = np.ones(len(X), dtype=bool) if y is None else encode_labels(y)[0] == UNLABELED
        check_consistent_length(X, unlabeled)
        n_unlabeled = int(unlabeled.sum())
        if n_unlabeled < 2:
            raise ValueError(f"y has {n_unlabeled} unlabelled row(s): mark at least two rows to cluster with -1")
        self._check_n_clusters(n_unlabeled)
        self._check_options()
        rng = check_random_state(self.random_state)
        X = X[unlabeled]
        k = self.n_clusters
        if isinstance(k, str) and self.n_components is None:
            # The embedding's dimension is the number of clusters: that one is needed first.
            k = estimate_n_clusters(X, k, random_state=rng).n_clusters
        distances, scale = squared_distances(X)
        edge = longest_tree_edge(distances)
        gamma = kernel_gamma(edge, self.s_min, self.sigma_rule)
        n_components = self.n_components or k
        self._set_embedding(X, scale, edge, gamma, embed(distances, gamma, n_components, out=distances))
        if isinstance(k, str):
            k = estimate_n_clusters(self.embedding_, k, random_state=rng).n_clusters
        self._set_clusters(unlabeled, self.embedding_, k, rng)
        return self

    def _check_options(self) -> None:
        if self.s_min is None:
            raise ValueError(
                f"s_min must be at least {SMALLEST_S_MIN:g} and below 1, got None; "
                "NCDSpectralClustering searches for it"
            )
        super()._check_options()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags


class NCDSpectralClustering(_SpectralBase):
    """Spectral clustering of known and unlabelled rows together, tuned on the known classes.

    For random values of `s_min` and `n_components`, all rows are embedded and partitioned into as many clusters as
    there are known and novel classes. The values under which the clusters agree best with the known classes
    (adjusted Rand index) are kept, and k-means then partitions the unlabelled rows in that embedding.

    Parameters
    ----------
    n_clusters : int or str, default=8
        Number of novel classes, or the name of the validity index that estimates it (such as "silhouette") among
        the unlabelled rows in the embedding.
    s_min : float in [1e-6, 1[, default=None
        Similarity of two rows that are as far apart as the longest edge of the minimum spanning tree is long. None:
        searched, uniformly in [1e-6, 1[.
    n_components : int, default=None
        Dimension of the embedding. None: searched, uniformly from 1 to 200 (n_samples - 2 at most).
    n_iter : int, default=40
        Number of random values tried, if there is something to search.
    sigma_rule, n_init, selection, draw_power
        As in :class:`SpectralClustering`.
    verbose : bool, default=False
        Show a progress bar during the search.
    random_state : int, RandomState or None
        Seed of the search and of k-means.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Cluster of each unlabelled row, -1 for labelled rows.
    embedding_ : array of shape (n_samples, n_components)
        All rows in the embedding.
    s_min_, n_components_ : float, int
        The values used.
    search_results_ : dict of arrays of shape (n_iter,)
        "s_min", "n_components", "n_clusters" and "ari" of each trial; empty if both values were given.
    cluster_centers_ : array of shape (n_clusters, n_components)
        Centroids of the novel classes in the embedding.
    n_clusters_, longest_edge_, sigma_, eigenvalues_, X_fit_, degrees_
        As in :class:`SpectralClustering`.
    classes_ : array
        The known classes.

    Examples
    --------
    >>> from ncdlib import NCDSpectralClustering, clustering_accuracy, load_dataset
    >>> problem = load_dataset("digits")
    >>> model = NCDSpectralClustering(n_clusters=5, s_min=0.5, n_components=15, random_state=0)
    >>> labels = model.fit(problem.X, problem.y).predict(problem.X_test_novel)
    >>> clustering_accuracy(problem.y_test_novel, labels) > 0.9
    True
    """

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        s_min: float | None = None,
        n_components: int | None = None,
        n_iter: int = 40,
        sigma_rule: SigmaRule = "paper",
        n_init: int = 10,
        selection: Selection = "distance",
        draw_power: float = 1,
        verbose: bool = False,
        random_state: Any = None,
    ):
        self.n_clusters = n_clusters
        self.s_min = s_min
        self.n_components = n_components
        self.n_iter = n_iter
        self.sigma_rule = sigma_rule
        self.n_init = n_init
        self.selection = selection
        self.draw_power = draw_power
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Find the novel classes among the rows whose ``y`` is -1."""
        X, codes = self._check_fit(X, y)
        self._check_options()
        check_positive(n_iter=self.n_iter)
        rng = check_random_state(self.random_state)
        searches = self.s_min is None or self.n_components is None
        distances, scale = squared_distances(X, n_matrices=2 if searches else 1)
        edge = longest_tree_edge(distances)
        if searches:
            affinities = np.empty_like(distances)
            self.search_results_ = self._search(distances, affinities, edge, codes, rng)
            best = int(np.argmax(self.search_results_["ari"]))
            self.s_min_ = float(self.search_results_["s_min"][best])
            n_components = int(self.search_results_["n_components"][best])
            del affinities
        else:
            self.search_results_, self.s_min_, n_components = {}, float(self.s_min), self.n_components
        gamma = kernel_gamma(edge, self.s_min_, self.sigma_rule)
        self._set_embedding(X, scale, edge, gamma, embed(distances, gamma, n_components, out=distances))
        unlabeled = codes == UNLABELED
        k = self.n_clusters
        if isinstance(k, str):
            k = self._estimate(self.embedding_, codes, rng)
        self._set_clusters(unlabeled, self.embedding_[unlabeled], k, rng)
        return self

    def _search(
        self, distances: NDArray, affinities: NDArray, edge: float, codes: NDArray, rng: np.random.RandomState
    ) -> dict[str, NDArray]:
        most = max(1, min(MAX_SEARCHED_COMPONENTS, len(distances) - 2))
        trials = {
            "s_min": np.full(self.n_iter, self.s_min or 0.0),
            "n_components": np.full(self.n_iter, self.n_components or 0),
            "n_clusters": np.zeros(self.n_iter, dtype=int),
            "ari": np.zeros(self.n_iter),
        }
        if self.s_min is None:
            trials["s_min"] = np.maximum(rng.uniform(1e-12, 1, self.n_iter), SMALLEST_S_MIN)
        if self.n_components is None:
            trials["n_components"] = rng.randint(1, most + 1, self.n_iter)
        known = codes != UNLABELED
        for i in tqdm(range(self.n_iter), desc="NCD spectral clustering", unit="trial", disable=not self.verbose):
            gamma = kernel_gamma(edge, trials["s_min"][i], self.sigma_rule)
            embedding = embed(distances, gamma, trials["n_components"][i], out=affinities)[0]
            k = self.n_clusters
            if isinstance(k, str):
                # NOTE[DIFF] One k-means run per candidate k, where the final estimate takes 30: the paper does not say
                # how k is estimated during this search, and a trial would take minutes.
                k = self._estimate(embedding, codes, rng, n_runs=1, n_init=1)
            labels = self._cluster(embedding, k + len(self.classes_), rng).labels_
            trials["n_clusters"][i] = k
            trials["ari"][i] = adjusted_rand_score(codes[known], labels[known])
        return trials

    def _estimate(self, embedding: NDArray, codes: NDArray, rng: np.random.RandomState, **runs: int) -> int:
        known = codes != UNLABELED
        return estimate_n_clusters(
            embedding[~known],
            self.n_clusters,
            X_known=embedding[known],
            y_known=codes[known],
            random_state=rng,
            **runs,
        ).n_clusters
