from dataclasses import FrozenInstanceError, replace

import numpy as np
import pandas as pd
import pytest

from ncdlib import NCDProblem, load_dataset, make_ncd_blobs


@pytest.fixture
def problem():
    """Six train and three test rows of the classes 1 (ant), 2 (bee), 3 (cat)."""
    return NCDProblem(
        name="pets",
        X=np.arange(12.0).reshape(6, 2),
        y_true=np.array([1, 2, 3, 1, 2, 3]),
        X_test=np.arange(6.0).reshape(3, 2),
        y_test=np.array([3, 2, 1]),
        known_classes=(1, 2),
        novel_classes=(3,),
        class_names={1: "ant", 2: "bee", 3: "cat"},
        feature_names=["weight", "legs"],
        images=np.arange(6).reshape(6, 1, 1),
        images_test=np.arange(3).reshape(3, 1, 1),
    )


def test_views_split_rows_by_known_and_novel(problem):
    assert problem.y.tolist() == [1, 2, -1, 1, 2, -1]
    assert problem.X_known[:, 0].tolist() == [0, 2, 6, 8]
    assert problem.y_known.tolist() == [1, 2, 1, 2]
    assert problem.X_novel[:, 0].tolist() == [4, 10]
    assert problem.y_novel.tolist() == [3, 3]
    assert problem.X_test_known[:, 0].tolist() == [2, 4]
    assert problem.y_test_known.tolist() == [2, 1]
    assert problem.X_test_novel[:, 0].tolist() == [0]
    assert problem.y_test_novel.tolist() == [3]


@pytest.mark.parametrize("classes", [2, "bee", [2], ["bee"], (np.int64(2),), {2}])
def test_hide_makes_known_classes_novel(problem, classes):
    hidden = problem.hide(classes)
    assert (hidden.known_classes, hidden.novel_classes) == ((1,), (2, 3))
    assert hidden.y.tolist() == [1, -1, -1, 1, -1, -1]
    assert hidden.y_test_novel.tolist() == [3, 2]
    assert hidden.images is problem.images and hidden.images_test is problem.images_test
    assert problem.y.tolist() == [1, 2, -1, 1, 2, -1]


def test_with_novel_sets_exactly_these(problem):
    other = problem.with_novel(["ant"])
    assert (other.known_classes, other.novel_classes) == ((2, 3), (1,))
    assert other.y.tolist() == [-1, 2, 3, -1, 2, 3]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda p: p.hide("cat"),
            "only known classes can be hidden, and cat is novel already; known classes: ant, bee",
        ),
        (lambda p: p.hide("dog"), "pets has no class 'dog'; its classes are ant, bee, cat"),
        (lambda p: p.hide(7), "pets has no class 7"),
        (lambda p: p.hide([1, 2]), "got 0 known and 3 novel"),
        (lambda p: p.with_novel([]), "got 3 known and 0 novel"),
    ],
)
def test_impossible_splits_are_refused(problem, call, message):
    with pytest.raises(ValueError, match=message):
        call(problem)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y_true": np.array([1, 2])}, "X has 6 rows, but y_true has 2 labels"),
        ({"X_test": np.zeros((2, 2))}, "X_test has 2 rows, but y_test has 3 labels"),
        ({"images": np.zeros((5, 1, 1))}, "images has 5 rows, but y_true has 6 labels"),
        ({"feature_names": ["one"]}, "X has 2 columns, X_test 2, and there are 1 feature names"),
        ({"novel_classes": (2, 3)}, "both known and novel: bee"),
        ({"known_classes": (-1, 1, 2)}, "no class can be coded as -1"),
        ({"novel_classes": (4,)}, "classes neither known nor novel: 3"),
        ({"known_classes": (1, 2, 3), "novel_classes": ()}, "at least one known and one novel class"),
    ],
)
def test_inconsistent_problems_are_refused(problem, change, message):
    with pytest.raises(ValueError, match=message):
        replace(problem, **change)


def test_problem_cannot_be_changed_in_place(problem):
    with pytest.raises(FrozenInstanceError):
        problem.novel_classes = (1,)


def test_search_defaults_follow_the_number_of_known_classes():
    problem = make_ncd_blobs(n_known=5, n_novel=2)
    assert (problem.n_hidden, problem.n_splits) == (2, 5)
    assert (problem.hide([0, 1]).n_hidden, problem.hide([0, 1]).n_splits) == (2, 3)
    assert (problem.hide([0, 1, 2]).n_hidden, problem.hide([0, 1, 2]).n_splits) == (1, 2)


def test_repr_is_short_and_tells_the_split(problem):
    assert repr(problem).splitlines() == [
        "NCDProblem 'pets', 2 features",
        "  known classes (2): ant, bee; 4 train and 2 test rows",
        "  novel classes (1): cat; 2 train and 1 test rows",
        "  source: original",
    ]


def test_descriptions_make_a_table(problem):
    table = pd.DataFrame([problem.describe(), problem.hide("ant").describe()])
    assert table.index.tolist() == ["pets", "pets"]
    assert table["known rows"].tolist() == [4, 2]
    assert table["novel test rows"].tolist() == [1, 2]


def test_images_follow_their_rows():
    problem = load_dataset("digits").hide(1)
    pixels = problem.images.reshape(len(problem.X), 64)
    varies = pixels.std(axis=0) > 0
    expected = (pixels[:, varies] - pixels[:, varies].mean(axis=0)) / pixels[:, varies].std(axis=0)
    assert np.allclose(problem.X[:, varies], expected)
    assert np.all(problem.X[:, ~varies] == 0)
    assert len(problem.images_test) == len(problem.X_test)
