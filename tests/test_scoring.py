"""The readings of the score on hidden rows: each by hand, all stored, none of them bound to one search."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import NearestCentroid
from test_search import SPACE, PCAKMeans, make_search

from ncdlib import HiddenClassKFold, HiddenClassSearchCV, NCDKMeans, TabularNCD, evaluate, make_ncd_blobs
from ncdlib.selection.scoring import READINGS
from ncdlib.selection.worker import FIT, seed_of


@pytest.fixture(scope="module")
def problem():
    return make_ncd_blobs(random_state=3, cluster_std=4)


def test_every_reading_by_hand(problem, tmp_path):
    X, y, cv = problem.X, problem.y, HiddenClassKFold(2, 2)
    make_search(n_iter=2, cv=cv, n_clusters=4, refit=False, store=tmp_path / "s.csv").fit(X, y)
    stored = pd.read_csv(tmp_path / "s.csv").set_index(["trial", "fold"])
    for trial, params in enumerate(stored["params"].groupby("trial").first().map(json.loads)):
        for number, fold in enumerate(cv.split(X, y)):
            row, seed = stored.loc[(trial, number)], seed_of(0, FIT, trial, number)
            y_fold = np.where(np.isin(y, fold.classes), -1, y)
            model = PCAKMeans(2, **params).fit(X, y_fold)
            k = model.estimate_n_clusters(X[y == -1], k_range=range(2, 7), random_state=seed).n_clusters
            for setting, n_novel in (("known", 4), ("estimated", k)):
                labels = np.full(len(y), -1)
                labels[y_fold == -1] = model.cluster(X[y_fold == -1], 2 + n_novel, random_state=seed)
                for name, value in evaluate(y[fold.hidden], labels[fold.hidden]).items():
                    assert row[f"{name}_{setting}"] == value
            alone = model.cluster(X[fold.hidden], 2, random_state=seed)
            for name, value in evaluate(y[fold.hidden], alone).items():
                assert row[f"{name}_alone"] == value
            Z = model.transform(X[fold.visible])
            nearest = NearestCentroid().fit(Z, y[fold.visible]).score(Z, y[fold.visible])
            assert row["visible_acc"] == pytest.approx(nearest, abs=1e-12)
    scores = stored[[c for c in stored if c.endswith(("_known", "_estimated", "_alone"))]]
    assert scores.shape[1] == 9 and scores.notna().all().all()
    assert (scores["ari_alone"] != scores["ari_known"]).any()


@pytest.mark.parametrize("scoring", READINGS)
def test_each_name_ranks_by_its_own_column(problem, tmp_path, scoring):
    search = make_search(n_clusters=3, scoring=scoring, refit=False, store=tmp_path / "s.csv")
    results = search.fit(problem.X, problem.y).cv_results_
    column = scoring if scoring.endswith("_alone") else f"{scoring}_known"
    stored = pd.read_csv(tmp_path / "s.csv").groupby("trial")[column].mean()
    np.testing.assert_allclose(results["mean_test_score"], stored, rtol=1e-12)
    assert search.best_index_ == stored.argmax() and search.scoring_ == scoring
    np.testing.assert_array_equal(results[f"mean_{column}"], results["mean_test_score"])


def test_one_store_serves_every_reading(problem, tmp_path, monkeypatch):
    store = tmp_path / "search.csv"
    make_search(n_clusters=3, store=store, refit=False).fit(problem.X, problem.y)
    monkeypatch.setattr(PCAKMeans, "fit", lambda *_: pytest.fail("trained again"))
    for scoring in READINGS:
        search = make_search(n_clusters=3, store=store, refit=False, scoring=scoring)
        assert np.isfinite(search.fit(problem.X, problem.y).best_score_)


def test_alone_nothing_depends_on_the_number_of_novel_classes(problem):
    few, many = (
        make_search(n_clusters=k, scoring="ari_alone", refit=False).fit(problem.X, problem.y).cv_results_
        for k in (2, 9)
    )
    np.testing.assert_array_equal(few["mean_test_score"], many["mean_test_score"])
    assert (few["mean_ari_known"] != many["mean_ari_known"]).any()


def test_a_function_of_ones_own(problem):
    """It gets the true classes of the hidden rows, and their clusters."""
    truths = []

    def my_score(y_true, y_pred):
        truths.append(set(y_true.tolist()))
        return adjusted_rand_score(y_true, y_pred)

    by_name = make_search(n_clusters=3, refit=False).fit(problem.X, problem.y)
    mine = make_search(n_clusters=3, refit=False, scoring=my_score).fit(problem.X, problem.y)
    np.testing.assert_array_equal(mine.cv_results_["mean_test_score"], by_name.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(mine.cv_results_["mean_score_known"], by_name.cv_results_["mean_ari_known"])
    assert all(truth <= set(problem.known_classes) and len(truth) == 2 for truth in truths)


def test_the_default_is_alone_where_that_can_be_done(problem):
    options = {"n_iter": 1, "cv": HiddenClassKFold(2, 2), "n_clusters": 3, "refit": False, "verbose": False}
    assert HiddenClassSearchCV(PCAKMeans(), SPACE, **options).fit(problem.X, problem.y).scoring_ == "ari_alone"
    plain = HiddenClassSearchCV(NCDKMeans(n_init=1), {}, **options).fit(problem.X, problem.y)
    assert plain.scoring_ == "ari"  # it can neither cluster afresh nor project
    assert np.isnan([plain.cv_results_["mean_ari_alone"], plain.cv_results_["mean_visible_acc"]]).all()
    with pytest.raises(ValueError, match="NCDKMeans has neither cluster nor transform: scoring='acc' does without"):
        plain.set_params(scoring="acc_alone").fit(problem.X, problem.y)


def test_a_model_without_cluster_is_taken_at_its_projection(problem, monkeypatch):
    cv = HiddenClassKFold(1, 2)
    models = []
    original = TabularNCD.fit_many
    monkeypatch.setattr(TabularNCD, "fit_many", lambda *a, **k: models.extend(original(*a, **k)) or models)
    search = HiddenClassSearchCV(TabularNCD(epochs=2), {}, n_iter=1, cv=cv, n_clusters=3, refit=False, verbose=False)
    search.fit(problem.X, problem.y)
    fold, seed = next(cv.split(problem.X, problem.y)), search.cv_results_["split0_random_state"][0]
    labels = KMeans(2, n_init=10, random_state=seed).fit(models[0].transform(problem.X[fold.hidden])).labels_
    assert search.best_score_ == adjusted_rand_score(problem.y[fold.hidden], labels)


def test_where_clustering_alone_fails_the_joint_scores_stay(problem, tmp_path):
    class OnlyMany(PCAKMeans):
        def cluster(self, X, n_clusters, random_state=None):
            if n_clusters == 2:
                raise ValueError("not so few")
            return super().cluster(X, n_clusters, random_state)

    search = make_search(estimator=OnlyMany(), n_clusters=3, refit=False).fit(problem.X, problem.y)
    assert np.isfinite(search.best_score_) and np.isnan(search.cv_results_["mean_ari_alone"]).all()
    assert search.cv_results_["error"] == ["ValueError: not so few"] * 4
