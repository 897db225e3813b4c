"""The result of a discovery: a label for each row, what each class is, and the fitted model."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from ncdlib.clustering.validity import KEstimate
from ncdlib.own_data.explain import ClassProfile
from ncdlib.own_data.known import KnownOrNew
from ncdlib.own_data.prepare import TablePreprocessor
from ncdlib.own_data.rows import OUTLIER
from ncdlib.problem import UNLABELED
from ncdlib.selection.search import HiddenClassSearchCV

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RESULT_COLUMNS = ("ncd_label", "ncd_discovered", "ncd_p_known")  # what a result adds to a table


@dataclass(frozen=True, eq=False)
class Discovery:
    """The classes found among the unlabelled rows of a table.

    Attributes
    ----------
    labels : array of shape (n_rows,)
        Discovered class of each row, from 0; -1 for rows of a known class, -2 for outliers, which are of no class.
    n_clusters : int
        0 where no class is claimed.
    estimate : KEstimate or None
        The scores of each number of classes (computed even where the number was given).
    stability : float
        Mean adjusted Rand index between all pairs of fits that differ by their seed: near 1, the classes do not
        depend on chance.
    profiles : list of ClassProfile
        What each class is.
    search : HiddenClassSearchCV or None
        The search for hyperparameters, where there was one.
    notes : list of str
        What was decided along the way, and should be known.
    model : estimator or None
        Fitted on the numbers that `preprocessor` makes of the table.
    preprocessor : TablePreprocessor
    known_or_new : KnownOrNew or None
        For each unlabelled row the probability that it is of a known class, and which; and a test for new classes.
    recognised : array of bool
        Unlabelled rows that were given the label of a known class.
    outliers : array of int
        -1 for a row that is no outlier, 0 for one that is alone, else the number of its group.

    Examples
    --------
    >>> from ncdlib import discover, make_ncd_blobs
    >>> problem = make_ncd_blobs(random_state=0)
    >>> found = discover(problem.X, problem.y, method="ncd_kmeans", verbose=False)
    >>> list(found.to_frame().columns), len(found.profiles) == found.n_clusters
    (['label', 'discovered', 'p_known'], True)
    """

    labels: NDArray[np.int64]
    n_clusters: int
    estimate: KEstimate | None
    stability: float
    profiles: list[ClassProfile]
    search: HiddenClassSearchCV | None
    notes: list[str]
    model: BaseEstimator | None
    preprocessor: TablePreprocessor
    known_or_new: KnownOrNew | None = field(repr=False)
    recognised: NDArray[np.bool_] = field(repr=False)
    outliers: NDArray[np.int64] = field(repr=False)
    known: NDArray = field(repr=False)  # the known class of each row, None for rows of none
    index: pd.Index = field(repr=False)
    numbers: NDArray[np.float64] = field(repr=False)  # the rows as the model sees them

    def __repr__(self) -> str:
        sizes = ", ".join(f"{p.name}: {p.size}" for p in self.profiles)
        return f"Discovery(n_clusters={self.n_clusters}, stability={self.stability:.2f}, rows={{{sizes}}})"

    @property
    def unlabeled(self) -> NDArray[np.bool_]:
        """The rows that had no label."""
        return self.recognised | (self.labels != UNLABELED)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each row of the table.

        Returns
        -------
        DataFrame
            "label", as text: the known class, the name of the discovered class, or "outlier"; whether the class is
            "discovered"; and "p_known", the probability that an unlabelled row is of a known class.
        """
        discovered, outlier = self.labels >= 0, self.labels == OUTLIER
        label = np.array([None if c is None else str(c) for c in self.known], dtype=object)
        names = {profile.cluster: profile.name for profile in self.profiles}
        # A cluster may have no row in the sample that was learned from, and so no profile.
        label[discovered] = [names.get(cluster, "new (not in the sample)") for cluster in self.labels[discovered]]
        label[outlier] = [f"outlier group {group}" if group > 0 else "outlier" for group in self.outliers[outlier]]
        p_known = np.full(len(label), np.nan) if self.known_or_new is None else self.known_or_new.p_known.round(3)
        return pd.DataFrame({"label": label, "discovered": discovered, "p_known": p_known}, index=self.index)

    def summary(self) -> pd.DataFrame:
        """Return one line for each discovered class."""
        return pd.DataFrame(
            {
                "class": [p.name for p in self.profiles],
                "rows": [p.size for p in self.profiles],
                "stability": [round(p.stability, 2) for p in self.profiles],
                "nearest known": [str(p.nearest_known) for p in self.profiles],
                "verdict": [p.verdict for p in self.profiles],
                "precision": [round(p.rule_precision, 2) for p in self.profiles],
                "recall": [round(p.rule_recall, 2) for p in self.profiles],
                "rule": [p.rule for p in self.profiles],
            }
        )

    def predict(self, X: ArrayLike | pd.DataFrame) -> NDArray[np.int64]:
        """Assign new rows, of none of the known classes, to the discovered ones."""
        if self.model is None:
            raise ValueError("no class was discovered, so no row can be assigned to one")
        return self.model.predict(self.preprocessor.transform(X))

    def plot(self) -> Figure:
        """Draw the score of each number of classes, a map of the rows, and what sets each class apart.

        Returns
        -------
        matplotlib Figure
        """
        from ncdlib.own_data.draw import draw

        if self.model is None:
            raise ValueError("no class was discovered, so there is nothing to draw")
        return draw(self)

    def report(self, path: str | os.PathLike) -> Path:
        """Write everything into one HTML file that needs no other file and no network.

        Returns
        -------
        Path
            The file.
        """
        from ncdlib.own_data.report import write_report

        return write_report(self, Path(path))
