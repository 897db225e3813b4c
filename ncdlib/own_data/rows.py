"""The rows of a table on their way through a discovery."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ncdlib.own_data.known import KnownOrNew
from ncdlib.own_data.prepare import TablePreprocessor

OUTLIER = -2  # the label of a row of no class, beside -1


@dataclass(frozen=True)
class Rows:
    """A table as numbers and codes: all of its rows, and those that are learned from.

    Attributes
    ----------
    preprocessor : TablePreprocessor
    classes : array
        The known classes.
    all_numbers, all_codes : array
        The rows as numbers; the position of each row's class, -1 for unlabelled rows, -2 for outliers.
    learned : array of int
        The rows that are learned from: all of them, or a sample.
    notes : list of str
        What was decided along the way, and should be known.
    index : Index
        Of the table.
    outliers : array of int
        -1 for a row that is no outlier, 0 for one that is alone, else the number of its group.
    recognised : array of bool
        Unlabelled rows that were given the label of a known class.
    known_or_new : KnownOrNew or None
        What was found out about the unlabelled rows, where there were enough to tell.
    """

    preprocessor: TablePreprocessor
    classes: NDArray
    all_numbers: NDArray[np.float64]
    all_codes: NDArray[np.int64]
    learned: NDArray[np.int64]
    notes: list[str]
    index: pd.Index
    outliers: NDArray[np.int64]
    recognised: NDArray[np.bool_]
    known_or_new: KnownOrNew | None = None

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """The numbers of the rows that are learned from."""
        return self.all_numbers if len(self.learned) == len(self.all_numbers) else self.all_numbers[self.learned]

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """The codes of the rows that are learned from."""
        return self.all_codes[self.learned]
