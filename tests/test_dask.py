"""The search and the measurements on a real Dask cluster of two worker processes."""

import os
import signal
import threading
import time
from contextlib import contextmanager
from multiprocessing import parent_process

import joblib
import pandas as pd
import pytest
from test_search import SPACE, PCAKMeans, assert_same_results, make_search
from typer.testing import CliRunner

from ncdlib import make_ncd_blobs
from ncdlib.cli import app
from ncdlib.evidence import experiments, load_results, protocols
from ncdlib.own_data.discover import discover_file

distributed = pytest.importorskip("distributed")
WORKERS = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None, "memory_limit": 0}


@pytest.fixture(scope="module")
def problem():
    return make_ncd_blobs(random_state=3)


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(**WORKERS) as cluster, distributed.Client(cluster):
        yield cluster


def slow_search(**kwargs):
    return make_search(estimator=PCAKMeans(seconds=0.2), n_iter=6, stack_size=2, **kwargs)


def test_same_result_as_serial(problem, cluster):
    serial = slow_search().fit(problem.X, problem.y)
    with distributed.get_task_stream() as tasks, joblib.parallel_config(backend="dask"):
        spread = slow_search().fit(problem.X, problem.y)
    assert_same_results(serial.cv_results_, spread.cv_results_)
    assert (serial.labels_ == spread.labels_).all()
    assert len({task["worker"] for task in tasks.data}) == 2  # both processes took part


def test_discover_takes_the_address_of_a_cluster(problem, cluster, tmp_path):
    table = pd.DataFrame(problem.X).rename(columns=str)
    table["class"] = problem.y
    table.to_csv(tmp_path / "mine.csv", index=False)
    options = {"method": PCAKMeans(), "param_distributions": SPACE, "n_trials": 2, "n_seeds": 1, "verbose": False}
    _, here = discover_file(tmp_path / "mine.csv", "class", **options)
    with distributed.get_task_stream() as tasks:
        _, there = discover_file(tmp_path / "mine.csv", "class", dask=cluster.scheduler_address, **options)
    assert tasks.data
    assert (here.labels == there.labels).all()


@contextmanager
def killed_workers(cluster, path, names):
    """Kill workers when the file has two rows, while the block runs; these rows must still be there at its end."""
    killed, rows = [], b""

    def kill():
        nonlocal rows
        deadline = time.monotonic() + 300
        while rows.count(b"\n") < 3:
            if time.monotonic() > deadline:
                return
            time.sleep(0.02)
            rows = path.read_bytes() if path.exists() else b""
        for name in names:
            os.kill(cluster.workers[name].pid, signal.SIGKILL)
            killed.append(name)

    killer = threading.Thread(target=kill)
    killer.start()
    yield
    killer.join()
    assert killed == names, "the work was over before the workers could be killed"
    assert path.read_bytes().startswith(rows[: rows.rfind(b"\n") + 1])


def test_a_killed_worker_loses_nothing(problem, cluster, tmp_path):
    store = tmp_path / "search.csv"
    with killed_workers(cluster, store, [0]), joblib.parallel_config(backend="dask"):
        spread = slow_search(store=store).fit(problem.X, problem.y)
    serial = slow_search().fit(problem.X, problem.y)
    assert_same_results(serial.cv_results_, spread.cv_results_)
    table = pd.read_csv(store)
    assert len(table) == 18 and not table.duplicated(["trial", "fold"]).any()


def slow_k_means(problem, params, setting, seeds):
    assert parent_process(), "this is the client, no worker"
    for seed in seeds:
        time.sleep(0.5)
        yield from protocols.k_means(problem, params, setting, [seed])


def test_reproduce_with_killed_workers(monkeypatch, tmp_path):
    """Both, since a single job runs on either: what was finished stays, and the same command measures the rest."""
    monkeypatch.setenv("NCDLIB_RESULTS", str(tmp_path))
    cell = experiments.Experiment("clust", "k-means", slow_k_means, datasets=("digits",), runs=6)
    monkeypatch.setattr(experiments, "experiment_list", lambda: [cell])
    monkeypatch.setattr(experiments, "search_list", lambda: [])
    with distributed.LocalCluster(**WORKERS) as cluster, killed_workers(cluster, tmp_path / "runs.csv", [0, 1]):
        done = CliRunner().invoke(app, ["reproduce", "clust", "--dask", cluster.scheduler_address])
    assert done.exit_code == 0, done.output
    assert sorted(load_results(tmp_path)["seed"]) == list(range(6))
