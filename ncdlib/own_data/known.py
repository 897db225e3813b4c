"""Known or new? Which unlabelled rows are of a known class, and whether there are new classes at all.

A forest learns to tell the unlabelled rows from those of each known class, and judges only rows that it has not seen.
A row of a known class is as likely to be labelled as the labelled rows of that class are; a row of a new class
is not. So the scores of the labelled rows show what "known" looks like, and the scores of the unlabelled rows are
a mixture of that and of something else: how much, and which rows, follows from the two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm, rankdata
from sklearn.ensemble import RandomForestClassifier
from sklearn.isotonic import IsotonicRegression

from ncdlib.problem import UNLABELED

N_FOLDS = 3
N_TREES = 100
MAX_ROWS_LEARNED = 5_000  # of each forest
MIN_ROWS = 30  # labelled, and unlabelled: fewer tell nothing
MIN_ROWS_OF_A_CLASS = 10  # fewer have no score of their own
MAX_HIDDEN = 5
LEVEL = 0.05  # the error level of the test for new classes
FEW_KNOWN = 0.05  # a share of known rows that is not worth asking about


@dataclass(frozen=True, eq=False)
class KnownOrNew:
    """What is known of the unlabelled rows before any class is discovered.

    Attributes
    ----------
    p_known : array of shape (n_rows,)
        The probability that an unlabelled row is of a known class; NaN for other rows.
    nearest : array of shape (n_rows,)
        The known class that a row resembles most, as its position among the classes.
    share : float
        The share of the unlabelled rows that are of known classes, an estimate.
    p_value : float
        Of the hypothesis that no row is of a new class. It allows for known classes that are more or less frequent
        among the unlabelled rows, not for known classes that have changed.

    Examples
    --------
    >>> from ncdlib import discover, make_ncd_blobs
    >>> problem = make_ncd_blobs(random_state=0)
    >>> told = discover(problem.X, problem.y, method="ncd_kmeans", verbose=False).known_or_new
    >>> told.share < 0.1, told.p_value < 0.01
    (True, True)
    """

    p_known: NDArray[np.float64]
    nearest: NDArray[np.int64]
    share: float
    p_value: float


@dataclass(frozen=True, eq=False)
class _Scores:
    """Of rows that a forest has not seen: how much each looks unlabelled, and which known class it resembles most."""

    score: NDArray[np.float64]
    nearest: NDArray[np.int64]
    fold: NDArray[np.int64]


def tell_known_from_new(numbers: NDArray[np.float64], codes: NDArray[np.int64], seed: int) -> KnownOrNew | None:
    """Tell which unlabelled rows are of a known class, and whether there are new classes at all.

    Parameters
    ----------
    numbers : array of shape (n_rows, n_features)
    codes : array of shape (n_rows,)
        The known class of each row, -1 for unlabelled rows.
    seed : int

    Returns
    -------
    KnownOrNew or None
        None where there are too few rows to tell.

    Examples
    --------
    >>> from ncdlib import make_ncd_blobs
    >>> from ncdlib.own_data.known import tell_known_from_new
    >>> problem = make_ncd_blobs(random_state=0)
    >>> told = tell_known_from_new(problem.X, problem.y, seed=0)
    >>> told.p_value < 0.001, round(told.share, 1)
    (True, 0.0)
    """
    unlabeled = codes == UNLABELED
    if min(unlabeled.sum(), (~unlabeled).sum()) < MIN_ROWS:
        return None
    scores = _held_out_scores(numbers, codes, seed)
    centred = _centre(scores, codes)
    share = _share_known(centred, unlabeled)
    p_known = np.full(len(codes), np.nan)
    p_known[unlabeled] = _p_known(centred, unlabeled, share)
    return KnownOrNew(p_known, scores.nearest, share, _p_value(scores, unlabeled))


def share_that_looks_known(numbers: NDArray[np.float64], codes: NDArray[np.int64], seed: int) -> float:
    """Return the share of rows that look known though their class is new: each known class in turn is hidden.

    With more known classes than five, five of them are hidden, chosen at random; NaN if none can be.
    """
    labeled = codes != UNLABELED
    numbers, codes = numbers[labeled], codes[labeled]
    classes, sizes = np.unique(codes, return_counts=True)
    enough = classes[(sizes >= MIN_ROWS) & (len(codes) - sizes >= MIN_ROWS)]
    if len(enough) == 0 or len(classes) < 3:
        return np.nan
    hidden = np.random.default_rng(seed).permutation(enough)[:MAX_HIDDEN]
    shares = []
    for one in hidden:
        others = np.where(codes == one, UNLABELED, codes)
        scores = _held_out_scores(numbers, others, seed)
        shares.append(_share_known(_centre(scores, others), codes == one))
    return float(np.mean(shares))


def sample_rows(codes: NDArray[np.int64], n_rows: int, rare: int, random_state: int) -> NDArray[np.int64]:
    """Choose random rows, in their order; a rare class keeps some, and the unlabelled rows up to half of the places."""
    order = np.random.default_rng(random_state).permutation(len(codes))
    rank = pd.Series(order).groupby(codes[order]).cumcount().to_numpy()  # of each row among those of its class
    others = rare * len(np.unique(codes[codes != UNLABELED]))
    kept = np.where(codes[order] == UNLABELED, min(n_rows // 2, n_rows - others), rare)
    return np.sort(order[np.argsort(rank >= kept, kind="stable")[:n_rows]])


def _held_out_scores(numbers: NDArray[np.float64], codes: NDArray[np.int64], seed: int) -> _Scores:
    order = np.random.default_rng(seed).permutation(len(codes))
    fold = np.empty(len(codes), dtype=np.int64)
    fold[order] = pd.Series(order).groupby(codes[order]).cumcount().to_numpy() % N_FOLDS
    score, nearest = np.empty(len(codes)), np.empty(len(codes), dtype=np.int64)
    for i in range(N_FOLDS):
        learned, judged = np.flatnonzero(fold != i), np.flatnonzero(fold == i)
        if len(learned) > MAX_ROWS_LEARNED:
            learned = learned[sample_rows(codes[learned], MAX_ROWS_LEARNED, 2, seed)]
        forest = RandomForestClassifier(N_TREES, min_samples_leaf=5, random_state=seed)
        shares = forest.fit(numbers[learned], codes[learned]).predict_proba(numbers[judged])
        of_known = shares[:, 1:]  # the first class of the forest is -1
        score[judged] = np.log(shares[:, 0] + 1 / N_TREES) - np.log(of_known.sum(axis=1) + 1 / N_TREES)
        nearest[judged] = forest.classes_[1:][of_known.argmax(axis=1)]
    return _Scores(score, nearest, fold)


def _centre(scores: _Scores, codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the scores without what the labelled rows of the same class have: known classes differ in their share."""
    labeled = codes != UNLABELED
    usual = np.full(codes.max() + 1, np.median(scores.score[labeled]))
    for one in np.flatnonzero(np.bincount(codes[labeled]) >= MIN_ROWS_OF_A_CLASS):
        usual[one] = np.median(scores.score[codes == one])
    return scores.score - usual[scores.nearest]


def _share_known(centred: NDArray[np.float64], unlabeled: NDArray[np.bool_]) -> float:
    """Return the share of the unlabelled rows whose score is as low as that of half of the labelled ones, twice."""
    return min(1.0, 2 * float(np.mean(centred[unlabeled] < np.median(centred[~unlabeled]))))


def _p_known(centred: NDArray[np.float64], unlabeled: NDArray[np.bool_], share: float) -> NDArray[np.float64]:
    """Return the share of known rows among the unlabelled ones of each score: it falls as the score rises."""
    weight = np.where(unlabeled, 1 / unlabeled.sum(), 1 / (~unlabeled).sum())
    odds = IsotonicRegression(y_min=0, y_max=1, increasing=False).fit(centred, ~unlabeled, sample_weight=weight)
    q = odds.predict(centred[unlabeled])
    return np.clip(share * q / np.maximum(1 - q, 1e-9), 0, 1)


def _p_value(scores: _Scores, unlabeled: NDArray[np.bool_]) -> float:
    """Test whether unlabelled rows look like labelled ones of the same nearest class (van Elteren's rank test).

    In a fold, the forest has seen no row that it judges, so the test is exact there but for the normal approximation.
    Twice the mean of the folds' p-values is one, however these depend on each other.
    """
    p_values = []
    for i in range(N_FOLDS):
        total = variance = 0.0
        for one in np.unique(scores.nearest):
            rows = (scores.fold == i) & (scores.nearest == one)
            n, n_unlabeled = int(rows.sum()), int((rows & unlabeled).sum())
            if 0 < n_unlabeled < n:
                ranks = rankdata(scores.score[rows])
                total += (ranks[unlabeled[rows]].sum() - n_unlabeled * (n + 1) / 2) / (n + 1)
                variance += n_unlabeled * (n - n_unlabeled) * ranks.var() / (n - 1) / (n + 1) ** 2
        p_values.append(norm.sf(total / np.sqrt(variance)) if variance > 0 else 1.0)
    return min(1.0, 2 * float(np.mean(p_values)))
