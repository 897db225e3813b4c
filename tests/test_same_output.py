"""The same input and seed give the same output to the last bit: twice in one process, and in other processes."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ncdlib import (
    PBN,
    Baseline,
    HiddenClassSearchCV,
    NCDKMeans,
    NCDSpectralClustering,
    SpectralClustering,
    TabularNCD,
    discover,
    estimate_n_clusters,
    load_dataset,
    make_ncd_blobs,
)
from ncdlib._io.processes import one_thread
from ncdlib.clustering.validity import INDICES
from ncdlib.evidence import protocols
from ncdlib.evidence.experiments import Experiment
from ncdlib.evidence.measure import Job, run_job

QUICK = {"epochs": 3, "verbose": False}
ESTIMATORS = {
    "NCDKMeans": NCDKMeans(5, random_state=0),
    "SpectralClustering": SpectralClustering(5, random_state=0),
    "NCDSpectralClustering": NCDSpectralClustering(5, n_iter=2, random_state=0),
    "Baseline": Baseline(5, random_state=0, **QUICK),
    "PBN": PBN(5, random_state=0, **QUICK),
    "PBN, spectral": PBN(5, clusterer="spectral", random_state=0, **QUICK),
    "TabularNCD": TabularNCD(5, random_state=0, **QUICK),
}


def digest(*arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()


def last_bits(problem, params, setting, seeds):
    """A protocol whose score changes with the last bit of a learned space, as the others' may in long trainings."""
    for seed in seeds:
        space = PBN(5, random_state=seed, **params).fit(problem.X, problem.y).transform(problem.X)
        yield {"acc": int(digest(space)[:4], 16) / 2**16, "nmi": 0.0, "ari": 0.0, "k": 5, "seconds": 0.0}


class LastBits(PBN):
    """Clusters, and so scores of a search, that change with the last bit of a learned space."""

    def cluster(self, X, n_clusters, random_state=None):
        return np.random.default_rng(int(digest(self.transform(X))[:8], 16)).integers(n_clusters, size=len(X))


CELLS = [
    Experiment("same", "last bits", last_bits, change=QUICK),
    Experiment("same", "k-means", protocols.k_means),
    Experiment("same", "NCD k-means", protocols.ncd_k_means),
    Experiment("same", "SC", protocols.spectral),
    Experiment("same", "NCD SC", protocols.ncd_spectral, change={"s_min": 0.5, "n_components": 8}),
    Experiment("same", "Baseline", protocols.deep("Baseline"), change={"epochs": 3}),
    Experiment("same", "PBN", protocols.deep("PBN"), change={"epochs": 3}),
    Experiment("same", "TabularNCD", protocols.deep("TabularNCD"), change={"epochs": 3}),
]


def fit_all():
    """The labels and the learned space of every estimator."""
    problem = load_dataset("digits")
    found = {}
    for name, estimator in ESTIMATORS.items():
        model = estimator.fit(problem.X, problem.y)
        space = model.transform(problem.X) if hasattr(model, "transform") else model.cluster_centers_
        found[name] = digest(model.labels_, model.predict(problem.X_test), space)
    estimate = estimate_n_clusters(problem.X_novel, INDICES[:5], range(2, 8), n_runs=1, n_init=2, random_state=0)
    return found | {"estimate": digest(*estimate.scores.values())}


def search_all():
    problem = load_dataset("digits")
    found = {}
    for name, estimator in {"PBN": LastBits(**QUICK), "NCDKMeans": NCDKMeans(n_init=2)}.items():
        space = PBN.search_space(64) if name == "PBN" else {"draw_power": [1, 2]}
        search = HiddenClassSearchCV(estimator, space, n_iter=2, cv=2, k_range=range(2, 6), verbose=False)
        search.fit(problem.X, problem.y)
        best = search.best_estimator_
        learned = best.weights_.values() if name == "PBN" else [best.cluster_centers_]
        scores = [search.cv_results_[key] for key in ("mean_test_score", "split0_n_clusters")]
        found[name] = digest(search.labels_, *learned, *scores)
    return found


def measure_all():
    """The rows that table cells put into a store, without the times."""
    with tempfile.TemporaryDirectory() as folder:
        for cell in CELLS:
            run_job(Job(cell, "digits", (0, 1)), folder=folder)
        rows = pd.read_csv(Path(folder) / "runs.csv", dtype=str)
    assert len(rows) == 2 * len(CELLS)
    return rows[["method", "seed", "acc", "nmi", "ari", "k"]].to_dict("list")


def everything():
    with one_thread():
        pinned = fit_all()
    return {"as it comes": fit_all(), "one thread": pinned, "search": search_all(), "cells": measure_all()}


@pytest.fixture(scope="module")
def runs():
    """What other processes find: one with one thread, two with two, of which the second only fits."""
    code = "import json, test_same_output as t; print('found', json.dumps(t.{}()))"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    environment["OMP_WAIT_POLICY"] = "passive"  # a thread that waits leaves the processor to others
    found = []
    for threads, what in (("1", "everything"), ("2", "everything"), ("2", "fit_all")):
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code.format(what)],
            env=environment | dict.fromkeys(names, threads),
            capture_output=True,
            text=True,
            timeout=900,
        )
        assert done.returncode == 0, done.stderr[-2_000:]
        found.append(json.loads(done.stdout.split("found ", 1)[1]))
    return found


def test_twice_in_one_process():
    assert fit_all() == fit_all()


def test_in_two_processes(runs):
    _, first, second = runs
    assert first["as it comes"] == second


def test_one_thread_by_the_environment_or_for_a_while(runs):
    """The way out that the documentation names for whoever wants the same bits on any number of threads."""
    one, two, _ = runs
    assert one["as it comes"] == one["one thread"] == two["one thread"]


@pytest.mark.parametrize("what", ["search", "cells"])
def test_number_of_threads_does_not_matter(runs, what):
    one, two, _ = runs
    assert one[what] == two[what]


def test_discover_twice():
    problem = load_dataset("digits")
    options = {"method": "ncd_kmeans", "n_clusters": 5, "n_seeds": 1, "verbose": False}
    first, second = (discover(problem.X, problem.y, **options) for _ in range(2))
    assert digest(first.labels) == digest(second.labels) and first.summary().equals(second.summary())


@pytest.mark.parametrize("method", [Baseline, TabularNCD])
def test_search_twice(method):
    problem = make_ncd_blobs(n_samples=300, cluster_std=3)
    options = {"n_iter": 2, "cv": 2, "k_range": range(2, 6), "verbose": False}
    estimator = method(epochs=5, verbose=False)
    first, second = (
        HiddenClassSearchCV(estimator, method.search_space(8), **options).fit(problem.X, problem.y) for _ in range(2)
    )
    timed = {"params", "error"} | {key for key in first.cv_results_ if "time" in key}
    assert first.cv_results_["params"] == second.cv_results_["params"]
    for key in set(first.cv_results_) - timed:
        np.testing.assert_array_equal(first.cv_results_[key], second.cv_results_[key], err_msg=key)
    assert digest(first.labels_) == digest(second.labels_)


def test_discover_twice_with_a_search():
    problem = make_ncd_blobs(n_samples=300, cluster_std=3)
    options = {"method": PBN(**QUICK), "n_trials": 2, "cv": 2, "n_clusters": 3, "n_seeds": 1, "verbose": False}
    first, second = (discover(problem.X, problem.y, **options) for _ in range(2))
    assert digest(first.labels) == digest(second.labels) and first.summary().equals(second.summary())
    space = first.model.transform(problem.X), second.model.transform(problem.X)
    assert digest(space[0]) == digest(space[1]) and first.stability == second.stability
