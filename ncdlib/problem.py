"""A novel class discovery problem: rows of known classes with labels, rows of novel classes without."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

UNLABELED = -1


@dataclass(frozen=True, eq=False, repr=False)
class NCDProblem:
    """Train and test rows, and which of their classes are known and which are to be discovered.

    Parameters
    ----------
    name : str
        Name of the data set.
    X, X_test : array of shape (n_rows, n_features)
        Train and test rows, of known and novel classes.
    y_true, y_test : array of shape (n_rows,)
        The true class of every row. That of a novel row serves for final scoring only: methods get `y`.
    known_classes, novel_classes : tuple of int
        A partition of the classes.
    class_names : dict of int to str
        What to call each class in print.
    feature_names : list of str
        One name for each column of X.
    source : str
        "original", or a sentence that says how the data differ from the original.
    n_hidden, n_splits : int
        How many known classes a hidden-class search hides at a time, and how many times.
    images, images_test : array of shape (n_rows, height, width) or None
        The rows as pictures, where they are pictures.
    without_label : array of bool, shape (n_rows,), or None
        Marks train rows of known classes that have no label all the same: they are -1 in `y`, and in neither `X_known`
        nor `X_novel`. Novel rows may be marked too, which changes nothing.

    Attributes
    ----------
    y : array of shape (n_rows,)
        `y_true` with -1 in place of every novel class, and in rows without label.
    X_known, y_known, X_novel, y_novel : array
        Train rows with a label, and train rows of novel classes, with their true classes.
    X_test_known, y_test_known, X_test_novel, y_test_novel : array
        The same of the test rows.

    Examples
    --------
    >>> from ncdlib import load_dataset
    >>> problem = load_dataset("digits")
    >>> problem
    NCDProblem 'digits', 64 features
      known classes (5): 1, 2, 7, 8, 9; 624 train and 268 test rows
      novel classes (5): 0, 3, 4, 5, 6; 633 train and 272 test rows
      source: scikit-learn's copy of the optdigits test file
    >>> problem.X_novel.shape
    (633, 64)
    >>> problem.hide([1, 2]).novel_classes
    (0, 1, 2, 3, 4, 5, 6)
    """

    name: str
    X: NDArray[np.float64]
    y_true: NDArray[np.int64]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.int64]
    known_classes: tuple[int, ...]
    novel_classes: tuple[int, ...]
    class_names: dict[int, str]
    feature_names: list[str]
    source: str = "original"
    n_hidden: int = 2
    n_splits: int = 5
    images: NDArray | None = None
    images_test: NDArray | None = None
    without_label: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        for rows, labels in (
            ("X", "y_true"),
            ("X_test", "y_test"),
            ("images", "y_true"),
            ("images_test", "y_test"),
            ("without_label", "y_true"),
        ):
            n_rows, n_labels = getattr(self, rows), len(getattr(self, labels))
            if n_rows is not None and len(n_rows) != n_labels:
                raise ValueError(f"{rows} has {len(n_rows)} rows, but {labels} has {n_labels} labels")
        n_columns = {self.X.shape[1], self.X_test.shape[1], len(self.feature_names)}
        if len(n_columns) > 1:
            raise ValueError(
                f"X has {self.X.shape[1]} columns, X_test {self.X_test.shape[1]}, "
                f"and there are {len(self.feature_names)} feature names"
            )
        if UNLABELED in (*self.known_classes, *self.novel_classes):
            raise ValueError(f"no class can be coded as {UNLABELED}: that is the mark of unlabelled rows")
        both = set(self.known_classes) & set(self.novel_classes)
        if both:
            raise ValueError(f"classes cannot be both known and novel: {self._names(sorted(both))}")
        unlisted = set(np.unique(self.y_true)) | set(np.unique(self.y_test))
        unlisted -= set(self.known_classes) | set(self.novel_classes)
        if unlisted:
            raise ValueError(f"classes neither known nor novel: {' '.join(map(str, sorted(unlisted)))}")
        if not self.known_classes or not self.novel_classes:
            raise ValueError("a problem needs at least one known and one novel class")

    @cached_property
    def y(self) -> NDArray[np.int64]:
        """Labels as a method sees them: -1 in place of every novel class."""
        unlabeled = self._novel if self.without_label is None else self._novel | self.without_label
        return np.where(unlabeled, UNLABELED, self.y_true)

    @cached_property
    def _novel(self) -> NDArray[np.bool_]:
        return np.isin(self.y_true, self.novel_classes)

    @property
    def _labeled(self) -> NDArray[np.bool_]:
        return self.y != UNLABELED

    @cached_property
    def _test_novel(self) -> NDArray[np.bool_]:
        return np.isin(self.y_test, self.novel_classes)

    @property
    def X_known(self) -> NDArray[np.float64]:
        """Train rows of known classes that have their label."""
        return self.X[self._labeled]

    @property
    def y_known(self) -> NDArray[np.int64]:
        """Classes of the known train rows."""
        return self.y_true[self._labeled]

    @property
    def X_novel(self) -> NDArray[np.float64]:
        """Train rows of novel classes."""
        return self.X[self._novel]

    @property
    def y_novel(self) -> NDArray[np.int64]:
        """True classes of the novel train rows: for final scoring only."""
        return self.y_true[self._novel]

    @property
    def X_test_known(self) -> NDArray[np.float64]:
        """Test rows of known classes."""
        return self.X_test[~self._test_novel]

    @property
    def y_test_known(self) -> NDArray[np.int64]:
        """Classes of the known test rows."""
        return self.y_test[~self._test_novel]

    @property
    def X_test_novel(self) -> NDArray[np.float64]:
        """Test rows of novel classes."""
        return self.X_test[self._test_novel]

    @property
    def y_test_novel(self) -> NDArray[np.int64]:
        """True classes of the novel test rows: for final scoring only."""
        return self.y_test[self._test_novel]

    def hide(self, classes: int | str | Iterable[int | str]) -> Self:
        """Return a problem where these known classes are novel too.

        Parameters
        ----------
        classes : class or list of classes
            Given as integers or by name.

        Examples
        --------
        >>> from ncdlib import make_ncd_blobs
        >>> make_ncd_blobs(n_known=4, n_novel=3).hide(0).known_classes
        (1, 2, 3)
        """
        hidden = self._codes(classes)
        not_known = hidden - set(self.known_classes)
        if not_known:
            raise ValueError(
                f"only known classes can be hidden, and {self._names(sorted(not_known))} is novel already; "
                f"known classes: {self._names(self.known_classes)}"
            )
        return self.with_novel(hidden | set(self.novel_classes))

    def with_novel(self, classes: int | str | Iterable[int | str]) -> Self:
        """Return a problem whose novel classes are exactly these; all others are known.

        Parameters
        ----------
        classes : class or list of classes
            Given as integers or by name.

        Examples
        --------
        >>> from ncdlib import make_ncd_blobs
        >>> make_ncd_blobs(n_known=4, n_novel=3).with_novel([0, 1]).known_classes
        (2, 3, 4, 5, 6)
        """
        novel = self._codes(classes)
        known = {*self.known_classes, *self.novel_classes} - novel
        if not known or not novel:
            raise ValueError(
                f"a problem needs at least one known and one novel class, got {len(known)} known and {len(novel)} novel"
            )
        n_hidden, n_splits = possible_folds(len(known), self.n_hidden, self.n_splits)
        return replace(
            self,
            known_classes=tuple(sorted(known)),
            novel_classes=tuple(sorted(novel)),
            n_hidden=n_hidden,
            n_splits=n_splits,
        )

    def describe(self) -> pd.Series:
        """Return the counts of features, classes and rows; several of them make a table of data sets.

        Examples
        --------
        >>> import pandas as pd
        >>> from ncdlib import make_ncd_blobs
        >>> make_ncd_blobs(n_known=4, n_novel=3).describe()["known rows"]
        280
        >>> pd.DataFrame([make_ncd_blobs(random_state=seed).describe() for seed in (0, 1)]).shape
        (2, 8)
        """
        return pd.Series(
            {
                "features": self.X.shape[1],
                "known classes": len(self.known_classes),
                "known rows": int(np.sum(self._labeled)),
                "novel classes": len(self.novel_classes),
                "novel rows": int(np.sum(self._novel)),
                "known test rows": int(np.sum(~self._test_novel)),
                "novel test rows": int(np.sum(self._test_novel)),
                "source": self.source,
            },
            name=self.name,
            dtype=object,
        )

    def __repr__(self) -> str:
        count = self.describe()
        lines = [f"NCDProblem {self.name!r}, {count['features']} features"]
        for kind, classes in (("known", self.known_classes), ("novel", self.novel_classes)):
            lines.append(
                f"  {kind} classes ({len(classes)}): {self._names(classes)}; "
                f"{count[f'{kind} rows']} train and {count[f'{kind} test rows']} test rows"
            )
        if self.without_label is not None:
            lines.append(f"  train rows of known classes without label: {np.sum(~self._labeled & ~self._novel)}")
        return "\n".join([*lines, f"  source: {self.source}"])

    def _names(self, classes: Iterable[int]) -> str:
        return ", ".join(self.class_names.get(c, str(c)) for c in classes)

    def _codes(self, classes: int | str | Iterable[int | str]) -> set[int]:
        """Turn classes given as integers or names into integers."""
        if isinstance(classes, str) or not isinstance(classes, Iterable):
            classes = [classes]
        all_classes = {*self.known_classes, *self.novel_classes}
        by_name = {name: code for code, name in self.class_names.items()}
        codes = set()
        for given in classes:
            code = by_name.get(given) if isinstance(given, str) else operator.index(given)
            if code not in all_classes:
                raise ValueError(
                    f"{self.name} has no class {given!r}; its classes are {self._names(sorted(all_classes))}"
                )
            codes.add(code)
        return codes


def possible_folds(n_known: int, n_hidden: int, n_splits: int) -> tuple[int, int]:
    """Return the wanted numbers of hidden classes and splits, lowered to what the known classes allow.

    Two known classes allow no search: one hidden class cannot be told from another.
    """
    n_hidden = max(1, min(n_hidden, n_known - 1))
    return n_hidden, min(n_splits, comb(n_known, n_hidden))
