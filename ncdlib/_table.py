"""One's own tables: reading files, and turning mixed columns into numbers that can be named again."""

from __future__ import annotations

import codecs
import csv
import os
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

HEAD_BYTES = 2**16  # what the encoding and the separator are guessed from
MISSING_CATEGORY = "(missing)"
RARE_SHARE = 0.01  # categories with fewer rows than this are grouped
MAX_CATEGORIES = 30
TEXT_SHARE = 0.5  # a column with more distinct words than this share of its rows is text, not a category


def read_table(path: str | os.PathLike) -> pd.DataFrame:
    """Read a Parquet file, or a CSV file with commas, semicolons, tabs or bars.

    Raises
    ------
    OSError, ValueError
        With one line that says what is wrong with the file.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a table")
    if is_parquet(path):
        try:
            table = pd.read_parquet(path)
        except (ValueError, OSError) as error:
            raise ValueError(f"{path} is not a Parquet file that can be read: {_one_line(error)}") from error
    else:
        table = _read_csv(path)
    if len(table) == 0:
        raise ValueError(f"{path} has no rows")
    return table


def is_parquet(path: Path) -> bool:
    """Tell by its name whether a file is Parquet."""
    return path.suffix.lower() in (".parquet", ".pq")


def _read_csv(path: Path) -> pd.DataFrame:
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if not head.strip():
        raise ValueError(f"{path} is empty")
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif b"\0" in head:
        raise ValueError(f"{path} is not a text file: give a CSV or a Parquet file")
    else:
        encoding = "utf-8-sig" if _is_utf8(path) else "latin-1"  # with or without a byte order mark
    lines = "\n".join(head.decode(encoding, errors="replace").splitlines()[:20])
    try:
        separator = csv.Sniffer().sniff(lines, delimiters=",;\t|").delimiter
    except csv.Error:  # one column, or irregular lines: the parser below says which
        separator = ","
    options = {"sep": separator, "encoding": encoding, "na_values": ["?"], "skipinitialspace": True}
    try:
        header = pd.read_csv(path, header=None, nrows=1, dtype=str, **options).iloc[0].dropna()
        # In one piece: read by pieces, a column may be numbers here and text there.
        table = pd.read_csv(path, low_memory=False, **options)
    except ValueError as error:
        raise ValueError(f"{path} is not a table that can be read: {_one_line(error)}") from error
    if header.duplicated().any():  # pandas would give the second one another name
        raise ValueError(f"{path} has two columns {header[header.duplicated()].iloc[0]!r}: rename one")
    for name in table.columns[[not pd.api.types.is_numeric_dtype(t) for t in table.dtypes]] if separator != "," else ():
        # Numbers with a decimal comma, as files with semicolons often have.
        numbers = pd.to_numeric(table[name].astype(str).str.replace(",", "."), errors="coerce")
        if numbers.notna().any() and numbers.notna().equals(table[name].notna()):
            table[name] = numbers
    return table


def _is_utf8(path: Path) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        try:
            while block := file.read(2**20):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


class Feature(NamedTuple):
    """A number that stands for a column, or for one category of it."""

    column: str
    category: str | None = None

    def __str__(self) -> str:
        return self.column if self.category is None else f"{self.column} is {self.category}"


class TablePreprocessor:
    """Numbers from a mixed table: medians for missing numbers, then standardised; categories one-hot.

    Attributes
    ----------
    features_ : list of Feature
        What the columns of the transformed table are.
    notes_ : list of str
        Columns that were left out, and why.
    """

    def fit(self, X: ArrayLike | pd.DataFrame) -> Self:
        """Learn medians, scales and categories.

        Raises
        ------
        ValueError
            For a column that has no meaning as a number or a category: free text, dates, infinite numbers.
        """
        table = as_frame(X)
        self.notes_: list[str] = []
        numeric, categorical = [], []
        for name in table.columns:
            column = table[name]
            if column.dtype == object and any(np.iterable(v) and not isinstance(v, str | bytes) for v in column):
                raise ValueError(
                    f"the column {name!r} holds lists or the like, neither numbers nor categories: drop it"
                )
            if column.isna().all() or column.nunique() < 2:
                self.notes_.append(f"The column {name!r} was left out: it has a single value.")
            elif pd.api.types.is_complex_dtype(column):
                raise ValueError(f"the column {name!r} holds complex numbers: drop it")
            elif pd.api.types.is_bool_dtype(column) or pd.api.types.is_numeric_dtype(column):
                largest = np.abs(_numbers(column.dropna())).max()
                if not np.isfinite(largest):
                    raise ValueError(f"the column {name!r} has infinite values")
                if largest > np.finfo(np.float32).max:  # what the trees of the rules compute in
                    raise ValueError(f"the column {name!r} has values up to {largest:.3g}: scale it down, or drop it")
                numeric.append(name)
            elif pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
                raise ValueError(f"the column {name!r} holds dates: turn it into numbers, or drop it")
            else:
                n_distinct, n_rows = column.astype(str).nunique(), int(column.notna().sum())
                if n_distinct > max(10, TEXT_SHARE * n_rows):
                    raise ValueError(
                        f"the column {name!r} is text ({n_distinct} different values in {n_rows} rows), "
                        "neither numbers nor categories: drop it"
                    )
                categorical.append(name)
        if not numeric and not categorical:
            raise ValueError("no column is left to learn from: all are constant or empty")
        self.numeric_, self.categorical_ = numeric, categorical
        self.transformer_ = ColumnTransformer(
            [
                ("numeric", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numeric),
                ("categorical", _one_hot_encoder(), categorical),
            ]
        ).fit(self._tidy(table))
        self.features_ = [Feature(name) for name in numeric]
        if categorical:
            encoder = self.transformer_.named_transformers_["categorical"]
            rare_of = encoder.infrequent_categories_
            for name, categories, rare in zip(categorical, encoder.categories_, rare_of, strict=True):
                rare = [] if rare is None else rare
                self.features_ += [Feature(name, str(c)) for c in categories if c not in rare]
                self.features_ += [Feature(name, "a rare value")] if len(rare) else []
        return self

    def transform(self, X: ArrayLike | pd.DataFrame) -> NDArray[np.float64]:
        """Return the numbers a method learns from, one column for each of ``features_``."""
        return self.transformer_.transform(self._tidy(as_frame(X)))

    def readable(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give transformed rows their original units back (missing numbers stay medians)."""
        n = len(self.numeric_)
        if n == 0:
            return Z
        scaler = self.transformer_.named_transformers_["numeric"][-1]
        return np.hstack([scaler.inverse_transform(Z[:, :n]), Z[:, n:]])

    def _tidy(self, table: pd.DataFrame) -> pd.DataFrame:
        missing = [name for name in (*self.numeric_, *self.categorical_) if name not in table]
        if missing:
            raise ValueError(f"the table has no column {', '.join(map(repr, missing))}")
        columns = {name: _numbers(table[name]) for name in self.numeric_}
        for name in self.categorical_:
            columns[name] = np.where(table[name].isna(), MISSING_CATEGORY, table[name].astype(str)).astype(object)
        return pd.DataFrame(columns, index=table.index)


def _one_hot_encoder() -> OneHotEncoder:
    return OneHotEncoder(
        handle_unknown="infrequent_if_exist",
        min_frequency=RARE_SHARE,
        max_categories=MAX_CATEGORIES,
        sparse_output=False,
    )


def _numbers(column: pd.Series) -> NDArray[np.float64]:
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def as_frame(X: ArrayLike | pd.DataFrame) -> pd.DataFrame:
    """A table with columns named by strings."""
    if isinstance(X, pd.DataFrame):
        table = X.rename(columns=str)
    else:
        array = np.asarray(X)
        if array.ndim != 2:
            raise ValueError(f"X must have rows and columns, got an array of shape {array.shape}")
        table = pd.DataFrame(array, columns=[f"feature {i}" for i in range(array.shape[1])]).infer_objects()
    twice = table.columns[table.columns.duplicated()]
    if len(twice):
        raise ValueError(f"the column {twice[0]!r} is there twice")
    return table
