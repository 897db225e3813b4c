"""The whole procedure on tables as people have them, and what it says of the classes it finds."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from own_tables import EVIL, odd_table
from sklearn.cluster import KMeans

from ncdlib import PBN, Discovery, NCDKMeans, NCDSpectralClustering, clustering_accuracy, discover, make_ncd_blobs
from ncdlib.own_data.explain import _in_words, _rule


@pytest.fixture(scope="module")
def problem():
    return make_ncd_blobs(random_state=0)


@pytest.fixture(scope="module")
def table(problem):
    return odd_table(problem)


@pytest.fixture(scope="module")
def found(table):
    return discover(*table, method="ncd_kmeans", verbose=False)


def test_finds_the_classes_of_a_mixed_table(problem, found):
    novel = problem.y == -1
    assert isinstance(found, Discovery) and found.n_clusters == 3
    assert clustering_accuracy(problem.y_novel, found.labels[novel]) > 0.95
    assert (found.labels[~novel] == -1).all()
    assert found.stability > 0.9
    assert found.estimate.n_clusters == 3 and len(found.estimate.scores["silhouette"]) > 10
    assert any("'same' was left out" in note for note in found.notes)
    assert any("needs no search" in note for note in found.notes)


def test_profiles_say_what_the_classes_are(problem, table, found):
    X, y = table
    novel = problem.y == -1
    red = found.labels[(problem.y_true == problem.novel_classes[0]) & novel][0]
    profile = next(p for p in found.profiles if p.cluster == red)
    assert profile.differences[0].feature == "colour is red"
    assert profile.differences[0].inside > 0.8 and profile.differences[0].outside < 0.05
    assert sum(p.size for p in found.profiles) == novel.sum()
    assert sum(p.share for p in found.profiles) == pytest.approx(1)
    for p in found.profiles:
        member = found.labels == p.cluster
        difference = next(d for d in p.differences if d.feature == "x3")
        spread = X["x3"].std(ddof=0)
        assert difference.inside == pytest.approx(X["x3"][member].mean())
        expected = (X["x3"][member].mean() - X["x3"][~member].mean()) / spread
        assert difference.standardized == pytest.approx(expected)
        strengths = [abs(d.standardized) for d in p.differences]
        assert strengths == sorted(strengths, reverse=True)
        assert p.nearest_known in {EVIL, "B", "C", "D"}


def check_rules(found, table):
    """Read every rule back as a person would, and compare with the precision and recall that it is said to have."""
    for p in found.profiles:
        under = np.ones(len(table), dtype=bool)
        for condition in p.rule.split(" and "):
            under &= table.eval(condition).to_numpy()
        member = found.labels == p.cluster
        assert (under & member).sum() / under.sum() == pytest.approx(p.rule_precision), p.rule
        assert (under & member).sum() / member.sum() == pytest.approx(p.rule_recall), p.rule


def test_rules_hold_for_the_rows_they_describe(problem):
    """A rule as it is printed, whatever the unit: years, seconds since 1970, cents, thousandths."""
    X = (problem.X - problem.X.mean(axis=0)) / problem.X.std(axis=0)
    table = pd.DataFrame(
        {
            "year": 2015 + np.round(2 * X[:, 0]),
            "epoch": 1.7e9 + np.round(1e5 * X[:, 1]),
            "cents": 1_234_000 + np.round(300 * X[:, 2]),
            "share": np.round(0.5 + 0.001 * X[:, 3], 4),
            "x": X[:, 4],
        }
    )
    found = discover(table, problem.y, method="ncd_kmeans", n_clusters=3, verbose=False)
    check_rules(found, table)
    assert "e+" not in " ".join(p.rule for p in found.profiles)
    assert min(p.rule_precision for p in found.profiles) > 0.8
    # Learned from a sample, a rule is still measured on all rows.
    sample = discover(table, problem.y, method="ncd_kmeans", n_clusters=3, max_rows=60, verbose=False)
    check_rules(sample, table)


def test_rules_read_well():
    from ncdlib.own_data.prepare import Feature

    features = [Feature("age"), Feature("colour", "red"), Feature("size"), Feature("shape", "round")]
    bounds = {0: (18.0, 40.0), 1: (0.5, np.inf), 2: (-np.inf, 3.142), 3: (-np.inf, 0.5)}
    assert _in_words(bounds, features) == "18 < age <= 40 and colour is red and size <= 3.142 and shape is not round"
    assert _rule(np.zeros((6, 1)), np.array([1, 1, 0, 0, 0, 0], dtype=bool)) == {}
    years = np.repeat(np.arange(2012.0, 2020.0), 3)[:, None]
    assert _rule(years, years[:, 0] > 2015) == {0: (2015.5, np.inf)}  # no digit less tells 2015 from 2016


def test_names_of_a_second_round(problem):
    known = pd.Series(problem.y).map({c: f"new {i + 1}" for i, c in enumerate(problem.known_classes)})
    found = discover(problem.X, known, method="ncd_kmeans", n_clusters=3, verbose=False)
    n = len(problem.known_classes)
    assert [p.name for p in found.profiles] == [f"new {n + 1}", f"new {n + 2}", f"new {n + 3}"]
    assert set(found.to_frame()["label"][problem.y == -1]) == {p.name for p in found.profiles}


def test_to_frame_and_predict(problem, table, found):
    X, y = table
    frame = found.to_frame()
    assert list(frame.index) == list(X.index)
    known = problem.y != -1
    assert (frame["label"][known] == y[known]).all() and not frame["discovered"][known].any()
    assert set(frame["label"][~known]) == {"new 1", "new 2", "new 3"} and frame["discovered"][~known].all()
    np.testing.assert_array_equal(found.predict(X[~known]), found.labels[~known])
    assert found.summary()["rows"].sum() == (~known).sum()


def test_with_a_search(problem):
    """Numbers in an array; the search decides the hyperparameters, and the report says so."""
    options = {"method": PBN(epochs=10), "n_trials": 2, "cv": 2, "n_seeds": 2, "n_clusters": 3, "verbose": False}
    found = discover(problem.X, problem.y, **options)
    assert found.search.cv_results_["mean_test_score"].shape == (2,)
    for name, value in found.search.best_params_.items():
        assert getattr(found.model, name) == value
    assert found.n_clusters == found.model.n_clusters_ == 3
    again = discover(problem.X, problem.y, **options)
    np.testing.assert_array_equal(found.labels, again.labels)
    assert found.stability == again.stability


def test_a_given_number_of_classes_is_kept(problem):
    found = discover(problem.X, problem.y, method="ncd_kmeans", n_clusters=2, verbose=False)
    assert found.n_clusters == 2 and found.estimate.n_clusters == 3


def test_methods_by_name(problem):
    found = discover(problem.X, problem.y, method="ncd_sc", n_seeds=1, verbose=False)
    assert isinstance(found.model, NCDSpectralClustering) and found.n_clusters == found.estimate.n_clusters
    with pytest.raises(ValueError, match="unknown method 'dbscan': choose from auto, metric, pbn"):
        discover(problem.X, problem.y, method="dbscan")


def test_two_known_classes_are_enough_without_a_search(problem):
    some = np.isin(problem.y, [-1, *problem.known_classes[:2]])
    model = PBN(epochs=5, verbose=False)
    found = discover(problem.X[some], problem.y[some], method=model, n_seeds=1, verbose=False)
    assert found.search is None
    assert any("at least 3 of them, and there are 2" in note for note in found.notes)
    assert found.n_clusters == found.estimate.n_clusters == found.model.n_clusters_


def test_other_seeds_show_what_is_unstable():
    """One round cloud has no classes: a partition of it depends on chance, and the stability says so."""
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(300, 6)), rng.normal(size=(60, 6)) + 6, rng.normal(size=(60, 6)) - 6]
    y = np.r_[np.full(300, -1), np.zeros(60), np.ones(60)]
    found = discover(X, y, method=NCDKMeans(n_init=1), n_clusters=6, verbose=False)
    assert found.stability < 0.7
    assert max(p.stability for p in found.profiles) < 0.9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": lambda y: np.where(y == -1, 0, y)}, "no row is unlabelled"),
        ({"y": lambda y: np.where(y == 0, 0, -1)}, "at least two known classes .* there is one, "),
        ({"y": lambda y: np.full(len(y), None)}, "at least two known classes .* there is none"),
        ({"y": lambda y: y[:-1]}, "inconsistent"),
        ({"n_seeds": 0}, "n_seeds must be a positive integer, got 0"),
        ({"n_seeds": "a"}, "n_seeds must be a positive integer, got 'a'"),
        ({"max_rows": "a"}, "max_rows must be a positive integer, got 'a'"),
        ({"random_state": -1}, "random_state must be None or an integer from 0"),
        ({"random_state": "a"}, "random_state must be None or an integer from 0"),
    ],
)
def test_clear_errors(problem, change, message):
    y = change.pop("y", lambda y: y)(problem.y)
    with pytest.raises(ValueError, match=message):
        discover(problem.X, y, method="ncd_kmeans", verbose=False, **change)


@pytest.mark.parametrize("seed", [None, 2**32 - 1])
def test_any_seed(problem, seed):
    found = discover(problem.X, problem.y, method="ncd_kmeans", random_state=seed, max_rows=150, verbose=False)
    assert found.n_clusters == 3 and found.stability > 0.9


def test_a_method_that_does_not_know_labelled_rows_is_refused(problem):
    with pytest.raises(ValueError, match="KMeans puts labelled rows into clusters"):
        discover(problem.X, problem.y, method=KMeans(n_init=1), n_clusters=3, n_seeds=1, verbose=False)


def test_scikit_learn_set_to_pandas(problem):
    with sklearn.config_context(transform_output="pandas"):
        assert discover(problem.X, problem.y, method="ncd_kmeans", n_clusters=3, verbose=False).n_clusters == 3


def test_few_unlabelled_rows_stay_in_a_sample():
    problem = make_ncd_blobs(n_samples=2_000, random_state=0)
    kept = np.r_[np.flatnonzero(problem.y != -1), np.flatnonzero(problem.y == -1)[::20]]
    X, y = problem.X[kept], problem.y[kept]
    n_unlabeled = int(np.sum(y == -1))
    found = discover(X, y, method="ncd_kmeans", n_clusters=3, n_seeds=1, max_rows=200, verbose=False)
    assert np.sum(found.model.labels_ != -1) >= min(n_unlabeled, 100)
    told = f"with {np.sum(found.model.labels_ != -1)} of the {n_unlabeled} unlabelled ones"
    assert any(told in note for note in found.notes)


def test_notes_on_what_an_option_did_not_do(problem, tmp_path):
    store = tmp_path / "search.csv"
    found = discover(problem.X, problem.y, method="ncd_kmeans", n_seeds=1, store=store, verbose=False)
    assert f"There was no search, and nothing to store in {store}." in found.notes and not store.exists()
    many = np.repeat(np.arange(36), 6)
    X = np.column_stack([many // 6, many % 6]) * 10.0 + np.random.default_rng(0).normal(size=(216, 2)) / 10
    found = discover(np.r_[X, X[:12] + 100], [-1] * 216 + [0, 1] * 6, method="ncd_kmeans", n_seeds=1, verbose=False)
    assert "The estimate, 30 classes, is the largest number that was tried: there may be more." in found.notes


def test_known_classes_of_few_rows_are_told_of(problem):
    y = np.where(problem.y == problem.known_classes[0], -1, problem.y)
    y[np.flatnonzero(problem.y == problem.known_classes[0])[:2]] = problem.known_classes[0]
    options = {"n_trials": 1, "n_clusters": 4, "n_seeds": 1, "verbose": False}
    found = discover(problem.X, y, method=PBN(epochs=2, verbose=False), **options)
    name = problem.known_classes[0]
    assert f"Known classes of fewer than 5 rows tell the search little where it hides them: {name}." in found.notes


def test_an_estimator_keeps_the_number_it_was_given(problem):
    options = {"n_seeds": 1, "verbose": False}
    assert discover(problem.X, problem.y, method=NCDKMeans(5), **options).model.n_clusters_ == 5
    assert discover(problem.X, problem.y, method=NCDKMeans(), **options).model.n_clusters_ == 3


@pytest.mark.parametrize("n_clusters", ["silhouete", 10_000, 0])
def test_a_wrong_number_is_refused_before_the_search(problem, tmp_path, n_clusters):
    store = tmp_path / "search.csv"
    with pytest.raises(ValueError, match="unknown validity index|n_clusters"):
        discover(problem.X, problem.y, n_clusters=n_clusters, n_trials=1, store=store, verbose=False)
    assert not store.exists()


@pytest.mark.parametrize("n_unlabeled", [1, 2])
def test_too_few_unlabelled_rows(n_unlabeled):
    problem = make_ncd_blobs(n_samples=60, random_state=0)
    rows = np.r_[np.flatnonzero(problem.y != -1), np.flatnonzero(problem.y == -1)[:n_unlabeled]]
    with pytest.raises(ValueError, match=f"{n_unlabeled} unlabelled rows are too few"):
        discover(problem.X[rows], problem.y[rows], method="ncd_kmeans")


def test_many_rows_are_learned_from_by_a_sample():
    problem = make_ncd_blobs(n_samples=4_000, random_state=0)
    X, y = pd.DataFrame(problem.X), problem.y.copy()
    rare = np.flatnonzero(y == problem.known_classes[0])[20:]
    X, y, truth = X.drop(index=rare), np.delete(y, rare), np.delete(problem.y_true, rare)
    options = {"method": NCDKMeans(), "n_seeds": 1, "verbose": False, "max_rows": 300}
    found = discover(X, y, **options)
    unlabeled = y == -1
    assert any(note.startswith("Learned from a random sample of 300 of the ") for note in found.notes)
    assert len(found.model.labels_) == 300 and set(found.model.classes_) == set(range(4))
    assert clustering_accuracy(truth[unlabeled], found.labels[unlabeled]) > 0.99
    assert (found.labels[~unlabeled] == -1).all()
    assert [p.size for p in found.profiles] == [int(np.sum(found.labels == p.cluster)) for p in found.profiles]
    assert sum(p.share for p in found.profiles) == pytest.approx(1)
    assert found.to_frame()["label"].notna().all()
    assert np.array_equal(found.predict(X[unlabeled]), found.labels[unlabeled])
    np.testing.assert_array_equal(found.labels, discover(X, y, **options).labels)
    with pytest.raises(ValueError, match="max_rows must be at least 50"):
        discover(X, y, **options | {"max_rows": 30})
