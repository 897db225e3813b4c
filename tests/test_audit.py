"""Columns that are no features, and numbers that stand for a missing value: told by name, and overridden by name."""

import numpy as np
import pandas as pd
import pytest

from ncdlib import discover, make_ncd_blobs
from ncdlib.own_data.audit import audit_columns
from ncdlib.own_data.prepare import TablePreprocessor

RNG = np.random.default_rng(0)
N = 200
CODES = np.repeat([0, 1, -1, -1], N // 4)
CLASSES = np.array(["a", "b", None, None], dtype=object).repeat(N // 4)
OTHER = RNG.normal(size=N)


def audit(column, keep=()):
    return audit_columns(pd.DataFrame({"new": column, "other": OTHER}), CODES, keep)


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (RNG.permutation(10**6)[:N], "another whole number in each row, as an id"),
        (np.arange(N), "another whole number in each row, as an id"),
        (pd.array(np.arange(N)[::-1], dtype="Int64"), "another whole number in each row, as an id"),
        (1.7e9 + 0.5 + np.sort(RNG.uniform(0, 1e6, N)), "it looks like a time, and alone tells the labelled"),
        (1e3 * np.sort(RNG.random(N)), "it looks like a time, and alone tells the labelled"),  # rises with the rows
        (CLASSES, "it follows the labels"),
        (np.where(CODES < 0, RNG.choice(["new 1", "new 2"], N), CLASSES), "it follows the labels"),
        (np.where(CODES < 0, np.nan, CODES + 5.0), "it follows the labels"),
        (np.where(np.arange(N) < 5, 1.0, np.nan), "it is missing in 97.5% of the rows"),
    ],
)
def test_what_is_no_feature_is_left_out(column, reason):
    found = audit(column)
    assert found.left_out == ["new"]
    (note,) = found.notes
    assert note.startswith("The column 'new' was left out: it") and reason in note and "--keep new" in note
    assert audit(column, keep=["new"]).left_out == [] == audit(column, keep=["new"]).notes


@pytest.mark.parametrize(
    "column",
    [
        RNG.integers(0, 10**6, N) // 10**4,  # whole numbers, but some twice
        np.where(CODES < 0, RNG.choice(["a", "b"], N), CLASSES),  # as a feature that is the same in all classes
        RNG.choice(["x", "y"], N),
        RNG.normal(size=N) * 1e9,
        np.sort(RNG.normal(size=N))[RNG.permutation(N)],
    ],
)
def test_ordinary_columns_stay(column):
    assert audit(column).left_out == [] == audit(column).notes


def test_a_feature_that_tells_the_new_rows_is_told_of_and_kept():
    found = audit(np.where(CODES < 0, 5, 0) + RNG.normal(size=N) / 10)
    assert found.left_out == [] and "'new' alone tells the labelled from the unlabelled rows" in found.notes[0]


@pytest.mark.parametrize(
    ("mark", "rest", "is_mark"),
    [
        (-99999, RNG.normal(size=N), True),
        (999, RNG.uniform(18, 80, N).round(), True),
        (-9999.0, RNG.lognormal(size=N), True),
        (1e30, RNG.normal(size=N), True),
        (99, RNG.uniform(18, 98, N).round(), False),  # an age
        (0, RNG.poisson(3, N), False),
        (12, RNG.normal(size=N), False),
    ],
)
def test_numbers_that_stand_for_a_missing_value(mark, rest, is_mark):
    column = np.where(np.arange(N) % 25 == 0, mark, rest)
    found = audit(column)
    assert found.marks == ({"new": mark} if is_mark else {})
    if is_mark:
        assert f"The number {mark:g} of the column 'new' was read as a missing value, in 8 rows" in found.notes[0]
        table = pd.DataFrame({"new": column})
        numbers = TablePreprocessor(marks=found.marks).fit(table).transform(table)
        assert np.abs(numbers).max() < 10 and np.ptp(numbers[::25]) == 0  # the median, in each of these rows


def test_the_last_columns_stay_though_they_are_doubtful():
    found = audit_columns(pd.DataFrame({"id": np.arange(N)}), CODES)
    assert found.left_out == [] and found.notes == [
        "The column 'id' is no feature, it seems: it has another whole number in each row, as an id does."
    ]


def test_text_of_many_levels_is_left_out_by_name_or_kept():
    table = pd.DataFrame({"x": np.arange(1_000.0), "place": [f"place {i % 300}" for i in range(1_000)]})
    preprocessor = TablePreprocessor().fit(table)
    assert list(map(str, preprocessor.features_)) == ["x"]
    assert preprocessor.notes_ == [
        "The column 'place' was left out: it has 300 different values, none of them in 1% of the rows "
        "(--keep place takes it)."
    ]
    kept = TablePreprocessor(keep=["place"]).fit(table)
    assert len(kept.features_) == 31 == kept.transform(table).shape[1] and kept.notes_ == []


def test_a_second_round_does_not_learn_from_the_first(tmp_path):
    """A column made from part of the result: where the label is missing, so is it."""
    problem = make_ncd_blobs(random_state=0)
    table = pd.DataFrame(problem.X).add_prefix("x")
    table["classes"] = [f"type {label}" if label >= 0 else None for label in problem.y]
    found = discover(table, problem.y, method="ncd_kmeans", n_seeds=1, unlabeled="new", verbose=False)
    assert any("'classes' was left out: it follows the labels" in note for note in found.notes)
    assert not any("classes" in profile.rule for profile in found.profiles)
