"""How one run of each method is scored: the evaluation of the paper, as its authors' code does it.

Every function takes a problem, the hyperparameters, the setting ("known" or "estimated" number of novel classes) and
some seeds, and yields one row of scores for each seed. The truth of novel rows is used in `scores_of` and nowhere else;
their true number of classes only where it is given ("known", and always in k-means, NCD k-means and SC).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import cluster
from sklearn.cluster import KMeans

from ncdlib.clustering.embedding import cluster_embedding, spectral_embedding
from ncdlib.clustering.kernels import k_means_from
from ncdlib.clustering.validity import VALIDITY_INDICES, estimate_n_clusters
from ncdlib.methods.deep import DeepNCD
from ncdlib.methods.kmeans import NCDKMeans
from ncdlib.methods.pbn import PBN
from ncdlib.methods.registry import METHODS
from ncdlib.methods.spectral import SpectralClustering
from ncdlib.metrics import evaluate
from ncdlib.problem import NCDProblem
from ncdlib.selection.hidden_classes import HiddenClassKFold
from ncdlib.selection.search import HiddenClassSearchCV

Row = dict[str, Any]
ESTIMATORS: dict[str, type[DeepNCD]] = {method.label: method.load() for method in METHODS.values() if method.searched}
PAPER_INDICES = [name for name, index in VALIDITY_INDICES.items() if index.paper_name]
CLUSTERINGS_PER_MODEL = 5  # the authors cluster the latent space of each trained model five times
# NOTE[DIFF] The authors' code tries 2 to 30; in the original features, the paper's estimate for Letter is 45.
FEATURE_K_RANGE = range(2, 101)
# The paper's KM-ACC says 1 twice; and its elbows come out only from a curve that begins at one cluster.
INDEX_K_RANGE = range(1, 101)


def scores_of(problem: NCDProblem, labelings: Sequence[NDArray]) -> Row:
    """Mean scores of one or several partitions of the novel test rows."""
    all_scores = [evaluate(problem.y_test_novel, labels) for labels in labelings]
    return {name: float(np.mean([s[name] for s in all_scores])) for name in ("acc", "nmi", "ari")}


def _true_k(problem: NCDProblem) -> int:
    return len(problem.novel_classes)


@lru_cache(maxsize=16)
def _k_from_features(problem: NCDProblem) -> int:
    return estimate_n_clusters(problem.X_novel, "silhouette", FEATURE_K_RANGE, random_state=0).n_clusters


def k_means(problem: NCDProblem, params: Mapping, setting: str, seeds: Sequence[int]) -> Iterator[Row]:
    for seed in seeds:
        began = time.perf_counter()
        model = KMeans(_true_k(problem), init="random", n_init=10, random_state=seed).fit(problem.X_novel)
        labels = model.predict(problem.X_test_novel)
        yield scores_of(problem, [labels]) | {"k": _true_k(problem), "seconds": time.perf_counter() - began}


def k_means_chosen_by_distance(
    problem: NCDProblem, params: Mapping, setting: str, seeds: Sequence[int]
) -> Iterator[Row]:
    """k-means, the best of ten starts chosen as the authors' NCD k-means chooses: by the unsquared distances."""
    X, k = problem.X_novel, _true_k(problem)
    for seed in seeds:
        began = time.perf_counter()
        rng = np.random.default_rng(seed)
        starts = np.stack([X[rng.choice(len(X), k, replace=False)] for _ in range(10)])
        model, _ = k_means_from(X, starts, selection="distance")
        labels = model.predict(problem.X_test_novel)
        yield scores_of(problem, [labels]) | {"k": k, "seconds": time.perf_counter() - began}


def ncd_k_means(problem: NCDProblem, params: Mapping, setting: str, seeds: Sequence[int]) -> Iterator[Row]:
    # The authors draw by the distance and choose by the unsquared distances; `params` may say otherwise.
    params = {"draw_power": 1, "selection": "distance"} | dict(params)
    for seed in seeds:
        began = time.perf_counter()
        model = NCDKMeans(_true_k(problem), **params, random_state=seed)
        model.min_known_classes = 1  # where 25 of 26 letters are novel
        model.fit(problem.X, problem.y)
        labels = model.predict(problem.X_test_novel)
        yield scores_of(problem, [labels]) | {"k": _true_k(problem), "seconds": time.perf_counter() - began}


def spectral(problem: NCDProblem, params: Mapping, setting: str, seeds: Sequence[int]) -> Iterator[Row]:
    params = {"s_min": 0.6, "sigma_rule": "authors"} | dict(params)
    for seed in seeds:
        began = time.perf_counter()
        labels = SpectralClustering(_true_k(problem), **params, random_state=seed).fit(problem.X_test_novel).labels_
        yield scores_of(problem, [labels]) | {"k": _true_k(problem), "seconds": time.perf_counter() - began}


def spectral_of_scikit_learn(problem: NCDProblem, params: Mapping, setting: str, seeds: Sequence[int]) -> Iterator[Row]:
    """The same kernel through scikit-learn, which keeps the first eigenvector and divides by the rows' degrees."""
    X, k = problem.X_test_novel, _true_k(problem)
    sigma = SpectralClustering(k, s_min=0.6, sigma_rule="authors", random_state=0).fit(X).sigma_
    for seed in seeds:
        began = time.perf_counter()
        model = cluster.SpectralClustering(k, gamma=1 / (2 * sigma**2), random_state=seed).fit(X)
        yield scores_of(problem, [model.labels_]) | {"k": k, "seconds": time.perf_counter() - began}


def ncd_spectral(problem: NCDProblem, params: Mapping, setting: str, seeds: Sequence[int]) -> Iterator[Row]:
    """Known and novel test rows are embedded together; with k estimated, also clustered together, unless `params`
    has ``novel_alone``."""
    params = {"sigma_rule": "authors", "novel_alone": setting == "known"} | dict(params)
    began = time.perf_counter()
    X = np.concatenate([problem.X_test_known, problem.X_test_novel])
    embedding = spectral_embedding(X, params["n_components"], params["s_min"], sigma_rule=params["sigma_rule"])
    n_known_rows = len(problem.X_test_known)
    shared_seconds = (time.perf_counter() - began) / len(seeds)
    for seed in seeds:
        began = time.perf_counter()
        novel = embedding[n_known_rows:]
        k = _true_k(problem)
        if setting == "estimated":
            # NOTE[DIFF] Estimated anew for each seed; the authors' code estimates once for all runs.
            k = estimate_n_clusters(novel, "silhouette", random_state=seed).n_clusters
        if params["novel_alone"]:
            labels = cluster_embedding(novel, k, random_state=seed).labels_
        else:
            n_clusters = len(problem.known_classes) + k
            labels = cluster_embedding(embedding, n_clusters, random_state=seed).labels_[n_known_rows:]
        yield scores_of(problem, [labels]) | {"k": k, "seconds": shared_seconds + time.perf_counter() - began}


def deep(method: str, *, clusters_of: str = "test rows"):
    """Scoring of a deep method; `clusters_of` = "train rows" assigns test rows to the clusters of the train rows."""

    def measure(problem: NCDProblem, params: Mapping, setting: str, seeds: Sequence[int]) -> Iterator[Row]:
        began = time.perf_counter()
        k: int | None = _true_k(problem)
        if setting == "estimated":
            # The published hyperparameters of TabularNCD come with their number of clusters.
            k = params.get("n_clusters") or _k_from_features(problem) if method == "TabularNCD" else None
        on_train = clusters_of == "train rows"
        estimator = ESTIMATORS[method](n_clusters=k or "silhouette", verbose=False, **_shared(method, params))
        estimator.min_known_classes = 1  # where 25 of 26 letters are novel
        own = {name: value for name, value in params.items() if name not in estimator._shared}
        models = estimator.fit_many(problem.X, problem.y, [own] * len(seeds), list(seeds), fit_clusters=on_train)
        shared_seconds = (time.perf_counter() - began) / len(seeds)
        for seed, model in zip(seeds, models, strict=True):
            began = time.perf_counter()
            if model.diverged_:
                row: Row = dict.fromkeys(("acc", "nmi", "ari", "k"), float("nan"))
            elif method == "TabularNCD" or on_train:
                n_clusters = model.n_clusters_
                row = scores_of(problem, [model.predict(problem.X_test_novel)]) | {"k": n_clusters}
            else:
                n_clusters = k or model.estimate_n_clusters(problem.X_novel, random_state=seed).n_clusters
                row = cluster_test_rows(problem, model, n_clusters, seed) | {"k": n_clusters}
            yield row | {"seconds": shared_seconds + time.perf_counter() - began}

    return measure


def cluster_test_rows(problem: NCDProblem, model: DeepNCD, n_clusters: int, seed: int) -> Row:
    """The authors' score of a trained projection: the novel test rows clustered five times."""
    labelings = [
        model.cluster(problem.X_test_novel, n_clusters, random_state=CLUSTERINGS_PER_MODEL * seed + i)
        for i in range(CLUSTERINGS_PER_MODEL)
    ]
    return scores_of(problem, labelings)


def _shared(method: str, params: Mapping) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name in ESTIMATORS[method]._shared}


def hidden_score(method: str):
    """What the search on hidden classes would give a set of hyperparameters, on the same folds with other seeds."""

    def measure(problem: NCDProblem, params: Mapping, setting: str, seeds: Sequence[int]) -> Iterator[Row]:
        began = time.perf_counter()
        search = HiddenClassSearchCV(
            ESTIMATORS[method](verbose=False),
            {name: [value] for name, value in params.items()},
            n_iter=max(seeds) + 1,  # the trials differ in nothing but their seeds
            cv=HiddenClassKFold(problem.n_splits, problem.n_hidden, random_state=0),
            n_clusters=_true_k(problem),
            both_settings=False,
            refit=False,
            random_state=1,  # not the search's own, whose luck is what this measures
            verbose=False,
        ).fit(problem.X, problem.y)
        seconds = (time.perf_counter() - began) / search.n_iter
        for seed in seeds:
            ari = float(search.cv_results_["mean_test_score"][seed])
            yield {"ari": ari, "k": _true_k(problem), "seconds": seconds}

    return measure


def indices_in_latent_space(problem: NCDProblem, params: Mapping, setting: str, seeds: Sequence[int]) -> Iterator[Row]:
    """The number of classes by each of the paper's indices in PBN's latent space, k from 1 to 100: a row for each."""
    models = PBN(verbose=False).fit_many(problem.X, problem.y, [params] * len(seeds), list(seeds), fit_clusters=False)
    for seed, model in zip(seeds, models, strict=True):
        began = time.perf_counter()
        estimate = model.estimate_n_clusters(
            problem.X_novel,
            PAPER_INDICES,
            INDEX_K_RANGE,
            random_state=seed,
            X_known=problem.X_known,
            y_known=problem.y_known,
        )
        for index in PAPER_INDICES:
            yield {"index": index, "k": estimate.estimates[index], "seconds": time.perf_counter() - began}


def silhouette_of_features(problem: NCDProblem, params: Mapping, setting: str, seeds: Sequence[int]) -> Iterator[Row]:
    """The number of classes by the silhouette of the original features."""
    for seed in seeds:
        began = time.perf_counter()
        estimate = estimate_n_clusters(problem.X_novel, "silhouette", FEATURE_K_RANGE, random_state=seed)
        yield {"k": estimate.n_clusters, "seconds": time.perf_counter() - began}
