"""Label new rows: of a known class, of a discovered one, or of neither, and tell whether they still fit.

A forest learns the classes of the old rows. Each of its trees leaves out some rows, so that old rows are judged as new
ones are: that says how much a vote is worth, and how far from the others a row of a class usually is. What is needed
is learned again from the saved rows with a fixed seed, so it is the same in each process.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm
from sklearn.ensemble import RandomForestClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.neighbors import NearestNeighbors

from ncdlib._io.checks import check_number, shorten
from ncdlib.own_data.known import sample_rows
from ncdlib.own_data.outliers import FAR, MAX_NEIGHBOURS_FROM, K
from ncdlib.own_data.prepare import TablePreprocessor, as_frame

if TYPE_CHECKING:
    from ncdlib.own_data.result import Discovery

NEITHER = "neither"
COLUMNS = {"label": "object", "discovered": "bool", "confidence": "float64", "runner_up": "object"}
N_TREES = 100
MAX_ROWS_LEARNED = 10_000
ROWS_OF_A_RARE_CLASS = 10  # that the sample keeps
MIN_ROWS_OF_A_CLASS = 100  # with fewer, the rows of all classes tell how sure it is that a row is of none
ROUNDING = 1e-6  # distances that differ by less are the same, in whatever pieces the rows came
LEVEL = 0.01  # the error level of the note on a drift
N_VALUES_NAMED = 3


@dataclass
class Fit:
    """How well new rows fit the old ones: what is added up over the pieces of a file."""

    n_rows: NDArray[np.int64]  # of each class that they are assigned to
    n_neither: int = 0
    nearer: float = 0.0  # sum over rows of the share of old rows that are farther than it from others
    labels: Counter[str] = field(default_factory=Counter)
    unseen: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, other: Fit) -> None:
        """Add another piece."""
        self.n_rows = self.n_rows + other.n_rows
        self.n_neither += other.n_neither
        self.nearer += other.nearer
        self.labels.update(other.labels)
        for column, values in other.unseen.items():
            self.unseen.setdefault(column, Counter()).update(values)


@dataclass(frozen=True, eq=False)
class Labeller:
    """What labels new rows.

    Attributes
    ----------
    preprocessor : TablePreprocessor
    names : array of str
        The classes, known ones first.
    n_known : int
    forest : RandomForestClassifier
        Its classes are positions among `names`.
    worth : IsotonicRegression
        From the share of the trees that vote for a class to the share of old rows that were right with such a vote.
    neighbours : NearestNeighbors
    distances : list of arrays
        For each class, how far its old rows are from their tenth neighbour, in rising order.
    all_distances : array
        The same for the rows of all classes.
    far : float
        A distance from which a row is of no class, however few rows there are.
    """

    preprocessor: TablePreprocessor
    names: NDArray
    n_known: int
    forest: RandomForestClassifier
    worth: IsotonicRegression
    neighbours: NearestNeighbors
    distances: list[NDArray[np.float64]]
    all_distances: NDArray[np.float64]
    far: float

    @classmethod
    def learn(cls, found: Discovery) -> Labeller:
        """Learn from the rows of a discovery that are of a class, or from a sample of them."""
        known = pd.Series(found.known, dtype=object).map(str, na_action="ignore")
        classes = sorted(known.dropna().unique())
        codes = pd.Index(classes, dtype=object).get_indexer(known)
        for position, profile in enumerate(found.profiles, start=len(classes)):
            codes[found.labels == profile.cluster] = position
        rows = np.flatnonzero(codes >= 0)
        if len(rows) > MAX_ROWS_LEARNED:
            rows = rows[sample_rows(codes[rows], MAX_ROWS_LEARNED, ROWS_OF_A_RARE_CLASS, 0)]
        numbers, codes = found.numbers[rows], codes[rows]
        forest = RandomForestClassifier(N_TREES, oob_score=True, random_state=0).fit(numbers, codes)
        votes = forest.oob_decision_function_
        assigned, share = forest.classes_[votes.argmax(axis=1)], votes.max(axis=1)
        # One row each at the ends: without a vote, none is right; and no vote is beyond doubt.
        ends = ([0.0, 1.0], [False, False])
        worth = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
        worth.fit(np.append(share, ends[0]), np.append(assigned == codes, ends[1]))
        neighbours, distance = _distances_of_the_old(numbers)
        return cls(
            found.preprocessor,
            np.array([*classes, *(profile.name for profile in found.profiles)], dtype=object),
            len(classes),
            forest,
            worth,
            neighbours,
            [np.sort(distance[assigned == code]) for code in range(len(classes) + len(found.profiles))],
            np.sort(distance),
            FAR * float(np.percentile(distance, 95)),
        )

    def label(self, table: pd.DataFrame, reject: float) -> tuple[pd.DataFrame, Fit]:
        """Label the rows of a table, and say how well they fit; each row by itself, whatever the others are."""
        fit = Fit(np.zeros(len(self.names), dtype=np.int64))
        if len(table) == 0:
            return pd.DataFrame({name: pd.Series(dtype=dtype) for name, dtype in COLUMNS.items()}), fit
        fit.unseen = {column: Counter(new) for column, new in self.preprocessor.unseen_levels(table).items()}
        numbers = self.preprocessor.transform(table)
        votes = self.forest.predict_proba(numbers)
        each = np.arange(len(table))
        best = votes.argmax(axis=1)
        code, share = self.forest.classes_[best], votes[each, best]
        votes[each, best] = -1
        second = votes.argmax(axis=1)
        runner_up = np.where(votes[each, second] > 0, self.names[self.forest.classes_[second]], None)
        distance = self.neighbours.kneighbors(numbers)[0][:, -1]
        farther, surprise = self._compare(code, distance)
        neither = distance > self._limits(reject)[0][code] * (1 + ROUNDING) + ROUNDING
        labels = np.where(neither, NEITHER, self.names[code])
        frame = pd.DataFrame(
            {
                "label": labels,
                "discovered": (code >= self.n_known) & ~neither,
                "confidence": np.where(neither, surprise, self.worth.predict(share)).round(3),
                "runner_up": np.where(neither, self.names[code], runner_up),
            },
            index=table.index,
        ).astype(COLUMNS)
        fit.n_rows = np.bincount(code, minlength=len(self.names))
        fit.n_neither, fit.nearer, fit.labels = int(neither.sum()), float(farther.sum()), Counter(labels.tolist())
        return frame, fit

    def notes(self, fit: Fit, reject: float) -> list[str]:
        """Say in words what should be known of rows that were labelled."""
        notes = []
        for column, values in fit.unseen.items():
            named = shorten(", ".join(repr(value) for value, _ in values.most_common(N_VALUES_NAMED)), 100)
            more = ", ..." if len(values) > N_VALUES_NAMED else ""
            notes.append(
                f"The column {column!r} has values that it did not have before: {named}{more} "
                f"({sum(values.values()):,} rows)."
            )
        return notes + self._note_on_drift(fit, reject)

    def _note_on_drift(self, fit: Fit, reject: float) -> list[str]:
        """Compare new rows with old ones that are assigned to the same classes, by two one-sided tests."""
        n = int(fit.n_rows.sum())
        if n == 0:
            return []
        old = np.array([len(some) for some in self.distances])
        there = (fit.n_rows > 0) & (old > 0)
        of_class, old, usual = fit.n_rows[there] / n, old[there], self._limits(reject)[1][there]
        uncertain = np.sum(of_class**2 * (1 / fit.n_rows[there] + 1 / old))
        usual = max(float(np.sum(of_class * usual)), 1 / len(self.all_distances))
        neither, nearer = fit.n_neither / n, fit.nearer / n
        z = max((neither - usual) / np.sqrt(uncertain * usual * (1 - usual)), (0.5 - nearer) / np.sqrt(uncertain / 12))
        p_value = min(1.0, 2 * norm.sf(z))
        if p_value > LEVEL:
            return []
        p = "< 0.001" if p_value < 0.001 else f"= {p_value:.3f}"
        return [
            f"The new rows fit worse than the old ones (p {p}): {neither:.1%} are neither, and {usual:.1%} of the old "
            f"ones would be; on average a new row is farther from others than {1 - nearer:.0%} of the old "
            "rows of its class. A drift, or new classes? Discover again with these rows."
        ]

    def _limits(self, reject: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return, for each class, the distance beyond which a row is of none, and the share of rows like the old ones.

        Where a class has too few rows to tell, the rows of all classes do.
        """
        limits, usual = np.full(len(self.distances), self.far), np.zeros(len(self.distances))
        for i, own in enumerate(self.distances):
            for old in (own, self.all_distances):
                n_turned_away = int(reject * (len(old) + 1))
                if n_turned_away:
                    limits[i] = min(limits[i], old[-n_turned_away])
                    break
            usual[i] = np.mean(own > limits[i]) if len(own) else 0
            if old is own and limits[i] < self.far:
                usual[i] = n_turned_away / (len(own) + 1)
        return limits, usual

    def _compare(self, code: NDArray, distance: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the share of old rows of its class that are farther than a row, ties being half; and of those nearer.

        The second one, a confidence, is never 1, and of all classes' rows where the class has few.
        """
        farther, nearer = np.full(len(code), 0.5), np.empty(len(code))
        slack = distance * ROUNDING + ROUNDING
        for one in np.unique(code):
            rows, own = code == one, self.distances[one]
            low, high = (distance + sign * slack for sign in (-1, 1))
            if len(own):
                n_nearer = (np.searchsorted(own, end[rows]) for end in (low, high))
                farther[rows] = 1 - sum(n_nearer) / (2 * len(own))
            old = own if len(own) >= MIN_ROWS_OF_A_CLASS else self.all_distances
            nearer[rows] = np.searchsorted(old, low[rows]) / (1 + len(old))
        return farther, nearer


def _distances_of_the_old(numbers: NDArray[np.float64]) -> tuple[NearestNeighbors, NDArray[np.float64]]:
    """Return what finds the tenth neighbour among some old rows, and how far it is from each old row."""
    sample = np.arange(len(numbers))
    if len(sample) > MAX_NEIGHBOURS_FROM:
        sample = np.random.default_rng(0).choice(sample, MAX_NEIGHBOURS_FROM, replace=False)
    k = min(K, len(sample) - 1)
    neighbours = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(numbers[sample])
    distances = neighbours.kneighbors(numbers, n_neighbors=k + 1)[0]
    distance = distances[:, k - 1]
    distance[sample] = distances[sample, k]  # where the row itself is the first
    return neighbours, distance


def label_rows(labeller: Labeller, X: ArrayLike | pd.DataFrame, reject: float) -> pd.DataFrame:
    """Label the rows of a table in memory, or of a Dask DataFrame; see `Discovery.apply`."""
    check_number("reject", reject, "[0, 1)")
    if hasattr(X, "map_partitions"):
        meta = labeller.label(pd.DataFrame(), reject)[0]
        return X.map_partitions(_label_only, labeller, reject, meta=meta)
    frame, fit = labeller.label(as_frame(X), reject)
    frame.attrs["notes"] = labeller.notes(fit, reject)
    return frame


def _label_only(table: pd.DataFrame, labeller: Labeller, reject: float) -> pd.DataFrame:
    return labeller.label(as_frame(table), reject)[0]
