"""The whole procedure in one call, for one's own data: prepare, search, count, fit, explain."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from inspect import signature
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import check_consistent_length

from ncdlib._io.checks import check_index, check_n_clusters, check_positive, check_seed, encode_labels, shorten
from ncdlib._io.dask_cluster import dask_cluster
from ncdlib.clustering.validity import INDICES, KEstimate, estimate_n_clusters
from ncdlib.own_data.explain import describe
from ncdlib.own_data.prepare import Rows, TablePreprocessor, as_frame
from ncdlib.own_data.read import as_labels, read_table
from ncdlib.own_data.result import RESULT_COLUMNS, Discovery
from ncdlib.problem import UNLABELED
from ncdlib.selection.hidden_classes import HiddenClassKFold
from ncdlib.selection.search import HiddenClassSearchCV, configure

METHODS = ("pbn", "baseline", "tabularncd", "ncd_kmeans", "ncd_sc")
MIN_CLASSES_TO_SEARCH = 3  # two to hide, and one to learn from
MIN_UNLABELED = 3  # fewer rows have no numbers of classes to compare
FEW_ROWS = 5  # a known class with fewer tells little when it is hidden
MAX_ROWS = 50_000
ROWS_OF_A_RARE_CLASS = 10  # that a sample keeps
UNSTABLE = 0.6  # a stability below this is worth a warning


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
    seed = check_seed(random_state)
    check_positive(n_seeds=n_seeds, max_rows=max_rows)
    estimator = _make_estimator(method, verbose)
    if n_clusters is None:
        n_clusters = _own_n_clusters(estimator)

    rows = _prepare(X, y, n_clusters, max_rows, seed)
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
    estimate = _count(estimator, rows, n_clusters, seed)
    estimator.set_params(n_clusters=estimate.n_clusters if isinstance(n_clusters, str) else n_clusters)
    model, refits = _fit(estimator, rows, [(seed + 1 + i) % 2**32 for i in range(n_seeds)])
    return _explain(model, refits, rows, estimate, search)


def _prepare(X: ArrayLike | pd.DataFrame, y: ArrayLike, n_clusters: int | str, max_rows: int, seed: int) -> Rows:
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
    if isinstance(n_clusters, str):
        check_index(n_clusters, INDICES)
    else:
        check_n_clusters(n_clusters, n_unlabeled, rows="unlabelled rows")
    preprocessor = TablePreprocessor().fit(table)
    notes = list(preprocessor.notes_)
    learned = np.arange(len(table))
    if len(table) > max_rows:
        learned = _sample(codes, max_rows, seed)
        n_learned = np.sum(codes[learned] == UNLABELED)
        notes.append(
            f"Learned from a random sample of {max_rows:,} of the {len(table):,} rows, with {n_learned:,} of the "
            f"{n_unlabeled:,} unlabelled ones."
        )
    return Rows(preprocessor, classes, preprocessor.transform(table), codes, learned, notes, table.index)


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


def _count(estimator: BaseEstimator, rows: Rows, n_clusters: int | str, seed: int) -> KEstimate:
    """Estimate the number of classes, in the space the method learns if it does so without that number (Section 5)."""
    from ncdlib.methods.spectral import NCDSpectralClustering

    X, codes = rows.numbers, rows.codes
    novel = codes == UNLABELED
    index = n_clusters if isinstance(n_clusters, str) else "silhouette"
    options: dict[str, Any] = {"index": index, "random_state": seed}
    if hasattr(estimator, "estimate_n_clusters"):
        trained = clone(estimator).set_params(n_clusters=2).fit(X, codes)  # any number: it does not matter here
        known = {"X_known": X[~novel], "y_known": codes[~novel]} if index == "km_acc" else {}
        estimate = trained.estimate_n_clusters(X[novel], **options, **known)
    else:
        if isinstance(estimator, NCDSpectralClustering):
            X = clone(estimator).set_params(n_clusters=n_clusters).fit(X, codes).embedding_
        estimate = estimate_n_clusters(X[novel], **options, X_known=X[~novel], y_known=codes[~novel])
    if isinstance(n_clusters, str) and estimate.n_clusters == estimate.k_range[-1] < novel.sum() - 1:
        rows.notes.append(
            f"The estimate, {estimate.n_clusters} classes, is the largest number that was tried: there may be more."
        )
    return estimate


def _fit(estimator: BaseEstimator, rows: Rows, seeds: list[int]) -> tuple[BaseEstimator, list[NDArray[np.int64]]]:
    """Fit the method, and again with other seeds: the model, and how the others divide the unlabelled rows."""
    X, codes = rows.numbers, rows.codes
    unlabeled = codes == UNLABELED
    model = clone(estimator).fit(X, codes)
    if np.any(model.labels_[~unlabeled] != UNLABELED):
        raise ValueError(
            f"{type(model).__name__} puts labelled rows into clusters: discover needs a method that learns from them "
            "and clusters the others, such as NCDKMeans"
        )
    if hasattr(estimator, "fit_many"):
        others = [other for other in estimator.fit_many(X, codes, [{} for _ in seeds], seeds) if not other.diverged_]
    else:
        others = [configure(clone(estimator), {"random_state": seed}).fit(X, codes) for seed in seeds]
    if len(others) < len(seeds):
        rows.notes.append(f"{len(seeds) - len(others)} of {len(seeds)} fits with other seeds diverged.")
    return model, [other.labels_[unlabeled] for other in others]


def _explain(
    model: BaseEstimator,
    refits: list[NDArray[np.int64]],
    rows: Rows,
    estimate: KEstimate,
    search: HiddenClassSearchCV | None,
) -> Discovery:
    """Assign all unlabelled rows to the classes found, and say how stable each class is and what it is."""
    partitions = [model.labels_[rows.codes == UNLABELED], *refits]
    pairs = [adjusted_rand_score(a, b) for a, b in combinations(partitions, 2)]
    stability = float(np.mean(pairs)) if pairs else np.nan
    if stability < UNSTABLE:
        rows.notes.append("Fits with other seeds give quite different classes: read the result as a hint.")
    unlabeled = rows.all_codes == UNLABELED
    labels = model.labels_
    if len(labels) < len(unlabeled):
        labels = np.full(len(unlabeled), UNLABELED)
        labels[unlabeled] = model.predict(rows.all_numbers[unlabeled])
        labels[rows.learned] = model.labels_
    profiles = describe(model.labels_, refits, rows, labels)
    if len(profiles) < model.n_clusters:
        rows.notes.append(
            f"{type(model).__name__} left {model.n_clusters - len(profiles)} of its {model.n_clusters} clusters empty."
        )
    known = np.full(len(unlabeled), None, dtype=object)
    known[~unlabeled] = rows.classes[rows.all_codes[~unlabeled]]
    return Discovery(
        labels=labels,
        n_clusters=len(profiles),
        estimate=estimate,
        stability=stability,
        profiles=profiles,
        search=search,
        notes=rows.notes,
        model=model,
        preprocessor=rows.preprocessor,
        known=known,
        index=rows.index,
        numbers=rows.all_numbers,
    )


def _sample(codes: NDArray[np.int64], n_rows: int, random_state: int) -> NDArray[np.int64]:
    """Choose random rows, in their order; a rare class keeps some, and the unlabelled rows up to half of the places."""
    order = np.random.default_rng(random_state).permutation(len(codes))
    rank = pd.Series(order).groupby(codes[order]).cumcount().to_numpy()  # of each row among those of its class
    others = ROWS_OF_A_RARE_CLASS * len(np.unique(codes[codes != UNLABELED]))
    kept = np.where(codes[order] == UNLABELED, min(n_rows // 2, n_rows - others), ROWS_OF_A_RARE_CLASS)
    return np.sort(order[np.argsort(rank >= kept, kind="stable")[:n_rows]])


def _own_n_clusters(estimator: BaseEstimator) -> int | str:
    """Return what an estimator was told, where that is not what its class says of itself."""
    parameter = signature(type(estimator)).parameters.get("n_clusters")
    untold = parameter is None or estimator.n_clusters == parameter.default
    return "silhouette" if untold else estimator.n_clusters


def _make_estimator(method: str | BaseEstimator, verbose: bool) -> BaseEstimator:
    if not isinstance(method, str):
        return clone(method)
    import ncdlib

    by_name = {
        "pbn": ncdlib.PBN,
        "baseline": ncdlib.Baseline,
        "tabularncd": ncdlib.TabularNCD,
        "ncd_kmeans": ncdlib.NCDKMeans,
        "ncd_sc": ncdlib.NCDSpectralClustering,
    }
    if method.lower() not in by_name:
        raise ValueError(f"unknown method {method!r}: choose from {', '.join(METHODS)}")
    return configure(by_name[method.lower()](), {"verbose": verbose})


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
    with dask_cluster(dask):
        found = discover(table.drop(columns=[label_column, *drop]), labels, **options)
    return table, found
