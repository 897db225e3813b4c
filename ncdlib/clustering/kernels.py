"""What the clusterings of the package are made of: k-means starts and runs, spanning trees, silhouettes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.extmath import row_norms

from ncdlib._io.checks import check_positive, check_rows

Selection = Literal["inertia", "distance"]
LARGEST_POWER = 100  # beyond it, all but the farthest row have no chance; and powers overflow

BLOCK_ENTRIES = 2**21  # distances held at once: they stay in the processor's cache


def check_k_means_options(selection: str, draw_power: float, n_init: int, max_iter: int = 1, tol: float = 0.0) -> None:
    """Raise a ValueError that says what to do, if an option of k-means is out of range."""
    if selection not in ("inertia", "distance"):
        raise ValueError(f"selection must be 'inertia' or 'distance', got {selection!r}")
    if not isinstance(draw_power, Real) or not 0 <= draw_power <= LARGEST_POWER:
        raise ValueError(f"draw_power must be a number from 0 to {LARGEST_POWER}, got {draw_power!r}")
    if not isinstance(tol, Real) or not 0 <= tol < np.inf:
        raise ValueError(f"tol must be a number not below 0, got {tol!r}")
    check_positive(n_init=n_init, max_iter=max_iter)


def draw_centroids(
    X: NDArray,
    n_centroids: int,
    *,
    power: float,
    n_draws: int,
    rng: np.random.RandomState,
    known: NDArray | None = None,
) -> NDArray:
    """Draw rows of X one by one, each with probability proportional to a power of its distance to the nearest so far.

    The centroids `known`, if given, are there from the start. Otherwise the first row is drawn uniformly.

    Returns
    -------
    array of shape (n_draws, n_centroids, n_features)
    """
    mean = X.mean(axis=0)  # distances below lose no digits to a large mean
    rows = X - mean
    norms = row_norms(rows, squared=True)
    doubled = 2 * rows.T
    if known is None:
        nearest = np.ones((n_draws, len(X)))
    else:
        nearest = euclidean_distances(rows, known - mean, X_norm_squared=norms, squared=True).min(axis=1)
        nearest = np.tile(nearest, (n_draws, 1))  # squared distance to the nearest centroid so far
    drawn = np.empty((n_draws, n_centroids), dtype=np.intp)
    for j in range(n_centroids):
        weights = np.where(nearest > 0, nearest ** (power / 2), 0)  # a row that is drawn is not drawn again
        cumulated = weights.cumsum(axis=1, dtype=np.float64)
        # No row is left away from all centroids (duplicates): draw any.
        cumulated[cumulated[:, -1] == 0] = np.arange(1, len(X) + 1)
        ticket = rng.uniform(size=n_draws) * cumulated[:, -1]
        found = [np.searchsorted(c, t, side="right") for c, t in zip(cumulated, ticket, strict=True)]
        drawn[:, j] = new = np.minimum(found, len(X) - 1)  # a ticket may round up to the total
        to_new = np.maximum(norms[new, None] + norms - rows[new] @ doubled, 0)
        nearest = to_new if known is None and j == 0 else np.minimum(nearest, to_new)
        nearest[np.arange(n_draws), new] = 0
    return X[drawn]


def k_means_from(
    X: NDArray, starts: NDArray, *, selection: Selection = "inertia", max_iter: int = 300, tol: float = 1e-4
) -> tuple[KMeans, int]:
    """Run k-means from several starts, and keep the best.

    All starts converge in single precision, for speed; scikit-learn's KMeans finishes the best one.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
    starts : array of shape (n_starts, n_clusters, n_features)
    selection : {"inertia", "distance"}
        What the best run has least of: the sum of the squared distances of the rows to their centroids (inertia), or of
        the distances themselves.
    max_iter, tol : as in KMeans

    Returns
    -------
    run : fitted KMeans; its ``n_iter_`` counts all iterations.
    best : position of the best start.
    """
    mean = X.mean(axis=0)
    rows = X - mean
    scale = np.abs(rows).max() or 1.0
    rows = (rows / scale).astype(np.float32)
    norms = row_norms(rows, squared=True)
    tolerance = tol * rows.var(axis=0).mean()
    # A row between two centroids goes to the first, not to both. As single precision itself, it blurs clusters that are
    # smaller than a few thousandths of the extent of all rows.
    tie_break = np.arange(starts.shape[1], dtype=np.float32)[:, None] * norms.max() * np.float32(1e-7)
    best_score = np.inf
    for i, centers in enumerate(((starts - mean) / scale).astype(np.float32)):
        iterations, shift = 0, np.inf
        while shift > tolerance and iterations < max_iter:
            closeness = centers @ rows.T - (row_norms(centers, squared=True)[:, None] / 2 + tie_break)  # (k, n)
            highest = closeness.max(axis=0)
            members = (closeness == highest).astype(np.float32)
            sizes = members.sum(axis=1, keepdims=True)
            moved = np.divide(members @ rows, sizes, out=centers.copy(), where=sizes > 0)
            shift = np.sum((moved - centers) ** 2)
            centers = moved
            iterations += 1
        squared = np.maximum(norms - 2 * highest, 0)
        score = np.sum(squared if selection == "inertia" else np.sqrt(squared), dtype=np.float64)
        if score < best_score:
            best_score, best, best_centers, n_iter = score, i, centers, iterations
    start = (best_centers * scale + mean).astype(X.dtype)
    run = KMeans(len(start), init=start, n_init=1, max_iter=max_iter, tol=tol).fit(X)
    run.n_iter_ += n_iter
    return run, best


def nearest_centroid(X: NDArray, centroids: NDArray) -> NDArray[np.int64]:
    """Return the position of the nearest centroid of each row."""
    origin = centroids.mean(axis=0)  # distances lose no digits to a large mean
    return pairwise_distances_argmin(X - origin, centroids - origin)


def spanning_tree(n_rows: int, distances_from: Callable[[int], NDArray]) -> tuple[NDArray[np.int64], NDArray]:
    """Grow the minimum spanning tree of the complete graph of rows, from the first one (Prim's algorithm).

    Parameters
    ----------
    n_rows : int
    distances_from : callable
        From a row to its distances (or squared distances) to all rows.

    Returns
    -------
    ends : array of shape (n_rows - 1, 2)
    lengths : array of shape (n_rows - 1,)
        Of the edges, in the unit of `distances_from`.

    Examples
    --------
    >>> import numpy as np
    >>> from ncdlib.clustering.kernels import spanning_tree
    >>> places = np.array([0.0, 5.0, 1.0])
    >>> ends, lengths = spanning_tree(3, lambda row: abs(places - places[row]))
    >>> ends.tolist(), lengths.tolist()
    ([[0, 2], [2, 1]], [1.0, 4.0])
    """
    to_tree = distances_from(0).copy()  # from each row outside the tree to the tree; infinity inside
    inside = np.zeros_like(to_tree)
    to_tree[0] = inside[0] = np.inf
    nearest = np.zeros(n_rows, dtype=np.int64)  # row of the tree
    ends, lengths = np.empty((n_rows - 1, 2), dtype=np.int64), np.empty(n_rows - 1, dtype=to_tree.dtype)
    for edge in range(n_rows - 1):
        row = int(to_tree.argmin())
        ends[edge], lengths[edge] = (nearest[row], row), to_tree[row]
        inside[row] = np.inf
        distances = distances_from(row)
        np.putmask(nearest, distances < to_tree, row)
        np.minimum(to_tree, distances, out=to_tree)
        np.maximum(to_tree, inside, out=to_tree)
    return ends, lengths


def largest_distance(X: NDArray) -> float:
    """Return the largest distance between two rows."""
    step = max(1, BLOCK_ENTRIES // len(X))
    blocks = (euclidean_distances(X[i : i + step], X[i:]).max() for i in range(0, len(X), step))
    return max(blocks) if len(X) > 1 else 0.0


def silhouette_scores(X: ArrayLike, labelings: Sequence[ArrayLike]) -> NDArray[np.float64]:
    """Return the mean silhouette of each of several partitions of the same rows.

    The distances are computed once, block by block, for all partitions: the sums of distances to every
    cluster of every partition are one matrix product of the distances with the one-hot labels.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
    labelings : sequence of arrays of shape (n_rows,)
        At least two clusters each.

    Returns
    -------
    array of shape (n_labelings,)

    Examples
    --------
    >>> from ncdlib.clustering.kernels import silhouette_scores
    >>> X = [[0.0], [1.0], [10.0], [11.0]]
    >>> silhouette_scores(X, [[0, 0, 1, 1], [0, 1, 1, 1]]).round(2).tolist()
    [0.9, 0.03]
    """
    X = check_rows(X).astype(np.float64, copy=False)
    n = len(X)
    coded = [np.unique(np.asarray(labels), return_inverse=True)[1] for labels in labelings]
    sizes = [np.bincount(labels) for labels in coded]
    for labels, size in zip(coded, sizes, strict=True):
        if len(labels) != n or not 2 <= len(size) < n:
            raise ValueError(f"each labelling needs {n} labels and between 2 and {n - 1} clusters")
    offsets = np.cumsum([0] + [len(size) for size in sizes])
    columns = np.stack(coded, axis=1) + offsets[:-1]  # (n, n_labelings): each row's own cluster
    one_hot = np.zeros((n, offsets[-1]), dtype=np.float32)
    np.put_along_axis(one_hot, columns, 1, axis=1)
    cluster_size = np.concatenate(sizes).astype(np.float32)
    own_size = cluster_size[columns]
    total = np.zeros(len(coded))
    # Squared distances are one matrix product: |x|^2 - 2 x'z + |z|^2. Centred and scaled, float32 is enough for
    # means of distances down to a thousandth of the extent of all rows.
    X = X - X.mean(axis=0)
    X = (X / (np.abs(X).max() or 1)).astype(np.float32)
    squares, ones = np.einsum("ij,ij->i", X, X)[:, None], np.ones((n, 1), dtype=np.float32)
    left, right = np.hstack([X, squares, ones]), np.hstack([-2 * X, ones, squares]).T
    step = max(1, min(n, BLOCK_ENTRIES // (n + offsets[-1])))
    distances_buffer = np.empty((step, n), dtype=np.float32)
    mean_buffer = np.empty((step, offsets[-1]), dtype=np.float32)
    for start in range(0, n, step):
        rows = np.arange(start, min(start + step, n))
        distances = np.dot(left[rows], right, out=distances_buffer[: len(rows)])
        np.sqrt(np.maximum(distances, 0, out=distances), out=distances)
        distances[rows - start, rows] = 0
        mean = np.dot(distances, one_hot, out=mean_buffer[: len(rows)])
        mean /= cluster_size
        own = np.take_along_axis(mean, columns[rows], axis=1)
        np.put_along_axis(mean, columns[rows], np.inf, axis=1)
        others = np.minimum.reduceat(mean, offsets[:-1], axis=1)
        size = own_size[rows]
        own *= size / np.maximum(size - 1, 1)  # a row is no neighbour of itself
        largest = np.maximum(own, others)
        defined = (size > 1) & (largest > 0)
        silhouette = np.divide(others - own, largest, out=np.zeros_like(own), where=defined)
        total += silhouette.sum(axis=0, dtype=np.float64)
    return total / n
