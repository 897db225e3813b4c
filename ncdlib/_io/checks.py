"""The checks of every input: the one place where rows, labels and numbers are read, or refused with a reason."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import column_or_1d, validate_data

from ncdlib.problem import UNLABELED

UNLABELED_TEXT = ("-1", "-1.0", "", "nan")
LEVELS = 16  # a column that has fewer different values in the precision of the computation has lost what it says
NO_NUMBERS = "encode it as numbers, leave it out, or use ncdlib.discover, which encodes categories"


def check_rows(
    X: ArrayLike,
    estimator: BaseEstimator | None = None,
    *,
    min_rows: int = 1,
    fitting: bool = True,
    precision: DTypeLike = np.float64,
    name: str = "X",
) -> NDArray:
    """Read a matrix as finite floats that can be squared: the one check of all rows given to the package.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
    estimator : estimator, optional
        Whose features these are: remembered if `fitting`, else compared with those of the fit.
    min_rows : int
    fitting : bool
        Whether the estimator learns from the rows, which must then differ by enough.
    precision : float type
        The precision of the computation, where it is lower than that of the rows.
    name : str
        What messages call the rows.

    Examples
    --------
    >>> from ncdlib._io.checks import check_rows
    >>> check_rows([[0, 1], [1, 1e200]])
    Traceback (most recent call last):
    ValueError: X has values up to 1e+200, too large to be squared in float64: scale its columns first
    """
    if isinstance(X, list | tuple):
        with suppress(TypeError, ValueError, OverflowError):  # else what is no number is named below
            X = np.asarray(X, dtype=np.float64)
    X = unmasked(X)
    if isinstance(X, np.ndarray) and X.dtype.kind in "OUSMm":
        check_table(X)
        X = pd.DataFrame(X)
    if isinstance(X, pd.DataFrame) and X.shape[1] == 0:
        X = np.empty(X.shape)  # scikit-learn has a clear message for an array without columns only
    elif isinstance(X, pd.DataFrame):
        X = X.copy(deep=False)
        for i, dtype in enumerate(X.dtypes):
            if not pd.api.types.is_numeric_dtype(dtype):  # booleans are
                X.isetitem(i, as_numbers(X.iloc[:, i], NO_NUMBERS))
    # NaN and infinity are refused below: scikit-learn names no column, and methods that are none of this package.
    options: dict[str, Any] = {"dtype": [np.float64, np.float32], "ensure_min_samples": min_rows}
    options["ensure_all_finite"] = False
    if estimator is None:
        X = check_array(X, input_name="X", **options)
    else:
        X = validate_data(estimator, X, reset=fitting, **options)
    low, high = X.min(axis=0), X.max(axis=0)
    columns = getattr(estimator, "feature_names_in_", np.arange(X.shape[1]))
    for column in columns[np.isnan(low)][:1]:
        raise ValueError(
            f"column {column} of {name} contains NaN: fill in what is missing, drop these rows, or use "
            "ncdlib.discover, which fills in"
        )
    for column in columns[np.isinf(low) | np.isinf(high)][:1]:
        raise ValueError(f"column {column} of {name} contains infinity: replace it by a number, or drop these rows")
    precision = min(X.dtype, np.dtype(precision), key=lambda dtype: dtype.itemsize)
    largest = max(high.max(), -low.min())
    # Squares, and sums of many of them, must neither overflow nor vanish.
    if largest > np.finfo(precision).max ** 0.4:
        raise ValueError(
            f"{name} has values up to {largest:.3g}, too large to be squared in {precision}: scale its columns first"
        )
    varies = high - low
    if fitting and precision.itemsize < X.dtype.itemsize and varies.max() > 0:
        # What differs in X must not become equal: neither the values of a column, nor those of the others beside one
        # that is constant (except for what its own rounding leaves of it).
        size = np.maximum(np.abs(low), np.abs(high))
        coarse, fine = (LEVELS * np.finfo(dtype).eps * size for dtype in (precision, X.dtype))
        for i in np.flatnonzero(np.where(varies > fine, varies, varies.max()) < coarse)[:1]:
            raise ValueError(
                f"column {columns[i]} of {name} varies by {varies[i]:.3g} around {low[i]:.3g}, too little for "
                f"{precision}: subtract its mean, or standardise {name}"
            )
    spread = varies.max()
    if fitting and 0 < spread < np.finfo(precision).tiny ** 0.4:
        raise ValueError(
            f"the columns of {name} vary by {spread:.3g} at most, too little to be squared in {precision}: "
            "scale them first"
        )
    return X


def unmasked(values: ArrayLike) -> ArrayLike:
    """Put NaN where a masked array has nothing, and turn lists into arrays; return anything else as it is."""
    if isinstance(values, list | tuple):
        return np.asarray(values, dtype=object)  # else NumPy makes text of a number beside text
    return values.astype(object).filled(np.nan) if np.ma.isMaskedArray(values) else values


def check_table(X: NDArray) -> None:
    """Raise a ValueError unless an array has rows and columns; lists of different lengths give one that has not."""
    if X.ndim != 2:
        raise ValueError(f"X must have rows and columns, as many in each row; got an array of shape {X.shape}")


def as_numbers(column: pd.Series, advice: str) -> NDArray[np.float64]:
    """Return the numbers of a column, NaN where one is missing; raise an error that names a column of anything else."""
    try:
        if column.dtype.kind in "mM":  # NumPy would count nanoseconds
            raise ValueError("dates or times")
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError  # scikit-learn's checks tell them apart
        what = f"something else than numbers ({shorten(str(error), 80)})"
        raise kind(f"column {column.name!r} holds {what}: {advice}") from None


def shorten(text: str, length: int = 30) -> str:
    """Cut a text to a length that fits into a line."""
    return text if len(text) <= length else text[: length - 1] + "…"


def check_positive(**values: int) -> None:
    """Raise a ValueError that names the value that is no positive integer."""
    for name, value in values.items():
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name} must be a positive integer, got {value!r}")


def check_number(name: str, value: float, interval: str, *, integer: bool = False) -> None:
    """Raise a ValueError unless a value is a number, or an integer, in an interval such as "[0, 1)".

    Examples
    --------
    >>> from ncdlib._io.checks import check_number
    >>> check_number("dropout", 0.5, "[0, 1)")
    >>> check_number("dropout", 1, "[0, 1)")
    Traceback (most recent call last):
    ValueError: dropout must be a number in [0, 1), got 1
    """
    low, high = map(float, interval[1:-1].split(","))
    kinds = (int, np.integer) if integer else (int, float, np.integer, np.floating)
    inside = isinstance(value, kinds) and not isinstance(value, bool)
    inside = inside and (value >= low if interval[0] == "[" else value > low)
    inside = inside and (value <= high if interval[-1] == "]" else value < high)
    if not inside:
        raise ValueError(f"{name} must be {'an integer' if integer else 'a number'} in {interval}, got {value!r}")


def check_seed(random_state: int | None) -> int:
    """Return the given seed, or a new one; raise a ValueError for what is no seed of NumPy."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if not isinstance(random_state, int | np.integer) or not 0 <= random_state < 2**32:
        raise ValueError(f"random_state must be None or an integer from 0 to 2**32 - 1, got {random_state!r}")
    return int(random_state)


def check_n_clusters(n_clusters: int, n_rows: int, *, rows: str = "rows", allowed: str = "a positive integer") -> None:
    """Raise a ValueError, in the words given, unless this many clusters can be found among this many rows."""
    if not isinstance(n_clusters, int | np.integer) or isinstance(n_clusters, bool) or n_clusters < 1:
        raise ValueError(f"n_clusters must be {allowed}, got {n_clusters!r}")
    if n_clusters > n_rows:
        raise ValueError(f"n_clusters={n_clusters} is more than the {n_rows} {rows} there are to cluster")


def check_index(name: str, indices: Collection[str]) -> None:
    """Raise a ValueError unless there is a validity index of this name."""
    if name not in indices:
        raise ValueError(f"unknown validity index {name!r}: choose from {', '.join(indices)}")


def encode_labels(y: ArrayLike) -> tuple[NDArray[np.int64], NDArray]:
    """Split labels into codes and classes.

    A row is unlabelled where ``y`` is -1, None, NaN, masked, or (among strings) "-1", empty, or "nan", which is what
    NumPy makes of a NaN among strings.

    Returns
    -------
    codes : array of shape (n_samples,)
        -1 for unlabelled rows, else the position of the row's class in `classes`.
    classes : array of shape (n_known_classes,)
        The sorted known classes.

    Examples
    --------
    >>> from ncdlib._io.checks import encode_labels
    >>> codes, classes = encode_labels(["cat", "dog", None, "cat"])
    >>> codes.tolist(), classes.tolist()
    ([0, 1, -1, 0], ['cat', 'dog'])
    """
    y = unmasked(y)
    y = np.asarray(y, dtype=object if isinstance(y, pd.Series | pd.Categorical) else None)
    y = column_or_1d(y, warn=True)
    values, position = y, slice(None)
    if y.dtype.kind in "OUS":  # a file may have millions of labels, but few different ones
        try:
            position, values = pd.factorize(np.asarray(y, dtype=object))
        except TypeError as error:
            raise TypeError("y has labels that are no single values, but lists or the like") from error
        values = np.append(values, None)  # position -1, the last: no label
        if any(np.iterable(label) and not isinstance(label, str | bytes) for label in values):
            raise TypeError("y has labels that are no single values, but lists or the like")
    unlabeled = np.asarray(pd.isna(values))
    if y.dtype.kind in "OUS":
        text = [label.decode("latin-1") if isinstance(label, bytes) else str(label) for label in values]
        unlabeled |= np.isin(text, UNLABELED_TEXT)
    elif y.dtype.kind in "iufc":
        unlabeled |= values == UNLABELED
    labeled_values = values[~unlabeled]
    if y.dtype.kind in "OUS":  # a plain array of the labels' own type, so that [0, 1, None] gives integers
        labeled_values = np.array(labeled_values.tolist())
        kind = {"U": str, "S": bytes}.get(labeled_values.dtype.kind, object)
        if not all(isinstance(v, kind) for v in values[~unlabeled]):
            kinds = sorted({type(v).__name__ for v in values[~unlabeled]})
            raise TypeError(f"y mixes labels of several types ({', '.join(kinds)}); use one type for all classes")
    if labeled_values.dtype.kind == "f" and not np.all(np.isfinite(labeled_values)):
        raise ValueError("y contains infinity; a label must be a finite number, a string, or -1")
    try:
        classes, inverse = np.unique(labeled_values, return_inverse=True)
    except TypeError as error:
        raise TypeError(f"y has labels that cannot be sorted ({error}); use one type for all classes") from error
    codes = np.full(len(values), UNLABELED, dtype=np.int64)
    codes[~unlabeled] = inverse
    return codes[position], classes
