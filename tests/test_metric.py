"""The metric of the known classes, and the estimator that clusters in it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.covariance import ledoit_wolf
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from ncdlib import KnownClassMetric, MetricNCD, load, make_ncd_blobs
from ncdlib.clustering.consensus import consensus
from ncdlib.clustering.graphs import Communities, fuzzy_neighbor_graph, graph_coordinates, shared_neighbor_graph


@parametrize_with_checks([KnownClassMetric()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def table(n_classes=4, n_per_class=40, n_features=6, seed=0):
    """Classes that differ in their means and share a covariance, and as many unlabelled rows."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), n_per_class)
    X = 2 * rng.normal(size=(n_classes, n_features))[y]
    X += rng.normal(size=X.shape) @ rng.normal(size=(n_features, n_features))
    return X, np.where(y < n_classes // 2, y, -1), y


def nuisance(seed=0):
    """Four classes (two of them novel) told apart by two columns, among noise that is shared and far larger."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(5), 80)
    centers = np.array([[0, 0], [6, 0], [0, 6], [6, 6], [3, 12]])
    loud = 30 * rng.normal(size=(len(y), 1))
    X = np.hstack([centers[y] + rng.normal(size=(len(y), 2)) + loud, loud + 0.1 * rng.normal(size=(len(y), 2))])
    return X, np.where(y < 3, y, -1), y


@pytest.mark.parametrize("shrinkage", [0.0, 0.1, 1.0, "ledoit_wolf"])
def test_closed_form(shrinkage):
    X, y, _ = table()
    standard = (X - X.mean(0)) / X.std(0)
    known = standard[y >= 0]
    residuals = np.vstack([known[y[y >= 0] == c] - known[y[y >= 0] == c].mean(0) for c in (0, 1)])
    W = residuals.T @ residuals / (len(residuals) - 2)
    a = ledoit_wolf(residuals, assume_centered=True)[1] if shrinkage == "ledoit_wolf" else shrinkage
    W = (1 - a) * W + a * np.trace(W) / len(W) * np.eye(len(W))
    metric = KnownClassMetric(shrinkage).fit(X, y)
    assert metric.shrinkage_ == pytest.approx(a)
    assert_allclose(pdist(metric.transform(X)), pdist(standard, "mahalanobis", VI=np.linalg.inv(W)))
    assert_allclose(metric.inverse_transform(metric.transform(X)), X)


def test_is_the_sphering_of_linear_discriminants():
    X, y, _ = table(n_classes=12)
    known = y >= 0
    lda = LinearDiscriminantAnalysis(solver="svd").fit(X[known], y[known])
    means = np.array([X[y == c].mean(0) for c in range(6)])  # 6 classes, 5 directions: means lie in their span
    ours = KnownClassMetric(shrinkage=0).fit(X, y).transform(means)
    theirs, ours = pdist(lda.transform(means)), pdist(ours)  # their covariance is divided by another number of rows
    assert_allclose(theirs / theirs[0], ours / ours[0], rtol=1e-9)


def test_unshrunk_distances_depend_on_no_unit():
    X, y, _ = table()
    mixed = X @ np.random.default_rng(1).normal(size=(6, 6)) * 50 + 7
    distances = [pdist(KnownClassMetric(shrinkage=0).fit(Z, y).transform(Z)) for Z in (X, mixed)]
    assert_allclose(*distances, rtol=1e-6)


def test_all_shrunk_is_standardised():
    X, y, _ = table()
    Z = KnownClassMetric(shrinkage=1).fit(X, y).transform(X)
    standard = (X - X.mean(0)) / X.std(0)
    assert_allclose(Z / Z[0, 0], standard / standard[0, 0])


DEGENERATE = {
    "one row in each class": lambda X, y: (np.r_[X[:1], X[50:51], X[y < 0]], np.r_[0, 1, y[y < 0]]),
    "a class of one row": lambda X, y: (np.delete(X, np.s_[1:40], 0), np.delete(y, np.s_[1:40])),
    "constant column": lambda X, y: (np.column_stack([X, np.full(len(X), 3.3)]), y),
    "duplicate columns": lambda X, y: (np.hstack([X, X]), y),
    "more columns than rows": lambda X, y: (np.random.default_rng(0).normal(size=(len(X), 300)) + y[:, None], y),
    "one known class": lambda X, y: (X, np.where(y == 0, 0, -1)),
}


@pytest.mark.parametrize("shrinkage", [0.0, 0.1, "ledoit_wolf"])
@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_tables(case, shrinkage):
    X, y = DEGENERATE[case](*table()[:2])
    Z = KnownClassMetric(shrinkage).fit(X, y).transform(X)
    assert Z.shape == X.shape
    assert np.isfinite(Z).all()
    assert np.abs(Z).max() < 1e6


@pytest.mark.parametrize("shrinkage", [-0.1, 1.1, "none", None, True, np.nan])
def test_bad_shrinkage(shrinkage):
    with pytest.raises(ValueError, match="shrinkage must be 'ledoit_wolf' or a number from 0 to 1"):
        KnownClassMetric(shrinkage).fit(*table()[:2])


def test_bad_labels_of_the_metric():
    X, y, _ = table()
    with pytest.raises(ValueError, match="requires y to be passed"):
        KnownClassMetric().fit(X, None)
    with pytest.raises(ValueError, match="no labelled row"):
        KnownClassMetric().fit(X, np.full(len(X), -1))


def test_wins_where_noise_is_shared():
    X, y, truth = nuisance()
    novel = y == -1
    raw = KMeans(2, n_init=10, random_state=0).fit_predict(X[novel])
    model = MetricNCD(2, random_state=0).fit(X, y)
    assert adjusted_rand_score(truth[novel], raw) < 0.2
    assert adjusted_rand_score(truth[novel], model.labels_[novel]) > 0.95
    assert "metric" in model.choice_ or "cosine" in model.choice_ or "shrunk" in model.choice_


def test_counts_blobs():
    problem = make_ncd_blobs(random_state=0)
    model = MetricNCD(random_state=0).fit(problem.X, problem.y)
    assert model.n_clusters_ == len(set(problem.y_novel))
    assert adjusted_rand_score(problem.y_novel, model.labels_[problem.y == -1]) > 0.95
    assert sum(model.counts_.values()) == pytest.approx(1)
    assert f"{model.n_clusters_} novel classes (counted; " in model.explanation_
    assert sum(model.weights_.values()) == pytest.approx(1)
    assert model.choice_ in model.explanation_


def test_same_seed_same_result():
    X, y, _ = table(n_classes=8)
    first, second = (MetricNCD(random_state=3).fit(X, y) for _ in range(2))
    assert np.array_equal(first.labels_, second.labels_)
    assert first.explanation_ == second.explanation_


def test_training_rows_keep_their_class():
    X, y, _ = table(n_classes=6)
    for model in (MetricNCD(3, random_state=0), MetricNCD(3, max_rows=60, random_state=0)):
        model.fit(X, y)
        assert np.array_equal(model.predict(X[y == -1]), model.labels_[y == -1])


def test_a_sample_of_a_large_table():
    problem = make_ncd_blobs(n_samples=6000, random_state=0)
    model = MetricNCD(max_rows=200, random_state=0).fit(problem.X, problem.y)
    assert len(model.reference_) == 200
    assert adjusted_rand_score(problem.y_novel, model.labels_[problem.y == -1]) > 0.9


def test_two_known_classes():
    X, y, _ = table(n_classes=4)
    model = MetricNCD(random_state=0).fit(X, y)
    assert model.hidden_scores_ == {}
    assert "no known class could be hidden" in model.explanation_
    assert len(set(model.weights_.values())) == 1


def test_no_novel_label_matters():
    """What the model is given of the unlabelled rows is their columns: other marks for them change nothing."""
    X, y, _ = table(n_classes=8)
    names = np.where(y == -1, None, np.char.add("c", y.astype(str)))
    models = [MetricNCD(4, random_state=0).fit(X, labels) for labels in (y, names)]
    assert np.array_equal(models[0].labels_, models[1].labels_)


def test_save_and_load(tmp_path):
    X, y, _ = table(n_classes=6)
    model = MetricNCD(random_state=0).fit(X, y)
    again = load(model.save(tmp_path / "model.npz"))
    assert again.explanation_ == model.explanation_
    assert np.array_equal(again.predict(X), model.predict(X))
    assert np.array_equal(again.transform(X), model.transform(X))


def test_save_and_load_of_the_metric(tmp_path):
    X, y, _ = table(n_classes=6)
    metric = KnownClassMetric(shrinkage=0.1).fit(X, y)
    again = load(metric.save(tmp_path / "metric.npz"))
    assert again.get_params() == metric.get_params()
    assert np.array_equal(again.transform(X), metric.transform(X))
    assert_allclose(again.inverse_transform(again.transform(X)), X)
    with pytest.raises(NotFittedError):
        KnownClassMetric().save(tmp_path / "unfitted.npz")


@pytest.mark.parametrize("n_clusters", ["silhouette", 0, 2.5])
def test_bad_number_of_clusters(n_clusters):
    with pytest.raises(ValueError, match="n_clusters must be a positive integer or 'auto'"):
        MetricNCD(n_clusters).fit(*table()[:2])


@pytest.mark.parametrize("n_unlabeled", [1, 2, 3, 5])
def test_few_unlabelled_rows(n_unlabeled):
    X, y, _ = table(n_classes=6)
    keep = np.r_[np.flatnonzero(y >= 0), np.flatnonzero(y == -1)[:n_unlabeled]]
    model = clone(MetricNCD(random_state=0)).fit(X[keep], y[keep])
    assert 1 <= model.n_clusters_ <= n_unlabeled
    assert set(MetricNCD(n_unlabeled, random_state=0).fit(X[keep], y[keep]).labels_) >= {-1, 0}


@pytest.mark.parametrize("make_graph", [shared_neighbor_graph, fuzzy_neighbor_graph])
def test_graphs(make_graph):
    rng = np.random.default_rng(0)
    Z = np.vstack([rng.normal(size=(50, 2)), 30 + rng.normal(size=(50, 2))])
    truth = np.repeat([0, 1], 50)
    graph = make_graph(Z)
    assert_allclose(graph.toarray(), graph.toarray().T)
    assert graph.toarray()[:50, 50:].sum() == 0
    assert adjusted_rand_score(truth, Communities(graph).merged_to(2)) == 1
    assert len(set(Communities(graph).merged_to(7))) == 7
    first = graph_coordinates(graph, 2)
    assert np.ptp(np.linalg.norm(first[:50] - first[0], axis=1)) < np.linalg.norm(first[0] - first[-1])


def test_communities_leave_random_numbers_alone():
    import random

    random.seed(5)
    expected = random.random()
    random.seed(5)
    Communities(shared_neighbor_graph(np.random.default_rng(0).normal(size=(60, 2))))(1.0)
    assert random.random() == expected


def test_consensus_follows_the_weights():
    a, b = np.repeat([0, 1], 10), np.tile([0, 1], 10)
    for weights, expected in (((3, 1), a), ((1, 3), b)):
        assert adjusted_rand_score(expected, consensus([a, b], weights, 2)) == 1
