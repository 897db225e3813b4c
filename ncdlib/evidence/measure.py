"""Measure what is missing: resumable, several processes at once, each finished run on disk at once."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from tqdm.auto import tqdm

import ncdlib
from ncdlib._io.row_store import RowStore
from ncdlib.clustering.validity import VALIDITY_INDICES
from ncdlib.evidence import experiments, protocols, results
from ncdlib.evidence.compare import METRIC_COLUMN, compare_with_paper, measured_as, within_tolerance
from ncdlib.evidence.experiments import SEARCH_TRIALS, SEARCHES, Experiment, Search, load_problem
from ncdlib.evidence.paper import PAPER_DATA, paper_results
from ncdlib.methods.spectral import NCDSpectralClustering
from ncdlib.problem import NCDProblem
from ncdlib.selection import HiddenClassKFold, HiddenClassSearchCV
from ncdlib.selection.search import end_with_parent, one_thread

INDEX_NAMES = {name: f"{VALIDITY_INDICES[name].paper_name} (PBN latent space)" for name in protocols.PAPER_INDICES}
CORRELATION = "letter_corr"  # the figure's label; seed is the number of the trial


@dataclass(frozen=True)
class Job:
    """Some seeds of one experiment on one data set, or one search (no seeds), or the novel ARI of a search's trials."""

    task: Experiment | Search
    dataset: str
    seeds: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.dataset}: {self.task.name}" + (f" x {len(self.seeds)}" if self.seeds else "")


def pending_jobs(
    what: Iterable[str] = (),
    datasets: Iterable[str] = (),
    methods: Iterable[str] = (),
    *,
    runs: int | None = None,
    trials: int | None = None,
    folder: str | os.PathLike | None = None,
) -> list[Job]:
    """All that is missing and can be measured now, most useful first.

    Parameters
    ----------
    what : names of tables, "search", or nothing for all
    datasets, methods : names to keep, or nothing for all
    runs, trials : at most so many runs of an experiment, so many trials of a search
    """
    what, datasets, methods = set(what), set(datasets), set(methods)
    _check_names(what, datasets, methods)
    wanted = lambda name, chosen: not chosen or name in chosen  # noqa: E731
    done = results.load_results(folder)
    jobs: list[tuple[float, Job]] = []
    for rank, experiment in enumerate(experiments.experiment_list()):
        if not (wanted(experiment.table, what) and wanted(experiment.method, methods)):
            continue
        for dataset in experiment.datasets:
            seeds = _missing_seeds(experiment, dataset, done, runs)
            if not seeds or not wanted(dataset, datasets):
                continue
            if experiments.params_of(experiment, dataset, partial(results.best_params, folder=folder)) is None:
                continue  # its search comes first
            urgency = _urgency(experiment, dataset, rank)
            jobs += [(urgency, job) for job in _jobs_of(experiment, dataset, seeds)]
    for rank, search in enumerate(experiments.search_list()):
        if not (wanted("search", what) and wanted(search.method, methods) and wanted(search.dataset, datasets)):
            continue
        if results.search_for(search.method, search.dataset, search.setting, done) != search:
            continue  # not known yet, or the same as another search
        n_trials = min(SEARCH_TRIALS[search.dataset], trials or 10**9)
        finished = results.load_trials(search, folder)
        if len(finished) < n_trials:
            jobs.append((1000 + rank, Job(search, search.dataset)))
    if wanted(CORRELATION, what):
        jobs += _correlation_jobs(done, datasets, methods, folder)
    return [job for _, job in sorted(jobs, key=lambda pair: pair[0])]


def _check_names(what: set[str], datasets: set[str], methods: set[str]) -> None:
    tasks = [*experiments.experiment_list(), *experiments.search_list()]
    choices = {
        "table": [*dict.fromkeys(e.table for e in experiments.experiment_list()), "search", CORRELATION],
        "data set": list(ncdlib.DATASETS),
        "method": list(dict.fromkeys(task.method for task in tasks)),
    }
    for (kind, there), asked in zip(choices.items(), (what, datasets, methods), strict=True):
        for name in sorted(asked - set(there)):
            raise ValueError(f"there is no {kind} {name!r}; choose from {', '.join(map(repr, there))}")


def forget(
    what: Iterable[str],
    datasets: Iterable[str] = (),
    methods: Iterable[str] = (),
    folder: str | os.PathLike | None = None,
    *,
    runs: int | None = None,
) -> int:
    """Remove runs that a change of the code has made stale; return how many. Searches are not touched.

    With `runs`, only the first so many of each cell: those that will be measured again.
    """
    chosen = {"table": set(what), "dataset": set(datasets), "method": set(methods)}
    _check_names(*chosen.values())
    chosen["method"] |= {
        name for e in experiments.experiment_list() if e.method in chosen["method"] for name in _row_methods(e)
    }

    def stale(row: Mapping[str, str]) -> bool:
        return (runs is None or int(row["seed"]) < runs) and all(
            not names or row[column] in names for column, names in chosen.items()
        )

    return results.run_store(folder).remove(stale)


def _correlation_jobs(done, datasets, methods, folder) -> list[tuple[float, Job]]:
    """The ARI on the novel classes of every trial of PBN's and TabularNCD's searches, for the paper's Figure 5 only."""
    jobs = []
    for search in experiments.search_list():
        if search.setting != "known" or search.method not in ("PBN", "TabularNCD", experiments.MENDED):
            continue
        if (datasets and search.dataset not in datasets) or (methods and search.method not in methods):
            continue
        trials = results.load_trials(search, folder)
        rows = done[
            (done["table"] == CORRELATION) & (done["dataset"] == search.dataset) & (done["method"] == search.method)
        ]
        missing = sorted(set(trials["trial"]) - set(rows["seed"]))
        jobs += [(1500.0, job) for job in _jobs_of(search, search.dataset, missing)]
    return jobs


def _missing_seeds(experiment: Experiment, dataset: str, done: pd.DataFrame, runs: int | None) -> list[int]:
    names = _row_methods(experiment)
    mine = done[
        (done["table"] == experiment.table)
        & (done["dataset"] == dataset)
        & (done["method"] == names[-1])
        & (done["setting"] == experiment.setting)
        & (done["origin"] == experiment.origin)
        & (done["variant"] == experiment.variant)
    ]
    return sorted(set(range(min(experiment.runs, runs or experiment.runs))) - set(mine["seed"]))


def _row_methods(experiment: Experiment) -> list[str]:
    """The method names that an experiment's rows carry."""
    if experiment.measure is protocols.indices_in_latent_space:
        return list(INDEX_NAMES.values())
    if experiment.measure is protocols.silhouette_of_features:
        return [results.FEATURES_METHOD]
    return [experiment.method]


def _jobs_of(task: Experiment | Search, dataset: str, seeds: Iterable[int]) -> list[Job]:
    """Seeds as jobs. Which ones belong together does not depend on which are missing: two processes agree on it."""
    size = _seeds_at_once(task, dataset)
    return [Job(task, dataset, tuple(part)) for _, part in groupby(sorted(seeds), key=lambda seed: seed // size)]


def _seeds_at_once(task: Experiment | Search, dataset: str) -> int:
    """Runs that are lost at most when a job is killed: one where a run takes minutes."""
    quick = task.method.split(":")[0] in ("k-means", "NCD k-means", "SC", "NCD SC")
    return 2 if dataset in ("human", "cnae9") and not quick else 10


_WEIGHT = {"human": 8.0, "cnae9": 2.0}  # slow data sets come after the quick ones


def _urgency(experiment: Experiment, dataset: str, rank: int) -> float:
    side_question = experiment.table in ("hidden_score", "choices", "letter_splits", "census_splits", "perf_wrt_share")
    return 2000 + rank if side_question else rank * 0.1 + 100 * _WEIGHT.get(dataset, 1.0)


def estimated_seconds(job: Job, done: pd.DataFrame, folder: str | os.PathLike | None = None) -> float:
    """A guess from trainings of the same method on the same data, else from the size of the network."""
    size = PAPER_DATA.loc[job.dataset]
    name = job.task.method.split(":")[0]
    deep = next((method for method in ("PBN", "Baseline", "TabularNCD") if method in name), None)
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
        flops = 3 * 2 * size["features"] ** 2 * (size["known"] + size["novel"]) * 200
        return (2 + flops / 2.5e10) * n_trainings * (2 if deep == "TabularNCD" else 1)
    return 5.0 * n_trainings


def _trainings(search: Search, folder: str | os.PathLike | None) -> pd.Series:
    """Seconds of each training that a search has finished."""
    rows = RowStore(results.search_path(search, folder), ("trial", "fold")).rows()
    return rows.get("fit_time", pd.Series(dtype=float)).dropna()


def plan(jobs: Sequence[Job], done: pd.DataFrame) -> list[str]:
    """Lines for people: each job with a guess of its minutes, and their sum."""
    minutes = [estimated_seconds(job, done) / 60 for job in jobs]
    lines = [f"{m:8.1f} min  {job}" for m, job in zip(minutes, jobs, strict=True)]
    return [*lines, f"{sum(minutes):8.1f} min  in all, {len(jobs)} jobs, on one core"]


def reproduce(
    jobs: Sequence[Job],
    *,
    n_jobs: int = 1,
    deadline: float | None = None,
    trials: int | None = None,
    folder: str | os.PathLike | None = None,
    verbose: bool = True,
) -> int:
    """Do the jobs; return how many rows were measured. Stop it at any moment: finished runs are on disk.

    After `deadline` (in the seconds of `time.time`), nothing new is started.
    """
    results.results_folder(folder).mkdir(parents=True, exist_ok=True)
    work = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs")(
        delayed(run_job)(job, deadline=deadline, trials=trials, folder=folder) for job in jobs
    )
    n_rows = 0
    with tqdm(total=len(jobs), desc="measuring", disable=not verbose) as progress:
        for n, label in work:
            n_rows += n
            progress.set_postfix_str(label)
            progress.update()
    return n_rows


def run_job(
    job: Job,
    *,
    deadline: float | None = None,
    trials: int | None = None,
    folder: str | os.PathLike | None = None,
) -> tuple[int, str]:
    """Do one job in this process, unless another process is at it or the time is over."""
    end_with_parent()
    if deadline is not None and time.time() > deadline:
        return 0, str(job)
    with one_thread():
        if isinstance(job.task, Search):
            work = _run_trials_on_novel(job, folder) if job.seeds else _run_search(job, trials, folder)
        else:
            work = _run_experiment(job, folder)
    return work, str(job)


def measure(experiment: Experiment, dataset: str, seeds: Sequence[int], folder=None) -> Iterator[dict[str, Any]]:
    """Measure some runs of an experiment, as rows of ``runs.csv``."""
    problem = experiment.problem(dataset)
    params = experiments.params_of(experiment, dataset, partial(results.best_params, folder=folder))
    names = _row_methods(experiment)
    rows = experiment.measure(problem, params, experiment.setting, seeds)
    for i, row in enumerate(rows):
        name = INDEX_NAMES[row.pop("index")] if "index" in row else names[0]
        yield (
            _provenance(
                problem,
                experiment.table,
                name,
                experiment.setting,
                experiment.origin,
                experiment.variant,
                params,
            )
            | {"seed": seeds[i // len(names)]}
            | row
        )


def verify(
    table: str,
    dataset: str,
    method: str,
    *,
    runs: int | None = None,
    variant: str = "",
    folder: str | os.PathLike | None = None,
) -> pd.DataFrame:
    """Measure one cell of a table again, and put it beside the paper's figure and the stored runs of the same seeds.

    Parameters
    ----------
    table, dataset, method : str
        The cell, by the paper's label of the table, as in `compare_with_paper`.
    runs : int, optional
        How many runs, the first seeds first; by default as many as the table has.
    variant : str
        Which problem, where a table has several on one data set.

    Returns
    -------
    DataFrame
        origin, metric, runs, paper, stored, now (percent, or a number of classes), same: whether every run gave what is
        stored, to the digits stored; None where not all of them are stored. ``attrs["source"]`` says which data it was.
    """
    stored_table, stored_method = measured_as(table, method)
    cells = [
        e
        for e in experiments.experiment_list()
        if (e.table, e.variant) == (stored_table, variant) and stored_method in _row_methods(e)
    ]
    if not cells:
        here = [e for e in experiments.experiment_list() if e.table == stored_table]
        of_method = [e for e in here if stored_method in _row_methods(e)]
        if of_method and variant:
            raise ValueError(f"{table} / {method} has no variant {variant!r}{_such_as(e.variant for e in of_method)}")
        if of_method:
            raise ValueError(f"{table} / {method} needs a variant{_such_as(e.variant for e in of_method)}")
        there = dict.fromkeys(name for e in here for name in _row_methods(e))
        there = there or dict.fromkeys(e.table for e in experiments.experiment_list())
        raise ValueError(f"there is no cell {table} / {method}; choose from {', '.join(map(repr, there))}")
    if dataset not in cells[0].datasets:
        raise ValueError(f"{table} / {method} is not measured on {dataset!r}, but on {', '.join(cells[0].datasets)}")
    paper = paper_results()
    # Also what other tables of the paper show of the same runs: NMI and ARI have tables of their own.
    same_runs = [measured_as(*cell) == (stored_table, stored_method) for cell in paper[["table", "method"]].to_numpy()]
    paper = paper[same_runs].query("dataset == @dataset")
    out = []
    for experiment in cells:
        params = experiments.params_of(experiment, dataset, partial(results.best_params, folder=folder))
        if params is None:
            continue  # its search is not finished
        seeds = range(min(experiment.runs, runs or experiment.runs))
        with one_thread():  # as the stored runs were measured
            now = [row for row in measure(experiment, dataset, seeds, folder) if row["method"] == stored_method]
        now = pd.DataFrame([_rounded(row) for row in now]).set_index("seed")
        done = results.load_results(folder)
        for column in ("table", "dataset", "method", "setting", "origin", "variant"):
            done = done[done[column] == now[column].iloc[0]]
        done = done.set_index("seed").reindex(now.index)
        for metric, column in METRIC_COLUMN.items():
            values, stored = now[column].astype(float), done[column]
            given = column == "k" and experiment.setting == "known" and now["acc"].notna().any()
            if given or values.isna().all():
                continue
            centre = (lambda v: v.median()) if column == "k" else (lambda v: 100 * v.mean())
            figures = paper.loc[paper["metric"] == metric, "value"]
            out.append(
                {
                    "origin": experiment.origin,
                    "metric": metric,
                    "runs": len(values),
                    "paper": figures.iloc[0] if len(figures) else float("nan"),
                    "stored": float("nan") if stored.isna().any() else centre(stored),  # else of other runs
                    "now": centre(values),
                    "same": None if stored.isna().any() else bool((values - stored).abs().max() < 1e-4),
                }
            )
    if not out:
        raise ValueError(f"the search behind {table} / {method} on {dataset} is not finished: ncd reproduce search")
    found = pd.DataFrame(out)
    found.attrs["source"] = now["source"].iloc[0]
    return found


def _such_as(variants: Iterable[str]) -> str:
    first = next(filter(None, variants), None)
    return "" if first is None else f", such as {first!r}"


def _provenance(problem: NCDProblem, table, method, setting, origin, variant, params) -> dict[str, Any]:
    """A row of ``runs.csv`` with everything but the scores."""
    return dict.fromkeys(results.RUN_COLUMNS) | {
        "table": table,
        "dataset": problem.name,
        "source": problem.source,
        "method": method,
        "setting": setting,
        "origin": origin,
        "variant": variant,
        "params": json.dumps(params),
        "ncdlib": version("ncdlib"),
        "torch": version("torch").split("+")[0],
        "scikit-learn": version("scikit-learn"),
    }


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    digits = {"acc": 5, "nmi": 5, "ari": 5, "seconds": 2}
    return {c: round(v, digits[c]) if c in digits and v is not None else v for c, v in row.items()}


def _append(rows: RowStore, row: dict[str, Any]) -> bool:
    return rows.append(_rounded(row))


@contextmanager
def _seeds_to_measure(rows: RowStore, cell: dict[str, Any], job: Job) -> Iterator[list[int]]:
    """What a job lacks; nothing where another process is at it.

    The claim is on the whole job: it may be started again where a worker died, with its first rows stored.
    """
    part = job.seeds[0] // _seeds_at_once(job.task, job.dataset)
    with rows.claim(cell | {"seed": f"part {part}"}) as mine:
        yield [seed for seed in job.seeds if cell | {"seed": seed} not in rows] if mine else []


def _run_experiment(job: Job, folder) -> int:
    rows = results.run_store(folder)
    experiment: Experiment = job.task
    cell = {"table": experiment.table, "dataset": job.dataset, "method": _row_methods(experiment)[-1]}
    cell |= {"setting": experiment.setting, "origin": experiment.origin, "variant": experiment.variant}
    with _seeds_to_measure(rows, cell, job) as seeds:
        return sum(_append(rows, row) for row in measure(experiment, job.dataset, seeds, folder)) if seeds else 0


def make_search(search: Search, n_iter: int, path: str | os.PathLike | None) -> HiddenClassSearchCV:
    """The search as it is run for the evidence: folds of the paper's table, no novel label."""
    info = ncdlib.DATASETS[search.dataset]
    method, fixed, space = SEARCHES[search.method]
    problem = load_problem(search.dataset)
    estimator = protocols.ESTIMATORS[method](verbose=False, **fixed)
    n_features = problem.X.shape[1]
    return HiddenClassSearchCV(
        estimator,
        space(n_features),
        n_iter=n_iter,
        cv=HiddenClassKFold(info.n_splits, info.n_hidden, random_state=0),
        n_clusters=len(info.novel_classes) if search.setting == "known" else None,
        k_range=protocols.FEATURE_K_RANGE if experiments.trained_for_one_setting(search.method) else None,
        both_settings=search.method != experiments.FULL_OPT,
        refit=False,
        store=path,
        # Networks too large to share a stack are trained alone, minutes each: each is on disk at once.
        stack_size=1 if estimator.stack_size(n_features) == 1 else 20,
        verbose=False,
    )


def _run_search(job: Job, trials: int | None, folder) -> int:
    search: Search = job.task
    path = results.search_path(search, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    n_iter = min(SEARCH_TRIALS[job.dataset], trials or 10**9)
    with RowStore(path, ("trial", "fold")).claim({"trial": -1, "fold": -1}) as mine:
        if not mine:
            return 0
        before = len(RowStore(path, ("trial", "fold")).rows())
        problem = load_problem(job.dataset)
        if search.method == experiments.NCD_SC:
            _tune_ncd_sc(problem, search.setting, n_iter, RowStore(path, ("trial", "fold")))
        else:
            make_search(search, n_iter, path).fit(problem.X, problem.y)
        return len(RowStore(path, ("trial", "fold")).rows()) - before


def _tune_ncd_sc(problem: NCDProblem, setting: str, n_iter: int, rows: RowStore) -> None:
    """NCD SC's own search on training rows, as many as the test rows that are embedded later.

    The kernel's width comes from the longest edge of the spanning tree, which shrinks as rows are added: values found
    on as many rows carry over.
    """
    chosen = np.random.default_rng(0).permutation(len(problem.X))[: len(problem.X_test)]
    k = len(problem.novel_classes) if setting == "known" else "silhouette"
    model = NCDSpectralClustering(k, n_iter=n_iter, sigma_rule="authors", random_state=0)
    found = model.fit(problem.X[chosen], problem.y[chosen]).search_results_
    for trial in range(n_iter):
        params = {"s_min": float(found["s_min"][trial]), "n_components": int(found["n_components"][trial])}
        row = {"trial": trial, "fold": 0, "params": json.dumps(params), "score_known": None, "score_estimated": None}
        rows.append(row | {f"score_{setting}": found["ari"][trial], "n_clusters": found["n_clusters"][trial]})


def _run_trials_on_novel(job: Job, folder) -> int:
    """Train a search's trials with no class hidden, and score them on the novel test rows, known k."""
    search: Search = job.task
    rows = results.run_store(folder)
    problem = load_problem(job.dataset)
    method, fixed, _ = SEARCHES[search.method]
    cell = {"table": CORRELATION, "dataset": job.dataset, "method": search.method, "setting": "known"}
    with _seeds_to_measure(rows, cell | {"origin": "searched", "variant": ""}, job) as seeds:
        if not seeds:
            return 0
        trials = results.load_trials(search, folder).set_index("trial").loc[seeds]
        k = len(problem.novel_classes)
        estimator = protocols.ESTIMATORS[method](n_clusters=k, verbose=False, **fixed)
        began = time.perf_counter()
        models = estimator.fit_many(problem.X, problem.y, trials["params"], seeds, fit_clusters=False)
        seconds = (time.perf_counter() - began) / len(models)
        n_rows = 0
        for number, model, params in zip(seeds, models, trials["params"], strict=True):
            scores = dict.fromkeys(("acc", "nmi", "ari"), float("nan"))
            if not model.diverged_ and method == "TabularNCD":
                scores = protocols.scores_of(problem, [model.predict(problem.X_test_novel)])
            elif not model.diverged_:
                scores = protocols.cluster_test_rows(problem, model, k, number)
            row = _provenance(problem, CORRELATION, search.method, "known", "searched", "", params)
            n_rows += _append(rows, row | scores | {"seed": number, "k": k, "seconds": seconds})
        return n_rows


def summary(folder: str | os.PathLike | None = None) -> pd.DataFrame:
    """The share of the paper's cells that our runs reproduce, by table and origin of the hyperparameters."""
    cells = compare_with_paper(folder)
    rows = []
    for origin in ("published", "searched"):
        within = within_tolerance(cells, origin)
        for table, group in within.groupby(cells["table"].loc[within.index]):
            rows.append({"table": table, "origin": origin, "cells": len(group), "within": int(group.sum())})
    return pd.DataFrame(rows, columns=["table", "origin", "cells", "within"])
