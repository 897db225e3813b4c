from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from ncdlib import clustering_accuracy, evaluate

LABELS = st.lists(st.tuples(st.integers(-1, 1), st.integers(-1, 1)), min_size=1, max_size=30)


def best_of_all_matchings(y_true, y_pred):
    """Try every one-to-one matching, with dummy classes for the clusters that have none."""
    clusters = sorted(set(y_pred))
    classes = sorted(set(y_true)) + [None] * len(clusters)
    matchings = (dict(zip(clusters, chosen, strict=True)) for chosen in permutations(classes, len(clusters)))
    return max(np.mean([matching[p] == t for t, p in zip(y_true, y_pred, strict=True)]) for matching in matchings)


@settings(deadline=None)
@given(LABELS)
def test_accuracy_is_that_of_the_best_matching(pairs):
    y_true, y_pred = zip(*pairs, strict=True)
    assert clustering_accuracy(y_true, y_pred) == pytest.approx(best_of_all_matchings(y_true, y_pred))


@settings(deadline=None)
@given(LABELS, st.permutations(range(3)))
def test_names_of_clusters_do_not_matter(pairs, renamed):
    y_true, y_pred = map(np.array, zip(*pairs, strict=True))
    other = np.array([f"cluster {c}" for c in np.array(renamed)[y_pred + 1]])
    assert evaluate(y_true, other) == pytest.approx(evaluate(y_true, y_pred))


@pytest.mark.parametrize(
    ("y_true", "y_pred", "accuracy"),
    [
        ([0, 0, 1, 1], [1, 1, 0, 0], 1),
        ([0, 0, 1, 1], [0, 1, 2, 3], 0.5),  # more clusters than classes
        ([0, 0, 1, 1, 2, 2], [5, 5, 5, 5, 5, 5], 1 / 3),  # fewer
        (["cat", "cat", "dog"], ["x", "x", "y"], 1),
        (["cat", "cat", "dog"], [-1, 10**12, 10**12], 2 / 3),
        ([3], [7], 1),
        # The largest cell of each row would give 4/5: both clusters cannot be the same class.
        ([0, 0, 0, 0, 1], [0, 0, 1, 1, 1], 3 / 5),
    ],
)
def test_known_values(y_true, y_pred, accuracy):
    assert clustering_accuracy(y_true, y_pred) == pytest.approx(accuracy)


def test_evaluate_returns_the_three_measures_as_plain_fractions():
    y_true, y_pred = [0, 0, 1, 1, 2], [1, 1, 0, 2, 2]
    scores = evaluate(y_true, y_pred)
    assert scores == {
        "acc": clustering_accuracy(y_true, y_pred),
        "nmi": normalized_mutual_info_score(y_true, y_pred),
        "ari": adjusted_rand_score(y_true, y_pred),
    }
    assert all(type(score) is float for score in scores.values())


@pytest.mark.parametrize("function", [clustering_accuracy, evaluate])
@pytest.mark.parametrize(("y_true", "y_pred"), [([], []), ([1, 2, 3], [1, 2]), ([], [1])])
def test_empty_or_unequal_input_is_refused_with_both_lengths(function, y_true, y_pred):
    with pytest.raises(ValueError, match=f"y_true has {len(y_true)} labels, y_pred has {len(y_pred)}"):
        function(y_true, y_pred)


def test_two_dimensional_labels_are_refused():
    with pytest.raises(ValueError, match=r"one-dimensional, got shapes \(2, 1\) and \(2,\)"):
        clustering_accuracy([[1], [2]], [1, 2])
