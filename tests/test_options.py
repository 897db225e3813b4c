"""Each option of the deep methods does what its line of the documentation says."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.preprocessing import normalize

from ncdlib import (
    PBN,
    Baseline,
    NCDKMeans,
    SpectralClustering,
    TabularNCD,
    estimate_n_clusters,
    load,
    make_ncd_blobs,
)

METHODS = {"PBN": PBN, "Baseline": Baseline, "TabularNCD": TabularNCD}
STILL = {"lr": 1e-12, "dropout": 0.0}  # nothing is learned: an epoch's loss is that of the first weights
N_FEATURES = 12


@pytest.fixture(scope="module")
def problem():
    """Classes that overlap, so that another clusterer or another space gives other clusters."""
    return make_ncd_blobs(n_features=N_FEATURES, n_samples=400, cluster_std=4, random_state=1)


def fit(problem, method="PBN", n_clusters=6, **options):
    defaults = {"epochs": 4, "batch_size": 70, "verbose": False, "random_state": 0}  # 70: four equal batches
    return METHODS[method](n_clusters, **(defaults | options)).fit(problem.X, problem.y)


def same_partition(first, second):
    return len(set(zip(first, second, strict=True))) == len(set(first)) == len(set(second))


def test_ncd_kmeans_partitions_the_latent_space(problem):
    model = fit(problem, clusterer="ncd_kmeans")
    by_hand = NCDKMeans(6, random_state=model._cluster_seed).fit(model.transform(problem.X).astype(float), problem.y)
    assert np.array_equal(model.labels_, by_hand.labels_)
    latent = model.transform(problem.X_test).astype(float)
    assert np.array_equal(model.predict(problem.X_test), by_hand.predict(latent))


def test_spectral_clustering_partitions_the_latent_space(problem):
    options = {"s_min": 0.3, "n_components": 4, "sigma_rule": "authors"}
    model = fit(problem, clusterer="spectral", **options)
    by_hand = SpectralClustering(6, random_state=model._cluster_seed, **options)
    by_hand.fit(model.transform(problem.X_novel).astype(float))
    assert np.array_equal(model.labels_[problem.y == -1], by_hand.labels_)
    latent = model.transform(problem.X_test).astype(float)
    assert np.array_equal(model.predict(problem.X_test), by_hand.predict(latent))
    afresh = SpectralClustering(6, random_state=5, **options).fit(latent)
    assert np.array_equal(model.cluster(problem.X_test, 6, random_state=5), afresh.labels_)
    assert not same_partition(model.labels_, fit(problem).labels_)


def test_normalize_latent_clusters_directions(problem):
    model = fit(problem, normalize_latent=True)
    directions, new = (normalize(model._latent(X).astype(float)) for X in (problem.X_novel, problem.X_test))
    by_hand = KMeans(6, n_init=10, random_state=model._cluster_seed).fit(directions)
    assert np.array_equal(model.labels_[problem.y == -1], by_hand.labels_)
    np.testing.assert_allclose(model.cluster_centers_, by_hand.cluster_centers_)
    assert np.array_equal(model.predict(problem.X_test), by_hand.predict(new))
    assert not same_partition(model.labels_, fit(problem).labels_)


def test_a_second_fit_leaves_nothing_of_the_first(problem):
    model = fit(problem, clusterer="spectral")
    assert hasattr(model, "clusterer_") and not hasattr(model, "cluster_centers_")
    model.set_params(clusterer="kmeans").fit(problem.X, problem.y)
    assert hasattr(model, "cluster_centers_") and not hasattr(model, "clusterer_")
    with pytest.raises(ValueError, match="training diverged"):
        model.set_params(lr=1e25).fit(problem.X, problem.y)
    assert not hasattr(model, "labels_")


@pytest.mark.parametrize("method", METHODS)
def test_score_known_is_the_share_of_right_answers(method, problem):
    """On a model that was trained so briefly that it errs."""
    model = fit(problem, method, epochs=1)
    inputs = model.transform(problem.X_known)
    if method != "TabularNCD":
        inputs = normalize(inputs)
    logits = inputs @ model.weights_["classifier.0.weight"].T + model.weights_["classifier.0.bias"]
    answers = model.classes_[logits[:, : len(model.classes_)].argmax(axis=1)]
    right = answers == problem.y_known
    assert 0 < right.sum() < len(right)
    assert model.score_known(problem.X_known, problem.y_known) == pytest.approx(right.mean())
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):  # NumPy would repeat a single label
        model.score_known(problem.X_known, problem.y_known[:1])
    with pytest.raises(ValueError, match=r"rows of known classes only; got \[99\]"):
        model.score_known(problem.X_known, np.full_like(problem.y_known, 99))


def test_shuffled_batches_are_new_in_every_epoch(problem):
    fixed, shuffled = (fit(problem, shuffle_batches=s, **STILL).history_["loss"] for s in (False, True))
    np.testing.assert_allclose(fixed, fixed[0], rtol=1e-5)
    assert shuffled[0] == fixed[0]
    assert len(set(shuffled.round(4))) == len(shuffled)


def test_shuffling_does_not_matter_in_a_single_batch(problem):
    fixed, shuffled = (
        fit(problem, shuffle_batches=s, batch_size=500, dropout=0.0).history_["loss"] for s in (False, True)
    )
    np.testing.assert_allclose(shuffled, fixed, rtol=1e-5)


def test_mean_reconstruction_is_the_sum_divided_by_the_features(problem):
    total, mean = (fit(problem, reconstruction=r, **STILL).history_ for r in ("sum", "mean"))
    np.testing.assert_allclose(mean["reconstruction"], total["reconstruction"] / N_FEATURES, rtol=1e-5)
    np.testing.assert_allclose(mean["cross_entropy"], total["cross_entropy"], rtol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_history_is_the_mean_over_the_batches(method, problem):
    """Batches have statistics of their own, so that their mean is nearly, not quite, that of all rows at once."""
    whole, batches = (fit(problem, method, batch_size=size, **STILL).history_["loss"] for size in (500, 70))
    np.testing.assert_allclose(batches, whole, rtol=0.2)


@pytest.mark.parametrize("method", METHODS)
def test_dropout_makes_every_epoch_another(method, problem):
    without, dropped = (fit(problem, method, **(STILL | {"dropout": rate})).history_["loss"] for rate in (0.0, 0.5))
    assert np.ptp(without) < 1e-4
    assert np.ptp(dropped) > 5e-3


@pytest.mark.parametrize("method", METHODS)
def test_the_number_of_classes_is_estimated(method):
    problem = make_ncd_blobs(n_known=6, n_novel=4, n_features=20, n_samples=240, cluster_std=0.5, random_state=0)
    model = fit(problem, method, "silhouette", latent_dim=20)
    if method == "TabularNCD":  # a cluster of its own may stay empty
        n_found = len(model.weights_["cluster_head.0.weight"])
    else:
        n_found = len(set(model.labels_[problem.y == -1]))
    assert model.n_clusters_ == n_found == 4


@pytest.mark.parametrize("method", ["PBN", "Baseline"])
def test_the_number_of_classes_is_estimated_from_directions(method, problem):
    for seed in range(3):
        model = fit(problem, method, "silhouette", random_state=seed)
        latent = model.transform(problem.X_novel)
        by_hand = estimate_n_clusters(normalize(latent), "silhouette", random_state=model._cluster_seed)
        assert model.n_clusters_ == by_hand.n_clusters
    novel, known = (normalize(model.transform(X)) for X in (problem.X_novel, problem.X_known))
    by_hand = estimate_n_clusters(novel, "km_acc", X_known=known, y_known=problem.y_known, random_state=0)
    found = model.estimate_n_clusters(
        problem.X_novel, "km_acc", random_state=0, X_known=problem.X_known, y_known=problem.y_known
    )
    np.testing.assert_array_equal(found.scores["km_acc"], by_hand.scores["km_acc"])


def test_rows_are_clustered_afresh_by_ten_runs_of_k_means(problem):
    model = fit(problem)
    latent = model.transform(problem.X_test).astype(float)
    for seed in range(5):
        by_hand = KMeans(6, n_init=10, random_state=seed).fit(latent)
        assert np.array_equal(model.cluster(problem.X_test, 6, random_state=seed), by_hand.labels_)


@pytest.mark.parametrize(("n_features", "latent_dim"), [(8, 5), (12, 6), (33, 16)])
def test_latent_space_is_half_as_wide_as_the_data_by_default(n_features, latent_dim):
    problem = make_ncd_blobs(n_features=n_features, n_samples=60, random_state=0)
    assert fit(problem, n_clusters=2, epochs=1).transform(problem.X).shape[1] == latent_dim


SAVE_AND_BE_KILLED = """
import os, random, signal, sys, time
from ncdlib import load
path = sys.argv[1]
model = load(path)
for _ in range(12):
    child = os.fork()
    if child == 0:
        for _ in range(1_000):  # an end, should nobody come to kill it
            model.save(path)
        os._exit(1)
    time.sleep(random.uniform(0.02, 0.1))
    os.kill(child, signal.SIGKILL)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    assert (load(path).labels_ == model.labels_).all()
"""


def test_kill_during_save_leaves_the_file_as_it_was(problem, tmp_path):
    model = NCDKMeans(3, n_init=1, random_state=0).fit(problem.X, problem.y)
    model.labels_ = np.arange(1_000_000)  # eight megabytes take a while to write
    path = model.save(tmp_path / "model.npz")
    command = [sys.executable, "-c", SAVE_AND_BE_KILLED, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-2_000:]
    assert list(tmp_path.glob(".model.npz.*.part"))  # what was being written when a kill came
    assert np.array_equal(load(path).predict(problem.X), model.predict(problem.X))
