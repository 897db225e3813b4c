"""Measure what is missing: resumable, several processes at once, each finished run on disk at once."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
from joblib import delayed
from tqdm.auto import tqdm

import ncdlib
from ncdlib._io.processes import as_they_come, end_with_parent, one_thread
from ncdlib._io.row_store import RowStore
from ncdlib.evidence import experiments, protocols, results
from ncdlib.evidence.experiments import SEARCH_TRIALS, SEARCHES, Experiment, Search, load_problem
from ncdlib.evidence.paper import CORRELATION, INDEX_NAMES
from ncdlib.evidence.plan import Job, seeds_at_once
from ncdlib.problem import NCDProblem
from ncdlib.selection import HiddenClassKFold, HiddenClassSearchCV


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
    calls = (delayed(run_job)(job, deadline=deadline, trials=trials, folder=folder) for job in jobs)
    n_rows = 0
    with (
        as_they_come(calls, n_jobs, batch_size=1, pre_dispatch="n_jobs") as work,
        tqdm(total=len(jobs), desc="measuring", disable=not verbose) as progress,
    ):
        for n, label in work:
            n_rows += n
            progress.set_postfix_str(label)
            progress.update()
    return n_rows


def run_job(
    job: Job, *, deadline: float | None = None, trials: int | None = None, folder: str | os.PathLike | None = None
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
    names = experiment.row_methods
    task = (experiment.setting, experiment.params_from, experiment.variant, params)
    for i, row in enumerate(experiment.measure(problem, params, experiment.setting, seeds)):
        name = INDEX_NAMES[row.pop("index")] if "index" in row else names[0]
        yield _provenance(problem, experiment.table, name, *task) | {"seed": seeds[i // len(names)]} | row


def _provenance(problem: NCDProblem, table, method, setting, params_from, variant, params) -> dict[str, Any]:
    """Begin a row of ``runs.csv``: everything except the scores."""
    return dict.fromkeys(results.RUN_COLUMNS) | {
        "table": table,
        "dataset": problem.name,
        "source": problem.source,
        "method": method,
        "setting": setting,
        "params_from": params_from,
        "variant": variant,
        "params": json.dumps(params),
        "ncdlib": version("ncdlib"),
        "torch": version("torch").split("+")[0],
        "scikit-learn": version("scikit-learn"),
    }


def rounded(row: dict[str, Any]) -> dict[str, Any]:
    """Keep the digits that are stored."""
    digits = {"acc": 5, "nmi": 5, "ari": 5, "seconds": 2}
    return {c: round(v, digits[c]) if c in digits and v is not None else v for c, v in row.items()}


def _append(rows: RowStore, row: dict[str, Any]) -> bool:
    return rows.append(rounded(row))


@contextmanager
def _seeds_to_measure(rows: RowStore, cell: dict[str, Any], job: Job) -> Iterator[list[int]]:
    """Yield what a job lacks; nothing where another process is at it.

    The claim is on the whole job: it may be started again where a worker died, with its first rows stored.
    """
    part = job.seeds[0] // seeds_at_once(job.task, job.dataset)
    with rows.claim(cell | {"seed": f"part {part}"}) as mine:
        yield [seed for seed in job.seeds if cell | {"seed": seed} not in rows] if mine else []


def _run_experiment(job: Job, folder) -> int:
    rows = results.run_store(folder)
    experiment: Experiment = job.task
    cell = {"table": experiment.table, "dataset": job.dataset, "method": experiment.row_methods[-1]}
    cell |= {"setting": experiment.setting, "params_from": experiment.params_from, "variant": experiment.variant}
    with _seeds_to_measure(rows, cell, job) as seeds:
        return sum(_append(rows, row) for row in measure(experiment, job.dataset, seeds, folder)) if seeds else 0


def make_search(search: Search, n_iter: int, path: str | os.PathLike | None) -> HiddenClassSearchCV:
    """Set up a search as it is run for the evidence: folds of the paper's table, no novel label."""
    info = ncdlib.DATASETS[search.dataset]
    method, fixed, space = SEARCHES[search.method]
    problem = load_problem(search.dataset)
    estimator = getattr(ncdlib, method)(verbose=False, **fixed)
    n_features = problem.X.shape[1]
    return HiddenClassSearchCV.paper(
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
    """Run NCD SC's own search on training rows, as many as the test rows that are embedded later.

    The kernel's width comes from the longest edge of the spanning tree, which shrinks as rows are added: values found
    on as many rows carry over.
    """
    chosen = np.random.default_rng(0).permutation(len(problem.X))[: len(problem.X_test)]
    k = len(problem.novel_classes) if setting == "known" else "silhouette"
    model = ncdlib.NCDSpectralClustering(k, n_iter=n_iter, sigma_rule="authors", random_state=0)
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
    with _seeds_to_measure(rows, cell | {"params_from": "searched", "variant": ""}, job) as seeds:
        if not seeds:
            return 0
        trials = results.load_trials(search, folder).set_index("trial").loc[seeds]
        k = len(problem.novel_classes)
        estimator = getattr(ncdlib, method)(n_clusters=k, verbose=False, **fixed)
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
