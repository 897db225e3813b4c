"""Explain the discovered classes: what sets each apart from all other rows, and a rule that marks it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances
from sklearn.tree import DecisionTreeClassifier

from ncdlib.own_data.prepare import Feature
from ncdlib.own_data.rows import Rows
from ncdlib.problem import UNLABELED

GOOD_RULE = 0.5  # the precision below which a rule marks other rows rather than those of the class
LIKE_KNOWN, PARTLY_LIKE_KNOWN = 0.5, 0.2  # mean probability that the rows of a class are of known ones


@dataclass(frozen=True)
class Difference:
    """How a discovered class differs from all other rows in one feature.

    Attributes
    ----------
    feature : str
        A column, or "column is category".
    inside, outside : float
        Mean of the class and of all other rows, in the column's own unit; for a category, the share of rows.
    standardized : float
        Their difference in standard deviations of all rows.

    Examples
    --------
    >>> from ncdlib import discover, make_ncd_blobs
    >>> problem = make_ncd_blobs(random_state=0)
    >>> found = discover(problem.X, problem.y, method="ncd_kmeans", verbose=False)
    >>> strongest = found.profiles[0].differences[0]
    >>> (strongest.standardized > 0) == (strongest.inside > strongest.outside)
    True
    """

    feature: str
    inside: float
    outside: float
    standardized: float


@dataclass(frozen=True)
class ClassProfile:
    """What a discovered class is.

    Attributes
    ----------
    cluster : int
    name : str
    size : int
    share : float
        Of the unlabelled rows.
    confidence : float
        The probability that the class is right, as measured on other tables (see `ncdlib.own_data.confidence`); NaN
        where the method does not tell.
    stability : float
        How well the class is found again with other seeds: mean overlap (intersection over union) with the best
        matching class, between 0 and 1; NaN for a class that a person made.
    nearest_known : object
        The known class with the nearest mean, in standardised features.
    differences : list of Difference
        The features that set it apart, the strongest first.
    rule : str
        Conditions that mark the class, from a shallow decision tree.
    rule_precision, rule_recall : float
        Share of the rows under the rule that are of the class; share of the class that is under the rule.
    p_known : float
        Mean probability that its rows are of known classes; NaN where there were too few rows to tell.
    verdict : str
        Whether the class can be told from known ones.

    Examples
    --------
    >>> from ncdlib import discover, make_ncd_blobs
    >>> problem = make_ncd_blobs(random_state=0)
    >>> found = discover(problem.X, problem.y, method="ncd_kmeans", verbose=False)
    >>> [profile.size for profile in found.profiles]
    [70, 70, 70]
    >>> round(sum(profile.share for profile in found.profiles), 6)
    1.0
    """

    cluster: int
    name: str
    size: int
    share: float
    confidence: float
    stability: float
    nearest_known: Any
    differences: list[Difference]
    rule: str
    rule_precision: float
    rule_recall: float
    p_known: float
    verdict: str


def describe(
    all_labels: NDArray[np.int64],
    refits: Sequence[NDArray[np.int64]],
    confidence: Mapping[int, float],
    rows: Rows,
) -> list[ClassProfile]:
    """Say what each class is, from the rows that were learned from; sizes, and how good a rule is, from all rows.

    Parameters
    ----------
    all_labels : array
        Class of each row of the table, negative for rows of none.
    refits : sequence of arrays
        The classes of the unlabelled rows that were learned from, by fits with other seeds.
    confidence : dict of int to float
        The probability that a class is right, where it is known.
    rows : Rows
    """
    labels, unlabeled = all_labels[rows.learned], rows.codes == UNLABELED
    n_unlabeled = int(np.sum(all_labels >= 0))
    units = rows.preprocessor.readable(rows.numbers)
    known_means = np.array([rows.numbers[rows.codes == c].mean(axis=0) for c in range(len(rows.classes))])
    first_name = _first_free_name(rows.classes)
    profiles = []
    for cluster in np.unique(labels[labels >= 0]):
        member, all_members = labels == cluster, all_labels == cluster
        distances = pairwise_distances(rows.numbers[member].mean(axis=0, keepdims=True), known_means)[0]
        bounds = _rule(units, member)
        under = _rows_under(bounds, rows)
        hits = int(np.sum(under & all_members))
        precision = hits / max(int(under.sum()), 1)
        p_known, verdict = _compare_with_known(all_members, rows)
        profiles.append(
            ClassProfile(
                cluster=int(cluster),
                name=f"new {first_name + cluster}",
                size=int(all_members.sum()),
                share=float(all_members.sum() / n_unlabeled),
                confidence=confidence.get(int(cluster), np.nan),
                stability=float(np.mean([_best_overlap(member[unlabeled], other) for other in refits] or [np.nan])),
                nearest_known=rows.classes[distances.argmin()],
                differences=_differences(units, member, rows.preprocessor.features_),
                rule=(precision >= GOOD_RULE and _in_words(bounds, rows.preprocessor.features_)) or "no short rule",
                rule_precision=precision,
                rule_recall=hits / int(all_members.sum()),
                p_known=p_known,
                verdict=verdict,
            )
        )
    return profiles


def _compare_with_known(member: NDArray[np.bool_], rows: Rows) -> tuple[float, str]:
    """Return how likely the rows of a class are of known ones, and what that says of it."""
    if rows.known_or_new is None:
        return np.nan, "not compared with known classes: too few rows"
    p_known, nearest = rows.known_or_new.p_known[member], rows.known_or_new.nearest[member]
    judged = ~np.isnan(p_known)
    if not judged.any():
        return np.nan, "not compared with known classes"
    mean, alike = float(p_known[judged].mean()), rows.classes[np.bincount(nearest[judged]).argmax()]
    if mean >= LIKE_KNOWN:
        return mean, f"cannot be told from {alike}"
    return mean, f"partly like {alike}" if mean >= PARTLY_LIKE_KNOWN else "unlike any known class"


def _differences(units: NDArray[np.float64], member: NDArray[np.bool_], features: list[Feature]) -> list[Difference]:
    """Return how a class differs from all other rows in each feature, the strongest first."""
    inside, outside, spread = units[member].mean(axis=0), units[~member].mean(axis=0), units.std(axis=0)
    standardized = np.divide(inside - outside, spread, out=np.zeros_like(spread), where=spread > 0)
    return [
        Difference(str(features[i]), float(inside[i]), float(outside[i]), float(standardized[i]))
        for i in np.argsort(-np.abs(standardized), kind="stable")
    ]


def _rows_under(bounds: Mapping[int, tuple[float, float]], rows: Rows) -> NDArray[np.bool_]:
    """Mark the rows of the whole table that a rule holds for."""
    under = np.ones(len(rows.all_numbers), dtype=bool)
    for feature, (above, at_most) in bounds.items():
        values = rows.preprocessor.readable_feature(rows.all_numbers, feature)
        under &= (values > above) & (values <= at_most)
    return under


def _first_free_name(classes: NDArray) -> int:
    """Return the number of the first discovered class: in a second round, "new 1" may be known already."""
    known = (re.fullmatch(r"new (\d+)", str(name)) for name in classes)
    return 1 + max((int(match[1]) for match in known if match), default=0)


def _best_overlap(member: NDArray[np.bool_], partition: NDArray) -> float:
    """Return the intersection over union with the cluster of another partition that matches best."""
    candidates = [partition == cluster for cluster in np.unique(partition[member])]
    return max(np.sum(member & c) / np.sum(member | c) for c in candidates)


def _rule(units: NDArray, member: NDArray[np.bool_]) -> dict[int, tuple[float, float]]:
    """Return the leaf of a shallow tree that marks the class best: the bounds (above, at most) of some features.

    Each bound has no more digits than it takes to tell the same rows apart: what is printed is what is measured.
    """
    tree = DecisionTreeClassifier(max_depth=3, min_samples_leaf=2, class_weight="balanced", random_state=0)
    leaf_of = tree.fit(units, member).apply(units)
    leaves, position = np.unique(leaf_of, return_inverse=True)
    hits = np.bincount(position, weights=member)
    best = leaves[int(np.argmax(hits / (np.bincount(position) + member.sum())))]  # half of the F1 score
    bounds: dict[int, tuple[float, float]] = {}
    node, nodes = 0, tree.tree_
    while node != best:
        feature = int(nodes.feature[node])
        threshold = _short(nodes.threshold[node], units[:, feature])
        above, at_most = bounds.get(feature, (-np.inf, np.inf))
        if _reaches(nodes, nodes.children_left[node], best):
            bounds[feature] = (above, min(at_most, threshold))
            node = nodes.children_left[node]
        else:
            bounds[feature] = (max(above, threshold), at_most)
            node = nodes.children_right[node]
    return bounds


def _short(threshold: float, values: NDArray) -> float:
    """Return the number with the fewest digits, three or more, that is on the same side of all values."""
    below = values <= threshold
    for digits in range(3, 17):
        rounded = float(f"{threshold:.{digits}g}")
        if np.array_equal(values <= rounded, below):
            return rounded
    return float(threshold)


def _reaches(nodes: Any, node: int, leaf: int) -> bool:
    if node == leaf:
        return True
    left, right = nodes.children_left[node], nodes.children_right[node]
    return bool(left >= 0) and (_reaches(nodes, left, leaf) or _reaches(nodes, right, leaf))


def _in_words(bounds: Mapping[int, tuple[float, float]], features: list[Feature]) -> str:
    """Write bounds (above, at most) of some features as conditions."""
    parts = []
    for number, (above, at_most) in bounds.items():
        column, category = features[number]
        low, high = (np.format_float_positional(bound, trim="-") for bound in (above, at_most))
        if category is not None:
            parts.append(f"{column} is {'' if np.isfinite(above) else 'not '}{category}")
        elif np.isinf(above):
            parts.append(f"{column} <= {high}")
        elif np.isinf(at_most):
            parts.append(f"{column} > {low}")
        else:
            parts.append(f"{low} < {column} <= {high}")
    return " and ".join(parts)
