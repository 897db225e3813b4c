"""The race and the vote: luck does not win, and neither interruptions nor processes change who does."""

import shutil
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score
from test_search import PCAKMeans, assert_same_results, make_search

from ncdlib import PBN, HiddenClassKFold, make_ncd_blobs
from ncdlib.evidence import experiments, measure, results
from ncdlib.selection import race
from ncdlib.selection.worker import FIT, seed_of

RACE = ((3, 3), (2, 5))


@pytest.fixture(scope="module")
def problem():
    return make_ncd_blobs(random_state=3, cluster_std=4)


def make_race(**kwargs):
    options = {"n_iter": 5, "race": RACE, "n_clusters": 3, "both_settings": False, "refit": False}
    return make_search(**(options | kwargs))


def test_the_race_by_hand(problem):
    """Three trials go on by the first seed, two by the next two, the winner by all but the first."""
    X, y, cv = problem.X, problem.y, HiddenClassKFold(3, 2)
    found = make_race().fit(X, y)
    params = found.cv_results_["params"]
    scores = np.empty((5, 3, 5))
    for trial in range(5):
        for number, fold in enumerate(cv.split(X, y)):
            y_fold = np.where(np.isin(y, fold.classes), -1, y)
            for repeat in range(5):
                seed = seed_of(0, FIT, trial, number, *([repeat] if repeat else []))
                model = PCAKMeans(2, random_state=seed, **params[trial]).fit(X, y_fold)
                labels = np.full(len(y), -1)
                labels[y_fold == -1] = model.cluster(X[y_fold == -1], 5, random_state=seed)
                scores[trial, number, repeat] = adjusted_rand_score(y[fold.hidden], labels[fold.hidden])
    three = np.argsort(-scores[:, :, 0].mean(axis=1))[:3]
    two = three[np.argsort(-scores[three, :, 1:3].mean(axis=(1, 2)))[:2]]
    final = scores[two, :, 1:5].mean(axis=2).mean(axis=1)
    assert found.best_index_ == two[final.argmax()] and found.best_score_ == pytest.approx(final.max(), abs=1e-12)
    n_seeds = np.ones(5, dtype=int)
    n_seeds[three], n_seeds[two] = 3, 5
    np.testing.assert_array_equal(found.cv_results_["n_seeds"], n_seeds)
    expected = [scores[t, :, min(1, n - 1) : n].mean() for t, n in enumerate(n_seeds)]
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], expected, rtol=1e-12)
    winner = scores[found.best_index_, :, 1:5]
    error = np.sqrt((winner.var(axis=1, ddof=1) / 4).sum()) / 3
    assert found.cv_results_["standard_error_test_score"][found.best_index_] == pytest.approx(error)
    assert set(np.flatnonzero(found.cv_results_["rank_test_score"] <= 2)) == set(two)
    assert found.cv_results_["chance_to_be_best"].sum() == pytest.approx(1)
    assert set(np.flatnonzero(found.cv_results_["chance_to_be_best"])) <= set(two)


def test_a_race_goes_on_where_it_was_stopped(problem, tmp_path, monkeypatch):
    """After any line of the file, also in the middle of a unit; and in two processes."""
    whole = tmp_path / "whole.csv"
    expected = make_race(store=whole).fit(problem.X, problem.y)
    lines = whole.read_text().splitlines(keepends=True)
    assert len(lines) == 1 + 3 * (5 + 3 * 2 + 2 * 2)
    for n in (1, 9, 20, 31, len(lines) - 1):
        part = tmp_path / f"{n}.csv"
        part.write_text("".join(lines[:n]))
        again = make_race(store=part, n_jobs=2 if n == 20 else None).fit(problem.X, problem.y)
        assert_same_results(again.cv_results_, expected.cv_results_)
        assert again.best_index_ == expected.best_index_
        assert not pd.read_csv(part).duplicated(["trial", "fold", "seed"]).any()
    monkeypatch.setattr(PCAKMeans, "fit", lambda *_: pytest.fail("trained again"))
    shutil.copy(whole, tmp_path / "copy.csv")
    make_race(store=tmp_path / "copy.csv").fit(problem.X, problem.y)


def test_a_trial_keeps_its_last_bits_whoever_else_is_in_the_race(problem, tmp_path):
    """Networks share stacks: those of one trial, so that a file serves other readings of the score."""
    options = {"estimator": PBN(epochs=20), "param_distributions": PBN.search_space(8), "cv": HiddenClassKFold(2, 2)}
    rows = []
    for rounds in (((3, 3),), ((2, 3),)):
        store = tmp_path / f"{rounds[0][0]}.csv"
        make_race(**options, race=rounds, store=store).fit(problem.X, problem.y)
        rows.append(pd.read_csv(store).set_index(["trial", "fold", "seed"]).drop(columns="fit_time"))
    more, fewer = rows
    assert len(more) == 2 * (5 + 3 * 2) and len(fewer) == 2 * (5 + 2 * 2)
    pd.testing.assert_frame_equal(more.loc[fewer.index], fewer)


def test_nobody_to_race_with(problem, tmp_path):
    make_race(n_iter=1, store=tmp_path / "s.csv").fit(problem.X, problem.y)
    assert len(pd.read_csv(tmp_path / "s.csv")) == 3


def test_a_lucky_first_seed_does_not_win():
    """Thirty equal trials: the maximum of the first seeds looks better than it is, the race's score does not."""
    random = np.random.default_rng(0)
    scores = random.normal(0.5, 0.2, (2000, 30, 1, 9))
    first = scores[..., 0].mean(axis=2).max(axis=1)
    fair = []
    for search in scores:
        alive = race.best_trials(search[:, 0, 0], np.arange(30), 4)
        n_seeds = np.where(np.isin(np.arange(30), alive), 9, 1)
        fair.append(race.judged(search, n_seeds)[alive].mean())
    assert first.mean() > 0.85 and np.mean(fair) == pytest.approx(0.5, abs=0.01)


def test_how_sure_a_rank_is():
    """Two alike: even odds. One far ahead: certain. Who did not come to the last round has no chance."""
    random = np.random.default_rng(0)
    scores = random.normal(0.5, 0.1, (4, 5, 10))
    scores[2] = 0.9  # but with one seed only
    n_seeds = np.array([10, 10, 1, 10])
    scores[3, 2, 4] = np.nan  # failed once
    chances = race.chance_to_be_best(scores, n_seeds, np.ones(4, dtype=bool))
    assert chances[2] == chances[3] == 0 and 0.05 < chances[0] < 0.95 and chances.sum() == 1
    scores[0] += 0.5
    assert race.chance_to_be_best(scores, n_seeds, np.ones(4, dtype=bool))[0] == 1
    assert race.ranks(race.judged(scores, n_seeds).mean(axis=1), n_seeds, np.ones(4, dtype=bool)).tolist() == [
        1,
        2,
        3,
        4,
    ]


class Counting(PCAKMeans):
    """Counts as many classes as its parameter says: some trials are right."""

    def __init__(self, n_clusters=2, n_components=3, count=3, random_state=None):
        super().__init__(n_clusters, n_components, random_state=random_state)
        self.count = count

    def estimate_n_clusters(self, X, *_, **__):
        return SimpleNamespace(n_clusters=self.count)


def test_the_majority_of_the_good_trials_decides_k(problem):
    """Counting 2 makes the joint score look good; the others outvote it, and the fitted model has their number."""
    counts = {"count": [2, 5, 5, 5, 5, 5, 5]}
    options = {"estimator": Counting(), "param_distributions": counts, "n_iter": 16, "n_clusters": None}
    alone = make_search(**options, scoring="ari_alone", vote=True).fit(problem.X, problem.y)
    drawn = np.array([p["count"] for p in alone.cv_results_["params"]])
    assert set(drawn) == {2, 5} and sum(alone.vote_.votes.values()) == 4
    assert alone.vote_.n_clusters == alone.n_clusters_ == alone.best_params_["count"] == 5
    np.testing.assert_array_equal(alone.cv_results_["agrees_on_n_clusters"], drawn == 5)
    ranks = alone.cv_results_["rank_test_score"]
    assert ranks[drawn == 5].max() < ranks[drawn == 2].min()
    assert len(np.unique(alone.labels_[problem.y == -1])) == 5
    joint = make_search(**options).fit(problem.X, problem.y)  # the paper's: every trial its own number
    assert joint.vote_ is None and "agrees_on_n_clusters" not in joint.cv_results_


@pytest.mark.parametrize(
    "wrong", [4, (12, 5), ((12,),), ((4, 5), (12, 10)), ((12, 5), (4, 5)), ((12, 1),), ((0, 5),), ((3, 2.5),), "ab"]
)
def test_a_race_that_is_none(problem, wrong):
    with pytest.raises(ValueError, match="race|positive integer"):
        make_race(race=wrong).fit(problem.X, problem.y)


# -- files of an earlier version -------------------------------------------------------------------------------------


BASELINE = experiments.Search("Baseline", "pendigits", "known")


@pytest.mark.needs_data("pendigits")
def test_a_stored_search_is_still_that_of_the_paper(tmp_path, monkeypatch):
    """What is in results/search is read as it is: the same scores, the same winner, nothing trained again."""
    path = shutil.copy(results.search_path(BASELINE), tmp_path / "s.csv")
    before, problem = path.read_bytes(), experiments.load_problem("pendigits")
    monkeypatch.setattr("ncdlib.Baseline.fit_many", lambda *_, **__: pytest.fail("trained again"))
    found = measure.make_search(BASELINE, 40, path).fit(problem.X, problem.y)
    trials = results.load_trials(BASELINE)
    np.testing.assert_array_equal(found.cv_results_["mean_test_score"], trials["score_known"])
    assert found.best_params_ == results.best_params("Baseline", "pendigits", "known")
    assert path.read_bytes() == before
    with pytest.raises(ValueError, match="written by another search .*different scoring"):
        found.set_params(scoring="acc").fit(problem.X, problem.y)
    with pytest.raises(ValueError, match="written before there were races"):
        found.set_params(scoring="ari", race=RACE).fit(problem.X, problem.y)


@pytest.mark.needs_data("pendigits")
def test_a_stored_trial_is_reproduced(tmp_path):
    """A unit that is taken out of a stored file is trained again, as it was, and put back in the file's own form.

    Another processor rounds differently, and over 200 epochs that can move some rows of some trials.
    """
    lines = results.search_path(BASELINE).read_text().splitlines(keepends=True)
    stored = pd.read_csv(results.search_path(BASELINE))
    gone = ((stored["fold"] == 1) & (stored["trial"] >= 20)).to_numpy()
    path = tmp_path / "s.csv"
    path.write_text(lines[0] + "".join(line for line, out in zip(lines[1:], gone, strict=True) if not out))
    problem = experiments.load_problem("pendigits")
    measure.make_search(BASELINE, 40, path).fit(problem.X, problem.y)
    again = pd.read_csv(path)
    assert list(again) == list(stored) and len(again) == len(stored)
    key = ["trial", "fold"]
    pairs = stored[gone].merge(again.iloc[-20:], on=[*key, "params", "search"], suffixes=("", "_now"))
    assert len(pairs) == 20
    assert (pairs["score_known"] - pairs["score_known_now"]).abs().median() < 0.002
