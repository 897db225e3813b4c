"""What every estimator of the package shares."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ncdlib._io.checks import check_index, check_n_clusters, check_rows, encode_labels
from ncdlib.clustering.validity import INDICES
from ncdlib.methods.saving import Savable
from ncdlib.problem import UNLABELED


class NCDEstimator(Savable, ClusterMixin, BaseEstimator):
    """Base of all estimators: ``fit(X, y)`` where ``y == -1`` marks the rows to discover classes in.

    After fit, ``labels_`` has one entry per row: the cluster of each unlabelled row, and -1 for labelled rows
    (they belong to a known class, not to a cluster).

    The same data and ``random_state`` give the same result to the last bit, on one machine and with the same number of
    threads. With another number of threads, sums are added up in another order: the learned space differs in its last
    bits, and now and then a row is in another cluster. ``OMP_NUM_THREADS=1``, set before Python starts, rules that out.

    Attributes
    ----------
    min_known_classes : int
        The fewest known classes that ``fit`` accepts, 2. A search that hides classes sets 1 on the copies it trains: of
        three known classes with two hidden, as in the paper, one is left.

    Examples
    --------
    A method of one's own that puts every unlabelled row into the same cluster:

    >>> import numpy as np
    >>> from ncdlib.methods.base import NCDEstimator
    >>> class OneCluster(NCDEstimator):
    ...     def __init__(self, n_clusters=1):
    ...         self.n_clusters = n_clusters
    ...
    ...     def fit(self, X, y):
    ...         X, codes = self._check_fit(X, y)
    ...         self.labels_ = np.where(codes == -1, 0, -1)
    ...         return self
    >>> OneCluster().fit_predict([[0.0], [1.0], [2.0], [3.0]], [7, 8, -1, -1])
    array([-1, -1,  0,  0])
    """

    min_known_classes: int = 2
    _precision: ClassVar[DTypeLike] = np.float64  # of the computation

    def _check_fit(self, X: ArrayLike, y: ArrayLike) -> tuple[NDArray, NDArray[np.int64]]:
        """Validate training data; set ``classes_``; return X as floats and the label codes."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: "
                "give the known labels, and -1 for the rows to discover classes in"
            )
        X = check_rows(X, self, min_rows=2, precision=self._precision)
        codes, classes = encode_labels(y)
        check_consistent_length(X, codes)
        n_unlabeled = int(np.sum(codes == UNLABELED))
        if n_unlabeled == 0:
            raise ValueError("y has no unlabelled row: mark the rows to discover classes in with -1")
        if len(classes) == 0:
            raise ValueError("y has no labelled row: novel class discovery learns from known classes; label some rows")
        if len(classes) < self.min_known_classes:
            raise ValueError(f"y has a single known class ({str(classes[0])!r}): at least two are needed to learn from")
        self._check_n_clusters(n_unlabeled)
        self.classes_ = classes
        return X, codes

    def _check_n_clusters(self, n_rows: int) -> None:
        if isinstance(self.n_clusters, str):
            check_index(self.n_clusters, INDICES)
        else:
            allowed = "a positive integer or the name of a validity index"
            check_n_clusters(self.n_clusters, n_rows, rows="unlabelled rows", allowed=allowed)

    def _check_new(self, X: ArrayLike) -> NDArray:
        """Validate rows given to a fitted model."""
        check_is_fitted(self)
        return check_rows(X, self, fitting=False, precision=self._precision)

    def fit_predict(self, X: ArrayLike, y: ArrayLike | None = None) -> NDArray[np.int64]:
        """Fit, and return ``labels_``: a cluster for each unlabelled row, -1 for labelled rows."""
        return self.fit(X, y).labels_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
