"""Ctrl-C is for the process that starts the others; and what the command line says when it comes early."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from joblib import delayed

from ncdlib import make_ncd_blobs
from ncdlib._io.processes import as_they_come

START = {"start_new_session": True, "preexec_fn": lambda: signal.signal(signal.SIGINT, signal.default_int_handler)}


def signals_blocked(_):
    time.sleep(0.05)
    return os.getpid(), signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_workers_are_deaf_to_ctrl_c_and_this_process_is_not():
    with as_they_come((delayed(signals_blocked)(n) for n in range(6)), n_jobs=2) as results:
        blocked = dict(results)
    assert os.getpid() not in blocked and all(signal.SIGINT in mask for mask in blocked.values())
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


HELD_BACK = """
import os, signal, time
from ncdlib._io.processes import _ctrl_c_held_back
reached = False
try:
    with _ctrl_c_held_back():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        reached = True
    print("nothing came")
except KeyboardInterrupt:
    print("it came", "afterwards" if reached else "at once")
"""


def test_ctrl_c_while_workers_are_started_arrives_afterwards():
    done = subprocess.run([sys.executable, "-c", HELD_BACK], capture_output=True, text=True, timeout=120, **START)
    assert done.stdout == "it came afterwards\n", done.stderr


SCRIPT = """
import time
from joblib import delayed
from ncdlib._io.processes import as_they_come
print("started", flush=True)
with as_they_come((delayed(time.sleep)(0.01) for _ in range(10**6)), n_jobs=2) as results:
    for _ in results:
        pass
"""


@pytest.mark.parametrize("seconds", [0.05, 0.3, 0.6, 1.0])
def test_ctrl_c_at_any_moment_is_that_of_the_parent_alone(seconds):
    """Also while the workers import, or wait for work: the one traceback is the parent's own."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", SCRIPT],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **START,
    )
    assert process.stdout.readline() == "started\n"
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert errors.count("Traceback") == 1 and errors.rstrip().endswith("KeyboardInterrupt"), errors


def test_ctrl_c_before_the_first_unit_promises_nothing(tmp_path):
    problem = make_ncd_blobs(n_samples=400, random_state=0)
    labels = np.where(problem.y == -1, "", problem.y.astype(str))
    rows = [",".join([*map(str, row), label]) for row, label in zip(problem.X.round(4), labels, strict=True)]
    (tmp_path / "mine.csv").write_text("\n".join([",".join([*"abcdefgh", "class"]), *rows]))
    command = [Path(sys.executable).with_name("ncd"), "discover", tmp_path / "mine.csv", "--label-column", "class"]
    command += ["--method", "pbn", "--store", tmp_path / "search.csv", "--jobs", "1", "--trials", "500"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **START)
    while (seen := process.stderr.read(1)) != "%":  # the bar stands at 0: a unit of twenty trials takes seconds
        assert seen, "it ended before it could be stopped"
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert not (tmp_path / "search.csv").exists()
    assert process.returncode == 130
    assert errors.endswith("\nstopped; nothing was finished yet: the same command starts again\n")
