"""Known or new: which unlabelled rows are of a known class, and whether there are new classes at all."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from ncdlib import discover, load_dataset, make_ncd_blobs
from ncdlib.own_data.known import share_that_looks_known, tell_known_from_new

OPTIONS = {"method": "ncd_kmeans", "n_seeds": 1, "verbose": False}


def mixed_problem(n_known=60):
    """Rows of known classes without a label among those of new classes."""
    problem = make_ncd_blobs(n_samples=600, random_state=0)
    known = np.random.default_rng(0).choice(np.flatnonzero(problem.y != -1), n_known, replace=False)
    y = problem.y.copy()
    y[known] = -1
    return problem, y, known


def only_known(seed, share=0.5):
    problem = make_ncd_blobs(n_samples=400, random_state=seed)
    rows = problem.y != -1
    X, truth = problem.X[rows], problem.y[rows]
    # Known classes overlap, and one of them is rarer among the unlabelled rows: no reason to see a new one.
    X = X / 3 + np.random.default_rng(seed).normal(size=X.shape)
    hidden = np.random.default_rng(seed).random(len(X)) < np.where(truth == truth[0], share / 3, share)
    return X, np.where(hidden, -1, truth), truth


def test_p_known_tells_rows_apart_and_is_calibrated():
    problem, y, known = mixed_problem()
    told = tell_known_from_new(problem.X, y, 0)
    new = problem.y == -1
    assert np.isnan(told.p_known[y != -1]).all()
    assert np.mean(told.p_known[known] > 0.5) > 0.9 and np.mean(told.p_known[new] > 0.5) < 0.05
    assert np.mean(told.nearest[known] == problem.y[known]) > 0.95
    share = len(known) / (len(known) + new.sum())
    assert told.share == pytest.approx(share, abs=0.06)
    assert np.nanmean(told.p_known) == pytest.approx(share, abs=0.06)
    assert told.p_value < 1e-4


def test_the_test_for_new_classes_keeps_its_level():
    p_values = [tell_known_from_new(*only_known(seed)[:2], seed).p_value for seed in range(20)]
    assert np.sum(np.array(p_values) < 0.05) <= 1


def test_mixed_rows_get_their_known_label_and_the_rest_is_discovered():
    problem, y, known = mixed_problem()
    found = discover(problem.X, y, **OPTIONS)
    new = problem.y == -1
    assert any("look like rows of known classes" in note for note in found.notes)
    assert found.recognised[known].mean() > 0.9 and found.recognised[new].mean() < 0.05
    label = found.to_frame()["label"].to_numpy()
    assert np.mean(label[known] == problem.y[known].astype(str)) > 0.9
    assert found.n_clusters == 3 and adjusted_rand_score(problem.y_true[new], label[new]) > 0.95
    assert all(profile.verdict == "unlike any known class" for profile in found.profiles)
    assert (found.unlabeled == (y == -1)).all()


def test_taken_as_new_a_known_class_is_not_sold_as_a_discovery():
    problem, y, known = mixed_problem(150)
    found = discover(problem.X, y, **OPTIONS, unlabeled="new", n_clusters=8)
    assert not found.recognised.any()
    assert any("unlabeled='mixed' (--mixed) gives them their known label" in note for note in found.notes)
    verdicts = {profile.verdict for profile in found.profiles}
    assert "unlike any known class" in verdicts and any("cannot be told from" in verdict for verdict in verdicts)


def test_with_two_known_classes_none_can_be_hidden_and_rows_are_taken_as_new():
    problem = load_dataset("vehicle")
    found = discover(problem.X, problem.y, **OPTIONS, n_clusters=2)
    assert not found.recognised.any()
    assert any("no known class can be hidden" in note for note in found.notes)


@pytest.mark.parametrize("unlabeled", ["auto", "mixed"])
def test_no_class_is_claimed_where_all_rows_are_known(unlabeled, tmp_path):
    X, y, truth = only_known(0)
    found = discover(X, y, **OPTIONS, unlabeled=unlabeled)
    assert found.n_clusters == 0 == len(found.summary()) and found.recognised.sum() == np.sum(y == -1)
    assert any("show no sign of a new class" in note for note in found.notes)
    assert np.mean(found.to_frame()["label"] == truth.astype(str)) > 0.8
    assert "0 discovered classes" in found.report(tmp_path / "report.html").read_text()
    with pytest.raises(ValueError, match="no class was discovered"):
        found.predict(X)
    with pytest.raises(ValueError, match="no class was discovered"):
        found.plot()


def test_asked_for_new_classes_where_there_are_none_it_says_so():
    X, y, _ = only_known(0)
    found = discover(X, y, **OPTIONS, unlabeled="new", n_clusters=2)
    assert found.n_clusters == 2 and any("may be parts of known classes" in note for note in found.notes)


def test_new_classes_that_overlap_known_ones_as_these_overlap_each_other():
    """A hidden known class shows how much of a new one looks known."""
    problem = make_ncd_blobs(n_samples=600, random_state=0)
    X = problem.X / 3 + np.random.default_rng(0).normal(size=problem.X.shape)
    apart = share_that_looks_known(problem.X, problem.y, 0)
    assert apart < 0.02 < share_that_looks_known(X, problem.y, 0)


def test_few_rows_are_taken_as_new():
    problem = make_ncd_blobs(n_samples=60, random_state=0)
    assert tell_known_from_new(problem.X, problem.y, 0) is None or np.sum(problem.y == -1) >= 30
    few = np.r_[np.flatnonzero(problem.y != -1)[:25], np.flatnonzero(problem.y == -1)]
    found = discover(problem.X[few], problem.y[few], **OPTIONS)
    assert "Too few rows to tell whether some are of known classes: all were taken as new." in found.notes
    assert found.to_frame()["p_known"].isna().all()


def test_a_wrong_word_for_unlabelled_rows():
    problem = make_ncd_blobs(n_samples=60, random_state=0)
    with pytest.raises(ValueError, match="unlabeled must be 'auto', 'new' or 'mixed', got 'old'"):
        discover(problem.X, problem.y, unlabeled="old")


@pytest.mark.parametrize("seed", [0, 1])
def test_image_segments_with_30_percent_known_rows_among_the_unlabelled(seed):
    problem = load_dataset("segment")
    X, truth = problem.X, problem.y_true
    rng = np.random.default_rng(seed)
    novel = rng.permutation(np.unique(truth))[:3]
    new = np.isin(truth, novel)
    known = rng.choice(np.flatnonzero(~new), int(0.3 / 0.7 * new.sum()), replace=False)
    clean = np.where(new, -1, truth)
    mixed = clean.copy()
    mixed[known] = -1
    found = discover(X, mixed, **OPTIONS, n_clusters=3)
    assert found.recognised[known].mean() >= 0.9
    ari_clean, ari_mixed = (
        adjusted_rand_score(truth[new], result.to_frame()["label"][new])
        for result in (discover(X, clean, **OPTIONS, n_clusters=3), found)
    )
    assert ari_mixed >= ari_clean - 0.05
