"""The whole procedure in one call, for one's own data: prepare, set aside, search, count, fit, explain."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import check_consistent_length
from tqdm import tqdm

from ncdlib._io.checks import check_index, check_n_clusters, check_positive, check_seed, encode_labels, shorten
from ncdlib._io.dask_cluster import dask_cluster
from ncdlib.clustering.validity import INDICES, KEstimate
from ncdlib.methods.registry import get_method
from ncdlib.own_data.audit import audit_columns
from ncdlib.own_data.confidence import confidence_of_classes, confidence_of_rows
from ncdlib.own_data.count import notes_on_other_counts, notes_on_the_number, own_n_clusters, prepare_count
from ncdlib.own_data.explain import ClassProfile, describe
from ncdlib.own_data.known import (
    FEW_KNOWN,
    LEVEL,
    KnownOrNew,
    sample_rows,
    share_that_looks_known,
    tell_known_from_new,
)
from ncdlib.own_data.outliers import find_outliers
from ncdlib.own_data.prepare import TablePreprocessor, as_frame, check_columns
from ncdlib.own_data.read import as_labels, read_table
from ncdlib.own_data.result import RESULT_COLUMNS, Discovery
from ncdlib.own_data.rows import OUTLIER, Rows
from ncdlib.problem import UNLABELED
from ncdlib.selection.hidden_classes import HiddenClassKFold
from ncdlib.selection.search import HiddenClassSearchCV, configure

MIN_CLASSES_TO_SEARCH = 3  # two to hide, and one to learn from
MIN_UNLABELED = 3  # fewer rows have no numbers of classes to compare
FEW_ROWS = 5  # a known class with fewer tells little when it is hidden
MAX_ROWS = 50_000
ROWS_OF_A_RARE_CLASS = 10  # that a sample keeps
RECOGNISED_FROM = 0.4  # p_known: a known row taken as new makes a false class, a new row taken as known is only lost
UNSTABLE = 0.6  # a stability below this is worth a warning


def discover(
    X: ArrayLike | pd.DataFrame,
    y: ArrayLike,
    *,
    method: str | BaseEstimator = "auto",
    n_trials: int = 20,
    n_clusters: int | str | None = None,
    param_distributions: Mapping[str, Any] | None = None,
    cv: HiddenClassKFold | int | None = None,
    n_seeds: int = 5,
    n_jobs: int | None = None,
    store: str | os.PathLike | None = None,
    k_max: int | None = None,
    unlabeled: Literal["auto", "new", "mixed"] = "auto",
    keep: Sequence[str] = (),
    max_rows: int = MAX_ROWS,
    random_state: int | None = 0,
    verbose: bool = True,
) -> Discovery:
    """Discover classes among the unlabelled rows of a table, and say what they are.

    Unlabelled rows of known classes and outliers are set aside. What remains is clustered and counted by `MetricNCD`,
    a consensus of many clusterings that are weighed on hidden known classes. Each class found is explained, with how
    sure it is. With a method of the paper, its full procedure is gone through (Section 6): hyperparameters are
    searched on hidden known classes, and a validity index counts the new ones in the learned space.

    Parameters
    ----------
    X : DataFrame or array of shape (n_rows, n_columns)
        Numbers and categories, with missing values allowed. Columns of free text or dates are refused by name.
    y : array of shape (n_rows,)
        The known classes; -1, None or NaN marks the rows to explain.
    method : {"auto", "metric", "pbn", "baseline", "tabularncd", "ncd_kmeans", "ncd_sc"} or estimator, default="auto"
        What discovers. "auto" is "metric", `MetricNCD`. It has no hyperparameters to search, like "ncd_kmeans";
        "ncd_sc" finds its own.
    n_trials : int, default=20
        Hyperparameter sets to try; 0 takes the method's defaults.
    n_clusters : int, str or None
        The number of classes to discover, or the validity index that estimates it; by default what an estimator given
        as `method` asks for itself, or else the method's own count ("auto"), or "silhouette" where it has none.
    param_distributions : dict, default=None
        What to search; by default the method's ``search_space``.
    cv : HiddenClassKFold, int or None
        The folds of the search; by default five that hide half of the known classes.
    n_seeds : int, default=5
        Fits with other seeds, so other samples and starts, to see how stable the classes are.
    n_jobs : int or None
        Processes of the search. ``joblib.parallel_config(backend="dask")`` spreads it over a Dask cluster.
    store : path or None
        A file to resume the search from; see `HiddenClassSearchCV`.
    k_max : int or None
        The largest number of classes to try; by default so many that a class has five rows, and 30 for an index.
    unlabeled : {"auto", "new", "mixed"}, default="auto"
        What the unlabelled rows are: of new classes all of them, or partly of known ones. With "mixed", rows that are
        more likely of a known class get its label, and the rest is discovered; if a test finds no sign of new classes,
        none is claimed. "auto" decides, and says so in the notes.
    keep : sequence of str
        Columns to take as they are, though they look like ids, times, copies of the labels, or text.
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
    >>> found = discover(problem.X, problem.y, verbose=False)
    >>> found.n_clusters, round(found.stability, 2)
    (3, 1.0)
    >>> found.explanation.split(";")[0]
    '3 novel classes (counted'
    >>> found.profiles[0].size + found.profiles[1].size + found.profiles[2].size == len(problem.X_novel)
    True
    """
    seed = check_seed(random_state)
    check_positive(n_seeds=n_seeds, max_rows=max_rows, **({} if k_max is None else {"k_max": k_max}))
    estimator = _make_estimator(method, verbose)
    if n_clusters is None or n_clusters == "auto":
        n_clusters = own_n_clusters(estimator)
    if unlabeled not in ("auto", "new", "mixed"):
        raise ValueError(f"unlabeled must be 'auto', 'new' or 'mixed', got {unlabeled!r}")

    progress = _Progress(verbose and not hasattr(estimator, "search_space"), n_steps=4 + n_seeds)  # a search has a bar
    rows = _prepare(X, y, n_clusters, keep, max_rows, seed)
    progress("known or new?")
    rows = _set_aside(rows, unlabeled, n_clusters, seed)
    progress("a first answer")
    if not np.any(rows.codes == UNLABELED):
        progress("done")
        return _nothing_new(rows)
    search = _search(
        estimator,
        rows,
        n_clusters,
        n_trials,
        param_distributions,
        cv=cv,
        n_jobs=n_jobs,
        store=store,
        random_state=random_state,
        verbose=verbose,
    )
    estimator = configure(estimator, {"random_state": seed})
    if search is not None:
        estimator.set_params(**search.best_params_)
    estimate = prepare_count(estimator, rows, n_clusters, k_max, seed)
    model, refits = _fit(estimator, rows, [(seed + 1 + i) % 2**32 for i in range(n_seeds)], progress)
    if n_clusters == "auto":
        estimate = model.votes_
        rows.notes.extend(notes_on_other_counts(model.n_clusters_, refits))
    found = _explain(model, refits, rows, estimate, search, estimated=isinstance(n_clusters, str))
    progress("done")
    return found


class _Progress:
    """A progress bar that says what is done next."""

    def __init__(self, shown: bool, n_steps: int) -> None:
        self.bar = tqdm(total=n_steps, desc="discover: columns", unit="step", delay=0.5, disable=not shown)

    def __call__(self, upcoming: str) -> None:
        """End a step, and name the next one."""
        self.bar.set_description_str(f"discover: {upcoming}", refresh=False)
        self.bar.update()
        if upcoming == "done":
            self.bar.close()


def _prepare(
    X: ArrayLike | pd.DataFrame, y: ArrayLike, n_clusters: int | str, keep: Sequence[str], max_rows: int, seed: int
) -> Rows:
    """Read the table and its labels, turn them into numbers, and choose the rows to learn from."""
    table = as_frame(X)
    codes, classes = encode_labels(y)
    check_consistent_length(table, codes)
    n_unlabeled = int(np.sum(codes == UNLABELED))
    if n_unlabeled == 0:
        raise ValueError("no row is unlabelled: mark the rows to explain with a missing label, or -1")
    if len(classes) < 2:
        found = "none" if len(classes) == 0 else f"one, {str(classes[0])!r}"
        raise ValueError(f"at least two known classes are needed to learn from, and there is {found}")
    if max_rows < (fewest := ROWS_OF_A_RARE_CLASS * (len(classes) + 1)):
        raise ValueError(f"max_rows must be at least {fewest}, for some rows of each class; got {max_rows}")
    if n_unlabeled < MIN_UNLABELED:
        raise ValueError(f"{n_unlabeled} unlabelled rows are too few to find classes in: {MIN_UNLABELED} at least")
    if isinstance(n_clusters, str) and n_clusters != "auto":
        check_index(n_clusters, INDICES)
    elif n_clusters != "auto":
        check_n_clusters(n_clusters, n_unlabeled, rows="unlabelled rows")
    check_columns(keep, table.columns, "the table")
    audit = audit_columns(table, codes, keep)
    preprocessor = TablePreprocessor(audit.left_out, audit.marks, keep).fit(table)
    notes = [*audit.notes, *preprocessor.notes_]
    learned = np.arange(len(table))
    if len(table) > max_rows:
        learned = sample_rows(codes, max_rows, ROWS_OF_A_RARE_CLASS, seed)
        n_learned = np.sum(codes[learned] == UNLABELED)
        notes.append(
            f"Learned from a random sample of {max_rows:,} of the {len(table):,} rows, with {n_learned:,} of the "
            f"{n_unlabeled:,} unlabelled ones."
        )
    numbers = preprocessor.transform(table)
    return Rows(
        preprocessor,
        classes,
        numbers,
        codes,
        learned,
        notes,
        table.index,
        np.full(len(table), -1),
        np.full(len(table), False),
    )


def _set_aside(rows: Rows, unlabeled: str, n_clusters: int | str, seed: int) -> Rows:
    """Set aside the outliers, and the unlabelled rows of known classes where there may be some."""
    outliers = find_outliers(rows.all_numbers, rows.all_codes == UNLABELED, seed)
    rows = replace(rows, all_codes=np.where(outliers >= 0, OUTLIER, rows.all_codes), outliers=outliers)
    rows = replace(rows, learned=rows.learned[rows.codes != OUTLIER])
    rows.notes.extend(_notes_on_outliers(outliers, rows.index))
    told = tell_known_from_new(rows.numbers, rows.codes, seed)
    if told is None:
        if unlabeled != "new":
            rows.notes.append("Too few rows to tell whether some are of known classes: all were taken as new.")
        return rows
    decision, note = _decide(told, unlabeled, rows, seed)
    rows.notes.extend(note)
    everywhere = rows.all_codes != OUTLIER
    if decision == "new" or len(rows.learned) == everywhere.sum():
        everywhere = np.zeros(len(everywhere), dtype=bool)
        everywhere[rows.learned] = True
    else:  # rows beyond the sample have to be told apart as well
        told = tell_known_from_new(rows.all_numbers[everywhere], rows.all_codes[everywhere], seed)
    p_known, nearest = np.full(len(everywhere), np.nan), np.full(len(everywhere), UNLABELED)
    p_known[everywhere], nearest[everywhere] = told.p_known, told.nearest
    told = replace(told, p_known=p_known, nearest=nearest)
    least = {"new": np.inf, "mixed": RECOGNISED_FROM, "known": -np.inf}[decision]
    recognised = p_known > least  # NaN is not
    too_few = MIN_UNLABELED if isinstance(n_clusters, str) else max(n_clusters, MIN_UNLABELED)
    remaining = (rows.all_codes == UNLABELED) & ~recognised
    if decision == "mixed" and remaining[rows.learned].sum() < too_few:
        rows.notes.append(f"Only {remaining.sum()} rows look new, too few to find classes in: none is claimed.")
        recognised |= remaining
    codes = np.where(recognised, nearest, rows.all_codes)
    return replace(
        rows,
        all_codes=codes,
        learned=rows.learned[~recognised[rows.learned]],
        recognised=recognised,
        known_or_new=told,
    )


def _notes_on_outliers(outliers: NDArray[np.int64], index: pd.Index) -> list[str]:
    notes = []
    if n_outliers := int(np.sum(outliers >= 0)):
        rows = "row is" if n_outliers == 1 else "rows are"
        which = shorten(", ".join(map(str, index[outliers >= 0])), 80)
        notes.append(f"{n_outliers} unlabelled {rows} far from all others, and of no class: {which}.")
    for group in range(1, outliers.max() + 1):
        n_rows = int(np.sum(outliers == group))
        notes.append(f"{n_rows} of them are near each other (outlier group {group}): a rare class?")
    return notes


def _decide(told: KnownOrNew, unlabeled: str, rows: Rows, seed: int) -> tuple[str, list[str]]:
    """Decide whether the unlabelled rows are "new", "mixed" or "known", and say why."""
    about = f"About {told.share:.0%} of the unlabelled rows look like rows of known classes"
    if told.p_value > LEVEL:
        no_sign = f"The unlabelled rows show no sign of a new class (p = {told.p_value:.2f})"
        if unlabeled == "new":
            return "new", [f"{no_sign}: what follows may be parts of known classes."]
        return "known", [
            f"{no_sign}, so none is claimed: each row has the label of the known class that it resembles most. Where "
            f"there is none, this test finds new classes in at most {LEVEL:.0%} of tables."
        ]
    if unlabeled == "mixed":
        return "mixed", [f"{about}: those with a p_known above {RECOGNISED_FROM} have their known label."]
    if told.share <= FEW_KNOWN:
        return "new", []
    if unlabeled == "new":
        return "new", [f"{about}: unlabeled='mixed' (--mixed) gives them their known label."]
    if_new = share_that_looks_known(rows.numbers, rows.codes, seed)
    if np.isfinite(if_new):
        about += f" ({if_new:.0%} of hidden classes' rows do)"
    if told.share <= FEW_KNOWN + np.nan_to_num(if_new):
        return "new", [f"{about}: all were taken as new, for rows of new classes would look so, too."]
    return "mixed", [
        f"{about}: those with a p_known above {RECOGNISED_FROM} have their known label. "
        "unlabeled='new' (--no-mixed) takes all rows as new."
    ]


def _search(
    estimator: BaseEstimator,
    rows: Rows,
    n_clusters: int | str,
    n_trials: int,
    param_distributions: Mapping[str, Any] | None,
    **options: Any,
) -> HiddenClassSearchCV | None:
    """Search hyperparameters on hidden known classes, or note why there is nothing to search."""
    if param_distributions is None and hasattr(estimator, "search_space"):
        param_distributions = estimator.search_space(rows.numbers.shape[1])
    if reason := _why_no_search(estimator, param_distributions, n_trials, rows.classes):
        rows.notes.append(reason)
        if options["store"] is not None:
            rows.notes.append(f"There was no search, and nothing to store in {os.fspath(options['store'])}.")
        return None
    few = rows.classes[np.bincount(rows.codes[rows.codes != UNLABELED]) < FEW_ROWS]
    if len(few):
        rows.notes.append(
            f"Known classes of fewer than {FEW_ROWS} rows tell the search little where it hides them: "
            f"{shorten(', '.join(map(str, few)), 200)}."
        )
    return HiddenClassSearchCV(
        estimator,
        param_distributions,
        n_iter=n_trials,
        n_clusters=None if isinstance(n_clusters, str) else n_clusters,
        index=n_clusters if isinstance(n_clusters, str) else None,
        both_settings=False,
        race=None,  # it takes about seven times as long
        refit=False,
        **options,
    ).fit(rows.numbers, rows.codes)


def _why_no_search(
    estimator: BaseEstimator, param_distributions: Mapping[str, Any] | None, n_trials: int, classes: NDArray
) -> str | None:
    if not param_distributions:
        itself = "finds its hyperparameters itself, on the known classes" if "s_min" in estimator.get_params() else ""
        return f"{type(estimator).__name__} {itself or 'needs no search for hyperparameters'}."
    if n_trials == 0:
        return "No search was asked for: the method's default hyperparameters were used."
    if len(classes) < MIN_CLASSES_TO_SEARCH:
        return (
            f"The method's default hyperparameters were used: a search hides known classes, "
            f"which takes at least {MIN_CLASSES_TO_SEARCH} of them, and there are {len(classes)}."
        )
    return None


def _fit(
    estimator: BaseEstimator, rows: Rows, seeds: list[int], progress: Callable[[str], None]
) -> tuple[BaseEstimator, list[NDArray[np.int64]]]:
    """Fit the method, and again with other seeds: the model, and how the others divide the unlabelled rows."""
    X, codes = rows.numbers, rows.codes
    unlabeled = codes == UNLABELED
    model = clone(estimator).fit(X, codes)
    progress("how stable?")
    if np.any(model.labels_[~unlabeled] != UNLABELED):
        raise ValueError(
            f"{type(model).__name__} puts labelled rows into clusters: discover needs a method that learns from them "
            "and clusters the others, such as NCDKMeans"
        )
    if hasattr(estimator, "fit_many"):
        others = [other for other in estimator.fit_many(X, codes, [{} for _ in seeds], seeds) if not other.diverged_]
    else:
        others = []
        for i, seed in enumerate(seeds):
            others.append(configure(clone(estimator), {"random_state": seed}).fit(X, codes))
            progress("how stable?" if i < len(seeds) - 1 else "what are they?")
    if len(others) < len(seeds):
        rows.notes.append(f"{len(seeds) - len(others)} of {len(seeds)} fits with other seeds diverged.")
    return model, [other.labels_[unlabeled] for other in others]


def _explain(
    model: BaseEstimator,
    refits: list[NDArray[np.int64]],
    rows: Rows,
    estimate: KEstimate | None,
    search: HiddenClassSearchCV | None,
    *,
    estimated: bool,
) -> Discovery:
    """Assign all unlabelled rows to the classes found, and say how stable each class is and what it is."""
    partitions = [model.labels_[rows.codes == UNLABELED], *refits]
    pairs = [adjusted_rand_score(a, b) for a, b in combinations(partitions, 2)]
    stability = float(np.mean(pairs)) if pairs else np.nan
    if stability < UNSTABLE:
        rows.notes.append("Fits with other seeds give quite different classes: read the result as a hint.")
    labels = np.where(rows.outliers >= 0, OUTLIER, UNLABELED)
    labels[rows.learned] = model.labels_
    beyond = rows.all_codes == UNLABELED
    beyond[rows.learned] = False
    if beyond.any():
        labels[beyond] = model.predict(rows.all_numbers[beyond])
    asked = model.n_clusters_ if model.n_clusters == "auto" else model.n_clusters
    n_empty = asked - len(np.unique(labels[labels >= 0]))
    if n_empty:
        rows.notes.append(f"{type(model).__name__} left {n_empty} of its {asked} clusters empty.")
    elif estimated:
        rows.notes.extend(notes_on_the_number(estimate, int(np.sum(rows.codes == UNLABELED))))
    if estimated:
        alone = np.isin(labels, np.flatnonzero(np.bincount(labels[labels >= 0]) == 1))
        labels[alone] = OUTLIER
        if alone.any():
            which = shorten(", ".join(map(str, rows.index[alone])), 80)
            rows.notes.append(f"{alone.sum()} clusters had a single row, which is no class but an outlier: {which}.")
    row_confidence, runner_up = confidence_of_rows(model, refits, rows, labels)
    of_classes, of_table = confidence_of_classes(model)
    return _as_discovery(
        rows,
        labels,
        describe(labels, refits, of_classes, rows),
        estimate=estimate,
        explanation=_explanation(model, asked, estimate, estimated),
        confidence=of_table,
        stability=stability,
        search=search,
        model=model,
        row_confidence=row_confidence,
        runner_up=runner_up,
    )


def _explanation(model: BaseEstimator, k: int, estimate: KEstimate | None, estimated: bool) -> str:
    """Say in a line what was chosen, and why."""
    index = "" if estimate is None else f"the {estimate.index.replace('_', ' ')} index"
    if hasattr(model, "explanation_"):
        by_index = estimate is not None and estimate.index != "votes"
        return model.explanation_.replace("as asked for", f"by {index}") if by_index else model.explanation_
    why = f"{index} is best for this number" if estimated else f"as asked for; {index} would say {estimate.n_clusters}"
    return f"{k} novel classes ({why}); {type(model).__name__}"


def _nothing_new(rows: Rows) -> Discovery:
    """Return a result without a discovered class."""
    labels = np.where(rows.outliers >= 0, OUTLIER, UNLABELED)
    return _as_discovery(
        rows,
        labels,
        [],
        estimate=None,
        explanation="no class is claimed",
        confidence=np.nan,
        stability=np.nan,
        search=None,
        model=None,
        row_confidence=np.full(len(labels), np.nan),
        runner_up=np.full(len(labels), UNLABELED),
    )


def _as_discovery(rows: Rows, labels: NDArray[np.int64], profiles: list[ClassProfile], **results: Any) -> Discovery:
    known = np.full(len(labels), None, dtype=object)
    with_label = rows.all_codes >= 0
    known[with_label] = rows.classes[rows.all_codes[with_label]]
    return Discovery(
        labels=labels,
        n_clusters=len(profiles),
        profiles=profiles,
        notes=rows.notes,
        preprocessor=rows.preprocessor,
        known=known,
        recognised=rows.recognised,
        outliers=rows.outliers,
        known_or_new=rows.known_or_new,
        index=rows.index,
        numbers=rows.all_numbers,
        **results,
    )


def _make_estimator(method: str | BaseEstimator, verbose: bool) -> BaseEstimator:
    if not isinstance(method, str):
        return clone(method)
    return configure(get_method(method).load()(), {"verbose": verbose})


def discover_file(
    path: str | os.PathLike,
    label_column: str,
    *,
    drop: Sequence[str] = (),
    label_missing: str | None = None,
    after: Discovery | None = None,
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
    label_missing : str or None
        A label that stands for a missing one, such as "unknown".
    after : Discovery or None
        An earlier result for the same rows: the classes that were accepted there are known now.
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
    >>> from ncdlib.own_data.discover import discover_file
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
    check_columns((label_column, *drop), table.columns, str(path))
    for name in RESULT_COLUMNS:
        if name in table and name not in drop:
            way_out = "" if name == label_column else f", or leave it out (--drop {name})"
            raise ValueError(f"{path} has a column {name!r}, as a result has: rename it{way_out}")
    labels = as_labels(table[label_column])
    if label_missing is not None:
        if not (labels.astype(str) == label_missing).any():
            raise ValueError(f"the column {label_column!r} has no label {label_missing!r} to take as missing")
        labels = labels.mask(labels.astype(str) == label_missing, None)
    if after is not None:
        if len(after.labels) != len(table):
            raise ValueError(
                f"{path} has {len(table):,} rows, and the earlier result is of {len(after.labels):,}: "
                "give the table that it was made of"
            )
        labels = pd.Series(after.next_labels(), index=table.index, name=label_column)
    with dask_cluster(dask):
        found = discover(table.drop(columns=[label_column, *drop]), labels, **options)
    return table, found
