"""From arrays to problems and tables: which rows are train and test, and how columns become numbers."""

from __future__ import annotations

import operator
import os
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import make_blobs
from sklearn.model_selection import train_test_split

from ncdlib.datasets import on_board
from ncdlib.datasets.files import check_files, get_files, read_files, uses_board
from ncdlib.datasets.readers import CATEGORIES, Arrays
from ncdlib.datasets.registry import DatasetInfo, get_info
from ncdlib.problem import NCDProblem, possible_folds


def load_dataset(
    name: str,
    *,
    data_home: str | os.PathLike | None = None,
    download: bool = True,
    random_state: int = 0,
    allow_modified: bool = False,
) -> NCDProblem:
    """Load a data set with its class split and preprocessing, which are the paper's for the paper's data sets.

    Every file is looked for in `data_home`, then in the folder that the environment variable ``NCDLIB_DATA``
    names, then in the user's cache folder (or the one that ``NCDLIB_CACHE`` names), always in the sub-folder
    ``DATASETS[name].home``, which mostly has the name of the data set. Where none of these has a file of it, the arrays
    on board are used: all data sets but human and census come with the package. Any other file is downloaded from the
    UCI archive (or the mirror that ``NCDLIB_UCI_URL`` names) into the cache folder.

    Parameters
    ----------
    name : str
        One of `DATASETS`; ``print(DATASETS[name])`` shows what it is, whom to cite and its licence.
    data_home : path, optional
        A folder to look in first.
    download : bool, default=True
        Whether a file that is found nowhere may be downloaded.
    random_state : int, default=0
        Number of the random split into train and test. 0 is the split of the paper or, where its seed is not
        known (letter, census), one with as many rows; every other number gives another split. It has no
        effect on human, pendigits and optdigits, which come with a test part.
    allow_modified : bool, default=False
        Accept files that are neither the original nor a version known to the package.

    Returns
    -------
    NCDProblem
        Its `source` says whether the data are the original.

    Raises
    ------
    ValueError
        When there is no such data set.
    DataFileError
        When a file is missing, damaged or modified.

    Examples
    --------
    >>> from ncdlib import load_dataset
    >>> problem = load_dataset("digits")
    >>> problem.X.shape, problem.X_test.shape
    ((1257, 64), (540, 64))
    >>> load_dataset("steel")
    NCDProblem 'steel', 27 features
      known classes (3): Z_Scratch, K_Scatch, Bumps; 688 train and 295 test rows
      novel classes (3): Pastry, Stains, Dirtiness; 199 train and 86 test rows
      source: UCI's table as a CSV file with a header; all class counts are UCI's
    """
    info, arrays, source = _load(name, data_home, download, random_state, allow_modified)
    train, test = _split(info, arrays, random_state)
    X, X_test, feature_names = _as_numbers(info, arrays, train, test)
    if info.standardize:
        X, X_test = standardize(X, X_test)
    return NCDProblem(
        name=info.name,
        X=X,
        y_true=train.y,
        X_test=X_test,
        y_test=test.y,
        known_classes=info.known_classes,
        novel_classes=info.novel_classes,
        class_names=dict(info.class_names),
        feature_names=feature_names,
        source=source,
        n_hidden=info.n_hidden,
        n_splits=info.n_splits,
        images=train.images,
        images_test=test.images,
        without_label=train.without_label if info.second_file == "all" else None,
    )


class Table(NamedTuple):
    """A data set as a table; see `load_table`."""

    X: pd.DataFrame
    y: pd.Series
    y_true: pd.Series


def load_table(
    name: str,
    *,
    part: str = "train",
    data_home: str | os.PathLike | None = None,
    download: bool = True,
    random_state: int = 0,
    allow_modified: bool = False,
) -> Table:
    """Load a data set as a table of its raw columns, as `discover` takes it: the rows of `load_dataset`, in its order.

    Parameters
    ----------
    name : str
        One of `DATASETS`.
    part : str, default="train"
        "train" or "test".
    data_home, download, random_state, allow_modified
        As in `load_dataset`.

    Returns
    -------
    Table
        Its `X` has whole numbers, decimals, and text for categories; its `y` the names of the classes, missing in
        unlabelled rows; its `y_true` the class of every row, for final scoring only.

    Examples
    --------
    >>> from ncdlib.datasets import load_table
    >>> X, y, y_true = load_table("nslkdd")
    >>> X[["protocol_type", "src_bytes", "serror_rate"]].head(2)
      protocol_type  src_bytes  serror_rate
    0           udp         28          0.0
    1           tcp          0          1.0
    >>> int(y.isna().sum()), y_true[y.isna()].nunique()
    (2570, 8)
    """
    info, arrays, _ = _load(name, data_home, download, random_state, allow_modified)
    parts = dict(zip(("train", "test"), _split(info, arrays, random_state), strict=True))
    if part not in parts:
        raise ValueError(f"part must be 'train' or 'test', got {part!r}")
    rows = parts[part]
    X = pd.DataFrame(rows.X, columns=arrays["feature_names"].tolist())
    for column in X:
        if CATEGORIES + column in arrays:
            X[column] = arrays[CATEGORIES + column][X[column].astype(int)]
        elif np.array_equal(X[column], X[column].round()):
            X[column] = X[column].astype(np.int64)
    y_true = pd.Series(rows.y, name="class").map(dict(info.class_names))
    novel = np.isin(rows.y, info.novel_classes)
    return Table(X, y_true.mask(novel | rows.without_label), y_true)


def _load(
    name: str, data_home: str | os.PathLike | None, download: bool, random_state: int, allow_modified: bool
) -> tuple[DatasetInfo, Arrays, str]:
    """Return what is known of a data set, its arrays, and what to say of their source."""
    if operator.index(random_state) < 0:
        raise ValueError(f"random_state must be 0 or a positive integer, got {random_state}")
    info = get_info(name)
    if uses_board(info, data_home):
        return info, on_board.load(info.on_board), info.source
    paths = get_files(info, data_home, download, allow_modified)
    digests, source = check_files(info, paths, allow_modified)
    return info, read_files(info, paths, digests), source


@dataclass(frozen=True)
class _Rows:
    """The rows of one part; `without_label` marks those that have no label, though their class may be known."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    without_label: NDArray[np.bool_]
    images: NDArray | None = None

    def __getitem__(self, rows: slice | NDArray) -> _Rows:
        images = None if self.images is None else self.images[rows]
        return _Rows(self.X[rows], self.y[rows], self.without_label[rows], images)


def _split(info: DatasetInfo, arrays: Arrays, random_state: int) -> tuple[_Rows, _Rows]:
    """Return the train rows and the test rows."""
    first, second = (_rows(arrays, suffix) if f"X{suffix}" in arrays else None for suffix in ("", "_test"))
    if info.test_size is None:
        return first, second
    if info.second_file == "test":
        first = first[np.isin(first.y, (*info.known_classes, *info.novel_classes))]
        return tuple(first[rows] for rows in _split_rows(info, first.y, random_state))
    # Rows with labels come from the first file, those without, and the test part, from the second.
    labelled = first[np.isin(first.y, info.known_classes)]
    second = second[np.isin(second.y, (*info.known_classes, *info.novel_classes))]
    train, test = (second[rows] for rows in _split_rows(info, second.y, random_state))
    if info.second_file == "novel":
        train = train[np.isin(train.y, info.novel_classes)]
    train = _Rows(
        np.concatenate([labelled.X, train.X]),
        np.concatenate([labelled.y, train.y]),
        np.arange(len(labelled.y) + len(train.y)) >= len(labelled.y),
    )
    return train, test


def _rows(arrays: Arrays, suffix: str) -> _Rows:
    X, y = arrays[f"X{suffix}"], arrays[f"y{suffix}"].astype(np.int64)
    return _Rows(X, y, np.zeros(len(y), bool), arrays.get(f"images{suffix}"))


def _split_rows(info: DatasetInfo, y: NDArray, random_state: int) -> list[NDArray[np.int64]]:
    parts = train_test_split(
        np.arange(len(y)),
        test_size=info.test_size,
        random_state=info.seed + random_state,
        stratify=y if info.stratify else None,
    )
    return [_balanced(rows, y, info) for rows in parts] if info.max_rows_per_class else parts


def _balanced(rows: NDArray[np.int64], y: NDArray, info: DatasetInfo) -> NDArray[np.int64]:
    """Keep the first rows of every class: at most `max_rows_per_class`, or what the rarest novel class has.

    The rows come shuffled, so these are a random sample. In the full census file every class has enough rows.
    """
    classes = pd.Series(y[rows])
    n_novel = classes.value_counts().reindex(info.novel_classes, fill_value=0)
    return rows[classes.groupby(classes).cumcount() < min(info.max_rows_per_class, n_novel.min())]


def _as_numbers(
    info: DatasetInfo, arrays: Arrays, train: _Rows, test: _Rows
) -> tuple[NDArray[np.float64], NDArray[np.float64], list[str]]:
    """Return the columns of train and test as numbers, and their names; only the first file decides how."""
    names = arrays["feature_names"].tolist()
    X, X_test = (np.ascontiguousarray(rows.X, dtype=np.float64) for rows in (train, test))
    if not info.log_counts and not any(CATEGORIES + name in arrays for name in names):
        return X, X_test, names
    encoded, encoded_names = [], []
    for column, name in enumerate(names):
        first, both = arrays["X"][:, column], (X[:, [column]], X_test[:, [column]])
        if CATEGORIES + name in arrays:
            codes = np.unique(first)
            encoded.append([values == codes for values in both])
            encoded_names += [f"{name}={arrays[CATEGORIES + name][int(code)]}" for code in codes]
        else:
            is_count = info.log_counts and first.max() > 1 and np.array_equal(first, first.round())
            encoded.append([np.log1p(values) if is_count else values for values in both])
            encoded_names.append(name)
    X, X_test = (np.hstack(columns).astype(np.float64) for columns in zip(*encoded, strict=True))
    return X, X_test, encoded_names


def standardize(X: NDArray[np.float64], X_test: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Scale to zero mean and unit variance in train; columns that are constant in train become 0 in both.

    Examples
    --------
    >>> import numpy as np
    >>> from ncdlib.datasets.make import standardize
    >>> X, X_test = standardize(np.array([[0.0, 7.0], [2.0, 7.0]]), np.array([[3.0, 8.0]]))
    >>> X.tolist(), X_test.tolist()
    ([[-1.0, 0.0], [1.0, 0.0]], [[2.0, 0.0]])
    """
    varies = X.max(axis=0) > X.min(axis=0)
    mean, scale = X.mean(axis=0), np.where(varies, X.std(axis=0), 1)
    return tuple(np.where(varies, (part - mean) / scale, 0) for part in (X, X_test))


def make_ncd_blobs(
    n_known: int = 4,
    n_novel: int = 3,
    n_features: int = 8,
    n_samples: int = 700,
    *,
    cluster_std: float = 1.0,
    random_state: int = 0,
) -> NCDProblem:
    """Make a small synthetic problem: one Gaussian blob a class, 70 % of the rows in train.

    Parameters
    ----------
    n_known, n_novel : int
        Numbers of known and of novel classes.
    n_features, n_samples : int
        Numbers of columns, and of rows in train and test together.
    cluster_std : float, default=1.0
        Standard deviation of the blobs; their centres are drawn from the cube [-10, 10].
    random_state : int, default=0
        Seed of the blobs and of the split.

    Returns
    -------
    NCDProblem
        The novel classes are the last ones.

    Examples
    --------
    >>> from ncdlib import make_ncd_blobs
    >>> make_ncd_blobs(n_known=4, n_novel=3)
    NCDProblem 'blobs', 8 features
      known classes (4): 0, 1, 2, 3; 280 train and 120 test rows
      novel classes (3): 4, 5, 6; 210 train and 90 test rows
      source: synthetic
    """
    n_classes = n_known + n_novel
    X, y = make_blobs(n_samples, n_features, centers=n_classes, cluster_std=cluster_std, random_state=random_state)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=random_state, stratify=y)
    X, X_test = standardize(X, X_test)
    n_hidden, n_splits = possible_folds(n_known, 2, 5)
    return NCDProblem(
        name="blobs",
        X=X,
        y_true=y.astype(np.int64),
        X_test=X_test,
        y_test=y_test.astype(np.int64),
        known_classes=tuple(range(n_known)),
        novel_classes=tuple(range(n_known, n_classes)),
        class_names={code: str(code) for code in range(n_classes)},
        feature_names=[f"x{column}" for column in range(1, n_features + 1)],
        source="synthetic",
        n_hidden=n_hidden,
        n_splits=n_splits,
    )
