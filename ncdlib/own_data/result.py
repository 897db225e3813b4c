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
from ncdlib.own_data.prepare import TablePreprocessor
from ncdlib.problem import UNLABELED
from ncdlib.selection.search import HiddenClassSearchCV

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RESULT_COLUMNS = ("ncd_label", "ncd_discovered")  # what a result adds to a table


@dataclass(frozen=True, eq=False)
class Discovery:
    """The classes found among the unlabelled rows of a table.

    Attributes
    ----------
    labels : array of shape (n_rows,)
        Discovered class of each unlabelled row, from 0; -1 for rows with a known class.
    n_clusters : int
    estimate : KEstimate
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
    model : estimator
        Fitted on the numbers that `preprocessor` makes of the table.
    preprocessor : TablePreprocessor

    Examples
    --------
    >>> from ncdlib import discover, make_ncd_blobs
    >>> problem = make_ncd_blobs(random_state=0)
    >>> found = discover(problem.X, problem.y, method="ncd_kmeans", verbose=False)
    >>> list(found.to_frame().columns), len(found.profiles) == found.n_clusters
    (['label', 'discovered'], True)
    """

    labels: NDArray[np.int64]
    n_clusters: int
    estimate: KEstimate
    stability: float
    profiles: list[ClassProfile]
    search: HiddenClassSearchCV | None
    notes: list[str]
    model: BaseEstimator
    preprocessor: TablePreprocessor
    known: NDArray = field(repr=False)  # the class of each row, None for unlabelled ones
    index: pd.Index = field(repr=False)
    numbers: NDArray[np.float64] = field(repr=False)  # what the model was fitted on

    def __repr__(self) -> str:
        sizes = ", ".join(f"{p.name}: {p.size}" for p in self.profiles)
        return f"Discovery(n_clusters={self.n_clusters}, stability={self.stability:.2f}, rows={{{sizes}}})"

    def to_frame(self) -> pd.DataFrame:
        """Return a label for each row, as text: its known class, or the name of its discovered class."""
        discovered = self.labels != UNLABELED
        label = np.array([None if c is None else str(c) for c in self.known], dtype=object)
        names = {profile.cluster: profile.name for profile in self.profiles}
        # A cluster may have no row in the sample that was learned from, and so no profile.
        label[discovered] = [names.get(cluster, "new (not in the sample)") for cluster in self.labels[discovered]]
        return pd.DataFrame({"label": label, "discovered": discovered}, index=self.index)

    def summary(self) -> pd.DataFrame:
        """Return one line for each discovered class."""
        return pd.DataFrame(
            {
                "class": [p.name for p in self.profiles],
                "rows": [p.size for p in self.profiles],
                "stability": [round(p.stability, 2) for p in self.profiles],
                "nearest known": [str(p.nearest_known) for p in self.profiles],
                "precision": [round(p.rule_precision, 2) for p in self.profiles],
                "recall": [round(p.rule_recall, 2) for p in self.profiles],
                "rule": [p.rule for p in self.profiles],
            }
        )

    def predict(self, X: ArrayLike | pd.DataFrame) -> NDArray[np.int64]:
        """Assign new rows, of none of the known classes, to the discovered ones."""
        return self.model.predict(self.preprocessor.transform(X))

    def plot(self) -> Figure:
        """Draw the score of each number of classes, a map of the rows, and what sets each class apart.

        Returns
        -------
        matplotlib Figure
        """
        from ncdlib.own_data.draw import draw

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
