"""How sure: the confidence of rows, of classes and of partitions, and what it was worth on the tables on board."""

import numpy as np
import pandas as pd
import pytest

from ncdlib import MetricNCD, clustering_accuracy, discover, make_ncd_blobs
from ncdlib.evidence.confidence import fit_map, load_confidence, measure, reliability
from ncdlib.own_data.confidence import COEFFICIENTS, SIGNS, confidence

OPTIONS = {"n_seeds": 1, "verbose": False}


@pytest.fixture(scope="module")
def problem():
    return make_ncd_blobs(random_state=0)


@pytest.fixture(scope="module")
def found(problem):
    return discover(problem.X, problem.y, **OPTIONS)


def test_by_default_the_metric_answers_counts_and_says_why(problem, found, tmp_path):
    novel = problem.y == -1
    assert isinstance(found.model, MetricNCD) and found.search is None
    assert found.n_clusters == 3 and clustering_accuracy(problem.y_novel, found.labels[novel]) > 0.95
    assert found.explanation == found.model.explanation_ and found.explanation.startswith(
        "3 novel classes (counted; 3 has"
    )
    estimate = found.estimate
    assert (estimate.index, estimate.n_clusters) == ("votes", 3) and estimate.scores["votes"].sum() == pytest.approx(1)
    assert found.plot().axes[0].get_ylabel() == "share of the votes"
    page = found.report(tmp_path / "report.html").read_text()
    assert "weighed on 4 sets of hidden known classes" in page and f"partition: {found.confidence:.0%}" in page


def test_rows_between_two_classes_are_in_doubt(problem, tmp_path):
    centers = np.array([problem.X[problem.y_true == c].mean(axis=0) for c in problem.novel_classes[:2]])
    share = np.linspace(0.3, 0.7, 9)[:, None]
    between = share * centers[0] + (1 - share) * centers[1]
    X, y = np.r_[problem.X, between], np.r_[problem.y, np.full(9, -1)]
    found = discover(X, y, unlabeled="new", **OPTIONS)
    frame = found.to_frame()
    novel, between = frame[:-9][problem.y == -1], frame[-9:]
    assert novel["confidence"].quantile(0.1) > 0.9 and between["confidence"].min() < 0.75
    names = novel["label"].groupby(problem.y_novel).agg(lambda labels: labels.mode()[0])
    doubtful = between.loc[between["confidence"].idxmin()]
    assert {doubtful["label"], doubtful["runner_up"]} == set(names[list(problem.novel_classes[:2])])
    assert frame["confidence"].isna().equals(~frame["discovered"])


@pytest.mark.parametrize("method", ["ncd_kmeans", "metric"])
def test_votes_of_rows_are_shares(problem, method):
    found = discover(problem.X, problem.y, method=method, n_clusters=4, **OPTIONS)
    frame = found.to_frame()[problem.y == -1]
    assert frame["confidence"].between(0, 1).all()
    doubtful = frame["runner_up"].notna()
    assert (frame["confidence"][doubtful] < 1).all() and (frame["confidence"][~doubtful] > 0.9).all()
    assert doubtful.any() or method == "ncd_kmeans"  # whose fits with other seeds agree here
    assert (frame["label"] != frame["runner_up"]).all()
    known = [np.isnan(found.confidence), *(np.isnan(profile.confidence) for profile in found.profiles)]
    assert all(known) if method == "ncd_kmeans" else not any(known)


def test_an_index_counts_in_the_metric(problem):
    found = discover(problem.X, problem.y, n_clusters="davies_bouldin", **OPTIONS)
    assert found.estimate.index == "davies_bouldin" and found.n_clusters == found.estimate.n_clusters
    assert "(by the davies bouldin index)" in found.explanation


def test_a_largest_number_of_classes(problem):
    found = discover(problem.X, problem.y, k_max=2, **OPTIONS)
    assert found.n_clusters == 2 and found.estimate.k_range.max() == 2


def test_two_known_classes(problem):
    some = np.isin(problem.y, [-1, *problem.known_classes[:2]])
    found = discover(problem.X[some], problem.y[some], **OPTIONS)
    assert "no known class could be hidden" in found.explanation and 0 < found.confidence < 1


@pytest.mark.parametrize("n_unlabeled", [3, 5, 12])
@pytest.mark.parametrize("n_clusters", [None, 2])
def test_tiny_tables(n_unlabeled, n_clusters, tmp_path):
    n_rows = n_unlabeled + 6
    words = np.resize(["a", "b", "c"], n_rows)
    table = pd.DataFrame({"x": np.random.default_rng(0).normal(size=n_rows), "same": 1, "word": words})
    y = [0, 0, 0, 1, 1, 1] + [-1] * n_unlabeled
    found = discover(table, y, n_clusters=n_clusters, **OPTIONS)
    assert (found.labels[6:] != -1).all()
    assert found.report(tmp_path / "report.html").exists()


# What it was worth.


def test_nine_in_ten_of_the_classes_shown_as_sure_are_right():
    classes = reliability("class")
    sure = classes[classes["confidence"] > 0.9]
    assert len(sure) >= 10 and sure["right"].mean() >= 0.85
    error = np.mean((classes["confidence"] - classes["right"]) ** 2)
    assert error < 0.75 * classes["right"].var(ddof=0)  # than the same confidence for all


def test_coefficients_are_those_of_what_was_measured():
    stored, rows = pd.read_csv(COEFFICIENTS, index_col="of"), load_confidence()
    for of in ("class", "table"):
        np.testing.assert_allclose(stored.loc[of], fit_map(rows[rows["of"] == of])[stored.columns], atol=0.02)


@pytest.mark.parametrize("of", ["class", "table"])
def test_confidence_rises_with_each_sign(of):
    low = pd.DataFrame({sign: [0.5] for sign in SIGNS})
    for sign in SIGNS:
        assert confidence(low.assign(**{sign: 0.9}), of) >= confidence(low, of)
    unseen = confidence(low.assign(hidden=np.nan), of)
    assert 0 < unseen < 1


def test_a_stored_measurement_is_made_again():
    again = measure("vehicle", 0).set_index(["of", "cluster"])
    stored = load_confidence().query("table == 'vehicle' and split == 0").set_index(["of", "cluster"])
    np.testing.assert_allclose(again[[*SIGNS, "score"]], stored[[*SIGNS, "score"]].loc[again.index], atol=1e-3)
