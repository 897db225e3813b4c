"""The results of a search: rows by (trial, fold, seed), in memory and in a file, and the table made of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ncdlib._io.row_store import RowStore
from ncdlib.selection import race
from ncdlib.selection.scoring import SETTINGS, Scoring, column_of, columns
from ncdlib.selection.worker import VISIBLE, Trial

KEY = ("trial", "fold", "seed")


class SearchResults:
    """What is measured so far.

    A file of an earlier version has one seed, and one score in each setting: it is read, and goes on, as it is.
    """

    def __init__(
        self,
        path: str | os.PathLike | None,
        fingerprint: Mapping[str, str],
        old_fingerprint: Mapping[str, str],
        n_trials: int,
        n_folds: int,
        scoring: Scoring,
    ) -> None:
        self.n_trials, self.n_folds, self.scoring = n_trials, n_folds, scoring
        self.rows: dict[tuple[int, int, int], dict[str, Any]] = {}
        self.store = None if path is None else RowStore(path, KEY)
        self.is_old = False
        stored = pd.DataFrame() if self.store is None else _read(self.store)
        if len(stored):
            self.is_old = "seed" not in stored
            if self.is_old:
                self.store = RowStore(path, KEY[:2])
        self.search = " ".join(f"{n}:{d}" for n, d in (old_fingerprint if self.is_old else fingerprint).items())
        if len(stored):
            self._check(stored)
            for row in stored[(stored["trial"] < n_trials) & (stored["fold"] < n_folds)].to_dict("records"):
                row = self._of_old(row) if self.is_old else row
                self.rows[int(row["trial"]), int(row["fold"]), int(row["seed"])] = row

    def _check(self, stored: pd.DataFrame) -> None:
        for other in set(stored["search"]) - {self.search}:
            theirs = str(other).split(" ")
            differ = [part.rpartition(":")[0] for part in self.search.split(" ") if part not in theirs]
            raise ValueError(
                f"{self.store.path} was written by another search (different {', '.join(differ) or 'scoring'}): "
                "give another file"
            )

    def _of_old(self, row: dict[str, Any]) -> dict[str, Any]:
        scores = {column_of(self.scoring, setting): row[f"score_{setting}"] for setting in SETTINGS}
        return row | dict.fromkeys((*columns(self.scoring), VISIBLE)) | scores | {"seed": 0}

    def _to_old(self, row: dict[str, Any]) -> dict[str, Any]:
        scores = {f"score_{setting}": row[column_of(self.scoring, setting)] for setting in SETTINGS}
        return {name: row[name] for name in ("trial", "fold", "params", "fit_time", "n_clusters", "error")} | scores

    def has(self, trial: int, fold: int, seed: int) -> bool:
        return (trial, fold, seed) in self.rows

    def add(self, row: dict[str, Any]) -> bool:
        """Keep a new row, on the disk before in memory; False if it was there."""
        if self.has(row["trial"], row["fold"], row["seed"]):
            return False
        if self.store is not None:
            self.store.append({"search": self.search} | (self._to_old(row) if self.is_old else row))
        self.rows[row["trial"], row["fold"], row["seed"]] = row
        return True

    def values(self, column: str, n_seeds: int = 1) -> NDArray[np.float64]:
        """(n_trials, n_folds, n_seeds); NaN where there is nothing."""
        array = np.full((self.n_trials, self.n_folds, n_seeds), np.nan)
        for (trial, fold, seed), row in self.rows.items():
            if seed < n_seeds and row[column] is not None:
                array[trial, fold, seed] = row[column]
        return array

    def n_done(self, n_seeds: NDArray) -> int:
        """How many rows of those that were asked for are there."""
        return sum(seed < n_seeds[trial] for trial, _, seed in self.rows)

    def table(
        self, trials: Sequence[Trial], n_seeds: NDArray, setting: str, elected: race.Vote | None
    ) -> dict[str, Any]:
        """What `HiddenClassSearchCV.cv_results_` documents."""
        params = [trial.params for trial in trials]
        results: dict[str, Any] = {"params": params}
        for name in sorted({name for p in params for name in p}):
            missing = [name not in p for p in params]
            results[f"param_{name}"] = np.ma.array([p.get(name) for p in params], mask=missing)
        most = int(n_seeds.max())
        scores = self.values(column_of(self.scoring, setting), most)
        score = race.judged(scores, n_seeds)
        agrees = np.ones(len(trials), dtype=bool) if elected is None else elected.agrees
        results |= {f"split{fold}_test_score": score[:, fold] for fold in range(self.n_folds)}
        results["mean_test_score"] = mean = score.mean(axis=1)
        results["std_test_score"] = score.std(axis=1)
        results["standard_error_test_score"] = race.standard_errors(scores, n_seeds)
        results["rank_test_score"] = race.ranks(mean, n_seeds, agrees)
        results["chance_to_be_best"] = race.chance_to_be_best(scores, n_seeds, agrees)
        results["n_seeds"] = n_seeds
        if elected is not None:
            results["agrees_on_n_clusters"] = agrees
        for name in SETTINGS:
            values = race.judged(self.values(column_of(self.scoring, name), most), n_seeds)
            results |= {f"split{fold}_score_{name}": values[:, fold] for fold in range(self.n_folds)}
            results[f"mean_score_{name}"] = values.mean(axis=1)
        counts = self.values("n_clusters")[:, :, 0]
        results |= {f"split{fold}_n_clusters": counts[:, fold] for fold in range(self.n_folds)}
        results["mean_n_clusters"] = counts.mean(axis=1)
        for column in (*columns(self.scoring), VISIBLE):
            results.setdefault(f"mean_{column}", race.judged(self.values(column, most), n_seeds).mean(axis=1))
        for fold in range(self.n_folds):
            results[f"split{fold}_random_state"] = np.array([trial.seed(fold) for trial in trials])
        times = self.values("fit_time", most)
        results["mean_fit_time"] = np.nanmean(times, axis=(1, 2))
        results["total_fit_time"] = np.nansum(times, axis=(1, 2))
        results["error"] = [self._error(trial) for trial in range(self.n_trials)]
        return results

    def _error(self, trial: int) -> str | None:
        errors = (row["error"] for (number, *_), row in sorted(self.rows.items()) if number == trial)
        return next((error for error in errors if isinstance(error, str)), None)


def _read(store: RowStore) -> pd.DataFrame:
    if not store.path.is_file():
        return pd.DataFrame()
    rows = RowStore(store.path, ()).rows()
    if len(rows) and not {"search", "trial", "fold"} <= set(rows):
        raise ValueError(f"{store.path} holds something else than the results of a search: give another file")
    return rows
