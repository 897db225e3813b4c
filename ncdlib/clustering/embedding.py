"""The spectral embedding of rows (Section 3.3 of the paper), and k-means in it.

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
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, blas, eigh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.extmath import row_norms

from ncdlib._io.checks import check_n_clusters, check_positive, check_rows
from ncdlib.clustering.kernels import Selection, check_k_means_options, draw_centroids, k_means_from, spanning_tree

SigmaRule = Literal["paper", "authors"]

S_MIN = 0.6
"""What `s_min` is by default."""

# NOTE[DIFF] The paper searches in ]0, 1[. With less, eigenvalues crowd at 1 so closely that ARPACK misses some.
SMALLEST_S_MIN = 1e-6
BLOCK_ROWS = 256
"""Rows of a matrix worked on at once: few enough for the processor's cache."""


def spectral_embedding(
    X: ArrayLike, n_components: int, s_min: float = S_MIN, sigma_rule: SigmaRule = "paper"
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
    distances, _ = squared_distances(X)
    gamma = kernel_gamma(longest_tree_edge(distances), s_min, sigma_rule)
    return embed(distances, gamma, n_components, out=distances)[0]


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
    >>> from ncdlib.clustering.embedding import cluster_embedding
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
    """Raise a ValueError that says what is allowed, if an option of the embedding is out of range."""
    if n_components is not None:
        check_positive(n_components=n_components)
    if s_min is not None and not (isinstance(s_min, Real) and SMALLEST_S_MIN <= s_min < 1):
        raise ValueError(f"s_min must be at least {SMALLEST_S_MIN:g} and below 1, got {s_min!r}")
    if sigma_rule not in ("paper", "authors"):
        raise ValueError(f"sigma_rule must be 'paper' or 'authors', got {sigma_rule!r}")


def squared_distances(X: NDArray, n_matrices: int = 1) -> tuple[NDArray[np.float32], float]:
    """Return the squared distances of all pairs of rows, in units of the scale that is returned with them.

    Refuse if there is not enough memory for `n_matrices` of this size.

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


def longest_tree_edge(distances: NDArray[np.float32]) -> float:
    """Return the length of the longest edge of the minimum spanning tree, in the unit of `distances`."""
    return float(spanning_tree(len(distances), distances.__getitem__)[1].max())


def kernel_gamma(squared_edge: float, s_min: float, sigma_rule: SigmaRule) -> float:
    """Return 1 / (2 sigma^2), in the unit of `squared_edge`; 0 if all rows are the same."""
    exponent = -np.log(s_min) if sigma_rule == "paper" else -np.log(s_min) / 2
    return exponent / squared_edge if squared_edge > 0 else 0.0


def embed(
    distances: NDArray[np.float32], gamma: float, n_components: int, out: NDArray[np.float32]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the spectral embedding, its eigenvalues (of D^-1/2 A D^-1/2, descending) and the degrees of the rows.

    `out` is overwritten; it may be `distances` itself.
    """
    n = len(distances)
    n_components = min(int(n_components), n - 1)
    if gamma == 0:  # all rows are the same: any vectors would do, and LAPACK may find none
        return np.zeros((n, n_components)), np.full(n_components, -1 / (n - 1)), np.full(n, n - 1.0)
    degrees = _normalised_affinities(distances, gamma, out)
    # The first eigenvector is known, D^1/2 1 with eigenvalue 1. Moving it to -2, below all others, leaves exactly the
    # wanted ones on top, even where eigenvalues crowd near 1 and a solver would return any rotation of them.
    # NOTE[DIFF] The paper's formulas keep the diagonal of A and this eigenvector, and the work it follows scales the
    # rows of the embedding to length one. The authors' code does none of this.
    root = np.sqrt(degrees)
    first = (root / np.linalg.norm(root)).astype(np.float32)
    matrix = out.T  # symmetric; BLAS and LAPACK want columns
    found = _lanczos(matrix, first, n_components) if n_components * 20 < n else None
    values, vectors = found or _lapack(matrix, first, n_components)
    values, vectors = values[::-1].astype(np.float64), vectors[:, ::-1].astype(np.float64)
    # The sign is arbitrary: the largest entry of each is made positive.
    vectors *= np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(n_components)])
    return vectors, values, degrees


def _normalised_affinities(distances: NDArray[np.float32], gamma: float, out: NDArray[np.float32]) -> NDArray:
    """Write D^-1/2 A D^-1/2 into `out`; return the degrees D."""
    n = len(distances)
    degrees = np.empty(n)
    for block in gen_batches(n, BLOCK_ROWS):
        np.multiply(distances[block], np.float32(-gamma), out=out[block])
        np.maximum(out[block], -69, out=out[block])  # 1e-30: nothing beside s_min, yet not a slow denormal number
        np.exp(out[block], out=out[block])
        out[block][:, block].flat[:: out[block].shape[0] + 1] = 0
        degrees[block] = out[block].sum(axis=1, dtype=np.float64)
    inverse_root = (1 / np.sqrt(degrees)).astype(np.float32)
    for block in gen_batches(n, BLOCK_ROWS):
        out[block] *= inverse_root
        out[block] *= inverse_root[block, None]
    return degrees


def _lanczos(matrix: NDArray[np.float32], first: NDArray[np.float32], n_components: int) -> tuple | None:
    """Find the largest eigenvalues after the first, ascending, and their vectors; None if ARPACK gives up."""
    n = len(matrix)

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
        return eigsh(operator, n_components, which="LA", v0=start, ncv=n_vectors, maxiter=n_restarts, tol=1e-6)
    return None


def _lapack(matrix: NDArray[np.float32], first: NDArray[np.float32], n_components: int) -> tuple[NDArray, NDArray]:
    """Find the same directly; overwrite `matrix`."""
    n = len(matrix)
    matrix = blas.ssyr(-3, first, a=matrix, lower=1, overwrite_a=1)
    values = vectors = ()
    with suppress(LinAlgError):  # "evr" gives up on many equal eigenvalues, as equal rows have; "evd" does not
        values, vectors = eigh(
            matrix, subset_by_index=[n - n_components, n - 1], overwrite_a=True, check_finite=False, driver="evr"
        )
    if len(values) < n_components:
        np.fill_diagonal(matrix, 0)  # the upper half is as it was: LAPACK overwrites the lower one only
        matrix = blas.ssyr(-3, first, a=matrix, lower=0, overwrite_a=1)
        values, vectors = eigh(matrix, lower=False, overwrite_a=True, check_finite=False, driver="evd")
        values, vectors = values[-n_components:], vectors[:, -n_components:]
    return values, vectors
