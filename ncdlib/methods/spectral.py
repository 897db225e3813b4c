"""Spectral clustering, and its NCD version that tunes itself on the known classes (Section 3.3 of the paper).

Rows are vertices of a graph with edges ``A[i, j] = exp(-|x_i - x_j|^2 / (2 sigma^2))``. Row i is placed at the i-th
entries of the eigenvectors 2 to u + 1 of the symmetric normalised Laplacian ``I - D^-1/2 A D^-1/2``, and k-means
partitions the rows there. The width sigma is such that the longest edge of the minimum spanning tree of the rows gets
the similarity `s_min`.

These matrices have one entry per pair of rows. They are held in single precision and changed in place, block by
block: one matrix for an embedding, two for a search. Eigenvectors whose eigenvalues differ by less than about 1e-6
may come out mixed with each other.
"""

from __future__ import annotations

import os
from contextlib import suppress
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import blas, eigh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, pairwise_distances_argmin
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_consistent_length
from tqdm.auto import tqdm

from ncdlib._io.checks import check_n_clusters, check_positive, check_rows, encode_labels
from ncdlib.clustering.validity import estimate_n_clusters
from ncdlib.methods.base import NCDEstimator
from ncdlib.methods.kmeans import Selection, check_k_means_options, draw_centroids, k_means_from
from ncdlib.problem import UNLABELED

SigmaRule = Literal["paper", "authors"]

# NOTE[DIFF] The paper searches in ]0, 1[. With less, eigenvalues crowd at 1 so closely that ARPACK misses some.
SMALLEST_S_MIN = 1e-6
BLOCK_ROWS = 256
"""Rows of a matrix worked on at once: few enough for the processor's cache."""

MAX_SEARCHED_COMPONENTS = 200
"""The paper searches the number of components up to here."""


def spectral_embedding(
    X: ArrayLike, n_components: int, s_min: float = 0.6, sigma_rule: SigmaRule = "paper"
) -> NDArray[np.float64]:
    """Place rows in the spectral embedding of just these rows.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    n_components : int
        Number of eigenvectors, not counting the first. There are n_samples - 1; asking for more gives these.
    s_min : float in [1e-6, 1[, default=0.6
        Similarity of two rows that are as far apart as the longest edge of the minimum spanning tree is long.
    sigma_rule : {"paper", "authors"}, default="paper"
        How `s_min` gives the kernel's width: ``sigma = d_max / sqrt(-2 ln s_min)`` as the paper has it, or
        ``d_max / sqrt(-ln s_min)``, which the authors' published values of `s_min` are meant for. 0.6 by the second
        rule is what sqrt(0.6) = 0.775 is by the first.

    Returns
    -------
    array of shape (n_samples, min(n_components, n_samples - 1))

    Examples
    --------
    >>> import numpy as np
    >>> from ncdlib import spectral_embedding
    >>> rows = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> embedding = spectral_embedding(rows, n_components=1, s_min=0.1)
    >>> (np.sign(embedding[:, 0]) == np.sign(embedding[0, 0])).tolist()
    [True, True, True, False, False, False]
    """
    X = check_rows(X, min_rows=2)
    if n_components is None or s_min is None:  # which a search may leave open
        raise ValueError(f"n_components and s_min must be given, got {n_components} and {s_min}")
    check_embedding_options(n_components, s_min, sigma_rule)
    distances, _ = _squared_distances(X)
    gamma = _gamma(_longest_tree_edge(distances), s_min, sigma_rule)
    return _embed(distances, gamma, n_components, out=distances)[0]


def cluster_embedding(
    embedding: ArrayLike,
    n_clusters: int,
    *,
    n_init: int = 10,
    selection: Selection = "distance",
    draw_power: float = 1,
    random_state: Any = None,
) -> KMeans:
    """Partition the rows of a spectral embedding with k-means, as :class:`SpectralClustering` does.

    Parameters
    ----------
    embedding : array of shape (n_samples, n_components)
    n_clusters : int
    n_init, selection, draw_power, random_state
        As in :class:`SpectralClustering`.

    Returns
    -------
    KMeans
        The best run, with ``labels_`` and ``cluster_centers_``.

    Examples
    --------
    >>> from ncdlib.methods.spectral import cluster_embedding
    >>> run = cluster_embedding([[0.0], [0.5], [1.5], [2.0]], 2, random_state=0)
    >>> sorted(run.cluster_centers_.tolist())
    [[0.25], [1.75]]
    """
    # NOTE[DIFF] The paper only says "k-means". scikit-learn's (squared distances in the draws and in the choice of the
    # best run) is 16 to 24 points off its figures for NCD SC on Optdigits and Letter; these defaults give them.
    check_k_means_options(selection, draw_power, n_init)
    embedding = check_rows(embedding)
    check_n_clusters(n_clusters, len(embedding))
    rng = check_random_state(random_state)
    starts = draw_centroids(embedding, n_clusters, power=draw_power, n_draws=n_init, rng=rng)
    return k_means_from(embedding, starts, selection=selection)[0]


def check_embedding_options(n_components: int | None, s_min: float | None, sigma_rule: str) -> None:
    if n_components is not None:
        check_positive(n_components=n_components)
    if s_min is not None and not (isinstance(s_min, Real) and SMALLEST_S_MIN <= s_min < 1):
        raise ValueError(f"s_min must be at least {SMALLEST_S_MIN:g} and below 1, got {s_min!r}")
    if sigma_rule not in ("paper", "authors"):
        raise ValueError(f"sigma_rule must be 'paper' or 'authors', got {sigma_rule!r}")


def _squared_distances(X: NDArray, n_matrices: int = 1) -> tuple[NDArray[np.float32], float]:
    """Squared distances of all pairs of rows, in units of the returned scale.

    There must be memory for `n_matrices` as large.

    The products are of centred and scaled rows, in double precision: no unit of the features loses digits, and what
    is stored in single precision is each distance, not a difference.
    """
    n_bytes = n_matrices * 4 * len(X) ** 2
    if hasattr(os, "sysconf") and n_bytes > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        raise ValueError(
            f"the distances of {len(X):,} rows take {n_bytes / 1e9:,.0f} GB, more than there is memory for: give fewer"
        )
    X = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    scale = float(np.abs(X).max()) or 1.0
    X /= scale
    norms = row_norms(X, squared=True)
    distances = np.empty((len(X), len(X)), dtype=np.float32)
    for block in gen_batches(len(X), BLOCK_ROWS):
        squared = X[block] @ X.T
        squared *= -2
        squared += norms
        squared += norms[block, None]
        np.maximum(squared, 0, out=squared)
        distances[block] = squared
    np.fill_diagonal(distances, 0)
    return distances, scale


def _longest_tree_edge(distances: NDArray[np.float32]) -> float:
    """Length of the longest edge of the minimum spanning tree, in the unit of `distances` (Prim's algorithm)."""
    to_tree = distances[0].copy()  # from each row outside the tree to the tree; infinity inside
    inside = np.zeros_like(to_tree)
    to_tree[0] = inside[0] = np.inf
    longest = 0.0
    for _ in range(len(distances) - 1):
        row = to_tree.argmin()
        longest = max(longest, float(to_tree[row]))
        inside[row] = np.inf
        np.minimum(to_tree, distances[row], out=to_tree)
        np.maximum(to_tree, inside, out=to_tree)
    return longest


def _gamma(squared_edge: float, s_min: float, sigma_rule: SigmaRule) -> float:
    """1 / (2 sigma^2), in the unit of `squared_edge`; 0 if all rows are the same."""
    exponent = -np.log(s_min) if sigma_rule == "paper" else -np.log(s_min) / 2
    return exponent / squared_edge if squared_edge > 0 else 0.0


def _embed(
    distances: NDArray[np.float32], gamma: float, n_components: int, out: NDArray[np.float32]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Spectral embedding, its eigenvalues (of D^-1/2 A D^-1/2, descending) and the degrees of the rows.

    `out` is overwritten; it may be `distances` itself.
    """
    n = len(distances)
    n_components = min(int(n_components), n - 1)
    if gamma == 0:  # all rows are the same: any vectors would do, and LAPACK may find none
        return np.zeros((n, n_components)), np.full(n_components, -1 / (n - 1)), np.full(n, n - 1.0)
    degrees = np.empty(n)
    for block in gen_batches(n, BLOCK_ROWS):
        np.multiply(distances[block], np.float32(-gamma), out=out[block])
        np.maximum(out[block], -69, out=out[block])  # 1e-30: nothing beside s_min, yet not a slow denormal number
        np.exp(out[block], out=out[block])
        out[block][:, block].flat[:: out[block].shape[0] + 1] = 0
        degrees[block] = out[block].sum(axis=1, dtype=np.float64)
    root = np.sqrt(degrees)
    inverse_root = (1 / root).astype(np.float32)
    for block in gen_batches(n, BLOCK_ROWS):
        out[block] *= inverse_root
        out[block] *= inverse_root[block, None]

    # The first eigenvector is known, D^1/2 1 with eigenvalue 1. Moving it to -2, below all others, leaves exactly the
    # wanted ones on top, even where eigenvalues crowd near 1 and a solver would return any rotation of them.
    # NOTE[DIFF] The paper's formulas keep the diagonal of A and this eigenvector, and the work it follows scales the
    # rows of the embedding to length one. The authors' code does none of this.
    first = (root / np.linalg.norm(root)).astype(np.float32)
    matrix = out.T  # symmetric; BLAS and LAPACK want columns
    values = None
    if n_components * 20 < n:

        def multiply(x: NDArray) -> NDArray:
            x = x.ravel()
            return blas.ssymv(1, matrix, x, lower=1) - (3 * (first @ x)) * first

        operator = LinearOperator((n, n), matvec=multiply, dtype=np.float32)
        start = np.random.RandomState(0).uniform(-1, 1, n).astype(np.float32)
        # Where eigenvalues crowd, as those of heavy-tailed columns do, or near 0, where a relative tolerance asks for
        # more digits than there are, ARPACK may go on for minutes. Its vectors are the better ones in single precision,
        # so it has n products, twice what LAPACK costs: a restart takes half of `n_vectors - n_components` on average.
        n_vectors = max(2 * n_components + 1, 20)
        n_restarts = max(1, 2 * n // (n_vectors - n_components))
        with suppress(ArpackNoConvergence):
            values, vectors = eigsh(
                operator, n_components, which="LA", v0=start, ncv=n_vectors, maxiter=n_restarts, tol=1e-6
            )
    if values is None:
        matrix = blas.ssyr(-3, first, a=matrix, lower=1, overwrite_a=1)
        values, vectors = eigh(
            matrix, subset_by_index=[n - n_components, n - 1], overwrite_a=True, check_finite=False, driver="evr"
        )
        if len(values) < n_components:  # "evr" gives up on many equal eigenvalues, as equal rows have; "evd" does not
            np.fill_diagonal(matrix, 0)  # the upper half is as it was: LAPACK overwrites the lower one only
            matrix = blas.ssyr(-3, first, a=matrix, lower=0, overwrite_a=1)
            values, vectors = eigh(matrix, lower=False, overwrite_a=True, check_finite=False, driver="evd")
            values, vectors = values[-n_components:], vectors[:, -n_components:]
    values, vectors = values[::-1].astype(np.float64), vectors[:, ::-1].astype(np.float64)
    # The sign is arbitrary: the largest entry of each is made positive.
    vectors *= np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(n_components)])
    return vectors, values, degrees


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
        s_min: float = 0.6,
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
        distances, scale = _squared_distances(X)
        edge = _longest_tree_edge(distances)
        gamma = _gamma(edge, self.s_min, self.sigma_rule)
        n_components = self.n_components or k
        self._set_embedding(X, scale, edge, gamma, _embed(distances, gamma, n_components, out=distances))
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
        distances, scale = _squared_distances(X, n_matrices=2 if searches else 1)
        edge = _longest_tree_edge(distances)
        if searches:
            affinities = np.empty_like(distances)
            self.search_results_ = self._search(distances, affinities, edge, codes, rng)
            best = int(np.argmax(self.search_results_["ari"]))
            self.s_min_ = float(self.search_results_["s_min"][best])
            n_components = int(self.search_results_["n_components"][best])
            del affinities
        else:
            self.search_results_, self.s_min_, n_components = {}, float(self.s_min), self.n_components
        gamma = _gamma(edge, self.s_min_, self.sigma_rule)
        self._set_embedding(X, scale, edge, gamma, _embed(distances, gamma, n_components, out=distances))
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
            gamma = _gamma(edge, trials["s_min"][i], self.sigma_rule)
            embedding = _embed(distances, gamma, trials["n_components"][i], out=affinities)[0]
            k = self.n_clusters
            if isinstance(k, str):
                # NOTE[DIFF] One k-means run per candidate k, where the final estimate takes 30: the paper does not say
                # how k is had during this search, and a trial would take minutes.
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
