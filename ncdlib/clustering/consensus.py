"""One partition that agrees with many, each of which has a weight."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.cluster import AgglomerativeClustering, KMeans


def consensus(partitions: Sequence[NDArray], weights: ArrayLike, n_clusters: int) -> NDArray[np.int64]:
    """Partition rows as most of the weighted partitions do.

    k-means on the partitions' indicators (one column for each cluster of each partition, scaled by the weight): rows
    that most partitions put together are near. Wu, Liu, Xiong, Cao and Chen (2015) call it k-means-based consensus.
    It starts from the clusters of Ward's tree, so that no luck is in it. Measured on other class splits than the
    paper's, it is well ahead of trees of average linkage, and ahead of random starts.

    Examples
    --------
    >>> import numpy as np
    >>> from ncdlib.clustering.consensus import consensus
    >>> a, b, c = np.array([0, 0, 1, 1, 1]), np.array([1, 1, 0, 0, 0]), np.array([0, 1, 1, 1, 0])
    >>> labels = consensus([a, b, c], [1, 1, 0.5], n_clusters=2)
    >>> labels.tolist() in ([0, 0, 1, 1, 1], [1, 1, 0, 0, 0])
    True
    """
    weights = np.asarray(weights, dtype=float)
    weights = weights / weights.sum()
    columns = [
        np.sqrt(weight) * (labels[:, None] == np.unique(labels))
        for labels, weight in zip(partitions, weights, strict=True)
        if weight > 1e-4
    ]
    indicators = np.hstack(columns).astype(np.float32)
    n_clusters = min(n_clusters, len(np.unique(indicators, axis=0)))
    if n_clusters == 1:
        return np.zeros(len(indicators), dtype=np.int64)
    start = AgglomerativeClustering(n_clusters).fit_predict(indicators)
    centers = np.stack([indicators[start == cluster].mean(axis=0) for cluster in range(n_clusters)])
    return KMeans(n_clusters, init=centers, n_init=1).fit_predict(indicators).astype(np.int64)


def weighted_median(values: ArrayLike, weights: ArrayLike) -> int:
    """Return the value that half of the weight does not exceed.

    Examples
    --------
    >>> from ncdlib.clustering.consensus import weighted_median
    >>> weighted_median([3, 9, 4], [1, 1, 1])
    4
    """
    values, weights = np.asarray(values), np.asarray(weights, dtype=float)
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weights[order])
    return int(values[order][np.searchsorted(cumulated, cumulated[-1] / 2)])
