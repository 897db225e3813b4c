"""Rows far from all others neither decide the scale nor become classes."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from ncdlib import discover, make_ncd_blobs
from ncdlib.own_data.outliers import find_outliers
from ncdlib.own_data.prepare import TablePreprocessor

OPTIONS = {"method": "ncd_kmeans", "n_seeds": 1, "unlabeled": "new", "verbose": False}


@pytest.fixture(scope="module")
def problem():
    return make_ncd_blobs(random_state=0)


@pytest.mark.parametrize("together", [True, False])
def test_six_outliers_do_not_erase_the_result(problem, together):
    X, novel = problem.X.copy(), np.flatnonzero(problem.y == -1)
    directions = np.ones((6, X.shape[1])) if together else np.random.default_rng(0).choice([-1, 1], (6, X.shape[1]))
    X[novel[:6]] += 1e4 * directions
    found = discover(X, problem.y, **OPTIONS)
    assert found.n_clusters == 3
    frame = found.to_frame()
    assert set(found.labels[novel[:6]]) == {-2} and frame["label"].iloc[novel[:6]].str.startswith("outlier").all()
    assert not frame["discovered"].iloc[novel[:6]].any()
    assert adjusted_rand_score(problem.y_true[novel[6:]], found.labels[novel[6:]]) > 0.95
    assert any(note.startswith("6 unlabelled rows are far from all others") for note in found.notes)
    assert any("6 of them are near each other (outlier group 1)" in note for note in found.notes) == together


def test_a_rare_class_is_pointed_at():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5_000, 8))
    y = np.where(np.arange(5_000) < 3_000, np.arange(5_000) % 2, -1)
    X[y == 0, 0] += 6
    X[y == -1, 1] += 6
    rare = np.flatnonzero(y == -1)[:8]
    X[rare, 2] += 14
    found = find_outliers(X, y == -1, 0)
    assert set(found[rare]) == {1} and np.sum(found == 1) == 8
    assert np.sum(found == 0) < 10


def test_no_row_of_a_plain_table_is_an_outlier(problem):
    assert find_outliers(problem.X, problem.y == -1, 0).max() == -1
    assert find_outliers(np.ones((300, 2)), np.full(300, True), 0).max() == -1


def test_clusters_of_one_row_are_no_classes():
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(40, 2)), [[60, 0], [0, 60]], rng.normal(size=(20, 2)) - 30]
    found = discover(X, np.r_[np.full(42, -1), np.zeros(10), np.ones(10)], **OPTIONS, k_max=3)
    assert (found.labels[40:42] == -2).all() and found.n_clusters == 1
    assert "2 clusters had a single row, which is no class but an outlier: 40, 41." in found.notes


def test_a_small_table_has_no_more_classes_than_its_rows_can_show():
    rng = np.random.default_rng(0)
    X = np.r_[rng.integers(0, 2, (37, 8)), rng.integers(0, 2, (64, 8))]
    found = discover(X, np.r_[np.full(37, -1), np.arange(64) % 2], **OPTIONS)
    assert found.estimate.k_range[-1] == 7


def test_a_few_values_do_not_decide_the_scale():
    table = pd.DataFrame({"x": np.random.default_rng(0).normal(size=1_000), "zeros": np.zeros(1_000)})
    table.loc[:99, "zeros"] = np.arange(100) % 7
    plain = TablePreprocessor().fit(table).transform(table)
    table.loc[:5, ["x", "zeros"]] = 1e9
    numbers = TablePreprocessor().fit(table).transform(table)
    np.testing.assert_allclose(numbers[6:], plain[6:], rtol=0.3, atol=0.1)
    assert np.abs(numbers).max() < 25
