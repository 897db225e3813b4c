"""Folds that hide known classes, to score discovery without a novel label (Section 4 of the paper)."""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length

from ncdlib._io.checks import check_positive, check_seed, encode_labels
from ncdlib.problem import UNLABELED

MIN_HIDDEN = 2  # whether hidden classes are told apart shows with two of them at the least
MIN_VISIBLE = 1  # the paper leaves one of the three known classes of Human Activity visible


class HiddenClassFold(NamedTuple):
    """One split: the classes it hides, and the rows by role.

    Attributes
    ----------
    classes : array
        The hidden classes.
    visible : array of int
        Rows of the known classes that stay labelled.
    hidden : array of int
        Rows of the hidden classes: unlabelled for the model, scored afterwards.
    novel : array of int
        Unlabelled rows: of unknown class throughout.

    Examples
    --------
    >>> from ncdlib import HiddenClassKFold
    >>> fold = next(HiddenClassKFold(n_splits=1).split(y=["a", "a", "b", "c", "d", None]))
    >>> fold.classes.tolist(), fold.hidden.tolist(), fold.novel.tolist()
    (['c', 'd'], [3, 4], [5])
    """

    classes: NDArray
    visible: NDArray[np.int64]
    hidden: NDArray[np.int64]
    novel: NDArray[np.int64]


class HiddenClassKFold(BaseEstimator):
    """Splits of the known classes: each hides the labels of a random combination of them.

    The combinations are all different, and each known class is hidden in at least one of them where
    ``n_splits * n_hidden`` allows it.

    Parameters
    ----------
    n_splits : int, default=None
        Number of splits; by default five, or as many different combinations as there are.
    n_hidden : int, default=None
        Known classes hidden in each split, at least 2; by default half of them, rounded down, but at least 2.
    random_state : int or None, default=0
        Seed of the choice.

    Examples
    --------
    >>> from ncdlib import HiddenClassKFold
    >>> y = ["a", "a", "b", "c", "c", "d", None, None]
    >>> folds = HiddenClassKFold(n_splits=3).split(y=y)
    >>> [fold.classes.tolist() for fold in folds]
    [['c', 'd'], ['a', 'b'], ['a', 'd']]
    """

    def __init__(self, n_splits: int | None = None, n_hidden: int | None = None, random_state: int | None = 0) -> None:
        self.n_splits = n_splits
        self.n_hidden = n_hidden
        self.random_state = random_state

    def get_n_splits(self, X: ArrayLike | None = None, y: ArrayLike | None = None, groups: None = None) -> int:
        """Return the number of splits of these labels."""
        return len(list(self.split(X, y)))

    def split(
        self, X: ArrayLike | None = None, y: ArrayLike | None = None, groups: None = None
    ) -> Iterator[HiddenClassFold]:
        """Yield the folds of the labels `y`.

        Parameters
        ----------
        X : ignored
            As in scikit-learn's splitters.
        y : array of shape (n_rows,)
            Known classes, and -1 (or None, NaN) for unlabelled rows.
        groups : ignored

        Yields
        ------
        HiddenClassFold
        """
        if y is None:
            raise ValueError("HiddenClassKFold needs y: the known classes, and -1 for the unlabelled rows")
        if X is not None:
            check_consistent_length(X, y)
        codes, classes = encode_labels(y)
        novel = np.flatnonzero(codes == UNLABELED)
        for hidden_codes in self._combinations(len(classes)):
            is_hidden = np.isin(codes, hidden_codes)
            yield HiddenClassFold(
                classes=classes[hidden_codes],
                visible=np.flatnonzero(~is_hidden & (codes != UNLABELED)),
                hidden=np.flatnonzero(is_hidden),
                novel=novel,
            )

    def _combinations(self, n_classes: int) -> list[NDArray[np.int64]]:
        given = {"n_splits": self.n_splits, "n_hidden": self.n_hidden}
        check_positive(**{name: value for name, value in given.items() if value is not None})
        n_hidden = max(MIN_HIDDEN, n_classes // 2) if self.n_hidden is None else self.n_hidden
        if n_hidden < MIN_HIDDEN:
            raise ValueError(f"n_hidden must be at least {MIN_HIDDEN}, to see classes told apart; got {n_hidden}")
        if n_classes < n_hidden + MIN_VISIBLE:
            raise ValueError(
                f"hiding {n_hidden} known classes needs at least {n_hidden + MIN_VISIBLE} of them, "
                f"and y has {n_classes}"
            )
        possible = comb(n_classes, n_hidden)
        n_splits = min(5, possible) if self.n_splits is None else self.n_splits
        if n_splits > possible:
            raise ValueError(
                f"n_splits must be between 1 and {possible}, the number of ways to hide {n_hidden} of "
                f"{n_classes} known classes; got {n_splits}"
            )
        rng = np.random.default_rng(check_seed(self.random_state))
        times_hidden = np.zeros(n_classes)
        chosen: list[tuple[int, ...]] = []
        while len(chosen) < n_splits:
            # NOTE[DIFF] The paper draws combinations at random. Here the classes hidden least often so far come first,
            # ties broken at random: every class gets its turn.
            order = np.lexsort([rng.random(n_classes), times_hidden])
            combination = tuple(sorted(order[:n_hidden].tolist()))
            while combination in chosen:
                combination = tuple(sorted(rng.choice(n_classes, n_hidden, replace=False).tolist()))
            chosen.append(combination)
            times_hidden[list(combination)] += 1
        return [np.array(combination) for combination in chosen]
