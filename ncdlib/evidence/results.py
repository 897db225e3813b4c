"""Where measurements are kept: ``results/runs.csv``, a row per run, and ``results/search/``, a file per search."""

from __future__ import annotations

import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

import ncdlib
from ncdlib._io.files import file_state
from ncdlib._io.row_store import RowStore
from ncdlib.evidence.experiments import NCD_SC, SEARCH_TRIALS, Search, trained_for_one_setting
from ncdlib.evidence.paper import FEATURES_METHOD

RUN_KEY = ("table", "dataset", "method", "setting", "params_from", "variant", "seed")
SCORES = ("acc", "nmi", "ari", "k", "seconds")
RUN_COLUMNS = (*RUN_KEY[:2], "source", *RUN_KEY[2:], *SCORES, "params", "ncdlib", "torch", "scikit-learn")


def results_folder(folder: str | os.PathLike | None = None) -> Path:
    """Return the folder of the measurements.

    As given, else $NCDLIB_RESULTS, else ``results/`` of the source tree or of the working folder.
    """
    if folder is not None:
        return Path(folder)
    if os.environ.get("NCDLIB_RESULTS"):
        return Path(os.environ["NCDLIB_RESULTS"])
    beside_package = Path(ncdlib.__file__).parents[1] / "results"
    return beside_package if beside_package.is_dir() else Path("results")


def run_store(folder: str | os.PathLike | None = None) -> RowStore:
    """Return the store of all runs."""
    return RowStore(results_folder(folder) / "runs.csv", RUN_KEY)


def load_results(folder: str | os.PathLike | None = None) -> pd.DataFrame:
    """Return all runs measured so far, one row each: where it belongs, its scores, and its provenance.

    Examples
    --------
    >>> from ncdlib.evidence import load_results
    >>> runs = load_results()
    >>> {"table", "dataset", "source", "method", "seed", "acc", "ncdlib"} <= set(runs.columns)
    True
    """
    path = run_store(folder).path
    return _read_runs(path, file_state(path)).copy()


@lru_cache(maxsize=8)
def _read_runs(path: Path, state: tuple[int, ...] | None) -> pd.DataFrame:
    """Read a file of runs, once in each state of the file."""
    runs = RowStore(path, RUN_KEY).rows()
    if missing := set(RUN_KEY) - set(runs.columns):
        raise ValueError(f"{path} holds no measurements: it has no column {min(missing)!r}")
    runs = runs.reindex(columns=list(RUN_COLUMNS))
    runs = runs.astype(dict.fromkeys(SCORES, float))
    return runs.assign(variant=runs["variant"].astype(object).fillna(""))


def search_path(search: Search, folder: str | os.PathLike | None = None) -> Path:
    """Return the file of a search's trainings."""
    return results_folder(folder) / "search" / search.file_name


def load_trials(search: Search, folder: str | os.PathLike | None = None) -> pd.DataFrame:
    """Return the finished trials of a search: params, and the mean score over all folds in each setting.

    A mean is NaN if a fold failed. Columns: trial, params (dict), score_known, score_estimated, folds_known,
    folds_estimated, n_clusters.

    Examples
    --------
    >>> from ncdlib.evidence import load_trials
    >>> from ncdlib.evidence.experiments import Search
    >>> trials = load_trials(Search("PBN", "pendigits", "known"))
    >>> {"trial", "params", "score_known", "score_estimated"} <= set(trials.columns)
    True
    """
    path = search_path(search, folder)
    # Not what is on the disk: a search that was stopped after its first fold has no complete trial.
    n_folds = 1 if search.method == NCD_SC else ncdlib.DATASETS[search.dataset].n_splits
    trials = _read_trials(path, file_state(path), n_folds)
    return trials.assign(params=trials["params"].map(json.loads).astype(object))


@lru_cache(maxsize=256)
def _read_trials(path: Path, state: tuple[int, ...] | None, n_folds: int) -> pd.DataFrame:
    """Read the finished trials of a search, once in each state of its file; their params as JSON."""
    columns = ["trial", "params", "score_known", "score_estimated", "folds_known", "folds_estimated", "n_clusters"]
    if state is None:
        return pd.DataFrame(columns=columns)
    rows = RowStore(path, ("trial", "fold")).rows().sort_values(["trial", "fold"])
    rows = rows.rename(
        columns={"ari_known": "score_known", "ari_estimated": "score_estimated"}
    )  # as newer files have it
    scores = rows[["score_known", "score_estimated", "n_clusters"]].astype(float)
    trials: list[dict[str, Any]] = []
    for number, folds in scores.groupby(rows["trial"]):
        if len(folds) == n_folds:
            known, estimated = folds["score_known"], folds["score_estimated"]
            trials.append(
                {
                    "trial": number,
                    "params": rows.loc[folds.index[0], "params"],
                    "score_known": known.mean(skipna=False),
                    "score_estimated": estimated.mean(skipna=False),
                    "folds_known": known.tolist(),
                    "folds_estimated": estimated.tolist(),
                    "n_clusters": folds["n_clusters"].tolist(),
                }
            )
    return pd.DataFrame(trials, columns=columns)


def search_for(method: str, dataset: str, setting: str, runs: pd.DataFrame) -> Search | None:
    """Return the search that tunes a method for a setting; None while it cannot be told.

    PBN and Baseline are trained once for both settings. TabularNCD is trained for a number of clusters: where the
    estimate from the features is the true number, the two settings are the same search.
    """
    if method == NCD_SC:
        return Search(method, dataset, setting)
    if setting == "known" or not trained_for_one_setting(method):
        return Search(method, dataset, "known")
    features = runs[(runs["method"] == FEATURES_METHOD) & (runs["dataset"] == dataset) & (runs["seed"] == 0)]
    if features.empty:
        return None
    same = int(features["k"].iloc[0]) == len(ncdlib.DATASETS[dataset].novel_classes)
    return Search(method, dataset, "known" if same else "estimated")


def best_params(
    method: str, dataset: str, setting: str, folder: str | os.PathLike | None = None
) -> dict[str, Any] | None:
    """Return the hyperparameters that a finished search found best on hidden classes; None while it is not finished.

    Examples
    --------
    >>> from ncdlib.evidence import best_params
    >>> params = best_params("PBN", "pendigits", "known")
    >>> params is None or sorted(params) == ["dropout", "latent_dim", "lr", "w"]
    True
    """
    search = search_for(method, dataset, setting, load_results(folder))
    if search is None:
        return None
    # As many trials for every method: more of one than of another would be an unfair start.
    trials = load_trials(search, folder).query("trial < @SEARCH_TRIALS[@dataset]")
    # In a search that TabularNCD shares between the settings, the one score serves both.
    column = f"score_{setting if not trained_for_one_setting(method) else search.setting}"
    if len(trials) < SEARCH_TRIALS[dataset] or trials[column].isna().all():
        return None
    return dict(trials.loc[trials[column].idxmax(), "params"])
