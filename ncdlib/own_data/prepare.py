"""Turn a table of mixed columns into numbers that can be named again."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Number
from typing import NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ncdlib._io.checks import as_numbers, check_table, shorten, unmasked
from ncdlib.own_data.read import UNNAMED

MISSING_CATEGORY = "(missing)"
RARE_SHARE = 0.01  # categories with fewer rows than this are grouped
MAX_CATEGORIES = 30
ROWS_TO_JUDGE = 20  # fewer values tell no spread
TEXT_SHARE = 0.5  # a column with more distinct words than this share of its rows is text, not a category
NUMBERS_SHARE = 0.9  # a column with more numbers than this is numbers, and what is none in it a slip
MISSING_SHARE = 0.3  # a column with more gaps than this is worth a note
DATE = r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2}))(?:[ T].*)?"
SIGNS = r"[%$€£¥,'_\s]"  # that people write around and inside numbers


class Feature(NamedTuple):
    """A number that stands for a column, or for one category of it."""

    column: str
    category: str | None = None

    def __str__(self) -> str:
        return self.column if self.category is None else f"{self.column} is {self.category}"


class ClipFarValues(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Bring values that are far from all others nearer, so that a few of them do not decide a column's scale.

    A column's limits are two of its spreads (5 to 95 % of its values) beyond it, some eight standard deviations in a
    bell curve. Where most values are the same, the spread is that of the others.
    """

    def fit(self, X: NDArray[np.float64], y: None = None) -> Self:
        """Learn the limits of each column."""
        self.n_features_in_ = X.shape[1]
        self.limits_ = np.array([_limits(column) for column in X.T]).T
        return self

    def transform(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values within the limits."""
        return np.clip(X, *self.limits_)


def _limits(values: NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.percentile(values, [5, 95])
    if low == high and len(others := values[values != low]) >= ROWS_TO_JUDGE:
        low, high = np.percentile(np.append(others, low), [5, 95])
    reach = 2 * (high - low)
    return (low - reach, high + reach) if reach > 0 else (-np.inf, np.inf)


class TablePreprocessor:
    """Numbers from a mixed table: medians for missing numbers, then standardised; categories one-hot.

    Values that are far from all others are brought nearer first (see `ClipFarValues`).

    Parameters
    ----------
    left_out : collection of str
        Columns that are no features.
    marks : dict of str to float
        Columns in which a number stands for a missing value, and the number.
    keep : collection of str
        Columns to take, as they are, though they look like none to learn from.

    Attributes
    ----------
    features_ : list of Feature
        What the columns of the transformed table are.
    levels_, rare_levels_ : dict of str to list of str
        The values of each column of categories that have a feature of their own, and those that share one.
    notes_ : list of str
        Columns that were left out, and why.
    """

    def __init__(
        self, left_out: Collection[str] = (), marks: Mapping[str, float] | None = None, keep: Collection[str] = ()
    ) -> None:
        self.left_out, self.marks, self.keep = frozenset(left_out), dict(marks or {}), frozenset(keep)

    def fit(self, X: ArrayLike | pd.DataFrame) -> Self:
        """Learn medians, scales and categories.

        Raises
        ------
        ValueError
            For a column that has no meaning as a number or a category: free text, dates, infinite numbers.
        """
        table = as_frame(X)
        self.notes_: list[str] = []
        self._sort_columns(table)
        tidy = self._tidy(table)
        if self.numeric_:
            pipeline = make_pipeline(SimpleImputer(strategy="median"), ClipFarValues(), StandardScaler())
            imputer, clipper, scaler = (step for _, step in pipeline.fit(tidy[self.numeric_].to_numpy()).steps)
            self.medians_, self.limits_ = imputer.statistics_, clipper.limits_
            self.mean_, self.scale_ = scaler.mean_, scaler.scale_
        self.features_ = [Feature(name) for name in self.numeric_]
        self.levels_, self.rare_levels_ = {}, {}
        for name in sorted(self.categorical_, key=lambda name: name in self.keep):
            encoder = _one_hot_encoder(None if name in self.keep else RARE_SHARE).fit(tidy[[name]].to_numpy())
            rare = encoder.infrequent_categories_[0]
            self.rare_levels_[name] = [] if rare is None else [str(c) for c in rare]
            self.levels_[name] = [str(c) for c in encoder.categories_[0] if rare is None or c not in rare]
            self.features_ += [Feature(name, level) for level in self.levels_[name]]
            self.features_ += [Feature(name, "a rare value")] if self.rare_levels_[name] else []
        return self

    def _sort_columns(self, table: pd.DataFrame) -> None:
        """Sort the columns into numbers and categories; leave out what says nothing, refuse what has no meaning."""
        numeric, categorical, refused = [], [], []
        for name in table.columns.difference(self.left_out, sort=False):
            column = self._without_marks(table[name])
            try:
                n_values = column.nunique()
            except TypeError:  # lists or the like, refused below
                n_values = len(column)
            gaps = column.isna().mean()
            if n_values == 1 and gaps and not _is_numeric(column):
                n_values = 2  # a gap is a category of its own
            if n_values < 2:
                reason = f"has a single value{' and gaps' if gaps else ''}" if n_values else "is empty"
                self.notes_.append(f"The column {name!r} was left out: it {reason}.")
            elif name.startswith(UNNAMED) and _counts_rows(column):
                self.notes_.append(f"The column {name!r} was left out: it has no name, and numbers the rows.")
            elif reason := _why_refused(column):
                refused.append(f"the column {name!r} {reason}")
            elif not _is_numeric(column):
                if name not in self.keep and (rare := _all_rare(column)):
                    self.notes_.append(f"The column {name!r} was left out: {rare} (--keep {shorten(name)} takes it).")
                    continue
                categorical.append(name)
                self.notes_ += _note_on_numbers(column)
            else:
                numeric.append(name)
                if _counts_rows(column):
                    self.notes_.append(
                        f"The column {name!r} goes up by one from row to row: leave it out if it numbers the rows."
                    )
                if gaps > MISSING_SHARE:
                    self.notes_.append(
                        f"The column {name!r} is missing in {gaps:.0%} of the rows: its median stands in."
                    )
        if refused:
            raise ValueError("; ".join(refused))
        if not numeric and not categorical:
            raise ValueError("no column is left to learn from: all are constant or empty")
        self.numeric_, self.categorical_ = numeric, categorical

    def transform(self, X: ArrayLike | pd.DataFrame) -> NDArray[np.float64]:
        """Return the numbers a method learns from, one column for each of ``features_``."""
        tidy = self._tidy(as_frame(X))
        blocks = []
        if self.numeric_:
            numbers = tidy[self.numeric_].to_numpy()
            # The trees of the rules, and those that label new rows, compute in single precision.
            for i in np.flatnonzero((np.abs(numbers) > np.finfo(np.float32).max).any(axis=0))[:1]:
                raise ValueError(
                    f"the column {self.numeric_[i]!r} has infinite values, or larger ones than can be computed with: "
                    "leave these cells empty"
                )
            numbers = np.clip(np.where(np.isnan(numbers), self.medians_, numbers), *self.limits_)
            blocks.append((numbers - self.mean_) / self.scale_)
        for name, levels in self.levels_.items():
            position = pd.Index(levels).get_indexer(tidy[name])  # -1 for what is rare or was never seen
            one_hot = np.zeros((len(tidy), len(levels) + 1))
            one_hot[np.arange(len(tidy)), position] = 1
            blocks.append(one_hot if self.rare_levels_[name] else one_hot[:, :-1])
        return np.hstack(blocks)

    def unseen_levels(self, X: ArrayLike | pd.DataFrame) -> dict[str, dict[str, int]]:
        """Return, for each column of categories, the values that it did not have at the fit, and how often."""
        tidy, unseen = self._tidy(as_frame(X)), {}
        for name, levels in self.levels_.items():
            new = tidy[name][~tidy[name].isin([*levels, *self.rare_levels_[name], MISSING_CATEGORY])]
            if len(new):
                unseen[name] = {str(value): int(n) for value, n in new.value_counts().items()}
        return unseen

    def readable(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give transformed rows their original units back (missing numbers stay medians)."""
        return np.column_stack([self.readable_feature(Z, feature) for feature in range(Z.shape[1])])

    def readable_feature(self, Z: NDArray[np.float64], feature: int) -> NDArray[np.float64]:
        """Return one feature of transformed rows in its original unit."""
        if feature >= len(self.numeric_):
            return Z[:, feature]
        values = Z[:, feature] * self.scale_[feature] + self.mean_[feature]
        largest = np.abs(values).max(initial=0.0)
        # There and back again leaves noise in the last digits, and 40 would no longer be at most 40.
        return np.round(values, 14 - math.ceil(math.log10(largest))) if largest > 1e-250 else values

    def _without_marks(self, column: pd.Series) -> pd.Series:
        """Return a column with nothing where a number stands for a missing value."""
        return column.mask(column == self.marks[column.name]) if column.name in self.marks else column

    def _tidy(self, table: pd.DataFrame) -> pd.DataFrame:
        check_columns((*self.numeric_, *self.categorical_), table.columns, "the table")
        advice = "give numbers, as in the table that was learned from"
        columns = {name: as_numbers(self._without_marks(table[name]), advice) for name in self.numeric_}
        for name in self.categorical_:
            column = table[name]
            if pd.api.types.is_float_dtype(column):  # a category 1 is 1.0 where numbers and gaps are all there is
                column = column.convert_dtypes()
            columns[name] = np.where(column.isna(), MISSING_CATEGORY, column.astype(str)).astype(object)
        return pd.DataFrame(columns, index=table.index)


def _why_refused(column: pd.Series) -> str | None:
    """Say what is wrong with a column that has no meaning as numbers or categories."""
    if pd.api.types.is_complex_dtype(column):
        return "holds complex numbers: drop it"
    if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
        return "holds dates: turn it into numbers, or drop it"
    if _is_numeric(column):
        largest = np.abs(as_numbers(column.dropna(), "drop it")).max()
        if not np.isfinite(largest):
            return "has infinite values: leave these cells empty, or drop it"
        if largest > np.finfo(np.float32).max:  # what the trees of the rules compute in
            return f"has values up to {largest:.3g}: scale it down, or drop it"
        return None
    if column.dtype == object and any(np.iterable(v) and not isinstance(v, str | bytes) for v in column):
        return "holds lists or the like, neither numbers nor categories: drop it"
    text = column.dropna().astype(str)
    distinct = pd.Series(text.unique(), dtype=object)
    if distinct.str.fullmatch(DATE).mean() > NUMBERS_SHARE:
        return "holds dates: turn it into numbers, or drop it"
    number = pd.to_numeric(distinct, errors="coerce").notna()
    if (
        not number.all()
        and pd.to_numeric(distinct.str.replace(SIGNS, "", regex=True), errors="coerce").notna().mean() >= NUMBERS_SHARE
    ):
        example = shorten(distinct[~number].iloc[0])
        return f"has numbers, but also values like {example!r}: write plain numbers, or drop it"
    if len(distinct) > max(10, TEXT_SHARE * len(text)):
        return (
            f"is text ({len(distinct)} different values in {len(text)} rows), neither numbers nor categories: drop it"
        )
    return None


def _all_rare(column: pd.Series) -> str | None:
    """Say so where each category of a column would be grouped with all others, and nothing be left of it."""
    counts = column.astype(str).value_counts()
    if counts.iloc[0] >= RARE_SHARE * len(column):
        return None
    return f"it has {len(counts):,} different values, none of them in {RARE_SHARE:.0%} of the rows"


def _note_on_numbers(column: pd.Series) -> list[str]:
    """Say a word on a column of categories that may be numbers with a slip."""
    text = column.dropna().astype(str)
    number = pd.to_numeric(text, errors="coerce").notna()
    if not NUMBERS_SHARE <= number.mean() < 1:
        return []
    example = shorten(text[~number].iloc[0])
    return [f"The column {column.name!r} was taken as categories: beside numbers, it has values like {example!r}."]


def _counts_rows(column: pd.Series) -> bool:
    return pd.api.types.is_integer_dtype(column) and len(column) > 1 and bool((column.diff().iloc[1:] == 1).all())


def _is_numeric(column: pd.Series) -> bool:
    if column.dtype == object:  # decimal numbers, or numbers beside None
        return all(isinstance(value, Number) and not isinstance(value, complex) for value in column.dropna())
    return pd.api.types.is_bool_dtype(column) or pd.api.types.is_numeric_dtype(column)


def _one_hot_encoder(min_share: float | None) -> OneHotEncoder:
    return OneHotEncoder(
        handle_unknown="infrequent_if_exist",
        min_frequency=min_share,
        max_categories=MAX_CATEGORIES,
        sparse_output=False,
    )


def as_frame(X: ArrayLike | pd.DataFrame) -> pd.DataFrame:
    """Return a table with columns named by strings."""
    if isinstance(X, pd.DataFrame):
        levels = [name if isinstance(name, tuple) else (name,) for name in X.columns]
        table = X.set_axis([" ".join(map(str, name)) for name in levels], axis=1)
    else:
        if issparse(X):
            raise ValueError("X is sparse: give it as an array, X.toarray()")
        array = np.asarray(unmasked(X))
        check_table(array)
        table = pd.DataFrame(array, columns=[f"feature {i}" for i in range(array.shape[1])]).infer_objects()
    twice = table.columns[table.columns.duplicated()]
    if len(twice):
        raise ValueError(f"the column {twice[0]!r} is there twice")
    return table


def check_columns(names: Iterable[str], columns: Sequence[str] | pd.Index, table: str) -> None:
    """Raise a ValueError that names the columns that are not there, and one that may be meant."""
    missing = [name for name in names if name not in columns]
    if len(missing) > 1:
        raise ValueError(
            f"{table} has no columns {shorten(', '.join(map(repr, missing)), 200)}: "
            f"it has {shorten(', '.join(columns), 200)}"
        )
    for name in missing:
        close = get_close_matches(name, columns, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"it has {shorten(', '.join(columns), 200)}"
        raise ValueError(f"{table} has no column {name!r}: {hint}")
