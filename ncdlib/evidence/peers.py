"""What one would have tried first, and what is beyond the paper: the protocols of methods that it does not have.

One protocol for all of them. What a method is given:

- the novel train rows, without their labels, at most `MAX_ROWS` of them: a random sample, another one for each seed.
  MetricNCD gets all of them, and draws its own sample;
- the known train rows with their labels, where the method takes labels (the metric, semi-supervised UMAP and
  MetricNCD);
- the true number of novel classes where it is "known"; else it is estimated on the same train rows.

The novel test rows are never fitted. Each is assigned afterwards by the method's own ``transform`` and ``predict``, and
where there is no ``predict`` (communities, HDBSCAN) by the vote of its nearest train rows. These are the rows on which
the paper scores all its methods.

Columns are those that the paper's methods get. No hyperparameter is searched: what is set here was set before looking.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import ncdlib
from ncdlib.evidence.protocols import Row, scores_of, timed
from ncdlib.problem import UNLABELED

if TYPE_CHECKING:
    from ncdlib.problem import NCDProblem

MAX_ROWS = 1_500  # novel train rows that are clustered
MAX_KNOWN_ROWS = 2_000  # that semi-supervised UMAP embeds beside them
K_RANGE = range(2, 31)  # candidates of the silhouette and of BIC
N_VOTES = 10  # nearest train rows that assign a test row
UMAP_PARAMS = {"n_neighbors": 15, "min_dist": 0.0, "n_components": 5, "n_jobs": 1}  # for clustering, not for looking at
SHARE_OF_CLUSTER = 0.01  # of the rows: the smallest cluster of HDBSCAN; UMAP's own guide has 500 of 70,000


class Space(NamedTuple):
    """Train and test rows as a method sees them, and how long that took."""

    train: NDArray
    test: NDArray
    seconds: float = 0.0


class Found(NamedTuple):
    """Clusters of the test rows, and how many clusters there are (noise is none)."""

    labels: NDArray
    k: int


def peer(
    see: Callable[[NCDProblem, int], Space], cluster: Callable[[Space, int | None, int], Found]
) -> Callable[..., Iterator[Row]]:
    """Return the protocol of a clusterer in a space.

    A space that two protocols share is computed once in a process; its seconds count in both.
    """

    def measure(problem: NCDProblem, params: Mapping, setting: str, seeds: Sequence[int]) -> Iterator[Row]:
        k = len(problem.novel_classes) if setting == "known" else None
        for seed in seeds:
            space = see(problem, seed)
            began = time.perf_counter()
            found = cluster(space, k, seed)
            seconds = space.seconds + time.perf_counter() - began
            yield scores_of(problem, [found.labels]) | {"k": found.k, "seconds": seconds}

    return measure


@timed
def metric_ncd(problem: NCDProblem, params: Mapping, setting: str, seeds: Sequence[int]) -> Iterator[Row]:
    """Fit MetricNCD on all train rows as a user would, and let it predict the novel test rows."""
    k: int | str = len(problem.novel_classes) if setting == "known" else "auto"
    for seed in seeds:
        model = ncdlib.MetricNCD(k, **params, random_state=seed).fit(problem.X, problem.y)
        yield scores_of(problem, [model.predict(problem.X_test_novel)]) | {"k": model.n_clusters_}


# -- spaces -----------------------------------------------------------------------------------------------------------


def some_rows(X: NDArray, most: int, seed: int) -> NDArray[np.intp]:
    """Return the places of a random sample of at most so many rows, in order."""
    n = min(len(X), most)
    return np.sort(np.random.default_rng(seed).choice(len(X), n, replace=False))


def columns(problem: NCDProblem, seed: int) -> Space:
    """See the columns as they are."""
    X = problem.X_novel
    return Space(X[some_rows(X, MAX_ROWS, seed)], problem.X_test_novel)


def metric(problem: NCDProblem, seed: int) -> Space:
    """See the columns in the metric of the known classes."""
    rows = columns(problem, seed)
    began = time.perf_counter()
    learned = ncdlib.KnownClassMetric().fit(problem.X, problem.y)
    train, test = learned.transform(rows.train), learned.transform(rows.test)
    return Space(train, test, time.perf_counter() - began)


@lru_cache(maxsize=256)
def umap_of_columns(problem: NCDProblem, seed: int) -> Space:
    """Embed the novel train rows by UMAP, which sees no label; place the test rows by its ``transform``."""
    UMAP = _umap()
    rows = columns(problem, seed)
    began = time.perf_counter()
    model = UMAP(**UMAP_PARAMS, random_state=seed).fit(rows.train)
    return Space(model.embedding_, model.transform(rows.test), time.perf_counter() - began)


@lru_cache(maxsize=256)
def umap_with_known_classes(problem: NCDProblem, seed: int) -> Space:
    """Embed known and novel train rows together by UMAP, which gets the known labels, and -1 for the others."""
    UMAP = _umap()
    rows = columns(problem, seed)
    known = some_rows(problem.X_known, MAX_KNOWN_ROWS, seed)
    X = np.concatenate([problem.X_known[known], rows.train])
    y = np.concatenate([problem.y_known[known], np.full(len(rows.train), UNLABELED)])
    began = time.perf_counter()
    model = UMAP(**UMAP_PARAMS, random_state=seed).fit(X, y)
    return Space(model.embedding_[len(known) :], model.transform(rows.test), time.perf_counter() - began)


@lru_cache(maxsize=1)
def _umap() -> type:
    """Import UMAP and let it compile, which takes seconds once in a process, before any clock starts."""
    try:
        from umap import UMAP
    except ImportError as error:
        raise ImportError(
            "to measure the peers, UMAP is needed, which ncdlib does not install: pip install umap-learn"
        ) from error
    X = np.random.default_rng(0).normal(size=(60, 3))
    for y in (None, np.arange(60) % 3 - 1):
        UMAP(**UMAP_PARAMS, random_state=0).fit(X, y).transform(X[:5])
    return UMAP


# -- clusterers -------------------------------------------------------------------------------------------------------


def k_means(space: Space, k: int | None, seed: int) -> Found:
    """Cluster by k-means, ten starts; without `k`, as many clusters as the silhouette says."""
    from sklearn.cluster import KMeans

    if k is None:
        k = ncdlib.estimate_n_clusters(space.train, "silhouette", K_RANGE, random_state=seed).n_clusters
    model = KMeans(k, n_init=10, random_state=seed).fit(space.train)
    return Found(model.predict(space.test), k)


def gaussian_mixture(space: Space, k: int | None, seed: int) -> Found:
    """Fit Gaussians; without `k`, as many as BIC says.

    Their covariances are full, but diagonal where a full one would have more parameters than there are rows.
    """
    n, d = space.train.shape
    kind = "full" if d * (d + 1) / 2 <= n else "diag"
    models = [_mixture(space.train, n_components, kind, seed) for n_components in (K_RANGE if k is None else [k])]
    best = min(models, key=lambda model: model.bic(space.train))
    return Found(best.predict(space.test), best.n_components)


def _mixture(X: NDArray, n_components: int, kind: str, seed: int) -> Any:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    # Columns of few values make a component as thin as it may become: a thousandth of a column's usual variance.
    model = GaussianMixture(n_components, covariance_type=kind, reg_covar=1e-3, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # at most its usual hundred steps
        return model.fit(X)


def leiden(space: Space, k: int | None, seed: int) -> Found:
    """Take communities of the shared-neighbour graph, at resolution 1; or merge finer ones until there are `k`."""
    from ncdlib.clustering.graphs import Communities, shared_neighbor_graph

    communities = Communities(shared_neighbor_graph(space.train), seed)
    labels = communities(1.0) if k is None else communities.merged_to(k)
    return Found(_vote(space, labels), len(np.unique(labels)))


def hdbscan(space: Space, k: int | None, seed: int) -> Found:
    """Let HDBSCAN count. Rows that it calls noise are scored as one more cluster, which is not counted in `k`."""
    from sklearn.cluster import HDBSCAN

    smallest = max(5, round(SHARE_OF_CLUSTER * len(space.train)))
    labels = HDBSCAN(min_cluster_size=smallest, copy=True).fit_predict(space.train)
    return Found(_vote(space, labels), len(set(labels) - {-1}))


def _vote(space: Space, labels: NDArray) -> NDArray:
    """Assign the test rows as their nearest train rows are, the nearer the more."""
    from sklearn.neighbors import KNeighborsClassifier

    voters = KNeighborsClassifier(min(N_VOTES, len(labels)), weights="distance")
    return voters.fit(space.train, labels).predict(space.test)
