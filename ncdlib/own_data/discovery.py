"""The whole procedure in one call, for one's own data: search, estimate the number of classes, fit, explain."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from inspect import signature
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from joblib import parallel_config
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, pairwise_distances
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_consistent_length

from ncdlib._io.checks import check_index, check_n_clusters, check_positive, check_seed, encode_labels, shorten
from ncdlib.clustering.validity import INDICES, KEstimate, estimate_n_clusters
from ncdlib.methods.registry import get_method
from ncdlib.own_data.table import Feature, TablePreprocessor, as_frame, as_labels, read_table
from ncdlib.problem import UNLABELED
from ncdlib.selection.hidden_classes import HiddenClassKFold
from ncdlib.selection.search import HiddenClassSearchCV, configure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MIN_CLASSES_TO_SEARCH = 3  # two to hide, and one to learn from
MIN_UNLABELED = 3  # fewer rows have no numbers of classes to compare
FEW_ROWS = 5  # a known class with fewer tells little when it is hidden
MAX_ROWS = 50_000
ROWS_OF_A_RARE_CLASS = 10  # that a sample keeps
MAX_ROWS_DRAWN = 3_000
UNSTABLE = 0.6  # a stability below this is worth a warning
RESULT_COLUMNS = ("ncd_label", "ncd_discovered")  # what a result adds to a table


@dataclass(frozen=True)
class Difference:
    """How a discovered class differs from all other rows in one feature.

    Attributes
    ----------
    feature : str
        A column, or "column is category".
    inside, outside : float
        Mean of the class and of all other rows, in the column's own unit; for a category, the share of rows.
    standardized : float
        Their difference in standard deviations of all rows.

    Examples
    --------
    >>> from ncdlib import discover, make_ncd_blobs
    >>> problem = make_ncd_blobs(random_state=0)
    >>> found = discover(problem.X, problem.y, method="ncd_kmeans", verbose=False)
    >>> strongest = found.profiles[0].differences[0]
    >>> (strongest.standardized > 0) == (strongest.inside > strongest.outside)
    True
    """

    feature: str
    inside: float
    outside: float
    standardized: float


@dataclass(frozen=True)
class ClassProfile:
    """What a discovered class is.

    Attributes
    ----------
    cluster : int
    name : str
    size : int
    share : float
        Of the unlabelled rows.
    stability : float
        How well the class is found again with other seeds: mean overlap (intersection over union) with the best
        matching class, between 0 and 1.
    nearest_known : object
        The known class with the nearest mean, in standardised features.
    differences : list of Difference
        The features that set it apart, the strongest first.
    rule : str
        Conditions that mark the class, from a shallow decision tree.
    rule_precision, rule_recall : float
        Share of the rows under the rule that are of the class; share of the class that is under the rule.

    Examples
    --------
    >>> from ncdlib import discover, make_ncd_blobs
    >>> problem = make_ncd_blobs(random_state=0)
    >>> found = discover(problem.X, problem.y, method="ncd_kmeans", verbose=False)
    >>> [profile.size for profile in found.profiles]
    [70, 70, 70]
    >>> round(sum(profile.share for profile in found.profiles), 6)
    1.0
    """

    cluster: int
    name: str
    size: int
    share: float
    stability: float
    nearest_known: Any
    differences: list[Difference]
    rule: str
    rule_precision: float
    rule_recall: float


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
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(1, 3, figsize=(15, 4.5), layout="constrained")
        self.estimate.plot(axes[0])
        axes[0].set_title("How many classes?")
        self._draw_map(axes[1])
        self._draw_differences(axes[2])
        return figure

    def _draw_map(self, ax) -> None:
        from ncdlib.plots import KNOWN_COLORS, NOVEL_COLORS

        rows = np.arange(len(self.labels))
        if len(rows) > MAX_ROWS_DRAWN:
            rows = np.random.default_rng(0).choice(len(rows), MAX_ROWS_DRAWN, replace=False)
        learned = hasattr(self.model, "transform")
        space = self.model.transform(self.numbers[rows]) if learned else self.numbers[rows]
        flat = np.zeros((len(rows), 2))
        n_components = min(2, *space.shape)
        flat[:, :n_components] = PCA(n_components, random_state=0).fit_transform(space)
        labels = self.labels[rows]
        known = labels == UNLABELED
        ax.scatter(*flat[known].T, s=4, color=KNOWN_COLORS[1], alpha=0.5, label="known classes")
        for profile in self.profiles:
            points = flat[labels == profile.cluster]
            color = NOVEL_COLORS[profile.cluster % len(NOVEL_COLORS)]
            ax.scatter(*points.T, s=6, color=color, alpha=0.7)
            if len(points):
                ax.annotate(profile.name, np.median(points, axis=0), weight="bold", ha="center")
        where = "in the learned space" if learned else "in the features"
        ax.set(title=f"Rows {where}", xlabel="two principal components", xticks=[], yticks=[])
        ax.legend(loc="best", markerscale=3, frameon=False)

    def _draw_differences(self, ax) -> None:
        strongest = list(dict.fromkeys(d.feature for p in self.profiles for d in p.differences[:3]))[:15]
        by_class = [{d.feature: d.standardized for d in p.differences} for p in self.profiles]
        values = np.array([[line.get(name, 0.0) for line in by_class] for name in strongest])
        limit = max(1.0, float(np.abs(values).max()))
        image = ax.imshow(values, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto")
        ax.set_xticks(range(len(self.profiles)), [p.name for p in self.profiles], rotation=45, ha="right")
        ax.set_yticks(range(len(strongest)), [_no_math(shorten(name)) for name in strongest])
        ax.set_title("What sets each class apart")
        ax.figure.colorbar(image, ax=ax, label="standard deviations from all other rows")

    def report(self, path: str | os.PathLike) -> Path:
        """Write everything into one HTML file that needs no other file and no network.

        Returns
        -------
        Path
            The file.
        """
        from ncdlib.own_data.report import write_report

        return write_report(self, Path(path))


def discover(
    X: ArrayLike | pd.DataFrame,
    y: ArrayLike,
    *,
    method: str | BaseEstimator = "pbn",
    n_trials: int = 20,
    n_clusters: int | str | None = None,
    param_distributions: Mapping[str, Any] | None = None,
    cv: HiddenClassKFold | int | None = None,
    n_seeds: int = 5,
    n_jobs: int | None = None,
    store: str | os.PathLike | None = None,
    max_rows: int = MAX_ROWS,
    random_state: int | None = 0,
    verbose: bool = True,
) -> Discovery:
    """Discover classes among the unlabelled rows of a table, and say what they are.

    The paper's full procedure (Section 6): hyperparameters are searched on hidden known classes, the number of
    new classes is estimated in the learned space, the method is fitted, and each discovered class is explained.

    Parameters
    ----------
    X : DataFrame or array of shape (n_rows, n_columns)
        Numbers and categories, with missing values allowed. Columns of free text or dates are refused by name.
    y : array of shape (n_rows,)
        The known classes; -1, None or NaN marks the rows to explain.
    method : {"pbn", "baseline", "tabularncd", "ncd_kmeans", "ncd_sc"} or estimator, default="pbn"
        What discovers. "ncd_kmeans" has no hyperparameters to search, and "ncd_sc" finds its own.
    n_trials : int, default=20
        Hyperparameter sets to try; 0 takes the method's defaults.
    n_clusters : int, str or None
        The number of classes to discover, or the validity index that estimates it; by default what an estimator given
        as `method` asks for itself, or else "silhouette".
    param_distributions : dict, default=None
        What to search; by default the method's ``search_space``.
    cv : HiddenClassKFold, int or None
        The folds of the search; by default five that hide half of the known classes.
    n_seeds : int, default=5
        Fits with other seeds, to see how stable the classes are.
    n_jobs : int or None
        Processes of the search. ``joblib.parallel_config(backend="dask")`` spreads it over a Dask cluster.
    store : path or None
        A file to resume the search from; see `HiddenClassSearchCV`.
    max_rows : int, default=50,000
        With more rows than this, all is learned from a random sample of so many, up to half of them unlabelled where
        there are enough; the other unlabelled rows are then assigned to the classes found. This bounds time and memory.
    random_state : int or None, default=0
    verbose : bool, default=True
        Show progress bars.

    Returns
    -------
    Discovery

    Examples
    --------
    >>> from ncdlib import discover, make_ncd_blobs
    >>> problem = make_ncd_blobs(random_state=0)
    >>> found = discover(problem.X, problem.y, method="ncd_kmeans", verbose=False)
    >>> found.n_clusters, round(found.stability, 2)
    (3, 1.0)
    >>> found.profiles[0].size + found.profiles[1].size + found.profiles[2].size == len(problem.X_novel)
    True
    """
    table = as_frame(X)
    codes, classes = encode_labels(y)
    check_consistent_length(table, codes)
    unlabeled = codes == UNLABELED
    if not unlabeled.any():
        raise ValueError("no row is unlabelled: mark the rows to explain with a missing label, or -1")
    if len(classes) < 2:
        found = "none" if len(classes) == 0 else f"one, {str(classes[0])!r}"
        raise ValueError(f"at least two known classes are needed to learn from, and there is {found}")
    check_positive(n_seeds=n_seeds, max_rows=max_rows)
    seed = check_seed(random_state)
    if max_rows < (fewest := ROWS_OF_A_RARE_CLASS * (len(classes) + 1)):
        raise ValueError(f"max_rows must be at least {fewest}, for some rows of each class; got {max_rows}")
    estimator = _make_estimator(method, verbose)
    if unlabeled.sum() < MIN_UNLABELED:
        raise ValueError(f"{unlabeled.sum()} unlabelled rows are too few to find classes in: {MIN_UNLABELED} at least")
    if n_clusters is None:
        n_clusters = _own_n_clusters(estimator)
    if isinstance(n_clusters, str):
        check_index(n_clusters, INDICES)
    else:
        check_n_clusters(n_clusters, int(unlabeled.sum()), rows="unlabelled rows")
    preprocessor = TablePreprocessor().fit(table)
    all_numbers, all_codes = preprocessor.transform(table), codes
    notes = list(preprocessor.notes_)
    learned = slice(None)
    if len(table) > max_rows:
        learned = _sample(codes, max_rows, seed)
        n_learned = np.sum(codes[learned] == UNLABELED)
        notes.append(
            f"Learned from a random sample of {max_rows:,} of the {len(table):,} rows, with {n_learned:,} of the "
            f"{unlabeled.sum():,} unlabelled ones."
        )
    numbers, codes = all_numbers[learned], all_codes[learned]

    if param_distributions is None and hasattr(estimator, "search_space"):
        param_distributions = estimator.search_space(numbers.shape[1])
    search = None
    if not param_distributions:
        itself = "finds its hyperparameters itself, on the known classes" if "s_min" in estimator.get_params() else ""
        notes.append(f"{type(estimator).__name__} {itself or 'needs no search for hyperparameters'}.")
    elif n_trials == 0:
        notes.append("No search was asked for: the method's default hyperparameters were used.")
    elif len(classes) < MIN_CLASSES_TO_SEARCH:
        notes.append(
            f"The method's default hyperparameters were used: a search hides known classes, "
            f"which takes at least {MIN_CLASSES_TO_SEARCH} of them, and there are {len(classes)}."
        )
    else:
        few = [str(classes[c]) for c in np.flatnonzero(np.bincount(codes[codes != UNLABELED]) < FEW_ROWS)]
        if few:
            notes.append(
                f"Known classes of fewer than {FEW_ROWS} rows tell the search little where it hides them: "
                f"{shorten(', '.join(few), 200)}."
            )
        search = HiddenClassSearchCV(
            estimator,
            param_distributions,
            n_iter=n_trials,
            cv=cv,
            n_clusters=None if isinstance(n_clusters, str) else n_clusters,
            index=n_clusters if isinstance(n_clusters, str) else None,
            both_settings=False,
            race=None,  # it takes about seven times as long
            refit=False,
            n_jobs=n_jobs,
            random_state=random_state,
            store=store,
            verbose=verbose,
        ).fit(numbers, codes)
        estimator.set_params(**search.best_params_)
    if search is None and store is not None:
        notes.append(f"There was no search, and nothing to store in {os.fspath(store)}.")

    estimator = configure(estimator, {"random_state": seed})
    estimate = _estimate(estimator, numbers, codes, n_clusters, seed)
    k = estimate.n_clusters if isinstance(n_clusters, str) else n_clusters
    if isinstance(n_clusters, str) and k == estimate.k_range[-1] and k < np.sum(codes == UNLABELED) - 1:
        notes.append(f"The estimate, {k} classes, is the largest number that was tried: there may be more.")
    estimator.set_params(n_clusters=k)
    model = clone(estimator).fit(numbers, codes)
    refits = _refit(estimator, numbers, codes, [(seed + 1 + i) % 2**32 for i in range(n_seeds)])
    if len(refits) < n_seeds:
        notes.append(f"{n_seeds - len(refits)} of {n_seeds} fits with other seeds diverged.")
    if np.any(model.labels_[codes != UNLABELED] != UNLABELED):
        raise ValueError(
            f"{type(model).__name__} puts labelled rows into clusters: discover needs a method that learns from them "
            "and clusters the others, such as NCDKMeans"
        )
    partitions = [refit[codes == UNLABELED] for refit in (model.labels_, *refits)]
    pairs = [adjusted_rand_score(a, b) for a, b in combinations(partitions, 2)]
    stability = float(np.mean(pairs)) if pairs else np.nan
    if stability < UNSTABLE:
        notes.append("Fits with other seeds give quite different classes: read the result as a hint.")
    labels = model.labels_
    if len(labels) < len(table):
        labels = np.full(len(table), UNLABELED)
        labels[unlabeled] = model.predict(all_numbers[unlabeled])
        labels[learned] = model.labels_
    profiles = _profiles(model.labels_, codes, classes, preprocessor, numbers, partitions[1:], labels, all_numbers)
    if len(profiles) < k:
        notes.append(f"{type(model).__name__} left {k - len(profiles)} of its {k} clusters empty.")
    known = np.full(len(table), None, dtype=object)
    known[~unlabeled] = classes[all_codes[~unlabeled]]
    return Discovery(
        labels=labels,
        n_clusters=len(profiles),
        estimate=estimate,
        stability=stability,
        profiles=profiles,
        search=search,
        notes=notes,
        model=model,
        preprocessor=preprocessor,
        known=known,
        index=table.index,
        numbers=all_numbers,
    )


def discover_file(
    path: str | os.PathLike,
    label_column: str,
    *,
    drop: Sequence[str] = (),
    dask: str | None = None,
    **options: Any,
) -> tuple[pd.DataFrame, Discovery]:
    """Read a CSV or Parquet file and discover classes among the rows whose label is missing or -1.

    Parameters
    ----------
    path : path
    label_column : str
        The column with the known classes.
    drop : sequence of str
        Columns to leave out.
    dask : str or None
        Address of the scheduler of a Dask cluster to spread the search over.
    **options
        Passed on to `discover`.

    Returns
    -------
    table : DataFrame
        The file.
    found : Discovery

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from ncdlib import make_ncd_blobs
    >>> from ncdlib.own_data.discovery import discover_file
    >>> problem = make_ncd_blobs(random_state=0)
    >>> rows = pd.DataFrame(problem.X).add_prefix("feature_").assign(kind=problem.y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "rows.csv")
    ...     rows.to_csv(path, index=False)
    ...     table, found = discover_file(path, "kind", method="ncd_kmeans", verbose=False)
    >>> len(table) == len(rows), found.n_clusters
    (True, 3)
    """
    table = read_table(path, label_column)
    for name in (label_column, *drop):
        if name not in table:
            close = get_close_matches(name, table.columns, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has {shorten(', '.join(table.columns), 200)}"
            raise ValueError(f"{path} has no column {name!r}: {hint}")
    for name in RESULT_COLUMNS:
        if name in table and name not in drop:
            way_out = "" if name == label_column else f", or leave it out (--drop {name})"
            raise ValueError(f"{path} has a column {name!r}, as a result has: rename it{way_out}")
    labels = as_labels(table[label_column])
    try:
        encode_labels(labels)
    except TypeError as error:
        raise ValueError(f"the column {label_column!r}: {error}") from error
    with _dask_cluster(dask):
        found = discover(table.drop(columns=[label_column, *drop]), labels, **options)
    return table, found


@contextmanager
def _dask_cluster(address: str | None) -> Iterator[None]:
    if address is None:
        yield
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise ValueError("a Dask cluster needs Dask: pip install 'dask[distributed]'") from error
    with Client(address, timeout=10), parallel_config(backend="dask"):
        yield


def _sample(codes: NDArray[np.int64], n_rows: int, random_state: int) -> NDArray[np.int64]:
    """Random rows, in their order; a rare class keeps some, and the unlabelled rows up to half of the places."""
    order = np.random.default_rng(random_state).permutation(len(codes))
    rank = pd.Series(order).groupby(codes[order]).cumcount().to_numpy()  # of each row among those of its class
    others = ROWS_OF_A_RARE_CLASS * len(np.unique(codes[codes != UNLABELED]))
    kept = np.where(codes[order] == UNLABELED, min(n_rows // 2, n_rows - others), ROWS_OF_A_RARE_CLASS)
    return np.sort(order[np.argsort(rank >= kept, kind="stable")[:n_rows]])


def _own_n_clusters(estimator: BaseEstimator) -> int | str:
    """What an estimator was told, where that is not what its class says of itself."""
    parameter = signature(type(estimator)).parameters.get("n_clusters")
    untold = parameter is None or estimator.n_clusters == parameter.default
    return "silhouette" if untold else estimator.n_clusters


def _make_estimator(method: str | BaseEstimator, verbose: bool) -> BaseEstimator:
    if not isinstance(method, str):
        return clone(method)
    return configure(get_method(method).load()(), {"verbose": verbose})


def _estimate(
    estimator: BaseEstimator, X: NDArray, codes: NDArray, n_clusters: int | str, random_state: int
) -> KEstimate:
    """The number of classes, in the space the method learns if it does so without that number (Section 5)."""
    from ncdlib.methods.spectral import NCDSpectralClustering

    novel = codes == UNLABELED
    index = n_clusters if isinstance(n_clusters, str) else "silhouette"
    arguments: dict[str, Any] = {"index": index, "random_state": random_state}
    if hasattr(estimator, "estimate_n_clusters"):
        trained = clone(estimator).set_params(n_clusters=2).fit(X, codes)  # any number: it does not matter here
        known = {"X_known": X[~novel], "y_known": codes[~novel]} if index == "km_acc" else {}
        return trained.estimate_n_clusters(X[novel], **arguments, **known)
    if isinstance(estimator, NCDSpectralClustering):
        X = clone(estimator).set_params(n_clusters=n_clusters).fit(X, codes).embedding_
    return estimate_n_clusters(X[novel], **arguments, X_known=X[~novel], y_known=codes[~novel])


def _refit(estimator: BaseEstimator, X: NDArray, codes: NDArray, seeds: list[int]) -> list[NDArray]:
    """Labels by fits that differ in the seed alone."""
    if hasattr(estimator, "fit_many"):
        models = estimator.fit_many(X, codes, [{} for _ in seeds], seeds)
        return [model.labels_ for model in models if not model.diverged_]
    return [configure(clone(estimator), {"random_state": seed}).fit(X, codes).labels_ for seed in seeds]


def _profiles(
    labels: NDArray,
    codes: NDArray,
    classes: NDArray,
    preprocessor: TablePreprocessor,
    numbers: NDArray,
    refits: Sequence[NDArray],
    all_labels: NDArray,
    all_numbers: NDArray,
) -> list[ClassProfile]:
    """What each class is, from the rows that were learned from; sizes, and how good a rule is, from all rows."""
    unlabeled = codes == UNLABELED
    n_unlabeled = int(np.sum(all_labels != UNLABELED))
    features = preprocessor.features_
    units = preprocessor.readable(numbers)
    spread = units.std(axis=0)
    known_means = np.array([numbers[codes == c].mean(axis=0) for c in range(len(classes))])
    first_name = _first_free_name(classes)
    profiles = []
    for cluster in np.unique(labels[unlabeled]):
        member = labels == cluster
        inside, outside = units[member].mean(axis=0), units[~member].mean(axis=0)
        standardized = np.divide(inside - outside, spread, out=np.zeros_like(spread), where=spread > 0)
        distances = pairwise_distances(numbers[member].mean(axis=0, keepdims=True), known_means)[0]
        bounds = _rule(units, member)
        under = np.ones(len(all_numbers), dtype=bool)
        for feature, (above, at_most) in bounds.items():
            values = preprocessor.readable_feature(all_numbers, feature)
            under &= (values > above) & (values <= at_most)
        all_members = all_labels == cluster
        hits = int(np.sum(under & all_members))
        profiles.append(
            ClassProfile(
                cluster=int(cluster),
                name=f"new {first_name + cluster}",
                size=int(all_members.sum()),
                share=float(all_members.sum() / n_unlabeled),
                stability=float(np.mean([_best_overlap(member[unlabeled], other) for other in refits])),
                nearest_known=classes[distances.argmin()],
                differences=[
                    Difference(str(features[i]), float(inside[i]), float(outside[i]), float(standardized[i]))
                    for i in np.argsort(-np.abs(standardized), kind="stable")
                ],
                rule=_in_words(bounds, features) or "no short rule",
                rule_precision=hits / max(int(under.sum()), 1),
                rule_recall=hits / int(all_members.sum()),
            )
        )
    return profiles


def _first_free_name(classes: NDArray) -> int:
    """The number of the first discovered class: in a second round, "new 1" may be known already."""
    known = (re.fullmatch(r"new (\d+)", str(name)) for name in classes)
    return 1 + max((int(match[1]) for match in known if match), default=0)


def _best_overlap(member: NDArray[np.bool_], partition: NDArray) -> float:
    """Intersection over union with the cluster of another partition that matches best."""
    candidates = [partition == cluster for cluster in np.unique(partition[member])]
    return max(np.sum(member & c) / np.sum(member | c) for c in candidates)


def _rule(units: NDArray, member: NDArray[np.bool_]) -> dict[int, tuple[float, float]]:
    """The leaf of a shallow tree that marks the class best: the bounds (above, at most) of some features.

    Each bound has no more digits than it takes to tell the same rows apart: what is printed is what is measured.
    """
    tree = DecisionTreeClassifier(max_depth=3, min_samples_leaf=2, class_weight="balanced", random_state=0)
    leaf_of = tree.fit(units, member).apply(units)
    leaves, position = np.unique(leaf_of, return_inverse=True)
    hits = np.bincount(position, weights=member)
    best = leaves[int(np.argmax(hits / (np.bincount(position) + member.sum())))]  # half of the F1 score
    bounds: dict[int, tuple[float, float]] = {}
    node, nodes = 0, tree.tree_
    while node != best:
        feature = int(nodes.feature[node])
        threshold = _short(nodes.threshold[node], units[:, feature])
        above, at_most = bounds.get(feature, (-np.inf, np.inf))
        if _reaches(nodes, nodes.children_left[node], best):
            bounds[feature] = (above, min(at_most, threshold))
            node = nodes.children_left[node]
        else:
            bounds[feature] = (max(above, threshold), at_most)
            node = nodes.children_right[node]
    return bounds


def _short(threshold: float, values: NDArray) -> float:
    """The number with the fewest digits, three or more, that is on the same side of all values."""
    below = values <= threshold
    for digits in range(3, 17):
        rounded = float(f"{threshold:.{digits}g}")
        if np.array_equal(values <= rounded, below):
            return rounded
    return float(threshold)


def _reaches(nodes: Any, node: int, leaf: int) -> bool:
    if node == leaf:
        return True
    left, right = nodes.children_left[node], nodes.children_right[node]
    return bool(left >= 0) and (_reaches(nodes, left, leaf) or _reaches(nodes, right, leaf))


def _in_words(bounds: Mapping[int, tuple[float, float]], features: list[Feature]) -> str:
    """Bounds (above, at most) of some features as conditions."""
    parts = []
    for number, (above, at_most) in bounds.items():
        column, category = features[number]
        low, high = (np.format_float_positional(bound, trim="-") for bound in (above, at_most))
        if category is not None:
            parts.append(f"{column} is {'' if np.isfinite(above) else 'not '}{category}")
        elif np.isinf(above):
            parts.append(f"{column} <= {high}")
        elif np.isinf(at_most):
            parts.append(f"{column} > {low}")
        else:
            parts.append(f"{low} < {column} <= {high}")
    return " and ".join(parts)


def _no_math(text: str) -> str:
    """A name as matplotlib should show it: a dollar sign is a dollar sign."""
    return text.replace("$", r"\$")
