"""The result of a discovery: a label for each row, what each class is, and the fitted model."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from ncdlib.clustering.validity import KEstimate
from ncdlib.methods.saving import write_state
from ncdlib.own_data.edit import Edit, edit, next_labels
from ncdlib.own_data.explain import ClassProfile
from ncdlib.own_data.known import KnownOrNew
from ncdlib.own_data.prepare import TablePreprocessor
from ncdlib.own_data.rows import OUTLIER
from ncdlib.problem import UNLABELED
from ncdlib.selection.search import HiddenClassSearchCV

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ncdlib.own_data.apply import Labeller

REJECT = 0.01  # the share of rows like the old ones that `apply` turns away
# What a result adds to a table:
RESULT_COLUMNS = ("ncd_label", "ncd_discovered", "ncd_p_known", "ncd_confidence", "ncd_runner_up")


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
        The votes on the number of classes, or a validity index of each number; None where the number was given and the
        method counts for itself.
    explanation : str
        What was chosen, and why, in a line.
    confidence : float
        The probability that the whole partition is right (an adjusted Rand index of .8 or more), as measured on other
        tables; NaN for methods other than `MetricNCD`.
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
    row_confidence : array of float
        How much speaks for the discovered class of a row: the share of the weighted pipelines, or of the fits with
        other seeds. NaN for rows of no discovered class, and beyond the sample where only these fits can tell.
    runner_up : array of int
        The class for which most of the rest speaks; -1 if there is none.

    Examples
    --------
    >>> from ncdlib import discover, make_ncd_blobs
    >>> problem = make_ncd_blobs(random_state=0)
    >>> found = discover(problem.X, problem.y, method="ncd_kmeans", verbose=False)
    >>> list(found.to_frame().columns), len(found.profiles) == found.n_clusters
    (['label', 'discovered', 'p_known', 'confidence', 'runner_up'], True)
    """

    labels: NDArray[np.int64]
    n_clusters: int
    estimate: KEstimate | None
    explanation: str
    confidence: float
    stability: float
    profiles: list[ClassProfile]
    search: HiddenClassSearchCV | None
    notes: list[str]
    model: BaseEstimator | None
    preprocessor: TablePreprocessor
    known_or_new: KnownOrNew | None = field(repr=False)
    recognised: NDArray[np.bool_] = field(repr=False)
    outliers: NDArray[np.int64] = field(repr=False)
    row_confidence: NDArray[np.float64] = field(repr=False)
    runner_up: NDArray[np.int64] = field(repr=False)
    known: NDArray = field(repr=False)  # the known class of each row, None for rows of none
    index: pd.Index = field(repr=False)
    numbers: NDArray[np.float64] = field(repr=False)  # the rows as the model sees them
    edits: list[Edit] = field(default_factory=list, repr=False)  # the log of `rename`, `merge` and the like
    original: Discovery | None = field(default=None, repr=False)  # before any edit

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
            "discovered"; "p_known", the probability that an unlabelled row is of a known class; "confidence", how much
            speaks for the discovered class of a row; and "runner_up", the class for which most of the rest speaks.
        """
        discovered, outlier = self.labels >= 0, self.labels == OUTLIER
        label = np.array([None if c is None else str(c) for c in self.known], dtype=object)
        names = {profile.cluster: profile.name for profile in self.profiles}
        # A cluster may have no row in the sample that was learned from, and so no profile.
        label[discovered] = [names.get(cluster, "new (not in the sample)") for cluster in self.labels[discovered]]
        label[outlier] = [f"outlier group {group}" if group > 0 else "outlier" for group in self.outliers[outlier]]
        p_known = np.full(len(label), np.nan) if self.known_or_new is None else self.known_or_new.p_known.round(3)
        columns = {"label": label, "discovered": discovered, "p_known": p_known}
        columns["confidence"] = self.row_confidence.round(3)
        others = np.where(self.runner_up == self.labels, UNLABELED, self.runner_up)  # the two may have been merged
        columns["runner_up"] = np.array([names.get(cluster) for cluster in others], dtype=object)
        return pd.DataFrame(columns, index=self.index)

    def summary(self) -> pd.DataFrame:
        """Return one line for each discovered class."""
        return pd.DataFrame(
            {
                "class": [p.name for p in self.profiles],
                "rows": [p.size for p in self.profiles],
                "confidence": [round(p.confidence, 2) for p in self.profiles],
                "stability": [round(p.stability, 2) for p in self.profiles],
                "nearest known": [str(p.nearest_known) for p in self.profiles],
                "verdict": [p.verdict for p in self.profiles],
                "precision": [round(p.rule_precision, 2) for p in self.profiles],
                "recall": [round(p.rule_recall, 2) for p in self.profiles],
                "rule": [p.rule for p in self.profiles],
            }
        )

    def predict(self, X: ArrayLike | pd.DataFrame) -> NDArray[np.int64]:
        """Assign new rows, of none of the known classes, to the model's clusters, as they were before any edit.

        Where new rows may be of known classes or of none, use `apply`.
        """
        if self.model is None:
            raise ValueError("no class was discovered, so no row can be assigned to one")
        return self.model.predict(self.preprocessor.transform(X))

    def apply(self, X: ArrayLike | pd.DataFrame, *, reject: float = REJECT) -> pd.DataFrame:
        """Label new rows: each gets its known class, a discovered one, or "neither".

        Parameters
        ----------
        X : DataFrame or array
            With the columns that were learned from; other columns do no harm. A Dask DataFrame gives one of labels.
        reject : float, default=0.01
            The share of rows like the old ones that is turned away as "neither": the more, the stricter.

        Returns
        -------
        DataFrame
            "label"; whether the class is "discovered"; "confidence", the share of the old rows with as clear a vote
            that got back their own class (for "neither": the share of the old rows that are nearer to others);
            "runner_up", the next class. ``attrs["notes"]`` has what should be known, such as a drift.

        Examples
        --------
        >>> from ncdlib import discover, make_ncd_blobs
        >>> problem = make_ncd_blobs(random_state=0)
        >>> found = discover(problem.X, problem.y, method="ncd_kmeans", verbose=False)
        >>> new_rows = problem.X_test_novel.copy()
        >>> new_rows[0] = 1000
        >>> labelled = found.apply(new_rows)
        >>> labelled["label"][0], labelled["discovered"][1:].all().item()
        ('neither', True)
        """
        from ncdlib.own_data.apply import label_rows

        return label_rows(self.labeller, X, reject)

    @cached_property
    def labeller(self) -> Labeller:
        """What labels new rows; learned when it is first asked for."""
        from ncdlib.own_data.apply import Labeller

        return Labeller.learn(self)

    def save(self, path: str | os.PathLike) -> Path:
        """Write all of it to one ``.npz`` file (arrays and JSON, no pickle); read it with `ncdlib.load`.

        Examples
        --------
        >>> import tempfile
        >>> from ncdlib import discover, load, make_ncd_blobs
        >>> problem = make_ncd_blobs(random_state=0)
        >>> found = discover(problem.X, problem.y, method="ncd_kmeans", verbose=False)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     again = load(found.save(f"{folder}/result.npz"))
        >>> again.apply(problem.X_test_novel).equals(found.apply(problem.X_test_novel))
        True
        """
        from ncdlib.own_data.archive import pack

        return write_state(path, *pack(self))

    def rename(self, old: str, new: str) -> Discovery:
        """Return the discovery with another name for a discovered class.

        Like all edits, this changes nothing here, is kept in the `log`, and can be undone.

        Examples
        --------
        >>> from ncdlib import discover, make_ncd_blobs
        >>> problem = make_ncd_blobs(random_state=0)
        >>> found = discover(problem.X, problem.y, method="ncd_kmeans", verbose=False)
        >>> edited = found.rename("new 1", "stains").split("new 2").accept("stains")
        >>> [profile.name for profile in edited.profiles], edited.undo().n_clusters
        (['new 2.1', 'new 3', 'new 2.2'], 4)
        >>> edited.undo().log()["edit"].tolist()
        ["rename 'new 1' as 'stains'", "split 'new 2' into 2", "accept 'stains'", 'undo']
        """
        return edit(self, "rename", [old], name=new)

    def merge(self, *classes: str, name: str | None = None) -> Discovery:
        """Return the discovery with one class instead of several.

        It is called `name`, or as the first of them. If one of them is a known class, the others become rows of it.
        """
        return edit(self, "merge", classes, name=name)

    def split(self, name: str, pieces: int = 2) -> Discovery:
        """Return the discovery with a class parted into several, by k-means in the metric of the known classes."""
        return edit(self, "split", [name], pieces=pieces)

    def accept(self, old: str, name: str | None = None) -> Discovery:
        """Return the discovery with a discovered class taken as known, under its name or another one.

        The `next_labels` then have it, from which the next round learns.
        """
        return edit(self, "accept", [old], name=name)

    def undo(self) -> Discovery:
        """Return the discovery as it was before the last edit that is still in force; the log keeps both."""
        return edit(self, "undo")

    def log(self) -> pd.DataFrame:
        """Return all edits, the oldest first."""
        return pd.DataFrame({"when": [e.when for e in self.edits], "edit": [str(e) for e in self.edits]})

    def next_labels(self) -> NDArray:
        """Return the labels for the next round: those given and accepted, None for all other rows.

        Examples
        --------
        >>> from ncdlib import discover, make_ncd_blobs
        >>> problem = make_ncd_blobs(random_state=0)
        >>> found = discover(problem.X, problem.y, method="ncd_kmeans", verbose=False)
        >>> labels = found.accept("new 1", "stains").next_labels()
        >>> again = discover(problem.X, labels, method="ncd_kmeans", verbose=False)
        >>> again.n_clusters, "stains" in again.known
        (2, True)
        """
        return next_labels(self)

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
