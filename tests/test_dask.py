"""The search on a real Dask cluster of two worker processes."""

import os
import signal
import threading
import time

import joblib
import pandas as pd
import pytest
from test_search import SPACE, PCAKMeans, assert_same_results, make_search

from ncdlib import make_ncd_blobs
from ncdlib.discovery import discover_file

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def problem():
    return make_ncd_blobs(random_state=3)


@pytest.fixture(scope="module")
def cluster():
    workers = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with distributed.LocalCluster(**workers, dashboard_address=None, memory_limit=0) as cluster:
        with distributed.Client(cluster):
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


def test_a_killed_worker_loses_nothing(problem, cluster, tmp_path):
    store = tmp_path / "search.csv"
    killed = []

    def kill_one():
        deadline = time.monotonic() + 300
        while not (store.exists() and store.read_bytes().count(b"\n") > 2):
            if time.monotonic() > deadline:
                return
            time.sleep(0.02)
        pid = cluster.workers[0].pid
        os.kill(pid, signal.SIGKILL)
        killed.append(pid)

    killer = threading.Thread(target=kill_one)
    killer.start()
    with joblib.parallel_config(backend="dask"):
        spread = slow_search(store=store).fit(problem.X, problem.y)
    killer.join()
    assert killed, "the search was over before the worker could be killed"
    serial = slow_search().fit(problem.X, problem.y)
    assert_same_results(serial.cv_results_, spread.cv_results_)
    table = pd.read_csv(store)
    assert len(table) == 18 and not table.duplicated(["trial", "fold"]).any()
