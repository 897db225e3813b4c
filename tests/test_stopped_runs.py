"""A measurement that is stopped, killed or shared loses nothing, and goes on where it was."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial

import pandas as pd
import pytest
import small_experiments
from faults import full_disk, read_only
from small_experiments import TINY

from ncdlib.evidence import experiments as declared
from ncdlib.evidence import load_results, measure, plan

tiny, ncd = small_experiments.tiny, small_experiments.ncd

SLOW_RUN = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests run in the background of a shell
from ncdlib.evidence import experiments, protocols

def slow(problem, params, setting, seeds):
    for seed in seeds:
        time.sleep(0.2 if seed < 4 else 600)  # what is finished is stored before the rest is
        with open(f"{os.environ['NCDLIB_RESULTS']}/measured", "a") as file:
            file.write("a run\\n")
        yield from protocols.k_means(problem, params, setting, [seed])

experiments.experiment_list = lambda: [
    experiments.Experiment("clust", "k-means", slow, datasets=("digits",), runs=8)
]
experiments.search_list = lambda: []
from ncdlib.cli import main
sys.argv = ["ncd", "reproduce", "clust"]
main()
"""


def start_slow_run(folder):
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_RUN],
        env=os.environ | {"NCDLIB_RESULTS": str(folder)},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    deadline = time.time() + 120
    while len(load_results(folder)) < 2:
        if process.poll() is not None or time.time() > deadline:
            process.kill()
            pytest.fail(f"no two runs were stored: {process.communicate()}")
        time.sleep(0.02)
    return process


def finish(folder, monkeypatch):
    experiment = replace(TINY[0], runs=8)
    monkeypatch.setattr(declared, "experiment_list", lambda: [experiment])
    monkeypatch.setattr(declared, "search_list", lambda: [])
    before = load_results(folder)
    measure.reproduce(plan.pending_jobs(folder=folder), folder=folder, verbose=False)
    after = load_results(folder)
    assert sorted(after["seed"]) == list(range(8))
    assert 2 <= len(before) < 8
    pd.testing.assert_frame_equal(after.head(len(before)), before)


def test_kill_9_during_a_run_loses_nothing_that_was_finished(tmp_path, monkeypatch):
    process = start_slow_run(tmp_path)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    process.communicate()
    finish(tmp_path, monkeypatch)


def test_ctrl_c_leaves_a_usable_store_and_says_so_in_one_line(tmp_path, monkeypatch):
    process = start_slow_run(tmp_path)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"stopped; all that was finished is in {tmp_path}" in errors.splitlines()[-1]
    assert "Traceback" not in errors
    finish(tmp_path, monkeypatch)


def test_two_at_once_share_the_work(tmp_path):
    code = SLOW_RUN.replace("runs=8)\n]", "runs=2, variant=v) for v in 'abcdef'\n]")
    assert code != SLOW_RUN
    start = partial(subprocess.Popen, [sys.executable, "-c", code], env=os.environ | {"NCDLIB_RESULTS": str(tmp_path)})
    both = [start(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    rows = load_results(tmp_path)
    assert sorted(zip(rows["variant"], rows["seed"], strict=True)) == [(v, seed) for v in "abcdef" for seed in (0, 1)]
    assert sum(int(out.split(" rows measured")[0]) for out, _ in outputs) == 12
    assert len((tmp_path / "measured").read_text().splitlines()) == 12


def test_a_folder_that_cannot_be_written_is_an_error_of_one_line(ncd, tiny):
    code, _ = ncd("reproduce", "--methods", "k-means", "--runs", "1")
    before = load_results()
    assert code == 0 and len(before) == 1
    with read_only(tiny):
        code, out = ncd("reproduce", "--methods", "k-means")
        assert str(code).startswith("ncd: cannot write to ") and str(code).endswith("the rows in it are safe")
        assert "\n" not in code and out == ""
    pd.testing.assert_frame_equal(load_results(), before)


def test_a_full_disk_destroys_nothing(ncd, tiny, monkeypatch):
    long_rows = replace(TINY[0], change={"note": "x" * 5000})  # more than what is left of a file's last page
    monkeypatch.setattr(declared, "experiment_list", lambda: [long_rows])
    with full_disk(tiny, 1 << 16):
        assert ncd("reproduce", "--methods", "k-means", "--runs", "2")[0] == 0
        before = (tiny / "runs.csv").read_bytes()
        filler = tiny / "filler"
        with pytest.raises(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"#" * 1024)
        code, _ = ncd("reproduce", "--methods", "k-means")
        assert "No space left" in str(code) or "File too large" in str(code)
        assert (tiny / "runs.csv").read_bytes() == before
        filler.unlink()
        assert ncd("reproduce", "--methods", "k-means")[0] == 0
        assert sorted(load_results()["seed"]) == [0, 1, 2]
