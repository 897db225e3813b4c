"""The hidden-class search: Algorithm 1 by hand, no novel label, resuming, failing trials, stacks."""

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest
from joblib import parallel_config
from scipy import stats
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_info, threadpool_limits

from ncdlib import (
    PBN,
    HiddenClassKFold,
    HiddenClassSearchCV,
    NCDKMeans,
    TabularNCD,
    estimate_n_clusters,
    load_dataset,
    make_ncd_blobs,
)
from ncdlib.methods.base import NCDEstimator
from ncdlib.problem import UNLABELED
from ncdlib.selection.worker import FIT, seed_of


class PCAKMeans(NCDEstimator):
    """k-means on principal components: a small real method whose projection knows nothing of the clusters."""

    def __init__(self, n_clusters=2, n_components=2, stretch=1.0, seconds=0.0, random_state=None):
        self.n_clusters = n_clusters
        self.n_components = n_components
        self.stretch = stretch  # multiplies the first feature; NaN makes the projection NaN
        self.seconds = seconds
        self.random_state = random_state

    def fit(self, X, y):
        X, codes = self._check_fit(X, y)
        time.sleep(self.seconds)
        self.pca_ = PCA(self.n_components, random_state=0).fit(X)
        unlabeled = codes == UNLABELED
        k = self.n_clusters
        if np.isnan(self.stretch):  # like a network whose training diverged: found out when it is used
            return self
        if isinstance(k, str):
            k = self.estimate_n_clusters(X[unlabeled], k, random_state=0).n_clusters
        self.n_clusters_ = k
        self.k_means_ = KMeans(k, n_init=10, random_state=self.random_state).fit(self.transform(X[unlabeled]))
        self.labels_ = np.full(len(X), UNLABELED)
        self.labels_[unlabeled] = self.k_means_.labels_
        return self

    def transform(self, X):
        Z = self.pca_.transform(self._check_new(X))
        Z[:, 0] *= self.stretch
        return Z

    def predict(self, X):
        return self.k_means_.predict(self.transform(X))

    def cluster(self, X, n_clusters, random_state=None):
        return KMeans(n_clusters, n_init=10, random_state=random_state).fit_predict(self.transform(X))

    def estimate_n_clusters(self, X, index="silhouette", k_range=None, random_state=None, n_runs=3, **known):
        Z = self.transform(X)
        return estimate_n_clusters(Z, index, k_range or range(2, 7), n_runs=n_runs, n_init=3, random_state=random_state)


SPACE = {"n_components": stats.randint(2, 6), "stretch": stats.loguniform(0.02, 20)}


@pytest.fixture(scope="module")
def problem():
    return make_ncd_blobs(random_state=3)


def make_search(**kwargs):
    defaults = {
        "estimator": PCAKMeans(),
        "param_distributions": SPACE,
        "n_iter": 4,
        "cv": HiddenClassKFold(3, 2),
    }
    return HiddenClassSearchCV.paper(**(defaults | {"verbose": False, "k_range": range(2, 7)} | kwargs))


def assert_same_results(first, second, but=("mean_fit_time", "total_fit_time")):
    assert first.keys() == second.keys()
    for name in first.keys() - set(but):
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)


def test_algorithm_1_by_hand(problem):
    """Each score of the table is recomputed in plain loops."""
    cv = HiddenClassKFold(3, 2, random_state=5)
    search = make_search(cv=cv, n_clusters=4).fit(problem.X, problem.y)
    X, y = problem.X, problem.y
    for trial, params in enumerate(search.cv_results_["params"]):
        for number, fold in enumerate(cv.split(X, y)):
            y_fold = np.where(np.isin(y, fold.classes), -1, y)
            seed = seed_of(0, FIT, trial, number)
            assert search.cv_results_[f"split{number}_random_state"][trial] == seed
            model = PCAKMeans(n_clusters=2, **params).fit(X, y_fold)
            k = model.estimate_n_clusters(X[y == -1], k_range=range(2, 7), random_state=seed).n_clusters
            assert search.cv_results_[f"split{number}_n_clusters"][trial] == k
            for setting, n_novel in (("known", 4), ("estimated", k)):
                clusters = np.full(len(y), -1)
                clusters[y_fold == -1] = model.cluster(X[y_fold == -1], 2 + n_novel, random_state=seed)
                expected = adjusted_rand_score(y[fold.hidden], clusters[fold.hidden])
                assert search.cv_results_[f"split{number}_score_{setting}"][trial] == expected
    means = search.cv_results_["mean_score_known"]
    assert search.best_index_ == means.argmax() and search.best_score_ == means.max()
    assert search.best_params_ == search.cv_results_["params"][search.best_index_]
    assert search.cv_results_["rank_test_score"][search.best_index_] == 1
    assert means.std() > 0.01  # the trials are not all the same


def test_ranked_by_the_setting_asked_for(problem):
    known = make_search(n_clusters=3).fit(problem.X, problem.y)
    estimated = make_search(n_clusters=3, setting="estimated").fit(problem.X, problem.y)
    np.testing.assert_array_equal(known.cv_results_["mean_test_score"], known.cv_results_["mean_score_known"])
    np.testing.assert_array_equal(estimated.cv_results_["mean_test_score"], known.cv_results_["mean_score_estimated"])
    assert known.n_clusters_ == 3
    only = make_search().fit(problem.X, problem.y)
    assert np.isnan(only.cv_results_["mean_score_known"]).all()
    np.testing.assert_array_equal(only.cv_results_["mean_test_score"], known.cv_results_["mean_score_estimated"])


def test_the_number_is_not_estimated_when_nobody_asks(problem, monkeypatch):
    both = make_search(n_clusters=3, refit=False).fit(problem.X, problem.y)
    monkeypatch.setattr(PCAKMeans, "estimate_n_clusters", lambda *_, **__: pytest.fail("estimated"))
    one = make_search(n_clusters=3, refit=False, both_settings=False).fit(problem.X, problem.y)
    np.testing.assert_array_equal(one.cv_results_["mean_score_known"], both.cv_results_["mean_score_known"])
    assert np.isnan(one.cv_results_["mean_score_estimated"]).all()


def test_the_truth_of_novel_rows_can_not_reach_the_search(problem):
    """Permuting it changes nothing; what an estimator is given never tells novel from hidden rows."""
    seen = []

    class Watching(PCAKMeans):
        def fit(self, X, y):
            seen.append(np.array(y))
            return super().fit(X, y)

    results = []
    for seed in (None, 0, 1):
        truth = problem.y_true.copy()
        novel = np.isin(truth, problem.novel_classes)
        if seed is not None:
            truth[novel] = np.random.default_rng(seed).permutation(truth[novel])
        y = np.where(novel, -1, truth)
        search = HiddenClassSearchCV(Watching(), SPACE, n_iter=2, cv=HiddenClassKFold(2, 2), verbose=False)
        results.append(search.fit(problem.X, y).cv_results_)
    assert_same_results(results[0], results[1])
    assert_same_results(results[0], results[2])
    assert all((y[novel] == -1).all() for y in seen)


def test_trials_extend_the_same_sequence(problem):
    few = make_search(n_iter=2, refit=False).fit(problem.X, problem.y)
    many = make_search(n_iter=5, refit=False).fit(problem.X, problem.y)
    assert many.cv_results_["params"][:2] == few.cv_results_["params"]
    np.testing.assert_array_equal(many.cv_results_["mean_test_score"][:2], few.cv_results_["mean_test_score"])
    other = make_search(n_iter=2, refit=False, random_state=1).fit(problem.X, problem.y)
    assert other.cv_results_["params"] != few.cv_results_["params"]


def test_a_stored_search_goes_on_and_gives_the_same_answer(problem, tmp_path, monkeypatch):
    whole = make_search(n_iter=5, stack_size=2).fit(problem.X, problem.y)
    store = tmp_path / "search.csv"
    make_search(n_iter=3, stack_size=2, store=store).fit(problem.X, problem.y)
    fits = []
    original = PCAKMeans.fit
    monkeypatch.setattr(PCAKMeans, "fit", lambda self, X, y: fits.append(1) or original(self, X, y))
    resumed = make_search(n_iter=5, stack_size=2, store=store).fit(problem.X, problem.y)
    assert len(fits) == 3 * 3 + 1  # block (2, 3) whole, trial 4, in three folds; and the last fit
    assert_same_results(resumed.cv_results_, whole.cv_results_)
    np.testing.assert_array_equal(resumed.labels_, whole.labels_)
    table = pd.read_csv(store)
    assert len(table) == 15 and not table.duplicated(["trial", "fold"]).any()
    fits.clear()
    shorter = make_search(n_iter=2, stack_size=2, store=store).fit(problem.X, problem.y)
    assert len(fits) == 1 and len(shorter.cv_results_["params"]) == 2


def test_one_store_serves_both_settings(problem, tmp_path, monkeypatch):
    store = tmp_path / "search.csv"
    make_search(n_clusters=3, setting="known", store=store, refit=False).fit(problem.X, problem.y)
    monkeypatch.setattr(PCAKMeans, "fit", lambda *_: pytest.fail("trained again"))
    other = make_search(n_clusters=3, setting="estimated", store=store, refit=False).fit(problem.X, problem.y)
    assert np.isfinite(other.best_score_)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"X": 1}, "data"),
        ({"y": 1}, "data"),
        ({"estimator": PCAKMeans(n_components=3)}, "estimator"),
        ({"param_distributions": {"n_components": stats.randint(2, 5)}}, "param_distributions"),
        ({"cv": HiddenClassKFold(3, 2, random_state=7)}, "cv"),
        ({"random_state": 1}, "random_state"),
        ({"scoring": adjusted_rand_score}, "scoring"),
        ({"n_clusters": 3}, "n_clusters"),
        ({"index": "dunn"}, "n_clusters"),
    ],
)
def test_the_store_of_another_search_is_refused(problem, tmp_path, change, named):
    store = tmp_path / "search.csv"
    search = make_search(n_iter=1, cv=HiddenClassKFold(3, 2), store=store, refit=False)
    search.fit(problem.X, problem.y)
    before = store.read_bytes()
    X, y = problem.X.copy(), problem.y.copy()
    X[0, 0] += change.pop("X", 0)
    if change.pop("y", 0):
        y[np.flatnonzero(y >= 0)[0]] = -1
    with pytest.raises(ValueError, match=f"written by another search .*different {named}"):
        search.set_params(**change).fit(X, y)
    assert store.read_bytes() == before


def test_a_file_that_is_no_store_is_refused(problem, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("trial,fold,weight\n0,0,3.5\n")
    with pytest.raises(ValueError, match="something else than the results of a search"):
        make_search(store=path).fit(problem.X, problem.y)
    assert path.read_text() == "trial,fold,weight\n0,0,3.5\n"


def test_a_trial_that_diverges_is_recorded_and_the_search_goes_on(problem, tmp_path):
    space = {"stretch": [1.0, np.nan, 0.1]}
    search = make_search(param_distributions=space, n_iter=6, store=tmp_path / "s.csv")
    with pytest.warns(UserWarning, match="of 6 trials failed"):
        search.fit(problem.X, problem.y)
    failed = np.array([np.isnan(p["stretch"]) for p in search.cv_results_["params"]])
    assert 0 < failed.sum() < 6
    np.testing.assert_array_equal(np.isnan(search.cv_results_["mean_test_score"]), failed)
    assert all(("NaN" in error) if bad else error is None
               for error, bad in zip(search.cv_results_["error"], failed, strict=True))  # fmt: skip
    assert not np.isnan(search.best_params_["stretch"])
    assert search.cv_results_["rank_test_score"][failed].min() > search.cv_results_["rank_test_score"][~failed].max()
    with pytest.warns(UserWarning, match="failed"):  # the same from the store
        again = clone(search).fit(problem.X, problem.y)
    assert_same_results(search.cv_results_, again.cv_results_, but=["params", "param_stretch"])


def test_all_trials_failed_is_an_error(problem):
    with pytest.raises(ValueError, match="all 2 trials failed; the first one: .*NaN"):
        make_search(param_distributions={"stretch": [np.nan]}, n_iter=2).fit(problem.X, problem.y)


def test_two_processes_give_the_serial_result(problem):
    serial = make_search(stack_size=2).fit(problem.X, problem.y)
    parallel = make_search(stack_size=2, n_jobs=2).fit(problem.X, problem.y)
    assert_same_results(serial.cv_results_, parallel.cv_results_)
    np.testing.assert_array_equal(serial.labels_, parallel.labels_)


def test_methods_that_need_the_number_first(problem):
    """No `cluster` method: the number is estimated once, from the novel rows, and set before training."""
    seen = []

    class Watching(NCDKMeans):
        def fit(self, X, y):
            seen.append(self.n_clusters)
            return super().fit(X, y)

    space = {"draw_power": [1, 2]}
    search = HiddenClassSearchCV.paper(
        Watching(), space, n_iter=2, cv=HiddenClassKFold(2, 2), k_range=range(2, 7), verbose=False
    )
    search.fit(problem.X, problem.y)
    k = estimate_n_clusters(problem.X_novel, k_range=range(2, 7), random_state=0).n_clusters
    assert seen == [2 + k] * 4 + [k]
    assert search.n_clusters_ == k
    assert (search.cv_results_["split0_n_clusters"] == k).all()
    assert np.isnan(search.cv_results_["mean_score_known"]).all()
    seen.clear()
    search.set_params(n_clusters=4).fit(problem.X, problem.y)
    assert seen == [6] * 4 + [4]


def test_scikit_learn_interface(problem):
    search = make_search(n_iter=2)
    assert clone(search).get_params()["estimator__n_components"] == 2
    frame = pd.DataFrame(problem.X, columns=[f"f{i}" for i in range(problem.X.shape[1])])
    names = np.array(["novel", *"abcdefgh"], dtype=object)[problem.y + 1]
    labels = search.fit_predict(frame, np.where(names == "novel", None, names))
    np.testing.assert_array_equal(labels, search.best_estimator_.labels_)
    np.testing.assert_array_equal(search.predict(frame[problem.y == -1]), labels[problem.y == -1])
    assert search.transform(frame).shape == (len(frame), search.best_params_["n_components"])
    assert list(search.feature_names_in_) == list(frame)
    assert set(search.hidden_classes_[0]) <= set("abcdefgh") and search.n_splits_ == 3
    table = pd.DataFrame(search.cv_results_)
    assert len(table) == 2 and "param_stretch" in table
    assert not hasattr(HiddenClassSearchCV(NCDKMeans(), {}), "transform")
    unfitted = make_search(refit=False).fit(problem.X, problem.y)
    assert not hasattr(unfitted, "best_estimator_")


def test_two_of_three_known_classes_hidden():
    """As the paper does on Human Activity: one class stays visible."""
    problem = make_ncd_blobs(random_state=0)
    some = np.isin(problem.y, [-1, *problem.known_classes[:3]])
    search = make_search(cv=HiddenClassKFold(3, 2), n_iter=2, n_clusters=3)
    search.fit(problem.X[some], problem.y[some])
    assert np.isfinite(search.best_score_)
    with pytest.raises(ValueError, match="single known class"):  # outside of a fold this remains an error
        PCAKMeans().fit(problem.X[some], np.where(problem.y[some] == problem.known_classes[0], 0, -1))


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"n_iter": 0}, "n_iter must be a positive integer"),
        ({"stack_size": 0}, "stack_size must be a positive integer"),
        ({"scoring": "f1"}, "scoring must be"),
        ({"setting": "both"}, "setting must be"),
        ({"setting": "known"}, "pass n_clusters"),
        ({"n_clusters": 2.5}, "n_clusters must be a positive integer"),
        ({"estimator": PCA()}, "PCA has no parameter n_clusters"),
        ({"random_state": None, "store": "x.csv"}, "integer random_state"),
        ({"cv": HiddenClassKFold(2, 7)}, "hiding 7 known classes needs at least 8"),
        ({"cv": 2.5}, "cv must be a HiddenClassKFold, a number of folds or None, got 2.5"),
        ({"cv": "a"}, "cv must be a HiddenClassKFold"),
        ({"cv": KFold(2)}, "cv must be a HiddenClassKFold"),
        ({"param_distributions": None}, "param_distributions must be a dict"),
        ({"param_distributions": [{"stretch": [1.0]}]}, "param_distributions must be a dict"),
        ({"param_distributions": {"n_clusters": [2, 3]}}, "must not hold n_clusters: give it to HiddenClassSearchCV"),
        ({"param_distributions": {"random_state": [2, 3]}}, "must not hold random_state"),
        ({"estimator": None}, "estimator must be an estimator such as PBN"),
        ({"estimator": PCAKMeans}, "estimator must be an estimator such as PBN"),
        ({"random_state": np.random.RandomState(0)}, "random_state must be None or an integer from 0"),
        ({"random_state": -1}, "random_state must be None or an integer from 0"),
        ({"random_state": 2**32}, "random_state must be None or an integer from 0"),
        ({"random_state": "a"}, "random_state must be None or an integer from 0"),
        ({"k_range": 5}, "k_range must hold positive numbers of clusters, got 5"),
    ],
)
def test_clear_errors(problem, kwargs, message):
    with pytest.raises(ValueError, match=message):
        make_search(**kwargs).fit(problem.X, problem.y)


def test_numbers_of_numpy(problem):
    plain = make_search(cv=2, random_state=2**32 - 1).fit(problem.X, problem.y)
    of_numpy = make_search(cv=np.int64(2), random_state=np.uint32(2**32 - 1)).fit(problem.X, problem.y)
    assert_same_results(plain.cv_results_, of_numpy.cv_results_)


def test_no_unlabeled_row(problem):
    known = problem.y >= 0
    with pytest.raises(ValueError, match="no unlabelled row"):
        make_search().fit(problem.X[known], problem.y[known])


def test_progress_bar_shows_the_best_score(problem, capsys):
    search = make_search(n_iter=2, stack_size=1, verbose=True).fit(problem.X, problem.y)
    assert f"best score {search.best_score_:.3f}" in capsys.readouterr().err


# -- stacks of networks --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pbn_search(problem):
    return HiddenClassSearchCV.paper(
        PBN(epochs=5), PBN.search_space(problem.X.shape[1]), n_iter=4, cv=HiddenClassKFold(2, 2),
        n_clusters=3, k_range=range(2, 6), stack_size=3, verbose=False,
    )  # fmt: skip


def test_the_final_model_counts_within_the_range_of_the_search(problem):
    search = HiddenClassSearchCV(PBN(epochs=5, verbose=False), {"w": [0.5]}, n_iter=1, verbose=False)
    search.set_params(k_range=range(7, 10)).fit(problem.X, problem.y)
    assert search.n_clusters_ == search.best_estimator_.n_clusters_ in range(7, 10)
    assert len(np.unique(search.labels_[problem.y == -1])) == search.n_clusters_
    assert search.set_params(k_range=None).fit(problem.X, problem.y).n_clusters_ < 7


def test_networks_are_trained_in_stacks(problem, pbn_search, monkeypatch):
    stacks = []
    original = PBN.fit_many

    def fit_many(self, X, y, params, random_states, **kwargs):
        stacks.append((len(params), kwargs))
        return original(self, X, y, params, random_states, **kwargs)

    monkeypatch.setattr(PBN, "fit_many", fit_many)
    search = clone(pbn_search).fit(problem.X, problem.y)
    assert stacks == [(3, {"fit_clusters": False})] * 2 + [(1, {"fit_clusters": False})] * 2
    assert search.cv_results_["mean_score_known"].min() > 0
    assert search.predict(problem.X_test_novel).shape == problem.y_test_novel.shape


def test_a_network_that_diverges_does_not_stop_its_stack(problem, pbn_search):
    search = clone(pbn_search).set_params(param_distributions={"lr": [1e-3, 1e30]}, n_iter=6)
    with pytest.warns(UserWarning, match="trials failed"):
        search.fit(problem.X, problem.y)
    high = np.array([p["lr"] > 1 for p in search.cv_results_["params"]])
    np.testing.assert_array_equal(np.isnan(search.cv_results_["mean_test_score"]), high)
    assert search.best_params_ == {"lr": 1e-3}
    assert "diverged" in search.cv_results_["error"][np.flatnonzero(high)[0]]


@pytest.mark.parametrize("estimator", [PBN(epochs=2), NCDKMeans(n_init=1)])
def test_a_value_out_of_range_is_a_failed_trial(problem, pbn_search, estimator):
    name = "lr" if isinstance(estimator, PBN) else "draw_power"
    search = clone(pbn_search).set_params(estimator=estimator, param_distributions={name: [-1, 0.1]}, n_iter=7)
    with pytest.warns(UserWarning, match="trials failed"):
        search.fit(problem.X, problem.y)
    negative = np.array([p[name] < 0 for p in search.cv_results_["params"]])
    assert 0 < negative.sum() < 7
    np.testing.assert_array_equal(np.isnan(search.cv_results_["mean_test_score"]), negative)
    assert search.best_params_ == {name: 0.1}
    assert f"ValueError: {name} must be" in search.cv_results_["error"][np.flatnonzero(negative)[0]]


def test_tabularncd_is_trained_with_hidden_and_novel_clusters(problem):
    search = HiddenClassSearchCV(
        TabularNCD(epochs=3), TabularNCD.search_space(problem.X.shape[1]), n_iter=2, n_clusters=3,
        cv=HiddenClassKFold(2, 2), verbose=False,
    )  # fmt: skip
    search.fit(problem.X, problem.y)
    assert search.n_clusters_ == 3 and np.isfinite(search.best_score_)


def test_search_finds_better_than_the_worst_on_digits():
    """On real data, the trial that wins on hidden classes beats the one that loses there on the truth too."""
    problem = load_dataset("digits")
    search = HiddenClassSearchCV(
        PBN(epochs=30), {"lr": [1e-4, 5e-3], "w": [0.1, 0.5, 0.99]}, n_iter=8, verbose=False, n_clusters=5,
        cv=HiddenClassKFold(2, 2), refit=False, both_settings=False,
    )  # fmt: skip
    search.fit(problem.X, problem.y)
    ranked = [search.cv_results_["params"][i] for i in np.argsort(search.cv_results_["mean_test_score"])]
    truth = {}
    for name, params in (("worst", ranked[0]), ("best", ranked[-1])):
        model = PBN(5, epochs=30, random_state=0, verbose=False, **params).fit(problem.X, problem.y)
        truth[name] = adjusted_rand_score(problem.y_novel, model.labels_[problem.y == -1])
    assert truth["best"] > truth["worst"]


# -- kill -9 -------------------------------------------------------------------------------------------

SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
from test_search import PCAKMeans, SPACE
from ncdlib import HiddenClassKFold, HiddenClassSearchCV, make_ncd_blobs
problem = make_ncd_blobs(random_state=3)
search = HiddenClassSearchCV(PCAKMeans(seconds=0.1), SPACE, n_iter=6, cv=HiddenClassKFold(3, 2), stack_size=2,
                             k_range=range(2, 7), store=sys.argv[1], verbose=False)
search.fit(problem.X, problem.y)
print(search.best_params_, search.best_score_, search.labels_.tolist())
"""


def run_script(store, script=SCRIPT):
    command = [sys.executable, "-c", script.format(folder=str(Path(__file__).parent)), str(store)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def wait_for_rows(store, process):
    deadline = time.monotonic() + 300
    while not (store.exists() and store.read_bytes().count(b"\n") > 4):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)


def test_kill_9_loses_no_finished_trial(tmp_path):
    whole = run_script(tmp_path / "whole.csv")
    expected = whole.communicate(timeout=600)[0]
    assert whole.returncode == 0

    store = tmp_path / "killed.csv"
    process = run_script(store)
    wait_for_rows(store, process)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    finished = store.read_text().splitlines()
    assert 4 < len(finished) < len((tmp_path / "whole.csv").read_text().splitlines())

    again = run_script(store)
    assert again.communicate(timeout=600)[0] == expected
    rows = store.read_text().splitlines()
    assert rows[: len(finished)] == finished  # still there, as they were
    table, reference = pd.read_csv(store), pd.read_csv(tmp_path / "whole.csv")
    order = ["trial", "fold", "seed"]
    assert not table.duplicated(order).any() and table["seed"].max() == 9  # the race was run to its end
    pd.testing.assert_frame_equal(
        table.drop(columns="fit_time").sort_values(order, ignore_index=True),
        reference.drop(columns="fit_time").sort_values(order, ignore_index=True),
    )


def test_workers_end_with_a_killed_process(tmp_path):
    """kill -9 leaves it no time to stop its workers."""
    process = run_script(tmp_path / "store.csv", script=SCRIPT.replace("n_iter=6", "n_iter=5000, n_jobs=2"))
    wait_for_rows(tmp_path / "store.csv", process)
    workers = [child for child in psutil.Process(process.pid).children() if "popen_loky" in " ".join(child.cmdline())]
    assert len(workers) == 2
    process.kill()
    process.wait()
    process.stdout.close()
    gone, alive = psutil.wait_procs(workers, timeout=30)
    assert alive == []


def test_a_torn_last_line_is_computed_again(problem, tmp_path):
    store = tmp_path / "search.csv"
    search = make_search(n_iter=2, store=store).fit(problem.X, problem.y)
    store.write_bytes(store.read_bytes()[:-7])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = clone(search).fit(problem.X, problem.y)
    assert_same_results(search.cv_results_, again.cv_results_)
    assert len(pd.read_csv(store)) == 6


def test_threads_are_as_before_after_a_search_by_threads(problem):
    """And one thread inside, whichever worker ends first."""
    seen = []

    class Watching(NCDKMeans):
        def fit(self, X, y):
            time.sleep(0.05 * self.draw_power)
            seen.append({pool["num_threads"] for pool in threadpool_info()})
            return super().fit(X, y)

    before = [pool["num_threads"] for pool in threadpool_info()]
    with threadpool_limits(2), parallel_config(backend="threading"):
        during = [pool["num_threads"] for pool in threadpool_info()]
        HiddenClassSearchCV(
            Watching(n_init=1), {"draw_power": [1, 2]}, n_iter=4, n_clusters=3, n_jobs=2, stack_size=1, verbose=False
        ).fit(problem.X, problem.y)
        assert [pool["num_threads"] for pool in threadpool_info()] == during
    assert [pool["num_threads"] for pool in threadpool_info()] == before
    assert set().union(*seen) == {1}


@pytest.mark.parametrize("distribution", [stats.rv_discrete(values=([1, 2], [0.5, 0.5])), stats.uniform(1, 1)])
def test_every_kind_of_distribution_can_be_searched_and_resumed(problem, tmp_path, distribution):
    search = HiddenClassSearchCV(
        NCDKMeans(n_init=1),
        {"draw_power": distribution},
        n_iter=2,
        n_clusters=3,
        store=tmp_path / "s.csv",
        verbose=False,
    )
    first = search.fit(problem.X, problem.y).cv_results_["mean_test_score"]
    assert clone(search).fit(problem.X, problem.y).cv_results_["mean_test_score"].tolist() == first.tolist()
