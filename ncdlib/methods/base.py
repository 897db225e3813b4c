"""What every estimator of the package shares: reading (X, y), and saving a fitted model without pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from ncdlib._files import atomic_write
from ncdlib.problem import UNLABELED

UNLABELED_TEXT = ("-1", "-1.0", "", "nan")

_min_known_classes = ContextVar("min_known_classes", default=2)


@contextmanager
def one_known_class_allowed() -> Iterator[None]:
    """Let estimators learn from a single known class: hiding two of three, as the paper does, leaves no more."""
    token = _min_known_classes.set(1)
    try:
        yield
    finally:
        _min_known_classes.reset(token)


def check_rows(
    X: ArrayLike,
    estimator: BaseEstimator | None = None,
    *,
    min_rows: int = 1,
    fitting: bool = True,
    precision: DTypeLike = np.float64,
) -> NDArray:
    """Read a matrix as finite floats that can be squared: the one check of all rows given to the package.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
    estimator : estimator, optional
        Whose features these are: remembered if `fitting`, else compared with those of the fit.
    min_rows : int
    fitting : bool
        Whether the rows are learned from, and so must differ by enough.
    precision : float type
        What the rows are computed with, where that is less than their own precision.

    Examples
    --------
    >>> from ncdlib.methods.base import check_rows
    >>> check_rows([[0, 1], [1, 1e200]])
    Traceback (most recent call last):
    ValueError: X has values up to 1e+200, too large to be squared in float64: scale its columns first
    """
    if isinstance(X, pd.DataFrame) and X.shape[1] == 0:
        X = np.empty(X.shape)  # scikit-learn has a clear message for an array without columns only
    options: dict[str, Any] = {"dtype": [np.float64, np.float32], "ensure_min_samples": min_rows}
    with np.errstate(over="ignore", invalid="ignore"):  # scikit-learn adds infinities up, then refuses them
        if estimator is None:
            X = check_array(X, input_name="X", **options)
        else:
            X = validate_data(estimator, X, reset=fitting, **options)
    precision = min(X.dtype, np.dtype(precision), key=lambda dtype: dtype.itemsize)
    low, high = X.min(axis=0), X.max(axis=0)
    largest = max(high.max(), -low.min())
    # Squares, and sums of many of them, must neither overflow nor vanish.
    if largest > np.finfo(precision).max ** 0.4:
        raise ValueError(
            f"X has values up to {largest:.3g}, too large to be squared in {precision}: scale its columns first"
        )
    spread = (high - low).max()
    if fitting and 0 < spread < np.finfo(precision).tiny ** 0.4:
        raise ValueError(
            f"the columns of X vary by {spread:.3g} at most, too little to be squared in {precision}: scale them first"
        )
    return X


def check_n_clusters(n_clusters: int, n_rows: int, what: str = "unlabelled rows") -> None:
    """Raise a ValueError unless so many rows can be split into so many clusters."""
    if not isinstance(n_clusters, int | np.integer) or isinstance(n_clusters, bool) or n_clusters < 1:
        raise ValueError(f"n_clusters must be a positive integer or the name of a validity index, got {n_clusters!r}")
    if n_clusters > n_rows:
        raise ValueError(f"n_clusters={n_clusters} is more than the {n_rows} {what} there are to cluster")


def encode_labels(y: ArrayLike) -> tuple[NDArray[np.int64], NDArray]:
    """Split labels into codes and classes.

    A row is unlabelled where ``y`` is -1, None, NaN or (among strings) "-1", empty, or "nan", which is what NumPy makes
    of a NaN among strings.

    Returns
    -------
    codes : array of shape (n_samples,)
        -1 for unlabelled rows, else the position of the row's class in `classes`.
    classes : array of shape (n_known_classes,)
        The sorted known classes.

    Examples
    --------
    >>> from ncdlib.methods.base import encode_labels
    >>> codes, classes = encode_labels(["cat", "dog", None, "cat"])
    >>> codes.tolist(), classes.tolist()
    ([0, 1, -1, 0], ['cat', 'dog'])
    """
    y = np.asarray(y, dtype=object) if isinstance(y, list | pd.Series | pd.Categorical) else np.asarray(y)
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "O" and any(np.iterable(label) and not isinstance(label, str | bytes) for label in y):
        raise TypeError("y has labels that are no single values, but lists or the like")
    unlabeled = np.asarray(pd.isna(y))
    if y.dtype.kind in "OUS":
        text = [label.decode("latin-1") if isinstance(label, bytes) else str(label) for label in y]
        unlabeled |= np.isin(text, UNLABELED_TEXT)
    elif y.dtype.kind in "iufc":
        unlabeled |= y == UNLABELED
    labeled_values = y[~unlabeled]
    if y.dtype.kind == "O":  # a plain array of the labels' own type, so that [0, 1, None] gives integers
        labeled_values = np.array(labeled_values.tolist())
        kind = {"U": str, "S": bytes}.get(labeled_values.dtype.kind, object)
        if not all(isinstance(v, kind) for v in y[~unlabeled]):
            kinds = sorted({type(v).__name__ for v in y[~unlabeled]})
            raise TypeError(f"y mixes labels of several types ({', '.join(kinds)}); use one type for all classes")
    if labeled_values.dtype.kind == "f" and not np.all(np.isfinite(labeled_values)):
        raise ValueError("y contains infinity; a label must be a finite number, a string, or -1")
    try:
        classes, inverse = np.unique(labeled_values, return_inverse=True)
    except TypeError as error:
        raise TypeError(f"y has labels that cannot be sorted ({error}); use one type for all classes") from error
    codes = np.full(len(y), UNLABELED, dtype=np.int64)
    codes[~unlabeled] = inverse
    return codes, classes


class NCDEstimator(ClusterMixin, BaseEstimator):
    """Base of all estimators: ``fit(X, y)`` where ``y == -1`` marks the rows to discover classes in.

    After fit, ``labels_`` has one entry a row: the cluster of each unlabelled row, and -1 for labelled rows
    (they belong to a known class, not to a cluster).

    The same data and ``random_state`` give the same result to the last bit, on one machine and with the same number of
    threads. With another number of threads, sums are added up in another order: the learned space differs in its last
    bits, and now and then a row is in another cluster. ``OMP_NUM_THREADS=1``, set before Python starts, rules that out.
    """

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
        if len(classes) < _min_known_classes.get():
            raise ValueError(f"y has a single known class ({str(classes[0])!r}): at least two are needed to learn from")
        self._check_n_clusters(n_unlabeled)
        self.classes_ = classes
        return X, codes

    def _check_n_clusters(self, n_rows: int) -> None:
        if not isinstance(self.n_clusters, str):  # the name of a validity index is checked where it is used
            check_n_clusters(self.n_clusters, n_rows)

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

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        """The model as what JSON can hold, and arrays; the inverse of `_from_state`."""
        params = self.get_params(deep=False)
        meta: dict[str, Any] = {"class": type(self).__name__, "params": params, "plain": {}, "nested": {}}
        arrays: dict[str, NDArray] = {}
        for name, value in vars(self).items():
            if name in params:
                continue
            if isinstance(value, NCDEstimator):
                meta["nested"][name], inner = value._state()
                arrays |= {f"{name}:{key}": array for key, array in inner.items()}
            elif isinstance(value, np.ndarray):  # labels of type object are strings
                arrays[name] = value.astype(str) if value.dtype.kind == "O" else value
            elif isinstance(value, dict) and all(isinstance(v, np.ndarray) for v in value.values()):
                arrays |= {f"{name}/{key}": array for key, array in value.items()}
            else:
                meta["plain"][name] = value
        return meta, arrays

    def save(self, path: str | os.PathLike) -> Path:
        """Write the fitted model to one ``.npz`` file (arrays and JSON, no pickle); read it with `ncdlib.load`."""
        check_is_fitted(self)
        meta, arrays = self._state()
        meta["ncdlib"] = version("ncdlib")
        try:
            text = json.dumps(meta, default=_plain_number)
        except TypeError as error:
            raise TypeError(f"cannot save {type(self).__name__}: {error} (use an int random_state)") from error
        path = Path(path)
        with atomic_write(path) as file:
            np.savez(file, __meta__=np.array(text), **arrays)
        return path


def _from_state(meta: dict[str, Any], arrays: dict[str, NDArray]) -> NCDEstimator:
    import ncdlib  # the public names are the only classes a file may ask for

    cls = getattr(ncdlib, meta["class"])
    if not issubclass(cls, NCDEstimator):
        raise TypeError(meta["class"])
    model = cls(**meta["params"])
    vars(model).update(meta["plain"])
    inner: dict[str, dict[str, NDArray]] = {name: {} for name in meta["nested"]}
    for name, array in arrays.items():
        nested, is_nested, inner_name = name.partition(":")
        owner, is_entry, key = name.partition("/")
        if is_nested:
            inner[nested][inner_name] = array
        elif is_entry:
            vars(model).setdefault(owner, {})[key] = array
        else:
            setattr(model, name, array)
    vars(model).update({name: _from_state(meta["nested"][name], inner[name]) for name in inner})
    return model


def _plain_number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} has no JSON form")


def load(path: str | os.PathLike) -> NCDEstimator:
    """Read a model that ``save`` wrote.

    Raises
    ------
    ValueError
        When the file is not a model of this package (nothing in it is executed, whatever it is).

    Examples
    --------
    >>> import tempfile
    >>> from ncdlib import NCDKMeans, load, make_ncd_blobs
    >>> problem = make_ncd_blobs(random_state=0)
    >>> model = NCDKMeans(3, random_state=0).fit(problem.X, problem.y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = model.save(f"{folder}/model.npz")
    ...     again = load(path)
    >>> bool((again.predict(problem.X_test_novel) == model.predict(problem.X_test_novel)).all())
    True
    """
    try:
        with np.load(path, allow_pickle=False) as data:
            meta = json.loads(str(data["__meta__"]))
            return _from_state(meta, {name: data[name] for name in data.files if name != "__meta__"})
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ValueError(f"{os.fspath(path)} is not a model saved by ncdlib ({error})") from error
