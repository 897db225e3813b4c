"""The metric of the known classes: directions in which they vary within themselves count little."""

from __future__ import annotations

from numbers import Real
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ncdlib._io.checks import check_rows, encode_labels
from ncdlib.methods.saving import Savable
from ncdlib.problem import UNLABELED

Shrinkage = float | Literal["ledoit_wolf"]


def column_scale(X: NDArray) -> tuple[NDArray, NDArray]:
    """Mean and standard deviation of each column; 1 for a column that is constant but for rounding."""
    mean, scale = X.mean(axis=0), X.std(axis=0)
    rounding = 1e-12 * np.abs(X).max(axis=0)
    return mean, np.where(scale > rounding, scale, 1.0)


def within_class_residuals(X: NDArray, codes: NDArray) -> tuple[NDArray, int]:
    """Rows less the mean of their class, and how many rows are left when each class has paid one for its mean."""
    classes, position = np.unique(codes, return_inverse=True)
    sums = np.zeros((len(classes), X.shape[1]))
    np.add.at(sums, position, X)
    means = sums / np.bincount(position)[:, None]
    return X - means[position], len(X) - len(classes)


def whitening_matrix(residuals: NDArray, n_free: int, shrinkage: Shrinkage) -> tuple[NDArray, NDArray, float]:
    """Symmetric inverse root of the residuals' covariance, shrunk towards one variance in all directions.

    Returns
    -------
    matrix, inverse : arrays of shape (n_features, n_features)
    shrinkage : float
        As given, or as Ledoit and Wolf's formula has it.
    """
    n_features = residuals.shape[1]
    covariance = residuals.T @ residuals / max(n_free, 1)
    variance = np.trace(covariance) / n_features
    if variance == 0:  # one row in each class, or no class that varies: nothing to learn
        return np.eye(n_features), np.eye(n_features), 1.0
    if shrinkage == "ledoit_wolf":
        shrinkage = float(ledoit_wolf_shrinkage(residuals, assume_centered=True))
    values, vectors = np.linalg.eigh((1 - shrinkage) * covariance + shrinkage * variance * np.eye(n_features))
    seen = values > 1e-10 * values[-1]  # unshrunk, a direction in which no class varies has no scale: left out
    roots = np.sqrt(values, where=seen, out=np.zeros_like(values))
    matrix = (vectors * np.divide(1, roots, where=seen, out=np.zeros_like(values))) @ vectors.T
    return matrix, (vectors * roots) @ vectors.T, float(shrinkage)


class KnownClassMetric(Savable, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Rescale rows so that each direction counts by how little the known classes vary in it.

    The residuals of the labelled rows from the means of their classes have a covariance W. After the transformation
    it is the identity: the distance of two rows is the Mahalanobis distance under W. A direction in which rows of one
    class differ a lot (the slant of a letter, the size of a vehicle) counts little, and what seldom differs within
    a class counts much. That helps with classes never seen where they vary as the known ones do.

    The same idea is the first step of linear discriminant analysis (Fisher, 1936), relevant component analysis
    (Bar-Hillel, Hertz, Shental and Weinshall, 2005), within-class covariance normalisation in speaker recognition
    (Hatch, Kajarekar and Stolcke, 2006) and, with a prior on the means of the classes, probabilistic linear
    discriminant analysis (Ioffe, 2006).

    Parameters
    ----------
    shrinkage : "ledoit_wolf" or float, default="ledoit_wolf"
        From 0 (the covariance as it is) to 1 (the columns standardised, and no more): how far W is drawn towards a
        covariance that is the same in all directions. The more columns for the rows there are, the more is needed;
        "ledoit_wolf" estimates it (Ledoit and Wolf, 2004).

    Attributes
    ----------
    components_ : array of shape (n_features, n_features)
        Symmetric, so that each new column is the corrected form of an old one.
    mean_, scale_ : arrays of shape (n_features,)
        Mean and standard deviation of all rows, by which columns are standardised first.
    shrinkage_ : float
        The shrinkage used.
    classes_ : array
        The known classes.

    Examples
    --------
    Both known classes vary a lot in the first column, so the second one counts:

    >>> import numpy as np
    >>> from ncdlib import KnownClassMetric
    >>> X = np.array([[-9, 0.0], [9, 0.2], [-9, 1.2], [9, 1.0], [0, 5.0], [3, 5.0], [0, 6.0]])
    >>> y = np.array(["a", "a", "b", "b", None, None, None])
    >>> Z = KnownClassMetric(shrinkage=0).fit(X, y).transform(X)
    >>> bool(np.linalg.norm(Z[4] - Z[5]) < np.linalg.norm(Z[4] - Z[6]))
    True
    """

    def __init__(self, shrinkage: Shrinkage = "ledoit_wolf") -> None:
        self.shrinkage = shrinkage

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn the metric from the rows whose ``y`` is a class; -1 marks the others."""
        if y is None:
            raise ValueError(
                "KnownClassMetric requires y to be passed, but the target y is None: give the known labels, "
                "and -1 for unlabelled rows"
            )
        self._check_shrinkage()
        X = check_rows(X, self).astype(np.float64, copy=False)
        codes, self.classes_ = encode_labels(y)
        check_consistent_length(X, codes)
        if len(self.classes_) == 0:
            raise ValueError("y has no labelled row: the metric is learned from known classes; label some rows")
        self.mean_, self.scale_ = column_scale(X)
        labeled = codes != UNLABELED
        residuals, n_free = within_class_residuals(self._standardised(X[labeled]), codes[labeled])
        self.components_, self._inverse, self.shrinkage_ = whitening_matrix(residuals, n_free, self.shrinkage)
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the rows in the metric: Euclidean distances between them are what the metric says."""
        check_is_fitted(self)
        return self._standardised(check_rows(X, self, fitting=False)) @ self.components_

    def inverse_transform(self, Z: ArrayLike) -> NDArray[np.float64]:
        """Return the rows whose place in the metric is `Z`."""
        check_is_fitted(self)
        return check_rows(Z) @ self._inverse * self.scale_ + self.mean_

    def _standardised(self, X: NDArray) -> NDArray:
        return (X - self.mean_) / self.scale_

    def _check_shrinkage(self) -> None:
        value = self.shrinkage
        is_share = isinstance(value, Real) and not isinstance(value, bool) and 0 <= value <= 1
        if not is_share and not (isinstance(value, str) and value == "ledoit_wolf"):
            raise ValueError(f"shrinkage must be 'ledoit_wolf' or a number from 0 to 1, got {value!r}")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
