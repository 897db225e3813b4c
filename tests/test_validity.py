"""The validity indices against scikit-learn and brute force, and the number of clusters they give."""

import tracemalloc

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, make_blobs
from sklearn.metrics import (
    calinski_harabasz_score,
    davies_bouldin_score,
    pairwise_distances,
    silhouette_score,
)

from ncdlib.clustering.many_kmeans import many_k_means
from ncdlib.clustering.validity import INDICES, dunn_scores, estimate_n_clusters, silhouette_scores
from ncdlib.metrics import clustering_accuracy


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(400, n_features=6, centers=5, cluster_std=1.5, random_state=3)


def random_labelings(n, ks, seed=0):
    rng = np.random.default_rng(seed)
    return [np.concatenate([np.arange(k), rng.integers(k, size=n - k)]) for k in ks]


@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_silhouettes_agree_with_scikit_learn(blobs, shift):
    X, y = blobs
    labelings = [y, *random_labelings(len(X), [2, 3, 7, 40])]
    labelings.append(np.r_[np.zeros(len(X) - 1), 1])  # a cluster of a single row
    expected = [silhouette_score(X, labels) for labels in labelings]
    np.testing.assert_allclose(silhouette_scores(X + shift, labelings), expected, atol=1e-5)


def test_silhouettes_do_not_depend_on_the_block_size(blobs, monkeypatch):
    X, y = blobs
    whole = silhouette_scores(X, [y, y % 2])
    monkeypatch.setattr("ncdlib.clustering.kernels.BLOCK_ENTRIES", 5_000)
    np.testing.assert_allclose(silhouette_scores(X, [y, y % 2]), whole, rtol=1e-6)


def test_silhouette_of_coinciding_rows_is_finite():
    X = np.repeat([[0.0], [0.0], [5.0]], 4, axis=0)
    labels = np.repeat([0, 1, 2], 4)  # clusters 0 and 1 lie on the same point
    np.testing.assert_allclose(silhouette_scores(X, [labels]), silhouette_score(X, labels), atol=1e-6)


@pytest.mark.parametrize("labels", [[0, 0, 0, 0], [0, 1, 2, 3], [0, 1, 1]])
def test_silhouette_refuses_what_it_is_not_defined_for(labels):
    with pytest.raises(ValueError, match="between 2 and 3 clusters"):
        silhouette_scores(np.arange(4.0)[:, None], [labels])


def brute_dunn(X, labels):
    D = pairwise_distances(X)
    same = labels[:, None] == labels
    return D[~same].min() / D[same].max()


def test_dunn_agrees_with_brute_force(blobs, monkeypatch):
    X, y = blobs
    labelings = [y, *random_labelings(len(X), [2, 3, 11], seed=1), (X[:, 0] > 0).astype(int)]
    expected = [brute_dunn(X, labels) for labels in labelings]
    np.testing.assert_allclose(dunn_scores(X, labelings), expected, rtol=1e-6)
    monkeypatch.setattr("ncdlib.clustering.kernels.BLOCK_ENTRIES", 5_000)
    np.testing.assert_allclose(dunn_scores(X, labelings), expected, rtol=1e-6)


def test_dunn_of_single_points_is_infinite():
    assert dunn_scores([[0.0], [0.0], [3.0]], [[0, 0, 1]]).tolist() == [np.inf]
    with pytest.raises(ValueError, match="two clusters"):
        dunn_scores([[0.0], [1.0]], [[0, 0]])


def test_scores_are_means_over_the_runs(blobs):
    """Each score is recomputed from the very partitions of the sweep with scikit-learn."""
    X, _ = blobs
    ks = np.arange(2, 8)
    names = ["silhouette", "calinski_harabasz", "davies_bouldin", "dunn", "elbow"]
    estimate = estimate_n_clusters(X, names, ks, n_runs=2, n_init=2, random_state=4)
    labels, inertias = many_k_means(X, ks, 2, 2, np.random.RandomState(4))
    by_hand = {
        "silhouette": silhouette_score,
        "calinski_harabasz": calinski_harabasz_score,
        "davies_bouldin": davies_bouldin_score,
        "dunn": brute_dunn,
    }
    for name, score in by_hand.items():
        expected = [np.mean([score(X, run) for run in runs]) for runs in labels]
        np.testing.assert_allclose(estimate.scores[name], expected, rtol=1e-4)
        best = np.argmin(expected) if name == "davies_bouldin" else np.argmax(expected)
        assert estimate.estimates[name] == ks[best]
    np.testing.assert_allclose(estimate.scores["elbow"], inertias.mean(axis=1))
    assert estimate.index == "silhouette" and estimate.n_clusters == estimate.estimates["silhouette"]


def test_km_acc_agrees_with_a_plain_loop():
    X, y = make_blobs(500, n_features=4, centers=7, cluster_std=0.4, random_state=0)
    known = y < 4
    estimate = estimate_n_clusters(
        X[~known], "km_acc", X_known=X[known], y_known=y[known] * 10, n_runs=2, random_state=0
    )
    assert estimate.k_range[0] == 1
    expected = []
    for k in estimate.k_range[:3]:
        labels = KMeans(4 + k, n_init=20, random_state=0).fit_predict(np.vstack([X[known], X[~known]]))
        expected.append(clustering_accuracy(y[known], labels[: known.sum()]))
    # The classes are well separated: up to their true number, every good k-means finds the same clusters.
    np.testing.assert_allclose(estimate.scores["km_acc"][:3], expected, atol=1e-12)
    assert estimate.n_clusters <= 3 and estimate.scores["km_acc"][2] == 1.0


def test_km_acc_can_answer_one_class():
    X, y = make_blobs(400, centers=[[0, 0], [20, 0], [0, 20], [20, 20]], random_state=0)
    known = y < 3
    estimate = estimate_n_clusters(
        X[~known], ["km_acc", "silhouette"], X_known=X[known], y_known=y[known], random_state=0
    )
    assert estimate.n_clusters == 1
    assert np.isnan(estimate.scores["silhouette"][0]) and estimate.estimates["silhouette"] > 1


@pytest.mark.parametrize("index", [name for name in INDICES if name != "km_acc"])
def test_every_index_finds_clear_clusters(index):
    X, _ = make_blobs(600, n_features=5, centers=6, cluster_std=0.3, random_state=5)
    assert estimate_n_clusters(X, index, range(2, 13), random_state=0).n_clusters == 6


def test_k_means_is_as_good_as_scikit_learn():
    """Same rows, same number of initialisations: over 12 runs, the mean inertia is within 1 % at every k."""
    X = load_iris().data
    ks = np.array([2, 5, 10, 20])
    labels, inertias = many_k_means(X, ks, 12, 10, np.random.RandomState(0))
    for k, runs, inertia in zip(ks, labels, inertias, strict=True):
        reference = np.mean([KMeans(k, n_init=10, random_state=seed).fit(X).inertia_ for seed in range(12)])
        assert inertia.mean() < 1.01 * reference
        for run, value in zip(runs, inertia, strict=True):
            assert len(np.unique(run)) == k
            by_hand = sum(((X[run == c] - X[run == c].mean(axis=0)) ** 2).sum() for c in range(k))
            assert value == pytest.approx(by_hand, rel=1e-4)


def test_k_means_stops_where_lloyd_stops():
    """From the same start, the iterations end in the fixed point that scikit-learn's Lloyd finds."""
    from ncdlib.clustering.many_kmeans import _lloyd

    X, _ = make_blobs(300, n_features=3, centers=8, cluster_std=0.7, random_state=9)
    X = X.astype(np.float32) - X.mean(axis=0, dtype=np.float32)
    rng = np.random.default_rng(0)
    starts = np.stack([X[rng.choice(300, 8, replace=False)] for _ in range(5)])
    labels, inertias = _lloyd(X, starts, 300)
    for start, found, inertia in zip(starts, labels, inertias, strict=True):
        reference = KMeans(8, init=start, n_init=1).fit(X)
        assert inertia == pytest.approx(reference.inertia_, rel=1e-3)
        assert clustering_accuracy(reference.labels_, found) > 0.99


def test_k_means_stands_many_columns_and_outliers():
    """Rounding must not make a squared distance negative."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 400)) * rng.pareto(1.0, size=(200, 1)) + 1e3
    with np.errstate(invalid="raise"):
        labels, inertias = many_k_means(X, np.array([3, 12]), 2, 10, np.random.RandomState(0))
    reference = [KMeans(k, n_init=10, random_state=0).fit(X).inertia_ for k in (3, 12)]
    assert (inertias.min(axis=1) < 1.02 * np.array(reference)).all()


def test_an_empty_cluster_is_filled_again():
    from ncdlib.clustering.many_kmeans import _lloyd

    X = np.r_[np.zeros((5, 1)), np.ones((5, 1)), np.full((5, 1), 9.0)].astype(np.float32)
    start = np.array([[[0.0], [1.0], [1000.0]]], dtype=np.float32)  # nothing is near the third center
    labels, inertias = _lloyd(X, start, 300)
    assert len(np.unique(labels[0])) == 3
    assert inertias[0] == pytest.approx(0, abs=1e-4)


def test_same_seed_same_answer_other_seed_other_scores(blobs):
    X, _ = blobs
    first, again, other = (estimate_n_clusters(X, random_state=seed, n_init=1) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.scores["silhouette"], again.scores["silhouette"])
    assert not np.array_equal(first.scores["silhouette"], other.scores["silhouette"])


def test_candidates_are_cut_to_what_the_rows_can_fill():
    X = np.repeat(np.arange(5.0)[:, None], 6, axis=0)  # 30 rows, 5 of them distinct
    with pytest.warns(UserWarning, match="cut at 5"):
        assert estimate_n_clusters(X, k_range=range(2, 20), random_state=0).k_range.tolist() == [2, 3, 4, 5]
    with pytest.warns(UserWarning, match="cut at 3"):
        assert estimate_n_clusters(np.arange(4.0)[:, None], k_range=[2, 3, 4]).k_range.tolist() == [2, 3]
    import warnings

    with warnings.catch_warnings():  # the default range is limited without a word
        warnings.simplefilter("error")
        assert estimate_n_clusters(X, random_state=0).k_range[-1] == 5


@pytest.mark.parametrize(
    ("X", "kwargs", "message"),
    [
        (np.ones((20, 3)), {}, "20 rows to cluster, 1 of them distinct"),
        (np.eye(2), {}, "2 rows to cluster, 2 of them distinct: too few"),
        (np.full((9, 2), np.nan), {}, "NaN"),
        (np.eye(9), {"index": "gap"}, "unknown validity index 'gap'"),
        (np.eye(9), {"index": []}, "index is empty"),
        (np.eye(9), {"k_range": []}, "positive numbers"),
        (np.eye(9), {"k_range": [0, 3]}, "positive numbers"),
        (np.eye(9), {"k_range": [1]}, "must reach 2"),
        (np.eye(9), {"k_range": range(20, 30)}, "from 20 up"),
        (np.eye(9), {"index": "km_acc"}, "needs the known rows"),
        (np.eye(9), {"k_range": 5}, "k_range must hold positive numbers of clusters, got 5"),
        (np.eye(9), {"k_range": [2.5, 3]}, r"k_range must hold positive numbers of clusters, got \[2.5, 3\]"),
        (np.eye(9), {"k_range": "ab"}, "k_range must hold positive numbers of clusters, got 'ab'"),
        (np.eye(9), {"k_range": [2**70]}, "k_range must hold"),
        (np.eye(9), {"index": None}, "unknown validity index None"),
        (np.eye(9), {"index": 5}, "unknown validity index 5"),
        (np.eye(9), {"n_runs": 0}, "n_runs must be a positive integer, got 0"),
        (np.eye(9), {"n_runs": "a"}, "n_runs must be a positive integer, got 'a'"),
        (np.eye(9), {"n_init": 1.5}, "n_init must be a positive integer"),
        (np.eye(9), {"max_rows": "a"}, "max_rows must be a positive integer"),
    ],
)
def test_clear_errors(X, kwargs, message):
    with pytest.raises(ValueError, match=message):
        estimate_n_clusters(X, **kwargs)


def test_a_straight_inertia_curve_has_no_elbow(monkeypatch):
    X = np.random.default_rng(0).normal(size=(40, 2))
    with pytest.warns(UserWarning, match="no elbow"):
        assert estimate_n_clusters(X, "elbow", [2, 3], random_state=0).n_clusters == 2


def test_above_max_rows_a_sample_is_used_and_memory_is_bounded():
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(4, 10)) * 6
    X = (centers[rng.integers(4, size=60_000)] + rng.normal(size=(60_000, 10))).astype(np.float32)
    tracemalloc.start()
    estimate = estimate_n_clusters(X, k_range=range(2, 8), max_rows=2_000, n_init=2, random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert estimate.n_rows == 2_000
    assert estimate.n_clusters == 4
    assert peak < 300e6  # all distances of all rows would take 14 GB
    again = estimate_n_clusters(X, k_range=range(2, 8), max_rows=2_000, n_init=2, random_state=0)
    np.testing.assert_array_equal(estimate.scores["silhouette"], again.scores["silhouette"])


def test_plot_marks_the_estimate(blobs):
    import matplotlib

    matplotlib.use("Agg")
    estimate = estimate_n_clusters(blobs[0], ["silhouette", "elbow"], range(2, 9), random_state=0)
    ax = estimate.plot()
    assert ax.get_xlabel() == "number of clusters" and ax.get_ylabel() == "silhouette"
    assert [text.get_text() for text in ax.texts] == [f"k = {estimate.n_clusters}"]
    ax.figure.clear()
    assert estimate.plot(ax.figure.add_subplot(), index="elbow").get_ylabel() == "inertia"
    ax.figure.clear()


@pytest.mark.parametrize("index", INDICES)
def test_a_large_constant_column_hides_nothing(index):
    X = np.column_stack([np.full(7, 1e20), [0, 0.1, 0.2, 5, 5.1, 9, 9.1]])
    known = {"X_known": X[:4], "y_known": [0, 0, 0, 1]}
    found, alone = (estimate_n_clusters(rows, index, range(2, 6), random_state=0, **known) for rows in (X, X * [0, 1]))
    assert found.estimates == alone.estimates
    if index in ("silhouette", "davies_bouldin", "dunn"):
        assert found.n_clusters == 3


@pytest.mark.parametrize("move", [lambda X: X + 1e8, lambda X: X * 1e-9], ids=["shifted", "tiny"])
def test_neither_origin_nor_unit_matter(move):
    X, _ = make_blobs(300, centers=4, cluster_std=0.5, random_state=1)
    indices = ("silhouette", "calinski_harabasz", "davies_bouldin", "dunn")
    plain, moved = (estimate_n_clusters(rows, indices, range(2, 9), random_state=0) for rows in (X, move(X)))
    assert moved.estimates == plain.estimates
    for index in indices:
        assert moved.scores[index] == pytest.approx(plain.scores[index], rel=1e-4)


def test_clusters_of_one_point_each_are_the_best_there_are():
    points = np.random.default_rng(0).normal(size=(5, 2))
    found = estimate_n_clusters(np.repeat(points, 4, axis=0), ("calinski_harabasz", "silhouette"), range(2, 6))
    assert found.estimates == {"calinski_harabasz": 5, "silhouette": 5}


def test_a_flat_curve_has_no_elbow():
    """Two clusters leave nothing to gain: what lies apart otherwise is too near for any number of clusters."""
    X = np.array([[0.0], [1e-160], [2e-160], [3e-160], [1.0]])
    with pytest.warns(UserWarning, match="no elbow") as caught:
        assert estimate_n_clusters(X, "elbow", random_state=0).n_clusters == 2
    assert len(caught) == 1  # and none of a division by zero


def test_a_sample_keeps_known_rows_to_score():
    rng = np.random.default_rng(0)
    X, X_known = rng.normal(size=(300, 2)), np.array([[0.0, 0.0], [9.0, 9.0]])
    options = {"X_known": X_known, "y_known": [0, 1], "k_range": range(2, 4), "n_runs": 1, "n_init": 1}
    assert estimate_n_clusters(X, "km_acc", max_rows=20, random_state=0, **options).scores["km_acc"].max() > 0
