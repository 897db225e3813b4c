"""What is missing of the measurements, in which order it is worth having, and how long it may take."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import pandas as pd

import ncdlib
from ncdlib._io.row_store import RowStore
from ncdlib.evidence import experiments, results
from ncdlib.evidence.compare import compare_with_paper, stored_table, within_tolerance
from ncdlib.evidence.experiments import SEARCH_TRIALS, SIDE_QUESTIONS, TOP_K_AS_FRACTION, Experiment, Search
from ncdlib.evidence.paper import CORRELATION, PAPER_DATA


@dataclass(frozen=True)
class Job:
    """Some seeds of one experiment on one data set, or one search (no seeds), or the novel ARI of a search's trials."""

    task: Experiment | Search
    dataset: str
    seeds: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.dataset}: {self.task.name}" + (f" x {len(self.seeds)}" if self.seeds else "")


@dataclass(frozen=True)
class Wanted:
    """What a user asks for: tables (by label or number), data sets and methods; nothing of a kind means all of it."""

    tables: frozenset[str]
    datasets: frozenset[str]
    methods: frozenset[str]

    @classmethod
    def of(cls, what: Iterable[str], datasets: Iterable[str], methods: Iterable[str]) -> Wanted:
        """Check the names, and take a table's number for the label under which its runs are stored."""
        wanted = cls(frozenset(map(stored_table, what)), frozenset(datasets), frozenset(methods))
        tables = dict.fromkeys(e.table for e in experiments.experiment_list())
        tasks = [*experiments.experiment_list(), *experiments.search_list()]
        for kind, asked, there in (
            ("table", wanted.tables, [*tables, "search", CORRELATION]),
            ("data set", wanted.datasets, list(ncdlib.DATASETS)),
            ("method", wanted.methods, list(dict.fromkeys(task.method for task in tasks))),
        ):
            for name in sorted(asked - set(there)):
                raise ValueError(f"there is no {kind} {name!r}; choose from {', '.join(map(repr, there))}")
        return wanted

    def includes(self, table: str, dataset: str, method: str) -> bool:
        """Tell whether a cell is asked for."""
        return all(
            not names or name in names
            for names, name in ((self.tables, table), (self.datasets, dataset), (self.methods, method))
        )


def pending_jobs(
    what: Iterable[str] = (),
    datasets: Iterable[str] = (),
    methods: Iterable[str] = (),
    *,
    runs: int | None = None,
    trials: int | None = None,
    folder: str | os.PathLike | None = None,
) -> list[Job]:
    """List all that is missing and can be measured now, most useful first.

    Parameters
    ----------
    what : labels or numbers of tables, "search", or nothing for all
    datasets, methods : names to keep, or nothing for all
    runs, trials : at most this many runs of an experiment, this many trials of a search
    """
    wanted = Wanted.of(what, datasets, methods)
    done = results.load_results(folder)
    jobs = [
        *_experiment_jobs(wanted, done, runs, folder),
        *_search_jobs(wanted, done, trials, folder),
        *_correlation_jobs(wanted, done, folder),
    ]
    return [job for _, job in sorted(jobs, key=lambda pair: pair[0])]


def _experiment_jobs(wanted: Wanted, done: pd.DataFrame, runs: int | None, folder) -> list[tuple[float, Job]]:
    cell = ["table", "dataset", "method", "setting", "params_from", "variant"]
    seeds_of = {key: set(rows) for key, rows in done.groupby(cell)["seed"]}
    searched = partial(results.best_params, folder=folder)
    jobs = []
    for rank, e in enumerate(experiments.experiment_list()):
        for dataset in e.datasets:
            if not wanted.includes(e.table, dataset, e.method):
                continue
            key = (e.table, dataset, e.row_methods[-1], e.setting, e.params_from, e.variant)
            missing = sorted(set(range(min(e.runs, runs or e.runs))) - seeds_of.get(key, set()))
            if missing and experiments.params_of(e, dataset, searched) is not None:  # else its search comes first
                jobs += [(_urgency(e, dataset, rank), job) for job in _jobs_of(e, dataset, missing)]
    return jobs


def _search_jobs(wanted: Wanted, done: pd.DataFrame, trials: int | None, folder) -> list[tuple[float, Job]]:
    jobs = []
    for rank, search in enumerate(experiments.search_list()):
        if not wanted.includes("search", search.dataset, search.method):
            continue
        if results.search_for(search.method, search.dataset, search.setting, done) != search:
            continue  # not known yet, or the same as another search
        n_trials = min(SEARCH_TRIALS[search.dataset], trials or 10**9)
        if len(results.load_trials(search, folder)) < n_trials:
            jobs.append((1000.0 + rank, Job(search, search.dataset)))
    return jobs


def _correlation_jobs(wanted: Wanted, done: pd.DataFrame, folder) -> list[tuple[float, Job]]:
    """List the trials of PBN's and TabularNCD's searches without an ARI on the novel classes, for Figure 5 only."""
    done = done[done["table"] == CORRELATION]
    jobs = []
    for search in experiments.search_list():
        if search.setting != "known" or search.method not in ("PBN", "TabularNCD", TOP_K_AS_FRACTION):
            continue
        if wanted.includes(CORRELATION, search.dataset, search.method):
            rows = done[(done["dataset"] == search.dataset) & (done["method"] == search.method)]
            missing = sorted(set(results.load_trials(search, folder)["trial"]) - set(rows["seed"]))
            jobs += [(1500.0, job) for job in _jobs_of(search, search.dataset, missing)]
    return jobs


def forget(
    what: Iterable[str],
    datasets: Iterable[str] = (),
    methods: Iterable[str] = (),
    folder: str | os.PathLike | None = None,
    *,
    runs: int | None = None,
) -> int:
    """Remove runs that a change of the code has made stale; return how many. Searches are not touched.

    With `runs`, only the first ones of each cell: those that will be measured again.
    """
    wanted = Wanted.of(what, datasets, methods)
    named = {name for e in experiments.experiment_list() if e.method in wanted.methods for name in e.row_methods}
    wanted = Wanted(wanted.tables, wanted.datasets, wanted.methods | named)

    def stale(row: Mapping[str, str]) -> bool:
        return (runs is None or int(row["seed"]) < runs) and wanted.includes(
            row["table"], row["dataset"], row["method"]
        )

    return results.run_store(folder).remove(stale)


def _jobs_of(task: Experiment | Search, dataset: str, seeds: Iterable[int]) -> list[Job]:
    """Part seeds into jobs. Which belong together does not depend on which are missing: two processes agree on it."""
    size = seeds_at_once(task, dataset)
    return [Job(task, dataset, tuple(part)) for _, part in groupby(sorted(seeds), key=lambda seed: seed // size)]


def seeds_at_once(task: Experiment | Search, dataset: str) -> int:
    """Return how many runs are lost at most when a job is killed: few where a run takes minutes."""
    quick = task.method.split(":")[0] in ("k-means", "NCD k-means", "SC", "NCD SC")
    return 2 if dataset in ("human", "cnae9") and not quick else 10


_WEIGHT = {"human": 8.0, "cnae9": 2.0}  # slow data sets come after the quick ones


def _urgency(experiment: Experiment, dataset: str, rank: int) -> float:
    return 2000 + rank if experiment.table in SIDE_QUESTIONS else rank * 0.1 + 100 * _WEIGHT.get(dataset, 1.0)


def estimated_seconds(job: Job, done: pd.DataFrame, folder: str | os.PathLike | None = None) -> float:
    """Guess from trainings of the same method on the same data, else from the size of the network."""
    name = job.task.method.split(":")[0]
    deep = next((method for method in experiments.DEEP_METHODS if method in name), None)
    n_trainings = len(job.seeds)
    similar = done[(done["dataset"] == job.dataset) & done["method"].str.startswith(deep or name)]["seconds"].dropna()
    if isinstance(job.task, Search) and not job.seeds:
        n_trainings = SEARCH_TRIALS[job.dataset] * ncdlib.DATASETS[job.dataset].n_splits
        n_trainings -= len(_trainings(job.task, folder))
        searches = [s for s in experiments.search_list() if s.dataset == job.dataset and deep and deep in s.method]
        in_searches = pd.concat([_trainings(search, folder) for search in searches] or [similar])
        similar = in_searches if len(in_searches) else similar
    if len(similar):
        return float(similar.median()) * n_trainings
    if deep:
        size = PAPER_DATA.loc[job.dataset]
        flops = 3 * 2 * size["features"] ** 2 * (size["known"] + size["novel"]) * 200
        return (2 + flops / 2.5e10) * n_trainings * (2 if deep == "TabularNCD" else 1)
    return 5.0 * n_trainings


def _trainings(search: Search, folder: str | os.PathLike | None) -> pd.Series:
    """Return the seconds of each training that a search has finished."""
    rows = RowStore(results.search_path(search, folder), ("trial", "fold")).rows()
    return rows.get("fit_time", pd.Series(dtype=float)).dropna()


def in_words(jobs: Sequence[Job], done: pd.DataFrame) -> list[str]:
    """Say what there is to do, a line for each job with a guess of its minutes, and their sum."""
    minutes = [estimated_seconds(job, done) / 60 for job in jobs]
    lines = [f"{m:8.1f} min  {job}" for m, job in zip(minutes, jobs, strict=True)]
    return [*lines, f"{sum(minutes):8.1f} min  in all, {len(jobs)} jobs, on one core"]


def summary(folder: str | os.PathLike | None = None) -> pd.DataFrame:
    """Count the paper's cells that our runs reproduce, by table and source of the hyperparameters."""
    cells = compare_with_paper(folder)
    rows = []
    for params_from in ("published", "searched"):
        within = within_tolerance(cells, params_from)
        for table, group in within.groupby(cells["table"].loc[within.index]):
            rows.append({"table": table, "params_from": params_from, "cells": len(group), "within": int(group.sum())})
    return pd.DataFrame(rows, columns=["table", "params_from", "cells", "within"])
