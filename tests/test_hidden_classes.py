"""Folds of hidden classes: different, covering, and clear about what they need."""

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncdlib import HiddenClassKFold, load_dataset

# The k-fold table of the paper: known classes, hidden classes, splits.
PAPER = {
    "human": (3, 2, 3),
    "letter": (19, 7, 5),
    "pendigits": (5, 2, 5),
    "census": (12, 6, 5),
    "cnae9": (4, 2, 5),
}


def labels(n_classes, rows_per_class=3, n_novel=4):
    return np.r_[np.repeat(np.arange(n_classes), rows_per_class), np.full(n_novel, -1)]


@settings(deadline=None)
@given(st.data())
def test_combinations_are_different_and_cover_every_class(data):
    n_classes = data.draw(st.integers(3, 20))
    n_hidden = data.draw(st.integers(2, n_classes - 1))
    n_splits = data.draw(st.integers(1, min(30, comb(n_classes, n_hidden))))
    cv = HiddenClassKFold(n_splits, n_hidden, random_state=data.draw(st.integers(0, 99)))
    folds = list(cv.split(y=labels(n_classes)))
    combinations = {tuple(fold.classes) for fold in folds}
    assert len(combinations) == n_splits == cv.get_n_splits(y=labels(n_classes))
    assert all(len(set(c)) == n_hidden for c in combinations)
    times_hidden = np.bincount(np.concatenate([fold.classes for fold in folds]), minlength=n_classes)
    if n_splits * n_hidden >= n_classes:
        assert times_hidden.min() >= 1
    else:
        assert times_hidden.max() == 1


@pytest.mark.parametrize("name", PAPER)
def test_the_papers_splits_are_possible(name):
    n_classes, n_hidden, n_splits = PAPER[name]
    folds = list(HiddenClassKFold(n_splits, n_hidden).split(y=labels(n_classes)))
    assert len(folds) == n_splits


def test_rows_are_split_by_role():
    y = np.array(["b", None, "a", "c", "b", None, "c"], dtype=object)
    for fold in HiddenClassKFold().split(np.zeros((7, 2)), y):
        assert set(y[fold.hidden]) == set(fold.classes)
        assert not set(y[fold.visible]) & set(fold.classes)
        assert fold.novel.tolist() == [1, 5]
        assert sorted(np.concatenate([fold.visible, fold.hidden, fold.novel])) == list(range(7))


@pytest.mark.parametrize(
    ("n_classes", "n_hidden", "n_splits"), [(3, 2, 3), (4, 2, 5), (5, 2, 5), (12, 6, 5), (19, 9, 5)]
)
def test_by_default_five_splits_hide_about_half(n_classes, n_hidden, n_splits):
    folds = list(HiddenClassKFold().split(y=labels(n_classes)))
    assert len(folds) == n_splits
    assert {len(fold.classes) for fold in folds} == {n_hidden}


def test_the_defaults_of_a_problem_are_the_papers():
    problem = load_dataset("digits")
    folds = list(HiddenClassKFold(problem.n_splits, problem.n_hidden).split(problem.X, problem.y))
    assert len(folds) == 5 and {len(fold.classes) for fold in folds} == {2}
    assert set(np.concatenate([fold.classes for fold in folds])) == set(problem.known_classes)


def test_seed_decides():
    y = labels(12)
    splits = [[f.classes.tolist() for f in HiddenClassKFold(random_state=seed).split(y=y)] for seed in (0, 0, 1)]
    assert splits[0] == splits[1] != splits[2]


@pytest.mark.parametrize(
    ("n_classes", "kwargs", "message"),
    [
        (2, {}, "hiding 2 known classes needs at least 3 of them, and y has 2"),
        (1, {}, "needs at least 3 of them, and y has 1"),
        (4, {"n_hidden": 4}, "hiding 4 known classes needs at least 5 of them, and y has 4"),
        (4, {"n_hidden": 1}, "n_hidden must be at least 2"),
        (4, {"n_splits": 7, "n_hidden": 2}, "between 1 and 6"),
        (4, {"n_splits": 0}, "n_splits must be a positive integer, got 0"),
        (5, {"n_splits": 2.5}, "n_splits must be a positive integer, got 2.5"),
        (5, {"n_hidden": "2"}, "n_hidden must be a positive integer, got '2'"),
        (5, {"random_state": "a"}, "random_state must be None or an integer from 0 .* got 'a'"),
    ],
)
def test_errors_say_what_is_needed(n_classes, kwargs, message):
    with pytest.raises(ValueError, match=message):
        list(HiddenClassKFold(**kwargs).split(y=labels(n_classes)))


def test_needs_labels_of_the_right_length():
    for call in (HiddenClassKFold().get_n_splits, lambda X: list(HiddenClassKFold().split(X))):
        with pytest.raises(ValueError, match="needs y"):
            call(np.zeros((3, 1)))
    with pytest.raises(ValueError, match="inconsistent"):
        list(HiddenClassKFold().split(np.zeros((3, 1)), labels(4)))
