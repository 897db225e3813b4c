"""One unit of a search's work: train some trials in one fold, and score them there (lines 3 to 10 of Algorithm 1)."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin
from sklearn.model_selection import ParameterSampler

from ncdlib._io.processes import end_with_parent, one_thread
from ncdlib.clustering.validity import estimate_n_clusters
from ncdlib.metrics import SCORES
from ncdlib.problem import UNLABELED
from ncdlib.selection.hidden_classes import HiddenClassFold
from ncdlib.selection.scoring import ALONE, Scoring, column_of, columns

SAMPLE, FIT, REFIT = range(3)  # what a seed is for
VISIBLE = "visible_acc"
FAILURES = (ValueError, ArithmeticError, np.linalg.LinAlgError)  # some corners of a search space do diverge


@contextmanager
def collapse_is_no_news() -> Iterator[None]:
    """Fewer different rows than clusters, of which k-means warns: the trial's score says it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def seed_of(random_state: int, *key: int) -> int:
    return int(np.random.SeedSequence([random_state, *key]).generate_state(1)[0])


def configure(estimator: BaseEstimator, parameters: Mapping[str, Any]) -> BaseEstimator:
    """Set parameters, leaving out those of the search's own that the estimator does not have."""
    have = estimator.get_params()
    optional = ("random_state", "verbose")
    return estimator.set_params(**{k: v for k, v in parameters.items() if k in have or k not in optional})


@dataclass(frozen=True)
class Trial:
    """A hyperparameter set, and the seed from which those of its trainings are made."""

    number: int
    params: dict[str, Any]
    random_state: int

    @classmethod
    def draw(cls, number: int, distributions: Mapping[str, Any], random_state: int) -> Trial:
        if not distributions:
            return cls(number, {}, random_state)
        sampler = ParameterSampler(distributions, n_iter=1, random_state=seed_of(random_state, SAMPLE, number))
        (params,) = sampler
        plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in params.items()}
        return cls(number, plain, random_state)

    def seed(self, fold_number: int, repeat: int = 0) -> int:
        again = (repeat,) if repeat else ()
        return seed_of(self.random_state, FIT, self.number, fold_number, *again)


@dataclass
class Protocol:
    """What happens in a fold, apart from the data and the trials."""

    estimator: BaseEstimator
    clusters_afresh: bool
    n_clusters: int | None
    index: str
    k_range: tuple[int, ...] | None
    setting: str  # the one that ranks
    settings: tuple[str, ...]  # those that are scored
    scoring: Scoring
    k_from_features: int | None = None

    def estimate_from_features(self, X: NDArray, codes: NDArray, random_state: int) -> None:
        """The estimate for methods that need the number of clusters before they learn a projection (Section
        5)."""
        if self.setting == "estimated" and self.k_from_features is None:
            novel = codes == UNLABELED
            known = {"X_known": X[~novel], "y_known": codes[~novel]} if self.index == "km_acc" else {}
            with one_thread():
                self.k_from_features = estimate_n_clusters(
                    X[novel], self.index, self.k_range, random_state=random_state, **known
                ).n_clusters

    def estimate(
        self, model: BaseEstimator, X: NDArray, codes: NDArray, novel: NDArray, visible: NDArray, seed: int, **options
    ) -> int:
        """The number of classes among the novel rows in the space of a trained model."""
        known = {"X_known": X[visible], "y_known": codes[visible]} if self.index == "km_acc" else {}
        return model.estimate_n_clusters(
            X[novel], index=self.index, k_range=self.k_range, random_state=seed, **known, **options
        ).n_clusters


def run_unit(
    X: NDArray,
    codes: NDArray,
    protocol: Protocol,
    fold: HiddenClassFold,
    fold_number: int,
    runs: Sequence[tuple[Trial, int]],
) -> list[dict[str, Any]]:
    """Train and score in one fold some trials, each with the number of its repeat: a row for each."""
    end_with_parent()
    with one_thread(), collapse_is_no_news():
        y = codes.copy()
        y[fold.hidden] = UNLABELED
        params = [trial.params for trial, _ in runs]
        if not protocol.clusters_afresh:
            k = protocol.n_clusters if protocol.setting == "known" else protocol.k_from_features
            params = [p | {"n_clusters": len(fold.classes) + k} for p in params]
        seeds = [trial.seed(fold_number, repeat) for trial, repeat in runs]
        began = time.perf_counter()
        models = _train(protocol, X, y, params, seeds)
        fit_time = (time.perf_counter() - began) / len(runs)
        rows = []
        for (trial, repeat), seed, model in zip(runs, seeds, models, strict=True):
            row = {"trial": trial.number, "fold": fold_number, "seed": repeat}
            row |= {"params": json.dumps(trial.params, default=str), "fit_time": fit_time}
            row |= dict.fromkeys((*columns(protocol.scoring), VISIBLE, "n_clusters", "error"))
            try:
                if isinstance(model, Exception):
                    raise model
                row |= _scores_together(protocol, X, codes, y, fold, model, seed)
                row |= _scores_alone(X, codes, fold, model, seed)
            except FAILURES as error:  # recorded, not fatal
                row["error"] = " ".join(f"{type(error).__name__}: {error}".split())
            rows.append(row)
        return rows


def _train(
    protocol: Protocol, X: NDArray, y: NDArray, params: list[dict[str, Any]], seeds: list[int]
) -> list[BaseEstimator | Exception]:
    estimator = clone(protocol.estimator)
    estimator.min_known_classes = 1  # hiding two of three, as the paper does, leaves no more
    if hasattr(estimator, "fit_many"):
        try:
            models = estimator.fit_many(X, y, params, seeds, fit_clusters=not protocol.clusters_afresh)
        except ValueError as error:  # a set that is out of range; halving finds it, and leaves the others in stacks
            half = len(params) // 2
            halves = ((params[:half], seeds[:half]), (params[half:], seeds[half:]))
            return [model for part in halves for model in _train(protocol, X, y, *part)] if half else [error]
        return [ArithmeticError("training diverged") if m.diverged_ else m for m in models]
    models = []
    for parameters, seed in zip(params, seeds, strict=True):
        model = configure(clone(estimator), parameters | {"random_state": seed})
        model.min_known_classes = 1
        try:
            models.append(model.fit(X, y))
        except FAILURES as error:
            models.append(error)
    return models


def _scores_together(
    protocol: Protocol,
    X: NDArray,
    codes: NDArray,
    y: NDArray,
    fold: HiddenClassFold,
    model: BaseEstimator,
    seed: int,
) -> dict[str, Any]:
    """Scores of the hidden rows clustered with the novel ones, by setting; and the estimated number of novel ones."""

    def scores(labels_of_hidden: NDArray, setting: str) -> dict[str, float]:
        truth = codes[fold.hidden]
        found = {column_of(name, setting): float(score(truth, labels_of_hidden)) for name, score in SCORES.items()}
        if callable(protocol.scoring):
            found[column_of(protocol.scoring, setting)] = float(protocol.scoring(truth, labels_of_hidden))
        return found

    if not protocol.clusters_afresh:
        return scores(model.labels_[fold.hidden], protocol.setting) | {"n_clusters": protocol.k_from_features}
    n_novel = {"known": protocol.n_clusters}
    if "estimated" in protocol.settings:
        # NOTE[DIFF] One k-means run a candidate, where the authors' code makes three: on 20 latent spaces of Optdigits
        # and Letter, the estimate was the same.
        n_novel["estimated"] = protocol.estimate(model, X, codes, fold.novel, fold.visible, seed, n_runs=1)
    unlabeled = np.flatnonzero(y == UNLABELED)
    hidden = np.searchsorted(unlabeled, fold.hidden)
    labels: dict[int, NDArray] = {}  # by number of novel classes: often both settings have the same
    for k in {n_novel[setting] for setting in protocol.settings}:
        labels[k] = model.cluster(X[unlabeled], len(fold.classes) + k, random_state=seed)[hidden]
    found: dict[str, Any] = {"n_clusters": n_novel.get("estimated")}
    for setting in protocol.settings:
        found |= scores(labels[n_novel[setting]], setting)
    return found


def can_cluster_alone(estimator: BaseEstimator) -> bool:
    return hasattr(estimator, "cluster") or hasattr(estimator, "transform")


def _scores_alone(X: NDArray, codes: NDArray, fold: HiddenClassFold, model: BaseEstimator, seed: int) -> dict[str, Any]:
    """Scores of the hidden rows clustered by themselves, and how many visible rows are nearest to their class's mean.

    A model that has no `cluster` is taken at its projection, clustered by k-means.
    """
    found: dict[str, Any] = {}
    if can_cluster_alone(model):
        if hasattr(model, "cluster"):
            labels = model.cluster(X[fold.hidden], len(fold.classes), random_state=seed)
        else:
            k_means = KMeans(len(fold.classes), n_init=10, random_state=seed)
            labels = k_means.fit(model.transform(X[fold.hidden])).labels_
        found |= {name + ALONE: float(score(codes[fold.hidden], labels)) for name, score in SCORES.items()}
    if hasattr(model, "transform"):
        Z, truth = np.asarray(model.transform(X[fold.visible]), dtype=np.float64), codes[fold.visible]
        classes = np.unique(truth)
        means = np.stack([Z[truth == c].mean(axis=0) for c in classes])
        found[VISIBLE] = float(np.mean(classes[pairwise_distances_argmin(Z, means)] == truth))
    return found
