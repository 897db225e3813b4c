"""Look at the columns before the work: which are no features, and which numbers stand for a missing value.

Nothing here is certain. Whatever is left out or read as missing is told of by name, and `keep` overrides it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from ncdlib._io.checks import as_numbers, shorten
from ncdlib.problem import UNLABELED

MIN_ROWS = 50  # in fewer rows, whole numbers are often all different
MAX_ROWS_LOOKED_AT = 20_000
MOSTLY_MISSING = 0.95
SEPARATES = 0.99  # area under the ROC curve from which a column alone tells labelled from unlabelled rows
RISES = 0.99  # rank correlation with the row number from which a column is in the order of the rows
TIME_NAME = r"(?:^|[\W_])(?:time|timestamp|datetime|date|ts|epoch)(?:[\W_]|$)"
NINES = r"-?9{2,}|-?9{2,}\.9+"  # 999, -9999, 99.99: what people write for "missing"
FAR_AWAY = 1e4  # spreads of the other values, for a number that is not written so
SHARE_OF_A_MARK = 0.002  # of the rows that have it
MANY_LEVELS = 50  # more different values than this are no code of classes


@dataclass(frozen=True)
class Audit:
    """What was found out about the columns of a table.

    Attributes
    ----------
    left_out : list of str
        Columns that are no features.
    marks : dict of str to float
        Columns in which a number stands for a missing value, and the number.
    notes : list of str
        A sentence for each finding: what it is, what was done, and how to override it.
    """

    left_out: list[str] = field(default_factory=list)
    marks: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def audit_columns(table: pd.DataFrame, codes: NDArray[np.int64], keep: Collection[str] = ()) -> Audit:
    """Find the columns that are no features, and the numbers that stand for a missing value.

    Parameters
    ----------
    table : DataFrame
    codes : array of shape (n_rows,)
        The known class of each row, -1 for unlabelled rows.
    keep : collection of str
        Columns to take as they are.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from ncdlib.own_data.audit import audit_columns
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"size": rng.normal(size=100), "id": rng.permutation(10_000)[:100]})
    >>> audit_columns(table, np.arange(100) % 3 - 1).left_out
    ['id']
    """
    audit, reasons = Audit(), {}
    some = np.arange(len(table))
    if len(table) > MAX_ROWS_LOOKED_AT:
        some = np.sort(np.random.default_rng(0).choice(len(table), MAX_ROWS_LOOKED_AT, replace=False))
    for name in table.columns.difference(keep, sort=False):
        column = table[name]
        if column.isna().mean() > MOSTLY_MISSING and column.notna().any():
            reasons[name] = f"it is missing in {column.isna().mean():.1%} of the rows"
        elif _is_copy_of_labels(column.iloc[some], codes[some]):
            reasons[name] = "it follows the labels, and is different or missing where they are missing"
        elif pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_complex_dtype(column):
            if (mark := _mark_of_missing(column)) is not None:
                audit.marks[name] = mark
                n_marked = int((column == mark).sum())
                audit.notes.append(
                    f"The number {mark:g} of the column {name!r} was read as a missing value, in {n_marked:,} rows"
                    f"{_override(name)}"
                )
                column = column.mask(column == mark)
            if _is_id(column):
                reasons[name] = "it has another whole number in each row, as an id does"
            elif _separates(column.iloc[some], codes[some]):
                if _is_time(column.iloc[some]):
                    reasons[name] = "it looks like a time, and alone tells the labelled from the unlabelled rows"
                else:
                    audit.notes.append(
                        f"The column {name!r} alone tells the labelled from the unlabelled rows: drop it if it says "
                        f"how or when a row was recorded, not what it is."
                    )
    if len(reasons) == table.shape[1]:  # better a doubtful column than none
        audit.notes.extend(f"The column {name!r} is no feature, it seems: {why}." for name, why in reasons.items())
        return audit
    audit.left_out.extend(reasons)
    audit.notes.extend(f"The column {name!r} was left out: {why}{_override(name)}" for name, why in reasons.items())
    return audit


def _override(name: str) -> str:
    return f" (--keep {shorten(name)} takes it as it is)."


def _is_id(column: pd.Series) -> bool:
    """Tell whether each row has a whole number of its own."""
    return pd.api.types.is_integer_dtype(column) and len(column) >= MIN_ROWS and column.is_unique


def _separates(column: pd.Series, codes: NDArray[np.int64]) -> bool:
    """Tell whether a threshold on this column alone tells labelled from unlabelled rows."""
    values, unlabeled = as_numbers(column, "drop it"), codes == UNLABELED
    there = np.isfinite(values)
    if min(np.sum(there & unlabeled), np.sum(there & ~unlabeled)) < MIN_ROWS / 2:
        return False
    area = roc_auc_score(unlabeled[there], values[there])
    return max(area, 1 - area) >= SEPARATES


def _is_time(column: pd.Series) -> bool:
    """Tell whether a column of numbers has the name of a time, counts seconds since 1970, or rises with the rows."""
    values = column.dropna().astype(float)
    if values.nunique() < 0.5 * len(values):
        return False
    named = pd.Series([str(column.name).lower()]).str.contains(TIME_NAME).item()
    low, high = values.min(), values.max()
    epoch = any(5e8 * unit < low and high < 4e9 * unit for unit in (1, 1e3, 1e6, 1e9))  # from 1985 to 2096
    return named or epoch or abs(values.corr(pd.Series(np.arange(len(column)), column.index), "spearman")) > RISES


def _mark_of_missing(column: pd.Series) -> float | None:
    """Return the number that stands for a missing value: the same in several rows, and far from all others."""
    values = as_numbers(column.dropna(), "drop it")
    if len(values) < MIN_ROWS or not np.isfinite(values).all():
        return None
    for mark in (values.min(), values.max()):
        rest = values[values != mark]
        n_marked = len(values) - len(rest)
        if len(rest) < MIN_ROWS / 2 or n_marked < max(2, SHARE_OF_A_MARK * len(values)):
            continue
        low, high = np.percentile(rest, [1, 99])
        away = max(low - mark, mark - high)
        usual = pd.Series([f"{mark:.12g}"]).str.fullmatch(NINES).item()
        if high > low and away > (1 if usual else FAR_AWAY) * (high - low):
            return float(mark)
    return None


def _is_copy_of_labels(column: pd.Series, codes: NDArray[np.int64]) -> bool:
    """Tell whether each value goes with one known class, and the unlabelled rows have other values, or none."""
    if pd.api.types.is_float_dtype(column) and not (column.dropna() % 1 == 0).all():
        return False
    try:
        value, values = pd.factorize(column)
    except TypeError:  # lists or the like
        return False
    labeled = codes != UNLABELED
    if not 2 <= len(values) <= MANY_LEVELS or min(labeled.sum(), (~labeled).sum()) < MIN_ROWS / 2:
        return False
    of_class = pd.crosstab(value[labeled], codes[labeled])
    of_class = of_class[of_class.index >= 0]
    follows = of_class.max(axis=1).sum() >= SEPARATES * labeled.sum()
    classes_named = len(set(of_class.to_numpy().argmax(axis=1))) if len(of_class) else 0
    elsewhere = np.isin(value[~labeled], of_class.index).mean() <= 1 - SEPARATES
    return bool(follows and elsewhere and classes_named >= 2)
