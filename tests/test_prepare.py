"""Columns as people have them: mixed types, missing values, dates, text, codes."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from own_tables import attempt
from scipy import sparse

from ncdlib import discover, make_ncd_blobs
from ncdlib._io.checks import check_rows
from ncdlib.own_data.prepare import TablePreprocessor


@pytest.fixture(scope="module")
def problem():
    return make_ncd_blobs(random_state=0)


def test_masked_cells_are_missing(problem):
    mask = np.random.default_rng(0).random(problem.X.shape) < 0.05
    preprocessor = TablePreprocessor().fit(np.where(mask, np.nan, problem.X))
    masked = np.ma.array(np.where(mask, 1e9, problem.X), mask=mask)
    expected = preprocessor.transform(np.where(mask, np.nan, problem.X))
    np.testing.assert_array_equal(preprocessor.transform(masked), expected)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([f"Mr {i}" for i in range(100)], "'new' is text \\(100 different values in 100 rows\\)"),
        (pd.date_range("2020", periods=100), "'new' holds dates"),
        ([np.inf, *range(99)], "'new' has infinite values"),
        ([f"2024-01-{i % 28 + 1:02d}" for i in range(100)], "'new' holds dates"),
        ([*map(str, range(99)), "error"], "'new' has numbers, but also values like 'error': write plain numbers"),
        ([f"{i % 7} %" for i in range(100)], "'new' has numbers, but also values like '0 %'"),
        ([f"${i}.50" for i in range(100)], r"'new' has numbers, but also values like '\$0.50'"),
    ],
)
def test_columns_without_meaning_are_refused_by_name(column, message):
    X = pd.DataFrame({"x": np.arange(100.0), "new": column})
    with pytest.raises(ValueError, match=message):
        TablePreprocessor().fit(X)


def test_all_refused_columns_are_named_at_once():
    X = pd.DataFrame({"x": np.arange(100.0), "who": [f"Mr {i}" for i in range(100)]})
    X["when"] = [f"2024-{i % 12 + 1:02d}-01" for i in range(100)]
    with pytest.raises(ValueError, match="the column 'who' is text .*; the column 'when' holds dates"):
        TablePreprocessor().fit(X)


def test_what_should_be_known_about_columns_is_noted():
    gaps = [None] * 80 + [*range(20)]
    X = pd.DataFrame({"x": np.arange(100.0), "gaps": gaps, "empty": None, "same": 1})
    X["decimal"] = [Decimal(i) / 10 for i in range(100)]
    preprocessor = TablePreprocessor().fit(X)
    assert preprocessor.notes_ == [
        "The column 'gaps' is missing in 80% of the rows: its median stands in.",
        "The column 'empty' was left out: it is empty.",
        "The column 'same' was left out: it has a single value.",
    ]
    assert [str(f) for f in preprocessor.features_] == ["x", "gaps", "decimal"]


def test_columns_become_numbers_and_names():
    X = pd.DataFrame({"n": [1.0, None, 3.0, 5.0] * 50, "c": (["a", "b", None, "a"] * 50)})
    X.loc[0, "c"] = "once"
    preprocessor = TablePreprocessor().fit(X)
    assert [str(f) for f in preprocessor.features_] == ["n", "c is (missing)", "c is a", "c is b", "c is a rare value"]
    Z = preprocessor.transform(X)
    assert Z[:, 0].mean() == pytest.approx(0) and Z[:, 0].std() == pytest.approx(1)
    np.testing.assert_allclose(preprocessor.readable(Z)[:4, 0], [1, 3, 3, 5])
    np.testing.assert_array_equal(Z[:4, 1:], [[0, 0, 0, 1], [0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0]])
    unseen = preprocessor.transform(pd.DataFrame({"n": [2.0], "c": ["never seen"]}))
    assert unseen[0, -1] == 1
    with pytest.raises(ValueError, match="no column 'c'"):
        preprocessor.transform(X[["n"]])
    with pytest.raises(ValueError, match="column 'n' holds something else than numbers .*'a'.: give numbers, as in"):
        preprocessor.transform(X.assign(n="a"))


def test_odd_tables():
    with pytest.raises(ValueError, match="rows and columns"):
        TablePreprocessor().fit(np.arange(4))
    with pytest.raises(ValueError, match="'a' is there twice"):
        TablePreprocessor().fit(pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]))
    with pytest.raises(ValueError, match="no column is left"):
        TablePreprocessor().fit(np.ones((5, 2)))
    levels = pd.DataFrame([[1, 2], [3, 4]], columns=pd.MultiIndex.from_tuples([("size", "mean"), ("size", 2)]))
    assert [str(f) for f in TablePreprocessor().fit(levels).features_] == ["size mean", "size 2"]
    only_categories = TablePreprocessor().fit(pd.DataFrame({"c": list("abab")}))
    Z = only_categories.transform(pd.DataFrame({"c": list("ba")}))
    np.testing.assert_array_equal(only_categories.readable(Z), [[0, 1], [1, 0]])
    mixed = np.array([[1, "a"], [2, "b"], [3, "a"]], dtype=object)
    assert [str(f) for f in TablePreprocessor().fit(mixed).features_] == [
        "feature 0",
        "feature 1 is a",
        "feature 1 is b",
    ]


def test_a_flag_and_nothing_are_two_categories():
    table = pd.DataFrame({"x": range(6), "alarm": ["Y", None] * 3, "one": [1.0, np.nan] * 3})
    preprocessor = TablePreprocessor().fit(table)
    assert list(map(str, preprocessor.features_)) == ["x", "alarm is (missing)", "alarm is Y"]
    assert "The column 'one' was left out: it has a single value and gaps." in preprocessor.notes_


def test_numbers_with_a_slip_are_told_of_when_they_become_categories():
    table = pd.DataFrame({"retries": [*map(str, [0, 1, 2] * 10), "error"], "word": [*"ab" * 15, "c"]})
    notes = TablePreprocessor().fit(table).notes_
    assert notes == ["The column 'retries' was taken as categories: beside numbers, it has values like 'error'."]


def test_a_category_that_looks_like_a_number_is_known_again_beside_gaps():
    preprocessor = TablePreprocessor().fit(pd.DataFrame({"code": ["1", "2", "A"] * 4}))
    whole, with_gap = (preprocessor.transform(pd.DataFrame({"code": codes})) for codes in ([1, 2], [1.0, 2.0, np.nan]))
    assert whole.tolist() == [[1, 0, 0], [0, 1, 0]]
    assert with_gap[:2].tolist() == whole.tolist()


def test_row_numbers_are_told_of():
    table = pd.DataFrame({"Unnamed: 0": range(9), "id": range(5, 14), "x": [3, 1, 2] * 3})
    preprocessor = TablePreprocessor().fit(table)
    assert list(map(str, preprocessor.features_)) == ["id", "x"]
    assert preprocessor.notes_ == [
        "The column 'Unnamed: 0' was left out: it has no name, and numbers the rows.",
        "The column 'id' goes up by one from row to row: leave it out if it numbers the rows.",
    ]


def test_versions_are_no_dates():
    versions = ["1.2.3", "10.2.3", "1.12.4"] * 5
    assert TablePreprocessor().fit(pd.DataFrame({"version": versions})).categorical_ == ["version"]


def test_lists_of_numbers_and_words():
    rng = np.random.default_rng(0)
    rows = [[float(x), word] for x, word in zip(rng.normal(size=60), rng.choice(["red", "blue"], 60), strict=True)]
    found = discover(rows, np.arange(60) % 3 - 1, method="ncd_kmeans", n_clusters=2, n_seeds=1, verbose=False)
    assert [str(f) for f in found.preprocessor.features_] == ["feature 0", "feature 1 is blue", "feature 1 is red"]
    numbers = rng.normal(size=(20, 3))
    np.testing.assert_array_equal(check_rows(numbers.tolist()), numbers)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([[i] for i in range(60)], "the column 'new' holds lists or the like"),
        (1j * np.arange(60), "the column 'new' holds complex numbers"),
        (1e39 * np.arange(60), "the column 'new' has values up to 5.9e"),
        ([*map(str, range(59)), "x" * 70_000], f"has numbers, but also values like '{'x' * 29}…': write plain numbers"),
        ([10**400, *range(59)], "column 'new' holds something else than numbers (int too large"),
    ],
)
def test_columns_that_cannot_be_learned_from(column, message):
    table = pd.DataFrame({"x": np.arange(60.0), "new": column})
    _, found = attempt(lambda: discover(table, np.arange(60) % 3 - 1, method="ncd_kmeans"))
    assert message in found


def test_sparse_tables_are_refused_with_a_way_out():
    problem = make_ncd_blobs(random_state=0)
    with pytest.raises(ValueError, match="X is sparse: give it as an array"):
        discover(sparse.csr_matrix(problem.X), problem.y, method="ncd_kmeans")
