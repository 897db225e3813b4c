"""Find the rows that are far from all others: they are of no class, or of one too rare to be clustered."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import DBSCAN
from sklearn.neighbors import NearestNeighbors

MIN_ROWS = 100  # in fewer rows, nothing tells what is far
MAX_NEIGHBOURS_FROM = 3_000  # rows among which the neighbours are looked for
K = 10  # a row is far if its tenth neighbour is: up to ten rows that are near each other are found as well
FAR = 2.5  # times the distance of the tenth neighbour that 95 % of the rows have
MAX_SHARE = 0.03  # of the rows that may be of a new class: a larger group is a class, which clustering finds
GROUP = 4  # this many outliers near each other may be a rare class


def find_outliers(numbers: NDArray[np.float64], candidates: NDArray[np.bool_], seed: int) -> NDArray[np.int64]:
    """Find the rows that are far from all others, and those among them that are near each other.

    Parameters
    ----------
    numbers : array of shape (n_rows, n_features)
    candidates : array of bool
        The rows that may be of a new class.
    seed : int
        Of the sample in which neighbours are looked for in a large table.

    Returns
    -------
    array of int
        For each row: -1 if it is no outlier, 0 if it is alone, else the number of its group.

    Examples
    --------
    >>> import numpy as np
    >>> from ncdlib.own_data.outliers import find_outliers
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> X[:6] += 100
    >>> X[6] -= 100
    >>> find_outliers(X, np.full(300, True), 0)[:8].tolist()
    [1, 1, 1, 1, 1, 1, 0, -1]
    """
    n_rows = len(numbers)
    found = np.full(n_rows, -1)
    if n_rows < MIN_ROWS:
        return found
    sample = np.arange(n_rows)
    if n_rows > MAX_NEIGHBOURS_FROM:
        sample = np.random.default_rng(seed).choice(n_rows, MAX_NEIGHBOURS_FROM, replace=False)
    distances = NearestNeighbors(n_neighbors=K + 1).fit(numbers[sample]).kneighbors(numbers)[0]
    distance = distances[:, K - 1]
    distance[sample] = distances[sample, K]  # where the row itself is the first
    limit = FAR * np.percentile(distance, 95)
    far = np.flatnonzero(candidates & (distance > limit))
    if limit == 0 or len(far) == 0:
        return found
    group = DBSCAN(eps=limit, min_samples=1).fit_predict(numbers[far])
    size = np.bincount(group)[group]
    outlying = size <= max(GROUP - 1, min(K, MAX_SHARE * candidates.sum()))
    found[far[outlying]] = 0
    together = outlying & (size >= GROUP)
    found[far[together]] = 1 + np.unique(group[together], return_inverse=True)[1]
    return found
